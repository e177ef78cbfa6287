"""What not knowing the horizon costs: mean loss and violation without one, against the same run
that was told.

The Lyapunov family is any-time: a horizon only holds its exponent still. Bars: the loss within 0.3
%, the violation at most 1.1 times, from 200 rounds on, on generated traffic up to 50,000 of them.
"""

from __future__ import annotations

import tidewolf as tw
from benchmarks.frontier import built
from tidewolf.baselines import SinhaVaze

LOSS, VIOLATION = 0.3, 1.1
ROUNDS = {
    "routing": (200, 2_000, 50_000),
    "geant": (200, 2_000, 50_000),
    "uunet": (200, 2_000, 50_000),
    "carbon": (200, 2_000, 17_544),
}
DEAR = 2_000
"""Exact projections are played up to so many rounds."""


def report() -> None:
    """Print both ratios for each learner, stream and number of rounds."""
    print(
        f"without a horizon, against the same run with it (bars: +{LOSS} % loss, {VIOLATION} x "
        "violation)"
    )
    for name, lengths in ROUNDS.items():
        for rounds in lengths:
            for problem in built([name], rounds):
                kinds = (
                    tw.LyapunovDescent,
                    tw.LyapunovFrankWolfe,
                    *((SinhaVaze,) if rounds <= DEAR else ()),
                )
                for kind in kinds:
                    _compare(kind, problem)


def _compare(kind: type[tw.LyapunovDescent], problem: tw.problems.Problem) -> None:
    rounds = len(problem.stream)
    known, unknown = (
        tw.run(kind(problem.K, horizon=horizon), problem.stream) for horizon in (rounds, None)
    )
    loss = 100 * (unknown.losses.sum() / known.losses.sum() - 1)
    violation = unknown.violations.sum() / known.violations.sum()
    verdict = "ok" if loss <= LOSS and violation <= VIOLATION else "ABOVE"
    print(
        f"  {problem.name:8} {rounds:6} {kind.__name__:18} loss {loss:+.3f} %, violation x "
        f"{violation:.3f}  {verdict}",
        flush=True,
    )
