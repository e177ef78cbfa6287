"""From links to graphs without cycles: brute force on small graphs, and what files may write of
them.
"""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from polytopes import paths_of, random_edges
from refused import refused
from tidewolf.core import errors
from tidewolf.sets import FlowPolytope
from tidewolf.sets.graph_tools import away, count_paths, leading_away, shortest, useful

seeds = st.integers(0, 2**32)


def any_links(seed, nodes, count):
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
    links = [("s", "a"), ("a", "b"), ("b", "a"), ("b", "t"), ("t", "x"), ("y", "a"), ("a", "end")]
    assert useful(links, source="s", target="t") == [0, 1, 2, 3]
    assert useful(iter(links), source="a", target="t") == [1, 2, 3]


def test_any_number_of_paths_is_counted_exactly():
    ladder = [link for i in range(300) for link in ((i, i + 1), (i, i + 1), (i, i + 1))]
    assert count_paths(ladder, source=0, target=300) == 3**300
    assert count_paths(iter([("s", "t")]), source="s", target="t") == 1


@pytest.mark.parametrize(
    ("call", "error", "setting"),
    [
        (lambda: away([(0, 1)], source=2, target=1), errors.UnknownNode, "source"),
        (lambda: away([(0, 1)], source=0, target="x"), errors.UnknownNode, "target"),
        (lambda: away([(0, 1), (2, 3)], source=0, target=3), errors.UnreachableTarget, "target"),
        (lambda: useful([(0, 1), (2, 1)], source=0, target=2), errors.UnreachableTarget, "target"),
        (lambda: leading_away([(0, 1)], source=0, lengths=[1, 2]), errors.WrongShape, "lengths"),
        (lambda: leading_away([(0, 1)], source=0, lengths=[0.0]), errors.InvalidInput, "lengths"),
        (lambda: count_paths([(0, 1), (1, 0)], source=0, target=1), errors.CyclicGraph, "edges"),
    ],
)
def test_what_cannot_be_done_is_refused(call, error, setting):
    with refused(error, setting):
        call()
