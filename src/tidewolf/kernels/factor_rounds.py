"""Whole rounds of a descent on a product whose projection is exact and cheap: simplices, or a box.

    value and gradient of f_t, g_t at x              (evaluate.py; of capacities one entry)
    g = V grad f + w grad g^+ within aff(K)          (`weighed` of rounds.py)
    u_b = x_b - eta_b g_b, softened past a limit,    (groups.py)
    x_b <- the member nearest to u_b                 (simplices.py)

Two passes over the entries per round: one evaluates and measures slopes, one steps, projects and
records, in blocks that stay in the cache. A capacity pulls at one factor; if all limits pull at all
factors there is one block. Factor b has the entries from bounds[b] up to bounds[b + 1]; if there
are bounds from `lower` to `upper` every factor is one entry of a box, else all are simplices of
shares.

The tables of numbers are those of rounds.py. The naive twin of all is `LyapunovDescent` without its
kernel, in tests/test_factor_rounds.py.
"""

from __future__ import annotations

import math

import numpy as np

from tidewolf.core.jit import kernel
from tidewolf.kernels.active_set import dot
from tidewolf.kernels.evaluate import AFFINE, CAPACITY, GIVEN, LINEAR, evaluate
from tidewolf.kernels.groups import BLOCK, factor_steps, give_back, overshoot
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
from tidewolf.kernels.simplices import (
    added,
    least_of,
    onto_simplices,
    simplices_infeasibility,
    within_groups,
)


@kernel
def fullest(x, c, scratch):  # type: ignore[no-untyped-def]
    """The first of the largest x - c, that, and the largest |x - c|."""
    most, least, at = -np.inf, np.inf, 0
    for first in range(0, len(x), BLOCK):
        here, limits = x[first : first + BLOCK], c[first : first + BLOCK]
        over, under = scratch[: len(here)], scratch[BLOCK : BLOCK + len(here)]
        for i in range(len(here)):
            over[i] = here[i] - limits[i]
        for i in range(len(here)):
            under[i] = limits[i] - here[i]
        least = min(least, least_of(over))
        if -least_of(under) > most:
            most, at = -least_of(under), first
    while at < len(x) - 1 and x[at] - c[at] != most:
        at += 1
    return at, most, max(most, -least)


@kernel
def count_capacities(t, x, c, size, each, when):  # type: ignore[no-untyped-def]
    """`count_limits` of rounds.py of x - c, of which none is larger than `size`; no branches."""
    total, worst = each[0], each[1]
    rounds, at, began, ended = when[0], when[1], when[2], when[3]
    for i in range(len(x)):
        over = x[i] - c[i]
        broken = over > BROKEN * size
        worse = broken & (over > worst[i])
        total[i] += over if over > 0.0 else 0.0
        rounds[i] += 1 if broken else 0
        began[i] = t if broken & (began[i] < 0) else began[i]
        ended[i] = t if broken else ended[i]
        at[i] = t if worse else at[i]
        worst[i] = over if worse else worst[i]


@kernel
def part_within(d, bounds, D, low, high, most, radius, out):  # type: ignore[no-untyped-def]
    """Of some factors |d|^2 and the slope of the part of d within aff(K), which is put in `out`;
    the slope is -1 if the gradient is no usual one.
    """
    begin, end = bounds[low], bounds[high]
    own, along = d[begin:end], out[begin:end]
    norm2 = dot(own, own)
    if len(D) == len(d):
        for e in range(len(own)):
            along[e] = own[e] if D[begin + e] > 0.0 else 0.0
    else:
        within_groups(d, bounds[low : high + 1], out)
    along2 = dot(along, along)
    if 0.0 < along2 < ACROSS * norm2 and len(D) < len(d):
        # what rounding left of a large part across aff(K) is large beside the rest
        within_groups(out, bounds[low : high + 1], out)
    if norm2 == 0.0 and not vanishes(own):
        return norm2, -1.0
    return norm2, slope_of(norm2, along2, most, radius)


@kernel
def step_factors(  # type: ignore[no-untyped-def]
    f, V, w, penalty_value, low, high, first, stop, x, bounds, D, lower, upper, settings, sums,
    etas, pull, there, before,
):  # fmt: skip
    """The step of factors `first` to `stop - 1` from x to `before`, and the nearest member, in
    `there`; returns their S, added up.

    A limit pulls at the factors from `low` up to `high`, all of them among these or none, along
    `pull`. Of simplices the gradient of the loss within aff(K) is in `there`.
    """
    starts, begin, end = bounds[:-1], bounds[first], bounds[stop]
    g, u = there[begin:end], before[begin:end]
    if len(lower) > 0:
        own, width = f[begin:end], D[begin:end]
        for e in range(len(g)):
            g[e] = V * own[e] if width[e] > 0.0 else 0.0
    else:
        for e in range(len(g)):
            g[e] *= V
    pulled = w > 0.0 and first <= low < stop
    if pulled:
        for e in range(bounds[low], bounds[high]):
            pull[e] *= w
            there[e] += pull[e]
    scale, keep = settings[SCALE], settings[KEEP]
    square_sum = factor_steps(there, 1.0, x, starts, D, 0.0, scale, sums, etas, before, first, stop)
    if pulled:
        own_etas = etas[low - first : high - first]
        along, square, held = overshoot(pull, before, x, starts, D, own_etas, low, high)
        past = -penalty_value - along
        if past > 0.0 and square > 0.0 and not held:
            back = (1.0 - keep) * min(1.0, past / square)
            give_back(before, pull, back, starts, own_etas, low, high)
    if len(lower) > 0:
        least, most = lower[begin:end], upper[begin:end]
        for e in range(len(g)):
            below = u[e] if u[e] < most[e] else most[e]
            g[e] = below if below > least[e] else least[e]
    else:
        onto_simplices(before, bounds[first : stop + 1], there)
    return square_sum


@kernel
def record_entries(  # type: ignore[no-untyped-def]
    x, there, bounds, lower, upper, first, stop, scratch, seen
):
    """How far the entries of some factors move, in all, in seen[0], and how far they are outside
    the set then, at most, in seen[1].
    """
    begin, end = bounds[first], bounds[stop]
    old, new, found = x[begin:end], there[begin:end], scratch[: end - begin]
    for e in range(len(found)):
        found[e] = abs(new[e] - old[e])
    seen[0] += added(found)
    if len(lower) > 0:
        least, most = lower[begin:end], upper[begin:end]
        for e in range(len(found)):
            above, below = new[e] - least[e], most[e] - new[e]
            found[e] = above if above < below else below
        seen[1] = max(seen[1], -least_of(found))
    else:
        seen[1] = max(seen[1], simplices_infeasibility(there, bounds[first : stop + 1]))


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
    first, k, settings, s, one, other, before, gradient_sums, sums, bounds, D, lower, upper, center,
    loss_kind, loss_A, loss_b, loss_count, limit_kind, limit_A, limit_b, limit_count, gradients,
    readable, etas, pull, scratch, pieces, columns, marks, last, total, means, ends, decisions,
    each, when, samples,
):  # fmt: skip
    """Play rounds `first` to `first + k - 1`, in place, from x = `one`, which is its own companion;
    returns how many are done, a code, and whether x is in `other` then, and what was played last in
    `one`, or the reverse.
    """
    q, n, now, radius = len(D), len(center), 0, settings[RADIUS]
    records, free = settings[RECORDS] > 0.0, q == n and settings[DIMENSION] == n
    F, W, slopes, seen = gradient_sums[0], gradient_sums[1], np.zeros(2), np.zeros(3)
    if records:
        record_entries(last, one, bounds, lower, upper, 0, q, scratch, seen)
    for i in range(k):
        t, round_of_run = first + i, first + i + int(settings[FIRST])
        x, there = (one, other) if now == 0 else (other, one)
        f, limit = readable[0], readable[1]
        if loss_kind in (LINEAR, AFFINE, GIVEN):
            f = loss_A[t]
            loss = at_x = dot(f, x)
            loss = loss_b[t] if loss_kind == GIVEN else loss
            loss -= loss_b[t] if loss_kind == AFFINE else 0.0
        else:
            loss = evaluate(loss_kind, loss_A, loss_b, loss_count, t, x, pieces, gradients[0])
            at_x = dot(f, x)
        low, high, chosen, size = 0, q, -1, 0.0
        if limit_kind == CAPACITY:
            chosen, value, size = fullest(x, limit_A[t], scratch)
            low = np.searchsorted(bounds, chosen, side="right") - 1
            high = low + 1
            for e in range(bounds[low], bounds[high]):
                gradients[1, e] = 1.0 if e == chosen else 0.0
        else:
            value = evaluate(limit_kind, limit_A, limit_b, limit_count, t, x, pieces, gradients[1])
        broken, limit_norm2 = value > 0.0, 0.0
        if free:
            norm2 = dot(f, f)
            slopes[0] = slope_of(norm2, norm2, settings[LOSS_MOST], radius)
            slopes[0] = -1.0 if norm2 == 0.0 and not vanishes(f) else slopes[0]
        else:
            _, slopes[0] = part_within(f, bounds, D, 0, q, settings[LOSS_MOST], radius, there)
        if broken:
            limit_norm2, slopes[1] = part_within(
                limit, bounds, D, low, high, settings[LIMIT_MOST], radius, pull
            )
        usual = abs(loss) <= MOST and abs(value) <= MOST and slopes[0] >= 0.0
        if not usual or (broken and slopes[1] < 0.0):
            return i, UNUSUAL, now
        columns[i, LOSS], columns[i, VALUE] = loss, value
        if records and broken and each.shape[1] > 0:
            if chosen >= 0:
                count_capacities(round_of_run, x, limit_A[t], size, each, when)
            else:
                count_limits(round_of_run, pieces[: each.shape[1]], each, when)
        exponent = s[EXPONENT]
        V, w, breach = weighed(s, settings, value, math.sqrt(limit_norm2), slopes)
        penalty_value = w * breach
        V, w = V if slopes[0] > 0.0 else 0.0, w if broken and slopes[1] > 0.0 else 0.0
        if s[EXPONENT] != exponent:
            unit = math.ldexp(1.0, int(exponent - s[EXPONENT]))
            for e in range(n):
                W[e] *= unit
            for b in range(q):
                sums[0, b] *= unit * unit
                sums[1, b] *= unit
                sums[2, b] *= unit
        if V > 0.0:
            s[LOSS_AT] += at_x - dot(f, center)
            for e in range(n):
                F[e] += f[e]
        if w > 0.0:
            e0, e1 = bounds[low], bounds[high]
            own = limit[e0:e1]
            s[LIMIT_AT] += w * (dot(own, x[e0:e1]) - dot(own, center[e0:e1]))
            for e in range(e0, e1):
                W[e] += w * limit[e]
        if records:
            columns[i, APART], columns[i, SPENT] = 0.0, 0.0
            columns[i, CHURN] = 0.5 * seen[0] if round_of_run > 0 else 0.0
            if not seen[1] <= marks[INFEASIBILITY]:
                marks[INFEASIBILITY] = seen[1]
            seen[0] = seen[1] = seen[2] = 0.0
            for e in range(n if len(decisions) > 0 else 0):
                decisions[i, e] = x[e]
        width = q if w > 0.0 and chosen < 0 else max(1, BLOCK * q // n)
        s[SQUARES] = 0.0
        for b0 in range(0, q, width):
            b1 = min(q, b0 + width)
            s[SQUARES] += step_factors(
                f, V, w, penalty_value, low, high, b0, b1, x, bounds, D, lower, upper, settings,
                sums, etas, pull, there, before,
            )  # fmt: skip
            if records:
                record_entries(x, there, bounds, lower, upper, b0, b1, scratch, seen)
                e0, e1 = bounds[b0], bounds[b1]
                old, new, u, c = x[e0:e1], there[e0:e1], before[e0:e1], center[e0:e1]
                nearer, played = scratch[: e1 - e0], total[e0:e1]
                for e in range(len(nearer)):
                    nearer[e] = (new[e] - u[e]) * (new[e] + u[e] - 2.0 * c[e])
                for e in range(len(nearer)):
                    played[e] += old[e]
                seen[2] += added(nearer)
        s[ORACLE_BUDGET] += settings[CALLS_EARNED]
        now = 1 - now
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
