"""The page of `tidewolf paper`: the algorithms of Garber & Kretzu (2024) with their code, and what
experiments/paper.py measured beside what the theorems state.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from tidewolf.evaluation.formatting import bound_text, number, number_or_none
from tidewolf.evaluation.rates import CONFIDENCE
from tidewolf.learners import bandit_primal_dual, drift_plus_penalty, primal_dual
from tidewolf.problems.adversarial import COMMON
from tidewolf.projection.paper import afp_paper, separating_hyperplane
from tidewolf.report import charts, rendering

if TYPE_CHECKING:
    from tidewolf.experiments.paper import Measured, Study

# The exponents of Theorems 3.1 and 4.1, up to logarithms.
THEORY = {"regret": 0.75, "violation": 0.875}


ALGORITHMS: tuple[tuple[str, str, str, Callable[..., Any]], ...] = (
    (
        "Algorithm 1: approximately feasible projection",
        "From y outside K, pull y towards a point x of K until they are near each other. Then x is "
        "in K, and y is no farther from any point of K than before.",
        "tidewolf.projection.afp_paper",
        afp_paper,
    ),
    (
        "Algorithm 2: a separating hyperplane by Frank-Wolfe",
        "Minimise the distance to y over K, one linear program per step, until x is near y or the "
        "gap proves a hyperplane between y and K.",
        "tidewolf.projection.paper.separating_hyperplane",
        separating_hyperplane,
    ),
    (
        "Algorithm 3: drift plus penalty",
        "Blocks of rounds at one point; then one step on the mean loss gradient plus the penalised "
        "constraints of the block, and Algorithm 1.",
        "tidewolf.DriftPlusPenalty",
        drift_plus_penalty.DriftPlusPenalty.step,
    ),
    (
        "Algorithm 4: primal-dual",
        "A gradient step on loss plus multiplier times violation, Algorithm 1, and a damped step "
        "of the multiplier.",
        "tidewolf.PrimalDual",
        primal_dual.PrimalDual.step,
    ),
    (
        "Algorithm 5: primal-dual with bandit feedback",
        "Algorithm 4 on one-point gradient estimates: only the two values at the played point are "
        "seen.",
        "tidewolf.BanditPrimalDual",
        bandit_primal_dual.BanditPrimalDual.step,
    ),
)


def page(study: Study, *, date: datetime) -> str:
    rendering.require_extras()
    size = study.size
    hardest = f"{size.horizons[0]:,} to {size.horizons[-1]:,} rounds, {size.seeds} seeds"
    context = {
        "title": "Garber & Kretzu (2024), reproduced",
        "facts": [repr(study.K), hardest],
        "verdict": verdict(study),
        "algorithms": [
            {"title": title, "about": about, "name": name, "code": inspect.getsource(code)}
            for title, about, name, code in ALGORITHMS
        ],
        "figures": [charts.figure(each) for each in growth_charts(study)],
        "growth": growth_table(study),
        "remarks": [
            f"{each.learner}, {name}: {words}"
            for each in study.growths
            for name in THEORY
            if (words := remark(each, name))
        ],
        **tables(study),
        "moves_from": f"{study.moves_from:,}",
        "holds_from": f"{study.holds_from:,}",
        "skipped": [f"{what}: {why}" for what, why in study.skipped.items()],
        "written": rendering.written(date),
    }
    return rendering.document("paper", context)


def verdict(study: Study) -> str:
    """One sentence on whether what was measured is what the theorems state."""
    broken = [
        each.learner
        for each in study.growths
        for totals, name in ((each.regrets, "regret"), (each.violations, "violation"))
        for row, bound in zip(totals, each.guarantees, strict=True)
        if (most := getattr(bound, name)) is not None and row.max() > most
    ]
    within = "No guarantee was exceeded" if not broken else f"Exceeded by {', '.join(broken)}"
    bounds = [bound for each in study.growths for bound in each.guarantees]
    runs = study.size.seeds * len(COMMON) * sum(bound.regret is not None for bound in bounds)
    most = max(each.prefix for each in study.growths)
    calls = "never more" if most <= 1.0 else f"up to {most:.3g} times more"
    which = f"the {runs:,} runs on hostile streams that have one"
    return f"{within} in {which}, with {calls} oracle calls than rounds."


# --- growth with the horizon ----------------------------------------------------------------------


def growth_charts(study: Study) -> list[charts.Chart]:
    found = []
    for name, theory in THEORY.items():
        legend = [rendering.RunStyle(each.learner, hue) for hue, each in enumerate(study.growths)]
        legend.append(rendering.RunStyle(f"slope {theory:g}", 7, (2, 2)))
        found.append(
            charts.Chart(
                name=f"paper-{name}",
                title=f"{name.capitalize()} against T",
                about="The worst of four hostile streams; a dot per seed, lines through the means. "
                "Lower is better; both axes are logarithmic.",
                draw=partial(_draw_growth, study=study, name=name, theory=theory),
                legend=legend,
            )
        )
    return found


def _draw_growth(
    axes: Any, palette: charts.Palette, study: Study, name: str, theory: float
) -> dict[str, Any]:
    T = np.log10(study.size.horizons)
    dots, heights = list[Any](), list[float]()
    for hue, each in enumerate(study.growths):
        totals: Any = getattr(each, f"{name}s")
        mean = totals.mean(axis=1)
        known = mean > 0.0
        axes.plot(T[known], np.log10(mean[known]), color=palette.line[hue], linewidth=1.9)
        for x, row in zip(T, totals, strict=True):
            for total in row[row > 0.0].tolist():
                heights.append(total)
                place = np.array([x, math.log10(total)])
                charts.draw_dot(axes, place, 4, palette.line[hue], 3)
                text = f"{each.learner}, T = {10**x:,.0f}: {name} {number(total)}"
                dots.append([place, f"line-{hue}", text])
    top = math.log10(max(heights, default=1.0))
    sloped = top + theory * (T - T[-1])
    axes.plot(T, sloped, color=palette.line[7], linewidth=1.9, linestyle=(0, (1, 1)))
    axes.set_ylim(math.log10(min(heights, default=1.0)) - 0.1, top + 0.1)
    charts.dress(axes, palette)
    axes.set_xticks(T, [f"{each:,}" for each in study.size.horizons])
    ticks = charts.round_numbers(min(heights, default=1.0), max(heights, default=1.0))
    axes.set_yticks(np.log10(ticks), [f"{each:,g}" for each in ticks])
    axes.set_xlabel("T, rounds", color=palette.ink, labelpad=3)
    places = [charts.pixels(axes, place)[0].tolist() for place, *_ in dots]
    return {
        "dots": [[*at, hue, text] for at, (_, hue, text) in zip(places, dots, strict=True)],
    }


def growth_table(study: Study) -> rendering.Table:
    rows = list[Sequence[rendering.Cell | str]]()
    for hue, each in enumerate(study.growths):
        for name in THEORY:
            found = each.growth(name)
            ends = found.interval
            between = "" if ends is None else f"{ends[0]:.2f} to {ends[1]:.2f}"
            fitted, theory = (number_or_none(x, ".3g") for x in (found.exponent, found.theory))
            label = rendering.Cell(each.learner, (), rendering.RunStyle(each.learner, hue))
            rows.append([label, name, fitted, between, theory])
    confidence = f"{100 * CONFIDENCE:.0f} % interval"
    return rendering.table("Growth", ("", "total", "exponent", confidence, "theorem"), rows)


def remark(measured: Measured, name: str) -> str:
    found = measured.growth(name)
    if found.interval is None or found.theory is None:
        return found.reason
    low, high = found.interval
    if low <= found.theory <= high:
        return f"the interval contains the theorem's {found.theory:g}."
    if high < found.theory:
        return f"grows more slowly than T^{found.theory:g}, which the theorem allows."
    T, most = measured.horizons[-1], getattr(measured, f"{name}s")[-1].max()
    bound: float | None = getattr(measured.guarantees[-1], name)
    words = f"grows faster than T^{found.theory:g} at these horizons"
    if bound is None:
        return f"{words}; the theorem is about large T, and guarantees nothing here."
    return (
        f"{words}, but stays below the guarantee: {number(most)} of {number(bound)} at T = {T:,}."
    )


# --- calls, intervals, bandit, constants, examples ------------------------------------------------


def tables(study: Study) -> dict[str, rendering.Table]:
    """The other tables, by their names in the template."""
    intervals = []
    for length, regret, violation in study.intervals:
        own = None if regret is None or regret.regret is None else regret.regret[1]
        bound = None if regret is None else regret.bound.regret
        pairs = (own, bound), (violation.violation, violation.bound.violation)
        intervals.append([f"{length:,}", *(text for pair in pairs for text in _beside(*pair))])
    bandit = []
    for each in study.means:
        both = (each.regret, each.guarantee.regret), (each.violation, each.guarantee.violation)
        means = (
            text
            for (mean, error), most in both
            for text in _beside(mean, most, f" \u00b1 {number(error)}")
        )
        bandit.append([f"{each.horizon:,}", f"{each.seeds}", *means])
    calls = [
        [each.learner, *(f"{count:,}" for count in each.calls), f"{each.prefix:.2g}"]
        for each in study.growths
    ]
    printed = []
    for run in study.printed:
        known = (run.set, f"{run.horizon:,}", number(run.eps), "yes" if run.moved else "no")
        totals = (run.regret, run.guarantee.regret), (run.violation, run.guarantee.violation)
        beside = (text for pair in totals for text in _beside(*pair))
        printed.append([*known, f"{run.calls:,}", *beside])
    examples = []
    for one in study.examples:
        numbers = map(number, (one.loss, one.regret, one.violation))
        name = f"{one.learner}, example {one.example}"
        examples.append([name, f"{one.rounds:,}", *numbers, f"{one.calls:,}"])
    horizons = [f"T = {T:,}" for T in study.size.horizons]
    bounded = ("regret", "guarantee", "violation", "guarantee")
    worst = ("rounds", "worst regret", "bound", "worst violation", "bound")
    played = ("rounds", "mean loss", "regret", "mean violation", "oracle calls")
    return {
        "calls": rendering.table("Calls", ("", *horizons, "worst prefix, calls per round"), calls),
        "intervals": rendering.table("Intervals", worst, intervals),
        "bandit": rendering.table("Algorithm 5", ("T", "seeds", *bounded), bandit),
        "printed": rendering.table(
            "Constants", ("set", "T", "eps", "moves", "oracle calls", *bounded), printed
        ),
        "examples": rendering.table("Examples", ("", *played), examples),
    }


def _beside(measured: float | None, bound: float | None, error: str = "") -> tuple[str, str]:
    return f"{number(measured)}{error}", bound_text(measured, bound)
