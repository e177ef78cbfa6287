"""Whether an operator can live with the decisions: `Ensemble` by default, the time of day as its
context and re-solving as its advice, where feedback comes late, decisions may not move far, ...

    late        feedback 3 and 24 rounds late on `routing`: 1.2 and 2.5 % of the loss, 2.2 and 5
                times the violation of none; with advice no worse than without
    max_move    decisions that move by at most 0.5: 0.2 % of the loss, p99 of churn at the cap

Generated streams at five seeds. `python -m benchmarks operating late --seeds 0 --rounds 500` takes
a minute.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable, Sequence
from pathlib import Path
from time import perf_counter
from typing import NamedTuple

import numpy as np

import tidewolf as tw
from benchmarks.experts_cases import VERDICTS, Case, Limits, cases, percent, times, verdict
from benchmarks.frontier import advised
from tidewolf.problems import Problem

# ---------------------------------------------------------------- late feedback


class Bar(NamedTuple):
    """What a delay may cost, over all seeds."""

    loss: float
    """in percent"""
    violation: float
    """times that without a delay"""


DELAYS = {3: Bar(1.2, 2.2), 24: Bar(2.5, 5.0)}
NO_WORSE = 0.1
"""Percent of the loss, and share of the violation, that advice may cost where feedback is late."""


class Numbers(NamedTuple):
    """A run in short, a round."""

    loss: float
    violation: float

    @classmethod
    def of(cls, runs: Sequence[Numbers]) -> Numbers:
        """The means of several."""
        losses, violations = zip(*runs, strict=True)
        return cls(statistics.mean(losses), statistics.mean(violations))

    def __str__(self) -> str:
        return f"{self.loss:.4f} / {self.violation:.5f}"


def delayed(stream: tw.Stream, delay: int) -> tw.Stream:
    """The same stream, told of so many rounds late."""
    arrives = np.arange(len(stream)) + delay if delay else None
    return tw.Stream(
        stream.losses, stream.constraints, time=stream.time, context=stream.context, arrives=arrives
    )


def late(limits: Limits) -> None:
    """Feedback that comes late."""
    print("feedback that comes late")
    for stream in limits.named(("routing",)):
        found = {
            (delay, with_advice): [
                _late(case, delay, with_advice) for case in cases(stream, limits)
            ]
            for delay in (0, *DELAYS)
            for with_advice in (False, True)
        }
        for with_advice, who in ((False, "season"), (True, "season and advice")):
            now = Numbers.of(found[0, with_advice])
            for delay, bar in DELAYS.items():
                runs = found[delay, with_advice]
                _against(f"{stream}, {who}, {delay} rounds late", runs, now, bar)
        for delay in DELAYS:
            alone, with_advice_ = (Numbers.of(found[delay, given]) for given in (False, True))
            loss, share = _gaps(with_advice_, alone)
            verdict(
                loss <= NO_WORSE and share <= 1.0 + NO_WORSE,
                f"{stream}, {delay} rounds late, advice against none: {with_advice_}, {alone}: "
                f"{loss:+.2f} %, x {share:.2f} (bar {NO_WORSE:+.1f}, x {1.0 + NO_WORSE:.1f})",
            )


def _late(case: Case, delay: int, with_advice: bool) -> Numbers:
    problem = case.problem
    season, *others = advised(problem)["experts"]
    learner = tw.Ensemble(problem.K, experts=[season, *(others if with_advice else ())])
    run = tw.run(learner, delayed(problem.stream, delay))
    numbers = Numbers(float(run.losses.mean()), float(run.violations.mean()))
    who = "with advice" if with_advice else "season"
    print(f"    {case}, {who}, {delay} rounds late: {numbers}", flush=True)
    return numbers


def _against(words: str, runs: Sequence[Numbers], now: Numbers, bar: Bar) -> None:
    """The mean of the seeds against the mean without a delay."""
    loss, share = _gaps(Numbers.of(runs), now)
    worst = max(times(one.violation, now.violation) for one in runs)
    verdict(
        loss <= bar.loss and share <= bar.violation,
        f"{words}: {Numbers.of(runs)}, in time {now}: {loss:+.2f} %, x {share:.2f}, worst seed x "
        f"{worst:.2f} (bar {bar.loss:+.1f}, x {bar.violation})",
    )


def _gaps(one: Numbers, other: Numbers) -> tuple[float, float]:
    return percent(one.loss, other.loss), times(one.violation, other.violation)


# ---------------------------------------------------------------- moves


CAP, CAPPED = 0.5, 0.2
"""How far a decision may move, and what that may cost, in percent of the loss."""


def max_move(limits: Limits) -> None:
    """Decisions that may not move far."""
    print(f"decisions that move by at most {CAP}")
    for stream in limits.named(("routing", "geant")):
        losses, churns = [], []
        for case in cases(stream, limits):
            free, capped = (_moving(case.problem, cap) for cap in (None, CAP))
            losses.append(percent(float(capped.losses.mean()), float(free.losses.mean())))
            churns.append(capped.churn.p99)
            print(
                f"    {case}: loss {capped.losses.mean():.4f}, free {free.losses.mean():.4f}: "
                f"{losses[-1]:+.2f} %, violation {capped.violations.mean():.5f}, free "
                f"{free.violations.mean():.5f}, churn p99 {capped.churn.p99:.3f}, free "
                f"{free.churn.p99:.3f}, price of holding back {capped.overrides.price:.3g}",
                flush=True,
            )
        if losses:
            verdict(
                statistics.mean(losses) <= CAPPED and max(churns) <= CAP * (1.0 + 1e-9),
                f"{stream}, moves of at most {CAP}: loss {statistics.mean(losses):+.2f} %, worst "
                f"{max(losses):+.2f} %, churn p99 {max(churns):.3f} (bar {CAPPED:+.1f}, {CAP})",
            )


def _moving(problem: Problem, cap: float | None) -> tw.Run:
    return tw.run(tw.Ensemble(problem.K, max_move=cap, **advised(problem)), problem.stream)


# ---------------------------------------------------------------- all of them


SECTIONS: dict[str, Callable[[Limits], None]] = {"late": late, "max_move": max_move}


def report(out: Path, arguments: Sequence[str] = ()) -> None:
    """Print the sections named, or all, with a verdict for each bar."""
    parser = argparse.ArgumentParser("python -m benchmarks operating")
    parser.add_argument("sections", nargs="*", metavar="section", help=", ".join(SECTIONS))
    parser.add_argument("--rounds", type=int, help="at most so many of each stream")
    parser.add_argument("--streams", help="such as routing,geant; all unless told")
    parser.add_argument("--seeds", help="such as 0,1; all unless told")
    given = parser.parse_args(arguments)
    for name in given.sections:
        if name not in SECTIONS:
            parser.error(f"there is no section {name!r}; there are {', '.join(SECTIONS)}.")
    limits = Limits(
        given.rounds,
        None if given.streams is None else tuple(given.streams.split(",")),
        None if given.seeds is None else tuple(map(int, given.seeds.split(","))),
    )
    begun = perf_counter()
    for name in given.sections or list(SECTIONS):
        print(f"{name}: ", end="")
        SECTIONS[name](limits)
        print(f"  ({(perf_counter() - begun) / 60:.1f} minutes so far)", flush=True)
    held = sum(holds for holds, _ in VERDICTS)
    print(f"{held} of {len(VERDICTS)} bars hold")
    for holds, words in VERDICTS:
        if not holds:
            print(f"  FAILS  {words}")
