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
from tidewolf.core.arrays import to_numpy
from tidewolf.core.errors import MissingExtra
from tidewolf.core.types import Array, Floats, Int64s, NDArray, Shape
from tidewolf.evaluation.decisions import Decisions, time_texts
from tidewolf.evaluation.limits import ONLY_LIMIT, is_broken
from tidewolf.evaluation.run import Run
from tidewolf.functions.linear import Capacity
from tidewolf.functions.loads import LoadLimit
from tidewolf.networks import PathShare
from tidewolf.problems import Problem
from tidewolf.sets.flows import FlowPolytope, MultiFlow

DECISIONS_FORMAT = LOG_FORMAT = 1
DECISIONS, PATHS, LIMITS = "decisions", "paths", "limits"
"""The names of the tables of the first run."""
LOG_ENDING = ".decisions"
CSV_CELLS = 1_000_000
"""The largest table that is by default also written as CSV. Unit: cells."""
MOST_SPLITS = 100_000
"""So many times at most a commodity's flow is split into paths; of longer runs each k-th round."""
MOST_ROUNDS, MOST_LIMITS = 100_000, 5_000_000
"""So many violated rounds, and limits of them, are looked at; of more, those of each k-th round."""
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
        try:
            import pandas
            import pyarrow
            from pyarrow import parquet
        except ImportError:
            raise MissingExtra(
                'Writing tables needs pandas and pyarrow: pip install "tidewolf[app]".'
            ) from None
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
            metadata = {
                "format": DECISIONS_FORMAT,
                "versions": checkpoint.writer(),
                "about": about,
                **self.about,
            }
            schema = pyarrow.schema([(key, first), *kinds])
            schema = schema.with_metadata({"tidewolf": json.dumps(metadata)})
            path = self.folder / f"{name}.parquet"
            with checkpoint.writing(path) as file, parquet.ParquetWriter(file, schema) as writer:
                for part in parts(values):
                    writer.write_table(pyarrow.table(part, schema=schema))
        if "csv" in asked:
            with checkpoint.writing(self.folder / f"{name}.csv") as file:
                for i, part in enumerate(parts(texts)):
                    frame = pandas.DataFrame(part)
                    lines = frame.to_csv(index=False, header=i == 0, lineterminator="\n")
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
        count = commodities(problem)
        if count == 0 or len(self.found) == 0:
            return []
        every = max(1, math.ceil(len(self.found) * count / MOST_SPLITS))
        rounds = np.arange(0, len(self.found), every)
        routes = [large(each, smallest) for each in _routes(problem, self.found.points, rounds)]
        rows = [route for each in routes for route in each]
        columns: dict[str, Any] = {
            name: [row[i] for row in rows] for i, name in enumerate(Route._fields)
        }
        columns |= {name: np.array(columns[name], dtype=np.float64) for name in ("share", "volume")}
        about = "share: of the commodity's demand; volume: share times demand"
        self.write(PATHS, np.repeat(rounds, list(map(len, routes))), columns, about)
        if every == 1:
            return []
        return [f"The tables of paths have one round of every {every:,}; decisions are all there."]

    def write_limits(self, problem: Problem, run: Run) -> list[str]:
        """The limits that these decisions violated. Returns notes on what is absent."""
        names: Sequence[str] = run.limit_names
        names = (ONLY_LIMIT,) if names in ((), ("limit 1",)) else names
        rounds = np.flatnonzero(run.violations > 0.0)
        many = max(len(rounds) / MOST_ROUNDS, len(rounds) * len(names) / MOST_LIMITS)
        every = max(1, math.ceil(many))
        links, net = _limited_links(problem), problem.network
        most = float(run.violations.max(initial=0.0))
        found: list[tuple[int, str, float, float, float]] = []
        for t in rounds[::every].tolist():
            one, x = (
                problem.stream.constraints.view(slice(t, t + 1)),
                np.array(self.found.points[t]),
            )
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

    rows = [
        (
            net.demands[j].name,
            name,
            PathShare("", path.nodes, 0.0, 0.0, net.distinct_names(path.links)).name,
            path.length,
        )
        for j, name, path in zip(net.owner, net.names, net.tunnels.paths, strict=True)
    ]
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
    """How many flows a decision is made of; 0 if it is none."""
    K = problem.K
    if problem.network is not None:
        return len(problem.network.demands)
    return 1 if isinstance(K, FlowPolytope) else len(K.demands) if isinstance(K, MultiFlow) else 0


def _routes(problem: Problem, points: Floats, rounds: Int64s) -> list[list[Route]]:
    """The paths of these rounds, each point split once if rounds share it."""
    net, demands = problem.network, problem.demands
    found, own = list[list[Route]](), list[Route]()
    last: Floats | None = None
    for t in rounds.tolist():
        x = np.array(points[t])
        if last is None or not np.array_equal(x, last):
            own, last = split(problem.K, x) if net is None else [], x
            if net is not None:
                paths = net.path_shares(x)
                own = [Route(path.commodity, path.name, path.share, 0.0) for path in paths]
        if net is not None:
            sent = net.volumes if demands is None else demands[t]
            volume = {demand.name: float(sent[j]) for j, demand in enumerate(net.demands)}
            own = [route._replace(volume=route.share * volume[route.commodity]) for route in own]
        found.append(own)
    return found


def split(K: Any, x: Floats) -> list[Route]:
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
