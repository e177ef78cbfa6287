"""Equal weights, least connections and tidewolf on the same load, with a real HAProxy.

    python examples/haproxy/compare.py [--seconds 50]

One HAProxy balances the same requests in three ways at once, over six servers for each way. All of
it is on this machine, in Unix sockets of a temporary folder. The servers of the three ways have the
same latencies and quotas at the same time (`World`). A request above the quota of its server is an
overrun and is answered late; the quota is a bucket that holds one second of it.
"""

import argparse
import asyncio
import json
import math
import os
import random
import re
import shutil
import sys
import tempfile
import time
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path

from controller import Controller

WAYS = {"equal": "equal weights", "least": "least connections", "tidewolf": "tidewolf"}
SERVERS = {  # dollars per million requests, seconds, requests per second
    "lisbon": (2.0, 0.080, 60.0),
    "porto": (3.0, 0.065, 40.0),
    "faro": (4.0, 0.055, 30.0),
    "madrid": (6.0, 0.040, 20.0),
    "paris": (8.0, 0.030, 15.0),
    "oslo": (10.0, 0.025, 15.0),
}
RATE, ROUND, LATE = 100.0, 0.5, 0.1
"""Mean requests per second, seconds per round, and how many seconds later an overrun is answered."""
HAPROXY = shutil.which("haproxy", path=f"{os.environ.get('PATH', '')}:/usr/sbin")


class World:
    """What the servers are like now, and what the load is, over so many seconds."""

    def __init__(self, seconds):
        self.seconds, self.began = seconds, math.inf

    @property
    def now(self):
        return max(0.0, time.monotonic() - self.began)

    def terms(self, name):
        """Price, latency and quota of a server."""
        price, latency, quota = SERVERS[name]
        t = self.now / self.seconds
        turn = 2.0 * math.pi * (2.0 * t + list(SERVERS).index(name) / len(SERVERS))
        if name == "lisbon" and 0.4 < t < 0.6:  # an incident at the cheapest server
            latency *= 3.0
        return price, latency * (1.0 + 0.3 * math.sin(turn)), quota * (1.0 + 0.4 * math.cos(turn))

    def arrivals(self):
        """Times of requests: a Poisson process whose rate rises and falls by a third, once."""
        chance, t = random.Random(0), 0.0
        while True:
            wave = math.sin(2.0 * math.pi * t / self.seconds)
            t += chance.expovariate(RATE * (1.0 + wave / 3.0))
            if t > self.seconds:
                return
            yield t


class Server:
    """A server with a quota, and what it has counted."""

    def __init__(self, name, world):
        self.name, self.world = name, world
        self.requests, self.overruns, self.dollars = 0, 0, 0.0
        self._left, self._at = 1.0, 0.0

    async def __call__(self, reader, writer):
        with suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            head = await reader.readuntil(b"\r\n\r\n")
            is_check = head.startswith(b"GET / ")  # which is not counted
            await asyncio.sleep(self.world.terms(self.name)[1] if is_check else self.take())
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        writer.close()

    def take(self):
        """Count a request; returns how long it takes."""
        (price, latency, quota), now = self.world.terms(self.name), self.world.now
        self._left = min(quota, self._left + (now - self._at) * quota)
        self._at, is_over = now, self._left < 1.0
        self._left -= not is_over
        self.requests, self.overruns = self.requests + 1, self.overruns + is_over
        self.dollars += price / 1e6
        return latency + LATE * is_over


async def send(path, times, at, world):
    """One request at its time; its latency is kept."""
    await asyncio.sleep(at - world.now)
    began = time.monotonic()
    reader, writer = await asyncio.open_unix_connection(path)
    writer.write(b"GET /work HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n")
    answer = await reader.read()
    writer.close()
    times.append(time.monotonic() - began if b" 200 " in answer[:16] else math.inf)


async def publish(world, path):
    """Prices and quotas, as a provider would tell them."""
    while True:
        now = {name: world.terms(name) for name in SERVERS}
        rows = {name: {"price": price, "quota": quota} for name, (price, _, quota) in now.items()}
        path.with_suffix(".new").write_text(json.dumps(rows))
        path.with_suffix(".new").replace(path)
        await asyncio.sleep(0.1)


@asynccontextmanager
async def process(*command, **options):
    """A process that ends with the block."""
    started = await asyncio.create_subprocess_exec(*command, **options)
    try:
        yield started
    finally:
        with suppress(ProcessLookupError):
            started.terminate()
        await started.wait()


@asynccontextmanager
async def service(run):
    """The address of a `tidewolf serve`."""
    command = [sys.executable, "-m", "tidewolf", "serve", "--data", str(run), "--port", "0"]
    async with process(*command, stdout=asyncio.subprocess.PIPE) as started:
        yield re.search(r"http://\S+", (await started.stdout.readline()).decode())[0]


@asynccontextmanager
async def balancer(world, servers, url=None):
    """HAProxy in front of servers: its folder of sockets, and a controller that has begun."""
    async with AsyncExitStack() as stack:
        run = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        for way, each in servers.items():
            for server in each:
                path = run / f"{way}-{server.name}.sock"
                await stack.enter_async_context(await asyncio.start_unix_server(server, path))
        stack.callback(asyncio.create_task(publish(world, run / "terms.json")).cancel)
        config = Path(__file__).with_name("haproxy.cfg")
        options = {"env": os.environ | {"RUN": str(run)}}
        await stack.enter_async_context(process(HAPROXY, "-db", "-f", config, **options))
        url = url or await stack.enter_async_context(service(run / "data"))
        controller = Controller(run / "admin.sock", "tidewolf", run / "terms.json", url)
        while not (run / "admin.sock").exists():
            await asyncio.sleep(0.05)
        while not all(row["check_duration"] for row in controller.statistics().values()):
            await asyncio.sleep(0.05)
        await asyncio.to_thread(controller.begin)
        yield run, controller


async def measure(seconds, url=None):
    """Servers and latencies of each way, and the number of rounds."""
    world, rounds = World(seconds), 0
    servers = {way: [Server(name, world) for name in SERVERS] for way in WAYS}
    times = {way: [] for way in WAYS}
    async with asyncio.timeout(seconds + 180.0), balancer(world, servers, url) as here:
        run, controller = here
        world.began = time.monotonic()
        each = ((way, at) for at in world.arrivals() for way in WAYS)
        load = asyncio.gather(
            *(send(run / f"{way}.sock", times[way], at, world) for way, at in each)
        )
        while world.now < seconds:
            await asyncio.to_thread(controller.play, ROUND)
            rounds += 1
        await load
    return servers, times, rounds


def table(servers, times):
    """A line for each way; lower is better in every column."""
    lines = [f"{'':18}{'p50 ms':>9}{'p99 ms':>9}{'overruns':>11}{'dollars per million':>22}"]
    for way, name in WAYS.items():
        count = sum(server.requests for server in servers[way])
        ordered = sorted(times[way])
        p50, p99 = (1e3 * ordered[math.ceil(q * len(ordered)) - 1] for q in (0.5, 0.99))
        over = sum(server.overruns for server in servers[way]) / count
        dollars = 1e6 * sum(server.dollars for server in servers[way]) / count
        lines.append(f"{name:18}{p50:9.0f}{p99:9.0f}{100.0 * over:9.1f} %{dollars:22.2f}")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description="Three ways to balance, with a real HAProxy.")
    parser.add_argument("--seconds", type=float, default=50.0, help="length of the load")
    seconds = parser.parse_args().seconds
    if HAPROXY is None:
        raise SystemExit("There is no HAProxy here: apt-get install haproxy.")
    print(f"HAProxy balances six servers in three ways, for {seconds:g} s.", flush=True)
    servers, times, rounds = asyncio.run(measure(seconds))
    count = len(times["tidewolf"])
    print(f"{count:,} requests each way in {seconds:g} s, {rounds} rounds of tidewolf")
    print(table(servers, times))


if __name__ == "__main__":
    main()
