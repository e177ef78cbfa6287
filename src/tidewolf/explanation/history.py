"""What a session keeps to explain its decisions: references, no copies.

The state that a round was decided from is kept while the round is pending, and one round longer,
with the feedback that was newest then.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from tidewolf.core.arrays import to_numpy
from tidewolf.core.feedback import Feedback, FirstOrder, FullInformation
from tidewolf.core.round_info import RoundInfo
from tidewolf.core.types import Array
from tidewolf.core.unlimited import Unlimited
from tidewolf.explanation.record import Entry
from tidewolf.functions.linear import Capacity, Linear
from tidewolf.methods.base import Learner
from tidewolf.methods.compiled_rounds import KernelState
from tidewolf.methods.events import Decide, Event, Observe, SetInfo, decision, waiting
from tidewolf.methods.late import next_round
from tidewolf.methods.migration import Move

KEPT = 4
"""Observations that a history is made of if it was not written as they came."""
BEGUN = "The session was begun from a state, loaded or copied at this round"
OPENED = "The session was opened at this round, and its history does not reach farther back"
WENT_BACK = "The session went back to this round, farther than what explains it is kept"
REPLACED = "The learner was replaced before this round"


class RoundFeedback(NamedTuple):
    """Feedback on a round."""

    round: int
    given: Feedback
    x: Array
    """what was played"""


class Stood(NamedTuple):
    """A round as it was decided: the next one of a state, or one that is pending in it."""

    round: int
    state: Any
    """a KernelState if a kernel played the round"""
    feedback: RoundFeedback | None
    """the newest feedback when it was decided"""

    def whole(self) -> Stood:
        """The same with the state itself."""
        state = self.state.state if isinstance(self.state, KernelState) else self.state
        return self._replace(state=state)

    def x(self, learner: Learner[Any]) -> Array:
        """The decision."""
        own = decision(self.state, self.round)
        return learner.act(self.state) if own is None else own.x


Stoods: TypeAlias = Mapping[int, Stood]
Infos: TypeAlias = Mapping[int, RoundInfo]


class Last(NamedTuple):
    """What is known of the decision before another one."""

    stood: Stood | None = None
    round: int | None = None
    x: Array | None = None
    """what was played, in the entries of the set"""
    gone: tuple[Entry, ...] = ()
    """entries that were used and that the set no longer has"""


@dataclass(frozen=True, eq=False)
class History:
    """The past of a session, as far as explanations need it."""

    learner: Learner[Any]
    at: int
    """the next round after the last observation"""
    came: str = BEGUN
    """why nothing is known of earlier rounds"""
    carried: Last = field(default_factory=Last)
    """what was played last before the learner was replaced"""
    is_whole: bool = False
    """whether all that the file of the session has is here"""
    stood: Stoods = field(default_factory=dict)
    """by the number of the round"""
    info: Infos = field(default_factory=dict)
    """side information of these rounds"""
    feedback: RoundFeedback | None = None
    """the newest"""

    def after(
        self, before: Any, after: Any, events: Sequence[Event], feedback: RoundFeedback | None
    ) -> History:
        """The history after these events led from one state to the next."""
        number, upcoming = next_round(before), next_round(after)
        rounds, decided, info = [one.round for one in waiting(after)], number, dict(self.info)
        for event in events:
            if isinstance(event, SetInfo):
                info[decided] = event.info
            decided += isinstance(event, Decide)
        stood = {one: Stood(one, after, self.feedback) for one in rounds if one >= number}
        if upcoming > number and number not in rounds and self.learner.is_committed(before):
            stood[number] = Stood(number, before, self.feedback)
        least = min([*rounds, upcoming - 1]) - 1
        return self.following(upcoming, least, stood, info, feedback)

    def following(
        self, upcoming: int, least: int, stood: Stoods, info: Infos, feedback: RoundFeedback | None
    ) -> History:
        """With more decisions and this side information, from round `least` on."""
        stood = {one: own for one, own in {**self.stood, **stood}.items() if one >= least}
        info = {one: own for one, own in info.items() if one >= least}
        if feedback is None:
            return replace(self, stood=stood, info=info)
        return replace(self, at=upcoming, stood=stood, info=info, feedback=feedback)

    def back_to(self, number: int) -> History:
        """The history when this round became the next one; of earlier observations none is kept."""
        if self.at > number:
            return History(self.learner, number, WENT_BACK)
        stood = {one: own for one, own in self.stood.items() if one < number}
        info = {one: own for one, own in self.info.items() if one < number}
        return replace(self, stood=stood, info=info)

    def decision_of(self, number: int, state: Any) -> Stood | None:
        """The next round of `state`, or an earlier one, as it was decided; None if that is not
        known.
        """
        if number == next_round(state):
            return Stood(number, state, self.feedback)
        return self.stood[number].whole() if number in self.stood else None

    def last(self, stood: Stood) -> Last:
        """The decision before this one, and what was played in place of it, if known by then."""
        earlier = [one for one in self.stood if one < stood.round]
        if not earlier:
            return self.carried
        before, feedback = self.stood[max(earlier)].whole(), stood.feedback
        if feedback is not None and feedback.round == before.round:
            return Last(before, before.round, feedback.x)
        return Last(before, before.round, before.x(self.learner))

    def migrated(self, new: Learner[Any], state: Any) -> History:
        """The history of a learner that replaces this one: what was played last, by name, and the
        newest feedback if the set is the same.
        """
        number = next_round(state)
        last = self.last(Stood(number, state, self.feedback))
        if last.x is None:
            return History(new, number, REPLACED)
        move, flat = Move(self.learner.hard_set, new.hard_set), to_numpy(last.x).reshape(-1)
        lost = np.flatnonzero((move.to < 0) & (flat > 0.0)).tolist()
        name = getattr(move.old, "names", range(len(flat)))
        gone = tuple(Entry(str(name[i]), 0.0, float(flat[i])) for i in lost)
        carried = Last(None, last.round, move.scattered(last.x), gone)
        feedback = self.feedback if move.stays else None
        return History(new, number, REPLACED, carried, feedback=feedback)


def rebuilt(learner: Learner[Any], steps: Iterable[Any], came: str) -> History:
    """The history of these steps, each with its `before`, `events` and `place`."""
    history = History(learner, 0, came)
    for step in steps:
        feedback, event = None, step.events[-1]
        if isinstance(event, Observe):
            number, given, played = event.arrival[:3]
            if played is None:
                x = Stood(number, step.before, None).x(learner)
                played = played_point(learner, step.before, given, x)
            feedback = RoundFeedback(number, given, played)
        history = history.after(step.before, step.place.state, step.events, feedback)
    return history


def played_point(learner: Learner[Any], state: Any, given: Feedback, x: Array) -> Array:
    """What is played in the last of the observed rounds if x is the decision of the first."""
    k = given.rounds
    if k > 1 and not isinstance(given, FirstOrder) and k <= learner.rounds_left(state):
        return learner.acts(state, k)[k - 1, ...]
    return x


def full_information(costs: Array, capacities: Array | None) -> FullInformation:
    """The functions of one round of costs and capacities, each an array of one row."""
    loss = Linear._unchecked(C=costs)
    if capacities is None:
        return FullInformation(loss, Unlimited(loss.shape))
    return FullInformation(loss, Capacity._unchecked(c=capacities))


def last_round(given: Feedback) -> Feedback:
    """The last of the rounds that were observed together, if they can be told apart."""
    k = given.rounds
    if k == 1 or isinstance(given, FirstOrder):
        return given
    return type(given)(*(part[k - 1 : k] for part in given))
