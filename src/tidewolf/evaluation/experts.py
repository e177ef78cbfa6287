"""The experts that a learner mixed, with weights, losses and regrets: `run.experts`.

    mean weight, weight     over the rounds, and in the last one
    lost at most            A/V of the guard inequality, in units of the loss: the run's total, in
                            the member's own currency (loss, and limits at the ledger's prices),
                            less the member's, over the rounds it had a point in; negative where the
                            run was surely better
    loss, violation         what it would have had alone, a round of those it had a point in

In the order of the learner; tables begin with those that were trusted most.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, final

from tidewolf.evaluation.formatting import Column, aligned, applying, finite_or_none, short_number
from tidewolf.methods.base import Expert


def weight_text(weight: float) -> str:
    """A weight as a share: 0 %, < 0.1 %, 12.3 %, 100 %."""
    if weight in (0.0, 1.0):
        return f"{100.0 * weight:.0f} %"
    return "< 0.1 %" if weight < 0.0005 else f"{100.0 * weight:.1f} %"


def _a_round(total: float | None, rounds: int, digits: int) -> str:
    if total is None:
        return "unknown"
    return short_number(total / rounds, digits) if rounds else "none"


def _column(
    title: str, cell: Callable[[Expert], str], applies: Callable[[Expert], bool] = lambda _: True
) -> Column[Expert]:
    return Column(title, title, cell, 0, applies)


COLUMNS = (
    _column("mean weight", lambda expert: weight_text(expert.mean_weight)),
    _column("last", lambda expert: weight_text(expert.weight)),
    _column("lost at most", lambda expert: short_number(expert.guard)),
    _column("loss", lambda expert: _a_round(expert.loss, expert.rounds, 5)),
    _column("violation", lambda expert: _a_round(expert.violation, expert.rounds, 3)),
    _column("rounds", lambda expert: f"{expert.rounds:,}"),
    _column("LP solves", lambda expert: f"{expert.solves:,}", lambda each: each.solves > 0),
    _column("calls", lambda expert: f"{expert.calls:,}", lambda each: each.calls > 0),
    _column("outside", lambda expert: short_number(expert.outside), lambda each: each.outside > 0),
)
"""From left to right, after the name."""


@final
class Experts(tuple[Expert, ...]):
    """The members of a run, one row each; prints as a table."""

    __slots__ = ()

    @property
    def by_trust(self) -> tuple[Expert, ...]:
        """Those of the largest mean weight first."""
        return tuple(sorted(self, key=lambda expert: -expert.mean_weight))

    def columns(self) -> list[Column[Expert]]:
        """What a table of them has."""
        return applying(COLUMNS, self)

    def lines(self, most: int | None = None) -> list[str]:
        """A table, of those that were trusted most where there are more than `most`."""
        columns, shown = self.columns(), self.by_trust[:most]
        if not shown:
            return []
        rows = [(m.name, *(column.cell(m) for column in columns)) for m in shown]
        lines = aligned([("expert", *(column.title for column in columns)), *rows])
        left = len(self) - len(shown)
        return [*lines, f"and {left} more in run.experts"] if left else lines

    def plain(self) -> list[dict[str, Any]]:
        """As files have them."""
        numbers = ("guard", "run_loss", "run_violation")
        return [
            {**each._asdict(), **{name: finite_or_none(getattr(each, name)) for name in numbers}}
            for each in self
        ]

    def __repr__(self) -> str:
        return "\n".join(self.lines()) or "no members"
