"""Rounds without constraints:  g_t(x) = -1  for every x.

What a stream has if no constraints are given: every point satisfies it, its gradient is 0, and no
caller needs a special case.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Self, final

import numpy as np

from tidewolf.core.arrays import full, zeros
from tidewolf.core.batch import Batch
from tidewolf.core.piecewise import Halfspaces, PiecewiseLinear
from tidewolf.core.settings import Count, Size
from tidewolf.core.types import Array, Floats, Shape


@final
@dataclass(frozen=True, eq=False, repr=False)
class Unlimited(Batch, PiecewiseLinear):
    """No limit: -1 everywhere. What a stream has where no constraints are given.

    Parameters
    ----------
    sides : int or tuple of int
        How many entries a point has, or its shape.
    rounds : int, default 1
        How many rounds there are.

    Examples
    --------
    >>> stream = tw.Stream(tw.functions.Linear([[1.0, 2.0], [0.0, 3.0]]))
    >>> stream.constraints
    Unlimited(sides=2, rounds=2)
    >>> stream.constraints.values(np.array([9.0, 9.0]))
    array([-1., -1.])
    """

    sides: Annotated[int | Shape, Size("How many entries a point has, or its shape.")]
    rounds: Annotated[int, Count("How many rounds there are.", least=0)] = 1

    @classmethod
    def one(cls, sides: int | Shape) -> Unlimited:
        """A single round."""
        return cls(sides)

    def __len__(self) -> int:
        return self.rounds

    @property
    def shape(self) -> Shape:
        return self.sides if isinstance(self.sides, tuple) else (self.sides,)

    def view(self, rounds: slice) -> Self:
        start, stop, _ = rounds.indices(self.rounds)
        return self._unchecked(sides=self.sides, rounds=max(0, stop - start))

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self | None:
        if any(part.shape != parts[0].shape for part in parts):
            return None
        return cls._unchecked(sides=parts[0].sides, rounds=sum(map(len, parts)))

    def values(self, x: Array) -> Array:
        return full(self.rounds, -1.0, x)

    def values_at(self, points: Array) -> Array:
        return full(self.rounds, -1.0, points)

    def subgradient(self, x: Array, weights: Array) -> Array:
        return 0.0 * x

    def gradients(self, x: Array) -> Array:
        return zeros((self.rounds, *self.shape), x)

    def slopes(self, x: Array) -> Floats:
        return np.zeros(self.rounds)

    def halfspaces(self) -> Halfspaces:
        """One that holds all points, 0 <= 1, where there are rounds: solvers want one."""
        from scipy.sparse import csr_array

        rows = min(1, self.rounds)
        return Halfspaces(
            csr_array((rows, math.prod(self.shape))), np.ones(rows), np.zeros(rows, dtype=np.int64)
        )

    @classmethod
    def examples(cls) -> Sequence[Unlimited]:
        return (cls(3, 4), cls.one(1), cls((2, 2), 2))
