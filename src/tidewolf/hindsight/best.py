"""The best fixed point in hindsight, as a bracket, or the proof that there is none.

    min { sum_t f_t(x) : x in K, g_t(x) <= 0 for every t }

Methods are not trusted: they propose a point, multipliers and weights, and the task checks what
these are worth with the functions and the set themselves (task.py).

    lp              linear losses, or maxima of pieces, under half-spaces, on polyhedral sets
    sdp             linear losses or squared errors under half-spaces on sets of matrices
    admm            squared errors on entries within bounds, if K has an exact projection
    bracket         linear losses under half-spaces on any other set, through its oracle alone
    cutting_planes  losses of a user's own, or of very many pieces, under half-spaces
    newton          curved losses or constraints

Squared errors that are constraints leave no interior, and are solved as equations. A policy
{x_t = sum_j phi_tj W_j} of a context is a point W of K x .. x K (policy.py).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import final

import numpy as np

from tidewolf.core.arrays import frozen
from tidewolf.core.batch import Batch, Stream
from tidewolf.core.errors import InvalidInput, NotSupported, WrongShape, WrongType
from tidewolf.core.oracle import HasLMO, as_set
from tidewolf.core.piecewise import LinearTotal, PiecewiseLinear
from tidewolf.core.types import Array, Floats, Int64s
from tidewolf.core.values import Value
from tidewolf.functions.autograd import Autograd
from tidewolf.functions.combined import leaves
from tidewolf.functions.custom import Custom
from tidewolf.functions.entries import Range, Squared
from tidewolf.functions.support import own_functions
from tidewolf.hindsight import cutting_planes
from tidewolf.hindsight.admm import AlternatingDirections
from tidewolf.hindsight.bracket import LevelBundle
from tidewolf.hindsight.lp import LinearProgramming
from tidewolf.hindsight.newton import NewtonSteps
from tidewolf.hindsight.policy import HasFeatures, policy_problem
from tidewolf.hindsight.sdp import SemidefiniteProgramming
from tidewolf.hindsight.task import Method, Solution, Task, flattened, parts_of

METHODS: tuple[Method, ...] = (
    LinearProgramming(),
    AlternatingDirections(),
    SemidefiniteProgramming(),
    LevelBundle(),
    NewtonSteps(),
)
"""What may find the best point, in the order of trying."""

_ENOUGH = 1e-6
"""A larger gap that cuts leave between the bounds of pieces is left to a linear program."""


@final
@dataclass(frozen=True, eq=False, repr=False)
class Infeasibility(Value):
    """A proof that no point of K keeps every constraint: row by row, the weighted sum is at least
    `bound` > 0 on all of K.
    """

    weights: Floats
    """Positive, of sum 1; one for each half-space, or curved constraint, that takes part."""
    rounds: Int64s
    """The round of the stream each half-space comes from."""
    rows: Int64s
    """Which rows of `stream[start:stop].constraints.halfspaces()` they are; which of its rounds
    where those are no half-spaces.
    """
    bound: float


@final
@dataclass(frozen=True, eq=False, repr=False)
class Comparator(Value):
    """What is known of the best fixed point, or policy: lower <= its total loss <= upper.

    Parameters
    ----------
    point : array or None
        A point of K that keeps every constraint, in float64; None where none was found. With a
        context a point for each cell, (cells, *shape), whose mixes keep it.
    lower : float
        Proved by the set's oracle, and as sure as that is of its error; infinite where no point is
        feasible.
    upper : float
        The total loss of `point`, never below `lower`; infinite without one.
    feasible : bool or None
        Whether some point keeps every constraint; None where neither a point nor a proof was found.
    infeasibility : Infeasibility, default None
        The proof that no point keeps every constraint, where there is one.
    method : str, default ""
        What found it, in words; whatever that is, the bounds were proved without it.

    Examples
    --------
    >>> K = tw.sets.Simplex(2)
    >>> losses = tw.functions.Linear([[1.0, 2.0]] * 4)
    >>> stream = tw.Stream(losses, tw.functions.Capacity([[0.75, 1.0]] * 4))
    >>> best = tw.best_in_hindsight(K, stream)
    >>> best.feasible, best.method
    (True, 'linear program')
    """

    point: Array | None
    lower: float
    upper: float
    feasible: bool | None
    infeasibility: Infeasibility | None = None
    method: str = ""


def best_in_hindsight(
    K: HasLMO,
    stream: Stream,
    start: int | None = None,
    stop: int | None = None,
    context: HasFeatures | None = None,
) -> Comparator:
    """The best fixed point over some rounds of a stream, or the best policy of a context, among
    those that keep every constraint.

    Parameters
    ----------
    K : set
        Where the point is to lie.
    stream : Stream
        The losses and constraints of the rounds.
    start : int, default None
        The first round that counts, from 0; None: the first of the stream.
    stop : int, default None
        The round after the last that counts; None: to the end.
    context : Context, default None
        Such as context.Season(96): in place of one point one for each of its cells, mixed by the
        features of the round; `point` then has shape (cells, *shape of a point). None: one point.

    Returns
    -------
    Comparator
        The point, and between which two numbers the least total loss lies; or the proof that no
        point keeps every constraint.

    Raises
    ------
    NotSupported
        Where no method is known: limits that are a user's own functions, such losses under curved
        limits or with a context, or slopes of extreme sizes.
    InvalidInput
        Where there is no round between `start` and `stop`, or one of which the context knows
        nothing.
    WrongShape
        Where the stream's functions take points of another shape than the set has.

    Examples
    --------
    >>> K = tw.sets.Simplex(2)
    >>> losses = tw.functions.Linear([[1.0, 2.0]] * 4)
    >>> stream = tw.Stream(losses, tw.functions.Capacity([[0.75, 1.0]] * 4))
    >>> best = tw.best_in_hindsight(K, stream)
    >>> best.point, round(best.upper, 6)
    (array([0.75, 0.25]), 5.0)
    >>> losses = tw.functions.Linear([[1.0, 2.0], [2.0, 1.0]] * 2)
    >>> by_turns = tw.experts.Season(period=2, cells=2)
    >>> best = tw.best_in_hindsight(K, tw.Stream(losses), context=by_turns)
    >>> best.point, round(best.upper, 6)
    (array([[1., 0.],
           [0., 1.]]), 4.0)
    """
    if not isinstance(stream, Stream):
        raise WrongType(f"Expected a Stream(losses, constraints), not a {type(stream).__name__}.")
    part, first = stream[start:stop], slice(start, stop).indices(len(stream))[0]
    if len(part) == 0:
        raise InvalidInput("There is no round between start and stop; give at least one.")
    if as_set(K, "The best point in hindsight").shape != part.shape:
        raise WrongShape(f"Expected functions of points of shape {K.shape}, not {part.shape}.")
    if context is None:
        return best_point(K, part.losses, part.constraints, first)
    for leaf in (*_callables(part.losses), *_callables(part.constraints)):
        raise NotSupported(
            f"The best policy in hindsight is not known for {type(leaf).__name__} functions."
        )
    problem = policy_problem(K, part, stream, first, context)
    known = best_point(problem.K, problem.stream.losses, problem.stream.constraints, first)
    if known.point is None:
        return known
    return replace(known, point=frozen(problem.policy(known.point)))


def best_point(K: HasLMO, losses: Batch, constraints: Batch, first: int = 0) -> Comparator:
    """The best point for these losses among those that satisfy these constraints, which need not
    be as many; `first` is the round of the first of them.
    """
    own = _is_own(losses, constraints)
    linear = isinstance(losses, LinearTotal) and not own
    if linear and isinstance(constraints, Squared) and (constraints.places >= 0).any():
        return _squares(K, losses, constraints, first)
    task = Task.of(K, losses, constraints, own=own)
    if not own and (task.pieces is None or len(task.pieces.b) <= cutting_planes.MANY):
        return _solved(task, first)
    cuts = cutting_planes.CuttingPlanes(task)
    start = _solved(cuts.linear_task, first)
    if start.point is None:
        return start
    known = _checked(task, cuts.minimise(flattened(start.point)), first)
    lower = min(max(known.lower, start.lower), known.upper)
    if not own and known.upper - lower > _ENOUGH * max(abs(known.upper), abs(lower)):
        return _solved(task, first)
    return replace(known, lower=lower, method=cutting_planes.METHOD)


def _callables(batch: Batch) -> tuple[Batch, ...]:
    return tuple(leaf for leaf in leaves(batch) if isinstance(leaf, Custom | Autograd))


def _is_own(losses: Batch, constraints: Batch) -> bool:
    """Whether losses are a user's own, of which only values and subgradients are known; refused if
    the best point cannot be known then.
    """
    flat = all(isinstance(part, PiecewiseLinear) for part in parts_of(constraints))
    for each in (*_callables(constraints), *(() if flat else _callables(losses))):
        raise NotSupported(
            f"The best point in hindsight is not known for {type(each).__name__} functions as "
            "constraints, or as losses under curved constraints; affine ones, or maxima, are."
        )
    known = LinearTotal | PiecewiseLinear
    return flat and any(not isinstance(one, known) for one in own_functions(losses))


def _solved(task: Task, first: int) -> Comparator:
    """The task by the first method that decides, or the best that did not."""
    best, easier = None, task.for_solvers()
    for method in METHODS:
        if not method.supports(task):
            continue
        proposed = method.solve(easier) or Solution(None, np.zeros(len(task.b)))
        known = replace(_checked(task, proposed, first), method=method.name)
        if known.feasible is not None:
            return known
        best = known if best is None or known.lower > best.lower else best
    assert best is not None
    return best


def _squares(K: HasLMO, losses: Batch, squares: Squared, first: int) -> Comparator:
    """Linear losses under squared errors that are to be 0: equations, of two half-spaces each.

    Weights that show that no point satisfies those show it of the squares: with W_t the norm of the
    weights of round t and W = sum_t W_t, by Cauchy and by Jensen

        bound <= sum_t W_t sqrt(2 g_t),    so    sum_t (W_t/W) g_t >= (bound/W)^2/2.
    """
    asked = np.flatnonzero((squares.places >= 0).any(axis=1))
    targets = squares.targets[asked, ...]
    equations = Range(targets, targets, squares.places[asked], squares.sides)
    known = _solved(Task.of(K, losses, equations), 0)
    if (proof := known.infeasibility) is None:
        return known
    where, index = np.unique(asked[proof.rounds], return_inverse=True)
    each = np.sqrt(np.bincount(index, proof.weights**2))
    shares, bound = each / each.sum(), (proof.bound / float(each.sum())) ** 2 / 2.0
    proof = Infeasibility(frozen(shares), frozen(first + where), frozen(where), bound)
    return replace(known, infeasibility=proof)


def _checked(task: Task, proposed: Solution, first: int) -> Comparator:
    """What a method's proposals are worth."""
    if (proof := _infeasibility(task, proposed, first)) is not None:
        return Comparator(None, math.inf, math.inf, False, proof)
    lower, point = task.lower_bound(proposed), proposed.point
    if point is not None and task.is_feasible(point):
        upper = max(lower, task.total(point))
        return Comparator(frozen(point.reshape(task.K.shape)), lower, upper, True)
    return Comparator(None, lower, math.inf, None)


def _infeasibility(task: Task, proposed: Solution, first: int) -> Infeasibility | None:
    """The proof that no point is feasible, or None if the weights prove nothing."""
    if proposed.weights is None or proposed.weights.max() <= 0.0:
        return None
    weights = proposed.weights
    weights = np.where(weights > 1e-12 * weights.max(), weights, 0.0)  # negligible ones left out
    shares = weights / weights.sum()
    bound, _ = task.least(task.below_constraints(shares, proposed.anchor))
    rows = np.flatnonzero(shares)
    if not bound > 0:
        return None
    rounds = first + task.rounds[rows]
    return Infeasibility(frozen(shares[rows]), frozen(rounds), frozen(rows), bound)
