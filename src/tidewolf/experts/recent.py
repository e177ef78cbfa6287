"""What advisers that re-solve remember: the functions of the last rounds, each with its number and
time, and how much constraints dropped.

Rounds may come late and in any order: they are kept by number.
They are copied when they come, so that a caller that fills the same array every round does not
change what was seen; what all rounds share, such as the paths of a network, is kept once. They are
saved as kinds and arrays.

How much a constraint usually drops from one round to the next, the headroom that operators keep:

    m_i <- 0.98 m_i + 0.02 max(0, g_ti(x_t) - g_{t-l,i}(x_t))^2,      r_i = sqrt( m_i/(1 - 0.98^n) )

after n drops, x_t the point played: of capacities, how much less there was than l rounds before, l
the age of the data that is solved with: 1, and more where feedback comes late. The divisor is the
weight of the n drops in m, so that r does not begin too small. If a round has another number of
limits than the one before, it begins anew.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple, final

import numpy as np

from tidewolf.core import checkpoint, values
from tidewolf.core.arrays import frozen, to_numpy
from tidewolf.core.batch import Batch
from tidewolf.core.sparse import is_sparse
from tidewolf.core.types import Array, Floats, Int64s
from tidewolf.functions import base, combined, linear
from tidewolf.functions.combined import loaded, require_points_of, saved
from tidewolf.kernels.resolving import FORGETTING, LARGEST_DROP


class SeenRound(NamedTuple):
    """The functions of one round, batches of one, and its time in seconds, NaN if
    unknown.
    """

    loss: Batch
    limit: Batch
    time: float
    number: int  # from 0


@final
class RecentRounds(checkpoint.Stored):
    """Rounds in their order, the newest last. Never changed: `and_then` makes another."""

    tag: ClassVar = "recent rounds"
    __slots__ = ("rounds",)

    def __init__(self, rounds: tuple[SeenRound, ...] = ()) -> None:
        self.rounds = rounds

    def __len__(self) -> int:
        return len(self.rounds)

    def and_then(
        self, loss: Batch, limit: Batch, time: float, number: int, keep: int
    ) -> "RecentRounds":
        """With a copy of this round, without those that are `keep` rounds older than the newest."""
        if not self.rounds:
            return RecentRounds((SeenRound(_copied(loss), _copied(limit), time, number),))
        last = self.rounds[-1]
        copies = _copied(loss, last.loss), _copied(limit, last.limit)
        rounds = (*self.rounds, SeenRound(*copies, time, number))
        if number < last.number:
            rounds = tuple(sorted(rounds, key=lambda r: r.number))
        first = bisect_right(rounds, rounds[-1].number - keep, key=lambda r: r.number)
        return RecentRounds(rounds[first:])

    @property
    def newest(self) -> int:
        return self.rounds[-1].number if self.rounds else -1

    def place(self, number: int) -> int | None:
        """Where among them the round of this number is; None if it is not."""
        rounds = self.rounds
        if not rounds or not rounds[0].number <= number <= rounds[-1].number:
            return None
        i = number - rounds[0].number  # if none is missing
        if i >= len(rounds) or rounds[i].number != number:
            i = bisect_left(rounds, number, key=lambda r: r.number)
        return i if rounds[i].number == number else None

    def reaching(self, seconds: float, more: int) -> "RecentRounds":
        """Those whose time is known, and the newest, which the next is held against; without
        those that are `more` steps longer ago than so many seconds before it.
        """
        *rounds, newest = self.rounds
        rounds = [*(r for r in rounds if r.time == r.time), newest]
        step = _step(rounds)
        if step is not None and newest.time == newest.time:
            rounds = [r for r in rounds if r.time >= newest.time - seconds - more * step]
        return RecentRounds(tuple(rounds)) if len(rounds) < len(self) else self

    def until(self, time: float) -> int:
        """How many rounds there are up to the one nearest to this time; 0: none is near."""
        step = _step(self.rounds)
        if step is None:
            return 0
        apart = np.abs(np.array([r.time for r in self.rounds]) - time)
        nearest = int(np.nanargmin(apart))
        return nearest + 1 if apart[nearest] <= 0.5 * step else 0

    def parts(self) -> dict[str, Any]:
        where = "Advice that re-solves remembers"
        return {
            "losses": saved([r.loss for r in self.rounds], where),
            "limits": saved([r.limit for r in self.rounds], where),
            "times": np.array([r.time for r in self.rounds]),
            "numbers": np.array([r.number for r in self.rounds], dtype=np.int64),
        }

    @classmethod
    def restored(cls, parts: dict[str, Any]) -> "RecentRounds":
        losses, limits = (
            [batch[t : t + 1] for batch in loaded(parts[name]) for t in range(len(batch))]
            for name in ("losses", "limits")
        )
        times, numbers = parts["times"].tolist(), parts["numbers"].tolist()
        each = zip(losses, limits, times, numbers, strict=True)
        return cls(tuple(SeenRound(*one) for one in each))

    def require_of(self, K: Any) -> None:
        require_points_of(K, (batch for r in self.rounds for batch in (r.loss, r.limit)))


def _step(rounds: Sequence[SeenRound]) -> float | None:
    times = np.array([r.time for r in rounds])
    steps = np.diff(times[~np.isnan(times)])
    return float(np.median(steps)) if len(steps) else None


def _copied(batch: Batch, last: Batch | None = None) -> Batch:
    """A copy, that shares with the last one what both say of all rounds."""
    if isinstance(batch, linear.Linear) and type(batch.C) is np.ndarray:
        return linear.Linear._unchecked(C=frozen(batch.C.copy()))
    if isinstance(batch, linear.Capacity) and type(batch.c) is np.ndarray:
        return linear.Capacity._unchecked(c=frozen(batch.c.copy()))
    if not isinstance(batch, base.ArrayBatch) or type(last) is not type(batch):
        return combined.mapped(batch, _own)
    mine, theirs = batch.__dict__, last.__dict__
    shared = [name for name in batch.fields() if name not in batch.by_round]
    if not all(values.same(mine[name], theirs[name]) for name in shared):
        return combined.mapped(batch, _own)
    shared += [name for name in batch.of_all_rounds if name in theirs]
    rounds = {name: _own(mine[name]) for name in batch.by_round}
    return batch._unchecked(**{name: theirs[name] for name in shared}, **rounds)


def _own(array: Array) -> Array:
    return array.copy() if is_sparse(array) else frozen(array + 0)  # places stay whole numbers


class Drops(NamedTuple):
    """Squared drops, one mean a limit, and how many there were."""

    mean2: Floats = frozen(np.zeros(0))
    counted: int = 0

    def after(self, before: Batch, now: Batch, x: Array) -> "Drops":
        """With the drop from one round's limits to the next one's, at the point played in the
        latter.
        """
        if isinstance(before, linear.Capacity) and isinstance(now, linear.Capacity):
            old, new = to_numpy(now.c).reshape(-1), to_numpy(before.c).reshape(-1)
        else:
            old, new = (
                to_numpy(limit.values(x) if (pieces := limit.pieces(x)) is None else pieces)
                for limit in (before, now)
            )
        if old.size != new.size:
            return Drops()
        drop = np.subtract(new.reshape(-1), old.reshape(-1), dtype=np.float64)
        drop2 = np.minimum(np.maximum(drop, 0.0), LARGEST_DROP)
        drop2 *= drop2
        mean2, counted = (self.mean2, self.counted) if len(self.mean2) == len(drop) else (0.0, 0)
        return Drops(frozen(mean2 + FORGETTING * (drop2 - mean2)), counted + 1)

    def moved(self, entries: Int64s, size: int) -> "Drops":
        """Those of limits on single entries where these are in other places, as many as `size`; new
        ones have the mean of the others. None if limits are not on single entries.
        """
        if len(self.mean2) != len(entries) or not (entries >= 0).any():
            return Drops()
        there = entries >= 0
        mean2 = np.full(size, self.mean2[there].mean())
        mean2[entries[there]] = self.mean2[there]
        return Drops(frozen(mean2), self.counted)

    def usual(self) -> Floats:
        """The root of the mean, one a limit; empty if nothing is known."""
        if self.counted == 0:
            return np.zeros(0)
        return np.sqrt(self.mean2 / (1.0 - (1.0 - FORGETTING) ** self.counted))
