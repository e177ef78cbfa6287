"""One job is one experiment, one learner with its settings, and one seed. Grids of jobs are

    run         =  seeds x learners                         each recording is kept (folder.py)
    sweep       =  horizons x seeds x learners x knobs      each row of numbers is kept (runner.py)
    comparison  =  streams x learners x knobs x seeds       the same (compare.py)

A job is independent of all others and can be sent to other processes and machines. It names the
files of an experiment, so a worker elsewhere must find them under the same path. `Player` plays it:

    job  ->  problem, comparator (once for all jobs of a stream)  ->  recording  ->  run  ->  row

A row is plain data: the job, the run's summary, what is known of its comparator, or the error that
refused it. It is a function of the job, of the versions installed and of the processor; only
`seconds` depends on more. A job that is killed half way resumes from its checkpoint: to the bit on
the same machine and versions.
"""

from __future__ import annotations

import hashlib
import json
import math
import time
import warnings
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import count, product
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeAlias, final

import numpy as np

from tidewolf.core import checkpoint
from tidewolf.core.arguments import shown
from tidewolf.core.arrays import LARGEST_COUNT, as_count, to_numpy
from tidewolf.core.errors import InvalidInput, OtherSettings, ShortHorizon, TidewolfError
from tidewolf.core.feedback import SEES
from tidewolf.core.types import Floats
from tidewolf.evaluation.formatting import finite_or_none
from tidewolf.evaluation.hindsight_words import contradiction
from tidewolf.evaluation.metrics import MEASURES
from tidewolf.evaluation.recording import Recording, RunProgress
from tidewolf.evaluation.run import PROGRESS_SECONDS, finished
from tidewolf.experiments.experiment import Experiment, Tables, given_fields
from tidewolf.experiments.keys import Choice, learner_keys, read_plain
from tidewolf.files import file_of
from tidewolf.hindsight.best import Comparator, best_in_hindsight
from tidewolf.methods.base import Learner
from tidewolf.problems import Problem
from tidewolf.problems.data import origin

Row: TypeAlias = dict[str, Any]
JobProgress: TypeAlias = Callable[[RunProgress, float | None], None]
"""Called a few times per second with how far the job is, and its regret so far if that is known."""

CHECKPOINT_SECONDS = 10.0
"""How much work a power cut may cost by default."""
UNKNOWN = Comparator(None, -math.inf, math.inf, None)
"""The comparator of a stream for which none can be computed."""
_SHARE = 20
"""At most one of this many seconds is spent on checkpoints."""
_KEPT = 2
"""How many problems a player keeps: jobs on the same stream stand side by side."""


class Source(Hashable, Protocol):
    """What makes the problem and the learner of a job, in any process: picklable."""

    @property
    def name(self) -> str:
        """What it is called in results."""

    @property
    def identity(self) -> str:
        """What distinguishes its problems from all others, contents of files included."""

    def problem(self, rounds: int | None, seed: int) -> Problem:
        """The set and the stream; `rounds=None` means as many as there are."""

    def learner(self, entrant: Choice, problem: Problem, seed: int) -> Learner[Any]:
        """A learner made for the problem."""


class Recipe(NamedTuple):
    """An experiment as a source. Its identity is what the user gave: the settings of a generator
    with the version of the generators, or the bytes of files. What is computed from them may differ
    in the last digits from one machine to another, and does not count.
    """

    experiment: Experiment
    identity: str

    @classmethod
    def of(cls, experiment: Experiment) -> Recipe:
        stream, K = experiment.stream, experiment.hard_set
        made = None if isinstance(stream, Tables) else origin(stream.name)
        text = json.dumps([made, _contents(stream), _contents(K), given_fields(experiment.files)])
        return cls(experiment, hashlib.sha256(text.encode()).hexdigest()[:16])

    @property
    def name(self) -> str:
        return self.experiment.name

    def problem(self, rounds: int | None, seed: int) -> Problem:
        return replace(self.experiment, rounds=rounds).problem(seed)

    def learner(self, entrant: Choice, problem: Problem, seed: int) -> Learner[Any]:
        return self.experiment.learner(entrant, problem, seed)


def _contents(part: Any) -> Any:
    """Plain data with files by their contents, under any path."""
    if isinstance(part, Choice):
        part = (part.name, part.settings)
    elif isinstance(part, Tables):
        part = list(vars(part).items())
    if isinstance(part, tuple | list):
        return [_contents(each) for each in part]
    if isinstance(part, Path) or (
        isinstance(part, str) and Path(part).is_absolute() and file_of(Path(part)).is_file()
    ):
        path = Path(part)
        found = hashlib.sha256(file_of(path).read_bytes()).hexdigest()
        # two sheets of a workbook differ
        return found + path.name.removeprefix(file_of(path).name)
    return part


class Job(NamedTuple):
    """One run to be made."""

    source: Source
    rounds: int | None
    """None: as many as there are"""
    seed: int
    entrant: Choice
    number: int = 0
    """in a run folder, from 1"""

    @property
    def origin(self) -> str:
        """Where its stream comes from, as recordings keep it: the recipe and seed of a generated
        one, the bytes of files.
        """
        return f"{self.source.identity} rounds {self.rounds} seed {self.seed}"

    @property
    def label(self) -> str:
        """The name of its checkpoint in a run folder."""
        return f"{self.number:02d}-{self.entrant.name}-seed-{self.seed}"

    def plain(self) -> Row:
        """The job as plain data."""
        plain = {
            "experiment": self.source.name,
            "source": self.source.identity,
            "learner": self.entrant.name,
            "settings": self.entrant.given,
            "seed": self.seed,
            "rounds": self.rounds,
        }
        row: Row = json.loads(json.dumps(plain))
        return row


# --- grids ----------------------------------------------------------------------------------------


def plan_run(experiment: Experiment) -> tuple[tuple[Job, ...], ...]:
    """The jobs of a resolved experiment, grouped by seed."""
    source, numbers = Recipe.of(experiment), count(1)
    return tuple(
        tuple(
            Job(source, experiment.rounds, seed, entrant, next(numbers))
            for entrant in experiment.entrants()
        )
        for seed in experiment.seeds
    )


def plan_sweep(
    experiment: Experiment,
    *,
    horizons: Sequence[int] = (),
    seeds: Sequence[int] = (),
    knobs: Mapping[str, Sequence[Any]] | None = None,
) -> tuple[Job, ...]:
    """The jobs of a sweep; horizons, seeds and knobs that are not given here are the file's."""
    swept: dict[str, Sequence[Any]] = {**dict(experiment.swept), **(knobs or {})}
    if "caution" in swept:
        experiment = replace(experiment, cautions=())
    own = swept.pop("horizons", (experiment.rounds,))
    by_default = experiment.has_default_learners or bool(experiment.as_run)
    if by_default or isinstance(experiment.stream, Tables):  # whose errors are reported here
        problem = experiment.problem(experiment.seeds[0])
        experiment = replace(experiment, learners=learners_as_run(experiment, problem))
    return crossed(
        Recipe.of(experiment),
        experiment.entrants(),
        horizons=horizons or own,
        seeds=seeds or experiment.seeds,
        knobs=swept,
    )


def learners_as_run(experiment: Experiment, problem: Problem) -> tuple[Choice, ...]:
    """The learners of the experiment as `tidewolf run` has them, and those that it leaves out,
    whose rows hold the reason.
    """
    taken = experiment.taken(problem).learners
    names = {choice.name for choice in taken}
    return (*taken, *(choice for choice in experiment.learners if choice.name not in names))


def crossed(
    source: Source,
    entrants: Sequence[Choice],
    *,
    horizons: Sequence[int | None] = (None,),
    seeds: Sequence[int] = (0,),
    knobs: Mapping[str, Sequence[Any]] | None = None,
) -> tuple[Job, ...]:
    """Every learner at every horizon and seed, and at every value of the knobs that it has and does
    not set itself.

    A knob that no learner has is refused. Jobs on the same stream stand side by side, so that its
    comparator is computed once.
    """
    rounds = [None if horizon is None else as_count(horizon, "A horizon") for horizon in horizons]
    counted = [as_count(seed, "A seed", least=0) for seed in seeds]
    knobs = knobs or {}
    lists = {"learners": entrants, "horizons": rounds, "seeds": counted, **knobs}
    for name, values in lists.items():
        if not values:
            raise InvalidInput(f"A sweep needs at least one value of {name}, and none was given.")
    for name in knobs:
        if not any(name in learner_keys(entrant.name) for entrant in entrants):
            names = ", ".join(dict.fromkeys(entrant.name for entrant in entrants))
            raise InvalidInput(
                f"No learner of this sweep has a setting called {name!r}; the learners are {names}."
            )
    entered = [choice for entrant in entrants for choice in _at_each_value(entrant, knobs)]
    return tuple(dict.fromkeys(Job(source, *each) for each in product(rounds, counted, entered)))


def _at_each_value(entrant: Choice, knobs: Mapping[str, Sequence[Any]]) -> list[Choice]:
    """The learner at every combination of the knobs that it has and does not set itself."""
    known = learner_keys(entrant.name)
    tried: dict[str, list[Any]] = {}
    for name in (name for name in knobs if name in known and name not in entrant.given):
        for given in knobs[name]:
            value, what = read_plain(known[name], given), f"{name} of {entrant.name}"
            if value is None:
                raise InvalidInput(f"{what} is {known[name].words}, not {shown(given)}.")
            if type(value) is int:
                as_count(value, what, least=-LARGEST_COUNT)
            tried.setdefault(name, []).append(value)
    return [Choice.of(entrant.name, {**entrant.given, **at}) for at in combinations(tried)]


def combinations(values: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """Every combination of the values of several settings."""
    return [dict(zip(values, at, strict=True)) for at in product(*values.values())]


# --- playing --------------------------------------------------------------------------------------


@final
@dataclass(frozen=True)
class Prepared:
    """A problem, and what is known of its best fixed point."""

    problem: Problem
    best: Comparator | None
    """None if none can be computed"""
    reason: str
    """why no point is the best one; empty if one is"""

    @classmethod
    def of(cls, problem: Problem) -> Prepared:
        try:
            best = best_in_hindsight(problem.K, problem.stream)
        except TidewolfError as error:
            return cls(problem, None, str(error))
        proof = best.infeasibility
        return cls(problem, best, "" if proof is None else contradiction(proof, problem.stream))

    @cached_property
    def losses(self) -> Floats | None:
        """The comparator's total loss up to each round; None if there is no comparator."""
        if self.best is None or self.best.point is None:
            return None
        return np.cumsum(to_numpy(self.problem.stream.losses.values(self.best.point)))

    def plain(self) -> Row:
        """The comparator as plain data; infinite ends are None."""
        best = self.best or UNKNOWN
        return {
            "rounds": len(self.problem),
            "lower": finite_or_none(best.lower),
            "upper": finite_or_none(best.upper),
            "feasible": best.feasible,
            "reason": self.reason,
        }

    def with_regret(self, moved: JobProgress | None) -> Callable[[RunProgress], None] | None:
        """Report the regret against the comparator beside how far the run is."""
        if moved is None:
            return None
        losses = self.losses

        def report(moment: RunProgress) -> None:
            if losses is None or moment.rounds_done == 0:
                moved(moment, None)
            else:
                moved(moment, moment.loss_total - float(losses[moment.rounds_done - 1]))

        return report


@final
class Player:
    """Plays jobs, one after another; the comparator of a stream is computed once."""

    def __init__(self) -> None:
        self._kept: dict[Any, Prepared] = {}

    def prepared(self, job: Job, problem: Problem | None = None) -> Prepared:
        """The job's problem, which is made unless it is given, and its comparator."""
        key = (job.source, job.rounds, job.seed)
        if key not in self._kept:
            problem = job.source.problem(job.rounds, job.seed) if problem is None else problem
            same = [each for each in self._kept.values() if each.problem == problem]
            found = same[0] if same else Prepared.of(problem)
            while len(self._kept) >= _KEPT:
                self._kept.pop(next(iter(self._kept)))
            self._kept[key] = found
        return self._kept[key]

    def row(
        self,
        job: Job,
        *,
        file: Path | None = None,
        moved: JobProgress | None = None,
        refused: type[Exception] = Exception,
    ) -> Row:
        """The job played to its end; an exception of the type `refused` becomes the row's
        `failure`. A `file` keeps the recording so far.
        """
        comparator, sees = None, ""
        try:
            with warnings.catch_warnings():
                if refused is Exception:  # a sweep over horizons begins with short ones
                    warnings.simplefilter("ignore", ShortHorizon)
                ready = self.prepared(job)
                comparator = ready.plain()
                learner = job.source.learner(job.entrant, ready.problem, job.seed)
                sees = SEES[learner.needs]
                recording = begin(learner, ready.problem, file, job.origin)
                advance(recording, file, moved=ready.with_regret(moved))
                run = finished(recording, ready.best or UNKNOWN)
                row = failed(job, "", comparator, sees) | run.summary()
            json.dumps(row, allow_nan=False)
            return row
        except refused as error:
            ours = isinstance(error, TidewolfError)
            reason = str(error) if ours else f"{type(error).__name__}: {error}"
            return failed(job, reason, comparator, sees)


def failed(job: Job, reason: str, comparator: Row | None = None, sees: str = "") -> Row:
    """The row of a job without a result: what a run would have measured is None."""
    more = {"comparator": comparator, "sees": sees, "failure": reason}
    return job.plain() | dict.fromkeys(MEASURES) | more


def begin(
    learner: Learner[Any], problem: Problem, file: Path | None, origin: str = ""
) -> Recording:
    """A recording of the problem, from the beginning or from the file; `origin` is that of the
    job.
    """
    if file is None or not file.exists():
        return Recording(learner, problem.stream, source=origin)
    try:
        data, folder = file.read_bytes(), str(file.parent.parent)
        stream = problem.stream
        return Recording.load(data, learner, stream, str(file), source=origin, folder=folder)
    except OtherSettings:
        raise OtherSettings(
            f"{file} belongs to another learner or other data: the experiment or its tables "
            "were changed since. Restore them, or run the experiment in a new folder."
        ) from None


def advance(
    recording: Recording,
    file: Path | None = None,
    *,
    seconds: float = CHECKPOINT_SECONDS,
    ending: bool = False,
    moved: Callable[[RunProgress], None] | None = None,
    saving: Callable[[], None] = lambda: None,
    stopping: Callable[[], bool] = lambda: False,
) -> bool:
    """Play to the end, or until `stopping` returns True; returns whether the end was reached.

    Every so many seconds, when it is stopped and, with `ending`, when it ends, the recording is
    written to the file, whole or not at all; `saving` is called before. `moved` is called a few
    times per second.
    """
    if recording.done:
        return True
    if moved is not None:
        moved(recording.progress)
    saved = reported = time.monotonic()
    for _ in recording.advance():
        now, done = time.monotonic(), recording.done
        if moved is not None and (now - reported > PROGRESS_SECONDS or done):
            moved(recording.progress)
            reported = now
        stop = stopping() and not done
        due = ending if done else stop or now - saved > seconds
        if file is not None and due:
            saving()
            checkpoint.write(file, recording.save())
            saved = time.monotonic()
            seconds = max(seconds, _SHARE * (saved - now))
        if stop:
            return False
    return True
