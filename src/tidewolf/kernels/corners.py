"""Rounds of a descent on the simplex in two passes over its entries, however many there are.

Every vertex is a corner, `total` at one entry, and x starts at the center, c at each: so

    x_e = w_0 c + total w_q  where row q of the table is the corner of e,  w_0 c elsewhere,

and no point is ever written down but y. The rows ("listed" entries) have their y, x and weights in
arrays of their own. With d the loss gradient less a number near its mean, a that of the limits,
u = y - c, what a round needs is a function of few sums:

    first pass    sum d, d^2, u, u^2, d u            |g|^2, <g, x - y>, give-back, ball
    second pass   y <- c + share (u - rate d~ - limit_rate a~) and, of entries that are not listed,
                  max y (the oracle's answer), sum r, r^2 with r = y - w_0 c (|x - y|^2)

where ~ takes the mean away. <a_i, a_j> = total^2 [i = j], <center, a_j> = total c: corrective steps
need no matrix of products. The last step of a round takes y to (1 - shift) y + shift x: a scale
and an offset for all that are not listed, which the next pass applies. Sums go over blocks of
`BLOCK` entries, eight at a time, so their order is fixed.

`corner_rounds` plays as kernels/rounds.py does, comes back as that does, and with OTHER where the
table has rows of another kind.
"""

from __future__ import annotations

import math

import numpy as np

from tidewolf.core.jit import kernel
from tidewolf.kernels.active_set import GRAIN, TIE, dot, rescale
from tidewolf.kernels.evaluate import CAPACITY, GIVEN, LINEAR, MOST, UNLIMITED, evaluate
from tidewolf.kernels.rounds import (
    ALL_CALLS,
    APART,
    BROKEN,
    CALLS_EARNED,
    CHURN,
    CORRECTIVE_GAP,
    CORRECTIVE_STEPS,
    DIMENSION,
    DISTANCE,
    ENOUGH,
    EXPONENT,
    FIRST,
    INFEASIBILITY,
    INVERSE_STEP,
    KEEP,
    LARGEST,
    LIMIT_AT,
    LIMIT_MOST,
    LOOK,
    LOSS,
    LOSS_AT,
    LOSS_MOST,
    MARGIN,
    MOVED,
    MOVES,
    ORACLE_BUDGET,
    PART,
    PLAYED,
    RADIUS,
    RECORDS,
    SPARE,
    SPENT,
    SQUARES,
    STORED,
    STRIDE,
    TOLERANCE2,
    UNUSUAL,
    UPDATES,
    VALUE,
    WORST_CENTER,
    WORST_DISTANCE,
    WORST_TOLERANCE,
    count_limits,
    slope_of,
    step_of,
    vanishes,
    weighed,
)
from tidewolf.kernels.simplices import added

BLOCK = 1024
"""Entries that a pass looks at together: a few such blocks stay near the processor."""
OTHER = 14
"""What `corner_rounds` comes back with where the table has other rows than corners and the center.
"""

WEIGHT, INFEASIBLE_ITERATE, EARLIER, POINT, APART_BY, SLOPE, PLAYED_LAST, SUMMED = range(8)
ROW_NUMBERS = 8
"""What a row has: its weight; y at its entry, that before the last shift, x, x - y; <row, x - y>;
the x that was played last; the sum of x over the rounds of a part.
"""
ENTRY, NEXT, CHOSEN = range(3)
ROW_PLACES = 3
"""Its entry (-1: the center), the next row in the same block, a place for choices."""
HIGHEST, SUM, SUM_OF_SQUARES = range(3)
"""What is known of y - w_0 c in a block, of entries that are not listed."""


@kernel
def largest(a):  # type: ignore[no-untyped-def]
    """The largest entry, in eight comparisons at a time. Its naive twin in the tests is `max`."""
    whole = len(a) - len(a) % 8
    m0, m1, m2, m3 = -np.inf, -np.inf, -np.inf, -np.inf
    m4, m5, m6, m7 = -np.inf, -np.inf, -np.inf, -np.inf
    for i in range(0, whole, 8):
        m0 = a[i] if a[i] > m0 else m0
        m1 = a[i + 1] if a[i + 1] > m1 else m1
        m2 = a[i + 2] if a[i + 2] > m2 else m2
        m3 = a[i + 3] if a[i + 3] > m3 else m3
        m4 = a[i + 4] if a[i + 4] > m4 else m4
        m5 = a[i + 5] if a[i + 5] > m5 else m5
        m6 = a[i + 6] if a[i + 6] > m6 else m6
        m7 = a[i + 7] if a[i + 7] > m7 else m7
    most = max(max(max(m0, m1), max(m2, m3)), max(max(m4, m5), max(m6, m7)))
    for i in range(whole, len(a)):
        most = a[i] if a[i] > most else most
    return most


@kernel
def listed(  # type: ignore[no-untyped-def]
    starts, indices, values, count, total, c, pos, heads, places
):
    """Which row is the center, -1 where none is, -2 where some row is no corner, or one of two that
    are the same; rows find their block, entries their row. Its naive twin in tests/test_corners.py
    is a dictionary.
    """
    n, middle = len(pos), -1
    for i in range(len(heads)):
        heads[i] = -1
    for q in range(count):
        begin = starts[q]
        if starts[q + 1] - begin == 1 and values[begin] == total and pos[indices[begin]] < 0:
            link(q, indices[begin], pos, heads, places)
            continue
        other = starts[q + 1] - begin != n or middle >= 0
        if not other:
            for e in range(n):
                other |= indices[begin + e] != e or values[begin + e] != c
            middle, places[ENTRY, q], places[NEXT, q] = q, -1, -1
        if other:
            unlink(q, pos, places)
            return -2
    return middle


@kernel
def link(q, e, pos, heads, places):  # type: ignore[no-untyped-def]
    """Row q is the corner of entry e; the twin is that of `listed`."""
    places[ENTRY, q], places[NEXT, q] = e, heads[e // BLOCK]
    heads[e // BLOCK] = pos[e] = q


@kernel
def unlink(count, pos, places):  # type: ignore[no-untyped-def]
    """Entries forget the first `count` rows; the twin is that of `listed`."""
    for q in range(count):
        if places[ENTRY, q] >= 0:
            pos[places[ENTRY, q]] = -1


@kernel
def infeasible_iterates(  # type: ignore[no-untyped-def]
    y, scale, offset, lo, head, places, rows, v
):
    """y in the block that begins at `lo`, whose first listed row is `head`. The naive twin of what
    is done block by block is `rounds` of rounds.py, in tests/test_corners.py.
    """
    for j in range(len(v)):
        v[j] = scale * y[lo + j] + offset
    q = head
    while q >= 0:
        v[places[ENTRY, q] - lo] = rows[INFEASIBLE_ITERATE, q]
        q = places[NEXT, q]


@kernel
def moments(  # type: ignore[no-untyped-def]
    a, shift, y, scale, offset, c, heads, places, rows, scratch
):
    """The sums of d = a - shift, d^2, u = y - c, u^2 and d u; the twin is that of
    `infeasible_iterates`.
    """
    n, sd, sdd, su, suu, sdu = len(y), 0.0, 0.0, 0.0, 0.0, 0.0
    for block in range(len(heads)):
        lo = block * BLOCK
        size = min(BLOCK, n - lo)
        u, d = scratch[0, :size], scratch[1, :size]
        infeasible_iterates(y, scale, offset, lo, heads[block], places, rows, u)
        for j in range(size):
            u[j] -= c
            d[j] = a[lo + j] - shift
        sd += added(d)
        sdd += dot(d, d)
        su += added(u)
        suu += dot(u, u)
        sdu += dot(d, u)
    return sd, sdd, su, suu, sdu


@kernel
def together(a, a_shift, b, b_shift, scratch):  # type: ignore[no-untyped-def]
    """<a - a_shift, b - b_shift>; the twin is that of `infeasible_iterates`."""
    n, total = len(a), 0.0
    for lo in range(0, n, BLOCK):
        size = min(BLOCK, n - lo)
        u, d = scratch[0, :size], scratch[1, :size]
        for j in range(size):
            u[j] = a[lo + j] - a_shift
            d[j] = b[lo + j] - b_shift
        total += dot(u, d)
    return total


@kernel
def spare_capacity(capacity, base, lo, head, places, rows, p):  # type: ignore[no-untyped-def]
    """x - capacity in a block; the twin is that of `infeasible_iterates`."""
    for j in range(len(p)):
        p[j] = base - capacity[lo + j]
    q = head
    while q >= 0:
        e = places[ENTRY, q]
        p[e - lo] = rows[POINT, q] - capacity[e]
        q = places[NEXT, q]


@kernel
def fullest(  # type: ignore[no-untyped-def]
    capacity, least, base, heads, places, rows, scratch, highs
):
    """The largest x_i - capacity_i, no number where `evaluate` has none; its first entry; the
    largest of |x_i - capacity_i|. The twin is that of `infeasible_iterates`.
    """
    n, most, at, size_of, strange = len(capacity), -np.inf, 0, 0.0, 0
    for block in range(len(heads)):
        lo = block * BLOCK
        size = min(BLOCK, n - lo)
        p, back = scratch[0, :size], scratch[1, :size]
        spare_capacity(capacity, base, lo, heads[block], places, rows, p)
        for j in range(size):
            strange += not (abs(p[j]) <= MOST and capacity[lo + j] >= least)
            back[j] = -p[j]
        highs[block] = largest(p)
        size_of = max(size_of, max(highs[block], largest(back)))
        if highs[block] > most:
            most, at = highs[block], block
    lo = at * BLOCK
    p = scratch[0, : min(BLOCK, n - lo)]
    spare_capacity(capacity, base, lo, heads[at], places, rows, p)
    first = 0
    while first + 1 < len(p) and p[first] != most:
        first += 1
    return most if strange == 0 else np.nan, lo + first, size_of


@kernel
def count_capacities(  # type: ignore[no-untyped-def]
    t, capacity, base, size_of, heads, places, rows, scratch, highs, each, when
):
    """What its twin `count_limits` of rounds.py does, where some entry of a block is above its
    capacity; tests/test_corners.py compares whole runs.
    """
    n = len(capacity)
    for block in range(len(heads)):
        if highs[block] > 0.0:
            lo = block * BLOCK
            p = scratch[0, : min(BLOCK, n - lo)]
            spare_capacity(capacity, base, lo, heads[block], places, rows, p)
            for j in range(len(p)):
                if p[j] > 0.0:
                    i = lo + j
                    each[0, i] += p[j]
                    if p[j] > BROKEN * size_of:
                        when[0, i] += 1
                        if when[2, i] < 0:
                            when[2, i] = t
                        when[3, i] = t
                        if p[j] > each[1, i]:
                            each[1, i], when[1, i] = p[j], t


@kernel
def unit_entry(a):  # type: ignore[no-untyped-def]
    """Where the one entry of a unit vector is, -1 where a is none; its naive twin in
    tests/test_corners.py is a comparison with all of them.
    """
    at = -1
    for e in range(len(a)):
        if a[e] != 0.0:
            if at >= 0 or a[e] != 1.0:
                return -1
            at = e
    return at


@kernel
def survey(y, base, block, heads, places, scratch, known):  # type: ignore[no-untyped-def]
    """What is known of a block of y; the twin is that of `infeasible_iterates`."""
    lo = block * BLOCK
    r = scratch[1, : min(BLOCK, len(y) - lo)]
    for j in range(len(r)):
        r[j] = y[lo + j] - base
    q = heads[block]
    while q >= 0:
        r[places[ENTRY, q] - lo] = -np.inf
        q = places[NEXT, q]
    known[HIGHEST, block] = largest(r)
    q = heads[block]
    while q >= 0:
        r[places[ENTRY, q] - lo] = 0.0
        q = places[NEXT, q]
    known[SUM, block], known[SUM_OF_SQUARES, block] = added(r), dot(r, r)


@kernel
def descend_in_blocks(  # type: ignore[no-untyped-def]
    y, scale, offset, c, cost, shift, rate, a, a_shift, single, limit_rate, lift, share, base,
    heads, places, rows, scratch, known,
):  # fmt: skip
    """The second pass: y moves, and what is known of its blocks is updated; the twin is that of
    `infeasible_iterates`.
    """
    n = len(y)
    for block in range(len(heads)):
        lo = block * BLOCK
        size = min(BLOCK, n - lo)
        z = scratch[0, :size]
        infeasible_iterates(y, scale, offset, lo, heads[block], places, rows, z)
        for j in range(size):
            z[j] = z[j] - rate * (cost[lo + j] - shift) + lift
        if limit_rate != 0.0:
            if single < 0:
                for j in range(size):
                    z[j] -= limit_rate * (a[lo + j] - a_shift)
            elif lo <= single < lo + size:
                z[single - lo] -= limit_rate
        if share != 1.0:
            for j in range(size):
                z[j] = c + share * (z[j] - c)
        for j in range(size):
            y[lo + j] = z[j]
        q = heads[block]
        while q >= 0:
            rows[INFEASIBLE_ITERATE, q] = rows[EARLIER, q] = z[places[ENTRY, q] - lo]
            q = places[NEXT, q]
        survey(y, base, block, heads, places, scratch, known)


@kernel
def corner_steps(  # type: ignore[no-untyped-def]
    rows, places, count, middle, total, c, n, steps, stop
):
    """As `pairwise_steps` of active_set.py, its naive twin, without its matrix."""
    weights, slopes, chosen = rows[WEIGHT], rows[SLOPE], places[CHOSEN]
    average = 0.0
    for q in range(count):
        average += weights[q] * slopes[q]
    among = 0
    for q in range(count):
        chosen[among] = q
        among += weights[q] > 0.0 or slopes[q] < average
    margin, own, across, center2 = TIE * stop, total * total, total * c, n * c * c
    for taken in range(steps + 1):
        i, least = 0, np.inf
        j, most = 0, -np.inf
        for k in range(among):
            q = chosen[k]
            slope = slopes[q]
            lower = slope < least - margin
            i = q if lower else i
            least = slope if lower else least
            slope = slope if weights[q] > 0.0 else -np.inf
            higher = slope > most + margin
            j = q if higher else j
            most = slope if higher else most
        gap = most - least
        if gap <= stop or taken == steps:
            return taken
        central = i == middle or j == middle
        length2 = own - 2.0 * across + center2 if central else 2.0 * own
        step = weights[j]
        if gap < step * length2:
            step = gap / length2
        weights[j] = weights[j] - step
        weights[i] += step
        if i == middle:
            for k in range(among):
                slopes[chosen[k]] += step * across
            slopes[i] += step * (center2 - 2.0 * across)
            slopes[j] -= step * own
        elif j == middle:
            for k in range(among):
                slopes[chosen[k]] -= step * across
            slopes[j] -= step * (center2 - 2.0 * across)
            slopes[i] += step * own
        else:
            slopes[i] += step * own
            slopes[j] -= step * own
    return steps


@kernel
def first_near(  # type: ignore[no-untyped-def]
    most, high, y, base, middle, count, pos, heads, places, rows, known
):
    """The first entry where x - y is at most `most`, and its row, or -1: so rounding does not
    choose between entries that tie. Blocks whose y is below `high` hold none that is not listed.
    Its naive twin is the oracle of the set, on the grid of `on_a_grid`.
    """
    entry, row, n = len(y), -1, len(y)
    for q in range(count):
        if q != middle and rows[APART_BY, q] <= most and places[ENTRY, q] < entry:
            entry, row = places[ENTRY, q], q
    for block in range(len(heads)):
        if known[HIGHEST, block] >= high and block * BLOCK < entry:
            for e in range(block * BLOCK, min(n, (block + 1) * BLOCK, entry)):
                if pos[e] < 0 and base - y[e] <= most:
                    return e, -1
    return entry, row


@kernel
def mix(rows, places, count, middle, total, c):  # type: ignore[no-untyped-def]
    """x and x - y at listed entries, from the weights; returns x elsewhere. The twin is that of
    `infeasible_iterates`.
    """
    base = rows[WEIGHT, middle] * c if middle >= 0 else 0.0
    for q in range(count):
        rows[POINT, q] = base + rows[WEIGHT, q] * total
        rows[APART_BY, q] = rows[POINT, q] - rows[INFEASIBLE_ITERATE, q]
    if middle >= 0:
        rows[POINT, middle] = rows[APART_BY, middle] = 0.0
    return base


@kernel
def spread(x, base, rows, which, places, count):  # type: ignore[no-untyped-def]
    """A point written down; the twin is that of `infeasible_iterates`."""
    for e in range(len(x)):
        x[e] = base
    for q in range(count):
        if places[ENTRY, q] >= 0:
            x[places[ENTRY, q]] = rows[which, q]


@kernel
def moved_elsewhere(last, base, pos):  # type: ignore[no-untyped-def]
    """The sum of |base - last| over entries that are not listed, where most of them are the same;
    its naive twin in tests/test_corners.py is that sum.
    """
    low, same, others = np.inf, 0, 0.0
    for e in range(len(last)):
        if pos[e] < 0 and last[e] < low:
            low = last[e]
    for e in range(len(last)):
        if pos[e] < 0:
            if last[e] == low:
                same += 1
            else:
                others += abs(base - last[e])
    return same * abs(base - low) + others if same > 0 else 0.0


@kernel
def is_even(summed, pos):  # type: ignore[no-untyped-def]
    """Whether all entries that are not listed are the same, and the first of them; its naive twin
    in tests/test_corners.py is a set of them.
    """
    first = 0
    while first < len(summed) and pos[first] >= 0:
        first += 1
    if first == len(summed):
        return True, 0.0
    for e in range(first, len(summed)):
        if summed[e] != summed[first] and pos[e] < 0:
            return False, 0.0
    return True, summed[first]


@kernel
def corner_rounds(  # type: ignore[no-untyped-def]
    first, k, settings, s, x, y, before, gradient_sums, weights, total, center, starts, indices,
    values, loss_kind, loss_A, loss_b, loss_count, limit_kind, limit_A, limit_b, limit_count, pos,
    heads, known, highs, scratch, buffers, pieces, columns, marks, last, summed, means, ends,
    points, each, when, samples,
):  # fmt: skip
    """Play rounds `first` to `first + k - 1`, in place; returns how many are done, a code, how many
    rows have weight and how many there are, and what is known of all rows: those past the first
    were not there.

    Arguments are those of `rounds` in rounds.py, its naive twin in tests/test_corners.py; but of a
    sampled projection `samples` gets the first number alone, what certificate.py makes of the three
    points: max_{z in K} |y - z|^2 - |aimed - z|^2, over the radius.
    """
    n, c, count = len(x), center[0], len(weights)
    room = max(count, min(n + 1, 2 * count + 64))
    rows, places = np.zeros((ROW_NUMBERS, room)), np.zeros((ROW_PLACES, room), np.int64)
    middle = listed(starts, indices, values, count, total, c, pos, heads, places)
    if middle == -2:
        return 0, OTHER, 0, count, rows, places
    records = settings[RECORDS] > 0.0
    for q in range(count):
        rows[WEIGHT, q] = weights[q]
        if q != middle:
            rows[INFEASIBLE_ITERATE, q] = y[places[ENTRY, q]]
            if records:
                rows[PLAYED_LAST, q] = last[places[ENTRY, q]]
                rows[SUMMED, q] = summed[places[ENTRY, q]]
    scale, offset, played_base, used = 1.0, 0.0, 0.0, 0
    even, sum_base = is_even(summed, pos) if records else (True, 0.0)
    tol, radius, dimension = settings[TOLERANCE2], settings[RADIUS], int(settings[DIMENSION])
    stop, slopes = CORRECTIVE_GAP * tol, np.zeros(2)
    corners = count - (middle >= 0)
    base = mix(rows, places, count, middle, total, c)
    done, code = k, PLAYED
    for i in range(k):
        t = first + i
        evaluated = loss_kind != LINEAR and loss_kind != GIVEN
        evaluated_limit = limit_kind != CAPACITY and limit_kind != UNLIMITED
        if evaluated or (evaluated_limit and limit_kind != GIVEN):
            spread(x, base, rows, POINT, places, count)
        cost, loss = loss_A[t] if not evaluated else buffers[0], 0.0
        if evaluated:
            loss = evaluate(loss_kind, loss_A, loss_b, loss_count, t, x, pieces, buffers[0])
            cost = buffers[0]
        shift = added(cost[:BLOCK]) / min(BLOCK, n)
        sd, sdd, su, suu, sdu = moments(
            cost, shift, y, scale, offset, c, heads, places, rows, scratch
        )
        if loss_kind == LINEAR:
            for q in range(count):
                if q != middle:
                    loss += total * rows[WEIGHT, q] * cost[places[ENTRY, q]]
            if base != 0.0:
                loss += base * (sd + n * shift)
        elif loss_kind == GIVEN:
            loss = loss_b[t]
        value, single, size_of = -1.0, -1, 0.0
        if limit_kind == CAPACITY:
            value, single, size_of = fullest(
                limit_A[t], limit_b[0], base, heads, places, rows, scratch, highs
            )
        elif evaluated_limit:
            value = evaluate(limit_kind, limit_A, limit_b, limit_count, t, x, pieces, buffers[1])
            single = unit_entry(buffers[1]) if value > 0.0 else -1
        if not (abs(loss) <= MOST and abs(value) <= MOST):
            done, code = i, UNUSUAL
            break
        mean, limit_norm = sd / n, 0.0
        norm2, d2, du, dx = (
            sdd + shift * (2.0 * sd + n * shift),
            sdd - sd * mean,
            sdu - mean * su,
            0.0,
        )
        slopes[0] = slope_of(max(norm2, sdd - sd * mean), max(d2, 0.0), settings[LOSS_MOST], radius)
        if norm2 == 0.0 and not vanishes(cost):
            slopes[0] = -1.0
        flat = slopes[0] == 0.0
        for q in range(count):
            if q != middle:
                dx += total * rows[WEIGHT, q] * (cost[places[ENTRY, q]] - shift - mean)
        a_shift, a_mean, a2, ad, au, ax = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
        if value > 0.0:
            norm2 = 1.0
            if single >= 0:
                q, a_mean = pos[single], 1.0 / n
                v = rows[INFEASIBLE_ITERATE, q] if q >= 0 else scale * y[single] + offset
                a2 = 1.0 - a_mean
                ad, au = cost[single] - shift - mean, v - c - a_mean * su
                for p in range(count):
                    if p != middle:
                        own = total * rows[WEIGHT, p]
                        ax += own * (1.0 - a_mean) if p == q else -own * a_mean
            else:
                a = buffers[1]
                a_shift = added(a[:BLOCK]) / min(BLOCK, n)
                sa, saa, _, _, sau = moments(
                    a, a_shift, y, scale, offset, c, heads, places, rows, scratch
                )
                a_mean = sa / n
                norm2 = saa + a_shift * (2.0 * sa + n * a_shift)
                a2, au = max(saa - sa * a_mean, 0.0), sau - a_mean * su
                norm2 = max(norm2, a2)
                ad = together(a, a_shift, cost, shift, scratch) - a_mean * sd
                for q in range(count):
                    if q != middle:
                        own = total * rows[WEIGHT, q]
                        ax += own * (a[places[ENTRY, q]] - a_shift - a_mean)
            slopes[1] = slope_of(norm2, a2, settings[LIMIT_MOST], radius)
            if norm2 == 0.0 and not vanishes(buffers[1]):
                slopes[1] = -1.0
            limit_norm = math.sqrt(norm2)
        if slopes[0] < 0.0 or (value > 0.0 and slopes[1] < 0.0):
            done, code = i, UNUSUAL
            break
        columns[i, LOSS], columns[i, VALUE] = loss, value
        if records:
            now = t + int(settings[FIRST])
            columns[i, APART], columns[i, SPENT] = s[DISTANCE], 0.0
            if each.shape[1] > 0 and value > 0.0:
                if limit_kind == CAPACITY:
                    count_capacities(
                        now, limit_A[t], base, size_of, heads, places, rows, scratch, highs, each,
                        when,
                    )  # fmt: skip
                else:
                    count_limits(now, pieces[: each.shape[1]], each, when)
            moved, off = 0.0, (n - corners) * base - total
            for q in range(count):
                moved += abs(rows[POINT, q] - rows[PLAYED_LAST, q])
                off += rows[POINT, q]
                rows[PLAYED_LAST, q] = rows[POINT, q]
                rows[SUMMED, q] += rows[POINT, q]
            if i == 0:
                moved += moved_elsewhere(last, base, pos)
            elif n > corners:
                moved += (n - corners) * abs(base - played_base) + 0.0
            columns[i, CHURN] = 0.5 * moved if now > 0 else 0.0
            played_base = base
            sum_base += base
            if base != 0.0 and not even:
                for e in range(n):
                    summed[e] += base
            part = int(marks[PART])
            if now + 1 == ends[part]:
                begin = ends[part - 1] if part else 0
                mean_base = sum_base / (now + 1 - begin)
                for e in range(n):
                    means[part, e] = mean_base if even else summed[e] / (now + 1 - begin)
                for q in range(count):
                    if q != middle:
                        means[part, places[ENTRY, q]] = rows[SUMMED, q] / (now + 1 - begin)
                    rows[SUMMED, q] = 0.0
                even, sum_base = True, 0.0
                marks[PART] += 1.0
            if not abs(off) <= marks[INFEASIBILITY]:
                marks[INFEASIBILITY] = abs(off)
            if len(points) > 0:
                spread(points[i], base, rows, POINT, places, count)
        exponent = s[EXPONENT]
        V, w, breach = weighed(s, settings, value, limit_norm, slopes)
        V = 0.0 if flat else V
        w = 0.0 if value > 0.0 and slopes[1] == 0.0 else w
        F, W = gradient_sums[0], gradient_sums[1]
        if not flat:
            s[LOSS_AT] += dx
            for e in range(n):
                F[e] += cost[e] - shift
        if s[EXPONENT] != exponent:
            unit = math.ldexp(1.0, int(exponent - s[EXPONENT]))
            s[SQUARES] *= unit * unit
            s[INVERSE_STEP] *= unit
            s[LARGEST] *= unit
            for e in range(n):
                W[e] *= unit
        if w > 0.0:
            s[LIMIT_AT] += w * ax
            if single >= 0:
                W[single] += w
            else:
                for e in range(n):
                    W[e] += w * (buffers[1, e] - a_shift)
        # products of weights and lengths, which are moderate where their squares are not
        d1, a1 = math.sqrt(d2), math.sqrt(a2)
        angle = ad / d1 / a1 if d1 > 0.0 and a1 > 0.0 else 0.0
        Vd, wa = V * d1, w * a1
        g2 = Vd * Vd + 2.0 * Vd * wa * angle + wa * wa
        rate, limit_rate, share = 0.0, 0.0, 1.0
        if g2 > 0.0:
            eta = step_of(s, settings, g2)
            back = 0.0
            if value > 0.0:
                past = -w * breach - (w * au - eta * wa * (Vd * angle + wa) - w * ax)
                penalty2 = wa * wa
                if past > 0.0 and penalty2 > 0.0:
                    back = (1.0 - settings[KEEP]) * min(eta, past / penalty2)
            rate, limit_rate = eta * V, (eta - back) * w
            along, limit_along = rate * d1, limit_rate * a1
            length2 = suu - 2.0 * (rate * du + limit_rate * au) + along * along
            length2 += limit_along * (2.0 * along * angle + limit_along)
            if length2 > radius * radius:
                share = radius / math.sqrt(length2)
        descend_in_blocks(
            y, scale, offset, c, cost, shift, rate, buffers[1], a_shift, single, limit_rate,
            rate * mean + limit_rate * a_mean, share, base, heads, places, rows, scratch, known,
        )  # fmt: skip
        scale, offset, foot = 1.0, 0.0, base
        r1, r2, from1, from2, from_foot = (
            added(known[SUM]),
            added(known[SUM_OF_SQUARES]),
            0.0,
            0.0,
            base,
        )
        s[ORACLE_BUDGET] += settings[CALLS_EARNED]
        calls, budget, last_call, exact = 0.0, math.floor(s[ORACLE_BUDGET] + 1e-9), False, True
        distance2 = 0.0
        while True:
            base = mix(rows, places, count, middle, total, c)
            left = n - corners
            at1 = r1 - left * (base - foot)
            sum_r = -at1
            for q in range(count):
                sum_r += rows[APART_BY, q]
                rows[SLOPE, q] = total * rows[APART_BY, q]
            if middle >= 0:
                rows[SLOPE, middle] = c * sum_r
            taken = corner_steps(rows, places, count, middle, total, c, n, CORRECTIVE_STEPS, stop)
            if taken == 0 and exact:
                used = 0
                for q in range(count):
                    used += rows[WEIGHT, q] > 0.0
            else:
                used = rescale(rows[WEIGHT, :count])
                base = mix(rows, places, count, middle, total, c)
            delta, exact = base - foot, True
            at1, at2 = r1 - left * delta, max(0.0, r2 - delta * (2.0 * r1 - left * delta))
            distance2 = at2
            for q in range(count):
                distance2 += rows[APART_BY, q] * rows[APART_BY, q]
            if last_call or distance2 <= tol or calls >= budget:
                break
            calls += 1.0
            at_x, x2, best, most = -base * at1, left * base * base, np.inf, -np.inf
            for q in range(count):
                at_x += rows[APART_BY, q] * rows[POINT, q]
                x2 += rows[POINT, q] * rows[POINT, q]
                if q != middle:
                    best = min(best, rows[APART_BY, q])
            if left > 0:
                most = largest(known[HIGHEST])
                best = min(best, base - (most + from_foot))
            grain = min(GRAIN * math.sqrt(distance2), settings[MARGIN])
            entry, row = first_near(
                best + grain, most - 4.0 * grain, y, base, middle, count, pos, heads, places, rows,
                known,
            )  # fmt: skip
            r, x_v = base - y[entry], total * base
            if row >= 0:
                r, x_v = rows[APART_BY, row], total * rows[POINT, row]
            gap, drop = max(at_x - total * best, 0.0), at_x - total * r
            allowed = total * best + settings[MARGIN] * math.sqrt(distance2)
            for q in range(count):
                if (
                    q != middle
                    and rows[SLOPE, q] <= allowed
                    and total * rows[APART_BY, q] <= allowed
                ):
                    row, drop, x_v = q, at_x - total * rows[APART_BY, q], total * rows[POINT, q]
                    break
            length2 = max(0.0, x2 - 2.0 * x_v + total * total)
            last_call = gap * gap <= tol * distance2 or calls >= budget
            shifted = max(0.0, 1.0 - gap / distance2) if last_call else 0.0
            step = 0.0
            if length2 > 0.0:
                step = min(1.0, max(0.0, (1.0 - shifted) * drop / length2))
            if row < 0:
                if count == room:
                    room = min(n + 1, 2 * room)
                    more, more_places = (
                        np.zeros((ROW_NUMBERS, room)),
                        np.zeros((ROW_PLACES, room), np.int64),
                    )
                    for q in range(count):
                        for f in range(ROW_NUMBERS):
                            more[f, q] = rows[f, q]
                        for f in range(ROW_PLACES):
                            more_places[f, q] = places[f, q]
                    rows, places = more, more_places
                row, count, corners, left = count, count + 1, corners + 1, left - 1
                link(row, entry, pos, heads, places)
                rows[INFEASIBLE_ITERATE, row] = rows[EARLIER, row] = y[entry]
                rows[PLAYED_LAST, row], rows[APART_BY, row] = played_base, base - y[entry]
                if records:
                    rows[SUMMED, row] = sum_base if even else summed[entry]
                survey(y, from_foot, entry // BLOCK, heads, places, scratch, known)
                r1, r2 = added(known[SUM]), added(known[SUM_OF_SQUARES])
                delta = base - foot
                at1, at2 = r1 - left * delta, max(0.0, r2 - delta * (2.0 * r1 - left * delta))
            if last_call:
                from1, from2 = r1, r2
                scale, offset, foot = 1.0 - shifted, shifted * base, base
                r1, r2 = scale * at1, scale * scale * at2
                for q in range(count):
                    rows[INFEASIBLE_ITERATE, q] += shifted * rows[APART_BY, q]
            for q in range(count):
                rows[WEIGHT, q] *= 1.0 - step
            rows[WEIGHT, row] += step
            exact = False
        s[ORACLE_BUDGET] -= calls
        s[ALL_CALLS] += calls
        s[DISTANCE], s[MOVED] = math.sqrt(distance2), 1.0 if last_call else 0.0
        if records:
            columns[i, SPENT] = calls
        asked = calls > 0.0 or count > dimension + 1 + SPARE
        many = asked and count > used + max(used + 2 * SPARE, dimension // 2)
        if used > dimension + 1 + SPARE or many:
            done, code = i + 1, LOOK
            break
        if records:
            marks[UPDATES] += 1.0
            off = abs(distance2 - s[DISTANCE] ** 2) / radius
            if not off <= marks[WORST_DISTANCE]:
                marks[WORST_DISTANCE] = off
            if math.floor(s[ORACLE_BUDGET] + 1e-9) >= 1.0:
                over = (distance2 - tol) / radius
                if not over <= marks[WORST_TOLERANCE]:
                    marks[WORST_TOLERANCE] = over
            if last_call:
                after, earlier, left = foot - c, from_foot - c, n - corners
                nearer = r2 + after * (2.0 * r1 + left * after)
                nearer -= from2 + earlier * (2.0 * from1 + left * earlier)
                moved = from1 - r1 + left * (from_foot - foot)
                farthest = -np.inf
                if left > 0:
                    farthest = (1.0 - scale) * (largest(known[HIGHEST]) + from_foot) - offset
                for q in range(count):
                    if q != middle:
                        after, earlier = rows[INFEASIBLE_ITERATE, q] - c, rows[EARLIER, q] - c
                        nearer += after * after - earlier * earlier
                        moved += earlier - after
                        farthest = max(farthest, earlier - after)
                if not nearer / radius <= marks[WORST_CENTER]:
                    marks[WORST_CENTER] = nearer / radius
                if marks[MOVES] % marks[STRIDE] == 0.0:
                    most = nearer + 2.0 * (total * farthest - c * moved)
                    samples[int(marks[STORED]), 0, 0] = most / radius
                    marks[STORED] += 1.0
                marks[MOVES] += 1.0
            if not marks[STORED] < len(samples):
                done, code = i + 1, ENOUGH
                break
    if done > 0:
        spread(x, base, rows, POINT, places, count)
        for e in range(n):
            before[e] = y[e]
            y[e] = scale * y[e] + offset
        for q in range(count):
            if q != middle:
                e = places[ENTRY, q]
                before[e], y[e] = rows[EARLIER, q], rows[INFEASIBLE_ITERATE, q]
        if records:
            spread(last, played_base, rows, PLAYED_LAST, places, count)
            if even:
                spread(summed, sum_base, rows, SUMMED, places, count)
            for q in range(count):
                if q != middle:
                    summed[places[ENTRY, q]] = rows[SUMMED, q]
    unlink(count, pos, places)
    return done, code, used, count, rows, places
