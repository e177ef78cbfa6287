"""Lightest spanning trees by Boruvka's algorithm, and what of a point no mean of trees can have.

Edges are rows of `ends`. Parts are named by `leader`: each node points towards the first node of
its part, which points to itself. scipy.sparse.csgraph.minimum_spanning_tree, which knows neither
parallel edges nor weights of 0, takes 14 times as long for 29 edges and 3.6 times for 100,000.
"""

import numpy as np

from tidewolf.core.jit import kernel


@kernel
def leader_of(leader, v):  # type: ignore[no-untyped-def]
    """The leader of a node's part; the way there is halved for the next time.

    Reference: sets of nodes, in `kruskal` of tests/test_orders.py.
    """
    while leader[v] != v:
        leader[v] = leader[leader[v]]
        v = leader[v]
    return v


@kernel
def lightest_tree(d, ends, tree):  # type: ignore[no-untyped-def]
    """Fill `tree` with the edges of the lightest spanning tree, the earlier of equally heavy edges
    counting as lighter.

    Every part, at first a node, takes its lightest edge to another; edges within the parts that
    result are left out, until there is one. Reference: `kruskal` in tests/test_orders.py.
    """
    m, nodes = len(d), len(tree) + 1
    weight, edge = np.empty(m), np.empty(m, dtype=np.int32)
    a, b = np.empty(m, dtype=np.int32), np.empty(m, dtype=np.int32)
    leader, best = np.empty(nodes, dtype=np.int32), np.empty(nodes, dtype=np.int32)
    least = np.empty(nodes)
    for v in range(nodes):
        leader[v] = v
    alive, count = 0, 0
    for e in range(m):
        if ends[e, 0] != ends[e, 1]:
            a[alive], b[alive] = ends[e, 0], ends[e, 1]
            edge[alive], weight[alive] = e, d[e]
            alive += 1
    while count < nodes - 1:
        for v in range(nodes):
            best[v], least[v] = -1, np.inf
        for k in range(alive):
            if weight[k] < least[a[k]]:
                best[a[k]], least[a[k]] = k, weight[k]
            if weight[k] < least[b[k]]:
                best[b[k]], least[b[k]] = k, weight[k]
        for v in range(nodes):
            if best[v] >= 0:
                p, q = leader_of(leader, a[best[v]]), leader_of(leader, b[best[v]])
                if p != q:
                    leader[max(p, q)] = min(p, q)
                    tree[count] = edge[best[v]]
                    count += 1
        for v in range(nodes):
            leader[v] = leader[leader[v]]  # leaders come first, so that theirs are known
        kept = 0
        for k in range(alive):
            p, q = leader[a[k]], leader[b[k]]
            if p != q:
                a[kept], b[kept] = p, q
                edge[kept], weight[kept] = edge[k], weight[k]
                kept += 1
        alive = kept


@kernel
def subset_infeasibility(x, ends, first, edges, dust):  # type: ignore[no-untyped-def]
    """max over sets S of nodes of x(E[S]) - |S| + 1: the most that cannot be handed to ends of
    which one takes nothing, the others 1.

    A largest flow for each node that takes nothing, by breadth-first augmenting paths from the one
    before; amounts up to `dust` are not worth moving. Edges at node v are edges[first[v]] ..
    edges[first[v + 1] - 1]. Reference: all sets of nodes, in tests/test_orders.py.
    """
    nodes = len(first) - 1
    held, load, room = np.empty((len(x), 2)), np.zeros(nodes), np.ones(nodes)
    for e in range(len(x)):
        for side in range(2):
            held[e, side] = 0.5 * x[e]
            load[ends[e, side]] += 0.5 * x[e]
    arrival, queue = np.empty(nodes, dtype=np.int64), np.empty(nodes, dtype=np.int64)
    amount, worst = np.empty(nodes), 0.0  # what can be moved to a node
    for s in range(nodes):
        room[s] = 0.0
        left = 0.0
        for v in range(nodes):
            while load[v] > room[v] + dust:
                for w in range(nodes):
                    arrival[w] = -1
                queue[0], goal = v, -1
                head, count = 0, 1
                arrival[v], amount[v] = len(x), load[v] - room[v]
                while head < count and goal < 0:
                    u = queue[head]
                    head += 1
                    for k in range(first[u], first[u + 1]):
                        e = edges[k]
                        side = 0 if ends[e, 0] == u else 1
                        w = ends[e, 1 - side]
                        if arrival[w] < 0 and held[e, side] > dust:
                            arrival[w], amount[w] = e, min(amount[u], held[e, side])
                            if load[w] < room[w] - dust:
                                goal = w
                                break
                            queue[count] = w
                            count += 1
                if goal < 0:
                    break
                moved, w = min(amount[goal], room[goal] - load[goal]), goal
                while w != v:
                    e = arrival[w]
                    side = 1 if ends[e, 0] == w else 0
                    held[e, side] -= moved
                    held[e, 1 - side] += moved
                    w = ends[e, side]
                load[v] -= moved
                load[goal] += moved
            left += max(0.0, load[v] - room[v])
        worst = max(worst, left)
        room[s] = 1.0
    return worst


# --- Isotonic regression --------------------------------------------------------------------------
#
# scipy.optimize.isotonic_regression takes 9.5, 9.8 and 83 microseconds for 10, 100 and 10,000
# entries, the kernel 0.6, 1.0 and 78 (lower is better): a projection of 10 entries is twice as fast
# with it. SciPy would also need y - w, in which rounding loses w if y is far away.


@kernel
def pool_adjacent_violators(y, w, x):  # type: ignore[no-untyped-def]
    """Fill x with the projection of y, sorted downwards, on the permutahedron of w, sorted
    downwards.

    Pool p holds entries first[p] .. first[p + 1] - 1. Reference: SciPy's isotonic
    regression, in tests/test_orders.py.
    """
    mean_y, mean_w = np.empty(len(y)), np.empty(len(y))
    first = np.empty(len(y) + 1, dtype=np.int64)
    pools = 0
    for i in range(len(y)):
        mean_y[pools], mean_w[pools], first[pools] = y[i], w[i], i
        pools += 1
        while (
            pools > 1
            and mean_y[pools - 2] - mean_y[pools - 1] <= mean_w[pools - 2] - mean_w[pools - 1]
        ):
            share = (i + 1 - first[pools - 1]) / (i + 1 - first[pools - 2])
            mean_y[pools - 2] += share * (mean_y[pools - 1] - mean_y[pools - 2])
            mean_w[pools - 2] += share * (mean_w[pools - 1] - mean_w[pools - 2])
            pools -= 1
    first[pools] = len(y)
    for p in range(pools):
        off = 0.0
        for i in range(first[p], first[p + 1]):
            off += y[i] - mean_y[p]  # what rounding left in the mean
        off /= first[p + 1] - first[p]
        for i in range(first[p], first[p + 1]):
            x[i] = mean_w[p] + (y[i] - mean_y[p] - off)
