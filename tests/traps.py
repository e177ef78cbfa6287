"""Problems that go wrong on purpose, for cells to be made of.

They live in a file of their own so that workers can import them.
"""

import json
import os
import signal
import time
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from tidewolf.core.errors import InvalidInput
from tidewolf.experiments import Experiment

ROUTING = replace(Experiment.builtin("routing"), rounds=10)


class Trap(NamedTuple):
    """Does `what` to whoever builds it: always, or as long as the file `once` is not there."""

    name: str
    what: str
    once: str = ""

    @property
    def identity(self):
        return f"trap {self.name}"

    def problem(self, seed):
        if not self.once or not Path(self.once).exists():
            if self.once:
                Path(self.once).touch()
            getattr(self, f"_{self.what}")()
        return ROUTING.problem(seed)

    def learner(self, entrant, problem, seed):
        return ROUTING.learner(entrant, problem, seed)

    def _refuse(self):
        raise InvalidInput("This stream is refused.")

    def _crash(self):
        raise ZeroDivisionError("a bug")

    def _die(self):
        os.kill(os.getpid(), signal.SIGKILL)

    def _wait(self):
        time.sleep(0.3)

    def _threads(self):
        """Tells how many threads linear algebra has here."""
        import threadpoolctl

        threads = [each["num_threads"] for each in threadpoolctl.threadpool_info()]
        raise InvalidInput(json.dumps([os.getpid(), os.environ.get("NUMBA_NUM_THREADS"), *threads]))
