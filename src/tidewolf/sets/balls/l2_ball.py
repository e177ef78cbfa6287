"""The Euclidean ball.

    { ||x - center|| <= radius }                 (Frobenius norm)

Oracle: center - radius d/||d||, the norm taken after dividing by the largest entry so that neither
huge nor tiny directions lose it; for d = 0 every member is best and the center is the answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from tidewolf.core.arrays import as_number, as_own, as_point, frozen, length, like, namespace
from tidewolf.core.errors import WrongShape
from tidewolf.core.oracle import Answer
from tidewolf.core.types import Array, Shape
from tidewolf.core.vertices import Dense
from tidewolf.sets.base import ConvexSet, Projectable, Relaxable, as_size, shape_of


@final
@dataclass(frozen=True, eq=False, repr=False)
class L2Ball(ConvexSet, Projectable, Relaxable):
    """Arrays within `radius` of `center` (the origin unless told otherwise); n is a number of
    entries, or a shape. Geometry exact.
    """

    n: int | Shape
    radius: float = 1.0
    center: Array = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "n", as_size(self.n, "a ball"))
        object.__setattr__(
            self, "radius", as_number(self.radius, "The radius of a ball", above=0.0)
        )
        shape = self.shape
        center = (
            frozen(np.zeros(shape))
            if self.center is None
            else as_own(self.center, "The center of a ball")
        )
        if tuple(center.shape) != shape:
            raise WrongShape(
                f"The center of a ball has shape {tuple(center.shape)}; the ball's points have "
                f"shape {shape}."
            )
        object.__setattr__(self, "center", center)

    @property
    def shape(self) -> Shape:
        return shape_of(self.n)

    @property
    def inner_radius(self) -> float:
        return self.radius

    def excess(self, x: Array) -> float:
        """The distance to the ball."""
        x = as_point(x, self.shape, "The point")
        away = x - like(self.center, x)
        return max(0.0, length(away) - self.radius)

    def answer(self, direction: Array, warm: Array | None = None) -> Answer:
        center, size = like(self.center, direction), length(direction)
        return Answer(Dense(center - self.radius * (direction / size) if size else center))

    def project(self, y: Array) -> Array:
        """The point of the segment from the center to y that is in the ball and nearest to y."""
        y = as_point(y, self.shape, "The point to project")
        center = like(self.center, y)
        away = length(y - center)
        return (
            namespace(y).asarray(y, copy=True)
            if away <= self.radius
            else center + (y - center) * (self.radius / away)
        )

    def relax(self, y: Array) -> Array:
        """The ball itself."""
        return self.project(y)

    @classmethod
    def examples(cls) -> Sequence[L2Ball]:
        return (
            cls(1),
            cls(3, radius=2.0),
            cls((2, 2), radius=0.1, center=[[1.0, 0.0], [0.0, -3.0]]),
            cls(4, center=[0.0, 5.0, 0.0, 0.0]),
        )
