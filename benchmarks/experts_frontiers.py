"""Bars of `members` that are frontiers: exact projections, re-solving with headroom, column
generation, and descent at single step scales; and their picture.
"""

from __future__ import annotations

import statistics
from functools import cache
from pathlib import Path
from typing import Any

import tidewolf as tw
from benchmarks.experts_cases import (
    GENERATED,
    STREAMS,
    Case,
    Frontier,
    Limits,
    Totals,
    cases,
    median_and_worst,
    ours,
    percent,
    played,
    verdict,
)

CAUTIONS = (1.0, 2.2, 4.6, 10.0, 22.0, 46.0, 100.0)
HEADROOMS = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0)
OWN_CAUTIONS = (1.0, 2.0, 3.0, 5.0, 10.0)
PROJECTING = {"abilene": -0.5}
"""The bar against exact projections where it is not -1 %."""
RESOLVING, COLUMNS, SCALES = 0.3, 0.3, 0.7
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7")


@cache
def projecting(place: Case) -> Frontier:
    """Sinha-Vaze with exact projections over caution; it is told the horizon."""
    p = place.problem
    return Frontier(
        lambda caution: played(
            tw.baselines.SinhaVaze(p.K, horizon=len(p), caution=caution), p.stream
        ),
        CAUTIONS,
        2.2,
    )


@cache
def resolving(place: Case) -> Frontier:
    """Re-solving with the last round over headroom, to be picked in hindsight."""
    p = place.problem
    return Frontier(
        lambda headroom: played(tw.baselines.Resolve(p.K, headroom=headroom), p.stream), HEADROOMS
    )


@cache
def descending(place: Case, scale: float) -> Frontier:
    """Descent at one step scale over caution."""
    p = place.problem
    return Frontier(
        lambda caution: played(
            tw.LyapunovDescent(p.K, caution=caution, step_scale=scale), p.stream
        ),
        CAUTIONS,
        2.2,
    )


def sinha_vaze(limits: Limits) -> None:
    """Against exact projections."""
    print("against exact-projection Sinha-Vaze over caution, at our violation")
    for stream in limits.named(STREAMS):
        gaps = []
        for case in cases(stream, limits):
            mine, baseline = ours(case), projecting(case.place)
            level = baseline.at(mine.violation)
            gaps.append(percent(mine.loss, level.loss))
            _line(case, mine, level.loss, gaps[-1], careful(level.reached, level.most_careful))
            if not level.reached and case == case.place:
                _where_both_get(case, baseline)
        if gaps:
            median_and_worst(f"{stream}, Sinha-Vaze", gaps, PROJECTING.get(stream, -1.0))


def resolve(limits: Limits) -> None:
    """Against re-solving with headroom."""
    print("against re-solving with the last round, headroom picked in hindsight, at our violation")
    below = []
    for stream in limits.named(STREAMS):
        gaps, equal, never = [], dict[Case, float](), 0
        for case in cases(stream, limits):
            mine, baseline = ours(case), resolving(case.place)
            level = baseline.at(mine.violation)
            gaps.append(percent(mine.loss, level.loss))
            _line(case, mine, level.loss, gaps[-1], careful(level.reached, level.most_careful))
            never += not level.reached
            if not level.reached and case.place not in equal:
                equal[case.place] = _at_their_most_careful(case.place, baseline)
        if not gaps:
            continue
        words = f"{stream}, Resolve"
        if never:
            words += f" (never as careful as ours in {never} of {len(gaps)})"
        median_and_worst(words, gaps, RESOLVING)
        if equal:
            median_and_worst(
                f"{stream}, Resolve at its own most careful violation, our caution lowered to that",
                list(equal.values()),
                RESOLVING,
            )
        below.append((stream, statistics.median(gaps)))
    less = [stream for stream, gap in below if gap < 0.0]
    verdict(len(less) >= 3, f"below re-solving on {len(less)} streams, of three: {', '.join(less)}")


def careful(reached: bool, least: float) -> str:
    """Whether the rival gets there, in words."""
    return "" if reached else f", which is never as careful: {least:.5f} at least"


def _where_both_get(place: Case, baseline: Frontier) -> None:
    """How we stand at violations that both reach, our caution lowered: the most careful point of a
    rival that never gets to ours may be a dear one.
    """
    least = baseline.undominated()[0][0]
    own = {caution: ours(place, caution=caution) for caution in OWN_CAUTIONS}
    gaps = {
        caution: percent(point.loss, baseline.at(point.violation).loss)
        for caution, point in own.items()
        if point.violation >= least
    }
    words = ", ".join(f"{gap:+.2f} % at caution {c:g} ({own[c]})" for c, gap in gaps.items())
    print(f"    where both get: {words or 'nowhere'}", flush=True)


def _at_their_most_careful(place: Case, baseline: Frontier) -> float:
    """By how much we are above a rival's most careful point at its violation, our caution
    lowered.
    """
    own = Frontier(lambda caution: ours(place, caution=caution), OWN_CAUTIONS)
    violation, loss = baseline.undominated()[0]
    level = own.at(violation)
    gap = percent(level.loss, loss)
    print(
        f"    at its most careful, {loss:.4f} / {violation:.5f}, ours has {level.loss:.4f} "
        f"({gap:+.2f} %): "
        + ", ".join(f"{caution:g}: {point}" for caution, point in sorted(own.points.items())),
        flush=True,
    )
    return gap


def columns(limits: Limits) -> None:
    """At most one call a round, and the same bars by column generation."""
    print("oracle calls a round, and column generation in place of the linear programs")
    most = 0.0
    for stream in limits.named(STREAMS):
        found: dict[str, list[float]] = {"Sinha-Vaze": [], "Resolve": []}
        for case in {case.place: None for case in cases(stream, limits)}:
            lp, mine = ours(case), ours(case, columns=True)
            most = max(most, lp.calls, mine.calls)
            for name, baseline in (("Sinha-Vaze", projecting(case)), ("Resolve", resolving(case))):
                level = baseline.at(mine.violation)
                found[name].append(percent(mine.loss, level.loss))
                note = careful(level.reached, level.most_careful)
                _line(case, mine, level.loss, found[name][-1], note, name)
            print(f"    by linear programs {lp}, calls {lp.calls:.3f}; columns {mine.calls:.3f}")
        if found["Resolve"]:
            bar = PROJECTING.get(stream, -1.0)
            words = f"{stream}, column generation against"
            median_and_worst(f"{words} Sinha-Vaze", found["Sinha-Vaze"], bar + COLUMNS)
            median_and_worst(f"{words} Resolve", found["Resolve"], RESOLVING + COLUMNS)
    verdict(most <= 1.0, f"at most {most:.3f} oracle calls a round, of one")


def bare(limits: Limits) -> None:
    """Without context and advice, against single step scales."""
    print("without context and advice, against the better of step scales 0.3 and 1 over caution")
    for stream in limits.named(STREAMS):
        gaps = []
        for case in cases(stream, limits):
            mine = ours(case, bare=True)
            levels = [descending(case.place, scale).at(mine.violation) for scale in (0.3, 1.0)]
            best = min(levels, key=lambda level: level.loss)
            gaps.append(percent(mine.loss, best.loss))
            _line(case, mine, best.loss, gaps[-1], careful(best.reached, best.most_careful))
        if gaps:
            median_and_worst(f"{stream}, step scales", gaps, SCALES)


def _line(
    case: Case, mine: Totals, theirs: float, gap: float, note: str, baseline: str = "baseline"
) -> None:
    print(f"    {case}: {mine}, {baseline} {theirs:.4f}{note}: {gap:+.2f} %", flush=True)


def picture(path: Path, limits: Limits) -> None:
    """The rivals' frontiers and our points, a panel for each stream: of generated ones seed 0."""
    from matplotlib.figure import Figure

    streams = {
        stream: found for stream in limits.named(STREAMS) if (found := cases(stream, limits))
    }
    columns = min(3, len(streams))
    rows = -(-len(streams) // max(1, columns))
    figure = Figure(figsize=(4.6 * columns, 3.6 * rows + 0.5), layout="constrained")
    panels = figure.subplots(rows, columns, squeeze=False).ravel()
    for axes, (stream, found) in zip(panels, streams.items(), strict=False):
        _panel(axes, stream, found)
    for axes in panels[len(streams) :]:
        axes.set_visible(False)
    figure.legend(
        *panels[0].get_legend_handles_labels(),
        loc="outside lower center",
        ncols=4,
        fontsize=9,
        frameon=False,
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
    print(f"  picture: {path}")


def _panel(axes: Any, stream: str, found: list[Case]) -> None:
    place = found[0].place
    for color, label, baseline in (
        (COLORS[0], "Sinha-Vaze, exact projections, as caution moves", projecting(place)),
        (COLORS[1], "re-solving, as headroom moves", resolving(place)),
    ):
        best = baseline.undominated()
        everywhere = [(p.violation, p.loss) for p in baseline.points.values()]
        axes.plot(*zip(*everywhere, strict=True), "o", color=color, markersize=3, alpha=0.4)
        axes.plot(*zip(*best, strict=True), "o-", color=color, markersize=4, label=label)
    mine = [ours(case) for case in found if case.place == place]
    axes.plot(
        [p.violation for p in mine[1:]],
        [p.loss for p in mine[1:]],
        "o",
        color=COLORS[2],
        markersize=4,
        alpha=0.6,
        label="Ensemble, settings that should not matter",
    )
    axes.plot(
        [mine[0].violation],
        [mine[0].loss],
        "*",
        color=COLORS[2],
        markersize=14,
        markeredgecolor="white",
        label="Ensemble by default",
    )
    axes.set_xscale("symlog", linthresh=1e-4)
    axes.set_title(f"{stream}{', seed 0' if stream in GENERATED else ''}", fontsize=10)
    axes.set_xlabel("mean violation a round")
    axes.set_ylabel("mean loss a round")
    axes.grid(color="#EEEEEE")
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
