"""The service under load: what it answers, how soon, and what its disk and memory pay for it.

    load        200 sessions at n = 100, 500 requests a second for 30 s, half decisions, half
                observations, sent when they are due (benchmarks/load.c): none refused, the slowest
                of a hundred under 30 ms, memory flat
    syncs       16 callers that observe as fast as they are answered, on a disk that takes 5 ms a
                sync: with --commit-within 0.01 one sync for 8 observations at most, 0.6 times the
                processor time and, where two cores are free, 8 times the rate of --commit-within 0
    observe     what an observation takes of the server's processor, from 16 callers that observe as
                fast as they are answered, at n = 10 and n = 100: 0.5 ms at most; and of a process
                with a session in a file, 130 us; all on a disk in memory
    start       1,000 sessions: ready within a second beyond imports
    overload    10 times what it can do: refusals say when to come again, memory is bounded, and it
                serves as before at once when it is over

All of it on loopback, the client on the same machine: on one with two cores the client's share,
which is printed, is missing in the server's.
"""

import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter, process_time
from typing import Any

import tidewolf as tw
from benchmarks.cases import simplex
from benchmarks.measuring import Bar, Limits, play_sections
from benchmarks.serving import Server, refusals

SESSIONS, N, RATE, SECONDS = 200, 100, 500, 30
P99, GROWTH = 30.0, 16.0
"""ms, and MB while it lasts"""
CALLERS, SYNC, WITHIN = 16, 0.005, 0.01
PER_SYNC, FASTER, CHEAPER = 8.0, 8.0, 0.6
EACH_MS, DURABLE_US, IN_MEMORY = 0.5, 130.0, Path("/dev/shm")
MANY, BEYOND_IMPORTS = 1000, 1.0
TIMES, OVERLOAD_GROWTH = 10, 128.0
IMPORTS = "import tidewolf.cli.app, tidewolf.service.app"


class Peak(threading.Thread):
    """The most memory that a server held while it lasted, in MB."""

    def __init__(self, server: Server, after: float = 0.0) -> None:
        super().__init__(daemon=True)
        self._server, self._over, self._after = server, threading.Event(), after
        self.before = self.most = server.memory
        self.start()

    def run(self) -> None:
        if not self._over.wait(self._after):
            self.before = self.most = self._server.memory
        while not self._over.wait(0.1):
            self.most = max(self.most, self._server.memory)

    def end(self) -> float:
        self._over.set()
        self.join()
        return self.most


def load(learner: str, seconds: float = SECONDS) -> Iterator[Bar]:
    """The bars of steady load; sessions are opened, and their kernels loaded, before it counts.
    Memory counts from half time on: until then sessions get to know their vertices.
    """
    with TemporaryDirectory() as place, Server(Path(place) / "data") as server:
        server.put(SESSIONS, N, learner)
        asked = {"sessions": SESSIONS, "n": N, "rate": RATE, "connections": 64}
        slowly = asked | {"rate": RATE / 5}  # every session's first round, and no more
        opening = server.load(seconds=10 * SESSIONS / RATE, grace=30, **slowly)
        spent, peak = server.cpu, Peak(server, seconds / 2)
        found = server.load(seconds=seconds, first=2, **asked)
        most, spent = peak.end(), server.cpu - spent
        _say(f"{learner}, sessions being opened", opening)
        _say(learner, found)
        each = 1e3 * spent / max(1, found["sent"])
        print(f"    memory {peak.before:.0f} MB at half time, {most:.0f} at most after it")
        print(f"    processor: {each:.2f} ms a request, of the client {found['cpu']:.2f} s in all")
        name = f"service, {learner}, {RATE} requests/s:"
        yield Bar(f"{name} refused or lost", refusals(found), 0, "")
        yield Bar(f"{name} p99", found["all"]["p99"], P99, "ms")
        yield Bar(f"{name} memory grows in the second half", most - peak.before, GROWTH, "MB")


def syncs(seconds: float = 4.0, turns: int = 2) -> Iterator[Bar]:
    """The bars of commits in groups: both servers run, and are asked in turn."""
    with TemporaryDirectory() as place:
        servers = {
            within: Server(
                Path(place) / str(within), "--commit-within", str(within), slow_disk=SYNC
            )
            for within in (0, WITHIN)
        }
        try:
            yield from _syncs(servers, seconds, turns)
        finally:
            for server in servers.values():
                server.end()


def _syncs(servers: dict[float, Server], seconds: float, turns: int) -> Iterator[Bar]:
    answered, counted = dict.fromkeys(servers, 0), dict.fromkeys(servers, 0)
    used = dict.fromkeys(servers, 0.0)
    for server in servers.values():
        for turn in range(turns + 1):
            server.put(CALLERS, 10, prefix=f"t{turn}.")
    for turn in range(turns + 1):
        for within, server in servers.items():
            before, spent = server.syncs, server.cpu
            asked = {"n": 10, "sessions": CALLERS, "connections": CALLERS, "prefix": f"t{turn}."}
            lasting = seconds if turn else 1
            found = server.load(mode="closed", decisions=0, seconds=lasting, **asked)
            if not turn:
                continue
            observations = found["observations"]["answered"]
            answered[within] += observations
            counted[within] += server.syncs - before
            used[within] += server.cpu - spent
            _say(f"commit within {within} s", found)
            print(f"    {1e3 * (server.cpu - spent) / observations:.2f} ms of processor each")
    per_sync = answered[WITHIN] / counted[WITHIN]
    name = f"service, {CALLERS} callers, {1e3 * SYNC:g} ms a sync:"
    yield Bar(f"{name} observations for a sync", per_sync, PER_SYNC, "", least=True)
    faster = answered[WITHIN] / answered[0]
    yield Bar(
        f"{name} processor against one sync each", used[WITHIN] / used[0] / faster, CHEAPER, "x"
    )
    yield Bar(f"{name} rate against one sync each", faster, FASTER, "x", least=True)


def observe(seconds: float = 3.0, turns: int = 4) -> Iterator[Bar]:
    """The bars of one observation: the mean of a turn, and the least of all turns but the first."""
    for n in (10, 100):
        over_http, in_file = [], []
        with TemporaryDirectory(dir=IN_MEMORY) as place:
            with Server(Path(place) / "data") as server:
                server.put(CALLERS, n)
                asked = {"n": n, "sessions": CALLERS, "connections": CALLERS, "decisions": 0}
                for _ in range(turns):
                    spent = server.cpu
                    found = server.load(mode="closed", seconds=seconds, **asked)
                    over_http.append((server.cpu - spent) / found["observations"]["answered"])
            K, stream = simplex(n, 500)
            with tw.Session.open(Path(place) / "session.db", tw.LyapunovDescent(K)) as session:
                for _ in range(turns):
                    begun = process_time()
                    for costs, limits in zip(stream.losses.C, stream.constraints.c, strict=True):
                        session.play()
                        session.observe(costs=costs, capacities=limits)
                    in_file.append((process_time() - begun) / len(stream))
        name = f"n = {n}, processor of an observation"
        yield Bar(f"service, {name}", 1e3 * min(over_http[1:]), EACH_MS, "ms")
        yield Bar(f"a session in a file, {name}", 1e6 * min(in_file[1:]), DURABLE_US, "us")


def start() -> Iterator[Bar]:
    """The bar of starting where there are many sessions."""
    with TemporaryDirectory() as place:
        folder = Path(place) / "data"
        with Server(folder) as server:
            server.put(MANY, N, "Ensemble")
        ready = []
        for _ in range(3):
            with Server(folder) as server:
                ready.append(server.ready)
        imports = min(_seconds_of(IMPORTS) for _ in range(3))
        print(f"    ready after {min(ready):.2f} s, of which imports take {imports:.2f} s")
        name = f"service, {MANY:,} sessions: ready beyond imports"
        yield Bar(name, min(ready) - imports, BEYOND_IMPORTS, "s")


def _seconds_of(script: str) -> float:
    begun = perf_counter()
    subprocess.run([sys.executable, "-c", script], check=True)
    return perf_counter() - begun


def overload(seconds: float = 10.0) -> Iterator[Bar]:
    """The bars of far too many requests, and of what comes after."""
    with TemporaryDirectory() as place, Server(Path(place) / "data") as server:
        for prefix in ("flood", "after"):
            server.put(SESSIONS, N, prefix=prefix)
        calm: dict[str, Any] = {"sessions": SESSIONS, "n": N, "prefix": "after", "rate": RATE / 2}
        server.load(seconds=4 * SESSIONS / RATE, grace=30, **calm)
        able = _able(server)
        before, peak = server.memory, Peak(server)
        flood = calm | {"prefix": "flood", "rate": TIMES * able, "connections": 1000}
        found = server.load(seconds=seconds, **flood)
        most = peak.end()
        after = server.load(seconds=4, first=2, **calm)
        _say(f"{TIMES} times {able:.0f} requests/s", found)
        _say("after it", after)
        print(f"    memory {before:.0f} MB before, {most:.0f} at most, {server.memory:.0f} after")
        refused = int(found["status"].get("503", 0))
        other = sum(found["status"].values()) - int(found["status"].get("200", 0)) - refused
        name = f"service, {TIMES} times too many requests:"
        yield Bar(f"{name} answers that are neither 200 nor 503", other, 0, "")
        yield Bar(f"{name} refusals without Retry-After", refused - found["retry_after"], 0, "")
        yield Bar(f"{name} connections lost", found["errors"], 0, "")
        yield Bar(f"{name} memory grows", most - before, OVERLOAD_GROWTH, "MB")
        yield Bar(f"{name} refused at once after it", refusals(after), 0, "")
        yield Bar(f"{name} p99 at once after it", after["all"]["p99"], P99, "ms")


def _able(server: Server) -> float:
    """Requests a second that it answers callers who wait."""
    found = {}
    for prefix in ("first", "second"):
        server.put(CALLERS, N, prefix=prefix)
        found = server.load(
            mode="closed", prefix=prefix, sessions=CALLERS, connections=CALLERS, n=N, seconds=2
        )
    return float(found["rate"])


def _say(what: str, found: dict[str, Any]) -> None:
    every = {"p50": 0.0, "p99": 0.0, "max": 0.0} | found["all"]
    print(f"    {what}: {found['rate']:.0f} answers/s, {found['status']}, ", end="")
    print("p50 {p50:.1f} ms, p99 {p99:.1f} ms, at most {max:.1f} ms".format(**every), flush=True)


SECTIONS: dict[str, Callable[[Limits], Iterator[Bar]]] = {
    "load": lambda _: load("LyapunovDescent"),
    "ensemble": lambda _: load("Ensemble"),
    "syncs": lambda _: syncs(),
    "observe": lambda _: observe(),
    "start": lambda _: start(),
    "overload": lambda _: overload(),
}


def report(words: Sequence[str] = ()) -> None:
    play_sections("service", SECTIONS, words)
