"""The task in hindsight as a linear program, for a set with a linear description.

    min { <c, x> : x in K, A x <= b }   and, where that has no point,
    min { s : x in K, <a_i, x> - b_i <= s for every i },

whose multipliers weigh the rows so that their average is above 0 on all of K. Very many rows have a
method of their own (many_rows.py).
"""

from __future__ import annotations

from typing import Any, final

import numpy as np

from tidewolf.core.arrays import power_of_two
from tidewolf.core.piecewise import ManyRows
from tidewolf.core.types import Floats
from tidewolf.hindsight.linear_task import LinearTask
from tidewolf.hindsight.rows import row_sizes
from tidewolf.hindsight.task import HindsightTask, Solution, positive
from tidewolf.sets.base import LinearDescription, Polyhedral

SOLVER_TOLERANCE = 1e-10


@final
class LinearProgramming:
    """For sets with a linear description."""

    name = "linear program"

    def supports(self, task: HindsightTask) -> bool:
        linear = isinstance(task, LinearTask) and not isinstance(task.A, ManyRows)
        return linear and isinstance(task.K, Polyhedral)

    def solve(self, task: HindsightTask) -> Solution | None:
        """The solver's point and multipliers, or its weights where it found no point."""
        assert isinstance(task, LinearTask)
        assert isinstance(task.K, Polyhedral)
        description = task.K.description()
        found = solve_lp(task, description)
        if found is not None:
            return found
        weights = breached_weights(task, description)
        return None if weights is None else Solution(None, np.zeros(len(task.b)), weights)


def solve_lp(task: LinearTask, u_of: LinearDescription) -> Solution | None:
    """The solver's point and the multipliers of A x <= b; None where it found no point.

    Rows, costs and u are scaled to size 1 for it.
    """
    A, b = lifted_rows(u_of, task.A, task.b)
    sizes = row_sizes(A)
    costs = costs_of(u_of, task.c)
    cost, unit = float(power_of_two(np.abs(costs).max())), description_unit(u_of)
    found = run_linprog(
        costs / cost, in_units(u_of, unit), A.multiply(1 / sizes[:, None]), b / sizes / unit
    )
    if found is None:
        return None
    return Solution(point_of(u_of, unit * found[0]), found[1] * cost / sizes)


def breached_weights(task: LinearTask, u_of: LinearDescription) -> Floats | None:
    """The multipliers of the second program; None where the solver found none."""
    from scipy.sparse import csr_array, hstack

    A, b = lifted_rows(u_of, task.A, task.b)
    size, unit = float(power_of_two(abs(A).max())), description_unit(u_of)
    cost = np.append(np.zeros(A.shape[1]), 1.0)
    rows = hstack([A / size, csr_array(-np.ones((len(b), 1)))])
    found = run_linprog(cost, with_free_variables(in_units(u_of, unit), 1), rows, b / size / unit)
    return None if found is None else found[1]


def run_linprog(
    cost: Floats, K: LinearDescription, A: Any, b: Floats, method: str = "highs"
) -> tuple[Floats, Floats] | None:
    """A minimiser u of <cost, u> over A u <= b within a description, and the multipliers of
    A u <= b; None where none was found.
    """
    from scipy.optimize import linprog
    from scipy.sparse import csr_array, vstack

    result = linprog(
        cost,
        A if K.A_ub is None else vstack([csr_array(K.A_ub), A]),
        b if K.b_ub is None else np.concatenate([K.b_ub, b]),
        K.A_eq,
        K.b_eq,
        bounds=np.column_stack([K.lower, K.upper]),
        method=method,
        options={
            "primal_feasibility_tolerance": SOLVER_TOLERANCE,
            "dual_feasibility_tolerance": SOLVER_TOLERANCE,
        },
    )
    return (
        (result.x, np.maximum(0.0, -result.ineqlin.marginals[-len(b) :]))
        if result.status == 0
        else None
    )


def description_unit(K: LinearDescription) -> float:
    """The size of the u of a description."""
    bounds = np.abs(np.concatenate([K.lower, K.upper]))
    return float(positive(np.max(bounds, where=np.isfinite(bounds), initial=0.0)))


def in_units(K: LinearDescription, unit: float) -> LinearDescription:
    """A description of u/unit."""

    def scaled(b: Floats | None) -> Floats | None:
        return None if b is None else b / unit

    return K._replace(
        lower=K.lower / unit, upper=K.upper / unit, b_eq=scaled(K.b_eq), b_ub=scaled(K.b_ub)
    )


def lifted_rows(K: LinearDescription, A: Any, b: Floats) -> tuple[Any, Floats]:
    """A x <= b as inequalities in the u of a description."""
    from scipy.sparse import csr_array

    A = csr_array(A)
    return A if K.lift is None else A @ csr_array(K.lift), b if K.shift is None else b - A @ K.shift


def costs_of(K: LinearDescription, c: Floats) -> Floats:
    """<c, x> as costs of the u of a description."""
    return c if K.lift is None else K.lift.T @ c


def point_of(K: LinearDescription, u: Floats) -> Floats:
    """The point that a u of a description makes."""
    x = u if K.lift is None else K.lift @ u
    return np.asarray(x if K.shift is None else x + K.shift)


def with_free_variables(K: LinearDescription, count: int) -> LinearDescription:
    """A description with so many more, free variables."""
    from scipy.sparse import csr_array, hstack

    def wider(A: Any) -> Any:
        return None if A is None else hstack([csr_array(A), csr_array((A.shape[0], count))])

    return K._replace(
        lower=np.append(K.lower, np.full(count, -np.inf)),
        upper=np.append(K.upper, np.full(count, np.inf)),
        A_eq=wider(K.A_eq),
        A_ub=wider(K.A_ub),
    )
