"""Capacities that cannot be satisfied: below 0 for an entry that no point of the set has below 0.

    c_ti < 0  and  min_{x in K} x_i >= 0      =>      g_t(x) >= x_i - c_ti > 0  for every x in K

Such a number is a slip of a table (a missing value written as -1, a subtraction too many) far more
often than it is meant: it is played as it stands, and a warning names it. If points of the set
may be negative themselves, as in a box around 0, there is no warning.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

from tidewolf.core.arrays import like, namespace, to_numpy
from tidewolf.core.batch import Batch
from tidewolf.core.errors import NegativeCapacity
from tidewolf.core.oracle import HasLMO
from tidewolf.functions.base import rows
from tidewolf.functions.combined import Chain, Max
from tidewolf.functions.linear import Capacity

MOST_ASKED = 100
"""Entries whose minimum over the set is asked for, an oracle call each."""


def negative_capacities(
    K: HasLMO, constraints: Batch, asked: set[int]
) -> list[tuple[int, int, float]]:
    """Entry, round and value of the first such capacity of each entry that was not asked about
    before; `asked` takes note of those that are now.
    """
    found = []
    for start, part in _limits(constraints):
        if not isinstance(part, Capacity) or not _lowest(part.c) < 0.0:
            continue
        c = to_numpy(rows(part.c))
        for entry in np.flatnonzero((c < 0).any(axis=0)).tolist():
            if entry not in asked and len(asked) < MOST_ASKED:
                asked.add(entry)
                if _never_negative(K, entry):
                    row = int(np.argmax(c[:, entry] < 0))
                    found.append((entry, start + row, float(c[row, entry])))
    return found


def _lowest(c: Any) -> float:
    if type(c) is np.ndarray:
        return float(np.minimum.reduce(c, axis=None, initial=np.inf))
    return float(namespace(c).min(c)) if c.shape[0] else np.inf


def _limits(constraints: Batch, start: int = 0) -> Iterator[tuple[int, Batch]]:
    """The limits that are to be kept each by itself, and the rounds they start in."""
    if isinstance(constraints, Max):
        for part in constraints.parts:
            yield from _limits(part, start)
    elif isinstance(constraints, Chain):
        for part in constraints.parts:
            yield from _limits(part, start)
            start += len(part)
    else:
        yield start, constraints


def warn_of_negative_capacities(
    K: HasLMO, constraints: Batch, asked: set[int], first_round: int = 0, *, stacklevel: int = 3
) -> None:
    """One warning that names the first, and says how many entries have one."""
    found = negative_capacities(K, constraints, asked)
    if found:
        entry, t, value = found[0]
        place = np.unravel_index(entry, K.shape)
        name = f"entry {int(place[0]) if len(place) == 1 else tuple(map(int, place))}"
        if getattr(K, "names", None):
            name = getattr(K, "names")[entry]  # noqa: B009  not every set has them
        what = f"The capacity of {name} is {value:g} in round {first_round + t + 1}"
        warnings.warn(f"{what}: {breaks(len(found))}", NegativeCapacity, stacklevel=stacklevel)


def breaks(entries: int) -> str:
    """What a negative capacity means, and how many entries have one."""
    more = f" {entries} entries have such capacities." if entries > 1 else ""
    return f"no point of the set is below 0 there, so every decision breaks it.{more}"


def _never_negative(K: HasLMO, entry: int) -> bool:
    unit = np.zeros(K.shape)
    unit.reshape(-1)[entry] = 1.0
    direction = like(unit, K.center)
    answer = K.answer(direction)
    return answer.vertex.inner(direction) - answer.error >= -1e-9 * K.radius
