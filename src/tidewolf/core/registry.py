"""What lower layers ask of higher ones, without importing them.

What draws a run lies above runs, and the maximum of several constraints above streams.
`tidewolf/__init__.py`, which knows all of them, registers both here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple


class Presenter(NamedTuple):
    """What draws the objects of one class."""

    # a matplotlib Figure
    plot: Callable[[Any], Any]
    # what a notebook shows
    html: Callable[[Any], str]


_loaders: dict[str, Callable[[], Presenter]] = {}
_makers: list[Callable[[Sequence[Any]], Any]] = []


def register_presenter(name: str, load: Callable[[], Presenter]) -> None:
    """Let objects of the class of this name be shown by what `load` gives."""
    _loaders[name] = load


def presenter_of(shown: object) -> Presenter:
    """The presenter of an object's class, or of the first class it is derived from."""
    for kind in type(shown).__mro__:
        if kind.__name__ in _loaders:
            return _loaders[kind.__name__]()
    raise LookupError(f"No presenter is registered for {type(shown).__name__}.")


def register_maximum(make: Callable[[Sequence[Any]], Any]) -> None:
    """Let lists of batches become what `make` gives."""
    _makers[:] = [make]


def largest_of(parts: Sequence[Any]) -> Any:
    """The largest of these batches, round by round, each told apart; a single one is itself."""
    return parts[0] if len(parts) == 1 else _makers[0](parts)
