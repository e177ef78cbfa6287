"""Bars of `members` that are trials of their own: log wealth, broken advisers, traffic engineering,
more oracle calls, max-cut relaxations, and horizons.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Self, cast

import numpy as np

import tidewolf as tw
from benchmarks.experts_cases import (
    Case,
    Limits,
    Totals,
    cases,
    median_and_worst,
    percent,
    played,
    times,
    totals,
    verdict,
)
from benchmarks.frontier import advised
from tidewolf.core.batch import Batch
from tidewolf.core.errors import InvalidInput
from tidewolf.problems.meta import COUNTED

Points = np.ndarray[Any, np.dtype[np.float64]]

# ---------------------------------------------------------------- log wealth

RECORDS = ((36, 5000), (5, 1000))
"""Shares, and days."""
REVERSIONS = (0.0, 0.05, 0.3)
"""The part of its distance from trend that a price loses every day."""
UNIFORM = 0.9


def price_relatives(days: int, shares: int, seed: int, reversion: float) -> Points:
    """A generated record: prices today over prices yesterday."""
    rng = np.random.default_rng(seed)
    drift, volatility = rng.normal(4e-4, 4e-4, shares), rng.uniform(0.01, 0.04, shares)
    noise = rng.normal(size=(days, shares)) * volatility
    if reversion == 0.0:
        return np.exp(drift + noise - volatility**2 / 2)
    level, found = np.zeros(shares), np.empty((days, shares))
    for day in range(days):
        step = noise[day] - reversion * level
        level, found[day] = level + step, np.exp(drift + step)
    return found


def wealth(limits: Limits) -> None:
    """Log wealth on generated records, with and without mean reversion."""
    print("log wealth on generated records")
    short, ratios = [], []
    for shares, days in RECORDS:
        for reversion in REVERSIONS:
            for seed in limits.seeded(range(3)):
                record = price_relatives(min(days, limits.rounds or days), shares, seed, reversion)
                run = tw.run(
                    tw.Ensemble(tw.sets.Simplex(shares)), tw.Stream(tw.functions.LogWealth(record))
                )
                own, uniform = -float(run.losses.sum()), float(np.log(record.mean(axis=1)).sum())
                members = run.learner.experts_of(run.final_state)
                best = max(-float(m.loss) for m in members if m.loss is not None)
                short.append(best - math.log(len(members)) - own)
                ratios.append(math.exp(own - uniform))
                print(
                    f"    {shares} shares, {len(record)} days, reversion {reversion:g}, seed "
                    f"{seed}: log wealth {own:.3f}, best member {best:.3f} (over {len(members)}: "
                    f"{best - math.log(len(members)):.3f}), uniform {uniform:.3f}, best share "
                    f"{float(np.log(record).sum(axis=0).max()):.3f}",
                    flush=True,
                )
    verdict(
        max(short) <= 1e-9,
        "log wealth: at least the best member's wealth over the number of members, short of it by "
        f"{max(short):+.3f} in logarithms at worst",
    )
    verdict(
        min(ratios) >= UNIFORM,
        f"log wealth: {min(ratios):.3g} times that of uniform weights at worst, median "
        f"{statistics.median(ratios):.3g} (bar {UNIFORM})",
    )


# ---------------------------------------------------------------- broken advisers

ATTACKED = ("routing", "geant", "abilene", "carbon")
ATTACKED_ROUNDS = 6_000
TURNS = (50, 200, 1000)
GOOD = "good"
LOSS, VIOLATION, TENFOLD = 0.5, 1.2, 0.2


def advice_of(learner: Any, stream: tw.Stream) -> Points:
    """The points that a learner plays."""
    return np.array([played.x for played in tw.play(learner, stream)])


class Broken(NamedTuple):
    """Advice, and the rounds in which it is broken."""

    points: Points
    bad: np.ndarray[Any, np.dtype[np.bool_]]


def good_advice(problem: tw.problems.Problem, others: bool) -> Points:
    """Re-solving with the last round; beside others who do just that, the best point of the coming
    round, for who is not trusted breaks unnoticed.
    """
    stream = problem.stream
    if not others:
        return advice_of(tw.baselines.Resolve(problem.K, headroom=2.0), stream)
    # what re-solving plays after a round is the best point for it; the last round has no successor
    following = advice_of(tw.baselines.Resolve(problem.K), stream)
    return np.concatenate([following[1:], following[-1:]])


def broken(problem: tw.problems.Problem, good: Points) -> Iterator[tuple[str, Broken]]:
    """Good advice that goes wrong."""
    T, gradients = len(problem), problem.stream.losses.gradients(problem.K.center)
    worst = np.array([problem.K.lmo(-gradients[t]) for t in range(T)])
    t, half = np.arange(T), T // 2
    yield GOOD, Broken(good, np.zeros(T, dtype=bool))
    late = t >= half
    yield "worst vertex from T/2", Broken(np.where(late[:, None], worst, good), late)
    rows = np.concatenate([t[:half], half + np.random.default_rng(0).permutation(T - half)])
    yield "shuffled from T/2", Broken(good[rows], late)
    for turn in TURNS:
        for first, words in ((1, "good first"), (0, "worst first")):
            bad = (t // turn) % 2 == first
            if bad.any():
                yield f"turns of {turn}, {words}", Broken(np.where(bad[:, None], worst, good), bad)


def attacks(limits: Limits) -> None:
    """Advisers that break, beside the other advice and alone; and a good one ten times over.

    Printed too is how much an adviser was trusted while good and while broken: one that nobody
    trusted when it broke shows nothing.
    """
    print("an adviser that breaks, against the same run without it")
    found: dict[str, list[tuple[float, float]]] = {}
    tenfold = []
    for stream in limits.named(ATTACKED):
        few = limits._replace(rounds=min(ATTACKED_ROUNDS, limits.rounds or 10**9), settings=1)
        for case in cases(stream, few, range(3)):
            for others in (False, True):
                words = "beside the other advice" if others else "alone"
                before = totals(_with(case, others, {}))
                print(f"    {case}, {words}: without {before}, worst round {before.worst:.3f}")
                for name, (points, bad) in broken(case.problem, good_advice(case.problem, others)):
                    run = _with(case, others, {name: points})
                    now = totals(run)
                    above = percent(now.loss, before.loss)
                    more = times(now.violation, before.violation)
                    print(
                        f"      {name:24} {now}: {above:+.2f} %, x {more:.2f}, worst round "
                        f"{now.worst:.3f}; {_trusted(run, name, bad)}",
                        flush=True,
                    )
                    if name != GOOD:
                        found.setdefault(f"{name}, {words}", []).append((above, more))
                        continue
                    ten = totals(_with(case, others, {f"{GOOD} {i}": points for i in range(10)}))
                    tenfold.append(percent(ten.loss, now.loss))
                    print(f"      {'good, ten times over':24} {ten}: {tenfold[-1]:+.2f} %")
    for name, both in found.items():
        median_and_worst(f"{name}, loss", [above for above, _ in both], LOSS)
        ratios = [more for _, more in both]
        middle = statistics.median(ratios)
        verdict(
            middle <= VIOLATION,
            f"{name}, violation: median x {middle:.2f}, worst x {max(ratios):.2f} of {len(both)} "
            f"(bar x {VIOLATION})",
        )
    if tenfold:
        largest = max(map(abs, tenfold))
        verdict(
            largest <= TENFOLD,
            f"a good adviser ten times over changes the loss by {largest:.2f} % at most (bar "
            f"{TENFOLD})",
        )


def _trusted(run: tw.Run, name: str, bad: np.ndarray[Any, np.dtype[np.bool_]]) -> str:
    """The mean weight of an adviser while good and while broken, and just before it broke."""
    weights = np.array(run.measures)[:, [m.name for m in run.experts].index(name)]
    words = [f"{weights[~bad].mean():.2f} while good"] if not bad.all() else []
    if bad.any():
        words.append(f"{weights[bad].mean():.2f} while broken")
        breaks = np.flatnonzero(bad[1:] & ~bad[:-1])
        if len(breaks):
            words.append(f"{weights[breaks].mean():.2f} in rounds before a break")
    return "trusted " + ", ".join(words)


def _with(case: Case, others: bool, advice: Mapping[str, Points]) -> tw.Run:
    problem = case.problem
    given = {"experts": [*(advised(problem)["experts"] if others else ()), *advice]}
    stream = problem.stream
    if advice:
        stream = tw.Stream(stream.losses, stream.constraints, advice=advice)
    return tw.run(tw.Ensemble(problem.K, **given), stream)


# ---------------------------------------------------------------- traffic engineering

NOISE = 0.3
ALONE, REVERSED, BESIDE = 1.127, 1.14, 0.2


def knowing(problem: tw.problems.Problem, seed: int) -> Points:
    """Splits that are best for the coming matrix up to lognormal noise, by linear programs."""
    losses: Any = problem.stream.losses
    noise = np.exp(NOISE * np.random.default_rng(seed).normal(size=losses.demands.shape))
    demands = np.vstack([losses.demands * noise, losses.demands[-1:]])
    noisy = tw.functions.MaxUtilization(losses.incidence, demands, losses.capacities, losses.pairs)
    resolved = advice_of(tw.baselines.Resolve(problem.K), tw.Stream(noisy))
    return resolved[1:]  # what it plays in the next round is the best for this one


def meta(limits: Limits) -> None:
    """Traffic engineering on the `meta` record, over the rounds that count."""
    print("traffic engineering, mean over the counted rounds")
    try:
        problem = tw.problems.meta(rounds=limits.rounds)
    except InvalidInput as missing:
        print(f"  skipped. {missing}")
        return
    T, K = len(problem), cast(Any, problem.K)
    counted = COUNTED if COUNTED.stop <= T else slice(3 * T // 4, T)

    def mean(advice: Mapping[str, Points]) -> float:
        stream = tw.Stream(problem.stream.losses, advice=advice or None)
        named: Any = list(advice)
        return float(tw.run(tw.Ensemble(K, experts=named), stream).losses[counted].mean())

    alone = mean({})
    verdict(alone <= ALONE, f"meta without advice: {alone:.4f} (bar {ALONE})")
    for seed in limits.seeded(range(3)):
        splits = knowing(problem, seed)
        own = float(problem.stream.losses.values_at(splits)[counted].mean())
        beside = mean({"knowing": splits})
        above = percent(beside, min(alone, own))
        verdict(
            above <= BESIDE,
            f"meta with an adviser that knows the coming matrix up to noise, seed {seed}: "
            f"{beside:.4f}, the adviser alone {own:.4f}, {above:+.2f} % above the better (bar "
            f"{BESIDE:+.1f})",
        )
        turned = splits.copy()
        for first, size in zip(np.cumsum([0, *K.sizes]), K.sizes, strict=False):
            turned[T // 2 :, first : first + size] = splits[T // 2 :, first : first + size][:, ::-1]
        after = mean({"knowing": turned})
        verdict(
            after <= REVERSED,
            f"meta with that adviser's splits reversed from the middle on, seed {seed}: "
            f"{after:.4f} (bar {REVERSED})",
        )


# ---------------------------------------------------------------- more oracle calls

CALLS = (1.0, 2.0, 3.0, 5.0, 10.0)
WORSE = 1.0


def more_calls(limits: Limits) -> None:
    """Whether more calls a round ever hurt."""
    print("oracle calls a round: neither total 1 % worse than with fewer, unless the other gains")
    for stream in limits.named(("pairs", "freeway")):
        for case in cases(stream, limits._replace(settings=1), range(1)):
            for others in (True, False):
                words = f"{stream}, {'defaults' if others else 'without context and advice'}"
                problem = case.problem
                given = advised(problem) if others else {}
                found = []
                for calls in CALLS:
                    run = played(
                        tw.Ensemble(problem.K, calls_per_round=calls, **given), problem.stream
                    )
                    print(f"    {words}, {calls:g} calls: {run}, made {run.calls:.2f}", flush=True)
                    found.append(run)
                bad = [
                    f"{CALLS[j]:g} than {CALLS[i]:g}"
                    for j in range(len(found))
                    for i in range(j)
                    if _worse(found[j], found[i])
                ]
                verdict(not bad, f"{words}: worse with {', '.join(bad) or 'no number of'} calls")


def _worse(more: Totals, fewer: Totals) -> bool:
    loss, violation = percent(more.loss, fewer.loss), percent(more.violation, fewer.violation)
    return any(a > WORSE and -b < a for a, b in ((loss, violation), (violation, loss)))


# ---------------------------------------------------------------- max-cut

NODES, EDGES, DRAWN, CUTS_ROUNDS = 100, 0.1, 10, 1500
NEAR, BROKEN = 3.0, 0.2


class DiagonalLimits(Batch):
    """g_t(X) = max_{i in drawn_t} X_ii - 1."""

    def __init__(self, drawn: np.ndarray[Any, np.dtype[np.int64]]) -> None:
        object.__setattr__(self, "drawn", drawn)

    drawn: np.ndarray[Any, np.dtype[np.int64]]

    @property
    def shape(self) -> tuple[int, ...]:
        return NODES, NODES

    def __len__(self) -> int:
        return len(self.drawn)

    def view(self, rounds: slice) -> Self:
        return type(self)(self.drawn[rounds])

    def values(self, x: Any) -> Any:
        return x[self.drawn, self.drawn].max(axis=1) - 1.0

    def subgradient(self, x: Any, weights: Any) -> Any:
        found = np.zeros(self.shape)
        largest = x[self.drawn, self.drawn].argmax(axis=1)
        for row, active, weight in zip(self.drawn, largest, weights, strict=True):
            found[row[active], row[active]] += weight
        return found

    def slopes(self, x: Any) -> Any:
        return np.ones(len(self))

    @classmethod
    def examples(cls) -> Sequence[Self]:
        return ()


def cut(seed: int, rounds: int) -> tuple[Points, tw.Stream]:
    """The cut of a random graph, to be minimised, and its stream."""
    rng = np.random.default_rng(seed)
    A = np.triu((rng.random((NODES, NODES)) < EDGES).astype(float), 1)
    A = A + A.T
    drawn = np.array([rng.choice(NODES, DRAWN, replace=False) for _ in range(rounds)])
    C = -0.25 * (np.diag(A.sum(axis=1)) - A)
    losses = tw.functions.Linear(np.broadcast_to(C, (rounds, NODES, NODES)))
    return C, tw.Stream(losses, DiagonalLimits(drawn))


def least_cut(C: Points, passes: int = 300, rank: int = 30) -> float:
    """min { <C, X> : X psd, X_ii <= 1 }, X = V V' a row at a time; of such ranks no local minimum
    is any other.
    """
    V = np.random.default_rng(0).normal(size=(len(C), rank))
    V /= np.linalg.norm(V, axis=1, keepdims=True)
    for _ in range(passes):
        for i in range(len(C)):
            pull = C[i] @ V - C[i, i] * V[i]
            size = float(np.linalg.norm(pull))
            if size > 0.0:
                V[i] = -pull / size
    return float((C * (V @ V.T)).sum())


def max_cut(limits: Limits) -> None:
    """A max-cut relaxation, ten random diagonal limits a round."""
    print(f"max-cut relaxation, n = {NODES}, last quarter")
    K = tw.sets.BoundedPSD(NODES, float(NODES))
    for seed in limits.seeded(range(3)):
        C, stream = cut(seed, limits.rounds or CUTS_ROUNDS)
        best, last = least_cut(C), slice(3 * len(stream) // 4, None)
        for learner in (tw.Ensemble(K), tw.LyapunovDescent(K), tw.LyapunovFrankWolfe(K)):
            run = tw.run(learner, stream)
            loss, violation = (float(each[last].mean()) for each in (run.losses, run.violations))
            beyond = 100.0 * (loss / best - 1.0)
            words = (
                f"max-cut, seed {seed}, {type(learner).__name__}: {loss:.2f}, {beyond:+.1f} % "
                f"beyond the optimum {best:.2f}, violation {violation:.3f} (bars {NEAR:g} % on "
                f"either side, {BROKEN}), calls {run.oracle_calls / run.rounds:.2f}"
            )
            if type(learner) is tw.Ensemble:
                verdict(abs(beyond) <= NEAR and violation < BROKEN, words)
            else:
                print(f"    {words}", flush=True)


# ---------------------------------------------------------------- horizons

ROUNDS = {
    "routing": (200, 2_000, 50_000),
    "geant": (200, 2_000, 50_000),
    "uunet": (200, 2_000, 50_000),
    "carbon": (200, 2_000, 17_544),
}
DEAR = 2_000
"""Beyond so many rounds without advice, whose programs would take hours."""
TOLD, TOLD_VIOLATION = 0.3, 1.1


def horizon(limits: Limits) -> None:
    """What not knowing the horizon costs."""
    print("without a horizon, against the same run with it")
    for stream in limits.named(tuple(ROUNDS)):
        for rounds in ROUNDS[stream]:
            if rounds > (limits.rounds or rounds):
                continue
            losses, violations = [], []
            few = limits._replace(rounds=rounds, settings=1)
            for case in cases(stream, few) if stream == "carbon" else _long(stream, few):
                problem = case.problem
                given = advised(problem)
                if rounds > DEAR:
                    del given["experts"][1:]
                known, unknown = (
                    played(tw.Ensemble(problem.K, horizon=T, **given), problem.stream)
                    for T in (rounds, None)
                )
                losses.append(percent(unknown.loss, known.loss))
                violations.append(times(unknown.violation, known.violation))
                print(
                    f"    {case}, {rounds} rounds: {unknown}, told {known}: {losses[-1]:+.2f} %, x "
                    f"{violations[-1]:.2f}",
                    flush=True,
                )
            if losses:
                words = f"{stream}, {rounds} rounds{', no advice' if rounds > DEAR else ''}"
                median_and_worst(f"{words}, loss without a horizon", losses, TOLD)
                middle, worst = statistics.median(violations), max(violations)
                verdict(
                    middle <= TOLD_VIOLATION,
                    f"{words}, violation without a horizon: median x {middle:.2f}, worst x "
                    f"{worst:.2f} (bar x {TOLD_VIOLATION})",
                )


def _long(stream: str, limits: Limits) -> list[Case]:
    """Seeds of a generated stream, as many rounds as are asked for."""
    return [Case(stream, seed, 0, limits.rounds) for seed in limits.seeded(range(5))]
