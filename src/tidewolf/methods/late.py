"""Feedback that comes late, and points that were played in place of the decision.

Round t is decided at x_t and its feedback arrives while the learner stands at x, infeasible iterate
y, in any order, or never. With s_t the gradient at the point x_t that was really played, for every
u

    sum <s_t, x_t - u>  =  sum <s_t, y - u> + sum <s_t, x - y> + sum <s_t, x_t - x>:

the learner steps from y as though s_t had been met at x, and the last sum, known exactly when the
feedback arrives, is added to its bound (`loss_offset` and `constraint_offset` of FirstOrder). All
that a bound counts (t, violation, weights) runs in the order of arrival and covers the rounds that
arrived. Rounds that arrive together are taken one after another, each against the point that then
stands, unless a learner makes one step of them.

If the functions of an overridden round are seen, the learner need not look at the point that was
played: it observes its decision, and

    loss of what was played  =  loss of the decisions + sum (f_t(played) - f_t(decision)),

the violation likewise: its bounds plus these sums, which are measured, are bounds for what was
played. Overridden in every round (a shadow) it decides as though it never had been.
"""

from collections.abc import Sequence
from itertools import pairwise
from operator import add
from typing import Any, NamedTuple, Self, TypeVar

from tidewolf.core.errors import InvalidInput
from tidewolf.core.feedback import Arrival
from tidewolf.core.types import Array, Floats
from tidewolf.methods import base, capabilities


class Deferred(NamedTuple):
    """A round that was decided and is not observed yet."""

    round: int
    x: Array
    # the point that it stood at, where something held the decision back; None: the decision
    own: Array | None = None

    @property
    def free(self) -> Array:
        """What would have been decided if nothing held it back."""
        return self.x if self.own is None else self.own


class Committed(NamedTuple):
    """What learners that mix proposals decided for a round without feedback: the next one, or one
    that is pending.
    """

    round: int  # of the coming one, if nothing is closed yet, another
    x: Array
    mix: Array  # sum p z, which the decision is unless something holds it back
    p: Floats
    shares: Floats  # phi, one a cell of the context; zeros where it is unknown
    points: tuple[Array | None, ...]  # z of every expert, groups first; None if it is absent
    usual: "Committed | None" = None  # the same without an outage that moves it far

    @property
    def free(self) -> Array:
        return self.mix

    def without(self, i: int) -> Self:
        points = (*self.points[:i], None, *self.points[i + 1 :])
        return self._replace(points=points, usual=self.usual and self.usual.without(i))


class Overrides(NamedTuple):
    """What overrides cost so far: loss and violation of what was played, and of the decisions.

    Parameters
    ----------
    rounds : int, default 0
        In how many rounds another point was played.
    price : float, default 0.0
        sum <s_t, played - decision>/V, in units of the loss.
    valued : int, default 0
        How many of these rounds had functions that were seen.
    loss, violation : float, default 0.0
        At what was played, over those.
    own_loss, own_violation : float, default 0.0
        At the decisions.
    """

    rounds: int = 0
    price: float = 0.0
    valued: int = 0
    loss: float = 0.0
    violation: float = 0.0
    own_loss: float = 0.0
    own_violation: float = 0.0

    @property
    def saved_loss(self) -> float:
        """How much less the decisions would have cost; below 0 if they would have cost more."""
        return self.loss - self.own_loss

    @property
    def saved_violation(self) -> float:
        return self.violation - self.own_violation

    def __str__(self) -> str:
        if not self.rounds:
            return "What was decided was played, in all rounds."
        text = f"In {self.rounds} rounds another point was played than was decided."
        if self.valued:
            text += (
                f" In {self.valued} of them the loss was {self.loss:.4g} and the violation was "
                f"{self.violation:.4g}; the decisions would have saved {self.saved_loss:.4g} and "
                f"{self.saved_violation:.4g} of them."
            )
        if self.valued < self.rounds:
            text += f" They add {self.price:.4g} to the bound on the regret, limits weighed in."
        return text

    def and_of(self, arrival: Arrival) -> "Overrides":
        """With per round, its price apart."""
        if arrival.played is None:
            return self
        valued = self.valued + (arrival.instead is not None)
        totals = map(add, self[3:], arrival.instead or (0.0, 0.0, 0.0, 0.0))
        return Overrides(self.rounds + 1, self.price, valued, *totals)


S = TypeVar("S", bound=Any)


def next_round(state: Any) -> int:
    """The number, from 0, of the round that is decided next."""
    t: int = state.t
    return t + len(getattr(state, "pending", ())) + getattr(state, "lost", 0)


class KeepsPending(capabilities.LateFeedback, capabilities.Diagnosed, base.Learner[S]):
    """Abstract: learners whose states have `pending`, rounds that were decided and are not observed
    yet, oldest first, `lost`, the number of rounds that will never be observed, and `overrides`.
    """

    def update(self, state: S, feedback: Any) -> S:
        self._require_none_pending(state)
        after: S = self.on_feedback(state, (Arrival(next_round(state), feedback),))
        return after

    def _require_none_pending(self, state: S) -> None:
        if state.pending:
            raise InvalidInput(
                f"{len(state.pending)} rounds are pending: say of which round the feedback is, "
                "with on_feedback()."
            )

    def drop(self, state: S, rounds: Sequence[int]) -> S:
        for number in rounds:
            decision, pending = without(state, number)
            if decision is None:
                raise InvalidInput(f"Round {number} was not decided yet.")
            state = state._replace(pending=pending, lost=state.lost + 1)
        return state


def in_order(arrivals: Sequence[Arrival]) -> list[Arrival]:
    """By their rounds; refused if one is observed twice, or there is none."""
    ordered = sorted(arrivals, key=lambda one: one.round)
    for one, following in pairwise(ordered):
        if one.round == following.round:
            raise InvalidInput(f"Round {one.round} is observed twice.")
    if not ordered:
        raise InvalidInput("Feedback on one round at least is due.")
    return ordered


def priced(state: Any, price: float) -> Any:
    if price == 0.0:
        return state
    overrides = state.overrides
    return state._replace(overrides=overrides._replace(price=overrides.price + price))


def without(state: Any, number: int) -> tuple[Any, tuple[Any, ...]]:
    """The pending round of this number, and the others; None if it is the coming one."""
    for i, one in enumerate(state.pending):
        if one.round == number:
            return one, (*state.pending[:i], *state.pending[i + 1 :])
    if number == next_round(state):
        return None, state.pending
    raise InvalidInput(f"Round {number} is not pending: it was observed, or was not decided yet.")
