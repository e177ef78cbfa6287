"""The decisions of a run as files, for people and routers, and while it is played.

    decisions.parquet, decisions.csv    time (or round, from 1), then one column per entry, by name
    paths.parquet, paths.csv            time (or round), commodity, path, share, volume
    limits.parquet, limits.csv          time (or round), limit, over
    tunnels.csv                         commodity, tunnel, path, length: what columns stand for if
                                        demands are split over tunnels

Entries of flows and splits are SHARES of their commodity's demand; so is `share` of a path, and
`volume` is that share times the demand of the round. A row of limits is a limit that was violated
in a round by more than rounding: `over` is in the unit of the limits, on networks shares of all
that is sent. There it also has load, capacity and over_volume, which are volumes:

    over_volume  =  load - capacity  =  over * network.unit

Dates are in ISO form: one without an offset as it stood, one with an offset in UTC, and with
`[files] timezone` as that clock shows it, with its offset. Tables are written part by part, whole
or not at all, and the same decisions give the same bytes. Parquet carries the format and the
versions in its metadata.

While a run is played, `DecisionLog` appends its decisions to a file beside its checkpoint:

    tidewolf decisions 1 ENTRIES\n      then ENTRIES float64 numbers, little-endian, for each round

Memory does not grow with the rounds. The file is flushed to disk before each checkpoint, so it
holds at least the rounds of the checkpoint; what a killed process wrote beyond them is cut off
before the run resumes, and the same bytes follow.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC
from io import FileIO
from pathlib import Path
from typing import Any, NamedTuple, final
from zoneinfo import ZoneInfo

import numpy as np

from tidewolf.core import checkpoint
from tidewolf.core.arguments import import_extra
from tidewolf.core.arrays import to_numpy
from tidewolf.core.types import Array, Floats, Int64s, NDArray, Shape
from tidewolf.evaluation.decisions import Decisions, time_texts
from tidewolf.evaluation.limits import ONLY_LIMIT, is_broken
from tidewolf.evaluation.run import Run
from tidewolf.functions.linear import Capacity
from tidewolf.functions.loads import LoadLimit
from tidewolf.networks import Network, PathShare
from tidewolf.problems import Problem
from tidewolf.sets import ConvexSet, FlowPolytope, MultiFlow

DECISIONS_FORMAT = LOG_FORMAT = 1
DECISIONS, PATHS, LIMITS = "decisions", "paths", "limits"
"""The names of the tables of the first run."""
LOG_ENDING = ".decisions"
CSV_CELLS = 1_000_000
"""The largest table that is by default also written as CSV. Unit: cells."""
MOST_SPLITS = 100_000
"""So many times at most a commodity's flow is split into paths; of longer runs each k-th round."""
MOST_LIMITS = 5_000_000
"""So many limits of violated rounds are looked at; of more, those of each k-th round."""
_PART = 1 << 20
"""Numbers that are written at a time."""
_DIGITS = 12
"""Of volumes, which went through shares and back."""
_NUMBER = np.dtype("<f8")


def endings(form: str | None, cells: int) -> tuple[str, ...]:
    """Which files a form asks for; None: Parquet, and CSV if it is small."""
    if form is None:
        form = "both" if cells <= CSV_CELLS else "parquet"
    return {"none": (), "both": ("parquet", "csv")}.get(form, (form,))


class TableWriter(NamedTuple):
    """Writes the tables of one run."""

    folder: Path
    found: Decisions
    form: str | None
    about: Mapping[str, Any]
    """metadata: which run it is"""
    zone: str | None = None
    """on whose clock dates are written, with their offset"""

    def write(
        self, name: str, rounds: Int64s, columns: Mapping[str, NDArray | Sequence[str]], about: str
    ) -> None:
        """NAME.parquet and NAME.csv, those that are asked for: rows of these rounds."""
        pandas = import_extra("pandas", "Writing tables", "app")
        pyarrow = import_extra("pyarrow", "Writing tables", "app")
        from pyarrow import parquet

        key, values, texts = self._key()
        size = max(1, _PART // max(1, len(columns)))

        def parts(first: NDArray) -> Iterator[dict[str, Any]]:
            for i in range(0, len(rounds), size) or (0,):
                rows = slice(i, i + size)
                yield {key: first[rounds[rows]]} | {name: at[rows] for name, at in columns.items()}

        asked = endings(self.form, len(rounds) * len(columns))
        if "parquet" in asked:
            clock = pyarrow.timestamp("us", tz=None if self.zone is None else "UTC")
            first = clock if values.dtype.kind == "M" else pyarrow.from_numpy_dtype(values.dtype)
            kinds = [
                (name, pyarrow.float64() if isinstance(column, np.ndarray) else pyarrow.string())
                for name, column in columns.items()
            ]
            metadata = {"format": DECISIONS_FORMAT, "versions": checkpoint.writer(), "about": about}
            schema = pyarrow.schema([(key, first), *kinds])
            schema = schema.with_metadata({"tidewolf": json.dumps({**metadata, **self.about})})
            path = self.folder / f"{name}.parquet"
            with checkpoint.writing(path) as file, parquet.ParquetWriter(file, schema) as writer:
                for part in parts(values):
                    writer.write_table(pyarrow.table(part, schema=schema))
        if "csv" in asked:
            with checkpoint.writing(self.folder / f"{name}.csv") as file:
                for i, part in enumerate(parts(texts)):
                    lines = pandas.DataFrame(part).to_csv(
                        index=False, header=i == 0, lineterminator="\n"
                    )
                    file.write(lines.encode())

    def _key(self) -> tuple[str, NDArray, NDArray]:
        """The name, the values and the texts of the first column: times, else numbers of rounds."""
        times = self.found.times
        if times is None:
            name = "round" if "round" not in self.found.names else "number of the round"
            return name, self.found.rounds + 1, self.found.rounds + 1
        texts = time_texts(times)
        if times.dtype.kind == "M" and self.zone is not None:
            clock, moments = ZoneInfo(self.zone), times.astype("datetime64[us]").tolist()
            shown = [moment.replace(tzinfo=UTC).astimezone(clock) for moment in moments]
            whole = all(moment.second == moment.microsecond == 0 for moment in shown)
            texts = [each.isoformat(timespec="minutes" if whole else "auto") for each in shown]
        return "time", times, np.array(texts, dtype=object)

    def write_decisions(self, name: str) -> None:
        """One column per entry of a decision."""
        columns = dict(zip(self.found.names, self.found.table.T, strict=True))
        shares = "entries of flows and splits are shares of their commodity's demand, not volumes"
        self.write(name, np.arange(len(self.found)), columns, shares)

    def write_paths(self, problem: Problem, smallest: float = 0.0) -> list[str]:
        """The paths of flows; nothing if decisions are none. Returns notes on what is absent."""
        count, found = commodities(problem), list[tuple[int, Route]]()
        if count == 0 or len(self.found) == 0:
            return []
        every = max(1, math.ceil(len(self.found) * count / MOST_SPLITS))
        last: Any = None
        for t in range(0, len(self.found), every):
            x, sent = np.array(self.found.points[t]), problem.demands
            key = x.tobytes() + (b"" if sent is None else sent[t].tobytes())
            if key != last:  # rounds of a block share their point
                demands, last = None if sent is None else sent[t], key
                routes = large(routes_of(problem.K, problem.network, x, demands) or [], smallest)
            found += [(t, route) for route in routes]
        columns: dict[str, Any] = {
            name: [route[i] for _, route in found] for i, name in enumerate(Route._fields)
        }
        columns |= {name: np.array(columns[name], dtype=np.float64) for name in ("share", "volume")}
        about = "share: of the commodity's demand; volume: share times demand"
        self.write(PATHS, np.array([t for t, _ in found]), columns, about)
        if every == 1:
            return []
        return [f"The tables of paths have one round of every {every:,}; decisions are all there."]

    def write_limits(self, problem: Problem, run: Run) -> list[str]:
        """The limits that these decisions violated. Returns notes on what is absent."""
        names: Sequence[str] = run.limit_names
        names = (ONLY_LIMIT,) if names in ((), ("limit 1",)) else names
        rounds = np.flatnonzero(run.violations > 0.0)
        every = max(1, math.ceil(len(rounds) * max(50, len(names)) / MOST_LIMITS))
        links, net = _limited_links(problem), problem.network
        most = float(run.violations.max(initial=0.0))
        found: list[tuple[int, str, float, float, float]] = []
        for t in rounds[::every].tolist():
            one = problem.stream.constraints.view(slice(t, t + 1))
            x = np.array(self.found.points[t])
            pieces = one.pieces(x)
            values = to_numpy(one.values(x) if pieces is None else pieces).reshape(-1)
            violated = np.flatnonzero(is_broken(values, most if len(values) == 1 else 0.0))
            loads = capacities = values
            if links is not None:
                loads = net.loads(x, None if problem.demands is None else problem.demands[t])[links]
                bound = getattr(one, "capacities" if isinstance(one, LoadLimit) else "c")
                capacities = net.unit * to_numpy(bound).reshape(-1)
            found += [(t, names[i], values[i], loads[i], capacities[i]) for i in violated.tolist()]
        at, limits, *numbers = zip(*found, strict=True) if found else ((), (), (), (), ())
        over, load, capacity = (np.array(each, dtype=np.float64) for each in numbers)
        columns: dict[str, Any] = {"limit": list(limits), "over": over}
        about = "over: in the unit of the limits"
        if links is not None:
            volumes = {"load": load, "capacity": capacity, "over_volume": over * net.unit}
            for name, column in volumes.items():
                rounded = [float(f"{volume:.{_DIGITS}g}") for volume in column]
                columns[name] = np.array(rounded, dtype=np.float64)
            about += "; the rest: volumes"
        self.write(LIMITS, np.array(at, dtype=np.int64), columns, about)
        if every == 1:
            return []
        return [f"The tables of limits have one of every {every:,} rounds that broke some."]


def write_tunnels(folder: Path, problem: Problem) -> None:
    """What the columns of decisions stand for, as tunnels.csv, if they are tunnels."""
    net = problem.network
    if net is None or net.tunnels is None:
        return
    import pandas

    rows = []
    for j, tunnel, path in zip(net.owner, net.names, net.tunnels.paths, strict=True):
        names = net.distinct_names(path.links)
        name = PathShare("", path.nodes, 0.0, 0.0, names).name
        rows.append((net.demands[j].name, tunnel, name, path.length))
    table = pandas.DataFrame(rows, columns=["commodity", "tunnel", "path", "length"])
    text = table.to_csv(index=False, lineterminator="\n")
    checkpoint.write(folder / "tunnels.csv", text.encode())


def _limited_links(problem: Problem) -> Int64s | None:
    """The link of each limit, if limits are capacities of the links of a network."""
    net, constraints = problem.network, problem.stream.constraints
    if net is not None and isinstance(constraints, LoadLimit):
        numbers = {name: i for i, name in enumerate(net.link_names)}
        return np.array([numbers[name] for name in constraints.names], dtype=np.int64)
    if net is not None and isinstance(constraints, Capacity):
        return np.asarray(net.incidence.tocsc().indices, dtype=np.int64)
    return None


# --- paths ----------------------------------------------------------------------------------------


class Route(NamedTuple):
    """A path that a decision uses."""

    commodity: str
    path: str
    share: float
    volume: float


def commodities(problem: Problem) -> int:
    """How many flows a decision consists of."""
    K = problem.K
    if problem.network is not None:
        return len(problem.network.demands)
    return 1 if isinstance(K, FlowPolytope) else len(K.demands) if isinstance(K, MultiFlow) else 0


def routes_of(
    K: ConvexSet, network: Network | None, x: Array, demands: Array | None = None
) -> list[Route] | None:
    """The paths of one decision, heaviest first, with volumes of these demands; None if it is no
    flow.
    """
    if network is not None:
        paths = network.path_shares(x, demands)
        return [Route(path.commodity, path.name, path.share, path.volume) for path in paths]
    if not isinstance(K, FlowPolytope | MultiFlow):
        return None
    flows: Any = zip(K.demands, K.paths(x), strict=True) if isinstance(K, MultiFlow) else None
    return [
        Route(
            f"{path.nodes[0]} > {path.nodes[-1]}",
            " > ".join(map(str, path.nodes)),
            path.weight / demand,
            path.weight,
        )
        for demand, paths in flows or [(1.0, K.paths(x))]
        for path in paths
    ]


def large(routes: list[Route], smallest: float) -> list[Route]:
    """The paths of a decision with at least this share, of each commodity the largest at least, and
    what the others carried added to them in proportion.
    """
    found = list[Route]()
    for commodity in dict.fromkeys(route.commodity for route in routes):
        own = [route for route in routes if route.commodity == commodity]
        kept = [route for route in own if route.share >= smallest]
        kept = kept or [max(own, key=lambda route: route.share)]
        whole = sum(route.share for route in own) / sum(route.share for route in kept)
        found += [
            route._replace(share=route.share * whole, volume=route.volume * whole) for route in kept
        ]
    return found


# --- while a run is played ------------------------------------------------------------------------


@final
class DecisionLog:
    """The points of a run, round by round."""

    def __init__(self, path: Path, shape: Shape, rounds: int) -> None:
        """Continue after so many rounds; `holds` is whether the file has them."""
        self.path, self.shape, self._entries = path, tuple(shape), math.prod(shape)
        self._head = f"tidewolf decisions {LOG_FORMAT} {self._entries}\n".encode()
        self._file: FileIO | None = None
        self.holds = rounds == 0 or self._has(rounds)
        if rounds == 0:
            path.write_bytes(self._head)
        elif self.holds:
            os.truncate(path, self._size(rounds))

    def see(self, points: Array, rounds: int) -> None:
        """The next rounds, played at one point, (1, *shape), or at one point per round,
        (rounds, *shape).
        """
        rows = to_numpy(points).astype(_NUMBER, copy=False).reshape(-1, self._entries)
        data = memoryview(rows.tobytes() if len(rows) == rounds else rows.tobytes() * rounds)
        try:
            if self._file is None:
                self._file = open(self.path, "ab", buffering=0)  # noqa: SIM115  # see `close`
            while data:
                data = data[self._file.write(data) :]
        except OSError as error:
            error.filename = str(self.path)  # ENOSPC comes without a path
            raise

    def sync(self) -> None:
        """Flush the file to disk."""
        if self._file is not None:
            try:
                os.fsync(self._file.fileno())
            except OSError as error:
                error.filename = str(self.path)
                raise

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def points(self, rounds: int) -> Floats | None:
        """The points of the first rounds, (rounds, *shape), read from disk on access; None if the
        file does not have them.
        """
        if not self._has(rounds):
            return None
        shape = (rounds, *self.shape)
        if math.prod(shape) == 0:
            return np.empty(shape)
        return np.memmap(self.path, _NUMBER, "r", len(self._head), shape)

    def _has(self, rounds: int) -> bool:
        try:
            with open(self.path, "rb") as file:
                has_head = file.read(len(self._head)) == self._head
        except OSError:
            return False
        return has_head and self.path.stat().st_size >= self._size(rounds)

    def _size(self, rounds: int) -> int:
        return len(self._head) + rounds * self._entries * _NUMBER.itemsize
