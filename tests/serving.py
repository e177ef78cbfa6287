"""Requests to servers, and servers in threads for tests that need settings of their own; one
process a worker that all tests share is the fixture `served` (servers.py).

    call(served.url, "GET", "/v1/sessions")

    with in_thread(tmp_path, tokens="writer T") as url: ...
"""

import asyncio
import contextlib
import http.client
import itertools
import json
import os
import socket
import threading
import time
from typing import NamedTuple
from urllib.parse import urlsplit

SECONDS = 60
"""How long anything may take before a test gives up."""
SIMPLEX = {"set": {"kind": "Simplex", "n": 3}, "learners": [{"name": "LyapunovDescent"}]}
"""A session that computes next to nothing."""
_numbers = itertools.count()


class Got(NamedTuple):
    """An answer."""

    status: int
    headers: dict[str, str]
    raw: bytes

    @property
    def body(self):
        return json.loads(self.raw)


def fresh(prefix="s"):
    """A name that no session of this process has."""
    return f"{prefix}-{os.getpid()}-{next(_numbers)}"


def call(url, method, path, body=None, headers=None):
    """One request; bytes are sent as they are, anything else as JSON."""
    where = urlsplit(url)
    raw = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
    connection = http.client.HTTPConnection(where.hostname, where.port, timeout=SECONDS)
    try:
        connection.request(method, path, raw, headers or {})
        answer = connection.getresponse()
        found = {name.lower(): value for name, value in answer.getheaders()}
        return Got(answer.status, found, answer.read())
    finally:
        connection.close()


def connected(url, source="127.0.0.1"):
    """A connection on which nothing is said yet."""
    where = urlsplit(url)
    return socket.create_connection((where.hostname, where.port), 30, (source, 0))


def until(holds, within=SECONDS):
    """Wait for it; how long that took."""
    began = time.monotonic()
    while not holds():
        assert time.monotonic() < began + within, "it never came"
        time.sleep(0.005)
    return time.monotonic() - began


@contextlib.contextmanager
def in_thread(data, *, tokens="", prepare=None, **options):
    """A server in a thread of this process; yields its address, once it is ready unless it has
    something to `prepare`.
    """
    import uvicorn

    from tidewolf.service.app import App, listen
    from tidewolf.service.requests import Careful, Limits, Server, Tokens, Traffic
    from tidewolf.service.sessions import Sessions
    from tidewolf.storage.session_store import SessionStore

    traffic = options.pop("traffic", None) or Traffic()
    protocol = type("Careful", (Careful,), options.pop("connections", {}))
    store = SessionStore.open(data, commit_within=0.0)
    sessions = Sessions(store, limits=Limits())
    app = App(sessions, Tokens.parse(tokens) if tokens else Tokens(), traffic=traffic, **options)
    config = uvicorn.Config(app, http=protocol, ws="none", lifespan="off", log_config=None)
    with listen("127.0.0.1", 0) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        server = Server(config, traffic, url, prepare or (lambda: None))
        thread = threading.Thread(target=lambda: asyncio.run(server.serve([listener])))
        thread.start()
        try:
            until(lambda: server.started and (prepare or traffic.ready))
            yield url
        finally:
            server.should_exit = True
            thread.join(SECONDS)
            app.close()
            sessions.close()
            store.close()
