"""Run as a script: children that observe in a durable session are killed, one after another, at
random moments; or one that serves is killed from outside.

    python killed.py DATABASE LEARNER KILLS SEED [FOLDER]     of a file, or of an URL and a folder
    python killed.py serve URL HOLDER         prints each round that was acknowledged, and the kind
                                              of error at the end

Each child first checks that the file holds everything a child before it was acknowledged, and at
most one thing more: the very bits of the session that was never stopped. Then it goes on, and
writes a line down for everything acknowledged. The last one is left alone. Prints how many of those
killed had been acknowledged something. Those called "late" decide rounds ahead, observe them in
some order, with other points played, or never, and now and then go back.
"""

import os
import random
import shutil
import signal
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np

import tidewolf as tw
from tidewolf.core import arrays, errors, feedback
from tidewolf.methods.base import Bound, Learner
from tidewolf.methods.late import next_round
from tidewolf.storage import SessionStore

ROUNDS, EXPIRE_AFTER, RNG = 200, 6, np.random.default_rng(3)
COSTS, LIMITS = RNG.standard_normal((ROUNDS, 5)), RNG.uniform(0.1, 0.6, (ROUNDS, 5))
LEARNERS = {
    "LyapunovDescent": tw.LyapunovDescent(tw.sets.Simplex(5), horizon=200),
    "PrimalDual": tw.PrimalDual(tw.sets.Simplex(5), horizon=200),
    "DriftPlusPenalty": tw.DriftPlusPenalty(tw.sets.Simplex(5), horizon=200, block=7),
    "BanditPrimalDual": tw.BanditPrimalDual(
        tw.sets.Box(-np.ones(5), np.ones(5)), horizon=200, block=4, seed=5
    ),
}
ADVICE = RNG.dirichlet(np.ones(5), ROUNDS + 1)
ADVICE[::4] = np.nan


def saved(session):
    return session.learner.save(session.state)


def as_if_killed(path):
    """What a kill at this moment would leave, in another folder."""
    folder = Path(tempfile.mkdtemp(dir=path.parent))
    for file in (path, Path(f"{path}-wal")):
        if file.exists():
            shutil.copy(file, folder / file.name)
    return folder / path.name


class Told(NamedTuple):
    t: int = 0
    advised: Any = None
    count: int = 0
    calls: int = 0
    distance: float = 0.0


@dataclass(frozen=True, eq=False, repr=False)
class Follower(Learner[Told]):
    """Plays what it is advised by "a", else the vertex of its context; told twice, it differs."""

    needs: ClassVar[Any] = feedback.FirstOrder
    state_type: ClassVar = Told

    K: Any

    def start(self):
        return Told()

    def with_info(self, state, known):
        point = (known.advice or {}).get("a")
        if point is None:
            point = self.K.lmo(
                np.roll(np.arange(1.0 * self.K.center.size), known.context or state.count)
            )
        return state._replace(advised=arrays.frozen(point + 0.0), count=state.count + 1)

    def act(self, state):
        return self.K.center if state.advised is None else state.advised

    def rounds_left(self, state):
        return 1

    def update(self, state, seen):
        return Told(state.t + 1, count=state.count)

    def bound(self, record):
        return Bound(None, None, "Nothing is promised.")

    @classmethod
    def examples(cls, K, horizon):
        return (cls(K),)


FOLLOWER = Follower(tw.sets.Simplex(5))
TOLD = {
    "Follower": FOLLOWER,
    "Ensemble": tw.Ensemble(
        tw.sets.Simplex(5), experts=[tw.experts.Categories(3), "a", tw.experts.Resolve()]
    ),
}
"""Those whose decisions depend on what is known before a round."""


def tell(session, t):
    """The decision of round t, with what is known before it."""
    return session.play(time=60.0 * t, context=t % 3, advice={"a": ADVICE[t]})


def observe(session, t):
    """As functions and as numbers, in turn: kernels play what is given as numbers."""
    if t % 3:
        session.observe(costs=COSTS[t], capacities=LIMITS[t])
        return
    session.observe(
        loss=tw.functions.Linear.one(COSTS[t]), constraint=tw.functions.Capacity.one(LIMITS[t])
    )


LATE = {
    "late": LEARNERS["LyapunovDescent"],
    "late Ensemble": tw.Ensemble(
        tw.sets.Simplex(5), experts=[tw.experts.Categories(3), "a"], step_scales=(0.3, 1.0)
    ),
}


def in_turn(session, i):
    """The i-th thing that happens: the session is told of a round, or observes it."""
    (observe if i % 2 else tell)(session, i // 2)


def late(session, i):
    """The i-th thing that happens to a session whose rounds are observed late."""
    due = [r for r in session.pending if r % 7 != 3]  # the others expire
    upcoming = next_round(session.state)
    if i % 29 == 28:
        session.rollback(max(0, upcoming - 4))
    elif len(due) < 3 or i % 5 == 0:
        known = {"context": i % 3, "advice": {"a": ADVICE[i % ROUNDS]}} if i % 2 else {}
        session.play(round=upcoming + i % 3, **known)
    else:
        r = due[i % len(due)]
        played = np.roll(np.eye(5)[0], i) if i % 3 == 0 else None
        session.observe(
            round=r, costs=COSTS[r % ROUNDS], capacities=LIMITS[r % ROUNDS], played=played
        )


def uninterrupted(learner, happens, count):
    """What a session in memory would save, at first and after each thing that happens."""
    session = tw.Session(learner, expire_after=EXPIRE_AFTER)
    found = [saved(session)]
    for i in range(count):
        happens(session, i)
        found.append(saved(session))
    return found


def live(database, learner, happens, expected, done):
    """What a child does with its life: `done` has a byte for each thing acknowledged."""
    count = done.stat().st_size
    how = {"snapshot_every": 9, "expire_after": EXPIRE_AFTER}
    with tw.Session.open(database, learner, **how) as session:
        more = saved(session) != expected[count]
        assert saved(session) == expected[count + more], f"other bits after {count}"
        line = os.open(done, os.O_WRONLY | os.O_APPEND)
        os.write(line, b"\n" * more)
        for i in range(count + more, len(expected) - 1):
            happens(session, i)
            os.write(line, b"\n")
        assert saved(session) == expected[-1]


def patiently(do, *given):
    """Again, while PostgreSQL has not yet seen that the last holder is gone, or a connection that
    was cut off is not yet back.
    """
    end = time.monotonic() + 10
    while True:
        try:
            return do(*given)
        except errors.CheckpointError:
            if time.monotonic() > end:
                raise
            time.sleep(0.005)


def main(database, name, kills, seed, folder=""):
    is_file = not database.startswith("postgresql:")
    place = Path(folder) if folder else Path(database).parent
    learner, rng, busy = (LEARNERS | TOLD | LATE)[name], random.Random(int(seed)), 0
    happens, count = (late, 1) if name in LATE else (in_turn, 2)
    expected = uninterrupted(learner, happens, count * (ROUNDS if is_file else 60))
    done, failed, last = place / "done", place / "failed", len(expected) - 1
    life = database, learner, happens, expected, done
    done.touch()
    for _ in range(int(kills)):
        before = done.stat().st_size
        child = os.fork()
        if child == 0:
            try:
                patiently(live, *life)
            except BaseException as error:
                failed.write_text(repr(error))
            os._exit(0)
        patience, end = rng.randrange(-4, 7), time.monotonic() + 30
        while done.stat().st_size < min(before + patience, last):
            if failed.exists() or time.monotonic() > end:
                break
            time.sleep(2e-4)
        time.sleep((5e-3 if patience > 0 else 3e-2) * rng.random())
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        if failed.exists():
            sys.exit(failed.read_text())
        busy += done.stat().st_size > before
        if is_file and done.stat().st_size == last:  # once more from the start
            for file in place.iterdir():
                file.unlink()
            done.touch()
    patiently(live, *life)
    print(busy)  # noqa: T201


def serve(url, holder):
    """Observe in one session, and print the rounds acknowledged, until it is refused."""
    store = SessionStore.open(url, holder=holder)
    store.create("one", "{}").result()
    session = tw.Session.open(store, LEARNERS["LyapunovDescent"], name="one", snapshot_every=9)
    try:
        for t in range(ROUNDS):
            with store.transaction("one") as transaction:
                observe(session, t)
            transaction.future.result()
            print(t + 1, flush=True)  # noqa: T201
    except errors.TidewolfError as error:
        print(type(error).__name__, flush=True)  # noqa: T201
    store.close()


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve(*sys.argv[2:])
    else:
        main(*sys.argv[1:])
