"""The worst stretches of a run: for every length of a family of intervals, where regret and
violation were largest.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tidewolf.evaluation.formatting import interval, number
from tidewolf.report.clock import Clock
from tidewolf.report.styles import Bar, Cell, Rows, Table

if TYPE_CHECKING:
    from tidewolf.evaluation.intervals import Interval, Intervals
    from tidewolf.evaluation.run import Run
    from tidewolf.report.styles import RunStyle

_SHARES = 8
"""The shortest intervals are about such a part of the run."""
_QUICK = 2_000_000
"""Up to so many numbers, rounds times entries, intervals are worked out for a page that was given
none.
"""

_READ = (
    "Stretches of rounds, each against the best fixed point for these rounds alone, in a family "
    "whose lengths double. The bars show where in the run the worst ones are."
)


def quick_intervals(runs: Sequence[Run]) -> list[Intervals]:
    """The intervals of each run where each is a linear program of moderate size, else none at
    all.
    """
    from tidewolf.evaluation.intervals import shared_intervals

    if not all(map(_quick, runs)):
        return []
    return shared_intervals(runs, max(1, runs[0].rounds // _SHARES))


def _quick(run: Run) -> bool:
    from tidewolf.functions.base import LinearTotal, PiecewiseLinear
    from tidewolf.sets.base import Polyhedral

    linear = isinstance(run.stream.losses, LinearTotal) and isinstance(
        run.stream.constraints, PiecewiseLinear
    )
    size = run.rounds * math.prod(run.learner.hard_set.shape)
    return linear and isinstance(run.learner.hard_set, Polyhedral) and 0 < size <= _QUICK


def intervals_context(
    found: Sequence[Intervals], seen: Sequence[RunStyle], clock: Clock
) -> dict[str, Any] | None:
    """A table of each run's intervals; None where there are none."""
    if not found:
        return None
    regrets = any(each.regret is not None for one in found for each in one.every)
    titles = ("rounds", "worst regret", "where", "worst violation", "where")
    groups = [
        Rows(_rows(style.hue, each, clock, regrets), Cell(style.label, style=style))
        for each, style in zip(found, seen, strict=True)
    ]
    shown = titles if regrets else (titles[0], *titles[3:])
    return {"read": _READ, "table": Table("Worst stretches", shown, groups, kind="worst")}


def _rows(hue: int, found: Intervals, clock: Clock, regrets: bool) -> list[list[Cell]]:
    from tidewolf.evaluation.intervals import worst_regret

    rows, rounds = [], found.every[-1].stop

    def where(each: Interval | None) -> Cell:
        if each is None:
            return Cell("")
        bar = Bar(each.start / rounds, each.stop / rounds, hue)
        return Cell(clock.span(each.start, each.stop), bar=bar)

    for length in sorted({each.length for each in found.every}):
        these = [each for each in found.every if each.length == length]
        regret, violation = worst_regret(these), max(these, key=lambda each: each.violation)
        most = regret and regret.regret
        said = Cell(interval(most) if most else "no point keeps every limit")
        broken = [Cell(number(violation.violation)), where(violation)]
        rows.append([Cell(f"{length:,}"), *([said, where(regret)] if regrets else []), *broken])
    return rows
