"""Oracle calls per projection of the three approximately feasible projections, for several sets.

A target circles outside the set, 1.3 radii from the center within the affine hull, 3 degrees per
step, and each projection starts from the last one, as in a learner. Calls are exact and the same
on every machine.
"""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.cases import layered_flow
from benchmarks.pages import Table
from tidewolf.projection import ActiveSet, afp, afp_paper
from tidewolf.sets import Box, CappedSimplex, L2Ball, Shrunk, Simplex, Translated, VertexHull

STEPS, SHARE = 60, 0.003
METHODS = ("the paper's", "one shot", "active set")


def sets() -> dict[str, Any]:
    """One set of a useful size of each kind."""
    points = np.random.default_rng(0).normal(size=(50, 20))
    return {
        "FlowPolytope, 136 arcs": layered_flow(6, 8, 3),
        "FlowPolytope, 1,040 arcs": layered_flow(11, 20, 5),
        "Simplex, n = 100": Simplex(100),
        "CappedSimplex, n = 100": CappedSimplex(100, 0.05),
        "Box, n = 20": Box(np.zeros(20), np.ones(20)),
        "L2Ball, n = 100": L2Ball(100),
        "VertexHull, 50 points in 20": VertexHull(points),
        "Translated simplex": Translated(Simplex(50), np.full(50, 3.0)),
        "Shrunk flow": Shrunk(layered_flow(6, 8, 3), 0.8),
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


def mean_calls(K: Any, method: str) -> float:
    """Calls per projection over the whole drift."""
    tol, calls, x, active = SHARE * K.radius**2, 0, K.center, ActiveSet.start(K)
    for y in drifting(K):
        if method == "active set":
            kept = active.project(K, y, tol=tol)
            active, calls = kept.active, calls + kept.calls
        else:
            done = (afp if method == "one shot" else afp_paper)(K, y, x, tol=tol)
            x, calls = done.x, calls + done.calls
    return calls / STEPS


def table() -> Table:
    """One row per set, one column per projection."""
    rows = []
    for name, K in sets().items():
        paper, one_shot, active = (mean_calls(K, method) for method in METHODS)
        rows.append((name, f"{paper:.1f}", f"{one_shot:.1f}", f"{active:.2f}"))
    return Table(("set", *METHODS), rows)
