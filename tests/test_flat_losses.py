"""Losses that are flat leave the limits alone to follow, and a limit that the start breaks comes to
be kept.

Weights and prices of limits are in units of G_f/G_g, which says nothing while no loss has had a
slope:
read as 0, limits would weigh nothing.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tidewolf as tw
from tidewolf.baselines import OnlineFrankWolfe, SinhaVaze, WangWanZhang
from tidewolf.functions import Affine, Linear
from tidewolf.learners import LyapunovDescent, LyapunovFrankWolfe
from tidewolf.sets import FlowPolytope, Simplex

KINDS = [LyapunovDescent, LyapunovFrankWolfe, SinhaVaze, WangWanZhang, OnlineFrankWolfe]
ROUNDS = 300


@pytest.mark.parametrize(
    "K", [Simplex(4), FlowPolytope.examples()[0]], ids=lambda K: type(K).__name__
)
@pytest.mark.parametrize("flat", ["zero", "across the hull"])
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_limits_are_followed_where_losses_are_flat(kind: Any, flat: str, K: Any) -> None:
    v = np.random.default_rng(2).standard_normal(K.shape)
    across = 0.0 * v if flat == "zero" else v - K.tangent(v)
    a = K.tangent(np.arange(float(v.size)))
    a /= np.linalg.norm(a)
    best = float(a @ K.lmo(a))
    b = best + 0.2 * (float(a @ K.center) - best)
    seen = tw.Stream(
        Linear(np.tile(across, (ROUNDS, 1))), Affine(np.tile(a, (ROUNDS, 1)), np.full(ROUNDS, b))
    )
    run = tw.run(kind(K, horizon=ROUNDS), seen)
    assert run.violations[0] == pytest.approx(float(a @ K.center) - b)
    assert run.violations[ROUNDS // 2 :].mean() < 0.25 * run.violations[0]
