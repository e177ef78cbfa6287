"""Descent of a group: steps and give-back by the formulas written plainly, and the inequality that
promises need.
"""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive_groups as naive
from tidewolf.methods.steps.adagrad import (
    DescentSums,
    Part,
    StepGradient,
    descend,
    descend_together,
    reaches,
    squares,
)
from tidewolf.sets.base import Factors

seeds, N = st.integers(0, 2**32), 4
FACTORS = Factors(np.array([0, 1]), np.array([0.5, 0.8]), np.array([1.0, 1.5]), exact=False)
WHOLE = Factors(np.array([0]), np.array([1.0]), np.array([1.5]), exact=False)


def shares_of(rng, size):
    return rng.dirichlet(np.ones(size)) if size > 1 else np.ones(1)


def grad_of(rng, x, broken):
    P, value, g = None, 0.0, rng.standard_normal(N)
    if broken:
        P, value = rng.standard_normal(N), rng.uniform(0.0, 0.5)
        g = g + P
    return StepGradient(g, float(g @ g), x, P, value)


@given(seed=seeds, size=st.integers(1, 3), broken=st.booleans(), keep=st.sampled_from([0.0, 0.4]))
@settings(max_examples=60)
def test_it_is_the_formulas_written_plainly(seed, size, broken, keep):
    rng = np.random.default_rng(seed)
    phi = shares_of(rng, size)
    sums = [DescentSums(*rng.uniform(0.0, 2.0, (3, 1))) for _ in range(size)]
    parts = [
        Part(rng.standard_normal(N), float(phi[j]), sums[j], rng.uniform(0.5, 2.0, 1))
        for j in range(size)
    ]
    grad, scale = grad_of(rng, rng.standard_normal(N), broken), float(rng.uniform(0.1, 1.0))
    etas, u = [], []
    for y, share, own, D, *_ in parts:
        S = own.squares[0] + share**2 * grad.norm2
        sigma = max(own.inverse_steps[0], math.sqrt(S / 2) / (scale * D[0]))
        etas.append(1 / (2 * sigma))
        u.append(y - etas[-1] * share * grad.g)
    back = 0.0
    if broken:
        P, mean = grad.penalty_gradient, sum(phi[j] * u[j] for j in range(size))
        square = sum(etas[j] * phi[j] ** 2 for j in range(size)) * (P @ P)
        back = min(1.0, max(0.0, -grad.penalty_value - P @ (mean - grad.x)) / square)
    for j, (y, own) in enumerate(descend_together(parts, grad, scale, keep, WHOLE)):
        there = u[j]
        if broken:
            there = u[j] + (1 - keep) * back * etas[j] * phi[j] * grad.penalty_gradient
        assert y == pytest.approx(there)
        assert own.inverse_steps == pytest.approx(1 / (2 * etas[j]))


@given(seed=seeds, share=st.sampled_from([1.0, 0.3]), pending=st.sampled_from([0.0, 2.5]))
@settings(max_examples=40)
def test_every_factor_steps_for_itself(seed, share, pending):
    """Factors that never moved and single points among them."""
    rng, scale = np.random.default_rng(seed), 0.7
    D = FACTORS.diameters * (rng.random(2) < 0.8)
    g = rng.standard_normal(N) * np.repeat(rng.random(2) < 0.7, np.diff(FACTORS.starts, append=N))
    before = DescentSums(*(rng.random((3, 2)) * (rng.random(2) < 0.7)))
    x, y = rng.standard_normal((2, N))
    far = FACTORS.diameters + np.sqrt(naive.squares(x - y, FACTORS))
    assert reaches(FACTORS, x, y) == pytest.approx(np.minimum(2.0 * FACTORS.radii, far))
    found = descend(y, g, squares(g, FACTORS), before, D, FACTORS, scale, share, pending)
    for b, own in enumerate(np.split(np.arange(N), FACTORS.starts[1:])):
        length = share * math.sqrt(float(g[own] @ g[own]))
        largest = max(before.largest[b], length)
        S = before.squares[b] + length**2 + 2.0 * pending * length * largest
        sigma, eta = before.inverse_steps[b], 0.0
        if S > 0.0 and D[b] > 0.0:
            sigma = max(sigma, math.sqrt(S / 2.0) / (scale * D[b]))
            eta = 1.0 / (2.0 * sigma)
        assert [each[b] for each in found.sums] == pytest.approx([S, sigma, largest], rel=1e-13)
        assert found.etas[b] == pytest.approx(eta, rel=1e-13)
        np.testing.assert_allclose(found.y[own], y[own] - eta * share * g[own], atol=1e-13)


@pytest.mark.parametrize("factors", [WHOLE, FACTORS], ids=["one step", "factors"])
@given(seed=seeds, size=st.integers(1, 3), keep=st.sampled_from([0.0, 0.3, 1.0]))
@settings(max_examples=25)
def test_prices_pay_for_every_policy_that_keeps_the_limits(factors, seed, size, keep):
    """sum <s, x> - <s, sum phi z> + paid <= prices + sum <s, x - sum phi y>, with V grad f as the
    losses' part: for all policies z with |z_j - y_j| <= D_j whose mixes keep the limits.
    """
    rng, D = np.random.default_rng(seed), np.full(len(factors.starts), 3.0)
    ys, sums = [np.zeros(N) for _ in range(size)], [DescentSums.start(factors)] * size
    z = rng.uniform(-0.3, 0.3, (size, N))
    left, apart, prices = 0.0, 0.0, 0.0
    for _ in range(40):
        phi, x = shares_of(rng, size), rng.uniform(-0.3, 0.3, N)
        u = phi @ z
        grad_f, P, value = rng.standard_normal(N), None, 0.0
        if rng.random() < 0.7:
            # a limit <a, .> <= b that u keeps, broken at x
            a = rng.uniform(0.1, 3.0) * rng.standard_normal(N)
            a = a if a @ (x - u) > 0.0 else -a
            value, P = float(rng.uniform(0.2, 1.0) * (a @ (x - u))), a
        g = grad_f if P is None else grad_f + P
        grad = StepGradient(g, float(g @ g), x, P, value)
        left += float(grad_f @ (x - u)) + value
        apart += float(g @ (x - sum(phi[j] * ys[j] for j in range(size))))
        parts = [Part(ys[j], float(phi[j]), sums[j], D) for j in range(size)]
        moved = descend_together(parts, grad, 1.0, keep, factors)
        for j, (_, after) in enumerate(moved):
            prices += naive.price(sums[j], after, phi[j] ** 2 * squares(g, factors), D)
        ys, sums = [y for y, _ in moved], [own for _, own in moved]
        # a ball that contains the comparators, so that D is kept
        ys = [y if np.linalg.norm(y) <= 0.9 else 0.9 * y / np.linalg.norm(y) for y in ys]
    assert left <= prices + apart + 1e-9


def test_nothing_is_given_back_while_the_limit_pulls_at_what_has_not_moved():
    """The losses' part cancels the limit's in the second factor, which then has no step to give
    back from.
    """
    P = np.array([-1.0, -1.0, 0.0, 0.0])
    grad = StepGradient(np.array([-1.0, 0.0, 0.0, 0.0]), 1.0, np.zeros(N), P, 0.0)
    part = Part(np.zeros(N), 1.0, DescentSums.start(FACTORS), np.array([1.0, 1.5]))
    [(y, _)] = descend_together([part], grad, 1.0, 0.0, FACTORS)
    [(plain, _)] = descend_together([part], grad._replace(penalty_gradient=None), 1.0, 0.0, FACTORS)
    assert y.tolist() == plain.tolist()
