"""Steps of cost scaling (Goldberg 1997), and the tree its flow is hung on; scaling.py takes them.

    eps-optimal:   rc_uv = price_uv + pi_u - pi_v >= -eps   on every arc of the residual graph

Every residual arc with rc < 0 is filled, and what nodes then have too much is pushed along arcs
with rc < 0, over at most `STRIDE` arcs at a time (Goldberg 2008). A node without such an arc is
relabelled: its pi falls until one has rc = -eps. At first, and after as many relabels as there are
nodes, pi falls by the distances to nodes that lack something, lengths rc + eps, so that the
shortest ways have rc = -eps; what has no way is set aside as lost.

Arcs strictly between their bounds are hung first, which leaves a forest. Its parts follow by their
distance from the root in the residual graph, lengths rc: from every node something can be sent to
the root (Cunningham 1976), and where all rc >= 0 the tree is best. An arc between its bounds that
would close a cycle is pushed to a bound, or into the tree.

A residual graph is (first, to, mate, arc): what leaves node v stands at first[v] to first[v + 1],
`mate` is where the same arc leaves its other end; `able` is what still fits. A heap is (nodes,
where each stands, keys). Naive twins: linear programs and all shortest ways in
tests/test_cost_scaling.py.
"""

from __future__ import annotations

import numpy as np

from tidewolf.core.jit import kernel
from tidewolf.kernels.network_simplex import ORDER, pivot, potential

STRIDE = 4

PATIENCE = 1000
"""How many times distances are computed for one eps before the search is given up."""

BETWEEN = 2
"""In a basis: strictly between its bounds, and not in the tree."""

ABSENT, DONE = -1, -2


@kernel
def refine(  # type: ignore[no-untyped-def]
    graph, price, able, pi, infeasibility, lost, heap, queues, eps, tiny
):
    """Make the flow eps-optimal; whether that came before patience was lost.

    `heap` and `queues`, three rows, are to work in.
    """
    first, to, mate, _ = graph
    queue, queued, at = queues
    nodes = len(pi)
    for v in range(nodes):
        queued[v] = 0
        for p in range(first[v], first[v + 1]):
            if able[p] > 0.0 and price[p] + pi[v] - pi[to[p]] < 0.0:
                infeasibility[v] -= able[p]
                infeasibility[to[p]] += able[p]
                able[mate[p]] += able[p]
                able[p] = 0.0
    begin, waiting = 0, 0
    for v in range(nodes):
        if infeasibility[v] > tiny:
            queue[waiting], queued[v] = v, 1
            waiting += 1
    path, relabels, updates = np.empty(STRIDE, dtype=np.int32), nodes, 0
    while waiting > 0:
        if relabels >= nodes:
            if updates == PATIENCE:
                return False
            lower_by_distances(graph, price, able, pi, infeasibility, lost, heap, eps, tiny)
            relabels, updates = 0, updates + 1
            for v in range(nodes):
                at[v] = first[v]
        start = queue[begin]
        if infeasibility[start] <= tiny:
            queued[start], waiting, begin = 0, waiting - 1, begin + 1
            if begin == nodes:
                begin = 0
            continue
        tip, length = start, 0
        while length < STRIDE and infeasibility[tip] >= -tiny and relabels < nodes:
            p, least = way_out(graph, price, able, pi, tip, at[tip], tiny)
            if p >= 0:
                at[tip], path[length] = p, p
                tip, length = to[p], length + 1
                continue
            if least == np.inf:
                break
            pi[tip] -= least + eps
            at[tip], relabels = first[tip], relabels + 1
            if length > 0:
                length -= 1
                tip = to[mate[path[length]]]
        if length == 0:  # nothing leaves it: distances tell
            relabels = nodes
        v = start
        for i in range(length):
            p = path[i]
            w, amount = to[p], min(infeasibility[v], able[p])
            able[p] -= amount
            able[mate[p]] += amount
            infeasibility[v] -= amount
            infeasibility[w] += amount
            if infeasibility[w] <= tiny:
                break
            if queued[w] == 0:
                last = begin + waiting
                queue[last if last < nodes else last - nodes], queued[w] = w, 1
                waiting += 1
            v = w
    return True


@kernel
def way_out(graph, price, able, pi, v, begin, tiny):  # type: ignore[no-untyped-def]
    """The first arc out of v with rc < 0, looked for from `begin` on, else -1; and the least rc."""
    first, to, _, _ = graph
    least, own = np.inf, pi[v]
    for p in range(begin, first[v + 1]):
        if able[p] > tiny:
            rc = price[p] + own - pi[to[p]]
            if rc < 0.0:
                return p, rc
            least = min(least, rc)
    for p in range(first[v], begin):
        if able[p] > tiny:
            least = min(least, price[p] + own - pi[to[p]])
    return -1, least


@kernel
def lower_by_distances(  # type: ignore[no-untyped-def]
    graph, price, able, pi, infeasibility, lost, heap, eps, tiny
):
    """Lower pi by the distances to nodes that lack something; what reaches none is lost."""
    first, to, mate, _ = graph
    order, where, distance = heap
    size, active, far = 0, 0, 0.0
    for v in range(len(pi)):
        where[v], distance[v] = ABSENT, np.inf
        if infeasibility[v] < -tiny:
            order[size], where[v], distance[v] = v, size, 0.0
            size += 1
        elif infeasibility[v] > tiny:
            active += 1
    while size > 0 and active > 0:
        size = take_least(heap, size)
        u = order[size]
        far = distance[u]
        if infeasibility[u] > tiny:
            active -= 1
        for p in range(first[u], first[u + 1]):
            w, q = to[p], mate[p]
            if able[q] > tiny and where[w] != DONE:
                reached = far + max(0.0, price[q] + pi[w] - pi[u] + eps)
                if reached < distance[w]:
                    size = rise(heap, w, reached, size)
    for v in range(len(pi)):
        pi[v] -= distance[v] if where[v] == DONE else far
        if active > 0 and where[v] != DONE and infeasibility[v] > tiny:
            lost[v] += infeasibility[v]
            infeasibility[v] = 0.0


@kernel
def hang(graph, price, able, pi, sends, basis, heap, queues, tiny):  # type: ignore[no-untyped-def]
    """Put arcs that lead from every node to the root into the tree, 0 in `basis`.

    The artificial arcs come last; one that carries nothing is taken where a node `sends`.
    """
    first, to, mate, arc = graph
    order, where, distance = heap
    by, stack, _ = queues
    nodes, size = len(pi), 0
    count = len(basis) - nodes
    for v in range(nodes):
        by[v], where[v], distance[v] = count + v, ABSENT, np.inf
        if basis[count + v] == BETWEEN:
            order[size], where[v], distance[v] = v, size, 0.0
            size += 1
    for root in range(-1, nodes):
        if root >= 0 and where[root] == ABSENT and sends[root]:
            order[0], where[root], distance[root], size = root, 0, 0.0, 1
        while size > 0:
            size = take_least(heap, size)
            part = order[size]
            basis[by[part]] = 0
            far, stack[0], high = distance[part], part, 1
            while high > 0:
                high -= 1
                u = stack[high]
                for p in range(first[u], first[u + 1]):
                    w, q = to[p], mate[p]
                    if where[w] == DONE or able[q] <= tiny:
                        continue
                    inside = able[p] > tiny
                    reached = -1.0 if inside else far + max(0.0, price[q] + pi[w] - pi[u])
                    if reached < distance[w]:
                        size, by[w] = rise(heap, w, reached, size), arc[p]
                    if inside:
                        size = take_least(heap, size)
                        distance[w], basis[arc[p]], stack[high] = far, 0, w
                        high += 1


@kernel
def rise(heap, v, key, size):  # type: ignore[no-untyped-def]
    """Put v into the heap, or up in it; its size then."""
    order, where, keys = heap
    i = where[v]
    if i == ABSENT:
        i, size = size, size + 1
    keys[v] = key
    while i > 0 and keys[order[(i - 1) // 2]] > key:
        order[i] = order[(i - 1) // 2]
        where[order[i]] = i
        i = (i - 1) // 2
    order[i], where[v] = v, i
    return size


@kernel
def take_least(heap, size):  # type: ignore[no-untyped-def]
    """Take the node with the least key out of the heap, to its place behind; its size then."""
    order, where, keys = heap
    least, size = order[0], size - 1
    v, i = order[size], 0
    while 2 * i + 1 < size:
        below = 2 * i + 1
        if below + 1 < size and keys[order[below + 1]] < keys[order[below]]:
            below += 1
        if keys[order[below]] >= keys[v]:
            break
        order[i] = order[below]
        where[order[i]] = i
        i = below
    order[i], where[v] = v, i
    order[size], where[least] = least, DONE
    return size


@kernel
def move_to_bounds(costs, arcs, state, tree, tiny):  # type: ignore[no-untyped-def]
    """Push arcs between their bounds round the cycles they close; an arc without room goes to the
    bound that its rc asks for.
    """
    tails, heads, room = arcs
    basis, _, pi = state
    nodes = tree.shape[1]
    for i in range(1, nodes):
        v = tree[ORDER, i]
        pi[v] = potential(costs, tails, pi, tree, v)
    for e in range(len(basis)):
        if basis[e] == BETWEEN:
            basis[e] = 1 if costs[e] + pi[tails[e]] - pi[heads[e]] < 0.0 else -1
            pivot(costs, arcs, state, tree, tiny, e)
    for e in range(len(basis) - nodes + 1):
        if basis[e] != 0 and room[e] == 0.0:
            basis[e] = -1 if costs[e] + pi[tails[e]] - pi[heads[e]] < 0.0 else 1
