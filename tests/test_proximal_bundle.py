"""The step of drift-plus-penalty by bundles: what is certified holds against everything sampled,
and against a conic solver.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from covering import thinned
from polytopes import layered, random_flow_polytope
from tidewolf.functions import Affine, Capacity, Custom, MaxAffine, Quadratic
from tidewolf.methods.steps.penalty import PenaltyTask, solve_penalty
from tidewolf.sets import Box, CappedSimplex, FlowPolytope, L2Ball, Simplex, Translated, VertexHull

SETS = {
    "box": Box([-1.0, 0.0, 2.0, -3.0], [1.0, 1.0, 4.0, 3.0]),
    "ball": L2Ball(5, 2.0, [1.0, 0.0, 0.0, -4.0, 0.0]),
    "matrices": L2Ball((2, 3)),
    "simplex": Simplex(6),
    "flow": FlowPolytope.from_edges(
        [tuple(edge) for edge in ("ab", "ab", "ac", "bc", "bd", "cd", "cd")], source="a", target="d"
    ),
    "interval": Box([-2.0], [1.0]),
    "fixed entry": Box([-1.0, 0.0, 2.0], [1.0, 5.0, 2.0]),
    "small ball": L2Ball(3, radius=1e-8),
    "large ball": L2Ball(3, radius=1e8),
    "moved": Translated(Simplex(4), np.arange(4.0)),
    "capped": CappedSimplex(6, 0.4),
    "flows": random_flow_polytope(3),
    "layers": layered(3, 4),
    "idle arcs": FlowPolytope.examples()[1],
    "arcs on every path": FlowPolytope.examples()[4],
    "hull": VertexHull(np.random.default_rng(0).normal(size=(4, 7))),
}
seeds = st.integers(0, 2**32 - 1)
each_set = pytest.mark.parametrize("K", SETS.values(), ids=SETS)


def member(K, rng, far):
    """A point of the ball and hull, `far` of the radius away from the center."""
    direction = K.tangent(rng.normal(size=K.shape))
    length = float(np.linalg.norm(direction))
    return np.array(K.center) if length == 0.0 else K.center + (far * K.radius / length) * direction


def pieces(K, rng, b, p, ties):
    """Maxima of affine pieces, some breached near the center and some not; `ties`: few different
    numbers, so that cuts coincide.
    """
    A, level = rng.normal(size=(b, p, *K.shape)), rng.normal(size=(b, p))
    if ties:
        A, level = (np.clip(np.rint(each), -1.0, 1.0) for each in (A, level))
    at_center = A.reshape(b, p, -1) @ K.center.reshape(-1)
    return MaxAffine(A, at_center + 0.3 * K.radius * (level + 0.5))


def posed(K, constraints, rng, delta, alpha, far=0.8):
    y, d = member(K, rng, far), K.tangent(rng.normal(size=K.shape))
    return PenaltyTask(K, constraints, y, d, delta, alpha, np.array(K.center))


def breach(task, x):
    return float(np.maximum(task.constraints.values(x), 0.0).sum())


def h(task, x):
    return task.value(x, breach(task, x))


def scale(task):
    """How large h is about y: what accuracies are relative to."""
    return abs(h(task, task.y)) + float(np.linalg.norm(task.d)) * task.K.radius


def honest(task, solved, rng, *others):
    """The answer is in the ball and hull, its numbers are its own, and nothing sampled is below the
    quadratic that certifies it.
    """
    K, reach = task.K, float(np.linalg.norm(task.center)) + task.K.radius
    off = solved.x - task.center
    assert np.linalg.norm(off) <= K.radius + 1e-12 * reach
    assert np.linalg.norm(off - K.tangent(off)) <= 1e-11 * reach
    assert solved.breach == breach(task, solved.x)
    assert solved.gap >= 0.0
    assert solved.looks >= 1
    bound = h(task, solved.x) - solved.gap
    around = [member(K, rng, far) for far in (0.0, 0.3, 0.9, 1.0, 1.0)]
    steps = (1.0, 0.5, 1e-2, 1e-4, 1e-6)
    near = [solved.x + step * (member(K, rng, 1.0) - solved.x) for step in steps]
    for z in (*around, *near, *others, task.y):
        away = float(np.linalg.norm(z - task.y))
        # coordinates of points are rounded, however near to each other these are
        size = max(away, reach) * (float(np.linalg.norm(task.d)) + task.alpha * away)
        assert bound <= h(task, z) + 1e-15 * size
        beyond = max(0.0, float(np.linalg.norm(z - solved.x)) - solved.off)
        rounding = 1e-13 * (size + task.alpha * beyond**2 + abs(bound))
        assert bound + 0.5 * task.alpha * beyond**2 <= h(task, z) + rounding


def capacities(K, rng, b, odd):
    """Loose, tight and negative ones; `odd`: that tie, that are the same in all rounds, or of
    which some are out of reach.
    """
    size, shift = rng.choice([0.1, 0.5, 2.0]), rng.choice([-1.0, 0.0, 0.3, 5.0])
    C = size * rng.normal(size=(b, *K.shape)) + shift
    if odd:
        tied, far = np.round(4.0 * C) / 4.0, np.where(rng.random(C.shape) < 0.3, 1e200, C)
        C = (tied, np.broadcast_to(C[:1], C.shape), far)[rng.integers(3)]
    return Capacity(K.center + K.radius * C)


@pytest.mark.soak_examples(40)
@each_set
@settings(max_examples=10)
@given(
    seed=seeds,
    b=st.sampled_from([1, 2, 7, 40]),
    p=st.sampled_from([0, 1, 2, 5]),
    ties=st.booleans(),
    delta=st.sampled_from([1e-2, 1.0, 1e2, 1e4, 1e8]),
    alpha=st.sampled_from([1e-12, 1e-3, 1.0, 1e3, 1e12]),
    far=st.sampled_from([0.0, 0.8, 1.0]),
)
def test_piecewise_linear_blocks_are_solved_to_an_accuracy(K, seed, b, p, ties, delta, alpha, far):
    """Maxima of so many pieces, and capacities."""
    rng = np.random.default_rng(seed)
    block = pieces(K, rng, b, p, ties) if p else capacities(K, rng, b, ties)
    task = posed(K, block, rng, delta, alpha / K.radius, far)
    next_to_linear = alpha < 1e-3 * delta  # digits of x are lost in slopes that cancel
    accuracy = (1e-5 if next_to_linear else 1e-8) * scale(task)
    solved = solve_penalty(task, accuracy)
    honest(task, solved, rng)
    # the programs' own tolerance of a limit, which the penalty multiplies
    reached = accuracy + (1e-7 * delta * K.radius if next_to_linear else 0.0)
    assert solved.gap <= reached or (p == 0 and next_to_linear)
    assert solved.looks <= (60 if p else 1000)


@pytest.mark.soak_examples(25)
@pytest.mark.parametrize("name", ["box", "matrices", "simplex", "flow"])
@settings(max_examples=8)
@given(seed=seeds, b=st.sampled_from([1, 5, 30]), delta=st.sampled_from([0.1, 10.0]))
def test_capacities_are_maxima_of_coordinates(name, seed, b, delta):
    K, rng = SETS[name], np.random.default_rng(seed)
    n = int(np.prod(K.shape))
    c = K.center + 0.3 * K.radius * rng.normal(size=(b, *K.shape))
    coordinates = np.broadcast_to(np.eye(n), (b, n, n)).reshape(b, n, *K.shape)
    task = posed(K, Capacity(c), rng, delta, 0.7)
    accuracy = 1e-10 * scale(task)
    as_pieces = task._replace(constraints=MaxAffine(coordinates, c.reshape(b, n)))
    one, other = (solve_penalty(each, accuracy) for each in (task, as_pieces))
    assert max(one.gap, other.gap) <= accuracy
    assert abs(h(task, one.x) - h(task, other.x)) <= accuracy


def cones(K, rng, b):
    """Distances from points, less some length: curved, kinked, and known only by their values and
    subgradients.
    """
    points = [member(K, rng, 0.9) for _ in range(b)]

    def value(t, x):
        return float(np.linalg.norm(x - points[t])) - 0.3 * K.radius

    def subgradient(t, x):
        length = float(np.linalg.norm(x - points[t]))
        return (x - points[t]) / length if length > 0.0 else np.zeros(K.shape)

    return Custom(value, subgradient, K.shape, rounds=b)


@pytest.mark.soak_examples(25)
@each_set
@settings(max_examples=8)
@given(seed=seeds, budget=st.sampled_from([1, 2, 5, 12]))
def test_unknown_functions_stop_at_the_budget_with_an_honest_gap(K, seed, budget):
    rng = np.random.default_rng(seed)
    task = posed(K, cones(K, rng, 5), rng, 20.0, 0.1)
    solved, longer = solve_penalty(task, 0.0, budget), solve_penalty(task, 1e-6 * scale(task))
    honest(task, solved, rng, longer.x)
    honest(task, longer, rng, solved.x)
    assert solved.looks <= budget
    assert longer.gap <= 1e-6 * scale(task)
    assert h(task, longer.x) <= h(task, solved.x) + longer.gap


def test_an_answer_found_before_its_certificate_is_off_from_where_that_is_least():
    """Stopped early, a quadratic around the answer itself would be above h somewhere: the one that
    is below is around another point.
    """
    K, refuted = SETS["ball"], 0
    for seed in range(30):
        rng = np.random.default_rng(seed)
        task = posed(K, pieces(K, rng, 1, 4, False), rng, 0.1, 1.0)
        exact = solve_penalty(task, 1e-9 * scale(task)).x
        for budget in (2, 3):
            solved = solve_penalty(task, 0.0, budget)
            honest(task, solved, rng, exact)
            for z in [exact, *(member(K, rng, far) for far in np.linspace(0.0, 1.0, 20))]:
                around = 0.5 * task.alpha * float(np.linalg.norm(z - solved.x)) ** 2
                bound = h(task, solved.x) - solved.gap + around
                refuted += bound > h(task, z) + 1e-6 * scale(task)
    assert refuted > 0


@pytest.mark.parametrize("infeasible", [False, True])
def test_curved_constraints_that_cuts_alone_describe_badly_are_solved_in_few_looks(infeasible):
    rng, n, b = np.random.default_rng(0), 20, 32
    root = rng.normal(size=(b, n, n)) / np.sqrt(n)
    P, q = root @ root.swapaxes(1, 2), rng.normal(size=(b, n)) / np.sqrt(n)
    block = Quadratic(P, q, np.full(b, 1.0 if infeasible else -0.1))
    task = posed(L2Ball(n), block, rng, 32.0, 1e-3, 0.9)
    solved = solve_penalty(task, 1e-6 * scale(task))
    assert solved.gap <= 1e-6 * scale(task)
    assert solved.looks <= 50


@each_set
@given(seed=seeds)
def test_a_constant_breach_moves_nothing(K, seed):
    rng = np.random.default_rng(seed)
    task = posed(K, Affine(np.zeros((4, *K.shape)), [-1.0, -1e8, -1e-8, 1.0]), rng, 2.0, 0.5)
    solved = solve_penalty(task, 1e-6)
    np.testing.assert_allclose(solved.x, task.nearest(task.d), atol=1e-12)
    assert solved.gap <= 1e-6


WEIGHTS = {"0.3-1": (0.3, 1.0), "10-0.05": (10.0, 0.05), "10-5": (10.0, 5.0)}


@thinned(2, name=["box", "ball", "simplex", "flow"], weights=WEIGHTS)
def test_a_conic_solver_agrees(name, weights):
    delta, alpha = weights
    cp = pytest.importorskip("cvxpy", reason="cvxpy is not installed")
    K, rng = SETS[name], np.random.default_rng(3)
    n, b = K.shape[0], 8
    hull = np.array([K.tangent(e) for e in np.eye(n)])
    root = rng.normal(size=(b, n, n)) / np.sqrt(n)
    P, linear = root @ root.swapaxes(1, 2), pieces(K, rng, b, 3, False)
    curved = Quadratic(P, rng.normal(size=(b, n)) - P @ K.center, 0.3 * rng.normal(size=b))
    for block in (linear, curved):
        task, x = posed(K, block, rng, delta, alpha), cp.Variable(n)
        if block is linear:
            terms = [cp.pos(cp.max(linear.A[t] @ x - linear.b[t])) for t in range(b)]
        else:
            squares = [0.5 * cp.sum_squares(root[t].T @ x) for t in range(b)]
            terms = [cp.pos(squares[t] + curved.q[t] @ x + curved.r[t]) for t in range(b)]
        away = x - task.y
        cost = task.d @ away + delta * cp.sum(terms) + alpha / 2 * cp.sum_squares(away)
        inside = [cp.norm(x - task.center) <= K.radius, x - task.center == hull @ (x - task.center)]
        best = cp.Problem(cp.Minimize(cost), inside).solve(solver=cp.CLARABEL)
        assert abs(h(task, solve_penalty(task, 1e-8 * scale(task)).x) - best) <= 1e-6 * scale(task)
