"""Methods to compare with: what one would otherwise use. Baselines may project exactly."""

from typing import Any

from tidewolf.baselines.clasp import CLASP
from tidewolf.baselines.online_frank_wolfe import OnlineFrankWolfe
from tidewolf.baselines.projected_primal_dual import ProjectedPrimalDual
from tidewolf.baselines.proximal_penalty import ProximalPenalty
from tidewolf.baselines.resolve import Resolve
from tidewolf.baselines.sinha_vaze import SinhaVaze
from tidewolf.baselines.wang_wan_zhang import WangWanZhang
from tidewolf.methods.base import Learner

__all__ = [
    "CLASP", "OnlineFrankWolfe", "ProjectedPrimalDual", "ProximalPenalty", "Resolve", "SinhaVaze",
    "WangWanZhang",
]  # fmt: skip


def every() -> dict[str, type[Learner[Any]]]:
    """The baselines by name."""
    return {name: globals()[name] for name in __all__}
