"""Cheapest flows of a network with bounds on its arcs and supplies at its nodes."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias, final

import numpy as np

from tidewolf.core.arrays import frozen
from tidewolf.core.errors import SolverFailed
from tidewolf.core.types import Bools, Floats, Int32s, NDArray
from tidewolf.core.values import Value
from tidewolf.kernels import cost_scaling as steps
from tidewolf.kernels import network_simplex as simplex
from tidewolf.kernels.network_simplex import ROUNDING, build_tree
from tidewolf.sets.graphs import first_names

# A basis near that of the cheapest flow, without a warm start: send the supply at zero cost, make
# the flow eps-optimal for a falling eps, and attach it to a tree (kernels/cost_scaling.py).
#
#     eps = 1/16, 1/16^2, ..., `LAST` mean costs / nodes
#
# From there pivots are quicker (kernels/network_simplex.py); they need no more from here than a
# start, so what rounding spoils costs time alone.

FACTOR = 16.0
"""By which eps falls."""

LAST = 50.0

Basis: TypeAlias = np.ndarray[Any, np.dtype[np.int8]]
"""1: at its lower bound, 0: in the tree, -1: at its upper bound; arcs first, then the artificial
arc of every node
"""

Arcs: TypeAlias = tuple[Int32s, Int32s, Floats]
"""Tails, heads and room of all arcs, the artificial ones last."""


class Residual(NamedTuple):
    """A flow in its residual graph, what nodes have too much, and room to work in."""

    graph: tuple[Int32s, Int32s, Int32s, Int32s]
    there: Int32s
    """where every arc leaves its tail"""
    back: Int32s
    """and its head"""
    price: Floats
    able: Floats
    infeasibility: Floats
    heap: tuple[Int32s, Int32s, Floats]
    queues: tuple[Int32s, Int32s, Int32s]

    def refined(self, pi: Floats, lost: Floats, eps: float, tiny: float) -> bool:
        """Make the flow eps-optimal; whether there was an end."""
        graph, _, _, price, able, infeasibility, heap, queues = self
        return bool(
            steps.refine(graph, price, able, pi, infeasibility, lost, heap, queues, eps, tiny)
        )


def scaled_basis(
    costs: Floats, arcs: Arcs, left: Floats, flow: Floats, floor: float
) -> Basis | None:
    """The basis; None where there was no end.

    Costs are at most 1. `flow` carries nothing, or all that is `left` to be sent; amounts like
    `floor` are nothing.
    """
    (tails, heads, room), nodes, count = arcs, len(left), len(flow)
    residual = residual_of(tails[:count], heads[:count], room[:count], left, flow)
    unsent, pi, tiny = np.zeros(nodes), np.zeros(nodes), 0.01 * floor
    if np.abs(residual.infeasibility).max() > tiny and not send(residual, left, unsent, tiny):
        return None
    if mean := float(np.abs(costs[:count]).mean()):
        residual.price[residual.there] = costs[:count]
        residual.price[residual.back] = -costs[:count]
        tiny = max(tiny, 0.01 * ROUNDING * float(room[:count].max()))
        eps, last = 1.0, max(1e-9, LAST * mean / nodes)
        while eps > last:
            eps = max(eps / FACTOR, last)
            if not residual.refined(pi, np.zeros(nodes), eps, tiny):
                return None
    graph, there, back, price, able, _, heap, queues = residual
    empty, full = able[back] <= tiny, able[there] <= tiny
    carried = np.where(empty, 0.0, np.where(full, room[:count], able[back]))
    amounts = np.concatenate([carried, np.where(unsent > tiny, unsent, 0.0)])
    basis = np.where(amounts > 0.0, np.int8(steps.BETWEEN), np.int8(1))
    basis[:count][full & ~empty] = -1
    steps.hang(graph, price, able, pi, left >= 0.0, basis, heap, queues, tiny)
    tree = np.empty((7, nodes + 1), dtype=np.int32)
    if not build_tree(basis, tails, heads, tree):
        return None
    steps.move_to_bounds(costs, arcs, (basis, amounts, np.zeros(nodes + 1)), tree, tiny)
    return basis


def send(residual: Residual, left: Floats, unsent: Floats, tiny: float) -> bool:
    """Send what nodes have too much to those that lack it, at no price; fill `unsent` with what no
    way has room for. Whether there was an end.
    """
    infeasibility, lost = residual.infeasibility, np.zeros(len(left))
    done = residual.refined(np.zeros(len(left)), lost, 1.0, tiny)
    if done and lost.any():  # what cannot arrive goes back to where it came from
        unsent += np.maximum(0.0, -infeasibility)
        infeasibility[:] = lost - np.maximum(0.0, left)
        done = residual.refined(np.zeros(len(left)), np.zeros(len(left)), 1.0, tiny)
        unsent += np.where(left > 0.0, left + infeasibility, 0.0)
    return done


def residual_of(tails: Int32s, heads: Int32s, room: Floats, left: Floats, flow: Floats) -> Residual:
    """That of a flow, at no price."""
    nodes, flow = len(left), np.clip(flow, 0.0, room)
    graph, there, back = residual_graph(tails, heads, nodes)
    able = np.empty(2 * len(flow))
    able[there], able[back] = room - flow, flow
    infeasibility = left - np.bincount(tails, flow, nodes) + np.bincount(heads, flow, nodes)
    order, where, one, two, three = np.empty((5, nodes), dtype=np.int32)
    heap, queues = (order, where, np.empty(nodes)), (one, two, three)
    return Residual(graph, there, back, np.zeros(len(able)), able, infeasibility, heap, queues)


def residual_graph(
    tails: Int32s, heads: Int32s, nodes: int
) -> tuple[tuple[Int32s, Int32s, Int32s, Int32s], Int32s, Int32s]:
    """(first, to, mate, arc), and where every arc leaves its tail, and its head."""
    count, ends = len(tails), np.concatenate([tails, heads])
    places = np.empty(2 * count, dtype=np.int32)
    places[np.argsort(ends, kind="stable")] = np.arange(2 * count)
    there, back = places[:count], places[count:]
    first = np.zeros(nodes + 1, dtype=np.int32)
    np.cumsum(np.bincount(ends, minlength=nodes), out=first[1:])
    to, mate, arc = np.empty((3, 2 * count), dtype=np.int32)
    to[there], to[back] = heads, tails
    mate[there], mate[back] = back, there
    arc[there] = arc[back] = np.arange(count)
    return (first, to, mate, arc), there, back


# A network with bounds on its arcs and supplies at its nodes, and its cheapest flows by the network
# simplex (kernels/network_simplex.py).

SCALED = 10_000
"""From how many arcs on cost scaling finds a first basis."""

WARM = 3
"""How many pivots a node may take there from another basis, before cost scaling is quicker."""


@final
@dataclass(frozen=True, eq=False, repr=False)
class FlowNetwork(Value):
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
        """Between the bounds of every arc."""
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
        """What leaves every node less what enters it."""
        count = len(self.supply)
        return np.asarray(
            np.bincount(self.tails, x, count) - np.bincount(self.heads, x, count), dtype=np.float64
        )

    @cached_property
    def floor(self) -> float:
        """An amount that is nothing beside what is supplied and must be carried."""
        return ROUNDING * float(max(np.abs(self.supply).sum(), np.abs(self.lower).max()))

    def nothing(self, flow: Floats) -> float:
        """An amount that is nothing beside a flow, too."""
        return max(self.floor, ROUNDING * float(np.abs(flow).max()))

    @cached_property
    def _with_root(self) -> Arcs:
        """With the artificial arcs: towards the root where something is to be sent."""
        nodes, sends = np.arange(len(self.supply), dtype=np.int32), self.left >= 0
        root = np.full(len(nodes), len(nodes), dtype=np.int32)
        return (
            np.concatenate([self.tails, np.where(sends, nodes, root)]),
            np.concatenate([self.heads, np.where(sends, root, nodes)]),
            np.concatenate([self.room, np.full(len(nodes), np.inf)]),
        )

    @cached_property
    def start(self) -> PhaseOne:
        """Phase one, from cost scaling's basis where there are many arcs, else from the artificial
        arcs.
        """
        arcs, nodes = len(self.tails), len(self.supply)
        costs = np.concatenate([np.zeros(arcs), np.ones(nodes)])
        artificial = np.concatenate([np.ones(arcs, dtype=np.int8), np.zeros(nodes, dtype=np.int8)])
        bases = [artificial]
        if arcs >= SCALED:
            none = np.zeros(arcs)
            scaled = scaled_basis(costs, self._with_root, self.left, none, self.floor)
            bases = [artificial] if scaled is None else [scaled, artificial]
        for basis in bases:
            flow, gap = self._improved(costs, self._with_root, basis, self._limit)
            if gap >= 0:
                return PhaseOne(frozen(basis), frozen(flow[:arcs]), frozen(flow[arcs:]))
        raise SolverFailed(f"The network simplex did not end on {arcs} arcs.")

    def cheapest(self, costs: Floats, warm: Basis | None = None) -> CheapestFlow:
        """The cheapest flow, from the basis `warm` where that is one of this network's, else from
        cost scaling's where there are many arcs, else from that of phase one.
        """
        arcs, nodes = len(self.tails), len(self.supply)
        unit = float(np.max(np.abs(costs), initial=0.0))
        tails, heads, room = self._with_root
        # nothing may come from the root, so nothing goes there
        room = np.where(tails == nodes, 0.0, room)
        given = np.concatenate([costs / (unit or 1.0), np.zeros(nodes)])
        for basis, limit in self._starts(given, (tails, heads, room), warm):
            flow, gap = self._improved(given, (tails, heads, room), basis, limit)
            if gap >= 0 and float(np.abs(flow[arcs:]).max()) <= self.nothing(flow):
                x = np.clip(self.lower + flow[:arcs], self.lower, self.upper)
                return CheapestFlow(x, unit * gap, frozen(basis))
        raise SolverFailed(f"The network simplex found no cheapest flow on {arcs} arcs.")

    def _starts(self, costs: Floats, arcs: Arcs, warm: Basis | None) -> Iterator[tuple[Basis, int]]:
        """Bases, and how many pivots each may take: from a warm one, on large networks, few enough
        that those from cost scaling are not far.
        """
        large = len(self.tails) >= SCALED and bool(costs.any())
        if warm is not None and self._is_basis(warm):
            yield warm.copy(), WARM * len(self.supply) if large else self._limit
        if large:
            scaled = scaled_basis(costs, arcs, self.left, self.start.flow, self.floor)
            if scaled is not None:
                yield scaled, self._limit
        yield self.start.basis.copy(), self._limit

    @property
    def _limit(self) -> int:
        """More pivots than are ever needed."""
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

    def _is_basis(self, warm: Basis) -> bool:
        """Whether it looks like one; whether its tree spans the graph, and its flow keeps the
        bounds, is seen on the way.
        """
        fits = warm.shape == self.start.basis.shape and warm.dtype == np.int8
        return fits and bool((warm[len(self.tails) :] >= 0).all())


class PhaseOne(NamedTuple):
    """A basis to start from; where `unsent` is not 0, no flow exists."""

    basis: Basis
    flow: Floats
    """above the lower bounds"""
    unsent: Floats
    """by every node: what it could not send, or did not get"""


class CheapestFlow(NamedTuple):
    """A flow, how much cheaper another could be at most, and the basis it came from."""

    x: Floats
    gap: float
    basis: Basis


# What may change in a flow: the residual graph, with an arc's own direction where it can carry more
# and the other where it can carry less.
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


def residual_directions(net: FlowNetwork) -> tuple[Bools, Bools]:
    """Which arcs can carry more, and which less, than in the flow of phase one."""
    flow = net.start.flow
    nothing = net.nothing(flow)
    return flow < net.room - nothing, flow > nothing


def loose_arcs(net: FlowNetwork) -> Int32s:
    """The arcs within strong components of the residual graph: bridges and arcs that can change."""
    more, less = residual_directions(net)
    tails = np.concatenate([net.tails[more], net.heads[less]])
    heads = np.concatenate([net.heads[more], net.tails[less]])
    strong = connected_parts(tails, heads, len(net.nodes), strong=True)
    together = strong[net.tails] == strong[net.heads]
    return np.flatnonzero(together & (more | less)).astype(np.int32)


def connected_parts(tails: Int32s, heads: Int32s, nodes: int, *, strong: bool = False) -> Int32s:
    """The number of the connected (strong: strongly connected) part of every node."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    graph = csr_array((np.ones(len(tails)), (tails, heads)), shape=(nodes, nodes))
    part: Int32s = connected_components(graph, directed=strong, connection="strong")[1]
    return part


def one_node_of_each(part: Int32s) -> Int32s:
    """A node of each part."""
    return np.unique(part, return_index=True)[1].astype(np.int32)


def violated_cut(net: FlowNetwork) -> Bools | None:
    """The nodes of a cut that is too small for their supply; None where a flow exists."""
    if net.start.unsent.max() <= net.nothing(net.start.flow):
        return None
    reached = (net.start.unsent > 0) & (net.left > 0)
    more, less = residual_directions(net)
    while True:
        ahead = reached.copy()
        ahead[net.heads[more & reached[net.tails]]] = True
        ahead[net.tails[less & reached[net.heads]]] = True
        if (ahead == reached).all():
            return reached
        reached = ahead


def cut_capacity(net: FlowNetwork, members: Bools) -> float:
    """What can leave these nodes at most, less what must enter them."""
    out = members[net.tails] & ~members[net.heads]
    into = ~members[net.tails] & members[net.heads]
    return float(net.upper[out].sum() - net.lower[into].sum())


def cut_sentence(net: FlowNetwork, members: Bools) -> str:
    """Describe a cut that is too small."""
    needed, most = float(net.supply[members].sum()), cut_capacity(net, members)
    names = first_names([net.nodes[v] for v in np.flatnonzero(members)])
    return (
        f"No flow exists: the nodes {names} supply {needed:g} in all, and the arcs out of them "
        f"take at most {most:g}. Change bounds or supplies by {needed - most:g}."
    )


def bridges(tails: Int32s, heads: Int32s, nodes: int) -> Bools:
    """Which arcs lie on no cycle, directions aside: those whose lower end reaches nothing above it
    another way (Tarjan 1974).
    """
    around: list[list[tuple[int, int]]] = [[] for _ in range(nodes)]
    for e, (tail, head) in enumerate(zip(tails.tolist(), heads.tolist(), strict=True)):
        around[tail].append((e, head))
        around[head].append((e, tail))
    found, entered, low = np.zeros(len(tails), dtype=bool), [-1] * nodes, [0] * nodes
    clock = 0
    for root in range(nodes):
        if entered[root] >= 0:
            continue
        entered[root] = low[root] = clock
        clock += 1
        stack = [(root, -1, iter(around[root]))]
        while stack:
            v, above, ways = stack[-1]
            for e, w in ways:
                if entered[w] < 0:
                    entered[w] = low[w] = clock
                    clock += 1
                    stack.append((w, e, iter(around[w])))
                    break
                if e != above:
                    low[v] = min(low[v], entered[w])
            else:
                stack.pop()
                if stack:
                    u = stack[-1][0]
                    low[u] = min(low[u], low[v])
                    found[above] = low[v] > entered[u]
    return found
