"""What a session in memory remembers beside its state."""

import pytest

import tidewolf as tw
from test_session_late import PLAIN, met, saved
from tidewolf.core.errors import InvalidInput


@pytest.mark.parametrize(("room", "back"), [(None, 100), (10, 2)])
def test_a_session_goes_back_to_any_of_its_last_rounds(room, back, monkeypatch):
    """To fewer, if points are large."""
    if room is not None:
        monkeypatch.setattr("tidewolf.past.ROOM", room)
    session, states = tw.Session(PLAIN), []
    for t in range(back + 30):
        states.append(saved(session))
        met(session, t)
    for t in (back + 29, 30 + back // 2, 30 + back // 2, 30):
        session.rollback(t)
        assert saved(session) == states[t]
        assert session.rounds == t
    with pytest.raises(InvalidInput, match="Round 29"):
        session.rollback(29)
    met(session, 30)
    assert saved(session) == states[31]


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
