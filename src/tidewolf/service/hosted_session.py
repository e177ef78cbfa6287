"""One session of the service: decide, observe, and keep what was answered.

The state of the learner decides, so a plain decision of the round that stands writes nothing. What
is played in place of it, was asked for ahead, or was told something, is noted together with what
the session itself keeps of it, in one commit. Therefore a kill between any two requests changes no
answer. What was answered in place of the learner's decision is the default of what was played.

Rounds count from 0 here, as sessions have them, and from 1 in requests, answers and notes.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import islice
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, final

import numpy as np

from tidewolf.core.arrays import to_numpy
from tidewolf.core.batch import Batch
from tidewolf.core.errors import (
    CheckpointError,
    InvalidInput,
    NotSupported,
    OtherContent,
    Overloaded,
    TidewolfError,
    TooMany,
    UnknownSession,
)
from tidewolf.core.round_info import RoundInfo
from tidewolf.core.types import Array, Bools, Floats
from tidewolf.functions.combined import limit_names
from tidewolf.functions.linear import Capacity
from tidewolf.live.entries import given_demands
from tidewolf.methods.available import entries_out
from tidewolf.methods.events import takes_late
from tidewolf.methods.moves import distance_moved
from tidewolf.service import modes
from tidewolf.service.description import BROKEN, Built, ReadFeedback, read_feedback
from tidewolf.service.models import DecisionRequest, Observation
from tidewolf.service.modes import (
    INCUMBENT,
    Chosen,
    Fallback,
    Override,
    Settings,
    chosen_override,
    descend,
    override_fallback,
)
from tidewolf.service.notes import Note, Observed, counted_from_one, note_from_one
from tidewolf.service.traffic import Limits
from tidewolf.session import Session
from tidewolf.storage.session_store import Round, SessionInfo, SessionStore

RECENT, FEWEST, ROOM = 32, 4, 100_000
"""Rounds that were observed last and are remembered: at most, at least, and entries of points."""
SNAPSHOT_EVERY = 500
"""Observations from one kept state to the next: opening a session observes so many again."""
TO_DISK = 30.0
"""How long what is read waits for what is being written. Unit: seconds."""


def on_disk(future: Future[None]) -> None:
    """Wait until something is on disk.

    Parameters
    ----------
    future : Future
        Of a transaction of the store.

    Raises
    ------
    Overloaded
        Where that takes too long.
    """
    try:
        future.result(TO_DISK)
    except TimeoutError:
        raise Overloaded(f"The disk has been busy for {TO_DISK:g} s: try again later.") from None


@dataclass
class Counts:
    """What happened since it was opened."""

    decisions: int = 0
    observations: int = 0
    breaches: int = 0
    """rounds in which a limit was broken"""
    broken: dict[str, float] = field(default_factory=dict)
    """by how much each limit was, in all"""


class _DecisionRequest(NamedTuple):
    """A request for a decision."""

    number: int
    side_info: Mapping[str, Any] = MappingProxyType({})
    """as `Session.play` takes it"""
    info_id: str = ""
    """the identity of that; empty if nothing is known"""
    out: Bools | None = None
    deadline: float | None = None


@final
class HostedSession:
    """One session of the service. The caller holds its lock, and a transaction if it writes.

    Parameters
    ----------
    store : SessionStore
        Where it is kept.
    info : SessionInfo
        What the store has of it.
    built : Built
        What its description makes: who reads rows, and who decides.
    limits : Limits
        How much is allowed.
    clock : callable
        The time now. Unit: seconds since 1970.
    looks : bool, default False
        Whether to look only, at what it is on disk, where nothing can be written.
    """

    def __init__(
        self,
        store: SessionStore,
        info: SessionInfo,
        built: Built,
        limits: Limits,
        clock: Callable[[], float],
        *,
        looks: bool = False,
    ) -> None:
        self.looks = looks
        self.store, self.info, self.limits, self.clock = store, info, limits, clock
        self.name = info.name
        self.settings = Settings.of(info.settings)
        self.session: Session[Any] = Session.open(
            store,
            built.learner,
            name=info.name,
            expire_after=self.settings.expire_after,
            read_only=looks,
            snapshot_every=SNAPSHOT_EVERY,
        )
        self.counts = Counts()
        self.seconds = math.inf
        """what requests have taken lately"""
        self.fell = False
        """whether the last decision is what was left when something failed"""
        self.lost = False
        """whether a commit failed: memory is ahead of the disk"""
        self.asked_at: dict[int, float] = {}
        """when rounds that are not over were decided"""
        self._answers: dict[int, Note] = {}
        """what was noted of rounds that are not over"""
        self.recent: dict[int, Observed] = {}
        """the rounds that were observed last, in the order of their observation"""
        self._fresh: dict[int, dict[str, Any]] = {}
        """observations of the request that is being answered, which are nowhere but here"""
        self._demands: list[float] | None = None
        self.goes_on_as(built)
        self._remember()

    def took(self, seconds: float) -> None:
        """A request took so long: a mean that forgets, and goes up at once."""
        side_info = self.seconds if math.isfinite(self.seconds) else seconds
        self.seconds = max(seconds, side_info + 0.2 * (seconds - side_info))

    def goes_on_as(self, built: Built) -> None:
        """With this learner, and these names, from now on."""
        self.built, self.entries, self.K = built, built.entries, built.K
        self._kept = max(FEWEST, min(RECENT, ROOM // len(built.names)))
        self._clock = built.follows_clock
        self._capacities: tuple[str, ...] | None = None
        self._late = takes_late(built.learner)

    def _remember(self) -> None:
        """Read the last rounds, and those that wait for feedback, from the store."""
        waiting = self.session.pending
        first = min(waiting, default=self.session.round) + 1
        last = self.store.last_rounds(self.name, self._kept)
        found = {one.round: one for one in last}
        found |= {r.round: r for r in self.store.rounds_of(self.name, first, self.next_round + 1)}
        for number in sorted(found):
            one = found[number]
            note = Note.decode(one.note)
            if note is None:
                continue
            if self._is_over(number - 1):
                if note.observed:
                    self.recent[number - 1] = Observed(one.at, one.cost, one.violation, note)
                    self._demands = note.demands
            else:
                self._answers[number - 1] = note._replace(observed=False)
                self.asked_at[number - 1] = one.at

    # --- rounds -----------------------------------------------------------------------------------

    @property
    def next_round(self) -> int:
        """The round that is decided next."""
        current, waiting = self.session.round, self.session.pending
        return current + 1 if waiting and waiting[-1] == current else current

    def _is_over(self, number: int) -> bool:
        """Whether a round was observed, or expired."""
        return number < self.session.round and not self._waits(number)

    def _waits(self, number: int) -> bool:
        waiting = self.session.pending
        place = bisect_left(waiting, number)
        return place < len(waiting) and waiting[place] == number

    def _own(self, number: int) -> Array:
        """The learner's decision of a round that waits or stands, looked at and not asked for."""
        if self._waits(number):
            return self.session.play(round=number)
        return self.session.learner.act(self.session.state)

    def observed(self, number: int) -> Observed | None:
        """What is known of a round that is over."""
        found = self.recent.get(number)
        if found is not None or not self._is_over(number):
            return found
        on_disk(self.store.flushed(self.name))
        for one in self.store.rounds_of(self.name, number + 1, number + 1):
            if (note := Note.decode(one.note)) is not None and note.observed:
                return Observed(one.at, one.cost, one.violation, note)
        return None

    # --- decisions --------------------------------------------------------------------------------

    def decide(self, given: Any) -> dict[str, Any]:
        """The decision of the round that stands, or of another, as often as it is asked.

        Parameters
        ----------
        given : mapping, optional
            The request: `round`, `time`, `context`, `advice`, `unavailable`, `deadline`.

        Returns
        -------
        dict
            The answer.
        """
        self.fell = False
        body = DecisionRequest.read(given)
        number = self.session.round if body.round is None else body.round - 1
        if self._is_over(number):
            return self._decision_again(number)
        request = self._decision_request(number, body.given)
        self._require_room(number)
        before = self._answers.get(number)
        if before is not None and self._stands(number, before):
            if request.info_id and request.info_id != before.info_id:
                raise OtherContent(
                    f"Round {number + 1} was decided when something else was known, and that "
                    "decision stands: ask for it without what is known, or go back to the round "
                    "to decide it anew."
                )
            note = before
        else:
            note = self._decide_round(request, before)
        self.asked_at.setdefault(number, self.clock())
        self._forget_expired()
        self.counts.decisions += 1
        self.fell = note.fell
        return self._answer(number, note)

    def _decision_again(self, number: int) -> dict[str, Any]:
        found = self.observed(number)
        if found is None:
            raise OtherContent(
                f"Round {number + 1} is over, and its decision is not known: it expired, or was "
                f"not noted. Round {self.session.round + 1} stands."
            )
        return self._answer(number, found.note)

    def _stands(self, number: int, note: Note) -> bool:
        """Whether what was answered of a round still is: the one that stands follows the mode."""
        return note.serial == self.settings.serial or number != self.session.round

    def _decision_request(self, number: int, body: dict[str, Any]) -> _DecisionRequest:
        side_info: dict[str, Any] = {key: body[key] for key in ("time", "context") if key in body}
        if "unavailable" in body:
            side_info["unavailable"] = self.entries.unavailable(body["unavailable"])
        if "advice" in body:
            side_info["advice"] = {
                name: self.entries.point(point, f"The advice {name!r}")
                for name, point in body["advice"].items()
                if point is not None
            }
        side_info = {key: value for key, value in side_info.items() if value not in ([], {})}
        said = RoundInfo(**side_info) if side_info else None
        return _DecisionRequest(
            number,
            side_info,
            "" if said is None else said.identity or "",
            entries_out(self.session.learner.hard_set, said),
            body.get("deadline", self.settings.deadline),
        )

    def _require_room(self, number: int) -> None:
        if number <= self.session.round:
            return
        waiting = len(self.session.pending) + number + 1 - self.next_round
        if waiting > self.limits.pending:
            raise TooMany(
                f"Round {number + 1} would leave {waiting:,} rounds waiting for their feedback; at "
                f"most {self.limits.pending:,} do. Observe some of them first."
            )

    def _decide_round(self, request: _DecisionRequest, before: Note | None) -> Note:
        """The decision of a round, noted where the state alone would not give it again."""
        is_plain = not request.side_info and request.number == self.session.round
        is_plain = is_plain and not self._waits(request.number)
        own, failure = self._ask_learner(request, is_plain)
        incumbent = request.side_info.get("advice", {}).get(INCUMBENT)
        override = chosen_override(self.settings, None if incumbent is None else _flat(incumbent))
        if override.source == INCUMBENT and incumbent is not None:
            self.built.require_member(incumbent, "The incumbent's point")
        note = self._chosen(request, override, own, failure)
        if not is_plain or before is not None or note.source != "learner" or failure:
            self._note(request.number, note)
        return note

    def _ask_learner(self, request: _DecisionRequest, is_plain: bool) -> tuple[Floats | None, str]:
        """The learner's decision; or None, and what is wrong with it."""
        arguments = dict(request.side_info)
        if request.number != self.session.round:
            arguments["round"] = request.number
        if request.deadline is not None:
            arguments["deadline"] = request.deadline
        try:
            with counted_from_one():
                return _array(self.session.play(**arguments)), ""
        except CheckpointError:
            raise
        except (InvalidInput, NotSupported) as error:
            if not is_plain:
                raise
            return None, _failed(error)
        except Exception as error:  # whatever a learner raises, a caller waits for a decision
            return None, _failed(error)

    def _chosen(
        self, request: _DecisionRequest, override: Override, own: Floats | None, failure: str
    ) -> Note:
        settings = self.settings
        note = Note(
            own,
            mode=settings.mode,
            reason=self._learner_reason(),
            info_id=request.info_id,
            serial=settings.serial,
            era=len(settings.eras),
        )
        if override.source == INCUMBENT and override.point is None:
            return note._replace(
                decision=None, source=INCUMBENT, reason=override.reason, proposal=own
            )
        if override.is_learners and own is not None and request.out is None:
            return note
        fallbacks = [] if override.is_learners else [override_fallback(override)]
        fallbacks += self._fallbacks(request.number, own, failure)
        found: Chosen = descend(fallbacks, request.out, self.entries.names)
        differs = own is not None and found.source != "learner"
        return note._replace(
            decision=found.point,
            source=found.source,
            reason=found.reason,
            proposal=own if differs else None,
            fell=found.fell,
        )

    def _fallbacks(self, number: int, own: Floats | None, failure: str) -> list[Fallback]:
        """The ladder from the learner down."""
        return [
            Fallback("learner", lambda: own, self._learner_reason(), failure),
            Fallback(
                "last", lambda: self._good_before(number), without="There is no decision before."
            ),
            Fallback("static", self.static),
        ]

    def _learner_reason(self) -> str:
        rounds = self.session.rounds
        return f"Decided by {self.settings.learner} after {rounds:,} round{'s' * (rounds != 1)}."

    def static(self) -> Floats:
        """What is played where nothing else can be."""
        if self.settings.fallback is not None:
            return np.array(self.settings.fallback)
        return _array(self.session.learner.hard_set.center)

    def _good_before(self, number: int) -> Floats | None:
        """The decision of the last round before this one, as far as it is known."""
        with suppress(TidewolfError):
            found = self.decision_of(number - 1)
            if found is not None:
                return found
            era = len(self.settings.eras)
            side_info = (one.note for one in reversed(self.recent.values()) if one.note.era == era)
            return next((note.decision for note in side_info), None)
        return None

    def decision_of(self, number: int) -> Floats | None:
        """What was answered in a round, in the entries of today; None where that is not known."""
        if number < 0 or number > self.session.round:
            return None
        if number in self._answers:
            return self._answers[number].decision
        if self._is_over(number):
            found = self.observed(number)
            if found is None or found.note.era != len(self.settings.eras):
                return None
            return found.note.decision
        override = chosen_override(self.settings)
        if not override.is_learners:
            return None if override.point is None else np.array(override.point)
        return _array(self._own(number))

    def decision(self, number: int) -> dict[str, Any]:
        """The answer of a round that is over, waits, or stands, looked at and not asked for.

        Parameters
        ----------
        number : int
            The round, from 0.

        Returns
        -------
        dict
            As `decide` answers.
        """
        if number > self.session.round:
            raise UnknownSession(f"Round {number + 1} of {self.name} was not asked for yet.")
        if self._is_over(number):
            found = self.observed(number)
            if found is None:
                raise UnknownSession(
                    f"The decision of round {number + 1} of {self.name} is not known: it expired, "
                    "or nothing was noted of it."
                )
            return self._answer(number, found.note)
        return self._answer(number, self._current_note(number))

    def _current_note(self, number: int) -> Note:
        """What was answered of a round that waits or stands, or would be."""
        note = self._answers.get(number)
        if note is not None and self._stands(number, note):
            return note
        request = _DecisionRequest(number, info_id="" if note is None else note.info_id)
        return self._chosen(request, chosen_override(self.settings), *self._look(number))

    def _look(self, number: int) -> tuple[Floats | None, str]:
        try:
            return _array(self._own(number)), ""
        except CheckpointError:
            raise
        except Exception as error:  # as where it is asked
            return None, _failed(error)

    def _answer(self, number: int, note: Note) -> dict[str, Any]:
        eras = self.settings.eras
        is_today = note.era == len(eras)
        names = self.entries.names if note.era >= len(eras) else eras[note.era]
        before = self._previous(number) if is_today else None
        moved = None
        if before is not None and note.decision is not None:
            moved = distance_moved(note.decision, before)
        answer = {
            "round": number + 1,
            "decision": _named(names, note.decision),
            "paths": self._paths(note) if is_today else None,
            "previous": _named(names, before),
            "moved": moved,
            "mode": note.mode,
            "source": note.source,
            "reason": note.reason,
        }
        if note.proposal is not None:
            answer["proposal"] = _named(names, note.proposal)
        return answer

    def _previous(self, number: int) -> Floats | None:
        try:
            return self.decision_of(number - 1)
        except CheckpointError:
            raise
        except Exception:  # a learner that fails: what it would have played is not known
            return None

    def _paths(self, note: Note) -> list[dict[str, Any]] | None:
        if note.decision is None:
            return None
        x = note.decision.reshape(self.K.shape)
        return self.built.paths(x, note.demands if note.observed else self._demands)

    def _note(self, number: int, note: Note) -> None:
        """Keep what was answered in a round that is not over."""
        self._answers[number] = note
        at = self.asked_at.setdefault(number, self.clock())
        self.store.note(self.name, Round(number + 1, at, None, None, note.encode()))

    # --- observations -----------------------------------------------------------------------------

    def observe(self, given: Any) -> dict[str, Any]:
        """Learn from what a round turned out to be; the same twice is answered alike and counts
        once.

        Parameters
        ----------
        given : mapping
            The observation.

        Returns
        -------
        dict
            The `round`, its `cost` and `violation`, and how many `rounds` were observed then.
        """
        body, current = Observation.read(given).given, self.session.round
        number = body["round"] - 1 if "round" in body else current
        seen = read_feedback(body, self.built)
        played = None
        if "played" in body:
            played = self.entries.point(body["played"], "What was played")
        if number > current:
            raise InvalidInput(
                f"Round {number + 1} was not asked for yet, so nothing can be observed of it: ask "
                f"for its decision first. Round {current + 1} stands."
            )
        if number in self._fresh:
            found = self._observe_fresh(number, body)
        elif number < current and not self._waits(number):
            found = self._observe_again(number, seen, played)
        else:
            found = self._observe(number, seen, played, body)
            self._fresh[number] = {**body, "round": number + 1}
        return {
            "round": number + 1,
            "cost": found.cost,
            "violation": found.violation,
            "rounds": found.note.rounds or self.session.rounds,
        }

    def _observe_again(self, number: int, seen: ReadFeedback, played: Array | None) -> Observed:
        found = self.observed(number)
        if played is None and found is not None and found.note.played == "answered":
            assert found.note.decision is not None
            played = found.note.decision.reshape(self.K.shape)
        with counted_from_one():
            self.session.observe(round=number, played=played, **seen.arguments)
        return found or Observed(0.0, None, None, Note(None))

    def _observe_fresh(self, number: int, body: dict[str, Any]) -> Observed:
        if {**body, "round": number + 1} != self._fresh[number]:
            raise OtherContent(
                f"Round {number + 1} is in the request twice, with other content: the first stands."
            )
        return self.recent[number]

    def _observe(
        self, number: int, seen: ReadFeedback, played: Array | None, body: dict[str, Any]
    ) -> Observed:
        self._tell_time(number, body.get("time"))
        own = self._own(number)
        answer = self._current_answer(number, own)
        how: Literal["", "given", "answered"] = "given"
        if played is None:
            played, how = self._answered(number, answer)
        with counted_from_one():
            self.session.observe(round=number, played=played, **seen.arguments)
        x = own if played is None else played
        if answer.decision is None:
            answer = answer._replace(decision=_array(x))
        self._demands = given_demands(self.built.reader, body, self._demands)
        rounds, saved = self.session.rounds, self.session.overrides
        note = answer._replace(
            observed=True,
            rounds=rounds,
            played=how,
            demands=self._demands,
            saved=[saved.saved_loss, saved.saved_violation, saved.rounds] if saved.rounds else None,
        )
        found = Observed(self.clock(), seen.cost(x), seen.violation(x), note)
        row = Round(number + 1, found.at, found.cost, found.violation, note.encode())
        self.store.note(self.name, row, rounds)
        self._count(found, seen, x)
        self._answers.pop(number, None)
        self.asked_at.pop(number, None)
        self.recent.pop(number, None)
        self.recent[number] = found
        return found

    def trim(self) -> None:
        """Let go of rounds that are remembered for nothing, at the end of a request."""
        self._fresh = {}
        if (over := len(self.recent) - self._kept) > 0:
            for number in list(islice(self.recent, over)):
                del self.recent[number]
        self._forget_expired()

    def _forget_expired(self) -> None:
        """Without rounds that are waited for no more."""
        if self.settings.expire_after is None:
            return
        for number in [one for one in self.asked_at if self._is_over(one)]:
            del self.asked_at[number]
            self._answers.pop(number, None)

    def _tell_time(self, number: int, time: Any) -> None:
        """When the round is, for a learner that goes by the clock and was not asked before."""
        if time is None or not self._clock or number in self._answers:
            return
        if number != self.session.round or self._waits(number):
            return
        with suppress(OtherContent):  # it was asked without, and the decision stands
            self.session.play(time=time)

    def _current_answer(self, number: int, own: Array) -> Note:
        """What was or would be answered for a round that is not over. In the round in which an
        operator changed what is played, callers know of the change only if they asked again.
        """
        note = self._answers.get(number)
        if note is not None and (self._stands(number, note) or number == self.settings.since):
            return note
        is_older = number == self.settings.since
        override = Override("learner", None, "") if is_older else chosen_override(self.settings)
        info_id = "" if note is None else note.info_id
        return self._chosen(_DecisionRequest(number, info_id=info_id), override, _array(own), "")

    def _answered(
        self, number: int, answer: Note
    ) -> tuple[Array | None, Literal["", "given", "answered"]]:
        """What was played, if the observation does not say it."""
        if answer.source == "learner" or not self._late:
            return None, ""
        if answer.decision is None:
            raise InvalidInput(
                f"Round {number + 1} is in shadow, and no incumbent's point is known: say what was "
                "played."
            )
        return answer.decision.reshape(self.K.shape), "answered"

    def _count(self, found: Observed, seen: ReadFeedback, x: Array) -> None:
        counts = self.counts
        counts.observations += 1
        if found.violation is not None and found.violation > BROKEN:
            counts.breaches += 1
            for name, by in seen.broken(x, self._limit_names).items():
                counts.broken[name] = counts.broken.get(name, 0.0) + by

    def _limit_names(self, limits: Batch) -> Sequence[str]:
        """What the limits of a round are called; capacities are called alike in every round."""
        if not isinstance(limits, Capacity):
            return limit_names(self.K, limits)
        if self._capacities is None:
            self._capacities = limit_names(self.K, limits)
        return self._capacities

    # --- what operators do ------------------------------------------------------------------------

    def operate(self, settings: Settings) -> None:
        """Be operated so from now on."""
        self.settings = replace(settings, since=self.session.round)
        self.store.set(self.name, self.settings.text)

    def current_decision(self) -> Floats:
        """The current decision, from any source."""
        number = self.session.round
        found = self._current_note(number).decision
        if found is not None:
            return found
        fallbacks = self._fallbacks(number, *self._look(number))
        return descend(fallbacks, None, self.entries.names).point

    def went_back(self, number: int) -> None:
        """Forget what was answered since a round became the coming one."""
        waiting = self.session.pending
        first = min(waiting, default=number) + 1
        self.store.forget_rounds(self.name, number + 1, self.session.rounds)
        if self.settings.since >= number:  # that round is another one
            self.settings = replace(self.settings, since=-1)
            self.store.set(self.name, self.settings.text)
        self._answers, self.asked_at = {}, {}
        self.recent = {
            one: found
            for one, found in self.recent.items()
            if one < number and not self._waits(one)
        }
        for row in self.store.rounds_of(self.name, first, number):
            note = Note.decode(row.note)
            if note is not None and self._waits(row.round - 1):
                self.asked_at[row.round - 1] = row.at
                self._note(
                    row.round - 1, note._replace(observed=False, rounds=0, played="", saved=None)
                )
        before = self.observed(number - 1)
        self._demands = None if before is None else before.note.demands

    def migrated(self, moved: Callable[[Floats], Floats | None]) -> None:
        """What was answered in rounds that wait, in the entries of the set now."""
        for number, note in list(self._answers.items()):
            del self._answers[number]
            if self._is_over(number):
                self.asked_at.pop(number, None)
            point = None if note.decision is None else moved(note.decision)
            if self._is_over(number) or point is None:
                continue
            proposal = None if note.proposal is None else moved(note.proposal)
            era = len(self.settings.eras)
            self._note(number, note._replace(decision=point, proposal=proposal, era=era))
        self._demands = None

    # --- what is known of it ----------------------------------------------------------------------

    def member(self, given: Any, what: str) -> modes.Point:
        """A point of the set, as settings keep it."""
        return _flat(self.built.member(given, what))

    def require_overrides(self) -> None:
        """Refuse to play other points if the learner can observe only its own."""
        if not self._late:
            raise NotSupported(
                f"{self.settings.learner} takes feedback on its own decisions alone, so no other "
                "point can be played for it: choose an Ensemble, or a LyapunovDescent."
            )

    @property
    def oldest(self) -> float | None:
        """When the oldest decision was made that waits for its feedback."""
        return min(self.asked_at.values(), default=None)

    @property
    def is_stale(self) -> bool:
        """Whether it has waited for too long."""
        after, oldest = self.settings.stale_after, self.oldest
        return after is not None and oldest is not None and self.clock() - oldest > after

    def description(self) -> dict[str, Any]:
        """The description of the session.

        Returns
        -------
        dict
            As `GET sessions/{name}` answers.
        """
        session, settings = self.session, self.settings
        saved = session.overrides
        return {
            "name": self.name,
            "rounds": session.rounds,
            "pending": [number + 1 for number in session.pending],
            "round": session.round + 1,
            "mode": settings.mode,
            "learner": settings.learner,
            "names": list(self.entries.names),
            "shape": list(self.K.shape),
            "created": self.info.created,
            "settings": {
                "deadline": settings.deadline,
                "stale_after": settings.stale_after,
                "expire_after": settings.expire_after,
                "fallback": self._point_by_name(settings.fallback),
                "incumbent": self._point_by_name(settings.incumbent),
                "pin": self._point_by_name(settings.pin),
            },
            "saved": {
                "loss": saved.saved_loss,
                "violation": saved.saved_violation,
                "rounds": saved.rounds,
            },
            "notes": [note_from_one(note) for note in session.notes],
            "pinned": settings.pin is not None,
            "stale": self.is_stale,
        }

    def _point_by_name(self, point: modes.Point | None) -> dict[str, float] | None:
        return None if point is None else dict(zip(self.entries.names, point, strict=True))


def _failed(error: BaseException) -> str:
    said = str(error).strip() or type(error).__name__
    return f"The learner failed: {said if said.endswith('.') else f'{said}.'}"


def _array(x: Array) -> Floats:
    flat: Floats = to_numpy(x).reshape(-1) + 0.0
    return flat


def _flat(x: Array) -> modes.Point:
    return tuple(_array(x).tolist())


def _named(names: list[str] | tuple[str, ...], x: Floats | None) -> dict[str, float] | None:
    return None if x is None else dict(zip(names, x.tolist(), strict=True))
