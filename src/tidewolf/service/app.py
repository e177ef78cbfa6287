"""The FastAPI app: the checks that every request passes, every resource, and how one request for
any of them is answered.

    host and origin  ->  token  ->  requests in flight  ->  the token's quota
    ->  address and role  ->  query  ->  body  ->  the endpoint in a thread  ->  the disk  ->  reply

An endpoint declares its path, models and section; FastAPI finds it and describes it at
`/openapi.json`. `Operation` reads the request in place of FastAPI: strictly, within limits, and
without a thread for what takes less time than going there. One pool of threads decides and
observes, another does what takes long, so that a report never holds up a decision. Nothing is
acknowledged before it is on disk.

/healthz and /readyz are open to all and always answered; /metrics needs a token if there are any,
and is always answered. /docs and /openapi.json reveal nothing of sessions and need no token.

A server without tokens on loopback answers to names of loopback alone, so that no page of the web
can reach it under a name of its own; and no page of another origin may change anything anywhere.

`serve` is the process: open the store, print one line when ready, drain on SIGTERM or SIGINT.

    bind  ->  open  ->  answer /healthz  ->  compile what the sessions need
    ->  "tidewolf serves http://127.0.0.1:8000", and /readyz says yes  ->  SIGTERM or SIGINT
    ->  take nothing more  ->  finish what is under way  ->  keep it  ->  close  ->  exit code 0

A second signal ends it at once; what was acknowledged is on disk even then.
"""

import asyncio
import gc
import ipaddress
import json
import os
import pathlib
import re
import resource
import socket
import sys
import threading
import time
import warnings
from collections.abc import Callable, MutableMapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from functools import partial
from http import HTTPStatus
from inspect import iscoroutinefunction
from typing import Annotated, Any, final, get_type_hints

import uvicorn
from fastapi import APIRouter, Depends, FastAPI, Path, Query, Request, Response
from fastapi.responses import HTMLResponse, JSONResponse, PlainTextResponse
from fastapi.routing import APIRoute
from fastapi.security import HTTPBearer
from starlette.exceptions import HTTPException
from starlette.routing import Match, Route
from starlette.types import Receive, Scope, Send

from tidewolf import __version__
from tidewolf.core import arguments, errors
from tidewolf.service import hosted_session, pages, requests
from tidewolf.service import models as m
from tidewolf.service.requests import Caller, Quotas, Refused, Tokens, Traffic, dumps, problem_of
from tidewolf.service.sessions import Reply, Sessions
from tidewolf.storage.session_store import SessionStore

# Threads that decide and observe, and threads for what takes long.
THREADS, SLOW_THREADS = 8, 4
OPEN = frozenset(("/healthz", "/readyz", "/docs", "/openapi.json"))
METHODS = frozenset(("GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"))
# The status of requests whose client did not wait for an answer, as others count it.
LEFT = 499
# Where the scope of a request has its caller.
CALLER = "tidewolf.caller"
ONE = "/v1/sessions/{name}"
# Addresses for browsers, which send a token as a password.
_PAGE = re.compile(r"/|/v1/sessions/[^/]+/report")
# Bytes of a body that may be answered without a thread.
_AT_ONCE = 1 << 14
# Headers of every response.
_SAFE = [
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
]
_AGAIN = {"Retry-After": {"schema": {"type": "integer"}, "description": "Unit: seconds."}}
_HEADERS = {401: {"WWW-Authenticate": {"schema": {"type": "string"}}}, 429: _AGAIN, 503: _AGAIN}


@final
class App(FastAPI):
    """The app that serves sessions over HTTP: which callers get in, how much at a time, and what
    their requests need.

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
    body_seconds : float, default 10.0
        How long a body may take.
    loopback_only : bool, default False
        Whether it answers to names of loopback alone.
    log : bool, default False
        Whether every request is a line of JSON on stderr.
    """

    def __init__(
        self,
        sessions: Sessions,
        tokens: Tokens | None = None,
        quotas: Quotas | None = None,
        traffic: Traffic | None = None,
        *,
        longest_body: int = requests.LONGEST,
        body_seconds: float = requests.SECONDS,
        loopback_only: bool = False,
        log: bool = False,
    ) -> None:
        super().__init__(
            title="tidewolf",
            version=__version__,
            description=(
                "Decisions, round after round, inside a hard set, under limits that move with "
                "time. Rounds count from 1."
            ),
            license_info={"name": "BSD-3-Clause", "identifier": "BSD-3-Clause"},
            openapi_url=None,
            redirect_slashes=False,
        )
        self.router.routes.extend(api.routes)
        self.sessions, self.tokens = sessions, tokens or Tokens()
        self.quotas, self.traffic = quotas or Quotas(), traffic or Traffic()
        self.longest_body, self.body_seconds = longest_body, body_seconds
        self._loopback_only, self._log = loopback_only, log
        self.quick = ThreadPoolExecutor(THREADS, "tidewolf-quick")
        self.slow = ThreadPoolExecutor(SLOW_THREADS, "tidewolf-slow")
        self.parsing = asyncio.Semaphore(1)

    def close(self) -> None:
        for pool in (self.quick, self.slow):
            pool.shutdown(cancel_futures=True)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope["app"] = self
        began, status, entered = time.perf_counter(), 0, False
        method, has_left = scope["method"], scope.get(requests.HAS_LEFT, bool)
        scope = {**scope, "method": "GET"} if method == "HEAD" else scope

        async def sent(message: MutableMapping[str, Any]) -> None:
            nonlocal status
            if status == 0:
                status = message["status"]
                message["headers"] = [*message["headers"], *_SAFE]
            await send(message)

        try:
            try:
                entered = self._admit(scope)
            finally:  # all that have come are counted, and those that left again are known
                await asyncio.sleep(0)
            if not has_left():
                await self.router(scope, receive, sent)
        except (asyncio.CancelledError, Exception) as error:
            if isinstance(error, asyncio.CancelledError):
                error = errors.Overloaded("The server is stopping: come again.")
            elif status != 0:
                raise
            elif isinstance(error, HTTPException):
                error = self._no_such(scope)
            if status == 0 and not has_left():
                await problem_of(error)(scope, receive, sent)
        finally:
            self.traffic.in_flight -= entered
            self._note(scope, method, status or LEFT, time.perf_counter() - began)
        if status == 0:
            await asyncio.sleep(0)  # until uvicorn knows it, too

    def _no_such(self, scope: Scope) -> Refused:
        """What the router refuses: an address, or a method of an address, that does not exist."""
        routes = (each for each in self.routes if isinstance(each, Route))
        there = [each for each in routes if each.matches(scope)[0] is not Match.NONE]
        if there:
            known = ", ".join(sorted({method for each in there for method in each.methods or ()}))
            return Refused(405, f"{there[0].path} has {known}, not {scope['method']}.", allow=known)
        last = scope["path"].rpartition("/")[2]
        near = (
            arguments.did_you_mean(last, arguments.RENAMED.values())
            if last in arguments.RENAMED
            else ""
        )
        return Refused(404, f"There is nothing at this address; /docs lists what exists.{near}")

    def _admit(self, scope: Scope) -> bool:
        """The caller is written into the scope; whether the request counts as one in flight."""
        path, traffic = scope["path"], self.traffic
        refused = "host"
        try:
            headers = dict(scope["headers"])
            for one in (b"authorization", b"host"):
                if [name for name, _ in scope["headers"]].count(one) > 1:
                    raise Refused(400, f"The header {one.decode().title()} comes twice: send one.")
            self._require_own_site(scope["method"], headers)
            refused = "token"
            scope[CALLER] = caller = self._caller(path, headers)
            if path in {"/healthz", "/readyz", "/metrics"}:
                return False
            refused = "overload"
            traffic.enter()
            refused = "quota"
            if "requests" in self.quotas.rates:
                self.quotas.take("requests", caller.who)
        except (Refused, errors.Overloaded, errors.TooMany):
            traffic.refused.labels(refused).inc()
            traffic.in_flight -= refused == "quota"
            raise
        return True

    def _caller(self, path: str, headers: dict[bytes, bytes]) -> Caller:
        if path in OPEN:
            return Caller()
        is_page = _PAGE.fullmatch(path) is not None
        caller = self.tokens.caller(headers.get(b"authorization"), basic=is_page)
        if caller is None:
            how = 'Basic realm="tidewolf"' if is_page else "Bearer"
            words = "A known token is needed: send it as Authorization: Bearer TOKEN."
            raise Refused(401, words, www_authenticate=how)
        return caller

    def _require_own_site(self, method: str, headers: dict[bytes, bytes]) -> None:
        host, origin = headers.get(b"host", b""), headers.get(b"origin")
        name, _, port = host.rpartition(b":")
        name = (name if name and port.isdigit() else host).lower()
        if self._loopback_only and name not in {b"localhost", b"127.0.0.1", b"[::1]"}:
            cure = "start it with --token-file, or --insecure"
            raise Refused(403, f"A server without tokens answers to localhost alone: {cure}.")
        writes = method not in ("GET", "HEAD", "OPTIONS")
        if writes and origin is not None and origin.partition(b"://")[2] != host:
            raise Refused(403, "A page of another site may not change anything here.")

    def _note(self, scope: Scope, method: str, status: int, seconds: float) -> None:
        method, other = method if method in METHODS else requests.OTHER, requests.OTHER
        self.traffic.count(getattr(scope.get("route"), "path", other), method, status, seconds)
        if self._log:
            line = {
                "at": round(time.time(), 3),
                "who": (scope[CALLER].who if CALLER in scope else "unknown"),
                "method": method,
                "path": scope["path"][:300],
                "status": status,
                "ms": round(1e3 * seconds, 2),
            }
            sys.stderr.write(f"{json.dumps(line)}\n")


class Call(Request):
    def __init__(self, scope: Any, receive: Any) -> None:
        super().__init__(scope, receive)
        self.service: App = scope["app"]
        self.caller: Caller = scope[CALLER]


@final
class Operation(APIRoute):
    def __init__(self, path: str, endpoint: Callable[..., Any], **more: Any) -> None:
        hints = get_type_hints(endpoint)
        self._body, self._query = hints.get("body"), hints.get("query")
        self._is_quick = "rounds" in more["tags"]
        refusals = {
            *((401, 403, 422, 429, 503) if more["dependencies"] else (403, 429, 503)),
            *((404, 409, 501) if "{name}" in path else ()),
            *((400, 408, 413, 415) if self._body else ()),
        }
        content = {requests.PROBLEM: {"schema": {"$ref": "#/components/schemas/Problem"}}}
        more["responses"] = (more["responses"] or {}) | {
            status: {
                "description": f"{HTTPStatus(status).phrase}; `detail` has the reason.",
                "content": content,
                "headers": _HEADERS.get(status, {}),
            }
            for status in sorted(refusals)
        }
        more |= {"summary": endpoint.__doc__, "description": " ", "response_description": "Done."}
        more["response_model"] = more["response_model"] or None
        super().__init__(path, endpoint, **more)
        self._is_async = iscoroutinefunction(endpoint)
        self.app = self._respond

    async def _respond(self, scope: Scope, receive: Receive, send: Send) -> None:
        answer = self.endpoint if self._is_async else self._answer
        await (await answer(Call(scope, receive)))(scope, receive, send)

    async def _answer(self, call: Call) -> Response:
        service, traffic, held = call.service, call.service.traffic, 0
        try:
            work = partial(self.endpoint, call, **self._address(call))
            if self._body is None:
                reply = await self._in_a_thread(call, work)
            else:
                limits = service.longest_body, service.body_seconds
                who = call.caller.who if service.tokens else str(call.client and call.client.host)
                raw = await requests.read_body(call, traffic, who, *limits)
                held = len(raw)
                if more := requests.parsed_size(raw, service.longest_body):
                    traffic.hold(more, held)
                    held += more
                reply = await self._written(call, work, raw)
            if reply.after is not None:  # a transaction that is no longer waited for continues
                await asyncio.shield(asyncio.wrap_future(reply.after))
        except errors.TidewolfError:
            service.sessions.count("refused")
            raise
        finally:
            traffic.held -= held
        if isinstance(reply.body, Response):
            return reply.body
        reply.body["version"] = __version__
        return Response(dumps(reply.body), reply.status, media_type="application/json")

    async def _in_a_thread(self, call: Call, work: Callable[[], Any]) -> Any:
        pool = call.service.quick if self._is_quick else call.service.slow
        return await asyncio.get_running_loop().run_in_executor(pool, work)

    async def _written(self, call: Call, work: Callable[..., Reply], raw: bytes) -> Any:
        """What the endpoint replies to a body; at once if that takes less than going to a
        thread.
        """
        model: Any = self._body

        def read() -> Any:
            return model.read(requests.as_object(raw, model is m.DecisionRequest))

        if len(raw) > requests.SHORT:  # one after the other: each holds the interpreter
            async with call.service.parsing:
                body = await self._in_a_thread(call, read)
            return await self._in_a_thread(call, partial(work, body=body))
        if not self._is_quick or len(raw) > _AT_ONCE:
            return await self._in_a_thread(call, lambda: work(body=read()))
        work = partial(work, body=(body := read()))
        lock = call.service.sessions.lock_at_once(call.path_params["name"], body)
        if lock is None:
            return await self._in_a_thread(call, work)
        try:
            return work()
        finally:
            lock.release()

    def _address(self, call: Call) -> dict[str, Any]:
        params, methods, query = call.path_params, self.methods or set(), call.scope["query_string"]
        found: dict[str, Any] = dict(params)
        if "name" in params:
            name = params["name"]
            if not m.NAME.fullmatch(name):
                words = f"The name of a session fits {m.NAME.pattern}."
                raise Refused(422 if "PUT" in methods else 404, words)
            if not name.startswith(call.caller.prefix):
                raise errors.UnknownSession(f"There is no session called {name!r}.")
        if "round" in params:
            if not re.fullmatch(r"0*[1-9][0-9]{0,14}", params["round"]):
                raise Refused(404, "A round is a whole number, from 1.")
            found["round"] = int(params["round"])
        if "GET" not in methods and call.caller.role != "writer":
            raise Refused(403, "This token is a reader's: it looks, and changes nothing.")
        if self._query is not None:
            found["query"] = self._query.read(query)
        elif self._body is None and self.path.startswith("/v1"):
            m.Query.read(query)
        return found


# --- resources ------------------------------------------------------------------------------------

Name = Annotated[str, Path(pattern=f"^{m.NAME.pattern}$", description="The name of the session.")]
Number = Annotated[int, Path(ge=1, le=10**15 - 1, description="Which round, from 1.")]
_TOKEN = [Depends(HTTPBearer(auto_error=False, description="A token of the server's file."))]
api = APIRouter(route_class=Operation, dependencies=_TOKEN)
# What needs no token.
_open = APIRouter(route_class=Operation)


@api.post(f"{ONE}/decisions", tags=["rounds"], response_model=m.Decision)
def decide(call: Call, name: Name, body: m.DecisionRequest = m.NOTHING) -> Reply:
    """Decide per round; the same question again gets the same answer."""
    return call.service.sessions.decide(name, body)


@api.post(f"{ONE}/observations", tags=["rounds"], response_model=m.Observed | m.ObservedMany)
def observe(call: Call, name: Name, body: m.ObservationRequest) -> Reply:
    """Observe per round, or many; the same content again gets the first answer again."""
    found: Any = body  # `read` gives one of both
    if "observations" in call.service.quotas.rates:
        call.service.quotas.take(
            "observations", call.caller.who, len(getattr(found, "observations", "1"))
        )
    return call.service.sessions.observe(name, found)


@api.get(f"{ONE}/decisions/{{round}}", tags=["rounds"], response_model=m.Decision)
def decision(call: Call, name: Name, round: Number) -> Reply:
    """Get the decision of a round."""
    return call.service.sessions.look(name, lambda hosted: hosted.decision(round - 1))


@api.get(ONE, tags=["sessions"], response_model=m.Session)
def get(call: Call, name: Name) -> Reply:
    """Get a session and its state."""
    return call.service.sessions.get(name)


@api.put(
    ONE,
    tags=["sessions"],
    response_model=m.Session,
    responses={201: {"model": m.Session, "description": "Created."}},
)
def put(call: Call, name: Name, body: m.Description) -> Reply:
    """Create a session, or find it there; another description is refused."""
    sessions, quotas = call.service.sessions, call.service.quotas
    if quotas.sessions is None:
        return sessions.put(name, body, call.caller)
    with quotas.creating:
        if sessions.store.info(name) is None:
            own = sessions.store.infos(call.caller.prefix, "", quotas.sessions)
            if len(own) >= quotas.sessions:
                raise errors.TooMany(
                    f"This token has {len(own):,} sessions: delete one.", retry_after=60
                )
        return sessions.put(name, body, call.caller)


@api.delete(ONE, tags=["sessions"], response_model=m.Answer)
def delete(call: Call, name: Name, query: Annotated[m.WhyQuery, Query()]) -> Reply:
    """Delete a session and all that was observed."""
    return call.service.sessions.delete(name, query.why, call.caller)


@api.get("/v1/sessions", tags=["sessions"], response_model=m.SessionList)
def sessions(call: Call, query: Annotated[m.ListQuery, Query()]) -> Reply:
    """List sessions in the order of their names."""
    prefix, own = query.prefix, call.caller.prefix
    if own.startswith(prefix):
        prefix = own
    elif not prefix.startswith(own):
        return Reply(200, {"sessions": []})
    return call.service.sessions.list(prefix, query.after, query.most)


@api.get(f"{ONE}/history", tags=["looking"], response_model=m.History)
def history(call: Call, name: Name, query: Annotated[m.HistoryQuery, Query()]) -> Reply:
    """List observed rounds."""
    return call.service.sessions.history(name, query.first, query.most)


@api.get(f"{ONE}/experts", tags=["looking"], response_model=m.Experts)
def experts(call: Call, name: Name) -> Reply:
    """List the experts of the learner, their weights and regret."""
    return call.service.sessions.look(name, hosted_session.HostedSession.experts)


@api.get(f"{ONE}/explanation", tags=["looking"], response_model=m.Answer)
def explanation(call: Call, name: Name) -> Reply:
    """Explain the current decision."""
    return call.service.sessions.look(name, hosted_session.HostedSession.explanation)


@api.get(f"{ONE}/report", tags=["looking"], response_class=HTMLResponse)
def report(call: Call, name: Name) -> Reply:
    """Get the session as a page."""
    facts = call.service.sessions.look(name, hosted_session.HostedSession.facts)
    return facts._replace(body=pages.session_page(facts.body))


@api.get(f"{ONE}/audit", tags=["looking"], response_model=m.Audit)
def audit(call: Call, name: Name, query: Annotated[m.AuditQuery, Query()]) -> Reply:
    """List the changes to a session: by which token, when and why."""
    return call.service.sessions.audit(name, query.after, query.most)


@api.get("/v1/audit", tags=["looking"], response_model=m.Audit)
def whole_audit(call: Call, query: Annotated[m.AuditQuery, Query()]) -> Reply:
    """List the changes to all sessions."""
    _require_all(call, "The log of all sessions")
    return call.service.sessions.audit(None, query.after, query.most)


@api.post(f"{ONE}/migrate", tags=["operating"], response_model=m.Session)
def migrate(call: Call, name: Name, body: m.Migration) -> Reply:
    """Continue with another set or learner."""
    return call.service.sessions.operate(name, body, call.caller)


@api.post(f"{ONE}/mode", tags=["operating"], response_model=m.Session)
def mode(call: Call, name: Name, body: m.ModeChange) -> Reply:
    """Set the mode: live, shadow or frozen."""
    return call.service.sessions.operate(name, body, call.caller)


@api.post(f"{ONE}/rollback", tags=["operating"], response_model=m.Session)
def rollback(call: Call, name: Name, body: m.Rollback) -> Reply:
    """Go back to a round."""
    return call.service.sessions.operate(name, body, call.caller)


@api.post(f"{ONE}/pin", tags=["operating"], response_model=m.Session)
def pin(call: Call, name: Name, body: m.Pin) -> Reply:
    """Play a given point until further notice."""
    return call.service.sessions.operate(name, body, call.caller)


# --- the server -----------------------------------------------------------------------------------


@api.get("/", tags=["server"], response_class=HTMLResponse)
def overview(call: Call, query: Annotated[m.PageQuery, Query()]) -> Reply:
    """Get all sessions as a page."""
    return Reply(200, pages.sessions_page(call.service.sessions, call.caller, query.after))


@api.get("/metrics", tags=["server"], response_class=PlainTextResponse)
def metrics(call: Call) -> Reply:
    """Get metrics for Prometheus."""
    _require_all(call, "Metrics")
    return Reply(200, pages.exposition(call.service.sessions, call.service.traffic))


def _require_all(call: Call, what: str) -> None:
    if call.caller.prefix:
        raise Refused(403, f"{what} is for tokens of all sessions, and this one has a prefix.")


@_open.get("/docs", tags=["server"], response_class=HTMLResponse)
async def docs(call: Call) -> Response:
    """Get this description as a page."""
    return pages.render("docs", title="The service", written="", document=call.app.openapi())


@_open.get("/openapi.json", tags=["server"])
async def openapi(call: Call) -> Response:
    """Get this description."""
    return JSONResponse(call.app.openapi())


@_open.get("/healthz", tags=["server"], response_model=m.Status)
async def healthz(call: Call) -> Response:
    """Check that the process lives."""
    return JSONResponse({"status": "ok", "version": __version__})


@_open.get("/readyz", tags=["server"], response_model=m.Status)
async def readyz(call: Call) -> Response:
    """Check that requests are taken and can be stored."""
    service = call.service
    why: str | None = "The server is starting, and compiles what is new here; or it is stopping."
    if service.traffic.ready:
        why = service.sessions.store.commits.trouble
        if why and service.tokens:  # callers without a token do not learn where things are stored
            why = "What is written cannot be stored now: / and refused requests give the reason."
    refusal = None if why is None else problem_of(Refused(503, why, retry_after="1"))
    return refusal or await healthz(call)


api.routes.extend(_open.routes)


# --- the process ----------------------------------------------------------------------------------

# How long requests under way may take once the server is stopping. Unit: seconds.
DRAIN = 8
# How long threads have after that. Unit: seconds.
GRACE = 1.0
# How long a connection may be idle; longer than clients keep theirs. Unit: seconds.
KEEP_ALIVE = 75
# Files that are no connections.
SPARE = 200


def serve(
    where: str | pathlib.Path,
    *,
    host: str,
    port: int,
    token_file: pathlib.Path | None,
    insecure: bool,
    commit_within: float,
    takeover_after: float,
    max_sessions: int,
    max_body: int,
    body_seconds: float,
    max_waiting: int,
    rate: float | None,
    observation_rate: float | None,
    token_sessions: int | None,
    log: bool,
) -> None:
    """Serve sessions until a signal comes, with the options of `tidewolf serve`; `where` is a
    folder, made if there is none, or "postgresql://...".
    """
    tokens = Tokens() if token_file is None else Tokens.read(token_file)
    require_closed_door(host, bool(tokens), insecure)
    with ExitStack() as last:
        listener = last.enter_context(listen(host, port))
        address = _address(host, listener)
        store = SessionStore.open(
            where, commit_within=commit_within, holder=address, takeover_after=takeover_after
        )
        last.callback(store.close)
        sessions = Sessions(store, limits=requests.Limits(sessions=max_sessions))
        closing = last.enter_context(ExitStack())
        closing.callback(sessions.close)
        app = App(
            sessions,
            tokens,
            Quotas(rate, observation_rate, token_sessions),
            Traffic(max_waiting),
            longest_body=max_body,
            body_seconds=body_seconds,
            loopback_only=not tokens and not insecure,
            log=log,
        )
        is_over = _run(app, listener, address)
        if not is_over:
            closing.pop_all()  # threads still compute in them
    if not is_over:  # requests that compute for long were asked to come again
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)


def _run(app: App, listener: socket.socket, address: str) -> bool:
    config = uvicorn.Config(
        app,
        http=type("Careful", (requests.Careful,), {"most": _connections(requests.Careful.most)}),
        ws="none",
        lifespan="off",
        log_config=None,
        log_level="critical",
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_keep_alive=KEEP_ALIVE,
        timeout_graceful_shutdown=DRAIN,
    )
    # Switch between threads often; collect garbage in cycles seldom, and never among what was
    # imported: a full collection stops all requests for a tenth of a second, and almost nothing
    # here is in a cycle. Ignore warnings about what callers send, each text of which would stay in
    # memory, and show those about the machine once.
    sys.setswitchinterval(0.001)
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 100)
    warnings.simplefilter("ignore")
    for kind in (errors.NotCached, errors.OtherVersions):
        warnings.simplefilter("default", kind)
    warm = partial(m.warm_store, app.sessions.store)
    requests.Server(config, app.traffic, address, warm).run([listener])
    last = threading.Thread(target=app.close, daemon=True)
    last.start()
    last.join(GRACE)
    return not last.is_alive()


def _connections(most: int) -> int:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = most + SPARE if hard == resource.RLIM_INFINITY else min(hard, most + SPARE)
    if 0 <= soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        soft = wanted
    return most if soft < 0 else max(1, min(most, soft - SPARE))


def require_closed_door(host: str, has_tokens: bool, insecure: bool) -> None:
    """Refuse to listen beyond this machine without tokens, unless `insecure` allows it.

    Examples
    --------
    >>> from tidewolf.service.app import require_closed_door
    >>> require_closed_door("127.0.0.1", has_tokens=False, insecure=False)
    >>> require_closed_door("0.0.0.0", has_tokens=True, insecure=False)
    """
    is_loopback = host.lower() == "localhost"
    with suppress(ValueError):
        is_loopback = ipaddress.ip_address(host).is_loopback
    errors.refuse(
        not (has_tokens or insecure or is_loopback),
        f"At {host} other machines could use the service without a token: give --token-file, "
        "or --insecure, or stay at 127.0.0.1.",
    )


def listen(host: str, port: int) -> socket.socket:
    """A socket that takes connections, which wait until they are answered; port 0 is any free one.

    Examples
    --------
    >>> from tidewolf.service.app import listen
    >>> with listen("127.0.0.1", 0) as listener:
    ...     listener.getsockname()[1] > 0
    True
    """
    errors.require(
        0 <= port <= 65535,
        errors.InvalidInput,
        f"A port is a whole number from 0 to 65535, not {port}.",
    )
    try:
        found = socket.getaddrinfo(host, port, 0, socket.SOCK_STREAM, 0, socket.AI_PASSIVE)
        return socket.create_server(found[0][-1], family=found[0][0])
    except OSError as error:
        raise errors.InvalidInput(
            f"Cannot listen at {host}, port {port}: {error.strerror}. --port 0 takes any free port."
        ) from None


def _address(host: str, listener: socket.socket) -> str:
    host = socket.gethostname() if host in ("", "0.0.0.0", "::") else host
    return f"http://{f'[{host}]' if ':' in host else host}:{listener.getsockname()[1]}"
