"""What every kind of vertex can do, and every table of vertices.

A table (`Atoms`) does for many vertices at once what a vertex does:

    inner(d, count)_i = <a_i, d>
    combine(w)        = sum_i w_i a_i
    gram[i, j]        = <a_i - o, a_j - o>

with o a point of the table's choosing, so that a set far from the origin loses no digits: only
differences of atoms count. Tables are append-only and shared between states: `append` on a table
that has grown past the caller's view (`count` rows) forks it, so every state keeps seeing exactly
what it saw.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from typing import Any, ClassVar, Self

import numpy as np

from tidewolf.core.arrays import inner, is_array, namespace, to_numpy
from tidewolf.core.checkpoint import Stored
from tidewolf.core.errors import WrongType
from tidewolf.core.types import Array, Floats, NDArray, Shape

# How many rows a table has room for at first.
FIRST_ROWS = 8


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
    saved: ClassVar[tuple[str, ...]]
    """the arguments of the class, which are attributes, too"""

    def parts(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.saved}

    @classmethod
    def restored(cls, parts: dict[str, Any]) -> Self:
        vertex = cls(*(parts[name] for name in cls.saved))
        vertex.require_sound()
        return vertex

    @abstractmethod
    def require_sound(self) -> None:
        """Refuse, by a ValueError, what cannot be such a vertex."""

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
    def table(self) -> Atoms:
        """An empty table for vertices of this kind."""


class Atoms(ABC):
    """An append-only table of vertices with their Gram matrix."""

    kind: type[Vertex]

    def __init__(self) -> None:
        self.gram: Floats = np.zeros((FIRST_ROWS, FIRST_ROWS))
        self.lock = threading.RLock()
        """held while it grows: states that share it may be continued in several threads"""
        self._vertices: list[Vertex] = []
        self._rows: dict[bytes, int] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {name: part for name, part in vars(self).items() if name != "lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, lock=threading.RLock())

    @property
    def vertices(self) -> list[Vertex]:
        """Those of all rows."""
        return self._vertices

    def __len__(self) -> int:
        return len(self._vertices)

    def find(self, vertex: Vertex, count: int) -> int | None:
        """The row that holds this very point among the first `count`, or None."""
        row = self._rows.get(self._key(vertex))
        return row if row is not None and row < count else None

    def append(self, vertex: Vertex, count: int) -> Atoms:
        """A table whose row `count` is `vertex`: this one if no row was appended meanwhile, else
        a fork of its first `count` rows.
        """
        if type(vertex) is not self.kind:
            raise WrongType(
                f"A {type(vertex).__name__} vertex was met among {self.kind.__name__} ones; "
                "a set's `atom` must make vertices of the kind its `answer` gives."
            )
        with self.lock:
            table = self if count == len(self) else self.only(np.arange(count))
            table._append(vertex)
        return table

    def only(self, rows: NDArray) -> Atoms:
        """A new table holding just these rows, in this order."""
        table = self._empty()
        for row in rows:
            table._append(self.vertices[int(row)])
        return table

    def _empty(self) -> Atoms:
        """A table without rows."""
        return self.vertices[0].table()

    def _append(self, vertex: Vertex) -> None:
        row = len(self)
        if row == len(self.gram):
            grown = np.zeros((2 * row, 2 * row))
            grown[:row, :row] = self.gram
            self.gram = grown
        self._store(vertex, row)
        self._vertices.append(vertex)
        self._rows.setdefault(self._key(vertex), row)

    def _key(self, vertex: Vertex) -> bytes:
        """What rows are looked up by."""
        return vertex.key()

    @abstractmethod
    def _store(self, vertex: Vertex, row: int) -> None:
        """Keep what `inner` and `combine` need of the vertex of the next row, and its products
        in the Gram matrix.
        """

    def _set_products(self, row: int, products: NDArray) -> None:
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
