"""The picture of README and the site: mean loss against mean violation on one stream, `geant`.

    re-solving with the last round     as its headroom moves
    exact projection (Sinha-Vaze)      as its caution moves
    the paper's three                  as they come
    Ensemble                           as it comes, one dot; other cautions as a thin line

The picture is written only if the dot lies below both curves: at its violation, or at less, neither
curve has a loss as small. So that the dot is not merely where no curve gets, the Ensemble at
smaller cautions is held against each curve where both get, too.

    python -m benchmarks headline                 seed 0: the numbers, and docs/images/headline.svg
    python -m benchmarks headline --seeds 5       seeds 0 to 4: the numbers of each, and no picture
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import tidewolf as tw
from benchmarks.commits import ROOT
from benchmarks.experts_cases import Case, Frontier, Totals, ours, percent, played
from benchmarks.experts_frontiers import COLORS, OWN_CAUTIONS, projecting, resolving
from tidewolf.core.errors import InvalidInput

STREAM = "geant"
PICTURE = ROOT / "docs" / "images" / "headline.svg"
PAPER = {"DriftPlusPenalty": "v", "PrimalDual": "s", "BanditPrimalDual": "D"}
"""The paper's three, and their marks."""


def report(_: Path, words: Sequence[str] = ()) -> None:
    """The numbers of every seed; of one alone the picture, too."""
    count = int(words[1]) if words[:1] == ["--seeds"] else 1
    print(f"{STREAM}: mean loss / mean violation a round")
    try:
        found = [_numbers(Case(STREAM, seed)) for seed in range(count)]
    except InvalidInput as missing:
        print(f"  skipped. {missing}")
        return
    below = all(dot for dot, _ in found)
    shared = [statistics.median(gaps) for gaps in zip(*(gaps for _, gaps in found), strict=True)]
    for name, gap in zip(("re-solving", "exact projection"), shared, strict=True):
        print(f"  where both get, median of {count} seeds: {gap:+.2f} % of the loss of {name}")
    if not (below and max(shared) < 0.0):
        print("  The dot does not lie below both curves: no picture.")
    elif count == 1:
        PICTURE.parent.mkdir(parents=True, exist_ok=True)
        draw(PICTURE, Case(STREAM))
        print(f"  picture: {PICTURE.relative_to(ROOT)}")


def _numbers(case: Case) -> tuple[bool, tuple[float, float]]:
    """Print what one seed comes to; whether its dot is below both curves, and by how many percent
    smaller cautions are above each where both get, at the worst.
    """
    dot = ours(case)
    print(f"  seed {case.seed}: Ensemble {dot}")
    below, shared = True, []
    for name, baseline in (
        ("re-solving", resolving(case)),
        ("exact projection", projecting(case)),
    ):
        level = baseline.at(dot.violation)
        below = below and (not level.reached or dot.loss < level.loss)
        own = Frontier(lambda caution: ours(case, caution=caution), OWN_CAUTIONS)
        violation, loss = baseline.undominated()[0]
        shared.append(percent(own.at(violation).loss, loss))
        there = f"has {level.loss:.4f} there" if level.reached else "is never as careful"
        print(
            f"    {name} {there}; at its most careful, {loss:.4f} / {violation:.5f}, Ensemble of "
            f"smaller caution is {shared[-1]:+.2f} % above",
            flush=True,
        )
    for name, point in paper(case).items():
        print(f"    {name} {point}")
    return below, (shared[0], shared[1])


@cache
def paper(case: Case) -> dict[str, Totals]:
    """The paper's three with a horizon and nothing else given."""
    p = case.problem
    return {
        name: played(getattr(tw, name)(p.K, horizon=len(p)), p.stream)  # by their public names
        for name in PAPER
    }


def draw(path: Path, case: Case) -> None:
    """The picture, the same bytes for the same numbers."""
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context({"svg.hashsalt": "tidewolf", "svg.fonttype": "path"}):
        figure = Figure(figsize=(8.0, 4.6), layout="constrained")
        _panel(figure.subplots(), case)
        figure.savefig(path, metadata={"Date": None})


def _panel(axes: Any, case: Case) -> None:
    for color, label, baseline in (
        (COLORS[1], "re-solving every round, as headroom moves", resolving(case)),
        (COLORS[0], "exact projection every round, as caution moves", projecting(case)),
    ):
        points = [
            (baseline.points[knob].violation, baseline.points[knob].loss)
            for knob in sorted(baseline.points)
        ]
        axes.plot(*zip(*points, strict=True), "o-", color=color, markersize=4, label=label)
    for (name, mark), point in zip(PAPER.items(), paper(case).values(), strict=True):
        axes.plot(
            point.violation,
            point.loss,
            mark,
            color="#666666",
            markersize=7,
            label=f"the paper's {name}",
        )
    own = sorted((p.violation, p.loss) for p in (ours(case, caution=c) for c in OWN_CAUTIONS))
    axes.plot(*zip(*own, strict=True), "-", color=COLORS[2], linewidth=1, alpha=0.7)
    dot = ours(case)
    axes.plot(
        dot.violation,
        dot.loss,
        "o",
        color=COLORS[2],
        markersize=13,
        markeredgecolor="white",
        label="tidewolf's Ensemble, as it comes (line: caution 1 to 10)",
        zorder=5,
    )
    axes.set_xscale("log")
    axes.set_xlabel("how much limits are broken: mean violation a round (log scale)")
    axes.set_ylabel("what is paid: mean loss a round")
    axes.set_title(
        "One flow across the GEANT backbone, 2,000 rounds: lower and further left is better",
        fontsize=11,
    )
    axes.legend(frameon=False, fontsize=9)
    axes.grid(color="#EEEEEE")
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
