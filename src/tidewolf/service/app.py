"""The FastAPI app: its routes, and the checks that every request passes before them.

    host and origin  ->  token  ->  requests in flight  ->  the token's quota  ->  the route

/healthz and /readyz are open to all and always answered; /metrics needs a token if there are any,
and is always answered. /docs and /openapi.json reveal nothing of sessions and need no token.

A server without tokens on loopback answers to names of loopback alone, so that no page of the web
can reach it under a name of its own; and no page of another origin may change anything anywhere.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import MutableMapping
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, final

from fastapi import FastAPI, Request, Response
from starlette.exceptions import HTTPException
from starlette.routing import Match, Route

from tidewolf import __version__
from tidewolf.core.errors import Overloaded, TooMany
from tidewolf.core.names import RENAMED, did_you_mean
from tidewolf.service import messages
from tidewolf.service.access import OTHER, Caller, Quotas, Tokens, Traffic
from tidewolf.service.messages import Refused, problem_of
from tidewolf.service.routes import CALLER, Service, api
from tidewolf.service.sessions import Sessions

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

POOL = "tidewolf-"
"""How the names of threads begin that answer requests."""
THREADS, SLOW_THREADS = 8, 4
"""Threads that decide and observe, and threads for what takes long."""
ALWAYS = frozenset(("/healthz", "/readyz", "/metrics"))
OPEN = frozenset(("/healthz", "/readyz", "/docs", "/openapi.json"))
LOOPBACK = frozenset((b"localhost", b"127.0.0.1", b"[::1]"))
METHODS = frozenset(("GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"))
_READS = frozenset(("GET", "HEAD", "OPTIONS"))
_SAFE = [
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
]
"""Headers of every response."""


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
        Which callers have access; all of them if there are none.
    quotas : Quotas, optional
        How much each token may ask; no bounds if there are none.
    traffic : Traffic, optional
        What is in flight, and how much may be.
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
    app = FastAPI(
        title="tidewolf",
        version=__version__,
        description="Decisions, round after round, inside a hard set, under limits that move with "
        "time. Rounds count from 1.",
        license_info={"name": "BSD-3-Clause", "identifier": "BSD-3-Clause"},
        openapi_url=None,
        redirect_slashes=False,
        exception_handlers={HTTPException: _http_problem},
    )
    app.router.routes.extend(api.routes)
    app.state.service = service = Service(
        sessions,
        tokens or Tokens(),
        quotas or Quotas(),
        traffic or Traffic(),
        ThreadPoolExecutor(THREADS, f"{POOL}quick"),
        ThreadPoolExecutor(SLOW_THREADS, f"{POOL}slow"),
        longest_body,
        body_seconds,
    )
    app.state.pools = (service.quick, service.slow)
    app.add_middleware(Middleware, service=service, loopback_only=loopback_only, log=log)
    return app


async def _http_problem(request: Request, error: Exception) -> Response:
    """What the router refuses: an address, or a method of an address, that does not exist."""
    routes = [each for each in request.app.routes if isinstance(each, Route)]
    there = [each for each in routes if each.matches(request.scope)[0] is not Match.NONE]
    if there:
        allowed = ", ".join(sorted({method for each in there for method in each.methods or ()}))
        detail = f"{there[0].path} has {allowed}, not {request.method}."
        return problem_of(Refused(405, detail, allow=allowed))
    last = request.url.path.rpartition("/")[2]
    near = did_you_mean(last, RENAMED.values()) if last in RENAMED else ""
    detail = f"There is nothing at this address; /docs lists those that exist.{near}"
    return problem_of(Refused(404, detail))


@final
class Middleware:
    """The outermost part of the app: who gets in, and how much at a time."""

    def __init__(self, app: ASGIApp, service: Service, loopback_only: bool, log: bool) -> None:
        self.app, self._service = app, service
        self._loopback_only, self._log = loopback_only, log

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began, status, entered = time.perf_counter(), 0, False
        method = scope["method"]
        scope = {**scope, "method": "GET" if method == "HEAD" else method}

        async def sent(message: MutableMapping[str, Any]) -> None:
            nonlocal status
            if status == 0:
                status = message["status"]
                message["headers"] = [*message["headers"], *_SAFE]
            await send(message)

        try:
            entered = self._admit(scope)
            await asyncio.sleep(0)  # all that have come are counted before one is answered
            await self.app(scope, receive, sent)
        except asyncio.CancelledError:
            if status == 0:
                stopping = Overloaded("The server is stopping: come again.")
                await problem_of(stopping)(scope, receive, sent)
        except Exception as error:
            if status != 0:
                raise
            await problem_of(error)(scope, receive, sent)
        finally:
            if entered:
                self._service.traffic.in_flight -= 1
            self._note(scope, method, status, time.perf_counter() - began)

    def _admit(self, scope: Scope) -> bool:
        """The caller is written into the scope; whether the request counts as one in flight."""
        path, headers, traffic = scope["path"], dict(scope["headers"]), self._service.traffic
        refused = "host"
        try:
            self._require_own_site(scope["method"], headers)
            refused = "token"
            scope[CALLER] = caller = self._caller(path, scope["headers"])
            if path in ALWAYS:
                return False
            refused = "overload"
            traffic.enter()
            refused = "quota"
            if "requests" in self._service.quotas.rates:
                self._service.quotas.take("requests", caller.who)
        except (Refused, Overloaded, TooMany):
            traffic.refused.labels(refused).inc()
            traffic.in_flight -= refused == "quota"
            raise
        return True

    def _caller(self, path: str, headers: list[tuple[bytes, bytes]]) -> Caller:
        if path in OPEN:
            return Caller()
        is_page = path == "/" or path.endswith("/report")
        given = [value for name, value in headers if name == b"authorization"]
        if len(given) > 1:
            raise Refused(400, "The request has two Authorization headers: send one.")
        caller = self._service.tokens.caller(given[0] if given else None, basic=is_page)
        if caller is None:
            raise Refused(
                401,
                "A known token is needed: send it as Authorization: Bearer TOKEN.",
                www_authenticate='Basic realm="tidewolf"' if is_page else "Bearer",
            )
        return caller

    def _require_own_site(self, method: str, headers: dict[bytes, bytes]) -> None:
        host = headers.get(b"host", b"")
        name, _, port = host.rpartition(b":")
        name = (name if name and port.isdigit() else host).lower()
        if self._loopback_only and name not in LOOPBACK:
            raise Refused(
                403,
                "A server without tokens answers to localhost and 127.0.0.1 alone: start it with "
                "--token-file, or with --insecure, to be reached under another name.",
            )
        origin = headers.get(b"origin")
        if origin is not None and method not in _READS and origin.partition(b"://")[2] != host:
            raise Refused(403, "A page of another site may not change anything here.")

    def _note(self, scope: Scope, method: str, status: int, seconds: float) -> None:
        """Count a request that was answered, and log it."""
        method = method if method in METHODS else OTHER
        self._service.traffic.count(
            getattr(scope.get("route"), "path", OTHER), method, status, seconds
        )
        if self._log:
            line = {
                "at": round(time.time(), 3),
                "who": scope[CALLER].who if CALLER in scope else "unknown",
                "method": method,
                "path": scope["path"][:300],
                "status": status,
                "ms": round(1000.0 * seconds, 2),
            }
            sys.stderr.write(f"{json.dumps(line)}\n")
