"""How much a constraint usually drops from one round to the next: the headroom that operators keep.

    m_i <- 0.98 m_i + 0.02 max(0, g_ti(x_t) - g_{t-l,i}(x_t))^2,      r_i = sqrt( m_i/(1 - 0.98^n) )

after n drops, x_t the point played: of capacities, how much less there was than l rounds before, l
the age of the data that is solved with: 1, and more where feedback comes late. The divisor is the
weight of the n drops in m, so that r does not begin too small. If a round has another number of
limits than the one before, it begins anew.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tidewolf.core.arrays import frozen, to_numpy
from tidewolf.core.batch import Batch
from tidewolf.core.types import Array, Floats, Int64s
from tidewolf.functions.linear import Capacity
from tidewolf.kernels.resolving import FORGETTING, LARGEST_DROP


class Drops(NamedTuple):
    """Squared drops, one mean a limit, and how many there were."""

    mean2: Floats
    counted: int

    @classmethod
    def none(cls) -> Drops:
        return cls(frozen(np.zeros(0)), 0)

    def after(self, before: Batch, now: Batch, x: Array) -> Drops:
        """With the drop from one round's limits to the next one's, at the point played in the
        latter.
        """
        drop = _drop(before, now, x)
        if drop is None:
            return Drops.none()
        drop2 = np.minimum(np.maximum(drop, 0.0), LARGEST_DROP)
        drop2 *= drop2
        mean2, counted = (self.mean2, self.counted) if len(self.mean2) == len(drop) else (0.0, 0)
        return Drops(frozen(mean2 + FORGETTING * (drop2 - mean2)), counted + 1)

    def moved(self, entries: Int64s, size: int) -> Drops:
        """Those of limits on single entries where these are in other places, as many as `size`; new
        ones have the mean of the others. None if limits are not on single entries.
        """
        if len(self.mean2) != len(entries) or not (entries >= 0).any():
            return Drops.none()
        there = entries >= 0
        mean2 = np.full(size, self.mean2[there].mean())
        mean2[entries[there]] = self.mean2[there]
        return Drops(frozen(mean2), self.counted)

    def usual(self) -> Floats:
        """The root of the mean, one a limit; empty if nothing is known."""
        if self.counted == 0:
            return np.zeros(0)
        return np.sqrt(self.mean2 / (1.0 - (1.0 - FORGETTING) ** self.counted))


def _drop(before: Batch, now: Batch, x: Array) -> Floats | None:
    """How much less there is of each limit at x; None if there are others than before."""
    if isinstance(before, Capacity) and isinstance(now, Capacity):
        return np.subtract(to_numpy(before.c), to_numpy(now.c), dtype=np.float64).reshape(-1)
    old, new = (
        to_numpy(limit.values(x) if (pieces := limit.pieces(x)) is None else pieces).reshape(-1)
        for limit in (before, now)
    )
    return np.subtract(new, old, dtype=np.float64) if old.shape == new.shape else None
