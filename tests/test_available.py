"""Entries that are out of service: names, and learners that play around them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

import tidewolf as tw
from tidewolf.core.conforming import is_member
from tidewolf.core.errors import EmptySet, InvalidInput, NotSupported, WrongShape, WrongType
from tidewolf.methods.available import entries_out
from tidewolf.storage.journal import decode_info, encode_info

LINKS = [("SEA", "DEN"), ("DEN", "NYC"), ("SEA", "CHI"), ("CHI", "NYC"), ("DEN", "CHI")]
FLOWS = tw.sets.FlowPolytope.from_edges(LINKS, source="SEA", target="NYC")
MANY = tw.sets.MultiFlow.from_edges(LINKS, [("SEA", "NYC", 2.0), ("SEA", "CHI", 1.0)])
S = tw.sets
SETS = (
    FLOWS, MANY, *S.FlowPolytope.examples()[:3], *S.MultiFlow.examples(),
    *S.CapacitatedFlow.examples(), *S.Simplex.examples(), *S.SimplexProduct.examples(),
    *S.CappedSimplex.examples()[:2], *S.Box.examples(), *S.Product.examples()[:2],
    *S.Scaled.examples(), *S.Shrunk.examples()[:1], *S.Birkhoff.examples()[:2],
    *S.Matching.examples()[:2], *S.Permutahedron.examples()[:1], *S.L1Ball.examples()[:1],
    *S.L2Ball.examples()[:2], *S.VertexHull.examples()[:2], *S.BoundedPSD.examples()[:1],
)  # fmt: skip


def stream_on(K, rounds, seed):
    rng, n = np.random.default_rng(seed), int(np.prod(K.shape))
    costs = rng.standard_normal((rounds, *K.shape))
    rows = rng.standard_normal((rounds, n)).reshape(costs.shape)
    level = np.array([float((row * K.center).sum()) for row in rows])
    return tw.Stream(tw.functions.Linear(costs), tw.functions.Affine(rows, level + 0.05))


def learners_on(K):
    advice = [tw.experts.Resolve(headroom=(0, 2), columns=True), "incumbent"]
    return [
        tw.Ensemble(K, experts=[tw.experts.Season(3, cells=2), *advice], max_move=0.3),
        tw.Ensemble(K, step_scales=(1.0,), experts=[tw.experts.Resolve(2, headroom=0)]),
        tw.LyapunovDescent(K, max_move=0.3),
        tw.LyapunovDescent(K, block=3, calls_per_round=0.3),
        tw.PrimalDual(K, block=2),
        tw.baselines.Resolve(K, columns=True),
    ]


def is_infeasible(K, out):
    """By a linear program: no member is 0 in all of these entries."""
    d, n = K.description(), int(np.prod(K.shape))
    lift = np.eye(n) if d.lift is None else np.asarray(d.lift @ np.eye(d.lift.shape[1]))
    shift = np.zeros(n) if d.shift is None else d.shift
    rows = [lift[out]] if d.A_eq is None else [np.asarray(d.A_eq @ np.eye(len(d.lower))), lift[out]]
    sides = [-shift[out]] if d.b_eq is None else [d.b_eq, -shift[out]]
    bounds = np.stack([d.lower, d.upper], axis=1)
    A_ub = None if d.A_ub is None else np.asarray(d.A_ub @ np.eye(len(d.lower)))
    A, b = np.concatenate(rows), np.concatenate(sides)
    return linprog(0 * d.lower, A_ub, d.b_ub, A, b, bounds, method="highs").status == 2


OUTAGES = st.lists(st.sets(st.integers(0, 12), max_size=4), min_size=7, max_size=7)


@pytest.mark.soak_examples(12)
@given(st.sampled_from(SETS), st.integers(0, 5), st.integers(0, 99), OUTAGES)
@settings(max_examples=4)
def test_what_is_played_is_a_member_without_the_entries_that_are_out(K, which, seed, outages):
    learner, stream = learners_on(K)[which], stream_on(K, len(outages), seed)
    state, n = learner.start(), int(np.prod(K.shape))
    for t, given_out in enumerate(outages):
        out = sorted({i % n for i in given_out})
        known, before = tw.RoundInfo(unavailable=out, advice={"incumbent": K.center}), state
        saved = learner.save(state)
        try:
            state = learner.with_info(state, known)
        except (EmptySet, NotSupported) as error:
            assert out
            assert learner.save(before) == saved
            proven = isinstance(error, EmptySet) and isinstance(K, S.Polyhedral)
            assert not proven or is_infeasible(K, out)
        x = learner.act(state)
        if state is not before:
            assert not x.reshape(-1)[out].any()
            assert np.array_equal(x, learner.act(learner.load(learner.save(state))))
            assert np.array_equal(x, learner.act(learner.with_info(before, known)))
        assert is_member(K, x)
        state = next(iter(tw.play(learner, stream[t : t + 1], state))).state


@pytest.mark.soak_examples(25)
@given(seed=st.integers(0, 99), K=st.sampled_from((FLOWS, MANY)), late=st.booleans())
@settings(max_examples=8)
def test_nonnegative_sets_refuse_only_what_no_member_does(seed, K, late):
    out = np.flatnonzero(np.random.default_rng(seed).random(K.shape[0]) < 0.4).tolist()
    learner = tw.LyapunovDescent(K)
    state = learner.start()
    if late:
        *_, played = tw.play(learner, stream_on(K, 9, seed), state)
        state = played.state
    if out and is_infeasible(K, out):
        with pytest.raises(EmptySet, match="no path leads from SEA to"):
            learner.with_info(state, tw.RoundInfo(unavailable=out))
    else:
        assert not learner.act(learner.with_info(state, tw.RoundInfo(unavailable=out)))[out].any()


@pytest.mark.soak_examples(25)
@given(seed=st.integers(0, 99), which=st.integers(0, 5))
@settings(max_examples=4)
def test_a_run_around_outages_is_the_same_in_parts_and_in_a_session(seed, which):
    K, learner = MANY, learners_on(MANY)[which]
    stream, rng = stream_on(K, 8, seed), np.random.default_rng(seed)
    out = [["DEN > CHI"] if one else None for one in rng.random(8) < 0.5]
    stream = tw.Stream(stream.losses, stream.constraints, unavailable=out)
    whole = [x for played in tw.play(learner, stream) for x in [played.x] * len(played.losses)]
    state, session = None, tw.Session(learner)
    for t in range(8):
        (played,) = tw.play(learner, stream[t : t + 1], state)
        state = learner.load(learner.save(played.state))
        known = session.play(unavailable=out[t]) if out[t] else session.play()
        assert np.allclose(played.x, whole[t], atol=1e-9)
        assert np.array_equal(played.x, known)
        session.observe(loss=stream.losses[t : t + 1], constraint=stream.constraints[t : t + 1])


def test_what_is_known_after_all_takes_the_place_of_an_outage():
    for learner in learners_on(FLOWS):
        *_, played = tw.play(learner, stream_on(FLOWS, 6, 1))
        state = played.state
        if isinstance(learner, tw.Ensemble) and learner.context is not None:
            state = learner.with_info(state, tw.RoundInfo())
        around = learner.with_info(state, tw.RoundInfo(unavailable="DEN > NYC"))
        assert learner.act(around)[1] == 0.0
        again = learner.with_info(around, tw.RoundInfo())
        assert np.array_equal(learner.act(again), learner.act(state))


def test_after_an_outage_weights_and_decisions_are_those_of_a_run_without_one():
    # gradients are the same at all points, so that nothing but weights could differ
    K, rng = tw.sets.Simplex(4), np.random.default_rng(0)
    losses = tw.functions.Linear([0.0, 0.3, 0.4, 2.0] + 0.5 * rng.standard_normal((70, 4)))
    for entry, moves, kernel in ((0, True, True), (0, True, False), (3, False, True)):
        learner = tw.Ensemble(K, max_move=None if kernel else 2.0)
        assert (learner.compiled is not None) is kernel
        out = [[entry] if 40 <= t < 60 else None for t in range(70)]
        calm = list(tw.play(learner, tw.Stream(losses)))
        run = list(tw.play(learner, tw.Stream(losses, unavailable=out)))
        assert [played.state.outage is not None for played in run] == [
            moves and 40 <= t < 60 for t in range(70)
        ]
        if moves:
            usual, around = run[59].state.mixer.totals, run[59].state.outage.totals
            assert np.allclose(usual, calm[59].state.mixer.totals)
            assert not np.allclose(usual, around)
            for one, other in zip(run[60:], calm[60:], strict=True):
                assert np.allclose(one.x, other.x)


def test_limits_that_only_the_way_around_breaks_do_not_move_the_usual_weights():
    costs, capacities = np.zeros((6, 3)), np.tile([1.0, 0.4, 1.0], (6, 1))
    costs[:5, 1:] = 1.0
    stream = tw.Stream(
        tw.functions.Linear(costs),
        tw.functions.Capacity(capacities),
        unavailable=[*[None] * 5, [0]],
    )
    states = [played.state for played in tw.play(tw.Ensemble(tw.sets.Simplex(3)), stream)]
    assert states[4].dual.violation == 0.0
    assert states[5].dual.violation > 0.0
    assert states[5].outage is not None
    assert np.allclose(states[5].mixer.totals, states[4].mixer.totals)


def test_only_calls_that_are_needed_are_made_and_counted():
    learner = tw.LyapunovDescent(FLOWS, calls_per_round=0.01)
    state = learner.start()
    told = learner.with_info(state, tw.RoundInfo(unavailable=["SEA > DEN"]))
    assert (told.calls, told.oracle_budget) == (1, -1.0)  # the center uses every arc
    ensemble = tw.Ensemble(MANY)
    state = ensemble.with_info(ensemble.start(), tw.RoundInfo(unavailable=["DEN > CHI"]))
    assert state.calls == 1
    again = ensemble.with_info(state, tw.RoundInfo(unavailable=["DEN > CHI"]))
    assert again.calls == 1  # the vertex stays a candidate
    assert ensemble.with_info(state, tw.RoundInfo(unavailable=["SEA > NYC: SEA > DEN"])).calls == 2


def test_advice_that_uses_what_is_out_sleeps():
    learner = tw.Ensemble(tw.sets.Simplex(3), experts=["a", "b"])
    advice = {"a": [0.5, 0.5, 0.0], "b": [0.0, 0.5, 0.5]}
    told = learner.with_info(learner.start(), tw.RoundInfo(advice=advice, unavailable=[2]))
    assert told.upcoming.points[-2] is not None
    assert told.upcoming.points[-1] is None


@pytest.mark.parametrize("columns", [False, True], ids=["described", "columns"])
def test_resolving_around_an_outage_is_best_without_the_entry(columns):
    K = tw.sets.Simplex(4)
    learner = tw.Ensemble(K, experts=[tw.experts.Resolve(headroom=0, columns=columns)])
    loss = tw.functions.Linear(np.tile([0.0, 1.0, 2.0, 3.0], (30, 1)))
    limit = tw.functions.Capacity(np.tile([0.5, 0.6, 1.0, 1.0], (30, 1)))
    *_, played = tw.play(learner, tw.Stream(loss, limit))
    told = learner.with_info(played.state, tw.RoundInfo(unavailable=[1]))
    assert played.state.upcoming.points[-1] == pytest.approx([0.5, 0.5, 0.0, 0.0], abs=1e-9)
    assert told.upcoming.points[-1] == pytest.approx([0.5, 0.0, 0.5, 0.0], abs=1e-9)


def test_entries_have_names_and_links_name_all_their_commodities():
    assert FLOWS.names == ("SEA > DEN", "DEN > NYC", "SEA > CHI", "CHI > NYC", "DEN > CHI")
    assert MANY.names[:2] == ("SEA > NYC: SEA > DEN", "SEA > NYC: DEN > NYC")
    out = entries_out(MANY, tw.RoundInfo(unavailable=["SEA > DEN"]))
    gone = [name for name, is_out in zip(MANY.names, out, strict=True) if is_out]
    assert gone == ["SEA > NYC: SEA > DEN", "SEA > CHI: SEA > DEN"]
    twice = tw.sets.FlowPolytope.from_edges([(0, 1), (0, 1)], source=0, target=1)
    assert twice.names == ("0 > 1", "0 > 1 (2)")
    assert tw.sets.Scaled(FLOWS, 2.0).names == FLOWS.names
    assert tw.sets.Product(FLOWS, twice).names == FLOWS.names + twice.names
    assert tw.sets.Product(FLOWS, tw.sets.Simplex(2)).names is tw.sets.Simplex(2).names is None


@pytest.mark.parametrize(
    ("K", "unavailable", "named"),
    [
        (FLOWS, "DEN > NYX", "DEN > NYC"),
        (FLOWS, [5], "0 to 4"),
        (tw.sets.Simplex(2), "left", "0 to 1"),
        (tw.sets.Simplex(2), [0, 1], "entry 0 and entry 1"),
        (FLOWS, ["DEN > NYC", 3], "DEN > NYC and CHI > NYC no path leads from SEA to NYC"),
        (MANY, ["SEA > CHI", "DEN > CHI"], "no path leads from SEA to CHI"),
        (tw.sets.Box([1.0], [3.0]), [0], "entry 0"),
        (
            tw.sets.CapacitatedFlow.from_edges([(0, 1), (0, 1)], supplies={0: 3, 1: -3}, upper=2),
            ["0 > 1 (2)"],
            r"there is no member of CapacitatedFlow",
        ),
    ],
    ids=range(8),
)
def test_what_cannot_be_reached_is_said(K, unavailable, named):
    for learner in (tw.LyapunovDescent(K), tw.Ensemble(K), tw.baselines.Resolve(K)):
        session = tw.Session(learner)
        with pytest.raises(InvalidInput, match=named):
            session.play(unavailable=unavailable)
        assert is_member(K, session.play())


def test_learners_that_cannot_leave_entries_out_say_so():
    stream = stream_on(FLOWS, 3, 0)
    stream = tw.Stream(stream.losses, stream.constraints, unavailable=[None, ["DEN > NYC"], None])
    for learner in (tw.LyapunovFrankWolfe(FLOWS), tw.baselines.SinhaVaze(FLOWS)):
        with pytest.raises(NotSupported, match=r"cannot leave out \('DEN > NYC',\)"):
            tw.run(learner, stream)


def test_what_is_unavailable_has_one_plain_form():
    assert tw.RoundInfo(unavailable=["b", 3, "a", np.int64(1), "a"]).unavailable == (1, 3, "a", "b")
    assert tw.RoundInfo(unavailable="a > b").unavailable == ("a > b",)
    assert tw.RoundInfo(unavailable=[]) == tw.RoundInfo(unavailable=()) == tw.RoundInfo()
    for bad in (7, [True], [1.5], [-1]):
        with pytest.raises(InvalidInput if bad == [-1] else WrongType, match=r"unavailable|names"):
            tw.RoundInfo(unavailable=bad)
    known = tw.RoundInfo(unavailable=["b", 3], time=1.0)
    assert known.identity == tw.RoundInfo(unavailable=(3, "b"), time=1.0).identity
    assert known.identity != tw.RoundInfo(unavailable=(3, "c"), time=1.0).identity
    assert decode_info(encode_info(known), np.zeros(4)) == known


def test_streams_carry_outages():
    stream, mask = stream_on(FLOWS, 4, 0), np.zeros((4, 5), dtype=bool)
    mask[1, [0, 3]] = True
    told = tw.Stream(stream.losses, stream.constraints, unavailable=mask)
    assert [told.info(t) for t in range(4)] == [None, tw.RoundInfo(unavailable=(0, 3)), None, None]
    assert told[1:3].unavailable == ((0, 3), None)
    assert told[2:].unavailable is None
    names = tw.Stream(stream.losses, unavailable=[None, "SEA > DEN", [], ["SEA > DEN", 4]])
    assert names.unavailable == (None, ("SEA > DEN",), None, (4, "SEA > DEN"))
    for bad in (mask[:3], mask.T, [None]):
        with pytest.raises(WrongShape, match="unavailable of a stream"):
            tw.Stream(stream.losses, unavailable=bad)
