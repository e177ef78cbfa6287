"""Several projected points over one set on one table of vertices: a vertex found for one of them is
a candidate for the others that costs no call. Saved and restored together, so that the table is
one again.

The table is append-only and shared with earlier states, which may have been branched from: a pool
knows its first `count` rows, whatever others have appended since.
"""

from __future__ import annotations

from typing import Any, ClassVar, final

import numpy as np

from tidewolf.core.checkpoint import Stored
from tidewolf.core.oracle import HasLMO
from tidewolf.core.types import Array
from tidewolf.core.vertices import Atoms, Vertex
from tidewolf.projection.active import Remembered
from tidewolf.projection.active_set import ActiveSet, most_idle


@final
class Pool(Stored):
    """Active sets on the first `count` rows of one table. Never changed: `projected` makes
    another.
    """

    tag: ClassVar = "pool of active sets"
    __slots__ = ("actives", "count", "table")

    def __init__(self, actives: tuple[ActiveSet, ...], table: Atoms, count: int) -> None:
        self.actives, self.table, self.count = actives, table, count

    @classmethod
    def start(cls, K: HasLMO, points: int, x: Array | None = None) -> Pool:
        """So many points, all at the center, or at another member."""
        first = ActiveSet.start(K, x)
        return cls((first,) * points, first.atoms, len(first.weights))

    def x(self, which: int) -> Array:
        """A point."""
        return self.actives[which].x

    def projected(
        self, which: int, K: HasLMO, y: Array, tol: float, budget: float
    ) -> tuple[Pool, Remembered[ActiveSet]]:
        """One of the points brought near to y, and what that took."""
        found = self._whole(which).nearest(K, y, tol, budget, shared=True)
        actives = (*self.actives[:which], found.active, *self.actives[which + 1 :])
        return Pool(actives, found.active.atoms, len(found.active.weights)), found

    def with_vertices(self, vertices: tuple[Vertex, ...]) -> Pool:
        """The same with more candidates."""
        table, count = self.table, self.count
        for vertex in vertices:
            if table.find(vertex, count) is None:
                table, count = table.append(vertex, count), count + 1
        return Pool(self.actives, table, count)

    def vertices_since(self, count: int) -> tuple[Vertex, ...]:
        """Those of the rows from `count` on."""
        return tuple(self.table.vertices[count : self.count])

    def tidied(self, dimension: int) -> Pool:
        """The same without the rows that are idle in all points, where those are many."""
        if self.count <= most_idle(0, dimension):
            return self
        in_use = np.zeros(self.count, dtype=bool)
        for active in self.actives:
            in_use[: len(active.weights)] |= active.weights > 0.0
        used = int(np.count_nonzero(in_use))
        if self.count <= used + most_idle(used, dimension):
            return self
        rows = np.flatnonzero(in_use)
        table = self.table.only(rows)
        whole = (self._whole(which) for which in range(len(self.actives)))
        return Pool(tuple(active.only(table, rows) for active in whole), table, used)

    def _whole(self, which: int) -> ActiveSet:
        """An active set on all rows that the pool knows."""
        active = self.actives[which]
        seen = len(active.weights)
        if seen == self.count and active.atoms is self.table:
            return active
        weights = np.zeros(self.count)
        weights[:seen] = active.weights
        return ActiveSet(self.table, weights, active.x, active.warm)

    def parts(self) -> dict[str, Any]:
        return {
            "vertices": tuple(self.table.vertices[: self.count]),
            "weights": tuple(active.weights for active in self.actives),
            "points": tuple(active.x for active in self.actives),
            "warm": tuple(active.warm for active in self.actives),
        }

    @classmethod
    def restored(cls, parts: dict[str, Any]) -> Pool:
        vertices, actives = parts["vertices"], []
        for weights, x, warm in zip(parts["weights"], parts["points"], parts["warm"], strict=True):
            own = {"vertices": vertices[: len(weights)], "weights": weights, "x": x, "warm": warm}
            actives.append(ActiveSet.restored(own))
        table = vertices[0].table()
        for count, vertex in enumerate(vertices):
            table = table.append(vertex, count)
        return cls(tuple(actives), table, len(vertices))

    def require_of(self, K: HasLMO) -> None:
        for active in self.actives:
            active.require_of(K)
