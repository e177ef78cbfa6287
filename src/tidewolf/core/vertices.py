"""Members of a set stored in their own size, and tables of them.

An oracle's answer is a `Vertex`: a path is its arcs, a one-hot its index, a leading eigenvector its
factor. The machinery asks three things of it: <v, d>, the dense point, and (1 - s) x + s v.

    Dense      a plain array
    Sparse     flat indices and values
    LowRank    ridge I + sum_j f_j f_j'
    Outer      sum_j l_j r_j'
    Compound   one vertex of each part of a product; or shift + scale v, for a vertex v

A table (`Atoms`) does for many vertices at once what a vertex does:

    inner(d, count)_i = <a_i, d>
    combine(w)        = sum_i w_i a_i
    gram[i, j]        = <a_i - o, a_j - o>

with o a point of the table's choosing, so that a set far from the origin loses no digits: only
differences of atoms count. Tables are append-only and shared between states: `append` on a table
that has grown past the caller's view (`count` rows) forks it, so every state keeps seeing exactly
what it saw.
"""

import math
import threading
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, Self, final

import numpy as np

from tidewolf.core.arrays import (
    end_to_end,
    eps_of,
    flat,
    frozen,
    inner,
    inner_products,
    is_array,
    is_torch,
    like,
    namespace,
    padded,
    pieces,
    placed,
    plus,
    taken,
    to_numpy,
    with_diagonal,
    zeros,
)
from tidewolf.core.checkpoint import Stored
from tidewolf.core.errors import WrongType
from tidewolf.core.jit import light_kernel
from tidewolf.core.types import Array, Floats, NDArray, Shape

# How many rows a table has room for at first.
FIRST_ROWS = 8


def require_saved_numbers(array: Any, axes: int | None = None) -> None:
    """Refuse what is no array of finite floating-point numbers, with so many axes, in a saved
    state.
    """
    own = to_numpy(array) if is_array(array) and axes in (None, array.ndim) else np.array(None)
    if own.dtype.kind != "f" or not np.isfinite(own).all():
        kind = "" if axes is None else f" with {axes} axes"
        raise ValueError(f"an array of finite numbers{kind} is missing")


class Vertex(Stored, ABC):
    """A member of a set, stored in its own size."""

    shape: Shape

    @classmethod
    def restored(cls, parts: dict[str, Any]) -> Self:
        vertex = super().restored(parts)
        vertex.require_sound()
        return vertex

    def require_sound(self) -> None:
        """Refuse, by a ValueError, numbers that are not finite."""
        for part in self.parts().values():
            if is_array(part):
                require_saved_numbers(part)

    @abstractmethod
    def inner(self, direction: Array) -> float:
        """<v, direction>."""

    @abstractmethod
    def dense(self, reference: Array) -> Array:
        """The point as a read-only array in the library, dtype and device of `reference`."""

    def blend(self, x: Array, step: float) -> Array:
        """(1 - step) x + step v, as a new array."""
        return x + step * (self.dense(x) - x)

    def distance2(self, x: Array, x2: float) -> float:
        """|x - v|^2, given <x, x>."""
        away = x - self.dense(x)
        return inner(away, away)

    @abstractmethod
    def key(self) -> bytes:
        """Equal for equal points of this kind."""

    @abstractmethod
    def table(self, home: Array = None) -> "Atoms":
        """An empty table for vertices of this kind, for points that live where `home` does."""


class Atoms(ABC):
    """An append-only table of vertices with their Gram matrix."""

    kind: type[Vertex]
    home: Array = None

    def __init__(self) -> None:
        self.gram: Floats = np.zeros((FIRST_ROWS, FIRST_ROWS))
        # held while it grows: states that share it may be continued in several threads
        self.lock = threading.RLock()
        self._vertices: list[Vertex] = []
        # the first row of each point, of so many rows
        self._rows, self._keyed = dict[bytes, int](), 0

    def __getstate__(self) -> dict[str, Any]:
        return {name: part for name, part in vars(self).items() if name != "lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, lock=threading.RLock())

    @property
    def vertices(self) -> list[Vertex]:
        return self._vertices

    def __len__(self) -> int:
        return len(self._vertices)

    def find(self, vertex: Vertex, count: int) -> int | None:
        """The row that holds this very point among the first `count`, or None."""
        with self.lock:
            for known in self.vertices[self._keyed :]:
                self._rows.setdefault(known.key(), self._keyed)
                self._keyed += 1
        row = self._rows.get(vertex.key())
        return row if row is not None and row < count else None

    def append(self, vertex: Vertex, count: int) -> "Atoms":
        if type(vertex) is not self.kind:
            kinds = f"here {self.kind.__name__}, not {type(vertex).__name__}"
            raise WrongType(f"A set's `atom` must make vertices as its `answer` does, {kinds}.")
        with self.lock:
            table = self if count == len(self) else self.only(np.arange(count))
            table._append(vertex)
        return table

    def only(self, rows: NDArray) -> "Atoms":
        table = self.vertices[0].table(self.home)
        for row in rows:
            table._append(self.vertices[int(row)])
        return table

    def _append(self, vertex: Vertex) -> None:
        row = len(self)
        if row == len(self.gram):
            self.gram = padded(self.gram, 2 * row, 2 * row)
        self.gram[row, : row + 1] = self.gram[: row + 1, row] = self._store(vertex, row)
        self._vertices.append(vertex)

    def _store(self, vertex: Vertex, row: int) -> Floats:
        """Keep what `inner` and `combine` need of the vertex of the next row; <a_i - o, vertex - o>
        for the first rows, the last of which is the vertex's own. Tables with an `_append` of their
        own need none.
        """
        raise NotImplementedError

    @abstractmethod
    def inner(self, direction: Array, count: int) -> Floats:
        """<a_i, direction> for the first `count` rows."""

    @abstractmethod
    def combine(self, weights: NDArray, reference: Array) -> Array:
        """sum_i weights_i a_i over the first len(weights) rows, in the library, dtype and device of
        `reference`.
        """


# --- Plain arrays ---------------------------------------------------------------------------------
#
# Members as plain arrays.


@final
class Dense(Vertex):
    """A member as a plain array."""

    tag: ClassVar = "dense vertex"
    saved: ClassVar = ("point",)

    def __init__(self, point: Array) -> None:
        self.point = frozen(point)
        self.shape = tuple(point.shape)

    def inner(self, direction: Array) -> float:
        return inner(self.point, direction)

    def dense(self, reference: Array) -> Array:
        return frozen(like(self.point, reference))

    def key(self) -> bytes:
        return to_numpy(self.point).tobytes()

    def table(self, home: Array = None) -> Atoms:
        return DenseAtoms()


class DenseAtoms(Atoms):
    """Dense vertices, less the first, as the rows of one matrix, in the library of the first."""

    kind = Dense

    def __init__(self) -> None:
        super().__init__()
        self.matrix: Array = None
        self.origin: Array = None

    def find(self, vertex: Vertex, count: int) -> int | None:
        if not isinstance(vertex, Dense) or count == 0:
            return None
        if type(vertex.point) is np.ndarray:
            return super().find(vertex, count)
        away = flat(like(vertex.point, self.matrix)) - self.origin
        same = namespace(away).all(self.matrix[:count, :] == away, axis=1)
        return next(iter(np.flatnonzero(to_numpy(same)).tolist()), None)

    def _store(self, vertex: Dense, row: int) -> Floats:  # type: ignore[override]
        xp, entries = namespace(vertex.point), flat(vertex.point)
        if self.matrix is None:
            self.origin = entries
            self.matrix = xp.stack([0 * entries] * FIRST_ROWS)
        elif row == self.matrix.shape[0]:
            self.matrix = xp.concat([self.matrix, self.matrix])
        away = entries - self.origin
        self.matrix[row, :] = away
        return np.asarray(to_numpy(self.matrix[: row + 1, :] @ away), dtype=np.float64)

    def inner(self, direction: Array, count: int) -> Floats:
        d = flat(direction)
        looked = namespace(d).concat([self.matrix[:count, :] @ d, (self.origin @ d)[None]])
        found = np.asarray(to_numpy(looked), dtype=np.float64)
        return np.asarray(found[:-1] + found[-1])

    def combine(self, weights: NDArray, reference: Array) -> Array:
        mean = like(weights, self.matrix) @ self.matrix[: len(weights), :]
        point = plus(mean, float(np.sum(weights)), self.origin)
        return like(namespace(point).reshape(point, tuple(reference.shape)), reference)


# --- Few nonzero entries --------------------------------------------------------------------------
#
# Members with few nonzero entries: the arcs of a path, the one entry of a corner.


@final
class Sparse(Vertex):
    """A member with few nonzero entries: flat indices and their values."""

    tag: ClassVar = "sparse vertex"
    saved: ClassVar = ("shape", "indices", "values")

    def __init__(self, shape: Shape, indices: NDArray, values: NDArray) -> None:
        self.shape, self.indices, self.values = shape, frozen(indices), frozen(values)

    @staticmethod
    def zero(shape: Shape) -> "Sparse":
        return Sparse(shape, np.zeros(0, dtype=np.int32), np.zeros(0))

    @staticmethod
    def of(point: Array) -> "Sparse":
        """The nonzero entries of a dense point."""
        entries = flat(to_numpy(point)).astype(np.float64, copy=False)
        indices = np.flatnonzero(entries)
        return Sparse(tuple(point.shape), indices.astype(np.int32), entries[indices])

    def inner(self, direction: Array) -> float:
        return float(self.values.dot(to_numpy(taken(flat(direction), self.indices))))

    def dense(self, reference: Array) -> Array:
        entries = np.zeros(math.prod(self.shape))
        entries[self.indices] = self.values
        return frozen(like(entries.reshape(self.shape), reference))

    def blend(self, x: Array, step: float) -> Array:
        if type(x) is not np.ndarray:
            return super().blend(x, step)
        blended = (1.0 - step) * x
        blended.reshape(-1)[self.indices] += (step * self.values).astype(x.dtype, copy=False)
        return blended

    def distance2(self, x: Array, x2: float) -> float:
        return max(0.0, x2 - 2.0 * self.inner(x) + float(self.values.dot(self.values)))

    def key(self) -> bytes:
        return bytes(self.indices.tobytes() + self.values.tobytes())

    def table(self, home: Array = None) -> Atoms:
        return PlacedAtoms(home) if is_torch(home) else SparseAtoms()

    def require_sound(self) -> None:
        """Indices are checked, for compiled loops follow them wherever they lead."""
        shape, indices, values = self.shape, self.indices, self.values
        require_saved_numbers(values, 1)
        whole = type(shape) is tuple and all(type(side) is int and side >= 0 for side in shape)
        kinds = indices.dtype == np.int32 and values.dtype == np.float64
        if not whole or not kinds or indices.shape != values.shape:
            raise ValueError("a sparse vertex has a shape, and a 32-bit index for each value")
        if len(indices) and not (int(indices.min()) >= 0 and int(indices.max()) < math.prod(shape)):
            raise ValueError(f"a sparse vertex has an index beyond its shape {shape}")


class SparseAtoms(Atoms):
    """Sparse vertices end to end: row i is entries starts[i] to starts[i + 1].

    Kernels append rows themselves (kernels/active_set.py), under its lock: `filled` counts all of
    them. Vertices, and products that no kernel made, are made on first use.
    """

    kind = Sparse

    _gram: Floats

    def __init__(self) -> None:
        self._multiplied = 0
        super().__init__()
        self.filled = 0
        self.shape: Shape = ()
        self.starts = np.zeros(FIRST_ROWS + 1, dtype=np.int64)
        self.indices = np.zeros(FIRST_ROWS, dtype=np.int32)
        self.values = np.zeros(FIRST_ROWS)

    def __len__(self) -> int:
        return self.filled

    @property
    def room(self) -> int:
        return len(self.starts) - 1

    @property
    def gram(self) -> Floats:
        """The products of all rows; those that are missing are made."""
        if self._multiplied == self.filled and len(self._gram) >= self.room:
            return self._gram
        with self.lock:
            if len(self._gram) < self.room:
                self._gram = padded(self._gram, self.room, self.room)
            if self._multiplied < self.filled:
                zeros = np.zeros(math.prod(self.shape))
                table = self.starts, self.indices, self.values, self._gram
                for row in range(self._multiplied, self.filled):
                    sparse_multiply(*table, row, zeros)
                self._multiplied = self.filled
            return self._gram

    @gram.setter
    def gram(self, gram: Floats) -> None:
        self._gram = gram

    def appended(self, count: int) -> None:
        """A kernel has made it so many rows, with their products; called with the lock held."""
        if count > self.filled:
            self.filled = self._multiplied = count

    @property
    def vertices(self) -> list[Vertex]:
        if len(self._vertices) < self.filled:
            with self.lock:
                for row in range(len(self._vertices), self.filled):
                    own = slice(self.starts[row], self.starts[row + 1])
                    parts = self.indices[own].copy(), self.values[own].copy()
                    self._vertices.append(Sparse(self.shape, *parts))
        return self._vertices

    def make_room(self, rows: int, entries: int) -> None:
        """Arrays for so many rows, with so many entries in all, where they are too short; called
        with the lock held.
        """
        if rows > self.room:
            self.starts = padded(self.starts, max(2 * len(self.starts), rows + 1))
        if entries > len(self.indices):
            most = max(2 * len(self.indices), entries)
            self.indices, self.values = padded(self.indices, most), padded(self.values, most)

    def _append(self, vertex: Sparse) -> None:  # type: ignore[override]
        row, self.shape = self.filled, vertex.shape
        begin = int(self.starts[row])
        end = begin + len(vertex.indices)
        self.make_room(row + 1, end)
        self.starts[row + 1] = end
        self.indices[begin:end], self.values[begin:end] = vertex.indices, vertex.values
        self.filled += 1

    def only(self, rows: NDArray) -> Self:
        """A new table holding just these rows, in this order; products that are there are copied,
        and are those of a table made anew where rows ascend.
        """
        table, count = type(self)(), len(rows)
        room = max(count, FIRST_ROWS)
        table.filled, table.shape = count, self.shape
        if len(self._vertices) == self.filled:
            table._vertices = [self._vertices[row] for row in rows.tolist()]
        if self._multiplied == self.filled:
            table._gram, table._multiplied = np.zeros((room, room)), count
            table._gram[:count, :count] = self._gram[rows[:, None], rows]
        begins, sizes = self.starts[rows], self.starts[rows + 1] - self.starts[rows]
        table.starts = np.zeros(room + 1, dtype=np.int64)
        np.cumsum(sizes, out=table.starts[1 : count + 1])
        entries = np.repeat(begins - table.starts[:count], sizes) + np.arange(table.starts[count])
        table.indices, table.values = self.indices[entries], self.values[entries]
        return table

    def inner(self, direction: Array, count: int) -> Floats:
        products = np.empty(count)
        sparse_inner(self.starts, self.indices, self.values, flat(to_numpy(direction)), products)
        return products

    def combine(self, weights: NDArray, reference: Array) -> Array:
        point = np.zeros(tuple(reference.shape))
        sparse_combine(self.starts, self.indices, self.values, weights, point.reshape(-1))
        return like(point, reference)


@light_kernel
def sparse_inner(starts, indices, values, direction, products):  # type: ignore[no-untyped-def]
    """<row, direction> for the first rows, each in four sums."""
    unsigned = indices.view(np.uint32)  # machine code need not look whether one is negative
    for row in range(len(products)):
        v, at = values[starts[row] : starts[row + 1]], unsigned[starts[row] : starts[row + 1]]
        whole, s0, s1, s2, s3 = len(v) // 4 * 4, 0.0, 0.0, 0.0, 0.0
        for p in range(0, whole, 4):
            s0 += v[p] * direction[at[p]]
            s1 += v[p + 1] * direction[at[p + 1]]
            s2 += v[p + 2] * direction[at[p + 2]]
            s3 += v[p + 3] * direction[at[p + 3]]
        total = (s0 + s2) + (s1 + s3)
        for p in range(whole, len(v)):
            total += v[p] * direction[at[p]]
        products[row] = total


@light_kernel
def first_is_whole(starts, indices, n):  # type: ignore[no-untyped-def]
    """1 if the first row has all n entries, in order: a center. It needs no indices. Else 0."""
    others = abs(starts[1] - n)
    for e in range(n if others == 0 else 0):
        others += indices[e] != e
    return 1 if others == 0 else 0


@light_kernel
def sparse_multiply(starts, indices, values, gram, row, zeros):  # type: ignore[no-untyped-def]
    """The products of a row with those up to it; `zeros` has an entry for each of a point's, and is
    as it was afterwards.
    """
    products, first = gram[row, : row + 1], first_is_whole(starts, indices, len(zeros))
    begin, end, product = starts[row], starts[row + 1], 0.0
    for p in range(begin, end if first == 1 else begin):
        product += values[p] * values[indices[p]]
    products[0] = product
    if row >= first:
        for p in range(begin, end):
            zeros[indices[p]] = values[p]
        sparse_inner(starts[first:], indices, values, zeros, products[first:])
        for p in range(begin, end):
            zeros[indices[p]] = 0.0
    for i in range(row):  # an assignment of slices would take numba two seconds
        gram[i, row] = products[i]


@light_kernel
def sparse_combine(starts, indices, values, weights, point):  # type: ignore[no-untyped-def]
    unsigned = indices.view(np.uint32)
    for row in range(len(weights)):
        weight = weights[row]
        if weight != 0.0:
            v, at = values[starts[row] : starts[row + 1]], unsigned[starts[row] : starts[row + 1]]
            for p in range(len(v)):
                point[at[p]] += weight * v[p]


# --- Matrices as factors --------------------------------------------------------------------------
#
# Matrices stored as factors, and tables of them; no dense matrix is made except by `dense`,
# `blend` and `combine`.
#
# **LowRank**: V = ridge I + sum_j f_j f_j', symmetric. A leading eigenvector v is one row sqrt(tau)
# v without a ridge; zero and multiples of the identity have no row; any positive semidefinite
# matrix is its smallest eigenvalue as ridge and a row for each larger one. With s = sum_j |f_j|^2,
#
#     <V, G> = ridge tr G + sum_j f_j' G f_j
#     |V|^2  = n ridge^2 + 2 ridge s + sum_jk <f_j, f_k>^2
#     <V, W> = n ridge_V ridge_W + ridge_V s_W + ridge_W s_V + sum_jk <f_j, h_k>^2
#
# A positive combination is the product of the rows, each times the root of its weight, with
# themselves, hence symmetric to the last bit.
#
# **Outer**: V = sum_j l_j r_j'. A leading singular pair is one product; the zero matrix has none;
# any matrix has one for each singular value.
#
#     <V, G> = sum_j l_j' G r_j
#     |V|^2  = sum_jk <l_j, l_k> <r_j, r_k>
#     <V, W> = sum_jk <l_j, p_k> <r_j, q_k>
#
# A row and its negative, or a pair and its negative, give the same product: the entry of largest
# size of f_j or l_j is made positive.


class Factored(Vertex):
    """A matrix ridge I + A'B, kept as its factors A and B, or as A alone if B is A."""

    factors: tuple[Array, ...]
    ridge = 0.0
    # of A'A, if B is A
    trace = 0.0
    # <v, v>
    square: float

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

    def table(self, home: Array = None) -> Atoms:
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

    def _store(self, vertex: Factored, row: int) -> Floats:  # type: ignore[override]
        start, count = self.ends[-1], int(vertex.factors[0].shape[0])
        held = self.factors or [rows[:0, :] for rows in vertex.factors]
        self.factors = [
            namespace(rows).concat([rows, like(own, rows)])
            for rows, own in zip(held, vertex.factors, strict=True)
        ]
        self.owners = np.append(self.owners, np.full(count, row))
        self.ends.append(start + count)
        self.ridges.append(vertex.ridge)
        self.traces.append(vertex.trace)
        crossed = [rows @ rows[start:, :].T for rows in self.factors]
        by_rows = self._by_atom(crossed[0] * crossed[-1], row + 1)
        ridges, traces, n = np.array(self.ridges), np.array(self.traces), vertex.shape[0]
        return ridges * (n * vertex.ridge + vertex.trace) + vertex.ridge * traces + by_rows

    def _by_atom(self, terms: Array, count: int) -> Floats:
        by_row = np.asarray(to_numpy(namespace(terms).sum(terms, axis=1)), dtype=np.float64)
        sums = np.bincount(self.owners[: self.ends[count]], by_row, minlength=count)
        return sums.astype(np.float64)  # no rows have whole numbers as sums

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
        self.shape, products = (n, n), self.rows @ self.rows.T
        self.trace, square = inner_products((self.rows, self.rows), (products, products))
        self.square = n * ridge**2 + 2.0 * ridge * self.trace + square

    @staticmethod
    def of(point: Array) -> "LowRank":
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
    def ridged(n: int, ridge: float, reference: Array) -> "LowRank":
        """ridge I, in the library, dtype and device of `reference`."""
        return LowRank(zeros((0, n), reference), ridge)


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
    def of(point: Array) -> "Outer":
        """A matrix by its singular vectors; singular values that may be rounding are left out."""
        xp = namespace(point)
        left, values, right = xp.linalg.svd(point, full_matrices=False)
        rank = int(xp.count_nonzero(values > max(point.shape) * eps_of(point) * float(values[0])))
        return Outer((left[:, :rank] * values[:rank]).T, right[:rank, :] + 0.0)


def _signed(*factors: Array) -> tuple[Array, ...]:
    """Factors in the order in memory that loaded ones have, as products round by it."""
    xp = namespace(factors[0])
    left, *others = (xp.reshape(flat(rows), rows.shape) for rows in factors)
    if left.shape[0] == 0:
        return left, *others
    turned = (xp.max(left, axis=1) < -xp.min(left, axis=1))[:, None]
    return tuple(xp.where(turned, -rows, rows) for rows in (left, *others))


# --- Made of others -------------------------------------------------------------------------------
#
# Vertices made of others: shift + scale (v_1, ..., v_m).
#
# A member of a product is one vertex of each part, flattened and put end to end; a member of a set
# that was moved and scaled is a vertex of that set, moved and scaled. With d_p the entries of d
# that belong to part p, in the shape of v_p,
#
#     <v, d> = <shift, d> + scale sum_p <v_p, d_p>
#
# A table has one table for each part; inner products and the Gram matrix are sums of theirs. If
# every part of a product is `Sparse`, so is the whole.


def join_vertices(vertices: Sequence[Vertex]) -> Vertex:
    if not all(type(vertex) is Sparse for vertex in vertices):
        return Compound(vertices)
    starts = np.cumsum([0, *(math.prod(vertex.shape) for vertex in vertices)])
    indices = [
        vertex.indices + np.int32(start)  # type: ignore[attr-defined]
        for vertex, start in zip(vertices, starts[:-1], strict=True)
    ]
    values = [vertex.values for vertex in vertices]  # type: ignore[attr-defined]
    return Sparse((int(starts[-1]),), np.concatenate(indices), np.concatenate(values))


@final
class Compound(Vertex):
    """One vertex of each part of a product; or a single one with a shift, in the shift's shape."""

    tag: ClassVar = "compound vertex"
    saved: ClassVar = ("vertices", "scale", "shift")

    def __init__(
        self, vertices: Sequence[Vertex], scale: float = 1.0, shift: Array | None = None
    ) -> None:
        self.vertices, self.scale, self.shift = tuple(vertices), scale, shift
        self.shapes = [vertex.shape for vertex in vertices]
        self.shape = (sum(map(math.prod, self.shapes)),) if shift is None else tuple(shift.shape)

    def inner(self, direction: Array) -> float:
        parts = zip(self.vertices, self.along(direction), strict=True)
        value = self.scale * sum(vertex.inner(d) for vertex, d in parts)
        return (
            value if self.shift is None else value + inner(like(self.shift, direction), direction)
        )

    def dense(self, reference: Array) -> Array:
        parts = zip(self.vertices, self.along(reference), strict=True)
        return frozen(self.joined([vertex.dense(part) for vertex, part in parts], 1.0, reference))

    def key(self) -> bytes:
        keys = [vertex.key() for vertex in self.vertices]
        return b"".join(len(key).to_bytes(8) + key for key in keys)

    def table(self, home: Array = None) -> Atoms:
        return CompoundAtoms(self)

    def along(self, x: Array) -> Sequence[Array]:
        """The entries of x that belong to each part."""
        return (x,) if self.shift is not None else tuple(pieces(x, self.shapes))

    def joined(self, parts: Sequence[Array], weight: float, reference: Array) -> Array:
        """weight shift + scale times a point of each part."""
        if self.shift is None:
            return end_to_end(parts)
        return weight * like(self.shift, reference) + self.scale * parts[0]


class CompoundAtoms(Atoms):
    """One table for each part; the scale and the shift are those of the first vertex."""

    kind = Compound

    def __init__(self, form: Compound) -> None:
        super().__init__()
        self.form, self.inside = form, [vertex.table() for vertex in form.vertices]

    def _store(self, vertex: Compound, row: int) -> Floats:  # type: ignore[override]
        for table, part in zip(self.inside, vertex.vertices, strict=True):
            table._append(part)
        products = [table.gram[row, : row + 1] for table in self.inside]
        return np.asarray(self.form.scale**2 * np.sum(products, axis=0))

    def inner(self, direction: Array, count: int) -> Floats:
        parts = zip(self.inside, self.form.along(direction), strict=True)
        found: Floats = self.form.scale * np.sum([t.inner(d, count) for t, d in parts], axis=0)
        shift = self.form.shift
        return found if shift is None else found + inner(like(shift, direction), direction)

    def combine(self, weights: NDArray, reference: Array) -> Array:
        parts = zip(self.inside, self.form.along(reference), strict=True)
        means = [table.combine(weights, part) for table, part in parts]
        return self.form.joined(means, float(np.sum(weights)), reference)


# --- Sparse vertices on a device ------------------------------------------------------------------
#
# Sparse vertices among points that live on a device (torch).
#
# All that a table of vertices with few entries needs of a point d is what d holds at the places u
# where one of them has an entry, and all that it makes of weights w is there, too:
#
#     <a_i, d> = <values_i, d_u>        (sum_i w_i a_i)_u = sum_i w_i values_i, and 0 elsewhere
#
# so d_u comes to the host in one read, and a mean goes back in one write to places that are all
# different: no sum depends on an order that a device chooses. A vertex with many entries, such as
# the center, is kept as a point there.


# Vertices with more than this share of all entries are kept as points.
_FULL = 0.5


class PlacedAtoms(Atoms):
    """Rows end to end; those of full vertices are empty."""

    kind = Sparse

    def __init__(self, reference: Array) -> None:
        super().__init__()
        self.home = zeros((0,), reference)
        # row i has the entries from ends[i] up to ends[i + 1]
        self.ends = [0]
        self.indices, self.owners = np.zeros((2, 0), dtype=np.int64)
        self.values = np.zeros(0)
        # the points of full vertices by their rows
        self.full: dict[int, Array] = {}

    def _store(self, vertex: Sparse, row: int) -> Floats:  # type: ignore[override]
        count, size = len(vertex.indices), math.prod(vertex.shape)
        point = zeros((size,), self.home)
        point[placed(vertex.indices.astype(np.int64), self.home)] = like(vertex.values, self.home)
        if count > _FULL * size:
            self.full[row], count = point, 0
        self.ends.append(self.ends[row] + count)
        self.owners = np.append(self.owners, np.full(count, row))
        self.indices = np.append(self.indices, vertex.indices[:count])
        self.values = np.append(self.values, vertex.values[:count])
        # the entries in u, and where in u each entry of a row is
        used, self.places = np.unique(self.indices, return_inverse=True)
        self.u = placed(used, self.home)
        return self.inner(point, row + 1)

    def inner(self, direction: Array, count: int) -> Floats:
        d, end = flat(direction), self.ends[count]
        full = [row for row in self.full if row < count]
        looked = [d[self.u], *((self.full[row] @ d)[None] for row in full)]
        read = np.asarray(to_numpy(namespace(d).concat(looked)), dtype=np.float64)
        terms = self.values[:end] * read[self.places[:end]]
        products = np.bincount(self.owners[:end], terms, minlength=count).astype(np.float64)
        products[full] = read[len(read) - len(full) :]
        return products

    def combine(self, weights: NDArray, reference: Array) -> Array:
        point, end = zeros((math.prod(reference.shape),), self.home), self.ends[len(weights)]
        for row, full in self.full.items():
            if row < len(weights) and weights[row] != 0.0:
                point = plus(point, float(weights[row]), full)
        terms = self.values[:end] * weights[self.owners[:end]]
        at_u = np.bincount(self.places[:end], terms, minlength=len(self.u))
        point[self.u] += like(at_u, self.home)  # no place twice
        return like(namespace(point).reshape(point, tuple(reference.shape)), reference)
