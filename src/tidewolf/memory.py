"""What a session in memory remembers beside the state that its learner has now.

- the identities of side information, of the rounds that are decided and not observed;
- the identities of what was observed of the last `REMEMBERED` rounds, once rounds are given by
  number: a round that is observed again is answered as before, or refused.

`storage.Journal` remembers the same in a file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Generic, TypeVar, final

from tidewolf.core.errors import InvalidInput
from tidewolf.methods import base, capabilities, late
from tidewolf.methods.compiled_rounds import ArrayState, CompiledRounds, Progressed, whole
from tidewolf.methods.events import Event, Expire, Observe, SetInfo, after, decision, waiting
from tidewolf.past import BACK, RoundFeedback, Step

S = TypeVar("S", bound=base.Progress)

# Rounds whose contents are remembered.
REMEMBERED = 256
# The content of a round that expired without feedback.
EXPIRED = "expired"


@final
class Memory(Generic[S]):
    """What a session in memory remembers; rounds are numbered from 0."""

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

    def take_arrays(self, found: Progressed, seen: RoundFeedback, by_number: bool) -> None:
        self.arrays = found.after

    def copy(self) -> Memory[S]:
        contents = self.contents if self.numbered else None
        return Memory(self.learner, self.state, self.info_ids, contents)

    def content_of(self, number: int) -> str | None:
        """The identity of what was observed of a round; None if it is not remembered."""
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
            raise InvalidInput("A function called observe while evaluated: only that call counts.")
        numbered = self.numbered or content is not None or EXPIRED in over.values()
        contents = self.contents
        if numbered:
            contents = dict([*{**contents, **over}.items()][-REMEMBERED:])
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
        gone = [one.round for one in waiting(self.state) if decision(state, one.round) is None]
        contents = {**self.contents, **dict.fromkeys(gone, EXPIRED)}
        info_ids = {one: own for one, own in self.info_ids.items() if decision(state, one)}
        self.learner, self._state, self.arrays = learner, state, None
        self.info_ids, self.contents = info_ids, contents

    def commit_next(self) -> None:
        self._state, self.arrays = capabilities.committed(self.learner, self.state), None

    def rollback(self, number: int, then: Step | None) -> None:
        if then is None or number in then.info_ids:
            raise InvalidInput(
                f"Round {number} cannot be gone back to: in memory a session goes back "
                f"{BACK} rounds at most, to where it began. Session.open(path, learner) keeps all."
            )
        state, info_ids, _ = self._after(whole(then.before), then.info_ids, then.events)
        contents = {
            one: content
            for one, content in self.contents.items()
            if one < number and decision(state, one) is None
        }
        self._state, self.arrays, self.info_ids = state, None, info_ids
        self.contents = contents
