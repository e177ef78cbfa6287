"""Access checks that every request passes before its route is looked up.

    host and origin  ->  token  ->  how much is under way  ->  the token's quota  ->  the app

/healthz and /readyz are open to all and always answered; /metrics needs a token where there are any
and is always answered. /docs and /openapi.json say nothing of sessions and need no token.

A server without tokens on loopback answers to names of loopback alone, so that no page of the web
can reach it under a name of its own; and no page of another origin may change anything anywhere.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import MutableMapping
from typing import TYPE_CHECKING, Any, final

from tidewolf.core.errors import Overloaded, TooMany
from tidewolf.service.messages import Refused, problem_of
from tidewolf.service.tokens import ANYBODY, Tokens
from tidewolf.service.traffic import OTHER, Traffic

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

    from tidewolf.service.tokens import Caller
    from tidewolf.service.traffic import Quotas

CALLER, ENDPOINT = "tidewolf.caller", "endpoint"
"""Where the scope of a request keeps who asks, and who answers."""
ALWAYS = frozenset(("/healthz", "/readyz", "/metrics"))
OPEN = frozenset(("/healthz", "/readyz", "/docs", "/openapi.json"))
LOOPBACK = frozenset((b"localhost", b"127.0.0.1", b"[::1]"))
METHODS = frozenset(("GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"))
_SESSIONS = "/v1/sessions/"
_READS = frozenset(("GET", "HEAD", "OPTIONS"))


@final
class Middleware:
    """The outermost part of the app.

    Parameters
    ----------
    app : ASGI app
        What is behind it.
    tokens : Tokens
        Who is known.
    quotas : Quotas
        What each may ask.
    traffic : Traffic
        What is under way.
    loopback_only : bool
        Whether it answers to names of loopback alone.
    log : bool
        Whether every request is a line of JSON on stderr.
    busiest : dict
        Who answers /v1/sessions/NAME/WORD, by that word, for the words that are asked most: they
        are found without asking the router.
    """

    def __init__(
        self,
        app: ASGIApp,
        tokens: Tokens,
        quotas: Quotas,
        traffic: Traffic,
        loopback_only: bool,
        log: bool,
        busiest: dict[str, ASGIApp],
    ) -> None:
        self.app, self._busiest = app, busiest
        self._tokens, self._quotas, self._traffic = tokens, quotas, traffic
        self._loopback_only, self._log = loopback_only, log

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began, status = time.perf_counter(), 0

        async def sent(message: MutableMapping[str, Any]) -> None:
            nonlocal status
            if status == 0:
                status = message["status"]
            await send(message)

        entered = False
        try:
            entered = self._admit(scope)
            await asyncio.sleep(0)  # all that have come are counted before one is answered
            await self._inside(scope)(scope, receive, sent)
        except asyncio.CancelledError:
            if status == 0:
                await problem_of(Overloaded("The server is stopping: come again.")).send(sent)
        except Exception as error:
            if status == 0:
                await problem_of(error).send(sent)
            else:
                raise
        finally:
            if entered:
                self._traffic.in_flight -= 1
            self._note(scope, status, time.perf_counter() - began)

    def _inside(self, scope: Scope) -> ASGIApp:
        """Who answers a request."""
        path: str = scope["path"]
        name, _, word = path.removeprefix(_SESSIONS).partition("/")
        found = self._busiest.get(word)
        if found is None or not name or not path.startswith(_SESSIONS):
            return self.app
        scope["path_params"], scope[ENDPOINT] = {"name": name}, found
        return found

    def _admit(self, scope: Scope) -> bool:
        """Who asks goes into the scope; whether the request counts as one under way."""
        path, refused = scope["path"], self._traffic.refused
        found = dict(scope["headers"])
        if len(found) < len(scope["headers"]) and _says_twice(scope["headers"], b"authorization"):
            raise Refused(400, "The request says who asks twice: send one Authorization header.")
        try:
            self._require_own_site(scope["method"], found)
        except Refused:
            refused["host"] += 1
            raise
        caller = self._caller(path, found.get(b"authorization"))
        scope[CALLER] = caller
        if path in ALWAYS:
            return False
        try:
            self._traffic.enter()
        except Overloaded:
            refused["overload"] += 1
            raise
        try:
            self._quotas.take_request(caller.who)
        except TooMany:
            self._traffic.in_flight -= 1
            refused["quota"] += 1
            raise
        return True

    def _caller(self, path: str, authorization: bytes | None) -> Caller:
        if path in OPEN:
            return ANYBODY
        is_page = path == "/" or path.endswith("/report")
        caller = self._tokens.caller(authorization, basic=is_page)
        if caller is not None:
            return caller
        self._traffic.refused["token"] += 1
        raise Refused(
            401,
            "A token is needed, and none that is known here came: send it as Authorization: "
            "Bearer TOKEN.",
            (b"www-authenticate", b'Basic realm="tidewolf"' if is_page else b"Bearer"),
        )

    def _require_own_site(self, method: str, headers: dict[bytes, bytes]) -> None:
        host = headers.get(b"host", b"")
        if self._loopback_only and _hostname(host) not in LOOPBACK:
            raise Refused(
                403,
                "A server without tokens answers to localhost and 127.0.0.1 alone: start it with "
                "--token-file, or with --insecure, to be reached under another name.",
            )
        origin = headers.get(b"origin")
        if origin is not None and method not in _READS and origin.partition(b"://")[2] != host:
            raise Refused(403, "A page of another site may not change anything here.")

    def _note(self, scope: Scope, status: int, seconds: float) -> None:
        endpoint = scope.get(ENDPOINT)
        route: str = getattr(endpoint, "path", OTHER)
        method = scope["method"] if scope["method"] in METHODS else OTHER
        self._traffic.count(route, method, status, seconds)
        if self._log:
            caller = scope.get(CALLER)
            line = {
                "at": round(time.time(), 3),
                "who": "nobody" if caller is None else caller.who,
                "method": method,
                "path": scope["path"][:300],
                "status": status,
                "ms": round(1000.0 * seconds, 2),
            }
            sys.stderr.write(f"{json.dumps(line)}\n")


def _says_twice(headers: list[tuple[bytes, bytes]], name: bytes) -> bool:
    return sum(key == name for key, _ in headers) > 1


def _hostname(host: bytes) -> bytes:
    """The name in a Host header, without the port."""
    name, _, port = host.rpartition(b":")
    return (name if name and port.isdigit() else host).lower()
