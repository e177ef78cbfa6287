"""What advisers that re-solve remember, as the arrays of kernels/resolving.py, and back.

For rounds of linear costs and capacities, one after another, over a set of equations and boxes:
then each round's programs are solved in the same pass as its steps.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tidewolf.core.arrays import frozen
from tidewolf.core.oracle import HasLMO
from tidewolf.core.types import Floats, Int64s, NDArray
from tidewolf.experts.base import Adviser
from tidewolf.experts.recent import Drops, RecentRounds, SeenRound
from tidewolf.experts.resolve import Resolve, ResolveState
from tidewolf.functions.linear import Capacity, Linear
from tidewolf.hindsight.boxed_model import BoxedBasis, BoxedModel
from tidewolf.kernels import resolving

MOST_ENTRIES = 1 << 22  # Costs that are remembered here at most.


class Rows:
    """Costs and capacities of rounds, to which others are appended; states share it."""

    def __init__(self, keep: int, costs: NDArray, capacities: NDArray) -> None:
        self.keep, self.filled = keep, 0
        self.arrays = np.empty((2, 2 * keep + 64, costs.shape[1]))
        self.append(costs[-keep:], capacities[-keep:])

    def append(self, costs: NDArray, capacities: NDArray) -> None:
        stop = self.filled + len(costs)
        self.arrays[0, self.filled : stop], self.arrays[1, self.filled : stop] = costs, capacities
        self.filled = stop

    def after(self, end: int, costs: NDArray, capacities: NDArray) -> "Rows":
        """With these rounds after the first `end`: the same while there is room and no other
        state has appended any.
        """
        if end == self.filled and end + len(costs) <= self.arrays.shape[1]:
            self.append(costs, capacities)
            return self
        old = self.arrays[:, max(0, end - self.keep) : end]
        both = zip(old, (costs[-self.keep :], capacities[-self.keep :]), strict=True)
        return Rows(self.keep, *(np.concatenate(parts) for parts in both))


class Resolving:
    """What advisers remember before the round of a number. Never changed by `after`."""

    def __init__(
        self,
        advisers: Sequence[Resolve],
        states: Sequence[ResolveState],
        model: BoxedModel,
        number: int,
    ) -> None:
        self._advisers, self._states, self._number = advisers, states, number
        starts, rows, values, b, top, _, base, give, origin, unit = model.plain.data
        past, n, cold = _longest(states), len(origin), model.plain.cold
        sizes, own = [len(one.headroom) for one in advisers], [_basis(s, cold) for s in states]
        self.floats: Floats = _joined(
            *(one.headroom for one in advisers),
            *(s.drops.mean2 if s.drops.counted else np.zeros(n) for s in states),
            *(basis.inverse for basis in own),
            *(values, b, top, base, give, origin, [unit, model.tol]),
        )
        self.ints: Int64s = _joined(
            (len(advisers), n, sum(sizes), len(b), len(top), len(values), 0),
            [one.data if isinstance(one.data, int) else 1 for one in advisers],
            np.cumsum([0, *sizes]),
            [state.drops.counted for state in states],
            [basis.age for basis in own],
            *(basis.basis for basis in own),
            *(cold.basis, starts, rows),
        ).astype(np.int64)
        C = [seen.loss.C for seen in past] or [np.zeros((0, n))]  # type: ignore[attr-defined]
        c = [seen.limit.c for seen in past] or [np.zeros((0, n))]  # type: ignore[attr-defined]
        keep = max(one.keep for one in advisers)
        self._rows, self._end = Rows(keep, np.concatenate(C), np.concatenate(c)), len(past)
        self._x: Floats | None = None

    @classmethod
    def of(
        cls, K: HasLMO, advisers: Sequence[Adviser], states: Sequence[Any], number: int
    ) -> "Resolving | None":
        """None if one of them does something else, or remembers something else."""
        plain = [one for one in advisers if isinstance(one, Resolve) and one.is_plain]
        model = plain[0].model(K) if plain and len(K.shape) == 1 else None
        if len(plain) < len(advisers) or not isinstance(model, BoxedModel):
            return None
        if max(one.keep for one in plain) * K.shape[0] > MOST_ENTRIES:
            return None
        known, each = len(_longest(states)), zip(plain, states, strict=True)
        usual = all(_is_usual(*own, known, number, K.shape[0]) for own in each)
        return cls(plain, states, model, number) if usual else None

    def copy(self) -> "Resolving":
        made = object.__new__(Resolving)
        made.__dict__.update(self.__dict__)
        made.floats, made.ints = self.floats.copy(), self.ints.copy()
        return made

    def arrays(self, begin: int) -> tuple[NDArray, ...]:
        """For the kernel, whose first round is in this row of its functions."""
        self.ints[resolving.BEGIN] = begin
        first, (costs, capacities) = max(0, self._end - self._rows.keep), self._rows.arrays
        return self.floats, self.ints, costs[first : self._end], capacities[first : self._end]

    def played(self, costs: NDArray, capacities: NDArray, x: Floats) -> list[int]:
        """These rounds are over, in the last of which x was played; how many programs were solved
        for each expert.
        """
        rounds, known = len(costs), min(self._end, self._rows.keep)
        rows = self._rows.after(self._end, costs, capacities)
        self._end = self._end + rounds if rows is self._rows else rows.filled
        self._rows, self._number, self._x = rows, self._number + rounds, x
        found = list[int]()
        for one in self._advisers:
            back = one.data if isinstance(one.data, int) else 1
            found += [max(0, rounds - max(0, back - 1 - known))] * len(one.headroom)
        return found

    def states(self) -> list[ResolveState]:
        if self._x is None:
            return list(self._states)
        (_, _, counted, ages, bases, _, _, drops, inverses), program = resolving.views.plain(
            self.floats, self.ints
        )
        keep = min(self._rows.keep, self._end)
        C, c = (frozen(part[self._end - keep : self._end].copy()) for part in self._rows.arrays)
        seen = tuple(
            SeenRound(
                Linear._unchecked(C=C[i : i + 1]),
                Capacity._unchecked(c=c[i : i + 1]),
                math.nan,
                self._number - keep + i,
            )
            for i in range(keep)
        )
        found = []
        for a, (adviser, state) in enumerate(zip(self._advisers, self._states, strict=True)):
            boxed, mean2 = state.boxed, drops[a].copy() if counted[a] else np.zeros(0)
            if ages[a] >= 0:
                basis, inverse = bases[a].copy(), inverses[a].copy()
                boxed = BoxedBasis(len(program[4]), basis, inverse, int(ages[a]))
            found.append(
                state._replace(
                    recent=RecentRounds(seen[max(0, keep - adviser.keep) :]),
                    drops=Drops(frozen(mean2), int(counted[a])),
                    x=self._x,
                    boxed=boxed,
                    upcoming=self._number,
                )
            )
        return found


def _joined(*parts: Any) -> NDArray:
    return np.concatenate([np.asarray(part).reshape(-1) for part in parts])


def _longest(states: Sequence[ResolveState]) -> tuple[SeenRound, ...]:
    return max((state.recent.rounds for state in states), key=len)


def _basis(state: ResolveState, cold: BoxedBasis) -> BoxedBasis:
    own = state.boxed or cold
    return own if own.columns == cold.columns and len(own.basis) == len(cold.basis) else cold


def _is_usual(adviser: Resolve, state: ResolveState, known: int, number: int, n: int) -> bool:
    rounds = state.recent.rounds
    return (
        state.lag == state.decided_lag == 1
        and not state.waiting
        and len(state.drops.mean2) in (0, n)
        and len(rounds) == min(known, adviser.keep)
        and (not rounds or rounds[-1].number == number - 1)
        and (not rounds or rounds[0].number == number - len(rounds))
        and all(
            type(seen.loss) is Linear
            and type(seen.limit) is Capacity
            and type(seen.loss.C) is type(seen.limit.c) is np.ndarray
            for seen in rounds
        )
    )
