"""What a learner keeps of a projection to start the next one from: a member of the set.

ActiveSet           a convex combination of vertices of the set
FactoredActiveSet   one for each factor of a product
ExactPoint          the member alone, where exact projection is cheap
"""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any, ClassVar, Generic, NamedTuple, Self, TypeVar, final

import numpy as np

from tidewolf.core.arrays import eps_of, frozen, is_array, like, norm, to_numpy
from tidewolf.core.checkpoint import Stored
from tidewolf.core.conforming import allowed_infeasibility
from tidewolf.core.oracle import HasLMO
from tidewolf.core.types import Array, Bools, Floats, Int64s, NDArray
from tidewolf.core.vertices import Sparse, Vertex, require_saved_numbers
from tidewolf.projection.one_shot import as_member
from tidewolf.sets.base import (
    ConvexSet,
    CostlyMembership,
    Factors,
    Projectable,
    membership_tolerance,
)

SPARE = 32
AFFORDABLE = 10**7
"""Numbers looked at, about, to see whether the vertices of a saved set are members."""
DENSE_ENTRIES = 4096
"""Products up to this size keep vertices that are not sparse as rows, too."""
SAVED_ROUNDING = 1e-6
"""How far the weights of a saved set may be from those of a mean, and its point from the mean."""
DOUBLE = np.dtype(np.float64)


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
        """A member within sqrt(tol) of an infeasible iterate of y, or as near as the budget of
        oracle calls allows; y is finite, of the right shape, and the caller's to give away.
        `shared`: its table of vertices serves others, too, so no row leaves it.
        """

    @abstractmethod
    def avoiding(self, K: HasLMO, out: Bools, vertex: Vertex | None) -> Array | None:
        """A member that is 0 in these flat entries: the mean of its vertices that are, or where
        none with weight is, in a factor of a product, one that is known or `vertex`. None: neither
        is there.
        """

    @abstractmethod
    def also(self, K: HasLMO, vertex: Vertex) -> Self:
        """The same point with one more vertex to choose from; the same if it has no table."""


class Combination(Active):
    """Abstract: a convex combination of the first rows of a table of vertices, which it may share
    with others; `warm` is what the next oracle call may start from.
    """

    tag: ClassVar = "combination of vertices"
    __slots__ = ("atoms", "warm", "weights", "x")

    def __init__(self, atoms: Any, weights: Floats, x: Array, warm: Any = None) -> None:
        self.atoms, self.warm = atoms, warm
        self.weights, self.x = frozen(weights), frozen(x)

    def __len__(self) -> int:
        return int(np.count_nonzero(self.weights))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.atoms, self.weights, self.x, self.warm)  # a copy is read-only too

    def at(self, table: Any, weights: Floats, x: Array, warm: Any) -> Self:
        """Another point, on the first rows of a table."""
        return type(self)(table, weights, x, warm)

    def mean_of(self, weights: Floats) -> Array:
        mean: Array = self.atoms.combine(weights, self.x)
        return mean

    def only(self, table: Any, rows: Int64s) -> Self:
        """The same point on a table that holds just these rows, which are all that are in use."""
        return self.at(table, self.weights[rows], self.x, self.warm)

    def without_idle(self) -> Self:
        used = np.flatnonzero(self.weights)
        return self.only(self.atoms.only(used), used)

    def require_mean(self, totals: NDArray, reach: float) -> None:
        """Refuse what was saved, by a ValueError, if weights are below 0 or these sums of them not
        1, or if x is another point; vertices have this size.
        """
        ones = bool((np.abs(totals - 1.0) <= SAVED_ROUNDING).all())
        if not ones or not self.weights.min() >= -SAVED_ROUNDING:
            raise ValueError("the weights of an active set are at least 0 and add up to 1")
        if not is_warm(self.warm):
            raise ValueError("what the next oracle call starts from is no array")
        apart, least = norm(self.mean_of(self.weights) - self.x), 1e4 * eps_of(self.x)
        if not apart <= max(SAVED_ROUNDING, least) * max(reach, norm(self.x)):
            raise ValueError("the point of an active set is not the mean of its vertices")


def most_idle(used: int, dimension: int) -> int:
    """How many idle rows a table may have beside those in use."""
    return max(used + 2 * SPARE, dimension // 2)


def is_warm(warm: Any) -> bool:
    """Whether an oracle may start from it: an array, nothing, or one of these for each part of a
    product.
    """
    return warm is None or is_array(warm) or (type(warm) is tuple and all(map(is_warm, warm)))


class Remembered(NamedTuple, Generic[Kept]):
    """A member x, its infeasible iterate y, the oracle calls it took, |x - y|^2, and what to go on
    from."""

    x: Array
    y: Array
    calls: int
    distance2: float
    active: Kept


def is_free_of(vertex: Vertex, out: Bools, reference: Array) -> bool:
    if type(vertex) is Sparse:
        return not bool(vertex.values[out[vertex.indices]].any())
    return not bool(to_numpy(vertex.dense(reference)).reshape(-1)[out].any())


def emptied(x: Array, out: Bools) -> Array:
    entries = to_numpy(x).copy()
    entries.reshape(-1)[out] = 0.0
    return frozen(like(entries, x))


def factors_of(K: HasLMO) -> Factors | None:
    """The factors of a product that projections can treat one by one; None: it is one for them.

    They are NumPy's, in double precision, and if no exact projection is at hand their vertices
    are sparse or the product is small; points whose membership is costly to see are proved by their
    vertices, so such a set stays one.
    """
    factors = K.factors if isinstance(K, ConvexSet) else None
    if factors is None or len(factors.starts) < 2 or isinstance(K, CostlyMembership):
        return None
    if type(K.center) is not np.ndarray or K.center.dtype != DOUBLE:
        return None
    if factors.exact or math.prod(K.shape) <= DENSE_ENTRIES or type(K.atom(K.center)) is Sparse:
        return factors
    return None


def factors_in(K: HasLMO) -> Factors:
    assert isinstance(K, ConvexSet)
    assert K.factors is not None
    return K.factors


@final
class ExactPoint(Active):
    """A member of a set whose exact projection is cheap: x = y' = the member nearest to y.

    I and III hold because it is the projection on K itself, II with distance 0; no oracle is asked.
    """

    tag: ClassVar = "exact point"
    __slots__ = ("x",)

    def __init__(self, x: Array) -> None:
        self.x = frozen(x)

    @classmethod
    def start(cls, K: HasLMO, x0: Array | None = None) -> ExactPoint:
        return cls(K.center if x0 is None else as_member(K, x0))

    def __reduce__(self) -> tuple[Any, ...]:
        return ExactPoint, (self.x,)

    def __repr__(self) -> str:
        return "ExactPoint()"

    def nearest(
        self, K: HasLMO, y: Array, tol: float, budget: float, shared: bool = False
    ) -> Remembered[ExactPoint]:
        assert isinstance(K, Projectable)
        x = frozen(K.project(y))
        return Remembered(x, x, 0, 0.0, ExactPoint(x))

    def avoiding(self, K: HasLMO, out: Bools, vertex: Vertex | None) -> Array | None:
        """The member nearest to x that is 0 there: pushed far below 0, entries end at 0, or where
        they may be negative at a bound from which they can be moved to 0.
        """
        assert isinstance(K, Projectable)
        if vertex is not None:
            return vertex.dense(self.x)
        far = 1e3 * (K.radius + float(np.abs(self.x).max()))
        pushed = emptied(self.x, out) - far * out.reshape(self.x.shape)
        x = emptied(K.project(pushed), out)
        return x if K.infeasibility(x) <= membership_tolerance(x, K.radius) else None

    def also(self, K: HasLMO, vertex: Vertex) -> ExactPoint:
        return self

    def parts(self) -> dict[str, Any]:
        return {"x": self.x}

    @classmethod
    def restored(cls, parts: dict[str, Any]) -> ExactPoint:
        require_saved_numbers(parts["x"])
        return cls(parts["x"])

    def require_of(self, K: HasLMO) -> None:
        allowed = allowed_infeasibility(K, K.center)
        if tuple(self.x.shape) != K.shape or not K.infeasibility(self.x) <= allowed:
            raise ValueError("its point is no member of the set")
