"""The task in hindsight as a linear program where there are very many rows, as every link is one in
every round, and few of them hold the best point.

    x_k   =  argmin { <c, x> : x in K, <a_i, x> <= b_i for the rows i in R_k }
    R_k+1 =  R_k and the rows that x_k breaks most of those that say the same of other rounds

Rows are only ever added, so this ends; where x_k breaks none it is best under all of them, with the
multipliers of R_k and 0 elsewhere. The next program starts from the basis of the last, in which new
rows are basic: dual simplex steps alone. Where no point keeps R_k none keeps them all, and weights
of R_k show it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import final

import numpy as np

from tidewolf.core.arrays import power_of_two
from tidewolf.core.piecewise import ManyRows
from tidewolf.core.types import Floats, Int64s
from tidewolf.hindsight.linear_task import LinearTask
from tidewolf.hindsight.lp import (
    SOLVER_TOLERANCE,
    breached_weights,
    costs_of,
    description_unit,
    in_units,
    lifted_rows,
    point_of,
)
from tidewolf.hindsight.rows import below, row_sizes
from tidewolf.hindsight.task import HindsightTask, Solution
from tidewolf.hindsight.warm_model import Basis, Rows, Solved, WarmModel
from tidewolf.sets.base import LinearDescription, Polyhedral

_BROKEN = 2.0 * SOLVER_TOLERANCE
"""A row of size 1 that is broken by more is added."""
_BASIC = 1
"""HiGHS's status of a row that no point needs to touch."""


@final
class FewOfManyRows:
    """For sets with a linear description, and rows that are made some at a time."""

    name = "linear program"

    def supports(self, task: HindsightTask) -> bool:
        many = isinstance(task, LinearTask) and isinstance(task.A, ManyRows)
        return many and isinstance(task.K, Polyhedral)

    def solve(self, task: HindsightTask) -> Solution | None:
        """The best point and the multipliers of all rows, or weights where no point keeps them;
        None where the solver found nothing.
        """
        assert isinstance(task, LinearTask)
        assert isinstance(task.A, ManyRows)
        assert isinstance(task.K, Polyhedral)
        return _solve(task, task.A, task.K.description())


def _solve(task: LinearTask, rows: ManyRows, u_of: LinearDescription) -> Solution | None:
    unit, costs = description_unit(u_of), costs_of(u_of, task.c)
    cost, K = float(power_of_two(np.abs(costs).max())), in_units(u_of, unit)
    sizes = rows.each(row_sizes)
    model, chosen = _model(K), np.zeros(0, dtype=np.int64)
    known: Rows | None = None
    basis: Basis | None = None
    while True:
        found = model(costs / cost, K.lower, K.upper, known, basis)
        if found is None:
            return _infeasible(task, chosen, u_of)
        x = point_of(u_of, unit * found.v)
        new = _broken((rows @ x - task.b) / (sizes * unit), task.rounds, chosen)
        if not len(new):
            lam = np.zeros(len(task.b))
            lam[chosen] = np.maximum(0.0, -found.multipliers) * cost / sizes[chosen]
            return Solution(x, lam)
        A, b = lifted_rows(u_of, rows[new], task.b[new])
        A, b = A.multiply(1 / sizes[new][:, None]).tocsr(), b / sizes[new] / unit
        known = Rows(A, b) if known is None else Rows(below([known.A, A]), np.append(known.b, b))
        chosen, basis = np.append(chosen, new), _with_rows(found, len(new))


def _broken(breach: Floats, rounds: Int64s, chosen: Int64s) -> Int64s:
    """Which rows to add: of each place in a round the one that is broken most, if any."""
    breach[chosen] = -np.inf
    by_round = breach.reshape(rounds[-1] + 1, -1)
    each = by_round.shape[1]
    worst = by_round.argmax(axis=0) * each + np.arange(each)
    return np.sort(worst[breach[worst] > _BROKEN])


def _with_rows(found: Solved, more: int) -> Basis | None:
    """Where the program with so many more rows starts."""
    if found.basis is None:
        return None
    columns, rows = found.basis.columns, found.basis.rows
    statuses = np.append(found.basis.statuses, np.full(more, _BASIC, dtype=np.int8))
    return Basis(columns, rows + more, None, statuses)


def _infeasible(task: LinearTask, chosen: Int64s, u_of: LinearDescription) -> Solution | None:
    """The weights by which the chosen rows alone show that no point keeps them."""
    if not len(chosen):
        return None
    few = replace(task, A=task.rows(chosen), b=task.b[chosen], norms=task.norms[chosen])
    weights = breached_weights(few, u_of)
    if weights is None:
        return None
    all_weights = np.zeros(len(task.b))
    all_weights[chosen] = weights
    return Solution(None, np.zeros(len(task.b)), all_weights)


def _model(K: LinearDescription) -> WarmModel:
    """The program without the task's rows."""
    from scipy.sparse import csr_array

    low, high, fixed = [np.zeros(0)], [np.zeros(0)], [csr_array((0, len(K.lower)))]
    if K.A_ub is not None and K.b_ub is not None:
        fixed.append(csr_array(K.A_ub))
        low.append(np.full(len(K.b_ub), -np.inf))
        high.append(K.b_ub)
    if K.A_eq is not None and K.b_eq is not None:
        fixed.append(csr_array(K.A_eq))
        low.append(K.b_eq)
        high.append(K.b_eq)
    F = csr_array(below(fixed)).astype(np.float64)
    return WarmModel(F, np.concatenate(low), np.concatenate(high))
