"""The picture of the site: mean loss against mean violation on one stream, `geant`.

    re-solving with the last round     as its headroom moves
    exact projection (Sinha-Vaze)      as its caution moves
    the paper's three                  as they come
    Ensemble                           as it comes, one dot; other cautions as a thin line

The picture is written only if the dot lies below both curves: at its violation, or at less, neither
curve has a loss as small. Ensemble at smaller cautions is also compared with each curve at the most
careful point of that curve.

    python -m benchmarks headline                 seed 0: the numbers, and docs/images/headline.svg
    python -m benchmarks headline --seeds 5       seeds 0 to 4: the numbers of each, and no picture
    python -m benchmarks headline meta            docs/images/meta.svg, the picture of README
"""

import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import tidewolf as tw
from benchmarks import public_traffic
from benchmarks.experts import Frontier, means, ours, percent, problem_of, projecting, resolving
from benchmarks.measuring import ROOT
from tidewolf.problems import Problem

STREAM = "geant"
PICTURE = ROOT / "docs" / "images" / "headline.svg"
OWN_CAUTIONS = (1.0, 2.0, 3.0, 5.0, 10.0)
PAPER = {"DriftPlusPenalty": "v", "PrimalDual": "s", "BanditPrimalDual": "D"}
"""The paper's three, and their marks."""
CURVES = {
    "re-solving": ("#D55E00", resolving, "re-solving every round, several headrooms"),
    "exact projection": ("#0072B2", projecting, "exact projection every round, several cautions"),
}
OURS = "#009E73"


def report(words: Sequence[str] = ()) -> None:
    """The numbers of every seed; of one alone the picture, too."""
    if words[:1] == ["meta"]:
        public_traffic.draw(PICTURE.with_name("meta.svg"))
        return
    count = int(words[1]) if words[:1] == ["--seeds"] else 1
    print(f"{STREAM}: mean loss / mean violation per round")
    problems = [problem_of(STREAM, seed, None) for seed in range(count)]
    found = [_numbers(seed, p) for seed, p in enumerate(problems) if p is not None]
    gaps = [statistics.median(each) for each in zip(*(gaps for _, gaps in found), strict=True)]
    for name, gap in zip(CURVES, gaps, strict=True):
        print(f"  median of {count} seeds: {gap:+.2f} % of the loss of {name} at its violation")
    if not (all(below for below, _ in found) and max(gaps) < 0.0):
        print("  The dot does not lie below both curves: no picture.")
    elif count == 1 and problems[0] is not None:
        draw(PICTURE, problems[0])
        print(f"  picture: {PICTURE.relative_to(ROOT)}")


def _numbers(seed: int, problem: Problem) -> tuple[bool, list[float]]:
    """Print the numbers of one seed; whether its dot is below both curves, and by how many percent
    smaller cautions are above the most careful point of each.
    """
    dot, below, gaps = ours(problem), True, []
    print(f"  seed {seed}: Ensemble {dot}")
    own = Frontier(lambda caution: ours(problem, caution), OWN_CAUTIONS)
    for name, (_, curve, _) in CURVES.items():
        loss, reached = curve(problem).at(dot.violation)
        below = below and (not reached or dot.loss < loss)
        careful = curve(problem).undominated()[0]
        gaps.append(percent(own.at(careful.violation)[0], careful.loss))
        there = f"has {loss:.4f} there" if reached else "is never as careful"
        print(
            f"    {name} {there}; at its most careful, {careful}, Ensemble of smaller caution is "
            f"{gaps[-1]:+.2f} % above",
            flush=True,
        )
    for name in PAPER:
        print(f"    {name} {means(_paper(name, problem), problem.stream)}")
    return below, gaps


def _paper(name: str, problem: Problem) -> Any:
    return getattr(tw, name)(problem.K, horizon=len(problem))


def draw(path: Path, problem: Problem) -> None:
    """The picture, the same bytes for the same numbers."""
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context({"svg.hashsalt": "tidewolf", "svg.fonttype": "path"}):
        figure = Figure(figsize=(8.0, 4.6), layout="constrained")
        _panel(figure.subplots(), problem)
        figure.savefig(path, metadata={"Date": None})


def _panel(axes: Any, problem: Problem) -> None:
    for color, curve, label in CURVES.values():
        points = [(p.violation, p.loss) for _, p in sorted(curve(problem).points.items())]
        axes.plot(*zip(*points, strict=True), "o-", color=color, markersize=4, label=label)
    for name, mark in PAPER.items():
        p, label = means(_paper(name, problem), problem.stream), f"the paper's {name}"
        axes.plot(p.violation, p.loss, mark, color="#666666", markersize=7, label=label)
    own = sorted((p.violation, p.loss) for p in (ours(problem, c) for c in OWN_CAUTIONS))
    axes.plot(*zip(*own, strict=True), "-", color=OURS, linewidth=1, alpha=0.7)
    dot, label = ours(problem), "tidewolf's Ensemble, default settings (line: caution 1 to 10)"
    style = {"color": OURS, "markersize": 13, "markeredgecolor": "white", "zorder": 5}
    axes.plot(dot.violation, dot.loss, "o", label=label, **style)
    axes.set_xscale("log")
    axes.set_xlabel("mean violation per round (log scale)")
    axes.set_ylabel("mean loss per round")
    axes.set_title(
        "One flow across the GEANT backbone, 2,000 rounds: lower and further left is better",
        fontsize=11,
    )
    axes.legend(frameon=False, fontsize=9)
    axes.grid(color="#EEEEEE")
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
