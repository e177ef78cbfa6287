"""`tidewolf live`, end to end: real processes, real files, rows in and decisions out."""

from __future__ import annotations

import json
import os
import pty
import random
import select
import signal
import subprocess
import sys
import time
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tidewolf as tw
from tidewolf.cli import main
from tidewolf.core.errors import CheckpointError, InvalidInput, OtherSettings
from tidewolf.live import Desk, Follower, parse
from tidewolf.live.clock import Time, expected, time_of
from tidewolf.live.pipes import pieces
from tidewolf.live.reader import RoundReader

LINKS = [
    ("SEA", "DEN"),
    ("SEA", "SFO"),
    ("SFO", "DEN"),
    ("SFO", "HOU"),
    ("DEN", "NYC"),
    ("HOU", "NYC"),
    ("DEN", "HOU"),
]
NAMES = [f"{tail} > {head}" for tail, head in LINKS]
NETWORK = """
[set]
kind = "FlowPolytope"
graph = "links.csv"
source = "SEA"
target = "NYC"
[stream]
costs = "costs.csv"
capacities = "capacities.csv"
[[learners]]
name = "Ensemble"
season = "1d"
advice = ["last"]
"""
ROUNDS = 30
RNG = np.random.default_rng(7)
T = np.arange(ROUNDS)[:, None]
COSTS = 2.0 + np.sin(2.0 * np.pi * (T / 24 + np.linspace(0.0, 1.0, 7))) + 0.1 * RNG.random((ROUNDS, 7))
CAPACITIES = 0.6 + 0.2 * np.cos(2.0 * np.pi * T / 24) + 0.1 * RNG.random((ROUNDS, 7))
TIMES = [(datetime(2026, 3, 1) + timedelta(hours=t)).isoformat() for t in range(ROUNDS)]


def row(t: int, **more: Any) -> dict[str, Any]:
    """The row of a round, from 0."""
    return {
        "time": TIMES[t],
        "costs": dict(zip(NAMES, COSTS[t].tolist(), strict=True)),
        "capacities": CAPACITIES[t].tolist(),
        **more,
    }


def text(*rows: dict[str, Any]) -> str:
    return "".join(json.dumps(one) + "\n" for one in rows)


def table_line(t: int, values: Any) -> str:
    return f"{TIMES[t]},{','.join(map(repr, values[t].tolist()))}\n"


@pytest.fixture
def network(tmp_path: Path) -> Path:
    """The file of an experiment, with tables of one row."""
    (tmp_path / "links.csv").write_text("tail,head\n" + "".join(f"{a},{b}\n" for a, b in LINKS))
    header = f"time,{','.join(NAMES)}\n"
    (tmp_path / "costs.csv").write_text(header + table_line(0, COSTS))
    (tmp_path / "capacities.csv").write_text(header + table_line(0, CAPACITIES))
    file = tmp_path / "network.toml"
    file.write_text(NETWORK)
    return file


def desk(network: Path, database: str = "routing.db", **more: Any) -> Desk:
    reader = RoundReader(tw.experiments.load(network))
    return Desk(reader, reader.learner(), network.with_name(database), **more)


def answers(network: Path, *rows: dict[str, Any], database: str = "whole.db") -> list[str]:
    """What is answered, within this process: the coming decision first."""
    with desk(network, database) as one:
        return [one.coming_text(), *(one.take_text(parse(json.dumps(each))) for each in rows)]


class Live:
    """The command, running."""

    def __init__(self, network: Path, *more: str, database: str = "routing.db") -> None:
        command = [sys.executable, "-m", "tidewolf", "live", str(network)]
        self.process = subprocess.Popen(
            [*command, "--db", str(network.with_name(database)), *more],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=network.parent,
        )
        self._rest = b""

    def send(self, data: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(data.encode())
        self.process.stdin.flush()

    def line(self, seconds: float = 60.0) -> str | None:
        """The next line of stdout; None where none comes in time, or it ended."""
        assert self.process.stdout is not None
        end = time.monotonic() + seconds
        while b"\n" not in self._rest:
            ready, _, _ = select.select([self.process.stdout], [], [], end - time.monotonic())
            data = os.read(self.process.stdout.fileno(), 1 << 16) if ready else b""
            if not data:
                return None
            self._rest += data
        line, _, self._rest = self._rest.partition(b"\n")
        return line.decode()

    def end(self, number: int | None = None) -> tuple[int, str]:
        """Its exit code and what it said on stderr, after a signal or the end of its rows."""
        if number is not None:
            self.process.send_signal(number)
        _, said = self.process.communicate(timeout=60)
        return self.process.returncode, said.decode()


def test_rows_by_pipe_halves_doubles_conflicts_nonsense_and_a_kill(network: Path) -> None:
    """One life: each line is answered by one line, and nothing but rows changes anything."""
    expected = answers(network, *map(row, range(8)))
    live = Live(network)
    assert live.line() == expected[0]
    live.send(text(row(0)))
    assert live.line() == expected[1]
    whole = text(row(1))
    live.send(whole[:40])
    assert live.line(0.4) is None  # half a line waits
    live.send(whole[40:])
    assert live.line() == expected[2]
    live.send(text(row(1), row(0)))
    assert [live.line(), live.line()] == [expected[2], expected[1]]  # the same row twice
    live.send(text({**row(1), "costs": [9.0] * 7}) + "{nonsense\n\n" + text({"cost": 1.0}))
    refused = [json.loads(live.line() or "") for _ in range(3)]
    assert [one["line"] for one in refused] == [5, 6, 8]
    assert refused[0]["error"] == (
        "The row of 2026-03-01T01:00:00 was taken already, with other values, which stand: nothing "
        "was learned."
    )
    assert "is no JSON" in refused[1]["error"]
    assert "the nearest are 'costs'" in refused[2]["error"]
    live.send(text(row(2)))
    assert live.line() == expected[3]
    live.process.kill()
    _, said = live.end()
    assert said.splitlines()[0].startswith("Line 5: The row of")

    again = Live(network)
    assert again.line() == expected[3]
    again.send(text(row(1), row(2), row(3)))
    assert [again.line(), again.line(), again.line()] == expected[2:5]
    code, said = again.end(signal.SIGTERM)
    assert (code, said) == (0, "Stopped after 4 rows; the same command goes on.\n")

    last = Live(network)
    last.send(text(*map(row, range(4, 8))) + '{"costs": [1')
    last.process.stdin.close()  # type: ignore[union-attr]
    last.process.stdin = None
    assert [last.line() for _ in range(5)] == expected[4:9]
    assert json.loads(last.line() or "")["error"] == "The last line ends in the middle: send it whole."
    assert last.end()[0] == 0


KILLED = """
import os, signal, sys
sys.argv[1:1] = ["live"]
import random, threading, time
from tidewolf.cli import main
wait = float(os.environ["LATER"])
first = sys.stdout.write
def counted(text, left=[int(os.environ["LINES"])]):
    first(text)
    left[0] -= 1
    if left[0] == 0:
        sys.stdout.flush()
        timer = threading.Timer(wait, os.kill, (os.getpid(), signal.SIGKILL))
        timer.daemon = True
        timer.start()
sys.stdout.write = counted
sys.exit(main())
"""


def killed_at(network: Path, rows: str, lines: int, later: float) -> list[str]:
    """What is answered until it is killed, so long after so many lines."""
    done = subprocess.run(
        [sys.executable, "-c", KILLED, str(network), "--db", str(network.with_name("killed.db"))],
        input=rows.encode(),
        capture_output=True,
        timeout=60,
        env={**os.environ, "LINES": str(lines), "LATER": str(later)},
    )
    return [line for line in done.stdout.decode().split("\n")[:-1]]


@pytest.mark.parametrize(
    ("kills", "seed"), [(4, 0), pytest.param(40, 1, marks=pytest.mark.soak)]
)
def test_killed_at_any_moment_it_answers_as_if_it_never_was(
    network: Path, kills: int, seed: int
) -> None:
    """Whoever sends again what was not answered gets the very lines of a life without a kill."""
    expected, rng = answers(network, *map(row, range(ROUNDS))), random.Random(seed)
    answered = 0
    for _ in range(kills):
        resent = text(*map(row, range(max(0, answered - 2), ROUNDS)))
        before = max(0, answered - 2)
        lines = killed_at(network, resent, rng.randrange(1, 6), 0.01 * rng.random())
        kept = expected.index(lines[0])
        assert kept in (answered, answered + 1)  # all that was answered, and at most one more
        assert lines[1:] == expected[before + 1 : before + len(lines)]
        answered = max(answered, kept, before + len(lines) - 1)
        answered = 0 if answered >= ROUNDS - 2 else answered
        if answered == 0:
            for path in network.parent.glob("killed.db*"):
                path.unlink()
    with desk(network, "killed.db") as one:
        for t in range(ROUNDS):
            assert one.take_text(parse(text(row(t)))) == expected[t + 1]
