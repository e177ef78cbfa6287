"""What several commands read and print alike."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TypeVar

from tidewolf.core.errors import InvalidInput

N = TypeVar("N", int, float)


def numbers(text: str, option: str, kind: Callable[[str], N]) -> list[N]:
    """The numbers of an option, which have commas between."""
    try:
        return [kind(part) for part in text.split(",")]
    except ValueError:
        raise InvalidInput(f"{option} takes {'whole ' * (kind is int)}numbers with commas between, such as 1,10, not {text!r}.") from None


def as_json(value: object) -> str:
    """Plain data as text for other programs."""
    return json.dumps(value, indent=2, allow_nan=False) + "\n"
