"""Deadlines: a solver that hangs never blocks a decision, and what was decided without it is
decided again to the bit.
"""

import pickle
import threading
import time
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest

import tidewolf as tw
from tidewolf.core.conforming import is_member
from tidewolf.core.errors import InvalidInput, TidewolfError
from tidewolf.core.feedback import Arrival, FullInformation
from tidewolf.deadline import Advisers
from tidewolf.experts.base import Adviser, Proposals, skipping
from tidewolf.sets import Simplex

K, COSTS = Simplex(3), np.random.default_rng(0).random((12, 3))
CAPACITIES = np.random.default_rng(1).uniform(0.3, 0.8, (12, 3))
GATE = threading.Event()
"""Shut: nobody who waits for it gets through."""
CALLS = {}
LONG = 3.0
"""Seconds: far beyond all deadlines here, also on a machine with much to do."""


class Rounds(NamedTuple):
    seen: int = 0


@dataclass(frozen=True, eq=False, repr=False)
class Policy(Adviser):
    """Proposes the vertex of the coming round's number, after it has waited, or hung, or failed."""

    name: str = "policy"
    seconds: float = 0.0
    hangs: bool = False
    fails: bool = False
    fails_in: int | None = None
    """a round, whoever asks"""
    waits: bool = False
    calls: int = 0
    """oracle calls that it reports"""

    @property
    def names(self):
        return (self.name,)

    def start(self, K):
        return Rounds()

    def observe(self, K, state, seen, x):
        return Rounds(state.seen + 1)

    def propose(self, K, state, known, t, budget, vertices):
        CALLS[self.name] = CALLS.get(self.name, 0) + 1
        if threading.current_thread() is not threading.main_thread():
            time.sleep(self.seconds)
            if self.hangs:
                GATE.wait()
            if self.fails:
                raise RuntimeError("the policy's server is down")
        if state.seen == self.fails_in:
            raise RuntimeError("the planner's database is down")
        return Proposals((np.eye(3)[state.seen % 3],), state, calls=self.calls)


@dataclass(frozen=True, eq=False, repr=False)
class Odd(Policy):
    """Answers with whatever it is given, after the first round."""

    answer: Any = None

    def __init__(self, answer):
        super().__init__("odd")
        object.__setattr__(self, "answer", answer)

    def propose(self, K, state, *_):
        return self.answer if state.seen else Proposals((np.eye(3)[0],), state)


@pytest.fixture(autouse=True)
def _free_who_hangs():
    GATE.clear()
    CALLS.clear()
    yield
    GATE.set()


def stepped(learner, rounds):
    state = learner.start()
    for t in range(rounds):
        seen = FullInformation(
            tw.functions.Linear.one(COSTS[t]), tw.functions.Capacity.one(CAPACITIES[t])
        )
        state = learner.update(state, seen)
    return state


def unsettled(learner, rounds):
    loss = tw.functions.Linear.one(COSTS[rounds])
    limit = tw.functions.Capacity.one(CAPACITIES[rounds])
    state = stepped(learner, rounds)
    return learner.learned(state, Arrival(rounds, FullInformation(loss, limit)))


def test_learning_and_settling_are_an_update_to_the_bit():
    learner = tw.Ensemble(K, experts=[tw.experts.Resolve(columns=True), Policy()])
    state = unsettled(learner, 4)
    assert not learner.is_committed(state)
    assert learner.save(learner.committed(state)) == learner.save(stepped(learner, 5))
    again = learner.load(learner.save(state))
    assert not learner.is_committed(again)
    assert learner.save(learner.committed(again)) == learner.save(stepped(learner, 5))
    passed = learner.advance(stepped(learner, 5))
    assert not learner.is_committed(passed)
    decided = learner.defer(stepped(learner, 5))
    assert learner.save(learner.committed(passed)) == learner.save(decided)


def hear(learner, pool, state, seconds):
    began = time.monotonic()
    heard = pool.hear(lambda: learner.committed(state), began + seconds)
    assert time.monotonic() - began < LONG
    return heard


@pytest.mark.parametrize("name", ["hangs", "fails"])
def test_who_is_not_ready_sleeps_and_the_others_are_heard(name):
    """One who hangs is not asked again until it is back."""
    slow = Policy("slow", **{name: True})
    learner = tw.Ensemble(K, experts=[slow, Policy("quick"), tw.experts.Resolve(headroom=0)])
    state, pool = unsettled(learner, 3), Advisers(1.0)
    heard = hear(learner, pool, state, 1.0)
    assert list(heard.skipped) == ["slow"]
    assert (heard.skipped["slow"] is not None) == (name == "fails")
    with heard.again():
        committed = learner.committed(state)
    with skipping(("slow",)):
        assert learner.save(learner.committed(state)) == learner.save(committed)
    points = dict(zip(learner.names, committed.upcoming.points, strict=True))
    assert points["slow"] is None
    assert points["quick"] is not None
    assert points["last, headroom 0"] is not None
    if name == "hangs":
        assert "slow" in hear(learner, pool, unsettled(learner, 4), 2 * LONG).skipped
        assert pool.is_busy
        GATE.set()
        assert hear(learner, pool, unsettled(learner, 5), 5.0).skipped == {}


def test_an_adviser_that_is_asked_again_has_until_the_deadline():
    learner = tw.Ensemble(K, experts=[Policy("quick", calls=1), Policy("slow", seconds=0.05)])
    state = unsettled(learner, 3)
    CALLS.clear()
    assert hear(learner, Advisers(1.0), state, 60.0).skipped == {}
    assert CALLS["slow"] == 2  # again, with the oracle call less that `quick` left


# --- sessions -------------------------------------------------------------------------------------


def observed(session, t, **how):
    session.observe(costs=COSTS[t], capacities=CAPACITIES[t], **how)


def saved(session):
    return session.learner.save(session.state)


@pytest.mark.parametrize("waits", [False, True])
@pytest.mark.parametrize("name", ["hangs", "fails"])
def test_a_decision_never_waits_beyond_its_deadline(name, waits):
    slow = Policy("slow", waits=waits, **{name: True})
    session = tw.Session(tw.Ensemble(K, experts=[slow, Policy("quick")]))
    for t in range(4):
        began, x = time.monotonic(), session.play(time=float(t), deadline=0.05)
        assert time.monotonic() - began < LONG
        assert K.infeasibility(x) <= 1e-9
        assert np.array_equal(session.play(time=float(t), deadline=0.05), x)
        assert np.array_equal(session.play(), x)
        observed(session, t)
    session.play(time=4.0, deadline=0.05)
    assert "slow" in {part.name for part in session.explain().experts if not part.present}
    assert any("slow" in note for note in session.notes)


def test_nobody_asleep_means_the_bits_of_no_deadline():
    learner = tw.Ensemble(K, experts=[tw.experts.Resolve(columns=True), "incumbent"])
    plain, timed = tw.Session(learner), tw.Session(learner)
    for t in range(6):
        known = {"advice": {"incumbent": np.eye(3)[t % 3]}} if t % 2 else {}
        assert np.array_equal(plain.play(**known), timed.play(**known, deadline=60.0))
        for session in (plain, timed):
            observed(session, t)
    assert saved(plain) == saved(timed)
    assert timed.notes == ()


@pytest.mark.parametrize("every", [1, 3, 100])
def test_who_slept_sleeps_again_when_the_file_is_opened(tmp_path, every):
    learner = tw.Ensemble(K, experts=[Policy("slow", hangs=True), Policy("quick")])
    path = tmp_path / "a.db"
    with tw.Session.open(path, learner, snapshot_every=every) as session:
        for t in range(5):
            session.play(deadline=0.05)
            observed(session, t)
        x, bits = session.play(deadline=0.05), saved(session)
        session._journal._backend.close()  # as a kill leaves it
    CALLS.clear()
    with tw.Session.open(path, learner) as again:
        assert "slow" not in CALLS
        assert np.array_equal(again.play(), x)
        assert saved(again) == bits


@pytest.mark.parametrize("every", [1, 100])
def test_late_rounds_with_deadlines_come_to_the_same_bits_again(tmp_path, every):
    learner = tw.Ensemble(K, experts=[Policy("slow", hangs=True), tw.experts.Resolve(headroom=0)])
    path = tmp_path / "a.db"
    with tw.Session.open(path, learner, snapshot_every=every) as session:
        for t in range(6):
            began = time.monotonic()
            session.play(round=t, deadline=0.05)
            if t >= 2:
                asked = dict(CALLS)
                observed(session, t - 2, round=t - 2)
                assert asked == CALLS
            assert time.monotonic() - began < LONG
        session.play(round=8, deadline=0.05)
        points = [session.play(round=r) for r in session.pending]
        bits = learner.save(session._now)
        session._journal._backend.close()
    with tw.Session.open(path, learner) as again:
        assert all(map(np.array_equal, points, (again.play(round=r) for r in again.pending)))
        assert learner.save(again._now) == bits


def test_a_session_with_deadlines_saves_without_waiting(tmp_path):
    learner = tw.Ensemble(K, experts=[Policy("slow", hangs=True)])
    session = tw.Session(learner)
    session.play(deadline=0.02)
    observed(session, 0)
    session.save(tmp_path / "saved")
    assert session.notes
    assert (session.rounds, session.round, session.pending) == (1, 1, ())
    assert "1 rounds" in repr(session)
    session.explain()
    again = tw.Session.load(tmp_path / "saved", learner)
    assert np.array_equal(again.play(deadline=0.02), session.play(deadline=0.02))


READS = {
    "notes": lambda session: session.notes,
    "overrides": lambda session: session.overrides,
    "oracle calls": lambda session: session.oracle_calls,
    "migrate": lambda session: session.migrate(session.learner),
    "explain": lambda session: session.explain(),
    "state": lambda session: session.state,
    "play": lambda session: session.play(),
    "play with knowledge": lambda session: session.play(time=1.0),
    "observe": lambda session: observed(session, 2),
    "copy": lambda session: pickle.loads(pickle.dumps(session)).play(),
}


@pytest.mark.parametrize("what", READS)
def test_nothing_waits_longer_than_the_last_deadline_that_was_given(what):
    session = tw.Session(tw.Ensemble(K, experts=[Policy("slow", hangs=True), Policy("quick")]))
    for t in range(2):
        session.play(deadline=0.02)
        observed(session, t)
    began = time.monotonic()
    READS[what](session)
    assert time.monotonic() - began < LONG


def test_knowledge_may_follow_where_the_round_was_looked_at_and_somebody_slept(
    tmp_path,
):
    advice = [Policy("slow", hangs=True), Policy("quick"), "incumbent"]
    learner, path = tw.Ensemble(K, experts=advice), tmp_path / "a.db"
    point = {"incumbent": [1.0, 0.0, 0.0]}
    with tw.Session.open(path, learner) as session:
        session.play(deadline=0.02)
        observed(session, 0)
        session.explain()
        x = session.play(advice=point)
        assert [part.present for part in session.explain().experts if part.name == "slow"] == [0]
        assert np.array_equal(session.play(advice=point), x)
        with pytest.raises(InvalidInput, match="when something else was known"):
            session.play(advice={"incumbent": [0.0, 1.0, 0.0]})
        session._journal._backend.close()
    with tw.Session.open(path, learner) as again:
        assert np.array_equal(again.play(), x)


# --- who fails ------------------------------------------------------------------------------------


@pytest.mark.parametrize("every", [1, 100])
def test_an_observation_is_kept_where_an_adviser_of_the_next_round_fails(tmp_path, every):
    learner = tw.Ensemble(K, experts=[Policy("planner", fails_in=3), Policy("quick")])
    path, memory = tmp_path / "a.db", tw.Session(learner)
    with tw.Session.open(path, learner, snapshot_every=every) as session:
        for t in range(3):
            for one in (memory, session):
                one.play()
                observed(one, t)
        for one in (memory, session):
            assert one.rounds == 3
            [note] = one.notes
            assert note.startswith("planner failed in 1 round (RuntimeError: the planner's data")
            assert np.isfinite(one.play()).all()
            assert one.notes == (note,)
            assert one.explain().skipped == ("planner",)
            observed(one, 3)
            one.play()
            assert one.explain().skipped == ()
            observed(one, 4)
        bits = saved(session)
        assert bits == saved(memory)
        session._journal._backend.close()
    with tw.Session.open(path, learner) as again:
        assert saved(again) == bits


@pytest.mark.parametrize("how", [{}, {"round": 3}, {"time": 3.0}, {"deadline": 5.0}])
@pytest.mark.parametrize("waits", [False, True])
def test_who_fails_sleeps_however_the_round_is_asked_for(how, waits):
    policy = Policy("planner", fails_in=3, waits=waits)
    session = tw.Session(tw.Ensemble(K, experts=[policy, Policy("quick")]))
    for t in range(3):
        observed(session, t)
    assert np.isfinite(session.play(**how)).all()
    present = {part.name: part.present for part in session.explain().experts}
    assert not present["planner"]
    assert present["quick"]


@pytest.mark.parametrize("deadline", [None, 5.0])
def test_who_gives_no_points_sleeps_and_wrong_advice_is_refused(deadline):
    wrong = [Proposals(points, Rounds()) for points in ((), (np.ones(2),), (np.ones(3),))]
    for answer in (None, *wrong):
        session = tw.Session(tw.Ensemble(K, experts=[Odd(answer)]))
        observed(session, 0)
        assert is_member(K, session.play(deadline=deadline))
        assert "odd" in session.notes[0]
    session = tw.Session(tw.Ensemble(K, experts=["incumbent"]))
    for point, names in (([1.0, 0.0], "shape"), ([1e300, 0.0, 0.0], "far")):
        with pytest.raises(InvalidInput, match=names):
            session.play(advice={"incumbent": point}, deadline=deadline)
    assert session.notes == ()
    for wrong in (-1.0, float("nan"), float("inf"), "soon"):
        with pytest.raises(TidewolfError, match="deadline"):
            session.play(deadline=wrong)
