"""HiGHS, through highspy where it is installed and through SciPy otherwise.

A solver keeps its program, of which costs and bounds change, and starts from a basis: one small
number per variable, then per row.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tidewolf.core.types import Floats, NDArray

TOLERANCE = 1e-10
"""Of feasibility and optimality, the tightest HiGHS takes; variables and rows are best of size
about 1.
"""
STATUSES = range(5)
"""Of a basis: at the lower bound, basic, at the upper bound, free at zero, nonbasic."""
_TOLERANCES = {f"{kind}_feasibility_tolerance": TOLERANCE for kind in ("primal", "dual")}


def highs_with(
    rows: Any, low: Floats, high: Floats, lower: Floats, upper: Floats, options: dict[str, Any]
) -> Any:
    """A solver with low <= rows x <= high, lower <= x <= upper in it; None without highspy."""
    try:
        import highspy
    except ImportError:
        return None
    program = highspy.HighsLp()
    program.num_row_, program.num_col_ = rows.shape
    program.col_cost_ = np.zeros(len(lower))
    program.col_lower_, program.col_upper_ = lower, upper
    program.row_lower_, program.row_upper_ = low, high
    program.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    program.a_matrix_.start_, program.a_matrix_.index_ = rows.indptr, rows.indices
    program.a_matrix_.value_ = rows.data
    solver = highspy.Highs()
    for name, value in {"output_flag": False, **_TOLERANCES, **options}.items():
        solver.setOptionValue(name, value)
    solver.passModel(program)
    return solver


def highs_basis(statuses: NDArray, columns: int) -> Any:
    """A basis as HiGHS has it."""
    import highspy

    known = [highspy.HighsBasisStatus(status) for status in STATUSES]
    each, basis = [known[status] for status in statuses.tolist()], highspy.HighsBasis()
    basis.col_status, basis.row_status = each[:columns], each[columns:]
    basis.valid = True
    return basis


def statuses_of(basis: Any) -> NDArray:
    """A basis of HiGHS as numbers."""
    return np.fromiter(map(int, (*basis.col_status, *basis.row_status)), np.int8)


def solve_by_scipy(
    costs: Floats,
    rows: tuple[Any, Floats, Any, Floats],
    lower: Floats,
    upper: Floats,
    method: str = "highs",
) -> Any:
    """What `linprog` finds for A_ub x <= b_ub, A_eq x = b_eq, lower <= x <= upper, from nothing."""
    from scipy.optimize import linprog

    bounds = np.stack([lower, upper], axis=1)
    return linprog(costs, *rows, bounds, method=method, options=_TOLERANCES)
