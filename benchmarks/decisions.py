"""Decisions beside those of the commit before rounds were compiled, round by round.

    apart_t   =  max |x_t - x'_t|               equal:  at most 1e-9
    a tie     :  the older commit itself, from its own state before that round, decides otherwise
                 by at least half of apart_t when the round's costs and capacities move by 1e-9
                 of their size

Two vertices that are equally good are told apart by rounding alone, and what follows is another
trajectory, as good as the first: so decisions are equal until the first tie, and totals of loss and
violation to 1 % in the end, the loss as a share of the sum of its sizes. Where the violation is
farther apart than that, it is said how far the older commit is from itself when all costs move by
1e-12 of their size: on streams with many ties that is more.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np

from benchmarks.bars import Bar, show
from benchmarks.commits import BEFORE
from benchmarks.commits import drive as run_script

EQUAL = 1e-9
NOISE, ROUNDING = 1e-9, 1e-12
TRIES = 32
TOTALS = 1.0
"""per cent"""
PLAY = "from benchmarks.decisions import drive; drive()"
OTHERWISE = "from benchmarks.decisions import spread; spread()"
SEEDS = 6
AGAIN = "from benchmarks.decisions import replay; replay()"
ROUNDS = {
    ("LyapunovDescent", "simplex n = 10"): 5000,
    ("LyapunovDescent", "simplex n = 100"): 3000,
    ("LyapunovDescent", "simplex n = 1,000"): 1200,
    ("LyapunovDescent", "flow, 140 arcs"): 2000,
    ("LyapunovDescent", "freeway, 456 arcs"): 2016,
    ("LyapunovDescent", "routing"): 2000,
    ("Ensemble", "simplex n = 10"): 1000,
    ("Ensemble", "simplex n = 100"): 600,
    ("Ensemble", "flow, 140 arcs"): 600,
    ("Ensemble", "freeway, 456 arcs"): 600,
    ("Ensemble", "routing"): 1000,
}


class Trajectory(NamedTuple):
    """What was played, and what it cost."""

    x: np.ndarray[Any, Any]
    loss: float
    loss_size: float
    violation: float


def setting(kind: str, case: str) -> tuple[Any, Any]:
    """The learner and the stream."""
    import tidewolf as tw
    from benchmarks.cases import CASES

    K, stream = CASES[case]()
    return getattr(tw, kind)(K), stream[: ROUNDS[kind, case]]


def drive() -> None:
    """In a process of either commit: play, and leave the points in the file named."""
    import tidewolf as tw

    kind, case, path = sys.argv[1:]
    learner, stream = setting(kind, case)
    points, losses, limits = [], [], []
    for played in tw.play(learner, stream):
        points += [played.x] * len(played.losses)
        losses.append(played.losses)
        limits.append(played.constraints)
    np.save(path, np.array(points))
    loss, limit = np.concatenate(losses), np.concatenate(limits)
    sums = float(loss.sum()), float(np.abs(loss).sum()), float(np.maximum(limit, 0.0).sum())
    print(json.dumps(sums))


def replay() -> None:
    """In a process of the older commit: how far a round's decision jumps when its data move a
    little.
    """
    import tidewolf as tw

    kind, case, last = sys.argv[1], sys.argv[2], int(sys.argv[3])
    learner, stream = setting(kind, case)
    state = learner.start()
    for played in tw.play(learner, stream[:last]):
        state = played.state
    costs, capacities = stream.losses.C[last : last + 1], stream.constraints.c[last : last + 1]
    rng, decided = np.random.default_rng(0), []
    for noise in (0.0, *[NOISE] * TRIES):
        moved = [a * (1.0 + noise * rng.normal(size=a.shape)) for a in (costs, capacities)]
        one = tw.Stream(tw.functions.Linear(moved[0]), tw.functions.Capacity(moved[1]))
        (played,) = tw.play(learner, one, state)
        decided.append(learner.act(played.state))
    print(json.dumps(max(float(np.abs(x - decided[0]).max()) for x in decided)))


def spread() -> None:
    """In a process of the older commit: the least and the largest violation when all costs move by
    as much as rounding does, each with other noise.
    """
    import tidewolf as tw

    learner, stream = setting(*sys.argv[1:])
    found = []
    for seed in range(SEEDS):
        noise = np.random.default_rng(seed).normal(size=stream.losses.C.shape)
        moved = tw.functions.Linear(stream.losses.C * (1.0 + ROUNDING * noise))
        rounds = tw.play(learner, tw.Stream(moved, stream.constraints))
        found.append(sum(float(np.maximum(one.constraints, 0.0).sum()) for one in rounds))
    print(json.dumps((min(found), max(found))))


def trajectory(commit: str | None, kind: str, case: str) -> Trajectory:
    """Play with a commit's sources; None: those of the working tree."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "x.npy"
        sums: Any = run_script(PLAY, commit, kind, case, path)
        return Trajectory(np.load(path), *sums)


def bars() -> Iterator[Bar]:
    """For each case: the first round that differs has a tie, and totals agree."""
    for kind, case in ROUNDS:
        old, new = trajectory(BEFORE, kind, case), trajectory(None, kind, case)
        apart = np.abs(old.x - new.x).reshape(len(old.x), -1).max(axis=1)
        differing = np.flatnonzero(~(apart <= EQUAL))
        first = int(differing[0]) if len(differing) else len(apart)
        before = float(apart[:first].max(initial=0.0))
        said, name = f"all {len(apart)} rounds", f"{kind}, {case}"
        untied = 0.0
        if len(differing):
            jump: Any = run_script(AGAIN, BEFORE, kind, case, first - 1) if first else 0.0
            untied = float(jump < 0.5 * apart[first])
            said = f"up to round {first + 1}, there {apart[first]:.1e}, by noise {jump:.1e}"
        yield Bar(f"{name}: equal until a tie", before, EQUAL, "", False, said)
        yield Bar(f"{name}: differs first without a tie", untied, 0.0, "")
        loss = 100 * abs(old.loss - new.loss) / old.loss_size
        violation = 100 * abs(old.violation - new.violation) / max(old.violation, 1e-9)
        yield Bar(f"{name}: total loss apart", loss, TOTALS, "%")
        note = f"{old.violation:.4g}, now {new.violation:.4g}"
        if violation > TOTALS:
            own: Any = run_script(OTHERWISE, BEFORE, kind, case)
            note += (
                f"; {BEFORE} itself {own[0]:.4g} to {own[1]:.4g} when costs move by {ROUNDING:g}"
            )
        yield Bar(f"{name}: total violation apart", violation, TOTALS, "%", False, note)


def report() -> None:
    """Print the bars."""
    print(f"Decisions beside those of {BEFORE}")
    show(bars())
