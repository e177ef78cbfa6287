"""The best fixed point in hindsight, as a bracket, or the proof that there is none.

    min { sum_t f_t(x) : x in K, g_t(x) <= 0 for every t }

Methods are not trusted: they propose a point, multipliers and weights, and the task checks what
these are worth with the functions and the set themselves (task.py).

    lp              linear losses, or maxima of pieces, under half-spaces, on polyhedral sets
    sdp             linear losses or squared errors under half-spaces on sets of matrices
    admm            squared errors on entries within bounds, if K has an exact projection
    cutting_planes  losses of a user's own, or of very many pieces, under half-spaces
    newton          curved losses or constraints, and linear ones on any other set, through its
                    oracle alone

Squared errors that are constraints leave no interior, and are solved as equations. A policy
{x_t = sum_j phi_tj W_j} of a context is a point W of K x .. x K .

If no point satisfies every constraint, the least possible violation is known instead:

    least violation       min { sum_t max(0, g_t(x)) : x in K }               as a bracket
    rounds kept        S = the rounds that the point x* of the least violation keeps
    their best point   min { sum_t f_t(x) : x in K, g_t(x) <= 0 for t in S }    losses of all rounds

The first is the best point in hindsight of the losses max(0, g_t), so every method does
for it: an exact linear program where sets and limits are linear, bundles where rounds are very
many, Newton steps over the vertices of an oracle elsewhere; its lower end is proved by the set's
oracle. x* itself keeps the rounds of S, so the last one has a point. Lower ends hold for every
fixed point:  sum_t max(0, g_t(x)) >= lower  for all x in K.

Very long streams get a bracket that costs next to nothing. Weights w of rows, of sum 1, that prove
sum_i w_i (<a_i, x> - b_i) >= bound > 0 on all of K prove, with W_t those of round t,

    sum_t max(0, g_t(x))  >=  sum_t W_t max(0, g_t(x)) / max_t W_t  >=  bound / max_t W_t,

and the centre of K has some violation.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, Self, cast, final
from weakref import WeakKeyDictionary

import numpy as np

from tidewolf.core import arguments, errors, round_info, sparse
from tidewolf.core.arrays import MOST_ENTRIES, as_count, frozen, like, to_numpy
from tidewolf.core.batch import (
    Batch,
    Halfspaces,
    LinearTotal,
    PiecewiseLinear,
    Stream,
    Unlimited,
    as_constraints,
)
from tidewolf.core.lazy import sp
from tidewolf.core.oracle import HasLMO, as_set
from tidewolf.core.types import Array, Floats, Int64s, Shape
from tidewolf.core.values import Value, with_capabilities
from tidewolf.functions import entries
from tidewolf.functions.autograd import Autograd, Custom
from tidewolf.functions.combined import Max, chained, leaves, own_functions
from tidewolf.functions.linear import Affine
from tidewolf.hindsight import cutting_planes, newton, sdp
from tidewolf.hindsight import task as tasks
from tidewolf.hindsight.best_point import LinearProgramming
from tidewolf.hindsight.task import Solution, Task, flattened, parts_of
from tidewolf.sets.calculus import Product

# What may find the best point, in the order of trying: `supports(task)` says whether it is for a
# task, `solve(task)` gives what it found or None, and `name` is what `Comparator.method` has.
METHODS: tuple[Any, ...] = (
    LinearProgramming(),
    sdp.AlternatingDirections(),
    sdp.SemidefiniteProgramming(),
    newton.LevelBundle(),
    newton.NewtonSteps(),
)

# A larger gap that cuts leave between the bounds of pieces is left to a linear program.
_ENOUGH = 1e-6
# Entries of all rounds together from which on the bracket is the one that costs next to nothing.
MOST_NUMBERS = 10_000_000


@final
@dataclass(frozen=True, eq=False, repr=False)
class Infeasibility(Value):
    """A proof that no point of K satisfies every constraint: row by row, the weighted sum is at
    least `bound` > 0 on all of K.
    """

    # positive, of sum 1; one for each half-space, or curved constraint, that takes part
    weights: Floats
    # the round of the stream each half-space comes from
    rounds: Int64s
    # which rows of `stream[start:stop].constraints.halfspaces()` they are; which of its rounds if
    # those are no half-spaces
    rows: Int64s
    bound: float


@final
@dataclass(frozen=True, eq=False, repr=False)
class Comparator(Value):
    """The best fixed decision in hindsight (or policy), bracketed: lower <= its total loss <=
    upper.

    Parameters
    ----------
    point : array or None
        A point of K that satisfies every constraint, in float64; None if none was found. With a
        context a point for each cell, (cells, *shape), whose mixes keep it.
    lower : float
        Proved by the set's oracle, and as sure as that is of its error; infinite if no point is
        feasible.
    upper : float
        The total loss of `point`, never below `lower`; infinite without one.
    feasible : bool or None
        Whether some point satisfies every constraint; None if neither a point nor a proof was
        found.
    infeasibility : Infeasibility, default None
        The proof that no point satisfies every constraint, if there is one.
    method : str, default ""
        The method that found it, in words; the bounds do not depend on it.

    Examples
    --------
    >>> K = tw.sets.Simplex(2)
    >>> losses = tw.functions.Linear([[1.0, 2.0]] * 4)
    >>> stream = tw.Stream(losses, tw.functions.Capacity([[0.75, 1.0]] * 4))
    >>> best = tw.best_in_hindsight(K, stream)
    >>> best.feasible, best.method
    (True, 'linear program')
    """

    point: Array | None
    lower: float
    upper: float
    feasible: bool | None
    infeasibility: Infeasibility | None = None
    method: str = ""


def best_in_hindsight(
    K: HasLMO,
    stream: Stream,
    start: int | None = None,
    stop: int | None = None,
    context: Any = None,
) -> Comparator:
    """The best fixed point over some rounds of a stream, or the best policy of a context, among
    those that satisfy every constraint.

    Parameters
    ----------
    K : set
        The set that contains the point.
    stream : Stream
        The losses and constraints of the rounds.
    start : int, default None
        The first round that counts, from 0; None: the first of the stream.
    stop : int, default None
        The round after the last that counts; None: to the end.
    context : Context, default None
        Such as context.Season(96): in place of one point one for each of its cells, mixed by the
        features of the round; `point` then has shape (cells, *shape of a point). None: one point.

    Returns
    -------
    Comparator
        The point, and between which two numbers the least total loss lies; or the proof that no
        point satisfies every constraint.

    Raises
    ------
    NotSupported
        If no method is known: limits that are a user's own functions, such losses under curved
        limits or with a context, or slopes of extreme sizes.
    InvalidInput
        If there is no round between `start` and `stop`, or one of which the context knows
        nothing.
    WrongShape
        If the stream's functions take points of another shape than the set has.

    Examples
    --------
    >>> K = tw.sets.Simplex(2)
    >>> losses = tw.functions.Linear([[1.0, 2.0]] * 4)
    >>> stream = tw.Stream(losses, tw.functions.Capacity([[0.75, 1.0]] * 4))
    >>> best = tw.best_in_hindsight(K, stream)
    >>> best.point, round(best.upper, 6)
    (array([0.75, 0.25]), 5.0)
    >>> losses = tw.functions.Linear([[1.0, 2.0], [2.0, 1.0]] * 2)
    >>> by_turns = tw.experts.Season(period=2, cells=2)
    >>> best = tw.best_in_hindsight(K, tw.Stream(losses), context=by_turns)
    >>> best.point, round(best.upper, 6)
    (array([[1., 0.],
           [0., 1.]]), 4.0)
    """
    if not isinstance(stream, Stream):
        raise errors.WrongType(
            f"Expected a Stream(losses, constraints), not a {type(stream).__name__}."
        )
    part, first = stream[start:stop], slice(start, stop).indices(len(stream))[0]
    if part.budgets:  # what bounds compare with keeps the plan in every round
        constraints = as_constraints([part.constraints, *part.budgets.values()], part.losses)
        part = Stream(part.losses, constraints, time=part.time, context=part.context)
    if len(part) == 0:
        raise errors.InvalidInput("There is no round between start and stop; give at least one.")
    if as_set(K, "The best point in hindsight").shape != part.shape:
        raise errors.WrongShape(
            f"Expected functions of points of shape {K.shape}, not {part.shape}."
        )
    if context is None:
        return best_point(K, part.losses, part.constraints, first)
    for leaf in (*_callables(part.losses), *_callables(part.constraints)):
        raise errors.NotSupported(
            f"The best policy in hindsight is not known for {type(leaf).__name__} functions."
        )
    product, losses, limits, used, policy = policy_problem(K, part, stream, first, context)
    known = best_point(product, losses, limits, first)
    if known.point is None:
        return known
    policy[used] = known.point.reshape(len(used), *K.shape)
    return replace(known, point=frozen(policy + 0.0))


def best_point(K: HasLMO, losses: Batch, constraints: Batch, first: int = 0) -> Comparator:
    """The best point for these losses among those that satisfy these constraints, which need not
    be as many; `first` is the round of the first of them.
    """
    own = _is_own(losses, constraints)
    linear = isinstance(losses, LinearTotal) and not own
    if linear and isinstance(constraints, entries.Squared) and (constraints.places >= 0).any():
        return _squares(K, losses, constraints, first)
    task = Task.of(K, losses, constraints, own=own)
    if not own and (task.pieces is None or len(task.pieces.b) <= cutting_planes.MANY):
        return _solved(task, first)
    cuts = cutting_planes.CuttingPlanes(task)
    below = cuts.cuts[0]  # at the center, in place of the losses: at most as much
    start = _solved(replace(task, c=below.slope, constant=below.offset, pieces=None), first)
    if start.point is None:
        return start
    known = _checked(task, cuts.minimise(flattened(start.point)), first)
    lower = min(max(known.lower, start.lower), known.upper)
    if not own and known.upper - lower > _ENOUGH * max(abs(known.upper), abs(lower)):
        return _solved(task, first)
    return replace(known, lower=lower, method=cutting_planes.METHOD)


def _callables(batch: Batch) -> tuple[Batch, ...]:
    return tuple(leaf for leaf in leaves(batch) if isinstance(leaf, Custom | Autograd))


def _is_own(losses: Batch, constraints: Batch) -> bool:
    """Whether losses are a user's own, of which only values and subgradients are known; refused if
    the best point cannot be known then.
    """
    flat = all(isinstance(part, PiecewiseLinear) for part in parts_of(constraints))
    for each in (*_callables(constraints), *(() if flat else _callables(losses))):
        raise errors.NotSupported(
            f"The best point in hindsight is not known for {type(each).__name__} functions as "
            "constraints, or as losses under curved constraints; affine ones, or maxima, are."
        )
    known = LinearTotal | PiecewiseLinear
    return flat and any(not isinstance(one, known) for one in own_functions(losses))


def _solved(task: Task, first: int) -> Comparator:
    best, easier = None, task.for_solvers()
    for method in METHODS:
        if not method.supports(task):
            continue
        proposed = method.solve(easier) or Solution(None, np.zeros(len(task.b)))
        known = replace(_checked(task, proposed, first), method=method.name)
        if known.feasible is not None:
            return known
        best = known if best is None or known.lower > best.lower else best
    assert best is not None
    return best


def _squares(K: HasLMO, losses: Batch, squares: entries.Squared, first: int) -> Comparator:
    """Linear losses under squared errors that are to be 0: equations, of two half-spaces each.

    Weights that show that no point satisfies those show it of the squares: with W_t the norm of the
    weights of round t and W = sum_t W_t, by Cauchy and by Jensen

        bound <= sum_t W_t sqrt(2 g_t),    so    sum_t (W_t/W) g_t >= (bound/W)^2/2.
    """
    asked = np.flatnonzero((squares.places >= 0).any(axis=1))
    targets = squares.targets[asked, ...]
    equations = entries.Range(targets, targets, squares.places[asked], squares.sides)
    known = _solved(Task.of(K, losses, equations), 0)
    if (proof := known.infeasibility) is None:
        return known
    where, index = np.unique(asked[proof.rounds], return_inverse=True)
    each = np.sqrt(np.bincount(index, proof.weights**2))
    shares, bound = each / each.sum(), (proof.bound / float(each.sum())) ** 2 / 2.0
    proof = Infeasibility(frozen(shares), frozen(first + where), frozen(where), bound)
    return replace(known, infeasibility=proof)


def _checked(task: Task, proposed: Solution, first: int) -> Comparator:
    if (proof := _infeasibility(task, proposed, first)) is not None:
        return Comparator(None, math.inf, math.inf, False, proof)
    lower, point = task.lower_bound(proposed), proposed.point
    if point is not None and task.is_feasible(point):
        return Comparator(
            frozen(point.reshape(task.K.shape)), lower, max(lower, task.total(point)), True
        )
    return Comparator(None, lower, math.inf, None)


def _infeasibility(task: Task, proposed: Solution, first: int) -> Infeasibility | None:
    if proposed.weights is None or proposed.weights.max() <= 0.0:
        return None
    weights = proposed.weights
    weights = np.where(weights > 1e-12 * weights.max(), weights, 0.0)  # negligible ones left out
    shares = weights / weights.sum()
    bound, _ = task.least(task.below_constraints(shares, proposed.anchor))
    rows = np.flatnonzero(shares)
    if not bound > 0:
        return None
    rounds = first + task.rounds[rows]
    return Infeasibility(frozen(shares[rows]), frozen(rounds), frozen(rows), bound)


# --- the least violation --------------------------------------------------------------------------


@final
@dataclass(frozen=True, eq=False, repr=False)
class LeastBreach(Value):
    """What is known if no point satisfies every constraint.

    Parameters
    ----------
    lower : float
        Every fixed point breaks limits by at least so much in all.
    upper : float
        One breaks them by so much.
    point : array
        That one.
    kept : array of int
        The rounds, counted from 0, whose limits it keeps.
    rounds : int
        How many rounds there are.
    best : Comparator
        The best point of all that keep those rounds, over the losses of every round.

    Examples
    --------
    >>> K = tw.sets.Simplex(2)
    >>> limits = tw.functions.Capacity([[0.25, 1.0], [1.0, 0.5], [1.0, 0.5]])
    >>> stream = tw.Stream(tw.functions.Linear([[1.0, 2.0]] * 3), limits)
    >>> found = tw.run(tw.LyapunovDescent(K), stream).least_breach
    >>> round(found.lower, 6), round(found.upper, 6), found.kept
    (0.25, 0.25, array([1, 2]))
    >>> found.best.point
    array([1., 0.])
    """

    lower: float
    upper: float
    point: Array
    kept: Int64s
    rounds: int
    best: Comparator


def least_breach(K: HasLMO, stream: Stream, proof: Infeasibility | None = None) -> LeastBreach:
    """The least violation of all rounds by one point, the rounds that it keeps, and their best
    point.

    Parameters
    ----------
    K : set
        The set that contains the point.
    stream : Stream
        The losses and constraints of the rounds.
    proof : Infeasibility, default None
        That no point satisfies every constraint, where it is known: very long streams are answered
        from it.

    Returns
    -------
    LeastBreach
        The bracket, its point, the rounds kept, and the best point that keeps them.

    Raises
    ------
    NotSupported
        If no exact method is known: Custom functions, or slopes of extreme sizes.
    """
    if (found := _known.get(stream)) is None or found[0] is not K:
        found = _known[stream] = K, _computed(K, stream, proof)
    return found[1]


# What was found of streams that are still there: the runs of one problem share them.
_known = WeakKeyDictionary[Stream, tuple[HasLMO, LeastBreach]]()


def _computed(K: HasLMO, stream: Stream, proof: Infeasibility | None) -> LeastBreach:
    limits, count, point, lower = stream.constraints, len(stream), K.center, 0.0
    if proof is not None:
        _, where = np.unique(proof.rounds, return_inverse=True)
        lower = proof.bound / float(np.bincount(where, proof.weights).max())
    if count * math.prod(K.shape) <= MOST_NUMBERS:
        flat = len(K.shape) == 1 and isinstance(limits, PiecewiseLinear)
        zeros = sp.csr_array((count, *K.shape)) if flat else np.zeros((count, *K.shape))
        found = best_point(
            K, Max(limits, Affine(zeros, np.zeros(count))), Unlimited(K.shape, count)
        )
        lower = max(lower, found.lower)
        point = point if found.point is None else found.point
    values = flattened(limits.values(point))
    upper = float(np.maximum(values, 0.0).sum())
    for most in (
        tasks.FEASIBILITY_TOLERANCE * (float(np.abs(values).max(initial=0.0)) or 1.0),
        0.0,
    ):
        kept = values <= most
        ends = [0, *(np.flatnonzero(np.diff(kept)) + 1).tolist(), count]
        runs = [limits.view(slice(*run)) for run in pairwise(ends) if kept[run[0]]]
        best = best_point(K, stream.losses, chained(runs) if runs else Unlimited(limits.shape))
        if best.point is not None:
            break
    else:  # x* keeps the last ones, whatever a solver makes of them
        total = float(flattened(stream.losses.values(point)).sum())
        best = Comparator(
            frozen(point), -math.inf, total, True, None, "the point of least violation"
        )
    return LeastBreach(min(lower, upper), upper, point, frozen(np.flatnonzero(kept)), count, best)


# --- policies -------------------------------------------------------------------------------------
#
# The best policy in hindsight: a point for each cell of a context, mixed by the features of the
# round.
#
#     min { sum_t f_t(x_t) :  x_t = sum_j phi_tj W_j,  W in K^q,  g_t(x_t) <= 0 for every t }
#
# With f_t and g_t as functions of W it is the task of a best point of K x .. x K, for the cells
# that some round has: the methods that find a best point find W, and the bounds are as sure. Of a
# linear total cell j has c_j = sum_t phi_tj c_t, and <a, x_t> <= b becomes sum_j phi_tj <a, W_j> <=
# b; of rounds with the same features only the tightest of equal rows counts. Cells that no round
# has are given the set's center.


def policy_problem(
    K: HasLMO, part: Stream, whole: Stream, first: int, context: Any
) -> tuple[Product, Batch, Batch, Int64s, Floats]:
    """The best policy of the rounds of `part`, which are those of the whole stream from `first` on,
    as a best point: a product of the set, losses and constraints of its points, the cells in use,
    which its parts belong to, and the set's center once per cell.
    """
    phi = _features(whole, first, len(part), context)
    cells, center = phi.shape[1], np.asarray(to_numpy(K.center), dtype=np.float64)
    as_count(center.size * cells, "The number of entries that the cells make", most=MOST_ENTRIES)
    used, exact = np.flatnonzero(np.diff(phi.tocsc().indptr)), cast(Any, tasks.with_exact_oracle(K))
    batches = (part.losses, part.constraints)
    losses, limits = (policy_batch(batch, phi[:, used], K.center) for batch in batches)
    return Product(parts=[exact] * len(used)), losses, limits, used, np.stack([center] * cells)


def _features(stream: Stream, first: int, rounds: int, context: Any) -> Any:
    if not callable(getattr(context, "features", None)) or not hasattr(context, "cells"):
        raise errors.WrongType(
            f"Expected a context such as experts.Season(96), not {arguments.shown(context)}."
        )
    cells, found = as_count(context.cells, "The cells of the context"), []
    for t in range(first, first + rounds):
        features = context.features(stream.info(t), t)
        if features is None:
            raise errors.InvalidInput(
                f"{context!r} needs the time or context of every round; round {t + 1} has none."
            )
        found.append(round_info.checked_features(features, cells, t))
    rows = np.repeat(np.arange(rounds), [len(which) for which, _ in found])
    which, phi = (np.concatenate(each) for each in zip(*found, strict=True))
    table = sp.csr_array((phi, (rows, which)), shape=(rounds, cells))
    table.eliminate_zeros()
    return table


@dataclass(frozen=True, eq=False, repr=False)
class PolicyBatch(Batch):
    """Functions of a round's mix, f_t(sum_j phi_tj W_j), as functions of W, flattened."""

    f: Batch
    phi: Any
    reference: Array

    def __len__(self) -> int:
        return len(self.f)

    @property
    def shape(self) -> Shape:
        return (self.phi.shape[1] * self._size,)

    @property
    def _size(self) -> int:
        return int(np.prod(self.f.shape))

    @property
    def domain(self) -> str | None:  # type: ignore[override]
        return self.f.domain

    def view(self, rounds: slice) -> Self:
        start, stop, _ = rounds.indices(len(self))
        phi = sparse.cut_rows(self.phi, start, max(start, stop))
        return self._unchecked(f=self.f.view(rounds), phi=phi, reference=self.reference)

    @cached_property
    def _kinds(self) -> Int64s:
        """A number for each round, the same for rounds with the same features."""
        phi, number = self.phi, dict[bytes, int]()
        rows = [slice(*ends) for ends in pairwise(phi.indptr)]
        keys = (phi.indices[row].tobytes() + phi.data[row].tobytes() for row in rows)
        return np.array([number.setdefault(key, len(number)) for key in keys], dtype=np.int64)

    @cached_property
    def _groups(self) -> list[tuple[Int64s, Batch]]:
        order, ends = np.argsort(self._kinds, kind="stable"), np.cumsum(np.bincount(self._kinds))
        if len(ends) <= 1:
            return [(order, self.f)] if len(order) else []
        groups = np.split(order, ends[:-1])
        return [(g, chained([self.f.view(slice(t, t + 1)) for t in g.tolist()])) for g in groups]

    def _at(self, W: Array) -> Iterator[tuple[Int64s, Batch, Array, Int64s, Floats]]:
        for rounds, f in self._groups:
            part = slice(*self.phi.indptr[rounds[0] : rounds[0] + 2])
            point = self._mixes(W, rounds[:1])[0, ...]
            yield rounds, f, point, self.phi.indices[part], self.phi.data[part]

    def _mixes(self, W: Array, rounds: Any) -> Array:
        cells = np.asarray(to_numpy(W), dtype=np.float64).reshape(-1, self._size)
        return like((self.phi[rounds, :] @ cells).reshape(-1, *self.f.shape), W)

    def values(self, x: Array) -> Array:
        return self.f.values_at(self._mixes(x, slice(None)))

    def subgradient(self, x: Array, weights: Array) -> Array:
        total, given = np.zeros((self.phi.shape[1], self._size)), to_numpy(weights)
        for rounds, f, point, which, phi in self._at(x):
            gradient = to_numpy(f.subgradient(point, like(given[rounds], x))).reshape(-1)
            total[which] += phi[:, None] * gradient
        return like(total.reshape(-1), x)

    def gradients(self, x: Array) -> Array:
        whole = np.zeros((len(self), self.phi.shape[1], self._size))
        for rounds, f, point, which, phi in self._at(x):
            each = to_numpy(f.gradients(point)).reshape(len(rounds), 1, -1)
            whole[rounds[:, None], which] = phi[:, None] * each
        return like(whole.reshape(len(self), -1), x)

    def slopes(self, x: Array) -> Floats:
        slopes = np.zeros(len(self))
        for rounds, f, point, _, phi in self._at(x):
            slopes[rounds] = float(np.linalg.norm(phi)) * f.slopes(point)
        return slopes

    def total(self) -> tuple[Floats, float]:
        """Of linear losses, whose gradient is the same everywhere."""
        f: Any = self.f
        anywhere, ones = np.zeros(self.shape), np.ones(len(self))
        gradient = self.subgradient(like(anywhere, self.reference), like(ones, self.reference))
        return to_numpy(gradient).astype(np.float64), float(f.total()[1])

    def halfspaces(self) -> Halfspaces:
        """The pieces of every round, of those with the same features and coefficients only the
        tightest.
        """
        told, least = self._pieces(), dict[bytes, int]()
        A, kinds = told.A, self._kinds[told.rounds]
        for i in np.lexsort((told.rounds, told.b)).tolist():
            part = slice(*A.indptr[i : i + 2])
            key = kinds[i].tobytes() + A.indices[part].tobytes() + A.data[part].tobytes()
            least.setdefault(key, i)
        kept = np.sort(np.array(list(least.values()), dtype=np.int64))
        return self._lifted(Halfspaces(A[kept, :], told.b[kept], told.rounds[kept]))

    def epigraph(self) -> Halfspaces:
        return self._lifted(self._pieces())

    def _pieces(self) -> Halfspaces:
        f: Any = self.f
        A, b, rounds = f.epigraph()
        return Halfspaces(sp.csr_array(A, dtype=np.float64), b, rounds)

    def _lifted(self, told: Halfspaces) -> Halfspaces:
        """Rows <a, x_t> as rows sum_j phi_tj <a, W_j>: each entry of a once per feature."""
        entries, starts = sp.coo_array(told.A), self.phi.indptr
        row, rounds = entries.row, told.rounds[entries.row]
        times = np.diff(starts)[rounds]
        each = np.repeat(np.arange(len(row)), times)
        at = np.arange(len(each)) + np.repeat(starts[rounds] - np.cumsum(times) + times, times)
        column = self.phi.indices[at].astype(np.int64) * self._size + entries.col[each]
        shape = (told.A.shape[0], self.shape[0])
        A = sp.csr_array((self.phi.data[at] * entries.data[each], (row[each], column)), shape=shape)
        return told._replace(A=A)

    @classmethod
    def examples(cls) -> Sequence[Batch]:
        return ()


def policy_batch(f: Batch, phi: Any, reference: Array) -> PolicyBatch:
    has = tuple(kind for kind in (LinearTotal, PiecewiseLinear) if isinstance(f, kind))
    kind: type[PolicyBatch] = with_capabilities(PolicyBatch, has)
    return kind._unchecked(f=f, phi=phi, reference=reference)
