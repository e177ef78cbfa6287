"""Backup and restore while a server runs: a copy is of one moment, and what is restored goes on to
the bit.
"""

import os
import threading
import time
from contextlib import closing

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tidewolf as tw
from refused import refused_command
from servers import PATIENCE
from serving import SIMPLEX
from tidewolf.cli import main
from tidewolf.core.errors import AlreadyThere, BrokenFile, CheckpointError, TidewolfError
from tidewolf.storage import copies, session_store


def seen(name, t):
    """What round t of a session shows, the same on every machine."""
    phase = np.arange(3) + t * (1 + ord(name[0]) % 5)
    return {"costs": np.sin(phase), "capacities": 0.4 + 0.2 * np.cos(phase)}


def inside(name, rounds):
    """The session that observed so many rounds."""
    session = tw.Session(tw.LyapunovDescent(tw.sets.Simplex(3)))
    for t in range(rounds):
        session.observe(**seen(name, t))
    return session


def client(server, name, **more):
    return tw.Client(f"http://127.0.0.1:{server.port}", name, experiment=SIMPLEX, **more)


def goes_on(session, name, rounds, more=3):
    """It is where it should be, and decides what it would have."""
    assert session.rounds == rounds
    reference = inside(name, rounds)
    for t in range(rounds, rounds + more):
        assert session.play().tobytes() == reference.play().tobytes()
        for each in (session, reference):
            each.observe(**seen(name, t))


def command(*words):
    return main([str(word) for word in words])


@pytest.fixture
def served(servers, tmp_path):
    server = servers.start(tmp_path / "sessions")
    yield server
    server.kill()


def test_a_backup_under_load_is_of_one_moment(served, servers, tmp_path):
    stop, file = threading.Event(), tmp_path / "copy.db"

    def load():
        with client(served, "a") as a, client(served, "b") as b:
            t = 0
            while not stop.is_set():
                a.observe(**seen("a", t))
                b.observe(**seen("b", t))
                t += 1

    worker = threading.Thread(target=load)
    with client(served, "a") as watched:
        worker.start()
        try:
            while watched.rounds < 20:
                pass
            assert command("backup", file, "--data", served.folder) == 0
            after = watched.rounds
        finally:
            stop.set()
            worker.join()
        assert watched.rounds >= after
    assert not file.with_name("copy.db.part").exists()
    assert command("restore", file, "--data", tmp_path / "new") == 0
    again = servers.start(tmp_path / "new")
    with client(again, "a") as a, client(again, "b") as b:
        rounds = a.rounds
        assert 20 <= rounds <= after
        assert b.rounds in (rounds - 1, rounds)
        goes_on(a, "a", rounds)
        goes_on(b, "b", b.rounds)
    again.kill()


def test_one_session_goes_back_while_the_server_runs(served, tmp_path, capsys):
    file = tmp_path / "copy.db"
    with client(served, "a") as a, client(served, "b") as b:
        for t in range(4):
            a.observe(**seen("a", t))
            b.observe(**seen("b", t))
        assert command("backup", file, "--data", served.folder) == 0
        assert capsys.readouterr().out == f"2 sessions are in {file}.\n"
        for t in range(4, 7):
            a.observe(**seen("a", t))
            b.observe(**seen("b", t))
        words = ("restore", file, "--data", served.folder, "--session", "a")
        assert "--replace" in refused_command(capsys, *words)
        assert a.rounds == 7
        assert command(*words, "--replace") == 0
        assert capsys.readouterr().out == "1 session is restored.\n"
    with client(served, "a") as a, client(served, "b") as b:
        until = time.monotonic() + PATIENCE
        while a.rounds != 4:  # it looks now and then
            assert time.monotonic() < until
            time.sleep(0.01)
        goes_on(a, "a", 4)
        goes_on(b, "b", 7)
    served.kill()
    served.start()
    with client(served, "a") as a:
        goes_on(a, "a", 7)


def test_refusals_are_one_sentence(served, tmp_path, capsys):
    with client(served, "a") as a:
        a.observe(**seen("a", 0))
    kept, noise = tmp_path / "kept.db", tmp_path / "noise.db"
    assert command("backup", kept, "--data", served.folder) == 0
    noise.write_bytes(b"noise" * 1000)
    before = kept.read_bytes()
    data = ("--data", served.folder)
    for words in (
        ("backup", tmp_path / "x.db"),
        ("backup", tmp_path / "x.db", *data, "--database", "postgresql://nowhere/x"),
        ("backup", tmp_path / "x.db", "--data", tmp_path / "nowhere"),
        ("backup", tmp_path / "x.db", "--data", tmp_path),
        ("backup", tmp_path / "x.db", *data, "--session", "nobody"),
        ("backup", tmp_path / "nowhere" / "x.db", *data),
        ("backup", kept, *data),
        ("restore", tmp_path / "x.db", *data),
        ("restore", noise, *data),
        ("restore", kept, *data),
        ("restore", kept, *data, "--session", "nobody", "--replace"),
    ):
        refused_command(capsys, *words)
        assert not (tmp_path / "x.db").exists()
        assert not (tmp_path / "x.db.part").exists()
    assert kept.read_bytes() == before
    assert not (tmp_path / "nowhere").exists()
    assert command("backup", kept, *data, "--force") == 0
    with client(served, "a") as a:
        assert a.rounds == 1


# --- without a server -----------------------------------------------------------------------------

LEARNER = tw.LyapunovDescent(tw.sets.Simplex(3))


def store_at(where):
    return closing(session_store.SessionStore.open(where, commit_within=0.0))


def opened(store, name):
    return tw.Session.open(store, LEARNER, name=name)


def play(store, name, told):
    """A session whose rounds were decided, and observed where that is told."""
    store.create(name, f"what {name} is", "{}").result()
    session = opened(store, name)
    for t, is_told in enumerate(told):
        session.play(round=t)
        if is_told:
            session.observe(round=t, **seen(name, t))
        store.note(name, session_store.Round(t + 1, float(t), 0.5, None, bytes([t % 256])))
    store.audit("somebody", name, "put", "to see")
    store.flushed(name).result()


def everything(store, name):
    """All that can be asked of a session."""
    session, info = opened(store, name), store.info(name)
    assert info is not None
    notes = store.rounds_of(name, 1, 10_000)
    seals = [session.learner.save(session.state), session.pending, session.round]
    points = [session.play(round=t).tobytes() for t in (*session.pending, session.round)]
    return info.description, info.settings, info.created, info.rounds, notes, seals, points


@settings(max_examples=12)
@given(st.lists(st.lists(st.booleans(), max_size=9), max_size=3), st.sampled_from([1, 2, 256]))
def test_a_copy_has_everything(tmp_path_factory, histories, at_once):
    folder = tmp_path_factory.mktemp("copies")
    names = [f"{letter}-{len(told)}" for letter, told in zip("abc", histories, strict=False)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(copies, "_AT_ONCE", at_once)
        with store_at(folder / "first") as store:
            for name, told in zip(names, histories, strict=True):
                play(store, name, told)
            assert copies.backup(folder / "first", folder / "copy") == len(names)
            before, audit = [everything(store, name) for name in names], store.entries()
        assert copies.restore(folder / "copy", folder / "second") == len(names)
        with store_at(folder / "second") as store:
            assert [everything(store, name) for name in names] == before
            assert store.entries()[: len(audit)] == audit
            assert [one.what for one in store.entries()[len(audit) :]] == ["restore"] * len(names)


def test_all_are_restored_or_none(tmp_path):
    with store_at(tmp_path / "first") as store:
        for name in "abc":
            play(store, name, [True] * 3)
        copies.backup(tmp_path / "first", tmp_path / "copy")
        store.delete("a").result()
        with pytest.raises(AlreadyThere, match=r"There is a session called 'b' already: --replace"):
            copies.restore(tmp_path / "copy", tmp_path / "first")
        assert [info.name for info in store.infos()] == ["b", "c"]
        done = []
        copies.restore(
            tmp_path / "copy", tmp_path / "first", ["a"], progress=lambda *both: done.append(both)
        )
        assert [info.name for info in store.infos()] == ["a", "b", "c"]
        assert done == [(1, 1)]


@pytest.mark.parametrize("keep", [0, 1, 100, 4096, 10_000])
def test_a_copy_that_was_cut_short_is_refused_and_restores_nothing(tmp_path, keep):
    with store_at(tmp_path / "first") as store:
        play(store, "a", [True] * 5)
    copies.backup(tmp_path / "first", tmp_path / "copy")
    (tmp_path / "cut").write_bytes((tmp_path / "copy").read_bytes()[:keep])
    with pytest.raises((BrokenFile, CheckpointError)):
        copies.restore(tmp_path / "cut", tmp_path / "second")
    with store_at(tmp_path / "second") as store:
        assert store.count() == 0


def test_a_copy_that_cannot_be_finished_leaves_nothing(tmp_path):
    with store_at(tmp_path / "first") as store:
        play(store, "a", [True] * 5)
    with pytest.raises(TidewolfError, match="already"):
        copies.backup(tmp_path / "first", tmp_path / "first" / "tidewolf.db")

    def stop(*_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        copies.backup(tmp_path / "first", tmp_path / "copy", progress=stop)
    assert [path.name for path in tmp_path.iterdir()] == ["first"]


def test_from_a_folder_to_postgresql_and_back(tmp_path, postgres_url):
    with store_at(tmp_path / "first") as store:
        for name in "ab":
            play(store, name, [True, False, True, True, False])
        before = [everything(store, name) for name in "ab"]
        copies.backup(tmp_path / "first", tmp_path / "copy")
    assert copies.restore(tmp_path / "copy", postgres_url) == 2
    with store_at(postgres_url) as store:
        assert [everything(store, name) for name in "ab"] == before
        assert copies.backup(postgres_url, tmp_path / "again") == 2
    assert copies.restore(tmp_path / "again", tmp_path / "second") == 2
    with store_at(tmp_path / "second") as store:
        assert [everything(store, name) for name in "ab"] == before


def test_databases_and_copies_are_for_their_owner_alone(tmp_path):
    before = os.umask(0o022)
    try:
        with closing(session_store.SessionStore.open(tmp_path / "data")) as store:
            store.create("one", "{}").result()
            copies.backup(tmp_path / "data", tmp_path / "copy.db")
            tw.Session.open(tmp_path / "own.db", tw.LyapunovDescent(tw.sets.Simplex(2))).close()
            made = [path for path in tmp_path.rglob("*") if path.is_file()]
    finally:
        os.umask(before)
    assert {"tidewolf.db", "copy.db", "own.db"} <= {path.name for path in made}
    assert {path.stat().st_mode & 0o777 for path in made if path.exists()} == {0o600}
