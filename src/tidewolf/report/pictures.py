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
from tidewolf.report import network
from tidewolf.report.charts import Series, all_series, frontiers, standing_curves
from tidewolf.report.figures import COLORS, Curve, draw_frontiers, draw_lines, places
from tidewolf.report.styles import RunStyle, run_styles
from tidewolf.report.trajectory import ShownRun, full_colour, shown_runs
from tidewolf.report.trust import Trust, draw_trust, trust_of

if TYPE_CHECKING:
    from tidewolf.evaluation.comparison import Comparison
    from tidewolf.evaluation.run import Run
    from tidewolf.report.picture import Picture

_WIDTH, _HEIGHT = 6.4, 4.2  # inches of one picture
_NEGATIVE = "#6b7480"


def write_figures(
    folder: str | os.PathLike[str], runs: Sequence[Run], *, entries: Sequence[str] = ()
) -> list[Path]:
    """Every figure of the runs as a PNG and an SVG in a folder; `entries` names the entries of a
    point. Answers the files.
    """
    folder = Path(folder)
    figures = {each.name: _series([each]) for each in all_series(runs)}
    if curves := frontiers(runs):
        figures["frontier"] = plot_frontiers({"Frontier as caution moves": curves})
    for run, style in zip(runs, run_styles(runs), strict=True):
        if (trust := trust_of(run)) is not None:
            figures[f"trust of {style.label}"] = _trust(trust)
    shown = shown_runs(runs, entries)
    for each in shown:
        figures[f"points of {each.style.label}"] = _heat(each, full_colour(shown))
        net = network.network_of(each.run.learner.hard_set, each.trajectory.mean)
        if net is not None:
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
    one also whom it trusted, where it mixes members.
    """
    if runs[0].rounds == 0:
        raise InvalidInput("A run of no rounds has nothing to plot.")
    trust = trust_of(runs[0]) if len(runs) == 1 else None
    return _series(all_series(runs), trust)


def plot_comparison(comparison: Comparison) -> Picture:
    """The frontiers of every stream."""
    standings = comparison.standings()
    return plot_frontiers(
        {
            stream: standing_curves([each for each in standings if each.stream == stream])
            for stream in comparison.streams
        }
    )


def plot_frontiers(titled: Mapping[str, Sequence[Curve]]) -> Picture:
    """Mean regret against mean violation, on a logarithmic scale, a panel for each title."""
    figure, panels = _panels(len(titled))
    for axes, (title, curves) in zip(panels, titled.items(), strict=True):
        draw_frontiers(axes, curves, COLORS)
        for curve in curves:
            color = COLORS[curve.hue]
            axes.plot([], [], "o-", color=color, markersize=5, linewidth=1.2, label=curve.label)
            axes.plot(*places(curves, curve), "o", color=color, markersize=5)
        axes.set_ylabel("mean regret a round")
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


def _trust(trust: Trust) -> Picture:
    figure, (axes,) = _panels(1, height=_HEIGHT + 0.2 * len(trust.styles))
    draw_trust(axes, trust)
    return figure


def _series(all_of_them: Sequence[Series], trust: Trust | None = None) -> Picture:
    figure, panels = _panels(len(all_of_them) + (trust is not None))
    if trust is not None:
        draw_trust(panels[-1], trust)
    for axes, each in zip(panels, all_of_them, strict=False):
        draw_lines(axes, each.lines, COLORS)
        axes.set_title(each.title, fontsize="medium")
        named = [
            f"{line.style.label}: {end}" for line, end in zip(each.lines, each.ends, strict=True)
        ]
        axes.legend(
            [_sample(line.style) for line in each.lines], named, frameon=False, fontsize="small"
        )
    return figure


def _sample(style: RunStyle) -> Any:
    """A short piece of a line, for a legend."""
    from matplotlib.lines import Line2D

    dashes = (0, [length / 1.9 for length in style.dashes]) if style.dashes else "solid"
    return Line2D(
        [], [], color=COLORS[style.hue], alpha=style.strength, linewidth=1.9, linestyle=dashes
    )


def _heat(each: ShownRun, scale: float) -> Picture:
    figure, (axes,) = _panels(1, height=max(2.2, 0.9 + 0.2 * len(each.map.entries)))
    values, strength = each.map.values, np.abs(each.map.values) / scale
    image = np.ones((*values.shape, 4))
    for chosen, color in ((values >= 0, COLORS[each.style.hue]), (values < 0, _NEGATIVE)):
        image[chosen, :3] = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    image[..., 3] = np.minimum(1.0, strength)
    rows = len(each.map.entries)
    axes.imshow(
        image,
        aspect="auto",
        interpolation="nearest",
        extent=(each.map.begins[0] - 0.5, each.map.ends[-1] + 0.5, rows, 0),
    )
    axes.set_yticks(np.arange(rows) + 0.5, each.map.entries, fontsize="x-small")
    axes.tick_params(axis="y", length=0)
    axes.spines[:].set_visible(False)
    axes.set_xlabel("round")
    axes.set_title(
        f"Where {each.style.label} played; full colour is {scale:.3g}", fontsize="medium"
    )
    return figure


def _network(net: network.DrawnNetwork, each: ShownRun) -> Picture:
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path as Outline

    plan = network.layout(net)
    routes = [[(100.0 * layer, -74.0 * place) for layer, place in route] for route in plan.routes]
    spread = [y for route in routes for _, y in route]
    depth = max(net.layers)
    figure, (axes,) = _panels(
        1, width=max(_WIDTH, 1.1 * depth), height=max(2.6, 0.9 + (max(spread) - min(spread)) / 75)
    )
    most = max(map(abs, net.loads)) or 1.0
    for load, route, bend in zip(net.loads, routes, network.bends(net), strict=True):
        share, points = abs(load) / most, [route[0]]
        for controls, end in network.segments(route, bend, False):
            points += [*controls, end]
        outline = Outline(points, [Outline.MOVETO, *[Outline.CURVE4] * (len(points) - 1)])
        color, width = (
            (COLORS[each.style.hue], 0.8 + 6.0 * share)
            if share >= network.NEGLIGIBLE
            else ("#c5cad1", 0.8)
        )
        axes.add_patch(
            PathPatch(
                outline,
                fill=False,
                edgecolor=color,
                linewidth=width,
                alpha=0.75 if share >= network.NEGLIGIBLE else 1.0,
            )
        )
        if abs(load) >= network.least_written_load(net) > 0:
            box = {
                "boxstyle": "round,pad=0.1",
                "facecolor": "white",
                "edgecolor": "none",
                "alpha": 0.8,
            }
            axes.text(
                *network.middle(route, bend, False),
                f"{load:.2g}",
                ha="center",
                va="center",
                fontsize="x-small",
                bbox=box,
                zorder=4,
            )
    for node, (layer, place) in plan.nodes.items():
        x, y = 100.0 * layer, -74.0 * place
        axes.plot([x], [y], "o", color="white", markeredgecolor="#1c2430", markersize=6, zorder=5)
        weight = "bold" if node in net.ends else "normal"
        axes.annotate(
            net.nodes[node],
            (x, y),
            (0, -14),
            textcoords="offset points",
            ha="center",
            fontsize="small",
            weight=weight,
            zorder=6,
        )
    axes.set_axis_off()
    axes.margins(0.06, 0.14)
    axes.set_title(f"Mean load of every link under {each.style.label}", fontsize="medium")
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
