"""The best fixed point in hindsight, as a bracket, or the proof that there is none.

    min { sum_t f_t(x) : x in K, g_t(x) <= 0 for every t }

Mostly losses add up to <c, x> + constant and constraints are half-spaces <a_i, x> <= b_i. A set
with a linear description makes it a linear program (lp.py, many_rows.py), a set known by
eigenvalues or singular values a semidefinite one (sdp.py); any other set is asked through its
oracle alone (bracket.py). Methods are believed nothing: they propose a point, multipliers, weights,
and what these are worth is found with the functions and the set themselves (task.py): `lower` by
one call of the oracle, `upper` at a point that was seen to be feasible, else infinite.

No such point. Weights w >= 0 that sum to 1 with min_{x in K} sum_i w_i (<a_i, x> - b_i) > 0, by one
call of the oracle too: at every x in K the rounds of these rows average above 0, so one of them is
breached.

Losses that are maxima of affine pieces, such as the fullest link, make it a linear program too,
over a set with a linear description (piecewise_task.py, epigraph.py, piece_bundle.py).

A policy {x_t = sum_j phi_tj W_j} of a context is a point W of K x .. x K (policy.py).

Losses of a user's own, known by values and subgradients alone, under half-spaces or none: a bundle
of gradients (own_losses.py).

Curved losses or constraints: the same from the Lagrangian at a point, less its Frank-Wolfe gap
(curved_task.py, newton.py); squared errors on entries within bounds, over a set with an exact
projection, have a method of their own to find it (admm.py). Squared errors that are constraints
leave no room, and are taken as the equations they are.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import final

import numpy as np

from tidewolf.core.arrays import frozen
from tidewolf.core.batch import Stream
from tidewolf.core.errors import WrongType
from tidewolf.core.oracle import HasLMO
from tidewolf.core.types import Array, Floats, Int64s
from tidewolf.core.values import Value
from tidewolf.functions.base import LinearTotal, PiecewiseLinear
from tidewolf.functions.entries import Range, Squared
from tidewolf.hindsight.admm import AlternatingDirections
from tidewolf.hindsight.bracket import LevelBundle
from tidewolf.hindsight.curved_task import CurvedTask
from tidewolf.hindsight.epigraph import EpigraphProgramming
from tidewolf.hindsight.linear_task import LinearTask
from tidewolf.hindsight.lp import LinearProgramming
from tidewolf.hindsight.many_rows import FewOfManyRows
from tidewolf.hindsight.newton import NewtonSteps
from tidewolf.hindsight.own_losses import METHOD, OwnBundle, OwnTask, is_own, require_policy
from tidewolf.hindsight.piece_bundle import PieceBundle
from tidewolf.hindsight.piecewise_task import PiecewiseTask
from tidewolf.hindsight.policy import HasFeatures, policy_problem
from tidewolf.hindsight.sdp import SemidefiniteProgramming
from tidewolf.hindsight.task import HindsightTask, Method, Solution, flattened, require_rounds
from tidewolf.sets.base import Polyhedral

METHODS: tuple[Method, ...] = (
    LinearProgramming(),
    FewOfManyRows(),
    PieceBundle(),
    EpigraphProgramming(),
    AlternatingDirections(),
    SemidefiniteProgramming(),
    LevelBundle(),
    NewtonSteps(),
)
"""What may find the best point, in the order of trying."""

_NAMED = 6
"""How many rounds a sentence names."""


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

    @property
    def sentence(self) -> str:
        """The verdict in words."""
        rounds, where = np.unique(self.rounds, return_inverse=True)
        shares = np.bincount(where, self.weights)
        heaviest = np.sort(np.argsort(-shares.round(9), kind="stable")[:_NAMED])
        named = ", ".join(str(rounds[i] + 1) for i in heaviest)
        if len(rounds) == 1:
            which = f"that of round {named} is"
        elif len(rounds) <= _NAMED:
            which = (
                f"those of rounds {named}, weighted "
                f"{', '.join(f'{share:.3g}' for share in shares)}, add up to"
            )
        else:
            which = f"those of rounds {named} and {len(rounds) - _NAMED} more, weighted, add up to"
        return (
            f"No point of the set satisfies every constraint: {which} at least {self.bound:.3g} "
            "everywhere on it."
        )


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
        raise WrongType(
            "The best point in hindsight is that of a Stream(losses, constraints), not of a "
            f"{type(stream).__name__}."
        )
    part = stream[start:stop]
    first = slice(start, stop).indices(len(stream))[0]
    require_rounds(K, part)
    if context is None:
        return _own(K, part, first) if is_own(part) else _best(K, part, first)
    require_policy(part)
    problem = policy_problem(K, part, stream, first, context)
    known = _best(problem.K, problem.stream, first)
    if known.point is None:
        return known
    return replace(known, point=frozen(problem.policy(known.point)))


def _best(K: HasLMO, part: Stream, first: int) -> Comparator:
    """The best point over these rounds, of which the first is that of the stream."""
    linear = isinstance(part.losses, LinearTotal)
    if linear and isinstance(part.constraints, PiecewiseLinear):
        return _solved(LinearTask.of(K, part), first)
    pieces = isinstance(part.losses, PiecewiseLinear)
    if pieces and isinstance(part.constraints, PiecewiseLinear) and isinstance(K, Polyhedral):
        return _solved(PiecewiseTask.of(K, part), first)
    if linear and isinstance(part.constraints, Squared) and (part.constraints.places >= 0).any():
        return _squares(K, part, part.constraints, first)
    return _solved(CurvedTask.of(K, part), first)


def _own(K: HasLMO, part: Stream, first: int) -> Comparator:
    """The best point for losses that can only be looked at."""
    task = OwnTask.of(K, part)
    cut = task.cut(flattened(task.K.center))
    known = _solved(task.linearised(cut), first)
    if known.point is None:
        return known
    found = OwnBundle(task, cut).minimise(flattened(known.point), known.lower)
    point = frozen(found.point.reshape(task.K.shape))
    return Comparator(point, found.lower, found.upper, True, method=METHOD)


def _solved(task: HindsightTask, first: int) -> Comparator:
    """The task by the first method that decides, or the best that did not."""
    best, easier = None, task.for_solvers()
    for method in METHODS:
        if not method.supports(task):
            continue
        proposed = method.solve(easier) or Solution(None, np.zeros(len(task.rounds)))
        known = replace(_checked(task, proposed, first), method=method.name)
        if known.feasible is not None:
            return known
        best = known if best is None or known.lower > best.lower else best
    assert best is not None
    return best


def _squares(K: HasLMO, part: Stream, squares: Squared, first: int) -> Comparator:
    """Linear losses under squared errors that are to be 0: equations, of two half-spaces each.

    Weights that show that no point keeps those show it of the squares: with W_t the norm of the
    weights of round t and W = sum_t W_t, by Cauchy and by Jensen

        bound <= sum_t W_t sqrt(2 g_t),    so    sum_t (W_t/W) g_t >= (bound/W)^2/2.
    """
    asked = (squares.places >= 0).any(axis=1)
    # a round without entries says nothing: the first one that has some comes twice
    rounds = np.where(asked, np.arange(len(squares)), np.argmax(asked))
    targets = squares.targets[rounds, ...]
    equations = Range(targets, targets, squares.places[rounds], squares.sides)
    known = _solved(LinearTask.of(K, Stream(part.losses, equations)), first)
    if (proof := known.infeasibility) is None:
        return known
    where, index = np.unique(rounds[proof.rounds - first], return_inverse=True)
    each = np.sqrt(np.bincount(index, proof.weights**2))
    shares, bound = each / each.sum(), (proof.bound / float(each.sum())) ** 2 / 2.0
    proof = Infeasibility(frozen(shares), frozen(first + where), frozen(where), bound)
    return replace(known, infeasibility=proof)


def _checked(task: HindsightTask, proposed: Solution, first: int) -> Comparator:
    """What a method's proposals are worth."""
    proof = _infeasibility(task, proposed, first)
    if proof is not None:
        return Comparator(None, math.inf, math.inf, False, proof)
    lower, point = task.lower_bound(proposed.lam, proposed.anchor), proposed.point
    if point is not None and task.is_feasible(point):
        upper = max(lower, task.total(point))
        return Comparator(frozen(point.reshape(task.K.shape)), lower, upper, True)
    return Comparator(None, lower, math.inf, None)


def _infeasibility(task: HindsightTask, proposed: Solution, first: int) -> Infeasibility | None:
    """The proof that no point keeps every limit, or None where the weights prove nothing."""
    shares = None if proposed.weights is None else _shares(proposed.weights)
    if shares is None:
        return None
    bound, rows = task.limits_bound(shares, proposed.anchor), np.flatnonzero(shares)
    if not bound > 0:
        return None
    rounds = first + task.rounds[rows]
    return Infeasibility(frozen(shares[rows]), frozen(rounds), frozen(rows), bound)


def _shares(weights: Floats) -> Floats | None:
    """Weights that sum to 1, negligible ones left out; None where there are none."""
    if weights.max() <= 0.0:
        return None
    weights = np.where(weights > 1e-12 * weights.max(), weights, 0.0)
    return np.asarray(weights / weights.sum())
