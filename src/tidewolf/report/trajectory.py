"""Where each run went: its points over time as a heat map, and for flows the network with the loads
of its links and the paths in use.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tidewolf.report import heat, network
from tidewolf.report.figures import legend_entry
from tidewolf.report.markup import folded
from tidewolf.report.styles import RunStyle, run_styles

if TYPE_CHECKING:
    from tidewolf.evaluation.run import Run
    from tidewolf.evaluation.trajectory_summary import TrajectorySummary
    from tidewolf.sets.flows.flow_polytope import Path

MAX_RUNS = 6
"""Of more runs, only the first are shown."""
_PATHS = 12


class ShownRun(NamedTuple):
    """A run whose points were kept."""

    style: RunStyle
    run: Run
    trajectory: TrajectorySummary
    map: heat.HeatMap


def shown_runs(runs: Sequence[Run], entries: Sequence[str] = ()) -> list[ShownRun]:
    """The first of the runs whose points were kept."""
    return [
        ShownRun(style, run, run.trajectory, heat.heat_map(run.trajectory, entries))
        for run, style in zip(runs[:MAX_RUNS], run_styles(runs), strict=False)
        if run.trajectory is not None and run.rounds and run.trajectory.means.size
    ]


def full_colour(shown: Sequence[ShownRun]) -> float:
    """The size that has the full colour in every map: the largest entry of all."""
    return max((float(np.abs(each.map.values).max()) for each in shown), default=0.0) or 1.0


def trajectory_section(runs: Sequence[Run], entries: Sequence[str] = ()) -> str:
    """Everything about where the runs went; nothing where no points were kept."""
    shown = shown_runs(runs, entries)
    if not shown:
        return ""
    scale = full_colour(shown)
    maps = "".join(_map(each, scale) for each in shown)
    nets = "".join(_networks(shown))
    left = f" The first {MAX_RUNS} of {len(runs)} runs are shown." if len(runs) > MAX_RUNS else ""
    parts = shown[0].map
    kept = (
        f"the {len(parts.entries)} largest of {len(parts.entries) + parts.left_out:,} entries"
        if parts.left_out
        else "every entry"
    )
    sign = ", grey where negative" if any((each.map.values < 0).any() for each in shown) else ""
    about = (
        f"A row for each entry ({kept}), time from left to right; full colour is "
        f"{scale:.3g}{sign}.{left}"
    )
    return (
        f'<h2 class="part">The played point over time</h2><p class="read">{about}</p><section '
        f'class="figures two">{maps}</section>'
        + (
            '<h2 class="part">The network</h2><p class="read">Links as wide as their mean load'
            f" over the run, written beside them. Beneath, the paths in use at the end.</p>{nets}"
            if nets
            else ""
        )
    )


def _map(each: ShownRun, scale: float) -> str:
    return (
        f"<figure><figcaption><h3>{legend_entry(each.style)}</h3></figcaption>"
        f"{heat.element(each.map, each.style.hue, scale)}"
        f"{folded(heat.heat_table(each.map), each.style.label)}</figure>"
    )


def _networks(shown: Sequence[ShownRun]) -> Iterator[str]:
    for each in shown:
        K = each.run.learner.hard_set
        net = network.network_of(K, each.trajectory.mean)
        if net is None:
            return
        paths = network.paths_in_use(K, each.trajectory.means[-1])
        alt_text = f"The network with the mean load of each link under {each.style.label}."
        yield (
            f'<figure class="wide"><figcaption><h3>{legend_entry(each.style)}</h3></figcaption>'
            f"{network.drawings(net, each.style.hue, alt_text)}{_paths(paths, each)}</figure>"
        )


def _paths(paths: Sequence[Path], each: ShownRun) -> str:
    if not paths:
        return ""
    begin, end = each.map.begins[-1], each.map.ends[-1]
    when = f"round {end:,}" if begin == end else f"rounds {begin:,} to {end:,}"
    most = paths[0].weight
    items = "".join(
        f'<li><b>{path.weight:.3g}</b><i style="--share: {path.weight / most:.3f}"></i>'
        f"<span>{' &rarr; '.join(escape(str(node)) for node in path.nodes)}</span></li>"
        for path in paths[:_PATHS]
    )
    more = (
        f'<p class="read">and {len(paths) - _PATHS} lighter ones</p>' if len(paths) > _PATHS else ""
    )
    return (
        f'<h4>Paths in use, {when}</h4><ol class="paths" style="--tone: '
        f'var(--line-{each.style.hue})">{items}</ol>{more}'
    )
