"""Checks of your own sets, functions and learners: each raises `CheckFailed` with one sentence, or
returns nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tidewolf.testing.functions import check_function
    from tidewolf.testing.learners import check_learner
    from tidewolf.testing.sets import check_set

_HOME = {
    "check_function": "tidewolf.testing.functions",
    "check_learner": "tidewolf.testing.learners",
    "check_set": "tidewolf.testing.sets",
}

__all__ = ["check_function", "check_learner", "check_set"]


def __getattr__(name: str) -> Any:
    """Each check is imported when first used: checking a set needs no learner."""
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module 'tidewolf.testing' has no attribute {name!r}")


def __dir__() -> list[str]:
    return list(__all__)
