"""Lines over rounds as inline SVG that takes its colours and its font from the page.

matplotlib draws with stand-in colours, which become CSS: the ink is `currentColor`, line i is `var(--line-i)`, so light,
dark and print are the page's business. No pyplot, no global state, and the same bytes for the same data.
"""

from __future__ import annotations

import io
import re
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from tidewolf.report.words import short

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LINES = 8
"""How many line colours the page defines; further lines begin again."""
_POINTS = 600
_WIDTH, _HEIGHT = 400, 270  # in CSS pixels; about the width of a phone, so text keeps its size there
_INK = "#010203"
_FONT = "DejaVu Sans"
_DASHES = ((), (6, 3), (2, 2), (8, 3, 2, 3))


@dataclass(frozen=True)
class Line:
    """One series: a value after each round, and between which two numbers the last one truly lies, where that is known."""

    values: np.ndarray[Any, np.dtype[np.float64]]
    bracket: tuple[float, float] | None = None


def svg(lines: list[Line], description: str) -> str:
    """The lines on one pair of axes, as an <svg> element; `description` is read out where it cannot be seen."""
    import matplotlib

    settings = {"svg.fonttype": "none", "svg.hashsalt": "tidewolf", "font.family": _FONT, "font.size": 12, "path.simplify": False}
    with matplotlib.rc_context(settings):
        buffer = io.StringIO()
        _drawn(lines).savefig(
            buffer, format="svg", transparent=True, metadata={"Date": None, "Creator": None, "Format": None, "Type": None}
        )
    return _inline(buffer.getvalue(), description)


def _drawn(lines: list[Line]) -> Figure:
    from matplotlib.figure import Figure
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    figure = Figure(figsize=(_WIDTH / 72, _HEIGHT / 72))
    axes = figure.add_axes((0.13, 0.16, 0.85, 0.81))
    for i, line in enumerate(lines):
        _draw(axes, i, line)
    low, high = axes.get_ylim()
    if low < 0 < high:
        axes.axhline(0, color=_INK, alpha=0.45, linewidth=0.8, zorder=1)
    axes.spines[:].set_visible(False)
    axes.grid(axis="y", color=_INK, alpha=0.13, linewidth=0.8)
    axes.tick_params(length=0, labelcolor=_INK, pad=5)
    axes.margins(x=0.015)
    axes.set_xlabel("round", color=_INK, labelpad=3)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(MaxNLocator(5, steps=[1, 2, 2.5, 5, 10]))
        axis.set_major_formatter(FuncFormatter(lambda x, _: short(round(x, 12))))
    return figure


def _draw(axes: Any, i: int, line: Line) -> None:
    rounds = len(line.values)
    shown = np.unique(np.linspace(0, rounds - 1, min(rounds, _POINTS)).round().astype(int))
    color, dashes = f"#0405{i % LINES:02x}", _DASHES[i % len(_DASHES)]
    axes.plot(
        shown + 1,
        line.values[shown],
        color=color,
        linewidth=1.9,
        linestyle=(0, [d / 1.9 for d in dashes]) if dashes else "solid",
        zorder=3 + i,  # dashes over what is solid: lines that coincide are both seen
    )
    if line.bracket is not None:
        beside = rounds * (1.015 + 0.015 * i)
        axes.plot([beside, beside], line.bracket, color=color, linewidth=3.5, solid_capstyle="butt")


def swatch(i: int) -> str:
    """A short piece of line i, for a legend."""
    dashes = " ".join(map(str, _DASHES[i % len(_DASHES)])) or "none"
    return (
        '<svg class="swatch" viewBox="0 0 27 4" aria-hidden="true">'
        f'<path d="M0 2H27" style="stroke: var(--line-{i % LINES}); stroke-width: 3; stroke-dasharray: {dashes}"/></svg>'
    )


def _inline(document: str, description: str) -> str:
    """The <svg> of a document without what a page of several cannot share: names, clipping (nothing leaves the axes), style sheets."""
    inside = re.split(r"<svg[^>]*>", document)[1]
    inside = re.sub(r"<(metadata|defs)>.*?</\1>", "", inside, flags=re.DOTALL)
    inside = re.sub(r' (id|clip-path)="[^"]*"', "", inside)
    inside = re.sub(r' (?:d|x|y|transform)="[^"]*"', lambda part: re.sub(r"\d+\.\d{2,}", lambda n: f"{float(n[0]):.1f}", part[0]), inside)
    inside = inside.replace(_INK, "currentColor").replace(f"'{_FONT}'", "inherit")
    inside = re.sub(r"#0405([0-9a-f]{2})", lambda color: f"var(--line-{int(color[1], 16)})", inside)
    return f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{escape(description)}">{inside.strip()}'
