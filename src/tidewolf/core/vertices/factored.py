"""Matrices stored as factors, and tables of them; no dense matrix is made except by `dense`,
`blend` and `combine`, each with one BLAS product.

**LowRank**: V = ridge I + sum_j f_j f_j', symmetric. A leading eigenvector v is one row sqrt(tau) v
without a ridge; zero and multiples of the identity have no row; any positive semidefinite matrix is
its smallest eigenvalue as ridge and a row for each larger one. With s = sum_j |f_j|^2,

    <V, G> = ridge tr G + sum_j f_j' G f_j
    |V|^2  = n ridge^2 + 2 ridge s + sum_jk <f_j, f_k>^2
    <V, W> = n ridge_V ridge_W + ridge_V s_W + ridge_W s_V + sum_jk <f_j, h_k>^2

A positive combination is the product of the rows, each times the root of its weight, with
themselves, hence symmetric to the last bit.

**Outer**: V = sum_j l_j r_j'. A leading singular pair is one product; the zero matrix has none; any
matrix has one for each singular value.

    <V, G> = sum_j l_j' G r_j
    |V|^2  = sum_jk <l_j, l_k> <r_j, r_k>
    <V, W> = sum_jk <l_j, p_k> <r_j, q_k>

A row and its negative, or a pair and its negative, give the same product: the entry of largest size
of f_j or l_j is made positive.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar, final

import numpy as np

from tidewolf.core.arrays import (
    eps_of,
    frozen,
    inner,
    like,
    namespace,
    to_numpy,
    with_diagonal,
    zeros,
)
from tidewolf.core.types import Array, Floats
from tidewolf.core.vertices.base import FIRST_ROWS, Atoms, Vertex, require_saved_numbers


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


@final
class LowRank(Factored):
    """ridge I + sum_j f_j f_j'; `rows` holds the f_j and has shape (rank, n)."""

    tag: ClassVar = "low-rank vertex"

    def __init__(self, rows: Array, ridge: float = 0.0) -> None:
        self.rows, self.ridge = frozen(_signed(rows)[0]), ridge
        self.n = int(rows.shape[1])
        self.shape = (self.n, self.n)
        self.trace = inner(self.rows, self.rows)
        products = self.rows @ self.rows.T
        self.square = self.n * ridge**2 + 2.0 * ridge * self.trace + inner(products, products)

    @staticmethod
    def of(point: Array) -> LowRank:
        """A positive semidefinite matrix by its eigenvectors; eigenvalues that rounding alone sets
        apart from the smallest join it.
        """
        xp = namespace(point)
        values, vectors = xp.linalg.eigh(0.5 * (point + point.T))
        ridge = max(0.0, float(values[0]))
        above = np.asarray(to_numpy(values), dtype=np.float64) - ridge
        rounding = len(above) * eps_of(point) * max(-float(values[0]), float(values[-1]))
        first = int(np.searchsorted(above, rounding, side="right"))
        return LowRank((vectors[:, first:] * xp.sqrt(values[first:] - ridge)).T, ridge)

    @staticmethod
    def ridged(n: int, ridge: float, reference: Array) -> LowRank:
        """ridge I, in the library, dtype and device of `reference`."""
        return LowRank(zeros((0, n), reference), ridge)

    def inner(self, direction: Array) -> float:
        value = inner(self.rows @ direction, self.rows) if self.rows.shape[0] else 0.0
        return value + self.ridge * _trace(direction) if self.ridge else value

    def dense(self, reference: Array) -> Array:
        return frozen(with_diagonal(like(self.rows.T @ self.rows, reference), self.ridge))

    def blend(self, x: Array, step: float) -> Array:
        if can_update(x, self.rows):
            row = like(self.rows[0], x) * x.dtype.type(math.sqrt(step))
            blended = rank_one_update(x, 1.0 - step, 1.0, row, row)
            return with_diagonal(blended, step * self.ridge)
        return super().blend(x, step)

    def key(self) -> bytes:
        return np.float64(self.ridge).tobytes() + to_numpy(self.rows).tobytes()

    def table(self) -> Atoms:
        return LowRankAtoms()

    def parts(self) -> dict[str, Any]:
        return {"rows": self.rows, "ridge": self.ridge}

    @classmethod
    def restored(cls, parts: dict[str, Any]) -> LowRank:
        rows, ridge = parts["rows"], parts["ridge"]
        require_saved_numbers(rows, 2)
        if type(ridge) not in (int, float) or not 0.0 <= ridge < math.inf:
            raise ValueError(f"the ridge of a low-rank vertex is no {ridge!r}")
        return cls(rows, ridge)


class LowRankAtoms(FactorAtoms):
    """The rows of all vertices in one matrix, and their ridges."""

    kind: ClassVar = LowRank

    def __init__(self) -> None:
        super().__init__()
        self.ridges: list[float] = []
        self.traces: list[float] = []

    def _store(self, vertex: Vertex, row: int) -> None:
        assert isinstance(vertex, LowRank)
        stop = self._keep(vertex.rows)
        self.ridges.append(vertex.ridge)
        self.traces.append(vertex.trace)
        rows = self.factors[0]
        crossed = rows[:stop, :] @ like(vertex.rows, rows).T
        ridges, traces = np.array(self.ridges), np.array(self.traces)
        by_rows = self._by_atom(crossed * crossed, row + 1)
        self._set_products(
            row, ridges * (vertex.n * vertex.ridge + vertex.trace) + vertex.ridge * traces + by_rows
        )

    def inner(self, direction: Array, count: int) -> Floats:
        rows, ridges = self.factors[0][: self.ends[count], :], np.array(self.ridges[:count])
        by_rows = self._by_atom((rows @ direction) * rows, count)
        return by_rows + ridges * _trace(direction) if ridges.any() else by_rows

    def combine(self, weights: Floats, reference: Array) -> Array:
        end = self.ends[len(weights)]
        factor, each = self.factors[0], weights[self.owners[:end]]
        rows = factor[:end, :] * like(np.sqrt(np.abs(each)), factor)[:, None]
        signed = rows if (each >= 0.0).all() else rows * like(np.sign(each), factor)[:, None]
        return with_diagonal(
            like(rows.T @ signed, reference), float(weights @ np.array(self.ridges[: len(weights)]))
        )


def _trace(x: Array) -> float:
    return float(namespace(x).linalg.trace(x))


@final
class Outer(Factored):
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
        if can_update(x, self.left):
            left, right = like(self.left[0], x), like(self.right[0], x)
            return rank_one_update(x, 1.0 - step, step, left, right)
        return super().blend(x, step)

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


class OuterAtoms(FactorAtoms):
    """The left rows of all vertices in one matrix, the right ones in another."""

    kind: ClassVar = Outer

    def _store(self, vertex: Vertex, row: int) -> None:
        assert isinstance(vertex, Outer)
        stop = self._keep(vertex.left, vertex.right)
        left, right = self.factors
        crossed = (left[:stop, :] @ like(vertex.left, left).T) * (
            right[:stop, :] @ like(vertex.right, right).T
        )
        self._set_products(row, self._by_atom(crossed, row + 1))

    def inner(self, direction: Array, count: int) -> Floats:
        left, right = self.factors
        end = self.ends[count]
        return self._by_atom((left[:end, :] @ direction) * right[:end, :], count)

    def combine(self, weights: Floats, reference: Array) -> Array:
        left, right = self.factors
        end = self.ends[len(weights)]
        weighted = left[:end, :] * like(weights[self.owners[:end]], left)[:, None]
        return like(weighted.T @ right[:end, :], reference)


def _signed(left: Array, *others: Array) -> tuple[Array, ...]:
    """Each row of `left`, and of the others, or its negative, so that its entry of largest size is
    positive.
    """
    xp = namespace(left)
    if left.shape[0] == 0:
        return left, *others
    turned = (xp.max(left, axis=1) < -xp.min(left, axis=1))[:, None]
    if not bool(xp.any(turned)):
        return left, *others
    return tuple(xp.where(turned, -rows, rows) for rows in (left, *others))
