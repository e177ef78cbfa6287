"""The step of drift-plus-penalty, exact to a certified gap: the one place where learners here call
a solver.
"""

from __future__ import annotations

from tidewolf.functions.capacity import Capacity
from tidewolf.methods.steps.penalty import bundle, capacities
from tidewolf.methods.steps.penalty.task import PenaltySolution, PenaltyTask

__all__ = ["PenaltySolution", "PenaltyTask", "solve_penalty"]


def solve_penalty(task: PenaltyTask, accuracy: float, budget: int = 100) -> PenaltySolution:
    """An answer within `accuracy` of the least h, or what `budget` evaluations of the block could
    certify.
    """
    method = capacities.capacities if isinstance(task.constraints, Capacity) else bundle.bundle
    return method(task, accuracy, budget)
