"""Baselines that project exactly (hindsight/exact.py), and the sets they take."""

from functools import cached_property
from typing import Annotated

from tidewolf.hindsight.exact import ExactProjection
from tidewolf.methods import clock, settings
from tidewolf.sets.base import ConvexSet

ProjectableK = Annotated[ConvexSet, settings.HardSet(require=lambda K, _: ExactProjection(K))]


class ProjectsExactly(clock.Clocked[clock.S]):
    """Abstract: baselines that project exactly, and say so."""

    K: ConvexSet

    @cached_property
    def exact_projection(self) -> ExactProjection:
        return ExactProjection(self.K)

    def notes(self, state: clock.S) -> tuple[str, ...]:
        return ("It projects exactly and asks no oracle.", *super().notes(state))
