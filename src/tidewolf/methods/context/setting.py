"""A learner's setting `context`, which files call `season`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from tidewolf.core.arguments import shown
from tidewolf.core.errors import WrongType
from tidewolf.core.settings import Check
from tidewolf.methods.context.base import Context
from tidewolf.methods.context.season import Season


@dataclass(frozen=True)
class ContextSetting(Check):
    """A context; a file says the period of a season."""

    words: ClassVar[str] = "a number of rounds, or a duration such as 1d"
    key: ClassVar[str] = "season"

    def __call__(self, value: Any, what: str) -> Context:
        if not isinstance(value, Context):
            raise WrongType(
                f"{what} must be a context such as context.Season(96), not {shown(value)}."
            )
        return value

    def read(self, value: Any) -> int | str | None:
        return value if type(value) in (int, str) else None

    def build(self, value: Any) -> Context:
        return value if isinstance(value, Context) else Season(value)
