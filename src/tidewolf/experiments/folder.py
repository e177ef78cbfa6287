"""A run folder: an experiment and its results.

It can be killed at any moment and resumed: to the bit on the same machine and versions.

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
"""

from __future__ import annotations

import hashlib
import io
import json
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias, final

import numpy as np

from tidewolf import __version__
from tidewolf.core import checkpoint
from tidewolf.core.arguments import as_flag, as_path, shown
from tidewolf.core.errors import BrokenFile, Interrupted, InvalidInput, WrongType
from tidewolf.evaluation.decisions import Decisions, entry_names
from tidewolf.evaluation.metrics import round_columns
from tidewolf.evaluation.recording import RunProgress
from tidewolf.evaluation.run import Run, finished
from tidewolf.experiments import decision_files, jobs
from tidewolf.experiments.decision_files import DECISIONS, DecisionLog, TableWriter
from tidewolf.experiments.experiment import Experiment
from tidewolf.experiments.incumbent import play_incumbent, read_incumbent, savings
from tidewolf.experiments.jobs import CHECKPOINTS_FOLDER, Job, Prepared, locked
from tidewolf.experiments.loading import read
from tidewolf.problems import Problem

RUN_FORMAT = 3
EXPERIMENT_FILE = "experiment.toml"
ROUNDS_FILE = "rounds.parquet"
SUMMARY_FILE = "summary.json"
REPORT_FILE = "report.html"
_HEAD = re.compile(r"# tidewolf run (\d+), written by tidewolf (\S+), sha256 ([0-9a-f]{64})")
_OF_INCUMBENT = (
    "rounds", "loss", "churn", "regret", "hindsight", "violation", "broken", "max_infeasibility",
)  # fmt: skip

RunFollow: TypeAlias = Callable[[Job, RunProgress], None]
"""Called a few times per second with a job, and how far it is."""


class Finished(NamedTuple):
    """All runs of one seed."""

    seed: int
    problem: Problem
    jobs: tuple[Job, ...]
    runs: tuple[Run, ...]
    incumbent: Run | None = None
    """the run of the decisions that were given"""

    @property
    def shown(self) -> tuple[Run, ...]:
        """The runs that tables and pages show: those of the learners, then the incumbent's."""
        return self.runs if self.incumbent is None else (*self.runs, self.incumbent)

    @property
    def saved(self) -> str:
        """What the first run would have saved; empty without an incumbent."""
        if self.incumbent is None:
            return ""
        first = self.jobs[0].entrant.name
        return savings(self.runs[0], first, self.incumbent, self.problem.network)

    @property
    def notes(self) -> tuple[str, ...]:
        """What would have been saved, and the notes of the problem."""
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
    def create(cls, path: Path, experiment: Experiment, *, force: bool = False) -> RunFolder:
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
        if not isinstance(experiment, Experiment):
            raise WrongType(f"A run folder is that of an Experiment, not of {shown(experiment)}.")
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
    def open(cls, path: Path) -> RunFolder:
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
            made = f"it has no {EXPERIMENT_FILE}. `tidewolf run` makes one"
            raise InvalidInput(f"{path} is no run folder: {made}.") from None
        except (OSError, UnicodeDecodeError) as error:
            raise BrokenFile(f"{file} cannot be read: {error}.") from None
        found, otherwise = _HEAD.fullmatch(head), "Run the experiment in a new folder."
        if found is not None:
            jobs.require_format(file, int(found[1]), RUN_FORMAT, otherwise)
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
        progress: RunFollow | None = None,
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
                    decided = read_incumbent(file, ready.problem, self.experiment.files)
                    beside = play_incumbent(decided, ready.problem, ready.best)
                found.append(Finished(some[0].seed, ready.problem, some, runs, beside))
            return found

    def recorded(self) -> list[Finished]:
        """The recorded runs of a complete folder, with the data they were played on, which is read
        again.

        Returns
        -------
        list of Finished
            One per seed, with its problem and its runs.

        Raises
        ------
        InvalidInput
            If the run is not complete.
        """
        self.require_complete()
        return self.play()

    def require_complete(self) -> None:
        """Refuse a folder whose run has not ended."""
        if not self.complete:
            cure = f"`tidewolf resume {self.path}` completes it"
            raise InvalidInput(f"{self.path} holds a run that is not complete; {cure}.")

    def _play(
        self, job: Job, ready: Prepared, progress: RunFollow | None, stopping: Callable[[], bool]
    ) -> Run:
        """The run of one job, from its checkpoint if there is one."""
        problem, file = ready.problem, self.path / CHECKPOINTS_FOLDER / job.label
        learner = job.source.learner(job.entrant, problem, job.seed)
        recording, log = jobs.begin(learner, problem, file, job.origin), None
        if self.experiment.decisions != "none":
            beside = file.with_name(f"{job.label}{decision_files.LOG_ENDING}")
            log = DecisionLog(beside, recording.stream.shape, recording.t)
            log = recording.decisions = log if log.holds else None
        try:
            done = jobs.advance(
                recording,
                file,
                seconds=self.experiment.checkpoint_seconds,
                ending=True,
                moved=None if progress is None else partial(progress, job),
                saving=(lambda: None) if log is None else log.sync,
                stopping=stopping,
            )
        finally:
            if log is not None:
                log.close()
        if not done:
            ended = f"{recording.t:,} of {len(recording.stream):,} rounds of {job.entrant.name}"
            raise Interrupted(f"Interrupted after {ended}; `tidewolf resume {self.path}` resumes.")
        points, decisions = None if log is None else log.points(recording.t), None
        if points is not None:
            names, stamps = entry_names(problem.K, problem.labels), recording.stream.stamps
            decisions = Decisions(np.arange(recording.t), stamps, names, points)
        return replace(finished(recording, ready.best), decisions=decisions)

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
        buffer = io.BytesIO()
        metadata = {"tidewolf": json.dumps(self._head())}
        parquet.write_table(table.replace_schema_metadata(metadata), buffer)
        checkpoint.write(self.path / ROUNDS_FILE, buffer.getvalue())

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
        decision_files.write_tunnels(self.path, found[0].problem)
        for problem, job, run in _each(found):
            if run.decisions is None:
                notes.append(f"The decisions of {job.label} are not there: its file was removed.")
                continue
            head: dict[str, Any] = {"experiment": self.experiment.name, "seed": job.seed}
            head |= {"learner": job.entrant.name}
            first = job.number == 1
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
        name = {"experiment": self.experiment.name}
        runs = [
            {**name, **run.summary(), "seed": job.seed, "settings": job.entrant.given}
            for _, job, run in _each(found)
        ]
        first = found[0]
        if first.incumbent is None:
            return {"runs": runs}
        numbers = first.incumbent.summary()
        kept = {key: numbers[key] for key in _OF_INCUMBENT}
        return {"runs": runs, "incumbent": {**kept, "saved": first.saved}}

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
    if path.exists() and not path.is_dir():
        raise InvalidInput(f"{path} is a file; a folder is needed.")
    names = [] if force else [file.name for file in _files_of(path)]
    if names:
        what = f"a run that is not complete (`tidewolf resume {path}` completes it)"
        if names[0] != EXPERIMENT_FILE:
            what = "a run" if SUMMARY_FILE in names else ", ".join(sorted(names))
        raise InvalidInput(f"{path} holds {what} already. Use another folder, or --force.")


def free(path: Path) -> Path:
    """The path, or the first of path-2, path-3, ... without a run."""
    number, found = 1, path
    while _files_of(found) or (found.exists() and not found.is_dir()):
        number += 1
        found = path.with_name(f"{path.name}-{number}")
    return found


def _files_of(path: Path) -> list[Path]:
    """The files of a run in a folder, the one that makes it complete first."""
    tables = ("decisions", "decisions-[0-9]*-seed-*", "paths", "limits")
    patterns = [SUMMARY_FILE, EXPERIMENT_FILE, ROUNDS_FILE, "report*.html", "report*.json"]
    patterns += ["tunnels.csv", *(f"{name}.{end}" for name in tables for end in ("csv", "parquet"))]
    return [file for pattern in patterns for file in sorted(path.glob(pattern))]


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
