"""Files as they are written today, on the machine where this ran.

    python -m tools.fixtures tests/fixtures/format3

writes a state, two databases, a complete run folder and an interrupted one, and beside them, in
expected.json, the decisions of a session that resumes from them. Every version from
0.3 on reads them.
"""

import json
import shutil
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

import tidewolf as tw

ROUNDS, MORE = 12, 8
"""How many rounds a file knows of, and how many come after."""


def numbers(rounds: int, columns: int, shift: int) -> Any:
    """The same on every machine: fractions of 97, from -1/2 to 1/2."""
    t, i = np.arange(rounds)[:, None], np.arange(columns)[None, :]
    return ((37 * t + 101 * i + 13 * t * i + shift) % 97) / 97.0 - 0.5


COSTS = numbers(ROUNDS + MORE, 4, 0)
CAPACITIES = 0.4 + 0.5 * numbers(ROUNDS + MORE, 4, 50)
LEARNERS = {
    "state": tw.LyapunovDescent(tw.sets.Simplex(4), horizon=100, caution=3.0),
    "session.db": tw.LyapunovDescent(tw.sets.CappedSimplex(4, 0.6)),
    "functions.db": tw.DriftPlusPenalty(tw.sets.Simplex(4), horizon=100, block=5),
}


def observe(session: Any, t: int) -> None:
    """What round t shows."""
    session.observe(
        loss=tw.functions.Linear.one(COSTS[t]), constraint=tw.functions.Capacity.one(CAPACITIES[t])
    )


def decisions(session: Any) -> list[list[float]]:
    """What a session that knows of `ROUNDS` rounds decides in those after."""
    found = []
    for t in range(ROUNDS, ROUNDS + MORE):
        found.append(session.play().tolist())
        observe(session, t)
    return found


def write(folder: Path) -> None:
    """All of it."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    expected: dict[str, Any] = {"tidewolf": tw.__version__}
    for name, learner in LEARNERS.items():
        path = folder / name
        session = tw.Session(learner) if name == "state" else tw.Session.open(path, learner)
        for t in range(ROUNDS):
            observe(session, t)
        if name == "state":
            session.save(path)
        session.close()
        expected[name] = decisions(tw.Session(learner, session.state))
        Path(f"{path}-lock").unlink(missing_ok=True)
    expected.update(write_runs(folder))
    (folder / "expected.json").write_text(json.dumps(expected, indent=1) + "\n")


def write_runs(folder: Path) -> dict[str, Any]:
    """A complete run folder, and one of the same experiment that was interrupted."""
    from tidewolf.cli import main
    from tidewolf.core.errors import Interrupted
    from tidewolf.experiments import RunFolder

    complete, interrupted = folder / "run", folder / "interrupted"
    arguments = ["run", "adversarial", "--rounds", "30", "--learner", "LyapunovDescent"]
    assert main([*arguments, "--out", str(complete), "--quiet"]) == 0
    (complete / "report.html").unlink()  # large, and written again
    run = RunFolder.create(interrupted, RunFolder.open(complete).experiment)
    with suppress(Interrupted):
        run.play(stopping=lambda: True)
    (found,) = RunFolder.open(complete).play()
    return {"losses": found.runs[0].losses.tolist()}


if __name__ == "__main__":
    write(Path(sys.argv[1]))
