"""Vertices made of others.

**Moved**: shift + scale v, a member of a set that was moved and scaled.

**Joined**: a member of a product is one vertex of each part, flattened and put end to end,

    <(v_1, ..., v_m), d> = sum_p <v_p, d_p>

with d_p the entries of d that belong to part p, in the shape of v_p. A table has one table for each
part; inner products and the Gram matrix are the sums of theirs. If every part is `Sparse`, so is
the whole.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import ClassVar, final

import numpy as np

from tidewolf.core.arrays import flat, frozen, inner, like, namespace
from tidewolf.core.types import Array, Floats, NDArray, Shape
from tidewolf.core.vertices.base import Atoms, Vertex, require_saved_numbers
from tidewolf.core.vertices.sparse import Sparse


@final
class Moved(Vertex):
    """shift + scale * v for a vertex v: what translated and shrunk sets answer with."""

    tag: ClassVar = "moved vertex"
    saved: ClassVar = ("vertex", "scale", "shift")

    def __init__(self, vertex: Vertex, scale: float, shift: Array) -> None:
        self.vertex, self.scale, self.shift = vertex, scale, shift
        self.shape = vertex.shape

    def inner(self, direction: Array) -> float:
        shift = like(self.shift, direction)
        return self.scale * self.vertex.inner(direction) + inner(shift, direction)

    def dense(self, reference: Array) -> Array:
        return frozen(like(self.shift, reference) + self.scale * self.vertex.dense(reference))

    def key(self) -> bytes:
        return self.vertex.key()

    def table(self) -> Atoms:
        return MovedAtoms(self.vertex.table(), self.scale, self.shift)

    def require_sound(self) -> None:
        require_saved_numbers(self.shift)
        finite = type(self.scale) in (int, float) and math.isfinite(self.scale)
        if not (isinstance(self.vertex, Vertex) and finite and self.shift.shape == self.shape):
            raise ValueError("a moved vertex is a vertex, a finite scale and a shift of its shape")


class MovedAtoms(Atoms):
    """Vertices of one set, all moved alike: the inner table does the work."""

    kind: ClassVar = Moved

    def __init__(self, inside: Atoms, scale: float, shift: Array) -> None:
        super().__init__()
        self.inside, self.scale, self.shift = inside, scale, shift

    def _store(self, vertex: Vertex, row: int) -> None:
        assert isinstance(vertex, Moved)
        self.inside._append(vertex.vertex)
        self._set_products(row, self.scale**2 * self.inside.gram[row, : row + 1])

    def inner(self, direction: Array, count: int) -> Floats:
        shift = like(self.shift, direction)
        return self.scale * self.inside.inner(direction, count) + inner(shift, direction)

    def combine(self, weights: NDArray, reference: Array) -> Array:
        shift = float(np.sum(weights)) * like(self.shift, reference)
        return self.scale * self.inside.combine(weights, reference) + shift


def pieces(x: Array, shapes: Sequence[Shape]) -> Iterator[Array]:
    """The parts of a flat array that were put end to end, each in its own shape."""
    xp, start = namespace(x), 0
    for shape in shapes:
        stop = start + math.prod(shape)
        yield xp.reshape(x[start:stop], shape)
        start = stop


def end_to_end(parts: Sequence[Array]) -> Array:
    """All entries of several arrays of one library, in one flat array."""
    return namespace(parts[0]).concat([flat(part) for part in parts])


def join_vertices(vertices: Sequence[Vertex]) -> Vertex:
    """One vertex of a product from one of each part."""
    if not all(type(vertex) is Sparse for vertex in vertices):
        return Joined(vertices)
    sizes = [math.prod(vertex.shape) for vertex in vertices]
    starts = np.cumsum([0, *sizes])
    indices = [
        vertex.indices + np.int32(start)  # type: ignore[attr-defined]
        for vertex, start in zip(vertices, starts[:-1], strict=True)
    ]
    values = [vertex.values for vertex in vertices]  # type: ignore[attr-defined]
    return Sparse((int(starts[-1]),), np.concatenate(indices), np.concatenate(values))


@final
class Joined(Vertex):
    """One vertex of each part of a product."""

    tag: ClassVar = "joined vertex"
    saved: ClassVar = ("vertices",)

    def __init__(self, vertices: Sequence[Vertex]) -> None:
        self.vertices = tuple(vertices)
        self.shapes = [vertex.shape for vertex in vertices]
        self.shape = (sum(map(math.prod, self.shapes)),)

    def inner(self, direction: Array) -> float:
        return sum(vertex.inner(d) for vertex, d in self._along(direction))

    def dense(self, reference: Array) -> Array:
        return frozen(end_to_end([vertex.dense(part) for vertex, part in self._along(reference)]))

    def blend(self, x: Array, step: float) -> Array:
        return end_to_end([vertex.blend(part, step) for vertex, part in self._along(x)])

    def distance2(self, x: Array, x2: float) -> float:
        return sum(vertex.distance2(part, inner(part, part)) for vertex, part in self._along(x))

    def key(self) -> bytes:
        keys = [vertex.key() for vertex in self.vertices]
        return b"".join(len(key).to_bytes(8) + key for key in keys)

    def table(self) -> Atoms:
        return JoinedAtoms([vertex.table() for vertex in self.vertices], self.shapes)

    def require_sound(self) -> None:
        if not self.vertices or not all(isinstance(each, Vertex) for each in self.vertices):
            raise ValueError("a joined vertex has a vertex for each of its parts")

    def _along(self, x: Array) -> Iterator[tuple[Vertex, Array]]:
        return zip(self.vertices, pieces(x, self.shapes), strict=True)


class JoinedAtoms(Atoms):
    """One table for each part of a product."""

    kind: ClassVar = Joined

    def __init__(self, inside: Sequence[Atoms], shapes: Sequence[Shape]) -> None:
        super().__init__()
        self.inside, self.shapes = inside, shapes

    def _store(self, vertex: Vertex, row: int) -> None:
        assert isinstance(vertex, Joined)
        for table, part in zip(self.inside, vertex.vertices, strict=True):
            table._append(part)
        products = [table.gram[row, : row + 1] for table in self.inside]
        self._set_products(row, np.sum(products, axis=0))

    def inner(self, direction: Array, count: int) -> Floats:
        parts = zip(self.inside, pieces(direction, self.shapes), strict=True)
        products: Floats = np.sum([table.inner(d, count) for table, d in parts], axis=0)
        return products

    def combine(self, weights: NDArray, reference: Array) -> Array:
        parts = zip(self.inside, pieces(reference, self.shapes), strict=True)
        return end_to_end([table.combine(weights, part) for table, part in parts])
