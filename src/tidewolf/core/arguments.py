"""Arguments that are no numbers: switches, names, paths, lists, things to call; each checked where
it comes in.
"""

import os
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from difflib import get_close_matches
from functools import lru_cache
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from tidewolf.core.errors import InvalidInput, MissingExtra, WrongType
from tidewolf.core.types import Int64s

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")


def as_kind(
    x: object, kind: Callable[..., T], expected: str, error: type[InvalidInput] = WrongType
) -> T:
    """`x` if it is of this kind; a sentence that begins with what is expected otherwise."""
    if isinstance(x, kind):  # type: ignore[arg-type]
        return x  # type: ignore[return-value]
    raise error(f"{expected}, not {shown(x)}.")


def as_flag(x: object, what: str) -> bool:
    due = f"{what} must be True or False"
    return bool(as_kind(x, bool | np.bool_, due))  # type: ignore[arg-type]


def as_text(x: object, what: str) -> str:
    return str(as_kind(x, str, f"{what} must be text"))


def as_path(x: object, what: str) -> Path:
    due = f"{what} must be given as text or a pathlib.Path"
    name = os.fspath(as_kind(x, str | os.PathLike, due))  # type: ignore[arg-type]
    if not isinstance(name, str) or not name or "\0" in name:
        raise InvalidInput(f"{what} is no path that a file or folder can have: {shown(name)}.")
    return Path(name)


def as_items(x: object, what: str, such: str) -> tuple[Any, ...]:
    # an array without axes says that it can be gone through
    if isinstance(x, Iterable) and not isinstance(x, str | bytes) and getattr(x, "ndim", None) != 0:
        return tuple(x)
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


# --- Names ----------------------------------------------------------------------------------------
#
# Match names that are given with those that are expected, make them all different, find the
# nearest to one that is unknown.


# What stands between the ends of a link, in any spelling.
ARROW = re.compile(r"\s*(?:->|>|\u2192)\s*")
# Names that are held against one that is unknown; beyond them likeness takes too long.
MOST_SEARCHED = 5000
# Keys of files and ends of addresses before 0.3, and their names now.
RENAMED = {
    "per_limit": "per_constraint",
    "members": "experts",
    "advice": "experts",
    "context": "experts",
}


def all_different(names: Iterable[str]) -> tuple[str, ...]:
    """The same names, the second of several that are alike with (2) behind it, and so on."""
    found = dict[str, None]()
    for plain in names:
        name, copies = plain, 1
        while name in found:
            copies += 1
            name = f"{plain} ({copies})"
        found[name] = None
    return tuple(found)


def listed(names: Iterable[str], most: int = 3) -> str:
    names = tuple(names)
    if len(names) > most:
        return f"{', '.join(names[:most])} and {len(names) - most} more"
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def nearest_names(name: str, known: Iterable[str]) -> str:
    """A sentence's end with the names most like this one; empty if there are no names."""
    known = tuple(known)[:MOST_SEARCHED]
    near = get_close_matches(name, known, n=3, cutoff=0.5)
    return f"the nearest are {listed(map(repr, near))}" if near else ""


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """ " Did you mean ...?" if something known looks like `word`, else nothing; the new name if
    `word` is an old one.
    """
    lower = {each.lower(): each for each in islice(known, MOST_SEARCHED)}
    if RENAMED.get(word) in lower:
        return f" It is called {RENAMED[word]} since 0.3."
    near = get_close_matches(word.lower(), lower, n=1, cutoff=0.5)
    return f" Did you mean {lower[near[0]]}?" if near else ""


@lru_cache(1 << 14)
def plain_name(name: str) -> str:
    return ARROW.sub(">", name.strip())


def match_names(
    given: Iterable[str | None],
    expected: Sequence[str | Sequence[str]],
    where: str,
    kind: str = "entry",
    needed: Collection[int] | None = None,
) -> Int64s:
    """The place among `given` of each expected name, or of the first of its spellings that is
    given; -1 if it is absent and its own place is not among those `needed` (None: all).

    Names are alike if they differ in the spelling of arrows only; a given name of None is passed
    over. InvalidInput, whose text begins with `where`, refuses a name that is given twice, one
    that is not expected (with the nearest that is), and one that is absent.
    """
    calls = [(each,) if isinstance(each, str) else each for each in expected]
    plain = [tuple(map(plain_name, each)) for each in calls]
    known, found = {name for each in plain for name in each}, dict[str, int]()
    for place, name in enumerate(given):
        if name is None:
            continue
        key = plain_name(name)
        if key not in known:
            names = [each[0] for each in calls]
            raise InvalidInput(
                f"{where}: expected the {kind} names {listed(map(repr, names)) or 'of none'}, "
                f"received {name!r}.{did_you_mean(name, names)}"
            )
        if found.setdefault(key, place) != place:
            raise InvalidInput(f"{where}: the {kind} {name!r} is given twice; give it once.")
    places = [next((found[key] for key in each if key in found), -1) for each in plain]
    wanted = range(len(places)) if needed is None else needed
    absent = [repr(calls[i][0]) for i in wanted if places[i] < 0]
    if absent:
        raise InvalidInput(f"{where}: the {kind} {listed(absent)} is missing; give a number.")
    return np.array(places, dtype=np.int64)


def csv_cell(cell: Any) -> Any:
    """A cell of a CSV file, with ' before a text that a spreadsheet would compute.

    >>> csv_cell("=1+1"), csv_cell("SEA > DEN"), csv_cell("-1"), csv_cell(-1.0)
    ("'=1+1", 'SEA > DEN', '-1', -1.0)
    """
    if not isinstance(cell, str) or not cell.startswith(("=", "+", "-", "@", "\t", "\r")):
        return cell
    try:
        float(cell)
    except ValueError:
        return f"'{cell}"
    return cell
