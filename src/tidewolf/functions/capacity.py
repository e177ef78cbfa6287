"""Capacities:  g_t(x) = max_i x_i - c_ti,  positive by as much as the fullest entry is over its
capacity.

A subgradient is e_i of the fullest entry i; among several the first. As a constraint over many
rounds only the smallest capacity of each entry matters: x_i <= min_t c_ti.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, final

import numpy as np

from tidewolf.core.arrays import flat, is_torch, like, namespace, to_numpy, zeros
from tidewolf.core.types import Array, Floats, Int64s, Shape
from tidewolf.functions.base import (
    ArrayBatch,
    Halfspaces,
    PerRound,
    PiecewiseLinear,
    one_round,
    rows,
    shaped,
)

_FEW = 16
"""Up to so many rounds on a device entries are written one by one there."""


@final
@dataclass(frozen=True, eq=False, repr=False)
class Capacity(ArrayBatch, PiecewiseLinear):
    """By how much the fullest entry is over its capacity, max_i x_i - c_ti.

    Parameters
    ----------
    c : array
        The capacity of every entry, of shape (rounds, *shape of a point); for vectors also a
        frame of pandas or polars.

    Examples
    --------
    >>> g = tw.functions.Capacity([[0.5, 1.0], [0.25, 0.5]])  # two rounds
    >>> g.values(np.array([0.5, 0.5]))
    array([0.  , 0.25])
    """

    by_round = ("c",)

    c: Annotated[
        Array,
        PerRound(
            "The capacity of every entry, of shape (rounds, *shape of a point); for vectors also a "
            "frame of pandas or polars."
        ),
    ]

    @classmethod
    def one(cls, c: Array) -> Capacity:
        """A single round with capacities c."""
        return cls._unchecked(c=one_round(c, "c of Capacity.one"))

    @property
    def shape(self) -> Shape:
        return tuple(self.c.shape[1:])

    def values(self, x: Array) -> Array:
        pieces = self.pieces(x)
        if type(pieces) is np.ndarray:
            return np.maximum.reduce(pieces, axis=1)
        return namespace(self.c).max(pieces, axis=1)

    def pieces(self, x: Array) -> Array:
        """x_i - c_ti as (rounds, entries)."""
        return flat(x) - rows(self.c)

    def piece_gradients(self, x: Array, rounds: Int64s, limits: Int64s) -> Array:
        units = limits[:, None] == np.arange(rows(self.c).shape[1])
        return shaped(like(units, self.c), (len(limits), *self.shape))

    def values_at(self, points: Array) -> Array:
        return namespace(self.c).max(rows(points) - rows(self.c), axis=1)

    def subgradient(self, x: Array, weights: Array) -> Array:
        c = rows(self.c)
        if type(c) is not np.ndarray and len(self) <= _FEW and is_torch(c):
            total = zeros((c.shape[1],), c)
            if len(self) == 1:
                total[(flat(x) - c[0, :]).argmax()] = weights[0]
                return shaped(total, self.shape)
            for t in range(len(self)):
                total[(flat(x) - c[t, :]).argmax()] += weights[t]
            return shaped(total, self.shape)
        total = np.bincount(self._fullest(x), to_numpy(weights), c.shape[1])
        return shaped(like(total, c), self.shape)

    def gradients(self, x: Array) -> Array:
        units = self._fullest(x)[:, None] == np.arange(rows(self.c).shape[1])
        return like(units.reshape(self.c.shape), self.c)

    def slopes(self, x: Array) -> Floats:
        return np.ones(len(self))

    def _fullest(self, x: Array) -> Int64s:
        """The first fullest entry of each round."""
        c = rows(self.c)
        return to_numpy(namespace(c).argmax(flat(x) - c, axis=1))

    def halfspaces(self) -> Halfspaces:
        from scipy.sparse import eye_array

        c = to_numpy(rows(self.c)).astype(np.float64, copy=False)
        if len(c) == 0:
            return Halfspaces(np.zeros((0, c.shape[1])), np.zeros(0), np.zeros(0, dtype=np.int64))
        return Halfspaces(eye_array(c.shape[1], format="csr"), c.min(axis=0), c.argmin(axis=0))

    def epigraph(self) -> Halfspaces:
        from scipy.sparse import csr_array

        c = to_numpy(rows(self.c)).astype(np.float64, copy=False)
        rounds, n = c.shape
        ones = (np.ones(rounds * n), np.tile(np.arange(n), rounds), np.arange(rounds * n + 1))
        A = csr_array(ones, shape=(rounds * n, n))
        return Halfspaces(A, c.reshape(-1), np.repeat(np.arange(rounds), n))

    @classmethod
    def examples(cls) -> Sequence[Capacity]:
        return (
            cls([[0.5, 0.2, 1.0], [0.0, 0.0, 0.0], [-1.0, 3.0, 0.1]]),
            cls.one([0.7]),
            cls(np.arange(8.0).reshape(2, 2, 2) / 4 - 1),
        )
