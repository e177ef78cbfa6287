"""The loss of growing wealth:  f_t(x) = -log <r_t, x>,  with r_t what a unit put into each asset is
worth after round t.

Summed over the rounds it is minus the logarithm of what a unit has become. The gradient is -r_t /
<r_t, x>. It is defined where <r_t, x> > 0 in every round: on all of a simplex, when every r_t is
positive.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, final

import numpy as np

from tidewolf.core.arrays import flat, namespace, to_numpy
from tidewolf.core.errors import InvalidInput
from tidewolf.core.types import Array, Floats, Shape
from tidewolf.functions.base import ArrayBatch, PerRound, one_round, row_norms, rows, shaped


@final
@dataclass(frozen=True, eq=False, repr=False)
class LogWealth(ArrayBatch):
    """Minus the logarithm of growth, -log <r_t, x>, where every <r_t, x> is positive.

    Parameters
    ----------
    returns : array
        What a unit put into each asset is worth after the round, of shape (rounds, *shape of a
        point); for vectors also a frame of pandas or polars.

    Examples
    --------
    >>> f = tw.functions.LogWealth([[1.0, 2.0], [1.0, 0.5]])  # two days, two assets
    >>> wealth = np.exp(-f.values(np.array([0.5, 0.5])).sum())
    >>> float(wealth.round(6))
    1.125
    """

    exp_concavity = 1.0  # exp(-f_t) is <r_t, x>
    domain = "points with <r, x> > 0 for the returns r of every round"
    by_round = ("returns",)

    returns: Annotated[
        Array,
        PerRound(
            "What a unit put into each asset is worth after the round, of shape (rounds, *shape of "
            "a point); for vectors also a frame of pandas or polars."
        ),
    ]

    @classmethod
    def one(cls, returns: Array) -> LogWealth:
        """A single round with these returns."""
        return cls._unchecked(returns=one_round(returns, "returns of LogWealth.one"))

    @property
    def shape(self) -> Shape:
        return tuple(self.returns.shape[1:])

    def values(self, x: Array) -> Array:
        return -namespace(self.returns).log(self._growth(x))

    def values_at(self, points: Array) -> Array:
        return -namespace(points).log(
            _positive(namespace(points).vecdot(rows(self.returns), rows(points)))
        )

    def subgradient(self, x: Array, weights: Array) -> Array:
        return shaped(-((weights / self._growth(x)) @ rows(self.returns)), self.shape)

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
            f"{float(growth[t]):g} in round {t + 1} of it."
        )
    return growth
