"""The tournament: what the flagship must show against exact projections and against everybody else,
stream by stream.

    (i)    by default, at most one call a round: on the rival's frontier
    (ii)   swept, at ten calls a round: every point of the rival's frontier matched (0.5 % of the
           comparator's mean loss, 10 % of violation)
    (iii)  at (ii) less time spent on staying feasible than the rival's projections take
           (feasibility.py)
    (iv)   three times less violation at equal regret than the paper's learners and the rivals with
           one oracle call a round, in the median
    (v)    the ensemble by default, no horizon given, with the time of day and re-solving as its
           members: on the rival's frontier

Beside them re-solving with the last round at several headrooms, which promises nothing.

Rival: Sinha-Vaze with exact projections over four decades of `caution`; the flagship's own sweep is
wider and denser.
Streams whose records are not there are left out.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import tidewolf as tw
from benchmarks.feasibility import INFEASIBILITY, costs
from benchmarks.frontier import advised, built, by_default, decades, head, show, verdict
from tidewolf.evaluation.frontier import ALLOWED
from tidewolf.report.comparison import write_pictures

STREAMS = ("abilene", "carbon", "routing", "freeway", "geant", "uunet")
CALLS = 10.0
OTHERS = ("PrimalDual", "DriftPlusPenalty", "BanditPrimalDual", "WangWanZhang", "OnlineFrankWolfe")
LESS = 3.0
HEADROOMS = (0.0, 1.0, 2.0, 4.0)


def report(out: Path, streams: tuple[str, ...] = STREAMS) -> None:
    """Print and draw everything."""
    out.mkdir(parents=True, exist_ok=True)
    everyone = {**tw.learners.every(), **tw.baselines.every()}
    others = {name: everyone[name] for name in OTHERS if name in everyone}
    flagship = {"LyapunovDescent": tw.LyapunovDescent, "by default": by_default}
    for problem in built(streams):
        name = problem.name
        played = tw.compare(
            {"SinhaVaze": tw.baselines.SinhaVaze, **others},
            problem,
            cautions=decades(17),
            budgets=(CALLS,),
        )
        ours = tw.compare(flagship, problem, cautions=decades(61, 1000.0), budgets=(CALLS,))
        more = tw.compare(newcomers(problem), problem)
        found = tw.Comparison(played.venues, played.entries + ours.entries + more.entries)
        head(found, name)
        for learner in found.learners:
            show(found, name, learner)
        short = found.shortfall(name, "LyapunovDescent")
        assert short is not None
        print(f"  (i)   by default: {verdict(found.on_frontier(name, 'by default'))}")
        matched = "all matched" if short <= ALLOWED else "NOT all matched"
        print(
            f"  (ii)  swept, {CALLS:g} calls a round: the rival's points out of reach by "
            f"{100 * short:+.3f} % at worst: {matched}"
        )
        for caution in (1.0, 10.0, 100.0):
            show_costs(problem, caution)
        for other in others:
            saving = found.matched(name, "LyapunovDescent", other)
            short_of = "" if saving is None or saving >= LESS else f", NOT {LESS:g}x"
            print(
                f"  (iv)  {other}: "
                + (
                    "no point to compare with"
                    if saving is None
                    else f"{saving:.3g}x less violation"
                )
                + short_of
            )
        print(f"  (v)   the ensemble: {verdict(found.on_frontier(name, 'Ensemble'))}")
        for sentence in found.warnings():
            print(f"  {sentence}")
        write_pictures(out, found)


def newcomers(problem: tw.problems.Problem) -> dict[str, Callable[..., Any]]:
    """The ensemble as everybody would use it, and re-solving at several headrooms."""

    def ensemble(K: tw.sets.ConvexSet) -> tw.Ensemble:
        return tw.Ensemble(K, **advised(problem))

    return {
        "Ensemble": ensemble,
        **{f"Resolve, {h:g}": partial(tw.baselines.Resolve, headroom=h) for h in HEADROOMS},
    }


def show_costs(problem: tw.problems.Problem, caution: float) -> None:
    """Both sides' time on staying feasible at one caution."""
    c = costs(problem, caution, CALLS)
    solvers = ", ".join(
        f"{name} {'fails' if cost is None else f'{cost:.0f}'}"
        for name, cost in (("OSQP", c.osqp), ("PIQP", c.piqp))
    )
    own = "" if c.closed_form is None else f", the set's own {c.closed_form:.0f}"
    print(
        f"  (iii) caution {caution:g}: {c.ours:.0f} us a round on staying feasible (excess "
        f"{c.infeasibility:.0e}), projections at excess <= {INFEASIBILITY:g} {solvers}{own}: the "
        "faster solver "
        f"takes {c.solver / c.ours:.2f} times ours"
    )
