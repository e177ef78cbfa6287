"""What the paper's three learners share: laws with the theorems' constants, blocks, horizons."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import theorems
import tidewolf as tw
from covering import thinned
from tidewolf import BanditPrimalDual, DriftPlusPenalty, PrimalDual
from tidewolf.sets import Box, CappedSimplex, FlowPolytope, L2Ball, Simplex, VertexHull
from tidewolf.testing import check_learner
from tidewolf.testing.learners import hostile_stream

DIAMOND = FlowPolytope.examples()[0]
HULL = VertexHull(np.random.default_rng(0).standard_normal((9, 3)))
SETS = [
    Simplex(4),
    DIAMOND,
    CappedSimplex(6, 0.5),
    Box([-1.0, 0.0], [1.0, 3.0]),
    HULL,
    L2Ball((2, 2), 3.0),
    Simplex(1),
    VertexHull(np.ones((1, 2))),
    Box([-1.0, 0.0, 2.0], [1.0, 3.0, 2.0]),
    L2Ball(1),
]
each_kind = pytest.mark.parametrize("kind", [PrimalDual, DriftPlusPenalty, BanditPrimalDual])


@thinned(
    3,
    number={f"{i}-{K!r}": i for i, K in enumerate(SETS)},
    kind={kind.__name__: kind for kind in (PrimalDual, DriftPlusPenalty, BanditPrimalDual)},
)
def test_the_laws_hold_for_the_theorems_learners_on_every_set(kind, number):
    found = theorems.examples(kind, SETS[number], 20)
    learner = found[number % len(found)]
    check_learner(learner, hostile_stream(learner.hard_set, 13, number))


@pytest.mark.soak
@each_kind
@given(
    seed=st.integers(0, 2**32),
    horizon=st.integers(1, 60),
    block=st.sampled_from([1, 2, 5]),
    calls=st.sampled_from([0.1, 1.0, 20.0]),
)
@settings(max_examples=8)
def test_the_laws_hold_for_any_block_horizon_and_budget(kind, seed, horizon, block, calls):
    K, more = (DIAMOND, {"seed": seed}) if kind is BanditPrimalDual else (HULL, {})
    learner = kind(K, horizon=horizon, block=block, calls_per_round=calls, **more)
    check_learner(learner, seed=seed)


@each_kind
def test_the_last_block_is_ragged_and_costs_no_call(kind):
    learner = kind(DIAMOND, horizon=100, block=30, calls_per_round=2.0)
    played = list(tw.play(learner, theorems.hostile(DIAMOND, 100, 0)))
    assert [p.state.t for p in played] == [30, 60, 90, 100]
    assert played[-1].state.calls == played[-2].state.calls > 0
    assert played[-1].state.oracle_budget == 200.0 - played[-1].state.calls


@each_kind
def test_past_the_horizon_it_restarts_with_twice_as_much_and_says_so(kind):
    learner = kind(DIAMOND, horizon=20)
    run = tw.run(learner, theorems.hostile(DIAMOND, 70, 0))
    assert run.final_state.epoch[:2] == (60, 80)
    (note,) = run.notes
    assert all(number in note for number in ("20", "60", "80"))
    assert tw.run(learner, theorems.hostile(DIAMOND, 20, 0)).notes == ()
    unknown = tw.run(kind(DIAMOND), theorems.hostile(DIAMOND, 300, 0))
    assert (unknown.final_state.epoch[:2], unknown.notes) == ((256, 512), ())
