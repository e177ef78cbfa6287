"""The task in hindsight where losses are maxima of affine pieces and limits are half-spaces.

    min { F(x) = sum_t max_{i in I_t} <c_i, x> - d_i :  x in K,  A x <= b }

Lower. For any weights mu >= 0 of the pieces that sum to 1 in every round, and any lam >= 0,

    sum_i mu_i (<c_i, x> - d_i) + <lam, A x - b>  <=  F(x)      where A x <= b:

the left side is affine, and one call of the oracle gives its minimum over K, as in linear_task.py,
whose rows are the limits and then the pieces here. A method's multipliers are those of the rows in
that order; those of the pieces are scaled to sum to 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from tidewolf.core.arrays import to_numpy
from tidewolf.core.batch import Stream
from tidewolf.core.oracle import HasLMO
from tidewolf.core.piecewise import Halfspaces, PiecewiseLinear
from tidewolf.core.sparse import stack_rows
from tidewolf.core.types import Array, Floats, Int64s
from tidewolf.hindsight.linear_task import LinearTask
from tidewolf.hindsight.task import HindsightTask


@final
@dataclass(frozen=True, eq=False)
class PiecewiseTask(HindsightTask):
    """Minimise the losses of `part`, maxima of affine pieces, over the x in K with A x <= b."""

    K: HasLMO
    part: Stream
    limits: LinearTask
    """the limits, at no cost"""
    rows: LinearTask
    """limits and pieces, both as rows"""
    pieces: Halfspaces
    rounds: Int64s

    @classmethod
    def of(cls, K: HasLMO, part: Stream) -> PiecewiseTask:
        """The task of a set and some rounds of such losses under half-spaces."""
        assert isinstance(part.losses, PiecewiseLinear)
        assert isinstance(part.constraints, PiecewiseLinear)
        limits, pieces = part.constraints.halfspaces(), part.losses.epigraph()
        both = Halfspaces(
            stack_rows([limits.A, pieces.A]),
            np.concatenate([limits.b, pieces.b]),
            np.concatenate([limits.rounds, pieces.rounds]),
        )
        alone = LinearTask.of_rows(K, part.constraints, limits, "constraints")
        rows = LinearTask.of_rows(K, part.constraints, both, "losses")
        return cls(alone.K, part, alone, rows, pieces, both.rounds)

    def total(self, x: Floats) -> float:
        return float(to_numpy(self.part.losses.values(self.unflattened(x))).sum(dtype=np.float64))

    def lower_bound(self, lam: Floats, anchor: Floats | None = None) -> float:
        return self.rows.limits_bound(self._convex(lam), anchor)

    def limits_bound(self, weights: Floats, anchor: Floats | None = None) -> float:
        return self.rows.limits_bound(weights, anchor)

    def _convex(self, lam: Floats) -> Floats:
        """The same with weights of the pieces that sum to 1 in every round: all on its first piece
        where a round has none.
        """
        count, rounds = len(self.limits.b), self.pieces.rounds
        mu, first = lam[count:].copy(), np.searchsorted(rounds, np.arange(len(self.part)))
        sums = np.bincount(rounds, mu, len(self.part))
        mu[first[sums <= 0.0]] = 1.0
        sums = np.where(sums > 0.0, sums, 1.0)
        return np.concatenate([lam[:count], mu / sums[rounds]])

    def _breach(self, x: Floats, point: Array) -> tuple[float, float]:
        return self.limits._breach(x, point)
