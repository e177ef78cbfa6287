"""A link out of service for 50 rounds and back: the ensemble beside re-solving, both told of it.

On `routing`, each of the three links that a run without outages uses most is out in rounds 400 to
449. Loss and violation over rounds 400 to 600, in all: of the default ensemble with a season of a
day and re-solving as advice, of re-solving alone without headroom, and with the headroom that has
the least violation in hindsight.
"""

from __future__ import annotations

import numpy as np

import tidewolf as tw
from tidewolf.core.types import Floats

FIRST, BACK, STOP = 400, 450, 600
HEADROOMS = (0.0, 1.0, 2.0, 4.0)
ALLOWED = 1.2
"""Times the violation of re-solving without headroom."""


def ensemble(K: tw.sets.ConvexSet, day: int = 96) -> tw.Ensemble:
    """The one that is measured."""
    advice = [tw.experts.Resolve("last"), tw.experts.Resolve(day)]
    return tw.Ensemble(K, experts=[tw.experts.Season(day), *advice])


def report(seeds: tuple[int, ...] = (0, 1, 2)) -> None:
    """Print loss and violation of each, and how many times re-solving's violation that is."""
    ratios = []
    for seed in seeds:
        problem = tw.problems.routing(rounds=STOP, seed=seed)
        for link in busiest(problem):
            stream = with_outage(problem.stream, link)
            ours = totals(ensemble(problem.K), stream)
            alone = [totals(tw.baselines.Resolve(problem.K, headroom=h), stream) for h in HEADROOMS]
            least = int(np.argmin([violation for _, violation in alone]))
            ratios.append(ours[1] / alone[0][1])
            print(
                f"seed {seed}, {link}: ensemble {_both(ours)}, re-solving {_both(alone[0])}, with "
                f"headroom {HEADROOMS[least]:g} {_both(alone[least])}; {ratios[-1]:.2f} times",
                flush=True,
            )
    held = sum(ratio <= ALLOWED for ratio in ratios)
    print(f"at most {ALLOWED:g} times in {held} of {len(ratios)}, worst {max(ratios):.2f}")


def busiest(problem: tw.problems.Problem, count: int = 3) -> tuple[str, ...]:
    """The links that carry most over the rounds of the outage where there is none."""
    rounds = list(tw.play(ensemble(problem.K), problem.stream[:BACK]))
    carried: Floats = np.sum([played.x for played in rounds[FIRST:]], axis=0)
    names = problem.K.names
    assert names is not None
    return tuple(names[i] for i in np.argsort(-carried, kind="stable")[:count].tolist())


def with_outage(stream: tw.Stream, link: str) -> tw.Stream:
    """The same rounds with a link out for a while."""
    out = [[link] if FIRST <= t < BACK else None for t in range(len(stream))]
    return tw.Stream(stream.losses, stream.constraints, unavailable=out)


def totals(learner: tw.methods.base.Learner, stream: tw.Stream) -> tuple[float, float]:
    """Loss and violation in rounds 400 to 600."""
    run = tw.run(learner, stream)
    return float(run.losses[FIRST:STOP].sum()), float(run.violations[FIRST:STOP].sum())


def _both(total: tuple[float, float]) -> str:
    return f"{total[0]:.1f} / {total[1]:.3f}"
