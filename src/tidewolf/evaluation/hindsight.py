"""The best fixed point in hindsight, as a bracket, or the proof that there is none.

    min { sum_t f_t(x) : x in K, g_t(x) <= 0 for every t }

Losses add up to <c, x> + constant, constraints are half-spaces <a_i, x> <= b_i, K has a linear description: a linear program.
Its solver is believed nothing; what it answers is checked with the functions and the set themselves.

Lower. For any lam >= 0, with d = c + sum_i lam_i a_i, one call of the set's oracle gives
    min_{x in K} <c, x> + constant + sum_i lam_i (<a_i, x> - b_i)  =  constant - <lam, b> + min_{x in K} <d, x>  <=  the minimum,
less the oracle's own error and less a slack for rounding: 2 (n + m) eps times the largest sum of the terms' absolute values
over K, for n entries and m multipliers that are not 0. The totals c and constant are taken as computed.

Upper. The total at the solver's point, if it lies in K and keeps every g_t(x) <= 0 up to 1e-9 of the size of their terms
(100 eps where a set's dtype is coarser); else infinity.

No such point. Weights w >= 0 that sum to 1 with min_{x in K} sum_i w_i (<a_i, x> - b_i) > 0, by one call of the oracle as above:
at every x in K the rounds of these rows average above 0, so one of them is breached. The weights come from the linear program
    min { s : x in K, <a_i, x> - b_i <= s for every i }.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias, final

import numpy as np

from tidewolf.core.arrays import Array, eps_of, frozen, like, to_numpy
from tidewolf.core.batch import Stream
from tidewolf.core.errors import InvalidInput, NotSupported, WrongShape, WrongType
from tidewolf.core.oracle import HasLMO
from tidewolf.core.values import Value
from tidewolf.functions.base import LinearTotal, PiecewiseLinear
from tidewolf.sets.base import LinearDescription, Polyhedral

Vector: TypeAlias = np.ndarray[Any, np.dtype[np.float64]]

SOLVER_TOLERANCE = 1e-10
FEASIBILITY_TOLERANCE = 1e-9
_NAMED = 6
"""How many rounds a sentence names."""


@final
@dataclass(frozen=True, eq=False, repr=False)
class Infeasibility(Value):
    """A proof that no point of K keeps every constraint: row by row, the weighted sum is at least `bound` > 0 on all of K."""

    weights: Vector
    """Positive, of sum 1; one for each half-space that takes part."""
    rounds: np.ndarray[Any, np.dtype[np.int64]]
    """The round of the stream each half-space comes from."""
    rows: np.ndarray[Any, np.dtype[np.int64]]
    """Which rows of `stream[start:stop].constraints.halfspaces()` they are."""
    bound: float

    @property
    def sentence(self) -> str:
        """The verdict in words."""
        rounds, where = np.unique(self.rounds, return_inverse=True)
        shares = np.bincount(where, self.weights)
        heaviest = np.sort(np.argsort(-shares.round(9), kind="stable")[:_NAMED])
        named = ", ".join(str(rounds[i]) for i in heaviest)
        if len(rounds) == 1:
            which = f"that of round {named} is"
        elif len(rounds) <= _NAMED:
            which = f"those of rounds {named}, weighted {', '.join(f'{share:.3g}' for share in shares)}, add up to"
        else:
            which = f"those of rounds {named} and {len(rounds) - _NAMED} more, weighted, add up to"
        return f"No point of the set satisfies every constraint: {which} at least {self.bound:.3g} everywhere on it."


@final
@dataclass(frozen=True, eq=False, repr=False)
class Comparator(Value):
    """What is known of the best fixed point: lower <= its total loss <= upper."""

    point: Array | None
    """A point of K that keeps every constraint, in float64; None where none was found."""
    lower: float
    """Proved by the set's oracle; infinite where no point is feasible."""
    upper: float
    """The total loss of `point`, never below `lower`; infinite without one."""
    feasible: bool | None
    """Whether some point keeps every constraint; None where neither a point nor a proof was found."""
    infeasibility: Infeasibility | None = None


def best_in_hindsight(K: HasLMO, stream: Stream, start: int | None = None, stop: int | None = None) -> Comparator:
    """The best point of K over rounds `start` to `stop` of a stream, among those that keep every constraint of these rounds."""
    if not isinstance(stream, Stream):
        raise WrongType(f"The best point in hindsight is that of a Stream(losses, constraints), not of a {type(stream).__name__}.")
    part = stream[start:stop]
    task = _task(K, part)
    solved = _solved(task)
    if solved is not None:
        x, lam = solved
        lower = task.least(task.c, task.constant, lam)
        if _kept(task, part, x):
            return Comparator(frozen(x.reshape(K.shape)), lower, max(lower, float(task.c @ x) + task.constant), True)
        return Comparator(None, lower, math.inf, None)
    proof = _infeasibility(task, slice(start, stop).indices(len(stream))[0])
    if proof is not None:
        return Comparator(None, math.inf, math.inf, False, proof)
    return Comparator(None, task.least(task.c, task.constant, np.zeros(len(task.b))), math.inf, None)


class _Task(NamedTuple):
    """Minimise <c, x> + constant over the x in K with A x <= b, points flattened, A sparse; row i comes from `rounds[i]`."""

    K: HasLMO
    description: LinearDescription
    c: Vector
    constant: float
    A: Any
    b: Vector
    rounds: np.ndarray[Any, np.dtype[np.int64]]

    def least(self, c: Vector, constant: float, lam: Vector) -> float:
        """A lower bound on <c, x> + constant + <lam, A x - b> over K: one call of the oracle, less its error and the slack for rounding."""
        used = np.flatnonzero(lam)
        lam, A, b = lam[used], self.A[used, :], self.b[used]
        direction = _at_home(self.K, c + A.T @ lam)
        answer = self.K.answer(direction)
        value = constant - float(lam @ b) + answer.vertex.inner(direction)
        sizes, center = np.abs(c) + abs(A).T @ lam, np.abs(to_numpy(self.K.center)).reshape(-1)
        terms = abs(constant) + float(lam @ np.abs(b)) + float(sizes @ center) + self.K.radius * float(np.linalg.norm(sizes))
        return value - answer.error - 2 * (len(c) + len(lam)) * eps_of(direction) * terms


def _task(K: HasLMO, part: Stream) -> _Task:
    """The linear program of a set and some rounds; refused, naming what is missing, where they are not linear."""
    from scipy.sparse import csr_array

    needs = "The best point in hindsight is found by a linear program"
    if len(part) == 0:
        raise InvalidInput("There is no round between start and stop; the best point in hindsight needs at least one.")
    if K.shape != part.shape:
        raise WrongShape(f"The set has points of shape {K.shape}; the stream's functions take points of shape {part.shape}.")
    if not isinstance(part.losses, LinearTotal):
        raise NotSupported(f"{needs}; {type(part.losses).__name__} losses do not add up to a linear function.")
    if not isinstance(part.constraints, PiecewiseLinear):
        raise NotSupported(f"{needs}; {type(part.constraints).__name__} constraints are not half-spaces.")
    if not isinstance(K, Polyhedral):
        raise NotSupported(f"{needs}; {type(K).__name__} has no linear description.")
    c, constant = part.losses.total()
    A, b, rounds = part.constraints.halfspaces()
    return _Task(K, K.description(), c.reshape(-1), constant, csr_array(A, dtype=np.float64), b, rounds)


def _solved(task: _Task) -> tuple[Vector, Vector] | None:
    """The solver's point and the multipliers of A x <= b; None where it found no point. Rows, costs and u are scaled to size 1 for it."""
    u_of = task.description
    A, b = _lifted(u_of, task.A, task.b)
    sizes = _positive(np.asarray(abs(A).max(axis=1).todense()).reshape(-1))
    costs = _costs(u_of, task.c)
    cost, unit = float(_positive(np.abs(costs).max())), _unit(u_of)
    found = _linprog(costs / cost, _in_units(u_of, unit), A.multiply(1 / sizes[:, None]), b / sizes / unit)
    if found is None:
        return None
    u, lam = unit * found[0], found[1]
    x = u if u_of.lift is None else u_of.lift @ u
    return x if u_of.shift is None else x + u_of.shift, lam * cost / sizes


def _infeasibility(task: _Task, first: int) -> Infeasibility | None:
    """The proof that no point keeps every row, or None where the solver's weights prove nothing."""
    from scipy.sparse import csr_array, hstack

    A, b = _lifted(task.description, task.A, task.b)
    size = float(_positive(abs(A).max()))
    unit = _unit(task.description)
    description = _with_one_more(_in_units(task.description, unit))
    cost = np.append(np.zeros(A.shape[1]), 1.0)
    found = _linprog(cost, description, hstack([A / size, csr_array(-np.ones((len(b), 1)))]), b / size / unit)
    if found is None or found[1].max() <= 0:
        return None
    weights = np.where(found[1] > 1e-12 * found[1].max(), found[1], 0.0)
    weights /= weights.sum()
    bound = task.least(np.zeros(len(task.c)), 0.0, weights)
    rows = np.flatnonzero(weights)
    return Infeasibility(frozen(weights[rows]), frozen(first + task.rounds[rows]), frozen(rows), bound) if bound > 0 else None


def _kept(task: _Task, part: Stream, x: Vector) -> bool:
    """Whether x lies in K and keeps every constraint, by the set's own excess and the functions' own values."""
    point = _at_home(task.K, x)
    tolerance = max(FEASIBILITY_TOLERANCE, 100 * eps_of(point))
    size = float((abs(task.A) @ np.abs(x) + np.abs(task.b)).max())
    breach = float(to_numpy(part.constraints.values(point)).max())
    extent = max(task.K.radius, float(np.abs(x).max()))
    return task.K.excess(point) <= tolerance * extent and breach <= tolerance * size


def _linprog(cost: Vector, K: LinearDescription, A: Any, b: Vector) -> tuple[Vector, Vector] | None:
    """A minimiser u of <cost, u> over A u <= b within a description, and the multipliers of A u <= b; None where none was found."""
    from scipy.optimize import linprog
    from scipy.sparse import csr_array, vstack

    result = linprog(
        cost,
        A if K.A_ub is None else vstack([csr_array(K.A_ub), A]),
        b if K.b_ub is None else np.concatenate([K.b_ub, b]),
        K.A_eq,
        K.b_eq,
        bounds=np.column_stack([K.lower, K.upper]),
        method="highs",
        options={"primal_feasibility_tolerance": SOLVER_TOLERANCE, "dual_feasibility_tolerance": SOLVER_TOLERANCE},
    )
    return (result.x, np.maximum(0.0, -result.ineqlin.marginals[-len(b) :])) if result.status == 0 else None


def _unit(K: LinearDescription) -> float:
    """The size of the u of a description."""
    bounds = np.abs(np.concatenate([K.lower, K.upper]))
    return float(_positive(np.max(bounds, where=np.isfinite(bounds), initial=0.0)))


def _in_units(K: LinearDescription, unit: float) -> LinearDescription:
    """A description of u/unit."""

    def scaled(b: Vector | None) -> Vector | None:
        return None if b is None else b / unit

    return K._replace(lower=K.lower / unit, upper=K.upper / unit, b_eq=scaled(K.b_eq), b_ub=scaled(K.b_ub))


def _lifted(K: LinearDescription, A: Any, b: Vector) -> tuple[Any, Vector]:
    """A x <= b as inequalities in the u of a description."""
    from scipy.sparse import csr_array

    return A if K.lift is None else A @ csr_array(K.lift), b if K.shift is None else b - A @ K.shift


def _costs(K: LinearDescription, c: Vector) -> Vector:
    """<c, x> as costs of the u of a description."""
    return c if K.lift is None else K.lift.T @ c


def _with_one_more(K: LinearDescription) -> LinearDescription:
    """A description with one more, free variable."""
    from scipy.sparse import csr_array, hstack

    def wider(A: Any) -> Any:
        return None if A is None else hstack([csr_array(A), csr_array((A.shape[0], 1))])

    return K._replace(lower=np.append(K.lower, -np.inf), upper=np.append(K.upper, np.inf), A_eq=wider(K.A_eq), A_ub=wider(K.A_ub))


def _at_home(K: HasLMO, x: Vector) -> Array:
    """A flattened point in the shape and library of a set, in float64 where that is NumPy."""
    x = x.reshape(K.shape)
    return x if type(K.center) is np.ndarray else like(x, K.center)


def _positive(sizes: Any) -> Any:
    """Sizes to divide by: 1 in place of 0."""
    return np.where(sizes > 0, sizes, 1.0)
