"""Regret and violation on intervals of a stream with no common feasible point: every phase has one, two phases together have none.

Limits of one phase exclude those of the next, so nothing bounds the totals of a whole run; what a learner may promise, and what is measured
here, is an interval on which some point keeps every limit. For each length: the worst regret and the worst violation over the feasible
intervals of that length, against the learner's own bound for intervals where it has one, and against what no member can exceed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import tidewolf as tw
from tidewolf import learners, rivals
from tidewolf.core.errors import TidewolfError

ROUNDS, PHASES, SHORTEST = 2048, 4, 16
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")


def measured(names: tuple[str, ...] | None = None, rounds: int = ROUNDS, shortest: int = SHORTEST) -> dict[str, tw.Intervals]:
    """The intervals of every learner's run on the same stream."""
    problem = tw.problems.adversarial(rounds, kind="excluding", phase=rounds // PHASES)
    known, found = {**learners.every(), **rivals.every()}, {}
    for name in names or known:
        kind: Any = known[name]
        given = {key: 1.0 for key in ("loss_lipschitz", "constraint_lipschitz") if key in kind.__dataclass_fields__}
        try:
            found[name] = tw.intervals(tw.run(kind(problem.K, horizon=rounds, **given), problem.stream), shortest)
        except TidewolfError as refused:
            print(f"  {name}: skipped. {refused}")
    return found


def worst(found: tw.Intervals) -> dict[str, Any]:
    """Over the feasible intervals of each length: the worst regret and violation, and the largest bounds, NaN where there is none."""
    feasible = [each for each in found.every if each.feasible and each.regret is not None]
    lengths = sorted({each.length for each in feasible})

    def largest(pick: Any) -> Any:
        rows = [[pick(each) for each in feasible if each.length == length] for length in lengths]
        return np.array([max((x for x in row if x is not None), default=np.nan) for row in rows])

    return {
        "lengths": np.array(lengths),
        "regret": largest(lambda each: each.regret[1]),
        "violation": largest(lambda each: each.violation),
        "regret bound": largest(lambda each: each.bound.regret),
        "violation bound": largest(lambda each: each.bound.violation),
    }


def report(out: Path) -> None:
    """Print and draw them."""
    found = measured()
    print(f"Intervals of {ROUNDS} rounds in {PHASES} phases that exclude each other")
    for name, each in found.items():
        promise = "promises nothing for intervals" if each.holds is None else "keeps its promise" if each.holds else "BREAKS ITS PROMISE"
        print(f"  {name}: {len(each.every)} intervals, {len(each.infeasible)} without a feasible point; {promise}")
        print("    " + "\n    ".join(repr(each).splitlines()[1:]))
    draw(out / "intervals.png", found)


def draw(path: Path, found: dict[str, tw.Intervals]) -> None:
    """The worst of each length, with bounds as dashed lines."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4.4), layout="constrained")
    panels = figure.subplots(1, 2)
    diameter = tw.problems.adversarial(1).K.diameter
    for (name, each), color in zip(found.items(), COLORS * len(found), strict=False):
        rows = worst(each)
        for axes, what in zip(panels, ("regret", "violation"), strict=True):
            axes.plot(rows["lengths"], rows[what], "o-", color=color, label=name, markersize=4)
            if np.isfinite(rows[f"{what} bound"]).any():
                axes.plot(rows["lengths"], rows[f"{what} bound"], "--", color=color, label=f"{name}: its bound")
    for axes, what in zip(panels, ("regret", "violation"), strict=True):
        lengths = worst(next(iter(found.values())))["lengths"]
        axes.plot(lengths, diameter * lengths, ":", color="#888888", label="no member can exceed")
        axes.set_xscale("log", base=2)
        axes.set_yscale("symlog" if what == "regret" else "log")
        axes.set_xticks(lengths, [str(length) for length in lengths])
        axes.set_xlabel("rounds in the interval")
        axes.set_title(f"worst {what} over feasible intervals", fontsize=10)
        axes.grid(color="#EEEEEE")
        axes.spines[["top", "right"]].set_visible(False)
    panels[1].legend(fontsize=8, frameon=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
    print(f"  picture: {path}")
