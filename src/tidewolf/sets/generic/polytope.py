"""A polytope given by inequalities, equations and bounds.

    { x : A_ub x <= b_ub,  A_eq x = b_eq,  lower <= x <= upper }

Oracle: HiGHS, from the last basis where one is given (`linear_solver.py`). What it answers is not
believed: the point is put on the affine hull and, where it still breaches an inequality, drawn to
the center until it does not; and with the solver's multipliers y (y <= 0 for inequalities, r = d -
A'y, [lo, hi] a box around the set)

    <d, x>  >=  <y, b> + sum_j min(r_j lo_j, r_j hi_j)        for every member x,

so that the difference to the answer's <d, v> is the error it states.

All inequalities, bounds included, are rows g_i x <= h_i with |g_i| = 1. Center: that of a largest
ball within the affine hull,

    max rho :  g_i x + rho |P g_i| <= h_i,        P the projection on directions of the hull.

Where the largest rho is 0, rows with positive multipliers hold with equality at every member (their
slacks, weighted, sum to 0): they join the equations, and the program is solved again. Hence
dimension and tangent; rows flatter than 1e-9 of the set's size count as equations.

    inner_radius = min_i (h_i - g_i c) / |P g_i|         exact, for this center
    radius^2    <= sum_j max(hi_j - c_j, c_j - lo_j)^2   diameter <= min(2 radius, |hi - lo|)

The box is the tightest, by two programs an entry, up to 256 entries, else that of the bounds where
they are finite.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, NamedTuple, Self, final

import numpy as np

from tidewolf.core.arrays import as_direction, as_point, frozen, like, norm, to_numpy
from tidewolf.core.errors import SolverFailed
from tidewolf.core.oracle import Answer
from tidewolf.core.types import Array, Floats, Shape
from tidewolf.core.vertices import Dense
from tidewolf.sets.base import (
    ConvexSet,
    LinearDescription,
    Polyhedral,
    Relaxable,
    clipped,
    require_floating,
)
from tidewolf.sets.generic.half_spaces import (
    FLAT,
    BoundPairs,
    DoubleNumbers,
    HalfSpaces,
    bounds_of_each,
    half_spaces_of,
    require_bounded,
    require_nonempty,
    require_pairs,
    row_space,
)
from tidewolf.sets.generic.linear_solver import LinearProgram, LinearSolution

_FEW = 256
_ROUNDING = 1e-13
_FAR = 1e3
"""Times its size: how far from 0 a set may be and still be seen from there, where bounds are met to
the bit.
"""
_COUNTS = 1e-6
"""Of the largest multiplier: smaller ones do not make a row an equation."""
_ALLOWED = 1e-6
"""A stated error, relative to costs and size, above which the solver is taken to have failed."""


class Frame(NamedTuple):
    """x = origin + unit u: the u of a set that is of size about 1 and not far from 0."""

    origin: Floats
    unit: float

    def rows(self, rows: HalfSpaces) -> HalfSpaces:
        """The same rows for u."""
        with np.errstate(over="ignore"):  # a side that is beyond all numbers is no bound
            return rows._replace(
                h=(rows.h - rows.G @ self.origin) / self.unit,
                f=(rows.f - rows.E @ self.origin) / self.unit,
            )

    def point(self, u: Floats) -> Floats:
        """x."""
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
class Polytope(ConvexSet, Polyhedral, Relaxable):
    """The points that keep inequalities, equations and bounds; it must be bounded.

    Dimension and inner radius exact, radius and diameter upper bounds.

    Parameters
    ----------
    A_ub : array, optional
        The matrix of A_ub x <= b_ub. None: no such rows.
    b_ub : array, optional
        The right-hand side of A_ub x <= b_ub.
    A_eq : array, optional
        The matrix of A_eq x = b_eq. None: no such rows.
    b_eq : array, optional
        The right-hand side of A_eq x = b_eq.
    bounds : array, optional
        A pair (lower, upper) for all entries, or one for each; None in a pair is no bound.
        None: no bounds at all.

    Examples
    --------
    >>> K = tw.sets.Polytope([[1.0, 2.0]], [4.0], bounds=(0.0, 3.0))
    >>> K.lmo(np.array([0.0, -1.0]))
    array([0., 2.])
    """

    A_ub: Annotated[Array, DoubleNumbers("The matrix of A_ub x <= b_ub. None: no such rows.")] = (
        None
    )
    b_ub: Annotated[Array, DoubleNumbers("The right-hand side of A_ub x <= b_ub.")] = None
    A_eq: Annotated[Array, DoubleNumbers("The matrix of A_eq x = b_eq. None: no such rows.")] = None
    b_eq: Annotated[Array, DoubleNumbers("The right-hand side of A_eq x = b_eq.")] = None
    bounds: Annotated[
        Array,
        BoundPairs(
            "A pair (lower, upper) for all entries, or one for each; None in a pair is no bound. "
            "None: no bounds at all."
        ),
    ] = None

    def __post_init__(self) -> None:
        super().__post_init__()
        require_pairs(self.A_ub, self.b_ub, "ub")
        require_pairs(self.A_eq, self.b_eq, "eq")
        if self.bounds is not None:
            table = self.A_ub if self.A_ub is not None else self.A_eq
            entries = None if table is None else table.shape[1]
            object.__setattr__(self, "bounds", bounds_of_each(self.bounds, entries))
        if self._program_in(self._given)(np.zeros(self.shape)) is None:
            require_nonempty(self._rows, self._given.unit)
        if self.bounds is None or not np.isfinite(self.bounds).all():
            require_bounded(self._rows)

    @property
    def shape(self) -> Shape:
        return (self._rows.G.shape[1],)

    @property
    def dimension(self) -> int:
        return self.shape[0] - len(self._hull.N)

    @cached_property
    def center(self) -> Array:
        return frozen(self._frame.point(self._hull.c))

    @cached_property
    def radius(self) -> float:
        lo, hi = self._box
        return (
            self._frame.unit * norm(np.maximum(hi - self._hull.c, self._hull.c - lo))
            if self.dimension
            else 0.0
        )

    @cached_property
    def diameter(self) -> float:
        lo, hi = self._box
        return min(2.0 * self.radius, self._frame.unit * norm(hi - lo))

    @cached_property
    def inner_radius(self) -> float:
        open_rows = self._hull.reach > 0
        distances = self._hull.slack[open_rows] / self._hull.reach[open_rows]
        return self._frame.unit * float(np.min(distances)) if self.dimension else 0.0

    def tangent(self, direction: Array) -> Array:
        direction = as_direction(direction, self.shape)
        N = like(self._hull.N, direction)
        return direction - (N @ direction) @ N

    def infeasibility(self, x: Array) -> float:
        """The largest breach of an inequality, equation or bound, rows brought to length 1: the
        distance to its half-space or plane.
        """
        x = to_numpy(as_point(x, self.shape, "The point")).astype(np.float64)
        rows = self._rows
        return max(
            0.0,
            float(np.max(rows.G @ x - rows.h, initial=0.0)),
            float(np.max(np.abs(rows.E @ x - rows.f), initial=0.0)),
        )

    def answer(self, direction: Array, warm: Array | None = None) -> Answer:
        d = to_numpy(direction).astype(np.float64)
        size = float(np.max(np.abs(d))) or 1.0
        x, error, basis = self._certified(d / size, warm)
        return Answer(
            Dense(like(self._frame.point(x), direction)),
            self._frame.unit * size * error,
            None if basis is None else frozen(basis),
        )

    def relax(self, y: Array) -> Array:
        """The nearest point of the box around the set."""
        return clipped(y, self.shape, *map(self._frame.point, self._box))

    def description(self) -> LinearDescription:
        """In units of the set's size: the box, the equations of the affine hull, and the
        inequalities that cut something off the box.
        """
        from scipy.sparse import eye_array

        G, h, *_ = self._scaled
        (lo, hi), (c, N, _, reach), (origin, unit) = self._box, self._hull, self._frame
        cut = (reach > 0) & (np.maximum(G * lo, G * hi).sum(axis=1) > h)
        lift = None if unit == 1.0 else unit * eye_array(len(c), format="csr")
        return LinearDescription(lo, hi, N, N @ c, G[cut], h[cut], lift, origin)

    def to(self, reference: Array) -> Self:
        """The center in the library, dtype and device of `reference`; the description stays
        in double precision.
        """
        require_floating(reference)
        moved = copy.copy(self)
        moved.__dict__["center"] = frozen(like(self.center, reference))
        return moved

    @classmethod
    def examples(cls) -> Sequence[Polytope]:
        return (
            cls(bounds=[(0.0, 1.0)]),
            cls([[1.0, 1.0, 1.0]], [1.5], bounds=(0.0, 1.0)),
            cls([[-1.0, 0.0], [0.0, -1.0], [3.0, 4.0], [100.0, 0.0]], [0.0, 0.0, 12.0, 1e9]),
            cls(
                [[1.0, 1.0, 0.0], [-1.0, -1.0, 0.0]],
                [2.0, -2.0],
                [[0.0, 1.0, 1.0]],
                [1.0],
                bounds=[(0.0, None)] * 3,
            ),
            cls(A_eq=[[1.0, 1.0], [1.0, -1.0]], b_eq=[2.0, 0.0]),
            cls([[1e-3, 2e-3]], [2e-9], bounds=(-1e-6, 1e-6)),
            cls([[1.0, 1.0]], [2e6 + 1.5], bounds=(1e6, 1e6 + 1.0)),
        )

    def _certified(self, costs: Floats, warm: Array | None) -> tuple[Floats, float, Any]:
        """A member, how much worse than the best it is at most, and the solver's basis; costs and x
        of size 1.
        """
        for basis in (warm, None):
            found = self._program(costs, basis)
            if found is None:
                raise SolverFailed(
                    "HiGHS found a polytope empty or unbounded that is neither; rescale its rows "
                    "to a common size."
                )
            x = self._member(found.x)
            error = float(costs @ x) - self._bound(costs, found)
            size = float(np.abs(costs) @ np.maximum(*np.abs(self._box)))
            # size is next to nothing if costs are large where the set is flat; rounding is not
            if error <= max(_ALLOWED * size, _ROUNDING):
                return x, error if error > _ROUNDING * size else 0.0, found.basis
        raise SolverFailed(
            f"HiGHS left an error of {error:.3g} at size {size:.3g}; rescale the rows of the "
            "polytope to a common size."
        )

    def _member(self, x: Floats) -> Floats:
        """The solver's point, put on the affine hull and drawn to the center as far as it breaches
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

    def _bound(self, costs: Floats, found: LinearSolution) -> float:
        """What no member stays below."""
        data, y = self._program.data, found.multipliers.copy()
        p = len(data.b_ub)
        y[:p] = np.minimum(0.0, y[:p])
        r = costs - y[:p] @ data.A_ub - y[p:] @ data.A_eq
        lo, hi = self._box
        return float(y[:p] @ data.b_ub + y[p:] @ data.b_eq + np.sum(np.minimum(r * lo, r * hi)))

    @cached_property
    def _rows(self) -> HalfSpaces:
        """In the units given."""
        return half_spaces_of(self.A_ub, self.b_ub, self.A_eq, self.b_eq, self.bounds)

    @cached_property
    def _given(self) -> Frame:
        size = float(np.max(np.abs(np.concatenate([self._rows.h, self._rows.f])), initial=0.0))
        return Frame(np.zeros(self.shape), size or 1.0)

    @cached_property
    def _frame(self) -> Frame:
        """Where and how large the set is, by its entries at two opposite ends."""
        d, program = np.cos(np.arange(1.0, 1.0 + self.shape[0])), self._program_in(self._given)
        ends = self._given.unit * np.array(
            [found.x for found in (program(d), program(-d)) if found is not None]
        )
        middle, size = ends.mean(axis=0), float(np.max(np.abs(ends - ends[0])))
        if np.max(np.abs(middle)) <= _FAR * size or size == 0.0:
            middle, size = np.zeros(self.shape), float(np.max(np.abs(ends)))
        return Frame(middle, 2.0 ** round(math.log2(size)) if size > 0.0 else self._given.unit)

    def _program_in(self, frame: Frame) -> LinearProgram:
        rows = frame.rows(self._rows)
        pairs = self.bounds
        if pairs is None:
            pairs = np.full((*self.shape, 2), (-np.inf, np.inf))
        lower, upper = (pairs.T - frame.origin) / frame.unit
        G, h = rows.G[: rows.general], rows.h[: rows.general]
        return LinearProgram(G, h, rows.E, rows.f, lower, upper)

    @cached_property
    def _program(self) -> LinearProgram:
        return self._program_in(self._frame)

    @cached_property
    def _scaled(self) -> HalfSpaces:
        return self._frame.rows(self._rows)

    @cached_property
    def _box(self) -> Floats:
        """lo and hi, in units of the set's size."""
        lower, upper = self._program.data.lower, self._program.data.upper
        box, basis = np.stack([lower, upper]), None
        if not self.dimension:
            return np.stack([self._hull.c, self._hull.c])
        for j, unit in enumerate(np.eye(len(lower))):
            for side, sign in ((0, 1.0), (1, -1.0)):
                if len(lower) <= _FEW or not math.isfinite(box[side, j]):
                    found = self._program(sign * unit, basis)
                    assert found is not None
                    end, basis = float(found.x[j]) - sign * FLAT, found.basis
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
            rows = np.flatnonzero(~least)
            ball = LinearProgram(
                np.column_stack([G[rows], reach[rows]]),
                h[rows],
                np.column_stack([N, np.zeros(len(N))]),
                N @ base,
                np.full(n + 1, -np.inf),
                np.full(n + 1, np.inf),
            ).solve_cold(np.append(np.zeros(n), -1.0))
            if ball is None:
                raise SolverFailed(
                    "The inside of a polytope could not be found; rescale its rows to a common "
                    "size."
                )
            base = ball.x[:n] - (N @ (ball.x[:n] - base)) @ N
            if ball.x[n] > FLAT:
                break
            weights = -ball.multipliers[: len(rows)]
            tight = rows[weights > _COUNTS * weights.max()]
            least[tight] = True  # whatever rounding makes of the equations, the loop ends
            equal = np.vstack([equal, np.column_stack([G[tight], h[tight]])])
        return PolytopeInside(
            base, N, np.where(least, 0.0, h - G @ base), np.where(least, 0.0, reach)
        )
