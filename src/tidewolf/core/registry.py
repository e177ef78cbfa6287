"""What lower layers ask of higher ones, which are imported when they first ask.

What draws a run lies above runs, and the maximum of several constraints above streams.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, NamedTuple


class Presenter(NamedTuple):
    # a matplotlib Figure
    plot: Callable[[Any], Any]
    # what a notebook shows
    html: Callable[[Any], str]


_PRESENTERS = {"Run": "tidewolf.report.page", "Comparison": "tidewolf.report.comparison"}


def presenter_of(shown: object) -> Presenter:
    """The presenter of an object's class, or of the first class it is derived from."""
    named = (_PRESENTERS.get(kind.__name__) for kind in type(shown).__mro__)
    presenter: Presenter = import_module(next(filter(None, named))).PRESENTER
    return presenter


def largest_of(parts: Sequence[Any]) -> Any:
    return parts[0] if len(parts) == 1 else import_module("tidewolf.functions").Max(*parts)
