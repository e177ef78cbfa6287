"""Matrices kept as outer products:  V = sum_j l_j r_j'.

A leading singular pair answers with one; the zero matrix has none; any matrix has one for each
singular value.

    <V, G> = sum_j l_j' G r_j          |V|^2 = sum_jk <l_j, l_k> <r_j, r_k>
        <V, W> = sum_jk <l_j, p_k> <r_j, q_k>

so that no dense matrix is made but by `dense`, `blend` and `combine`, and there by one BLAS
product. A table keeps all factors end to end. A pair and its negative are one product: the entry of
l_j of largest size is made positive.
"""

from __future__ import annotations

from typing import Any, ClassVar, final

import numpy as np

from tidewolf.core.arrays import eps_of, frozen, inner, like, namespace, to_numpy
from tidewolf.core.types import Array, Floats
from tidewolf.core.vertices import Atoms, Vertex, require_saved_numbers

_FIRST_ROWS = 8


@final
class Outer(Vertex):
    """sum_j l_j r_j'; `left` holds the l_j and has shape (rank, m), `right` the r_j, of shape
    (rank, n).
    """

    tag: ClassVar = "outer vertex"

    def __init__(self, left: Array, right: Array) -> None:
        left, right = _signed(left, right)
        self.left, self.right = frozen(left), frozen(right)
        self.shape = (int(left.shape[1]), int(right.shape[1]))
        self.square = inner(left @ left.T, right @ right.T)

    @staticmethod
    def of(point: Array) -> Outer:
        """A matrix by its singular vectors; singular values that may be rounding are left out."""
        xp = namespace(point)
        left, values, right = xp.linalg.svd(point, full_matrices=False)
        rank = int(xp.count_nonzero(values > max(point.shape) * eps_of(point) * float(values[0])))
        return Outer((left[:, :rank] * values[:rank]).T, right[:rank, :] + 0.0)

    def inner(self, direction: Array) -> float:
        return inner(self.left @ direction, self.right) if self.left.shape[0] else 0.0

    def dense(self, reference: Array) -> Array:
        return frozen(like(self.left.T @ self.right, reference))

    def blend(self, x: Array, step: float) -> Array:
        if type(x) is np.ndarray and x.dtype.char in "fd" and self.left.shape[0] == 1:
            from scipy.linalg import blas

            blended = np.multiply(x, 1.0 - step, order="C")
            update = blas.dger if x.dtype.char == "d" else blas.sger
            update(step, like(self.right[0], x), like(self.left[0], x), a=blended.T, overwrite_a=1)
            return blended
        return (1.0 - step) * x + step * self.dense(x)

    def distance2(self, x: Array, x2: float) -> float:
        return max(0.0, x2 - 2.0 * self.inner(x) + self.square)

    def key(self) -> bytes:
        return to_numpy(self.left).tobytes() + to_numpy(self.right).tobytes()

    def table(self) -> Atoms:
        return OuterAtoms()

    def parts(self) -> dict[str, Any]:
        return {"left": self.left, "right": self.right}

    @classmethod
    def restored(cls, parts: dict[str, Any]) -> Outer:
        left, right = parts["left"], parts["right"]
        require_saved_numbers(left, 2)
        require_saved_numbers(right, 2)
        if left.shape[0] != right.shape[0]:
            raise ValueError("an outer vertex has as many left factors as right ones")
        return cls(left, right)


class OuterAtoms(Atoms):
    """Factors end to end: atom i owns the rows from ends[i] up to ends[i + 1]."""

    kind: ClassVar = Outer

    def __init__(self) -> None:
        super().__init__()
        self.left: Array = None
        self.right: Array = None
        self.owners = np.zeros(0, dtype=np.int64)
        self.ends = [0]

    def _store(self, vertex: Vertex, row: int) -> None:
        assert isinstance(vertex, Outer)
        start, stop = self.ends[-1], self.ends[-1] + int(vertex.left.shape[0])
        if self.left is None or stop > len(self.owners):
            room = max(_FIRST_ROWS, 2 * stop)
            self.left, self.right = (
                _grown(self.left, vertex.left, room),
                _grown(self.right, vertex.right, room),
            )
            self.owners = np.append(self.owners[:start], np.zeros(room - start, dtype=np.int64))
        if stop > start:
            self.left[start:stop, :], self.right[start:stop, :] = (
                like(vertex.left, self.left),
                like(vertex.right, self.right),
            )
            self.owners[start:stop] = len(self.ends) - 1
        self.ends.append(stop)
        crossed = (self.left[:stop, :] @ like(vertex.left, self.left).T) * (
            self.right[:stop, :] @ like(vertex.right, self.right).T
        )
        self._multiplied(row, self._by_atom(crossed, row + 1))

    def inner(self, direction: Array, count: int) -> Floats:
        end = self.ends[count]
        return self._by_atom((self.left[:end, :] @ direction) * self.right[:end, :], count)

    def combine(self, weights: Floats, reference: Array) -> Array:
        end = self.ends[len(weights)]
        left = self.left[:end, :] * like(weights[self.owners[:end]], self.left)[:, None]
        return like(left.T @ self.right[:end, :], reference)

    def _by_atom(self, terms: Array, count: int) -> Floats:
        """A sum over the rows of each of the first `count` atoms."""
        by_row = np.asarray(to_numpy(namespace(terms).sum(terms, axis=1)), dtype=np.float64)
        return np.asarray(
            np.bincount(self.owners[: self.ends[count]], by_row, minlength=count), dtype=np.float64
        )


def _grown(rows: Array | None, more: Array, room: int) -> Array:
    """A table of `room` rows that begins with those there are."""
    grown = like(np.zeros((room, more.shape[1])), more if rows is None else rows)
    if rows is not None:
        grown[: rows.shape[0], :] = rows
    return grown


def _signed(left: Array, right: Array) -> tuple[Array, Array]:
    """Each pair or its negative, whichever has the entry of largest size of its left part
    positive.
    """
    xp = namespace(left)
    if left.shape[0] == 0:
        return left, right
    turned = (xp.max(left, axis=1) < -xp.min(left, axis=1))[:, None]
    return (
        (xp.where(turned, -left, left), xp.where(turned, -right, right))
        if bool(xp.any(turned))
        else (left, right)
    )
