"""Matrices stored as factors, and tables of them; no dense matrix is made except by `dense`,
`blend` and `combine`.

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
from typing import ClassVar, final

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
    """A matrix ridge I + A'B, kept as its factors A and B, or as A alone if B is A."""

    factors: tuple[Array, ...]
    ridge = 0.0
    trace = 0.0
    """of A'A, if B is A"""
    square: float
    """<v, v>"""

    def inner(self, direction: Array) -> float:
        left, right = self.factors[0], self.factors[-1]
        value = inner(left @ direction, right) if left.shape[0] else 0.0
        return value + self.ridge * _trace(direction) if self.ridge else value

    def dense(self, reference: Array) -> Array:
        product = self.factors[0].T @ self.factors[-1]
        return frozen(with_diagonal(like(product, reference), self.ridge))

    def distance2(self, x: Array, x2: float) -> float:
        return max(0.0, x2 - 2.0 * self.inner(x) + self.square)

    def key(self) -> bytes:
        parts = (to_numpy(factor).tobytes() for factor in self.factors)
        return np.float64(self.ridge).tobytes() + b"".join(parts)

    def table(self) -> Atoms:
        return FactorAtoms(type(self))


class FactorAtoms(Atoms):
    """Factors end to end: atom i owns the rows from ends[i] up to ends[i + 1].

    `factors` has one matrix of rows for each factor of a product: one for f f', two for l r'.
    """

    def __init__(self, kind: type[Vertex]) -> None:
        super().__init__()
        self.kind = kind
        self.factors: list[Array] = []
        self.owners = np.zeros(0, dtype=np.int64)
        self.ends = [0]
        self.ridges: list[float] = []
        self.traces: list[float] = []

    def _store(self, vertex: Vertex, row: int) -> None:
        assert isinstance(vertex, Factored)
        self._keep(vertex.factors)
        self.ridges.append(vertex.ridge)
        self.traces.append(vertex.trace)
        held = [rows[: self.ends[-1], :] for rows in self.factors]
        crossed = [rows @ like(own, rows).T for rows, own in zip(held, vertex.factors, strict=True)]
        by_rows = self._by_atom(crossed[0] * crossed[-1], row + 1)
        ridges, traces, n = np.array(self.ridges), np.array(self.traces), vertex.shape[0]
        across = ridges * (n * vertex.ridge + vertex.trace) + vertex.ridge * traces
        self._set_products(row, across + by_rows)

    def _keep(self, factors: tuple[Array, ...]) -> None:
        """Store the rows of the next atom."""
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

    def _by_atom(self, terms: Array, count: int) -> Floats:
        """A sum over the rows of each of the first `count` atoms."""
        by_row = np.asarray(to_numpy(namespace(terms).sum(terms, axis=1)), dtype=np.float64)
        return np.asarray(
            np.bincount(self.owners[: self.ends[count]], by_row, minlength=count), dtype=np.float64
        )

    def inner(self, direction: Array, count: int) -> Floats:
        left, right = (self.factors[i][: self.ends[count], :] for i in (0, -1))
        by_rows, ridges = self._by_atom((left @ direction) * right, count), self.ridges[:count]
        return by_rows + np.array(ridges) * _trace(direction) if any(ridges) else by_rows

    def combine(self, weights: Floats, reference: Array) -> Array:
        end = self.ends[len(weights)]
        left, right, each = self.factors[0], self.factors[-1][:end, :], weights[self.owners[:end]]
        if len(self.factors) == 2:
            left = left[:end, :] * like(each, left)[:, None]
        else:  # symmetric to the last bit
            right = left = right * like(np.sqrt(np.abs(each)), left)[:, None]
            if not (each >= 0.0).all():
                right = left * like(np.sign(each), left)[:, None]
        ridge = float(weights @ np.array(self.ridges[: len(weights)]))
        return with_diagonal(like(left.T @ right, reference), ridge)


def _grown(rows: Array | None, more: Array, room: int) -> Array:
    """A table of `room` rows that begins with those there are."""
    grown = like(np.zeros((room, more.shape[1])), more if rows is None else rows)
    if rows is not None:
        grown[: rows.shape[0], :] = rows
    return grown


def _trace(x: Array) -> float:
    return float(namespace(x).linalg.trace(x))


@final
class LowRank(Factored):
    """ridge I + sum_j f_j f_j'; `rows` holds the f_j and has shape (rank, n)."""

    tag: ClassVar = "low-rank vertex"
    saved: ClassVar = ("rows", "ridge")

    def __init__(self, rows: Array, ridge: float = 0.0) -> None:
        self.rows, self.ridge = frozen(_signed(rows)[0]), ridge
        self.factors, n = (self.rows,), int(rows.shape[1])
        self.shape, self.trace = (n, n), inner(self.rows, self.rows)
        products = self.rows @ self.rows.T
        self.square = n * ridge**2 + 2.0 * ridge * self.trace + inner(products, products)

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

    def require_sound(self) -> None:
        require_saved_numbers(self.rows, 2)
        if type(self.ridge) not in (int, float) or not 0.0 <= self.ridge < math.inf:
            raise ValueError(f"the ridge of a low-rank vertex is no {self.ridge!r}")


@final
class Outer(Factored):
    """sum_j l_j r_j'; `left` holds the l_j and has shape (rank, m), `right` the r_j, of shape
    (rank, n).
    """

    tag: ClassVar = "outer vertex"
    saved: ClassVar = ("left", "right")

    def __init__(self, left: Array, right: Array) -> None:
        self.factors = left, right = _signed(left, right)
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

    def require_sound(self) -> None:
        require_saved_numbers(self.left, 2)
        require_saved_numbers(self.right, 2)
        if self.left.shape[0] != self.right.shape[0]:
            raise ValueError("an outer vertex has as many left factors as right ones")


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
