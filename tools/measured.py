"""What only a fresh interpreter can say of a tree: the cost of its import and of one round."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

PROCESSES = 7

_NUMPY = "import numpy"
_EVERY_SET = "import numpy, tidewolf as tw; tw.sets.every()"
_TIMED = "import time; start = time.perf_counter(); {}; print(time.perf_counter() - start)"

_ROUND = """
import json, sys
from collections import Counter
from pathlib import Path
import tidewolf as tw

HOME = str(Path(tw.__file__).parent)
problem = tw.problems.routing(rounds=80, seed=0)

def calls(rounds):
    learner, stream, counts = tw.LyapunovDescent(problem.K), problem.stream[:rounds], Counter()
    def count(frame, event, _):
        if event == "call" and frame.f_code.co_filename.startswith(HOME):
            counts[frame.f_code.co_filename] += 1
    sys.setprofile(count)
    tw.run(learner, stream)
    sys.setprofile(None)
    return counts

calls(80)
short, long = calls(40), calls(80)
each = {file: (long[file] - short[file]) / 40 for file in long}
print(json.dumps({str(Path(file).relative_to(HOME)): number for file, number in each.items()}))
"""


class Round(NamedTuple):
    """One round of a warm `tw.run`: its Python calls in files of the package, and these files."""

    calls: float
    files: list[str]


def fresh_python(src: Path, code: str) -> str:
    """What a fresh interpreter prints that finds the package in `src`."""
    environment = os.environ | {"PYTHONPATH": str(src), "PYTHONDONTWRITEBYTECODE": ""}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"A measurement of {src} failed:\n{done.stderr}")
    return done.stdout


def import_milliseconds(src: Path) -> float:
    """Importing tidewolf and touching every set, over importing NumPy alone.

    Medians of fresh processes that alternate.
    """
    fresh_python(src, _EVERY_SET)  # leaves bytecode
    seconds: dict[str, list[float]] = {_NUMPY: [], _EVERY_SET: []}
    for _ in range(PROCESSES):
        for code, times in seconds.items():
            times.append(float(fresh_python(src, _TIMED.format(code))))
    return 1e3 * (statistics.median(seconds[_EVERY_SET]) - statistics.median(seconds[_NUMPY]))


def one_round(src: Path) -> Round:
    """LyapunovDescent on the routing problem: what each of forty more rounds adds.

    Files are those with at least one call a round.
    """
    calls: dict[str, float] = json.loads(fresh_python(src, _ROUND))
    files = sorted(file for file, number in calls.items() if number >= 1.0)
    return Round(sum(calls.values()), files)
