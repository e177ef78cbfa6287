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
member, has slope d, and a call of the oracle gives a lower bound (task.py). Upper: X, drawn
towards the center of K, where that is strictly within all bounds, until it is within them too.
"""

from __future__ import annotations

from typing import final

import numpy as np

from tidewolf.core.arrays import to_numpy
from tidewolf.core.types import Floats
from tidewolf.functions.entries import Range, Squared
from tidewolf.hindsight.task import Solution, Task, flattened
from tidewolf.sets.base import Projectable

# Between both bounds, relative to the upper one, or to 1e-3 of the total at the center where that
# is small.
_GAP = 1e-6
_ITERATIONS, _CHECK_EVERY = 5000, 50


@final
class AlternatingDirections:
    """For squared errors on entries, on a set with an exact projection whose center keeps every
    bound with room to spare.
    """

    name = "alternating direction method of multipliers"

    def supports(self, task: Task) -> bool:
        known = isinstance(task.losses, Squared) and isinstance(task.constraints, Range)
        if not known or not isinstance(task.K, Projectable):
            return False
        at_home = type(task.K.center) is np.ndarray
        return at_home and float(task.values(flattened(task.K.center)).max()) < 0.0

    def solve(self, task: Task) -> Solution:
        """The best point found, drawn within the bounds, and the Z and multipliers of the best
        lower bound.
        """
        K, b = task.K, task.b
        assert isinstance(K, Projectable)
        assert isinstance(task.losses, Squared)
        n, s = (total.reshape(-1) for total in entry_totals(task.losses))
        rho = float(n[n > 0].mean()) if n.any() else 1.0
        # 1 for a bound from above, -1 for one from below; the entry of a row is its only index
        signs, entry = np.asarray(task.A.data), task.A.indices
        low, high = np.full(len(n), -np.inf), np.full(len(n), np.inf)
        high[entry[signs > 0]], low[entry[signs < 0]] = b[signs > 0], -b[signs < 0]
        Z = center = flattened(K.center)
        U, upper, lower = np.zeros_like(center), np.inf, -np.inf
        found = Solution(center, np.zeros(len(b)), None, Z)
        for iteration in range(1, _ITERATIONS + 1):
            X = flattened(K.project((Z + U).reshape(K.shape)))
            Z = np.clip((s + rho * (X - U)) / (n + rho), low, high)
            d, U = rho * (X - U - Z), U + Z - X
            if iteration % _CHECK_EVERY and iteration < _ITERATIONS:
                continue
            above, room = np.maximum(task.values(X), 0.0), -task.values(center)
            point = X + float(np.max(above / (above + room))) * (center - X)
            if (total := task.total(point)) < upper:
                upper, found = total, found._replace(point=point)
            lam = np.maximum(0.0, signs * (d - (n * Z - s))[entry])
            if (value := task.lower_bound(Solution(None, lam, None, Z))) > lower:
                lower, found = value, found._replace(lam=lam, anchor=Z)
            if upper - lower <= _GAP * max(abs(upper), 1e-3 * task.total(center)):
                break
        return found


def entry_totals(losses: Squared) -> tuple[Floats, Floats]:
    seen, size = losses.places >= 0, int(np.prod(losses.shape))
    places, targets = losses.places[seen], to_numpy(losses.targets)[seen].astype(np.float64)
    n = np.bincount(places, minlength=size).astype(np.float64)
    s = np.asarray(np.bincount(places, targets, size), dtype=np.float64)
    return n.reshape(losses.shape), s.reshape(losses.shape)
