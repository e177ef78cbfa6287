"""Functions and records as arrays that the kernel of kernels/rounds.py reads and fills.

Built-in functions on arrays are evaluated inside the kernel; of others it is given values and
gradients (`GIVEN`), one round at a time.
"""

import math
from copy import copy
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from tidewolf.core.arrays import frozen
from tidewolf.core.batch import Batch, Stream, Unlimited
from tidewolf.core.feedback import FirstOrder, FullInformation
from tidewolf.core.types import Array, Floats, Int64s, NDArray
from tidewolf.functions.linear import Affine, Capacity, Linear, MaxAffine
from tidewolf.functions.loads import LoadCost, LoadLimit, MaxUtilization, OverPaths
from tidewolf.kernels import evaluate
from tidewolf.kernels import rounds as names

_DOUBLE = np.dtype(np.float64)
# Entries of functions that are copied at a time, where they do not lie row after row.
MOST_COPIED = 1 << 20


def read_only(array: NDArray) -> NDArray:
    if array.flags.writeable:
        array = array.view()
        array.flags.writeable = False
    return array


_NO_ROWS, _NO_NUMBERS = read_only(np.zeros((1, 1))), read_only(np.zeros(1))
_NO_LEAST = read_only(np.array([-math.inf]))
_UNLIMITED = (evaluate.UNLIMITED, _NO_ROWS, _NO_NUMBERS, 0)
# Kinds of functions that are a matrix and perhaps numbers, by the names of their fields.
_ARRAYS: dict[type, tuple[int, str, str | None]] = {
    Linear: (evaluate.LINEAR, "C", None),
    Capacity: (evaluate.CAPACITY, "c", None),
    Affine: (evaluate.AFFINE, "A", "b"),
    MaxAffine: (evaluate.MAX_AFFINE, "A", "b"),
    LoadCost: (evaluate.LINEAR, "_a", None),
}
Encoded = tuple[int, NDArray, NDArray, int]


def encoded(batch: Any) -> Encoded | None:
    """A batch as the kernel reads it: kind, matrix, numbers, pieces per round; None if it cannot
    be. Subclasses may say otherwise, and are not read.
    """
    if type(batch) is Unlimited:
        return _UNLIMITED
    if type(batch) in (LoadLimit, MaxUtilization):
        return _loads_encoded(batch)
    kind, matrix, more = _ARRAYS.get(type(batch), (0, "", None))
    if not matrix or (matrix == "_a" and not _are_plain(batch.demands, batch.costs)):
        return None
    A, b = getattr(batch, matrix), None if more is None else getattr(batch, more)
    axes = 3 if kind == evaluate.MAX_AFFINE else 2
    if not _are_plain(A, A if b is None else b) or A.ndim != axes:
        return None
    rows = np.ascontiguousarray(A).reshape(-1, A.shape[-1])
    numbers = _NO_LEAST if b is None else np.ascontiguousarray(b).reshape(-1)
    return kind, read_only(rows), read_only(numbers), A.shape[1] if axes == 3 else 1


def _loads_encoded(batch: LoadLimit | MaxUtilization) -> Encoded | None:
    on, offsets = batch._loads, batch._offsets()
    if batch._divisors() is not None or not _are_plain(batch.demands, offsets):
        return None
    numbers = [offsets.shape[1]], on.starts, on.path, on.pair, on.load
    rows = np.ascontiguousarray(np.concatenate([batch.demands, offsets], axis=1))
    return evaluate.LOADS, read_only(rows), read_only(np.concatenate(numbers)), len(on.starts) - 1


def _are_plain(*given: Any) -> bool:
    return all(type(array) is np.ndarray and array.dtype == _DOUBLE for array in given)


class Functions(NamedTuple):
    """The losses and constraints of a stream as the kernel reads them."""

    given: tuple[Any, ...]
    pieces: int  # the most pieces of a round's loss, or of its constraint
    stream: Any = None  # the stream that they are of, where it is one
    start: int = 0  # the round of the stream that they begin with
    batches: tuple[Batch, ...] = ()  # they themselves

    @property
    def by_entry(self) -> bool:
        """Whether gradients of losses are rows, and those of limits entries, in every round."""
        return (self.given[0], self.given[4]) in evaluate.BY_ENTRY

    @classmethod
    def of(cls, losses: Batch, constraints: Batch) -> "Functions | None":
        """None if one of them cannot be read."""
        loss, limit = encoded(losses), encoded(constraints)
        if loss is None or limit is None:
            return None
        return cls((*loss, *limit), max(_pieces(loss), _pieces(limit)))

    @classmethod
    def from_first_order(cls, feedback: FirstOrder) -> "Functions":
        value = feedback.violation if feedback.violation > 0.0 else -1.0
        loss, limit = _row(feedback.loss_gradient), _row(feedback.constraint_gradient)
        given = evaluate.GIVEN, loss, _NO_NUMBERS, 1, evaluate.GIVEN, limit
        return cls((*given, read_only(np.array([value])), 1), 1)

    @classmethod
    def costs(cls, costs: Floats, capacities: Floats | None) -> "Functions":
        """One round of costs, and of capacities of at least 0, which are copied."""
        C = frozen(np.array(costs, ndmin=2))
        if capacities is None:
            return cls((evaluate.LINEAR, C, _NO_NUMBERS, 1, *_UNLIMITED), 0)
        c = frozen(np.array(capacities, ndmin=2))
        return cls(
            (evaluate.LINEAR, C, _NO_NUMBERS, 1, evaluate.CAPACITY, c, _NO_NUMBERS, 1), c.size
        )

    def seen_at(self, t: int) -> FullInformation:
        """Those of a round as advisers that are asked one by one see them."""
        one = slice(t, t + 1)
        if self.batches:
            return FullInformation(*(batch.view(one) for batch in self.batches))
        kind, capacities, costs = self.given[4], self.given[5], self.given[1]
        has_any = kind == evaluate.CAPACITY
        limit = Capacity._unchecked(c=capacities[one]) if has_any else Unlimited(costs.shape[1:])
        return FullInformation(Linear._unchecked(C=costs[one]), limit)


def _pieces(one: Encoded) -> int:
    kind, A, _, count = one
    return int(A.shape[1]) if kind == evaluate.CAPACITY else count


def _row(gradient: Array) -> NDArray:
    return read_only(np.ascontiguousarray(gradient).reshape(1, -1))


class StreamFunctions:
    """Those of a stream: all rounds at once where they lie in memory as the kernel reads them, else
    copies of some thousand at a time.
    """

    def __init__(self, stream: Stream) -> None:
        losses, constraints, rounds = stream.losses, stream.constraints, len(stream)
        self._stream, self._batches, self._rounds = stream, (losses, constraints), rounds
        n = max(1, math.prod(losses.shape))
        whole = all(map(_lies_well, self._batches))
        self._size = max(1, rounds if whole else MOST_COPIED // n)
        self.start = self.stop = -1
        self.functions: Any = None

    @classmethod
    def of(cls, stream: Stream) -> "StreamFunctions | None":
        """None if the kernel cannot read them."""
        one = slice(0, 1)
        if Functions.of(stream.losses.view(one), stream.constraints.view(one)) is None:
            return None
        return cls(stream)

    def at(self, t: int) -> Functions:
        """Those of the rounds from `start` to `stop`, round t among them."""
        if not self.start <= t < self.stop:
            self.start = t - t % self._size
            self.stop = min(self.start + self._size, self._rounds)
            batches = tuple(batch.view(slice(self.start, self.stop)) for batch in self._batches)
            found: Any = Functions.of(*batches)
            self.functions = found._replace(stream=self._stream, start=self.start, batches=batches)
        return self.functions  # type: ignore[no-any-return]


def _lies_well(batch: Batch) -> bool:
    if isinstance(batch, OverPaths):  # what the kernel reads is made of them
        return False
    given = batch.fields().values()
    return all(a.flags.c_contiguous for a in given if type(a) is np.ndarray)


class Records:
    """What is recorded of the rounds of a run, in arrays that the kernel fills."""

    def __init__(
        self,
        n: int,
        rounds: int,
        limits: int,
        points: bool,
        samples: int,
        parts: int,
        measures: int = 0,
    ) -> None:
        self.columns = np.zeros((rounds, names.COLUMNS))
        self.marks = np.zeros(names.MARKS)
        self.last, self.total = np.zeros(n), np.zeros(n)
        self.means, self.ends = np.zeros((parts, n)), np.zeros(parts, dtype=np.int64)
        self.points = np.zeros((rounds if points else 0, n))
        self.each = np.zeros((2, limits))  # by how much each limit was broken in all, and at worst
        # in how many rounds it was, the worst, the first and the last, as `Breaches` has them
        self.when: Int64s = np.zeros((4, limits), dtype=np.int64)
        self.used, self.used_when = np.zeros(0), np.zeros(0, dtype=np.int64)
        self._shape = (samples, 3, n)
        self.measures = np.zeros((rounds, measures))  # the weights of experts in each round
        self.room = 0  # how many samples there are to be
        self.first = 0  # which round of the run the functions begin with

    @cached_property
    def samples(self) -> NDArray:
        """x, y and where y came from, of some projections."""
        return np.zeros(self._shape)

    def after(self, done: int) -> "Records":
        rest = copy(self)
        rest.columns, rest.points = self.columns[done:], self.points[done:]
        rest.measures, rest.samples = self.measures[done:], self.samples
        return rest

    def given_away(self, samples: int) -> NDArray:
        kept = self.samples[:samples]
        if samples:
            del self.samples
        return kept

    @property
    def arrays(self) -> tuple[NDArray, ...]:
        points = (self.marks, self.last, self.total, self.means, self.ends)
        worst = (self.points, self.each, self.when, self.used, self.used_when)
        return (*points, *worst, self.samples[: self.room], self.measures)
