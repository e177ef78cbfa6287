"""The Euclidean ball.

    { ||x - center|| <= radius }                 (Frobenius norm)

Oracle: center - radius d/||d||, the norm taken after dividing by the largest entry so that neither huge nor tiny directions
lose it; for d = 0 every member is best and the center is the answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from tidewolf.core.arrays import Array, Shape, as_count, as_number, as_own, as_point, frozen, like, namespace, norm
from tidewolf.core.errors import WrongShape
from tidewolf.core.oracle import Answer
from tidewolf.core.vertices import Dense
from tidewolf.sets.base import ConvexSet, Projectable, as_shape


@final
@dataclass(frozen=True, eq=False, repr=False)
class L2Ball(ConvexSet, Projectable):
    """Arrays within `radius` of `center` (the origin unless told otherwise); n is a number of entries, or a shape. Geometry exact."""

    n: int | Shape
    radius: float = 1.0
    center: Array = None

    def __post_init__(self) -> None:
        sides = self.n if isinstance(self.n, tuple | list) else (self.n,)
        shape = as_shape([as_count(side, "The size n of a ball") for side in sides], "The ball")
        object.__setattr__(self, "n", shape[0] if len(shape) == 1 else shape)
        object.__setattr__(self, "radius", as_number(self.radius, "The radius of a ball", above=0.0))
        center = frozen(np.zeros(shape)) if self.center is None else as_own(self.center, "The center of a ball")
        if tuple(center.shape) != shape:
            raise WrongShape(f"The center of a ball has shape {tuple(center.shape)}; the ball's points have shape {shape}.")
        object.__setattr__(self, "center", center)

    @property
    def shape(self) -> Shape:
        return self.n if isinstance(self.n, tuple) else (self.n,)

    @property
    def inner_radius(self) -> float:
        return self.radius

    def excess(self, x: Array) -> float:
        """The distance to the ball."""
        x = as_point(x, self.shape, "The point")
        away = x - like(self.center, x)
        return max(0.0, _length(away) - self.radius)

    def answer(self, direction: Array, warm: Array | None = None) -> Answer:
        center, length = like(self.center, direction), _length(direction)
        return Answer(Dense(center - self.radius * (direction / length) if length else center))

    def project(self, y: Array) -> Array:
        """The point of the segment from the center to y that is in the ball and nearest to y."""
        y = as_point(y, self.shape, "The point to project")
        center = like(self.center, y)
        length = _length(y - center)
        return namespace(y).asarray(y, copy=True) if length <= self.radius else center + (y - center) * (self.radius / length)

    @classmethod
    def examples(cls) -> Sequence[L2Ball]:
        return (cls(1), cls(3, radius=2.0), cls((2, 2), radius=0.1, center=[[1.0, 0.0], [0.0, -3.0]]), cls(4, center=[0.0, 5.0, 0.0, 0.0]))


def _length(x: Array) -> float:
    """||x|| without overflow or underflow on the way."""
    xp = namespace(x)
    largest = float(xp.max(xp.abs(x)))
    return largest * norm(x / largest) if largest else 0.0
