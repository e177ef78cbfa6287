"""The best point of some rounds, by linear programming (HiGHS): what a practitioner would reach
for.

    minimise f(x)   over   x in K,  <a_i, x> <= b_i - h_i for every i,
    f the sum of the losses, a_i and b_i the limits' half-spaces, h_i >= 0 what is kept in hand

f = <c, x> + sum_k max_j (<d_kj, x> - e_kj): a variable for each maximum, a row for each piece.
Where no point keeps every limit, the worst breach is made least first: s = min { s : x in K, <a_i,
x> - b_i + h_i <= s for every i }, and then b_i + s stands in place of b_i. Rows, costs and points
are brought to size 1 for the solver, and what is mostly across aff(K) is taken within it first, <a
+ k 1, x> <= b + k on a simplex being one limit for every k; an answer that is a member only up to
its tolerances is projected (exact.py).

Capacities are bounds on variables where the variables are the entries of x; other limits are rows.
The model is changed in place and starts from the basis of an earlier answer (warm_model.py).
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple, cast

import numpy as np

from tidewolf.core.arrays import frozen, like, power_of_two, require_finite, to_numpy
from tidewolf.core.batch import Batch
from tidewolf.core.errors import NotSupported, SolverFailed
from tidewolf.core.feedback import require_full_information
from tidewolf.core.oracle import HasLMO, as_set
from tidewolf.core.types import Array, Floats
from tidewolf.functions.base import LinearTotal, PiecewiseLinear
from tidewolf.functions.capacity import Capacity
from tidewolf.functions.chain import Chain
from tidewolf.hindsight.exact import Described, ExactProjection
from tidewolf.hindsight.warm_model import TOLERANCE, Basis, Rows, Solved, WarmModel
from tidewolf.sets.base import ConvexSet, Polyhedral, membership_tolerance

_ACROSS = 1e-2
"""A row whose part within aff(K) is a smaller share of it would lose digits at size 1."""
_ROOM = 1e-9
"""How much more than the least worst breach is allowed, at size 1, so that the solver finds a point
again.
"""
_DENSE = 10**6
"""Equations with so many entries in all, zeros included, are made orthonormal at most."""


class Bases(NamedTuple):
    """Where the next program starts: with the limits, and with a breach of them."""

    kept: Basis | None = None
    breached: Basis | None = None


COLD = Bases()
"""Nothing is known: the programs start from nothing."""


class Best(NamedTuple):
    """A best point, read-only, where the next program starts, and how many were solved."""

    x: Array
    bases: Bases
    solves: int


class Objective(NamedTuple):
    """<c, x> + sum_k max_j (<d_kj, x> - e_kj) on flattened points, up to a constant: row i of
    (d, e) is a piece of the maximum `which[i]`, of `maxima` in all.
    """

    c: Floats
    d: Any
    e: Floats
    which: Any
    maxima: int


class HalfSpaces(NamedTuple):
    """<a_i, x> <= b_i on flattened points; A None: every entry has a capacity b_i."""

    A: Any
    b: Floats


class Program(NamedTuple):
    """Minimise <c, v> under pieces, A v <= b and lower <= v <= upper; A None: v_i <= b_i for the
    first entries. A unit of the limits is 1/`unit` of b.
    """

    c: Floats
    lower: Floats
    upper: Floats
    pieces: Rows | None
    A: Any
    b: Floats
    unit: float


class BestPoint(Described):
    """The best point of a set for given losses and limits; `who` asks for it, in sentences."""

    def __init__(self, K: Any, who: str) -> None:
        as_set(K, who)
        if not isinstance(K, Polyhedral):
            raise NotSupported(
                f"{who} solves linear programs, and {type(K).__name__} has no linear description."
            )
        self.K = cast(ConvexSet, K)
        self.who = who

    def __reduce__(self) -> tuple[Any, ...]:
        return BestPoint, (self.K, self.who)

    def require(self, seen: object, most: int) -> None:
        """Refuse feedback of another kind, on too many rounds, of the wrong shape, or of functions
        that make no linear program.
        """
        require_program(seen, self.K, most, self.who)

    def __call__(self, losses: Batch, constraints: Batch) -> Array:
        """A best point of these rounds, read-only; they passed `require`."""
        return self.best(self.prepared(objective(losses, self.who), half_spaces(constraints))).x

    def prepared(self, loss: Objective, limits: HalfSpaces) -> Program:
        """The program in units of the set's size, variables of maxima after those of the set."""
        from scipy.sparse import csr_array, hstack

        lower, upper = self._bounds
        more = np.full(loss.maxima, np.inf)
        lower, upper = np.append(lower, -more), np.append(upper, more)
        c, pieces = self._costs(loss)
        if limits.A is None and self._plain:
            return Program(c, lower, upper, pieces, None, limits.b / self._unit, self._unit)
        A, b, size = self._capacity_rows if limits.A is None else self._lifted(limits.A)
        if loss.maxima:
            A = hstack([A, csr_array((A.shape[0], loss.maxima))], format="csr")
        b = (limits.b - b) / size / self._unit
        return Program(c, lower, upper, pieces, A, b, size * self._unit)

    def best(self, program: Program, headroom: Floats | None = None, bases: Bases = COLD) -> Best:
        """A best point, limit i kept with `headroom[i]` to spare, from where another program ended;
        `prepared` made the program.
        """
        if headroom is not None:
            program = program._replace(b=program.b - headroom / program.unit)
        u, bases, solves = self._solved(program, bases)
        d = self._description
        u = np.clip(self._unit * u[: len(d.lower)], d.lower, d.upper)
        x = u if d.lift is None else d.lift @ u
        return Best(self.member(x if d.shift is None else x + d.shift), bases, solves)

    def _costs(self, loss: Objective) -> tuple[Floats, Rows | None]:
        """The costs of all variables at size 1, and a row for each piece of a maximum."""
        from scipy.sparse import csr_array, hstack

        d, c = self._description, loss.c
        if not loss.maxima:
            c = self._along((c / power_of_two(np.abs(c).max()))[None])[0]
            c = c if d.lift is None else d.lift.T @ c
            return c / power_of_two(np.abs(c).max()), None
        D = csr_array(loss.d, dtype=np.float64)
        size = float(power_of_two(max(np.abs(c).max(), abs(D).max())))
        c, (D, e) = self._along(c[None] / size)[0], self._rows_along(D / size)
        e = loss.e / size - e
        if d.shift is not None:
            e = e - D @ d.shift
        if d.lift is not None:
            D, c = D @ csr_array(d.lift), d.lift.T @ c
        size = float(power_of_two(max(np.abs(c).max(), abs(D).max())))
        which = csr_array(
            (np.full(len(e), -1.0), (np.arange(len(e)), loss.which)), (len(e), loss.maxima)
        )
        rows = Rows(hstack([D / size, which], format="csr"), e / (size * self._unit))
        return np.append(c / size, np.ones(loss.maxima)), rows

    @cached_property
    def _plain(self) -> bool:
        """Whether the variables are the entries of a point."""
        return self._description.lift is None and self._description.shift is None

    @cached_property
    def _capacity_rows(self) -> tuple[Any, Floats, float]:
        from scipy.sparse import eye_array

        return self._lifted(eye_array(int(np.prod(self.K.shape)), format="csr"))

    def _lifted(self, A: Any) -> tuple[Any, Floats, float]:
        """Rows on points as (A', shift, size): <a, x> <= b is <a', u> <= (b - shift)/size."""
        from scipy.sparse import csr_array

        d = self._description
        A = csr_array(A, dtype=np.float64)
        first = float(power_of_two(abs(A).max())) if A.nnz else 1.0
        A, shift = self._rows_along(A / first)
        if d.shift is not None:
            shift = shift + A @ d.shift
        if d.lift is not None:
            A = A @ csr_array(d.lift)
        second = float(power_of_two(abs(A).max())) if A.nnz else 1.0
        return csr_array(A / second), first * shift, first * second

    def _rows_along(self, A: Any) -> tuple[Any, Floats]:
        """Rows that say the same on aff(K), and how much less their values are there; a row of one
        entry is never mostly across it, unless it says nothing.
        """
        from scipy.sparse import csr_array

        several, shift = np.diff(A.indptr) > 1, np.zeros(A.shape[0])
        if not several.any() or self.K.dimension == A.shape[1]:
            return A, shift
        given = A.toarray()
        along = self._along(given)
        if along is given:
            return A, shift
        along[~several] = given[~several]
        shift = (given - along) @ to_numpy(self.K.center).reshape(-1)
        return csr_array(along), shift

    def _along(self, rows: Floats) -> Floats:
        """Flat rows, those within aff(K) that are mostly across it; the same array where none
        is.
        """
        if self.K.dimension == rows.shape[1]:
            return rows
        if self._normals is not None:
            along = rows - (rows @ self._normals) @ self._normals.T
        else:
            tangents = [
                to_numpy(self.K.tangent(like(row.reshape(self.K.shape), self.K.center))).reshape(-1)
                for row in rows
            ]
            along = np.array(tangents, dtype=np.float64).reshape(rows.shape)
        across = np.linalg.norm(along, axis=1) < _ACROSS * np.linalg.norm(rows, axis=1)
        return np.where(across[:, None], along, rows) if across.any() else rows

    @cached_property
    def _normals(self) -> Floats | None:
        """Orthonormal directions that the set's equations say to be across it; None where there are
        none, or too many.
        """
        d = self._description
        if d.lift is not None or d.A_eq is None or np.prod(d.A_eq.shape) > _DENSE:
            return None
        A = d.A_eq.toarray() if hasattr(d.A_eq, "toarray") else np.asarray(d.A_eq)
        rows = A / np.maximum(np.linalg.norm(A, axis=1), 1e-300)[:, None]
        across, sizes, _ = np.linalg.svd(rows.T, full_matrices=False)
        return across[:, sizes > 1e-9 * max(1.0, float(sizes.max(initial=0.0)))]

    def _solved(self, program: Program, bases: Bases) -> tuple[Floats, Bases, int]:
        found = self._kept(program, 0.0, bases.kept)
        if found is not None:
            return found.v, bases._replace(kept=found.basis), 1
        worst = self._breached(program, bases.breached)
        if worst is not None:
            bases = bases._replace(breached=worst.basis)
            s = max(0.0, float(worst.v[-1])) + _ROOM
            found = self._kept(program, s, bases.kept)
            if found is not None:
                return found.v, bases._replace(kept=found.basis), 3
        raise SolverFailed(f"HiGHS could not find the best point of {self.K!r} for these rounds.")

    def _kept(self, p: Program, s: float, basis: Basis | None) -> Solved | None:
        """The best point that breaches no limit by more than s."""
        if p.A is None:
            n = len(p.b)
            upper = p.upper.copy()
            upper[:n] = np.minimum(upper[:n], p.b + s)
            short = p.lower - upper
            if short.max() > TOLERANCE:
                return None
            if short.max() > 0.0:
                upper = np.maximum(upper, p.lower)
            return self._model(len(p.c))(p.c, p.lower, upper, p.pieces, basis)
        A, b = _rows_of_size_one(p.A, p.b + s)
        rows = Rows(A, b) if p.pieces is None else _stacked(p.pieces, Rows(A, b))
        return self._model(len(p.c))(p.c, p.lower, p.upper, rows, basis)

    def _breached(self, p: Program, basis: Basis | None) -> Solved | None:
        """The least s, the last variable, such that a point breaches no limit by more."""
        from scipy.sparse import csr_array, eye_array, hstack

        n, m = len(p.c), len(p.b)
        A = eye_array(m, n, format="csr") if p.A is None else p.A
        rows = Rows(hstack([A, csr_array(-np.ones((m, 1)))], format="csr"), p.b)
        # maxima play no part here
        lower, upper = np.append(p.lower, -np.inf), np.append(p.upper, np.inf)
        return self._model(n + 1)(np.append(np.zeros(n), 1.0), lower, upper, rows, basis)

    def _model(self, columns: int) -> WarmModel:
        """The model with so many variables, the set's first."""
        if columns not in self._models:
            from scipy.sparse import csr_array, vstack

            d, unit = self._description, self._unit
            n, parts = len(d.lower), []
            low, high = [np.zeros(0)], [np.zeros(0)]
            if d.A_ub is not None and d.b_ub is not None:
                parts.append(csr_array(d.A_ub))
                low.append(np.full(len(d.b_ub), -np.inf))
                high.append(d.b_ub / unit)
            if d.A_eq is not None and d.b_eq is not None:
                parts.append(csr_array(d.A_eq))
                low.append(d.b_eq / unit)
                high.append(d.b_eq / unit)
            F = csr_array(vstack(parts)) if parts else csr_array((0, n))
            F = csr_array((F.data.astype(np.float64), F.indices, F.indptr), (F.shape[0], columns))
            self._models[columns] = WarmModel(F, np.concatenate(low), np.concatenate(high))
        return self._models[columns]

    @cached_property
    def _models(self) -> dict[int, WarmModel]:
        return {}

    @cached_property
    def _bounds(self) -> tuple[Floats, Floats]:
        d = self._description
        return d.lower / self._unit, d.upper / self._unit

    def member(self, x: Floats) -> Array:
        """This flat point, or the member nearest to it where it is one only up to tolerances."""
        point = like(x.reshape(self.K.shape), self.K.center)
        if self.K.excess(point) > 0.5 * membership_tolerance(point, self.K.radius):
            point = self._projection(point)
        return frozen(point)

    @cached_property
    def _projection(self) -> ExactProjection:
        return ExactProjection(self.K)

    @cached_property
    def _unit(self) -> float:
        bounds = np.abs(np.concatenate([self._description.lower, self._description.upper]))
        return float(np.max(bounds, where=np.isfinite(bounds), initial=0.0)) or 1.0


def _rows_of_size_one(A: Any, b: Floats) -> tuple[Any, Floats]:
    """The same; a limit in smaller units than others is a limit still."""
    sizes = power_of_two(abs(A).max(axis=1).toarray().reshape(-1))
    if (sizes == 1.0).all():
        return A, b
    return A.multiply(1.0 / sizes[:, None]).tocsr(), b / sizes


def _stacked(first: Rows, second: Rows) -> Rows:
    from scipy.sparse import vstack

    return Rows(vstack([first.A, second.A], format="csr"), np.concatenate([first.b, second.b]))


def require_program(seen: object, K: HasLMO, most: int, who: str) -> None:
    """Refuse feedback of another kind, on too many rounds, of the wrong shape, or of functions that
    make no linear program.
    """
    losses, constraints = require_full_information(seen, K.shape, most)
    for part in parts_of(losses):
        if not isinstance(part, LinearTotal | PiecewiseLinear):
            raise NotSupported(
                f"{who} solves linear programs; {type(part).__name__} losses do not add "
                "up to a linear function."
            )
    for part in parts_of(constraints):
        if not isinstance(part, PiecewiseLinear):
            raise NotSupported(
                f"{who} solves linear programs; {type(part).__name__} constraints are not "
                "half-spaces."
            )


def objective(losses: Batch, who: str = "A linear program") -> Objective:
    """The sum of losses that make a linear program."""
    from scipy.sparse import csr_array, vstack

    c = np.zeros(int(np.prod(losses.shape)))
    pieces, which, count = [], [], 0
    with np.errstate(over="ignore", invalid="ignore"):  # refused next
        for part in parts_of(losses):
            if isinstance(part, LinearTotal):
                c = c + part.total()[0].reshape(-1)
            elif isinstance(part, PiecewiseLinear):
                spaces = part.halfspaces()
                pieces.append(spaces)
                which.append(spaces.rounds + count)
                count += len(part)
    require_finite(c, f"The sum of the losses that {who} minimises")
    if not count:
        return Objective(c, None, np.zeros(0), None, 0)
    return Objective(
        c,
        vstack([csr_array(A, dtype=np.float64) for A, _, _ in pieces]),
        np.concatenate([b for _, b, _ in pieces]),
        np.concatenate(which),
        count,
    )


def half_spaces(constraints: Batch) -> HalfSpaces:
    """The limits of these rounds."""
    from scipy.sparse import csr_array, vstack

    parts = parts_of(constraints)
    spaces = [part.halfspaces() for part in parts if isinstance(part, PiecewiseLinear)]
    if len(parts) == 1 and isinstance(parts[0], Capacity) and len(parts[0]):
        return HalfSpaces(None, spaces[0].b)
    A = vstack([csr_array(A, dtype=np.float64) for A, _, _ in spaces])
    return HalfSpaces(A, np.concatenate([b for _, b, _ in spaces]))


def headroom_of_rows(constraints: Batch, headroom: Floats) -> Floats:
    """What each half-space of some rounds keeps in hand, given what each limit of a round keeps;
    the most of all where the rows do not tell which limit they are of.
    """
    rows = []
    for part in parts_of(constraints):
        assert isinstance(part, PiecewiseLinear)
        count = len(part.halfspaces().b)
        if count == len(headroom):
            rows.append(headroom)
        elif count == len(headroom) * len(part):
            rows.append(np.tile(headroom, len(part)))
        else:
            rows.append(np.full(count, headroom.max(initial=0.0)))
    return np.concatenate(rows)


def parts_of(batch: Batch) -> tuple[Batch, ...]:
    """The parts of a chain, or the batch itself."""
    return batch.parts if isinstance(batch, Chain) else (batch,)
