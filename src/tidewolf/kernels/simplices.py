"""Linear minimisers of simplices: arrays in, arrays out.

    oracle(d, kernel_data, indices, values) -> count

writes the nonzero entries of the vertex that is best for the direction d to the start of `indices`
and `values`, and returns how many there are (`sets.Compiled`). Reference implementations of what
works on groups side by side are in tests/test_columns.py: the same group by group.
"""

import math

import numpy as np

from tidewolf.core.jit import kernel
from tidewolf.kernels.active_set import BLOCK, added, copy_to, fill

# Entries from which on a sample of about so many says where to look for one in order.
MANY, SAMPLED = 1 << 14, 1 << 12


@kernel
def cheapest_entry(d, kernel_data, indices, values):  # type: ignore[no-untyped-def]
    """The total on the first of the least entries of d, where that one is below the limit; above
    the floor, which every entry has.

    `kernel_data` is the total, the limit (infinity, or 0 where the sum may be less) and the floor.
    Its reference in the tests is `Simplex.answer`.
    """
    total, limit, floor = kernel_data
    least, i, count = least_of(d), 0, 0
    if floor > 0.0:
        count = len(d)
        for e in range(count):
            indices[e], values[e] = e, floor
    if not least < limit:
        return count
    while d[i] != least:
        i += 1
    if floor > 0.0:
        values[i] += total
        return count
    indices[0], values[0] = i, total
    return 1


@kernel
def cheapest_entries(d, shares, indices, values):  # type: ignore[no-untyped-def]
    """The shares on as many of the least entries of d, the last share on the dearest; ties go to
    the earlier entry. Its reference in the tests is `CappedSimplex.answer`.
    """
    near = entries_below(d, len(shares))
    own = np.empty(len(near))
    for p in range(len(own)):
        own[p] = d[near[p]]
    dearest, ties = kth_of(own, len(shares) - 1), len(shares)
    for p in range(len(own)):
        ties -= own[p] < dearest
    first, count = len(shares) - ties, 0
    below, tied = 0, first
    for p in range(len(own)):
        if own[p] < dearest:
            indices[count], values[count] = near[p], shares[below]
            below, count = below + 1, count + 1
        elif own[p] == dearest and tied < len(shares):
            indices[count], values[count] = near[p], shares[tied]
            tied, count = tied + 1, count + 1
    return count


@kernel
def entries_below(d, k):  # type: ignore[no-untyped-def]
    """Where the k least entries of d are, in order, and some more: those up to one that a sample
    has above them, most likely. Its reference in the tests is `numpy.partition`.
    """
    n, found, count, high = len(d), np.empty(len(d), np.int32), 0, np.inf
    if n >= MANY:
        sample = d[:: n // SAMPLED].copy()
        at = k * len(sample) // n + 2 * int(math.sqrt(len(sample)))
        high = kth_least(sample, at) if at < len(sample) else np.inf
    for e in range(n):
        found[count] = e
        count += d[e] <= high
    if count >= k:
        return found[:count]
    for e in range(n):
        found[e] = e
    return found


@kernel
def cheapest_of_each(d, kernel_data, indices, values):  # type: ignore[no-untyped-def]
    """A 1 on the first of the least entries of every group, or what is left above the floor, which
    every entry has. `kernel_data` is the floor and the starts: group b has the entries starts[b] ..
    starts[b + 1] - 1. Its reference in the tests is a `Simplex` for each group.
    """
    floor, count = kernel_data[0], 0
    for b in range(1, len(kernel_data) - 1):
        first, stop = int(kernel_data[b]), int(kernel_data[b + 1])
        own = (1.0 - (stop - first) * floor, np.inf, floor)
        begin = count
        count += cheapest_entry(d[first:stop], own, indices[begin:], values[begin:])
        for k in range(begin, count):
            indices[k] += first
    return count


@kernel
def onto_simplices(y, floor, starts, x):  # type: ignore[no-untyped-def]
    """The nearest x whose entries are at least `floor` and sum to 1 in every group (Michelot 1986).

    With z_i = y_i - max y and r what a group has above the floor, x_i = floor + max(0, z_i - tau)
    where tau = (sum of those z_i above tau - r) / their number; from tau = -r, which is never too
    large, it grows until no entry falls below it. Its reference in the tests is `Simplex.project`,
    group by group.
    """
    for b in range(len(starts) - 1):
        top, rest = y[starts[b]], 1.0 - (starts[b + 1] - starts[b]) * floor
        for e in range(starts[b] + 1, starts[b + 1]):
            top = max(top, y[e])
        tau, shift, before, above = -rest, -rest, 0, -1
        while above != before:
            before, above, sum_above = above, 0, 0.0
            for e in range(starts[b], starts[b + 1]):
                if y[e] - top > tau:
                    above += 1
                    sum_above += y[e] - top
            shift = (sum_above - rest) / above
            tau = max(tau, shift)
        for e in range(starts[b], starts[b + 1]):
            x[e] = floor + max(0.0, y[e] - top - shift)


@kernel
def outside_simplices(x, floats, ints):  # type: ignore[no-untyped-def]
    """How far an entry is below the floor, floats[0], or the largest error of the sum of a group;
    starts follow the size of the longest. Its reference in the tests is `Simplex.infeasibility`,
    group by group.
    """
    starts, floor, worst = ints[1:], floats[0], 0.0
    for b in range(len(starts) - 1):
        added = 0.0
        for e in range(starts[b], starts[b + 1]):
            added += x[e]
            worst = max(worst, floor - x[e])
        worst = max(worst, abs(added - 1.0))
    return worst


@kernel
def within_simplices(d, count, floats, ints, out):  # type: ignore[no-untyped-def]
    """The first `count` rows of d without the means of groups, whose starts follow the size of the
    longest in `ints`. Its reference in the tests is `SimplexProduct.tangent`.
    """
    starts = ints[1:]
    for row in range(count):
        given, own = d[row], out[row]
        for b in range(len(starts) - 1):
            mean = 0.0
            for e in range(starts[b], starts[b + 1]):
                mean += given[e]
            mean /= starts[b + 1] - starts[b]
            for e in range(starts[b], starts[b + 1]):
                own[e] = given[e] - mean


@kernel
def nearest_in_simplices(y, floats, ints, x):  # type: ignore[no-untyped-def]
    """The nearest x of a product of simplices whose entries are floats[0] at least. Its reference
    in the tests is `Simplex.project`, group by group.
    """
    if ints[0] <= LONGEST and floats[0] == 0.0:
        onto_small_simplices(y, ints[1:], ints[0], x)
    else:
        onto_simplices(y, floats[0], ints[1:], x)


@kernel
def kth_least(a, k):  # type: ignore[no-untyped-def]
    """Entry k of `a` in order, which is rearranged: the part that holds it is split about its
    middle entry until all in it are equal. Its reference in the tests is `numpy.partition`.
    """
    low, high = 0, len(a) - 1
    while low < high:
        pivot, i, j = a[(low + high) // 2], low, high
        while i <= j:
            while a[i] < pivot:
                i += 1
            while a[j] > pivot:
                j -= 1
            if i <= j:
                a[i], a[j] = a[j], a[i]
                i, j = i + 1, j - 1
        if k <= j:
            high = j
        elif k >= i:
            low = i
        else:
            return pivot
    return a[k]


@kernel
def kth_of(d, k):  # type: ignore[no-untyped-def]
    """Entry k of d in order: of many, it is looked for among those between two entries of a sample
    that most likely have it between them. Its reference in the tests is `numpy.partition`.
    """
    n = len(d)
    if n >= MANY:
        sample = d[:: n // SAMPLED].copy()
        at, spread = k * len(sample) // n, 2 * int(math.sqrt(len(sample)))
        low, high = -np.inf, np.inf
        if at - spread > 0:
            low = kth_least(sample, at - spread)
        if at + spread < len(sample):
            high = kth_least(sample, at + spread)
        below, count, inside = 0, 0, np.empty(n + 1)
        for e in range(n):
            inside[count] = d[e]
            below += d[e] < low
            count += (d[e] >= low) & (d[e] <= high)
        if below <= k < below + count:
            return kth_least(inside[:count], k - below)
    return kth_least(d.copy(), k)


@kernel
def within_sum(d, count, floats, ints, out):  # type: ignore[no-untyped-def]
    """The first `count` rows of d without their means; as they are, or 0, if ints[0] is 1 or 2.
    Its reference implementations in the tests are `Simplex.tangent` and `CappedSimplex.tangent`.
    """
    n = d.shape[1]
    for row in range(count):
        mean = added(d[row]) / n if ints[0] == 0 else 0.0
        share = 0.0 if ints[0] == 2 else 1.0
        for e in range(n):
            out[row, e] = share * d[row, e] - mean


@kernel
def sum_infeasibility(x, floats, ints):  # type: ignore[no-untyped-def]
    """How far an entry is below the floor floats[2] or above the cap floats[1], or the error of the
    sum floats[0], which may be less where ints[1] is 1. Its reference implementations in the tests
    are `Simplex.infeasibility` and `CappedSimplex.infeasibility`.
    """
    least, above, most, off = np.inf, 0, 0.0, -floats[0]
    for low in range(0, len(x), BLOCK):
        own = x[low : low + BLOCK]
        least = min(least, least_of(own))
        off += added(own)
        for e in range(len(own)):
            above += own[e] > floats[1]
    for e in range(len(x) if above > 0 else 0):
        most = max(most, x[e])
    off = off if ints[1] == 1 else abs(off)
    return max(0.0, floats[2] - least, most - floats[1] if above > 0 else 0.0, off)


@kernel
def least_of(a):  # type: ignore[no-untyped-def]
    """The least entry, in eight comparisons at a time. Its reference in the tests is `min`."""
    whole, least = len(a) - len(a) % 8, a[0]
    m0, m1, m2, m3, m4, m5, m6, m7 = least, least, least, least, least, least, least, least
    for i in range(0, whole, 8):
        m0, m1, m2, m3, m4, m5, m6, m7 = (
            a[i] if a[i] < m0 else m0, a[i + 1] if a[i + 1] < m1 else m1,
            a[i + 2] if a[i + 2] < m2 else m2, a[i + 3] if a[i + 3] < m3 else m3,
            a[i + 4] if a[i + 4] < m4 else m4, a[i + 5] if a[i + 5] < m5 else m5,
            a[i + 6] if a[i + 6] < m6 else m6, a[i + 7] if a[i + 7] < m7 else m7,
        )  # fmt: skip
    least = min(min(min(m0, m1), min(m2, m3)), min(min(m4, m5), min(m6, m7)))
    for i in range(whole, len(a)):
        least = a[i] if a[i] < least else least
    return least


# --- Groups side by side --------------------------------------------------------------------------
#
# Many small groups of a vector side by side: entry j of each of them is one row of an array.
#
# Groups of a few entries are too short for loops to be worth much; with the groups along the rows,
#
#     columns[j, r] = entry j of group `first` + r,         j < size, r < how many groups there are,
#
# loops run over groups, without branches, and compilers turn them into vector code. Groups that are
# shorter than others are filled up. Group b has the entries from starts[b] up to starts[b + 1].

# So many groups at a time stay in the cache.
WIDTH = 256
# Groups of more entries are better off one by one.
LONGEST = 64


@kernel
def load_columns(a, starts, first, stop, size, filler, columns):  # type: ignore[no-untyped-def]
    """Groups `first` to `stop - 1`, of at most `size` entries, filled up with `filler`."""
    own, count = a[starts[first] : starts[stop]], stop - first
    if len(own) == size * count:
        for j in range(size):
            column, e = columns[j], j
            for r in range(count):
                column[r] = own[e]
                e += size
        return
    for r in range(count):
        begin, end = starts[first + r] - starts[first], starts[first + r + 1] - starts[first]
        for j in range(size):
            columns[j, r] = own[begin + j] if begin + j < end else filler


@kernel
def store_columns(columns, starts, first, stop, size, a):  # type: ignore[no-untyped-def]
    """The reverse."""
    own, count = a[starts[first] : starts[stop]], stop - first
    if len(own) == size * count:
        for j in range(size):
            column, e = columns[j], j
            for r in range(count):
                own[e] = column[r]
                e += size
        return
    for r in range(count):
        begin, end = starts[first + r] - starts[first], starts[first + r + 1] - starts[first]
        for j in range(end - begin):
            own[begin + j] = columns[j, r]


@kernel
def simplex_columns(columns, size, top, tau, shift, above):  # type: ignore[no-untyped-def]
    """Every group's nearest member of its simplex, in place (Michelot 1986): as `onto_simplices` of
    simplices.py, with all groups at once and as often as the slowest needs it. Groups are filled up
    with -inf, which becomes 0. The other arrays are scratch, a number a group.
    """
    count = len(top)
    copy_to(columns[0, :count], top)
    fill(tau, -1.0)
    for j in range(1, size):
        column = columns[j]
        for r in range(count):
            top[r] = column[r] if column[r] > top[r] else top[r]
    for j in range(size):
        column = columns[j]
        for r in range(count):
            column[r] -= top[r]
    for _ in range(size + 1):
        fill(above, 0.0)
        fill(shift, -1.0)
        for j in range(size):
            column = columns[j]
            for r in range(count):
                above[r] += 1.0 if column[r] > tau[r] else 0.0
            for r in range(count):
                shift[r] += column[r] if column[r] > tau[r] else 0.0
        for r in range(count):
            shift[r] /= above[r]
        grown = 0
        for r in range(count):
            grown += shift[r] > tau[r]
        if grown == 0:
            break
        for r in range(count):
            tau[r] = shift[r] if shift[r] > tau[r] else tau[r]
    for j in range(size):
        column = columns[j]
        for r in range(count):
            over = column[r] - shift[r]
            column[r] = over if over > 0.0 else 0.0


@kernel
def onto_small_simplices(y, starts, size, x):  # type: ignore[no-untyped-def]
    """The nearest x whose entries are nonnegative and sum to 1 in every group, of at most `size`
    entries each.
    """
    q = len(starts) - 1
    columns, work = np.empty((size, WIDTH)), np.empty((4, WIDTH))
    for first in range(0, q, WIDTH):
        stop = min(q, first + WIDTH)
        count = stop - first
        load_columns(y, starts, first, stop, size, -np.inf, columns)
        simplex_columns(
            columns, size, work[0, :count], work[1, :count], work[2, :count], work[3, :count]
        )
        store_columns(columns, starts, first, stop, size, x)
