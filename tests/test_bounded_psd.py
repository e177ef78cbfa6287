"""Positive semidefinite matrices: low-rank vertices against dense twins, the oracle and its error
against a dense eigensolver, geometry.
"""

from __future__ import annotations

import math

import array_api_strict as strict
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tidewolf as tw
from refused import refused
from tidewolf.core.checkpoint import Stored
from tidewolf.core.errors import CheckFailed, InvalidInput
from tidewolf.core.vertices import LowRank
from tidewolf.kernels import lanczos
from tidewolf.projection import ActiveSet
from tidewolf.sets import BoundedPSD, Fantope, Shrunk, Spectraplex, Translated
from tidewolf.sets.spectra import operators
from tidewolf.testing import check_set
from tidewolf.testing.sets import lengths

seeds = st.integers(0, 2**32)
sizes = st.integers(1, 9)


def symmetric(rng: np.random.Generator, n: int) -> np.ndarray:
    G = rng.standard_normal((n, n))
    return G + G.T


# --- low-rank vertices ----------------------------------------------------------------------------


def low_rank(rng: np.random.Generator, n: int, dtype=np.float64) -> LowRank:
    """Rank 0 to 3, half of them with a ridge."""
    rows = rng.standard_normal((int(rng.integers(0, 4)), n)).astype(dtype)
    return LowRank(rows, float(rng.random()) if rng.random() < 0.5 else 0.0)


def naive(vertex: LowRank) -> np.ndarray:
    rows = np.asarray(vertex.rows, dtype=np.float64)
    return vertex.ridge * np.eye(vertex.n) + sum(
        (np.outer(f, f) for f in rows), np.zeros((vertex.n, vertex.n))
    )


@given(
    seed=seeds,
    n=sizes,
    step=st.floats(0.0, 1.0),
    dtype=st.sampled_from([np.float64, np.float32]),
    order=st.sampled_from("CF"),
)
def test_a_low_rank_vertex_is_its_dense_point(seed, n, step, dtype, order):
    rng = np.random.default_rng(seed)
    vertex, room = low_rank(rng, n, dtype), 1e-11 if dtype == np.float64 else 1e-3
    point, G, x = (
        naive(vertex),
        rng.standard_normal((n, n)).astype(dtype),
        np.asarray(symmetric(rng, n), dtype=dtype, order=order),
    )
    before = x.copy()
    np.testing.assert_allclose(vertex.dense(x), point, atol=room)
    assert vertex.inner(G) == pytest.approx(np.vdot(point, G), abs=room * n)
    assert vertex.distance2(x, float(np.vdot(x, x))) == pytest.approx(
        np.vdot(x - point, x - point), abs=10 * n * room
    )
    assert vertex.square == pytest.approx(np.vdot(point, point), abs=10 * n * room)
    blended = vertex.blend(x, step)
    assert blended.dtype == dtype
    np.testing.assert_allclose(blended, (1 - step) * x + step * point, atol=room)
    np.testing.assert_array_equal(blended, blended.T)
    np.testing.assert_array_equal(x, before)


@given(seed=seeds, n=sizes, count=st.integers(1, 20), library=st.sampled_from([np, strict]))
@settings(max_examples=60)
def test_a_table_of_them_agrees_with_dense_arithmetic(seed, n, count, library):
    rng = np.random.default_rng(seed)
    vertices = [low_rank(rng, n) for _ in range(count)]
    points = np.stack([naive(vertex) for vertex in vertices]).reshape(count, -1)
    if library is strict:
        vertices = [
            LowRank(strict.asarray(vertex.rows.copy()), vertex.ridge) for vertex in vertices
        ]
    table = vertices[0].table()
    for row, vertex in enumerate(vertices):
        table = table.append(vertex, row)
    first, G = int(rng.integers(1, count + 1)), rng.standard_normal((n, n))
    weights, reference = rng.standard_normal(first), library.asarray(G)
    np.testing.assert_allclose(
        table.inner(reference, first), points[:first] @ G.reshape(-1), atol=1e-10
    )
    np.testing.assert_allclose(
        np.asarray(table.combine(weights, reference)).reshape(-1),
        weights @ points[:first],
        atol=1e-10,
    )
    positive = np.asarray(table.combine(np.abs(weights), reference))
    np.testing.assert_array_equal(positive, positive.T)
    np.testing.assert_allclose(table.gram[:count, :count], points @ points.T, atol=1e-9)
    np.testing.assert_allclose(
        lengths(table.only(np.arange(first)[::-1]).gram[:first, :first]),
        lengths(points[:first][::-1] @ points[:first][::-1].T),
        atol=1e-9,
    )
    fork = table.append(vertices[0], first) if first < count else table
    np.testing.assert_allclose(table.inner(reference, count), points @ G.reshape(-1), atol=1e-10)
    assert len(fork) == (first + 1 if first < count else count)
    assert all(table.find(vertex, count) is not None for vertex in vertices)


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


def test_the_sign_of_a_factor_does_not_matter_and_parts_come_back():
    f = np.array([[1.0, -3.0, 2.0], [0.5, 0.0, -0.1]])
    vertex = LowRank(f.copy(), 0.25)
    assert vertex.key() == LowRank(-f, 0.25).key() == LowRank(f * [[1.0], [-1.0]], 0.25).key()
    assert vertex.key() != LowRank(f.copy()).key()
    again = Stored._kinds[vertex.tag].restored(vertex.parts())
    assert again.key() == vertex.key()
    np.testing.assert_array_equal(again.dense(f), vertex.dense(f))
    assert not vertex.dense(f).flags.writeable


@given(seed=seeds, n=sizes, rank=st.integers(0, 9))
def test_any_member_is_an_atom_of_its_own_rank(seed, n, rank):
    rng = np.random.default_rng(seed)
    F = rng.standard_normal((n, min(rank, n)))
    X = F @ F.T
    vertex = LowRank.of(X)
    np.testing.assert_allclose(vertex.dense(X), X, atol=1e-12 * max(1.0, np.abs(X).max()))
    assert len(vertex.rows) <= max(min(rank, n), n - 1)
    center = LowRank.of(BoundedPSD(n).center)
    assert len(center.rows) == 0
    assert center.ridge == BoundedPSD(n).inner_radius


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


def test_excess_says_what_is_violated():
    K = BoundedPSD(2, 1.0)
    assert K.infeasibility(np.diag([0.5, -0.25])) == 0.25
    assert K.infeasibility(np.diag([1.0, 0.5])) == 0.5
    assert K.infeasibility(np.array([[0.5, 0.1], [0.0, 0.5]])) == pytest.approx(0.1)
    assert K.infeasibility(np.zeros((2, 2))) == 0.0


@given(seed=seeds, n=sizes, far=st.sampled_from([0.1, 1.0, 1e6]))
def test_the_projection_moves_eigenvalues_only(seed, n, far):
    K, y = BoundedPSD(n, 1.5), far * np.random.default_rng(seed).standard_normal((n, n))
    S = (y + y.T) / 2
    values, vectors = np.linalg.eigh(S)
    p = K.project(y)
    moved = tw.sets.Simplex(n, 1.5, at_most=True).project(values)
    np.testing.assert_allclose(p, vectors @ np.diag(moved) @ vectors.T, atol=1e-9)
    np.testing.assert_array_equal(p, p.T)
    assert np.vdot(y - p, K.lmo(p - y) - p) <= 1e-9 * max(1.0, far)


@pytest.mark.parametrize(
    ("make", "setting"),
    [
        (lambda: BoundedPSD(0), "n"),
        (lambda: BoundedPSD(2, 0.0), "tau"),
        (lambda: BoundedPSD(2, failure=1.5), "failure"),
        (lambda: BoundedPSD(2, tolerance=0.0), "tolerance"),
    ],
)
def test_wrong_settings_are_refused_in_a_sentence(make, setting):
    with refused(InvalidInput, setting):
        make()


# --- the oracle against a dense eigensolver -------------------------------------------------------


def direction(kind: str, rng: np.random.Generator, n: int) -> np.ndarray:
    F = rng.standard_normal((n, max(1, n // 2)))
    kinds = {
        "random": rng.standard_normal((n, n)),
        "psd": F @ F.T,
        "negative": -F @ F.T,
        "identity": np.eye(n),
        "minus identity": -np.eye(n),
        "zero": np.zeros((n, n)),
        "antisymmetric": np.triu(np.ones((n, n)), 1) - np.tril(np.ones((n, n)), -1),
        "clustered": -np.eye(n) + 1e-9 * symmetric(rng, n),
        "huge": 1e150 * symmetric(rng, n),
        "tiny": 1e-150 * symmetric(rng, n),
    }
    return kinds[kind]


KINDS = [
    "random",
    "psd",
    "negative",
    "identity",
    "minus identity",
    "zero",
    "antisymmetric",
    "clustered",
    "huge",
    "tiny",
]
MODES = {"dense": {}, "likely": {"dense": 0}, "certified": {"dense": 0, "certified": True}}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("mode", MODES)
@given(
    seed=seeds, n=st.sampled_from([1, 2, 3, 8, 40]), tolerance=st.sampled_from([1e-1, 1e-3, 1e-6])
)
@settings(max_examples=15)
def test_the_answer_is_as_good_as_a_dense_eigensolvers_up_to_its_error(
    kind, mode, seed, n, tolerance
):
    K = BoundedPSD(n, 2.0, tolerance=tolerance, **MODES[mode])
    rng = np.random.default_rng(seed)
    D = direction(kind, rng, n)
    values = np.linalg.eigvalsh((D + D.T) / 2)
    best, size = 2.0 * min(0.0, float(values[0])), float(np.abs(values).max())
    warm, before, rounding = None, D.copy(), 1e-13 * n * float(np.abs(D).max())
    for _ in range(3):
        answer = K.answer(D, warm)
        value = answer.vertex.inner(D)
        assert best - rounding <= value <= best + answer.error + rounding
        assert 0.0 <= answer.error <= 2.0 * tolerance * size + 10 * rounding
        assert K.infeasibility(answer.vertex.dense(D)) <= 1e-13
        warm = answer.warm
    np.testing.assert_array_equal(D, before)
    if mode == "dense":
        assert answer.error == 0.0


def test_an_answer_is_a_function_of_direction_and_warm_start():
    K, D = BoundedPSD(30, dense=0), symmetric(np.random.default_rng(0), 30)
    first = K.answer(D)
    assert first.vertex.key() == K.answer(D.copy()).vertex.key()
    assert first.warm.shape == (31,)
    assert not first.warm.flags.writeable
    second = K.answer(D, first.warm)
    assert (int(first.warm[30]), int(second.warm[30])) == (1, 2)
    other = BoundedPSD(30, dense=0, seed=1).answer(D)
    assert other.vertex.key() != first.vertex.key()
    np.testing.assert_allclose(other.vertex.dense(D), first.vertex.dense(D), atol=1e-4)


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


def test_a_warm_start_that_knows_nothing_of_the_leading_vector_is_overcome():
    warm = np.append(np.eye(20)[1], 0.0)
    for certified in (False, True):
        answer = BoundedPSD(20, dense=0, certified=certified).answer(-hiding(20), warm)
        assert answer.vertex.inner(-hiding(20)) == pytest.approx(-1.0, abs=0.02)


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
    with pytest.raises(CheckFailed, match="is worse than"):
        check_set(BoundedPSD(6, dense=0, certified=True, tolerance=1e-4))


@given(seed=seeds, n=st.integers(1, 30), by=st.sampled_from([-1e-6, 1e-6]))
def test_a_factor_runs_through_just_above_the_largest_eigenvalue(seed, n, by):
    A = symmetric(np.random.default_rng(seed), n)
    assert lanczos.is_above(float(np.linalg.eigvalsh(A)[-1]) + by, A) is (by > 0)


def drift(n: int, steps: int, spike: float):
    """A random matrix and a spike that turn by 0.02 a step."""
    rng = np.random.default_rng(0)
    A, B, u, w = (
        symmetric(rng, n) / math.sqrt(2 * n),
        symmetric(rng, n) / math.sqrt(2 * n),
        *(v / np.linalg.norm(v) for v in rng.standard_normal((2, n))),
    )
    for t in range(steps):
        c, s = math.cos(0.02 * t), math.sin(0.02 * t)
        z = c * u + s * w
        yield c * A + s * B - spike * np.outer(z, z)


@pytest.mark.parametrize("spike", [0.0, 3.0])
def test_warm_starts_need_few_products_on_a_drift(spike, monkeypatch):
    products, grow = [0], lanczos.Krylov.grow
    monkeypatch.setattr(
        lanczos.Krylov,
        "grow",
        lambda self: (products.__setitem__(-1, products[-1] + 1), grow(self))[1],
    )
    K, warm = BoundedPSD(150, dense=0, certified=True, tolerance=1e-3), None
    for D in drift(150, 8, spike):
        answer = K.answer(D, warm)
        best = float(np.linalg.eigvalsh(D)[0])
        assert answer.vertex.inner(D) - best <= 1e-3 * abs(best)
        warm = answer.warm
        products.append(0)
    assert products[0] >= 6 >= max(products[1:-1])
    assert np.mean(products[1:-1]) <= 4.5


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


@pytest.mark.parametrize("n", [1, 7, 256, 300])
def test_symmetry_is_seen_to_the_last_bit(n):
    G = np.random.default_rng(n).standard_normal((n, n))
    D = G + G.T
    assert operators.is_symmetric(D)
    for i, j in ((0, n - 1), (n - 1, n - 2), (n // 2, 0)):
        off = D.copy()
        off[i, j] = np.nextafter(off[i, j], np.inf)
        assert operators.is_symmetric(off) == (i == j or n == 1)


@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("library", ["numpy", "torch"])
def test_products_stay_the_same_however_many_there_are(symmetric, library):
    """The ways that are quicker after a few, and after many, lead to the same place."""
    rng = np.random.default_rng(0)
    D = rng.standard_normal((20, 20))
    D = D + D.T if symmetric else D
    dense, at = -0.5 * (D + D.T) / 3.0, np.asarray
    if library == "torch":
        torch = pytest.importorskip(
            "torch", reason='torch is not installed; pip install "tidewolf[torch]" runs this test'
        )
        at = torch.tensor
    A = operators.SymmetricPart(at(D), 3.0)
    for _ in range(40):
        v = rng.standard_normal(20)
        np.testing.assert_allclose(np.asarray(A @ at(v)), dense @ v, atol=1e-13)


@pytest.mark.parametrize("K", [BoundedPSD(6, 2.0), Spectraplex(6, 2.0), Fantope(6, 2)], ids=repr)
def test_the_center_is_a_vertex_in_closed_form(K):
    atom = K.atom(K.center)
    assert atom.rows.shape == (0, 6)
    np.testing.assert_array_equal(atom.dense(K.center), K.center)
    other = K.atom(K.center + 0.0)
    np.testing.assert_allclose(other.dense(K.center), K.center, atol=1e-15)


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


# --- in other libraries, moved, and as an active set ----------------------------------------------


@pytest.mark.parametrize(
    ("K", "dtype"),
    [
        pytest.param(
            K,
            dtype,
            id=f"{K!r}-{dtype}",
            marks=pytest.mark.soak if K.certified or (i + j) % 2 else (),
        )
        for i, K in enumerate(BoundedPSD.examples())
        for j, dtype in enumerate(["float32", "float64"])
    ],
)
def test_the_laws_hold_on_torch(K, dtype):
    torch = pytest.importorskip(
        "torch", reason='torch is not installed; pip install "tidewolf[torch]" runs this test'
    )
    check_set(K.to(torch.zeros(1, dtype=getattr(torch, dtype))))


@pytest.mark.parametrize("dense", [0, 300])
def test_it_can_be_moved_and_shrunk(dense):
    check_set(Shrunk(BoundedPSD(3, 2.0, dense=dense), 0.5))
    check_set(Translated(BoundedPSD(2, dense=dense), np.ones((2, 2))))


@given(seed=seeds, n=st.integers(1, 6), dense=st.sampled_from([0, 300]))
@settings(max_examples=20)
def test_an_active_set_reaches_the_projection(seed, n, dense):
    K = BoundedPSD(n, 1.0, dense=dense, tolerance=1e-4)
    rng, active = np.random.default_rng(seed), ActiveSet.start(BoundedPSD(n, 1.0))
    for _ in range(3):
        y = symmetric(rng, n)
        done = active.project(K, y, tol=1e-4)
        active = done.active
        assert K.infeasibility(done.x) <= 1e-13
        assert done.distance2 <= 1e-4
        assert np.linalg.norm(done.y - K.project(y)) <= np.linalg.norm(y - K.project(y)) + 1e-12
