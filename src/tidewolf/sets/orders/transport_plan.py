"""Plans of least cost with given row and column sums: amounts as whole numbers, a basis to start
from, and the simplex method on trees (kernels/transport_simplex.py).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tidewolf.core.arrays import frozen
from tidewolf.core.errors import SolverFailed
from tidewolf.core.types import Floats, Int32s, Int64s
from tidewolf.kernels.transport_simplex import exchange_cells, first_basis, root_basis

_BITS = 60
_EXCHANGES = 1000
"""Allowed for each row and column, many times what was ever seen."""


class WholeAmounts(NamedTuple):
    """Row sums, and column sums with a minus, as whole numbers, perturbed; `unit` is what 1 stood
    for before.
    """

    net: Int64s
    rows: int
    unit: float


class TransportPlan(NamedTuple):
    """The cells of a vertex with what they carry, and the basis: all cells of its tree."""

    cells: Int64s
    values: Floats
    basis: Int32s


def whole_amounts(rows: Floats, columns: Floats) -> WholeAmounts:
    """Positive sums as whole numbers of about 60 bits; what rounding leaves goes to the largest."""
    parts = len(rows) + 1
    scale = 2.0 ** (_BITS - int(np.frexp(rows.sum())[1]) - parts.bit_length())
    a, b = (np.maximum(1, np.rint(sums * scale)).astype(np.int64) for sums in (rows, columns))
    off = int(a.sum() - b.sum())
    (b if off > 0 else a)[np.argmax(b if off > 0 else a)] += abs(off)
    a, b = parts * a + 1, parts * b
    b[-1] += len(rows)
    return WholeAmounts(np.concatenate([a, -b]), len(rows), 1.0 / scale)


def cheapest_plan(c: Floats, given: WholeAmounts, warm: Any = None) -> TransportPlan:
    """A plan of least cost, from the basis `warm` where that is one."""
    m, n = c.shape
    nodes = m + n
    paths, siblings = (tuple(np.empty((3, nodes), dtype=np.int64)) for _ in range(2))
    flow, prices = np.empty(nodes, dtype=np.int64), np.empty(nodes)
    tree = (paths, siblings, flow, prices)
    c = frozen(c.view())  # so that kernels always see the same kind
    basis = np.empty(nodes - 1, dtype=np.int32)
    warms = warm is not None and np.shape(warm) == basis.shape
    if warms:
        basis[:] = warm
    if not warms or not root_basis(basis, c, given.net, *tree):
        first_basis(c, given.net.copy(), basis)
        root_basis(basis, c, given.net, *tree)
    tolerance = 4.0 * np.finfo(np.float64).eps * nodes * float(np.max(np.abs(c)))
    if exchange_cells(c, tolerance, _EXCHANGES * nodes, *tree) < 0:
        raise SolverFailed(
            f"A transportation problem of {m} rows and {n} columns needed more than "
            f"{_EXCHANGES * nodes} exchanges."
        )
    v = np.arange(nodes - 1)
    up = paths[0][:-1]
    cells = np.where(v < m, v * n + up - m, up * n + v - m)
    # a row's subtree holds perturbations to send up, a column's to take off: round down, and up
    values = np.where(v < m, flow[:-1] // (m + 1), -(-flow[:-1] // (m + 1)))
    by_cell = np.argsort(cells)
    cells, values = cells[by_cell], values[by_cell]
    used = values > 0
    return TransportPlan(cells[used], values[used] * given.unit, cells.astype(np.int32))
