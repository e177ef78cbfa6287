"""Send requests to a service, retry them if that can help, and raise its errors as tidewolf's.

    send  ->  2xx: the answer
              no connection, 429, 502, 503, 504, an answer with Retry-After, or of a server that
              does not hold the session, for a balancer may find who does: wait, send again
              else: the error that "title" names, with "detail" as its sentence

    wait before attempt k + 1  =  max(Retry-After, FIRST 2^k)  times a random number of 1/2 to 3/2

Every request may be sent twice: a service answers the second of two alike as it did the first.
Numbers travel as JSON writes them, with the digits that make the same double again.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, final
from urllib.parse import urlsplit

import numpy as np

from tidewolf.core import errors
from tidewolf.core.arguments import shown
from tidewolf.core.errors import (
    CyclicGraph,
    HeldElsewhere,
    InvalidInput,
    MissingExtra,
    NoAnswer,
    NotFinite,
    OtherContent,
    Overloaded,
    TidewolfError,
    TooMany,
    UnknownSession,
    WrongType,
)

if TYPE_CHECKING:
    import httpx

FIRST, LONGEST = 0.1, 30.0
"""The first wait, and the longest. Unit: seconds."""
AGAIN = frozenset({429, 502, 503, 504})
"""Answers that a later attempt may not get."""
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_BY_STATUS: dict[int, type[TidewolfError]] = {
    400: InvalidInput,
    404: UnknownSession,
    409: OtherContent,
    413: InvalidInput,
    422: InvalidInput,
    429: TooMany,
    503: Overloaded,
}
"""What an error is where nothing of the name in its title is known here."""


@final
class Transport:
    """An HTTP connection to a service.

    Parameters
    ----------
    url : str
        Where it is, such as "http://127.0.0.1:8000".
    token : str, optional
        What it knows the caller by.
    timeout : float
        How long an answer may take. Unit: seconds.
    attempts : int
        How often a request is sent, at most.
    """

    def __init__(self, url: str, token: str | None, timeout: float, attempts: int) -> None:
        self.url = _checked_url(url)
        self._token, self._timeout, self._attempts = token, timeout, attempts
        self._coin = random.Random()
        self._open: httpx.Client | None = None

    def ask(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """The answer to a request."""
        content = None if body is None else as_json(body)
        connection = self._connection()
        for attempt in range(self._attempts):
            answer = failed = None
            try:
                answer = connection.request(method, path, content=content)
            except _httpx().TransportError as error:
                failed = error
            is_last = attempt + 1 == self._attempts
            if answer is not None and (is_last or not _may_pass(answer)):
                return _read(answer, self.url)
            if not is_last:
                self._wait(attempt, answer)
        raise NoAnswer(
            f"{self.url} does not answer ({failed!r}): is `tidewolf serve` running there?"
        ) from failed

    def close(self) -> None:
        """Let go of the connections; twice does no harm."""
        if self._open is not None:
            self._open.close()

    def _connection(self) -> httpx.Client:
        if self._open is None:
            headers = {"content-type": "application/json"}
            if self._token is not None:
                headers["authorization"] = f"Bearer {self._token}"
            self._open = _httpx().Client(
                base_url=self.url,
                headers=headers,
                timeout=self._timeout,
                trust_env=urlsplit(self.url).hostname not in _LOOPBACK,
            )
        return self._open

    def _wait(self, attempt: int, answer: httpx.Response | None) -> None:
        said = 0.0 if answer is None else _retry_after(answer)
        time.sleep(min(max(said, FIRST * 2.0**attempt), LONGEST) * (0.5 + self._coin.random()))


def as_json(body: Mapping[str, Any]) -> bytes:
    """An object as JSON, in UTF-8, every number finite and with all of its digits."""
    try:
        return json.dumps(body, default=_plain, allow_nan=False, ensure_ascii=False).encode()
    except TypeError as error:
        raise WrongType(f"What is sent to a service is plain data: {error}.") from None
    except (ValueError, RecursionError) as error:
        kind = NotFinite if "range" in str(error) else InvalidInput
        raise kind(f"What is sent to a service cannot be JSON: {error}.") from None


def _plain(x: object) -> Any:
    """Arrays and numbers of NumPy as lists and numbers."""
    if isinstance(x, np.ndarray | np.generic):
        return x.tolist()
    if isinstance(x, Mapping):
        return dict(x)
    raise TypeError(f"{shown(x)} is none")


def _checked_url(url: object) -> str:
    with suppress(ValueError):
        if isinstance(url, str) and url.isascii() and url.isprintable() and " " not in url:
            parts = urlsplit(url)
            is_bare = not parts.query and not parts.fragment and parts.port != 0
            if is_bare and parts.scheme in ("http", "https") and parts.hostname:
                return url.rstrip("/")
    raise InvalidInput(
        f"A service is found under an address such as http://127.0.0.1:8000, not {shown(url)}."
    )


def _may_pass(answer: httpx.Response) -> bool:
    status, is_held = answer.status_code, b'"HeldElsewhere"' in answer.content
    return status in AGAIN or (status >= 400 and (is_held or "retry-after" in answer.headers))


def _retry_after(answer: httpx.Response) -> float:
    """When to ask again; 0 where that is not said in seconds."""
    try:
        return max(float(answer.headers.get("retry-after", "0")), 0.0)
    except ValueError:
        return 0.0


def _read(answer: httpx.Response, url: str) -> dict[str, Any]:
    """What an answer says; its error is raised."""
    try:
        body = json.loads(answer.content) if answer.content else {}
    except ValueError:
        body = None
    if answer.is_success and isinstance(body, dict):
        return body
    if not isinstance(body, dict) or not isinstance(body.get("detail"), str):
        raise NoAnswer(
            f"{url} answered {answer.status_code}, and nothing that a tidewolf service says: "
            "is the address right?"
        )
    raise error_of(answer.status_code, body, _retry_after(answer))


def error_of(status: int, problem: Mapping[str, Any], retry_after: float = 1.0) -> TidewolfError:
    """The library's own error that a problem of a service stands for."""
    named = getattr(errors, str(problem.get("title")), None)
    kind = _BY_STATUS.get(status, TidewolfError)
    if isinstance(named, type) and issubclass(named, TidewolfError):
        kind = named
    more: dict[str, Any] = {}
    if issubclass(kind, HeldElsewhere):
        more["holder"] = str(problem.get("holder", ""))
    elif issubclass(kind, TooMany | Overloaded):
        more["retry_after"] = retry_after
    elif issubclass(kind, CyclicGraph):
        more["cycle"] = ()
    return kind(str(problem.get("detail")), **more)


def _httpx() -> Any:
    try:
        import httpx
    except ImportError:
        raise MissingExtra(
            'Talking to a service needs httpx: pip install "tidewolf[serve]".'
        ) from None
    return httpx
