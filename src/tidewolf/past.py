"""The last steps of a session: to explain its decisions, and to go back.

    before --events--> before of the next step --events--> ... --> the state now

A step is added before it is made. It led to where the next one starts, or to where the session is
now; if it starts there itself, it was refused. So an interrupt cannot part the state and its past.
The steps of the last `BACK` rounds are kept, of points with more than ROOM/BACK entries fewer, and
all since the oldest round that is pending. They hold references, no copies.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple, final

import numpy as np

from tidewolf.core import arrays, batch
from tidewolf.core.feedback import Feedback, FirstOrder, FullInformation
from tidewolf.core.round_info import RoundInfo
from tidewolf.core.types import Array
from tidewolf.functions.linear import Capacity, Linear
from tidewolf.learners.migration import Move
from tidewolf.methods import base, compiled_rounds
from tidewolf.methods.events import Decide, Event, Expire, SetInfo, decision, waiting

# Rounds that a session in memory can go back.
BACK = 100
# The same for explanations alone.
FEW = 4
# Entries of points that may be kept for going back.
ROOM = 10_000_000
BEGUN = "The session was begun from a state, loaded or copied at this round"
OPENED = "The session was opened at this round, and its history does not reach farther back"
WENT_BACK = "The session went back to this round, farther than what explains it is kept"
REPLACED = "The learner was replaced before this round"


class RoundFeedback(NamedTuple):
    round: int
    # a pair if a kernel played the round: costs and capacities, each an array of one row
    given: Feedback | tuple[Array, Array | None]
    # what was played
    x: Array

    @property
    def last(self) -> Feedback:
        given = self.given
        if not isinstance(given, Feedback):
            loss, c = Linear._unchecked(C=given[0]), given[1]
            limit = batch.Unlimited(loss.shape) if c is None else Capacity._unchecked(c=c)
            return FullInformation(loss, limit)
        k = given.rounds
        if k == 1 or isinstance(given, FirstOrder):
            return given
        return type(given)(*(part[k - 1 : k] for part in given))


class Step(NamedTuple):
    """What led from one state to the next; without events and feedback, where a session is."""

    # of the round that was next before it
    number: int
    # the state, an ArrayState if a kernel left it; None: the session begins
    before: Any
    # the identities of side information before it, by round
    info_ids: Mapping[int, str] = {}
    events: Sequence[Event] = ()
    feedback: RoundFeedback | None = None

    def starts_at(self, other: Step) -> bool:
        return self.before is other.before and self.info_ids is other.info_ids


class PastDecision(NamedTuple):
    round: int
    state: Any
    # the newest when it was decided
    feedback: RoundFeedback | None = None
    info: RoundInfo | None = None

    def x(self, learner: base.Learner[Any]) -> Array:
        own = decision(self.state, self.round)
        return learner.act(self.state) if own is None else own.x


class Last(NamedTuple):
    decided: PastDecision | None = None
    round: int | None = None
    # what was played, in the entries of the set
    x: Array | None = None
    # entries that were used and that the set no longer has
    gone: Mapping[str, float] = {}


@final
class Past:
    """The steps that led to where a session is, which methods are given as `now`.

    `came` says why nothing is known of earlier rounds, `rounds` how far it can go back.
    """

    def __init__(
        self, learner: base.Learner[Any], number: int, came: str = BEGUN, rounds: int = BACK
    ) -> None:
        self._learner, self.came, self._rounds = learner, came, rounds
        self._most = max(2, min(rounds, ROOM // max(1, math.prod(learner.K.shape))))
        self._steps = deque([Step(number - 1, None)])
        # what was played, and observed, before these steps
        self._last, self._feedback = Last(), None  # type: Last, RoundFeedback | None
        # whether all that the file of the session has is here
        self.is_whole = False

    def add(self, step: Step) -> None:
        steps, least = self._steps, step.number - self._most
        if steps and steps[-1].starts_at(step):
            steps.pop()  # it was refused
        if step.events and (rounds := waiting(step.before)):
            least = min(least, rounds[0].round - 1)
        while steps and steps[0].number < least:
            self._feedback = steps[0].feedback or self._feedback
            steps.popleft()
        steps.append(step)

    def _pairs(self, now: Step) -> list[tuple[Step, Step]]:
        steps = list(self._steps)
        if steps and steps[-1].starts_at(now):
            steps.pop()  # it was refused
        return list(pairwise([*steps, now]))

    def next_info(self, now: Step) -> RoundInfo | None:
        found = None
        for step in self._steps:
            if step.number == now.number and not step.starts_at(now):
                found = next((one.info for one in step.events if isinstance(one, SetInfo)), found)
        return found

    def newest_feedback(self, now: Step) -> RoundFeedback | None:
        made = (step.feedback for step, _ in reversed(self._pairs(now)) if step.feedback)
        return next(made, self._feedback)

    def decisions(self, now: Step) -> dict[int, PastDecision]:
        feedback, found, info = self._feedback, dict[int, PastDecision](), dict[int, RoundInfo]()
        for step, after in self._pairs(now):
            if step.before is None:
                continue  # the session begins
            number = decided = step.number
            for event in step.events:
                if isinstance(event, SetInfo):
                    info[decided] = event.info
                decided += isinstance(event, Decide)
            for one in waiting(after.before):
                if one.round >= number:
                    own = PastDecision(one.round, after.before, feedback, info.get(one.round))
                    found[one.round] = own
            if number < after.number:
                found.setdefault(
                    number, PastDecision(number, step.before, feedback, info.get(number))
                )
            feedback = step.feedback or feedback
        found[now.number] = PastDecision(now.number, now.before, feedback, info.get(now.number))
        return found

    def decision_of(self, number: int, now: Step) -> tuple[PastDecision, Last]:
        """A round that is pending or next as it was decided, and what is known of the decision
        before it.
        """
        decisions = self.decisions(now)
        if number not in decisions:  # it was decided before these steps
            return PastDecision(number, compiled_rounds.whole(now.before)), Last()
        earlier = [one for one in decisions if one < number]
        both = decisions[number], decisions[max(earlier, default=number)]
        own, before = (one._replace(state=compiled_rounds.whole(one.state)) for one in both)
        if not earlier:
            return own, self._last
        x = before.x(self._learner)
        if own.feedback is not None and own.feedback.round == before.round:
            x = own.feedback.x
        return own, Last(before, before.round, x)

    def back_to(self, number: int, now: Step) -> tuple[Past, Step | None]:
        """The past when this round became the next one, and where the session was then, after the
        events given there; None if the steps do not say.
        """
        past, made = Past(self._learner, number, WENT_BACK, self._rounds), self._pairs(now)
        for i, (step, after) in enumerate(made):
            if not step.number < number <= after.number:
                continue
            events, then = _until(number, step), after._replace(events=(), feedback=None)
            if len(events) < len(step.events):
                step = then = step._replace(events=events, feedback=None)
            elif number < after.number:
                break  # it was observed together with the rounds before it
            past.came, past._last, past._feedback = self.came, self._last, self._feedback
            past._steps = deque([*(own for own, _ in made[:i]), step])
            return past, then
        return past, None

    def migrated(self, new: base.Learner[Any], now: Step) -> Past:
        """The past of a learner that replaces this one: what was played last, by name, and the
        newest feedback if the set is the same.
        """
        number = now.number
        past, (own, last) = Past(new, number, REPLACED, self._rounds), self.decision_of(number, now)
        if last.x is not None:
            move, flat = Move(self._learner.K, new.K), arrays.to_numpy(last.x).reshape(-1)
            lost = np.flatnonzero((move.to < 0) & (flat > 0.0)).tolist()
            name = getattr(move.old, "names", range(len(flat)))
            gone = {str(name[i]): float(flat[i]) for i in lost}
            past._last = Last(None, last.round, move.scattered(last.x), gone)
            past._feedback = own.feedback if move.stays else None
        return past


def _until(number: int, step: Step) -> Sequence[Event]:
    """The first events of a step, after which this round is the next one; all of them if that is
    not before the last.
    """
    upcoming = step.number
    for i, event in enumerate(step.events):
        if upcoming == number and not isinstance(event, Expire):
            return step.events[:i]
        upcoming += isinstance(event, Decide)
    return step.events
