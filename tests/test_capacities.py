"""The drift-plus-penalty step for capacities: certificates that no solver is needed to check, and
every kind of hull; that it is the step for maxima of coordinates is in test_proximal_bundle.py.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polytopes import layered, random_flow_polytope
from tidewolf.functions import Capacity
from tidewolf.methods.steps.penalty import PenaltyTask, solve_penalty
from tidewolf.sets import Box, CappedSimplex, FlowPolytope, L2Ball, Simplex, Translated, VertexHull

SETS = {
    "a box": Box(np.zeros((2, 3)), np.ones((2, 3))),
    "a number": Box([0.0], [1.0]),
    "a box with a fixed entry": Box([-1.0, 0.0, 2.0], [1.0, 5.0, 2.0]),
    "a ball": L2Ball(4, radius=2.0),
    "a small ball": L2Ball(3, radius=1e-8),
    "a large ball": L2Ball(3, radius=1e8),
    "a simplex": Simplex(6),
    "a moved simplex": Translated(Simplex(4), np.arange(4.0)),
    "a capped simplex": CappedSimplex(6, 0.4),
    "flows": random_flow_polytope(3),
    "layers": layered(3, 4),
    "flows with idle arcs": FlowPolytope.examples()[1],
    "flows with arcs on every path": FlowPolytope.examples()[4],
    "a hull of vertices": VertexHull(np.random.default_rng(0).normal(size=(4, 7))),
}
seeds = st.integers(0, 2**32 - 1)


def random_task(K, seed):
    """A step of any kind: y inside or on the border, capacities loose, tight, negative, tied, out
    of reach; any weights.
    """
    rng, c, R = np.random.default_rng(seed), np.asarray(K.center, dtype=float), K.radius
    way = np.asarray(K.tangent(rng.normal(size=K.shape)))
    y = c + R * rng.choice([0.0, 0.3, 0.9, 1.0]) * way / np.linalg.norm(way)
    d = np.asarray(K.tangent(rng.normal(size=K.shape))) * 10.0 ** rng.uniform(-3, 3)
    d = d * rng.choice([0, 1, 1])
    C = c + R * (
        rng.normal(size=(rng.choice([1, 2, 5, 20]), *K.shape)) * rng.choice([0.1, 0.5, 2.0])
        + rng.choice([-1.0, 0.0, 0.3, 5.0])
    )
    match rng.integers(6):
        case 0:
            C = R * np.round(4.0 * C / R) / 4.0
        case 1:
            C[:] = C[0]
        case 2:
            C[rng.random(C.shape) < 0.3] = 1e200
    return PenaltyTask(
        K, Capacity(C), y, d, 10.0 ** rng.uniform(-3, 3), 10.0 ** rng.uniform(-3, 3) / R, c
    )


def scale(task):
    """What h is made of at y and at the end of the ball."""
    R = task.K.radius
    sizes = task.delta * task.breach(task.y), float(np.linalg.norm(task.d)) * R
    return sum(sizes) + 1e-6 * task.alpha * R**2


def members(task, x, seed, count=40):
    """Points of the ball and hull, near x and anywhere."""
    rng, R, points = np.random.default_rng(seed), task.K.radius, []
    for _ in range(count):
        way = np.asarray(task.K.tangent(rng.normal(size=x.shape)))
        z = x + R * 10.0 ** rng.uniform(-9, 0) * way / np.linalg.norm(way) - task.center
        points.append(task.center + z * min(1.0, R / max(float(np.linalg.norm(z)), 1e-300)))
    return points


def h(task, x):
    return task.value(x, task.breach(x))


# ------------------------------------------------------------------------------------- certificates


@pytest.mark.soak_examples(25)
@pytest.mark.parametrize("name", SETS)
@settings(max_examples=4)
@given(seed=seeds)
def test_answers_are_as_good_as_certified_and_as_asked(name, seed):
    task = random_task(SETS[name], seed)
    accuracy = 1e-8 * scale(task)
    x, breach, gap, off, looks = solve_penalty(task, accuracy, 1000)
    blur = 1e-12 * (abs(h(task, x)) + scale(task))
    assert 0.0 <= gap <= accuracy
    assert looks >= 1
    assert breach == pytest.approx(task.breach(x), rel=1e-12)
    assert np.linalg.norm(x - task.center) <= task.K.radius * (1 + 1e-12) + 1e-15 * np.linalg.norm(
        task.center
    )
    across = (x - task.center) - np.asarray(task.K.tangent(x - task.center))
    assert np.abs(across).max() <= 1e-11 * (task.K.radius + np.abs(task.center).max())
    for z in (*members(task, x, seed), task.y):
        assert (
            h(task, x) + 0.5 * task.alpha * max(0.0, float(np.linalg.norm(z - x)) - off) ** 2
            <= h(task, z) + gap + blur
        )


@pytest.mark.soak_examples(8)
@pytest.mark.parametrize(
    "name", ["a box", "a simplex", "flows", "layers", "a hull of vertices", "a ball"]
)
@pytest.mark.parametrize("alpha", [1e-12, 1e-6, 1e6, 1e12])
@settings(max_examples=2)
@given(seed=seeds)
def test_extreme_weights_leave_certificates_honest(name, alpha, seed):
    task = random_task(SETS[name], seed)._replace(alpha=alpha)
    x, _, gap, _, _ = solve_penalty(task, 1e-8 * scale(task), 60)
    blur = 1e-12 * (abs(h(task, x)) + scale(task))
    assert 0.0 <= gap < np.inf
    assert h(task, x) <= min(h(task, z) for z in members(task, x, seed, 20)) + gap + blur
