"""Batches of functions: the laws on every example, twins by hand, sentences, and laws that catch
what is broken.
"""

import math
import pickle
from dataclasses import dataclass, replace

import array_api_strict as strict
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import coo_array, csr_array

from covering import few, thinned
from failing import assert_fails
from refused import refused
from tidewolf import functions
from tidewolf.core import arrays, checkpoint, errors, sparse, types
from tidewolf.core.batch import Batch, Halfspaces, LinearTotal, PiecewiseLinear, Unlimited
from tidewolf.core.values import identity
from tidewolf.functions import combined
from tidewolf.functions.autograd import Custom
from tidewolf.functions.combined import Chain, Charged, Max, Sum, saved_pair
from tidewolf.functions.entries import Range, Squared
from tidewolf.functions.linear import Affine, Capacity, Linear, MaxAffine
from tidewolf.functions.loads import LinkLoads, LoadCost, LoadLimit, MaxUtilization
from tidewolf.functions.smooth import LogWealth, Quadratic
from tidewolf.testing.checks import checks_of
from tidewolf.testing.functions import FunctionChecks, check_function

EXAMPLES = [f for kind in functions.every() for f in kind.examples()]
ARRAY_EXAMPLES = [f for f in EXAMPLES if not isinstance(f, Custom | Chain | Max | Sum)]
REFERENCE_EXAMPLES = [f for f in EXAMPLES if not isinstance(f, Custom | Chain)]
seeds = st.integers(0, 2**32 - 1)
each_example = pytest.mark.parametrize("f", EXAMPLES, ids=lambda f: f"{type(f).__name__}{f.shape}")


def moved(f, make):
    fields = f.fields().items()
    return type(f)(**{name: make(x) if arrays.is_array(x) else x for name, x in fields})


def inside(f, seed=0):
    """Points of the domain of a batch, where it has one: positive ones."""
    if f.domain is None:
        return None
    reference = next(part for part in f.fields().values() if arrays.is_array(part))
    points = np.random.default_rng(seed).uniform(0.1, 3.0, (4, *f.shape))
    return [arrays.like(x, reference) for x in points]


# --------------------------------------------------------------------------------------------- laws


@pytest.mark.soak_examples(8)
@each_example
@settings(max_examples=2, deadline=None)
@given(seed=seeds)
def test_examples_keep_every_law(f, seed):
    check_function(f, seed=seed, points=inside(f, seed))


@thinned(
    3,
    f={f"{i}-{f!r}": f for i, f in enumerate(ARRAY_EXAMPLES)},
    kind={
        "numpy": lambda part: part.astype(np.float32),
        "float32": lambda part: strict.asarray(part, dtype=strict.float32),
        "float64": lambda part: strict.asarray(part, dtype=strict.float64),
    },
)
def test_the_checks_pass_in_other_libraries_and_dtypes(f, kind):
    f = moved(f, kind)
    check_function(f, points=inside(f))


# -------------------------------------------------------------------------------------------- twins


def dense(f):
    """The same functions without sparse coefficients."""
    parts = {n: p.toarray() if sparse.is_sparse(p) else p for n, p in f.fields().items()}
    if isinstance(f, MaxAffine) and sparse.is_sparse(f.A):
        rounds, pieces = f.b.shape
        whole = np.tile(parts["A"], (rounds, 1)) if len(f.A.indptr) == pieces + 1 else parts["A"]
        parts["A"] = whole.reshape(rounds, pieces, *f.shape)
    return type(f)(**parts)


def by_hand(f, t, x):
    """Value and gradient of round t as the formula says."""
    f = dense(f)
    match f:
        case Linear(C):
            return float((C[t] * x).sum()), C[t]
        case Affine(A, b):
            return float((A[t] * x).sum() - b[t]), A[t]
        case MaxAffine(A, b):
            return largest([(a * x).sum() for a in A[t]] - b[t], A[t])
        case Capacity(c):
            return largest((x - c[t]).reshape(-1), np.eye(x.size).reshape(-1, *x.shape))
        case Quadratic(P, q, r):
            P = P if P.ndim == 2 else P[t]
            return float(0.5 * x @ (P @ x) + q[t] @ x + r[t]), P @ x + q[t]
        case LogWealth(returns):
            growth = float((returns[t] * x).sum())
            return -math.log(growth), -returns[t] / growth
        case Squared(targets, places, _):
            gradient = np.zeros(x.size)
            for place, target in zip(places[t], targets[t], strict=True):
                if place >= 0:
                    gradient[place] = x.reshape(-1)[place] - target
            return 0.5 * float(gradient @ gradient), gradient.reshape(x.shape)
        case Range(low, high, places, _):
            asked = [(place, j) for j, place in enumerate(places[t]) if place >= 0]
            over = [float(x.reshape(-1)[place] - high[t, j]) for place, j in asked]
            over += [float(low[t, j] - x.reshape(-1)[place]) for place, j in asked]
            units = np.eye(x.size)[[place for place, _ in asked]].reshape(-1, *x.shape)
            return largest(np.array(over), np.concatenate([units, -units]))
        case MaxUtilization(incidence, demands, capacities, pairs, limit, _):
            now = np.asarray(capacities) if capacities.ndim == 1 else np.asarray(capacities)[t]
            rows = incidence * demands[t, np.asarray(pairs)] / now[:, None]
            return largest(rows @ x - limit[t], rows)
        case LoadCost(incidence, demands, costs, pairs):
            row = (costs[t] @ incidence) * demands[t, np.asarray(pairs)]
            return float(row @ x), row
        case LoadLimit(incidence, demands, capacities, pairs, _):
            rows = incidence * demands[t, np.asarray(pairs)]
            return largest(rows @ x - capacities[t], rows)
        case Sum(parts=parts, weights=weights):
            told = [(w, *by_hand(part, t, x)) for w, part in zip(weights, parts, strict=True)]
            return sum(w * v for w, v, _ in told), sum(w * g for w, _, g in told)
        case Charged(parts=parts):
            return by_hand(parts[0], t, x)
        case Max(parts=parts):
            values, gradients = zip(*(by_hand(part, t, x) for part in parts), strict=True)
            return largest(np.array(values), gradients)
        case Unlimited():
            return -1.0, np.zeros(x.shape)
    raise AssertionError(f"{f!r} has no twin; write one.")


def largest(values, gradients):
    """The largest of some values and its gradient, the first of those that tie."""
    return float(values.max()), gradients[values.argmax()]


@pytest.mark.soak_examples(40)
@pytest.mark.parametrize("f", REFERENCE_EXAMPLES, ids=repr)
@settings(max_examples=10, deadline=None)
@given(seed=seeds, whole=st.booleans())
def test_batches_agree_with_the_formula(f, seed, whole):
    rng = np.random.default_rng(seed)
    x = rng.integers(-1, 2, f.shape).astype(float) if whole else rng.normal(size=f.shape)
    x = x if f.domain is None else 0.1 + np.abs(x)
    w = rng.uniform(size=len(f))
    values, gradients = zip(*(by_hand(f, t, x) for t in range(len(f))), strict=True)
    for ours, theirs in (
        (f.values(x), values),
        (f.subgradient(x, w), sum(s * g for s, g in zip(w, gradients, strict=True))),
        (f.gradients(x), gradients),
        (f.slopes(x), [np.linalg.norm(g) for g in gradients]),
    ):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-12)


def test_wealth_that_is_lost_has_no_logarithm():
    f, x = LogWealth([[1.0, 2.0], [0.5, -1.0]]), np.array([0.5, 0.5])
    asks = f.values, f.gradients, f.slopes, lambda x: f.values_at(np.stack([x, x]))
    for ask in (*asks, lambda x: f.subgradient(x, np.ones(2))):
        with pytest.raises(errors.InvalidInput):
            ask(x)
    assert f[:0].values(x).shape == (0,)


def test_declared_exp_concavity_is_tried_where_it_is_said_to_hold():
    """On errors up to 1 a square has 1, two of them 1/2: what is declared beyond that is caught."""
    corners = [np.zeros((1, 2)), np.ones((1, 2)), np.array([[1.0, 0.0]])]
    two = Squared([[0.0, 1.0]], [[0, 1]], (1, 2))
    for f, alpha in ((two, 0.5), (Squared([[0.0]], [[1]], (1, 2)), 1.0)):
        check_function(replace(f, exp_concavity=alpha), points=corners)
        with pytest.raises(errors.CheckFailed):
            check_function(replace(f, exp_concavity=3.0 * alpha), points=corners)
    bowl = Quadratic.one([[2.0]], [0.0])  # x^2: alpha (2 x)^2 <= 2
    check_function(replace(bowl, exp_concavity=0.5), points=[[-1.0], [1.0], [0.5]])
    with pytest.raises(errors.CheckFailed):
        check_function(replace(bowl, exp_concavity=1.5), points=[[-1.0], [1.0], [0.8]])
    assert (bowl.exp_concavity, two.exp_concavity, Linear([[1.0]]).exp_concavity) == (None,) * 3


def test_a_chain_is_as_exp_concave_as_its_least_part():
    wealth, bowl = LogWealth([[1.0]]), Quadratic([[1.0]], [[0.0]], exp_concavity=0.25)
    assert Chain((wealth, bowl)).exp_concavity == 0.25
    assert Chain((wealth, bowl, Linear([[1.0]]))).exp_concavity is None
    assert Chain((wealth, Linear([[1.0]])[:0])).exp_concavity == 1.0
    assert bowl[:0].exp_concavity == 0.25
    assert Sum(wealth, bowl).exp_concavity is None


@pytest.mark.parametrize("f", ARRAY_EXAMPLES, ids=repr)
def test_nothing_given_is_copied(f):
    again = moved(f, lambda part: part)
    for name, part in f.fields().items():
        assert getattr(again, name) is part or isinstance(part, tuple)
        assert not arrays.is_array(part) or np.shares_memory(getattr(f[0:1], name), part)


def test_one_is_a_batch_of_a_single_round():
    row, single = [1.0, 2.0], np.ones(2, dtype=np.float32)
    loads = [[1.0]], [3.0], [2.0], [0], 1
    for one, batch in (
        (Linear.one(row), Linear([row])),
        (Unlimited.one(2), Unlimited((2,))),
        (MaxUtilization.one(*loads), MaxUtilization([[1.0]], [[3.0]], [2.0], [0], [1.0])),
        (Affine.one(row, 3), Affine([row], [3.0])),
        (MaxAffine.one([row, row], [3.0, 0.0]), MaxAffine([[row, row]], [[3.0, 0.0]])),
        (Capacity.one(row), Capacity([row])),
        (Quadratic.one(np.eye(2), row), Quadratic(np.eye(2), [row], [0.0])),
    ):
        assert one == batch
    assert Affine.one(single, 3).values(single).dtype == np.float32


# --------------------------------------------------------------------------------- sums and maxima


def test_sums_and_maxima_can_what_their_parts_can():
    line, limit, bowl = Linear([[1.0]]), Capacity([[1.0]]), Quadratic.one([[1.0]], [0.0])
    for f, linear, pieces in (
        (Sum(line, line), True, True),
        (Sum(line, limit), False, True),
        (Sum(line, bowl), False, False),
        (Max(line, line), False, True),
        (Max(line, Sum(limit, line)), False, True),
        (Max(line, bowl), False, False),
    ):
        for same in (f, f[:1], pickle.loads(pickle.dumps(f)), type(f)._unchecked(**f.fields())):
            assert (same, isinstance(same, LinearTotal)) == (f, linear)
            assert isinstance(same, PiecewiseLinear) == pieces
            assert isinstance(same, type(f).written_as())


# ------------------------------------------------------------------------------------------- sparse


@settings(max_examples=15, deadline=None)
@given(seed=seeds)
def test_loads_of_many_paths_are_those_of_few(seed):
    """A round with a sparse array of its own, by the formula: zero demands, a pair with one path,
    a link without any.
    """
    rng = np.random.default_rng(seed)
    incidence = rng.integers(0, 2, (4, 6)) * rng.uniform(0.5, 1.5, (4, 6))
    incidence[2] = 0.0
    demands = rng.exponential(size=(3, 3)) * (rng.random((3, 3)) < 0.7)
    pairs, x, w = [0, 0, 0, 1, 2, 2], rng.normal(size=6), rng.normal(size=3)
    for f in (
        MaxUtilization(incidence, demands, [1.0, 2.0, 0.5, 3.0], pairs, 0.5),
        LoadLimit(incidence, demands, rng.normal(size=(3, 4)), pairs),
        LoadCost(incidence, demands, rng.normal(size=(3, 4)), pairs),
    ):
        told = [by_hand(f, t, x) for t in range(3)]
        for t, (value, gradient) in enumerate(told):
            one = f[t : t + 1]
            for _ in range(2):  # the second time from what is kept
                np.testing.assert_allclose(one.values(x), [value], atol=1e-12)
            np.testing.assert_allclose(one.subgradient(x, w[:1]), w[0] * gradient, atol=1e-12)
            np.testing.assert_allclose(one[:].values(x), [value], atol=1e-12)
            assert one[1:].values(x).shape == (0,)
        np.testing.assert_allclose(f.values(x), [v for v, _ in told], atol=1e-12)
        together = sum(s * g for s, (_, g) in zip(w, told, strict=True))
        np.testing.assert_allclose(f.subgradient(x, w), together, atol=1e-12)
        points = rng.normal(size=(3, 6))
        own = [by_hand(f, t, points[t])[0] for t in range(3)]
        np.testing.assert_allclose(f.values_at(points), own, atol=1e-12)


def test_costs_of_loads_are_measured_some_rounds_at_a_time(monkeypatch):
    f, points = LoadCost.examples()[0], np.arange(12.0).reshape(3, 4)
    whole = f.slopes(points[0]), f.values_at(points)
    monkeypatch.setattr(functions.loads, "AT_A_TIME", 8)
    assert len(list(f._parts())) == 2
    # products of fewer rows may be added in another order
    np.testing.assert_allclose(f.slopes(points[0]), whole[0], rtol=1e-12)
    np.testing.assert_allclose(f.values_at(points), whole[1], rtol=1e-12)
    np.testing.assert_array_equal(f[:0].slopes(points[0]), np.zeros(0))


@pytest.mark.parametrize("f", [f for f in EXAMPLES if isinstance(f, PiecewiseLinear)], ids=repr)
def test_offsets_are_those_of_the_half_spaces_and_an_empty_view_has_none(f):
    np.testing.assert_array_equal(f.offsets(), f.halfspaces().b)
    assert not isinstance(f, LinkLoads) or f.many_rows() is None
    A, b, rounds = f[1:1].halfspaces()
    assert (A.shape, len(b), len(rounds)) == ((0, math.prod(f.shape)), 0, 0)


def test_sparse_coefficients_take_points_of_any_library():
    for f in (f for f in EXAMPLES if any(map(sparse.is_sparse, f.fields().values()))):
        x = strict.asarray(np.random.default_rng(0).normal(size=f.shape), dtype=strict.float32)
        w = strict.ones(len(f), dtype=strict.float32)
        for found in (f.values(x), f.gradients(x), f.subgradient(x, w)):
            assert (type(found), found.dtype) == (type(x), x.dtype)
        np.testing.assert_allclose(np.asarray(f.values(x)), f.values(np.asarray(x)), rtol=1e-5)
        assert identity(f) == identity(f[:]) != identity(dense(f))
    assert Linear(coo_array([[1, 0, 2]])) == Linear(csr_array([[1.0, 0.0, 2.0]]))


def test_sparse_coefficients_are_never_made_dense():
    """A dense table of these would take 10^12 numbers."""
    n = k = 1_000_000
    C = coo_array((np.full(k, 0.5), (np.arange(k), np.arange(k)[::-1])), shape=(k, n)).tocsr()
    x, w = np.ones(n), np.ones(k)
    for f in (Linear(C), Affine(C, np.zeros(k)), MaxAffine(C, np.zeros((k // 2, 2)))):
        assert (f.values(x)[0], f.subgradient(x, w[: len(f)]).sum()) == (0.5, 0.5 * len(f))
        assert (f[5:7].slopes(x).tolist(), f.halfspaces().A.nnz) == ([0.5, 0.5], k)


# ---------------------------------------------------------------------------------------- sentences


@pytest.mark.parametrize(
    ("make", "error", "setting"),
    [
        (lambda: Linear([1.0, 2.0]), errors.WrongShape, "C"),
        (lambda: Affine([[1.0, np.nan]], [1.0]), errors.NotFinite, "A"),
        (lambda: MaxAffine(np.ones((2, 3, 4)), np.ones((2, 4))), errors.WrongShape, "b"),
        (lambda: Capacity([[np.inf]]), errors.NotFinite, "c"),
        (lambda: Quadratic(np.eye(2), np.ones((1, 2, 1))), errors.WrongShape, "q"),
        (lambda: Quadratic(np.eye(3), np.ones((2, 2))), errors.WrongShape, "P"),
        (lambda: Quadratic([[1.0, 2.0], [2.0, 1.0]], [[0.0, 0.0]]), errors.NotConvex, "P"),
        (lambda: Quadratic([[1.0, 0.5], [0.0, 1.0]], [[0.0, 0.0]]), errors.InvalidInput, "P"),
        (lambda: Custom(3, lambda t, x: x, 2), errors.WrongType, "value"),
        (lambda: Custom.one(lambda x: 0.0, 3, 2), errors.WrongType, "subgradient"),
        (lambda: MaxUtilization([1.0], [[1.0]], [1.0], [0]), errors.WrongShape, "incidence"),
        (lambda: MaxUtilization([[1, 1]], [[1.0]], [1.0], [0, 1]), errors.InvalidInput, "pairs"),
        (lambda: MaxUtilization([[1.0]], [[1.0]], [1.0], [0.5]), errors.InvalidInput, "pairs"),
        (lambda: MaxUtilization([[1.0]], [[1.0]], [0.0], [0]), errors.InvalidInput, "capacities"),
        (lambda: MaxUtilization([[1.0]], [[1.0]], [1.0], [0], [0, 1]), errors.WrongShape, "limit"),
        (lambda: Linear.one(csr_array(np.eye(2))), errors.WrongShape, None),
        (lambda: MaxAffine(csr_array(np.eye(3)), [[1.0, 1.0], [1.0, 1.0]]), errors.WrongShape, "A"),
        (lambda: Capacity(csr_array(np.eye(2))), errors.WrongType, "c"),
        (lambda: Sum(), errors.InvalidInput, "parts"),
        (lambda: Max(Linear([[1.0]]), 3), errors.WrongType, "parts"),
        (lambda: Max(Linear([[1.0]]), Linear([[1.0], [2.0]])), errors.WrongShape, "parts"),
        (lambda: Sum(Linear([[1.0]]), weights=[1.0, 2.0]), errors.WrongShape, "weights"),
        (lambda: Linear([[1.0]])[0], errors.WrongType, None),
        (lambda: Linear([[1.0]])[::2], errors.InvalidInput, None),
        (lambda: check_function(Linear([[1.0]])[:0]), errors.InvalidInput, None),
        (lambda: check_function(Linear([[1.0]]), points=[[1.0]]), errors.InvalidInput, None),
    ],
)
def test_bad_input_is_refused_in_a_sentence(make, error, setting):
    with refused(error, setting):
        make()


@pytest.mark.parametrize(
    ("value", "subgradient"),
    [
        (lambda t, x: np.nan if t == 3 else 0.0, lambda t, x: x),
        (lambda t, x: "high", lambda t, x: x),
        (lambda t, x: 0.0, lambda t, x: x[:1]),
        (lambda t, x: 0.0, lambda t, x: x / (3 - t)),
    ],
)
@pytest.mark.filterwarnings("ignore:divide by zero")
def test_what_custom_callables_answer_is_checked(value, subgradient):
    f = Custom(value, subgradient, 2, rounds=5)[2:]
    with pytest.raises(errors.InvalidInput):
        f.values(np.ones(2)), f.subgradient(np.ones(2), np.ones(3))


# -------------------------------------------------------------------- a user's own, right and wrong


@dataclass(frozen=True, eq=False, repr=False)
class Distance(Batch):
    """f_t(x) = ||x - C_t||^2, as a user would write it."""

    C: types.Array

    def __len__(self):
        return len(self.C)

    @property
    def shape(self):
        return tuple(self.C.shape[1:])

    def values(self, x):
        return ((x - self.C) ** 2).sum(axis=1)

    def subgradient(self, x, weights):
        return weights @ (2 * (x - self.C))

    def view(self, rounds):
        return self._unchecked(C=self.C[rounds])

    @classmethod
    def examples(cls):
        return (cls(np.array([[1.0, -2.0], [0.3, 0.0], [4.0, 4.0], [0.5, 1.5]])),)


class Root(Distance):
    domain = "nonnegative vectors"

    def values(self, x):
        return np.broadcast_to(-np.sqrt(x).sum(), len(self)).copy()

    def subgradient(self, x, weights):
        return weights.sum() * -0.5 / np.sqrt(x)


def values_of(f, x):
    return ((x - f.C) ** 2).sum(axis=1)


def slope_of(f, x, w):
    return w @ (2 * (x - f.C))


def changes_the_point(f, x):
    values = values_of(f, x)
    x += 1.0
    return values


def changes_the_weights(f, x, w):
    w *= 2.0
    return slope_of(f, x, w / 2.0)


def changes_itself(f, x):
    f.C[0, 0] += 1.0
    return Batch.slopes(f, x)


def rows_of(A, b):
    return Halfspaces(A, np.full(len(A), b), np.arange(len(A)))


class LosesPieces(Distance, PiecewiseLinear):
    """f_t(x) = max_i x_i - C_ti."""

    def values(self, x):
        return (x - self.C).max(axis=1)

    def subgradient(self, x, weights):
        return weights @ np.eye(x.size)[(x - self.C).argmax(axis=1)]

    def halfspaces(self):
        n = self.C.shape[1]
        rounds = np.repeat(np.arange(len(self)), n)
        return Halfspaces(np.tile(np.eye(n), (len(self), 1)), self.C.reshape(-1), rounds)

    def epigraph(self):
        return Halfspaces(*(np.delete(part, 1, axis=0) for part in self.halfspaces()))


@dataclass(frozen=True, repr=False)
class ComparesArrays(Distance):
    pass


CAPABILITIES = {"total": LinearTotal, "halfspaces": PiecewiseLinear}
BROKEN = {
    "rounds can be joined: 1 rounds": {"joined": classmethod(lambda cls, parts: parts[0])},
    "convex: in round": {
        "values": lambda f, x: -values_of(f, x),
        "subgradient": lambda f, x, w: -slope_of(f, x, w),
    },
    "subgradients support: in round": {"subgradient": lambda f, x, w: w @ (x - f.C)},
    "gradients are the rounds: slope": {"slopes": lambda f, x: Batch.slopes(f, x) ** 2},
    "gradients are the rounds: the sum of gradients": {
        "gradients": lambda f, x: 2.0 * Batch.gradients(f, x)
    },
    "weights add up": {"subgradient": lambda f, x, w: slope_of(f, x, (w > 0).astype(float))},
    "points stay unchanged: the point": {"values": changes_the_point},
    "points stay unchanged: the weights": {"subgradient": changes_the_weights},
    "points stay unchanged: its C": {"slopes": changes_itself},
    "points stay unchanged: values": {
        "values": lambda f, x: values_of(f, x) + np.random.default_rng().uniform()
    },
    "views agree: f[": {"view": lambda f, r: f._unchecked(C=f.C[: r.stop - r.start])},
    "rounds have points of their own": {"values_at": lambda f, x: values_of(f, x[0])},
    "function prints and compares: f[:0]": {"view": lambda f, r: f._unchecked(C=f.C[r.start :])},
    "answers fit: subgradient": {
        "subgradient": lambda f, x, w: slope_of(f, x, w).astype(np.float32)
    },
    "answers fit: inf": {
        "values": lambda f, x: values_of(f, x) + (np.inf if abs(x).max() > 5 else 0.0)
    },
    "pieces have gradients: off by 1": {"pieces": lambda f, x: values_of(f, x)[:, None] - 1.0},
    "pieces have gradients: below its gradient": {
        "pieces": lambda f, x: values_of(f, x)[:, None],
        "piece_gradients": lambda f, x, rounds, limits: -(2 * (x - f.C))[rounds],
    },
    "total is the sum": {"total": lambda f: (f.C.sum(axis=0), 0.0)},
    "halfspaces say the same: the largest row": {"halfspaces": lambda f: rows_of(-f.C, 1e3)},
    "halfspaces say the same: above the value of its round": {
        "halfspaces": lambda f: rows_of(100.0 * f.C, 0.0)
    },
    "exp concave: exp_concavity 1, in round": {"exp_concavity": 1.0},
    "function prints and compares: its repr": {"__repr__": lambda f: "?"},
    "halfspaces say the same: the largest piece": LosesPieces,
    "function prints and compares: eq=False": ComparesArrays,
}
"""What is changed of `Distance`, by the check that fails and a word of its detail."""


def broken(change):
    if isinstance(change, type):
        return change.examples()[0]
    for name, method in change.items():
        if callable(method):
            method.__name__ = name  # as if it were written in a class
    capable = [kind for name, kind in CAPABILITIES.items() if name in change]
    return type("Broken", (Distance, *capable), dict(change)).examples()[0]


def test_a_users_own_batch_passes():
    check_function(Distance.examples()[0])


@pytest.mark.parametrize("fails", BROKEN)
@pytest.mark.parametrize("seed", few(1, range(3)))
def test_a_broken_batch_is_caught(fails, seed):
    assert_fails(check_function, FunctionChecks, broken(BROKEN[fails]), fails, seed=seed)


def test_every_check_catches_something():
    assert set(checks_of(FunctionChecks)) == {fails.split(":")[0] for fails in BROKEN}


def test_a_domain_needs_points_of_it():
    f = Root(np.zeros((2, 2)))
    with pytest.raises(errors.InvalidInput):
        check_function(f)
    check_function(f, points=[[1.0, 2.0], [0.5, 0.1], [3.0, 3.0]])


# ------------------------------------------------------------------------------------------- states


@each_example
def test_functions_made_of_arrays_are_saved_in_states(f):
    if isinstance(f, Custom):
        assert not combined.can_be_saved(f)
        return
    for batch in (f, Sum(f, f, weights=[1.0, 2.0]), Max(Chain((f,)), f)):
        assert combined.can_be_saved(batch)
        assert not combined.can_be_saved(Max(Custom.examples()[0][:1], Linear([[1.0, 1.0, 1.0]])))
        data = checkpoint.packed(saved_pair(batch))
        assert combined.restored(*checkpoint.unpacked(data, np.zeros(0))) == batch


def test_a_hand_made_function_in_a_state_is_refused():
    for name, saved in (("Custom", ()), ("Lineal", ()), ("Linear", (np.ones((1, 1)), 3))):
        with pytest.raises(errors.NewerFormat):
            combined.restored(name, saved)
