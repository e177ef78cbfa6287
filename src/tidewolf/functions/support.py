"""Check whether the gradient that a user's function returns can be right:

    f(y) >= f(x) + <g, y - x>         for every member y, g a subgradient at x

tested both ways between the point that was played and other members, and on a hundredth of the way,
where a wrong factor cannot hide behind curvature. What is broken by more than rounding is refused,
with what it likely is: the change of f over a thousandth of the way tells a turned sign and a wrong
factor from a function that is not convex.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from tidewolf.core.arrays import eps_of, inner, like, norm, ones, to_numpy
from tidewolf.core.batch import Batch
from tidewolf.core.errors import NegativeCapacity, NotConvex
from tidewolf.core.oracle import HasLMO
from tidewolf.core.types import Array
from tidewolf.functions import base
from tidewolf.functions.combined import Chain, Max, can_be_saved, leaves
from tidewolf.functions.linear import Capacity

# How many rounds, or updates, are looked at.
FIRST = 10
# What values and slopes may be off by, as shares of their sizes: those of others are rounded, or
# found by differences.
_VALUES, _SLOPES = 1e-6, 1e-4
_NEAR, _TINY = 1e-2, 1e-3


class Member(NamedTuple):
    point: Array
    name: str


def own_functions(batch: Batch) -> tuple[Batch, ...]:
    return tuple(leaf for leaf in leaves(batch) if not can_be_saved(leaf))


def require_subgradients(
    kind: str, batch: Batch, t: int, played: Member, others: Iterable[Member]
) -> None:
    """Refuse a function of one round whose subgradients cannot be some.

    Parameters
    ----------
    kind : str
        What it is in the stream: "loss" or "constraint".
    batch : Batch
        The function of round t.
    t : int
        The round, from 0.
    played : Member
        The point that was played.
    others : iterable of Member
        The points to compare at.
    """
    apart = [one for one in others if bool((one.point != played.point).any())]
    for f in own_functions(batch):
        name = getattr(f, "name", None)
        called = f" {name}" if isinstance(name, str) else ""
        trial = _Trial(f"The {kind}{called} of round {t + 1} (t = {t})", f)
        for other in apart:
            trial.compare(played, other)


class _Trial:
    def __init__(self, what: str, f: Batch) -> None:
        self.what, self.f = what, f
        self._known: dict[int, tuple[float, Array]] = {}

    def compare(self, one: Member, other: Member) -> None:
        with np.errstate(all="ignore"):
            try:
                self._require(one, other, 1.0)
                self._require(other, one, 1.0)
                self._require(one, other, _NEAR)
            except NotConvex:
                raise
            except Exception:
                return

    def _at(self, x: Array) -> tuple[float, Array]:
        if id(x) not in self._known:  # points outlive the trial
            self._known[id(x)] = float(self.f.values(x)[0]), self.f.subgradient(x, ones(1, x))
        return self._known[id(x)]

    def _require(self, x: Member, y: Member, share: float) -> None:
        """f(z) >= f(x) + <g, z - x> at the point z that is this share of the way to y."""
        (value, slope), way = self._at(x.point), y.point - x.point
        end = self._at(y.point)[0] if share == 1.0 else self._on_the_way(x, way, share)
        claimed = share * inner(slope, way)
        rounding = max(_VALUES, 20 * eps_of(x.point)) * (abs(value) + abs(end))
        rounding += max(_SLOPES, 20 * eps_of(x.point)) * share * norm(slope) * norm(way)
        if value + claimed - end <= rounding or not np.isfinite([value, claimed, end]).all():
            return
        change = (self._on_the_way(x, way, _TINY) - value) / _TINY
        where = f"y {y.name}" if share == 1.0 else f"y {share:g} of the way to {y.name}"
        raise NotConvex(
            f"{self.what} breaks f(y) >= f(x) + <g, y - x>, with x {x.name}, g its subgradient "
            f"there and {where}: f(y) = {end:.6g}, and the right side is {value:.6g} + "
            f"{claimed:.6g}. {_likely(change, inner(slope, way))}"
        )

    def _on_the_way(self, x: Member, way: Array, share: float) -> float:
        return float(self.f.values(x.point + share * way)[0])


def _likely(change: float, claimed: float) -> str:
    """What it probably is: the change of f along a way, per whole way, against <g, way>."""
    near = 0.02 * max(abs(change), abs(claimed))
    if abs(change - claimed) <= near:
        return "The gradient fits the function there, so the function is likely not convex."
    found = f"Along that way f changes by {change:.4g}, and the gradient says {claimed:.4g}"
    if abs(change + claimed) <= near:
        return f"{found}: its sign is likely turned round."
    times = f", {claimed / change:.3g} times as much" if change * claimed > 0.0 else ""
    return f"{found}{times}: likely a wrong factor, or the gradient of another round or point."


def members_of(center: Array, *more: tuple[Array | None, str]) -> Sequence[Member]:
    found = [Member(point, name) for point, name in more if point is not None]
    return (Member(center, "the set's center"), *found)


# --- Capacities below 0 ---------------------------------------------------------------------------
#
# Capacities that cannot be satisfied: below 0 for an entry that no point of the set has below 0.
#
#     c_ti < 0  and  min_{x in K} x_i >= 0      =>      g_t(x) >= x_i - c_ti > 0  for every x in K
#
# Such a number is a slip of a table (a missing value written as -1, a subtraction too many) far
# more often than it is meant: it is played as it stands, and a warning names it. If points of the
# set may be negative themselves, as in a box around 0, there is no warning.

# Entries whose minimum over the set is asked for, an oracle call each.
MOST_ASKED = 100


def warn_of_negative_capacities(
    K: HasLMO, constraints: Batch, asked: set[int], first_round: int = 0, *, stacklevel: int = 3
) -> None:
    """One warning that names the first, and says how many entries have one; `asked` are entries
    that were looked at before, and takes note of those that are now.
    """
    found = []
    for start, part in _limits(constraints):
        c = to_numpy(base.rows(part.c)) if isinstance(part, Capacity) else np.zeros((0, 0))
        if not c.min(initial=0.0) < 0.0:
            continue
        for entry in np.flatnonzero((c < 0).any(axis=0)).tolist():
            if entry not in asked and len(asked) < MOST_ASKED:
                asked.add(entry)
                if _never_negative(K, entry):
                    row = int(np.argmax(c[:, entry] < 0))
                    found.append((entry, start + row + first_round + 1, float(c[row, entry])))
    if found:
        entry, number, value = found[0]
        names = getattr(K, "names", None)
        place = entry if len(K.shape) == 1 else tuple(map(int, np.unravel_index(entry, K.shape)))
        what = f"The capacity of {names[entry] if names else f'entry {place}'} is {value:g}"
        words = f"{what} in round {number}: {breaks(len(found))}"
        warnings.warn(words, NegativeCapacity, stacklevel=stacklevel)


def _limits(constraints: Batch, start: int = 0) -> Iterator[tuple[int, Batch]]:
    if isinstance(constraints, Max | Chain):
        for part in constraints.parts:
            yield from _limits(part, start)
            start += len(part) if isinstance(constraints, Chain) else 0
    else:
        yield start, constraints


def breaks(entries: int) -> str:
    more = f" {entries} entries have such capacities." if entries > 1 else ""
    return f"no point of the set is below 0 there, so every decision breaks it.{more}"


def _never_negative(K: HasLMO, entry: int) -> bool:
    unit = np.zeros(K.shape)
    unit.reshape(-1)[entry] = 1.0
    direction = like(unit, K.center)
    answer = K.answer(direction)
    return answer.vertex.inner(direction) - answer.error >= -1e-9 * K.radius
