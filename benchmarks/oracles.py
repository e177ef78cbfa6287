"""Flow oracles beside reading their input once, beside what one would otherwise call, and beside
exact projection.

One flow: a DAG of 1e5 arcs, negative weights. Many: 462 commodities, all ordered pairs of a
backbone of 22 nodes and 34 cables, each on the links that lead away from its source. Within bounds:
random networks with cycles, costs that turn by 0.02 a step.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterator
from time import perf_counter
from typing import Any

import numpy as np

import tidewolf as tw
from benchmarks.graphs import backbone, layered, random_dag
from benchmarks.timing import median_us
from tidewolf.hindsight.exact import ExactProjection

ALLOWED, RUSTWORKX, LOOP = 20.0, 25.0, 20.0
"""Times reading at most; times faster at least than rustworkx, and than a loop over single
flows.
"""


def report() -> None:
    """All of them."""
    one_flow()
    many_flows()
    flows_within_bounds()


def one_flow() -> None:
    """Ratios to reading the weights, and of others to the oracle."""
    rng = np.random.default_rng(0)
    print(
        "Flow oracle at 1e5 arcs (negative weights) beside reading the weights once, and times as "
        "long that others take"
    )
    print(
        f"  {'graph':24} {'read us':>8} {'oracle us':>10} {'ratio':>6} {'ns/arc':>7}",
        *(f"{name:>17}" for name in OTHERS),
    )
    graphs = {
        "layered, 100 x 100": (layered(100, 100, 10), "s", "t"),
        "layered, 10 x 1,000": (layered(10, 1000, 11), "s", "t"),
        "random, 20,000 nodes": (random_dag(20_000, 100_000), 0, 19_999),
    }
    for name, (edges, source, target) in graphs.items():
        K = tw.sets.FlowPolytope.from_edges(edges, source=source, target=target)
        weights = rng.normal(size=K.shape)
        read = median_us(lambda w=weights: w.sum())
        oracle = median_us(lambda K=K, w=weights: K.answer(w))
        slower = {other: other_us(K, weights) for other, other_us in OTHERS.items()}
        shown = [
            f"{'skipped' if us is None else f'{us / oracle:,.0f}x':>17}" for us in slower.values()
        ]
        verdict = "" if oracle <= ALLOWED * read else f"   ABOVE {ALLOWED:g}"
        rust = slower["rustworkx"]
        verdict += (
            ""
            if rust is None or rust >= RUSTWORKX * oracle
            else f"   rustworkx BELOW {RUSTWORKX:g}"
        )
        print(
            f"  {name:24} {read:8.1f} {oracle:10.1f} {oracle / read:6.1f} "
            f"{1e3 * oracle / K.shape[0]:7.2f}",
            *shown,
            verdict,
        )
        tangent = median_us(lambda K=K, w=weights: K.tangent(w), repeats=5)
        print(f"  {'':24} tangent {tangent / oracle:,.0f}x ({K.tangent_method})", end="")
        if name == "layered, 100 x 100":  # on wide graphs its factor fills, and it takes minutes
            project, y = ExactProjection(K), K.center + rng.normal(size=K.shape)
            print(
                ", exact projection (PIQP) "
                f"{median_us(lambda p=project, y=y: p(y), repeats=1) / oracle:,.0f}x",
                end="",
            )
        print()


def _rustworkx(K: Any, weights: Any) -> float | None:
    """The quicker of the longest path of its DAGs, with weights turned round, and Bellman and
    Ford's, which long paths make very slow.
    """
    try:
        import rustworkx
    except ImportError:
        return None
    graph, turned = rustworkx.PyDiGraph(), rustworkx.PyDiGraph()
    for made, sign in ((graph, 1.0), (turned, -1.0)):
        made.add_nodes_from(range(len(K.nodes)))
        made.extend_from_weighted_edge_list(
            list(zip(K.tails.tolist(), K.heads.tolist(), (sign * weights).tolist(), strict=True))
        )
    longest = median_us(
        lambda: rustworkx.dag_weighted_longest_path(turned, lambda tail, head, weight: weight),
        repeats=3,
    )
    if len(K.nodes) > 15_000:
        return longest
    return min(
        longest,
        median_us(
            lambda: rustworkx.bellman_ford_shortest_path_lengths(graph, K.source, float, K.target),
            repeats=3,
        ),
    )


def _networkx(K: Any, weights: Any) -> float | None:
    try:
        import networkx
    except ImportError:
        return None
    graph = networkx.DiGraph()
    graph.add_weighted_edges_from(
        zip(K.tails.tolist(), K.heads.tolist(), (-weights).tolist(), strict=True)
    )
    return median_us(lambda: networkx.dag_longest_path(graph, weight="weight"), repeats=1)


def _scipy(K: Any, weights: Any) -> float | None:
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import bellman_ford

    graph = csr_array((weights, (K.tails, K.heads)), shape=(len(K.nodes), len(K.nodes)))
    began = perf_counter()
    bellman_ford(graph, indices=K.source)
    return 1e6 * (perf_counter() - began)


OTHERS: dict[str, Callable[[Any, Any], float | None]] = {
    "rustworkx": _rustworkx,
    "networkx": _networkx,
    "scipy BellmanFord": _scipy,
}


def many_flows() -> None:
    """One pass beside a loop over single flows."""
    rng, nodes, link_rows = np.random.default_rng(0), 22, 34
    lengths = np.tile(rng.uniform(0.1, 1.0, link_rows), 2)
    pairs = [(a, b, rng.uniform(0.5, 2.0)) for a in range(nodes) for b in range(nodes) if a != b]
    K = tw.sets.MultiFlow.from_edges(backbone(nodes, link_rows), pairs, lengths=lengths)
    weights, parts = (
        rng.normal(size=K.shape),
        list(zip(K.starts[:-1].tolist(), K.starts[1:].tolist(), strict=True)),
    )
    ends = zip(parts, K.sources, K.targets, strict=True)
    single = [
        _alone(K, K.links[start:stop], source, target) for (start, stop), source, target in ends
    ]
    read, oracle = median_us(lambda: weights.sum()), median_us(lambda: K.answer(weights))
    loop = median_us(
        lambda: [
            one.answer(weights[start:stop]).vertex
            for one, (start, stop) in zip(single, parts, strict=True)
        ],
        repeats=20,
    )
    verdict = "" if loop >= LOOP * oracle else f"   BELOW {LOOP:g}"
    tangent, project = median_us(lambda: K.tangent(weights)), ExactProjection(K)
    exact = median_us(lambda: project(K.center + weights), repeats=3)
    print(f"{K}")
    print(f"  read {read:.1f} us, oracle {oracle:.1f} us ({oracle / read:.1f} x reading)")
    print(
        f"  a loop over single flows {loop / oracle:,.0f}x{verdict}, tangent "
        f"{tangent / oracle:.1f}x, ",
        end="",
    )
    print(f"exact projection (PIQP) {exact / oracle:,.0f}x")


def _alone(K: Any, links: Any, source: int, target: int) -> Any:
    edges = [(int(K.tails[link]), int(K.heads[link])) for link in links]
    return tw.sets.FlowPolytope.from_edges(edges, source=int(source), target=int(target))


def flows_within_bounds() -> None:
    """Warm and cold, beside HiGHS warm and cold, networkx, and exact projection."""
    print("CapacitatedFlow, costs that turn by 0.02 a step: times as long as a warm answer")
    heads = ("cold", "HiGHS warm", "HiGHS cold", "networkx", "projection (PIQP)")
    print(
        f"  {'arcs':>6} {'nodes':>6} {'warm us':>9} {'/ reading':>10}",
        *(f"{head:>17}" for head in heads),
    )
    for nodes, arcs in ((50, 200), (200, 1000), (1000, 5000)):
        K = _network(nodes, arcs)
        costs = list(_turning(arcs))
        warm, basis = list[float](), K.answer(costs[0]).warm
        for d in costs[1:]:
            began = perf_counter()
            basis = K.answer(d, basis).warm
            warm.append(1e6 * (perf_counter() - began))
        unit, read = statistics.median(warm), median_us(costs[9].sum)
        project = ExactProjection(K)
        row = (
            median_us(lambda K=K, d=costs[9]: K.answer(d), repeats=5),
            *_highs(K, costs),
            _networkx_simplex(K, costs[9]) if arcs <= 1000 else None,
            median_us(lambda p=project, K=K, d=costs[9]: p(K.center - d), repeats=3),
        )
        shown = ["skipped" if us is None else f"{us / unit:,.1f}x" for us in row]
        print(
            f"  {arcs:6,} {nodes:6,} {unit:9.1f} {unit / read:10.1f}",
            *(f"{cell:>17}" for cell in shown),
        )


def _network(nodes: int, arcs: int) -> Any:
    """A ring and random arcs of whole bounds; supplies that a flow meets."""
    rng = np.random.default_rng(0)
    tails = np.concatenate([np.arange(nodes), rng.integers(0, nodes, arcs - nodes)])
    heads = np.concatenate([(np.arange(nodes) + 1) % nodes, rng.integers(0, nodes, arcs - nodes)])
    upper = rng.integers(1, 20, arcs)
    flow = np.round(upper * rng.random(arcs))
    supply = np.bincount(tails, flow, nodes) - np.bincount(heads, flow, nodes)
    edges = list(zip(tails.tolist(), heads.tolist(), strict=True))
    return tw.sets.CapacitatedFlow.from_edges(edges, supplies=dict(enumerate(supply)), upper=upper)


def _turning(arcs: int, steps: int = 20, angle: float = 0.02) -> Iterator[Any]:
    rng = np.random.default_rng(1)
    d = rng.normal(size=arcs)
    for _ in range(steps):
        yield d
        d = math.cos(angle) * d + math.sin(angle) * rng.normal(size=arcs)


def _highs(K: Any, costs: list[Any]) -> tuple[float | None, float | None]:
    """Median microseconds from the last basis, and from none."""
    try:
        import highspy
    except ImportError:
        return None, None
    described, n = K.description(), K.shape[0]

    def told(d: Any) -> Any:
        program, solver = highspy.HighsLp(), highspy.Highs()
        program.num_col_, program.num_row_ = n, described.A_eq.shape[0]
        program.col_cost_, program.col_lower_, program.col_upper_ = (
            d,
            described.lower,
            described.upper,
        )
        program.row_lower_ = program.row_upper_ = described.b_eq
        matrix = program.a_matrix_
        matrix.start_, matrix.index_, matrix.value_ = (
            described.A_eq.indptr,
            described.A_eq.indices,
            described.A_eq.data,
        )
        solver.setOptionValue("output_flag", False)
        solver.passModel(program)
        return solver

    cold = median_us(lambda: told(costs[9]).run(), repeats=3)
    solver, warm, places = told(costs[0]), list[float](), np.arange(n, dtype=np.int32)
    solver.run()
    for d in costs[1:]:
        began = perf_counter()
        solver.changeColsCost(n, places, d)
        solver.run()
        np.array(solver.getSolution().col_value)
        warm.append(1e6 * (perf_counter() - began))
    return statistics.median(warm), cold


def _networkx_simplex(K: Any, d: Any) -> float | None:
    """Its costs must be whole: these are, in millionths."""
    try:
        import networkx
    except ImportError:
        return None
    net, graph = K.network, networkx.MultiDiGraph()
    graph.add_nodes_from((node, {"demand": -int(amount)}) for node, amount in enumerate(net.supply))
    for tail, head, room, cost in zip(
        net.tails.tolist(), net.heads.tolist(), net.upper, np.round(1e6 * d), strict=True
    ):
        graph.add_edge(tail, head, capacity=int(room), weight=int(cost))
    return median_us(lambda: networkx.network_simplex(graph), repeats=1)
