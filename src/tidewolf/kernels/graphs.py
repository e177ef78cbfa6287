"""Passes over directed acyclic graphs whose arcs are sorted by the position of their head.

A graph is a tuple (arcs, tails, first): arcs into position v have the ranks first[v] .. first[v +
1] - 1; of each rank, `arcs` has its entry of a point, `tails` the position of its tail. One pass in
the order of positions labels every node, as its tails come first.
"""

import numpy as np

from tidewolf.core.jit import kernel, light_kernel
from tidewolf.kernels.active_set import fill


@light_kernel
def label_distances(weights, graph, begin, end, distance, arrival):  # type: ignore[no-untyped-def]
    """Fill the distance of positions begin .. end - 1 from the first of them, and the rank of the
    last arc on the way there; ties go to the earlier arc.

    Reference: `naive_shortest` in tests/test_flows.py.
    """
    arcs, tails, first = graph
    distance[begin] = 0.0
    for v in range(begin + 1, end):
        p = first[v]
        least, nearest = distance[tails[p]] + weights[arcs[p]], p
        for q in range(p + 1, first[v + 1]):
            length = distance[tails[q]] + weights[arcs[q]]
            if length < least:
                least, nearest = length, q
        distance[v] = least
        arrival[v] = nearest


@light_kernel
def shortest_path(weights, packed, path, flow):  # type: ignore[no-untyped-def]
    """The arcs of a shortest path to the start of `path`, a flow of 1 on each; returns how many.

    `packed` is the number of nodes, `first`, `tails` and `arcs` end to end. Reference:
    `naive_shortest` in tests/test_flows.py.
    """
    nodes = packed[0]
    first, rest = packed[1 : nodes + 2], packed[nodes + 2 :]
    tails, arcs = rest[: len(rest) // 2], rest[len(rest) // 2 :]
    distance, arrival = np.empty(nodes), np.empty(nodes, dtype=np.int32)
    label_distances(weights, (arcs, tails, first), 0, nodes, distance, arrival)
    v, count = nodes - 1, 0
    while v > 0:
        v = tails[arrival[v]]
        count += 1
    v = nodes - 1
    for k in range(count - 1, -1, -1):
        path[k] = arcs[arrival[v]]
        flow[k] = 1.0
        v = tails[arrival[v]]
    return count


@kernel
def shortest_paths(weights, graph, begins, demands, chosen, values):  # type: ignore[no-untyped-def]
    """Shortest paths of several graphs in one pass: graph k has positions begins[k] .. begins[k +
    1] - 1 and arcs of its own.

    `chosen` gets the arcs of all paths and `values` the demand on each; returns how many there are.
    A demand of 0 takes no path. Reference: a FlowPolytope for each graph, `singles_of` in
    tests/polytopes.py.
    """
    arcs, tails, _ = graph
    distance, arrival = np.empty(begins[-1]), np.empty(begins[-1], dtype=np.int32)
    count = 0
    for k in range(len(demands)):
        if demands[k] == 0.0:
            continue
        label_distances(weights, graph, begins[k], begins[k + 1], distance, arrival)
        v = begins[k + 1] - 1
        while v > begins[k]:
            chosen[count], values[count] = arcs[arrival[v]], demands[k]
            count += 1
            v = tails[arrival[v]]
    return count


@light_kernel
def widest_path(flow, graph, path):  # type: ignore[no-untyped-def]
    """The path whose narrowest arc is widest, at the end of `path`; returns where it begins.

    Reference: all paths, `vertices_of` in tests/polytopes.py.
    """
    arcs, tails, first = graph
    nodes = len(first) - 1
    width, arrival = np.empty(nodes), np.empty(nodes, dtype=np.int32)
    width[0] = np.inf
    for v in range(1, nodes):
        p = first[v]
        most, widest = min(width[tails[p]], flow[arcs[p]]), p
        for q in range(p + 1, first[v + 1]):
            narrowest = min(width[tails[q]], flow[arcs[q]])
            if narrowest > most:
                most, widest = narrowest, q
        width[v] = most
        arrival[v] = widest
    v, k = nodes - 1, len(path)
    while v > 0:
        k -= 1
        path[k] = arcs[arrival[v]]
        v = tails[arrival[v]]
    return k


# --- Circulations ---------------------------------------------------------------------------------
#
# Projection on circulations by a factor L D L' of the graph's Laplacian, for compiled rounds. A
# graph is packed into whole numbers: how many nodes, arcs, free nodes and entries of L there are,
# then `arcs` and their `tails`, head after head, and the `first` of each head; the nodes in the
# order of the factor, and the starts and rows of the columns of L, and whether a column is the
# first of four that have the same rows below them; and into floats, the entries of L and 1/D.


@kernel
def solve_factor(z, starts, rows, entries, fours, inverse):  # type: ignore[no-untyped-def]
    """L D L' x = z in place, for both columns of z. Four columns of L with the same rows are taken
    together: most entries are in such, and what they are multiplied with is looked up once.

    Reference: that of `circulations`.
    """
    j, free = 0, len(z)
    while j < free:
        many = 4 if fours[j] else 1
        last = starts[j + many - 1]
        for i in range(j, j + many - 1):
            for p in range(j + many - 1 - i):
                z[i + 1 + p, 0] -= entries[starts[i] + p] * z[i, 0]
                z[i + 1 + p, 1] -= entries[starts[i] + p] * z[i, 1]
        if many == 4:
            a0, a1, a2, a3 = z[j, 0], z[j + 1, 0], z[j + 2, 0], z[j + 3, 0]
            b0, b1, b2, b3 = z[j, 1], z[j + 1, 1], z[j + 2, 1], z[j + 3, 1]
            p0, p1, p2 = starts[j] + 3, starts[j + 1] + 2, starts[j + 2] + 1
            for p in range(starts[j + 4] - last):
                e0, e1, e2, e3 = (
                    entries[p0 + p],
                    entries[p1 + p],
                    entries[p2 + p],
                    entries[last + p],
                )
                row = rows[last + p]
                z[row, 0] -= (e0 * a0 + e1 * a1) + (e2 * a2 + e3 * a3)
                z[row, 1] -= (e0 * b0 + e1 * b1) + (e2 * b2 + e3 * b3)
        else:
            a0, b0 = z[j, 0], z[j, 1]
            for p in range(last, starts[j + 1]):
                z[rows[p], 0] -= entries[p] * a0
                z[rows[p], 1] -= entries[p] * b0
        j += many
    for i in range(free):
        z[i, 0] *= inverse[i]
        z[i, 1] *= inverse[i]
    while j > 0:
        many = 4 if j >= 4 and fours[j - 4] else 1
        j -= many
        last = starts[j + many - 1]
        a0, a1, a2, a3, b0, b1, b2, b3 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
        if many == 4:
            p0, p1, p2 = starts[j] + 3, starts[j + 1] + 2, starts[j + 2] + 1
            for p in range(starts[j + 4] - last):
                a, b = z[rows[last + p], 0], z[rows[last + p], 1]
                e0, e1, e2, e3 = (
                    entries[p0 + p],
                    entries[p1 + p],
                    entries[p2 + p],
                    entries[last + p],
                )
                a0, a1, a2, a3 = a0 + e0 * a, a1 + e1 * a, a2 + e2 * a, a3 + e3 * a
                b0, b1, b2, b3 = b0 + e0 * b, b1 + e1 * b, b2 + e2 * b, b3 + e3 * b
            z[j, 0], z[j + 1, 0], z[j + 2, 0] = z[j, 0] - a0, z[j + 1, 0] - a1, z[j + 2, 0] - a2
            z[j, 1], z[j + 1, 1], z[j + 2, 1] = z[j, 1] - b0, z[j + 1, 1] - b1, z[j + 2, 1] - b2
            z[j + 3, 0], z[j + 3, 1] = z[j + 3, 0] - a3, z[j + 3, 1] - b3
        else:
            for p in range(last, starts[j + 1]):
                a0, b0 = a0 + entries[p] * z[rows[p], 0], b0 + entries[p] * z[rows[p], 1]
            z[j, 0], z[j, 1] = z[j, 0] - a0, z[j, 1] - b0
        for i in range(j + many - 2, j - 1, -1):
            for p in range(j + many - 1 - i):
                z[i, 0] -= entries[starts[i] + p] * z[i + 1 + p, 0]
                z[i, 1] -= entries[starts[i] + p] * z[i + 1 + p, 1]


@kernel
def circulations(d, count, floats, ints, out):  # type: ignore[no-untyped-def]
    """The parts of the first `count` rows of d, one or two, that are circulations: 0 on arcs that
    lead nowhere.

    Reference: `HullProjection`, in tests/test_flows.py.
    """
    nodes, m, free, size = ints[0], ints[1], ints[2], ints[3]
    arcs, tails, first = ints[4 : 4 + m], ints[4 + m : 4 + 2 * m], ints[4 + 2 * m :]
    rest = ints[5 + 2 * m + nodes :]
    order, starts, rows = rest[:free], rest[free : 2 * free + 1], rest[2 * free + 1 :]
    fours = rows[size:]
    entries, inverse = floats[:size], floats[size : size + free]
    second = count - 1
    at = np.zeros((nodes, 2))
    for v in range(nodes):
        into, into2 = 0.0, 0.0
        for p in range(first[v], first[v + 1]):
            a, b = d[0, arcs[p]], d[second, arcs[p]]
            into += a
            into2 += b
            at[tails[p], 0] += a
            at[tails[p], 1] += b
        at[v, 0] -= into
        at[v, 1] -= into2
    z = np.empty((free, 2))
    for i in range(free):
        z[i, 0], z[i, 1] = at[order[i], 0], at[order[i], 1]
    solve_factor(z, starts, rows, entries, fours, inverse)
    for v in range(len(at)):
        at[v, 0], at[v, 1] = 0.0, 0.0
    for i in range(free):
        at[order[i], 0], at[order[i], 1] = z[i, 0], z[i, 1]
    if m < d.shape[1]:
        for row in range(count):
            fill(out[row], 0.0)
    for v in range(nodes):
        here, here2 = at[v, 0], at[v, 1]
        for p in range(first[v], first[v + 1]):
            tail, arc = tails[p], arcs[p]
            out[second, arc] = d[second, arc] - (at[tail, 1] - here2)
            out[0, arc] = d[0, arc] - (at[tail, 0] - here)


@kernel
def unit_flow_infeasibility(x, floats, ints):  # type: ignore[no-untyped-def]
    """The largest violation of x >= 0, of a unit flow's conservation between the first and the last
    node, or flow on an arc that leads nowhere.

    Reference: `FlowPolytope.infeasibility`, in tests/test_flows.py.
    """
    nodes, m = ints[0], ints[1]
    arcs, tails, first = ints[4 : 4 + m], ints[4 + m : 4 + 2 * m], ints[4 + 2 * m :]
    balance, worst = np.zeros(nodes), 0.0
    balance[0], balance[nodes - 1] = 1.0, -1.0
    for v in range(nodes):
        into = 0.0
        for p in range(first[v], first[v + 1]):
            amount = x[arcs[p]]
            balance[tails[p]] -= amount
            into += amount
            worst = max(worst, -amount)
        balance[v] += into
    for v in range(nodes):
        worst = max(worst, abs(balance[v]))
    if m < len(x):
        leads = np.zeros(len(x))
        for p in range(m):
            leads[arcs[p]] = 1.0
        for e in range(len(x)):
            if leads[e] == 0.0:
                worst = max(worst, abs(x[e]))
    return worst
