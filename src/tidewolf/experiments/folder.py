"""A run folder: an experiment and all that came of it.

It can be killed at any moment and resumed: to the bit on the same machine and versions.

    experiment.toml      the experiment as resolved, under a line with its checksum
    checkpoints/NAME     one for each learner and seed: the recording so far, replaced whole every
                         few seconds; NAME.decisions beside it has what was played, append-only
    decisions.parquet    what the first run decided: time (or round, from 1), then one column an
                         entry; decisions.csv beside it where that is small, decisions-NAME.parquet
                         for other runs; paths.parquet and paths.csv where decisions are flows
    limits.parquet       which limits the first run broke, when, and by how much; limits.csv beside
                         it where that is small
    tunnels.csv          the path of each column of decisions, where demands are split over tunnels
    rounds.parquet       loss, violation, oracle calls, distance, churn and linear programs of every
                         round (from 1) of every run, with the caller's time where there is one
    report.html          the page; report-seed-S.html for seeds after the first
    report.json          what that page shows, from which `tidewolf report` writes it again
    summary.json         the numbers of every run; written last, so where it is the folder is
                         complete

Every file is written whole or not at all, and says which format it has and which tidewolf wrote it.
The folder is locked while a run is begun or played in it: a second process is refused.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias, final

import numpy as np

from tidewolf import __version__
from tidewolf.core import checkpoint
from tidewolf.core.arguments import as_flag, as_path, shown
from tidewolf.core.errors import (
    BrokenFile,
    Interrupted,
    InvalidInput,
    MissingExtra,
    NewerFormat,
    OlderFormat,
    WrongType,
)
from tidewolf.core.types import Floats, NDArray
from tidewolf.evaluation.decisions import Decisions, entry_names
from tidewolf.evaluation.metrics import round_columns
from tidewolf.evaluation.recording import Recording, RunProgress
from tidewolf.evaluation.run import Run, finished
from tidewolf.experiments.decision_files import (
    DECISIONS,
    write_decisions,
    write_paths,
    write_tunnels,
)
from tidewolf.experiments.decision_log import LOG_ENDING, DecisionLog
from tidewolf.experiments.experiment import Experiment
from tidewolf.experiments.incumbent import play_incumbent, read_incumbent, savings
from tidewolf.experiments.limit_files import LIMITS, write_limits
from tidewolf.experiments.lock import locked
from tidewolf.experiments.plan import PlannedRun, plan_run
from tidewolf.experiments.play import Player, advance, begin, cumulative_loss
from tidewolf.experiments.reading import read
from tidewolf.hindsight.best import Comparator
from tidewolf.problems import Problem

RUN_FORMAT = 3
EXPERIMENT_FILE = "experiment.toml"
CHECKPOINTS_FOLDER = "checkpoints"
ROUNDS_FILE = "rounds.parquet"
SUMMARY_FILE = "summary.json"
REPORT_FILE = "report.html"
_HEAD = re.compile(r"# tidewolf run (\d+), written by tidewolf (\S+), sha256 ([0-9a-f]{64})")

Follow: TypeAlias = "Callable[[str, RunProgress, Floats | None], Callable[[RunProgress], None]]"
"""Told a run's name, where it begins and the comparator's cumulative loss; answers what is told how
far it is.
"""


class Finished(NamedTuple):
    """All runs of one seed."""

    seed: int
    problem: Problem
    cells: tuple[PlannedRun, ...]
    runs: tuple[Run, ...]
    incumbent: Run | None = None
    """what the decisions that were given came to"""

    @property
    def shown(self) -> tuple[Run, ...]:
        """Those that tables and pages show: the incumbent is one more line."""
        return self.runs if self.incumbent is None else (*self.runs, self.incumbent)

    @property
    def saved(self) -> str:
        """What the first run would have saved, in a sentence; empty without an incumbent."""
        if self.incumbent is None:
            return ""
        first = self.cells[0].entrant.name
        return savings(self.runs[0], first, self.incumbent, self.problem.network)

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader should know first: what would have been saved, and of the problem."""
        return (*([self.saved] if self.saved else []), *self.problem.notes)


@final
@dataclass(frozen=True)
class RunFolder:
    """A folder and the resolved experiment in it: what `tidewolf run` makes and `resume` goes on
    with. `create` begins one, `open` finds one again.

    Parameters
    ----------
    path : Path
        Where it is.
    experiment : Experiment
        What is run, with nothing left open.

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
    def create(cls, path: Path, experiment: Experiment, *, force: bool = False) -> RunFolder:
        """A folder for a resolved experiment, with nothing played yet.

        Parameters
        ----------
        path : str or Path
            Where it goes; it is made where it is not there.
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
            Where the path is a file, holds a run, or another process is at work in it.
        """
        if not isinstance(experiment, Experiment):
            raise WrongType(f"A run folder is that of an Experiment, not of {shown(experiment)}.")
        path = as_path(path, "The path of a run folder")
        require_no_run(path, as_flag(force, "force"))
        (path / CHECKPOINTS_FOLDER).mkdir(parents=True, exist_ok=True)
        with locked(path, "run", again=True):
            require_no_run(
                path, force
            )  # what another process began meanwhile is not emptied unasked
            _clear(path)
            text = experiment.toml()
            head = (
                f"# tidewolf run {RUN_FORMAT}, written by tidewolf {__version__}, sha256 "
                f"{_digest(text)}\n"
            )
            checkpoint.write(path / EXPERIMENT_FILE, (head + text).encode())
            return cls.open(path)

    @classmethod
    def open(cls, path: Path) -> RunFolder:
        """The folder of a run that was begun.

        Parameters
        ----------
        path : str or Path
            Where it is.

        Returns
        -------
        RunFolder
            With the experiment as it was resolved then.

        Raises
        ------
        InvalidInput
            Where no run was begun there.
        BrokenFile, NewerFormat, OlderFormat
            If its experiment was changed, or is of another format.
        """
        path = as_path(path, "The path of a run folder")
        file = path / EXPERIMENT_FILE
        try:
            head, _, text = file.read_bytes().decode().partition("\n")
        except FileNotFoundError:
            raise InvalidInput(
                f"{path} is no run folder: it has no {EXPERIMENT_FILE}. `tidewolf run` makes one."
            ) from None
        except (OSError, UnicodeDecodeError) as error:
            raise BrokenFile(f"{file} cannot be read: {error}.") from None
        found = _HEAD.fullmatch(head)
        if found is None:
            raise BrokenFile(
                f"{file}, line 1: no run begins its experiment so; the file was changed, or is not "
                "of a run."
            )
        if int(found[1]) > RUN_FORMAT:
            raise NewerFormat(
                f"{file} has format {found[1]}; this tidewolf reads up to {RUN_FORMAT}. Install a "
                "newer tidewolf."
            )
        if int(found[1]) < RUN_FORMAT:
            raise OlderFormat(
                f"{file} has format {found[1]}, which an earlier tidewolf wrote; this tidewolf "
                f"reads format {RUN_FORMAT}. Run the experiment in a new folder."
            )
        if _digest(text) != found[3]:
            raise BrokenFile(
                f"{file} is truncated or was changed: its checksum does not match. Run changed "
                "copies elsewhere."
            )
        return cls(path, read(f"\n{text}", file))

    def locked(self) -> AbstractContextManager[None]:
        """The folder's lock, for whoever plays and then writes what came of it; each step takes it
        for itself where nobody holds it.
        """
        return locked(self.path, "run", again=True)

    @property
    def complete(self) -> bool:
        """Whether all is played and written."""
        return (self.path / SUMMARY_FILE).exists()

    def play(
        self,
        *,
        follow: Follow | None = None,
        stopping: Callable[[], bool] = lambda: False,
        first: Problem | None = None,
    ) -> list[Finished]:
        """Play what is not played yet; a run that was interrupted resumes.

        Parameters
        ----------
        follow : callable, optional
            Told a run's name, where it begins and the comparator's cumulative loss; answers with
            what is told, a few times a second, how far the run is.
        stopping : callable
            Asked after every update; once it answers True the run is saved and interrupted.
        first : Problem, optional
            The first seed's problem, where it is at hand.

        Returns
        -------
        list of Finished
            One for each seed, with its problem and its runs.

        Raises
        ------
        Interrupted
            Where `stopping` said so.
        OtherSettings
            Where the tables of the experiment were changed since.
        """
        with self.locked():
            return self._play(follow, stopping, first)

    def recorded(self) -> list[Finished]:
        """What a complete run has recorded, with the data it was played on, which is read again.

        Returns
        -------
        list of Finished
            One for each seed, with its problem and its runs.

        Raises
        ------
        InvalidInput
            Where the run is not complete.
        """
        if not self.complete:
            raise InvalidInput(
                f"{self.path} holds a run that is not complete; `tidewolf resume {self.path}` goes "
                "on with it."
            )
        return self.play()

    def _play(
        self, follow: Follow | None, stopping: Callable[[], bool], first: Problem | None
    ) -> list[Finished]:
        # what a process left that was killed while it wrote
        for part in self.path.rglob(".*.part"):
            part.unlink()
        found: list[Finished] = []
        player = Player()
        for cells in plan_run(self.experiment):
            ready = player.prepared(cells[0].cell, None if found else first)
            problem, seed = ready.problem, cells[0].seed
            recordings = [self._recording(planned, problem) for planned in cells]
            hindsight = cumulative_loss(ready)
            for planned, recording in zip(cells, recordings, strict=True):
                moved = (
                    (lambda moment: None)
                    if follow is None
                    else follow(planned.entrant.name, recording.progress, hindsight)
                )
                self._advance(planned, recording, moved, stopping)
            runs = tuple(
                replace(finished(recording, ready.best), decisions=_decisions(recording, problem))
                for recording in recordings
            )
            incumbent = self._incumbent(problem, ready.best)
            found.append(Finished(seed, problem, cells, runs, incumbent))
        return found

    def _incumbent(self, problem: Problem, best: Comparator | None) -> Run | None:
        """What the decisions that were given come to, where there are any."""
        file = self.experiment.incumbent
        if file is None:
            return None
        return play_incumbent(read_incumbent(file, problem, self.experiment.files), problem, best)

    def _recording(self, planned: PlannedRun, problem: Problem) -> Recording:
        learner = self.experiment.learner(planned.entrant, problem, planned.seed)
        recording = begin(learner, problem, self._checkpoint(planned), planned.cell.origin)
        if self.experiment.decisions != "none":
            file = self.path / CHECKPOINTS_FOLDER / f"{planned.label}{LOG_ENDING}"
            log = DecisionLog(file, recording.stream.shape, recording.t)
            recording.decisions = log if log.holds else None
        return recording

    def _advance(
        self,
        planned: PlannedRun,
        recording: Recording,
        moved: Callable[[RunProgress], None],
        stopping: Callable[[], bool],
    ) -> None:
        log = recording.decisions if isinstance(recording.decisions, DecisionLog) else None
        try:
            done = advance(
                recording,
                self._checkpoint(planned),
                seconds=self.experiment.checkpoint_seconds,
                ending=True,
                moved=moved,
                saving=(lambda: None) if log is None else log.sync,
                stopping=stopping,
            )
        finally:
            if log is not None:
                log.close()
        if not done:
            rounds = f"{recording.t:,} of {len(recording.stream):,} rounds"
            raise Interrupted(
                f"Interrupted after {rounds} of {planned.entrant.name}; `tidewolf resume "
                f"{self.path}` goes on from there."
            )

    def _checkpoint(self, planned: PlannedRun) -> Path:
        return self.path / CHECKPOINTS_FOLDER / planned.label

    def write_rounds(self, found: Sequence[Finished]) -> None:
        """Every round's numbers in one table, rounds.parquet; rounds count from 1.

        Parameters
        ----------
        found : sequence of Finished
            What `play` gave.
        """
        try:
            import pyarrow
            from pyarrow import parquet
        except ImportError:
            raise MissingExtra(
                'Writing Parquet needs pyarrow: pip install "tidewolf[app]".'
            ) from None
        parts = [
            pyarrow.table(
                {
                    "run": np.full(run.rounds, cell.number),
                    "learner": pyarrow.array([cell.entrant.name] * run.rounds).dictionary_encode(),
                    "seed": np.full(run.rounds, cell.seed),
                    "round": np.arange(1, run.rounds + 1),
                    **_times(run),
                    **round_columns(run, kept=True),
                }
            )
            for each in found
            for cell, run in zip(each.cells, each.runs, strict=True)
        ]
        told = {
            "format": RUN_FORMAT,
            "experiment": self.experiment.name,
            "versions": checkpoint.writer(),
        }
        table = (
            pyarrow.concat_tables(parts)
            .unify_dictionaries()
            .replace_schema_metadata({"tidewolf": json.dumps(told)})
        )
        buffer = io.BytesIO()
        parquet.write_table(table, buffer)
        checkpoint.write(self.path / ROUNDS_FILE, buffer.getvalue())

    def write_decisions(self, found: Sequence[Finished]) -> list[str]:
        """What every run decided, in the files that are wanted: decisions.parquet and decisions.csv
        of the first run, paths.parquet and paths.csv where it decides flows, limits.parquet and
        limits.csv with the limits that it broke, and decisions-NAME.parquet of each other run.

        Parameters
        ----------
        found : sequence of Finished
            What `play` gave.

        Returns
        -------
        list of str
            What is not there, in sentences.
        """
        form, notes = self.experiment.decisions, list[str]()
        if form == "none":
            return []
        write_tunnels(self.path, found[0].problem)
        for each in found:
            for cell, run in zip(each.cells, each.runs, strict=True):
                if run.decisions is None:
                    notes.append(
                        f"The decisions of {cell.label} are not there: an earlier tidewolf began "
                        "the run."
                    )
                    continue
                told = {
                    "experiment": self.experiment.name,
                    "learner": cell.entrant.name,
                    "seed": cell.seed,
                }
                first = cell.number == 1
                name = DECISIONS if first else f"{DECISIONS}-{cell.label}"
                small = form or (None if first else "parquet")
                zone = self.experiment.files.timezone
                write_decisions(self.path, name, run.decisions, small, told, zone)
                if first:
                    smallest = self.experiment.smallest_path
                    notes += write_paths(
                        self.path, each.problem, run.decisions, form, told, zone, smallest
                    )
                    notes += write_limits(
                        self.path, each.problem, run, run.decisions, form, told, zone
                    )
        return notes

    def write_summary(self, found: Sequence[Finished]) -> None:
        """The numbers of every run, summary.json. Where they are, all else is.

        Parameters
        ----------
        found : sequence of Finished
            What `play` gave.
        """
        summary = {
            "format": RUN_FORMAT,
            "experiment": self.experiment.name,
            "rounds": self.experiment.rounds,
            "seed": self.experiment.seeds[0],
            "seeds": list(self.experiment.seeds),
            "versions": checkpoint.writer(),
            "runs": self.records(found),
            **incumbent_record(found),
        }
        checkpoint.write(
            self.path / SUMMARY_FILE,
            (json.dumps(summary, indent=2, allow_nan=False) + "\n").encode(),
        )

    def records(self, found: Sequence[Finished]) -> list[dict[str, Any]]:
        """Every run's numbers as plain data.

        Parameters
        ----------
        found : sequence of Finished
            What `play` gave.

        Returns
        -------
        list of dict
            One for each run, as in `tidewolf run --json`.
        """
        return [
            {
                "experiment": self.experiment.name,
                **run.summary(),
                "seed": cell.seed,
                "settings": cell.entrant.given,
            }
            for each in found
            for cell, run in zip(each.cells, each.runs, strict=True)
        ]

    @property
    def decisions_file(self) -> Path | None:
        """Where what the first run decided is, as CSV where that is there; None where it is not."""
        files = (self.path / f"{DECISIONS}.{ending}" for ending in ("csv", "parquet"))
        return next((file for file in files if file.exists()), None)

    def page(self, seed: int) -> Path:
        """Where the page of a seed goes.

        Parameters
        ----------
        seed : int
            One of the experiment's.

        Returns
        -------
        Path
            report.html for the first seed, report-seed-S.html for others.
        """
        return self.path / (
            REPORT_FILE if seed == self.experiment.seeds[0] else f"report-seed-{seed}.html"
        )

    def figures(self, seed: int) -> Path:
        """Where the figures of a seed go, if they are wanted as files.

        Parameters
        ----------
        seed : int
            One of the experiment's.

        Returns
        -------
        Path
            A folder: figures for the first seed, figures-seed-S for others.
        """
        return self.path / (
            "figures" if seed == self.experiment.seeds[0] else f"figures-seed-{seed}"
        )


def incumbent_record(found: Sequence[Finished]) -> dict[str, Any]:
    """What the incumbent came to, and what the first run would have saved, as plain data; nothing
    where there is none.
    """
    first = found[0]
    if first.incumbent is None:
        return {}
    told = first.incumbent.summary()
    kept = (
        "rounds",
        "loss",
        "churn",
        "regret",
        "hindsight",
        "violation",
        "broken",
        "max_infeasibility",
    )
    return {"incumbent": {**{key: told[key] for key in kept}, "saved": first.saved}}


def require_no_run(path: Path, force: bool) -> None:
    """Refuse a path that is a file, or a folder that holds a run, unless that is to be
    overwritten.
    """
    if path.exists() and not path.is_dir():
        raise InvalidInput(f"{path} is a file; a folder is needed.")
    if force or not (there := [file.name for file in _ours(path)]):
        return
    if SUMMARY_FILE in there or EXPERIMENT_FILE not in there:
        what = "a run" if SUMMARY_FILE in there else ", ".join(sorted(there))
        raise InvalidInput(
            f"{path} holds {what} already; name another folder, or overwrite with --force."
        )
    raise InvalidInput(
        f"{path} holds a run that is not complete: `tidewolf resume {path}` goes on with it, "
        "--force begins anew."
    )


def free(path: Path) -> Path:
    """The path, or the first of path-2, path-3, ... where no run is."""
    number, found = 1, path
    while _ours(found) or (found.exists() and not found.is_dir()):
        number += 1
        found = path.with_name(f"{path.name}-{number}")
    return found


def _ours(path: Path) -> list[Path]:
    """The files of a run in a folder, the one that makes it complete first."""
    names = [path / name for name in (SUMMARY_FILE, EXPERIMENT_FILE, ROUNDS_FILE)]
    tables = (DECISIONS, f"{DECISIONS}-[0-9]*-seed-*", "paths", LIMITS)
    both = (f"{name}.{ending}" for name in tables for ending in ("csv", "parquet"))
    patterns = ("report*.html", "report*.json", "tunnels.csv", *both)
    more = (file for pattern in patterns for file in sorted(path.glob(pattern)))
    return [file for file in (*names, *more) if file.exists()]


def _clear(path: Path) -> None:
    for file in (*_ours(path), *(path / CHECKPOINTS_FOLDER).glob("*-seed-*")):
        file.unlink()


def _times(run: Run) -> dict[str, NDArray]:
    """The caller's times as a column, where rounds have some."""
    stamps = run.stream.stamps
    return {} if stamps is None else {"time": stamps[: run.rounds]}


def _decisions(recording: Recording, problem: Problem) -> Decisions | None:
    """What a recording decided, on disk; None where that was not kept."""
    log, stream = recording.decisions, recording.stream
    points = log.points(recording.t) if isinstance(log, DecisionLog) else None
    if points is None:
        return None
    names = entry_names(problem.K, problem.labels)
    return Decisions(np.arange(recording.t), stream.stamps, names, points)


def _bytes(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise BrokenFile(f"{file} cannot be read: {error.strerror}.") from None


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
