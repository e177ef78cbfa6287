"""Laws of giving back what a step goes past a limit."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tidewolf as tw
from tidewolf.methods.steps.overshoot import soften_overshoot

seeds = st.integers(0, 2**32 - 1)


def step(seed, n, owed, kept, size=1.0):
    """A step y' = y - eta (a + P) from a random place, what it becomes, and everything it was made
    of.
    """
    rng = np.random.default_rng(seed)
    y, x, a, grad = size * rng.normal(size=(4, n))
    eta = rng.exponential()
    plain = y - eta * (a + grad)
    return rng, y, x, a, grad, eta, plain, soften_overshoot(plain, x, grad, owed, eta, kept)


@given(
    seed=seeds,
    n=st.integers(1, 6),
    owed=st.sampled_from([0.0, 1e-3, 1.0, 30.0]),
    kept=st.floats(0.0, 1.0),
)
def test_no_point_that_keeps_the_limit_ends_up_farther_than_a_plain_step_may_leave_it(
    seed, n, owed, kept
):
    rng, y, x, a, grad, eta, _, moved = step(seed, n, owed, kept)
    for z in 3.0 * rng.normal(size=(40, n)):
        broken = owed + grad @ (z - x)
        # onto the limit, where it is tight, if it was past it
        z = z - (max(0.0, broken) / (grad @ grad)) * grad
        allowed = (
            (y - z) @ (y - z)
            - 2 * eta * (a @ (y - z) + owed + grad @ (y - x))
            + eta**2 * ((a + grad) @ (a + grad))
        )
        assert (moved - z) @ (moved - z) <= allowed + 1e-9 * (
            1.0 + abs(allowed) + (moved - z) @ (moved - z)
        )


@given(
    seed=seeds,
    n=st.integers(1, 6),
    owed=st.sampled_from([0.0, 1e-3, 1.0, 30.0]),
    kept=st.floats(0.0, 1.0),
)
def test_what_is_soften_overshoot_is_that_share_of_what_was_too_much(seed, n, owed, kept):
    _, _, x, _, grad, eta, plain, moved = step(seed, n, owed, kept)
    least = soften_overshoot(plain, x, grad, owed, eta, 0.0)
    np.testing.assert_allclose(moved, kept * plain + (1.0 - kept) * least, atol=1e-9)
    before, after = (owed + grad @ (end - x) for end in (plain, least))
    if before >= 0.0:
        assert least is plain, "a step that does not pass the limit stays as it is"
    else:
        assert after <= 1e-9 * (1.0 + abs(before)), "what is left still keeps the limit"
        losses_alone = plain + eta * grad
        held_back = owed + grad @ (losses_alone - x) <= 0.0
        np.testing.assert_allclose(least, losses_alone if held_back else least, atol=1e-9)
        assert held_back or after == pytest.approx(0.0, abs=1e-9 * (1.0 + abs(before))), (
            "and reaches it, unless no push was needed"
        )


def test_the_flagship_goes_less_far_past_a_limit_the_less_cautious_it_is():
    """One broken limit, no losses: the next point moves away from it by what is needed, and by more
    the larger the caution.
    """
    K = tw.sets.Box([0.0], [1.0])
    constraint = tw.functions.Affine([[1.0]], [0.45])
    plays = []
    for caution in (0.1, 10.0, 1000.0):
        session = tw.Session(tw.LyapunovDescent(K, horizon=100, caution=caution))
        assert session.play()[0] == pytest.approx(0.5)
        session.observe(loss=tw.functions.Linear.one([0.0]), constraint=constraint)
        plays.append(float(session.play()[0]))
    assert plays[0] > plays[1] > plays[2] >= 0.0
    too_far = 0.45 - (0.5 - math.sqrt(0.5))  # the first step is D/sqrt 2 long
    assert plays[0] == pytest.approx(0.45 - 5.1 / 25.1 * too_far)


def test_more_calls_a_round_aim_nearer():
    K = tw.sets.Simplex(4)

    def aimed(**settings):
        learner = tw.LyapunovDescent(K, horizon=10, **settings)
        return learner.last_projection(learner.start()).tolerance2 / K.radius**2

    assert aimed() == aimed(calls_per_round=0.1) == pytest.approx(1e-3)
    assert aimed(calls_per_round=1e5) == pytest.approx(1e-9)
    assert aimed(calls_per_round=1e5, tolerance=0.1) == pytest.approx(0.1)
