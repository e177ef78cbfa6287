"""What is done with functions before they are played: rounds of a feed are read, gradients of a
user's functions are checked, capacities that cannot be satisfied are warned of.
"""

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from tidewolf.core import arrays, errors, frames
from tidewolf.core.arguments import shown
from tidewolf.core.arrays import eps_of, inner, like, norm, ones, to_numpy
from tidewolf.core.batch import Batch, Stream
from tidewolf.core.oracle import HasLMO
from tidewolf.core.types import Array
from tidewolf.functions import base, combined, linear

# --- Rounds of a feed -----------------------------------------------------------------------------
#
# Rounds one at a time, in whatever form a feed has them, as streams.
#
#     loss                            a batch, or an array: costs, one for each entry of a point, or
#                                     by name (core/frames.py)
#     (loss, constraint)              constraint: a batch, a list of several, an array of capacities
#     FullInformation, Stream         as they are
#     {"costs": .., "capacities": .., "time": ..}
#                                     by name: loss or costs, constraint or capacities, and what
#                                     `Stream` has of a round
#
# A batch may have several rounds.

SUCH = "(loss, constraint), arrays (costs, capacities), or {'costs': .., 'capacities': ..}"
_LOSS, _LIMIT = ("costs", "loss"), ("capacities", "constraint")
_WITH = ("time", "context", "advice", "unavailable", "seen", "played")


# The center of a set and the names of its entries, as numbers of a round are read for it.
Points: TypeAlias = tuple[Array, Sequence[str] | None]


def as_round(item: Any, t: int, center: Array, names: Sequence[str] | None = None) -> Stream:
    points = (center, names)
    if isinstance(item, Stream):
        found = item
    elif isinstance(item, Mapping):
        found = _named(item, t, points)
    elif isinstance(item, Batch) or arrays.is_array(item) or frames.is_table(item):
        found = _stream(item, None, t, points)
    elif isinstance(item, tuple | list) and len(item) == 2:
        found = _stream(item[0], item[1], t, points)
    else:
        raise errors.WrongType(f"Round {t} of those to be played is {SUCH}, not {shown(item)}.")
    if found.shape != tuple(center.shape):
        due = f"points of shape {tuple(center.shape)}, as the set has"
        raise errors.WrongShape(f"Expected functions of {due}, in round {t}, not {found.shape}.")
    return found


def _stream(loss: Any, limit: Any, t: int, points: Points, **more: Any) -> Stream:
    if not isinstance(loss, Batch):
        loss = linear.Linear.one(_point(loss, f"The array of costs of round {t}", points))
    several = isinstance(limit, list | tuple) and any(isinstance(one, Batch) for one in limit)
    if not several and not isinstance(limit, Batch | None):
        limit = linear.Capacity.one(_point(limit, f"The array of capacities of round {t}", points))
    return Stream(loss, limit, **more)


def _point(x: Any, what: str, points: Points) -> Array:
    if callable(x):
        cure = "functions.from_torch, from_jax and Custom make a batch of a callable"
        raise errors.WrongType(f"{what} must be numbers, not {shown(x)}; {cure}.")
    return like(arrays.as_point(_row(x, what, points), tuple(points[0].shape), what), points[0])


def _row(x: Any, what: str, points: Points, *, gaps: bool = False) -> Any:
    return frames.in_order(x, points[1], what, tuple(points[0].shape), gaps=gaps)


def _named(item: Mapping[Any, Any], t: int, points: Points) -> Stream:
    unknown = [key for key in item if key not in (*_LOSS, *_LIMIT, *_WITH)]
    losses = [item[key] for key in _LOSS if item.get(key) is not None]
    limits = [item[key] for key in _LIMIT if item.get(key) is not None]
    if unknown or len(losses) != 1 or len(limits) > 1:
        loss, limit, others = "costs or loss", "capacities or constraint", ", ".join(_WITH)
        words = f"Expected {loss}, and perhaps {limit}, {others} in round {t}"
        raise errors.InvalidInput(f"{words}, not {shown(list(item))}.")
    more = {key: _one(key, item[key], t, points) for key in _WITH if item.get(key) is not None}
    return _stream(losses[0], limits[0] if limits else None, t, points, **more)


def _one(key: str, value: Any, t: int, points: Points) -> Any:
    if key == "advice" and isinstance(value, Mapping):
        what = f"Advice of round {t}"
        rows = {name: _row(point, what, points, gaps=True) for name, point in value.items()}
        return {name: arrays.as_numbers(row, what)[None, ...] for name, row in rows.items()}
    if key == "played":
        what = f"What was played in round {t}"
        return arrays.as_numbers(_row(value, what, points), what)[None, ...]
    return value[None] if key == "unavailable" and isinstance(value, np.ndarray) else [value]


# --- Gradients of a user's functions --------------------------------------------------------------
#
# Check whether the gradient that a user's function returns can be right:
#
#     f(y) >= f(x) + <g, y - x>         for every member y, g a subgradient at x
#
# tested both ways between the point that was played and other members, and on a hundredth of the
# way, where a wrong factor cannot hide behind curvature. What is broken by more than rounding is
# refused, with what it likely is: the change of f over a thousandth of the way tells a turned sign
# and a wrong factor from a function that is not convex.

# How many rounds, or updates, are looked at.
FIRST = 10
# What values and slopes may be off by, as shares of their sizes: those of others are rounded, or
# found by differences.
_VALUES, _SLOPES = 1e-6, 1e-4
_NEAR, _TINY = 1e-2, 1e-3


class Member(NamedTuple):
    point: Array
    name: str


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
    for f in combined.own_functions(batch):
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
            except errors.NotConvex:
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
        raise errors.NotConvex(
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
        c = to_numpy(base.rows(part.c)) if isinstance(part, linear.Capacity) else np.zeros((0, 0))
        if not c.min(initial=0.0) < 0.0:
            continue
        for entry in np.flatnonzero((c < 0).any(axis=0)).tolist():
            if entry not in asked and len(asked) < MOST_ASKED:
                asked.add(entry)
                unit = np.zeros(K.shape)
                unit.reshape(-1)[entry] = 1.0
                direction = like(unit, K.center)
                answer = K.answer(direction)
                if answer.vertex.inner(direction) - answer.error >= -1e-9 * K.radius:
                    row = int(np.argmax(c[:, entry] < 0))
                    found.append((entry, start + row + first_round + 1, float(c[row, entry])))
    if found:
        entry, number, value = found[0]
        names = getattr(K, "names", None)
        place = entry if len(K.shape) == 1 else tuple(map(int, np.unravel_index(entry, K.shape)))
        what = f"The capacity of {names[entry] if names else f'entry {place}'} is {value:g}"
        words = f"{what} in round {number}: {breaks(len(found))}"
        warnings.warn(words, errors.NegativeCapacity, stacklevel=stacklevel)


def _limits(constraints: Batch, start: int = 0) -> Iterator[tuple[int, Batch]]:
    if isinstance(constraints, combined.Max | combined.Chain):
        for part in constraints.parts:
            yield from _limits(part, start)
            start += len(part) if isinstance(constraints, combined.Chain) else 0
    else:
        yield start, constraints


def breaks(entries: int) -> str:
    more = f" {entries} entries have such capacities." if entries > 1 else ""
    return f"no point of the set is below 0 there, so every decision breaks it.{more}"
