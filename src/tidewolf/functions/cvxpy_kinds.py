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

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from tidewolf.core.batch import Batch
from tidewolf.core.types import Floats, Shape
from tidewolf.functions.affine import Affine
from tidewolf.functions.capacity import Capacity
from tidewolf.functions.linear import Linear
from tidewolf.functions.max_affine import MaxAffine
from tidewolf.functions.quadratic import Quadratic

MOST_PIECES = 64
"""Pieces that a sum of several maxima may have."""
_LARGE, _MOST = 1 << 24, 1 << 27
"""Numbers from which on a table that all rounds share is sparse, and the most of a dense one."""
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
        from scipy.sparse import csr_array

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
        shape = (self.count, self.width)
        self.fixed = csr_array((v[free], (row[free], column[free])), shape=shape)
        self.places, at = np.unique(row[own] * self.width + column[own], return_inverse=True)
        self.table = csr_array((v[own], (at, q[own])), shape=(len(self.places), last))

    def moving(self, start: int, stop: int) -> Any:
        """Which places are in these columns."""
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
    """An atom, the tables of its arguments, and the columns of its variable."""

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
    """An expression whose atoms are replaced by variables, and the atoms."""

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
        """The expression with these values of its parameters; NotBuiltIn if it is no such kind."""
        size = self.root.table.shape[1]  # of the parameters, the first index first, as in cvxpy
        p = np.concatenate([*(rows.T.ravel() for rows in data), []]).reshape(size, rounds)
        names = {atom.name for atom in self.atoms}
        if not names:
            return self._affine(p, data)
        if names.issubset(_MAXIMA):
            return self._capacity(p, data) or self._max_affine(p)
        if names.intersection(_MAXIMA) or len(self.shape) > 1:
            raise NotBuiltIn
        return self._quadratic(p)

    def _affine(self, p: Floats, data: Sequence[Any]) -> Batch:
        A, b = (self.root.columns(p, *ends)[:, 0] for ends in ((0, self.n), (self.n, self.n + 1)))
        C = _own(_points(_each(A, p), self.shape), data)
        if not self.root.moving(self.n, self.n + 1).any() and not b.any():
            return Linear._unchecked(C=C)
        return Affine._unchecked(A=C, b=np.ascontiguousarray(_each(-b[:, 0], p)))

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
        return Capacity._unchecked(c=_own(_points(_each(-b, p), self.shape), data))

    def _max_affine(self, p: Floats) -> Batch:
        from scipy.sparse import csr_array

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
            return MaxAffine._unchecked(A=csr_array(A[0]), b=b)
        return MaxAffine._unchecked(A=_points(_each(A, p), self.shape), b=b)

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
        return Quadratic._unchecked(P=P, q=q, r=r, exp_concavity=None)


def _replaced(e: Any, found: list[tuple[Any, Any]]) -> Any:
    """The expression with variables in place of its atoms, which are added to those found."""
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
    """The sums of each row of one and each row of the other."""
    count = one.shape[1] * other.shape[1]
    rounds = max(len(one), len(other)) if len(one) and len(other) else 0
    few = count <= MOST_PIECES or one.shape[1] == 1
    if not few or float(count) * rounds * one.shape[2] > _MOST:
        raise NotBuiltIn
    return (one[:, :, None] + other[:, None]).reshape(rounds, count, one.shape[2])


def _each(found: Floats, p: Floats) -> Floats:
    return np.broadcast_to(found, (p.shape[1], *found.shape[1:]))


def _points(found: Floats, shape: Shape) -> Floats:
    """Points with entries in cvxpy's order, the first index first, as points."""
    order = [*range(found.ndim - 1), *range(found.ndim + len(shape) - 2, found.ndim - 2, -1)]
    return np.ascontiguousarray(found.reshape(*found.shape[:-1], *shape[::-1]).transpose(order))


def _own(found: Floats, data: Sequence[Any]) -> Any:
    """The user's own array in place of one with the same numbers."""
    return next((rows for rows in data if np.array_equal(rows, found)), found)
