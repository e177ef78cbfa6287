"""What one would call for a set that has a linear description and no oracle."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.optimize import linprog

from tidewolf.sets import Polyhedral


def by_linprog(K: Polyhedral) -> Callable[[Any], object]:
    """SciPy's linprog, told about the set beforehand, as a function of the direction."""
    told = K.description()
    bounds = np.stack([told.lower, told.upper], axis=1)

    def ask(d: Any) -> object:
        costs = d.reshape(-1) if told.lift is None else told.lift.T @ d.reshape(-1)
        return linprog(costs, told.A_ub, told.b_ub, told.A_eq, told.b_eq, bounds)

    return ask
