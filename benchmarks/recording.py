"""What recording costs: of a round, and in memory.

    time      (tw.run - rounds that nobody records)/tw.run at n = 100, in one process, in turn:
              the same kernel, as many rounds at a time, told to record nothing
    memory    a million rounds at n = 100: what the process holds at most beyond what it held before
              the run and beyond the run's own columns (losses, violations, distances, ...), which
              have a number a round each; decisions, 800 MB, are thinned by `every=`

The stream is rows of one long array that overlap, so that it takes 16 MB in place of 1.6 GB.
"""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np

from benchmarks.bars import Bar, show
from benchmarks.commits import drive

SHARE = 15.0
"""per cent of a recorded round"""
ROUNDS, N, EVERY = 1_000_000, 100, 1000
BEYOND = 64.0
"""MB: scratch, tables, the allocator's own"""
REPEATS = 7
AT_ONCE = 1024
"""rounds in the kernel, where nothing is recorded"""
TIME = "from benchmarks.recording import time_of; time_of()"
MEMORY = "from benchmarks.recording import memory_of; memory_of()"


def time_of() -> None:
    """In a process of its own: microseconds a round, recorded and not, as JSON."""
    import tidewolf as tw
    from benchmarks.cases import bare, simplex

    K, stream = simplex(N, 20_000)
    learner = tw.LyapunovDescent(K)
    ways: dict[str, Callable[[], object]] = {
        "run": lambda: tw.run(learner, stream),
        "unrecorded": lambda: unrecorded(learner, stream),
        "play": lambda: bare(learner, stream[:2000]),
    }
    found: dict[str, float] = dict.fromkeys(ways, np.inf)
    for _ in range(REPEATS):
        for name, way in ways.items():
            start = process_time()
            way()
            rounds = 2000 if name == "play" else len(stream)
            found[name] = min(found[name], 1e6 * (process_time() - start) / rounds)
    print(json.dumps(found))


def unrecorded(learner: Any, stream: Any) -> None:
    """All rounds in the learner's kernel; only values are written, since it has to put them
    somewhere.
    """
    from tidewolf.loop import compiled_rounds
    from tidewolf.methods.compiled_rounds import KernelState

    functions, kernel = compiled_rounds(learner, stream), learner.compiled
    assert functions is not None
    state, t = KernelState.of(learner.start()), 0
    kernel.play(state, functions.at(0), 0, 1)
    (scratch,) = kernel._spare
    kept, scratch.columns = scratch.columns, np.zeros((AT_ONCE, scratch.columns.shape[1]))
    while t < len(stream):
        given = functions.at(t)
        k = min(AT_ONCE, functions.stop - t)
        found = kernel.play(state, given, t - functions.start, k)
        assert found.done, "a round that the kernel leaves to others"
        state, t = found.after, t + found.done
    scratch.columns = kept


def overlapping(rounds: int) -> Any:
    """A stream whose rows share their numbers with their neighbours."""
    import tidewolf as tw

    rng = np.random.default_rng(0)
    rows = [np.lib.stride_tricks.sliding_window_view(rng.random(rounds + N), N)[:rounds]] * 2
    return tw.Stream(tw.functions.Linear(rows[0]), tw.functions.Capacity(rows[1]))


class Peak(threading.Thread):
    """The most anonymous memory that this process has held while it lasted, in MB."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.most, self._over = held(), threading.Event()

    def run(self) -> None:
        while not self._over.wait(0.02):
            self.most = max(self.most, held())

    def end(self) -> float:
        self._over.set()
        self.join()
        return max(self.most, held())


def held() -> float:
    """MB that are this process's alone; files that are mapped do not count."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(float(line.split()[1]) / 1e3 for line in lines if line.startswith("RssAnon"))


def memory_of() -> None:
    """In a process of its own: MB that a run of so many rounds took, and those of its columns."""
    import tidewolf as tw

    rounds, every = int(sys.argv[1]), int(sys.argv[2])
    stream, learner = overlapping(rounds), tw.LyapunovDescent(tw.sets.Simplex(N))
    tw.run(learner, stream[:1000])
    before, peak = held(), Peak()
    peak.start()
    run = tw.run(learner, stream, decisions=every > 0, every=max(1, every))
    most = peak.end() - before
    columns = sum(one.nbytes for one in vars(run).values() if isinstance(one, np.ndarray)) / 1e6
    columns += run.decisions.points.nbytes / 1e6 if run.decisions is not None else 0.0
    print(json.dumps({"most": most, "columns": columns, "us": 1e6 * run.seconds / rounds}))


def bars(rounds: int = ROUNDS) -> Iterator[Bar]:
    """Both."""
    us = drive(TIME)
    share = 100.0 * (us["run"] - us["unrecorded"]) / us["run"]
    note = f"{us['run']:.2f} us a round, {us['unrecorded']:.2f} without, play {us['play']:.1f}"
    yield Bar(f"recording at n = {N}, share of a round", share, SHARE, "%", note=note)
    for every in (0, EVERY):
        found = drive(MEMORY, None, rounds, every)
        what = f", decisions of each {every:,}th" if every else ""
        note = f"{found['most']:.0f} MB at most, columns {found['columns']:.0f} MB"
        name = f"{rounds:,} rounds at n = {N}{what}: memory beyond columns"
        yield Bar(name, found["most"] - found["columns"], BEYOND, "MB", note=note)


def report() -> None:
    """Print the bars."""
    print("Recording")
    show(bars())
