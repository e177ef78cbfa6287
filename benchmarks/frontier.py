"""The frontier of exact projection, and where one oracle call a round lands on it.

Rival: Sinha-Vaze with exact projections, swept over `caution` from 0.01 to 100. "On the frontier": our mean regret is at most 0.5 % of the
comparator's mean loss above the best the rival reaches at up to 1.1 times our violation; where our violation is below all of the
rival's, its most careful point counts.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import tidewolf as tw
from tidewolf.core.errors import InvalidInput
from tidewolf.evaluation.hindsight import Comparator
from tidewolf.problems import Problem

CAUTIONS = np.geomspace(0.01, 100.0, 25)
ALLOWED = 0.005
SLACK = 1.1


class Point(NamedTuple):
    """One run: its knob, mean regret, mean violation, calls a round, largest excess."""

    caution: float
    regret: float
    violation: float
    calls: float
    excess: float


def measured(learner: Any, problem: Problem, comparator: Comparator) -> Point:
    """One run as a point."""
    run = tw.run(learner, problem.stream, comparator=comparator)
    rounds = run.rounds
    assert run.regret is not None
    return Point(learner.caution, run.regret[1] / rounds, float(run.violations.mean()), run.oracle_calls / rounds, run.max_excess)


def rival_frontier(problem: Problem, comparator: Comparator, cautions: Any = CAUTIONS) -> list[Point]:
    """The rival at every caution."""
    horizon = len(problem.stream)
    return [measured(tw.rivals.SinhaVaze(problem.K, horizon=horizon, caution=float(c)), problem, comparator) for c in cautions]


def gap(ours: Point, rival: list[Point], comparator_mean: float) -> float:
    """How far our mean regret is above the rival's best at our violation, as a share of the comparator's mean loss."""
    near = [p.regret for p in rival if p.violation <= SLACK * ours.violation]
    best = min(near) if near else min(rival, key=lambda p: p.violation).regret
    return (ours.regret - best) / abs(comparator_mean)


def report(out: Path) -> None:
    """Print and draw the frontiers of the two streams the default was chosen on."""
    for name in ("abilene", "carbon"):
        try:
            problem = tw.problems.named(name)()
        except InvalidInput as missing:
            print(f"{name}: skipped. {missing}")
            continue
        horizon = len(problem.stream)
        comparator = tw.best_in_hindsight(problem.K, problem.stream)
        mean = comparator.upper / horizon
        rival = rival_frontier(problem, comparator)
        ours = [
            measured(tw.LyapunovDescent(problem.K, horizon=horizon, caution=float(c)), problem, comparator) for c in np.geomspace(1, 100, 9)
        ]
        default = measured(tw.LyapunovDescent(problem.K, horizon=horizon), problem, comparator)
        print(f"{name}: {horizon} rounds, comparator {mean:.5f} a round")
        print(f"  {'':16} {'caution':>8} {'regret':>9} {'violation':>10} {'calls':>6} {'excess':>8}")
        for label, points in (("SinhaVaze", rival), ("LyapunovDescent", ours), ("  by default", [default])):
            for p in points:
                print(f"  {label:16} {p.caution:8.3g} {p.regret:9.5f} {p.violation:10.6f} {p.calls:6.3f} {p.excess:8.1e}")
        above = gap(default, rival, mean)
        verdict = "on the frontier" if above <= ALLOWED else "NOT on the frontier"
        print(f"  default: {100 * above:+.3f} % of the comparator's mean loss above the rival's best (allowed +0.5 %): {verdict}")
        draw(out / f"frontier-{name}.png", name, rival, ours, default)


def draw(path: Path, name: str, rival: list[Point], ours: list[Point], default: Point) -> None:
    """Mean regret against mean violation."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4.5), layout="constrained")
    axes = figure.subplots()
    axes.plot([p.violation for p in rival], [p.regret for p in rival], "o-", color="#888888", label="Sinha-Vaze, exact projection")
    axes.plot([p.violation for p in ours], [p.regret for p in ours], "s-", color="#0072B2", label="LyapunovDescent")
    axes.plot([default.violation], [default.regret], "*", color="#D55E00", markersize=16, label="LyapunovDescent, default")
    axes.set_xscale("log")
    axes.set_xlabel("mean violation a round")
    axes.set_ylabel("mean regret a round")
    axes.set_title(f"{name}: frontier as caution moves")
    axes.legend()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
    print(f"  picture: {path}")
