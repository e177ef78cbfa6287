"""Traffic between every two of 22 nodes: the network it is made of, what its stream promises."""

from __future__ import annotations

from importlib import import_module

import numpy as np
import pytest

from test_problems import breached, needs_records
from tidewolf import problems
from tidewolf.hindsight.best import best_in_hindsight
from tidewolf.problems.graphs import activity
from tidewolf.problems.pairs import FILL, MARGIN, spread_all


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
