"""The step of drift-plus-penalty, exact to a certified gap: the one place where learners here call
a solver.
"""

from __future__ import annotations

import numpy as np

from tidewolf.core.batch import Batch
from tidewolf.core.sparse import is_sparse
from tidewolf.functions.linear import Affine, Capacity, MaxAffine
from tidewolf.methods.steps.penalty import capacities, proximal_bundle
from tidewolf.methods.steps.penalty.task import PenaltySolution, PenaltyTask

__all__ = ["PenaltySolution", "PenaltyTask", "solve_penalty"]


def solve_penalty(task: PenaltyTask, accuracy: float, budget: int = 100) -> PenaltySolution:
    """An answer within `accuracy` of the least h, or what `budget` evaluations of the block could
    certify.
    """
    if isinstance(task.constraints, Capacity):
        return capacities.capacities(task, accuracy, budget)
    merged = _merged(task.constraints)
    found = proximal_bundle.proximal_bundle(task._replace(constraints=merged), accuracy, budget)
    return found if merged is task.constraints else found._replace(breach=task.breach(found.x))


def _merged(constraints: Batch) -> Batch:
    """Equal rounds of dense affine pieces as one: n rounds with g_t = g are one with n g, since
    n g^+ = (n g)^+.
    """
    if not isinstance(constraints, Affine | MaxAffine) or is_sparse(constraints.A):
        return constraints
    A, b = constraints.A, constraints.b
    number: dict[bytes, int] = {}
    keys = (a.tobytes() + offset.tobytes() for a, offset in zip(A, b, strict=True))
    which = [number.setdefault(key, len(number)) for key in keys]
    if len(number) == len(which):
        return constraints
    _, first, counts = np.unique(which, return_index=True, return_counts=True)
    times = counts.astype(np.float64)
    return type(constraints)._unchecked(
        A=A[first] * times.reshape(-1, *[1] * (A.ndim - 1)),
        b=b[first] * times.reshape(-1, *[1] * (b.ndim - 1)),
    )
