"""Affine functions:  f_t(x) = <A_t, x> - b_t.  As a constraint: <A_t, x> <= b_t."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, final

import numpy as np

from tidewolf.core.arrays import as_number, flat, like, namespace, to_numpy
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
class Affine(ArrayBatch, LinearTotal, PiecewiseLinear):
    """Affine functions <A_t, x> - b_t: as a constraint, <A_t, x> <= b_t.

    Parameters
    ----------
    A : array
        The coefficients, of shape (rounds, *shape of a point).
    b : array
        The offsets, one a round.

    Examples
    --------
    >>> g = tw.functions.Affine([[1.0, 2.0], [0.0, 3.0]], [1.0, 2.0])  # two rounds
    >>> g.values(np.array([0.5, 0.5]))
    array([ 0.5, -0.5])
    """

    by_round = ("A", "b")

    A: Annotated[Array, PerRound("The coefficients, of shape (rounds, *shape of a point).")]
    b: Annotated[Array, PerRound("The offsets, one a round.", axes=1)]

    def __post_init__(self) -> None:
        super().__post_init__()
        self._match("b", (len(self),), self.A)

    @classmethod
    def one(cls, a: Array, b: float) -> Affine:
        """A single round <a, x> - b."""
        A = one_round(a, "a of Affine.one")
        return cls._unchecked(A=A, b=like(np.array([as_number(b, "b of Affine.one")]), A))

    @property
    def shape(self) -> Shape:
        return tuple(self.A.shape[1:])

    def values(self, x: Array) -> Array:
        return rows(self.A) @ flat(x) - self.b

    def values_at(self, points: Array) -> Array:
        return namespace(points).vecdot(rows(self.A), rows(points)) - self.b

    def subgradient(self, x: Array, weights: Array) -> Array:
        return shaped(weights @ rows(self.A), self.shape)

    def gradients(self, x: Array) -> Array:
        return self.A

    def slopes(self, x: Array) -> Floats:
        return row_norms(rows(self.A))

    def total(self) -> tuple[Floats, float]:
        offsets = float(to_numpy(self.b).sum(dtype=np.float64))
        return to_numpy(self.A).sum(axis=0, dtype=np.float64), -offsets

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
