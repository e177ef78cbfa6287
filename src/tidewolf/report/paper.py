"""`tidewolf paper`: what Garber & Kretzu (2024) state, measured, and the page that shows it beside
the algorithms and their code.

    growth      regret and violation against T on four hostile streams, of which the worst counts,
                because theorems are about the worst one; the slope of log(total) on log(T) with its
                confidence interval over seeds, beside the theorem's
    calls       max over t of (oracle calls in rounds 1..t)/t, at most 1 by the theorems
    intervals   worst regret and violation of Algorithm 3 on intervals, beside its measured bounds
    bandit      means of Algorithm 5 over seeds, with confidence intervals, beside its guarantee
    constants   the horizons from which on the printed constants move a point at all
    examples    the paper's two settings: flows with capacities, and semidefinite matrices

Every gradient of the streams has length 1, so Lipschitz constants are 1 and guarantees are known
before the first round.
"""

import inspect
import math
import warnings
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from tidewolf.core.errors import TidewolfError, TidewolfWarning
from tidewolf.core.types import Floats
from tidewolf.evaluation.formatting import bound_text, number, number_or_none
from tidewolf.evaluation.intervals import Interval, intervals
from tidewolf.evaluation.rates import CONFIDENCE, Growth, growth
from tidewolf.evaluation.run import Run, run
from tidewolf.hindsight.best import best_in_hindsight
from tidewolf.learners import BanditPrimalDual, DriftPlusPenalty, LyapunovDescent, PrimalDual
from tidewolf.methods import base, paper
from tidewolf.problems import Problem, routing, sdp
from tidewolf.problems.adversarial import COMMON, adversarial
from tidewolf.projection.paper import afp_paper, separating_hyperplane
from tidewolf.report import charts
from tidewolf.sets import ConvexSet, L2Ball, Simplex

# Called with a part, and how many of how many are done.
Progress: TypeAlias = Callable[[str, int, int], None]
# Of each length of intervals the worst in regret and in violation.
Worst: TypeAlias = tuple[tuple[int, Interval | None, Interval], ...]
SLOPES: Any = {"loss_lipschitz": 1.0, "constraint_lipschitz": 1.0}
# How often a stream turns against the learner, whatever the horizon.
TURNS = 8


class Size(NamedTuple):
    """How much is run; `long` is the number of rounds with the printed constants, or 0."""

    horizons: tuple[int, ...]
    seeds: int
    interval_rounds: int
    bandit_horizons: tuple[int, ...]
    bandit_seeds: int
    long: int = 0


FAST = Size((256, 512, 1024, 2048), 3, 1024, (1024, 4096), 10)
USUAL = Size((512, 1024, 2048, 4096, 8192, 16384), 5, 4096, (1024, 4096, 16384), 30)
FULL = USUAL._replace(long=10_000_000)


class Measured(NamedTuple):
    """Totals of one learner at each horizon, a row for each, a column for each seed.

    `calls` is the most of all runs of a horizon, `prefix` the most calls per round over all
    prefixes of all runs; `exponents` are those of regret and violation in the learner's theorem.
    """

    learner: str
    horizons: tuple[int, ...]
    regrets: np.ndarray[Any, Any]
    violations: np.ndarray[Any, Any]
    guarantees: tuple[base.Bound, ...]
    calls: tuple[int, ...]
    prefix: float
    exponents: tuple[float | None, float | None]

    def growth(self, name: str) -> Growth:
        totals: Floats = getattr(self, f"{name}s")
        theory = dict(zip(THEORY, self.exponents, strict=True))[name]
        repeated = np.repeat(self.horizons, totals.shape[1])
        return growth(repeated.tolist(), totals.ravel().tolist(), theory)


class Study(NamedTuple):
    """All that is measured; what a set does not allow is in `skipped`, with the reason.

    `intervals` has of each length the worst in regret and in violation. From the horizon
    `moves_from` on, the printed eps moves a point that starts at the center; from `holds_from` on,
    the condition of Theorem 4.1 holds.
    """

    K: ConvexSet
    size: Size
    growths: tuple[Measured, ...]
    intervals: Worst
    # of Algorithm 5 over seeds, as rows of a table
    means: tuple[list[str], ...]
    moves_from: int
    holds_from: int
    # with the printed constants
    printed: tuple[Run, ...]
    # on the paper's examples, by name
    examples: tuple[tuple[str, Run], ...]
    skipped: dict[str, str]


def learners(K: ConvexSet, T: int) -> dict[str, base.Learner[Any]]:
    return {
        "Algorithm 3 (DriftPlusPenalty)": DriftPlusPenalty(K, horizon=T, **SLOPES),
        "Algorithm 4 (PrimalDual)": PrimalDual(K, horizon=T, **SLOPES),
        "LyapunovDescent (ours)": LyapunovDescent(K, horizon=T, **SLOPES),
    }


def study(
    K: ConvexSet | None = None,
    size: Size = USUAL,
    progress: Progress = lambda part, done, of: None,
) -> Study:
    """Run everything on a set; None: a simplex of 6 entries."""
    K, skipped = Simplex(6) if K is None else K, dict[str, str]()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TidewolfWarning)  # the page says what they say
        growths = _growths(K, size, progress)
        # of each length, on the stream whose constraint moves from one side to the other
        T = size.interval_rounds
        found = run(DriftPlusPenalty(K, horizon=T, **SLOPES), _stream(K, T, 0, "moving").stream)
        every = intervals(found, progress=lambda done, of: progress("intervals", done, of))
        worst = tuple((some[0].length, f, g) for some, f, g in every.worst_by_length())
        means = list[list[str]]()
        for i, T in enumerate(size.bandit_horizons):
            progress("bandit", i, len(size.bandit_horizons))
            try:
                means.append(_means(K, T, size.bandit_seeds))
            except TidewolfError as refused:
                skipped[f"Algorithm 5 at T = {T:,}"] = str(refused)
        progress("printed constants", 0, 1)
        printed = [_printed(K, size.horizons[-1])]
        if size.long:
            printed.append(_printed(L2Ball(2), size.long))
        progress("examples", 0, 1)
        return Study(
            *(K, size, growths, worst, tuple(means), paper.first_moving_horizon(K.radius, 0.0)),
            *(PrimalDual(K, **SLOPES).theorem_horizon(), tuple(printed), _examples(), skipped),
        )


def _stream(K: ConvexSet, T: int, seed: int, kind: str) -> Problem:
    return adversarial(T, seed, kind=kind, K=K, phase=max(1, T // TURNS))


def _growths(K: ConvexSet, size: Size, progress: Progress) -> tuple[Measured, ...]:
    names, shape = tuple(learners(K, 1)), (len(size.horizons), size.seeds)
    totals = {name: np.full((2, *shape), -math.inf) for name in names}
    calls, prefix = {name: np.zeros(shape, int) for name in names}, dict.fromkeys(names, 0.0)
    for i, T in enumerate(size.horizons):
        for seed in range(size.seeds):
            progress("growth", i * size.seeds + seed, math.prod(shape))
            for kind in COMMON:
                problem = _stream(K, T, seed, kind)
                best = best_in_hindsight(K, problem.stream)
                for name, learner in learners(K, T).items():
                    found = run(learner, problem.stream, comparator=best)
                    totals[name][:, i, seed] = np.maximum(
                        totals[name][:, i, seed], totals_of(found)
                    )
                    calls[name][i, seed] = max(calls[name][i, seed], found.oracle_calls)
                    shares = np.cumsum(found.calls) / np.arange(1, T + 1)
                    prefix[name] = max(prefix[name], float(shares.max()))
    return tuple(
        Measured(
            name, size.horizons, totals[name][0], totals[name][1],
            tuple(learners(K, T)[name].guarantee() for T in size.horizons),
            tuple(calls[name].max(axis=1).tolist()), prefix[name],
            getattr(learners(K, 1)[name], "exponents", (None, None)),
        )
        for name in names
    )  # fmt: skip


def totals_of(found: Run) -> tuple[float, float]:
    return (math.nan if found.regret is None else found.regret[1]), float(found.violations.sum())


def _means(K: ConvexSet, T: int, seeds: int) -> list[str]:
    from scipy.special import stdtrit

    sizes: Any = {"loss_size": 2.0 * K.radius, "constraint_size": 4.0 * K.radius}
    stream = _stream(K, T, 0, "switching").stream
    best, totals, guarantee = best_in_hindsight(K, stream), list[tuple[float, float]](), None
    for seed in range(seeds):
        learner = BanditPrimalDual(K, horizon=T, seed=seed, **SLOPES, **sizes)
        guarantee = learner.guarantee()
        totals.append(totals_of(run(learner, stream, comparator=best)))
    assert guarantee is not None
    half = float(stdtrit(seeds - 1, (1.0 + CONFIDENCE) / 2.0)) / math.sqrt(seeds)
    mean, spread = np.mean(totals, axis=0), half * np.std(totals, axis=0, ddof=1)
    errors = [f" \u00b1 {number(half)}" for half in spread.tolist()]
    return [f"{T:,}", f"{seeds}", *_beside(mean.tolist(), guarantee[:2], errors)]


def _printed(K: ConvexSet, T: int) -> Run:
    return run(PrimalDual.theorem(K, horizon=T, **SLOPES), _stream(K, T, 0, "moving").stream)


def _examples() -> tuple[tuple[str, Run], ...]:
    found = []
    for name, problem in {
        "I: flows with capacities": routing(500),
        "II: semidefinite matrices": sdp(200),
    }.items():
        best = best_in_hindsight(problem.K, problem.stream)
        for kind in (DriftPlusPenalty, PrimalDual, BanditPrimalDual, LyapunovDescent):
            learner = kind(problem.K, horizon=len(problem))
            found.append((name, run(learner, problem.stream, comparator=best)))
    return tuple(found)


# --- the page -------------------------------------------------------------------------------------

# The exponents of Theorems 3.1 and 4.1, up to logarithms.
THEORY = {"regret": 0.75, "violation": 0.875}


ALGORITHMS: dict[str, Callable[..., Any]] = {
    "tidewolf.projection.afp_paper": afp_paper,
    "tidewolf.projection.paper.separating_hyperplane": separating_hyperplane,
    "tidewolf.DriftPlusPenalty": DriftPlusPenalty.step,
    "tidewolf.PrimalDual": PrimalDual.step,
    "tidewolf.BanditPrimalDual": BanditPrimalDual.step,
}


def page(study: Study, *, date: datetime) -> str:
    charts.require_extras()
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
        "written": charts.written(date),
    }
    return charts.document("paper", context)


def verdict(study: Study) -> str:
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
    styles = [charts.RunStyle(each.learner, hue) for hue, each in enumerate(study.growths)]
    return [
        charts.Chart(
            name=f"paper-{name}",
            title=f"{name.capitalize()} against T",
            about="The worst of four hostile streams; a dot per seed, lines through the means. "
            "Lower is better; both axes are logarithmic.",
            draw=partial(_draw_growth, study=study, name=name, theory=theory),
            legend=[*styles, charts.RunStyle(f"slope {theory:g}", 7, (2, 2))],
        )
        for name, theory in THEORY.items()
    ]


def _draw_growth(
    axes: Any, palette: charts.Palette, study: Study, name: str, theory: float
) -> dict[str, Any]:
    T, dots = np.log10(study.size.horizons), list[Any]()
    every: list[Floats] = [getattr(each, f"{name}s") for each in study.growths]
    heights = [total for totals in every for total in totals[totals > 0.0].tolist()] or [1.0]
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


def growth_table(study: Study) -> charts.Table:
    rows = []
    for hue, each in enumerate(study.growths):
        label = charts.Cell(each.learner, (), charts.RunStyle(each.learner, hue))
        for name in THEORY:
            exponent, ends, theory, _ = each.growth(name)
            between = "" if ends is None else f"{ends[0]:.2f} to {ends[1]:.2f}"
            fitted, stated = (number_or_none(x, ".3g") for x in (exponent, theory))
            rows.append([label, *map(charts.Cell, (name, fitted, between, stated))])
    return charts.table(
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


def tables(study: Study) -> dict[str, charts.Table]:
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
    printed = []
    for one in study.printed:
        K, moved = one.learner.K, "yes" if one.churn.any() else "no"
        known = (repr(K), f"{one.rounds:,}", number(paper.theorem_eps(one.rounds, K.radius)), moved)
        totals = _beside(totals_of(one), one.learner.guarantee()[:2])
        printed.append([*known, f"{one.oracle_calls:,}", *totals])
    examples = []
    for example, one in study.examples:
        shown = float(one.losses.mean()), totals_of(one)[0], float(one.violations.mean())
        name = f"{type(one.learner).__name__}, example {example}"
        examples.append([name, f"{one.rounds:,}", *map(number, shown), f"{one.oracle_calls:,}"])
    every: dict[str, tuple[str, Sequence[str], list[list[str]]]] = {
        "calls": ("Calls", ("", *horizons, "worst prefix, calls per round"), calls),
        "intervals": (
            "Intervals",
            ("rounds", "worst regret", "bound", "worst violation", "bound"),
            intervals,
        ),
        "bandit": ("Algorithm 5", ("T", "seeds", *bounded), list(study.means)),
        "printed": ("Constants", ("set", "T", "eps", "moves", "oracle calls", *bounded), printed),
        "examples": ("Examples", played, examples),
    }
    return {name: charts.table(*each) for name, each in every.items()}


def _beside(
    measured: Sequence[float | None],
    bounds: Sequence[float | None],
    errors: Sequence[str] = ("", ""),
) -> list[str]:
    every = zip(measured, bounds, errors, strict=True)
    return [text for x, most, error in every for text in (number(x) + error, bound_text(x, most))]
