"""What an operator meets: late feedback, capped moves, an unknown horizon, a link that fails, and
advice that breaks.

    late        feedback 3 and 24 rounds late on `routing`: 1.2 and 2.5 % of the loss, 2.2 and 5
                times the violation; with advice no worse than without
    max_move    decisions that move by at most 0.5: 0.2 % of the loss, p99 of churn at the cap
    horizon     no horizon given, against the same run with it: 0.3 % of the loss, 1.1 times the
                violation, from 200 rounds on
    attacks     advisers that break: 0.5 % of the loss, 1.2 times the violation, in the median; the
                worst seed may miss it by 0.5 points
    bounds      above the true regret by 1/20 of the trivial regret at most; 60 times the violation
    recovery    a link of `routing` or a tunnel of `tunnels` out for 144 rounds, with experts and
                without: the loss of the first round within 10 % of re-solving's, the mean of the
                outage within 3 %, and within 12 rounds of the end within 1 % of the run without

`Ensemble` by default, with the time of day and re-solving as its experts, at five seeds.
`python -m benchmarks operating late --seeds 0 --rounds 500` takes a minute.
"""

import statistics
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

import tidewolf as tw
from benchmarks.cases import advised
from benchmarks.measuring import Bar, Limits, play_sections
from benchmarks.registry import TASKS, load
from tidewolf.core import errors, types
from tidewolf.problems import Problem

DELAYS = {3: (1.2, 2.2), 24: (2.5, 5.0)}
"""Rounds late: what that may cost in percent of the loss, and in times the violation."""
NO_WORSE = 0.1
"""Percent of the loss, and share of the violation, that advice may cost if feedback is late."""
CAP, CAPPED = 0.5, 0.2
"""How far a decision may move, and what that may cost in percent of the loss."""
ROUNDS = {"routing": 50_000, "geant": 50_000, "uunet": 50_000, "carbon": 17_544}
"""The longest run of each stream whose horizon is not given."""
PROJECTED = 2_000
"""Exact projections are played up to so many rounds."""
FIRST, OUTAGE = 400, 144
STREAMS = ("abilene", "routing", "geant", "uunet", "freeway", "carbon")
ATTACKED = ("routing", "geant", "abilene", "carbon")
ATTACKED_ROUNDS = 6_000
LOSS, VIOLATION, WORST = 0.5, 1.2, 0.5
REGRET_SHARE, VIOLATION_BOUND = 5.0, 60.0


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


def problems(limits: Limits, streams: Sequence[str], seeds: int) -> Iterator[tuple[str, Problem]]:
    """Each stream, at each of its seeds, with its name; those that are absent are printed."""
    load()
    for stream in limits.named(streams):
        for seed in limits.seeded(range(1 if TASKS[stream].recorded else seeds)):
            try:
                yield f"{stream}, seed {seed}", TASKS[stream].problem(limits.rounds, seed)
            except errors.InvalidInput as missing:
                print(f"  {stream}: skipped. {missing}")


def _mean(found: Sequence[Means]) -> Means:
    return Means(*np.mean(found, axis=0).tolist())


def late(limits: Limits) -> Iterator[Bar]:
    """Feedback that is late, with and without advice."""
    found: dict[tuple[int, bool], list[Means]] = {}
    for name, problem in problems(limits, ("routing",), 5):
        for delay in (0, *DELAYS):
            stream, arrives = problem.stream, np.arange(len(problem)) + delay
            given: Any = {"time": stream.time, "context": stream.context, "arrives": arrives}
            delayed = tw.Stream(stream.losses, stream.constraints, **given) if delay else stream
            for with_advice in (False, True):
                experts = advised(problem)[: None if with_advice else 1]
                each = means(tw.Ensemble(problem.K, experts=experts), delayed)
                found.setdefault((delay, with_advice), []).append(each)
                print(f"    {name}, {delay} late, advice {with_advice}: {each}", flush=True)
    if not found:
        return
    for (delay, with_advice), runs in found.items():
        now, who = _mean(runs), "season and advice" if with_advice else "season"
        if delay:
            name, before = f"{who}, {delay} rounds late", _mean(found[0, with_advice])
            loss, violation = DELAYS[delay]
            yield Bar(f"{name}: loss", percent(now.loss, before.loss), loss, "%")
            yield Bar(f"{name}: violation", times(now.violation, before.violation), violation, "x")
        if delay and with_advice:
            alone, name = _mean(found[delay, False]), f"advice against none, {delay} rounds late"
            yield Bar(f"{name}: loss", percent(now.loss, alone.loss), NO_WORSE, "%")
            more = times(now.violation, alone.violation)
            yield Bar(f"{name}: violation", more, 1.0 + NO_WORSE, "x")


def max_move(limits: Limits) -> Iterator[Bar]:
    """Decisions that may not move far."""
    found: dict[str, list[tuple[float, float]]] = {}
    for name, problem in problems(limits, ("routing", "geant"), 5):
        experts = advised(problem)
        free, capped = (
            tw.run(tw.Ensemble(problem.K, max_move=cap, experts=experts), problem.stream)
            for cap in (None, CAP)
        )
        loss, churn = percent(capped.losses.mean(), free.losses.mean()), capped.churn.p99
        found.setdefault(problem.name, []).append((loss, churn))
        print(f"    {name}: loss {loss:+.2f} %, churn p99 {churn:.3f}, free {free.churn.p99:.3f}")
    for stream, each in found.items():
        losses, churns = zip(*each, strict=True)
        name = f"{stream}, moves of at most {CAP}"
        yield Bar(f"{name}: loss", statistics.mean(losses), CAPPED, "%")
        yield Bar(f"{name}: churn p99", max(churns), CAP * (1.0 + 1e-9), "")


def horizon(limits: Limits) -> Iterator[Bar]:
    """What not knowing the horizon costs."""
    kinds = (tw.LyapunovDescent, tw.LyapunovFrankWolfe, tw.baselines.SinhaVaze)
    for stream in limits.named(tuple(ROUNDS)):
        for rounds in (200, 2_000, ROUNDS[stream]):
            if rounds > (limits.rounds or rounds):
                continue
            for _, problem in problems(limits._replace(rounds=rounds), (stream,), 1):
                for kind in kinds if rounds <= PROJECTED else kinds[:2]:
                    known, unknown = (
                        means(kind(problem.K, horizon=T), problem.stream) for T in (rounds, None)
                    )
                    name = f"{stream}, {rounds:,} rounds, {kind.__name__} without a horizon"
                    yield Bar(f"{name}: loss", percent(unknown.loss, known.loss), 0.3, "%")
                    more = times(unknown.violation, known.violation)
                    yield Bar(f"{name}: violation", more, 1.1, "x")


def recovery(limits: Limits) -> Iterator[Bar]:
    """A long outage of the busiest entry, and the rounds after it."""
    few, stop = limits._replace(rounds=FIRST + OUTAGE + 60), FIRST + OUTAGE
    for name, problem in problems(few, ("routing", "tunnels"), 5):
        stream, link = problem.stream, busiest(problem)
        out = [[link] if FIRST <= t < stop else None for t in range(len(stream))]
        known: Any = {"time": stream.time, "context": stream.context, "unavailable": out}
        cut = tw.Stream(stream.losses, stream.constraints, **known)
        solved = tw.run(tw.baselines.Resolve(problem.K), cut).losses
        for kind, experts in (("", advised(problem)), (", no experts", ())):
            learner = tw.Ensemble(problem.K, experts=experts)
            ours, calm = (tw.run(learner, one).losses for one in (cut, stream))
            first = percent(float(ours[FIRST]), float(solved[FIRST]))
            mean = percent(float(ours[FIRST:stop].mean()), float(solved[FIRST:stop].mean()))
            late = zip(ours[stop + 12 :].tolist(), calm[stop + 12 :].tolist(), strict=True)
            which = f"{name}, {link} out{kind}"
            yield Bar(f"{which}: first round", first, 10.0, "%")
            yield Bar(f"{which}: mean of the outage", mean, 3.0, "%")
            worst = max(percent(*each) for each in late)
            yield Bar(f"{which}: 12 rounds after it, worst", worst, 1.0, "%")


def busiest(problem: Problem) -> str:
    """The link that carries most in 50 rounds if there is no outage."""
    stream = problem.stream[: FIRST + 50]
    points = points_of(tw.Ensemble(problem.K, experts=advised(problem)), stream)
    names = problem.K.names
    assert names is not None
    return names[int(np.argmax(points[FIRST:].sum(axis=0)))]


def points_of(learner: Any, stream: tw.Stream) -> types.Floats:
    """The points that a learner plays."""
    return np.array([played.x for played in tw.play(learner, stream)])


def broken(problem: Problem) -> Iterator[tuple[str, types.Floats]]:
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
        before = means(tw.Ensemble(problem.K, experts=advised(problem)), problem.stream)
        print(f"    {name}: without it {before}", flush=True)
        for attack, points in broken(problem):
            now = _with(problem, {attack: points})
            gap, more = percent(now.loss, before.loss), times(now.violation, before.violation)
            print(f"      {attack:24} {now}: {gap:+.2f} %, x {more:.2f}", flush=True)
            found.setdefault(attack, []).append((gap, more))
    for attack, both in found.items():
        gaps, ratios = zip(*both, strict=True)
        yield Bar(f"{attack}, loss, median", statistics.median(gaps), LOSS, "%")
        yield Bar(f"{attack}, loss, worst of {len(gaps)}", max(gaps), LOSS + WORST, "%")
        yield Bar(f"{attack}, violation, median", statistics.median(ratios), VIOLATION, "x")


def _with(problem: Problem, advice: Mapping[str, types.Floats]) -> Means:
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


def report(words: Sequence[str] = ()) -> None:
    sections = (late, max_move, horizon, recovery, attacks, bounds)
    play_sections("operating", {each.__name__: each for each in sections}, words)
