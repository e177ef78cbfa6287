"""Members of a set that was moved and scaled, kept as those of the set itself."""

from __future__ import annotations

import math
from typing import Any, ClassVar, final

import numpy as np

from tidewolf.core.arrays import frozen, inner, like
from tidewolf.core.types import Array, Floats, NDArray
from tidewolf.core.vertices.base import Atoms, Vertex, require_saved_numbers


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
        self.inside._append(vertex.vertex)
        self._set_products(row, self.scale**2 * self.inside.gram[row, : row + 1])

    def inner(self, direction: Array, count: int) -> Floats:
        return self.scale * self.inside.inner(direction, count) + inner(
            like(self.shift, direction), direction
        )

    def combine(self, weights: NDArray, reference: Array) -> Array:
        return self.scale * self.inside.combine(weights, reference) + float(np.sum(weights)) * like(
            self.shift, reference
        )
