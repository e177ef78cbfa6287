"""What a benchmark is made of: tasks and methods, and how they are added.

A task is a problem (data, K, losses, constraints), the rounds, seeds and seconds that it is played
for, the first round that counts, and numbers of its own. A method is called in one way on all
tasks:

    player = make(given, **setting)         before round 0; `given` says what is known by then
    x_t = player.decide()                   a point of K
    player.observe(loss_t, constraint_t)    one round each: .values(x), .gradients(x)

`make` may also return a learner of tidewolf, which is run by `tw.run`. Rounds before the first one
that counts are played and observed: methods that train do it there. A sweep lists other settings,
the best of which in hindsight is reported apart.

    python -m benchmarks add mine           writes mine/method.py, or checks what is there
    python -m benchmarks run routing --from mine
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import tidewolf as tw
from tidewolf.core.types import Floats
from tidewolf.problems import Problem

Make = TypeVar("Make", bound=Callable[..., Any])
Setting = Mapping[str, Any]
Numbers = Mapping[str, float]


class Given(NamedTuple):
    """What a method knows before round 0."""

    K: Any
    """the set; calls of its oracle are counted"""
    rounds: int
    first: int
    """the first round that counts"""
    period: int | None
    """rounds after which patterns repeat, if that is known"""
    seed: int


class Task(NamedTuple):
    suite: str
    build: Callable[..., Problem]
    """of the number of rounds, None for the usual one, and the seed"""
    first: int = 0
    recorded: bool = False
    """whether there is one record, the same for every seed"""
    numbers: Callable[[Problem, Floats], Numbers] | None = None
    """more numbers of the decisions in the rounds that count"""
    compared: bool = True
    """whether the best fixed point is sought; on large sets that takes longer than playing"""
    rounds: int | None = None
    """played at most, unless the command line names a number; None: all"""
    seeds: int = 5
    seconds: float = 300.0
    """of processor time, that all seeds of a method with one setting may take"""
    methods: Sequence[str] = ()
    """those that are played with default settings, unless others are named; none: all, with all"""
    unit: str = "loss"
    """what a loss is, for pictures"""

    def problem(self, rounds: int | None, seed: int) -> Problem:
        """The problem with at most so many rounds."""
        if not self.recorded:
            return self.build(rounds=rounds, seed=seed)
        whole = self.build(seed=seed)
        return replace(whole, stream=whole.stream[:rounds])


class Method(NamedTuple):
    make: Callable[..., Any]
    sweep: Sequence[Setting] = ()
    suites: Sequence[str] = ()
    """those it is for; none: all"""


TASKS: dict[str, Task] = {}
METHODS: dict[str, Method] = {}


def task(suite: str, name: str = "", **settings: Any) -> Callable[[Make], Make]:
    """Add a function `(rounds, seed) -> Problem` as a task of a suite."""

    def add(build: Make) -> Make:
        TASKS[name or build.__name__] = Task(suite, build, **settings)
        return build

    return add


def method(
    name: str, sweep: Sequence[Setting] = (), suites: Sequence[str] = ()
) -> Callable[[Make], Make]:
    """Add a class or a function `(given, **setting)` as a method."""

    def add(make: Make) -> Make:
        METHODS[name] = Method(make, sweep, suites)
        return make

    return add


def load(folder: Path | None = None) -> list[str]:
    """Import our tasks and methods, and those of a folder: Python files, and experiment files, each
    of which is a task of the suite "own". The names of its methods.
    """
    from benchmarks import methods, tasks  # noqa: F401

    before = dict(METHODS)
    if folder and not folder.is_dir():
        raise SystemExit(f"There is no folder {folder}; `python -m benchmarks add` makes one.")
    for path in sorted(folder.glob("*.toml")) if folder else ():
        task("own", path.stem, recorded=True)(partial(_of_file, path))
    for path in sorted(folder.glob("*.py")) if folder else ():
        name = f"benchmarks_of_{folder.name if folder else ''}_{path.stem}"
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec is not None
        assert spec.loader is not None
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return [name for name, each in METHODS.items() if before.get(name) is not each]


def _of_file(path: Path, seed: int) -> Problem:
    return tw.experiments.load(path).problem(seed)
