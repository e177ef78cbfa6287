"""Settings by name, as the thing they are for declares them: the arguments of a set, a learner, a
problem's builder.

A file may set what can be written in one: whole numbers, numbers, true or false, text, lists of
numbers. Lists become tuples, so that what was read is frozen; `made` hands them over as arrays.
"""

from __future__ import annotations

import inspect
import math
import re
import types
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Union, get_args, get_origin, get_type_hints

from tidewolf.core.arrays import LARGEST_COUNT, as_count
from tidewolf.core.errors import InvalidInput, TidewolfError
from tidewolf.experiments.toml import Document, hint


class Knob(NamedTuple):
    """One setting: what it takes, and what it is when nobody says."""

    takes: Any
    """a type"""
    default: Any
    """`inspect.Parameter.empty` where somebody must say"""

    @property
    def required(self) -> bool:
        return self.default is inspect.Parameter.empty

    @property
    def words(self) -> str:
        """What it takes, in words."""
        kinds = [
            _WORDS.get(kind, "a list of numbers")
            for kind in _kinds(self.takes)
            if kind is not type(None)
        ]
        return " or ".join(dict.fromkeys(kinds))

    @property
    def plain(self) -> bool:
        """Whether a file can set it."""
        return all(
            kind in (*_WORDS, type(None), Any)
            or (get_origin(kind) is tuple and get_args(kind)[0] in (int, float))
            for kind in _kinds(self.takes)
        )

    def read(self, value: Any) -> Any:
        """The value in its plain form; None where it is of another kind."""
        number = _as_float(value)
        for kind in _kinds(self.takes):
            if kind is float and number is not None:
                return number
            if kind in (int, bool, str) and type(value) is kind:
                return value
            if kind not in _WORDS and _numbers(value):
                return frozen(value)
        return number if self.takes is Any else None


_WORDS = {int: "a whole number", float: "a number", bool: "true or false", str: "text"}


def knobs(make: Callable[..., Any], *without: str) -> dict[str, Knob]:
    """The settings of what `make` makes, but for some."""
    hints = get_type_hints(make)
    return {
        name: Knob(hints[name], parameter.default)
        for name, parameter in inspect.signature(make).parameters.items()
        if name not in without and name in hints
    }


def read(
    document: Document,
    path: tuple[str | int, ...],
    table: Mapping[str, Any],
    known: Mapping[str, Knob],
    what: str,
) -> dict[str, Any]:
    """The settings of a table, each of a kind its knob takes; keys that nobody knows are
    refused.
    """
    settings = {}
    for key, value in table.items():
        if key not in known:
            accepted = f"it takes {', '.join(known)}" if known else "it takes none"
            raise document.refused(
                f"{what} has no setting called {key!r}; {accepted}.{hint(key, known)}", *path, key
            )
        settings[key] = known[key].read(value)
        if settings[key] is None:
            raise document.refused(f"{key} is {known[key].words}, not {shown(value)}.", *path, key)
        if type(value) is int:
            try:
                as_count(value, key, least=-LARGEST_COUNT)
            except InvalidInput as error:
                raise document.refused(str(error), *path, key) from None
    for key, knob in known.items():
        if knob.required and key not in settings:
            raise document.refused(f"{what} needs {key}, {knob.words}.", *path)
    return settings


def made(make: Callable[..., Any], *first: Any, **settings: Any) -> Any:
    """What `make` makes, with lists as arrays where it takes any."""
    import numpy as np

    known = knobs(make)
    return make(
        *first,
        **{
            name: (
                np.array(value) if isinstance(value, tuple) and known[name].takes is Any else value
            )
            for name, value in settings.items()
        },
    )


def placed(
    document: Document | None,
    error: TidewolfError,
    path: tuple[str | int, ...],
    settings: Mapping[str, Any],
) -> TidewolfError:
    """The error again, with the place of the setting it speaks of in front."""
    if document is None:
        return error
    said = str(error)
    named = [
        name
        for name, value in settings.items()
        if re.search(rf"\b{re.escape(name)}\b", said, re.IGNORECASE)
        or (isinstance(value, str) and repr(value) in said)
    ]
    place = document.place(*path, *named[-1:])
    try:
        return type(error)(f"{place}: {error}")
    except TypeError:  # an error with more to it than a sentence
        return document.refused(str(error), *path)


def shown(value: Any) -> str:
    """A value of a file, as the file would say it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return (
        "a table"
        if isinstance(value, Mapping)
        else "a list"
        if isinstance(value, list)
        else repr(value)
    )


def _kinds(takes: Any) -> tuple[Any, ...]:
    return get_args(takes) if get_origin(takes) in (Union, types.UnionType) else (takes,)


def _numbers(value: Any) -> bool:
    """Whether it is a list of numbers, or of such lists of one length."""
    if not isinstance(value, list) or not value:
        return False
    lengths = {len(item) if isinstance(item, list) else 0 for item in value}
    return len(lengths) == 1 and all(type(item) in (int, float) or _numbers(item) for item in value)


def _as_float(value: Any) -> float | None:
    """A number as a float; None where it is none, or too large to be one."""
    try:
        return float(value) if type(value) in (int, float) else None
    except OverflowError:
        return None


def frozen(value: Any) -> Any:
    """Lists as tuples, all the way down."""
    return tuple(map(frozen, value)) if isinstance(value, list | tuple) else value


def plain(value: Any) -> bool:
    """Whether a file can say it."""
    if isinstance(value, tuple):
        return all(isinstance(item, tuple | int | float) and plain(item) for item in value)
    return isinstance(value, bool | int | str) or (
        isinstance(value, float) and math.isfinite(value)
    )
