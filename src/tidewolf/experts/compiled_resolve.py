"""What advisers that re-solve remember, as the arrays of kernels/resolving.py, and back.

For rounds of linear costs and capacities, one after another, over a set of equations and boxes:
then each round's programs are solved in the same pass as its steps.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tidewolf.core.arrays import frozen
from tidewolf.core.oracle import HasLMO
from tidewolf.core.types import Floats, Int64s, NDArray
from tidewolf.experts.base import Adviser
from tidewolf.experts.headroom import Drops
from tidewolf.experts.recent import RecentRounds, SeenRound
from tidewolf.experts.resolve import Resolve, ResolveState
from tidewolf.functions.linear import Capacity, Linear
from tidewolf.hindsight.boxed_model import BoxedBasis, BoxedModel
from tidewolf.kernels.resolving import views


class Resolving:
    """The memories of advisers before round `begin` of given rounds, which has this number."""

    def __init__(
        self,
        advisers: Sequence[Resolve],
        states: Sequence[ResolveState],
        model: BoxedModel,
        costs: NDArray,
        capacities: NDArray,
        begin: int,
        number: int,
    ) -> None:
        self._advisers, self._states, self._given = advisers, states, (costs, capacities)
        self._begin, self._number, cold = begin, number, model.plain.cold
        starts, rows, values, b, top, _, base, give, origin, unit = model.plain.data
        past = _longest(states)
        own = [_basis(state, cold) for state in states]
        sizes = [len(one.headroom) for one in advisers]
        A, n, m = len(advisers), len(origin), len(b)
        self.floats: Floats = _joined(
            *(one.headroom for one in advisers),
            *(_padded(state.drops.mean2, n) for state in states),
            *(basis.inverse for basis in own),
            *(values, b, top, base, give, origin, [unit, model.tol]),
            *(seen.loss.C for seen in past),  # type: ignore[attr-defined]
            *(seen.limit.c for seen in past),  # type: ignore[attr-defined]
        )
        self.ints: Int64s = _joined(
            (A, n, sum(sizes), m, len(top), len(values), len(past), begin),
            [one.data if isinstance(one.data, int) else 1 for one in advisers],
            np.cumsum([0, *sizes]),
            [state.drops.counted for state in states],
            [basis.age for basis in own],
            *(basis.basis for basis in own),
            *(cold.basis, starts, rows),
        ).astype(np.int64)

    @classmethod
    def of(
        cls,
        K: HasLMO,
        advisers: Sequence[Adviser],
        states: Sequence[Any],
        costs: NDArray,
        capacities: NDArray,
        begin: int,
        number: int,
    ) -> Resolving | None:
        """None if one of them does something else, or remembers something else."""
        plain = [one for one in advisers if isinstance(one, Resolve) and one.is_plain]
        if len(plain) < len(advisers) or len(K.shape) > 1:
            return None
        model = plain[0].model(K)
        if not isinstance(model, BoxedModel):
            return None
        known = len(_longest(states))
        for adviser, state in zip(plain, states, strict=True):
            if not _is_usual(adviser, state, known, number, K.shape[0]):
                return None
        return cls(plain, states, model, costs, capacities, begin, number)

    def states(self, rounds: int, x: Floats) -> list[ResolveState]:
        """What they remember after so many rounds, in the last of which x was played."""
        if rounds == 0:
            return list(self._states)
        (_, _, counted, ages, bases, _, _, drops, inverses), program, past = views.plain(
            self.floats, self.ints
        )
        stop, number = self._begin + rounds, self._number + rounds
        found = []
        for a, (adviser, state) in enumerate(zip(self._advisers, self._states, strict=True)):
            keep = min(adviser.keep, len(past[0]) + rounds)
            old = max(0, keep - rounds)
            C, c = (
                frozen(np.concatenate([seen[len(seen) - old :], rows[stop - (keep - old) : stop]]))
                for seen, rows in zip(past, self._given, strict=True)
            )
            seen = tuple(
                SeenRound(
                    Linear._unchecked(C=C[i : i + 1]),
                    Capacity._unchecked(c=c[i : i + 1]),
                    math.nan,
                    number - keep + i,
                )
                for i in range(keep)
            )
            basis, columns = state.boxed, len(program[4])
            if ages[a] >= 0:
                basis = BoxedBasis(columns, bases[a].copy(), inverses[a].copy(), int(ages[a]))
            mean2 = drops[a].copy() if counted[a] else np.zeros(0)
            found.append(
                state._replace(
                    recent=RecentRounds(seen),
                    drops=Drops(frozen(mean2), int(counted[a])),
                    x=x,
                    boxed=basis,
                    upcoming=number,
                )
            )
        return found

    def solves(self, rounds: int, experts: int) -> Floats:
        """Programs solved in so many rounds for each expert, the last of which these are."""
        found, known = np.zeros(experts), len(_longest(self._states))
        at = experts - sum(len(one.headroom) for one in self._advisers)
        for one in self._advisers:
            back = one.data if isinstance(one.data, int) else 1
            count = len(one.headroom)
            found[at : at + count] = max(0, rounds - max(0, back - 1 - known))
            at += count
        return found


def _joined(*parts: Any) -> NDArray:
    return np.concatenate([np.asarray(part).reshape(-1) for part in parts])


def _padded(numbers: Floats, n: int) -> Floats:
    return numbers if len(numbers) else np.zeros(n)


def _longest(states: Sequence[ResolveState]) -> tuple[SeenRound, ...]:
    return max((state.recent.rounds for state in states), key=len)


def _basis(state: ResolveState, cold: BoxedBasis) -> BoxedBasis:
    own = state.boxed
    fits = own is not None and own.columns == cold.columns and len(own.basis) == len(cold.basis)
    return own if own is not None and fits else cold


def _is_usual(adviser: Resolve, state: ResolveState, known: int, number: int, n: int) -> bool:
    """Whether it remembers the last rounds, all that it keeps, each of costs and capacities."""
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
