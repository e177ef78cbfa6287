"""Sets of matrices: structured vertices against dense ones, answers and errors against dense
solvers, directions of every kind, geometry, projections.
"""

import math
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.stats import chi2
from threadpoolctl import threadpool_info, threadpool_limits

import tidewolf as tw
from covering import thinned
from tidewolf.core.errors import CheckFailed, NotFinite, WrongShape, WrongType
from tidewolf.core.vertices import LowRank
from tidewolf.hindsight.task import with_exact_oracle
from tidewolf.kernels import lanczos
from tidewolf.sets import BoundedPSD, Fantope, NuclearBall, SparsePlusLowRank, Spectraplex, spectra
from tidewolf.testing import check_set

seeds, sizes = st.integers(0, 2**32), st.integers(1, 9)
MODES = {"dense": {}, "likely": {"dense": 0}, "certified": {"dense": 0, "certified": True}}
KINDS_OF_SETS = (Spectraplex, BoundedPSD, Fantope, NuclearBall)
EXAMPLES = [K for kind in KINDS_OF_SETS for K in kind.examples()]


# --- vertices -------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_point_of_any_layout_is_blended_with_a_vertex(dtype):
    f = np.array([[1.0, -2.0, 0.5]], dtype=dtype)
    for order in ("C", "F"):
        whole = np.asarray(np.arange(9.0).reshape(3, 3), dtype=dtype, order=order)
        for x in (whole, whole[::-1, ::-1]):
            expected = 0.75 * x + 0.25 * f.T @ f
            np.testing.assert_allclose(LowRank(f).blend(x, 0.25), expected, rtol=1e-6)


@given(seed=seeds, m=sizes, n=sizes, rank=st.integers(0, 4))
def test_any_matrix_is_an_atom_of_its_own_rank(seed, m, n, rank):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, rank)) @ rng.standard_normal((rank, n))
    vertex = NuclearBall((m, n)).atom(X)
    assert len(vertex.left) == min(rank, m, n)
    np.testing.assert_allclose(vertex.dense(X), X, atol=1e-12 * max(1.0, np.abs(X).max()))


# --- answers against dense solvers ----------------------------------------------------------------


def direction(kind, rng, m, n):
    G, I = rng.standard_normal((m, n)), np.eye(m, n)
    skew = np.triu(np.ones((m, n)), 1) - np.tril(np.ones((m, n)), -1)
    F = rng.standard_normal((m, 1)) @ rng.standard_normal((1, n))
    definite = G @ G.T if m == n else G
    plain = {"random": G, "rank one": F, "definite": definite, "skew": skew, "tied": np.sign(G)}
    units = {"identity": I, "minus identity": -I, "zero": 0 * I, "clustered": -I + 1e-9 * G}
    return {**plain, **units, "huge": 1e300 * G, "tiny": 1e-290 * G}[kind]


KINDS = ["random", "rank one", "definite", "identity", "minus identity", "zero", "skew"]
KINDS += ["clustered", "huge", "tiny", "tied"]


def judged(K, D, best, size, mode):
    """Three answers in a row, each warm from the last: members, as good as their errors say, and
    the errors as small as was asked for.
    """
    warm, before = None, D.copy()
    rounding = 1e-13 * sum(D.shape) * float(np.abs(D).max()) * max(1.0, K.radius)
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
@thinned(3, kind=KINDS, mode=[*MODES], make=KINDS_OF_SETS)
@given(
    seed=seeds,
    m=st.sampled_from([1, 2, 3, 8, 40]),
    n=st.sampled_from([1, 3, 8, 30]),
    k=st.integers(1, 5),
    tolerance=st.sampled_from([1e-1, 1e-3, 1e-6]),
)
@settings(max_examples=2)
def test_answers_are_those_of_a_dense_solver(kind, mode, make, seed, m, n, k, tolerance):
    n = n if make is NuclearBall else m
    D, k = direction(kind, np.random.default_rng(seed), m, n), min(k, n)
    unit = float(np.abs(D).max()) or 1.0
    top = unit * float(np.linalg.norm(D / unit, 2))
    values = np.linalg.eigvalsh((D + D.T) / 2) if make is not NuclearBall else np.array([top])
    size, best = {
        BoundedPSD: (2.0, 2.0 * min(0.0, float(values[0]))),
        Spectraplex: (2.0, 2.0 * float(values[0])),
        Fantope: (k, float(values[:k].sum())),
        NuclearBall: (2.0, -2.0 * top),
    }[make]
    K = make((m, n) if make is NuclearBall else n, size, tolerance=tolerance, **MODES[mode])
    judged(K, D, best, size * float(np.abs(values).max()), mode)


MADE = [(Spectraplex, 30), (BoundedPSD, 30), (Fantope, 30, 3), (NuclearBall, (30, 35))]


@pytest.mark.parametrize("made", MADE, ids=lambda made: made[0].__name__)
def test_an_answer_is_a_function_of_direction_and_warm_start(made):
    kind, *size = made
    K = kind(*size, dense=0)
    D = np.random.default_rng(0).standard_normal(K.shape)
    first = K.answer(D)
    assert first.vertex.key() == K.answer(D.copy()).vertex.key()
    assert not first.warm.flags.writeable
    second = K.answer(D, first.warm)
    assert (int(first.warm[-1]), int(second.warm[-1])) == (1, 2)
    kept = (len(first.warm) - 1) // 30
    begun = [K._begun(30, kept, warm) for warm in (None, first.warm, second.warm)]
    drawn = [rng.standard_normal(30) for _, rng, *_ in begun]
    assert not np.allclose(drawn[0], drawn[1])
    assert not np.allclose(drawn[1], drawn[2])
    assert second.vertex.key() == K.answer(D, first.warm.copy()).vertex.key() != first.vertex.key()
    other = kind(*size, dense=0, seed=1).answer(D)
    assert other.vertex.key() != first.vertex.key()
    assert other.vertex.inner(D) == pytest.approx(first.vertex.inner(D), rel=1e-2)


# --- what is certain ------------------------------------------------------------------------------


def hiding(n):
    """A direction whose three best eigenvectors e_1, e_2, e_3 a warm start at the next ones knows
    nothing of.
    """
    return -np.diag([1.0, 0.95, 0.95, 0.9, 0.9, 0.9, *np.linspace(-0.5, 0.5, n - 6)])


@pytest.mark.parametrize("certified", [False, True])
def test_a_warm_start_that_knows_nothing_of_the_best_is_overcome(certified):
    D, wrong, how = hiding(20), np.eye(20)[3:6], {"dense": 0, "certified": certified}
    for K, warm, best in (
        (BoundedPSD(20, **how), wrong[0], -1.0),
        (Spectraplex(20, **how), wrong[0], -1.0),
        (Fantope(20, 3, **how), wrong, -2.9),
        (NuclearBall((20, 20), **how), wrong[0], -1.0),
    ):
        answer = K.answer(D, np.append(warm.reshape(-1), 0.0))
        assert answer.vertex.inner(D) == pytest.approx(best, abs=0.03 + answer.error)
        assert answer.vertex.inner(D) <= best + answer.error + 1e-12


def test_with_failure_one_nothing_is_promised():
    D, warm = hiding(20), np.append(np.eye(20)[3], 0.0)
    answer = Spectraplex(20, dense=0, failure=1.0).answer(D, warm)
    assert answer.vertex.inner(D) > -1.0 + answer.error  # it was fooled, and may be


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
    entries = rng.random(K.shape) * (rng.random(K.shape) < 0.3)
    S = sparse.csr_array(entries).astype(dtype) * dtype(scale)
    L, R = (rng.standard_normal((side, rank)).astype(dtype) for side in K.shape)
    D = SparsePlusLowRank(S, dtype(scale) * L, R) if rank else sparse.csr_array(S)
    whole = np.asarray(S.toarray() + dtype(scale) * (L @ R.T))
    answer, exact = K.answer(D), whole.astype(float)
    best, size = with_exact_oracle(K).answer(exact).vertex.inner(exact), np.linalg.norm(exact)
    assert answer.vertex.inner(D) == pytest.approx(answer.vertex.inner(whole), abs=1e-4 * size)
    assert answer.vertex.inner(whole) <= best + answer.error + 1e3 * np.finfo(dtype).eps * size
    got = K.lmo(D)
    assert type(got) is np.ndarray
    assert got.dtype == dtype
    assert not got.flags.writeable
    again = K.answer(D, answer.warm)
    assert again.vertex.inner(whole) <= best + again.error + 1e3 * np.finfo(dtype).eps * size


@pytest.mark.parametrize("kind", KINDS_OF_SETS)
def test_other_directions_are_added_up_or_refused(kind):
    K = kind((3, 3), dense=0) if kind is NuclearBall else kind(3, dense=0)
    twice = sparse.coo_array(([1.0, 2.0, -1.0], ([0, 0, 1], [0, 0, 2])), shape=(3, 3))
    np.testing.assert_allclose(K.lmo(twice), K.exactly().lmo(twice.toarray()), atol=1e-9)
    np.testing.assert_array_equal(K.lmo(sparse.csr_array((3, 3))), K.lmo(np.zeros((3, 3))))
    ones = np.ones((3, 1))
    cancelled = SparsePlusLowRank(sparse.csr_array(np.ones((3, 3))), -ones, ones)
    assert K.infeasibility(K.lmo(cancelled)) <= 1e-12
    whole = K.exactly().lmo([[1, 0, 0], [0, 2, 0], [0, 0, 3]])
    np.testing.assert_array_equal(whole, K.exactly().lmo(np.diag([1.0, 2.0, 3.0])))
    for wrong, error in (
        (sparse.csr_array(np.diag([1.0, np.nan, 1.0])), NotFinite),
        (sparse.csr_array(np.eye(2)), WrongShape),
        (np.full((3, 3), np.inf), NotFinite),
        ("up", WrongType),
    ):
        with pytest.raises(error):
            K.lmo(wrong)


def test_parts_that_do_not_fit_are_refused():
    S, ones = sparse.csr_array((3, 4)), np.ones((3, 1))
    bad = np.full((4, 1), np.nan)
    cases = (np.eye(3),), (S, ones), (S, ones, ones), (S, ones, bad)
    for parts, error in zip(cases, (WrongType, WrongType, WrongShape, NotFinite), strict=True):
        with pytest.raises(error):
            SparsePlusLowRank(*parts)


# --- geometry -------------------------------------------------------------------------------------


@pytest.mark.parametrize("K", [*EXAMPLES, Fantope(7, 5), BoundedPSD(7, 2.5)], ids=repr)
def test_sizes_are_reached(K):
    """By vertices on the coordinate axes, and along the steepest way out."""
    if isinstance(K, NuclearBall):
        v, w = np.zeros(K.shape), np.zeros(K.shape)
        v[0, 0], w[0, 0] = K.tau, -K.tau
        out = np.eye(*K.shape)
    else:
        k, tau = (K.k, 1.0) if isinstance(K, Fantope) else (1, K.tau)
        first = np.arange(K.n) < k
        v, w = (tau * np.diag(np.roll(first, shift) + 0.0) for shift in (0, K.n - k))
        w = 0 * w if isinstance(K, BoundedPSD) and K.n == 1 else w
        out = -K.tangent(np.eye(K.n)[:1].T * np.eye(K.n)[:1]) * (1.0 if 2 * k <= K.n else -1.0)
    assert K.infeasibility(v) == K.infeasibility(w) == 0.0
    assert np.linalg.norm(v - K.center) == pytest.approx(K.radius)
    assert np.linalg.norm(v - w) == pytest.approx(K.diameter)
    if K.dimension:
        out = out / np.linalg.norm(out)
        assert K.infeasibility(K.center + (1 - 1e-9) * K.inner_radius * out) <= 1e-12
        assert K.infeasibility(K.center + 1.001 * K.inner_radius * out) > 1e-5 * K.inner_radius


# --- what the error is worth ----------------------------------------------------------------------


def symmetric(rng, n):
    G = rng.standard_normal((n, n))
    return G + G.T


@pytest.mark.parametrize("failure", [0.5, 0.1])
def test_a_likely_bound_fails_no_oftener_than_it_says(failure):
    """That of one eigenvalue, and that of a Fantope's."""
    A = np.diag(np.concatenate([[1.0, 0.9], np.linspace(-0.5, 0.5, 18)]))
    D, warm = hiding(20), np.append(np.eye(20)[3:6].reshape(-1), 0.0)
    wrong, wrong_three = 0, 0
    for seed in range(400):
        noise = np.random.default_rng(seed).standard_normal(20)
        found = lanczos.probable(A, lanczos.start(noise, np.eye(20)[1], failure), 1e-2)
        wrong += found.value + found.gap < 1.0
    for seed in range(200):
        answer = Fantope(20, 3, dense=0, failure=failure, seed=seed).answer(D, warm)
        wrong_three += answer.vertex.inner(D) > -2.9 + answer.error + 1e-12
    assert wrong <= 400 * failure
    assert wrong_three <= 200 * failure
    assert wrong > 0 or failure < 0.2  # the bound is no empty one


REST = np.linspace(-0.5, 0.5, 37)
SPECTRA = {
    "one above": [1.0, 0.9, 0.9, *REST],
    "repeated": [1.0, 1.0, 1.0, *REST],
    "clustered": [*(1.0 - 1e-3 * np.arange(10)), *REST[:30]],
    "nothing between": [1.0] * 40,
    "semidefinite": [*(-1e-3 * np.arange(3)), *(REST - 0.5)],
    "zero": [0.0] * 40,
}


@pytest.mark.parametrize("rows", [2, 3])
@pytest.mark.parametrize("name", SPECTRA)
def test_a_bound_from_several_rows_in_float32_fails_no_oftener_than_it_says(name, rows):
    """It says 0.2, and is no empty one where one eigenvalue is easy to miss."""
    values, seeds = np.array(SPECTRA[name]), 250
    A = spectra.SymmetricPart(-np.diag(values), 1.0).single()
    missed = 0
    for seed in range(seeds):
        noise = np.random.default_rng(seed).standard_normal((rows, 40)).astype(np.float32)
        found = lanczos.probable(A, lanczos.start(noise, None, 0.2), 1e-2)
        missed += found is not None and found.value + found.gap < max(values[0], 0.0) - 1e-6
    assert missed <= 0.2 * seeds + 3.0 * math.sqrt(0.16 * seeds)
    assert missed > 0 or name != "one above"


@pytest.mark.parametrize("rows", [1, 2, 3, 5])
def test_a_start_of_several_rows_has_its_mass_as_often_as_it_says(rows):
    for failure in (1e-6, 1e-2, 0.5):
        begin = lanczos.start(np.ones((rows, 7)), None, failure)
        chance = chi2.cdf(begin.mass * 7 * rows / np.sum(begin.b**2), rows)
        assert 0.4 * failure <= chance <= failure * (1 + 1e-9)


@pytest.mark.parametrize("second", [1.5, 1.95])
@pytest.mark.parametrize("seed", range(5))
def test_products_that_are_not_orthogonalised_bound_the_mass_too(second, seed):
    """A largest eigenvalue of which the start has as little as `width` allows shows in the bound at
    it until theta is near: rounding, also that of lost orthogonality, hides less than 16 eps.
    """
    eps, n, rng = float(np.finfo(np.float32).eps), 100, np.random.default_rng(seed)
    values = np.array([2.0, second, *rng.uniform(-1.0, 1.0, n - 2)])
    A = spectra.SymmetricPart(-np.diag(values), 1.0).single()
    b = rng.standard_normal((2, n)).astype(np.float32)
    b[:, 0] *= 66.0 * eps * np.linalg.norm(b) / np.linalg.norm(b[:, 0])
    root = np.linalg.norm(b[:, 0]) / np.linalg.norm(b)
    space, steps = lanczos.Krylov(A, b, loose=True), 0
    while space.grown(1e-2, 2)[0] < 2.0 - 0.02:
        mass = 1e-30 * math.exp(-space.logarithm(2.0, 1e-30))
        assert (root - 16.0 * eps) ** 2 <= space.overlap() * mass
        steps += 1
    assert steps >= 2


SEEN = {"as it is": (1.0, 0.0), "narrow": (0.9, 0.0), "wide": (1.3, 0.0), "wrong": (0.6, 1.0)}


@pytest.mark.parametrize("seen", SEEN)
@pytest.mark.parametrize("name", SPECTRA)
def test_a_bound_from_polynomials_of_chebyshev_fails_no_oftener_than_it_says(name, seen):
    values, seeds, (factor, off) = np.array(SPECTRA[name]), 30, SEEN[seen]
    middle, half = (values.max() + values.min()) / 2.0, max(np.ptp(values) / 2.0, 0.1)
    ends = (middle + half * (off - factor), middle + half * (off + factor))
    missed, answered = 0, 0
    for seed in range(seeds):
        noise = np.random.default_rng(seed).standard_normal((3, 40)).astype(np.float32)
        A, begin = np.diag(values).astype(np.float32), lanczos.start(noise, None, 0.2)
        found = None
        with suppress(ValueError), np.errstate(over="ignore", invalid="ignore"):
            found = lanczos.probable(A, begin, 1e-2, values.min(), ends)
        answered += found is not None
        missed += found is not None and found.value + found.gap < values[0] - 1e-6
    assert missed <= 0.2 * seeds + 3.0 * math.sqrt(0.16 * seeds)
    assert answered == seeds or name == "zero" or seen == "wrong"


@pytest.mark.parametrize("end", [1.9, 2.0, 2.2])
@pytest.mark.parametrize("seed", range(3))
def test_rounding_hides_nothing_from_polynomials_of_chebyshev(end, seed):
    """What the start has of the leading eigenvector, though it be less than what rounding adds,
    bounds what every polynomial of it has; and in the end tells it, where it is more.
    """
    eps, n, rng = float(np.finfo(np.float32).eps), 300, np.random.default_rng(seed)
    U = np.linalg.qr(rng.standard_normal((n, n)))[0]
    values = np.array([2.0, 1.5, *rng.uniform(-1.0, 1.0, n - 2)])
    b = rng.standard_normal((4, n)) / math.sqrt(4 * n)
    b -= np.outer(b @ U[:, 0], U[:, 0])
    for part in (2.0 * eps, 1e-2):
        A, own = (U * values @ U.T).astype(np.float32), b.copy()
        own[0] += part * U[:, 0]
        space = lanczos.Chebyshev(A, own.astype(np.float32), (-1.0, end))
        for _ in range(6):
            space.grown(1e-2, 6)
            assert space.logarithm(2.0, part**2) < 0.0
    assert space.logarithm(2.0, part**2) > -0.3


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [1, 2, 127, 130, 300])
def test_half_of_an_array_makes_the_products_of_its_symmetric_part(n, dtype):
    rng = np.random.default_rng(n)
    D, v = rng.standard_normal((n, n)), rng.standard_normal(n).astype(dtype)
    for whole in (D, np.asfortranarray(D), D[::-1, ::-1]):
        A = spectra.SymmetricPart(whole.astype(dtype, order="K"), 2.0)
        expected = -(whole + whole.T) @ v / 4.0
        for _ in range(spectra._FEW + 1):
            np.testing.assert_allclose(A @ v, expected, atol=50 * n * np.finfo(dtype).eps)
        np.testing.assert_allclose(A.dense() @ v, expected, atol=50 * n * np.finfo(dtype).eps)


def test_what_rounding_to_float32_would_hide_is_found():
    rng = np.random.default_rng(0)
    for D in (symmetric(rng, 40), np.eye(40)):
        skew = direction("skew", rng, 40, 40) + 1e-7 * D
        best = float(np.linalg.eigvalsh(1e-7 * D)[0])
        for mode in ("likely", "certified"):
            K = Spectraplex(40, tolerance=1e-2, **MODES[mode])
            judged(K, skew, best, float(np.linalg.norm(1e-7 * D, 2)), mode)


def test_a_residual_is_no_proof_and_a_cholesky_factor_is():
    A, second = -hiding(20), np.eye(20)[1]
    space = lanczos.Krylov(A, second)
    _, gap = space.grown(1e-2)
    assert space.seems_converged(gap)  # 0.95 is an eigenvalue: the residual is 0
    for b, proof in ((second, False), (np.eye(20)[0], True)):
        found = lanczos.converged(A, lanczos.Start(b, 1.0), 1e-2, 0.0)
        assert (lanczos.proved(A, found) is not None) is proof


def test_where_the_proof_fails_the_dense_eigensolver_answers(monkeypatch):
    # one product is thought enough
    monkeypatch.setattr(lanczos.Krylov, "seems_converged", lambda *_: True)
    K = BoundedPSD(40, dense=0, certified=True, tolerance=1e-4)
    D = symmetric(np.random.default_rng(3), 40)
    answer = K.answer(D)
    assert answer.error == 0.0
    assert answer.vertex.inner(D) == pytest.approx(np.linalg.eigvalsh(D)[0])
    # and a proof that proves nothing is found out by the laws
    monkeypatch.setattr(lanczos, "above", lambda *_: 0.0)
    with pytest.raises(CheckFailed):
        check_set(BoundedPSD(6, dense=0, certified=True, tolerance=1e-4))


def test_a_repeated_leading_eigenvalue_is_found():
    K = BoundedPSD(16)
    for seed in range(60):
        factor = np.random.default_rng(seed).standard_normal((16, 3))
        # -1 thirteen times: in some of these LAPACK finds no largest eigenvalue at all
        D = 0.0125 * factor @ factor.T - np.eye(16)
        assert K.lmo(D).ravel() @ D.ravel() == pytest.approx(-1.0)


def test_without_a_promise_it_stops_at_the_tolerance_asked():
    n, rng = 200, np.random.default_rng(3)
    u = rng.standard_normal(n)
    A = symmetric(rng, n) / math.sqrt(n) + 6.0 * np.outer(u, u) / (u @ u)
    best, reached = float(np.linalg.eigvalsh(A)[-1]), []
    for tolerance in (1e-1, 1e-2, 1e-3, 1e-4):
        K = BoundedPSD(n, tolerance=tolerance, failure=1.0, dense=0)
        reached.append((best + K.answer(-A).vertex.inner(-A)) / best)
        assert 1e-3 * tolerance <= reached[-1] <= tolerance
    assert reached == sorted(reached, reverse=True)


# --- threads --------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["play", "run", "session"])
@pytest.mark.parametrize(("n", "threads"), [(6, {1}), (spectra.SMALL + 1, {2})])
def test_small_products_are_made_by_one_thread_however_rounds_come(how, n, threads, monkeypatch):
    K, found, own = BoundedPSD(n), set(), BoundedPSD.answer

    def answer(*given):
        found.update(one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas")
        return own(*given)

    monkeypatch.setattr(BoundedPSD, "answer", answer)
    C = np.random.default_rng(0).normal(size=(2, n, n))
    learner, stream = tw.LyapunovDescent(K), tw.Stream(tw.functions.Linear(C + C.mT))
    with threadpool_limits(2, user_api="blas"):
        if how == "session":
            session = tw.Session(learner)
            for costs in stream.losses.C:
                session.play()
                session.observe(loss_gradient=costs, constraint_value=-1.0)
        else:
            list(tw.play(learner, stream)) if how == "play" else tw.run(learner, stream)
    assert max(found) == max(threads)  # a library may be built without threads
