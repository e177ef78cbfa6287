"""Which built-in kind an expression of cvxpy is, taken apart as in cvxpy_form.py.

- Without atoms it is affine: `Linear` or `Affine`.
- Of maxima, absolute values, 1-norms and sums of largest entries, in each other and added up, it is
  the largest of affine pieces: a maximum has the pieces of all its arguments, a sum one for each
  choice of a piece of every term, and minima the same with turned signs. Where these are few
  (`MOST_PIECES`), or those of one maximum, it is a `MaxAffine`, or a `Capacity` where they are
  x_i - c_i; where one table would be large, a `Sum` of what is added up.
- Of squares of affine arguments it is a `Quadratic`, for points that are vectors.

Coefficients of all rounds are one sparse product with the parameters. Those that no parameter moves
are kept once.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from math import comb
from typing import Any, NamedTuple

import numpy as np

from tidewolf.core.batch import Batch
from tidewolf.core.types import Array, Floats, Int64s
from tidewolf.functions.affine import Affine
from tidewolf.functions.capacity import Capacity
from tidewolf.functions.cvxpy_atoms import groups_of
from tidewolf.functions.cvxpy_form import AffineMap, Form, Node
from tidewolf.functions.linear import Linear
from tidewolf.functions.max_affine import MaxAffine
from tidewolf.functions.quadratic import Quadratic
from tidewolf.functions.sum import Sum

MOST_PIECES = 64
"""Pieces that sums of maxima may have; beyond, an expression is evaluated as it stands."""
_FOLDED = 1 << 12
"""Numbers a round up to which a sum of pieces is one table."""
_LARGE = 1 << 24
"""Numbers from which on tables are sparse where they can be, and else none is made."""
_ATOMS = (
    "abs",
    "max",
    "maximum",
    "min",
    "minimum",
    "norm1",
    "norm_inf",
    "sum_largest",
)
"""Atoms that are made of affine pieces."""


class Told(NamedTuple):
    """An expression taken apart, the parameters of all rounds, and the arrays they came in."""

    form: Form
    p: Floats
    data: tuple[Any, ...]

    @property
    def rounds(self) -> int:
        return int(self.p.shape[1])


class Pieces(NamedTuple):
    """Affine functions of x, some for each entry of an argument or atom: number at (row, col) of a
    round. What is the same in all rounds has one row.
    """

    owner: Int64s
    """the entry that each belongs to"""
    rows: Int64s
    cols: Int64s
    numbers: Floats
    """(rounds or 1, entries of the table)"""
    constant: Floats
    """(rounds or 1, pieces)"""

    @property
    def size(self) -> int:
        return len(self.owner)

    def of(self, which: Int64s, owner: Int64s) -> Pieces:
        """These pieces in this order, one or several times, and to whom they belong."""
        order = np.argsort(self.rows, kind="stable")
        starts = np.searchsorted(self.rows[order], np.arange(self.size + 1))
        counts = (starts[1:] - starts[:-1])[which]
        rows = np.repeat(np.arange(len(which)), counts)
        within = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
        entries = order[starts[which][rows] + within]
        return Pieces(
            owner, rows, self.cols[entries], self.numbers[:, entries], self.constant[:, which]
        )

    def times(self, weights: Floats) -> Pieces:
        """All of them, times a number a round, or one for all."""
        w = weights[:, None]
        return self._replace(numbers=w * self.numbers, constant=w * self.constant)

    def plus(self, other: Pieces) -> Pieces:
        """One for each choice of one of each; all belong to the entry 0."""
        mine = np.repeat(np.arange(self.size), other.size)
        theirs = np.tile(np.arange(other.size), self.size)
        none = np.zeros(len(mine), dtype=np.int64)
        one, two = self.of(mine, none), other.of(theirs, none)
        return Pieces(
            none,
            np.concatenate([one.rows, two.rows]),
            np.concatenate([one.cols, two.cols]),
            _beside(one.numbers, two.numbers),
            one.constant + two.constant,
        )


def _beside(one: Floats, other: Floats) -> Floats:
    return np.concatenate(_same_rounds(one, other), axis=1)


def _together(parts: Sequence[Pieces]) -> Pieces:
    """All of these, each with its own owners."""
    found = parts[0]
    for part in parts[1:]:
        found = Pieces(
            np.concatenate([found.owner, part.owner]),
            np.concatenate([found.rows, part.rows + found.size]),
            np.concatenate([found.cols, part.cols]),
            _beside(found.numbers, part.numbers),
            _beside(found.constant, part.constant),
        )
    return found


class _TooMany(Exception):
    """It is no maximum of affine pieces, or of too many."""


def built_in(told: Told) -> Batch | None:
    """The batch as one of the built-in kinds; None where it is none."""
    if not told.form.nodes:
        return _affine(told)
    try:
        return _piecewise(told)
    except _TooMany:
        return _quadratic(told)


def _coefficients(told: Told, argument: AffineMap) -> Pieces:
    """An argument as pieces of x and of the atoms' variables, one an entry."""
    i, j, q, v, _ = argument.entries
    last = argument.width - 1
    inner = j < last
    key = i[inner] * last + j[inner]
    unique, place = np.unique(key, return_inverse=True)
    numbers = _summed(told, place, q[inner], v[inner], len(unique))
    constant = _summed(told, i[~inner], q[~inner], v[~inner], argument.count)
    return Pieces(np.arange(argument.count), unique // last, unique % last, numbers, constant)


def _summed(told: Told, place: Int64s, q: Int64s, v: Floats, count: int) -> Floats:
    from scipy.sparse import csr_array

    if (q == len(told.p) - 1).all():
        return np.asarray(np.bincount(place, v, count)[None], dtype=np.float64)
    table = csr_array((v, (place, q)), shape=(count, len(told.p)))
    return np.ascontiguousarray((table @ told.p).T)


def _affine(told: Told) -> Batch:
    pieces = _coefficients(told, told.form.root)
    A: Any = _own_array(told, told.form.root, 1.0, constant=False)
    return _as_affine(told, _rows(told, pieces) if A is None else A, pieces.constant)


def _as_affine(told: Told, A: Any, constant: Floats) -> Linear | Affine:
    """Linear where no constant stands in the expression: what its value is does not matter, so
    that rounds given one by one are of one kind.
    """
    aliases = [node for node in told.form.nodes if node.kind == "alias"]
    maps = [told.form.root, *(node.arguments[0] for node in aliases)]
    if not constant.any() and not any(each.has_constants for each in maps):
        return Linear._unchecked(C=A)
    return Affine._unchecked(A=A, b=_each_round(told, -constant)[:, 0].copy())


def _own_array(told: Told, argument: AffineMap, sign: float, *, constant: bool) -> Array | None:
    """The user's own array where the coefficients, or constants, are its numbers and nothing else,
    so that none is copied.
    """
    i, j, q, v, _ = argument.entries
    last = argument.width - 1
    mine = (j == last) == constant
    entry, q = (i if constant else j)[mine], q[mine]
    order = np.argsort(entry, kind="stable")
    n = told.form.size
    if len(q) != n or not (v[mine] == sign).all() or (entry[order] != np.arange(n)).any():
        return None
    for slot, rows in zip(told.form.slots, told.data, strict=True):
        if slot.shape == told.form.shape and (q[order] == slot.start + np.arange(n)).all():
            return np.asarray(rows)
    return None


def _each_round(told: Told, table: Floats) -> Floats:
    return np.broadcast_to(table, (told.rounds, table.shape[1]))


def _rows(told: Told, pieces: Pieces) -> Any:
    """One piece a round as an array with rounds first; sparse where it is large and few entries
    count.
    """
    n, rounds, shape = told.form.size, told.rounds, told.form.shape
    numbers, cols = _each_round(told, pieces.numbers), told.form.columns[pieces.cols]
    if len(shape) == 1 and rounds * n > _LARGE and 4 * len(cols) <= n:
        return _sparse(numbers, np.zeros(len(cols), dtype=np.int64), cols, 1, n)
    return _scattered(numbers, cols, n).reshape(rounds, *shape)


def _scattered(numbers: Floats, places: Int64s, size: int) -> Floats:
    """Rows of numbers added up at their places in rows of this size."""
    from scipy.sparse import csr_array

    ones = np.ones(len(places))
    table = csr_array((ones, (places, np.arange(len(places)))), shape=(size, len(places)))
    return np.ascontiguousarray((table @ numbers.T).T)


def _sparse(numbers: Floats, rows: Int64s, cols: Int64s, count: int, n: int) -> Any:
    """Rows of all rounds one below the other, from one table of places."""
    from scipy.sparse import csr_array

    rounds = len(numbers)
    below = rows[None, :] + count * np.arange(rounds)[:, None]
    places = (below.reshape(-1), np.tile(cols, rounds))
    return csr_array((numbers.reshape(-1), places), shape=(rounds * count, n))


def _piecewise(told: Told) -> Batch:
    """Maxima and what is affine beside them."""
    form, known = told.form, list[Pieces]()
    for node in form.nodes:
        known.append(_of_atom(told, node, known))
    base, terms = _terms(told, _coefficients(told, form.root), 0, known)
    several = [term for term in terms if term.size > 1]
    for term in terms:
        base = base if term.size > 1 else base.plus(term)
    if not several:
        return _as_affine(told, _rows(told, base), base.constant)
    total = int(np.prod([float(term.size) for term in several]))
    if len(several) > 1 and total > MOST_PIECES:
        raise _TooMany
    if len(several) == 1 and not len(base.cols):
        return _largest(told, several[0]._replace(constant=several[0].constant + base.constant))
    if total * form.size <= _FOLDED:
        whole = base
        for term in several:
            whole = whole.plus(term)
        return _largest(told, whole)
    parts = [_largest(told, term) for term in several]
    return Sum(_as_affine(told, _rows(told, base), base.constant), *parts)


def _of_atom(told: Told, node: Node, known: list[Pieces]) -> Pieces:
    """The pieces of each entry of an atom."""
    if node.kind == "alias":
        return _composed(told, node.arguments[0], known)
    if node.kind not in _ATOMS:
        raise _TooMany
    shapes = [tuple(each.shape) for each in node.atom.args]
    each = [_composed(told, argument, known) for argument in node.arguments]
    if node.kind in ("maximum", "minimum"):
        rule: Any = node.rule
        return _together([_spread(one, at) for one, at in zip(each, rule.places, strict=True)])
    (own,) = each
    if node.kind == "abs":
        return _both_signs(own)
    groups = groups_of(node.atom, shapes[0])
    owner = np.empty(groups.size, dtype=np.int64)
    owner[groups.reshape(-1)] = np.repeat(np.arange(len(groups)), groups.shape[1])
    if node.kind in ("max", "min"):
        return own._replace(owner=owner[own.owner])
    if node.kind == "norm_inf":
        own = _both_signs(own)
        return own._replace(owner=owner[own.owner])
    if node.kind == "norm1":
        own = _both_signs(own)
        return _together([_sum_of(own, group, g) for g, group in enumerate(groups)])
    return _sums_of(own, node.atom, groups)


def _composed(told: Told, argument: AffineMap, known: list[Pieces]) -> Pieces:
    """The pieces of an argument: those of each entry are one for each choice among the atoms'."""
    whole = _coefficients(told, argument)
    if not (whole.cols >= told.form.size).any():
        return whole
    if argument.count > MOST_PIECES**2:
        raise _TooMany
    found = []
    for entry in range(argument.count):
        base, terms = _terms(told, whole, entry, known)
        for term in terms:
            if base.size * term.size > MOST_PIECES:
                raise _TooMany
            base = base.plus(term)
        found.append(base._replace(owner=np.full(base.size, entry)))
    return _together(found)


def _terms(
    told: Told, whole: Pieces, entry: int, known: list[Pieces]
) -> tuple[Pieces, list[Pieces]]:
    """What is affine in x in an entry of an argument, and the atoms that are added to it, times
    their weights. cvxpy's rules say that the weight of a maximum is not negative where the largest
    is asked for, and that of a minimum not positive, which makes it a maximum.
    """
    own = whole.of(np.array([entry]), np.zeros(1, dtype=np.int64))
    inner = own.cols < told.form.size
    base = own._replace(rows=own.rows[inner], cols=own.cols[inner], numbers=own.numbers[:, inner])
    terms = list[Pieces]()
    for place in np.flatnonzero(~inner).tolist():
        column, weights = int(own.cols[place]), own.numbers[:, place]
        if len(weights) > 1 and (weights == weights[0]).all():
            weights = weights[:1]
        if len(terms) > MOST_PIECES:
            raise _TooMany
        at = next(k for k, node in enumerate(told.form.nodes) if node.start <= column < node.stop)
        node, pieces = told.form.nodes[at], known[at]
        mine = np.flatnonzero(pieces.owner == column - node.start)
        term = pieces.of(mine, np.zeros(len(mine), dtype=np.int64)).times(weights)
        terms.append(term)
    return base, terms


def _spread(own: Pieces, places: Int64s) -> Pieces:
    """The pieces of an argument for entries of the atom, each of which takes one of its."""
    order = np.argsort(own.owner, kind="stable")
    starts = np.searchsorted(own.owner[order], np.arange(own.owner.max(initial=0) + 2))
    counts = (starts[1:] - starts[:-1])[places]
    owner = np.repeat(np.arange(len(places)), counts)
    within = np.arange(len(owner)) - np.repeat(np.cumsum(counts) - counts, counts)
    return own.of(order[starts[places][owner] + within], owner)


def _both_signs(own: Pieces) -> Pieces:
    _require_one_each(own)
    return _together([own, own.times(-np.ones(1))])


def _require_one_each(own: Pieces) -> None:
    if own.size != len(np.unique(own.owner)):
        raise _TooMany  # a maximum within, whose sign cvxpy knows


def _sum_of(own: Pieces, group: Int64s, owner: int) -> Pieces:
    """The sum of some entries."""
    if 2.0 ** len(group) > MOST_PIECES:
        raise _TooMany
    found = None
    for entry in group.tolist():
        mine = np.flatnonzero(own.owner == entry)
        one = own.of(mine, np.zeros(len(mine), dtype=np.int64))
        found = one if found is None else found.plus(one)
    assert found is not None
    return found._replace(owner=np.full(found.size, owner))


def _sums_of(own: Pieces, atom: Any, groups: Int64s) -> Pieces:
    """The sums of as many entries as the largest are."""
    _require_one_each(own)
    k, n = atom.k, groups.shape[1]
    if len(groups) > 1 or int(k) != k or comb(n, min(int(k), n)) > MOST_PIECES:
        raise _TooMany
    found = []
    for choice in combinations(groups[0].tolist(), min(int(k), n)):
        none = np.zeros(1, dtype=np.int64)
        one = own.of(np.array(choice[:1]), none)
        for entry in choice[1:]:
            one = one.plus(own.of(np.array([entry]), none))
        found.append(one)
    return _together(found)


def _largest(told: Told, pieces: Pieces) -> Batch:
    """The largest of these, as a batch."""
    form, rounds, k = told.form, told.rounds, pieces.size
    shape, n = form.shape, form.size
    if (limits := _capacities(told, pieces)) is not None:
        return limits
    b = np.ascontiguousarray(-_each_round(told, pieces.constant))
    cols = form.columns[pieces.cols]
    shared = len(pieces.numbers) == 1
    if rounds * k * n > _LARGE:
        if len(shape) > 1:
            raise _TooMany
        return MaxAffine._unchecked(A=_sparse(pieces.numbers, pieces.rows, cols, k, n), b=b)
    A = _scattered(pieces.numbers, pieces.rows * n + cols, k * n)
    A = np.repeat(A, rounds, axis=0) if shared else A
    return MaxAffine._unchecked(A=A.reshape(rounds, k, *shape), b=b)


def _capacities(told: Told, pieces: Pieces) -> Capacity | None:
    """max_i x_i - c_i, where it is that."""
    form, n = told.form, told.form.size
    if pieces.size != n or len(pieces.cols) != n or not (pieces.numbers == 1.0).all():
        return None
    if (np.sort(pieces.rows) != np.arange(n)).any() or len(np.unique(pieces.cols)) != n:
        return None
    first = form.nodes[0]
    if len(form.nodes) == 1 and first.kind == "max" and len(form.root.entries.v) == 1:
        own = _own_array(told, first.arguments[0], -1.0, constant=True)
        if own is not None and (pieces.rows == pieces.cols).all():
            return Capacity._unchecked(c=own)
    c = np.empty((told.rounds, n))
    c[:, form.columns[pieces.cols]] = -pieces.constant[:, pieces.rows]
    return Capacity._unchecked(c=c.reshape(told.rounds, *form.shape))


def _quadratic(told: Told) -> Batch | None:
    """1/2 <x, P x> + <q, x> + r of squares of affine arguments, where points are vectors and the
    matrices no large table.
    """
    form, rounds, n = told.form, told.rounds, told.form.size
    if len(form.shape) != 1 or any(not _is_square(node, n) for node in form.nodes):
        return None
    root = _coefficients(told, form.root)
    inner = root.cols < n
    P = np.zeros((1, n, n))
    q, r = np.zeros((rounds, n)), np.zeros(rounds)
    q[:, root.cols[inner]] += root.numbers[:, inner]
    r += root.constant[:, 0]
    for node in form.nodes:
        pieces = _coefficients(told, node.arguments[0])
        numbers = len(pieces.numbers) * pieces.size * n
        if (pieces.cols >= n).any() or max(numbers, len(pieces.numbers) * n * n) > _LARGE:
            return None
        A = np.zeros((len(pieces.numbers), pieces.size, n))
        A[:, pieces.rows, pieces.cols] = pieces.numbers
        M = _weights_of_squares(told, node, root, pieces.size)
        if M is None or max(len(M), len(A)) * n * n > _LARGE:
            return None
        MA = M[:, :, None] * A if M.ndim == 2 else M @ A
        P = P + 2.0 * np.swapaxes(A, 1, 2) @ MA
        slopes = np.einsum("tkn,tk->tn", *_same_rounds(MA, pieces.constant))
        q += 2.0 * slopes
        c = pieces.constant
        Mc = M * c if M.ndim == 2 else (M @ c[:, :, None])[:, :, 0]
        r += (c * Mc).sum(axis=1)
    P = 0.5 * (P + np.swapaxes(P, 1, 2))
    moves = form.root.moves(n, form.width - 1) or any(
        node.arguments[0].moves(0, n) or any(each.moves(0) for each in node.arguments[1:])
        for node in form.nodes
    )
    P = np.ascontiguousarray(np.broadcast_to(P, (rounds, n, n))) if moves else P[0]
    return Quadratic._unchecked(P=P, q=q, r=r, exp_concavity=None)


def _same_rounds(one: Floats, other: Floats) -> tuple[Floats, Floats]:
    (rounds,) = np.broadcast_shapes((len(one),), (len(other),))
    return (
        np.broadcast_to(one, (rounds, *one.shape[1:])),
        np.broadcast_to(other, (rounds, *other.shape[1:])),
    )


def _is_square(node: Node, n: int) -> bool:
    if node.kind == "quad_over_lin":
        return getattr(node.atom, "axis", None) is None and not node.arguments[1].has_variables
    if node.kind == "QuadForm":
        return not node.arguments[1].has_variables
    if node.kind in ("power", "Power", "PowerApprox"):
        p = node.atom.p
        return float(p.value if hasattr(p, "value") else p) == 2.0
    return False


def _weights_of_squares(told: Told, node: Node, root: Pieces, count: int) -> Floats | None:
    """What the squares of a node's argument are weighted with: numbers (rounds or 1, entries), or
    matrices; None where some weight is negative.
    """
    mine = np.flatnonzero((root.cols >= node.start) & (root.cols < node.stop))
    w = np.zeros((len(root.numbers), node.stop - node.start))
    w[:, root.cols[mine] - node.start] = root.numbers[:, mine]
    if (w < 0.0).any():
        return None
    if node.kind == "QuadForm":
        form = _coefficients(told, node.arguments[1]).constant
        M = form.reshape(-1, count, count)
        return np.asarray(w[:, :, None] * 0.5 * (M + np.swapaxes(M, 1, 2)))
    if node.kind == "quad_over_lin":
        s = _coefficients(told, node.arguments[1]).constant
        if not (s > 0.0).all():
            return None
        return np.repeat(w / s, count, axis=1)
    return w
