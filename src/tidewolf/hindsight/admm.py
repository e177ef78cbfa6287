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
member, has slope d, and a call of the oracle gives a lower bound (curved_task.py). Upper: X, drawn
towards the center of K, where that is strictly within all bounds, until it is within them too.
"""

from __future__ import annotations

from typing import NamedTuple, final

import numpy as np

from tidewolf.core.arrays import to_numpy
from tidewolf.core.types import Floats
from tidewolf.functions.base import Halfspaces
from tidewolf.functions.entries import Range, Squared
from tidewolf.hindsight.curved_task import CurvedTask
from tidewolf.hindsight.task import HindsightTask, Solution, flattened
from tidewolf.sets.base import Projectable

_GAP = 1e-6
"""Between both bounds, relative to the upper one, or to 1e-3 of the total at the center where that
is small.
"""
_ITERATIONS, _CHECK_EVERY = 5000, 50
"""At most, and between two looks at both bounds."""


@final
class AlternatingDirections:
    """For squared errors on entries, on a set with an exact projection whose center keeps every
    bound with room to spare.
    """

    name = "alternating direction method of multipliers"

    def supports(self, task: HindsightTask) -> bool:
        if not isinstance(task, CurvedTask) or not isinstance(task.part.losses, Squared):
            return False
        if not isinstance(task.part.constraints, Range) or not isinstance(task.K, Projectable):
            return False
        at_home = type(task.K.center) is np.ndarray
        return at_home and float(task.limits(flattened(task.K.center)).max()) < 0.0

    def solve(self, task: HindsightTask) -> Solution:
        """The best point found, drawn within the limits, and the Z and multipliers of the best
        lower bound.
        """
        assert isinstance(task, CurvedTask)
        K, pieces = task.K, task.pieces
        assert isinstance(K, Projectable)
        assert pieces is not None
        entries, center = _entries(task), flattened(task.K.center)
        n, s, rho = entries.n, entries.s, entries.rho
        Z, U, signs = center, np.zeros_like(center), _signs(pieces)
        upper, lower, found = np.inf, -np.inf, Solution(center, np.zeros(len(pieces.b)), None, Z)
        for iteration in range(1, _ITERATIONS + 1):
            X = flattened(K.project((Z + U).reshape(K.shape)))
            Z = np.clip((s + rho * (X - U)) / (n + rho), entries.low, entries.high)
            d, U = rho * (X - U - Z), U + Z - X
            if iteration % _CHECK_EVERY and iteration < _ITERATIONS:
                continue
            point = _drawn_inside(task, X, center)
            if (total := task.total(point)) < upper:
                upper, found = total, found._replace(point=point)
            lam = np.maximum(0.0, signs * (d - (n * Z - s))[pieces.A.indices])
            if (value := task.lower_bound(lam, Z)) > lower:
                lower, found = value, found._replace(lam=lam, anchor=Z)
            if upper - lower <= _GAP * max(abs(upper), 1e-3 * task.total(center)):
                break
        return found


class _Entries(NamedTuple):
    """How often each entry was seen, the sum of what was seen, its bounds, and the weight of
    Z = X.
    """

    n: Floats
    s: Floats
    low: Floats
    high: Floats
    rho: float


def _entries(task: CurvedTask) -> _Entries:
    losses, pieces = task.part.losses, task.pieces
    assert isinstance(losses, Squared)
    assert pieces is not None
    above, (n, s) = _signs(pieces) > 0, (total.reshape(-1) for total in entry_totals(losses))
    low, high = np.full(len(n), -np.inf), np.full(len(n), np.inf)
    high[pieces.A.indices[above]] = pieces.b[above]
    low[pieces.A.indices[~above]] = -pieces.b[~above]
    return _Entries(n, s, low, high, float(n[n > 0].mean()) if n.any() else 1.0)


def entry_totals(losses: Squared) -> tuple[Floats, Floats]:
    """How often each entry was seen, and the sum of what was seen, in the shape of a point."""
    seen, size = losses.places >= 0, int(np.prod(losses.shape))
    places, targets = losses.places[seen], to_numpy(losses.targets)[seen].astype(np.float64)
    n = np.bincount(places, minlength=size).astype(np.float64)
    s = np.asarray(np.bincount(places, targets, size), dtype=np.float64)
    return n.reshape(losses.shape), s.reshape(losses.shape)


def _signs(pieces: Halfspaces) -> Floats:
    """1 for a bound from above, -1 for one from below; one a row, whose entry is its only index."""
    return np.asarray(pieces.A.data)


def _drawn_inside(task: CurvedTask, x: Floats, inside: Floats) -> Floats:
    """x, drawn towards a point strictly within the limits until it keeps them all."""
    at, room = task.limits(x), -task.limits(inside)
    return x + float(np.max(np.maximum(at, 0.0) / (np.maximum(at, 0.0) + room))) * (inside - x)
