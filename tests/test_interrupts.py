"""An interrupt at any moment leaves a session and its file in agreement, and is never disguised.

Python handles signals when a function begins and after calls of C functions, so a KeyboardInterrupt
that is raised there, at each of these points in turn, covers every moment of a real Ctrl-C.
"""

import gc
import signal
import sqlite3
import sys
from functools import partial
from inspect import CO_GENERATOR
from itertools import count
from pathlib import Path

import numpy as np
import pytest

import tidewolf as tw
from tidewolf.core.arrays import SILENCE
from tidewolf.core.errors import CheckpointError
from tidewolf.storage import File

ALL = str(Path(tw.__file__).parent)
WHERE_IT_CHANGES = ("session", "memory", "storage/journal", "storage/database")
WHERE_IT_CHANGES = tuple(f"{ALL}/{name}.py" for name in WHERE_IT_CHANGES)
LEARNER = tw.LyapunovDescent(tw.sets.Simplex(3))
COSTS, CAPACITIES = np.random.default_rng(14).random((2, 2_000, 3))


def interrupted(point, files, do, *args):
    """Do it, interrupted at its `point`-th moment in these files; whether it has so many."""
    moments, silent = count(), SILENCE.depth

    def hook(frame, event, arg):
        code = frame.f_code
        if event not in ("call", "c_return") or not code.co_filename.startswith(files):
            return
        is_closed = code.co_flags & CO_GENERATOR  # a generator is "called" to be closed, too
        if not is_closed and next(moments) == point:
            raise KeyboardInterrupt

    sys.setprofile(hook)
    try:
        do(*args)
        return False
    except KeyboardInterrupt:
        return True
    finally:
        sys.setprofile(None)
        while SILENCE.depth > silent:  # its end was interrupted
            SILENCE.__exit__()


def observe(session, t, round=None):
    if session.rounds == t:
        session.observe(costs=COSTS[t], capacities=CAPACITIES[t], round=round)


def observe_by_number(session, t):
    session.observe(costs=COSTS[t], capacities=CAPACITIES[t], round=t)


def know(session, t):
    session.play(time=float(t))


def decide_ahead(session, t):
    session.play(round=t + 1)


def stands(session):
    return session.rounds, session.pending, LEARNER.save(session.state)


def in_file(path):
    """How many observations and events a file holds, read by another connection."""
    db = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    try:
        return db.execute("SELECT sum(kind = 'observe'), count(*) FROM events").fetchone()
    finally:
        db.close()


def opened(path, every):
    """A session in a file, which is not flushed to disk: no power fails here."""
    session = tw.Session.open(path, LEARNER, snapshot_every=every)
    session._keeper._backend._db.execute("PRAGMA synchronous = OFF")
    return session


FILES = [WHERE_IT_CHANGES, pytest.param(ALL, marks=pytest.mark.soak)]


@pytest.mark.parametrize("files", FILES, ids=["some", "all"])
@pytest.mark.parametrize(
    ("before", "act", "after", "every"),
    [
        ((), observe, (), 1000),
        ((), observe, (), 1),
        ((), know, (observe,), 1000),
        ((know,), observe, (), 1000),
        ((), decide_ahead, (observe_by_number,), 1000),
        ((decide_ahead,), observe_by_number, (), 1000),
    ],
)
def test_a_file_agrees_with_its_session_after_any_interrupt(
    before, act, after, every, files, tmp_path
):
    path = tmp_path / "session.db"
    with opened(path, every) as session:
        for t in count():
            for one in before:
                one(session, t)
            was_interrupted = interrupted(t, files, act, session, t)
            rounds, events = in_file(path)
            assert (rounds or 0, events) == (session.rounds, session._keeper.place.last)
            for one in (act, *after):
                one(session, t)
            assert session.rounds == t + 1
            if not was_interrupted:
                break
        assert t > 50
        found = stands(session)
    with tw.Session.open(path, LEARNER) as again:
        assert stands(again) == found
    with opened(tmp_path / "whole.db", every) as whole:
        for number in range(t + 1):
            for one in (*before, act, *after):
                one(whole, number)
        assert stands(whole) == found


def test_an_interrupt_of_the_check_after_an_interrupt_closes_the_session(tmp_path, monkeypatch):
    path, refused = tmp_path / "session.db", 0

    def interrupt(self):
        raise KeyboardInterrupt

    monkeypatch.setattr(File, "reread", interrupt)
    session = opened(path, 1000)
    for t in count():
        was_interrupted = interrupted(t, WHERE_IT_CHANGES, observe, session, t)
        try:
            observe(session, t)
        except CheckpointError:
            refused += 1
            session.close()
            session = opened(path, 1000)
            observe(session, t)
        assert in_file(path) == (t + 1, t + 1)
        if not was_interrupted:
            break
    assert 0 < refused < t
    found = stands(session)
    session.close()
    with opened(path, 1000) as again:
        assert stands(again) == found


@pytest.mark.parametrize("act", [observe, observe_by_number])
def test_a_session_in_memory_has_all_of_a_round_or_nothing_of_it(act):
    session, whole = tw.Session(LEARNER), tw.Session(LEARNER)

    def act_and_look(session, t):
        act(session, t)
        return session.state  # made of what a kernel left

    for t in count():
        was_interrupted = interrupted(t, ALL, act_and_look, session, t)
        act(session, t)
        act(whole, t)
        assert stands(session) == stands(whole)
        assert str(session.explain()) == str(whole.explain())
        if not was_interrupted:
            break
    assert t > 50
    for back in (t, t - 1, t - 50):
        session.rollback(back)
        whole.rollback(back)
        assert stands(session) == stands(whole)


def is_interrupted(act, seconds):
    """Whether an alarm after so many seconds ends it by a KeyboardInterrupt."""
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    gc.disable()
    try:
        signal.setitimer(signal.ITIMER_REAL, seconds)
        act()
        signal.setitimer(signal.ITIMER_REAL, 0.0)
    except KeyboardInterrupt:
        return True
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)
        gc.enable()
    return False


# one that comes while Python calls a destructor or a callback of the garbage collector is lost
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_what_a_kernel_is_given_is_whole_after_an_interrupt():
    """An interrupt is a KeyboardInterrupt, and a learner whose first run was interrupted plays as
    any other.
    """
    costs, limits = np.random.default_rng(3).random((2, 60, 20))
    K = tw.sets.Simplex(20)
    stream = tw.Stream(tw.functions.Linear(costs), tw.functions.Capacity(limits))
    losses, rng, found = tw.run(tw.LyapunovDescent(K), stream).losses, np.random.default_rng(0), 0
    for seconds in rng.uniform(1e-4, 2e-3, 400):
        learner = tw.LyapunovDescent(K)
        if is_interrupted(partial(tw.run, learner, stream), seconds):
            found += 1
            np.testing.assert_array_equal(tw.run(learner, stream).losses, losses)
    assert found > 0
