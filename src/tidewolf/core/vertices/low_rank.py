"""Symmetric matrices kept as factors:  V = ridge I + sum_j f_j f_j'.

A leading eigenvector answers with one row f = sqrt(tau) v and no ridge; the zero matrix has no row
at all; a multiple of the identity has none either; any positive semidefinite matrix is its smallest
eigenvalue as ridge and a row for each larger one. With s = sum_j |f_j|^2,

    <V, G> = ridge tr G + sum_j f_j' G f_j
    |V|^2  = n ridge^2 + 2 ridge s + sum_jk <f_j, f_k>^2
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
from tidewolf.core.vertices.base import Atoms, Vertex, require_saved_numbers
from tidewolf.core.vertices.factored import FactorAtoms, Factored, can_update, rank_one_update


@final
class LowRank(Factored):
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


def _signed(rows: Array) -> Array:
    """Each row or its negative, whichever has its entry of largest size positive."""
    xp = namespace(rows)
    if rows.shape[0] == 0:
        return rows
    turned = xp.max(rows, axis=1) < -xp.min(rows, axis=1)
    return xp.where(turned[:, None], -rows, rows) if bool(xp.any(turned)) else rows
