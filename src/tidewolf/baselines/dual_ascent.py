"""Dual ascent: the textbook price of a budget, with exact projections
(see Balseiro, Lu & Mirrokni 2023 on dual descent for allocation under budgets).

    x    <-  Proj_K( x - eta ( grad f_t + sum_j lam_j grad h_tj + lam_0 grad g_t^+ ) )
    lam_j <- max(0, lam_j + nu (G_f/G_h) h_tj/(G_h D)),     lam_0 alike with g_t^+ >= 0

eta = D/(|s| sqrt(t)) with |s| the largest gradient so far, nu = 1/sqrt(t). It does without a
certificate: there is no bound on its regret here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, final

import numpy as np

from tidewolf.baselines.exact import ProjectableK, ProjectsExactly
from tidewolf.core.arrays import frozen, norm
from tidewolf.core.feedback import FirstOrder
from tidewolf.core.types import Array, Floats
from tidewolf.methods.base import Bound, Learner, Record
from tidewolf.methods.clock import EveryRound
from tidewolf.methods.late import Deferred, Overrides


class State(NamedTuple):
    t: int
    x: Array
    lam: Floats
    """the multiplier of violations, then that of each budget"""
    slopes: Floats
    """the largest gradient norms, in the same order"""
    loss_slope: float = 0.0
    steepest: float = 0.0
    calls: int = 0
    distance: float = 0.0
    pending: tuple[Deferred, ...] = ()
    lost: int = 0
    overrides: Overrides = Overrides()


@final
@dataclass(frozen=True, eq=False, repr=False)
class DualAscent(ProjectsExactly[State], EveryRound[State]):
    """Plain dual ascent on budgets and violations, with an exact projection per round.

    Parameters
    ----------
    K : ConvexSet
        The set that every played point belongs to; it has a projection or a linear description.

    Examples
    --------
    >>> K = tw.sets.Simplex(2)
    >>> latency = tw.functions.Linear([[1.0, 2.0]] * 400)
    >>> dollars = tw.functions.Affine([[1.8, 0.0]] * 400, [0.9] * 400)
    >>> run = tw.run(tw.baselines.DualAscent(K), tw.Stream(latency, budgets={"usd": dollars}))
    >>> bool(run.budgets["usd"].net < 20.0)
    True
    """

    state_type: ClassVar = State
    horizon: ClassVar = None  # type: ignore[misc]
    loss_lipschitz: ClassVar = None  # type: ignore[misc]
    constraint_lipschitz: ClassVar = None  # type: ignore[misc]

    K: ProjectableK

    def start(self) -> State:
        return State(0, self.K.center, frozen(np.zeros(1)), frozen(np.zeros(1)))

    def step(self, state: State, block: FirstOrder) -> State:
        spend, root = block.spend, math.sqrt(state.t)
        tangent = self.K.tangent
        gradients = [tangent(block.constraint_gradient)]
        h = np.array([block.violation])
        if spend is not None:
            gradients += [tangent(gradient) for gradient in spend.gradients]
            h = np.append(h, spend.values)
        lam, slopes = (np.resize(each, len(h)) * (len(each) == len(h)) for each in state[2:4])
        s = tangent(block.loss_gradient)
        loss_slope = max(state.loss_slope, norm(s))
        slopes = np.maximum(slopes, [norm(each) for each in gradients])
        for weight, gradient in zip(lam.tolist(), gradients, strict=True):
            s = s + weight * gradient
        steepest = max(state.steepest, norm(s))
        x, D = state.x, self.K.diameter
        if steepest > 0.0:
            x = frozen(self.exact_projection(x - D / (steepest * root) * s))
        known = np.where(slopes > 0.0, slopes, 1.0)
        rise = (loss_slope or 1.0) * h / (known * known * D * root) if D > 0.0 else 0.0 * h
        return state._replace(
            x=x,
            lam=frozen(np.maximum(0.0, lam + np.where(slopes > 0.0, rise, 0.0))),
            slopes=frozen(slopes),
            loss_slope=loss_slope,
            steepest=steepest,
        )

    def bound(self, record: Record) -> Bound:
        return Bound(reason="Plain dual ascent has no bound here.")

    @classmethod
    def examples(cls, K: Any, horizon: int) -> Sequence[Learner[Any]]:
        return (cls(K),)
