"""Weights of experts and the mean of their points, as kernels/rounds.py takes them; the mathematics
is in methods/steps/hedge.py.
"""

import math

import numpy as np

from tidewolf.core.jit import kernel
from tidewolf.kernels.active_set import copy_to


@kernel
def mean_of(p, Z, low, high, x):  # type: ignore[no-untyped-def]
    """sum_i p_i z_i over the rows from `low` up to `high` with weight, in x; a row itself where
    they all are the same. Reference: `mixed` of learners/state.py.
    """
    first, same, n = -1, True, len(x)
    for i in range(low, high):
        if p[i] > 0.0:
            first, e = i if first < 0 else first, 0
            while same and e < n:
                same, e = Z[i, e] == Z[first, e], e + 1
    for e in range(n):
        x[e] = Z[first, e] if same and first >= 0 else 0.0
    for i in range(low, high):
        if p[i] > 0.0 and not same:
            for e in range(n):
                x[e] += p[i] * Z[i, e]


@kernel
def mix(X, shares, plain, Z, awake, totals, gap, p, x):  # type: ignore[no-untyped-def]
    """The descents' points among the proposals Z, weights p among those awake, and their mean x.

    Reference: `Mixer.weights` of methods/steps/hedge.py, and `mixed` of learners/state.py.
    """
    experts = len(Z)
    for i in range(plain):
        copy_to(X[i], Z[i])
        awake[i] = shares[i]
    if len(X) > plain:
        mean_of(shares, X, plain, len(X), Z[plain])
        awake[plain] = 0.0
        for j in range(plain, len(X)):
            awake[plain] = 1.0 if shares[j] > 0.0 else awake[plain]
    least, total = np.inf, 0.0
    for i in range(experts):
        least = min(least, totals[i]) if awake[i] > 0.0 else least
    for i in range(experts):
        behind, p[i] = totals[i] - least, 0.0
        if awake[i] > 0.0:
            rate = math.log(max(experts, 2)) / gap if gap > 0.0 else 0.0
            p[i] = math.exp(-rate * behind) if gap > 0.0 or behind == 0.0 else 0.0
        total += p[i]
    for i in range(experts):
        p[i] /= total
    mean_of(p, Z, 0, experts, x)


@kernel
def log_of_sum(rate, totals, least, losses, use):  # type: ignore[no-untyped-def]
    """ln sum_i exp(-rate (totals_i + use losses_i - least)). Reference: `_log_of_sum`."""
    total = 0.0
    for i in range(len(totals)):
        total += math.exp(-rate * (totals[i] + use * losses[i] - least))
    return math.log(total)
