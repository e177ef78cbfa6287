"""Stay: the point that was played in the first round, in every round after it.

Where losses declare their curvature, values are mixed, and the run ends within ln(1/prior)/alpha of
each expert (methods/steps/hedge.py). Then this expert, with its large prior, keeps a run that has
nothing to learn near the start.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple, final

from tidewolf.core import oracle, round_info
from tidewolf.core.feedback import FirstOrder, FullInformation
from tidewolf.core.types import Array
from tidewolf.core.vertices import Vertex
from tidewolf.experts.base import Adviser, Proposals


class StaticState(NamedTuple):
    x: Array | None = None


@final
@dataclass(frozen=True, eq=False, repr=False)
class Static(Adviser):
    """Stay at the first decision.

    Examples
    --------
    >>> K, adviser = tw.sets.Simplex(2), tw.experts.Static()
    >>> adviser.names
    ('static',)
    >>> learner = tw.Ensemble(K, start=[0.25, 0.75], experts=[adviser])
    >>> run = tw.run(learner, tw.Stream(tw.functions.LogWealth([[1.0, 1.1], [1.0, 0.9]])))
    >>> run.learner.proposals(run.final_state)[-1].point
    array([0.25, 0.75])
    """

    gives_members: ClassVar[bool] = True
    names: ClassVar[tuple[str, ...]] = ("static",)
    waits: ClassVar[bool] = False

    @property
    def in_words(self) -> tuple[str, ...]:
        return ("staying",)

    def start(self, K: oracle.HasLMO) -> StaticState:
        return StaticState()

    def observe(
        self, K: oracle.HasLMO, state: StaticState, feedback: FullInformation | FirstOrder, x: Array
    ) -> StaticState:
        return state if state.x is not None else StaticState(x)

    def propose(
        self,
        K: oracle.HasLMO,
        state: StaticState,
        info: round_info.RoundInfo | None,
        t: int,
        budget: int,
        vertices: tuple[Vertex, ...],
    ) -> Proposals:
        return Proposals((state.x,), state)
