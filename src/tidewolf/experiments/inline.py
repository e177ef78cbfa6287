"""Read graphs that a request holds inline, as lists of links.

    ["SEA", "DEN"]                      ["SEA", "DEN", 1640.0, 10.0]: its length and its capacity
    {"tail": "SEA", "head": "DEN", "capacity": 10.0, "length": 1640.0, "name": "SEA-DEN-1"}

If a setting is the name of a column of a file's edge list (`lengths`, or `upper` of a flow), it is
the name of a key of the links here. A request names no files.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import Field, ValidationError, create_model

from tidewolf.core.settings import Numbers
from tidewolf.experiments.keys import Keys
from tidewolf.experiments.sizes import MOST_LINKS
from tidewolf.experiments.strict import Strict, refusal, refused
from tidewolf.networks.from_files import CAPACITY, LENGTH

NO_FILES = "a request names no files: give the rows themselves"
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
        lengths = [link.get(named) for link in links]
        if "lengths" in table and lengths.count(None) == len(links):
            raise refused(f"no link has a length called {named!r}.", "lengths")
        if 0 < lengths.count(None) < len(links):
            raise refused("this link has no length, and others have.", "graph", lengths.index(None))
        is_bare = all(len(link) == 2 for link in links)
        plain["graph"] = [
            [link["tail"], link["head"]]
            if is_bare
            else [
                *(link["tail"], link["head"], link.get(named, 1.0)),
                *(link.get(CAPACITY, math.inf), link.get("name", "")),
            ]
            for link in links
        ]
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
    if not isinstance(given, list) or not given:
        raise refused('a graph should be a list of links such as ["SEA", "DEN"].', "graph")
    if len(given) > MOST_LINKS:
        raise refused(f"a graph has at most {MOST_LINKS:,} links, not {len(given):,}.", "graph")
    fields: dict[str, Any] = {"tail": (Node, ...), "head": (Node, ...)}
    fields |= dict.fromkeys(numbers, (float | None, None))
    fields |= dict.fromkeys(texts, (str | None, None))
    model = create_model("Link", __base__=Strict, **fields)
    most = len(fields) if texts else 2
    found = []
    for i, row in enumerate(given):
        if isinstance(row, list) and len(row) <= most:
            row = dict(zip(fields, row, strict=False))
        try:
            link = model.model_validate(row).given
        except ValidationError as error:
            raise refused(refusal(error, row, model)[1], "graph", i) from None
        if link["tail"] == link["head"]:
            raise refused("the link leads to where it begins: leave it out.", "graph", i)
        found.append(link)
    return found


def _with_commodities(table: dict[str, Any]) -> dict[str, Any]:
    """With commodities as [source, target, demand]; what is no list is left to be refused."""
    given = table.get("commodities")
    if isinstance(given, str):
        raise refused(f"{NO_FILES}.", "commodities")
    if isinstance(given, list):
        table["commodities"] = [_commodity(row, i) for i, row in enumerate(given)]
    return table


def _commodity(row: Any, place: int) -> Any:
    if not isinstance(row, Mapping):
        return row
    try:
        return list(_Commodity.model_validate(row).given.values())
    except ValidationError as error:
        raise refused(refusal(error, row, _Commodity)[1], "commodities", place) from None


def _bounds(given: Sequence[Any]) -> list[Any]:
    """Pairs of bounds, infinite if there is none."""
    if len(given) == 2 and not any(isinstance(each, list) for each in given):
        lower, upper = given
        return [-math.inf if lower is None else lower, math.inf if upper is None else upper]
    return [_bounds(pair) if isinstance(pair, list) and len(pair) == 2 else pair for pair in given]
