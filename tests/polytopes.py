"""Small polytopes with all their vertices, by brute force, and graphs to route on."""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Iterator

import numpy as np

from tidewolf.projection import ActiveSet
from tidewolf.sets import (
    Box,
    CappedSimplex,
    ConvexSet,
    FlowPolytope,
    Shrunk,
    Simplex,
    Translated,
    VertexHull,
)


def vertices_of(K: ConvexSet) -> np.ndarray:
    """Every vertex (and perhaps other members), one a row of (count, *shape)."""
    if isinstance(K, Translated | Shrunk):
        return K.offset + K.scale * vertices_of(K.K)
    if isinstance(K, Box):
        choices = itertools.product(*zip(K.lower.reshape(-1), K.upper.reshape(-1), strict=True))
        return np.array(list(choices)).reshape(-1, *K.shape)
    if isinstance(K, VertexHull):
        return np.asarray(K.points)
    if isinstance(K, Simplex):
        return np.vstack([K.total * np.eye(K.n), np.zeros((int(K.at_most), K.n))])
    if isinstance(K, CappedSimplex):
        full = [np.array(bits) * K.cap for bits in itertools.product((0.0, 1.0), repeat=K.n - 1)]
        points = [np.insert(bits, i, K.total - bits.sum()) for bits in full for i in range(K.n)]
        return np.array([x for x in points if x.min() >= -1e-12 and x.max() <= K.cap + 1e-12])
    assert isinstance(K, FlowPolytope)
    edges = [(K.nodes[t], K.nodes[h]) for t, h in zip(K.tails, K.heads, strict=True)]
    paths = list(paths_of(edges, K.nodes[K.source], K.nodes[K.target]))
    points = np.zeros((len(paths), len(edges)))
    for row, path in zip(points, paths, strict=True):
        row[list(path)] = 1.0
    return points


def paths_of(
    edges: list[tuple[Hashable, Hashable]], source: Hashable, target: Hashable
) -> Iterator[tuple[int, ...]]:
    """Every path of a DAG as the numbers of its edges, by walking all of them."""
    if source == target:
        yield ()
    for i, (tail, head) in enumerate(edges):
        if tail == source:
            yield from ((i, *rest) for rest in paths_of(edges, head, target))


def layered(layers: int, width: int) -> FlowPolytope:
    """Complete bipartite layers between s and t, and one arc straight from s to t."""
    nodes = [[(layer, i) for i in range(width)] for layer in range(layers)]
    between = [
        pair for here, there in itertools.pairwise(nodes) for pair in itertools.product(here, there)
    ]
    edges = [
        *(("s", node) for node in nodes[0]),
        *between,
        *((node, "t") for node in nodes[-1]),
        ("s", "t"),
    ]
    return FlowPolytope.from_edges(edges, source="s", target="t")


def random_edges(rng: np.random.Generator, nodes: int, density: float) -> list[tuple[int, int]]:
    """A DAG on numbers 0 .. nodes - 1 in a hidden order, parallel arcs and dead ends among them; 0
    reaches nodes - 1.
    """
    order = [0, *(1 + rng.permutation(nodes - 2)), nodes - 1]
    edges = [
        (order[i], order[j])
        for i, j in itertools.combinations(range(nodes), 2)
        for _ in range(2)
        if rng.random() < density / 2
    ]
    edges.append((0, nodes - 1))
    return [(int(tail), int(head)) for tail, head in rng.permutation(edges)]


def random_flow_polytope(seed: int, nodes: int = 6, density: float = 0.6) -> FlowPolytope:
    return FlowPolytope.from_edges(
        random_edges(np.random.default_rng(seed), nodes, density), source=0, target=nodes - 1
    )


def distances2(points: np.ndarray, y: np.ndarray) -> np.ndarray:
    """|z - y|^2 for every point z."""
    return ((points - y).reshape(len(points), -1) ** 2).sum(axis=1)


def assert_rounding_chooses_no_vertex(convert, seed):
    """Projections of targets that are off by a few last digits lead to the same members: corrective
    steps leave equal slopes, and the oracle's answer must not depend on which is lower.
    """
    rng = np.random.default_rng(seed)
    points, targets = rng.standard_normal((7, 4)), rng.standard_normal((6, 4))
    K, found = VertexHull(points).to(convert(np.zeros(1))), []
    for size in (0.0, 1e-14, 1e-14, 1e-14):
        active, members = ActiveSet.start(K), []
        for y in targets:
            near = convert(y * (1.0 + size * rng.uniform(-1.0, 1.0, 4)))
            active = active.project(K, near, tol=1e-6, budget=2).active
            members.append(np.asarray(active.x))
        found.append(members)
    for other in found[1:]:
        np.testing.assert_allclose(other, found[0], atol=1e-10)
