"""Whole rounds of a descent in one compiled pass: evaluate, weigh, step, project, record.

    value and gradient of f_t, g_t at x             (evaluate.py)
    g = V grad f + w grad g^+ within aff(K)         weights of methods/steps/lyapunov.py
    y <- ball( y - eta g, softened past a limit )   methods/steps/adagrad.py, overshoot.py
    x, y <- a member near y, on the bank of calls   (active_set.py)

`rounds` plays as many as it is told, or comes back before: with UNUSUAL where a gradient is one
that needs a sentence, or a second look (nothing of that round has happened); with NO_ROOM,
TABLE_TAKEN or BAD_ORACLE in the middle of a projection, to be called again; with LOOK after a round
whose active set is to be made smaller, and whose projection is still to be checked; with ENOUGH
where its sample of projections is full. A single live round is the same machine code, so it has the
same bits. Kernels of sets are given to these, in the place of those that only stand for them and
have no twin.
"""

from __future__ import annotations

import math

import numpy as np

from tidewolf.core.jit import kernel
from tidewolf.kernels.active_set import (
    BUDGET,
    CALLS,
    COUNT,
    DISTANCE2,
    DONE,
    LAST,
    USED,
    dot,
)
from tidewolf.kernels.evaluate import evaluate
from tidewolf.kernels.simplices import added

PLAYED, UNUSUAL, LOOK, ENOUGH = 0, 10, 11, 12
"""What `rounds` comes back with, beside the codes of active_set.py."""

ROUNDS, VIOLATION, LOSS_SLOPE, LIMIT_SLOPE, LEAST_RATIO, EXPONENT, PAID, LOSS_AT = range(8)
IMPOSSIBLE, ORACLE_BUDGET, ALL_CALLS, SQUARES, INVERSE_STEP, LIMIT_AT, LARGEST, DISTANCE = range(
    8, 16
)
MOVED, HALF_WAY = 16, 17
SCALARS = 18
"""What a descent remembers: the dual state with the sums of methods/certificate.py, the bank, the
sums of the steps, |x - y|; whether the last projection moved y; whether a round is in the middle of
its projection.
"""

CAUTION, HORIZON, LOSS_MOST, LIMIT_MOST, RADIUS, DIAMETER, CALLS_EARNED, TOLERANCE2 = range(8)
SCALE, KEEP, CENTER_NORM, MARGIN, DIMENSION, RECORDS, FIRST = range(8, 15)
SETTINGS = 15
"""Its settings; `FIRST` is the round of a run that the functions begin with."""

LOSS, VALUE, APART, SPENT, CHURN = range(5)
COLUMNS = 5
"""Of a round are recorded its loss, the constraint's value, |x - y|, oracle calls and movement."""

INFEASIBILITY, WORST_DISTANCE, WORST_TOLERANCE, WORST_CENTER, UPDATES, MOVES = range(6)
STRIDE, STORED, PART = range(6, 9)
MARKS = 9
"""What is recorded of all of them: the worst of each check, and how many there were; of every
`STRIDE`th projection that moves y, x, y and where it came from; the part whose mean is due.
"""

THETA, EXPONENTS, GROWTH = 0.5, 256.0, 2.0
LEAST, MOST, ACROSS = 1e-140, 1e140, 1e-4
EPS = float(np.finfo(np.float64).eps)
SLACK, CONVEX_SLACK, BROKEN = 1e3 * EPS, 16.0 * EPS, 1e-9
SPARE = 32
CORRECTIVE_STEPS, CORRECTIVE_GAP = 30, 0.1
LN2 = math.log(2.0)


@kernel
def nearest_member(  # type: ignore[no-untyped-def]
    rows, gram, filled, weights, x, y, kernel_data, answer, work, numbers, at
):
    """Stands for that of active_set.py with a set's oracle in it."""
    raise NotImplementedError


@kernel
def tangents(d, count, floats, ints, out):  # type: ignore[no-untyped-def]
    """Stands for the parts within aff(K) of the first `count` rows of d, of a set."""
    raise NotImplementedError


@kernel
def infeasibility(x, floats, ints):  # type: ignore[no-untyped-def]
    """Stands for how far x is outside a set."""
    raise NotImplementedError


@kernel
def vanishes(gradient):  # type: ignore[no-untyped-def]
    """Whether all entries are 0, and not only too small to be squared.

    Naive twin: `numpy.any`, in tests/test_rounds.py.
    """
    size = 0.0
    for e in range(len(gradient)):
        size = max(size, abs(gradient[e]))
    return size == 0.0


@kernel
def slope_of(norm2, along2, most, radius):  # type: ignore[no-untyped-def]
    """The slope of a gradient of square `norm2` whose part within aff(K) has the square `along2`; 0
    where only rounding is left of that, -1 where the gradient is no usual one.

    Naive twin: `tangent_part` of methods/steps/slopes.py.
    """
    if norm2 == 0.0:
        return 0.0
    if not LEAST * LEAST <= norm2 <= MOST * MOST:
        return -1.0
    if along2 <= SLACK * SLACK * norm2:
        return 0.0
    slope = math.sqrt(along2)
    if slope > most * (1.0 + 1e-9) or not LEAST <= slope * radius <= MOST:
        return -1.0
    return slope


@kernel
def slope_within(norm2, along, most, radius):  # type: ignore[no-untyped-def]
    """The same of `along` itself, which becomes 0 where only rounding is left of it.

    Naive twin: `tangent_part` of methods/steps/slopes.py.
    """
    slope = slope_of(norm2, dot(along, along), most, radius)
    if slope == 0.0 and norm2 > 0.0:
        along[:] = 0.0
    return slope


@kernel
def weighed(s, settings, violation, limit_norm, slopes):  # type: ignore[no-untyped-def]
    """The ledger after a round; returns V and w, by which gradients are multiplied, and the
    violation that counts.

    Naive twin: `LyapunovWeights.weigh` of methods/steps/lyapunov.py.
    """
    s[ROUNDS] += 1.0
    s[LOSS_SLOPE] = max(s[LOSS_SLOPE], slopes[0])
    V = 1.0 / settings[CAUTION]
    if violation <= 0.0:
        return math.ldexp(V, -int(s[EXPONENT])), 0.0, 0.0
    slope = max(s[LIMIT_SLOPE], slopes[1])
    s[LIMIT_SLOPE] = slope
    reach, w, exponent = slope * settings[DIAMETER], 0.0, s[EXPONENT]
    rounding = CONVEX_SLACK * limit_norm * settings[CENTER_NORM]
    if violation > reach * (1.0 + math.sqrt(EPS)) + rounding:
        s[IMPOSSIBLE] = 1.0
    breach = min(violation, reach)
    s[VIOLATION] += breach
    if reach > 0.0:
        ratio = s[LOSS_SLOPE] / slope if s[LOSS_SLOPE] > 0.0 else 1.0
        s[LEAST_RATIO] = min(s[LEAST_RATIO], ratio)
        growth = THETA * math.pow(max(s[ROUNDS], settings[HORIZON]), -0.5)
        log2 = growth * s[VIOLATION] / (GROWTH * reach) / LN2
        exponent += EXPONENTS * max(0.0, math.floor((log2 - exponent) / EXPONENTS))
        w = THETA * ratio * 2.0 ** (log2 - exponent)
    unit = math.ldexp(1.0, int(s[EXPONENT] - exponent))
    s[EXPONENT], s[PAID] = exponent, s[PAID] * unit + w * breach
    s[SQUARES] *= unit * unit
    s[INVERSE_STEP] *= unit
    s[LIMIT_AT] *= unit
    s[LARGEST] *= unit
    return math.ldexp(V, -int(exponent)), w, breach


@kernel
def weigh(  # type: ignore[no-untyped-def]
    s, settings, violation, limit_norm, along, slopes, x, center, gradient_sums
):
    """The dual state after a round at x, its surrogate in along[0] and the limits' part of it in
    along[1], both gradients added to their sums; returns what limits say at x, w h.

    Naive twin: `LyapunovWeights.weigh` of methods/steps/lyapunov.py.
    """
    exponent = s[EXPONENT]
    V, w, breach = weighed(s, settings, violation, limit_norm, slopes)
    f, g, F, W = along[0], along[1], gradient_sums[0], gradient_sums[1]
    s[LOSS_AT] += dot(f, x) - dot(f, center)
    for i in range(len(f)):
        F[i] += f[i]
    if violation <= 0.0:
        for i in range(len(f)):
            f[i] = V * f[i]
        return 0.0
    unit = math.ldexp(1.0, int(exponent - s[EXPONENT]))
    for i in range(len(f)):
        g[i] = w * g[i]
        f[i] = V * f[i] + g[i]
        W[i] = unit * W[i] + g[i]
    s[LIMIT_AT] += dot(g, x) - dot(g, center)
    return w * breach


@kernel
def step_of(s, settings, norm2):  # type: ignore[no-untyped-def]
    """The sums after a step along a gradient of square `norm2`; returns eta.

    Naive twin: `Descent.stepped` of methods/descent.py.
    """
    D = min(2.0 * settings[RADIUS], settings[DIAMETER] + s[DISTANCE])
    S = s[SQUARES] + norm2
    sigma = max(s[INVERSE_STEP], math.sqrt(0.5 * S) / (settings[SCALE] * D))
    s[SQUARES], s[INVERSE_STEP] = S, sigma
    if norm2 > s[LARGEST] * s[LARGEST]:
        s[LARGEST] = math.sqrt(norm2)
    return 0.5 / sigma


@kernel
def descend(  # type: ignore[no-untyped-def]
    s, settings, x, y, g, penalty, penalty_value, broken, center
):
    """y after a step along -g from y, in place, and the sums with it.

    Naive twin: `Descent.stepped` of methods/descent.py.
    """
    norm2 = dot(g, g)
    if not norm2 > 0.0:
        return
    eta = step_of(s, settings, norm2)
    for i in range(len(y)):
        y[i] -= eta * g[i]
    if broken:
        past, penalty2 = -penalty_value - (dot(penalty, y) - dot(penalty, x)), dot(penalty, penalty)
        if past > 0.0 and penalty2 > 0.0:
            back = (1.0 - settings[KEEP]) * min(eta, past / penalty2)
            for i in range(len(y)):
                y[i] += back * penalty[i]
    for i in range(len(y)):
        g[i] = y[i] - center[i]
    length = math.sqrt(dot(g, g))
    if length > settings[RADIUS]:
        share = settings[RADIUS] / length
        for i in range(len(y)):
            y[i] = center[i] + share * g[i]


@kernel
def count_limits(t, limits, each, when):  # type: ignore[no-untyped-def]
    """By how much each limit of a round was broken, added to `each`; `when` has rows for how often,
    the worst round, the first and the last; the worst breach is each[1].

    Naive twin: `Breaches` of evaluation/limits.py.
    """
    size = 0.0
    for i in range(len(limits)):
        size = max(size, abs(limits[i]))
    for i in range(len(limits)):
        if limits[i] > 0.0:
            each[0, i] += limits[i]
            if limits[i] > BROKEN * size:
                when[0, i] += 1
                if when[2, i] < 0:
                    when[2, i] = t
                when[3, i] = t
                if limits[i] > each[1, i]:
                    each[1, i], when[1, i] = limits[i], t


@kernel
def record_point(t, x, last, total, means, ends, marks, scratch):  # type: ignore[no-untyped-def]
    """How far x, played in round t, is from the last point, half the sum of the changes; x is the
    last then, and is added to the total, which at the end of a part becomes its mean.

    Naive twin: `Movement` and `TrajectorySummary` of the evaluation.
    """
    for i in range(len(x)):
        scratch[i] = abs(x[i] - last[i])
        last[i] = x[i]
        total[i] += x[i]
    moved = added(scratch)
    part = int(marks[PART])
    if t + 1 == ends[part]:
        begin = ends[part - 1] if part else 0
        for i in range(len(x)):
            means[part, i] = total[i] / (t + 1 - begin)
            total[i] = 0.0
        marks[PART] += 1.0
    return 0.5 * moved if t > 0 else 0.0


@kernel
def audit(  # type: ignore[no-untyped-def]
    s, settings, x, y, before, center, marks, samples, scratch
):
    """The checks of a projection: |x - y| is what is said of it, within tolerance while calls are
    left, and y was brought no farther from the center. Some are stored, to be asked about; returns
    whether there is room for more.

    Naive twin: `Audit.see` of evaluation/certificate.py.
    """
    unit = settings[RADIUS]
    for i in range(len(x)):
        scratch[i] = x[i] - y[i]
    apart2 = dot(scratch, scratch)
    marks[UPDATES] += 1.0
    off = abs(apart2 - s[DISTANCE] ** 2) / unit
    if not off <= marks[WORST_DISTANCE]:
        marks[WORST_DISTANCE] = off
    if math.floor(s[ORACLE_BUDGET] + 1e-9) >= 1.0:
        over = (apart2 - settings[TOLERANCE2]) / unit
        if not over <= marks[WORST_TOLERANCE]:
            marks[WORST_TOLERANCE] = over
    if s[MOVED] > 0.0:
        for i in range(len(x)):
            scratch[i] = y[i] - center[i]
        nearer = dot(scratch, scratch)
        for i in range(len(x)):
            scratch[i] = before[i] - center[i]
        nearer -= dot(scratch, scratch)
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
def rounds(  # type: ignore[no-untyped-def]
    first,
    k,
    settings,
    s,
    at,
    x,
    y,
    before,
    gradient_sums,
    weights,
    center,
    starts,
    indices,
    values,
    gram,
    filled,
    loss_kind,
    loss_A,
    loss_b,
    loss_count,
    limit_kind,
    limit_A,
    limit_b,
    limit_count,
    kernel_data,
    floats,
    ints,
    answer_indices,
    answer_values,
    buffers,
    pieces,
    slopes_of_rows,
    chosen,
    columns,
    marks,
    last,
    total,
    means,
    ends,
    points,
    each,
    when,
    samples,
):
    """Play rounds `first` to `first + k - 1`, in place; returns how many are done, a code, and
    the rows of the table.

    After the settings, the numbers of the descent and those of a projection (`at`) come its points,
    the table of vertices, the two batches as evaluate.py has them, what the set's kernels read,
    scratch, and what is recorded; one by one, for numba takes far longer to look into tuples. Naive
    twin: `LyapunovDescent` without its kernel, round by round, in tests/test_rounds.py.
    """
    rows = (starts, indices, values)
    answer = (answer_indices, answer_values)
    work = (buffers[0], buffers[1], slopes_of_rows, chosen)
    gradients, along = buffers[2:4], buffers[4:6]
    tol, records = settings[TOLERANCE2], settings[RECORDS] > 0.0
    numbers = (tol, CORRECTIVE_STEPS, CORRECTIVE_GAP * tol, settings[MARGIN])
    slopes = np.zeros(2)
    for i in range(k):
        t = first + i
        if s[HALF_WAY] == 0.0:
            loss = evaluate(loss_kind, loss_A, loss_b, loss_count, t, x, pieces, gradients[0])
            value = evaluate(limit_kind, limit_A, limit_b, limit_count, t, x, pieces, gradients[1])
            if not (abs(loss) <= MOST and abs(value) <= MOST):
                return i, UNUSUAL, int(at[COUNT])
            count = 2 if value > 0.0 else 1
            tangents(gradients, count, floats, ints, along)
            limit_norm = 0.0
            for which in range(count):
                norm2 = dot(gradients[which], gradients[which])
                most = settings[LOSS_MOST + which]
                slopes[which] = slope_within(norm2, along[which], most, settings[RADIUS])
                too_small = norm2 == 0.0 and not vanishes(gradients[which])
                if too_small or slopes[which] < 0.0:
                    return i, UNUSUAL, int(at[COUNT])
                limit_norm = math.sqrt(norm2)
                if slopes[which] * slopes[which] < ACROSS * norm2:
                    # what rounding left of a large part across aff(K) is large beside the rest
                    for e in range(len(x)):
                        gradients[which, e] = along[which, e]
                    if slopes[which] > 0.0:
                        tangents(gradients, count, floats, ints, along)
            columns[i, LOSS], columns[i, VALUE] = loss, value
            if records:
                now = t + int(settings[FIRST])
                columns[i, APART], columns[i, SPENT] = s[DISTANCE], 0.0
                if each.shape[1] > 0 and value > 0.0:
                    count_limits(now, pieces[: each.shape[1]], each, when)
                columns[i, CHURN] = record_point(now, x, last, total, means, ends, marks, work[0])
                off = infeasibility(x, floats, ints)
                if not off <= marks[INFEASIBILITY]:
                    marks[INFEASIBILITY] = off
                if len(points) > 0:
                    for e in range(len(x)):
                        points[i, e] = x[e]
            penalty_value = weigh(
                s, settings, value, limit_norm, along, slopes, x, center, gradient_sums
            )
            descend(s, settings, x, y, along[0], along[1], penalty_value, value > 0.0, center)
            for e in range(len(x)):
                before[e] = y[e]
            s[ORACLE_BUDGET] += settings[CALLS_EARNED]
            at[CALLS], at[BUDGET], at[LAST] = 0.0, math.floor(s[ORACLE_BUDGET] + 1e-9), 0.0
            s[HALF_WAY] = 1.0
        code = nearest_member(
            rows, gram, filled, weights, x, y, kernel_data, answer, work, numbers, at
        )
        filled = max(filled, int(at[COUNT]))
        if code != DONE:
            return i, code, int(at[COUNT])
        s[HALF_WAY] = 0.0
        s[ORACLE_BUDGET] -= at[CALLS]
        s[ALL_CALLS] += at[CALLS]
        s[DISTANCE], s[MOVED] = math.sqrt(at[DISTANCE2]), at[LAST]
        if records:
            columns[i, SPENT] = at[CALLS]
        count, used = int(at[COUNT]), int(at[USED])
        dimension = int(settings[DIMENSION])
        if used > dimension + 1 + SPARE:
            return i + 1, LOOK, count
        asked = at[CALLS] > 0.0 or count > dimension + 1 + SPARE
        if asked and count > used + max(used + 2 * SPARE, dimension // 2):
            return i + 1, LOOK, count
        if records and not audit(s, settings, x, y, before, center, marks, samples, work[0]):
            return i + 1, ENOUGH, count
    return k, PLAYED, int(at[COUNT])
