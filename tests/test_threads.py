"""Learners and states may be shared between threads."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

import tidewolf as tw


@pytest.fixture(autouse=True)
def _eager_switching():
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.parametrize("kind", [tw.LyapunovDescent, tw.rivals.SinhaVaze])
def test_one_learner_in_four_threads_plays_what_it_plays_alone(kind):
    problem = tw.problems.routing(rounds=60)
    learner = kind(problem.K, horizon=60)
    alone = tw.run(learner, problem.stream).losses.sum()
    with ThreadPoolExecutor(4) as pool:
        totals = list(pool.map(lambda _: tw.run(learner, problem.stream).losses.sum(), range(12)))
    assert totals == [alone] * 12


def test_one_state_continued_in_four_threads_stays_whole():
    problem = tw.problems.routing(rounds=80)
    learner = tw.LyapunovDescent(problem.K, horizon=80, calls_per_round=3.0)
    *_, played = tw.play(learner, problem.stream[:20])
    rest = problem.stream[20:]

    def losses(_: int) -> list[float]:
        return [float(p.losses[0]) for p in tw.play(learner, rest, played.state)]

    alone = losses(0)
    with ThreadPoolExecutor(4) as pool:
        for continued in pool.map(losses, range(12)):
            assert continued == alone
