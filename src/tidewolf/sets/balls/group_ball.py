"""The ball of the group norm: few groups of entries at a time.

    { sum_g w_g |x_g| <= tau }            x_g the entries of group g, |.| Euclidean, weights w_g > 0

Oracle: the group with the largest |d_g|/w_g, the first among equals, gets everything: -(tau/w_g)
d_g/|d_g|; for d = 0 the answer is the center. The farthest members are these, so that the radius is
tau / min w. On the unit sphere sum_g w_g |u_g| is at most |w|, where |u_g| = w_g/|w|: the inner
radius is tau/|w|. Projection: y_g shortened to max(0, |y_g| - t w_g) with the least t >= 0 that
meets the bound, found by sorting |y_g|/w_g. Superset: every group in its own ball of radius
tau/w_g. (Of the largest, not the sum, of the |x_g| the balls are products of `L2Ball`.)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, final

import numpy as np

from tidewolf.core.arrays import (
    as_point,
    frozen,
    is_array,
    length,
    like,
    namespace,
    require_no_mask,
    to_numpy,
)
from tidewolf.core.errors import InvalidInput, WrongShape, WrongType
from tidewolf.core.oracle import Answer
from tidewolf.core.settings import Numbers, require_entries
from tidewolf.core.types import Array, Floats, Int32s, Int64s, NDArray, Shape
from tidewolf.core.vertices import Sparse
from tidewolf.sets.balls.norm_ball import Bound, NormBall
from tidewolf.sets.base import Projectable


class GroupNumbers(Numbers):
    """Whole numbers in the shape of a point: entries with the same one form a group."""

    def __call__(self, value: Any, what: str) -> NDArray:
        require_no_mask(value, what)
        try:
            groups = np.array(to_numpy(value) if is_array(value) else value)
        except (TypeError, ValueError):
            raise WrongType(
                f"{what} must be an array of whole numbers; the rows given have different lengths."
            ) from None
        if groups.dtype.kind == "f" and _are_whole(groups):
            groups = groups.astype(np.int64)  # as tables hold them
        if groups.dtype.kind not in "iu":
            raise WrongType(
                f"{what} must be whole numbers, one for each entry of a point, not of dtype "
                f"{groups.dtype}."
            )
        require_entries(groups.shape, what)
        return frozen(groups)


@final
@dataclass(frozen=True, eq=False, repr=False)
class GroupBall(NormBall, Projectable):
    """Arrays whose groups have weighted lengths of at most `tau` in sum. Geometry exact.

    Parameters
    ----------
    groups : array
        A whole number for each entry, in the shape of a point: entries with the same number
        form a group.
    tau : float, default 1.0
        What the norm of a member is at most.
    weights : array, optional
        The weight of each group, above 0, in the order of their numbers. None: 1 for each.

    Examples
    --------
    >>> K = tw.sets.GroupBall([0, 0, 1], tau=5.0)
    >>> K.lmo(np.array([3.0, -4.0, 1.0]))
    array([-3.,  4.,  0.])
    """

    groups: Annotated[
        Array,
        GroupNumbers(
            "A whole number for each entry, in the shape of a point: entries with the same number "
            "form a group."
        ),
    ]
    tau: Bound = 1.0
    weights: Annotated[
        Array,
        Numbers(
            "The weight of each group, above 0, in the order of their numbers. None: 1 for each."
        ),
    ] = None

    def __post_init__(self) -> None:
        super().__post_init__()
        count = len(np.unique(self.groups))
        if self.weights is None:
            object.__setattr__(self, "weights", frozen(np.ones(count)))
        shape = tuple(self.weights.shape)
        if shape != (count,):
            raise WrongShape(
                f"weights of GroupBall has shape {shape}; there are {count} groups.",
                setting="weights",
            )
        if float(namespace(self.weights).min(self.weights)) <= 0:
            raise InvalidInput(
                "weights of GroupBall must be greater than 0: a group without weight would be free "
                "to go anywhere.",
                setting="weights",
            )

    @property
    def shape(self) -> Shape:
        return tuple(self.groups.shape)

    @cached_property
    def radius(self) -> float:
        return self.tau / float(np.min(self._w))

    @cached_property
    def inner_radius(self) -> float:
        return self.tau / length(self._w)

    def norm(self, x: Array) -> float:
        """sum_g w_g |x_g|."""
        return float(self._w @ self._lengths(_numbers(x)))

    def answer(self, direction: Array, warm: Array | None = None) -> Answer:
        d = _numbers(direction)
        lengths = self._lengths(d)
        g = int(np.argmax(lengths / self._w))
        if lengths[g] == 0.0:
            return Answer(Sparse.zero(self.shape))
        chosen = self._order[self._starts[g] : self._starts[g + 1]]
        return Answer(
            Sparse(self.shape, chosen, (-self.tau / self._w[g]) * (d[chosen] / lengths[g]))
        )

    def project(self, y: Array) -> Array:
        """Every group shortened by its weight times one number."""
        y = as_point(y, self.shape, "The point to project")
        lengths, w = self._lengths(_numbers(y)), self._w
        if w @ lengths <= self.tau:
            return namespace(y).asarray(y, copy=True)
        ratios = lengths / w
        ratios = ratios - np.max(ratios)  # t is measured from the top, or a far y would swallow tau
        order = np.argsort(-ratios)
        square = w[order] ** 2
        ts = (np.cumsum(square * ratios[order]) - self.tau) / np.cumsum(square)
        t = ts[np.count_nonzero(ratios[order] > ts) - 1]
        return self._with_lengths(y, lengths, w * np.maximum(ratios - t, 0.0))

    def relax(self, y: Array) -> Array:
        """Every group shortened to tau/w_g, where it is longer."""
        y = as_point(y, self.shape, "The point to relax")
        lengths = self._lengths(_numbers(y))
        return self._with_lengths(y, lengths, np.minimum(lengths, self.tau / self._w))

    @classmethod
    def examples(cls) -> Sequence[GroupBall]:
        return (cls([7]), cls([0, 0, 1, 2, 1], 2.0, [1.0, 0.5, 3.0]), cls([[3, 3], [-1, -1]], 0.1))

    def _lengths(self, x: Floats) -> Floats:
        """|x_g| for every group, without overflow or underflow on the way."""
        largest = float(np.max(np.abs(x))) or 1.0
        return largest * np.sqrt(np.bincount(self._labels, (x / largest) ** 2))

    def _with_lengths(self, y: Array, old: Floats, new: Floats) -> Array:
        factors = np.divide(new, old, out=np.zeros_like(old), where=old > 0)
        return y * like(factors[self._labels].reshape(self.shape), y)

    @cached_property
    def _w(self) -> Floats:
        return to_numpy(self.weights).astype(np.float64)

    @cached_property
    def _labels(self) -> Int64s:
        """The group of each entry, numbered from 0."""
        return np.unique(self.groups.reshape(-1), return_inverse=True)[1]

    @cached_property
    def _order(self) -> Int32s:
        """The entries, group by group."""
        return np.argsort(self._labels, kind="stable").astype(np.int32)

    @cached_property
    def _starts(self) -> Int64s:
        return np.concatenate([[0], np.cumsum(np.bincount(self._labels))])


def _are_whole(groups: NDArray) -> bool:
    numbers = groups.astype(np.float64)  # in halves 2^53 is infinite
    return bool(np.all((np.abs(numbers) <= 2**53) & (numbers == np.rint(numbers))))


def _numbers(x: Array) -> Floats:
    return to_numpy(x).astype(np.float64).reshape(-1)
