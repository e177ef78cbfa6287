"""Members of a set stored in their own size, and tables of them.

An oracle's answer is a `Vertex`: a path is its arcs, a one-hot its index, a leading eigenvector its
factor. The machinery asks three things of it: <v, d>, the dense point, and (1 - s) x + s v. A table
of vertices (`Atoms`) does the same for many at once:

    inner(d, count)_i = <a_i, d>        combine(w) = sum_i w_i a_i   gram[i, j] = <a_i - o, a_j - o>

with o a point of the table's choosing, so that a set far from the origin loses no digits: only
differences of atoms count.
Tables are append-only and shared between states: `append` on a table that has grown past the
caller's view (`count` rows) forks it, so every state keeps seeing exactly what it saw.
"""

from __future__ import annotations

import math
import threading
from abc import ABC, abstractmethod
from typing import Any, ClassVar, final

import numpy as np

from tidewolf.core.arrays import flat, frozen, inner, is_array, like, namespace, to_numpy
from tidewolf.core.checkpoint import Stored
from tidewolf.core.errors import WrongType
from tidewolf.core.jit import kernel
from tidewolf.core.types import Array, Floats, NDArray, Shape

_FIRST_ROWS = 8
_APPENDING = threading.Lock()
"""Held while a table grows: states that share it may be continued in several threads."""


def require_saved_numbers(array: Any, axes: int | None = None) -> None:
    """Refuse what is no array of finite floating-point numbers, with so many axes, in a saved
    state.
    """
    if not is_array(array) or (axes is not None and array.ndim != axes):
        raise ValueError(
            f"an array of numbers{'' if axes is None else f' with {axes} axes'} is missing"
        )
    xp = namespace(array)
    if to_numpy(array).dtype.kind != "f" or not bool(xp.all(xp.isfinite(array))):
        raise ValueError("an array holds what is no finite number")


class Vertex(Stored):
    """A member of a set, stored in its own size."""

    shape: Shape

    @abstractmethod
    def inner(self, direction: Array) -> float:
        """<v, direction>."""

    @abstractmethod
    def dense(self, reference: Array) -> Array:
        """The point as a read-only array in the library, dtype and device of `reference`."""

    @abstractmethod
    def blend(self, x: Array, step: float) -> Array:
        """(1 - step) x + step v, as a new array."""

    @abstractmethod
    def distance2(self, x: Array, x2: float) -> float:
        """|x - v|^2, given <x, x>."""

    @abstractmethod
    def key(self) -> bytes:
        """Equal for equal points of this kind."""

    @abstractmethod
    def table(self) -> Atoms:
        """An empty table for vertices of this kind."""


class Atoms(ABC):
    """An append-only table of vertices with their Gram matrix."""

    kind: ClassVar[type[Vertex]]

    def __init__(self) -> None:
        self.vertices: list[Vertex] = []
        self.gram: Floats = np.zeros((_FIRST_ROWS, _FIRST_ROWS))
        self._rows: dict[bytes, int] = {}

    def __len__(self) -> int:
        return len(self.vertices)

    def find(self, vertex: Vertex, count: int) -> int | None:
        """The row that holds this very point among the first `count`, or None."""
        row = self._rows.get(vertex.key())
        return row if row is not None and row < count else None

    def append(self, vertex: Vertex, count: int) -> Atoms:
        """A table whose row `count` is `vertex`: this one when nobody has appended meanwhile, else
        a fork of its first `count` rows.
        """
        if type(vertex) is not self.kind:
            raise WrongType(
                f"A {type(vertex).__name__} vertex was met among {self.kind.__name__} ones; "
                "a set's `atom` must make vertices of the kind its `answer` gives."
            )
        with _APPENDING:
            table = self if count == len(self.vertices) else self.only(np.arange(count))
            table._push(vertex)
        return table

    def only(self, rows: NDArray) -> Atoms:
        """A new table holding just these rows, in this order."""
        table = self.vertices[0].table()
        for row in rows:
            table._push(self.vertices[int(row)])
        return table

    def _push(self, vertex: Vertex) -> None:
        row = len(self.vertices)
        if row == len(self.gram):
            grown = np.zeros((2 * row, 2 * row))
            grown[:row, :row] = self.gram
            self.gram = grown
        self._store(vertex, row)
        self.vertices.append(vertex)
        self._rows.setdefault(vertex.key(), row)

    @abstractmethod
    def _store(self, vertex: Vertex, row: int) -> None:
        """Keep what `inner` and `combine` need of the vertex of the next row, and its products
        in the Gram matrix.
        """

    def _multiplied(self, row: int, products: NDArray) -> None:
        """Keep <a_i - o, vertex - o> for the first rows, the last of which is the vertex's own."""
        self.gram[row, : row + 1] = products
        self.gram[: row + 1, row] = products

    @abstractmethod
    def inner(self, direction: Array, count: int) -> Floats:
        """<a_i, direction> for the first `count` rows."""

    @abstractmethod
    def combine(self, weights: NDArray, reference: Array) -> Array:
        """sum_i weights_i a_i over the first len(weights) rows, in the library, dtype and device of
        `reference`.
        """


@final
class Dense(Vertex):
    """A member as a plain array."""

    tag: ClassVar = "dense vertex"

    def __init__(self, point: Array) -> None:
        self.point = frozen(point)
        self.shape = tuple(point.shape)

    def inner(self, direction: Array) -> float:
        return inner(self.point, direction)

    def dense(self, reference: Array) -> Array:
        return frozen(like(self.point, reference))

    def blend(self, x: Array, step: float) -> Array:
        return x + step * (like(self.point, x) - x)

    def distance2(self, x: Array, x2: float) -> float:
        away = x - like(self.point, x)
        return inner(away, away)

    def key(self) -> bytes:
        return to_numpy(self.point).tobytes()

    def table(self) -> Atoms:
        return DenseAtoms()

    def parts(self) -> dict[str, Any]:
        return {"point": self.point}

    @classmethod
    def restored(cls, parts: dict[str, Any]) -> Dense:
        require_saved_numbers(parts["point"])
        return cls(**parts)


class DenseAtoms(Atoms):
    """Dense vertices, less the first, as the rows of one matrix, in the library of the first."""

    kind: ClassVar = Dense

    def __init__(self) -> None:
        super().__init__()
        self.matrix: Array = None
        self.origin: Array = None

    def _store(self, vertex: Vertex, row: int) -> None:
        assert isinstance(vertex, Dense)
        xp, entries = namespace(vertex.point), flat(vertex.point)
        if self.matrix is None:
            self.origin = entries
            self.matrix = xp.stack([0 * entries] * _FIRST_ROWS)
        elif row == self.matrix.shape[0]:
            self.matrix = xp.concat([self.matrix, self.matrix])
        self.matrix[row, :] = entries - self.origin
        self._multiplied(row, self._inner(entries - self.origin, row + 1))

    def inner(self, direction: Array, count: int) -> Floats:
        return self._inner(flat(direction), count) + inner(self.origin, flat(direction))

    def _inner(self, direction: Array, count: int) -> Floats:
        return np.asarray(to_numpy(self.matrix[:count, :] @ direction), dtype=np.float64)

    def combine(self, weights: NDArray, reference: Array) -> Array:
        point = (
            like(weights, self.matrix) @ self.matrix[: len(weights), :]
            + float(np.sum(weights)) * self.origin
        )
        return like(namespace(point).reshape(point, tuple(reference.shape)), reference)


@final
class Sparse(Vertex):
    """A member with few nonzero entries: flat indices and their values."""

    tag: ClassVar = "sparse vertex"

    def __init__(self, shape: Shape, indices: NDArray, values: NDArray) -> None:
        self.shape, self.indices, self.values = shape, frozen(indices), frozen(values)

    @staticmethod
    def zero(shape: Shape) -> Sparse:
        """The origin."""
        return Sparse(shape, np.zeros(0, dtype=np.int32), np.zeros(0))

    @staticmethod
    def of(point: Array) -> Sparse:
        """The nonzero entries of a dense point."""
        entries = flat(to_numpy(point)).astype(np.float64, copy=False)
        indices = np.flatnonzero(entries)
        return Sparse(tuple(point.shape), indices.astype(np.int32), entries[indices])

    def inner(self, direction: Array) -> float:
        entries = (
            direction
            if type(direction) is np.ndarray and direction.ndim == 1
            else flat(to_numpy(direction))
        )
        return float(self.values.dot(entries[self.indices]))

    def dense(self, reference: Array) -> Array:
        return frozen(like(self._scattered().reshape(self.shape), reference))

    def _scattered(self) -> Floats:
        entries = np.zeros(math.prod(self.shape))
        entries[self.indices] = self.values
        return entries

    def blend(self, x: Array, step: float) -> Array:
        if type(x) is not np.ndarray:
            return x + step * (self.dense(x) - x)
        blended = (1.0 - step) * x
        blended.reshape(-1)[self.indices] += (step * self.values).astype(x.dtype, copy=False)
        return blended

    def distance2(self, x: Array, x2: float) -> float:
        return max(0.0, x2 - 2.0 * self.inner(x) + float(self.values.dot(self.values)))

    def key(self) -> bytes:
        return bytes(self.indices.tobytes() + self.values.tobytes())

    def table(self) -> Atoms:
        return SparseAtoms()

    def parts(self) -> dict[str, Any]:
        return {"shape": self.shape, "indices": self.indices, "values": self.values}

    @classmethod
    def restored(cls, parts: dict[str, Any]) -> Sparse:
        """Indices are checked, for compiled loops follow them wherever they lead."""
        shape, indices, values = parts["shape"], parts["indices"], parts["values"]
        require_saved_numbers(values, 1)
        if not (type(shape) is tuple and all(type(side) is int and side >= 0 for side in shape)):
            raise ValueError(f"a sparse vertex has no shape {shape!r}")
        if indices.dtype != np.int32 or values.dtype != np.float64 or indices.shape != values.shape:
            raise ValueError(
                "the indices of a sparse vertex are 32-bit whole numbers, one for each of its "
                "values"
            )
        if len(indices) and not (int(indices.min()) >= 0 and int(indices.max()) < math.prod(shape)):
            raise ValueError(f"a sparse vertex has an index beyond its shape {shape}")
        return cls(shape, indices, values)


class SparseAtoms(Atoms):
    """Sparse vertices end to end: row i is entries starts[i] to starts[i + 1]."""

    kind: ClassVar = Sparse

    def __init__(self) -> None:
        super().__init__()
        self.starts = np.zeros(_FIRST_ROWS + 1, dtype=np.int64)
        self.indices = np.zeros(_FIRST_ROWS, dtype=np.int32)
        self.values = np.zeros(_FIRST_ROWS)

    def _store(self, vertex: Vertex, row: int) -> None:
        assert isinstance(vertex, Sparse)
        stop = int(self.starts[row]) + len(vertex.indices)
        if row + 2 > len(self.starts):
            self.starts = _grown(self.starts, row + 2)
        if stop > len(self.indices):
            self.indices, self.values = _grown(self.indices, stop), _grown(self.values, stop)
        table = self.starts, self.indices, self.values, self.gram
        sparse_store(*table, row, vertex.indices, vertex.values, np.zeros(math.prod(vertex.shape)))

    def only(self, rows: NDArray) -> Atoms:
        """A new table holding just these rows, in this order; products are copied, and are those of
        a table made anew where rows ascend.
        """
        table, count = SparseAtoms(), len(rows)
        room = max(count, _FIRST_ROWS)
        table.vertices = [self.vertices[row] for row in rows.tolist()]
        for row, vertex in enumerate(table.vertices):
            table._rows.setdefault(vertex.key(), row)
        table.gram = np.zeros((room, room))
        table.gram[:count, :count] = self.gram[rows[:, None], rows]
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
        return (
            point
            if type(reference) is np.ndarray and reference.dtype == point.dtype
            else like(point, reference)
        )


@final
class Moved(Vertex):
    """shift + scale * v for a vertex v: what translated and shrunk sets answer with."""

    tag: ClassVar = "moved vertex"

    def __init__(self, vertex: Vertex, scale: float, shift: Array) -> None:
        self.vertex, self.scale, self.shift = vertex, scale, shift
        self.shape = vertex.shape

    def inner(self, direction: Array) -> float:
        return self.scale * self.vertex.inner(direction) + inner(
            like(self.shift, direction), direction
        )

    def dense(self, reference: Array) -> Array:
        return frozen(like(self.shift, reference) + self.scale * self.vertex.dense(reference))

    def blend(self, x: Array, step: float) -> Array:
        return x + step * (self.dense(x) - x)

    def distance2(self, x: Array, x2: float) -> float:
        away = x - self.dense(x)
        return inner(away, away)

    def key(self) -> bytes:
        return self.vertex.key()

    def table(self) -> Atoms:
        return MovedAtoms(self.vertex.table(), self.scale, self.shift)

    def parts(self) -> dict[str, Any]:
        return {"vertex": self.vertex, "scale": self.scale, "shift": self.shift}

    @classmethod
    def restored(cls, parts: dict[str, Any]) -> Moved:
        vertex, scale, shift = parts["vertex"], parts["scale"], parts["shift"]
        require_saved_numbers(shift)
        finite = type(scale) in (int, float) and math.isfinite(scale)
        if not (isinstance(vertex, Vertex) and finite and tuple(shift.shape) == vertex.shape):
            raise ValueError("a moved vertex is a vertex, a finite scale and a shift of its shape")
        return cls(vertex, scale, shift)


class MovedAtoms(Atoms):
    """Vertices of one set, all moved alike: the inner table does the work."""

    kind: ClassVar = Moved

    def __init__(self, inside: Atoms, scale: float, shift: Array) -> None:
        super().__init__()
        self.inside, self.scale, self.shift = inside, scale, shift

    def _store(self, vertex: Vertex, row: int) -> None:
        assert isinstance(vertex, Moved)
        self.inside._push(vertex.vertex)
        self._multiplied(row, self.scale**2 * self.inside.gram[row, : row + 1])

    def inner(self, direction: Array, count: int) -> Floats:
        return self.scale * self.inside.inner(direction, count) + inner(
            like(self.shift, direction), direction
        )

    def combine(self, weights: NDArray, reference: Array) -> Array:
        return self.scale * self.inside.combine(weights, reference) + float(np.sum(weights)) * like(
            self.shift, reference
        )


@kernel
def sparse_inner(starts, indices, values, direction, products):  # type: ignore[no-untyped-def]
    for row in range(len(products)):
        total = 0.0
        for p in range(starts[row], starts[row + 1]):
            total += values[p] * direction[indices[p]]
        products[row] = total


@kernel
def sparse_store(  # type: ignore[no-untyped-def]
    starts, indices, values, gram, row, new_indices, new_values, zeros
):
    """A vertex as the next row, with its products; `zeros` has an entry for each of a point's."""
    start = starts[row]
    starts[row + 1] = start + len(new_indices)
    for p in range(len(new_indices)):
        indices[start + p] = new_indices[p]
        values[start + p] = new_values[p]
        zeros[new_indices[p]] = new_values[p]
    products = gram[row, : row + 1]
    sparse_inner(starts, indices, values, zeros, products)
    for i in range(row):  # an assignment of slices would take numba two seconds
        gram[i, row] = products[i]


@kernel
def sparse_combine(starts, indices, values, weights, point):  # type: ignore[no-untyped-def]
    for row in range(len(weights)):
        if weights[row] != 0.0:
            for p in range(starts[row], starts[row + 1]):
                point[indices[p]] += weights[row] * values[p]


def _grown(array: NDArray, least: int) -> NDArray:
    grown = np.zeros(max(2 * len(array), least), dtype=array.dtype)
    grown[: len(array)] = array
    return grown
