"""The box: every entry between its own two bounds.

    { lower <= x <= upper }

Oracle: entry by entry, the lower bound where the direction is nonnegative, else the upper. Entries
with lower = upper are fixed: the affine hull runs through the free ones. Center (lower + upper)/2,
radius ||upper - lower||/2, inner radius half the smallest free width. Every entry is a factor.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, ClassVar, final

import numpy as np

from tidewolf.core.arrays import frozen, length, like, namespace, to_numpy
from tidewolf.core.errors import EmptySet
from tidewolf.core.oracle import Answer
from tidewolf.core.settings import PointNumbers
from tidewolf.core.types import Array, Floats, Int32s, NDArray, Shape
from tidewolf.core.vertices import Dense
from tidewolf.kernels import box as kernels
from tidewolf.sets.base import (
    ClosedForm,
    Factors,
    KernelGeometry,
    LinearDescription,
    Polyhedral,
    Projectable,
    Relaxable,
    Sizes,
    require_shape,
)


@final
@dataclass(frozen=True, eq=False, repr=False)
class Box(ClosedForm, Projectable, Polyhedral, Relaxable, KernelGeometry):
    """Arrays with every entry between `lower` and `upper`. Geometry exact.

    Parameters
    ----------
    lower : array
        The least value of each entry, in the shape of a point.
    upper : array
        The largest value of each entry, shaped as `lower`.

    Examples
    --------
    >>> K = tw.sets.Box([0.0, -1.0], [2.0, 1.0])
    >>> K.lmo(np.array([1.0, -3.0]))
    array([0., 1.])
    """

    tangents: ClassVar = kernels.within_box
    point_infeasibility: ClassVar = kernels.outside_box
    nearest: ClassVar = kernels.nearest_in_box

    lower: Annotated[Array, PointNumbers()]
    upper: Annotated[Array, PointNumbers()]

    def __post_init__(self) -> None:
        super().__post_init__()
        require_shape(self, "upper", self.shape)
        object.__setattr__(self, "upper", frozen(like(self.upper, self.lower)))
        if (wrong := np.argwhere(self._widths < 0)).size:
            words = f"upper of Box must be at least lower; at entry {wrong[0].tolist()} it is not."
            raise EmptySet(words, setting="upper")

    @property
    def shape(self) -> Shape:
        return tuple(self.lower.shape)

    @cached_property
    def center(self) -> Array:
        return frozen(self.lower + (self.upper - self.lower) / 2)

    @cached_property
    def _sizes(self) -> Sizes:
        free, diameter = self._widths[self._widths > 0], length(self._widths)
        inside = float(np.min(free)) / 2 if free.size else 0.0
        return Sizes(free.size, diameter / 2, diameter, inside)

    @cached_property
    def factors(self) -> Factors:
        widths = self._widths.reshape(-1).astype(np.float64)
        places = frozen(np.arange(len(widths)))
        return Factors(places, frozen(widths / 2), frozen(widths), exact=True)

    @cached_property
    def geometry(self) -> tuple[Floats, Int32s] | None:
        if type(self.lower) is not np.ndarray or self.lower.ndim != 1:
            return None
        return np.concatenate([self.lower, self.upper]), np.zeros(1, dtype=np.int32)

    def tangent(self, direction: Array) -> Array:
        return direction * like(self._free, direction)

    @cached_property
    def _free(self) -> Array:
        return namespace(self.lower).astype(self.upper > self.lower, self.lower.dtype)

    def infeasibility(self, x: Array) -> float:
        """The largest violation of a bound."""
        xp = namespace(x)
        lower, upper = like(self.lower, x), like(self.upper, x)
        return max(0.0, float(xp.max(lower - x)), float(xp.max(x - upper)))

    def answer(self, direction: Array, warm: Array | None = None) -> Answer:
        xp = namespace(direction)
        corner = xp.where(direction >= 0, like(self.lower, direction), like(self.upper, direction))
        return Answer(Dense(corner))

    def project(self, y: Array) -> Array:
        """Every entry moved to its nearer bound where it is outside."""
        return namespace(y).clip(y, like(self.lower, y), like(self.upper, y))

    def relax(self, y: Array) -> Array:
        """The box itself."""
        return self.project(y)

    def description(self) -> LinearDescription:
        return LinearDescription(
            *(to_numpy(bound).astype(np.float64).reshape(-1) for bound in (self.lower, self.upper))
        )

    @classmethod
    def examples(cls) -> Sequence[Box]:
        return (
            cls([0.0], [1.0]),
            cls([-1.0, 0.0, 2.0], [1.0, 5.0, 2.0]),
            cls([0.5, -0.5], [0.5, -0.5]),
            cls(np.zeros((2, 3)), np.arange(6.0).reshape(2, 3)),
        )

    @cached_property
    def _widths(self) -> NDArray:
        return to_numpy(self.upper - self.lower)
