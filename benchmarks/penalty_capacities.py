"""The step of drift-plus-penalty for capacities: time, certified gap in units of the accuracy asked
for, and the stage that answered.

Unit flows of layered graphs and a box, 100 to 10,000 entries, blocks of 32 to 316 rounds, four
kinds of block:

    loose       nothing binds
    settled     y is the answer of the block before, capacities jitter: what a learner meets most of
                the time
    saturated   penalties too small to keep every capacity
    outage      capacities near zero on a quarter of the entries, from a point that uses them
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np

import tidewolf as tw
from benchmarks.graphs import layered
from tidewolf.functions import Capacity
from tidewolf.methods.steps.penalty import PenaltyTask
from tidewolf.methods.steps.penalty.capacities import Search
from tidewolf.methods.steps.penalty.proximal_bundle import proximal_bundle

GRAPHS = {100: (4, 7, 4), 1_000: (10, 20, 5), 10_000: (25, 40, 10)}
BLOCKS = (32, 100, 316)
DEMANDED = 20.0
KINDS = ("loose", "settled", "saturated", "outage")
COMPARED = ("settled", "saturated")
ACCURACY = 1e-9
"""In units of delta sum_t g_t^+(y) + |d| R."""


def the_set(name: str, n: int) -> Any:
    return (
        tw.sets.FlowPolytope.from_edges(layered(*GRAPHS[n]), source="s", target="t")
        if name == "flow"
        else tw.sets.Box([0.0] * n, [1.0] * n)
    )


def block(K: Any, rounds: int, kind: str, seed: int = 0) -> PenaltyTask:
    """A block with practical weights for a horizon of rounds^2, G_f = G_g = 1."""
    rng = np.random.default_rng(seed)
    n, c, R = len(K.center), np.asarray(K.center, dtype=float), K.radius
    y = c + 0.5 * (np.mean([np.asarray(K.lmo(rng.normal(size=n))) for _ in range(6)], axis=0) - c)
    d = np.asarray(K.tangent(rng.normal(size=n)))
    base = np.maximum(y, c) * rng.uniform(1.1, 2.5, n)
    C = base * rng.uniform(0.95, 1.05, (rounds, n))
    delta = float(rounds)
    if kind == "loose":
        C += 1.0
    elif kind == "settled":
        C *= rng.uniform(0.8, 1.0, (rounds, n))
    elif kind == "saturated":
        C, delta = C * np.where(rng.random(C.shape) < 0.02, 0.5, 1.0), 0.02 * delta
    else:
        C[:, rng.random(n) < 0.25] = 1e-3
    task = PenaltyTask(K, Capacity(C), y, d / np.linalg.norm(d), delta, rounds**0.5 / (2 * R), c)
    if kind == "settled":
        y = Search(task, ACCURACY * scale(task), 100).run().x
        task = task._replace(y=y, constraints=Capacity(C * rng.uniform(0.97, 1.03, C.shape)))
    return task


def scale(task: PenaltyTask) -> float:
    return task.delta * task.breach(task.y) + float(np.linalg.norm(task.d)) * task.K.radius


def cases(sizes: tuple[int, ...]) -> Iterator[tuple[str, int, int, str, PenaltyTask]]:
    for name in ("box", "flow"):
        for n in sizes:
            K = the_set(name, n)
            for rounds in BLOCKS:
                for kind in KINDS:
                    yield name, n, rounds, kind, block(K, rounds, kind)


def report(sizes: tuple[int, ...] = (100, 1_000, 10_000), repeats: int = 3) -> None:
    """The table, and at n = 1,000 and block 100 how much faster than the bundle."""
    print("The step of drift-plus-penalty for capacities")
    print(
        f"  {'set':5} {'n':>6} {'rounds':>6} {'block':10} {'ms':>9} {'gap/asked':>10} {'looks':>5} "
        " stage"
    )
    for name, n, rounds, kind, task in cases(sizes):
        asked = ACCURACY * scale(task)
        seconds, search = timed(partial(Search, task, asked, 100), repeats)
        gap, looks = search.best.gap / asked, search.looks
        print(
            f"  {name:5} {n:6} {rounds:6} {kind:10} {1e3 * seconds:9.3f} {gap:10.2g} {looks:5} "
            f" {search.stage}",
            end="",
            flush=True,
        )
        print(
            beside_the_bundle(task, asked, seconds)
            if (n, rounds) == (1_000, 100) and kind in COMPARED
            else ""
        )


def timed(made: Callable[[], Search], repeats: int) -> tuple[float, Search]:
    """Median seconds of a search, the first left out where it is quick."""
    times = []
    for _ in range(repeats + 1):
        start = perf_counter()
        search = made()
        search.run()
        times.append(perf_counter() - start)
        if times[-1] > 1.0:
            break
    return statistics.median(times[1:] or times), search


def beside_the_bundle(task: PenaltyTask, asked: float, seconds: float) -> str:
    """How long the bundle takes for the same block, and the bar."""
    start = perf_counter()
    solved = proximal_bundle(task, asked, 100)
    theirs = perf_counter() - start
    verdict = "" if theirs / seconds >= DEMANDED else f", BELOW {DEMANDED:g}"
    return (
        f"; bundle {1e3 * theirs:.0f} ms, gap/asked {solved.gap / asked:.2g}: "
        f"{theirs / seconds:.0f}x{verdict}"
    )
