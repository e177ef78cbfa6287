"""Sets of matrices: structured vertices against dense ones, answers and errors against dense
solvers, directions of every kind, geometry, projections.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from refused import refused
from tidewolf.core.errors import InvalidInput, NotFinite, WrongShape, WrongType
from tidewolf.core.vertices import Outer
from tidewolf.hindsight.task import with_exact_oracle
from tidewolf.kernels import lanczos
from tidewolf.kernels.lanczos import Found
from tidewolf.sets import (
    BoundedPSD,
    Fantope,
    NuclearBall,
    SparsePlusLowRank,
    Spectraplex,
    spectra,
)
from tidewolf.sets.spectra import (
    Gram,
    Spectral,
    SymmetricPart,
)

seeds = st.integers(0, 2**32)
sizes = st.integers(1, 9)
MODES = {"dense": {}, "likely": {"dense": 0}, "certified": {"dense": 0, "certified": True}}
each_mode = pytest.mark.parametrize("mode", MODES)
EXAMPLES = [K for kind in (Spectraplex, Fantope, NuclearBall) for K in kind.examples()]


# --- vertices -------------------------------------------------------------------------------------


def outer(rng: np.random.Generator, m: int, n: int, dtype=np.float64) -> Outer:
    """Rank 0 to 3."""
    rank = int(rng.integers(0, 4))
    return Outer(
        rng.standard_normal((rank, m)).astype(dtype), rng.standard_normal((rank, n)).astype(dtype)
    )


@given(seed=seeds, m=sizes, n=sizes, rank=st.integers(0, 4))
def test_any_matrix_is_an_atom_of_its_own_rank(seed, m, n, rank):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, rank)) @ rng.standard_normal((rank, n))
    vertex = NuclearBall((m, n)).atom(X)
    assert len(vertex.left) == min(rank, m, n)
    np.testing.assert_allclose(vertex.dense(X), X, atol=1e-12 * max(1.0, np.abs(X).max()))


# --- answers against dense solvers ----------------------------------------------------------------


def direction(kind: str, rng: np.random.Generator, m: int, n: int) -> np.ndarray:
    G, I = rng.standard_normal((m, n)), np.eye(m, n)
    skew = np.triu(np.ones((m, n)), 1) - np.tril(np.ones((m, n)), -1)
    F = rng.standard_normal((m, 1)) @ rng.standard_normal((1, n))
    kinds = {
        "random": G,
        "rank one": F,
        "definite": G @ G.T if m == n else G,
        "identity": I,
        "minus identity": -I,
        "zero": 0 * I,
        "skew": skew,
        "clustered": -I + 1e-9 * G,
    }
    return {**kinds, "huge": 1e150 * G, "tiny": 1e-150 * G, "tied": np.sign(G)}[kind]


KINDS = (
    *("random", "rank one", "definite", "identity", "minus identity", "zero", "skew"),
    *("clustered", "huge", "tiny", "tied"),
)
each_kind = pytest.mark.parametrize("kind", KINDS)


def judged(K, D, best, size, mode):
    """Three answers in a row, each warm from the last: members, as good as their errors say, and
    the errors as small as was asked for.
    """
    warm, before, rounding = (
        None,
        D.copy(),
        1e-13 * sum(D.shape) * float(np.abs(D).max()) * max(1.0, K.radius),
    )
    for _ in range(3):
        answer = K.answer(D, warm)
        value = answer.vertex.inner(D)
        assert best - rounding <= value <= best + answer.error + rounding
        assert 0.0 <= answer.error <= K.tolerance * size + 10 * rounding
        assert K.infeasibility(answer.vertex.dense(D)) <= 1e-12 * max(1.0, K.radius)
        warm = answer.warm
    np.testing.assert_array_equal(D, before)
    assert mode != "dense" or answer.error == 0.0


@pytest.mark.soak_examples(10)
@pytest.mark.parametrize("make", [BoundedPSD, Spectraplex, Fantope])
@each_kind
@each_mode
@given(
    seed=seeds,
    n=st.sampled_from([1, 2, 3, 8, 40]),
    k=st.integers(1, 5),
    tolerance=st.sampled_from([1e-1, 1e-3, 1e-6]),
)
@settings(max_examples=4)
def test_symmetric_sets_answer_like_a_dense_eigensolver(kind, mode, make, seed, n, k, tolerance):
    D = direction(kind, np.random.default_rng(seed), n, n)
    values = np.linalg.eigvalsh((D + D.T) / 2)
    k = min(k, n)
    second, best = {
        BoundedPSD: (2.0, 2.0 * min(0.0, float(values[0]))),
        Spectraplex: (2.0, 2.0 * float(values[0])),
        Fantope: (k, float(values[:k].sum())),
    }[make]
    K = make(n, second, tolerance=tolerance, **MODES[mode])
    judged(K, D, best, second * float(np.abs(values).max()), mode)


@pytest.mark.soak_examples(10)
@each_kind
@each_mode
@given(
    seed=seeds,
    m=st.sampled_from([1, 2, 8, 40]),
    n=st.sampled_from([1, 3, 8, 30]),
    tolerance=st.sampled_from([1e-1, 1e-3, 1e-6]),
)
@settings(max_examples=4)
def test_the_nuclear_ball_answers_like_a_dense_svd(kind, mode, seed, m, n, tolerance):
    D = direction(kind, np.random.default_rng(seed), m, n)
    top = float(np.linalg.norm(D / (np.abs(D).max() or 1.0), 2)) * float(np.abs(D).max())
    judged(
        NuclearBall((m, n), 2.0, tolerance=tolerance, **MODES[mode]), D, -2.0 * top, 2.0 * top, mode
    )


@pytest.mark.parametrize(
    "make",
    [
        Spectraplex,
        BoundedPSD,
        lambda n, **how: Fantope(n, 3, **how),
        lambda n, **how: NuclearBall((n, n + 5), **how),
    ],
)
def test_an_answer_is_a_function_of_direction_and_warm_start(make):
    K = make(30, dense=0)
    D = np.random.default_rng(0).standard_normal(K.shape)
    first = K.answer(D)
    assert first.vertex.key() == K.answer(D.copy()).vertex.key()
    assert not first.warm.flags.writeable
    second = K.answer(D, first.warm)
    assert (int(first.warm[-1]), int(second.warm[-1])) == (1, 2)
    kept = (len(first.warm) - 1) // 30
    drawn = [K._begun(30, 1, kept, warm, D)[1] for warm in (None, first.warm, second.warm)]
    assert not np.allclose(drawn[0], drawn[1])
    assert not np.allclose(drawn[1], drawn[2])
    assert second.vertex.key() == K.answer(D, first.warm.copy()).vertex.key() != first.vertex.key()
    other = make(30, dense=0, seed=1).answer(D)
    assert other.vertex.key() != first.vertex.key()
    assert other.vertex.inner(D) == pytest.approx(first.vertex.inner(D), rel=1e-2)


# --- what is certain ------------------------------------------------------------------------------


def hiding(n: int) -> np.ndarray:
    """A direction whose three best eigenvectors e_1, e_2, e_3 a warm start at the next ones knows
    nothing of.
    """
    return -np.diag(
        np.concatenate([[1.0, 0.95, 0.95, 0.9, 0.9, 0.9], np.linspace(-0.5, 0.5, n - 6)])
    )


@pytest.mark.parametrize("certified", [False, True])
def test_a_warm_start_that_knows_nothing_of_the_best_is_overcome(certified):
    D, wrong = hiding(20), np.eye(20)[3:6]
    for K, warm, best in (
        (BoundedPSD(20, dense=0, certified=certified), wrong[0], -1.0),
        (Spectraplex(20, dense=0, certified=certified), wrong[0], -1.0),
        (Fantope(20, 3, dense=0, certified=certified), wrong, -2.9),
        (NuclearBall((20, 20), dense=0, certified=certified), wrong[0], -1.0),
    ):
        answer = K.answer(D, np.append(warm.reshape(-1), 0.0))
        assert answer.vertex.inner(D) == pytest.approx(best, abs=0.03 + answer.error)
        assert answer.vertex.inner(D) <= best + answer.error + 1e-12


def test_with_failure_one_nothing_is_promised():
    D, warm = hiding(20), np.append(np.eye(20)[3], 0.0)
    answer = Spectraplex(20, dense=0, failure=1.0).answer(D, warm)
    assert answer.vertex.inner(D) > -1.0 + answer.error  # it was fooled, and may be


@pytest.mark.parametrize("failure", [0.5, 0.1])
def test_the_bound_of_a_fantope_fails_no_oftener_than_it_says(failure):
    D, warm, wrong = hiding(20), np.append(np.eye(20)[3:6].reshape(-1), 0.0), 0
    for seed in range(200):
        answer = Fantope(20, 3, dense=0, failure=failure, seed=seed).answer(D, warm)
        wrong += answer.vertex.inner(D) > -2.9 + answer.error + 1e-12
    assert wrong <= 200 * failure


@pytest.mark.parametrize("certified", [False, True])
def test_one_test_lets_a_fantopes_answer_pass_and_no_wrong_one(certified, monkeypatch):
    rng, K = np.random.default_rng(0), Fantope(12, 3, dense=0, certified=certified, tolerance=1e-4)
    G, noise = rng.standard_normal((12, 12)), rng.standard_normal(12)
    A = SymmetricPart(G, float(np.abs(G).max()))
    values, vectors = np.linalg.eigh(A.dense())
    best = vectors[:, -3:].T
    turned = np.linalg.qr(rng.standard_normal((3, 3)))[0] @ best
    rows, gap = K._tested(A, turned, 1e-4, noise)
    assert 3e-4 <= gap <= 6e-4
    np.testing.assert_allclose(rows.T @ rows, best.T @ best, atol=1e-12)
    # the leading one first
    np.testing.assert_allclose(np.abs(rows @ best[::-1].T), np.eye(3), atol=1e-9)
    # the third is missed, or only nearly met: the dense eigensolver answers
    wrong = vectors[:, [11, 10, 8]].T
    nearly = np.stack(
        [
            vectors[:, 11],
            vectors[:, 10],
            math.cos(0.5) * vectors[:, 9] + math.sin(0.5) * vectors[:, 8],
        ]
    )
    for given_rows in (wrong, nearly):
        rows, gap = K._tested(A, given_rows, 1e-4, noise)
        assert gap == 0.0
        np.testing.assert_allclose(rows.T @ rows, best.T @ best, atol=1e-12)
    monkeypatch.setattr(spectra, "above", lambda *_: 0.0)
    monkeypatch.setattr(spectra, "probable", lambda *_: Found(noise, -math.inf, 0.0, 0))
    rows, gap = K._tested(A, wrong, 1e-4, noise)
    # which is what the test is for
    assert np.trace(rows @ A.dense() @ rows.T) + gap < values[-3:].sum()


def turning(m: int, n: int, steps: int):
    """A random matrix with a spike, that turns by 0.02 a step."""
    rng = np.random.default_rng(0)
    here, there = (rng.standard_normal((m, n)) / math.sqrt(m + n) for _ in range(2))
    u, v = (w / np.linalg.norm(w) for w in (rng.standard_normal(m), rng.standard_normal(n)))
    for t in range(steps):
        yield math.cos(0.02 * t) * here + math.sin(0.02 * t) * there - 3.0 * np.outer(u, v)


def test_an_error_of_the_nuclear_ball_covers_what_the_gap_allows(monkeypatch):
    D, K = np.diag([2.0, 1.0]), NuclearBall((2, 2), 3.0)
    unit2 = Gram(D, 2.0).unit ** 2
    monkeypatch.setattr(
        Spectral,
        "_leading",
        lambda *_, **__: (lanczos.Found(np.array([0.0, 1.0]), 1.0 / unit2, 3.0 / unit2, 1), None),
    )
    answer = K.answer(D)
    assert answer.vertex.inner(D) == pytest.approx(-3.0)
    assert answer.error == pytest.approx(3.0)  # the minimum is -6


@pytest.mark.parametrize("size", [1e-320, 1e-300, 1e300, 1e307])
def test_directions_at_the_ends_of_the_scale(size):
    D = np.diag([3.0, 1.0, -2.0, 0.5])
    for K, best in (
        (Spectraplex(4, dense=0), [2]),
        (Fantope(4, 2, dense=0), [2, 3]),
        (BoundedPSD(4, dense=0), [2]),
        (NuclearBall((4, 4), dense=0), [0]),
    ):
        np.testing.assert_allclose(
            np.abs(np.diag(K.lmo(D * size))), np.isin(range(4), best), atol=0.1
        )


def test_warm_starts_need_few_products_on_a_drift(monkeypatch):
    products, grow = [0], lanczos.Krylov.grow
    monkeypatch.setattr(
        lanczos.Krylov,
        "grow",
        lambda self: (products.__setitem__(-1, products[-1] + 1), grow(self))[1],
    )
    for how in ({"certified": True}, {"failure": 1.0}):
        K, warm, products[:] = NuclearBall((150, 200), dense=0, tolerance=1e-3, **how), None, [0]
        for D in turning(150, 200, 8):
            answer, best = K.answer(D, warm), float(np.linalg.norm(D, 2))
            assert answer.vertex.inner(D) <= -(1 - 1e-3) * best
            warm = answer.warm
            products.append(0)
        assert max(products[1:-1]) <= 3 <= products[0]


# --- sparse directions ----------------------------------------------------------------------------

MATRIX_SETS = [
    *(kind(12, 1.5, **mode) for kind in (BoundedPSD, Spectraplex) for mode in MODES.values()),
    *(Fantope(12, 3, **mode) for mode in MODES.values()),
    *(NuclearBall(shape, 1.5, **mode) for mode in MODES.values() for shape in ((12, 20), (20, 12))),
]


@pytest.mark.soak_examples(8)
@pytest.mark.parametrize("K", MATRIX_SETS, ids=repr)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@given(seed=seeds, scale=st.sampled_from([1e-20, 1.0, 1e20]), rank=st.integers(0, 2))
@settings(max_examples=4)
def test_a_direction_known_by_its_parts_is_answered_like_its_array(K, dtype, seed, scale, rank):
    rng = np.random.default_rng(seed)
    S = sparse.random_array(K.shape, density=0.3, rng=rng, dtype=np.float64).astype(dtype) * dtype(
        scale
    )
    L, R = (rng.standard_normal((side, rank)).astype(dtype) for side in K.shape)
    D = SparsePlusLowRank(S, dtype(scale) * L, R) if rank else sparse.csr_array(S)
    whole = np.asarray(S.toarray() + dtype(scale) * (L @ R.T))
    answer = K.answer(D)
    best, size = (
        with_exact_oracle(K)
        .answer(whole.astype(np.float64))
        .vertex.inner(whole.astype(np.float64)),
        float(np.linalg.norm(whole.astype(float))),
    )
    assert answer.vertex.inner(D) == pytest.approx(answer.vertex.inner(whole), abs=1e-4 * size)
    assert answer.vertex.inner(whole) <= best + answer.error + 1e3 * np.finfo(dtype).eps * size
    got = K.lmo(D)
    assert type(got) is np.ndarray
    assert got.dtype == dtype
    assert not got.flags.writeable
    again = K.answer(D, answer.warm)
    assert again.vertex.inner(whole) <= best + again.error + 1e3 * np.finfo(dtype).eps * size


def test_entries_that_come_twice_add_up_and_nothing_is_no_trouble():
    twice = sparse.coo_array(([1.0, 2.0, -1.0], ([0, 0, 1], [0, 0, 2])), shape=(2, 3))
    np.testing.assert_allclose(
        NuclearBall((2, 3), dense=0).lmo(twice),
        NuclearBall((2, 3)).lmo(twice.toarray()),
        atol=1e-12,
    )
    for K in (
        NuclearBall((2, 2), dense=0),
        Spectraplex(2, dense=0),
        Fantope(2, 1, dense=0),
        BoundedPSD(2, dense=0),
    ):
        np.testing.assert_array_equal(K.lmo(sparse.csr_array((2, 2))), K.lmo(np.zeros((2, 2))))
        cancelled = SparsePlusLowRank(
            sparse.csr_array(np.ones((2, 2))), -np.ones((2, 1)), np.ones((2, 1))
        )
        assert K.infeasibility(K.lmo(cancelled)) <= 1e-12


@pytest.mark.parametrize(
    "K",
    [Spectraplex(3), Fantope(3, 2), NuclearBall((3, 3)), BoundedPSD(3)],
    ids=lambda K: type(K).__name__,
)
def test_what_is_no_direction_is_refused_in_a_sentence(K):
    bad = sparse.csr_array(np.diag([1.0, np.nan, 1.0]))
    for wrong, error in (
        (bad, NotFinite),
        (sparse.csr_array(np.eye(2)), WrongShape),
        (np.full((3, 3), np.inf), NotFinite),
        (np.ones((3, 3, 1)), WrongShape),
        ("up", WrongType),
    ):
        with pytest.raises(error):
            K.lmo(wrong)
    np.testing.assert_array_equal(
        K.lmo([[1, 0, 0], [0, 2, 0], [0, 0, 3]]), K.lmo(np.diag([1.0, 2.0, 3.0]))
    )


def test_parts_that_do_not_fit_are_refused_in_a_sentence():
    S = sparse.csr_array((3, 4))
    for parts, error in (
        ((np.eye(3),), WrongType),
        ((S, np.ones((3, 1))), WrongType),
        ((S, np.ones((3, 1)), np.ones((3, 1))), WrongShape),
        ((S, np.ones((3, 1)), np.full((4, 1), np.nan)), NotFinite),
    ):
        with pytest.raises(error):
            SparsePlusLowRank(*parts)


# --- geometry -------------------------------------------------------------------------------------


@pytest.mark.parametrize("K", [*EXAMPLES, Fantope(7, 5), Spectraplex(6, 2.5)], ids=repr)
def test_sizes_are_reached(K):
    """By vertices on the coordinate axes, and along the steepest way out."""
    if isinstance(K, NuclearBall):
        v, w = np.zeros(K.shape), np.zeros(K.shape)
        v[0, 0], w[0, 0] = K.tau, -K.tau
        out = np.eye(*K.shape)
    else:
        k, tau = (K.k, 1.0) if isinstance(K, Fantope) else (1, K.tau)
        v, w = (
            tau * np.diag(np.roll(np.arange(K.n) < k, shift).astype(float))
            for shift in (0, K.n - k)
        )
        out = -K.tangent(np.eye(K.n)[:1].T * np.eye(K.n)[:1]) * (1.0 if 2 * k <= K.n else -1.0)
    assert K.infeasibility(v) == K.infeasibility(w) == 0.0
    assert np.linalg.norm(v - K.center) == pytest.approx(K.radius)
    assert np.linalg.norm(v - w) == pytest.approx(K.diameter)
    if K.dimension:
        out = out / np.linalg.norm(out)
        assert K.infeasibility(K.center + (1 - 1e-9) * K.inner_radius * out) <= 1e-12
        assert K.infeasibility(K.center + 1.001 * K.inner_radius * out) > 1e-5 * K.inner_radius


@given(seed=seeds, n=st.integers(1, 12), tau=st.sampled_from([0.5, 1.0, 7.0]))
def test_a_fantope_of_rank_one_is_a_spectraplex(seed, n, tau):
    D, one, other = (
        np.random.default_rng(seed).standard_normal((n, n)),
        Fantope(n, 1),
        Spectraplex(n, tau),
    )
    np.testing.assert_allclose(tau * one.lmo(D), other.lmo(D), atol=1e-8 * tau)
    np.testing.assert_allclose(tau * one.project(D), other.project(tau * D), atol=1e-9 * tau)
    for name in ("radius", "diameter", "inner_radius"):
        assert tau * getattr(one, name) == pytest.approx(getattr(other, name))
    assert (one.dimension, one.shape) == (other.dimension, other.shape)


@pytest.mark.parametrize(
    ("make", "setting"),
    [
        (lambda: BoundedPSD(0), "n"),
        (lambda: BoundedPSD(2, 0.0), "tau"),
        (lambda: BoundedPSD(2, failure=1.5), "failure"),
        (lambda: BoundedPSD(2, tolerance=0.0), "tolerance"),
        (lambda: Spectraplex(0), "n"),
        (lambda: Spectraplex(2, -1.0), "tau"),
        (lambda: Spectraplex(2, failure=2.0), "failure"),
        (lambda: Spectraplex(2, failure=0.0), "failure"),
        (lambda: Fantope(3, 4), "k"),
        (lambda: Fantope(3, 0), "k"),
        (lambda: Fantope(3, 2, tolerance=0.0), "tolerance"),
        (lambda: NuclearBall(), "shape"),
        (lambda: NuclearBall(4), "shape"),
        (lambda: NuclearBall((2, 0)), "shape"),
        (lambda: NuclearBall((2, 3), 0.0), "tau"),
        (lambda: NuclearBall((2, 3), dense=-1), "dense"),
        (lambda: NuclearBall((2, 3), seed=-1), "seed"),
    ],
)
def test_wrong_settings_are_refused_in_a_sentence(make, setting):
    with refused(InvalidInput, setting):
        make()


# --- in other libraries, moved, and as an active set ----------------------------------------------
