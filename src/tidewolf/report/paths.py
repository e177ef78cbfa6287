"""The paths in use at the end of a run, as shares of their commodity's demand, on a scale to 1."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from tidewolf.core.types import Floats
from tidewolf.evaluation.formatting import percent
from tidewolf.report.clock import Clock

if TYPE_CHECKING:
    from tidewolf.evaluation.run import Run
    from tidewolf.evaluation.trajectory_summary import TrajectorySummary
    from tidewolf.networks.network import Network

SHOWN = 12
"""How many paths are listed."""
NEGLIGIBLE = 0.005
"""A smaller share is not worth a line."""


def paths_context(
    run: Run, trajectory: TrajectorySummary, net: Network | None, clock: Clock
) -> dict[str, Any] | None:
    """The heaviest paths of the last part of a run; None for sets without paths."""
    found = paths_in_use(run, trajectory.means[-1], net)
    if not found:
        return None
    begin, end = int(trajectory.begins[-1]), int(trajectory.ends[-1])
    shown = [one for one in found if one[2] >= NEGLIGIBLE][:SHOWN]
    left = found[len(shown) :]
    several = len({commodity for commodity, _, _ in found}) > 1
    return {
        "title": f"Paths in use, {clock.named_span(begin, end)}",
        "listed": [
            {
                "share": min(1.0, share),
                "share_text": f"{share:.3g}",
                "nodes": nodes,
                "commodity": commodity if several else "",
            }
            for commodity, nodes, share in shown
        ],
        "more": _more(left, several),
    }


def _more(left: Sequence[tuple[str, tuple[str, ...], float]], several: bool) -> str:
    """How many paths are not listed, and what they carry."""
    if not left:
        return ""
    counted = f"and {len(left):,} more path{'s' * (len(left) > 1)}"
    if several:  # shares of several demands do not add up
        return f"{counted}, each with at most {percent(left[0][2])} of its demand"
    return f"{counted} with {percent(sum(share for _, _, share in left))} of the demand"


def paths_in_use(
    run: Run, x: Floats, net: Network | None = None
) -> list[tuple[str, tuple[str, ...], float]]:
    """Commodity, nodes and share of each path, heaviest first."""
    from tidewolf.sets import FlowPolytope, MultiFlow

    K: Any = run.learner.hard_set
    each: Iterable[tuple[Any, Any, Any]]
    if net is not None:
        each = ((path.commodity, path.nodes, path.share) for path in net.path_shares(x))
    elif isinstance(K, FlowPolytope):
        each = (("", path.nodes, path.weight) for path in K.paths(x))
    elif isinstance(K, MultiFlow):
        each = (
            (f"{paths[0].nodes[0]} > {paths[0].nodes[-1]}", path.nodes, path.weight / demand)
            for paths, demand in zip(K.paths(x), K.demands, strict=True)
            for path in paths
            if demand > 0.0
        )
    else:
        return []
    found = [
        (str(commodity), tuple(map(str, nodes)), float(share)) for commodity, nodes, share in each
    ]
    return sorted(found, key=lambda one: -one[2])
