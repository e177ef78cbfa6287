"""Convex quadratics of vectors:  f_t(x) = 1/2 <x, P_t x> + <q_t, x> + r_t,  P_t symmetric and
positive semidefinite.

The gradient is P_t x + q_t. P is one matrix for all rounds, or one a round.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self, final

import numpy as np

from tidewolf.core.arrays import as_array, as_number, eps_of, like, namespace, to_numpy
from tidewolf.core.batch import Batch
from tidewolf.core.errors import InvalidInput, NotConvex, WrongShape
from tidewolf.core.types import Array, Floats, NDArray, Shape
from tidewolf.functions.base import batch_array, beside, row_norms, stacked


@final
@dataclass(frozen=True, eq=False, repr=False)
class Quadratic(Batch):
    """Convex quadratics; P has shape (n, n) or (rounds, n, n), q has shape (rounds, n), r has shape
    (rounds,) or is left out (zeros).
    """

    P: Array
    q: Array
    r: Array = None

    def __post_init__(self) -> None:
        q = batch_array(self.q, "The linear parts q of a Quadratic batch")
        if q.ndim != 2:
            raise WrongShape(
                "A Quadratic batch takes vectors, so q has shape (rounds, n); it has shape "
                f"{tuple(q.shape)}."
            )
        k, n = q.shape
        P = as_array(self.P, "The matrices P of a Quadratic batch")
        P = beside(
            P, q, (n, n) if P.ndim == 2 else (k, n, n), "The matrices P of a Quadratic batch"
        )
        _require_convex(to_numpy(P), eps_of(P))
        r = np.zeros(k) if self.r is None else self.r
        object.__setattr__(self, "P", P)
        object.__setattr__(self, "q", q)
        object.__setattr__(self, "r", beside(r, q, (k,), "The constants r of a Quadratic batch"))

    @classmethod
    def one(cls, P: Array, q: Array, r: float = 0.0) -> Quadratic:
        """A single round 1/2 <x, P x> + <q, x> + r."""
        q = as_array(q, "The linear part q of a Quadratic function")[None, ...]
        return cls(
            P, q, like(np.array([as_number(r, "The constant r of a Quadratic function")]), q)
        )

    def __len__(self) -> int:
        return int(self.q.shape[0])

    @property
    def shape(self) -> Shape:
        return (int(self.q.shape[1]),)

    def view(self, rounds: slice) -> Self:
        P = self.P if self.P.ndim == 2 else self.P[rounds, ...]
        return self._shared(P=P, q=self.q[rounds, ...], r=self.r[rounds])

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self | None:
        if (
            all(np.array_equal(to_numpy(part.P), to_numpy(parts[0].P)) for part in parts)
            and parts[0].P.ndim == 2
        ):
            joined = stacked(parts, "q", "r")
            return None if joined is None else joined._shared(P=parts[0].P, q=joined.q, r=joined.r)
        return stacked(parts, "P", "q", "r") if all(part.P.ndim == 3 for part in parts) else None

    def values(self, x: Array) -> Array:
        return (0.5 * (self.P @ x) + self.q) @ x + self.r

    def values_at(self, points: Array) -> Array:
        curved = points @ self.P if self.P.ndim == 2 else (self.P @ points[:, :, None])[:, :, 0]
        return namespace(points).vecdot(0.5 * curved + self.q, points) + self.r

    def subgradient(self, x: Array, weights: Array) -> Array:
        return weights @ self.gradients(x)

    def gradients(self, x: Array) -> Array:
        return self.P @ x + self.q

    def slopes(self, x: Array) -> Floats:
        return row_norms(self.gradients(x))

    @classmethod
    def examples(cls) -> Sequence[Quadratic]:
        flat_in_one_direction = np.array([[1.0, 1.0], [1.0, 1.0]])
        return (
            cls(flat_in_one_direction, [[0.0, 0.0], [1.0, -2.0]], [1.0, -3.0]),
            cls(
                [np.eye(3), np.zeros((3, 3)), np.diag([4.0, 0.0, 0.5])],
                [[1.0, 2.0, 3.0], [0.0, 0.0, 0.0], [-1.0, 0.0, 1.0]],
            ),
            cls.one([[2.0]], [-1.0], 0.5),
        )


def _require_convex(P: NDArray, eps: float) -> None:
    """Refuse matrices that are not symmetric positive semidefinite, up to rounding in their
    dtype.
    """
    stack = P[None] if P.ndim == 2 else P
    size = np.max(np.abs(stack), axis=(1, 2))
    slack = 100 * eps * stack.shape[1] * size
    skew = np.max(np.abs(stack - np.swapaxes(stack, 1, 2)), axis=(1, 2))
    least = np.linalg.eigvalsh(stack)[:, 0]
    for t in np.flatnonzero(skew > slack)[:1]:
        raise InvalidInput(
            f"{_name(P, t)} is not symmetric: two mirrored entries differ by {skew[t]:.3g}. Give "
            "(P + P') / 2 instead."
        )
    for t in np.flatnonzero(least < -slack)[:1]:
        raise NotConvex(
            f"{_name(P, t)} has eigenvalue {least[t]:.3g}; a convex quadratic needs every "
            "eigenvalue to be at least 0."
        )


def _name(P: NDArray, t: int) -> str:
    return "The matrix P" if P.ndim == 2 else f"The matrix P of round {t}"
