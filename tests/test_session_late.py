"""Sessions whose rounds are observed late, out of order, twice, or never, and played otherwise than
they were decided: in memory, saved and loaded, and in a file, they are the same session.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tidewolf as tw
from killed import ADVICE, COSTS, LEARNERS, LIMITS, TOLD
from tidewolf.core.errors import (
    TidewolfError,
)
from tidewolf.methods.late import coming_round

K = tw.sets.Simplex(5)
PLAIN = tw.LyapunovDescent(K)
LATE: dict[str, Any] = {
    "LyapunovDescent": PLAIN,
    "PrimalDual": LEARNERS["PrimalDual"],
    "Ensemble": TOLD["Ensemble"],
    "capped": tw.Ensemble(K, step_scales=(0.3, 1.0), max_move=0.2),
}
OTHERS = np.random.default_rng(7).dirichlet(np.ones(5), 300)
"""What is played in place of decisions."""
MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


def saved(session: tw.Session[Any]) -> bytes:
    return session.learner.save(session.state)


def met(session: tw.Session[Any], t: int, **more: Any) -> None:
    session.observe(costs=COSTS[t], capacities=LIMITS[t], **more)


def as_if_killed(path: Path) -> Path:
    """What a kill at this moment would leave, in another folder."""
    folder = Path(tempfile.mkdtemp(dir=path.parent))
    for file in (path, Path(f"{path}-wal")):
        if file.exists():
            shutil.copy(file, folder / file.name)
    return folder / path.name


def answer(session: tw.Session[Any], do: Any) -> Any:
    """What a session answers, refusals too; those change nothing."""
    before = saved(session)
    try:
        x = do(session)
    except TidewolfError as error:
        assert saved(session) == before
        assert str(error).endswith(".")
        return type(error), str(error)
    return None if x is None else x.tobytes()


class Trio:
    """The same session in memory, saved and loaded again and again, and in a file."""

    def __init__(self, learner: Any, folder: Path, expire_after: int | None, **how: Any) -> None:
        self.learner, self.folder = learner, folder
        self.expire, self.how = {"expire_after": expire_after}, how
        self.path = folder / "session.db"
        self.memory = tw.Session(learner, **self.expire)
        self.loaded = tw.Session(learner, **self.expire)
        self.durable = tw.Session.open(self.path, learner, **how, **self.expire)

    def does(self, do: Any) -> Any:
        answers = [answer(one, do) for one in (self.memory, self.loaded, self.durable)]
        assert answers[0] == answers[1] == answers[2]
        assert saved(self.memory) == saved(self.loaded) == saved(self.durable)
        assert self.memory.pending == self.durable.pending
        return answers[0]

    def stops(self, killed: bool) -> None:
        self.loaded.save(self.folder / "state")
        self.loaded = tw.Session.load(self.folder / "state", self.learner, **self.expire)
        copy = as_if_killed(self.path) if killed else self.path
        self.durable.close()
        self.path = copy
        self.durable = tw.Session.open(copy, self.learner, **self.how, **self.expire)
        assert saved(self.durable) == saved(self.memory)

    def goes_back(self, number: int) -> None:
        for one in (self.memory, self.durable):
            one.rollback(number)
        assert saved(self.memory) == saved(self.durable)
        self.memory.save(self.folder / "back")
        self.loaded = tw.Session.load(self.folder / "back", self.learner, **self.expire)


def step(trio: Trio, kind: int, n: int) -> None:
    """One thing that may happen to a session."""
    session = trio.memory
    coming, stands = coming_round(session.state), session.round
    some = [*session.pending, stands][n % (len(session.pending) + 1)]
    known = {"time": 60.0 * coming, "context": coming % 3, "advice": {"a": ADVICE[coming]}}
    match kind:
        case 0:
            trio.does(lambda one: one.play())
        case 1:
            trio.does(lambda one: one.play(round=stands, **known))
        case 2:
            trio.does(lambda one: one.play(round=coming + n % 3, **(known if n % 2 else {})))
        case 3 if session.rounds:
            trio.does(lambda one: met(one, stands))
        case 3 | 4:
            trio.does(lambda one: met(one, some, round=some))
        case 5:
            x = OTHERS[some]
            trio.does(lambda one: met(one, some, round=some, played=x))
            assert trio.does(lambda one: met(one, some, round=some, played=x)) is None
        case 6:  # again, or other than before
            r = n % (coming + 2)
            trio.does(lambda one: met(one, r + n % 2, round=r))
        case 7:
            point = OTHERS[some] * (1 + n % 2)
            trio.does(
                lambda one: one.observe(
                    round=some, loss_gradient=COSTS[some], constraint_value=-1.0, played=point
                )
            )
        case 8:
            trio.does(lambda one: one.play(round=n % (coming + 1)))
        case 9:
            trio.stops(killed=bool(n % 2))
        case _:
            trio.goes_back(max(coming - n % 4, 0))


@pytest.mark.parametrize("name", LATE)
@settings(max_examples=15, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 10), st.integers(0, 11)), max_size=25),
    st.sampled_from([None, 1, 3]),
    st.integers(1, 12),
)
def test_late_twice_overridden_expired_and_stopped_it_is_one_session(name, script, expire, every):
    with tempfile.TemporaryDirectory(dir=MEMORY) as place:
        trio = Trio(LATE[name], Path(place), expire, snapshot_every=every)
        for kind, n in script:
            step(trio, kind, n)
        trio.stops(killed=True)
        trio.durable.close()


@settings(max_examples=15, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 11)), max_size=25), st.integers(1, 6))
def test_without_history_it_is_the_same_session(script, every):
    with tempfile.TemporaryDirectory(dir=MEMORY) as place:
        trio = Trio(PLAIN, Path(place), 2, snapshot_every=every, keep_history=False)
        for kind, n in script:
            step(trio, kind, n)
        trio.stops(killed=True)
        trio.durable.close()
