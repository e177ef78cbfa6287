"""Endpoints: check the name, the role and the body of a request, then answer it in a thread.

    the method  ->  the name  ->  the role  ->  the body  ->  a thread  ->  the disk  ->  the answer

`Handlers` asks the sessions in a thread of a bounded pool. It returns an answer, and the future to
wait for before it is sent: nothing is acknowledged that is not kept.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, NamedTuple, final

from tidewolf import __version__
from tidewolf.core.errors import TooMany, UnknownSession
from tidewolf.service.messages import (
    Answer,
    Refused,
    as_object,
    dumps,
    page,
    parsed_size,
    problem_of,
    read_body,
)
from tidewolf.service.middleware import CALLER
from tidewolf.service.models import NAME, DecisionRequest, Query
from tidewolf.service.operations import OPERATIONS, Operation
from tidewolf.service.sessions import Reply, Sessions
from tidewolf.service.tokens import Caller
from tidewolf.service.traffic import Quotas, Traffic

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

NO_QUERY = Query()


class Request(NamedTuple):
    """A request whose address, caller and role are fine.

    Parameters
    ----------
    caller : Caller
        Who asks.
    name : str
        The session; empty where the address has none.
    round : int
        The round in the address; 0 where it has none.
    query : object
        What stands behind the question mark.
    body : bytes
        What was sent.
    """

    caller: Caller
    name: str
    round: int
    query: Any
    body: bytes


Answered = tuple[Answer, "Future[Any] | None"]
"""An answer, and what to wait for before it is sent."""
_ROUND = re.compile(rb'"round"\s*:\s*(\d{1,15})')
_SHORT = 1 << 14
"""Bytes of a body that is read at once."""
_METRICS = b"text/plain; version=0.0.4; charset=utf-8"


def _json(reply: Reply) -> Answered:
    """A reply as JSON, with the version."""
    reply.body["version"] = __version__
    return Answer(reply.status, dumps(reply.body)), reply.after


@final
class Handlers:
    """What each address asks of the sessions.

    Parameters
    ----------
    sessions : Sessions
        All of them.
    quotas : Quotas
        What each token may ask.
    traffic : Traffic
        What is under way.
    """

    def __init__(self, sessions: Sessions, quotas: Quotas, traffic: Traffic) -> None:
        self._sessions, self._quotas, self._traffic = sessions, quotas, traffic
        self._making = threading.Lock()

    def answer(self, operation: Operation, request: Request) -> Answered:
        """What a request is answered; most are asked of the sessions as they are."""
        own = getattr(self, f"_{operation.handler}", None)
        if own is not None:
            found: Answered = own(request)
            return found
        ask = getattr(self._sessions, operation.handler)
        if operation.body is None:
            return _json(ask(request.name))
        body = as_object(request.body, may_be_empty=operation.body is DecisionRequest)
        return _json(ask(request.name, body, request.caller))

    def at_once(self, request: Request) -> AbstractContextManager[object] | None:
        """The session of a request, held, where it takes less time than a thread would."""
        body = request.body
        if len(body) > _SHORT or b'"observations"' in body or b"\\" in body:
            return None  # it may take long, or its keys may be written in another way
        found = _ROUND.search(body)
        return self._sessions.held_at_once(request.name, int(found[1]) if found else 1)

    def _observe(self, request: Request) -> Answered:
        body = as_object(request.body)
        many = body.get("observations")
        self._quotas.take_observations(
            request.caller.who, len(many) if isinstance(many, list) else 1
        )
        return _json(self._sessions.observe(request.name, body, request.caller))

    def _decision(self, request: Request) -> Answered:
        return _json(self._sessions.decision(request.name, request.round))

    def _put(self, request: Request) -> Answered:
        body = as_object(request.body)
        if self._quotas.sessions is None:
            return _json(self._sessions.put(request.name, body, request.caller))
        with self._making:
            self._require_room(request, self._quotas.sessions)
            return _json(self._sessions.put(request.name, body, request.caller))

    def _require_room(self, request: Request, most: int) -> None:
        """Refuse one session more than a token may have; one that is there already is none."""
        prefix = request.caller.prefix
        there = self._sessions.list(prefix, "", most).body["sessions"]
        if len(there) < most or any(each["name"] == request.name for each in there):
            return
        try:
            self._sessions.get(request.name)
        except UnknownSession:
            raise TooMany(
                f"This token may have {most:,} sessions, and has as many: delete one first.",
                retry_after=60.0,
            ) from None

    def _delete(self, request: Request) -> Answered:
        return _json(self._sessions.delete(request.name, request.query.why, request.caller))

    def _list(self, request: Request) -> Answered:
        query = request.query
        prefix, own = query.prefix, request.caller.prefix
        if own.startswith(prefix):
            prefix = own
        elif not prefix.startswith(own):
            return _json(Reply(200, {"sessions": []}, None))
        return _json(self._sessions.list(prefix, query.after, query.most))

    def _history(self, request: Request) -> Answered:
        query = request.query
        return _json(self._sessions.history(request.name, query.first, query.most))

    def _report(self, request: Request) -> Answered:
        from tidewolf.service.pages import content_policy

        reply = self._sessions.report(request.name)
        return page(reply.body["html"], content_policy()), reply.after

    def _audit(self, request: Request) -> Answered:
        query = request.query
        if not request.name and request.caller.prefix:
            raise Refused(
                403, "The log of all sessions is for tokens of all sessions: ask for one's own."
            )
        return _json(self._sessions.audit(request.name or None, query.after, query.most))

    def _overview(self, request: Request) -> Answered:
        from tidewolf.service.pages import content_policy
        from tidewolf.service.pages import page as overview

        shown = overview(self._sessions, request.caller, request.query.after)
        return page(shown, content_policy()), None

    def _metrics(self, request: Request) -> Answered:
        from tidewolf.service.metrics import exposition

        if request.caller.prefix:
            raise Refused(403, "Metrics are of all sessions, and for tokens of all sessions.")
        return Answer(200, exposition(self._sessions, self._traffic), _METRICS), None


@final
class Endpoint:
    """All methods of one address.

    Parameters
    ----------
    path : str
        The template of the address.
    handlers : Handlers
        Who answers.
    quick, slow : ThreadPoolExecutor
        In whose threads: those that decide and observe, and those for what takes long.
    traffic : Traffic
        What is under way.
    longest : int
        Bytes of a body, at most.
    seconds : float
        How long a body may take.
    """

    def __init__(
        self,
        path: str,
        handlers: Handlers,
        quick: ThreadPoolExecutor,
        slow: ThreadPoolExecutor,
        traffic: Traffic,
        longest: int,
        seconds: float,
    ) -> None:
        self.path = path
        self._operations, self._handlers, self._traffic = OPERATIONS[path], handlers, traffic
        self._quick, self._slow = quick, slow
        self._longest, self._seconds = longest, seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            answer = await self._answer(scope, receive)
        except Exception as error:
            answer = problem_of(error)
        await answer.send(send)

    async def _answer(self, scope: Scope, receive: Receive) -> Answer:
        method = "GET" if scope["method"] == "HEAD" else scope["method"]
        operation = self._operations.get(method)
        if operation is None:
            allowed = ", ".join(sorted(self._operations))
            raise Refused(
                405,
                f"{self.path} has {allowed}, and no {method}.",
                (b"allow", allowed.encode()),
            )
        caller: Caller = scope[CALLER]
        name, number = _address(scope["path_params"], caller, method)
        if operation.writes and caller.role != "writer":
            raise Refused(403, "This token is a reader's: it looks, and changes nothing.")
        query = NO_QUERY if operation.query is None else operation.query.read(scope["query_string"])
        request = Request(caller, name, number, query, b"")
        if operation.body is None:
            return await self._answered(operation, request)
        raw = await read_body(scope, receive, self._traffic, self._longest, self._seconds)
        held = len(raw)
        try:
            more = parsed_size(raw, self._longest)
            self._traffic.hold(more, held)
            held += more
            return await self._answered(operation, request._replace(body=raw))
        finally:
            self._traffic.held -= held

    async def _answered(self, operation: Operation, request: Request) -> Answer:
        """The answer of a handler, once what it wrote is on disk; in a thread, unless it takes less
        time than going there. The loop is woken up once.
        """
        loop = asyncio.get_running_loop()
        done = loop.create_future()

        def set_result(answer: Answer | None, error: BaseException | None) -> None:
            if done.done():
                return
            if error is not None:
                done.set_exception(error)
            else:
                done.set_result(answer)

        def wake(answer: Answer | None, error: BaseException | None) -> None:
            with contextlib.suppress(RuntimeError):  # the loop was stopped: no request waits
                loop.call_soon_threadsafe(set_result, answer, error)

        def work() -> None:
            try:
                answer, after = self._handlers.answer(operation, request)
            except BaseException as error:
                wake(None, error)
                return
            if after is None:
                wake(answer, None)
            else:
                after.add_done_callback(lambda kept: wake(answer, kept.exception()))

        held = self._handlers.at_once(request) if operation.quick and operation.writes else None
        if held is None:
            (self._quick if operation.quick else self._slow).submit(work)
        else:
            with held:
                answer, after = self._handlers.answer(operation, request)
            if after is None or (after.done() and after.exception() is None):
                return answer
            after.add_done_callback(lambda kept: wake(answer, kept.exception()))
        found: Answer = await done
        return found


def _address(params: dict[str, str], caller: Caller, method: str) -> tuple[str, int]:
    """The session and the round of an address."""
    name, number = params.get("name", ""), params.get("round", "1")
    if "name" in params:
        if not NAME.fullmatch(name):
            raise Refused(
                422 if method == "PUT" else 404,
                "A session has a name of at most 100 letters, digits, '.', '_' and '-' that begins "
                "with one of the first two.",
            )
        if not name.startswith(caller.prefix):
            raise unknown(name)
    if not re.fullmatch(r"0*[1-9][0-9]{0,14}", number):
        raise Refused(404, "A round is a whole number, from 1.")
    return name, int(number)


def unknown(name: str) -> UnknownSession:
    """The error for a session that does not exist, or that the caller may not see.

    Parameters
    ----------
    name : str
        Its name.

    Returns
    -------
    UnknownSession
        To be raised.

    Examples
    --------
    >>> from tidewolf.service.endpoints import unknown
    >>> print(unknown("lisbon"))
    There is no session called 'lisbon'.
    """
    return UnknownSession(f"There is no session called {name!r}.")
