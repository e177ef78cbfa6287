"""Durable sessions: killed or closed they go on bit for bit, what was acknowledged is there, and
whatever is wrong gets a sentence.
"""

import os
import resource
import shutil
import sqlite3
import struct
import tempfile
from functools import cache
from pathlib import Path

import array_api_strict as strict
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import killed
import tidewolf as tw
from interpreter import python
from killed import COSTS, FOLLOWER, LEARNERS, LIMITS, as_if_killed, observe, saved, tell
from test_round_info import every_known
from tidewolf.core import errors, feedback
from tidewolf.functions import Affine, Capacity, Chain, Custom, Linear, Quadratic
from tidewolf.storage.journal import decode_info, encode, encode_info

ROUNDS = 30


@cache
def expected(name="LyapunovDescent"):
    """What a learner saves before the first round and after each."""
    return killed.uninterrupted(LEARNERS[name], observe, ROUNDS)


EVERY = LEARNERS | killed.TOLD | killed.LATE
every_learner = pytest.mark.parametrize("name", LEARNERS)
LEARNER, DRIFT = LEARNERS["LyapunovDescent"], LEARNERS["DriftPlusPenalty"]


def kept(path, rounds, name="LyapunovDescent", **how):
    """A closed session of these rounds."""
    with tw.Session.open(path, LEARNERS[name], **how) as session:
        for t in range(session.rounds, rounds):
            observe(session, t)
    return path


def changed(path, statement):
    """As a hand with SQL would."""
    db = sqlite3.connect(path)
    with db:
        assert db.execute(statement).rowcount != 0
    db.close()


# --- never having stopped -------------------------------------------------------------------------


@pytest.mark.soak_examples(12)
@every_learner
@settings(max_examples=4)
@given(
    st.lists(st.tuples(st.integers(0, ROUNDS), st.booleans()), max_size=5),
    st.integers(1, ROUNDS + 1),
    st.booleans(),
)
def test_closed_or_killed_it_goes_on_bit_for_bit(name, stops, snapshot_every, keep_history):
    learner, how = LEARNERS[name], {"snapshot_every": snapshot_every, "keep_history": keep_history}
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "session.db"
        session = tw.Session.open(path, learner, **how)
        for t in range(ROUNDS + 1):
            for at, killed in sorted(stops):
                if at == t:
                    copy = as_if_killed(path) if killed else path
                    session.close()
                    path = copy
                    session = tw.Session.open(path, type(learner)(**learner.fields()), **how)
            assert session.rounds == len(session) == t
            assert saved(session) == expected(name)[t]
            assert session.play().tobytes() == session.play().tobytes()
            if t < ROUNDS:
                observe(session, t)
        session.close()


@pytest.mark.parametrize(
    ("name", "seed"),
    [
        *((name, 0) for name in ("Follower", "late")),
        *(pytest.param(name, 1, marks=pytest.mark.soak) for name in EVERY),
    ],
)
def test_killed_at_any_instruction_it_loses_nothing_acknowledged(name, seed, tmp_path):
    database, kills = tmp_path / "session.db", 200 if seed else 10
    assert int(python(killed.__file__, database, name, kills, seed)) >= kills // 4
    learner = EVERY[name]
    with tw.Session.open(database, learner, read_only=True) as session:
        assert sum(seen.rounds for seen in session.history()) == session.rounds
        if name in killed.LATE:
            assert saved(session) == killed.uninterrupted(learner, killed.late, len(COSTS))[-1]
            assert session.state.lost > 5 < session.overrides.rounds
        else:
            assert session.rounds == len(COSTS)


def test_what_is_told_in_any_memory_layout_comes_again_in_the_same_bits(tmp_path):
    learner = tw.DriftPlusPenalty(tw.sets.Simplex(23), horizon=50, block=4)
    rng = np.random.default_rng(0)
    session = tw.Session.open(tmp_path / "session.db", learner, snapshot_every=100)
    for _ in range(11):
        wide, A = rng.standard_normal((46, 3)), rng.standard_normal((23, 23))
        k = min(learner.rounds_left(session.state), 3)
        loss = Quadratic(np.asfortranarray(A @ A.T), wide[::2].T[:k], np.zeros(k))
        session.observe(loss=loss, constraint=Affine(wide[1::2, ::-1].T[:k], np.full(k, 0.1)))
    again = tw.Session.open(as_if_killed(tmp_path / "session.db"), learner)
    assert saved(again) == saved(session)
    session.close()
    again.close()


def test_a_set_of_another_library_goes_on_in_it(tmp_path):
    learner = tw.LyapunovDescent(tw.sets.Simplex(5).to(strict.zeros(1)), horizon=30)
    session, ours = tw.Session.open(tmp_path / "session.db", learner), tw.Session(learner)
    for t in range(9):
        for each in (session, ours):
            gradients = {"loss_gradient": COSTS[t], "constraint_gradient": LIMITS[t].tolist()}
            each.observe(constraint_value=0.5, **gradients)
    again = tw.Session.open(as_if_killed(tmp_path / "session.db"), learner)
    assert type(again.play()) is type(strict.zeros(1))
    assert saved(again) == saved(session) == saved(ours)
    session.close()
    again.close()


# --- what was observed ----------------------------------------------------------------------------


def test_history_is_what_the_learner_was_told(tmp_path, monkeypatch):
    monkeypatch.setattr("tidewolf.storage.database._AT_ONCE", 20)
    with tw.Session.open(tmp_path / "first order.db", LEARNER, snapshot_every=3) as session:
        gradients = {"loss_gradient": COSTS[0], "constraint_gradient": LIMITS[0]}
        session.observe(constraint_value=0.25, **gradients)
        own = Custom.one(lambda x: x @ x, lambda x: 2 * x, 5)
        session.observe(loss=own, constraint=Capacity.one(LIMITS[1]))
        told, reduced = session.history()
        assert told.violation == 0.25
        for name, expected in gradients.items():
            np.testing.assert_array_equal(getattr(told, name), expected)
        assert (type(reduced), reduced.rounds) == (feedback.FirstOrder, 1)
    with tw.Session.open(tmp_path / "bandit.db", LEARNERS["BanditPrimalDual"]) as session:
        session.observe(loss_value=2.0, constraint_value=-1.0)
        (told,) = session.history()
        assert (told.loss_values.tolist(), told.constraint_values.tolist()) == ([2.0], [-1.0])
    whole = kept(tmp_path / "full.db", 60, "DriftPlusPenalty")
    with tw.Session.open(whole, DRIFT) as session:
        for t, told in enumerate(session.history()):
            assert told == feedback.FullInformation(Linear.one(COSTS[t]), Capacity.one(LIMITS[t]))
        assert t == 59
    with pytest.raises(errors.NotSupported, match="history"):
        tw.Session(LEARNER).history()


def test_without_history_the_file_stays_small(tmp_path):
    path, sizes = tmp_path / "session.db", []
    for rounds in (40, 80, 120, 160):
        kept(path, rounds, snapshot_every=20, keep_history=False)
        sizes.append(path.stat().st_size)
    assert max(sizes) <= sizes[0] + 8192
    assert kept(tmp_path / "whole.db", 160).stat().st_size > 2 * max(sizes)
    with tw.Session.open(path, LEARNER) as session:
        assert list(session.history()) == []
        observe(session, 160)
    with tw.Session.open(path, LEARNER) as session:
        assert len(list(session.history())) == 1
        assert saved(session) == killed.uninterrupted(LEARNER, observe, 161)[-1]


def test_every_commit_is_flushed_to_a_log_that_readers_can_look_beside(tmp_path):
    with tw.Session.open(tmp_path / "session.db", LEARNER) as session:
        db = session._journal._backend._db
        found = {"journal_mode": "wal", "synchronous": 2, "fullfsync": 1}
        assert {name: db.rows(f"PRAGMA {name}")[0][0] for name in found} == found


# --- what goes wrong ------------------------------------------------------------------------------


def test_what_was_acknowledged_of_a_file_that_was_removed_is_forgotten(tmp_path, monkeypatch):
    path, replace = kept(tmp_path / "session.db", 3), os.replace

    def killed(*args):
        replace(*args)
        raise KeyboardInterrupt

    path.unlink()
    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", killed)
        with pytest.raises(KeyboardInterrupt):
            tw.Session.open(path, LEARNER)
    kept(path, 2)


TAMPERED = {
    "an observation": (
        "UPDATE events SET data = (SELECT data FROM events WHERE number = 4) WHERE number = 3"
    ),
    "the first is gone": "DELETE FROM events WHERE number = 1",
    "all are gone": "DELETE FROM events",
    "one more": (
        "INSERT INTO events SELECT 1, 19, kind, 18, epoch, data FROM events WHERE number = 18"
    ),
    "in another order": (
        "UPDATE events SET data = (SELECT o.data FROM events o WHERE o.number = 13 - events.number)"
        " WHERE number <= 12"
    ),
    "the state": "UPDATE snapshots SET state = zeroblob(100)",
    "no state": "DELETE FROM snapshots",
    "the seal": "UPDATE snapshots SET seal = zeroblob(32)",
    "a later snapshot": "UPDATE head SET snapshot = 19",
    "the link": "UPDATE head SET link = zeroblob(32)",
    "the first": "UPDATE head SET first = 1",
    "no head": "DELETE FROM head",
    "no table": "DROP TABLE events",
    "another round": "UPDATE events SET round = 99 WHERE number = 12",
    "another epoch": "UPDATE events SET epoch = 1 WHERE number = 12",
    "another kind": "UPDATE events SET kind = 'expire' WHERE number = 12",
    "a snapshot of another moment": "UPDATE snapshots SET number = 9",
    "a decision": "UPDATE events SET data = zeroblob(100) WHERE kind = 'decide' AND round = 14",
    "text": "UPDATE events SET data = 'text' WHERE kind = 'decide' AND round = 14",
    "what was known": "UPDATE events SET data = zeroblob(60) WHERE kind = 'info'",
    "another pending round": "UPDATE events SET round = 99 WHERE kind = 'decide' AND round = 14",
    "the decision of another round": (
        "UPDATE events SET data = (SELECT data FROM events WHERE kind = 'decide' AND round = 13) "
        "WHERE kind = 'info'"
    ),
    "what was known of another round": (
        "UPDATE events SET data = (SELECT data FROM events WHERE kind = 'info' AND round = 15) "
        "WHERE kind = 'info' AND round = 16"
    ),
    "the last decision is gone": "DELETE FROM events WHERE kind = 'decide' AND round = 16",
    "all decisions are gone": "DELETE FROM events WHERE kind IN ('decide', 'info')",
}


def test_leftovers_of_a_file_that_was_removed_do_no_harm(tmp_path):
    session = tw.Session.open(tmp_path / "session.db", LEARNER)
    observe(session, 7)
    path = as_if_killed(tmp_path / "session.db")
    session.close()
    path.rename(path.with_name("session.db-new"))
    kept(path, 3)
    with tw.Session.open(path, LEARNER) as session:
        assert saved(session) == expected()[3]


# --- what is known before a round -----------------------------------------------------------------


LOSS, LIMIT = Linear.one(COSTS[0]), Capacity.one(LIMITS[0])


FAR = tw.RoundInfo(advice={"a": killed.ADVICE[0], "b": np.eye(3)[:2]})
PART = tw.RoundInfo("2026-03-01T12:00:00.123456", forecast=(Chain((LOSS, LOSS))[:1], LIMIT))


@pytest.mark.parametrize("known", [*every_known(), tw.RoundInfo(advice={}), FAR, PART])
def test_what_is_known_comes_back(known):
    again = decode_info(encode_info(known), np.zeros(1))
    assert again == known
    assert again.identity == known.identity
    assert encode_info(again) == encode_info(known)


# --- what is refused ------------------------------------------------------------------------------


def test_functions_of_ones_own_are_refused_where_they_would_have_to_be_kept(tmp_path):
    learner, mine = LEARNERS["DriftPlusPenalty"], Custom.one(lambda x: x @ x, lambda x: 2 * x, 5)
    with tw.Session.open(tmp_path / "session.db", learner) as session:
        for loss in (mine, Chain((mine,))):
            with pytest.raises(errors.NotSupported):
                session.observe(loss=loss, constraint=LIMIT)
        observe(session, 0)
        assert saved(session) == expected("DriftPlusPenalty")[1]
    with tw.Session.open(tmp_path / "known.db", FOLLOWER) as session:
        with pytest.raises(errors.NotSupported):
            session.play(forecast=(mine, None))
        tell(session, 0)
        assert saved(session) == killed.uninterrupted(FOLLOWER, tell, 1)[-1]


def test_a_second_writer_is_refused_and_readers_look(tmp_path):
    path = tmp_path / "session.db"
    session = tw.Session.open(path, LEARNER)
    observe(session, 0)
    for same in (path, str(path), tmp_path / ".." / tmp_path.name / "session.db"):
        with pytest.raises(errors.InUse):
            tw.Session.open(same, LEARNER)
    with tw.Session.open(path, LEARNER, read_only=True) as reader:
        assert saved(reader) == saved(session)
        observe(session, 1)
        assert reader.rounds == len(list(reader.history())) == 1
        for refused in (lambda: observe(reader, 1), lambda: reader.play(context=1)):
            with pytest.raises(errors.CheckpointError, match="read_only=True"):
                refused()
    session.close()
    with tw.Session.open(path, LEARNER) as session:
        assert saved(session) == expected()[2]


def test_closed_or_forked_it_observes_no_more(tmp_path, monkeypatch):
    session = tw.Session.open(tmp_path / "session.db", LEARNER)
    observe(session, 0)
    with monkeypatch.context() as forked:
        forked.setattr(os, "getpid", lambda: -1)
        with pytest.raises(errors.CheckpointError, match="fork"):
            observe(session, 1)
    session.close()
    session.close()
    assert saved(session) == expected()[1]
    for refused in (lambda: observe(session, 1), lambda: list(session.history())):
        with pytest.raises(errors.CheckpointError, match="closed"):
            refused()
    assert sorted(os.listdir(tmp_path)) == ["session.db", "session.db-lock"]


def test_a_full_disk_refuses_the_observation_and_nothing_else(tmp_path):
    path, limits = tmp_path / "session.db", resource.getrlimit(resource.RLIMIT_FSIZE)
    session = tw.Session.open(path, LEARNER, snapshot_every=5)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (6_000, limits[1]))
        with pytest.raises(errors.CheckpointError, match="cannot be used"):
            tw.Session.open(tmp_path / "other.db", LEARNER)
        assert not (tmp_path / "other.db").exists()
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, limits[1]))
        with pytest.raises(errors.CheckpointError, match="Nothing was kept"):
            [observe(session, t) for t in range(180)]
        assert session.rounds > 0
        t = session.rounds
        with pytest.raises(errors.CheckpointError, match="Nothing was kept"):
            observe(session, t)
        copy = as_if_killed(path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    whole = killed.uninterrupted(LEARNER, observe, t + 3)
    with tw.Session.open(copy, LEARNER) as other:
        assert saved(other) == saved(session) == whole[t]
    for more in range(3):
        observe(session, t + more)
    session.close()
    with tw.Session.open(path, LEARNER) as session:
        assert saved(session) == whole[-1]
    kept(tmp_path / "other.db", 3)


def refused(path, error, learner=LEARNER):
    """Refused, writing and reading, with the file as it was."""
    before = path.read_bytes()
    for read_only in (False, True):
        with pytest.raises(error) as caught:
            tw.Session.open(path, learner, read_only=read_only)
        assert path.name in str(caught.value)
        assert caught.type is error
    assert path.read_bytes() == before


def test_a_file_cut_short_or_with_a_flipped_bit_is_refused_or_as_it_was(tmp_path):
    path, rng = kept(tmp_path / "session.db", 30, snapshot_every=7), np.random.default_rng(1)
    with tw.Session.open(path, LEARNER) as session:
        observed = [encode(seen) for seen in session.history()]
    whole, found = path.read_bytes(), 0
    cut = [whole[:size] for size in (0, 1, 99, 100, 4096, len(whole) // 2, len(whole) - 4096)]
    for place in (*(-1 for _ in cut), *rng.integers(0, len(whole), 150)):
        if place < 0:
            path.write_bytes(cut.pop())
        else:
            flipped = bytearray(whole)
            flipped[place] ^= 1 << rng.integers(8)
            path.write_bytes(flipped)
        try:
            with tw.Session.open(path, LEARNER, read_only=True) as session:
                assert saved(session) == expected()[30]
                assert [encode(seen) for seen in session.history()] == observed
                assert place >= 0
        except errors.CheckpointError:
            found += 1
    assert found > 60
    path.write_bytes(whole)
    broken = bytearray(whole)
    broken[32:40] = struct.pack(">II", 2, 1)  # page 2, which is in use, as the first free page
    path.write_bytes(broken)
    refused(path, errors.BrokenFile)


def test_a_log_that_was_lost_or_cut_short_is_noticed(tmp_path):
    session = tw.Session.open(tmp_path / "session.db", LEARNER)
    for t in range(6):
        observe(session, t)
    path = as_if_killed(tmp_path / "session.db")
    log, lock = Path(f"{path}-wal"), Path(f"{path}-lock")
    shutil.copy(tmp_path / "session.db-lock", lock)
    session.close()
    whole, log_whole = path.read_bytes(), log.read_bytes()
    for cut in (0, 1000, len(log_whole) - 1):
        path.write_bytes(whole)
        log.write_bytes(log_whole[:cut])
        with pytest.raises(errors.BrokenFile, match="6 were acknowledged"):
            tw.Session.open(path, LEARNER)
    path.write_bytes(whole)
    log.write_bytes(log_whole)
    with tw.Session.open(path, LEARNER) as session:
        assert saved(session) == expected()[6]
    lock.write_text("not a lock" * 1000)
    with pytest.raises(errors.CheckpointError, match="cannot be locked"):
        tw.Session.open(path, LEARNER)
    lock.unlink()
    path.unlink()
    kept(path, 3)


@pytest.mark.parametrize("statement", TAMPERED.values(), ids=TAMPERED)
def test_a_tampered_file_is_refused(statement, tmp_path):
    path = kept(tmp_path / "session.db", 10, snapshot_every=10)
    session = tw.Session.open(path, LEARNER)
    for t in (10, 11):
        observe(session, t)
    session.play(round=13)
    for t in (14, 15):
        session.play(round=t, time=float(t))
    path = as_if_killed(path)
    session.close()
    changed(path, statement)
    refused(path, errors.BrokenFile)


def test_a_file_changed_while_it_is_open_takes_no_more(tmp_path):
    path = kept(tmp_path / "session.db", 3)
    session = tw.Session.open(path, LEARNER)
    changed(path, "UPDATE head SET last = 7")
    with pytest.raises(errors.CheckpointError, match="was changed"):
        observe(session, 3)
    assert saved(session) == expected()[3]
    session.close()


def test_other_settings_kinds_and_formats_are_refused(tmp_path, monkeypatch):
    path = kept(tmp_path / "session.db", 3)
    for other in (tw.LyapunovDescent(tw.sets.Simplex(5), horizon=201), DRIFT):
        refused(path, errors.OtherSettings, other)
    changed(path, "PRAGMA user_version = 5")
    refused(path, errors.NewerFormat)
    session = tw.Session.open(tmp_path / "functions.db", DRIFT)
    observe(session, 0)
    path = as_if_killed(tmp_path / "functions.db")
    session.close()
    changed(path, "PRAGMA wal_checkpoint")
    monkeypatch.setattr("tidewolf.functions.combined._kinds", lambda: {"Linear": Linear})
    refused(path, errors.NewerFormat, DRIFT)


def test_files_of_another_kind_are_refused(tmp_path):
    path = tmp_path / "session.db"
    changed(path, "CREATE TABLE observations (number INTEGER PRIMARY KEY, data BLOB)")
    refused(path, errors.BrokenFile)
    tw.Session(LEARNER).save(path)
    refused(path, errors.BrokenFile)
    assert os.listdir(tmp_path) == ["session.db"]
    path.write_text("rounds,costs\n" * 500)
    refused(path, errors.BrokenFile)


def test_places_and_settings_that_cannot_be_make_no_file(tmp_path):
    for path in (tmp_path, tmp_path / "nowhere" / "session.db"):
        with pytest.raises(errors.CheckpointError, match="cannot be used"):
            tw.Session.open(path, LEARNER)
    with pytest.raises(errors.CheckpointError, match="cannot be used"):
        tw.Session.open(tmp_path / "session.db", LEARNER, read_only=True)
    with pytest.raises(errors.WrongType, match="learner"):
        tw.Session.open(tmp_path / "session.db", "LyapunovDescent")
    with pytest.raises(errors.InvalidInput, match="snapshot_every"):
        tw.Session.open(tmp_path / "session.db", LEARNER, snapshot_every=0)
    assert os.listdir(tmp_path) == []
