"""What a list of sessions shows of each: plain data, read without opening one."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple


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
    >>> from tidewolf.service.overview import Overview
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
