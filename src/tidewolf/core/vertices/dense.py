"""Members as plain arrays."""

from __future__ import annotations

from typing import ClassVar, final

import numpy as np

from tidewolf.core.arrays import flat, frozen, inner, like, namespace, plus, to_numpy
from tidewolf.core.types import Array, Floats, NDArray
from tidewolf.core.vertices.base import FIRST_ROWS, Atoms, Vertex, require_saved_numbers


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

    def table(self) -> Atoms:
        return DenseAtoms()

    def require_sound(self) -> None:
        require_saved_numbers(self.point)


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

    def _key(self, vertex: Vertex) -> bytes:
        assert isinstance(vertex, Dense)
        return vertex.key() if type(vertex.point) is np.ndarray else b""  # stays on its device

    def _store(self, vertex: Vertex, row: int) -> None:
        assert isinstance(vertex, Dense)
        xp, entries = namespace(vertex.point), flat(vertex.point)
        if self.matrix is None:
            self.origin = entries
            self.matrix = xp.stack([0 * entries] * FIRST_ROWS)
        elif row == self.matrix.shape[0]:
            self.matrix = xp.concat([self.matrix, self.matrix])
        away = entries - self.origin
        self.matrix[row, :] = away
        self._set_products(row, self._inner(away, row + 1))

    def inner(self, direction: Array, count: int) -> Floats:
        d = flat(direction)
        if type(d) is np.ndarray:
            return self._inner(d, count) + inner(self.origin, d)
        looked = namespace(d).concat([self.matrix[:count, :] @ d, (self.origin @ d)[None]])
        found = np.asarray(to_numpy(looked), dtype=np.float64)
        return np.asarray(found[:-1] + found[-1])

    def _inner(self, direction: Array, count: int) -> Floats:
        return np.asarray(to_numpy(self.matrix[:count, :] @ direction), dtype=np.float64)

    def combine(self, weights: NDArray, reference: Array) -> Array:
        mean = like(weights, self.matrix) @ self.matrix[: len(weights), :]
        point = plus(mean, float(np.sum(weights)), self.origin)
        return like(namespace(point).reshape(point, tuple(reference.shape)), reference)
