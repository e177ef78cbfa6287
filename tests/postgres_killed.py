"""Run as a script: servers of one PostgreSQL that are killed, or stopped, from outside.

python postgres_killed.py forks URL LEARNER KILLS SEED FOLDER
    what killed.py does, with a session in PostgreSQL
python postgres_killed.py serve URL HOLDER SESSIONS
    observes in this many sessions, each in a thread of its own, until it is killed; prints
    a line "NAME ROUND" for each observation acknowledged, and "NAME refused KIND" at the end
"""

from __future__ import annotations

import os
import random
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

import tidewolf as tw
from killed import LATE, LEARNERS, TOLD, live, live_late, observe, uninterrupted, uninterrupted_late
from tidewolf.core.errors import HeldElsewhere, TidewolfError
from tidewolf.storage import SessionStore

ROUNDS = 60
LEARNER = LEARNERS["LyapunovDescent"]


def patiently(do: Any, *given: Any) -> Any:
    """Again, while PostgreSQL has not yet seen that the last holder is gone."""
    end = time.monotonic() + 10
    while True:
        try:
            return do(*given)
        except HeldElsewhere:
            if time.monotonic() > end:
                raise
            time.sleep(0.005)


def forks(url: str, name: str, kills: int, seed: int, folder: Path) -> None:
    learner, rng, busy = (LEARNERS | TOLD | LATE)[name], random.Random(seed), 0
    go_on, uninterrupted_run = (
        (live_late, uninterrupted_late) if name in LATE else (live, uninterrupted)
    )
    expected = uninterrupted_run(learner, ROUNDS)
    acknowledged, failed = folder / "acknowledged", folder / "failed"
    acknowledged.touch()
    for _ in range(kills):
        before = acknowledged.stat().st_size
        child = os.fork()
        if child == 0:
            try:
                patiently(go_on, url, learner, expected, acknowledged)
            except BaseException as error:
                failed.write_text(repr(error))
            os._exit(0)
        patience, end = rng.randrange(-2, 6), time.monotonic() + 30
        while acknowledged.stat().st_size < min(before + patience, len(expected) - 1):
            if failed.exists() or time.monotonic() > end:
                break
            time.sleep(2e-4)
        time.sleep((5e-3 if patience > 0 else 5e-2) * rng.random())
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        if failed.exists():
            sys.exit(failed.read_text())
        busy += acknowledged.stat().st_size > before
    patiently(go_on, url, learner, expected, acknowledged)
    print(busy)  # noqa: T201


def say(line: str) -> None:
    os.write(1, f"{line}\n".encode())


def serve(url: str, holder: str, count: int) -> None:
    store = SessionStore.open(url, holder=holder)

    def work(name: str) -> None:
        session = tw.Session.open(store, LEARNER, name=name, snapshot_every=9)
        try:
            for t in range(session.rounds, 200):
                with store.transaction(name) as transaction:
                    observe(session, t)
                transaction.future.result()
                say(f"{name} {t + 1}")
        except TidewolfError as error:
            say(f"{name} refused {type(error).__name__} {getattr(error, 'holder', '')}")

    for number in range(count):
        store.create(f"s{number}", "{}").result()
    threads = [threading.Thread(target=work, args=(f"s{n}",)) for n in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    store.close()


if __name__ == "__main__":
    _, mode, *rest = sys.argv
    if mode == "forks":
        forks(rest[0], rest[1], int(rest[2]), int(rest[3]), Path(rest[4]))
    else:
        serve(rest[0], rest[1], int(rest[2]))
