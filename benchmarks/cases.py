"""Graphs, streams and learners that several benchmarks share."""

from collections.abc import Callable, Hashable
from typing import Any

import numpy as np

import tidewolf as tw

Edges = list[tuple[Hashable, Hashable]]
Case = tuple[Any, tw.Stream]
"""a set and a stream on it"""


def layered_flow(layers: int, width: int, degree: int = 0) -> tw.sets.FlowPolytope:
    """Layers of `width` nodes; each node leads to `degree` random nodes of the next layer, or to
    three at fixed distances.
    """
    rng = np.random.default_rng(1)
    edges: Edges = [("s", (0, i)) for i in range(width)]
    for layer in range(layers - 1):
        for i in range(width):
            near = (i, (i + 1) % width, (i + 3) % width)
            heads = rng.choice(width, degree, replace=False).tolist() if degree else near
            edges += [((layer, i), (layer + 1, j)) for j in heads]
    edges += [((layers - 1, i), "t") for i in range(width)]
    return tw.sets.FlowPolytope.from_edges(edges, source="s", target="t")


def limited(K: Any, rounds: int, least: float, spread: float) -> Case:
    """Linear losses around a mean direction, and capacities in [least, least + spread]."""
    rng, n = np.random.default_rng(0), K.shape[0]
    costs = rng.normal(size=n) + rng.normal(size=(rounds, n))
    capacities = least + spread * rng.random((rounds, n))
    return K, tw.Stream(tw.functions.Linear(costs), tw.functions.Capacity(capacities))


def simplex(n: int, rounds: int) -> Case:
    return limited(tw.sets.Simplex(n), rounds, 5.0 / n, 2.0 / n)


def flow(K: tw.sets.FlowPolytope, rounds: int) -> Case:
    """Positive costs, and capacities that no single path satisfies."""
    rng, n = np.random.default_rng(0), K.shape[0]
    costs = rng.random(n) + 0.5 * rng.random((rounds, n))
    capacities = 0.3 + 0.3 * rng.random((rounds, n))
    return K, tw.Stream(tw.functions.Linear(costs), tw.functions.Capacity(capacities))


def problem(name: str, rounds: int | None = None) -> Case:
    found = tw.problems.named(name)(rounds=rounds)
    return found.K, found.stream


def _million() -> Any:
    return tw.sets.Box(np.zeros(1_000_000), np.ones(1_000_000))


CASES: dict[str, Callable[[], Case]] = {
    "simplex n = 10": lambda: simplex(10, 5000),
    "simplex n = 100": lambda: simplex(100, 3000),
    "simplex n = 1,000": lambda: simplex(1000, 1200),
    "simplex n = 10,000": lambda: simplex(10_000, 400),
    "flow, 140 arcs": lambda: flow(layered_flow(5, 10, 3), 2000),
    "flow, 10,040 arcs": lambda: flow(layered_flow(26, 20, 20), 150),
    "flow, 99,600 arcs": lambda: flow(layered_flow(111, 300), 40),
    "freeway, 456 arcs": lambda: problem("freeway"),
    "462 groups of 3": lambda: limited(tw.sets.SimplexProduct([3] * 462), 240, 0.5, 0.2),
    "10,000 groups of 4": lambda: limited(tw.sets.SimplexProduct([4] * 10_000), 600, 0.5, 0.2),
    "462 commodities, 3,844 arcs": lambda: problem("pairs", 100),
    "simplex n = 1,000,000": lambda: simplex(1_000_000, 12),
    "box n = 1,000,000": lambda: limited(_million(), 12, 0.5, 0.2),
    "capped simplex n = 1,000,000": lambda: limited(
        tw.sets.CappedSimplex(1_000_000, cap=1e-5), 12, 5e-6, 2e-6
    ),
}


def advised(problem: Any) -> list[Any]:
    """Experts as `tidewolf run` gives them: re-solving with the last round; if there is a period,
    with that of a period ago and with a season, too.
    """
    if problem.period is None:
        return [tw.experts.Resolve()]
    season, again = tw.experts.Season(problem.period), ("last", problem.period)
    return [season, *map(tw.experts.Resolve, again)]
