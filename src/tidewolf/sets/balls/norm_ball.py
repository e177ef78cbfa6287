"""What balls of a norm N around the origin share.

    { x : N(x) <= tau }        center 0        excess N(x) - tau

They are symmetric, so that the diameter is exactly twice the radius. No entry of a member is larger
in size than `reach`: the box [-reach, reach]^n is the superset. `Translated` puts a ball elsewhere.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from functools import cached_property
from typing import Annotated, TypeAlias

import numpy as np

from tidewolf.core.arrays import as_point, flat, frozen, namespace, to_numpy
from tidewolf.core.errors import InvalidInput
from tidewolf.core.oracle import Answer
from tidewolf.core.settings import Number, Size
from tidewolf.core.types import Array, Int32s, NDArray, Shape
from tidewolf.core.vertices import Sparse, Vertex
from tidewolf.sets.base import ConvexSet, Relaxable, clipped, shape_of

Entries: TypeAlias = Annotated[int | Shape, Size("How many entries a point has, or its shape.")]
Bound: TypeAlias = Annotated[float, Number("What the norm of a member is at most.", above=0.0)]


class NormBall(ConvexSet, Relaxable):
    """Abstract: { x : norm(x) <= tau }.

    A subclass is a frozen dataclass with fields tau and n, or with a `shape` of its own.
    """

    n: int | Shape
    tau: float

    @property
    def shape(self) -> Shape:
        return shape_of(self.n)

    @abstractmethod
    def norm(self, x: Array) -> float:
        """The norm that members have at most tau of."""

    @abstractmethod
    def answer(self, direction: Array, warm: Array | None = None) -> Answer: ...

    @cached_property
    def center(self) -> Array:
        return frozen(np.zeros(self.shape))

    def atom(self, point: Array) -> Vertex:
        return Sparse.of(point)

    @property
    def reach(self) -> float:
        """The largest entry of a member."""
        return self.tau

    def infeasibility(self, x: Array) -> float:
        """The norm above tau."""
        return max(0.0, self.norm(as_point(x, self.shape, "The point")) - self.tau)

    def relax(self, y: Array) -> Array:
        """The box [-reach, reach]^n around it."""
        return clipped(y, self.shape, -self.reach, self.reach)


def require_at_most_entries(K: ConvexSet, k: int) -> None:
    """Refuse a number k of entries beyond those that points have."""
    if k > (n := math.prod(K.shape)):
        raise InvalidInput(
            f"k of {type(K).__name__} must be at most n = {n}, not {k}.", setting="k"
        )


def largest_places(sizes: NDArray, k: int) -> Int32s:
    """The places of the k largest sizes, in order; ties go to the earlier one."""
    rank = len(sizes) - k
    least = np.partition(sizes, rank)[rank]
    above = np.flatnonzero(sizes > least)
    ties = np.flatnonzero(sizes == least)[: k - len(above)]
    return np.sort(np.concatenate([above, ties])).astype(np.int32)


def largest_entries(direction: Array, k: int) -> tuple[Int32s, NDArray]:
    """The places of the k entries largest in size, as `largest_places` finds them, and the entries;
    of a point on a device no more than those come here.
    """
    d = flat(direction)
    if type(d) is np.ndarray:
        places = largest_places(np.abs(d), k)
        return places, d[places]
    xp = namespace(d)
    sizes = xp.abs(d)
    least = xp.sort(sizes)[int(d.shape[0]) - k]
    above = xp.nonzero(sizes > least)[0]
    ties = xp.nonzero(sizes == least)[0][: k - int(above.shape[0])]
    chosen = xp.sort(xp.concat([above, ties]))
    return to_numpy(chosen).astype(np.int32), to_numpy(xp.take(d, chosen, axis=0))


def signed(sizes: Array, y: Array) -> Array:
    """Entries of these sizes with the signs of y."""
    return namespace(y).where(y < 0, -sizes, sizes)
