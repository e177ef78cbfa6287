"""The members of an ensemble in one compiled pass: their steps along one gradient, and their
projections on one table of vertices and one bank of oracle calls.

    y_i <- ball( y_i - eta_i phi_i g, softened together within a group )     methods/steps/group.py
    x_i, y_i <- a member near y_i, those first who are trusted and far from their companions
"""

from __future__ import annotations

import math

import numpy as np

from tidewolf.core.jit import kernel
from tidewolf.kernels.active_set import BUDGET, CALLS, COUNT, DISTANCE2, DONE, LAST, USED, dot
from tidewolf.kernels.rounds import (
    CORRECTIVE_GAP,
    CORRECTIVE_STEPS,
    DIAMETER,
    DIMENSION,
    KEEP,
    MARGIN,
    RADIUS,
    SPARE,
    TOLERANCE2,
    nearest_member,
)

SQUARES_OF, INVERSE_OF, LARGEST_OF, APART_OF, CALLS_OF, MOVED_OF = range(6)
SUMS = 6
"""What a member of an ensemble remembers of its steps, and how its last projection went."""
STEPPED, AT, MEMBER_ORACLE_BUDGET, RESERVED = range(4)
PROGRESS = 4
"""Whether steps were taken, how many members are projected, the bank, calls kept for others."""
TOO_MANY = 13
"""What `move_experts` comes back with where a member has more atoms than it may have."""


@kernel
def step_experts(  # type: ignore[no-untyped-def]
    g, penalty, penalty_value, broken, played, center, settings, Y, sums, scales, shares, groups
):
    """Every member's companion, Y, after its step along -share g, with the sums: those of a group
    give back together what lands past a limit.

    Naive twin: `descend_together` of methods/steps/group.py, and `into_ball`.
    """
    norm2, penalty2, experts = dot(g, g), dot(penalty, penalty), len(Y)
    if not norm2 > 0.0:
        return
    etas, n = np.zeros(experts), len(g)
    for i in range(experts):
        share = shares[i]
        D = min(2.0 * settings[RADIUS], settings[DIAMETER] + sums[i, APART_OF])
        own2 = share * share * norm2
        S, before = sums[i, SQUARES_OF] + own2, sums[i, INVERSE_OF]
        sigma = max(before, math.sqrt(0.5 * S) / (scales[i] * D))
        etas[i] = 0.5 / sigma
        for e in range(n):
            Y[i, e] -= etas[i] * share * g[e]
        sums[i, SQUARES_OF], sums[i, INVERSE_OF] = S, sigma
        if own2 > sums[i, LARGEST_OF] * sums[i, LARGEST_OF]:
            sums[i, LARGEST_OF] = math.sqrt(own2)
    if broken and penalty2 > 0.0:
        first = 0
        while first < experts:
            end, past, square = first, dot(penalty, played) - penalty_value, 0.0
            while end < experts and groups[end] == groups[first]:
                past -= shares[end] * dot(penalty, Y[end])
                square += etas[end] * shares[end] * shares[end] * penalty2
                end += 1
            if past > 0.0 and square > 0.0:
                back = (1.0 - settings[KEEP]) * min(1.0, past / square)
                for i in range(first, end):
                    for e in range(n):
                        Y[i, e] += back * etas[i] * shares[i] * penalty[e]
            first = end
    for i in range(experts):
        length2 = 0.0
        for e in range(n):
            length2 += (Y[i, e] - center[e]) * (Y[i, e] - center[e])
        if length2 > settings[RADIUS] * settings[RADIUS]:
            share = settings[RADIUS] / math.sqrt(length2)
            for e in range(n):
                Y[i, e] = center[e] + share * (Y[i, e] - center[e])


@kernel
def order_of(X, Y, trust, order):  # type: ignore[no-untyped-def]
    """Whom the bank serves first: those who are trusted and far from their companions; ties in the
    order of the members.

    Naive twin: `sorted`, in tests/test_rounds.py.
    """
    experts = len(trust)
    urgency = np.empty(experts)
    for i in range(experts):
        apart2 = 0.0
        for e in range(X.shape[1]):
            apart2 += (Y[i, e] - X[i, e]) * (Y[i, e] - X[i, e])
        urgency[i] = trust[i] if trust[i] == np.inf else trust[i] * math.sqrt(apart2)
        k = i
        while k > 0 and urgency[order[k - 1]] < urgency[i]:
            order[k] = order[k - 1]
            k -= 1
        order[k] = i


@kernel
def move_experts(  # type: ignore[no-untyped-def]
    settings,
    at,
    progress,
    g,
    penalty,
    penalty_value,
    broken,
    played,
    center,
    X,
    Y,
    before,
    weights,
    sums,
    scales,
    shares,
    groups,
    trust,
    order,
    starts,
    indices,
    values,
    gram,
    filled,
    kernel_data,
    answer_indices,
    answer_values,
    buffers,
    slopes_of_rows,
    chosen,
):
    """All members of an ensemble after a round whose gradient is g, in place: their steps, then
    their projections on one table and one bank. Comes back with DONE, NO_ROOM, TABLE_TAKEN or
    BAD_ORACLE, or with TOO_MANY after the projection of a member, to go on where it was.

    Naive twin: `Ensemble` without its kernel, in tests/test_rounds.py.
    """
    tol, dimension = settings[TOLERANCE2], int(settings[DIMENSION])
    numbers = (tol, CORRECTIVE_STEPS, CORRECTIVE_GAP * tol, settings[MARGIN])
    rows, answer = (starts, indices, values), (answer_indices, answer_values)
    work = (buffers[0], buffers[1], slopes_of_rows, chosen)
    if progress[STEPPED] == 0.0:
        step_experts(
            g,
            penalty,
            penalty_value,
            broken,
            played,
            center,
            settings,
            Y,
            sums,
            scales,
            shares,
            groups,
        )
        for i in range(len(Y)):
            for e in range(Y.shape[1]):
                before[i, e] = Y[i, e]
        order_of(X, Y, trust, order)
        progress[STEPPED] = 1.0
        at[CALLS], at[LAST] = 0.0, 0.0
        at[BUDGET] = max(
            0.0, math.floor(progress[MEMBER_ORACLE_BUDGET] + 1e-9) - progress[RESERVED]
        )
    while progress[AT] < len(order):
        i = order[int(progress[AT])]
        code = nearest_member(
            rows, gram, filled, weights[i], X[i], Y[i], kernel_data, answer, work, numbers, at
        )
        filled = max(filled, int(at[COUNT]))
        if code != DONE:
            return code
        sums[i, CALLS_OF], sums[i, MOVED_OF] = at[CALLS], at[LAST]
        sums[i, APART_OF] = math.sqrt(at[DISTANCE2])
        progress[MEMBER_ORACLE_BUDGET] -= at[CALLS]
        progress[AT] += 1.0
        at[CALLS], at[LAST] = 0.0, 0.0
        at[BUDGET] = max(
            0.0, math.floor(progress[MEMBER_ORACLE_BUDGET] + 1e-9) - progress[RESERVED]
        )
        if at[USED] > dimension + 1 + SPARE:
            return TOO_MANY
    return DONE
