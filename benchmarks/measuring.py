"""What benchmarks share: bars, times, fresh processes and the choice of sections.

A bar is a measured number beside the number that is asked for. Every bar that is printed is kept
for the table at the end of `make bench` and for out/bench/bars.json, with `--record` for
benchmarks/results/bars.json; `python -m benchmarks --strict` exits 1 if one fails. Machines are
noisy: only ratios within one run are worth quoting.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from textwrap import fill
from time import perf_counter, process_time
from typing import Any, NamedTuple

ROOT, OUT = Path(__file__).resolve().parent.parent, Path("out/bench")
ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1"
)
_shown: list[Bar] = []


@dataclass(frozen=True)
class Bar:
    """One number and its bar: at most the bar, or with `least` at least the bar."""

    name: str
    measured: float
    bar: float
    unit: str
    least: bool = False
    note: str = ""

    @property
    def holds(self) -> bool:
        """False for NaN."""
        return bool(self.measured >= self.bar if self.least else self.measured <= self.bar)

    @property
    def words(self) -> tuple[str, str, str]:
        """What was measured, what is asked, and the verdict."""
        asked = f"{'at least' if self.least else 'at most'} {number(self.bar, self.unit)}"
        return number(self.measured, self.unit), asked, "holds" if self.holds else "FAILS"

    @property
    def line(self) -> str:
        """Such as: holds   8.4 us  at most 38 us  simplex n = 100, a recorded round (a note)."""
        note, (measured, asked, verdict) = f" ({self.note})" * bool(self.note), self.words
        text = f"{verdict} {measured:>9}  {asked:16} {self.name}{note}"
        given: Any = {"initial_indent": "  ", "break_on_hyphens": False}
        return fill(text, 80, subsequent_indent=" " * 36, **given)


def number(value: float, unit: str) -> str:
    """Three digits and the unit."""
    digits = f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
    return f"{digits}{'' if unit in ('x', '') else ' '}{unit}"


def show(bars: Iterable[Bar]) -> None:
    """Print each bar as it is measured and keep it for the summary."""
    for bar in bars:
        print(bar.line, flush=True)
        _shown.append(bar)


def summary(command: str, record: bool) -> bool:
    """Print every bar of this run, add them to a file; whether all of them hold."""
    from benchmarks.suite import RESULTS, made

    if not _shown:
        return True
    path = (RESULTS if record else OUT) / "bars.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    table = {bar["name"]: bar for bar in json.loads(path.read_text())} if path.exists() else {}
    table |= {bar.name: asdict(bar) | made(command) for bar in _shown}
    path.write_text(json.dumps(list(table.values()), indent=1) + "\n")
    held = sum(bar.holds for bar in _shown)
    print(f"Bars: {held} of {len(_shown)} hold", *(bar.line for bar in _shown), sep="\n")
    return held == len(_shown)


def median_us(work: Callable[..., object], given: Iterable[Sequence[Any]]) -> float:
    """Median processor microseconds of a call over its arguments; the first call does not count."""
    times = []
    for arguments in given:
        start = process_time()
        work(*arguments)
        times.append(process_time() - start)
    return 1e6 * statistics.median(times[1:] or times)


def least_us(work: Callable[[], object], repeats: int = 3) -> float:
    """The least processor microseconds of several calls after a first."""
    work()
    times = []
    for _ in range(repeats):
        start = process_time()
        work()
        times.append(process_time() - start)
    return 1e6 * min(times)


def fresh(function: str, *words: object, environment: Mapping[str, str] | None = None) -> Any:
    """What `module:name`, called in a fresh process on one thread with these words as sys.argv[1:],
    prints as its last line, read as JSON.
    """
    module, _, name = function.partition(":")
    paths = os.pathsep.join((str(ROOT / "src"), str(ROOT)))
    script = f"from {module} import {name}; {name}()"
    settings = os.environ | ONE_THREAD | {"PYTHONPATH": paths} | dict(environment or {})
    given: Any = {"cwd": ROOT, "capture_output": True, "text": True, "check": False}
    command = [sys.executable, "-c", script, *map(str, words)]
    done = subprocess.run(command, env=settings, **given)
    if done.returncode:
        raise RuntimeError(f"{function} failed in a process of its own:\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def peak() -> float:
    """The most memory that this process has held, in MB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(float(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM"))


class Limits(NamedTuple):
    """How much of everything is played; None: all."""

    rounds: int | None = None
    streams: tuple[str, ...] | None = None
    seeds: tuple[int, ...] | None = None

    def named(self, streams: Sequence[str]) -> list[str]:
        return [name for name in streams if self.streams is None or name in self.streams]

    def seeded(self, seeds: Iterable[int]) -> list[int]:
        return [seed for seed in seeds if self.seeds is None or seed in self.seeds]


def play_sections(
    name: str, sections: Mapping[str, Callable[[Limits], Iterable[Bar]]], words: Sequence[str]
) -> None:
    """Measure the sections named on the command line, or all of them, and show their bars."""
    parser = argparse.ArgumentParser(f"python -m benchmarks {name}")
    parser.add_argument("sections", nargs="*", metavar="section", help=", ".join(sections))
    parser.add_argument("--rounds", type=int, help="at most this many of each stream")
    parser.add_argument("--streams", type=lambda s: tuple(s.split(",")), help="routing,geant")
    parser.add_argument("--seeds", type=lambda s: tuple(map(int, s.split(","))), help="0,1")
    given = parser.parse_args(words)
    if unknown := set(given.sections) - set(sections):
        parser.error(f"no section is called {min(unknown)!r}; there are {', '.join(sections)}.")
    for section in given.sections or sections:
        begun = perf_counter()
        print(f"{name}, {section}", flush=True)
        show(sections[section](Limits(given.rounds, given.streams, given.seeds)))
        print(f"  ({(perf_counter() - begun) / 60:.1f} minutes)", flush=True)
