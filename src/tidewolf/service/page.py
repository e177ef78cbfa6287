"""The page at `/`: every session on a line, with its last costs and violations, and totals on top.

Sessions stand in the order of their names, `MOST` a page; the next page begins after the last name
of this one. What is wrong stands above the list, whichever page its sessions are on. It needs no
script and loads nothing; texts from outside are escaped, names too, whatever was checked before.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import Any, Protocol
from urllib.parse import quote

from tidewolf.evaluation.formatting import number
from tidewolf.service.overview import Overview
from tidewolf.service.rendering import content_policy as content_policy
from tidewolf.service.rendering import render
from tidewolf.service.session_page import session_page as session_page
from tidewolf.service.sparkline import Spark, line, sticks
from tidewolf.service.words import age, counted, marks, moment

MOST = 200
"""Sessions a page."""
NAMED = 12
"""Sessions that an alarm names."""
WIDTH, HEIGHT = 120, 28


class HasWell(Protocol):
    """A shelf, as far as the page asks it."""

    def is_well(self) -> str | None: ...


class HasOverview(Protocol):
    """All sessions, as far as the page asks them."""

    @property
    def store(self) -> HasWell: ...

    def overview(self) -> Sequence[Overview]: ...


class Visitor(Protocol):
    """Who looks, as far as the page asks."""

    @property
    def who(self) -> str: ...

    @property
    def role(self) -> str: ...

    @property
    def prefix(self) -> str: ...


def page(
    sessions: HasOverview, caller: Visitor, after: str = "", *, now: float | None = None
) -> str:
    """The page for who asks, of the sessions that are theirs to see.

    Parameters
    ----------
    sessions : Sessions
        All of them.
    caller : Caller
        Who asks; sessions without the caller's prefix are neither shown nor counted.
    after : str, default ""
        The list begins with the first name behind this one.
    now : float, optional
        What time it is; the clock's by default. Unit: seconds since 1970.

    Returns
    -------
    str
        HTML, to be sent under `content_policy()`.
    """
    now = time.time() if now is None else now
    seen = sorted(
        (each for each in sessions.overview() if each.name.startswith(caller.prefix)),
        key=lambda each: each.name,
    )
    rest = [each for each in seen if each.name > after]
    rows, more = rest[:MOST], len(rest) > MOST
    trouble = sessions.store.is_well()
    return render(
        "sessions",
        title="Sessions",
        written=moment(now),
        seen_by=_seen_by(caller),
        trouble="" if trouble is None else f"Nothing is acknowledged at the moment: {trouble}",
        tiles=_tiles(seen, trouble),
        alarms=_alarms(seen),
        rows=[_row(each, now) for each in rows],
        saving=any(each.saved is not None for each in rows),
        after=after,
        first_page="./" if after else "",
        next_page=f"./?after={_quoted(rows[-1].name)}" if more else "",
        read=_read(rows, len(seen), len(seen) - len(rest)),
    )


def _quoted(name: str) -> str:
    return quote(name, safe="", errors="replace")


def _seen_by(caller: Visitor) -> str:
    part = f", sessions that begin with {caller.prefix}" if caller.prefix else ""
    return f"Seen by {caller.who}, a {caller.role}{part}"


def _tile(title: str, text: str, note: str = "", bad: bool = False) -> dict[str, Any]:
    return {"title": title, "text": text, "note": note, "bad": bad}


def _tiles(seen: Sequence[Overview], trouble: str | None) -> list[dict[str, Any]]:
    """What all sessions come to."""
    pending = sum(each.pending for each in seen)
    oldest = max((each.oldest_pending or 0.0 for each in seen), default=0.0)
    broken = sum(each.breached for each in seen)
    stale = sum(each.stale for each in seen)
    saved = [each.saved for each in seen if each.saved is not None]
    tiles = [
        _tile("sessions", f"{len(seen):,}", _modes(seen)),
        _tile("rounds observed", f"{sum(each.rounds for each in seen):,}"),
        _tile("decisions pending", f"{pending:,}", f"oldest {age(oldest)}" if oldest else ""),
        _tile("limit broken", f"{broken:,}", "in the last round", bad=broken > 0),
        _tile("feedback missing", f"{stale:,}", "for too long", bad=stale > 0),
    ]
    if saved:
        tiles.append(_tile("shadows would save", number(sum(filter(math.isfinite, saved)))))
    tiles.append(_tile("commits", "work" if trouble is None else "fail", bad=trouble is not None))
    return tiles


def _modes(seen: Sequence[Overview]) -> str:
    """How many are in which mode, where not all are live."""
    others = {mode: sum(each.mode == mode for each in seen) for mode in ("shadow", "frozen")}
    return ", ".join(f"{count:,} {mode}" for mode, count in others.items() if count)


def _alarms(seen: Sequence[Overview]) -> list[dict[str, Any]]:
    broken = [each for each in seen if each.breached]
    stale = [each for each in seen if each.stale]
    alarms = (("A limit was broken in the last round of", broken), ("No feedback for", stale))
    return [_alarm(words, of) for words, of in alarms if of]


def _alarm(words: str, of: Sequence[Overview]) -> dict[str, Any]:
    left = len(of) - NAMED
    return {
        "words": words,
        "sessions": [{"name": each.name, "address": _address(each)} for each in of[:NAMED]],
        "more": f" and {counted(left, 'other')}." if left > 0 else ".",
    }


def _address(of: Overview) -> str:
    return f"./v1/sessions/{_quoted(of.name)}/report"


def _row(of: Overview, now: float) -> dict[str, Any]:
    return {
        "name": of.name,
        "address": _address(of),
        "mode": of.mode,
        "learner": of.learner,
        "rounds": f"{of.rounds:,}",
        "seen": "" if of.at is None else f"{age(now - of.at)} ago",
        "pending": f"{of.pending:,}",
        "waiting": "" if of.oldest_pending is None else f"for {age(of.oldest_pending)}",
        "cost": _spark("cost", "curve", of.costs, line(of.costs, WIDTH, HEIGHT - 2)),
        "violation": _spark(
            "violation", "over", of.violations, sticks(of.violations, WIDTH, HEIGHT)
        ),
        "saved": "" if of.saved is None else number(of.saved),
        "marks": marks(of.breached, of.stale, of.pinned),
    }


def _spark(what: str, kind: str, values: Sequence[float | None], drawn: Spark) -> dict[str, Any]:
    last = values[-1] if values else None
    words = f"{what} of the last rounds, from {number(drawn.low)} to {number(drawn.high)}"
    return {
        **drawn._asdict(),
        "kind": kind,
        "words": words,
        "last": last,
        "text": number(last) if values else "none yet",
    }


def _read(rows: Sequence[Overview], count: int, skipped: int) -> str:
    last = f"{skipped + 1:,} to {skipped + len(rows):,} of {counted(count, 'session')}. "
    return (
        f"{last if len(rows) < count else ''}Lines are the costs of the last rounds, each on a "
        "scale of its own; sticks are rounds that broke a limit, and by how much."
    )
