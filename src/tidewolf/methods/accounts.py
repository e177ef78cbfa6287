"""The sums of each expert of an ensemble: its guard, its weight, and the loss and violation it
would have had.

In a round with weights V of losses and w of limits, x played and z_i proposed by member i, whose
loss relative to x was l_i in the mixer,

    A_i  =  sum -l_i  =  sum <s, x - z_i>, or by values sum (L(x) - L(z_i))
    V sum (f(x) - f(z_i)) + sum w (g^+(x) - g^+(z_i))  <=  A_i                         (guard)

by convexity, for any w >= 0; with a weight for each limit w g^+ is sum_j w_j g_j^+. Of rounds whose
functions were not seen the left side is unknown.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tidewolf.core.arrays import frozen, to_numpy
from tidewolf.core.feedback import FullInformation
from tidewolf.core.types import Array, Floats
from tidewolf.methods.expert_feedback import PlayedRound
from tidewolf.methods.steps.lyapunov import Surrogate


class Accounts(NamedTuple):
    """One entry a member."""

    guard: Floats
    """A_i, in the dual state's units"""
    lost: Floats
    """the guard's left side, over the rounds it was awake in, likewise"""
    weights: Floats
    """sum of p_i"""
    available: Floats
    """rounds"""
    losses: Floats
    violations: Floats
    run_losses: Floats
    """what was lost at the points played, over the rounds it was awake in"""
    run_violations: Floats
    unseen: int
    """rounds whose functions were not seen"""
    played: Floats
    """p of the last round"""
    calls: Floats
    """oracle calls; those of an adviser for several members are shared between these"""
    solves: Floats
    """linear programs, likewise"""

    @classmethod
    def start(cls, experts: int) -> Accounts:
        none = frozen(np.zeros(experts))
        return cls(none, none, none, none, none, none, none, none, 0, none, none, none)

    def in_units(self, unit: float) -> Accounts:
        """The same where gradients are `unit` times as long."""
        return self._replace(guard=frozen(self.guard * unit), lost=frozen(self.lost * unit))

    def after(
        self, played: Floats, points: Sequence[Array | None], losses: Floats, rounds: int
    ) -> Accounts:
        """After rounds in which the members proposed these points, None if they were absent, had
        these losses in the mixer and these weights.
        """
        available = np.array([float(rounds) * (z is not None) for z in points])
        return self._replace(
            guard=frozen(self.guard - losses),
            weights=frozen(self.weights + rounds * played),
            available=frozen(self.available + available),
            played=played,
        )

    def with_values(self, observed: PlayedRound, weighed: Surrogate) -> Accounts:
        """With what the functions of these rounds say of everybody's point, where they are seen."""
        if observed.functions is None:
            return self._replace(unseen=self.unseen + observed.block.rounds)
        V, w = weighed.loss_weight, weighed.penalty_weight
        own = _totals(observed.functions, observed.x, weighed)
        each = [
            own if z is None else _totals(observed.functions, z, weighed) for z in observed.points
        ]
        losses, breaches, shares = np.array(each).T
        there = np.array([z is not None for z in observed.points])
        return self._replace(
            lost=frozen(self.lost + V * (own[0] - losses) + w * (own[2] - shares)),
            losses=frozen(self.losses + there * losses),
            violations=frozen(self.violations + there * breaches),
            run_losses=frozen(self.run_losses + there * own[0]),
            run_violations=frozen(self.run_violations + there * own[1]),
        )


def _totals(functions: FullInformation, z: Array, weighed: Surrogate) -> tuple[float, float, float]:
    """The sums of the losses and of the violations at z, these also as the surrogate has them."""
    breach = float(np.maximum(to_numpy(functions.constraints.values(z)), 0.0).sum())
    shared = breach if weighed.shares is None else weighed.breach(functions.constraints, z)
    return float(functions.losses.values(z).sum()), breach, shared
