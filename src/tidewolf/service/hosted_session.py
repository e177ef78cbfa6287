"""One session of the service: decide, observe, operate, and store what was answered.

The state of the learner decides, so a plain decision of the current round writes nothing. What is
played in place of it, was asked for ahead, or had side information, is noted in the same commit as
what the session itself stores. Therefore a kill between any two requests changes no answer. What
was answered in place of the learner's decision is the default of what was played.

Operators set the mode, pin a point, roll back and migrate. Each is one commit, with a line in the
audit. What is played follows from the next request on, also in the current round.

Rounds count from 0 here, as in a `Session`, and from 1 in requests, responses and the store.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, final

import numpy as np

from tidewolf.core.arrays import SILENCE, to_numpy
from tidewolf.core.batch import Batch
from tidewolf.core.conforming import is_member
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
from tidewolf.evaluation.experts import Experts
from tidewolf.functions.combined import limit_names
from tidewolf.functions.linear import Capacity
from tidewolf.live.entries import follows_clock, given_demands
from tidewolf.methods.available import entries_out
from tidewolf.methods.events import takes_late
from tidewolf.methods.moves import distance_moved
from tidewolf.service import models as m
from tidewolf.service.description import BROKEN, Built, Description, ReadFeedback, read_feedback
from tidewolf.service.modes import (
    INCUMBENT,
    Candidate,
    Note,
    Point,
    Settings,
    first_playable,
    override,
    static,
)
from tidewolf.session import Session
from tidewolf.storage.session_store import SessionInfo

if TYPE_CHECKING:
    from tidewolf.service.sessions import Sessions

RECENT, FEWEST, ROOM = 32, 4, 100_000
"""Rounds that were observed last and are remembered: at most, at least, and entries of points."""
SHOWN_ENTRIES = 20
"""Lines of the audit on the page of a session."""
SNAPSHOT_EVERY = 500
"""Observations from one stored state to the next: opening a session observes so many again."""


TO_DISK = 30.0
"""How long what is read waits for what is being written. Unit: seconds."""


def on_disk(future: Future[None]) -> None:
    """Wait until a transaction is on disk; `Overloaded` if that takes too long."""
    ended(future)
    future.result()


def ended(future: Future[None]) -> None:
    """Wait until a transaction is on disk, or failed."""
    if wait([future], TO_DISK).not_done:
        raise Overloaded(f"The disk has been busy for {TO_DISK:g} s: try again later.")


@final
class HostedSession:
    """One session of the service. The caller holds its lock, and a transaction if it writes.

    Parameters
    ----------
    host : Sessions
        All sessions: the store, how much is allowed, the clock and the counters.
    info : SessionInfo
        What the store has of it.
    built : Built
        The set, the reader of rows and the learner.
    looks : bool, default False
        Whether to look only, at what is on disk, because nothing can be written.
    """

    def __init__(
        self, host: Sessions, info: SessionInfo, built: Built, *, looks: bool = False
    ) -> None:
        self.host, self.store, self.info, self.looks = host, host.store, info, looks
        self.name = info.name
        self.settings = Settings.of(info.settings)
        self.session: Session[Any] = Session.open(
            host.store,
            built.learner,
            name=info.name,
            expire_after=self.settings.expire_after,
            read_only=looks,
            snapshot_every=SNAPSHOT_EVERY,
        )
        self.seconds = math.inf
        """what requests have taken lately"""
        self.lost = False
        """whether it is to be opened again: memory is ahead of the disk, or the past changed"""
        self.broken: dict[str, float] = {}
        """the total violation of each limit since the session was opened"""
        self.asked_at: dict[int, float] = {}
        """when rounds that are not over were decided"""
        self.recent: dict[int, Note] = {}
        """the rounds that were observed last, in the order of their observation"""
        self._answers: dict[int, Note] = {}
        """the notes of rounds that are not over"""
        self._fresh: dict[int, dict[str, Any]] = {}
        """observations of the request that is being answered, which are nowhere but here"""
        self._demands: list[float] | None = None
        self._is_overridden = self.session.overrides.rounds > 0
        self._use(built)
        self._remember()

    def took(self, seconds: float) -> None:
        """A request took so long: a mean that forgets, and goes up at once."""
        before = self.seconds if math.isfinite(self.seconds) else seconds
        self.seconds = max(seconds, before + 0.2 * (seconds - before))

    def _use(self, built: Built) -> None:
        """Continue with this learner and these names."""
        self.built, self.entries, self.K = built, built.entries, built.K
        self._kept = max(FEWEST, min(RECENT, ROOM // len(built.entries.names)))
        self._follows_clock = follows_clock(built.learner)
        self._takes_late = takes_late(built.learner)
        self._capacities: Sequence[str] | None = None

    def _remember(self) -> None:
        """Read the last rounds, and those that wait for feedback, from the store."""
        first = min(self.session.pending, default=self.session.round) + 1
        rows = self.store.last_rounds(self.name, self._kept)
        rows += self.store.rounds_of(self.name, first, self.next_round + 1)
        for number, row in sorted({row.round - 1: row for row in rows}.items()):
            note = Note.of(row)
            if note is not None and not self._is_over(number):
                self.asked_at[number] = note.at
                if self._is_current(note):
                    self._answers[number] = note._replace(observed=False)
            elif note is not None and note.observed:
                self.recent[number] = note
                self._demands = note.demands if self._is_current(note) else None

    # --- rounds -----------------------------------------------------------------------------------

    @property
    def next_round(self) -> int:
        """The round that is decided next."""
        current, waiting = self.session.round, self.session.pending
        return current + 1 if waiting and waiting[-1] == current else current

    def _is_over(self, number: int) -> bool:
        """Whether a round was observed, or expired."""
        return number < self.session.round and number not in self.session.pending

    def _is_current(self, note: Note) -> bool:
        """Whether the entries of a note are those of the set now."""
        return note.era == len(self.settings.eras)

    def _is_valid(self, number: int, note: Note) -> bool:
        """Whether an answer still holds: that of the current round follows the settings."""
        return note.serial == self.settings.serial or number != self.session.round

    def _own(self, number: int) -> Floats:
        """The learner's decision of a round that waits or is current, without asking for it."""
        if number in self.session.pending:
            return _flat(self.session.play(round=number))
        return _flat(self.session.learner.act(self.session.state))

    def note_of(self, number: int) -> Note | None:
        """What was answered in a round, or would be; None if that is not known."""
        if number < 0 or number > self.session.round:
            return None
        if not self._is_over(number):
            note = self._answers.get(number)
            if note is not None and self._is_valid(number, note):
                return note
            own, failure = self._tried(number, lambda: self._own(number))
            return self._chosen(number, override(self.settings), own, failure)
        if number in self.recent:
            return self.recent[number]
        on_disk(self.store.flushed(self.name))
        notes = map(Note.of, self.store.rounds_of(self.name, number + 1, number + 1))
        return next((note for note in notes if note is not None and note.observed), None)

    # --- decisions --------------------------------------------------------------------------------

    def decide(self, body: m.DecisionRequest) -> dict[str, Any]:
        """The decision of the current round, or of another, as often as it is asked for."""
        number = self.session.round if body.round is None else body.round - 1
        if self._is_over(number):
            note = self.note_of(number)
            if note is None:
                raise OtherContent(
                    f"Round {number + 1} is over, and its decision is not known: it expired, or "
                    f"was not noted. Round {self.session.round + 1} is current."
                )
            return self._answer(number, note)
        info = self._side_info(body)
        known = RoundInfo(**info) if info else None
        waiting, most = (
            len(self.session.pending) + number + 1 - self.next_round,
            self.host.limits.pending,
        )
        if number > self.session.round and waiting > most:
            raise TooMany(
                f"Round {number + 1} would leave {waiting:,} rounds waiting for their feedback; at "
                f"most {most:,} do. Observe some of them first."
            )
        note = self._answers.get(number)
        if note is None or not self._is_valid(number, note):
            note = self._decide(number, body, info, known)
        elif known is not None and known.identity and known.identity != note.info_id:
            raise _other_information(number)
        self.asked_at.setdefault(number, self.host.clock())
        self.trim()
        self.host.count("decisions", note.source)
        if note.fell:
            self.host.count("fallbacks", note.source)
        return self._answer(number, note)

    def _side_info(self, body: m.DecisionRequest) -> dict[str, Any]:
        """The side information of a request, as `Session.play` takes it."""
        found = {"time": body.time, "context": body.context}
        if body.unavailable:
            found["unavailable"] = self.entries.unavailable(body.unavailable)
        advice = {
            name: self.entries.point(point, f"The advice {name!r}")
            for name, point in (body.advice or {}).items()
            if point is not None
        }
        return {
            key: it for key, it in (found | {"advice": advice or None}).items() if it is not None
        }

    def _decide(
        self, number: int, body: m.DecisionRequest, info: dict[str, Any], known: RoundInfo | None
    ) -> Note:
        """The decision of a round, noted if the state alone would not give it again."""
        is_current = number == self.session.round
        is_plain = not info and is_current and number not in self.session.pending
        arguments: dict[str, Any] = info | ({} if is_current else {"round": number})
        deadline = self.settings.deadline if body.deadline is None else body.deadline
        if deadline is not None:
            arguments["deadline"] = deadline
        own, failure = self._tried(number, lambda: self.session.play(**arguments), not is_plain)
        incumbent = info.get("advice", {}).get(INCUMBENT)
        wanted = override(self.settings, None if incumbent is None else _flat(incumbent))
        if wanted is not None and wanted.source == INCUMBENT and incumbent is not None:
            self.built.require_member(incumbent, "The incumbent's point")
        note = self._chosen(number, wanted, own, failure, entries_out(self.K, known))
        note = note._replace(info_id="" if known is None else known.identity or "")
        if not is_plain or number in self._answers or note.source != "learner" or failure:
            note = note._replace(at=self.asked_at.setdefault(number, self.host.clock()))
            self._answers[number] = note
            self.store.note(self.name, note.row(number))
        return note

    def _tried(
        self, number: int, ask: Callable[[], Array], may_refuse: bool = False
    ) -> tuple[Floats | None, str]:
        """The learner's decision; or None, and what is wrong with it: whatever a learner raises, a
        caller waits for a decision.
        """
        try:
            return _flat(ask()), ""
        except OtherContent:
            raise _other_information(number) from None
        except Exception as error:
            is_refusal = may_refuse and isinstance(error, InvalidInput | NotSupported)
            if is_refusal or isinstance(error, CheckpointError):
                raise
            words = str(error).strip() or type(error).__name__
            return None, f"The learner failed: {words.removesuffix('.')}."

    def _chosen(
        self,
        number: int,
        wanted: Candidate | None,
        own: Floats | None,
        failure: str = "",
        out: Bools | None = None,
    ) -> Note:
        """What is played in a round, given the learner's decision."""
        settings, rounds = self.settings, self.session.rounds
        note = Note(own, mode=settings.mode, serial=settings.serial, era=len(settings.eras))
        reason = f"Decided by {settings.learner} after {rounds:,} round{'s' * (rounds != 1)}."
        if wanted is None and not failure and out is None:
            return note._replace(reason=reason)
        if wanted is not None and wanted.point is None:
            return note._replace(
                decision=None, source=wanted.source, reason=wanted.reason, proposal=own
            )
        learner = Candidate("learner", own, failure or reason)
        last = Candidate("last", self._last_before(number), "There is no decision before.")
        found, fell = first_playable(
            [*([] if wanted is None else [wanted]), learner, last, static(settings, self.K)],
            out,
            self.entries.names,
        )
        proposal = None if found.source == "learner" else own
        return note._replace(
            decision=found.point,
            source=found.source,
            reason=found.reason,
            proposal=proposal,
            fell=fell,
        )

    def _last_before(self, number: int) -> Floats | None:
        """The decision of the last round before this one, as far as it is known."""
        with suppress(TidewolfError):
            note = self.note_of(number - 1)
            if note is not None and note.decision is not None and self._is_current(note):
                return note.decision
            notes = filter(self._is_current, reversed(self.recent.values()))
            return next((note.decision for note in notes), None)
        return None

    def decision(self, number: int) -> dict[str, Any]:
        """The answer of a round that is over, waits, or is current, without asking for it."""
        note = self.note_of(number)
        if note is None:
            raise UnknownSession(
                f"The decision of round {number + 1} of {self.name} is not known: it was not asked "
                "for yet, expired, or nothing was noted of it."
            )
        return self._answer(number, note)

    def _answer(self, number: int, note: Note) -> dict[str, Any]:
        eras = self.settings.eras
        names = self.entries.names if note.era >= len(eras) else eras[note.era]
        before = moved = paths = None
        if self._is_current(note):
            with suppress(Exception):  # a learner that fails: its decision before is not known
                last = self.note_of(number - 1)
                before = last.decision if last is not None and self._is_current(last) else None
            if note.decision is not None:
                moved = None if before is None else distance_moved(note.decision, before)
                demands = note.demands if note.observed else self._demands
                paths = self.built.paths(note.decision.reshape(self.K.shape), demands)
        answer = {
            "round": number + 1,
            "decision": _named(names, note.decision),
            "paths": paths,
            "previous": _named(names, before),
            "moved": moved,
            "mode": note.mode,
            "source": note.source,
            "reason": note.reason,
        }
        if note.proposal is not None:
            answer["proposal"] = _named(names, note.proposal)
        return answer

    # --- observations -----------------------------------------------------------------------------

    def observe(self, body: m.Observation) -> dict[str, Any]:
        """Learn from what a round turned out to be; the same twice is answered alike and counts
        once.
        """
        session = self.session
        current, pending = session.round, session.pending
        number = current if body.round is None else body.round - 1
        content = body.given | {"round": number + 1}
        feedback = read_feedback(content, self.built)
        played = None
        if body.played is not None:
            played = self.entries.point(body.played, "What was played")
        if number > current:
            raise InvalidInput(
                f"Round {number + 1} was not asked for yet, so nothing can be observed of it: ask "
                f"for its decision first. Round {current + 1} is current."
            )
        if number in self._fresh:
            if content != self._fresh[number]:
                raise _other_content(number)
            note = self.recent[number]
        elif number < current and number not in pending:
            note = self.note_of(number) or Note(None)
            if played is None and note.played == "answered" and note.decision is not None:
                played = note.decision.reshape(self.K.shape)
            try:
                session.observe(round=number, played=played, **feedback.arguments)
            except OtherContent:
                raise _other_content(number) from None
        else:
            if (
                body.time is not None
                and self._follows_clock
                and number not in (*pending, *self._answers)
            ):
                with suppress(OtherContent):  # it was asked without, and keeps its decision
                    session.play(time=body.time)
            note = self._observe(number, feedback, played, content)
            self._fresh[number] = content
        return {
            "round": number + 1,
            "cost": note.cost,
            "violation": note.violation,
            "rounds": note.rounds or session.rounds,
        }

    def _observe(
        self, number: int, feedback: ReadFeedback, played: Array | None, content: dict[str, Any]
    ) -> Note:
        session, note = self.session, self._note_to_observe(number, played is not None)
        note = note._replace(played="" if played is None else "given", observed=True)
        if played is None and note.source != "learner" and self._takes_late:
            if note.decision is None:
                raise InvalidInput(
                    f"Round {number + 1} is in shadow, and no incumbent's point is known: say what "
                    "was played."
                )
            played = note.decision.reshape(self.K.shape)
            note = note._replace(played="answered")
        session.observe(round=number, played=played, **feedback.arguments)
        x = session.last_played if played is None else played
        with SILENCE:
            cost, violation, broken = feedback.outcome(x, self._limit_names)
        if "demands" in content:
            self._demands = given_demands(self.built.reader, content, self._demands)
        rounds, saved = session.rounds, None
        if played is not None or self._is_overridden:
            found, self._is_overridden = session.overrides, True
            saved = [found.saved_loss, found.saved_violation, found.rounds]
        note = note._replace(
            decision=_flat(x) if note.decision is None else note.decision,
            rounds=rounds,
            demands=self._demands,
            saved=saved if saved and saved[2] else None,
            at=self.host.clock(),
            cost=cost,
            violation=violation,
        )
        self.store.note(self.name, note.row(number), rounds)
        self.host.count("observations", "")
        if violation is not None and violation > BROKEN:
            self.host.count("breaches", "")
            for name, by in broken.items():
                self.broken[name] = self.broken.get(name, 0.0) + by
        for notes in (self._answers, self.asked_at, self.recent):
            notes.pop(number, None)
        self.recent[number] = note
        return note

    def _note_to_observe(self, number: int, is_played: bool) -> Note:
        """What was or would be answered in a round that is not over; without the learner's
        decision, if that was played. In the round in which an operator changed what is played,
        callers know of the change only if they asked again.
        """
        note, is_older = self._answers.get(number), number == self.settings.since
        if note is not None and (is_older or self._is_valid(number, note)):
            return note
        wanted = None if is_older else override(self.settings)
        own = self._own(number) if is_played or wanted is not None else None
        return self._chosen(number, wanted, own)

    def trim(self) -> None:
        """Forget rounds that need not be remembered, at the end of a request."""
        self._fresh = {}
        while len(self.recent) > self._kept:
            del self.recent[next(iter(self.recent))]
        if self.settings.expire_after is not None:
            self._forget_expired()

    def _forget_expired(self) -> None:
        for number in [one for one in self.asked_at if self._is_over(one)]:
            del self.asked_at[number]
            self._answers.pop(number, None)

    def _limit_names(self, limits: Batch) -> Sequence[str]:
        """The names of the limits of a round; those of capacities are the same in every round."""
        if not isinstance(limits, Capacity):
            return limit_names(self.K, limits)
        if self._capacities is None:
            self._capacities = limit_names(self.K, limits)
        return self._capacities

    # --- operating --------------------------------------------------------------------------------

    def operate(self, body: m.ModeChange | m.Pin | m.Rollback | m.Migration) -> str:
        """Do what an operator asks for; what was done, for the audit."""
        match body:
            case m.ModeChange():
                return self._set_mode(body)
            case m.Pin():
                pin = self._member(body.decision, "The decision to pin")
                self._set(self.settings.changed(pin=pin))
                return "unpin" if pin is None else "pin"
            case m.Rollback():
                return self._roll_back(body.round - 1)
            case m.Migration():
                return self._migrate(body)

    def _set_mode(self, body: m.ModeChange) -> str:
        if body.mode != "live":
            self._require_overrides()
        if body.incumbent is not None and body.mode != "shadow":
            raise InvalidInput(
                f"An incumbent's point is played in shadow, not in mode {body.mode}."
            )
        incumbent = self._member(body.incumbent, "The incumbent's point")
        frozen = self._current_point() if body.mode == "frozen" else None
        self._set(self.settings.changed(mode=body.mode, incumbent=incumbent, frozen=frozen))
        return f"mode {body.mode}"

    def _roll_back(self, number: int) -> str:
        before, session = self.next_round, self.session
        on_disk(self.store.flushed(self.name))
        try:
            session.rollback(number)
        except InvalidInput:
            raise InvalidInput(
                f"Round {number + 1} cannot be gone back to: it is after round {before + 1}, which "
                "is next, or the history before it is not stored."
            ) from None
        self.store.forget_rounds(self.name, number + 1, session.rounds)
        if self.settings.since >= number:  # that round is another one
            self.settings = replace(self.settings, since=-1)
            self.store.set(self.name, self.settings.text)
        for row in self.store.rounds_of(
            self.name, min(session.pending, default=number) + 1, number
        ):
            note = Note.of(row)
            if note is not None and row.round - 1 in session.pending:
                again = note._replace(observed=False, rounds=0, played="", saved=None)
                again = again._replace(cost=None, violation=None)
                self.store.note(self.name, again.row(row.round - 1))
        self.lost, self.asked_at = True, {}
        return f"rollback from round {before + 1} to round {number + 1}"

    def _migrate(self, body: m.Migration) -> str:
        """Continue with another learner of the same kind, such as over a network that changed."""
        changes = {key: getattr(body, key) for key in body.model_fields_set - {"why"}}
        changes = {key: it for key, it in changes.items() if it is not None or key == "fallback"}
        if not changes:
            raise InvalidInput("A migration has a set, or learners, or a fallback.")
        description = Description.read(json.loads(self.info.description) | changes)
        built, names, settings = description.build(), tuple(self.entries.names), self.settings
        self.session.migrate(built.learner)
        self._use(built)
        places = [self.entries.place.get(name, -1) for name in names]
        points = {
            key: None if point is None else self._moved(np.array(point), places)
            for key in ("pin", "incumbent", "frozen")
            for point in [getattr(settings, key)]
        }
        lost = [key for key, point in points.items() if getattr(settings, key) and point is None]
        is_same = names == tuple(self.entries.names)
        changed = replace(
            settings.changed(
                **{key: None if x is None else tuple(x.tolist()) for key, x in points.items()}
            ),
            learner=type(built.learner).__name__,
            fallback=built.fallback,
            eras=settings.eras if is_same else (*settings.eras, names),
        )
        self._set(changed)
        if "frozen" in lost:
            self._set(replace(changed, frozen=self._current_point()))
        self._move_answers(places)
        self.store.set(self.name, description.canonical, "description")
        self.lost = True
        words = f"; its {' and '.join(lost)} used removed entries" if lost else ""
        return f"migrate before round {self.session.round + 1}{words}"

    def _move_answers(self, places: list[int]) -> None:
        """What was answered in rounds that wait, in the entries of the set now."""
        for number, note in self._answers.items():
            point = None if note.decision is None else self._moved(note.decision, places)
            proposal = None if note.proposal is None else self._moved(note.proposal, places)
            moved = note._replace(decision=point, proposal=proposal, era=len(self.settings.eras))
            moved = note._replace(era=-1) if point is None else moved  # it is decided anew
            self.store.note(self.name, moved.row(number))

    def _moved(self, x: Floats, places: list[int]) -> Floats | None:
        """A point of the set before in the entries of the set now; None if that has it not."""
        found: Floats = np.zeros(len(self.entries.names))
        for value, place in zip(x.tolist(), places, strict=True):
            if place >= 0:
                found[place] = value
            elif value != 0.0:
                return None
        return found if is_member(self.K, found.reshape(self.K.shape)) else None

    def _set(self, settings: Settings) -> None:
        """Be operated so from now on."""
        self.settings = replace(settings, since=self.session.round)
        self.store.set(self.name, self.settings.text)

    def _current_point(self) -> Point:
        """The current decision, from any source."""
        number = self.session.round
        note = self.note_of(number) or Note(None)
        last, least = self._last_before(number), static(self.settings, self.K).point
        points = note.decision, note.proposal, last, least
        return next(tuple(x.tolist()) for x in points if x is not None)

    def _member(self, given: Any, what: str) -> Point | None:
        """A point of the set to be played in place of decisions, as settings store it."""
        if given is None:
            return None
        self._require_overrides()
        return tuple(_flat(self.built.member(given, what)).tolist())

    def _require_overrides(self) -> None:
        """Refuse to play other points if the learner can observe only its own."""
        if not self._takes_late:
            raise NotSupported(
                f"{self.settings.learner} takes feedback on its own decisions alone, so no other "
                "point can be played for it: choose an Ensemble, or a LyapunovDescent."
            )

    # --- looking ----------------------------------------------------------------------------------

    def description(self) -> dict[str, Any]:
        """The session as `GET sessions/{name}` answers."""
        session, settings = self.session, self.settings
        oldest = min(self.asked_at.values(), default=math.inf)
        found = session.overrides
        saved = found.saved_loss, found.saved_violation, found.rounds
        times = {key: getattr(settings, key) for key in ("deadline", "stale_after", "expire_after")}
        allowed = math.inf if settings.stale_after is None else settings.stale_after
        points = {
            key: _named(self.entries.names, getattr(settings, key))
            for key in ("fallback", "incumbent", "pin")
        }
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
            "settings": {**times, **points},
            "saved": dict(zip(("loss", "violation", "rounds"), saved, strict=True)),
            "notes": list(session.notes_from(1)),
            "pinned": settings.pin is not None,
            "stale": self.host.clock() - oldest > allowed,
        }

    def experts(self) -> dict[str, Any]:
        """The experts of a learner that mixes them."""
        found = Experts(self.session.learner.experts_of(self.session.state))
        return {"experts": found.plain()}

    def explanation(self) -> dict[str, Any]:
        """Why the learner's decision is what it is, with rounds counted from 1."""
        found = self.session.explain(names=self.entries.names).to_dict()
        for part, key in ((found, "round"), (found, "since"), (found.get("outlook"), "round")):
            if isinstance(part, dict) and part.get(key) is not None:
                part[key] += 1
        found["pending"] = [number + 1 for number in found.get("pending") or ()]
        return found

    def facts(self) -> dict[str, Any]:
        """What the page of the session shows."""
        last = next(reversed(self.recent.values()), Note(None))
        entries = self.store.entries(self.name, most=SHOWN_ENTRIES, newest=True)
        return {
            **self.description(),
            **self.experts(),
            "breached": (last.violation or 0.0) > BROKEN,
            "history": [note.past(number + 1) for number, note in self.recent.items()],
            "decision": self.decision(self.session.round),
            "limits": dict(self.broken),
            "audit": [one._asdict() for one in entries],
        }


def _other_information(number: int) -> OtherContent:
    return OtherContent(
        f"Round {number + 1} was decided with other side information, and that decision is kept: "
        "ask for it without side information, or go back to the round to decide it again."
    )


def _other_content(number: int) -> OtherContent:
    return OtherContent(
        f"Round {number + 1} is over: it was observed with other content, which is kept, or it "
        "expired. Nothing was learned."
    )


def _flat(x: Array) -> Floats:
    flat: Floats = to_numpy(x).reshape(-1) + 0.0
    return flat


def _named(names: Sequence[str], x: Floats | Point | None) -> dict[str, float] | None:
    if x is None:
        return None
    return dict(zip(names, x if isinstance(x, tuple) else x.tolist(), strict=True))
