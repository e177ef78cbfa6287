"""Which limits were broken: by name, by how much, in how many rounds, and when it was worst."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tidewolf.evaluation.formatting import number, percent
from tidewolf.evaluation.limits import BrokenLimit, broken_limits
from tidewolf.report.clock import Clock, clock_of
from tidewolf.report.styles import Cell, Rows, RunStyle, Table, cells, run_styles

if TYPE_CHECKING:
    from tidewolf.evaluation.run import Run
    from tidewolf.networks.network import Network

ROWS = 10
"""Of more limits that were broken, those broken most are shown."""
_READ = (
    "By how much each limit was broken, added up over the rounds, in the unit of the limits; in how"
    " many rounds; and the round in which it was broken most. A round that keeps a limit never "
    "makes up for one that breaks it."
)
_MOST_ALONE = (
    "The violation in the headline counts only the limit that was broken most in each round, so "
    "this table may add up to more."
)


def limits_context(runs: Sequence[Run], network: Network | None = None) -> dict[str, Any] | None:
    """A table of what was broken, run by run, and sentences about those that broke nothing; None
    where there are no limits.
    """
    if not runs[0].rounds or _unlimited(runs[0]):
        return None
    clock = clock_of(runs[0].stream, runs[0].rounds)
    found = [(style, broken_limits(run), run) for run, style in _styled(runs)]
    unit = None if network is None else network.unit
    groups = [
        Rows(_rows(broken, clock, unit), _head(style, broken, run)) for style, broken, run in found
    ]
    bounded = any(one.bound is not None for _, broken, _ in found for one in broken)
    kept = [style.label for style, broken, _ in found if not broken]
    sentences = [f"{', '.join(kept)}: no limit was broken."] if kept else []
    if any(len(broken) > 1 for _, broken, _ in found):
        sentences.append(_MOST_ALONE)
    if network is not None:
        sentences.insert(
            0,
            "Limits are measured in shares of all that is sent; behind each number stands the "
            "volume, in the unit of the capacities.",
        )
    titles = (
        "limit",
        "broken by, in all",
        "rounds",
        "at worst",
        "when it was worst",
        "first, last",
    )
    table = Table(
        "Limits that were broken",
        titles + (("theory allows",) if bounded else ()),
        [
            group if bounded else Rows([row[: len(titles)] for row in group.rows], group.head)
            for group, (_, broken, _) in zip(groups, found, strict=True)
            if broken
        ],
        kind="limits",
    )
    return {"read": _READ, "sentences": sentences, "table": table if table.groups else None}


def _styled(runs: Sequence[Run]) -> list[tuple[Run, RunStyle]]:
    return list(zip(runs, run_styles(runs), strict=True))


def _unlimited(run: Run) -> bool:
    from tidewolf.core.unlimited import Unlimited

    return isinstance(run.stream.constraints, Unlimited)


def _head(style: RunStyle, broken: Sequence[BrokenLimit], run: Run) -> Cell:
    count = 1 if run.each_violation is None else len(run.each_violation)
    left = len(broken) - ROWS
    said = f"{len(broken)} of {count:,} limits broken" if count > 1 else ""
    more = f", those broken most are shown ({left} more)" if left > 0 else ""
    return Cell(style.label, (said + more,) if said else (), style)


def _rows(broken: Sequence[BrokenLimit], clock: Clock, unit: float | None) -> list[list[Cell]]:
    return [cells(_row(one, clock, unit)) for one in broken[:ROWS]]


def _row(one: BrokenLimit, clock: Clock, unit: float | None) -> list[Cell | str]:
    def over(size: float) -> Cell:
        """A share, with the volume that it is."""
        return Cell(number(size), () if unit is None else (f"volume {number(size * unit)}",))

    allowed, when = "unknown" if one.bound is None else number(one.bound), one.breach
    return [
        one.name,
        over(one.total),
        Cell(f"{when.rounds:,}", (percent(when.rounds / max(1, clock.rounds)),)),
        over(when.worst),
        clock.when(when.worst_round),
        clock.span(when.first, when.last + 1),
        allowed,
    ]
