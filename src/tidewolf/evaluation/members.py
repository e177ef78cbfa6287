"""Whom a learner mixed, and what became of each: `run.members`.

    mean weight, weight     over the rounds, and in the last one
    lost at most            A/V of the guard inequality, in units of the loss: the run's total, in
                            the member's own currency (loss, and limits at the ledger's prices),
                            less the member's, over the rounds it had a point in; negative where the
                            run was surely better
    loss, violation         what it would have had alone, a round of those it had a point in

In the order of the learner; tables begin with those that were trusted most.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, Self, final

from tidewolf.evaluation.formatting import aligned, finite_or_none, short_number
from tidewolf.methods.base import Member


class MemberColumn(NamedTuple):
    """A column of the table of members."""

    title: str
    cell: Callable[[Member], str]
    applies: Callable[[Member], bool] = lambda member: True
    """tables leave it out where it applies to no member"""


def weight_text(weight: float) -> str:
    """A weight as a share: 0 %, < 0.1 %, 12.3 %, 100 %."""
    if weight in (0.0, 1.0):
        return f"{100.0 * weight:.0f} %"
    return "< 0.1 %" if weight < 0.0005 else f"{100.0 * weight:.1f} %"


def _a_round(total: float | None, rounds: int, digits: int) -> str:
    if total is None:
        return "unknown"
    return short_number(total / rounds, digits) if rounds else "none"


COLUMNS: tuple[MemberColumn, ...] = (
    MemberColumn("mean weight", lambda member: weight_text(member.mean_weight)),
    MemberColumn("last", lambda member: weight_text(member.weight)),
    MemberColumn("lost at most", lambda member: short_number(member.guard)),
    MemberColumn("loss", lambda member: _a_round(member.loss, member.rounds, 5)),
    MemberColumn("violation", lambda member: _a_round(member.violation, member.rounds, 3)),
    MemberColumn("rounds", lambda member: f"{member.rounds:,}"),
    MemberColumn("LP solves", lambda member: f"{member.solves:,}", lambda m: m.solves > 0),
    MemberColumn("calls", lambda member: f"{member.calls:,}", lambda m: m.calls > 0),
    MemberColumn("outside", lambda member: short_number(member.outside), lambda m: m.outside > 0.0),
)
"""From left to right, after the name."""


@final
class Members(tuple[Member, ...]):
    """The members of a run, one row each; prints as a table."""

    __slots__ = ()

    def __new__(cls, members: Iterable[Member] = ()) -> Self:
        return super().__new__(cls, members)

    @property
    def by_trust(self) -> tuple[Member, ...]:
        """Those of the largest mean weight first."""
        return tuple(sorted(self, key=lambda member: -member.mean_weight))

    def columns(self) -> list[MemberColumn]:
        """What a table of them has."""
        return [column for column in COLUMNS if any(map(column.applies, self))]

    def lines(self, most: int | None = None) -> list[str]:
        """A table, of those that were trusted most where there are more than `most`."""
        columns, shown = self.columns(), self.by_trust[:most]
        if not shown:
            return []
        rows = [(m.name, *(column.cell(m) for column in columns)) for m in shown]
        left = len(self) - len(shown)
        return [
            *aligned([("member", *(column.title for column in columns)), *rows]),
            *([f"and {left} more in run.members"] if left else []),
        ]

    def plain(self) -> list[dict[str, Any]]:
        """As files have them."""
        numbers = ("guard", "run_loss", "run_violation")
        return [
            {**each._asdict(), **{name: finite_or_none(getattr(each, name)) for name in numbers}}
            for each in self
        ]

    def __repr__(self) -> str:
        return "\n".join(self.lines()) or "no members"
