"""Comparators over matrices, and over sets without a linear program: brackets around what is known
otherwise or was planted, two methods beside each other, equations and the proofs that no point
satisfies them, and Example II.
"""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tidewolf as tw
from tidewolf.core.batch import Stream
from tidewolf.functions import Affine, Linear, MaxAffine, Range, Squared
from tidewolf.hindsight import best as hindsight
from tidewolf.hindsight import sdp as semidefinite
from tidewolf.hindsight.best import best_in_hindsight
from tidewolf.hindsight.best_point import LinearProgramming
from tidewolf.hindsight.newton import LevelBundle, NewtonSteps
from tidewolf.hindsight.sdp import AlternatingDirections, SemidefiniteProgramming
from tidewolf.hindsight.task import Solution, Task
from tidewolf.sets import BoundedPSD, Fantope, L2Ball, NuclearBall, Simplex, Spectraplex, Translated

seeds, few = st.integers(0, 2**32 - 1), settings(max_examples=5, deadline=None)
ROOM = [-0.3, -0.1, 0.05, 0.3]
SOLVERS = {"semidefinite": SemidefiniteProgramming(), "bracket": LevelBundle()}.items()
SOLVERS = [pytest.param(solver, id=name) for name, solver in SOLVERS]


def known(solver, K, stream):
    """What one method finds, checked as `best_in_hindsight` checks it."""
    task = Task.of(K, stream.losses, stream.constraints)
    found = solver.solve(task)
    assert found is not None
    return hindsight._checked(task, found, 0)


def a_stream(seed, n, k, room):
    """Random losses and two random half-spaces a round, kept by 0 with `room` to spare."""
    rng = np.random.default_rng(seed)
    losses = Affine(rng.normal(size=(k, n, n)), rng.normal(size=k))
    return Stream(losses, MaxAffine(rng.normal(size=(k, 2, n, n)), np.full((k, 2), room)))


def diagonal_rounds(seed, n, k, room):
    """The same rounds for matrices, of which only the diagonal counts, and for vectors."""
    rng = np.random.default_rng(seed)
    c, a, b = rng.normal(size=(k, n)), rng.normal(size=(k, 2, n)), room + 0.2 * rng.random((k, 2))
    C, A = c[..., None] * np.eye(n), a[..., None] * np.eye(n)
    return Stream(Linear(C), MaxAffine(A, b)), Stream(Linear(c), MaxAffine(a, b))


# --- against what is known otherwise --------------------------------------------------------------


@pytest.mark.parametrize("solver", SOLVERS)
@given(seed=seeds, n=st.integers(1, 4), k=st.integers(1, 6), room=st.sampled_from(ROOM))
@few
def test_diagonal_rounds_are_a_linear_program(solver, seed, n, k, room):
    matrices, vectors = diagonal_rounds(seed, n, k, room)
    K, want = BoundedPSD(n, 1.5), best_in_hindsight(Simplex(n, 1.5, at_most=True), vectors)
    got = known(solver, K, matrices)
    assert got.feasible == want.feasible
    if not want.feasible:
        assert got.infeasibility.bound > 0
        return
    assert got.lower <= want.upper + 1e-9
    assert got.upper >= want.lower - 1e-9
    assert got.upper - got.lower <= 1e-5 * max(1.0, abs(want.lower))
    assert K.infeasibility(got.point) <= 1e-9
    assert matrices.constraints.values(got.point).max() <= 1e-8


@given(seed=seeds, offset=st.floats(-0.9, 0.9), far=st.sampled_from([0.0, 10.0]))
@few
def test_a_ball_and_a_half_space_have_a_closed_form(seed, offset, far):
    rng = np.random.default_rng(seed)
    c, a, shift = rng.normal(size=3), rng.normal(size=3), far * np.ones(3)
    a /= np.linalg.norm(a)
    across, free = c - (c @ a) * a, -c / np.linalg.norm(c)
    x = offset * a - math.sqrt(1 - offset**2) * across / np.linalg.norm(across)
    x = free if free @ a <= offset else x
    stream = Stream(Linear.one(c), Affine.one(a, offset + float(a @ shift)))
    got = best_in_hindsight(Translated(L2Ball(3), shift), stream)
    best = float(c @ (x + shift))
    assert got.feasible
    assert got.lower - 1e-9 <= best <= got.upper + 1e-9
    assert got.upper - got.lower <= 1e-5 * max(1.0, abs(best))


@given(seed=seeds, n=st.integers(1, 5), k=st.integers(1, 12), room=st.sampled_from(ROOM))
@few
def test_both_methods_agree_within_their_brackets(seed, n, k, room):
    K, stream = BoundedPSD(n, 2.0), a_stream(seed, n, k, room)
    sdp, lmo = known(SemidefiniteProgramming(), K, stream), known(LevelBundle(), K, stream)
    assert sdp.feasible == lmo.feasible is not None
    if sdp.feasible:
        assert max(sdp.lower, lmo.lower) <= min(sdp.upper, lmo.upper) + 1e-12
        assert sdp.upper - sdp.lower <= 1e-6 * max(1.0, abs(sdp.upper))
        assert lmo.upper - lmo.lower <= 1e-3 * max(1.0, abs(lmo.upper))
    for x in map(K.project, np.random.default_rng(seed).normal(size=(20, n, n))):
        values, total = stream.constraints.values(x), float(stream.losses.values(x).sum())
        for got in (sdp, lmo):
            if (proof := got.infeasibility) is not None:
                assert proof.weights @ values[proof.rounds] >= proof.bound - 1e-12
            else:
                assert values.max() > 0 or total >= got.lower - 1e-9


@pytest.mark.parametrize("solver", SOLVERS)
def test_of_many_rows_those_that_matter_are_found(solver):
    rng = np.random.default_rng(0)
    rows = np.eye(3) + 0.02 * rng.normal(size=(300, 1, 3, 3))
    limits = MaxAffine(rows, 0.7 + 0.01 * rng.random((300, 1)))
    stream = Stream(Linear(-np.ones((300, 3, 3))), limits)
    got, some = known(solver, BoundedPSD(3), stream), known(solver, BoundedPSD(3), stream[:100])
    assert got.feasible
    assert got.upper - got.lower <= 1e-5 * abs(got.lower)
    assert got.lower / 300 > some.upper / 100  # the other rows do matter


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("unit", [1e-6, 1e6])
def test_units_do_not_matter(solver, unit):
    K = BoundedPSD(3, 1.0)
    for room in (-0.3, 0.2):
        stream = a_stream(5, 3, 6, room)
        losses, limits = stream.losses, stream.constraints
        scaled_limits = MaxAffine(unit * limits.A, unit * limits.b)
        scaled = Stream(Affine(unit * losses.A, unit * losses.b), scaled_limits)
        got, want = known(solver, K, scaled), known(solver, K, stream)
        assert got.feasible is want.feasible is (room > 0)
        if room > 0:
            assert got.lower == pytest.approx(unit * want.lower, rel=1e-5)
            assert got.upper == pytest.approx(unit * want.upper, rel=1e-5)


# --- no method is believed ------------------------------------------------------------------------


def test_a_lying_solver_is_passed_over(monkeypatch):
    K, stream = BoundedPSD(3), a_stream(1, 3, 5, 0.3)
    truth = known(LevelBundle(), K, stream)
    lies = [
        Solution(np.eye(3).reshape(-1), np.full(10, 7.0)),  # a trace of 3
        Solution(np.zeros(9), np.zeros(10), np.ones(10)),  # feasible, and said not to be
        None,
    ]
    for lie in lies:
        monkeypatch.setattr(SemidefiniteProgramming, "supports", lambda self, task: True)
        monkeypatch.setattr(SemidefiniteProgramming, "solve", lambda self, task, lie=lie: lie)
        got = best_in_hindsight(K, stream)
        assert got.feasible
        assert got.lower <= truth.upper
        assert got.upper >= truth.lower
    monkeypatch.setattr(LevelBundle, "solve", lambda self, task: lies[0])
    got = best_in_hindsight(K, stream)
    assert (got.feasible, got.upper, got.point) == (None, math.inf, None)
    assert got.lower <= truth.upper


def test_the_oracle_alone_answers_where_matrices_are_large(monkeypatch):
    monkeypatch.setattr(semidefinite, "MAX_LARGE", 2)
    K, stream = BoundedPSD(3), a_stream(2, 3, 5, 0.3)
    got = best_in_hindsight(K, stream)
    assert got.feasible
    assert got.method == LevelBundle.name
    assert got.upper - got.lower <= 1e-4 * max(1.0, abs(got.upper))


def test_hindsight_asks_an_oracle_that_does_not_err():
    stream = a_stream(4, 3, 5, 0.3)
    rough, exact = (BoundedPSD(3, dense=dense, tolerance=0.5) for dense in (0, 3))
    assert best_in_hindsight(rough, stream).lower == best_in_hindsight(exact, stream).lower


# --- Example II -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def problem():
    return tw.problems.sdp()


def test_its_limits_bind_and_can_be_met(problem):
    stream, K = problem.stream, problem.K
    assert len(problem) == 1000
    assert stream.constraints.values(np.zeros(K.shape)).max() <= -0.02
    best, free = best_in_hindsight(K, stream), K.lmo(stream.losses.C.sum(axis=0))
    assert best.feasible
    assert best.upper - best.lower <= 2e-6 * abs(best.upper)
    assert (stream.constraints.values(free) > 0).mean() > 0.5
    assert float(stream.losses.values(free).sum()) < 1.5 * best.lower < 0
    assert (stream.constraints.values(best.point) > -1e-3).sum() >= 5


# --- equations -----------------------------------------------------------------------------------

ROUNDS = 4


def symmetric(rng, n):
    G = rng.normal(size=(n, n))
    return (G + G.T) / 2


def fixed(entries, shape):
    """One round that fixes entries, given as {(i, j): value}."""
    i, j = zip(*entries, strict=True)
    values = list(entries.values())
    return Range.of([((list(i), list(j)), values, values)], shape)


def spread(rng, C, i, j, X):
    """Rounds whose losses add up to C and which fix the entries i, j of X, some in each round."""
    parts = np.array_split(rng.permutation(len(i)), ROUNDS)
    each = [((i[part], j[part]), X[i[part], j[part]]) for part in parts]
    limits = Range.of([(where, values, values) for where, values in each], X.shape)
    return Stream(Linear(rng.dirichlet(np.ones(ROUNDS))[:, None, None] * C), limits)


def some_entries(rng, n, more):
    """The diagonal and some entries above it."""
    above = np.stack(np.triu_indices(n, 1))[:, rng.permutation(n * (n - 1) // 2)[:more]]
    return np.hstack([[np.arange(n), np.arange(n)], above])


def planted(seed, n, more, kind):
    """A set, a stream, the best matrix and the least total: multipliers are chosen, then costs."""
    rng = np.random.default_rng(seed)
    i, j = some_entries(rng, n, more)
    Q, rank = np.linalg.qr(rng.normal(size=(n, n)))[0], max(2, n // 4)
    Y = np.zeros((n, n))
    Y[i, j] = rng.normal(size=len(i))
    if kind == "fantope":
        values, d = np.zeros(n), np.ones(n)
        values[:rank], values[rank : rank + 2], d[:rank], d[rank : rank + 2] = 1.0, 0.5, -1.0, 0.0
        X, K, C = Q * values @ Q.T, Fantope(n, rank + 1), Q * d @ Q.T - Y
    elif kind == "nuclear":
        j, left = j % (n - 1), Q[:, :rank]
        right = np.linalg.qr(rng.normal(size=(n - 1, n - 1)))[0]
        Y = np.zeros((n, n - 1))
        Y[i, j] = rng.normal(size=len(i))
        size = rng.uniform(0.5, 2.0, rank)
        rest = 0.5 * Q[:, rank:-1] @ right[:, rank:].T
        X, K = left * size @ right[:, :rank].T, NuclearBall((n, n - 1), float(size.sum()))
        C = -(left @ right[:, :rank].T + rest) - Y
        return K, spread(rng, C, *np.unique([i, j], axis=1), X), X, float((C * X).sum())
    else:
        X = Q[:, :rank] * rng.uniform(0.5, 2.0, rank) @ Q[:, :rank].T
        C = Q[:, rank:] * rng.uniform(0.5, 2.0, n - rank) @ Q[:, rank:].T - Y
        tau = float(np.trace(X)) * (1.5 if kind == "room" else 1.0)
        K = (Spectraplex if kind == "spectraplex" else BoundedPSD)(n, tau)
    C = (C + C.T) / 2
    return K, spread(rng, C, i, j, X), X, float((C * X).sum())


def holds(K, stream, got, width):
    """The laws of a bracket with a point."""
    assert got.feasible
    assert got.method == SemidefiniteProgramming.name
    assert got.lower <= got.upper
    assert got.upper - got.lower <= width * abs(got.upper)
    assert K.infeasibility(got.point) <= 1e-9 * max(K.radius, np.abs(got.point).max())
    assert stream.constraints.values(got.point).max() <= 2e-9 * max(1.0, K.radius)
    assert float(stream.losses.values(got.point).sum()) <= got.upper + 1e-12 * abs(got.upper)


# --- what was planted is found ------------------------------------------------------------------

KINDS = ["room", "full", "spectraplex", "fantope", "nuclear"]


@pytest.mark.parametrize("kind", KINDS)
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(4, 12), more=st.integers(0, 8))
@settings(max_examples=3, deadline=None)
def test_the_bracket_holds_what_was_planted(kind, seed, n, more):
    K, stream, X, value = planted(seed, n, min(more, n * (n - 1) // 2), kind)
    got = best_in_hindsight(K, stream)
    assert stream.constraints.values(X).max() <= 1e-12
    slack = 1e-6 * np.linalg.norm(stream.losses.C.sum(axis=0)) * K.radius
    assert got.lower - 1e-9 * slack <= value <= got.upper + slack
    assert got.feasible
    assert got.upper - got.lower <= 2 * slack


EQUATIONS = [(50, 150), (70, 0), pytest.param(100, 900, marks=pytest.mark.soak)]


@pytest.mark.parametrize(("n", "more"), EQUATIONS)
@pytest.mark.parametrize("kind", ["full", "spectraplex"])
def test_many_equations_take_a_narrow_bracket(kind, n, more):
    K, stream, _, value = planted(1, n, more, kind)
    got = best_in_hindsight(K, stream)
    holds(K, stream, got, 1e-6)
    assert got.lower - 1e-9 <= value <= got.upper + 1e-8 * abs(value)


def test_however_equations_are_said_they_are_the_same():
    rng = np.random.default_rng(3)
    n, C = 5, symmetric(rng, 5)
    i, j = some_entries(rng, n, 2)

    def rounds(count):
        return Linear(np.tile(C / count, (count, 1, 1)))

    X, E = np.eye(n) + 0.1 * symmetric(rng, n), np.zeros((len(i), n, n))
    E[np.arange(len(i)), i, j] = 1.0
    v, K = X[i, j], BoundedPSD(n, 8.0)
    k, either = len(i), [*(3 * v), *(-0.7 * v)]
    said = {
        "entries": Stream(rounds(3), Range.of([((i, j), v, v)] * 3, (n, n))),
        "mirrored": Stream(rounds(1), Range.of([((j, i), v, v)], (n, n))),
        "both signs": Stream(rounds(k), MaxAffine(np.stack([E, -E], 1), np.stack([v, -v], 1))),
        "rounds of either sign": Stream(rounds(2 * k), Affine([*(3 * E), *(-0.7 * E)], either)),
        "squares": Stream(rounds(2), Squared.of([((i, j), v), (([], []), [])], (n, n))),
    }
    found = {name: best_in_hindsight(K, stream) for name, stream in said.items()}
    for name, got in found.items():
        assert got.feasible, name
        assert got.method == SemidefiniteProgramming.name
        assert got.upper - got.lower <= 1e-7 * abs(got.upper), name
        assert got.upper == pytest.approx(found["entries"].upper, rel=1e-7)


def test_bounds_beside_equations_bind():
    rng = np.random.default_rng(4)
    n, rows = 8, rng.normal(size=(400, 1, 8, 8))
    diagonal, X = np.eye(n)[:, :, None] * np.eye(n)[:, None, :], np.eye(n)
    pairs = np.concatenate([diagonal[:, None], -diagonal[:, None]], axis=1)
    A = np.concatenate([np.repeat(rows, 2, axis=1), pairs])
    room = np.repeat(rows.reshape(400, -1) @ X.reshape(-1, 1) + 0.3, 2, axis=1)
    b = np.concatenate([room, np.array([[1.0, -1.0]] * n)])
    stream = Stream(Linear(np.tile(symmetric(rng, n), (len(b), 1, 1))), MaxAffine(A, b))
    K = BoundedPSD(n, float(n))
    got = best_in_hindsight(K, stream)
    loose = best_in_hindsight(K, Stream(stream.losses[:n], MaxAffine(A[400:], b[400:])))
    holds(K, stream, got, 1e-7)
    assert got.lower / len(b) > loose.upper / n


# --- no point keeps them ------------------------------------------------------------------------

IMPOSSIBLE = [
    pytest.param(BoundedPSD(4, 2.0), {(0, 0): 0.1, (1, 1): 0.1, (0, 1): 0.5}, id="minor"),
    pytest.param(BoundedPSD(4, 2.0), {(0, 0): 0.5, (1, 1): 0.5, (0, 1): 0.500001}, id="by little"),
    pytest.param(BoundedPSD(4, 1.0), {(i, i): 0.3 for i in range(4)}, id="trace too large"),
    pytest.param(Spectraplex(3, 1.0), {(i, i): 0.3 for i in range(3)}, id="trace too small"),
    pytest.param(BoundedPSD(4, 2.0), {(0, 0): -0.1}, id="diagonal below 0"),
    pytest.param(BoundedPSD(4, 2.0), {(0, 1): 0.3, (1, 0): 0.2}, id="not symmetric"),
    pytest.param(Fantope(6, 2), {(0, 0): 0.9, (1, 1): 0.9, (0, 1): 0.3}, id="fantope"),
    pytest.param(NuclearBall((4, 3), 1.0), {(0, 0): 0.8, (1, 1): 0.8}, id="nuclear"),
    pytest.param(BoundedPSD(50, 2.0), {(0, 0): 0.1, (1, 1): 0.1, (0, 1): 0.2}, id="minor of fifty"),
]


@pytest.mark.parametrize(("K", "entries"), IMPOSSIBLE)
@pytest.mark.parametrize("squares", [False, True])
def test_equations_that_no_member_keeps_are_proved_so(K, entries, squares):
    rng, limits = np.random.default_rng(5), fixed(entries, K.shape)
    if squares:
        limits = Squared(limits.low, limits.places, limits.sides)
    got = best_in_hindsight(K, Stream(Linear.one(rng.normal(size=K.shape)), limits))
    assert got.feasible is False
    assert got.method == SemidefiniteProgramming.name
    proof = got.infeasibility
    assert proof.bound > 0
    assert proof.weights.sum() == pytest.approx(1.0)
    for x in [K.project(rng.normal(size=K.shape) * K.radius) for _ in range(20)]:
        if squares:
            assert proof.weights @ limits.values(x)[proof.rounds] >= proof.bound * (1 - 1e-9)
        else:
            A, b, _ = limits.halfspaces()
            assert proof.weights @ (A @ x.reshape(-1) - b)[proof.rows] >= proof.bound - 1e-12


def test_squares_that_contradict_each_other_are_proved_to_by_their_rounds():
    squares = Squared.of([(([0], [1]), [0.1]), (([], []), []), (([0], [1]), [0.3])], (3, 3))
    stream = Stream(Linear(np.zeros((3, 3, 3))), squares)
    proof = best_in_hindsight(Spectraplex(3), stream).infeasibility
    assert proof.rounds.tolist() == [0, 2]
    assert proof.bound == pytest.approx(0.5 * 0.1**2, rel=1e-6)  # halfway between the two


# --- sets that the equations leave no inside of -------------------------------------------------


def diagonal(values):
    return {(i, i): value for i, value in values.items()}


QUARTERS = diagonal(dict.fromkeys(range(4), 0.25))


@pytest.mark.parametrize(
    ("K", "entries", "smaller", "rest", "kept"),
    [
        (BoundedPSD(4, 2.0), {0: 0.0, 1: 0.1}, BoundedPSD(3, 2.0), {0: 0.1}, slice(1, None)),
        (BoundedPSD(50, 2.0), {0: 0.0, 1: 0.1}, BoundedPSD(49, 2.0), {0: 0.1}, slice(1, None)),
        (Fantope(10, 4), {0: 1.0, 1: 0.0, 2: 0.9}, Fantope(8, 3), {0: 0.9}, slice(2, None)),
    ],
)
def test_zeros_and_ones_on_the_diagonal_take_their_rows_with_them(K, entries, smaller, rest, kept):
    C = symmetric(np.random.default_rng(6), K.n)
    stream = Stream(Linear.one(C), fixed(diagonal(entries), K.shape))
    of_rest = Stream(Linear.one(C[kept, kept]), fixed(diagonal(rest), smaller.shape))
    got, want = best_in_hindsight(K, stream), best_in_hindsight(smaller, of_rest)
    ones = C[0, 0] if entries[0] == 1.0 else 0.0
    assert got.feasible
    assert got.lower <= ones + want.upper + 1e-6
    assert got.upper >= ones + want.lower - 1e-4 * abs(want.lower)
    assert got.upper - got.lower <= 1e-4 * abs(want.lower)


@pytest.mark.parametrize("K", [BoundedPSD(12), Spectraplex(12)])
def test_a_trace_that_some_entries_use_up_leaves_the_others_nothing(K):
    C = symmetric(np.random.default_rng(7), 12)
    got = best_in_hindsight(K, Stream(Linear.one(C), fixed(QUARTERS, (12, 12))))
    want = best_in_hindsight(Spectraplex(4), Stream(Linear.one(C[:4, :4]), fixed(QUARTERS, (4, 4))))
    assert got.feasible
    assert got.lower <= want.upper
    assert got.upper >= want.lower
    assert got.upper - got.lower <= 1e-4 * abs(want.lower)


@pytest.mark.parametrize("K", [BoundedPSD(6), Spectraplex(6), Fantope(6, 1)])
def test_a_single_point_is_found(K):
    rng = np.random.default_rng(8)
    u = rng.normal(size=6)
    u /= np.linalg.norm(u)
    C = symmetric(rng, 6)
    got = best_in_hindsight(K, Stream(Linear.one(C), Affine.one(-np.outer(u, u), -1.0)))
    value = float(u @ C @ u)
    assert got.feasible
    assert got.lower <= value <= got.upper + 1e-4 * np.linalg.norm(C)
    assert got.upper - got.lower <= 1e-3 * np.linalg.norm(C)


# --- squared losses -----------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["room", "full", "spectraplex"])
@pytest.mark.parametrize("n", [5, 20])
def test_squared_losses_under_equations_are_bracketed(kind, n):
    K, stream, X, _ = planted(10, n, n, kind)
    targets = X - stream.losses.C.sum(axis=0)  # the slope at X is that of the planted costs
    i, j = np.divmod(np.random.default_rng(0).permutation(n * n), n)
    parts = np.array_split(np.arange(n * n), ROUNDS)
    each = [((i[part], j[part]), targets[i[part], j[part]]) for part in parts]
    squares = Squared.of(each, (n, n))
    got = best_in_hindsight(K, Stream(squares, stream.constraints))
    value = float(squares.values(X).sum())
    holds(K, Stream(squares, stream.constraints), got, 1e-6)
    assert got.lower <= value * (1 + 1e-9)
    assert value <= got.upper * (1 + 1e-7)


def test_a_row_of_nothing_that_asks_for_something_is_the_proof():
    nothing = np.array([[0.0, 1.0], [-1.0, 0.0]])  # a symmetric matrix has no product with it
    stream = Stream(Linear(np.zeros((2, 2, 2))), Affine([np.eye(2), nothing], [5.0, -0.5]))
    got = best_in_hindsight(BoundedPSD(2), stream)
    proof = got.infeasibility
    assert got.method == SemidefiniteProgramming.name
    assert proof.rounds.tolist() == [1]
    assert proof.bound == pytest.approx(0.5)


def test_every_comparator_says_what_found_it():
    losses, limits = Linear([[1.0, 2.0]]), Affine([[1.0, 0.0]], [0.7])
    seen = Squared.one([[0]], [0.5], (2,))
    inside = Range.one([[0]], [-0.9], [0.9], (2,))
    matrices = Stream(Linear.one(np.eye(2)), fixed({(0, 1): 0.1}, (2, 2)))
    found = {
        LinearProgramming.name: best_in_hindsight(Simplex(2), Stream(losses, limits)),
        LevelBundle.name: best_in_hindsight(L2Ball(2), Stream(losses, limits)),
        AlternatingDirections.name: best_in_hindsight(L2Ball(2), Stream(seen, inside)),
        NewtonSteps.name: best_in_hindsight(Simplex(2), Stream(seen, limits)),
        SemidefiniteProgramming.name: best_in_hindsight(Spectraplex(2), matrices),
    }
    for method, got in found.items():
        assert got.feasible
        assert got.method == method
    run = tw.run(tw.LyapunovDescent(Spectraplex(2), horizon=5), matrices)
    assert f"best fixed point in hindsight by: {SemidefiniteProgramming.name}" in str(run)
    assert run.summary()["hindsight_method"] == SemidefiniteProgramming.name
