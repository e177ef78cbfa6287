"""Backup and restore while a server runs: a copy is of one moment, and what is restored goes on to
the bit.
"""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tidewolf as tw
from servers import PATIENCE
from tidewolf.cli import main

EXPERIMENT = {"set": {"kind": "Simplex", "n": 3}, "learners": [{"name": "LyapunovDescent"}]}


def seen(name: str, t: int) -> dict[str, Any]:
    """What round t of a session shows, the same on every machine."""
    phase = np.arange(3) + t * (1 + ord(name[0]) % 5)
    return {"costs": np.sin(phase), "capacities": 0.4 + 0.2 * np.cos(phase)}


def inside(name: str, rounds: int) -> tw.Session[Any]:
    """The session that observed so many rounds."""
    session = tw.Session(tw.LyapunovDescent(tw.sets.Simplex(3)))
    for t in range(rounds):
        session.observe(**seen(name, t))
    return session


def client(server: Any, name: str, **more: Any) -> tw.Client:
    return tw.Client(f"http://127.0.0.1:{server.port}", name, experiment=EXPERIMENT, **more)


def goes_on(session: tw.Client, name: str, rounds: int, more: int = 3) -> None:
    """It is where it should be, and decides what it would have."""
    assert session.rounds == rounds
    twin = inside(name, rounds)
    for t in range(rounds, rounds + more):
        assert session.play().tobytes() == twin.play().tobytes()
        for each in (session, twin):
            each.observe(**seen(name, t))


def command(*words: object) -> int:
    return main([str(word) for word in words])


@pytest.fixture
def served(servers: Any, tmp_path: Path) -> Any:
    server = servers.start(tmp_path / "sessions")
    yield server
    server.kill()


def test_a_backup_under_load_is_of_one_moment(served, servers, tmp_path):
    stop, file = threading.Event(), tmp_path / "copy.db"

    def load() -> None:
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
        assert command(*words) == 2
        assert "--replace" in capsys.readouterr().err
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


def test_what_waits_for_its_feedback_is_in_the_copy(served, servers, tmp_path):
    with client(served, "a") as a:
        a.observe(**seen("a", 0))
        waiting = a.play(round=2)
    file = tmp_path / "copy.db"
    assert command("backup", file, "--data", served.folder, "--session", "a") == 0
    assert command("restore", file, "--data", tmp_path / "new") == 0
    again = servers.start(tmp_path / "new")
    with client(again, "a") as a:
        assert a.pending == (1, 2)
        assert a.play(round=2).tobytes() == waiting.tobytes()
        a.observe(round=1, **seen("a", 1))
        assert a.rounds == 2
    again.kill()


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
        capsys.readouterr()
        assert command(*words) == 2, words
        said = capsys.readouterr().err
        assert said.count("\n") == 1, words
        assert said.endswith(".\n"), words
        assert not (tmp_path / "x.db").exists()
        assert not (tmp_path / "x.db.part").exists()
    assert kept.read_bytes() == before
    assert not (tmp_path / "nowhere").exists()
    assert command("backup", kept, *data, "--force") == 0
    with client(served, "a") as a:
        assert a.rounds == 1
