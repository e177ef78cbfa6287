"""Solvers, each with a program whose answer is known.

HiGHS: min -x - 2y, x + y <= 4, x + 3y <= 6, x and y >= 0 is -5 at (3, 1). PIQP: the point of
x + y <= 1 nearest to (1, 1) is (1/2, 1/2). Clarabel: the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

from tidewolf.doctor.declared import install
from tidewolf.doctor.findings import Asked, Finding, Moving

_GROUP = "solvers"
_NEAR = 1e-6


def check_highs(asked: Asked, moving: Moving) -> Iterator[Finding]:
    """Linear programs, by SciPy's HiGHS and by highspy."""
    import numpy as np

    from tidewolf.sets.generic.linear_solver import LinearProgram

    moving("HiGHS")
    costs, A, b = np.array([-1.0, -2.0]), np.array([[1.0, 1.0], [1.0, 3.0]]), np.array([4.0, 6.0])
    bounds = np.zeros(2), np.full(2, np.inf)
    program = LinearProgram(A, b, np.zeros((0, 2)), np.zeros(0), *bounds)
    cold = program.solve_cold(costs)
    yield _answered("HiGHS in SciPy", cold and cold.x, [3.0, 1.0], "scipy")
    if find_spec("highspy") is None:
        said = f"not installed, SciPy's stands in and is slower: {install('app', '')}"
        yield Finding(_GROUP, "HiGHS in highspy", "absent", said)
        return
    warm = program(costs)
    yield _answered("HiGHS in highspy", warm and warm.x, [3.0, 1.0], "highspy")


def check_piqp(asked: Asked, moving: Moving) -> Iterator[Finding]:
    """Quadratic programs: exact projections."""
    import numpy as np

    from tidewolf.hindsight.exact import ExactProjection
    from tidewolf.sets import Polytope

    moving("PIQP")
    K = Polytope(A_ub=[[1.0, 1.0]], b_ub=[1.0], bounds=[(0.0, 2.0), (0.0, 2.0)])
    yield _answered("PIQP", ExactProjection(K)(np.ones(2)), [0.5, 0.5], "piqp")


def check_clarabel(asked: Asked, moving: Moving) -> Iterator[Finding]:
    """Conic programs, which cvxpy hands over."""
    if find_spec("clarabel") is None:
        said = f"not installed: {install('cvx', '')}"
        yield Finding(_GROUP, "Clarabel", "absent", said)
        return
    import clarabel
    import numpy as np
    from scipy import sparse

    moving("Clarabel")
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    solver = clarabel.DefaultSolver(
        sparse.csc_matrix(np.eye(2)),
        -np.ones(2),
        sparse.csc_matrix(np.ones((1, 2))),
        np.ones(1),
        [clarabel.NonnegativeConeT(1)],
        settings,
    )
    yield _answered("Clarabel", solver.solve().x, [0.5, 0.5], "clarabel")


def _answered(name: str, found: Any, known: list[float], package: str) -> Finding:
    """Whether the answer is the known one."""
    off = [abs(float(a) - b) for a, b in zip(known if found is None else found, known, strict=True)]
    if found is not None and max(off) <= _NEAR:
        return Finding(_GROUP, name, "ok", "solves a program with a known answer")
    answer = "nothing" if found is None else [float(entry) for entry in found]
    todo = f"Install it again: pip install --force-reinstall {package}"
    return Finding(_GROUP, name, "fails", f"answers {answer} where {known} is right", todo)
