"""Kill storms: what the service acknowledged is there, once, to the bit, however often it was
killed under load; and how many syncs that takes.
"""

import json
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from benchmarks.compiled import compiled

from covering import few
from servers import LOAD, Caller
from storm import Storm


def rage(servers, folder, seed, kills, sync_ms=0.0, synced=None, **how):
    """A storm from beginning to end."""
    server = servers.start(folder, sync_ms=sync_ms, synced=synced)
    storm = Storm(server, seed, **how)
    storm.rage(kills)
    storm.judge()
    assert server.terminate() == 0, server.said()
    return storm


@pytest.mark.parametrize("seed", few(1, range(3)))
def test_killed_under_load_it_loses_nothing_acknowledged(servers, tmp_path, seed):
    storm = rage(servers, tmp_path / "data", seed, kills=9)
    assert storm.lives >= 3


def test_power_cuts_lose_nothing_acknowledged(servers, tmp_path):
    """What was not synced is gone."""
    storm = rage(
        servers, tmp_path / "data", seed=40, kills=5, sync_ms=2, synced=tmp_path / "synced"
    )
    assert storm.lives >= 2


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(100, 105))
def test_hundreds_of_kills_lose_nothing_acknowledged(servers, tmp_path, seed):
    synced = tmp_path / "synced" if seed % 2 else None
    storm = rage(servers, tmp_path / "data", seed, kills=100, synced=synced, sessions=24, callers=6)
    assert storm.lives >= 30


# --- what it costs --------------------------------------------------------------------------------


def load(server, **given):
    """What the client in C finds."""
    words = [f"{name}={value}" for name, value in ({"port": server.port} | given).items()]
    done = subprocess.run([compiled(LOAD), *words], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def put(server, count, n=5, prefix="s"):
    caller = Caller(server)
    body = {"set": {"kind": "Simplex", "n": n}, "learners": [{"name": "LyapunovDescent"}]}
    for i in range(count):
        status, answer = caller.ask("PUT", f"/v1/sessions/{prefix}{i}", body)
        assert status == 201, answer
    caller.hang_up()


CALLERS = {"mode": "closed", "decisions": 0, "sessions": 16, "connections": 16, "n": 5}


@pytest.mark.soak
def test_memory_is_flat_over_a_hundred_thousand_requests(servers, tmp_path):
    server = servers.start(tmp_path / "data")
    put(server, 16)
    memory = []
    with ThreadPoolExecutor() as pool:
        asked = pool.submit(load, server, **CALLERS | {"decisions": 1, "seconds": 150})
        while not asked.done():
            memory.append(server.memory)
            time.sleep(1)
        found = asked.result()
    assert set(found["status"]) == {"200"}, found
    assert found["status"]["200"] >= 100_000, found
    assert max(memory) < memory[len(memory) // 5] + 16, memory
    assert server.terminate() == 0
