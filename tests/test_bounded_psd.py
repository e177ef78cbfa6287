"""Positive semidefinite matrices: low-rank vertices, sizes, and errors of the oracle.

Answers, projections and laws are tested in test_spectra.py, with the other sets of matrices.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidewolf.core.errors import CheckFailed
from tidewolf.core.vertices import LowRank
from tidewolf.kernels import lanczos
from tidewolf.sets import BoundedPSD
from tidewolf.testing import check_set

seeds = st.integers(0, 2**32)
sizes = st.integers(1, 9)


def symmetric(rng: np.random.Generator, n: int) -> np.ndarray:
    G = rng.standard_normal((n, n))
    return G + G.T


# --- low-rank vertices ----------------------------------------------------------------------------


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_rank_one_update_reaches_the_array_it_is_meant_for(order, dtype):
    f, x = (
        np.array([[1.0, -2.0, 0.5]], dtype=dtype),
        np.asarray(np.arange(9.0).reshape(3, 3), dtype=dtype, order=order),
    )
    np.testing.assert_allclose(LowRank(f).blend(x, 0.25), 0.75 * x + 0.25 * f.T @ f, rtol=1e-6)
    np.testing.assert_allclose(
        LowRank(f).blend(x[::-1, ::-1], 0.25), 0.75 * x[::-1, ::-1] + 0.25 * f.T @ f, rtol=1e-6
    )


# --- geometry -------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 2, 3, 7])
def test_the_sizes_are_those_of_the_vertices(n):
    K = BoundedPSD(n, 2.5)
    e = np.eye(n)
    ends = [np.zeros((n, n)), *(2.5 * np.outer(v, v) for v in (*e, np.ones(n) / math.sqrt(n)))]
    assert K.radius == pytest.approx(max(np.linalg.norm(v - K.center) for v in ends))
    assert K.diameter == pytest.approx(max(np.linalg.norm(v - w) for v in ends for w in ends))
    r = K.inner_radius
    for u in (-np.outer(e[0], e[0]), np.eye(n) / math.sqrt(n)):  # towards either kind of facet
        assert K.infeasibility(K.center + (1 - 1e-12) * r * u) <= 1e-15
        assert K.infeasibility(K.center + 1.001 * r * u) > 1e-4 * r
    assert K.dimension == n * (n + 1) // 2
    for c in np.linspace(0.0, 2.5 / n, 50):  # no other center on the line has a larger ball inside
        assert min(c, (2.5 - n * c) / math.sqrt(n)) <= r + 1e-12


# --- what the error is worth ----------------------------------------------------------------------


@given(seed=seeds, n=st.integers(2, 30), k=st.integers(1, 30))
def test_no_eigenvalue_is_ruled_out_at_the_mass_it_has(seed, n, k):
    rng = np.random.default_rng(seed)
    A, b = symmetric(rng, n), rng.standard_normal(n)
    A /= np.abs(A).max()
    values, vectors = np.linalg.eigh(A)
    mass = float(vectors[:, -1] @ b) ** 2 / float(b @ b)
    space = lanczos.Krylov(A, b)
    while space.k < k and not space.exhausted:
        space.grow()
    theta = float(
        np.linalg.eigvalsh(
            np.diag(space.alpha) + np.diag(space.beta[:-1], 1) + np.diag(space.beta[:-1], -1)
        )[-1]
    )
    assert theta <= values[-1] + 1e-12 * n
    if theta < values[-1] - 1e-7:
        assert not space.rules_out(float(values[-1]), 0.999 * mass)
    assert space.rules_out(values[-1] + 1e3, 1e-4) or k == 1


def hiding(n: int) -> np.ndarray:
    """A matrix whose leading eigenvector e_1 a warm start at e_2 knows nothing of."""
    return np.diag(np.concatenate([[1.0, 0.9], np.linspace(-0.5, 0.5, n - 2)]))


@pytest.mark.parametrize("failure", [0.5, 0.1])
def test_a_likely_bound_fails_no_oftener_than_it_says(failure):
    A, warm = hiding(20), np.eye(20)[1]
    wrong = 0
    for seed in range(400):
        noise = np.random.default_rng(seed).standard_normal(20)
        found = lanczos.probable(A, lanczos.start(noise, warm, failure), 1e-2)
        wrong += found.value + found.gap < 1.0
    assert wrong <= 400 * failure
    assert wrong > 0 or failure < 0.2  # the bound is no empty one


def test_a_residual_is_no_proof_and_a_cholesky_factor_is():
    A, second = hiding(20), np.eye(20)[1]
    space = lanczos.Krylov(A, second)
    _, gap = space.grown(1e-2)
    assert space.seems_converged(gap)  # 0.9 is an eigenvalue: the residual is 0
    assert lanczos.proved(A, lanczos.Start(second, 1.0), 1e-2) is None
    assert lanczos.proved(A, lanczos.Start(np.eye(20)[0], 1.0), 1e-2) is not None


def test_where_the_proof_fails_the_dense_eigensolver_answers(monkeypatch):
    # one product is thought enough
    monkeypatch.setattr(lanczos.Krylov, "seems_converged", lambda *_: True)
    K, D = (
        BoundedPSD(40, dense=0, certified=True, tolerance=1e-4),
        symmetric(np.random.default_rng(3), 40),
    )
    answer = K.answer(D)
    assert answer.error == 0.0
    assert answer.vertex.inner(D) == pytest.approx(np.linalg.eigvalsh(D)[0])
    # and a proof that proves nothing is found out by the laws
    monkeypatch.setattr(lanczos, "is_above", lambda *_: True)
    with pytest.raises(CheckFailed):
        check_set(BoundedPSD(6, dense=0, certified=True, tolerance=1e-4))


@given(seed=seeds, n=st.integers(1, 30), by=st.sampled_from([-1e-6, 1e-6]))
def test_a_factor_runs_through_just_above_the_largest_eigenvalue(seed, n, by):
    A = symmetric(np.random.default_rng(seed), n)
    assert lanczos.is_above(float(np.linalg.eigvalsh(A)[-1]) + by, A) is (by > 0)


def test_a_repeated_leading_eigenvalue_is_found():
    K = BoundedPSD(16)
    for seed in range(60):
        factor = np.random.default_rng(seed).standard_normal((16, 3))
        # -1 thirteen times: in some of these LAPACK finds no largest eigenvalue at all
        D = 0.0125 * factor @ factor.T - np.eye(16)
        assert K.lmo(D).ravel() @ D.ravel() == pytest.approx(-1.0)


@pytest.mark.parametrize("n", [1, 2, 5, 32, 33, 60])
def test_a_tridiagonal_matrix_is_solved_as_its_dense_twin(n):
    rng = np.random.default_rng(n)
    diagonal, beside = rng.standard_normal(n).tolist(), rng.random(max(0, n - 1)).tolist()
    T = np.diag(diagonal) + np.diag(beside, 1) + np.diag(beside, -1)
    references = np.linalg.eigvalsh(T)
    np.testing.assert_allclose(lanczos.tridiagonal_values(diagonal, beside), references, atol=1e-12)
    for quick in (True, False):
        values, vectors = lanczos.tridiagonal(diagonal, beside, quick)
        np.testing.assert_allclose(values, references, atol=1e-12)
        np.testing.assert_allclose(T @ vectors, vectors * values, atol=1e-12)
        np.testing.assert_allclose(vectors.T @ vectors, np.eye(n), atol=1e-12)


def test_without_a_promise_it_stops_at_the_tolerance_asked():
    n = 200
    rng = np.random.default_rng(3)
    u = rng.standard_normal(n)
    A = symmetric(rng, n) / math.sqrt(n) + 6.0 * np.outer(u, u) / (u @ u)
    best = float(np.linalg.eigvalsh(A)[-1])
    reached = []
    for tolerance in (1e-1, 1e-2, 1e-3, 1e-4):
        K = BoundedPSD(n, tolerance=tolerance, failure=1.0, dense=0)
        reached.append((best + K.answer(-A).vertex.inner(-A)) / best)
        assert 1e-3 * tolerance <= reached[-1] <= tolerance
    assert reached == sorted(reached, reverse=True)
