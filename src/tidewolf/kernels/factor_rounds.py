"""Whole rounds of a descent on a product whose projection is exact and cheap: simplices, or a box.

    value and gradient of f_t, g_t at x              (evaluate.py; of capacities one entry)
    g = V grad f + w grad g^+ within aff(K)          (`weighed` of rounds.py)
    u_b = x_b - eta_b g_b, softened past a limit,    (groups.py)
    x_b <- the member nearest to u_b                 (columns.py)

Two passes over the entries a round: one evaluates and measures slopes, one steps, projects and
records. What a step gives back is known before the second, from the factors that the limit pulls
at: of a capacity, one. Factor b has the entries from starts[b] up to those of the next; where every
factor is one entry the set is the box from `lower` to `upper`, else all factors are simplices of
shares.

The tables of numbers are those of rounds.py. The naive twin of all is `LyapunovDescent` without its
kernel, in tests/test_factor_rounds.py.
"""

from __future__ import annotations

import math

import numpy as np

from tidewolf.core.jit import kernel
from tidewolf.kernels.active_set import copy_to, dot, fill
from tidewolf.kernels.columns import (
    center_columns,
    load_columns,
    simplex_columns,
    square_columns,
    store_columns,
    sum_columns,
)
from tidewolf.kernels.evaluate import AFFINE, CAPACITY, GIVEN, LINEAR, evaluate
from tidewolf.kernels.groups import BLOCK, factor_etas, lane_sum
from tidewolf.kernels.rounds import (
    ACROSS,
    APART,
    BROKEN,
    CALLS_EARNED,
    CHURN,
    DIMENSION,
    ENOUGH,
    EXPONENT,
    FIRST,
    INFEASIBILITY,
    KEEP,
    LIMIT_AT,
    LIMIT_MOST,
    LOSS,
    LOSS_AT,
    LOSS_MOST,
    MOST,
    MOVES,
    ORACLE_BUDGET,
    PART,
    PLAYED,
    RADIUS,
    RECORDS,
    SCALE,
    SPENT,
    SQUARES,
    STORED,
    STRIDE,
    TOLERANCE2,
    UNUSUAL,
    UPDATES,
    VALUE,
    WORST_CENTER,
    WORST_TOLERANCE,
    count_limits,
    slope_of,
    vanishes,
    weighed,
)


@kernel
def factor_of(starts, entry):  # type: ignore[no-untyped-def]
    """The factor of an entry; `numpy.searchsorted`, its twin, takes seconds to compile."""
    low, high = 0, len(starts)
    while high - low > 1:
        middle = (low + high) // 2
        if starts[middle] <= entry:
            low = middle
        else:
            high = middle
    return low


@kernel
def largest(numbers):  # type: ignore[no-untyped-def]
    """The largest of some numbers."""
    a, b, c, d = -np.inf, -np.inf, -np.inf, -np.inf
    whole = len(numbers) // 4 * 4
    for i in range(0, whole, 4):
        a = numbers[i] if numbers[i] > a else a
        b = numbers[i + 1] if numbers[i + 1] > b else b
        c = numbers[i + 2] if numbers[i + 2] > c else c
        d = numbers[i + 3] if numbers[i + 3] > d else d
    for i in range(whole, len(numbers)):
        a = numbers[i] if numbers[i] > a else a
    return max(max(a, b), max(c, d))


@kernel
def fullest(x, c, tops):  # type: ignore[no-untyped-def]
    """The first of the largest x - c, that, the largest |x - c|, and the largest of each block."""
    most, least, at = -np.inf, np.inf, 0
    for block in range(len(tops)):
        here, limits = (
            x[block * BLOCK : (block + 1) * BLOCK],
            c[block * BLOCK : (block + 1) * BLOCK],
        )
        high0, high1, high2, high3 = -np.inf, -np.inf, -np.inf, -np.inf
        low0, low1, low2, low3 = np.inf, np.inf, np.inf, np.inf
        whole = len(here) // 4 * 4
        for i in range(0, whole, 4):
            d0, d1 = here[i] - limits[i], here[i + 1] - limits[i + 1]
            d2, d3 = here[i + 2] - limits[i + 2], here[i + 3] - limits[i + 3]
            high0, low0 = d0 if d0 > high0 else high0, d0 if d0 < low0 else low0
            high1, low1 = d1 if d1 > high1 else high1, d1 if d1 < low1 else low1
            high2, low2 = d2 if d2 > high2 else high2, d2 if d2 < low2 else low2
            high3, low3 = d3 if d3 > high3 else high3, d3 if d3 < low3 else low3
        for i in range(whole, len(here)):
            d0 = here[i] - limits[i]
            high0, low0 = d0 if d0 > high0 else high0, d0 if d0 < low0 else low0
        tops[block] = max(max(high0, high1), max(high2, high3))
        least = min(least, min(min(low0, low1), min(low2, low3)))
        if tops[block] > most:
            most, at = tops[block], block
    chosen = at * BLOCK
    while chosen < len(x) - 1 and x[chosen] - c[chosen] != most:
        chosen += 1
    return chosen, most, max(most, -least)


@kernel
def count_capacities(t, x, c, size, tops, each, when, block):  # type: ignore[no-untyped-def]
    """`count_limits` of rounds.py of x - c, at most `size` each, in blocks with broken ones."""
    for first in range(0, len(x), block.shape[1]):
        stop = min(len(x), first + block.shape[1])
        if not max(tops[first // BLOCK], tops[(stop - 1) // BLOCK]) > 0.0:
            continue
        here, limits, over = x[first:stop], c[first:stop], block[0, : stop - first]
        total, worst = each[0, first:stop], each[1, first:stop]
        rounds, at = when[0, first:stop], when[1, first:stop]
        began, ended = when[2, first:stop], when[3, first:stop]
        for i in range(len(over)):
            over[i] = here[i] - limits[i]
        for i in range(len(over)):
            total[i] += over[i] if over[i] > 0.0 else 0.0
        for i in range(len(over)):
            rounds[i] += 1 if over[i] > BROKEN * size else 0
        for i in range(len(over)):
            ended[i] = t if over[i] > BROKEN * size else ended[i]
        fresh, worse = 0, 0
        for i in range(len(over)):
            fresh += (over[i] > BROKEN * size) & (began[i] < 0)
        for i in range(len(over)):
            worse += (over[i] > BROKEN * size) & (over[i] > worst[i])
        if fresh > 0:
            for i in range(len(over)):
                began[i] = t if (over[i] > BROKEN * size) & (began[i] < 0) else began[i]
        if worse > 0:
            for i in range(len(over)):
                at[i] = t if (over[i] > BROKEN * size) & (over[i] > worst[i]) else at[i]
            for i in range(len(over)):
                grown = (over[i] > BROKEN * size) & (over[i] > worst[i])
                worst[i] = over[i] if grown else worst[i]


@kernel
def squares_within(  # type: ignore[no-untyped-def]
    d, x, starts, D, sizes, size, free, first, stop, columns, block
):
    """|d|^2 over some factors, of its part within aff(K), and <d, x>; `free`: that is all of d."""
    q, n, step = len(starts), len(d), block.shape[1]
    norm2, along2, product = 0.0, 0.0, 0.0
    for begin in range(first, stop, step):
        end = min(stop, begin + step)
        e0, e1 = starts[begin], starts[end] if end < q else n
        found, own = block[0, : end - begin], d[e0:e1]
        norm2 += dot(own, own)
        product += dot(own, x[e0:e1])
        if free:
            along2 = norm2
        elif q == n:
            width = D[begin:end]
            for b in range(len(own)):
                found[b] = own[b] if width[b] > 0.0 else 0.0
            along2 += dot(found, found)
        else:
            load_columns(d, starts, begin, end, size, 0.0, columns)
            center_columns(columns, size, sizes[begin:end], 1.0, False, found)
            square_columns(columns, columns, size, found)
            along2 += lane_sum(found)
    return norm2, along2, product


@kernel
def surrogate(  # type: ignore[no-untyped-def]
    f, limit, starts, D, sizes, size, first, stop, low, high, V, w, twice, columns, block
):
    """Of factors `first` to `stop - 1` the surrogate gradient of a loss and a limit, in columns[0],
    and its squares, in block[0]; the limit's part, where factors from `low` up to `high` are among
    them, in columns[1]. Of a box columns have one row.
    """
    q, n, count = len(starts), len(f), stop - first
    g, P, norms2 = columns[0], columns[1], block[0, :count]
    begin, end = max(first, low), min(stop, high)
    if q == n:
        slope, width, here = f[first:stop], D[first:stop], g[0]
        for b in range(count):
            here[b] = V * slope[b] if width[b] > 0.0 else 0.0
        if begin < end:
            fill(P[0, :count], 0.0)
            for b in range(begin, end):
                P[0, b - first] = w * limit[b] if D[b] > 0.0 else 0.0
                here[b - first] += P[0, b - first]
    else:
        load_columns(f, starts, first, stop, size, 0.0, g)
        center_columns(g, size, sizes[first:stop], V, twice[0], norms2)
        if begin < end:
            load_columns(limit, starts, first, stop, size, 0.0, P)
            center_columns(P, size, sizes[first:stop], w, twice[1], norms2)
            for j in range(size):
                here, own = g[j], P[j]
                for r in range(count):
                    here[r] += own[r]
    square_columns(g, g, size, norms2)


@kernel
def given_back(  # type: ignore[no-untyped-def]
    f, limit, starts, D, sizes, size, low, high, V, w, twice, scale, keep, value, sums, columns,
    block,
):  # fmt: skip
    """The share of eta_b P_b that factors from `low` up to `high` give back, whose penalty is
    `value`: group.py of methods/steps.
    """
    past, square = -value, 0.0
    step = block.shape[1]
    for first in range(low, high, step):
        stop = min(high, first + step)
        count = stop - first
        norms2, etas, squares = block[0, :count], block[1, :count], block[2, :count]
        S, sigma = block[3, :count], block[4, :count]
        surrogate(
            f, limit, starts, D, sizes, size, first, stop, low, high, V, w, twice, columns, block
        )
        for b in range(count):
            S[b], sigma[b] = sums[0, first + b] + norms2[b], sums[1, first + b]
        factor_etas(D[first:stop], scale, S, sigma, etas)
        square_columns(columns[1], columns[0], size, norms2)
        square_columns(columns[1], columns[1], size, squares)
        for b in range(count):
            if squares[b] > 0.0 and D[first + b] > 0.0 and etas[b] == 0.0:
                return 0.0  # it pulls at a factor that no gradient has moved
            past += etas[b] * norms2[b]
            square += etas[b] * squares[b]
    return (1.0 - keep) * min(1.0, past / square) if past > 0.0 and square > 0.0 else 0.0


@kernel
def step_in_box(x, g, etas, lower, upper, there, before):  # type: ignore[no-untyped-def]
    """x - eta g, and the member of a box nearest to it."""
    for e in range(len(x)):
        before[e] = x[e] - etas[e] * g[e]
    for e in range(len(x)):
        most = before[e] if before[e] < upper[e] else upper[e]
        there[e] = most if most > lower[e] else lower[e]


@kernel
def step_in_simplices(  # type: ignore[no-untyped-def]
    x, starts, first, stop, size, columns, block, there, before
):
    """The same of some simplices; g is in columns[0], eta in block[1]. Returns how far sums of
    their members are from 1.
    """
    count, u = stop - first, columns[2]
    etas = block[1, :count]
    load_columns(x, starts, first, stop, size, -np.inf, u)
    for j in range(size):
        here, g = u[j], columns[0, j]
        for r in range(count):
            here[r] -= etas[r] * g[r]
    store_columns(u, starts, first, stop, size, before)
    simplex_columns(u, size, block[2, :count], block[3, :count], block[4, :count], block[5, :count])
    store_columns(u, starts, first, stop, size, there)
    sum_columns(u, size, etas)
    for r in range(count):
        etas[r] = abs(etas[r] - 1.0)
    return largest(etas)


@kernel
def record_entries(  # type: ignore[no-untyped-def]
    x, there, before, center, total, least, most, block, seen
):
    """What is recorded of some entries: how far they move, in seen[0], how far they are outside
    bounds, |x - c|^2 - |u - c|^2, and the sum of what was played. No bounds are 0 and infinity.
    """
    for first in range(0, len(x), block.shape[1]):
        stop = min(len(x), first + block.shape[1])
        count = stop - first
        old, new, u = x[first:stop], there[first:stop], before[first:stop]
        added, c = total[first:stop], center[first:stop]
        moved, nearer = block[0, :count], block[1, :count]
        for e in range(count):
            moved[e] = abs(new[e] - old[e])
        for e in range(count):
            nearer[e] = (new[e] - u[e]) * (new[e] + u[e] - 2.0 * c[e])
        for e in range(count):
            added[e] += old[e]
        seen[0] += lane_sum(moved)
        seen[2] += lane_sum(nearer)
        if len(least) == 0:
            for e in range(count):
                moved[e] = -new[e]
        else:
            lower, upper = least[first:stop], most[first:stop]
            for e in range(count):
                below, above = lower[e] - new[e], new[e] - upper[e]
                moved[e] = below if below > above else above
        seen[1] = max(seen[1], largest(moved))


@kernel
def record_first(x, last, starts, lower, upper, block, seen):  # type: ignore[no-untyped-def]
    """The same, before the first of some rounds, of x itself and the point that was played last."""
    q, n, width = len(starts), len(x), block.shape[1]
    for first in range(0, n, width):
        stop = min(n, first + width)
        here, old, moved, off = x[first:stop], last[first:stop], block[0], block[1]
        for e in range(stop - first):
            moved[e] = abs(here[e] - old[e])
        seen[0] += lane_sum(moved[: stop - first])
        if q == n:
            least, most = lower[first:stop], upper[first:stop]
            for e in range(stop - first):
                below, above = least[e] - here[e], here[e] - most[e]
                off[e] = below if below > above else above
        else:
            for e in range(stop - first):
                off[e] = -here[e]
        seen[1] = max(seen[1], largest(off[: stop - first]))
    for b in range(q if q < n else 0):
        added = -1.0
        for e in range(starts[b], starts[b + 1] if b + 1 < q else n):
            added += x[e]
        seen[1] = max(seen[1], abs(added))


@kernel
def audit(s, settings, x, before, nearer, marks, samples):  # type: ignore[no-untyped-def]
    """`audit` of rounds.py, of a member that is its own companion and came nearer to the center by
    so much; every projection moves y.
    """
    marks[UPDATES] += 1.0
    if math.floor(s[ORACLE_BUDGET] + 1e-9) >= 1.0:
        under = -settings[TOLERANCE2] / settings[RADIUS]
        marks[WORST_TOLERANCE] = max(marks[WORST_TOLERANCE], under)
    if not nearer / settings[RADIUS] <= marks[WORST_CENTER]:
        marks[WORST_CENTER] = nearer / settings[RADIUS]
    if marks[MOVES] % marks[STRIDE] == 0.0:
        at = int(marks[STORED])
        for e in range(len(x)):
            samples[at, 0, e], samples[at, 1, e], samples[at, 2, e] = x[e], before[e], x[e]
        marks[STORED] += 1.0
    marks[MOVES] += 1.0
    return marks[STORED] < len(samples)


@kernel
def factor_rounds(  # type: ignore[no-untyped-def]
    first, k, settings, s, one, other, before, gradient_sums, sums, starts, sizes, D, lower, upper,
    center, loss_kind, loss_A, loss_b, loss_count, limit_kind, limit_A, limit_b, limit_count,
    gradients, readable, columns_of_factors, block, tops, pieces, columns, marks, last, total,
    means, ends, decisions, each, when, samples,
):  # fmt: skip
    """Play rounds `first` to `first + k - 1`, in place, from x = `one`, which is its own companion;
    returns how many are done, a code, and whether x is in `other` then, and what was played last in
    `one`, or the reverse.
    """
    q, n, now, size = len(starts), len(center), 0, columns_of_factors.shape[1]
    width, free = block.shape[1], settings[DIMENSION] == n
    records, radius, scale = settings[RECORDS] > 0.0, settings[RADIUS], settings[SCALE]
    slopes, twice, seen = np.zeros(2), np.zeros(2, dtype=np.bool_), np.zeros(3)
    if records:
        record_first(one, last, starts, lower, upper, block, seen)
    for i in range(k):
        t = first + i
        x, there = (one, other) if now == 0 else (other, one)
        f, limit = readable[0], readable[1]
        if loss_kind in (LINEAR, AFFINE, GIVEN):
            f, loss = loss_A[t], 0.0
        else:
            loss = evaluate(loss_kind, loss_A, loss_b, loss_count, t, x, pieces, gradients[0])
        low, high, chosen, most = 0, q, -1, 0.0
        if limit_kind == CAPACITY:
            chosen, value, most = fullest(x, limit_A[t], tops)
            low = chosen if q == n else factor_of(starts, chosen)
            high = low + 1
        else:
            value = evaluate(limit_kind, limit_A, limit_b, limit_count, t, x, pieces, gradients[1])
        broken = value > 0.0
        if not broken:
            low = high = 0
        elif chosen >= 0:
            gradients[1, chosen] = 1.0
        loss_norm2, along2, product = squares_within(
            f, x, starts, D, sizes, size, free, 0, q, columns_of_factors[0], block
        )
        slopes[0] = slope_of(loss_norm2, along2, settings[LOSS_MOST], radius)
        if loss_norm2 == 0.0 and not vanishes(f):
            slopes[0] = -1.0
        twice[0], limit_norm2 = 0.0 < along2 < ACROSS * loss_norm2, 0.0
        if loss_kind == GIVEN:
            loss = loss_b[t]
        elif loss_kind == LINEAR:
            loss = product
        elif loss_kind == AFFINE:
            loss = product - loss_b[t]
        if broken:
            limit_norm2, along2, limit_at_x = squares_within(
                limit, x, starts, D, sizes, size, free, low, high, columns_of_factors[0], block
            )
            slopes[1] = slope_of(limit_norm2, along2, settings[LIMIT_MOST], radius)
            if limit_norm2 == 0.0 and not vanishes(limit):
                slopes[1] = -1.0
            twice[1] = 0.0 < along2 < ACROSS * limit_norm2
        usual = abs(loss) <= MOST and abs(value) <= MOST and slopes[0] >= 0.0
        if not usual or (broken and slopes[1] < 0.0):
            if broken and chosen >= 0:
                gradients[1, chosen] = 0.0
            return i, UNUSUAL, now
        columns[i, LOSS], columns[i, VALUE] = loss, value
        round_of_run = t + int(settings[FIRST])
        if records and broken and each.shape[1] > 0:
            if chosen >= 0:
                count_capacities(round_of_run, x, limit_A[t], most, tops, each, when, block)
            else:
                count_limits(round_of_run, pieces[: each.shape[1]], each, when)
        exponent = s[EXPONENT]
        V, w, breach = weighed(s, settings, value, math.sqrt(limit_norm2), slopes)
        penalty_value = w * breach
        V = V if slopes[0] > 0.0 else 0.0
        w = w if broken and slopes[1] > 0.0 else 0.0
        F, W = gradient_sums[0], gradient_sums[1]
        if s[EXPONENT] != exponent:
            unit = math.ldexp(1.0, int(exponent - s[EXPONENT]))
            for e in range(n):
                W[e] *= unit
            for b in range(q):
                sums[0, b] *= unit * unit
                sums[1, b] *= unit
                sums[2, b] *= unit
        if V > 0.0:
            s[LOSS_AT] += product - dot(f, center)
            for e in range(n):
                F[e] += f[e]
        back = 0.0
        if w > 0.0:
            e0, e1 = starts[low], starts[high] if high < q else n
            s[LIMIT_AT] += w * (limit_at_x - dot(limit[e0:e1], center[e0:e1]))
            for e in range(e0, e1):
                W[e] += w * limit[e]
            back = given_back(
                f, limit, starts, D, sizes, size, low, high, V, w, twice, scale, settings[KEEP],
                penalty_value, sums, columns_of_factors, block,
            )  # fmt: skip
        if records:
            columns[i, APART], columns[i, SPENT] = 0.0, 0.0
            columns[i, CHURN] = 0.5 * seen[0] if round_of_run > 0 else 0.0
            if not seen[1] <= marks[INFEASIBILITY]:
                marks[INFEASIBILITY] = seen[1]
            fill(seen, 0.0)
            if len(decisions) > 0:
                copy_to(x, decisions[i])
        square_sum = 0.0
        for b0 in range(0, q, width):
            b1 = min(q, b0 + width)
            e0, e1, count = starts[b0], starts[b1] if b1 < q else n, b1 - b0
            surrogate(
                f, limit, starts, D, sizes, size, b0, b1, low, high, V, w, twice,
                columns_of_factors, block,
            )  # fmt: skip
            S, own = sums[0, b0:b1], sums[2, b0:b1]
            norms2, etas = block[0, :count], block[1, :count]
            for r in range(count):
                S[r] += norms2[r]
            if q == n:
                g = columns_of_factors[0, 0]
                for r in range(count):
                    own[r] = abs(g[r]) if abs(g[r]) > own[r] else own[r]
            else:
                for r in range(count):
                    length = math.sqrt(norms2[r])
                    own[r] = length if length > own[r] else own[r]
            factor_etas(D[b0:b1], scale, S, sums[1, b0:b1], etas)
            square_sum += lane_sum(S)
            if back > 0.0 and b0 < high and low < b1:
                for j in range(size):
                    g, P = columns_of_factors[0, j], columns_of_factors[1, j]
                    for r in range(count):
                        g[r] -= back * P[r]
            if q == n:
                step_in_box(
                    x[b0:b1],
                    columns_of_factors[0, 0],
                    etas,
                    lower[b0:b1],
                    upper[b0:b1],
                    there[b0:b1],
                    before[b0:b1],
                )
            else:
                off = step_in_simplices(
                    x, starts, b0, b1, size, columns_of_factors, block, there, before
                )
                seen[1] = max(seen[1], off)
            if records:
                record_entries(
                    x[e0:e1], there[e0:e1], before[e0:e1], center[e0:e1], total[e0:e1],
                    lower[e0:e1], upper[e0:e1], block, seen,
                )  # fmt: skip
        s[SQUARES] = square_sum
        s[ORACLE_BUDGET] += settings[CALLS_EARNED]
        now = 1 - now
        if broken and chosen >= 0:
            gradients[1, chosen] = 0.0
        if records:
            part = int(marks[PART])
            if round_of_run + 1 == ends[part]:
                rounds = round_of_run + 1 - (ends[part - 1] if part else 0)
                for e in range(n):
                    means[part, e] = total[e] / rounds
                    total[e] = 0.0
                marks[PART] += 1.0
            if not audit(s, settings, there, before, seen[2], marks, samples):
                return i + 1, ENOUGH, now
    return k, PLAYED, now
