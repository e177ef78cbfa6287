"""Steps of descents along their sums of gradients, as kernels/rounds.py takes them; the mathematics
is in methods/steps/adagrad.py.
"""

import math

from tidewolf.core.jit import kernel
from tidewolf.kernels.active_set import dot


@kernel
def squares_of(d, places, squares):  # type: ignore[no-untyped-def]
    """|d_b|^2 of every factor b, which has the entries places[b] up to places[b + 1].

    Reference: sums of squares, in tests/test_rounds.py.
    """
    if len(squares) == len(d):
        for e in range(len(d)):
            squares[e] = d[e] * d[e]
    elif len(squares) == 1:
        squares[0] = dot(d, d)
    else:
        for b in range(len(squares)):
            total = 0.0
            for e in range(places[b], places[b + 1]):
                total += d[e] * d[e]
            squares[b] = total


@kernel
def step_sums(  # type: ignore[no-untyped-def]
    g, penalty, penalty_value, broken, played, center, first, end, places, diameters, X, Y, steps,
    scales, shares, squares, fed,
):  # fmt: skip
    """Y of the descents from `first` up to `end` after a step from the center along their sum of
    gradients, without the limits' part if their own points satisfy these.

    Reference: `step_along_sum` of methods/steps/adagrad.py.
    """
    for i in range(first, end):
        if shares[i] == 0.0:
            continue
        S, sigma, largest, y = steps[i, 0], steps[i, 1], steps[i, 2], Y[i]
        without = broken and penalty_value + dot(penalty, X[i]) - dot(penalty, played) <= 0.0
        for e in range(len(g)):
            fed[e] = g[e] - penalty[e] if without else g[e]
        squares_of(fed, places, squares)
        for b in range(len(squares)):
            S[b] += squares[b]
            largest[b] = max(largest[b], math.sqrt(squares[b]))
            before, eta = sigma[b], 0.0
            if S[b] > 0.0 and diameters[b] > 0.0:
                sigma[b] = max(before, math.sqrt(0.5 * S[b]) / (scales[i] * diameters[b]))
                eta = 0.5 / sigma[b]
            for e in range(places[b], places[b + 1]):
                y[e] = center[e] - eta * fed[e] + 2.0 * eta * before * (y[e] - center[e])
