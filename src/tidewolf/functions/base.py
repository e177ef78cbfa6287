"""What several kinds of function share.

- `PerRound`, the check of a setting that is an array with rounds first,
- `ArrayBatch`, a batch that consists of such arrays.

The capabilities `LinearTotal` and `PiecewiseLinear` are those of core/batch.py.
"""

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from dataclasses import fields as dataclass_fields
from typing import Annotated, Any, ClassVar, Self, TypeAlias, cast

import numpy as np

from tidewolf.core import batch, errors, settings, sparse, values
from tidewolf.core.arrays import as_array, flat, like, namespace, to_numpy
from tidewolf.core.sparse import as_sparse, is_sparse, row_of_each
from tidewolf.core.types import Array, Floats, Int64s, Shape

# Sums that a product of two vectors is made of, and terms that are made at a time.
LANES, AT_ONCE = 8, 1 << 15


@dataclass(frozen=True)
class Uncopied(settings.Numbers):
    def __call__(self, value: Any, what: str) -> Array:
        return as_array(value, what)


@dataclass(frozen=True)
class WholeNumbers(Uncopied):
    """Whole numbers from `least` on, that count entries, in an array with so many axes."""

    axes: int = field(default=1, kw_only=True)
    least: int = field(default=0, kw_only=True)

    def __call__(self, value: Any, what: str) -> Int64s:
        if type(value) is not np.ndarray or value.dtype.kind != "i":
            value = to_numpy(as_array(value, what))
        if value.ndim != self.axes:
            raise errors.WrongShape(f"{what} needs {self.axes} axes, not shape {value.shape}.")
        whole = bool((value == np.round(value)).all()) and value.min(initial=0) >= self.least
        if not whole or value.max(initial=0) > np.iinfo(np.int32).max:
            raise errors.InvalidInput(f"{what} must be whole numbers from {self.least} on.")
        return np.asarray(value, dtype=np.int64)


@dataclass(frozen=True)
class PerRound(Uncopied):
    """Numbers with rounds first and at least `axes` axes, which are never copied; where `sparse`,
    also a sparse matrix of SciPy, as compressed rows.
    """

    axes: int = field(default=2, kw_only=True)
    sparse: bool = field(default=False, kw_only=True)

    def __call__(self, value: Any, what: str) -> Array:
        compressed = self.sparse and is_sparse(value)
        array = as_sparse(value, what) if compressed else as_array(value, what)
        if (array.ndim < self.axes and not compressed) or 0 in array.shape[1:]:
            due = f"entries, and {self.axes} axes or more, rounds first (`.one(...)` makes one)"
            raise errors.WrongShape(f"{what} needs {due}, not shape {tuple(array.shape)}.")
        return array


Coefficients: TypeAlias = Annotated[Array, PerRound(sparse=True)]


class ArrayBatch(batch.Batch):
    """A batch of arrays with rounds first, and of settings that all rounds share.

    Its fields are all that it keeps: a view cuts the arrays that `by_round` names, and takes over
    the rest.
    """

    # what it keeps once made, of the fields that all rounds share alone
    of_all_rounds: ClassVar[tuple[str, ...]] = ()

    @property
    @abstractmethod
    def by_round(self) -> tuple[str, ...]:
        """The fields whose first axis is rounds."""

    @property
    def shape(self) -> Shape:
        return tuple(self.__dict__[self.by_round[0]].shape[1:])

    def __len__(self) -> int:
        return int(self.__dict__[self.by_round[0]].shape[0])

    def view(self, rounds: slice) -> Self:
        view = object.__new__(type(self))  # by hand: every round of a run takes two
        fields = view.__dict__
        fields.update(self.__dict__)
        for name in self.by_round:
            part = fields[name]
            if is_sparse(part):
                start, stop, _ = rounds.indices(len(self))
                each = part.shape[0] // max(1, len(self))
                fields[name] = sparse.cut_rows(part, each * start, each * max(start, stop))
            else:
                fields[name] = part[rounds, ...]
        return view

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self | None:
        whole, made = {}, cast(Any, parts[0])  # a dataclass, which its type does not say
        fits = all(part.by_round == made.by_round for part in parts)
        for name in (each.name for each in dataclass_fields(made) if fits):
            several = [part.__dict__[name] for part in parts]
            whole[name] = mine = several[0]
            if name not in made.by_round:
                fits = all(mine is other or values.same(mine, other) for other in several)
            elif fits := len({(type(a), a.dtype, tuple(a.shape[1:])) for a in several}) == 1:
                join = sparse.stack_rows if is_sparse(mine) else namespace(mine).concat
                whole[name] = join(several)
            if not fits:
                return None
        return cls._unchecked(**whole) if fits else None

    def _match(self, name: str, shape: Shape, reference: Array) -> None:
        self._require_shape(name, shape)
        array, reference = (
            self.__dict__[name],
            reference.data if is_sparse(reference) else reference,
        )
        if type(array) is not type(reference) or array.dtype != reference.dtype:
            object.__setattr__(self, name, like(array, reference))


def one_round(x: object, what: str, *, axes: int = 1, sparse: bool = False) -> Array:
    """An array of a single round with at least `axes` axes, as one with rounds first; where
    `sparse`, also a sparse vector.
    """
    if sparse and is_sparse(x):
        vector: Any = x
        array = as_sparse(vector.reshape((1, -1)) if vector.ndim == 1 else vector, what)
    else:
        array = as_array(x, what)[None, ...]
    if array.shape[0] != 1 or array.ndim <= axes or 0 in array.shape:
        due = f"entries of one round, with {axes} axes or more"
        raise errors.WrongShape(f"{what} needs {due}, not rounds first as {tuple(array.shape)}.")
    return array


def rows(x: Array) -> Array:
    return x if x.ndim == 2 else namespace(x).reshape(x, (x.shape[0], math.prod(x.shape[1:])))


def shaped(x: Array, shape: Shape) -> Array:
    """The inverse of flattening: an array with the entries of x and this shape."""
    return x if x.ndim == len(shape) else namespace(x).reshape(x, shape)


def products(A: Array, x: Array) -> Array:
    """<a_t, x> for each row of a matrix, dense or sparse; a single row as kernels do it."""
    if is_sparse(A):
        return like(A @ to_numpy(flat(x)), x)
    if A.shape[0] != 1:
        return A @ flat(x)
    if type(A) is not np.ndarray:
        return (A[0, :] @ flat(x))[None]  # see `weighted`
    return lane_products(A, flat(x))


def lane_products(A: Array, x: Array) -> Array:
    """<a_i, x> for the rows of one round: NumPy's doubles in the order of `dot` of
    kernels/active_set.py, so that a round in Python has the bits of one in a kernel.
    """
    if not (type(A) is type(x) is np.ndarray and A.dtype == x.dtype == np.float64):
        return A @ x
    rows, n = A.shape
    whole, lanes = n - n % LANES, np.zeros((rows, LANES))
    at_once = max(1, AT_ONCE // (LANES * max(1, rows))) * LANES
    for start in range(0, whole, at_once):
        stop = min(start + at_once, whole)
        terms = (A[:, start:stop] * x[start:stop]).reshape(rows, -1, LANES)
        terms[:, 0] += lanes
        # each lane from its first term on, as `np.sum` need not do it
        lanes = np.einsum("rkl->rl", terms)
    s = lanes.T
    total: Floats = ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]))
    for j in range(whole, n):
        total = total + A[:, j] * x[j]
    return total


def own_products(A: Array, points: Array) -> Array:
    """<a_t, x_t> for each row with a point of its own."""
    if is_sparse(A):
        row, x = row_of_each(A), to_numpy(points)
        each = max(1, A.shape[0] // max(1, x.shape[0]))  # rows of a round
        return like(np.bincount(row, A.data * x[row // each, A.indices], A.shape[0]), points)
    return namespace(points).vecdot(A, points)


def weighted(A: Array, weights: Array) -> Array:
    """sum_t weights_t a_t over the rows."""
    if is_sparse(A):
        return like(to_numpy(weights) @ A, weights)
    if type(A) is not np.ndarray and A.shape[0] == 1:
        return weights[0] * A[0, :]  # a product of matrices takes a device ten times as long
    return weights @ A


def each_row(A: Array, x: Array) -> Array:
    """The rows themselves as an array, in the library of x where they are sparse."""
    return like(A.toarray(), x) if is_sparse(A) else A


def beside(b: Array, A: Array, x: Array) -> Array:
    """Offsets beside the products of A with x: sparse coefficients, and what is beside them, live
    on the host.
    """
    return like(b, x) if is_sparse(A) else b
