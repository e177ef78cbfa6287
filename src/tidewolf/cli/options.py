"""What several commands read alike."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from tidewolf.core.errors import InvalidInput

N = TypeVar("N", int, float)


def parse_numbers(text: str, option: str, kind: Callable[[str], N]) -> list[N]:
    """The numbers of an option, which have commas between."""
    try:
        return [kind(part) for part in text.split(",")]
    except ValueError:
        raise InvalidInput(
            f"{option} takes {'whole ' * (kind is int)}numbers with commas between, such as 1,10, "
            f"not {text!r}."
        ) from None
