"""Laws of descent factor by factor: its prices, what it gives back, its units, and its learner."""

import itertools
import math
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tidewolf as tw
from polytopes import layered
from refused import refused
from tidewolf.core.errors import InvalidInput, NotAMember, WrongType
from tidewolf.learners import LyapunovDescent
from tidewolf.methods.steps import adagrad
from tidewolf.methods.steps.adagrad import DescentSums, Part, descend
from tidewolf.methods.steps.lyapunov import StepGradient
from tidewolf.sets import Box, Factors, MultiFlow, Product, Simplex, SimplexProduct

seeds, scales = st.integers(0, 2**32), st.sampled_from([0.03, 0.3, 1.0, 2.0])
LINKS = [("s", "a"), ("s", "b"), ("a", "b"), ("a", "t"), ("b", "t"), ("s", "t")]
SETS = {
    "flows": MultiFlow.from_edges(LINKS, [("s", "t", 5.0), ("s", "b", 0.1), ("a", "t", 0.0)]),
    "simplices": Product(Simplex(3, total=20.0), Simplex(1), Simplex(4)),
    "shares": SimplexProduct([3, 1, 2]),
    "box": Box([0.0, 0.0, 1.0], [10.0, 0.1, 1.0]),
}
CASES_OF_CALLS = (layered(4, 5), 4.0), (Simplex(40), 2.0)
"""sets with cheap oracles, and how many calls cost about as much as the rest of a round"""


def squares(d, factors):
    """|d_b|^2 of each factor."""
    return np.array([float(part @ part) for part in np.split(d.reshape(-1), factors.starts[1:])])


def spread(each, like, factors):
    """The number of each factor at all of its entries."""
    return np.repeat(each, np.diff(factors.starts, append=like.size)).reshape(like.shape)


def price(before, after, norms2, D):
    """sum_b (change of sigma_b) D_b^2 + |g_b|^2/(4 sigma_b) of a step between these sums."""
    last, sigma = before.inverse_steps, after.inverse_steps
    moved = np.where(sigma > 0.0, norms2 / np.where(sigma > 0.0, 4.0 * sigma, 1.0), 0.0)
    return float(((sigma - last) * D**2 + moved).sum())


def some_factors(rng):
    """Sizes and radii of all orders, single points among them."""
    sizes = rng.integers(1, 4, size=rng.integers(1, 6))
    radii = 10.0 ** rng.uniform(-3, 3, size=len(sizes)) * (rng.random(len(sizes)) < 0.9)
    diameters = radii * rng.uniform(1.0, 2.0, size=len(sizes))
    return Factors(np.cumsum([0, *sizes[:-1]]), radii, diameters), int(sizes.sum())


def sparse_gradient(rng, n):
    """Often 0 in whole factors."""
    g = rng.standard_normal(n) * 10.0 ** rng.uniform(-2, 2)
    return g * (rng.random(n) < 0.6)


@settings(max_examples=60)
@given(seed=seeds, scale=scales)
def test_prices_are_never_more_than_theory_says_nor_than_one_step_for_all(seed, scale):
    rng = np.random.default_rng(seed)
    factors, n = some_factors(rng)
    R, D = factors.radii, factors.diameters
    own, farthest, S = DescentSums.start(factors), D.copy(), np.zeros(len(D))
    whole, prices = math.sqrt(float((D**2).sum())), 0.0
    for t in range(40):
        g = sparse_gradient(rng, n)
        apart = 0.3 * rng.standard_normal(n) * (t % 3 > 0) * spread(R, g, factors)
        reach = adagrad.reaches(factors, apart, np.zeros(n))
        farthest, S = np.maximum(farthest, reach), S + squares(g, factors)
        after = descend(np.zeros(n), g, squares(g, factors), own, reach, factors, scale).sums
        prices, own = prices + price(own, after, squares(g, factors), reach), after
    live = D > 0.0
    terms = farthest[live] ** 2 / (scale * D[live]) + scale * farthest[live]
    assert prices <= (np.sqrt(S[live] / 2.0) * terms).sum() * (1.0 + 1e-9)
    # at distance 0, in comparison with the bound of one step for all
    still = np.sqrt(S / 2.0) @ D * (1.0 / scale + scale)
    assert still <= math.sqrt(S.sum() / 2.0) * whole * (1.0 / scale + scale) * (1.0 + 1e-9)


@settings(max_examples=30)
@given(seed=seeds, scale=scales, keep=st.sampled_from([0.0, 0.4, 1.0]))
def test_prices_bound_the_regret_against_any_point(seed, scale, keep):
    """sum <g, y - z> <= prices, for members z of all balls, y pulled back at random in each."""
    rng = np.random.default_rng(seed)
    factors, n = some_factors(rng)
    radii, center = factors.radii, np.zeros(n)
    factors = factors._replace(diameters=2.0 * radii)
    y, sums, regret, prices = center, DescentSums.start(factors), 0.0, 0.0
    z = adagrad.into_balls(spread(radii, center, factors) * rng.standard_normal(n), center, factors)
    for _ in range(60):
        g = sparse_gradient(rng, n) + 0.3 * np.sign(y - z)
        g *= spread((radii > 0.0).astype(float), g, factors)  # within the affine hull
        regret += float(g @ (y - z))
        grad = StepGradient(g, float(g @ g), y, None, 0.0)
        part = Part(y, 1.0, sums, adagrad.reaches(factors, y, y))
        [(y, after)] = adagrad.descend_together([part], grad, scale, keep, factors)
        prices, sums = prices + price(sums, after, squares(g, factors), part.reach), after
        y = adagrad.into_balls(y, center, factors)
    assert regret <= prices * (1.0 + 1e-9) + 1e-9


class Step(NamedTuple):
    """Points of a group on a product, before and after a step past a limit, and what made it."""

    parts: list[Part]
    grad: StepGradient
    loss_gradient: np.ndarray
    etas: list[np.ndarray]
    moved: list[np.ndarray]


def a_step(rng, keep, owed):
    factors, n = some_factors(rng)
    factors = factors._replace(diameters=np.maximum(factors.diameters, 0.5))
    factors = factors._replace(radii=factors.diameters)
    a, P = sparse_gradient(rng, n), sparse_gradient(rng, n)
    x, shares = rng.standard_normal(n), rng.dirichlet(np.ones(rng.integers(1, 4)))
    grad = StepGradient(a + P, float((a + P) @ (a + P)) or 1e-300, x, P, owed)
    parts, etas = [], []
    for share in shares:
        sums = DescentSums.start(factors)
        if rng.random() < 0.5:
            first = rng.random(n)
            sums = descend(x, first, squares(first, factors), sums, factors.radii, factors).sums
        parts.append(Part(rng.standard_normal(n), float(share), sums, factors.diameters))
        g, D = share * grad.g, factors.diameters
        etas.append(spread(descend(x, g, squares(g, factors), sums, D, factors).etas, a, factors))
    stepped = adagrad.descend_together(parts, grad, 1.0, keep, factors)
    return Step(parts, grad, a, etas, [y for y, _ in stepped])


@settings(max_examples=200)
@given(seeds, st.sampled_from([0.0, 0.3, 1.0]), st.sampled_from([0.0, 1e-2, 1.0, 30.0]))
def test_who_keeps_the_limit_ends_up_no_farther_than_a_plain_step_may_leave_it(seed, keep, owed):
    """The inequality of steps/adagrad.py, in the metric of the etas, over points and factors:
    z of the group keeps the limit as sum_j phi_j z_j.
    """
    rng = np.random.default_rng(seed)
    parts, grad, a, etas, moved = a_step(rng, keep, owed)
    P, x, shares = grad.penalty_gradient, grad.x, [part.share for part in parts]
    assert P is not None
    if not P.any():
        return
    for _ in range(10):
        z = [3.0 * rng.standard_normal(len(x)) for _ in parts]
        mixed = sum(share * point for share, point in zip(shares, z, strict=True))
        broken = max(0.0, owed + float(P @ (mixed - x)))
        z, left, right = [point - broken / float(P @ P) * P for point in z], 0.0, 0.0
        for part, eta, after, point in zip(parts, etas, moved, z, strict=True):
            free = eta > 0.0
            weight = np.where(free, 1.0 / np.where(free, eta, 1.0), 0.0)
            left += float(weight @ ((after - point) ** 2 - (part.y - point) ** 2))
            right += float(eta @ (part.share * grad.g) ** 2)
            right -= 2.0 * part.share * float(a @ (part.y - point))
            right -= 2.0 * part.share * float(P @ (part.y - x))
            np.testing.assert_array_equal(after[~free], part.y[~free])
        right -= 2.0 * owed
        size = 1.0 + abs(left) + abs(right) + sum(float((1 / eta[eta > 0]).sum()) for eta in etas)
        assert left <= right + 1e-9 * size


@settings(max_examples=100)
@given(seed=seeds, owed=st.sampled_from([0.0, 1e-2, 1.0]))
def test_what_is_given_back_in_full_ends_on_the_limit(seed, owed):
    """Unless no push was needed at all; a part of it is that part of the way."""
    plain, some, least = (a_step(np.random.default_rng(seed), keep, owed) for keep in (1, 0.3, 0))
    P, x = plain.grad.penalty_gradient, plain.grad.x
    assert P is not None

    def limit(step):
        shared = zip(step.parts, step.moved, strict=True)
        return owed + sum(part.share * float(P @ (y - x)) for part, y in shared)

    before, after = limit(plain), limit(least)
    factors_move = not any(bool((P[eta == 0.0] != 0.0).any()) for eta in plain.etas)
    for a, b, c in zip(plain.moved, some.moved, least.moved, strict=True):
        np.testing.assert_allclose(b, 0.3 * a + 0.7 * c, rtol=1e-9, atol=1e-9)
    if before >= 0.0 or not factors_move:
        for a, c in zip(plain.moved, least.moved, strict=True):
            np.testing.assert_array_equal(a, c)
        return
    weighed = zip(plain.parts, plain.etas, strict=True)
    without = before + sum(part.share**2 * float(eta @ P**2) for part, eta in weighed)
    assert after == pytest.approx(min(0.0, without), abs=1e-9 * (1.0 + abs(before)))


@settings(max_examples=20)
@given(seed=seeds, unit=st.sampled_from([2.0**-30, 0.5, 2.0**40]))
def test_units_of_gradients_change_nothing(seed, unit):
    rng = np.random.default_rng(seed)
    factors, n = some_factors(rng)
    first, g, y = sparse_gradient(rng, n), sparse_gradient(rng, n), np.zeros(n)
    D = adagrad.reaches(factors, y, y)
    sums = descend(y, first, squares(first, factors), DescentSums.start(factors), D, factors).sums
    here = descend(y, g, squares(g, factors), sums, D, factors)
    there = descend(y, unit * g, squares(unit * g, factors), sums.in_units(unit), D, factors)
    np.testing.assert_array_equal(there.etas * unit, here.etas)


# --- the learner ----------------------------------------------------------------------------------


def test_small_factors_learn_as_fast_as_large_ones():
    """The same noisy losses in their own units on factors of all sizes: one step for all moves the
    small ones hardly at all, and its bound is larger.
    """
    totals, rounds = np.array([100.0, 1.0, 0.01]), 150
    K = Product(*[Simplex(3, total=float(total)) for total in totals])
    rng = np.random.default_rng(3)
    costs = np.tile([0.0, 0.5, 1.0], 3) + 0.2 * rng.standard_normal((rounds, 9))
    never = tw.functions.Affine(np.zeros((rounds, 9)), np.ones(rounds))
    run = tw.run(LyapunovDescent(K), tw.Stream(tw.functions.Linear(costs), never))
    np.testing.assert_allclose(run.learner.act(run.final_state)[::3] / totals, 1.0, atol=0.05)


def test_scales_and_starting_points_are_settings():
    K, x0 = Product(Simplex(3), Simplex(2)), np.array([1.0, 0.0, 0.0, 0.5, 0.5])
    learner = LyapunovDescent(K, step_scale=0.3, start_at=x0)
    np.testing.assert_array_equal(learner.act(learner.start()), x0)
    plain = LyapunovDescent(Simplex(3), start_at=[0.0, 1.0, 0.0])
    np.testing.assert_array_equal(plain.act(plain.start()), [0.0, 1.0, 0.0])
    with pytest.raises(NotAMember):
        LyapunovDescent(K, start_at=np.ones(5)).start()
    for wrong in (0.0, -1.0, math.nan):
        with pytest.raises(InvalidInput, match="step_scale"):
            LyapunovDescent(K, step_scale=wrong)


@pytest.mark.parametrize("K", [Simplex(4), *SETS.values()], ids=["simplex", *SETS])
@pytest.mark.parametrize(("scale", "tolerance"), [(0.5, 1e-3), (1.0, 1e-2), (1.0, 3.0)])
def test_promises_are_those_of_the_formula_written_plainly(K, scale, tolerance):
    T, b, slopes = 100, 2, {"loss_lipschitz": 1.5, "constraint_lipschitz": 0.7}
    asked = K, T, 3.0, 8 / tolerance + 4, tolerance
    learner = LyapunovDescent(*asked, block=b, **slopes, step_scale=scale)
    parts = K.factors or Factors(np.zeros(1), np.array([K.radius]), np.array([K.diameter]))
    e, squared = 0.0 if parts.exact else math.sqrt(tolerance), 0.0
    for R, D in zip(parts.radii, parts.diameters, strict=True):
        if D > 0.0:
            far = min(2 * R, D + e * R)
            squared += (far**2 / (scale * D) + scale * far) ** 2
    c = math.sqrt(b / 2 * squared) / K.diameter + e * K.radius * math.sqrt(T) / K.diameter
    found, expected = learner.guarantee(), learner._weights.guaranteed(c)
    assert found.reason == expected.reason
    if expected.regret is None:
        assert found.regret is None
    else:
        assert found.regret == pytest.approx(expected.regret)
        assert found.violation == pytest.approx(expected.violation)


@pytest.mark.parametrize("kind", [tw.LyapunovDescent, tw.Ensemble])
def test_calls_of_their_own_accord_depend_on_the_kind_of_set_alone(kind):
    large, small = CASES_OF_CALLS
    for K, calls in (large, small, (tw.sets.BoundedPSD(3), 1.0)):
        learner = kind(K, calls_per_round="auto")
        assert learner.calls_per_round == calls
        assert learner == kind(K, calls_per_round=calls)
        assert kind(**learner.fields()) == learner
    with refused(WrongType, "calls_per_round"):
        kind(small[0], calls_per_round="many")


def test_a_run_says_when_more_calls_are_cheap():
    rng = np.random.default_rng(0)
    for (K, more), calls in itertools.product(CASES_OF_CALLS, (1.0, "auto")):
        losses = tw.functions.Linear(rng.standard_normal((300, *K.shape)))
        run = tw.run(tw.LyapunovDescent(K, calls_per_round=calls), tw.Stream(losses))
        said = [note for note in run.notes if "calls_per_round" in note]
        assert len(said) == (calls == 1.0 and run.oracle_calls > 270)
        assert run.oracle_calls <= 300 * (more if calls == "auto" else 1.0)


# --- descent of a group: steps and give-back by the formulas written plainly, and the -------------


N = 4
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
    ys, sizes = rng.standard_normal((size, N)), rng.uniform(0.5, 2.0, (size, 1))
    parts = [Part(ys[j], float(phi[j]), sums[j], sizes[j]) for j in range(size)]
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
    for j, (y, own) in enumerate(adagrad.descend_together(parts, grad, scale, keep, WHOLE)):
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
    far = FACTORS.diameters + np.sqrt(squares(x - y, FACTORS))
    assert adagrad.reaches(FACTORS, x, y) == pytest.approx(np.minimum(2.0 * FACTORS.radii, far))
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
        moved = adagrad.descend_together(parts, grad, 1.0, keep, factors)
        for j, (_, after) in enumerate(moved):
            prices += price(sums[j], after, phi[j] ** 2 * squares(g, factors), D)
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
    both = (grad, grad._replace(penalty_gradient=None))
    [(y, _)], [(plain, _)] = (adagrad.descend_together([part], g, 1.0, 0.0, FACTORS) for g in both)
    assert y.tolist() == plain.tolist()
