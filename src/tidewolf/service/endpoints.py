"""One address: its name, its role and its body are checked, then a thread answers.

    the method  ->  the name  ->  the role  ->  the body  ->  a thread  ->  the disk  ->  the answer

A handler runs in a thread of a bounded pool and returns an answer, and the future to wait for
before it is sent: nothing is acknowledged that is not kept.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, NamedTuple, final

from tidewolf.core.errors import UnknownSession
from tidewolf.service.answers import Answer
from tidewolf.service.bodies import NAME
from tidewolf.service.gate import CALLER
from tidewolf.service.problems import Refused, problem_of
from tidewolf.service.queries import whole
from tidewolf.service.replies import Caller
from tidewolf.service.request_bodies import read_body

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

    from tidewolf.service.overload import Traffic


class Asked(NamedTuple):
    """A request whose address, caller and role are fine.

    Parameters
    ----------
    caller : Caller
        Who asks.
    name : str
        The session; empty where the address has none.
    round : int
        The round in the address; 0 where it has none.
    query : bytes
        What stands behind the question mark.
    body : bytes
        What was sent.
    """

    caller: Caller
    name: str
    round: int
    query: bytes
    body: bytes


Answered = tuple[Answer, "Future[Any] | None"]
"""An answer, and what to wait for before it is sent."""
Handler = Callable[[Asked], Answered]


class Operation(NamedTuple):
    """What one method of an address does.

    Parameters
    ----------
    handler : callable
        Who answers, in a thread.
    pool : Executor
        Whose thread.
    has_body : bool
        Whether what was sent is read.
    writes : bool
        Whether readers are refused.
    at_once : callable, optional
        Gives what a request needs, held, where it takes less time than handing it to a thread and
        back; else None.
    """

    handler: Handler
    pool: ThreadPoolExecutor
    has_body: bool = False
    writes: bool = False
    at_once: Callable[[Asked], contextlib.AbstractContextManager[object] | None] | None = None


@final
class Endpoint:
    """All methods of one address.

    Parameters
    ----------
    path : str
        The template of the address.
    operations : dict
        What each method does.
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
        operations: dict[str, Operation],
        traffic: Traffic,
        longest: int,
        seconds: float,
    ) -> None:
        self.path = path
        self._operations, self._traffic = operations, traffic
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
        asked = Asked(caller, name, number, scope["query_string"], b"")
        if not operation.has_body:
            return await _answered(operation, asked)
        raw = await read_body(scope, receive, self._traffic, self._longest, self._seconds)
        try:
            return await _answered(operation, asked._replace(body=raw))
        finally:
            self._traffic.held -= len(raw)


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
    found = whole(number)
    if not found:
        raise Refused(404, "A round is a whole number, from 1.")
    return name, found


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


async def _answered(operation: Operation, asked: Asked) -> Answer:
    """The answer of a handler, once what it wrote is on disk; in a thread, unless it takes less
    time than going there. The loop is woken up once.
    """
    loop = asyncio.get_running_loop()
    done = loop.create_future()

    def settle(answer: Answer | None, error: BaseException | None) -> None:
        if done.done():
            return
        if error is not None:
            done.set_exception(error)
        else:
            done.set_result(answer)

    def wake(answer: Answer | None, error: BaseException | None) -> None:
        with contextlib.suppress(RuntimeError):  # the loop was stopped at once: nobody waits
            loop.call_soon_threadsafe(settle, answer, error)

    def work() -> None:
        try:
            answer, after = operation.handler(asked)
        except BaseException as error:
            wake(None, error)
            return
        if after is None:
            wake(answer, None)
        else:
            after.add_done_callback(lambda kept: wake(answer, kept.exception()))

    held = None if operation.at_once is None else operation.at_once(asked)
    if held is None:
        operation.pool.submit(work)
    else:
        with held:
            answer, after = operation.handler(asked)
        if after is None or (after.done() and after.exception() is None):
            return answer
        after.add_done_callback(lambda kept: wake(answer, kept.exception()))
    found: Answer = await done
    return found
