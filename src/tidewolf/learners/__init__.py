"""Learners that touch their set only through a linear minimiser."""

from typing import Any

from tidewolf.learners.bandit_primal_dual import BanditPrimalDual
from tidewolf.learners.drift_plus_penalty import DriftPlusPenalty
from tidewolf.learners.ensemble import Ensemble
from tidewolf.learners.lyapunov_descent import LyapunovDescent
from tidewolf.learners.lyapunov_frank_wolfe import LyapunovFrankWolfe
from tidewolf.learners.primal_dual import PrimalDual
from tidewolf.methods.base import Learner

__all__ = [
    "BanditPrimalDual", "DriftPlusPenalty", "Ensemble", "LyapunovDescent", "LyapunovFrankWolfe",
    "PrimalDual",
]  # fmt: skip


def every() -> dict[str, type[Learner[Any]]]:
    """The learners by name."""
    return {name: globals()[name] for name in __all__}
