"""The task in hindsight, and the proofs of its bounds: no solver is trusted.

    min { F(x) = sum_t f_t(x) : x in K, g_i(x) <= 0 for every constraint i }     points flattened

Lower bound. One call of the set's oracle minimises an affine function over K. Such a function below
F + <lam, g>, for any lam >= 0, proves a lower bound. It is the sum of two:

    linear losses           <c, x> + constant
    maxima of pieces        sum_i mu_i (<c_i, x> - d_i), the weights of each round summing to 1
    other losses            the tangent of F at any point, in K or not
    half-spaces             sum_i lam_i (<a_i, x> - b_i)
    curved constraints      the tangent of <lam, g>

Subtracted are the oracle's error and a slack for rounding: 2 (n + m) eps times the largest sum of
the absolute values of the terms over K, for n entries and m terms.

No feasible point. Without F the same bound is above 0: at every x in K some g_i is above 0.

Upper bound. F at a point, if that lies in K and has every g_t(x) <= 0 up to 1e-9 of |g_t| +
|grad g_t| |x| (100 eps if the set's dtype is coarser); else infinity.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, Self, final

import numpy as np

from tidewolf.core import arrays, errors, oracle, sparse, vertices
from tidewolf.core.batch import Batch, Halfspaces, LinearTotal, PiecewiseLinear, together
from tidewolf.core.types import Array, Floats, Int64s, NDArray
from tidewolf.functions.combined import Chain
from tidewolf.functions.loads import LinkLoads, LoadRows
from tidewolf.sets.base import Polyhedral
from tidewolf.sets.spectra import Spectral

FEASIBILITY_TOLERANCE = 1e-9
# Costs and rows lose digits if less than the first share of them is within aff(K); less than the
# second, in eps, is rounding.
ACROSS, ROUNDING = 1e-2, 1e3


class Minorant(NamedTuple):
    """<slope, x> + offset, an affine function below another; of each entry of the slope, and of the
    offset, the sum of the absolute values of its terms, and how many there are.
    """

    slope: Floats
    offset: float
    sizes: Floats
    terms: float
    added: int

    def __add__(self, other: "Minorant") -> "Minorant":  # type: ignore[override]
        pairs: Any = zip(self, other, strict=True)
        return Minorant(*(mine + theirs for mine, theirs in pairs))

    def rounding(self, terms: float, eps: float) -> float:
        return 2.0 * (self.slope.size + self.added) * eps * terms


def combined(parts: Sequence[Minorant], shares: Floats) -> Minorant:
    """The weighted sum of functions below the same one, with weights that sum to 1."""
    *fields, added = zip(*parts, strict=True)
    slope, offset, sizes, terms = (np.array(field).T @ shares for field in fields)
    return Minorant(slope, float(offset), sizes, float(terms), max(added) + len(parts))


class Solution(NamedTuple):
    """What a method proposes; the task checks what it is worth.

    A point that should be feasible, a multiplier for each constraint; if no point seems feasible,
    weights of the constraints that show it; for curved functions, the point whose tangents prove
    the bounds, None: the center; an affine function below F, None: F itself, or its tangent there.
    """

    point: Floats | None
    lam: Floats
    weights: Floats | None = None
    anchor: Floats | None = None
    below: Minorant | None = None


@final
@dataclass(frozen=True, eq=False)
class Task:
    """Minimise the sum of the losses over the points of K that satisfy the constraints.

    A, b: the constraints as half-spaces A x <= b, dense, sparse or `LoadRows`; A is None if they
    are curved. c, constant: of linear losses under half-spaces, which sum to <c, x> + constant.
    pieces: of losses that are maxima of affine pieces, over a polyhedral set, under half-spaces.
    """

    K: oracle.HasLMO
    losses: Batch
    constraints: Batch
    A: Any
    b: Floats
    rounds: Int64s
    c: Floats | None = None
    constant: float = 0.0
    pieces: Halfspaces | None = None

    @classmethod
    def of(cls, K: oracle.HasLMO, losses: Batch, constraints: Batch, *, own: bool = False) -> Self:
        K = with_exact_oracle(K)
        rows, count = _half_spaces(K, constraints), len(constraints)
        task = cls(K, losses, constraints, *(rows or (None, np.zeros(count), np.arange(count))))
        steepest = task.of_rows(sparse.largest_of_rows) if rows else _steepest(K, constraints)
        require_moderate("constraints", steepest)
        if own:
            return task
        linear = [part for part in parts_of(losses) if isinstance(part, LinearTotal)]
        if rows is not None and len(linear) == len(parts_of(losses)):
            with np.errstate(over="ignore", invalid="ignore"):  # refused next
                totals: Any = zip(*(part.total() for part in linear), strict=True)
                c, constant = (sum(each) for each in totals)
            size = float(np.abs(c).max()) if np.isfinite(constant) else np.inf
            require_moderate("losses", np.array([size]))
            return replace(task, c=c.reshape(-1), constant=constant)
        if rows is not None and isinstance(K, Polyhedral) and isinstance(losses, PiecewiseLinear):
            pieces = losses.epigraph()
            require_moderate("losses", sparse.largest_of_rows(pieces.A))
            return replace(task, pieces=pieces)
        require_moderate("losses", _steepest(K, losses))
        return task

    def of_rows(self, number: Any) -> Floats:
        return self.A.each(number) if isinstance(self.A, LoadRows) else number(self.A)

    @cached_property
    def norms(self) -> Floats:
        """The norms of the rows of A, 1 in place of 0."""
        return np.asarray(positive(np.sqrt(self.of_rows(lambda A: (A * A).sum(axis=1)))))

    def rows(self, some: Int64s) -> Any:
        return self.A[some] if isinstance(self.A, LoadRows) else self.A[some, :]

    def violations(self, x: Floats) -> Floats:
        """How far x is above each row, in units of its norm; below 0 inside."""
        return np.asarray((self.A @ x - self.b) / self.norms)

    def for_solvers(self) -> "Task":
        """The same without what moves no answer, as solvers' accuracies are relative to costs: the
        constant, and costs mostly across aff(K). On a simplex <c + k 1, x> is <c, x> + k.
        """
        if self.c is None:
            return self
        along = flattened(self.K.tangent(self.unflattened(self.c)))
        size, left = float(np.linalg.norm(self.c)), float(np.linalg.norm(along))
        if left >= ACROSS * size:
            along = self.c
        elif left <= ROUNDING * arrays.eps_of(self.K.center) * size:
            along = 0.0 * along
        return replace(self, c=along, constant=0.0)

    # ------------------------------------------------------------------------------- functions

    def total(self, x: Floats) -> float:
        if self.c is not None:
            return float(self.c @ x) + self.constant
        return float(arrays.to_numpy(self.losses.values(self.unflattened(x))).sum(dtype=np.float64))

    def slope(self, x: Floats) -> Floats:
        every = np.ones(len(self.losses))
        return self._weighted(self.losses, x, every) if self.c is None else self.c

    def values(self, x: Floats) -> Floats:
        """g_i for every constraint i."""
        if self.A is not None:
            return np.asarray(self.A @ x - self.b)
        return flattened(self.constraints.values(self.unflattened(x)))

    def weighted_slope(self, x: Floats, lam: Floats) -> Floats:
        """sum_i lam_i grad g_i."""
        if self.A is not None:
            used = np.flatnonzero(lam)
            return np.asarray(self.rows(used).T @ lam[used])
        return self._weighted(self.constraints, x, lam)

    def slopes(self, x: Floats, some: Any) -> Floats:
        """grad g_i for some i, one per row."""
        if self.A is not None:
            rows = self.rows(some)
            return np.asarray(rows if isinstance(rows, np.ndarray) else rows.toarray())
        gradients = flattened(self.constraints.gradients(self.unflattened(x)))
        return np.asarray(gradients.reshape(len(self.constraints), -1)[some])

    def _weighted(self, batch: Batch, x: Floats, weights: Floats) -> Floats:
        point = self.unflattened(x)
        return flattened(batch.subgradient(point, arrays.like(weights, point)))

    # ---------------------------------------------------------------------------------- bounds

    def lower_bound(self, proposed: Solution) -> float:
        """What the multipliers prove every feasible point to lose at least."""
        at = flattened(self.K.center) if proposed.anchor is None else proposed.anchor
        below = proposed.below or self.tangent(at)
        return self.least(below + self.below_constraints(proposed.lam, at))[0]

    def tangent(self, x: Floats) -> Minorant:
        if self.c is not None:
            return Minorant(self.c, self.constant, np.abs(self.c), abs(self.constant), 0)
        values = flattened(self.losses.values(self.unflattened(x)))
        return _tangent(self.slope(x), values, np.ones(len(values)), x)

    def below_pieces(self, weights: Floats) -> Minorant:
        """The pieces of the losses, with weights scaled to sum to 1 in every round: all on its
        first piece if a round has none.
        """
        assert self.pieces is not None
        A, d, rounds = self.pieces
        count, mu = len(self.losses), weights.copy()
        sums = np.bincount(rounds, mu, count)
        mu[np.searchsorted(rounds, np.flatnonzero(sums <= 0.0))] = 1.0
        mu = mu / np.where(sums > 0.0, sums, 1.0)[rounds]
        return _of_rows(A, d, mu)

    def below_constraints(self, lam: Floats, anchor: Floats | None = None) -> Minorant:
        """<lam, g>, or its tangent at the anchor."""
        if self.A is not None:
            used = np.flatnonzero(lam)
            return _of_rows(self.rows(used), self.b[used], lam[used])
        assert anchor is not None
        return _tangent(self.weighted_slope(anchor, lam), self.values(anchor), lam, anchor)

    def least(self, below: Minorant) -> tuple[float, vertices.Vertex]:
        """A lower bound on an affine function over K, and the vertex that the oracle answered."""
        direction = self.unflattened(below.slope)
        answer = self.K.answer(direction)
        value = below.offset + answer.vertex.inner(direction) - answer.error
        terms = below.terms + float(below.sizes @ np.abs(flattened(self.K.center)))
        terms += self.K.radius * float(np.linalg.norm(below.sizes))
        return value - below.rounding(terms, arrays.eps_of(direction)), answer.vertex

    def is_feasible(self, x: Floats) -> bool:
        """Whether x lies in K and satisfies every constraint, by the set's own infeasibility and
        the functions' own values.
        """
        point = self.unflattened(x)
        tolerance = max(FEASIBILITY_TOLERANCE, 100 * arrays.eps_of(point))
        if self.K.infeasibility(point) > tolerance * max(self.K.radius, float(np.abs(x).max())):
            return False
        values = flattened(self.constraints.values(point))
        sizes = np.abs(values) + self.constraints.slopes(point) * np.linalg.norm(x)
        return float(values.max()) <= tolerance * float(sizes.max())

    def unflattened(self, x: Floats) -> Array:
        x = x.reshape(self.K.shape)
        return x if type(self.K.center) is np.ndarray else arrays.like(x, self.K.center)


def joining(breach: Floats, used: Int64s, least: float, most: int = 16) -> Int64s:
    breach = breach.copy()
    breach[used] = -np.inf
    more = np.flatnonzero(breach > least)
    return more[np.argsort(-breach[more], kind="stable")[:most]]


def _of_rows(A: Any, b: Floats, weights: Floats) -> Minorant:
    slope, sizes = np.asarray(A.T @ weights), np.asarray(abs(A).T @ weights)
    offset, terms = -float(weights @ b), float(weights @ np.abs(b))
    return Minorant(slope, offset, sizes, terms, int(np.count_nonzero(weights)))


def _tangent(slope: Floats, values: Floats, weights: Floats, x: Floats) -> Minorant:
    sizes = np.abs(slope)
    terms = float(weights @ np.abs(values)) + float(sizes @ np.abs(x))
    return Minorant(slope, float(weights @ values) - float(slope @ x), sizes, terms, len(values))


def parts_of(batch: Batch) -> tuple[Batch, ...]:
    return batch.parts if isinstance(batch, Chain) else (batch,)


def _half_spaces(K: oracle.HasLMO, constraints: Batch) -> Halfspaces | None:
    """Constraints as half-spaces, None if they are curved; over a set with a linear description,
    very many rows are made some at a time.
    """
    parts = [part for part in parts_of(constraints) if isinstance(part, PiecewiseLinear)]
    if len(parts) < len(parts_of(constraints)):
        return None
    loads = constraints if isinstance(constraints, LinkLoads) else None
    many = loads.many_rows() if loads is not None and isinstance(K, Polyhedral) else None
    if many is not None:
        b, count = many.offsets, len(constraints)
        return Halfspaces(many, b, np.repeat(np.arange(count), len(b) // count))
    whole = together([part.halfspaces() for part in parts], np.cumsum([0, *map(len, parts[:-1])]))
    return whole._replace(A=whole.A.astype(np.float64, copy=False))


def require_moderate(name: str, slopes: Floats) -> None:
    """Refuse functions whose slopes are not 0 and whose squares and ratios would overflow or
    vanish.
    """
    odd = slopes[(slopes != 0.0) & ~((slopes >= arrays.LEAST) & (slopes <= arrays.MOST))]
    if len(odd):
        raise errors.NotSupported(
            f"Expected {name} with slopes from {arrays.LEAST:g} to {arrays.MOST:g}, not "
            f"{odd[0]:.3g}: give the {name} in other units."
        )


def _steepest(K: oracle.HasLMO, batch: Batch) -> Floats:
    with np.errstate(over="ignore", invalid="ignore"):
        beside = K.answer(batch.gradients(K.center)[0, ...]).vertex.blend(K.center, 0.5)
        return np.array([max(float(batch.slopes(x).max()) for x in (K.center, beside))])


def with_exact_oracle(K: oracle.HasLMO) -> oracle.HasLMO:
    """The same set with an oracle that does not err, if there is one: hindsight asks seldom."""
    return K.exactly() if isinstance(K, Spectral) and type(K.center) is np.ndarray else K


def sums(places: NDArray, values: Floats, count: int) -> Floats:
    """What the values at each of so many places add up to."""
    return np.asarray(np.bincount(places, values, count), dtype=np.float64)


def positive(sizes: Any) -> Any:
    """Sizes to divide by: 1 in place of 0."""
    return np.where(sizes > 0, sizes, 1.0)


def flattened(x: Array) -> Floats:
    return np.asarray(arrays.to_numpy(x), dtype=np.float64).reshape(-1)
