"""The least possible violation, if no point satisfies every constraint.

    least breach       min { sum_t max(0, g_t(x)) : x in K }               as a bracket
    rounds kept        S = the rounds that the point x* of the least breach keeps
    their best point   min { sum_t f_t(x) : x in K, g_t(x) <= 0 for t in S }    losses of all rounds

The first is the best point in hindsight of the losses max(0, g_t), so every method of best.py does
for it: an exact linear program where sets and limits are linear, bundles where rounds are very
many, Newton steps over the vertices of an oracle elsewhere; its lower end is proved by the set's
oracle. x* itself keeps the rounds of S, so the last one has a point. Lower ends hold for every
fixed point:  sum_t max(0, g_t(x)) >= lower  for all x in K.

Very long streams get a bracket that costs next to nothing. Weights w of rows, of sum 1, that prove
sum_i w_i (<a_i, x> - b_i) >= bound > 0 on all of K prove, with W_t those of round t,

    sum_t max(0, g_t(x))  >=  sum_t W_t max(0, g_t(x)) / max_t W_t  >=  bound / max_t W_t,

and the centre of K has some breach.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import final
from weakref import WeakKeyDictionary

import numpy as np

from tidewolf.core.arrays import frozen, to_numpy
from tidewolf.core.batch import Batch, Stream, Unlimited
from tidewolf.core.oracle import HasLMO
from tidewolf.core.piecewise import PiecewiseLinear
from tidewolf.core.types import Array, Bools, Floats, Int64s
from tidewolf.core.values import Value
from tidewolf.functions.combined import Max, chained
from tidewolf.functions.linear import Affine
from tidewolf.hindsight.best import Comparator, Infeasibility, best_point
from tidewolf.hindsight.task import FEASIBILITY_TOLERANCE

MOST_NUMBERS = 10_000_000
"""Entries of all rounds together from which on the bracket is the one that costs next to
nothing.
"""


@final
@dataclass(frozen=True, eq=False, repr=False)
class LeastBreach(Value):
    """What is known where no point keeps every limit.

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
    """The least breach of all rounds by one point, the rounds that it keeps, and their best point.

    Parameters
    ----------
    K : set
        Where the point is to lie.
    stream : Stream
        The losses and constraints of the rounds.
    proof : Infeasibility, default None
        That no point keeps every limit, where it is known: very long streams are answered from it.

    Returns
    -------
    LeastBreach
        The bracket, its point, the rounds kept, and the best point that keeps them.

    Raises
    ------
    NotSupported
        Where no exact method is known: Custom functions, or slopes of extreme sizes.
    """
    if (found := _known.get(stream)) is None or found[0] is not K:
        found = _known[stream] = K, _computed(K, stream, proof)
    return found[1]


_known = WeakKeyDictionary[Stream, tuple[HasLMO, LeastBreach]]()
"""What was found of streams that are still there: the runs of one problem share them."""


def _computed(K: HasLMO, stream: Stream, proof: Infeasibility | None) -> LeastBreach:
    lower, upper, point = _bracket(K, stream, proof)
    values = _values(stream.constraints, point)
    size = FEASIBILITY_TOLERANCE * (float(np.abs(values).max(initial=0.0)) or 1.0)
    for most in (size, 0.0):
        kept = values <= most
        best = _best_of(K, stream, kept)
        if best.point is not None:
            break
    else:  # x* keeps the last ones, whatever a solver makes of them
        total = float(_values(stream.losses, point).sum())
        best = Comparator(frozen(point), -math.inf, total, True, None, "the point of least breach")
    return LeastBreach(lower, upper, point, frozen(np.flatnonzero(kept)), len(stream), best)


def _bracket(K: HasLMO, stream: Stream, proof: Infeasibility | None) -> tuple[float, float, Array]:
    """The two ends, and the point of the upper one."""
    limits, point, lower = stream.constraints, K.center, 0.0
    if proof is not None:
        _, where = np.unique(proof.rounds, return_inverse=True)
        lower = proof.bound / float(np.bincount(where, proof.weights).max())
    if len(stream) * math.prod(K.shape) <= MOST_NUMBERS:
        found = best_point(K, _positive_part(limits), Unlimited(K.shape, len(stream)))
        lower = max(lower, found.lower)
        point = point if found.point is None else found.point
    upper = float(np.maximum(_values(limits, point), 0.0).sum())
    return min(lower, upper), upper, point


def _positive_part(limits: Batch) -> Batch:
    """max(0, g_t), round by round."""
    from scipy.sparse import csr_array

    shape = (len(limits), *limits.shape)
    flat = len(shape) == 2 and isinstance(limits, PiecewiseLinear)
    return Max(limits, Affine(csr_array(shape) if flat else np.zeros(shape), np.zeros(shape[0])))


def _best_of(K: HasLMO, stream: Stream, kept: Bools) -> Comparator:
    """The best point that is feasible in these rounds."""
    limits = stream.constraints
    ends = [0, *(np.flatnonzero(np.diff(kept)) + 1).tolist(), len(kept)]
    runs = [limits.view(slice(*run)) for run in pairwise(ends) if kept[run[0]]]
    return best_point(K, stream.losses, chained(runs) if runs else Unlimited(limits.shape))


def _values(batch: Batch, point: Array) -> Floats:
    return np.asarray(to_numpy(batch.values(point)), dtype=np.float64)
