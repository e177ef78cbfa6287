"""From links to graphs without cycles: brute force on small graphs, every network of the Topology
Zoo, and what is refused.
"""

from __future__ import annotations

import csv
import gzip
import itertools
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from polytopes import paths_of, random_edges
from refused import refused
from test_problems import needs_records
from tidewolf.core.errors import (
    CyclicGraph,
    InvalidInput,
    UnknownNode,
    UnreachableTarget,
    WrongShape,
    WrongType,
)
from tidewolf.problems import read_graph
from tidewolf.problems.data import RECORDS, record
from tidewolf.sets import FlowPolytope
from tidewolf.sets.graph_tools import away, count_paths, leading_away, shortest, useful

seeds = st.integers(0, 2**32)


def any_links(seed: int, nodes: int, count: int) -> tuple[list[tuple[int, int]], list[float]]:
    """Links in all directions, loops and parallel ones among them; 0 reaches the last node."""
    rng = np.random.default_rng(seed)
    links = [*rng.integers(0, nodes, (count, 2)).tolist(), *itertools.pairwise(range(nodes))]
    return [(tail, head) for tail, head in links], rng.uniform(0.1, 1.0, len(links)).tolist()


def distances(links, lengths, source, nodes):
    """Bellman and Ford's, as plain as can be."""
    away = [np.inf] * nodes
    away[source] = 0.0
    for _ in range(nodes):
        for (tail, head), length in zip(links, lengths, strict=True):
            away[head] = min(away[head], away[tail] + length)
    return away


@given(seed=seeds, nodes=st.integers(2, 9), count=st.integers(0, 25))
def test_links_that_lead_away_make_a_graph_without_cycles_that_keeps_shortest_paths(
    seed, nodes, count
):
    links, lengths = any_links(seed, nodes, count)
    far = distances(links, lengths, 0, nodes)
    distance, _ = shortest(links, lengths, 0)
    assert distance == pytest.approx(dict(enumerate(far)))
    kept = leading_away(links, source=0, lengths=lengths)
    assert kept == [i for i, (tail, head) in enumerate(links) if far[head] > far[tail]]
    on_the_way = away(links, source=0, target=nodes - 1, lengths=lengths)
    walks = list(paths_of([links[i] for i in kept], 0, nodes - 1))
    assert on_the_way == sorted({kept[i] for walk in walks for i in walk})
    K = FlowPolytope.from_edges([links[i] for i in on_the_way], source=0, target=nodes - 1)
    assert K.lmo(np.array(lengths)[on_the_way]) @ np.array(lengths)[on_the_way] == pytest.approx(
        far[-1]
    )
    assert count_paths([links[i] for i in kept], source=0, target=nodes - 1) == len(walks)


@given(seed=seeds, nodes=st.integers(2, 7), density=st.sampled_from([0.3, 0.9, 1.5]))
def test_useful_links_are_those_some_path_takes(seed, nodes, density):
    links = random_edges(np.random.default_rng(seed), nodes, density)
    walks = list(paths_of(links, 0, nodes - 1))
    assert useful(links, source=0, target=nodes - 1) == sorted({i for walk in walks for i in walk})
    assert count_paths(links, source=0, target=nodes - 1) == len(walks)


def test_useful_links_may_go_round_in_circles():
    links = [
        ("s", "a"),
        ("a", "b"),
        ("b", "a"),
        ("b", "t"),
        ("t", "x"),
        ("y", "a"),
        ("a", "dead end"),
    ]
    assert useful(links, source="s", target="t") == [0, 1, 2, 3]
    assert useful(iter(links), source="a", target="t") == [1, 2, 3]


def test_any_number_of_paths_is_counted_exactly():
    ladder = [link for i in range(300) for link in ((i, i + 1), (i, i + 1), (i, i + 1))]
    assert count_paths(ladder, source=0, target=300) == 3**300
    assert count_paths(iter([("s", "t")]), source="s", target="t") == 1


@pytest.mark.parametrize(
    ("call", "error", "setting"),
    [
        (lambda: away([(0, 1)], source=2, target=1), UnknownNode, "source"),
        (lambda: away([(0, 1)], source=0, target="x"), UnknownNode, "target"),
        (lambda: leading_away([(0, 1)], source=[0]), WrongType, "source"),
        (lambda: away([(0, 1), (2, 3)], source=0, target=3), UnreachableTarget, "target"),
        (lambda: useful([(0, 1), (2, 1)], source=0, target=2), UnreachableTarget, "target"),
        (lambda: away([(0, 1)], source=0, target=1, lengths=[0.0]), InvalidInput, "lengths"),
        (lambda: leading_away([(0, 1)], source=0, lengths=[np.nan]), InvalidInput, "lengths"),
        (lambda: leading_away([(0, 1)], source=0, lengths=[1.0, 2.0]), WrongShape, "lengths"),
        (lambda: count_paths([(0, 1), (1, 0), (1, 2)], source=0, target=2), CyclicGraph, "edges"),
        (lambda: count_paths([(0, 1), (2, 1)], source=0, target=2), UnreachableTarget, "target"),
    ],
)
def test_what_cannot_be_done_gets_its_sentence(call, error, setting):
    with refused(error, setting):
        call()


# --- every network of the Topology Zoo ------------------------------------------------------------


def networks() -> dict[str, list[tuple[str, str, str]]]:
    """The links of every network, each with its speed where the record knows it."""
    found: dict[str, list[tuple[str, str, str]]] = {}
    with gzip.open(record(RECORDS["zoo"]), "rt", newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            found.setdefault(row["net"], []).append((row["u"], row["v"], row["link_speed_bps"]))
    return found


def as_gml(links) -> str:
    """As the Zoo's own files are: not directed, without a word on parallel links, speeds where they
    are known.
    """
    nodes = sorted({int(node) for u, v, _ in links for node in (u, v)})
    speeds = [f"LinkSpeedRaw {float(speed)}" if speed else "" for _, _, speed in links]
    lines = [f'  node [ id {node} label "{node}" ]' for node in nodes]
    lines += [
        f"  edge [ source {u} target {v} {speed} ]"
        for (u, v, _), speed in zip(links, speeds, strict=True)
    ]
    return "\n".join(["graph [", "  directed 0", *lines, "]"])


def as_csv(links) -> str:
    return "u,v,LinkSpeedRaw\n" + "".join(f"{u},{v},{speed}\n" for u, v, speed in links)


@needs_records
def test_every_network_of_the_zoo_is_read_alike_from_gml_and_csv(tmp_path):
    pytest.importorskip("networkx")
    parts = parallel = 0
    for name, links in networks().items():
        between = [(u, v) for u, v, _ in links if u != v]
        (tmp_path / f"{name}.gml").write_text(as_gml(links))
        (tmp_path / f"{name}.csv").write_text(as_csv(links))
        gml = read_graph(tmp_path / f"{name}.gml", numbers=["LinkSpeedRaw"], missing=1.0)
        table = read_graph(
            tmp_path / f"{name}.csv", numbers=["LinkSpeedRaw"], missing=1.0, directed=False
        )
        for graph in (gml, table):
            assert graph.loops == len(links) - len(between)
            assert len(graph.links) == 2 * len(between)
            assert Counter(frozenset(link) for link in graph.links) == Counter(
                frozenset(link) for link in between * 2
            )
        assert Counter(
            zip(map(frozenset, gml.links), gml.numbers["LinkSpeedRaw"], strict=True)
        ) == Counter(zip(map(frozenset, table.links), table.numbers["LinkSpeedRaw"], strict=True))
        source = table.links[0][0]
        distance, _ = shortest(table.links, [1.0] * len(table.links), source)
        nodes = {node for link in table.links for node in link}
        parts += len(distance) < len(nodes)
        parallel += len(set(map(frozenset, between))) < len(between)
        target = max(distance, key=distance.__getitem__)
        kept = table.dag(source, target)
        K = FlowPolytope.from_edges([table.links[i] for i in kept], source=source, target=target)
        assert K.lmo(np.ones(K.shape)).sum() == distance[target]
        assert len(K.dag.arcs) == len(kept)
        assert (
            count_paths([table.links[i] for i in kept], source=source, target=target)
            >= K.dimension + 1
        )
        for other in nodes - set(distance):
            with pytest.raises(UnreachableTarget):
                table.dag(source, other)
    assert parts == 6  # the others in parts have single nodes, which no link touches
    assert parallel > 50
