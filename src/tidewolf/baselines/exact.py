"""Baselines that project exactly (hindsight/exact.py), and the sets they take."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any

from tidewolf.hindsight.exact import ExactProjection
from tidewolf.methods import clock, settings
from tidewolf.sets.base import ConvexSet


@dataclass(frozen=True)
class SetToProjectOn(settings.HardSet):
    def require(self, K: Any, owner: str) -> None:
        ExactProjection(K)


ProjectableK = Annotated[ConvexSet, SetToProjectOn()]


class ProjectsExactly(clock.Clocked[clock.S]):
    """Abstract: baselines that project exactly, and say so."""

    K: ConvexSet

    @cached_property
    def exact_projection(self) -> ExactProjection:
        return ExactProjection(self.K)

    def notes(self, state: clock.S) -> tuple[str, ...]:
        return ("It projects exactly and asks no oracle.", *super().notes(state))
