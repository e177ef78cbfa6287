"""Affine functions:  f_t(x) = <A_t, x> - b_t.  As a constraint: <A_t, x> <= b_t."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, final

import numpy as np

from tidewolf.core.arrays import as_number, like, to_numpy
from tidewolf.core.sparse import is_sparse
from tidewolf.core.types import Array, Floats, Shape
from tidewolf.functions.base import (
    ArrayBatch,
    Coefficients,
    Halfspaces,
    LinearTotal,
    PerRound,
    PiecewiseLinear,
    beside,
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
class Affine(ArrayBatch, LinearTotal, PiecewiseLinear):
    """Affine functions <A_t, x> - b_t: as a constraint, <A_t, x> <= b_t.

    Parameters
    ----------
    A : array
        The coefficients, of shape (rounds, *shape of a point); for vectors also a frame of
        pandas or polars, or a sparse array of SciPy, (rounds, n).
    b : array
        The offsets, one a round.

    Examples
    --------
    >>> g = tw.functions.Affine([[1.0, 2.0], [0.0, 3.0]], [1.0, 2.0])  # two rounds
    >>> g.values(np.array([0.5, 0.5]))
    array([ 0.5, -0.5])
    """

    by_round = ("A", "b")

    A: Coefficients
    b: Annotated[Array, PerRound("The offsets, one a round.", axes=1)]

    def __post_init__(self) -> None:
        super().__post_init__()
        self._match("b", (len(self),), self.A)

    @classmethod
    def one(cls, a: Array, b: float) -> Affine:
        """A single round <a, x> - b."""
        A, offset = one_round(a, "a of Affine.one", sparse=True), as_number(b, "b of Affine.one")
        return cls._unchecked(A=A, b=like(np.array([offset]), A.data if is_sparse(A) else A))

    @property
    def shape(self) -> Shape:
        return tuple(self.A.shape[1:])

    def values(self, x: Array) -> Array:
        return products(rows(self.A), x) - beside(self.b, self.A, x)

    def values_at(self, points: Array) -> Array:
        return own_products(rows(self.A), rows(points)) - beside(self.b, self.A, points)

    def subgradient(self, x: Array, weights: Array) -> Array:
        return shaped(weighted(rows(self.A), weights), self.shape)

    def gradients(self, x: Array) -> Array:
        return each_row(self.A, x)

    def slopes(self, x: Array) -> Floats:
        return row_norms(rows(self.A))

    def total(self) -> tuple[Floats, float]:
        offsets = float(to_numpy(self.b).sum(dtype=np.float64))
        return total_row(self.A), -offsets

    def epigraph(self) -> Halfspaces:
        return self.halfspaces()

    def halfspaces(self) -> Halfspaces:
        return Halfspaces(
            host_rows(self.A), to_numpy(self.b).astype(np.float64), np.arange(len(self))
        )

    @classmethod
    def examples(cls) -> Sequence[Affine]:
        from scipy.sparse import csr_array

        return (
            cls([[1.0, -2.0, 0.5], [0.0, 0.0, 0.0]], [0.3, -1.0]),
            cls.one([3.0], 3.0),
            cls(np.arange(12.0).reshape(3, 2, 2), np.ones(3)),
            cls(csr_array([[0.0, -2.0, 0.5], [0.0, 0.0, 0.0]]), [0.3, -1.0]),
        )
