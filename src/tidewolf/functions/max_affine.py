"""Maxima of affine pieces:  f_t(x) = max_j <A_tj, x> - b_tj.

A subgradient is A_tj of an active piece j; among several the first. As a constraint: every <A_tj,
x> <= b_tj.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, final

import numpy as np

from tidewolf.core.arrays import flat, namespace, to_numpy
from tidewolf.core.types import Array, Floats, Shape
from tidewolf.functions.base import (
    ArrayBatch,
    Halfspaces,
    PerRound,
    PiecewiseLinear,
    one_round,
    row_norms,
    rows,
    shaped,
)


@final
@dataclass(frozen=True, eq=False, repr=False)
class MaxAffine(ArrayBatch, PiecewiseLinear):
    """The largest of several affine pieces, max_j <A_tj, x> - b_tj.

    Parameters
    ----------
    A : array
        The coefficients, of shape (rounds, pieces, *shape of a point).
    b : array
        The offsets, of shape (rounds, pieces).

    Examples
    --------
    >>> g = tw.functions.MaxAffine([[[1.0, 0.0], [0.0, 1.0]]], [[0.5, 0.25]])  # x <= (1/2, 1/4)
    >>> g.values(np.array([0.5, 0.5]))
    array([0.25])
    """

    by_round = ("A", "b")

    A: Annotated[
        Array,
        PerRound("The coefficients, of shape (rounds, pieces, *shape of a point).", axes=3),
    ]
    b: Annotated[Array, PerRound("The offsets, of shape (rounds, pieces).")]

    def __post_init__(self) -> None:
        super().__post_init__()
        self._match("b", tuple(self.A.shape[:2]), self.A)

    @classmethod
    def one(cls, A: Array, b: Array) -> MaxAffine:
        """A single round; A has shape (pieces, *shape), b has shape (pieces,)."""
        return cls(one_round(A, "A of MaxAffine.one", axes=2), one_round(b, "b of MaxAffine.one"))

    @property
    def shape(self) -> Shape:
        return tuple(self.A.shape[2:])

    def values(self, x: Array) -> Array:
        return namespace(self.A).max(self.pieces(x), axis=1)

    def values_at(self, points: Array) -> Array:
        pieces = (self._flat() @ rows(points)[:, :, None])[:, :, 0] - self.b
        return namespace(self.A).max(pieces, axis=1)

    def subgradient(self, x: Array, weights: Array) -> Array:
        return shaped(weights @ self._active(x), self.shape)

    def gradients(self, x: Array) -> Array:
        return shaped(self._active(x), (len(self), *self.shape))

    def slopes(self, x: Array) -> Floats:
        return row_norms(self._active(x))

    def _flat(self) -> Array:
        """A with flattened points: (rounds, pieces, entries)."""
        return shaped(self.A, (*self.b.shape, math.prod(self.shape)))

    def pieces(self, x: Array) -> Array:
        """<A_tj, x> - b_tj as (rounds, pieces)."""
        return self._flat() @ flat(x) - self.b

    def _active(self, x: Array) -> Array:
        """The first active piece of each round, one flattened row each."""
        A, xp = self._flat(), namespace(self.A)
        if len(self) == 1:
            j = int(xp.argmax(self.pieces(x)))
            return A[0, j : j + 1, :]
        rounds, pieces = self.b.shape
        first = xp.argmax(self.pieces(x), axis=1)
        starts = xp.arange(0, rounds * pieces, pieces, dtype=first.dtype)
        return xp.take(xp.reshape(A, (rounds * pieces, A.shape[2])), first + starts, axis=0)

    def halfspaces(self) -> Halfspaces:
        rounds, pieces = self.b.shape
        A = to_numpy(self._flat())
        return Halfspaces(
            A.reshape(rounds * pieces, A.shape[2]),
            to_numpy(flat(self.b)).astype(np.float64),
            np.repeat(np.arange(rounds), pieces),
        )

    @classmethod
    def examples(cls) -> Sequence[MaxAffine]:
        up_and_down = np.array(
            [[[1.0, 0.0], [-1.0, 0.0], [1.0, 0.0]], [[0.0, 0.0], [0.5, -2.0], [3.0, 1.0]]]
        )
        return (
            cls(up_and_down, [[0.0, 0.0, 0.0], [1.0, -0.5, 2.0]]),
            cls.one([[2.0]], [1.0]),
            cls(np.arange(24.0).reshape(3, 2, 2, 2) - 11.5, np.ones((3, 2))),
        )
