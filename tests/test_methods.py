"""Every promise is its formula, restated here with the letters of the proofs.

Settings are such that nothing is 1 by accident, and promises are compared to the ninth digit: no
constant
of them, nor of the settings that they rest on, can change unnoticed.
"""

from math import ceil, exp, isqrt, log, sqrt

import numpy as np
import pytest

import theorems
import tidewolf as tw
from tidewolf import baselines, sets
from tidewolf.functions import Affine, Linear
from tidewolf.learners import BanditPrimalDual, DriftPlusPenalty, LyapunovDescent, PrimalDual
from tidewolf.methods.steps.lyapunov import LyapunovWeights


def close(guarantee, regret, violation):
    assert guarantee.reason == ""
    assert guarantee.regret == pytest.approx(regret, rel=1e-9, abs=0.0)
    assert guarantee.violation == pytest.approx(violation, rel=1e-9, abs=0.0)


def in_blocks(share, T, B, block):
    """b and tol of T rounds with B calls a round."""
    b = min(T, block or round(share * sqrt(T / B)))
    return b, 8 / (B * b - 4)


def of_primal_dual(T, B, block):
    """b, eta, nu, theta, tol; theta the smaller root of condition (C), 1/2 where it has none."""
    b, tol = in_blocks(1.46, T, B, block)
    eta, nu = 1 / sqrt(2 * b * T), 1 / (2 * sqrt(b * T))
    within = 1 - 8 * nu * b * (eta * b + sqrt(tol))
    if within < 0:
        return b, eta, nu, 0.5, tol
    theta = (1 - sqrt(within)) / (2 * nu * b)
    assert theta / 2 == pytest.approx(eta * b + nu * b * theta**2 / 2 + sqrt(tol), rel=1e-9)
    return b, eta, nu, theta, tol


SETTINGS = [(20_000, 1.0, None), (123_457, 3.7, None), (10**8, 0.25, None), (40_000, 2.0, 301)]


@pytest.mark.parametrize(("T", "B", "block"), SETTINGS, ids=str)
def test_primal_dual(T, B, block):
    K, G_f, G_g, R = sets.L2Ball(3, 0.7), 2.3, 5.1, 0.7
    learner = PrimalDual(K, T, B, loss_lipschitz=G_f, constraint_lipschitz=G_g, block=block)
    b, eta, nu, theta, tol = of_primal_dual(T, B, block)
    A = 1 / (2 * eta) + (eta + 2 * nu) * b * T + 1.25 * sqrt(tol) * T
    close(learner.guarantee(), A * G_f * R, sqrt(2 * (theta * T + 1 / nu) * (A + 2 * T)) * G_g * R)


ODD = [(50, 1.0, None), (1_000, 1.005, 12), (30, 9.0, 77)]


@pytest.mark.parametrize(("T", "B", "block"), [*SETTINGS, *ODD], ids=str)
def test_drift_plus_penalty(T, B, block):
    """Blocks that do not fill T count as whole ones: T/b is M = ceil(T/b)."""
    K, G_f, G_g, R = sets.L2Ball(3, 0.7), 2.3, 5.1, 0.7
    learner = DriftPlusPenalty(K, T, B, loss_lipschitz=G_f, constraint_lipschitz=G_g, block=block)
    b, tol = in_blocks(2.6, T, B, block)
    alpha, delta = G_f / (2 * R) * sqrt(T / b), G_f / G_g * sqrt(T)
    close(learner.guarantee(), *of_drift(T, b, alpha, delta, sqrt(tol) * R, R, G_f, G_g))


def of_drift(T, b, alpha, delta, distance, R, G_f, G_g):
    M = ceil(T / b)
    regret = 4 * b * G_f * R + 2 * b * R**2 * alpha + G_f**2 * T / (2 * alpha) + G_f * distance * T
    a = sqrt(G_g**2 * T / (4 * R * (G_f * M * b / alpha + R * b)))  # the best of all a > 0
    violation = G_g**2 * T / (2 * a) + 2 * a * R * (G_f * M * b / alpha + R * b)
    violation += 2 * alpha * R**2 / delta + (G_f / alpha + 4 * R) * G_f * M / (2 * delta)
    return regret, violation + 4 * b * R * G_g + G_g * distance * T


@pytest.mark.parametrize("T", [10**6, 123_457])
def test_the_theorem_of_drift_plus_penalty(T):
    G_f, G_g, R = 2.3, 5.1, 0.7
    eps = 61 * R**2 * T**-0.5 * log(T)
    learner = theorems.drift_plus_penalty(sets.L2Ball(3, R), T, G_f, G_g)
    formula = of_drift(T, isqrt(T), G_f / R * T**0.25, sqrt(T), sqrt(3 * eps), R, G_f, G_g)
    close(learner.guarantee(), *formula)


@pytest.mark.parametrize("T", [10**10, 12_345_678_901])
def test_the_theorem_of_primal_dual(T):
    G_f, G_g, R = 2.3, 1.7, 0.7
    b, eta, eps = isqrt(T), T**-0.75, 61 * R**2 * T**-0.5 * log(T)
    delta = 32 * (G_g**2 + G_g * R) * T**0.5 * sqrt(log(T))
    condition = delta**2 * eta**3 * b**2 + eta * b**2 * G_g**2 + G_g * sqrt(3 * eps) * b
    assert condition <= eta * b * delta / 2
    A = 2 * R**2 / eta + (G_f**2 + 4 * G_g**2 * R**2) * eta * b * T
    A += sqrt(3 * eps) * (G_f + G_g / 4) * T
    violation = sqrt(2 * (delta * eta * T + 1 / eta) * (A + 2 * R * G_f * T))
    close(theorems.primal_dual(sets.L2Ball(3, R), T, G_f, G_g).guarantee(), A, violation)


SIZES = [(2.0, 3.0, 0.5, 9.0), (0.4, 3.0, 5.0, 1.1), (7.0, 0.2, 0.3, 0.1), (0.1, 0.2, 0.9, 4.0)]
SHORT = [(3_000, 1.0, None), (200, 1.0, None), (1_000, 1.005, 12)]


@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize(("T", "B", "block"), [*SETTINGS, *SHORT], ids=str)
def test_bandit_primal_dual(sizes, T, B, block):
    """n = 4 dimensions, an inner ball of 1/sqrt(20) in an outer one of sqrt(4/5).

    In 3,000 rounds mu is r/2, in 200 (C) has no root.
    """
    K, (G_f, G_g, M_f, M_g) = sets.Simplex(5), sizes
    given = dict(zip(theorems.SIZES, sizes, strict=True))
    learner = BanditPrimalDual(K, T, B, block=block, **given)
    n, R, r = 4, sqrt(4 / 5), sqrt(1 / 20) / sqrt(4 / 5)
    b, _, nu, theta, tol = of_primal_dual(T, B, block)
    k_f, k_g, mu, tau = G_f * R / M_f, G_g * R / M_g, min(sqrt(n * r) * T**-0.25, r / 2), sqrt(tol)
    a = mu * k_g + mu / r * min(1, k_g)
    C = 2 * sqrt(2) * sqrt(n**2 / mu**2 + b * k_g**2) + (tau * k_g + a) * sqrt(T)
    A = 2 * sqrt(2) * sqrt(T * (4 * n**2 / mu**2 + b * k_f**2))
    A += tau * k_f * T + nu * b * T / 2 + 2 * min(1, k_f)
    A += C**2 / (2 * theta * (1 - nu * b * theta))
    violation = sqrt(2 * (theta * T + 1 / nu) * (A + 2 * T * min(1, k_f)))
    close(learner.guarantee(), M_f * (A + T * mu * k_f * (1 + 1 / r)), M_g * violation)


BALLS = [sets.L2Ball(2, 0.9), sets.L2Ball(4, 40.0), sets.L2Ball(1, 0.2)]


@pytest.mark.parametrize("K", [sets.Simplex(5), *BALLS], ids=repr)
@pytest.mark.parametrize(
    "sizes", [(2.0, 3.0, 0.5, 1.5), (0.4, 0.3, 1.1, 2.0), (3.5, 0.2, 0.3, 0.1)], ids=str
)
def test_the_theorem_of_bandit_primal_dual(K, sizes):
    T, n, R, r, (G_f, G_g, M_f, M_g) = 9 * 10**18, K.dimension, K.radius, K.inner_radius, sizes
    G = max(sizes)
    b, eps, mu = isqrt(T), 61 * R**2 * T**-0.5 * log(T), sqrt(n * r) * T**-0.25
    eta, tau = R / (sqrt(n) * G) * T**-0.75, sqrt(3 * eps)
    most = max(n / r, n / sqrt(r), sqrt(n), n / (sqrt(r) * R))
    delta = 24 * sqrt(183) * G**2 * most * T**0.5 * sqrt(log(T))
    A = tau * n * (M_g / 4 + M_f) / (mu * sqrt(b)) + G_g / 4 * (tau + mu)
    A = 2 * R**2 / eta + T * (A + mu * M_g / (4 * r) + tau * G_f)
    A += T * (eta * n**2 * M_f**2 / mu**2 + eta * b * (G_f**2 + M_g**2) + mu * G_f)
    violation = sqrt(2 * (delta * eta * T + 1 / eta) * (A + 2 * R * G_f * T)) + mu * G_g * T
    learner = theorems.bandit_primal_dual(K, T, G_f, G_g, M_f, M_g)
    close(learner.guarantee(), A + T * mu * G_f * (1 + R / r), violation)


def of_lyapunov(T, caution, G_f, G_g, D, p, c, c_base):
    """Weights with c, theta = 1/2 and V = 1/caution on a base learner whose regret is at most
    c_base D M T^p.
    """
    V, theta = 1 / caution, 1 / 2 * c_base / c
    regret = G_f * D * T**p * (c_base + c * theta / V)
    X = (1 + c_base / c * V + V * T ** (1 - p) / c) / (1 - theta)
    return regret, c * G_g * D * T**p / (1 / 2) * log(X)


@pytest.mark.parametrize("T", [1, 300, 10**7])
@pytest.mark.parametrize("caution", [0.3, 20.0])
def test_lyapunov_weights(T, caution):
    given = {"horizon": T, "caution": caution, "loss_lipschitz": 2.3, "constraint_lipschitz": 5.1}
    for K in (sets.L2Ball(3, 1.7), sets.Simplex(5)):
        R, sizes = K.radius, (T, caution, 2.3, 5.1, K.diameter)
        of_frank_wolfe = of_lyapunov(*sizes, 3 / 4, 2.65, 2.65)
        close(tw.LyapunovFrankWolfe(K, **given).guarantee(), *of_frank_wolfe)
        close(baselines.SinhaVaze(K, **given).guarantee(), *of_lyapunov(*sizes, 1 / 2, 2, sqrt(2)))
        for b, share in ((1, 0.02), (2, 0.001)):
            e, D = sqrt(share / T) * R, K.diameter
            beyond = min(2 * R, D + e)
            c_base = sqrt(b / 2) * (beyond**2 / D**2 + beyond / D) + e * sqrt(T) / D
            enough, found = (8 * R**2 / e**2 + 4) / b, []
            for calls in ((1 + 1e-9) * enough, (1 - 1e-9) * enough):
                how = {"calls_per_round": calls, "tolerance": share / T, "block": b}
                found.append(LyapunovDescent(K, **how, **given).guarantee())
            close(found[0], *of_lyapunov(*sizes, 1 / 2, 2, c_base))
            assert "no distance of x and y can be guaranteed" in found[1].reason


@pytest.mark.parametrize("k", [2, 7])
@pytest.mark.parametrize("T", [300, 10**7])
def test_lyapunov_weights_of_several_limits(T, k):
    K, G_f, G_g, caution, c, c_base = sets.Simplex(5), 2.3, 5.1, 0.3, 2, 1.7
    D, U, theta = K.diameter, 1 / caution / 0.55, c_base / c / 2
    X = (c_base / c * U + theta * k + U * sqrt(T) / c) / (1 - theta)
    close(
        LyapunovWeights(K, caution, T, G_f, G_g, per_constraint=True).guaranteed(c_base, k),
        G_f * D * sqrt(T) * (c_base + c * theta * k / U),
        c * G_g * D * sqrt(T) / (1 / 2) * k * log(1 + X / k),
    )


def test_theta_reaches_1_where_promises_end():
    weights = LyapunovWeights(sets.Simplex(3), 10.0, 100, 1.0, 1.0)
    assert weights.guaranteed(3.999).reason == ""
    assert weights.guaranteed(4.0) == (None, None, weights.guaranteed(9.0).reason)


@pytest.mark.parametrize("T", [None, 40, 100])
@pytest.mark.parametrize("K", [sets.Simplex(4), sets.FlowPolytope.examples()[0]], ids=repr)
def test_lyapunov_frank_wolfe_does_what_its_promise_rests_on(K, T):
    """Its steps written plainly, with a horizon that is passed, one that is not, and none."""
    rounds, V, theta, c, D, x = 100, 1 / 3, 1 / 2, 3.3 if T is None else 2.65, K.diameter, K.center
    rng = np.random.default_rng(6)
    star = 0.6 * K.center + 0.4 * K.lmo(rng.standard_normal(K.shape))
    C = rng.standard_normal(K.shape) + rng.standard_normal((rounds, *K.shape))
    A = -0.5 * C + rng.standard_normal(C.shape)
    stream = tw.Stream(Linear(C), Affine(A, A @ star))
    run = tw.run(tw.LyapunovFrankWolfe(K, horizon=T, caution=3.0), stream)
    total, M, G_f, G_g, Q = np.zeros(K.shape), 0.0, 0.0, 0.0, 0.0
    for t in range(1, rounds + 1):
        np.testing.assert_allclose(run.trajectory.means[t - 1], x, atol=1e-9)
        grad_f, breach = K.tangent(C[t - 1]), A[t - 1] @ (x - star)
        s, G_f = V * grad_f, max(G_f, np.linalg.norm(grad_f))
        grown = theta * max(t, T or 16) ** -0.75
        if breach > 0:
            grad_g = K.tangent(A[t - 1])
            G_g, Q = max(G_g, np.linalg.norm(grad_g)), Q + breach
            w = theta * G_f / G_g * exp(grown * Q / (c * G_g * D))
            s = s + w * grad_g
        total, M = total + s, max(M, np.linalg.norm(s))
        size = 1.055 * (T or 0) ** 0.75 if T and t <= T else 1.31 * t**0.75
        L = max(size, 1.055 * (T or 0) ** 0.75) * M / D
        grad = total + L * (x - K.center)
        v = K.lmo(grad)
        gap = grad @ (x - v)
        x = x + min(1, gap / (L * (x - v) @ (x - v))) * (v - x)
