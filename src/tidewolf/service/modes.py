"""Which point is played, and why: live, shadow, frozen, or pinned; and the note of each round.

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

A note is stored as a line of JSON, then numbers in binary:

    {"mode": ..., "source": ..., ...} \\n decision (8 bytes per entry) [proposal (the same)]
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, replace
from typing import Any, Literal, NamedTuple, Self, final

import numpy as np
from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from tidewolf.core.arrays import to_numpy
from tidewolf.core.errors import BrokenFile, NotSupported
from tidewolf.core.names import listed
from tidewolf.core.types import Bools, Floats
from tidewolf.storage.session_store import Round

INCUMBENT = "incumbent"
"""The name of the incumbent's point in the advice of a request."""

Point = tuple[float, ...]
"""The entries of a point, in C order."""


@final
@dataclass(frozen=True, config=ConfigDict(extra="ignore"))
class Settings:
    """How a session is operated, stored with the session as JSON.

    Parameters
    ----------
    learner : str
        The kind of its learner.
    mode : str, default "live"
        "live", "shadow" or "frozen".
    pin : tuple of float, optional
        The point that it is pinned at.
    incumbent : tuple of float, optional
        The incumbent's point, for rounds whose request has none.
    frozen : tuple of float, optional
        The decision that is repeated while it is frozen.
    fallback : tuple of float, optional
        What is played if nothing else can be. None: the set's center.
    deadline : float, optional
        How long advisers may take, unless a request has its own. Unit: seconds.
    stale_after : float, optional
        How long a decision may wait for its feedback before that is stale. Unit: seconds.
    expire_after : int, optional
        For how many more rounds a round waits for its feedback. Unit: rounds.
    serial : int, default 0
        How often what is played was changed by hand.
    since : int, default -1
        In which round, from 0, that was done last.
    eras : tuple of tuple of str, default ()
        The names of the entries before each change of the set.
    """

    learner: str
    mode: Literal["live", "shadow", "frozen"] = "live"
    pin: Point | None = None
    incumbent: Point | None = None
    frozen: Point | None = None
    fallback: Point | None = None
    deadline: float | None = None
    stale_after: float | None = None
    expire_after: int | None = None
    serial: int = 0
    since: int = -1
    eras: tuple[tuple[str, ...], ...] = ()

    @property
    def text(self) -> str:
        """As JSON."""
        return json.dumps(asdict(self), ensure_ascii=False, sort_keys=True)

    @classmethod
    def of(cls, text: str) -> Self:
        """Read JSON; keys that a later version wrote are left out."""
        try:
            return TypeAdapter(cls).validate_json(text, strict=True)
        except ValidationError:
            raise BrokenFile(
                "How the session is operated was changed on disk, and cannot be read: go back to "
                "an earlier copy."
            ) from None

    @classmethod
    def shown(cls, text: str) -> Self:
        """The same to be shown: nothing is known of what cannot be read."""
        try:
            return cls.of(text)
        except BrokenFile:
            return cls("unknown")

    def changed(self, **to: Any) -> Self:
        """With another point to be played."""
        return replace(self, serial=self.serial + 1, **to)


# --- notes ----------------------------------------------------------------------------------------

_NUMBER = np.dtype("<f8")
_BESIDE = ("decision", "proposal", "at", "cost", "violation")
"""Fields that are not in the line of JSON."""


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
        """The row of a round, counted from 0, that the store keeps."""
        text: dict[str, Any] = {
            key: value
            for key, value in self._asdict().items()
            if key not in _BESIDE and value != self._field_defaults[key]
        }
        decision, proposal = self.decision, self.proposal
        text["arrays"] = (decision is not None) + 2 * (proposal is not None)
        line = json.dumps(text, ensure_ascii=False, separators=(",", ":")).encode()
        first = b"" if decision is None else decision.astype(_NUMBER).tobytes()
        then = b"" if proposal is None else proposal.astype(_NUMBER).tobytes()
        note = b"%b\n%b%b" % (line, first, then)
        return Round(number + 1, self.at, self.cost, self.violation, note)

    def past(self, number: int) -> dict[str, Any]:
        """The line of the history of a round, counted from 1."""
        keys = ("at", "cost", "violation", "mode", "source")
        return {"round": number, **{key: getattr(self, key) for key in keys}}

    @classmethod
    def of(cls, row: Round) -> Note | None:
        """The note of a row; None if it cannot be read."""
        text, _, numbers = row.note.partition(b"\n")
        try:
            found = json.loads(text)
            which = found.pop("arrays")
            flat = np.frombuffer(numbers, _NUMBER).astype(np.float64)
            parts = iter(np.split(flat, max(1, (which & 1) + (which >> 1))))
            found["decision"] = next(parts) if which & 1 else None
            found["proposal"] = next(parts) if which & 2 else None
            return cls(**found, at=row.at, cost=row.cost, violation=row.violation)
        except (ValueError, KeyError, TypeError, AttributeError):
            return None


# --- what is played -------------------------------------------------------------------------------

CALLED = {
    "pinned": "the pinned point",
    "incumbent": "the incumbent's point",
    "learner": "the learner's decision",
    "last": "the last decision",
    "static": "the static point",
}
"""Sources of a decision, in words."""


class Candidate(NamedTuple):
    """A point that may be played."""

    source: str
    point: Floats | None
    reason: str = ""
    """why it is played; if there is no point, why not"""


def static(settings: Settings, K: Any) -> Candidate:
    """What is played if nothing else can be: the fallback, or the set's center."""
    point = to_numpy(K.center).reshape(-1) if settings.fallback is None else settings.fallback
    return Candidate("static", np.array(point) + 0.0)


def override(settings: Settings, incumbent: Floats | None = None) -> Candidate | None:
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
    if incumbent is None and settings.incumbent is None:
        reason = "It is in shadow without an incumbent's point: the observation has what is played."
        return Candidate(INCUMBENT, None, reason)
    point = np.array(settings.incumbent) if incumbent is None else incumbent
    return Candidate(INCUMBENT, point, "It is in shadow: the incumbent's point is played.")


def first_playable(
    candidates: Iterable[Candidate], out: Bools | None, names: list[str]
) -> tuple[Candidate, bool]:
    """The first candidate that has a point without the entries that are out, and whether it is not
    the first one; its reason is then what is wrong with those before it.

    Raises
    ------
    NotSupported
        If there is none.

    Examples
    --------
    >>> from tidewolf.service.modes import Candidate, first_playable
    >>> candidates = [
    ...     Candidate("learner", None, "The learner failed: it gave up."),
    ...     Candidate("static", np.array([0.5, 0.5])),
    ... ]
    >>> first_playable(candidates, None, ["a", "b"])[0].reason
    'The learner failed: it gave up. So the static point is played.'
    """
    wrong: list[str] = []
    for candidate in candidates:
        if candidate.point is None:
            wrong += [candidate.reason] * bool(candidate.reason)
        elif out is not None and candidate.point[out].any():
            used = [names[i] for i in np.flatnonzero(out & (candidate.point != 0.0)).tolist()]
            called = CALLED[candidate.source]
            wrong.append(f"{called.capitalize()} uses {listed(used)}: unavailable.")
        elif wrong:
            reason = f"{' '.join(wrong)} So {CALLED[candidate.source]} is played."
            return candidate._replace(reason=reason), True
        else:
            return candidate, False
    raise NotSupported(f"{' '.join(wrong)} No other point is known.")
