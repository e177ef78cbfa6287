"""tidewolf: online convex optimization with time-varying constraints."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tidewolf import (
        baselines,
        experiments,
        experts,
        functions,
        learners,
        networks,
        problems,
        projection,
        sets,
        testing,
    )
    from tidewolf.allocator import OnlineAllocator
    from tidewolf.client import Client
    from tidewolf.core.batch import Stream
    from tidewolf.core.round_info import RoundInfo
    from tidewolf.evaluation.certificate import Certificate
    from tidewolf.evaluation.comparison import Comparison
    from tidewolf.evaluation.intervals import Intervals, intervals
    from tidewolf.evaluation.rates import Rates, rates
    from tidewolf.evaluation.run import Run, run
    from tidewolf.evaluation.tracking import Decisions
    from tidewolf.experiments.compare import compare
    from tidewolf.explanation import Explanation
    from tidewolf.hindsight.best import Comparator, best_in_hindsight
    from tidewolf.learners import (
        BanditPrimalDual,
        DriftPlusPenalty,
        Ensemble,
        LyapunovDescent,
        LyapunovFrankWolfe,
        PrimalDual,
    )
    from tidewolf.loop import play
    from tidewolf.methods.budget import Budget
    from tidewolf.session import Session

__version__ = "0.3.0"

_NAMES = {
    "allocator": ("OnlineAllocator",),
    "client": ("Client",),
    "core.batch": ("Stream",),
    "core.round_info": ("RoundInfo",),
    "evaluation.certificate": ("Certificate",),
    "evaluation.comparison": ("Comparison",),
    "evaluation.intervals": ("Intervals", "intervals"),
    "evaluation.rates": ("Rates", "rates"),
    "evaluation.run": ("Run", "run"),
    "evaluation.tracking": ("Decisions",),
    "experiments.compare": ("compare",),
    "explanation": ("Explanation",),
    "hindsight.best": ("Comparator", "best_in_hindsight"),
    "loop": ("play",),
    "methods.budget": ("Budget",),
    "session": ("Session",),
}
"""The names of each module; learners and packages are found by their own."""

__all__ = [
    "BanditPrimalDual", "Budget", "Certificate", "Client", "Comparator", "Comparison", "Decisions",
    "DriftPlusPenalty", "Ensemble", "Explanation", "Intervals", "LyapunovDescent",
    "LyapunovFrankWolfe", "OnlineAllocator", "PrimalDual", "Rates", "RoundInfo", "Run", "Session",
    "Stream", "baselines", "best_in_hindsight", "compare", "experiments", "experts", "functions",
    "intervals", "learners", "networks", "play", "problems", "projection", "rates", "run", "sets",
    "testing",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    """Parts are imported when first used, so that `import tidewolf` costs little."""
    home = next((module for module, names in _NAMES.items() if name in names), None)
    if home is None and name in __all__:
        if name.islower():
            return import_module(f"tidewolf.{name}")
        home = "learners"
    if home is None:
        raise AttributeError(f"module 'tidewolf' has no attribute {name!r}")
    return getattr(import_module(f"tidewolf.{home}"), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
