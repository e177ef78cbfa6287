"""The Euclidean ball.

    { ||x - center|| <= radius }                 (Frobenius norm)

Oracle: center - radius d/||d||, the norm taken after dividing by the largest entry so that neither
huge nor tiny directions lose it; for d = 0 every member is best and the center is the answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, final

import numpy as np

from tidewolf.core.arrays import as_point, frozen, length, like, namespace, norm, plus
from tidewolf.core.oracle import Answer
from tidewolf.core.settings import Number, Numbers
from tidewolf.core.types import Array, Shape
from tidewolf.core.vertices import Dense
from tidewolf.sets.balls.norm_ball import Entries
from tidewolf.sets.base import ConvexSet, Projectable, Relaxable, require_shape, shape_of


@final
@dataclass(frozen=True, eq=False, repr=False)
class L2Ball(ConvexSet, Projectable, Relaxable):
    """Arrays within `radius` of `center`. Geometry exact.

    Parameters
    ----------
    n : int or tuple of int
        How many entries a point has, or its shape.
    radius : float, default 1.0
        How far members are from the center.
    center : array, optional
        The middle of the ball. None: the origin.

    Examples
    --------
    >>> K = tw.sets.L2Ball(2, radius=5.0)
    >>> K.lmo(np.array([3.0, -4.0]))
    array([-3.,  4.])
    >>> K.project(np.array([6.0, 8.0]))
    array([3., 4.])
    """

    n: Entries
    radius: Annotated[float, Number("How far members are from the center.", above=0.0)] = 1.0
    center: Annotated[Array, Numbers("The middle of the ball. None: the origin.")] = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.center is None:
            object.__setattr__(self, "center", frozen(np.zeros(self.shape)))
        require_shape(self, "center", self.shape)

    @property
    def shape(self) -> Shape:
        return shape_of(self.n)

    @property
    def inner_radius(self) -> float:
        return self.radius

    def infeasibility(self, x: Array) -> float:
        """The distance to the ball."""
        x = as_point(x, self.shape, "The point")
        away = x - like(self.center, x)
        return max(0.0, length(away) - self.radius)

    def answer(self, direction: Array, warm: Array | None = None) -> Answer:
        center = like(self.center, direction)
        if type(direction) is not np.ndarray:
            size = norm(direction)
            return Answer(Dense(plus(center, -self.radius / size, direction) if size else center))
        size = length(direction)
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
