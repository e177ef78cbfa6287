"""Linear programs in hindsight: losses that are maxima of affine pieces, whose bracket the oracle
proves whatever the multipliers; very many half-spaces of which few are solved with.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

import tidewolf as tw
from tidewolf.functions import Capacity, LoadCost, MaxAffine, MaxUtilization, Sum, loads
from tidewolf.hindsight import best_point, cutting_planes
from tidewolf.hindsight.task import Solution, Task
from tidewolf.sets import Box, FlowPolytope, Permutahedron, Product, Simplex, SimplexProduct

seeds = st.integers(0, 2**32 - 1)


def drawn(seed, T, n):
    rng = np.random.default_rng(seed)
    losses = MaxAffine(rng.normal(size=(T, 3, n)), rng.normal(size=(T, 3)))
    return tw.Stream(losses, Capacity(1.5 / n + 0.3 * rng.random((T, n))))


@settings(max_examples=25, deadline=None)
@given(seed=seeds, T=st.integers(1, 8), n=st.integers(1, 4), unit=st.sampled_from([1.0, 1e6, 1e-6]))
def test_the_bracket_holds_and_closes(seed, T, n, unit):
    K, stream = Simplex(n), drawn(seed, T, n)
    stream = tw.Stream(Sum(stream.losses, weights=[unit]), stream.constraints)
    best = tw.best_in_hindsight(K, stream)
    assert best.feasible
    assert best.method == best_point.LinearProgramming.name
    assert best.upper == pytest.approx(float(stream.losses.values(best.point).sum()))
    assert best.upper - best.lower <= 1e-8 * (unit + abs(best.upper))
    for x in np.random.default_rng(seed).dirichlet(np.ones(n), 40):
        if stream.constraints.values(x).max() <= 0.0:
            assert stream.losses.values(x).sum() >= best.lower - 1e-9 * unit


@settings(max_examples=25, deadline=None)
@given(seed=seeds, zero=st.booleans())
def test_any_multipliers_prove_a_lower_bound(seed, zero):
    K, stream = Simplex(3), drawn(seed, 4, 3)
    task = Task.of(K, stream.losses, stream.constraints)
    best, rng = tw.best_in_hindsight(K, stream), np.random.default_rng(seed)
    share, counts = float(not zero), (len(task.b), 12)
    lam, mu = (share * rng.exponential(size=k) * (rng.random(k) < 0.5) for k in counts)
    below = task.below_pieces(mu)
    assert task.lower_bound(Solution(None, lam, below=below)) <= best.upper + 1e-9


@pytest.mark.parametrize("weight", [0.0, 0.25, 1.0, 40.0])
def test_weights_of_pieces_are_shares(weight):
    """A loss that is 1 everywhere, of two equal pieces: any weights of them prove 1 a round."""
    flat = MaxAffine(np.zeros((3, 2, 2)), -np.ones((3, 2)))
    task = Task.of(Simplex(2), flat, tw.functions.Unlimited(2, 3))
    assert task.least(task.below_pieces(np.full(6, weight)))[0] == pytest.approx(3.0)


def test_the_fullest_link_over_splits_and_flows():
    """Two links of capacities 1 and 2 in parallel: the best split fills both alike."""
    splits = MaxUtilization([[1, 0], [0, 1]], [[3.0], [6.0]], [1.0, 2.0], [0, 0])
    best = tw.best_in_hindsight(SimplexProduct([2]), tw.Stream(splits))
    np.testing.assert_allclose(best.point, [1 / 3, 2 / 3])
    assert best.upper == pytest.approx(3.0)
    K = FlowPolytope.from_edges([("s", "a"), ("a", "t"), ("s", "t")], source="s", target="t")
    loads = MaxUtilization(np.eye(3), np.ones((4, 1)), [1.0, 1.0, 1.0], [0, 0, 0])
    best = tw.best_in_hindsight(K, tw.Stream(loads))
    assert (best.upper, best.lower) == (pytest.approx(4 * 0.5), pytest.approx(4 * 0.5))


def test_limits_that_nothing_keeps_are_proved_so():
    limits = tw.functions.Affine([[1.0, 0.0], [-1.0, 0.0], [0.0, 0.0]], [0.2, -0.6, 1.0])
    stream = tw.Stream(MaxAffine(np.ones((3, 2, 2)), np.zeros((3, 2))), limits)
    best = tw.best_in_hindsight(Box(np.zeros(2), np.ones(2)), stream)
    assert best.feasible is False
    assert best.infeasibility.bound == pytest.approx(0.2)
    assert best.infeasibility.rounds.tolist() == [0, 1]
    assert best.infeasibility.rows.tolist() == [0, 1]


def test_many_rounds_are_left_to_an_interior_point_method(monkeypatch):
    K, stream = Simplex(3), drawn(5, 40, 3)
    best = tw.best_in_hindsight(K, stream)
    monkeypatch.setattr("tidewolf.hindsight.best_point.MANY", 10)
    inner = tw.best_in_hindsight(K, stream)
    assert inner.upper == pytest.approx(best.upper, rel=1e-8)
    assert inner.lower == pytest.approx(best.lower, rel=1e-8)


@settings(max_examples=15, deadline=None)
@given(seed=seeds, T=st.integers(1, 12), n=st.integers(1, 4), unit=st.sampled_from([1.0, 1e8]))
def test_a_bundle_of_cuts_finds_the_same(seed, T, n, unit):
    K, stream = Simplex(n, total=3.0), drawn(seed, T, n)
    limits = Capacity(3.0 * np.asarray(stream.constraints.c))
    stream = tw.Stream(Sum(stream.losses, weights=[unit]), limits)
    best = tw.best_in_hindsight(K, stream)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tidewolf.hindsight.cutting_planes.MANY", 0)
        same = tw.best_in_hindsight(K, stream)
    assert same.feasible
    size = unit + abs(best.upper)
    assert same.upper == pytest.approx(best.upper, abs=2e-6 * size)
    assert best.lower - 2e-6 * size <= same.lower <= best.upper + 1e-9 * size
    assert same.method in (cutting_planes.METHOD, best_point.LinearProgramming.name)


def test_a_bundle_leaves_to_the_program_what_it_cannot_decide(monkeypatch):
    monkeypatch.setattr("tidewolf.hindsight.cutting_planes.MANY", 0)
    stream = drawn(1, 6, 3)
    assert tw.best_in_hindsight(Simplex(3), stream).method == cutting_planes.METHOD
    monkeypatch.setattr("tidewolf.hindsight.best._ENOUGH", -1.0)
    assert tw.best_in_hindsight(Simplex(3), stream).method == best_point.LinearProgramming.name
    test_limits_that_nothing_keeps_are_proved_so()


# --- very many rows ------------------------------------------------------------------------------


def splits(seed, room=1.5, rounds=6):
    """Demands over paths, some of them zero; a pair with one path, a link without any."""
    rng = np.random.default_rng(seed)
    K, pairs, links = SimplexProduct([3, 1, 2]), np.array([0, 0, 0, 1, 2, 2]), 5
    incidence = (rng.random((links, 6)) < 0.5).astype(float)
    incidence[3] = 0.0
    demands = rng.exponential(size=(rounds, 3)) * (rng.random((rounds, 3)) < 0.8)
    costs = rng.uniform(0.5, 2.0, (rounds, links))
    capacities = room * np.maximum(incidence @ (demands.mean(axis=0)[pairs] * K.center), 0.1)
    return K, csr_array(incidence), demands, costs, pairs, capacities


def streams(seed, room):
    K, incidence, demands, costs, pairs, capacities = splits(seed, room)
    losses = LoadCost(incidence, demands, costs, pairs)
    yield K, tw.Stream(losses, MaxUtilization(incidence, demands, capacities, pairs, 1.0))
    each = np.tile(capacities, (len(demands), 1)) * (1.0 + 0.1 * np.arange(len(demands))[:, None])
    yield K, tw.Stream(losses, tw.functions.LoadLimit(incidence, demands, each, pairs))


@pytest.fixture
def many(monkeypatch):
    """Every table of half-spaces is a large one, and two rounds make a part."""
    monkeypatch.setattr(loads, "MANY", 0)
    monkeypatch.setattr(loads, "AT_A_TIME", 30)


@pytest.mark.parametrize("room", [0.4, 1.0, 2.5, 20.0])
def test_few_rows_give_the_bracket_of_all(many, room):
    """Where no point keeps the limits, where they bind, and where they do not."""
    decided = set()
    for seed in range(6):
        for K, stream in streams(seed, room):
            ours = tw.best_in_hindsight(K, stream)
            with pytest.MonkeyPatch.context() as plain:
                plain.setattr(loads, "MANY", 10**9)
                theirs = tw.best_in_hindsight(K, stream)
            assert ours.feasible is theirs.feasible is not None
            assert ours.method == theirs.method == "linear program"
            decided.add(ours.feasible)
            if not ours.feasible:
                proof = ours.infeasibility
                assert proof.bound > 0.0
                np.testing.assert_array_equal(proof.rounds, proof.rows // 5)
                continue
            size = abs(theirs.upper) + 1.0
            assert ours.upper == pytest.approx(theirs.upper, abs=1e-8 * size)
            assert ours.lower == pytest.approx(theirs.lower, abs=1e-8 * size)
            assert float(stream.constraints.values(ours.point).max()) <= 1e-8
            assert K.infeasibility(ours.point) <= 1e-9
    assert decided == ({False} if room < 1.0 else {True} if room > 10.0 else decided)


def test_rows_enter_as_points_break_them_and_no_others(many):
    """A single round binds: of all rows of other rounds none is ever made a part of the program."""
    K, incidence = Simplex(2), csr_array([[1.0, 0.0], [0.0, 1.0]])
    demands = np.ones((50, 1))
    demands[17] = 4.0
    losses = LoadCost(incidence, np.ones((50, 1)), np.tile([1.0, 2.0], (50, 1)), [0, 0])
    stream = tw.Stream(losses, MaxUtilization(incidence, demands, [3.0, 3.0], [0, 0], 1.0))
    task = Task.of(K, stream.losses, stream.constraints)
    assert isinstance(task.A, loads.LoadRows)
    found = best_point.LinearProgramming().solve(task)
    np.testing.assert_allclose(found.point, [0.75, 0.25])
    assert np.flatnonzero(found.lam).tolist() == [2 * 17]


def test_a_set_that_is_lifted_or_has_no_equations_works_too(many):
    shifted = Permutahedron(np.arange(6.0) / 6.0)
    for K in (Product(Simplex(3), Simplex(1), Simplex(2)), Box(np.zeros(6), np.ones(6)), shifted):
        _, incidence, demands, costs, pairs, capacities = splits(3)
        limits = MaxUtilization(incidence, demands, capacities, pairs, 1.0)
        stream = tw.Stream(LoadCost(incidence, demands, -costs, pairs), limits)
        ours = tw.best_in_hindsight(K, stream)
        with pytest.MonkeyPatch.context() as plain:
            plain.setattr(loads, "MANY", 10**9)
            assert ours.upper == pytest.approx(tw.best_in_hindsight(K, stream).upper, abs=1e-8)


def test_a_solver_that_finds_nothing_leaves_the_question_open(many, monkeypatch):
    K, stream = next(streams(0, 0.4))
    monkeypatch.setattr(best_point.BestPoint, "breached", lambda *_: None)
    assert tw.best_in_hindsight(K, stream).feasible is None


@settings(max_examples=12, deadline=None)
@given(seed=seeds, step=st.integers(1, 200))
def test_rows_made_some_at_a_time_are_those_of_the_table(seed, step):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loads, "MANY", 0)
        patch.setattr(loads, "AT_A_TIME", step)
        for _, stream in streams(seed, 1.0):
            g, rng = stream.constraints, np.random.default_rng(seed)
            A, b, rounds = g.halfspaces()
            rows = g.many_rows()
            some, x = rng.integers(0, A.shape[0], 7), rng.normal(size=6)
            assert rows.shape == A.shape
            np.testing.assert_array_equal(g.offsets(), b)
            np.testing.assert_array_equal(rounds, np.arange(len(b)) // 5)
            np.testing.assert_allclose(rows @ x, A @ x, atol=1e-12)
            np.testing.assert_array_equal(rows[some].toarray(), A.toarray()[some])
            parts = np.vstack([part.toarray() for part in rows.parts()])
            np.testing.assert_array_equal(parts, A.toarray())
            np.testing.assert_array_equal(rows.each(lambda part, x=x: part @ x), A @ x)
