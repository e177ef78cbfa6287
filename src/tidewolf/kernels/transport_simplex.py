"""The transportation problem by the simplex method on trees: least <c, X> over X >= 0 with given
row and column sums.

A basis is a spanning tree of rows and columns, whose cells alone carry something. Potentials with
c_ij = u_i + v_j on the tree price all other cells: one with c_ij - u_i - v_j < 0 enters, the flow
goes round the cycle it closes, and a cell that runs empty leaves. Whatever the costs, the last
basis is still feasible: a call at nearby costs starts from it and needs few exchanges.

Amounts are whole numbers, so that trees carry them without rounding. They are perturbed
(Orden 1956), every row by one part in rows + 1, the last column by as many: then no tree has an
empty cell, every exchange lowers the cost, and no basis comes back. At the end every cell has been
priced since the last exchange: the answer's cost is within `tolerance` times the total of the
least.

Nodes are the rows and then the columns; the last is the root of the tree. `flow[v]` is what passes
between v and `parent[v]`. A tree is two tuples: (parent, depth, order), parents first in `order`,
and (child, following, previous), the first child and the siblings. Naive twin: all vertices,
`plans_of` in tests/polytopes.py.
"""

from __future__ import annotations

import numpy as np

from tidewolf.core.jit import kernel


@kernel
def first_basis(c, net, basis):  # type: ignore[no-untyped-def]
    """Row after row takes what it needs from the cheapest columns that have something left; `net`
    is used up.
    """
    m, n = c.shape
    k = 0
    for i in range(m):
        while net[i] > 0:
            best = -1
            for j in range(n):
                if net[m + j] < 0 and (best < 0 or c[i, j] < c[i, best]):
                    best = j
            amount = min(net[i], -net[m + best])
            net[i] -= amount
            net[m + best] += amount
            basis[k] = i * n + best
            k += 1


@kernel
def root_basis(basis, c, net, paths, siblings, flow, prices):  # type: ignore[no-untyped-def]
    """The tree of these cells, the last node its root, with its flows and prices; False where it is
    no tree or a flow is not positive.
    """
    parent, depth, order = paths
    child, following, previous = siblings
    m, n = c.shape
    nodes = m + n
    start = np.zeros(nodes + 1, dtype=np.int64)
    for cell in basis:
        if cell < 0 or cell >= m * n:
            return False
        start[cell // n + 1] += 1
        start[m + cell % n + 1] += 1
    for v in range(nodes):
        start[v + 1] += start[v]
    fill, near = start[:-1].copy(), np.empty(2 * len(basis), dtype=np.int64)
    for cell in basis:
        i, j = cell // n, m + cell % n
        near[fill[i]], near[fill[j]] = j, i
        fill[i] += 1
        fill[j] += 1
    for v in range(nodes):
        parent[v], child[v], flow[v] = -1, -1, net[v]
    root = nodes - 1
    parent[root], depth[root], prices[root] = root, 0, 0.0
    order[0], count, at = root, 1, 0
    while at < count:
        v = order[at]
        at += 1
        for k in range(start[v], start[v + 1]):
            w = near[k]
            if parent[w] < 0:
                parent[w], depth[w] = v, depth[v] + 1
                prices[w] = (c[w, v - m] if w < m else c[v, w - m]) - prices[v]
                following[w], previous[w] = child[v], -1
                if child[v] >= 0:
                    previous[child[v]] = w
                child[v] = w
                order[count] = w
                count += 1
    if count < nodes:
        return False
    for k in range(nodes - 1, 0, -1):
        v = order[k]
        flow[parent[v]] += flow[v]
        if v >= m:
            flow[v] = -flow[v]
        if flow[v] <= 0:
            return False
    return True


@kernel
def exchange_cells(  # type: ignore[no-untyped-def]
    c, tolerance, budget, paths, siblings, flow, prices
):
    """Exchange cells until none is cheaper than its prices by more than `tolerance`; how many
    exchanges, or -1 when out of budget.
    """
    parent, depth, stack = paths  # the order has served
    child, following, previous = siblings
    m, n = c.shape
    block = max(20, int(np.sqrt(m * n)))
    i, j = 0, 0
    clean, done = 0, 0
    while clean < m * n:
        best, p, q = -tolerance, -1, -1
        for _ in range(block):
            reduced = c[i, j] - prices[i] - prices[m + j]
            if reduced < best:
                best, p, q = reduced, i, m + j
            j += 1
            if j == n:
                j = 0
                i = i + 1 if i + 1 < m else 0
        clean += block
        if p < 0:
            continue
        if done == budget:
            return -1
        clean, done = 0, done + 1
        # round the cycle: on the row's side rows send less to their parents, on the column's side
        # columns get less from theirs
        a, b = p, q
        least, leaves, top = np.iinfo(np.int64).max, -1, p
        while a != b:
            if depth[a] >= depth[b]:
                if a < m and flow[a] < least:
                    least, leaves, top = flow[a], a, p
                a = parent[a]
            else:
                if b >= m and flow[b] < least:
                    least, leaves, top = flow[b], b, q
                b = parent[b]
        a, b = p, q
        while a != b:
            if depth[a] >= depth[b]:
                flow[a] += -least if a < m else least
                a = parent[a]
            else:
                flow[b] += -least if b >= m else least
                b = parent[b]
        # the part below the cell that leaves is now joined by the one that enters: turn the path
        # between them over
        v, up, moved = top, p + q - top, least
        while True:
            old, old_flow = parent[v], flow[v]
            if previous[v] >= 0:
                following[previous[v]] = following[v]
            else:
                child[old] = following[v]
            if following[v] >= 0:
                previous[following[v]] = previous[v]
            parent[v], flow[v] = up, moved
            following[v], previous[v] = child[up], -1
            if child[up] >= 0:
                previous[child[up]] = v
            child[up] = v
            if v == leaves:
                break
            v, up, moved = old, v, old_flow
        stack[0], size = top, 1
        while size > 0:
            size -= 1
            v = stack[size]
            up = parent[v]
            depth[v] = depth[up] + 1
            prices[v] = (c[v, up - m] if v < m else c[up, v - m]) - prices[up]
            w = child[v]
            while w >= 0:
                stack[size] = w
                size += 1
                w = following[w]
    return done
