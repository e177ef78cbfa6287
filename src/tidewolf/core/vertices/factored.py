"""Matrices kept as factors, and tables of them: what `LowRank` and `Outer` share."""

from __future__ import annotations

import numpy as np

from tidewolf.core.arrays import like, namespace, to_numpy
from tidewolf.core.types import Array, Floats
from tidewolf.core.vertices.base import FIRST_ROWS, Atoms, Vertex


class Factored(Vertex):
    """A matrix kept as factors, whose <v, v> is known."""

    square: float

    def blend(self, x: Array, step: float) -> Array:
        return (1.0 - step) * x + step * self.dense(x)

    def distance2(self, x: Array, x2: float) -> float:
        return max(0.0, x2 - 2.0 * self.inner(x) + self.square)


class FactorAtoms(Atoms):
    """Factors end to end: atom i owns the rows from ends[i] up to ends[i + 1].

    `factors` has one matrix of rows for each factor of a product: one for f f', two for l r'.
    """

    def __init__(self) -> None:
        super().__init__()
        self.factors: list[Array] = []
        self.owners = np.zeros(0, dtype=np.int64)
        self.ends = [0]

    def _keep(self, *factors: Array) -> int:
        """Store the rows of the next atom; returns where they end."""
        start, stop = self.ends[-1], self.ends[-1] + int(factors[0].shape[0])
        if not self.factors or stop > len(self.owners):
            room, held = max(FIRST_ROWS, 2 * stop), self.factors or [None] * len(factors)
            self.factors = [
                _grown(rows, more, room) for rows, more in zip(held, factors, strict=True)
            ]
            self.owners = np.append(self.owners[:start], np.zeros(room - start, dtype=np.int64))
        if stop > start:
            for rows, more in zip(self.factors, factors, strict=True):
                rows[start:stop, :] = like(more, rows)
            self.owners[start:stop] = len(self.ends) - 1
        self.ends.append(stop)
        return stop

    def _by_atom(self, terms: Array, count: int) -> Floats:
        """A sum over the rows of each of the first `count` atoms."""
        by_row = np.asarray(to_numpy(namespace(terms).sum(terms, axis=1)), dtype=np.float64)
        return np.asarray(
            np.bincount(self.owners[: self.ends[count]], by_row, minlength=count), dtype=np.float64
        )


def can_update(x: Array, rows: Array) -> bool:
    """Whether `rank_one_update` takes x and a product of these rows."""
    return type(x) is np.ndarray and x.dtype.char in "fd" and rows.shape[0] == 1


def rank_one_update(x: Array, keep: float, size: float, left: Array, right: Array) -> Array:
    """keep x + size left right' by one BLAS update in place of the one new array, without the
    temporaries of `np.outer`.
    """
    from scipy.linalg import blas

    updated = np.multiply(x, keep, order="C")
    update = blas.dger if x.dtype.char == "d" else blas.sger
    update(size, right, left, a=updated.T, overwrite_a=1)
    return updated


def _grown(rows: Array | None, more: Array, room: int) -> Array:
    """A table of `room` rows that begins with those there are."""
    grown = like(np.zeros((room, more.shape[1])), more if rows is None else rows)
    if rows is not None:
        grown[: rows.shape[0], :] = rows
    return grown
