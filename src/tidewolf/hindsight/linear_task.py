"""The task in hindsight where losses add up to a linear function and limits are half-spaces.

    min { <c, x> + constant : x in K, A x <= b }        row i of A x <= b is a piece of round
                                                        rounds[i]

Lower. For any lam >= 0, with d = c + sum_i lam_i a_i, one call of the set's oracle gives
    min_{x in K} <c, x> + constant + sum_i lam_i (<a_i, x> - b_i)
        =  constant - <lam, b> + min_{x in K} <d, x>  <=  the minimum,
less the oracle's own error and less a slack for rounding: 2 (n + m) eps times the largest sum of
the terms' absolute values over K, for n entries and m multipliers that are not 0. The totals c and
constant are taken as computed.

Rows of very many stored numbers, such as every link in every round, are made some at a time
(`ManyRows`); over a set with a linear description few of them are ever needed (many_rows.py).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, cast, final

import numpy as np

from tidewolf.core.arrays import eps_of, to_numpy
from tidewolf.core.batch import Batch, Stream
from tidewolf.core.oracle import HasLMO
from tidewolf.core.piecewise import Halfspaces, LinearTotal, ManyRows, PiecewiseLinear
from tidewolf.core.types import Array, Floats, Int64s
from tidewolf.hindsight.task import (
    HindsightTask,
    positive,
    require_moderate,
    with_exact_oracle,
)
from tidewolf.sets.base import Polyhedral

_ACROSS = 1e-2
"""Costs of which less than this share is within aff(K) would lose digits,"""
_ROUNDING = 1e3
"""and less than this, in eps, is rounding."""
_LEAST_SIZE = 1e-6
"""The least size of a row, as a share of the largest norm of a row times the largest entry: with
FEASIBILITY_TOLERANCE the rounding of such an entry."""


@final
@dataclass(frozen=True, eq=False)
class LinearTask(HindsightTask):
    """Minimise <c, x> + constant over the x in K with A x <= b, which is what `constraints` say."""

    K: HasLMO
    constraints: Batch
    c: Floats
    constant: float
    A: Any
    """dense or sparse, float64; or `ManyRows`"""
    b: Floats
    rounds: Int64s
    norms: Floats
    """of the rows of A, 1 in place of 0"""

    @classmethod
    def of(cls, K: HasLMO, part: Stream) -> LinearTask:
        """The task of a set and some rounds of linear losses under half-spaces."""
        assert isinstance(part.losses, LinearTotal)
        assert isinstance(part.constraints, PiecewiseLinear)
        with np.errstate(over="ignore", invalid="ignore"):  # refused next
            c, constant = part.losses.total()
        unbounded = 0.0 if np.isfinite(constant) else np.inf
        require_moderate("losses", np.append(np.abs(c).max(), unbounded))
        task = cls.of_rows(K, part.constraints, _rows_of(K, part.constraints), "constraints")
        return replace(task, c=c.reshape(-1), constant=constant)

    @classmethod
    def of_rows(cls, K: HasLMO, constraints: Batch, rows: Halfspaces, what: str) -> LinearTask:
        """The task of some half-spaces, at no cost; `what` they are, for sentences."""
        A, b, rounds = rows
        if isinstance(A, ManyRows):
            largest, squares = A.each(_largest), A.each(_squares)
        else:
            A = A.astype(np.float64, copy=False)
            largest, squares = _largest(A), _squares(A)
        require_moderate(what, largest)
        norms = positive(np.sqrt(squares))
        return cls(
            with_exact_oracle(K), constraints, np.zeros(A.shape[1]), 0.0, A, b, rounds, norms
        )

    def total(self, x: Floats) -> float:
        return float(self.c @ x) + self.constant

    def lower_bound(self, lam: Floats, anchor: Floats | None = None) -> float:
        return self._lagrangian_bound(self.c, self.constant, lam)

    def limits_bound(self, weights: Floats, anchor: Floats | None = None) -> float:
        return self._lagrangian_bound(np.zeros(len(self.c)), 0.0, weights)

    def _lagrangian_bound(self, c: Floats, constant: float, lam: Floats) -> float:
        """A lower bound on <c, x> + constant + <lam, A x - b> over K: one call of the oracle, less
        its error and the slack for rounding.
        """
        used = np.flatnonzero(lam)
        lam, A, b = lam[used], self.rows(used), self.b[used]
        direction = self.unflattened(c + A.T @ lam)
        answer = self.K.answer(direction)
        value = constant - float(lam @ b) + answer.vertex.inner(direction)
        sizes, center = np.abs(c) + abs(A).T @ lam, np.abs(to_numpy(self.K.center)).reshape(-1)
        terms = (
            abs(constant)
            + float(lam @ np.abs(b))
            + float(sizes @ center)
            + self.K.radius * float(np.linalg.norm(sizes))
        )
        return value - answer.error - 2 * (len(c) + len(lam)) * eps_of(direction) * terms

    def for_solvers(self) -> LinearTask:
        """Without the constant, and without costs that are mostly across aff(K): <c + k 1, x> is
        <c, x> + k on a simplex.
        """
        if self.K.dimension == len(self.c):
            return replace(self, constant=0.0)
        tangent = to_numpy(self.K.tangent(self.unflattened(self.c)))
        along = np.asarray(tangent, dtype=np.float64).reshape(-1)
        size, left = float(np.linalg.norm(self.c)), float(np.linalg.norm(along))
        if left >= _ACROSS * size:
            return replace(self, constant=0.0)
        rounding = left <= _ROUNDING * eps_of(self.K.center) * size
        return replace(self, constant=0.0, c=0.0 * along if rounding else along)

    def _breach(self, x: Floats, point: Array) -> tuple[float, float]:
        absolute, table = np.abs(x), self.A
        if isinstance(table, ManyRows):
            carried = table.each(lambda A: abs(A) @ absolute)
        else:
            carried = abs(table) @ absolute
        # rows that bound entries by 0 alone have no size but that of rounding
        least = _LEAST_SIZE * self.norms.max() * absolute.max()
        size = float(max((carried + np.abs(self.b)).max(), least))
        return float(to_numpy(self.constraints.values(point)).max()), size

    def breaches(self, x: Floats) -> Floats:
        """How far x is above each row, in units of its norm; below 0 inside."""
        return np.asarray((self.A @ x - self.b) / self.norms)

    def rows(self, some: Int64s) -> Any:
        """Some rows of A, dense or sparse."""
        return self.A[some] if isinstance(self.A, ManyRows) else self.A[some, :]


def _rows_of(K: HasLMO, constraints: PiecewiseLinear) -> Halfspaces:
    """The half-spaces, their rows made some at a time where they are many, and there is a method
    that asks for few.
    """
    many = constraints.many_rows() if isinstance(K, Polyhedral) else None
    if many is None:
        return constraints.halfspaces()
    b, batch = constraints.offsets(), cast(Batch, constraints)
    return Halfspaces(many, b, np.repeat(np.arange(len(batch)), len(b) // len(batch)))


def _largest(A: Any) -> Floats:
    """The largest size of an entry of each row."""
    if isinstance(A, np.ndarray):
        return np.asarray(np.abs(A).max(axis=1))
    return np.asarray(abs(A).max(axis=1).toarray().reshape(-1))


def _squares(A: Any) -> Floats:
    """The squared norm of each row."""
    if isinstance(A, np.ndarray):
        return np.asarray(np.einsum("ij,ij->i", A, A))
    return np.asarray(A.multiply(A).sum(axis=1)).reshape(-1)
