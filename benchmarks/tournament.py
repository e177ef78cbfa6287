"""The frontier of exact projection, and where LyapunovDescent and Ensemble land on it, per stream.

    (i)    LyapunovDescent by default, at most one call per round: on the frontier
    (ii)   swept over caution at ten calls per round: every point of the frontier matched (0.5 % of
           the comparator's mean loss, 10 % of violation)
    (iii)  three times less violation at equal regret than the paper's learners and the baselines
           with one oracle call per round, in the median
    (iv)   Ensemble by default, no horizon, with the time of day and re-solving: on the frontier

The frontier is that of Sinha-Vaze with exact projections over four decades of `caution`; "on the
frontier" is defined in evaluation/frontier.py. Re-solving with several headrooms is played too.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

import tidewolf as tw
from benchmarks.cases import advised, built
from benchmarks.measuring import OUT, Bar, show
from tidewolf.evaluation.frontier import ALLOWED
from tidewolf.report.comparison import write_pictures

STREAMS = ("abilene", "carbon", "routing", "freeway", "geant", "uunet")
CALLS = 10.0
OTHERS = ("PrimalDual", "DriftPlusPenalty", "BanditPrimalDual", "WangWanZhang", "OnlineFrankWolfe")
LESS = 3.0
HEADROOMS = (0.0, 1.0, 2.0, 4.0)


def decades(points: int, most: float = 100.0) -> list[float]:
    """Four decades of caution, or more, in round numbers."""
    return [float(f"{caution:.3g}") for caution in np.geomspace(0.01, most, points)]


def by_default(K: tw.sets.ConvexSet, horizon: int) -> tw.LyapunovDescent:
    """One call per round, and nothing swept."""
    return tw.LyapunovDescent(K, horizon=horizon)


def played(problem: tw.problems.Problem) -> tw.Comparison:
    """Everything on one stream."""
    everyone: dict[str, Any] = {**tw.learners.every(), **tw.baselines.every()}
    theirs = {name: everyone[name] for name in ("SinhaVaze", *OTHERS)}
    ours = {"LyapunovDescent": tw.LyapunovDescent, "by default": by_default}
    more: dict[str, Any] = {"Ensemble": partial(tw.Ensemble, experts=advised(problem))}
    more |= {f"Resolve, {h:g}": partial(tw.baselines.Resolve, headroom=h) for h in HEADROOMS}
    found = [
        tw.compare(theirs, problem, cautions=decades(17), budgets=(CALLS,)),
        tw.compare(ours, problem, cautions=decades(61, 1000.0), budgets=(CALLS,)),
        tw.compare(more, problem),
    ]
    return tw.Comparison(found[0].venues, sum((each.entries for each in found), ()))


def bars(found: tw.Comparison, name: str) -> Iterator[Bar]:
    """Every point of every learner on a stream, then the four verdicts."""
    print(f"{name}: {found.about(name)}")
    heads = ("caution", "regret", "violation", "calls", "infeasibility", "gap %")
    print(f"  {'':16}", *(f"{head:>13}" for head in heads))
    for learner in found.learners:
        gaps = found.ranking(name, learner).gaps or ()
        for p, gap in zip(found.frontier(name, learner), gaps, strict=True):
            knob = "" if p.caution is None else f"{p.caution:.3g}"
            cells = f"{p.regret:13.5f} {p.violation:13.6f} {p.calls:13.3f} {p.infeasibility:13.1e}"
            print(f"  {learner:16} {knob:>13} {cells} {100 * gap:+13.3f}")
    short = found.ranking(name, "LyapunovDescent").shortfall
    for what, gap in (
        ("(i) by default, above the frontier", found.ranking(name, "by default").gap),
        (f"(ii) {CALLS:g} calls, worst point of the frontier missed by", short),
        ("(iv) Ensemble, above the frontier", found.ranking(name, "Ensemble").gap),
    ):
        assert gap is not None
        yield Bar(f"{name}: {what}", 100 * gap, 100 * ALLOWED, "%")
    for other in OTHERS:
        saving = found.ranking(name, "LyapunovDescent", other).saving
        if saving is None:
            print(f"  {other}: no point to compare with")
        else:
            yield Bar(f"{name}: (iii) less violation than {other}", saving, LESS, "x", least=True)
    print(*(f"  {sentence}" for sentence in found.warnings()), sep="\n")


def report() -> None:
    OUT.mkdir(parents=True, exist_ok=True)
    for problem in built(STREAMS):
        found = played(problem)
        show(bars(found, problem.name))
        write_pictures(OUT, found)
