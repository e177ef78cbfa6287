"""What an operator meets: late feedback, capped moves, an unknown horizon, a link that fails.

    late        feedback 3 and 24 rounds late on `routing`: 1.2 and 2.5 % of the loss, 2.2 and 5
                times the violation; with advice no worse than without
    max_move    decisions that move by at most 0.5: 0.2 % of the loss, p99 of churn at the cap
    horizon     no horizon given, against the same run with it: 0.3 % of the loss, 1.1 times the
                violation, from 200 rounds on
    outage      one of the three busiest links of `routing` out in rounds 400 to 449, loss and
                violation over rounds 400 to 600: 1.2 times the violation of re-solving

`Ensemble` by default, with the time of day and re-solving as its experts, at five seeds.
`python -m benchmarks operating late --seeds 0 --rounds 500` takes a minute.
"""

import statistics
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

import tidewolf as tw
from benchmarks.cases import advised, built
from benchmarks.experts import Means, means, percent, problems, times
from benchmarks.measuring import Bar, Limits, play_sections
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
FIRST, BACK, STOP = 400, 450, 600
ALLOWED = 1.2


def _mean(found: Sequence[Means]) -> Means:
    return Means(*(statistics.mean(each) for each in zip(*found, strict=True)))


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
            played = [] if rounds > (limits.rounds or rounds) else built([stream], rounds)
            for problem in played:
                for kind in kinds if rounds <= PROJECTED else kinds[:2]:
                    known, unknown = (
                        means(kind(problem.K, horizon=T), problem.stream) for T in (rounds, None)
                    )
                    name = f"{stream}, {rounds:,} rounds, {kind.__name__} without a horizon"
                    yield Bar(f"{name}: loss", percent(unknown.loss, known.loss), 0.3, "%")
                    more = times(unknown.violation, known.violation)
                    yield Bar(f"{name}: violation", more, 1.1, "x")


def outage(limits: Limits) -> Iterator[Bar]:
    """A link out of service for 50 rounds and back, which both sides know."""
    for name, problem in problems(limits._replace(rounds=STOP), ("routing",), 3):
        for link in busiest(problem):
            mine, theirs = during_outage(problem, link)
            print(f"    {name}, {link}: Ensemble {mine}, re-solving {theirs}", flush=True)
            more = times(mine.violation, theirs.violation)
            yield Bar(f"{name}, {link}: violation over re-solving", more, ALLOWED, "x")


def busiest(problem: Problem, count: int = 3) -> tuple[str, ...]:
    """The links that carry most during the outage's rounds if there is no outage."""
    learner = tw.Ensemble(problem.K, experts=advised(problem))
    rounds = list(tw.play(learner, problem.stream[:BACK]))
    use = np.sum([played.x for played in rounds[FIRST:]], axis=0)
    names = problem.K.names
    assert names is not None
    return tuple(names[i] for i in np.argsort(-use, kind="stable")[:count].tolist())


def during_outage(problem: Problem, link: str) -> tuple[Means, Means]:
    """Ensemble and re-solving, from the beginning of the outage on."""
    out = [[link] if FIRST <= t < BACK else None for t in range(len(problem))]
    stream = tw.Stream(problem.stream.losses, problem.stream.constraints, unavailable=out)
    found = []
    for learner in (
        tw.Ensemble(problem.K, experts=advised(problem)),
        tw.baselines.Resolve(problem.K),
    ):
        run = tw.run(learner, stream)
        each = (run.losses[FIRST:STOP], run.violations[FIRST:STOP])
        found.append(Means(*(float(one.mean()) for one in each)))
    return found[0], found[1]


def report(words: Sequence[str] = ()) -> None:
    sections = {"late": late, "max_move": max_move, "horizon": horizon, "outage": outage}
    play_sections("operating", sections, words)
