"""Describe a run in hindsight for terminals, pages and prints: its regret, or what is known in its
place if no fixed point satisfies every constraint.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tidewolf.evaluation.decisions import time_texts
from tidewolf.evaluation.formatting import interval, number, plain_interval

if TYPE_CHECKING:
    from tidewolf.core.batch import Stream
    from tidewolf.evaluation.run import Run
    from tidewolf.hindsight.best import Infeasibility

_NAMED = 6
"""How many rounds a sentence names."""

_HALF = (
    "No fixed point that keeps every limit was found, and no proof that there is none: the regret "
    "is known from above only."
)


def hindsight_sentences(runs: Sequence[Run]) -> list[str]:
    """Why there is no regret, or only half of it, and what is known instead; nothing if there is
    one.
    """
    return list(dict.fromkeys(sentence for run in runs for sentence in _sentences(run)))


def _sentences(run: Run) -> list[str]:
    best, why = run.hindsight
    if run.rounds == 0 or (best is not None and best.point is not None):
        return []
    if best is None or best.infeasibility is None:
        return [_HALF if best is not None else f"{why} So the regret is not known."]
    proof, found = contradiction(best.infeasibility, run.stream), run.least_breach
    if found is None:
        return [proof]
    ends = interval((found.lower, found.upper))
    return [
        proof,
        f"The least that a fixed decision breaks limits by in all is {ends}. The best of those "
        f"that keep the {len(found.kept):,} of {found.rounds:,} rounds which can be kept then "
        f"costs {number(found.best.upper)}.",
    ]


def contradiction(proof: Infeasibility, stream: Stream) -> str:
    """That no point keeps every limit, in plain words: which rounds show it, by their times where
    they have some, and by how much one of them is broken whatever is decided.

    The proof has weights of sum 1, so what it weighs is broken by `bound` somewhere at least.
    """
    rounds, where = np.unique(proof.rounds, return_inverse=True)
    shares = np.bincount(where, proof.weights)
    heaviest = np.sort(np.argsort(-shares.round(9), kind="stable")[:_NAMED])
    shown, least = rounds[heaviest].tolist(), f"by at least {proof.bound:.3g}"
    names, what = [f"{t + 1:,}" for t in shown], " rounds " if len(rounds) > 1 else " round "
    if stream.stamps is not None:
        texts, what = time_texts(stream.stamps), " "
        names = [texts[t].replace("T", " ") for t in shown]
    if len(rounds) == 1:
        return f"No decision keeps every limit: that of{what}{names[0]} is always broken {least}."
    more = len(rounds) - len(names)
    last = f"{more:,} more" if more else names.pop()
    return (
        f"No fixed decision keeps every limit: those of{what}{', '.join(names)} and {last} "
        f"contradict each other, and any one decision breaks one of them {least}."
    )


def regret_words(run: Run) -> str:
    """The regret, or what stands in its place, in a few words."""
    regret, kept, what = run.regret, run.regret_kept, "regret"
    if regret is None and kept is not None and run.least_breach is not None:
        what += f" against points that keep {len(run.least_breach.kept)} of {run.rounds} rounds"
        regret = kept
    return f"{what} unknown" if regret is None else f"{what} [{regret[0]:.6g}, {regret[1]:.6g}]"


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
