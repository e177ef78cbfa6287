"""Databases of services of earlier versions, which stay here for ever: every session opens, says
where it stands, and goes on as it would have.
"""

import json
import shutil
import warnings
from pathlib import Path

import numpy as np
import pytest
from tools.service_fixture import ROUNDS, SESSIONS, goes_on, kept, opened

from tidewolf.core import checkpoint, errors

FIXTURES = sorted((Path(__file__).parent / "fixtures").glob("*/sessions"))
VERSIONS = [folder.parent.name for folder in FIXTURES]


@pytest.fixture(params=FIXTURES, ids=VERSIONS)
def copied(request, tmp_path):
    shutil.copytree(request.param, tmp_path / "sessions")
    return tmp_path / "sessions"


def test_a_database_of_this_version_opens_in_the_next(copied):
    expected = json.loads((copied / "expected.json").read_text())
    assert expected.pop("tidewolf")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", errors.OtherVersions)
        with opened(copied) as sessions:
            listed = kept(sessions.list())["sessions"]
            rounds = {name: expected[name]["rounds"] for name in SESSIONS}
            assert {each["name"]: each["rounds"] for each in listed} == rounds
            past = {name: kept(sessions.history(name))["rounds"] for name in SESSIONS}
            who = {entry["who"] for entry in kept(sessions.audit(None))["entries"]}
            found = goes_on(sessions)
        with opened(copied) as sessions:
            for name in SESSIONS:
                assert kept(sessions.get(name))["rounds"] == ROUNDS + len(found[name]["decisions"])
    assert who == {"fixture"}
    assert {name: len(past[name]) for name in SESSIONS} == rounds
    assert list(found) == list(expected)
    for name, shown in expected.items():
        np.testing.assert_allclose(found[name].pop("decisions"), shown.pop("decisions"), atol=1e-9)
        assert found[name] == shown


def test_a_store_of_another_machine_is_named_once(copied, monkeypatch):
    here = {**checkpoint.writer(), "cpu": "z80"}
    monkeypatch.setattr(checkpoint, "writer", lambda: here)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        with opened(copied) as sessions:
            goes_on(sessions)
    assert {type(each.message) for each in said} == {errors.OtherVersions}
    (sentence,) = {str(each.message) for each in said}
    assert "(here z80)" in sentence


def test_this_version_has_one():
    assert "format3" in VERSIONS
