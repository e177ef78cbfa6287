"""Sets given by half-spaces or by points: polytopes and hulls."""

import copy
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, ClassVar, NamedTuple, Self, final

import numpy as np

from tidewolf.core import arguments, arrays, lazy, oracle, settings, vertices
from tidewolf.core.errors import (
    EmptySet,
    InvalidInput,
    NotFinite,
    SolverFailed,
    WrongShape,
    WrongType,
)
from tidewolf.core.types import Array, Floats, Shape
from tidewolf.sets.base import (
    Boxed,
    ClosedForm,
    ConvexSet,
    LinearDescription,
    Polyhedral,
    Relaxable,
    Sizes,
    clipped,
    require_floating,
)
from tidewolf.sets.highs import STATUSES, Basis, Solved, WarmModel

# The half-spaces of a polytope: rows, right-hand sides and bounds, scaled to length 1, and refused
# if the polytope would be empty or unbounded.
#
#     G x <= h,  E x = f,        bounds among the inequalities
#
# Empty: the least s with G x <= h + s and |E x - f| <= s is above 0, and rows with positive
# multipliers cannot all hold (Farkas). Unbounded: no least value of <d, x>, or of -<d, x>, with
# d_i = cos i, which are at right angles to no ray of rational entries.

# Of the set's size: what is thinner has no inside.
FLAT = 1e-9


class HalfSpaces(NamedTuple):
    """G x <= h and E x = f, rows of length 1; the first `general` of G are no bounds."""

    G: Floats
    h: Floats
    E: Floats
    f: Floats
    general: int


@dataclass(frozen=True)
class DoubleNumbers(settings.Numbers):
    def __call__(self, value: Any, what: str) -> Floats:
        given = super().__call__(value.toarray() if lazy.sp.issparse(value) else value, what)
        return arrays.frozen(arrays.to_numpy(given).astype(np.float64))


@dataclass(frozen=True)
class BoundPairs(settings.Check):
    """Pairs (lower, upper) for all entries or for each, infinite if there is no bound."""

    words: ClassVar[str] = "a pair [lower, upper], a list of such pairs, or the name of a table"

    def __call__(self, value: Any, what: str) -> Floats:
        arrays.require_no_mask(value, what)
        try:
            given = np.array(value, dtype=object)
            pairs = given.astype(np.float64)  # None becomes NaN
        except (TypeError, ValueError, OverflowError):
            expected = f"{what} must be pairs (lower, upper), None for no bound"
            raise WrongType(f"{expected}, not {arguments.shown(value)}.") from None
        missing = np.isnan(pairs)
        if any(bound is not None for bound in given[missing]):
            raise NotFinite(f"{what} hold a NaN; a bound is a number, or None for no bound.")
        if pairs.ndim not in (1, 2) or pairs.shape[-1] != 2 or len(pairs) == 0:
            raise WrongShape(f"{what} must be pairs (lower, upper), not of shape {pairs.shape}.")
        pairs[missing] = np.broadcast_to([-np.inf, np.inf], pairs.shape)[missing]
        return pairs

    def read(self, value: Any) -> Any:
        return settings.Numbers().read(value) if isinstance(value, str | list) else None


def _normed(A: Floats | None, b: Floats | None, n: int, name: str) -> tuple[Floats, Floats]:
    if A is None or b is None:
        return np.zeros((0, n)), np.zeros(0)
    largest = np.max(np.abs(A), axis=1, initial=0.0)
    sizes = largest * np.linalg.norm(A / np.where(largest > 0, largest, 1.0)[:, None], axis=1)
    for i in np.flatnonzero((sizes == 0.0) & ((b < 0.0) | ((name == "A_eq") & (b != 0.0))))[:1]:
        raise EmptySet(f"The polytope is empty: row {i} of {name} is all zeros beside {b[i]:g}.")
    kept = np.flatnonzero(sizes)
    with np.errstate(over="ignore"):
        rows, sides = A[kept] / sizes[kept, None], b[kept] / sizes[kept]
    for i in kept[~np.isfinite(sides)][:1]:
        raise InvalidInput(
            f"Row {i} of {name} is {sizes[i]:g} long beside a right side of {b[i]:g}: rescale it."
        )
    return rows, sides


def require_nonempty(rows: HalfSpaces, unit: float) -> None:
    n = rows.G.shape[1]
    A = np.vstack([rows.G, rows.E, -rows.E])
    b, free = np.concatenate([rows.h, rows.f, -rows.f]) / unit, np.full(n + 1, np.inf)
    apart = LinearDescription(-free, free, A_ub=np.column_stack([A, -np.ones(len(A))]), b_ub=b)
    found = _solved_once(np.append(np.zeros(n), 1.0), apart)
    if found is not None and found.v[n] > 0.0:
        least = f"{unit * found.v[n]:.3g} or more"
        raise EmptySet(f"The polytope is empty: every point violates a row or bound by {least}.")


def _solved_once(costs: Floats, program: LinearDescription) -> Solved | None:
    return WarmModel.of(program)(costs, program.lower, program.upper)


def row_space(rows: Floats) -> Floats:
    _, sizes, directions = np.linalg.svd(rows, full_matrices=False)
    return directions[sizes > FLAT * np.max(sizes, initial=0.0)]  # type: ignore[no-any-return]


# A polytope given by inequalities, equations and bounds.
#
#     { x : A_ub x <= b_ub,  A_eq x = b_eq,  lower <= x <= upper }
#
# Oracle: HiGHS, from the last basis if one is given (`WarmModel`). What it answers is not believed.
# The point is put on the affine hull and, where it still violates an inequality, drawn to the
# center until it does not. With the solver's multipliers y (y <= 0 for inequalities), r = d - A'y
# and [lo, hi] a box around the set,
#
#     <d, x>  >=  <y, b> + sum_j min(r_j lo_j, r_j hi_j)      for every member x,
#
# so that the difference to the answer's <d, v> is the error it states.
#
# All inequalities, bounds included, are rows g_i x <= h_i with |g_i| = 1. Center: that of a largest
# ball within the affine hull,
#
#     max rho :  g_i x + rho |P g_i| <= h_i,        P the projection on directions of the hull.
#
# Where the largest rho is 0, rows with positive multipliers hold with equality at every member
# (their slacks, weighted, sum to 0): they join the equations, and the program is solved again.
# Hence dimension and tangent; rows flatter than 1e-9 of the set's size count as equations.
#
#     inner_radius = min_i (h_i - g_i c) / |P g_i|                       exact, for this center
#     radius^2    <= sum_j max(hi_j - c_j, c_j - lo_j)^2
#     diameter    <= min(2 radius, |hi - lo|)
#
# The box is the tightest, by two programs an entry, up to 256 entries, else that of the bounds
# where they are finite.

_FEW_ENTRIES = 256
_ROUNDING = 1e-13
# Times its size: how far from 0 a set may be and still be seen from there, where bounds are met to
# the bit.
_FAR = 1e3
# Of the largest multiplier: smaller ones do not make a row an equation.
_COUNTS = 1e-6
# A stated error, relative to costs and size, above which the solver is taken to have failed.
_ALLOWED = 1e-6


class Frame(NamedTuple):
    """x = origin + unit u: the u of a set that is of size about 1 and not far from 0."""

    origin: Floats
    unit: float

    def rows(self, rows: HalfSpaces) -> HalfSpaces:
        with np.errstate(over="ignore"):  # a side that is beyond all numbers is no bound
            h, f = rows.h - rows.G @ self.origin, rows.f - rows.E @ self.origin
            return rows._replace(h=h / self.unit, f=f / self.unit)

    def point(self, u: Floats) -> Floats:
        return self.origin + self.unit * u


class PolytopeInside(NamedTuple):
    """A point c in the inside, orthonormal normals N of the affine hull, and of every row its slack
    at c and |P g|; 0 if it is implied.
    """

    c: Floats
    N: Floats
    slack: Floats
    reach: Floats


@final
@dataclass(frozen=True, eq=False, repr=False)
class Polytope(ClosedForm, Boxed):
    """The points that satisfy inequalities, equations and bounds; it must be bounded.

    Dimension and inner radius exact, radius and diameter upper bounds.

    Parameters
    ----------
    A_ub : array, optional
        The matrix of A_ub x <= b_ub. None: no rows.
    b_ub : array, optional
        The right-hand side of A_ub x <= b_ub.
    A_eq : array, optional
        The matrix of A_eq x = b_eq. None: no such rows.
    b_eq : array, optional
        The right-hand side of A_eq x = b_eq.
    bounds : array, optional
        Pairs (lower, upper), one for all or each.

    Examples
    --------
    >>> K = tw.sets.Polytope([[1.0, 2.0]], [4.0], bounds=(0.0, 3.0))
    >>> K.lmo(np.array([0.0, -1.0]))
    array([0., 2.])
    """

    A_ub: Annotated[Array, DoubleNumbers()] = None
    b_ub: Annotated[Array, DoubleNumbers()] = None
    A_eq: Annotated[Array, DoubleNumbers()] = None
    b_eq: Annotated[Array, DoubleNumbers()] = None
    bounds: Annotated[Array, BoundPairs()] = None

    def _complete(self) -> None:
        for name, A, b in (("ub", self.A_ub, self.b_ub), ("eq", self.A_eq, self.b_eq)):
            rows, sides = np.shape(A), np.shape(b)
            fits = len(rows) == 2 and rows[1] > 0 and b is not None and sides == rows[:1]
            due = f"fit: (p, n) and (p,), both or neither, not of shapes {rows} and {sides}"
            setting = f"{'b' if A is None else 'A'}_{name}"
            self._require(fits or (A is None and b is None), setting, due, WrongShape)
        if self.bounds is not None:
            self._set_bounds_of_each(self.bounds)
        if _solved_once(np.zeros(self.shape), self._program_in(self._given)) is None:
            require_nonempty(self._rows, self._given.unit)
        _ = self._ends

    def _set_bounds_of_each(self, pairs: Floats) -> None:
        tables = [A for A in (self.A_ub, self.A_eq) if A is not None]
        pairs = np.tile(pairs, (tables[0].shape[1], 1)) if pairs.ndim == 1 and tables else pairs
        self._require(pairs.ndim == 2, "bounds", "be a pair (lower, upper) per entry", WrongShape)
        lower, upper = pairs.T
        wrong = np.flatnonzero((lower > upper) | (lower == np.inf) | (upper == -np.inf))[:1]
        due = f"have room for each entry, not {pairs[wrong].tolist()} for entry {wrong.tolist()}"
        self._require(not len(wrong), "bounds", due, EmptySet)
        object.__setattr__(self, "bounds", arrays.frozen(pairs))

    @property
    def shape(self) -> Shape:
        return (self._rows.G.shape[1],)

    @property
    def dimension(self) -> int:
        return self.shape[0] - len(self._hull.N)

    @cached_property
    def center(self) -> Array:
        return arrays.frozen(self._frame.point(self._hull.c))

    @cached_property
    def _sizes(self) -> Sizes:
        (lo, hi), (c, _, slack, reach), unit = self._box, self._hull, self._frame.unit
        radius = unit * arrays.norm(np.maximum(hi - c, c - lo))
        diameter = min(2.0 * radius, unit * arrays.norm(hi - lo))
        inside = unit * float(np.min(slack[reach > 0] / reach[reach > 0]))
        return Sizes(self.dimension, radius, diameter, inside)

    def tangent(self, direction: Array) -> Array:
        N = arrays.like(self._hull.N, direction)
        return direction - (N @ direction) @ N

    def infeasibility(self, x: Array) -> float:
        """The largest violation of an inequality, equation or bound, rows brought to length 1: the
        distance to its half-space or plane.
        """
        x, rows = arrays.to_numpy(x).astype(np.float64), self._rows
        over, off = rows.G @ x - rows.h, np.abs(rows.E @ x - rows.f)
        return float(max(np.max(over, initial=0.0), np.max(off, initial=0.0)))

    def answer(self, direction: Array, warm: Array | None = None) -> oracle.Answer:
        d = arrays.to_numpy(direction).astype(np.float64)
        size = float(np.max(np.abs(d))) or 1.0
        statuses = np.zeros(0, np.int8) if warm is None else np.asarray(warm).reshape(-1)
        known, n = set(statuses.tolist()) <= set(STATUSES), len(d)
        x, error, basis = self._certified(
            d / size, Basis(n, len(statuses) - n, statuses) if known else None
        )
        vertex = vertices.Dense(arrays.like(self._frame.point(x), direction))
        last = None if basis is None else arrays.frozen(basis.statuses)
        return oracle.Answer(vertex, self._frame.unit * size * error, last)

    def description(self) -> LinearDescription:
        """In units of the set's size: the box, the equations of the affine hull, and the
        inequalities that cut something off the box.
        """
        G, h, *_ = self._scaled
        (lo, hi), (c, N, _, reach), (origin, unit) = self._box, self._hull, self._frame
        cut = (reach > 0) & (np.maximum(G * lo, G * hi).sum(axis=1) > h)
        lift = None if unit == 1.0 else unit * lazy.sp.eye_array(len(c), format="csr")
        return LinearDescription(lo, hi, N, N @ c, G[cut], h[cut], lift, origin)

    def to(self, reference: Array) -> Self:
        """The center in the library, dtype and device of `reference`; the description stays
        in double precision.
        """
        require_floating(reference)
        moved = copy.copy(self)
        moved.__dict__["center"] = arrays.frozen(arrays.like(self.center, reference))
        return moved

    @classmethod
    def examples(cls) -> Sequence[Self]:
        rest: Any = {"A_eq": [[0.0, 1.0, 1.0]], "b_eq": [1.0], "bounds": [(0.0, None)] * 3}
        return (
            cls(bounds=[(0.0, 1.0)]),
            cls([[1.0, 1.0, 1.0]], [1.5], bounds=(0.0, 1.0)),
            cls([[-1.0, 0.0], [0.0, -1.0], [3.0, 4.0], [100.0, 0.0]], [0.0, 0.0, 12.0, 1e9]),
            cls([[1.0, 1.0, 0.0], [-1.0, -1.0, 0.0]], [2.0, -2.0], **rest),
            cls(A_eq=[[1.0, 1.0], [1.0, -1.0]], b_eq=[2.0, 0.0]),
            cls([[1e-3, 2e-3]], [2e-9], bounds=(-1e-6, 1e-6)),
            cls([[1.0, 1.0]], [2e6 + 1.5], bounds=(1e6, 1e6 + 1.0)),
        )

    def _certified(self, costs: Floats, start: Basis | None) -> tuple[Floats, float, Basis | None]:
        """A member, how much worse than the best it is at most, and the solver's basis; costs and x
        of size 1.
        """
        for basis in (start, None):
            found = self._solve(costs, basis)
            if found is None:
                raise SolverFailed("HiGHS called a polytope empty or unbounded; rescale its rows.")
            x = self._member(found.v)
            error = float(costs @ x) - self._bound(costs, found)
            size = float(np.abs(costs) @ np.maximum(*np.abs(self._box)))
            # size is next to nothing if costs are large where the set is flat; rounding is not
            if error <= max(_ALLOWED * size, _ROUNDING):
                return x, error if error > _ROUNDING * size else 0.0, found.basis
        raise SolverFailed(f"HiGHS left an error of {error:.3g} at size {size:.3g}; rescale rows.")

    def _member(self, x: Floats) -> Floats:
        """The solver's point, put on the affine hull and drawn to the center as far as it violates
        something.
        """
        G, h, *_ = self._scaled
        c, N, slack = self._hull[:3]
        off = N @ (x - c)
        if np.max(np.abs(off), initial=0.0) > _ROUNDING:
            x = x - off @ N
        breach = np.where(self._hull.reach > 0, G @ x - h, 0.0)
        if np.max(breach, initial=0.0) > _ROUNDING:
            broken = breach > 0
            x = x + float(np.max(breach[broken] / (breach[broken] + slack[broken]))) * (c - x)
        return x

    def _bound(self, costs: Floats, found: Solved) -> float:
        p, (lo, hi) = self._rows.general, self._box
        y = np.concatenate([np.minimum(0.0, found.of_fixed[:p]), found.of_fixed[p:]])
        r = costs - y @ self._model.F
        return float(y @ self._model.high + np.sum(np.minimum(r * lo, r * hi)))

    @cached_property
    def _rows(self) -> HalfSpaces:
        """All of them as rows of length 1; rows of zeros are left out where they are true, else
        refused.
        """
        pairs = np.zeros((0, 2)) if self.bounds is None else self.bounds
        widths = {A.shape[1] for A in (self.A_ub, self.A_eq) if A is not None}
        widths |= {len(pairs)} - {0}
        if len(widths) != 1:
            raise WrongShape(
                "A polytope needs inequalities (A_ub, b_ub), equations (A_eq, b_eq) or bounds, all "
                f"of the same number of entries; {sorted(widths) or 'none'} were given."
            )
        n = widths.pop()
        G, h = _normed(self.A_ub, self.b_ub, n, "A_ub")
        E, f = _normed(self.A_eq, self.b_eq, n, "A_eq")
        (below, above), (lower, upper) = np.isfinite(pairs.T), pairs.T
        rows = np.vstack([G, -np.eye(n)[: len(pairs)][below], np.eye(n)[: len(pairs)][above]])
        return HalfSpaces(rows, np.concatenate([h, -lower[below], upper[above]]), E, f, len(h))

    @cached_property
    def _given(self) -> Frame:
        size = float(np.max(np.abs(np.concatenate([self._rows.h, self._rows.f])), initial=0.0))
        return Frame(np.zeros(self.shape), size or 1.0)

    @cached_property
    def _ends(self) -> Floats:
        """Members at two opposite ends; costs that are at right angles to no rational ray."""
        d, program = np.cos(np.arange(1.0, 1.0 + self.shape[0])), self._program_in(self._given)
        model = WarmModel.of(program)
        found = [model(costs, program.lower, program.upper) for costs in (d, -d)]
        points = [each.v for each in found if each is not None]
        for at, unit in enumerate(np.eye(len(d)) if len(points) < 2 else ()):
            for way, costs in (("grow", -unit), ("fall", unit)):
                if model(costs, program.lower, program.upper) is None:
                    words = f"entry {at} can {way}; give it a bound."
                    raise InvalidInput(f"The polytope is unbounded: {words}")
        return self._given.unit * np.array(points)

    @cached_property
    def _frame(self) -> Frame:
        """Where and how large the set is, by its entries at the ends."""
        ends = self._ends
        middle, size = ends.mean(axis=0), float(np.max(np.abs(ends - ends[0])))
        if np.max(np.abs(middle)) <= _FAR * size or size == 0.0:
            middle, size = np.zeros(self.shape), float(np.max(np.abs(ends)))
        return Frame(middle, 2.0 ** round(math.log2(size)) if size > 0.0 else self._given.unit)

    def _program_in(self, frame: Frame) -> LinearDescription:
        rows, none = frame.rows(self._rows), np.full((*self.shape, 2), (-np.inf, np.inf))
        pairs = none if self.bounds is None else self.bounds
        lower, upper = (pairs.T - frame.origin) / frame.unit
        G, h = rows.G[: rows.general], rows.h[: rows.general]
        return LinearDescription(lower, upper, rows.E, rows.f, G, h)

    @cached_property
    def _program(self) -> LinearDescription:
        return self._program_in(self._frame)

    @cached_property
    def _model(self) -> WarmModel:
        return WarmModel.of(self._program)

    def _solve(self, costs: Floats, basis: Basis | None = None) -> Solved | None:
        return self._model(costs, self._program.lower, self._program.upper, basis=basis)

    @cached_property
    def _scaled(self) -> HalfSpaces:
        return self._frame.rows(self._rows)

    @cached_property
    def _box(self) -> Floats:
        lower, upper = self._program.lower, self._program.upper
        box, basis = np.stack([lower, upper]), None
        if not self.dimension:
            return np.stack([self._hull.c, self._hull.c])
        for j, unit in enumerate(np.eye(len(lower))):
            for side, sign in ((0, 1.0), (1, -1.0)):
                if len(lower) <= _FEW_ENTRIES or not math.isfinite(box[side, j]):
                    found = self._solve(sign * unit, basis)
                    assert found is not None
                    end, basis = float(found.v[j]) - sign * FLAT, found.basis
                    box[side, j] = max(end, box[0, j]) if side == 0 else min(end, box[1, j])
        return box

    @cached_property
    def _hull(self) -> PolytopeInside:
        G, h, n = self._scaled.G, self._scaled.h, self.shape[0]
        equal = np.column_stack([self._scaled.E, self._scaled.f])
        least = np.zeros(len(h), dtype=bool)
        while True:
            N = row_space(equal[:, :n])
            base: Floats = np.linalg.pinv(equal[:, :n], rcond=FLAT) @ equal[:, n]
            reach = np.linalg.norm(G - (G @ N.T) @ N, axis=1)
            least |= reach <= FLAT
            if len(N) == n:
                break
            rows, free = np.flatnonzero(~least), np.full(n + 1, np.inf)
            A_ub = np.column_stack([G[rows], reach[rows]])
            program = LinearDescription(
                -free, free, np.column_stack([N, np.zeros(len(N))]), N @ base, A_ub, h[rows]
            )
            ball = _solved_once(np.append(np.zeros(n), -1.0), program)
            if ball is None:
                raise SolverFailed("The inside of a polytope was not found; rescale its rows.")
            base = ball.v[:n] - (N @ (ball.v[:n] - base)) @ N
            if ball.v[n] > FLAT:
                break
            weights = -ball.of_fixed[: len(rows)]
            tight = rows[weights > _COUNTS * weights.max()]
            least[tight] = True  # whatever rounding makes of the equations, the loop ends
            equal = np.vstack([equal, np.column_stack([G[tight], h[tight]])])
        slack, reach = np.where(least, 0.0, h - G @ base), np.where(least, 0.0, reach)
        return PolytopeInside(base, N, slack, reach)


# The hull of points: every weighted mean of a finite list.
#
#     { sum_i w_i p_i : w >= 0, sum w = 1 }
#
# Oracle: the best of the points, the first among equals. Center: their mean. Excess: the distance
# to the hull. With Z the matrix of columns p_i - x, the weights that minimise ||Z w|| over the
# simplex are the normalised minimiser of a nonnegative least squares problem,
#
#     min_{w >= 0}  ||Z w||^2 + (1 - sum w)^2 ,
#
# since along a ray w = s v, sum v = 1, the best s leaves ||Z v||^2 / (1 + ||Z v||^2), which grows
# with ||Z v||. The distance reported is that of the normalised weights' own point: whatever the
# solver's rounding, never less than the truth.
#
# Inner radius: the least distance from the mean c to a facet, by Qhull in up to 6 dimensions.
# Beyond, with S the rows p_i - c, whose sum is 0, a point c + u of the hull has the weights w = 1/k
# + S (S'S)^+ u, which are not negative while |u| is at most
#
#     inner_radius >= min_i 1 / (k |(S'S)^+ (p_i - c)|),
#     equal where the points are affinely independent: their weights are unique.

_FEW_POINTS = 512
# Dimensions in which facets are few enough to list.
_FLAT = 6


@final
@dataclass(frozen=True, eq=False, repr=False)
class VertexHull(ConvexSet, Polyhedral, Relaxable):
    """The convex hull of finitely many points.

    Radius exact; diameter exact for up to 512 points, else twice the radius; inner radius exact
    in up to 6 dimensions and for affinely independent points, else a lower bound.

    Parameters
    ----------
    points : array
        The points, along the first axis; duplicates are welcome.

    Examples
    --------
    >>> K = tw.sets.VertexHull([[0.0, 0.0], [2.0, 0.0], [0.0, 1.0]])
    >>> K.lmo(np.array([-1.0, 1.0]))
    array([2., 0.])
    """

    points: Annotated[Array, settings.Numbers()]

    def _complete(self) -> None:
        self._require(0 not in self.points.shape[:1], "points", "be at least one", EmptySet)
        settings.as_shape(self.points.shape[1:], "The hull")

    @property
    def shape(self) -> Shape:
        return tuple(self.points.shape[1:])

    @property
    def dimension(self) -> int:
        return len(self._basis)

    @cached_property
    def center(self) -> Array:
        return arrays.frozen(
            arrays.like(np.mean(self._rows, axis=0).reshape(self.shape), self.points)
        )

    @cached_property
    def radius(self) -> float:
        return _longest(self._spokes)

    @cached_property
    def diameter(self) -> float:
        if len(self._rows) > _FEW_POINTS:
            return 2.0 * self.radius
        return max(_longest(self._rows - row) for row in self._rows)

    @cached_property
    def inner_radius(self) -> float:
        if not self.dimension:
            return 0.0
        # in coordinates of the affine hull, their mean 0
        spokes = (self._spokes / self.radius) @ self._basis.T
        if self.dimension == 1:
            return self.radius * float(min(spokes.max(), -spokes.min()))
        slopes = np.linalg.norm(spokes @ np.linalg.inv(spokes.T @ spokes), axis=1)
        surely = 1.0 / (len(spokes) * float(np.max(slopes)))
        exact = self.dimension > _FLAT or len(spokes) == self.dimension + 1
        return self.radius * (surely if exact else max(surely, _nearest_facet(spokes)))

    def tangent(self, direction: Array) -> Array:
        basis = arrays.like(self._basis, direction)
        return arrays.namespace(direction).reshape(
            (basis @ arrays.flat(direction)) @ basis, self.shape
        )

    def infeasibility(self, x: Array) -> float:
        """The distance to the hull."""
        away = self._rows - arrays.to_numpy(x).reshape(-1)
        scale = float(np.max(np.abs(away), initial=0.0))
        if scale == 0.0:
            return 0.0
        away = away / scale
        columns = np.vstack([away.T, np.ones(len(away))])
        sides = np.append(np.zeros(len(columns) - 1), 1.0)
        try:
            weights, _ = lazy.scipy.optimize.nnls(columns, sides, maxiter=30 * len(away))
        except RuntimeError as error:
            raise SolverFailed(f"The distance to a hull was not found: {error}.") from error
        return scale * float(np.linalg.norm(weights @ away) / np.sum(weights))

    def answer(self, direction: Array, warm: Array | None = None) -> oracle.Answer:
        xp, points = arrays.namespace(direction), arrays.like(self.points, direction)
        d = arrays.flat(direction) / float(arrays.power_of_two(float(xp.max(xp.abs(direction)))))
        best = int(xp.argmin(arrays.like(self._unit_rows, direction) @ d))
        return oracle.Answer(vertices.Dense(points[best, ...]))

    def relax(self, y: Array) -> Array:
        """The smallest box around the points."""
        bounds = (bound(self._rows, axis=0).reshape(self.shape) for bound in (np.min, np.max))
        return clipped(y, *bounds)

    def description(self) -> LinearDescription:
        ones = np.ones(len(self._rows))
        return LinearDescription(0.0 * ones, ones, ones[None], ones[:1], lift=self._rows.T)

    @classmethod
    def examples(cls) -> Sequence[Self]:
        return (
            cls([[1.0, -2.0]]),
            cls([[0.5, 0.5], [0.5, 0.5], [0.5, 0.5]]),
            cls([[0.0, 0.0, 0.0], [1.0, 1.0, 1.0], [2.0, 2.0, 2.0], [1.0, 1.0, 1.0]]),
            cls([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.25, 0.25]]),
            cls([[[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [1.0, 0.0]], [[0.0, 0.0], [3.0, 0.0]]]),
        )

    @cached_property
    def _rows(self) -> Floats:
        return arrays.frozen(
            arrays.to_numpy(self.points).astype(np.float64).reshape(self.points.shape[0], -1)
        )

    @cached_property
    def _unit_rows(self) -> Floats:
        """The same of size about 1, without rounding: products with a direction of size 1 neither
        vanish nor overflow.
        """
        return self._rows / float(arrays.power_of_two(np.abs(self._rows).max()))

    @cached_property
    def _spokes(self) -> Floats:
        return self._rows - arrays.to_numpy(self.center).astype(np.float64).reshape(-1)

    @cached_property
    def _basis(self) -> Floats:
        """Orthonormal rows that span the differences of the points; what rounding of the points
        alone could cause does not count.
        """
        _, sizes, rows = np.linalg.svd(self._spokes, full_matrices=False)
        size = max(self.radius, float(np.max(np.abs(self._rows))))
        noise = max(self._rows.shape) * arrays.eps_of(self.points) * size
        return rows[sizes > noise]  # type: ignore[no-any-return]


def _longest(rows: Floats) -> float:
    size = float(np.max(np.abs(rows)))
    return size * float(np.max(np.linalg.norm(rows / size, axis=1))) if size else 0.0


def _nearest_facet(points: Floats) -> float:
    """The distance from 0 to the nearest facet of the hull of the points, 0 where Qhull cannot
    tell.
    """
    size = float(np.max(np.abs(points)))
    try:
        return size * float(np.min(-lazy.scipy.spatial.ConvexHull(points / size).equations[:, -1]))
    except lazy.scipy.spatial.QhullError:
        return 0.0
