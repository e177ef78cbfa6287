"""Regret and violation on intervals of streams with no common feasible point.

    excluding    2,048 rounds on a simplex in four phases: every phase has a feasible point, two
                 phases together have none
    deadlock     8,192 rounds on [-1, 1]: limits that contradict each other for half of them, easy
                 ones after that

Nothing bounds the totals of such runs. What a learner may promise, and what is measured here, is an
interval on which some point keeps every limit. For each length: the worst regret and the worst
violation over the feasible intervals of that length, beside the learner's own bound for intervals
where it has one, and beside what no member can exceed. A guarantee for intervals forbids a regret a
round that does not fall: learners whose weights remember all violation for ever are frozen by the
deadlock and lose nearly all there is to lose after it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import tidewolf as tw
from tidewolf import baselines, learners
from tidewolf.core.errors import TidewolfError
from tidewolf.problems import Problem, adversarial
from tidewolf.sets import Box

SHARES = 64
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")


def problems() -> dict[str, Problem]:
    """The two streams."""
    return {
        "excluding": adversarial(2048, kind="excluding", phase=512),
        "deadlock": adversarial(8192, kind="deadlock", K=Box([-1.0], [1.0]), phase=4096),
    }


def measured(problem: Problem) -> dict[str, tw.Intervals]:
    """The intervals of every learner's run."""
    known, found = {**learners.every(), **baselines.every()}, {}
    rounds = len(problem.stream)
    for name, kind in known.items():
        make: Any = kind
        given = {
            key: 1.0
            for key in ("loss_lipschitz", "constraint_lipschitz")
            if key in make.__dataclass_fields__
        }
        try:
            found[name] = tw.intervals(
                tw.run(make(problem.K, horizon=rounds, **given), problem.stream), rounds // SHARES
            )
        except TidewolfError as refused:
            print(f"  {name}: skipped. {refused}")
    return found


def worst(found: tw.Intervals) -> dict[str, Any]:
    """Over the feasible intervals of each length: the worst regret and violation, and the largest
    bounds, NaN where there is none.
    """
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
    found = {name: (problem, measured(problem)) for name, problem in problems().items()}
    for stream, (problem, runs) in found.items():
        print(f"Worst over the feasible intervals of {stream}, {len(problem.stream)} rounds")
        for name, each in runs.items():
            rows = worst(each)
            guarantee = {
                None: "promises nothing for intervals",
                True: "keeps its promises",
                False: "BREAKS ITS PROMISES",
            }[each.holds]
            print(
                f"  {name}: {len(each.every)} intervals, {len(each.infeasible)} without a feasible "
                f"point; {guarantee}"
            )
            for what in ("lengths", "regret", "regret bound", "violation", "violation bound"):
                if np.isfinite(rows[what]).any():
                    print(f"    {what:16}" + "".join(f"{x:10.4g}" for x in rows[what]))
    draw(out / "intervals.png", found)


def draw(path: Path, found: dict[str, tuple[Problem, dict[str, tw.Intervals]]]) -> None:
    """The worst of each length, with bounds as dashed lines."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 7.8), layout="constrained")
    for panels, (stream, (problem, runs)) in zip(
        figure.subplots(len(found), 2), found.items(), strict=True
    ):
        rows = {name: worst(each) for name, each in runs.items()}
        lengths = next(iter(rows.values()))["lengths"]
        for axes, what in zip(panels, ("regret", "violation"), strict=True):
            for i, (name, row) in enumerate(rows.items()):
                color, dashes = COLORS[i % len(COLORS)], ("-", (0, (5, 2)), (0, (2, 2)))[i % 3]
                axes.plot(
                    lengths,
                    row[what] / lengths,
                    linestyle=dashes,
                    marker="o",
                    color=color,
                    label=name,
                    markersize=4,
                )
                if np.isfinite(row[f"{what} bound"]).any():
                    axes.plot(
                        lengths,
                        row[f"{what} bound"] / lengths,
                        ":",
                        color=color,
                        linewidth=2.2,
                        label=f"{name}: measured bound",
                    )
            axes.axhline(
                problem.K.diameter, color="#888888", linewidth=1.0, label="no member can exceed"
            )
            axes.set_xscale("log", base=2)
            axes.set_xticks(lengths, [str(length) for length in lengths])
            axes.set_ylim(-0.25 * problem.K.diameter, 1.15 * problem.K.diameter)
            axes.set_xlabel("rounds in the interval")
            axes.set_ylabel(f"worst {what} a round")
            axes.set_title(f"{stream}: {what} over feasible intervals", fontsize=10)
            axes.grid(color="#EEEEEE")
            axes.spines[["top", "right"]].set_visible(False)
    figure.legend(
        *figure.axes[0].get_legend_handles_labels(),
        loc="outside lower center",
        ncols=3,
        fontsize=9,
        frameon=False,
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
    print(f"  picture: {path}")
