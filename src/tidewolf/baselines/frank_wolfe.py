"""Online Frank-Wolfe on a doubling guess of the gradients
(Hazan & Kale 2012), with its regret measured as it goes.

    F_t(z)  =  eta <sum_{s<=t} g_s, z> + |z - x_1|^2,        eta = D/(2 G T^{3/4})
    v       =  lmo(grad F_t(x)),     gap_t = <grad F_t(x), x - v>                         (one call)
    x      <-  x + min(1, 2/sqrt(t)) (v - x)

G starts at the first |g_t| > 0 and is doubled until no |g_t| is above it; each time the sum and t
begin anew, with the gradient that was too large and the same x_1. It stays where it is while every
gradient has been 0. For every member x*, summed over the beginnings,

    sum_t <g_t, x_t - x*>  <=  sum ( D^2/eta + sum_t |g_t| min(D, sqrt(gap_t)) )  =:  B.

Proof. With w_t = argmin_K F_t, being the leader pays: eta sum_t <g_t, w_t -
x*> <= |x* - x_1|^2 <= D^2. F_t is 2-strongly convex, so |x_t - w_t|^2 <= F_t(x_t) -
F_t(w_t) <= gap_t.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from tidewolf.core.arrays import frozen, inner, namespace
from tidewolf.core.oracle import HasLMO
from tidewolf.core.types import Array
from tidewolf.projection.one_shot import frank_wolfe_gap


class Leader(NamedTuple):
    """What it remembers since its last beginning, and its bound since the first."""

    first: Array
    """x_1"""
    total: Array
    """sum of the gradients"""
    largest: float = 0.0
    """G"""
    rounds: int = 0
    regret_bound: float = 0.0
    """B"""
    warm: Array | None = None

    @classmethod
    def start(cls, first: Array) -> Leader:
        """One that has seen nothing."""
        return cls(first, frozen(namespace(first).zeros_like(first)))

    def anew(self, largest: float = 0.0, regret_bound: float = 0.0) -> Leader:
        """A beginning from the same x_1."""
        fresh = Leader.start(self.first)
        return fresh._replace(largest=largest, regret_bound=regret_bound, warm=self.warm)

    def in_units(self, unit: float) -> Leader:
        """The same where gradients are `unit` times as long."""
        return self._replace(
            total=unit * self.total,
            largest=unit * self.largest,
            regret_bound=unit * self.regret_bound,
        )


class Followed(NamedTuple):
    """Where a round leads, and the oracle calls that it took."""

    x: Array
    leader: Leader
    calls: int


def follow(K: HasLMO, x: Array, leader: Leader, g: Array, g_norm2: float, horizon: int) -> Followed:
    """One round with gradient g at x."""
    g_norm, G, inverse_step = math.sqrt(g_norm2), leader.largest, 2.0 * math.pow(horizon, 0.75)
    if g_norm > G:
        G = G or g_norm
        while g_norm > G:
            G *= 2.0
        leader = leader.anew(G, leader.regret_bound + inverse_step * G * K.diameter)
    if G == 0.0:
        return Followed(x, leader._replace(total=frozen(leader.total)), 0)
    total, t = frozen(leader.total + g), leader.rounds + 1
    r = (0.5 * K.diameter / (inverse_step * G)) * total + (x - leader.first)
    answer = K.answer(r, leader.warm)
    strayed = min(K.diameter, math.sqrt(2.0 * frank_wolfe_gap(r, x, answer, inner(r, r)).gap))
    following = leader._replace(
        total=total,
        rounds=t,
        regret_bound=leader.regret_bound + g_norm * strayed,
        warm=answer.warm,
    )
    return Followed(frozen(answer.vertex.blend(x, min(1.0, 2.0 / math.sqrt(t)))), following, 1)
