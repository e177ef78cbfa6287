"""A set drawn towards its center c: { c + factor (v - c) : v in K } = (1 - factor) c + factor K.

A ball of radius (1 - factor) r around any of its members, within the affine hull, is in K
(r the inner radius of K): room to explore.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated

from tidewolf.core.arrays import frozen
from tidewolf.core.settings import Number
from tidewolf.core.types import Array
from tidewolf.sets.balls.box import Box
from tidewolf.sets.balls.l2_ball import L2Ball
from tidewolf.sets.base import ConvexSet, InnerSet
from tidewolf.sets.calculus.image import Image
from tidewolf.sets.calculus.translated import Translated
from tidewolf.sets.generic.vertex_hull import VertexHull
from tidewolf.sets.simplices.capped_simplex import CappedSimplex
from tidewolf.sets.simplices.simplex import Simplex


@dataclass(frozen=True, eq=False, repr=False)
class Shrunk(Image):
    """K shrunk towards its center by `factor`. Geometry as exact as that of K.

    Parameters
    ----------
    K : ConvexSet
        The set that is drawn towards its center.
    factor : float
        How much of the distance to the center is left: at most 1.

    Examples
    --------
    >>> K = tw.sets.Shrunk(tw.sets.Simplex(2), 0.5)
    >>> K.lmo(np.array([2.0, -1.0]))
    array([0.25, 0.75])
    """

    K: Annotated[ConvexSet, InnerSet("The set that is drawn towards its center.")]
    factor: Annotated[
        float,
        Number("How much of the distance to the center is left: at most 1.", above=0.0, most=1.0),
    ]

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
