"""Playing a cell: to its end, from the beginning or from where a checkpoint has it.

    cell  ->  problem, comparator (once for all cells of a stream)  ->  recording  ->  run  ->  row

A row is plain data: which cell it was, the run's summary, what is known of its comparator, or the
sentence that refused it. It is a function of the cell, of the versions installed and of the
processor; only `seconds` depends on more. A cell that is killed half way resumes from its
checkpoint: to the bit on the same machine and versions.
"""

from __future__ import annotations

import json
import math
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, final

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
from tidewolf.experiments.plan import Cell, Row
from tidewolf.functions.negative import warn_of_negative_capacities
from tidewolf.hindsight.best import Comparator, best_in_hindsight
from tidewolf.methods.base import Learner
from tidewolf.problems import Problem

MEASURED = tuple(metric.key for metric in METRICS)
"""What the summary of a run says beside which run it was."""
CHECKPOINT_SECONDS = 10.0
"""How much work a power cut may cost where nobody says otherwise."""
UNKNOWN = Comparator(None, -math.inf, math.inf, None)
"""The comparator of a stream for which none can be computed."""
_SHARE = 20
"""Of this many seconds one at most is spent on checkpoints."""
_KEPT = 2
"""How many problems a player keeps: cells on the same stream stand side by side."""


class Prepared(NamedTuple):
    """A problem, and what is known of its best fixed point."""

    problem: Problem
    best: Comparator | None
    """None where none can be computed"""
    reason: str
    """why no point is the best one, where none is"""

    def plain(self) -> Row:
        """What is known of the comparator, as plain data; infinite ends are None."""
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
    """Plays cells, one after another; the comparator of a stream is computed once."""

    def __init__(self) -> None:
        self._kept: dict[Any, Prepared] = {}

    def prepared(self, cell: Cell, problem: Problem | None = None) -> Prepared:
        """The problem of a cell, which is made unless it is at hand, and its comparator."""
        key = (cell.source, cell.rounds, cell.seed)
        if key not in self._kept:
            problem = cell.source.problem(cell.rounds, cell.seed) if problem is None else problem
            same = [each for each in list(self._kept.values()) if each.problem == problem]
            found = same[0] if same else prepare(problem)
            while len(self._kept) >= _KEPT:
                self._kept.pop(next(iter(self._kept)), None)
            self._kept[key] = found
            return found
        return self._kept[key]

    def row(
        self,
        cell: Cell,
        *,
        file: Path | None = None,
        moved: Callable[[RunProgress], None] = lambda moment: None,
    ) -> Row:
        """A cell played to its end; what tidewolf refuses becomes the row's `failure`. Where a
        `file` is given, it keeps the recording so far.
        """
        known: Row | None = None
        sees = ""
        try:
            ready = self.prepared(cell)
            known = ready.plain()
            learner = cell.source.learner(cell.entrant, ready.problem, cell.seed)
            sees = SEES[learner.needs]
            recording = begin(learner, ready.problem, file, cell.origin)
            warn_of_negative_capacities(learner.hard_set, ready.problem.stream.constraints, set())
            advance(recording, file, moved=moved)
            run = finished(recording, ready.best or UNKNOWN)
            return _row(cell, run.summary(), known, sees, "")
        except TidewolfError as error:
            return _row(cell, dict.fromkeys(MEASURED), known, sees, str(error))

    def attempt(
        self,
        cell: Cell,
        *,
        file: Path | None = None,
        moved: Callable[[RunProgress], None] = lambda moment: None,
    ) -> Row:
        """The same for one cell of many: whatever is raised becomes the row's `failure`."""
        try:
            with warnings.catch_warnings():
                # a sweep over horizons begins with short ones; `bound_reason` says so too
                warnings.simplefilter("ignore", ShortHorizon)
                row = self.row(cell, file=file, moved=moved)
            json.dumps(row, allow_nan=False)
        except Exception as error:
            return failed(cell, f"{type(error).__name__}: {error}")
        return row


def failed(cell: Cell, sentence: str) -> Row:
    """The row of a cell that came to nothing: what a run would have measured is None."""
    return _row(cell, dict.fromkeys(MEASURED), None, "", sentence)


def _row(cell: Cell, measured: Row, comparator: Row | None, sees: str, failure: str) -> Row:
    more = {"comparator": comparator, "sees": sees, "failure": failure}
    return cell.plain() | measured | more


def prepare(problem: Problem) -> Prepared:
    """A problem with its best fixed point, or with why there is none."""
    try:
        best = best_in_hindsight(problem.K, problem.stream)
    except TidewolfError as error:
        return Prepared(problem, None, str(error))
    proof = best.infeasibility
    return Prepared(problem, best, "" if proof is None else contradiction(proof, problem.stream))


def begin(
    learner: Learner[Any], problem: Problem, file: Path | None, origin: str = ""
) -> Recording:
    """A recording of the problem, from the beginning, or from where the file has it; `origin` says
    where its stream comes from (`Cell.origin`).
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
            "were changed since. Put them back, or run the experiment anew."
        ) from None


def advance(
    recording: Recording,
    file: Path | None = None,
    *,
    seconds: float = CHECKPOINT_SECONDS,
    ending: bool = False,
    moved: Callable[[RunProgress], None] = lambda moment: None,
    saving: Callable[[], None] = lambda: None,
    stopping: Callable[[], bool] = lambda: False,
) -> bool:
    """Play on to the end, or until `stopping` says so; answers whether that is the end.

    Every so many seconds, when it is stopped and, with `ending`, when it ends, the recording is
    kept in the file, whole or not at all; `saving` is called before. `moved` is told how far it
    is, a few times a second.
    """
    if recording.done:
        return True
    saved = told = time.monotonic()
    for _ in recording.advance():
        now = time.monotonic()
        if now - told > PROGRESS_SECONDS or recording.done:
            moved(recording.progress)
            told = now
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


def cumulative_loss(ready: Prepared) -> Floats | None:
    """What the comparator loses up to each round; None where there is no comparator."""
    if ready.best is None or ready.best.point is None:
        return None
    losses: Floats = to_numpy(ready.problem.stream.losses.values(ready.best.point))
    return np.cumsum(losses)
