"""A session that was just made has its machine code ready before anybody waits for a decision.

Kernels are compiled where they are first needed and kept on disk: on a new machine that takes some
seconds, once. So two rounds are played on a copy that nobody sees when a session is made.
"""

from __future__ import annotations

import math

import numpy as np

from tidewolf.core.errors import TidewolfError
from tidewolf.core.feedback import Bandit
from tidewolf.service.description import Made
from tidewolf.session import Session

_WARM: set[tuple[type, type]] = set()
"""Kinds of learners and sets that have played here."""


def warm_up(made: Made) -> None:
    """Play two rounds of this learner, in memory, unless one of its kind has; whatever goes wrong
    is said where it matters.
    """
    kind = type(made.learner), type(made.K)
    if kind in _WARM:
        return
    _WARM.add(kind)
    shape = made.K.shape
    ramp = np.linspace(0.0, 1.0, math.prod(shape)).reshape(shape)
    try:
        session = Session(made.learner)
        for number, costs in enumerate((ramp, 1.0 - ramp)):
            session.play(round=number)
            if made.learner.needs is Bandit:
                session.observe(loss_value=1.0, constraint_value=0.1, round=number)
            elif len(shape) == 1:
                session.observe(costs=costs, capacities=0.5 * np.ones(shape), round=number)
            else:
                session.observe(costs=costs, round=number)
    except TidewolfError:
        return
