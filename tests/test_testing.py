"""The checks of sets fail on sets that are broken on purpose, each at the fitting check; gradients
that cannot be are named; and what the package exports.
"""

import itertools
import math
import re
from dataclasses import dataclass

import numpy as np
import pytest

import tidewolf as tw
from failing import assert_fails
from tidewolf.core import errors, jit, vertices
from tidewolf.core.errors import NotConvex
from tidewolf.core.oracle import Answer
from tidewolf.functions import Affine, Chain, Custom, Linear, Max, Sum
from tidewolf.functions.support import Member, require_subgradients
from tidewolf.sets import ConvexSet, Factors, LpBall, Projectable, Simplex, SimplexProduct, base
from tidewolf.testing import check_set, checks, functions, learners, sets
from tidewolf.testing.checks import checks_of, require, run_checks, statement


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


# --- gradients ------------------------------------------------------------------------------------


N, ROUNDS, RNG = 4, 24, np.random.default_rng(0)
C, P = RNG.normal(size=(ROUNDS, N)), RNG.uniform(size=(ROUNDS, N))
SETS = {
    "simplex": tw.sets.Simplex(N),
    "ball": tw.sets.L2Ball(N),
    "box": tw.sets.Box(np.zeros(N), np.ones(N)),
    "small": tw.sets.Simplex(N, total=1e-3),
    "large": tw.sets.L2Ball(N, 1e4, 1e4 * np.ones(N)),
}
each_set = pytest.mark.parametrize("K", SETS.values(), ids=SETS.keys())


def line(t, x):
    return C[t] @ x


def square(t, x):
    return (x - P[t]) @ (x - P[t])


def differences(t, x):
    return np.array([(square(t, x + h) - square(t, x)) / 1e-6 for h in 1e-6 * np.eye(N)])


WRONG = {
    "sign of a line": (line, lambda t, x: -C[t], "sign is likely turned round"),
    "twice a line": (line, lambda t, x: 2 * C[t], r"2 times as much"),
    "half a square": (square, lambda t, x: x - P[t], "times as much: likely a wrong factor"),
    "a hill": (lambda t, x: -square(t, x), lambda t, x: -2 * (x - P[t]), "likely not convex"),
}
RIGHT = {
    "tiny": (lambda t, x: 1e-90 * line(t, x), lambda t, x: 1e-90 * C[t]),
    "huge": (lambda t, x: 1e80 * line(t, x), lambda t, x: 1e80 * C[t]),
    "a square": (square, lambda t, x: 2 * (x - P[t])),
    "steep": (lambda t, x: 1e6 * (x @ x) ** 2, lambda t, x: 4e6 * (x @ x) * x),
    "a kink at the start": (lambda t, x: np.abs(x - 0.25).sum(), lambda t, x: np.sign(x - 0.25)),
    "the largest": (lambda t, x: x.max(), lambda t, x: np.eye(N)[np.argmax(x)]),
    "nothing": (lambda t, x: 3.0, lambda t, x: 0.0 * x),
    "by differences": (square, differences),
}


def streams(value, subgradient):
    """As a loss, and as a constraint."""
    own = Custom(value, subgradient, N, rounds=ROUNDS)
    return tw.Stream(own, Affine(C, np.zeros(ROUNDS))), tw.Stream(Linear(C), own)


@each_set
@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_found_and_named(K, name):
    value, subgradient, said = WRONG[name]
    if K.radius < 0.01 and name == "a hill":
        return  # as flat as rounding is, on so small a set
    for kind, stream in zip(("loss", "constraint"), streams(value, subgradient), strict=True):
        with pytest.raises(NotConvex, match=said) as found:
            tw.run(tw.LyapunovDescent(K), stream)
        assert int(re.match(rf"The {kind}(?: \w+)? of round (\d+) ", str(found.value))[1]) <= 10


@each_set
@pytest.mark.parametrize("name", RIGHT)
def test_what_is_right_is_never_refused(K, name):
    for stream in streams(*RIGHT[name]):
        assert tw.run(tw.LyapunovDescent(K), stream).rounds == ROUNDS


FRANK_WOLFE = tw.LyapunovFrankWolfe, tw.baselines.OnlineFrankWolfe


@pytest.mark.parametrize("learner", [tw.Ensemble, tw.baselines.SinhaVaze, *FRANK_WOLFE])
def test_every_learner_finds_it(learner):
    value, subgradient, said = WRONG["twice a line"]
    with pytest.raises(NotConvex, match=said):
        tw.run(learner(tw.sets.Simplex(N)), streams(value, subgradient)[0])


def test_the_one_among_several_is_named():
    def carbon(t, x):
        return float(x[0]) - 0.2

    good = Custom(lambda t, x: x[1] - 0.5, lambda t, x: np.eye(N)[1], N, rounds=ROUNDS)
    bad = Custom(carbon, lambda t, x: -np.eye(N)[0], N, rounds=ROUNDS)
    stream = tw.Stream(Linear(C), [good, bad])
    with pytest.raises(NotConvex, match=r"^The constraint carbon of round \d+ \(t = \d+\) breaks"):
        tw.run(tw.LyapunovDescent(tw.sets.Simplex(N)), stream)
    parts = Sum(Linear(C), Chain((bad[:3], bad[3:])))
    with pytest.raises(NotConvex, match=r"^The loss carbon of round"):
        tw.run(tw.LyapunovDescent(tw.sets.Simplex(N)), tw.Stream(parts))
    assert isinstance(stream.constraints, Max)


def test_a_function_without_a_value_at_some_members_is_not_refused():
    """A barrier is infinite at the vertices, and says so in its own way."""
    played, vertex = Member(np.full(N, 1 / N), "here"), Member(np.eye(N)[0], "a vertex")
    for log in (math.log, np.log):
        barrier = Custom.one(lambda x, log=log: -sum(map(log, x)), lambda x: -1.0 / x, N)
        require_subgradients("loss", barrier, 0, played, [vertex])
    hill = Custom.one(lambda x: sum(map(math.log, x)), lambda x: 1.0 / x, N)
    inside = Member(np.array([0.7, 0.1, 0.1, 0.1]), "inside")
    with pytest.raises(NotConvex, match="y inside"):
        require_subgradients("loss", hill, 0, played, [vertex, inside])


def test_a_wrong_factor_does_not_hide_behind_curvature():
    """Over the whole way both inequalities hold; on a hundredth of it they do not."""
    here, there = Member(np.eye(N)[0], "here"), Member(np.eye(N)[1], "there")
    bowl = Custom.one(lambda x: 100 * (x @ x), lambda x: 190 * x, N)
    with pytest.raises(NotConvex, match=r"y 0\.01 of the way to there: .* 0\.95\d* times as much"):
        require_subgradients("loss", bowl, 0, here, [there])


def test_later_rounds_are_not_looked_at():
    late = Custom(lambda t, x: C[t] @ x, lambda t, x: C[t] if t < 10 else -C[t], N, rounds=ROUNDS)
    assert tw.run(tw.LyapunovDescent(tw.sets.Simplex(N)), tw.Stream(late)).rounds == ROUNDS


def test_sessions_refuse_it_too_and_the_round_can_be_observed_again():
    session = tw.Session(tw.LyapunovDescent(tw.sets.Simplex(N)))
    session.observe(costs=C[0])
    x = session.play()
    with pytest.raises(NotConvex, match=r"The loss of round 2 \(t = 1\) breaks .* sign"):
        session.observe(loss=Custom.one(lambda x: C[1] @ x, lambda x: -C[1], N))
    assert session.rounds == 1
    np.testing.assert_array_equal(session.play(), x)
    session.observe(loss=Custom.one(lambda x: C[1] @ x, lambda x: C[1], N))
    assert session.rounds == 2


# --- what the package exports ---------------------------------------------------------------------


class NumberChecks(int):
    def numbers_are_small(self):
        """Numbers are small."""
        require(self < 10, f"{self} is large")

    def numbers_divide(self):
        """Numbers divide."""
        require(10 // self >= 0, "they do not")


def test_a_failed_check_is_named_and_so_is_an_error_inside_one():
    passed = []
    run_checks(NumberChecks(3), "Three", passed.append)
    assert passed == ["numbers are small", "numbers divide"]
    with pytest.raises(errors.CheckFailed, match=r"Twelve.*numbers are small.*12 is large"):
        run_checks(NumberChecks(12), "Twelve", None)
    with pytest.raises(errors.CheckFailed, match=r"Zero.*numbers divide.*ZeroDivisionError"):
        run_checks(NumberChecks(0), "Zero", None)


@pytest.mark.parametrize(
    ("check", "good"),
    [
        (tw.testing.check_set, tw.sets.Simplex(2)),
        (tw.testing.check_function, tw.functions.Linear([[1.0, 2.0]])),
        (tw.testing.check_learner, tw.LyapunovDescent(tw.sets.Simplex(2), horizon=6)),
    ],
    ids=["set", "function", "learner"],
)
def test_every_check_that_passes_is_reported_once(check, good):
    kept = []
    check(good, on_pass=kept.append)
    assert len(kept) == len(set(kept)) > 5


def test_every_check_states_a_property():
    kinds = (sets.SetChecks, functions.FunctionChecks, learners.LearnerChecks)
    checks = [check for kind in kinds for check in checks_of(kind).values()]
    assert len(checks) > 50
    assert all(len(statement(check).split()) > 2 for check in checks)
