"""The step of drift-plus-penalty, exact to a certified gap: the one place where learners here call
a solver.
"""

from __future__ import annotations

from tidewolf.functions.capacity import Capacity
from tidewolf.methods.steps.penalty import bundle, capacities
from tidewolf.methods.steps.penalty.task import Solved, Task

__all__ = ["Solved", "Task", "solve"]


def solve(task: Task, accuracy: float, budget: int = 100) -> Solved:
    """An answer within `accuracy` of the least h, or what `budget` evaluations of the block could
    certify.
    """
    method = capacities.capacities if isinstance(task.constraints, Capacity) else bundle.bundle
    return method(task, accuracy, budget)
