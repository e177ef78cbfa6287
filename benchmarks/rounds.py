"""What a round of LyapunovDescent costs: on a simplex beyond its functions, on the freeway in all.

Functions are timed where they are called, inside the run; what is left is the library's own, the
oracle among it: it runs inside a kernel.
"""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import Any

import numpy as np

import tidewolf as tw
from tidewolf.core.errors import InvalidInput
from tidewolf.loop import play

SIMPLEX_ALLOWED, FREEWAY_ALLOWED = 40.0, 100.0
REPEATS = 7


def a_run(learner: Any, stream: tw.Stream) -> tuple[float, int]:
    """Seconds and oracle calls of one run through the loop."""
    start, calls = perf_counter(), 0
    for played in play(learner, stream):
        calls = played.state.calls
    return perf_counter() - start, calls


class Clock:
    """Replaces methods of classes by timed ones, and puts them back."""

    def __init__(self, *methods: tuple[type, str]) -> None:
        self.seconds, self.calls = 0.0, 0
        self.originals = [(owner, name, getattr(owner, name)) for owner, name in methods]

    def __enter__(self) -> Clock:
        for owner, name, method in self.originals:
            setattr(owner, name, self._timed(method))
        return self

    def __exit__(self, *_: object) -> None:
        for owner, name, method in self.originals:
            setattr(owner, name, method)

    def _timed(self, method: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*args: Any) -> Any:
            start = perf_counter()
            result = method(*args)
            self.seconds += perf_counter() - start
            self.calls += 1
            return result

        return timed


def simplex() -> None:
    """n = 100, random linear losses, capacities."""
    rng, rounds, n = np.random.default_rng(0), 5000, 100
    K = tw.sets.Simplex(n)
    losses = tw.functions.Linear(rng.normal(size=n) + rng.normal(size=(rounds, n)))
    stream = tw.Stream(losses, tw.functions.Capacity(0.05 + 0.02 * rng.random((rounds, n))))
    learner = tw.LyapunovDescent(K, horizon=rounds)
    a_run(learner, stream)
    whole = min(a_run(learner, stream)[0] for _ in range(REPEATS))
    kinds = [tw.functions.Linear, tw.functions.Capacity]
    outside = []
    for _ in range(REPEATS):
        with Clock(
            *((kind, name) for kind in kinds for name in ("values", "subgradient"))
        ) as clock:
            _, calls = a_run(learner, stream)
        outside.append(clock.seconds)
    library = 1e6 * (whole - min(outside)) / rounds
    verdict = "" if library <= SIMPLEX_ALLOWED else f"   ABOVE {SIMPLEX_ALLOWED:g}"
    print(
        f"  simplex, n = 100: {1e6 * whole / rounds:.1f} us a round, of which functions "
        f"{1e6 * min(outside) / rounds:.1f}, library {library:.1f} ({calls / rounds:.2f} calls a "
        f"round){verdict}"
    )


def freeway() -> None:
    """The whole round on 456 arcs."""
    try:
        problem = tw.problems.named("freeway")()
    except InvalidInput as missing:
        print(f"  freeway: skipped. {missing}")
        return
    rounds = len(problem.stream)
    learner = tw.LyapunovDescent(problem.K, horizon=rounds)
    a_run(learner, problem.stream)
    whole = min(a_run(learner, problem.stream)[0] for _ in range(REPEATS))
    calls = a_run(learner, problem.stream)[1]
    us = 1e6 * whole / rounds
    verdict = "" if us <= FREEWAY_ALLOWED else f"   ABOVE {FREEWAY_ALLOWED:g}"
    print(
        f"  freeway, 456 arcs: {us:.1f} us a round in all ({calls / rounds:.2f} calls a "
        f"round){verdict}"
    )


def report() -> None:
    """Both."""
    print("A round of LyapunovDescent")
    simplex()
    freeway()
