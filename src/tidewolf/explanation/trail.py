"""What a session keeps so that it can explain itself: references, no copies.

A state that a round was decided from stays for as long as the round is pending, and one round
longer, for states share their tables; so does what was told last when it was decided.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from tidewolf.core.feedback import Bandit, Feedback, FirstOrder
from tidewolf.core.known import Known
from tidewolf.core.types import Array
from tidewolf.methods.base import Learner
from tidewolf.methods.late import coming_round
from tidewolf.methods.turns import Decide, Tell, Turn, decision, waiting


class Told(NamedTuple):
    """Feedback on a round."""

    round: int
    seen: Feedback
    """as it was given: the functions, where they were"""
    x: Array
    """what was played"""


class Stood(NamedTuple):
    """A round as it was decided: the coming one of a state, or one that is pending in it."""

    round: int
    state: Any
    told: Told | None
    """what was told last before it"""

    def x(self, learner: Learner[Any]) -> Array:
        """The decision."""
        own = decision(self.state, self.round)
        return learner.act(self.state) if own is None else own.x


class Trail:
    """The way a session came, as far as explanations need it."""

    def __init__(self) -> None:
        self.stood: dict[int, Stood] = {}
        """by the number of the round"""
        self.told: Told | None = None
        """last"""
        self.known: dict[int, Known] = {}
        """before the rounds that are kept"""

    def go_on(
        self,
        learner: Learner[Any],
        before: Any,
        after: Any,
        turns: Sequence[Turn],
        told: Told | None,
    ) -> None:
        """From one state to the next by these turns, where something was told."""
        number, rounds = coming_round(before), [one.round for one in waiting(after)]
        for i, turn in enumerate(turns):
            if isinstance(turn, Tell):
                self.known[number + sum(isinstance(one, Decide) for one in turns[:i])] = turn.known
        for one in rounds:
            if one >= number:
                self.stood[one] = Stood(one, after, self.told)
        if coming_round(after) > number and number not in rounds and learner.is_settled(before):
            self.stood[number] = Stood(number, before, self.told)
        if told is not None:
            self.told = told
        least = min([*rounds, coming_round(after) - 1]) - 1
        self.stood = {one: own for one, own in self.stood.items() if one >= least}
        self.known = {one: own for one, own in self.known.items() if one >= least}

    def decided(self, number: int, state: Any) -> Stood | None:
        """The coming round of `state`, or an earlier one, as it was decided; None where that is
        not known.
        """
        if number == coming_round(state):
            return Stood(number, state, self.told)
        return self.stood.get(number)

    def before(self, stood: Stood) -> Stood | None:
        """The last round that was decided before this one."""
        earlier = [one for one in self.stood if one < stood.round]
        return self.stood[max(earlier)] if earlier else None


def installed(learner: Learner[Any], stood: Stood, before: Stood | None) -> Array | None:
    """What was played in the round before, as far as is known when this one is decided: the
    decision, unless something else was told to have been.
    """
    if before is None:
        return None
    if stood.told is not None and stood.told.round == before.round:
        return stood.told.x
    return before.x(learner)


def played_point(learner: Learner[Any], state: Any, seen: Feedback, x: Array) -> Array:
    """What is played in the last of the rounds that are told of, where that is the decision x of
    the first.
    """
    k = seen.rounds
    if k > 1 and not isinstance(seen, FirstOrder) and k <= learner.rounds_left(state):
        return learner.acts(state, k)[k - 1, ...]
    return x


def last_round(seen: Feedback) -> Feedback:
    """The last of the rounds that were told of together, where they can be told apart."""
    k = seen.rounds
    if k == 1 or isinstance(seen, FirstOrder):
        return seen
    if isinstance(seen, Bandit):
        return Bandit(seen.loss_values[k - 1 :], seen.constraint_values[k - 1 :])
    return type(seen)(seen.losses[k - 1 : k], seen.constraints[k - 1 : k])
