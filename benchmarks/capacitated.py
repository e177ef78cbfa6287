"""CapacitatedFlow beside OR-tools, which scales costs too, on the shapes that networks have: the
whole way from arrays to the first answer, an answer without a basis, one with the last.

Bounds are narrow and whole, supplies such that a flow meets them, costs normal, turned by 0.02 for
the warm answer; OR-tools gets them in millionths. Both run in this process on one thread: processor
seconds, so that what else the machine does counts little. Skipped without OR-tools (pip install
ortools).
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from time import process_time
from typing import Any, NamedTuple

import numpy as np

from benchmarks.bars import Bar, show
from tidewolf.core.types import Floats, Int32s, Int64s
from tidewolf.sets import CapacitatedFlow
from tidewolf.sets.graphs.network import FlowNetwork

SIZES = (600, 35_000, 140_000)
SEEDS = (0, 1, 2)
ALLOWED = 4.0
"""Times OR-tools at most, at the largest size."""

Ends = tuple[Int64s, Int64s, int]


class Seconds(NamedTuple):
    """Of one network."""

    first: float
    """to the first flow, once for each network"""
    cold: float
    """of an answer without a basis"""
    warm: float
    peer: float
    """OR-tools, told and solved"""


def report() -> None:
    """Every size and shape, medians over seeds, with the bars of the largest."""
    print("CapacitatedFlow beside OR-tools: processor seconds, and times OR-tools")
    print(
        f"  {'shape':10} {'arcs':>8} {'OR-tools':>9} {'first + cold':>13} {'cold':>7} {'warm':>8}"
    )
    for shape in SHAPES:
        for size in SIZES[:-1]:
            _row(shape, size, list(_measured(shape, size)))
    show(bars())


def bars() -> list[Bar]:
    """The worst of the seeds at the largest size, the first flow included, on each shape."""
    if find_spec("ortools") is None:
        print("  OR-tools is not installed: no bars")
        return []
    found = []
    for shape in SHAPES:
        seconds = list(_measured(shape, SIZES[-1]))
        _row(shape, SIZES[-1], seconds)
        worst = max((one.first + one.cold) / one.peer for one in seconds)
        name = f"CapacitatedFlow cold, {shape}, {SIZES[-1]:,} arcs, beside OR-tools"
        found.append(Bar(name, worst, ALLOWED, "x"))
    return found


def _row(shape: str, size: int, seconds: list[Seconds]) -> None:
    def times(part: Callable[[Seconds], float]) -> str:
        return f"{statistics.median(part(one) / one.peer for one in seconds):.2f}x"

    peer = statistics.median(one.peer for one in seconds)
    print(
        f"  {shape:10} {size:8,} {peer:9.4f} {times(lambda one: one.first + one.cold):>13} "
        f"{times(lambda one: one.cold):>7} {times(lambda one: one.warm):>8}",
        flush=True,
    )


def _measured(shape: str, size: int) -> Iterator[Seconds]:
    _seconds(_network("grid", 12_000, 0), 0)  # compiled, or read from the disk
    for seed in SEEDS:
        yield _seconds(_network(shape, size, seed), seed)


def _seconds(net: FlowNetwork, seed: int) -> Seconds:
    rng = np.random.default_rng(seed)
    d, other = rng.normal(size=(2, len(net.tails)))
    turned = math.cos(0.02) * d + math.sin(0.02) * other
    begun = process_time()
    K = CapacitatedFlow(net)
    made = process_time()
    answer = K.answer(d)
    answered = process_time()
    K.answer(turned, answer.warm)
    warm = process_time() - answered
    peer, flow = _or_tools(net, d)
    if abs(answer.vertex.inner(d) - d @ flow) > 1e-6 * len(d):
        raise AssertionError(f"{answer.vertex.inner(d)} is not {d @ flow}, which OR-tools found")
    return Seconds(made - begun, answered - made, warm, peer)


def _or_tools(net: FlowNetwork, d: Floats) -> tuple[float, Any]:
    from ortools.graph.python.min_cost_flow import SimpleMinCostFlow

    begun = process_time()
    solver = SimpleMinCostFlow()
    upper, costs = net.upper.astype(np.int64), np.round(1e6 * d).astype(np.int64)
    arcs = solver.add_arcs_with_capacity_and_unit_cost(net.tails, net.heads, upper, costs)
    solver.set_nodes_supplies(np.arange(len(net.supply)), net.supply.astype(np.int64))
    if solver.solve() != solver.OPTIMAL:
        raise AssertionError("OR-tools found no flow")
    flow = solver.flows(arcs)
    return process_time() - begun, flow


def _network(shape: str, size: int, seed: int) -> FlowNetwork:
    rng = np.random.default_rng(seed)
    tails, heads, nodes = SHAPES[shape](size, rng)
    upper = rng.integers(1, 20, len(tails)).astype(float)
    empty = FlowNetwork(
        _int32(tails), _int32(heads), np.zeros(len(tails)), upper, np.zeros(nodes), ()
    )
    supply = empty.balance(np.round(upper * rng.random(len(tails))))
    return FlowNetwork(empty.tails, empty.heads, empty.lower, upper, supply, tuple(range(nodes)))


def _int32(places: Int64s) -> Int32s:
    return places.astype(np.int32)


def _grid(size: int, rng: np.random.Generator) -> Ends:
    """Streets both ways between the crossings of a square."""
    side = math.isqrt(size // 4)
    place = np.arange(side * side).reshape(side, side)
    one = np.concatenate([place[:, :-1].ravel(), place[:-1].ravel()])
    other = np.concatenate([place[:, 1:].ravel(), place[1:].ravel()])
    return np.concatenate([one, other]), np.concatenate([other, one]), side * side


def _layered(size: int, rng: np.random.Generator) -> Ends:
    """As many layers as nodes in each, ten arcs from every node to the next layer."""
    side = math.isqrt(size // 10)
    tails = np.arange((side - 1) * side).repeat(10)
    heads = (tails // side + 1) * side + rng.integers(0, side, len(tails))
    return tails, heads, side * side


def _geometric(size: int, rng: np.random.Generator) -> Ends:
    """Both ways between random points of a square that are near, twelve from each."""
    from scipy.spatial import cKDTree

    nodes = size // 12
    near = cKDTree(rng.random((nodes, 2))).query_pairs(
        math.sqrt(12 / (nodes * math.pi)), output_type="ndarray"
    )
    return near.ravel(), near[:, ::-1].ravel(), nodes


def _random(size: int, rng: np.random.Generator) -> Ends:
    """A ring, and three random arcs for each of its nodes."""
    nodes = size // 4
    ring, (tails, heads) = np.arange(nodes), rng.integers(0, nodes, (2, size - nodes))
    return np.append(ring, tails), np.append((ring + 1) % nodes, heads), nodes


SHAPES: dict[str, Callable[[int, np.random.Generator], Ends]] = {
    "grid": _grid,
    "layered": _layered,
    "geometric": _geometric,
    "random": _random,
}
