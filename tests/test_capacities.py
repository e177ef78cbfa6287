"""The drift-plus-penalty step for capacities: certificates that no solver is needed to check, every
stage, every kind of hull, twins.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polytopes import layered, random_flow_polytope
from tidewolf.functions import Capacity
from tidewolf.kernels import penalty as kernels
from tidewolf.methods.steps.penalty import PenaltyTask, capacities, hull, interior
from tidewolf.methods.steps.penalty.capacities import (
    Part,
    Proposal,
    Search,
    closed_form,
    dual_ascent,
    interior_point,
)
from tidewolf.sets import Box, CappedSimplex, FlowPolytope, L2Ball, Simplex, Translated, VertexHull

SETS = {
    "a box": Box(np.zeros((2, 3)), np.ones((2, 3))),
    "a number": Box([0.0], [1.0]),
    "a box with a fixed entry": Box([-1.0, 0.0, 2.0], [1.0, 5.0, 2.0]),
    "a ball": L2Ball(4, radius=2.0),
    "a small ball": L2Ball(3, radius=1e-8),
    "a large ball": L2Ball(3, radius=1e8),
    "a simplex": Simplex(6),
    "a moved simplex": Translated(Simplex(4), np.arange(4.0)),
    "a capped simplex": CappedSimplex(6, 0.4),
    "flows": random_flow_polytope(3),
    "layers": layered(3, 4),
    "flows with idle arcs": FlowPolytope.examples()[1],
    "flows with arcs on every path": FlowPolytope.examples()[4],
    "a hull of vertices": VertexHull(np.random.default_rng(0).normal(size=(4, 7))),
}
seeds = st.integers(0, 2**32 - 1)


def random_task(K: Any, seed: int) -> PenaltyTask:
    """A step of any kind: y inside or on the border, capacities loose, tight, negative, tied, out
    of reach; any weights.
    """
    rng = np.random.default_rng(seed)
    c, R = np.asarray(K.center, dtype=float), K.radius
    way = np.asarray(K.tangent(rng.normal(size=K.shape)))
    y = c + R * rng.choice([0.0, 0.3, 0.9, 1.0]) * way / np.linalg.norm(way)
    d = (
        np.asarray(K.tangent(rng.normal(size=K.shape)))
        * 10.0 ** rng.uniform(-3, 3)
        * rng.choice([0, 1, 1])
    )
    C = c + R * (
        rng.normal(size=(rng.choice([1, 2, 5, 20]), *K.shape)) * rng.choice([0.1, 0.5, 2.0])
        + rng.choice([-1.0, 0.0, 0.3, 5.0])
    )
    match rng.integers(6):
        case 0:
            C = R * np.round(4.0 * C / R) / 4.0
        case 1:
            C[:] = C[0]
        case 2:
            C[rng.random(C.shape) < 0.3] = 1e200
    return PenaltyTask(
        K, Capacity(C), y, d, 10.0 ** rng.uniform(-3, 3), 10.0 ** rng.uniform(-3, 3) / R, c
    )


def scale(task: PenaltyTask) -> float:
    """What h is made of at y and at the end of the ball."""
    R = task.K.radius
    return (
        task.delta * task.breach(task.y)
        + float(np.linalg.norm(task.d)) * R
        + 1e-6 * task.alpha * R**2
    )


def members(task: PenaltyTask, x: np.ndarray, seed: int, count: int = 40) -> list[np.ndarray]:
    """Points of the ball and hull, near x and anywhere."""
    rng, R, points = np.random.default_rng(seed), task.K.radius, []
    for _ in range(count):
        way = np.asarray(task.K.tangent(rng.normal(size=x.shape)))
        z = x + R * 10.0 ** rng.uniform(-9, 0) * way / np.linalg.norm(way) - task.center
        points.append(task.center + z * min(1.0, R / max(float(np.linalg.norm(z)), 1e-300)))
    return points


def h(task: PenaltyTask, x: np.ndarray) -> float:
    return task.value(x, task.breach(x))


# ------------------------------------------------------------------------------------- certificates


@pytest.mark.soak_examples(25)
@pytest.mark.parametrize("name", SETS)
@settings(max_examples=8)
@given(seed=seeds)
def test_answers_are_as_good_as_certified_and_as_asked(name, seed):
    task = random_task(SETS[name], seed)
    accuracy = 1e-8 * scale(task)
    x, breach, gap, off, looks = capacities.capacities(task, accuracy, 1000)
    blur = 1e-12 * (abs(h(task, x)) + scale(task))
    assert 0.0 <= gap <= accuracy
    assert looks >= 1
    assert breach == pytest.approx(task.breach(x), rel=1e-12)
    assert np.linalg.norm(x - task.center) <= task.K.radius * (1 + 1e-12) + 1e-15 * np.linalg.norm(
        task.center
    )
    across = (x - task.center) - np.asarray(task.K.tangent(x - task.center))
    assert np.abs(across).max() <= 1e-11 * (task.K.radius + np.abs(task.center).max())
    for z in (*members(task, x, seed), task.y):
        assert (
            h(task, x) + 0.5 * task.alpha * max(0.0, float(np.linalg.norm(z - x)) - off) ** 2
            <= h(task, z) + gap + blur
        )


@pytest.mark.soak_examples(25)
@pytest.mark.parametrize("name", SETS)
@settings(max_examples=8)
@given(seed=seeds)
def test_the_gap_is_that_of_the_bound_of_the_task(name, seed):
    """What is certified is h(x) - task.lower(s, e), only summed so that nothing cancels, and the
    bound is below h everywhere.
    """
    task = random_task(SETS[name], seed)
    search = Search(task, 0.0, 1)
    rng = np.random.default_rng(seed)
    S = np.unique(rng.integers(0, len(search.z), 3))
    u = (
        rng.exponential(size=(len(search.C), len(S)))
        * search.rho
        / len(S)
        * rng.choice([0.01, 1.0])
    )
    part = Part(search, 1.0)
    part.offer(Proposal(S, u, None))
    lam = task.alpha * Proposal(S, u, None).within(search.rho).u
    w = np.zeros(len(search.z))
    w[S] = lam.sum(axis=0)
    s = task.d + np.asarray(task.K.tangent(w.reshape(task.y.shape)))
    finite = np.where(lam > 0.0, task.y.reshape(-1)[S] - search.C[:, S], 0.0)
    e = float(np.vdot(lam, finite))
    lower = task.lower(s, e)
    best = search.best
    sizes = (
        abs(h(task, best.x))
        + abs(e)
        + float(np.linalg.norm(s)) * task.K.radius
        + float(np.abs(lam * finite).sum())
    )
    assert best.gap == pytest.approx(h(task, best.x) - lower, rel=1e-9, abs=1e-11 * sizes)
    assert np.allclose(
        best.x,
        task.nearest(s),
        atol=1e-11 * (task.K.radius + np.abs(search.z).max() + np.abs(w).max() / task.alpha),
    )
    assert all(lower <= h(task, z) + 1e-11 * sizes for z in members(task, best.x, seed, 10))


@pytest.mark.soak_examples(12)
@pytest.mark.parametrize("name", SETS)
@settings(max_examples=5)
@given(seed=seeds)
def test_every_stage_that_answers_gives_the_same_point(name, seed):
    task = random_task(SETS[name], seed)
    accuracy = 1e-8 * scale(task)
    whole = capacities.capacities(task, accuracy, 1000)
    for stages in (
        (closed_form,),
        (dual_ascent,),
        (interior_point,),
        (closed_form, interior_point),
    ):
        search = Search(task, accuracy, 1000)
        part = Part(search, 1.0)
        for stage in stages:
            if stage is not closed_form and part.gap == np.inf:
                part.offer(part.best)
            for proposal in stage(part):
                part.offer(proposal)
        if search.best.gap <= accuracy:
            apart = np.linalg.norm(search.best.x - whole.x)
            assert apart <= 2.0 * np.sqrt(2.0 * accuracy / task.alpha) * (1 + 1e-9)
        assert h(task, search.best.x) - search.best.gap <= h(task, whole.x) + 1e-12 * scale(
            task
        ) + 1e-12 * abs(h(task, whole.x))


@given(
    seed=seeds,
    factor=st.sampled_from([1e-8, 1e-3, 1e8]),
    name=st.sampled_from(["a box", "a simplex", "flows"]),
)
def test_units_of_h_do_not_matter(seed, factor, name):
    task = random_task(SETS[name], seed)
    accuracy = 1e-8 * scale(task)
    other = task._replace(d=factor * task.d, delta=factor * task.delta, alpha=factor * task.alpha)
    one, two = (
        capacities.capacities(task, accuracy, 1000),
        capacities.capacities(other, factor * accuracy, 1000),
    )
    assert two.gap <= factor * accuracy
    assert np.linalg.norm(one.x - two.x) <= 2.0 * np.sqrt(2.0 * accuracy / task.alpha)


@pytest.mark.soak_examples(8)
@pytest.mark.parametrize(
    "name", ["a box", "a simplex", "flows", "layers", "a hull of vertices", "a ball"]
)
@pytest.mark.parametrize("alpha", [1e-12, 1e-6, 1e6, 1e12])
@settings(max_examples=4)
@given(seed=seeds)
def test_extreme_weights_leave_certificates_honest(name, alpha, seed):
    task = random_task(SETS[name], seed)._replace(alpha=alpha)
    x, _, gap, _, _ = capacities.capacities(task, 1e-8 * scale(task), 60)
    blur = 1e-12 * (abs(h(task, x)) + scale(task))
    assert 0.0 <= gap < np.inf
    assert h(task, x) <= min(h(task, z) for z in members(task, x, seed, 20)) + gap + blur


# ------------------------------------------------------------------------------------------ by hand


def test_closed_form_by_hand():
    K = Box(np.zeros(3), np.full(3, 10.0))
    c = np.array([[4.0, 9.0, 9.0], [9.0, 3.0, 9.0]])
    task = PenaltyTask(
        K, Capacity(c), np.full(3, 5.0), np.array([0.0, 0.0, 1.0]), 10.0, 2.0, np.full(3, 5.0)
    )
    search = Search(task, 1e-12, 10)
    answer = search.run()
    assert search.stage == "closed_form"
    assert answer.x.tolist() == [4.0, 3.0, 4.5]
    assert answer.breach == 0.0
    assert answer.looks == 1


def test_a_saturated_round_by_hand():
    """One round, rho = 0.5: 1/2 (x - 1)^2 + 0.5 x^+ has its least value at 0.5."""
    task = PenaltyTask(
        Box([-3.0], [3.0]), Capacity.one([0.0]), np.array([1.0]), np.zeros(1), 1.0, 2.0, np.zeros(1)
    )
    x, breach, gap, _, _ = capacities.capacities(task, 1e-12, 100)
    assert x[0] == pytest.approx(0.5, abs=1e-6)
    assert breach == pytest.approx(0.5, abs=1e-6)
    assert gap <= 1e-12


def test_the_ball_by_hand():
    """A pull along the first axis ends on the ball; a capacity there holds it back."""
    K = L2Ball(2)
    task = PenaltyTask(
        K, Capacity.one([5.0, 5.0]), np.zeros(2), np.array([-30.0, -40.0]), 1.0, 1.0, np.zeros(2)
    )
    assert capacities.capacities(task, 1e-9, 100).x == pytest.approx([0.6, 0.8], abs=1e-6)
    held = capacities.capacities(
        task._replace(constraints=Capacity.one([0.28, 5.0]), delta=100.0), 1e-9, 100
    )
    assert held.x == pytest.approx([0.28, 0.96], abs=1e-5)


@pytest.mark.parametrize(
    "K", [FlowPolytope.examples()[3], Box([0.5, -0.5], [0.5, -0.5]), CappedSimplex(2, 0.5)]
)
def test_one_point_is_the_answer(K):
    c = np.asarray(K.center, dtype=float)
    task = PenaltyTask(K, Capacity(np.stack([c - 1.0, c + 1.0])), c, np.zeros(K.shape), 2.0, 1.0, c)
    x, breach, gap, _, _ = capacities.capacities(task, 1e-12, 10)
    assert np.array_equal(x, c)
    assert breach == pytest.approx(1.0)
    assert gap == 0.0


def test_ties_are_shared_among_rounds():
    """Twenty rounds with the same capacities carry together what one cannot."""
    K = Box(np.zeros(4), np.ones(4))
    task = PenaltyTask(
        K,
        Capacity(np.full((20, 4), 0.25)),
        np.full(4, 0.75),
        np.zeros(4),
        0.11,
        1.0,
        np.full(4, 0.5),
    )
    search = Search(task, 1e-12, 10)
    assert search.run().x == pytest.approx(np.full(4, 0.25))
    assert search.stage == "closed_form"


@pytest.mark.parametrize("rounds", [4, 40])
@pytest.mark.parametrize("delta", [0.05, 2.0, 100.0])
def test_an_outage_is_answered(rounds, delta):
    """Capacities near zero on many arcs, from a flow that uses them: no stage may be left without
    an answer.
    """
    K, rng = layered(5, 5), np.random.default_rng(0)
    c = np.asarray(K.center)
    C = c * rng.uniform(1.0, 3.0, (rounds, len(c)))
    C[:, rng.random(len(c)) < 0.4] = 1e-3
    d = np.asarray(K.tangent(rng.normal(size=len(c))))
    task = PenaltyTask(K, Capacity(C), c, d, delta, 0.5, c)
    x, _, gap, _, looks = capacities.capacities(task, 1e-9 * scale(task), 100)
    assert gap <= 1e-9 * scale(task)
    assert looks < 100
    assert h(task, x) <= min(h(task, z) for z in members(task, x, 0)) + gap


def test_a_budget_ends_the_search_with_what_it_has():
    task = random_task(SETS["layers"], 5)._replace(delta=1.0, alpha=1e-2)
    few = capacities.capacities(task, 0.0, 2)
    assert few.looks == 2
    assert 0.0 <= few.gap < np.inf


def test_nothing_given_is_changed():
    task = random_task(SETS["a simplex"], 1)
    before = [np.array(a) for a in (task.constraints.c, task.y, task.d, task.center)]
    capacities.capacities(task, 1e-9, 100)
    assert all(
        np.array_equal(a, b)
        for a, b in zip(before, (task.constraints.c, task.y, task.d, task.center), strict=True)
    )


@pytest.mark.parametrize("name", ["a box", "a simplex", "flows", "a hull of vertices", "a ball"])
@pytest.mark.parametrize("seed", range(3))
def test_a_conic_solver_agrees(name, seed):
    cp = pytest.importorskip("cvxpy", reason="cvxpy is not installed")
    task = random_task(SETS[name], 1000 + seed)._replace(alpha=1.0 / SETS[name].radius, delta=0.3)
    n = task.y.size
    P = np.array(
        [np.asarray(task.K.tangent(e.reshape(task.y.shape))).reshape(-1) for e in np.eye(n)]
    )
    x, y = cp.Variable(n), task.y.reshape(-1)
    c = task.constraints.c.reshape(len(task.constraints), -1)
    breach = sum(cp.pos(cp.max(x - np.minimum(row, 1e3))) for row in c)
    value = (
        task.d.reshape(-1) @ (x - y) + task.delta * breach + task.alpha / 2 * cp.sum_squares(x - y)
    )
    within = [cp.norm(x - task.center.reshape(-1)) <= task.K.radius, (np.eye(n) - P) @ (x - y) == 0]
    best = cp.Problem(cp.Minimize(value), within).solve(solver=cp.CLARABEL)
    answer = capacities.capacities(task, 1e-9 * scale(task), 500)
    assert h(task, answer.x) == pytest.approx(best, abs=1e-6 * scale(task))


# -------------------------------------------------------------------------------------------- hulls


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("few", [0, 16])
def test_normals_and_columns_are_those_of_the_tangent(name, few, monkeypatch):
    monkeypatch.setattr(hull, "FEW_NORMALS", few)
    K = SETS[name]
    n = int(np.prod(K.shape))
    P = np.array([np.asarray(K.tangent(e.reshape(K.shape))).reshape(-1) for e in np.eye(n)])
    H = hull.AffineHull(K)
    A = H.normals if isinstance(H.normals, np.ndarray) else H.normals.toarray()
    assert A.shape == (n - K.dimension, n)
    assert np.allclose(np.eye(n) - np.linalg.pinv(A) @ A, P, atol=1e-12)
    S = np.arange(0, n, 2)
    Q, N = H.among(S)
    assert np.allclose(Q if len(Q) else np.eye(len(S)) - N @ N.T, P[np.ix_(S, S)], atol=1e-12)
    weights = np.random.default_rng(0).random(n)
    assert np.allclose(H.gram(weights), (A * weights) @ A.T, atol=1e-11)


@pytest.mark.parametrize("columns", [0, 64])
@pytest.mark.parametrize("name", ["a box", "a simplex", "layers"])
def test_binding_entries_are_solved_for(name, columns, monkeypatch):
    monkeypatch.setattr(hull, "COLUMNS", columns)
    H = hull.AffineHull(SETS[name])
    S = np.array([0, 3, 4])
    r = np.array([1.0, -0.5, 2.0])
    w = np.zeros(H.n)
    w[S] = H.solve(S, r)
    assert H(w)[S] == pytest.approx(r, abs=1e-9)


# -------------------------------------------------------------------------------------------- twins


def naive_round(a: np.ndarray, rho: float) -> np.ndarray:
    """(a - tau)^+ for the least tau >= 0 with a sum of at most rho, by sorting."""
    if np.maximum(a, 0.0).sum() <= rho:
        return np.maximum(a, 0.0)
    down = np.sort(a)[::-1]
    taus = (np.cumsum(down) - rho) / np.arange(1, len(a) + 1)
    return np.maximum(a - taus[np.flatnonzero(down > taus)[-1]], 0.0)


@given(
    seed=seeds,
    hull_kind=st.sampled_from(["whole", "few", "columns"]),
    rho=st.sampled_from([0.01, 0.3, 5.0]),
)
def test_ascent_is_its_naive_twin(seed, hull_kind, rho):
    rng = np.random.default_rng(seed)
    b, m = rng.integers(1, 6), rng.integers(1, 7)
    C, z = np.round(rng.normal(size=(b, m)), 1), rng.normal(size=m)
    u = rng.random((b, m)) * rho / m
    N = np.linalg.qr(rng.normal(size=(m + 2, 2)))[0][:m] if hull_kind == "few" else np.zeros((m, 0))
    B = np.linalg.qr(rng.normal(size=(m + 3, 3)))[0][:m]
    Q = np.eye(m) - B @ B.T if hull_kind == "columns" else np.zeros((0, 0))
    P = Q if len(Q) else np.eye(m) - N @ N.T
    expected, x = u.copy(), z - P @ u.sum(axis=0)
    for _ in range(3):
        for t in range(b):
            new = naive_round(x + expected[t] - C[t], rho)
            x = x - P @ (new - expected[t])
            expected[t] = new
    for run in (kernels.ascend_multipliers.compiled, kernels.ascend_multipliers.plain):
        found, x_found = u.copy(), z - P @ u.sum(axis=0)
        run(C, rho, Q, N, found, x_found, 3)
        assert found == pytest.approx(expected, abs=1e-12)
        assert x_found == pytest.approx(x, abs=1e-12)
        assert found.min() >= 0.0
        assert found.sum(axis=1).max() <= rho * (1 + 1e-12)


@given(seed=seeds)
def test_ascent_never_lowers_the_bound(seed):
    rng = np.random.default_rng(seed)
    b, m, rho = 4, 5, 0.5
    C, z, u = rng.normal(size=(b, m)), rng.normal(size=m), np.zeros((b, m))
    B = np.linalg.qr(rng.normal(size=(m + 3, 3)))[0][:m]
    Q, x, last = np.eye(m) - B @ B.T, z.copy(), -np.inf
    for _ in range(10):
        kernels.ascend_multipliers(C, rho, Q, np.zeros((m, 0)), u, x, 1)
        w = u.sum(axis=0)
        bound = float(w @ z - np.vdot(u, C) - 0.5 * w @ Q @ w)
        assert bound >= last - 1e-12
        last = bound


@given(seed=seeds)
def test_shares_add_up_and_go_to_the_rounds_that_attain_the_minimum(seed):
    rng = np.random.default_rng(seed)
    b, m, rho = rng.integers(1, 6), rng.integers(1, 6), 0.7
    C, w = rng.integers(0, 3, (b, m)).astype(float), rng.random(m)
    for run in (kernels.share_multipliers.compiled, kernels.share_multipliers.plain):
        u = np.zeros((b, m))
        run(C, C.min(axis=0), w, rho, u)
        assert u.sum(axis=0) == pytest.approx(w)
        assert (u >= 0.0).all()
        assert (u[C.min(axis=0) < C] == 0.0).all()
        # every round ties everywhere: no order of filling can fail
        only = (C.min(axis=0) == C).all(axis=0).all()
        if only and w.sum() <= b * rho:
            assert u.sum(axis=1).max() <= rho + 1e-12


@given(seed=seeds, corrector=st.booleans())
def test_the_kernels_of_interior_point_are_their_formulas(seed, corrector):
    rng = np.random.default_rng(seed)
    b, m = rng.integers(1, 5), rng.integers(1, 5)
    u, s, ds, du = (
        rng.random((b, m)),
        rng.random((b, m)) + 0.1,
        rng.normal(size=(b, m)),
        rng.normal(size=(b, m)),
    )
    D, dtau, dx = u / s, rng.normal(size=b), rng.normal(size=m)
    g_expected = (0.3 - corrector * ds * du) / s - u
    away = dtau[:, None] - dx
    grad = g_expected - D * away
    for pick in ("compiled", "plain"):
        g, ds_found, du_found = np.empty((b, m)), np.empty((b, m)), np.empty((b, m))
        columns, lines = getattr(kernels.complementarity_targets, pick)(
            u, s, ds, du, 0.3, corrector, g
        )
        assert g == pytest.approx(g_expected)
        assert columns == pytest.approx(g_expected.sum(axis=0))
        assert lines == pytest.approx(g_expected.sum(axis=1))
        primal, dual = getattr(kernels.step_lengths, pick)(g, D, dtau, dx, s, u, ds_found, du_found)
        assert ds_found == pytest.approx(away)
        assert du_found == pytest.approx(grad)
        assert primal == pytest.approx(interior.longest_step(s, away))
        assert dual == pytest.approx(interior.longest_step(u, grad))
