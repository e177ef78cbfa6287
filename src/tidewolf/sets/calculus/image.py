"""What translated, scaled and shrunk sets share: the image of a set K under v -> offset + scale v,
scale > 0.

    lmo(d)     = offset + scale lmo_K(d)
    infeasibility(x)  = scale infeasibility_K((x - offset)/scale)

Sizes are those of K times scale, those of its factors too; tangent and dimension are those of K.
The image has the capabilities of K: it is Projectable, Polyhedral, Relaxable or of
CostlyMembership exactly when K is.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from functools import cached_property
from typing import Any, Self

import numpy as np

from tidewolf.core.arrays import as_point, like, to_numpy
from tidewolf.core.errors import NotSupported
from tidewolf.core.oracle import Answer
from tidewolf.core.types import Array, Int64s, Shape
from tidewolf.core.values import Composed
from tidewolf.core.vertices import Moved, Vertex
from tidewolf.sets.base import (
    ConvexSet,
    CostlyMembership,
    Factors,
    LinearDescription,
    Polyhedral,
    Projectable,
    Relaxable,
)


class Image(Composed, ConvexSet):
    """Abstract: { offset + scale v : v in K }.

    A subclass is a frozen dataclass whose first field is K.
    """

    _capabilities = (Projectable, Polyhedral, Relaxable, CostlyMembership)

    K: ConvexSet

    def __new__(cls, K: ConvexSet, *settings: object, **named: object) -> Self:
        return cls._with(able for able in cls._capabilities if isinstance(K, able))

    @property
    @abstractmethod
    def scale(self) -> float: ...

    @property
    @abstractmethod
    def offset(self) -> Array: ...

    @property
    def shape(self) -> Shape:
        return self.K.shape

    @property
    def names(self) -> tuple[str, ...] | None:
        return self.K.names

    @cached_property
    def places(self) -> Mapping[str, Int64s]:
        return self.K.places

    @property
    def radius(self) -> float:
        return self.scale * self.K.radius

    @property
    def diameter(self) -> float:
        return self.scale * self.K.diameter

    @property
    def inner_radius(self) -> float | None:
        inside = self.K.inner_radius
        return None if inside is None else self.scale * inside

    @property
    def dimension(self) -> int:
        return self.K.dimension

    @cached_property
    def factors(self) -> Factors | None:
        inside = self.K.factors
        return None if inside is None else inside.scaled(self.scale)

    def tangent(self, direction: Array) -> Array:
        return self.K.tangent(direction)

    def infeasibility(self, x: Array) -> float:
        """The excess over K, in the image's units."""
        return self.scale * self.K.infeasibility(
            self._preimage(as_point(x, self.shape, "The point"))
        )

    def as_direction(self, direction: Array) -> Array:
        return self.K.as_direction(direction)

    def answer(self, direction: Array, warm: Array | None = None) -> Answer:
        vertex, error, warm = self.K.answer(direction, warm)
        return Answer(
            Moved(vertex, self.scale, like(self.offset, direction)), self.scale * error, warm
        )

    def atom(self, point: Array) -> Vertex:
        return Moved(self.K.atom(self._preimage(point)), self.scale, like(self.offset, point))

    def project(self, y: Array) -> Array:
        """The image of K's own projection."""
        if not isinstance(self.K, Projectable):
            raise self._lacking("exact projection")
        y = as_point(y, self.shape, "The point to project")
        return like(self.offset, y) + self.scale * self.K.project(self._preimage(y))

    def relax(self, y: Array) -> Array:
        """The image of K's own superset."""
        if not isinstance(self.K, Relaxable):
            raise self._lacking("cheap superset")
        y = as_point(y, self.shape, "The point to relax")
        return like(self.offset, y) + self.scale * self.K.relax(self._preimage(y))

    def vertex_infeasibility(self, vertex: Vertex) -> float:
        """That of K's own vertex, in the image's units."""
        point = vertex.dense(self.center)
        if not isinstance(self.K, CostlyMembership):
            return self.infeasibility(point)
        inside = self.K.atom(self._preimage(point))
        if isinstance(vertex, Moved) and vertex.scale == self.scale:
            same = np.array_equal(to_numpy(vertex.shift), to_numpy(self.offset))
            inside = vertex.vertex if same else inside  # rounding makes no vertex of a vertex
        return self.scale * self.K.vertex_infeasibility(inside)

    def description(self) -> LinearDescription:
        if not isinstance(self.K, Polyhedral):
            raise self._lacking("linear description")
        inside = self.K.description()
        offset = to_numpy(self.offset).astype(np.float64).reshape(-1)
        shift = offset if inside.shift is None else offset + self.scale * inside.shift
        return inside._replace(shift=shift, lift=_scaled(inside.lift, self.scale, len(offset)))

    def _lacking(self, what: str) -> NotSupported:
        return NotSupported(
            f"{self!r} has no {what}, because its {type(self.K).__name__} has none."
        )

    def _preimage(self, x: Array) -> Array:
        return (x - like(self.offset, x)) / self.scale


def _scaled(lift: Any, scale: float, n: int) -> Any:
    if lift is not None:
        return scale * lift
    if scale == 1.0:
        return None
    from scipy.sparse import eye_array

    return scale * eye_array(n, format="csr")
