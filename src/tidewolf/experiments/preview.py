"""Preview a run without playing it: its problem, its learners, its duration, and the files that it
would write.

Nothing is written. The duration is estimated from a few timed rounds of each learner. Later rounds
may take longer, and the best point in hindsight and the page are not counted.
"""

from __future__ import annotations

import math
import time
from pathlib import Path
from typing import Any

import numpy as np

from tidewolf.core.arrays import to_numpy
from tidewolf.core.batch import Unlimited
from tidewolf.evaluation.decisions import time_texts
from tidewolf.evaluation.recording import Recording
from tidewolf.experiments import folder as folders
from tidewolf.experiments.experiment import Experiment
from tidewolf.experiments.incumbent import Incumbent
from tidewolf.experiments.jobs import CHECKPOINTS_FOLDER, plan_run
from tidewolf.experiments.keys import Choice
from tidewolf.networks import Network
from tidewolf.problems import Problem

_SECONDS, _ROUNDS = 0.5, 200
"""How long each learner is timed at most."""
_LOADING, _PATIENCE = 3, 5.0
"""The updates that are not timed, unless they take longer than so many seconds."""


def preview(
    requested: Experiment,
    resolved: Experiment,
    problem: Problem,
    folder: Path,
    incumbent: Incumbent | None = None,
) -> dict[str, Any]:
    """What the resolved experiment would be, given its first problem, as plain data."""
    stamps, K = problem.stream.stamps, problem.K
    times = time_texts(stamps) if stamps is not None and len(stamps) else [None]
    learners = [_timed(resolved, entrant, problem) for entrant in resolved.entrants()]
    constraints, limits = problem.stream.constraints, 0
    if not isinstance(constraints, Unlimited):
        pieces = constraints.view(slice(0, 1)).pieces(K.center)
        limits = 1 if pieces is None else int(to_numpy(pieces).shape[1])
    return {
        "experiment": requested.name,
        "title": requested.title or problem.title,
        "set": repr(K) if problem.network is None else _network_words(problem.network),
        "dimension": int(K.dimension),
        "entries": math.prod(K.shape),
        "rounds": len(problem),
        "first": times[0],
        "last": times[-1],
        "losses": _kind(problem.stream.losses),
        "limits": _kind(constraints),
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


def _network_words(net: Network) -> str:
    """What is decided."""
    many, what = len(net.demands), f"the demand of {net.demands[0].name}"
    what = f"the demands of {many:,} folders.commodities" if many > 1 else what
    if net.tunnels is not None:
        return f"shares of {what} on {len(net.names):,} tunnels"
    used = int((np.diff(net.incidence.indptr) > 0).sum())
    return f"shares of {what} on {used:,} of {len(net.links):,} links"


def _kind(functions: Any) -> str:
    """A kind of functions by its name and the first line of its docstring."""
    if isinstance(functions, Unlimited):
        return "none"
    about = (type(functions).__doc__ or "").strip().split("\n")[0]
    return f"{type(functions).__name__}: {about.removesuffix('.')}"


def _files(experiment: Experiment, problem: Problem) -> list[str]:
    """The files that a run of a resolved experiment leaves; CSV files of paths and limits that
    turn out to be large are left out.
    """
    runs = [each for some in plan_run(experiment) for each in some]
    form, cells = experiment.decisions, len(problem) * math.prod(problem.K.shape)
    tables = {folders.DECISIONS: folders.endings(form, cells)}
    for each in runs[1:]:
        tables[f"{folders.DECISIONS}-{each.label}"] = folders.endings(form or "parquet", cells)
    for name in (
        (folders.PATHS, folders.LIMITS) if folders.commodities(problem) else (folders.LIMITS,)
    ):
        tables[name] = folders.endings(form, 0)
    if form != "none" and problem.network is not None and problem.network.tunnels is not None:
        tables["tunnels"] = ("csv",)
    return [
        *(folders.EXPERIMENT_FILE, folders.REPORT_FILE),
        *(f"report-seed-{seed}.html" for seed in experiment.seeds[1:]),
        folders.SUMMARY_FILE,
        *(f"{name}.{ending}" for name, found in tables.items() for ending in found),
        folders.ROUNDS_FILE,
        *(f"{CHECKPOINTS_FOLDER}/{each.label}" for each in runs),
    ]


def _timed(experiment: Experiment, entrant: Choice, problem: Problem) -> dict[str, Any]:
    """A learner, and how long all of its runs would take by a few rounds of it."""
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
    return {
        "name": entrant.name,
        "settings": {
            key: list(value) if isinstance(value, tuple) else value
            for key, value in entrant.settings
        },
        "seconds": share * len(problem) * len(experiment.seeds),
    }
