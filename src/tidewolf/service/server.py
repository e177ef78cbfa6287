"""The server process: open the store, print one line when ready, drain on SIGTERM or SIGINT.

    bind  ->  open  ->  answer /healthz  ->  compile what the sessions need
    ->  "tidewolf serves http://127.0.0.1:8000", and /readyz says yes  ->  SIGTERM or SIGINT
    ->  take nothing more  ->  finish what is under way  ->  keep it  ->  close  ->  exit code 0

A second signal ends it at once; what was acknowledged is on disk even then.
"""

from __future__ import annotations

import gc
import ipaddress
import os
import resource
import socket
import sys
import threading
import warnings
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from tidewolf.core import arguments
from tidewolf.core.errors import InvalidInput, NotCached, OtherVersions, require
from tidewolf.storage.session_store import SessionStore

if TYPE_CHECKING:
    from tidewolf.service.app import App

# How long requests under way may take once the server is stopping. Unit: seconds.
DRAIN = 8
# How long threads have after that. Unit: seconds.
GRACE = 1.0
# How long a connection may be idle; longer than clients keep theirs. Unit: seconds.
KEEP_ALIVE = 75
# Files that are no connections.
SPARE = 200


def serve(
    where: str | Path,
    *,
    host: str,
    port: int,
    token_file: Path | None,
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
    for package in ("fastapi", "orjson", "prometheus_client", "uvicorn"):
        arguments.import_extra(package, "Serving", "serve")
    from tidewolf.service import requests
    from tidewolf.service.app import App
    from tidewolf.service.sessions import Sessions

    tokens = requests.Tokens() if token_file is None else requests.Tokens.read(token_file)
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
            requests.Quotas(rate, observation_rate, token_sessions),
            requests.Traffic(max_waiting),
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
    import uvicorn

    from tidewolf.service import models, requests

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
    _prepare_process()
    warm = partial(models.warm_store, app.sessions.store)
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


def _prepare_process() -> None:
    """Switch between threads often; collect garbage in cycles seldom, and never among what was
    imported, because a full collection stops all requests for a tenth of a second, and almost
    nothing here is in a cycle; ignore warnings about what callers send, each text of which would
    stay in memory, and show those about the machine once.
    """
    # How long a thread computes before another one may. Unit: seconds.
    sys.setswitchinterval(0.001)
    gc.collect()
    gc.freeze()
    # Python's thresholds for looking for garbage in cycles.
    gc.set_threshold(*(20_000, 20, 100))
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
    require(
        has_tokens or insecure or is_loopback,
        InvalidInput,
        f"At {host} other machines could use the service without a token: give --token-file, or "
        "--insecure, or stay at 127.0.0.1.",
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
    require(
        0 <= port <= 65535, InvalidInput, f"A port is a whole number from 0 to 65535, not {port}."
    )
    try:
        found = socket.getaddrinfo(host, port, 0, socket.SOCK_STREAM, 0, socket.AI_PASSIVE)
        return socket.create_server(found[0][-1], family=found[0][0])
    except OSError as error:
        raise InvalidInput(
            f"Cannot listen at {host}, port {port}: {error.strerror}. --port 0 takes any free port."
        ) from None


def _address(host: str, listener: socket.socket) -> str:
    host = socket.gethostname() if host in ("", "0.0.0.0", "::") else host
    return f"http://{f'[{host}]' if ':' in host else host}:{listener.getsockname()[1]}"
