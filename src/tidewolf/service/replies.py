"""Who asks, what is answered, and how much is allowed."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any, Literal, NamedTuple


class Caller(NamedTuple):
    """Who asks.

    Parameters
    ----------
    who : str, default "anonymous"
        The name of the token, for the audit.
    role : "reader" or "writer", default "writer"
        What they may do.
    prefix : str, default ""
        Of the names of the sessions that are there for them.
    """

    who: str = "anonymous"
    role: Literal["reader", "writer"] = "writer"
    prefix: str = ""


class Reply(NamedTuple):
    """What is answered, once `after` is done.

    Parameters
    ----------
    status : int
        As HTTP has it.
    body : dict
        The answer.
    after : Future, optional
        What the answer waits for: it is on disk then. None: for nothing.
    """

    status: int
    body: dict[str, Any]
    after: Future[None] | None = None


class Limits(NamedTuple):
    """How much is allowed.

    Parameters
    ----------
    sessions : int, default 10_000
        Sessions that are kept, at most.
    open : int, default 1000
        Sessions in memory, at most; those that were not used for longest are let go of.
    pending : int, default 10_000
        Rounds of a session that wait for their feedback, at most.
    observations : int, default 1000
        Observations in a request, at most.
    wait : float, default 10.0
        How long a request waits for others of its session. Unit: seconds.
    """

    sessions: int = 10_000
    open: int = 1000
    pending: int = 10_000
    observations: int = 1000
    wait: float = 10.0
