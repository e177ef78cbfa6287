"""Violations of each constraint of a run, by name: `run.limits` and `broken_limits(run)`. Each has
the amount, the rounds, and the bound if the learner has a multiplier for each constraint.

A limit counts as broken in a round where it is by more than rounding: 1e-9 of the largest number
that the limits of the rounds around it came to.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, final

import numpy as np

from tidewolf.core.types import Floats, Int64s, NDArray
from tidewolf.evaluation.formatting import finite_or_none, short_number
from tidewolf.methods.base import LimitBound

if TYPE_CHECKING:
    from tidewolf.evaluation.run import Run

_ROUNDING = 1e-9
ONLY_LIMIT = "the limit"
"""What a limit without a name is called where a round has no other."""
SHOWN = 3
"""How many limits a printed run has, those that were broken most."""


@final
class RunLimits(tuple[LimitBound, ...]):
    """The limits of a run, one row each; prints as a table."""

    __slots__ = ()

    @property
    def broken(self) -> tuple[LimitBound, ...]:
        """Those that were broken, the most broken first."""
        found = [one for one in self if one.violation > 0.0]
        return tuple(sorted(found, key=lambda one: -one.violation))

    def lines(self, most: int | None = None) -> list[str]:
        """A line for each of those that were broken most, after how many were broken."""
        if not self:
            return []
        shown = self.broken[:most]
        colon = ", those most:" if len(shown) < len(self.broken) else ":" if shown else ""
        lines = [f"{len(self.broken)} of {len(self)} limits were broken{colon}"]
        for name, violation, bound in shown:
            allowed = "" if bound is None else f", at most {short_number(bound)}"
            lines.append(f"  {name}: {short_number(violation)}{allowed}")
        return lines

    def plain(self) -> list[dict[str, Any]]:
        """As files have them."""
        return [{**one._asdict(), "bound": finite_or_none(one.bound)} for one in self]

    def __repr__(self) -> str:
        return "\n".join(self.lines()) or "limits are not told apart"


@final
class Breaches:
    """When each of several limits was broken, in memory that does not grow with the rounds."""

    def __init__(self, limits: int) -> None:
        self.when: Int64s = np.full((4, limits), -1, dtype=np.int64)
        """in how many rounds each was broken, the worst, the first and the last"""
        self.when[0] = 0
        self.sizes: Floats = np.zeros((2, limits))
        """by how much each was broken in all, and in its worst round"""

    def see(self, start: int, limits: Floats) -> None:
        """The limits of rounds from `start` on, (rounds, limits): positive where broken."""
        self.sizes[0] += np.maximum(limits, 0.0).sum(axis=0)
        broken = is_broken(limits)
        these = np.flatnonzero(broken.any(axis=0))
        if not len(these):
            return
        rounds, worst_round, first, last = self.when
        found, worst = broken[:, these], self.sizes[1]
        rounds[these] += found.sum(axis=0)
        began = first[these] < 0
        first[these[began]] = start + found[:, began].argmax(axis=0)
        last[these] = start + len(found) - 1 - found[::-1].argmax(axis=0)
        at = limits[:, these].argmax(axis=0)
        most = limits[at, these]
        worse = most > worst[these]
        worst[these[worse]], worst_round[these[worse]] = most[worse], start + at[worse]

    def of(self, limit: int) -> Breach:
        """Those of one limit."""
        rounds, *where = self.when[:, limit].tolist()
        return Breach(rounds, float(self.sizes[1, limit]), *where)

    def parts(self) -> tuple[Any, ...]:
        """Everything but what was broken in all as arrays, for a file."""
        return self.when[0], self.sizes[1], *self.when[1:]

    def restore(self, parts: tuple[Any, ...], reference: Any) -> None:
        """What `parts` gave."""
        rounds, self.sizes[1], *others = parts
        self.when[:] = (rounds, *others)


def is_broken(limits: Floats, size: float = 0.0) -> NDArray:
    """Which limits of rounds are broken by more than rounding: that of the largest of them, and of
    `size`.
    """
    found: NDArray = limits > _ROUNDING * max(size, float(np.abs(limits).max(initial=0.0)))
    return found


class Breach(NamedTuple):
    """When a limit was broken; rounds count from 0."""

    rounds: int
    """in how many"""
    worst: float
    """by how much, in its worst round"""
    worst_round: int
    first: int
    last: int


class BrokenLimit(NamedTuple):
    """A limit that was broken."""

    name: str
    total: float
    """by how much in all"""
    breach: Breach
    bound: float | None
    """the most that theory allows in all; None where the learner does not tell limits apart"""


def broken_limits(run: Run) -> list[BrokenLimit]:
    """The limits of a run that were broken by more than rounding, the most broken first."""
    each, found, names = run.each_violation, run.breaches, run.limit_names
    if each is None or found is None:  # a round has one limit
        found, names = Breaches(1), (ONLY_LIMIT,)
        if run.rounds:
            found.see(0, run.violations[:, None])
        each = run.violations.sum(keepdims=True)
    bounds = [one.bound for one in run.limits] or [None] * len(each)
    return [
        BrokenLimit(names[i], float(each[i]), found.of(i), bounds[i])
        for i in np.argsort(-each, kind="stable").tolist()
        if each[i] > 0.0 and found.when[0, i]
    ]
