"""Frontiers: mean regret, or loss, against mean violation as a knob moves, with the knob written at
every point and the default marked.

The axis of violation begins at 0: with v0 the least violation above 0, v stands at asinh(v/v0),
which is a logarithm where v is large and no break anywhere.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from tidewolf.evaluation.formatting import number
from tidewolf.report.figures import (
    INK,
    STAND_INS,
    Drawing,
    Figure,
    LegendEntry,
    PointLabel,
    canvas,
    dress,
    pixels,
    saved,
)
from tidewolf.report.labels import Box, place, text_width
from tidewolf.report.styles import Cell, RunStyle, table

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
