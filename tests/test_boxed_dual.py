"""The boxed dual simplex agrees with HiGHS on any program, from any basis."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from scipy.sparse import csc_array

from tidewolf.kernels.boxed_dual import NO_POINT, solve_boxed

TOL = 1e-12


def solve(A, b, top, give, costs, soft, room, headrooms, state=None):
    """All programs, from a state or from the artificial columns, which are appended here."""
    m, n = A.shape
    wide = csc_array(np.hstack([A, np.eye(m)]))
    matrix = (wide.indptr.astype(np.int64), wide.indices.astype(np.int64), wide.data)
    limits, P = np.where(np.isfinite(soft), soft / give, np.inf), len(headrooms)
    start = (np.arange(n, n + m), np.zeros((m, m)), -1) if state is None else state
    points, shifts, numbers = np.empty((P, n)), np.empty(P), np.empty(P + 1, dtype=np.int64)
    basis, inverse = np.empty_like(start[0]), np.empty_like(start[1])
    solve_boxed(
        *matrix, b, np.append(top, np.zeros(m)), 0, np.zeros(n), give, np.zeros(n), 1.0,
        costs.copy(), limits, room / give, np.array(headrooms, dtype=float),
        *start, basis, inverse, points, shifts, numbers, TOL,
    )  # fmt: skip
    return points, shifts, numbers[:P], (basis, inverse, int(numbers[P]))


def twin(A, b, c, top, give, soft):
    """The least shift and the least cost at it, by HiGHS; None if no shift suffices."""
    m, n = A.shape
    finite = np.isfinite(soft)
    rows = np.hstack([np.eye(n)[finite], -give[finite, None]])
    bounds = [(0.0, u) for u in top] + [(0.0, None)]
    wide = np.hstack([A, np.zeros((m, 1))])
    first = linprog(np.append(np.zeros(n), 1.0), rows, soft[finite], wide, b, bounds)
    if first.status != 0:
        return None
    u = np.minimum(top, np.where(finite, soft + (first.fun + 1e-9) * give, np.inf))
    best = linprog(c, None, None, A, b, np.column_stack([np.zeros(n), np.maximum(u, 0.0)]))
    return (first.fun, best.fun) if best.status == 0 else None


@st.composite
def programs(draw):
    """Small programs with every kind of degeneracy, and some whose rows share no variable."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    m, n, whole = draw(st.integers(1, 5)), draw(st.integers(1, 9)), draw(st.booleans())
    A = rng.integers(-1, 2, (m, n)).astype(float) if whole else rng.standard_normal((m, n))
    if draw(st.booleans()):
        A = np.zeros((m, n))
        A[rng.integers(0, m, n), np.arange(n)] = 1.0
    elif draw(st.booleans()):  # repeated columns and rows
        A[:, n // 2 :] = A[:, : n - n // 2]
        A[m // 2 :] = A[: m - m // 2]
    top = rng.integers(0, 3, n).astype(float) if whole else rng.uniform(0.2, 2.0, n)
    inside = top * (rng.integers(0, 2, n) if whole else rng.uniform(0.0, 1.0, n))
    b = A @ inside
    if draw(st.integers(0, 4)) == 0:
        b = b + rng.integers(-2, 3, m)
    costs = rng.integers(-1, 2, n).astype(float) if whole else rng.standard_normal(n)
    soft = inside + (rng.integers(-1, 2, n) if whole else rng.uniform(-0.3, 0.6, n))
    soft[rng.random(n) < 0.3] = np.inf
    room = np.where(np.isfinite(soft), rng.uniform(0.0, 0.3, n), 0.0)
    return A, b, top, rng.choice([1.0, 0.25], n), costs, soft, room


@settings(max_examples=60)
@given(program=programs())
def test_every_program_has_the_least_shift_and_the_least_cost_of_highs(program):
    A, b, top, give, costs, soft, room = program
    headrooms = [0.0, 2.0, 1.0]
    points, shifts, pivots, _ = solve(*program, headrooms)
    for x, s, count, k in zip(points, shifts, pivots, headrooms, strict=True):
        bound = soft - k * room
        due = twin(A, b, costs, top, give, bound)
        assert (count < 0) == (due is None)
        if due is None:
            assert count == NO_POINT
            continue
        assert s == pytest.approx(due[0], abs=1e-7)
        assert costs @ x == pytest.approx(due[1], abs=1e-5)  # HiGHS allows itself 1e-7
        assert np.abs(A @ x - b).max() <= 1e-11
        assert (x >= 0.0).all()
        assert (x <= np.maximum(0.0, np.minimum(top, bound + s * give)) + 1e-15).all()


def flow(seed, layers=6, width=4):
    """Unit flows through layers of nodes: equations, and rounds of costs and capacities."""
    rng, arcs = np.random.default_rng(seed), [(0, 1 + j) for j in range(width)]
    for k in range(layers - 1):
        arcs += [(1 + k * width + i, 1 + (k + 1) * width + j) for i in range(width)
                 for j in range(width)]  # fmt: skip
    last = 1 + layers * width
    arcs += [(last - width + i, last) for i in range(width)]
    A = np.zeros((last + 1, len(arcs)))
    for e, (u, v) in enumerate(arcs):
        A[u, e], A[v, e] = 1.0, -1.0
    b = np.zeros(last + 1)
    b[0], b[-1] = 1.0, -1.0
    costs = rng.uniform(1.0, 2.0, len(arcs)) + 0.05 * rng.standard_normal((300, len(arcs)))
    return A, b, costs, 0.4 + 0.02 * rng.standard_normal((300, len(arcs)))


def test_rounds_that_resemble_each_other_take_few_pivots_and_stay_accurate():
    A, b, costs, caps = flow(0)
    n = A.shape[1]
    ones, state, pivots = np.ones(n), None, 0
    for t in range(300):
        room = np.full(n, 0.02)
        points, _, count, state = solve(
            A, b, ones, ones, costs[t], caps[t], room, [0.0, 1.0, 2.0], state
        )  # fmt: skip
        assert (count >= 0).all()
        pivots += count.sum() if t else 0
        assert np.abs(A @ points.T - b[:, None]).max() <= 1e-12
        if t % 50 == 0:
            for x, k in zip(points, (0.0, 1.0, 2.0), strict=True):
                shift, best = twin(A, b, costs[t], ones, ones, caps[t] - k * room)
                assert costs[t] @ x == pytest.approx(best, abs=1e-7)
                assert shift <= 1e-9
    assert pivots <= 15 * 900
    assert pivots / 900 < 0.3 * solve(A, b, ones, ones, costs[-1], caps[-1], room, [2.0])[2][0]


def test_the_state_alone_decides_the_bits_and_another_basis_the_same_cost():
    A, b, costs, caps = flow(1)
    n = A.shape[1]
    ones, none = np.ones(n), np.zeros(n)
    state = solve(A, b, ones, ones, costs[0], caps[0], none, [0.0])[3]
    copy = state[0].copy(), state[1].copy(), state[2]
    args = A, b, ones, ones, costs[5], caps[5], none, [0.0]
    first, second, cold = solve(*args, state), solve(*args, copy), solve(*args)
    assert first[0].tobytes() == second[0].tobytes()
    assert costs[5] @ first[0][0] == pytest.approx(costs[5] @ cold[0][0], abs=1e-10)


def test_costs_that_are_all_equal_but_one_take_few_pivots():
    """The least utilisation of links, demands of pairs split over paths that share two links."""
    rng, state, pivots = np.random.default_rng(0), None, []
    pairs, size, links = 100, 8, 40
    n, uses = pairs * size, np.zeros((links, pairs * size))
    for pair in range(pairs):
        shared = rng.integers(0, links, 2)
        for path in range(pair * size, (pair + 1) * size):
            uses[[*shared, rng.integers(links)], path] = 1.0
    uses *= np.repeat(rng.gamma(2.0, 1.0, pairs), size)
    for _ in range(3):
        loads = uses * np.repeat(np.exp(0.1 * rng.standard_normal(pairs)), size)
        A = np.zeros((pairs + links, n + 1 + links))
        A[np.arange(n) // size, np.arange(n)] = 1.0
        A[pairs:, :n], A[pairs:, n], A[pairs:, n + 1 :] = loads, -loads.sum(), np.eye(links)
        b, top = np.append(np.ones(pairs), np.zeros(links)), np.ones(n + 1 + links)
        top[n + 1 :] = loads.sum()
        costs, none, ones = np.eye(1, n + 1, n)[0], np.full(len(top), np.inf), np.ones(len(top))
        x, _, count, (*last, _) = solve(A, b, top, ones, costs, none, 0.0 * top, [0.0], state)
        state = (*last, -1)
        pivots.append(count[0])
        best = linprog(np.append(costs, np.zeros(links)), A_eq=A, b_eq=b, bounds=(0.0, None)).fun
        assert costs @ x[0][: n + 1] == pytest.approx(best, abs=1e-7)
    assert sum(pivots[1:]) <= 100
