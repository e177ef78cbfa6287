"""The best fixed point in hindsight, as a bracket, or the proof that there is none.

    min { sum_t f_t(x) : x in K, g_t(x) <= 0 for every t }

Mostly losses add up to <c, x> + constant and constraints are half-spaces <a_i, x> <= b_i. A set
with a linear description makes it a linear program (linear_program.py), a set known by eigenvalues
or singular values a semidefinite
one (semidefinite.py); any other set is asked through its oracle alone (bracket.py).
Solvers are believed nothing: they propose a point,
multipliers, weights, and what these are worth is found with the functions and the set themselves
(task.py): `lower` by one call of the oracle, `upper` at a point that was seen to be feasible, else
infinite.

No such point. Weights w >= 0 that sum to 1 with min_{x in K} sum_i w_i (<a_i, x> - b_i) > 0, by one
call of the oracle too:
at every x in K the rounds of these rows average above 0, so one of them is breached.

Curved losses or constraints: the same from the Lagrangian at a point, less its Frank-Wolfe gap
(curved.py); squared errors on entries within bounds, over a set with an exact projection, have a
method of their own to find it (splitting.py).
Squared errors that are constraints leave no room, and are taken as the equations they are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
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
from tidewolf.functions.range import Range
from tidewolf.functions.squared import Squared
from tidewolf.hindsight import admm as splitting
from tidewolf.hindsight import bracket
from tidewolf.hindsight import lp as linear_program
from tidewolf.hindsight import newton as curved
from tidewolf.hindsight import sdp as semidefinite
from tidewolf.hindsight.newton import Curved, Found
from tidewolf.hindsight.task import Guess, Task, require_rounds, task_of
from tidewolf.sets.base import Polyhedral

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
        named = ", ".join(str(rounds[i]) for i in heaviest)
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
    """What is known of the best fixed point: lower <= its total loss <= upper."""

    point: Array | None
    """A point of K that keeps every constraint, in float64; None where none was found."""
    lower: float
    """Proved by the set's oracle, and as sure as that is of its error; infinite where no point is
    feasible.
    """
    upper: float
    """The total loss of `point`, never below `lower`; infinite without one."""
    feasible: bool | None
    """Whether some point keeps every constraint; None where neither a point nor a proof was
    found.
    """
    infeasibility: Infeasibility | None = None
    method: str = ""
    """What found it, in words; whatever that is, the bounds were proved without it."""


def best_in_hindsight(
    K: HasLMO, stream: Stream, start: int | None = None, stop: int | None = None
) -> Comparator:
    """The best point of K over rounds `start` to `stop` of a stream, among those that keep every
    constraint of these rounds.
    """
    if not isinstance(stream, Stream):
        raise WrongType(
            "The best point in hindsight is that of a Stream(losses, constraints), not of a "
            f"{type(stream).__name__}."
        )
    part = stream[start:stop]
    first = slice(start, stop).indices(len(stream))[0]
    require_rounds(K, part)
    if not isinstance(part.losses, LinearTotal):
        return _curved(K, part, first)
    if isinstance(part.constraints, PiecewiseLinear):
        return _straight(K, part, first)
    if isinstance(part.constraints, Squared) and (part.constraints.places >= 0).any():
        return _squares(K, part, part.constraints, first)
    return _curved(K, part, first)


def _straight(K: HasLMO, part: Stream, first: int) -> Comparator:
    """Linear losses under half-spaces, by the first method that decides, or the best that did
    not.
    """
    task, best = task_of(K, part), None
    eased = task.eased()
    for method, guess in _methods(task):
        found = guess(eased) or Guess(None, np.zeros(len(task.b)))
        known = replace(_checked(task, found, first), method=method)
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
    known = _straight(K, Stream(part.losses, equations), first)
    if (proof := known.infeasibility) is None:
        return known
    where, index = np.unique(rounds[proof.rounds - first], return_inverse=True)
    each = np.sqrt(np.bincount(index, proof.weights**2))
    shares, bound = each / each.sum(), (proof.bound / float(each.sum())) ** 2 / 2.0
    proof = Infeasibility(frozen(shares), frozen(first + where), frozen(where), bound)
    return replace(known, infeasibility=proof)


def _methods(task: Task) -> Iterator[tuple[str, Callable[[Task], Guess | None]]]:
    """What may find the best point, in the order of trying, by names."""
    if isinstance(task.K, Polyhedral):
        yield linear_program.METHOD, linear_program.guess
        return
    if semidefinite.fits(task):
        yield semidefinite.METHOD, semidefinite.guess
    yield bracket.METHOD, bracket.guess


def _checked(task: Task, found: Guess, first: int) -> Comparator:
    """What a solver's proposals are worth."""
    proof = None if found.weights is None else _infeasibility(task, found.weights, first)
    if proof is not None:
        return Comparator(None, math.inf, math.inf, False, proof)
    lower = task.least(task.c, task.constant, found.lam)
    if found.x is not None and task.keeps(found.x):
        return Comparator(
            frozen(found.x.reshape(task.K.shape)), lower, max(lower, task.total(found.x)), True
        )
    return Comparator(None, lower, math.inf, None)


def _curved(K: HasLMO, part: Stream, first: int) -> Comparator:
    """The same where losses or constraints are curved."""
    task, best = curved.curved_of(K, part), None
    for method, guess in _curved_methods(task):
        known = replace(_checked_curved(task, guess(task), first), method=method)
        if known.feasible is not None:
            return known
        best = known if best is None or known.lower > best.lower else best
    assert best is not None
    return best


def _curved_methods(task: Curved) -> Iterator[tuple[str, Callable[[Curved], Found]]]:
    if splitting.fits(task):
        yield splitting.METHOD, splitting.guess
        return
    if semidefinite.fits(task):
        yield semidefinite.METHOD, semidefinite.guess_squares
    yield curved.METHOD, curved.guess


def _checked_curved(task: Curved, found: Found, first: int) -> Comparator:
    if found.weights is not None and (weights := _shares(found.weights)) is not None:
        bound, _ = task.least(found.anchor, weights, costs=False)
        if bound > 0:
            rows = np.flatnonzero(weights)
            proof = Infeasibility(
                frozen(weights[rows]), frozen(first + task.rounds[rows]), frozen(rows), bound
            )
            return Comparator(None, math.inf, math.inf, False, proof)
    lower, _ = task.least(found.anchor, found.lam)
    if found.point is not None and task.keeps(found.point):
        point = frozen(found.point.reshape(task.K.shape))
        return Comparator(point, lower, max(lower, task.total(found.point)), True)
    return Comparator(None, lower, math.inf, None)


def _infeasibility(task: Task, weights: Floats, first: int) -> Infeasibility | None:
    """The proof that no point keeps every row, or None where the weights prove nothing."""
    shares = _shares(weights)
    if shares is None:
        return None
    bound = task.least(np.zeros(len(task.c)), 0.0, shares)
    rows = np.flatnonzero(shares)
    return (
        Infeasibility(frozen(shares[rows]), frozen(first + task.rounds[rows]), frozen(rows), bound)
        if bound > 0
        else None
    )


def _shares(weights: Floats) -> Floats | None:
    """Weights that sum to 1, negligible ones left out; None where there are none."""
    if weights.max() <= 0.0:
        return None
    weights = np.where(weights > 1e-12 * weights.max(), weights, 0.0)
    return np.asarray(weights / weights.sum())
