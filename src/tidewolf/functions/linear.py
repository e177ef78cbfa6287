"""Linear functions:  f_t(x) = <C_t, x>."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from tidewolf.core.types import Array, Floats, Shape
from tidewolf.functions.base import (
    ArrayBatch,
    Coefficients,
    Halfspaces,
    LinearTotal,
    PiecewiseLinear,
    each_row,
    host_rows,
    one_round,
    own_products,
    products,
    row_norms,
    rows,
    shaped,
    total_row,
    weighted,
)


@final
@dataclass(frozen=True, eq=False, repr=False)
class Linear(ArrayBatch, LinearTotal, PiecewiseLinear):
    """Linear functions <C_t, x>.

    Parameters
    ----------
    C : array
        The coefficients, of shape (rounds, *shape of a point); for vectors also a frame of
        pandas or polars, or a sparse array of SciPy, (rounds, n).

    Examples
    --------
    >>> f = tw.functions.Linear([[1.0, 2.0], [0.0, 3.0]])  # two rounds
    >>> f.values(np.array([0.5, 0.5]))
    array([1.5, 1.5])
    """

    by_round = ("C",)

    C: Coefficients

    @classmethod
    def one(cls, c: Array) -> Linear:
        """A single round <c, x>."""
        return cls._unchecked(C=one_round(c, "c of Linear.one", sparse=True))

    @property
    def shape(self) -> Shape:
        return tuple(self.C.shape[1:])

    def values(self, x: Array) -> Array:
        return products(rows(self.C), x)

    def values_at(self, points: Array) -> Array:
        return own_products(rows(self.C), rows(points))

    def subgradient(self, x: Array, weights: Array) -> Array:
        return shaped(weighted(rows(self.C), weights), self.shape)

    def gradients(self, x: Array) -> Array:
        return each_row(self.C, x)

    def slopes(self, x: Array) -> Floats:
        return row_norms(rows(self.C))

    def total(self) -> tuple[Floats, float]:
        return total_row(self.C), 0.0

    def epigraph(self) -> Halfspaces:
        return self.halfspaces()

    def halfspaces(self) -> Halfspaces:
        return Halfspaces(host_rows(self.C), np.zeros(len(self)), np.arange(len(self)))

    @classmethod
    def examples(cls) -> Sequence[Linear]:
        from scipy.sparse import csr_array

        return (
            cls([[1.0, -2.0, 0.5], [0.0, 0.0, 0.0]]),
            cls([[3.0]]),
            cls(np.arange(12.0).reshape(3, 2, 2)),
            cls(csr_array([[0.0, -2.0, 0.5], [0.0, 0.0, 0.0], [1.0, 0.0, 0.0]])),
        )
