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
    guess: float
    """G"""
    rounds: int
    bound: float
    """B"""
    calls: int
    warm: Array | None


def anew(
    first: Array, guess: float = 0.0, bound: float = 0.0, calls: int = 0, warm: Array | None = None
) -> Leader:
    """A leader that has seen nothing."""
    return Leader(first, frozen(namespace(first).zeros_like(first)), guess, 0, bound, calls, warm)


def follow(
    K: HasLMO, x: Array, leader: Leader, g: Array, g_norm2: float, horizon: int, unit: float = 1.0
) -> tuple[Array, Leader]:
    """One round with gradient g at x; what is remembered is first brought to new units."""
    leader = leader._replace(
        total=unit * leader.total, guess=unit * leader.guess, bound=unit * leader.bound
    )
    g_norm, guess, stiffness = math.sqrt(g_norm2), leader.guess, 2.0 * math.pow(horizon, 0.75)
    if g_norm > guess:
        guess = guess or g_norm
        while guess < g_norm:
            guess *= 2.0
        leader = anew(
            leader.first,
            guess,
            leader.bound + stiffness * guess * K.diameter,
            leader.calls,
            leader.warm,
        )
    if guess == 0.0:
        return x, leader._replace(total=frozen(leader.total))
    total, t = frozen(leader.total + g), leader.rounds + 1
    r = (0.5 * K.diameter / (stiffness * guess)) * total + (x - leader.first)
    answer = K.answer(r, leader.warm)
    strayed = min(K.diameter, math.sqrt(2.0 * frank_wolfe_gap(r, x, answer, inner(r, r)).gap))
    following = Leader(
        leader.first,
        total,
        guess,
        t,
        leader.bound + g_norm * strayed,
        leader.calls + 1,
        answer.warm,
    )
    return frozen(answer.vertex.blend(x, min(1.0, 2.0 / math.sqrt(t)))), following
