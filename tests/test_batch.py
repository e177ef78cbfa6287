"""Streams: rounds without feedback are played and counted, and nothing to the learner; what is
known before a round goes along.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tidewolf as tw
from refused import refused
from tidewolf.core.errors import TidewolfError, WrongShape, WrongType
from tidewolf.functions import Affine, Capacity, Custom, Linear, Max, Unlimited
from tidewolf.report.page import learner_notes

K, T = tw.sets.Simplex(4), 24
EVERY = {**tw.learners.every(), **tw.baselines.every()}.values()
EVERY = [learner for kind in EVERY for learner in kind.examples(K, 12)]
NAMES = [f"{type(learner).__name__}-{i}" for i, learner in enumerate(EVERY)]
each_learner = pytest.mark.parametrize("learner", EVERY, ids=NAMES)


def arrays(seed):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((T, 4)), rng.standard_normal((T, 4))


def streams(seed, mask):
    """With unseen rounds; and without those rounds."""
    C, A = arrays(seed)
    b = A @ K.center + 0.1
    rest = tw.Stream(Linear(C[mask]), Affine(A[mask], b[mask]))
    return tw.Stream(Linear(C), Affine(A, b), seen=mask), rest


@each_learner
@settings(max_examples=2)
@given(st.integers(0, 99), st.just([False] * T) | st.lists(st.booleans(), min_size=T, max_size=T))
def test_for_the_learner_an_unseen_round_does_not_exist(learner, seed, mask):
    mask = np.array(mask)
    whole, rest = streams(seed, mask)
    masked, plain = list(tw.play(learner, whole)), list(tw.play(learner, rest))
    ends = [played[-1].state if played else learner.start() for played in (masked, plain)]
    assert (ends[0].t, ends[0].calls) == (ends[1].t, ends[1].calls)
    # blocks add up in another order
    np.testing.assert_allclose(learner.act(ends[0]), learner.act(ends[1]), atol=1e-7)
    assert sum(len(played.losses) for played in masked) == T
    losses = np.concatenate([played.losses for played in masked])
    due = np.concatenate([[], *(played.losses for played in plain)])
    np.testing.assert_allclose(losses[mask], due, atol=1e-6)


def test_a_run_counts_and_says_what_was_not_seen():
    mask = np.ones(T, dtype=bool)
    mask[[3, 4, 11]] = False
    stream, _ = streams(2, mask)
    run = tw.run(tw.LyapunovDescent(K, horizon=T), stream)
    assert (run.unseen, run.rounds, run.summary()["unseen"]) == (3, T, 3)
    assert "rounds 24 (3 unseen)" in str(run)
    assert len(run.ends) == len(run.measures) == 21
    sentence = "3 of the 24 rounds, which count, had no feedback."
    assert sentence in run.notes
    assert ("LyapunovDescent", sentence) in learner_notes([run], ["LyapunovDescent"])
    found = run.certificate
    assert (found.regret.bound, found.regret.guarantee, found.violation.bound) == (None, None, None)
    assert found.failures == ()
    assert "it did not observe all of them" in str(run)
    every = tw.intervals(run, 8)
    assert every.checks == ()
    assert "it did not observe all of them" in repr(every)


def test_masks_are_cut_with_their_streams_and_compared():
    mask = np.arange(T) % 3 > 0
    stream, _ = streams(4, mask)
    assert (stream.unseen, stream[3:9].unseen) == (8, 2)
    assert stream[1:3].seen is None
    plain = tw.Stream(stream.losses, stream.constraints)
    assert stream != plain == tw.Stream(stream.losses, stream.constraints, np.ones(T, dtype=bool))
    mask[0] = True
    assert stream.unseen == 8


@each_learner
def test_without_constraints_every_learner_plays_as_under_one_that_never_binds(learner):
    C, _ = arrays(3)
    free = tw.Stream(Linear(C))
    assert free.constraints == Unlimited(4, T)
    assert free[3:7] == tw.Stream(Linear(C[3:7]), Unlimited(4, 4))
    idle = tw.Stream(Linear(C), Affine(np.zeros((T, 4)), np.ones(T)))
    run, same = tw.run(learner, free), tw.run(learner, idle)
    # sums with and without zeros of a limit: equal but for rounding over T rounds
    np.testing.assert_allclose(run.losses, same.losses, rtol=0.0, atol=1e-10)
    assert not run.violations.any()
    assert (run.oracle_calls, run.regret) == (same.oracle_calls, pytest.approx(same.regret))


# --- what is known before a round -----------------------------------------------------------------


def informed_stream(seed=0):
    """With times, contexts and two advisers, one of whom is silent in every third round."""
    C, A = arrays(seed)
    good, bad = np.random.default_rng(seed).dirichlet(np.ones(4), (2, T))
    bad[::3, 1] = np.nan
    known = {"context": np.arange(T) % 5, "advice": {"good": good, "bad": bad}}
    known["time"] = [f"2026-03-01T{t:02d}:00" for t in range(T)]
    return tw.Stream(Linear(C), Affine(A, A @ K.center + 0.1), **known)


def test_a_stream_says_what_is_known_before_each_round():
    stream, first = informed_stream(), tw.RoundInfo(time="2026-03-01").time
    for t in range(T):
        known = stream.info(t)
        assert (known.time, known.context) == (first + 3600.0 * t, t % 5)
        assert known.advice["good"].tobytes() == stream.advice["good"][t].tobytes()
        assert set(known.advice) == ({"good"} if t % 3 == 0 else {"good", "bad"})
        assert known == tw.RoundInfo(*known[:5])
    C, A = arrays(0)
    assert tw.Stream(Linear(C), Affine(A, np.ones(T))).info(3) is None
    for t in (-1, T, 1.5, None, "0"):
        with pytest.raises(TidewolfError):
            stream.info(t)


@given(start=st.integers(0, T), stop=st.integers(0, T))
@settings(max_examples=30)
def test_what_is_known_is_cut_with_the_stream(start, stop):
    stream = informed_stream()
    part = stream[start:stop]
    due = [stream.info(t) for t in range(start, max(start, stop))]
    assert [part.info(t) for t in range(len(part))] == due
    assert (stream, hash(stream)) == (informed_stream(), hash(informed_stream()))
    assert (part == stream) == (len(part) == T)


def test_what_nobody_knows_is_no_knowledge():
    C, A = arrays(0)
    nothing = np.full(T, np.nan)
    silent = {"context": np.full((T, 2), np.nan), "advice": {"silent": np.full((T, 4), np.nan)}}
    stream = tw.Stream(Linear(C), Affine(A, np.ones(T)), time=nothing, **silent)
    assert [stream.info(t) for t in range(T)] == [None] * T
    rows = np.tile([0.25, 0.75], (T, 1))
    rows[2, 0] = np.nan
    stream = tw.Stream(Linear(C), Affine(A, np.ones(T)), context=rows)
    assert stream.info(2) is None
    assert stream.info(3).context.tolist() == [0.25, 0.75]
    half = np.arange(T) + 0.5
    assert tw.Stream(Linear(C), Affine(A, np.ones(T)), context=half).info(2).context == 2.5


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("seen", [np.ones(T - 1, bool), np.ones(T), np.ones((T, 1), bool), [1] * T]),
        ("losses", [None]),
        ("time", [np.arange(T - 1.0), np.zeros((T, 1)), 3.0, ["noon"] * T, [object()] * T]),
        ("context", [np.zeros(T + 1), np.zeros((T, 2, 2)), ["night"] * T, 1]),
        ("advice", [np.zeros((T, 4)), {1: np.zeros((T, 4))}]),
        ("advice", [{"a": np.zeros(s)} for s in ((T, 3), (T - 1, 4), 4)]),
        ("advice", [{"a": None}, {"a": np.ma.masked_all((T, 4))}]),
    ],
)
def test_knowledge_that_does_not_fit_a_stream_is_refused(name, values):
    C, A = arrays(0)
    for value in values:
        given = {"losses": Linear(C), "constraints": Affine(A, np.ones(T)), name: value}
        with pytest.raises(TidewolfError):
            tw.Stream(**given)


# --- several constraints --------------------------------------------------------------------------


def test_a_list_of_constraints_is_their_largest_each_told_apart():
    C, A = arrays(0)
    links, budget = Capacity(np.full((T, 4), 0.3)), Affine(A, np.ones(T))
    stream, x = tw.Stream(Linear(C), [links, budget]), np.full(4, 0.4)
    assert stream.constraints == Max(links, budget)
    assert stream == tw.Stream(Linear(C), (links, budget))
    assert stream.constraints.pieces(x).shape == (T, 5)
    assert stream[2:4].constraints == Max(links[2:4], budget[2:4])
    assert tw.Stream(Linear(C), [budget]).constraints is budget
    assert tw.Stream(Linear(C), []) == tw.Stream(Linear(C))


def test_each_of_several_constraints_is_reported_by_name():
    C, A = arrays(0)

    def carbon(t, x):
        return float(x[0]) - 0.1

    own = Custom(carbon, lambda t, x: np.eye(4)[0], 4, rounds=T)
    nameless = Custom(lambda t, x: float(x[1]) - 0.2, lambda t, x: np.eye(4)[1], 4, rounds=T)
    stream = tw.Stream(Linear(C), [Affine(A, np.ones(T)), own, nameless])
    run = tw.run(tw.LyapunovDescent(tw.sets.Simplex(4)), stream, decisions=True)
    assert run.limit_names == ("limit 1", "carbon", "limit 3")
    over = np.maximum(0.0, run.decisions.points[:, :2] - [0.1, 0.2]).sum(axis=0)
    np.testing.assert_allclose(run.each_violation[1:], over)


def test_a_session_takes_several_constraints_of_a_round():
    sessions = [tw.Session(tw.LyapunovDescent(tw.sets.Simplex(4))) for _ in range(2)]
    C, A = arrays(0)
    for t in range(T):
        pair = Capacity.one(np.full(4, 0.3)), Affine.one(A[t], 1.0)
        sessions[0].observe(costs=C[t], constraint=list(pair))
        sessions[1].observe(costs=C[t], constraint=Max(*pair))
    np.testing.assert_array_equal(*(session.play() for session in sessions))


@pytest.mark.parametrize(
    ("limits", "kind"),
    [
        ([3], WrongType),
        ([Linear(np.ones((T, 4))), lambda t, x: 0.0], WrongType),
        ([Linear(np.ones((T, 4))), None], WrongType),
        ([Linear(np.ones((T, 3)))], WrongShape),
        ([Linear(np.ones((T + 1, 4)))], WrongShape),
    ],
)
def test_a_list_of_something_else_is_refused(limits, kind):
    with refused(kind, "constraints"):
        tw.Stream(Linear(np.ones((T, 4))), limits)
