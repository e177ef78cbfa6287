"""What is said of a run in hindsight, in sentences for terminals, pages and prints: its regret, or
what can be said in its place where no point keeps every limit.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tidewolf.evaluation.formatting import number, plain_interval

if TYPE_CHECKING:
    from tidewolf.evaluation.run import Run

_UNKNOWN = (
    "The best fixed point in hindsight cannot be computed for this set and these functions, so the "
    "regret is not known."
)
_HALF = (
    "No fixed point that keeps every limit was found, and no proof that there is none: the regret "
    "is known from above only."
)


def hindsight_sentences(runs: Sequence[Run]) -> list[str]:
    """Why there is no regret, or only half of it, and what can be said instead; nothing where there
    is one.
    """
    found = [sentence for run in runs for sentence in _sentences(run)]
    return list(dict.fromkeys(found))


def _sentences(run: Run) -> list[str]:
    best = run.comparator
    if run.rounds == 0 or (best is not None and best.point is not None):
        return []
    if best is None:
        return [_UNKNOWN]
    return infeasible_sentences(run) if best.infeasibility is not None else [_HALF]


def infeasible_sentences(run: Run) -> list[str]:
    """That no point keeps every limit, with the rounds that show it; how little can be broken; and
    what the best point costs of those that keep the rounds that can be kept.
    """
    best, found = run.comparator, run.least_breach
    assert best is not None
    assert best.infeasibility is not None
    proof = best.infeasibility.sentence
    if found is None:
        return [proof]
    least = number(found.lower)
    reached = "" if number(found.upper) == least else f", and one by {number(found.upper)}"
    kept = f"{len(found.kept):,} of {found.rounds:,}"
    if not len(found.kept):
        return [
            proof,
            f"Any fixed point breaks limits by at least {least} in all{reached}; the point of the "
            f"least breach keeps none of the {found.rounds:,} rounds, and the best point without "
            f"limits costs {number(found.best.upper)}.",
        ]
    return [
        proof,
        f"Any fixed point breaks limits by at least {least} in all{reached}. The best of those "
        f"that keep the {kept} rounds which can be kept at the least breach costs "
        f"{number(found.best.upper)}.",
    ]


def regret_words(run: Run) -> str:
    """The regret, or what stands in its place, in a few words."""
    regret, kept = run.regret, run.regret_kept
    if regret is not None:
        return f"regret [{regret[0]:.6g}, {regret[1]:.6g}]"
    if kept is None or run.least_breach is None:
        return "regret unknown"
    rounds = f"{len(run.least_breach.kept)} of {run.rounds}"
    return f"regret against those who keep {rounds} rounds [{kept[0]:.6g}, {kept[1]:.6g}]"


def plain_hindsight(run: Run) -> dict[str, Any] | None:
    """What stands in place of a regret where no point keeps every limit, as plain data."""
    found = run.least_breach
    if found is None:
        return None
    return {
        "least_breach": plain_interval((found.lower, found.upper)),
        "kept_rounds": len(found.kept),
        "rounds": found.rounds,
        "loss_kept": plain_interval((found.best.lower, found.best.upper)),
        "regret_kept": plain_interval(run.regret_kept),
    }
