"""`tidewolf compare` and `tidewolf sweep` on two processes beside one.

    path  =  processor seconds of the command itself  +  the most of those of a process it started

is what the command would take on as many free processors as it has processes, whatever else the
machine does meanwhile; where the two overlap, or wait, the clock differs. Seconds are read from
/proc a few times a second, so only Linux is measured.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.bars import Bar, show

SHARE = 0.6
"""Of the time on one, at most."""

COMMANDS = {
    "compare": ("compare", "routing", "--rounds", "1500"),
    "sweep": (
        *("sweep", "routing", "--horizons", "1000,2000", "--seeds", "0,1"),
        *("--knob", "caution=1,10,100", "--learner", "Ensemble", "--learner", "SinhaVaze"),
    ),
}


def report() -> None:
    """Both commands, with their bars."""
    print("Two processes beside one: processor seconds on the longest path")
    show(bars())


def bars() -> list[Bar]:
    """The path on two over the path on one."""
    found = []
    for name, words in COMMANDS.items():
        one, two = _seconds(words, 1), _seconds(words, 2)
        paths = [own + max(others, default=0.0) for own, others in (one, two)]
        print(
            f"  {name}: alone {one[0]:.1f} s; two {two[0]:.1f} s and "
            f"{', '.join(f'{each:.1f}' for each in sorted(two[1], reverse=True) if each > 1)} s"
        )
        found.append(
            Bar(f"{name}, two processes beside one", paths[1] / paths[0], SHARE, "of the time")
        )
    return found


def _seconds(words: tuple[str, ...], jobs: int) -> tuple[float, list[float]]:
    """Processor seconds of a command, and of each process it started."""
    with TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "tidewolf", *words, "--jobs", str(jobs), "-q"]
        process = subprocess.Popen([*command, "--out", folder])
        seen: dict[int, float] = {}
        while process.poll() is None:
            seen |= _family(process.pid)
            time.sleep(0.1)
        if process.returncode:
            raise RuntimeError(f"{' '.join(command)} ended with {process.returncode}")
    return seen.pop(process.pid), list(seen.values())


def _family(first: int) -> dict[int, float]:
    """Processor seconds of a process and of all that descend from it, by number."""
    parents, seconds = dict[int, int](), dict[int, float]()
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            words = stat.read_text().rpartition(")")[2].split()
        except OSError:  # it has ended
            continue
        number = int(stat.parent.name)
        parents[number] = int(words[1])
        seconds[number] = (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")
    family = {first}
    while more := {n for n, parent in parents.items() if parent in family} - family:
        family |= more
    return {number: seconds[number] for number in family & seconds.keys()}
