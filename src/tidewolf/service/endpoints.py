"""One address: its name, its role and its body are checked, then a thread answers.

    the method  ->  the name  ->  the role  ->  the body  ->  a thread  ->  the disk  ->  the answer

A handler runs in a thread of a bounded pool and returns an answer, and the future to wait for
before it is sent: nothing is acknowledged that is not kept.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, NamedTuple, final

from tidewolf.core.errors import UnknownSession
from tidewolf.service.answers import Answer
from tidewolf.service.middleware import CALLER
from tidewolf.service.models import NAME, Query
from tidewolf.service.operations import OPERATIONS, Operation
from tidewolf.service.problems import Refused, problem_of
from tidewolf.service.replies import Caller
from tidewolf.service.request_bodies import parsed_size, read_body

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

    from tidewolf.service.handlers import Handlers
    from tidewolf.service.overload import Traffic

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
Handler = Callable[[Request], Answered]


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
        handler: Handler = getattr(self._handlers, operation.handler)
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
            with contextlib.suppress(RuntimeError):  # the loop was stopped at once: nobody waits
                loop.call_soon_threadsafe(set_result, answer, error)

        def work() -> None:
            try:
                answer, after = handler(request)
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
                answer, after = handler(request)
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
    """What is said of a session that is not there, or not there for who asks.

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
