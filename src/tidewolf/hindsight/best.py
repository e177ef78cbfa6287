"""The best fixed point in hindsight, as a bracket, or the proof that there is none.

    min { sum_t f_t(x) : x in K, g_t(x) <= 0 for every t }

Methods are not trusted: they propose a point, multipliers and weights, and the task checks what
these are worth with the functions and the set themselves (task.py).

    lp              linear losses, or maxima of pieces, under half-spaces, on polyhedral sets
    sdp             linear losses or squared errors under half-spaces on sets of matrices
    admm            squared errors on entries within bounds, if K has an exact projection
    cutting_planes  losses of a user's own, or of very many pieces, under half-spaces
    newton          curved losses or constraints, and linear ones on any other set, through its
                    oracle alone

Squared errors that are constraints leave no interior, and are solved as equations. A policy
{x_t = sum_j phi_tj W_j} of a context is a point W of K x .. x K (policy.py).

If no point satisfies every constraint, the least possible violation is known instead:

    least violation       min { sum_t max(0, g_t(x)) : x in K }               as a bracket
    rounds kept        S = the rounds that the point x* of the least violation keeps
    their best point   min { sum_t f_t(x) : x in K, g_t(x) <= 0 for t in S }    losses of all rounds

The first is the best point in hindsight of the losses max(0, g_t), so every method does
for it: an exact linear program where sets and limits are linear, bundles where rounds are very
many, Newton steps over the vertices of an oracle elsewhere; its lower end is proved by the set's
oracle. x* itself keeps the rounds of S, so the last one has a point. Lower ends hold for every
fixed point:  sum_t max(0, g_t(x)) >= lower  for all x in K.

Very long streams get a bracket that costs next to nothing. Weights w of rows, of sum 1, that prove
sum_i w_i (<a_i, x> - b_i) >= bound > 0 on all of K prove, with W_t those of round t,

    sum_t max(0, g_t(x))  >=  sum_t W_t max(0, g_t(x)) / max_t W_t  >=  bound / max_t W_t,

and the centre of K has some violation.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, final
from weakref import WeakKeyDictionary

import numpy as np

from tidewolf.core.arrays import frozen
from tidewolf.core.batch import Batch, Stream, Unlimited, as_constraints
from tidewolf.core.errors import InvalidInput, NotSupported, WrongShape, WrongType
from tidewolf.core.lazy import sp
from tidewolf.core.oracle import HasLMO, as_set
from tidewolf.core.piecewise import LinearTotal, PiecewiseLinear
from tidewolf.core.types import Array, Floats, Int64s
from tidewolf.core.values import Value
from tidewolf.functions import entries, support
from tidewolf.functions.autograd import Autograd, Custom
from tidewolf.functions.combined import Max, chained, leaves
from tidewolf.functions.linear import Affine
from tidewolf.hindsight import admm, cutting_planes, newton, sdp
from tidewolf.hindsight.best_point import LinearProgramming
from tidewolf.hindsight.policy import policy_problem
from tidewolf.hindsight.task import FEASIBILITY_TOLERANCE, Solution, Task, flattened, parts_of

# What may find the best point, in the order of trying: `supports(task)` says whether it is for a
# task, `solve(task)` gives what it found or None, and `name` is what `Comparator.method` has.
METHODS: tuple[Any, ...] = (
    LinearProgramming(),
    admm.AlternatingDirections(),
    sdp.SemidefiniteProgramming(),
    newton.LevelBundle(),
    newton.NewtonSteps(),
)

# A larger gap that cuts leave between the bounds of pieces is left to a linear program.
_ENOUGH = 1e-6
# Entries of all rounds together from which on the bracket is the one that costs next to nothing.
MOST_NUMBERS = 10_000_000


@final
@dataclass(frozen=True, eq=False, repr=False)
class Infeasibility(Value):
    """A proof that no point of K satisfies every constraint: row by row, the weighted sum is at
    least
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
    """The best fixed decision in hindsight (or policy), bracketed: lower <= its total loss <=
    upper.

    Parameters
    ----------
    point : array or None
        A point of K that satisfies every constraint, in float64; None if none was found. With a
        context a point for each cell, (cells, *shape), whose mixes keep it.
    lower : float
        Proved by the set's oracle, and as sure as that is of its error; infinite if no point is
        feasible.
    upper : float
        The total loss of `point`, never below `lower`; infinite without one.
    feasible : bool or None
        Whether some point satisfies every constraint; None if neither a point nor a proof was
        found.
    infeasibility : Infeasibility, default None
        The proof that no point satisfies every constraint, if there is one.
    method : str, default ""
        The method that found it, in words; the bounds do not depend on it.

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
    context: Any = None,
) -> Comparator:
    """The best fixed point over some rounds of a stream, or the best policy of a context, among
    those that satisfy every constraint.

    Parameters
    ----------
    K : set
        The set that contains the point.
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
        point satisfies every constraint.

    Raises
    ------
    NotSupported
        If no method is known: limits that are a user's own functions, such losses under curved
        limits or with a context, or slopes of extreme sizes.
    InvalidInput
        If there is no round between `start` and `stop`, or one of which the context knows
        nothing.
    WrongShape
        If the stream's functions take points of another shape than the set has.

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
    if part.budgets:  # what bounds compare with keeps the plan in every round
        constraints = as_constraints([part.constraints, *part.budgets.values()], part.losses)
        part = Stream(part.losses, constraints, time=part.time, context=part.context)
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
    product, losses, limits, used, policy = policy_problem(K, part, stream, first, context)
    known = best_point(product, losses, limits, first)
    if known.point is None:
        return known
    policy[used] = known.point.reshape(len(used), *K.shape)
    return replace(known, point=frozen(policy + 0.0))


def best_point(K: HasLMO, losses: Batch, constraints: Batch, first: int = 0) -> Comparator:
    """The best point for these losses among those that satisfy these constraints, which need not
    be as many; `first` is the round of the first of them.
    """
    own = _is_own(losses, constraints)
    linear = isinstance(losses, LinearTotal) and not own
    if linear and isinstance(constraints, entries.Squared) and (constraints.places >= 0).any():
        return _squares(K, losses, constraints, first)
    task = Task.of(K, losses, constraints, own=own)
    if not own and (task.pieces is None or len(task.pieces.b) <= cutting_planes.MANY):
        return _solved(task, first)
    cuts = cutting_planes.CuttingPlanes(task)
    below = cuts.cuts[0]  # at the center, in place of the losses: at most as much
    start = _solved(replace(task, c=below.slope, constant=below.offset, pieces=None), first)
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
    return flat and any(not isinstance(one, known) for one in support.own_functions(losses))


def _solved(task: Task, first: int) -> Comparator:
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


def _squares(K: HasLMO, losses: Batch, squares: entries.Squared, first: int) -> Comparator:
    """Linear losses under squared errors that are to be 0: equations, of two half-spaces each.

    Weights that show that no point satisfies those show it of the squares: with W_t the norm of the
    weights of round t and W = sum_t W_t, by Cauchy and by Jensen

        bound <= sum_t W_t sqrt(2 g_t),    so    sum_t (W_t/W) g_t >= (bound/W)^2/2.
    """
    asked = np.flatnonzero((squares.places >= 0).any(axis=1))
    targets = squares.targets[asked, ...]
    equations = entries.Range(targets, targets, squares.places[asked], squares.sides)
    known = _solved(Task.of(K, losses, equations), 0)
    if (proof := known.infeasibility) is None:
        return known
    where, index = np.unique(asked[proof.rounds], return_inverse=True)
    each = np.sqrt(np.bincount(index, proof.weights**2))
    shares, bound = each / each.sum(), (proof.bound / float(each.sum())) ** 2 / 2.0
    proof = Infeasibility(frozen(shares), frozen(first + where), frozen(where), bound)
    return replace(known, infeasibility=proof)


def _checked(task: Task, proposed: Solution, first: int) -> Comparator:
    if (proof := _infeasibility(task, proposed, first)) is not None:
        return Comparator(None, math.inf, math.inf, False, proof)
    lower, point = task.lower_bound(proposed), proposed.point
    if point is not None and task.is_feasible(point):
        upper = max(lower, task.total(point))
        return Comparator(frozen(point.reshape(task.K.shape)), lower, upper, True)
    return Comparator(None, lower, math.inf, None)


def _infeasibility(task: Task, proposed: Solution, first: int) -> Infeasibility | None:
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


# --- the least violation --------------------------------------------------------------------------


@final
@dataclass(frozen=True, eq=False, repr=False)
class LeastBreach(Value):
    """What is known if no point satisfies every constraint.

    Parameters
    ----------
    lower : float
        Every fixed point breaks limits by at least so much in all.
    upper : float
        One breaks them by so much.
    point : array
        That one.
    kept : array of int
        The rounds, counted from 0, whose limits it keeps.
    rounds : int
        How many rounds there are.
    best : Comparator
        The best point of all that keep those rounds, over the losses of every round.

    Examples
    --------
    >>> K = tw.sets.Simplex(2)
    >>> limits = tw.functions.Capacity([[0.25, 1.0], [1.0, 0.5], [1.0, 0.5]])
    >>> stream = tw.Stream(tw.functions.Linear([[1.0, 2.0]] * 3), limits)
    >>> found = tw.run(tw.LyapunovDescent(K), stream).least_breach
    >>> round(found.lower, 6), round(found.upper, 6), found.kept
    (0.25, 0.25, array([1, 2]))
    >>> found.best.point
    array([1., 0.])
    """

    lower: float
    upper: float
    point: Array
    kept: Int64s
    rounds: int
    best: Comparator


def least_breach(K: HasLMO, stream: Stream, proof: Infeasibility | None = None) -> LeastBreach:
    """The least violation of all rounds by one point, the rounds that it keeps, and their best
    point.

    Parameters
    ----------
    K : set
        The set that contains the point.
    stream : Stream
        The losses and constraints of the rounds.
    proof : Infeasibility, default None
        That no point satisfies every constraint, where it is known: very long streams are answered
        from it.

    Returns
    -------
    LeastBreach
        The bracket, its point, the rounds kept, and the best point that keeps them.

    Raises
    ------
    NotSupported
        If no exact method is known: Custom functions, or slopes of extreme sizes.
    """
    if (found := _known.get(stream)) is None or found[0] is not K:
        found = _known[stream] = K, _computed(K, stream, proof)
    return found[1]


# What was found of streams that are still there: the runs of one problem share them.
_known = WeakKeyDictionary[Stream, tuple[HasLMO, LeastBreach]]()


def _computed(K: HasLMO, stream: Stream, proof: Infeasibility | None) -> LeastBreach:
    limits, count, point, lower = stream.constraints, len(stream), K.center, 0.0
    if proof is not None:
        _, where = np.unique(proof.rounds, return_inverse=True)
        lower = proof.bound / float(np.bincount(where, proof.weights).max())
    if count * math.prod(K.shape) <= MOST_NUMBERS:
        flat = len(K.shape) == 1 and isinstance(limits, PiecewiseLinear)
        zeros = sp.csr_array((count, *K.shape)) if flat else np.zeros((count, *K.shape))
        positive_part = Max(limits, Affine(zeros, np.zeros(count)))
        found = best_point(K, positive_part, Unlimited(K.shape, count))
        lower = max(lower, found.lower)
        point = point if found.point is None else found.point
    values = flattened(limits.values(point))
    upper = float(np.maximum(values, 0.0).sum())
    for most in (FEASIBILITY_TOLERANCE * (float(np.abs(values).max(initial=0.0)) or 1.0), 0.0):
        kept = values <= most
        ends = [0, *(np.flatnonzero(np.diff(kept)) + 1).tolist(), count]
        runs = [limits.view(slice(*run)) for run in pairwise(ends) if kept[run[0]]]
        best = best_point(K, stream.losses, chained(runs) if runs else Unlimited(limits.shape))
        if best.point is not None:
            break
    else:  # x* keeps the last ones, whatever a solver makes of them
        total = float(flattened(stream.losses.values(point)).sum())
        how = "the point of least violation"
        best = Comparator(frozen(point), -math.inf, total, True, None, how)
    return LeastBreach(min(lower, upper), upper, point, frozen(np.flatnonzero(kept)), count, best)
