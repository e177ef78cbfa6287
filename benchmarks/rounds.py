"""What a round costs: the time of a recorded round, and the memory of long runs.

    reading          both rows of a round, costs and capacities, once: their product
    recorded         `tw.run`: every check made, everything recorded; the bars are on this one
    live             a session, play and observe, one round at a time

`Ensemble` is four descents, and on `routing` also a season and two that re-solve, beside exact
projection and one program of HiGHS per round in the same run.

A time is the least of several, in processor time, so that a busy machine counts little.
"""

import json
import sys
from collections.abc import Iterator
from time import process_time
from typing import Any

import numpy as np

import tidewolf as tw
from benchmarks.at_size import ROOM, decisions
from benchmarks.cases import CASES, Case, flow, layered_flow, limited
from benchmarks.measuring import Bar, fresh, least_us, number, peak, show
from benchmarks.pages import Table
from tidewolf.core.errors import InvalidInput
from tidewolf.evaluation.recording import Recording

US = {
    "simplex n = 10": 15.0,
    "simplex n = 100": 38.0,
    "simplex n = 1,000": 124.0,
    "simplex n = 10,000": 360.0,
    "flow, 140 arcs": 45.0,
    "flow, 10,040 arcs": 188.0,
    "flow, 99,600 arcs": 6_000.0,
    "freeway, 456 arcs": 79.0,
    "10,000 groups of 4": 1000.0,
    "simplex n = 1,000,000": 8_400.0,
    "box n = 1,000,000": 9_200.0,
    "capped simplex n = 1,000,000": 17_500.0,
}
"""Microseconds per recorded round, at most, on one thread of a two-core x86 machine."""
ENSEMBLE_US = {
    "simplex n = 100": 80.0,
    "simplex n = 1,000": 140.0,
    "simplex n = 10,000": 700.0,
    "flow, 140 arcs": 150.0,
    "freeway, 456 arcs": 120.0,
    "flow, 10,040 arcs": 1_500.0,
}
"""The same for `Ensemble(K)`."""
WHOLE_US, OF_PROJECTION, OF_PROGRAM = 60.0, 0.5, 0.25
"""For `routing` with all experts, and as shares of the others' time."""
MANY, MANY_US, FIXED_MS = 1000, 1000.0, 10.0
"""For so many constraints of a round; milliseconds of a run of points of 1,000,000 entries beyond
its rounds, at most.
"""
FURTHER_MS = {"simplex": 5.0, "box": 7.0, "capped simplex": 12.0}
"""Milliseconds that one more round of points of 1,000,000 entries takes, at most."""
LIVE_US = {"simplex n = 10": 10.0, "simplex n = 100": 16.0, "Ensemble": 60.0, "whole": 80.0}
"""For live rounds in memory."""
TUNNELS_MS = 1.5
"""For live rounds of 900 tunnels between 132 pairs, re-solved under limits on links: the mean."""
LIVE = 1000
"""Rounds of a live session, for small sets."""
LONG, GROWTH = 100_000, 1.1
"""Rounds of a long run, and the time of its last tenth beside the first."""
BEYOND, GROWN = 64.0, 16.0
"""MB of a million rounds beyond their columns; MB that 270 more rounds on a large box may take."""


def times(K: Any, stream: tw.Stream) -> tuple[float, float]:
    """Microseconds per round: reading and recorded."""
    took = recorded(tw.LyapunovDescent(K), stream)
    if not hasattr(stream.losses, "C"):
        return np.nan, took
    costs, limits = stream.losses.C.reshape(-1), stream.constraints.c.reshape(-1)
    return least_us(lambda: costs @ limits, 9) / len(stream), took


def table() -> Table:
    """Every case, for docs/benchmarks/performance.md."""
    rows = [(name, *map(_shown, times(*CASES[name]()))) for name in CASES]
    return Table(("case", "reading, microseconds", "a recorded round, microseconds"), rows)


def _shown(us: float) -> str:
    return "" if np.isnan(us) else number(us, "us") if us < 1000.0 else number(us / 1000.0, "ms")


def bars() -> Iterator[Bar]:
    """Times of recorded rounds, then memory."""
    for name in CASES:
        try:
            K, stream = CASES[name]()
        except InvalidInput as missing:
            print(f"  {name}: skipped. {missing}")
            continue
        reading, took = times(K, stream)
        note = f"reading takes {_shown(reading)}"
        if name in US:
            yield Bar(f"{name}, a recorded round", took, US[name], "us", note=note)
        else:
            print(f"  {name}, a recorded round: {_shown(took)}; {note}")
        if K.shape[0] >= 1_000_000:
            learner = tw.LyapunovDescent(K)  # what two runs of two rounds take beyond one of four
            two, four = (len(part) * recorded(learner, part) for part in (stream[:2], stream[:4]))
            yield Bar(f"{name}: a run beyond its rounds", (2 * two - four) / 1e3, FIXED_MS, "ms")
            further = (len(stream) * took - four) / (len(stream) - 4) / 1e3
            yield Bar(
                f"{name}: a further round", further, FURTHER_MS[name.partition(" n =")[0]], "ms"
            )
    K, stream = many(100)
    name, took = (
        f"Ensemble: {MANY:,} constraints, a recorded round",
        recorded(tw.Ensemble(K), stream),
    )
    yield Bar(name, took, MANY_US, "us")
    yield from ensemble_bars()
    yield from growth_bars()
    for name in ("simplex n = 10", "simplex n = 100"):
        K, stream = CASES[name]()
        took = live(tw.LyapunovDescent(K), stream)
        yield Bar(f"{name}, a live round", took, LIVE_US[name], "us")
    _, core = decisions(12, 300, ROOM, 7, tw.experts.Season(24))
    name = "Ensemble: 900 tunnels, season and re-solving, a live round"
    yield Bar(name, 1e3 * float(np.mean(core[100:])), TUNNELS_MS, "ms")
    for rounds, every in ((1_000_000, 0), (1_000_000, 1000)):
        found = fresh("benchmarks.rounds:memory_of_a_long_run", rounds, every)
        what = f", decisions of each {every:,}th" if every else ""
        name = f"{rounds:,} rounds at n = 100{what}: memory beyond columns"
        note = f"columns {found['columns']:.0f} MB"
        yield Bar(name, found["more"] - found["columns"], BEYOND, "MB", note=note)
    more = fresh("benchmarks.rounds:memory_of_a_large_box")["more"]
    yield Bar("box n = 1,000,000: 300 rounds beyond 30", more, GROWN, "MB")


def growth_bars() -> Iterator[Bar]:
    """The time of the last tenth of long runs beside that of their first."""
    psd, rng = tw.sets.BoundedPSD(8), np.random.default_rng(0)
    C = rng.normal(size=(LONG, 8, 8))
    cases = {
        "simplex n = 100": limited(tw.sets.Simplex(100), LONG, 0.05, 0.02),
        "flow, 140 arcs": flow(layered_flow(5, 10, 3), LONG),
        "positive semidefinite, 8 rows": (psd, tw.Stream(tw.functions.Linear(C + C.mT))),
    }
    for name, (K, stream) in cases.items():
        tw.run(tw.LyapunovDescent(K), stream[:1000])
        begun, rounds, seconds = process_time(), [0.0], [0.0]
        for t in Recording(tw.LyapunovDescent(K), stream).advance():
            rounds.append(t)
            seconds.append(process_time() - begun)
        ends = np.interp(np.array([0.0, 0.1, 0.9, 1.0]) * LONG, rounds, seconds)
        share = (ends[3] - ends[2]) / (ends[1] - ends[0])
        note = f"{1e6 * seconds[-1] / LONG:.3g} us per round"
        yield Bar(f"{name}: last tenth of {LONG:,} rounds", share, GROWTH, "x", note=note)


def ensemble_bars() -> Iterator[Bar]:
    """Those of `Ensemble`."""
    for name, most in ENSEMBLE_US.items():
        try:
            K, stream = CASES[name]()
        except InvalidInput as missing:
            print(f"  {name}: skipped. {missing}")
            continue
        yield Bar(
            f"Ensemble: {name}, a recorded round", recorded(tw.Ensemble(K), stream), most, "us"
        )
    problem = tw.problems.routing()
    K, stream, period = problem.K, problem.stream, problem.period
    experts = [tw.experts.Season(period), tw.experts.Resolve(), tw.experts.Resolve(period)]
    whole = tw.Ensemble(K, experts=experts)
    took = recorded(whole, stream)
    yield Bar("Ensemble: routing, season and re-solving", took, WHOLE_US, "us")
    others = {tw.baselines.SinhaVaze: OF_PROJECTION, tw.baselines.Resolve: OF_PROGRAM}
    for other, most in others.items():
        share = took / recorded(other(K), stream)
        yield Bar(f"Ensemble: routing, beside {other.__name__}", share, most, "x")
    for name, learner in (("Ensemble", tw.Ensemble(K)), ("whole", whole)):
        yield Bar(f"{name}: routing, a live round", live(learner, stream), LIVE_US[name], "us")


def recorded(learner: Any, stream: tw.Stream) -> float:
    """Microseconds per recorded round."""
    tw.run(learner, stream[:50])
    return least_us(lambda: tw.run(learner, stream)) / len(stream)


def live(learner: Any, stream: tw.Stream) -> float:
    """Microseconds per round of a session."""
    rows = list(zip(stream.losses.C[:LIVE], stream.constraints.c[:LIVE], strict=True))

    def played() -> None:
        session = tw.Session(learner)
        for costs, capacities in rows:
            session.play()
            session.observe(costs=costs, capacities=capacities)

    return least_us(played) / len(rows)


def many(rounds: int) -> Case:
    """Constraints with positive rows that change in size."""
    rng, (K, free) = np.random.default_rng(0), limited(tw.sets.Simplex(100), rounds, 0.0, 0.0)
    rows = rng.random((MANY, 100)) * (1.0 + 0.1 * rng.random((rounds, 1, 1)))
    limits = tw.functions.MaxAffine(rows, 0.5 + 0.1 * rng.random((rounds, MANY)))
    return K, tw.Stream(free.losses, limits)


def overlapping(n: int, rounds: int, least: float, spread: float) -> tw.Stream:
    """Rows that share their numbers with their neighbours, so that data take no memory."""
    rng = np.random.default_rng(0)
    flat = rng.normal(size=n + rounds), least + spread * rng.random(n + rounds)
    costs, limits = (np.lib.stride_tricks.sliding_window_view(a, n)[:rounds] for a in flat)
    return tw.Stream(tw.functions.Linear(costs), tw.functions.Capacity(limits))


def memory_of_a_long_run() -> None:
    """In a process of its own: MB that a run takes, and MB of its columns."""
    rounds, every = int(sys.argv[1]), int(sys.argv[2])
    stream, learner = overlapping(100, rounds, 0.0, 1.0), tw.LyapunovDescent(tw.sets.Simplex(100))
    tw.run(learner, stream[:1000])
    before = peak()
    run = tw.run(learner, stream, decisions=every > 0, every=max(1, every))
    columns = sum(one.nbytes for one in vars(run).values() if isinstance(one, np.ndarray))
    columns += run.decisions.points.nbytes if run.decisions is not None else 0
    print(json.dumps({"more": peak() - before, "columns": columns / 1e6}))


def memory_of_a_large_box() -> None:
    """In a process of its own: MB that 300 rounds hold beyond 30."""
    n = 1_000_000
    stream = overlapping(n, 300, 0.5, 0.2)
    learner, most = tw.LyapunovDescent(tw.sets.Box(np.zeros(n), np.ones(n))), []
    for rounds in (30, 300):
        tw.run(learner, stream[:rounds])
        most.append(peak())
    print(json.dumps({"more": most[1] - most[0]}))


def report() -> None:
    print("A round of LyapunovDescent and of Ensemble, one thread")
    show(bars())
