"""The task in hindsight where losses or limits are curved.

    min { F(x) = sum_t f_t(x) : x in K, g_i(x) <= 0 for every i }
        g_i: the rounds' constraints, or their half-spaces

Lower. For any lam >= 0, L(., lam) = F + <lam, g> is convex, so with d a subgradient of it at any x,
in K or not,
    min_K L(., lam)  >=  L(x, lam) - max_{v in K} <d, x - v>,
one call of the oracle, less its error and a slack for rounding. Upper: F at a point seen to be
feasible. Both hold for whatever was found; they meet where the functions are smooth.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, final

import numpy as np

from tidewolf.core.arrays import eps_of, like, to_numpy
from tidewolf.core.batch import Batch, Stream
from tidewolf.core.oracle import HasLMO
from tidewolf.core.types import Array, Floats, Int64s
from tidewolf.functions.base import Halfspaces, PiecewiseLinear
from tidewolf.hindsight.task import HindsightTask, flattened, require_moderate, with_exact_oracle


class LagrangianBound(NamedTuple):
    """What a point and multipliers prove, and the vertex that the oracle answered with."""

    value: float
    vertex: Floats


@final
@dataclass(frozen=True, eq=False)
class CurvedTask(HindsightTask):
    """Minimise the losses of `part` over the points of K that keep its constraints."""

    K: HasLMO
    part: Stream
    pieces: Halfspaces | None
    """the constraints as half-spaces, where they are"""
    rounds: Int64s

    @classmethod
    def of(cls, K: HasLMO, part: Stream) -> CurvedTask:
        """The task of a set and some rounds."""
        limits = part.constraints
        pieces = limits.halfspaces() if isinstance(limits, PiecewiseLinear) else None
        rounds = np.arange(len(part)) if pieces is None else pieces.rounds
        task = cls(with_exact_oracle(K), part, pieces, rounds)
        _require_moderate(task)
        return task

    def total(self, x: Floats) -> float:
        return float(to_numpy(self.part.losses.values(self.unflattened(x))).sum(dtype=np.float64))

    def slope(self, x: Floats) -> Floats:
        """grad F."""
        return self._weighted(self.part.losses, x, np.ones(len(self.part)))

    def limits(self, x: Floats) -> Floats:
        """g_i for every i."""
        if self.pieces is not None:
            return np.asarray(self.pieces.A @ x - self.pieces.b)
        return flattened(self.part.constraints.values(self.unflattened(x)))

    def limit_slope(self, x: Floats, lam: Floats) -> Floats:
        """sum_i lam_i grad g_i."""
        if self.pieces is not None:
            return np.asarray(self.pieces.A.T @ lam)
        return self._weighted(self.part.constraints, x, lam)

    def limit_slopes(self, x: Floats, some: Any) -> Floats:
        """grad g_i for some i, one a row."""
        if self.pieces is not None:
            rows = self.pieces.A[some, :]
            return np.asarray(rows if isinstance(rows, np.ndarray) else rows.toarray())
        gradients = flattened(self.part.constraints.gradients(self.unflattened(x)))
        some_gradients: Floats = gradients.reshape(len(self.part), -1)[some]
        return some_gradients

    def steepness(self, x: Floats) -> float:
        """|grad F| within the affine hull."""
        return float(np.linalg.norm(flattened(self.K.tangent(self.unflattened(self.slope(x))))))

    def limit_steepness(self, x: Floats) -> float:
        """The largest |grad g_t|."""
        return float(self.part.constraints.slopes(self.unflattened(x)).max())

    def lower_bound(self, lam: Floats, anchor: Floats | None) -> float:
        assert anchor is not None
        return self.lagrangian_bound(anchor, lam).value

    def limits_bound(self, weights: Floats, anchor: Floats | None) -> float:
        assert anchor is not None
        return self.lagrangian_bound(anchor, weights, costs=False).value

    def lagrangian_bound(self, x: Floats, lam: Floats, *, costs: bool = True) -> LagrangianBound:
        """A lower bound on F + <lam, g> over K (on <lam, g> without costs) from the point x."""
        slope, limits = costs * self.slope(x) + self.limit_slope(x, lam), self.limits(x)
        direction = self.unflattened(slope)
        answer = self.K.answer(direction)
        value = (
            costs * self.total(x)
            + float(lam @ limits)
            - float(slope @ x)
            + answer.vertex.inner(direction)
            - answer.error
        )
        losses = float(np.abs(to_numpy(self.part.losses.values(self.unflattened(x)))).sum()) * costs
        terms = (
            losses
            + float(lam @ np.abs(limits))
            + float(np.linalg.norm(slope)) * (float(np.linalg.norm(x)) + self.K.radius)
        )
        rounding = 2.0 * (x.size + len(self.part)) * eps_of(direction) * terms
        return LagrangianBound(value - rounding, flattened(answer.vertex.dense(self.K.center)))

    def _breach(self, x: Floats, point: Array) -> tuple[float, float]:
        values = flattened(self.part.constraints.values(point))
        size = np.abs(values) + self.part.constraints.slopes(point) * np.linalg.norm(x)
        return float(values.max()), float(size.max())

    def _weighted(self, batch: Batch, x: Floats, weights: Floats) -> Floats:
        point = self.unflattened(x)
        return flattened(batch.subgradient(point, like(weights, point)))


def _require_moderate(task: CurvedTask) -> None:
    """Refuse functions in units that are too small or too large, by their steepest slopes at the
    center and beside it.
    """
    for name, batch in (("losses", task.part.losses), ("constraints", task.part.constraints)):
        center = task.K.center
        with np.errstate(over="ignore", invalid="ignore"):
            slopes = batch.gradients(center)
            # at the center itself slopes may be 0
            beside = task.K.answer(slopes[0, ...]).vertex.blend(center, 0.5)
            steepest = max(float(batch.slopes(x).max()) for x in (center, beside))
        require_moderate(name, np.array([steepest]))
