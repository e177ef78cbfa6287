"""What functions from plain callables keep, whichever library differentiates them: `make` is
`from_torch` or `from_jax`, `xp` the library's own namespace.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tidewolf as tw
from tidewolf.core.errors import InvalidInput, NotFinite, NotSupported, WrongShape, WrongType
from tidewolf.functions import Linear, LogWealth, Quadratic
from tidewolf.testing import check_function

RNG = np.random.default_rng(0)
ROUNDS, N = 7, 4
C = RNG.normal(size=(ROUNDS, N))
M = RNG.normal(size=(ROUNDS, N, N))
P, R = M @ M.swapaxes(1, 2) / N, RNG.normal(size=ROUNDS)
RETURNS = RNG.uniform(0.5, 2.0, (ROUNDS, N))
LABELS = RNG.integers(0, 2, ROUNDS)


def quadratic(x: Any, P: Any, q: Any, r: Any) -> Any:
    return 0.5 * (x @ (P @ x)) + q @ x + r


def require_equal(f: Any, g: Any, points: Any) -> None:
    """Everything a batch answers, within 1e-10."""
    weights = RNG.uniform(0.5, 2.0, len(g)) * (np.arange(len(g)) != 1)
    for x in points:
        np.testing.assert_allclose(f.values(x), g.values(x), rtol=0, atol=1e-10)
        np.testing.assert_allclose(f.gradients(x), g.gradients(x), rtol=0, atol=1e-10)
        np.testing.assert_allclose(
            f.subgradient(x, weights), g.subgradient(x, weights), rtol=0, atol=1e-10
        )
        np.testing.assert_allclose(f.slopes(x), g.slopes(x), rtol=0, atol=1e-10)
    many = np.stack([points[t % len(points)] for t in range(len(g))])
    np.testing.assert_allclose(f.values_at(many), g.values_at(many), rtol=0, atol=1e-10)


def equal_to_built_in_ones(make: Any, log: Any) -> None:
    points = [RNG.dirichlet(np.ones(N)) for _ in range(3)]
    require_equal(make(lambda x, c: c @ x, N, data=C), Linear(C), points)
    require_equal(make(quadratic, N, data=(P, C, R)), Quadratic(P, C, R), points)
    wealth = make(lambda x, r: -log(r @ x), N, data=RETURNS)
    require_equal(wealth, LogWealth(RETURNS), points)
    square = Quadratic(2.0 * np.eye(N), np.zeros((ROUNDS, N)), np.arange(float(ROUNDS)))
    require_equal(make(lambda t, x: (x * x).sum() + t, N, rounds=ROUNDS), square, points)
    one = make(lambda x: (x * x).sum(), N)
    require_equal(one, Quadratic.one(2.0 * np.eye(N), np.zeros(N)), points)
    require_equal(type(one).one(lambda x: (x * x).sum(), N), one, points)


def checks_of_functions(make: Any) -> None:
    batches = [
        *type(make(lambda x: x.sum(), 2)).examples(),
        make(quadratic, N, data=(P, C, R)),
        make(lambda x, A: (A * x).sum() ** 2, (2, 2), data=RNG.normal(size=(3, 2, 2))),
        make(lambda x, label, c: (1 - 2 * label) * (c @ x), N, data=(LABELS, C)),
    ]
    for f in batches:
        check_function(f)


def parts_are_the_whole(make: Any) -> None:
    f, x = make(quadratic, N, data=(P, C, R)), RNG.normal(size=N)
    numbered = make(lambda t, x: t * (x * x).sum(), N, rounds=ROUNDS)
    for whole in (f, numbered):
        for part, where in ((whole[2:5], slice(2, 5)), (whole[3:][1:], slice(4, ROUNDS))):
            np.testing.assert_allclose(part.values(x), whole.values(x)[where], rtol=1e-13)
            np.testing.assert_allclose(part.gradients(x), whole.gradients(x)[where], rtol=1e-12)
        joined = type(whole).joined([whole[:3], whole[3:]])
        assert joined == whole
        assert whole[:3] != whole[3:6]
    assert type(f).joined([f, make(quadratic, N, data=(P, C, R))]) is None
    assert f.name == "quadratic"
    assert repr(f) == f"{type(f).__name__}(quadratic, shape=(4,), rounds=7)"


def untraceable_callables_are_computed_one_by_one(make: Any) -> None:
    """One that asks what a number is."""

    def hinge(x: Any, c: Any) -> Any:
        return c @ x if float(c[0]) > 0.0 else 2.0 * (c @ x)

    f = make(hinge, N, data=C)
    factors = np.where(C[:, 0] > 0.0, 1.0, 2.0)
    require_equal(f, Linear(factors[:, None] * C), [RNG.normal(size=N) for _ in range(2)])


def a_weight_of_zero_asks_for_no_gradient(make: Any) -> None:
    f = make(lambda x, r: (r @ x) ** 0.5, 2, data=np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]))
    x = np.array([0.0, 1.0])
    np.testing.assert_allclose(f.subgradient(x, np.array([0.0, 2.0, 4.0])), [2.0, 3.0])
    np.testing.assert_allclose(f.subgradient(x, np.zeros(3)), [0.0, 0.0])
    with pytest.raises(NotFinite):
        f.gradients(x)
    with pytest.raises(NotFinite):
        f.subgradient(x, np.array([1.0, 2.0, 0.0]))


def sentences(make: Any) -> None:
    x = np.ones(2)
    for value, kind in (
        (lambda x: None, WrongType),
        (lambda x: True, WrongType),
        (lambda x: x, WrongShape),
        (lambda x: x.sum() / 0.0, NotFinite),
    ):
        with pytest.raises(kind):
            make(value, 2).values(x)
    with pytest.raises(ZeroDivisionError):  # what is the callable's own stays so
        make(lambda x: 1 / 0, 2).values(x)
    for given, kind in (
        ({"value": 3}, WrongType),
        ({"shape": 0}, InvalidInput),
        ({"rounds": 0}, InvalidInput),
        ({"rounds": 2, "data": np.ones((3, 2))}, WrongShape),
        ({"data": 3.0}, InvalidInput),
        ({"data": (np.ones(3), np.ones(2))}, WrongShape),
        ({"data": np.array([np.nan])}, NotFinite),
        ({"data": "a"}, WrongType),
    ):
        with pytest.raises(kind):
            make(**{"value": lambda x: x.sum(), "shape": 2, **given})


def runs_and_sessions_take_them(make: Any, tmp_path: Any) -> None:
    """A loss and a limit, both from callables: the same run as with built-in ones."""
    K, rounds = tw.sets.Simplex(3), 30
    costs, caps = RNG.normal(size=(rounds, 3)), RNG.uniform(0.2, 0.6, rounds)
    losses = make(lambda x, c: c @ x, 3, data=costs)
    limits = make(lambda x, cap: x[0] - cap, 3, data=caps)
    built_in = tw.Stream(
        Linear(costs), tw.functions.Affine(np.tile([1.0, 0.0, 0.0], (30, 1)), caps)
    )
    ours, theirs = (
        tw.run(tw.LyapunovDescent(K), stream) for stream in (tw.Stream(losses, limits), built_in)
    )
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
        pytest.raises(NotSupported, match="cannot be kept"),
    ):
        storage.observe(loss=losses[:1], constraint=limits[:1])
