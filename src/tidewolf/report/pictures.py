"""Every figure of a page as a picture that stands alone: a matplotlib Figure, a PNG, an SVG. The
same bytes for the same data.
"""

from __future__ import annotations

import io
import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tidewolf.core import checkpoint
from tidewolf.core.errors import InvalidInput, MissingExtra
from tidewolf.report import network as drawn
from tidewolf.report.charts import Curve, Series, all_series, draw_frontiers, frontiers, places
from tidewolf.report.clock import Clock, clock_of
from tidewolf.report.figures import COLORS, draw_lines, line_look
from tidewolf.report.heat import ShownRun, full_colour, shown_runs
from tidewolf.report.styles import run_styles
from tidewolf.report.trust import Trust, draw_trust, trust_of

if TYPE_CHECKING:
    from tidewolf.evaluation.comparison import Comparison
    from tidewolf.evaluation.run import Run
    from tidewolf.networks.network import Network
    from tidewolf.report.picture import Picture

_WIDTH, _HEIGHT = 6.4, 4.2  # inches of one picture
_NEGATIVE = "#6b7480"
USE_COLORS = (
    "#8fa3b8",
    "#6f9bc4",
    "#4b93c9",
    "#2f8f9d",
    "#2f9468",
    "#6f9a2a",
    "#b08a00",
    "#d07a00",
    "#dc5a1e",
    "#cf2f2f",
    "#8f0a5c",
)
"""The colours of utilisation, those of the page."""


def write_figures(
    folder: str | os.PathLike[str],
    runs: Sequence[Run],
    *,
    entries: Sequence[str] = (),
    network: Network | None = None,
) -> list[Path]:
    """Every figure of the runs as a PNG and an SVG in a folder; `entries` names the entries of a
    point, `network` is what the set was made from. Answers the files.
    """
    folder, clock = Path(folder), clock_of(runs[0].stream, runs[0].rounds)
    figures = {each.name: _series([each], clock) for each in all_series(runs)}
    if curves := frontiers(runs):
        figures["frontier"] = plot_frontiers({"Frontier as caution moves": curves})
    for run, style in zip(runs, run_styles(runs), strict=True):
        if (trust := trust_of(run)) is not None:
            figures[f"trust of {style.label}"] = _trust(trust, clock)
    shown = shown_runs(runs, entries)
    for each in shown:
        figures[f"points of {each.style.label}"] = _heat(each, full_colour(shown), clock)
    for each, net in drawn.networks_of(shown, clock, network):
        figures[f"network of {each.style.label}"] = _network(net, each)
    folder.mkdir(parents=True, exist_ok=True)
    files = []
    for name, figure in figures.items():
        for ending, made in (("png", png), ("svg", svg)):
            files.append(folder / f"{_file_name(name)}.{ending}")
            checkpoint.write(files[-1], made(figure))
    return files


def plot_runs(runs: Sequence[Run]) -> Picture:
    """Regret (where it is known), violation and calls of several runs as they add up; of a single
    one also the weights of its experts, if it mixes any.
    """
    if runs[0].rounds == 0:
        raise InvalidInput("A run of no rounds has nothing to plot.")
    trust = trust_of(runs[0]) if len(runs) == 1 else None
    return _series(all_series(runs), clock_of(runs[0].stream, runs[0].rounds), trust)


def plot_comparison(comparison: Comparison) -> Picture:
    """The frontiers of every stream."""
    from tidewolf.report.comparison import ranking_curves

    rankings = comparison.rankings()
    return plot_frontiers(
        {
            stream: ranking_curves([each for each in rankings if each.stream == stream])
            for stream in comparison.streams
        }
    )


def plot_frontiers(
    titled: Mapping[str, Sequence[Curve]], upward: str = "mean regret a round"
) -> Picture:
    """Mean regret against mean violation, a panel for each title."""
    figure, panels = _panels(len(titled))
    for axes, (title, curves) in zip(panels, titled.items(), strict=True):
        draw_frontiers(axes, curves, COLORS)
        for curve in curves:
            color = COLORS[curve.hue]
            axes.plot([], [], "o-", color=color, markersize=5, linewidth=1.2, label=curve.label)
            axes.plot(*places(curves, curve), "o", color=color, markersize=5)
        axes.set_ylabel(upward)
        axes.set_title(title, fontsize="medium")
        if curves:
            axes.legend(frameon=False, fontsize="small")
    return figure


def png(figure: Picture) -> bytes:
    """A figure as the bytes of a PNG."""
    return figure._repr_png_()


def svg(figure: Picture) -> bytes:
    """A figure as the bytes of an SVG, its text as text."""
    import matplotlib

    buffer = io.BytesIO()
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "tidewolf"}):
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    return buffer.getvalue()


def _trust(trust: Trust, clock: Clock) -> Picture:
    figure, (axes,) = _panels(1, height=_HEIGHT + 0.2 * len(trust.styles))
    draw_trust(axes, trust, clock)
    return figure


def _series(all_of_them: Sequence[Series], clock: Clock, trust: Trust | None = None) -> Picture:
    figure, panels = _panels(len(all_of_them) + (trust is not None))
    from matplotlib.lines import Line2D

    if trust is not None:
        draw_trust(panels[-1], trust, clock)
    for axes, each in zip(panels, all_of_them, strict=False):
        draw_lines(axes, each.lines, COLORS, clock, from_zero=each.from_zero)
        axes.set_title(each.title, fontsize="medium")
        named = [
            f"{line.style.label}: {end}" for line, end in zip(each.lines, each.ends, strict=True)
        ]
        samples = [Line2D([], [], **line_look(x.style, COLORS[x.style.hue])) for x in each.lines]
        axes.legend(samples, named, frameon=False, fontsize="small")
    return figure


def _heat(each: ShownRun, scale: float, clock: Clock) -> Picture:
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import LinearSegmentedColormap, Normalize

    figure, (axes,) = _panels(1, height=max(2.4, 1.1 + 0.2 * len(each.map.entries)))
    rows, negative = len(each.map.entries), bool((each.map.values < 0).any())
    ends = [_NEGATIVE, "#ffffff"] if negative else ["#ffffff"]
    colours = LinearSegmentedColormap.from_list("tidewolf", [*ends, COLORS[each.style.hue]])
    sizes = Normalize(-scale if negative else 0.0, scale)
    axes.imshow(
        each.map.values,
        cmap=colours,
        norm=sizes,
        aspect="auto",
        interpolation="nearest",
        extent=(each.map.begins[0] - 0.5, each.map.ends[-1] + 0.5, rows, 0),
    )
    axes.set_yticks(np.arange(rows) + 0.5, each.map.entries, fontsize="x-small")
    axes.tick_params(axis="y", length=0)
    axes.spines[:].set_visible(False)
    ticks = clock.ticks()
    axes.set_xticks(ticks.places, ticks.labels)
    axes.set_xlabel(ticks.title)
    figure.colorbar(ScalarMappable(sizes, colours), ax=axes, pad=0.02, aspect=30)
    axes.set_title(f"The decision of {each.style.label} over time", fontsize="medium")
    return figure


def _network(net: drawn.DrawnNetwork, each: ShownRun) -> Picture:
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import ListedColormap, Normalize

    most = max((abs(link.load) for link in net.links), default=0.0)
    made, _ = drawn.drawings(net, most)
    figure, (axes,) = _panels(1, width=made.width / 90, height=made.height / 90 + 0.5)
    for link in made.links:
        idle = link["idle"] or link["level"] is None
        color, (x0, y0, x1, y1) = "#c5cad1" if idle else USE_COLORS[link["level"]], link["line"]
        axes.plot([x0, x1], [y0, y1], color=color, linewidth=link["width"] * 0.8, zorder=2)
        axes.fill(*zip(*link["arrow"], strict=True), color=color, linewidth=0, zorder=2)
    for node in made.nodes:
        face = "#1c2430" if node["end"] else "white"
        style = {"color": face, "markeredgecolor": "#1c2430", "markersize": node["radius"] * 1.2}
        axes.plot(node["x"], node["y"], "o", **style, zorder=5)
        if said := node["label"]:
            weight = "bold" if node["end"] else "normal"
            axes.text(said["x"], said["y"], said["text"], ha="center", fontsize=8, weight=weight)
    axes.set_axis_off()
    axes.set_xlim(0.0, made.width)
    axes.set_ylim(made.height, 0.0)
    top, label = (1.0, "mean utilisation") if net.limited else (most or 1.0, "mean load")
    bar = ScalarMappable(Normalize(0.0, top), ListedColormap(USE_COLORS[:-1]))
    figure.colorbar(bar, ax=axes, label=label, pad=0.02, aspect=30, extend="max")
    axes.set_title(f"The network under {each.style.label}", fontsize="medium")
    return figure


def _panels(
    count: int, *, width: float | None = None, height: float | None = None
) -> tuple[Picture, list[Any]]:
    """A figure with so many panels, three a row at most; four are two by two."""
    try:
        from tidewolf.report.picture import Picture
    except ImportError:
        raise MissingExtra(
            'Pictures need matplotlib, not installed here; type: pip install "tidewolf[app]"'
        ) from None
    columns = 2 if count == 4 else min(3, count)
    rows = math.ceil(count / columns)
    wide = width if width is not None else _WIDTH if columns == 1 else 4.6 * columns
    figure = Picture(
        figsize=(wide, height if height is not None else _HEIGHT * rows), layout="constrained"
    )
    panels = figure.subplots(rows, columns, squeeze=False).ravel().tolist()
    for empty in panels[count:]:
        empty.set_visible(False)
    return figure, panels[:count]


def _file_name(name: str) -> str:
    return "-".join("".join(c if c.isalnum() else " " for c in name).split())
