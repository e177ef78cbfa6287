"""Flows on Topology Zoo graphs: the graph helpers, and what the streams promise."""

from __future__ import annotations

import csv
import gzip

import numpy as np
import pytest

from test_problems import arcs, breached, count_paths, flow_lp, needs_records, tightest
from tidewolf import problems
from tidewolf.core.errors import InvalidInput
from tidewolf.problems import graphs
from tidewolf.problems.data import RECORDS, record
from tidewolf.problems.zoo import MARGIN, ends, largest_part, link_rows_of

TRIANGLE = [("a", "b"), ("b", "c"), ("a", "c"), ("b", "a"), ("c", "b"), ("c", "a")]


def ends_of(problem):
    words = problem.title.split()
    return words[words.index("from") + 2], words[words.index("to") + 2]


def test_gravity_is_loads_of_products():
    rng = np.random.default_rng(3)
    lengths, pull = [1.0, 1.0, 3.0, 1.0, 1.0, 0.5], rng.uniform(1, 2, (4, 3))
    traffic = pull[:, :, None] * pull[:, None, :]
    nodes = ["a", "b", "c"]
    np.testing.assert_allclose(
        graphs.gravity(TRIANGLE, lengths, nodes, pull),
        graphs.loads(TRIANGLE, lengths, nodes, traffic),
        atol=1e-12,
    )


def test_the_ends_have_most_paths_and_no_tail_behind_them():
    link_rows = [(0, 1), (0, 2), (1, 3), (2, 3), (3, 4), (5, 0)]
    links = [*link_rows, *((v, u) for u, v in link_rows)]
    source, target, paths = ends(links, np.ones(len(links)), range(6))
    assert {source, target} in ({0, 3}, {1, 2})
    assert paths == 2


def test_the_largest_part_is_taken():
    assert largest_part([(0, 1), (2, 3), (3, 4), (7, 8)]) == [(2, 3), (3, 4)]


@needs_records
@pytest.mark.parametrize(("name", "shape", "paths"), [("geant", (36,), 73), ("uunet", (42,), 414)])
def test_networks_have_many_paths_and_the_limits_bind(name, shape, paths):
    for seed in (1,):
        problem = problems.named(name)(seed=seed)
        source, target = ends_of(problem)
        assert (problem.name, len(problem), problem.shape) == (name, 2000, shape)
        assert count_paths(arcs(problem), source, target) == paths
        free, best = (
            flow_lp(problem, source, target),
            flow_lp(problem, source, target, tightest(problem)),
        )
        assert best.status == 0
        assert breached(problem, free.x) > 0.9
        assert 1.05 < best.fun / free.fun < 1.25


@needs_records
@pytest.mark.parametrize("network", ["Dfn", "Arnes"])
def test_some_flow_always_fits_and_capacities_move(network):
    problem = problems.zoo(300, seed=4, network=network)
    c = problem.stream.constraints.c
    assert flow_lp(problem, *ends_of(problem), tightest(problem) - 0.5 * MARGIN).status == 0
    assert c.min() >= MARGIN
    assert (c.max(axis=0) - c.min(axis=0)).max() > 0.2


@needs_records
def test_networks_with_parallel_links_loops_and_several_parts_make_problems():
    with gzip.open(record(RECORDS["zoo"]), "rt", newline="") as file:
        names = sorted({row["net"] for row in csv.DictReader(file)})
    made = 0
    for name in names[::24]:
        try:
            problem = problems.zoo(5, network=name)
        except InvalidInput:  # a tree
            continue
        made += 1
        assert problem.K.infeasibility(problem.K.center) < 1e-9
        assert problem.stream.constraints.c.min() >= MARGIN
    assert made > 7


def test_a_missing_or_broken_record_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv("TIDEWOLF_DATA", str(tmp_path))
    with pytest.raises(
        InvalidInput, match=r"zoo_edges\.csv\.gz is not in .*; set TIDEWOLF_DATA to the folder"
    ):
        problems.geant()
    (tmp_path / "zoo_edges.csv.gz").write_bytes(b"not compressed")
    with pytest.raises(
        InvalidInput, match=r"zoo_edges\.csv\.gz cannot be read .*; set TIDEWOLF_DATA"
    ):
        problems.uunet()
    with gzip.open(tmp_path / "zoo_edges.csv.gz", "wt") as file:
        file.write("net,u,v\nLoop,1,1\nPair,1,0\nPair,0,1\n")
    assert link_rows_of("Pair") == [(0, 1)]
    with pytest.raises(InvalidInput, match="Pair has a single path between any two nodes"):
        problems.zoo(network="Pair")
    with pytest.raises(InvalidInput, match="Loop has no link between two nodes"):
        link_rows_of("Loop")
