"""Counts of requests under way and answered, and the quotas of tokens.

At most `most` requests are answered at a time, wherever they wait (for a thread, for the disk), and
their bodies have at most `most_held` bytes in all. One more is refused at once, with a time to
retry, so that no queue grows. Requests of one connection are answered one after the other.

A token has a bucket of requests and a bucket of observations:

    level <- min(burst, level + rate * seconds since then)        at every request
    taken if level > 0; then level <- level - amount

What is taken may be more than is left (many observations in one body); the next request waits until
it has come back. A bucket holds what `burst` seconds bring, at least one.

Times are counted in buckets (seconds, upper ends): EDGES, and one for what took longer.
"""

from __future__ import annotations

import threading
import time
from bisect import bisect_left
from collections.abc import Callable
from typing import NamedTuple, final

from tidewolf.core.errors import InvalidInput, Overloaded, TooMany

EDGES = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0)
"""Upper ends of the buckets of times. Unit: seconds."""
OTHER = "other"
"""The route of what is none."""
REASONS = ("overload", "quota", "token", "host")
"""Reasons to refuse requests before they are read."""


BURST = 2.0
"""What a bucket holds. Unit: seconds of its rate."""


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


@final
class Timing:
    """Times of one route.

    Parameters
    ----------
    counts : list of int
        How many fell into each bucket of EDGES, and beyond the last.
    total : float
        Their sum. Unit: seconds.

    Examples
    --------
    >>> from tidewolf.service.traffic import Timing
    >>> timing = Timing()
    >>> timing.add(0.003)
    >>> timing.counts[:4], timing.total
    ([0, 0, 1, 0], 0.003)
    """

    __slots__ = ("counts", "total")

    def __init__(self) -> None:
        self.counts = [0] * (len(EDGES) + 1)
        self.total = 0.0

    def add(self, seconds: float) -> None:
        """Count one.

        Parameters
        ----------
        seconds : float
            How long it took.
        """
        self.counts[bisect_left(EDGES, seconds)] += 1
        self.total += seconds


@final
class Traffic:
    """Requests under way, and those that were.

    Parameters
    ----------
    most : int, default 256
        How many may be under way.
    most_held : int, default 134217728
        Bytes that their bodies may have in all.

    Attributes
    ----------
    in_flight : int
        Requests under way.
    held : int
        Bytes of their bodies.
    requests : dict of (str, str, int) to int
        How many were answered, by route (its template), method and status.
    timings : dict of str to Timing
        How long they took, by route.
    refused : dict of str to int
        How many were refused before they were read, by reason.
    ready : bool
        Whether requests are taken; False while starting and draining.

    Examples
    --------
    >>> from tidewolf.service.traffic import Traffic
    >>> traffic = Traffic(most=1)
    >>> traffic.enter()
    >>> traffic.enter()
    Traceback (most recent call last):
    ...
    tidewolf.core.errors.Overloaded: 1 requests are under way already, ...: come again.
    >>> traffic.expect("/v1/sessions")
    >>> traffic.count("/v1/sessions", "GET", 200, 0.002)
    >>> traffic.requests
    {('/v1/sessions', 'GET', 200): 1}
    """

    def __init__(self, most: int = 256, most_held: int = 1 << 27) -> None:
        if most < 1:
            raise InvalidInput(f"At least one request must be answered at a time, not {most}.")
        self.most, self.most_held = most, most_held
        self.in_flight = self.held = 0
        self.requests = dict[tuple[str, str, int], int]()
        self.timings = {OTHER: Timing()}
        self.refused = dict.fromkeys(REASONS, 0)
        self.ready = False

    def expect(self, route: str) -> None:
        """A route that there is; requests for anything else count as OTHER.

        Parameters
        ----------
        route : str
            The template of its path.
        """
        self.timings[route] = Timing()

    def enter(self) -> None:
        """Take in a request; who did subtracts it from `in_flight` in the end.

        Raises
        ------
        Overloaded
            Where as many as may be are under way.
        """
        if self.in_flight >= self.most:
            raise Overloaded(
                f"{self.in_flight} requests are under way already, as many as may be: come again."
            )
        self.in_flight += 1

    def hold(self, bytes_more: int, own: int = 0) -> None:
        """Make room for so much of a body; who did gives it back to `held` in the end.

        Parameters
        ----------
        bytes_more : int
            How much.
        own : int, default 0
            Bytes of the same body that are held already.

        Raises
        ------
        Overloaded
            Where all bodies together would be larger than may be.
        """
        if self.held > own and self.held + bytes_more > self.most_held:
            raise Overloaded(
                f"Bodies that take {self.held:,} bytes are being read already, as many as may be: "
                "come again."
            )
        self.held += bytes_more

    def count(self, route: str, method: str, status: int, seconds: float) -> None:
        """Count a request that was answered.

        Parameters
        ----------
        route : str
            The template of its path.
        method : str
            Its method.
        status : int
            The status that it was answered with.
        seconds : float
            How long it took.
        """
        route = route if route in self.timings else OTHER
        key = (route, method, status)
        self.requests[key] = self.requests.get(key, 0) + 1
        self.timings[route].add(seconds)


@final
class Bucket:
    """What is left of a rate.

    Parameters
    ----------
    rate : float
        What comes back. Unit: a second.
    clock : callable, default time.monotonic
        What time it is. Unit: seconds.

    Examples
    --------
    >>> from tidewolf.service.traffic import Bucket
    >>> bucket = Bucket(2.0, clock=lambda: 0.0)
    >>> [bucket.take(1.0) for _ in range(5)]
    [0.0, 0.0, 0.0, 0.0, 0.5]
    """

    __slots__ = ("_at", "_clock", "_level", "_most", "_rate")

    def __init__(self, rate: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate, self._clock = rate, clock
        self._most = max(1.0, rate * BURST)
        self._level, self._at = self._most, clock()

    def take(self, amount: float) -> float:
        """Take so much, if anything is left.

        Parameters
        ----------
        amount : float
            How much.

        Returns
        -------
        float
            0 where it was taken; else how long to wait. Unit: seconds.
        """
        now = self._clock()
        self._level = min(self._most, self._level + self._rate * (now - self._at))
        self._at = now
        if self._level >= min(1.0, amount):
            self._level -= amount
            return 0.0
        return (min(1.0, amount) - self._level) / self._rate


@final
class Quotas:
    """What each token may ask.

    Parameters
    ----------
    requests : float, optional
        Requests a second, for each token.
    observations : float, optional
        Observations a second, for each token.
    sessions : int, optional
        Sessions that a token may have under its prefix.
    clock : callable, default time.monotonic
        What time it is. Unit: seconds.

    Examples
    --------
    >>> from tidewolf.service.traffic import Quotas
    >>> quotas = Quotas(requests=1.0, clock=lambda: 0.0)
    >>> quotas.take_request("dashboard"), quotas.take_request("dashboard")
    (None, None)
    >>> quotas.take_request("dashboard")
    Traceback (most recent call last):
    ...
    tidewolf.core.errors.TooMany: This token may send 1 requests a second, and sent more: wait.
    """

    def __init__(
        self,
        requests: float | None = None,
        observations: float | None = None,
        sessions: int | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        for rate, what in ((requests, "requests"), (observations, "observations")):
            if rate is not None and not 0.0 < rate < float("inf"):
                raise InvalidInput(f"A rate of {what} is a number above 0, not {rate:g}.")
        if sessions is not None and sessions < 1:
            raise InvalidInput(f"A token may have at least one session, not {sessions}.")
        self.sessions = sessions
        self._requests, self._observations, self._clock = requests, observations, clock
        self._buckets = dict[tuple[str, str], Bucket]()
        self._lock = threading.Lock()

    def take_request(self, who: str) -> None:
        """Count a request.

        Parameters
        ----------
        who : str
            The token's name.

        Raises
        ------
        TooMany
            Where there were too many; it says when to come again.
        """
        if self._requests is not None:
            self._take("requests", who, 1, self._requests)

    def take_observations(self, who: str, amount: int) -> None:
        """Count observations, all of a body at once.

        Parameters
        ----------
        who : str
            The token's name.
        amount : int
            How many.

        Raises
        ------
        TooMany
            Where there were too many; it says when to come again.
        """
        if self._observations is not None:
            self._take("observations", who, amount, self._observations)

    def _take(self, what: str, who: str, amount: int, rate: float) -> None:
        with self._lock:
            bucket = self._buckets.get((what, who))
            if bucket is None:
                bucket = self._buckets[what, who] = Bucket(rate, self._clock)
            wait = bucket.take(float(amount))
        if wait:
            raise TooMany(
                f"This token may send {rate:g} {what} a second, and sent more: wait.",
                retry_after=wait,
            )
