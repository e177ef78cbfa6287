"""What proving membership adds to playing, where the excess of a point is dear: spanning trees."""

from __future__ import annotations

from collections.abc import Callable
from time import process_time
from typing import Any

import numpy as np

import tidewolf as tw

ALLOWED = 1.5
NODES, ROUNDS, REPEATS = 1000, 400, 3


def report() -> None:
    """`tw.run` over iterating `tw.play`, the same learner and stream."""
    rng = np.random.default_rng(0)
    edges = [(i, i + 1) for i in range(NODES - 1)] + rng.integers(
        NODES, size=(2 * NODES, 2)
    ).tolist()
    K = tw.sets.SpanningTrees(edges)
    slopes = rng.random((2, ROUNDS, len(edges)))
    limits = tw.functions.Affine(slopes[1], np.full(ROUNDS, 0.55 * NODES))
    stream = tw.Stream(tw.functions.Linear(slopes[0]), limits)
    print(f"Spanning trees of {NODES} nodes and {len(edges)} edges, {ROUNDS} rounds: run over play")
    for kind in (tw.LyapunovDescent, tw.PrimalDual, tw.DriftPlusPenalty, tw.LyapunovFrankWolfe):
        learner = kind(K, horizon=ROUNDS)
        ratio = _ratio(learner, stream)
        how = tw.run(learner, stream).membership.how
        verdict = "" if ratio <= ALLOWED else f"   ABOVE {ALLOWED:g}"
        print(f"  {kind.__name__:20} {ratio:5.2f}   members {how}{verdict}")


def _ratio(learner: Any, stream: tw.Stream) -> float:
    tw.run(learner, stream[:20])
    plays, runs = [], []
    for _ in range(REPEATS):
        plays.append(_seconds(lambda: list(tw.play(learner, stream))))
        runs.append(_seconds(lambda: tw.run(learner, stream)))
    return min(runs) / min(plays)


def _seconds(work: Callable[[], object]) -> float:
    start = process_time()
    work()
    return process_time() - start
