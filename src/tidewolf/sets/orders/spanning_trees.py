"""The spanning tree polytope of a connected graph with n nodes: the hull of its spanning trees
(Edmonds 1971).

    { x >= 0 : x(E) = n - 1,  x(E[S]) <= |S| - 1 for every set S of nodes },
    E[S] the edges within S

Oracle: Borůvka's, for weights of any sign: no sort, a few passes over ever fewer edges; ties go to
the earlier edge. A tree of the graph is a tree of each of its two-connected blocks B, with r_B + 1
nodes and m_B edges, so that the affine hull has one equation a block (a bridge is 1, a loop is 0):

    x(B) = r_B        dimension = m - blocks        tangent(d) = d - mean of d over the block

Center c: how often an edge is in a random tree, its effective resistance (Kirchhoff 1847).

    radius^2   = |c|^2 + max over trees of sum_e (1 - 2 c_e)  exact: one oracle call
    diameter^2 <= min(4 radius^2, 2 sum_B min(r_B, m_B - r_B))
        two trees of a block differ in as many edges at most

Inner radius: x_e = 0 is at c_e / sqrt(1 - 1/m_B), the inequality of S at (|S| - 1 - c(E[S])) /
|P 1_E[S]| from c, with |P 1_F|^2 = |F| - |F|^2 / m_B <= m_B / 4. Blocks of up to 12 nodes try every
S: exact. For larger ones, with degrees up to g, a lower bound:

    |S| - 1 - c(E[S])  >=  1 / (1 + g r_B).

Proof. Let S be connected (else the inequality follows from its parts'). Resistances of the edges
within S sum to |S| - 1 in G[S] (Foster 1949) and to c(E[S]) in G. A way outside S between two of
its nodes, of L <= r_B edges, is in G; adding it alone takes R/(R + L) off the sum, R >= 1/g the
resistance between its ends within S, and adding the rest of G takes off more (Rayleigh).

Excess: x(E[S]) <= |S| - 1 for every S that holds the node s means that every edge can hand its x_e
to its two ends so that s gets nothing and others at most 1 (Hakimi 1965; Cunningham 1985). For one
s after the other, what a node has too much is pushed on along shortest ways. What cannot be placed
is the largest violation. That is dear: seconds for 1,000 nodes.

Two kinds of members are cheap to recognise. A tree is given by its edges. Of the center it is known
what its edges hand to their ends: in a random tree, all directed to the root s, node u leaves by
the edge e to v with probability

    H_uu - H_uv - H_us + H_vs,      H the inverse of the Laplacian without one node, 0 there

(Burton & Pemantle 1993), both directions of e together with c_e. What nodes get too much by these
shares, and how far the shares miss c, bounds the center's excess.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated, Any, NamedTuple, final

import numpy as np

from tidewolf.core.arrays import as_direction, as_point, frozen, like, to_numpy
from tidewolf.core.errors import EmptyGraph, GraphError, WrongShape
from tidewolf.core.names import all_different
from tidewolf.core.oracle import Answer
from tidewolf.core.settings import validated
from tidewolf.core.types import Array, Int32s, Link, NDArray, Shape
from tidewolf.core.vertices import Sparse, Vertex
from tidewolf.kernels.blocks import label_blocks
from tidewolf.kernels.boruvka import closes_no_cycle, lightest_tree, subset_infeasibility
from tidewolf.sets.base import (
    ConvexSet,
    CostlyMembership,
    LinearDescription,
    Polyhedral,
    Relaxable,
    clipped,
    membership_tolerance,
)
from tidewolf.sets.graphs.nodes import first_names, number_nodes
from tidewolf.sets.graphs.settings import Links, NodeNames

_FEW_NODES = 12
_DUST = 1e-15
"""Of the largest entry: amounts that are not worth moving."""


class Blocks(NamedTuple):
    """The block of every edge and the connected part of every node, numbered from 0."""

    of_edge: Int32s
    part_of_node: Int32s
    number: int


class Incidence(NamedTuple):
    """Edges at node v are edges[first[v]] .. edges[first[v + 1]]; a loop is there twice."""

    first: Int32s
    edges: Int32s


def incidence(ends: Int32s, nodes: int) -> Incidence:
    """The edges at every node."""
    touched = ends.T.reshape(-1)
    by_node = np.argsort(touched, kind="stable")
    first = np.searchsorted(touched[by_node], np.arange(nodes + 1)).astype(np.int32)
    return Incidence(first, (by_node % len(ends)).astype(np.int32))


def blocks(ends: Int32s, nodes: int) -> Blocks:
    """The two-connected blocks and the parts of a graph whose edges are the rows of `ends`
    (Hopcroft and Tarjan 1973): edges on a common cycle share a block.

    A depth-first walk numbers the nodes; `low` is the smallest number that a node's part of the
    walk reaches by one edge back. If a child's low is not below its parent's number, the edges
    walked since the child was reached are a block. A bridge is a block of one edge, parallel edges
    are a cycle, and a loop is a block by itself.
    """
    near = incidence(ends, nodes)
    of_edge, part = np.full(len(ends), -1, dtype=np.int32), np.full(nodes, -1, dtype=np.int32)
    count = int(label_blocks(ends, near.first, near.edges, of_edge, part))
    loops = np.flatnonzero(of_edge < 0)
    of_edge[loops] = np.arange(count, count + len(loops))
    return Blocks(of_edge, part, count + len(loops))


class TreeBlock(NamedTuple):
    """A block with a choice: its edges, and their ends as numbers 0 .. nodes - 1."""

    edges: Int32s
    ends: Int32s
    nodes: int


@final
@dataclass(init=False, frozen=True, eq=False, repr=False)
class SpanningTrees(ConvexSet, Polyhedral, Relaxable, CostlyMembership):
    """Spanning trees of a connected graph; point[i] says how much of edge i is taken.

    Radius and dimension exact; inner radius exact where blocks have up to 12 nodes, else a lower
    bound; diameter an upper bound. `center` costs the cube of the nodes in the largest block.

    Parameters
    ----------
    edges : iterable of tuple of Hashable
        The edges of a connected graph, pairs of hashable names; loops stay at 0. Or a networkx
        graph, or a frame with columns tail and head.
    nodes : sequence of Hashable, default ()
        What the nodes are called. None given: as the edges call them.

    Examples
    --------
    >>> K = tw.sets.SpanningTrees([("a", "b"), ("b", "c"), ("c", "a")])
    >>> K.lmo(np.array([1.0, 3.0, 2.0]))
    array([1., 0., 1.])
    """

    edges: Int32s
    nodes: tuple[Hashable, ...] = field(default=(), metadata={"label": True})

    @validated
    def __init__(
        self,
        edges: Annotated[
            Iterable[Link],
            Links(
                "The edges of a connected graph, pairs of hashable names; loops stay at 0. Or a "
                "networkx graph, or a frame with columns tail and head.",
                directed=False,
            ),
        ],
        nodes: Annotated[
            Sequence[Hashable],
            NodeNames("What the nodes are called. None given: as the edges call them."),
        ] = (),
    ) -> None:
        names, tails, heads = number_nodes(edges)
        if len(tails) == 0:
            raise EmptyGraph(
                "The graph has no edges; a spanning tree needs at least one.", setting="edges"
            )
        object.__setattr__(self, "edges", frozen(np.stack([tails, heads], axis=1)))
        called = nodes or names
        if len(called) != len(names):
            raise WrongShape(
                f"{len(called)} names were given for the {len(names)} nodes that the edges touch.",
                setting="nodes",
            )
        object.__setattr__(self, "nodes", called)
        parts = self._blocks.part_of_node
        if parts.max() > 0:
            named = "; ".join(
                first_names([self.nodes[v] for v in np.flatnonzero(parts == p)])
                for p in range(min(3, parts.max() + 1))
            )
            more = f"; and {parts.max() - 2} more" if parts.max() > 2 else ""
            raise GraphError(
                f"The graph falls into {parts.max() + 1} parts ({named}{more}), and no tree spans "
                "it: connect them, or make a set of each.",
                setting="edges",
            )

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The edges, such as "a - b"."""
        return all_different(f"{self.nodes[a]} - {self.nodes[b]}" for a, b in self.edges.tolist())

    def __repr__(self) -> str:
        return (
            f"SpanningTrees({len(self.edges)} edges, {len(self.nodes)} nodes, dimension "
            f"{self.dimension})"
        )

    @property
    def shape(self) -> Shape:
        return (len(self.edges),)

    @property
    def dimension(self) -> int:
        return len(self.edges) - self._blocks.number

    @cached_property
    def center(self) -> Array:
        return self._centered[0]

    @cached_property
    def _centered(self) -> tuple[Array, float]:
        """The center, and what its excess is at most."""
        c, infeasibility = np.ones(self.shape), 0.0
        c[self._loops] = 0.0
        for edges, ends, nodes in self._blocks_with_choice():
            laplacian = np.zeros((nodes, nodes))
            a, b = ends.T
            np.add.at(laplacian, (np.concatenate([a, b]), np.concatenate([a, b])), 1.0)
            np.add.at(laplacian, (np.concatenate([a, b]), np.concatenate([b, a])), -1.0)
            inverse = np.zeros((nodes, nodes))
            inverse[:-1, :-1] = np.linalg.inv(laplacian[:-1, :-1])
            resistance = inverse[a, a] - 2.0 * inverse[a, b] + inverse[b, b]
            c[edges] = resistance * ((nodes - 1) / resistance.sum())
            infeasibility += float(np.abs(c[edges] - resistance).sum()) + _handed_beyond(
                inverse, a, b
            )
        off = abs(float(c.sum()) - (len(self.nodes) - 1))
        return frozen(c), max(infeasibility, off, -float(c.min()))

    @cached_property
    def radius(self) -> float:
        c = to_numpy(self.center)
        return math.sqrt(max(0.0, float(c @ c) + float((1.0 - 2.0 * c)[self._tree(c)].sum())))

    @cached_property
    def diameter(self) -> float:
        differ = sum(
            min(nodes - 1, len(edges) - nodes + 1) for edges, _, nodes in self._blocks_with_choice()
        )
        return min(2.0 * self.radius, math.sqrt(2.0 * differ))

    @cached_property
    def inner_radius(self) -> float:
        c = to_numpy(self.center)
        return min(
            (_block_inner_radius(block, c[block.edges]) for block in self._blocks_with_choice()),
            default=0.0,
        )

    def tangent(self, direction: Array) -> Array:
        direction = as_direction(direction, self.shape)
        d, label = to_numpy(direction), self._blocks.of_edge
        means = np.bincount(label, d) / np.bincount(label)
        return like(d - means[label], direction)

    def infeasibility(self, x: Array) -> float:
        """The largest negative entry, error of the sum, entry of a loop, or violated inequality of
        a set of nodes.
        """
        x = to_numpy(as_point(x, self.shape, "The point")).astype(np.float64)
        off = abs(float(x.sum()) - (len(self.nodes) - 1))
        looped = float(np.max(x[self._loops], initial=0.0))
        amounts = np.maximum(x, 0.0)
        amounts[self._loops] = 0.0
        dust = _DUST * max(1.0, float(amounts.max()))
        beyond = subset_infeasibility(amounts, self.edges, *self._incidence, dust)
        return max(0.0, -float(x.min()), off, looped, float(beyond))

    def vertex_infeasibility(self, vertex: Vertex) -> float:
        """0 for a tree, a bound known beforehand for the center up to rounding, else
        `infeasibility`.
        """
        if isinstance(vertex, Sparse) and self._is_tree(vertex.indices, vertex.values):
            return 0.0
        point, (center, bound) = vertex.dense(np.empty(0)), self._centered
        near = bound + float(np.abs(point - center).sum())
        return (
            near if near <= membership_tolerance(point, self.radius) else self.infeasibility(point)
        )

    def _is_tree(self, edges: Int32s, values: NDArray) -> bool:
        if len(edges) != len(self.nodes) - 1 or not bool((values == 1.0).all()):
            return False
        known = edges.min(initial=0) >= 0 and edges.max(initial=0) < len(self.edges)
        return bool(known and closes_no_cycle(edges, self.edges, len(self.nodes)))

    def answer(self, direction: Array, warm: Array | None = None) -> Answer:
        tree = self._tree(to_numpy(direction))
        return Answer(Sparse(self.shape, tree, np.ones(len(tree))))

    def atom(self, point: Array) -> Vertex:
        return Sparse.of(point)

    def relax(self, y: Array) -> Array:
        """The nearest point with entries between 0 and 1, loops at 0."""
        upper = np.ones(self.shape)
        upper[self._loops] = 0.0
        return clipped(y, self.shape, 0.0, upper)

    def description(self) -> LinearDescription:
        """Every edge hands its x_e to its ends, once for every node s of its block that gets
        nothing while the others get 1 (Martin 1991).

        Variables beside x say what the first end gets, of edges that do not touch s: about r_B m_B
        for each block B.
        """
        from scipy.sparse import coo_array, eye_array

        m = len(self.edges)
        equal, most = list[Any](), list[Any]()  # rows, columns, factors
        b, width = list[float](), m
        for edges, ends, nodes in self._blocks_with_choice():
            equal.append((np.full(len(edges), len(b)), edges, np.ones(len(edges))))
            b.append(nodes - 1.0)
            for s in range(nodes):
                touching = (ends == s).any(axis=1)
                inner, outer = edges[~touching], edges[touching]
                (first, second), beyond = ends[~touching].T, ends[touching].sum(axis=1) - s
                share, one = np.arange(width, width + len(inner)), np.ones(len(inner))
                end = np.concatenate([first, second, second, beyond])
                column, factor = (
                    np.concatenate([share, inner, share, outer]),
                    np.concatenate([one, one, -one, np.ones(len(outer))]),
                )
                row = end - (end > s)
                told = row < nodes - 2  # the last node gets 1 if the others do
                equal.append((len(b) + row[told], column[told], factor[told]))
                most.append(
                    (
                        np.tile(share - m, 2),
                        np.concatenate([share, inner]),
                        np.concatenate([one, -one]),
                    )
                )
                b += [1.0] * (nodes - 2)
                width += len(inner)
        lower, upper = np.zeros(width), np.ones(width)
        lower[
            np.delete(
                np.arange(m),
                np.concatenate(
                    [self._loops, *(edges for edges, _, _ in self._blocks_with_choice())]
                ),
            )
        ] = 1.0
        upper[self._loops] = 0.0

        def matrix(parts: list[Any], height: int) -> Any:
            rows, columns, factors = (np.concatenate(part) for part in zip(*parts, strict=True))
            return coo_array((factors, (rows, columns)), shape=(height, width)).tocsc()

        if not b:
            return LinearDescription(lower, upper)
        lift = eye_array(m, width, format="csr")
        return LinearDescription(
            lower,
            upper,
            matrix(equal, len(b)),
            np.array(b),
            matrix(most, width - m),
            np.zeros(width - m),
            lift,
        )

    @classmethod
    def examples(cls) -> Sequence[SpanningTrees]:
        return (
            cls([("a", "b")]),
            cls([(0, 0), (0, 0)]),
            cls([("a", "b"), ("a", "b"), ("b", "a")]),
            cls([(0, 1), (1, 2), (2, 0), (2, 3), (3, 4), (4, 5), (5, 3), (3, 3), (4, 3)]),
            cls([(i, j) for i in range(5) for j in range(i)]),
        )

    def _tree(self, weights: NDArray) -> Int32s:
        tree = np.empty(len(self.nodes) - 1, dtype=np.int32)
        lightest_tree(frozen(weights.astype(np.float64, copy=False).view()), self.edges, tree)
        tree.sort()
        return tree

    @cached_property
    def _blocks(self) -> Blocks:
        return blocks(self.edges, len(self.nodes))

    @cached_property
    def _incidence(self) -> Incidence:
        return incidence(self.edges, len(self.nodes))

    @cached_property
    def _loops(self) -> Int32s:
        return np.flatnonzero(self.edges[:, 0] == self.edges[:, 1]).astype(np.int32)

    def _blocks_with_choice(self) -> Iterator[TreeBlock]:
        """The blocks of more than one edge."""
        by_block = np.argsort(self._blocks.of_edge, kind="stable").astype(np.int32)
        for edges in np.split(by_block, np.cumsum(np.bincount(self._blocks.of_edge))[:-1]):
            if len(edges) > 1:
                nodes, ends = np.unique(self.edges[edges], return_inverse=True)
                yield TreeBlock(edges, ends.reshape(-1, 2).astype(np.int32), len(nodes))


def _handed_beyond(inverse: NDArray, a: Int32s, b: Int32s) -> float:
    """What nodes get beyond 1, or the root beyond 0, by the shares of random trees; worst root."""
    ends, across, worst = np.concatenate([a, b]), inverse[a, b], 0.0
    to_a, to_b = inverse[a, a] - across, inverse[b, b] - across
    for root, row in enumerate(inverse):
        along = row[a] - row[b]
        given = np.bincount(ends, np.maximum(np.concatenate([to_a - along, to_b + along]), 0.0))
        given[root] += 1.0
        worst = max(worst, float(np.maximum(given - 1.0, 0.0).sum()))
    return worst


def _block_inner_radius(block: TreeBlock, c: NDArray) -> float:
    """The radius of a ball around c within a block's polytope: exact for few nodes, else a lower
    bound.
    """
    m = len(block.edges)
    above_zero = float(c.min()) / math.sqrt(1.0 - 1.0 / m)
    if block.nodes > _FEW_NODES:
        degree = int(np.bincount(block.ends.reshape(-1)).max())
        return min(above_zero, 2.0 / math.sqrt(m) / (1.0 + degree * (block.nodes - 1)))
    S = np.arange(1, 2**block.nodes - 1)
    a, b = block.ends.T
    inside = ((S[:, None] >> a) & (S[:, None] >> b) & 1).astype(np.float64)
    some = inside.any(axis=1)
    size, count = np.bitwise_count(S[some]), inside[some].sum(axis=1)
    rooms = (size - 1 - inside[some] @ c) / np.sqrt(count - count**2 / m)
    return min(above_zero, float(np.min(rooms, initial=math.inf)))
