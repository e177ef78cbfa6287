"""Compute the size of a set before it is built, and refuse sets that are too large.

    {"kind": "Simplex", "n": 1000000000000}      one sentence, at once, and no memory

What a request describes in a few bytes may take all the memory there is. `entries_of` says from a
description how many entries a point would have at most, without building anything; `require_modest`
refuses what is beyond the limits here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from tidewolf.core.errors import InvalidInput
from tidewolf.experiments.choice import Choice
from tidewolf.experiments.keys import NETWORK

MOST_ENTRIES = 100_000
"""Entries of a point."""
MOST_LINKS = 200_000
"""Links of a graph, a link that leads both ways counted twice."""
MOST_SEARCHED = 200_000_000
"""Commodities times paths times links times nodes, where the shortest paths are looked for: no
search takes more steps.
"""
MOST_QUEUED = 20_000_000
"""Links times nodes there: no search keeps more."""
MOST_EXPERTS = 100
"""Items of a list of a learner's settings, each of which keeps a point, or more."""
MOST_KEPT = 20_000_000
"""Numbers of rounds that a learner looks back on: rounds times entries."""
MOST_CALLS = 10_000
"""Calls of the set's oracle in a round."""


def entries_of(choice: Choice) -> int:
    """How many entries a point of this set has, at most.

    Parameters
    ----------
    choice : Choice
        The set, as it is described.

    Returns
    -------
    int
        Exactly so many, but for flows of several commodities, and for paths, of which there may
        be fewer.

    Examples
    --------
    >>> from tidewolf.experiments.sizes import entries_of
    >>> entries_of(tw.experiments.Choice.of("Birkhoff", {"n": 10**6}))
    1000000000000
    """
    given = choice.given
    if choice.name in _ENTRIES:
        return _ENTRIES[choice.name](given)
    if "graph" in given:
        return _links(given)
    if isinstance(given.get("K"), Choice):
        return entries_of(given["K"])
    if "n" in given:
        return _whole(given["n"])
    return max((math.prod(_shape(value)) for value in given.values()), default=0)


def require_modest(choice: Choice) -> None:
    """Refuse a set that is too large to be made for a request.

    Parameters
    ----------
    choice : Choice
        The set, as it is described.

    Raises
    ------
    InvalidInput
        Where a point would have more than `MOST_ENTRIES` entries, or a graph more than
        `MOST_LINKS` links.
    """
    for part in _graphs(choice):
        links = _links(part.given)
        if links > MOST_LINKS:
            _refuse(f"a graph may have at most {MOST_LINKS:,} links here, not {links:,}")
        if part.given.get("paths") == "k-shortest":
            _require_quick(part.given, links)
    entries = entries_of(choice)
    if entries > MOST_ENTRIES:
        _refuse(f"a point may have at most {MOST_ENTRIES:,} entries here, not {_rounded(entries)}")


def require_modest_learner(given: Mapping[str, Any], entries: int) -> None:
    """Refuse settings of a learner that would take memory or time without end.

    Parameters
    ----------
    given : mapping
        The settings by key.
    entries : int
        How many entries a point has.

    Raises
    ------
    InvalidInput
        With the setting that asks for too much.
    """
    for name in ("step_scales", "experts"):
        count = len(given[name]) if isinstance(given.get(name), tuple) else 0
        if count > MOST_EXPERTS:
            _refuse(f"{name} may have at most {MOST_EXPERTS} items here, not {count:,}", name)
    if isinstance(calls := given.get("calls_per_round"), int | float) and calls > MOST_CALLS:
        name = "calls_per_round"
        _refuse(f"{name} may be at most {MOST_CALLS:,} here, not {calls:g}", name)
    for name in ("experts", "data", "window", "block"):
        said = given.get(name, ())
        for back in said if isinstance(said, tuple) else (said,):
            if isinstance(back, int) and back * max(1, entries) > MOST_KEPT:
                _refuse(
                    f"{name} may look back on at most {MOST_KEPT:,} numbers here, not on "
                    f"{_rounded(back)} rounds of {entries:,} entries",
                    name,
                )


def _refuse(sentence: str, setting: str | None = None) -> NoReturn:
    raise InvalidInput(f"{sentence}.", setting=setting)


def _require_quick(given: Mapping[str, Any], links: int) -> None:
    """Refuse a search for paths that would not end soon."""
    k, commodities = int(given.get("k", 3)), _commodities(given)
    nodes = len({end for link in given["graph"] for end in link[:2]})
    if links * nodes > MOST_QUEUED or commodities * k * links * nodes > MOST_SEARCHED:
        _refuse(
            f"the {_rounded(k)} shortest paths of {commodities:,} commodities over {links:,} links "
            f"and {nodes:,} nodes are too many to be searched for here: ask for fewer"
        )


def _graphs(choice: Choice) -> list[Choice]:
    """The sets within this one, itself among them, that are made of links."""
    found = [choice] if "graph" in choice.given else []
    for value in choice.given.values():
        for part in value if isinstance(value, tuple) else (value,):
            if isinstance(part, Choice):
                found += _graphs(part)
    return found


def _of_network(given: Mapping[str, Any]) -> int:
    each = given.get("k", 3) if given.get("paths") == "k-shortest" else _links(given)
    return _commodities(given) * int(each)


def _commodities(given: Mapping[str, Any]) -> int:
    return len(given.get("commodities") or (1,))


def _links(given: Mapping[str, Any]) -> int:
    return len(given["graph"]) * (2 if given.get("directed") is False else 1)


def _of_polytope(given: Mapping[str, Any]) -> int:
    """As many as a matrix has columns; else bounds."""
    columns = [_shape(given[key])[-1] for key in ("A_ub", "A_eq") if _shape(given.get(key))]
    return max(columns, default=(_shape(given.get("bounds")) or (0,))[0])


def _square(given: Mapping[str, Any]) -> int:
    return _whole(given["n"]) ** 2


def _of_hull(given: Mapping[str, Any]) -> int:
    return math.prod(_shape(given["points"])[1:])


def _of_transportation(given: Mapping[str, Any]) -> int:
    return math.prod(_shape(given["rows"])) * math.prod(_shape(given["columns"]))


_ENTRIES: dict[str, Callable[[Mapping[str, Any]], int]] = {
    NETWORK: _of_network,
    "Birkhoff": _square,
    "BoundedPSD": _square,
    "Ellipsoid": lambda given: (_shape(given["matrix"]) or (0,))[0],
    "Fantope": _square,
    "MultiFlow": lambda given: _commodities(given) * _links(given),
    "NuclearBall": lambda given: _whole(given["shape"]),
    "Polytope": _of_polytope,
    "Product": lambda given: sum(map(entries_of, given["parts"])),
    "SimplexProduct": lambda given: sum(given["sizes"]),
    "Spectraplex": _square,
    "Transportation": _of_transportation,
    "VertexHull": _of_hull,
}
"""Sets whose points have another size than the setting or the largest array gives."""


def _whole(size: Any) -> int:
    return math.prod(size) if isinstance(size, tuple) else int(size)


def _shape(value: Any) -> tuple[int, ...]:
    """That of a list of lists; () of a number."""
    sides = []
    while isinstance(value, tuple) and value:
        sides.append(len(value))
        value = value[0]
    return tuple(sides)


def _rounded(count: int) -> str:
    """A number as sentences say it, however large."""
    return f"{count:,}" if count < 10**15 else f"{float(count):.1e}"
