"""Linear functions:  f_t(x) = <C_t, x>."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, final

import numpy as np

from tidewolf.core.arrays import flat, namespace, to_numpy
from tidewolf.core.types import Array, Floats, Shape
from tidewolf.functions.base import (
    ArrayBatch,
    Halfspaces,
    LinearTotal,
    PerRound,
    PiecewiseLinear,
    one_round,
    row_norms,
    rows,
    shaped,
)


@final
@dataclass(frozen=True, eq=False, repr=False)
class Linear(ArrayBatch, LinearTotal, PiecewiseLinear):
    """Linear functions <C_t, x>.

    Parameters
    ----------
    C : array
        The coefficients, of shape (rounds, *shape of a point).

    Examples
    --------
    >>> f = tw.functions.Linear([[1.0, 2.0], [0.0, 3.0]])  # two rounds
    >>> f.values(np.array([0.5, 0.5]))
    array([1.5, 1.5])
    """

    by_round = ("C",)

    C: Annotated[Array, PerRound("The coefficients, of shape (rounds, *shape of a point).")]

    @classmethod
    def one(cls, c: Array) -> Linear:
        """A single round <c, x>."""
        return cls._unchecked(C=one_round(c, "c of Linear.one"))

    @property
    def shape(self) -> Shape:
        return tuple(self.C.shape[1:])

    def values(self, x: Array) -> Array:
        return rows(self.C) @ flat(x)

    def values_at(self, points: Array) -> Array:
        return namespace(points).vecdot(rows(self.C), rows(points))

    def subgradient(self, x: Array, weights: Array) -> Array:
        return shaped(weights @ rows(self.C), self.shape)

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
