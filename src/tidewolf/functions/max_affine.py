"""Maxima of affine pieces:  f_t(x) = max_j <A_tj, x> - b_tj.

A subgradient is A_tj of an active piece j; among several the first. As a constraint: every <A_tj,
x> <= b_tj.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self, final

import numpy as np

from tidewolf.core.arrays import as_array, flat, namespace, to_numpy
from tidewolf.core.batch import Batch
from tidewolf.core.types import Array, Floats, Shape
from tidewolf.functions.base import (
    Halfspaces,
    PiecewiseLinear,
    batch_array,
    beside,
    row_norms,
    rows,
    stacked,
)


@final
@dataclass(frozen=True, eq=False, repr=False)
class MaxAffine(Batch, PiecewiseLinear):
    """Maxima of affine pieces; A has shape (rounds, pieces, *shape), b has shape
    (rounds, pieces).
    """

    A: Array
    b: Array

    def __post_init__(self) -> None:
        A = batch_array(self.A, "The coefficients A of a MaxAffine batch", axes=3)
        object.__setattr__(self, "A", A)
        object.__setattr__(
            self, "b", beside(self.b, A, tuple(A.shape[:2]), "The offsets b of a MaxAffine batch")
        )

    @classmethod
    def one(cls, A: Array, b: Array) -> MaxAffine:
        """A single round; A has shape (pieces, *shape), b has shape (pieces,)."""
        A = as_array(A, "The coefficients A of a MaxAffine function")
        return cls(A[None, ...], as_array(b, "The offsets b of a MaxAffine function")[None, ...])

    def __len__(self) -> int:
        return int(self.A.shape[0])

    @property
    def shape(self) -> Shape:
        return tuple(self.A.shape[2:])

    def view(self, rounds: slice) -> Self:
        return self._shared(A=self.A[rounds, ...], b=self.b[rounds, ...])

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self | None:
        return stacked(parts, "A", "b")

    def values(self, x: Array) -> Array:
        return namespace(self.A).max(self.pieces(x), axis=1)

    def values_at(self, points: Array) -> Array:
        pieces = (self._flat() @ rows(points)[:, :, None])[:, :, 0] - self.b
        return namespace(self.A).max(pieces, axis=1)

    def subgradient(self, x: Array, weights: Array) -> Array:
        total = weights @ self._active(x)
        return total if self.A.ndim == 3 else namespace(total).reshape(total, self.shape)

    def gradients(self, x: Array) -> Array:
        active = self._active(x)
        return (
            active
            if self.A.ndim == 3
            else namespace(active).reshape(active, (len(self), *self.shape))
        )

    def slopes(self, x: Array) -> Floats:
        return row_norms(self._active(x))

    def _flat(self) -> Array:
        """A with flattened points: (rounds, pieces, entries)."""
        return (
            self.A
            if self.A.ndim == 3
            else namespace(self.A).reshape(self.A, (*self.b.shape, math.prod(self.shape)))
        )

    def pieces(self, x: Array) -> Array:
        """<A_tj, x> - b_tj as (rounds, pieces)."""
        return self._flat() @ flat(x) - self.b

    def _active(self, x: Array) -> Array:
        """The first active piece of each round, one flattened row each."""
        A, xp = self._flat(), namespace(self.A)
        if len(self) == 1:
            j = int(xp.argmax(self.pieces(x)))
            return A[0, j : j + 1, :]
        (k, p), j = self.b.shape, xp.argmax(self.pieces(x), axis=1)
        return xp.take(
            xp.reshape(A, (k * p, A.shape[2])), j + xp.arange(0, k * p, p, dtype=j.dtype), axis=0
        )

    def halfspaces(self) -> Halfspaces:
        (k, p), A = self.b.shape, to_numpy(self._flat())
        return Halfspaces(
            A.reshape(k * p, A.shape[2]),
            to_numpy(flat(self.b)).astype(np.float64),
            np.repeat(np.arange(k), p),
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
