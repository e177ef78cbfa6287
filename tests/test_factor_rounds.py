"""Whole rounds on simplices and boxes in one kernel: the decisions, numbers and records of
`LyapunovDescent` without it, and the same bits however rounds are played.
"""

import numpy as np
import pytest

import test_rounds as rounds
import tidewolf as tw
from covering import thinned
from streams import recorded
from tidewolf.core.errors import InvalidInput, NotFinite
from tidewolf.functions import Affine, Linear
from tidewolf.kernels import simplices
from tidewolf.learners import LyapunovDescent
from tidewolf.projection.active import ExactPoint
from tidewolf.sets import Box, Product, SimplexProduct

SETS = {
    "shares": SimplexProduct([3] * 5),
    "uneven": SimplexProduct([3, 1, 4, 2]),
    "many": SimplexProduct([2] * (simplices.WIDTH + 3)),
    "longer": SimplexProduct([simplices.LONGEST + 1, 2]),
    "box": Box([0.0, -1.0, 2.0, 0.0], [1.0, 3.0, 2.0, 1e-3]),
    "long": Box(np.zeros(1030), np.linspace(0.1, 2.0, 1030)),
    "boxes": Product(Box([0.0, 0.0], [1.0, 2.0]), Box([-1.0], [1.0])),
}


def of_sets(*names):
    return pytest.mark.parametrize("K", [SETS[name] for name in names], ids=names)


def assert_kernel_agrees(K, played, tolerance, **options):
    ours, theirs = rounds.both_ways(K, played, **options)
    size = max(1.0, float(np.abs(theirs.losses).max()))
    rounds.assert_alike(rounds.numbers(ours), rounds.numbers(theirs), tolerance, size)
    one, other = (np.array([*recording.audit.parts()[4]]) for recording in (ours, theirs))
    np.testing.assert_allclose(one, other, atol=1e-9)
    return ours


@thinned(2, K=SETS, kind={kind: kind for kind in rounds.KINDS})
def test_it_is_the_learner_without_its_kernel(K, kind):
    """Of many rounds the sample of projections is the one that thinning leaves."""
    count = 300 if K is SETS["shares"] and kind == "capacities" else 50
    ours = assert_kernel_agrees(K, rounds.stream(K, kind, count, seed=1), 1e-10, step_scale=0.7)
    assert ours.learner.compiled.exact
    assert isinstance(ours.state.point.active, ExactPoint)
    assert ours.state.point.y is ours.state.point.x
    assert count < 300 or len(ours.audit.sample) > 10


@of_sets("uneven", "box")
@pytest.mark.parametrize("kind", ["capacities", "affine"])
def test_an_ensemble_is_the_one_without_its_kernel(K, kind):
    rounds.assert_both_ways(K, kind, {"experts": [tw.experts.Season(7, cells=3)]}, 1e-9)


@of_sets(*SETS)
def test_live_rounds_have_the_bits_of_whole_runs(K, tmp_path):
    rounds.assert_same_however_they_come(K, "capacities", tmp_path)


@of_sets("shares", "long")
def test_earlier_states_stay_as_they_were(K):
    learner, played = LyapunovDescent(K), rounds.stream(K, "capacities", 12)
    states = [one.state for one in tw.play(learner, played)]
    kept = [{name: part.copy() for name, part in rounds.told(state).items()} for state in states]
    recorded(learner, played)
    for state, before in zip(states, kept, strict=True):
        rounds.assert_same(rounds.told(state), before)
        assert not state.point.x.flags.writeable


def test_costs_far_from_0_lose_no_digits():
    """The part across the groups is taken off twice."""
    K, offset = SETS["uneven"], 2.0**20
    near = rounds.stream(K, "capacities", 30)
    far = tw.Stream(Linear(near.losses.C + offset), near.constraints)
    ends = [recorded(LyapunovDescent(K), played).state.point.x for played in (near, far)]
    np.testing.assert_allclose(*ends, atol=1e-6)
    rows = rounds.stream(K, "affine", 30).constraints.A + offset
    affine = tw.Stream(far.losses, Affine(rows, rows @ K.center - 0.01))
    for played in (far, affine):
        assert_kernel_agrees(K, played, 1e-9)


def test_weights_that_outgrow_their_units_change_them():
    """From a state whose limits were broken for so long that weights pass 2^256."""
    K, found = SETS["uneven"], []
    played = rounds.stream(K, "capacities", 30)
    for learner in (LyapunovDescent(K), rounds.uncompiled(LyapunovDescent(K))):
        *_, begun = tw.play(learner, played[:10])
        dual = begun.state.dual._replace(violation=1e4)
        *_, ended = tw.play(learner, played[10:], begun.state._replace(dual=dual))
        found.append(ended.state)
    assert found[0].dual.exponent == found[1].dual.exponent > 0
    one, other = map(rounds.told, found)
    sums = {name: one[name] for name in ("x", "dual", "products", "descent", "bank")}
    rounds.assert_alike(sums, other, 1e-8, 1.0)


@of_sets("shares", "box")
def test_what_needs_a_sentence_is_refused_as_ever(K):
    n, limits = K.shape[0], Affine(np.zeros((3, K.shape[0])), np.ones(3))
    rows = np.arange(1.0, 3 * n + 1).reshape(3, n)
    with pytest.raises(InvalidInput, match="above loss_lipschitz = 1"):
        recorded(LyapunovDescent(K, loss_lipschitz=1.0), tw.Stream(Linear(rows), limits))
    with pytest.raises(NotFinite, match="overflow"):
        recorded(LyapunovDescent(K), tw.Stream(Linear(1e200 * rows), limits))


def test_single_points_are_left_to_others():
    assert LyapunovDescent(SimplexProduct([1, 1])).compiled is None
    assert LyapunovDescent(Box([1.0, 2.0], [1.0, 2.0])).compiled is None
