"""The paths of a decision: those of a network, or of a set of flows."""

from __future__ import annotations

from typing import Any, NamedTuple

from tidewolf.core.types import Array
from tidewolf.networks.network import Network
from tidewolf.sets import ConvexSet, FlowPolytope, MultiFlow


class Route(NamedTuple):
    commodity: str
    path: str
    share: float
    volume: float


def routes_of(
    K: ConvexSet, network: Network | None, x: Array, demands: Array | None = None
) -> list[Route] | None:
    """The paths of one decision, heaviest first, with volumes of these demands; None if it is no
    flow.
    """
    if network is not None:
        paths = network.path_shares(x, demands)
        return [Route(path.commodity, path.name, path.share, path.volume) for path in paths]
    if not isinstance(K, FlowPolytope | MultiFlow):
        return None
    flows: Any = zip(K.demands, K.paths(x), strict=True) if isinstance(K, MultiFlow) else None
    return [
        Route(
            f"{path.nodes[0]} > {path.nodes[-1]}",
            " > ".join(map(str, path.nodes)),
            path.weight / demand,
            path.weight,
        )
        for demand, paths in flows or [(1.0, K.paths(x))]
        for path in (paths if demand > 0.0 else ())
    ]
