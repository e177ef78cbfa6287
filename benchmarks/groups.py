"""Many groups at once, and large boxes.

    462 groups of 3       tw.run on `SimplexProduct` now beside `Product` of 462 simplices at an
                          older commit, on the same stream; beside it the same `Product` now
    10,000 groups of 4    milliseconds a round, with checks and recording
    462 commodities       the same, on the flows of `problems.pairs`, now and before
    a box of 1,000,000    what 300 recorded rounds hold more than 30 do: nothing

Both commits play in processes that alternate, on one thread; a time is the least of several, in
processor time. Rounds on a box of 1,000,000 entries have their bar in floor.py.
"""

from __future__ import annotations

import json
import resource
import sys
from collections.abc import Iterator
from time import process_time
from typing import Any

import numpy as np

from benchmarks.bars import Bar, show
from benchmarks.commits import BASE, BEFORE, against, drive

TIMES = 200.0
"""faster than `Product` was"""
AT_MOST = 1.0
"""ms a round for 10,000 groups of 4"""
GROWN = 16.0
"""MB that 270 more rounds may take"""
SCRIPT = "from benchmarks.groups import time_of; time_of()"
MEMORY = "from benchmarks.groups import memory_of; memory_of()"


def shares(kind: str, groups: int, size: int, rounds: int) -> tuple[Any, Any]:
    """Splits of so many demands, one set or a product of sets: costs, and capacities that some
    splits break.
    """
    import tidewolf as tw

    rng, n = np.random.default_rng(0), groups * size
    costs = rng.normal(size=n) + rng.normal(size=(rounds, n))
    capacities = 0.5 + 0.2 * rng.random((rounds, n))
    if kind == "one" and hasattr(tw.sets, "SimplexProduct"):
        K = tw.sets.SimplexProduct([size] * groups)
    else:
        K = tw.sets.Product(*(tw.sets.Simplex(size) for _ in range(groups)))
    return K, tw.Stream(tw.functions.Linear(costs), tw.functions.Capacity(capacities))


def time_of() -> None:
    """In a process of either commit: microseconds a recorded round of a case, as JSON."""
    import tidewolf as tw

    kind, rounds = sys.argv[1], int(sys.argv[2])
    if kind == "pairs":
        problem = tw.problems.named("pairs")()
        K, stream = problem.K, problem.stream[:rounds]
    else:
        K, stream = shares(kind, int(sys.argv[3]), int(sys.argv[4]), rounds)
    learner, best = tw.LyapunovDescent(K), np.inf
    tw.run(learner, stream[:20])  # compiles, or loads what was compiled
    for _ in range(3):
        start = process_time()
        tw.run(learner, stream)
        best = min(best, process_time() - start)
    print(json.dumps({"us": 1e6 * best / rounds}))


def memory_of() -> None:
    """In a process of its own: MB at most after 30 and after 300 recorded rounds on a large box."""
    import tidewolf as tw

    n, rows = 1_000_000, 300
    rng, learner = (
        np.random.default_rng(0),
        tw.LyapunovDescent(tw.sets.Box(np.zeros(n), np.ones(n))),
    )
    long = rng.normal(size=n + rows), 0.5 + 0.2 * rng.random(n + rows)
    costs, limits = (np.lib.stride_tricks.sliding_window_view(a, n)[:rows] for a in long)
    stream = tw.Stream(tw.functions.Linear(costs), tw.functions.Capacity(limits))
    most = []
    for rounds in (30, rows):
        tw.run(learner, stream[:rounds])
        most.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
    print(json.dumps({"MB": most[1], "more": most[1] - most[0]}))


def bars() -> Iterator[Bar]:
    """What was asked."""
    found = against(SCRIPT, 3, "one", 240, 462, 3)
    note = f"{found.base['us'] / 1e3:.1f} ms -> {found.now['us']:.0f} us a round"
    yield Bar("462 groups of 3, tw.run", found.ratio("us"), TIMES, "x", True, note)
    product = drive(SCRIPT, None, "parts", 120, 462, 3)["us"]
    print(f"  the same as a Product: {found.base['us'] / product:.3g}x, {product:.0f} us a round")
    ms = min(drive(SCRIPT, None, "one", 600, 10_000, 4)["us"] for _ in range(3)) / 1e3
    yield Bar("10,000 groups of 4, tw.run", ms, AT_MOST, "ms")
    pairs = against(SCRIPT, 2, "pairs", 100, commit=BEFORE)
    words = f"{pairs.base['us'] / 1e3:.2f} -> {pairs.now['us'] / 1e3:.2f} ms a round"
    print(f"  462 commodities on 3,844 arcs: {pairs.ratio('us'):.3g}x, {words}")
    held = drive(MEMORY)
    note = f"{held['MB']:,.0f} MB at most"
    yield Bar("box n = 1,000,000: 300 rounds beyond 30", held["more"], GROWN, "MB", False, note)


def report() -> None:
    """Print the bars."""
    print(f"Many groups at once, against {BASE}")
    show(bars())
