"""What a learner keeps of a projection to start the next one from: a member of the set.

ActiveSet           a convex combination of vertices of the set
FactoredActiveSet   one for each factor of a product
ExactPoint          the member alone, where exact projection is cheap
"""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import ClassVar, Generic, NamedTuple, Self, TypeVar

import numpy as np

from tidewolf.core.arrays import frozen, like, to_numpy
from tidewolf.core.checkpoint import Stored
from tidewolf.core.oracle import HasLMO
from tidewolf.core.types import Array, Bools, Floats
from tidewolf.core.vertices import Sparse, Vertex
from tidewolf.sets.base import ConvexSet, CostlyMembership, Factors

DENSE_ENTRIES = 4096
"""Products up to this size keep vertices that are not sparse as rows, too."""
_DOUBLE = np.dtype(np.float64)


Kept = TypeVar("Kept", bound="Active")


class Active(Stored):
    """Abstract: a member x that projections start from. Never changed: each makes another."""

    tag: ClassVar = "member of a set"
    __slots__ = ()
    x: Array

    @abstractmethod
    def nearest(
        self, K: HasLMO, y: Array, tol: float, budget: float, shared: bool = False
    ) -> Remembered[Self]:
        """A member within sqrt(tol) of a companion of y, or as near as the budget of oracle calls
        allows; y is finite, of the right shape, and the caller's to give away. `shared`: its table
        of vertices serves others, too, so no row leaves it.
        """

    @abstractmethod
    def avoiding(self, K: HasLMO, out: Bools, vertex: Vertex | None) -> Array | None:
        """A member that is 0 in these flat entries: the mean of its vertices that are, or where
        none with weight is, in a factor of a product, one that is known or `vertex`. None: neither
        is there.
        """

    @abstractmethod
    def also(self, K: HasLMO, vertex: Vertex) -> Self:
        """The same point with one more vertex to choose from; the same where it has no table."""


class Remembered(NamedTuple, Generic[Kept]):
    """A member x, its companion y, the oracle calls it took, |x - y|^2, what to go on from, and
    where there are factors |x - y|^2 of each.
    """

    x: Array
    y: Array
    calls: int
    distance2: float
    active: Kept
    distances2: Floats | None = None


def is_free_of(vertex: Vertex, out: Bools, reference: Array) -> bool:
    """Whether a vertex is exactly 0 in these flat entries."""
    if type(vertex) is Sparse:
        return not bool(vertex.values[out[vertex.indices]].any())
    return not bool(to_numpy(vertex.dense(reference)).reshape(-1)[out].any())


def emptied(x: Array, out: Bools) -> Array:
    """A point with 0 in these flat entries."""
    entries = to_numpy(x).copy()
    entries.reshape(-1)[out] = 0.0
    return frozen(like(entries, x))


def factors_of(K: HasLMO) -> Factors | None:
    """The factors of a product that projections can treat one by one; None: it is one for them.

    They are NumPy's, in double precision, and where no exact projection is at hand their vertices
    are sparse or the product is small; points whose membership is costly to see are proved by their
    vertices, so such a set stays one.
    """
    factors = K.factors if isinstance(K, ConvexSet) else None
    if factors is None or len(factors.starts) < 2 or isinstance(K, CostlyMembership):
        return None
    if type(K.center) is not np.ndarray or K.center.dtype != _DOUBLE:
        return None
    if factors.exact or math.prod(K.shape) <= DENSE_ENTRIES or type(K.atom(K.center)) is Sparse:
        return factors
    return None


def factors_in(K: HasLMO) -> Factors:
    """Those of a set that is known to have some."""
    assert isinstance(K, ConvexSet)
    assert K.factors is not None
    return K.factors
