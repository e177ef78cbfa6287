"""The features of a round, known before it: few cells with weights that are at least 0 and sum
to 1.

    x_t = sum_j phi_tj W_j,      phi_t >= 0,   sum_j phi_tj = 1,   W_j in K

so that x_t is a member of K. If nothing is known of a round there are no features, and an
expert that needs them is skipped.

Categories: the caller says which of n kinds a round is of, or how much of each:

    context j in 0 .. n-1:   phi_j = 1;        context w >= 0 with sum 1:   phi = w
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Annotated, Any, TypeAlias, final

import numpy as np

from tidewolf.core import arguments, arrays, errors, round_info, settings, values
from tidewolf.core.types import Floats, Int64s, NDArray

# The cells that count in a round, in any order, and their weights.
Features: TypeAlias = tuple[Int64s, Floats]

_ROUNDING = 1e-6  # How far from 1 the sum of weights may be, which then are scaled to it.


class Context(values.Value, ABC):
    """Abstract: the kind of the next round, from its side information.

    A subclass is a frozen dataclass with `cells` and `features`.

    Examples
    --------
    >>> isinstance(tw.experts.Season(96), tw.experts.Context)
    True
    """

    cells: Any
    """how many cells there are, a whole number from 1; a field or a property of a subclass"""

    @abstractmethod
    def features(self, info: round_info.RoundInfo | None, t: int) -> Features | None:
        """The cells of the next round and their weights, nonnegative with sum 1; None if unknown.

        `t` is the number of rounds seen so far.
        """


@final
@dataclass(frozen=True, eq=False, repr=False)
class Categories(Context):
    """One decision per category; the category of a round is given as its context.

    Parameters
    ----------
    n : int
        How many categories there are.

    Examples
    --------
    >>> kinds = tw.experts.Categories(3)
    >>> kinds.features(tw.RoundInfo(context=2), 0)
    (array([2]), array([1.]))
    >>> kinds.features(tw.RoundInfo(context=[0.25, 0.0, 0.75]), 0)
    (array([0, 2]), array([0.25, 0.75]))
    """

    n: Annotated[int, settings.Count(most=2**31 - 1)]

    @property
    def cells(self) -> int:
        """One for each category."""
        return self.n

    def features(self, info: round_info.RoundInfo | None, t: int) -> Features | None:
        if info is None or info.context is None:
            return None
        context = info.context
        if arrays.is_array(context):
            return self._weights(arrays.to_numpy(context))
        if not isinstance(context, int) or not 0 <= context < self.n:
            raise errors.InvalidInput(
                f"The context of a round is a category from 0 to {self.n - 1}, or weights of the "
                f"{self.n} categories, not {arguments.shown(context)}."
            )
        return arrays.frozen(np.array([context])), arrays.frozen(np.ones(1))

    def _weights(self, given: NDArray) -> Features:
        if given.shape != (self.n,):
            raise errors.WrongShape(
                f"The context of a round has a weight for each of the {self.n} categories; it has "
                f"shape {given.shape}."
            )
        weights: Floats = given.astype(np.float64)
        total = float(weights.sum())
        if not (weights >= 0.0).all() or not abs(total - 1.0) <= _ROUNDING:
            raise errors.InvalidInput(
                "The weights of a context are at least 0 and sum to 1; the least is "
                f"{weights.min():g} and the sum {total:g}."
            )
        cells = np.flatnonzero(weights)
        return arrays.frozen(cells), arrays.frozen(weights[cells] / total)
