"""Flows of many commodities over one network, each with its own source, target and demand: a
product of scaled flow polytopes.

    K = { x = (x_1, .., x_k) :
        x_j / demand_j is a unit flow from source_j to target_j on the links that j may use }

A point has one entry for each pair (commodity, link it can use), commodity after commodity, links
in their given order; a link on no way from source_j to target_j has no entry for j. What a link
carries in all is `loads(x) = incidence @ x`, so a cost w on links is the direction
`per_link(w) = incidence' w`, and "no link above c" is `functions.MaxAffine.one(incidence.toarray(),
c)`.

Oracle: a shortest path for each commodity, all in one pass. With c_j, R_j, L_j, r_j of commodity
j's unit flows as in flow_polytope.py,

    center       = (demand_j c_j)
    tangent        commodity by commodity
    dimension    = sum of those with a demand
    radius^2     = sum_j demand_j^2 R_j^2                            exact
    diameter^2  <= sum_j demand_j^2 min(4 R_j^2, 2 L_j)
    inner_radius = min_j demand_j r_j, over those with a choice      exact as r_j is
    factors        the commodities
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated, Any, NamedTuple, final

import numpy as np

from tidewolf.core.arrays import as_direction, as_point, frozen, like, to_numpy
from tidewolf.core.errors import InvalidInput, NotAMember, WrongShape
from tidewolf.core.names import all_different, listed
from tidewolf.core.oracle import Answer
from tidewolf.core.settings import names_in_files
from tidewolf.core.types import Array, Floats, Int32s, Int64s, Lengths, NDArray, Shape
from tidewolf.core.vertices import Sparse, Vertex
from tidewolf.kernels.dag import flow_infeasibility, shortest_paths
from tidewolf.sets.base import (
    ConvexSet,
    Factors,
    LinearDescription,
    Polyhedral,
    Relaxable,
    clipped,
)
from tidewolf.sets.flows.commodities import links_used
from tidewolf.sets.flows.flow_polytope import Path, path_nodes
from tidewolf.sets.graphs.dag import (
    ON_EVERY_PATH,
    Dag,
    as_tolerance,
    build_dag,
    incidence_matrix,
    is_reached_without,
    weighted_paths,
)
from tidewolf.sets.graphs.laplacian import HullProjection
from tidewolf.sets.graphs.nodes import link_names, number_nodes, require_places
from tidewolf.sets.graphs.settings import (
    Commodities,
    Commodity,
    Demands,
    GraphLinks,
    Indices,
    LinkLengths,
    NumberedNames,
)


class Stack(NamedTuple):
    """The graphs of all commodities end to end: positions and arcs of one, then of the next."""

    begins: Int32s
    """commodity j has positions begins[j] (its source) .. begins[j + 1] - 1 (its target)"""
    arcs: Int32s
    """entries of a point, commodity by commodity, sorted by head position"""
    tails: Int32s
    heads: Int32s
    first: Int32s
    """arcs into position v are first[v] .. first[v + 1]"""


@final
@dataclass(frozen=True, eq=False, repr=False)
class MultiFlow(ConvexSet, Polyhedral, Relaxable):
    """Flows of many commodities; point[i] is what commodity `owner[i]` sends over link `links[i]`.

    Make one with `from_edges`. Geometry as that of each commodity's flows: radius and dimension
    exact, diameter an upper bound, inner radius exact up to 600 nodes.

    Parameters
    ----------
    tails : array
        The number of the node where each link begins.
    heads : array
        The number of the node where each link ends.
    sources : array
        The number of the node where each commodity starts.
    targets : array
        The number of the node where each commodity is wanted.
    demands : tuple of float
        How much of each commodity must go.
    starts : array
        The entries of commodity j are those from starts[j] to starts[j + 1] - 1.
    links : array
        The link of each entry of a point.
    nodes : tuple of Hashable
        What the nodes are called, by their numbers.

    Examples
    --------
    >>> links = [("s", "a"), ("a", "t"), ("s", "t")]
    >>> K = tw.sets.MultiFlow.from_edges(links, [("s", "t", 2.0), ("s", "a", 1.0)])
    >>> K.loads(K.lmo(K.per_link(np.array([1.0, 1.0, 3.0]))))
    array([3., 2., 0.])
    """

    tails: Annotated[Int32s, Indices("The number of the node where each link begins.")]
    heads: Annotated[Int32s, Indices("The number of the node where each link ends.")]
    sources: Annotated[Int32s, Indices("The number of the node where each commodity starts.")]
    targets: Annotated[Int32s, Indices("The number of the node where each commodity is wanted.")]
    demands: Annotated[tuple[float, ...], Demands("How much of each commodity must go.")]
    starts: Annotated[
        Int32s,
        Indices("The entries of commodity j are those from starts[j] to starts[j + 1] - 1."),
    ]
    links: Annotated[Int32s, Indices("The link of each entry of a point.")]
    nodes: NumberedNames = field(metadata={"label": True})

    @classmethod
    @names_in_files
    def from_edges(
        cls,
        edges: GraphLinks,
        commodities: Annotated[
            Iterable[Commodity | tuple[Any, ...]],
            Commodities(
                "What must go from where to where, each a Commodity or (source, target, demand); "
                "or a frame with such columns."
            ),
        ],
        *,
        lengths: Annotated[
            Lengths | None,
            LinkLengths(
                "How long each link is, above 0: a commodity uses the links that lead away from "
                "its source by length, so that the network may have cycles and commodities take a "
                "cable in opposite ways. None: what a commodity may use must be free of cycles."
            ),
        ] = None,
    ) -> MultiFlow:
        """Flows of many commodities over links between named nodes.

        Parameters
        ----------
        edges : iterable of tuple of Hashable
            The links of the graph, pairs (tail, head) of any hashable names; parallel links are
            separate. Or a networkx graph, whose undirected edges are a link each way, or a frame of
            pandas or polars with columns tail and head.
        commodities : iterable of Commodity or tuple
            What must go from where to where, each a Commodity or (source, target, demand); or a
            frame with such columns.
        lengths : sequence of float or array, optional
            How long each link is, above 0: a commodity uses the links that lead away from its
            source by length, so that the network may have cycles and commodities take a cable in
            opposite ways. None: what a commodity may use must be free of cycles.

        Examples
        --------
        >>> links = [("s", "a"), ("a", "t"), ("s", "t")]
        >>> K = tw.sets.MultiFlow.from_edges(links, [("s", "t", 2.0), ("s", "a", 1.0)])
        >>> K.loads(K.lmo(K.per_link(np.array([1.0, 1.0, 3.0]))))
        array([3., 2., 0.])
        """
        asked: Sequence[Any] = tuple(commodities)
        nodes, tails, heads = number_nodes(edges)
        used = links_used(asked, tails, heads, nodes, lengths)
        return cls(
            tails,
            heads,
            np.array([nodes.index(commodity.source) for commodity in asked], dtype=np.int32),
            np.array([nodes.index(commodity.target) for commodity in asked], dtype=np.int32),
            tuple(commodity.demand for commodity in asked),
            np.cumsum([0, *map(len, used)]).astype(np.int32),
            np.concatenate(used),
            nodes,
        )

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("tails", "heads", "sources", "targets"):
            require_places(getattr(self, name), len(self.nodes), "The numbers of nodes", name)
        require_places(self.links, len(self.tails), "The numbers of links", "links")
        starts, links, count = self.starts, self.links, len(self.demands)
        if (
            len(self.tails) != len(self.heads)
            or not len(self.sources) == len(self.targets) == count == len(starts) - 1 > 0
        ):
            raise WrongShape(
                "A MultiFlow needs a tail and a head for each link, a source, target, demand and "
                "start for each commodity."
            )
        if starts[0] != 0 or starts[-1] != len(links) or (np.diff(starts) < 1).any():
            raise InvalidInput(
                f"The entries of commodities start at 0, end at {len(links)}, and are one or more; "
                f"{starts} was given.",
                setting="starts",
            )

    def __repr__(self) -> str:
        count = len(self.demands)
        commodities = f"{count:,} commodit{'y' if count == 1 else 'ies'}"
        return (
            f"MultiFlow({commodities}, {len(self.tails):,} links, {len(self.links):,} entries, "
            f"dimension {self.dimension:,})"
        )

    @property
    def shape(self) -> Shape:
        return (len(self.links),)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Commodity and link of each entry, such as "SEA > NYC: SEA > DEN"."""
        links, sent = self._link_names, link_names(self.sources, self.targets, self.nodes)
        entries = zip(self.owner.tolist(), self.links.tolist(), strict=True)
        return all_different(f"{sent[j]}: {links[link]}" for j, link in entries)

    @cached_property
    def places(self) -> Mapping[str, Int64s]:
        """Also of links, such as "SEA > DEN": the entries of every commodity on it."""
        order = np.argsort(self.links, kind="stable")
        ends = np.searchsorted(self.links[order], np.arange(1, len(self.tails)))
        links = dict(zip(self._link_names, np.split(order, ends), strict=True))
        return links | {name: np.array([i]) for i, name in enumerate(self.names)}

    @cached_property
    def _link_names(self) -> tuple[str, ...]:
        return link_names(self.tails, self.heads, self.nodes)

    def _out_of_reach(self, entries: Int64s) -> str | None:
        cut = []
        for j, (source, target) in enumerate(zip(self.sources, self.targets, strict=True)):
            part = slice(self.starts[j], self.starts[j + 1])
            mine = entries[self.owner[entries] == j] - self.starts[j]
            links, ends = self.links[part], (int(source), int(target))
            if self.demands[j] > 0.0 and not is_reached_without(
                self.tails[links], self.heads[links], len(self.nodes), ends, mine
            ):
                cut.append(f"from {self.nodes[source]} to {self.nodes[target]}")
        return f"no path leads {listed(cut)}" if cut else None

    @cached_property
    def owner(self) -> Int32s:
        """The commodity of each entry of a point."""
        commodities = np.arange(len(self.demands), dtype=np.int32)
        repeated: Int32s = frozen(np.repeat(commodities, np.diff(self.starts)))
        return repeated

    @cached_property
    def dags(self) -> tuple[Dag, ...]:
        """The graph of each commodity in topological order; its arcs count from `starts`."""
        parts = [
            self.links[start:stop]
            for start, stop in zip(self.starts, self.starts[1:], strict=False)
        ]
        ends = zip(self.sources, self.targets, parts, strict=True)
        return tuple(
            build_dag(self.tails[part], self.heads[part], self.nodes, self.nodes[s], self.nodes[t])
            for s, t, part in ends
        )

    @cached_property
    def stack(self) -> Stack:
        """All of `dags` end to end, as the oracle reads them."""
        for j, (dag, count) in enumerate(zip(self.dags, np.diff(self.starts), strict=True)):
            if len(dag.arcs) != count:  # the kernels trust that every entry is on a way
                raise InvalidInput(
                    f"Commodity {j} has links that are on no way to its target; `from_edges` "
                    "leaves them out."
                )
        begins = np.cumsum([0, *(len(dag.order) for dag in self.dags)]).astype(np.int32)
        moved = list(zip(self.dags, begins, self.starts, strict=False))
        return Stack(
            begins,
            np.concatenate([dag.arcs + start for dag, _, start in moved]),
            np.concatenate([dag.tails + begin for dag, begin, _ in moved]),
            np.concatenate([dag.heads + begin for dag, begin, _ in moved]),
            np.append(
                np.concatenate([dag.first[:-1] + start for dag, _, start in moved]), self.starts[-1]
            ),
        )

    @cached_property
    def _demands(self) -> Floats:
        return np.array(self.demands)

    @cached_property
    def _unit(self) -> float:
        """The largest demand: squares of what is measured by it neither vanish nor overflow."""
        return max(self.demands) or 1.0

    @cached_property
    def _upper(self) -> Floats:
        """The demand behind each entry."""
        return self._demands[self.owner]

    @cached_property
    def _dimensions(self) -> Int32s:
        """Of each commodity's flows."""
        free = np.diff(self.starts) - np.diff(self.stack.begins) + 1
        return np.where(self._demands > 0, free, 0)

    @cached_property
    def dimension(self) -> int:
        return int(self._dimensions.sum())

    @cached_property
    def center(self) -> Array:
        point = np.empty(self.shape)
        for dag, start, demand in zip(self.dags, self.starts, self.demands, strict=False):
            point[start + dag.arcs] = demand * dag.covering_flow()
        return frozen(point)

    @cached_property
    def _center(self) -> Floats:
        return np.asarray(to_numpy(self.center), dtype=np.float64)

    @cached_property
    def _radii2(self) -> Floats:
        """The squared radius of each commodity's flows, measured in `_unit`."""
        c = self._center / self._unit
        gains = self._upper / self._unit - 2.0 * c
        v = self._vertex(-gains)
        squares = np.add.reduceat(c * c, self.starts[:-1]) + np.bincount(
            self.owner[v.indices], v.values / self._unit * gains[v.indices], len(self.demands)
        )
        return np.where(self._dimensions > 0, np.maximum(0.0, squares), 0.0)

    @cached_property
    def radius(self) -> float:
        return self._unit * math.sqrt(float(self._radii2.sum()))

    @cached_property
    def _diameters2(self) -> Floats:
        """A bound on the squared diameter of each commodity's flows, measured in `_unit`."""
        optional = (self._center < ON_EVERY_PATH * self._upper).astype(float)
        v = self._vertex(-optional)
        longest = np.bincount(
            self.owner[v.indices],
            (v.values / self._unit) ** 2 * optional[v.indices],
            len(self.demands),
        )
        return np.asarray(np.minimum(4.0 * self._radii2, 2.0 * longest))

    @cached_property
    def diameter(self) -> float:
        return self._unit * math.sqrt(float(self._diameters2.sum()))

    @cached_property
    def factors(self) -> Factors:
        radii, diameters = np.sqrt(self._radii2), np.sqrt(self._diameters2)
        starts = self.starts[:-1].astype(np.int64)
        return Factors(frozen(starts), frozen(self._unit * radii), frozen(self._unit * diameters))

    @cached_property
    def inner_radius(self) -> float:
        reaches = []
        for dag, start, demand, free in zip(
            self.dags, self.starts, self.demands, self._dimensions, strict=False
        ):
            if free > 0:
                c = self._center[start + dag.arcs]
                norms = HullProjection(dag.arcs, dag.tails, dag.heads, len(dag.order)).unit_norms()
                optional = c < ON_EVERY_PATH * demand
                reaches.append(
                    float(np.min(c[optional] if norms is None else c[optional] / norms[optional]))
                )
        return min(reaches, default=0.0)

    @cached_property
    def _hull(self) -> HullProjection:
        stack, sending = self.stack, (self._upper > 0)[self.stack.arcs]
        return HullProjection(
            stack.arcs[sending],
            stack.tails[sending],
            stack.heads[sending],
            int(stack.begins[-1]),
            self._grounded,
        )

    @cached_property
    def _grounded(self) -> Int32s:
        """Every target, and every position of a commodity without a demand, which has no arcs
        there.
        """
        silent = np.repeat(self._demands == 0, np.diff(self.stack.begins))
        silent[self.stack.begins[1:] - 1] = True
        return np.flatnonzero(silent).astype(np.int32)

    def tangent(self, direction: Array) -> Array:
        """Exact where the commodities' Laplacians factorise small, else to `laplacian.CG_TOLERANCE`
        relative.
        """
        direction = as_direction(direction, self.shape)
        projected = self._hull(to_numpy(direction))
        return projected if type(direction) is np.ndarray else like(projected, direction)

    def infeasibility(self, x: Array) -> float:
        """The largest negative flow or unbalanced node of a commodity; without cycles, balanced
        flows of no demand are 0.
        """
        x = to_numpy(as_point(x, self.shape, "The flow"))
        return float(
            flow_infeasibility(
                x, self.stack.arcs, self.stack.tails, self.stack.heads, self._supply.copy()
            )
        )

    @cached_property
    def _supply(self) -> Floats:
        """What each position supplies."""
        supply = np.zeros(self.stack.begins[-1])
        supply[self.stack.begins[:-1]] = self._demands
        supply[self.stack.begins[1:] - 1] = -self._demands
        return supply

    def answer(self, direction: Array, warm: Array | None = None) -> Answer:
        return Answer(self._vertex(to_numpy(as_direction(direction, self.shape))))

    def _vertex(self, weights: NDArray) -> Sparse:
        stack, positions = self.stack, int(self.stack.begins[-1])
        chosen, values = np.empty(positions, dtype=np.int32), np.empty(positions)
        graph = (stack.arcs, stack.tails, stack.first)
        count = shortest_paths(weights, graph, stack.begins, self._demands, chosen, values)
        return Sparse(self.shape, chosen[:count].copy(), values[:count].copy())

    def atom(self, point: Array) -> Vertex:
        return Sparse.of(point)

    def relax(self, y: Array) -> Array:
        """The projection on the box from no flow to the whole demand on every entry."""
        return clipped(y, self.shape, 0.0, self._upper)

    @cached_property
    def incidence(self) -> Any:
        """The sparse matrix (links, entries) of ones that adds up what a link carries of all
        commodities.
        """
        from scipy.sparse import csr_array

        return csr_array(
            (np.ones(len(self.links)), (self.links, np.arange(len(self.links)))),
            shape=(len(self.tails), len(self.links)),
        )

    def loads(self, x: Array) -> Array:
        """What every link carries: incidence @ x.

        Parameters
        ----------
        x : array
            A flow.

        Returns
        -------
        array
            An amount for each link.
        """
        x = as_point(x, self.shape, "The flow")
        return like(np.bincount(self.links, to_numpy(x), len(self.tails)), x)

    def per_link(self, w: Array) -> Array:
        """Numbers on links as a direction: <per_link(w), x> = <w, loads(x)>.

        Parameters
        ----------
        w : array
            A number for each link, such as a cost.

        Returns
        -------
        array
            A number for each entry of a point.
        """
        w = as_point(w, self.tails.shape, "The numbers on links")
        return like(to_numpy(w)[self.links], w)

    def paths(self, x: Array, *, tolerance: float = 1e-9) -> list[list[Path]]:
        """What each commodity sends along which paths, heaviest first.

        Parameters
        ----------
        x : array
            A flow.
        tolerance : float, default 1e-9
            Shares of a demand below it are left out and the rest rescaled.

        Returns
        -------
        list of list of Path
            For each commodity its paths, arcs told by their places among the links; weights sum to
            the demand. A commodity without a demand has none.

        Raises
        ------
        NotAMember
            x does not meet the demands.
        """
        x, tolerance = to_numpy(as_point(x, self.shape, "The flow")), as_tolerance(tolerance)
        if (infeasibility := self.infeasibility(x)) > max(1e-6, tolerance) * max(self.demands):
            raise NotAMember(
                "Only flows that meet their demands split into paths; this point misses doing so "
                f"by {infeasibility:.3g}."
            )
        return [
            self._paths(j, x, tolerance) if demand > 0 else []
            for j, demand in enumerate(self.demands)
        ]

    def _paths(self, j: int, x: Floats, tolerance: float) -> list[Path]:
        links, demand = self.links[self.starts[j] : self.starts[j + 1]], self.demands[j]
        found = weighted_paths(
            self.dags[j], x[self.starts[j] : self.starts[j + 1]] / demand, tolerance
        )
        ways = [(share, tuple(links[list(arcs)].tolist())) for share, arcs in found]
        return [
            Path(demand * share, way, path_nodes(way, self.tails, self.heads, self.nodes))
            for share, way in ways
        ]

    def description(self) -> LinearDescription:
        """Bounds and balances; that of each target follows from the others of its commodity."""
        n, stack = len(self.links), self.stack
        balance = incidence_matrix(stack.arcs, stack.tails, stack.heads, int(stack.begins[-1]), n)
        kept = np.delete(np.arange(stack.begins[-1]), stack.begins[1:] - 1)
        return LinearDescription(
            np.zeros(n), self._upper.copy(), A_eq=balance[kept].tocsc(), b_eq=self._supply[kept]
        )

    @classmethod
    def examples(cls) -> Sequence[MultiFlow]:
        diamond = [("s", "a"), ("s", "b"), ("a", "b"), ("a", "t"), ("b", "t"), ("s", "x")]
        ring = [(i, (i + step) % 5) for step in (1, 4) for i in range(5)]
        return (
            cls.from_edges(
                diamond,
                [("s", "t", 2.0), ("a", "t", 0.5), ("s", "b", 0.0), ("s", "t", 1.0, (0, 3))],
            ),
            cls.from_edges(
                ring,
                [(0, 2, 0.5), (1, 3, 1.0), (4, 2, 1.5), (2, 0, 1.0)],
                lengths=np.arange(1.0, 11.0),
            ),
            cls.from_edges([("s", "t")], [("s", "t", 0.0)]),
        )
