"""A run folder: an experiment and its results.

It can be killed at any moment and resumed: bit for bit on the same machine and versions.

    experiment.toml      the experiment as resolved, under a line with its checksum
    checkpoints/NAME     one per learner and seed: the recording so far, replaced whole every few
                         seconds; NAME.decisions beside it has the decisions, append-only
    decisions.parquet    the decisions of the first run: time (or round, from 1), then one column
                         per entry; decisions.csv too if that is small, decisions-NAME.parquet for
                         other runs; paths.parquet and paths.csv if decisions are flows
    limits.parquet       which limits the first run broke, when, and by how much; limits.csv too if
                         that is small
    tunnels.csv          the path of each column of decisions, if demands are split over tunnels
    rounds.parquet       loss, violation, oracle calls, distance, churn and linear programs of every
                         round (from 1) of every run, with the caller's time if there is one
    report.html          the page; report-seed-S.html for seeds after the first
    report.json          the record of that page, from which `tidewolf report` writes it again
    summary.json         the numbers of every run; written last: a folder that has it is complete

Every file is written whole or not at all, and holds its format and the version of tidewolf. The
folder is locked while a run is begun or played in it: a second process is refused.

Tables of decisions, for people and routers, are

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

import hashlib
import json
import math
import os
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, nullcontext, suppress
from dataclasses import dataclass, replace
from datetime import UTC
from functools import partial
from itertools import chain, count
from pathlib import Path
from typing import Any, NamedTuple, Self, final
from zoneinfo import ZoneInfo

import numpy as np

from tidewolf import __version__
from tidewolf.core import arrays, batch, checkpoint
from tidewolf.core.arguments import as_flag, as_kind, as_path, csv_cell, import_extra
from tidewolf.core.errors import BrokenFile, Interrupted, InvalidInput, require, require_format
from tidewolf.core.lazy import Lazy
from tidewolf.core.types import Array, Floats, Int64s, NDArray, Shape
from tidewolf.evaluation.metrics import ONLY_LIMIT, round_columns
from tidewolf.evaluation.recording import Recording, RunProgress
from tidewolf.evaluation.run import Run, finished
from tidewolf.evaluation.tracking import Decisions, entry_names, is_broken, time_texts
from tidewolf.experiments import jobs
from tidewolf.experiments.experiment import Choice, Experiment, read
from tidewolf.experiments.jobs import CHECKPOINTS_FOLDER, Job, Prepared, locked
from tidewolf.functions import Capacity, LoadLimit
from tidewolf.networks.network import PathShare, routes_of
from tidewolf.problems import Problem
from tidewolf.sets import FlowPolytope, MultiFlow

DECISIONS_FORMAT = LOG_FORMAT = 1
# What runs with an incumbent need.
comparing = Lazy("tidewolf.experiments.compare")
# The names of the tables of the first run.
DECISIONS, PATHS, LIMITS = "decisions", "paths", "limits"
# The largest table that is by default also written as CSV. Unit: cells.
CSV_CELLS = 1_000_000
# So many times at most a commodity's flow is split into paths; of longer runs each k-th round.
MOST_SPLITS = 100_000
# So many limits of violated rounds are looked at; of more, those of each k-th round.
MOST_LIMITS = 5_000_000
# Numbers that are written at a time.
_PART = 1 << 20
# Of volumes, which went through shares and back.
_DIGITS = 12
_NUMBER = np.dtype("<f8")
RUN_FORMAT = 3
EXPERIMENT_FILE = "experiment.toml"
ROUNDS_FILE = "rounds.parquet"
SUMMARY_FILE = "summary.json"
_HEAD = re.compile(r"# tidewolf run (\d+), written by tidewolf (\S+), sha256 ([0-9a-f]{64})")
_OF_INCUMBENT = (
    "rounds", "loss", "churn", "regret", "hindsight", "violation", "broken", "max_infeasibility",
    "saved",
)  # fmt: skip


class Finished(NamedTuple):
    seed: int
    problem: Problem
    jobs: tuple[Job, ...]
    runs: tuple[Run, ...]
    # the run of the decisions that were given
    incumbent: Run | None = None

    @property
    def shown(self) -> tuple[Run, ...]:
        return self.runs if self.incumbent is None else (*self.runs, self.incumbent)

    @property
    def saved(self) -> str:
        if self.incumbent is None:
            return ""
        name, network = self.jobs[0].entrant.name, self.problem.network
        return str(comparing.savings(self.runs[0], name, self.incumbent, network))

    @property
    def notes(self) -> tuple[str, ...]:
        return (*([self.saved] if self.saved else []), *self.problem.notes)


@final
@dataclass(frozen=True)
class RunFolder:
    """A folder and the resolved experiment in it, as `tidewolf run` makes it. `create` begins one,
    `open` opens one that was begun.

    Parameters
    ----------
    path : Path
        The folder.
    experiment : Experiment
        What is run, with every default filled in.

    Examples
    --------
    >>> import tempfile
    >>> from dataclasses import replace
    >>> from tidewolf.experiments import Choice, Experiment, RunFolder
    >>> asked = replace(Experiment.builtin("adversarial"), learners=(Choice("SinhaVaze"),))
    >>> with tempfile.TemporaryDirectory() as place:
    ...     folder = RunFolder.create(f"{place}/run", replace(asked, rounds=20).resolved(20))
    ...     (found,) = folder.play()
    ...     folder.write_summary([found])
    ...     RunFolder.open(f"{place}/run").complete, found.runs[0].rounds
    (True, 20)
    """

    path: Path
    experiment: Experiment

    @classmethod
    def create(cls, path: Path, experiment: Experiment, *, force: bool = False) -> Self:
        """A folder for a resolved experiment, with nothing played yet.

        Parameters
        ----------
        path : str or Path
            The folder; it is made if it does not exist.
        experiment : Experiment
            What is to be run, as `Experiment.resolved` gives it.
        force : bool, default False
            Whether a run that the folder holds already is removed; otherwise it is refused.

        Returns
        -------
        RunFolder
            To be played.

        Raises
        ------
        InvalidInput
            If the path is a file, holds a run, or another process is at work in it.
        """
        as_kind(experiment, Experiment, "A run folder is that of an Experiment")
        path = as_path(path, "The path of a run folder")
        require_no_run(path, as_flag(force, "force"))
        (path / CHECKPOINTS_FOLDER).mkdir(parents=True, exist_ok=True)
        with locked(path, "run", again=True):
            require_no_run(path, force)  # another process may have begun one meanwhile
            for file in (*_files_of(path), *(path / CHECKPOINTS_FOLDER).glob("*-seed-*")):
                file.unlink()
            text = experiment.toml()
            head = f"# tidewolf run {RUN_FORMAT}, written by tidewolf {__version__}"
            text = f"{head}, sha256 {_digest(text)}\n{text}"
            checkpoint.write(path / EXPERIMENT_FILE, text.encode())
            return cls.open(path)

    @classmethod
    def open(cls, path: Path) -> Self:
        """The folder of a run that was begun.

        Parameters
        ----------
        path : str or Path
            The folder.

        Returns
        -------
        RunFolder
            With the experiment as it was resolved then.

        Raises
        ------
        InvalidInput
            If no run was begun there.
        BrokenFile, NewerFormat, OlderFormat
            If its experiment was changed, or is of another format.
        """
        path = as_path(path, "The path of a run folder")
        file = path / EXPERIMENT_FILE
        try:
            head, _, text = file.read_bytes().decode().partition("\n")
        except FileNotFoundError:
            raise InvalidInput(f"{path} is no run folder: it has no {EXPERIMENT_FILE}.") from None
        except (OSError, UnicodeDecodeError) as error:
            raise BrokenFile(f"{file} cannot be read: {error}.") from None
        found, otherwise = _HEAD.fullmatch(head), "Run the experiment in a new folder."
        if found is not None:
            require_format(file, int(found[1]), RUN_FORMAT, otherwise)
        if found is None or _digest(text) != found[3]:
            raise BrokenFile(f"{file} was changed: its checksum does not fit. {otherwise}")
        return cls(path, read(f"\n{text}", file))

    def locked(self) -> AbstractContextManager[None]:
        """Lock the folder while a run is played and its files are written. Each method takes the
        lock itself if the thread does not hold it.
        """
        return locked(self.path, "run", again=True)

    @property
    def complete(self) -> bool:
        """Whether all is played and written."""
        return (self.path / SUMMARY_FILE).exists()

    def play(
        self,
        *,
        progress: Callable[[Job, RunProgress], None] | None = None,
        stopping: Callable[[], bool] = lambda: False,
        first: Problem | None = None,
    ) -> list[Finished]:
        """Play what is not played yet; a run that was interrupted resumes.

        Parameters
        ----------
        progress : callable, optional
            Called a few times per second with the job, and how far it is.
        stopping : callable
            Called after every update; if it returns True the run is saved and interrupted.
        first : Problem, optional
            The problem of the first seed, if it was made before.

        Returns
        -------
        list of Finished
            One per seed, with its problem and its runs.

        Raises
        ------
        Interrupted
            If `stopping` returned True.
        OtherSettings
            If the tables of the experiment were changed since.
        """
        with self.locked():
            # left by a process that was killed while it wrote
            for part in self.path.rglob(".*.part"):
                part.unlink()
            found: list[Finished] = []
            player, file = jobs.Player(), self.experiment.incumbent
            for some in jobs.plan_run(self.experiment):
                ready = player.prepared(some[0], None if found else first)
                runs = tuple(self._play(job, ready, progress, stopping) for job in some)
                beside = None
                if file is not None:
                    decided = comparing.read_incumbent(file, ready.problem, self.experiment.files)
                    beside = comparing.play_incumbent(decided, ready.problem, ready.best)
                found.append(Finished(some[0].seed, ready.problem, some, runs, beside))
            return found

    def _play(self, job: Job, ready: Prepared, progress: Any, stopping: Callable[[], bool]) -> Run:
        problem, file = ready.problem, self.path / CHECKPOINTS_FOLDER / job.label
        learner = job.source.learner(job.entrant, problem, job.seed)
        recording, log = jobs.begin(learner, problem, file, job.origin), None
        if self.experiment.decisions != "none":
            beside = file.with_name(f"{job.label}.decisions")
            found = DecisionLog(beside, recording.stream.shape, recording.t)
            log = recording.decisions = found if found.holds else None
        with nullcontext() if log is None else closing(log):
            done = jobs.advance(
                recording,
                file,
                seconds=self.experiment.checkpoint_seconds,
                ending=True,
                moved=None if progress is None else partial(progress, job),
                saving=(lambda: None) if log is None else log.sync,
                stopping=stopping,
            )
        if not done:
            raise Interrupted(
                f"Interrupted after {recording.t:,} of {len(recording.stream):,} rounds of "
                f"{job.entrant.name}; `tidewolf resume {self.path}` resumes."
            )
        run, points = finished(recording, ready.best), log and log.points(recording.t)
        if points is None:
            return run
        names, stamps = entry_names(problem.K, problem.labels), recording.stream.stamps
        return replace(run, decisions=Decisions(np.arange(recording.t), stamps, names, points))

    def write_rounds(self, found: Sequence[Finished]) -> None:
        """Write rounds.parquet, the numbers of every round; rounds count from 1.

        Parameters
        ----------
        found : sequence of Finished
            The result of `play`.
        """
        import pyarrow
        from pyarrow import parquet

        parts = []
        for _, job, run in _each(found):
            stamps = run.stream.stamps
            columns = {
                "run": np.full(run.rounds, job.number),
                "learner": pyarrow.array([job.entrant.name] * run.rounds).dictionary_encode(),
                "seed": np.full(run.rounds, job.seed),
                "round": np.arange(1, run.rounds + 1),
                **({} if stamps is None else {"time": stamps[: run.rounds]}),
                **round_columns(run, kept=True),
            }
            parts.append(pyarrow.table(columns))
        table = pyarrow.concat_tables(parts).unify_dictionaries()
        metadata = {"tidewolf": json.dumps(self._head())}
        with checkpoint.writing(self.path / ROUNDS_FILE) as file:
            parquet.write_table(table.replace_schema_metadata(metadata), file)

    def _head(self) -> dict[str, Any]:
        versions = checkpoint.writer()
        return {"format": RUN_FORMAT, "experiment": self.experiment.name, "versions": versions}

    def write_decisions(self, found: Sequence[Finished]) -> list[str]:
        """Write the decisions of every run, in the files that the experiment asks for:
        decisions.parquet and decisions.csv of the first run, paths.parquet and paths.csv if it
        decides flows, limits.parquet and limits.csv with the limits that it broke, and
        decisions-NAME.parquet of each other run.

        Parameters
        ----------
        found : sequence of Finished
            The result of `play`.

        Returns
        -------
        list of str
            What is missing, and why.
        """
        form, notes, zone = self.experiment.decisions, list[str](), self.experiment.files.timezone
        if form == "none":
            return []
        write_tunnels(self.path, found[0].problem)
        for problem, job, run in _each(found):
            if run.decisions is None:
                notes.append(f"The decisions of {job.label} are not there: its file was removed.")
                continue
            name, first = job.entrant.name, job.number == 1
            head = {"experiment": self.experiment.name, "seed": job.seed, "learner": name}
            which = form if first else form or "parquet"
            to = TableWriter(self.path, run.decisions, which, head, zone)
            to.write_decisions(DECISIONS if first else f"{DECISIONS}-{job.label}")
            if first:
                notes += to.write_paths(problem, self.experiment.smallest_path)
                notes += to.write_limits(problem, run)
        return notes

    def write_summary(self, found: Sequence[Finished]) -> None:
        """Write summary.json, the numbers of every run. It is written last: a folder that has it is
        complete.

        Parameters
        ----------
        found : sequence of Finished
            The result of `play`.
        """
        summary = {
            **self._head(),
            "rounds": self.experiment.rounds,
            "seed": self.experiment.seeds[0],
            "seeds": list(self.experiment.seeds),
            **self.records(found),
        }
        text = json.dumps(summary, indent=2, allow_nan=False)
        checkpoint.write(self.path / SUMMARY_FILE, f"{text}\n".encode())

    def records(self, found: Sequence[Finished]) -> dict[str, Any]:
        """The numbers of every run as plain data.

        Parameters
        ----------
        found : sequence of Finished
            The result of `play`.

        Returns
        -------
        dict
            `runs`, one per run, and `incumbent` if there is one, as in `tidewolf run --json`.
        """
        name, first = {"experiment": self.experiment.name}, found[0]
        runs = [
            {**name, **run.summary(), "seed": job.seed, "settings": job.entrant.given}
            for _, job, run in _each(found)
        ]
        if first.incumbent is None:
            return {"runs": runs}
        numbers = first.incumbent.summary() | {"saved": first.saved}
        return {"runs": runs, "incumbent": {key: numbers[key] for key in _OF_INCUMBENT}}

    @property
    def decisions_file(self) -> Path | None:
        """The decisions of the first run, as CSV if that was written; None without decisions."""
        files = (self.path / f"{DECISIONS}.{ending}" for ending in ("csv", "parquet"))
        return next((file for file in files if file.exists()), None)

    def page(self, seed: int) -> Path:
        """The path of a seed's page.

        Parameters
        ----------
        seed : int
            One of the experiment's.

        Returns
        -------
        Path
            report.html for the first seed, report-seed-S.html for others.
        """
        first = seed == self.experiment.seeds[0]
        return self.path / ("report.html" if first else f"report-seed-{seed}.html")

    def figures(self, seed: int) -> Path:
        """The folder of a seed's figures, if they are asked for.

        Parameters
        ----------
        seed : int
            One of the experiment's.

        Returns
        -------
        Path
            figures for the first seed, figures-seed-S for others.
        """
        return self.path / self.page(seed).stem.replace("report", "figures")


def _each(found: Sequence[Finished]) -> Iterator[tuple[Problem, Job, Run]]:
    for each in found:
        for job, run in zip(each.jobs, each.runs, strict=True):
            yield each.problem, job, run


def require_no_run(path: Path, force: bool) -> None:
    """Refuse a path that is a file, or, without `force`, a folder that holds a run."""
    require(
        not path.exists() or path.is_dir(), InvalidInput, f"{path} is a file; a folder is needed."
    )
    names = [] if force else [file.name for file in _files_of(path)]
    if names:
        what = f"a run that is not complete (`tidewolf resume {path}` completes it)"
        if names[0] != EXPERIMENT_FILE:
            what = "a run" if SUMMARY_FILE in names else ", ".join(sorted(names))
        raise InvalidInput(f"{path} holds {what} already. Use another folder, or --force.")


def free(path: Path) -> Path:
    paths = chain([path], (path.with_name(f"{path.name}-{number}") for number in count(2)))
    return next(at for at in paths if not _files_of(at) and (at.is_dir() or not at.exists()))


def _files_of(path: Path) -> list[Path]:
    tables = ("decisions", "decisions-[0-9]*-seed-*", "paths", "limits")
    patterns = (
        *(SUMMARY_FILE, EXPERIMENT_FILE, ROUNDS_FILE, "report*.html", "report*.json"),
        *("tunnels.csv", *(f"{name}.{end}" for name in tables for end in ("csv", "parquet"))),
    )
    return [file for pattern in patterns for file in sorted(path.glob(pattern))]


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


# --- tables of decisions --------------------------------------------------------------------------


def endings(form: str | None, cells: int) -> tuple[str, ...]:
    """Which files a form asks for; None: Parquet, and CSV if it is small."""
    if form is None:
        form = "both" if cells <= CSV_CELLS else "parquet"
    return {"none": (), "both": ("parquet", "csv")}.get(form, (form,))


class TableWriter(NamedTuple):
    folder: Path
    found: Decisions
    form: str | None
    # metadata: which run it is
    about: Mapping[str, Any]
    # on whose clock dates are written, with their offset
    zone: str | None = None

    def write(self, name: str, rounds: Int64s, columns: Mapping[str, Any], about: str) -> None:
        """NAME.parquet and NAME.csv, those that are asked for: rows of these rounds."""
        import_extra("pandas", "Writing tables", "app")
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
            head = {"format": DECISIONS_FORMAT, "versions": checkpoint.writer(), "about": about}
            metadata = {"tidewolf": json.dumps({**head, **self.about})}
            schema = pyarrow.schema([(key, first), *kinds], metadata)
            path = self.folder / f"{name}.parquet"
            with checkpoint.writing(path) as file, parquet.ParquetWriter(file, schema) as writer:
                for part in parts(values):
                    writer.write_table(pyarrow.table(part, schema=schema))
        if "csv" in asked:
            with checkpoint.writing(self.folder / f"{name}.csv") as file:
                for i, part in enumerate(parts(texts)):
                    file.write(_csv(part, header=i == 0))

    def _key(self) -> tuple[str, NDArray, NDArray]:
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
        columns = dict(zip(self.found.names, self.found.table.T, strict=True))
        shares = "entries of flows and splits are shares of their commodity's demand, not volumes"
        self.write(name, np.arange(len(self.found)), columns, shares)

    def write_paths(self, problem: Problem, smallest: float = 0.0) -> list[str]:
        """The paths of flows; nothing if decisions are none. Returns notes on what is absent."""
        count, found = commodities(problem), list[tuple[int, PathShare]]()
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
        columns = {
            "commodity": [one.commodity for _, one in found],
            "path": [one.name for _, one in found],
            "share": np.array([one.share for _, one in found], dtype=np.float64),
            "volume": np.array([one.volume for _, one in found], dtype=np.float64),
        }
        about = "share: of the commodity's demand; volume: share times demand"
        self.write(PATHS, np.array([t for t, _ in found]), columns, about)
        note = f"The tables of paths have one round of every {every:,}; decisions are all there."
        return [note] if every > 1 else []

    def write_limits(self, problem: Problem, run: Run) -> list[str]:
        """The limits that these decisions violated. Returns notes on what is absent."""
        several = run.limit_names not in ((), ("limit 1",))
        names: Sequence[str] = run.limit_names if several else (ONLY_LIMIT,)
        rounds = np.flatnonzero(run.violations > 0.0)
        every = max(1, math.ceil(len(rounds) * max(50, len(names)) / MOST_LIMITS))
        net, constraints, links = problem.network, problem.stream.constraints, None
        if net is not None and isinstance(constraints, LoadLimit):
            links = np.array([net.link_names.index(name) for name in constraints.names])
        elif net is not None and isinstance(constraints, Capacity):
            links = net.incidence.tocsc().indices
        most = float(run.violations.max(initial=0.0))
        found = list[tuple[Any, ...]]()
        for t in rounds[::every].tolist():
            one = constraints.view(slice(t, t + 1))
            x = np.array(self.found.points[t])
            pieces = one.pieces(x)
            values = arrays.to_numpy(one.values(x) if pieces is None else pieces).reshape(-1)
            violated = np.flatnonzero(is_broken(values, most if len(values) == 1 else 0.0))
            volumes: list[Any] = []
            if links is not None:
                loads = net.loads(x, None if problem.demands is None else problem.demands[t])[links]
                bound = getattr(one, "capacities" if isinstance(one, LoadLimit) else "c")
                capacities = net.unit * arrays.to_numpy(bound).reshape(-1)
                volumes = [_rounded(each) for each in (loads, capacities, values * net.unit)]
            found += [
                (t, names[i], values[i], *(at[i] for at in volumes)) for i in violated.tolist()
            ]
        of_volumes = () if links is None else ("load", "capacity", "over_volume")
        columns: dict[str, Any] = {"limit": [row[1] for row in found]}
        for i, name in enumerate(("over", *of_volumes), start=2):
            columns[name] = np.array([row[i] for row in found], dtype=np.float64)
        about = "over: in the unit of the limits" + "; the rest: volumes" * bool(of_volumes)
        self.write(LIMITS, np.array([row[0] for row in found], dtype=np.int64), columns, about)
        note = f"The tables of limits have one of every {every:,} rounds that broke some."
        return [note] if every > 1 else []


def _rounded(volumes: Floats) -> list[float]:
    return [float(f"{volume:.{_DIGITS}g}") for volume in volumes]


def write_tunnels(folder: Path, problem: Problem) -> None:
    net = problem.network
    if net is None or net.tunnels is None:
        return
    paths = net.tunnels.paths
    columns = {
        "commodity": [net.demands[j].name for j in net.owner],
        "tunnel": net.names,
        "path": [
            PathShare("", each.nodes, 0, 0, net._distinct_names(each.links)).name for each in paths
        ],
        "length": [path.length for path in paths],
    }
    checkpoint.write(folder / "tunnels.csv", _csv(columns))


def _csv(columns: Mapping[str, Any], *, header: bool = True) -> bytes:
    """Rows of CSV, in which no name is a formula."""
    import pandas

    table = pandas.DataFrame(columns).rename(columns=csv_cell)
    for name in table.select_dtypes(exclude="number"):
        table[name] = table[name].map(csv_cell)
    text: str = table.to_csv(index=False, header=header, lineterminator="\n")
    return text.encode()


# --- paths ----------------------------------------------------------------------------------------


def commodities(problem: Problem) -> int:
    K = problem.K
    if problem.network is not None:
        return len(problem.network.demands)
    return 1 if isinstance(K, FlowPolytope) else len(K.demands) if isinstance(K, MultiFlow) else 0


def large(routes: list[PathShare], smallest: float) -> list[PathShare]:
    """The paths of a decision with at least this share, of each commodity the largest at least, and
    what the others carried added to them in proportion.
    """
    if smallest == 0.0:
        return routes
    found = list[PathShare]()
    for commodity in dict.fromkeys(route.commodity for route in routes):
        own = [route for route in routes if route.commodity == commodity]
        kept = [route for route in own if route.share >= smallest]
        kept = kept or [max(own, key=lambda route: route.share)]
        whole = sum(route.share for route in own) / sum(route.share for route in kept)
        found += [at._replace(share=at.share * whole, volume=at.volume * whole) for at in kept]
    return found


# --- while a run is played ------------------------------------------------------------------------


@final
class DecisionLog:
    def __init__(self, path: Path, shape: Shape, rounds: int) -> None:
        """Continue after so many rounds; `holds` is whether the file has them."""
        self.path, self.shape, self._entries = path, tuple(shape), math.prod(shape)
        self._head = f"tidewolf decisions {LOG_FORMAT} {self._entries}\n".encode()
        if rounds == 0:
            path.write_bytes(self._head)
        self.holds = self.points(rounds) is not None
        if self.holds:
            os.truncate(path, len(self._head) + rounds * self._entries * _NUMBER.itemsize)
            self._file = open(path, "ab")  # noqa: SIM115  # see `close`

    def see(self, points: Array, rounds: int) -> None:
        """The next rounds, played at one point, (1, *shape), or at one point per round,
        (rounds, *shape).
        """
        rows = arrays.to_numpy(points).astype(_NUMBER, copy=False).reshape(-1, self._entries)
        with jobs.naming(self.path):
            self._file.write(rows.tobytes() if len(rows) == rounds else rows.tobytes() * rounds)

    def sync(self) -> None:
        with jobs.naming(self.path):
            self._file.flush()
            os.fsync(self._file.fileno())

    def close(self) -> None:
        with jobs.naming(self.path):
            self._file.close()

    def points(self, rounds: int) -> Floats | None:
        """The points of the first rounds, (rounds, *shape), read from disk on access; None if the
        file does not have them.
        """
        shape = (rounds, *self.shape)
        with suppress(OSError, ValueError), open(self.path, "rb") as file:
            if file.read(len(self._head)) == self._head:
                empty = math.prod(shape) == 0
                return (
                    np.empty(shape) if empty else np.memmap(file, _NUMBER, "r", file.tell(), shape)
                )
        return None


# --- a preview ------------------------------------------------------------------------------------
# Nothing is written. The duration is estimated from a few timed rounds of each learner. Later
# rounds may take longer, and the best point in hindsight and the page are not counted.

# Rounds, and seconds, for which each learner is timed at most; its first updates do not count.
_TIMED, _PATIENCE, _LOADING = 200, 2.0, 3


def preview(
    requested: Experiment,
    resolved: Experiment,
    problem: Problem,
    folder: Path,
    incumbent: Any = None,
) -> dict[str, Any]:
    stamps, K, net = problem.stream.stamps, problem.K, problem.network
    times = time_texts(stamps) if stamps is not None and len(stamps) else [None]
    learners = [_timed(resolved, entrant, problem) for entrant in resolved.entrants()]
    constraints, limits, kind = problem.stream.constraints, 0, "none"
    if not isinstance(constraints, batch.Unlimited):
        pieces, kind = constraints.view(slice(0, 1)).pieces(K.center), _kind(constraints)
        limits = 1 if pieces is None else int(arrays.to_numpy(pieces).shape[1])
    shares = "" if net is None else f"shares of the demand of {len(net.demands):,} commodities: "
    return {
        "experiment": requested.name,
        "title": requested.title or problem.title,
        "set": f"{shares}{K!r}",
        "dimension": int(K.dimension),
        "entries": math.prod(K.shape),
        "rounds": len(problem),
        "first": times[0],
        "last": times[-1],
        "losses": _kind(problem.stream.losses),
        "limits": kind,
        "limits_a_round": limits,
        "notes": list(problem.notes),
        "seeds": list(requested.seeds),
        "incumbent": "" if incumbent is None else " ".join(incumbent.said),
        "learners": learners,
        "left_out": dict(resolved.left_out),
        "folder": str(folder),
        "files": _files(resolved, problem),
        "seconds": sum(each["seconds"] for each in learners),
    }


def _kind(functions: Any) -> str:
    about = (type(functions).__doc__ or "").strip().split("\n")[0]
    return f"{type(functions).__name__}: {about.removesuffix('.')}"


def _files(experiment: Experiment, problem: Problem) -> list[str]:
    """The files that a run of a resolved experiment leaves; CSV files of paths and limits that
    turn out to be large are left out.
    """
    form, cells = experiment.decisions, len(problem) * math.prod(problem.K.shape)
    first, *others = [each.label for some in jobs.plan_run(experiment) for each in some]
    tables = {
        DECISIONS: endings(form, cells),
        LIMITS: endings(form, 0),
        **{f"{DECISIONS}-{label}": endings(form or "parquet", cells) for label in others},
        **({PATHS: endings(form, 0)} if commodities(problem) else {}),
    }
    if form != "none" and problem.network is not None and problem.network.tunnels is not None:
        tables["tunnels"] = ("csv",)
    return [
        *(EXPERIMENT_FILE, "report.html", SUMMARY_FILE, ROUNDS_FILE),
        *(f"report-seed-{seed}.html" for seed in experiment.seeds[1:]),
        *(f"{name}.{ending}" for name, found in tables.items() for ending in found),
        *(f"{CHECKPOINTS_FOLDER}/{label}" for label in (first, *others)),
    ]


def _timed(experiment: Experiment, entrant: Choice, problem: Problem) -> dict[str, Any]:
    learner = experiment.learner(entrant, problem, experiment.seeds[0])
    recording, begun = Recording(learner, problem.stream), time.monotonic()
    loaded = 0, 0.0
    for update, done in enumerate(recording.advance(), start=1):
        if update == _LOADING and not recording.done:
            loaded = done, recording.seconds
        if done >= _TIMED or time.monotonic() - begun > _PATIENCE:
            break
    share = (recording.seconds - loaded[1]) / max(1, recording.t - loaded[0])
    settings = {key: list(at) if isinstance(at, tuple) else at for key, at in entrant.settings}
    seconds = share * len(problem) * len(experiment.seeds)
    return {"name": entrant.name, "settings": settings, "seconds": seconds}
