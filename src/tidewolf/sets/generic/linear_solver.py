"""A linear program that is asked again and again with other costs:  min <c, x>,  A_ub x <= b_ub,
A_eq x = b_eq,  lower <= x <= upper.

HiGHS through highspy keeps the program and starts from the basis it is given, so that nearby costs
take few exchanges; where highspy is not installed, SciPy's HiGHS starts afresh each time. The
answer depends on costs and basis alone: what the solver remembers is cleared. A basis is one small
number a variable and row.
"""

from __future__ import annotations

import threading
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from tidewolf.core.errors import SolverFailed
from tidewolf.core.types import Floats

TOLERANCE = 1e-10
"""Of feasibility and optimality, the tightest HiGHS takes; variables and rows are best of size
about 1.
"""


class LinearSolution(NamedTuple):
    """A minimiser, the multipliers of the rows (never above 0 for inequalities), and the basis."""

    x: Floats
    multipliers: Floats
    basis: np.ndarray[Any, np.dtype[np.int8]] | None


class ProgramData(NamedTuple):
    """The rows and bounds of a linear program; bounds may be infinite."""

    A_ub: Floats
    b_ub: Floats
    A_eq: Floats
    b_eq: Floats
    lower: Floats
    upper: Floats


class LinearProgram:
    """A program that is asked again and again; its rows are A_ub and then A_eq."""

    def __init__(
        self, A_ub: Floats, b_ub: Floats, A_eq: Floats, b_eq: Floats, lower: Floats, upper: Floats
    ) -> None:
        self.data = ProgramData(A_ub, b_ub, A_eq, b_eq, lower, upper)
        self._solving = threading.Lock()

    def __reduce__(self) -> tuple[Any, ...]:
        return LinearProgram, tuple(self.data)  # a copy sets its own solver up

    def __call__(self, costs: Floats, basis: Any = None) -> LinearSolution | None:
        """A minimiser for these costs; None where the program has none."""
        if self._solver is None:
            return self.solve_cold(costs)
        with self._solving:
            return self._warm(costs, basis)

    def _warm(self, costs: Floats, basis: Any) -> LinearSolution | None:
        import highspy

        solver, n = self._solver, len(costs)
        solver.clearSolver()
        solver.changeColsCost(n, np.arange(n, dtype=np.int32), costs)
        statuses = None if basis is None else np.asarray(basis).reshape(-1).tolist()
        if (
            statuses is not None
            and len(statuses) == n + len(self.data.b_ub) + len(self.data.b_eq)
            and set(statuses) <= set(_STATUSES)
        ):
            start = highspy.HighsBasis()
            known = [highspy.HighsBasisStatus(status) for status in _STATUSES]
            start.col_status, start.row_status = (
                [known[s] for s in statuses[:n]],
                [known[s] for s in statuses[n:]],
            )
            start.valid = True
            solver.setBasis(start)
        solver.run()
        if solver.getModelStatus() == highspy.HighsModelStatus.kOptimal:
            solution, end = solver.getSolution(), solver.getBasis()
            chosen = np.array(
                [int(status) for status in (*end.col_status, *end.row_status)], dtype=np.int8
            )
            return LinearSolution(np.array(solution.col_value), np.array(solution.row_dual), chosen)
        if solver.getModelStatus() in (
            highspy.HighsModelStatus.kInfeasible,
            highspy.HighsModelStatus.kUnbounded,
        ):
            return None
        return self.solve_cold(costs)

    def solve_cold(self, costs: Floats) -> LinearSolution | None:
        from scipy.optimize import linprog

        data = self.data
        options = {
            "primal_feasibility_tolerance": TOLERANCE,
            "dual_feasibility_tolerance": TOLERANCE,
        }
        found = linprog(
            costs,
            *data[:4],
            np.stack([data.lower, data.upper], axis=1),
            method="highs",
            options=options,
        )
        if found.status == 0:
            return LinearSolution(
                found.x, np.concatenate([found.ineqlin.marginals, found.eqlin.marginals]), None
            )
        if found.status in (2, 3):
            return None
        raise SolverFailed(
            f"HiGHS gave up on a linear program of {len(costs)} variables: {found.message}"
        )

    @cached_property
    def _solver(self) -> Any:
        """HiGHS with the program in it, or None without highspy."""
        try:
            import highspy
        except ImportError:
            return None
        from scipy.sparse import csc_array, vstack

        data = self.data
        rows = vstack([csc_array(data.A_ub), csc_array(data.A_eq)], format="csc")
        program = highspy.HighsLp()
        program.num_row_, program.num_col_ = rows.shape
        program.col_cost_, program.col_lower_, program.col_upper_ = (
            np.zeros(len(data.lower)),
            data.lower,
            data.upper,
        )
        program.row_lower_ = np.concatenate([np.full(len(data.b_ub), -np.inf), data.b_eq])
        program.row_upper_ = np.concatenate([data.b_ub, data.b_eq])
        program.a_matrix_.format_ = highspy.MatrixFormat.kColwise
        program.a_matrix_.start_, program.a_matrix_.index_, program.a_matrix_.value_ = (
            rows.indptr,
            rows.indices,
            rows.data,
        )
        solver = highspy.Highs()
        solver.setOptionValue("output_flag", False)
        solver.setOptionValue("primal_feasibility_tolerance", TOLERANCE)
        solver.setOptionValue("dual_feasibility_tolerance", TOLERANCE)
        solver.passModel(program)
        return solver


_STATUSES = range(5)
"""HiGHS's: at the lower bound, basic, at the upper bound, free at zero, nonbasic."""
