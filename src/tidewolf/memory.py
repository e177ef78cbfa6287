"""What a session remembers beside the state that its learner has now.

`Past` has its last steps, to explain its decisions and to go back:

    before --events--> before of the next step --events--> ... --> the state now

A step is added before it is made. It led to where the next one starts, or to where the session is
now; if it starts there itself, it was refused. So an interrupt cannot part the state and its past.
The steps of the last `BACK` rounds are kept, of points with more than ROOM/BACK entries fewer, and
all since the oldest round that is pending. They hold references, no copies.

`Memory` has, for a session in memory,

- the identities of side information, of the rounds that are decided and not observed;
- the identities of what was observed of the last `REMEMBERED` rounds, once rounds are given by
  number: a round that is observed again is answered as before, or refused.

`storage.Journal` remembers the same in a file.
"""

import math
from collections import deque
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, Generic, NamedTuple, TypeVar, final

import numpy as np

from tidewolf.core import arrays, errors, round_info
from tidewolf.core.feedback import Feedback, FirstOrder
from tidewolf.core.types import Array
from tidewolf.learners.migration import Move
from tidewolf.methods import base, capabilities, compiled_rounds, kernel_functions
from tidewolf.methods.events import (
    Decide,
    Event,
    Expire,
    Observe,
    SetInfo,
    after,
    decision,
    round_of,
    waiting,
)

S = TypeVar("S", bound=base.Progress)

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
    # functions if a kernel played the round of costs
    given: Feedback | kernel_functions.Functions
    # what was played
    x: Array

    @property
    def last(self) -> Feedback:
        given = self.given
        if isinstance(given, kernel_functions.Functions):
            return given.seen_at(0)
        if isinstance(given, FirstOrder) or given.rounds == 1:
            return given
        return type(given)(*(part[given.rounds - 1 :] for part in given))


class Place(NamedTuple):
    # an ArrayState if a kernel left it
    state: Any
    # the identities of the side information of rounds that wait, and of the next one, by round;
    # empty text if it has none
    info_ids: Mapping[int, str] = {}
    # the number of the last event in a file, and its link
    last: int = 0
    link: bytes = b""

    def after(self, event: Event, state: Any, last: int = 0, link: bytes = b"") -> "Place":
        info_ids, number = self.info_ids, round_of(self.state, event)
        if isinstance(event, SetInfo):
            info_ids = {**info_ids, number: event.info.identity or ""}
        elif number in info_ids and not isinstance(event, Decide):
            info_ids = {one: given for one, given in info_ids.items() if one != number}
        return Place(state, info_ids, last, link)

    def committed(self, learner: base.Learner[Any]) -> "Place":
        if isinstance(self.state, compiled_rounds.ArrayState):  # it is
            return self
        state = capabilities.committed(learner, self.state)
        return self if state is self.state else self._replace(state=state)


class Step(NamedTuple):
    """What led from one place to the next; without events and feedback, where a session is."""

    # of the round that was next before it
    number: int
    # where it begins; without a state: the session begins
    place: Place
    events: Sequence[Event] = ()
    # a kernel's round was played at the point of the state, and has what was given alone
    observed: RoundFeedback | Feedback | kernel_functions.Functions | None = None

    @property
    def feedback(self) -> RoundFeedback | None:
        seen = self.observed
        if seen is None or isinstance(seen, RoundFeedback):
            return seen
        return RoundFeedback(self.number, seen, self.place.state.x)


class PastDecision(NamedTuple):
    round: int
    state: Any
    # the newest when it was decided
    feedback: RoundFeedback | None = None
    info: round_info.RoundInfo | None = None

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
        # what was played before these steps, and the last step before them with feedback
        self._last, self._over = Last(), Step(number - 1, Place(None))
        self._steps = deque([self._over])
        # whether all that the file of the session has is here
        self.is_whole = False

    def add(self, step: Step) -> None:
        steps, least = self._steps, step.number - self._most
        if steps and steps[-1].place is step.place:
            steps.pop()  # it was refused
        if step.events and (rounds := waiting(step.place.state)):
            least = min(least, rounds[0].round - 1)
        while steps and steps[0].number < least:
            gone = steps.popleft()
            self._over = self._over if gone.observed is None else gone
        steps.append(step)

    def _pairs(self, now: Step) -> list[tuple[Step, Step]]:
        made = [step for step in self._steps if step.place is not now.place]  # else it was refused
        return list(pairwise([*made, now]))

    def next_info(self, now: Step) -> round_info.RoundInfo | None:
        made = (step for step in reversed(self._steps) if step.place is not now.place)
        events = (one for step in made if step.number == now.number for one in step.events)
        return next((one.info for one in events if isinstance(one, SetInfo)), None)

    def newest_feedback(self, now: Step) -> RoundFeedback | None:
        made = (step for step in reversed(self._steps) if step.place is not now.place)
        return next((step for step in made if step.observed is not None), self._over).feedback

    def decisions(self, now: Step) -> dict[int, PastDecision]:
        feedback, found, info = (
            self._over.feedback,
            dict[int, PastDecision](),
            dict[int, round_info.RoundInfo](),
        )
        for step, then in self._pairs(now):
            if step.place.state is None:
                continue  # the session begins
            number = decided = step.number
            for event in step.events:
                if isinstance(event, SetInfo):
                    info[decided] = event.info
                decided += isinstance(event, Decide)
            rounds = [one.round for one in waiting(then.place.state) if one.round >= number]
            where = dict.fromkeys(rounds, then.place.state)
            if number < then.number:
                where.setdefault(number, step.place.state)
            for one, state in where.items():
                found[one] = PastDecision(one, state, feedback, info.get(one))
            feedback = step.feedback or feedback
        last = PastDecision(now.number, now.place.state, feedback, info.get(now.number))
        return found | {now.number: last}

    def decision_of(self, number: int, now: Step) -> tuple[PastDecision, Last]:
        """A round that is pending or next as it was decided, and what is known of the decision
        before it.
        """
        decisions = self.decisions(now)
        if number not in decisions:  # it was decided before these steps
            return PastDecision(number, compiled_rounds.whole(now.place.state)), Last()
        earlier = [one for one in decisions if one < number]
        both = decisions[number], decisions[max(earlier, default=number)]
        own, before = (one._replace(state=compiled_rounds.whole(one.state)) for one in both)
        if not earlier:
            return own, self._last
        x = before.x(self._learner)
        if own.feedback is not None and own.feedback.round == before.round:
            x = own.feedback.x
        return own, Last(before, before.round, x)

    def back_to(self, number: int, now: Step) -> "tuple[Past, Step | None]":
        """The past when this round became the next one, and where the session was then, after the
        events given there; None if the steps do not say.
        """
        past, made = Past(self._learner, number, WENT_BACK, self._rounds), self._pairs(now)
        for i, (step, then) in enumerate(made):
            if step.number < number <= then.number:
                events, then = _until(number, step), then._replace(events=(), observed=None)
                if len(events) < len(step.events):
                    step = then = step._replace(events=events, observed=None)
                elif number < then.number:
                    break  # it was observed together with the rounds before it
                past.came, past._last, past._over = self.came, self._last, self._over
                past._steps = deque([*(own for own, _ in made[:i]), step])
                return past, then
        return past, None

    def migrated(self, new: base.Learner[Any], now: Step) -> "Past":
        """The past of a learner that replaces this one: what was played last, by name, and the
        newest feedback if the set is the same.
        """
        number = now.number
        past, (own, last) = Past(new, number, REPLACED, self._rounds), self.decision_of(number, now)
        if last.x is not None:
            move, flat = Move(self._learner.K, new.K), arrays.to_numpy(last.x).reshape(-1)
            name, lost = getattr(move.old, "names", range(len(flat))), (move.to < 0) & (flat > 0.0)
            gone = {str(name[i]): float(flat[i]) for i in np.flatnonzero(lost).tolist()}
            past._last = Last(None, last.round, move.scattered(last.x), gone)
            past._over = past._over._replace(observed=own.feedback if move.stays else None)
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


# --- a session in memory --------------------------------------------------------------------------

# Rounds whose contents are remembered.
REMEMBERED = 256
# The content of a round that expired without feedback.
EXPIRED = "expired"


@final
class Memory(Generic[S]):
    def __init__(
        self,
        learner: base.Learner[S],
        state: S,
        info_ids: Mapping[int, str] | None = None,
        contents: Mapping[int, str | None] | None = None,
    ) -> None:
        self.learner, self.place = learner, Place(state, info_ids or {})
        # whether rounds are numbered, and the identities of what was observed of the last ones
        self.numbered, self.contents = contents is not None, contents or {}

    def copy(self) -> "Memory[S]":
        state, contents = (
            compiled_rounds.whole(self.place.state),
            self.contents if self.numbered else None,
        )
        return Memory(self.learner, state, self.place.info_ids, contents)

    def content_of(self, number: int) -> str | None:
        return self.contents.get(number)

    def take(
        self, events: Sequence[Event], content: str | None = None, *, commit_next: bool = True
    ) -> None:
        """Apply all of these events, or none. `content` is the identity of what is observed, empty
        if it has none, and None if rounds are not numbered. `commit_next`: whether the round that
        is next then is committed at once.
        """
        before = self.place
        place = self._after(before, events)
        if commit_next:
            place = place.committed(self.learner)
        errors.refuse(
            self.place is not before,
            "A function called observe while evaluated: only that call counts.",
        )
        over = {
            round_of(place.state, event): EXPIRED if isinstance(event, Expire) else content or None
            for event in events
            if isinstance(event, Observe | Expire)
        }
        numbered = self.numbered or content is not None or EXPIRED in over.values()
        contents = dict([*{**self.contents, **over}.items()][-REMEMBERED:] if numbered else ())
        # Signals are handled after calls, so an interrupt finds all of this done or nothing.
        self.place, self.numbered, self.contents = place, numbered, contents

    def _after(self, place: Place, events: Sequence[Event]) -> Place:
        for event in events:
            place = place.after(
                event, after(self.learner, compiled_rounds.whole(place.state), event)
            )
        return place

    def migrate(self, learner: base.Learner[Any], state: Any) -> None:
        """Continue with another learner, from a state of its own; rounds that are pending no more
        expired, and side information of the next round is to be given again.
        """
        info_ids, gone = carried(self.place, state)
        place, contents = Place(state, info_ids), {**self.contents, **gone}
        self.learner, self.place, self.contents = learner, place, contents

    def rollback(self, number: int, then: Step | None) -> None:
        if then is None or number in then.place.info_ids:
            raise errors.InvalidInput(
                f"Round {number} cannot be gone back to: in memory a session goes back "
                f"{BACK} rounds at most, to where it began. Session.open(path, learner) keeps all."
            )
        place = self._after(then.place, then.events)
        if isinstance(place.state, compiled_rounds.ArrayState):
            place = Place(place.state.state, place.info_ids)
        before = {one: content for one, content in self.contents.items() if one < number}
        contents = {one: it for one, it in before.items() if decision(place.state, one) is None}
        self.place, self.numbered, self.contents = place, bool(contents), contents


def carried(before: Place, after: Any) -> tuple[dict[int, str], dict[int, str | None]]:
    """What stays known of rounds in a state of another learner: the identities of their side
    information, and as contents, which rounds no longer wait.
    """
    lost = [one.round for one in waiting(before.state) if decision(after, one.round) is None]
    kept = {one: own for one, own in before.info_ids.items() if decision(after, one)}
    return kept, dict.fromkeys(lost, EXPIRED)
