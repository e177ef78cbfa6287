"""Oracle calls of the three approximately feasible projections on targets that drift, for every
set.

A target circles outside the set, 1.3 radii from the center within the affine hull, 3 degrees a
step: the chain a learner sees, where each projection starts from the last. Calls are exact and the
same on every machine.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

import tidewolf as tw
from benchmarks.graphs import layered
from tidewolf.projection import ActiveSet, afp, afp_paper

STEPS = 60
SHARE = 0.003


def sets() -> dict[str, Any]:
    """One set of a useful size of each kind."""
    rng = np.random.default_rng(0)
    return {
        "FlowPolytope, 136 arcs": tw.sets.FlowPolytope.from_edges(
            layered(6, 8, 3), source="s", target="t"
        ),
        "FlowPolytope, 1,040 arcs": tw.sets.FlowPolytope.from_edges(
            layered(11, 20, 5), source="s", target="t"
        ),
        "Simplex, n = 100": tw.sets.Simplex(100),
        "CappedSimplex, n = 100": tw.sets.CappedSimplex(100, 0.05),
        "Box, n = 20": tw.sets.Box(np.zeros(20), np.ones(20)),
        "L2Ball, n = 100": tw.sets.L2Ball(100),
        "VertexHull, 50 points in 20": tw.sets.VertexHull(rng.normal(size=(50, 20))),
        "Translated simplex": tw.sets.Translated(tw.sets.Simplex(50), np.full(50, 3.0)),
        "Shrunk flow": tw.sets.Shrunk(
            tw.sets.FlowPolytope.from_edges(layered(6, 8, 3), source="s", target="t"), 0.8
        ),
    }


def drifting(K: Any, seed: int = 0) -> Iterator[Any]:
    """Targets on a circle around the center."""
    rng = np.random.default_rng(seed)
    u, v = (K.tangent(rng.normal(size=K.shape)) for _ in range(2))
    u = u / np.linalg.norm(u)
    v = v - float((u * v).sum()) * u
    v = v / np.linalg.norm(v)
    for step in range(STEPS):
        angle = math.radians(3 * step)
        yield K.center + 1.3 * K.radius * (math.cos(angle) * u + math.sin(angle) * v)


def chain(K: Any, method: str) -> int:
    """Calls over the whole drift."""
    tol, calls, x, active = SHARE * K.radius**2, 0, K.center, ActiveSet.start(K)
    for y in drifting(K):
        if method == "paper":
            done = afp_paper(K, y, x, tol=tol)
            x, calls = done.x, calls + done.calls
        elif method == "one shot":
            done = afp(K, y, x, tol=tol)
            x, calls = done.x, calls + done.calls
        else:
            kept = active.project(K, y, tol=tol)
            active, calls = kept.active, calls + kept.calls
    return calls


def measured() -> dict[str, tuple[float, ...]]:
    """Mean calls a projection of each set: the paper's, one shot, an active set."""
    methods = ("paper", "one shot", "active set")
    return {
        name: tuple(chain(K, method) / STEPS for method in methods) for name, K in sets().items()
    }


def report() -> None:
    """Mean calls a projection."""
    print(
        f"Oracle calls a projection, target drifting outside the set, tol = {SHARE} R^2, mean of "
        f"{STEPS}"
    )
    print(f"  {'set':28} {'paper':>8} {'one shot':>9} {'active set':>11}")
    for name, (paper, one_shot, active) in measured().items():
        print(f"  {name:28} {paper:8.1f} {one_shot:9.1f} {active:11.2f}")
