"""A linear program over fixed rows that is asked again and again, everything else changed in place:

    min <c, v>   under   low <= F v <= high  (fixed),   A v <= b,   lower <= v <= upper.

HiGHS through highspy keeps the program; costs, bounds, and A where it is another one, are changed
in it, and it starts from the basis it is given. The answer depends on the question and that basis
alone: what the solver remembers is cleared first, so that a state that holds the basis continues
with the same bits in another process. If highspy is not installed SciPy's HiGHS starts
afresh each time, and there is no basis.
"""

from __future__ import annotations

import threading
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, final

import numpy as np

from tidewolf.core.checkpoint import Stored
from tidewolf.core.types import Floats, NDArray
from tidewolf.hindsight.rows import below, nonzeros, row_sizes, rows_times, same_rows
from tidewolf.sets.base import LinearDescription

TOLERANCE = 1e-10
"""Of feasibility and optimality, the tightest HiGHS takes; variables and rows are best of size
about 1.
"""
_STATUSES = 5
"""HiGHS's: at the lower bound, basic, at the upper bound, free at zero, nonbasic."""


@final
class Basis(Stored):
    """Which variables and rows are at a bound: where the solver starts. Never changed.

    Made of HiGHS's own, or of a small number for each variable, then for each row.
    """

    tag: ClassVar = "basis"
    __slots__ = ("_own", "_statuses", "columns", "rows")

    def __init__(
        self, columns: int, rows: int, own: Any = None, statuses: NDArray | None = None
    ) -> None:
        self.columns, self.rows = columns, rows
        self._own, self._statuses = own, statuses

    @property
    def statuses(self) -> NDArray:
        """A small number for each variable, then for each row."""
        if self._statuses is None:
            both = (*self._own.col_status, *self._own.row_status)
            self._statuses = np.array([int(status) for status in both], dtype=np.int8)
        return self._statuses

    @property
    def own(self) -> Any:
        """HiGHS's own."""
        if self._own is None:
            import highspy

            known = [highspy.HighsBasisStatus(status) for status in range(_STATUSES)]
            each = [known[status] for status in self.statuses.tolist()]
            basis = highspy.HighsBasis()
            basis.col_status, basis.row_status = each[: self.columns], each[self.columns :]
            basis.valid = True
            self._own = basis
        return self._own

    def __reduce__(self) -> tuple[Any, ...]:
        return Basis, (self.columns, self.rows, None, self.statuses)

    def parts(self) -> dict[str, Any]:
        return {"columns": self.columns, "statuses": self.statuses}

    @classmethod
    def restored(cls, parts: dict[str, Any]) -> Basis:
        statuses, columns = parts["statuses"], parts["columns"]
        if (
            type(statuses) is not np.ndarray
            or statuses.dtype != np.int8
            or statuses.ndim != 1
            or type(columns) is not int
            or not 0 <= columns <= len(statuses)
            or not set(statuses.tolist()) <= set(range(_STATUSES))
        ):
            raise ValueError("a basis has a status from 0 to 4 for each variable and row")
        return cls(columns, len(statuses) - columns, None, statuses)


class Solved(NamedTuple):
    """A minimiser, the multipliers of A v <= b (never above 0), and the basis to go on from."""

    v: Floats
    multipliers: Floats
    basis: Basis | None


class Rows(NamedTuple):
    """A v <= b; A a matrix, plain or compressed by rows, which must not change."""

    A: Any
    b: Floats


class WarmModel:
    """A program with these fixed rows, low <= F v <= high, F a sparse array of SciPy by rows."""

    def __init__(self, F: Any, low: Floats, high: Floats) -> None:
        self.F, self.low, self.high = F, low, high
        self._solving = threading.Lock()
        self._rows: Any = None

    @classmethod
    def of(cls, K: LinearDescription, unit: float, columns: int) -> WarmModel:
        """The rows of a description of u/unit, each of size 1, and so many variables in all."""
        from scipy.sparse import csr_array

        parts = [csr_array((0, len(K.lower)))]
        low, high = [np.zeros(0)], [np.zeros(0)]
        if K.A_ub is not None and K.b_ub is not None:
            parts.append(csr_array(K.A_ub))
            low.append(np.full(len(K.b_ub), -np.inf))
            high.append(K.b_ub / unit)
        if K.A_eq is not None and K.b_eq is not None:
            parts.append(csr_array(K.A_eq))
            low.append(K.b_eq / unit)
            high.append(K.b_eq / unit)
        F = csr_array(below(parts), dtype=np.float64)
        sizes = row_sizes(F)
        F = csr_array(rows_times(F, 1.0 / sizes))
        F = csr_array((F.data, F.indices, F.indptr), (F.shape[0], columns))
        return cls(F, np.concatenate(low) / sizes, np.concatenate(high) / sizes)

    def __reduce__(self) -> tuple[Any, ...]:
        return WarmModel, (self.F, self.low, self.high)  # a copy sets its own solver up

    def __call__(
        self,
        costs: Floats,
        lower: Floats,
        upper: Floats,
        rows: Rows | None = None,
        basis: Basis | None = None,
    ) -> Solved | None:
        """A minimiser; None where there is none, or none was found."""
        if self._solver is None:
            return self.solve_cold(costs, lower, upper, rows)
        with self._solving:
            return self._solve_warm(costs, lower, upper, rows, basis)

    def _solve_warm(
        self, costs: Floats, lower: Floats, upper: Floats, rows: Rows | None, basis: Basis | None
    ) -> Solved | None:
        solver, n, m = self._solver, len(costs), len(self.low)
        solver.clearSolver()
        self._set_rows(rows)
        solver.changeColsCost(n, self._places, costs)
        solver.changeColsBounds(n, self._places, lower, upper)
        count = 0 if rows is None else len(rows.b)
        if basis is not None and (basis.columns, basis.rows) == (n, m + count):
            solver.setBasis(basis.own)
        solver.run()
        status = solver.getModelStatus()
        kinds = type(status)
        if status in (kinds.kInfeasible, kinds.kUnboundedOrInfeasible):
            return None
        if status != self._optimal:  # it lost its way: rare, and never for good
            return self.solve_cold(costs, lower, upper, rows)
        solution = solver.getSolution()
        return Solved(
            np.array(solution.col_value),
            np.array(solution.row_dual)[m:] if count else np.zeros(0),
            Basis(n, m + count, solver.getBasis()),
        )

    def _set_rows(self, rows: Rows | None) -> None:
        """Put these rows after the fixed ones; where they are the last ones, their bounds alone."""
        solver, m, old = self._solver, len(self.low), self._rows
        new = None if rows is None else rows.A
        if not same_rows(old, new):
            if old is not None and old.shape[0]:
                gone = np.arange(m, m + old.shape[0], dtype=np.int32)
                solver.deleteRows(len(gone), gone)
            if rows is not None and len(rows.b):
                starts, places, entries = nonzeros(rows.A)
                lowest = np.full(len(rows.b), -np.inf)
                solver.addRows(
                    len(rows.b), lowest, rows.b, len(entries), starts[:-1], places, entries
                )
            self._rows = new
        elif rows is not None and len(rows.b):
            places = np.arange(m, m + len(rows.b), dtype=np.int32)
            solver.changeRowsBounds(len(places), places, np.full(len(places), -np.inf), rows.b)

    def solve_cold(
        self,
        costs: Floats,
        lower: Floats,
        upper: Floats,
        rows: Rows | None,
        method: str = "highs-ds",
    ) -> Solved | None:
        """The same by SciPy, from nothing."""
        from scipy.optimize import linprog

        equal = self.low == self.high
        A, b = [self.F[~equal]], [self.high[~equal]]
        count = 0
        if rows is not None:
            A, b, count = [rows.A, *A], [rows.b, *b], len(rows.b)
        found = linprog(
            costs,
            below(A),
            np.concatenate(b),
            self.F[equal],
            self.high[equal],
            np.column_stack([lower, upper]),
            method=method,
            options={
                "primal_feasibility_tolerance": TOLERANCE,
                "dual_feasibility_tolerance": TOLERANCE,
            },
        )
        if found.status != 0:
            return None
        return Solved(np.asarray(found.x), np.asarray(found.ineqlin.marginals)[:count], None)

    @cached_property
    def _places(self) -> NDArray:
        return np.arange(self.F.shape[1], dtype=np.int32)

    @cached_property
    def _optimal(self) -> Any:
        import highspy

        return highspy.HighsModelStatus.kOptimal

    @cached_property
    def _solver(self) -> Any:
        """HiGHS with the fixed rows in it, or None without highspy."""
        try:
            import highspy
        except ImportError:
            return None
        program, n = highspy.HighsLp(), self.F.shape[1]
        program.num_row_, program.num_col_ = self.F.shape
        program.col_cost_ = program.col_lower_ = program.col_upper_ = np.zeros(n)
        program.row_lower_, program.row_upper_ = self.low, self.high
        program.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        program.a_matrix_.start_ = self.F.indptr
        program.a_matrix_.index_, program.a_matrix_.value_ = self.F.indices, self.F.data
        solver = highspy.Highs()
        solver.setOptionValue("output_flag", False)
        solver.setOptionValue("threads", 1)
        solver.setOptionValue("presolve", "off")
        # sizes that it chose for an earlier program would be kept for later ones
        solver.setOptionValue("simplex_scale_strategy", 0)
        solver.setOptionValue("primal_feasibility_tolerance", TOLERANCE)
        solver.setOptionValue("dual_feasibility_tolerance", TOLERANCE)
        solver.passModel(program)
        return solver
