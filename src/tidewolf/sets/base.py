"""Convex sets: one abstract class, and five capabilities that a set may have.

A set is written by giving `shape`, `center`, `radius`, `infeasibility` and either `lmo` (a dense
answer, checked for membership on every call of the machinery) or `answer` (a structured one,
trusted; then `atom` makes a member a vertex of the same kind). `Projectable` adds an exact
projection, `Polyhedral` a linear description for exact solvers, `Relaxable` a cheap superset,
`Compiled` an oracle that compiled loops can call, `CostlyMembership` a check of vertices that is
cheap where that of points is costly.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial, wraps
from typing import Any, ClassVar, NamedTuple, Self, cast

import numpy as np

from tidewolf.core import settings, vertices
from tidewolf.core.arguments import shown
from tidewolf.core.arrays import (
    SILENCE,
    as_direction,
    as_own,
    as_point,
    eps_of,
    frozen,
    inner,
    is_array,
    like,
    namespace,
    require_finite,
    to_numpy,
)
from tidewolf.core.errors import OracleError, WrongShape, WrongType
from tidewolf.core.jit import Kernel
from tidewolf.core.oracle import Answer
from tidewolf.core.types import Array, Floats, Int32s, Int64s, NDArray, Shape
from tidewolf.core.values import Value


def _check_direction(method: Any) -> Any:
    @wraps(method)
    def checked(self: "ConvexSet", direction: Array, warm: Any = None) -> Answer:
        direction = self.as_direction(direction)
        with SILENCE:
            # kernels might never end on a NaN; if squares add up to a number there is none
            if type(direction) is np.ndarray and not math.isfinite(inner(direction, direction)):
                require_finite(direction, "The direction")
            return cast(Answer, method(self, direction, warm))

    return checked


def _check_array(accept: Any, what: str, method: Any) -> Any:
    @wraps(method)
    def checked(self: "ConvexSet", x: Array) -> Any:
        with SILENCE:
            return method(self, accept(x, self.shape, what))

    return checked


def _check_vertex(method: Any) -> Any:
    @wraps(method)
    def checked(self: "ConvexSet", vertex: vertices.Vertex) -> float:
        if not isinstance(vertex, vertices.Vertex) or tuple(vertex.shape) != self.shape:
            raise WrongType(f"Expected a vertex that this set answered with, not {shown(vertex)}.")
        return cast(float, method(self, vertex))

    return checked


# What checks the arguments of each method of a set, so that its class need not.
_WRAPPERS: dict[str, Callable[[Any], Any]] = {
    "answer": _check_direction,
    "atom": partial(_check_array, as_direction, "The point"),
    "infeasibility": partial(_check_array, as_point, "The point"),
    "norm": partial(_check_array, as_direction, "The point"),
    "project": partial(_check_array, as_point, "The point to project"),
    "relax": partial(_check_array, as_point, "The point to relax"),
    "tangent": partial(_check_array, as_direction, "The direction"),
    "vertex_infeasibility": _check_vertex,
}


class Factors(NamedTuple):
    """K = K_1 x ... x K_q: members are all ways of putting a member of each factor end to end.

    Flattened, factor b has the entries from starts[b] up to those of the next. With center the
    factors' centers, end to end,

        radius^2 = sum_b radii_b^2        diameter^2 = sum_b diameters_b^2

    and lmo and tangent of K are those of the factors.

    Parameters
    ----------
    starts : array
        The first entry of each factor, in order; that of the first is 0.
    radii : array
        An upper bound on the distance from the center to a member, factor by factor.
    diameters : array
        An upper bound on the distance between two members, factor by factor.
    exact : bool
        Whether `project` of the set is exact, cheap, and asks no oracle.

    Examples
    --------
    >>> parts = tw.sets.SimplexProduct([2, 1, 4]).factors
    >>> parts.starts, parts.exact
    (array([0, 2, 3]), True)
    >>> tw.sets.Simplex(7).factors is None
    True
    """

    starts: Int64s
    radii: Floats
    diameters: Floats
    exact: bool = False


class ConvexSet(Value, ABC):
    """A convex compact set, used through a linear minimization oracle.

    Abstract. A subclass is a frozen dataclass with `shape`, `center`, `radius`, `infeasibility`,
    `examples` and `lmo`; `tidewolf.testing.check_set` checks it.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True, eq=False, repr=False)
    ... class Interval(tw.sets.ConvexSet):
    ...     high: float = 1.0
    ...     shape = (1,)
    ...     center = property(lambda K: np.array([K.high / 2]))
    ...     radius = property(lambda K: K.high / 2)
    ...     def infeasibility(K, x):
    ...         return max(0.0, float(-x[0]), float(x[0]) - K.high)
    ...     def lmo(K, direction):
    ...         return np.where(direction < 0, K.high, 0.0)
    ...     @classmethod
    ...     def examples(cls):
    ...         return (cls(), cls(2.0))
    >>> Interval(3.0).lmo(np.array([-1.0]))
    array([3.])
    """

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "examples" in vars(cls) and (cls.lmo, cls.answer) == (ConvexSet.lmo, ConvexSet.answer):
            raise TypeError(f"{cls.__name__} must define lmo(direction) or answer(direction).")
        own = cls.__dict__.get("center")
        if isinstance(own, property) and own.fget and not own.__isabstractmethod__:
            cached = _cached_center(own.fget)
            cached.__set_name__(cls, "center")
            setattr(cls, "center", cached)  # noqa: B010  a property to type checkers
        # what an oracle is asked is checked here, once for all sets
        for name, checked in _WRAPPERS.items():
            if name in cls.__dict__:
                setattr(cls, name, checked(cls.__dict__[name]))

    def as_direction(self, direction: Array) -> Array:
        """A direction of a kind the oracle takes, of the right shape; its entries are not looked
        at.
        """
        return as_direction(direction, self.shape)

    @property
    @abstractmethod
    def shape(self) -> Shape:
        """The shape of a point."""

    @property
    @abstractmethod
    def center(self) -> Array:
        """A point in the relative interior, if there is one; read-only."""

    @property
    @abstractmethod
    def radius(self) -> float:
        """Upper bound on the distance from `center` to a point of the set."""

    @property
    def diameter(self) -> float:
        """Upper bound on the distance between two points of the set."""
        return 2.0 * self.radius

    @property
    def inner_radius(self) -> float | None:
        """Radius of a ball around `center`, within the affine hull, that lies in the set; 0 for a
        single point; None when unknown.
        """
        return None

    @property
    def dimension(self) -> int:
        """Dimension of the affine hull."""
        return math.prod(self.shape)

    @property
    def factors(self) -> Factors | None:
        """The sets that this one is a product of, by their places among the flattened entries; None
        if it is no product, or that is unknown.
        """
        return None

    @property
    def names(self) -> tuple[str, ...] | None:
        """The names of the entries in C order, all different; None if they have none."""
        return None

    @cached_property
    def places(self) -> Mapping[str, Int64s]:
        """The places, in C order, of the entries that a name stands for: one for each of `names`,
        and several where a set knows names for them.
        """
        return {name: np.array([i]) for i, name in enumerate(self.names or ())}

    def _out_of_reach(self, entries: Int64s) -> str | None:
        """What no member does that is 0 in these entries, such as "no path leads from SEA to NYC";
        None if the set has no words for it.
        """
        return None

    def tangent(self, direction: Array) -> Array:
        """Orthogonal projection of `direction` on the direction space of the affine hull."""
        return direction

    @abstractmethod
    def infeasibility(self, x: Array) -> float:
        """0 in the set, else the largest violation of an inequality or equation, or a distance; the
        class says which.
        """

    @classmethod
    @abstractmethod
    def examples(cls) -> Sequence["ConvexSet"]:
        """Small instances, degenerate ones among them, for the checks of `tidewolf.testing`."""

    def lmo(self, direction: Array) -> Array:
        """The linear minimization oracle, argmin_{v in K} <direction, v>.

        Parameters
        ----------
        direction : array
            The gradient of the loss, in the shape of a point.

        Returns
        -------
        array
            The member, in the library, floating dtype and device of `direction`.
        """
        direction = as_point(direction, self.shape, "The direction")
        return self.answer(direction).vertex.dense(direction)

    def answer(self, direction: Array, warm: Array | None = None) -> Answer:
        """The structured answer the machinery uses; `direction` is known to be finite and of the
        right shape.
        """
        point = as_own(self.lmo(direction), f"The answer of the oracle of {type(self).__name__}")
        name, shape = type(self).__name__, tuple(point.shape)
        if shape != self.shape:
            raise WrongShape(f"The oracle of {name} answered with shape {shape}, not {self.shape}.")
        if (off := self.infeasibility(point)) > membership_tolerance(point, self.radius):
            raise OracleError(
                f"The oracle of {name} answered a point that is infeasible by {off:.3g}: its lmo "
                "or its infeasibility is wrong; run tidewolf.testing.check_set."
            )
        return Answer(vertices.Dense(like(point, direction)))

    def atom(self, point: Array) -> vertices.Vertex:
        """A member as a vertex of the kind this set answers with."""
        return vertices.Dense(as_own(point, "The member"))

    def to(self, reference: Array) -> Self:
        """The set with its arrays, `center` among them, moved to another library or device.

        Parameters
        ----------
        reference : array
            A floating-point array in the library, dtype and device to move to.

        Returns
        -------
        ConvexSet
            The same set there.
        """
        require_floating(reference)
        moved = type(self)(**{name: _moved(x, reference) for name, x in self.fields().items()})
        sizes = Sizes(*(getattr(self, name) for name in Sizes._fields))
        for name, value in {**sizes._asdict(), "_sizes": sizes}.items():
            # derived here once; there it may be out of reach of NumPy
            if isinstance(getattr(type(self), name, None), cached_property):
                moved.__dict__[name] = value
        if isinstance(type(self).center, cached_property):
            moved.__dict__["center"] = frozen(self._center_in(reference))
        return moved

    def _center_in(self, reference: Array) -> Array:
        return like(self.center, reference)


class Sizes(NamedTuple):
    dimension: int
    radius: float
    diameter: float
    inner_radius: float


class ClosedForm(ConvexSet):
    """Abstract: a set whose sizes have formulas, which `_sizes` computes together; those of a
    single point are 0.
    """

    @property
    @abstractmethod
    def _sizes(self) -> Sizes: ...

    @property
    def dimension(self) -> int:
        return self._sizes.dimension

    @property
    def radius(self) -> float:
        return self._sizes.radius if self.dimension else 0.0

    @property
    def diameter(self) -> float:
        return self._sizes.diameter if self.dimension else 0.0

    @property
    def inner_radius(self) -> float | None:
        return self._sizes.inner_radius if self.dimension else 0.0


class SparseSet(ConvexSet):
    def atom(self, point: Array) -> vertices.Vertex:
        return vertices.Sparse.of(point)


class InnerSet(settings.Check):
    """A set that another one is made of; in files a table, for which a set is built."""

    words: ClassVar[str] = 'a table such as { kind = "Simplex", n = 3 }'

    def __call__(self, value: Any, what: str) -> ConvexSet:
        if not isinstance(value, ConvexSet):
            raise WrongType(f"{what} must be a set such as sets.Simplex(3), not {shown(value)}.")
        return value

    def read(self, value: Any) -> dict[str, Any] | None:
        return value if isinstance(value, dict) else None


INNER_SETS = settings.ListOf(
    words='a list of tables such as [{ kind = "Simplex", n = 3 }]',
    item=InnerSet(),
    such="[sets.Simplex(2), sets.L2Ball(3)]",
)


def _cached_center(center: Callable[[Any], Array]) -> cached_property[Array]:
    """A center that is computed once and read-only, as `to` needs it to move it."""

    @wraps(center)
    def cached(K: Any) -> Array:
        x = center(K)
        return frozen(namespace(x).asarray(x, copy=True))

    return cached_property(cached)


class Projectable(ABC):
    """A set with a fast exact Euclidean projection. Baselines and tests use it; learners only on
    boxes and products of simplices.

    Examples
    --------
    >>> isinstance(tw.sets.Simplex(3), tw.sets.Projectable)
    True
    >>> tw.sets.Simplex(2).project(np.array([1.0, 0.5]))
    array([0.75, 0.25])
    """

    @abstractmethod
    def project(self, y: Array) -> Array:
        """The point of the set nearest to y."""


class LinearDescription(NamedTuple):
    """K = { shift + lift u : A_eq u = b_eq, A_ub u <= b_ub, lower <= u <= upper }, flattened.

    Parameters
    ----------
    lower, upper : array
        Bounds on u.
    A_eq, b_eq : matrix and array, optional
        The equations, if there are any.
    A_ub, b_ub : matrix and array, optional
        The inequalities, if there are any.
    lift : matrix, optional
        What makes a point of u. None: the identity.
    shift : array, optional
        What is added to it. None: nothing.

    Examples
    --------
    >>> told = tw.sets.Simplex(3).description()
    >>> told.A_eq, told.b_eq
    (array([[1., 1., 1.]]), array([1.]))
    """

    lower: Floats
    upper: Floats
    A_eq: Any = None
    b_eq: Floats | None = None
    A_ub: Any = None
    b_ub: Floats | None = None
    lift: Any = None
    shift: Floats | None = None


class Polyhedral(ABC):
    """A set with a linear description, for exact LP and QP solvers.

    Examples
    --------
    >>> isinstance(tw.sets.Box([0.0], [1.0]), tw.sets.Polyhedral)
    True
    >>> isinstance(tw.sets.L2Ball(2), tw.sets.Polyhedral)
    False
    """

    @abstractmethod
    def description(self) -> LinearDescription:
        """The set as linear equations, inequalities and bounds."""


class Relaxable(ABC):
    """A set inside a convex superset that is cheap to project on.

    Examples
    --------
    >>> tw.sets.Simplex(3).relax(np.array([2.0, 0.5, -1.0]))  # the box around it
    array([1. , 0.5, 0. ])
    """

    @abstractmethod
    def relax(self, y: Array) -> Array:
        """The projection of y on the superset: no farther from any point of the set than y."""


class Boxed(ConvexSet, Polyhedral, Relaxable):
    """A set with a linear description, and the box that its bounds make around it."""

    def relax(self, y: Array) -> Array:
        """The projection on the box that the bounds of the linear description make."""
        d = self.description()
        lower, upper = d.lower, d.upper
        if d.lift is not None:
            middle, reach = d.lift @ (lower + upper) / 2, abs(d.lift) @ (upper - lower) / 2
            lower, upper = middle - reach, middle + reach
        shift = 0.0 if d.shift is None else d.shift
        return clipped(y, *((shift + bound).reshape(self.shape) for bound in (lower, upper)))


class Compiled(ABC):
    """A set of vectors whose oracle is exact, is a kernel, and answers with `Sparse` vertices:
    projections may run it inside their own.

    It must give the vertex of `answer`, entries in the same order; the kernels that call it trust
    it to stay within its arrays.

    Examples
    --------
    >>> K = tw.sets.CappedSimplex(5, cap=0.5)
    >>> isinstance(K, tw.sets.Compiled), K.max_nonzeros
    (True, 2)
    """

    calls_worth: ClassVar[float] = 2.0
    """oracle calls, with their steps, that cost about as much as the rest of a round"""
    oracle: ClassVar[Kernel[int]]
    """oracle(d, kernel_data, indices, values): the nonzero entries of argmin_{v in K} <d, v> at the
    start of both arrays; returns how many
    """

    @property
    @abstractmethod
    def kernel_data(self) -> NDArray:
        """The data of the set for its kernel, in one array of one dimension."""

    @property
    @abstractmethod
    def max_nonzeros(self) -> int:
        """No vertex has more nonzero entries."""

    def minimiser(self, direction: NDArray) -> vertices.Sparse:
        """argmin_{v in K} <direction, v>, by the kernel."""
        indices, values = np.empty(self.max_nonzeros, dtype=np.int32), np.empty(self.max_nonzeros)
        shape: Shape = self.shape  # type: ignore[attr-defined]  # a set's own
        # kernels are compiled for one kind of array
        d = np.ascontiguousarray(as_direction(direction, shape), dtype=np.float64)
        count = self.oracle(d, self.kernel_data, indices, values)
        return vertices.Sparse(d.shape, indices[:count], values[:count])


class KernelGeometry(ABC):
    """A set of vectors whose tangents and infeasibility are kernels, and its oracle (`Compiled`) or
    its exact projection, too, so that whole rounds run inside one (kernels/rounds.py).
    """

    # tangents(d, count, floats, ints, out): the first `count` rows of d within aff(K)
    tangents: ClassVar[Kernel[None]]
    # point_infeasibility(x, floats, ints): as `infeasibility`
    point_infeasibility: ClassVar[Kernel[float]]
    # nearest(y, floats, ints, x): as `project`, for sets of factors whose projection is exact
    nearest: ClassVar[Kernel[None] | None] = None

    @property
    @abstractmethod
    def geometry(self) -> tuple[Floats, Int32s] | None:
        """The data of the set for these, `floats` and `ints`; None if they do not apply."""


class CompiledGeometry(Compiled, KernelGeometry):
    """Both: rounds are played by oracle calls."""


class CostlyMembership(ABC):
    """A set whose `infeasibility` is costly: runs prove membership by the combination a state
    holds.
    """

    @abstractmethod
    def vertex_infeasibility(self, vertex: vertices.Vertex) -> float:
        """At least the `infeasibility` of the vertex; cheap for the oracle's answers and the
        center.
        """


def require_floating(reference: Any) -> None:
    """Refuse what no set can be moved to: anything but an array of 32 or 64 bit floating-point
    numbers.
    """
    shape = tuple(reference.shape) if is_array(reference) else None
    if shape is None or as_direction(reference, shape, "The reference") is not reference:
        raise WrongType(f"A set moves to a floating-point array, not to {shown(reference)}.")


def membership_tolerance(x: Array, radius: float) -> float:
    """How much excess rounding alone may cause in the dtype of x, at the size x has."""
    return 1e4 * eps_of(x) * max(radius, float(namespace(x).max(namespace(x).abs(x))))


def shape_of(n: int | Shape) -> Shape:
    return n if isinstance(n, tuple) else (n,)


def clipped(y: Array, lower: Any, upper: Any) -> Array:
    lower, upper = (like(bound, y) if is_array(bound) else bound for bound in (lower, upper))
    return namespace(y).clip(y, lower, upper)


def _moved(value: Any, reference: Array) -> Any:
    if isinstance(value, ConvexSet):
        return value.to(reference)
    if isinstance(value, tuple) and any(isinstance(part, ConvexSet) for part in value):
        return tuple(_moved(part, reference) for part in value)
    floats = is_array(value) and to_numpy(value).dtype.kind == "f"
    return like(value, reference) if floats else value
