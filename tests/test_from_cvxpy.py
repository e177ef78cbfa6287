"""Functions from expressions of cvxpy: what cvxpy says of their values, the laws of functions, and
equality with the built-in kinds that they become.
"""

import sys
from concurrent.futures import ThreadPoolExecutor

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tidewolf as tw
from refused import refused
from streams import require_equal
from tidewolf.core import errors
from tidewolf.functions import Affine, Capacity, Linear, MaxAffine, Quadratic, from_cvxpy
from tidewolf.functions.from_cvxpy import FromCvxpy

N, ROUNDS = 3, 4
X, Y = cp.Variable(N, name="x"), cp.Variable((2, 3), name="X")
OTHER, S = cp.Variable(N, name="other"), cp.Variable((3, 3), name="S")
A, B = cp.Parameter(N, name="a"), cp.Parameter((2, 3), name="B")
M, Q = cp.Parameter((4, N), name="M"), cp.Parameter((N, N), name="Q", PSD=True)
R, W = cp.Parameter(name="r", nonneg=True), cp.Parameter(N, name="w", pos=True)
T, Z = cp.Parameter(name="t"), cp.Parameter(name="z", integer=True)
SYMMETRIC = S + S.T + 20.0 * np.eye(3)

EXPRESSIONS = {
    "linear": (A @ X, X, Linear),
    "affine": (A @ X + T, X, Affine),
    "of matrices": (cp.trace(B.T @ Y) - 3.0, Y, Affine),
    "parameters twice": (T * (A @ X) + cp.square(T) * cp.sum(X), X, FromCvxpy),
    "capacities": (cp.max(X - A), X, Capacity),
    "a maximum": (cp.max(M @ X - 1.0) + A @ X, X, MaxAffine),
    "fixed pieces": (cp.max(np.arange(6.0).reshape(2, N) @ X - T), X, MaxAffine),
    "a 1-norm": (R * cp.norm1(X - A), X, MaxAffine),
    "a minimum": (-cp.sum(cp.minimum(X, A)) - 2.0 * cp.min(X), X, MaxAffine),
    "largest entries": (cp.sum_largest(X - A, 2) - cp.sum_smallest(X, 1), X, FromCvxpy),
    "a sum of maxima": (cp.max(M @ X) + cp.norm_inf(X - A) + cp.pos(X[0] - T), X, MaxAffine),
    "squares": (cp.sum_squares(X - A) + T, X, Quadratic),
    "a quadratic form": (cp.quad_form(X - A, Q) + cp.quad_over_lin(X, R + 1.0), X, Quadratic),
    "many pieces": (cp.norm1(cp.hstack([X, X - A, 2.0 * X + 1.0])), X, FromCvxpy),
    "squares of matrices": (cp.sum_squares(Y - B), Y, FromCvxpy),
    "norms": (cp.norm(X - A) + cp.norm(X, 3) + cp.norm(X, 1.5), X, FromCvxpy),
    "exponentials": (cp.log_sum_exp(R * X) + cp.sum(cp.exp(M @ X)), X, FromCvxpy),
    "logarithms": (-cp.log(W @ (X + 9.0)) - cp.sum(cp.log1p(X + 9.0)), X, FromCvxpy),
    "entropies": (cp.sum(cp.kl_div(X + 9.0, W)) - cp.sum(cp.entr(X + 9.0)), X, FromCvxpy),
    "relative entropy": (cp.sum(cp.rel_entr(X + 9.0, X[0] + 9.0)), X, FromCvxpy),
    "huber": (cp.sum(cp.huber(X - A, R)) + cp.sum(cp.huber(X)), X, FromCvxpy),
    "singular values": (cp.norm(Y - B, "nuc") + cp.sigma_max(Y), Y, FromCvxpy),
    "determinants": (cp.tr_inv(SYMMETRIC) - cp.log_det(SYMMETRIC), S, FromCvxpy),
    "in order": (cp.dotsort(X, W) + cp.sum(cp.cummax(X - A)), X, FromCvxpy),
    "a square of squares": (
        cp.square(cp.sum_squares(X - A) + 1.0) + T * (T * (A @ X)),
        X,
        FromCvxpy,
    ),
    "without parameters": (cp.log_sum_exp(X), X, FromCvxpy),
}
"""An expression, its variable, and the kind that it is."""
SOLVED = ("relative entropy", "in order")
"""Those of which cvxpy has no gradients, so that a solver finds them, to about 1e-8."""


def rows_of(parameter, seed, rounds=ROUNDS):
    """Values that are as a parameter was declared."""
    rows = np.random.default_rng(seed).normal(size=(rounds, *parameter.shape)).round(3)
    if parameter.attributes["PSD"]:
        return rows @ rows.swapaxes(1, 2)
    return np.abs(rows) + 0.1 if parameter.is_nonneg() else rows


def values_of(expression, seed, rounds=ROUNDS):
    """Values for each of its parameters."""
    return {p: rows_of(p, (seed, i), rounds) for i, p in enumerate(expression.parameters())}


def told_by_cvxpy(expression, variable, values, x):
    """What cvxpy says of each round, from values set in it one after another."""
    found = []
    for t in range(len(next(iter(values.values()))) if values else 1):
        variable.value = x
        for parameter, rows in values.items():
            parameter.value = rows[t]
        found.append(float(np.squeeze(expression.value)))
    for leaf in (variable, *values):
        leaf.value = None
    return np.array(found)


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_each_is_of_its_kind(name):
    expression, variable, kind = EXPRESSIONS[name]
    f = from_cvxpy(expression, variable, values_of(expression, 0))
    assert type(f).written_as() is kind
    assert (len(f), f.shape) == (ROUNDS if expression.parameters() else 1, variable.shape)


QUICK = {"relative entropy"}
"""The expression that cvxpy evaluates of which the quick suite runs all checks: cvxpy takes
milliseconds per gradient. Values and subgradients of the others are compared below."""


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.soak] * (kind is FromCvxpy and name not in QUICK))
        for name, (_, _, kind) in EXPRESSIONS.items()
    ],
)
def test_each_passes_the_checks_of_functions(name):
    expression, variable, _ = EXPRESSIONS[name]
    f = from_cvxpy(expression, variable, values_of(expression, 0))
    rng = np.random.default_rng(1)
    points = [np.zeros(variable.shape), *(rng.normal(size=variable.shape) for _ in range(2))]
    tw.testing.check_function(f, points=points)


@settings(max_examples=40)
@given(st.sampled_from(sorted(EXPRESSIONS)), st.integers(0, 10**6), st.floats(0.0, 2.0))
def test_values_are_those_of_cvxpy_and_subgradients_lie_below(name, seed, scale):
    expression, variable, _ = EXPRESSIONS[name]
    values = values_of(expression, seed, 2)
    f, rng = from_cvxpy(expression, variable, values), np.random.default_rng(seed)
    x, y = (scale * rng.normal(size=variable.shape) for _ in range(2))
    there = told_by_cvxpy(expression, variable, values, x)
    np.testing.assert_allclose(f.values(x), there, rtol=1e-9, atol=1e-9)
    beyond = told_by_cvxpy(expression, variable, values, y)
    claimed = (f.gradients(x) * (y - x)).reshape(len(f), -1).sum(axis=1)
    slack = (1e-5 if name in SOLVED else 1e-8) * (1.0 + np.abs(there) + np.abs(claimed))
    assert (beyond - there - claimed >= -slack).all()


def test_matrices_are_in_the_order_of_points():
    rows = rows_of(B, 0)
    costs = from_cvxpy(cp.sum(cp.multiply(B, Y)), Y, {B: rows})
    assert costs == Linear(rows)
    assert costs.C is rows
    point = np.arange(6.0).reshape(2, 3)
    slope = from_cvxpy(cp.exp(Y[0, 1]) + cp.exp(Y[1, 0]), Y).gradients(point)[0]
    np.testing.assert_allclose(slope, np.exp(point) * np.array([[0, 1, 0], [1, 0, 0]]))


def test_nothing_given_is_copied_or_changed():
    a, r = rows_of(A, 0), rows_of(R, 1)
    X.value, A.value, R.value = np.ones(N), np.full(N, 2.0), 3.0
    try:
        linear, limits = from_cvxpy(A @ X, X, {A: a}), from_cvxpy(cp.max(X - A), X, {A: a})
        f = from_cvxpy(cp.norm(X - A) + R, X, {A: a, R: r})
        for g in (linear, limits, f):
            g.values(np.zeros(N)), g.gradients(np.zeros(N))
        assert linear.C is a
        assert limits.c is a
        assert np.shares_memory(f.fields()["data"][0], a)
        assert np.shares_memory(f[1:3].fields()["data"][0], a)
        assert (X.value == 1.0).all()
        assert (A.value == 2.0).all()
        assert R.value == 3.0
    finally:
        X.value = A.value = R.value = None


def test_rounds_given_one_by_one_are_of_one_kind():
    """Whatever the values are: constants of 0, or matrices of one round."""
    for expression, kind in ((A @ X + T, Affine), (R * cp.sum_squares(X), Quadratic)):
        values = values_of(expression, 0)
        values = {p: np.where(np.arange(ROUNDS) == 1, 0.0, v.T).T for p, v in values.items()}
        one_by_one = [{p: v[t : t + 1] for p, v in values.items()} for t in range(ROUNDS)]
        each = [from_cvxpy(expression, X, one) for one in one_by_one]
        assert kind.joined(each) == from_cvxpy(expression, X, values)


def test_rounds_may_be_none_or_many_without_parameters():
    assert len(from_cvxpy(cp.max(X), X, rounds=5)) == 5
    assert len(from_cvxpy(cp.exp(X[0]), X, rounds=5).values(np.zeros(N))) == 5
    for expression, _, kind in EXPRESSIONS.values():
        if expression.parameters() and X.id in {each.id for each in expression.variables()}:
            none = from_cvxpy(expression, X, values_of(expression, 0, 0))
            assert len(none) == len(none.values(np.full(N, 0.5))) == 0, kind
            assert none.gradients(np.full(N, 0.5)).shape == (0, N)


def test_it_is_canonicalised_once(monkeypatch):
    """Over a hundred rounds, and for every later call with the expression."""
    from cvxpy.cvxcore.python import canonInterface

    calls, own = [], canonInterface.get_problem_matrix

    def counted(*args, **named):
        calls.append(1)
        return own(*args, **named)

    monkeypatch.setattr(canonInterface, "get_problem_matrix", counted)
    for expression in (A @ X + T, cp.max(M @ X) + cp.norm1(X - A), cp.sum_squares(M @ X - A[0])):
        calls.clear()
        f, once = from_cvxpy(expression, X, values_of(expression, 0, 100)), len(calls)
        for t in range(100):
            f[t : t + 1].values(np.full(N, 0.5))
            f[t : t + 1].subgradient(np.full(N, 0.5), np.ones(1))
        for t in range(10):
            from_cvxpy(expression, X, values_of(expression, t, 1)).values(np.zeros(N))
        assert len(calls) == once <= 3  # what is affine, and the arguments of two atoms


def test_large_tables_are_sparse_or_not_made(monkeypatch):
    """With small limits of what is large: the same functions, in another form."""
    expression, point = cp.max(np.diag([1.0, 0.0, 2.0]) @ X - T), np.array([0.5, 1.0, -0.25])
    values = values_of(expression, 0)
    small = from_cvxpy(expression, X, values)
    monkeypatch.setattr(sys.modules["tidewolf.functions.from_cvxpy"], "_LARGE", 8)
    shared = from_cvxpy(expression, X, values)
    assert type(small) is type(shared) is MaxAffine
    assert shared.A.shape == (3, N)  # one table for all rounds
    require_equal(small, shared, [point, -point], 1e-12)
    tw.testing.check_function(shared)
    monkeypatch.setattr(sys.modules["tidewolf.functions.from_cvxpy"], "_MOST", 8)
    for each in (expression, A @ X, cp.sum_squares(M @ X), cp.max(M @ X) + cp.max(X)):
        assert type(from_cvxpy(each, X, values_of(each, 0))) is FromCvxpy


def test_the_best_point_in_hindsight_is_that_of_cvxpy():
    """The whole problem, summed over the rounds, solved directly."""
    K, rounds, x = tw.sets.Simplex(N), 4, cp.Variable(N)
    member = [x >= 0.0, cp.sum(x) == 1.0]
    limits = from_cvxpy(cp.max(X - A), X, {A: np.full((rounds, N), 0.6)})
    for expression in (
        A @ X + T,
        cp.max(M @ X) + cp.norm1(X - A),
        cp.sum_squares(M @ X - T) + A @ X,
        cp.norm(X - A) + cp.logistic(T * (A @ X)),
        cp.norm1(cp.hstack([X, X - A, 2.0 * X + 1.0])),
        -cp.log(W @ X),
    ):
        values = values_of(expression, 7, rounds)
        best = tw.best_in_hindsight(K, tw.Stream(from_cvxpy(expression, X, values), limits))
        total = 0.0
        for t in range(rounds):
            total += _of_round(expression, values, x, t)
        problem = cp.Problem(cp.Minimize(total), [*member, x <= 0.6])
        problem.solve(solver=cp.CLARABEL)
        slack = 1e-5 * (1.0 + abs(problem.value))
        assert best.lower - slack <= problem.value <= best.upper + slack
        assert best.upper - best.lower <= slack


def _of_round(expression, values, x, t):
    """The expression with numbers for parameters, and another variable."""
    known = {X.id: x, **{p.id: cp.Constant(rows[t]) for p, rows in values.items()}}

    def copied(e):
        if not e.args:
            return known.get(e.id, e) if hasattr(e, "id") else e
        return e.copy([copied(each) for each in e.args])

    return copied(expression)


def test_runs_sessions_and_advice_take_them(tmp_path):
    K, rounds, rng = tw.sets.Simplex(3), 10, np.random.default_rng(0)
    costs, caps = rng.normal(size=(rounds, 3)), rng.uniform(0.4, 0.6, (rounds, 3))
    losses, limits = from_cvxpy(A @ X, X, {A: costs}), from_cvxpy(cp.max(X - A), X, {A: caps})
    assert (losses, limits) == (Linear(costs), Capacity(caps))
    curved = from_cvxpy(cp.norm(X - A) - cp.sum(cp.entr(X + 1.0)), X, {A: costs})
    assert np.isfinite(tw.run(tw.LyapunovDescent(K), tw.Stream(curved, limits)).regret).all()
    session = tw.Session(tw.Ensemble(K, experts=[tw.experts.Resolve()]))
    for t in range(2):
        session.observe(loss=curved[t : t + 1], constraint=[limits[t : t + 1]])
    assert session.rounds == 2
    ball = from_cvxpy(cp.norm(X) - 1.0 + 0.0 * cp.exp(X[0]), X)
    full = tw.baselines.ProximalPenalty(K, horizon=rounds)
    with tw.Session.open(tmp_path / "refused", full) as storage, pytest.raises(errors.NotSupported):
        storage.observe(loss=losses[:1], constraint=ball)
    with pytest.raises(errors.NotSupported, match="FromCvxpy"):
        tw.best_in_hindsight(K, tw.Stream(losses[:1], ball))


def test_where_it_is_defined_is_stated_and_kept():
    f = from_cvxpy(-cp.log(A @ X) - cp.sqrt(X[0]), X, {A: np.ones((2, N))})
    assert f.domain is not None
    assert tw.functions.Sum(f, f).domain == f.domain
    nonneg = cp.Variable(2, nonneg=True)
    for g, x in (
        (f, -np.ones(N)),
        (from_cvxpy(cp.power(X[0], 3), X), -np.ones(N)),
        (from_cvxpy(cp.square(cp.sum(nonneg) + cp.norm(nonneg)), nonneg), np.array([-1.0, 1.0])),
        (from_cvxpy(cp.exp(X[0]), X), np.full(N, 1e4)),
        (from_cvxpy(cp.sum(X / W), X, {W: np.zeros((1, N))}), np.ones(N)),
    ):
        with pytest.raises(errors.NotFinite):
            g.values(x)
    with pytest.raises(errors.NotFinite):  # on the edge
        f.gradients(np.array([0.0, 1.0, 0.0]))
    assert f.values(np.array([-1e-17, 1.0, 0.0])) == pytest.approx([0.0, 0.0])
    assert from_cvxpy(cp.norm(X), X).domain is None


def test_a_weight_of_zero_asks_for_no_gradient():
    f, x = from_cvxpy(-cp.sqrt(A @ X), X, {A: np.eye(N)}), np.array([0.0, 1.0, 4.0])
    np.testing.assert_allclose(f.subgradient(x, np.array([0.0, 2.0, 4.0])), [0.0, -1.0, -1.0])
    np.testing.assert_array_equal(f.subgradient(x, np.zeros(3)), np.zeros(3))


def test_atoms_without_gradients_have_those_of_a_program():
    f = from_cvxpy(-cp.von_neumann_entr(cp.hermitian_wrap(SYMMETRIC)), S)
    x, y = np.random.default_rng(0).normal(size=(2, 3, 3))
    found = f.gradients(x)[0]
    change = (f.values(x + 1e-4 * y) - f.values(x - 1e-4 * y))[0] / 2e-4
    assert np.sum(found * y) == pytest.approx(change, rel=1e-5)
    support = from_cvxpy(cp.suppfunc(OTHER, [cp.norm(OTHER) <= 1.0])(X - 1.0), X)
    x = np.array([3.0, 1.0, 1.0])
    assert support.values(x) == pytest.approx([2.0], rel=1e-6)
    np.testing.assert_allclose(support.gradients(x), [[1.0, 0.0, 0.0]], atol=1e-4)


def test_threads_do_not_meet():
    """Atoms that cvxpy itself is asked about among them."""
    expression = cp.quad_over_lin(X, X[0] + 9.0) + cp.norm(X - A)
    f = from_cvxpy(expression, X, values_of(expression, 0, 6))
    points = np.random.default_rng(0).normal(size=(4, N))
    alone = [f.gradients(x) for x in points]
    with ThreadPoolExecutor(4) as pool:
        np.testing.assert_array_equal(list(pool.map(f.gradients, points)), alone)


ROWS = np.ones((2, N))
REFUSED = [
    ((3.0, X), errors.WrongType, "expression"),
    ((X, X), errors.WrongShape, "expression"),
    ((cp.sum(X), "x"), errors.WrongType, "variable"),
    ((cp.sum(X), cp.Variable()), errors.InvalidInput, "variable"),
    ((cp.sum(v := cp.Variable(2, boolean=True)), v), errors.InvalidInput, "variable"),
    ((cp.sum(X + OTHER), X), errors.InvalidInput, "expression"),
    ((cp.log(X[0]), X), errors.NotConvex, "expression"),
    ((T * cp.norm(X), X, {T: np.ones(2)}), errors.NotConvex, "expression"),
    ((A @ X, X), errors.InvalidInput, "values"),
    ((A @ X, X, [1.0]), errors.WrongType, "values"),
    ((A @ X, X, {"a": ROWS}), errors.InvalidInput, "values"),
    ((A @ X, X, {A: ROWS, T: np.ones(2)}), errors.InvalidInput, "values"),
    ((A @ X, X, {A: np.ones(N)}), errors.WrongShape, "values"),
    ((A @ X + T, X, {A: ROWS, T: np.ones(3)}), errors.WrongShape, "values"),
    ((A @ X, X, {A: np.full((2, N), np.nan)}), errors.NotFinite, None),
    ((R * X[0], X, {R: np.array([1.0, -1.0])}), errors.InvalidInput, "values"),
    ((Z * X[0], X, {Z: np.array([1.0, 0.5])}), errors.InvalidInput, "values"),
    ((cp.quad_form(X, Q), X, {Q: -np.eye(N)[None]}), errors.InvalidInput, "values"),
    ((A @ X, X, {A: ROWS}, 3), errors.WrongShape, "rounds"),
]


@pytest.mark.parametrize("case", REFUSED, ids=range(len(REFUSED)))
def test_bad_input_is_refused_and_its_setting_named(case):
    arguments, kind, setting = case
    with refused(kind, setting):
        from_cvxpy(*arguments)


def test_without_cvxpy_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "cvxpy", None)
    with pytest.raises(errors.MissingExtra):
        from_cvxpy(None, None)
