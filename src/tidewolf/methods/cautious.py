"""What learners with a caution share: their settings, and Lyapunov weights on their constraints."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from tidewolf.methods.clock import Clocked, EveryRound, S
from tidewolf.methods.settings import (
    DEFAULT_CAUTION,
    AnytimeHorizon,
    Caution,
    ConstraintLipschitz,
    HardSetK,
    Horizon,
    LossLipschitz,
)
from tidewolf.methods.steps.lyapunov import LyapunovWeights
from tidewolf.methods.steps.slopes import Slopes


@dataclass(frozen=True, eq=False, repr=False)
class Cautious(Clocked[S]):
    """Abstract: learners with these settings."""

    K: HardSetK
    horizon: Horizon = None
    caution: Caution = DEFAULT_CAUTION
    loss_lipschitz: LossLipschitz = None
    constraint_lipschitz: ConstraintLipschitz = None


class LyapunovLearner(Cautious[S], EveryRound[S]):
    """Abstract: those with Lyapunov weights (methods/steps/lyapunov.py), `dual` of their states."""

    def constants(self) -> tuple[float, float]:
        """c and p: the regret of its steps is about c D M T^p for gradients of at most M."""
        return 2.0, 0.5

    def weights(self, horizon: int | None) -> LyapunovWeights:
        """Those of a run, or of an epoch, of so many rounds."""
        slopes = self.loss_lipschitz, self.constraint_lipschitz
        return LyapunovWeights(self.K, self.caution, horizon, *slopes, *self.constants())

    @cached_property
    def whole_weights(self) -> LyapunovWeights:
        """Those of the whole run."""
        return self.weights(self.horizon)

    def weights_at(self, state: S) -> LyapunovWeights:
        """Those that a state continues with."""
        return self.whole_weights

    def limit_price(self, state: S) -> float:
        return self.weights_at(state).limit_price(state.dual)

    def slopes(self, state: S) -> Slopes:
        slopes: Slopes = state.dual.slopes
        return slopes


@dataclass(frozen=True, eq=False, repr=False)
class AnytimeLyapunovLearner(LyapunovLearner[S]):
    """Abstract: those of them that never restart."""

    horizon: AnytimeHorizon = None
