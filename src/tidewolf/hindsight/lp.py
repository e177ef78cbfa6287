"""The task in hindsight as a linear program, for a set with a linear description.

    min { <c, x> : x in K, A x <= b }                                        linear losses
    min { sum_t s_t : x in K, A x <= b, <c_i, x> - d_i <= s_t for the pieces i of round t }

and, if there is no such point, min { s : x in K, <a_i, x> - b_i <= s for every i }, whose
multipliers weigh the rows so that their average is above 0 on all of K.

Very many rows, such as every link in every round, are generated, as few of them bind:

    x_k   =  argmin { <c, x> : x in K, <a_i, x> <= b_i for the rows i in R_k }
    R_k+1 =  R_k and the rows that x_k violates most of those that say the same of other rounds

Rows are only ever added, so this ends. If x_k violates none it is best under all of them, with the
multipliers of R_k and 0 elsewhere. The next program starts from the basis of the last, in which new
rows are basic. If no point satisfies R_k none satisfies them all, and weights of R_k show it.
"""

from __future__ import annotations

from typing import final

import numpy as np

from tidewolf.core.piecewise import ManyRows
from tidewolf.core.sparse import row_sizes
from tidewolf.core.types import Floats, Int64s
from tidewolf.hindsight.best_point import BestPoint, Objective
from tidewolf.hindsight.task import Solution, Task
from tidewolf.sets.base import Polyhedral
from tidewolf.sets.highs import TOLERANCE, Basis, HalfSpaces

MANY = 5_000
"""From so many pieces on HiGHS is asked for its interior-point method."""
_VIOLATED = 2.0 * TOLERANCE
_WHO = "The best point in hindsight"
_BASIC = 1
"""HiGHS's status of a row that no point needs to touch."""


@final
class LinearProgramming:
    name = "linear program"

    def supports(self, task: Task) -> bool:
        return isinstance(task.K, Polyhedral) and not (task.c is None and task.pieces is None)

    def solve(self, task: Task) -> Solution | None:
        if task.pieces is None:
            loss = Objective(np.asarray(task.c), None, np.zeros(0), None, 0)
        else:
            A, d, rounds = task.pieces
            loss = Objective(np.zeros(A.shape[1]), A, d, rounds, len(task.losses))
        chosen, basis = np.arange(len(task.b)), None
        many = task.A if isinstance(task.A, ManyRows) else None
        solver = BestPoint(task.K, _WHO)
        if len(loss.e) > MANY and not many:
            solver.method = "ipm"
        if many:
            sizes, chosen = many.each(row_sizes) * solver.unit, chosen[:0]
        while True:
            program = solver.prepared(loss, HalfSpaces(task.rows(chosen), task.b[chosen]))
            found = solver.feasible_best(program, basis=basis)
            if found is None:
                return _infeasible(task, chosen) if len(chosen) else None
            x = solver.flat_point(found)
            new = _violated((many @ x - task.b) / sizes, task.rounds, chosen) if many else ()
            if not len(new):
                lam = np.zeros(len(task.b))
                mu, lam[chosen] = solver.multipliers(program, found)
                below = None if task.pieces is None else task.below_pieces(mu)
                return Solution(x, lam, below=below)
            chosen, basis = np.append(chosen, new), _with_rows(found.basis, len(new))


def _infeasible(task: Task, chosen: Int64s) -> Solution | None:
    """The weights by which some rows show that no point satisfies them; None if the solver found
    none.
    """
    solver = BestPoint(task.K, _WHO)
    none = Objective(np.zeros(task.A.shape[1]), None, np.zeros(0), None, 0)
    worst = solver.breached(solver.prepared(none, HalfSpaces(task.rows(chosen), task.b[chosen])))
    if worst is None:
        return None
    weights = np.zeros(len(task.b))
    weights[chosen] = np.maximum(0.0, -worst.multipliers)
    return Solution(None, np.zeros(len(task.b)), weights)


def _violated(breach: Floats, rounds: Int64s, chosen: Int64s) -> Int64s:
    """Which rows to add: of each place in a round the one that is violated most, if any."""
    breach[chosen] = -np.inf
    each = len(breach) // (rounds[-1] + 1)
    worst = breach.reshape(-1, each).argmax(axis=0) * each + np.arange(each)
    return np.sort(worst[breach[worst] > _VIOLATED])


def _with_rows(basis: Basis | None, more: int) -> Basis | None:
    if basis is None:
        return None
    statuses = np.append(basis.statuses, np.full(more, _BASIC, dtype=np.int8))
    return Basis(basis.columns, basis.rows + more, statuses)
