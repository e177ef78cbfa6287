"""Linear functions:  f_t(x) = <C_t, x>."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self, final

import numpy as np

from tidewolf.core.arrays import as_array, flat, namespace, to_numpy
from tidewolf.core.batch import Batch
from tidewolf.core.types import Array, Floats, Shape
from tidewolf.functions.base import (
    Halfspaces,
    LinearTotal,
    PiecewiseLinear,
    batch_array,
    row_norms,
    rows,
    stacked,
)


@final
@dataclass(frozen=True, eq=False, repr=False)
class Linear(Batch, LinearTotal, PiecewiseLinear):
    """Linear functions; C has shape (rounds, *shape)."""

    C: Array

    def __post_init__(self) -> None:
        object.__setattr__(self, "C", batch_array(self.C, "The coefficients C of a Linear batch"))

    @classmethod
    def one(cls, c: Array) -> Linear:
        """A single round with coefficients c."""
        return cls(as_array(c, "The coefficients c of a Linear function")[None, ...])

    def __len__(self) -> int:
        return int(self.C.shape[0])

    @property
    def shape(self) -> Shape:
        return tuple(self.C.shape[1:])

    def view(self, rounds: slice) -> Self:
        return self._shared(C=self.C[rounds, ...])

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self | None:
        return stacked(parts, "C")

    def values(self, x: Array) -> Array:
        return rows(self.C) @ flat(x)

    def values_at(self, points: Array) -> Array:
        return namespace(points).vecdot(rows(self.C), rows(points))

    def subgradient(self, x: Array, weights: Array) -> Array:
        total = weights @ rows(self.C)
        return total if self.C.ndim == 2 else namespace(total).reshape(total, self.shape)

    def gradients(self, x: Array) -> Array:
        return self.C

    def slopes(self, x: Array) -> Floats:
        return row_norms(rows(self.C))

    def total(self) -> tuple[Floats, float]:
        return to_numpy(self.C).sum(axis=0, dtype=np.float64), 0.0

    def halfspaces(self) -> Halfspaces:
        return Halfspaces(to_numpy(rows(self.C)), np.zeros(len(self)), np.arange(len(self)))

    @classmethod
    def examples(cls) -> Sequence[Linear]:
        return (
            cls([[1.0, -2.0, 0.5], [0.0, 0.0, 0.0]]),
            cls([[3.0]]),
            cls(np.arange(12.0).reshape(3, 2, 2)),
        )
