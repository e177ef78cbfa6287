"""The same code on torch: sets, functions, projections and a learner give NumPy's numbers
in torch's arrays.
"""

from __future__ import annotations

import numpy as np
import pytest

import tidewolf as tw
from covering import covered
from polytopes import layered
from streams import streams
from tidewolf import functions
from tidewolf.core.arrays import to_numpy
from tidewolf.projection import ActiveSet, afp, afp_paper
from tidewolf.sets import (
    Box,
    CappedSimplex,
    FlowPolytope,
    L2Ball,
    Projectable,
    Shrunk,
    Simplex,
    Translated,
    VertexHull,
)
from tidewolf.testing import check_function, check_set

torch = pytest.importorskip(
    "torch", reason='torch is not installed; pip install "tidewolf[torch]" runs these tests'
)

SETS = {
    "box": Box([-1.0, 0.0, 2.0, 0.0], [1.0, 5.0, 2.0, 0.5]),
    "ball": L2Ball(4, radius=2.0, center=[1.0, 0.0, 0.0, 0.0]),
    "hull": VertexHull(np.random.default_rng(0).standard_normal((7, 4))),
    "simplex": Simplex(4),
    "capped": CappedSimplex(4, 0.5),
    "moved": Translated(Box(np.zeros(4), np.ones(4)), np.ones(4)),
    "shrunk": Shrunk(Simplex(4), 0.5),
    "flow": FlowPolytope.from_edges(
        [("s", "a"), ("s", "a"), ("a", "t"), ("s", "t")], source="s", target="t"
    ),
}
every_set = pytest.mark.parametrize("K", SETS.values(), ids=SETS.keys())
DTYPES = [torch.float64, torch.float32]


def there(x: np.ndarray, dtype=torch.float64) -> torch.Tensor:
    return torch.tensor(x, dtype=dtype)


# --- sets -----------------------------------------------------------------------------------------


@every_set
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_set_moves_to_torch_and_keeps_its_laws(K, dtype):
    moved = K.to(torch.zeros(1, dtype=dtype))
    assert isinstance(moved.center, torch.Tensor)
    assert moved.center.dtype == dtype
    for name in ("radius", "diameter", "inner_radius", "dimension"):
        assert getattr(moved, name) == getattr(K, name) is None or getattr(
            moved, name
        ) == pytest.approx(getattr(K, name), rel=1e-6)
    check_set(moved)


@every_set
@pytest.mark.parametrize("dtype", DTYPES)
def test_directions_in_torch_are_answered_in_torch(K, dtype):
    room = 1e-12 if dtype == torch.float64 else 1e-5
    for d in np.random.default_rng(2).standard_normal((5, 4)):
        for home in (K, K.to(torch.zeros(1, dtype=dtype))):
            asked = there(d, dtype)
            pairs = [(home.lmo(asked), K.lmo(d)), (home.tangent(asked), K.tangent(d))]
            if isinstance(K, Projectable):
                pairs.append((home.project(asked), K.project(d)))
            for ours, numpys in pairs:
                assert isinstance(ours, torch.Tensor)
                assert ours.dtype == dtype
                np.testing.assert_allclose(ours.numpy(), numpys, atol=room)
            assert home.excess(asked) == pytest.approx(K.excess(d), abs=room)
            np.testing.assert_array_equal(asked.numpy(), d.astype(asked.numpy().dtype))


def test_a_large_flow_polytope_answers_torch_in_torch():
    K, d = layered(11, 10), np.random.default_rng(3).standard_normal(1021)
    v = K.lmo(there(d))
    assert isinstance(v, torch.Tensor)
    np.testing.assert_array_equal(v.numpy(), K.lmo(d))
    np.testing.assert_allclose(K.tangent(there(d)).numpy(), K.tangent(d), atol=1e-12)
    assert len(K.paths(there(K.center))) == len(K.paths(K.center))


# --- functions ------------------------------------------------------------------------------------


def test_functions_on_torch_give_numpys_numbers():
    x = np.random.default_rng(4).standard_normal(4)
    weights = np.random.default_rng(5).random(12)
    ours, numpys = streams(12, 4, there), streams(12, 4, np.asarray)
    for name, stream in ours.items():
        for mine, twin in (
            (stream.losses, numpys[name].losses),
            (stream.constraints, numpys[name].constraints),
        ):
            values, gradient = mine.values(there(x)), mine.subgradient(there(x), there(weights))
            assert isinstance(values, torch.Tensor)
            assert isinstance(gradient, torch.Tensor)
            np.testing.assert_allclose(values.numpy(), twin.values(x), atol=1e-9)
            np.testing.assert_allclose(gradient.numpy(), twin.subgradient(x, weights), atol=1e-9)
            np.testing.assert_allclose(mine.slopes(there(x)), twin.slopes(x), atol=1e-9)
            check_function(mine)


def test_functions_do_not_copy_what_they_are_given():
    C = torch.zeros((3, 2), dtype=torch.float64)
    f = functions.Linear(C)
    C[1, 0] = 5.0
    assert float(f.values(torch.ones(2, dtype=torch.float64))[1]) == 5.0


# --- projections ----------------------------------------------------------------------------------


METHODS = {
    "one shot": afp,
    "paper": afp_paper,
    "active set": lambda K, y, x0, *, tol: ActiveSet.start(K, x0).project(K, y, tol=tol),
}


@pytest.mark.parametrize("project", METHODS.values(), ids=METHODS.keys())
@pytest.mark.parametrize("name", ["ball", "hull", "simplex", "box"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_projections_on_torch_give_numpys_points(project, name, dtype):
    K, room = SETS[name], 1e-9 if dtype == torch.float64 else 1e-3
    moved, tol = K.to(torch.zeros(1, dtype=dtype)), 0.05 * K.radius**2
    for radii in (0.0, 1.0, 2.0):
        d = K.tangent(np.random.default_rng(6).standard_normal(4))
        y = K.center + radii * K.radius * d / np.linalg.norm(d)
        asked, start = there(y, dtype), there(np.array(K.center), dtype)
        ours, numpys = project(moved, asked, start, tol=tol), project(K, y, K.center, tol=tol)
        assert isinstance(ours.x, torch.Tensor)
        assert isinstance(ours.y, torch.Tensor)
        assert ours.x.dtype == ours.y.dtype == dtype
        np.testing.assert_allclose(ours.x.numpy(), numpys.x, atol=room)
        np.testing.assert_allclose(ours.y.numpy(), numpys.y, atol=room)
        assert ours.distance2 == pytest.approx(numpys.distance2, abs=room)
        assert ours.calls == numpys.calls
        np.testing.assert_array_equal(asked.numpy(), y.astype(asked.numpy().dtype))


# --- a learner ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(SETS.keys() - {"box", "moved"}))
@pytest.mark.parametrize("kind", streams(1, 4, np.asarray))
@pytest.mark.parametrize("block", [1, 5])
def test_a_learner_on_torch_makes_numpys_decisions(name, kind, block):
    """Over a few updates, and not on boxes: where x and y agree in an entry, rounding decides which
    corner the oracle of a box answers.

    Rounding also decides, now and then, whether an active set takes one more of its small steps: x
    then differs far within the tolerance.
    """
    K = SETS[name]
    moved, rounds = K.to(torch.zeros(1, dtype=torch.float64)), 4 * block
    ours = tw.run(
        tw.LyapunovDescent(moved, horizon=rounds, block=block), streams(rounds, 4, there)[kind]
    )
    numpys = tw.run(
        tw.LyapunovDescent(K, horizon=rounds, block=block), streams(rounds, 4, np.asarray)[kind]
    )
    np.testing.assert_allclose(ours.losses, numpys.losses, atol=1e-4)
    np.testing.assert_allclose(ours.violations, numpys.violations, atol=1e-4)
    np.testing.assert_array_equal(ours.calls, numpys.calls)
    np.testing.assert_allclose(ours.distances, numpys.distances, atol=1e-4)


@covered(
    K=SETS,
    kind={kind: kind for kind in streams(1, 4, np.asarray)},
    dtype={str(dtype): dtype for dtype in DTYPES},
    block={"1": 1, "7": 7},
)
def test_a_learner_stays_on_torch_in_its_dtype_and_under_its_bound(K, kind, dtype, block):
    moved = K.to(torch.zeros(1, dtype=dtype))
    learner = tw.LyapunovDescent(moved, horizon=60, block=block)
    run = tw.run(learner, streams(60, 4, lambda x: there(x, dtype))[kind])
    state = run.final_state
    for part in (learner.act(state), state.point.y, state.point.x):
        assert isinstance(part, torch.Tensor)
        assert part.dtype == dtype
    assert run.max_excess <= (1e-9 if dtype == torch.float64 else 1e-4)
    assert run.oracle_calls <= 60
    assert run.regret is None or run.regret[0] <= run.bound.regret + 1e-3


@pytest.mark.parametrize("name", ["hull", "flow"])
def test_a_saved_state_returns_to_torch_and_goes_on(name):
    K, stream = (
        SETS[name].to(torch.zeros(1, dtype=torch.float64)),
        streams(40, 4, there)["affine under maxima"],
    )
    learner = tw.LyapunovDescent(K, horizon=40)
    *_, half = tw.play(learner, stream[:20])
    again = learner.load(learner.save(half.state))
    assert isinstance(again.point.y, torch.Tensor)
    for whole, resumed in zip(
        tw.play(learner, stream[20:], half.state), tw.play(learner, stream[20:], again), strict=True
    ):
        np.testing.assert_array_equal(to_numpy(whole.x), to_numpy(resumed.x))
