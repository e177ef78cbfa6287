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

Nodes are the rows and then the columns; the tree hangs from the last. `flow[v]` is what passes
between v and `parent[v]`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tidewolf.core.arrays import frozen
from tidewolf.core.errors import SolverFailed
from tidewolf.core.jit import kernel
from tidewolf.core.types import Floats, Int32s, Int64s

_BITS = 60
_EXCHANGES = 1000
"""Allowed for each row and column, many times what was ever seen."""


class Amounts(NamedTuple):
    """Row sums, and column sums with a minus, as whole numbers, perturbed; `unit` is what 1 stood
    for before.
    """

    net: Int64s
    rows: int
    unit: float


class Plan(NamedTuple):
    """The cells of a vertex with what they carry, and the basis: all cells of its tree."""

    cells: Int64s
    values: Floats
    basis: Int32s


def amounts(rows: Floats, columns: Floats) -> Amounts:
    """Positive sums as whole numbers of about 60 bits; what rounding leaves goes to the largest."""
    parts = len(rows) + 1
    scale = 2.0 ** (_BITS - int(np.frexp(rows.sum())[1]) - parts.bit_length())
    a, b = (np.maximum(1, np.rint(sums * scale)).astype(np.int64) for sums in (rows, columns))
    off = int(a.sum() - b.sum())
    (b if off > 0 else a)[np.argmax(b if off > 0 else a)] += abs(off)
    a, b = parts * a + 1, parts * b
    b[-1] += len(rows)
    return Amounts(np.concatenate([a, -b]), len(rows), 1.0 / scale)


def cheapest(c: Floats, given: Amounts, warm: Any = None) -> Plan:
    """A plan of least cost, from the basis `warm` where that is one."""
    m, n = c.shape
    nodes = m + n
    parent, depth, order, child, after, before = (np.empty(nodes, dtype=np.int64) for _ in range(6))
    flow, prices = np.empty(nodes, dtype=np.int64), np.empty(nodes)
    tree = parent, depth, order, child, after, before, flow, prices
    c = frozen(c.view())  # so that kernels always see the same kind
    basis = np.empty(nodes - 1, dtype=np.int32)
    warms = warm is not None and np.shape(warm) == basis.shape
    if warms:
        basis[:] = warm
    if not warms or not hang(basis, c, given.net, *tree):
        first_basis(c, given.net.copy(), basis)
        hang(basis, c, given.net, *tree)
    tolerance = 4.0 * np.finfo(np.float64).eps * nodes * float(np.max(np.abs(c)))
    if exchange(c, tolerance, _EXCHANGES * nodes, *tree) < 0:
        raise SolverFailed(
            f"A transportation problem of {m} rows and {n} columns needed more than "
            f"{_EXCHANGES * nodes} exchanges."
        )
    v = np.arange(nodes - 1)
    up = parent[:-1]
    cells = np.where(v < m, v * n + up - m, up * n + v - m)
    # a row's subtree holds perturbations to send up, a column's to take off: round down, and up
    values = np.where(v < m, flow[:-1] // (m + 1), -(-flow[:-1] // (m + 1)))
    by_cell = np.argsort(cells)
    cells, values = cells[by_cell], values[by_cell]
    used = values > 0
    return Plan(cells[used], values[used] * given.unit, cells.astype(np.int32))


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
def hang(  # type: ignore[no-untyped-def]
    basis, c, net, parent, depth, order, child, after, before, flow, prices
):
    """Hang the tree of these cells from the last node, with its flows and prices; False where it is
    no tree or a flow is not positive.
    """
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
    order[0], depth[root], prices[root], count, at = root, 0, 0.0, 1, 0
    parent[root] = root
    while at < count:
        v = order[at]
        at += 1
        for k in range(start[v], start[v + 1]):
            w = near[k]
            if parent[w] < 0:
                parent[w], depth[w] = v, depth[v] + 1
                prices[w] = (c[w, v - m] if w < m else c[v, w - m]) - prices[v]
                after[w], before[w] = child[v], -1
                if child[v] >= 0:
                    before[child[v]] = w
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
def exchange(  # type: ignore[no-untyped-def]
    c, tolerance, budget, parent, depth, stack, child, after, before, flow, prices
):
    """Exchange cells until none is cheaper than its prices by more than `tolerance`; how many
    exchanges, or -1 when out of budget.
    """
    m, n = c.shape
    block = max(20, int(np.sqrt(m * n)))
    i, j, clean, done = 0, 0, 0, 0
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
        a, b, least, leaves, top = p, q, np.iinfo(np.int64).max, -1, p
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
        # the part below the cell that leaves now hangs by the one that enters: turn the way between
        # them over
        v, up, carried = top, p + q - top, least
        while True:
            old, old_flow = parent[v], flow[v]
            if before[v] >= 0:
                after[before[v]] = after[v]
            else:
                child[old] = after[v]
            if after[v] >= 0:
                before[after[v]] = before[v]
            parent[v], flow[v] = up, carried
            after[v], before[v] = child[up], -1
            if child[up] >= 0:
                before[child[up]] = v
            child[up] = v
            if v == leaves:
                break
            v, up, carried = old, v, old_flow
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
                w = after[w]
    return done
