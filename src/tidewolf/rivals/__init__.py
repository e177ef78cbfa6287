"""What one would otherwise use, to compare with. Rivals may project exactly."""

from typing import Any

from tidewolf.methods.base import Learner
from tidewolf.rivals.online_frank_wolfe import OnlineFrankWolfe
from tidewolf.rivals.projected_primal_dual import ProjectedPrimalDual
from tidewolf.rivals.proximal_penalty import ProximalPenalty
from tidewolf.rivals.resolve import Resolve
from tidewolf.rivals.sinha_vaze import SinhaVaze
from tidewolf.rivals.wang_wan_zhang import WangWanZhang
from tidewolf.rivals.warm_up import WarmUp

__all__ = [
    "OnlineFrankWolfe",
    "ProjectedPrimalDual",
    "ProximalPenalty",
    "Resolve",
    "SinhaVaze",
    "WangWanZhang",
    "WarmUp",
]


def every() -> dict[str, type[Learner[Any]]]:
    """The rivals by name."""
    return {name: globals()[name] for name in __all__}
