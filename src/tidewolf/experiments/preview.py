"""Preview a run without playing it: its problem, its learners, its duration, and the files that it
would write.

Nothing is written. The duration is estimated from a few timed rounds of each learner. Later rounds
may take longer, and the best point in hindsight and the page are not counted.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tidewolf.core.arrays import to_numpy
from tidewolf.core.unlimited import Unlimited
from tidewolf.evaluation.decisions import time_texts
from tidewolf.evaluation.recording import Recording
from tidewolf.experiments.choice import Choice
from tidewolf.experiments.decision_files import DECISIONS, FileChoice, commodities
from tidewolf.experiments.experiment import Experiment
from tidewolf.experiments.folder import EXPERIMENT_FILE, REPORT_FILE, ROUNDS_FILE, SUMMARY_FILE
from tidewolf.experiments.incumbent import Incumbent
from tidewolf.experiments.limit_files import LIMITS
from tidewolf.experiments.plan import plan_run
from tidewolf.experiments.runner import CHECKPOINTS_FOLDER
from tidewolf.functions.linear import Capacity, Linear
from tidewolf.functions.loads import LoadLimit
from tidewolf.problems import Problem

_SECONDS, _ROUNDS = 0.5, 200
"""How long each learner is timed at most."""
_LOADING, _PATIENCE = 3, 5.0
"""The updates that are not timed, unless they take longer than so many seconds."""


class PreviewedLearner(NamedTuple):
    """A learner that would play."""

    name: str
    settings: dict[str, Any]
    seconds: float
    """what its runs would take, all seeds together"""


class Preview(NamedTuple):
    """What a run would be."""

    experiment: str
    title: str
    set: str
    dimension: int
    """of the set's affine hull"""
    entries: int
    """of a decision"""
    rounds: int
    first: str | None
    """when the first round is; None where rounds have no times"""
    last: str | None
    losses: str
    limits: str
    limits_a_round: int
    notes: tuple[str, ...]
    """what a reader should know of the problem, such as which links carry nothing"""
    seeds: tuple[int, ...]
    incumbent: str
    """one sentence on what is played beside the learners; empty if nothing is"""
    learners: tuple[PreviewedLearner, ...]
    left_out: dict[str, str]
    folder: str
    files: tuple[str, ...]

    @property
    def seconds(self) -> float:
        """What all runs would take."""
        return sum(learner.seconds for learner in self.learners)

    def plain(self) -> dict[str, Any]:
        """The same as plain data."""
        learners = [{**each._asdict(), "settings": _plain(each.settings)} for each in self.learners]
        return {**self._asdict(), "learners": learners, "seconds": self.seconds}


def preview(
    requested: Experiment,
    resolved: Experiment,
    problem: Problem,
    folder: Path,
    incumbent: Incumbent | None = None,
) -> Preview:
    """What the resolved experiment would be, given its first problem."""
    stream, K = problem.stream, problem.K
    times = [] if stream.stamps is None else time_texts(stream.stamps)
    many = _limits_a_round(problem)
    return Preview(
        experiment=requested.name,
        title=requested.title or problem.title,
        set=_set_words(problem),
        dimension=int(K.dimension),
        entries=math.prod(K.shape),
        rounds=len(problem),
        first=times[0] if times else None,
        last=times[-1] if times else None,
        losses=_loss_words(problem),
        limits=_limit_words(problem, many),
        limits_a_round=many,
        notes=problem.notes,
        seeds=requested.seeds,
        incumbent="" if incumbent is None else " ".join(incumbent.said),
        learners=tuple(_timed(resolved, entrant, problem) for entrant in resolved.entrants()),
        left_out=dict(resolved.left_out(problem)),
        folder=str(folder),
        files=_files(resolved, problem),
    )


def _set_words(problem: Problem) -> str:
    """What is decided."""
    net = problem.network
    if net is None:
        return repr(problem.K)
    many = len(net.demands)
    sent = f"the demand of {net.demands[0].name}"
    if many > 1:
        sent = f"the demands of {many:,} commodities"
    if net.tunnels is not None:
        return f"shares of {sent} on {len(net.names):,} tunnels"
    return f"shares of {sent} on {_used(net):,} of {len(net.links):,} links"


def _loss_words(problem: Problem) -> str:
    """What a round costs."""
    losses = problem.stream.losses
    if isinstance(losses, Linear):
        if problem.network is not None:
            return "costs of links times what they carry"
        return "costs of entries times their sizes"
    return _kind(losses)


def _limit_words(problem: Problem, many: int) -> str:
    """What a decision is to keep."""
    constraints = problem.stream.constraints
    if isinstance(constraints, Unlimited):
        return "none"
    if isinstance(constraints, Capacity | LoadLimit) and problem.network is not None:
        has = "has" if many == 1 else "have"
        return f"{many:,} of {_used(problem.network):,} used links {has} a limit"
    if isinstance(constraints, Capacity):
        return "every entry has a limit"
    return _kind(constraints)


def _used(net: Any) -> int:
    """How many links some decision uses."""
    return int((np.diff(net.incidence.indptr) > 0).sum())


def _kind(functions: Any) -> str:
    """A kind of functions by its name and the first line of what it says of itself."""
    said = (type(functions).__doc__ or "").strip().split("\n")[0]
    return f"{type(functions).__name__}: {said.removesuffix('.')}"


def _files(experiment: Experiment, problem: Problem) -> tuple[str, ...]:
    """The files that a run of a resolved experiment leaves; CSV files of paths and limits that
    turn out to be large are left out.
    """
    runs = [each for some in plan_run(experiment) for each in some]
    pages = (REPORT_FILE, *(f"report-seed-{seed}.html" for seed in experiment.seeds[1:]))
    tables: list[str] = []
    form = experiment.decisions
    for each in runs if form != "none" else ():
        first = each.number == 1
        name = DECISIONS if first else f"{DECISIONS}-{each.label}"
        cells = len(problem) * math.prod(problem.K.shape)
        wanted = FileChoice.of(form or (None if first else "parquet"), cells)
        tables += [f"{name}.parquet"] * wanted.parquet + [f"{name}.csv"] * wanted.csv
    if form != "none":
        beside = ("paths", LIMITS) if commodities(problem) else (LIMITS,)
        wanted = FileChoice.of(form, 0)
        for name in beside:
            tables += [f"{name}.parquet"] * wanted.parquet + [f"{name}.csv"] * wanted.csv
        if problem.network is not None and problem.network.tunnels is not None:
            tables.append("tunnels.csv")
    kept = (f"{CHECKPOINTS_FOLDER}/{each.label}" for each in runs)
    return (EXPERIMENT_FILE, *pages, SUMMARY_FILE, *tables, ROUNDS_FILE, *kept)


def _timed(experiment: Experiment, entrant: Choice, problem: Problem) -> PreviewedLearner:
    """A learner, and what its runs would take by a few rounds of it."""
    learner = experiment.learner(entrant, problem, experiment.seeds[0])
    recording, begun = Recording(learner, problem.stream), time.monotonic()
    rounds, seconds = 0, 0.0  # of the first updates, in which solvers are loaded
    for update, done in enumerate(recording.advance(), start=1):
        if done >= _ROUNDS or time.monotonic() - begun > (_SECONDS if rounds else _PATIENCE):
            break
        if update == _LOADING:
            rounds, seconds, begun = done, recording.seconds, time.monotonic()
    if recording.t == rounds:
        rounds, seconds = 0, 0.0
    share = (recording.seconds - seconds) / max(1, recording.t - rounds)
    return PreviewedLearner(
        entrant.name, entrant.given, share * len(problem) * len(experiment.seeds)
    )


def _limits_a_round(problem: Problem) -> int:
    """How many limits a round has."""
    constraints = problem.stream.constraints
    if isinstance(constraints, Unlimited) or not len(problem):
        return 0
    pieces = constraints.view(slice(0, 1)).pieces(problem.K.center)
    return 1 if pieces is None else int(to_numpy(pieces).shape[1])


def _plain(settings: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: list(value) if isinstance(value, tuple) else value for name, value in settings.items()
    }
