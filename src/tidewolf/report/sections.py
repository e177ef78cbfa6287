"""Two sections of the page of runs: which limits were broken, by how much and when; and the worst
stretches, for every length of a family of intervals, by regret and by violation.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tidewolf.evaluation.formatting import interval, number, percent
from tidewolf.evaluation.limits import BrokenLimit, broken_limits
from tidewolf.report.clock import Clock, clock_of
from tidewolf.report.styles import Bar, Cell, Rows, RunStyle, Table, cells, run_styles

if TYPE_CHECKING:
    from tidewolf.evaluation.intervals import Interval, Intervals
    from tidewolf.evaluation.run import Run
    from tidewolf.networks.network import Network

LIMITS = 10
"""Of more limits that were broken, those broken most are shown."""
_SHARES = 8
"""The shortest intervals are about such a part of the run."""
_QUICK = 2_000_000
"""Up to so many numbers, rounds times entries, intervals are worked out for a page that was given
none.
"""
_LIMITS = (
    "By how much each limit was broken, added up over the rounds, in the unit of the limits; in how"
    " many rounds; and the round in which it was broken most. A round that keeps a limit never "
    "makes up for one that breaks it."
)
_MOST_ALONE = (
    "The violation in the headline counts only the limit that was broken most in each round, so "
    "this table may add up to more."
)
_VOLUMES = (
    "Limits are measured in shares of all that is sent; behind each number stands the volume, in "
    "the unit of the capacities."
)
_STRETCHES = (
    "Stretches of rounds, each against the best fixed point for these rounds alone, in a family "
    "whose lengths double. The bars show where in the run the worst ones are."
)


def limits_context(runs: Sequence[Run], network: Network | None = None) -> dict[str, Any] | None:
    """A table of what was broken, run by run, and sentences about those that broke nothing; None
    if there are no limits.
    """
    from tidewolf.core.unlimited import Unlimited

    if not runs[0].rounds or isinstance(runs[0].stream.constraints, Unlimited):
        return None
    clock = clock_of(runs[0].stream, runs[0].rounds)
    found = [
        (style, broken_limits(run), run) for run, style in zip(runs, run_styles(runs), strict=True)
    ]
    unit = None if network is None else network.unit
    bounded = any(one.bound is not None for _, broken, _ in found for one in broken)
    kept = [style.label for style, broken, _ in found if not broken]
    said = {
        _VOLUMES: network is not None,
        f"{', '.join(kept)}: no limit was broken.": bool(kept),
        _MOST_ALONE: any(len(broken) > 1 for _, broken, _ in found),
    }
    groups = [
        Rows(
            [_row(one, clock, unit, bounded) for one in broken[:LIMITS]], _head(style, broken, run)
        )
        for style, broken, run in found
        if broken
    ]
    titles = (
        *("limit", "broken by, in all", "rounds", "at worst", "when it was worst", "first, last"),
        *(("theory allows",) if bounded else ()),
    )
    shown = Table("Limits that were broken", titles, groups, kind="limits") if groups else None
    sentences = [sentence for sentence, applies in said.items() if applies]
    return {"read": _LIMITS, "sentences": sentences, "table": shown}


def _head(style: RunStyle, broken: Sequence[BrokenLimit], run: Run) -> Cell:
    count = 1 if run.each_violation is None else len(run.each_violation)
    left = len(broken) - LIMITS
    said = f"{len(broken)} of {count:,} limits broken" if count > 1 else ""
    more = f", those broken most are shown ({left} more)" if left > 0 else ""
    return Cell(style.label, (said + more,) if said else (), style)


def _row(one: BrokenLimit, clock: Clock, unit: float | None, bounded: bool) -> list[Cell]:
    def over(size: float) -> Cell:
        """A share, with the volume that it is."""
        return Cell(number(size), () if unit is None else (f"volume {number(size * unit)}",))

    when, allowed = one.breach, "unknown" if one.bound is None else number(one.bound)
    return cells(
        [
            one.name,
            over(one.total),
            Cell(f"{when.rounds:,}", (percent(when.rounds / max(1, clock.rounds)),)),
            over(when.worst),
            clock.when(when.worst_round),
            clock.span(when.first, when.last + 1),
            *([allowed] if bounded else []),
        ]
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
    return {"read": _STRETCHES, "table": Table("Worst stretches", shown, groups, kind="worst")}


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
