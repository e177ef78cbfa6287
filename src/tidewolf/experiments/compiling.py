"""Compile the kernels of a run on a second processor.

A process compiles on one processor. So when a run begins to compile, a second process plays the
first rounds of the same learners, the last learner first. Machine code is kept on disk, and each
process waits for what the other one is compiling: each compiles about half.
"""

from __future__ import annotations

import pickle
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from tidewolf.core.errors import TidewolfError
from tidewolf.core.jit import ON_COMPILING
from tidewolf.evaluation.recording import Recording
from tidewolf.experiments.experiment import Experiment
from tidewolf.experiments.jobs import processors
from tidewolf.methods import compiled_rounds

CHILD = f"from {__name__} import play_first; play_first()"


@contextmanager
def compiling_beside(experiment: Experiment) -> Iterator[None]:
    """While the context lasts, a second process compiles too, if this one has to."""
    started: list[subprocess.Popen[bytes]] = []

    def start() -> None:
        words, nothing = [sys.executable, "-c", CHILD], subprocess.DEVNULL
        with suppress(OSError):  # then one process compiles it all
            child = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=nothing, stderr=nothing)
            started.append(child)
            assert child.stdin is not None
            with child.stdin as end:
                end.write(pickle.dumps(experiment))

    if processors() > 1:
        ON_COMPILING.append(start)
    try:
        yield
    finally:
        ON_COMPILING.clear()
        for child in started:
            child.kill()
            child.wait()


def play_first() -> None:
    """Play the first rounds of every learner of the experiment on stdin, and throw them away."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the run ends this process
    compiled_rounds.WORTH = 0  # there is time to compile what only longer runs would
    experiment: Experiment = pickle.load(sys.stdin.buffer)
    seed = experiment.seeds[0]
    problem = experiment.problem(seed)
    experiment = experiment.taken(problem, all_play=True)
    for entrant in reversed(experiment.entrants()):
        with suppress(TidewolfError):
            learner = experiment.learner(entrant, problem, seed)
            next(Recording(learner, problem.stream).advance(), None)
