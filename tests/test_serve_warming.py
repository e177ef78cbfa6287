"""A server says that it is ready once the kernels of its sessions are compiled."""

import contextlib
import os
import signal
import subprocess
import sys
import threading

import pytest

from serving import SECONDS, SIMPLEX, call, in_thread, until
from tidewolf.service import models as warming
from tidewolf.service.models import Description
from tidewolf.service.requests import Caller
from tidewolf.service.sessions import Sessions
from tidewolf.storage.session_store import SessionStore

BOX = {"set": {"kind": "Box", "lower": [0.0, 0.0, 0.0], "upper": [1.0, 1.0, 1.0]}}


def test_each_kind_of_session_in_the_store_is_warmed_up_once(tmp_path, monkeypatch):
    store, warmed = SessionStore.open(tmp_path, commit_within=0.0), []
    monkeypatch.setattr(warming, "warm_up", lambda made: warmed.append(type(made.K).__name__))
    sessions = Sessions(store)
    for i in range(3):
        sessions.put(f"box-{i}", Description.read(BOX), Caller())
        body = {"set": {"kind": "Simplex", "n": 2 + i}, "learners": SIMPLEX["learners"]}
        sessions.put(f"simplex-{i}", Description.read(body), Caller())
    store.create("broken", "{}").result()
    store.create("no text", "").result()
    warming.warm_store(store)
    assert sorted(warmed) == ["Box", "Simplex"]
    monkeypatch.setattr(warming, "MOST_BUILT", 1)
    warming.warm_store(store)
    assert len(warmed) == 3
    sessions.close()
    store.close()


def test_requests_are_answered_before_the_server_is_ready(tmp_path, capsys):
    go = threading.Event()
    with in_thread(tmp_path, prepare=go.wait) as url:
        try:
            assert call(url, "GET", "/healthz").status == 200
            assert call(url, "GET", "/readyz").status == 503
            assert call(url, "PUT", "/v1/sessions/a", SIMPLEX).status == 201
            assert call(url, "POST", "/v1/sessions/a/decisions", {}).status == 200
            assert call(url, "GET", "/readyz").status == 503
            assert capsys.readouterr().out == ""
        finally:
            go.set()
        until(lambda: call(url, "GET", "/readyz").status == 200)


@pytest.mark.soak
def test_a_server_that_is_ready_compiles_nothing_more_for_its_sessions(tmp_path):
    data, cache = tmp_path / "data", tmp_path / "kernels"
    store = SessionStore.open(data, commit_within=0.0)
    with contextlib.closing(Sessions(store)) as sessions:
        for name, body in (("a", SIMPLEX), ("b", BOX)):
            sessions.put(name, Description.read(body), Caller())
    store.close()
    command = [sys.executable, "-m", "tidewolf", "serve", "--data", str(data), "--port", "0"]
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache)}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
    try:
        url = process.stdout.readline().split()[-1]
        before = sorted(cache.rglob("*.kernel"))
        assert before
        for name in ("a", "b"):
            path = f"/v1/sessions/{name}"
            for k in (1, 2, 3, 5, 4):
                if k in (1, 2, 3, 5):
                    body = {"round": k}
                    assert call(url, "POST", f"{path}/decisions", body).status == 200
                body = {"round": k, "costs": [1.0, 0.2, 0.5], "capacities": [0.4] * 3}
                assert call(url, "POST", f"{path}/observations", body).status == 200
            assert call(url, "GET", f"{path}/explanation").status == 200
        assert sorted(cache.rglob("*.kernel")) == before
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(SECONDS) == 0
        process.stdout.close()
