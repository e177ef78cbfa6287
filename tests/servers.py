"""Servers of decisions in processes of their own, to be killed, and who calls them.

    with Servers() as servers:                   one process that has everything imported
        server = servers.start(folder)           forks; the port is any free one
        status, answer = Caller(server).ask("PUT", "/v1/sessions/a", {...})
        server.kill();   server.start()          on the same folder

Their disk may be slowed, and their syncs are counted, where there is a C compiler (slow_disk.c).

A caller keeps its connection. What goes wrong on the way is an OSError or an HTTPException;
`insist` asks again until there is an answer, as a controller would.
"""

import http.client
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from benchmarks.compiled import compiled, compiler

SCRIPT = Path(__file__).with_name("processes.py")
SLOW_DISK = Path(__file__).with_name("slow_disk.c")
PATIENCE = 30.0
"""seconds for whatever a server should do at once"""
LOST = (OSError, http.client.HTTPException)
"""what a caller sees of a server that is gone"""


@pytest.fixture(scope="session")
def servers(tmp_path_factory):
    """One process for all the tests of a worker."""
    with Servers(tmp_path_factory.mktemp("servers") / "syncs") as found:
        yield found


@pytest.fixture(scope="session")
def served(servers, tmp_path_factory):
    """A server without tokens, one a worker."""
    server = servers.start(tmp_path_factory.mktemp("served") / "data")
    yield server
    os.kill(server.pid, signal.SIGINT)
    assert server.wait() == 0, server.said()
    assert server.said().count("\n") == 1, server.said()


class Servers:
    """The process that forks servers; the file counts their syncs."""

    def __init__(self, count):
        self._count = count
        settings = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
        if compiler():
            count.write_bytes(bytes(8))
            settings["LD_PRELOAD"] = str(compiled(SLOW_DISK, library=True))
            settings["TIDEWOLF_SYNC_COUNT"] = str(count)
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        command = [sys.executable, "-W", "error", str(SCRIPT)]
        self._process = subprocess.Popen(command, **pipes, env=os.environ | settings)
        self._turn = threading.Lock()
        self._made = []

    @property
    def syncs(self):
        """Of all servers so far."""
        if not self._count.exists():
            pytest.skip("There is no C compiler here")
        return int.from_bytes(self._count.read_bytes(), sys.byteorder)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for server in self._made:
            server.kill()
        self._process.stdin.close()
        self._process.wait(PATIENCE)
        self._process.stdout.close()

    def ask(self, *words):
        """What the process answers to one line."""
        with self._turn:
            self._process.stdin.write(json.dumps(words) + "\n")
            self._process.stdin.flush()
            return int(self._process.stdout.readline())

    def start(self, folder, *options, ready=True, sync_ms=0.0, synced=None, user=None):
        """A server on this folder, with a disk that takes so long for a sync, and copies of what
        was synced where they are asked for; as another user where one is given.
        """
        if sync_ms or synced:
            assert self.syncs >= 0
        server = Server(self, folder, options, user)
        server.environment["TIDEWOLF_SYNC_MS"] = str(sync_ms)
        if synced is not None:
            synced.mkdir()
            server.synced, server.environment["TIDEWOLF_SYNC_KEEP"] = synced, str(synced)
        self._made.append(server)
        server.start(ready=ready)
        return server


class Server:
    """One server: it may end and start again, and has another port then."""

    def __init__(self, servers, folder, options=(), user=None):
        self._servers, self.folder, self._options, self._user = servers, folder, options, user
        self.environment = {}
        self.synced = None
        self.log = folder.with_name(f"{folder.name}.log")
        self.pid = self.port = 0

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def start(self, *, ready=True):
        """Start it and, unless told otherwise, wait until it says that it serves."""
        self._before = self.log.stat().st_size if self.log.exists() else 0
        kept = [] if "--database" in self._options else ["--data", str(self.folder)]
        arguments = ["serve", *kept, "--port", "0", *self._options]
        files = [os.devnull, str(self.log), str(self.log)]
        self.pid = self._servers.ask("fork", arguments, files, self.environment, self._user)
        if ready:
            self.wait_until_ready()

    def wait_until_ready(self):
        """Until the line with its address is there."""
        until = time.monotonic() + PATIENCE
        while not (found := re.search(r"tidewolf serves http://[\d.]+:(\d+)\n", self.said())):
            if not self.is_alive or time.monotonic() > until:
                raise AssertionError(f"The server does not start:\n{self.said()}")
            time.sleep(2e-3)
        self.port = int(found[1])

    def said(self):
        """What it printed since it was started last."""
        with open(self.log, "rb") if self.log.exists() else open(os.devnull, "rb") as file:
            file.seek(self._before)
            return file.read().decode()

    @property
    def is_alive(self):
        try:
            return Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
        except OSError:
            return False

    def kill(self):
        """At any instruction; nothing where it is over. Where copies of what was synced are kept,
        nothing else is left.
        """
        if not self.pid:
            return
        os.kill(self.pid, signal.SIGKILL)
        self.wait()
        if self.synced is not None:
            shutil.rmtree(self.folder)
            shutil.copytree(self.synced, self.folder, ignore=shutil.ignore_patterns("half.*"))

    def terminate(self):
        """Ask it to end, and wait; the answer is its exit code."""
        os.kill(self.pid, signal.SIGTERM)
        return self.wait()

    def wait(self):
        """Its exit code, once it has ended; one that does not is killed."""
        until = time.monotonic() + PATIENCE
        while self.is_alive and time.monotonic() < until:
            time.sleep(2e-3)
        if self.is_alive:
            os.kill(self.pid, signal.SIGKILL)
        pid, self.pid, self.port = self.pid, 0, 0
        return self._servers.ask("wait", pid)


class Caller:
    """Who asks a server over one connection."""

    def __init__(self, server, timeout=PATIENCE):
        self.server, self._timeout = server, timeout
        self._line = None
        self.retry_after = None
        """of the last answer"""
        self.gives_up = threading.Event()
        """once it is set, nothing is insisted on"""

    def ask(self, method, path, body=None):
        """Status and answer."""
        if self._line is None or self._line.port != self.server.port:
            self.hang_up()
            port = self.server.port
            if not port:
                raise ConnectionError("There is no server at the moment.")
            self._line = http.client.HTTPConnection("127.0.0.1", port, timeout=self._timeout)
        try:
            data = None if body is None else json.dumps(body)
            self._line.request(method, path, data, {"Content-Type": "application/json"})
            reply = self._line.getresponse()
            self.retry_after = reply.headers["Retry-After"]
            return reply.status, json.loads(reply.read() or b"null")
        except LOST:
            self.hang_up()
            raise

    def insist(self, method, path, body=None):
        """The same, again until somebody answers who is not overloaded."""
        until = time.monotonic() + PATIENCE
        while True:
            try:
                status, answer = self.ask(method, path, body)
            except LOST:
                status, answer = 503, "nobody answers"
            if status != 503:
                return status, answer
            if time.monotonic() > until or self.gives_up.is_set():
                raise AssertionError(f"{method} {path}: {answer}")
            time.sleep(2e-3)

    def hang_up(self):
        if self._line is not None:
            self._line.close()
            self._line = None

    def __del__(self):
        self.hang_up()
