"""What translated and shrunk sets share: the image of a set K under v -> offset + scale v, scale > 0.

    lmo(d) = offset + scale lmo_K(d)        sizes times scale        tangent and dimension those of K
    excess(x) = scale excess_K((x - offset)/scale), the same inequalities or distance in the image's units

The image is Projectable or Polyhedral exactly when K is, and `isinstance` says so: the class of an image is chosen with its K.
"""

from __future__ import annotations

from abc import abstractmethod
from functools import cache
from typing import Any, ClassVar, Self

import numpy as np

from tidewolf.core.arrays import Array, Shape, as_point, like, to_numpy
from tidewolf.core.errors import NotSupported, WrongType
from tidewolf.core.oracle import Answer
from tidewolf.core.vertices import Moved, Vertex
from tidewolf.sets.base import ConvexSet, LinearDescription, Polyhedral, Projectable


class Image(ConvexSet):
    """Abstract: { offset + scale v : v in K }. A subclass is a frozen dataclass whose first field is K."""

    K: ConvexSet
    _written: ClassVar[type[Image]]

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if not issubclass(cls, Projectable | Polyhedral):
            cls._written = cls

    def __new__(cls, K: ConvexSet, *settings: object, **named: object) -> Self:
        if not isinstance(K, ConvexSet):
            raise WrongType(f"{cls.__name__} needs a set of tidewolf.sets or of your own (a ConvexSet) to start from, not {K!r}.")
        return object.__new__(_able(cls._written, isinstance(K, Projectable), isinstance(K, Polyhedral)))  # type: ignore[return-value]

    def __reduce__(self) -> tuple[Any, ...]:
        return self._written, tuple(self.fields().values())

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

    def tangent(self, direction: Array) -> Array:
        return self.K.tangent(direction)

    def excess(self, x: Array) -> float:
        """The excess over K, in the image's units."""
        return self.scale * self.K.excess(self._preimage(as_point(x, self.shape, "The point")))

    def answer(self, direction: Array, warm: Array | None = None) -> Answer:
        vertex, error, warm = self.K.answer(direction, warm)
        return Answer(Moved(vertex, self.scale, like(self.offset, direction)), self.scale * error, warm)

    def atom(self, point: Array) -> Vertex:
        return Moved(self.K.atom(self._preimage(point)), self.scale, like(self.offset, point))

    def project(self, y: Array) -> Array:
        """The image of K's own projection."""
        if not isinstance(self.K, Projectable):
            raise NotSupported(f"{self!r} has no exact projection, because its {type(self.K).__name__} has none.")
        y = as_point(y, self.shape, "The point to project")
        return like(self.offset, y) + self.scale * self.K.project(self._preimage(y))

    def description(self) -> LinearDescription:
        if not isinstance(self.K, Polyhedral):
            raise NotSupported(f"{self!r} has no linear description, because its {type(self.K).__name__} has none.")
        inside = self.K.description()
        offset = to_numpy(self.offset).astype(np.float64).reshape(-1)
        shift = offset if inside.shift is None else offset + self.scale * inside.shift
        return inside._replace(shift=shift, lift=_scaled(inside.lift, self.scale, len(offset)))

    def _preimage(self, x: Array) -> Array:
        return (x - like(self.offset, x)) / self.scale


@cache
def _able(written: type[Image], projects: bool, describes: bool) -> type[Image]:
    """The written class, and beside it whatever K can do."""
    gifts = (Projectable,) * projects + (Polyhedral,) * describes
    return type(written.__name__, (written, *gifts), {"__module__": written.__module__, "__doc__": written.__doc__}) if gifts else written


def _scaled(lift: Any, scale: float, n: int) -> Any:
    if lift is not None:
        return scale * lift
    if scale == 1.0:
        return None
    from scipy.sparse import eye_array

    return scale * eye_array(n, format="csr")
