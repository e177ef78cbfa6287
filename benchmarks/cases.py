"""Cases that every commit can play: sets, streams and learners whose names have not changed.

What has changed since the commits that times and decisions are held against is told apart here, by
looking, so that one driver serves all of them.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

import tidewolf as tw
from benchmarks.graphs import layered

Case = tuple[Any, Any]
"""a set and a stream on it"""

SEES_ARRAYS = "costs" in inspect.signature(tw.Session.observe).parameters
"""whether a session can be told costs and capacities as arrays"""


def limited(K: Any, rounds: int, least: float, spread: float, noise: float = 1.0) -> Case:
    """Linear losses around a mean direction, and capacities in [least, least + spread]."""
    rng, n = np.random.default_rng(0), K.shape[0]
    costs = rng.normal(size=n) + noise * rng.normal(size=(rounds, n))
    capacities = least + spread * rng.random((rounds, n))
    return K, tw.Stream(tw.functions.Linear(costs), tw.functions.Capacity(capacities))


def simplex(n: int, rounds: int) -> Case:
    return limited(tw.sets.Simplex(n), rounds, 5.0 / n, 2.0 / n)


def capped(n: int, rounds: int) -> Case:
    return limited(tw.sets.CappedSimplex(n, cap=10.0 / n), rounds, 5.0 / n, 2.0 / n)


def box(n: int, rounds: int) -> Case:
    return limited(tw.sets.Box(np.zeros(n), np.ones(n)), rounds, 0.5, 0.2)


def flow(layers: int, width: int, degree: int, rounds: int) -> Case:
    """Paths through layers; positive costs, and capacities that no single path keeps."""
    edges = layered(layers, width, degree)
    K = tw.sets.FlowPolytope.from_edges(edges, source="s", target="t")
    rng, n = np.random.default_rng(0), K.shape[0]
    costs = rng.random(n) + 0.5 * rng.random((rounds, n))
    capacities = 0.3 + 0.3 * rng.random((rounds, n))
    return K, tw.Stream(tw.functions.Linear(costs), tw.functions.Capacity(capacities))


def problem(name: str) -> Case:
    """A problem that comes with the library, from its records."""
    found = tw.problems.named(name)()
    return found.K, found.stream


CASES: dict[str, Callable[[], Case]] = {
    "simplex n = 10": lambda: simplex(10, 5000),
    "simplex n = 100": lambda: simplex(100, 3000),
    "simplex n = 1,000": lambda: simplex(1000, 1200),
    "simplex n = 10,000": lambda: simplex(10_000, 400),
    "flow, 140 arcs": lambda: flow(5, 10, 3, 2000),
    "flow, 10,040 arcs": lambda: flow(26, 20, 20, 150),
    "freeway, 456 arcs": lambda: problem("freeway"),
    "routing": lambda: problem("routing"),
    "simplex n = 1,000,000": lambda: simplex(1_000_000, 12),
    "box n = 1,000,000": lambda: box(1_000_000, 12),
    "capped simplex n = 1,000,000": lambda: capped(1_000_000, 12),
}


def observe(session: Any, costs: Any, capacities: Any) -> None:
    """One round told to a session as its commit takes it."""
    if SEES_ARRAYS:
        session.observe(costs=costs, capacities=capacities)
        return
    session.observe(
        loss=tw.functions.Linear.one(costs), constraint=tw.functions.Capacity.one(capacities)
    )


def bare(learner: Any, stream: Any) -> None:
    """All rounds through the loop, nothing kept."""
    from tidewolf.loop import play

    for _ in play(learner, stream):
        pass


def live(learner: Any, stream: Any) -> None:
    """All rounds one by one through a session."""
    session = tw.Session(learner)
    for costs, capacities in zip(stream.losses.C, stream.constraints.c, strict=True):
        session.play()
        observe(session, costs, capacities)
