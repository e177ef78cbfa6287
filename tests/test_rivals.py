"""Exact projections: against enumeration, against sets' own methods, and by the variational inequality; and the rival's own promises."""

from __future__ import annotations

import copy
import itertools
import math
import pickle
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tidewolf as tw
from tidewolf import sets
from tidewolf.core.errors import NotSupported, SolverFailed
from tidewolf.functions import Capacity, Linear
from tidewolf.rivals import SinhaVaze
from tidewolf.rivals.exact import ExactProjection
from tidewolf.sets import (
    Box,
    CappedSimplex,
    ConvexSet,
    FlowPolytope,
    L2Ball,
    Polyhedral,
    Projectable,
    Shrunk,
    Simplex,
    Translated,
    VertexHull,
)
from tidewolf.sets.base import membership_tolerance

seeds = st.integers(0, 2**32)
SETS = [pytest.param(K, id=f"{kind.__name__}-{i}") for kind in sets.every() for i, K in enumerate(kind.examples())]
DESCRIBED = [case for case in SETS if isinstance(case.values[0], Polyhedral)]


def by_faces(points: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The nearest point of a hull: the best projection on the affine hull of a subset that has nonnegative weights."""
    best, nearest = math.inf, points[0]
    for size in range(1, len(points) + 1):
        for chosen in itertools.combinations(points, size):
            base, edges = chosen[0], np.array(chosen[1:]).reshape(-1, len(y)) - chosen[0]
            w = np.linalg.lstsq(edges.T, y - base, rcond=None)[0] if size > 1 else np.zeros(0)
            p = base + w @ edges
            if (w >= -1e-12).all() and w.sum() <= 1 + 1e-12 and np.linalg.norm(p - y) < best:
                best, nearest = float(np.linalg.norm(p - y)), p
    return nearest


def program(K: ConvexSet, y: np.ndarray) -> np.ndarray:
    """The projection by the quadratic program, whether or not the set has its own."""
    return ExactProjection(K)._quadratic_program(y.reshape(-1)).reshape(K.shape)


@given(seed=seeds, k=st.integers(1, 6), n=st.integers(1, 3), far=st.sampled_from([0.1, 1.0, 100.0]))
@settings(max_examples=60)
def test_the_projection_on_a_hull_is_the_best_over_its_faces(seed, k, n, far):
    rng = np.random.default_rng(seed)
    points = rng.integers(-2, 3, (k, n)).astype(float)
    y = far * rng.standard_normal(n)
    np.testing.assert_allclose(ExactProjection(VertexHull(points))(y), by_faces(points, y), atol=2e-5)
    assert np.linalg.norm(ExactProjection(VertexHull(points))(y) - y) <= np.linalg.norm(by_faces(points, y) - y) + 1e-9


@pytest.mark.parametrize(
    "K", [Box([-1.0, 0.0], [1.0, 3.0]), Simplex(4), Simplex(3, 2.0, at_most=True), CappedSimplex(5, 0.4), CappedSimplex(2, 0.5)]
)
@given(seed=seeds, far=st.sampled_from([0.01, 1.0, 30.0]))
@settings(max_examples=10)
def test_the_program_agrees_with_the_sets_own_projection(K, seed, far):
    y = K.center + far * np.random.default_rng(seed).standard_normal(K.shape)
    np.testing.assert_allclose(program(K, y), K.project(y), atol=1e-6)
    for image in (Translated(K, np.arange(1.0, 1.0 + K.shape[0])), Shrunk(K, 0.3)):
        np.testing.assert_allclose(program(image, y), image.project(y), atol=1e-6)


@pytest.mark.parametrize("K", SETS)
def test_a_sets_own_projection_is_used_where_there_is_one(K, monkeypatch):
    y = K.center + np.random.default_rng(0).standard_normal(K.shape)
    if isinstance(K, Projectable):
        monkeypatch.setattr(ExactProjection, "_quadratic_program", None)
        np.testing.assert_array_equal(ExactProjection(K)(y), K.project(y))
    else:
        np.testing.assert_array_equal(ExactProjection(K)(y), program(K, y))


def layered(layers: int, width: int) -> FlowPolytope:
    """A graph of full layers between a source and a target."""
    inner = [((i, a), (i + 1, b)) for i in range(layers - 1) for a in range(width) for b in range(width)]
    ends = [edge for a in range(width) for edge in (("s", (0, a)), ((layers - 1, a), "t"))]
    return FlowPolytope.from_edges([*inner, *ends], source="s", target="t")


@pytest.mark.parametrize("K", [*DESCRIBED, pytest.param(layered(5, 6), id="layers"), pytest.param(layered(20, 4), id="long")])
def test_no_member_is_nearer(K):
    """<y - p, v - p> <= 0 at the member v for which it is largest."""
    rng, P = np.random.default_rng(1), ExactProjection(K)
    for far in (1e-3, 0.3, 1.0, 30.0):
        y = K.center + far * rng.standard_normal(K.shape)
        p = P(y)
        assert K.excess(p) <= max(1e-12, membership_tolerance(p, K.radius))
        assert float(np.vdot(y - p, K.lmo(p - y) - p)) <= 1e-7 * max(1.0, float(np.linalg.norm(y - p)))


@pytest.mark.parametrize("K", DESCRIBED)
def test_members_stay_where_they_are(K):
    P = ExactProjection(K)
    for z in (K.center, K.lmo(np.random.default_rng(2).standard_normal(K.shape))):
        np.testing.assert_allclose(P(z), z, atol=2e-6)


@pytest.mark.parametrize("K", DESCRIBED)
def test_the_answer_depends_on_the_question_alone(K):
    rng, P = np.random.default_rng(3), ExactProjection(K)
    questions = [K.center + far * rng.standard_normal(K.shape) for far in (0.01, 1.0, 1.0, 100.0) for _ in range(3)]
    first = [P._quadratic_program(y.reshape(-1)).tobytes() for y in questions]
    again = [P._quadratic_program(y.reshape(-1)).tobytes() for y in reversed(questions)]
    alone = [program(K, y).tobytes() for y in questions]
    assert first == again[::-1] == alone


@pytest.mark.parametrize("size", [1e-6, 1e-2, 1.0, 1e5])
def test_the_size_of_a_hull_does_not_matter(size):
    rng = np.random.default_rng(4)
    points, y = rng.standard_normal((12, 3)), 2.0 * rng.standard_normal(3)
    np.testing.assert_allclose(program(VertexHull(size * points), size * y) / size, by_faces(points, y), atol=1e-6)


def test_the_answer_comes_in_the_dtype_of_the_question():
    assert ExactProjection(FlowPolytope.examples()[0])(np.ones(5, dtype=np.float32)).dtype == np.float32


def test_a_set_that_cannot_be_projected_on_is_refused_with_a_sentence():
    @dataclass(frozen=True, eq=False, repr=False)
    class Fog(ConvexSet):
        shape, center, radius, examples = (2,), np.zeros(2), 1.0, None

        def excess(self, x):
            return float(np.abs(x).max())

        def lmo(self, direction):
            return self.center

    with pytest.raises(NotSupported, match=r"No exact projection on Fog: it offers neither `project` nor a linear description\."):
        ExactProjection(Fog())
    with pytest.raises(NotSupported, match=r"No exact projection on Fog"):
        SinhaVaze(Fog(), horizon=3)


def test_a_solver_that_gives_up_is_named():
    P = ExactProjection(FlowPolytope.examples()[0])
    P._solver.settings.max_iter = 1
    with pytest.raises(SolverFailed, match=r"PIQP could not project on FlowPolytope\(.*\): .*\."):
        P(np.ones(5))


def test_a_rival_that_has_played_can_be_copied_and_sent():
    learner = SinhaVaze(FlowPolytope.examples()[0], horizon=5)
    stream = tw.Stream(Linear(np.arange(25.0).reshape(5, 5) % 3), Capacity(np.full((5, 5), 0.4)))
    played = tw.run(learner, stream)
    for twin in (copy.deepcopy(learner), pickle.loads(pickle.dumps(learner))):
        assert twin == learner
        np.testing.assert_array_equal(tw.run(twin, stream).losses, played.losses)


def test_the_published_setting_has_weight_one_on_the_losses():
    learner = SinhaVaze.published(Simplex(3), horizon=100)
    assert learner.caution == pytest.approx(0.1)
    assert learner.horizon**-0.5 / learner.caution == pytest.approx(1.0)


def test_the_rival_asks_no_oracle():
    run = tw.run(SinhaVaze(L2Ball(3), horizon=5), tw.Stream(Linear(np.eye(3)), Capacity(np.zeros((3, 3)))))
    assert run.oracle_calls == 0
    assert "exactly" in " ".join(run.notes)
