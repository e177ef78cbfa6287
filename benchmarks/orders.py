"""Orders, matchings, trees and polytopes: each oracle beside reading its input once, what one would
otherwise call, and exact projection.

Directions drift: each is the last plus a step of 5 %, and oracles that take a warm start get that
of the last answer.
"""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Callable, Iterator
from time import perf_counter
from typing import Any, NamedTuple

import networkx as nx
import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.sparse import csr_array
from scipy.sparse.csgraph import minimum_spanning_tree

from benchmarks.programs import by_linprog
from tidewolf.hindsight.exact import ExactProjection
from tidewolf.sets import (
    Birkhoff,
    ConvexSet,
    Matching,
    Permutahedron,
    Polytope,
    SpanningTrees,
    Transportation,
    VertexHull,
)

STEP = 0.05


class Case(NamedTuple):
    """A set, what one would otherwise call, and how often to ask each: the oracle, the others, a
    projection (0: it would take too long).
    """

    name: str
    K: ConvexSet
    others: dict[str, Callable[[Any], object]]
    asked: tuple[int, int, int]


def cases(rng: np.random.Generator) -> Iterator[Case]:
    """Those of the table."""
    for n, projections in ((100, 3), (500, 0)):
        yield Case(
            f"Birkhoff, n = {n}",
            Birkhoff(n),
            {"linear_sum_assignment": linear_sum_assignment},
            (20, 20, projections),
        )
    rows, columns = rng.random(100), rng.random(100)
    plans = Transportation(rows, columns * (rows.sum() / columns.sum()))
    yield Case("Transportation, 100 x 100", plans, {"linprog": by_linprog(plans)}, (30, 3, 3))
    n, edges = 20_000, rng.integers(0, 20_000, (80_000, 2)).tolist()
    edges = [(v, int(rng.integers(v))) for v in range(1, n)] + [(a, b) for a, b in edges if a != b]
    others = {"scipy": _scipy_tree(edges, n), "networkx": _networkx_tree(edges)}
    yield Case(f"SpanningTrees, {len(edges):,} edges", SpanningTrees(edges), others, (20, 2, 0))
    yield Case(
        "Permutahedron, n = 10,000",
        Permutahedron(rng.random(10_000)),
        {"argsort": np.argsort},
        (50, 50, 20),
    )
    pairs = list(dict.fromkeys(map(tuple, rng.integers(0, 200, (3000, 2)).tolist())))
    matchings = Matching(pairs)
    yield Case(
        f"Matching, {len(pairs):,} of 200 x 200",
        matchings,
        {"linprog": by_linprog(matchings)},
        (30, 3, 3),
    )
    points = rng.standard_normal((1000, 100))
    yield Case(
        "VertexHull, 1,000 points of 100",
        VertexHull(points),
        {"numpy": lambda d: points[np.argmin(points @ d)]},
        (50, 50, 1),
    )
    A = rng.random((100, 200))
    limits = Polytope(A, 0.3 * A.sum(axis=1), bounds=(0.0, 1.0))
    yield Case("Polytope, 100 rows, n = 200", limits, {"linprog": by_linprog(limits)}, (30, 10, 10))


def _scipy_tree(edges: list[Any], n: int) -> Callable[[Any], object]:
    """The matrix is laid out beforehand; weights are moved above 0, which would be no edge."""
    ends = np.array(edges, dtype=np.int32)
    by_row = np.argsort(ends[:, 0], kind="stable")
    first = np.searchsorted(ends[by_row, 0], np.arange(n + 1)).astype(np.int32)
    return lambda d: minimum_spanning_tree(
        csr_array(((d - d.min() + 1.0)[by_row], ends[by_row, 1], first), shape=(n, n))
    )


def _networkx_tree(edges: list[Any]) -> Callable[[Any], object]:
    graph = nx.Graph(edges)

    def ask(d: Any) -> object:
        for (a, b), weight in zip(edges, d.tolist(), strict=True):
            graph.edges[a, b]["weight"] = weight
        return nx.minimum_spanning_tree(graph)

    return ask


def report() -> None:
    """Microseconds, and ratios to the oracle's."""
    rng = np.random.default_rng(0)
    print(
        f"Oracles on directions that drift by {STEP:.0%} a step, microseconds and ratios to the "
        "oracle (cold: without a warm start)"
    )
    for name, K, others, (asks, other_asks, projections) in cases(rng):
        drift = np.cumsum(
            np.concatenate(
                [rng.standard_normal((1, *K.shape)), STEP * rng.standard_normal((asks, *K.shape))]
            ),
            axis=0,
        )
        state = [K.answer(drift[0]).warm]

        def warm(d: Any, K: ConvexSet = K, state: list[Any] = state) -> None:
            state[0] = K.answer(d, state[0]).warm

        oracle = _median_us(warm, drift[1:])
        shown = [f"reads {oracle / _median_us(np.sum, drift):.1f}x"]
        if state[0] is not None:
            shown.append(f"cold {_median_us(K.answer, drift) / oracle:.1f}x")
        shown += [
            f"{other} {_median_us(ask, drift[: other_asks + 1]) / oracle:.1f}x"
            for other, ask in others.items()
        ]
        if projections:
            project = ExactProjection(K)
            shown.append(
                "projection "
                f"{_median_us(project, K.center - drift[: projections + 1]) / oracle:.1f}x"
            )
        print(f"  {name:32} {oracle:10.1f} us   {', '.join(shown)}", flush=True)


def _median_us(ask: Callable[[Any], object], directions: Any) -> float:
    """Median over the directions, the first of which does not count."""
    times = []
    for d in itertools.chain(directions[:1], directions):
        start = perf_counter()
        ask(d)
        times.append(perf_counter() - start)
    return 1e6 * statistics.median(times[1:])
