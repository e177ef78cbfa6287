"""Where no point keeps every limit: how little can be broken, which rounds can be kept, and what
their best point costs; in numbers that brute force agrees with, and in words.
"""

import gc
import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

import tidewolf as tw
from test_problems import needs_records
from tidewolf.core.arrays import to_numpy
from tidewolf.evaluation import metrics
from tidewolf.hindsight import best as module
from tidewolf.hindsight.best import least_breach

RNG = np.random.default_rng(7)


def simplex_stream(seed, rounds, n):
    """Capacities that no point of a simplex keeps in every round."""
    rng = np.random.default_rng(seed)
    tight = rng.uniform(0.0, 1.6 / n, (rounds, n))
    tight[0] = 0.9 / n
    losses = tw.functions.Linear(rng.normal(size=(rounds, n)))
    return tw.Stream(losses, tw.functions.Capacity(tight))


def breach(stream, x):
    return float(np.maximum(to_numpy(stream.constraints.values(x)), 0.0).sum())


@settings(max_examples=12)
@given(seed=st.integers(0, 10_000), n=st.integers(2, 6), rounds=st.integers(1, 30))
def test_a_linear_program_agrees_and_the_best_point_keeps_the_rounds_that_are_kept(seed, n, rounds):
    stream, K = simplex_stream(seed, rounds, n), tw.sets.Simplex(n)
    found = least_breach(K, stream)
    rows = np.hstack([np.tile(np.eye(n), (rounds, 1)), -np.repeat(np.eye(rounds), n, axis=0)])
    costs = np.append(np.zeros(n), np.ones(rounds))
    solved = linprog(costs, rows, stream.constraints.c.reshape(-1), 1.0 - costs[None], [1.0])
    assert found.lower - 1e-7 <= solved.fun <= found.upper + 1e-7
    assert found.upper - found.lower <= 1e-6 * (1.0 + found.upper)
    for x in np.random.default_rng(seed).dirichlet(np.ones(n), 50):
        assert breach(stream, x) >= found.lower - 1e-9

    values = to_numpy(stream.constraints.values(found.point))
    np.testing.assert_array_equal(found.kept, np.flatnonzero(values <= 1e-9))
    assert 0 not in found.kept  # no point keeps the first one
    best, point = found.best, found.best.point
    assert best.lower <= best.upper
    assert to_numpy(stream.losses.values(point)).sum() == pytest.approx(best.upper, abs=1e-7)
    assert to_numpy(stream.constraints.values(point))[found.kept].max(initial=-1.0) <= 1e-8
    costs = to_numpy(stream.losses.values(found.point)).sum()
    assert best.lower <= costs + 1e-7


SETS = {
    "simplex": tw.sets.Simplex(4),
    "ball": tw.sets.L2Ball(4),
    "psd": tw.sets.BoundedPSD(3, 1.0),
    "flow": tw.sets.FlowPolytope.from_edges(
        [("a", "b"), ("a", "c"), ("b", "c"), ("b", "d"), ("c", "d")], source="a", target="d"
    ),
}


@pytest.mark.parametrize("name", SETS)
def test_every_kind_of_set_gets_a_bracket_that_holds_for_everything_that_is_played(name):
    K, rounds = SETS[name], 25
    A = RNG.normal(size=(rounds, *K.shape))
    A = A + np.swapaxes(A, -1, -2) if len(K.shape) == 2 else A
    stream = tw.Stream(tw.functions.Linear(A), tw.functions.Affine(A, RNG.uniform(-3, -1, rounds)))
    run = tw.run(tw.LyapunovDescent(K), stream)
    found = run.least_breach
    assert run.regret is None
    assert 0.0 < found.lower <= found.upper < np.inf
    for point in (K.center, found.point, *(K.lmo(each) for each in A[:10])):
        assert breach(stream, point) >= found.lower - 1e-7 * found.lower
    assert len(found.kept) < rounds
    lower, upper = run.regret_kept
    assert lower <= upper
    assert upper == pytest.approx(run.losses.sum() - found.best.lower)


def test_streams_that_are_very_long_are_answered_from_the_proof(monkeypatch):
    stream, K = simplex_stream(3, 20, 4), tw.sets.Simplex(4)
    exact = least_breach(K, stream)
    monkeypatch.setattr(module, "MOST_NUMBERS", 79)
    proof = tw.best_in_hindsight(K, stream).infeasibility
    module._known.clear()
    rough = least_breach(K, stream, proof)
    assert 0.0 < rough.lower <= exact.lower + 1e-9
    assert rough.upper >= exact.upper - 1e-9
    assert rough.upper == pytest.approx(breach(stream, K.center))


def test_the_runs_of_a_problem_share_it_and_nothing_is_held_of_streams_that_are_gone():
    stream, K = simplex_stream(5, 10, 3), tw.sets.Simplex(3)
    one, other = (tw.run(tw.LyapunovDescent(K), stream) for _ in range(2))
    assert one.least_breach is other.least_breach
    held = len(module._known)
    del stream, one, other
    gc.collect()
    assert len(module._known) == held - 1


@needs_records
def test_what_is_said_where_no_flow_keeps_every_limit():
    """Two weeks of Abilene at 0.15 of its capacity, which no flow fits beside in every hour."""
    problem = tw.problems.abilene(share=0.15)
    run = tw.run(tw.LyapunovDescent(problem.K), problem.stream)
    told = run.summary()["hindsight"]
    json.dumps(told, allow_nan=False)
    assert told["least_breach"]["lower"] == pytest.approx(11.2973, abs=1e-4)
    assert (told["kept_rounds"], told["rounds"]) == (89, 336)
    assert told["regret_kept"]["upper"] == pytest.approx(run.losses.sum() - 1639.2445, abs=1e-3)
    swept = metrics.sweep_values(run.summary())
    assert swept["least_breach_lower"] == told["least_breach"]["lower"]
    assert run.violations.sum() >= told["least_breach"]["lower"]


def contradicting(rounds):
    """Two entries; in the last of these rounds each is held below what the others leave to it."""
    caps, hours = np.ones((12, 2)), np.arange("2026-03-01T00", "2026-03-01T12", dtype="M8[h]")
    caps[[rounds[0], rounds[-1]], [0, 1]] = 0.375
    return tw.Stream(tw.functions.Linear(np.ones((12, 2))), tw.functions.Capacity(caps), time=hours)


@pytest.mark.parametrize("rounds", [(2, 9), (0,)])
def test_which_rounds_contradict_each_other_is_said_with_their_times(rounds):
    stream = contradicting(rounds)
    proof = tw.best_in_hindsight(tw.sets.Simplex(2), stream).infeasibility
    said = metrics.contradiction(proof, stream)
    assert all(f"2026-03-01 {t:02}:00" in said for t in rounds)
    assert "by at least 0.125." in said
    assert least_breach(tw.sets.Simplex(2), stream).lower >= proof.bound - 1e-9


def test_without_any_method_nothing_is_claimed():
    K = tw.sets.Simplex(2)
    limits = tw.functions.Custom(lambda t, x: x @ x - 0.75, lambda t, x: 2 * x, (2,), 3)
    run = tw.run(tw.LyapunovDescent(K), tw.Stream(tw.functions.Linear(np.ones((3, 2))), limits))
    assert run.comparator is None
    assert run.least_breach is None
    assert "regret" not in [metric.title for metric in metrics.applying(metrics.TABLE, [run])]
    (said,) = metrics.hindsight_sentences([run])
    assert said.endswith("So the regret is not known.")
    assert said in repr(run)
    assert "regret unknown" in repr(run)


def test_where_no_round_can_be_kept_nothing_is_compared_with_kept_rounds():
    K, losses = tw.sets.Simplex(2), tw.functions.Linear([[1.0, 2.0]] * 3)
    stream = tw.Stream(losses, tw.functions.Capacity([[0.25, 0.25]] * 3))
    run = tw.run(tw.LyapunovDescent(K), stream)
    assert run.least_breach is not None
    assert len(run.least_breach.kept) == 0
    assert run.regret_kept is None
    assert run.summary()["hindsight"]["regret_kept"] is None
    assert "regret unknown" in repr(run)
