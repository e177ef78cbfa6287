"""The cheapest flow within arc bounds by the primal network simplex, started anywhere a flow is
known.

    min <cost, x>   subject to   A x = supply,   lower <= x <= upper

A basis is a spanning tree and, for every other arc, the bound it sits at; it fixes the flow. An arc
(u, v) off the tree with rc = cost + pi_u - pi_v of the wrong sign closes a cycle, is pushed until
some arc of the cycle hits a bound, and trades places with it. Of several blocking arcs the last
along the cycle from its top leaves (Cunningham 1976), so that no basis comes twice. Costs do not
enter feasibility: the basis that answered one cost is a start for the next. The first start is the
artificial arcs, each as dear as any path, with arcs of negative cost full: as quick as cost scaling
(Goldberg 1997), which took 0.4 to 1.6 times as long on grids and random graphs of 10,000 to 140,000
arcs.

Every node has an artificial arc to a root, which phase one empties; afterwards these carry
nothing and cost nothing. What any potentials pi prove, however they were computed:

    <cost, x> - min  <=  sum_e  rc_e^+ (x_e - lower_e) + rc_e^- (upper_e - x_e)

Arcs are a tuple (tails, heads, room), `room` what lies between their bounds; the state of a search
is (basis, flow, pi). Reference implementations: linear programs (`program`) and all bases
(`corners_of`) in tests/test_flows.py.
"""

import numpy as np

from tidewolf.core.jit import kernel

# What counts as nothing, beside the largest amounts.
ROUNDING = 1e-12

# rows of `tree`: parent, arc to the parent, depth, first child, next and previous sibling, and an
# order in which parents come first
PARENT, ARC, DEPTH, CHILD, NEXT, PREVIOUS, ORDER = range(7)


@kernel
def build_tree(basis, tails, heads, tree):  # type: ignore[no-untyped-def]
    """Fill `tree` with the basis's tree, the last node its root; whether it is one."""
    nodes, arcs = tree.shape[1], len(basis)
    # lists of the arcs at each node, in order: end k of the basis is the tail or head of arc k // 2
    first, after = np.full(nodes, -1, np.int32), np.empty(2 * arcs, np.int32)
    for e in range(arcs - 1, -1, -1):
        if basis[e] == 0:
            after[2 * e], first[tails[e]] = first[tails[e]], 2 * e
            after[2 * e + 1], first[heads[e]] = first[heads[e]], 2 * e + 1
    for v in range(nodes):
        tree[DEPTH, v], tree[CHILD, v] = -1, -1
        tree[NEXT, v], tree[PREVIOUS, v] = -1, -1
    root, known = nodes - 1, 1
    tree[PARENT, root], tree[ARC, root] = -1, -1
    tree[DEPTH, root], tree[ORDER, 0] = 0, root
    for i in range(nodes):
        if i == known:
            return False
        u = tree[ORDER, i]
        k = first[u]
        while k >= 0:
            e, k = k // 2, after[k]
            v = heads[e] if tails[e] == u else tails[e]
            if e != tree[ARC, u]:
                if tree[DEPTH, v] >= 0:
                    return False
                attach(tree, v, u, e)
                tree[DEPTH, v] = tree[DEPTH, u] + 1
                tree[ORDER, known] = v
                known += 1
    return True


@kernel
def attach(tree, v, u, e):  # type: ignore[no-untyped-def]
    """Make u the parent of v, by the arc e."""
    tree[PARENT, v], tree[ARC, v] = u, e
    sibling = tree[CHILD, u]
    tree[NEXT, v], tree[PREVIOUS, v], tree[CHILD, u] = sibling, -1, v
    if sibling >= 0:
        tree[PREVIOUS, sibling] = v


@kernel
def detach(tree, v):  # type: ignore[no-untyped-def]
    """Take v from its parent."""
    before, after = tree[PREVIOUS, v], tree[NEXT, v]
    if before >= 0:
        tree[NEXT, before] = after
    else:
        tree[CHILD, tree[PARENT, v]] = after
    if after >= 0:
        tree[PREVIOUS, after] = before


@kernel
def basic_flow(arcs, supply, basis, tree, flow, floor):  # type: ignore[no-untyped-def]
    """Fill `flow` with the one flow of the basis; whether it is within bounds up to rounding."""
    tails, heads, room = arcs
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
def improve(costs, arcs, state, tree, count, floor, limit):  # type: ignore[no-untyped-def]
    """Pivot until none of the first `count` arcs can be improved on; whether that came within the
    limit.

    Costs are at most 1.
    """
    tails, heads, room = arcs
    basis, flow, pi = state
    nodes, largest = tree.shape[1], 0.0
    for e in range(len(basis)):
        largest = max(largest, abs(flow[e]))
    tiny = 0.01 * max(floor, ROUNDING * largest)
    for e in range(len(basis)):
        if basis[e] == 0:
            flow[e] = snap_to_bound(flow[e], room[e], tiny)
    for i in range(1, nodes):
        v = tree[ORDER, i]
        pi[v] = potential(costs, tails, pi, tree, v)
    block, at = max(20, int(np.sqrt(count))), 0
    for _ in range(limit):
        best, entering, seen = ROUNDING, -1, 0
        for _ in range(count):
            gain = -basis[at] * (costs[at] + pi[tails[at]] - pi[heads[at]])
            if gain > best:
                best, entering = gain, at
            at, seen = at + 1 if at + 1 < count else 0, seen + 1
            if seen == block:
                if entering >= 0:
                    break
                seen = 0
        if entering < 0:
            return True
        pivot(costs, arcs, state, tree, tiny, entering)
    return False


@kernel
def potential(costs, tails, pi, tree, v):  # type: ignore[no-untyped-def]
    """pi of a node from its parent's."""
    e, u = tree[ARC, v], tree[PARENT, v]
    return pi[u] - costs[e] if tails[e] == v else pi[u] + costs[e]


@kernel
def snap_to_bound(amount, room, tiny):  # type: ignore[no-untyped-def]
    """An amount at its bound where rounding put it beside."""
    if amount <= tiny:
        return 0.0 if amount >= -tiny else amount
    return room if abs(room - amount) <= tiny else amount


@kernel
def pivot(costs, arcs, state, tree, tiny, entering):  # type: ignore[no-untyped-def]
    """Push along the cycle that `entering` closes: over it from `here` to `there`, up the tree to
    the top, down to `here`.
    """
    tails, heads, room = arcs
    basis, flow, pi = state
    here, there = tails[entering], heads[entering]
    if basis[entering] < 0:
        here, there = there, here
    top, other = here, there
    while top != other:
        if tree[DEPTH, top] >= tree[DEPTH, other]:
            top = tree[PARENT, top]
        else:
            other = tree[PARENT, other]
    step = room[entering] - flow[entering] if basis[entering] > 0 else flow[entering]
    out, side = -1, 0
    for way in (1, 2):
        v = here if way == 1 else there
        while v != top:
            e = tree[ARC, v]
            able = flow[e] if (tails[e] == v) == (way == 1) else room[e] - flow[e]
            if able < step or (way == 2 and able == step):
                step, out, side = able, v, way
            v = tree[PARENT, v]
    step = max(step, 0.0)
    flow[entering] += step if basis[entering] > 0 else -step
    for begin, sign in ((here, -step), (there, step)):
        v = begin
        while v != top:
            e = tree[ARC, v]
            flow[e] = snap_to_bound(flow[e] + (sign if tails[e] == v else -sign), room[e], tiny)
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
        detach(tree, v)
        attach(tree, v, u, e)
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
def proved_gap(costs, arcs, count, flow, pi):  # type: ignore[no-untyped-def]
    """The bound above over the first `count` arcs, from these potentials alone."""
    tails, heads, room = arcs
    gap = 0.0
    for e in range(count):
        rc = costs[e] + pi[tails[e]] - pi[heads[e]]
        gap += rc * flow[e] if rc > 0 else -rc * (room[e] - flow[e])
    return max(gap, 0.0)
