"""What may change in a flow: the residual graph, with an arc's own direction where it can carry
more and the other where it can carry less.

Flows x and y differ by cycles of the residual graph of x. So an arc can change exactly when it lies
on such a cycle other than itself there and back: within a strong component, and no bridge of it.
(Were it neither, the nodes reached from its two ends without it would not meet: an arc between
them, or a node in both, would close a cycle.)

Where supplies cannot be met, the nodes S that the surplus still reaches in the residual graph of a
largest flow are the reason: every arc out of S is full, every arc into S at its lower bound, and
yet

    supply(S)  >  upper(arcs out of S) - lower(arcs into S)                (Gale 1957, Hoffman 1960)
"""

from __future__ import annotations

import numpy as np

from tidewolf.core.types import Bools, Int32s
from tidewolf.sets.graphs.network import FlowNetwork
from tidewolf.sets.graphs.nodes import first_names


def residual_directions(net: FlowNetwork) -> tuple[Bools, Bools]:
    """Which arcs can carry more, and which less, than in the flow of phase one."""
    flow = net.start.flow
    nothing = net.nothing(flow)
    return flow < net.room - nothing, flow > nothing


def loose_arcs(net: FlowNetwork) -> Int32s:
    """The arcs within strong components of the residual graph: bridges and arcs that can change."""
    more, less = residual_directions(net)
    tails, heads = (
        np.concatenate([net.tails[more], net.heads[less]]),
        np.concatenate([net.heads[more], net.tails[less]]),
    )
    strong = connected_parts(tails, heads, len(net.nodes), strong=True)
    loose: Int32s = np.flatnonzero((strong[net.tails] == strong[net.heads]) & (more | less)).astype(
        np.int32
    )
    return loose


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
    """Describe a cut that is too small, from the side with fewer nodes."""
    needed, most = float(net.supply[members].sum()), cut_capacity(net, members)
    behind = bool(members.sum() > len(members) / 2)
    names = first_names(
        [name for name, member in zip(net.nodes, members, strict=True) if member != behind]
    )
    verb, bring = ("draw", "bring") if behind else ("supply", "take")
    there, back = ("into", "out of") if behind else ("out of", "into")
    return (
        f"No flow exists: the nodes {names} {verb} {needed:g} in all, and the arcs {there} them "
        f"{bring} at most {most:g} (their upper bounds, less the lower bounds of the arcs {back} "
        f"them). Let bounds or supplies give way by {needed - most:g}."
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
