"""The FastAPI app: it connects addresses and methods to `Sessions`.

    the middleware  ->  the route  ->  its endpoint  ->  a handler in a thread  ->  `Sessions`

One pool of threads decides and observes, another does what takes long, so that a report never holds
up a decision. Routes are plain: FastAPI finds them, and nothing is parsed twice on the way.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import TYPE_CHECKING, Any, final

from fastapi import FastAPI, Request, Response
from starlette.exceptions import HTTPException
from starlette.routing import Route

from tidewolf import __version__
from tidewolf.core.names import RENAMED, did_you_mean
from tidewolf.service import messages
from tidewolf.service.endpoints import Endpoint, Handlers
from tidewolf.service.messages import Answer, Refused, dumps, page, problem_of, retry_after
from tidewolf.service.middleware import Middleware
from tidewolf.service.operations import OPERATIONS, document
from tidewolf.service.server import POOL
from tidewolf.service.sessions import Sessions
from tidewolf.service.tokens import Tokens
from tidewolf.service.traffic import Quotas, Traffic

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

THREADS, SLOW_THREADS = 8, 4
"""Threads that decide and observe, and threads for what takes long."""


def make_app(
    sessions: Sessions,
    tokens: Tokens | None = None,
    quotas: Quotas | None = None,
    traffic: Traffic | None = None,
    *,
    longest_body: int = messages.LONGEST,
    body_seconds: float = messages.SECONDS,
    loopback_only: bool = False,
    log: bool = False,
) -> FastAPI:
    """The app that serves sessions over HTTP.

    Parameters
    ----------
    sessions : Sessions
        What is served.
    tokens : Tokens, optional
        Which callers may ask; all of them if there are none.
    quotas : Quotas, optional
        What each may ask; no bounds where there are none.
    traffic : Traffic, optional
        What is under way, and how much may be.
    longest_body : int, default 4194304
        Bytes of a body, at most.
    body_seconds : float, default 30.0
        How long a body may take.
    loopback_only : bool, default False
        Whether it answers to names of loopback alone.
    log : bool, default False
        Whether every request is a line of JSON on stderr.

    Returns
    -------
    FastAPI
        To be run by uvicorn.
    """
    tokens, quotas, traffic = tokens or Tokens(), quotas or Quotas(), traffic or Traffic()
    app = _App(
        title="tidewolf",
        version=__version__,
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        exception_handlers={HTTPException: _http_problem},
    )
    app.state.pools = pools = (
        ThreadPoolExecutor(THREADS, f"{POOL}quick"),
        ThreadPoolExecutor(SLOW_THREADS, f"{POOL}slow"),
    )
    plain: dict[str, Callable[[], Answer]] = {
        "/openapi.json": _description,
        "/docs": _docs,
        "/healthz": _alive,
        "/readyz": lambda: _readiness(sessions, traffic, bool(tokens)),
    }
    handlers = Handlers(sessions, quotas, traffic)
    endpoints = [
        _Plain(path, plain[path])
        if path in plain
        else Endpoint(path, handlers, *pools, traffic, longest_body, body_seconds)
        for path in OPERATIONS
    ]
    for endpoint in endpoints:
        app.router.routes.append(Route(endpoint.path, endpoint))
        traffic.expect(endpoint.path)
    app.add_middleware(
        Middleware,
        tokens=tokens,
        quotas=quotas,
        traffic=traffic,
        loopback_only=loopback_only,
        log=log,
        busiest={each.path.rpartition("/")[2]: each for each in endpoints[:2]},
    )
    return app


class _App(FastAPI):
    """FastAPI, described by `operations`."""

    def openapi(self) -> dict[str, Any]:
        return document()


@final
class _Plain:
    """An address that is answered at once, without a thread."""

    def __init__(self, path: str, answer: Callable[[], Answer]) -> None:
        self.path, self._answer = path, answer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] in ("GET", "HEAD"):
            answer = self._answer()
        else:
            detail = f"{self.path} has GET, and no {scope['method']}."
            answer = problem_of(Refused(405, detail, (b"allow", b"GET")))
        await answer.send(send)


@cache
def _description() -> Answer:
    return Answer(200, dumps(document()))


@cache
def _docs() -> Answer:
    from tidewolf.service.pages import content_policy, render

    return page(render("docs", title="The service", written="", said=document()), content_policy())


def _alive() -> Answer:
    return Answer(200, dumps({"status": "ok", "version": __version__}))


def _readiness(sessions: Sessions, traffic: Traffic, has_tokens: bool) -> Answer:
    """Whether requests are taken and what they write is kept. If there are tokens, the answer does
    not name the place, for callers of this address need no token.
    """
    why: str | None = "The server is starting, and compiles what is new here; or it is stopping."
    if traffic.ready:
        why = sessions.store.is_well()
    if why is None:
        return _alive()
    if has_tokens and traffic.ready:
        why = "What is written cannot be kept at the moment: / and refused requests say why."
    return problem_of(Refused(503, why, retry_after(1.0)))


async def _http_problem(request: Request, error: Exception) -> Response:
    """What the router refuses: an address that is none."""
    status: int = getattr(error, "status_code", 404)
    detail = "There is nothing at this address; /docs lists those that there are."
    last = request.url.path.rpartition("/")[2]
    detail += did_you_mean(last, RENAMED.values()) if last in RENAMED else ""
    answer = problem_of(Refused(status, detail))
    headers = {"cache-control": "no-store", "x-content-type-options": "nosniff"}
    return Response(answer.body, status, headers, answer.kind.decode())
