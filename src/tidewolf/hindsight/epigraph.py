"""The task in hindsight for maxima of affine pieces as a linear program, for a set with a linear
description.

    min { sum_t s_t :  x in K,  A x <= b,  <c_i, x> - d_i <= s_t  for the pieces i of round t }

Its multipliers weigh the pieces of every round, with sum 1, and the limits. Where no point keeps
the limits, those of lp.py show it.
"""

from __future__ import annotations

from typing import final

import numpy as np

from tidewolf.core.arrays import power_of_two
from tidewolf.hindsight.lp import (
    breached_weights,
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

_MANY = 5_000
"""From so many rows on HiGHS is asked for its interior-point method."""


@final
class EpigraphProgramming:
    """For sets with a linear description."""

    name = "linear program of pieces"

    def supports(self, task: HindsightTask) -> bool:
        return isinstance(task, PiecewiseTask) and isinstance(task.K, Polyhedral)

    def solve(self, task: HindsightTask) -> Solution | None:
        """The solver's point and multipliers, or its weights where it found no point."""
        assert isinstance(task, PiecewiseTask)
        assert isinstance(task.K, Polyhedral)
        description = task.K.description()
        found = solve_epigraph(task, description)
        if found is not None:
            return found
        weights, none = breached_weights(task.limits, description), np.zeros(len(task.pieces.b))
        if weights is None:
            return None
        return Solution(None, np.zeros(len(task.rounds)), np.concatenate([weights, none]))


def solve_epigraph(task: PiecewiseTask, u_of: LinearDescription) -> Solution | None:
    """The solver's point and the multipliers of all rows; None where it found no point.

    Rows of limits, pieces and u are scaled to size 1 for it; all pieces by one number.
    """
    from scipy.sparse import csr_array, hstack, vstack

    A, b = lifted_rows(u_of, task.limits.A, task.limits.b)
    C, d = lifted_rows(u_of, task.pieces.A, task.pieces.b)
    rounds, count = len(task.part), A.shape[1]
    sizes, unit = row_sizes(A), description_unit(u_of)
    size = float(power_of_two(max(abs(C).max(), float(np.abs(d).max()) / unit)))
    places = (np.arange(len(d)), task.pieces.rounds)
    ones = csr_array((np.ones(len(d)), places), shape=(len(d), rounds))
    limits = hstack([A.multiply(1 / sizes[:, None]), csr_array((len(b), rounds))])
    rows = vstack([limits, hstack([C / size, -ones])], format="csr")
    found = run_linprog(
        np.concatenate([np.zeros(count), np.ones(rounds)]),
        with_free_variables(in_units(u_of, unit), rounds),
        rows,
        np.concatenate([b / sizes, d / size]) / unit,
        "highs-ipm" if len(d) > _MANY else "highs",
    )
    if found is None:
        return None
    u, lam = unit * found[0][:count], found[1]
    x = u if u_of.lift is None else u_of.lift @ u
    weights = np.concatenate([lam[: len(b)] * size / sizes, lam[len(b) :]])
    return Solution(x if u_of.shift is None else x + u_of.shift, weights)
