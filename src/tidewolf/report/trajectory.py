"""Where each run went: its decisions over time as a heat map, and for flows the network with the
loads of its links and the paths in use.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tidewolf.evaluation.formatting import number
from tidewolf.report import heat, network
from tidewolf.report.clock import Clock, clock_of
from tidewolf.report.paths import paths_context
from tidewolf.report.styles import RunStyle, run_styles
from tidewolf.report.tables import Table, table

if TYPE_CHECKING:
    from tidewolf.evaluation.run import Run
    from tidewolf.evaluation.trajectory_summary import TrajectorySummary
    from tidewolf.networks.network import Network

MAX_RUNS = 6
"""Of more runs, only the first are shown."""
_FULLEST = 8
"""How many links the table under a network names."""


class ShownRun(NamedTuple):
    """A run whose points were kept."""

    style: RunStyle
    run: Run
    trajectory: TrajectorySummary
    map: heat.HeatMap


def shown_runs(runs: Sequence[Run], entries: Sequence[str] = ()) -> list[ShownRun]:
    """The first of the runs whose points were kept, all with the same entries."""
    kept = [
        (style, run, run.trajectory)
        for run, style in zip(runs[:MAX_RUNS], run_styles(runs), strict=False)
        if run.trajectory is not None and run.rounds and run.trajectory.means.size
    ]
    if not kept:
        return []
    shown = heat.largest_entries([trajectory for _, _, trajectory in kept])
    return [ShownRun(*each, heat.heat_map(each[2], entries, shown)) for each in kept]


def full_colour(shown: Sequence[ShownRun]) -> float:
    """The size that has the full colour in every map: the largest entry of all, or 1 where entries
    are shares.
    """
    most = max((float(np.abs(each.map.values).max()) for each in shown), default=0.0) or 1.0
    return 1.0 if 0.5 < most <= 1.0 + 1e-9 else most


def maps_context(runs: Sequence[Run], entries: Sequence[str] = ()) -> dict[str, Any] | None:
    """The heat map of every run; None where no points were kept."""
    shown = shown_runs(runs, entries)
    if not shown:
        return None
    scale, clock = full_colour(shown), clock_of(runs[0].stream, runs[0].rounds)
    negative = any((each.map.values < 0).any() for each in shown)
    parts = shown[0].map
    kept = (
        f"the {len(parts.entries)} largest of {len(parts.entries) + parts.left_out:,} entries, the "
        "same for every learner"
        if parts.left_out
        else "every entry"
    )
    left = f" The first {MAX_RUNS} of {len(runs)} runs are shown." if len(runs) > MAX_RUNS else ""
    sign = "; what is negative is grey" if negative else ""
    return {
        "about": f"A row for each entry ({kept}), time from left to right{sign}.{left}",
        "runs": [
            {
                "style": each.style,
                "scale": heat.scale_context(scale, each.style.hue, negative),
                "heat": heat.heat_context(each.map, each.style.hue, scale, clock),
                "table": heat.heat_table(each.map, each.style.label),
            }
            for each in shown
        ],
    }


def networks_context(
    runs: Sequence[Run], entries: Sequence[str] = (), net: Network | None = None
) -> dict[str, Any] | None:
    """The network under every run; None where there is none, or no points were kept."""
    clock = clock_of(runs[0].stream, runs[0].rounds)
    found = networks_of(shown_runs(runs, entries), clock, net)
    if not found:
        return None
    shown, drawn = [each for each, _ in found], [net_drawn for _, net_drawn in found]
    limited = any(each.limited for each in drawn)
    most = max((abs(link.load) for each in drawn for link in each.links), default=0.0)
    return {
        "about": _about(drawn[0], limited, clock, shown[0]),
        "notes": [] if net is None else list(net.notes),
        "scale": network.scale_context(limited, most),
        "runs": [
            {
                "style": each.style,
                "summary": network.summary(net_drawn),
                "description": f"The network with the load of each link under {each.style.label}.",
                "drawings": network.drawings(net_drawn, most),
                "links": _links(net_drawn, limited),
                "paths": paths_context(each.run, each.trajectory, net, clock),
            }
            for each, net_drawn in found
        ],
    }


def networks_of(
    shown: Sequence[ShownRun], clock: Clock, net: Network | None = None
) -> list[tuple[ShownRun, network.DrawnNetwork]]:
    """The network of each run, with the same links for all; nothing for sets without one."""
    carriers = [network.carrier_of(each.run, net) for each in shown]
    used = [
        (each, carrier, network.usage(carrier, each.run))
        for carrier, each in zip(carriers, shown, strict=True)
        if carrier is not None
    ]
    if not used:
        return []
    links = network.drawn_links(used[0][1], [use for _, _, use in used])
    return [
        (each, network.drawn_network(carrier, use, links, clock, each.run))
        for each, carrier, use in used
    ]


def _about(drawn: network.DrawnNetwork, limited: bool, clock: Clock, each: ShownRun) -> str:
    colour = (
        "Colour is utilisation: the mean load of a link over its mean capacity. Width is the mean "
        "load."
        if limited
        else "Width and colour are the mean load; the links have no capacities."
    )
    left = f" {drawn.left_out:,} links that carry less are not drawn." if drawn.left_out else ""
    part = int(np.median(each.trajectory.ends - each.trajectory.begins))
    worst = (
        ""
        if not limited
        else " Worst utilisation is that of single rounds."
        if part <= 1
        else f" Worst utilisation is that of {len(each.trajectory.ends)} parts of the run, of about"
        f" {part:,} rounds each."
    )
    cut = " Dashed links may carry nothing." if any(link.cut for link in drawn.links) else ""
    names = (
        " Names of nodes and links appear at the pointer."
        if len(drawn.nodes) > network.NAMED
        else " Links say more at the pointer."
    )
    pairs = {(link.tail, link.head) for link in drawn.links}
    both = any((head, tail) in pairs for tail, head in pairs)
    halves = (
        " Of links both ways each direction is drawn as its half of the line, up to its arrow."
        if both
        else ""
    )
    return f"{colour}{worst}{left}{cut}{halves}{names}"


def _links(drawn: network.DrawnNetwork, limited: bool) -> Table:
    """The fullest links, or those that carry most."""
    if not limited:
        ranked = sorted(drawn.links, key=lambda link: -abs(link.load))[:_FULLEST]
        rows = [(link.name, number(link.load)) for link in ranked]
        return table("Links that carry most", ("link", "mean load"), rows)
    ranked = sorted(
        (link for link in drawn.links if not link.cut), key=lambda link: -(link.used or 0.0)
    )[:_FULLEST]
    return table(
        "Fullest links",
        ("link", "mean used", "worst", "when", "mean load", "mean capacity"),
        [
            (
                link.name,
                "no limit" if link.used is None else network.utilisation_text(link.used),
                "" if link.worst is None else network.utilisation_text(link.worst),
                link.when,
                number(link.load),
                "none" if link.capacity is None else number(link.capacity),
            )
            for link in ranked
        ],
    )
