"""Unit flows of a directed acyclic graph from a source to a target: the convex hull of its paths.

    K = { x >= 0 : one unit leaves the source, what enters any other node but the target leaves it }

Oracle: a shortest path, one linear pass over arcs sorted by head; weights may be negative. With A
the node-arc incidence of the useful arcs (those on a way from source to target; all others carry
nothing), N nodes and m arcs:

    dimension  = m - N + 1       (a flow positive on every useful arc exists, so the hull is Ax = b)
    tangent(d) = d - A' (A A')^+ A d
    center     = covering flow / its value     (positive everywhere; two sweeps, kernels/dag.py)
    radius^2   = |c|^2 + max over paths of sum_e (1 - 2 c_e)          exact: one oracle call
    diameter   <= min(2R, sqrt(2L))
        two paths differ in at most 2L arcs, L the longest path, arcs on every path not counted
    inner_radius = min_e c_e / |P e_e| >= min_e c_e
        the facets are x_e = 0; exact on small graphs, the lower bound on large ones
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated, Any, ClassVar, NamedTuple, final

import numpy as np

from tidewolf.core.arguments import import_extra
from tidewolf.core.arrays import as_direction, as_point, frozen, like, to_numpy
from tidewolf.core.errors import NotAMember, WrongShape, WrongType
from tidewolf.core.oracle import Answer
from tidewolf.core.settings import Count, names_in_files
from tidewolf.core.types import Array, Floats, Int32s, Int64s, Shape
from tidewolf.core.vertices import Sparse, Vertex
from tidewolf.kernels.dag import flow_infeasibility, shortest_path
from tidewolf.kernels.laplacian import circulations, unit_flow_infeasibility
from tidewolf.sets.base import (
    CompiledGeometry,
    ConvexSet,
    LinearDescription,
    Polyhedral,
    Relaxable,
    clipped,
)
from tidewolf.sets.graphs.dag import (
    ON_EVERY_PATH,
    Dag,
    as_tolerance,
    build_dag,
    incidence_matrix,
    weighted_paths,
)
from tidewolf.sets.graphs.laplacian import HullProjection
from tidewolf.sets.graphs.nodes import link_names, number_nodes, require_places
from tidewolf.sets.graphs.settings import GraphLinks, Indices, Node, NumberedNames


class Path(NamedTuple):
    """A share of a flow and the way it takes: what a router installs."""

    weight: float
    arcs: tuple[int, ...]
    nodes: tuple[Hashable, ...]


def path_nodes(
    arcs: Sequence[int], tails: Int32s, heads: Int32s, nodes: Sequence[Hashable]
) -> tuple[Hashable, ...]:
    """The nodes a path visits."""
    return (nodes[tails[arcs[0]]], *(nodes[heads[arc]] for arc in arcs))


@final
@dataclass(frozen=True, eq=False, repr=False)
class FlowPolytope(ConvexSet, Polyhedral, Relaxable, CompiledGeometry):
    """Unit flows of a directed acyclic graph; point[i] is the flow on arc i.

    Make one with `from_edges` or `from_networkx`. Radius and dimension exact; diameter an upper
    bound; inner radius exact up to 600 nodes, else a lower bound.

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

    tails: Annotated[Int32s, Indices("The number of the node where each arc begins.")]
    heads: Annotated[Int32s, Indices("The number of the node where each arc ends.")]
    source: Annotated[int, Count("The number of the node where the flow starts.", least=0)]
    target: Annotated[int, Count("The number of the node where the flow ends.", least=0)]
    nodes: NumberedNames = field(metadata={"label": True})

    oracle: ClassVar = shortest_path
    tangents: ClassVar = circulations
    point_infeasibility: ClassVar = unit_flow_infeasibility

    @classmethod
    @names_in_files
    def from_edges(
        cls,
        edges: GraphLinks,
        *,
        source: Annotated[Hashable, Node("The node where the flow starts.")],
        target: Annotated[Hashable, Node("The node where the flow ends.")],
    ) -> FlowPolytope:
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
        nodes, tails, heads = number_nodes(edges)
        dag = build_dag(tails, heads, nodes, source, target)
        flows = cls(tails, heads, nodes.index(source), nodes.index(target), nodes)
        flows.__dict__["dag"] = dag
        return flows

    @classmethod
    def from_networkx(cls, graph: Any, *, source: Hashable, target: Hashable) -> FlowPolytope:
        """Unit flows over the arcs of a networkx graph, in the order of `graph.edges()`.

        Parameters
        ----------
        graph : networkx.DiGraph or networkx.MultiDiGraph
            A directed graph without cycles.
        source : hashable
            The node where the flow starts.
        target : hashable
            The node where the flow ends.

        Returns
        -------
        FlowPolytope
            The flows.

        Raises
        ------
        MissingExtra
            networkx is not installed.
        """
        networkx = import_extra("networkx", "Reading a networkx graph", "graph")
        if not isinstance(graph, networkx.DiGraph):
            raise WrongType(
                "A flow needs a directed networkx graph (DiGraph or MultiDiGraph), not "
                f"{type(graph).__name__}."
            )
        return cls.from_edges(
            ((tail, head) for tail, head in graph.edges()), source=source, target=target
        )

    def __post_init__(self) -> None:
        super().__post_init__()
        begun, ended = len(self.tails), len(self.heads)
        if begun != ended:
            raise WrongShape(
                f"{begun} arcs begin and {ended} end; an arc does both.", setting="heads"
            )
        for name in ("tails", "heads", "source", "target"):
            numbers = np.atleast_1d(getattr(self, name))
            require_places(numbers, len(self.nodes), "The numbers of nodes", name)

    def __repr__(self) -> str:
        ends = f"{self.nodes[self.source]!r} -> {self.nodes[self.target]!r}"
        return (
            f"FlowPolytope({ends}, {len(self.tails)} arcs, {len(self.nodes)} nodes, dimension "
            f"{self.dimension})"
        )

    @cached_property
    def dag(self) -> Dag:
        """The useful part of the graph in topological order."""
        return build_dag(
            self.tails, self.heads, self.nodes, self.nodes[self.source], self.nodes[self.target]
        )

    @property
    def shape(self) -> Shape:
        return (len(self.tails),)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The arcs, such as "SEA > DEN"."""
        return link_names(self.tails, self.heads, self.nodes)

    def _out_of_reach(self, entries: Int64s) -> str | None:
        return f"no path leads from {self.nodes[self.source]} to {self.nodes[self.target]}"

    @cached_property
    def dimension(self) -> int:
        return len(self.dag.arcs) - len(self.dag.order) + 1

    @cached_property
    def center(self) -> Array:
        point = np.zeros(self.shape)
        point[self.dag.arcs] = self.dag.covering_flow()
        return frozen(point)

    @cached_property
    def radius(self) -> float:
        c = self.center
        gains = 1.0 - 2.0 * c
        return math.sqrt(
            max(0.0, float(c @ c) + float(gains[self.minimiser(-gains).indices].sum()))
        )

    @cached_property
    def diameter(self) -> float:
        optional = (self.center < ON_EVERY_PATH).astype(float)
        longest = float(optional[self.minimiser(-optional).indices].sum())
        return min(2.0 * self.radius, math.sqrt(2.0 * longest))

    @cached_property
    def inner_radius(self) -> float:
        if self.dimension == 0:
            return 0.0
        c = self.center[self.dag.arcs]
        free = c < ON_EVERY_PATH
        reach = self._hull.unit_norms()
        return float(np.min(c[free] if reach is None else c[free] / reach[free]))

    @cached_property
    def _hull(self) -> HullProjection:
        return HullProjection(self.dag.arcs, self.dag.tails, self.dag.heads, len(self.dag.order))

    def tangent(self, direction: Array) -> Array:
        """Exact on graphs whose Laplacian factorises small, else to `laplacian.CG_TOLERANCE`
        relative.
        """
        direction = as_direction(direction, self.shape)
        projected = self._hull(to_numpy(direction))
        return projected if type(direction) is np.ndarray else like(projected, direction)

    @property
    def tangent_method(self) -> str:
        """How `tangent` solves: "dense inverse", "sparse factor" or "conjugate gradients"."""
        return self._hull.method

    def infeasibility(self, x: Array) -> float:
        """The largest negative flow, unbalanced node, or flow on an arc that leads nowhere."""
        x = to_numpy(as_point(x, self.shape, "The flow"))[:]
        x.flags.writeable = False  # one signature for all points
        worst = flow_infeasibility(
            x, self.dag.arcs, self.dag.tails, self.dag.heads, self._supply.copy()
        )
        idle = self._idle
        return max(float(worst), float(np.abs(x[idle]).max())) if len(idle) else float(worst)

    @cached_property
    def _supply(self) -> Floats:
        supply = np.zeros(len(self.dag.order))
        supply[0], supply[-1] = 1.0, -1.0
        return supply

    @cached_property
    def _upper(self) -> Floats:
        """The most that fits on each arc: nothing on those that lead nowhere."""
        upper = np.zeros(self.shape)
        upper[self.dag.arcs] = 1.0
        return upper

    @cached_property
    def _idle(self) -> Int32s:
        idle = np.ones(self.shape, dtype=bool)
        idle[self.dag.arcs] = False
        return np.flatnonzero(idle).astype(np.int32)

    def answer(self, direction: Array, warm: Array | None = None) -> Answer:
        return Answer(self.minimiser(to_numpy(as_direction(direction, self.shape))))

    @cached_property
    def kernel_data(self) -> Int32s:
        return self.dag.packed()

    @property
    def geometry(self) -> tuple[Floats, Int32s] | None:
        return self._hull.packed

    @cached_property
    def max_nonzeros(self) -> int:
        return len(self.dag.order) - 1

    def atom(self, point: Array) -> Vertex:
        return Sparse.of(point)

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
        flow = to_numpy(as_point(x, self.shape, "The flow"))
        tolerance = as_tolerance(tolerance)
        if self.infeasibility(flow) > max(1e-6, tolerance):
            raise NotAMember(
                "Only a unit flow splits into paths; this point misses being one by "
                f"{self.infeasibility(flow):.3g}."
            )
        return [
            Path(weight, arcs, path_nodes(arcs, self.tails, self.heads, self.nodes))
            for weight, arcs in weighted_paths(self.dag, flow, tolerance)
        ]

    def relax(self, y: Array) -> Array:
        """The projection on the box from no flow to one unit on every useful arc."""
        return clipped(y, self.shape, 0.0, self._upper)

    def description(self) -> LinearDescription:
        """Bounds and balances; the target's follows from the others."""
        m, dag = len(self.tails), self.dag
        balance = incidence_matrix(dag.arcs, dag.tails, dag.heads, len(dag.order), m)
        return LinearDescription(
            np.zeros(m),
            self._upper.copy(),
            A_eq=balance[:-1].tocsc(),
            b_eq=self._supply[:-1].copy(),
        )

    @classmethod
    def examples(cls) -> Sequence[FlowPolytope]:
        diamond = [("s", "a"), ("s", "b"), ("a", "b"), ("a", "t"), ("b", "t")]
        dead_ends = [("s", "t"), ("s", "x"), ("y", "t"), ("s", "m"), ("m", "t"), ("x", "z")]
        parallel = [(0, 1), (0, 1), (1, 2), (1, 2), (0, 2)]
        line = [("s", "a"), ("a", "t")]
        funnel = [("s", "m"), ("m", "a"), ("m", "b"), ("a", "n"), ("b", "n"), ("n", "t")]
        return (
            cls.from_edges(diamond, source="s", target="t"),
            cls.from_edges(dead_ends, source="s", target="t"),
            cls.from_edges(parallel, source=0, target=2),
            cls.from_edges(line, source="s", target="t"),
            cls.from_edges(funnel, source="s", target="t"),
        )
