"""Many sessions in one database: groups of commits, bundles, holders, and what a kill leaves."""

import sqlite3
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tidewolf as tw
from killed import as_if_killed
from tidewolf.core import errors
from tidewolf.storage import SessionStore, session_store

K = tw.sets.Simplex(4)
LEARNERS = {"LyapunovDescent": tw.LyapunovDescent(K), "Ensemble": tw.Ensemble(K, experts=["last"])}
COSTS, LIMITS = np.random.default_rng(5).random((60, 4)), np.full(4, 0.4)


@pytest.fixture
def store(tmp_path):
    found = SessionStore.open(tmp_path / "sessions")
    yield found
    found.close()


def made(store, name="one", learner="LyapunovDescent"):
    store.create(name, "{}").result()
    return tw.Session.open(store, LEARNERS[learner], name=name)


def observe(session, t):
    session.observe(costs=COSTS[t], capacities=LIMITS, round=t)


def test_names(store):
    assert store.info("one") is None
    with pytest.raises(errors.UnknownSession, match="no session called 'one'"):
        tw.Session.open(store, LEARNERS["LyapunovDescent"], name="one")
    for name in ("b", "a-2", "a-1"):
        store.create(name, f'{{"of": "{name}"}}').result()
    with pytest.raises(errors.AlreadyThere, match="called 'b' already"):
        store.create("b", "{}").result()
    assert [info.name for info in store.infos()] == ["a-1", "a-2", "b"]
    assert [info.name for info in store.infos("a-")] == ["a-1", "a-2"]
    assert [info.name for info in store.infos(after="a-1", most=1)] == ["a-2"]
    assert store.info("b").description == '{"of": "b"}'
    session = tw.Session.open(store, LEARNERS["LyapunovDescent"], name="b")
    store.delete("b").result()
    assert store.count() == 2
    with pytest.raises(errors.CheckpointError, match="let go of"):
        observe(session, 0)
    store.create("b", "{}").result()
    assert tw.Session.open(store, LEARNERS["LyapunovDescent"], name="b").rounds == 0


def test_nothing_of_the_audit_is_ever_changed(store):
    store.create("one", "{}").result()
    store.audit("ada", "one", "made")
    store.flushed("one").result()
    db = sqlite3.connect(store.where)
    for sql in ("UPDATE audit SET who = 'eve'", "DELETE FROM audit"):
        with pytest.raises(sqlite3.IntegrityError, match="never changed"):
            db.execute(sql)
    db.close()


def test_a_bundle_that_fails_is_not_kept_and_the_session_is_opened_again(store):
    session = made(store)
    observe(session, 0)

    def midway():
        with store.transaction("one"):
            observe(session, 1)
            raise KeyError("midway")

    with pytest.raises(KeyError):
        midway()
    with pytest.raises(errors.CheckpointError, match="open it again"):
        observe(session, 2)
    assert tw.Session.open(store, LEARNERS["LyapunovDescent"], name="one").rounds == 1
    with store.transaction("one") as transaction:
        pass
    assert transaction.future.done()


def test_one_process_serves_a_folder_and_one_session_holds_a_name(tmp_path):
    store = SessionStore.open(tmp_path / "sessions", commit_within=0.0)
    with pytest.raises(errors.InUse, match="Another process serves"):
        SessionStore.open(Path(store.where).parent)
    first = made(store)
    observe(first, 0)
    second = tw.Session.open(store, LEARNERS["LyapunovDescent"], name="one")
    with pytest.raises(errors.CheckpointError, match="let go of"):
        observe(first, 1)
    observe(second, 1)
    careful = tw.LyapunovDescent(K, caution=30.0)
    second.migrate(careful)
    observe(second, 2)
    store.flushed("one").result()
    killed = SessionStore.open(as_if_killed(Path(store.where)).parent)  # what is done is on disk
    again = tw.Session.open(killed, careful, name="one")
    assert again.rounds == 3
    assert again.play().tobytes() == second.play().tobytes()
    for one in (killed, store, store):
        one.close()
    with pytest.raises(errors.CheckpointError, match="closed"):
        observe(second, 3)


def test_files_that_are_none_of_ours(tmp_path):
    (tmp_path / "text").mkdir()
    (tmp_path / "text" / "tidewolf.db").write_text("no database at all, but long enough to be one")
    with pytest.raises(errors.BrokenFile, match="truncated or was changed"):
        SessionStore.open(tmp_path / "text")
    (tmp_path / "other").mkdir()
    db = sqlite3.connect(tmp_path / "other" / "tidewolf.db")
    db.execute("CREATE TABLE notes (text)")
    db.close()
    with pytest.raises(errors.BrokenFile, match="not one of a service"):
        SessionStore.open(tmp_path / "other")
    SessionStore.open(tmp_path / "newer").close()
    db = sqlite3.connect(tmp_path / "newer" / "tidewolf.db")
    with db:
        db.execute("UPDATE store SET value = '99'")
    db.close()
    with pytest.raises(errors.NewerFormat, match="format 99"):
        SessionStore.open(tmp_path / "newer")
    (tmp_path / "file").write_text("")
    with pytest.raises(errors.CheckpointError, match="folder where files can be made"):
        SessionStore.open(tmp_path / "file")


# --- groups ---------------------------------------------------------------------------------------


class Slow:
    """A database whose commits take their time; it counts them."""

    errors: tuple[type[Exception], ...] = (sqlite3.Error,)

    def __init__(self, seconds):
        self._seconds, self.kept, self._open = seconds, [], None

    def transaction(self):
        return self

    def __enter__(self):
        self._open = []

    def __exit__(self, kind, *_):
        if kind is None:
            time.sleep(self._seconds)
            self.kept.append(self._open)


def callers(commits, count, each):
    """So many callers, each with so many items, one after another; the seconds that took."""

    def call(i):
        for k in range(each):
            commits.submit(lambda db, k=k: db._open.append((i, k))).result()

    began = time.perf_counter()
    with ThreadPoolExecutor(count) as pool:
        list(pool.map(call, range(count)))
    return time.perf_counter() - began


def test_sixteen_callers_share_syncs_and_are_not_waited_for_once_gone():
    db = Slow(0.005)
    commits = session_store.Commits(db, 0.01, "here")
    callers(commits, 16, 20)
    commits.close()
    patient = session_store.Commits(Slow(0.001), 10.0, "here")
    callers(patient, 16, 4)
    assert callers(patient, 1, 20) < 5.0  # the sixteen are not coming
    patient.close()
    assert sorted(chain(*db.kept)) == [(i, k) for i in range(16) for k in range(20)]
    assert len(db.kept) <= 320 / 8


@pytest.mark.parametrize(("within", "count"), [(5.0, 1), (0.0, 4)])
def test_a_single_caller_waits_for_no_other_and_without_groups_none_does(within, count):
    db = Slow(0.0)
    commits = session_store.Commits(db, within, "here")
    assert callers(commits, count, 20 // count) < 2.5
    commits.close()
    assert list(map(len, db.kept)) == [1] * 20


@settings(max_examples=40)
@given(st.lists(st.booleans(), min_size=1, max_size=12))
def test_one_that_fails_takes_nobody_along(fails):
    db, gate = Slow(0.0), threading.Event()
    commits = session_store.Commits(db, 0.05, "here")
    commits.submit(lambda db: gate.wait() and None)

    def write(i):
        def one(db):
            db._open.append(i)
            if fails[i]:
                raise ValueError(i)

        return one

    futures = [commits.submit(write(i)) for i in range(len(fails))]
    gate.set()
    commits.close()
    assert list(chain(*db.kept)) == [i for i, fail in enumerate(fails) if not fail]
    for i, future in enumerate(futures):
        assert (future.exception() is not None) is fails[i]
    assert commits.trouble is None
