"""Functions from plain callables of torch and of jax: equal to built-in ones, the checks of
functions, points of any library, and what is refused.
"""

import sys

import numpy as np
import pytest

import tidewolf as tw
from streams import require_equal
from tidewolf.core import errors
from tidewolf.functions import Linear, LogWealth, Quadratic, from_jax, from_torch

RNG, ROUNDS, N = np.random.default_rng(0), 7, 4
C, M = RNG.normal(size=(ROUNDS, N)), RNG.normal(size=(ROUNDS, N, N))
P, R = M @ M.swapaxes(1, 2) / N, RNG.normal(size=ROUNDS)
RETURNS, LABELS = RNG.uniform(0.5, 2.0, (ROUNDS, N)), RNG.integers(0, 2, ROUNDS)


@pytest.fixture(params=["torch", "jax"])
def library(request):
    return str(request.param)


def imported(name):
    extra = name.partition(".")[0]
    reason = f'{extra} is not installed; pip install "tidewolf[{extra}]" runs this test'
    return pytest.importorskip(name, reason=reason)


@pytest.fixture
def make(library):
    imported(library)
    return {"torch": from_torch, "jax": from_jax}[library]


def log(make):
    return imported("torch").log if make is from_torch else imported("jax.numpy").log


def quadratic(x, P, q, r):
    return 0.5 * (x @ (P @ x)) + q @ x + r


def test_they_equal_built_in_functions(make):
    points = [RNG.dirichlet(np.ones(N)) for _ in range(3)]
    require_equal(make(lambda x, c: c @ x, N, data=C), Linear(C), points)
    require_equal(make(quadratic, N, data=(P, C, R)), Quadratic(P, C, R), points)
    require_equal(make(lambda x, r: -log(make)(r @ x), N, data=RETURNS), LogWealth(RETURNS), points)
    square = Quadratic(2.0 * np.eye(N), np.zeros((ROUNDS, N)), np.arange(float(ROUNDS)))
    require_equal(make(lambda t, x: (x * x).sum() + t, N, rounds=ROUNDS), square, points)
    one = make(lambda x: (x * x).sum(), N)
    require_equal(one, Quadratic.one(2.0 * np.eye(N), np.zeros(N)), points)


@pytest.mark.parametrize("library", ["torch", pytest.param("jax", marks=pytest.mark.soak)])
def test_they_pass_the_checks_of_functions(make):
    batches = [
        make(lambda x, row: abs(x - row).sum(), 2, data=np.arange(6.0).reshape(3, 2) - 2.0),
        make(lambda t, x: t * (x * x).sum(), (2, 2), rounds=2),
        make(lambda x: (x * x).sum(), 1),
        make(quadratic, N, data=(P, C, R)),
        make(lambda x, A: (A * x).sum() ** 2, (2, 2), data=RNG.normal(size=(3, 2, 2))),
        make(lambda x, label, c: (1 - 2 * label) * (c @ x), N, data=(LABELS, C)),
    ]
    for f in batches:
        tw.testing.check_function(f)


def test_untraceable_callables_are_computed_one_by_one(make):
    """One that asks what a number is."""

    def hinge(x, c):
        return c @ x if float(c[0]) > 0.0 else 2.0 * (c @ x)

    f, factors = make(hinge, N, data=C), np.where(C[:, 0] > 0.0, 1.0, 2.0)
    require_equal(f, Linear(factors[:, None] * C), [RNG.normal(size=N) for _ in range(2)])


def test_a_weight_of_zero_asks_for_no_gradient(make):
    f = make(lambda x, r: (r @ x) ** 0.5, 2, data=np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]))
    x = np.array([0.0, 1.0])
    np.testing.assert_allclose(f.subgradient(x, np.array([0.0, 2.0, 4.0])), [2.0, 3.0])
    np.testing.assert_allclose(f.subgradient(x, np.zeros(3)), [0.0, 0.0])
    with pytest.raises(errors.NotFinite):
        f.gradients(x)
    with pytest.raises(errors.NotFinite):
        f.subgradient(x, np.array([1.0, 2.0, 0.0]))


def test_bad_input_is_refused(make):
    x = np.ones(2)
    for value, kind in (
        (lambda x: None, errors.WrongType),
        (lambda x: True, errors.WrongType),
        (lambda x: x, errors.WrongShape),
        (lambda x: x.sum() / 0.0, errors.NotFinite),
    ):
        with pytest.raises(kind):
            make(value, 2).values(x)
    with pytest.raises(ZeroDivisionError):  # what is the callable's own stays so
        make(lambda x: 1 / 0, 2).values(x)
    for given, kind in (
        ({"value": 3}, errors.WrongType),
        ({"shape": 0}, errors.InvalidInput),
        ({"rounds": 0}, errors.InvalidInput),
        ({"rounds": 2, "data": np.ones((3, 2))}, errors.WrongShape),
        ({"data": 3.0}, errors.InvalidInput),
        ({"data": (np.ones(3), np.ones(2))}, errors.WrongShape),
        ({"data": np.array([np.nan])}, errors.NotFinite),
        ({"data": "a"}, errors.WrongType),
    ):
        with pytest.raises(kind):
            make(**{"value": lambda x: x.sum(), "shape": 2, **given})


def test_runs_and_sessions_take_them(make, tmp_path):
    """A loss and a limit, both from callables: the same run as with built-in ones."""
    K, rounds = tw.sets.Simplex(3), 30
    costs, caps = RNG.normal(size=(rounds, 3)), RNG.uniform(0.2, 0.6, rounds)
    losses = make(lambda x, c: c @ x, 3, data=costs)
    limits = make(lambda x, cap: x[0] - cap, 3, data=caps)
    held = tw.functions.Affine(np.tile([1.0, 0.0, 0.0], (30, 1)), caps)
    built_in = tw.Stream(Linear(costs), held)
    ours = tw.run(tw.LyapunovDescent(K), tw.Stream(losses, limits))
    theirs = tw.run(tw.LyapunovDescent(K), built_in)
    np.testing.assert_allclose(ours.losses, theirs.losses, atol=1e-7)
    np.testing.assert_allclose(ours.violations, theirs.violations, atol=1e-7)
    regret = tw.run(tw.LyapunovDescent(K), tw.Stream(losses, built_in.constraints)).regret
    np.testing.assert_allclose(regret, theirs.regret, atol=1e-4)
    session = tw.Session(tw.LyapunovDescent(K))
    for t in range(3):
        session.observe(loss=losses[t : t + 1], constraint=[limits[t : t + 1]])
    assert session.rounds == 3
    full = tw.baselines.ProximalPenalty(K, horizon=rounds)
    with (
        tw.Session.open(tmp_path / "kept", full) as storage,
        pytest.raises(errors.NotSupported, match="cannot be kept"),
    ):
        storage.observe(loss=losses[:1], constraint=limits[:1])


def test_without_its_library_the_extra_is_named(monkeypatch, library):
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(errors.MissingExtra, match=rf'pip install "tidewolf\[{library}'):
        getattr(tw.functions, f"from_{library}")(lambda x: x.sum(), 2)


# --- torch alone ----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["float64", "float32"])
def test_points_of_torch_stay_torchs(kind):
    torch = imported("torch")
    dtype, f = getattr(torch, kind), from_torch(quadratic, N, data=(P, C, R))
    x = torch.tensor(RNG.normal(size=N), dtype=dtype).requires_grad_(True)
    for found in (f.values(x), f.gradients(x), f.subgradient(x, torch.ones(len(f), dtype=dtype))):
        assert (found.dtype, found.requires_grad) == (dtype, False)
    there = Quadratic(P, C, R).values(x.detach().numpy().astype(float))
    np.testing.assert_allclose(f.values(x).numpy(), there, rtol=1e-4, atol=1e-5)


def test_data_of_torch_and_read_only_data_stay_where_they_are():
    torch, frozen, x = imported("torch"), C.copy(), np.ones(N)
    frozen.setflags(write=False)
    for given in (torch.tensor(C), frozen):
        f = from_torch(lambda x, c: c @ x, N, data=given)
        np.testing.assert_allclose(f.values(x), C @ x)
        assert f.fields()["data"][0] is given


def test_a_learner_on_torch_plays_them():
    torch, costs = imported("torch"), RNG.normal(size=(10, 3))
    K = tw.sets.Simplex(3).to(torch.zeros(1, dtype=torch.float64))
    ours = tw.run(tw.LyapunovDescent(K), tw.Stream(from_torch(lambda x, c: c @ x, 3, data=costs)))
    theirs = tw.run(tw.LyapunovDescent(K), tw.Stream(Linear(torch.tensor(costs))))
    np.testing.assert_allclose(ours.losses, theirs.losses, atol=1e-9)


# --- jax alone ------------------------------------------------------------------------------------


def test_64_bits_hold_within_and_nowhere_else():
    jax, jnp = imported("jax"), imported("jax.numpy")
    f = from_jax(lambda x, c: c @ x, N, data=C)
    assert (f.values(np.ones(N)).dtype, jnp.asarray(1.0).dtype) == (np.float64, jnp.float32)
    assert f.values(np.ones(N, dtype=np.float32)).dtype == np.float32
    assert isinstance(f.values(jnp.ones(N)), jax.Array)
    np.testing.assert_allclose(f.values(jnp.ones(N)), C.sum(axis=1), rtol=1e-5)


def test_few_programs_serve_any_number_of_rounds():
    traced = []

    def value(x, c):
        traced.append(1)
        return c @ x

    imported("jax")
    f = from_jax(value, 2, data=np.ones((12, 2)))
    for k in range(1, 13):
        f[:k].values(np.ones(2))
    assert len(traced) <= 5  # 1, 2, 4, 8, 16


def test_a_round_may_be_told_by_its_number_in_python():
    """`C[t]` of a NumPy array wants a number, not a tracer."""
    imported("jax")
    f = from_jax(lambda t, x: C[t] @ x, N, rounds=ROUNDS)
    require_equal(f, Linear(C), [RNG.normal(size=N) for _ in range(2)])
