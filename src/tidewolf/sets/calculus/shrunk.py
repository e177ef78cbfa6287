"""A set drawn towards its center: { c + factor (v - c) : v in K } = (1 - factor) c + factor K, c
the center of K.

A ball of radius (1 - factor) r around any of its members, within the affine hull, is in K
(r the inner radius of K): room to explore.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from tidewolf.core.arrays import as_number, frozen
from tidewolf.core.errors import InvalidInput
from tidewolf.core.types import Array
from tidewolf.sets.balls.box import Box
from tidewolf.sets.balls.l2_ball import L2Ball
from tidewolf.sets.base import ConvexSet
from tidewolf.sets.calculus.image import Image
from tidewolf.sets.calculus.translated import Translated
from tidewolf.sets.generic.vertex_hull import VertexHull
from tidewolf.sets.simplices.capped_simplex import CappedSimplex
from tidewolf.sets.simplices.simplex import Simplex


@dataclass(frozen=True, eq=False, repr=False)
class Shrunk(Image):
    """K shrunk towards its center by `factor`, above 0 and at most 1.

    Geometry as exact as that of K.
    """

    K: ConvexSet
    factor: float

    def __post_init__(self) -> None:
        factor = as_number(self.factor, "The factor of a shrunk set", above=0.0)
        if factor > 1.0:
            raise InvalidInput(f"The factor of a shrunk set must be at most 1, not {factor:g}.")
        object.__setattr__(self, "factor", factor)

    @property
    def scale(self) -> float:
        return self.factor

    @cached_property
    def offset(self) -> Array:
        return frozen((1.0 - self.factor) * self.K.center)

    @property
    def center(self) -> Array:
        return self.K.center

    @classmethod
    def examples(cls) -> Sequence[Shrunk]:
        return (
            cls(Simplex(4), 0.5),
            cls(L2Ball(3, center=[1.0, 1.0, 1.0]), 0.01),
            cls(CappedSimplex(5, 0.5), 1.0),
            cls(VertexHull([[0.0, 1.0], [2.0, 1.0]]), 0.9),
            cls(Translated(Box([-1.0, 3.0], [1.0, 3.0]), [5.0, 0.0]), 0.3),
        )
