"""Links and commodities as a request has them, as the lists that a file has.

    ["SEA", "DEN"]                      ["SEA", "DEN", 1640.0, 10.0]: its length and its capacity
    {"tail": "SEA", "head": "DEN", "capacity": 10.0, "length": 1640.0, "name": "SEA-DEN-1"}

Where a setting is the name of a column of a file's edge list (`lengths`, or `upper` of a flow), it
is the name of a key of the links here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from tidewolf.core.arguments import shown
from tidewolf.core.names import did_you_mean
from tidewolf.core.settings import Number
from tidewolf.experiments.sizes import MOST_LINKS
from tidewolf.experiments.toml import Document
from tidewolf.networks.from_files import CAPACITY, LENGTH

KeyPath: TypeAlias = tuple[str | int, ...]
_SUCH = '["SEA", "DEN"] or {"tail": "SEA", "head": "DEN"}'


class _Link(NamedTuple):
    """A link, and what it says beside its ends, by key."""

    tail: str | int
    head: str | int
    more: Mapping[str, Any]


def network_rows(table: Mapping[str, Any], body: Document, path: KeyPath) -> dict[str, Any]:
    """The table of a network with links as [tail, head, length, capacity, name] and commodities as
    [source, target, demand]; `lengths` is among them then.
    """
    plain = dict(table)
    lengths = plain.pop("lengths", None)
    if lengths is not None and not isinstance(lengths, str):
        raise body.refused(
            "lengths is the key of links that has their lengths, text, not "
            f"{shown(lengths)}; without it that is {LENGTH!r}.",
            *path,
            "lengths",
        )
    if "graph" in plain:
        at = (*path, "graph")
        named = lengths or LENGTH
        links = _links(plain["graph"], body, at, (), (named, CAPACITY, "name"))
        if lengths is not None and not any(named in link.more for link in links):
            raise body.refused(f"no link has a length called {lengths!r}.", *path, "lengths")
        plain["graph"] = _link_rows(links, named, body, at)
    if "commodities" in plain:
        plain["commodities"] = commodity_rows(plain["commodities"], body, (*path, "commodities"))
    return plain


def links_of(
    given: Any, body: Document, path: KeyPath, columns: Mapping[str, str]
) -> tuple[list[Any], dict[str, list[float]]]:
    """Links as [tail, head], and for each of these settings the numbers that links have under its
    name.
    """
    links = _links(given, body, path, tuple(columns.values()))
    found = {}
    for setting, name in columns.items():
        for i, link in enumerate(links):
            if name not in link.more:
                raise body.refused(
                    f"the link has no number called {name!r}, which is {setting} of the set.",
                    *path,
                    i,
                )
        found[setting] = [float(link.more[name]) for link in links]
    return [[link.tail, link.head] for link in links], found


def commodity_rows(given: Any, body: Document, path: KeyPath) -> Any:
    """Commodities as [source, target, demand]; what is no list is left to be refused."""
    _require_no_file(given, body, path)
    if not isinstance(given, list):
        return given
    found = []
    for i, row in enumerate(given):
        if not isinstance(row, Mapping):
            found.append(row)
            continue
        _require_known(row, ("source", "target", "demand"), "a commodity", body, (*path, i))
        for end in ("source", "target"):
            if end not in row:
                raise body.refused(
                    f"a commodity has a source and a target; {end} is missing.", *path, i
                )
        demand = [] if row.get("demand") is None else [row["demand"]]
        found.append([row["source"], row["target"], *demand])
    return found


def _link_rows(
    links: Sequence[_Link], length: str, body: Document, path: KeyPath
) -> list[list[Any]]:
    """Links with what they say behind their ends, as far as any of them says it."""
    has_length = [length in link.more for link in links]
    if any(has_length) and not all(has_length):
        raise body.refused(
            "every link has a length, or none has; this one has none.",
            *path,
            has_length.index(False),
        )
    if not any(link.more for link in links):
        return [[link.tail, link.head] for link in links]
    return [
        [
            link.tail,
            link.head,
            float(link.more.get(length, 1.0)),
            float(link.more.get(CAPACITY, math.inf)),
            link.more.get("name", ""),
        ]
        for link in links
    ]


def _links(
    given: Any, body: Document, path: KeyPath, by_key: Sequence[str], behind: Sequence[str] = ()
) -> list[_Link]:
    """Links with numbers that they have by key, or, where they are lists, behind their ends."""
    _require_no_file(given, body, path)
    if not isinstance(given, list) or not given:
        raise body.refused(f"a graph is a list of links such as {_SUCH}.", *path)
    if len(given) > MOST_LINKS:
        raise body.refused(
            f"there are {len(given):,} links; here there may be at most {MOST_LINKS:,}.", *path
        )
    return [_link(row, body, (*path, i), by_key, behind) for i, row in enumerate(given)]


def _link(
    row: Any, body: Document, path: KeyPath, by_key: Sequence[str], behind: Sequence[str]
) -> _Link:
    if isinstance(row, Mapping):
        takes = ("tail", "head", *behind, *by_key)
        _require_known(row, takes, "a link", body, path)
        tail, head = row.get("tail"), row.get("head")
        more = {name: row[name] for name in takes[2:] if row.get(name) is not None}
    elif isinstance(row, list) and 2 <= len(row) <= 2 + len(behind):
        tail, head = row[0], row[1]
        said = zip(behind, row[2:], strict=False)
        more = {name: value for name, value in said if value is not None}
    else:
        raise body.refused(f"a link is {_SUCH}, not {shown(row)}.", *path)
    for end in (tail, head):
        if type(end) not in (str, int) or end == "":
            raise body.refused(
                f"the ends of a link are texts or whole numbers, not {shown(end)}.", *path
            )
    if tail == head:
        raise body.refused(
            f"the link leads from {shown(tail)} to itself, where nothing goes; leave it out.", *path
        )
    for name, value in more.items():
        _require_kind(name, value, body, path)
    return _Link(tail, head, more)  # type: ignore[arg-type]  # their types were looked at


def _require_kind(name: str, value: Any, body: Document, path: KeyPath) -> None:
    if name == "name" and not isinstance(value, str):
        raise body.refused(f"the name of a link is text, not {shown(value)}.", *path)
    if name != "name" and Number().read(value) is None:
        raise body.refused(f"{name} of a link is a number, not {shown(value)}.", *path)


def _require_known(
    row: Mapping[str, Any], known: Sequence[str], what: str, body: Document, path: KeyPath
) -> None:
    for name in row:
        if name not in known:
            raise body.refused(
                f"{what} has no {name!r}; it has {', '.join(known)}.{did_you_mean(name, known)}",
                *path,
            )


def _require_no_file(given: Any, body: Document, path: KeyPath) -> None:
    if isinstance(given, str):
        raise body.refused(
            f"a request names no files: give the rows themselves, not {shown(given)}.", *path
        )
