"""What added up over the rounds of several runs: loss, regret, violation, oracle calls; and their
frontiers where caution moves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import MISSING, fields
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tidewolf.evaluation import metrics
from tidewolf.evaluation.formatting import interval, number
from tidewolf.report.clock import Clock, clock_of
from tidewolf.report.figures import Figure, LegendEntry, PlotLine, drawing, in_reach
from tidewolf.report.frontier import Curve, frontier_figure
from tidewolf.report.styles import Table, run_styles, table

if TYPE_CHECKING:
    from tidewolf.evaluation.run import Run

_FEW = 4
"""Of more runs a legend says only the measured bounds that are drawn; the headline says all."""
_ROWS = 10
"""How many rounds the table under a figure names."""


class Series(NamedTuple):
    """A figure's worth of lines, one for each run."""

    name: str
    title: str
    about: str
    lines: list[PlotLine]
    ends: list[str]
    """the last values in words"""
    from_zero: bool = False
    """whether it is never below 0, so that its axis begins there"""


def all_series(runs: Sequence[Run]) -> list[Series]:
    """What adds up over rounds, where it is known of every run; none without a round."""
    if runs[0].rounds == 0:
        return []
    found = []
    for metric in metrics.TOTALS:
        lines = [
            PlotLine(totals, metric.bracket(run), metric.bound(run), style)
            for run, style in zip(runs, run_styles(runs), strict=True)
            if (totals := metric.totals(run)) is not None
        ]
        if len(lines) == len(runs):
            ends = [_last(line) for line in lines]
            zero = (
                all(float(line.values.min()) >= 0.0 for line in lines) and metric.name != "regret"
            )
            found.append(Series(metric.name, metric.title, metric.about, lines, ends, zero))
    return found


def _last(line: PlotLine) -> str:
    """The last value in words."""
    return number(float(line.values[-1])) if line.bracket is None else interval(line.bracket)


def frontiers(runs: Sequence[Run]) -> list[Curve]:
    """Mean regret against mean violation of every learner that was run at several cautions; runs
    without a finite regret are left out.
    """
    swept: dict[tuple[str, int], dict[float, Run]] = {}
    for run, style in zip(runs, run_styles(runs), strict=True):
        caution = run.learner.fields().get("caution")
        if (
            isinstance(caution, int | float)
            and run.regret is not None
            and np.isfinite(run.regret[1])
            and run.rounds
        ):
            swept.setdefault((type(run.learner).__name__, style.hue), {})[float(caution)] = run
    return [
        Curve(
            name,
            [float(run.violations.mean()) for _, run in sorted(those.items())],
            [run.regret[1] / run.rounds for _, run in sorted(those.items()) if run.regret],
            [f"caution {caution:g}" for caution in sorted(those)],
            hue,
            _default(sorted(those), next(iter(those.values()))),
        )
        for (name, hue), those in swept.items()
        if len(those) > 1
    ]


def _default(cautions: Sequence[float], run: Run) -> int | None:
    """Which of the cautions the learner has unless another is asked for."""
    usual = default_of(type(run.learner), "caution")
    return next((i for i, caution in enumerate(cautions) if caution == usual), None)


def default_of(kind: type, setting: str) -> object:
    """What a setting is unless another value is asked for; None where there is no such setting."""
    found = next((each for each in fields(kind) if each.name == setting), None)
    return None if found is None or found.default is MISSING else found.default


def figures(runs: Sequence[Run], *, tables: bool = True) -> list[Figure]:
    """A figure for each series, and one of the frontiers where there are some."""
    if not runs[0].rounds:
        return []
    clock = clock_of(runs[0].stream, runs[0].rounds)
    drawn = [figure(each, clock, tables=tables) for each in all_series(runs)]
    if curves := frontiers(runs):
        about = "mean regret against mean violation a round, as caution moves"
        drawn.append(frontier_figure("Frontier", about, curves))
    return drawn


def figure(series: Series, clock: Clock, *, tables: bool) -> Figure:
    """Title, drawing, legend with the last values and measured bounds, and a table of values."""
    ends = ", ".join(
        f"{line.style.label} {end}" for line, end in zip(series.lines, series.ends, strict=True)
    )
    spoken = f"{series.title} after each round. At the end: {ends}"
    made = drawing(series.lines, spoken, clock, from_zero=series.from_zero)
    legend = [
        LegendEntry(line.style, end, _bound(series.lines, line))
        for end, line in zip(series.ends, series.lines, strict=True)
    ]
    shown = _table(series, clock) if tables else None
    return Figure(series.title, series.about, [made], legend, shown)


def _bound(lines: Sequence[PlotLine], line: PlotLine) -> str:
    if line.bound is None or (len(lines) > _FEW and not in_reach(lines, line.bound)):
        return ""
    where = "dotted" if in_reach(lines, line.bound) else "beyond the picture"
    return f"measured bound {number(line.bound)}, {where}"


def _table(series: Series, clock: Clock) -> Table:
    rounds = len(series.lines[0].values)
    at = np.unique(np.linspace(0, rounds, min(rounds, _ROWS) + 1).round().astype(int))[1:]
    first = "round" if clock.times is None else "time"
    return table(
        series.title,
        (first, *(line.style.label for line in series.lines)),
        (
            (clock.moment(t - 1), *(number(float(line.values[t - 1])) for line in series.lines))
            for t in at.tolist()
        ),
    )
