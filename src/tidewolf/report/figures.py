"""Lines and areas over rounds as inline SVG that takes its colours and its font from the page.

matplotlib draws with stand-in colours, which become CSS: the ink is `currentColor`, line i is
`var(--line-i)`, so light, dark and print are the page's business. No pyplot, no global state, and
the same bytes for the same data. The tooltip of a drawing travels beside it, in the
drawing's own coordinates.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from tidewolf.core.types import Floats, Int64s
from tidewolf.evaluation.formatting import tick
from tidewolf.report.clock import Clock
from tidewolf.report.styles import HUES, RunStyle, Table

_POINTS, _TOOLTIP_POINTS = 600, 200  # of a line, and those that have a tooltip
# in CSS pixels; about the width of a phone, so text keeps its size there
SIZE, EDGES = (400, 270), (52, 49, 8, 8)
INK = "#010203"
_FONT = "DejaVu Sans"
COLORS = ("#0072b2", "#d55e00", "#00805d", "#aa4499", "#a87300", "#555c66", "#4433aa", "#882255")
"""The line colours of the page, for pictures that stand alone."""
STAND_INS = tuple(f"#0405{hue:02x}" for hue in range(HUES))
_FAR = 0.6
"""A bound is drawn where it is at most this share of the lines' span beyond them."""
SETTINGS = {
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


class PointLabel(NamedTuple):
    """What a point of a drawing is called: the middle of the text, and its base line."""

    x: float
    y: float
    text: str
    hue: int
    strong: bool = False


class Drawing(NamedTuple):
    """The inside of an <svg> element, and the data of its tooltip."""

    inside: str
    width: int
    height: int
    description: str
    """read out where it cannot be seen"""
    tooltip: dict[str, Any]
    labels: Sequence[PointLabel] = ()
    rings: Sequence[tuple[float, float, int]] = ()
    """points to stand out, with their hues"""


class LegendEntry(NamedTuple):
    """A line of a legend."""

    style: RunStyle
    value: str = ""
    note: str = ""


class Figure(NamedTuple):
    """A figure of a page: one drawing, or a broad and a slim one of the same."""

    title: str
    about: str
    drawings: Sequence[Drawing]
    legend: Sequence[LegendEntry]
    table: Table | None = None
    sentences: Sequence[str] = ()
    wide: bool = False


@contextmanager
def canvas(size: tuple[int, int], edges: tuple[int, int, int, int]) -> Iterator[tuple[Any, Any]]:
    """A figure of this size in pixels and axes that leave so many free to the left, beneath, to the
    right and above.
    """
    import matplotlib
    from matplotlib.figure import Figure as Canvas

    (wide, high), (left, bottom, right, top) = size, edges
    with matplotlib.rc_context(SETTINGS):
        figure = Canvas(figsize=(wide / 72, high / 72))
        box = (left / wide, bottom / high, 1 - (left + right) / wide, 1 - (bottom + top) / high)
        yield figure, figure.add_axes(box)


def drawing(
    lines: Sequence[PlotLine],
    description: str,
    clock: Clock | None = None,
    *,
    from_zero: bool = False,
) -> Drawing:
    """The lines on one pair of axes."""
    clock = Clock(len(lines[0].values)) if clock is None else clock
    with canvas(SIZE, EDGES) as (figure, axes):
        draw_lines(axes, lines, STAND_INS, clock, from_zero=from_zero)
        at = _shown(len(lines[0].values), _TOOLTIP_POINTS)
        values = {"lines": _rounded(line.values[at] for line in lines)}
        tooltip = _tooltip(axes, at, clock, [line.style.hue for line in lines]) | values
        return Drawing(saved(figure), *SIZE, description, tooltip)


def area_drawing(
    edges: Int64s, shares: Floats, hues: Sequence[int], description: str, clock: Clock
) -> Drawing:
    """Areas on top of each other that add up to 100, (areas, parts) between the edges."""
    with canvas(SIZE, EDGES) as (figure, axes):
        draw_areas(axes, edges, shares, hues, STAND_INS, clock)
        tops = np.cumsum(shares, axis=0)
        values = {"lines": _rounded(shares[::-1]), "tops": _rounded(tops[::-1])}
        tooltip = _tooltip(axes, edges[1:] - 1, clock, list(hues)[::-1]) | values
        return Drawing(saved(figure), *SIZE, description, tooltip)


def _tooltip(axes: Any, at: Int64s, clock: Clock, hues: list[int]) -> dict[str, Any]:
    """How numbers become pixels, the rounds that have a tooltip, and when they were if that is
    known.
    """
    (left, top), (right, bottom) = pixels(axes, (0.0, 1.0)), pixels(axes, (1.0, 0.0))
    found = {
        "x": [*axes.get_xlim(), left, right],
        "y": [*axes.get_ylim(), bottom, top],
        "at": (at + 1).tolist(),
        "hues": hues,
    }
    dated = clock.times is not None
    return found | ({"when": [clock.moment(i) for i in at.tolist()]} if dated else {})


def saved(figure: Any) -> str:
    """A figure as the inside of an <svg> element."""
    buffer = io.StringIO()
    figure.savefig(
        buffer,
        format="svg",
        transparent=True,
        metadata={"Date": None, "Creator": None, "Format": None, "Type": None},
    )
    return inline(buffer.getvalue())


def draw_lines(
    axes: Any,
    lines: Sequence[PlotLine],
    colors: Sequence[str],
    clock: Clock,
    *,
    from_zero: bool = False,
) -> None:
    """Series over rounds; a bound where it is in reach, dotted."""
    for i, line in enumerate(lines):
        _draw(axes, i, line, colors[line.style.hue])
    for line in lines:
        if line.bound is not None and in_reach(lines, line.bound):
            look = {"color": colors[line.style.hue], "alpha": line.style.strength, "zorder": 2}
            axes.axhline(line.bound, **look, linewidth=1.3, linestyle=(0, (1, 2.5)))
    if from_zero:
        axes.set_ylim(bottom=0.0, top=None if axes.get_ylim()[1] > 0.0 else 1.0)
        if not any(line.values.any() for line in lines):
            axes.set_ylim(0.0, 1.0)
    dress(axes)
    _time_axis(axes, clock)


def draw_areas(
    axes: Any,
    edges: Int64s,
    shares: Floats,
    hues: Sequence[int],
    colors: Sequence[str],
    clock: Clock,
) -> list[Any]:
    """Areas on top of each other, level between two edges; answers their patches."""
    across = np.repeat(edges, 2)[1:-1]
    tops = np.repeat(np.cumsum(shares, axis=0, dtype=np.float64), 2, axis=1)
    patches, low = [], np.zeros(len(across))
    for high, hue in zip(tops, hues, strict=True):
        outline = np.concatenate([across, across[::-1]]), np.concatenate([high, low[::-1]])
        patches += axes.fill(*outline, facecolor=colors[hue], alpha=0.85, linewidth=0)
        low = high
    axes.set_ylim(0.0, 100.0)
    axes.set_xlim(0.0, float(edges[-1]))
    dress(axes)
    axes.margins(0.0)
    _time_axis(axes, clock)
    return patches


def in_reach(lines: Sequence[PlotLine], bound: float) -> bool:
    """Whether a bound is drawn without flattening the lines."""
    low = min(0.0, *(float(line.values.min()) for line in lines))
    high = max(0.0, *(float(line.values.max()) for line in lines))
    return low <= bound <= high + _FAR * (high - low)


def pixels(
    axes: Any, place: Sequence[float], size: tuple[float, float] = SIZE
) -> tuple[float, float]:
    """Where a place, given in shares of the axes, is in the drawing."""
    box = axes.get_position()
    x, y = box.x0 + float(place[0]) * box.width, box.y0 + float(place[1]) * box.height
    return round(size[0] * x, 1), round(size[1] * (1.0 - y), 1)


def _rounded(lines: Iterable[Floats]) -> list[list[float]]:
    return [[float(f"{value:.5g}") for value in line] for line in lines]


def _shown(rounds: int, most: int) -> Int64s:
    """So many rounds at most, evenly spread, with both ends."""
    return np.unique(np.linspace(0, rounds - 1, min(rounds, most)).round().astype(np.int64))


def dress(axes: Any) -> None:
    """Axes without a frame, with lines to read heights by."""
    low, high = axes.get_ylim()
    if low < 0 < high:
        axes.axhline(0, color=INK, alpha=0.45, linewidth=0.8, zorder=1)
    axes.spines[:].set_visible(False)
    axes.grid(axis="y", color=INK, alpha=0.13, linewidth=0.8)
    axes.tick_params(length=0, labelcolor=INK, pad=5)
    axes.margins(x=0.015)
    _number_axis(axes.yaxis)


def _time_axis(axes: Any, clock: Clock) -> None:
    ticks = clock.ticks()
    axes.set_xticks(ticks.places, ticks.labels)
    axes.tick_params(axis="x", pad=9)
    axes.set_xlabel(ticks.title, color=INK, labelpad=3)


def _number_axis(axis: Any) -> None:
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    axis.set_major_locator(MaxNLocator(5, steps=[1, 2, 2.5, 5, 10]))
    axis.set_major_formatter(FuncFormatter(lambda x, _: tick(round(x, 12))))


def _draw(axes: Any, i: int, line: PlotLine, color: str) -> None:
    rounds = len(line.values)
    shown = _shown(rounds, _POINTS)
    # dashes over what is solid: lines that coincide are both seen
    axes.plot(shown + 1, line.values[shown], **line_look(line.style, color), zorder=3 + i)
    if line.bracket is not None:
        beside = rounds * (1.015 + 0.015 * i)
        axes.plot([beside, beside], line.bracket, color=color, linewidth=3.5, solid_capstyle="butt")


def line_look(style: RunStyle, color: str) -> dict[str, Any]:
    """How matplotlib draws the line of a run."""
    dashes = (0, [d / 1.9 for d in style.dashes]) if style.dashes else "solid"
    return {"color": color, "alpha": style.strength, "linewidth": 1.9, "linestyle": dashes}


def inline(document: str) -> str:
    """The inside of the <svg> of a document without what a page of several cannot share: names,
    clipping (nothing leaves the axes), style sheets.
    """
    inside = re.split(r"<svg[^>]*>", document)[1]
    inside = re.sub(r"<(metadata|defs)>.*?</\1>", "", inside, flags=re.DOTALL)
    inside = re.sub(r' (id|clip-path)="[^"]*"', "", inside)
    inside = re.sub(
        r' (?:d|x|y|transform)="[^"]*"',
        lambda part: re.sub(r"\d+\.\d{2,}", lambda n: f"{float(n[0]):.1f}", part[0]),
        inside,
    )
    inside = inside.replace(INK, "currentColor").replace(f"'{_FONT}'", "inherit")
    inside = re.sub(r"#0405([0-9a-f]{2})", lambda color: f"var(--line-{int(color[1], 16)})", inside)
    return inside.strip().removesuffix("</svg>")
