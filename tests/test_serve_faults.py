"""The service where things go wrong around it: a full disk, a folder that is gone, callers that
stall, the end of its process. What it acknowledged stays, what it cannot keep it refuses in a
sentence, and when the trouble is over it goes on by itself.
"""

import contextlib
import os
import resource
import shutil
import sqlite3
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import tidewolf as tw
from servers import LOST, PATIENCE, Caller
from serving import SIMPLEX, connected

RNG = np.random.default_rng(5)
COSTS, LIMITS = RNG.uniform(-1, 1, (40, 3)), RNG.uniform(0.2, 0.8, (40, 3))


@pytest.fixture
def server(servers, tmp_path):
    found = servers.start(tmp_path / "data")
    yield found
    found.kill()


def told(number):
    """The observation of a round, counted from 1."""
    costs, limits = COSTS[number - 1].tolist(), LIMITS[number - 1].tolist()
    return {"round": number, "costs": costs, "capacities": limits}


def put(caller, *names):
    for name in names:
        status, answer = caller.ask("PUT", f"/v1/sessions/{name}", SIMPLEX)
        assert status == 201, answer


def observe(caller, name, number):
    return caller.ask("POST", f"/v1/sessions/{name}/observations", told(number))


def decide(caller, name):
    status, answer = caller.ask("POST", f"/v1/sessions/{name}/decisions", {})
    assert status == 200, answer
    return list(answer["decision"].values())


def reference(rounds):
    """What is decided after these rounds, in this process."""
    session = tw.Session(tw.LyapunovDescent(tw.sets.Simplex(3)))
    for costs, limits in zip(COSTS[:rounds], LIMITS[:rounds], strict=True):
        session.observe(costs=costs, capacities=limits)
    return session.play().tolist()


def require_refusal(caller, status, answer, word=""):
    """A 503 with a sentence, and when to come again."""
    assert status == 503, answer
    assert answer["status"] == 503
    assert answer["detail"].endswith("."), answer
    assert word in answer["detail"], answer
    assert int(caller.retry_after) >= 1


def soon(caller, method, path, expected, body=None):
    """The answer once it has this status."""
    until = time.monotonic() + PATIENCE
    while (found := caller.ask(method, path, body))[0] != expected:
        assert time.monotonic() < until, found
        time.sleep(0.02)
    return found[1]


# --- a disk that is full --------------------------------------------------------------------------


@contextlib.contextmanager
def full(server):
    """Nothing the server writes finds room."""
    resource.prlimit(server.pid, resource.RLIMIT_FSIZE, (1, resource.RLIM_INFINITY))
    try:
        yield
    finally:
        unlimited = resource.RLIM_INFINITY, resource.RLIM_INFINITY
        resource.prlimit(server.pid, resource.RLIMIT_FSIZE, unlimited)


def test_a_full_disk_acknowledges_nothing_loses_nothing_and_recovers(server):
    caller = Caller(server)
    put(caller, "a", "b")
    for number in (1, 2, 3):
        assert observe(caller, "a", number)[0] == 200
    before = decide(caller, "a")
    with full(server):
        for _ in range(3):
            require_refusal(caller, *observe(caller, "a", 4))
            require_refusal(caller, *observe(caller, "b", 1))
        require_refusal(caller, *caller.ask("PUT", "/v1/sessions/c", SIMPLEX))
        assert decide(caller, "a") == before
        assert caller.ask("GET", "/v1/sessions/a/decisions/4")[0] == 200
        status, session = caller.ask("GET", "/v1/sessions/a")
        assert (status, session["rounds"]) == (200, 3)
        status, answer = caller.ask("GET", "/readyz")
        assert status == 503, answer
        assert caller.ask("GET", "/healthz")[0] == 200
    for number in range(4, 9):
        status, answer = caller.insist("POST", "/v1/sessions/a/observations", told(number))
        assert (status, answer["rounds"]) == (200, number), answer
    assert soon(caller, "GET", "/readyz", 200)
    put(caller, "c")
    assert decide(caller, "a") == reference(8)
    server.kill()
    server.start()
    assert decide(caller, "a") == reference(8)
    assert caller.ask("GET", "/v1/sessions/b")[1]["rounds"] == 0


# --- a folder that is not what it was -------------------------------------------------------------


def test_a_folder_that_is_deleted_refuses_what_would_be_lost(server):
    caller = Caller(server)
    put(caller, "a")
    assert observe(caller, "a", 1)[0] == 200
    shutil.rmtree(server.folder)
    for _ in range(2):
        require_refusal(caller, *observe(caller, "a", 2))
    assert decide(caller, "a") == reference(1)
    assert soon(caller, "GET", "/readyz", 503)
    assert caller.ask("GET", "/healthz")[0] == 200


def require_no_start(server, *words):
    """It ends with 2 and one sentence."""
    assert server.wait() == 2, server.said()
    said = server.said()
    assert "Traceback" not in said, said
    assert said.strip().endswith("."), said
    for word in words:
        assert word in said, said


def test_a_folder_that_cannot_be_written_is_refused_at_the_start(servers, tmp_path):
    folder = tmp_path / "data"
    servers.start(folder).kill()
    folder.chmod(0o555)
    for file in folder.iterdir():
        file.chmod(0o444)
    (tmp_path / "data.log").chmod(0o666)
    for parent in (tmp_path, *tmp_path.parents[:3]):
        parent.chmod(parent.stat().st_mode | 0o055)
    user = 65534 if os.getuid() == 0 else None
    require_no_start(servers.start(folder, ready=False, user=user), str(folder))


CHANGED = {
    "observation": "UPDATE events SET data = x'00ff' WHERE session = ?",
    "head": "UPDATE head SET link = x'00' WHERE session = ?",
    "notes": "UPDATE rounds SET note = x'ff00' WHERE session = ?",
    "settings": "UPDATE sessions SET settings = '{]' WHERE number = ?",
    "description": "UPDATE sessions SET description = '{}' WHERE number = ?",
}


def test_a_session_whose_rows_were_changed_is_refused_and_others_go_on(server):
    caller = Caller(server)
    put(caller, *CHANGED, "whole")
    for number in (1, 2, 3):
        for name in (*CHANGED, "whole"):
            assert observe(caller, name, number)[0] == 200
    server.kill()
    db = sqlite3.connect(server.folder / "tidewolf.db")
    with db:
        for name, sql in CHANGED.items():
            (number,) = db.execute("SELECT number FROM sessions WHERE name = ?", (name,)).fetchone()
            assert db.execute(sql, (number,)).rowcount
    db.close()
    server.start()
    for name in CHANGED:
        for path in ("", "/decisions/2", "/history", "/experts", "/explanation", "/audit"):
            status, answer = caller.ask("GET", f"/v1/sessions/{name}{path}")
            assert status in (200, 404, 503), (name, path, answer)
            if status != 200:
                assert answer["detail"].endswith("."), answer
        status, answer = caller.ask("POST", f"/v1/sessions/{name}/decisions", {})
        assert status in (200, 404, 503), (name, answer)
        if status == 200 and answer["source"] == "learner":
            assert list(answer["decision"].values()) == reference(3)
        status, answer = observe(caller, name, 2)
        assert status in (200, 404, 409, 503), (name, answer)
    assert observe(caller, "whole", 4)[0] == 200
    assert decide(caller, "whole") == reference(4)
    assert caller.ask("GET", "/v1/sessions")[0] == 200
    assert caller.ask("GET", "/readyz")[0] == 200


# --- the end --------------------------------------------------------------------------------------


def test_asked_to_end_under_load_it_answers_for_all_that_it_kept(server):
    """Nobody is cut off whose observation is on disk: what is there was acknowledged."""
    names = [f"s{i}" for i in range(6)]
    put(Caller(server), *names)
    acknowledged, refused = dict.fromkeys(names, 0), []

    def work(name):
        caller = Caller(server)
        with contextlib.suppress(*LOST):
            while acknowledged[name] < 40:
                status, answer = observe(caller, name, acknowledged[name] + 1)
                if status != 200:
                    refused.append((caller.retry_after, status, answer))
                    break
                acknowledged[name] += 1
        caller.hang_up()

    with ThreadPoolExecutor(len(names)) as pool:
        working = [pool.submit(work, name) for name in names]
        while sum(acknowledged.values()) < 12:
            time.sleep(1e-3)
        assert server.terminate() == 0, server.said()
    assert [each.result() for each in working] == [None] * len(names)
    assert all(status == 503 and after for after, status, _ in refused), refused
    server.start()
    caller = Caller(server)
    for name in names:
        assert caller.ask("GET", f"/v1/sessions/{name}")[1]["rounds"] == acknowledged[name]
        assert decide(caller, name) == reference(acknowledged[name])


def test_asked_to_end_it_does_not_wait_for_callers_that_stall(server):
    put(Caller(server), "a")
    head = b"POST /v1/sessions/a/observations HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\n{"
    with connected(server.url), connected(server.url) as one, connected(server.url) as other:
        one.sendall(head)
        other.sendall(head[:30])
        begun = time.monotonic()
        assert server.terminate() == 0, server.said()
        assert time.monotonic() - begun < 15
