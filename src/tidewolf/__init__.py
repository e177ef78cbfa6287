"""tidewolf: online decisions inside a hard set that is costly to project on, under soft limits that move with time."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tidewolf import functions, learners, problems, projection, rivals, sets, testing
    from tidewolf.core.batch import Stream
    from tidewolf.evaluation.hindsight import Comparator, best_in_hindsight
    from tidewolf.evaluation.run import Run, run
    from tidewolf.learners import DriftPlusPenalty, LyapunovDescent, PrimalDual
    from tidewolf.loop import play
    from tidewolf.session import Session

__version__ = "0.1.0"

_HOME = {
    "Comparator": "tidewolf.evaluation.hindsight",
    "DriftPlusPenalty": "tidewolf.learners",
    "LyapunovDescent": "tidewolf.learners",
    "PrimalDual": "tidewolf.learners",
    "Run": "tidewolf.evaluation.run",
    "Session": "tidewolf.session",
    "Stream": "tidewolf.core.batch",
    "best_in_hindsight": "tidewolf.evaluation.hindsight",
    "play": "tidewolf.loop",
    "run": "tidewolf.evaluation.run",
}
_PARTS = ("functions", "learners", "problems", "projection", "rivals", "sets", "testing")

__all__ = [
    "Comparator",
    "DriftPlusPenalty",
    "LyapunovDescent",
    "PrimalDual",
    "Run",
    "Session",
    "Stream",
    "best_in_hindsight",
    "functions",
    "learners",
    "play",
    "problems",
    "projection",
    "rivals",
    "run",
    "sets",
    "testing",
]


def __getattr__(name: str) -> Any:
    """Parts are imported when first used, so that `import tidewolf` costs little."""
    if name in _PARTS:
        return import_module(f"tidewolf.{name}")
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module 'tidewolf' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
