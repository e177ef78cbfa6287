"""The cheapest flow within arc bounds by the primal network simplex, started anywhere a flow is
known.

    min <cost, x>   subject to   A x = supply,   lower <= x <= upper

A basis is a spanning tree and, for every other arc, the bound it sits at; it fixes the flow. An arc
(u, v) off the tree with rc = cost + pi_u - pi_v of the wrong sign closes a cycle, is pushed until
some arc of the cycle hits a bound, and trades places with it. Of several blocking arcs the last
along the cycle from its top leaves (Cunningham 1976), so that no basis comes twice. Costs do not
enter feasibility: the basis that answered one cost is a start for the next.

Every node hangs from a root by an artificial arc, which phase one empties; afterwards these carry
nothing and cost nothing. What any potentials pi prove, whoever computed them:

    <cost, x> - min  <=  sum_e  rc_e^+ (x_e - lower_e) + rc_e^- (upper_e - x_e)
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, final

import numpy as np

from tidewolf.core.arrays import frozen
from tidewolf.core.errors import SolverFailed
from tidewolf.core.jit import kernel
from tidewolf.core.types import Floats, Int32s, NDArray
from tidewolf.core.values import Value

Basis = np.ndarray[Any, np.dtype[np.int8]]
"""1: at its lower bound, 0: in the tree, -1: at its upper bound; arcs first, then the artificial
arc of every node
"""

ROUNDING = 1e-12
"""What counts as nothing, beside the largest amounts."""


@final
@dataclass(frozen=True, eq=False, repr=False)
class Network(Value):
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
        at_node = (
            np.abs(self.supply)
            + np.bincount(self.tails, size, len(left))
            + np.bincount(self.heads, size, len(left))
        )
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
    def _hung(self) -> tuple[Int32s, Int32s, Floats]:
        """Tails, heads and room of all arcs, the artificial ones last: towards the root where
        something is to be sent.
        """
        nodes, sends = np.arange(len(self.supply), dtype=np.int32), self.left >= 0
        root = np.full(len(nodes), len(nodes), dtype=np.int32)
        return (
            np.concatenate([self.tails, np.where(sends, nodes, root)]),
            np.concatenate([self.heads, np.where(sends, root, nodes)]),
            np.concatenate([self.room, np.full(len(nodes), np.inf)]),
        )

    @cached_property
    def start(self) -> Start:
        """Phase one."""
        arcs, nodes = len(self.tails), len(self.supply)
        basis = np.concatenate([np.ones(arcs, dtype=np.int8), np.zeros(nodes, dtype=np.int8)])
        tails, heads, room = self._hung
        costs = np.concatenate([np.zeros(arcs), np.ones(nodes)])
        flow, gap = _solved(costs, room, tails, heads, self.left, basis, arcs, self.floor)
        if gap < 0:
            raise SolverFailed(
                f"The network simplex could not tell within its limit of steps whether {arcs} arcs "
                "have a flow."
            )
        return Start(frozen(basis), frozen(flow[:arcs]), frozen(flow[arcs:]))

    def cheapest(self, costs: Floats, warm: Basis | None = None) -> Cheapest:
        """The cheapest flow, from the basis `warm` where that is one of this network's, else from
        that of phase one.
        """
        arcs, nodes = len(self.tails), len(self.supply)
        unit = float(np.max(np.abs(costs), initial=0.0)) or 1.0
        tails, heads, room = self._hung
        # nothing may come from the root, so nothing goes there
        room = np.where(tails == nodes, 0.0, room)
        given = np.concatenate([costs / unit, np.zeros(nodes)])
        for start in (warm, self.start.basis) if self._is_basis(warm) else (self.start.basis,):
            assert start is not None
            basis = start.copy()
            flow, gap = _solved(given, room, tails, heads, self.left, basis, arcs, self.floor)
            if gap >= 0 and float(np.abs(flow[arcs:]).max()) <= self.nothing(flow):
                return Cheapest(
                    np.clip(self.lower + flow[:arcs], self.lower, self.upper),
                    unit * gap,
                    frozen(basis),
                )
        raise SolverFailed(
            f"The network simplex found no cheapest flow on {arcs} arcs that keeps its bounds, "
            "within its limit of steps."
        )

    def _is_basis(self, warm: Basis | None) -> bool:
        """Whether it looks like one; whether its tree spans the graph, and its flow keeps the
        bounds, is seen on the way.
        """
        if warm is None or warm.shape != self.start.basis.shape or warm.dtype != np.int8:
            return False
        return bool((warm[len(self.tails) :] >= 0).all())


class Start(NamedTuple):
    """A basis to start from; where `unsent` is not 0, no flow exists."""

    basis: Basis
    flow: Floats
    """above the lower bounds"""
    unsent: Floats
    """by every node: what it could not send, or did not get"""


class Cheapest(NamedTuple):
    """A flow, how much cheaper another could be at most, and the basis it came from."""

    x: Floats
    gap: float
    basis: Basis


def _solved(
    costs: Floats,
    room: Floats,
    tails: Int32s,
    heads: Int32s,
    supply: Floats,
    basis: Basis,
    arcs: int,
    floor: float,
) -> tuple[Floats, float]:
    """The flow of the best basis, which `basis` becomes, and its gap; a negative one says that
    there was no start, or no end.
    """
    flow, pi, tree = (
        np.empty(len(basis)),
        np.zeros(len(supply) + 1),
        np.empty((7, len(supply) + 1), dtype=np.int32),
    )
    if not hang(basis, tails, heads, tree) or not basic_flow(
        room, tails, heads, supply, basis, tree, flow, floor
    ):
        return flow, -1.0
    if not improve(
        costs, room, tails, heads, basis, arcs, flow, pi, tree, floor, 100 * len(basis) + 1000
    ):
        return flow, -1.0
    hang(basis, tails, heads, tree)
    if not basic_flow(room, tails, heads, supply, basis, tree, flow, floor):
        return flow, -1.0
    return flow, float(proved_gap(costs, room, tails, heads, arcs, flow, pi))


# rows of `tree`: parent, arc to the parent, depth, first child, next and previous sibling, and an
# order in which parents come first
PARENT, ARC, DEPTH, CHILD, NEXT, PREVIOUS, ORDER = range(7)


@kernel
def hang(basis, tails, heads, tree):  # type: ignore[no-untyped-def]
    """Fill `tree` with the basis's tree, hung from the last node; whether it is one."""
    nodes = tree.shape[1]
    first = np.zeros(nodes + 1, dtype=np.int32)
    count = 0
    for e in range(len(basis)):
        if basis[e] == 0:
            count += 1
            first[tails[e] + 1] += 1
            first[heads[e] + 1] += 1
    for v in range(nodes):
        first[v + 1] += first[v]
    arcs, fill = np.empty(2 * count, dtype=np.int32), first.copy()
    for e in range(len(basis)):
        if basis[e] == 0:
            arcs[fill[tails[e]]] = e
            fill[tails[e]] += 1
            arcs[fill[heads[e]]] = e
            fill[heads[e]] += 1
    for v in range(nodes):
        tree[DEPTH, v], tree[CHILD, v], tree[NEXT, v], tree[PREVIOUS, v] = -1, -1, -1, -1
    root, known = nodes - 1, 1
    tree[PARENT, root], tree[ARC, root], tree[DEPTH, root], tree[ORDER, 0] = -1, -1, 0, root
    for i in range(nodes):
        if i == known:
            return False
        u = tree[ORDER, i]
        for k in range(first[u], first[u + 1]):
            e = arcs[k]
            v = heads[e] if tails[e] == u else tails[e]
            if e != tree[ARC, u]:
                if tree[DEPTH, v] >= 0:
                    return False
                adopt(tree, v, u, e)
                tree[DEPTH, v] = tree[DEPTH, u] + 1
                tree[ORDER, known] = v
                known += 1
    return True


@kernel
def adopt(tree, v, u, e):  # type: ignore[no-untyped-def]
    """Hang v from u by the arc e."""
    tree[PARENT, v], tree[ARC, v] = u, e
    sibling = tree[CHILD, u]
    tree[NEXT, v], tree[PREVIOUS, v], tree[CHILD, u] = sibling, -1, v
    if sibling >= 0:
        tree[PREVIOUS, sibling] = v


@kernel
def release(tree, v):  # type: ignore[no-untyped-def]
    """Take v from its parent."""
    before, after = tree[PREVIOUS, v], tree[NEXT, v]
    if before >= 0:
        tree[NEXT, before] = after
    else:
        tree[CHILD, tree[PARENT, v]] = after
    if after >= 0:
        tree[PREVIOUS, after] = before


@kernel
def basic_flow(  # type: ignore[no-untyped-def]
    room, tails, heads, supply, basis, tree, flow, floor
):
    """Fill `flow` with the one flow of the basis; whether it is within bounds up to rounding."""
    nodes = tree.shape[1]
    sent, largest = np.zeros(nodes), 0.0
    for v in range(nodes - 1):
        sent[v] = supply[v]
        largest = max(largest, abs(supply[v]))
    for e in range(len(basis)):
        if basis[e] < 0:
            flow[e] = room[e]
            sent[tails[e]] -= room[e]
            sent[heads[e]] += room[e]
            largest = max(largest, room[e])
        elif basis[e] > 0:
            flow[e] = 0.0
    worst = 0.0
    for i in range(nodes - 1, 0, -1):
        v = tree[ORDER, i]
        e, u = tree[ARC, v], tree[PARENT, v]
        flow[e] = sent[v] if tails[e] == v else -sent[v]
        sent[u] += sent[v]
        largest = max(largest, abs(flow[e]))
        worst = max(worst, -flow[e], flow[e] - room[e])
    return worst <= max(floor, ROUNDING * largest)


@kernel
def improve(  # type: ignore[no-untyped-def]
    costs, room, tails, heads, basis, arcs, flow, pi, tree, floor, limit
):
    """Pivot until no arc can be improved on; whether that came within the limit.

    Costs are at most 1.
    """
    nodes, largest = tree.shape[1], 0.0
    for e in range(len(basis)):
        largest = max(largest, abs(flow[e]))
    tiny = 0.01 * max(floor, ROUNDING * largest)
    for e in range(len(basis)):
        if basis[e] == 0:
            flow[e] = settled(flow[e], room[e], tiny)
    for i in range(1, nodes):
        v = tree[ORDER, i]
        pi[v] = potential(costs, tails, pi, tree, v)
    block, at = max(20, int(np.sqrt(arcs))), 0
    for _ in range(limit):
        best, entering, seen = ROUNDING, -1, 0
        for _ in range(arcs):
            gain = -basis[at] * (costs[at] + pi[tails[at]] - pi[heads[at]])
            if gain > best:
                best, entering = gain, at
            at, seen = at + 1, seen + 1
            if at == arcs:
                at = 0
            if seen == block:
                if entering >= 0:
                    break
                seen = 0
        if entering < 0:
            return True
        pivot(costs, room, tails, heads, basis, flow, pi, tree, tiny, entering)
    return False


@kernel
def potential(costs, tails, pi, tree, v):  # type: ignore[no-untyped-def]
    """pi of a node from its parent's."""
    e, u = tree[ARC, v], tree[PARENT, v]
    return pi[u] - costs[e] if tails[e] == v else pi[u] + costs[e]


@kernel
def settled(amount, room, tiny):  # type: ignore[no-untyped-def]
    """An amount at its bound where rounding put it beside."""
    if amount <= tiny:
        return 0.0 if amount >= -tiny else amount
    return room if abs(room - amount) <= tiny else amount


@kernel
def pivot(  # type: ignore[no-untyped-def]
    costs, room, tails, heads, basis, flow, pi, tree, tiny, entering
):
    """Push along the cycle that `entering` closes: over it from `here` to `there`, up the tree to
    the top, down to `here`.
    """
    here, there = tails[entering], heads[entering]
    if basis[entering] < 0:
        here, there = there, here
    top, other = here, there
    while top != other:
        if tree[DEPTH, top] >= tree[DEPTH, other]:
            top = tree[PARENT, top]
        else:
            other = tree[PARENT, other]
    step, out, side = room[entering], -1, 0
    v = here
    while v != top:
        e = tree[ARC, v]
        able = flow[e] if tails[e] == v else room[e] - flow[e]
        if able < step:
            step, out, side = able, v, 1
        v = tree[PARENT, v]
    v = there
    while v != top:
        e = tree[ARC, v]
        able = room[e] - flow[e] if tails[e] == v else flow[e]
        if able <= step:
            step, out, side = able, v, 2
        v = tree[PARENT, v]
    step = max(step, 0.0)
    flow[entering] += step if basis[entering] > 0 else -step
    for begin, sign in ((here, -step), (there, step)):
        v = begin
        while v != top:
            e = tree[ARC, v]
            flow[e] = settled(flow[e] + (sign if tails[e] == v else -sign), room[e], tiny)
            v = tree[PARENT, v]
    if side == 0:
        basis[entering] = -basis[entering]
        flow[entering] = room[entering] if basis[entering] < 0 else 0.0
        return
    leaving = tree[ARC, out]
    emptied = (tails[leaving] == out) == (side == 1)
    basis[leaving], flow[leaving] = (1, 0.0) if emptied else (-1, room[leaving])
    basis[entering] = 0
    v, u, e = (here, there, entering) if side == 1 else (there, here, entering)
    moved = v
    while True:
        parent, arc = tree[PARENT, v], tree[ARC, v]
        release(tree, v)
        adopt(tree, v, u, e)
        if v == out:
            break
        v, u, e = parent, v, arc
    v = moved
    while True:
        tree[DEPTH, v] = tree[DEPTH, tree[PARENT, v]] + 1
        pi[v] = potential(costs, tails, pi, tree, v)
        if tree[CHILD, v] >= 0:
            v = tree[CHILD, v]
            continue
        while v != moved and tree[NEXT, v] < 0:
            v = tree[PARENT, v]
        if v == moved:
            return
        v = tree[NEXT, v]


@kernel
def proved_gap(costs, room, tails, heads, arcs, flow, pi):  # type: ignore[no-untyped-def]
    """The bound above, from these potentials alone."""
    gap = 0.0
    for e in range(arcs):
        rc = costs[e] + pi[tails[e]] - pi[heads[e]]
        gap += rc * flow[e] if rc > 0 else -rc * (room[e] - flow[e])
    return max(gap, 0.0)
