"""An expression of cvxpy taken apart once, for all rounds: every atom that is not affine in x gets
a variable u_k of its own, and everything between atoms is affine,

    f_t(x) = affine_0(x, u),        u_k = atom_k(arguments),        argument = affine_ki(x, u_1 ..)

with z = (x, u, 1) and p_t = (what the parameters are in round t, 1), each argument is

    y_i  =  sum_jq  T_ijq  z_j  p_tq

for one sparse table T, which cvxpy finds in a single pass over the whole expression. No round asks
cvxpy for anything again: its arguments are sparse products of T with the point and the parameters.

What depends on parameters alone, and not affinely (p1 * p2, exp(p)), becomes one parameter more,
whose values are computed round by round when the batch is made; where a factor that has parameters
meets an affine argument that has some, too, the argument gets a variable. So an expression that
follows cvxpy's rules for convexity (DCP) is taken apart whether or not it follows those for
parameters (DPP).

Entries of points and arguments are in cvxpy's order, the first index first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from typing import Any, NamedTuple

import numpy as np

from tidewolf.core.errors import NotSupported
from tidewolf.core.types import Floats, Int64s, Shape
from tidewolf.functions.cvxpy_atoms import Rule, rebuilt, rule_of

_SMALL = 1 << 12
"""Tables of so many entries are dense: products of small sparse ones take longer."""
AT_ONCE = 1 << 21
"""Numbers that are computed at a time."""


class Slot(NamedTuple):
    """A parameter: of the user, or one whose values are those of an expression of theirs."""

    parameter: Any
    start: int
    computed: Any = None
    """the expression without variables that it stands for"""
    inverse: bool = False
    """whether it is one over that"""

    @property
    def size(self) -> int:
        return int(self.parameter.size)

    @property
    def shape(self) -> Shape:
        return tuple(self.parameter.shape)


class AffineMap:
    """y_i = sum_jq T_ijq z_j p_q, for some entries y."""

    def __init__(self, count: int, width: int, entries: Entries) -> None:
        self.count, self.width, self.entries = count, width, entries
        free = entries.q == entries.last
        i, j, _, v = entries.some(free)
        self._constant = _compact(v, i, j, (count, width))
        self._i, self._j, self._q, v = entries.some(~free)
        each = np.arange(len(v))
        self._gather = _compact(v, self._i, each, (count, len(v)))
        self._scatter = _compact(v, self._j, each, (width, len(v)))

    @cached_property
    def has_variables(self) -> bool:
        """Whether it depends on the point at all."""
        return bool((self.entries.j < self.width - 1).any())

    @property
    def has_constants(self) -> bool:
        """Whether something is added to what depends on the point."""
        return bool((self.entries.j == self.width - 1).any())

    def moves(self, start: int, stop: int | None = None) -> bool:
        """Whether parameters decide on coefficients of z from one entry to another, or the last."""
        _, j, q, _, last = self.entries
        mine = (j >= start) & (j < (self.width if stop is None else stop))
        return bool((q[mine] != last).any())

    def __call__(self, z: Floats, p: Floats) -> Floats:
        y = self._constant @ z
        if len(self._j):
            y = y + self._gather @ (z[self._j] * p[self._q])
        return np.asarray(y)

    def pulled_back(self, y: Floats, p: Floats) -> Floats:
        """What a change of z does to <y, .>."""
        z = self._constant.T @ y
        if len(self._j):
            z = z + self._scatter @ (y[self._i] * p[self._q])
        return np.asarray(z)


class Entries(NamedTuple):
    """The table T: value v at (i, j, q); `last` is the q that stands for 1."""

    i: Int64s
    j: Int64s
    q: Int64s
    v: Floats
    last: int

    def some(self, which: Any) -> tuple[Int64s, Int64s, Int64s, Floats]:
        return self.i[which], self.j[which], self.q[which], self.v[which]


class Node(NamedTuple):
    """An atom, what computes it, its arguments, and where its variable stands in z."""

    kind: str
    atom: Any
    rule: Rule
    arguments: tuple[AffineMap, ...]
    start: int
    stop: int


@dataclass(frozen=True, eq=False)
class Form:
    """The expression taken apart."""

    said: str
    """the expression in words"""
    shape: Shape
    slots: tuple[Slot, ...]
    nodes: tuple[Node, ...]
    root: AffineMap
    domain: str | None
    nonneg: bool
    """whether the variable was declared to have no negative entry"""
    columns: Int64s = field(repr=False)
    """where each entry of x, in cvxpy's order, stands in a flattened point"""

    @property
    def size(self) -> int:
        """How many entries a point has."""
        return len(self.columns)

    @property
    def width(self) -> int:
        return self.root.width

    @property
    def at_once(self) -> int:
        """Rounds to compute at a time."""
        return max(1, AT_ONCE // self._numbers)

    @cached_property
    def _numbers(self) -> int:
        """How many a round is computed of."""
        maps = [self.root, *(each for node in self.nodes for each in node.arguments)]
        return self.width + sum(len(each.entries.v) for each in maps)

    def parameters(self, data: Sequence[Any]) -> Floats:
        """(p_t, 1) for each round, a column each; `data` has an array for each slot."""
        rounds = len(data[0]) if data else 1
        p = np.ones((sum(slot.size for slot in self.slots) + 1, rounds))
        for slot, rows in zip(self.slots, data, strict=True):
            p[slot.start : slot.start + slot.size] = first_index_first(rows).T
        return p

    def forward(self, x: Floats, p: Floats) -> tuple[Floats, Floats, list[Any]]:
        """The value of each round, z, and the arguments of every atom; x has a column a round, or
        one for all.
        """
        z = np.zeros((self.width, p.shape[1]))
        z[: self.size], z[-1] = x, 1.0
        told = []
        for node in self.nodes:
            arguments = [each(z, p) for each in node.arguments]
            z[node.start : node.stop] = node.rule.value(arguments)
            told.append(arguments)
        return self.root(z, p)[0], z, told

    def backward(self, weights: Floats, p: Floats, z: Floats, told: list[Any]) -> Floats:
        """Weighted subgradients, a column a round."""
        back = self.root.pulled_back(weights[None], p)
        for node, arguments in zip(reversed(self.nodes), reversed(told), strict=True):
            of_atom = back[node.start : node.stop]
            if not of_atom.any():
                continue
            each = node.rule.pulled_back(arguments, z[node.start : node.stop], of_atom)
            for argument, slope in zip(node.arguments, each, strict=True):
                if slope is not None and argument.has_variables:
                    back += argument.pulled_back(slope, p)
        return back[: self.size]


def first_index_first(rows: Any) -> Floats:
    """An array with rounds first as a matrix, each row in cvxpy's order of entries."""
    order = (0, *range(rows.ndim - 1, 0, -1))
    return np.asarray(rows.transpose(order).reshape(len(rows), prod(rows.shape[1:])))


def take_apart(expression: Any, variable: Any) -> Form:
    """The form of a convex expression in one variable."""
    return _Parts(expression, variable).form()


class _Parts:
    """What was found so far while walking down an expression."""

    def __init__(self, expression: Any, variable: Any) -> None:
        self.expression, self.variable = expression, variable
        self.slots: list[Slot] = []
        self.found: list[tuple[Any, Any, list[Any]]] = []
        """atoms, or None for an affine argument, their variables, and their arguments"""
        self.known: dict[int, Any] = {}
        self.kept: list[Any] = []
        """what `known` knows by its id, so that no id is another's"""
        for parameter in parameters_of(expression):
            self._slot(parameter)

    def form(self) -> Form:
        root = self.affine(self.expression)
        told = [(each, variable) for _, variable, each in self.found]
        maps = self._maps([*(one for each, _ in told for one in each), root])
        nodes, at = [], 0
        start = int(self.variable.size)
        for atom, variable, arguments in self.found:
            own = tuple(maps[at : at + len(arguments)])
            at += len(arguments)
            free = [not each.has_variables for each in own]
            rule = rule_of(atom, [tuple(each.shape) for each in arguments], free)
            stop = start + int(variable.size)
            kind = "alias" if atom is None else type(atom).__name__
            nodes.append(Node(kind, atom, rule, own, start, stop))
            start = stop
        shape = tuple(self.variable.shape)
        places = np.arange(int(self.variable.size)).reshape(shape)
        nonneg = bool(self.variable.is_nonneg())
        return Form(
            said=_brief(self.expression),
            shape=shape,
            slots=tuple(self.slots),
            nodes=tuple(nodes),
            root=maps[-1],
            domain=_domain([node.rule for node in nodes], nonneg),
            nonneg=nonneg,
            columns=places.reshape(-1, order="F"),
        )

    def affine(self, e: Any) -> Any:
        """An expression that is affine in x, in variables of atoms, and in parameters, with the
        same values.
        """
        if id(e) not in self.known:
            self.kept.append(e)
            self.known[id(e)] = self._affine(e)
        return self.known[id(e)]

    def _affine(self, e: Any) -> Any:
        if not has_variables(e):
            _require_no_hidden_parameters(e)
            return e if _is_affine(e) else self._computed(e)
        if not e.args:
            return e
        if not _is_affine_atom(e):
            arguments = [self.affine(each) for each in e.args]
            if type(e).__name__ == "huber":
                arguments.append(self.affine(e.M))
            else:
                _require_no_hidden_parameters(e)
            return self._variable(e, e.shape, arguments)
        if type(e).__name__ == "DivExpression" and parameters_of(e.args[1]):
            import cvxpy as cp

            return self._product(
                cp.multiply, self.affine(e.args[0]), self._computed(e.args[1], True)
            )
        return self._product(lambda *args: rebuilt(e, args), *map(self.affine, e.args))

    def _product(self, make: Any, *args: Any) -> Any:
        """An affine atom of these; where it has parameters twice, of variables for some."""
        made = make(*args)
        if _is_affine(made):
            return made
        args = tuple(
            self._variable(None, each.shape, [each])
            if has_variables(each) and parameters_of(each)
            else each
            for each in args
        )
        made = make(*args)
        if not _is_affine(made):
            raise NotSupported(
                f"from_cvxpy cannot take {_brief(made)} apart: write what parameters alone decide "
                "as a parameter of its own."
            )
        return made

    def _variable(self, atom: Any, shape: Shape, arguments: list[Any]) -> Any:
        import cvxpy as cp

        variable = cp.Variable(shape)
        self.found.append((atom, variable, arguments))
        return variable

    def _computed(self, e: Any, inverse: bool = False) -> Any:
        import cvxpy as cp

        return self._slot(cp.Parameter(e.shape), e, inverse)

    def _slot(self, parameter: Any, computed: Any = None, inverse: bool = False) -> Any:
        start = sum(slot.size for slot in self.slots)
        self.slots.append(Slot(parameter, start, computed, inverse))
        return parameter

    def _maps(self, expressions: list[Any]) -> list[AffineMap]:
        """The tables of all of them, in one pass of cvxpy."""
        from cvxpy import settings
        from cvxpy.cvxcore.python import canonInterface
        from cvxpy.lin_ops import lin_op

        columns, width = {self.variable.id: 0}, int(self.variable.size)
        for _, variable, _ in self.found:
            columns[variable.id] = width
            width += int(variable.size)
        sizes = {slot.parameter.id: slot.size for slot in self.slots}
        places = {slot.parameter.id: slot.start for slot in self.slots}
        last = sum(sizes.values())
        counts = [int(e.size) for e in expressions]
        rows = sum(counts)
        table = canonInterface.get_problem_matrix(
            [e.canonical_form[0] for e in expressions],
            width,
            columns,
            {**sizes, lin_op.CONSTANT_ID: 1},
            {**places, lin_op.CONSTANT_ID: last},
            rows,
            settings.SCIPY_CANON_BACKEND,
        ).tocoo()
        row, q = table.row.astype(np.int64), table.col.astype(np.int64)
        used = table.data != 0.0
        every = Entries(row % rows, row // rows, q, table.data, last)
        every = Entries(*every.some(used), last)
        ends = np.cumsum([0, *counts])
        owner = np.searchsorted(ends, every.i, side="right") - 1
        maps = []
        for e, count in enumerate(counts):
            i, j, q, v = every.some(owner == e)
            maps.append(AffineMap(count, width + 1, Entries(i - ends[e], j, q, v, last)))
        return maps


def leaves_of(e: Any) -> list[Any]:
    """The variables, parameters and constants in the arguments of an expression, once each; some
    atoms of cvxpy do not tell of their own.
    """
    found, seen, ahead = list[Any](), set[int](), [e]
    while ahead:
        one = ahead.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        if one.args:
            ahead += [*reversed(one.args), *([one.M] if type(one).__name__ == "huber" else [])]
        else:
            found.append(one)
    return found


def parameters_of(e: Any) -> list[Any]:
    """The parameters of an expression, in the order in which they stand in it."""
    return [leaf for leaf in leaves_of(e) if leaf.parameters()]


def has_variables(e: Any) -> bool:
    """Whether there is a variable in it."""
    return any(leaf.variables() for leaf in leaves_of(e))


def numeric(e: Any, values: dict[int, Any]) -> Any:
    """The value of an expression without variables, from those of its parameters by their ids;
    cvxpy's own stay as they are.
    """
    if e.args:
        return e.numeric([numeric(each, values) for each in e.args])
    return values[e.id] if e.parameters() else np.asarray(_dense(e.value))


def computed_rows(slot: Slot, rows: dict[int, Any], rounds: int) -> Floats:
    """The values of a parameter that stands for an expression, rounds first."""
    found = np.empty((rounds, *slot.shape))
    for t in range(rounds):
        value = numeric(slot.computed, {which: each[t] for which, each in rows.items()})
        found[t] = np.asarray(_dense(value), dtype=np.float64).reshape(slot.shape, order="F")
    return 1.0 / found if slot.inverse else found


def _dense(value: Any) -> Any:
    return value.toarray() if hasattr(value, "toarray") else value


def _is_affine_atom(e: Any) -> bool:
    from cvxpy.atoms.affine.affine_atom import AffAtom

    return isinstance(e, AffAtom)


def _is_affine(e: Any) -> bool:
    """Whether it is affine in variables, with coefficients that are affine in parameters."""
    from cvxpy.utilities import scopes

    with scopes.dpp_scope():
        return bool(e.is_affine())


def _require_no_hidden_parameters(atom: Any) -> None:
    told = {p.id for p in parameters_of(atom)}
    for parameter in atom.parameters():
        if parameter.id not in told:
            raise NotSupported(
                f"from_cvxpy takes parameters in the arguments of atoms, and "
                f"{type(atom).__name__} has {parameter.name()} as a setting: give it a number "
                "there."
            )


def _domain(rules: Sequence[Rule], nonneg: bool) -> str | None:
    names = sorted({rule.name for rule in rules if rule.has_domain})
    verb = "is" if len(names) == 1 else "are"
    parts = [f"points at which {' and '.join(names)} of cvxpy {verb} defined"] if names else []
    if nonneg:
        parts.append("points without a negative entry")
    return ", ".join(parts) or None


def _brief(e: Any) -> str:
    said = " ".join(str(e).split())
    return said if len(said) <= 60 else f"{said[:57]}..."


def _compact(v: Floats, i: Int64s, j: Int64s, shape: tuple[int, int]) -> Any:
    """A matrix of these entries, dense where that is small."""
    from scipy.sparse import csr_array

    matrix = csr_array((v, (i, j)), shape=shape)
    return matrix.toarray() if shape[0] * shape[1] <= _SMALL else matrix
