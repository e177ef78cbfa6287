"""What stands beside a mean: how bad rounds get.

    p99      99 % of the rounds are at most that, between two rounds by linear interpolation
    worst    the largest of all rounds, and which round that was

Where a number is not known of every round, nothing is said.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Self, final

import numpy as np

from tidewolf.core.types import Floats


class Spread(NamedTuple):
    """A number of each round, in short."""

    mean: float
    p99: float
    worst: float
    worst_round: int
    """counted from 0"""

    def plain(self) -> dict[str, Any]:
        """As files have it: rounds count from 1."""
        return {**self._asdict(), "worst_round": self.worst_round + 1}


def spread(values: Floats) -> Spread | None:
    """The numbers of a run's rounds in short; None without a round, or where one is not known."""
    if len(values) == 0 or np.isnan(values).any():
        return None
    worst = int(np.argmax(values))
    return Spread(
        float(np.mean(values)), float(np.quantile(values, 0.99)), float(values[worst]), worst
    )


@final
class RoundNumbers(np.ndarray[Any, np.dtype[np.float64]]):
    """A number of each round: an array that knows its `p99` and its `worst`; `mean()` is the
    array's own.
    """

    def __new__(cls, values: Floats) -> Self:
        numbers = np.asarray(values, dtype=np.float64).view(cls)
        numbers.flags.writeable = False
        return numbers

    def __array_wrap__(
        self, array: Any, context: Any = None, return_scalar: bool = False
    ) -> Any:  # what is computed from them are plain numbers
        return array[()] if return_scalar else np.asarray(array)

    @property
    def p99(self) -> float:
        """What 99 % of the rounds do not exceed; NaN without a round, or where one is not known."""
        return self._of_spread("p99")

    @property
    def worst(self) -> float:
        """The largest of all rounds; NaN without a round, or where one is not known."""
        return self._of_spread("worst")

    def _of_spread(self, name: str) -> float:
        found = spread(np.asarray(self))
        return np.nan if found is None else float(getattr(found, name))
