"""Members with few nonzero entries: the arcs of a path, the one entry of a corner."""

from __future__ import annotations

import math
from typing import ClassVar, Self, final

import numpy as np

from tidewolf.core.arrays import flat, frozen, like, taken, to_numpy
from tidewolf.core.jit import light_kernel
from tidewolf.core.types import Array, Floats, NDArray, Shape
from tidewolf.core.vertices.base import FIRST_ROWS, Atoms, Vertex, require_saved_numbers


@final
class Sparse(Vertex):
    """A member with few nonzero entries: flat indices and their values."""

    tag: ClassVar = "sparse vertex"
    saved: ClassVar = ("shape", "indices", "values")

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
        if type(direction) is not np.ndarray:
            return float(self.values.dot(to_numpy(taken(flat(direction), self.indices))))
        entries = direction if direction.ndim == 1 else flat(direction)
        return float(self.values.dot(entries[self.indices]))

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

    def table(self) -> Atoms:
        return SparseAtoms()

    def require_sound(self) -> None:
        """Indices are checked, for compiled loops follow them wherever they lead."""
        shape, indices, values = self.shape, self.indices, self.values
        require_saved_numbers(values, 1)
        whole = type(shape) is tuple and all(type(side) is int and side >= 0 for side in shape)
        kinds = indices.dtype == np.int32 and values.dtype == np.float64
        if not whole or not kinds or indices.shape != values.shape:
            raise ValueError(
                "a sparse vertex has a shape, and a 32-bit index for each of its 64-bit values"
            )
        if len(indices) and not (int(indices.min()) >= 0 and int(indices.max()) < math.prod(shape)):
            raise ValueError(f"a sparse vertex has an index beyond its shape {shape}")


class SparseAtoms(Atoms):
    """Sparse vertices end to end: row i is entries starts[i] to starts[i + 1].

    Kernels append rows themselves (kernels/active_set.py), under its lock: `filled` counts all of
    them, and vertices are made from them on first use. The same holds for
    keys, and with the products of rows that no kernel needed any of (kernels/corners.py).
    """

    kind = Sparse

    def __init__(self) -> None:
        self._gram, self._multiplied, self._keyed = np.zeros((0, 0)), 0, 0
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
        """How many rows its arrays have room for."""
        return len(self.starts) - 1

    @property
    def gram(self) -> Floats:
        """The products of all rows; those that are missing are made."""
        if self._multiplied == self.filled and len(self._gram) >= self.room:
            return self._gram
        with self.lock:
            if len(self._gram) < self.room:
                grown, old = np.zeros((self.room, self.room)), self._multiplied
                grown[:old, :old] = self._gram[:old, :old]
                self._gram = grown
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

    def extended(self, count: int, indices: NDArray, values: float) -> SparseAtoms:
        """A table whose rows from `count` on have one entry each: this one if no row was appended
        meanwhile, else a fork of its first `count` rows.
        """
        with self.lock:
            table = self if count == self.filled else self.only(np.arange(count))
            begin, rows = int(table.starts[count]), len(indices)
            table.make_room(count + rows, begin + rows)
            table.starts[count + 1 : count + rows + 1] = np.arange(begin + 1, begin + rows + 1)
            table.indices[begin : begin + rows] = indices
            table.values[begin : begin + rows] = values
            table.filled = count + rows
        return table

    @property
    def vertices(self) -> list[Vertex]:
        while len(self._vertices) < self.filled:
            with self.lock:
                row = len(self._vertices)
                if row < self.filled:
                    begin, end = self.starts[row], self.starts[row + 1]
                    indices, values = self.indices[begin:end].copy(), self.values[begin:end].copy()
                    self._vertices.append(Sparse(self.shape, indices, values))
        return self._vertices

    def find(self, vertex: Vertex, count: int) -> int | None:
        if self._keyed < self.filled:
            with self.lock:
                for row in range(self._keyed, self.filled):
                    self._rows.setdefault(self.vertices[row].key(), row)
                self._keyed = self.filled
        return super().find(vertex, count)

    def make_room(self, rows: int, entries: int) -> None:
        """Arrays for so many rows, with so many entries in all, where they are too short; called
        with the lock held.
        """
        if rows > self.room:
            starts = np.zeros(max(2 * self.room, rows) + 1, dtype=np.int64)
            starts[: len(self.starts)] = self.starts
            self.starts = starts
        if entries > len(self.indices):
            self.indices, self.values = _grown(self.indices, entries), _grown(self.values, entries)

    def _append(self, vertex: Vertex) -> None:
        assert isinstance(vertex, Sparse)
        row, self.shape = self.filled, vertex.shape
        self.make_room(row + 1, int(self.starts[row]) + len(vertex.indices))
        self._store(vertex, row)
        self.filled += 1
        if len(self._vertices) == row:
            self._vertices.append(vertex)

    def _store(self, vertex: Vertex, row: int) -> None:
        assert isinstance(vertex, Sparse)
        begin, end = int(self.starts[row]), int(self.starts[row]) + len(vertex.indices)
        self.starts[row + 1] = end
        self.indices[begin:end], self.values[begin:end] = vertex.indices, vertex.values

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
    for row in range(len(products)):
        start, end = starts[row], starts[row + 1]
        whole, s0, s1, s2, s3 = start + (end - start) // 4 * 4, 0.0, 0.0, 0.0, 0.0
        for p in range(start, whole, 4):
            s0 += values[p] * direction[indices[p]]
            s1 += values[p + 1] * direction[indices[p + 1]]
            s2 += values[p + 2] * direction[indices[p + 2]]
            s3 += values[p + 3] * direction[indices[p + 3]]
        total = (s0 + s2) + (s1 + s3)
        for p in range(whole, end):
            total += values[p] * direction[indices[p]]
        products[row] = total


@light_kernel
def sparse_multiply(starts, indices, values, gram, row, zeros):  # type: ignore[no-untyped-def]
    """The products of a row with those up to it; `zeros` has an entry for each of a point's, and is
    as it was afterwards.
    """
    for p in range(starts[row], starts[row + 1]):
        zeros[indices[p]] = values[p]
    products = gram[row, : row + 1]
    sparse_inner(starts, indices, values, zeros, products)
    for i in range(row):  # an assignment of slices would take numba two seconds
        gram[i, row] = products[i]
    for p in range(starts[row], starts[row + 1]):
        zeros[indices[p]] = 0.0


@light_kernel
def sparse_store(  # type: ignore[no-untyped-def]
    starts, indices, values, gram, row, new_indices, new_values, zeros
):
    """A vertex as the next row, with its products; `zeros` has an entry for each of a point's, and
    is as it was afterwards.
    """
    start = starts[row]
    starts[row + 1] = start + len(new_indices)
    for p in range(len(new_indices)):
        indices[start + p] = new_indices[p]
        values[start + p] = new_values[p]
    sparse_multiply(starts, indices, values, gram, row, zeros)


@light_kernel
def sparse_combine(starts, indices, values, weights, point):  # type: ignore[no-untyped-def]
    for row in range(len(weights)):
        if weights[row] != 0.0:
            for p in range(starts[row], starts[row + 1]):
                point[indices[p]] += weights[row] * values[p]


def _grown(array: NDArray, least: int) -> NDArray:
    grown = np.zeros(max(2 * len(array), least), dtype=array.dtype)
    grown[: len(array)] = array
    return grown
