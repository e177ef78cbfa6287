"""The server process: open the store, print one line when ready, drain on SIGTERM or SIGINT.

    bind  ->  open  ->  answer /healthz  ->  compile what the sessions need
    ->  "tidewolf serves http://127.0.0.1:8000", and /readyz says yes  ->  SIGTERM or SIGINT
    ->  take nothing more  ->  finish what is under way  ->  keep it  ->  close  ->  exit code 0

A second signal ends it at once; what was acknowledged is on disk even then.

Connections with limits on time, size and number, so that no client can exhaust a server.

uvicorn waits for the head of a request for as long as it takes, and takes as much of it as comes.
Here a head has SECONDS to arrive and at most LONGEST bytes, and so has what may come behind a body;
a connection that keeps sending a body which is no longer read is closed after the same time,
and so is one whose client does not read what it is sent. There are at most MOST connections:
for one more, that which has been idle for longest is closed, or the new one where none is idle.
What is no HTTP is answered with a problem.
"""

from __future__ import annotations

import asyncio
import gc
import ipaddress
import os
import resource
import socket
import sys
import threading
import time
import warnings
from collections.abc import Callable
from contextlib import ExitStack, suppress
from importlib import import_module
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, NamedTuple

from tidewolf.core.errors import InvalidInput, MissingExtra, NotCached, OtherVersions

if TYPE_CHECKING:
    import uvicorn

    from tidewolf.service.requests import Traffic

DRAIN = 8
"""How long requests under way may take once the server is stopping. Unit: seconds."""
GRACE = 1.0
"""How long threads have after that. Unit: seconds."""
KEEP_ALIVE = 75
"""How long a connection may be idle; longer than clients keep theirs. Unit: seconds."""
SPARE = 200
"""Files that are no connections."""
COLLECT = (20_000, 20, 100)
"""Python's thresholds for looking for garbage in cycles."""
SWITCH = 0.001
"""How long a thread computes before another one may. Unit: seconds."""


class Settings(NamedTuple):
    """Settings of a server.

    Parameters
    ----------
    where : str or path
        A folder, made where there is none, or "postgresql://...".
    host : str, default "127.0.0.1"
        The address to listen at.
    port : int, default 8000
        The port; 0 takes any that is free.
    token_file : path, optional
        Who may ask; see `tokens`.
    insecure : bool, default False
        Whether every caller may do everything, from anywhere.
    commit_within : float, default 0.01
        How long an observation may wait for others to be kept with. Unit: seconds.
    max_sessions : int, default 10_000
        Sessions, at most.
    max_body : int, default 4194304
        Bytes of a body, at most.
    max_waiting : int, default 256
        Requests under way, at most.
    rate, observation_rate : float, optional
        Requests, and observations, a second for each token.
    token_sessions : int, optional
        Sessions that a token may have under its prefix.
    log : bool, default False
        Whether every request is a line of JSON on stderr.

    Examples
    --------
    >>> from tidewolf.service.server import Settings
    >>> Settings("data").port
    8000
    """

    where: str | Path
    host: str = "127.0.0.1"
    port: int = 8000
    token_file: Path | None = None
    insecure: bool = False
    commit_within: float = 0.01
    max_sessions: int = 10_000
    max_body: int = 4 << 20
    max_waiting: int = 256
    rate: float | None = None
    observation_rate: float | None = None
    token_sessions: int | None = None
    log: bool = False


def serve(settings: Settings) -> None:
    """Serve sessions until a signal comes.

    Parameters
    ----------
    settings : Settings
        How.

    Raises
    ------
    InvalidInput
        Where it must not, or cannot, listen there.
    CheckpointError
        Where what is kept cannot be opened, or another process serves it.
    MissingExtra
        Where FastAPI or uvicorn is not installed.
    """
    try:
        for package in ("fastapi", "orjson", "prometheus_client", "uvicorn"):
            import_module(package)
    except ImportError:
        raise MissingExtra(
            'Serving needs FastAPI and uvicorn: pip install "tidewolf[serve]".'
        ) from None
    import uvicorn

    from tidewolf.service.app import POOL, make_app
    from tidewolf.service.requests import Limits, Quotas, Tokens, Traffic
    from tidewolf.service.sessions import Sessions
    from tidewolf.service.warming import warm_store
    from tidewolf.storage.session_store import SessionStore

    tokens = Tokens() if settings.token_file is None else Tokens.read(settings.token_file)
    require_closed_door(settings.host, bool(tokens), settings.insecure)
    quotas = Quotas(settings.rate, settings.observation_rate, settings.token_sessions)
    traffic = Traffic(settings.max_waiting)
    is_over = True
    with ExitStack() as last:
        listener = last.enter_context(listen(settings.host, settings.port))
        address = _address(settings.host, listener)
        store = SessionStore.open(
            settings.where, commit_within=settings.commit_within, holder=address
        )
        last.callback(store.close)
        sessions = Sessions(store, limits=Limits(sessions=settings.max_sessions))
        closing = last.enter_context(ExitStack())
        closing.callback(sessions.close)
        app = make_app(
            sessions,
            tokens,
            quotas,
            traffic,
            longest_body=settings.max_body,
            loopback_only=not tokens and not settings.insecure,
            log=settings.log,
        )
        config = uvicorn.Config(
            app,
            http=careful_protocol(most=_connections()),
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
        _prepare_process()
        _server(config, traffic, address, lambda: warm_store(store)).run([listener])
        for pool in app.state.pools:
            pool.shutdown(wait=False, cancel_futures=True)
        is_over = ended(GRACE, POOL)
        if not is_over:
            closing.pop_all()  # threads still compute in them
    if not is_over:  # requests that compute for long were told to come again
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)


def ended(seconds: float, name: str) -> bool:
    """Whether all threads whose names begin so came to their end within this time."""
    last = time.monotonic() + seconds
    for thread in threading.enumerate():
        if thread.name.startswith(name):
            thread.join(max(0.0, last - time.monotonic()))
    return not any(thread.name.startswith(name) for thread in threading.enumerate())


def _connections() -> int:
    """How many there may be, with files to spare for what is kept."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST + SPARE if hard == resource.RLIM_INFINITY else min(hard, MOST + SPARE)
    if 0 <= soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        soft = wanted
    return MOST if soft < 0 else max(1, min(MOST, soft - SPARE))


def _prepare_process() -> None:
    """Switch between threads often; collect garbage in cycles seldom, and never among what was
    imported, because a full collection stops all requests for a tenth of a second, and almost
    nothing here is in a cycle; ignore warnings about what callers send, each text of which would
    stay in memory, and show those about the machine once.
    """
    sys.setswitchinterval(SWITCH)
    gc.collect()
    gc.freeze()
    gc.set_threshold(*COLLECT)
    warnings.simplefilter("ignore")
    for kind in (NotCached, OtherVersions):
        warnings.simplefilter("default", kind)


def require_closed_door(host: str, has_tokens: bool, insecure: bool) -> None:
    """Refuse to listen beyond this machine without tokens, unless `insecure` allows it.

    Examples
    --------
    >>> from tidewolf.service.server import require_closed_door
    >>> require_closed_door("127.0.0.1", has_tokens=False, insecure=False)
    >>> require_closed_door("0.0.0.0", has_tokens=True, insecure=False)
    """
    is_loopback = host.lower() == "localhost"
    with suppress(ValueError):
        is_loopback = ipaddress.ip_address(host).is_loopback
    if not (has_tokens or insecure or is_loopback):
        raise InvalidInput(
            f"At {host} other machines could decide and observe without a token: give "
            "--token-file, or --insecure if that is meant, or stay at 127.0.0.1."
        )


def listen(host: str, port: int) -> socket.socket:
    """A socket that takes connections, which wait until they are answered; port 0 is any free one.

    Examples
    --------
    >>> from tidewolf.service.server import listen
    >>> with listen("127.0.0.1", 0) as listener:
    ...     listener.getsockname()[1] > 0
    True
    """
    if not 0 <= port <= 65535:
        raise InvalidInput(f"A port is a whole number from 0 to 65535, not {port}.")
    try:
        found = socket.getaddrinfo(host, port, 0, socket.SOCK_STREAM, 0, socket.AI_PASSIVE)
        family, *_, where = found[0]
        return socket.create_server(where, family=family)
    except OSError as error:
        raise InvalidInput(
            f"Cannot listen at {host}, port {port}: {error.strerror}. --port 0 takes any free port."
        ) from None


def _address(host: str, listener: socket.socket) -> str:
    """Where it is found; a name where it listens at all addresses of a machine."""
    port = listener.getsockname()[1]
    if host in ("", "0.0.0.0", "::"):
        host = socket.gethostname()
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


def _server(
    config: uvicorn.Config, traffic: Traffic, address: str, prepare: Callable[[], None]
) -> Any:
    """uvicorn's server, which is ready once `prepare` is done, and ends with exit code 0."""
    import uvicorn

    class Server(uvicorn.Server):
        """It swallows the signals that it obeys: stopping when told to is no failure."""

        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            threading.Thread(target=self._prepare, name="tidewolf-prepare", daemon=True).start()

        def _prepare(self) -> None:
            """In a thread of its own: requests that come meanwhile are answered."""
            with suppress(Exception):  # what cannot be prepared is refused when it is asked for
                prepare()
            if not self.should_exit:
                traffic.ready = True
                sys.stdout.write(f"tidewolf serves {address}\n")
                sys.stdout.flush()

        def handle_exit(self, sig: int, frame: FrameType | None) -> None:
            if self.should_exit:
                os._exit(128 + sig)
            traffic.ready = False
            self.should_exit = True

    return Server(config)


SECONDS = 10.0
"""How long the head of a request, or a client that reads nothing, may take."""
LONGEST = 1 << 16
"""Bytes of the head of a request, at most."""
MOST = 2000
"""Connections, at most."""
_FRAMING = 8
"""Bytes around each byte of a body that comes in the smallest of pieces."""


def careful_protocol(
    *, seconds: float = SECONDS, longest: int = LONGEST, most: int = MOST
) -> type[asyncio.Protocol]:
    """uvicorn's protocol with these limits, for `uvicorn.Config(http=...)`."""
    from uvicorn.protocols.http.auto import AutoHTTPProtocol

    from tidewolf.service.requests import PROBLEM, dumps, problem

    base: Any = AutoHTTPProtocol

    class Careful(base):  # type: ignore[misc]
        """One connection."""

        _alarm: asyncio.TimerHandle | None = None
        _stuck: asyncio.TimerHandle | None = None
        _open = False
        """Whether a request has begun, and not all of it has come."""
        _came = _body = 0
        """Bytes of it after the piece that it began in, and those that are its body."""
        _heard = 0.0
        """When something came last."""

        def connection_made(self, transport: asyncio.Transport) -> None:
            super().connection_made(transport)
            self._heard = self.loop.time()
            there = [one for one in self.connections if not one.transport.is_closing()]
            if len(there) > most:  # the one that has been idle for longest, this one at last
                idle = (one for one in there if not one._is_answering())
                min(idle, key=lambda one: one._heard).transport.close()
            self._alarm = self.loop.call_later(seconds, self._give_up)

        def data_received(self, data: bytes) -> None:
            self._heard = self.loop.time()
            self._came += len(data)
            super().data_received(data)
            if self._is_answering():
                self._cancel("_alarm")
            elif self._alarm is None:
                self._alarm = self.loop.call_later(seconds, self._give_up)
            if self._open and self._came - self._body > longest + _FRAMING * self._body:
                self._refuse_head()

        def on_message_begin(self) -> None:
            super().on_message_begin()
            self._open, self._came, self._body = True, 0, 0

        def on_body(self, body: bytes) -> None:
            self._body += len(body)
            super().on_body(body)

        def on_message_complete(self) -> None:
            self._open = False
            super().on_message_complete()

        def pause_writing(self) -> None:
            super().pause_writing()
            self._stuck = self.loop.call_later(seconds, self.transport.abort)

        def resume_writing(self) -> None:
            self._cancel("_stuck")
            super().resume_writing()

        def connection_lost(self, exc: Exception | None) -> None:
            self._cancel("_alarm")
            self._cancel("_stuck")
            super().connection_lost(exc)

        def send_400_response(self, msg: str) -> None:
            body = dumps(problem(400, f"What came is no request of HTTP/1.1 that is taken: {msg}"))
            self.transport.write(
                b"HTTP/1.1 400 Bad Request\r\nconnection: close\r\ncache-control: no-store\r\n"
                b"content-type: %b\r\ncontent-length: %d\r\n\r\n%b"
                % (PROBLEM.encode(), len(body), body)
            )
            self.transport.close()

        def _is_answering(self) -> bool:
            return self.cycle is not None and not self.cycle.response_complete

        def _refuse_head(self) -> None:
            if self._is_answering():  # it comes behind a body, and an answer is on its way
                self.transport.abort()
            elif not self.transport.is_closing():
                self.send_400_response(f"its head has over {longest:,} bytes.")

        def _cancel(self, which: str) -> None:
            if (timer := getattr(self, which)) is not None:
                timer.cancel()
                setattr(self, which, None)

        def _give_up(self) -> None:
            self._alarm = None
            if not self._is_answering() and not self.transport.is_closing():
                self.transport.close()

    return Careful
