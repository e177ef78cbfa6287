"""The checks of sets fail on sets that are broken on purpose, each at the fitting check."""

import itertools
import math
from dataclasses import dataclass

import numpy as np
import pytest

from failing import assert_fails
from tidewolf.core import errors, jit, vertices
from tidewolf.core.oracle import Answer
from tidewolf.sets import ConvexSet, Factors, LpBall, Projectable, Simplex, SimplexProduct, base
from tidewolf.testing import check_set, checks, sets


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


class Inflated(vertices.Sparse):
    @staticmethod
    def of(point):
        return Inflated(point.shape, np.arange(point.size, dtype=np.int32), np.array(point))

    def inner(self, direction):
        return 2 * super().inner(direction)


class CompiledFirstEntry(Shares, base.Compiled):
    kernel_data, max_nonzeros = np.zeros(1), 1

    @jit.kernel
    def oracle(d, kernel_data, indices, values):
        indices[0], values[0] = 0, 1.0
        return 1

    def answer(self, direction, warm=None):
        return Answer(vertices.Sparse.of(self.lmo(direction)))

    def atom(self, point):
        return vertices.Sparse.of(point)


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


def along_the_ray(K, y):
    y = np.maximum(y, 0.0)
    return y / y.sum() if y.sum() > 0 else K.center


def of_the_first_two(K, d):
    return (d[0] - d[1]) / 2 * np.array([1, -1, 0], dtype=d.dtype)


def hates_mixtures(K, x):
    return max(Shares.infeasibility(K, x), 0.1 * float(x.max() < 0.9 and abs(x[0] - 1 / 3) > 1e-3))


def cold(K, d):
    return ConvexSet.answer(K, d)


def worse_when_warm(K, d, warm=None):
    return cold(K, d if warm is None else -d)._replace(warm=np.zeros(1))


def negative_part(K, x):
    return max(0.0, -float(x.min()))


CALLS, DESCRIBED = itertools.count(), base.LinearDescription(np.zeros(3), np.ones(3))
NOTHING = base.LinearDescription(np.zeros(3), np.zeros(3), A_eq=np.ones((1, 3)), b_eq=np.ones(1))
CAPABILITIES = {"project": Projectable, "description": base.Polyhedral, "relax": base.Relaxable}
BROKEN = {
    "warm starts do no harm: float64": {
        "answer": lambda K, d, warm=None: cold(K, d)._replace(error=np.float64(0.0))
    },
    "warm starts do no harm: cold answer": {"answer": worse_when_warm},
    "answers are best: worse": {"lmo": lambda K, d: first_is_one(-d)},
    "answers are members: nan nan nan": {
        "lmo": lambda K, d: first_is_one(d) if d.any() else np.full(3, np.nan)
    },
    "answers are best": {"lmo": overflows},
    "answers are members: (3, 1)": {"lmo": lambda K, d: first_is_one(d)[:, None]},
    "directions stay unchanged: lmo": {"lmo": lambda K, d: np.copyto(d, first_is_one(d)) or d},
    "directions stay unchanged: project": {"project": lambda K, y: y},
    "directions stay unchanged: atom": {"atom": lambda K, x: vertices.Dense(x)},
    "answers are members: then another answer": {
        "lmo": lambda K, d: np.roll(np.array([1.0, 0.0, 0.0]), next(CALLS) % 3)
    },
    "center is a member: 1 1 -1": {"center": np.array([1.0, 1.0, -1.0])},
    "center is a member: flags.writeable": {"center": np.full(3, 1 / 3)},
    "sizes bound members: radius is 0.8": {"radius": 0.8},
    "sizes make sense: radius is -1": {"radius": -1.0},
    "sizes bound members: diameter": {"diameter": 1.4},
    "inner ball is inside: 0.5": {"inner_radius": 0.5},
    "tangent projects: dimension is 3": {"dimension": 3},
    "tangent projects: idempotent": {"tangent": lambda K, d: 2 * (d - d.mean())},
    "tangent projects: linear": {"tangent": lambda K, d: np.abs(d - d.mean())},
    "tangent projects: symmetric": {"tangent": lambda K, d: d - d[0]},
    "tangent keeps the answer: members": {
        "dimension": 1,
        "inner_radius": None,
        "tangent": of_the_first_two,
    },
    "infeasibility tells members: infeasibility 0": {"infeasibility": lambda K, x: 0.0},
    "infeasibility tells members: off the affine hull": {"infeasibility": negative_part},
    "infeasibility tells members: the member": {"infeasibility": hates_mixtures},
    "answers keep the dtype: float64": {"tangent": lambda K, d: d - float(d.mean()) * np.ones(3)},
    "vertices agree: inner": {
        "answer": lambda K, d, warm=None: Answer(Inflated.of(K.lmo(d))),
        "atom": lambda K, x: Inflated.of(x),
    },
    "tables agree: atom": {"atom": lambda K, x: vertices.Dense(np.zeros(3))},
    "answers match the linear program": {"description": lambda K: DESCRIBED},
    "answers match the linear program: nan": {"description": lambda K: NOTHING},
    "projections are nearest: nearer": {"project": along_the_ray},
    "projections are nearest: infeasibility": {"project": lambda K, y: y - (y.sum() - 1.0) / 3},
    "relaxations come no farther: the distance": {"relax": lambda K, y: np.minimum(y, 0.5)},
    "relaxations come no farther: relaxed twice": {
        "relax": lambda K, y: (y + np.clip(y, 0, 1)) / 2
    },
    "relaxations come no farther: float128": {
        "relax": lambda K, y: np.clip(y, 0, 1).astype(np.longdouble)
    },
    "directions stay unchanged: relax": {"relax": lambda K, y: np.clip(y, 0, 1, out=y)},
    "center is inside: boundary": {
        "radius": math.sqrt(2),
        "inner_radius": None,
        "center": property(lambda K: np.array([1.0, 0.0, 0.0])),
    },
    "names name entries: different": {"names": ("a", "a", "b")},
    "set prints and compares: to(float32)": {"to": lambda K, reference: K},
}
"""What is changed of `Shares`, by the check that fails and a word of its detail."""


def test_the_pattern_of_the_broken_sets_is_right():
    check_set(Shares())


@pytest.mark.parametrize("fails", BROKEN)
def test_a_broken_set_fails_the_fitting_check(fails):
    changes = BROKEN[fails]
    capable = [kind for name, kind in CAPABILITIES.items() if name in changes]
    broken = type("Broken", (Shares, *capable), dict(changes))()
    assert_fails(check_set, sets.SetChecks, broken, fails)


@pytest.mark.parametrize(
    ("kind", "detail"),
    [
        (CompiledFirstEntry, "vertices agree: compiled oracle"),
        (ComparesByTuple, "set prints and compares: eq=False"),
        (Undecorated, "set prints and compares: dataclass"),
    ],
)
def test_a_broken_class_fails_the_fitting_check(kind, detail):
    assert_fails(check_set, sets.SetChecks, kind(), detail)


class Stumbles(Shares):
    def lmo(self, direction):
        raise ZeroDivisionError


def test_an_error_that_is_not_ours_is_told_as_the_law_it_stopped():
    kept = []
    with pytest.raises(errors.CheckFailed) as caught:
        check_set(Stumbles(), on_pass=kept.append)
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    assert kept == ["center is a member", "sizes make sense"]


# --- factors --------------------------------------------------------------------------------------

HALF, SQRT2 = 0.5**0.5, 2**0.5


@pytest.mark.parametrize(
    "wrong",
    [
        Factors(np.array([1, 2]), np.full(2, 0.5), np.full(2, 1.0)),
        Factors(np.array([0], dtype=np.int32), np.ones(1), np.ones(1)),
        Factors(np.array([0]), np.ones(1), np.full(1, SQRT2)),
        Factors(np.array([0, 1]), np.array([HALF, 0.0]), np.array([SQRT2, 0.0])),
        Factors(np.array([0]), np.array([HALF, 0.0]), np.array([SQRT2])),
        Factors(np.array([0, 1]), np.full(2, 0.5), np.full(2, 1.0)),
    ],
    ids=["places", "dtype", "radius", "size of a factor", "how many", "no product"],
)
def test_wrong_factors_fail_the_check(monkeypatch, wrong):
    monkeypatch.setattr(Simplex, "factors", wrong, raising=False)
    with pytest.raises(errors.CheckFailed):
        sets.SetChecks(Simplex(2), 0).factors_make_the_set()


def test_factors_with_a_tangent_across_them_or_without_their_projection_fail(monkeypatch):
    told = Factors(np.array([0]), np.array([1.0]), np.array([2.0]), exact=True)
    monkeypatch.setattr(LpBall, "factors", told, raising=False)
    monkeypatch.setattr(SimplexProduct, "tangent", lambda self, d: d - d.mean())
    for K in (LpBall(1, p=3.0), SimplexProduct([2, 3])):
        with pytest.raises(errors.CheckFailed):
            sets.SetChecks(K, 0).factors_make_the_set()


def test_every_check_catches_something():
    caught = {fails.split(":")[0] for fails in BROKEN}
    assert set(checks.checks_of(sets.SetChecks)) == caught | {"factors make the set"}
