"""A server of decisions in a process of its own, as users start it, and load on it.

    with Server(folder, "--commit-within", "0.01") as server:
        server.put(200, n=100)
        found = server.load(mode="open", sessions=200, n=100, rate=500, seconds=30)

`load` runs benchmarks/load.c and gives what it prints. Memory is what the server holds alone; its
processor time is that of all its threads. With `slow_disk` every sync lasts and is counted.
"""

import http.client
import json
import os
import signal
import struct
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import perf_counter
from typing import Any, Self

from benchmarks.compiled import ROOT, compiled
from benchmarks.measuring import ONE_THREAD

LOAD, SLOW_DISK = ROOT / "benchmarks" / "load.c", ROOT / "tests" / "slow_disk.c"
CALLERS = 16
"""who put sessions, at once"""


class Server:
    """`tidewolf serve` on a folder, on any free port."""

    def __init__(self, folder: Path, *options: str, slow_disk: float | None = None) -> None:
        folder.parent.mkdir(parents=True, exist_ok=True)
        self._count = folder.with_name(f"{folder.name}.syncs")
        self._log = folder.with_name(f"{folder.name}.log").open("w+")
        settings = os.environ | ONE_THREAD
        settings["PYTHONPATH"] = f"{ROOT / 'src'}{os.pathsep}{ROOT}"
        if slow_disk is not None:
            self._count.write_bytes(bytes(8))
            settings["LD_PRELOAD"] = str(compiled(SLOW_DISK, library=True))
            settings["TIDEWOLF_SYNC_MS"] = str(1e3 * slow_disk)
            settings["TIDEWOLF_SYNC_COUNT"] = str(self._count)
        command = [sys.executable, "-m", "tidewolf", "serve", "--data", str(folder), "--port", "0"]
        begun = perf_counter()
        pipes: Any = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": self._log}
        self.process = subprocess.Popen([*command, *options], env=settings, text=True, **pipes)
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        self.ready = perf_counter() - begun
        """seconds until it said that it serves"""
        if not line.startswith("tidewolf serves http://"):
            self._log.seek(0)
            raise RuntimeError(f"The server does not start: {line}{self._log.read()}")
        self.port = int(line.rpartition(":")[2])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def end(self) -> int:
        """Ask it to end; its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            code = self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            code = self.process.wait()
        if self.process.stdout is not None:
            self.process.stdout.close()
        self._log.close()
        return code

    @property
    def memory(self) -> float:
        """MB."""
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        return next(float(line.split()[1]) / 1e3 for line in lines if line.startswith("RssAnon"))

    @property
    def cpu(self) -> float:
        """Processor seconds so far."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    @property
    def syncs(self) -> int:
        """So far, where the disk is slowed."""
        return int(struct.unpack("=Q", self._count.read_bytes())[0])

    def put(self, count: int, n: int, learner: str = "LyapunovDescent", prefix: str = "s") -> None:
        """Make sessions PREFIX0, PREFIX1, ... of points of n entries."""
        body = json.dumps({"set": {"kind": "Simplex", "n": n}, "learners": [{"name": learner}]})

        def some(first: int) -> None:
            line = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
            for i in range(first, count, CALLERS):
                headers = {"Content-Type": "application/json"}
                line.request("PUT", f"/v1/sessions/{prefix}{i}", body, headers)
                answer = line.getresponse()
                said = answer.read()
                if answer.status not in (200, 201):
                    raise RuntimeError(f"A session is refused: {answer.status} {said.decode()}")
            line.close()

        with ThreadPoolExecutor(CALLERS) as callers:
            list(callers.map(some, range(CALLERS)))

    def load(self, **given: Any) -> dict[str, Any]:
        """What the client in C prints, told these things."""
        words = [f"{name}={value}" for name, value in ({"port": self.port} | given).items()]
        done = subprocess.run(
            [compiled(LOAD), *words], capture_output=True, text=True, check=True
        ).stdout
        return dict(json.loads(done))


def refusals(found: dict[str, Any]) -> int:
    """Requests of a load that were not answered with 200."""
    return int(found["sent"]) + int(found["unsent"]) - int(found["status"].get("200", 0))
