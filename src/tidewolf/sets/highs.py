"""Linear programs over fixed rows that are asked again and again, everything else changed in place:

    min <c, v>   under   low <= F v <= high  (fixed),   A v <= b,   lower <= v <= upper.

HiGHS through highspy keeps the program; costs, bounds, and A where it is another one, are changed
in it, and it starts from the basis it is given. The answer depends on the question and that basis
alone: what the solver remembers is cleared first, so that a state that holds the basis continues
with the same bits in another process.
"""

import threading
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Self, final

import numpy as np

from tidewolf.core import checkpoint, sparse
from tidewolf.core.lazy import highspy, sp
from tidewolf.core.types import Floats, NDArray
from tidewolf.sets.base import LinearDescription

# Of feasibility and optimality, the tightest HiGHS takes; variables and rows are best of size about
# 1.
TOLERANCE = 1e-10
# Of a basis: at the lower bound, basic, at the upper bound, free at zero, nonbasic.
STATUSES = range(5)
# Of HiGHS; sizes that it chose for an earlier program would be kept for later ones.
_OPTIONS = {
    "output_flag": False,
    "threads": 1,
    "primal_feasibility_tolerance": TOLERANCE,
    "dual_feasibility_tolerance": TOLERANCE,
    "simplex_scale_strategy": 0,
}


@final
class Basis(checkpoint.Stored):
    """Which variables and rows are at a bound: where the solver starts. Never changed.

    It is made of HiGHS's own, or of a small number for each variable, then for each row; reading
    the numbers takes as long as a small program.
    """

    tag: ClassVar = "basis"

    def __init__(
        self, columns: int, rows: int, statuses: NDArray | None = None, own: Any = None
    ) -> None:
        self.columns, self.rows, self._known, self._own = columns, rows, statuses, own

    @cached_property
    def statuses(self) -> NDArray:
        if self._known is not None:
            return self._known
        return np.fromiter(map(int, (*self._own.col_status, *self._own.row_status)), np.int8)

    @cached_property
    def own(self) -> Any:
        if self._own is not None:
            return self._own
        known = [highspy.HighsBasisStatus(status) for status in STATUSES]
        each, basis = [known[status] for status in self.statuses.tolist()], highspy.HighsBasis()
        basis.col_status, basis.row_status = each[: self.columns], each[self.columns :]
        basis.valid = True
        return basis

    def __reduce__(self) -> tuple[Any, ...]:
        return Basis, (self.columns, self.rows, self.statuses)

    def parts(self) -> dict[str, Any]:
        return {"columns": self.columns, "statuses": self.statuses}

    @classmethod
    def restored(cls, parts: dict[str, Any]) -> Self:
        statuses, columns = parts["statuses"], parts["columns"]
        known = type(statuses) is np.ndarray and (statuses.dtype, statuses.ndim) == (np.int8, 1)
        known = known and set(statuses.tolist()) <= set(STATUSES)
        if not known or type(columns) is not int or not 0 <= columns <= len(statuses):
            raise ValueError("a basis has a status from 0 to 4 for each variable and row")
        return cls(columns, len(statuses) - columns, statuses)


class HalfSpaces(NamedTuple):
    """<a_i, x> <= b_i; A a matrix, plain or compressed by rows, which must not change, or None if
    every entry has a capacity b_i.
    """

    A: Any
    b: Floats


class Solved(NamedTuple):
    """A minimiser, the multipliers of A v <= b (at most 0) and of the fixed rows, and the basis to
    continue from.
    """

    v: Floats
    multipliers: Floats
    of_fixed: Floats
    basis: Basis | None


class WarmModel:
    """A program with these fixed rows, low <= F v <= high, F a sparse array of SciPy by rows."""

    method = "simplex"

    def __init__(self, F: Any, low: Floats, high: Floats) -> None:
        self.F, self.low, self.high = F, low, high
        self._solving = threading.Lock()
        self._rows: Any = None

    @classmethod
    def of(cls, K: LinearDescription, unit: float = 1.0, columns: int | None = None) -> Self:
        """The inequalities and then the equations of a description of u/unit, each of size 1, and
        so many variables in all.
        """
        parts, low, high = [sp.csr_array((0, len(K.lower)))], [np.zeros(0)], [np.zeros(0)]
        for A, b, least in ((K.A_ub, K.b_ub, -np.inf), (K.A_eq, K.b_eq, 0.0)):
            if A is not None and b is not None:
                parts.append(sp.csr_array(A))
                low.append(b / unit + least)
                high.append(b / unit)
        F = sp.csr_array(sparse.stack_rows(parts), dtype=np.float64)
        sizes = sparse.row_sizes(F)
        F = sp.csr_array(sparse.rows_times(F, 1.0 / sizes))
        shape = F.shape[0], len(K.lower) if columns is None else columns
        F = sp.csr_array((F.data, F.indices, F.indptr), shape)
        return cls(F, np.concatenate(low) / sizes, np.concatenate(high) / sizes)

    def __reduce__(self) -> tuple[Any, ...]:
        return WarmModel, (self.F, self.low, self.high)  # a copy sets its own solver up

    def __call__(
        self,
        costs: Floats,
        lower: Floats,
        upper: Floats,
        rows: HalfSpaces | None = None,
        basis: Basis | None = None,
    ) -> Solved | None:
        """A minimiser; None if there is none, or none was found."""
        solver, n, m = self._solver, len(costs), len(self.low)
        count = 0 if rows is None else len(rows.b)
        with self._solving:
            solver.clearSolver()
            self._set_rows(rows)
            places = np.arange(n, dtype=np.int32)
            solver.changeColsCost(n, places, costs)
            solver.changeColsBounds(n, places, lower, upper)
            if basis is not None and (basis.columns, basis.rows) == (n, m + count):
                solver.setBasis(basis.own)
            status = self._run(self.method)
            if status != "kOptimal" and not status.endswith("Infeasible"):  # rare
                solver.clearSolver()
                status = self._run("choose")
            if status != "kOptimal":
                return None
            solution = solver.getSolution()
            duals = np.array(solution.row_dual)
            last = Basis(n, m + count, own=solver.getBasis())
            return Solved(np.array(solution.col_value), duals[m:], duals[:m], last)

    def _run(self, method: str) -> str:
        self._solver.setOptionValue("solver", method)
        self._solver.run()
        return str(self._solver.getModelStatus().name)

    def _set_rows(self, rows: HalfSpaces | None) -> None:
        solver, m, old = self._solver, len(self.low), self._rows
        new, b = (None, np.zeros(0)) if rows is None else rows
        least, places = np.full(len(b), -np.inf), np.arange(m, m + len(b), dtype=np.int32)
        if sparse.same_rows(old, new):
            if len(b):
                solver.changeRowsBounds(len(b), places, least, b)
            return
        if old is not None and old.shape[0]:
            gone = np.arange(m, m + old.shape[0], dtype=np.int32)
            solver.deleteRows(len(gone), gone)
        if len(b):
            starts, places, entries = sparse.nonzeros(new)
            solver.addRows(len(b), least, b, len(entries), starts[:-1], places, entries)
        self._rows = new

    @cached_property
    def _solver(self) -> Any:
        solver, (rows, columns) = highspy.Highs(), self.F.shape
        for name, value in _OPTIONS.items():
            solver.setOptionValue(name, value)
        solver.addVars(columns, np.zeros(columns), np.zeros(columns))
        starts, places, entries = sparse.nonzeros(self.F)
        solver.addRows(rows, self.low, self.high, len(entries), starts[:-1], places, entries)
        return solver
