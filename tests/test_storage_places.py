"""Durable sessions where files are not as they were: folders without write permission, deleted
databases, other versions, other hands.
"""

import os
import shutil
import sqlite3
import tempfile
from pathlib import Path

import numpy as np
import pytest

import tidewolf as tw
from interpreter import python
from killed import LEARNERS, as_if_killed, observe
from tidewolf.core import checkpoint
from tidewolf.core.checkpoint import SavedRecord
from tidewolf.core.errors import BrokenFile, CheckpointError, NewerFormat, OtherVersions
from tidewolf.core.feedback import FirstOrder
from tidewolf.storage import database as file
from tidewolf.storage.database import SQLite, Tables

LEARNER = LEARNERS["LyapunovDescent"]


@pytest.fixture
def place():
    """A folder that others may look into."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        yield Path(folder)


def observed(path, rounds, name="LyapunovDescent", **how):
    session = tw.Session.open(path, LEARNERS[name], **how)
    for t in range(session.rounds, rounds):
        observe(session, t)
    return session


# --- folders that cannot be written ---------------------------------------------------------------

LOOKER = """
import os, sys, tempfile
from pathlib import Path
import tidewolf as tw
from killed import LEARNERS, observe
from tidewolf.storage import Journal
learner = LEARNERS["LyapunovDescent"]
observe(tw.Session(learner), 0)  # what only root may import and compile
learner.load(learner.save(learner.start()))
tempfile.TemporaryDirectory().cleanup()
os.setgid(65534)
os.setuid(65534)
for path in map(Path, sys.argv[1:]):
    assert not os.access(path.parent, os.W_OK)
    with tw.Session.open(path, learner, read_only=True) as session:
        rounds = sum(seen.rounds for seen in session.history())
        print(session.rounds, rounds, learner.save(session.state).hex())
"""


def seen_by_nobody(*paths):
    """What a process sees that may not write into the folders."""
    if os.geteuid() != 0:
        pytest.skip("only root can become a user who may not write here")
    lines = map(str.split, python("-c", LOOKER, *paths).splitlines())
    return [(int(rounds), int(told), bytes.fromhex(state)) for rounds, told, state in lines]


def test_a_session_is_looked_at_from_a_folder_that_cannot_be_written(place):
    for name in ("closed", "killed", "open"):
        (place / name).mkdir()
    observed(place / "closed" / "session.db", 12, snapshot_every=5).close()
    session = observed(place / "open" / "session.db", 12, snapshot_every=5)
    # after a kill, part of what was acknowledged is in the log alone
    for name in ("session.db", "session.db-wal"):
        shutil.copy(place / "open" / name, place / "killed" / name)
    assert (place / "killed" / "session.db-wal").stat().st_size > 0
    before = sorted(place.rglob("*"))
    for file_ in place.rglob("session.db*"):
        assert file_.stat().st_mode & 0o077 == 0 or file_.parent.name == "killed"
        file_.chmod(0o644)  # its owner lets others read it
    paths = [place / name / "session.db" for name in ("closed", "killed", "open")]
    assert seen_by_nobody(*paths) == [(12, 12, LEARNER.save(session.state))] * 3
    assert sorted(place.rglob("*")) == before
    session.close()


def test_a_copy_is_taken_of_one_moment(place, monkeypatch):
    """A writer that never rests is said to be one; whatever is read is consistent."""
    session, copies = observed(place / "session.db", 3), place / "copies"
    copies.mkdir()
    real, changes = shutil.copyfile, [3]

    def copyfile(source, target):
        real(source, target)
        if changes and (changes[0] > 0 or changes[0] == -1):
            changes[0] -= changes[0] > 0
            observe(session, session.rounds)

    monkeypatch.setattr(shutil, "copyfile", copyfile)
    copy = file._copied(place / "session.db", copies)
    with tw.Session.open(copy, LEARNER, read_only=True) as seen:
        assert seen.rounds == session.rounds == 6
    changes[0] = -1
    with pytest.raises(CheckpointError, match=r"session\.db changes faster than it can be copied"):
        file._copied(place / "session.db", copies)
    session.close()


# --- deleted under its writer ---------------------------------------------------------------------


def moved(path):
    path.rename(path.with_name("elsewhere.db"))


def replaced(path):
    shutil.copy(path, path.with_name("copy.db"))
    os.replace(path.with_name("copy.db"), path)


def without_log(path):
    Path(f"{path}-wal").unlink()


def without_folder(path):
    shutil.rmtree(path.parent)


@pytest.mark.parametrize("gone", [Path.unlink, moved, replaced, without_log, without_folder])
def test_a_database_deleted_under_an_open_session_is_noticed(gone, place):
    (place / "folder").mkdir()
    path = place / "folder" / "session.db"
    session = observed(path, 7)
    point, state = session.play(), session.state
    gone(path)
    for _ in range(2):
        with pytest.raises(CheckpointError, match="was deleted or replaced"):
            observe(session, 7)
        assert session.rounds == 7
        assert session.state is state
    assert (session.play() == point).all()
    session.save(place / "rescued")
    session.close()
    assert tw.Session.load(place / "rescued", LEARNER).rounds == 7


# --- other hands, right checksums -----------------------------------------------------------------


def rewritten(path, **changes):
    """The last observation after another hand, with links that fit."""
    db = SQLite(path, "rw")
    tables = Tables(db)
    with db.transaction():
        head = tables.read_head()
        *rows, last = tables.some_rows(0, head.last)
        link = head.base
        for row in (*rows, last._replace(**changes)):
            link = row.link(link)
            assert row.number > head.snapshot
        db.execute("DELETE FROM events WHERE number = ?", (last.number,))
        tables.add(last._replace(**changes))
        assert tables.move_head(head, head._replace(link=link), len(rows) + 1)
    db.close()


def unclosed(place, name="LyapunovDescent"):
    """A session of three observations that no snapshot knows of."""
    session = observed(place / "session.db", 3, name)
    path = as_if_killed(place / "session.db")
    session.close()
    return path


def told(name, **parts):
    return checkpoint.packed((name, SavedRecord(parts)))


def info(name, **parts):
    return {"kind": "info", "data": told(name, **parts)}


def played(name, **how):
    """An observation of another hand, of what was played."""
    seen = FirstOrder(np.zeros(5), 0.0, np.zeros(5), 0.0, 0.0, 1)._asdict()
    return checkpoint.packed((name, SavedRecord(seen), SavedRecord(how)))


GONE = object()


def sums(**changes):
    """First-order feedback of another hand."""
    seen = FirstOrder(np.zeros(5), 0.0, np.zeros(5), 0.0, 0.0, 1)._asdict() | changes
    return told("FirstOrder", **{name: part for name, part in seen.items() if part is not GONE})


def test_tables_and_notes_of_a_later_tidewolf_are_left_alone(place):
    path = unclosed(place)
    db = sqlite3.connect(path)
    with db:
        db.execute("CREATE TABLE audit (who TEXT)")
        db.execute("INSERT INTO audit VALUES ('me')")
        db.execute("INSERT INTO meta VALUES (1, 'mode', 'shadow')")
    db.close()
    with tw.Session.open(path, LEARNER) as session:
        observe(session, 3)
    db = sqlite3.connect(path)
    assert db.execute("SELECT who FROM audit").fetchall() == [("me",)]
    assert dict(db.execute("SELECT name, value FROM meta"))["mode"] == "shadow"
    db.close()


def function(name, **parts):
    return name, SavedRecord(parts)


def functions(loss):
    return told("FullInformation", losses=loss, constraints=function("Capacity", c=np.ones((1, 5))))


VERTEX = np.eye(5)[0]
BYTES = [
    b"", b"[" * 100_000, checkpoint.packed(("FirstOrder", (1, 2))), sums(rounds=GONE),
    sums(loss_gradient=np.zeros(4), constraint_gradient=np.zeros(4)),
    sums(loss_gradient=np.full(5, np.nan)),
    told("Bandit", loss_values=np.zeros(1), constraint_values=np.zeros(1)),
    b'[["FirstOrder"], [["<f8", [1000000000000]]]]\n' + bytes(8),
    functions(function("Linear", C=np.full((1, 5), np.nan))), functions(("Linear", 3)),
    functions(3), played("FirstOrder", point=np.full(5, 0.3)),
    played("FirstOrder", point=VERTEX, instead=(1.0, 2.0)),
]  # fmt: skip
HAND_MADE = [
    *({"data": data} for data in BYTES),
    {"kind": "info", "data": checkpoint.packed(("RoundInfo", 3))},
    info("RoundInfo", time="noon"),
    info("RoundInfo", advice=(("a", "text"),)),
    info("RoundInfo", forecast=(1, 2)),
    {"kind": "info", "data": told("RoundInfo", time=1.0), "round": 4},
    {"kind": "decide", "data": b""},
    {"kind": "decide", "data": checkpoint.packed(np.eye(5)[1])},
    {"kind": "expire", "data": b""},
    {"round": 2},
    {"round": 9},
]
NEWER = [
    info("RoundInfo", weather=1),
    {"data": played("FirstOrder", canary=0.1)},
    {"data": sums(per_constraint=1)},
    {"data": functions(function("Cubic", C=np.ones((1, 5))))},
    {"data": functions(function("Linear", C=np.ones((1, 5)), offset=1, slope=2))},
    {"kind": "forecast"},
]


@pytest.mark.parametrize(
    ("given", "error"), [(HAND_MADE, BrokenFile), (NEWER, NewerFormat)], ids=["broken", "newer"]
)
def test_what_no_session_wrote_is_refused_though_checksums_fit(given, error, place):
    """What a later tidewolf may write is refused as newer."""
    for name in ("LyapunovDescent", "DriftPlusPenalty"):
        (place / name).mkdir()
        path = unclosed(place / name, name)
        whole = {end: Path(f"{path}{end}").read_bytes() for end in ("", "-wal")}
        for changes in given:
            for end, content in whole.items():
                Path(f"{path}{end}").write_bytes(content)
            rewritten(path, **changes)
            for read_only in (True, False):
                with pytest.raises(error, match=r"session\.db") as caught:
                    tw.Session.open(path, LEARNERS[name], read_only=read_only)
                assert caught.type is error
        for end, content in whole.items():
            Path(f"{path}{end}").write_bytes(content)
        rewritten(path)
        with tw.Session.open(path, LEARNERS[name], read_only=True) as session:
            assert session.rounds == 3


@pytest.mark.parametrize("name", ["python", "cpu"])
def test_a_state_of_other_versions_says_so_when_it_is_opened(name, place, monkeypatch):
    here = checkpoint.writer()
    monkeypatch.setattr(checkpoint, "writer", lambda: {**here, name: "0.9.1", "threads": "999"})
    observed(place / "session.db", 4).close()
    session = tw.Session(LEARNER)
    observe(session, 0)
    session.save(place / "state")
    monkeypatch.undo()
    for path, load in (("session.db", tw.Session.open), ("state", tw.Session.load)):
        with pytest.warns(OtherVersions, match=rf"{path} .*{name} 0\.9\.1 \(here") as warned:
            load(place / path, LEARNER).close()
        assert len(warned) == 1


def test_a_database_that_is_put_back_goes_on_and_epochs_of_writers_go_up(place):
    path = place / "session.db"
    session = tw.Session.open(path, LEARNER)
    moved(path)
    with pytest.raises(CheckpointError, match="was deleted or replaced"):
        observe(session, 0)
    (place / "elsewhere.db").rename(path)
    observe(session, 0)
    session.close()
    observed(path, 2).close()
    first = observed(path, 3)
    os.remove(place / "session.db-lock")  # as if the lock did not hold
    second = observed(path, 4)
    with pytest.raises(CheckpointError, match="was changed"):
        observe(first, 3)
    first.close()
    second.close()
    db = sqlite3.connect(path)
    rows = db.execute("SELECT number, kind, round, epoch FROM events").fetchall()
    assert rows == [(number, "observe", number, number) for number in (1, 2, 3, 4)]
    db.close()
