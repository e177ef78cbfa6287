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

from tidewolf.core import arrays, errors
from tidewolf.core.feedback import Feedback, FirstOrder
from tidewolf.core.round_info import RoundInfo
from tidewolf.core.types import Array
from tidewolf.learners.migration import Move
from tidewolf.methods import base, capabilities, late
from tidewolf.methods.compiled_rounds import ArrayState, CompiledRounds, Progressed, whole
from tidewolf.methods.events import (
    Decide,
    Event,
    Expire,
    Observe,
    SetInfo,
    after,
    decision,
    waiting,
)
from tidewolf.methods.kernel_functions import Functions

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
    given: Feedback | Functions
    # what was played
    x: Array

    @property
    def last(self) -> Feedback:
        given = self.given
        if isinstance(given, Functions):
            return given.seen_at(0)
        if isinstance(given, FirstOrder) or given.rounds == 1:
            return given
        return type(given)(*(part[given.rounds - 1 :] for part in given))


class Step(NamedTuple):
    """What led from one state to the next; without events and feedback, where a session is."""

    # of the round that was next before it
    number: int
    # the state, an ArrayState if a kernel left it; None: the session begins
    before: Any
    # the identities of side information before it, by round
    info_ids: Mapping[int, str] = {}
    events: Sequence[Event] = ()
    # a kernel's round was played at the point of the state, and has what was given alone
    observed: RoundFeedback | Feedback | Functions | None = None

    @property
    def feedback(self) -> RoundFeedback | None:
        seen = self.observed
        if seen is None or isinstance(seen, RoundFeedback):
            return seen
        return RoundFeedback(self.number, seen, self.before.x)

    def starts_at(self, other: "Step") -> bool:
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
        # what was played before these steps, and the last step before them with feedback
        self._last, self._over = Last(), Step(number - 1, None)
        # whether all that the file of the session has is here
        self.is_whole = False

    def add(self, step: Step) -> None:
        steps, least = self._steps, step.number - self._most
        if steps and steps[-1].starts_at(step):
            steps.pop()  # it was refused
        if step.events and (rounds := waiting(step.before)):
            least = min(least, rounds[0].round - 1)
        while steps and steps[0].number < least:
            gone = steps.popleft()
            self._over = self._over if gone.observed is None else gone
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
        made = (step for step in reversed(self._steps) if not step.starts_at(now))
        return next((step for step in made if step.observed is not None), self._over).feedback

    def decisions(self, now: Step) -> dict[int, PastDecision]:
        feedback, found, info = (
            self._over.feedback,
            dict[int, PastDecision](),
            dict[int, RoundInfo](),
        )
        for step, then in self._pairs(now):
            if step.before is None:
                continue  # the session begins
            number = decided = step.number
            for event in step.events:
                if isinstance(event, SetInfo):
                    info[decided] = event.info
                decided += isinstance(event, Decide)
            rounds = [one.round for one in waiting(then.before) if one.round >= number]
            where = dict.fromkeys(rounds, then.before)
            if number < then.number:
                where.setdefault(number, step.before)
            for one, state in where.items():
                found[one] = PastDecision(one, state, feedback, info.get(one))
            feedback = step.feedback or feedback
        found[now.number] = PastDecision(now.number, now.before, feedback, info.get(now.number))
        return found

    def decision_of(self, number: int, now: Step) -> tuple[PastDecision, Last]:
        """A round that is pending or next as it was decided, and what is known of the decision
        before it.
        """
        decisions = self.decisions(now)
        if number not in decisions:  # it was decided before these steps
            return PastDecision(number, whole(now.before)), Last()
        earlier = [one for one in decisions if one < number]
        both = decisions[number], decisions[max(earlier, default=number)]
        own, before = (one._replace(state=whole(one.state)) for one in both)
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
            past._over = Step(number, None, observed=own.feedback if move.stays else None)
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
        self.learner, self._state = learner, state
        # what a kernel left, if that is newer than the state
        self.arrays: ArrayState | None = None
        # the identities of side information, by round; empty text if it has none
        self.info_ids: Mapping[int, str] = info_ids or {}
        self.numbered = contents is not None
        # the identities of what was observed of the last rounds
        self.contents: Mapping[int, str | None] = contents or {}

    @property
    def state(self) -> S:
        state: S = self._state if self.arrays is None else self.arrays.state
        return state

    def begin_arrays(self, kernel: CompiledRounds) -> ArrayState | None:
        """What a kernel continues from, if rounds come in order; None if it cannot."""
        state: Any = self.state
        if not (self.numbered or self.info_ids) and kernel.plays_live and kernel.takes(state):
            self.arrays = kernel.begin(state)
        return self.arrays

    def is_next(self, number: int) -> bool:
        """Whether a kernel may play the round of this number: it notes no contents."""
        return False

    def take_arrays(self, found: Progressed, step: Step, by_number: bool) -> None:
        self.arrays = found.after

    def copy(self) -> "Memory[S]":
        return Memory(
            self.learner, self.state, self.info_ids, self.contents if self.numbered else None
        )

    def content_of(self, number: int) -> str | None:
        return self.contents.get(number)

    def take(
        self, events: Sequence[Event], content: str | None = None, *, commit_next: bool = True
    ) -> None:
        """Apply all of these events, or none. `content` is the identity of what is observed, empty
        if it has none, and None if rounds are not numbered. `commit_next`: whether the round that
        is next then is committed at once.
        """
        before = self.state
        state, info_ids, over = self._after(before, self.info_ids, events, content)
        if commit_next:
            state = capabilities.committed(self.learner, state)
        if self.state is not before:
            raise errors.InvalidInput(
                "A function called observe while evaluated: only that call counts."
            )
        numbered = self.numbered or content is not None or EXPIRED in over.values()
        contents = dict([*{**self.contents, **over}.items()][-REMEMBERED:] if numbered else ())
        # Signals are handled after calls, so an interrupt finds all of this done or nothing.
        self._state, self.arrays, self.info_ids = state, None, info_ids
        self.numbered, self.contents = numbered, contents

    def _after(
        self,
        state: Any,
        info_ids: Mapping[int, str],
        events: Sequence[Event],
        content: str | None = None,
    ) -> tuple[Any, Mapping[int, str], dict[int, str | None]]:
        """The state after these events, the identities of side information then, and what the
        rounds held that are over.
        """
        over = dict[int, str | None]()
        for event in events:
            if isinstance(event, SetInfo):
                info_ids = {**info_ids, late.next_round(state): event.info.identity or ""}
            state = after(self.learner, state, event)
            if isinstance(event, Observe | Expire):
                number = event.arrival.round if isinstance(event, Observe) else event.round
                over[number] = content or None if isinstance(event, Observe) else EXPIRED
                info_ids = {one: own for one, own in info_ids.items() if one != number}
        return state, info_ids, over

    def migrate(self, learner: base.Learner[Any], state: Any) -> None:
        """Continue with another learner, from a state of its own; rounds that are pending no more
        expired, and side information of the next round is to be given again.
        """
        info_ids, gone = carried(self.state, self.info_ids, state)
        contents = {**self.contents, **gone}
        self.learner, self._state, self.arrays = learner, state, None
        self.info_ids, self.contents = info_ids, contents

    def commit_next(self) -> None:
        self._state, self.arrays = capabilities.committed(self.learner, self.state), None

    def rollback(self, number: int, then: Step | None) -> None:
        if then is None or number in then.info_ids:
            raise errors.InvalidInput(
                f"Round {number} cannot be gone back to: in memory a session goes back "
                f"{BACK} rounds at most, to where it began. Session.open(path, learner) keeps all."
            )
        state, info_ids, _ = self._after(whole(then.before), then.info_ids, then.events)
        before = {one: content for one, content in self.contents.items() if one < number}
        contents = {one: it for one, it in before.items() if decision(state, one) is None}
        self._state, self.arrays, self.info_ids = state, None, info_ids
        self.numbered, self.contents = bool(contents), contents


def carried(
    before: Any, info_ids: Mapping[int, str], after: Any
) -> tuple[dict[int, str], dict[int, str | None]]:
    """What stays known of rounds in a state of another learner: the identities of their side
    information, and as contents, which rounds no longer wait.
    """
    lost = [one.round for one in waiting(before) if decision(after, one.round) is None]
    kept = {one: own for one, own in info_ids.items() if decision(after, one)}
    return kept, dict.fromkeys(lost, EXPIRED)
