"""The loss of growing wealth:  f_t(x) = -log <r_t, x>,  with r_t what a unit put into each asset is
worth after round t.

Summed over the rounds it is minus the logarithm of what a unit has become. The gradient is -r_t /
<r_t, x>. It is defined where <r_t, x> > 0 in every round: on all of a simplex, when every r_t is
positive.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self, final

import numpy as np

from tidewolf.core.arrays import as_array, flat, namespace, to_numpy
from tidewolf.core.batch import Batch
from tidewolf.core.errors import InvalidInput
from tidewolf.core.types import Array, Floats, Shape
from tidewolf.functions.base import batch_array, row_norms, rows, stacked


@final
@dataclass(frozen=True, eq=False, repr=False)
class LogWealth(Batch):
    """Minus the logarithms of growth; returns has shape (rounds, *shape)."""

    domain = "points with <r, x> > 0 for the returns r of every round"

    returns: Array

    def __post_init__(self) -> None:
        object.__setattr__(
            self, "returns", batch_array(self.returns, "The returns of a LogWealth batch")
        )

    @classmethod
    def one(cls, returns: Array) -> LogWealth:
        """A single round with these returns."""
        return cls(as_array(returns, "The returns of a LogWealth function")[None, ...])

    def __len__(self) -> int:
        return int(self.returns.shape[0])

    @property
    def shape(self) -> Shape:
        return tuple(self.returns.shape[1:])

    def view(self, rounds: slice) -> Self:
        return self._shared(returns=self.returns[rounds, ...])

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self | None:
        return stacked(parts, "returns")

    def values(self, x: Array) -> Array:
        return -namespace(self.returns).log(self._growth(x))

    def values_at(self, points: Array) -> Array:
        return -namespace(points).log(
            _positive(namespace(points).vecdot(rows(self.returns), rows(points)))
        )

    def subgradient(self, x: Array, weights: Array) -> Array:
        total = -((weights / self._growth(x)) @ rows(self.returns))
        return total if self.returns.ndim == 2 else namespace(total).reshape(total, self.shape)

    def gradients(self, x: Array) -> Array:
        xp, growth = namespace(self.returns), self._growth(x)
        return -self.returns / xp.reshape(growth, (len(self),) + (1,) * len(self.shape))

    def slopes(self, x: Array) -> Floats:
        return np.asarray(row_norms(rows(self.returns)) / to_numpy(self._growth(x)))

    def _growth(self, x: Array) -> Array:
        return _positive(rows(self.returns) @ flat(x))

    @classmethod
    def examples(cls) -> Sequence[LogWealth]:
        return (
            cls([[1.1, 0.9, 1.0], [0.5, 2.0, 1.0]]),
            cls.one([3.0]),
            cls(np.arange(1.0, 9.0).reshape(2, 2, 2)),
        )


def _positive(growth: Array) -> Array:
    """Growth to take the logarithm of."""
    xp = namespace(growth)
    if growth.shape[0] and not bool(xp.all(growth > 0)):
        t = int(np.argmin(to_numpy(growth) > 0))
        raise InvalidInput(
            f"LogWealth is defined on {LogWealth.domain}; at this point <r, x> is "
            f"{float(growth[t]):g} in round {t} of it."
        )
    return growth
