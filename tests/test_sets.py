"""Sets: the laws on every example, brute force on small ones, sentences of errors, and sets broken
on purpose.
"""

from __future__ import annotations

import itertools
import math
import pickle
from dataclasses import dataclass

import array_api_strict as strict
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from covering import thinned
from failing import assert_fails
from refused import refused
from tidewolf import sets
from tidewolf.core.errors import (
    CheckFailed,
    EmptySet,
    InvalidInput,
    NotFinite,
    NotSupported,
    OracleError,
    SolverFailed,
    WrongShape,
    WrongType,
)
from tidewolf.core.jit import kernel
from tidewolf.core.oracle import Answer
from tidewolf.core.vertices import Dense, Sparse
from tidewolf.sets import (
    Box,
    CappedSimplex,
    ConvexSet,
    L2Ball,
    Polyhedral,
    Projectable,
    Shrunk,
    Simplex,
    Translated,
    VertexHull,
)
from tidewolf.sets.base import Compiled, LinearDescription, Relaxable
from tidewolf.testing import check_set
from tidewolf.testing.sets import SetChecks

EXAMPLES = [
    pytest.param(K, id=f"{kind.__name__}-{i}")
    for kind in sets.every()
    for i, K in enumerate(kind.examples())
]
FIRST = {kind.__name__: kind.examples()[0] for kind in sets.every()}
seeds = st.integers(0, 2**32)


# --- the laws, on everything exported -------------------------------------------------------------


@pytest.mark.parametrize("K", EXAMPLES)
@given(seed=seeds)
@settings(max_examples=1)
def test_every_example_keeps_every_law(K, seed):
    check_set(K, seed=seed)


@thinned(2, K=FIRST, reference={"float32": np.zeros(1, np.float32), "strict": strict.zeros(1)})
def test_the_laws_hold_in_other_libraries_and_dtypes(K, reference):
    moved = K.to(reference)
    assert type(moved.center) is type(reference)
    assert moved.center.dtype == reference.dtype
    check_set(moved)


@pytest.mark.parametrize("K", EXAMPLES)
@pytest.mark.parametrize("dtype", [strict.float32, strict.float64])
def test_a_numpy_set_answers_in_the_library_of_the_direction(K, dtype):
    d = strict.asarray(np.random.default_rng(1).standard_normal(K.shape), dtype=dtype)
    for point in (K.lmo(d), K.tangent(d)):
        assert type(point) is type(d)
        assert point.dtype == dtype
    assert K.infeasibility(K.lmo(d)) < 1e-3
    if isinstance(K, Projectable):
        assert K.project(d).dtype == dtype
    assert K.lmo(strict.ones(K.shape, dtype=strict.int64)).dtype == strict.float64


@given(n=st.integers(1, 12), share=st.floats(0.0, 1.0), seed=seeds, ties=st.booleans())
@settings(max_examples=200)
def test_compiled_oracles_and_their_sources_give_the_vertex_of_answer(n, share, seed, ties):
    rng = np.random.default_rng(seed)
    d = rng.integers(-1, 2, n).astype(float) if ties else rng.standard_normal(n)
    for K in (
        Simplex(n, 2.0),
        Simplex(n, 2.0, at_most=True),
        CappedSimplex(n, 1.0, max(0.1, share * n)),
    ):
        expected = K.answer(d).vertex.key()
        assert K.minimiser(d).key() == expected
        indices, values = np.empty(K.max_nonzeros, dtype=np.int32), np.empty(K.max_nonzeros)
        count = K.oracle.plain(d, K.kernel_data, indices, values)
        assert Sparse((n,), indices[:count], values[:count]).key() == expected


# --- brute force ----------------------------------------------------------------------------------


def corners(K: ConvexSet) -> np.ndarray:
    """Every vertex of a small set, by enumeration."""
    if isinstance(K, Box):
        choices = itertools.product(*zip(K.lower.reshape(-1), K.upper.reshape(-1), strict=True))
        return np.array(list(choices)).reshape(-1, *K.shape)
    if isinstance(K, VertexHull):
        return K.points
    if isinstance(K, Simplex):
        return np.vstack([K.total * np.eye(K.n), np.zeros((int(K.at_most), K.n))])
    assert isinstance(K, CappedSimplex)
    full = [np.array(bits) * K.cap for bits in itertools.product((0.0, 1.0), repeat=K.n - 1)]
    points = [np.insert(bits, i, K.total - bits.sum()) for bits in full for i in range(K.n)]
    return np.array([x for x in points if x.min() >= -1e-12 and x.max() <= K.cap + 1e-12])


ENUMERABLE = [
    pytest.param(K, id=f"{kind.__name__}-{i}")
    for kind in (Box, CappedSimplex, Simplex, VertexHull)
    for i, K in enumerate(kind.examples())
    if math.prod(K.shape) <= 8
]


@pytest.mark.parametrize("K", ENUMERABLE)
def test_oracle_radius_and_diameter_are_those_of_the_enumerated_vertices(K):
    all_of_them = corners(K)
    rows = all_of_them.reshape(len(all_of_them), -1)
    for d in np.random.default_rng(2).standard_normal((20, *K.shape)):
        assert np.vdot(d, K.lmo(d)) == pytest.approx(float((rows @ d.reshape(-1)).min()), abs=1e-12)
    assert K.radius == pytest.approx(
        np.linalg.norm(rows - K.center.reshape(-1), axis=1).max(), abs=1e-12
    )
    assert K.diameter == pytest.approx(
        np.linalg.norm(rows[:, None] - rows[None], axis=2).max(), abs=1e-12
    )
    assert K.dimension == np.linalg.matrix_rank(rows - rows[0])


SHARP = [case for case in ENUMERABLE if not isinstance(case.values[0], VertexHull)]
"""Sets whose inner radius is exact."""


@pytest.mark.parametrize(
    "K", [*SHARP, *(pytest.param(K, id=f"Ball-{i}") for i, K in enumerate(L2Ball.examples()))]
)
def test_inner_radius_is_exact_where_it_is_known(K):
    if K.inner_radius:
        units = [
            K.tangent(sign * unit.reshape(K.shape))
            for unit in np.eye(math.prod(K.shape))
            for sign in (1.0, -1.0)
        ]
        units.append(K.tangent(-np.ones(K.shape)))
        units.append(K.tangent(np.ones(K.shape)))
        reached = [
            K.infeasibility(K.center + 1.001 * K.inner_radius * u / np.linalg.norm(u))
            for u in units
            if np.linalg.norm(u) > 1e-9
        ]
        assert max(reached) > 1e-9 * K.inner_radius
    else:
        assert K.dimension == 0


def distance_by_faces(points: np.ndarray, x: np.ndarray) -> float:
    """The distance to a hull: the best projection on the affine hull of a subset that has
    nonnegative weights.
    """
    best = math.inf
    for size in range(1, len(points) + 1):
        for chosen in itertools.combinations(points, size):
            base, edges = chosen[0], np.array(chosen[1:]).reshape(-1, len(x)) - chosen[0]
            w = np.linalg.lstsq(edges.T, x - base, rcond=None)[0] if size > 1 else np.zeros(0)
            if (w >= -1e-12).all() and w.sum() <= 1 + 1e-12:
                best = min(best, float(np.linalg.norm(base + w @ edges - x)))
    return best


@given(
    seed=seeds, k=st.integers(1, 6), n=st.integers(1, 3), far=st.sampled_from([0.1, 1.0, 1e3, 1e6])
)
def test_the_excess_of_a_hull_is_the_distance_to_it(seed, k, n, far):
    rng = np.random.default_rng(seed)
    points = rng.integers(-2, 3, (k, n)).astype(float)
    K, x = VertexHull(points), far * rng.standard_normal(n)
    assert K.infeasibility(x) == pytest.approx(distance_by_faces(points, x), abs=1e-9, rel=1e-9)
    inside = rng.dirichlet(np.ones(k)) @ points
    assert K.infeasibility(inside) <= 1e-12


@given(
    seed=seeds,
    n=st.integers(1, 9),
    cap=st.sampled_from([0.2, 0.5, 1.0, 3.0]),
    far=st.sampled_from([0.0, 0.1, 1.0, 1e9, 1e150]),
)
def test_the_projection_on_a_capped_simplex_agrees_with_plain_bisection(seed, n, cap, far):
    total = cap * n * 0.7
    y = far * np.random.default_rng(seed).standard_normal(n)
    x = CappedSimplex(n, cap, total).project(y)
    assert abs(x.sum() - total) <= 1e-12 * max(1.0, total)
    if far <= 1.0:
        low, high = y.min() - cap, y.max()
        for _ in range(200):
            middle = (low + high) / 2
            low, high = (
                (middle, high) if np.clip(y - middle, 0, cap).sum() >= total else (low, middle)
            )
        np.testing.assert_allclose(x, np.clip(y - low, 0, cap), atol=1e-12)


@pytest.mark.parametrize(
    "K",
    [
        Simplex(3),
        Simplex(3, at_most=True),
        CappedSimplex(3, 0.5),
        Box(np.zeros(3), np.ones(3)),
        L2Ball(3),
    ],
)
@pytest.mark.parametrize("far", [1e9, 1e20, 1e150])
def test_a_projection_from_far_away_is_still_a_member(K, far):
    assert K.infeasibility(K.project(far * np.array([1.0, -2.0, 0.5]))) <= 1e-12


# --- each set's own promises ----------------------------------------------------------------------


def test_ties_go_to_the_earlier_coordinate():
    np.testing.assert_array_equal(
        CappedSimplex(5, 1.0, 2.5).lmo(np.zeros(5)), [1.0, 1.0, 0.5, 0.0, 0.0]
    )
    np.testing.assert_array_equal(
        CappedSimplex(4, 1.0, 2.0).lmo(np.array([1.0, 0.0, 1.0, 1.0])), [1.0, 1.0, 0.0, 0.0]
    )
    np.testing.assert_array_equal(Simplex(3).lmo(np.zeros(3)), [1.0, 0.0, 0.0])
    np.testing.assert_array_equal(VertexHull([[0.0, 1.0], [1.0, 0.0]]).lmo(np.ones(2)), [0.0, 1.0])
    np.testing.assert_array_equal(L2Ball(2, center=[3.0, 4.0]).lmo(np.zeros(2)), [3.0, 4.0])


def test_a_shrunk_set_leaves_room_around_its_members():
    K, factor = CappedSimplex(5, 0.5), 0.8
    rng = np.random.default_rng(0)
    for d in rng.standard_normal((20, 5)):
        u = K.tangent(rng.standard_normal(5))
        z = Shrunk(K, factor).lmo(d) + (1 - factor) * K.inner_radius * u / np.linalg.norm(u)
        assert K.infeasibility(z) <= 1e-12


# --- images have the capabilities of what they are images of --------------------------------------


@dataclass(frozen=True, eq=False, repr=False)
class Segment(ConvexSet):
    """A set as a newcomer writes it: { (t, 0) : |t| <= 1 }, with a plain lmo that looks at
    nothing.
    """

    length: float = 1.0

    @property
    def shape(self):
        return (2,)

    @property
    def dimension(self):
        return 1

    @property
    def center(self):
        return np.zeros(2)

    @property
    def radius(self):
        return self.length

    def tangent(self, direction):
        return direction * np.array([1, 0], dtype=direction.dtype)

    def infeasibility(self, x):
        return max(0.0, abs(float(x[0])) - self.length, abs(float(x[1])))

    def lmo(self, direction):
        return np.array([-self.length if direction[0] > 0 else self.length, 0.0])

    @classmethod
    def examples(cls):
        return (cls(),)


def test_a_newcomers_set_passes_and_can_be_moved_and_shrunk():
    check_set(Segment())
    check_set(Translated(Segment(2.0), [3.0, 4.0]))
    check_set(Shrunk(Segment(), 0.5))


@pytest.mark.parametrize(
    ("inside", "projects", "describes", "relaxes"),
    [
        (Simplex(2), True, True, True),
        (L2Ball(2), True, False, True),
        (VertexHull(np.eye(2)), False, True, True),
        (Segment(), False, False, False),
    ],
)
def test_isinstance_tells_what_an_image_can_do(inside, projects, describes, relaxes):
    for K in (
        Translated(inside, [1.0, 1.0]),
        Shrunk(inside, 0.5),
        Shrunk(Translated(inside, [1.0, 1.0]), 0.5),
    ):
        assert isinstance(K, Projectable) is projects
        assert isinstance(K, Polyhedral) is describes
        assert isinstance(K, Relaxable) is relaxes
        assert type(K).__name__ in {"Translated", "Shrunk"}
        if inside != Segment():
            assert pickle.loads(pickle.dumps(K)) == K
        if not projects:
            with pytest.raises(NotSupported):
                K.project(np.zeros(2))
        if not relaxes:
            with pytest.raises(NotSupported):
                K.relax(np.zeros(2))
        if not describes:
            with pytest.raises(
                NotSupported,
            ):
                K.description()


# --- sentences ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "error", "setting"),
    [
        (lambda: CappedSimplex(3, 0.2), EmptySet, "cap"),
        (lambda: CappedSimplex(0, 1.0), InvalidInput, "n"),
        (lambda: CappedSimplex(3, -1.0), InvalidInput, "cap"),
        (lambda: CappedSimplex(3, 1.0, 0.0), InvalidInput, "total"),
        (lambda: CappedSimplex(3, "much"), WrongType, "cap"),
        (lambda: Box([0.0, 2.0], [1.0, 1.0]), EmptySet, "upper"),
        (lambda: Box([0.0, 2.0], [1.0]), WrongShape, "upper"),
        (lambda: Box([0.0], [np.inf]), NotFinite, "upper"),
        (lambda: Box(0.0, 1.0), WrongShape, "lower"),
        (lambda: L2Ball(3, radius=0.0), InvalidInput, "radius"),
        (lambda: L2Ball(3, center=[0.0]), WrongShape, "center"),
        (lambda: L2Ball((2, 0)), InvalidInput, "n"),
        (lambda: VertexHull(np.zeros((0, 2))), EmptySet, "points"),
        (lambda: VertexHull([1.0, 2.0]), WrongShape, None),
        (lambda: VertexHull([[1.0], [2.0, 3.0]]), WrongType, "points"),
        (lambda: Translated(Simplex(2), [1.0]), WrongShape, "shift"),
        (lambda: Translated("K", [1.0]), WrongType, "K"),
        (lambda: Shrunk(Simplex(2), 1.5), InvalidInput, "factor"),
        (lambda: Shrunk(Simplex(2), 0.0), InvalidInput, "factor"),
    ],
)
def test_what_cannot_be_a_set_is_refused_with_a_sentence(make, error, setting):
    with refused(error, setting):
        make()


@pytest.mark.parametrize("K", FIRST.values(), ids=FIRST)
def test_bad_directions_are_refused_with_a_sentence(K):
    with pytest.raises(NotFinite):
        K.lmo(np.full(K.shape, np.nan))
    with pytest.raises(WrongShape):
        K.lmo(np.ones(99))
    with pytest.raises(
        WrongType,
    ):
        K.lmo(np.ones(K.shape, dtype=complex))


def test_a_solver_that_gives_up_is_named(monkeypatch):
    def gives_up(*args, **kwargs):
        raise RuntimeError("Maximum number of iterations reached")

    monkeypatch.setattr("scipy.optimize.nnls", gives_up)
    with pytest.raises(
        SolverFailed,
    ):
        VertexHull(np.eye(2)).infeasibility(np.zeros(2))


# --- sets broken on purpose -----------------------------------------------------------------------


@dataclass(frozen=True, eq=False, repr=False)
class Shares(ConvexSet):
    """The simplex of three shares, right in everything; each broken set below changes one thing."""

    shape = (3,)
    dimension = 2
    radius = math.sqrt(2 / 3)
    diameter = math.sqrt(2)
    inner_radius = math.sqrt(1 / 6)

    @property
    def center(self):
        return np.full(3, 1 / 3)

    def tangent(self, direction):
        return direction - direction.mean()

    def infeasibility(self, x):
        return max(0.0, -float(x.min()), abs(float(x.sum()) - 1.0))

    def lmo(self, direction):
        v = np.zeros(3)
        v[np.argmin(direction)] = 1.0
        return v

    @classmethod
    def examples(cls):
        return (cls(),)


def first_is_one(d):
    return Shares.lmo(None, d)


class Doubled(Dense):
    def dense(self, reference):
        return self.point


class Inflated(Sparse):
    @staticmethod
    def of(point):
        return Inflated(point.shape, np.arange(point.size, dtype=np.int32), np.array(point))

    def inner(self, direction):
        return 2 * super().inner(direction)


class CompiledFirstEntry(Shares, Compiled):
    kernel_data, max_nonzeros = np.zeros(1), 1

    @kernel
    def oracle(d, kernel_data, indices, values):
        indices[0], values[0] = 0, 1.0
        return 1

    def answer(self, direction, warm=None):
        return Answer(Sparse.of(self.lmo(direction)))

    def atom(self, point):
        return Sparse.of(point)


@dataclass(frozen=True)
class ComparesByTuple(Shares):
    shift: float = 0.0


class Undecorated(ConvexSet):
    """No dataclass at all."""

    shape, dimension, radius, diameter = (3,), 2, Shares.radius, Shares.diameter
    center, tangent, infeasibility = Shares.center, Shares.tangent, Shares.infeasibility
    inner_radius, lmo, examples = Shares.inner_radius, Shares.lmo, Shares.examples


def overflows(K, d):
    with np.errstate(over="ignore"):
        return first_is_one(d * np.linalg.norm(d) ** 2 + np.arange(3.0)[::-1] * 1e-9)


def written(into, change):
    """A method that writes into its argument and answers `into` it."""

    def method(K, x):
        change(x)
        return into(x)

    return method


def less_least(d):
    d -= d.min()


def less_mean(d):
    d -= d.mean()


def as_answer(d):
    d[:] = first_is_one(d)


def along_the_ray(K, y):
    y = np.maximum(y, 0.0)
    return y / y.sum() if y.sum() > 0 else K.center


def of_the_first_two(K, d):
    return (d[0] - d[1]) / 2 * np.array([1, -1, 0], dtype=d.dtype)


def hates_mixtures(K, x):
    return max(Shares.infeasibility(K, x), 0.1 * float(x.max() < 0.9 and abs(x[0] - 1 / 3) > 1e-3))


def cold(K, d):
    return ConvexSet.answer(K, d)


def same(x):
    return x


def negative_part(K, x):
    return max(0.0, -float(x.min()))


CALLS = itertools.count()
DESCRIBED = LinearDescription(np.zeros(3), np.ones(3))
NOTHING = LinearDescription(np.zeros(3), np.zeros(3), A_eq=np.ones((1, 3)), b_eq=np.ones(1))
OUTSIDE = {"lmo": lambda K, d: 1.5 * first_is_one(d)}
COLUMN = {"lmo": lambda K, d: first_is_one(d)[:, None]}
MINUS_ONE = {"lmo": lambda K, d: np.array([-1.0, 0.0, 0.0])}
BLIND_ALONG = {"dimension": 3, "inner_radius": None, "tangent": lambda K, d: d}
DOUBLED = {"answer": lambda K, d, warm=None: Answer(Doubled(K.lmo(d)))}
INFLATED = {
    "answer": lambda K, d, warm=None: Answer(Inflated.of(K.lmo(d))),
    "atom": lambda K, x: Inflated.of(x),
}
NUMPYS_ERROR = {"answer": lambda K, d, warm=None: cold(K, d)._replace(error=np.float64(0.0))}
WORSE_WHEN_WARM = {
    "answer": lambda K, d, warm=None: cold(K, d if warm is None else -d)._replace(warm=np.zeros(1))
}
CORNER = {
    "radius": math.sqrt(2),
    "diameter": math.sqrt(2),
    "inner_radius": None,
    "center": property(lambda K: np.array([1.0, 0.0, 0.0])),
}
BROKEN = [
    ("warm starts do no harm: float64", NUMPYS_ERROR),
    ("warm starts do no harm: cold answer", WORSE_WHEN_WARM),
    ("answers are members: -1 0 0", MINUS_ONE),
    ("answers are members: 0.5", OUTSIDE),
    ("answers are best: worse", {"lmo": lambda K, d: first_is_one(-d)}),
    (
        "answers are members: nan nan nan",
        {"lmo": lambda K, d: first_is_one(d) if d.any() else np.full(3, np.nan)},
    ),
    ("answers are best", {"lmo": overflows}),
    ("answers are members: (3, 1)", COLUMN),
    ("directions stay unchanged: lmo", {"lmo": written(same, as_answer)}),
    ("directions stay unchanged: lmo", {"lmo": written(first_is_one, less_least)}),
    ("directions stay unchanged: tangent", {"tangent": written(same, less_mean)}),
    ("directions stay unchanged: project", {"project": lambda K, y: y}, Projectable),
    ("directions stay unchanged: atom", {"atom": lambda K, x: Dense(x)}),
    (
        "answers are members: then another answer",
        {"lmo": lambda K, d: np.roll(np.array([1.0, 0.0, 0.0]), next(CALLS) % 3)},
    ),
    ("center is a member: 1 1 -1", {"center": np.array([1.0, 1.0, -1.0])}),
    ("center is a member: flags.writeable", {"center": np.full(3, 1 / 3)}),
    ("sizes bound members: radius is 0.8", {"radius": 0.8}),
    ("sizes make sense: radius is -1", {"radius": -1.0}),
    ("sizes bound members: diameter", {"diameter": 1.4}),
    ("inner ball is inside: 0.42", {"inner_radius": 0.42}),
    ("inner ball is inside: 0.5", {"inner_radius": 0.5}),
    ("tangent projects: dimension is 3", {"dimension": 3}),
    ("tangent projects: idempotent", {"tangent": lambda K, d: 2 * (d - d.mean())}),
    ("tangent projects: linear", {"tangent": lambda K, d: np.abs(d - d.mean())}),
    ("tangent projects: symmetric", {"tangent": lambda K, d: d - d[0]}),
    (
        "tangent keeps the answer: members",
        {"dimension": 1, "inner_radius": None, "tangent": of_the_first_two},
    ),
    ("infeasibility tells members", BLIND_ALONG | {"infeasibility": negative_part}),
    ("infeasibility tells members: infeasibility 0", {"infeasibility": lambda K, x: 0.0}),
    ("infeasibility tells members: off the affine hull", {"infeasibility": negative_part}),
    ("infeasibility tells members: the member", {"infeasibility": hates_mixtures}),
    ("answers keep the dtype: float64", DOUBLED),
    ("vertices agree: inner", INFLATED),
    ("tables agree: atom", {"atom": lambda K, x: Dense(np.zeros(3))}),
    ("answers match the linear program", {"description": lambda K: DESCRIBED}, Polyhedral),
    ("answers match the linear program: nan", {"description": lambda K: NOTHING}, Polyhedral),
    ("projections are nearest: nearer", {"project": along_the_ray}, Projectable),
    (
        "projections are nearest: infeasibility",
        {"project": lambda K, y: y - (y.sum() - 1.0) / 3},
        Projectable,
    ),
    (
        "relaxations come no farther: the distance",
        {"relax": lambda K, y: np.minimum(y, 0.5)},
        Relaxable,
    ),
    (
        "relaxations come no farther: relaxed twice",
        {"relax": lambda K, y: (y + np.clip(y, 0, 1)) / 2},
        Relaxable,
    ),
    (
        "relaxations come no farther: float128",
        {"relax": lambda K, y: np.clip(y, 0, 1).astype(np.longdouble)},
        Relaxable,
    ),
    (
        "directions stay unchanged: relax",
        {"relax": lambda K, y: np.clip(y, 0, 1, out=y)},
        Relaxable,
    ),
    ("center is inside: boundary", CORNER),
    ("set prints and compares: to(float32)", {"to": lambda K, reference: K}),
]
"""The check that fails with a word of its detail, what is changed of `Shares`, and a capability."""


def broken(changes, *capability):
    return type("Broken", (Shares, *capability), dict(changes))()


def test_the_pattern_of_the_broken_sets_is_right():
    check_set(Shares())


@pytest.mark.parametrize("case", BROKEN, ids=lambda case: case[0])
def test_a_broken_set_fails_the_fitting_check(case):
    assert_fails(check_set, SetChecks, broken(*case[1:]), case[0])


@pytest.mark.parametrize(
    ("kind", "detail"),
    [
        (CompiledFirstEntry, "vertices agree: compiled oracle"),
        (ComparesByTuple, "set prints and compares: eq=False"),
        (Undecorated, "set prints and compares: dataclass"),
    ],
)
def test_a_broken_class_fails_the_fitting_check(kind, detail):
    assert_fails(check_set, SetChecks, kind(), detail)


class Stumbles(Shares):
    def lmo(self, direction):
        raise ZeroDivisionError


def test_an_error_that_is_not_ours_is_told_as_the_law_it_stopped():
    kept = []
    with pytest.raises(
        CheckFailed,
    ) as caught:
        check_set(Stumbles(), on_pass=kept.append)
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    assert kept == ["center is a member", "sizes make sense"]


def test_the_machinery_refuses_an_oracle_that_answers_outside():
    with pytest.raises(OracleError):
        broken(OUTSIDE).answer(np.ones(3))
    with pytest.raises(WrongShape):
        broken(COLUMN).answer(np.ones(3))


@pytest.mark.parametrize("K", [Simplex(3), Box([0.0], [1.0]), VertexHull(np.eye(2))])
@pytest.mark.parametrize("method", ["infeasibility", "project", "relax", "tangent"])
def test_bad_points_are_refused_with_a_sentence(K, method):
    if hasattr(K, method):
        with pytest.raises(WrongShape):
            getattr(K, method)(np.ones(99))
        with pytest.raises(WrongType):
            getattr(K, method)(np.ones(K.shape, dtype=complex))


def test_a_set_without_an_oracle_is_refused_where_it_is_written():
    with pytest.raises(TypeError):

        class Mute(ConvexSet):
            pass
