"""How runs and comparisons show themselves without knowing who draws them.

What draws lies above what is drawn. `tidewolf/__init__.py`, which knows both, registers for each
class what loads its presenter; that is called when something is shown.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple


class Presenter(NamedTuple):
    """What draws the objects of one class."""

    plot: Callable[[Any], Any]
    """a matplotlib Figure"""
    html: Callable[[Any], str]
    """what a notebook shows"""


_loaders: dict[str, Callable[[], Presenter]] = {}


def register_presenter(name: str, load: Callable[[], Presenter]) -> None:
    """Let objects of the class of this name be shown by what `load` gives."""
    _loaders[name] = load


def presenter_of(shown: object) -> Presenter:
    """The presenter of an object's class, or of the first class it is derived from."""
    for kind in type(shown).__mro__:
        if kind.__name__ in _loaders:
            return _loaders[kind.__name__]()
    raise LookupError(f"No presenter is registered for {type(shown).__name__}.")
