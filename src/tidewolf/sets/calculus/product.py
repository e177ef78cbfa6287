"""Several sets at once: one member of each, flattened and put end to end.

    K_1 x ... x K_m = { (x_1, ..., x_m) : x_p in K_p }   points of shape (n,), n = n_1 + ... + n_m

Every question falls apart into one for each part:

    lmo, tangent, project, relax, center     end to end
    radius^2, diameter^2, dimension, error   sums
    inner radius                             the least, parts that are single points aside
    excess                                   the largest

The factors are the parts, or theirs where a part is a product itself. A part's warm start is its
own. Where all parts have a projection or a description, so has the product; where any can be
relaxed, so can it. Where all parts are simplices of shares, or all are boxes, their passes over the
whole vector answer, not a loop over parts.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, Self

import numpy as np

from tidewolf.core.arguments import as_items
from tidewolf.core.arrays import as_direction, as_point, flat, frozen, like
from tidewolf.core.errors import EmptySet, NotSupported, WrongShape
from tidewolf.core.names import all_different
from tidewolf.core.oracle import Answer
from tidewolf.core.settings import checked, names_in_files
from tidewolf.core.types import Array, Shape
from tidewolf.core.values import Composed
from tidewolf.core.vertices import Vertex
from tidewolf.core.vertices.composed import end_to_end, join_vertices, pieces
from tidewolf.sets.balls.box import Box
from tidewolf.sets.balls.l2_ball import L2Ball
from tidewolf.sets.base import (
    ConvexSet,
    CostlyMembership,
    Factors,
    InnerSet,
    InnerSets,
    LinearDescription,
    Polyhedral,
    Projectable,
    Relaxable,
)
from tidewolf.sets.calculus.translated import Translated
from tidewolf.sets.simplices.simplex import Simplex
from tidewolf.sets.simplices.simplex_product import SimplexProduct
from tidewolf.sets.spectra.bounded_psd import BoundedPSD

_NEEDED = {Projectable: all, Polyhedral: all, Relaxable: any, CostlyMembership: any}
"""Whether all parts need a capability for the product to have it, or any."""
_ENDS = ("lower", "upper")


@dataclass(frozen=True, eq=False, repr=False, init=False)
class Product(Composed, ConvexSet):
    """One member of each of several sets, flattened and put end to end.

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
        given = _checked(sets, parts)
        able = [
            capability
            for capability, enough in _NEEDED.items()
            if enough(isinstance(part, capability) for part in given)
        ]
        return cls._with(able)

    def __init__(
        self,
        *sets: Annotated[ConvexSet, InnerSet("The parts, one after the other.")],
        parts: Annotated[
            Sequence[ConvexSet], InnerSets("The same as a list; it comes after `sets`.")
        ] = (),
    ) -> None:
        object.__setattr__(self, "parts", _checked(sets, parts))

    @classmethod
    @names_in_files
    def from_parts(
        cls, parts: Annotated[Sequence[ConvexSet], InnerSets("The parts, at least one.")]
    ) -> Product:
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
        named = [name for names in parts for name in names or ()]
        return None if None in parts else all_different(named)

    @cached_property
    def dimension(self) -> int:
        return sum(part.dimension for part in self.parts)

    @cached_property
    def center(self) -> Array:
        first = self.parts[0].center
        return frozen(end_to_end([like(part.center, first) for part in self.parts]))

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
        return Factors(
            frozen(np.concatenate(moved)),
            frozen(np.concatenate([part.radii for part in parts])),
            frozen(np.concatenate([part.diameters for part in parts])),
            all(part.exact for part in parts),
        )

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
            Where there are more or fewer arrays than parts, or one has another shape.
        """
        if len(points) != len(self.parts):
            raise WrongShape(
                f"A point of this product is joined from {len(self.parts)} parts, not from "
                f"{len(points)}."
            )
        arrays = [
            as_point(x, part.shape, f"Part {p}")
            for p, (x, part) in enumerate(zip(points, self.parts, strict=True))
        ]
        return end_to_end([like(x, arrays[0]) for x in arrays])

    @cached_property
    def whole(self) -> SimplexProduct | Box | None:
        """The same set where all parts are simplices of shares, or boxes of NumPy's."""
        parts = self.parts
        if all(type(part) is Simplex and part.total == 1.0 and not part.at_most for part in parts):
            return SimplexProduct([math.prod(shape) for shape in self._shapes])
        if all(type(part) is Box and type(part.lower) is np.ndarray for part in parts):
            lower, upper = ([flat(getattr(part, end)) for part in parts] for end in _ENDS)
            return Box(np.concatenate(lower), np.concatenate(upper))
        return None

    def tangent(self, direction: Array) -> Array:
        if self.whole is not None:
            return self.whole.tangent(direction)
        return end_to_end(
            [part.tangent(d) for part, d in self._along(as_direction(direction, self.shape))]
        )

    def infeasibility(self, x: Array) -> float:
        """The largest infeasibility of a part."""
        if self.whole is not None:
            return self.whole.infeasibility(x)
        return max(
            part.infeasibility(piece)
            for part, piece in self._along(as_point(x, self.shape, "The point"))
        )

    def answer(self, direction: Array, warm: Any = None) -> Answer:
        if isinstance(self.whole, SimplexProduct):
            return self.whole.answer(direction)
        starts = warm or (None,) * len(self.parts)
        answers = [
            part.answer(d, start)
            for (part, d), start in zip(self._along(direction), starts, strict=True)
        ]
        after = tuple(answer.warm for answer in answers)
        kept = None if all(start is None for start in after) else after
        return Answer(
            join_vertices([answer.vertex for answer in answers]),
            sum(answer.error for answer in answers),
            kept,
        )

    def atom(self, point: Array) -> Vertex:
        if isinstance(self.whole, SimplexProduct):
            return self.whole.atom(point)
        return join_vertices([part.atom(piece) for part, piece in self._along(point)])

    def project(self, y: Array) -> Array:
        """Every part projected on its own set."""
        self._require(Projectable, "exact projection")
        if self.whole is not None:
            return self.whole.project(y)
        along = self._along(as_point(y, self.shape, "The point to project"))
        return end_to_end(
            [part.project(piece) for part, piece in along if isinstance(part, Projectable)]
        )

    def relax(self, y: Array) -> Array:
        """Every part on its own superset; parts that have none stay as they are."""
        if not isinstance(self, Relaxable):
            raise NotSupported(
                f"{self!r} has no cheap superset, because none of its parts has one."
            )
        along = self._along(as_point(y, self.shape, "The point to relax"))
        return end_to_end(
            [part.relax(piece) if isinstance(part, Relaxable) else piece for part, piece in along]
        )

    def vertex_infeasibility(self, vertex: Vertex) -> float:
        """The largest of a part, cheap where the part's is."""
        along = list(self._along(vertex.dense(self.center)))
        found = [
            part.infeasibility(x) for part, x in along if not isinstance(part, CostlyMembership)
        ]
        for part, x in along:
            if isinstance(part, CostlyMembership):
                found.append(part.vertex_infeasibility(part.atom(x)))
        return max(found)

    def description(self) -> LinearDescription:
        """The parts' descriptions as blocks of one."""
        self._require(Polyhedral, "linear description")
        return _blocks(
            [part.description() for part in self.parts if isinstance(part, Polyhedral)],
            list(map(math.prod, self._shapes)),
        )

    @classmethod
    def examples(cls) -> Sequence[Product]:
        return (
            cls(Simplex(3), Box([0.0, 1.0], [2.0, 1.0])),
            cls(
                Simplex(2, at_most=True),
                Translated(Simplex(3), [1.0, 0.0, 0.0]),
                L2Ball((1, 2), radius=0.5),
            ),
            cls(BoundedPSD(2, tolerance=1e-9, dense=0), Simplex(1), cls(L2Ball(1))),
        )

    @cached_property
    def _shapes(self) -> list[Shape]:
        return [part.shape for part in self.parts]

    def _along(self, x: Array) -> Iterator[tuple[ConvexSet, Array]]:
        return zip(self.parts, pieces(x, self._shapes), strict=True)

    def _require(self, capability: type, what: str) -> None:
        for part in self.parts:
            if not isinstance(part, capability):
                raise NotSupported(
                    f"{self!r} has no {what}, because its {type(part).__name__} has none."
                )


def _checked(sets: tuple[ConvexSet, ...], parts: Sequence[ConvexSet]) -> tuple[ConvexSet, ...]:
    more = as_items(parts, "parts of Product", "[sets.Simplex(2), sets.L2Ball(3)]")
    given: tuple[ConvexSet, ...] = checked(InnerSets(), (*sets, *more), "parts", "Product")
    if not given:
        raise EmptySet(
            "parts of Product must be at least one set: of no sets there are no points.",
            setting="parts",
        )
    return given


def _one(part: ConvexSet) -> Factors:
    """A part that is no product, as the only factor of itself."""
    return Factors(np.zeros(1, dtype=np.int64), np.array([part.radius]), np.array([part.diameter]))


def _blocks(told: list[LinearDescription], sizes: list[int]) -> LinearDescription:
    """Descriptions of several sets as one of their product."""
    from scipy.sparse import block_diag, csr_array, eye_array

    def rows(matrices: list[Any]) -> Any:
        if all(A is None for A in matrices):
            return None
        filled = [
            csr_array((0, len(d.lower))) if A is None else csr_array(A)
            for A, d in zip(matrices, told, strict=True)
        ]
        return block_diag(filled, format="csr")

    def numbers(vectors: list[Any], missing: list[int]) -> Any:
        if all(b is None for b in vectors):
            return None
        return np.concatenate(
            [np.zeros(size) if b is None else b for b, size in zip(vectors, missing, strict=True)]
        )

    lifts = None
    if any(d.lift is not None for d in told):
        squares = zip(told, sizes, strict=True)
        lifts = block_diag(
            [eye_array(size) if d.lift is None else csr_array(d.lift) for d, size in squares],
            format="csr",
        )
    none = [0] * len(told)
    return LinearDescription(
        lower=np.concatenate([d.lower for d in told]),
        upper=np.concatenate([d.upper for d in told]),
        A_eq=rows([d.A_eq for d in told]),
        b_eq=numbers([d.b_eq for d in told], none),
        A_ub=rows([d.A_ub for d in told]),
        b_ub=numbers([d.b_ub for d in told], none),
        lift=lifts,
        shift=numbers([d.shift for d in told], sizes),
    )
