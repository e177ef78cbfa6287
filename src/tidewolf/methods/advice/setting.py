"""A learner's setting `advice`: advisers, names of points from elsewhere, and what files write."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from tidewolf.core.arguments import as_items, shown
from tidewolf.core.errors import WrongType
from tidewolf.core.settings import Check
from tidewolf.methods.advice.base import Adviser
from tidewolf.methods.advice.named import Named
from tidewolf.methods.advice.resolve import Resolve
from tidewolf.methods.context.season import is_duration


@dataclass(frozen=True)
class AdviceSetting(Check):
    """Advisers, of whom a string names one whose points come from elsewhere.

    A file says the data that `Resolve` takes, "last", a number of rounds, or a duration, and names
    points that come with its stream.
    """

    words: ClassVar[str] = 'a list such as ["last", "1d"]'

    def __call__(self, value: Any, what: str) -> tuple[Adviser, ...]:
        if isinstance(value, Adviser):
            value = (value,)
        advisers = []
        for item in as_items(value, what, "[tw.experts.Resolve()]"):
            if not isinstance(item, Adviser | str):
                raise WrongType(
                    f"{what} must be advisers such as advice.Resolve(), or names of points that "
                    f"come from elsewhere, not {shown(item)}."
                )
            advisers.append(Named(item) if isinstance(item, str) else item)
        return tuple(advisers)

    def read(self, value: Any) -> tuple[int | str, ...] | None:
        plain = isinstance(value, list) and all(type(item) in (int, str) for item in value)
        return tuple(value) if plain else None

    def build(self, value: Any) -> tuple[Adviser, ...]:
        return tuple(_adviser(item) for item in value)


def _adviser(item: Any) -> Any:
    """Who re-solves with the data that a file names; else who has this name."""
    if isinstance(item, str) and item not in ("last", "forecast") and not is_duration(item):
        return Named(item)
    return Resolve(item) if isinstance(item, int | str) else item
