"""A target for the violation: it is met, its bound holds, and the kernel has the same weights."""

from __future__ import annotations

import numpy as np
import pytest
from tests.test_rounds import uncompiled

import tidewolf as tw
from refused import refused
from tidewolf.core.errors import InvalidInput


def stream(seed, rounds, n=4, scale=1.0):
    """The cheap entries are the ones whose capacities are tight; costs grow, and limits steepen."""
    draw = np.random.default_rng(seed)
    costs = draw.uniform(0.0, 1.0, (rounds, n)) + np.linspace(0.0, 1.0, n)
    costs[rounds // 2 :] *= 3.0
    steep = scale * (1.0 + (np.arange(rounds) > rounds // 3))[:, None]
    rows = np.repeat(np.eye(n)[None], rounds, axis=0) * steep[..., None]
    capacities = steep * draw.uniform(0.3, 0.7, (rounds, n))
    return tw.Stream(tw.functions.Linear(costs), tw.functions.MaxAffine(rows, capacities))


@pytest.mark.parametrize("target", [0.0005, 0.02])
def test_the_violation_ends_near_the_target(target):
    K = tw.sets.Simplex(4)
    for seed in range(2):
        run = tw.run(tw.Ensemble(K, target_violation=target), stream(seed, 2000))
        assert 0.6 * target <= run.violations.mean() <= 1.3 * target


@pytest.mark.parametrize("kind", [tw.LyapunovDescent, tw.Ensemble])
def test_bounds_hold_whatever_the_rounds_do(kind):
    """Slopes that grow, targets that nothing meets or everything does, no constraint at all."""
    K, draw = tw.sets.Simplex(4), np.random.default_rng(0)
    hostile = tw.functions.Affine(draw.normal(size=(400, 4)) * 9.0 ** draw.normal(size=(400, 1)),
                                  draw.normal(size=400))  # fmt: skip
    losses = tw.functions.Linear(draw.normal(size=(400, 4)) * 9.0 ** draw.normal(size=(400, 1)))
    for given in (stream(1, 400), tw.Stream(losses, hostile), tw.Stream(losses)):
        for target in (1e-6, 0.01, 10.0):
            learner = kind(K, target_violation=target)
            run = tw.run(learner, given)
            bound = learner.bound_of(run.final_state)
            assert run.certificate.holds is not False
            if bound.violation is not None:
                assert run.final_state.dual.violation <= bound.violation * (1.0 + 1e-9)


@pytest.mark.parametrize("make", [
    lambda **more: tw.LyapunovDescent(tw.sets.Simplex(4), **more),
    lambda **more: tw.Ensemble(tw.sets.Simplex(4), experts=[tw.experts.Season(7, 2)], **more),
])  # fmt: skip
def test_the_kernel_has_the_weights_of_the_formulas(make):  # type: ignore[no-untyped-def]
    """The same aim after many rounds, also past exponents that are too large for a number."""
    for target, rounds, scale in ((0.01, 300, 1.0), (1e-9, 300, 1e-3)):
        learners = (make(target_violation=target), uncompiled(make(target_violation=target)))
        ours, theirs = (tw.run(learner, stream(2, rounds, scale=scale)) for learner in learners)
        a, b = (run.final_state.dual.aim for run in (ours, theirs))
        assert a.rounds == b.rounds
        np.testing.assert_allclose(a, b, rtol=1e-7, atol=1e-9)
        np.testing.assert_allclose(ours.losses, theirs.losses, atol=1e-7)


def test_other_units_change_no_decision():
    K = tw.sets.Simplex(4)
    made = (tw.Ensemble(K, target_violation=target) for target in (0.01, 0.64))
    runs = [tw.run(each, stream(3, 200, scale=s)) for each, s in zip(made, (1, 64.0), strict=True)]
    np.testing.assert_allclose(runs[0].losses, runs[1].losses, atol=1e-9)


def test_a_target_stands_alone():
    K = tw.sets.Simplex(4)
    for more in ({"caution": 3.0}, {"per_constraint": True}, {"target_violation": -1.0}):
        with refused(InvalidInput, "target_violation"):
            tw.Ensemble(K, **{"target_violation": 0.1, **more})  # type: ignore[arg-type]
    assert tw.Ensemble(K, target_violation=0.1, horizon=9).guarantee().reason
