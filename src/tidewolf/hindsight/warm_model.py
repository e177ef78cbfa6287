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
from tidewolf.sets.highs import STATUSES, highs_basis, highs_with, solve_by_scipy, statuses_of

_OPTIONS = {"threads": 1, "presolve": "off", "simplex_scale_strategy": 0}
"""Of HiGHS; sizes that it chose for an earlier program would be kept for later ones."""


@final
class Basis(Stored):
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
        """The numbers."""
        return statuses_of(self._own) if self._known is None else self._known

    @cached_property
    def own(self) -> Any:
        """HiGHS's own."""
        return highs_basis(self.statuses, self.columns) if self._own is None else self._own

    def __reduce__(self) -> tuple[Any, ...]:
        return Basis, (self.columns, self.rows, self.statuses)

    def parts(self) -> dict[str, Any]:
        return {"columns": self.columns, "statuses": self.statuses}

    @classmethod
    def restored(cls, parts: dict[str, Any]) -> Basis:
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
    """A minimiser, the multipliers of A v <= b (at most 0), and the basis to continue from."""

    v: Floats
    multipliers: Floats
    basis: Basis | None


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

        parts, low, high = [csr_array((0, len(K.lower)))], [np.zeros(0)], [np.zeros(0)]
        for A, b, least in ((K.A_ub, K.b_ub, -np.inf), (K.A_eq, K.b_eq, 0.0)):
            if A is not None and b is not None:
                parts.append(csr_array(A))
                low.append(b / unit + least)
                high.append(b / unit)
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
        rows: HalfSpaces | None = None,
        basis: Basis | None = None,
    ) -> Solved | None:
        """A minimiser; None if there is none, or none was found."""
        solver, n, m = self._solver, len(costs), len(self.low)
        if solver is None:
            return self.solve_cold(costs, lower, upper, rows)
        count = 0 if rows is None else len(rows.b)
        with self._solving:
            solver.clearSolver()
            self._set_rows(rows)
            places = np.arange(n, dtype=np.int32)
            solver.changeColsCost(n, places, costs)
            solver.changeColsBounds(n, places, lower, upper)
            if basis is not None and (basis.columns, basis.rows) == (n, m + count):
                solver.setBasis(basis.own)
            solver.run()
            status = self._status()
            if status.endswith("Infeasible"):
                return None
            if status != "kOptimal":  # rare
                return self.solve_cold(costs, lower, upper, rows)
            solution = solver.getSolution()
            multipliers = np.array(solution.row_dual)[m:] if count else np.zeros(0)
            last = Basis(n, m + count, own=solver.getBasis())
            return Solved(np.array(solution.col_value), multipliers, last)

    def _status(self) -> str:
        return str(self._solver.getModelStatus().name)

    def _set_rows(self, rows: HalfSpaces | None) -> None:
        """Put these rows after the fixed ones; if they are the last ones, their bounds alone."""
        solver, m, old = self._solver, len(self.low), self._rows
        new, b = (None, np.zeros(0)) if rows is None else rows
        least, places = np.full(len(b), -np.inf), np.arange(m, m + len(b), dtype=np.int32)
        if same_rows(old, new):
            if len(b):
                solver.changeRowsBounds(len(b), places, least, b)
            return
        if old is not None and old.shape[0]:
            gone = np.arange(m, m + old.shape[0], dtype=np.int32)
            solver.deleteRows(len(gone), gone)
        if len(b):
            starts, places, entries = nonzeros(new)
            solver.addRows(len(b), least, b, len(entries), starts[:-1], places, entries)
        self._rows = new

    def solve_cold(
        self,
        costs: Floats,
        lower: Floats,
        upper: Floats,
        rows: HalfSpaces | None,
        method: str = "highs-ds",
    ) -> Solved | None:
        """The same by SciPy, from nothing."""
        equal, count = self.low == self.high, 0
        A, b = self.F[~equal], self.high[~equal]
        if rows is not None:
            A, b, count = below([rows.A, A]), np.concatenate([rows.b, b]), len(rows.b)
        fixed = self.F[equal], self.high[equal]
        found = solve_by_scipy(costs, (A, b, *fixed), lower, upper, method)
        if found.status != 0:
            return None
        return Solved(np.asarray(found.x), np.asarray(found.ineqlin.marginals)[:count], None)

    @cached_property
    def _solver(self) -> Any:
        """HiGHS with the fixed rows in it, or None without highspy."""
        none = np.zeros(self.F.shape[1])
        return highs_with(self.F, self.low, self.high, none, none, _OPTIONS)
