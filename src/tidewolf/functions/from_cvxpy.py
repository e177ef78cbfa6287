"""Functions from an expression of cvxpy in one variable, with parameters whose values come rounds
first.

The expression is taken apart once (cvxpy_form.py). What it then is, it becomes: `Linear`, `Affine`,
`Capacity`, `MaxAffine`, `Quadratic` or a `Sum` of these (cvxpy_kinds.py), arrays with everything
that built-in functions can do; anything else a `FromCvxpy`, which evaluates the expression and its
subgradient for all rounds at once (cvxpy_atoms.py). cvxpy's own values of the variable and of the
parameters are neither read nor set.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Self, final

import numpy as np

from tidewolf.core.arguments import shown
from tidewolf.core.arrays import as_array, as_count, flat, like, norm, to_numpy
from tidewolf.core.batch import Batch
from tidewolf.core.errors import (
    InvalidInput,
    MissingExtra,
    NotConvex,
    NotFinite,
    WrongShape,
    WrongType,
)
from tidewolf.core.types import Array, Floats, Shape
from tidewolf.functions.cvxpy_form import Form, computed_rows, leaves_of, parameters_of, take_apart
from tidewolf.functions.cvxpy_kinds import Told, built_in

_ROUNDING = 1e-9
"""What a value may be beyond a sign that was declared, as a share of its size."""
_REMEMBERED = 32
"""Expressions that stay taken apart."""


def from_cvxpy(
    expression: Any,
    variable: Any,
    values: Mapping[Any, Any] | None = None,
    rounds: int | None = None,
) -> Batch:
    """Functions from a convex expression of cvxpy, whose parameters differ from round to round.

    The expression is canonicalised once, for all rounds and for later calls with the same
    expression. What comes back says how it is evaluated: an affine expression is a `Linear` or
    `Affine`; maxima of affine pieces are a `MaxAffine` or `Capacity` (a `Sum` where one table
    would be large); squares of affine arguments a `Quadratic`; anything else, such as a logarithm
    or more than 64 pieces, a `FromCvxpy`, slower, and known to solvers by its values and
    subgradients alone.

    Parameters
    ----------
    expression : cvxpy.Expression
        A number, convex in the variable by cvxpy's rules (DCP). A constraint left <= right is the
        function left - right. Parameters may stand where they like: the rules for them (DPP) need
        not hold.
    variable : cvxpy.Variable
        The point: the only variable, of the shape that points of the set have.
    values : mapping, optional
        For each parameter of the expression its values, rounds first: {price: prices}, with
        prices of shape (rounds, *price.shape). Those that stand in the function as they are, as in
        price @ x, are not copied. None: it has no parameters.
    rounds : int, optional
        How many rounds there are, where no parameters say it. None: one.

    Returns
    -------
    Batch
        The functions, one a round: losses or constraints of a stream, or of one round.

    Raises
    ------
    MissingExtra
        Where cvxpy is not installed.
    NotConvex
        Where cvxpy's rules do not say that the expression is convex.
    WrongType, WrongShape, InvalidInput
        Where it is no number, has other variables, or the values do not fit the parameters.

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
    >>> f = tw.functions.from_cvxpy(cp.logistic(price @ x) - cp.log(cp.sum(x)), x, {price: prices})
    >>> f.values(np.array([1.0, 0.0])).round(4)
    array([1.3133, 0.6931])
    >>> f.domain
    'points at which log of cvxpy is defined'
    """
    cp = _require_cvxpy()
    _require_expression(cp, expression, variable)
    form = _taken_apart(_Same(expression, variable))
    given, count = _settled(cp, expression, values, rounds)
    rows = {parameter.id: given[parameter.id] for parameter in parameters_of(expression)}
    data = list[Any]()
    for slot in form.slots:
        if slot.computed is None:
            data.append(rows[slot.parameter.id])
        else:
            with np.errstate(all="ignore"):
                found = computed_rows(slot, rows, count)
            _require_computed(found, slot)
            data.append(found)
    p = form.parameters(data) if data else np.ones((1, count))
    found_kind = built_in(Told(form, p, tuple(data)))
    if found_kind is not None:
        return found_kind
    return FromCvxpy._unchecked(_form=form, _data=tuple(data), _rounds=count)


def _require_cvxpy() -> Any:
    try:
        import cvxpy
    except ImportError:
        raise MissingExtra('from_cvxpy needs cvxpy: pip install "tidewolf[cvx]".') from None
    return cvxpy


class _Same:
    """An expression and its variable, equal to nothing but themselves: `==` of cvxpy is a
    constraint.
    """

    def __init__(self, expression: Any, variable: Any) -> None:
        self.expression, self.variable = expression, variable

    def __hash__(self) -> int:
        return hash((id(self.expression), id(self.variable)))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Same):
            return NotImplemented
        return self.expression is other.expression and self.variable is other.variable


@lru_cache(_REMEMBERED)
def _taken_apart(which: _Same) -> Form:
    return take_apart(which.expression, which.variable)


def _require_expression(cp: Any, expression: Any, variable: Any) -> None:
    """Refuse what is no convex number, or depends on anything but the variable."""
    if not isinstance(variable, cp.Variable):
        raise WrongType(
            f"The variable of from_cvxpy is a cvxpy.Variable, not {shown(variable)}.",
            setting="variable",
        )
    if not variable.shape:
        raise WrongShape(
            "The variable of from_cvxpy has the shape of a point, which has at least one axis: "
            "cvxpy.Variable(1) for a single entry, not cvxpy.Variable().",
            setting="variable",
        )
    if isinstance(expression, cp.Constraint):
        raise WrongType(
            "from_cvxpy takes an expression, and a constraint of cvxpy was given: for left <= "
            "right give the function left - right, which is at most 0 where it is kept.",
            setting="expression",
        )
    if isinstance(expression, cp.Minimize | cp.Maximize | cp.Problem):
        raise WrongType(
            f"from_cvxpy takes an expression to be minimised, not a {type(expression).__name__}: "
            "give what stands in it, with a minus sign where it is to be maximised.",
            setting="expression",
        )
    if not isinstance(expression, cp.Expression):
        raise WrongType(
            f"from_cvxpy takes an expression of cvxpy, such as price @ x, not {shown(expression)}.",
            setting="expression",
        )
    if not expression.is_scalar():
        raise WrongShape(
            f"An expression for from_cvxpy is one number a round; this one has shape "
            f"{tuple(expression.shape)}: take cvxpy.sum or cvxpy.max of it.",
            setting="expression",
        )
    found = [leaf for leaf in leaves_of(expression) if leaf.variables()]
    others = [leaf.name() for leaf in found if leaf is not variable]
    if others:
        raise InvalidInput(
            f"An expression for from_cvxpy has one variable, {variable.name()}; this one has "
            f"{', '.join(others)}, too. What moves from round to round is a cvxpy.Parameter.",
            setting="expression",
        )
    _require_plain(variable)
    if expression.is_complex():
        raise WrongType(
            "An expression for from_cvxpy is a real number; this one is complex: take cvxpy.real "
            "of it.",
            setting="expression",
        )
    if not expression.is_convex():
        if expression.is_concave():
            raise NotConvex(
                "This expression is concave: losses are minimised. Give -expression, the loss, in "
                "place of what is to be maximised.",
                setting="expression",
            )
        raise NotConvex(
            "cvxpy's rules (DCP) do not say that this expression is convex: its curvature is "
            f"{expression.curvature}. Write it with atoms that are convex, such as sum_squares(x) "
            "for x @ x, and give parameters their signs, such as Parameter(nonneg=True).",
            setting="expression",
        )


_PLAIN = ("nonneg", "pos", "symmetric", "PSD")
"""What a variable may be declared to be: sets keep it, or `domain` says it."""


def _require_plain(variable: Any) -> None:
    for name, said in variable.attributes.items():
        if name not in _PLAIN and said is not None and said is not False and said != []:
            raise InvalidInput(
                f"The variable of from_cvxpy was declared with {name}={said!r}, and where a point "
                "may lie is what the set says: declare it without.",
                setting="variable",
            )


def _settled(
    cp: Any, expression: Any, values: Any, rounds: object
) -> tuple[dict[int, Floats], int]:
    """The values of the parameters by their ids, and the number of rounds."""
    parameters = parameters_of(expression)
    if values is None:
        values = {}
    if not isinstance(values, Mapping):
        raise WrongType(
            "The values for from_cvxpy are given by parameter, such as {price: prices}, not as "
            f"{shown(values)}.",
            setting="values",
        )
    given = {}
    for parameter, rows in values.items():
        if not isinstance(parameter, cp.Parameter):
            raise WrongType(
                f"The values for from_cvxpy are those of a cvxpy.Parameter each; one of them is "
                f"given for {shown(parameter)}.",
                setting="values",
            )
        if not any(parameter is each for each in parameters):
            raise InvalidInput(
                f"Values were given for the parameter {parameter.name()}, which the expression "
                f"does not have; it has {_names(parameters)}.",
                setting="values",
            )
        given[parameter.id] = _checked(parameter, rows)
    missing = [each for each in parameters if each.id not in given]
    if missing:
        raise InvalidInput(
            f"The expression has parameters without values: {_names(missing)}. Give each of them "
            "an array with rounds first; what is the same in every round is a number in the "
            "expression.",
            setting="values",
        )
    counts = {each.name(): len(given[each.id]) for each in parameters}
    if len(set(counts.values())) > 1:
        said = ", ".join(f"{count} for {name}" for name, count in counts.items())
        raise WrongShape(
            f"The values for from_cvxpy have as many rounds for every parameter; {said} were "
            "given.",
            setting="values",
        )
    own = as_count(rounds, "rounds of from_cvxpy", least=0) if rounds is not None else None
    if not parameters:
        return given, 1 if own is None else own
    count = next(iter(counts.values()))
    if own not in (None, count):
        raise WrongShape(
            f"from_cvxpy was given {own} rounds and values of {count}; values alone say how many "
            "rounds there are.",
            setting="rounds",
        )
    return given, count


def _names(parameters: Iterable[Any]) -> str:
    return ", ".join(each.name() for each in parameters) or "none"


def _checked(parameter: Any, rows: Any) -> Floats:
    """The values of a parameter, rounds first, which are as it was declared."""
    what = f"The values of the parameter {parameter.name()}"
    if parameter.is_complex():
        raise WrongType(f"{what} are real; it was declared complex.", setting="values")
    array = np.asarray(to_numpy(as_array(rows, what)), dtype=np.float64)
    shape = tuple(parameter.shape)
    if tuple(array.shape[1:]) != shape or array.ndim != len(shape) + 1:
        sides = ", ".join(["rounds", *map(str, shape)]) + ("," if not shape else "")
        raise WrongShape(
            f"{what} have shape ({sides}), rounds first; an array of shape {array.shape} was "
            "given.",
            setting="values",
        )
    for name, said in parameter.attributes.items():
        if said is None or said is False:
            continue
        kept = _KEPT[name](array) if name in _KEPT else _projected(parameter, array)
        broken = ~kept
        if broken.any():
            t = int(np.argmax(broken))
            raise InvalidInput(
                f"{what} were declared {name}={said!r}; those of round {t + 1} (t = {t}) are not.",
                setting="values",
            )
    return array


def _by_round(found: Any) -> Any:
    return found.all(axis=tuple(range(1, found.ndim)))


def _eigenvalues(array: Floats) -> Floats:
    return np.asarray(np.linalg.eigvalsh(0.5 * (array + np.swapaxes(array, 1, 2))))


def _symmetric(array: Floats) -> Any:
    size = np.abs(array).max(axis=(1, 2), initial=0.0)
    skew = np.abs(array - np.swapaxes(array, 1, 2)).max(axis=(1, 2), initial=0.0)
    return skew <= _ROUNDING * size


def _semidefinite(array: Floats, sign: float) -> Any:
    eigenvalues = sign * _eigenvalues(array)
    size = np.abs(eigenvalues).max(axis=1, initial=0.0)
    return _symmetric(array) & (eigenvalues.min(axis=1, initial=0.0) >= -_ROUNDING * size)


_KEPT: dict[str, Callable[[Floats], Any]] = {
    "nonneg": lambda a: _by_round(a >= 0.0),
    "nonpos": lambda a: _by_round(a <= 0.0),
    "pos": lambda a: _by_round(a > 0.0),
    "neg": lambda a: _by_round(a < 0.0),
    "symmetric": _symmetric,
    "PSD": lambda a: _semidefinite(a, 1.0),
    "NSD": lambda a: _semidefinite(a, -1.0),
}
"""Whether the values of each round are as declared."""


def _projected(parameter: Any, array: Floats) -> Any:
    """The same for what cvxpy alone knows: whether its projection leaves them where they are."""
    found = []
    for value in array:
        near = parameter.project(value)
        near = near.toarray() if hasattr(near, "toarray") else np.asarray(near)
        found.append(np.abs(near - value).max(initial=0.0) <= _ROUNDING * np.abs(value).max())
    return np.array(found, dtype=bool)


def _require_computed(found: Floats, slot: Any) -> None:
    if not np.isfinite(found).all():
        t = int(np.argmin(_by_round(np.isfinite(found))))
        raise NotFinite(
            f"What the expression makes of its parameters alone, {slot.computed}, is not finite "
            f"in round {t + 1} (t = {t}).",
            setting="values",
        )


@final
@dataclass(frozen=True, eq=False, repr=False, init=False)
class FromCvxpy(Batch):
    """Functions that an expression of cvxpy gives and no built-in kind is: what `from_cvxpy` makes
    of them.
    """

    _form: Form
    _data: tuple[Any, ...]
    _rounds: int

    @classmethod
    def one(cls, expression: Any, variable: Any) -> Batch:
        """A single round from an expression without parameters."""
        return from_cvxpy(expression, variable)

    def fields(self) -> dict[str, Any]:
        return {"expression": self._form, "values": self._data, "rounds": self._rounds}

    def __repr__(self) -> str:
        return f"FromCvxpy({self.name}, shape={self.shape}, rounds={len(self)})"

    def __len__(self) -> int:
        return self._rounds

    @property
    def shape(self) -> Shape:
        return self._form.shape

    @property
    def name(self) -> str:
        """The expression, or how it begins."""
        return self._form.said

    @property
    def domain(self) -> str | None:  # type: ignore[override]
        return self._form.domain

    def view(self, rounds: slice) -> Self:
        start, stop, _ = rounds.indices(self._rounds)
        data = tuple(rows[rounds] for rows in self._data)
        return self._unchecked(_form=self._form, _data=data, _rounds=max(0, stop - start))

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self | None:
        first = parts[0]
        if any(part._form is not first._form for part in parts):
            return None
        columns = zip(*(part._data for part in parts), strict=True)
        data = tuple(np.concatenate(column) for column in columns)
        rounds = sum(part._rounds for part in parts)
        return cls._unchecked(_form=first._form, _data=data, _rounds=rounds)

    def values(self, x: Array) -> Array:
        point = self._entries(to_numpy(flat(x))[None])
        return like(self._values(point), x)

    def values_at(self, points: Array) -> Array:
        return like(self._values(self._entries(to_numpy(points).reshape(len(self), -1))), points)

    def gradients(self, x: Array) -> Array:
        found = self._gradients(x, np.ones(len(self)))
        return like(found.reshape(len(self), *self.shape), x)

    def subgradient(self, x: Array, weights: Array) -> Array:
        each = np.asarray(to_numpy(weights), dtype=np.float64)
        used = np.flatnonzero(each)
        if not len(used):
            return 0.0 * x
        batch = self if len(used) == len(each) else self._some(used)
        return like(batch._gradients(x, each[used]).sum(axis=0).reshape(self.shape), x)

    def slopes(self, x: Array) -> Floats:
        gradients = self.gradients(x)
        return np.array([norm(gradients[t, ...]) for t in range(len(self))])

    def _some(self, which: Any) -> Self:
        data = tuple(rows[which] for rows in self._data)
        return self._unchecked(_form=self._form, _data=data, _rounds=len(which))

    def _entries(self, points: Any) -> Floats:
        """Flattened points as columns in cvxpy's order."""
        found = np.asarray(points, dtype=np.float64)[:, self._form.columns].T
        if self._form.nonneg and not (found >= -_ROUNDING * max(1.0, np.abs(found).max())).all():
            raise InvalidInput(
                f"{self.name} is defined on {self.domain}, as its variable was declared; this "
                f"point has an entry of {found.min():g}."
            )
        return found

    def _values(self, x: Floats) -> Floats:
        found = np.empty(len(self))
        for rounds, p in self._chunks():
            points = x if x.shape[1] == 1 else x[:, rounds]
            with np.errstate(all="ignore"):  # what is not finite is refused below
                found[rounds] = self._form.forward(points, p)[0]
        self._require_finite(found, "value")
        return found

    def _gradients(self, x: Array, weights: Floats) -> Floats:
        """Weighted gradients, a row of flattened points each."""
        point = self._entries(to_numpy(flat(x))[None])
        found = np.empty((len(self), self._form.size))
        for rounds, p in self._chunks():
            with np.errstate(all="ignore"):
                value, z, told = self._form.forward(point, p)
                self._require_finite(value, "value", rounds.start)
                back = self._form.backward(weights[rounds], p, z, told)
            found[rounds, self._form.columns] = back.T
        self._require_finite(found, "gradient")
        return found

    def _chunks(self) -> Iterable[tuple[slice, Floats]]:
        most = self._form.at_once
        for start in range(0, len(self), most):
            rounds = slice(start, min(start + most, len(self)))
            if self._data:
                yield rounds, self._form.parameters([rows[rounds] for rows in self._data])
            else:
                yield rounds, np.ones((1, rounds.stop - rounds.start))

    def _require_finite(self, found: Floats, what: str, start: int = 0) -> None:
        if np.isfinite(found).all():
            return
        t = start + int(np.argmin(_by_round(np.isfinite(found))))
        where = f"{self.name} has no {what} that is finite at this point in round {t + 1} of it"
        if self.domain is None:
            raise NotFinite(f"{where}; functions are finite on the whole set.")
        edge = ": on the edge of that there may be none" if what == "gradient" else ""
        raise NotFinite(f"{where}; it is defined on {self.domain}{edge}.")

    @classmethod
    def examples(cls) -> Sequence[Batch]:
        cp = _require_cvxpy()
        x, X = cp.Variable(3), cp.Variable((2, 2))
        a, s = cp.Parameter(3), cp.Parameter(nonneg=True)
        rows = np.arange(12.0).reshape(4, 3) / 4.0 - 1.0
        return (
            from_cvxpy(cp.norm(x - a) + s * cp.logistic(a @ x), x, {a: rows, s: np.arange(4.0)}),
            from_cvxpy(cp.log_sum_exp(X, axis=0) @ np.ones(2) + cp.sum(cp.exp(X)), X, rounds=2),
            from_cvxpy(cp.huber(cp.sum(x)), x),
        )
