"""The real thing in small: a run with its certificate, a projection, a session that is killed. It
takes seconds if the kernels are compiled, else up to two minutes.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from time import perf_counter
from typing import Any

from tidewolf.doctor.findings import Asked, Finding, Moving
from tidewolf.doctor.starting import command_for

_GROUP = "self-test"
_ROUNDS = 200
_REPORT = "Do not trust results here; run `tidewolf doctor --json` and report what it prints."


def check_run(asked: Asked, moving: Moving) -> Iterator[Finding]:
    """A short run of the routing problem, and everything that it certifies."""
    import tidewolf as tw
    from tidewolf.core.jit import compiling

    moving(f"a run of {_ROUNDS} rounds (the first one compiles its kernels, for up to a minute)")
    began, waited = perf_counter(), compiling()
    problem = _game()
    run = tw.run(tw.LyapunovDescent(problem.K), problem.stream)
    holds, regret = run.certificate.holds, run.regret
    seconds, waited = perf_counter() - began, compiling() - waited
    if holds is not True or regret is None or not regret[0] <= regret[1]:
        said = f"the certificate of a run of routing does not hold ({holds}, regret {regret})"
        yield Finding(_GROUP, "a run", "fails", said, _REPORT)
        return
    took = f"{seconds:.1f} s, {waited:.1f} of them for machine code"
    said = f"{_ROUNDS} rounds of routing, certificate holds ({took})"
    yield Finding(_GROUP, "a run", "ok", said)


def check_projection(asked: Asked, moving: Moving) -> Iterator[Finding]:
    """A member near the companion, which is no farther from any member than where it came from."""
    import numpy as np

    from tidewolf.projection import afp
    from tidewolf.sets import L2Ball, Simplex

    moving("projections")
    rng, count = np.random.default_rng(11), 0
    for K in (Simplex(6), _game().K, L2Ball(4)):
        for _ in range(10):
            y = K.center + 2.0 * K.radius * rng.normal(size=K.shape) / np.sqrt(K.center.size)
            found = afp(K, y, K.center, tol=1e-2 * K.radius**2)
            members = [K.lmo(rng.normal(size=K.shape)) for _ in range(8)]
            farther = max(
                float(np.linalg.norm(found.y - z) - np.linalg.norm(y - z)) for z in members
            )
            near = float(np.sum((found.x - found.y) ** 2)) <= 1.0001e-2 * K.radius**2
            if farther > 1e-9 * (1.0 + K.radius) or not near or K.excess(found.x) > 1e-7:
                said = f"a projection on {type(K).__name__} breaks its law"
                yield Finding(_GROUP, "projections", "fails", said, _REPORT)
                return
            count += 1
    said = f"{count} approximately feasible projections keep their law"
    yield Finding(_GROUP, "projections", "ok", said)


def check_session(asked: Asked, moving: Moving) -> Iterator[Finding]:
    """A session is killed in the middle, and goes on with the bits of one that never stopped."""
    import tidewolf as tw

    moving("a session that is killed")
    began = perf_counter()
    with tempfile.TemporaryDirectory(prefix="tidewolf-doctor-") as folder:
        database = Path(folder) / "session.db"
        kept = _killed(database)
        learner = session_learner()
        with tw.Session.open(database, learner) as session:
            found = session.rounds
            expected = _uninterrupted(found)
            same = learner.save(session.state) == expected[0]
            for t in range(found, SESSION_ROUNDS):
                observe_round(session, t)
            same = same and learner.save(session.state) == expected[1]
    seconds = perf_counter() - began
    if not kept <= found <= kept + 1:
        said = f"{kept} observations were acknowledged, and {found} are there after a kill"
        yield Finding(_GROUP, "a killed session", "fails", said, _REPORT)
    elif not same:
        said = f"a session killed after {found} rounds goes on with other numbers"
        yield Finding(_GROUP, "a killed session", "fails", said, _REPORT)
    else:
        said = f"killed after {found} rounds and resumed, bit for bit ({seconds:.1f} s)"
        yield Finding(_GROUP, "a killed session", "ok", said)


SESSION_ROUNDS = 60
_KILLED_AFTER = 25


def _killed(database: Path) -> int:
    """How many observations were acknowledged by a process that was killed while it observed."""
    command = command_for("tidewolf.doctor.selftest", "observe_for_ever", str(database))
    kept = 0
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        for _ in process.stdout:
            kept += 1
            if kept == _KILLED_AFTER:
                process.kill()
        error = process.stderr.read().decode(errors="replace").strip()
    if kept < _KILLED_AFTER:
        raise RuntimeError(f"the session ended by itself: {(error or 'no word').splitlines()[-1]}")
    return kept


def observe_for_ever(database: str) -> None:
    """What is killed: a line for every observation that is kept."""
    import tidewolf as tw

    with tw.Session.open(database, session_learner()) as session:
        for t in range(SESSION_ROUNDS):
            observe_round(session, t)
            sys.stdout.write("\n")
            sys.stdout.flush()


def session_learner() -> Any:
    """Who decides in the session that is killed."""
    import tidewolf as tw

    return tw.LyapunovDescent(_game().K)


def observe_round(session: Any, t: int) -> None:
    """One round, the same for whoever plays it."""
    session.play()
    stream = _game().stream
    session.observe(loss=stream.losses[t : t + 1], constraint=stream.constraints[t : t + 1])


@cache
def _game() -> Any:
    """One problem for all, so that few kernels have to be compiled."""
    import tidewolf as tw

    return tw.problems.routing(rounds=_ROUNDS, seed=0)


def _uninterrupted(rounds: int) -> tuple[bytes, bytes]:
    """What a session in memory would save after so many rounds, and after all."""
    import tidewolf as tw

    learner = session_learner()
    session = tw.Session(learner)
    saved = [learner.save(session.state)]
    for t in range(SESSION_ROUNDS):
        observe_round(session, t)
        saved.append(learner.save(session.state))
    return saved[rounds], saved[-1]
