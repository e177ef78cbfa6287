"""Many simplices at once: shares of 1 in every group of a vector.

    { x >= 0, the entries of each group sum to 1 }      groups of sizes n_1, ..., n_q, end to end

Oracle: the cheapest entry of each group gets everything; ties go to the earlier one. Center 1/n_b
in group b. Each group is a factor, a `Simplex` of its own, with

    R_b^2 = 1 - 1/n_b        D_b^2 = 2 (0 where n_b = 1)        r_b = (1/n_b) / sqrt(1 - 1/n_b)

so radius^2 = sum R_b^2, diameter^2 = sum D_b^2, and the inner radius is the least r_b of groups
with a choice. All passes are over the vector as it lies, in double precision.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, ClassVar, final

import numpy as np

from tidewolf.core.arguments import as_items
from tidewolf.core.arrays import (
    MOST_ENTRIES,
    as_count,
    as_direction,
    as_point,
    frozen,
    like,
    to_numpy,
)
from tidewolf.core.errors import EmptySet, InvalidInput
from tidewolf.core.oracle import Answer
from tidewolf.core.settings import Check, Names
from tidewolf.core.types import Array, Floats, Int64s, Shape
from tidewolf.core.vertices import Sparse, Vertex
from tidewolf.kernels.columns import LONGEST, onto_small_simplices
from tidewolf.kernels.simplices import (
    cheapest_of_each,
    onto_simplices,
    simplices_infeasibility,
    within_groups,
)
from tidewolf.sets.base import (
    Compiled,
    ConvexSet,
    Factors,
    LinearDescription,
    Polyhedral,
    Projectable,
    Relaxable,
    clipped,
)


class Sizes(Check):
    """How many entries each of one or more groups has."""

    words: ClassVar[str] = "a list of whole numbers such as [3, 3, 2]"

    def __call__(self, value: Any, what: str) -> tuple[int, ...]:
        given = as_items(value, what, "[3, 3, 2]")
        sizes = tuple(as_count(size, f"Each of {what}", most=MOST_ENTRIES) for size in given)
        if not sizes:
            raise EmptySet(f"{what} must be at least one: of no groups there are no points.")
        if sum(sizes) > MOST_ENTRIES:
            raise InvalidInput(
                f"{what} make {sum(sizes)} entries; a point has at most {MOST_ENTRIES}."
            )
        return sizes

    def read(self, value: Any) -> tuple[int, ...] | None:
        whole = isinstance(value, list) and value and all(type(size) is int for size in value)
        return tuple(value) if whole else None


@final
@dataclass(frozen=True, eq=False, repr=False)
class SimplexProduct(ConvexSet, Projectable, Polyhedral, Relaxable, Compiled):
    """Nonnegative vectors whose entries sum to 1 in every group. Geometry exact.

    Parameters
    ----------
    sizes : sequence of int
        How many entries each group has; groups follow one another.
    labels : sequence of str, default ()
        What the entries are called, no two alike; empty where they have no names.

    Examples
    --------
    >>> K = tw.sets.SimplexProduct([3, 2])  # the splits of two demands, over three paths and two
    >>> K.lmo(np.array([2.0, -1.0, 0.5, 4.0, 3.0]))
    array([0., 1., 0., 0., 1.])
    """

    oracle: ClassVar = cheapest_of_each

    sizes: Annotated[
        Sequence[int], Sizes("How many entries each group has; groups follow one another.")
    ]
    labels: Annotated[
        Sequence[str],
        Names("What the entries are called, no two alike; empty where they have no names."),
    ] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.labels and (len(set(self.labels)), len(self.labels)) != (sum(self.sizes),) * 2:
            raise InvalidInput(
                f"labels of SimplexProduct are {sum(self.sizes)} different names, one an entry; "
                f"{len(set(self.labels))} were given.",
                setting="labels",
            )

    def __repr__(self) -> str:
        equal = len(self.sizes) > 4 and len(set(self.sizes)) == 1
        sizes = f"{len(self.sizes)} x {self.sizes[0]}" if equal else f"{tuple(self.sizes)}"
        return f"SimplexProduct(sizes={sizes})"

    @cached_property
    def shape(self) -> Shape:
        return (sum(self.sizes),)

    @property
    def names(self) -> tuple[str, ...] | None:
        """Those of `labels`, where there are some."""
        return tuple(self.labels) or None

    @property
    def dimension(self) -> int:
        return self.shape[0] - len(self.sizes)

    @cached_property
    def starts(self) -> Int64s:
        """Group b has the entries from starts[b] to starts[b + 1] - 1."""
        starts: Int64s = frozen(np.cumsum([0, *self.sizes], dtype=np.int64))
        return starts

    @cached_property
    def owner(self) -> Int64s:
        """The group of each entry."""
        owner: Int64s = frozen(np.repeat(np.arange(len(self.sizes)), self.sizes))
        return owner

    @cached_property
    def center(self) -> Array:
        return frozen((1.0 / self._counts)[self.owner])

    @cached_property
    def radius(self) -> float:
        return math.sqrt(float((1.0 - 1.0 / self._counts).sum()))

    @cached_property
    def diameter(self) -> float:
        return math.sqrt(2.0 * int(np.count_nonzero(self._counts > 1)))

    @cached_property
    def inner_radius(self) -> float:
        return 1.0 / math.sqrt(n * (n - 1.0)) if (n := max(self.sizes)) > 1 else 0.0

    @cached_property
    def factors(self) -> Factors:
        return Factors(
            self.starts[:-1],
            frozen(np.sqrt(1.0 - 1.0 / self._counts)),
            frozen(np.where(self._counts > 1, math.sqrt(2.0), 0.0)),
            exact=True,
        )

    def tangent(self, direction: Array) -> Array:
        direction = as_direction(direction, self.shape)
        along = np.empty(self.shape)
        within_groups(_doubles(direction), self.starts, along)
        return like(along, direction)

    def infeasibility(self, x: Array) -> float:
        """The largest negative entry or error of a group's sum."""
        x = as_point(x, self.shape, "The point")
        return float(simplices_infeasibility(_doubles(x), self.starts))

    def answer(self, direction: Array, warm: Array | None = None) -> Answer:
        return Answer(self.minimiser(to_numpy(direction)))

    @property
    def kernel_data(self) -> Int64s:
        return self.starts

    @property
    def max_nonzeros(self) -> int:
        return len(self.sizes)

    def atom(self, point: Array) -> Vertex:
        return Sparse.of(point)

    def project(self, y: Array) -> Array:
        """Group by group: x = max(y - tau, 0) with the tau that meets the sum."""
        y = as_point(y, self.shape, "The point to project")
        x, largest = np.empty(self.shape), max(self.sizes)
        if largest <= LONGEST:
            onto_small_simplices(_doubles(y), self.factors.starts, largest, x)
        else:
            onto_simplices(_doubles(y), self.starts, x)
        return like(x, y)

    def relax(self, y: Array) -> Array:
        """The box [0, 1]^n around it."""
        return clipped(y, self.shape, 0.0, 1.0)

    def description(self) -> LinearDescription:
        from scipy.sparse import csr_array

        n = self.shape[0]
        rows = csr_array((np.ones(n), np.arange(n), self.starts), shape=(len(self.sizes), n))
        return LinearDescription(np.zeros(n), np.ones(n), A_eq=rows, b_eq=np.ones(len(self.sizes)))

    @classmethod
    def examples(cls) -> Sequence[SimplexProduct]:
        return cls([3, 3, 3]), cls([2, 1, 4]), cls([1, 1])

    @cached_property
    def _counts(self) -> Floats:
        return np.array(self.sizes, dtype=np.float64)


def _doubles(x: Array) -> Floats:
    """What kernels are compiled for."""
    found = np.ascontiguousarray(to_numpy(x), dtype=np.float64)
    return frozen(found.view()) if found.flags.writeable else found
