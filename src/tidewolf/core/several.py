"""Several constraints a round as one, their largest, without knowing the class that does it.

Maxima lie above streams. `tidewolf/__init__.py`, which knows both, registers what makes one; that
is called when a list of constraints is given.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

_makers: list[Callable[[Sequence[Any]], Any]] = []


def register_maximum(make: Callable[[Sequence[Any]], Any]) -> None:
    """Let lists of batches become what `make` gives."""
    _makers[:] = [make]


def largest_of(parts: Sequence[Any]) -> Any:
    """The largest of these batches, round by round, each told apart; a single one is itself."""
    return parts[0] if len(parts) == 1 else _makers[0](parts)
