"""What a session in memory remembers beside its state."""

from __future__ import annotations

import pytest

import tidewolf as tw
from tidewolf.core.errors import InvalidInput
from tidewolf.memory import BACK, REMEMBERED, ROOM, Memory

LEARNER = tw.LyapunovDescent(tw.sets.Simplex(2))


def observed(rounds, numbered=False):
    session = tw.Session(LEARNER)
    for t in range(rounds):
        more = {"round": session.round} if numbered else {}
        session.play()
        session.observe(costs=[t % 3, 1.0], **more)
    return session


def test_it_goes_back_as_far_as_it_says_and_no_farther():
    session = observed(BACK + 20)
    with pytest.raises(InvalidInput, match="Round 19 cannot be gone back to"):
        session.rollback(19)
    assert session.rounds == BACK + 20
    session.rollback(20)
    again = observed(20)
    assert (session.play() == again.play()).all()


def test_contents_are_remembered_of_the_last_rounds_alone():
    session = observed(REMEMBERED + 5, numbered=True)
    session.observe(costs=[(REMEMBERED + 4) % 3, 1.0], round=REMEMBERED + 4)  # again
    assert session.rounds == REMEMBERED + 5
    with pytest.raises(InvalidInput, match="Round 3 was observed already, and what it held"):
        session.observe(costs=[0.0, 1.0], round=3)


def test_of_large_points_fewer_states_are_kept():
    K = tw.sets.Simplex(ROOM // 10)
    learner = tw.LyapunovDescent(K)
    assert Memory(learner, learner.start())._past.maxlen == 11
