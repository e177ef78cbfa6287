"""The setting `experts` of a learner: advisers, names of points, and a context."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from tidewolf.core.arguments import as_items, shown
from tidewolf.core.errors import InvalidInput, WrongType
from tidewolf.core.settings import Check
from tidewolf.experts.base import Adviser
from tidewolf.experts.context import Context
from tidewolf.experts.named import Named
from tidewolf.experts.resolve import Resolve
from tidewolf.experts.season import is_duration


@dataclass(frozen=True)
class ExpertsSetting(Check):
    """Advisers and at most one context; a string names points that are given with the round.

    In a file, "last", "forecast", a duration or a number of rounds is the data of a `Resolve`; any
    other string is a name.
    """

    words: ClassVar[str] = 'a list such as ["last", "1d"]'

    def __call__(self, value: Any, what: str) -> tuple[Adviser | Context, ...]:
        if isinstance(value, Adviser | Context):
            value = (value,)
        given = as_items(value, what, "[tw.experts.Resolve()]")
        experts = [Named(one) if isinstance(one, str) else one for one in given]
        for one in experts:
            if not isinstance(one, Adviser | Context):
                raise WrongType(
                    f"{what} must be advisers such as experts.Resolve(), names of points that are "
                    f"given with the round, or a context such as experts.Season(96), not "
                    f"{shown(one)}."
                )
        contexts = [one for one in experts if isinstance(one, Context)]
        if len(contexts) > 1:
            raise InvalidInput(
                f"{what} may hold one context, not {len(contexts)}: {contexts[0]} and "
                f"{contexts[1]}."
            )
        return tuple(experts)

    def read(self, value: Any) -> tuple[int | str, ...] | None:
        plain = isinstance(value, list) and all(type(item) in (int, str) for item in value)
        return tuple(value) if plain else None

    def build(self, value: Any) -> tuple[Adviser, ...]:
        return tuple(_adviser(item) for item in value)


def _adviser(item: Any) -> Any:
    """The adviser that an item of a file stands for."""
    if isinstance(item, str) and item not in ("last", "forecast") and not is_duration(item):
        return Named(item)
    return Resolve(item) if isinstance(item, int | str) else item
