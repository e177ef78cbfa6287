"""Each limit of a run for itself, by name: how much it was broken, and the most that theory allows,
where the learner gives every limit its own weight: `run.limits`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Self, final

from tidewolf.evaluation.formatting import finite_or_none, short_number
from tidewolf.methods.base import LimitBound

SHOWN = 3
"""How many limits a printed run has, those that were broken most."""


@final
class RunLimits(tuple[LimitBound, ...]):
    """The limits of a run, one row each; prints as a table."""

    __slots__ = ()

    def __new__(cls, limits: Iterable[LimitBound] = ()) -> Self:
        return super().__new__(cls, limits)

    @property
    def broken(self) -> tuple[LimitBound, ...]:
        """Those that were broken, the most broken first."""
        return tuple(
            sorted((one for one in self if one.violation > 0.0), key=lambda o: -o.violation)
        )

    def rows(self, most: int | None = None) -> list[tuple[str, str, str]]:
        """Name, violation and bound of those that were broken most."""
        return [
            (name, short_number(violation), "unknown" if bound is None else short_number(bound))
            for name, violation, bound in self.broken[:most]
        ]

    def lines(self, most: int | None = None) -> list[str]:
        """A line for each of those that were broken most; none where the learner does not tell
        limits apart.
        """
        if not self:
            return []
        left = len(self.broken) - len(self.broken[:most])
        return [
            f"{len(self.broken)} of {len(self)} limits were broken"
            + (", those most:" if left else ":" if self.broken else ""),
            *(
                f"  {name}: {violation}, at most {bound}"
                for name, violation, bound in self.rows(most)
            ),
        ]

    def plain(self) -> list[dict[str, Any]]:
        """As files have them."""
        return [{**one._asdict(), "bound": finite_or_none(one.bound)} for one in self]

    def __repr__(self) -> str:
        return "\n".join(self.lines()) or "limits are not told apart"
