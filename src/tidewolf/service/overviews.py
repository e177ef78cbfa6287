"""Overviews of all sessions for the page and the metrics, without opening any session.

Sessions in memory are asked. For others the store has the last rounds, which are read again only
once more rounds were observed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import NamedTuple, final

from tidewolf.core.errors import TidewolfError
from tidewolf.service.description import BROKEN
from tidewolf.service.hosted_session import HostedSession
from tidewolf.service.modes import Settings
from tidewolf.service.notes import Note, Observed
from tidewolf.storage.session_store import SessionInfo, SessionStore

SHOWN = 60
"""Rounds whose costs are shown."""


class Overview(NamedTuple):
    """One session at a glance.

    Parameters
    ----------
    name : str
        What it is called.
    rounds : int
        How many rounds were observed.
    mode : str
        "live", "shadow" or "frozen".
    learner : str
        Who decides.
    costs, violations : tuple of float or None
        Of the last rounds, oldest first; None where a round's is not known.
    pending : int
        Decisions without an observation.
    oldest_pending : float or None
        How long the oldest of them has been waiting; None where none is. Unit: seconds.
    stale : bool
        Whether feedback has been missing for longer than the session allows.
    breached : bool
        Whether its last observed round broke a limit.
    saved : float or None
        What the learner's decisions would have saved, in shadow mode. Unit: of the loss.
    limits : mapping of str to float
        The total violation of each limit that was broken since the session was opened.
    pinned : bool
        Whether a point is played in place of the learner's.
    created : float
        When it was made. Unit: seconds since 1970.
    at : float or None
        When it was last observed; None where it never was. Unit: seconds since 1970.

    Examples
    --------
    >>> from tidewolf.service.overviews import Overview
    >>> Overview("lisbon", rounds=2, costs=(1.0, 0.5)).costs[-1]
    0.5
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
    created: float = 0.0
    at: float | None = None


@final
class Overviews:
    """Overviews of sessions, remembered for as long as nothing happens to them.

    Parameters
    ----------
    store : SessionStore
        What was kept of rounds.
    """

    def __init__(self, store: SessionStore) -> None:
        self._store = store
        self._seen: dict[str, tuple[SessionInfo, list[Observed], list[float]]] = {}

    def of(
        self, infos: Iterable[SessionInfo], opened: Mapping[str, HostedSession], now: float
    ) -> list[Overview]:
        """How these sessions stand.

        Parameters
        ----------
        infos : iterable of SessionInfo
            What the store has of them.
        opened : mapping
            Those in memory, by name.
        now : float
            The time. Unit: seconds since 1970.

        Returns
        -------
        list of Overview
            One for each, in the same order.
        """
        found = [self._one(info, opened.get(info.name), now) for info in infos]
        names = {one.name for one in found}
        self._seen = {name: kept for name, kept in self._seen.items() if name in names}
        return found

    def _one(self, info: SessionInfo, hosted: HostedSession | None, now: float) -> Overview:
        if hosted is None or hosted.lost:
            settings = Settings.shown(info.settings)
            last, waits = self._read(info)
            found = Overview(info.name, info.rounds, pending=len(waits))
        else:
            self._seen.pop(info.name, None)
            settings, last = hosted.settings, list(hosted.recent.values())[-SHOWN:]
            waits = list(hosted.asked_at.values())
            found = Overview(
                info.name,
                hosted.session.rounds,
                pending=len(waits),
                limits=dict(hosted.counts.broken),
            )
        age = max(0.0, now - min(waits)) if waits else None
        allowed = math.inf if settings.stale_after is None else settings.stale_after
        newest = last[-1] if last else None
        saved = None if newest is None else newest.note.saved
        return found._replace(
            mode=settings.mode,
            learner=settings.learner,
            pinned=settings.pin is not None,
            created=info.created,
            costs=tuple(one.cost for one in last),
            violations=tuple(one.violation for one in last),
            at=None if newest is None else newest.at,
            oldest_pending=age,
            stale=age is not None and age > allowed,
            breached=newest is not None and (newest.violation or 0.0) > BROKEN,
            saved=None if saved is None else saved[0],
        )

    def _read(self, info: SessionInfo) -> tuple[list[Observed], list[float]]:
        """The last rounds of a session that is not open, and since when others wait."""
        kept = self._seen.get(info.name)
        if kept is None or kept[0] != info:
            kept = self._seen[info.name] = (info, *self._look(info))
        return kept[1], kept[2]

    def _look(self, info: SessionInfo) -> tuple[list[Observed], list[float]]:
        try:
            last = self._store.last_rounds(info.name, SHOWN)
            first = last[0].round if last else 1
            rows = self._store.rounds_of(info.name, first, first + 2 * SHOWN)
        except TidewolfError:  # deleted meanwhile
            return [], []
        noted = [(row, note) for row in rows if (note := Note.decode(row.note)) is not None]
        observed = [
            Observed(row.at, row.cost, row.violation, note) for row, note in noted if note.observed
        ]
        expire, newest = Settings.shown(info.settings).expire_after, rows[-1].round if rows else 0
        waits = [
            row.at
            for row, note in noted
            if not note.observed and (expire is None or row.round > newest - expire)
        ]
        return observed[-SHOWN:], waits
