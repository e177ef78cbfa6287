"""Arguments that are no numbers: switches, names, paths, lists, things to call; each checked where
it comes in.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from tidewolf.core.errors import InvalidInput, MissingExtra, WrongType

F = TypeVar("F", bound=Callable[..., Any])


def as_flag(x: object, what: str) -> bool:
    """`x` as a switch: True or False, and nothing that merely counts as one."""
    if isinstance(x, bool | np.bool_):
        return bool(x)
    raise WrongType(f"{what} must be True or False, not {shown(x)}.")


def as_text(x: object, what: str) -> str:
    if isinstance(x, str):
        return str(x)
    raise WrongType(f"{what} must be text, not {shown(x)}.")


def as_path(x: object, what: str) -> Path:
    if not isinstance(x, str | os.PathLike):
        raise WrongType(f"{what} must be given as text or a pathlib.Path, not {shown(x)}.")
    name = os.fspath(x)
    if not isinstance(name, str) or not name or "\0" in name:
        raise InvalidInput(f"{what} is no path that a file or folder can have: {shown(name)}.")
    return Path(name)


def as_items(x: object, what: str, such: str) -> tuple[Any, ...]:
    try:
        if isinstance(x, Iterable) and not isinstance(x, str | bytes):
            return tuple(x)
    except TypeError:  # an array without axes says that it can be gone through
        pass
    raise WrongType(f"{what} must be a list such as {such}, not {shown(x)}.")


def as_callback(x: F | None, what: str) -> F | None:
    if x is None or (callable(x) and not isinstance(x, type)):
        return x
    raise WrongType(f"{what} must be a function, or None, not {shown(x)}.")


def is_text(x: object, *known: str) -> bool:
    """Whether `x` is one of these texts; an array, which compares entry by entry, is none."""
    return isinstance(x, str) and x in known


def shown(x: object) -> str:
    try:
        text = " ".join(repr(x).split())
    except Exception:  # a repr that is itself broken
        text = f"a {type(x).__name__}"
    return text if len(text) <= 100 else f"a {type(x).__name__} ({text[:80]}...)"


def import_extra(module: str, what: str, extra: str) -> Any:
    try:
        return import_module(module)
    except ImportError:
        library = "scikit-learn" if extra == "sklearn" else module.partition(".")[0]
        raise MissingExtra(f'{what} needs {library}: pip install "tidewolf[{extra}]".') from None
