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

from tidewolf.core.types import Floats
from tidewolf.evaluation.formatting import bound_text, number, number_or_none
from tidewolf.evaluation.rates import CONFIDENCE
from tidewolf.experiments.paper import totals_of
from tidewolf.learners import bandit_primal_dual, drift_plus_penalty, primal_dual
from tidewolf.methods.paper import theorem_eps
from tidewolf.problems.adversarial import COMMON
from tidewolf.projection.paper import afp_paper, separating_hyperplane
from tidewolf.report import charts, rendering

if TYPE_CHECKING:
    from tidewolf.experiments.paper import Measured, Study

# The exponents of Theorems 3.1 and 4.1, up to logarithms.
THEORY = {"regret": 0.75, "violation": 0.875}


ALGORITHMS: dict[str, Callable[..., Any]] = {
    "tidewolf.projection.afp_paper": afp_paper,
    "tidewolf.projection.paper.separating_hyperplane": separating_hyperplane,
    "tidewolf.DriftPlusPenalty": drift_plus_penalty.DriftPlusPenalty.step,
    "tidewolf.PrimalDual": primal_dual.PrimalDual.step,
    "tidewolf.BanditPrimalDual": bandit_primal_dual.BanditPrimalDual.step,
}


def page(study: Study, *, date: datetime) -> str:
    rendering.require_extras()
    first, *_, last = study.size.horizons
    context = {
        "title": "Garber & Kretzu (2024), reproduced",
        "facts": [repr(study.K), f"{first:,} to {last:,} rounds, {study.size.seeds} seeds"],
        "verdict": verdict(study),
        "sources": {name: inspect.getsource(code) for name, code in ALGORITHMS.items()},
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
    within = f"{within} in the {runs:,} runs on hostile streams that have one"
    return f"{within}, with {calls} oracle calls than rounds."


# --- growth with the horizon ----------------------------------------------------------------------


def growth_charts(study: Study) -> list[charts.Chart]:
    styles = [rendering.RunStyle(each.learner, hue) for hue, each in enumerate(study.growths)]
    return [
        charts.Chart(
            name=f"paper-{name}",
            title=f"{name.capitalize()} against T",
            about="The worst of four hostile streams; a dot per seed, lines through the means. "
            "Lower is better; both axes are logarithmic.",
            draw=partial(_draw_growth, study=study, name=name, theory=theory),
            legend=[*styles, rendering.RunStyle(f"slope {theory:g}", 7, (2, 2))],
        )
        for name, theory in THEORY.items()
    ]


def _draw_growth(
    axes: Any, palette: charts.Palette, study: Study, name: str, theory: float
) -> dict[str, Any]:
    T, dots, heights = np.log10(study.size.horizons), list[Any](), [1.0]
    every: list[Floats] = [getattr(each, f"{name}s") for each in study.growths]
    if any((totals > 0.0).any() for totals in every):
        heights = [total for totals in every for total in totals[totals > 0.0].tolist()]
    for hue, (totals, each) in enumerate(zip(every, study.growths, strict=True)):
        mean, color = totals.mean(axis=1), palette.line[hue]
        known = mean > 0.0
        axes.plot(T[known], np.log10(mean[known]), color=color, linewidth=1.9)
        for x, row in zip(T, totals, strict=True):
            for total in row[row > 0.0].tolist():
                place = np.array([x, math.log10(total)])
                charts.draw_dot(axes, place, 4, color, 3)
                text = f"{each.learner}, T = {10**x:,.0f}: {name} {number(total)}"
                dots.append((place, f"line-{hue}", text))
    top, bottom = math.log10(max(heights)), math.log10(min(heights))
    dotted = {"color": palette.line[7], "linewidth": 1.9, "linestyle": (0, (1, 1))}
    axes.plot(T, top + theory * (T - T[-1]), **dotted)
    axes.set_ylim(bottom - 0.1, top + 0.1)
    charts.dress(axes, palette)
    axes.set_xticks(T, [f"{each:,}" for each in study.size.horizons])
    ticks = charts.round_numbers(min(heights), max(heights))
    axes.set_yticks(np.log10(ticks), [f"{each:,g}" for each in ticks])
    axes.set_xlabel("T, rounds", color=palette.ink, labelpad=3)
    return charts.dots_at(axes, dots)


def growth_table(study: Study) -> rendering.Table:
    rows = []
    for hue, each in enumerate(study.growths):
        label = rendering.Cell(each.learner, (), rendering.RunStyle(each.learner, hue))
        for name in THEORY:
            exponent, ends, theory, _ = each.growth(name)
            between = "" if ends is None else f"{ends[0]:.2f} to {ends[1]:.2f}"
            fitted, stated = (number_or_none(x, ".3g") for x in (exponent, theory))
            rows.append([label, *map(rendering.Cell, (name, fitted, between, stated))])
    return rendering.table(
        "Growth", ("", "total", "exponent", f"{100 * CONFIDENCE:.0f} % interval", "theorem"), rows
    )


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
    below = f", but stays below the guarantee: {number(most)} of {number(bound)} at T = {T:,}."
    if bound is None:
        below = "; the theorem is about large T, and guarantees nothing here."
    return f"grows faster than T^{found.theory:g} at these horizons{below}"


# --- calls, intervals, bandit, constants, examples ------------------------------------------------


def tables(study: Study) -> dict[str, rendering.Table]:
    """The other tables, by their names in the template."""
    horizons = [f"T = {T:,}" for T in study.size.horizons]
    bounded = ("regret", "guarantee", "violation", "guarantee")
    played = ("", "rounds", "mean loss", "regret", "mean violation", "oracle calls")
    calls = [
        [each.learner, *(f"{count:,}" for count in each.calls), f"{each.prefix:.2g}"]
        for each in study.growths
    ]
    intervals = []
    for length, regret, violation in study.intervals:
        most = None if regret is None or regret.regret is None else regret.regret[1]
        bounds = None if regret is None else regret.bound.regret, violation.bound.violation
        intervals.append([f"{length:,}", *_beside((most, violation.violation), bounds)])
    bandit = []
    for each in study.means:
        means, errors = zip(each.regret, each.violation, strict=True)
        beside = _beside(means, each.guarantee[:2], [f" \u00b1 {number(x)}" for x in errors])
        bandit.append([f"{each.horizon:,}", f"{each.seeds}", *beside])
    printed = []
    for run in study.printed:
        K, moved = run.learner.K, "yes" if run.churn.any() else "no"
        known = (repr(K), f"{run.rounds:,}", number(theorem_eps(run.rounds, K.radius)), moved)
        totals = _beside(totals_of(run), run.learner.guarantee()[:2])
        printed.append([*known, f"{run.oracle_calls:,}", *totals])
    examples = []
    for example, run in study.examples:
        shown = float(run.losses.mean()), totals_of(run)[0], float(run.violations.mean())
        name = f"{type(run.learner).__name__}, example {example}"
        examples.append([name, f"{run.rounds:,}", *map(number, shown), f"{run.oracle_calls:,}"])
    every: dict[str, tuple[str, Sequence[str], list[list[str]]]] = {
        "calls": ("Calls", ("", *horizons, "worst prefix, calls per round"), calls),
        "intervals": (
            "Intervals",
            ("rounds", "worst regret", "bound", "worst violation", "bound"),
            intervals,
        ),
        "bandit": ("Algorithm 5", ("T", "seeds", *bounded), bandit),
        "printed": ("Constants", ("set", "T", "eps", "moves", "oracle calls", *bounded), printed),
        "examples": ("Examples", played, examples),
    }
    return {name: rendering.table(*each) for name, each in every.items()}


def _beside(
    measured: Sequence[float | None],
    bounds: Sequence[float | None],
    errors: Sequence[str] = ("", ""),
) -> list[str]:
    """Regret and violation, each with its error and beside its bound."""
    every = zip(measured, bounds, errors, strict=True)
    return [text for x, most, error in every for text in (number(x) + error, bound_text(x, most))]
