"""Whether one learner is enough: `Ensemble` by default, no horizon given, with the time of day and
re-solving as its experts, against what it should not lose to.

    frontiers    exact projections over caution, 1 % below at our violation (0.5 % on abilene); and
                 re-solving over headroom, picked in hindsight, 0.3 % above at most
    attacks      advisers that break: 0.5 % of the loss, 1.2 times the violation, in the median
    leader       Meta's trace with experts.Leader(): at most 12.40 % above the least possible in
                 rounds 7,500 to 9,999, and 1 ms of CPU time per round
    curvature    generated records of prices, with and without mean reversion: with experts.Static()
                 at least 0.95 of the wealth of uniform weights
    bounds       above the true regret by 1/20 of the trivial regret at most; 60 times the violation

Generated streams are played at five seeds; the worst seed may miss a bar by 0.5 points. All of it
takes an hour; `python -m benchmarks experts frontiers --streams routing --seeds 0 --rounds 500` a
minute.

A frontier is compared with a run at the run's own violation, linearly between neighbours of the
points that no other point beats in both numbers. A sweep is widened until it brackets that
violation; if it cannot, its most careful point counts.
"""

import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

import tidewolf as tw
from benchmarks.cases import RECORDED, advised, built
from benchmarks.measuring import Bar, Limits, play_sections
from tidewolf.problems import Problem

STREAMS = ("abilene", "routing", "geant", "uunet", "freeway", "carbon")
CAUTIONS = (1.0, 2.2, 4.6, 10.0, 22.0, 46.0, 100.0)
HEADROOMS = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0)
MOST_WIDER = 5
"""Times a sweep is widened in either direction."""
PROJECTING = {"abilene": -0.5}
"""The bar against exact projections if it is not -1 %."""
RESOLVING, WORST = 0.3, 0.5
ATTACKED = ("routing", "geant", "abilene", "carbon")
ATTACKED_ROUNDS = 6_000
LOSS, VIOLATION = 0.5, 1.2
REGRET_SHARE, VIOLATION_BOUND = 5.0, 60.0
LEADER, WEALTH = 12.40, 0.95

Points = np.ndarray[Any, np.dtype[np.float64]]


class Means(NamedTuple):
    """Loss and violation per round."""

    loss: float
    violation: float

    def __str__(self) -> str:
        return f"{self.loss:.4f} / {self.violation:.5f}"


def means(learner: Any, stream: tw.Stream) -> Means:
    run = tw.run(learner, stream)
    return Means(float(run.losses.mean()), float(run.violations.mean()))


def percent(ours: float, theirs: float) -> float:
    """By how many percent ours is above."""
    return 100.0 * (ours - theirs) / abs(theirs)


def times(ours: float, theirs: float) -> float:
    """How many times theirs ours is; 1 if both are 0."""
    return ours / theirs if theirs else (1.0 if ours == 0.0 else float("inf"))


@cache
def problem_of(stream: str, seed: int, rounds: int | None) -> Problem | None:
    return next(iter(built([stream], rounds, seed)), None)


def problems(limits: Limits, streams: Sequence[str], seeds: int) -> Iterator[tuple[str, Problem]]:
    """Each stream, at each of its seeds, with its name."""
    for stream in limits.named(streams):
        for seed in limits.seeded(range(1 if stream in RECORDED else seeds)):
            found = problem_of(stream, seed, limits.rounds)
            if found is not None:
                yield f"{stream}, seed {seed}", found


@cache
def ours(problem: Problem, caution: float = 10.0) -> Means:
    """Ensemble as it comes, no horizon given."""
    return means(tw.Ensemble(problem.K, caution=caution, experts=advised(problem)), problem.stream)


class Frontier:
    """A baseline as its knob moves."""

    def __init__(
        self, play: Callable[[float], Means], knobs: Sequence[float], factor: float | None = None
    ) -> None:
        self.play, self.factor = play, factor
        self.points = {knob: play(knob) for knob in knobs}

    def at(self, violation: float) -> tuple[float, bool]:
        """The least loss at a violation, and whether the baseline is that careful anywhere."""
        for _ in range(MOST_WIDER if self.factor else 0):
            found = [point.violation for point in self.points.values()]
            if min(found) > violation:
                knob = max(self.points) * self.factor
            elif max(found) < violation:
                knob = min(self.points) / self.factor
            else:
                break
            self.points[knob] = self.play(knob)
        best = self.undominated()
        loss = np.interp(violation, [p.violation for p in best], [p.loss for p in best])
        return float(loss), violation >= best[0].violation

    def undominated(self) -> list[Means]:
        """The points that no other beats in both numbers, the most careful first."""
        best: list[Means] = []
        for point in sorted(self.points.values(), key=lambda p: (p.violation, p.loss)):
            if not best or point.loss < best[-1].loss:
                best.append(point)
        return best


@cache
def projecting(p: Problem) -> Frontier:
    """Sinha-Vaze with exact projections over caution; it knows the horizon."""
    kind = tw.baselines.SinhaVaze
    return Frontier(
        lambda caution: means(kind(p.K, horizon=len(p), caution=caution), p.stream), CAUTIONS, 2.2
    )


@cache
def resolving(p: Problem) -> Frontier:
    """Re-solving with the last round over headroom, to be picked in hindsight."""
    return Frontier(
        lambda headroom: means(tw.baselines.Resolve(p.K, headroom=headroom), p.stream), HEADROOMS
    )


def frontiers(limits: Limits) -> Iterator[Bar]:
    """Our loss above both frontiers at our violation, per stream."""
    gaps: dict[tuple[str, str], list[float]] = {}
    for name, problem in problems(limits, STREAMS, 5):
        mine = ours(problem)
        for baseline, frontier in (("projection", projecting), ("re-solving", resolving)):
            loss, reached = frontier(problem).at(mine.violation)
            note = "" if reached else ", which is never as careful"
            gaps.setdefault((problem.name, baseline), []).append(percent(mine.loss, loss))
            print(f"    {name}: {mine}, {baseline} {loss:.4f}{note}", flush=True)
    for (stream, baseline), found in gaps.items():
        bar = PROJECTING.get(stream, -1.0) if baseline == "projection" else RESOLVING
        yield from _median_and_worst(f"{stream}, loss above {baseline}", found, bar)


def _median_and_worst(name: str, gaps: Sequence[float], bar: float) -> Iterator[Bar]:
    yield Bar(f"{name}, median", statistics.median(gaps), bar, "%")
    yield Bar(f"{name}, worst of {len(gaps)}", max(gaps), bar + WORST, "%")


def points_of(learner: Any, stream: tw.Stream) -> Points:
    """The points that a learner plays."""
    return np.array([played.x for played in tw.play(learner, stream)])


def broken(problem: Problem) -> Iterator[tuple[str, Points]]:
    """Advice that is good (the best point of the next round) until it breaks."""
    following = points_of(tw.baselines.Resolve(problem.K), problem.stream)
    good = np.concatenate([following[1:], following[-1:]])  # re-solving is one round late
    T, gradients = len(problem), problem.stream.losses.gradients(problem.K.center)
    worst = np.array([problem.K.lmo(-gradients[t]) for t in range(T)])
    t, half = np.arange(T), T // 2
    yield "worst vertex from T/2", np.where((t >= half)[:, None], worst, good)
    rows = np.concatenate([t[:half], half + np.random.default_rng(0).permutation(T - half)])
    yield "shuffled from T/2", good[rows]
    for turn in (50, 200, 1000):
        for first, words in ((1, "good first"), (0, "worst first")):
            bad = (t // turn) % 2 == first
            if bad.any():
                yield f"turns of {turn}, {words}", np.where(bad[:, None], worst, good)


def attacks(limits: Limits) -> Iterator[Bar]:
    """An adviser that breaks, against the same run without it."""
    found: dict[str, list[tuple[float, float]]] = {}
    few = limits._replace(rounds=min(ATTACKED_ROUNDS, limits.rounds or ATTACKED_ROUNDS))
    for name, problem in problems(few, ATTACKED, 3):
        before = ours(problem)
        print(f"    {name}: without it {before}", flush=True)
        for attack, points in broken(problem):
            now = _with(problem, {attack: points})
            gap, more = percent(now.loss, before.loss), times(now.violation, before.violation)
            print(f"      {attack:24} {now}: {gap:+.2f} %, x {more:.2f}", flush=True)
            found.setdefault(attack, []).append((gap, more))
    for attack, both in found.items():
        gaps, ratios = zip(*both, strict=True)
        yield from _median_and_worst(f"{attack}, loss", gaps, LOSS)
        yield Bar(f"{attack}, violation, median", statistics.median(ratios), VIOLATION, "x")


def _with(problem: Problem, advice: Mapping[str, Points]) -> Means:
    stream = tw.Stream(problem.stream.losses, problem.stream.constraints, advice=advice)
    return means(tw.Ensemble(problem.K, experts=[*advised(problem), *advice]), stream)


def bounds(limits: Limits) -> Iterator[Bar]:
    """How far the certificate of a run is from what was measured."""
    for name, problem in problems(limits, STREAMS, 1):
        run = tw.run(tw.Ensemble(problem.K, experts=advised(problem)), problem.stream)
        trivial, (regret, _) = run.certificate.regret.trivial, run.regret
        share = 100.0 * (run.bound.regret - regret) / trivial
        ratio = times(run.bound.violation, float(run.violations.sum()))
        print(f"    {name}: regret {regret:.4g}, at most {run.bound.regret:.4g}", flush=True)
        yield Bar(f"{name}, regret bound, of the trivial one", share, REGRET_SHARE, "%")
        yield Bar(f"{name}, violation bound", ratio, VIOLATION_BOUND, "x")


def leader(limits: Limits) -> Iterator[Bar]:
    """The best fixed split of the past as an expert, on Meta's trace."""
    for problem in built(["meta"], limits.rounds):
        plain, learner = (tw.Ensemble(problem.K, experts=e) for e in ((), (tw.experts.Leader(),)))
        tw.run(learner, problem.stream[:300])  # compiled
        seconds = time.process_time()
        run = tw.run(learner, problem.stream)
        seconds = time.process_time() - seconds
        for name, losses in (
            ("with", run.losses),
            ("without", tw.run(plain, problem.stream).losses),
        ):
            first, all_of = losses[: len(losses) // 4].mean(), losses.mean()
            print(f"    {name}: first quarter {first:.4f}, all rounds {all_of:.4f}", flush=True)
        counted = float(run.losses[3 * len(run.losses) // 4 :].mean())
        yield Bar("meta, above the least possible", 100.0 * (counted - 1.0), LEADER, "%")
        yield Bar("meta, CPU time per round", 1e3 * seconds / len(run.losses), 1.0, "ms")


def record(seed: int, reverting: bool, days: int = 2000, stocks: int = 12) -> Points:
    """Prices over those of the day before: a market, and each stock's own drift and noise, which
    returns by a tenth per day if it is reverting.
    """
    rng = np.random.default_rng((seed, int(reverting)))
    market = 0.0004 + 0.008 * rng.standard_normal((days, 1))
    own = 0.0003 * rng.standard_normal(stocks) + 0.018 * rng.standard_normal((days, stocks))
    if reverting:
        level = np.zeros((days + 1, stocks))
        for t in range(days):
            level[t + 1] = 0.9 * level[t] + own[t]
        own = np.diff(level, axis=0)
    return np.asarray(np.exp(market + own))


def curvature(limits: Limits) -> Iterator[Bar]:
    """Wealth over that of uniform weights; the prior was chosen at the seeds 0 and 1."""
    for seed in limits.seeded(range(5)):
        for reverting in (False, True):
            returns = record(seed, reverting, limits.rounds or 2000)
            learner = tw.Ensemble(tw.sets.Simplex(12), experts=(tw.experts.Static(),))
            run = tw.run(learner, tw.Stream(tw.functions.LogWealth(returns)))
            over = float(np.exp(-run.losses.sum() - np.log(returns.mean(axis=1)).sum()))
            name = f"wealth, {'with' if reverting else 'without'} mean reversion, seed {seed}"
            yield Bar(name, over, WEALTH, "x", least=True)


def report(words: Sequence[str] = ()) -> None:
    sections = {"frontiers": frontiers, "attacks": attacks, "bounds": bounds, "leader": leader}
    sections["curvature"] = curvature
    play_sections("experts", sections, words)
