"""A set moved elsewhere: K + shift = { v + shift : v in K }."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated

from tidewolf.core.arrays import frozen, like
from tidewolf.core.settings import Numbers
from tidewolf.core.types import Array
from tidewolf.sets.balls.box import Box
from tidewolf.sets.balls.l2_ball import L2Ball
from tidewolf.sets.base import ConvexSet, InnerSet, require_shape
from tidewolf.sets.calculus.image import Image
from tidewolf.sets.generic.vertex_hull import VertexHull
from tidewolf.sets.simplices.simplex import Simplex


@dataclass(frozen=True, eq=False, repr=False)
class Translated(Image):
    """Every member of K moved by `shift`. Geometry as exact as that of K.

    Parameters
    ----------
    K : ConvexSet
        The set that is moved.
    shift : array
        What is added to every member, in the shape of a point.

    Examples
    --------
    >>> K = tw.sets.Translated(tw.sets.L2Ball(2), [10.0, 0.0])
    >>> K.lmo(np.array([1.0, 0.0]))
    array([9., 0.])
    """

    K: Annotated[ConvexSet, InnerSet("The set that is moved.")]
    shift: Annotated[Array, Numbers("What is added to every member, in the shape of a point.")]

    def __post_init__(self) -> None:
        super().__post_init__()
        require_shape(self, "shift", self.shape)
        object.__setattr__(self, "shift", frozen(like(self.shift, self.K.center)))

    @property
    def scale(self) -> float:
        return 1.0

    @property
    def offset(self) -> Array:
        return self.shift

    @cached_property
    def center(self) -> Array:
        return frozen(self.K.center + self.shift)

    @classmethod
    def examples(cls) -> Sequence[Translated]:
        return (
            cls(Simplex(3), [1.0, 0.0, -2.0]),
            cls(L2Ball(2), [0.0, 4.0]),
            cls(VertexHull([[1.0, 2.0], [1.0, 2.0]]), [-1.0, -2.0]),
            cls(cls(Box([0.0], [2.0]), [1.0]), [1.0]),
        )
