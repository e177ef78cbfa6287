"""Sessions whose rounds are observed late, out of order, twice, or never, and played otherwise than
they were decided: in memory, saved and loaded, and in a file, they are the same session.
"""

import numpy as np
import pytest

import tidewolf as tw
from killed import COSTS, LEARNERS, LIMITS, TOLD, saved
from refused import refused
from tidewolf.core import errors, feedback
from tidewolf.storage.database import SQLite

K = tw.sets.Simplex(5)
PLAIN = tw.LyapunovDescent(K)
LATE = {
    "LyapunovDescent": PLAIN,
    "PrimalDual": LEARNERS["PrimalDual"],
    "Ensemble": TOLD["Ensemble"],
    "capped": tw.Ensemble(K, step_scales=(0.3, 1.0), max_move=0.2, per_constraint=True),
}
OTHERS = np.random.default_rng(7).dirichlet(np.ones(5), 300)
"""What is played in place of decisions."""


def met(session, t, **more):
    session.observe(costs=COSTS[t], capacities=LIMITS[t], **more)


# --- what rounds are ------------------------------------------------------------------------------


@pytest.mark.parametrize("learner", [*LATE.values(), LEARNERS["BanditPrimalDual"]], ids=repr)
def test_in_order_numbers_change_nothing(learner, tmp_path):
    plain, numbered = tw.Session(learner), tw.Session(learner)
    for t in range(12):
        assert numbered.play(round=t).tobytes() == plain.play().tobytes()
        met(plain, t)
        met(numbered, t, round=t)
        met(numbered, t, round=t)
        assert saved(plain) == saved(numbered)
        assert numbered.pending == ()
    plain.save(tmp_path / "plain")
    assert (tmp_path / "plain").read_bytes() == saved(plain)


def test_a_round_stands_until_it_is_observed():
    session = tw.Session(PLAIN)
    first = session.play()
    assert (session.round, session.pending) == (0, ())
    later = session.play(round=3)
    assert (session.round, session.pending) == (3, (0, 1, 2, 3))
    assert session.play(round=0).tobytes() == first.tobytes()
    met(session, 1, round=1)
    assert session.play().tobytes() == session.play(round=3).tobytes() == later.tobytes()
    met(session, 3)  # the round that stands
    assert (session.round, session.pending, session.rounds) == (4, (0, 2), 2)
    x = session.play()  # decides it, for others wait
    assert (session.round, session.pending) == (4, (0, 2, 4))
    met(session, 0, round=0)
    assert session.play().tobytes() == x.tobytes() != session.play(round=5).tobytes()
    for r in session.pending:
        met(session, r, round=r)
    assert (session.round, session.pending, session.rounds) == (6, (), 6)


def test_playing_is_not_needed_where_rounds_wait():
    sessions = [tw.Session(TOLD["Ensemble"]) for _ in range(2)]
    for one, plays in zip(sessions, (True, False), strict=True):
        one.play(round=2)
        met(one, 2)
        for t in (3, 4):
            if plays:
                one.play()
            met(one, t)
    assert saved(sessions[0]) == saved(sessions[1])


def test_what_is_known_goes_along_with_the_round_that_is_asked_for():
    learner = LATE["Ensemble"]
    asked, step_by_step = tw.Session(learner), learner.start()
    asked.play(round=2, context=1)
    for _ in range(2):
        step_by_step = learner.defer(step_by_step)
    step_by_step = learner.defer(learner.with_info(step_by_step, tw.RoundInfo(context=1)))
    assert saved(asked) == learner.save(step_by_step)
    asked.play(round=2, context=1)
    with refused(errors.InvalidInput):
        asked.play(context=2)
    with pytest.raises(errors.InvalidInput, match="Round 0 was decided before this was known"):
        asked.play(round=0, context=1)
    assert saved(asked) == learner.save(step_by_step)


# --- the same content, and other content ----------------------------------------------------------


def test_the_same_content_counts_once_and_other_content_is_refused(tmp_path):
    loss, limit = tw.functions.Linear.one(COSTS[1]), tw.functions.Capacity.one(LIMITS[1])
    with tw.Session.open(tmp_path / "session.db", PLAIN) as storage:
        for session in (tw.Session(PLAIN), storage):
            session.play(round=1)
            met(session, 1, round=1, played=OTHERS[1])
            before = saved(session)
            met(session, 1, round=1, played=list(OTHERS[1]))
            session.observe(round=1, loss=loss, constraint=limit, played=OTHERS[1])
            for t, other in ((1, {}), (1, {"played": OTHERS[2]}), (2, {"played": OTHERS[1]})):
                with pytest.raises(errors.OtherContent, match="Round 1"):
                    met(session, t, round=1, **other)
            assert saved(session) == before


def test_content_that_cannot_be_compared_is_refused():
    session, mine = tw.Session(PLAIN), tw.functions.Custom.one(lambda x: x @ x, lambda x: 2 * x, 5)
    session.observe(round=0, loss=mine)
    with refused(errors.InvalidInput):
        session.observe(round=0, loss=mine)
    met(session, 1)
    met(session, 1, round=1)
    assert session.rounds == 2


# --- what was really played -----------------------------------------------------------------------


def test_functions_are_looked_at_where_it_was_decided_and_gradients_where_it_was_played():
    given, told, plain = (tw.Session(PLAIN) for _ in range(3))
    loss, limit = tw.functions.Linear.one(COSTS[0]), tw.functions.Capacity.one(LIMITS[0])
    x, own = OTHERS[0], given.play()
    met(given, 0, played=x)
    met(plain, 0)
    assert given.play().tobytes() == plain.play().tobytes()
    overrides = given.state.overrides
    assert (overrides.loss, overrides.own_loss) == (float(loss.values(x)[0]), loss.values(own)[0])
    assert overrides.violation == max(0.0, float(limit.values(x)[0]))
    assert overrides.price == 0.0
    told.observe(feedback.first_order(loss, limit, x, limit.values(x)), played=x)
    assert (told.state.overrides.rounds, told.state.overrides.valued) == (1, 0)
    assert told.state.overrides.price != 0.0


@pytest.mark.parametrize("name", [name for name in LATE if name != "capped"])
def test_a_shadow_decides_as_though_it_were_followed(name):
    shadow, followed = tw.Session(LATE[name]), tw.Session(LATE[name])
    for t in range(6):
        shadow.play()
        met(shadow, t, played=OTHERS[t % len(OTHERS)])
        met(followed, t)
    assert shadow.play().tobytes() == followed.play().tobytes()
    assert shadow.overrides.rounds > 0


@pytest.mark.parametrize("name", LATE)
def test_to_play_what_was_decided_is_no_override(name):
    one, other = tw.Session(LATE[name]), tw.Session(LATE[name])
    for t in range(6):
        met(one, t, played=one.play().copy())
        met(other, t)
    assert saved(one) == saved(other)
    assert one.overrides.rounds == 0
    assert str(one.overrides) == "What was decided was played, in all rounds."


# --- refusals -------------------------------------------------------------------------------------

MEET = {"costs": COSTS[0], "capacities": LIMITS[0]}
CUSTOM = tw.functions.Custom.one(lambda x: 1.0, lambda x: 1 / 0, 5)
TWO = tw.functions.Linear(COSTS[:2])
GRADIENTS = feedback.FirstOrder(COSTS[0], 0.0, COSTS[0], 1.0, 1.0, 2)
REFUSED = [
    (lambda s: s.play(round=-1), errors.InvalidInput, "round"),
    (lambda s: s.play(round=1.5), errors.InvalidInput, "round"),
    (lambda s: s.play(round="next"), errors.WrongType, "round"),
    (lambda s: s.play(round=10**7), errors.InvalidInput, "Round 10000000"),
    (lambda s: s.play(round=1), errors.InvalidInput, "Round 1"),
    (lambda s: s.play(round=2, context=1), errors.OtherContent, "Round 2"),
    (lambda s: s.play(round=7, advice={"a": [1.0]}), errors.WrongShape, "advice"),
    (lambda s: s.observe(round=4, **MEET), errors.InvalidInput, "Round 4"),
    (lambda s: s.observe(round=1, **MEET), errors.OtherContent, "Round 1"),
    (lambda s: s.observe(played=[1.0], **MEET), errors.WrongShape, "played"),
    (lambda s: s.observe(played=[np.nan] * 5, **MEET), errors.NotFinite, "played"),
    (lambda s: s.observe(played=np.full(5, 0.3), **MEET), errors.NotAMember, "played"),
    (lambda s: s.observe(round=0, loss=TWO), errors.InvalidInput, "2 rounds"),
    (lambda s: s.observe(GRADIENTS, round=0), errors.InvalidInput, "2 rounds"),
    (lambda s: s.observe(round=0), errors.InvalidInput, "nothing"),
    (
        lambda s: s.observe(round=0, loss_gradient=[1.0], constraint_value=0.0),
        errors.WrongShape,
        "loss_",
    ),
    (lambda s: s.observe(round=0, loss=CUSTOM), ZeroDivisionError, "zero"),
    (lambda s: s.rollback(9), errors.InvalidInput, "Round 9"),
    (lambda s: s.rollback(-1), errors.InvalidInput, "round"),
]


def test_refusals_change_nothing(tmp_path):
    with tw.Session.open(tmp_path / "session.db", PLAIN) as storage:
        for session in (tw.Session(PLAIN), storage):
            session.play(round=3)
            met(session, 1, round=1)
            before = saved(session)
            for do, error, names in REFUSED:
                with pytest.raises(error, match=names):
                    do(session)
                assert saved(session) == before
                assert session.pending == (0, 2, 3)
            met(session, 0, round=0)
    for expire_after in (0, -1, 1.5, "soon", True):
        with pytest.raises(errors.InvalidInput, match="expire_after"):
            tw.Session(PLAIN, expire_after=expire_after)


@pytest.mark.parametrize("name", ["DriftPlusPenalty", "BanditPrimalDual"])
def test_learners_that_take_feedback_in_order_say_so(name):
    session = tw.Session(LEARNERS[name])
    met(session, 0)
    before, x = saved(session), 0.5 * session.play()
    x = x if name == "BanditPrimalDual" else OTHERS[0]
    for do in (lambda: session.play(round=4), lambda: met(session, 1, round=1, played=x)):
        with pytest.raises(errors.NotSupported, match=f"{name} takes feedback in order"):
            do()
        assert saved(session) == before
    met(session, 1, round=1)
    assert session.rounds == 2


# --- back -----------------------------------------------------------------------------------------


def test_rounds_that_expired_then_are_expired_again(tmp_path):
    with tw.Session.open(tmp_path / "session.db", PLAIN, expire_after=1) as storage:
        for session in (tw.Session(PLAIN, expire_after=1), storage):
            session.play(round=4)
            met(session, 4)
            session.rollback(2)
            assert (session.pending, session.state.lost) == ((1,), 1)
            with pytest.raises(errors.InvalidInput, match="Round 0 expired"):
                met(session, 0, round=0)
            session.rollback(1)
            assert (session.pending, session.state.lost) == ((0,), 0)
            met(session, 0, round=0)


def test_what_was_thrown_away_cannot_be_gone_back_to(tmp_path):
    how = {"snapshot_every": 4, "keep_history": False}
    with tw.Session.open(tmp_path / "session.db", PLAIN, **how) as session:
        for t in range(7):
            met(session, t)
        before = saved(session)
        with refused(errors.InvalidInput):
            session.rollback(3)
        assert saved(session) == before
        session.rollback(4)
        assert session.rounds == 4


def test_rounds_that_were_observed_together_are_one_moment(tmp_path):
    with tw.Session.open(tmp_path / "session.db", PLAIN) as session:
        met(session, 0)
        session.observe(feedback.FirstOrder(COSTS[0], 0.0, 0.0 * COSTS[0], 1.0, 0.0, 1))
        session.rollback(1)
        learner = tw.LyapunovDescent(K, block=4)
    with tw.Session.open(tmp_path / "blocks.db", learner) as session:
        session.observe(loss=tw.functions.Linear(COSTS[:3]))
        with refused(errors.InvalidInput):
            session.rollback(2)
        session.rollback(0)
        assert saved(session) == learner.save(learner.start())


@pytest.mark.parametrize("after", [True, False])
def test_an_interrupt_goes_back_or_not_at_all(after, tmp_path, monkeypatch):
    commit = SQLite.__exit__

    def interrupted(self, *error):
        if after:
            commit(self, *error)
        raise KeyboardInterrupt

    session = tw.Session.open(tmp_path / "session.db", PLAIN)
    for t in range(5):
        met(session, t)
    before = saved(session)
    with monkeypatch.context() as patch:
        patch.setattr(SQLite, "__exit__", interrupted)
        with pytest.raises(KeyboardInterrupt):
            session.rollback(2)
    assert session.rounds == (2 if after else 5)
    assert (saved(session) == before) is not after
    session.close()
    with tw.Session.open(tmp_path / "session.db", PLAIN) as again:
        assert saved(again) == saved(session)


# --- in the file ----------------------------------------------------------------------------------


def test_a_reader_sees_rounds_that_wait_and_decides_none(tmp_path):
    with tw.Session.open(tmp_path / "session.db", PLAIN) as session:
        x = session.play(round=2)
        with tw.Session.open(tmp_path / "session.db", PLAIN, read_only=True) as reader:
            assert reader.pending == (0, 1, 2)
            assert reader.play().tobytes() == x.tobytes()
            for do in (lambda: reader.play(round=3), lambda: reader.rollback(0)):
                with pytest.raises(errors.CheckpointError, match="read_only=True"):
                    do()


# --- another learner ------------------------------------------------------------------------------
