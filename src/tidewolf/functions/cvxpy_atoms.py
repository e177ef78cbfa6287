"""Atoms of cvxpy on all rounds at once: values, and what a change of the arguments does to them.

An argument is a matrix with a column for each round, entries in cvxpy's order; `value` answers with
the entries of the atom, a column a round. `pulled_back` takes weights of these and answers with
those of the arguments: the atom's subgradients, weighted.

The atoms that are used most are written down here. Of some others (`_ASKED`), cvxpy's own `numeric`
and `_grad` are asked, round by round; neither looks at values that are set in an expression. Of the
rest, whose gradients cvxpy does not know (the support function of a set), or not at every point, a
subgradient is the multiplier of z = y in

    minimise  atom(z)   over   z = y

a program that cvxpy prepares once. Outside the domain of an atom, values are not finite.
"""

from __future__ import annotations

import threading
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tidewolf.core.errors import NotSupported, SolverFailed
from tidewolf.core.types import Floats, Int64s, Shape

_ROUNDING = 1e-10
"""What an argument that must not be negative may be below 0 by, and is 0 then."""
_EXACT = {"tol_gap_abs": 1e-10, "tol_gap_rel": 1e-10, "tol_feas": 1e-10}
"""How exactly programs are solved, where they can be."""
Pulled = list[Floats | None]


class Rule(ABC):
    """How an atom is computed."""

    name = ""
    has_domain = False

    @abstractmethod
    def value(self, arguments: Sequence[Floats]) -> Floats:
        """The entries of the atom."""

    @abstractmethod
    def pulled_back(self, arguments: Sequence[Floats], u: Floats, weights: Floats) -> Pulled:
        """Weights of the entries as those of the entries of each argument; None for what never
        moves.
        """


def rule_of(atom: Any, shapes: Sequence[Shape], free: Sequence[bool]) -> Rule:
    """What computes an atom whose arguments have these shapes; `free` of the point are some."""
    if atom is None:
        return _Same()
    made = _known_rule(atom, shapes, free)
    rule = made if made is not None else _Asked(atom, free)
    rule.name = _CALLED.get(type(atom).__name__, type(atom).__name__)
    rule.has_domain = bool(_domain_of(atom, free)[1])
    return rule


def _known_rule(atom: Any, shapes: Sequence[Shape], free: Sequence[bool]) -> Rule | None:
    name = type(atom).__name__
    if name in _ELEMENTWISE:
        return _Elementwise(*_ELEMENTWISE[name])
    if name in _POWERS:
        return _power(atom)
    if name in ("maximum", "minimum"):
        return _Largest(_broadcast(shapes, atom.shape), 1.0 if name == "maximum" else -1.0)
    if name in ("kl_div", "rel_entr"):
        return _RelativeEntropy(_broadcast(shapes, atom.shape), 1.0 if name == "kl_div" else 0.0)
    if name in ("max", "min", "norm_inf", "norm1", "log_sum_exp", "sum_largest", *_NORMS):
        groups = groups_of(atom, shapes[0])
        if name in ("max", "min"):
            return _LargestOf(groups, 1.0 if name == "max" else -1.0)
        if name == "sum_largest":
            return _SumLargest(groups, float(atom.k))
        if name in _NORMS:
            return _Norm(groups, float(atom.p))
        if name == "norm_inf":
            return _NormInf(groups)
        return _Norm1(groups) if name == "norm1" else _LogSumExp(groups)
    if name == "cummax":
        return _RunningLargest(groups_of(atom, shapes[0]))
    if name == "dotsort" and free[1]:
        return _SortedProduct()
    if name in ("lambda_max", "lambda_sum_largest"):
        return _LargestEigenvalues(1.0 if name == "lambda_max" else float(atom.k))
    if name in ("normNuc", "sigma_max"):
        return _SingularValues(shapes[0], np.inf if name == "normNuc" else 1.0)
    if name in _GEOMETRIC and getattr(atom, "axis", None) is None:
        weights = np.array([float(w) for w in atom.w])
        if len(weights) == atom.args[0].size and (weights > 0.0).all():
            return _GeometricMean(weights)
    if name == "huber":
        return _Huber()
    if name == "quad_over_lin" and free[1] and getattr(atom, "axis", None) is None:
        return _SquaresOver()
    if name == "QuadForm" and free[1]:
        return _QuadraticForm()
    return None


def groups_of(atom: Any, shape: Shape) -> Int64s:
    """The entries of the argument that each entry of the atom is made of, a row each."""
    places = np.arange(int(np.prod(shape, dtype=np.int64))).reshape(shape, order="F")
    axis = getattr(atom, "axis", None)
    if axis is None:
        return places.reshape(1, -1, order="F")
    axes = (axis,) if isinstance(axis, int | np.integer) else tuple(axis)
    moved = np.moveaxis(places, axes, range(-len(axes), 0))
    kept = moved.shape[: places.ndim - len(axes)]
    table = moved.reshape(*kept, -1)
    return table.reshape(-1, table.shape[-1], order="F")


def _broadcast(shapes: Sequence[Shape], shape: Shape) -> list[Int64s]:
    """For each argument the entry that each entry of the atom takes."""
    found = []
    for own in shapes:
        places = np.arange(int(np.prod(own, dtype=np.int64))).reshape(own, order="F")
        found.append(np.broadcast_to(places, shape).reshape(-1, order="F"))
    return found


class _Same(Rule):
    """An affine argument under a name of its own."""

    def value(self, arguments: Sequence[Floats]) -> Floats:
        return arguments[0]

    def pulled_back(self, arguments: Sequence[Floats], u: Floats, weights: Floats) -> Pulled:
        return [weights]


class _Elementwise(Rule):
    """A function of each entry, and its slope."""

    def __init__(self, f: Callable[[Floats], Floats], slope: Callable[[Floats], Floats]) -> None:
        self._f, self._slope = f, slope

    def value(self, arguments: Sequence[Floats]) -> Floats:
        return self._f(arguments[0])

    def pulled_back(self, arguments: Sequence[Floats], u: Floats, weights: Floats) -> Pulled:
        slope = self._slope(arguments[0])
        return [np.where(weights == 0.0, 0.0, weights * slope)]


class _Largest(Rule):
    """The largest of several arguments, entry by entry; with sign -1 the smallest."""

    def __init__(self, places: list[Int64s], sign: float) -> None:
        self.places, self.sign = places, sign

    def _each(self, arguments: Sequence[Floats]) -> Floats:
        ways = zip(arguments, self.places, strict=True)
        return self.sign * np.stack([y[places] for y, places in ways])

    def value(self, arguments: Sequence[Floats]) -> Floats:
        return np.asarray(self.sign * self._each(arguments).max(axis=0))

    def pulled_back(self, arguments: Sequence[Floats], u: Floats, weights: Floats) -> Pulled:
        first, found = self._each(arguments).argmax(axis=0), list[Floats | None]()
        for i, (y, places) in enumerate(zip(arguments, self.places, strict=True)):
            mine = np.zeros(y.shape)
            np.add.at(mine, places, weights * (first == i))
            found.append(mine)
        return found


class _Groups(Rule):
    """Something of groups of entries."""

    def __init__(self, groups: Int64s) -> None:
        self.groups = groups

    def value(self, arguments: Sequence[Floats]) -> Floats:
        return self._of(arguments[0][self.groups])

    def pulled_back(self, arguments: Sequence[Floats], u: Floats, weights: Floats) -> Pulled:
        y = arguments[0]
        found = np.zeros(y.shape)
        found[self.groups] = self._slopes(y[self.groups], u[:, None, :]) * weights[:, None, :]
        return [found]

    @abstractmethod
    def _of(self, y: Floats) -> Floats:
        """Of (groups, entries, rounds)."""

    @abstractmethod
    def _slopes(self, y: Floats, u: Floats) -> Floats:
        """The slopes there."""


class _LargestOf(_Groups):
    def __init__(self, groups: Int64s, sign: float) -> None:
        super().__init__(groups)
        self._sign = sign

    def _of(self, y: Floats) -> Floats:
        return np.asarray(self._sign * (self._sign * y).max(axis=1))

    def _slopes(self, y: Floats, u: Floats) -> Floats:
        return _units(self._sign * y)


class _NormInf(_Groups):
    def _of(self, y: Floats) -> Floats:
        return np.asarray(np.abs(y).max(axis=1))

    def _slopes(self, y: Floats, u: Floats) -> Floats:
        return _units(np.abs(y)) * np.sign(y)


class _Norm1(_Groups):
    def _of(self, y: Floats) -> Floats:
        return np.asarray(np.abs(y).sum(axis=1))

    def _slopes(self, y: Floats, u: Floats) -> Floats:
        return np.sign(y)


class _Norm(_Groups):
    """(sum |y|^p)^(1/p); 0 is a subgradient at 0. With p < 1 for y >= 0 alone, and concave."""

    def __init__(self, groups: Int64s, p: float) -> None:
        super().__init__(groups)
        self._p = p

    def _of(self, y: Floats) -> Floats:
        y = np.abs(y) if self._p > 1.0 else _not_negative(y)
        most = y.max(axis=1, keepdims=True)
        size = np.where((most > 0.0) & np.isfinite(most), most, 1.0)
        powers = ((y / size) ** self._p).sum(axis=1)
        return np.asarray(size[:, 0] * powers ** (1.0 / self._p))

    def _slopes(self, y: Floats, u: Floats) -> Floats:
        if self._p < 1.0:
            return (_not_negative(y) / u) ** (self._p - 1.0)
        return np.sign(y) * (np.abs(y) / np.where(u > 0.0, u, 1.0)) ** (self._p - 1.0)


class _LogSumExp(_Groups):
    def _of(self, y: Floats) -> Floats:
        most = y.max(axis=1, keepdims=True)
        return np.asarray(most[:, 0] + np.log(np.exp(y - most).sum(axis=1)))

    def _slopes(self, y: Floats, u: Floats) -> Floats:
        return np.exp(y - u)


class _SumLargest(_Groups):
    """The sum of the k largest; with k = 3/2 the largest and half of the next."""

    def __init__(self, groups: Int64s, k: float) -> None:
        super().__init__(groups)
        ranks = np.arange(groups.shape[1])
        self._shares = np.clip(k - ranks, 0.0, 1.0)

    def _of(self, y: Floats) -> Floats:
        largest_first = -np.sort(-y, axis=1)
        return np.asarray(np.einsum("gkt,k->gt", largest_first, self._shares))

    def _slopes(self, y: Floats, u: Floats) -> Floats:
        order = np.argsort(-y, axis=1, kind="stable")
        found = np.empty(y.shape)
        np.put_along_axis(found, order, self._shares[None, :, None], axis=1)
        return found


class _RelativeEntropy(Rule):
    """x log(x/y), and - x + y beside it for `more` = 1."""

    def __init__(self, places: list[Int64s], more: float) -> None:
        self._places, self._more = places, more

    def _told(self, arguments: Sequence[Floats]) -> tuple[Floats, Floats]:
        x, y = (each[at] for each, at in zip(arguments, self._places, strict=True))
        return _not_negative(x), np.where(y > 0.0, y, np.nan)

    def value(self, arguments: Sequence[Floats]) -> Floats:
        x, y = self._told(arguments)
        return np.where(x == 0.0, 0.0 * y, x * np.log(x / y)) + self._more * (y - x)

    def pulled_back(self, arguments: Sequence[Floats], u: Floats, weights: Floats) -> Pulled:
        x, y = self._told(arguments)
        slopes = (np.log(x / y) + 1.0 - self._more, self._more - x / y)
        found = list[Floats | None]()
        for slope, argument, places in zip(slopes, arguments, self._places, strict=True):
            mine = np.zeros(argument.shape)
            np.add.at(mine, places, np.where(weights == 0.0, 0.0, weights * slope))
            found.append(mine)
        return found


class _RunningLargest(Rule):
    """The largest so far, along an axis."""

    def __init__(self, groups: Int64s) -> None:
        self._groups = groups

    def value(self, arguments: Sequence[Floats]) -> Floats:
        y = arguments[0]
        found = np.empty(y.shape)
        found[self._groups] = np.maximum.accumulate(y[self._groups], axis=1)
        return found

    def pulled_back(self, arguments: Sequence[Floats], u: Floats, weights: Floats) -> Pulled:
        y = arguments[0][self._groups]
        count = y.shape[1]
        new = np.ones(y.shape, dtype=bool)
        new[:, 1:] = y[:, 1:] > np.maximum.accumulate(y, axis=1)[:, :-1]
        last = np.maximum.accumulate(np.where(new, np.arange(count)[:, None], 0), axis=1)
        back, mine = np.zeros(y.shape), weights[self._groups]
        for i in range(count):
            at = last[:, i : i + 1]
            more = np.take_along_axis(back, at, axis=1) + mine[:, i : i + 1]
            np.put_along_axis(back, at, more, axis=1)
        found = np.zeros(arguments[0].shape)
        found[self._groups] = back
        return [found]


class _SortedProduct(Rule):
    """sum_i y_(i) w_(i), both in order; w of parameters alone, and 0 where it is shorter."""

    def value(self, arguments: Sequence[Floats]) -> Floats:
        each = np.sort(arguments[0], axis=0) * self._sorted(arguments)
        return np.asarray(each.sum(axis=0, keepdims=True))

    def pulled_back(self, arguments: Sequence[Floats], u: Floats, weights: Floats) -> Pulled:
        y = arguments[0]
        found = np.empty(y.shape)
        order = np.argsort(y, axis=0, kind="stable")
        np.put_along_axis(found, order, self._sorted(arguments), axis=0)
        return [weights * found, None]

    def _sorted(self, arguments: Sequence[Floats]) -> Floats:
        y, w = arguments
        wide = np.zeros(y.shape)
        wide[: len(w)] = w
        return np.sort(wide, axis=0)


class _LargestEigenvalues(Rule):
    """The sum of the k largest eigenvalues of a symmetric matrix."""

    def __init__(self, k: float) -> None:
        self._k = k

    def value(self, arguments: Sequence[Floats]) -> Floats:
        eigenvalues = np.linalg.eigvalsh(self._matrices(arguments[0]))
        return np.asarray((eigenvalues * self._shares(eigenvalues.shape[1])).sum(axis=1)[None])

    def pulled_back(self, arguments: Sequence[Floats], u: Floats, weights: Floats) -> Pulled:
        y = arguments[0]
        _, V = np.linalg.eigh(self._matrices(y))
        slopes = (V * self._shares(V.shape[1])) @ np.swapaxes(V, 1, 2)
        return [weights * slopes.reshape(len(slopes), -1).T]

    def _matrices(self, y: Floats) -> Floats:
        n = round(len(y) ** 0.5)
        Y = y.T.reshape(-1, n, n)
        return 0.5 * (Y + np.swapaxes(Y, 1, 2))

    def _shares(self, n: int) -> Floats:
        return np.clip(self._k - np.arange(n)[::-1], 0.0, 1.0)


class _SingularValues(Rule):
    """The sum of the k largest singular values."""

    def __init__(self, shape: Shape, k: float) -> None:
        self._shape, self._k = shape, k

    def value(self, arguments: Sequence[Floats]) -> Floats:
        found = np.linalg.svd(self._matrices(arguments[0]), compute_uv=False)
        return np.asarray((found * self._shares(found.shape[1])).sum(axis=1)[None])

    def pulled_back(self, arguments: Sequence[Floats], u: Floats, weights: Floats) -> Pulled:
        left, sizes, right = np.linalg.svd(self._matrices(arguments[0]), full_matrices=False)
        slopes = (left * self._shares(sizes.shape[1])) @ right
        return [weights * slopes.reshape(len(slopes), -1).T]

    def _matrices(self, y: Floats) -> Floats:
        """Transposed, as cvxpy has their entries."""
        return y.T.reshape(-1, *self._shape[::-1])

    def _shares(self, n: int) -> Floats:
        return np.clip(self._k - np.arange(n), 0.0, 1.0)


class _GeometricMean(Rule):
    """prod_i y_i^w_i, y_i >= 0 and w_i > 0."""

    def __init__(self, weights: Floats) -> None:
        self._w = weights[:, None]

    def value(self, arguments: Sequence[Floats]) -> Floats:
        return np.asarray((self._base(arguments) ** self._w).prod(axis=0, keepdims=True))

    def pulled_back(self, arguments: Sequence[Floats], u: Floats, weights: Floats) -> Pulled:
        return [weights * u * self._w / self._base(arguments)]

    def _base(self, arguments: Sequence[Floats]) -> Floats:
        return _not_negative(arguments[0])


class _SquaresOver(Rule):
    """|y|^2 / s, s > 0 of parameters alone."""

    def value(self, arguments: Sequence[Floats]) -> Floats:
        y, s = arguments
        return np.asarray((y * y).sum(axis=0, keepdims=True) / np.where(s > 0.0, s, np.nan))

    def pulled_back(self, arguments: Sequence[Floats], u: Floats, weights: Floats) -> Pulled:
        y, s = arguments
        return [2.0 * weights * y / s, None]


class _QuadraticForm(Rule):
    """<y, P y>, P of parameters alone."""

    def value(self, arguments: Sequence[Floats]) -> Floats:
        y, P = self._told(arguments)
        return np.asarray(np.einsum("at,abt,bt->t", y, P, y, optimize=True)[None])

    def pulled_back(self, arguments: Sequence[Floats], u: Floats, weights: Floats) -> Pulled:
        y, P = self._told(arguments)
        slope = np.einsum("abt,bt->at", P, y) + np.einsum("bat,bt->at", P, y)
        return [weights * slope, None]

    def _told(self, arguments: Sequence[Floats]) -> tuple[Floats, Floats]:
        y, P = arguments
        return y, P.reshape(len(y), len(y), -1, order="F")


class _Huber(Rule):
    """y^2 up to |y| = M, then 2 M |y| - M^2; M of parameters alone."""

    def value(self, arguments: Sequence[Floats]) -> Floats:
        y, M = np.abs(arguments[0]), arguments[1]
        return np.where(y <= M, y * y, 2.0 * M * y - M * M)

    def pulled_back(self, arguments: Sequence[Floats], u: Floats, weights: Floats) -> Pulled:
        y, M = arguments
        return [2.0 * weights * np.clip(y, -M, M), None]


class _Asked(Rule):
    """What cvxpy says itself, round by round."""

    def __init__(self, atom: Any, free: Sequence[bool]) -> None:
        self._atom, self._free = atom, free
        self._shapes = [tuple(each.shape) for each in atom.args]
        self._lock = threading.Lock()
        self._private, self._limits = _domain_of(atom, free)
        asked = type(atom).__name__ in _ASKED
        self._program = None if asked else _Program(atom, free)

    def value(self, arguments: Sequence[Floats]) -> Floats:
        found = np.empty((int(self._atom.size), arguments[0].shape[1]))
        with self._lock:
            for t in range(found.shape[1]):
                values = self._values(arguments, t)
                inside = self._is_inside(values)
                answer = self._atom.numeric(values) if inside else np.nan
                found[:, t] = np.broadcast_to(answer, self._atom.shape).reshape(-1, order="F")
        return found

    def pulled_back(self, arguments: Sequence[Floats], u: Floats, weights: Floats) -> Pulled:
        found = [np.zeros(y.shape) for y in arguments]
        with self._lock:
            for t in np.flatnonzero(weights.any(axis=0)).tolist():
                each = self._weighted(self._values(arguments, t), weights[:, t])
                for mine, slope in zip(found, each, strict=True):
                    mine[:, t] = slope
        return [None if free else mine for mine, free in zip(found, self._free, strict=True)]

    def _values(self, arguments: Sequence[Floats], t: int) -> list[Floats]:
        ways = zip(arguments, self._shapes, strict=True)
        return [y[:, t].reshape(shape, order="F") for y, shape in ways]

    def _is_inside(self, values: list[Floats]) -> bool:
        """Whether the arguments are in the atom's domain, up to rounding."""
        if not self._limits:
            return True
        for private, value in zip(self._private.args, values, strict=True):
            if private.variables():
                private.value = private.project(value)
        above = [np.max(limit.violation(), initial=0.0) for limit in self._limits]
        return bool(max(above) <= _ROUNDING)

    def _weighted(self, values: list[Floats], weights: Floats) -> list[Floats]:
        """The subgradient of the weighted sum of the atom's entries, for each argument."""
        if self._program is not None:
            return [weights[0] * slope for slope in self._program(values)]
        told = self._atom._grad(values)
        if any(each is None for each in told):
            return [np.full(value.size, np.nan) for value in values]
        ways = zip(told, values, strict=True)
        return [_matrix(each, value.size, len(weights)) @ weights for each, value in ways]


class _Program:
    """minimise atom(z) over z = y, whose multipliers are subgradients at y; a concave atom is
    maximised.
    """

    def __init__(self, atom: Any, free: Sequence[bool]) -> None:
        import cvxpy as cp

        self._name, self._sign = type(atom).__name__, 1.0 if atom.is_atom_convex() else -1.0
        if atom.size != 1:
            raise NotSupported(
                f"from_cvxpy knows no subgradients of {self._name} of cvxpy where that is more "
                "than one number: write it with other atoms, or as functions.Custom."
            )
        self._y, self._equal = [cp.Parameter(each.shape) for each in atom.args], list[Any]()
        own = []
        for each, y, same in zip(atom.args, self._y, free, strict=True):
            if same:
                own.append(y if each.parameters() else each)
                self._equal.append(None)
                continue
            z = _variable_like(each)
            own.append(z)
            self._equal.append(z == y)
        goal = cp.Minimize(self._sign * cp.sum(rebuilt(atom, own)))
        self._problem = cp.Problem(goal, [each for each in self._equal if each is not None])

    def __call__(self, values: list[Floats]) -> list[Floats]:
        import cvxpy as cp

        for parameter, value in zip(self._y, values, strict=True):
            parameter.value = value
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of answers that are less exact than asked
            self._problem.solve(solver=cp.CLARABEL, warm_start=False, **_EXACT)
        if self._problem.status not in ("optimal", "optimal_inaccurate"):
            raise SolverFailed(
                f"cvxpy knows no gradient of {self._name}, and the program that gives one has the "
                f"status {self._problem.status!r} at this point."
            )
        ways = zip(self._equal, values, strict=True)
        return [
            np.zeros(y.size)
            if equal is None
            else -self._sign * np.reshape(equal.dual_value, -1, order="F")
            for equal, y in ways
        ]


def _domain_of(atom: Any, free: Sequence[bool]) -> tuple[Any, list[Any]]:
    """The atom of variables of its own in place of arguments that move, and where it is defined."""
    ways = zip(atom.args, free, strict=False)
    own = [each if same else _variable_like(each) for each, same in ways]
    private = rebuilt(atom, own)
    return private, [limit for limit in private.domain if limit.variables()]


def rebuilt(atom: Any, arguments: Sequence[Any]) -> Any:
    """The same atom of other arguments."""
    try:
        return atom.copy(list(arguments))
    except Exception:  # one that cvxpy cannot copy, or that wants to know more of its arguments
        raise NotSupported(
            f"from_cvxpy cannot take {type(atom).__name__} of cvxpy apart: write it with other "
            "atoms, or as functions.Custom."
        ) from None


def _variable_like(e: Any) -> Any:
    """A variable in place of an argument."""
    import cvxpy as cp

    square = len(e.shape) == 2 and e.shape[0] == e.shape[1] > 1
    return cp.Variable(e.shape, symmetric=square and bool(e.is_symmetric() or e.is_hermitian()))


def _units(y: Floats) -> Floats:
    """1 at the first largest entry of each group, else 0."""
    first = y.argmax(axis=1)[:, None, :]
    return np.where(np.arange(y.shape[1])[:, None] == first, 1.0, 0.0)


def _matrix(told: Any, rows: int, columns: int) -> Floats:
    if np.isscalar(told):
        return np.full((rows, columns), told, dtype=np.float64)
    table = told.toarray() if hasattr(told, "toarray") else np.asarray(told)
    return np.asarray(table, dtype=np.float64).reshape(rows, columns)


def _power(atom: Any) -> Rule | None:
    p = float(atom.p.value if hasattr(atom.p, "value") else atom.p)
    if not (2.0 * p).is_integer() or p == 0.0:
        return None
    everywhere = p > 0.0 and (p % 2.0 == 0.0 or p == 1.0)

    def base(y: Floats) -> Floats:
        if everywhere:
            return y
        return _not_negative(y) if p > 0.0 else np.where(y > 0.0, y, np.nan)

    return _Elementwise(lambda y: base(y) ** p, lambda y: p * base(y) ** (p - 1.0))


def _not_negative(y: Floats) -> Floats:
    y = np.where((y < 0.0) & (y >= -_ROUNDING), 0.0, y)
    return np.where(y >= 0.0, y, np.nan)


def _entropy(y: Floats) -> Floats:
    from scipy.special import entr

    return np.asarray(entr(_not_negative(y)))


def _entropy_slope(y: Floats) -> Floats:
    return -np.log(_not_negative(y)) - 1.0


def _sigmoid(y: Floats) -> Floats:
    from scipy.special import expit

    return np.asarray(expit(y))


_ELEMENTWISE: dict[str, tuple[Callable[[Floats], Floats], Callable[[Floats], Floats]]] = {
    "abs": (np.abs, np.sign),
    "entr": (_entropy, _entropy_slope),
    "exp": (np.exp, np.exp),
    "log": (
        lambda y: np.log(np.where(y > 0.0, y, np.nan)),
        lambda y: 1.0 / np.where(y > 0.0, y, np.nan),
    ),
    "log1p": (
        lambda y: np.log1p(np.where(y > -1.0, y, np.nan)),
        lambda y: 1.0 / (1.0 + np.where(y > -1.0, y, np.nan)),
    ),
    "logistic": (lambda y: np.logaddexp(0.0, y), _sigmoid),
}
_ASKED = (
    "GeoMean",
    "GeoMeanApprox",
    "MatrixFrac",
    "geo_mean",
    "log_det",
    "power",
    "Power",
    "PowerApprox",
    "quad_over_lin",
    "tr_inv",
    "xexp",
)
"""Atoms whose gradients cvxpy knows wherever there are some."""
_CALLED = {
    "GeoMean": "geo_mean",
    "GeoMeanApprox": "geo_mean",
    "MatrixFrac": "matrix_frac",
    "Pnorm": "norm",
    "PnormApprox": "norm",
    "Power": "power",
    "PowerApprox": "power",
}
"""What users call atoms whose classes have other names."""
_GEOMETRIC = ("GeoMean", "GeoMeanApprox", "geo_mean")
_POWERS = ("power", "Power", "PowerApprox")
_NORMS = ("Pnorm", "PnormApprox", "pnorm")
