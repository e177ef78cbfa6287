"""Several projected points over one set on one table of vertices: a vertex found for one of them is
a candidate for the others that costs no call. Saved and restored together, so that the table is
one again.

The table is append-only and shared with earlier states, which may be branched from: a pool knows
its first `count` rows, whatever others have appended since. Points of a set whose exact projection
is cheap have no table.
"""

from collections.abc import Sequence
from typing import Any, ClassVar, final

import numpy as np

from tidewolf.core import checkpoint, oracle
from tidewolf.core.types import Array, Floats
from tidewolf.core.vertices import Vertex
from tidewolf.kernels.rounds import IDLE
from tidewolf.projection.active import (
    Active,
    ActiveSet,
    Combination,
    ExactPoint,
    FactoredActiveSet,
    Remembered,
    rows_to_keep,
    start_active,
)


@final
class Pool(checkpoint.Stored):
    """Members of a set on the first `count` rows of one table. Never changed: `projected` makes
    another.
    """

    tag: ClassVar = "pool of members"
    __slots__ = ("actives", "count", "table")

    def __init__(self, actives: tuple[Active, ...], table: Any, count: int) -> None:
        self.actives, self.table, self.count = actives, table, count

    @classmethod
    def start(cls, K: oracle.HasLMO, points: int, x: Array | None = None) -> "Pool":
        return cls.of((start_active(K, x),) * points)

    @classmethod
    def of(cls, actives: Sequence[Active], last: int = 0) -> "Pool":
        """Points that are all on one table, that of the one which was projected last."""
        active = actives[last]
        if isinstance(active, Combination):
            return cls(tuple(actives), active.atoms, len(active.weights))
        return cls(tuple(actives), None, 0)

    def x(self, which: int) -> Array:
        return self.actives[which].x

    def weights(self, which: int) -> Floats:
        active = self.active(which)
        return active.weights if isinstance(active, Combination) else np.zeros(0)

    def projected(
        self, which: int, K: oracle.HasLMO, y: Array, tol: float, budget: float
    ) -> "tuple[Pool, Remembered[Any]]":
        found = self.active(which).nearest(K, y, tol, budget, shared=True)
        actives = (*self.actives[:which], found.active, *self.actives[which + 1 :])
        return Pool.of(actives, which), found

    def with_vertices(self, vertices: tuple[Vertex, ...]) -> "Pool":
        """The same with more candidates, where the table is one of whole vertices."""
        if not isinstance(self.actives[0], ActiveSet):
            return self
        table, count = self.table, self.count
        for vertex in vertices:
            if table.find(vertex, count) is None:
                table, count = table.append(vertex, count), count + 1
        return Pool(self.actives, table, count)

    def active(self, which: int) -> Active:
        active = self.actives[which]
        return self._padded(active) if isinstance(active, Combination) else active

    def with_candidate(self, K: oracle.HasLMO, vertex: Vertex) -> "Pool":
        return Pool.of((self.active(0).also(K, vertex), *self.actives[1:]))

    def vertices_since(self, count: int) -> tuple[Vertex, ...]:
        """Those of the rows from `count` on, where the table is one of whole vertices."""
        if not isinstance(self.actives[0], ActiveSet):
            return ()
        return tuple(self.table.vertices[count : self.count])

    def tidied(self) -> "Pool":
        """The same without the rows that are idle in all points, where those are many."""
        if self.count <= IDLE:
            return self
        means = self._means()
        in_use = np.any([active.weights > 0.0 for active in means], axis=0)
        factored = isinstance(self.actives[0], FactoredActiveSet)
        if self.count <= (2 if factored else 1) * np.count_nonzero(in_use) + IDLE:
            return self
        rows = rows_to_keep(in_use)
        table = self.table.only(rows)
        return Pool(tuple(active.only(table, rows) for active in means), table, len(rows))

    def _means(self) -> list[Combination]:
        return [self._padded(active) for active in self.actives if isinstance(active, Combination)]

    def _padded(self, active: Combination) -> Combination:
        seen = len(active.weights)
        if seen == self.count and active.atoms is self.table:
            return active
        weights = np.zeros(self.count)
        weights[:seen] = active.weights
        return active.at(self.table, weights, active.x, active.warm)

    def parts(self) -> dict[str, Any]:
        means = self._means()
        return {
            "first": self.active(0),
            "points": tuple(active.x for active in self.actives[1:]),
            "weights": tuple(active.weights for active in means[1:]),
            "warm": tuple(active.warm for active in means[1:]),
        }

    @classmethod
    def restored(cls, parts: dict[str, Any]) -> "Pool":
        first, points = parts["first"], parts["points"]
        if isinstance(first, ExactPoint):
            return cls((first, *map(ExactPoint, points)), None, 0)
        each = zip(parts["weights"], points, parts["warm"], strict=True)
        others = (first.at(first.atoms, *own) for own in each)
        return cls((first, *others), first.atoms, len(first.weights))

    def require_of(self, K: oracle.HasLMO) -> None:
        for active in self.actives:
            active.require_of(K)
