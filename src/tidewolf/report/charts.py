"""The figures of a page: what adds up over the rounds of several runs (loss, regret, violation,
oracle calls), and frontiers, mean regret or loss against mean violation as a knob moves, with the
knob written at every point and the default marked.

The axis of violation begins at 0: with v0 the least violation above 0, v stands at asinh(v/v0),
which is a logarithm if v is large and no break anywhere.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tidewolf.evaluation import metrics
from tidewolf.evaluation.formatting import interval, number
from tidewolf.report.clock import Clock, clock_of
from tidewolf.report.figures import (
    INK,
    STAND_INS,
    Drawing,
    Figure,
    LegendEntry,
    PlotLine,
    PointLabel,
    canvas,
    drawing,
    dress,
    in_reach,
    pixels,
    saved,
)
from tidewolf.report.labels import Box, place, text_width
from tidewolf.report.styles import Cell, RunStyle, Table, run_styles, table

if TYPE_CHECKING:
    from tidewolf.evaluation.run import Run

BROAD, SLIM = (1180, 460), (360, 400)
"""Sizes of the two drawings of a frontier."""
_TICKS = 6
_FONT = 12.0
_LINE = 15.0


@dataclass(frozen=True)
class Curve:
    """A learner's mean violations and mean regrets as its knob moves, in the order of drawing."""

    label: str
    violations: Sequence[float]
    regrets: Sequence[float]
    notes: Sequence[str] = ()
    """the setting of each point, in words, where it has one: "caution 10"
    """
    hue: int = 0
    default: int | None = None
    """which point has the setting that is used unless another is asked for"""

    def note(self, i: int) -> str:
        """What is written at a point."""
        said = self.notes[i] if self.notes else ""
        return f"{said} (default)".strip() if i == self.default else said


def frontier_figure(
    title: str,
    about: str,
    curves: Sequence[Curve],
    *,
    upward: str = "mean regret a round",
    sentences: Sequence[str] = (),
) -> Figure:
    """Frontiers with a legend and a table of their points, for broad and for narrow pages."""
    description = f"{title}: {about}. " + ", ".join(map(_alt_text, curves))
    rows = [
        (
            Cell(curve.label, (curve.note(i),) if curve.note(i) else ()),
            number(curve.regrets[i]),
            number(curve.violations[i]),
        )
        for curve in curves
        for i in range(len(curve.regrets))
    ]
    return Figure(
        title,
        about,
        [frontier_drawing(curves, description, size, upward) for size in (BROAD, SLIM)],
        [LegendEntry(RunStyle(curve.label, curve.hue), _points(curve)) for curve in curves],
        table(title, ("learner", upward, "mean violation a round"), rows) if rows else None,
        sentences,
        wide=True,
    )


def _points(curve: Curve) -> str:
    count = len(curve.regrets)
    return f"{count} setting{'s' * (count != 1)}" if count else "nothing to draw"


def frontier_drawing(
    curves: Sequence[Curve], description: str, size: tuple[int, int], upward: str
) -> Drawing:
    """The frontiers in a picture of this size."""
    with canvas(size, (62, 46, 14, 14)) as (figure, axes):
        draw_frontiers(axes, curves, STAND_INS)
        axes.set_ylabel(upward, color=INK, labelpad=4)
        inside = saved(figure)
        spots = [
            [pixels(axes, axes.transLimits.transform(point).tolist(), size) for point in points]
            for points in ([*zip(*places(curves, curve), strict=True)] for curve in curves)
        ]
        (x0, y0), (x1, y1) = pixels(axes, (0.0, 1.0), size), pixels(axes, (1.0, 0.0), size)
        labels = _labels(curves, spots, Box(x0, y0 - 10.0, x1 + 12.0, y1))
    dots = [
        [*spot, curve.hue, _words(curve, i, upward)]
        for curve, of_curve in zip(curves, spots, strict=True)
        for i, spot in enumerate(of_curve)
    ]
    rings = [
        (*of_curve[curve.default], curve.hue)
        for curve, of_curve in zip(curves, spots, strict=True)
        if curve.default is not None
    ]
    return Drawing(inside, *size, description, {"dots": dots}, labels, rings)


def _words(curve: Curve, i: int, upward: str) -> str:
    named = f"{curve.label}, {curve.note(i)}" if curve.note(i) else curve.label
    what = upward.removeprefix("mean ").removesuffix(" a round")
    return f"{named}: {what} {number(curve.regrets[i])}, violation {number(curve.violations[i])}"


def _labels(
    curves: Sequence[Curve], spots: Sequence[Sequence[tuple[float, float]]], room: Box
) -> list[PointLabel]:
    """The knob at every point where it has room: the default and the ends first."""
    lines = [[*one, *two] for of_curve in spots for one, two in pairwise(of_curve)]
    segments = np.array(lines, dtype=np.float64).reshape(-1, 4)
    wanted = [
        (c, i) for c, curve in enumerate(curves) for i in range(len(curve.regrets)) if curve.note(i)
    ]
    ends = {(c, i) for c, i in wanted if i in (0, len(curves[c].regrets) - 1)}
    wanted.sort(key=lambda at: (at[1] != curves[at[0]].default, at not in ends))
    shown: list[tuple[int, int]] = []
    boxes: list[Box] = []
    every = [spot for of_curve in spots for spot in of_curve]
    for at in wanted:
        trial = [*shown, at]
        points = [spots[c][i] for c, i in trial]
        words = [_short(curves[c], i) for c, i in trial]
        sizes = [(text_width(word, _FONT) * 1.06, _LINE) for word in words]  # some are bold
        others = [spot for spot in every if spot not in points]
        found = place(points, sizes, segments, room, radius=6.5, clearance=1.0, others=others)
        if found.free:
            shown, boxes = trial, found.boxes
    return [
        PointLabel(
            (box.left + box.right) / 2,
            (box.top + box.bottom) / 2 + 0.36 * _FONT,
            _short(curves[c], i),
            curves[c].hue,
            i == curves[c].default,
        )
        for (c, i), box in zip(shown, boxes, strict=True)
    ]


def _short(curve: Curve, i: int) -> str:
    """The value of the knob, with its name at the default and at the first point."""
    note = curve.note(i)
    return note if i == curve.default or i == 0 else note.split()[-1]


def draw_frontiers(axes: Any, curves: Sequence[Curve], colors: Sequence[str]) -> None:
    """Regret over violation.

    Dots are round ends of very short lines: markers would need names, which a page of several
    figures cannot share.
    """
    for i, curve in enumerate(curves):
        color, (across, regrets) = colors[curve.hue], places(curves, curve)
        axes.plot(across, regrets, color=color, linewidth=1.2, alpha=0.6, zorder=3 + i)
        for at, regret in zip(across, regrets, strict=True):
            look = {"color": color, "linewidth": 6, "solid_capstyle": "round", "zorder": 3 + i}
            axes.plot([at, at + 1e-6], [regret, regret], **look)
    dress(axes)
    axes.margins(x=0.06, y=0.12)
    right = axes.get_xlim()[1]
    axes.set_xlim(-0.03 * right, right)
    least = _least(curves)
    most = max((violation for curve in curves for violation in curve.violations), default=1.0)
    ticks = [0.0, *round_numbers(least, most)]
    axes.set_xticks([math.asinh(tick / least) for tick in ticks], [f"{tick:g}" for tick in ticks])
    axes.set_xlabel("mean violation a round", color=INK, labelpad=3)


def _least(curves: Sequence[Curve]) -> float:
    """The least positive violation."""
    return min((v for curve in curves for v in curve.violations if v > 0.0), default=1.0)


def places(curves: Sequence[Curve], curve: Curve) -> tuple[list[float], list[float]]:
    """Where the points of a curve are drawn."""
    least = _least(curves)
    return [math.asinh(violation / least) for violation in curve.violations], list(curve.regrets)


def round_numbers(low: float, high: float) -> list[float]:
    """Round numbers from `low` to `high`, about evenly spread over their logarithms; the nearest
    power of ten where there is none.
    """
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(max(high, low))) + 1)
    for digits in ((1, 2, 5), (1, 3), (1,)):
        ticks = [float(f"{digit}e{decade}") for decade in decades for digit in digits]
        inside = [tick for tick in ticks if 0.99 * low <= tick <= 1.01 * high]
        if len(inside) <= _TICKS:
            return inside or [10.0 ** round(math.log10(low))]
    return inside[:: math.ceil(len(inside) / _TICKS)]


def _alt_text(curve: Curve) -> str:
    if not curve.regrets:
        return f"{curve.label}: nothing to draw"
    ends = [(curve.regrets[i], curve.violations[i]) for i in (0, -1)]
    return f"{curve.label}: " + " to ".join(
        f"{number(regret)} at violation {number(violation)}" for regret, violation in ends
    )


# --- what adds up over the rounds of runs ---------------------------------------------------------

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
    swept: dict[tuple[type, int], dict[float, tuple[float, float]]] = {}
    for run, style in zip(runs, run_styles(runs), strict=True):
        caution, regret = run.learner.fields().get("caution"), run.regret
        if not isinstance(caution, int | float) or not run.rounds:
            continue
        if regret is not None and np.isfinite(regret[1]):
            means = float(run.violations.mean()), regret[1] / run.rounds
            swept.setdefault((type(run.learner), style.hue), {})[float(caution)] = means
    curves = []
    for (kind, hue), those in swept.items():
        cautions = sorted(those)
        usual = next((each.default for each in fields(kind) if each.name == "caution"), None)
        default = cautions.index(usual) if usual in cautions else None
        violations, regrets = zip(*(those[caution] for caution in cautions), strict=True)
        notes = [f"caution {caution:g}" for caution in cautions]
        if len(cautions) > 1:
            curves.append(Curve(kind.__name__, violations, regrets, notes, hue, default))
    return curves


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
    shown = _series_table(series, clock) if tables else None
    return Figure(series.title, series.about, [made], legend, shown)


def _bound(lines: Sequence[PlotLine], line: PlotLine) -> str:
    if line.bound is None or (len(lines) > _FEW and not in_reach(lines, line.bound)):
        return ""
    where = "dotted" if in_reach(lines, line.bound) else "beyond the picture"
    return f"measured bound {number(line.bound)}, {where}"


def _series_table(series: Series, clock: Clock) -> Table:
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
