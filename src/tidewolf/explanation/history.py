"""What a session keeps so that it can explain itself: references, no copies.

A state that a round was decided from stays for as long as the round is pending, and one round
longer, for states share their tables; so does what was told last when it was decided. The way as it
was before each of the last few observations stays, too, for going back.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from copy import copy
from typing import Any, NamedTuple

from tidewolf.core.arrays import to_numpy
from tidewolf.core.feedback import Bandit, Feedback, FirstOrder, FullInformation
from tidewolf.core.round_info import RoundInfo
from tidewolf.core.types import Array
from tidewolf.core.unlimited import Unlimited
from tidewolf.functions.capacity import Capacity
from tidewolf.functions.linear import Linear
from tidewolf.methods.base import Learner
from tidewolf.methods.compiled_rounds import KernelState
from tidewolf.methods.events import Decide, Event, Observe, SetInfo, decision, waiting
from tidewolf.methods.late import next_round
from tidewolf.methods.migration import Move

BACK = 8
"""Observations that explanations go back."""
KEPT = BACK + 4
"""Observations that the way is made of where it was not written down as they came."""
ROOM = 1_000_000
"""Entries of points; where they have more, fewer."""
BEGUN = "The session was begun from a state, loaded or copied at this round"
OPENED = "The session was opened at this round, and its history does not reach farther back"
WENT_BACK = "The session went back to this round, farther than what explains it is kept"
REPLACED = "The learner was replaced before this round"


class RoundFeedback(NamedTuple):
    """Feedback on a round."""

    round: int
    given: Any
    """feedback as it was given: the functions, where they were; or the costs they are made of"""
    x: Array
    """what was played"""


class Costs(NamedTuple):
    """A round of costs and capacities, as an array of one row each."""

    costs: Array
    capacities: Array | None

    def functions(self) -> FullInformation:
        """The functions they stand for."""
        loss = Linear._unchecked(C=self.costs)
        if self.capacities is None:
            return FullInformation(loss, Unlimited(loss.shape))
        return FullInformation(loss, Capacity._unchecked(c=self.capacities))


def with_functions(feedback: RoundFeedback | None) -> RoundFeedback | None:
    """The same with its functions, where it has costs."""
    if feedback is None or not isinstance(feedback.given, Costs):
        return feedback
    return RoundFeedback(feedback.round, feedback.given.functions(), feedback.x)


class Stood(NamedTuple):
    """A round as it was decided: the coming one of a state, or one that is pending in it."""

    round: int
    state: Any
    feedback: RoundFeedback | None
    """what was told last before it"""

    def whole(self) -> Stood:
        """The same with its state, where a kernel left arrays."""
        state = self.state.state if isinstance(self.state, KernelState) else self.state
        return Stood(self.round, state, with_functions(self.feedback))

    def x(self, learner: Learner[Any]) -> Array:
        """The decision."""
        own = decision(self.state, self.round)
        return learner.act(self.state) if own is None else own.x


class Carried(NamedTuple):
    """What was played last, before the learner was replaced."""

    round: int
    x: Array
    """in the entries of the set that is now"""
    gone: tuple[tuple[str, float], ...]
    """entries that it used and the set no longer has, and how much was there"""


class History:
    """The way a session came, as far as explanations need it. Dicts and tuples are replaced, never
    changed, so that copies share them.
    """

    def __init__(self, learner: Learner[Any], at: int, came: str = BEGUN) -> None:
        self.came, self.at = came, at
        """why nothing is known of earlier rounds; the coming round after the last observation"""
        self.carried: Carried | None = None
        self.is_whole = False
        """whether all that the file of the session says of it is here"""
        self._most = min(BACK, ROOM // max(1, math.prod(learner.hard_set.shape)))
        self.earlier: tuple[History, ...] = ()
        """the trail before each of the last observations, without their own"""
        self.stood: dict[int, Stood] = {}
        """by the number of the round"""
        self._feedback: RoundFeedback | None = None
        self.info: dict[int, RoundInfo] = {}
        """before the rounds that are kept"""

    def copy(self) -> History:
        """One that continues on its own."""
        return copy(self)

    def after(
        self,
        learner: Learner[Any],
        before: Any,
        after: Any,
        events: Sequence[Event],
        feedback: RoundFeedback | None,
    ) -> History:
        """The trail after the step from one state to the next by these turns."""
        history, upcoming = copy(self), next_round(after)
        number, rounds = next_round(before), [one.round for one in waiting(after)]
        plain = len(events) == 1 and not rounds and not waiting(before) and upcoming == number + 1
        committed = learner.is_committed(before)
        if plain and committed and feedback is not None:
            history.go_on_plainly(number, before, feedback)
            return history
        if feedback is not None:
            history.earlier, history.at, history._feedback = self._all(), upcoming, feedback
        info, stood = self.info.copy(), self.stood.copy()
        for i, event in enumerate(events):
            if isinstance(event, SetInfo):
                info[number + sum(isinstance(one, Decide) for one in events[:i])] = event.info
        stood |= {one: Stood(one, after, self.feedback) for one in rounds if one >= number}
        if upcoming > number and number not in rounds and committed:
            stood[number] = Stood(number, before, self.feedback)
        least = min([*rounds, upcoming - 1]) - 1
        history.stood = {one: own for one, own in stood.items() if one >= least}
        history.info = {one: own for one, own in info.items() if one >= least}
        return history

    def go_on_plainly(self, number: int, before: Any, feedback: RoundFeedback) -> None:
        """Continue from round `number` to the next, with nothing known, pending or settled anew;
        states and functions are made of arrays when an explanation asks for them.
        """
        self.earlier, was = self._all(), self.stood.get(number - 1)
        self.at, now = number + 1, Stood(number, before, self._feedback)
        self.stood = {number: now} if was is None else {number - 1: was, number: now}
        self._feedback = feedback
        self.info = {one: own for one, own in self.info.items() if one >= number - 1}

    @property
    def feedback(self) -> RoundFeedback | None:
        """What was told last."""
        self._feedback = with_functions(self._feedback)
        return self._feedback

    def _all(self) -> tuple[History, ...]:
        """The earlier trails, and this one without its own."""
        own = copy(self)
        own.earlier = ()
        return (*self.earlier, own)[-self._most :] if self._most else ()

    def back_to(self, learner: Learner[Any], number: int) -> History:
        """The way to the moment when this round became the coming one, as far as it is kept."""
        found = [one for one in (*self.earlier, self) if one.at <= number]
        if not found:
            return History(learner, number, WENT_BACK)
        there = copy(found[-1])
        there.earlier = tuple(found[:-1])
        there.stood = {one: own for one, own in there.stood.items() if one < number}
        there.info = {one: own for one, own in there.info.items() if one < number}
        return there

    def decision_of(self, number: int, state: Any) -> Stood | None:
        """The coming round of `state`, or an earlier one, as it was decided; None where that is
        not known.
        """
        if number == next_round(state):
            return Stood(number, state, self.feedback)
        found = self.stood.get(number)
        return None if found is None else found.whole()

    def before(self, stood: Stood) -> Stood | None:
        """The last round that was decided before this one."""
        earlier = [one for one in self.stood if one < stood.round]
        return self.stood[max(earlier)].whole() if earlier else None

    def since(self, before: Stood | None) -> int | None:
        """The round that a decision is compared with."""
        if before is not None:
            return before.round
        return None if self.carried is None else self.carried.round


def rebuilt(learner: Learner[Any], steps: Iterable[Any], came: str) -> History:
    """The way that these steps went, each with its `before`, `events` and `place`."""
    history = History(learner, 0, came)
    for step in steps:
        feedback, last = None, step.events[-1]
        if isinstance(last, Observe):
            number, given, played = last.arrival[:3]
            own = decision(step.before, number)
            if played is None:
                x = learner.act(step.before) if own is None else own.x
                played = played_point(learner, step.before, given, x)
            feedback = RoundFeedback(number, given, played)
        history = history.after(learner, step.before, step.place.state, step.events, feedback)
    return history


def carried(old: Learner[Any], new: Learner[Any], state: Any, history: History) -> History:
    """The way so far, of a learner that is replaced: what was played last, by name, and what was
    told last if the set is the same.
    """
    number = next_round(state)
    stood, after = Stood(number, state, history.feedback), History(new, number, REPLACED)
    before = history.before(stood)
    x = installed(old, stood, before, history.carried)
    since = history.since(before)
    if x is None or since is None:
        return after
    move, names = Move(old.hard_set, new.hard_set), getattr(old.hard_set, "names", None)
    lost = zip(range(len(move.to)), move.to.tolist(), strict=True)
    flat = to_numpy(x).reshape(-1)
    gone = [i for i, there in lost if there < 0 and flat[i] > 0.0]
    called = tuple((str(i) if names is None else names[i], float(flat[i])) for i in gone)
    after.carried = Carried(since, move.scattered(x), called)
    after._feedback = history.feedback if move.stays else None
    return after


def installed(
    learner: Learner[Any], stood: Stood, before: Stood | None, carried: Carried | None = None
) -> Array | None:
    """What was played in the round before, as far as is known when this one is decided: the
    decision, unless something else was told to have been.
    """
    if before is None:
        return None if carried is None else carried.x
    if stood.feedback is not None and stood.feedback.round == before.round:
        return stood.feedback.x
    return before.x(learner)


def played_point(learner: Learner[Any], state: Any, given: Feedback, x: Array) -> Array:
    """What is played in the last of the rounds that are told of, where that is the decision x of
    the first.
    """
    k = given.rounds
    if k > 1 and not isinstance(given, FirstOrder) and k <= learner.rounds_left(state):
        return learner.acts(state, k)[k - 1, ...]
    return x


def last_round(given: Feedback) -> Feedback:
    """The last of the rounds that were told of together, where they can be told apart."""
    k = given.rounds
    if k == 1 or isinstance(given, FirstOrder):
        return given
    if isinstance(given, Bandit):
        return Bandit(given.loss_values[k - 1 :], given.constraint_values[k - 1 :])
    return type(given)(given.losses[k - 1 : k], given.constraints[k - 1 : k])
