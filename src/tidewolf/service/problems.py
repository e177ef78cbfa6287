"""Every refusal as a problem (RFC 9457): the library's own sentence, and a status by its kind.

    UnknownSession                                    404
    OtherContent, AlreadyThere                        409
    HeldElsewhere                                     409, with the holder
    TooMany                                           429, with Retry-After
    Overloaded, any other CheckpointError             503, with Retry-After
    MissingExtra                                      501
    InvalidInput, any other TidewolfError             422
    anything else                                     500, and its traceback on stderr alone

The title of a problem is the name of the error, so that a client can raise the same. What HTTP
itself has to refuse (a body that is no JSON, a method, a token) is `Refused`, and has HTTP's title.
"""

from __future__ import annotations

import math
import sys
import traceback
from http import HTTPStatus
from typing import Any

from tidewolf import __version__
from tidewolf.core.errors import (
    AlreadyThere,
    CheckpointError,
    HeldElsewhere,
    MissingExtra,
    OtherContent,
    Overloaded,
    TidewolfError,
    TooMany,
    UnknownSession,
)
from tidewolf.service.answers import PROBLEM, Answer
from tidewolf.service.strict_json import dumps

_UNEXPECTED = "Something went wrong in the server, which is a mistake of ours; its log says what."
_TITLES = {413: "Content Too Large", 422: "Unprocessable Content"}
"""Of statuses that Python calls by older names."""
_STATUS: tuple[tuple[type[BaseException], int], ...] = (
    (UnknownSession, 404),
    (OtherContent, 409),
    (AlreadyThere, 409),
    (HeldElsewhere, 409),
    (Overloaded, 503),
    (TooMany, 429),
    (CheckpointError, 503),
    (MissingExtra, 501),
    (TidewolfError, 422),
    (MemoryError, 422),
)


class Refused(Exception):
    """A request that HTTP itself refuses.

    Parameters
    ----------
    status : int
        The status of HTTP.
    detail : str
        A sentence: what is wrong, what to do.
    headers : pairs of bytes
        More headers.

    Examples
    --------
    >>> from tidewolf.service.problems import Refused, problem_of
    >>> problem_of(Refused(413, "The body is too long.")).status
    413
    """

    def __init__(self, status: int, detail: str, *headers: tuple[bytes, bytes]) -> None:
        super().__init__(detail)
        self.status, self.headers = status, headers


def problem(status: int, detail: str, **more: Any) -> dict[str, Any]:
    """A problem as a dict.

    Parameters
    ----------
    status : int
        The status of HTTP.
    detail : str
        A sentence.
    more : object
        More keys.

    Returns
    -------
    dict
        With "type", "title", "status", "detail" and "version".

    Examples
    --------
    >>> from tidewolf.service.problems import problem
    >>> problem(404, "There is no session called 'a'.")["title"]
    'Not Found'
    """
    return {
        "type": "about:blank",
        "title": _TITLES.get(status) or HTTPStatus(status).phrase,
        "status": status,
        "detail": detail,
        **more,
        "version": __version__,
    }


def problem_of(error: BaseException) -> Answer:
    """The answer to a request that ended in this error.

    Parameters
    ----------
    error : BaseException
        What was raised.

    Returns
    -------
    Answer
        A problem; one that nobody expected says nothing of its cause, which goes to stderr.

    Examples
    --------
    >>> from tidewolf.core.errors import TooMany
    >>> from tidewolf.service.problems import problem_of
    >>> answer = problem_of(TooMany("At most 10 requests a second.", retry_after=0.2))
    >>> answer.status, answer.headers
    (429, ((b'retry-after', b'1'),))
    >>> b'"TooMany"' in answer.body
    True
    """
    if isinstance(error, Refused):
        return _answer(problem(error.status, str(error)), error.headers)
    status = status_of(error)
    if status == 500:
        log_unexpected(error)
        return _answer(problem(500, _UNEXPECTED))
    if isinstance(error, MemoryError):
        return _answer(problem(status, "There is not enough memory for this: ask for less."))
    more = {"title": type(error).__name__}
    if isinstance(error, HeldElsewhere):
        more["holder"] = error.holder
    later = (retry_after(_seconds(error)),) if status in (429, 503) else ()
    return _answer(problem(status, str(error), **more), later)


def status_of(error: BaseException) -> int:
    """The status of HTTP that stands for an error; 500 where nobody expected it.

    Parameters
    ----------
    error : BaseException
        What was raised.

    Returns
    -------
    int
        The status.

    Examples
    --------
    >>> from tidewolf.core.errors import WrongShape
    >>> from tidewolf.service.problems import status_of
    >>> status_of(WrongShape("Three numbers are needed.")), status_of(ZeroDivisionError())
    (422, 500)
    """
    return next((status for kind, status in _STATUS if isinstance(error, kind)), 500)


def retry_after(seconds: float) -> tuple[bytes, bytes]:
    """The header that says when to come again, in whole seconds, at least one.

    Parameters
    ----------
    seconds : float
        When. Unit: seconds.

    Returns
    -------
    pair of bytes
        The header.

    Examples
    --------
    >>> from tidewolf.service.problems import retry_after
    >>> retry_after(2.2)
    (b'retry-after', b'3')
    """
    return (b"retry-after", b"%d" % max(1, math.ceil(seconds)))


def log_unexpected(error: BaseException) -> None:
    """Say on stderr what nobody expected: a line, and where it happened.

    Parameters
    ----------
    error : BaseException
        What was raised.
    """
    where = "".join(traceback.format_exception(error))
    sys.stderr.write(f"tidewolf: a request ended in {type(error).__name__}.\n{where}")
    sys.stderr.flush()


def _seconds(error: BaseException) -> float:
    return error.retry_after if isinstance(error, TooMany) else 1.0


def _answer(body: dict[str, Any], headers: tuple[tuple[bytes, bytes], ...] = ()) -> Answer:
    return Answer(body["status"], dumps(body), PROBLEM, headers)
