"""Capacities that cannot be satisfied: below 0 for an entry that no point of the set has below 0.

    c_ti < 0  and  min_{x in K} x_i >= 0      =>      g_t(x) >= x_i - c_ti > 0  for every x in K

Such a number is a slip of a table (a missing value written as -1, a subtraction too many) far more
often than it is meant: it is played as it stands, and a warning names it. If points of the set
may be negative themselves, as in a box around 0, there is no warning.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import numpy as np

from tidewolf.core.arrays import like, to_numpy
from tidewolf.core.batch import Batch
from tidewolf.core.errors import NegativeCapacity
from tidewolf.core.oracle import HasLMO
from tidewolf.functions import base, combined, linear

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
    if isinstance(constraints, combined.Max | combined.Chain):
        for part in constraints.parts:
            yield from _limits(part, start)
            start += len(part) if isinstance(constraints, combined.Chain) else 0
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
