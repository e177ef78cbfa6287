"""Sessions: the same as a run, resumed as if never stopped; what cannot be observed is in
test_observation.py.
"""

import math
import os
from pathlib import Path

import numpy as np
import pytest

import tidewolf as tw
from killed import Follower
from tidewolf.core import errors, feedback
from tidewolf.functions import Capacity, Custom, Linear

ROUNDS, EDGES = 40, [("s", "a"), ("s", "b"), ("a", "b"), ("a", "t"), ("b", "t")]
FLOW = tw.sets.FlowPolytope.from_edges(EDGES, source="s", target="t")
SINGLE = [
    tw.LyapunovDescent(FLOW, horizon=30),
    tw.LyapunovDescent(tw.sets.Simplex(5), horizon=50, caution=1.0),
    tw.LyapunovDescent(tw.sets.Simplex(5)),
    tw.baselines.SinhaVaze(FLOW, horizon=30),
    tw.baselines.SinhaVaze(tw.sets.Simplex(5)),
]
BLOCKS = [tw.LyapunovDescent(FLOW, 30, block=3)]
BLOCKS += [tw.LyapunovDescent(tw.sets.Simplex(5), 31, block=3, calls_per_round=0.4)]
RNG = np.random.default_rng(0)
COSTS, LIMITS = RNG.standard_normal((ROUNDS, 5)), RNG.uniform(0.1, 1.0, (ROUNDS, 5))
STREAM = tw.Stream(Linear(COSTS), Capacity(LIMITS))


def named(learner):
    fields, kind = learner.fields(), type(learner.K).__name__
    return f"{type(learner).__name__}-{kind}-{fields.get('horizon')}-{fields.get('block')}"


every_learner = pytest.mark.parametrize("learner", [*SINGLE, *BLOCKS], ids=named)
single_learner = pytest.mark.parametrize("learner", SINGLE, ids=named)


def observe(session, t):
    session.observe(loss=Linear.one(COSTS[t]), constraint=Capacity.one(LIMITS[t]))


def advanced(learner, rounds):
    session = tw.Session(learner)
    for t in range(rounds):
        observe(session, t)
    return session


def saved(session):
    return session.learner.save(session.state)


# --- the same as a run ----------------------------------------------------------------------------


@single_learner
def test_round_by_round_it_is_the_run_bit_for_bit(learner):
    session, losses, violations = tw.Session(learner), [], []
    for t in range(ROUNDS):
        x = session.play()
        losses.append(STREAM.losses[t : t + 1].values(x)[0])
        violations.append(max(0.0, STREAM.constraints[t : t + 1].values(x)[0]))
        observe(session, t)
    run = tw.run(learner, STREAM)
    # on the simplex a kernel adds up losses by vertices
    np.testing.assert_allclose(losses, run.losses, rtol=1e-14)
    assert np.array(violations).tobytes() == run.violations.tobytes()
    assert run.violations.any()
    assert not run.violations.all()
    assert saved(session) == learner.save(run.final_state)
    assert (session.rounds, session.notes) == (ROUNDS, run.notes)
    assert session.oracle_calls == run.oracle_calls


@pytest.mark.parametrize("learner", BLOCKS, ids=named)
def test_with_whole_blocks_it_is_the_run_bit_for_bit(learner):
    session, t = tw.Session(learner), 0
    while t < ROUNDS:
        k = min(learner.rounds_left(session.state), ROUNDS - t)
        session.observe(loss=STREAM.losses[t : t + k], constraint=STREAM.constraints[t : t + k])
        t += k
    assert saved(session) == learner.save(tw.run(learner, STREAM).final_state)
    assert session.rounds == ROUNDS


@every_learner
def test_gradients_lists_and_feedback_do_what_functions_do(learner):
    functions, gradients, lists, reduced, full = (tw.Session(learner) for _ in range(5))
    breaches = 0
    for t in range(ROUNDS):
        x, one = functions.play(), STREAM[t : t + 1]
        value = float(one.constraints.values(x)[0])
        grad_g = one.constraints.subgradient(x, np.ones(1))
        breaches += value > 0
        observe(functions, t)
        told = {"loss_gradient": COSTS[t], "constraint_value": value}
        gradients.observe(**told, constraint_gradient=grad_g)
        told = {"constraint_gradient": grad_g.tolist()} if value > 0 else {}
        lists.observe(loss_gradient=COSTS[t].tolist(), constraint_value=value, **told)
        seen = feedback.first_order(one.losses, one.constraints, x, one.constraints.values(x))
        names = "loss_gradient", "constraint_gradient"
        listed = {name: getattr(seen, name).tolist() for name in names}
        reduced.observe(seen if t % 2 else seen._replace(**listed))
        full.observe(feedback.FullInformation(one.losses, one.constraints))
        # BLAS may round the norm of one gradient differently at another address in memory
        for session in (gradients, lists, reduced, full):
            np.testing.assert_allclose(session.play(), functions.play(), rtol=0.0, atol=1e-12)
    assert 0 < breaches < ROUNDS


# --- files ----------------------------------------------------------------------------------------


def test_a_saved_file_is_replaced_whole_or_not_at_all(tmp_path, monkeypatch):
    path = tmp_path / "session"
    advanced(SINGLE[0], 3).save(path)

    def full_disk(*_):
        raise OSError(28, "No space left on device")

    session = advanced(SINGLE[0], 5)
    for name in ("fsync", "replace"):
        with monkeypatch.context() as patch:
            patch.setattr(os, name, full_disk)
            for place in (path, tmp_path / "nowhere" / "session"):
                with pytest.raises(errors.CheckpointError, match="session"):
                    session.save(place)
    assert tw.Session.load(path, SINGLE[0]).rounds == 3
    assert session.rounds == 5
    assert os.listdir(tmp_path) == ["session"]


def test_files_that_cannot_be_resumed_are_refused_by_name(tmp_path):
    path, learner = tmp_path / "session", SINGLE[0]
    advanced(learner, 5).save(path)
    with pytest.raises(errors.OtherSettings, match="session: "):
        tw.Session.load(path, SINGLE[1])
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(errors.BrokenFile, match="session: "):
        tw.Session.load(path, learner)
    for nowhere in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(errors.CheckpointError, match=str(nowhere)):
            tw.Session.load(nowhere, learner)


@pytest.mark.parametrize("wrong", [tw.LyapunovDescent, FLOW, None, "LyapunovDescent"])
def test_a_session_needs_a_learner_and_a_state_of_it(wrong):
    for make in (tw.Session, lambda learner: tw.Session.load(Path("nowhere"), learner)):
        with pytest.raises(errors.WrongType, match="learner"):
            make(wrong)
    if wrong is not None:
        with pytest.raises(errors.WrongType, match="state"):
            tw.Session(SINGLE[0], wrong)


# --- costs and capacities, and rounds without a limit ---------------------------------------------


def test_a_round_without_a_limit_is_observed():
    learner = SINGLE[0]
    shape = learner.K.shape
    costs = np.arange(1.0, 1.0 + np.prod(shape)).reshape(shape)
    loss = tw.functions.Linear.one(costs)
    sessions = [tw.Session(learner) for _ in range(3)]
    for _ in range(4):
        sessions[0].observe(loss=loss)
        sessions[1].observe(costs=costs)
        sessions[2].observe(loss_gradient=costs, constraint_value=-1.0)
    assert saved(sessions[0]) == saved(sessions[1]) == saved(sessions[2])


# --- what is known before a round -----------------------------------------------------------------


FOLLOWER, ADVICE = Follower(tw.sets.Simplex(3)), {"a": [0.25, 0.25, 0.5]}


def test_play_takes_what_is_known_once():
    session = tw.Session(FOLLOWER)
    for t in range(3):
        known = {"time": 100.0 + t, "advice": ADVICE, "context": t}
        x = session.play(**known)
        assert x.tolist() == ADVICE["a"]
        before = saved(session)
        for again in ({}, known, {**known, "time": float(100 + t)}):
            assert session.play(**again).tobytes() == x.tobytes()
        for other in ({"context": t + 1}, {"context": t, "time": 0.0}, {"advice": ADVICE}):
            with pytest.raises(errors.OtherContent, match=f"Round {t}"):
                session.play(**other)
        assert saved(session) == before
        session.observe(loss_gradient=np.ones(3), constraint_value=-1.0)
    assert session.play().tolist() == FOLLOWER.K.center.tolist()
    assert session.state.count == 3


def test_knowledge_that_comes_after_a_decision_without_it_is_refused_where_it_would_change_it():
    session = tw.Session(FOLLOWER)
    x = session.play()
    with pytest.raises(errors.InvalidInput, match="Round 0 was decided before this was known"):
        session.play(advice=ADVICE)
    assert session.play().tobytes() == x.tobytes()
    session.observe(loss_gradient=np.ones(3), constraint_value=-1.0)
    assert session.play(advice=ADVICE).tolist() == ADVICE["a"]  # nobody asked before
    plain = tw.Session(SINGLE[0])
    assert plain.play().tobytes() == plain.play(time=3.0, context=1).tobytes()


ONE, TWO = tw.functions.Linear([[1.0, 2.0]]), tw.functions.Linear([[1.0, 2.0, 3.0]] * 2)
UNKNOWN = {
    "time": ("noon", float("nan")),
    "context": (object(),),
    "advice": ([0.2, 0.3, 0.5], {"a": [0.5, 0.5]}, {"a": "up"}),
    "forecast": (3.0, (ONE, None), (TWO, None)),
}


@pytest.mark.parametrize("known", [{key: x} for key, some in UNKNOWN.items() for x in some])
def test_what_cannot_be_known_is_refused_and_changes_nothing(known):
    for learner in (FOLLOWER, tw.LyapunovDescent(tw.sets.Simplex(3))):
        session = tw.Session(learner)
        before = saved(session)
        with pytest.raises(errors.TidewolfError):
            session.play(**known)
        assert saved(session) == before
        session.play(advice=ADVICE)


def test_a_forecast_by_a_function_of_python_is_told_once():
    session, own = tw.Session(FOLLOWER), Custom.one(lambda x: 0.0, lambda x: 0.0 * x, 3)
    x = session.play(forecast=(own, None))
    assert session.play().tobytes() == x.tobytes()
    with pytest.raises(errors.InvalidInput, match="when something else was known"):
        session.play(forecast=(own, None))


def test_a_session_plays_what_a_run_plays_with_the_same_knowledge():
    K, T, rng = tw.sets.Simplex(3), 30, np.random.default_rng(5)
    learner = tw.Ensemble(K, experts=[tw.experts.Season("6h", cells=3), "a", tw.experts.Resolve()])
    costs, room = Linear(rng.standard_normal((T, 3))), Capacity(rng.uniform(0.3, 0.9, (T, 3)))
    advice = {"a": rng.dirichlet(np.ones(3), T)}
    stream = tw.Stream(costs, room, time=3600.0 * np.arange(T), advice=advice)
    session = tw.Session(learner)
    for t, played in enumerate(tw.play(learner, stream)):
        known = stream.info(t)
        assert session.play(time=known.time, advice=known.advice).tobytes() == played.x.tobytes()
        part = stream[t : t + 1]
        session.observe(loss=part.losses, constraint=part.constraints)
    assert saved(session) == learner.save(played.state)


@pytest.mark.parametrize("kind", [tw.LyapunovDescent, tw.Ensemble])
def test_a_session_certifies_its_rounds_as_a_run_does(kind):
    """Live, after every round, and the same as a run over the same rounds says."""
    problem = tw.problems.routing(rounds=60)
    session, stream = tw.Session(kind(problem.K)), problem.stream
    for t in range(60):
        session.observe(loss=stream.losses[t : t + 1], constraint=stream.constraints[t : t + 1])
        assert math.isfinite(session.certificate().regret)
    bound = tw.run(kind(problem.K), stream).bound
    assert session.certificate()[:2] == pytest.approx(bound[:2], rel=1e-6)
    with pytest.raises(errors.NotSupported):
        tw.Session(tw.DriftPlusPenalty(problem.K, horizon=60)).certificate()
