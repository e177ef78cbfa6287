"""What a set is asked when its laws are tried, and what it answers."""

from __future__ import annotations

import math
from dataclasses import dataclass, is_dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from tidewolf.core.arrays import eps_of, like, norm
from tidewolf.core.randomness import generator
from tidewolf.core.types import Array, Floats
from tidewolf.sets.base import ConvexSet, membership_tolerance
from tidewolf.testing.checks import as_floats, require

_AXES = 24
"""Along how many axes of a large set directions are tried."""


class OracleAnswer(NamedTuple):
    """A direction and the oracle's answer, in float64."""

    d: Floats
    v: Floats


@dataclass(frozen=True)
class SetTrial:
    """A set, what it is asked, and what it answers; numbers are float64 on the host, rounded to
    what the set's dtype holds.
    """

    K: ConvexSet
    seed: int

    @property
    def name(self) -> str:
        return repr(self.K) if is_dataclass(self.K) else type(self.K).__name__

    def given(self, x: Floats) -> Array:
        """A fresh array as the set is given it."""
        return like(x.copy(), self.K.center)

    def rounded(self, x: Floats) -> Floats:
        return as_floats(self.given(x))

    def lmo(self, d: Floats) -> Floats:
        return as_floats(self.K.lmo(self.given(d)))

    def tangent(self, d: Floats) -> Floats:
        return as_floats(self.K.tangent(self.given(d)))

    def infeasibility(self, x: Floats) -> float:
        return float(self.K.infeasibility(self.given(x)))

    def oracle_error(self, d: Floats) -> float:
        """By how much the oracle says that its answer may fall short."""
        return self.K.answer(self.given(d)).error

    def slack(self, d: Floats) -> float:
        """What rounding may do to <d, member>."""
        return self.eps * norm(d) * self.size

    def square_slack(self, a: Floats, b: Floats) -> float:
        """What rounding may do to products of members with one another and with a and b."""
        return self.eps * max(1.0, self.size) ** 2 * max(1.0, norm(a) + norm(b))

    def allowed(self, x: Floats) -> float:
        """The excess a member may have by rounding."""
        return membership_tolerance(self.given(x), self.K.radius)

    def require_member(self, x: Floats, clause: str) -> None:
        """Break the law that is tried, unless x is a member; its excess is told after `clause`."""
        infeasibility = self.infeasibility(x)
        require(infeasibility <= self.allowed(x), f"{clause} excess {infeasibility:.3g}")

    @cached_property
    def center(self) -> Floats:
        return as_floats(self.K.center)

    @cached_property
    def eps(self) -> float:
        return 1e4 * eps_of(self.K.center)

    @cached_property
    def size(self) -> float:
        """How large members are: the scale of rounding errors in them."""
        return max(self.K.radius, norm(self.center)) or 1.0

    def normals(self, purpose: str, count: int) -> list[Floats]:
        rng = generator(self.seed, f"check set: {purpose}")
        return [self.rounded(rng.standard_normal(self.K.shape)) for _ in range(count)]

    @cached_property
    def axes(self) -> list[Floats]:
        """Plus and minus the unit arrays; some of them when there are many."""
        n = math.prod(self.K.shape)
        chosen = generator(self.seed, "check set: axes").permutation(n)[:_AXES]
        return [
            sign * unit
            for i in chosen
            for unit in [np.eye(1, n, i).reshape(self.K.shape)]
            for sign in (1.0, -1.0)
        ]

    @cached_property
    def directions(self) -> list[Floats]:
        """Random, tied, along the axes, zero, huge and tiny."""
        rng = generator(self.seed, "check set: ties")
        ties = [rng.integers(-1, 2, self.K.shape).astype(np.float64) for _ in range(4)]
        huge = 1e150 if eps_of(self.K.center) < 1e-10 else 1e15
        far = [scale * d for d in self.normals("scales", 2) for scale in (huge, 1 / huge)]
        return [
            *self.normals("directions", 12),
            *ties,
            *self.axes,
            np.zeros(self.K.shape),
            np.ones(self.K.shape),
            *map(self.rounded, far),
        ]

    @cached_property
    def answers(self) -> list[OracleAnswer]:
        return [OracleAnswer(d, self.lmo(d)) for d in self.directions]

    @cached_property
    def members(self) -> list[Floats]:
        """The center, the answers, and mixtures of them."""
        corners = np.stack([self.center, *(v for _, v in self.answers)])
        rng = generator(self.seed, "check set: mixtures")
        mixtures = [
            np.tensordot(rng.dirichlet(np.full(len(corners), 0.1)), corners, 1) for _ in range(12)
        ]
        return [self.rounded(x) for x in (*corners, *mixtures)]
