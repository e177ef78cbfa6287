"""Edges of a graph: matchings of a bipartite graph, spanning trees of a connected one."""

import math
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated, Any, Self, final

import numpy as np

from tidewolf.core import errors, lazy, oracle, settings, vertices
from tidewolf.core.arguments import all_different, listed
from tidewolf.core.arrays import frozen, like, to_numpy
from tidewolf.core.types import Array, Int32s, Link, NDArray, Shape
from tidewolf.kernels.orders import lightest_tree, subset_infeasibility
from tidewolf.sets import base, graphs


class _EdgeSet(base.SparseSet, base.Boxed):
    """Abstract: some edges of a graph; point[i] says how much of edge i is taken."""

    edges: Int32s

    @property
    def shape(self) -> Shape:
        return (len(self.edges),)

    def _farthest(self, chosen: Int32s) -> float:
        c = to_numpy(self.center)
        return math.sqrt(max(0.0, float(c @ c) + float((1.0 - 2.0 * c)[chosen].sum())))


def _require_names(names: Sequence[Hashable], count: int, setting: str) -> None:
    words = f"{setting} must be one name for each of {count} nodes, not {len(names)}."
    errors.require(len(names) == count, errors.WrongShape, words, setting)


# Matchings of a bipartite graph: edges no two of which share a node, or that together touch every
# node once (`perfect`).
#
#     { x >= 0 : the edges at every node sum to at most 1 }        perfect: to 1
#
# the hull of the matchings (Birkhoff 1946, for any bipartite graph). Oracle: an assignment of least
# cost in the table of left and right nodes. At most: a cell costs min(d_e, 0) of its cheapest edge
# e, or 0 without one, and cells that cost less than 0 are the matching: every matching completes to
# an assignment of the same cost. Perfect: a cell without an edge is closed.
#
# At most: nothing is fixed, dimension m. Center: t everywhere, with g the most edges at a node and
# t = 1/(g + sqrt g), as far from x_e = 0 as from the inequality of that node; a node of k edges is
# at (1 - k t)/sqrt k, never less: inner_radius = t, exact.
#
# Perfect: edges in no perfect matching are 0. The center is the mean of matchings, each with as
# many edges not met before as possible, until there are none; those never met are in none. With m
# edges, N nodes and k connected parts left: dimension = m - N + k, `tangent` is the projection on
# circulations (left to right) of those edges, inner_radius = min_e c_e / |P e_e|, exact up to 600
# nodes, else min_e c_e.
#
#     radius^2   = |c|^2 + max over matchings of sum_e (1 - 2 c_e)          exact: one oracle call
#     diameter^2 = the most edges in one of two matchings but not in both   exact: a linear program
#
# of which p says which edges are in one or both, q which are in both: max sum(p) - sum(q) with p, q
# in [0, 1] and p + q summing to 2 (or to at most 2) at every node. Its vertices are whole, and a
# bipartite graph with degrees of at most 2 is the sum of two matchings (König 1916).


@final
@dataclass(init=False, frozen=True, eq=False, repr=False)
class Matching(_EdgeSet):
    """Matchings of a bipartite graph; point[i] says how much of edge i is taken.

    A name on the left and the same name on the right are two nodes. Geometry exact, but for the
    inner radius of perfect matchings on more than 600 nodes, a lower bound. The oracle's table has
    a cell for every left and right node.

    Parameters
    ----------
    edges : iterable of tuple of Hashable
        The edges of a bipartite graph, pairs (left, right) of any hashable names; parallel
        edges are separate entries of a point. Or a networkx graph whose edges go from left to
        right, or a frame with columns tail and head.
    perfect : bool, default False
        Whether a matching must touch every node.
    lefts : sequence of Hashable, default ()
        Names of the left nodes.
    rights : sequence of Hashable, default ()
        Names of the right nodes.

    Examples
    --------
    >>> K = tw.sets.Matching([("a", 1), ("a", 2), ("b", 1)])
    >>> K.lmo(np.array([-3.0, -2.0, -2.0]))
    array([0., 1., 1.])
    """

    edges: Int32s
    perfect: bool = False
    lefts: tuple[Hashable, ...] = field(default=(), metadata={"label": True})
    rights: tuple[Hashable, ...] = field(default=(), metadata={"label": True})

    @settings.validated
    def __init__(
        self,
        edges: Annotated[Iterable[Link], graphs.Links(directed=False)],
        perfect: Annotated[bool, settings.Flag()] = False,
        lefts: Annotated[Sequence[Hashable], graphs.NODE_NAMES] = (),
        rights: Annotated[Sequence[Hashable], graphs.NODE_NAMES] = (),
    ) -> None:
        names, tails, heads = graphs.number_nodes(edges)
        graphs.require_edges(tails, "A matching")
        columns = []
        for side, numbers, given in (("lefts", tails, lefts), ("rights", heads, rights)):
            met, place = dict.fromkeys(numbers.tolist()), np.zeros(len(names), dtype=np.int32)
            place[list(met)] = np.arange(len(met))
            columns.append(place[numbers])
            self.__dict__[side] = given or tuple(names[i] for i in met)
            _require_names(self.__dict__[side], len(met), side)
        self.__dict__.update(edges=frozen(np.stack(columns, axis=1)), perfect=perfect)
        if perfect:
            size = (len(self.lefts), len(self.rights))
            graph = lazy.sp.csr_array((np.ones(len(self.edges)), tuple(self.edges.T)), shape=size)
            partner = lazy.sp.csgraph.maximum_bipartite_matching(graph, perm_type="column")
            alone = listed([repr(self.lefts[left]) for left in np.flatnonzero(partner < 0)], 6)
            words = f"No matching is perfect: {alone or 'some right nodes'} remain alone."
            errors.require(
                size[0] == size[1] and (partner >= 0).all(), errors.EmptySet, words, "perfect"
            )

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The edges, such as "a - 1"."""
        return all_different(f"{self.lefts[a]} - {self.rights[b]}" for a, b in self.edges.tolist())

    def __repr__(self) -> str:
        kind, nodes = "perfect, " if self.perfect else "", (len(self.lefts), len(self.rights))
        sizes = f"{kind}{len(self.edges)} edges, {nodes[0]} and {nodes[1]} nodes"
        return f"Matching({sizes}, dimension {self.dimension})"

    @cached_property
    def dimension(self) -> int:
        return self._hull.dimension if self.perfect else len(self.edges)

    @cached_property
    def center(self) -> Array:
        if self.perfect:
            return frozen(self._edge_counts / (self._edge_counts.sum() / len(self.lefts)))
        most = int(np.bincount(self._touched).max())
        return frozen(np.full(self.shape, 1.0 / (most + math.sqrt(most))))

    @cached_property
    def radius(self) -> float:
        return self._farthest(self._best(2.0 * to_numpy(self.center) - 1.0))

    @cached_property
    def diameter(self) -> float:
        sums = self._sums()[:, self._open]
        both, m = lazy.sp.hstack([sums, sums]), len(self._open)
        twos = np.full(sums.shape[0], 2.0)
        rows = {"A_eq": both, "b_eq": twos} if self.perfect else {"A_ub": both, "b_ub": twos}
        found = lazy.scipy.optimize.linprog(
            np.repeat([-1.0, 1.0], m), **rows, bounds=(0.0, 1.0), method="highs"
        )
        if found.status != 0:
            raise errors.SolverFailed(f"The diameter of a Matching was not found: {found.message}")
        return math.sqrt(max(0, round(-found.fun)))

    @cached_property
    def inner_radius(self) -> float:
        c = to_numpy(self.center)[self._open]
        if not self.perfect:
            return float(c[0])
        free = c < 1.0
        return float(np.min(c[free] / self._hull.unit_norms()[free])) if free.any() else 0.0

    def tangent(self, direction: Array) -> Array:
        return like(self._hull(to_numpy(direction)), direction) if self.perfect else direction

    def infeasibility(self, x: Array) -> float:
        """The largest negative entry, node whose edges sum to too much (perfect: or too little), or
        entry of an edge no matching has.
        """
        x = to_numpy(x).astype(np.float64)
        over = np.bincount(self._touched, np.concatenate([x, x])) - 1.0
        closed = np.max(np.delete(x, self._open), initial=0.0)
        worst = float(np.max(np.abs(over) if self.perfect else over))
        return max(0.0, -float(x.min()), worst, float(closed))

    def answer(self, direction: Array, warm: Array | None = None) -> oracle.Answer:
        chosen = self._best(to_numpy(direction))
        return oracle.Answer(vertices.Sparse(self.shape, chosen, np.ones(len(chosen))))

    def description(self) -> base.LinearDescription:
        upper = np.zeros(self.shape)
        upper[self._open] = 1.0
        bounds, sums = (np.zeros(self.shape), upper), self._sums()
        ones = np.ones(sums.shape[0])
        if self.perfect:  # the last sum follows from the others
            return base.LinearDescription(*bounds, A_eq=sums[:-1], b_eq=ones[:-1])
        return base.LinearDescription(*bounds, A_ub=sums, b_ub=ones)

    @classmethod
    def examples(cls) -> Sequence[Self]:
        ladder = [("a", 1), ("a", 2), ("b", 2), ("b", 3), ("c", 3), ("c", 1), ("d", 4)]
        return (
            cls([("a", "a")]),
            cls([("a", 1)], perfect=True),
            cls([("a", 1), ("a", 1), ("b", 1), ("b", 2), ("b", 2)]),
            cls(ladder),
            cls([*ladder, ("d", 1), ("a", 1)], perfect=True),
            cls([(i, j) for i in range(3) for j in range(3)], perfect=True),
            cls([(0, 1), (0, 2), (1, 1), (1, 2), (2, 3), (2, 4), (3, 3), (3, 4)], perfect=True),
        )

    def _best(self, d: NDArray) -> Int32s:
        if not self.perfect:
            d = np.minimum(d, 0.0)
        edge_at, size = self._edge_at, (len(self.lefts), len(self.rights))
        # parallel edges: the cheapest comes last and stays, the earlier of equals
        if edge_at is None:
            order = np.argsort(d, kind="stable")[::-1]
            edge_at = np.full(size, -1, dtype=np.int32)
            edge_at[tuple(self.edges[order].T)] = order
        costs = np.full(size, np.inf if self.perfect else 0.0)
        costs[tuple(self.edges.T)] = d[edge_at[tuple(self.edges.T)]]
        cells = lazy.scipy.optimize.linear_sum_assignment(costs)
        chosen: Int32s = edge_at[cells] if self.perfect else edge_at[cells][costs[cells] < 0.0]
        chosen.sort()
        return chosen

    @cached_property
    def _edge_at(self) -> Int32s | None:
        """The edge of every cell, -1 if there is none; None if some cell has several."""
        table = np.full((len(self.lefts), len(self.rights)), -1, dtype=np.int32)
        table[tuple(self.edges.T)] = np.arange(len(self.edges))
        return table if np.count_nonzero(table >= 0) == len(self.edges) else None

    @cached_property
    def _touched(self) -> NDArray:
        return np.concatenate([self.edges[:, 0], len(self.lefts) + self.edges[:, 1]])

    def _sums(self) -> Any:
        m, nodes = len(self.edges), len(self.lefts) + len(self.rights)
        places = self._touched, np.tile(np.arange(m), 2)
        return lazy.sp.csc_array((np.ones(2 * m), places), shape=(nodes, m))

    @cached_property
    def _edge_counts(self) -> NDArray:
        """How often perfect matchings that together hold every possible edge hold each."""
        met = np.zeros(self.shape)
        while True:
            chosen = self._best(np.where(met > 0, 0.0, -1.0))
            if met[chosen].all():
                return met
            met[chosen] += 1.0

    @cached_property
    def _open(self) -> Int32s:
        counts = self._edge_counts if self.perfect else np.ones(self.shape)
        return np.flatnonzero(counts).astype(np.int32)

    @cached_property
    def _hull(self) -> graphs.HullProjection:
        left, right = np.ascontiguousarray(self.edges[self._open].T)
        ends = left, (len(self.lefts) + right).astype(np.int32)
        return graphs.HullProjection(self._open, *ends, len(self.lefts) + len(self.rights))


# The spanning tree polytope of a connected graph with n nodes: the hull of its spanning trees
# (Edmonds 1971).
#
#     { x >= 0 : x(E) = n - 1,  x(E[S]) <= |S| - 1 for every set S of nodes },
#     E[S] the edges within S
#
# Oracle: Borůvka's, for weights of any sign: no sort, a few passes over ever fewer edges; ties go
# to the earlier edge. A tree of the graph is a tree of each of its two-connected blocks B, with r_B
# + 1 nodes and m_B edges, so that the affine hull has one equation a block (a bridge is 1, a loop
# is 0):
#
#     x(B) = r_B        dimension = m - blocks        tangent(d) = d - mean of d over the block
#
# Center c: how often an edge is in a random tree, its effective resistance (Kirchhoff 1847).
#
#     radius^2   = |c|^2 + max over trees of sum_e (1 - 2 c_e)  exact: one oracle call
#     diameter^2 <= min(4 radius^2, 2 sum_B min(r_B, m_B - r_B))
#         two trees of a block differ in as many edges at most
#
# Inner radius: x_e = 0 is at c_e / sqrt(1 - 1/m_B), the inequality of S at (|S| - 1 - c(E[S])) / |P
# 1_E[S]| from c, with |P 1_F|^2 = |F| - |F|^2 / m_B <= m_B / 4. Blocks of up to 12 nodes try every
# S: exact. For larger ones, with degrees up to g, a lower bound:
#
#     |S| - 1 - c(E[S])  >=  1 / (1 + g r_B).
#
# Proof. Let S be connected (else the inequality follows from its parts'). Resistances of the edges
# within S sum to |S| - 1 in G[S] (Foster 1949) and to c(E[S]) in G. A way outside S between two of
# its nodes, of L <= r_B edges, is in G; adding it alone takes R/(R + L) off the sum, R >= 1/g the
# resistance between its ends within S, and adding the rest of G takes off more (Rayleigh).
#
# Excess: x(E[S]) <= |S| - 1 for every S that holds the node s means that every edge can hand its
# x_e to its two ends so that s gets nothing and others at most 1 (Hakimi 1965; Cunningham 1985).
# For one s after the other, what a node has too much is pushed on along shortest ways. What cannot
# be placed is the largest violation. That is dear: seconds for 1,000 nodes.
#
# Two kinds of members are cheap to recognise. A tree is given by its edges. Of the center it is
# known what its edges hand to their ends: in a random tree, all directed to the root s, node u
# leaves by the edge e to v with probability
#
#     H_uu - H_uv - H_us + H_vs,      H the inverse of the Laplacian without one node, 0 there
#
# (Burton & Pemantle 1993), both directions of e together with c_e. What nodes get too much by these
# shares, and how far the shares miss c, bounds the center's excess.

_FEW_NODES = 12
# Of the largest entry: amounts that are not worth moving.
_DUST = 1e-15


@final
@dataclass(init=False, frozen=True, eq=False, repr=False)
class SpanningTrees(base.ClosedForm, _EdgeSet, base.CostlyMembership):
    """Spanning trees of a connected graph; point[i] says how much of edge i is taken.

    Radius and dimension exact; inner radius exact where blocks have up to 12 nodes, else a lower
    bound; diameter an upper bound. `center` costs the cube of the nodes in the largest block.

    Parameters
    ----------
    edges : iterable of tuple of Hashable
        The edges of a connected graph, pairs of hashable names; loops stay at 0. Or a networkx
        graph, or a frame with columns tail and head.
    nodes : sequence of Hashable, default ()
        Names of the nodes.

    Examples
    --------
    >>> K = tw.sets.SpanningTrees([("a", "b"), ("b", "c"), ("c", "a")])
    >>> K.lmo(np.array([1.0, 3.0, 2.0]))
    array([1., 0., 1.])
    """

    edges: Int32s
    nodes: tuple[Hashable, ...] = field(default=(), metadata={"label": True})

    @settings.validated
    def __init__(
        self,
        edges: Annotated[Iterable[Link], graphs.Links(directed=False)],
        nodes: Annotated[Sequence[Hashable], graphs.NODE_NAMES] = (),
    ) -> None:
        names, tails, heads = graphs.number_nodes(edges)
        graphs.require_edges(tails, "A spanning tree")
        self.__dict__.update(edges=frozen(np.stack([tails, heads], axis=1)), nodes=nodes or names)
        _require_names(self.nodes, len(names), "nodes")
        parts = graphs.connected_parts(tails, heads, len(names))
        if parts.max() > 0:
            apart = listed([repr(self.nodes[v]) for v in np.flatnonzero(parts > 0)], 6)
            words = f"A spanning tree needs a connected graph; {apart} are apart from the rest."
            raise errors.GraphError(words, setting="edges")

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The edges, such as "a - b"."""
        return all_different(f"{self.nodes[a]} - {self.nodes[b]}" for a, b in self.edges.tolist())

    def __repr__(self) -> str:
        sizes = f"{len(self.edges)} edges, {len(self.nodes)} nodes"
        return f"SpanningTrees({sizes}, dimension {self.dimension})"

    @property
    def dimension(self) -> int:
        return len(self.edges) - int(self._blocks.max()) - 1

    @cached_property
    def center(self) -> Array:
        return self._centered[0]

    @cached_property
    def _centered(self) -> tuple[Array, float]:
        c, infeasibility = np.ones(self.shape), 0.0
        c[self._loops] = 0.0
        for edges, ends, nodes in self._blocks_with_choice():
            a, b = ends.T
            inverse = np.zeros((nodes, nodes))
            inverse[:-1, :-1] = np.linalg.inv(graphs.dense_laplacian(a, b, nodes)[:-1, :-1])
            resistance = inverse[a, a] - 2.0 * inverse[a, b] + inverse[b, b]
            c[edges] = resistance * ((nodes - 1) / resistance.sum())
            infeasibility += float(np.abs(c[edges] - resistance).sum())
            infeasibility += _handed_beyond(inverse, a, b)
        off = abs(float(c.sum()) - (len(self.nodes) - 1))
        return frozen(c), max(infeasibility, off, -float(c.min()))

    @cached_property
    def _sizes(self) -> base.Sizes:
        c, several = to_numpy(self.center), list(self._blocks_with_choice())
        radius = self._farthest(self._tree(c))
        differ = sum(min(nodes - 1, len(edges) - nodes + 1) for edges, _, nodes in several)
        radii = (_block_inner_radius(ends, nodes, c[edges]) for edges, ends, nodes in several)
        inside = min(radii, default=0.0)
        return base.Sizes(
            self.dimension, radius, min(2.0 * radius, math.sqrt(2.0 * differ)), inside
        )

    def tangent(self, direction: Array) -> Array:
        d, label = to_numpy(direction), self._blocks
        return like(d - (np.bincount(label, d) / np.bincount(label))[label], direction)

    def infeasibility(self, x: Array) -> float:
        """The largest negative entry, error of the sum, entry of a loop, or violated inequality of
        a set of nodes.
        """
        x = to_numpy(x).astype(np.float64)
        off = abs(float(x.sum()) - (len(self.nodes) - 1))
        looped = float(np.max(x[self._loops], initial=0.0))
        amounts = np.maximum(x, 0.0)
        amounts[self._loops] = 0.0
        beyond = subset_infeasibility(
            amounts, self.edges, *self._incidence, _DUST * max(1.0, float(amounts.max()))
        )
        return max(0.0, -float(x.min()), off, looped, float(beyond))

    def vertex_infeasibility(self, vertex: vertices.Vertex) -> float:
        """0 for a tree, a bound known beforehand for the center up to rounding, else
        `infeasibility`.
        """
        if isinstance(vertex, vertices.Sparse) and self._is_tree(vertex.indices, vertex.values):
            return 0.0
        point, (center, bound) = vertex.dense(np.empty(0)), self._centered
        near = bound + float(np.abs(point - center).sum())
        sure = near <= base.membership_tolerance(point, self.radius)
        return near if sure else self.infeasibility(point)

    def _is_tree(self, edges: Int32s, values: NDArray) -> bool:
        if len(edges) != len(self.nodes) - 1 or not bool((values == 1.0).all()):
            return False
        tails, heads = self.edges[edges].T
        return not graphs.connected_parts(tails, heads, len(self.nodes)).any()

    def answer(self, direction: Array, warm: Array | None = None) -> oracle.Answer:
        tree = self._tree(to_numpy(direction))
        return oracle.Answer(vertices.Sparse(self.shape, tree, np.ones(len(tree))))

    def relax(self, y: Array) -> Array:
        """The nearest point with entries between 0 and 1, loops at 0."""
        return base.clipped(y, 0.0, (self.edges[:, 0] != self.edges[:, 1]).astype(np.float64))

    def description(self) -> base.LinearDescription:
        """Every edge hands its x_e to its ends, once for every node s of its block that gets
        nothing while the others get 1 (Martin 1991).

        Variables beside x say what the first end gets, of edges that do not touch s: about r_B m_B
        for each block B.
        """
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
                column = np.concatenate([share, inner, share, outer])
                factor = np.concatenate([one, one, -one, np.ones(len(outer))])
                row = end - (end > s)
                used = row < nodes - 2  # the last node gets 1 if the others do
                equal.append((len(b) + row[used], column[used], factor[used]))
                pairs = np.concatenate([share, inner]), np.concatenate([one, -one])
                most.append((np.tile(share - m, 2), *pairs))
                b += [1.0] * (nodes - 2)
                width += len(inner)
        chosen = [self._loops, *(edges for edges, _, _ in self._blocks_with_choice())]
        lower, upper = np.zeros(width), np.ones(width)
        lower[np.delete(np.arange(m), np.concatenate(chosen))] = 1.0  # bridges
        upper[self._loops] = 0.0

        def matrix(parts: list[Any], height: int) -> Any:
            rows, columns, factors = (np.concatenate(part) for part in zip(*parts, strict=True))
            return lazy.sp.coo_array((factors, (rows, columns)), shape=(height, width)).tocsc()

        if not b:
            return base.LinearDescription(lower, upper)
        A_eq, A_ub = matrix(equal, len(b)), matrix(most, width - m)
        lift, zero = lazy.sp.eye_array(m, width, format="csr"), np.zeros(width - m)
        return base.LinearDescription(lower, upper, A_eq, np.array(b), A_ub, zero, lift)

    @classmethod
    def examples(cls) -> Sequence[Self]:
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
    def _blocks(self) -> Int32s:
        return graphs.blocks(self.edges, len(self.nodes))

    @cached_property
    def _incidence(self) -> tuple[Int32s, Int32s]:
        """`first` and `edges`: edges at node v are edges[first[v]] .. edges[first[v + 1]]; a loop
        is there twice.
        """
        touched = self.edges.T.reshape(-1)
        by_node = np.argsort(touched, kind="stable")
        first = np.searchsorted(touched[by_node], np.arange(len(self.nodes) + 1)).astype(np.int32)
        return first, (by_node % len(self.edges)).astype(np.int32)

    @cached_property
    def _loops(self) -> Int32s:
        return np.flatnonzero(self.edges[:, 0] == self.edges[:, 1]).astype(np.int32)

    def _blocks_with_choice(self) -> Iterator[tuple[Int32s, Int32s, int]]:
        """Of each block with a choice the edges, their ends from 0 on, and the number of nodes."""
        by_block = np.argsort(self._blocks, kind="stable").astype(np.int32)
        for edges in np.split(by_block, np.cumsum(np.bincount(self._blocks))[:-1]):
            if len(edges) > 1:
                nodes, ends = np.unique(self.edges[edges], return_inverse=True)
                yield edges, ends.reshape(-1, 2).astype(np.int32), len(nodes)


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


def _block_inner_radius(ends: Int32s, nodes: int, c: NDArray) -> float:
    """The radius of a ball around c within a block's polytope: exact for few nodes, else a lower
    bound.
    """
    m = len(ends)
    above_zero = float(c.min()) / math.sqrt(1.0 - 1.0 / m)
    if nodes > _FEW_NODES:
        degree = int(np.bincount(ends.reshape(-1)).max())
        return min(above_zero, 2.0 / math.sqrt(m) / (1.0 + degree * (nodes - 1)))
    S = np.arange(1, 2**nodes - 1)
    a, b = ends.T
    inside = ((S[:, None] >> a) & (S[:, None] >> b) & 1).astype(np.float64)
    some = inside.any(axis=1)
    size, count = np.bitwise_count(S[some]), inside[some].sum(axis=1)
    rooms = (size - 1 - inside[some] @ c) / np.sqrt(count - count**2 / m)
    return min(above_zero, float(np.min(rooms, initial=math.inf)))
