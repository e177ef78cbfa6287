"""Traffic between every two of 22 nodes: the network it is made of, what its stream promises."""

from __future__ import annotations

from importlib import import_module

import numpy as np
import pytest

from test_problems import breached, needs_records
from tidewolf import problems
from tidewolf.hindsight.best import best_in_hindsight
from tidewolf.problems.pairs import FILL, MARGIN, activity, busiest_nodes, spread_all, without_stubs


def test_stubs_are_left_out_again_and_again():
    triangle = [(0, 1), (1, 2), (0, 2)]
    assert without_stubs([*triangle, (2, 3), (3, 4), (7, 0)]) == triangle
    assert without_stubs([(0, 1), (1, 2)]) == []


def test_the_busiest_nodes_are_at_most_cables():
    assert busiest_nodes([(3, 1), (3, 2), (2, 1), (0, 3), (4, 0)], 3) == [3, 0, 1]


def test_a_day_has_its_busiest_hour():
    day = activity(96, np.array([0.0, 2.0]))
    assert day.max(axis=0).tolist() == [1.0, 1.0]
    assert day.argmax(axis=0).tolist() == [60, 68]  # a quarter past which 15:00 is, and two later
    assert day.min() == pytest.approx(np.exp(-1.2))


@pytest.fixture(scope="module")
def pairs():
    return problems.pairs(rounds=96)


@needs_records
def test_every_two_of_22_nodes_are_a_commodity(pairs):
    K = pairs.K
    ends = set(zip(K.sources.tolist(), K.targets.tolist(), strict=True))
    nodes = {node for pair in ends for node in pair}
    assert len(K.demands) == len(ends) == 462
    assert len(nodes) == 22
    assert set(K.demands) == {1.0}
    assert (pairs.period, pairs.shape, len(set(pairs.labels))) == (96, (3844,), 3844)
    assert pairs.labels[1] == "0 > 2: 0 > 2"
    assert len(K.factors.starts) == 462


@needs_records
@pytest.mark.parametrize("seed", [0, 3])
def test_some_flows_keep_every_limit_and_the_cheapest_none(seed):
    problem = problems.pairs(rounds=96, seed=seed)
    K, losses, limits = problem.K, problem.stream.losses, problem.stream.constraints
    assert breached(problem, K.lmo(losses.total()[0])) == 1.0
    busy = problem.stream[56:64]
    best = best_in_hindsight(K, busy)
    cheapest = K.lmo(busy.losses.total()[0])
    assert best.feasible
    assert best.upper > 1.05 * float(busy.losses.values(cheapest).sum())
    assert limits.limit.max() == pytest.approx(FILL)
    assert limits.limit.min() < 0.7 * FILL


@needs_records
def test_the_guaranteed_flow_has_room_around_it(pairs, monkeypatch):
    spread = {}

    def kept(K, lengths):
        spread["r"] = spread_all(K, lengths)
        return spread["r"]

    monkeypatch.setattr(import_module("tidewolf.problems.pairs"), "spread_all", kept)
    problem = problems.pairs(rounds=96)
    assert problem == pairs
    assert problem.K.infeasibility(spread["r"]) < 1e-12
    breach = problem.stream.constraints.values(spread["r"])
    assert breach.max() == pytest.approx(-MARGIN)
    assert np.mean(breach > -MARGIN - 1e-9) < 0.7, "demands are turned away now and then"


@needs_records
def test_demands_come_and_go_with_the_day(pairs):
    total = pairs.stream.constraints.demands.sum(axis=1)
    assert total[4:12].mean() < 0.6 * total[60:68].mean()
    busiest = problems.pairs(rounds=96, seed=1).stream.constraints.demands[56:72].mean()
    assert 0.5 < busiest < 1.2


@needs_records
def test_the_first_rounds_do_not_depend_on_how_many_follow_and_seeds_differ(pairs):
    short = problems.pairs(rounds=7)
    assert short.stream == pairs.stream[:7]
    assert problems.pairs(rounds=7, seed=1) != short
