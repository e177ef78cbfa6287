"""How regret and violation grow with the horizon on hostile streams, for every learner and
baseline, beside the exponents that theory states (3/4 and 7/8 for the paper's).

Three seeds at each of five horizons from 250 to 4,000 rounds; streams turn eight times, whatever
the horizon. The exponents are those of these horizons; theorems are about the limit, which the
violation of the primal-dual learner approaches from about 1e5 rounds on.
"""

from typing import Any

import tidewolf as tw
from tidewolf.core.errors import TidewolfError
from tidewolf.evaluation.rates import Growth
from tidewolf.problems.adversarial import COMMON

HORIZONS = (250, 500, 1000, 2000, 4000)
SEEDS = range(3)


def report() -> None:
    """Exponents with their 95 % intervals."""
    known: dict[str, Any] = {**tw.learners.every(), **tw.baselines.every()}
    print(f"Growth exponents over horizons {HORIZONS}, {len(SEEDS)} seeds each; 95 % intervals")
    print(f"  {'':18} {'':13} {'regret':>24} {'theory':>7} {'violation':>24} {'theory':>7}")
    for kind in COMMON:
        problems = [
            tw.problems.adversarial(T, seed, kind=kind, phase=T // 8)
            for T in HORIZONS
            for seed in SEEDS
        ]
        best = [tw.best_in_hindsight(problem.K, problem.stream) for problem in problems]
        for name, learner in known.items():
            try:
                rates = tw.rates(
                    tw.run(learner(p.K, horizon=len(p)), p.stream, comparator=comparator)
                    for p, comparator in zip(problems, best, strict=True)
                )
            except TidewolfError as refused:
                print(f"  {name} on {kind}: skipped. {refused}")
                continue
            print(f"  {name:18} {kind:13} {_cells(rates.regret)} {_cells(rates.violation)}")


def _cells(growth: Growth) -> str:
    theory = "" if growth.theory is None else f"{growth.theory:.3g}"
    if growth.exponent is None or growth.interval is None:
        text = growth.reason.partition(" runs")[0].replace("at or below zero in", "<= 0 in")
    else:
        text = f"{growth.exponent:.2f} [{growth.interval[0]:.2f}, {growth.interval[1]:.2f}]"
    return f"{text:>24} {theory:>7}"
