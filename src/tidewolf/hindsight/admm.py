"""The task in hindsight for squared errors on entries under bounds on entries, over a set with an
exact projection.

    min { F(Z) + [Z within bounds] : Z = X, X in K }
        F(Z) = 1/2 sum_e (n_e Z_e^2 - 2 s_e Z_e) + constant, entry by entry

by the alternating direction method of multipliers (Boyd et al. 2011): with rho the mean of the n_e
that are not 0,

    X <- project(Z + U)
    Z <- the entries of (s + rho (X - U)) / (n + rho), brought within their bounds
    U <- U + Z - X

After each Z, d = rho (X - U - Z) with the U before is a subgradient there: d - grad F(Z) is 0 but
at entries on a bound, and the multiplier of that. So the Lagrangian at Z, which need not be a
member, has slope d, and a call of the oracle gives a lower bound (curved.py). Upper: X, drawn
towards the center of K, where that is strictly within all bounds, until it is within them too.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tidewolf.core.arrays import to_numpy
from tidewolf.core.types import Floats
from tidewolf.functions.base import Halfspaces
from tidewolf.functions.range import Range
from tidewolf.functions.squared import Squared
from tidewolf.hindsight.newton import Curved, Found
from tidewolf.sets.base import Projectable

METHOD = "alternating direction method of multipliers"
GAP, TURNS, LOOKS = 1e-6, 5000, 50
"""Relative to the upper bound, or to 1e-3 of the total at the center where that is small; turns at
most, and between two looks at both.
"""


def fits(task: Curved) -> bool:
    """Whether this method is for this task: it needs a center that keeps every limit with room to
    spare.
    """
    kinds = isinstance(task.part.losses, Squared) and isinstance(task.part.constraints, Range)
    at_home = isinstance(task.K, Projectable) and type(task.K.center) is np.ndarray
    return (
        kinds
        and at_home
        and float(task.limits(to_numpy(task.K.center).reshape(-1).astype(np.float64)).max()) < 0.0
    )


def guess(task: Curved) -> Found:
    """The best point found, drawn within the limits, and the Z and multipliers of the best lower
    bound.
    """
    K, entries, pieces = task.K, _entries(task), task.pieces
    assert isinstance(K, Projectable)
    assert pieces is not None
    n, s, low, high, rho = entries
    center = to_numpy(K.center).reshape(-1).astype(np.float64)
    Z, U = center, np.zeros_like(center)
    upper, lower, point, anchor, best = np.inf, -np.inf, center, Z, np.zeros(len(pieces.b))
    for turn in range(1, TURNS + 1):
        X = np.asarray(K.project((Z + U).reshape(K.shape)), dtype=np.float64).reshape(-1)
        Z = np.clip((s + rho * (X - U)) / (n + rho), low, high)
        d, U = rho * (X - U - Z), U + Z - X
        if turn % LOOKS and turn < TURNS:
            continue
        mixed = _drawn(task, X, center)
        if (total := task.total(mixed)) < upper:
            upper, point = total, mixed
        lam = np.maximum(0.0, _signs(pieces) * (d - (n * Z - s))[pieces.A.indices])
        if (value := task.least(Z, lam)[0]) > lower:
            lower, anchor, best = value, Z, lam
        if upper - lower <= GAP * max(abs(upper), 1e-3 * task.total(center)):
            break
    return Found(point, anchor, best)


class _Entries(NamedTuple):
    """How often each entry was seen, the sum of what was seen, its bounds, and the weight of
    Z = X.
    """

    n: Floats
    s: Floats
    low: Floats
    high: Floats
    rho: float


def _entries(task: Curved) -> _Entries:
    losses, pieces = task.part.losses, task.pieces
    assert isinstance(losses, Squared)
    assert pieces is not None
    above, (n, s) = _signs(pieces) > 0, (total.reshape(-1) for total in totals(losses))
    low, high = np.full(len(n), -np.inf), np.full(len(n), np.inf)
    high[pieces.A.indices[above]], low[pieces.A.indices[~above]] = (
        pieces.b[above],
        -pieces.b[~above],
    )
    return _Entries(n, s, low, high, float(n[n > 0].mean()) if n.any() else 1.0)


def totals(losses: Squared) -> tuple[Floats, Floats]:
    """How often each entry was seen, and the sum of what was seen, in the shape of a point."""
    seen, size = losses.places >= 0, int(np.prod(losses.shape))
    places, targets = losses.places[seen], to_numpy(losses.targets)[seen].astype(np.float64)
    n = np.bincount(places, minlength=size).astype(np.float64)
    s = np.asarray(np.bincount(places, targets, size), dtype=np.float64)
    return n.reshape(losses.shape), s.reshape(losses.shape)


def _signs(pieces: Halfspaces) -> Floats:
    """1 for a bound from above, -1 for one from below; one a row, whose entry is its only index."""
    return np.asarray(pieces.A.data)


def _drawn(task: Curved, x: Floats, inside: Floats) -> Floats:
    """x, drawn towards a point strictly within the limits until it keeps them all."""
    at, room = task.limits(x), -task.limits(inside)
    return x + float(np.max(np.maximum(at, 0.0) / (np.maximum(at, 0.0) + room))) * (inside - x)
