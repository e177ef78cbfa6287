"""How far decisions moved: half the L1 change from one round to the next.

    churn_1 = 0,    churn_t = 1/2 sum_i |x_{t,i} - x_{t-1,i}|

On a simplex it is the share that changed its place, on flows the traffic that was moved, with what
it left and what it went to counted as one. Rounds that share a point move nothing. Only the last
point is kept, so memory does not grow with the rounds.
"""

from __future__ import annotations

from typing import Any, final

import numpy as np

from tidewolf.core.arrays import like, namespace, to_numpy
from tidewolf.core.types import Array, Floats
from tidewolf.evaluation.metrics import RoundNumbers


@final
class Movement:
    """What moved so far."""

    def __init__(self, rounds: int) -> None:
        self._values: Floats = np.zeros(rounds)
        self._t = 0
        self._last: Array | None = None

    def see(self, points: Array, rounds: int, *, each: bool) -> None:
        """The next rounds, played at one point, or (`each`) at a point each, (rounds, *shape)."""
        first, t = points[0, ...] if each else points, self._t
        self._values[t] = self._from_last(first)
        if each and rounds > 1:
            steps = points[1:, ...] - points[:-1, ...]
            sizes = namespace(points).sum(
                namespace(points).abs(steps), axis=tuple(range(1, points.ndim))
            )
            self._values[t + 1 : t + rounds] = 0.5 * to_numpy(sizes)
        else:
            self._values[t + 1 : t + rounds] = 0.0
        self._t, self._last = t + rounds, points[-1, ...] if each else points

    def tell(self, last: Floats) -> None:
        """That point, where there is one."""
        if self._last is not None and self._last is not last:
            last[:] = to_numpy(self._last)

    def took(self, churn: Floats, last: Floats) -> None:
        """The next rounds, measured elsewhere, the last of which was played at this point; who
        counts keeps it up to date.
        """
        stop = self._t + len(churn)
        self._values[self._t : stop] = churn
        self._t, self._last = stop, last

    def _from_last(self, x: Array) -> float:
        if self._last is None or x is self._last:
            return 0.0
        xp = namespace(x)
        return 0.5 * float(xp.sum(xp.abs(x - self._last)))

    @property
    def churn(self) -> RoundNumbers:
        """Of every round."""
        return RoundNumbers(self._values)

    def parts(self) -> tuple[Any, ...]:
        """Everything as arrays, for a file."""
        return self._values[: self._t], None if self._last is None else to_numpy(self._last)

    def restore(self, t: int, parts: tuple[Any, ...], reference: Array) -> None:
        """What `parts` gave of t rounds, to resume from. Points live where `reference` does."""
        values, last = parts
        self._t, self._values[:t] = t, values
        self._last = None if last is None else like(last, reference)
