"""What the sections of `members` share: streams and their variants, runs in short, a rival's
frontier, and verdicts.

    generated streams   seeds 0 to 4
    recorded streams    eleven settings of the projection that should not matter (spread.py)

A frontier is held against a run at the run's own violation: between two neighbours of those points
that no other point beats in both numbers, linearly. A sweep is widened until it brackets that
violation; where it cannot get there, its most careful point counts.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from itertools import pairwise
from typing import Any, NamedTuple

import tidewolf as tw
from benchmarks.frontier import advised
from benchmarks.spread import MOVED, SHIPPED, TOLERANCES
from tidewolf.core.errors import InvalidInput
from tidewolf.methods.base import Learner
from tidewolf.problems import Problem
from tidewolf.projection import active_set, factored

GENERATED = ("routing", "geant", "uunet")
RECORDED = ("abilene", "freeway", "carbon")
STREAMS = ("abilene", "routing", "geant", "uunet", "freeway", "carbon")
SETTINGS: tuple[tuple[dict[str, float], float | None], ...] = (
    *((moved, None) for moved in MOVED),
    *(({}, tolerance) for tolerance in TOLERANCES),
)
"""Those that should not matter; the first is as shipped."""
WORST = 0.5
"""Points by which the worst variant may miss a bar that the median keeps."""


class Limits(NamedTuple):
    """How much of everything is played."""

    rounds: int | None = None
    streams: tuple[str, ...] | None = None
    seeds: tuple[int, ...] | None = None
    settings: int | None = None

    def named(self, streams: Sequence[str]) -> tuple[str, ...]:
        """Those of these streams that are to be played."""
        return tuple(name for name in streams if self.streams is None or name in self.streams)

    def seeded(self, seeds: Sequence[int]) -> tuple[int, ...]:
        """Those of these seeds that are to be played."""
        return tuple(seed for seed in seeds if self.seeds is None or seed in self.seeds)


class Case(NamedTuple):
    """A stream, and one of its variants."""

    stream: str
    seed: int = 0
    setting: int = 0
    rounds: int | None = None

    @property
    def place(self) -> Case:
        """The stream itself, whatever the setting."""
        return self._replace(setting=0)

    @property
    def problem(self) -> Problem:
        return _problem(self.stream, self.rounds, self.seed)

    def __str__(self) -> str:
        variant = f"setting {self.setting}" if self.stream in RECORDED else f"seed {self.seed}"
        return f"{self.stream}, {variant}"


class Totals(NamedTuple):
    """A run in short, a round."""

    loss: float
    violation: float
    calls: float
    solves: float
    worst: float
    """the largest violation of a round"""
    churn: float

    def __str__(self) -> str:
        return f"{self.loss:.4f} / {self.violation:.5f}"


@cache
def _problem(name: str, rounds: int | None, seed: int) -> Problem:
    return tw.problems.named(name)(rounds=rounds, seed=seed)


def cases(stream: str, limits: Limits, seeds: Sequence[int] = range(5)) -> list[Case]:
    """The variants of a stream; none, with the reason, where its record is not there."""
    try:
        rounds = limits.rounds and min(limits.rounds, len(_problem(stream, None, 0)))
    except InvalidInput as missing:
        print(f"  {stream}: skipped. {missing}")
        return []
    if stream in RECORDED:
        count = len(SETTINGS) if limits.settings is None else limits.settings
        return [Case(stream, 0, setting, rounds) for setting in range(count)]
    return [Case(stream, seed, 0, rounds) for seed in limits.seeded(seeds)]


def totals(run: tw.Run) -> Totals:
    """A run in short."""
    return Totals(
        float(run.losses.mean()),
        float(run.violations.mean()),
        run.oracle_calls / run.rounds,
        run.solves / run.rounds,
        float(run.violations.max()),
        float(run.churn.mean()),
    )


def played(learner: Learner[Any], stream: tw.Stream) -> Totals:
    """What a learner comes to on a stream."""
    return totals(tw.run(learner, stream))


@contextmanager
def moved(settings: dict[str, float]) -> Iterator[None]:
    """The projection with other settings for a while."""
    modules = (active_set, factored)
    try:
        for name, value in {**SHIPPED, **settings}.items():
            for module in modules:
                if hasattr(module, name):
                    setattr(module, name, value)
        yield
    finally:
        for name, value in SHIPPED.items():
            for module in modules:
                if hasattr(module, name):
                    setattr(module, name, value)


@cache
def ours(case: Case, bare: bool = False, columns: bool = False, caution: float = 10.0) -> Totals:
    """The flagship on a case, no horizon given; bare: without context and advice."""
    problem, (constants, tolerance) = case.problem, SETTINGS[case.setting]
    given = {} if bare else advised(problem, columns)
    with moved(constants):
        return played(
            tw.Ensemble(problem.K, caution=caution, tolerance=tolerance, **given), problem.stream
        )


class Level(NamedTuple):
    """What a frontier has at a violation."""

    loss: float
    most_careful: float
    """its least violation"""
    reached: bool
    """whether it is that careful anywhere"""


class Frontier:
    """A rival as its knob moves, played where it is asked for."""

    def __init__(
        self, play: Callable[[float], Totals], knobs: Sequence[float], factor: float | None = None
    ) -> None:
        self.play, self.factor = play, factor
        self.points = {knob: play(knob) for knob in knobs}
        self.wider = self.narrower = 0

    def at(self, violation: float) -> Level:
        """The least loss at a violation, the sweep widened until it brackets it."""
        if self.factor is not None:
            self._widen(violation, self.factor)
        best = self.undominated()
        careful = best[0]
        if violation <= careful[0]:
            return Level(careful[1], careful[0], violation == careful[0])
        for (v, loss), (w, less) in pairwise(best):
            if violation <= w:
                share = (violation - v) / (w - v)
                return Level(loss + share * (less - loss), careful[0], True)
        return Level(best[-1][1], careful[0], True)

    def undominated(self) -> list[tuple[float, float]]:
        """(violation, loss) of those points that no other beats in both, the most careful first."""
        best: list[tuple[float, float]] = []
        for violation, loss in sorted((p.violation, p.loss) for p in self.points.values()):
            if not best or loss < best[-1][1]:
                best.append((violation, loss))
        return best

    def _widen(self, violation: float, factor: float) -> None:
        """More cautious until it is careful enough, less until it is not, `MOST_WIDER` times in all
        and however often it is asked: the most careful point of ever wider sweeps costs ever more,
        which would flatter whoever is held against it.
        """
        while self.wider < MOST_WIDER and self._violations()[0] > violation:
            self.wider += 1
            self._play(max(self.points) * factor)
        while self.narrower < MOST_WIDER and self._violations()[-1] < violation:
            self.narrower += 1
            self._play(min(self.points) / factor)

    def _violations(self) -> list[float]:
        return sorted(p.violation for p in self.points.values())

    def _play(self, knob: float) -> None:
        self.points[knob] = self.play(knob)


MOST_WIDER = 5
"""Times a sweep is widened in either direction."""


def percent(ours: float, theirs: float) -> float:
    """By how many percent ours is above."""
    if theirs == 0.0:
        return 0.0 if ours == 0.0 else math.copysign(math.inf, ours)
    return 100.0 * (ours - theirs) / abs(theirs)


def times(ours: float, theirs: float) -> float:
    """How many times theirs ours is."""
    return ours / theirs if theirs else (1.0 if ours == 0.0 else math.inf)


VERDICTS: list[tuple[bool, str]] = []


def verdict(holds: bool, words: str) -> bool:
    """Print whether a bar is kept, and remember it."""
    print(f"  {'HOLDS' if holds else 'FAILS'}  {words}", flush=True)
    VERDICTS.append((holds, words))
    return holds


def median_and_worst(words: str, gaps: Sequence[float], bar: float, slack: float = WORST) -> bool:
    """The verdict on gaps in percent: the median at most the bar, the worst within `slack` of
    it.
    """
    middle, worst = statistics.median(gaps), max(gaps)
    return verdict(
        middle <= bar and worst <= bar + slack,
        f"{words}: median {middle:+.2f} %, worst {worst:+.2f} % of {len(gaps)} (bar {bar:+.1f}, "
        f"worst {bar + slack:+.1f})",
    )
