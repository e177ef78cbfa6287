"""How much one token may ask: a bucket of requests, a bucket of observations, a number of sessions.

    level <- min(burst, level + rate * seconds since then)        at every request
    taken where level > 0; then level <- level - amount

What is taken may be more than is left (many observations in one body); whoever did that waits until
it is paid for. A bucket holds what `burst` seconds bring, at least one.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import final

from tidewolf.core.errors import InvalidInput, TooMany

BURST = 2.0
"""What a bucket holds. Unit: seconds of its rate."""


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
    >>> from tidewolf.service.quotas import Bucket
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
    >>> from tidewolf.service.quotas import Quotas
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
