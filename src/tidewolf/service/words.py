"""Times, ages and counts as the pages of the service write them."""

from __future__ import annotations

import math
from datetime import UTC, datetime

_UNITS = ((86_400.0, "d"), (3_600.0, "h"), (60.0, "min"))


def age(seconds: float) -> str:
    """A stretch of time, in its largest unit that is full twice.

    Parameters
    ----------
    seconds : float
        How long it is.

    Returns
    -------
    str
        A number and its unit.

    Examples
    --------
    >>> from tidewolf.service.words import age
    >>> age(3), age(150), age(90_000)
    ('3 s', '2 min', '25 h')
    """
    if not math.isfinite(seconds):
        return "an unknown time"
    for unit, name in _UNITS:
        if seconds >= 2 * unit:
            return f"{seconds // unit:,.0f} {name}"
    return f"{max(0.0, seconds):.0f} s"


def moment(at: float | None) -> str:
    """A time in UTC, to the second.

    Parameters
    ----------
    at : float or None
        Seconds since 1970.

    Returns
    -------
    str
        The time, or "unknown" where it is none.

    Examples
    --------
    >>> from tidewolf.service.words import moment
    >>> moment(0.0)
    '1970-01-01 00:00:00 UTC'
    """
    try:
        return (
            f"{datetime.fromtimestamp(math.nan if at is None else at, UTC):%Y-%m-%d %H:%M:%S} UTC"
        )
    except (ValueError, OverflowError, OSError):
        return "unknown"


def counted(count: int, one: str, many: str = "") -> str:
    """A number and what is counted.

    Parameters
    ----------
    count : int
        How many.
    one, many : str
        What one is called, and several; by default with an s.

    Returns
    -------
    str
        Both.

    Examples
    --------
    >>> from tidewolf.service.words import counted
    >>> counted(1, "session"), counted(2_000, "session")
    ('1 session', '2,000 sessions')
    """
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def marks(breached: bool, stale: bool, pinned: bool) -> list[tuple[str, bool]]:
    """What is to be seen at once of a session, and whether it is bad.

    Parameters
    ----------
    breached, stale, pinned : bool
        What holds of it.

    Returns
    -------
    list of (str, bool)
        Two words each.

    Examples
    --------
    >>> from tidewolf.service.words import marks
    >>> marks(True, False, True)
    [('limit broken', True), ('pinned', False)]
    """
    found = (
        ("limit broken", True, breached),
        ("no feedback", True, stale),
        ("pinned", False, pinned),
    )
    return [(words, bad) for words, bad, holds in found if holds]
