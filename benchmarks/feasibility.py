"""Time spent on staying feasible: the flagship's oracle and active set, against the rival's
projections by the faster of two QP solvers.

The points that Sinha & Vaze's method projects in a run are kept and projected again by OSQP
(warm-started from the last answer) and PIQP (set up once), each at the loosest tolerance that
leaves excess <= 1e-6 over the set. The flagship's time is all that is spent inside its active-set
projection, in a run of its own. Means over the first 2,000 rounds, the least of three, in processor
time of the one thread that works, so that a busy machine does not count; only ratios are worth
quoting.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import thread_time
from typing import Any, NamedTuple

import numpy as np

import tidewolf as tw
from tidewolf.baselines import SinhaVaze
from tidewolf.hindsight.exact import ExactProjection
from tidewolf.learners import LyapunovDescent
from tidewolf.problems import Problem
from tidewolf.projection import ActiveSet
from tidewolf.sets.base import LinearDescription, Polyhedral, Projectable

INFEASIBILITY = 1e-6
_TOLERANCES = (1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9)
_ROUNDS = 2000
_REPEATS = 3

Project = Callable[[np.ndarray[Any, Any]], np.ndarray[Any, Any]]


class Costs(NamedTuple):
    """Mean microseconds a round; None where there is no such projection at this excess."""

    ours: float
    infeasibility: float
    """largest infeasibility of the flagship's points"""
    osqp: float | None
    piqp: float | None
    closed_form: float | None
    """the set's own projection"""

    @property
    def solver(self) -> float:
        """The faster of the two QP solvers."""
        return min(cost for cost in (self.osqp, self.piqp) if cost is not None)


def costs(problem: Problem, caution: float, calls_per_round: float) -> Costs:
    """What both sides spend at one caution."""
    K, horizon, stream = problem.K, len(problem), problem.stream[:_ROUNDS]
    assert isinstance(K, Polyhedral)
    ours, infeasibility, own, points = [], 0.0, [], []
    for _ in range(_REPEATS):
        with clocked(ActiveSet, "nearest") as (spent, asked):
            run = tw.run(
                LyapunovDescent(
                    K, horizon=horizon, caution=caution, calls_per_round=calls_per_round
                ),
                stream,
            )
        ours.append(sum(spent))
        infeasibility = max(infeasibility, run.max_infeasibility)
        with clocked(ExactProjection, "__call__") as (spent, asked):
            tw.run(SinhaVaze(K, horizon=horizon, caution=caution), stream)
        own.append(sum(spent))
        points = [arguments[1] for arguments in asked]
    unit = 1e6 / len(stream)
    osqp, piqp = (
        None if total is None else unit * total
        for total in (_cheapest(K, points, made) for made in (_osqp, _piqp))
    )
    return Costs(
        unit * min(ours),
        infeasibility,
        osqp,
        piqp,
        unit * min(own) if isinstance(K, Projectable) else None,
    )


@contextmanager
def clocked(owner: type, method: str) -> Iterator[tuple[list[float], list[tuple[Any, ...]]]]:
    """Seconds and arguments of every call of a method while it lasts."""
    original: Any = getattr(owner, method)
    spent: list[float] = []
    asked: list[tuple[Any, ...]] = []

    def timed(*arguments: Any) -> Any:
        start = thread_time()
        answer = original(*arguments)
        spent.append(thread_time() - start)
        asked.append(arguments)
        return answer

    setattr(owner, method, timed)
    try:
        yield spent, asked
    finally:
        setattr(owner, method, original)


def _cheapest(
    K: Any, points: list[Any], made: Callable[[LinearDescription, float], Project]
) -> float | None:
    """Seconds for all points, at the loosest tolerance that leaves no more than the allowed
    excess.
    """
    for tolerance in _TOLERANCES:
        tries = [_spent(K, points, made(K.description(), tolerance)) for _ in range(_REPEATS)]
        if None not in tries:
            return min(total for total in tries if total is not None)
    return None


def _spent(K: Any, points: list[Any], project: Project) -> float | None:
    """Seconds for all points; None where one of them came out too far from the set."""
    total = 0.0
    for y in points:
        start = thread_time()
        x = project(y)
        total += thread_time() - start
        if not np.isfinite(x).all() or K.infeasibility(x) > INFEASIBILITY:
            return None
    return total


def _osqp(d: LinearDescription, tolerance: float) -> Project:
    import osqp
    from scipy.sparse import csc_matrix, eye, vstack

    n = len(d.lower)
    rows = [csc_matrix(A) for A in (d.A_eq, d.A_ub) if A is not None]
    lower = [d.b_eq, None if d.b_ub is None else np.full(len(d.b_ub), -np.inf), d.lower]
    upper = [d.b_eq, d.b_ub, d.upper]
    solver = osqp.OSQP()
    solver.setup(
        eye(n, format="csc"),
        np.zeros(n),
        vstack([*rows, eye(n)], format="csc"),
        np.concatenate([b for b in lower if b is not None]),
        np.concatenate([b for b in upper if b is not None]),
        eps_abs=tolerance,
        eps_rel=tolerance,
        max_iter=20_000,
        warm_starting=True,
        verbose=False,
    )

    def project(y: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        solver.update(q=-y)
        return np.asarray(solver.solve(raise_error=False).x, dtype=float)

    return project


def _piqp(d: LinearDescription, tolerance: float) -> Project:
    import piqp
    from scipy.sparse import csc_matrix, eye

    n, solver = len(d.lower), piqp.SparseSolver()
    solver.settings.eps_abs = solver.settings.eps_rel = tolerance
    solver.settings.eps_duality_gap_abs = solver.settings.eps_duality_gap_rel = tolerance
    A, G = (None if M is None else csc_matrix(M) for M in (d.A_eq, d.A_ub))
    solver.setup(eye(n, format="csc"), np.zeros(n), A, d.b_eq, G, None, d.b_ub, d.lower, d.upper)

    def project(y: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        solver.update(c=-y)
        solver.solve()
        return np.array(solver.result.x)

    return project
