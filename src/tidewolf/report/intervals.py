"""The worst stretches of a run: for every length of a family of intervals, where regret and
violation were largest.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tidewolf.evaluation.formatting import interval, number
from tidewolf.report.figures import legend_entry
from tidewolf.report.markup import scrolled

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
    from tidewolf.evaluation.intervals import intervals

    return (
        [intervals(run, max(1, run.rounds // _SHARES)) for run in runs]
        if all(map(_quick, runs))
        else []
    )


def _quick(run: Run) -> bool:
    from tidewolf.functions.base import LinearTotal, PiecewiseLinear
    from tidewolf.sets.base import Polyhedral

    linear = isinstance(run.stream.losses, LinearTotal) and isinstance(
        run.stream.constraints, PiecewiseLinear
    )
    size = run.rounds * math.prod(run.learner.hard_set.shape)
    return linear and isinstance(run.learner.hard_set, Polyhedral) and 0 < size <= _QUICK


def intervals_section(found: Sequence[Intervals], seen: Sequence[RunStyle]) -> str:
    """A table for each run's intervals; nothing where there are none."""
    if not found:
        return ""
    head = "".join(
        f'<th scope="col">{title}</th>'
        for title in ("rounds", "worst regret", "where", "worst violation", "where")
    )
    bodies = "".join(
        f'<tbody><tr><th scope="rowgroup" colspan="5">{legend_entry(style)}</th></tr>'
        f"{''.join(_rows(style.hue, each))}</tbody>"
        for each, style in zip(found, seen, strict=True)
    )
    shown = scrolled(
        f'<table class="worst"><thead><tr>{head}</tr></thead>{bodies}</table>', "Worst intervals"
    )
    return f'<h2 class="part">Worst intervals</h2><p class="read">{_READ}</p>{shown}'


def _rows(hue: int, found: Intervals) -> list[str]:
    rows, rounds = [], found.every[-1].stop
    for length in sorted({each.length for each in found.every}):
        these = [each for each in found.every if each.length == length]
        known = [each for each in these if each.regret is not None]
        regret = max(
            known, key=lambda each: each.regret[1] if each.regret else -math.inf, default=None
        )
        violation = max(these, key=lambda each: each.violation)
        said = "none" if regret is None or regret.regret is None else interval(regret.regret)
        rows.append(
            f"<tr><td>{length:,}</td><td>{said}</td><td>{_where(hue, regret, rounds)}</td>"
            f"<td>{number(violation.violation)}</td><td>{_where(hue, violation, rounds)}</td></tr>"
        )
    return rows


def _where(hue: int, each: Interval | None, rounds: int) -> str:
    if each is None:
        return ""
    start, stop = (100 * end / rounds for end in (each.start, each.stop))
    bar = (
        f'<path d="M0 3H100"/><path style="stroke: var(--line-{hue})" d="M{start:.1f} '
        f'3H{stop:.1f}"/>'
    )
    return (
        f'<span class="where">{each.start + 1:,}&ndash;{each.stop:,}</span><svg class="bar" '
        f'viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true">{bar}</svg>'
    )
