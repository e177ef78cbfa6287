"""A database of a service of this version, to be opened by every later one.

    python -m tools.service_fixture tests/fixtures/format3/sessions

writes a folder with three sessions: a plain one, a network, and one that is pinned while rounds
wait for their feedback; and beside its database, in expected.json, what whoever goes on from it has
to answer. A folder that is there is never written again.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tidewolf import __version__
from tidewolf.service.models import DecisionRequest, Description, Observation, Pin
from tidewolf.service.requests import Caller
from tidewolf.service.sessions import Reply, Sessions
from tidewolf.storage.session_store import SessionStore
from tools.fixtures import numbers

ROUNDS, MORE = 12, 6
"""How many rounds the database knows of, and how many come after."""
WHO = Caller("fixture")
LINKS = [["s", "a"], ["a", "t"], ["s", "b"], ["b", "t"], ["a", "b"]]
SESSIONS: dict[str, dict[str, Any]] = {
    "plain": {
        "set": {"kind": "Simplex", "n": 5},
        "names": ["ash", "birch", "cedar", "dogwood", "elm"],
        "learners": [{"name": "LyapunovDescent", "caution": 3.0}],
    },
    "network": {"set": {"graph": LINKS, "source": "s", "target": "t", "demand": 4.0}},
    "late": {
        "set": {"kind": "CappedSimplex", "n": 5, "cap": 0.6},
        "learners": [{"name": "LyapunovDescent"}],
        "expire_after": 20,
    },
}
"""By name, what each is; every one has five entries."""
COSTS = 1.0 + numbers(ROUNDS + MORE, 5, 0)
CAPACITIES = 0.6 + 0.5 * numbers(ROUNDS + MORE, 5, 50)
WAITING = (3, 7)
"""Rounds of the late session whose feedback has not come, from 1."""


@contextmanager
def opened(folder: Path) -> Iterator[Sessions]:
    """The sessions of a folder."""
    store = SessionStore.open(folder)
    sessions = Sessions(store)
    try:
        yield sessions
    finally:
        sessions.close()
        store.close()


def kept(reply: Reply) -> dict[str, Any]:
    """An answer that may be sent: what it speaks of is on disk."""
    if reply.after is not None:
        reply.after.result()
    return reply.body


def observe(sessions: Sessions, name: str, number: int) -> None:
    """What a round, from 1, shows."""
    unit = 4.0 if name == "network" else 1.0
    row = {"costs": COSTS[number - 1].tolist()}
    row["capacities"] = (unit * CAPACITIES[number - 1]).tolist()
    kept(sessions.observe(name, Observation.read({"round": number, **row})))


def decide(sessions: Sessions, name: str, number: int) -> list[float]:
    """The decision of a round, from 1, in the order of its entries."""
    body = kept(sessions.decide(name, DecisionRequest.read({"round": number})))
    return [float(body["decision"][entry]) for entry in kept(sessions.get(name))["names"]]


def goes_on(sessions: Sessions) -> dict[str, Any]:
    """What sessions that know of `ROUNDS` rounds answer from then on."""
    found: dict[str, Any] = {}
    for name in SESSIONS:
        info = kept(sessions.get(name))
        found[name] = {key: info[key] for key in ("rounds", "pending", "mode", "pinned", "learner")}
        if name == "late":
            for number in WAITING:
                observe(sessions, name, number)
            kept(sessions.operate(name, Pin.read({"decision": None, "why": "enough"}), WHO))
        found[name]["decisions"] = points = []
        for number in range(ROUNDS + 1, ROUNDS + MORE + 1):
            points.append(decide(sessions, name, number))
            observe(sessions, name, number)
    return found


def begin(sessions: Sessions) -> None:
    """The first rounds."""
    for name, what in SESSIONS.items():
        kept(sessions.put(name, Description.read({**what, "why": "a fixture"}), WHO))
        for number in range(1, ROUNDS + 1):
            decide(sessions, name, number)
            if not (name == "late" and number in WAITING):
                observe(sessions, name, number)
    pinned = [0.2] * 5
    kept(sessions.operate("late", Pin.read({"decision": pinned, "why": "a fixture"}), WHO))


def write(folder: Path) -> None:
    """All of it."""
    if folder.exists():
        raise SystemExit(f"{folder} is there already; fixtures stay as they are.")
    with opened(folder) as sessions:
        begin(sessions)
    with tempfile.TemporaryDirectory() as copy:
        shutil.copytree(folder, copy, dirs_exist_ok=True)
        with opened(Path(copy)) as sessions:
            expected = goes_on(sessions)
    for path in folder.iterdir():
        if path.name != "tidewolf.db":
            path.unlink()
    text = json.dumps({"tidewolf": __version__, **expected}, indent=1)
    (folder / "expected.json").write_text(f"{text}\n")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
