"""Sets made of other sets: moved, scaled, shrunk, and products."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from typing import Annotated, Any, Self

import numpy as np

from tidewolf.core import oracle, settings, values
from tidewolf.core.arguments import all_different, as_items
from tidewolf.core.arrays import as_point, end_to_end, frozen, length, like, pieces, to_numpy
from tidewolf.core.errors import EmptySet, NotSupported, WrongShape, require
from tidewolf.core.lazy import sp
from tidewolf.core.types import Array, Int64s, Shape
from tidewolf.core.vertices import Compound, Vertex, join_vertices
from tidewolf.sets import balls, generic, spectra
from tidewolf.sets.base import (
    INNER_SETS,
    ConvexSet,
    CostlyMembership,
    Factors,
    InnerSet,
    LinearDescription,
    Polyhedral,
    Projectable,
    Relaxable,
)
from tidewolf.sets.simplices import CappedSimplex, Simplex, SimplexProduct

# What translated, scaled and shrunk sets share: the image of a set K under v -> offset + scale v,
# scale > 0.
#
#     lmo(d)     = offset + scale lmo_K(d)
#     infeasibility(x)  = scale infeasibility_K((x - offset)/scale)
#
# Sizes are those of K times scale, those of its factors too; tangent and dimension are those of K.
# The image has the capabilities of K: it is Projectable, Polyhedral, Relaxable or of
# CostlyMembership exactly when K is.


@dataclass(frozen=True, eq=False, repr=False)
class Image(values.Composed, ConvexSet):
    """Abstract: { offset + scale v : v in K }.

    A subclass is a frozen dataclass that calls `_move` once it is checked.
    """

    _capabilities = (Projectable, Polyhedral, Relaxable, CostlyMembership)

    K: Annotated[ConvexSet, InnerSet()]
    scale: float = field(init=False)
    offset: Array = field(init=False)

    def __new__(cls, K: ConvexSet, *settings: object, **named: object) -> Self:
        return cls._with(able for able in cls._capabilities if isinstance(K, able))

    def _move(self, scale: float, offset: Array) -> None:
        self.__dict__.update(scale=scale, offset=frozen(offset))

    @cached_property
    def center(self) -> Array:
        return frozen(self.offset + self.scale * self.K.center)

    @property
    def shape(self) -> Shape:
        return self.K.shape

    @property
    def names(self) -> tuple[str, ...] | None:
        return self.K.names

    @cached_property
    def places(self) -> Mapping[str, Int64s]:
        return self.K.places

    @property
    def radius(self) -> float:
        return self.scale * self.K.radius

    @property
    def diameter(self) -> float:
        return self.scale * self.K.diameter

    @property
    def inner_radius(self) -> float | None:
        inside = self.K.inner_radius
        return None if inside is None else self.scale * inside

    @property
    def dimension(self) -> int:
        return self.K.dimension

    @cached_property
    def factors(self) -> Factors | None:
        if (inside := self.K.factors) is None:
            return None
        radii, diameters = (frozen(self.scale * sizes) for sizes in inside[1:3])
        return inside._replace(radii=radii, diameters=diameters)

    def tangent(self, direction: Array) -> Array:
        return self.K.tangent(direction)

    def infeasibility(self, x: Array) -> float:
        return self.scale * self.K.infeasibility(self._preimage(x))

    def as_direction(self, direction: Array) -> Array:
        return self.K.as_direction(direction)

    def answer(self, direction: Array, warm: Array | None = None) -> oracle.Answer:
        vertex, error, warm = self.K.answer(direction, warm)
        moved = Compound((vertex,), self.scale, like(self.offset, direction))
        return oracle.Answer(moved, self.scale * error, warm)

    def atom(self, point: Array) -> Vertex:
        return Compound((self.K.atom(self._preimage(point)),), self.scale, like(self.offset, point))

    def project(self, y: Array) -> Array:
        inside = able(self, self.K, Projectable).project(self._preimage(y))
        return like(self.offset, y) + self.scale * inside

    def relax(self, y: Array) -> Array:
        inside = able(self, self.K, Relaxable).relax(self._preimage(y))
        return like(self.offset, y) + self.scale * inside

    def vertex_infeasibility(self, vertex: Vertex) -> float:
        point = vertex.dense(self.center)
        if not isinstance(self.K, CostlyMembership):
            return self.infeasibility(point)
        inside = self.K.atom(self._preimage(point))
        if isinstance(vertex, Compound) and vertex.shift is not None:
            same = np.array_equal(to_numpy(vertex.shift), to_numpy(self.offset))
            if same and vertex.scale == self.scale:
                inside = vertex.vertices[0]  # rounding makes no vertex of a vertex
        return self.scale * self.K.vertex_infeasibility(inside)

    def description(self) -> LinearDescription:
        inside: LinearDescription = able(self, self.K, Polyhedral).description()
        offset = to_numpy(self.offset).astype(np.float64).reshape(-1)
        shift = offset if inside.shift is None else offset + self.scale * inside.shift
        lift = inside.lift
        if lift is not None or self.scale != 1.0:
            lift = self.scale * (sp.eye_array(len(offset), format="csr") if lift is None else lift)
        return inside._replace(shift=shift, lift=lift)

    def _preimage(self, x: Array) -> Array:
        return (x - like(self.offset, x)) / self.scale


def able(whole: ConvexSet, part: ConvexSet, capability: type) -> Any:
    if not isinstance(part, capability):
        what = _CALLED[capability]
        raise NotSupported(f"{whole!r} has no {what}, because its {type(part).__name__} has none.")
    return part


_CALLED: dict[type, str] = {
    Projectable: "exact projection",
    Polyhedral: "linear description",
    Relaxable: "cheap superset",
}


# A set moved elsewhere: K + shift = { v + shift : v in K }.


@dataclass(frozen=True, eq=False, repr=False)
class Translated(Image):
    """Every point of K plus `shift`. Geometry as exact as that of K.

    Parameters
    ----------
    K : ConvexSet
        The set that is moved.
    shift : array
        The shift, in the shape of a point.

    Examples
    --------
    >>> K = tw.sets.Translated(tw.sets.L2Ball(2), [10.0, 0.0])
    >>> K.lmo(np.array([1.0, 0.0]))
    array([9., 0.])
    """

    shift: Annotated[Array, settings.Numbers()]

    def _complete(self) -> None:
        self._require_shape("shift", self.shape)
        object.__setattr__(self, "shift", frozen(like(self.shift, self.K.center)))
        self._move(1.0, self.shift)

    @classmethod
    def examples(cls) -> Sequence[Self]:
        return (
            cls(Simplex(3), [1.0, 0.0, -2.0]),
            cls(balls.L2Ball(2), [0.0, 4.0]),
            cls(generic.VertexHull([[1.0, 2.0], [1.0, 2.0]]), [-1.0, -2.0]),
            cls(cls(balls.Box([0.0], [2.0]), [1.0]), [1.0]),
        )


# A set made larger or smaller around the origin: factor K = { factor v : v in K }.


@dataclass(frozen=True, eq=False, repr=False)
class Scaled(Image):
    """Every point of K times `factor`. Geometry as exact as that of K.

    Parameters
    ----------
    K : ConvexSet
        The set that is made larger or smaller.
    factor : float
        The factor.

    Examples
    --------
    >>> K = tw.sets.Scaled(tw.sets.Simplex(3), 5.0)
    >>> K.lmo(np.array([2.0, -1.0, 0.5]))
    array([0., 5., 0.])
    """

    factor: Annotated[float, settings.Number(above=0.0)]

    def _complete(self) -> None:
        size = self.factor * (self.K.diameter + length(self.K.center))
        self._require(math.isfinite(size), "factor", "not make the set larger than numbers are")
        self._move(self.factor, 0.0 * self.K.center)

    @classmethod
    def examples(cls) -> Sequence[Self]:
        return (cls(Translated(Simplex(3), [0.0, 4.0, 1.0]), 2.0), cls(balls.L2Ball(2), 0.1))


# A set drawn towards its center c: { c + factor (v - c) : v in K } = (1 - factor) c + factor K.
#
# A ball of radius (1 - factor) r around any of its members, within the affine hull, is in K (r the
# inner radius of K): room to explore.


@dataclass(frozen=True, eq=False, repr=False)
class Shrunk(Image):
    """K shrunk towards its center by `factor`. Geometry as exact as that of K.

    Parameters
    ----------
    K : ConvexSet
        The set that is drawn towards its center.
    factor : float
        The share of the distance left.

    Examples
    --------
    >>> K = tw.sets.Shrunk(tw.sets.Simplex(2), 0.5)
    >>> K.lmo(np.array([2.0, -1.0]))
    array([0.25, 0.75])
    """

    factor: Annotated[float, settings.Number(above=0.0, most=1.0)]

    def _complete(self) -> None:
        self._move(self.factor, (1.0 - self.factor) * self.K.center)

    @property
    def center(self) -> Array:
        return self.K.center

    @classmethod
    def examples(cls) -> Sequence[Self]:
        return (
            cls(Simplex(4), 0.5),
            cls(balls.L2Ball(3, center=[1.0, 1.0, 1.0]), 0.01),
            cls(CappedSimplex(5, 0.5), 1.0),
            cls(generic.VertexHull([[0.0, 1.0], [2.0, 1.0]]), 0.9),
            cls(Translated(balls.Box([-1.0, 3.0], [1.0, 3.0]), [5.0, 0.0]), 0.3),
        )


# Several sets at once: one member of each, flattened and put end to end.
#
#     K_1 x ... x K_m = { (x_1, ..., x_m) : x_p in K_p }   points of shape (n,), n = n_1 + ... + n_m
#
# Every question falls apart into one for each part:
#
#     lmo, tangent, project, relax, center     end to end
#     radius^2, diameter^2, dimension, error   sums
#     inner radius                             the least, parts that are single points aside
#     excess                                   the largest
#
# The factors are the parts, or theirs where a part is a product itself. A part's warm start is its
# own. If all parts have a projection or a description, so has the product; if any can be relaxed,
# so can it. If all parts are simplices of shares, or all are boxes, passes over the whole vector
# answer, not a loop over parts.

# Whether all parts need a capability for the product to have it, or any.
_NEEDED = {Projectable: all, Polyhedral: all, Relaxable: any, CostlyMembership: any}


@dataclass(frozen=True, eq=False, repr=False, init=False)
class Product(values.Composed, ConvexSet):
    """The product of several sets: one point of each, flattened and concatenated.

    Geometry as exact as that of the parts. `split` takes a point apart into the parts' own shapes,
    `join` puts it together.

    Parameters
    ----------
    sets : ConvexSet
        The parts, one after the other.
    parts : sequence of ConvexSet, default ()
        The same as a list; it comes after `sets`.

    Examples
    --------
    >>> K = tw.sets.Product(tw.sets.Simplex(3), tw.sets.L2Ball(2))
    >>> K.shape
    (5,)
    >>> K.lmo(np.array([2.0, -1.0, 0.5, 0.0, 4.0])) + 0.0
    array([ 0.,  1.,  0.,  0., -1.])
    """

    _capabilities = tuple(_NEEDED)

    parts: tuple[ConvexSet, ...]

    def __new__(cls, *sets: ConvexSet, parts: Sequence[ConvexSet] = ()) -> Self:
        given, needed = _checked(sets, parts), _NEEDED.items()
        found = (able for able, of in needed if of(isinstance(part, able) for part in given))
        return cls._with(found)

    def __init__(
        self,
        *sets: Annotated[ConvexSet, InnerSet()],
        parts: Annotated[Sequence[ConvexSet], INNER_SETS] = (),
    ) -> None:
        object.__setattr__(self, "parts", _checked(sets, parts))

    @classmethod
    @settings.names_in_files
    def from_parts(cls, parts: Annotated[Sequence[ConvexSet], INNER_SETS]) -> Self:
        """The product of the sets of a list.

        Parameters
        ----------
        parts : sequence of ConvexSet
            The parts, at least one.

        Returns
        -------
        Product
            The same as `Product(*parts)`.

        Examples
        --------
        >>> tw.sets.Product.from_parts([tw.sets.Simplex(2), tw.sets.Simplex(3)]).shape
        (5,)
        """
        return cls(parts=parts)

    @cached_property
    def shape(self) -> Shape:
        return (sum(map(math.prod, self._shapes)),)

    @cached_property
    def names(self) -> tuple[str, ...] | None:
        """Those of the parts, end to end, where all have some."""
        parts = [part.names for part in self.parts]
        return None if None in parts else all_different(chain.from_iterable(filter(None, parts)))

    @cached_property
    def dimension(self) -> int:
        return sum(part.dimension for part in self.parts)

    @cached_property
    def center(self) -> Array:
        centers = [part.center for part in self.parts]
        return frozen(end_to_end([like(center, centers[0]) for center in centers]))

    @cached_property
    def radius(self) -> float:
        return math.hypot(*(part.radius for part in self.parts))

    @cached_property
    def diameter(self) -> float:
        return math.hypot(*(part.diameter for part in self.parts))

    @cached_property
    def inner_radius(self) -> float | None:
        inside = [part.inner_radius for part in self.parts if part.dimension]
        known = [size for size in inside if size is not None]
        return None if len(known) < len(inside) else min(known, default=0.0)

    @cached_property
    def factors(self) -> Factors:
        parts = [part.factors or _one(part) for part in self.parts]
        begins = np.cumsum([0, *map(math.prod, self._shapes)])
        moved = [begin + part.starts for begin, part in zip(begins, parts, strict=False)]
        radii = np.concatenate([part.radii for part in parts])
        diameters = np.concatenate([part.diameters for part in parts])
        exact = all(part.exact for part in parts)
        return Factors(frozen(np.concatenate(moved)), frozen(radii), frozen(diameters), exact)

    def split(self, x: Array) -> tuple[Array, ...]:
        """The parts of a point, each in its own shape.

        Parameters
        ----------
        x : array
            A point of the product, or a direction.

        Returns
        -------
        tuple of array
            One array for each part.

        Examples
        --------
        >>> K = tw.sets.Product(tw.sets.Simplex(2), tw.sets.L2Ball((1, 2)))
        >>> K.split(np.array([0.5, 0.5, 1.0, 0.0]))
        (array([0.5, 0.5]), array([[1., 0.]]))
        """
        return tuple(pieces(as_point(x, self.shape, "The point"), self._shapes))

    def join(self, *points: Array) -> Array:
        """A point from one of each part.

        Parameters
        ----------
        *points : array
            One array for each part, in its shape.

        Returns
        -------
        array
            All entries, end to end.

        Raises
        ------
        WrongShape
            If there are more or fewer arrays than parts, or one has another shape.
        """
        if len(points) != len(self.parts):
            raise WrongShape(f"join takes {len(self.parts)} parts, not {len(points)}.")
        shaped = enumerate(zip(points, self._shapes, strict=True))
        arrays = [as_point(x, shape, f"Part {p}") for p, (x, shape) in shaped]
        return end_to_end([like(x, arrays[0]) for x in arrays])

    @cached_property
    def whole(self) -> SimplexProduct | balls.Box | None:
        """The same set if all parts are simplices of shares, or boxes of NumPy's."""
        parts: Any = self.parts
        least = parts[0].least if type(parts[0]) is Simplex else 0.0
        if all(part == Simplex(math.prod(part.shape), least=least) for part in parts):
            return SimplexProduct([math.prod(shape) for shape in self._shapes], least=least)
        if all(type(part) is balls.Box and type(part.lower) is np.ndarray for part in parts):
            ends = [(part.lower.reshape(-1), part.upper.reshape(-1)) for part in parts]
            return balls.Box(*map(np.concatenate, zip(*ends, strict=True)))
        return None

    def tangent(self, direction: Array) -> Array:
        if self.whole is not None:
            return self.whole.tangent(direction)
        return end_to_end([part.tangent(d) for part, d in self._along(direction)])

    def infeasibility(self, x: Array) -> float:
        """The largest infeasibility of a part."""
        if self.whole is not None:
            return self.whole.infeasibility(x)
        return max(part.infeasibility(piece) for part, piece in self._along(x))

    def answer(self, direction: Array, warm: Any = None) -> oracle.Answer:
        if isinstance(self.whole, SimplexProduct):
            return self.whole.answer(direction)
        asked = zip(self._along(direction), warm or (None,) * len(self.parts), strict=True)
        vertices, errors, after = zip(
            *[part.answer(d, start) for (part, d), start in asked], strict=True
        )
        warm = None if all(start is None for start in after) else after
        return oracle.Answer(join_vertices(vertices), sum(errors), warm)

    def atom(self, point: Array) -> Vertex:
        if isinstance(self.whole, SimplexProduct):
            return self.whole.atom(point)
        return join_vertices([part.atom(piece) for part, piece in self._along(point)])

    def project(self, y: Array) -> Array:
        """Every part projected on its own set."""
        if self.whole is not None:
            return self.whole.project(y)
        along = self._along(y)
        return end_to_end([able(self, part, Projectable).project(piece) for part, piece in along])

    def relax(self, y: Array) -> Array:
        """Every part on its own superset; parts that have none stay as they are."""
        if not isinstance(self, Relaxable):
            raise NotSupported(f"{self!r} has no cheap superset, because no part has one.")
        along = self._along(y)
        return end_to_end([K.relax(x) if isinstance(K, Relaxable) else x for K, x in along])

    def vertex_infeasibility(self, vertex: Vertex) -> float:
        """The largest of a part, cheap where the part's is."""
        return max(
            part.vertex_infeasibility(part.atom(x))
            if isinstance(part, CostlyMembership)
            else part.infeasibility(x)
            for part, x in self._along(vertex.dense(self.center))
        )

    def description(self) -> LinearDescription:
        """The parts' descriptions as blocks of one."""
        parts = [able(self, part, Polyhedral).description() for part in self.parts]
        return _blocks(parts, list(map(math.prod, self._shapes)))

    @classmethod
    def examples(cls) -> Sequence[Self]:
        flat_ball = balls.L2Ball((1, 2), radius=0.5)
        return (
            cls(Simplex(3), balls.Box([0.0, 1.0], [2.0, 1.0])),
            cls(Simplex(2, at_most=True), Translated(Simplex(3), [1.0, 0.0, 0.0]), flat_ball),
            cls(spectra.BoundedPSD(2, tolerance=1e-9, dense=0), Simplex(1), cls(balls.L2Ball(1))),
        )

    @cached_property
    def _shapes(self) -> list[Shape]:
        return [part.shape for part in self.parts]

    def _along(self, x: Array) -> Iterator[tuple[ConvexSet, Array]]:
        return zip(self.parts, pieces(x, self._shapes), strict=True)


def _checked(sets: tuple[ConvexSet, ...], parts: Sequence[ConvexSet]) -> tuple[ConvexSet, ...]:
    more = as_items(parts, "parts of Product", "[sets.Simplex(2), sets.L2Ball(3)]")
    given: tuple[ConvexSet, ...] = settings.checked(INNER_SETS, (*sets, *more), "parts", "Product")
    require(given, EmptySet, "parts of Product must be at least one set.", "parts")
    return given


def _one(part: ConvexSet) -> Factors:
    return Factors(np.zeros(1, dtype=np.int64), np.array([part.radius]), np.array([part.diameter]))


def _blocks(told: list[LinearDescription], sizes: list[int]) -> LinearDescription:
    def joined(name: str, missing: list[Any]) -> Any:
        given = [getattr(d, name) for d in told]
        if all(part is None for part in given):
            return None
        filled = [m if part is None else part for part, m in zip(given, missing, strict=True)]
        if np.ndim(missing[0]) == 1:
            return np.concatenate(filled)
        return sp.block_diag(list(map(sp.csr_array, filled)), format="csr")

    no_rows = [sp.csr_array((0, len(d.lower))) for d in told]
    missing = dict.fromkeys(("lower", "upper", "b_eq", "b_ub"), [np.zeros(0)] * len(told))
    missing |= {"A_eq": no_rows, "A_ub": no_rows, "lift": list(map(sp.eye_array, sizes))}
    missing["shift"] = list(map(np.zeros, sizes))
    return LinearDescription(**{name: joined(name, missing[name]) for name in missing})
