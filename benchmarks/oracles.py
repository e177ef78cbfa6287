"""The flow oracle at 1e5 arcs beside reading its weights once; `tangent` beside the oracle."""

from __future__ import annotations

import numpy as np

import tidewolf as tw
from benchmarks.graphs import layered, random_dag
from benchmarks.timing import median_us

ALLOWED = 20.0


def report() -> None:
    """Ratios to reading the weights."""
    rng = np.random.default_rng(0)
    print("Flow oracle at 1e5 arcs (negative weights) beside reading the weights once")
    print(f"  {'graph':24} {'arcs':>8} {'read us':>8} {'oracle us':>10} {'ratio':>6} {'ns/arc':>7} {'tangent ms':>11} {'solver':>20}")
    graphs = {
        "layered, 100 x 100": (layered(100, 100, 10), "s", "t"),
        "layered, 10 x 1,000": (layered(10, 1000, 11), "s", "t"),
        "random, 20,000 nodes": (random_dag(20_000, 100_000), 0, 19_999),
    }
    for name, (edges, source, target) in graphs.items():
        K = tw.sets.FlowPolytope.from_edges(edges, source=source, target=target)
        weights = rng.normal(size=K.shape)
        read = median_us(lambda w=weights: w.sum())  # type: ignore[misc]
        oracle = median_us(lambda K=K, w=weights: K.answer(w))  # type: ignore[misc]
        tangent = median_us(lambda K=K, w=weights: K.tangent(w), repeats=5) / 1e3  # type: ignore[misc]
        verdict = "" if oracle <= ALLOWED * read else f"   ABOVE {ALLOWED:g}"
        print(
            f"  {name:24} {K.shape[0]:8,} {read:8.1f} {oracle:10.1f} {oracle / read:6.1f} {1e3 * oracle / K.shape[0]:7.2f} "
            f"{tangent:11.2f} {K.tangent_method:>20}{verdict}"
        )
