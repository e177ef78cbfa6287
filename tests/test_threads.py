"""Learners, states and sessions may be shared between threads."""

import copy
import pickle
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import tidewolf as tw
from tidewolf.core.errors import InvalidInput, NotSupported


@pytest.fixture(autouse=True)
def _eager_switching():
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.parametrize("kind", [tw.LyapunovDescent, tw.baselines.SinhaVaze])
@pytest.mark.parametrize("start", [0, 20])
def test_one_learner_and_state_in_four_threads_play_what_they_play_alone(kind, start):
    problem = tw.problems.routing(rounds=60)
    learner = kind(problem.K, horizon=60)
    state = tw.run(learner, problem.stream[:start]).final_state

    def losses(_):
        return [float(p.losses[0]) for p in tw.play(learner, problem.stream[start:], state)]

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(losses, range(12))) == [losses(0)] * 12


# --- one session ----------------------------------------------------------------------------------

LEARNERS = {
    "LyapunovDescent": tw.LyapunovDescent(tw.sets.Simplex(4), horizon=2000),
    "DriftPlusPenalty": tw.DriftPlusPenalty(tw.sets.Simplex(4), horizon=2000, block=50),
}
LOSS = tw.functions.Linear.one([1.0, -2.0, 0.5, 0.0])
CONSTRAINT = tw.functions.Capacity.one([0.5, 0.4, 0.3, 0.2])


def observed_by_threads(session, threads, each):
    """How many observations were acknowledged; every thread plays before it observes."""

    def work(_):
        for _ in range(each):
            assert session.learner.K.infeasibility(session.play()) <= 1e-9
            session.observe(loss=LOSS, constraint=CONSTRAINT)
        return each

    with ThreadPoolExecutor(threads) as pool:
        return sum(pool.map(work, range(threads)))


CASES = [*((name, False) for name in LEARNERS), ("LyapunovDescent", True)]


@pytest.mark.parametrize(("name", "durable"), CASES)
def test_a_session_keeps_all_that_eight_threads_observe(name, durable, tmp_path):
    learner, path, each = LEARNERS[name], tmp_path / "session.db", 25 if durable else 60
    alone = tw.Session(learner)
    shared = tw.Session.open(path, learner, snapshot_every=30) if durable else tw.Session(learner)
    assert observed_by_threads(shared, 8, each) == 8 * each == shared.rounds
    for _ in range(8 * each):
        alone.observe(loss=LOSS, constraint=CONSTRAINT)
    # each was taken at the point that stood, in some order
    assert learner.save(shared.state) == learner.save(alone.state)
    shared.close()
    if durable:
        with tw.Session.open(path, learner, read_only=True) as again:
            assert sum(seen.rounds for seen in again.history()) == again.rounds == 8 * each
            assert learner.save(again.state) == learner.save(alone.state)


def test_what_is_saved_while_others_observe_is_one_whole_state(tmp_path):
    learner = LEARNERS["LyapunovDescent"]
    session, path = tw.Session(learner), tmp_path / "state"

    def save(_):
        session.save(path)
        tw.Session.load(path, learner)

    def observe(_):
        session.observe(loss=LOSS, constraint=CONSTRAINT)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda i: save(i) if i % 2 else observe(i), range(100)))
    assert session.rounds == 50
    assert [file.name for file in tmp_path.iterdir()] == ["state"]


def test_a_copy_of_a_session_goes_its_own_way():
    session = tw.Session(LEARNERS["LyapunovDescent"])
    session.observe(loss=LOSS, constraint=CONSTRAINT)
    for copied in (copy.copy(session), copy.deepcopy(session), pickle.loads(pickle.dumps(session))):
        assert (copied.play() == session.play()).all()
        copied.observe(loss=LOSS, constraint=CONSTRAINT)
        assert (copied.rounds, session.rounds) == (2, 1)


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, pickle.dumps])
def test_a_durable_session_has_no_copies(copied, tmp_path):
    with tw.Session.open(tmp_path / "session.db", LEARNERS["LyapunovDescent"]) as session:
        with pytest.raises(NotSupported, match="A durable session cannot be copied or pickled"):
            copied(session)
        session.observe(loss=LOSS, constraint=CONSTRAINT)
        assert session.rounds == 1


def test_a_function_that_observes_is_refused():
    session = tw.Session(LEARNERS["LyapunovDescent"])

    def value(x):
        session.observe(loss=LOSS, constraint=CONSTRAINT)
        return -1.0

    meddling = tw.functions.Custom.one(value, lambda x: np.eye(4)[0], shape=(4,))
    with pytest.raises(InvalidInput, match="A function called observe while"):
        session.observe(loss=LOSS, constraint=meddling)
    assert session.rounds == 1
