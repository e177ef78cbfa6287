"""Names of things in order: all different, and the nearest to one that nobody goes by."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches
from functools import lru_cache
from itertools import islice

ARROW = re.compile(r"\s*(?:->|>|\u2192)\s*")
"""What stands between the ends of a link, in any spelling."""
MOST_SEARCHED = 5000
"""Names that are held against one that is unknown; beyond them likeness takes too long."""
RENAMED = {"per_limit": "per_constraint", "members": "experts"}
"""Keys of files and ends of addresses before 0.3, and their names now."""


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
    """Names as a sentence shows them: the first few, and how many more there are."""
    names = tuple(names)
    if len(names) > most:
        return f"{', '.join(names[:most])} and {len(names) - most} more"
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def nearest_names(name: str, known: Iterable[str]) -> str:
    """A sentence's end with the names most like this one; empty where there are no names."""
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
    """A name with its arrows all alike; remembered, for rows that arrive have the same ones."""
    return ARROW.sub(">", name.strip())
