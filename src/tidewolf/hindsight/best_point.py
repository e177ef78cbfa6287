"""The best point of some rounds, by linear programming (HiGHS): what a practitioner would reach
for.

    minimise f(x)   over   x in K,  <a_i, x> <= b_i - h_i for every i,
    f the sum of the losses, a_i and b_i the limits' half-spaces, h_i >= 0 what is kept in hand

f = <c, x> + sum_k max_j (<d_kj, x> - e_kj): a variable for each maximum, a row for each piece.
If no point satisfies every constraint, the worst violation is made least first: s = min { s : x in
K, <a_i, x> - b_i + h_i <= s for every i }, and then b_i + s stands in place of b_i. Rows, costs and
points are brought to size 1 for the solver, and what is mostly across aff(K) is taken within it
first, <a + k 1, x> <= b + k on a simplex being one limit for every k; an answer that is a member
only up to its tolerances is projected (exact.py).

Capacities are bounds on variables where the variables are the entries of x; other limits are rows.
The model is changed in place and starts from the basis of an earlier answer (sets/highs.py).

`LinearProgramming` is the solver of a task in hindsight, for a set with a linear description.

    min { <c, x> : x in K, A x <= b }                                        linear losses
    min { sum_t s_t : x in K, A x <= b, <c_i, x> - d_i <= s_t for the pieces i of round t }

and, if there is no such point, min { s : x in K, <a_i, x> - b_i <= s for every i }, whose
multipliers weigh the rows so that their average is above 0 on all of K.

Very many rows, such as every link in every round, are generated, as few of them bind:

    x_k   =  argmin { <c, x> : x in K, <a_i, x> <= b_i for the rows i in R_k }
    R_k+1 =  R_k and the rows that x_k violates most of those that say the same of other rounds

Rows are only ever added, so this ends. If x_k violates none it is best under all of them, with the
multipliers of R_k and 0 elsewhere. The next program starts from the basis of the last, in which new
rows are basic. If no point satisfies R_k none satisfies them all, and weights of R_k show it.
"""

from functools import cached_property
from typing import Any, NamedTuple, cast, final

import numpy as np

from tidewolf.core import oracle, sparse
from tidewolf.core.arrays import frozen, like, power_of_two, require_finite, to_numpy
from tidewolf.core.batch import Batch, LinearTotal, PiecewiseLinear
from tidewolf.core.errors import NotSupported, SolverFailed
from tidewolf.core.feedback import FullInformation, require_full_information
from tidewolf.core.lazy import piqp, sp
from tidewolf.core.types import Array, Bools, Floats, Int64s
from tidewolf.core.vertices import Vertex
from tidewolf.functions.linear import Capacity
from tidewolf.functions.loads import LoadRows
from tidewolf.hindsight.exact import ExactProjection
from tidewolf.hindsight.task import ACROSS, ROUNDING, Solution, Task, flattened, parts_of, sums
from tidewolf.sets.base import ConvexSet, LinearDescription, Polyhedral, membership_tolerance
from tidewolf.sets.highs import TOLERANCE, Basis, HalfSpaces, Solved, WarmModel

# How much more than the least worst violation is allowed, at size 1, so that the solver finds a
# point again.
_ROOM = 1e-9
_STEPS = 40
EVEN_ACCURACY = 1e-8
# From so many pieces on HiGHS is asked for its interior-point method.
MANY = 5_000
_VIOLATED = 2.0 * TOLERANCE
_WHO = "The best point in hindsight"
# HiGHS's status of a row that no point needs to touch.
_BASIC = 1


class Bases(NamedTuple):
    """Where the next program starts: with the limits, and with a violation of them."""

    kept: Basis | None = None
    breached: Basis | None = None


COLD = Bases()


class Best(NamedTuple):
    """A best point, read-only, where the next program starts, how many were solved, and how the
    last ones ended: the one with the limits, and the one that made their violation least, if any.
    """

    x: Array
    bases: Bases
    solves: int
    end: Solved
    breach: Solved | None


class Objective(NamedTuple):
    """<c, x> + sum_k max_j (<d_kj, x> - e_kj) on flattened points, up to a constant: row i of
    (d, e) is a piece of the maximum `which[i]`, of `maxima` in all.
    """

    c: Floats
    d: Any
    e: Floats
    which: Any
    maxima: int


class LimitRows(NamedTuple):
    A: Any
    # what each row is multiplied by so that all of them have one unit, in which the largest is 1; 1
    # for a row of zeros
    sizes: Floats
    shift: Floats
    size: float


class Program(NamedTuple):
    """Minimise <c, v> under pieces, rows v <= b and lower <= v <= upper; without rows v_i <= b_i
    for the first entries. A unit of the limits is 1/`unit` of b, one of the loss 1/`cost_unit` of
    <c, v> at equal points.
    """

    c: Floats
    lower: Floats
    upper: Floats
    pieces: HalfSpaces | None
    rows: LimitRows | None
    b: Floats
    unit: float
    cost_unit: float


class BestPoint:
    method = "simplex"

    def __init__(self, K: Any, who: str) -> None:
        if not isinstance(K, Polyhedral):
            raise NotSupported(f"{who} solves linear programs, not over {type(K).__name__}.")
        self.K, self.who = cast(ConvexSet, K), who

    @cached_property
    def _description(self) -> LinearDescription:
        return cast(Polyhedral, self.K).description()

    def __call__(self, losses: Batch, constraints: Batch) -> Array:
        return self.best(self.prepared(objective(losses, self.who), half_spaces(constraints))).x

    def prepared(self, loss: Objective, limits: HalfSpaces) -> Program:
        d, more = self._description, np.full(loss.maxima, np.inf)
        lower, upper = np.append(d.lower / self.unit, -more), np.append(d.upper / self.unit, more)
        c, pieces, cost = self._costs(loss)
        if limits.A is None and d.lift is None and d.shift is None:
            b = limits.b / self.unit
            return Program(c, lower, upper, pieces, None, b, self.unit, cost)
        rows = self._capacity_rows if limits.A is None else self._lifted(limits.A)
        b, unit = (limits.b - rows.shift) / rows.size / self.unit, rows.size * self.unit
        if loss.maxima:
            rows = rows._replace(A=sparse.beside(rows.A, np.zeros((len(b), loss.maxima))))
        return Program(c, lower, upper, pieces, rows, b, unit, cost)

    def without(self, program: Program, out: Bools) -> Program | None:
        """The program with 0 in these flat entries; None if entries are sums of variables, which
        no bounds can hold at 0.
        """
        d, lower, upper = self._description, program.lower.copy(), program.upper.copy()
        shift = np.zeros(len(out)) if d.shift is None else d.shift
        rows = sp.csr_array(sp.eye_array(len(out)) if d.lift is None else d.lift)[out, :]
        rows.eliminate_zeros()
        counts = np.diff(rows.indptr)
        if counts.max(initial=0) > 1:
            return None
        fixed = -shift[out][counts > 0] / rows.data / self.unit
        lower[rows.indices] = upper[rows.indices] = fixed
        return program._replace(lower=lower, upper=upper)

    def best(self, program: Program, headroom: Floats | None = None, bases: Bases = COLD) -> Best:
        """A best point, limit i kept with `headroom[i]` to spare, from where another program ended;
        `prepared` made the program.
        """
        if headroom is not None:
            program = program._replace(b=program.b - headroom / program.unit)
        found, worst = self.feasible_best(program, 0.0, bases.kept), None
        if found is None and (worst := self.breached(program, bases.breached)) is not None:
            found = self.feasible_best(program, max(0.0, float(worst.v[-1])) + _ROOM, bases.kept)
        if found is None:
            raise SolverFailed(f"HiGHS did not find the best point of {self.K!r} for these rounds.")
        bases = Bases(found.basis, bases.breached if worst is None else worst.basis)
        return Best(
            self.member(self.flat_point(found)), bases, 1 if worst is None else 3, found, worst
        )

    def most_even(
        self, loss: Objective, limits: HalfSpaces, headroom: Floats | None, best: Best
    ) -> Array:
        """The point nearest to the center that costs no more, and violates limits no more, than a
        best point; that point itself if the loss is a sum of several maxima, or none is found.
        """
        if loss.maxima > 1 or (loss.maxima and loss.c.any()):
            return best.x
        x, n = to_numpy(best.x).reshape(-1).astype(np.float64), len(loss.c)
        if not loss.maxima:
            loss = Objective(0.0 * loss.c, loss.c[None], np.zeros(1), np.zeros(1, dtype=int), 1)
        A, kept = limits.A, limits.b if headroom is None else limits.b - headroom
        A = np.eye(n) if A is None else A
        kept = kept + max(0.0, float((A @ x - kept).max(initial=0.0)))
        program = self.prepared(loss, HalfSpaces(A, kept))
        level = float((loss.d @ x - loss.e).max()) / (program.cost_unit * self.unit)
        center = to_numpy(self.K.center).reshape(-1).astype(np.float64)
        found = self.nearest(program, center, level + _ROOM, self.K.radius or 1.0, TOLERANCE)
        return best.x if found is None else self.member(self.flat_point(found))

    def flat_point(self, found: Solved) -> Floats:
        d = self._description
        u = np.clip(self.unit * found.v[: len(d.lower)], d.lower, d.upper)
        x = u if d.lift is None else d.lift @ u
        return np.asarray(x if d.shift is None else x + d.shift)

    def multipliers(self, program: Program, found: Solved) -> tuple[Floats, Floats]:
        """Those of the pieces, which sum to 1 for each maximum, and of the limits, in the units of
        losses and limits as given; rows were given, not capacities.
        """
        pieces = 0 if program.pieces is None else len(program.pieces.b)
        prices = np.maximum(0.0, -found.multipliers)
        assert program.rows is not None
        units = program.unit * program.rows.sizes / (program.cost_unit * self.unit)
        return prices[:pieces], prices[pieces:] / units

    def _costs(self, loss: Objective) -> tuple[Floats, HalfSpaces | None, float]:
        """The costs of all variables at size 1, a row for each piece of a maximum, and what a loss
        is divided by.
        """
        D = sparse.compact(loss.d) if loss.maxima else np.zeros((0, len(loss.c)))
        size = float(power_of_two(max(np.abs(loss.c).max(), sparse.largest(D))))
        c, (D, shift) = self._on_variables(loss.c[None] / size)[0], self._on_variables(D / size)
        again = float(power_of_two(max(sparse.largest(c), sparse.largest(D))))
        costs, count = c[0] / again, len(loss.e)
        if not loss.maxima:
            return costs, None, size * again
        places = (np.arange(count), loss.which)
        which = sp.csr_array((-np.ones(count), places), shape=(count, loss.maxima))
        e = (loss.e / size - shift) / (again * self.unit)
        rows = HalfSpaces(sparse.beside(sparse.compact(D) / again, sparse.compact(which)), e)
        return np.append(costs, np.ones(loss.maxima)), rows, size * again

    @cached_property
    def _lift(self) -> Any:
        return sparse.compact(self._description.lift)

    @cached_property
    def _capacity_rows(self) -> LimitRows:
        return self._lifted(sp.eye_array(int(np.prod(self.K.shape)), format="csr"))

    def _lifted(self, A: Any) -> LimitRows:
        """Rows on points as rows on variables: <a, x> <= b is <a', u> <= (b - shift)/size."""
        A = sparse.compact(A)
        first = float(power_of_two(sparse.largest(A)))
        A, shift = self._on_variables(A / first)
        A = sparse.compact(A)
        second, sizes = float(power_of_two(sparse.largest(A))), sparse.row_sizes(A)
        return LimitRows(
            sparse.rows_times(A, 1.0 / sizes), sizes / second, first * shift, first * second
        )

    def _on_variables(self, A: Any) -> tuple[Any, Floats]:
        """Rows on variables, or others that differ by constants on the set, and those constants."""
        d, (A, shift) = self._description, self._rows_along(A)
        if d.shift is not None:
            shift = shift + A @ d.shift
        return A if d.lift is None else A @ self._lift, shift

    def _rows_along(self, A: Any) -> tuple[Any, Floats]:
        """Rows that say the same on aff(K), and how much less their values are there. A row of one
        entry is never mostly across it, unless it says nothing; those of large programs are taken
        as they are.
        """
        K, none = self.K, np.zeros(A.shape[0])
        if sparse.is_sparse(A) or K.dimension == A.shape[1]:
            return A, none
        several = np.count_nonzero(A, axis=1) > 1
        if not several.any():
            return A, none
        tangents = [to_numpy(K.tangent(like(row.reshape(K.shape), K.center))) for row in A]
        along = np.array(tangents, dtype=np.float64).reshape(A.shape)
        left, sizes = np.linalg.norm(along, axis=1), np.linalg.norm(A, axis=1)
        along[left <= ROUNDING * np.finfo(float).eps * sizes] = 0.0
        across = several & (left < ACROSS * sizes)
        if not across.any():
            return A, none
        along = np.where(across[:, None], along, A)
        return along, (A - along) @ to_numpy(K.center).reshape(-1)

    def feasible_best(
        self, p: Program, s: float = 0.0, basis: Basis | None = None
    ) -> Solved | None:
        """The best point that violates no limit by more than s."""
        if p.rows is None:
            upper = p.upper.copy()
            upper[: len(p.b)] = np.minimum(upper[: len(p.b)], p.b + s)
            if (p.lower - upper).max() > TOLERANCE:
                return None
            upper = np.maximum(upper, p.lower)
            return self._model(len(p.c))(p.c, p.lower, upper, p.pieces, basis)
        A, b = p.rows.A, (p.b + s) / p.rows.sizes
        if p.pieces is not None:
            A, b = sparse.stack_rows((p.pieces.A, A)), np.concatenate((p.pieces.b, b))
        return self._model(len(p.c))(p.c, p.lower, p.upper, HalfSpaces(A, b), basis)

    def nearest(
        self, p: Program, best: Floats, level: float, size: float, accuracy: float
    ) -> Solved | None:
        """The variables of the point nearest to another one at which every piece of a program with
        one maximum is at most the level; None if PIQP finds none. Points are of this size.
        """
        return self._quadratic(p, best, size, 1.0, np.zeros(len(self._description.lower)), level,
                               accuracy)  # fmt: skip

    def even(self, p: Program, ridge: float) -> Solved | None:
        """The variables of a best point without limits, ridge/2 |x - center|^2 added at size 1:
        the most even one, if there are several; None if PIQP finds none.
        """
        center = to_numpy(self.K.center).reshape(-1).astype(np.float64)
        return self._quadratic(p, center, self.K.radius or 1.0, ridge, p.c, 0.0, EVEN_ACCURACY)

    def _quadratic(
        self, p: Program, point: Floats, size: float, ridge: float, costs: Floats, level: float,
        accuracy: float,
    ) -> Solved | None:  # fmt: skip
        """min ridge/2 |x - point|^2/size^2 + <costs, v>, every piece at most the level; without
        costs of maxima these are no variables.
        """
        d, model, columns = self._description, self._model(len(p.c)), len(costs)
        assert p.rows is not None
        n, equal = len(d.lower), model.low == model.high
        lift = sp.csr_array(sp.eye_array(n) if d.lift is None else d.lift) * (self.unit / size)
        P = lift.T @ lift if d.lift is None else lift.T @ lift + 1e-10 * sp.eye_array(n)
        P = sp.csc_array(ridge * P)
        P.resize((columns, columns))
        c = costs.copy()
        c[:n] -= ridge * (lift.T @ (point if d.shift is None else point - d.shift)) / size
        rows, bounds = [p.rows.A, model.F[~equal]], [p.b / p.rows.sizes, model.high[~equal]]
        if p.pieces is not None:
            rows, bounds = [p.pieces.A, *rows], [p.pieces.b + level, *bounds]
        A = sp.csc_array(model.F[equal])[:, :columns] if equal.any() else None
        solver = piqp.SparseSolver()
        solver.settings.eps_abs = solver.settings.eps_rel = accuracy
        solver.settings.max_iter = _STEPS
        G = sp.csc_array(sparse.stack_rows([sp.csr_array(each) for each in rows]))[:, :columns]
        b, ends = model.high[equal] if equal.any() else None, (p.lower[:columns], p.upper[:columns])
        solver.setup(P, c, A, b, G, None, np.concatenate(bounds), *ends)
        solver.solve()  # whatever it reports: the point is checked
        v = np.asarray(solver.result.x)
        return Solved(v, np.zeros(0), np.zeros(0), None) if np.isfinite(v).all() else None

    def breached(self, p: Program, basis: Basis | None = None) -> Solved | None:
        """The least s, the last variable, such that a point violates no limit by more."""
        n, rows, own = len(p.c), p.rows, sp.eye_array(len(p.b), len(p.c), format="csr")
        A = sparse.compact(own if rows is None else sparse.rows_times(rows.A, rows.sizes))
        limits = HalfSpaces(sparse.beside(A, -np.ones((len(p.b), 1))), p.b)
        # maxima play no part here
        lower, upper = np.append(p.lower, -np.inf), np.append(p.upper, np.inf)
        return self._model(n + 1)(np.append(np.zeros(n), 1.0), lower, upper, limits, basis)

    def _model(self, columns: int) -> WarmModel:
        models: dict[int, WarmModel] = self.__dict__.setdefault("_models", {})
        if columns not in models:
            models[columns] = WarmModel.of(self._description, self.unit, columns)
            models[columns].method = self.method
        return models[columns]

    def member(self, x: Floats) -> Array:
        """This flat point, or the member nearest to it where it is one only up to tolerances."""
        point = like(x.reshape(self.K.shape), self.K.center)
        if self.K.infeasibility(point) > 0.5 * membership_tolerance(point, self.K.radius):
            point = self._projection(point)
        return frozen(point)

    @cached_property
    def _projection(self) -> ExactProjection:
        return ExactProjection(self.K)

    @cached_property
    def unit(self) -> float:
        bounds = np.abs(np.concatenate([self._description.lower, self._description.upper]))
        return float(np.max(bounds, where=np.isfinite(bounds), initial=0.0)) or 1.0


def require_program(feedback: object, K: oracle.HasLMO, most: int, who: str) -> FullInformation:
    functions = require_full_information(feedback, K.shape, most)
    known = LinearTotal | PiecewiseLinear, PiecewiseLinear
    for batch, kind in zip(functions, known, strict=True):
        for part in parts_of(batch):
            if not isinstance(part, kind):
                raise NotSupported(
                    f"{who} solves linear programs: losses and constraints must be linear, or "
                    f"maxima of affine pieces, not {type(part).__name__}."
                )
    return functions


def objective(losses: Batch, who: str = "A linear program") -> Objective:
    c, pieces, count = np.zeros(int(np.prod(losses.shape))), [], 0
    with np.errstate(over="ignore", invalid="ignore"):  # refused next
        for part in parts_of(losses):
            if isinstance(part, LinearTotal):
                c = c + part.total()[0].reshape(-1)
            elif isinstance(part, PiecewiseLinear):
                A, b, rounds = part.epigraph()
                pieces.append((sparse.compact(A), b, rounds + count))
                count += len(part)
    require_finite(c, f"The sum of the losses that {who} minimises")
    return with_pieces(c, pieces, count)


def with_pieces(c: Floats, pieces: list[tuple[Any, Floats, Int64s]], count: int) -> Objective:
    """<c, x> and so many maxima: pieces (d, e, which), some at a time."""
    if not count:
        return Objective(c, None, np.zeros(0), None, 0)
    tables, offsets, which = zip(*pieces, strict=True)
    d, e = sparse.stack_rows(tables), np.concatenate(offsets)
    return Objective(c, d, e, np.concatenate(which), count)


def half_spaces(constraints: Batch) -> HalfSpaces:
    parts = parts_of(constraints)
    if len(parts) == 1 and isinstance(parts[0], Capacity) and len(parts[0]):
        capacities = to_numpy(parts[0].c).astype(np.float64, copy=False).min(axis=0)
        return HalfSpaces(None, capacities.reshape(-1))
    tables, bounds = zip(
        *[part.halfspaces()[:2] for part in parts if isinstance(part, PiecewiseLinear)], strict=True
    )
    return HalfSpaces(
        sparse.stack_rows([sparse.compact(A) for A in tables]), np.concatenate(bounds)
    )


def headroom_of_rows(constraints: Batch, headroom: Floats) -> Floats:
    """What each half-space of some rounds keeps in hand, given what each limit of a round keeps;
    the most of all where the rows do not tell which limit they are of.
    """
    rows, kinds = [], len(headroom)
    for part in parts_of(constraints):
        assert isinstance(part, PiecewiseLinear)
        count = np.prod(part.shape) if isinstance(part, Capacity) else len(part.offsets())
        told = count in (kinds, kinds * len(part))
        each = headroom if told else headroom.max(initial=0.0, keepdims=True)
        rows.append(np.tile(each, count // max(1, len(each))))
    return np.concatenate(rows)


# --- a task in hindsight --------------------------------------------------------------------------


@final
class LinearProgramming:
    name = "linear program"

    def supports(self, task: Task) -> bool:
        return (task.c is not None or task.pieces is not None) and isinstance(task.K, Polyhedral)

    def solve(self, task: Task) -> Solution | None:
        if task.pieces is None:
            loss = Objective(np.asarray(task.c), None, np.zeros(0), None, 0)
        else:
            A, d, rounds = task.pieces
            loss = Objective(np.zeros(A.shape[1]), A, d, rounds, len(task.losses))
        chosen, basis = np.arange(len(task.b)), None
        many = task.A if isinstance(task.A, LoadRows) else None
        solver = BestPoint(task.K, _WHO)
        if len(loss.e) > MANY and not many:
            solver.method = "ipm"
        if many:
            sizes, chosen = many.each(sparse.row_sizes) * solver.unit, chosen[:0]
        while True:
            program = solver.prepared(loss, HalfSpaces(task.rows(chosen), task.b[chosen]))
            found = solver.feasible_best(program, basis=basis)
            if found is None:
                if not len(chosen) or (worst := solver.breached(program)) is None:
                    return None
                weights = sums(chosen, np.maximum(0.0, -worst.multipliers), len(task.b))
                return Solution(None, np.zeros(len(task.b)), weights)
            x = solver.flat_point(found)
            new = _violated((many @ x - task.b) / sizes, task.rounds, chosen) if many else ()
            if not len(new):
                mu, own = solver.multipliers(program, found)
                below = None if task.pieces is None else task.below_pieces(mu)
                return Solution(x, sums(chosen, own, len(task.b)), below=below)
            chosen, basis = np.append(chosen, new), _with_rows(found.basis, len(new))


def _violated(breach: Floats, rounds: Int64s, chosen: Int64s) -> Int64s:
    """Which rows to add: of each place in a round the one that is violated most, if any."""
    breach[chosen] = -np.inf
    by_round = breach.reshape(rounds[-1] + 1, -1)
    each = by_round.shape[1]
    worst = by_round.argmax(axis=0) * each + np.arange(each)
    return np.sort(worst[breach[worst] > _VIOLATED])


def _with_rows(basis: Basis | None, more: int) -> Basis | None:
    if basis is None:
        return None
    statuses = np.append(basis.statuses, np.full(more, _BASIC, dtype=np.int8))
    return Basis(basis.columns, basis.rows + more, statuses)


# The best point among convex combinations of known vertices, and which vertex would help most:
# column generation, which touches a set through its oracle alone.
#
#     min { f(V w) : w >= 0, sum_k w_k = 1, A V w <= b },     V the known vertices, one a column
#
# With multipliers lam >= 0 of the limits, every member v of the set could enter at the price
# <d, v>, d = grad f + A' lam; at the optimum no known vertex is cheaper than those in use. So the
# oracle's answer to d is a better vertex, or proves that the point is best on all of the set: for
# every member x that keeps the limits
#
#     f(x)  >=  f(V w) - (min_k <d, v_k> - min_{v in K} <d, v>).
#
# If no combination keeps the limits, d = A' lam of the program that makes the worst violation
# least.

IN_USE = 1e-12


class BestOfVertices(BestPoint):
    """The best convex combination of some vertices of a set, for given losses and limits; columns
    of vertices that another one has are taken from it.
    """

    def __init__(
        self, K: Any, who: str, vertices: tuple[Vertex, ...], before: "BestOfVertices | None" = None
    ) -> None:
        self.K, self.who, self.vertices = K, who, vertices
        old = dict(zip(map(id, before.vertices), before.V.T, strict=True)) if before else {}
        self.V: Floats = np.empty((int(np.prod(K.shape)), len(vertices)))
        for j, vertex in enumerate(vertices):
            known = old.get(id(vertex))
            self.V[:, j] = flattened(vertex.dense(K.center)) if known is None else known

    @cached_property
    def _description(self) -> LinearDescription:
        ones = np.ones(len(self.vertices))
        return LinearDescription(0.0 * ones, ones, ones[None], ones[:1], lift=self.V)

    def _on_variables(self, A: Any) -> tuple[Any, Floats]:
        A = A @ self._lift
        dense = A.toarray() if sparse.is_sparse(A) else A
        mean, spread = dense.mean(axis=1), dense.std(axis=1)
        mean = np.where(spread < ACROSS * np.abs(mean), mean, 0.0)  # weights are 1 in all
        return (dense - mean[:, None] if mean.any() else A), mean

    def weights(self, found: Best | Solved) -> Floats:
        end = found.end if isinstance(found, Best) else found
        w = np.clip(end.v[: len(self.vertices)], 0.0, 1.0)
        return np.asarray(w / w.sum())

    def flat_point(self, found: Solved) -> Floats:
        return np.asarray(self.V @ self.weights(found))

    def member(self, x: Floats) -> Array:
        return frozen(like(x.reshape(self.K.shape), self.K.center))

    def pricing(
        self, loss: Objective, limits: HalfSpaces, program: Program, found: Best, breach: bool
    ) -> tuple[Array, float] | None:
        """The direction d to ask the oracle for, of size about 1, so that the loss, or the worst
        violation, gets less, and the least <d, v_k> of a known vertex; None if all cost the same.
        """
        end = found.breach if breach else found.end
        assert end is not None
        d, prices = np.zeros(len(loss.c)), -end.multipliers
        if not breach:
            mu, prices = self.multipliers(program, end)
            d = loss.c + loss.d.T @ mu if len(mu) else loss.c
        d = d + (prices if limits.A is None else limits.A.T @ prices)
        size = float(np.abs(d).max())
        if not 0.0 < size < np.inf:
            return None
        d = d / power_of_two(size)
        direction = like(d.reshape(self.K.shape), self.K.center)
        return direction, float((flattened(direction) @ self.V).min())


def bases_for(bases: Bases, kept: Int64s, count: int, more: int) -> Bases:
    """Where programs start after only the columns `kept` of `count` stayed and `more` were added:
    new ones at weight 0.
    """
    return Bases(*(basis and _basis_for(basis, kept, count, more) for basis in bases))


def _basis_for(basis: Basis, kept: Int64s, count: int, more: int) -> Basis | None:
    statuses, basic = basis.statuses, 1
    if np.count_nonzero(statuses[:count] == basic) != np.count_nonzero(statuses[kept] == basic):
        return None  # a column in the basis is gone
    new = np.concatenate([statuses[kept], np.zeros(more, dtype=np.int8), statuses[count:]])
    return Basis(basis.columns - count + len(kept) + more, basis.rows, new)
