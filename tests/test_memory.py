"""What a session in memory remembers beside its state."""

import pytest

import tidewolf as tw
from test_session_late import PLAIN, met
from tidewolf.core.errors import InvalidInput


def test_contents_are_remembered_of_the_last_rounds(monkeypatch, tmp_path):
    monkeypatch.setattr("tidewolf.memory.REMEMBERED", 3)
    session = tw.Session(PLAIN)
    for t in range(5):
        met(session, t, round=t)
    session.save(tmp_path / "state")
    for one in (session, tw.Session.load(tmp_path / "state", PLAIN)):
        for t in (2, 3, 4):
            met(one, t, round=t)
        with pytest.raises(InvalidInput, match="Round 1"):
            met(one, 1, round=1)
