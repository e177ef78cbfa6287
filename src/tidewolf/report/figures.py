"""Lines over rounds, and frontiers, as inline SVG that takes its colours and its font from the
page.

matplotlib draws with stand-in colours, which become CSS: the ink is `currentColor`, line i is
`var(--line-i)`, so light, dark and print are the page's business. No pyplot, no global state, and
the same bytes for the same data. The tooltip of a drawing travels beside it, in the
drawing's own coordinates.
"""

from __future__ import annotations

import io
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tidewolf.core.types import Floats, Int64s
from tidewolf.evaluation.formatting import number, tick
from tidewolf.report.styles import HUES, RunStyle

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_POINTS, _TOOLTIP_POINTS = 600, 200  # of a line, and those that have a tooltip
# in CSS pixels; about the width of a phone, so text keeps its size there
_WIDTH, _HEIGHT = 400, 270
_INK = "#010203"
_FONT = "DejaVu Sans"
COLORS = ("#0072b2", "#d55e00", "#00805d", "#aa4499", "#a87300", "#555c66", "#4433aa", "#882255")
"""The line colours of the page, for pictures that stand alone."""
_STAND_INS = tuple(f"#0405{hue:02x}" for hue in range(HUES))
_TICKS = 6
_FAR = 0.6
"""A bound is drawn where it is at most this share of the lines' span beyond them."""
_SETTINGS = {
    "svg.fonttype": "none",
    "svg.hashsalt": "tidewolf",
    "font.family": _FONT,
    "font.size": 13,
    "path.simplify": False,
}


_PLAIN = RunStyle()


@dataclass(frozen=True)
class PlotLine:
    """One series: a value after each round, between which two numbers the last one truly lies, and
    its measured bound.
    """

    values: Floats
    bracket: tuple[float, float] | None = None
    bound: float | None = None
    style: RunStyle = _PLAIN


@dataclass(frozen=True)
class Curve:
    """A learner's mean violations and mean regrets as its caution moves, in the order of
    drawing.
    """

    label: str
    violations: Sequence[float]
    regrets: Sequence[float]
    notes: Sequence[str] = ()
    """what to say of each point, where there is something"""
    hue: int = 0


class Drawing(NamedTuple):
    """An <svg> element, and the data of its tooltip."""

    svg: str
    tooltip: dict[str, Any]


def drawing(lines: Sequence[PlotLine], description: str) -> Drawing:
    """The lines on one pair of axes; `description` is read out where they cannot be seen."""
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context(_SETTINGS):
        figure = Figure(figsize=(_WIDTH / 72, _HEIGHT / 72))
        axes = figure.add_axes((0.13, 0.16, 0.85, 0.81))
        draw_lines(axes, lines, _STAND_INS)
        element = _saved(figure, description)
        at = _shown(len(lines[0].values), _TOOLTIP_POINTS)
        (left, top), (right, bottom) = _pixels(axes, (0.0, 1.0)), _pixels(axes, (1.0, 0.0))
        tooltip = {
            "at": (at + 1).tolist(),
            "x": [*axes.get_xlim(), left, right],
            "y": [*axes.get_ylim(), bottom, top],
            "hues": [line.style.hue for line in lines],
            "lines": [[_rounded(value) for value in line.values[at]] for line in lines],
        }
        return Drawing(element, tooltip)


def area_drawing(edges: Int64s, shares: Floats, hues: Sequence[int], description: str) -> Drawing:
    """Areas on top of each other that add up to 100, (areas, parts) between the edges."""
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context(_SETTINGS):
        figure = Figure(figsize=(_WIDTH / 72, _HEIGHT / 72))
        axes = figure.add_axes((0.13, 0.16, 0.85, 0.81))
        draw_areas(axes, edges, shares, hues, _STAND_INS)
        element = _saved(figure, description)
        (left, top), (right, bottom) = _pixels(axes, (0.0, 1.0)), _pixels(axes, (1.0, 0.0))
        tops = np.cumsum(shares, axis=0)
        tooltip = {
            "at": edges[1:].tolist(),
            "x": [*axes.get_xlim(), left, right],
            "y": [*axes.get_ylim(), bottom, top],
            "hues": list(hues)[::-1],
            "lines": [[_rounded(value) for value in line] for line in shares[::-1]],
            "tops": [[_rounded(value) for value in line] for line in tops[::-1]],
        }
        return Drawing(element, tooltip)


def frontier_drawing(curves: Sequence[Curve], description: str) -> Drawing:
    """Mean regret against mean violation, on a logarithmic scale."""
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context(_SETTINGS):
        figure = Figure(figsize=(_WIDTH / 72, _HEIGHT / 72))
        axes = figure.add_axes((0.15, 0.16, 0.83, 0.81))
        draw_frontiers(axes, curves, _STAND_INS)
        element, dots = _saved(figure, description), []
        for curve in curves:
            notes = curve.notes or [""] * len(curve.regrets)
            points = zip(*places(curves, curve), strict=True)
            for point, violation, note in zip(points, curve.violations, notes, strict=True):
                named = f"{curve.label}, {note}" if note else curve.label
                words = f"{named}: regret {number(point[1])}, violation {number(violation)}"
                pixels = _pixels(axes, axes.transLimits.transform(point).tolist())
                dots.append([*pixels, curve.hue, words])
        return Drawing(element, {"dots": dots})


def _saved(figure: Figure, description: str) -> str:
    buffer = io.StringIO()
    figure.savefig(
        buffer,
        format="svg",
        transparent=True,
        metadata={"Date": None, "Creator": None, "Format": None, "Type": None},
    )
    return _inline(buffer.getvalue(), description)


def draw_lines(axes: Any, lines: Sequence[PlotLine], colors: Sequence[str]) -> None:
    """Series over rounds; a bound where it is in reach, dotted."""
    for i, line in enumerate(lines):
        _draw(axes, i, line, colors[line.style.hue])
    for line in lines:
        if line.bound is not None and in_reach(lines, line.bound):
            axes.axhline(
                line.bound,
                color=colors[line.style.hue],
                alpha=line.style.strength,
                linewidth=1.3,
                linestyle=(0, (1, 2.5)),
                zorder=2,
            )
    _dress(axes, "round")
    _number_axis(axes.xaxis)


def draw_areas(
    axes: Any, edges: Int64s, shares: Floats, hues: Sequence[int], colors: Sequence[str]
) -> list[Any]:
    """Areas on top of each other, level between two edges; answers their patches."""
    across = np.repeat(edges, 2)[1:-1]
    tops = np.concatenate([np.zeros((1, shares.shape[1])), np.cumsum(shares, axis=0)])
    patches = []
    for low, high, hue in zip(tops[:-1], tops[1:], hues, strict=True):
        outline = (
            np.concatenate([across, across[::-1]]),
            np.concatenate([np.repeat(high, 2), np.repeat(low, 2)[::-1]]),
        )
        patches += axes.fill(*outline, facecolor=colors[hue], alpha=0.85, linewidth=0)
    axes.set_ylim(0.0, 100.0)
    axes.set_xlim(0.0, float(edges[-1]))
    _dress(axes, "round")
    axes.margins(0.0)
    _number_axis(axes.xaxis)
    return patches


def in_reach(lines: Sequence[PlotLine], bound: float) -> bool:
    """Whether a bound is drawn without flattening the lines."""
    low = min(0.0, *(float(line.values.min()) for line in lines))
    high = max(0.0, *(float(line.values.max()) for line in lines))
    return low <= bound <= high + _FAR * (high - low)


def _pixels(axes: Any, place: Sequence[float]) -> tuple[float, float]:
    """Where a place, given in shares of the axes, is in the drawing."""
    box = axes.get_position()
    x, y = box.x0 + float(place[0]) * box.width, box.y0 + float(place[1]) * box.height
    return round(_WIDTH * x, 1), round(_HEIGHT * (1.0 - y), 1)


def _rounded(value: float) -> float:
    return float(f"{value:.5g}")


def _shown(rounds: int, most: int) -> Int64s:
    """So many rounds at most, evenly spread, with both ends."""
    return np.unique(np.linspace(0, rounds - 1, min(rounds, most)).round().astype(np.int64))


def _dress(axes: Any, below: str) -> None:
    low, high = axes.get_ylim()
    if low < 0 < high:
        axes.axhline(0, color=_INK, alpha=0.45, linewidth=0.8, zorder=1)
    axes.spines[:].set_visible(False)
    axes.grid(axis="y", color=_INK, alpha=0.13, linewidth=0.8)
    axes.tick_params(length=0, labelcolor=_INK, pad=5)
    axes.margins(x=0.015)
    axes.set_xlabel(below, color=_INK, labelpad=3)
    _number_axis(axes.yaxis)


def _number_axis(axis: Any) -> None:
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    axis.set_major_locator(MaxNLocator(5, steps=[1, 2, 2.5, 5, 10]))
    axis.set_major_formatter(FuncFormatter(lambda x, _: tick(round(x, 12))))


def draw_frontiers(axes: Any, curves: Sequence[Curve], colors: Sequence[str]) -> None:
    """Regret over the logarithm of violation.

    Dots are round ends of very short lines: markers would need names, which a page of several
    figures cannot share.
    """
    for i, curve in enumerate(curves):
        color, (across, regrets) = colors[curve.hue], places(curves, curve)
        axes.plot(across, regrets, color=color, linewidth=1.2, alpha=0.6, zorder=3 + i)
        for place, regret in zip(across, regrets, strict=True):
            axes.plot(
                [place, place + 1e-6],
                [regret, regret],
                color=color,
                linewidth=6,
                solid_capstyle="round",
                zorder=3 + i,
            )
    _dress(axes, "mean violation a round")
    axes.margins(x=0.04)
    least, most = (
        _least(curves),
        max((violation for curve in curves for violation in curve.violations), default=1.0),
    )
    ticks = [(math.log10(tick), f"{tick:g}") for tick in _log_ticks(least, most)]
    if any(0.0 in curve.violations for curve in curves):
        ticks = [(math.log10(least / 3.0), "0"), *ticks]
    axes.set_xticks([place for place, _ in ticks], [label for _, label in ticks])


def _least(curves: Sequence[Curve]) -> float:
    """The least positive violation."""
    return min(
        (violation for curve in curves for violation in curve.violations if violation > 0.0),
        default=1.0,
    )


def places(curves: Sequence[Curve], curve: Curve) -> tuple[list[float], list[float]]:
    """Where the points of a curve are drawn; no violation at all has its place to the left of every
    other.
    """
    return [math.log10(violation or _least(curves) / 3.0) for violation in curve.violations], list(
        curve.regrets
    )


def _log_ticks(low: float, high: float) -> list[float]:
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


def _draw(axes: Any, i: int, line: PlotLine, color: str) -> None:
    rounds = len(line.values)
    shown, dashes = _shown(rounds, _POINTS), line.style.dashes
    axes.plot(
        shown + 1,
        line.values[shown],
        color=color,
        alpha=line.style.strength,
        linewidth=1.9,
        linestyle=(0, [d / 1.9 for d in dashes]) if dashes else "solid",
        zorder=3 + i,  # dashes over what is solid: lines that coincide are both seen
    )
    if line.bracket is not None:
        beside = rounds * (1.015 + 0.015 * i)
        axes.plot([beside, beside], line.bracket, color=color, linewidth=3.5, solid_capstyle="butt")


def legend_line(style: RunStyle) -> str:
    """A short piece of a run's line, for a legend."""
    dashes = " ".join(map(str, style.dashes)) or "none"
    css = (
        f"stroke: var(--line-{style.hue}); stroke-opacity: {style.strength:.2g}; stroke-width: 3; "
        f"stroke-dasharray: {dashes}"
    )
    return (
        '<svg class="legend-line" viewBox="0 0 27 4" aria-hidden="true"><path d="M0 2H27" '
        f'style="{css}"/></svg>'
    )


def legend_entry(style: RunStyle) -> str:
    """The line of a run and its name."""
    return legend_line(style) + escape(style.label)


def _inline(document: str, description: str) -> str:
    """The <svg> of a document without what a page of several cannot share: names, clipping
    (nothing leaves the axes), style sheets.
    """
    inside = re.split(r"<svg[^>]*>", document)[1]
    inside = re.sub(r"<(metadata|defs)>.*?</\1>", "", inside, flags=re.DOTALL)
    inside = re.sub(r' (id|clip-path)="[^"]*"', "", inside)
    inside = re.sub(
        r' (?:d|x|y|transform)="[^"]*"',
        lambda part: re.sub(r"\d+\.\d{2,}", lambda n: f"{float(n[0]):.1f}", part[0]),
        inside,
    )
    inside = inside.replace(_INK, "currentColor").replace(f"'{_FONT}'", "inherit")
    inside = re.sub(r"#0405([0-9a-f]{2})", lambda color: f"var(--line-{int(color[1], 16)})", inside)
    return (
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" '
        f'aria-label="{escape(description)}">{inside.strip()}'
    )
