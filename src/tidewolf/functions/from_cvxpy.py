"""Which built-in kind an expression of cvxpy is, and its coefficients in all rounds.

Every atom that is not affine is replaced by a variable u of its own. What remains is affine in
(x, u), with coefficients that are affine in the parameters (cvxpy's rules for parameters, DPP), and
cvxpy gives one table of them for all rounds. The arguments of the atoms have such tables, too.

- Without atoms the expression is `Linear` or `Affine`.
- If the atoms are maxima of affine arguments (or minima, absolute values, 1-norms, largest sizes),
  the pieces of the sum are all choices of one piece of each atom: a `MaxAffine`, or a `Capacity` if
  the pieces are x_i - c_i.
- If the atoms are squares of affine arguments and points are vectors, it is a `Quadratic`.
"""

import threading
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from textwrap import shorten
from typing import Any, ClassVar, NamedTuple, final

import numpy as np

from tidewolf.core import arrays, errors
from tidewolf.core.arguments import import_extra, shown
from tidewolf.core.batch import Batch
from tidewolf.core.sparse import csr_array
from tidewolf.core.types import Array, Floats, Shape
from tidewolf.functions import autograd, linear, smooth

# Pieces that a sum of several maxima may have.
MOST_PIECES = 64
# Numbers from which on a table that all rounds share is sparse, and the most of a dense one.
_LARGE, _MOST = 1 << 24, 1 << 27
_POWERS = ("power", "Power", "PowerApprox")
_MAXIMA = ("max", "maximum", "min", "minimum", "abs", "norm1", "norm_inf")


class NotBuiltIn(Exception):
    """The expression is none of the built-in kinds, or its table would be too large."""


class AffineMap:
    """An affine expression of variables z: entries [A_t, b_t] (z, 1), in cvxpy's order.

    Coefficients without parameters are `fixed`; those at the flat `places` are `table` @ p_t.
    """

    def __init__(self, e: Any, z: Sequence[Any], parameters: Sequence[Any]) -> None:
        from cvxpy.cvxcore.python import canonInterface
        from cvxpy.lin_ops import lin_op
        from cvxpy.utilities import scopes

        with scopes.dpp_scope():
            if not e.is_affine():
                raise NotBuiltIn
        starts, columns = (np.cumsum([0, *(int(a.size) for a in some)]) for some in (parameters, z))
        ids, last = [*(p.id for p in parameters), lin_op.CONSTANT_ID], int(starts[-1])
        self.count, self.width = int(e.size), int(columns[-1]) + 1
        found = canonInterface.get_problem_matrix(
            [e.canonical_form[0]],
            self.width - 1,
            {each.id: int(start) for each, start in zip(z, columns, strict=False)},
            dict(zip(ids, [*np.diff(starts).tolist(), 1], strict=True)),
            dict(zip(ids, starts.tolist(), strict=True)),
            self.count,
            "SCIPY",
        ).tocoo()
        column, row = np.divmod(found.row.astype(np.int64), self.count)
        q, v, used = found.col.astype(np.int64), found.data, found.data != 0.0
        free, own = used & (q == last), used & (q != last)
        self.fixed = csr_array((v[free], (row[free], column[free])), shape=(self.count, self.width))
        self.places, at = np.unique(row[own] * self.width + column[own], return_inverse=True)
        self.table = csr_array((v[own], (at, q[own])), shape=(len(self.places), last))

    def moving(self, start: int, stop: int) -> Any:
        column = self.places % self.width
        return (column >= start) & (column < stop)

    def columns(self, p: Floats, start: int, stop: int) -> Floats:
        """These columns of [A_t, b_t] in all rounds, or once if no parameter decides on them."""
        which = self.moving(start, stop)
        rounds = p.shape[1] if which.any() else 1
        if float(rounds) * self.count * (stop - start) > _MOST:
            raise NotBuiltIn
        found = np.repeat(self.fixed[:, start:stop].toarray()[None], rounds, axis=0)
        row, column = np.divmod(self.places[which], self.width)
        found[:, row, column - start] += (self.table[which] @ p).T if len(row) else 0.0
        return found


class Atom(NamedTuple):
    name: str
    arguments: list[AffineMap]
    start: int
    stop: int

    def pieces(self, p: Floats, start: int, stop: int) -> list[Floats]:
        """These columns of the pieces of each entry (of each absolute value in a 1-norm)."""
        parts = [argument.columns(p, start, stop) for argument in self.arguments]
        if self.name in ("abs", "norm1", "norm_inf"):
            parts.append(-parts[0])
        if self.name in ("max", "min", "norm_inf"):
            return [np.concatenate(parts, axis=1)]
        together = np.stack(np.broadcast_arrays(*parts), axis=2)
        return [together[:, j] for j in range(together.shape[1])]


class Split:
    def __init__(self, expression: Any, variable: Any, parameters: Sequence[Any]) -> None:
        found: list[tuple[Any, Any]] = []
        root = _replaced(expression, found)
        z = [variable, *(u for u, _ in found)]
        self.root = AffineMap(root, z, parameters)
        self.shape, self.n = tuple(variable.shape), int(variable.size)
        columns = pairwise(np.cumsum([int(each.size) for each in z]).tolist())
        self.atoms = [
            Atom(type(e).__name__, [AffineMap(a, [variable], parameters) for a in e.args], *ends)
            for (_, e), ends in zip(found, columns, strict=True)
        ]

    def batch(self, data: Sequence[Any], rounds: int) -> Batch:
        size = self.root.table.shape[1]  # of the parameters, the first index first, as in cvxpy
        p = np.concatenate([*(rows.T.ravel() for rows in data), []]).reshape(size, rounds)
        names = {atom.name for atom in self.atoms}
        if not names:
            A, b = (
                self.root.columns(p, *ends)[:, 0] for ends in ((0, self.n), (self.n, self.n + 1))
            )
            C = _own(_points(_each(A, p), self.shape), data)
            if not self.root.moving(self.n, self.n + 1).any() and not b.any():
                return linear.Linear._unchecked(C=C)
            return linear.Affine._unchecked(A=C, b=np.ascontiguousarray(_each(-b[:, 0], p)))
        if names.issubset(_MAXIMA):
            return self._capacity(p, data) or self._max_affine(p)
        if names.intersection(_MAXIMA) or len(self.shape) > 1:
            raise NotBuiltIn
        return self._quadratic(p)

    def _capacity(self, p: Floats, data: Sequence[Any]) -> Batch | None:
        """max_i x_i - c_i, if there is one maximum and x and the parameters are added in it."""
        from scipy.sparse import eye_array

        (name, (inner, *_), *_), n = self.atoms[0], self.n
        units = eye_array(n + 1, format="csr")
        if name != "max" or len(self.atoms) > 1 or inner.count != n:
            return None
        if self.root.moving(0, n + 1).any() or (self.root.fixed[:, :-1] != units[[n]]).nnz:
            return None
        if inner.moving(0, n).any() or (inner.fixed[:, :n] != units[:n, :n]).nnz:
            return None
        b = inner.columns(p, n, n + 1)[:, :, 0] + self.root.columns(p, n + 1, n + 2)[:, :, 0]
        return linear.Capacity._unchecked(c=_own(_points(_each(-b, p), self.shape), data))

    def _max_affine(self, p: Floats) -> Batch:
        n, end = self.n, self.root.width
        A, b = self.root.columns(p, 0, n), self.root.columns(p, end - 1, end)
        for atom in self.atoms:
            slopes, offsets = (atom.pieces(p, *ends) for ends in ((0, n), (n, n + 1)))
            for j, (each, offset) in enumerate(zip(slopes, offsets, strict=True)):
                column = min(atom.start + j, atom.stop - 1)
                w = self.root.columns(p, column, column + 1)
                if (w * (-1.0 if atom.name.startswith("min") else 1.0) < 0.0).any():
                    raise NotBuiltIn
                if w.any() or self.root.moving(column, column + 1).any():
                    A, b = _choices(A, w * each), _choices(b, w * offset)
        b = np.ascontiguousarray(_each(-b[:, :, 0], p))
        if len(A) == len(self.shape) == 1 and b.size * n > _LARGE:
            return linear.MaxAffine._unchecked(A=csr_array(A[0]), b=b)
        return linear.MaxAffine._unchecked(A=_points(_each(A, p), self.shape), b=b)

    def _quadratic(self, p: Floats) -> Batch:
        """1/2 <x, P x> + <q, x> + r of squares <y, M y>, y = A x + c."""
        root, n, moves = self.root, self.n, False
        P, q = np.zeros((1, n, n)), root.columns(p, 0, n)[:, 0]
        r = root.columns(p, root.width - 1, root.width)[:, 0, 0]
        for name, (y, *rest), start, stop in self.atoms:
            A, c, w = (y.columns(p, 0, n), y.columns(p, n, n + 1), root.columns(p, start, stop))
            over = rest[0].columns(p, n, n + 1) if rest else np.ones((1, 1, 1))
            moves |= bool(y.moving(0, n).any() or root.moving(start, stop).any())
            moves |= any(len(each.places) for each in rest)
            size = (p.shape[1] if moves else 1) * max(n, y.count) ** 2
            M: Any = w * over.reshape(-1, y.count, y.count) if name == "QuadForm" else None
            if size > _MOST or (w < 0.0).any() or (M is None and (over <= 0.0).any()):
                raise NotBuiltIn
            M = np.eye(y.count) * w / over if M is None else M
            M = 0.5 * (M + np.swapaxes(M, 1, 2))
            AM = np.swapaxes(A, 1, 2) @ M
            P, q = P + 2.0 * AM @ A, q + 2.0 * (AM @ c)[:, :, 0]
            r = r + (np.swapaxes(c, 1, 2) @ M @ c)[:, 0, 0]
        P = np.ascontiguousarray(_each(P, p)) if moves else P[0]
        q, r = (np.ascontiguousarray(_each(a, p)) for a in (q, r))
        return smooth.Quadratic._unchecked(P=P, q=q, r=r, exp_concavity=None)


def _replaced(e: Any, found: list[tuple[Any, Any]]) -> Any:
    import cvxpy as cp
    from cvxpy.atoms.affine.affine_atom import AffAtom

    if e.is_affine():
        return e
    if isinstance(e, AffAtom):
        return e.copy([_replaced(each, found) for each in e.args])
    name, whole = type(e).__name__, getattr(e, "axis", None) is None
    if name in _POWERS:
        fits = float(getattr(e.p, "value", e.p)) == 2.0
    elif name in ("quad_over_lin", "QuadForm"):
        fits = e.args[1].is_constant()
    else:
        fits = name in _MAXIMA and (len(e.args) == 1 or {a.size for a in e.args} <= {1, e.size})
    if not (fits and whole and all(each.is_affine() for each in e.args)):
        raise NotBuiltIn
    found.append((cp.Variable(e.shape), e))
    return found[-1][0]


def _choices(one: Floats, other: Floats) -> Floats:
    count = one.shape[1] * other.shape[1]
    rounds = max(len(one), len(other)) if len(one) and len(other) else 0
    few = count <= MOST_PIECES or one.shape[1] == 1
    if not few or float(count) * rounds * one.shape[2] > _MOST:
        raise NotBuiltIn
    return (one[:, :, None] + other[:, None]).reshape(rounds, count, one.shape[2])


def _each(found: Floats, p: Floats) -> Floats:
    return np.broadcast_to(found, (p.shape[1], *found.shape[1:]))


def _points(found: Floats, shape: Shape) -> Floats:
    order = [*range(found.ndim - 1), *range(found.ndim + len(shape) - 2, found.ndim - 2, -1)]
    return np.ascontiguousarray(found.reshape(*found.shape[:-1], *shape[::-1]).transpose(order))


def _own(found: Floats, data: Sequence[Any]) -> Any:
    return next((rows for rows in data if np.array_equal(rows, found)), found)


# Functions from an expression of cvxpy in one variable, with parameters whose values come rounds
# first.
#
# An expression that is one of the built-in kinds becomes that kind (`Split`). Any other one
# becomes a `FromCvxpy`, which asks cvxpy for values and gradients, round by round. cvxpy's own
# values of the variable and of the parameters are set meanwhile, and restored.

# By how much a point may be outside the domain.
_ROUNDING = 1e-9
_LOCK = threading.RLock()


def from_cvxpy(
    expression: Any,
    variable: Any,
    values: Mapping[Any, Any] | None = None,
    rounds: int | None = None,
) -> Batch:
    """Functions from a convex expression of cvxpy, whose parameters differ from round to round.

    The expression is analysed once, for all rounds and for later calls with the same expression.
    The result is a built-in function if the expression is one, with the speed of that function:

    - an affine expression is a `Linear` or `Affine`,
    - a sum of maxima, minima, absolute values and 1-norms of affine arguments, with at most 64
      pieces, is a `MaxAffine`; a maximum of x_i - c_i is a `Capacity`,
    - a sum of squares of affine arguments is a `Quadratic`, if points are vectors.

    Any other expression is a `FromCvxpy`, which asks cvxpy. Per round, a value takes 0.01 to 0.1 ms
    and a subgradient 1 to 4 ms; 10 ms if cvxpy has no gradient of an atom, because a solver finds
    the subgradient then. Parameters in a built-in function enter as cvxpy's rules for them (DPP)
    say: make 1 / capacity a parameter in place of x / capacity.

    Parameters
    ----------
    expression : cvxpy.Expression
        A number, convex in the variable by cvxpy's rules (DCP). A constraint left <= right is the
        function left - right.
    variable : cvxpy.Variable
        The point: the only variable, of the shape that points of the set have.
    values : mapping, optional
        For each parameter of the expression its values, rounds first: {price: prices}, with
        prices of shape (rounds, *price.shape). None: it has no parameters.
    rounds : int, optional
        The number of rounds, if there are no parameters. None: one.

    Returns
    -------
    Batch
        The functions, one per round: losses or constraints of a stream, or of one round.

    Raises
    ------
    MissingExtra
        If cvxpy is not installed.
    NotConvex
        If cvxpy's rules do not show that the expression is convex.
    WrongType, WrongShape, InvalidInput
        If it is not a number, has other variables, or the values do not fit the parameters.

    Examples
    --------
    >>> import cvxpy as cp
    >>> x, price, room = cp.Variable(2), cp.Parameter(2), cp.Parameter(nonneg=True)
    >>> prices, rooms = np.array([[1.0, 2.0], [0.0, 3.0]]), np.array([0.5, 0.25])
    >>> tw.functions.from_cvxpy(price @ x, x, {price: prices})
    Linear(C=<2x2 float64>)
    >>> over = tw.functions.from_cvxpy(cp.max(x) - room, x, {room: rooms})
    >>> over
    Capacity(c=<2x2 float64>)
    >>> over.values(np.array([0.75, 0.25]))
    array([0.25, 0.5 ])
    >>> f = tw.functions.from_cvxpy(cp.logistic(price @ x), x, {price: prices})
    >>> f.values(np.array([1.0, 0.0])).round(4)
    array([1.3133, 0.6931])
    """
    _require_expression(import_extra("cvxpy", "from_cvxpy", "cvx"), expression, variable)
    engine = _engine(expression, variable)
    data = _checked(engine.parameters, {} if values is None else values)
    count = 1 if rounds is None else arrays.as_count(rounds, "rounds of from_cvxpy", least=0)
    counts = [len(rows) for rows in data] or [count]
    what = f"parameters have values of as many rounds each, not of {counts} rounds."
    _require(len(set(counts)) == 1, errors.WrongShape, "values", what)
    what = f"values of {counts[0]} rounds were given, and {rounds} rounds."
    _require(rounds is None or counts[0] == count, errors.WrongShape, "rounds", what)
    with suppress(NotBuiltIn):
        if engine.split is not None:
            return engine.split.batch(data, counts[0])
    own = {"_shape": tuple(variable.shape), "_rounds": autograd.Rounds(np.arange(counts[0]), data)}
    return FromCvxpy._unchecked(_engine=engine, **own)


def _require(holds: bool, kind: Any, setting: str, message: str) -> None:
    if not holds:
        raise kind(f"from_cvxpy: {message}", setting=setting)


def _require_expression(cp: Any, e: Any, variable: Any) -> None:
    what = f"the variable is a cvxpy.Variable, not {shown(variable)}."
    _require(isinstance(variable, cp.Variable), errors.WrongType, "variable", what)
    declared = {name for name, value in variable.attributes.items() if value}
    plain = variable.shape != () and declared <= {"nonneg", "pos", "symmetric", "PSD"}
    what = f"the variable is an array without {sorted(declared)}; it has shape {variable.shape}."
    _require(plain, errors.InvalidInput, "variable", what)
    what = f"give an expression to be minimised, or left - right of a constraint, not {shown(e)}."
    _require(isinstance(e, cp.Expression), errors.WrongType, "expression", what)
    what = f"the expression is a real number, not of shape {e.shape}; take cvxpy.sum or cvxpy.max."
    _require(e.is_scalar() and not e.is_complex(), errors.WrongShape, "expression", what)
    names = [each.name() for each in e.variables()]
    what = f"the only variable is {variable.name()}, not {names}; others are cvxpy.Parameter."
    _require(all(v is variable for v in e.variables()), errors.InvalidInput, "expression", what)
    what = f"it is {e.curvature}, not convex by DCP; are signs declared, as Parameter(nonneg=True)?"
    _require(e.is_convex(), errors.NotConvex, "expression", what)


def _checked(parameters: Sequence[Any], values: Any) -> tuple[Floats, ...]:
    what = "values are given by cvxpy.Parameter, such as {price: prices}."
    _require(isinstance(values, Mapping), errors.WrongType, "values", what)
    by_id = {getattr(p, "id", p): rows for p, rows in values.items()}
    what = f"values are needed for exactly these parameters: {[p.name() for p in parameters]}."
    _require(by_id.keys() == {p.id for p in parameters}, errors.InvalidInput, "values", what)
    found = []
    for p in parameters:
        own = f"values of the parameter {p.name()}"
        rows = np.asarray(arrays.to_numpy(arrays.as_array(by_id[p.id], own)), dtype=np.float64)
        what = f"{own} have rounds first, then its shape {p.shape}; they have {rows.shape}."
        _require(rows.ndim > 0 and rows.shape[1:] == p.shape, errors.WrongShape, "values", what)
        with _borrowed([p]):
            for t in range(len(rows) if any(p.attributes.values()) else 0):
                try:
                    p.value = rows[t]
                except ValueError as error:
                    _require(False, errors.InvalidInput, "values", f"{own}, round {t + 1}: {error}")
        found.append(rows)
    return tuple(found)


@contextmanager
def _borrowed(leaves: Sequence[Any]) -> Iterator[None]:
    with _LOCK, np.errstate(all="ignore"):
        values = [leaf.value for leaf in leaves]
        try:
            yield
        finally:
            for leaf, value in zip(leaves, values, strict=True):
                leaf.save_value(value)


class _Cvxpy(autograd.Engine):
    name: ClassVar[str] = "from_cvxpy"

    def __init__(self, expression: Any, variable: Any) -> None:
        super().__init__(lambda: expression, "rows")
        self.expression, self.variable = expression, variable
        self.parameters: list[Any] = expression.parameters()
        self.domain = [each for each in expression.domain if each.variables()]
        # Where these repeat an argument, cvxpy's gradients are wrong.
        unsure = [e for e in _nodes(expression) if type(e).__name__ in ("kl_div", "rel_entr")]
        self.sure = all(len({a.shape for a in e.args}) == 1 for e in unsure)
        self.split: Split | None = None
        with suppress(NotBuiltIn):
            self.split = Split(expression, variable, self.parameters)

    def answer(self, what: str, x: Array, rounds: autograd.Rounds, *weights: Floats) -> Any:
        with _borrowed([self.variable, *self.parameters]):
            return super().answer(what, x, rounds, *weights)

    def _point(self, x: Array) -> Floats:
        point = np.asarray(arrays.to_numpy(x), dtype=np.float64)
        if not self.domain:
            return point
        return np.where((point < 0.0) & (point > -_ROUNDING), 0.0, point)  # not outside

    def _value(self, x: Any, t: int, row: Sequence[Any]) -> float:
        """The value of cvxpy; NaN outside the domain."""
        for leaf, value in zip((self.variable, *self.parameters), (x, *row), strict=True):
            leaf.save_value(np.asarray(value))
        inside = all(np.max(one.violation()) <= _ROUNDING for one in self.domain)
        return float(np.squeeze(self.expression.value)) if inside else np.nan

    def _gradient(self, point: Any, t: int, row: Sequence[Any]) -> Floats:
        """A subgradient where cvxpy's values are; NaN if there is none."""
        found, x = np.nan, self.variable
        if np.isfinite(self._value(point, t, row)):
            try:
                found = self.expression.grad.get(x, 0.0) if self.sure else self._multiplier()
            except (AttributeError, NotImplementedError, ValueError):  # some atoms have none
                found = self._multiplier()
        slope = np.asarray(found.toarray() if hasattr(found, "toarray") else found, dtype=float)
        return np.broadcast_to(slope.reshape(x.shape if slope.size > 1 else (), order="F"), x.shape)

    def _multiplier(self) -> Any:
        """The negative multiplier of x = point in a program: a subgradient of its least value."""
        import cvxpy as cp

        equal = self.variable == self.variable.value
        problem = cp.Problem(cp.Minimize(self.expression), [equal])
        with warnings.catch_warnings(action="ignore"):  # of answers less exact than asked for
            problem.solve(solver="CLARABEL", tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)
        return None if equal.dual_value is None else -equal.dual_value


# Expressions stay analysed, so that later rounds do not wait for it.
_engine = lru_cache(32)(_Cvxpy)


def _nodes(e: Any) -> Iterator[Any]:
    yield e
    for each in e.args:
        yield from _nodes(each)


@final
@dataclass(frozen=True, eq=False, repr=False, init=False)
class FromCvxpy(autograd.Autograd):
    """Functions that cvxpy evaluates: what `from_cvxpy` makes of an expression that is none of the
    built-in kinds.
    """

    _engine: _Cvxpy

    @classmethod
    def one(cls, expression: Any, variable: Any) -> Batch:
        """A single round from an expression without parameters."""
        return from_cvxpy(expression, variable)

    @property
    def name(self) -> str:
        return shorten(str(self._engine.expression), 60, placeholder="...")

    @property
    def domain(self) -> str | None:  # type: ignore[override]
        limits = " and ".join(map(str, self._engine.domain))
        return f"points with {limits}" if limits else None

    @classmethod
    def examples(cls) -> Sequence[Batch]:
        cp = import_extra("cvxpy", "from_cvxpy", "cvx")
        x, X = cp.Variable(3), cp.Variable((2, 2))
        a, s = cp.Parameter(3), cp.Parameter(nonneg=True)
        rows = np.arange(12.0).reshape(4, 3) / 4.0 - 1.0
        return (
            from_cvxpy(cp.norm(x - a) + s * cp.logistic(a @ x), x, {a: rows, s: np.arange(4.0)}),
            from_cvxpy(cp.log_sum_exp(X, axis=0) @ np.ones(2) + cp.sum(cp.exp(X)), X, rounds=2),
        )
