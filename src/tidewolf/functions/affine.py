"""Affine functions:  f_t(x) = <A_t, x> - b_t.  As a constraint: <A_t, x> <= b_t."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self, final

import numpy as np

from tidewolf.core.arrays import as_array, as_number, flat, like, namespace, to_numpy
from tidewolf.core.batch import Batch
from tidewolf.core.types import Array, Floats, Shape
from tidewolf.functions.base import (
    Halfspaces,
    LinearTotal,
    PiecewiseLinear,
    batch_array,
    beside,
    row_norms,
    rows,
    stacked,
)


@final
@dataclass(frozen=True, eq=False, repr=False)
class Affine(Batch, LinearTotal, PiecewiseLinear):
    """Affine functions; A has shape (rounds, *shape), b has shape (rounds,)."""

    A: Array
    b: Array

    def __post_init__(self) -> None:
        A = batch_array(self.A, "The coefficients A of an Affine batch")
        object.__setattr__(self, "A", A)
        object.__setattr__(
            self, "b", beside(self.b, A, (A.shape[0],), "The offsets b of an Affine batch")
        )

    @classmethod
    def one(cls, a: Array, b: float) -> Affine:
        """A single round <a, x> - b."""
        A = as_array(a, "The coefficients a of an Affine function")[None, ...]
        return cls(A, like(np.array([as_number(b, "The offset b of an Affine function")]), A))

    def __len__(self) -> int:
        return int(self.A.shape[0])

    @property
    def shape(self) -> Shape:
        return tuple(self.A.shape[1:])

    def view(self, rounds: slice) -> Self:
        return self._shared(A=self.A[rounds, ...], b=self.b[rounds])

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self | None:
        return stacked(parts, "A", "b")

    def values(self, x: Array) -> Array:
        return rows(self.A) @ flat(x) - self.b

    def values_at(self, points: Array) -> Array:
        return namespace(points).vecdot(rows(self.A), rows(points)) - self.b

    def subgradient(self, x: Array, weights: Array) -> Array:
        total = weights @ rows(self.A)
        return total if self.A.ndim == 2 else namespace(total).reshape(total, self.shape)

    def gradients(self, x: Array) -> Array:
        return self.A

    def slopes(self, x: Array) -> Floats:
        return row_norms(rows(self.A))

    def total(self) -> tuple[Floats, float]:
        return to_numpy(self.A).sum(axis=0, dtype=np.float64), -float(
            to_numpy(self.b).sum(dtype=np.float64)
        )

    def halfspaces(self) -> Halfspaces:
        return Halfspaces(
            to_numpy(rows(self.A)), to_numpy(self.b).astype(np.float64), np.arange(len(self))
        )

    @classmethod
    def examples(cls) -> Sequence[Affine]:
        return (
            cls([[1.0, -2.0, 0.5], [0.0, 0.0, 0.0]], [0.3, -1.0]),
            cls.one([3.0], 3.0),
            cls(np.arange(12.0).reshape(3, 2, 2), np.ones(3)),
        )
