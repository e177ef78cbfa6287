"""What added up over the rounds of several runs: regret, violation, oracle calls; and their
frontiers where caution moves.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tidewolf.evaluation import metrics
from tidewolf.evaluation.comparison import standing_name
from tidewolf.evaluation.formatting import interval, number
from tidewolf.report.figures import (
    Curve,
    Drawing,
    PlotLine,
    drawing,
    frontier_drawing,
    in_reach,
    legend_line,
)
from tidewolf.report.markup import folded, table, with_lines
from tidewolf.report.styles import HUES, RunStyle, run_styles

if TYPE_CHECKING:
    from tidewolf.evaluation.comparison import Standing
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
            found.append(Series(metric.name, metric.title, metric.about, lines, ends))
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
        )
        for (name, hue), those in swept.items()
        if len(those) > 1
    ]


def standing_curves(standings: Sequence[Standing]) -> list[Curve]:
    """Those of one stream, as lines to draw; a learner without points keeps its place."""
    return [
        Curve(
            standing_name(each),
            [p.violation for p in each.points],
            [p.level for p in each.points],
            [p.at for p in each.points],
            i % HUES,
        )
        for i, each in enumerate(standings)
    ]


def figures(runs: Sequence[Run], *, tables: bool = True) -> str:
    """A figure for each series, and one of the frontiers where there are some."""
    drawn = [figure(each, tables=tables) for each in all_series(runs)]
    if curves := frontiers(runs):
        drawn.append(
            frontier_figure(
                "Frontier", "mean regret against mean violation a round, as caution moves", curves
            )
        )
    return "".join(drawn)


def figure(series: Series, *, tables: bool) -> str:
    """Title, drawing, legend with the last values and measured bounds, and a table of values."""
    ends = ", ".join(
        f"{line.style.label} {end}" for line, end in zip(series.lines, series.ends, strict=True)
    )
    made = drawing(series.lines, f"{series.title} after each round. At the end: {ends}")
    legend = "".join(
        f"<li>{legend_line(line.style)}<span>{escape(line.style.label)}</span><b>{escape(end)}</b>"
        f"{_bound(series.lines, line)}</li>"
        for end, line in zip(series.ends, series.lines, strict=True)
    )
    return framed(series.title, series.about, made, legend, _table(series) if tables else "")


def framed(title: str, about: str, made: Drawing, legend: str, shown: str) -> str:
    """A figure with its caption, and the tooltip of what a pointer is over."""
    tooltip = escape(json.dumps(made.tooltip, separators=(",", ":"), allow_nan=False))
    more = folded(shown, title) if shown else ""
    return (
        f'<figure data-tooltip="{tooltip}"><figcaption><h2>{escape(title)}</h2>'
        f"<p>{escape(about)}</p></figcaption>{made.svg}"
        f'<ul class="legend">{legend}</ul>{more}</figure>'
    )


def frontier_figure(title: str, about: str, curves: Sequence[Curve]) -> str:
    """Frontiers with a legend and a table of their points."""
    made = frontier_drawing(curves, f"{title}: {about}. " + ", ".join(map(_alt_text, curves)))
    legend = "".join(
        f"<li>{legend_line(RunStyle(curve.label, curve.hue))}<span>{escape(curve.label)}</span>"
        f"<b>{len(curve.regrets)} point{'s' * (len(curve.regrets) != 1)}</b></li>"
        for curve in curves
    )
    rows = [
        (with_lines(curve.label, note), number(regret), number(violation))
        for curve in curves
        for regret, violation, note in zip(
            curve.regrets, curve.violations, curve.notes or [""] * len(curve.regrets), strict=True
        )
    ]
    return framed(
        title, about, made, legend, table(("learner", "regret", "violation"), rows) if rows else ""
    )


def _bound(lines: Sequence[PlotLine], line: PlotLine) -> str:
    if line.bound is None or (len(lines) > _FEW and not in_reach(lines, line.bound)):
        return ""
    where = "dotted" if in_reach(lines, line.bound) else "beyond the picture"
    return f"<small>measured bound {number(line.bound)}, {where}</small>"


def _table(series: Series) -> str:
    rounds = len(series.lines[0].values)
    at = np.unique(np.linspace(0, rounds, min(rounds, _ROWS) + 1).round().astype(int))[1:]
    return table(
        ("round", *(line.style.label for line in series.lines)),
        ((f"{t:,}", *(number(float(line.values[t - 1])) for line in series.lines)) for t in at),
    )


def _alt_text(curve: Curve) -> str:
    if not curve.regrets:
        return f"{curve.label}: none"
    ends = [(curve.regrets[i], curve.violations[i]) for i in (0, -1)]
    return f"{curve.label}: " + " to ".join(
        f"regret {number(regret)} at violation {number(violation)}" for regret, violation in ends
    )
