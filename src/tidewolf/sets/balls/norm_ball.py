"""What balls of a norm N around the origin share.

    { x : N(x) <= tau }        center 0        excess N(x) - tau

They are symmetric, so that the diameter is exactly twice the radius. No entry of a member is larger
in size than `reach`: the box [-reach, reach]^n is the superset. `Translated` puts a ball elsewhere.
"""

from __future__ import annotations

from abc import abstractmethod
from functools import cached_property

import numpy as np

from tidewolf.core.arrays import as_point, frozen, namespace
from tidewolf.core.oracle import Answer
from tidewolf.core.types import Array, Int32s, NDArray
from tidewolf.sets.base import ConvexSet, Relaxable, clipped


class NormBall(ConvexSet, Relaxable):
    """Abstract: { x : norm(x) <= tau }. A subclass is a frozen dataclass with a field tau."""

    tau: float

    @abstractmethod
    def norm(self, x: Array) -> float:
        """The norm that members have at most tau of."""

    @abstractmethod
    def answer(self, direction: Array, warm: Array | None = None) -> Answer: ...

    @cached_property
    def center(self) -> Array:
        return frozen(np.zeros(self.shape))

    @property
    def reach(self) -> float:
        """The largest entry of a member."""
        return self.tau

    def excess(self, x: Array) -> float:
        """The norm above tau."""
        return max(0.0, self.norm(as_point(x, self.shape, "The point")) - self.tau)

    def relax(self, y: Array) -> Array:
        """The box [-reach, reach]^n around it."""
        return clipped(y, self.shape, -self.reach, self.reach)


def largest(sizes: NDArray, k: int) -> Int32s:
    """The places of the k largest sizes, in order; ties go to the earlier one."""
    rank = len(sizes) - k
    least = np.partition(sizes, rank)[rank]
    above = np.flatnonzero(sizes > least)
    ties = np.flatnonzero(sizes == least)[: k - len(above)]
    return np.sort(np.concatenate([above, ties])).astype(np.int32)


def signed(sizes: Array, y: Array) -> Array:
    """Entries of these sizes with the signs of y."""
    return namespace(y).where(y < 0, -sizes, sizes)
