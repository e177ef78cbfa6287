"""Matchings of a bipartite graph: edges no two of which share a node, or that together touch every
node once (`perfect`).

    { x >= 0 : the edges at every node sum to at most 1 }        perfect: to 1

the hull of the matchings (Birkhoff 1946, for any bipartite graph). Oracle: an assignment of least
cost in the table of left and right nodes. At most: a cell costs min(d_e, 0) of its cheapest edge e,
or 0 without one, and cells that cost less than 0 are the matching: every matching completes to an
assignment of the same cost. Perfect: a cell without an edge is closed.

At most: nothing is fixed, dimension m. Center: t everywhere, with g the most edges at a node and
t = 1/(g + sqrt g), as far from x_e = 0 as from the inequality of that node; a node of k edges is at
(1 - k t)/sqrt k, never less: inner_radius = t, exact.

Perfect: edges in no perfect matching are 0. The center is the mean of matchings, each with as many
edges not met before as possible, until there are none; those never met are in none. With m edges, N
nodes and k connected parts left: dimension = m - N + k, `tangent` is the projection on circulations
(left to right) of those edges, inner_radius = min_e c_e / |P e_e|, exact up to 600 nodes, else
min_e c_e.

    radius^2   = |c|^2 + max over matchings of sum_e (1 - 2 c_e)          exact: one oracle call
    diameter^2 = the most edges in one of two matchings but not in both   exact: a linear program

of which p says which edges are in one or both, q which are in both: max sum(p) - sum(q) with p, q
in [0, 1] and p + q summing to 2 (or to at most 2) at every node. Its vertices are whole, and a
bipartite graph with degrees of at most 2 is the sum of two matchings (König 1916).
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated, Any, final

import numpy as np

from tidewolf.core.arrays import as_direction, as_point, frozen, like, to_numpy
from tidewolf.core.errors import EmptyGraph, EmptySet, SolverFailed, WrongShape
from tidewolf.core.names import all_different
from tidewolf.core.oracle import Answer
from tidewolf.core.settings import Flag, validated
from tidewolf.core.types import Array, Int32s, Link, NDArray, Shape
from tidewolf.core.vertices import Sparse, Vertex
from tidewolf.sets.base import ConvexSet, LinearDescription, Polyhedral, Relaxable, clipped
from tidewolf.sets.graphs.laplacian import HullProjection
from tidewolf.sets.graphs.nodes import first_names, number_nodes
from tidewolf.sets.graphs.residual import connected_parts, one_node_of_each
from tidewolf.sets.graphs.settings import Links, NodeNames


@final
@dataclass(init=False, frozen=True, eq=False, repr=False)
class Matching(ConvexSet, Polyhedral, Relaxable):
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
        Whether a matching must touch every node, not at most once but once.
    lefts : sequence of Hashable, default ()
        What the left nodes are called. None given: as the edges call them.
    rights : sequence of Hashable, default ()
        What the right nodes are called. None given: as the edges call them.

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

    @validated
    def __init__(
        self,
        edges: Annotated[
            Iterable[Link],
            Links(
                "The edges of a bipartite graph, pairs (left, right) of any hashable names; "
                "parallel edges are separate entries of a point. Or a networkx graph whose edges "
                "go from left to right, or a frame with columns tail and head.",
                directed=False,
            ),
        ],
        perfect: Annotated[
            bool, Flag("Whether a matching must touch every node, not at most once but once.")
        ] = False,
        lefts: Annotated[
            Sequence[Hashable],
            NodeNames("What the left nodes are called. None given: as the edges call them."),
        ] = (),
        rights: Annotated[
            Sequence[Hashable],
            NodeNames("What the right nodes are called. None given: as the edges call them."),
        ] = (),
    ) -> None:
        names, tails, heads = number_nodes(edges)
        if len(tails) == 0:
            raise EmptyGraph(
                "The graph has no edges; a matching needs at least one to choose from.",
                setting="edges",
            )
        columns = []
        for side, numbers, given in (("lefts", tails, lefts), ("rights", heads, rights)):
            met, place = dict.fromkeys(numbers.tolist()), np.zeros(len(names), dtype=np.int32)
            place[list(met)] = np.arange(len(met))
            columns.append(place[numbers])
            called = given or tuple(names[i] for i in met)
            if len(called) != len(met):
                raise WrongShape(
                    f"{len(called)} names were given for the {len(met)} nodes that the edges have "
                    f"as {side}.",
                    setting=side,
                )
            object.__setattr__(self, side, called)
        object.__setattr__(self, "edges", frozen(np.stack(columns, axis=1)))
        object.__setattr__(self, "perfect", perfect)
        if perfect:
            self._require_a_perfect_one()

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The edges, such as "a - 1"."""
        return all_different(f"{self.lefts[a]} - {self.rights[b]}" for a, b in self.edges.tolist())

    def __repr__(self) -> str:
        kind = "perfect, " if self.perfect else ""
        return (
            f"Matching({kind}{len(self.edges)} edges, {len(self.lefts)} and {len(self.rights)} "
            f"nodes, dimension {self.dimension})"
        )

    @property
    def shape(self) -> Shape:
        return (len(self.edges),)

    @cached_property
    def dimension(self) -> int:
        return (
            len(self._open) - self._hull.nodes + len(self._grounded)
            if self.perfect
            else len(self.edges)
        )

    @cached_property
    def center(self) -> Array:
        if self.perfect:
            return frozen(self._edge_counts / (self._edge_counts.sum() / len(self.lefts)))
        most = int(np.bincount(self._touched).max())
        return frozen(np.full(self.shape, 1.0 / (most + math.sqrt(most))))

    @cached_property
    def radius(self) -> float:
        c = to_numpy(self.center)
        gains = 1.0 - 2.0 * c
        return math.sqrt(max(0.0, float(c @ c) + float(gains[self._best(-gains)].sum())))

    @cached_property
    def diameter(self) -> float:
        from scipy.optimize import linprog
        from scipy.sparse import hstack

        sums = self._sums()[:, self._open]
        both, m = hstack([sums, sums]), len(self._open)
        twos = np.full(sums.shape[0], 2.0)
        rows = {"A_eq": both, "b_eq": twos} if self.perfect else {"A_ub": both, "b_ub": twos}
        found = linprog(np.repeat([-1.0, 1.0], m), **rows, bounds=(0.0, 1.0), method="highs")
        if found.status != 0:
            raise SolverFailed(
                f"How far two matchings are apart could not be computed: {found.message}"
            )
        return math.sqrt(max(0, round(-found.fun)))

    @cached_property
    def inner_radius(self) -> float:
        c = to_numpy(self.center)
        if not self.perfect:
            return float(c[0])
        free = c[self._open] < 1.0
        if not free.any():
            return 0.0
        reach = self._hull.unit_norms()
        c = c[self._open][free]
        return float(np.min(c if reach is None else c / reach[free]))

    def tangent(self, direction: Array) -> Array:
        direction = as_direction(direction, self.shape)
        return like(self._hull(to_numpy(direction)), direction) if self.perfect else direction

    def infeasibility(self, x: Array) -> float:
        """The largest negative entry, node whose edges sum to too much (perfect: or too little), or
        entry of an edge no matching has.
        """
        x = to_numpy(as_point(x, self.shape, "The point")).astype(np.float64)
        over = np.bincount(self._touched, np.concatenate([x, x])) - 1.0
        closed = np.max(np.delete(x, self._open), initial=0.0)
        return max(
            0.0,
            -float(x.min()),
            float(np.max(np.abs(over) if self.perfect else over)),
            float(closed),
        )

    def answer(self, direction: Array, warm: Array | None = None) -> Answer:
        chosen = self._best(to_numpy(direction))
        return Answer(Sparse(self.shape, chosen, np.ones(len(chosen))))

    def atom(self, point: Array) -> Vertex:
        return Sparse.of(point)

    def relax(self, y: Array) -> Array:
        """The nearest point with entries between 0 and 1."""
        return clipped(y, self.shape, 0.0, 1.0)

    def description(self) -> LinearDescription:
        upper = np.zeros(self.shape)
        upper[self._open] = 1.0
        bounds, sums, ones = (
            (np.zeros(self.shape), upper),
            self._sums(),
            np.ones(len(self.lefts) + len(self.rights)),
        )
        if self.perfect:  # the last sum follows from the others
            return LinearDescription(*bounds, A_eq=sums[:-1], b_eq=ones[:-1])
        return LinearDescription(*bounds, A_ub=sums, b_ub=ones)

    @classmethod
    def examples(cls) -> Sequence[Matching]:
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
        """The edges of a matching of least cost, in order."""
        from scipy.optimize import linear_sum_assignment

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
        cells = linear_sum_assignment(costs)
        chosen: Int32s = edge_at[cells] if self.perfect else edge_at[cells][costs[cells] < 0.0]
        chosen.sort()
        return chosen

    @cached_property
    def _edge_at(self) -> Int32s | None:
        """The edge of every cell, -1 where there is none; None where some cell has several."""
        table = np.full((len(self.lefts), len(self.rights)), -1, dtype=np.int32)
        table[tuple(self.edges.T)] = np.arange(len(self.edges))
        return table if np.count_nonzero(table >= 0) == len(self.edges) else None

    @cached_property
    def _touched(self) -> NDArray:
        """The left node of every edge and then the right node of every edge, numbered together."""
        return np.concatenate([self.edges[:, 0], len(self.lefts) + self.edges[:, 1]])

    def _sums(self) -> Any:
        """The sparse matrix that sums the edges at every node."""
        from scipy.sparse import csc_array

        m = len(self.edges)
        return csc_array(
            (np.ones(2 * m), (self._touched, np.tile(np.arange(m), 2))),
            shape=(len(self.lefts) + len(self.rights), m),
        )

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
        """The edges that some matching holds."""
        return (
            np.flatnonzero(self._edge_counts).astype(np.int32)
            if self.perfect
            else np.arange(len(self.edges), dtype=np.int32)
        )

    @cached_property
    def _hull(self) -> HullProjection:
        return HullProjection(
            self._open, *self._ends, len(self.lefts) + len(self.rights), self._grounded
        )

    @cached_property
    def _ends(self) -> tuple[Int32s, Int32s]:
        """The left and the right node of every open edge, numbered together."""
        left, right = np.ascontiguousarray(self.edges[self._open].T)
        return left, (len(self.lefts) + right).astype(np.int32)

    @cached_property
    def _grounded(self) -> Int32s:
        """A node of each connected part."""
        return one_node_of_each(connected_parts(*self._ends, len(self.lefts) + len(self.rights)))

    def _require_a_perfect_one(self) -> None:
        from scipy.sparse import csr_array
        from scipy.sparse.csgraph import maximum_bipartite_matching

        if len(self.lefts) != len(self.rights):
            raise EmptySet(
                f"There are {len(self.lefts)} nodes on the left and {len(self.rights)} on the "
                "right; a perfect matching needs as many on either side.",
                setting="perfect",
            )
        size = (len(self.lefts), len(self.rights))
        graph = csr_array((np.ones(len(self.edges)), tuple(self.edges.T)), shape=size)
        partner = maximum_bipartite_matching(graph, perm_type="column")
        if (partner >= 0).all():
            return
        mate = {int(right): left for left, right in enumerate(partner) if right >= 0}
        crowd, wanted = [int(np.argmin(partner))], set[int]()
        # all lefts that compete, directly or in turn, with one that is left over (Hall 1935)
        for left in crowd:
            for right in graph.indices[graph.indptr[left] : graph.indptr[left + 1]].tolist():
                if right not in wanted:
                    wanted.add(right)
                    crowd.append(mate[right])
        names = first_names([self.lefts[left] for left in crowd])
        raise EmptySet(
            f"No matching is perfect: the {len(crowd)} left nodes {names} have only {len(wanted)} "
            "right nodes between them.",
            setting="perfect",
        )
