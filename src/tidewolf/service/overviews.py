"""Overviews of all sessions for the page and the metrics, without opening any session.

Sessions in memory are asked. For others the store has the last rounds, which are read again only
once more rounds were observed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple, final

from tidewolf.core.errors import TidewolfError
from tidewolf.service.description import BROKEN
from tidewolf.service.hosted_session import HostedSession
from tidewolf.service.modes import Note, Settings
from tidewolf.storage.session_store import SessionInfo, SessionStore

SHOWN = 60
"""Rounds whose costs are shown."""


class Overview(NamedTuple):
    """One session at a glance.

    Parameters
    ----------
    name : str
        Its name.
    rounds : int
        How many rounds were observed.
    mode : str
        "live", "shadow" or "frozen".
    learner : str
        The kind of its learner.
    costs, violations : tuple of float or None
        Of the last rounds, oldest first; None if a round's is not known.
    pending : int
        Decisions without an observation.
    oldest_pending : float or None
        How long the oldest of them has been waiting; None if there is none. Unit: seconds.
    stale : bool
        Whether feedback has been missing for longer than the session allows.
    breached : bool
        Whether a limit was violated in its last observed round.
    saved : float or None
        What the learner's decisions would have saved, in shadow mode. Unit: of the loss.
    limits : mapping of str to float
        The total violation of each limit since the session was opened.
    pinned : bool
        Whether a point is played in place of the learner's.
    at : float or None
        When it was last observed; None if it never was. Unit: seconds since 1970.
    """

    name: str
    rounds: int = 0
    mode: str = "live"
    learner: str = ""
    costs: tuple[float | None, ...] = ()
    violations: tuple[float | None, ...] = ()
    pending: int = 0
    oldest_pending: float | None = None
    stale: bool = False
    breached: bool = False
    saved: float | None = None
    limits: Mapping[str, float] = MappingProxyType({})
    pinned: bool = False
    at: float | None = None


@final
class Overviews:
    """Overviews of sessions; what is read of sessions that are not open is remembered."""

    def __init__(self, store: SessionStore) -> None:
        self._store = store
        self._read: dict[str, tuple[SessionInfo, list[Note], list[float]]] = {}

    def of(self, opened: Mapping[str, HostedSession], now: float) -> list[Overview]:
        """The overview of each session, given those in memory by name and the time."""
        found, before, self._read = [], self._read, {}
        for info in self._store.infos(most=None):
            hosted = opened.get(info.name)
            if hosted is not None and not hosted.lost:
                notes = list(hosted.recent.values())[-SHOWN:]
                waits, broken = list(hosted.asked_at.values()), dict(hosted.broken)
                info, settings = info._replace(rounds=hosted.session.rounds), hosted.settings
            else:
                settings, broken = Settings.shown(info.settings), {}
                kept = before.get(info.name)
                if kept is None or kept[0] != info:
                    kept = info, *self._look(info, settings)
                self._read[info.name] = kept
                _, notes, waits = kept
            found.append(_overview(info, settings, notes, waits, now)._replace(limits=broken))
        return found

    def _look(self, info: SessionInfo, settings: Settings) -> tuple[list[Note], list[float]]:
        """The last rounds of a session, and since when others wait."""
        try:
            last = self._store.last_rounds(info.name, SHOWN)
            first = last[0].round if last else 1
            rows = self._store.rounds_of(info.name, first, first + 2 * SHOWN)
        except TidewolfError:  # deleted meanwhile
            return [], []
        expired = rows[-1].round - settings.expire_after if rows and settings.expire_after else 0
        notes = [(row.round, note) for row in rows if (note := Note.of(row)) is not None]
        waits = [note.at for number, note in notes if not note.observed and number > expired]
        return [note for _, note in notes if note.observed][-SHOWN:], waits


def _overview(
    info: SessionInfo, settings: Settings, notes: list[Note], waits: list[float], now: float
) -> Overview:
    age = max(0.0, now - min(waits)) if waits else None
    allowed = math.inf if settings.stale_after is None else settings.stale_after
    last = notes[-1] if notes else Note(None)
    return Overview(
        info.name,
        info.rounds,
        settings.mode,
        settings.learner,
        costs=tuple(one.cost for one in notes),
        violations=tuple(one.violation for one in notes),
        pending=len(waits),
        oldest_pending=age,
        stale=age is not None and age > allowed,
        breached=(last.violation or 0.0) > BROKEN,
        saved=None if last.saved is None else last.saved[0],
        pinned=settings.pin is not None,
        at=last.at if notes else None,
    )
