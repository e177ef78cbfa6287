"""Sets that baselines solve linear programs over (hindsight/best_point.py)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from tidewolf.hindsight.best_point import BestPoint
from tidewolf.methods.settings import HardSet
from tidewolf.sets.base import ConvexSet


@dataclass(frozen=True)
class SetToSolveOn(HardSet):
    """A set that linear programs can describe."""

    def require(self, K: Any, owner: str) -> None:
        BestPoint(K, owner)


DescribedK = Annotated[
    ConvexSet,
    SetToSolveOn("The set that every played point belongs to; it has a linear description."),
]
