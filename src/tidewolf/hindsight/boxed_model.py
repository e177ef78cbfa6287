"""Best points of single rounds over a set of equations and boxes, several headrooms at once
(kernels/boxed_dual.py).

    min <c, x> + sum_k z_k   over   x in K,  <a_i, x> <= b_i - k h_i + s,  <d_kj, x> - e_kj <= z_k

as a program in v, x = origin + unit v, whose variables all lie between 0 and an upper bound:

    x_i <= b_i                a bound on v_i
    <a, x> <= b               a v - y = least value of a v,   y at most what b leaves
    <d, x> - e <= z           d v - z + w = e,   w >= 0 and z within what the box allows

So headrooms and rounds with the same rows differ in bounds and costs alone. Rows of the set's own
keep their inverse from round to round; if rounds have rows of their own, the basis is kept, and
inverted again.
"""

from copy import copy
from dataclasses import replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Self, final

import numpy as np

from tidewolf.core import arrays, checkpoint, errors, sparse
from tidewolf.core.types import Array, Bools, Floats, Int64s
from tidewolf.hindsight.best_point import Objective
from tidewolf.hindsight.task import sums
from tidewolf.kernels.boxed_dual import solve_boxed
from tidewolf.sets.base import LinearDescription, Polyhedral
from tidewolf.sets.capacitated_flow import CapacitatedFlow, FlowNetwork, cut_capacity, violated_cut
from tidewolf.sets.flows import DagFlows
from tidewolf.sets.highs import HalfSpaces

# Rows of a program with a dense inverse at most.
MOST_ROWS = 200
MOST_ENTRIES = 20_000
# The place of upper bounds in the data of a program.
_TOP = 4
# Roundings that a program may be off by; a member may be off by four times that.
_ACCURACY = 2.5e3


@final
class BoxedBasis(checkpoint.Stored):
    """Where the next program starts: the variables in the basis, the inverse of their columns,
    and the pivots since it was made, -1 if it must be made again. Never changed, though its arrays
    are writeable for the kernel.
    """

    tag: ClassVar = "boxed basis"

    def __init__(self, columns: int, basis: Int64s, inverse: Floats, age: int) -> None:
        self.columns, self.basis, self.inverse, self.age = columns, basis, inverse, age

    def parts(self) -> dict[str, Any]:
        inverse = self.inverse if self.age >= 0 else np.zeros((0, 0))
        return {"columns": self.columns, "basis": self.basis, "inverse": inverse, "age": self.age}

    @classmethod
    def restored(cls, parts: dict[str, Any]) -> Self:
        columns, basis, inverse, age = (parts[k] for k in ("columns", "basis", "inverse", "age"))
        m, kinds = len(basis), (basis.dtype, type(age)) == (np.int64, int)
        if (
            not kinds
            or len({*basis.tolist()} & {*range(columns)}) != m
            or inverse.shape != ((m, m) if age >= 0 else (0, 0))
            or not np.isfinite(inverse).all()
        ):
            raise ValueError("a basis has different variables, and the inverse of their columns")
        return cls(columns, basis.copy(), inverse.copy() if age >= 0 else np.zeros((m, m)), age)


class BoxedProgram(NamedTuple):
    data: Any
    cold: BoxedBasis
    more_costs: Floats


class BoxedModel:
    def __init__(self, K: Any, description: LinearDescription) -> None:
        self.K, self._description = K, description
        self._origin = description.lower + (0.0 if description.shift is None else description.shift)

    @classmethod
    def of(cls, K: Any) -> Self | None:
        here = type(K.center) is np.ndarray and K.center.dtype == np.float64
        if not here or K.center.size > MOST_ENTRIES or not isinstance(K, Polyhedral):
            return None
        d = K.description()
        rows = sum(len(b) for b in (d.b_eq, d.b_ub) if b is not None)
        finite = np.isfinite(d.lower).all() and np.isfinite(d.upper).all()
        if d.lift is not None or rows > MOST_ROWS or not finite:
            return None
        return cls(K, d)

    def solve(
        self,
        loss: Objective,
        limits: HalfSpaces,
        rooms: Floats | None,
        headrooms: Floats,
        start: BoxedBasis | None,
        out: Bools | None = None,
    ) -> tuple[tuple[Array, ...], BoxedBasis] | None:
        """The best point for each headroom, the multiples of `rooms` that limits keep; None if it
        is not found here. Entries that are `out` are 0, which must be their lower bound.
        """
        own = limits.A is None and not loss.maxima
        extra = len(loss.e) + (0 if limits.A is None else len(limits.b))
        if len(self._set_rows.b) + extra > MOST_ROWS or (
            out is not None and self._origin[out].any()
        ):
            return None
        program = self.plain if own else self._with_rows(loss, limits)
        c = np.append(loss.c, program.more_costs)
        if out is not None:
            top = program.data[_TOP].copy()
            top[: len(out)][out] = 0.0
            program = program._replace(data=(*program.data[:_TOP], top, *program.data[_TOP + 1 :]))
        cold, P, n = program.cold, len(headrooms), len(self._origin)
        if start is None or start.columns != cold.columns or len(start.basis) != len(cold.basis):
            start = cold
        if rooms is None:
            rooms, headrooms = limits.b, 0.0 * headrooms
        # copies, as the kernel wants them: writeable
        sources = [np.array(part, float) for part in (c, limits.b, rooms)]
        points, shifts = np.empty((P, n)), np.empty(P)
        numbers = np.empty(P + 1, dtype=np.int64)
        basis, inverse = np.empty_like(cold.basis), np.empty_like(cold.inverse)
        solved = (
            solve_boxed(
                *program.data, *sources, headrooms, first.basis, first.inverse,
                first.age if own else -1, basis, inverse, points, shifts, numbers, self.tol,
            )
            for first in (start, cold)
        )  # fmt: skip
        if not any(solved):
            return None
        shaped = arrays.frozen(points).reshape((P, *self.K.shape))
        age = int(numbers[P]) if own else -1
        return tuple(shaped), BoxedBasis(cold.columns, basis, inverse, age)

    @cached_property
    def _unit(self) -> float:
        return float(arrays.power_of_two((self._description.upper - self._description.lower).max()))

    @cached_property
    def _top(self) -> Floats:
        return (self._description.upper - self._description.lower) / self._unit

    @cached_property
    def tol(self) -> float:
        size = max(float(self.K.radius), float(np.abs(arrays.to_numpy(self.K.center)).max()))
        return max(_ACCURACY * float(np.finfo(float).eps) * size / self._unit, 1e-14)

    @cached_property
    def _set_rows(self) -> "_Rows":
        d, rows = self._description, _Rows(self._top)
        for A, b, slack in ((d.A_eq, d.b_eq, False), (d.A_ub, d.b_ub, True)):
            if A is not None and b is not None and len(b):
                row, column, value = _entries(A)
                left = (b - sums(row, value * d.lower[column], len(b))) / self._unit
                sizes = rows.add(row, column, value, left)
                if slack:
                    least = sums(row, np.minimum(value, 0.0) * self._top[column], len(b))
                    rows.add_slacks(1.0, np.maximum(left - least, 0.0) / sizes)
        return rows

    @cached_property
    def plain(self) -> BoxedProgram:
        return self._program(
            self._set_rows, 0, self._origin, np.full(len(self._top), 1.0 / self._unit), np.zeros(0)
        )

    def _with_rows(self, loss: Objective, limits: HalfSpaces) -> BoxedProgram:
        rows, n, unit, more = copy(self._set_rows), len(self._top), self._unit, np.zeros(0)
        first, base, give = 0, self._origin, np.full(n, 1.0 / unit)
        if loss.maxima:
            row, column, value = _entries(loss.d)
            at = sums(row, value * self._origin[column], len(loss.e)) - loss.e
            ends = unit * value * self._top[column]
            least, most = (sums(row, f(ends, 0.0), len(at)) for f in (np.minimum, np.maximum))
            low, high = np.full(loss.maxima, -np.inf), np.full(loss.maxima, -np.inf)
            np.maximum.at(low, loss.which, at + least)
            np.maximum.at(high, loss.which, at + most)
            size, rows_ = float(arrays.power_of_two((high - low).max())), np.arange(len(at))
            z = rows.add_columns((high - low) / size)
            more = np.concatenate([np.zeros(z[0] - n), np.full(len(z), size / unit)])
            b = low[loss.which] - at
            sizes = rows.add(
                np.concatenate([row, rows_]),
                np.concatenate([column, z[loss.which]]),
                np.concatenate([unit * value, np.full(len(at), -size)]),
                b,
            )
            rows.add_slacks(1.0, (b - least + (high - low)[loss.which]) / sizes)
        if limits.A is not None:
            row, column, value = _entries(limits.A)
            ends, count = value * self._top[column], len(limits.b)
            least, most = (sums(row, f(ends, 0.0), count) for f in (np.minimum, np.maximum))
            sizes = rows.add(row, column, value, least)
            first = int(rows.add_slacks(-1.0, (most - least) / sizes)[0]) if count else 0
            base = sums(row, value * self._origin[column], count) + unit * least
            give = 1.0 / (unit * sizes)
        return self._program(rows, first, base, give, more)

    def _program(
        self, rows: "_Rows", first: int, base: Floats, give: Floats, more: Floats
    ) -> BoxedProgram:
        columns, top, basis = rows.finished()
        limited = (first, np.array(base), give, self._origin, self._unit)
        cold = BoxedBasis(len(top), basis, np.zeros((len(basis), len(basis))), -1)
        return BoxedProgram((*columns, rows.b.copy(), top, *limited), cold, more)


class _Rows:
    def __init__(self, top: Floats) -> None:
        self.entries: tuple[tuple[Int64s, Int64s, Floats], ...] = ()
        self.b, self.top, self.basis = np.zeros(0), top, np.zeros(0, dtype=np.int64)

    def add_columns(self, top: Floats) -> Int64s:
        self.top = np.concatenate([self.top, top])
        return np.arange(len(self.top) - len(top), len(self.top))

    def add(self, row: Int64s, column: Int64s, value: Floats, b: Floats) -> Floats:
        """Equations; what each was divided by."""
        most = np.zeros(len(b))
        np.maximum.at(most, row, np.abs(value))
        sizes: Floats = arrays.power_of_two(most)
        self.entries += ((len(self.b) + row, column, value / sizes[row]),)
        self.b = np.concatenate([self.b, b / sizes])
        self.basis = np.concatenate([self.basis, np.full(len(b), -1)])
        return sizes

    def add_slacks(self, sign: float, top: Floats) -> Int64s:
        """A variable with this factor for each of the last rows, in the first basis."""
        first, columns = len(self.b) - len(top), self.add_columns(top)
        self.entries += ((np.arange(first, len(self.b)), columns, np.full(len(top), sign)),)
        self.basis = np.concatenate([self.basis[:first], columns])
        return columns

    def finished(self) -> tuple[Any, Floats, Int64s]:
        """The matrix by columns, with a variable that is always 0 for each row without a slack,
        upper bounds, and the first basis.
        """
        whole, basis, alone = copy(self), self.basis.copy(), np.flatnonzero(self.basis < 0)
        columns = whole.add_columns(np.zeros(len(alone)))
        whole.entries += ((alone, columns, np.ones(len(alone))),)
        basis[alone] = columns
        rows, places, values = map(np.concatenate, zip(*whole.entries, strict=True))
        # whole numbers of 16 bits are sorted by their digits
        order = np.argsort(places.astype(np.min_scalar_type(len(whole.top))), kind="stable")
        starts = np.zeros(len(whole.top) + 1, dtype=np.int64)
        np.cumsum(np.bincount(places, minlength=len(whole.top)), out=starts[1:])
        return (starts, rows[order], values[order]), whole.top.copy(), basis


def _entries(A: Any) -> tuple[Int64s, Int64s, Floats]:
    starts, places, values = sparse.nonzeros(A.tocsr() if sparse.is_sparse(A) else np.asarray(A))
    rows = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    return rows, places.astype(np.int64), values.astype(np.float64, copy=False)


# Cheapest flows within the capacities of single rounds, on graphs with many nodes, by the network
# simplex (kernels/network_simplex.py).
#
#     min <c, x>   over   flows x,  lower <= x <= min(upper, capacity - k room + s)
#
# s = 0 if a flow exists, else the least s for which one does: a cut that is too small for its
# supply by v, with q arcs out of it that s widens, shows that s must grow by v/q at least.

_CUTS = 100


class FlowModel:
    def __init__(self, K: Any, network: FlowNetwork, entries: Any) -> None:
        self.K, self.network, self.entries = K, network, entries
        self._others = np.delete(np.arange(K.shape[0]), entries)

    @classmethod
    def of(cls, K: Any) -> Self | None:
        if type(K.center) is not np.ndarray or K.center.dtype != np.float64:
            return None
        if isinstance(K, CapacitatedFlow):
            return cls(K, K.network, np.arange(K.shape[0]))
        if not isinstance(K, DagFlows):
            return None
        entries, tails, heads = K._arcs
        bounds = np.zeros(len(entries)), K._upper[entries]
        nodes = tuple(range(len(K._supply)))
        return cls(K, FlowNetwork(tails, heads, *bounds, K._supply.copy(), nodes), entries)

    def solve(
        self, c: Floats, capacities: Floats, rooms: Floats | None, headrooms: Floats, tree: Any
    ) -> tuple[tuple[Array | None, ...], Array | None]:
        """The cheapest flow for each headroom, None if none was found, each from the basis of the
        one before it; and the last basis.
        """
        points = list[Array | None]()
        for k in headrooms.tolist():
            kept = capacities if rooms is None or k == 0.0 else capacities - k * rooms
            try:
                x, tree = self._cheapest(c[self.entries], kept, tree)
            except errors.SolverFailed:
                x = None
            points.append(x)
        return tuple(points), tree

    def _cheapest(self, c: Floats, capacities: Floats, tree: Any) -> tuple[Array, Array]:
        net, kept = self.network, capacities[self.entries]
        # entries that never carry anything have capacities, too
        s = max(
            0.0, float((net.lower - kept).max()), -float(capacities[self._others].min(initial=0.0))
        )
        for _ in range(_CUTS):
            upper = np.maximum(net.lower, np.minimum(net.upper, kept + s))
            tight = replace(net, upper=upper)
            try:
                found = tight.cheapest(c, tree)
            except errors.SolverFailed:
                cut = violated_cut(tight)
                if cut is None:
                    raise
                out = cut[net.tails] & ~cut[net.heads] & (kept + s < net.upper)
                short = float(net.supply[cut].sum()) - cut_capacity(tight, cut)
                if not out.any():
                    raise
                s += max(short, tight.nothing(upper)) / np.count_nonzero(out)
                continue
            x = np.zeros(self.K.shape)
            x[self.entries] = found.x
            return arrays.frozen(x), found.basis
        raise errors.SolverFailed(f"No flow was found within {_CUTS} cuts.")
