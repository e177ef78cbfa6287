"""What a session keeps so that it can explain itself: references, no copies.

A state that a round was decided from stays for as long as the round is pending, and one round
longer, for states share their tables; so does what was told last when it was decided.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from tidewolf.core.feedback import Bandit, Feedback, FirstOrder
from tidewolf.core.types import Array
from tidewolf.methods.base import Learner
from tidewolf.methods.late import coming_round


class Told(NamedTuple):
    """Feedback on a round."""

    round: int
    seen: Feedback
    """as it was given: the functions, where they were"""
    x: Array
    """what was played"""


class Stood(NamedTuple):
    """A round as it was decided."""

    state: Any
    told: Told | None
    """what was told last before it"""


class Trail:
    """The way a session came, as far as explanations need it."""

    def __init__(self) -> None:
        self.stood: dict[int, Stood] = {}
        """by the number of the round"""
        self.told: Told | None = None
        """last"""

    def go_on(self, before: Any, after: Any, told: Told | None = None) -> None:
        """From one state to the next, where something was told."""
        number = coming_round(before)
        if coming_round(after) > number:
            self.stood[number] = Stood(before, self.told)
            first = min((one.round for one in getattr(after, "pending", ())), default=number)
            for old in [old for old in self.stood if old < min(first, number) - 1]:
                del self.stood[old]
        if told is not None:
            self.told = told

    def decided(self, number: int, state: Any) -> Stood | None:
        """The coming round of `state`, or an earlier one, as it was decided; None where that is
        not known.
        """
        return Stood(state, self.told) if number == coming_round(state) else self.stood.get(number)

    def before(self, number: int) -> tuple[int, Stood] | None:
        """The last round that was decided before this one."""
        earlier = [one for one in self.stood if one < number]
        return (max(earlier), self.stood[max(earlier)]) if earlier else None


def played_point(learner: Learner[Any], state: Any, seen: Feedback) -> Array:
    """What is played in the last of the rounds that are told of, where that is the decision."""
    k = seen.rounds
    if k > 1 and not isinstance(seen, FirstOrder) and k <= learner.rounds_left(state):
        return learner.acts(state, k)[k - 1, ...]
    return learner.act(state)


def last_round(seen: Feedback) -> Feedback:
    """The last of the rounds that were told of together, where they can be told apart."""
    k = seen.rounds
    if k == 1 or isinstance(seen, FirstOrder):
        return seen
    if isinstance(seen, Bandit):
        return Bandit(seen.loss_values[k - 1 :], seen.constraint_values[k - 1 :])
    return type(seen)(seen.losses[k - 1 : k], seen.constraints[k - 1 : k])
