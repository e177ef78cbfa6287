"""Symmetric matrices kept as factors:  V = ridge I + sum_j f_j f_j'.

A leading eigenvector answers with one row f = sqrt(tau) v and no ridge; the zero matrix has no row
at all; a multiple of the identity has none either; any positive semidefinite matrix is its smallest
eigenvalue as ridge and a row for each larger one. With s = sum_j |f_j|^2,

    <V, G> = ridge tr G + sum_j f_j' G f_j   |V|^2 = n ridge^2 + 2 ridge s + sum_jk <f_j, f_k>^2
    <V, W> = n ridge_V ridge_W + ridge_V s_W + ridge_W s_V + sum_jk <f_j, h_k>^2

so that no dense matrix is made but by `dense`, `blend` and `combine`, and there by one BLAS
product. A table keeps all rows end to end; a positive combination is the product of the rows, each
times the root of its weight, with themselves, hence symmetric to the last bit. The sign of a row is
of no account: its entry of largest size is made positive.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar, final

import numpy as np

from tidewolf.core.arrays import eps_of, frozen, inner, like, namespace, to_numpy
from tidewolf.core.types import Array, Floats
from tidewolf.core.vertices import Atoms, Vertex, require_saved_numbers

_FIRST_ROWS = 8


@final
class LowRank(Vertex):
    """ridge I + sum_j f_j f_j'; `rows` holds the f_j and has shape (rank, n)."""

    tag: ClassVar = "low-rank vertex"

    def __init__(self, rows: Array, ridge: float = 0.0) -> None:
        self.rows, self.ridge = frozen(_signed(rows)), ridge
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

    def inner(self, direction: Array) -> float:
        value = inner(self.rows @ direction, self.rows) if self.rows.shape[0] else 0.0
        return value + self.ridge * _trace(direction) if self.ridge else value

    def dense(self, reference: Array) -> Array:
        return frozen(_with_ridge(like(self.rows.T @ self.rows, reference), self.ridge))

    def blend(self, x: Array, step: float) -> Array:
        if type(x) is np.ndarray and x.dtype.char in "fd" and self.rows.shape[0] == 1:
            return _with_ridge(_rank_one(x, step, like(self.rows[0], x)), step * self.ridge)
        return (1.0 - step) * x + step * self.dense(x)

    def distance2(self, x: Array, x2: float) -> float:
        return max(0.0, x2 - 2.0 * self.inner(x) + self.square)

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


class LowRankAtoms(Atoms):
    """Factors end to end: atom i owns the rows from ends[i] up to ends[i + 1]."""

    kind: ClassVar = LowRank

    def __init__(self) -> None:
        super().__init__()
        self.rows: Array = None
        self.owners = np.zeros(0, dtype=np.int64)
        self.ends = [0]
        self.ridges: list[float] = []
        self.traces: list[float] = []

    def _store(self, vertex: Vertex, row: int) -> None:
        assert isinstance(vertex, LowRank)
        start, stop = self.ends[-1], self.ends[-1] + int(vertex.rows.shape[0])
        if self.rows is None or stop > len(self.owners):
            grown = like(
                np.zeros((max(_FIRST_ROWS, 2 * stop), vertex.n)),
                vertex.rows if self.rows is None else self.rows,
            )
            if start:
                grown[:start, :] = self.rows[:start, :]
            self.rows, self.owners = (
                grown,
                np.append(self.owners[:start], np.zeros(grown.shape[0] - start, dtype=np.int64)),
            )
        if stop > start:
            self.rows[start:stop, :] = like(vertex.rows, self.rows)
            self.owners[start:stop] = len(self.ridges)
        self.ends.append(stop)
        self.ridges.append(vertex.ridge)
        self.traces.append(vertex.trace)
        crossed = self.rows[:stop, :] @ like(vertex.rows, self.rows).T
        ridges, traces = np.array(self.ridges), np.array(self.traces)
        by_rows = self._by_atom(crossed * crossed, row + 1)
        self._multiplied(
            row, ridges * (vertex.n * vertex.ridge + vertex.trace) + vertex.ridge * traces + by_rows
        )

    def inner(self, direction: Array, count: int) -> Floats:
        rows, ridges = self.rows[: self.ends[count], :], np.array(self.ridges[:count])
        by_rows = self._by_atom((rows @ direction) * rows, count)
        return by_rows + ridges * _trace(direction) if ridges.any() else by_rows

    def combine(self, weights: Floats, reference: Array) -> Array:
        end = self.ends[len(weights)]
        each = weights[self.owners[:end]]
        rows = self.rows[:end, :] * like(np.sqrt(np.abs(each)), self.rows)[:, None]
        signed = rows if (each >= 0.0).all() else rows * like(np.sign(each), self.rows)[:, None]
        return _with_ridge(
            like(rows.T @ signed, reference), float(weights @ np.array(self.ridges[: len(weights)]))
        )

    def _by_atom(self, terms: Array, count: int) -> Floats:
        """A sum over the rows of each of the first `count` atoms."""
        by_row = np.asarray(to_numpy(namespace(terms).sum(terms, axis=1)), dtype=np.float64)
        return np.asarray(
            np.bincount(self.owners[: self.ends[count]], by_row, minlength=count), dtype=np.float64
        )


def _rank_one(x: Array, step: float, row: Array) -> Array:
    """(1 - step) x + step row row' by one BLAS update in place of the one new array, without the
    temporaries of `np.outer`.
    """
    from scipy.linalg import blas

    blended = np.multiply(x, 1.0 - step, order="C")
    update = blas.dger if x.dtype.char == "d" else blas.sger
    row = row * x.dtype.type(math.sqrt(step))
    update(1.0, row, row, a=blended.T, overwrite_a=1)
    return blended


def _with_ridge(x: Array, ridge: float) -> Array:
    """x + ridge I, for an x that is the caller's own."""
    if ridge == 0.0:
        return x
    if type(x) is np.ndarray:
        np.einsum("ii->i", x)[:] += ridge
        return x
    return x + ridge * like(np.eye(x.shape[0]), x)


def _trace(x: Array) -> float:
    return float(namespace(x).linalg.trace(x))


def _signed(rows: Array) -> Array:
    """Each row or its negative, whichever has its entry of largest size positive."""
    xp = namespace(rows)
    if rows.shape[0] == 0:
        return rows
    turned = xp.max(rows, axis=1) < -xp.min(rows, axis=1)
    return xp.where(turned[:, None], -rows, rows) if bool(xp.any(turned)) else rows
