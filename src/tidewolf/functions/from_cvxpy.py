"""Functions from an expression of cvxpy in one variable, with parameters whose values come rounds
first.

An expression that is one of the built-in kinds becomes that kind (cvxpy_kinds.py). Any other one
becomes a `FromCvxpy`, which asks cvxpy for values and gradients, round by round. cvxpy's own values
of the variable and of the parameters are set meanwhile, and restored.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from textwrap import shorten
from typing import Any, ClassVar, final

import numpy as np

from tidewolf.core.arguments import import_extra, shown
from tidewolf.core.arrays import as_array, as_count, to_numpy
from tidewolf.core.batch import Batch
from tidewolf.core.errors import InvalidInput, NotConvex, WrongShape, WrongType
from tidewolf.core.types import Array, Floats
from tidewolf.functions.autograd import Autograd, Engine, Rounds
from tidewolf.functions.cvxpy_kinds import NotBuiltIn, Split

_ROUNDING = 1e-9
"""By how much a point may be outside the domain."""
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
    cp = import_extra("cvxpy", "from_cvxpy", "cvx")
    _require_expression(cp, expression, variable)
    engine = _engine(expression, variable)
    data = _checked(engine.parameters, {} if values is None else values)
    count = 1 if rounds is None else as_count(rounds, "rounds of from_cvxpy", least=0)
    counts = [len(rows) for rows in data] or [count]
    what = f"parameters have values of as many rounds each, not of {counts} rounds."
    _require(len(set(counts)) == 1, WrongShape, "values", what)
    what = f"values of {counts[0]} rounds were given, and {rounds} rounds."
    _require(rounds is None or counts[0] == count, WrongShape, "rounds", what)
    with suppress(NotBuiltIn):
        if engine.split is not None:
            return engine.split.batch(data, counts[0])
    own = {"_shape": tuple(variable.shape), "_ts": np.arange(counts[0]), "_data": data}
    return FromCvxpy._unchecked(_engine=engine, **own)


def _require(holds: bool, kind: Any, setting: str, message: str) -> None:
    if not holds:
        raise kind(f"from_cvxpy: {message}", setting=setting)


def _require_expression(cp: Any, e: Any, variable: Any) -> None:
    """Refuse what is no convex number, or depends on another variable."""
    what = f"the variable is a cvxpy.Variable, not {shown(variable)}."
    _require(isinstance(variable, cp.Variable), WrongType, "variable", what)
    declared = {name for name, value in variable.attributes.items() if value}
    plain = variable.shape != () and declared <= {"nonneg", "pos", "symmetric", "PSD"}
    what = f"the variable is an array without {sorted(declared)}; it has shape {variable.shape}."
    _require(plain, InvalidInput, "variable", what)
    what = f"give an expression to be minimised, or left - right of a constraint, not {shown(e)}."
    _require(isinstance(e, cp.Expression), WrongType, "expression", what)
    what = f"the expression is a real number, not of shape {e.shape}; take cvxpy.sum or cvxpy.max."
    _require(e.is_scalar() and not e.is_complex(), WrongShape, "expression", what)
    names = [each.name() for each in e.variables()]
    what = f"the only variable is {variable.name()}, not {names}; others are cvxpy.Parameter."
    _require(all(v is variable for v in e.variables()), InvalidInput, "expression", what)
    what = f"it is {e.curvature}, not convex by DCP; are signs declared, as Parameter(nonneg=True)?"
    _require(e.is_convex(), NotConvex, "expression", what)


def _checked(parameters: Sequence[Any], values: Any) -> tuple[Floats, ...]:
    """The values of each parameter, rounds first, as they were declared."""
    what = "values are given by cvxpy.Parameter, such as {price: prices}."
    _require(isinstance(values, Mapping), WrongType, "values", what)
    by_id = {getattr(p, "id", p): rows for p, rows in values.items()}
    what = f"values are needed for exactly these parameters: {[p.name() for p in parameters]}."
    _require(by_id.keys() == {p.id for p in parameters}, InvalidInput, "values", what)
    found = []
    for p in parameters:
        own = f"values of the parameter {p.name()}"
        rows = np.asarray(to_numpy(as_array(by_id[p.id], own)), dtype=np.float64)
        what = f"{own} have rounds first, then its shape {p.shape}; they have {rows.shape}."
        _require(rows.ndim > 0 and rows.shape[1:] == p.shape, WrongShape, "values", what)
        with _borrowed([p]):
            for t in range(len(rows) if any(p.attributes.values()) else 0):
                try:
                    p.value = rows[t]
                except ValueError as error:
                    _require(False, InvalidInput, "values", f"{own}, round {t + 1}: {error}")
        found.append(rows)
    return tuple(found)


@contextmanager
def _borrowed(leaves: Sequence[Any]) -> Iterator[None]:
    """Set values of variables and parameters, which are restored afterwards."""
    with _LOCK, np.errstate(all="ignore"):
        values = [leaf.value for leaf in leaves]
        try:
            yield
        finally:
            for leaf, value in zip(leaves, values, strict=True):
                leaf.save_value(value)


class _Cvxpy(Engine):
    """An expression, which cvxpy evaluates round by round, and what was found out about it."""

    name: ClassVar[str] = "cvxpy"

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

    def values(self, x: Array, rounds: Rounds, *, each: bool) -> Array:
        return self._round_by_round(x, rounds, each, lambda value: value)

    def gradients(self, x: Array, rounds: Rounds) -> Array:
        return self._round_by_round(x, rounds, False, self._gradient)

    def weighted(self, x: Array, rounds: Rounds, weights: Floats) -> Array:
        return np.tensordot(weights, self.gradients(x, rounds), 1)

    def _round_by_round(
        self, x: Array, rounds: Rounds, each: bool, answer: Callable[[float], Any]
    ) -> Array:
        """An answer for each round, from its value; that is NaN outside the domain."""
        points, found = np.asarray(to_numpy(x), dtype=np.float64), []
        if self.domain:  # rounding is not outside
            points = np.where((points < 0.0) & (points > -_ROUNDING), 0.0, points)
        with _borrowed([self.variable, *self.parameters]):
            for t in range(len(rounds.ts)):
                self.variable.save_value(points[t] if each else points)
                for parameter, rows in zip(self.parameters, rounds.data, strict=True):
                    parameter.save_value(np.asarray(rows[t]))
                inside = all(np.max(one.violation()) <= _ROUNDING for one in self.domain)
                found.append(answer(float(np.squeeze(self.expression.value)) if inside else np.nan))
        return np.array(found)

    def _gradient(self, value: float) -> Floats:
        """A subgradient where cvxpy's values are; NaN if there is none."""
        found, x = np.nan, self.variable
        if np.isfinite(value):
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


_engine = lru_cache(32)(_Cvxpy)
"""Expressions stay analysed, so that later rounds do not wait for it."""


def _nodes(e: Any) -> Iterator[Any]:
    yield e
    for each in e.args:
        yield from _nodes(each)


@final
@dataclass(frozen=True, eq=False, repr=False, init=False)
class FromCvxpy(Autograd):
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
        """The expression, or how it begins."""
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
