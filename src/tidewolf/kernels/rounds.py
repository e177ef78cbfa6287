"""Whole rounds of descents in one compiled pass: mix, evaluate, weigh, step, project, record.

    x = sum_i p_i z_i, p by AdaHedge                 methods/steps/hedge.py; one descent: x = x_1
    value and gradient of f_t, g_t at x              (evaluate.py)
    g = V grad f + w grad g^+ within aff(K)          weights of methods/steps/lyapunov.py
    y_i <- ball( y_i - eta_i phi_i g, softened together within a group )    methods/steps/adagrad.py
    x_i, y_i <- a member near y_i, on one table of vertices and one budget of calls (active_set.py),
                those first that are trusted and far from their y_i

A set is one factor, or a product of many with an exact projection: then every factor has a step
of its own, x_i = y_i is the member nearest to where the step leads, and no oracle is asked.

The first experts are plain descents; then come the cells of a context, which propose one point
together and are one group; then advisers, whose points are in Z. A single descent has no mixer: Z
is empty.

`rounds` plays as many as are asked for, or returns earlier: with UNUSUAL where a gradient is one
that needs a sentence, or a second look (nothing of that round has happened); with NO_ROOM,
TABLE_TAKEN or BAD_ORACLE in the middle of a projection and with TOO_MANY after one, to be called
again; with LOOK after a round whose table is to be made smaller, and whose projection is still to
be checked; with ENOUGH where its sample of projections is full. A single live round is the same
machine code, so it has the same bits. Kernels of sets, and what re-solves programs after a round
(resolving.py), are called by address.
"""

import math

import numpy as np

from tidewolf.core.arrays import frozen
from tidewolf.core.jit import Indirect, Packed, kernel
from tidewolf.kernels.active_set import (
    BLOCK,
    BUDGET,
    CALLS,
    COUNT,
    DATA,
    DISTANCE2,
    DONE,
    LAST,
    READY,
    ROW,
    USED,
    WAITING,
    added,
    copy_to,
    distance2,
    dot,
    fill,
    idle_rows,
    nearest_member,
)
from tidewolf.kernels.evaluate import (
    MOST,
    ONE_ENTRY,
    ONE_ROW,
    count_limits,
    evaluate,
    note_peaks,
    slope_of,
    vanishes,
)
from tidewolf.kernels.mixing import log_of_sum, mix
from tidewolf.kernels.sums import squares_of, step_sums

# What `rounds` comes back with, beside the codes of active_set.py.
PLAYED, UNUSUAL, LOOK, ENOUGH, TOO_MANY, OTHER = 0, 10, 11, 12, 13, 14

# What is remembered: the dual state with the sums of methods/certificate.py, the oracle budget;
# whether a round is in the middle of its projections, how many are done and how many there are;
# what the mixer remembers; the slopes of rounds whose context was unknown; whether advisers have
# not seen the last round; by what gaps of the mixer are divided; what `Aim` of
# methods/steps/lyapunov.py has; and `SharpSums`.
ROUNDS, VIOLATION, LOSS_SLOPE, LIMIT_SLOPE, LEAST_RATIO, EXPONENT, PAID, LOSS_AT = range(8)
IMPOSSIBLE, ORACLE_BUDGET, ALL_CALLS, LIMIT_AT = range(8, 12)
HALF_WAY, AT_EXPERT, SERVED, GAP, RANGE, UNKNOWN_LOSS, UNKNOWN_LIMIT = range(12, 19)
UNADVISED, SPREAD, LOG_WEIGHT, AIMED, REACH_AT, UNIT_AT, JUMPS, SHIFTS = range(19, 27)
SHARP_AT, SHARP_PAID, BROKEN, SCALARS = range(27, 31)

# What a descent remembers of the steps of each factor: S, sigma = 1/(2 eta), the largest |g|.
SQUARES_OF, INVERSE_OF, LARGEST_OF = range(3)
# How its last projection went: |x - y|, oracle calls, whether it moved y.
APART_OF, CALLS_OF, MOVED_OF, SUMS = range(4)
# What is counted for each expert: methods/accounts.py.
GUARD, LOST, WEIGHTS_OF, AVAILABLE, LOSSES, VIOLATIONS, RUN_LOSSES = range(7)
RUN_VIOLATIONS, CALLS_BY, ACCOUNTS = range(7, 10)

# `PLAIN` is how many experts are plain descents, `PERMANENT` how many of them never restart,
# `LONGEST` the one with the longest steps, which the budget serves first where it `PAYS_FIRST`;
# `VALUED` whether losses and limits are evaluated at the points of all experts, and `EXPERTS` how
# many are mixed; `TARGET` the acceptable violation per round, below 0 without one; `EVEN` is 1/n
# where aff(K) is where the sum is as it is, else 0.
CAUTION, HORIZON, LOSS_MOST, LIMIT_MOST, RADIUS, DIAMETER, CALLS_EARNED, TOLERANCE2 = range(8)
KEEP, CENTER_NORM, MARGIN, DIMENSION, PLAIN, LONGEST = range(8, 14)
PAYS_FIRST, VALUED, EXPERTS, TARGET, PERMANENT, EVEN, SETTINGS = range(14, 21)

# Of per round are recorded its loss, the constraint's value, |x - y|, oracle calls, movement, and
# programs solved after it.
LOSS, VALUE, APART, SPENT, CHURN, SOLVED, COLUMNS = range(7)

# What is recorded of all of them: the worst of each check, and how many there were; of every
# `STRIDE`th projection that moves y, x, y and where it came from; the part whose mean is due.
INFEASIBILITY, WORST_DISTANCE, WORST_TOLERANCE, WORST_CENTER, UPDATES, MOVES = range(6)
STRIDE, STORED, PART, MARKS = range(6, 10)

THETA, EXPONENTS, GROWTH = 0.5, 256.0, 2.0
QUICKEST, SLOWEST, ALLOWED, LOWEST = 0.15, 0.3, 0.1, -12.0
FIRST_SHARE, LIGHTEST, HEAVIEST = 4e-4, math.exp(-1.0), 20.0
ACROSS = 1e-4
EPS = float(np.finfo(np.float64).eps)
CONVEX_SLACK = 16.0 * EPS
# Atoms in use beyond dimension + 1, and rows of a table that may be idle; the newest half stays.
# With 64 the violation on `freeway` rose by a quarter; with 256 nothing is gained, and each row
# costs time and memory.
SPARE, IDLE = 32, 128
# Corrective steps end when the pairwise gap is below this share of the tolerance.
CORRECTIVE_STEPS, CORRECTIVE_GAP = 30, 0.1
LN2 = math.log(2.0)


# Where the addresses of kernels are; 0 for an oracle or an exact projection that is not there, and
# for `resolve` and `solve` if nothing is re-solved, and for `large` if points are not.
AT_ORACLE, AT_PROJECT, AT_TANGENTS, AT_INFEASIBILITY, AT_RESOLVE, AT_SOLVE, AT_LARGE = range(7)
_INTS, _TABLE, _TABLES = np.zeros(1, np.int64), np.zeros((1, 1)), np.zeros((1, 1, 1))
_GIVEN, _GEOMETRY = frozen(_TABLE.copy()), (frozen(ROW.copy()), frozen(np.zeros(1, np.int32)))
# The parts within aff(K) of the first rows of d: tangents(address, d, count, floats, ints, out).
tangents: Indirect[None] = Indirect(None, _TABLE, 1, *_GEOMETRY, _TABLE)
# The member x nearest to y: project(address, y, floats, ints, x).
project: Indirect[None] = Indirect(None, ROW, *_GEOMETRY, ROW)
# How far x is outside a set: infeasibility(address, x, floats, ints).
infeasibility = Indirect(float, ROW, *_GEOMETRY)
# That of resolving.py, behind its address.
resolve = Indirect(int, 1, 1, _GIVEN, _GIVEN, _TABLE, ROW, ROW, _INTS, _TABLE, _TABLE)
# That of large.py, behind its address.
large = Indirect(
    int, 1, True, _INTS, ROW, frozen(ROW.copy()), _GIVEN, 1, _GIVEN, frozen(ROW.copy()), ROW
)  # fmt: skip
# What a learner's rounds share: addresses of kernels, settings, what the set's kernels read, and
# scratch; and what is recorded of rounds.
held = Packed(
    _INTS, ROW, ROW, ROW, ROW, _INTS, ROW, ROW, DATA, *_GEOMETRY, ROW, _INTS, np.zeros(1, np.int32),
    ROW, _TABLE, ROW, ROW, ROW, ROW, ROW, ROW, _TABLE, *[ROW] * 5,
)  # fmt: skip
LANES = 23  # where the last of them begin, which are for large.py
recorded = Packed(
    ROW, ROW, ROW, _TABLE, _INTS, _TABLE, _TABLE, np.zeros((1, 1), np.int64), ROW, _INTS, _TABLES,
    _TABLE,
)  # fmt: skip


@kernel
def ratio_of(s, settings):  # type: ignore[no-untyped-def]
    """By what the weight is multiplied besides its exponential.

    Reference: `LyapunovWeights._ratio` of methods/steps/lyapunov.py.
    """
    ratio = s[LOSS_SLOPE] / s[LIMIT_SLOPE] if s[LOSS_SLOPE] > 0.0 else 1.0
    if settings[TARGET] < 0.0:
        return ratio
    first = FIRST_SHARE * s[LIMIT_SLOPE] * settings[DIAMETER] / settings[TARGET]
    return ratio * min(HEAVIEST, max(LIGHTEST, first))


@kernel
def aimed(s, settings, breach):  # type: ignore[no-untyped-def]
    """The weight of a target after a round: its z, the exponent of all weights, and the sums of its
    bound; returns what is to be multiplied by the slopes' ratio.

    Reference: `Aim` of methods/steps/lyapunov.py.
    """
    before = s[LOG_WEIGHT]
    unit = s[LIMIT_SLOPE] * settings[DIAMETER]
    if unit <= 0.0:
        return 0.0
    reach = max(QUICKEST * unit, min(SLOWEST * unit, ALLOWED * settings[TARGET] * s[ROUNDS]))
    s[LOG_WEIGHT] = max(LOWEST, before + (breach - settings[TARGET]) / reach)
    ratio = ratio_of(s, settings)
    log2, exponent = s[LOG_WEIGHT] / LN2, s[EXPONENT]
    if breach > 0.0:
        exponent += EXPONENTS * max(0.0, math.floor((log2 - exponent) / EXPONENTS))
    unit = math.ldexp(1.0, int(s[EXPONENT] - exponent))
    s[EXPONENT] = exponent
    s[PAID] *= unit
    s[LIMIT_AT] *= unit
    scale = THETA * ratio * reach
    s[JUMPS] = s[JUMPS] * unit + (scale - s[UNIT_AT]) * 2.0 ** (before / LN2 - exponent)
    s[SHIFTS] -= (reach - s[REACH_AT]) * before
    s[REACH_AT], s[UNIT_AT] = reach, scale
    s[AIMED] += 1.0
    return THETA * ratio * 2.0 ** (log2 - exponent)


@kernel
def weighed(s, settings, violation, limit_norm, slopes):  # type: ignore[no-untyped-def]
    """The dual state after a round; returns V and w, by which gradients are multiplied, and the
    violation that counts.

    Reference: `LyapunovWeights.weigh` of methods/steps/lyapunov.py.
    """
    s[ROUNDS] += 1.0
    s[LOSS_SLOPE] = max(s[LOSS_SLOPE], slopes[0])
    V = 1.0 / settings[CAUTION]
    if violation <= 0.0:
        if settings[TARGET] >= 0.0:
            aimed(s, settings, 0.0)
        return math.ldexp(V, -int(s[EXPONENT])), 0.0, 0.0
    slope = max(s[LIMIT_SLOPE], slopes[1])
    s[LIMIT_SLOPE] = slope
    reach, w, exponent = slope * settings[DIAMETER], 0.0, s[EXPONENT]
    rounding = CONVEX_SLACK * limit_norm * settings[CENTER_NORM]
    if violation > reach * (1.0 + math.sqrt(EPS)) + rounding:
        s[IMPOSSIBLE] = 1.0
    breach = min(violation, reach)
    s[VIOLATION] += breach
    if settings[TARGET] >= 0.0:
        w = aimed(s, settings, breach)
        s[PAID] += w * breach
        return math.ldexp(V, -int(s[EXPONENT])), w, breach
    if reach > 0.0:
        ratio = s[LOSS_SLOPE] / slope if s[LOSS_SLOPE] > 0.0 else 1.0
        s[LEAST_RATIO] = min(s[LEAST_RATIO], ratio)
        growth = THETA * math.pow(max(s[ROUNDS], settings[HORIZON]), -0.5)
        log2 = growth * s[VIOLATION] / (GROWTH * reach) / LN2
        exponent += EXPONENTS * max(0.0, math.floor((log2 - exponent) / EXPONENTS))
        w = THETA * ratio * 2.0 ** (log2 - exponent)
    unit = math.ldexp(1.0, int(s[EXPONENT] - exponent))
    s[EXPONENT], s[PAID] = exponent, s[PAID] * unit + w * breach
    s[LIMIT_AT] *= unit
    return math.ldexp(V, -int(exponent)), w, breach


@kernel
def current_weight(s, settings):  # type: ignore[no-untyped-def]
    """w after the last round, whether or not it broke a limit.

    Reference: `LyapunovWeights._current_weight` of methods/steps/lyapunov.py.
    """
    reach = s[LIMIT_SLOPE] * settings[DIAMETER]
    if reach == 0.0:
        return 0.0
    growth = THETA * math.pow(max(s[ROUNDS], settings[HORIZON]), -0.5)
    log2 = growth * s[VIOLATION] / (GROWTH * reach) / LN2
    if settings[TARGET] >= 0.0:
        log2 = s[LOG_WEIGHT] / LN2
    return THETA * ratio_of(s, settings) * 2.0 ** (log2 - s[EXPONENT])


@kernel
def sharpened(s, settings, breach, before, at, at_points):  # type: ignore[no-untyped-def]
    """The scalars of sharp weights with a round whose limit was broken, where G was `before`; `at`
    and `at_points` are the products of its gradient with x - center, and with the sum of these.
    Returns by what the sum of gradients is multiplied, and the weight of this one.

    Reference: `SharpSums` of methods/certificate.py.
    """
    reach = s[LIMIT_SLOPE] * settings[DIAMETER]
    unit = (before / s[LIMIT_SLOPE]) ** 4 if reach > 0.0 else 1.0
    size = max(breach, breach - at + at_points / s[ROUNDS])
    w = (size / reach) ** 4 if reach > 0.0 else 0.0
    s[SHARP_AT] = unit * s[SHARP_AT] + w * at
    s[SHARP_PAID] = unit * s[SHARP_PAID] + w * breach
    s[BROKEN] += 1.0
    return unit, w


@kernel
def weigh(  # type: ignore[no-untyped-def]
    s, settings, violation, limit_norm, along, slopes, x, center, shares, gradient_sums, sharp
):
    """The dual state after a round at x, its surrogate in along[0] and the limits' part of it in
    along[1], both gradients added to their sums, in all and of each cell by its share, and to
    those of sharp weights; returns what limits say at x, w h.

    Reference: `LyapunovWeights.weigh` of methods/steps/lyapunov.py.
    """
    exponent, slope = s[EXPONENT], s[LIMIT_SLOPE]
    V, w, breach = weighed(s, settings, violation, limit_norm, slopes)
    f, g, known = along[0], along[1], 0.0
    s[LOSS_AT] += dot(f, x) - dot(f, center)
    for i in range(len(f)):
        sharp[0, i] += x[i] - center[i]
    for part in range(gradient_sums.shape[1]):
        share = 1.0 if part == 0 else shares[part - 1]
        known += share if part > 0 else 0.0
        if share > 0.0:
            F = gradient_sums[0, part]
            for i in range(len(f)):
                F[i] += share * f[i]
    if len(shares) > 0 and known == 0.0:
        s[UNKNOWN_LOSS] += settings[RADIUS] * math.sqrt(dot(f, f))
    if violation <= 0.0:
        for i in range(len(f)):
            f[i] = V * f[i]
        return 0.0
    at = dot(g, x) - dot(g, center)
    unit, sharp_w = sharpened(s, settings, breach, slope, at, dot(g, sharp[0]))
    for i in range(len(f)):
        sharp[1, i] = unit * sharp[1, i] + sharp_w * g[i]
        g[i] = w * g[i]
        f[i] = V * f[i] + g[i]
    if s[EXPONENT] != exponent:
        unit = math.ldexp(1.0, int(exponent - s[EXPONENT]))
        s[UNKNOWN_LIMIT] *= unit
        for part in range(gradient_sums.shape[1]):
            for i in range(len(g)):
                gradient_sums[1, part, i] *= unit
    for part in range(gradient_sums.shape[1]):
        share = 1.0 if part == 0 else shares[part - 1]
        if share > 0.0:
            W = gradient_sums[1, part]
            for i in range(len(g)):
                W[i] += share * g[i]
    if len(shares) > 0 and known == 0.0:
        s[UNKNOWN_LIMIT] += settings[RADIUS] * math.sqrt(dot(g, g))
    s[LIMIT_AT] += dot(g, x) - dot(g, center)
    return w * breach


@kernel
def step_experts(  # type: ignore[no-untyped-def]
    g, penalty, penalty_value, broken, played, center, settings, places, radii, diameters, Y, steps,
    sums, scales, shares, squares, etas,
):  # fmt: skip
    """Y after every descent's step along -share g, with what steps remember, factor by factor:
    cells, which follow the plain descents, give back together what lands past a limit; `step_sums`
    has those that restart, whose etas are 0. A set of
    several factors has an exact projection, so that balls are left to it.

    Reference: `descend_together` of methods/steps/adagrad.py, and `into_ball`.
    """
    experts, factors, n = len(Y), len(radii), len(g)
    plain, permanent = int(settings[PLAIN]), int(settings[PERMANENT])
    squares_of(g, places, squares)
    if not added(squares) > 0.0:
        return
    for i in range(experts):
        share = shares[i]
        if share == 0.0 or permanent <= i < plain:
            continue
        S, sigma, largest, eta, y = steps[i, 0], steps[i, 1], steps[i, 2], etas[i], Y[i]
        for b in range(factors):
            D = min(2.0 * radii[b], diameters[b] + sums[i, APART_OF])
            own2 = share * share * squares[b]
            S[b] += own2
            if own2 > largest[b] * largest[b]:
                largest[b] = math.sqrt(own2)
            eta[b] = 0.0
            if S[b] > 0.0 and D > 0.0:
                sigma[b] = max(sigma[b], math.sqrt(0.5 * S[b]) / (scales[i] * D))
                eta[b] = 0.5 / sigma[b]
        if factors == n:
            for e in range(n):
                y[e] -= eta[e] * share * g[e]
        else:
            for b in range(factors):
                for e in range(places[b], places[b + 1]):
                    y[e] -= eta[b] * share * g[e]
    if broken:
        squares_of(penalty, places, squares)
        first = 0
        while first < experts:
            end = first + 1 if first < plain else experts
            past, square, held = dot(penalty, played) - penalty_value, 0.0, False
            for i in range(first, end):
                if shares[i] > 0.0:
                    past -= shares[i] * dot(penalty, Y[i])
                    for b in range(factors):
                        if squares[b] > 0.0 and diameters[b] > 0.0:
                            square += etas[i, b] * shares[i] * shares[i] * squares[b]
                            held = held or etas[i, b] == 0.0
            if past > 0.0 and square > 0.0 and not held:
                back = (1.0 - settings[KEEP]) * min(1.0, past / square)
                for i in range(first, end):
                    for b in range(factors if shares[i] > 0.0 else 0):
                        if squares[b] > 0.0:
                            for e in range(places[b], places[b + 1]):
                                Y[i, e] += back * etas[i, b] * shares[i] * penalty[e]
            first = end
    for i in range(experts if factors == 1 else 0):
        length2 = 0.0 if permanent <= i < plain else distance2(Y[i], center)
        if shares[i] > 0.0 and length2 > settings[RADIUS] * settings[RADIUS]:
            share = settings[RADIUS] / math.sqrt(length2)
            for e in range(n):
                Y[i, e] = center[e] + share * (Y[i, e] - center[e])


@kernel
def order_of(X, Y, p, shares, precedence, settings, order):  # type: ignore[no-untyped-def]
    """What the budget serves first, those who are trusted and far from their y; returns how many
    are served: cells without a share are not. Sums lead far out: 2R is as far as others can be.

    Reference: `Core._order`.
    """
    if len(X) == 1 and shares[0] > 0.0:
        order[0] = 0
        return 1
    plain, served, urgency = int(settings[PLAIN]), 0, np.empty(len(X))
    for i in range(len(X)):
        if shares[i] == 0.0:
            continue
        trust = 1.0
        if len(p) > 0:
            own = p[i] if i < plain else p[plain] * shares[i]
            trust = precedence[i] * own
        urgency[i] = trust * min(2.0 * settings[RADIUS], math.sqrt(distance2(Y[i], X[i])))
        if settings[PAYS_FIRST] > 0.0 and i == int(settings[LONGEST]):
            urgency[i] = np.inf
        k = served
        while k > 0 and urgency[order[k - 1]] < urgency[i]:
            order[k] = order[k - 1]
            k -= 1
        order[k] = i
        served += 1
    return served


@kernel
def hedge(s, totals, losses):  # type: ignore[no-untyped-def]
    """The mixer after a round with these losses relative to what was played.

    Reference: `Mixer.updated` of methods/steps/hedge.py.
    """
    least, after, low, high = np.inf, np.inf, np.inf, -np.inf
    for i in range(len(totals)):
        least = min(least, totals[i])
        after = min(after, totals[i] + losses[i])
        low, high = min(low, losses[i]), max(high, losses[i])
    mixed = after - least
    if s[GAP] > 0.0:
        rate = math.log(max(len(totals), 2)) / s[GAP]
        mixed += log_of_sum(rate, totals, least, losses, 0.0) / rate
        mixed -= log_of_sum(rate, totals, after, losses, 1.0) / rate
    for i in range(len(totals)):
        totals[i] += losses[i]
    s[GAP] += max(0.0, -mixed) / s[SPREAD]
    s[RANGE] = max(s[RANGE], high - low)


@kernel
def account(g, x, Z, awake, p, accounts, losses, apart):  # type: ignore[no-untyped-def]
    """<g, z_i - x> of every expert, 0 where it is absent, and its accounts with it.

    Reference: `Accounts.after` of methods/accounts.py.
    """
    for i in range(len(Z)):
        for e in range(len(x)):
            apart[e] = Z[i, e] - x[e]
        losses[i] = dot(g, apart) if awake[i] > 0.0 else 0.0
        accounts[GUARD, i] -= losses[i]
        accounts[WEIGHTS_OF, i] += p[i]
        accounts[AVAILABLE, i] += awake[i]


@kernel
def record_point(t, x, last, total, means, ends, marks, scratch):  # type: ignore[no-untyped-def]
    """How far x, played in round t, is from the last point, half the sum of the changes; x is the
    last then, and is added to the total, which at the end of a part becomes its mean.

    Reference: `Movement` and `TrajectorySummary` of the evaluation.
    """
    part, moved = int(marks[PART]), 0.0
    for low in range(0, len(x), BLOCK):
        high = min(low + BLOCK, len(x))
        now, before, sums = x[low:high], last[low:high], total[low:high]
        changes = scratch[: high - low]
        for i in range(high - low):
            changes[i] = abs(now[i] - before[i])
            before[i] = now[i]
            sums[i] += now[i]
        moved += added(changes)
    if t + 1 == ends[part]:
        begin = ends[part - 1] if part else 0
        for i in range(len(x)):
            means[part, i] = total[i] / (t + 1 - begin)
            total[i] = 0.0
        marks[PART] += 1.0
    return 0.5 * moved if t > 0 else 0.0


@kernel
def audit(  # type: ignore[no-untyped-def]
    s, settings, apart, moved, x, y, before, center, marks, samples
):
    """The checks of a projection: |x - y| is as recorded, within tolerance while calls are
    left, and y was brought no farther from the center. Some are stored, to be asked about; returns
    whether there is room for more.

    Reference: `Audit.see` of evaluation/certificate.py.
    """
    unit = settings[RADIUS]
    apart2, nearer = 0.0, 0.0
    for low in range(0, len(x), BLOCK):
        high = min(low + BLOCK, len(x))
        own, c = y[low:high], center[low:high]
        apart2 += distance2(x[low:high], own)
        if moved > 0.0:
            nearer += distance2(own, c) - distance2(before[low:high], c)
    marks[UPDATES] += 1.0
    off = abs(apart2 - apart**2) / unit
    if not off <= marks[WORST_DISTANCE]:
        marks[WORST_DISTANCE] = off
    if math.floor(s[ORACLE_BUDGET] + 1e-9) >= 1.0:
        over = (apart2 - settings[TOLERANCE2]) / unit
        if not over <= marks[WORST_TOLERANCE]:
            marks[WORST_TOLERANCE] = over
    if moved > 0.0:
        if not nearer / unit <= marks[WORST_CENTER]:
            marks[WORST_CENTER] = nearer / unit
        if marks[MOVES] % marks[STRIDE] == 0.0:
            at = int(marks[STORED])
            for i in range(len(x)):
                samples[at, 0, i], samples[at, 1, i], samples[at, 2, i] = x[i], before[i], y[i]
            marks[STORED] += 1.0
        marks[MOVES] += 1.0
    return marks[STORED] < len(samples)


@kernel
def value_experts(  # type: ignore[no-untyped-def]
    t, V, w, own, limit, loss_fn, limit_fn, Z, awake, accounts, pieces, scratch
):
    """The accounts with what losses and limits say of the points of all experts; `own` and `limit`
    are the loss and the violation at the point played.

    Reference: `Accounts.after` of methods/accounts.py.
    """
    for i in range(len(Z)):
        if awake[i] > 0.0:
            f = evaluate(loss_fn[0], loss_fn[1], loss_fn[2], loss_fn[3], t, Z[i], pieces, scratch)
            g = evaluate(
                limit_fn[0], limit_fn[1], limit_fn[2], limit_fn[3], t, Z[i], pieces, scratch
            )
            g = max(g, 0.0)
            accounts[LOST, i] += V * (own - f) + w * (limit - g)
            accounts[LOSSES, i] += f
            accounts[VIOLATIONS, i] += g
            accounts[RUN_LOSSES, i] += own
            accounts[RUN_VIOLATIONS, i] += limit


@kernel
def rescale(s, exponent, steps, totals, accounts):  # type: ignore[no-untyped-def]
    """Steps, mixer and accounts in the units of new weights.

    Reference: `State.in_units` of learners/state.py.
    """
    unit = math.ldexp(1.0, int(exponent - s[EXPONENT]))
    for i in range(len(steps)):
        for b in range(steps.shape[2]):
            steps[i, SQUARES_OF, b] *= unit * unit
            steps[i, INVERSE_OF, b] *= unit
            steps[i, LARGEST_OF, b] *= unit
    for i in range(len(totals)):
        totals[i] *= unit
        accounts[GUARD, i] *= unit
        accounts[LOST, i] *= unit
    s[GAP] *= unit
    s[RANGE] *= unit


@kernel
def parts(numbers, n, factors, descents, cells, experts):  # type: ignore[no-untyped-def]
    """What rounds change, which lies in one array: the scalars, the point to be played if experts
    are mixed, members, iterates and where they came from, what steps remember, how projections
    went, the sums of gradients, those of sharp weights; then the proposals of all experts, which
    are there, weights, totals and accounts.

    Reference: views that cover the array and do not overlap, in tests/test_rounds.py.
    """
    x = SCALARS + (n if experts > 0 else 0)
    X = x + descents * n
    Y = X + descents * n
    before = Y + descents * n
    steps = before + descents * 3 * factors
    sums = steps + descents * SUMS
    gradients = sums + 2 * (1 + cells) * n
    sharp = gradients + 2 * n
    Z = sharp + experts * n
    awake, p, totals = Z + experts, Z + 2 * experts, Z + 3 * experts
    return (
        numbers[:SCALARS],
        numbers[SCALARS:x],
        numbers[x:X].reshape((descents, n)),
        numbers[X:Y].reshape((descents, n)),
        numbers[Y:before].reshape((descents, n)),
        numbers[before:steps].reshape((descents, 3, factors)),
        numbers[steps:sums].reshape((descents, SUMS)),
        numbers[sums:gradients].reshape((2, 1 + cells, n)),
        numbers[gradients:sharp].reshape((2, n)),
        numbers[sharp:Z].reshape((experts, n)),
        numbers[Z:awake],
        numbers[awake:p],
        numbers[p:totals],
        numbers[totals : totals + ACCOUNTS * experts].reshape((ACCOUNTS, experts)),
    )


@kernel
def rounds(  # type: ignore[no-untyped-def]
    first, k, offset, begun, count, filled, given, record, advice_floats, advice_ints, past_costs,
    past_capacities, state, origin, shares_of_rounds, weights, starts, indices, values, gram,
    loss_kind, loss_A, loss_b, loss_count, limit_kind, limit_A, limit_b, limit_count, columns,
):  # fmt: skip
    """Play rounds `first` to `first + k - 1`, in place; returns how many are done, a code, and
    the rows of the table, `count` before. The point of the first of them is x, where experts are
    mixed; with k = 0 it becomes that, and no round is played. What is given or recorded of each
    round has it at row `offset`, and `begun` is the round of a run that the functions begin with,
    below 0 if nothing is recorded.

    `given` has what `held` says, and `record` what `recorded` does. Then come what `resolve` reads
    (resolving.py), the state (`parts`), and where large.py reads it in the first round, if that is
    elsewhere; the table of vertices, the two batches as evaluate.py has them, and columns.
    Reference implementations: `LyapunovDescent` and `Ensemble` without their kernels, round by
    round, in tests/test_rounds.py.
    """
    (
        kernels, settings, scales, precedence, center, places, radii, diameters, kernel_data,
        floats, ints, at, order, answer_indices, answer_values, buffers, pieces, slopes_of_rows,
        slopes, losses, shares, squares, etas,
    ) = held(given)[:LANES]  # fmt: skip
    (
        marks, last, total, means, ends, points, each, when, used, used_when, samples, measures,
    ) = recorded(record)  # fmt: skip
    experts, plain = int(settings[EXPERTS]), int(settings[PLAIN])
    longest, cells = int(settings[LONGEST]), len(scales) - plain
    permanent = int(settings[PERMANENT])
    s, x, X, Y, before, steps, sums, gradient_sums, sharp, Z, awake, p, totals, accounts = parts(
        state, len(center), len(radii), len(scales), cells, experts
    )
    x = x if experts > 0 else X[0]  # one descent alone is played as it is
    rows = (starts, indices, values)
    answer = (answer_indices, answer_values)
    work = (buffers[0], buffers[1], slopes_of_rows)
    gradients, along = buffers[2:4], buffers[4:6]
    tol, records = settings[TOLERANCE2], begun >= 0
    numbers = (tol, float(CORRECTIVE_STEPS), CORRECTIVE_GAP * tol, settings[MARGIN])
    dimension, advised = int(settings[DIMENSION]), kernels[AT_RESOLVE] != 0
    exact, at[COUNT] = kernels[AT_PROJECT] != 0, count
    for i in range(permanent, plain):
        shares[i] = 0.0 if totals[i] == np.inf else 1.0  # not begun yet
    is_large = kernels[AT_LARGE] != 0 and loss_kind in ONE_ROW and limit_kind in ONE_ENTRY
    for i in range(max(k, 1)):
        t, row = first + i, offset + i
        for j in range(cells):
            shares[plain + j] = shares_of_rounds[row, j]
        is_new, code = s[HALF_WAY] == 0.0, OTHER
        if is_new and is_large and k > 0:
            code = large(
                kernels[AT_LARGE], t, records, given, state,
                origin[: 0 if i > 0 else len(origin)], loss_A, limit_kind, limit_A, limit_b,
                columns[row],
            )  # fmt: skip
            s[SERVED], order[0] = 1.0, 0
            if code == UNUSUAL:
                return i, code, int(at[COUNT])
        if is_new and code == OTHER:
            if (i > 0 or k == 0) and experts > 0:
                mix(X, shares, plain, Z, awake, totals, s[GAP], p, x)
            if k == 0:
                break
            loss = evaluate(loss_kind, loss_A, loss_b, loss_count, t, x, pieces, gradients[0])
            value = evaluate(limit_kind, limit_A, limit_b, limit_count, t, x, pieces, gradients[1])
            if not (abs(loss) <= MOST and abs(value) <= MOST):
                return i, UNUSUAL, int(at[COUNT])
            several = 2 if value > 0.0 else 1
            tangents(kernels[AT_TANGENTS], gradients, several, floats, ints, along)
            limit_norm = 0.0
            for which in range(several):
                norm2 = dot(gradients[which], gradients[which])
                along2, most = dot(along[which], along[which]), settings[LOSS_MOST + which]
                slopes[which] = slope_of(norm2, along2, most, settings[RADIUS])
                if slopes[which] == 0.0:  # only rounding is left of it, if anything
                    fill(along[which], 0.0)
                too_small = norm2 == 0.0 and not vanishes(gradients[which])
                if too_small or slopes[which] < 0.0:
                    return i, UNUSUAL, int(at[COUNT])
                limit_norm = math.sqrt(norm2)
                if slopes[which] * slopes[which] < ACROSS * norm2:
                    # what rounding left of a large part across aff(K) is large beside the rest
                    copy_to(along[which], gradients[which])
                    if slopes[which] > 0.0:
                        tangents(kernels[AT_TANGENTS], gradients, several, floats, ints, along)
            columns[row, LOSS], columns[row, VALUE] = loss, value
            exponent = s[EXPONENT]
            penalty_value = weigh(
                s, settings, value, limit_norm, along, slopes, x, center, shares[plain:],
                gradient_sums, sharp,
            )  # fmt: skip
            if s[EXPONENT] != exponent:
                rescale(s, exponent, steps, totals, accounts)
            if experts > 0:
                account(along[0], x, Z, awake, p, accounts, losses, work[0])
                if settings[VALUED] > 0.0:
                    V = math.ldexp(1.0 / settings[CAUTION], -int(s[EXPONENT]))
                    w = current_weight(s, settings)
                    value_experts(
                        t, V, w, loss, max(value, 0.0), (loss_kind, loss_A, loss_b, loss_count),
                        (limit_kind, limit_A, limit_b, limit_count), Z, awake, accounts, pieces,
                        work[0],
                    )  # fmt: skip
                hedge(s, totals, losses)
            step_experts(
                along[0], along[1], penalty_value, value > 0.0, x, center, settings, places, radii,
                diameters, Y, steps, sums, scales, shares, squares, etas,
            )  # fmt: skip
            if permanent < plain and dot(along[0], along[0]) > 0.0:
                step_sums(
                    along[0], along[1], penalty_value, value > 0.0, x, center, permanent, plain,
                    places, diameters, X, Y, steps, scales, shares, squares, work[0],
                )  # fmt: skip
            s[SERVED] = order_of(X, Y, p, shares, precedence, settings, order)
            for j in range(int(s[SERVED])):
                copy_to(Y[order[j]], before[order[j]])
        if is_new and records:
            now, value = t + begun, columns[row, VALUE]
            columns[row, APART], columns[row, SPENT] = sums[longest, APART_OF], 0.0
            if each.shape[1] > 0 and value > 0.0:
                count_limits(now, pieces[: each.shape[1]], value, each, when)
            if len(used) > 0:
                note_peaks(limit_kind, limit_A, limit_b, t, now, x, pieces, used, used_when)
            columns[row, CHURN] = record_point(now, x, last, total, means, ends, marks, along[0])
            off = infeasibility(kernels[AT_INFEASIBILITY], x, floats, ints)
            if not off <= marks[INFEASIBILITY]:
                marks[INFEASIBILITY] = off
            if len(points) > 0:
                copy_to(x, points[row])
            for j in range(measures.shape[1]):
                measures[row, j] = p[j]
        if is_new:
            s[ORACLE_BUDGET] += settings[CALLS_EARNED]
            at[CALLS], at[BUDGET], at[LAST] = 0.0, math.floor(s[ORACLE_BUDGET] + 1e-9), 0.0
            at[WAITING], s[HALF_WAY], s[AT_EXPERT] = 0.0, 1.0, 0.0
            at[READY] = code == PLAYED
        while s[AT_EXPERT] < s[SERVED]:
            own = order[int(s[AT_EXPERT])]
            if exact:
                project(kernels[AT_PROJECT], Y[own], floats, ints, X[own])
                if not permanent <= own < plain:
                    copy_to(X[own], Y[own])
                sums[own, APART_OF], sums[own, CALLS_OF], sums[own, MOVED_OF] = 0.0, 0.0, 1.0
                s[AT_EXPERT] += 1.0
                continue
            code = nearest_member(
                kernels[AT_ORACLE], rows, gram, filled, weights[own], X[own], Y[own], kernel_data,
                answer, work, numbers, at,
            )  # fmt: skip
            filled = max(filled, int(at[COUNT]))
            if code != DONE:
                return i, code, int(at[COUNT])
            sums[own, CALLS_OF], sums[own, MOVED_OF] = at[CALLS], at[LAST]
            if permanent <= own < plain:
                copy_to(before[own], Y[own])
            sums[own, APART_OF] = math.sqrt(at[DISTANCE2])
            s[ORACLE_BUDGET] -= at[CALLS]
            s[ALL_CALLS] += at[CALLS]
            s[AT_EXPERT] += 1.0
            if experts > 0:
                accounts[CALLS_BY, min(own, plain)] += at[CALLS]
            columns[row, SPENT] += at[CALLS] if records else 0.0
            at[CALLS], at[BUDGET], at[LAST] = 0.0, math.floor(s[ORACLE_BUDGET] + 1e-9), 0.0
            at[READY] = 0.0
            if at[USED] > dimension + 1 + SPARE:
                return i, TOO_MANY, int(at[COUNT])
        s[HALF_WAY], code = 0.0, PLAYED
        count = int(at[COUNT])
        if count > IDLE and idle_rows(weights, count) > IDLE:
            code = LOOK
        moved, apart, solved = sums[longest, MOVED_OF], sums[longest, APART_OF], 0
        if records and code == PLAYED and not audit(
            s, settings, apart, moved, X[longest], Y[longest], before[longest], center, marks,
            samples,
        ):  # fmt: skip
            code = ENOUGH
        if advised:
            solved = resolve(
                kernels[AT_RESOLVE], kernels[AT_SOLVE], t, loss_A, limit_A, Z, awake,
                advice_floats, advice_ints, past_costs, past_capacities,
            )  # fmt: skip
            columns[row, SOLVED], s[UNADVISED] = solved, 1.0 if solved < 0 else 0.0
        if code != PLAYED or solved < 0:
            return i + 1, code, count
    return k, PLAYED, int(at[COUNT])
