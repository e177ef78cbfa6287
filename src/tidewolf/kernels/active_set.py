"""A projection in weight space: corrective steps among the atoms of a sparse table, and the search
that asks a compiled oracle between them.

Rows of a table are a tuple (starts, indices, values): row i has its entries at starts[i] ..
starts[i + 1] - 1. The mathematics is in projection/search.py and projection/active.py.
Reference of what works factor by factor: `naive_projection` in tests/test_factored.py.
"""

import math

import numpy as np

from tidewolf.core.arrays import frozen
from tidewolf.core.jit import Indirect, kernel, light_kernel
from tidewolf.core.vertices import (
    first_is_whole,
    sparse_combine,
    sparse_inner,
    sparse_multiply,
)

# Weights up to this become 0.
DROP = 1e-13
# Slopes nearer than this share of `stop` tie and go to the earlier atom: each step leaves equal
# slopes, and rounding shall not choose.
TIE = 1e-6
# Directions are rounded to about this share of their length, or of the radius.
GRAIN = 1e-10
# An answer may be worse than a known member by this many rounding errors.
ORACLE_SLACK = 1e3
_ROUNDING = ORACLE_SLACK * float(np.finfo(np.float64).eps)


# What a search for a member comes back with.
DONE, NO_ROOM, TABLE_TAKEN, BAD_ORACLE = range(4)
# Where it is: rows of the table, oracle calls so far and at most, whether the last was made, one
# more than the entries of a vertex that waits for its row (0: none does) and the step to it, |x -
# y|^2, atoms with weight; whether r is x - y already.
COUNT, CALLS, BUDGET, LAST, WAITING, STEP, DISTANCE2, USED, READY, PLACES = range(10)
# Entries of points that are looked at together: a few such blocks stay near the processor, and
# loops over the slices of one become vector instructions.
BLOCK = 1024


@light_kernel
def dot(a, b):  # type: ignore[no-untyped-def]
    """<a, b> in eight sums, whatever the machine does with them: the same bits everywhere.

    Reference: eight sums in Python, in tests/test_rounds.py.
    """
    whole = len(a) - len(a) % 8
    s0, s1, s2, s3, s4, s5, s6, s7 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for i in range(0, whole, 8):
        s0, s1, s2, s3, s4, s5, s6, s7 = (
            s0 + a[i] * b[i], s1 + a[i + 1] * b[i + 1],
            s2 + a[i + 2] * b[i + 2], s3 + a[i + 3] * b[i + 3],
            s4 + a[i + 4] * b[i + 4], s5 + a[i + 5] * b[i + 5],
            s6 + a[i + 6] * b[i + 6], s7 + a[i + 7] * b[i + 7],
        )  # fmt: skip
    total = ((s0 + s4) + (s2 + s6)) + ((s1 + s5) + (s3 + s7))
    for i in range(whole, len(a)):
        total += a[i] * b[i]
    return total


@light_kernel
def copy_to(a, out):  # type: ignore[no-untyped-def]
    """`out[:] = a`, its reference, which numba takes ten times as long to compile."""
    for i in range(len(a)):
        out[i] = a[i]


@light_kernel
def fill(out, number):  # type: ignore[no-untyped-def]
    """`out[:] = number`, its reference, for the same reason."""
    for i in range(len(out)):
        out[i] = number


@kernel
def added(a):  # type: ignore[no-untyped-def]
    """The sum of all entries in eight sums, whatever the machine does with them. Its reference in
    the tests is `math.fsum`.
    """
    whole = len(a) - len(a) % 8
    s0, s1, s2, s3, s4, s5, s6, s7 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for i in range(0, whole, 8):
        s0, s1, s2, s3, s4, s5, s6, s7 = (
            s0 + a[i], s1 + a[i + 1],
            s2 + a[i + 2], s3 + a[i + 3],
            s4 + a[i + 4], s5 + a[i + 5],
            s6 + a[i + 6], s7 + a[i + 7],
        )  # fmt: skip
    total = ((s0 + s4) + (s2 + s6)) + ((s1 + s5) + (s3 + s7))
    for i in range(whole, len(a)):
        total += a[i]
    return total


@kernel
def distance2(a, b):  # type: ignore[no-untyped-def]
    """|a - b|^2 in eight sums, as `dot`, whose reference it has."""
    whole = len(a) - len(a) % 8
    s0, s1, s2, s3, s4, s5, s6, s7 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for i in range(0, whole, 8):
        s0, s1, s2, s3, s4, s5, s6, s7 = (
            s0 + (a[i] - b[i]) ** 2, s1 + (a[i + 1] - b[i + 1]) ** 2,
            s2 + (a[i + 2] - b[i + 2]) ** 2, s3 + (a[i + 3] - b[i + 3]) ** 2,
            s4 + (a[i + 4] - b[i + 4]) ** 2, s5 + (a[i + 5] - b[i + 5]) ** 2,
            s6 + (a[i + 6] - b[i + 6]) ** 2, s7 + (a[i + 7] - b[i + 7]) ** 2,
        )  # fmt: skip
    total = ((s0 + s4) + (s2 + s6)) + ((s1 + s5) + (s3 + s7))
    for i in range(whole, len(a)):
        total += (a[i] - b[i]) * (a[i] - b[i])
    return total


@light_kernel
def subtract(a, b, out):  # type: ignore[no-untyped-def]
    """`out` becomes a - b, returns |a - b|^2; the reference is that of `dot`, block by block."""
    total = 0.0
    for low in range(0, len(a), BLOCK):
        high = min(low + BLOCK, len(a))
        p, q, o = a[low:high], b[low:high], out[low:high]
        for e in range(high - low):
            o[e] = p[e] - q[e]
        total += dot(o, o)
    return total


@light_kernel
def pairwise_steps(gram, weights, slopes, steps, stop):  # type: ignore[no-untyped-def]
    """Steps from the atom in use with the largest slope to that with the least of all, weights and
    slopes in place; returns how many were taken. Each makes three passes without branches, for
    slopes, for the extreme ones in two halves, and for the first atoms that tie with these.

    Reference: `naive_steps` in tests/test_projection.py.
    """
    margin, step, i, j, count = TIE * stop, 0.0, 0, 0, len(weights)
    half, rest = (count + 1) // 2, count // 2
    for taken in range(steps + 1):
        for q in range(count):
            slopes[q] += step * (gram[i, q] - gram[j, q])
        low, least, high, most = np.inf, np.inf, -np.inf, -np.inf
        for q in range(half):
            a, b = slopes[q], slopes[rest + q]
            low = a if a < low else low
            least = b if b < least else least
            a = a if weights[q] > 0.0 else -np.inf
            b = b if weights[rest + q] > 0.0 else -np.inf
            high = a if a > high else high
            most = b if b > most else most
        low, high = min(low, least), max(high, most)
        if not high - low > stop or taken == steps:
            return taken
        i = j = count
        for q in range(count):
            first = q if slopes[q] <= low + margin else count
            i = first if first < i else i
            first = q if slopes[q] >= high - margin else count
            first = first if weights[q] > 0.0 else count
            j = first if first < j else j
        gap = slopes[j] - slopes[i]
        length2, step = gram[i, i] - 2.0 * gram[i, j] + gram[j, j], weights[j]
        if gap < step * length2:
            step = gap / length2
        weights[j] = weights[j] - step
        weights[i] += step
    return steps


@light_kernel
def rescale(weights):  # type: ignore[no-untyped-def]
    """Tiny weights to 0, the rest to sum 1, in place; returns how many these are.

    Reference: a division by the sum, in tests/test_projection.py.
    """
    total, used = 0.0, 0
    for q in range(len(weights)):
        if weights[q] > DROP:
            total += weights[q]
            used += 1
        else:
            weights[q] = 0.0
    for q in range(len(weights)):
        weights[q] /= total
    return used


@light_kernel
def correct_from(rows, gram, weights, x, y, r, slopes, steps, stop):  # type: ignore[no-untyped-def]
    """Corrective steps towards y on a sparse table, weights in place, from x, their point, in
    place; r, which is x - y, too, and `slopes` become those of all atoms. If weights stay, so do x
    and r.

    Returns |x - y|^2 and how many atoms are in use. Reference: `corrected` of
    projection/search.py.
    """
    starts, indices, values = rows
    first, used, tiny = first_is_whole(starts, indices, len(r)), 0, 0
    if first == 1:
        slopes[0] = dot(values[: len(r)], r)
    sparse_inner(starts[first:], indices, values, r, slopes[first:])
    taken = pairwise_steps(gram, weights, slopes, steps, stop)
    for q in range(len(weights)):
        used += weights[q] > 0.0
        tiny += 0.0 < weights[q] <= DROP
    if taken == 0 and tiny == 0:
        return dot(r, r), used
    used = rescale(weights)
    if first == 1 and weights[0] > 0.0:
        for e in range(len(x)):
            x[e] = weights[0] * values[e]
    else:
        fill(x, 0.0)
    sparse_combine(starts[first:], indices, values, weights[first:], x)
    return subtract(x, y, r), used


@light_kernel
def on_a_grid(r, grain):  # type: ignore[no-untyped-def]
    """r rounded to multiples of a power of 2, at most `grain`, in place: sums of these are exact,
    so vertices that tie do so to the last bit, and the oracle's rule decides, not rounding.
    Halfspaces are those of the rounded direction, so projections keep their guarantee.

    Reference: `numpy.rint`, in tests/test_rounds.py.
    """
    if not grain > 0.0:  # a set of one point
        return
    whole = math.ldexp(1.5, math.frexp(grain)[1] + 51)  # one more has no smaller digits
    for e in range(len(r)):
        r[e] = (r[e] + whole) - whole


ROW, DATA = np.zeros(1), frozen(np.zeros(1, np.uint8))
# That of a set, whose data are bytes: oracle(address, d, data, indices, values).
oracle = Indirect(int, ROW, DATA, np.zeros(1, np.int32), ROW)


@light_kernel
def nearest_member(  # type: ignore[no-untyped-def]
    address, rows, gram, filled, weights, x, y, kernel_data, answer, work, numbers, at
):
    """A member near y from the active set of x, in place, as projection/active.py says, by the
    oracle at this address; rows are appended to the table while there is room and no other state
    has appended any.

    `weights` has room for more rows than there are; `filled` is how many the table has. `answer` is
    (indices, values) for the oracle to fill; `work` (r, zeros, slopes), where r is kept between
    calls that belong together; `numbers` (tolerance, steps, stop, margin), where candidates whose
    slopes differ by less than `margin` times |x - y| tie, and go to the first row. `at` holds where
    it is, and what it found: see the names above. Comes back with DONE, or with NO_ROOM,
    TABLE_TAKEN for a vertex that waits in `answer`, to go on where it was; with BAD_ORACLE where an
    answer is worse than x. Reference: `ActiveSet.nearest` through `answer`, in
    tests/test_projection.py.
    """
    starts, columns, entries = rows
    indices, values = answer
    r, zeros, slopes = work
    tol, steps, stop, margin = numbers
    count = int(at[COUNT])
    if at[READY] == 0.0:
        subtract(x, y, r)
    at[READY] = 1.0
    while True:
        if at[WAITING] > 0.0:
            size, step = int(at[WAITING]) - 1, at[STEP]
            if count < filled:
                return TABLE_TAKEN
            if count == len(gram) or starts[count] + size > len(columns):
                return NO_ROOM
            starts[count + 1] = starts[count] + size
            copy_to(indices[:size], columns[starts[count] :])
            copy_to(values[:size], entries[starts[count] :])
            sparse_multiply(starts, columns, entries, gram, count, zeros)
            weights[count] = step
            count += 1
            filled = count
            at[COUNT], at[WAITING] = count, 0.0
        distance2, used = correct_from(
            rows, gram, weights[:count], x, y, r, slopes[:count], int(steps), stop
        )
        at[DISTANCE2], at[USED] = distance2, used
        if at[LAST] > 0.0 or distance2 <= tol or at[CALLS] >= at[BUDGET]:
            return DONE
        at_x, x2, at_v, x_v, v2 = 0.0, 0.0, 0.0, 0.0, 0.0
        for low in range(0, len(x), BLOCK):
            d, own = r[low : low + BLOCK], x[low : low + BLOCK]
            on_a_grid(d, min(GRAIN * math.sqrt(distance2), margin))
            at_x += dot(d, own)
            x2 += dot(own, own)
        size = oracle(address, r, kernel_data, indices, values)
        at[CALLS] += 1.0
        for p in range(size):
            at_v += values[p] * r[indices[p]]
            x_v += values[p] * x[indices[p]]
            v2 += values[p] * values[p]
        drop, length2 = at_x - at_v, max(0.0, x2 - 2.0 * x_v + v2)
        if not drop >= -_ROUNDING * math.sqrt(distance2 * (x2 + length2)):
            at[WAITING] = size + 1
            return BAD_ORACLE
        gap = max(drop, 0.0)
        row, allowed = -1, at_v + margin * math.sqrt(distance2)
        for q in range(count):
            if slopes[q] <= allowed and starts[q + 1] - starts[q] <= len(indices):
                slope = row_product(rows, q, r)  # idle atoms that took no part have old ones
                if slope <= allowed:
                    row, drop = q, at_x - slope
                    break
        if row >= 0:
            start, size, x_v, v2 = starts[row], starts[row + 1] - starts[row], 0.0, 0.0
            for p in range(size):
                indices[p], values[p] = columns[start + p], entries[start + p]
                x_v += values[p] * x[indices[p]]
                v2 += values[p] * values[p]
            length2 = max(0.0, x2 - 2.0 * x_v + v2)
        last = gap * gap <= tol * distance2 or at[CALLS] >= at[BUDGET]
        shift = max(0.0, 1.0 - gap / distance2) if last else 0.0
        step = max(0.0, (1.0 - shift) * drop / length2) if length2 > 0.0 else 0.0
        step = 1.0 if step > 1.0 - DROP else step  # a vertex itself
        for e in range(len(x)):
            y[e] += shift * r[e]
            x[e] *= 1.0 - step
            r[e] = x[e] - y[e]
        for p in range(size):
            x[indices[p]] += step * values[p]
            r[indices[p]] = x[indices[p]] - y[indices[p]]
        for q in range(count):
            weights[q] *= 1.0 - step
        at[LAST] = 1.0 if last else 0.0
        if row < 0:
            row = find_row(rows, count, indices[:size], values[:size])
        if row < 0:
            at[WAITING], at[STEP] = size + 1, step
        else:
            weights[row] += step


@light_kernel
def find_row(rows, count, indices, values):  # type: ignore[no-untyped-def]
    """The first of `count` rows that holds just these entries, or -1.

    Reference: rows written by hand, in tests/test_projection.py.
    """
    for row in range(count):
        if is_row(rows, row, indices, values):
            return row
    return -1


@light_kernel
def is_row(rows, row, indices, values):  # type: ignore[no-untyped-def]
    """Whether a row holds just these entries. Reference: that of `find_row`."""
    starts, columns, entries = rows
    start = starts[row]
    if starts[row + 1] - start != len(indices):
        return False
    for k in range(len(indices)):
        if columns[start + k] != indices[k] or entries[start + k] != values[k]:
            return False
    return True


@light_kernel
def row_product(rows, row, d):  # type: ignore[no-untyped-def]
    """<a_row, d>. Reference: `naive_projection` in tests/test_factored.py."""
    starts, indices, values = rows
    total = 0.0
    for p in range(starts[row], starts[row + 1]):
        total += values[p] * d[indices[p]]
    return total


@kernel
def idle_rows(weights, count):  # type: ignore[no-untyped-def]
    """How many of the first `count` rows have no weight in any point. Reference:
    `Pool.tidied`.
    """
    idle = 0
    for q in range(count):
        there = False
        for i in range(len(weights)):
            there = there or weights[i, q] > 0.0
        idle += not there
    return idle


# --- Products, factor by factor -------------------------------------------------------------------
#
# A projection on a product, factor by factor: corrective steps among the atoms of each, and the
# steps that one answer of the product's oracle allows them all.
#
# Rows of factor b are members[begins[b]], ... up to begins[b + 1]; all of their entries are from
# places[b] to places[b + 1] - 1. Weights are those of the first len(weights) rows and add up to 1
# within each factor. Stages of a factor: CLOSED, it is done; OPEN, the oracle may be asked; ENDING,
# corrective steps remain.

CLOSED, OPEN, ENDING = 0, 1, 2


@kernel
def combine_rows(rows, own, weights, begin, end, x, y, r):  # type: ignore[no-untyped-def]
    """The sum of these rows by their weights in a factor's entries of x, and x - y there in r;
    returns |x - y|^2.
    """
    starts, indices, values = rows
    fill(x[begin:end], 0.0)
    for n in range(len(own)):
        if weights[n] != 0.0:
            for p in range(starts[own[n]], starts[own[n] + 1]):
                x[indices[p]] += weights[n] * values[p]
    for e in range(begin, end):
        r[e] = x[e] - y[e]
    return dot(r[begin:end], r[begin:end])


@kernel
def steps_in_factor(  # type: ignore[no-untyped-def]
    rows, own, weights, slopes, gram, r, zeros, steps, stop
):
    """Pairwise steps among a factor's rows, weights in place, if their gap is above `stop`; r is
    x - y. The products of all of them are made in `gram`; `zeros` is as it was afterwards.
    """
    starts, indices, values = rows
    least, most = np.inf, -np.inf
    for n in range(len(own)):
        slopes[n] = row_product(rows, own[n], r)
        least = min(least, slopes[n])
        most = max(most, slopes[n]) if weights[n] > 0.0 else most
    if most - least <= stop:
        return
    for n in range(len(own)):
        for p in range(starts[own[n]], starts[own[n] + 1]):
            zeros[indices[p]] = values[p]
        for m in range(n + 1):
            gram[n, m] = gram[m, n] = row_product(rows, own[m], zeros)
        for p in range(starts[own[n]], starts[own[n] + 1]):
            zeros[indices[p]] = 0.0
    pairwise_steps(gram, weights, slopes, steps, stop)


@kernel
def factored_correct(  # type: ignore[no-untyped-def]
    rows, members, begins, places, weights, x, y, r, stages, tols, distances2, steps, share
):
    """Corrective steps towards y in every factor that is not closed, until its pairwise gap is at
    most `share` of its tolerance; weights, x and |x - y|^2 by factor in place.

    Factors that are near enough, or were ending, are closed; r becomes x - y where they are open
    and 0 elsewhere. Returns how many are open.
    """
    most, still_open, zeros = 0, 0, np.zeros(len(x))
    for b in range(len(tols)):
        most = max(most, begins[b + 1] - begins[b])
    w, slopes = np.empty(most), np.empty(most)
    gram = np.empty((most, most))
    for b in range(len(tols)):
        if stages[b] == CLOSED:
            continue
        own, begin, end = members[begins[b] : begins[b + 1]], places[b], places[b + 1]
        mine = w[: len(own)]
        for n in range(len(own)):
            mine[n] = weights[own[n]]
        combine_rows(rows, own, mine, begin, end, x, y, r)
        stop = share * tols[b]
        steps_in_factor(rows, own, mine, slopes[: len(own)], gram, r, zeros, steps, stop)
        rescale(mine)
        for n in range(len(own)):
            weights[own[n]] = mine[n]
        distances2[b] = combine_rows(rows, own, mine, begin, end, x, y, r)
        if stages[b] == ENDING or distances2[b] <= tols[b]:
            stages[b] = CLOSED
            fill(r[begin:end], 0.0)
        else:
            still_open += 1
    return still_open


@kernel
def factored_step(  # type: ignore[no-untyped-def]
    rows, owners, members, begins, places, count, weights, x, y, r, stages, tols, distances2,
    indices, values, cuts, error, over,
):  # fmt: skip
    """The gap, shift and line-search step of every open factor for one answer of the oracle to r,
    whose entries in factor b are those from cuts[b] up to cuts[b + 1].

    The table has room for a row of each open factor after the first `count`, `weights` too. A
    factor whose gap is small enough, or all of them when the budget is `over`, moves y on its
    half-space and ends. Returns how many rows there are now, whether y moved, and the factor in
    which the answer is worse than x, or -1.
    """
    starts, columns, entries = rows
    moved = False
    for b in range(len(tols)):
        if stages[b] != OPEN:
            continue
        begin, end, distance2 = places[b], places[b + 1], distances2[b]
        at_x, x2 = dot(r[begin:end], x[begin:end]), dot(x[begin:end], x[begin:end])
        own_indices, own_values = indices[cuts[b] : cuts[b + 1]], values[cuts[b] : cuts[b + 1]]
        at_v, x_v, v2 = 0.0, 0.0, 0.0
        for k in range(len(own_indices)):
            at_v += own_values[k] * r[own_indices[k]]
            x_v += own_values[k] * x[own_indices[k]]
            v2 += own_values[k] * own_values[k]
        drop, length2 = at_x - at_v, max(0.0, x2 - 2.0 * x_v + v2)
        if not drop + error >= -_ROUNDING * math.sqrt(distance2 * (x2 + length2)):
            return count, moved, b
        gap = max(drop + error, 0.0)
        shift = 0.0
        if over or gap * gap <= tols[b] * distance2:
            stages[b] = ENDING
            shift = max(0.0, 1.0 - gap / distance2)
            moved = moved or shift > 0.0
        step = max(0.0, (1.0 - shift) * drop / length2) if length2 > 0.0 else 0.0
        step = 1.0 if step > 1.0 - DROP else step  # a vertex itself
        for e in range(begin, end):
            y[e] += shift * r[e]
        found = -1
        for n in range(begins[b], begins[b + 1]):
            weights[members[n]] *= 1.0 - step
            if found < 0 and is_row(rows, members[n], own_indices, own_values):
                found = members[n]
        if found < 0:
            found, start = count, starts[count]
            for k in range(len(own_indices)):
                columns[start + k], entries[start + k] = own_indices[k], own_values[k]
            starts[count + 1], owners[count] = start + len(own_indices), b
            weights[count] = 0.0
            count += 1
        weights[found] += step
    return count, moved, -1
