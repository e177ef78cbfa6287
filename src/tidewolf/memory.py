"""What a session in memory remembers beside the state that its learner has now.

- what was known before the rounds that are decided and not observed, by its identity;
- the contents of the last `REMEMBERED` rounds that were observed, by theirs, once rounds are given
  by number: who observes a round again is answered as before, or refused;
- the states of the last `BACK` rounds, to go back to. States share what they have in common, such
  as their tables of vertices; of points with more than ROOM/BACK entries fewer are kept.

`storage.Journal` remembers the same in a file.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any, Generic, NamedTuple, TypeVar, final

from tidewolf.core.errors import InvalidInput
from tidewolf.methods.base import Learner, Progress
from tidewolf.methods.capabilities import committed
from tidewolf.methods.compiled_rounds import ArrayState
from tidewolf.methods.events import Event, Expire, Observe, SetInfo, after, decision, waiting
from tidewolf.methods.late import next_round

S = TypeVar("S", bound=Progress)

REMEMBERED = 256
"""Rounds whose contents are remembered."""
BACK = 100
"""Rounds that one can go back."""
ROOM = 10_000_000
"""Entries of points that may be kept for going back."""
EXPIRED = "expired"
"""The content of a round that was waited for no more."""


class Moment(NamedTuple):
    """When a round became the coming one."""

    round: int
    state: Any
    info_ids: Mapping[int, str]


@final
class Memory(Generic[S]):
    """What a session in memory remembers; rounds are numbered from 0."""

    def __init__(
        self,
        learner: Learner[S],
        state: S,
        info_ids: Mapping[int, str] | None = None,
        contents: Mapping[int, str | None] | None = None,
    ) -> None:
        self.learner, self.state = learner, state
        self.info_ids: Mapping[int, str] = info_ids or {}
        """the identity of what is known, by round; empty text where it has none"""
        self.numbered = contents is not None
        self._contents = dict(contents or {})
        self.kept = 1 + min(BACK, ROOM // max(1, math.prod(learner.K.shape)))
        """moments that are kept"""
        self._past: deque[Moment] = deque(maxlen=self.kept)
        if next_round(state) not in self.info_ids:
            self._past.append(Moment(next_round(state), state, self.info_ids))

    def copy(self) -> Memory[S]:
        """One that goes its own way."""
        other = Memory(self.learner, self.state, self.info_ids, self._contents)
        other.numbered, other._past = self.numbered, self._past.copy()
        return other

    @property
    def contents(self) -> Mapping[int, str | None]:
        """What the last rounds that were observed held, by its identity."""
        return self._contents

    def content_of(self, number: int) -> str | None:
        """The identity of what was observed of a round; None where it is not remembered."""
        return self._contents.get(number)

    def take(
        self, events: Sequence[Event], content: str | None = None, *, commit_next: bool = True
    ) -> None:
        """All of these turns, or none; `content` is the identity of what is met, empty where it has
        none, and None where rounds are not numbered. `commit_next`: whether the round that then
        comes is settled at once.
        """
        before = state = self.state
        info_ids, over, moments = self.info_ids, dict[int, str | None](), list[Moment]()
        for event in events:
            upcoming = next_round(state)
            state = after(self.learner, state, event)
            if isinstance(event, SetInfo):
                info_ids = {**info_ids, upcoming: event.info.identity or ""}
            elif isinstance(event, Observe | Expire):
                number = event.arrival.round if isinstance(event, Observe) else event.round
                over[number] = content or None if isinstance(event, Observe) else EXPIRED
                if number in info_ids:
                    info_ids = {one: said for one, said in info_ids.items() if one != number}
            if next_round(state) != upcoming:
                moments.append(Moment(next_round(state), state, info_ids))
            elif isinstance(event, Expire) and moments:  # of the round that was decided before it
                moments[-1] = Moment(upcoming, state, info_ids)
        if commit_next:
            state = committed(self.learner, state)
        if self.state is not before:
            words = "A function called observe while it was evaluated: that one alone is kept."
            raise InvalidInput(words)
        numbered = self.numbered or content is not None or EXPIRED in over.values()
        contents = self._contents
        if numbered:
            contents = dict([*{**contents, **over}.items()][-REMEMBERED:])
        # Signals are handled after calls, so an interrupt finds all of this done or nothing.
        self.state, self.info_ids = state, info_ids
        self.numbered, self._contents = numbered, contents
        self._past.extend(moments)

    def go_on(self, state: S, rounds: Sequence[tuple[int, ArrayState]]) -> None:
        """Continue from what a kernel left, if rounds are not numbered and nothing was known of
        them: to `state`, over the moments in which these rounds became the coming ones. The second
        call with the same state changes nothing.
        """
        if self.state is not state:
            moments = [Moment(number, left, self.info_ids) for number, left in rounds]
            self.state = state
            self._past.extend(moments)  # no call in between: see `take`

    def migrate(self, learner: Learner[Any], state: Any) -> None:
        """Go on with another learner, from a state of its own; rounds that wait no more expired,
        and what was known of the coming round is to be told again.
        """
        gone = [one.round for one in waiting(self.state) if decision(state, one.round) is None]
        contents = {**self._contents, **dict.fromkeys(gone, EXPIRED)}
        info_ids = {one: said for one, said in self.info_ids.items() if decision(state, one)}
        past = deque([Moment(next_round(state), state, info_ids)], maxlen=self.kept)
        self.learner, self.state, self.info_ids = learner, state, info_ids
        self._contents, self._past = contents, past

    def commit_next(self) -> None:
        """The coming round, where it is not."""
        self.state = committed(self.learner, self.state)

    def rollback(self, number: int) -> None:
        """To the moment when this round became the coming one."""
        found = next((moment for moment in self._past if moment.round == number), None)
        if found is None:
            kept = f"{self._past[0].round} to {self._past[-1].round}" if self._past else "none"
            words = f"Round {number} cannot be gone back to: a session in memory keeps {kept}"
            raise InvalidInput(f"{words}. Session.open(path, learner) keeps all.")
        past = deque((one for one in self._past if one.round <= number), maxlen=self.kept)
        state = found.state
        state = state.state if isinstance(state, ArrayState) else state
        contents = {
            one: content
            for one, content in self._contents.items()
            if one < number and decision(state, one) is None
        }
        self.state, self.info_ids = state, found.info_ids
        self._contents, self._past = contents, past
