"""The same code on torch: sets, functions, projections and a learner give NumPy's numbers
in torch's arrays.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tidewolf as tw
from covering import thinned
from extras import Later
from streams import streams
from tidewolf.core.vertices import PlacedAtoms, Sparse
from tidewolf.kernels.lanczos import Krylov
from tidewolf.projection import ActiveSet, afp, afp_paper
from tidewolf.sets.balls import largest_entries

torch, traffic = Later("torch"), Later("benchmarks.traffic")
SETS = {
    "box": tw.sets.Box([-1.0, 0.0, 2.0, 0.0], [1.0, 5.0, 2.0, 0.5]),
    "ball": tw.sets.L2Ball(4, radius=2.0, center=[1.0, 0.0, 0.0, 0.0]),
    "hull": tw.sets.VertexHull(np.random.default_rng(0).standard_normal((7, 4))),
    "simplex": tw.sets.Simplex(4),
    "capped": tw.sets.CappedSimplex(4, 0.5),
    "moved": tw.sets.Translated(tw.sets.Box(np.zeros(4), np.ones(4)), np.ones(4)),
    "shrunk": tw.sets.Shrunk(tw.sets.Simplex(4), 0.5),
    "flow": tw.sets.FlowPolytope.from_edges(
        [("s", "a"), ("s", "a"), ("a", "t"), ("s", "t")], source="s", target="t"
    ),
}
DTYPES = ["float64", "float32"]


def zeros(dtype="float64", *shape):
    return torch.zeros(shape or 1, dtype=getattr(torch, dtype))


def there(x, dtype="float64"):
    return torch.tensor(x, dtype=getattr(torch, dtype))


# --- sets -----------------------------------------------------------------------------------------


@thinned(4, K=SETS, dtype=DTYPES)
def test_a_set_moves_to_torch_and_keeps_its_laws(K, dtype):
    moved = K.to(zeros(dtype))
    assert isinstance(moved.center, torch.Tensor)
    assert moved.center.dtype == getattr(torch, dtype)
    for name in ("radius", "diameter", "inner_radius", "dimension"):
        one, other = getattr(moved, name), getattr(K, name)
        assert one == other is None or one == pytest.approx(other, rel=1e-6)
    tw.testing.check_set(moved)


# --- functions ------------------------------------------------------------------------------------


def test_functions_on_torch_give_numpys_numbers():
    x = np.random.default_rng(4).standard_normal(4)
    weights = np.random.default_rng(5).random(12)
    ours, numpys = streams(12, 4, there), streams(12, 4, np.asarray)
    for name, stream in ours.items():
        both = (stream, numpys[name])
        for mine, reference in zip(*((s.losses, s.constraints) for s in both), strict=True):
            values, gradient = mine.values(there(x)), mine.subgradient(there(x), there(weights))
            assert isinstance(values, torch.Tensor)
            assert isinstance(gradient, torch.Tensor)
            np.testing.assert_allclose(values.numpy(), reference.values(x), atol=1e-9)
            slope = reference.subgradient(x, weights)
            np.testing.assert_allclose(gradient.numpy(), slope, atol=1e-9)
            np.testing.assert_allclose(mine.slopes(there(x)), reference.slopes(x), atol=1e-9)
            asked = there(x)
            with traffic.Traffic(10**9) as seen:
                mine.gradients(asked)
                tw.functions.Batch.gradients(mine, asked)
            assert seen.homes_missing == {}
            tw.testing.check_function(mine)


# --- projections ----------------------------------------------------------------------------------


METHODS = {"one shot": afp, "paper": afp_paper}
METHODS["active set"] = lambda K, y, x0, *, tol: ActiveSet.start(K, x0).project(K, y, tol=tol)


@thinned(2, project=METHODS, name=["ball", "hull", "simplex", "box"], dtype=DTYPES)
def test_projections_on_torch_give_numpys_points(project, name, dtype):
    K, room = SETS[name], 1e-9 if dtype == "float64" else 1e-3
    moved, tol = K.to(zeros(dtype)), 0.05 * K.radius**2
    for radii in (0.0, 1.0, 2.0):
        d = K.tangent(np.random.default_rng(6).standard_normal(4))
        y = K.center + radii * K.radius * d / np.linalg.norm(d)
        asked, start = there(y, dtype), there(np.array(K.center), dtype)
        ours, numpys = project(moved, asked, start, tol=tol), project(K, y, K.center, tol=tol)
        assert isinstance(ours.x, torch.Tensor)
        assert isinstance(ours.y, torch.Tensor)
        assert ours.x.dtype == ours.y.dtype == getattr(torch, dtype)
        np.testing.assert_allclose(ours.x.numpy(), numpys.x, atol=room)
        np.testing.assert_allclose(ours.y.numpy(), numpys.y, atol=room)
        assert ours.distance2 == pytest.approx(numpys.distance2, abs=room)
        assert ours.calls == numpys.calls
        np.testing.assert_array_equal(asked.numpy(), y.astype(asked.numpy().dtype))


# --- a learner ------------------------------------------------------------------------------------


@thinned(3, K=SETS, kind=[*streams(1, 4, np.asarray)], dtype=DTYPES, block={"1": 1, "7": 7})
def test_a_learner_stays_on_torch_in_its_dtype_and_under_its_bound(K, kind, dtype, block):
    learner = tw.LyapunovDescent(K.to(zeros(dtype)), horizon=20, block=block)
    run = tw.run(learner, streams(20, 4, lambda x: there(x, dtype))[kind])
    state = run.final_state
    for part in (learner.act(state), state.point.y, state.point.x):
        assert isinstance(part, torch.Tensor)
        assert part.dtype == getattr(torch, dtype)
    assert run.max_infeasibility <= (1e-9 if dtype == "float64" else 1e-4)
    assert run.oracle_calls <= 20
    assert run.regret is None or run.regret[0] <= run.bound.regret + 1e-3


# --- every learner --------------------------------------------------------------------------------

SMALL = {name: SETS[name] for name in ("simplex", "ball", "capped", "flow", "shrunk", "hull")}
SMALL |= {"psd": tw.sets.BoundedPSD(2), "nuclear": tw.sets.NuclearBall((2, 2))}
LEARNERS = {
    "ensemble": lambda K, T: tw.Ensemble(K, horizon=T),
    "descent": lambda K, T: tw.LyapunovDescent(K, horizon=T, per_constraint=True),
    "Frank-Wolfe": lambda K, T: tw.LyapunovFrankWolfe(K, horizon=T),
    "primal-dual": lambda K, T: tw.PrimalDual(K, horizon=T),
    "bandit": lambda K, T: tw.BanditPrimalDual(K, horizon=T),
    "drift": lambda K, T: tw.DriftPlusPenalty(K, horizon=T, block=2),
}


def played(learner, K, made, rounds=8):
    rng = np.random.default_rng(7)
    C, A = rng.standard_normal((rounds, *K.shape)), rng.random((rounds, *K.shape))
    limits = tw.functions.Affine(made(A), made(np.full(rounds, 0.1)))
    return tw.play(learner, tw.Stream(tw.functions.Linear(made(C)), limits))


@thinned(3, name=[*SMALL], who=[*LEARNERS])
def test_every_learner_on_torch_makes_numpys_decisions(who, name):
    """Up to small steps that rounding decides on; and says of every array that it makes where it
    lives.
    """
    K = SMALL[name]
    rounds = played(LEARNERS[who](K.to(zeros()), 8), K, there)
    with traffic.Traffic(10**9) as seen:
        ours = [one.x for one in rounds]
    numpys = [one.x for one in played(LEARNERS[who](K, 8), K, np.asarray)]
    for x, y in zip(ours, numpys, strict=True):
        assert isinstance(x, torch.Tensor)
        np.testing.assert_allclose(x.numpy(), y, atol=1e-5)
    assert seen.homes_missing == {}


# --- what a device would be asked -----------------------------------------------------------------

LARGE = {
    "simplex": (tw.sets.Simplex(500), 24),
    "box": (tw.sets.Box(np.zeros(500), np.ones(500)), 28),
    "l1": (tw.sets.L1Ball(500), 24),
    "l2": (tw.sets.L2Ball(500), 28),
    "k-sparse": (tw.sets.KSparse(500, 3), 24),
    "psd": (tw.sets.BoundedPSD(40, dense=0, failure=1.0), 60),
    "guaranteed": (tw.sets.BoundedPSD(40, dense=0), 60),
    "certified": (tw.sets.BoundedPSD(40, dense=0, certified=True), 60),
    "spectraplex": (tw.sets.Spectraplex(40, dense=0), 60),
    "fantope": (tw.sets.Fantope(40, 2, dense=0), 150),
    "nuclear": (tw.sets.NuclearBall((40, 50), dense=0), 60),
}


@thinned(3, name=[*LARGE], limit=["row", "capacities"])
def test_in_a_round_no_point_comes_to_the_host_or_from_it(name, limit):
    K, most = LARGE[name]
    entries, rng, moved = int(np.prod(K.shape)), np.random.default_rng(8), K.to(zeros())
    C = rng.standard_normal((6, *K.shape))
    limits = tw.functions.Affine(there(rng.random(C.shape)), there(np.full(6, 0.01)))
    if limit == "capacities":
        limits = tw.functions.Capacity(there(rng.random(C.shape) - 0.3))
    learner = tw.LyapunovDescent(moved)
    with traffic.Traffic(entries) as seen:
        rounds = tw.play(learner, tw.Stream(tw.functions.Linear(there(C)), limits), learner.start())
    assert not {"linalg_eigh", "linalg_svd"} & set(seen.passes)
    for _ in range(6):
        with traffic.Traffic(entries) as seen:
            next(rounds)
        assert (seen.large_reads, seen.large_writes) == (0, 0)
        assert seen.homes_missing == {}
        assert seen.reads <= most


# --- twins ----------------------------------------------------------------------------------------


@given(seed=st.integers(0, 2**32), n=st.integers(1, 12), count=st.integers(1, 14))
@settings(max_examples=15)
def test_a_table_on_a_device_is_the_one_on_the_host(seed, n, count):
    rng, vertices = np.random.default_rng(seed), []
    for _ in range(count):
        indices = np.flatnonzero(rng.random(n) < rng.choice([0.0, 0.2, 1.0])).astype(np.int32)
        vertices.append(Sparse((n,), indices, rng.standard_normal(len(indices))))
    home = zeros("float64", n)
    ours, reference = vertices[0].table(home), vertices[0].table()
    assert type(ours) is PlacedAtoms
    assert type(vertices[0].table(np.zeros(n))) is type(reference)
    for row, vertex in enumerate(vertices):
        ours, reference = ours.append(vertex, row), reference.append(vertex, row)
    seen, d = int(rng.integers(1, count + 1)), rng.standard_normal(n)
    weights = rng.standard_normal(seen) * (rng.random(seen) < 0.7)
    both, some = (ours, reference), np.arange(seen)
    for table, other in (both, [table.only(some) for table in both]):
        rows = len(other)
        np.testing.assert_allclose(table.gram[:rows, :rows], other.gram[:rows, :rows], atol=1e-12)
        np.testing.assert_allclose(table.inner(there(d), seen), other.inner(d, seen), atol=1e-12)
        mean = table.combine(weights, home)
        np.testing.assert_allclose(mean.numpy(), other.combine(weights, d), atol=1e-12)
        assert table.find(vertices[0], rows) == other.find(vertices[0], rows)


@given(seed=st.integers(0, 2**32), n=st.integers(1, 40))
@settings(max_examples=10)
def test_lanczos_on_torch_is_numpys(seed, n):
    """Also where a product leads nowhere new, and more were made before anybody looked."""
    rng = np.random.default_rng(seed)
    F = rng.standard_normal((n, int(rng.integers(1, min(n, 16) + 1))))
    A, b = F @ F.T / n, rng.standard_normal(n)
    ours, reference = Krylov(there(A), there(b)), Krylov(A, b)
    while not reference.exhausted:
        found, naive = ours.grown(1e-3), reference.grown(1e-3)
        assert found == pytest.approx(naive, abs=1e-8)
        assert ours.k == reference.k == len(ours.alpha)
        x, y = ours.vector().numpy(), reference.vector()
        assert abs(x @ A @ x - y @ A @ y) <= 1e-8
    assert ours.k == n or ours.beta[-1] <= 1e3 * ours.rounding


@given(seed=st.integers(0, 2**32), n=st.integers(1, 9), k=st.integers(1, 9))
def test_the_largest_entries_are_numpys(seed, n, k):
    d = np.random.default_rng(seed).integers(-2, 3, n).astype(np.float64)
    places, entries = largest_entries(there(d), min(k, n))
    references, numbers = largest_entries(d, min(k, n))
    np.testing.assert_array_equal(places, references)
    np.testing.assert_array_equal(entries, numbers)


ENDS = [None, (1.0, 1.0), (float("nan"),) * 2, (5.0, -5.0), (1e-30, 2e-30), (-1e30, 1e30)]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", ["BoundedPSD", "Spectraplex", "NuclearBall"])
def test_errors_hold_whatever_spectrum_the_last_call_saw(kind, dtype):
    """Directions that drift, leap, shift and lose their rank, and ends that nobody saw."""
    K = getattr(tw.sets, kind)((40, 44) if kind == "NuclearBall" else 40, dense=0)
    rng = np.random.default_rng(0)
    G, H = rng.standard_normal((2, *K.shape))
    low = np.outer(G[:, 0], H[0])
    every = [G, G + 0.1 * H, 30.0 * low - G, np.eye(*K.shape) + 0.1 * H, low, -low, H]
    warm = None
    for ends in ENDS:
        for D in every:
            if ends is not None and warm is not None:
                warm = torch.cat([warm[:41], there(np.array(ends), dtype)])
            answer = K.answer(there(D, dtype), warm)
            warm, size = answer.warm, np.linalg.norm(D, 2)
            least = -size if kind == "NuclearBall" else np.linalg.eigvalsh((D + D.T) / 2)[0]
            least = min(0.0, least) if kind == "BoundedPSD" else least
            rounding = 1e3 * size * float(torch.finfo(warm.dtype).eps)
            assert answer.vertex.inner(there(D, dtype)) <= least + answer.error + rounding
            assert 0.0 <= answer.error <= K.tolerance * size + rounding
            assert len(warm) == 43
