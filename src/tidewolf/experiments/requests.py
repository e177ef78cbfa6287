"""What requests say otherwise than files: graphs inline, and nothing that is too large.

    ["SEA", "DEN"]                      ["SEA", "DEN", 1640.0, 10.0]: its length and its capacity
    {"tail": "SEA", "head": "DEN", "capacity": 10.0, "length": 1640.0, "name": "SEA-DEN-1"}

If a setting is the name of a column of a file's edge list (`lengths`, or `upper` of a flow), it is
the name of a key of the links here. A request names no files.

A few bytes may describe more than fits in memory. `entries_of` computes from a description how many
entries a point would have at most, without building anything; `require_modest` and
`require_modest_learner` refuse what is beyond the limits here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any

from pydantic import Field, ValidationError, create_model

from tidewolf.core.errors import InvalidInput
from tidewolf.core.settings import Numbers
from tidewolf.experiments.keys import NETWORK, Choice, Keys
from tidewolf.experiments.strict import Strict, refusal, refused
from tidewolf.networks.from_files import CAPACITY, LENGTH

NO_FILES = "a request names no files: give the rows themselves"
MOST_ENTRIES = 100_000
"""Entries of a point."""
MOST_LINKS = 200_000
"""Links of a graph, a link that leads both ways counted twice."""
MOST_SEARCHED = 200_000_000
"""Commodities times paths times links times nodes, if the shortest paths are looked for: no search
takes more steps.
"""
MOST_QUEUED = 20_000_000
"""Links times nodes there: no search keeps more."""
MOST_EXPERTS = 100
"""Items of a list of a learner's settings, each of which keeps a point, or more."""
MOST_KEPT = 20_000_000
"""Numbers of rounds that a learner looks back on: rounds times entries."""
MOST_CALLS = 10_000
"""Calls of the set's oracle per round."""
Node = Annotated[str, Field(min_length=1)] | int


class _Commodity(Strict):
    source: Any
    target: Any
    demand: Any = None


def network_rows(table: Mapping[str, Any]) -> dict[str, Any]:
    """The table of a network with links as [tail, head, length, capacity, name] and commodities as
    [source, target, demand]; `lengths` is among them then.
    """
    plain = dict(table)
    named = plain.pop("lengths", LENGTH)
    if not isinstance(named, str):
        raise refused("lengths should be the key of links that has their lengths.", "lengths")
    if "graph" in plain:
        links = _links(plain["graph"], (named, CAPACITY), ("name",))
        absent = [named not in link for link in links]
        if "lengths" in table and all(absent):
            raise refused(f"no link has a length called {named!r}.", "lengths")
        if any(absent) and not all(absent):
            raise refused("this link has no length, and others have.", "graph", absent.index(True))
        plain["graph"] = [[link["tail"], link["head"]] for link in links]
        if any(len(link) > 2 for link in links):
            for row, link in zip(plain["graph"], links, strict=True):
                row += [link.get(named, 1.0), link.get(CAPACITY, math.inf), link.get("name", "")]
    return _with_commodities(plain)


def set_rows(table: Mapping[str, Any], known: Keys) -> dict[str, Any]:
    """The table of another set: links as [tail, head], their numbers as lists in the order of
    links, commodities as lists, and bounds that are null infinite.
    """
    plain = dict(table)
    if "graph" in plain:
        columns = {
            key: value
            for key, value in plain.items()
            if isinstance(value, str) and key in known and isinstance(known[key].check, Numbers)
        }
        links = _links(plain["graph"], tuple(columns.values()))
        plain["graph"] = [[link["tail"], link["head"]] for link in links]
        for key, name in columns.items():
            for i, link in enumerate(links):
                if name not in link:
                    raise refused(f"the link has no number called {name!r} for {key}.", "graph", i)
            both = 2 if plain.get("directed") is False else 1
            plain[key] = [link[name] for link in links] * both
    if isinstance(plain.get("bounds"), list):
        plain["bounds"] = _bounds(plain["bounds"])
    return _with_commodities(plain)


def _links(given: Any, numbers: Sequence[str], texts: Sequence[str] = ()) -> list[dict[str, Any]]:
    """Links by key; those that are lists have the numbers and texts of networks in this order."""
    if isinstance(given, str):
        raise refused(f"{NO_FILES}.", "graph")
    if not isinstance(given, list) or not 0 < len(given) <= MOST_LINKS:
        such = f'a graph should be a list of at most {MOST_LINKS:,} links such as ["SEA", "DEN"].'
        raise refused(such, "graph")
    fields: dict[str, Any] = {"tail": (Node, ...), "head": (Node, ...)}
    fields |= dict.fromkeys(numbers, (float | None, None))
    fields |= dict.fromkeys(texts, (str | None, None))
    model = create_model("Link", __base__=Strict, **fields)
    most = len(fields) if texts else 2
    found = []
    for i, row in enumerate(given):
        if isinstance(row, list) and len(row) <= most:
            row = dict(zip(fields, row, strict=False))
        found.append(_row(model, row, "graph", i))
        if found[i]["tail"] == found[i]["head"]:
            raise refused("the link leads to where it begins: leave it out.", "graph", i)
    return found


def _with_commodities(table: dict[str, Any]) -> dict[str, Any]:
    """With commodities as [source, target, demand]; what is no list is left to be refused."""
    given = table.get("commodities")
    if isinstance(given, str):
        raise refused(f"{NO_FILES}.", "commodities")
    if isinstance(given, list):
        table["commodities"] = [
            [*_row(_Commodity, row, "commodities", i).values()] if isinstance(row, Mapping) else row
            for i, row in enumerate(given)
        ]
    return table


def _row(model: type[Strict], row: Any, key: str, number: int) -> dict[str, Any]:
    try:
        return model.model_validate(row).given
    except ValidationError as error:
        raise refused(refusal(error, row, model)[1], key, number) from None


def _bounds(given: Sequence[Any]) -> list[Any]:
    """Pairs of bounds, infinite if there is none."""
    if len(given) == 2 and not any(isinstance(each, list) for each in given):
        lower, upper = given
        return [-math.inf if lower is None else lower, math.inf if upper is None else upper]
    return [_bounds(pair) if isinstance(pair, list) and len(pair) == 2 else pair for pair in given]


# --- sizes ----------------------------------------------------------------------------------------


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
    >>> from tidewolf.experiments.requests import entries_of
    >>> entries_of(tw.experiments.Choice.of("Birkhoff", {"n": 10**6}))
    1000000000000
    """
    given = choice.given
    if choice.name in _ENTRIES:
        return _ENTRIES[choice.name](given)
    if "graph" in given:
        return _ways(given)
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
        If a point would have more than `MOST_ENTRIES` entries, or a graph more than `MOST_LINKS`
        links.
    """
    waiting = [choice]
    while waiting:
        given = waiting.pop().given
        for value in given.values():
            parts = value if isinstance(value, tuple) else (value,)
            waiting += [part for part in parts if isinstance(part, Choice)]
        if "graph" not in given:
            continue
        _require_most("the links of a graph", _ways(given), MOST_LINKS)
        if given.get("paths") == "k-shortest":
            nodes = len({end for link in given["graph"] for end in link[:2]})
            kept = _ways(given) * nodes
            steps = _commodities(given) * int(given.get("k", 3)) * kept
            _require_most("links times nodes of a search for paths", kept, MOST_QUEUED)
            _require_most("the steps of a search for paths", steps, MOST_SEARCHED)
    _require_most("the entries of a point", entries_of(choice), MOST_ENTRIES)


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
        if isinstance(given.get(name), tuple):
            _require_most(f"the items of {name}", len(given[name]), MOST_EXPERTS, name)
    if isinstance(calls := given.get("calls_per_round"), int | float):
        _require_most("calls_per_round", calls, MOST_CALLS, "calls_per_round")
    elif "eps" in given:
        raise InvalidInput(
            "With eps, projections take as many oracle calls as they need; here calls_per_round "
            "must bound them: give it, too.",
            setting="calls_per_round",
        )
    for name in ("experts", "data", "window", "block"):
        looks_back = given.get(name, ())
        for back in looks_back if isinstance(looks_back, tuple) else (looks_back,):
            if isinstance(back, int):
                what = f"the rounds of {name} times the entries of a point"
                _require_most(what, back * max(1, entries), MOST_KEPT, name)


def _require_most(what: str, count: float, most: int, setting: str | None = None) -> None:
    if count > most:
        received = f"{count:,}" if count < 10**15 else f"{float(count):.1e}"
        raise InvalidInput(f"{what} may be at most {most:,} here, not {received}.", setting=setting)


def _ways(given: Mapping[str, Any]) -> int:
    """How many links there are, each way counted."""
    return len(given["graph"]) * (2 if given.get("directed") is False else 1)


def _commodities(given: Mapping[str, Any]) -> int:
    return len(given.get("commodities") or (1,))


def _of_network(given: Mapping[str, Any]) -> int:
    each = given.get("k", 3) if given.get("paths") == "k-shortest" else _ways(given)
    return _commodities(given) * int(each)


def _of_polytope(given: Mapping[str, Any]) -> int:
    """As many as a matrix has columns; else bounds."""
    columns = [_shape(given[key])[-1] for key in ("A_ub", "A_eq") if _shape(given.get(key))]
    return max(columns, default=(_shape(given.get("bounds")) or (0,))[0])


def _square(given: Mapping[str, Any]) -> int:
    return _whole(given["n"]) ** 2


_ENTRIES: dict[str, Callable[[Mapping[str, Any]], int]] = {
    NETWORK: _of_network,
    **dict.fromkeys(("Birkhoff", "BoundedPSD", "Fantope", "Spectraplex"), _square),
    "Ellipsoid": lambda given: (_shape(given["matrix"]) or (0,))[0],
    "MultiFlow": lambda given: _commodities(given) * _ways(given),
    "NuclearBall": lambda given: _whole(given["shape"]),
    "Polytope": _of_polytope,
    "Product": lambda given: sum(map(entries_of, given["parts"])),
    "SimplexProduct": lambda given: sum(given["sizes"]),
    "Transportation": lambda given: math.prod(
        math.prod(_shape(given[side])) for side in ("rows", "columns")
    ),
    "VertexHull": lambda given: math.prod(_shape(given["points"])[1:]),
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
