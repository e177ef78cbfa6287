"""Flows within bounds on arcs, by the network simplex."""

import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Annotated, Any, NamedTuple, Self, TypeAlias, final

import numpy as np

from tidewolf.core import arguments, errors, oracle, values, vertices
from tidewolf.core.arrays import frozen, to_numpy
from tidewolf.core.settings import Text, names_in_files
from tidewolf.core.types import Array, Bools, Floats, Int32s, NDArray, Shape
from tidewolf.kernels import network_simplex as simplex
from tidewolf.kernels.network_simplex import ROUNDING
from tidewolf.sets import base, flows, graphs

# 1: at its lower bound, 0: in the tree, -1: at its upper bound; arcs first, then the artificial arc
# of every node
Basis: TypeAlias = np.ndarray[Any, np.dtype[np.int8]]

# Tails, heads and room of all arcs, the artificial ones last.
Arcs: TypeAlias = tuple[Int32s, Int32s, Floats]


# A network with bounds on its arcs and supplies at its nodes, and its cheapest flows by the network
# simplex (kernels/network_simplex.py).

# How many pivots a node may take from another basis, before a first one is quicker.
WARM = 3


@final
@dataclass(frozen=True, eq=False, repr=False)
class FlowNetwork(values.Value):
    """Arcs between numbered nodes, their bounds, and what every node supplies
    (draws, where negative).
    """

    tails: Int32s
    heads: Int32s
    lower: Floats
    upper: Floats
    supply: Floats
    nodes: tuple[Hashable, ...] = field(metadata={"label": True})

    def __post_init__(self) -> None:
        for part in (self.tails, self.heads, self.lower, self.upper, self.supply):
            frozen(part)

    @cached_property
    def room(self) -> Floats:
        return self.upper - self.lower

    @cached_property
    def left(self) -> Floats:
        """What every node supplies beyond the lower bounds; what rounding alone could leave counts
        as nothing.
        """
        left, size = self.supply - self.balance(self.lower), np.abs(self.lower)
        at_node = np.abs(self.supply) + np.bincount(self.tails, size, len(left))
        at_node += np.bincount(self.heads, size, len(left))
        return np.where(np.abs(left) <= 1e-3 * ROUNDING * at_node, 0.0, left)

    def balance(self, x: NDArray) -> Floats:
        out, into = (np.bincount(at, x, len(self.supply)) for at in (self.tails, self.heads))
        return np.asarray(out - into, dtype=np.float64)

    @cached_property
    def floor(self) -> float:
        """An amount that is nothing beside what is supplied and must be carried."""
        return ROUNDING * float(max(np.abs(self.supply).sum(), np.abs(self.lower).max()))

    def nothing(self, flow: Floats) -> float:
        """An amount that is nothing beside a flow, too."""
        return max(self.floor, ROUNDING * float(np.abs(flow).max()))

    def _with_root(self, left: Floats) -> Arcs:
        """With the artificial arcs: towards the root where something is left to be sent."""
        nodes = np.arange(len(left), dtype=np.int32)
        root = np.full(len(nodes), len(nodes), dtype=np.int32)
        return (
            np.concatenate([self.tails, np.where(left >= 0, nodes, root)]),
            np.concatenate([self.heads, np.where(left >= 0, root, nodes)]),
            np.concatenate([self.room, np.full(len(nodes), np.inf)]),
        )

    @cached_property
    def _closed(self) -> Arcs:
        """With artificial arcs from the root that carry nothing, so that nothing goes there."""
        tails, heads, room = self._with_root(self.left)
        return tails, heads, np.where(tails == len(self.left), 0.0, room)

    @cached_property
    def start(self) -> "PhaseOne":
        arcs = len(self.tails)
        flow, gap, basis = self._from_root(np.zeros(arcs))
        if gap < 0:
            raise errors.SolverFailed(f"The network simplex did not end on {arcs} arcs.")
        return PhaseOne(frozen(basis), frozen(flow[:arcs]), frozen(flow[arcs:]))

    def _from_root(self, costs: Floats) -> tuple[Floats, float, Basis]:
        """A flow that leaves least unsent and, of those, costs least, by pivots from the artificial
        arcs.

        These cost as much as any path; arcs with a cost below 0 are full at first, so that no cycle
        of them is left.
        """
        full, nodes = costs < 0, len(self.supply)
        basis = np.append(np.where(full, -1, 1), np.zeros(nodes)).astype(np.int8)
        left = self.left - self.balance(np.where(full, self.room, 0.0))
        given = np.concatenate([costs / (2 * nodes), np.ones(nodes)])
        flow, gap = self._improved(given, self._with_root(left), basis, self._limit)
        return flow, gap, basis

    def cheapest(self, costs: Floats, warm: Basis | None = None) -> "CheapestFlow":
        """The cheapest flow, from the basis `warm` where that is one of this network's, else from
        the artificial arcs.
        """
        arcs, nodes = len(self.tails), len(self.supply)
        unit = float(np.max(np.abs(costs), initial=0.0))
        given = np.concatenate([costs / (unit or 1.0), np.zeros(nodes)])
        for basis, limit in self._starts(given[:arcs], warm):
            flow, gap = self._improved(given, self._closed, basis, limit)
            if gap >= 0 and float(np.abs(flow[arcs:]).max()) <= self.nothing(flow):
                x = np.clip(self.lower + flow[:arcs], self.lower, self.upper)
                return CheapestFlow(x, unit * gap, frozen(basis))
        raise errors.SolverFailed(f"The network simplex found no cheapest flow on {arcs} arcs.")

    def _starts(self, costs: Floats, warm: Basis | None) -> Iterator[tuple[Basis, int]]:
        """Bases, and how many pivots each may take; the last cannot fail but for rounding."""
        # whether its tree spans the graph, and its flow keeps the bounds, is seen on the way
        fits = warm is not None and warm.shape == self._closed[2].shape and warm.dtype == np.int8
        if warm is not None and fits and (warm[len(self.tails) :] >= 0).all():
            yield warm.copy(), WARM * len(self.supply) + 1000
        if costs.any():
            yield self._from_root(costs)[2], self._limit
        yield self.start.basis.copy(), self._limit

    @property
    def _limit(self) -> int:
        return 100 * (len(self.tails) + len(self.supply)) + 1000

    def _improved(
        self, costs: Floats, arcs: Arcs, basis: Basis, limit: int
    ) -> tuple[Floats, float]:
        """The flow of the best basis, which `basis` becomes, and its gap; a negative one says that
        there was no start, or no end.
        """
        tails, heads, _ = arcs
        nodes, count = len(self.supply) + 1, len(self.tails)
        flow, pi = np.empty(len(basis)), np.zeros(nodes)
        tree = np.empty((7, nodes), dtype=np.int32)

        def start() -> bool:
            return bool(
                simplex.build_tree(basis, tails, heads, tree)
                and simplex.basic_flow(arcs, self.left, basis, tree, flow, self.floor)
            )

        if (
            not start()
            or not simplex.improve(costs, arcs, (basis, flow, pi), tree, count, self.floor, limit)
            or not start()  # what many pivots rounded is computed afresh
        ):
            return flow, -1.0
        return flow, float(simplex.proved_gap(costs, arcs, count, flow, pi))


class PhaseOne(NamedTuple):
    """A basis to start from, its flow above the lower bounds, and what every node could not send,
    or did not get: where that is not 0, no flow exists.
    """

    basis: Basis
    flow: Floats
    unsent: Floats


class CheapestFlow(NamedTuple):
    x: Floats
    gap: float
    basis: Basis


# What may change in a flow: the residual graph, with an arc's own direction if it can carry more
# and the other if it can carry less.
#
# Flows x and y differ by cycles of the residual graph of x. So an arc can change exactly when it
# lies on such a cycle other than itself there and back: within a strong component, and no bridge of
# it. (Were it neither, the nodes reached from its two ends without it would not meet: an arc
# between them, or a node in both, would close a cycle.)
#
# Where supplies cannot be met, the nodes S that the surplus still reaches in the residual graph of
# a largest flow are the reason: every arc out of S is full, every arc into S at its lower bound,
# and yet
#
#     supply(S)  >  upper(arcs out of S) - lower(arcs into S)                (Gale 1957, Hoffman
#         1960)


def residual_arcs(net: FlowNetwork) -> tuple[Int32s, Int32s, Bools]:
    flow = net.start.flow
    nothing = net.nothing(flow)
    more, less = flow < net.room - nothing, flow > nothing
    tails = np.concatenate([net.tails[more], net.heads[less]])
    return tails, np.concatenate([net.heads[more], net.tails[less]]), more | less


def violated_cut(net: FlowNetwork) -> Bools | None:
    """The nodes of a cut that is too small for their supply; None if a flow exists."""
    if net.start.unsent.max() <= net.nothing(net.start.flow):
        return None
    return graphs.reached(*residual_arcs(net)[:2], (net.start.unsent > 0) & (net.left > 0))


def cut_capacity(net: FlowNetwork, members: Bools) -> float:
    """What can leave these nodes at most, less what must enter them."""
    tails, heads = members[net.tails], members[net.heads]
    return float(net.upper[tails & ~heads].sum() - net.lower[~tails & heads].sum())


# A flow on any graph as weighted paths: from a node that supplies along arcs that carry something
# to a node that draws.
#
# Each walk either closes a cycle, whose least flow is taken off all its arcs, or arrives, and takes
# the least of what its arcs carry, its first node supplies and its last one draws: an arc or a node
# is used up every time, so there are at most as many steps as arcs and nodes.


def split_flow(
    tails: Int32s, heads: Int32s, supply: Floats, flow: Floats, tolerance: float
) -> list[tuple[float, tuple[int, ...]]]:
    """Weights and arcs of the paths, heaviest first; paths over the same arcs are one."""
    left, owed = np.where(flow > tolerance, flow, 0.0), supply.astype(np.float64).copy()
    leaving: list[list[int]] = [[] for _ in range(len(owed))]
    for arc in np.argsort(left, kind="stable").tolist():  # the widest is tried first
        leaving[int(tails[arc])].append(arc)
    found: dict[tuple[int, ...], float] = {}
    for source in np.flatnonzero(supply > 0).tolist():
        while owed[source] > tolerance and (walk := _walk(source, leaving, heads, left, owed)):
            arcs, arrived = walk
            weight = float(left[list(arcs)].min())
            if arrived:
                end = int(heads[arcs[-1]])
                weight = min(weight, float(owed[source]), -float(owed[end]))
                owed[source] -= weight
                owed[end] += weight
                found[arcs] = found.get(arcs, 0.0) + weight
            left[list(arcs)] -= weight
            left[left <= tolerance] = 0.0
    return sorted(((weight, arcs) for arcs, weight in found.items()), key=lambda each: -each[0])


def _walk(
    node: int, leaving: list[list[int]], heads: Int32s, left: Floats, owed: Floats
) -> tuple[tuple[int, ...], bool] | None:
    """The arcs of a way that arrives, or of a cycle; None if nothing leaves."""
    arcs, seen = list[int](), {node: 0}
    while True:
        while leaving[node] and left[leaving[node][-1]] == 0.0:
            leaving[node].pop()
        if not leaving[node]:
            return None
        arcs.append(leaving[node][-1])
        node = int(heads[arcs[-1]])
        if node in seen:
            return tuple(arcs[seen[node] :]), False
        seen[node] = len(arcs)
        if owed[node] < 0.0:
            return tuple(arcs), True


# Flows within bounds on every arc, between nodes that supply and nodes that draw; the graph may
# have cycles.
#
#     K = { lower <= x <= upper : what leaves a node less what enters it is its supply }
#
# Oracle: the cheapest flow, by the network simplex (kernels/network_simplex.py); `warm` is its
# basis, `error` the gap its potentials prove.
#
# An arc is free when flows differ on it (`_loose` finds them from one flow). A mean of flows,
# each moving some free arc off its bound, keeps all their bounds strictly; so the hull is { A x =
# supply, other arcs as they are }, its directions circulations on free arcs:
#
#     dimension    = arcs - nodes + parts of the free graph            exact
#     tangent      = projection on these circulations                  exact as graphs.py says
#     center       a flow whose least distance s from the bounds of free arcs is largest: over
#                  cuts S, s = (upper out of S - lower into S - supply of S) / free arcs across;
#                  Newton's method cut by cut
#     inner_radius = min over free e of min(c_e - lower_e, upper_e - c_e) / |P e_e|
#         exact on small graphs, else |P e_e| <= 1
#     radius^2    <= max over K of sum_e (low_e - c_e)^2 + (x_e - low_e) (low_e + high_e - 2 c_e)
#         the chord of a square lies above it
#     diameter^2  <= min(4 R^2, |w|^2, 2 max <w, x - low>, 2 max <w, high - x>),   w = high - low
#
# with [low_e, high_e] what arc e can carry, found by two oracle calls an arc up to `RANGED` free
# arcs, and its bounds beyond. The bounds of radius and diameter are attained where arcs run empty
# or full.

# Up to how many free arcs what each can carry is worked out.
RANGED = 1000


_Before = Text("What is sent, before the names of arcs, as in a product; empty: nothing is.")


@final
@dataclass(frozen=True, eq=False, repr=False)
class CapacitatedFlow(base.ClosedForm, flows.Flows):
    """Flows with bounds on arcs and supplies at nodes; point[i] is the flow on arc i.

    Make one with `from_edges`. Dimension exact; radius and diameter upper bounds; inner radius
    exact up to 600 nodes, else a lower bound.

    Parameters
    ----------
    network : FlowNetwork
        The arcs, their bounds and the supplies of nodes; `from_edges` makes it.
    commodity : str, default ''
        What is sent, before the names of arcs, as in a product; empty: nothing is.

    Examples
    --------
    >>> K = tw.sets.CapacitatedFlow.from_edges(
    ...     [("s", "t"), ("s", "t")], supplies={"s": 3.0, "t": -3.0}, upper=2.0
    ... )
    >>> K.lmo(np.array([1.0, 5.0]))
    array([2., 1.])
    """

    network: FlowNetwork
    commodity: Annotated[str, _Before] = ""

    @classmethod
    @names_in_files
    def from_edges(
        cls,
        edges: graphs.GraphLinks,
        *,
        supplies: Annotated[Mapping[Hashable, float], graphs.Supplies()],
        upper: Annotated[float | Sequence[float] | Array, graphs.ArcBounds()],
        lower: Annotated[float | Sequence[float] | Array, graphs.ArcBounds()] = 0.0,
        commodity: Annotated[str, _Before] = "",
    ) -> Self:
        """Flows over arcs between named nodes; point[i] is the flow on arc i.

        Parameters
        ----------
        edges : iterable of tuple of Hashable
            The links of the graph, pairs (tail, head) of any hashable names; parallel links are
            separate. Or a networkx graph, whose undirected edges are a link each way, or a frame of
            pandas or polars with columns tail and head.
        supplies : mapping of Hashable or float
            What nodes send, or draw if it is negative; other nodes do neither.
        upper : float or sequence of float or array
            The most that arcs carry: one number for all, or one for each.
        lower : float or sequence of float or array, default 0.0
            The least that arcs carry: one number for all, or one for each.
        commodity : str, default ''
            What is sent, before the names of arcs, as in a product; empty: nothing is.

        Examples
        --------
        >>> K = tw.sets.CapacitatedFlow.from_edges(
        ...     [("s", "t"), ("s", "t")], supplies={"s": 3.0, "t": -3.0}, upper=2.0
        ... )
        >>> K.lmo(np.array([1.0, 5.0]))
        array([2., 1.])
        """
        nodes, tails, heads = graphs.number_nodes(edges)
        graphs.require_edges(tails, "A flow")
        supply, numbers = np.zeros(len(nodes)), graphs.numbers_of(nodes)
        for node, amount in supplies.items():
            supply[graphs.node_number(node, numbers, "The supplied node", "supplies")] = amount
        bounds = (_for_each(lower, len(tails), "lower"), _for_each(upper, len(tails), "upper"))
        return cls(FlowNetwork(tails, heads, *bounds, supply, nodes), commodity)

    def _complete(self) -> None:
        net = self.network
        self._require(
            isinstance(net, FlowNetwork), "network", "be made by from_edges", errors.WrongType
        )
        wrong = np.flatnonzero(net.lower > net.upper)[:1]
        due = f"be at most upper, not {net.lower[wrong]} beside {net.upper[wrong]} on arc {wrong}"
        self._require(not len(wrong), "lower", due, errors.EmptySet)
        sent, drawn = net.supply[net.supply > 0].sum(), -net.supply[net.supply < 0].sum()
        balanced = abs(net.supply.sum()) <= ROUNDING * np.abs(net.supply).sum()
        due = f"be as large as what is drawn in all, {drawn:g}, not {sent:g}"
        self._require(balanced, "supplies", due, errors.EmptySet)
        if (cut := violated_cut(net)) is not None:
            needed, most = float(net.supply[cut].sum()), cut_capacity(net, cut)
            names = arguments.listed([repr(net.nodes[v]) for v in np.flatnonzero(cut)], 6)
            why = f"the nodes {names} supply {needed:g} in all, and the arcs out of them take"
            words = f"No flow exists: {why} at most {most:g}. Change bounds or supplies by"
            raise errors.EmptySet(f"{words} {needed - most:g}.", setting="supplies")

    def __repr__(self) -> str:
        net = self.network
        sent = net.supply[net.supply > 0].sum()
        return (
            f"CapacitatedFlow({len(net.tails)} arcs, {len(net.nodes)} nodes, {sent:g} supplied, "
            f"dimension {self.dimension})"
        )

    @property
    def shape(self) -> Shape:
        return (len(self.network.tails),)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The arcs, such as "SEA > DEN", behind the commodity if there is one."""
        arcs = graphs.link_names(self.network.tails, self.network.heads, self.network.nodes)
        return tuple(f"{self.commodity}: {arc}" for arc in arcs) if self.commodity else arcs

    @cached_property
    def dimension(self) -> int:
        return self._hull.dimension

    @cached_property
    def _loose(self) -> Int32s:
        """The arcs within strong components of the residual graph: bridges and those that can
        change.
        """
        net, (tails, heads, can_change) = self.network, residual_arcs(self.network)
        strong = graphs.connected_parts(tails, heads, len(net.nodes), strong=True)
        within = (strong[net.tails] == strong[net.heads]) & can_change
        return np.flatnonzero(within).astype(np.int32)

    @cached_property
    def _free(self) -> Int32s:
        net, loose = self.network, self._loose
        fixed = graphs.bridges(net.tails[loose], net.heads[loose], len(net.nodes))
        return np.asarray(loose[~fixed])

    @cached_property
    def _hull(self) -> graphs.HullProjection:
        net, loose = self.network, self._loose
        return graphs.HullProjection(loose, net.tails[loose], net.heads[loose], len(net.nodes))

    @cached_property
    def center(self) -> Array:
        net, free = self.network, self._free
        if len(free) == 0:
            return frozen(net.cheapest(np.zeros(self.shape)).x)
        inset = float(net.room[free].min()) / 2
        while (cut := violated_cut(inside := self._inset(inset))) is not None:
            across = int((cut[net.tails[free]] != cut[net.heads[free]]).sum())
            nearer = (cut_capacity(net, cut) - float(net.supply[cut].sum())) / max(1, across)
            if nearer <= 0:
                raise errors.SolverFailed("No center was found: bounds leave no room but rounding.")
            inset = min(nearer, inset * (1 - ROUNDING))
        return frozen(inside.cheapest(np.zeros(self.shape)).x)

    def _inset(self, inset: float) -> FlowNetwork:
        net, free = self.network, self._free
        lower, upper = net.lower.copy(), net.upper.copy()
        lower[free] += inset
        upper[free] = np.maximum(upper[free] - inset, lower[free])
        return replace(net, lower=lower, upper=upper)

    @cached_property
    def _ranges(self) -> tuple[Floats, Floats]:
        net, warm = self.network, None
        low, high = self._center.copy(), self._center.copy()
        low[self._free], high[self._free] = net.lower[self._free], net.upper[self._free]
        if len(self._free) <= RANGED:
            for e in self._free:
                for sign, bound in ((1.0, low), (-1.0, high)):
                    unit = np.zeros(self.shape)
                    unit[e] = sign
                    found, gap, warm = net.cheapest(unit, warm)
                    bound[e] = np.clip(found[e] - sign * gap, net.lower[e], net.upper[e])
        return low, high

    @cached_property
    def _unit(self) -> float:
        """How far flows differ on an arc at most: squares of what is measured by it neither vanish
        nor overflow.
        """
        low, high = self._ranges
        return float((high - low).max()) or 1.0

    @cached_property
    def _sizes(self) -> base.Sizes:
        net, (low, high), c, unit = self.network, self._ranges, self._center, self._unit
        slopes, w = (low - c) / unit + (high - c) / unit, (high - low) / unit
        start = float((((low - c) / unit) ** 2).sum())
        radius = unit * math.sqrt(max(0.0, start + self._most(slopes, low) / unit))
        most = min(self._most(w, low), self._most(-w, high)) / unit
        apart = unit * math.sqrt(max(0.0, min(float(w @ w), 2.0 * most)))
        free, slack = np.isin(self._loose, self._free), np.minimum(c - net.lower, net.upper - c)
        inside = float(np.min(slack[self._loose][free] / self._hull.unit_norms()[free]))
        return base.Sizes(self.dimension, radius, min(2.0 * radius, apart), inside)

    def _most(self, d: Floats, start: Floats) -> float:
        """An upper bound on <d, x - start> over K."""
        found = self.network.cheapest(-d)
        return float(d @ (found.x - start)) + found.gap

    def infeasibility(self, x: Array) -> float:
        """The largest violation of a bound, or difference between what a node sends and its
        supply."""
        net, x = self.network, to_numpy(x).astype(np.float64, copy=False)
        breach = max(float((net.lower - x).max()), float((x - net.upper).max()))
        return max(0.0, breach, float(np.abs(net.balance(x) - net.supply).max()))

    def answer(self, direction: Array, warm: Array | None = None) -> oracle.Answer:
        d = to_numpy(direction).astype(np.float64, copy=False)
        x, gap, basis = self.network.cheapest(d, None if warm is None else to_numpy(warm))
        return oracle.Answer(vertices.Sparse.of(x), gap, basis)

    def paths(self, x: Array, *, tolerance: float = 1e-9) -> list[flows.Path]:
        """A flow as weighted paths from nodes that supply to nodes that draw, heaviest first; what
        goes round in circles is left out.

        Parameters
        ----------
        x : array
            A flow without negative arcs.
        tolerance : float, default 1e-9
            Paths with less are left out.

        Returns
        -------
        list of Path
            Weight, arcs and nodes of each path; the weights sum to what is supplied.

        Raises
        ------
        NotAMember
            x is no such flow.

        Examples
        --------
        >>> K = tw.sets.CapacitatedFlow.from_edges(
        ...     [("s", "a"), ("a", "s"), ("a", "t")], supplies={"s": 1.0, "t": -1.0}, upper=2.0
        ... )
        >>> K.paths(np.array([1.5, 0.5, 1.0]))
        [Path(weight=1.0, arcs=(0, 2), nodes=('s', 'a', 't'))]
        """
        net = self.network
        flow, tolerance = self._as_flow(x, tolerance, max(1.0, self._unit))
        words = f"A flow with an arc of {flow.min():.3g} does not split into paths."
        errors.require(flow.min() >= -1e-6, errors.NotAMember, words)
        found = split_flow(net.tails, net.heads, net.supply, flow, tolerance)
        return [flows.path_of(*each, net) for each in found]

    def description(self) -> base.LinearDescription:
        """Bounds and balances; of every connected part of the graph one node's balance follows from
        the others'.
        """
        net, m, count = self.network, len(self.network.tails), len(self.network.nodes)
        kept = np.delete(np.arange(count), graphs.one_node_of_each(net.tails, net.heads, count))
        arcs = np.arange(m, dtype=np.int32)
        balance = graphs.incidence_matrix(arcs, net.tails, net.heads, count, m)[kept].tocsc()
        return base.LinearDescription(net.lower.copy(), net.upper.copy(), balance, net.supply[kept])

    @classmethod
    def examples(cls) -> Sequence[Self]:
        cycle = [("s", "a"), ("a", "b"), ("b", "a"), ("a", "t"), ("b", "t"), ("s", "b")]
        two = [(0, 1), (1, 0), (0, 1), (2, 3), (3, 2), (3, 3)]
        sent: dict[Hashable, float] = {"s": 2.0, "t": -2.0}
        return (
            cls.from_edges(cycle, supplies=sent, upper=[1.5, 1.0, 1.0, 2.0, 1.5, 1.5]),
            cls.from_edges(two, supplies={}, lower=-0.5, upper=[1.0, 1.0, 3.0, 0.5, 0.75, 0.25]),
            cls.from_edges([("s", "t"), ("s", "t")], supplies=sent, upper=1.0),
        )


def _for_each(bounds: Array, count: int, which: str) -> Floats:
    words = f"{which} must be one number or {count}, not of shape {bounds.shape}."
    errors.require(tuple(bounds.shape) in ((), (count,)), errors.WrongShape, words, which)
    return np.array(np.broadcast_to(to_numpy(bounds), count), dtype=np.float64)
