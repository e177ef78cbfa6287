"""Whole rounds on simplices and boxes in one kernel: the decisions, numbers and records of
`LyapunovDescent` without it, and the same bits however rounds are played.
"""

import numpy as np
import pytest

import tidewolf as tw
from tidewolf.core.errors import InvalidInput, NotFinite
from tidewolf.evaluation.recording import Recording
from tidewolf.functions import Affine, Capacity, Linear, MaxAffine
from tidewolf.kernels import columns
from tidewolf.learners import LyapunovDescent
from tidewolf.projection.active import ExactPoint
from tidewolf.sets import Box, Product, SimplexProduct

SETS = {
    "shares": SimplexProduct([3] * 5),
    "uneven": SimplexProduct([3, 1, 4, 2]),
    "many": SimplexProduct([2] * (columns.WIDTH + 3)),
    "longer": SimplexProduct([columns.LONGEST + 1, 2]),
    "box": Box([0.0, -1.0, 2.0, 0.0], [1.0, 3.0, 2.0, 1e-3]),
    "long": Box(np.zeros(1030), np.linspace(0.1, 2.0, 1030)),
    "boxes": Product(Box([0.0, 0.0], [1.0, 2.0]), Box([-1.0], [1.0])),
}
every_set = pytest.mark.parametrize("K", [pytest.param(K, id=name) for name, K in SETS.items()])
LIMITS = ("capacity", "affine", "pieces", "none")


def stream_on(K, rounds: int, limits: str = "capacity", offset: float = 0.0) -> tw.Stream:
    """Zeros and ties among the costs, limits that are broken in some rounds."""
    rng, n = np.random.default_rng(7), K.shape[0]
    C = rng.integers(-1, 2, n) + np.round(rng.standard_normal((rounds, n)), 1) + offset
    C[rounds // 3] = 0.0
    row = np.abs(rng.standard_normal((rounds, n))) + offset
    at_center = row @ K.center
    constraints = {
        "capacity": Capacity(K.center + 0.3 * rng.random((rounds, n))),
        "affine": Affine(row, at_center + 0.02),
        "pieces": MaxAffine(
            np.stack([row, -row, 0.5 * row], 1), np.stack([at_center, at_center, at_center], 1)
        ),
        "none": Affine(0.0 * row, np.ones(rounds)),
    }[limits]
    return tw.Stream(Linear(C), constraints)


def without_kernel(learner: LyapunovDescent) -> LyapunovDescent:
    vars(learner)["compiled"] = None
    return learner


def recorded(learner, stream) -> Recording:
    recording = Recording(learner, stream)
    for _ in recording.advance():
        pass
    return recording


def numbers(state) -> list[float]:
    dual, sums = state.dual, state.descents[0].sums
    own = (state.oracle_budget, dual.violation, dual.paid, *dual.sums[2:])
    more = (*dual.slopes, dual.least_ratio, dual.exponent)
    return [*own, *more, *(float(array.sum()) for array in sums)]


@every_set
@pytest.mark.parametrize("limits", LIMITS)
def test_it_is_the_learner_without_its_kernel(K, limits):
    stream = stream_on(K, 40, limits)
    fast, slow = (
        LyapunovDescent(K, step_scale=0.7),
        without_kernel(LyapunovDescent(K, step_scale=0.7)),
    )
    assert fast.compiled.exact
    one, other = recorded(fast, stream), recorded(slow, stream)
    for name in ("losses", "violations", "distances", "calls"):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), atol=1e-11)
    np.testing.assert_allclose(one.churn, other.churn, atol=1e-11)
    np.testing.assert_allclose(one.trajectory.means, other.trajectory.means, atol=1e-11)
    np.testing.assert_allclose(one.each, other.each, atol=1e-11)
    for mine, naive in zip(one.breaches.parts(), other.breaches.parts(), strict=True):
        np.testing.assert_allclose(mine, naive, atol=1e-11)
    assert one.membership.worst == pytest.approx(other.membership.worst, abs=1e-14)
    *mine, _ = one.audit.parts()
    *naive, _ = other.audit.parts()
    assert mine[:3] == naive[:3]
    assert mine[3] == pytest.approx(naive[3], abs=1e-12)
    assert numbers(one.state) == pytest.approx(numbers(other.state), rel=1e-9)
    assert isinstance(one.state.point.active, ExactPoint)
    assert one.state.point.y is one.state.point.x
    before, expected = one.state.point.before_projection, other.state.point.before_projection
    np.testing.assert_allclose(before, expected, atol=1e-11)
    for sample, reference in zip(one.audit.sample, other.audit.sample, strict=True):
        assert sample == pytest.approx(reference, abs=1e-9)


@pytest.mark.parametrize("K", [SETS["uneven"], SETS["box"]], ids=["uneven", "box"])
@pytest.mark.parametrize("limits", ["capacity", "affine"])
def test_an_ensemble_is_the_one_without_its_kernel(K, limits):
    stream, options = stream_on(K, 40, limits), {"experts": [tw.experts.Season(7, cells=3)]}
    fast, slow = tw.Ensemble(K, **options), without_kernel(tw.Ensemble(K, **options))
    assert fast.compiled.exact
    one, other = recorded(fast, stream), recorded(slow, stream)
    for name in ("losses", "violations", "distances", "calls"):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), atol=1e-9)
    assert numbers(one.state) == pytest.approx(numbers(other.state), rel=1e-8)
    mine, theirs = (np.array(each.state.accounts.guard) for each in (one, other))
    np.testing.assert_allclose(mine, theirs, rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(one.state.cells.loss, other.state.cells.loss, atol=1e-9)


@every_set
def test_live_rounds_have_the_bits_of_whole_runs(K):
    stream, learner = stream_on(K, 25), LyapunovDescent(K)
    whole = recorded(learner, stream).state
    *_, last = tw.play(learner, stream)
    session = tw.Session(LyapunovDescent(K))
    for t in range(len(stream)):
        session.play()
        one = stream[t : t + 1]
        session.observe(loss=one.losses, constraint=one.constraints)
    costs = tw.Session(LyapunovDescent(K))
    for t in range(len(stream)):
        costs.play()
        costs.observe(costs=stream.losses.C[t], capacities=stream.constraints.c[t])
    for state in (last.state, session.state, costs.state):
        np.testing.assert_array_equal(state.point.x, whole.point.x)
        np.testing.assert_array_equal(state.point.before_projection, whole.point.before_projection)
        assert numbers(state) == numbers(whole)


@pytest.mark.parametrize("K", [SETS["shares"], SETS["long"]], ids=["shares", "box"])
def test_earlier_states_stay_as_they_were(K):
    learner, stream = LyapunovDescent(K), stream_on(K, 12)
    states = [played.state for played in tw.play(learner, stream)]
    kept = [(state.point.x.copy(), numbers(state)) for state in states]
    recorded(learner, stream)
    for state, (x, told) in zip(states, kept, strict=True):
        np.testing.assert_array_equal(state.point.x, x)
        assert numbers(state) == told
        assert not state.point.x.flags.writeable


def test_the_sample_of_projections_is_the_one_that_thinning_leaves():
    K = SETS["shares"]
    stream = stream_on(K, 300)
    one, other = (
        recorded(learner, stream)
        for learner in (LyapunovDescent(K), without_kernel(LyapunovDescent(K)))
    )
    assert one.audit.parts()[:3] == other.audit.parts()[:3]
    assert len(one.audit.sample) == len(other.audit.sample) > 10
    for sample, reference in zip(one.audit.sample, other.audit.sample, strict=True):
        assert sample == pytest.approx(reference, abs=1e-9)


def test_costs_far_from_0_lose_no_digits():
    """The part across the groups is taken off twice."""
    K = SETS["uneven"]
    near, far = (
        recorded(LyapunovDescent(K), stream_on(K, 30, offset=offset)) for offset in (0.0, 2.0**20)
    )
    np.testing.assert_allclose(near.state.point.x, far.state.point.x, atol=1e-6)
    for limits in ("capacity", "affine"):
        stream = stream_on(K, 30, limits, offset=2.0**20)
        slow, far = (
            recorded(without_kernel(LyapunovDescent(K)), stream),
            recorded(LyapunovDescent(K), stream),
        )
        np.testing.assert_allclose(slow.state.point.x, far.state.point.x, atol=1e-9)
        assert numbers(far.state) == pytest.approx(numbers(slow.state), rel=1e-7)


def test_weights_that_outgrow_their_units_change_them():
    """From a state whose limits were broken for so long that weights pass 2^256."""
    K = SETS["uneven"]
    stream, found = stream_on(K, 30), []
    for learner in (LyapunovDescent(K), without_kernel(LyapunovDescent(K))):
        *_, begun = tw.play(learner, stream[:10])
        dual = begun.state.dual._replace(violation=1e4)
        *_, ended = tw.play(learner, stream[10:], begun.state._replace(dual=dual))
        found.append(ended.state)
    assert found[0].dual.exponent == found[1].dual.exponent > 0
    assert numbers(found[0]) == pytest.approx(numbers(found[1]), rel=1e-8)
    np.testing.assert_allclose(found[0].point.x, found[1].point.x, atol=1e-9)


@pytest.mark.parametrize("K", [SETS["shares"], SETS["box"]], ids=["shares", "box"])
def test_what_needs_a_sentence_is_refused_as_ever(K):
    n, learner = K.shape[0], LyapunovDescent(K, loss_lipschitz=1.0)
    steep = Linear(np.arange(1.0, 3 * n + 1).reshape(3, n))
    limits = Affine(np.zeros((3, n)), np.ones(3))
    with pytest.raises(InvalidInput, match="above loss_lipschitz = 1"):
        recorded(learner, tw.Stream(steep, limits))
    huge = Linear(1e200 * np.arange(1.0, 3 * n + 1).reshape(3, n))
    with pytest.raises(NotFinite, match="overflow"):
        recorded(LyapunovDescent(K), tw.Stream(huge, limits))


def test_single_points_are_left_to_others():
    assert LyapunovDescent(SimplexProduct([1, 1])).compiled is None
    assert LyapunovDescent(Box([1.0, 2.0], [1.0, 2.0])).compiled is None
