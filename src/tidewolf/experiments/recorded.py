"""Runs that tidewolf 0.1 recorded, as numbers to be shown again.

What its learners remembered cannot be gone on from. But the numbers of every round stand in the
checkpoint, and what theory allowed the run stands in summary.json: a page needs no more.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tidewolf.core import checkpoint
from tidewolf.core.batch import Stream
from tidewolf.core.errors import BrokenFile, CheckpointError
from tidewolf.evaluation.recording import Recording
from tidewolf.evaluation.run import Run, finished
from tidewolf.hindsight.best import Comparator
from tidewolf.methods.base import Bound, Learner


def run_of_format_1(
    data: bytes,
    learner: Learner[Any],
    stream: Stream,
    best: Comparator | None,
    summary: dict[str, Any],
    source: str,
) -> Run:
    """The run of a whole checkpoint; `summary` are the numbers that were written of it then."""
    fields = checkpoint.load_format_1(data, reference=np.empty(0), source=source).fields
    recording = Recording(learner, stream, warm_up=False)
    try:
        if fields["t"] != len(stream):
            raise ValueError(f"it has {fields['t']} rounds of {len(stream)}")
        for name in ("losses", "violations", "distances", "calls"):
            getattr(recording, name)[:] = fields[name]
        recording.movement.restore(len(stream), (), learner.hard_set.center)
        recording.t, recording.seconds = len(stream), float(fields["seconds"])
        if fields["each"].shape == recording.each.shape:
            recording.each = fields["each"]
        recording.trajectory.restore(fields["trail"], learner.hard_set.center)
        recording.membership.restore(_membership(fields))
        bound = summary["bound"]
        known = Bound(bound["regret"], bound["violation"], summary["certificate"]["bound_reason"])
    except CheckpointError:
        raise
    except Exception as error:  # hand-made content breaks in every way
        raise BrokenFile(
            f"{source} is no recording of a run: {checkpoint.half_sentence(error)}."
        ) from None
    run = finished(recording, best)
    run.__dict__["bound"] = known  # what would be computed from a state that is not there
    return run


def _membership(fields: dict[str, Any]) -> tuple[Any, ...]:
    """What was known of the points' being members; at first the largest excess of all points."""
    if "membership" in fields:
        found: tuple[Any, ...] = fields["membership"]
        return found
    return float(fields["excess"]), fields["t"], 0, fields["t"], None
