"""What a session in memory remembers beside its state."""

import copy

import numpy as np
import pytest

import tidewolf as tw
from killed import COSTS
from test_session_late import PLAIN, met, saved
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


# --- going back over the last steps ---------------------------------------------------------------


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


# --- what would we have saved ---------------------------------------------------------------------


def test_an_incumbent_learns_what_would_have_been_saved():
    session, incumbent = tw.Session(PLAIN), np.eye(5)[np.argmax(COSTS.mean(0))]
    played = own = 0.0
    for _ in range(40):
        own += float(COSTS[0] @ session.play())
        played += float(COSTS[0] @ incumbent)
        session.observe(costs=COSTS[0], capacities=np.full(5, 0.4), played=incumbent)
    shadow = session.overrides
    assert (shadow.rounds, shadow.valued) == (40, 40)
    assert shadow.saved_loss == pytest.approx(played - own)
    assert shadow.saved_violation == pytest.approx(40 * 0.6 - shadow.own_violation)
    assert "In 40 rounds another point was played" in str(shadow)
    assert f"the violation was {24:.4g}" in str(shadow)
    session.observe(loss_gradient=COSTS[0], constraint_value=0.0, played=incumbent)
    assert "In 40 of them the loss was" in str(session.overrides)
