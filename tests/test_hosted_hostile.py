"""Several who ask for the same at once, or for what the service must not do."""

from __future__ import annotations

import sqlite3
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from test_hosted_session import COSTS, LINKS, THREE, door, network
from tidewolf.core.errors import (
    CheckpointError,
    InvalidInput,
    NotAMember,
    Overloaded,
    TidewolfError,
    UnknownSession,
)
from tidewolf.service.hosted_session import on_disk
from tidewolf.service.models import DecisionRequest, Observations
from tidewolf.service.server import ended

__all__ = ["door"]


def test_who_deletes_a_session_leaves_nothing_half_gone(door, monkeypatch):
    gate, writing = threading.Event(), threading.Event()
    commits = door.sessions.store.commits
    write = commits._write

    def slow(group):
        writing.set()
        assert gate.wait(30)
        write(group)

    monkeypatch.setattr(commits, "_write", slow)
    found: list[Any] = []

    def ask(what: str, *given: Any) -> None:
        try:
            found.append((what, getattr(door, what)(*given)))
        except TidewolfError as error:
            found.append((what, type(error)))

    deleting = threading.Thread(target=ask, args=("delete", "a"))
    deleting.start()
    assert writing.wait(30)  # it is being deleted, and not yet gone
    others = [
        threading.Thread(target=ask, args=call)
        for call in (
            ("decide", "a", None),
            ("observe", "a", {"costs": COSTS}),
            ("get", "a"),
            ("delete", "a"),
        )
    ]
    for thread in others:
        thread.start()
    door.sessions.store.rounds_of("a", 1, 9)  # who only looks remembers nothing
    gate.set()
    for thread in (deleting, *others):
        thread.join(30)
    assert found[0] == ("delete", {"name": "a", "deleted": True})
    assert [kind for _, kind in found[1:]] == [UnknownSession] * 4
    with pytest.raises(UnknownSession):
        door.history("a")
    assert door.put("a", {**THREE, "rounds": 9})["rounds"] == 0
    assert door.observe("a", {"costs": COSTS})["round"] == 1


def test_a_session_that_another_process_deleted_is_not_there(door):
    door.hosted("a")
    number = door.sessions.store._number("a")
    store = door.sessions.store
    with sqlite3.connect(door.folder / "tidewolf.db") as db:
        db.execute("DELETE FROM sessions")
        db.execute("DELETE FROM head")
    db.close()
    with pytest.raises(UnknownSession, match="it was deleted"):
        store.commits.submit(lambda db: store._backing.claim(db, number)).result(30)
    with pytest.raises(UnknownSession):
        door.decide("a")


def test_a_pin_holds_where_the_session_cannot_be_opened(door):
    door.observe("a", {"costs": COSTS})
    door.pin("a", {"decision": [0.0, 1.0, 0.0], "why": "a test"})
    door.sessions.store.close()
    with sqlite3.connect(door.folder / "tidewolf.db") as db:
        db.execute("UPDATE observations SET feedback = zeroblob(9)")
    db.close()
    door.open()
    answer = door.decide("a")
    assert answer["source"] == "pinned"
    assert answer["decision"]["entry 1"] == 1.0
    assert "cannot be opened" in answer["reason"]
    assert "pinned point is played" in answer["reason"]


def test_an_incumbent_outside_of_the_set_is_refused_when_it_is_said(door):
    door.mode("a", {"mode": "shadow"})
    with pytest.raises(NotAMember, match="incumbent"):
        door.decide("a", {"round": 1, "advice": {"incumbent": [0.0, 3.0, 0.0]}})
    right = {"round": 1, "advice": {"incumbent": [0.0, 1.0, 0.0]}}
    assert door.decide("a", right)["source"] == "incumbent"
    assert door.observe("a", {"round": 1, "costs": COSTS})["cost"] == 0.0


def test_a_fallback_that_fits_no_more_is_changed_with_the_set(door):
    learners = [{"name": "LyapunovDescent"}]
    body = {"set": network(LINKS), "learners": learners, "fallback": {"s > a": 1.0, "a > t": 1.0}}
    door.put("net", body)
    less = network([["s", "b"], ["b", "t"], ["s", "t"]])
    with pytest.raises(InvalidInput, match="The fallback has no entry called"):
        door.migrate("net", {"set": less, "why": "a is gone"})
    new = {"s > b": 0.0, "b > t": 0.0, "s > t": 1.0}
    said = door.migrate("net", {"set": less, "fallback": new, "why": "a is gone"})
    assert said["settings"]["fallback"] == new
    assert door.migrate("net", {"fallback": None})["settings"]["fallback"] is None
    door.reopen()
    assert door.get("net")["settings"]["fallback"] is None


def test_the_last_entries_of_the_audit_are_the_newest(door):
    for number in range(30):
        door.pin("a", {"decision": None, "why": str(number)})
    store = door.sessions.store
    assert [one.why for one in store.last_entries("a", 2)] == ["29", "28"]
    assert store.infos()[0].description == "" != store.info("a").description


def test_a_disk_that_does_not_come_back_is_said_in_a_sentence(monkeypatch):
    monkeypatch.setattr("tidewolf.service.hosted_session.TO_DISK", 0.01)
    with pytest.raises(Overloaded, match="busy"):
        on_disk(Future())


def test_a_server_does_not_wait_for_who_computes_for_long():
    gate = threading.Event()
    with ThreadPoolExecutor(2, "hostile-pool") as pool:
        pool.submit(gate.wait, 30)
        assert not ended(0.01, "hostile-pool")
        gate.set()
        pool.shutdown(wait=False, cancel_futures=True)
        assert ended(30.0, "hostile-pool")


def test_notes_count_rounds_from_one(door):
    door.put("late", {**THREE, "expire_after": 2})
    door.decide("late", {"round": 6})
    (note,) = door.get("late")["notes"]
    assert note.endswith("expired, with nothing told of them: 1, 2, 3, 4.")


@pytest.mark.parametrize("kill", [False, True])
def test_who_was_not_told_of_a_pin_did_not_play_it(door, kill):
    told = door.decide("a")
    door.pin("a", {"decision": [1.0, 0.0, 0.0], "why": "between a decision and its feedback"})
    if kill:
        door.reopen()
    cost = np.dot(list(told["decision"].values()), COSTS)
    assert door.observe("a", {"round": 1, "costs": COSTS})["cost"] == pytest.approx(cost)
    assert door.get("a")["saved"]["rounds"] == 0
    assert door.observe("a", {"round": 1, "costs": COSTS})["cost"] == pytest.approx(cost)
    assert door.observe("a", {"round": 2, "costs": COSTS})["cost"] == 1.0  # from now on
    door.decide("a")
    door.pin("a", {"decision": [0.0, 1.0, 0.0]})
    if kill:
        door.reopen()
    assert door.observe("a", {"round": 3, "costs": COSTS})["cost"] == 1.0  # the pin before
    door.pin("a", {"decision": [1.0, 0.0, 0.0]})
    door.decide("a")
    assert door.observe("a", {"round": 4, "costs": COSTS})["cost"] == 1.0  # asked again
    door.rollback("a", {"round": 2})
    for number in (2, 3, 4):
        assert door.observe("a", {"round": number, "costs": COSTS})["cost"] == 1.0


def test_a_commit_that_failed_hides_nothing_of_what_was_kept(door):
    door.observe("a", {"round": 1, "costs": COSTS})
    writer = door.sessions.store._backing.writer
    writer.execute(
        "CREATE TEMP TRIGGER full BEFORE INSERT ON rounds "
        "BEGIN SELECT RAISE(FAIL, 'disk full'); END"
    )
    with pytest.raises(CheckpointError, match="disk full"):
        door.observe("a", {"round": 2, "costs": COSTS})
    assert [one["round"] for one in door.history("a")["rounds"]] == [1]


def test_what_takes_long_is_not_done_where_everybody_waits(door):
    for _ in range(3):
        door.decide("a")

    def at_once(body: Any) -> bool:
        lock = door.sessions.lock_at_once("a", body)
        if lock is not None:
            lock.release()
        return lock is not None

    door.hosted("a").seconds = 0.0
    assert at_once(DecisionRequest.read({}))
    assert at_once(DecisionRequest.read({"round": 1}))
    assert not at_once(DecisionRequest.read({"round": 10000}))
    assert not at_once(Observations.read({"observations": [{"round": 1}]}))
    door.sessions.store.let_go("a")
    assert not at_once(DecisionRequest.read({}))
