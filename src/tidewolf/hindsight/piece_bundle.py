"""The task in hindsight for maxima of affine pieces over very many rounds: a level bundle method on
the points, for a set with a linear description.

A program with a variable for each round (epigraph.py) grows with the rounds; F itself lives on few
entries. At a point x_k the active pieces of all rounds add up to one cut below F,

    F(x)  >=  <c_k, x> - d_k,      c_k = sum_t c_{i_t},   d_k = sum_t d_{i_t},   i_t active at x_k

and each iteration (Lemarechal, Nemirovskii & Nesterov 1995)

    lower  =  min_x max_k <c_k, x> - d_k   over K and the limits: a linear program
    x      =  the point nearest to the best one with  max_k <c_k, x> - d_k <= level
        a quadratic program, with the level between lower and the least F so far

The multipliers of the cuts weigh the pieces of every round, with sum 1: mu_i = sum of those of the
cuts in which i is active.
"""

from __future__ import annotations

from typing import Any, NamedTuple, final

import numpy as np

from tidewolf.core.arrays import power_of_two
from tidewolf.core.types import Floats, Int64s
from tidewolf.hindsight.lp import (
    description_unit,
    in_units,
    lifted_rows,
    run_linprog,
    with_free_variables,
)
from tidewolf.hindsight.piecewise_task import PiecewiseTask
from tidewolf.hindsight.rows import row_sizes
from tidewolf.hindsight.task import HindsightTask, Solution
from tidewolf.sets.base import LinearDescription, Polyhedral

MANY = 20_000
"""Pieces from which on the program with a variable for each round takes longer."""
_GAP, _ITERATIONS, _LEVEL = 1e-9, 400, 0.3
"""Between both bounds, relative to them; calls of the two programs; where the level is."""
_ENOUGH = 1e-6
"""A gap that is left to the other program."""


@final
class PieceBundle:
    """For sets with a linear description and very many pieces; gives up where the bounds stay
    apart.
    """

    name = "level bundle method on pieces"

    def supports(self, task: HindsightTask) -> bool:
        many = isinstance(task, PiecewiseTask) and len(task.pieces.b) > MANY
        return many and isinstance(task.K, Polyhedral)

    def solve(self, task: HindsightTask) -> Solution | None:
        assert isinstance(task, PiecewiseTask)
        assert isinstance(task.K, Polyhedral)
        return _CutBundle(task, task.K.description()).minimise()


class _Master(NamedTuple):
    """The least of the cuts: where, how much, and the multipliers of limits and cuts."""

    u: Floats
    value: float
    lam: Floats
    theta: Floats


class _CutBundle:
    """Cuts in the u of a description, in units: u by `unit`, totals by `size` and `unit`."""

    def __init__(self, task: PiecewiseTask, u_of: LinearDescription) -> None:
        self.task, self.description = task, u_of
        self.unit = description_unit(u_of)
        self.K = in_units(u_of, self.unit)
        A, b = lifted_rows(u_of, task.limits.A, task.limits.b)
        self.sizes = row_sizes(A)
        self.A, self.b = A.multiply(1 / self.sizes[:, None]).tocsr(), b / self.sizes / self.unit
        self.C, self.d = lifted_rows(u_of, task.pieces.A, task.pieces.b)
        self.starts = np.searchsorted(task.pieces.rounds, np.arange(len(task.part)))
        self.active = list[Int64s]()
        self.rows, self.offsets = np.zeros((0, self.C.shape[1])), np.zeros(0)
        self.size = 1.0

    def minimise(self) -> Solution | None:
        """The best point and the multipliers of the last program; None where it gives up."""
        lower, upper, best = -np.inf, np.inf, None
        u, master = 0.5 * (np.maximum(self.K.lower, -1.0) + np.minimum(self.K.upper, 1.0)), None
        for _ in range(_ITERATIONS):
            value = self._add_cut(u)
            if master is not None and value < upper:  # the first u need not be a member
                upper, best = value, u
            master = self._master()
            if master is None:
                return None
            lower = max(lower, master.value)
            if best is not None and upper - lower <= _GAP * max(abs(upper), abs(lower)):
                break
            level = lower + _LEVEL * (upper - lower)
            nearest = None if best is None else self._nearest(best, level)
            u = master.u if nearest is None else nearest
        if best is None or upper - lower > _ENOUGH * max(abs(upper), abs(lower)):
            return None
        return self._solution(best, master)

    def _add_cut(self, u: Floats) -> float:
        """The cut at u; gives the total there."""
        values = self.C @ (self.unit * u) - self.d
        most = np.maximum.reduceat(values, self.starts)
        each = np.flatnonzero(values == most[self.task.pieces.rounds])
        first = each[np.searchsorted(self.task.pieces.rounds[each], np.arange(len(most)))]
        row = np.asarray(self.C[first, :].sum(axis=0)).reshape(-1)
        if not self.active:
            self.size = float(power_of_two(np.abs(row).max()))
        self.active.append(first)
        self.rows = np.vstack([self.rows, row / self.size])
        self.offsets = np.append(self.offsets, self.d[first].sum() / self.size / self.unit)
        return float(most.sum()) / self.size / self.unit

    def _master(self) -> _Master | None:
        from scipy.sparse import csr_array, hstack, vstack

        limits, cuts = len(self.b), len(self.offsets)
        rows = vstack(
            [
                hstack([self.A, csr_array((limits, 1))]),
                csr_array(np.column_stack([self.rows, -np.ones(cuts)])),
            ],
            format="csr",
        )
        cost, bounds = np.append(np.zeros(self.A.shape[1]), 1.0), np.append(self.b, self.offsets)
        found = run_linprog(cost, with_free_variables(self.K, 1), rows, bounds)
        if found is None:
            return None
        u, lam = found
        return _Master(u[:-1], float(u[-1]), lam[:limits], lam[limits:])

    def _nearest(self, best: Floats, level: float) -> Floats | None:
        """The u nearest to the best one whose cuts are at most the level; None where the solver
        gives up.
        """
        import piqp
        from scipy.sparse import csc_array, csr_array, eye_array, vstack

        def columns(A: Any) -> Any:
            return None if A is None else csc_array(A)

        K, n = self.K, len(best)
        rows = [self.A, csr_array(self.rows), *([] if K.A_ub is None else [csr_array(K.A_ub)])]
        bounds = [self.b, level + self.offsets, *([] if K.b_ub is None else [K.b_ub])]
        solver = piqp.SparseSolver()
        solver.settings.eps_abs = solver.settings.eps_rel = 1e-9
        solver.setup(
            csc_array(eye_array(n)),
            -best,
            columns(K.A_eq),
            K.b_eq,
            columns(vstack(rows)),
            None,
            np.concatenate(bounds),
            K.lower,
            K.upper,
        )
        return np.asarray(solver.result.x) if solver.solve() == piqp.PIQP_SOLVED else None

    def _solution(self, best: Floats, master: _Master | None) -> Solution:
        assert master is not None
        mu = np.zeros(len(self.d))
        for first, theta in zip(self.active, master.theta, strict=True):
            mu[first] += theta
        u, description = self.unit * best, self.description
        x = u if description.lift is None else description.lift @ u
        x = x if description.shift is None else x + description.shift
        return Solution(x, np.concatenate([master.lam * self.size / self.sizes, mu]))
