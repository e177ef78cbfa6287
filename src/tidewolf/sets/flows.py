"""Flows over graphs without cycles, of one commodity or of many."""

import math
from abc import abstractmethod
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Annotated, Any, ClassVar, NamedTuple, Self, final

import numpy as np

from tidewolf.core import arguments, settings, vertices
from tidewolf.core.arrays import as_number, as_point, frozen, like, to_numpy
from tidewolf.core.errors import CyclicGraph, InvalidInput, NotAMember, WrongShape
from tidewolf.core.lazy import sp
from tidewolf.core.oracle import Answer
from tidewolf.core.types import Array, Floats, Int32s, Int64s, Lengths, NDArray, Shape
from tidewolf.kernels.graphs import (
    circulations,
    shortest_path,
    shortest_paths,
    unit_flow_infeasibility,
)
from tidewolf.sets import base, graph_tools, graphs

# Unit flows of a directed acyclic graph from a source to a target: the convex hull of its paths.
#
#     K = { x >= 0 : a unit leaves the source; what enters a node but the target leaves it }
#
# Oracle: a shortest path, one linear pass over arcs sorted by head; weights may be negative. With A
# the node-arc incidence of the useful arcs (those on a way from source to target; all others carry
# nothing), N nodes and m arcs:
#
#     dimension  = m - N + 1       (some flow is positive on all useful arcs: the hull is Ax = b)
#     tangent(d) = d - A' (A A')^+ A d
#     center     = covering flow / its value     (positive everywhere; two sweeps)
#     radius^2   = |c|^2 + max over paths of sum_e (1 - 2 c_e)          exact: one oracle call
#     diameter   <= min(2R, sqrt(2L))
#         two paths differ in at most 2L arcs, L the longest path, arcs on every path not counted
#     inner_radius = min_e c_e / |P e_e| >= min_e c_e
#         the facets are x_e = 0; exact on small graphs, the lower bound on large ones


class Path(NamedTuple):
    """A share of a flow and the way it takes: what a router installs."""

    weight: float
    arcs: tuple[int, ...]
    nodes: tuple[Hashable, ...]


class Flows(base.SparseSet, base.Boxed):
    @property
    @abstractmethod
    def _hull(self) -> graphs.HullProjection: ...

    @cached_property
    def _center(self) -> Floats:
        return np.asarray(to_numpy(self.center), dtype=np.float64)

    def tangent(self, direction: Array) -> Array:
        """Exact on graphs whose Laplacian factorises small, else to `graphs.CG_TOLERANCE`
        relative.
        """
        projected = self._hull(to_numpy(direction))
        return projected if type(direction) is np.ndarray else like(projected, direction)

    def _as_flow(self, x: Array, tolerance: object, size: float) -> tuple[Floats, float]:
        share = min(1.0, as_number(tolerance, "tolerance of paths", least=0.0))
        flow = to_numpy(as_point(x, self.shape, "The flow")).astype(np.float64)
        if (infeasibility := self.infeasibility(flow)) > max(1e-6, share) * size:
            raise NotAMember(f"Only members split into paths; this is off by {infeasibility:.3g}.")
        return flow, share


def path_of(weight: float, arcs: tuple[int, ...], graph: Any) -> Path:
    ends = graph.tails[arcs[0]], *graph.heads[list(arcs)]
    return Path(weight, arcs, tuple(graph.nodes[end] for end in ends))


def _inner_radius(dag: graphs.Dag, center: Floats) -> float:
    count = len(dag.order)
    hull = graphs.HullProjection(dag.arcs, dag.tails, dag.heads, count, np.array([count - 1]))
    c, norms = center[dag.arcs], hull.unit_norms()
    optional = c < graphs.ON_EVERY_PATH
    return float(np.min(c[optional] / norms[optional]))


class Stack(NamedTuple):
    """The graphs of all commodities end to end: positions and arcs of one, then of the next.

    Commodity j has positions begins[j] (its source) .. begins[j + 1] - 1 (its target); `arcs` are
    entries of a point, sorted by head position within it; those into position v are first[v] ..
    first[v + 1].
    """

    begins: Int32s
    arcs: Int32s
    tails: Int32s
    heads: Int32s
    first: Int32s


class DagFlows(Flows):
    """Abstract: flows of commodities over graphs without cycles; those of one are FlowPolytope."""

    tails: Int32s
    heads: Int32s
    sources: Int32s
    targets: Int32s
    demands: tuple[float, ...]
    starts: Int32s
    links: Int32s
    nodes: tuple[Hashable, ...]

    @cached_property
    def dags(self) -> tuple[graphs.Dag, ...]:
        """The graph of each commodity in topological order; its arcs count from `starts`."""
        parts = np.split(self.links, self.starts[1:-1])
        ends = ([self.nodes[i] for i in numbers] for numbers in (self.sources, self.targets))
        return tuple(
            graphs.build_dag(self.tails[part], self.heads[part], self.nodes, source, target)
            for part, source, target in zip(parts, *ends, strict=True)
        )

    @cached_property
    def _demands(self) -> Floats:
        return np.array(self.demands)

    @abstractmethod
    def _vertex(self, weights: NDArray) -> vertices.Sparse:
        """A shortest path of each commodity."""

    def _require_places(self, *ends: str, **places: int) -> None:
        """Numbers of nodes, and others that are below so many."""
        for name, count in (dict.fromkeys(ends, len(self.nodes)) | places).items():
            most = np.max(getattr(self, name), initial=-1)
            self._require(most < count, name, f"be whole numbers from 0 to {count - 1}, not {most}")

    @property
    def shape(self) -> Shape:
        return (len(self.links),)

    @cached_property
    def _link_names(self) -> tuple[str, ...]:
        return graphs.link_names(self.tails, self.heads, self.nodes)

    def _out_of_reach(self, entries: Int64s) -> str | None:
        cut = []
        for j, dag in enumerate(self.dags):
            source, target = dag.order[[0, -1]].tolist()
            part = slice(self.starts[j], self.starts[j + 1])
            mine = entries[self.owner[entries] == j] - self.starts[j]
            links, start = np.delete(self.links[part], mine), np.arange(len(self.nodes)) == source
            left = graphs.reached(self.tails[links], self.heads[links], start)
            if self._demands[j] > 0.0 and not left[target]:
                cut.append(f"from {self.nodes[source]} to {self.nodes[target]}")
        return f"no path leads {arguments.listed(cut)}" if cut else None

    @cached_property
    def owner(self) -> Int32s:
        commodities = np.arange(len(self._demands), dtype=np.int32)
        return frozen(np.repeat(commodities, np.diff(self.starts)))

    @cached_property
    def stack(self) -> Stack:
        sizes = [(0, 0), *((len(dag.order), len(dag.arcs)) for dag in self.dags)]
        begins, ranks = np.cumsum(sizes, axis=0).astype(np.int32).T.copy()
        moved = list(zip(self.dags, begins, ranks, self.starts, strict=False))
        return Stack(
            begins,
            np.concatenate([dag.arcs + start for dag, _, _, start in moved]),
            np.concatenate([dag.tails + begin for dag, begin, _, _ in moved]),
            np.concatenate([dag.heads + begin for dag, begin, _, _ in moved]),
            np.concatenate([*[dag.first[:-1] + rank for dag, _, rank, _ in moved], ranks[-1:]]),
        )

    @property
    def _arcs(self) -> tuple[Int32s, Int32s, Int32s]:
        return self.stack.arcs, self.stack.tails, self.stack.heads

    @cached_property
    def _idle(self) -> Int64s:
        return np.delete(np.arange(len(self.links)), self.stack.arcs)

    @cached_property
    def _unit(self) -> float:
        """The largest demand: squares of what is measured by it neither vanish nor overflow."""
        return float(self._demands.max()) or 1.0

    @cached_property
    def _upper(self) -> Floats:
        """The most that fits on each entry of a point: the demand behind it."""
        upper = self._demands[self.owner]
        upper[self._idle] = 0.0
        return upper

    @cached_property
    def _supply(self) -> Floats:
        """What each position supplies; the last of each commodity draws it."""
        supply = np.zeros(self.stack.begins[-1])
        supply[self.stack.begins[:-1]] = self._demands
        supply[self.stack.begins[1:] - 1] = -self._demands
        return supply

    @cached_property
    def _dimensions(self) -> Int64s:
        free = np.array([len(dag.arcs) - len(dag.order) + 1 for dag in self.dags])
        return np.where(self._demands > 0, free, 0)

    @cached_property
    def dimension(self) -> int:
        return int(self._dimensions.sum())

    @cached_property
    def center(self) -> Array:
        point = np.zeros(self.shape)
        for dag, start, demand in zip(self.dags, self.starts, self._demands, strict=False):
            point[start + dag.arcs] = demand * dag.covering_flow()
        return frozen(point)

    @cached_property
    def _radii2(self) -> Floats:
        """The squared radius of each commodity's flows, measured in `_unit`."""
        c = self._center / self._unit
        gains = self._upper / self._unit - 2.0 * c
        v = self._vertex(-gains)
        gained = v.values / self._unit * gains[v.indices]
        squares = np.add.reduceat(c * c, self.starts[:-1])
        squares += np.bincount(self.owner[v.indices], gained, len(self._demands))
        return np.where(self._dimensions > 0, np.maximum(0.0, squares), 0.0)

    @cached_property
    def radius(self) -> float:
        return self._unit * math.sqrt(float(self._radii2.sum()))

    @cached_property
    def _diameters2(self) -> Floats:
        """A bound on the squared diameter of each commodity's flows, measured in `_unit`."""
        optional = (self._center < graphs.ON_EVERY_PATH * self._upper).astype(float)
        v = self._vertex(-optional)
        lengths = (v.values / self._unit) ** 2 * optional[v.indices]
        longest = np.bincount(self.owner[v.indices], lengths, len(self._demands))
        return np.asarray(np.minimum(4.0 * self._radii2, 2.0 * longest))

    @cached_property
    def diameter(self) -> float:
        return self._unit * math.sqrt(float(self._diameters2.sum()))

    @cached_property
    def inner_radius(self) -> float:
        centers = np.split(self._center, self.starts[1:-1])
        parts = zip(self.dags, centers, self._demands, self._dimensions, strict=True)
        several = (float(d) * _inner_radius(dag, c / d) for dag, c, d, free in parts if free > 0)
        return min(several, default=0.0)

    @cached_property
    def _hull(self) -> graphs.HullProjection:
        begins, sending = self.stack.begins, (self._upper > 0)[self.stack.arcs]
        arcs, tails, heads = (part[sending] for part in self._arcs)
        # every target, and every position of a commodity without a demand, which has no arcs there
        grounded = np.repeat(self._demands == 0, np.diff(begins))
        grounded[begins[1:] - 1] = True
        ends = tails, heads, int(begins[-1])
        return graphs.HullProjection(arcs, *ends, np.flatnonzero(grounded).astype(np.int32))

    def infeasibility(self, x: Array) -> float:
        """The largest negative flow, unbalanced node of a commodity, or flow on a link that leads
        nowhere; without cycles, balanced flows of no demand are 0.
        """
        x, (arcs, tails, heads), supply = to_numpy(x), self._arcs, self._supply
        amounts, nodes, idle = x[arcs], len(supply), np.abs(x[self._idle]).max(initial=0.0)
        left = supply - np.bincount(tails, amounts, nodes) + np.bincount(heads, amounts, nodes)
        return float(max(0.0, -amounts.min(initial=0.0), np.abs(left).max(initial=0.0), idle))

    def answer(self, direction: Array, warm: Array | None = None) -> Answer:
        return Answer(self._vertex(to_numpy(direction)))

    def description(self) -> base.LinearDescription:
        """Bounds and balances; that of each target follows from the others of its commodity."""
        n, count = self.shape[0], len(self._supply)
        kept = np.delete(np.arange(count), self.stack.begins[1:] - 1)
        balance = graphs.incidence_matrix(*self._arcs, count, n)[kept].tocsc()
        return base.LinearDescription(
            np.zeros(n), self._upper.copy(), A_eq=balance, b_eq=self._supply[kept]
        )

    def _split(self, x: Array, tolerance: float) -> list[list[Path]]:
        flow, tolerance = self._as_flow(x, tolerance, self._demands.max())
        found = list[list[Path]]()
        for j, demand in enumerate(self._demands.tolist()):
            part = slice(self.starts[j], self.starts[j + 1])
            links, shares = self.links[part], flow[part] / (demand or 1.0)
            ways = graphs.weighted_paths(self.dags[j], shares, tolerance) if demand > 0 else []
            routes = [(demand * share, tuple(links[list(arcs)].tolist())) for share, arcs in ways]
            found.append([path_of(*route, self) for route in routes])
        return found


@final
@dataclass(frozen=True, eq=False, repr=False)
class FlowPolytope(DagFlows, base.CompiledGeometry):
    """Unit flows of a directed acyclic graph; point[i] is the flow on arc i.

    Make one with `from_edges`. Radius and dimension exact; diameter an upper bound; inner radius
    exact up to 600 nodes, else a lower bound.

    Parameters
    ----------
    tails : array
        The number of the node where each arc begins.
    heads : array
        The number of the node where each arc ends.
    source : int
        The number of the node where the flow starts.
    target : int
        The number of the node where the flow ends.
    nodes : tuple of Hashable
        What the nodes are called, by their numbers.

    Examples
    --------
    >>> links = [("s", "a"), ("a", "t"), ("s", "t")]
    >>> K = tw.sets.FlowPolytope.from_edges(links, source="s", target="t")
    >>> K.lmo(np.array([1.0, 1.0, 3.0]))
    array([1., 1., 0.])
    """

    tails: Annotated[Int32s, graphs.Indices()]
    heads: Annotated[Int32s, graphs.Indices()]
    source: Annotated[int, settings.Count(least=0)]
    target: Annotated[int, settings.Count(least=0)]
    nodes: graphs.NumberedNames = field(metadata={"label": True})

    calls_worth: ClassVar = 4.0
    oracle: ClassVar = shortest_path
    tangents: ClassVar = circulations
    point_infeasibility: ClassVar = unit_flow_infeasibility

    @classmethod
    @settings.names_in_files
    def from_edges(
        cls,
        edges: graphs.GraphLinks,
        *,
        source: Annotated[Hashable, graphs.Node()],
        target: Annotated[Hashable, graphs.Node()],
    ) -> Self:
        """Unit flows over links between named nodes; point[i] is the flow on link i.

        Parameters
        ----------
        edges : iterable of tuple of Hashable
            The links of the graph, pairs (tail, head) of any hashable names; parallel links are
            separate. Or a networkx graph, whose undirected edges are a link each way, or a frame of
            pandas or polars with columns tail and head.
        source : Hashable
            The node where the flow starts.
        target : Hashable
            The node where the flow ends.

        Examples
        --------
        >>> links = [("s", "a"), ("a", "t"), ("s", "t")]
        >>> K = tw.sets.FlowPolytope.from_edges(links, source="s", target="t")
        >>> K.lmo(np.array([1.0, 1.0, 3.0]))
        array([1., 1., 0.])
        """
        nodes, tails, heads = graphs.number_nodes(edges)
        dag = graphs.build_dag(tails, heads, nodes, source, target)
        flows = cls(tails, heads, nodes.index(source), nodes.index(target), nodes)
        flows.__dict__["dags"] = (dag,)
        return flows

    def _complete(self) -> None:
        self._require_shape("heads", self.tails.shape)
        self._require_places("tails", "heads", "source", "target")
        self.__dict__.update(
            sources=np.array([self.source]),
            targets=np.array([self.target]),
            demands=(1.0,),
            starts=np.array([0, len(self.tails)], dtype=np.int32),
            links=np.arange(len(self.tails), dtype=np.int32),
        )

    def __repr__(self) -> str:
        ends = f"{self.nodes[self.source]!r} -> {self.nodes[self.target]!r}"
        sizes = f"{len(self.tails)} arcs, {len(self.nodes)} nodes, dimension {self.dimension}"
        return f"FlowPolytope({ends}, {sizes})"

    @property
    def names(self) -> tuple[str, ...]:
        """The arcs, such as "SEA > DEN"."""
        return self._link_names

    def _vertex(self, weights: NDArray) -> vertices.Sparse:
        return self.minimiser(weights)

    @cached_property
    def kernel_data(self) -> Int32s:
        order, arcs, tails, _, first = self.dags[0]
        return np.concatenate([[len(order)], first, tails, arcs]).astype(np.int32)

    @property
    def geometry(self) -> tuple[Floats, Int32s] | None:
        return self._hull.packed

    @cached_property
    def max_nonzeros(self) -> int:
        return len(self.dags[0].order) - 1

    def paths(self, x: Array, *, tolerance: float = 1e-9) -> list[Path]:
        """A flow as weighted paths, heaviest first.

        Parameters
        ----------
        x : array
            A flow.
        tolerance : float, default 1e-9
            Shares below it are left out and the rest rescaled to sum to 1.

        Returns
        -------
        list of Path
            Weight, arcs and nodes of each path.

        Raises
        ------
        NotAMember
            x is no unit flow.

        Examples
        --------
        >>> links = [("s", "a"), ("a", "t"), ("s", "t")]
        >>> K = tw.sets.FlowPolytope.from_edges(links, source="s", target="t")
        >>> for path in K.paths(np.array([0.75, 0.75, 0.25])):
        ...     print(path.weight, path.nodes)
        0.75 ('s', 'a', 't')
        0.25 ('s', 't')
        """
        return self._split(x, tolerance)[0]

    @classmethod
    def examples(cls) -> Sequence[Self]:
        diamond = [("s", "a"), ("s", "b"), ("a", "b"), ("a", "t"), ("b", "t")]
        dead_ends = [("s", "t"), ("s", "x"), ("y", "t"), ("s", "m"), ("m", "t"), ("x", "z")]
        line = [("s", "a"), ("a", "t")]
        funnel = [("s", "m"), ("m", "a"), ("m", "b"), ("a", "n"), ("b", "n"), ("n", "t")]
        named = [cls.from_edges(e, source="s", target="t") for e in (diamond, dead_ends)]
        parallel = cls.from_edges([(0, 1), (0, 1), (1, 2), (1, 2), (0, 2)], source=0, target=2)
        rest = [cls.from_edges(e, source="s", target="t") for e in (line, funnel)]
        return *named, parallel, *rest


# What must go from where to where, and on which links of a network.
#
# A commodity may use the links it names, or all of them; with lengths on links, of these only the
# ones that lead away from its source. What it then uses are those on a way to its target.


def links_used(
    commodities: Sequence[graphs.Commodity],
    tails: Int32s,
    heads: Int32s,
    nodes: Sequence[Hashable],
    lengths: Lengths | None,
) -> list[Int32s]:
    """For each commodity the links on a way from its source to its target, among those it may use;
    they must be free of cycles.
    """
    pairs = [(nodes[tail], nodes[head]) for tail, head in zip(tails, heads, strict=True)]
    steps = None if lengths is None else graph_tools.lengths_of(pairs, lengths)

    @cache
    def away(source: Hashable, links: Sequence[int]) -> Sequence[int]:
        if steps is None:
            return links
        some, of_some = [pairs[e] for e in links], [steps[e] for e in links]
        return [links[i] for i in graph_tools.leading_away(some, source=source, lengths=of_some)]

    used, every = list[Int32s](), range(len(tails))
    for i, commodity in enumerate(commodities):
        chosen = every if commodity.links is None else _chosen_links(i, commodity, every)
        ends = commodity.source, commodity.target
        try:
            allowed = np.array(away(commodity.source, chosen), dtype=np.int32)
            dag = graphs.build_dag(tails[allowed], heads[allowed], nodes, *ends)
        except CyclicGraph as error:
            message = f"{commodity.called(i)}: {error} Or give `lengths`."
            raise CyclicGraph(message, cycle=error.cycle, setting="commodities") from None
        except InvalidInput as error:
            raise type(error)(f"{commodity.called(i)}: {error}", setting="commodities") from None
        used.append(np.sort(allowed[dag.arcs]))
    return used


def _chosen_links(i: int, commodity: graphs.Commodity, every: range) -> tuple[int, ...]:
    links: Any = commodity.links
    try:
        chosen = tuple(links)
    except TypeError:
        chosen = (-1,)
    if not all(isinstance(e, int | np.integer) and e in every for e in chosen):
        words = f"links must be places from 0 to {every[-1]}, not {arguments.shown(links)}."
        raise InvalidInput(f"{commodity.called(i)}: {words}", setting="commodities")
    return tuple(sorted(set(chosen)))


# Flows of many commodities over one network, each with its own source, target and demand: a product
# of scaled flow polytopes.
#
#     K = { x = (x_1, .., x_k) :
#         x_j / demand_j is a unit flow from source_j to target_j on the links that j may use }
#
# A point has one entry for each pair (commodity, link it can use), commodity after commodity, links
# in their given order; a link on no way from source_j to target_j has no entry for j. What a link
# carries in all is `loads(x) = incidence @ x`, so a cost w on links is the direction `per_link(w) =
# incidence' w`, and "no link above c" is `functions.MaxAffine.one(incidence.toarray(), c)`.
#
# Oracle: a shortest path for each commodity, all in one pass. With c_j, R_j, L_j, r_j of commodity
# j's unit flows as above,
#
#     center       = (demand_j c_j)
#     tangent        commodity by commodity
#     dimension    = sum of those with a demand
#     radius^2     = sum_j demand_j^2 R_j^2                            exact
#     diameter^2  <= sum_j demand_j^2 min(4 R_j^2, 2 L_j)
#     inner_radius = min_j demand_j r_j, over those with a choice      exact as r_j is
#     factors        the commodities


@final
@dataclass(frozen=True, eq=False, repr=False)
class MultiFlow(DagFlows):
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
        The index at which the entries of each commodity start, and the end.
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

    tails: Annotated[Int32s, graphs.Indices()]
    heads: Annotated[Int32s, graphs.Indices()]
    sources: Annotated[Int32s, graphs.Indices()]
    targets: Annotated[Int32s, graphs.Indices()]
    demands: Annotated[tuple[float, ...], graphs.DEMANDS]
    starts: Annotated[Int32s, graphs.Indices()]
    links: Annotated[Int32s, graphs.Indices()]
    nodes: graphs.NumberedNames = field(metadata={"label": True})

    @classmethod
    @settings.names_in_files
    def from_edges(
        cls,
        edges: graphs.GraphLinks,
        commodities: Annotated[Iterable[graphs.Commodity | tuple[Any, ...]], graphs.Commodities()],
        *,
        lengths: Annotated[Lengths | None, graphs.LinkLengths()] = None,
    ) -> Self:
        """Flows of many commodities over links between named nodes.

        Parameters
        ----------
        edges : iterable of tuple of Hashable
            The links of the graph, pairs (tail, head) of any hashable names; parallel links are
            separate. Or a networkx graph, whose undirected edges are a link each way, or a frame of
            pandas or polars with columns tail and head.
        commodities : iterable of Commodity or tuple
            Each (source, target, demand), or a frame with such columns.
        lengths : sequence of float or array, optional
            How long each link is, above 0: a commodity uses the links that lead away from its
            source. None: the links a commodity may use must be free of cycles.

        Examples
        --------
        >>> links = [("s", "a"), ("a", "t"), ("s", "t")]
        >>> K = tw.sets.MultiFlow.from_edges(links, [("s", "t", 2.0), ("s", "a", 1.0)])
        >>> K.loads(K.lmo(K.per_link(np.array([1.0, 1.0, 3.0]))))
        array([3., 2., 0.])
        """
        asked: Sequence[Any] = tuple(commodities)
        nodes, tails, heads = graphs.number_nodes(edges)
        used = links_used(asked, tails, heads, nodes, lengths)
        numbers = graphs.numbers_of(nodes)
        sources, targets, demands, _ = zip(*asked, strict=True)
        begin, end = (np.array([numbers[node] for node in side]) for side in (sources, targets))
        starts = np.cumsum([0, *map(len, used)], dtype=np.int32)
        return cls(tails, heads, begin, end, demands, starts, np.concatenate(used), nodes)

    def _complete(self) -> None:
        self._require_places("tails", "heads", "sources", "targets", links=len(self.tails))
        starts, count = self.starts, len(self.demands)
        each = len(self.sources) == len(self.targets) == count == len(starts) - 1 > 0
        if len(self.tails) != len(self.heads) or not each:
            raise WrongShape("A MultiFlow needs equally many sources, targets, demands and starts.")
        ends, rising = (starts[0], starts[-1]) == (0, len(self.links)), (np.diff(starts) > 0).all()
        self._require(ends and rising, "starts", f"rise from 0 to {len(self.links)}, not {starts}")

    def __repr__(self) -> str:
        return (
            f"MultiFlow({len(self.demands):,} commodities, {len(self.tails):,} links, "
            f"{len(self.links):,} entries, dimension {self.dimension:,})"
        )

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Commodity and link of each entry, such as "SEA > NYC: SEA > DEN"."""
        links, sent = self._link_names, graphs.link_names(self.sources, self.targets, self.nodes)
        entries = zip(self.owner.tolist(), self.links.tolist(), strict=True)
        return arguments.all_different(f"{sent[j]}: {links[link]}" for j, link in entries)

    @cached_property
    def places(self) -> Mapping[str, Int64s]:
        """Also of links, such as "SEA > DEN": the entries of every commodity on it."""
        order = np.argsort(self.links, kind="stable")
        ends = np.searchsorted(self.links[order], np.arange(1, len(self.tails)))
        links = dict(zip(self._link_names, np.split(order, ends), strict=True))
        return links | {name: np.array([i]) for i, name in enumerate(self.names)}

    @cached_property
    def factors(self) -> base.Factors:
        radii, diameters = np.sqrt(self._radii2), np.sqrt(self._diameters2)
        starts = self.starts[:-1].astype(np.int64)
        return base.Factors(
            frozen(starts), frozen(self._unit * radii), frozen(self._unit * diameters)
        )

    def _vertex(self, weights: NDArray) -> vertices.Sparse:
        stack, positions = self.stack, int(self.stack.begins[-1])
        chosen, values = np.empty(positions, dtype=np.int32), np.empty(positions)
        graph = (stack.arcs, stack.tails, stack.first)
        count = shortest_paths(weights, graph, stack.begins, self._demands, chosen, values)
        return vertices.Sparse(self.shape, chosen[:count].copy(), values[:count].copy())

    @cached_property
    def incidence(self) -> Any:
        """The sparse matrix (links, entries) of ones that adds up what a link carries of all
        commodities.
        """
        n = len(self.links)
        return sp.csr_array((np.ones(n), (self.links, np.arange(n))), shape=(len(self.tails), n))

    def loads(self, x: Array) -> Array:
        """The load of every link: incidence @ x.

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
        return self._split(x, tolerance)

    @classmethod
    def examples(cls) -> Sequence[Self]:
        diamond = [("s", "a"), ("s", "b"), ("a", "b"), ("a", "t"), ("b", "t"), ("s", "x")]
        ring = [(i, (i + step) % 5) for step in (1, 4) for i in range(5)]
        sent = [("s", "t", 2.0), ("a", "t", 0.5), ("s", "b", 0.0), ("s", "t", 1.0, (0, 3))]
        around = [(0, 2, 0.5), (1, 3, 1.0), (4, 2, 1.5), (2, 0, 1.0)]
        return (
            cls.from_edges(diamond, sent),
            cls.from_edges(ring, around, lengths=np.arange(1.0, 11.0)),
            cls.from_edges([("s", "t")], [("s", "t", 0.0)]),
        )
