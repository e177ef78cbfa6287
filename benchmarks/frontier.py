"""The frontier of exact projection, and where one oracle call a round lands on it, on the two
streams the default was chosen on.

Rival: Sinha-Vaze with exact projections, swept over `caution` from 0.01 to 100. "On the frontier"
is defined in evaluation/frontier.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import tidewolf as tw
from tidewolf.baselines import SinhaVaze
from tidewolf.core.errors import InvalidInput
from tidewolf.evaluation.frontier import ALLOWED
from tidewolf.learners import LyapunovDescent
from tidewolf.problems import Problem
from tidewolf.report.comparison import write_pictures


def decades(points: int, most: float = 100.0) -> list[float]:
    """Four decades of caution, or more, in round numbers."""
    return [float(f"{caution:.3g}") for caution in np.geomspace(0.01, most, points)]


def by_default(K: tw.sets.ConvexSet, horizon: int) -> LyapunovDescent:
    """The flagship as it comes: one call a round, and nothing swept."""
    return LyapunovDescent(K, horizon=horizon)


def advised(problem: Problem, columns: bool = False) -> dict[str, Any]:
    """Context and advice as everybody would give them: the time of day, and re-solving with the
    last round and with that of a day ago.
    """
    if problem.period is None:
        return {}
    last, earlier = (tw.experts.Resolve(data, columns=columns) for data in ("last", problem.period))
    return {"experts": [tw.experts.Season(problem.period), last, earlier]}


def built(names: Sequence[str], rounds: int | None = None) -> list[Problem]:
    """Those problems whose records are there; the others are named with the reason."""
    found = []
    for name in names:
        try:
            found.append(tw.problems.named(name)(rounds=rounds))
        except InvalidInput as missing:
            print(f"{name}: skipped. {missing}")
    return found


def show(found: tw.Comparison, stream: str, learner: str) -> None:
    """Every point of a learner, and its gap."""
    gaps = found.gaps(stream, learner) or ()
    for p, gap in zip(found.frontier(stream, learner), gaps, strict=True):
        knob = "" if p.caution is None else f"{p.caution:.3g}"
        print(
            f"  {learner:16} {knob:>8} {p.regret:9.5f} {p.violation:10.6f} {p.calls:6.3f} "
            f"{p.infeasibility:8.1e} {100 * gap:+8.3f}"
        )


def head(found: tw.Comparison, stream: str) -> None:
    """What the columns of `show` are."""
    print(f"{stream}: {found.about(stream)}")
    print(
        f"  {'':16} {'caution':>8} {'regret':>9} {'violation':>10} {'calls':>6} "
        f"{'infeasibility':>8} "
        f"{'gap %':>8}"
    )


def verdict(gap: float | None) -> str:
    """A gap in words."""
    assert gap is not None
    said = "on the frontier" if gap <= ALLOWED else "NOT on the frontier"
    return (
        f"{100 * gap:+.3f} % of the comparator's mean loss above the rival's best (allowed +0.5 "
        f"%): {said}"
    )


def report(out: Path) -> None:
    """Print and draw both frontiers."""
    out.mkdir(parents=True, exist_ok=True)
    learners = {
        "SinhaVaze": SinhaVaze,
        "LyapunovDescent": LyapunovDescent,
        "by default": by_default,
    }
    for problem in built(("abilene", "carbon")):
        found = tw.compare(learners, problem, cautions=decades(25))
        head(found, problem.name)
        for learner in learners:
            show(found, problem.name, learner)
        print(f"  by default: {verdict(found.on_frontier(problem.name, 'by default'))}")
        write_pictures(out, found)
