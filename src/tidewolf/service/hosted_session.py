"""One session of the service: decide, observe, and store what was answered.

Which point is played, and why:

    pinned      the point that was given, whatever the mode
    live        the learner's decision
    shadow      the incumbent's point: as the request has it, else as it was given with the mode;
                if none is known the learner's decision is a proposal, and the observation contains
                what was played
    frozen      the decision of the round in which it was frozen

The learner decides and learns in all of them. It observes what is played in place of its decision
as `played`. If something fails, what is played is the first of

    [what is pinned, frozen, or the incumbent's]  ->  learner  ->  last  ->  static

that has a point and does without the entries that are unavailable. The response has the reasons.

The state of the learner decides, so a plain decision of the current round writes nothing. What is
played in place of it, was asked for ahead, or had side information, is noted in the same commit as
what the session itself stores. Therefore a kill between any two requests changes no answer. What
was answered in place of the learner's decision is the default of what was played. A note is stored
as a line of JSON, then numbers in binary:

    {"mode": ..., "source": ..., ...} \\n decision (8 bytes per entry) [proposal (the same)]

What a round turned out to be is read here, too:

    {"costs": ..., "capacities": ...}                       functions, looked at anywhere
    {"loss_gradient": ..., "constraint_value": ...}         at the point that was played
    {"loss_value": ..., "constraint_value": ...}            there too, if only values are seen

Rounds count from 0 here, as in a `Session`, and from 1 in requests, responses and the store.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, wait
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, final

import numpy as np
import orjson

from tidewolf.core import arrays, batch, errors, round_info
from tidewolf.core.arguments import listed
from tidewolf.core.errors import InvalidInput, NotSupported, OtherContent, refuse, require_some
from tidewolf.core.types import Array, Bools, Floats
from tidewolf.evaluation.formatting import plain
from tidewolf.functions import combined, linear
from tidewolf.live import NUMBERS, follows_clock, given_demands, paths_of
from tidewolf.methods import available, budget, capabilities
from tidewolf.service import models as m
from tidewolf.session import Session
from tidewolf.sets.base import ConvexSet
from tidewolf.storage.session_store import Round, SessionInfo

if TYPE_CHECKING:
    from tidewolf.service.sessions import Sessions

# Rounds that were observed last and are remembered: at most, at least, and entries of points.
RECENT, FEWEST, ROOM = 32, 4, 100_000
# How long what is read waits for what is being written. Unit: seconds.
TO_DISK = 30.0
# The name of the incumbent's point in the advice of a request.
INCUMBENT = "incumbent"
# Limits that are broken by less are not: that is rounding.
BROKEN = 1e-9
# The name of a limit if a round has no other.
ONLY_LIMIT = "the limit"
_OTHER_INFORMATION = "Round {} was decided with other side information: roll back to decide again."


def ended(future: Future[None]) -> Future[None]:
    """Wait until a transaction is on disk or failed; `Overloaded` if that takes too long."""
    if wait([future], TO_DISK).not_done:
        raise errors.Overloaded(f"The disk has been busy for {TO_DISK:g} s: try again later.")
    return future


_NUMBER = np.dtype("<f8")


class Note(NamedTuple):
    """What was answered in a round, and what came of it.

    Parameters
    ----------
    decision : array, optional
        What was answered, flat; what was played, if no point was known. None: neither.
    mode : str, default "live"
        In which mode.
    source : str, default "learner"
        Where the point comes from.
    reason : str, default ""
        Why.
    proposal : array, optional
        What the learner would have played, if that is another point.
    info_id : str, default ""
        The identity of the side information; empty if there was none.
    serial : int, default 0
        How often the settings had been changed.
    era : int, default 0
        Which names the entries have.
    observed : bool, default False
        Whether the round is over.
    fell : bool, default False
        Whether a source that comes first failed, or its point could not be played.
    rounds : int, default 0
        How many had been observed, this one included; 0 if it was not.
    played : "", "given" or "answered", default ""
        Whether what was played was given, or was the answer in place of the decision; empty if it
        was the decision.
    demands : list of float, optional
        What each commodity sent, as far as it is known.
    saved : list of float, optional
        Loss and violation that the learner's decisions would have saved so far, and over how many
        rounds; None if they were played in all of them.
    at : float, default 0.0
        When. Unit: seconds since 1970.
    cost, violation : float, optional
        Of what was played.
    """

    decision: Floats | None
    mode: str = "live"
    source: str = "learner"
    reason: str = ""
    proposal: Floats | None = None
    info_id: str = ""
    serial: int = 0
    era: int = 0
    observed: bool = False
    fell: bool = False
    rounds: int = 0
    played: Literal["", "given", "answered"] = ""
    demands: list[float] | None = None
    saved: list[float] | None = None
    at: float = 0.0
    cost: float | None = None
    violation: float | None = None

    def row(self, number: int) -> Round:
        # Fields that are not in the line of JSON.
        text: dict[str, Any] = {
            key: value
            for key, value in self._asdict().items()
            if key not in ("decision", "proposal", "at", "cost", "violation")
            and value != self._field_defaults[key]
        }
        points = self.decision, self.proposal
        text["arrays"] = (points[0] is not None) + 2 * (points[1] is not None)
        parts = [x.astype(_NUMBER).tobytes() for x in points if x is not None]
        note = b"".join((orjson.dumps(text), b"\n", *parts))
        return Round(number + 1, self.at, self.cost, self.violation, note)

    def answer(
        self, number: int, names: Sequence[str], before: Floats | None, paths: Any
    ) -> dict[str, Any]:
        x, proposal = self.decision, _named(names, self.proposal)
        return {
            "round": number + 1,
            "decision": _named(names, x),
            "paths": paths,
            "previous": _named(names, before),
            "mode": self.mode,
            "source": self.source,
            "moved": None if x is None or before is None else available.distance_moved(x, before),
            "reason": self.reason,
            **({} if proposal is None else {"proposal": proposal}),
        }

    def past(self, number: int) -> dict[str, Any]:
        keys = ("at", "cost", "violation", "mode", "source")
        return {"round": number, **{key: getattr(self, key) for key in keys}}

    @classmethod
    def of(cls, row: Round) -> "Note | None":
        text, _, numbers = row.note.partition(b"\n")
        try:
            found = orjson.loads(text)
            which = found.pop("arrays")
            flat = np.frombuffer(numbers, _NUMBER).astype(np.float64)
            parts = iter(np.split(flat, max(1, which.bit_count())))
            for key, bit in (("decision", 1), ("proposal", 2)):
                found[key] = next(parts) if which & bit else None
            return cls(**found, at=row.at, cost=row.cost, violation=row.violation)
        except (ValueError, KeyError, TypeError, AttributeError):
            return None


# --- what is played -------------------------------------------------------------------------------

# Sources of a decision, in words.
CALLED = {
    "pinned": "the pinned point",
    "incumbent": "the incumbent's point",
    "learner": "the learner's decision",
    "last": "the last decision",
    "static": "the static point",
}


class Candidate(NamedTuple):
    source: str
    point: Floats | None
    # why it is played; if there is no point, why not
    reason: str = ""


def static(settings: m.Settings, K: Any) -> Candidate:
    """What is played if nothing else can be: the fallback, or the set's center."""
    point = _flat(K.center) if settings.fallback is None else np.array(settings.fallback)
    return Candidate("static", point + 0.0)


def override(settings: m.Settings, incumbent: Floats | None = None) -> Candidate | None:
    """What is to be played in place of the learner's decision; None if nothing is.

    The incumbent's point is that of the request. A candidate without a point is an incumbent whose
    point is not known.
    """
    if settings.pin is not None:
        return Candidate("pinned", np.array(settings.pin), "It is pinned at this point.")
    if settings.mode == "frozen" and settings.frozen is not None:
        reason = "It is frozen: this decision is repeated."
        return Candidate("last", np.array(settings.frozen), reason)
    if settings.mode != "shadow":
        return None
    known = settings.incumbent if incumbent is None else incumbent
    if known is None:
        reason = "It is in shadow without an incumbent's point: the observation has what is played."
        return Candidate(INCUMBENT, None, reason)
    reason = "It is in shadow: the incumbent's point is played."
    return Candidate(INCUMBENT, np.array(known), reason)


def first_playable(
    candidates: Iterable[Candidate], out: Bools | None, names: Sequence[str]
) -> tuple[Candidate, bool]:
    """The first candidate that has a point without the entries that are out, and whether it is not
    the first one; its reason is then what is wrong with those before it.

    Raises
    ------
    NotSupported
        If there is none.

    Examples
    --------
    >>> from tidewolf.service.hosted_session import Candidate, first_playable
    >>> candidates = [
    ...     Candidate("learner", None, "The learner failed: it gave up."),
    ...     Candidate("static", np.array([0.5, 0.5])),
    ... ]
    >>> first_playable(candidates, None, ["a", "b"])[0].reason
    'The learner failed: it gave up. So the static point is played.'
    """
    wrong: list[str] = []
    for candidate in candidates:
        called = CALLED[candidate.source]
        if candidate.point is None:
            wrong += [candidate.reason] * bool(candidate.reason)
        elif out is not None and candidate.point[out].any():
            used = [names[i] for i in np.flatnonzero(out & (candidate.point != 0.0)).tolist()]
            wrong.append(f"{called.capitalize()} uses {listed(used)}: unavailable.")
        else:
            so = " ".join([*wrong, f"So {called} is played."])
            return candidate._replace(reason=so) if wrong else candidate, bool(wrong)
    raise NotSupported(f"{' '.join(wrong)} No other point is known.")


# --- what a round turned out to be ----------------------------------------------------------------

_VALUES = {"loss_gradient", "constraint_value", "constraint_gradient", "loss_value"}
_NUMBERS = {*NUMBERS, "budget", "spend"}


class ReadFeedback(NamedTuple):
    # as `Session.observe` takes it
    arguments: dict[str, Any]
    # the loss and the limits; None: only values, or gradients, at what was played are known
    functions: tuple[batch.Batch, batch.Batch] | None = None

    @classmethod
    def of(cls, given: Mapping[str, Any], built: m.Built) -> "ReadFeedback":
        values, numbers = given.keys() & _VALUES, given.keys() & _NUMBERS
        if numbers and values:
            raise InvalidInput(
                f"The observation has {min(numbers)} and {min(values)}: give numbers, or values or "
                "gradients."
            )
        if not values:
            if "budget" in given and "budgets" not in given:
                given = {**given, "budgets": given["budget"]}
            try:
                losses, limits = built.reader.functions(given, "The observation")
            except InvalidInput as error:  # it reads a row as it does a table, which has lines
                raise type(error)(str(error).replace(", line 1:", ":")) from None
            arguments: dict[str, Any] = {"loss": losses, "constraint": limits}
            if isinstance(losses, linear.Linear) and np.isnan(losses.C).any():
                costs = losses.C.reshape(-1)  # by place: what is missing was not seen
                seen = {i: float(costs[i]) for i in np.flatnonzero(~np.isnan(costs)).tolist()}
                arguments = {"costs": seen, "constraint": limits}
            elif isinstance(losses, linear.Linear) and isinstance(
                limits, linear.Capacity | batch.Unlimited
            ):
                c = limits.c[0] if isinstance(limits, linear.Capacity) else None
                arguments = {"costs": losses.C[0], "capacities": c}  # as kernels take them
            if "spend" in given:
                arguments["spend"] = built.reader.spend(given, "The observation")
            return cls(arguments, (losses, limits))
        if "constraint_value" not in values:
            raise InvalidInput(f"With {min(values)} give constraint_value, too, such as 0.")
        arguments, point = {key: given[key] for key in values}, built.reader.point
        has_list = isinstance(arguments["constraint_value"], list)
        if has_list:
            arguments["constraint_value"] = np.array(arguments["constraint_value"])
        for key in arguments.keys() & {"loss_gradient", "constraint_gradient"}:
            x = arguments[key]
            several = has_list and key == "constraint_gradient" and isinstance(x, list)
            arguments[key] = np.array([point(one, key) for one in x]) if several else point(x, key)
        return cls(arguments)

    def outcome(
        self, x: Array, K: ConvexSet
    ) -> tuple[float | None, float | None, dict[str, float]]:
        """The cost and the violation of a point, None if unknown, and of each violated limit."""
        given = self.arguments
        if self.functions is None:
            cost, values = given.get("loss_value", math.nan), given["constraint_value"]
        elif given.get("capacities") is not None:  # at once, because most rounds are of this kind
            cost, values = np.vdot(given["costs"], x), (x - given["capacities"]).reshape(-1)
        else:
            losses, limits = self.functions
            cost, pieces = losses.values(x)[0], limits.pieces(x)
            values = limits.values(x) if pieces is None else arrays.to_numpy(pieces)[0]
        cost, values = float(cost) + 0.0, np.atleast_1d(values)
        worst = float(values.max())
        known = cost if math.isfinite(cost) else None
        violation = max(0.0, worst) if math.isfinite(worst) else None
        if worst <= BROKEN:
            return known, violation, {}
        names: Sequence[str] = (
            [f"limit {i + 1}" for i in range(len(values))]
            if self.functions is None
            else combined.limit_names(K, self.functions[1])
        )
        if len(values) == 1 and names[0].startswith("limit "):
            names = [ONLY_LIMIT]
        broken = np.flatnonzero(values > BROKEN).tolist()
        return known, violation, {names[i]: float(values[i]) for i in broken}


# --- the session ----------------------------------------------------------------------------------


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
        self, host: "Sessions", info: SessionInfo, built: m.Built, *, looks: bool = False
    ) -> None:
        self.host, self.store, self.info, self.looks = host, host.store, info, looks
        self.name = info.name
        self.settings = m.Settings.of(info.settings)
        # Observations from one stored state to the next: opening a session observes so many again.
        self.session: Session[Any] = Session.open(
            host.store,
            built.learner,
            name=info.name,
            expire_after=self.settings.expire_after,
            read_only=looks,
            snapshot_every=500,
        )
        # what requests have taken lately
        self.seconds = math.inf
        # whether it is to be opened again, because its past changed
        self.lost = False
        # the total violation of each limit since the session was opened
        self.broken: dict[str, float] = {}
        # when rounds that are not over were decided
        self.asked_at: dict[int, float] = {}
        # the rounds that were observed last, in the order of their observation
        self.recent: dict[int, Note] = {}
        # the notes of rounds that are not over
        self.answers: dict[int, Note] = {}
        self._demands: list[float] | None = None
        self.use(built)
        first = min(self.session.pending, default=self.session.round) + 1
        rows = (
            *self.store.last_rounds(self.name, self._kept),
            *self.store.rounds_of(self.name, first, self.next_round + 1),
        )
        for number, row in sorted({row.round - 1: row for row in rows}.items()):
            note = Note.of(row)
            if note is not None and not self._is_over(number):
                self.asked_at[number] = note.at
                if self._is_current(note):
                    self.answers[number] = note._replace(observed=False)
            elif note is not None and note.observed:
                self.recent[number] = note
                self._demands = note.demands if self._is_current(note) else None

    def took(self, seconds: float) -> None:
        """A request took so long: a mean that forgets, and goes up at once."""
        before = self.seconds if math.isfinite(self.seconds) else seconds
        self.seconds = max(seconds, before + 0.2 * (seconds - before))

    def use(self, built: m.Built) -> None:
        self.built, self.entries, self.K = built, built.reader, built.K
        self._kept = max(FEWEST, min(RECENT, ROOM // len(built.reader.names)))
        self.takes_late = isinstance(built.learner, capabilities.LateFeedback)

    # --- rounds -----------------------------------------------------------------------------------

    @property
    def next_round(self) -> int:
        current, waiting = self.session.round, self.session.pending
        return current + 1 if waiting and waiting[-1] == current else current

    def _is_over(self, number: int) -> bool:
        return number < self.session.round and number not in self.session.pending

    def _is_current(self, note: Note) -> bool:
        return note.era == len(self.settings.eras)

    def _is_valid(self, number: int, note: Note) -> bool:
        """Whether an answer still holds: that of the current round follows the settings."""
        return note.serial == self.settings.serial or number != self.session.round

    def _own(self, number: int) -> Floats:
        session = self.session
        waits = number in session.pending
        return _flat(session.play(round=number) if waits else session.learner.act(session.state))

    def note_of(self, number: int) -> Note | None:
        """What was answered in a round, or would be; None if that is not known."""
        if number < 0 or number > self.session.round:
            return None
        if not self._is_over(number):
            note = self.answers.get(number)
            if note is not None and self._is_valid(number, note):
                return note
            own, failure = self._tried(number, lambda: self._own(number))
            return self._chosen(number, override(self.settings), own, failure)
        if number in self.recent:
            return self.recent[number]
        ended(self.store.flushed(self.name)).result()
        notes = map(Note.of, self.store.rounds_of(self.name, number + 1, number + 1))
        return next((note for note in notes if note is not None and note.observed), None)

    # --- decisions --------------------------------------------------------------------------------

    def decide(self, body: m.DecisionRequest) -> dict[str, Any]:
        number = self.session.round if body.round is None else body.round - 1
        if self._is_over(number):
            over = require_some(
                self.note_of(number),
                OtherContent,
                f"Round {number + 1} is over, and its decision is not known; round "
                f"{self.session.round + 1} is current.",
            )
            return self._answer(number, over)
        info = self._side_info(body)
        known = round_info.RoundInfo(**info) if info else None
        waiting = len(self.session.pending) + number + 1 - self.next_round
        most = self.host.limits.pending
        if number > self.session.round and waiting > most:
            raise errors.TooMany(
                f"Round {number + 1} would leave {waiting:,} rounds waiting for feedback; at most "
                f"{most:,} are allowed. Observe some first."
            )
        note = self.answers.get(number)
        if note is None or not self._is_valid(number, note):
            note = self._decide(number, body, info, known)
        elif known is not None and known.identity and known.identity != note.info_id:
            raise OtherContent(_OTHER_INFORMATION.format(number + 1))
        self.asked_at.setdefault(number, self.host.clock())
        self.trim()
        self.host.count("decisions", note.source)
        if note.fell:
            self.host.count("fallbacks", note.source)
        return self._answer(number, note)

    def _side_info(self, body: m.DecisionRequest) -> dict[str, Any]:
        out, points = body.unavailable, body.advice or {}
        point = self.entries.point
        given = {
            "time": body.time,
            "context": body.context,
            "unavailable": self.entries.unavailable(out) if out else None,
            "advice": {
                name: point(x, f"The advice {name!r}")
                for name, x in points.items()
                if x is not None
            }
            or None,
        }
        return {key: it for key, it in given.items() if it is not None}

    def _decide(
        self,
        number: int,
        body: m.DecisionRequest,
        info: dict[str, Any],
        known: round_info.RoundInfo | None,
    ) -> Note:
        is_current = number == self.session.round
        is_plain = not info and is_current and number not in self.session.pending
        deadline = self.settings.deadline if body.deadline is None else body.deadline
        arguments = info | {"round": None if is_current else number, "deadline": deadline}
        own, failure = self._tried(number, lambda: self.session.play(**arguments), not is_plain)
        incumbent = info.get("advice", {}).get(INCUMBENT)
        wanted = override(self.settings, None if incumbent is None else _flat(incumbent))
        if wanted is not None and wanted.source == INCUMBENT and incumbent is not None:
            self.built.require_member(incumbent, "The incumbent's point")
        note = self._chosen(number, wanted, own, failure, available.entries_out(self.K, known))
        note = note._replace(info_id="" if known is None else known.identity or "")
        if not is_plain or number in self.answers or note.source != "learner" or failure:
            note = note._replace(at=self.asked_at.setdefault(number, self.host.clock()))
            self.answers[number] = note
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
            raise OtherContent(_OTHER_INFORMATION.format(number + 1)) from None
        except Exception as error:
            refusals = (InvalidInput, NotSupported) if may_refuse else ()
            if isinstance(error, (errors.CheckpointError, *refusals)):
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
        settings, rounds = self.settings, self.session.rounds
        reason = f"Decided by {settings.learner} after {rounds:,} round{'s' * (rounds != 1)}."
        learner = Candidate("learner", own, failure or reason)
        found, fell = wanted or learner, False
        if (wanted.point is not None) if wanted else (failure or out is not None):
            last = Candidate("last", self.last_before(number), "There is no decision before.")
            candidates = [wanted, learner, last, static(settings, self.K)]
            found, fell = first_playable(filter(None, candidates), out, self.entries.names)
        return Note(
            found.point,
            settings.mode,
            found.source,
            found.reason,
            proposal=None if found.source == "learner" else own,
            serial=settings.serial,
            era=len(settings.eras),
            fell=fell,
        )

    def last_before(self, number: int) -> Floats | None:
        with suppress(errors.TidewolfError):
            note = self.note_of(number - 1)
            if note is not None and note.decision is not None and self._is_current(note):
                return note.decision
            notes = filter(self._is_current, reversed(self.recent.values()))
            return next((note.decision for note in notes), None)
        return None

    def decision(self, number: int) -> dict[str, Any]:
        words = f"Round {number + 1} was not asked for yet, or expired."
        return self._answer(
            number, require_some(self.note_of(number), errors.UnknownSession, words)
        )

    def _answer(self, number: int, note: Note) -> dict[str, Any]:
        eras = self.settings.eras
        names = self.entries.names if note.era >= len(eras) else eras[note.era]
        before = paths = None
        if self._is_current(note):
            with suppress(Exception):  # a learner that fails: its decision before is not known
                last = self.note_of(number - 1)
                before = last.decision if last is not None and self._is_current(last) else None
            if note.decision is not None:
                demands = note.demands if note.observed else self._demands
                paths = paths_of(self.entries, note.decision.reshape(self.K.shape), demands)
        return note.answer(number, names, before, paths)

    # --- observations -----------------------------------------------------------------------------

    def observe(self, body: m.Observation) -> dict[str, Any]:
        """Learn from what a round turned out to be; the same twice is answered alike and counts
        once.
        """
        session = self.session
        current, pending = session.round, session.pending
        number = current if body.round is None else body.round - 1
        content = {
            **{key: given for key, given in body.__dict__.items() if given is not None},
            "round": number + 1,
        }
        feedback = ReadFeedback.of(content, self.built)
        point = self.entries.point
        played = None if body.played is None else point(body.played, "What was played")
        refuse(
            number > current,
            f"Round {number + 1} was not asked for yet: ask for its decision first. Round "
            f"{current + 1} is current.",
        )
        if number < current and number not in pending:
            note = self.note_of(number) or Note(None)
            if played is None and note.played == "answered" and note.decision is not None:
                played = note.decision.reshape(self.K.shape)
            try:
                session.observe(round=number, played=played, **feedback.arguments)
            except OtherContent:
                raise OtherContent(
                    f"Round {number + 1} is over: it was observed with other content, or it "
                    "expired."
                ) from None
        else:
            is_new = number not in (*pending, *self.answers)
            if is_new and body.time is not None and follows_clock(self.built.learner):
                with suppress(OtherContent):  # it was asked without, and keeps its decision
                    session.play(time=body.time)
            note = self._observe(number, feedback, played, content)
        return {
            "round": number + 1,
            "cost": note.cost,
            "violation": note.violation,
            "rounds": note.rounds or session.rounds,
        }

    def _observe(
        self, number: int, feedback: ReadFeedback, played: Array | None, content: Mapping[str, Any]
    ) -> Note:
        session, note = self.session, self._note_to_observe(number, played is not None)
        how: Literal["", "given", "answered"] = "" if played is None else "given"
        if played is None and note.source != "learner" and self.takes_late:
            words = f"Round {number + 1} has no incumbent: say what was played."
            decision = require_some(note.decision, InvalidInput, words)
            played, how = decision.reshape(self.K.shape), "answered"
        session.observe(round=number, played=played, **feedback.arguments)
        x = session.last_played if played is None else played
        if isinstance(feedback.arguments.get("costs"), dict):  # with what was imputed
            feedback = ReadFeedback({}, session.last_functions)
        with arrays.SILENCE:
            cost, violation, broken = feedback.outcome(x, self.K)
        if "demands" in content:
            self._demands = given_demands(self.built.reader, content, self._demands)
        found = session.overrides
        saved = [found.saved_loss, found.saved_violation, found.rounds] if found.rounds else None
        note = note._replace(
            decision=_flat(x) if note.decision is None else note.decision,
            observed=True,
            played=how,
            rounds=session.rounds,
            demands=self._demands,
            saved=saved,
            at=self.host.clock(),
            cost=cost,
            violation=violation,
        )
        self.store.note(self.name, note.row(number))
        self.host.count("observations", "")
        if violation is not None and violation > BROKEN:
            self.host.count("breaches", "")
            for name, by in broken.items():
                self.broken[name] = self.broken.get(name, 0.0) + by
        for notes in (self.answers, self.asked_at, self.recent):
            notes.pop(number, None)
        self.recent[number] = note
        return note

    def _note_to_observe(self, number: int, is_played: bool) -> Note:
        """What was or would be answered in a round that is not over; without the learner's
        decision, if that was played. In the round in which an operator changed what is played,
        callers know of the change only if they asked again.
        """
        note, is_older = self.answers.get(number), number == self.settings.since
        if note is not None and (is_older or self._is_valid(number, note)):
            return note
        wanted = None if is_older else override(self.settings)
        return self._chosen(number, wanted, self._own(number) if is_played or wanted else None)

    def trim(self) -> None:
        while len(self.recent) > self._kept:
            del self.recent[next(iter(self.recent))]
        if self.settings.expire_after is not None:
            for number in [one for one in self.asked_at if self._is_over(one)]:
                del self.asked_at[number]
                self.answers.pop(number, None)

    # --- looking ----------------------------------------------------------------------------------

    def description(self) -> dict[str, Any]:
        session, settings, names = self.session, self.settings, self.entries.names
        own = {key: getattr(settings, key) for key in ("deadline", "stale_after", "expire_after")}
        for key in ("fallback", "incumbent", "pin"):
            own[key] = _named(names, getattr(settings, key))
        oldest, own_cost = min(self.asked_at.values(), default=math.inf), session.overrides
        sums = getattr(session.state, "budgets", budget.BudgetSums())
        spent = zip(sums.names, sums.net.tolist(), sums.multipliers.tolist(), strict=False)
        return {
            "name": self.name,
            "rounds": session.rounds,
            "pending": [number + 1 for number in session.pending],
            "round": session.round + 1,
            "mode": settings.mode,
            "learner": settings.learner,
            "names": list(names),
            "shape": list(self.K.shape),
            "created": self.info.created,
            "settings": own,
            "saved": {
                "loss": own_cost.saved_loss,
                "violation": own_cost.saved_violation,
                "rounds": own_cost.rounds,
            },
            "notes": list(session.notes_from(1)),
            "pinned": settings.pin is not None,
            "stale": self.host.clock() - oldest > (settings.stale_after or math.inf),
            "budgets": {name: {"net": net, "multiplier": by} for name, net, by in spent},
        }

    def experts(self) -> dict[str, Any]:
        return {"experts": plain(capabilities.experts_of(self.session.learner, self.session.state))}

    def explanation(self) -> dict[str, Any]:
        """Why the learner's decision is what it is, with rounds counted from 1."""
        found = self.session.explain(names=self.entries.names).to_dict()
        for part, key in ((found, "round"), (found, "since"), (found.get("outlook"), "round")):
            if isinstance(part, dict) and part.get(key) is not None:
                part[key] += 1
        found["pending"] = [number + 1 for number in found.get("pending") or ()]
        return found

    def facts(self) -> dict[str, Any]:
        last = next(reversed(self.recent.values()), Note(None))
        # Lines of the audit on the page of a session.
        return {
            **self.description(),
            **self.experts(),
            "breached": (last.violation or 0.0) > BROKEN,
            "history": [note.past(number + 1) for number, note in self.recent.items()],
            "decision": self.decision(self.session.round),
            "limits": dict(self.broken),
            "audit": [vars(one) for one in self.store.entries(self.name, most=20, newest=True)],
        }


def _flat(x: Array) -> Floats:
    flat: Floats = arrays.to_numpy(x).reshape(-1) + 0.0
    return flat


def _named(names: Sequence[str], x: Floats | m.Point | None) -> dict[str, float] | None:
    values = x if isinstance(x, tuple | None) else x.tolist()
    return None if values is None else dict(zip(names, values, strict=True))
