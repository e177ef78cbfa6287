"""Write decisions as files for people and routers.

    decisions.parquet, decisions.csv      time (or round, from 1), then one column an entry, by name
    paths.parquet, paths.csv              time (or round), commodity, path, share, volume
    tunnels.csv                           commodity, tunnel, path, length: what columns stand for
                                          where demands are split over tunnels

Entries of flows and splits are SHARES of their commodity's demand; so is `share` of a path, and
`volume` is that share times the demand of the round. Dates are in ISO form: one without an offset
as it stood, one with an offset in UTC, and with `[files] timezone` as that clock shows it, with
its offset. Tables are written part by part, whole or not at all, and
the same decisions give the same bytes. Parquet carries the format and who wrote it in its metadata;
a CSV file is its header and its rows.
"""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC
from pathlib import Path
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import numpy as np

from tidewolf.core import checkpoint
from tidewolf.core.errors import MissingExtra
from tidewolf.core.types import Floats, NDArray
from tidewolf.evaluation.decisions import Decisions, time_texts
from tidewolf.networks import Network, PathShare, Tunnel
from tidewolf.problems import Problem
from tidewolf.sets.flows import FlowPolytope, MultiFlow

DECISIONS_FORMAT = 1
DECISIONS = "decisions"
"""What the table of the first run is called."""
CSV_CELLS = 1_000_000
"""The largest table that is by default also written as CSV. Unit: cells."""
MOST_SPLITS = 100_000
"""So many times at most a commodity's flow is split into paths; of longer runs each k-th round."""
_PART = 1 << 20
"""Numbers that are written at a time."""
_SHARES = "entries of flows and splits are shares of their commodity's demand, not volumes"


class Route(NamedTuple):
    """A path that a decision uses."""

    commodity: str
    path: str
    share: float
    volume: float


class FileChoice(NamedTuple):
    """Which files are written."""

    parquet: bool
    csv: bool

    @classmethod
    def of(cls, form: str | None, cells: int) -> FileChoice:
        """What a form asks for; None: Parquet, and CSV if it is small."""
        if form is None:
            return cls(True, cells <= CSV_CELLS)
        return cls(form in ("parquet", "both"), form in ("csv", "both"))


def write_decisions(
    folder: Path,
    name: str,
    found: Decisions,
    form: str | None,
    told: dict[str, Any],
    zone: str | None = None,
) -> None:
    """The table of these decisions as NAME.parquet and NAME.csv, those that are asked for; dates
    are in UTC, and are written on the clock of a zone, with their offset, if there is one.
    """
    columns = dict(zip(found.names, found.table.T, strict=True))
    write_table(folder / name, table_key(found, zone), columns, form, {"about": _SHARES, **told})


def write_tunnels(folder: Path, problem: Problem) -> None:
    """What the columns of decisions stand for, as tunnels.csv, where they are tunnels."""
    net = problem.network
    if net is None or net.tunnels is None:
        return
    lines = (
        (net.demands[j].name, name, _tunnel_name(net, path), repr(path.length))
        for j, name, path in zip(net.owner, net.names, net.tunnels.paths, strict=True)
    )
    write_csv(folder / "tunnels.csv", ("commodity", "tunnel", "path", "length"), lines)


def _tunnel_name(net: Network, tunnel: Tunnel) -> str:
    return PathShare("", tunnel.nodes, 0.0, 0.0, net.distinct_names(tunnel.links)).name


def write_paths(
    folder: Path,
    problem: Problem,
    found: Decisions,
    form: str | None,
    told: dict[str, Any],
    zone: str | None = None,
    smallest: float = 0.0,
) -> list[str]:
    """The paths of these decisions as paths.parquet and paths.csv, nothing if they are no flows;
    answers what is not there, in sentences.
    """
    count = commodities(problem)
    if count == 0 or len(found) == 0:
        return []
    every = max(1, math.ceil(len(found) * count / MOST_SPLITS))
    kept = np.arange(0, len(found), every)
    routes = [_large(each, smallest) for each in _routes(problem, found.points, kept)]
    key = table_key(found, zone).at(np.repeat(kept, list(map(len, routes))))
    rows = [route for each in routes for route in each]
    columns: dict[str, Any] = {
        name: [row[i] for row in rows] for i, name in enumerate(Route._fields)
    }
    columns |= {name: np.array(columns[name], dtype=np.float64) for name in ("share", "volume")}
    about = {"about": "share: of the commodity's demand; volume: share times demand"}
    write_table(folder / "paths", key, columns, form, {**about, **told})
    if every == 1:
        return []
    return [f"The tables of paths have one round of every {every:,}; decisions are all there."]


class TableKey(NamedTuple):
    """What rounds are called, in the first column of a table."""

    name: str
    values: NDArray
    texts: Sequence[str]
    kind: str
    """of the values in Parquet"""

    def at(self, rows: NDArray) -> TableKey:
        """The key of these rows."""
        return self._replace(values=self.values[rows], texts=[self.texts[i] for i in rows.tolist()])


def table_key(found: Decisions, zone: str | None = None) -> TableKey:
    """The caller's times, or the numbers of rounds where there are none; dates on the clock of a
    zone, with their offset, where there is one.
    """
    if found.times is None:
        name = "round" if "round" not in found.names else "number of the round"
        numbers = found.rounds + 1
        return TableKey(name, numbers, list(map(str, numbers.tolist())), str(numbers.dtype))
    times = found.times
    if times.dtype.kind != "M":
        return TableKey("time", times, time_texts(times), str(times.dtype))
    if zone is None:
        return TableKey("time", times, time_texts(times), "timestamp[us]")
    return TableKey("time", times, _on_clock(times, zone), "timestamp[us, UTC]")


def _on_clock(times: NDArray, zone: str) -> list[str]:
    """Dates in UTC as the clock of a zone shows them, with its offset then."""
    clock, moments = ZoneInfo(zone), times.astype("datetime64[us]").tolist()
    shown = [moment.replace(tzinfo=UTC).astimezone(clock) for moment in moments]
    exact = (
        "minutes" if all(moment.second == moment.microsecond == 0 for moment in shown) else "auto"
    )
    return [moment.isoformat(timespec=exact) for moment in shown]


def write_table(
    path: Path,
    key: TableKey,
    columns: Mapping[str, NDArray | Sequence[str]],
    form: str | None,
    told: dict[str, Any],
) -> None:
    """Write a table of numbers and texts as PATH.parquet, with `told` in its metadata, and as
    PATH.csv; those that are asked for, part by part.
    """
    wanted = FileChoice.of(form, len(key.texts) * len(columns))
    rows = max(1, _PART // max(1, len(columns)))
    parts = range(0, len(key.texts), rows)
    if wanted.parquet:
        _write_parquet(path.with_name(f"{path.name}.parquet"), key, columns, rows, told)
    if wanted.csv:
        lines = (
            line
            for i in parts
            for line in zip(
                key.texts[i : i + rows],
                *(_texts(column[i : i + rows]) for column in columns.values()),
                strict=True,
            )
        )
        write_csv(path.with_name(f"{path.name}.csv"), (key.name, *columns), lines)


def _texts(column: NDArray | Sequence[str]) -> Iterable[str]:
    return map(repr, column.tolist()) if isinstance(column, np.ndarray) else column


def _write_parquet(
    path: Path,
    key: TableKey,
    columns: Mapping[str, NDArray | Sequence[str]],
    rows: int,
    told: dict[str, Any],
) -> None:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise MissingExtra('Writing Parquet needs pyarrow: pip install "tidewolf[app]".') from None
    zone = {"timestamp[us]": None, "timestamp[us, UTC]": "UTC"}
    timed = key.kind in zone
    first = pyarrow.timestamp("us", tz=zone[key.kind]) if timed else getattr(pyarrow, key.kind)()
    number, text = pyarrow.float64(), pyarrow.string()
    kinds = [number if isinstance(each, np.ndarray) else text for each in columns.values()]
    metadata = {"format": DECISIONS_FORMAT, "versions": checkpoint.writer(), **told}
    schema = pyarrow.schema([(key.name, first), *zip(columns, kinds, strict=True)])
    schema = schema.with_metadata({"tidewolf": json.dumps(metadata)})
    with checkpoint.writing(path) as file, parquet.ParquetWriter(file, schema) as writer:
        for i in range(0, len(key.texts), rows) or (0,):
            arrays = [
                pyarrow.array(
                    np.ascontiguousarray(part) if isinstance(part, np.ndarray) else part, one.type
                )
                for part, one in zip(
                    [each[i : i + rows] for each in (key.values, *columns.values())],
                    schema,
                    strict=True,
                )
            ]
            writer.write_table(pyarrow.table(arrays, schema=schema))


def write_csv(path: Path, titles: Sequence[str], lines: Iterable[Sequence[str]]) -> None:
    """A table with a header, whole or not at all."""
    with checkpoint.writing(path) as file:
        text = io.TextIOWrapper(file, encoding="utf-8", newline="")
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(titles)
        writer.writerows(lines)
        text.flush()
        text.detach()


# paths


def commodities(problem: Problem) -> int:
    """How many flows a decision is made of; 0 where it is none."""
    K = problem.K
    if problem.network is not None:
        return len(problem.network.demands)
    return 1 if isinstance(K, FlowPolytope) else len(K.demands) if isinstance(K, MultiFlow) else 0


def _routes(problem: Problem, points: Floats, kept: NDArray) -> list[list[Route]]:
    """The paths of these rounds, each point split once if rounds share it."""
    net, demands = problem.network, problem.demands
    found, own = list[list[Route]](), list[Route]()
    last: Floats | None = None
    for t in kept.tolist():
        x = np.array(points[t])
        if last is None or not np.array_equal(x, last):
            own, last = _split(problem.K, x) if net is None else _shares(net, x), x
        if net is not None:
            sent = net.volumes if demands is None else demands[t]
            volume = {demand.name: float(sent[j]) for j, demand in enumerate(net.demands)}
            own = [route._replace(volume=route.share * volume[route.commodity]) for route in own]
        found.append(own)
    return found


def _shares(net: Network, x: Floats) -> list[Route]:
    return [Route(path.commodity, path.name, path.share, 0.0) for path in net.path_shares(x)]


def _large(routes: list[Route], smallest: float) -> list[Route]:
    """The paths of a decision with at least this share, of each commodity the largest at least, and
    what the others carried added to them in proportion.
    """
    if smallest <= 0.0:
        return routes
    found, by_commodity = list[Route](), dict[str, list[Route]]()
    for route in routes:
        by_commodity.setdefault(route.commodity, []).append(route)
    for own in by_commodity.values():
        kept = [route for route in own if route.share >= smallest]
        kept = kept or [max(own, key=lambda route: route.share)]
        whole = sum(route.share for route in own) / sum(route.share for route in kept)
        found += [
            route._replace(share=route.share * whole, volume=route.volume * whole) for route in kept
        ]
    return found


def _split(K: Any, x: Floats) -> list[Route]:
    """The paths of one decision."""
    flows, demands = (K.paths(x), K.demands) if isinstance(K, MultiFlow) else ([K.paths(x)], [1.0])
    return [
        Route(
            f"{path.nodes[0]} > {path.nodes[-1]}",
            " > ".join(map(str, path.nodes)),
            path.weight / demand,
            path.weight,
        )
        for demand, paths in zip(demands, flows, strict=True)
        for path in paths
    ]
