"""Vertices made of others: shift + scale (v_1, ..., v_m).

A member of a product is one vertex of each part, flattened and put end to end; a member of a set
that was moved and scaled is a vertex of that set, moved and scaled. With d_p the entries of d that
belong to part p, in the shape of v_p,

    <v, d> = <shift, d> + scale sum_p <v_p, d_p>

A table has one table for each part; inner products and the Gram matrix are sums of theirs. If every
part of a product is `Sparse`, so is the whole.
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
        return Compound(vertices)
    sizes = [math.prod(vertex.shape) for vertex in vertices]
    starts = np.cumsum([0, *sizes])
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
        size = sum(map(math.prod, self.shapes))
        self.shape = (size,) if shift is None else tuple(shift.shape)

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

    def table(self) -> Atoms:
        return CompoundAtoms(self)

    def require_sound(self) -> None:
        whole = bool(self.vertices) and all(isinstance(each, Vertex) for each in self.vertices)
        if self.shift is not None:
            require_saved_numbers(self.shift)
            whole = whole and self.shape == self.vertices[0].shape and len(self.vertices) == 1
        if not whole or type(self.scale) not in (int, float) or not math.isfinite(self.scale):
            raise ValueError("a compound vertex is vertices, a finite scale and a shift of one")

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

    def _store(self, vertex: Vertex, row: int) -> None:
        assert isinstance(vertex, Compound)
        for table, part in zip(self.inside, vertex.vertices, strict=True):
            table._append(part)
        products = [table.gram[row, : row + 1] for table in self.inside]
        self._set_products(row, self.form.scale**2 * np.sum(products, axis=0))

    def inner(self, direction: Array, count: int) -> Floats:
        parts = zip(self.inside, self.form.along(direction), strict=True)
        found: Floats = self.form.scale * np.sum([t.inner(d, count) for t, d in parts], axis=0)
        shift = self.form.shift
        return found if shift is None else found + inner(like(shift, direction), direction)

    def combine(self, weights: NDArray, reference: Array) -> Array:
        parts = zip(self.inside, self.form.along(reference), strict=True)
        means = [table.combine(weights, part) for table, part in parts]
        return self.form.joined(means, float(np.sum(weights)), reference)
