"""Going back over the last steps of a session in memory."""

import copy

import pytest

import tidewolf as tw
from test_session_late import PLAIN, met, saved
from tidewolf.core.errors import InvalidInput


@pytest.mark.parametrize(("room", "back"), [(None, 100), (10, 2)])
def test_a_session_goes_back_to_any_of_its_last_rounds(room, back, monkeypatch):
    """To fewer, if points are large."""
    if room is not None:
        monkeypatch.setattr("tidewolf.memory.ROOM", room)
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


def test_side_information_of_no_use_is_gone_back_over_as_any_other():
    """The learner's state is the same object with it and without."""
    session = tw.Session(PLAIN)
    before = session.state
    session.play(time=1.0)
    assert session.state is before
    session.play(round=2)
    session.rollback(0)
    assert session.pending == ()
    session.play(time=2.0)  # something else is known now
    with pytest.raises(InvalidInput, match="Round 0"):
        session.play(time=1.0)


def test_a_copy_begins_at_its_state():
    session = tw.Session(PLAIN)
    for t in range(3):
        met(session, t)
    other = copy.deepcopy(session)
    with pytest.raises(InvalidInput, match="Round 2"):
        other.rollback(2)
    met(other, 3)
    other.rollback(3)
    assert saved(other) == saved(session)
