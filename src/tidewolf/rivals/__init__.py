"""What one would otherwise use, to compare with. Rivals may project exactly."""

from typing import Any

from tidewolf.core.learner import Learner
from tidewolf.rivals.sinha_vaze import SinhaVaze

__all__ = ["SinhaVaze"]


def every() -> dict[str, type[Learner[Any]]]:
    """The rivals by name."""
    return {name: globals()[name] for name in __all__}
