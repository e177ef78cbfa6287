"""Play a job to its end, from the beginning or from its checkpoint.

    job  ->  problem, comparator (once for all jobs of a stream)  ->  recording  ->  run  ->  row

A row is plain data: the job, the run's summary, what is known of its comparator, or the error that
refused it. It is a function of the job, of the versions installed and of the processor; only
`seconds` depends on more. A job that is killed half way resumes from its checkpoint: to the bit on
the same machine and versions.
"""

from __future__ import annotations

import json
import math
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias, final

import numpy as np

from tidewolf.core import checkpoint
from tidewolf.core.arrays import to_numpy
from tidewolf.core.errors import OtherSettings, ShortHorizon, TidewolfError
from tidewolf.core.feedback import SEES
from tidewolf.core.types import Floats
from tidewolf.evaluation.formatting import finite_or_none
from tidewolf.evaluation.hindsight_words import contradiction
from tidewolf.evaluation.metrics import METRICS
from tidewolf.evaluation.recording import Recording, RunProgress
from tidewolf.evaluation.run import PROGRESS_SECONDS, finished
from tidewolf.experiments.plan import Job, Row
from tidewolf.hindsight.best import Comparator, best_in_hindsight
from tidewolf.methods.base import Learner
from tidewolf.problems import Problem

JobProgress: TypeAlias = Callable[[RunProgress, float | None], None]
"""Called a few times per second with how far the job is, and its regret so far if that is known."""

MEASURED = tuple(metric.key for metric in METRICS)
"""The keys of a run's summary."""
CHECKPOINT_SECONDS = 10.0
"""How much work a power cut may cost by default."""
UNKNOWN = Comparator(None, -math.inf, math.inf, None)
"""The comparator of a stream for which none can be computed."""
_SHARE = 20
"""At most one of this many seconds is spent on checkpoints."""
_KEPT = 2
"""How many problems a player keeps: jobs on the same stream stand side by side."""


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
                advance(recording, file, moved=with_regret(ready, moved))
                run = finished(recording, ready.best or UNKNOWN)
                row = _row(job, run.summary(), comparator, sees)
            json.dumps(row, allow_nan=False)
            return row
        except refused as error:
            ours = isinstance(error, TidewolfError)
            failure = str(error) if ours else f"{type(error).__name__}: {error}"
            return _row(job, dict.fromkeys(MEASURED), comparator, sees, failure)


def failed(job: Job, reason: str) -> Row:
    """The row of a job without a result: what a run would have measured is None."""
    return _row(job, dict.fromkeys(MEASURED), None, "", reason)


def _row(job: Job, measured: Row, comparator: Row | None, sees: str, failure: str = "") -> Row:
    more = {"comparator": comparator, "sees": sees, "failure": failure}
    return job.plain() | measured | more


def with_regret(ready: Prepared, moved: JobProgress | None) -> Callable[[RunProgress], None] | None:
    """Report the regret against the comparator beside how far the run is."""
    if moved is None:
        return None
    losses = ready.losses

    def report(moment: RunProgress) -> None:
        if losses is None or moment.rounds_done == 0:
            moved(moment, None)
        else:
            moved(moment, moment.loss_total - float(losses[moment.rounds_done - 1]))

    return report


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
        now = time.monotonic()
        if moved is not None and (now - reported > PROGRESS_SECONDS or recording.done):
            moved(recording.progress)
            reported = now
        stop = stopping() and not recording.done
        if file is not None and (
            stop or (recording.done and ending) or (now - saved > seconds and not recording.done)
        ):
            saving()
            checkpoint.write(file, recording.save())
            saved = time.monotonic()
            seconds = max(seconds, _SHARE * (saved - now))
        if stop:
            return False
    return True
