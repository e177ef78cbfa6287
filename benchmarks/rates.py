"""How regret and violation grow with the horizon, on the hostile streams, for every learner and
rival, next to 3/4 and 7/8.

Three seeds at each of five horizons from 250 to 4,000 rounds; streams turn eight times, whatever
the horizon. The exponents are those of these horizons; the theorems speak of the limit, and from
about 1e5 rounds on in the case of the primal-dual violation.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import tidewolf as tw
from tidewolf import baselines, learners
from tidewolf.core.errors import TidewolfError
from tidewolf.evaluation.rates import Growth
from tidewolf.problems.adversarial import COMMON

HORIZONS = (250, 500, 1000, 2000, 4000)
SEEDS = range(3)
THEOREM = (3 / 4, 7 / 8)
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")


def measured(
    names: tuple[str, ...] | None = None, horizons: tuple[int, ...] = HORIZONS
) -> dict[tuple[str, str], tw.Rates]:
    """The rates of every learner on every stream, by (learner, stream)."""
    known = {**learners.every(), **baselines.every()}
    found = {}
    for kind in COMMON:
        problems = [
            tw.problems.adversarial(T, seed, kind=kind, phase=T // 8)
            for T in horizons
            for seed in SEEDS
        ]
        best = [tw.best_in_hindsight(problem.K, problem.stream) for problem in problems]
        for name in names or known:
            try:
                runs = [
                    tw.run(_learner(known[name], problem), problem.stream, comparator=comparator)
                    for problem, comparator in zip(problems, best, strict=True)
                ]
            except TidewolfError as refused:
                print(f"  {name} on {kind}: skipped. {refused}")
                continue
            found[name, kind] = tw.rates(runs)
    return found


def _learner(kind: Any, problem: tw.problems.Problem) -> Any:
    return kind(problem.K, horizon=len(problem.stream))


def report(out: Path) -> None:
    """Print and draw the exponents."""
    print(
        f"Growth exponents over horizons {', '.join(map(str, HORIZONS))}, {len(SEEDS)} seeds each; "
        "95 % intervals"
    )
    print(f"  {'':18} {'':13} {'regret':>24} {'theory':>7} {'violation':>24} {'theory':>7}")
    found = measured()
    for (name, kind), rates in sorted(found.items()):
        cells = (
            _cell(rates.regret),
            _theory(rates.regret),
            _cell(rates.violation),
            _theory(rates.violation),
        )
        print(f"  {name:18} {kind:13} {cells[0]:>24} {cells[1]:>7} {cells[2]:>24} {cells[3]:>7}")
    draw(out / "rates.png", found)


def _cell(growth: Growth) -> str:
    if growth.exponent is None or growth.interval is None:
        return growth.reason.partition(" runs")[0].replace("at or below zero in", "<= 0 in")
    return f"{growth.exponent:.2f} [{growth.interval[0]:.2f}, {growth.interval[1]:.2f}]"


def _theory(growth: Growth) -> str:
    return "" if growth.theory is None else f"{growth.theory:.3g}"


def draw(path: Path, found: dict[tuple[str, str], tw.Rates]) -> None:
    """Exponents with their intervals, a row for each learner and stream, beside the theorem's."""
    from matplotlib.figure import Figure

    names = sorted({name for name, _ in found})
    figure = Figure(figsize=(10, 1.6 + 0.26 * (len(found) + len(names))), layout="constrained")
    panels = figure.subplots(1, 2, sharey=True)
    rows, ticks, labels = 0, [], []
    for name, color in zip(names, COLORS * len(names), strict=False):
        for kind in (kind for kind in COMMON if (name, kind) in found):
            rates = found[name, kind]
            for axes, growth in zip(panels, (rates.regret, rates.violation), strict=True):
                _mark(axes, rows, growth, color)
            ticks.append(rows)
            labels.append(f"{name}, {kind}")
            rows += 1
        rows += 1
    for axes, title, theorem in zip(panels, ("regret", "violation"), THEOREM, strict=True):
        axes.axvline(theorem, color="#555555", linestyle="--", linewidth=1.2, zorder=0)
        axes.axvline(1.0, color="#BBBBBB", linewidth=1.0, zorder=0)
        axes.set_title(f"{title}: dashed at the theorem's {theorem:.3g}", fontsize=10)
        axes.set_xlim(-0.35, 1.35)
        axes.set_xlabel(f"p in {title} ~ T^p, 95 % interval")
        axes.spines[["top", "right", "left"]].set_visible(False)
        axes.tick_params(axis="y", length=0)
        axes.grid(axis="x", color="#EEEEEE")
        axes.set_axisbelow(True)
    panels[0].set_yticks(ticks, labels)
    panels[0].set_ylim(rows - 1.3, -0.7)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
    print(f"  picture: {path}")


def _mark(axes: Any, row: int, growth: Growth, color: str) -> None:
    if growth.exponent is None or growth.interval is None:
        axes.text(-0.33, row, _cell(growth) + " runs", va="center", fontsize=8, color=color)
        return
    low, high = (min(max(end, -0.35), 1.35) for end in growth.interval)
    axes.plot([low, high], [row, row], color=color, linewidth=2.2, alpha=0.5, solid_capstyle="butt")
    axes.plot([growth.exponent], [row], "o", color=color, markersize=5)
