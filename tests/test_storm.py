"""Kill storms: what the service acknowledged is there, once, to the bit, however often it was
killed under load.
"""

import pytest

from covering import few
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
    assert rage(servers, tmp_path / "data", seed, kills=9).lives >= 3


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
