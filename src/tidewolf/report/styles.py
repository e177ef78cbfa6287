"""How runs are called and coloured, the same in every table and figure.

A hue for each run; where one learner was run at several cautions, a hue for each learner, and its
runs differ in strength and dashes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from tidewolf.evaluation.run import Run

HUES = 8
"""How many hues the page defines; further ones begin again."""
DASHES = ((), (6, 3), (2, 2), (8, 3, 2, 3))
_FAINTEST = 0.6


class RunStyle(NamedTuple):
    """A run's name, hue, dashes, and how strong its colour is."""

    label: str = ""
    hue: int = 0
    dashes: tuple[int, ...] = ()
    strength: float = 1.0


def run_styles(runs: Sequence[Run]) -> list[RunStyle]:
    """One for each run."""
    labels, kinds = learner_labels(runs), [type(run.learner) for run in runs]
    if not any(_moved(run, runs) for run in runs):
        return [
            RunStyle(label, i % HUES, DASHES[i % len(DASHES)]) for i, label in enumerate(labels)
        ]
    hues, seen, found = (
        {kind: i for i, kind in enumerate(dict.fromkeys(kinds))},
        Counter[type](),
        [],
    )
    for label, kind in zip(labels, kinds, strict=True):
        share = seen[kind] / max(1, kinds.count(kind) - 1)
        found.append(
            RunStyle(
                label,
                hues[kind] % HUES,
                DASHES[seen[kind] % len(DASHES)],
                1.0 - (1.0 - _FAINTEST) * share,
            )
        )
        seen[kind] += 1
    return found


def learner_labels(runs: Sequence[Run]) -> list[str]:
    """The learners' names, with their caution where it moves, numbered where one name comes more
    than once.
    """
    names = [
        (
            f"{_name(run)}, caution {run.learner.fields()['caution']:g}"
            if _moved(run, runs)
            else _name(run)
        )
        for run in runs
    ]
    seen: Counter[str] = Counter()
    labels = []
    for name in names:
        seen[name] += 1
        labels.append(name if names.count(name) == 1 else f"{name} {seen[name]}")
    return labels


def _name(run: Run) -> str:
    return type(run.learner).__name__


def _moved(run: Run, runs: Sequence[Run]) -> bool:
    """Whether its learner was run at several cautions."""
    return (
        len(
            {
                other.learner.fields().get("caution")
                for other in runs
                if type(other.learner) is type(run.learner)
            }
        )
        > 1
    )
