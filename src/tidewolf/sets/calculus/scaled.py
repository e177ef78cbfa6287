"""A set made larger or smaller around the origin: factor K = { factor v : v in K }."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated

from tidewolf.core.arrays import frozen, length
from tidewolf.core.errors import InvalidInput
from tidewolf.core.settings import Number
from tidewolf.core.types import Array
from tidewolf.sets.balls.l2_ball import L2Ball
from tidewolf.sets.base import ConvexSet, InnerSet
from tidewolf.sets.calculus.image import Image
from tidewolf.sets.calculus.translated import Translated
from tidewolf.sets.simplices.simplex import Simplex


@dataclass(frozen=True, eq=False, repr=False)
class Scaled(Image):
    """Every member of K times `factor`. Geometry as exact as that of K.

    Parameters
    ----------
    K : ConvexSet
        The set that is made larger or smaller.
    factor : float
        What every member is multiplied by.

    Examples
    --------
    >>> K = tw.sets.Scaled(tw.sets.Simplex(3), 5.0)
    >>> K.lmo(np.array([2.0, -1.0, 0.5]))
    array([0., 5., 0.])
    """

    K: Annotated[ConvexSet, InnerSet("The set that is made larger or smaller.")]
    factor: Annotated[float, Number("What every member is multiplied by.", above=0.0)]

    def __post_init__(self) -> None:
        super().__post_init__()
        size = self.K.diameter + length(self.K.center)
        if not math.isfinite(self.factor * size):
            raise InvalidInput(
                f"factor of Scaled = {self.factor:g} makes a set of size {size:g} larger than "
                "numbers are: measure in other units.",
                setting="factor",
            )

    @property
    def scale(self) -> float:
        return self.factor

    @cached_property
    def offset(self) -> Array:
        return frozen(0.0 * self.K.center)

    @cached_property
    def center(self) -> Array:
        return frozen(self.factor * self.K.center)

    @classmethod
    def examples(cls) -> Sequence[Scaled]:
        return (cls(Translated(Simplex(3), [0.0, 4.0, 1.0]), 2.0), cls(L2Ball(2), 0.1))
