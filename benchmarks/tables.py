"""Tables of docs/benchmarks/index.md that are the same on every machine, or nearly so.

    python -m benchmarks.tables             measures all of them and writes them into the page
    python -m benchmarks.tables calls       one of them
    python -m benchmarks.tables --compare   says where the page differs, and exits 1 where it does

Each stands in a marked block (blocks.py) whose mark names its command.
"""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

if __name__ == "__main__":  # who imports this keeps the threads they have
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from benchmarks import blocks

PAGE = Path(__file__).parent.parent / "docs" / "benchmarks" / "index.md"
STREAMS = ("routing", "abilene", "geant", "uunet", "freeway")
HEADROOM = (1.0, 2.0, 4.0)
NEAR = 0.02
"""How far a number may be from the page's, as a share: other processors round otherwise."""
_NUMBER = re.compile(r"-?\d[\d,]*\.?\d*(?:e-?\d+)?")


def calls() -> str:
    """Oracle calls of the three projections."""
    from benchmarks.calls import measured

    rows = [
        f"| {name} | {paper:.1f} | {one_shot:.1f} | {active:.2f} |"
        for name, (paper, one_shot, active) in measured().items()
    ]
    return _table(("set", "the paper's", "one shot", "active set"), rows)


def streams(names: Sequence[str] = STREAMS) -> str:
    """Mean loss and mean violation of the learners that `tidewolf run` plays, and of re-solving
    with headroom.
    """
    found: dict[str, list[str]] = {}
    for name in names:
        for learner, loss, violation in played(name):
            found.setdefault(learner, []).append(f"{loss:.4g} / {violation:.2g}")
    rows = [f"| {learner} | {' | '.join(cells)} |" for learner, cells in found.items()]
    return _table(("learner", *(f"`{name}`" for name in names)), rows)


def played(name: str) -> Iterator[tuple[str, float, float]]:
    """Each of them on a problem, with its mean loss and violation."""
    from tidewolf.baselines import Resolve
    from tidewolf.evaluation.run import run
    from tidewolf.experiments import Experiment
    from tidewolf.problems import named

    problem = named(name)()
    experiment = Experiment.builtin(name).taken(problem)
    for entrant in experiment.entrants():
        done: Any = run(experiment.learner(entrant, problem, 0), problem.stream)
        yield f"`{entrant.name}`", *_means(done)
    for headroom in HEADROOM:
        done = run(Resolve(problem.K, headroom=headroom), problem.stream)
        yield f"`Resolve`, headroom {headroom:g}", *_means(done)


def _means(done: Any) -> tuple[float, float]:
    return float(done.losses.mean()), float(done.violations.mean())


TABLES: dict[str, Callable[[], str]] = {"calls": calls, "streams": streams}


def agree(shown: str, made: str, near: float = NEAR) -> bool:
    """Whether two tables have the same words, and numbers that are near."""
    if _NUMBER.sub("#", shown) != _NUMBER.sub("#", made):
        return False
    pairs = zip(_NUMBER.findall(shown), _NUMBER.findall(made), strict=True)
    return all(_near(_value(old), _value(new), near) for old, new in pairs)


def _near(old: float, new: float, near: float) -> bool:
    return abs(old - new) <= near * max(abs(old), abs(new))


def _value(text: str) -> float:
    return float(text.replace(",", ""))


def _table(head: Sequence[str], rows: Sequence[str]) -> str:
    return "\n".join([f"| {' | '.join(head)} |", "|---" * len(head) + "|", *rows])


def main(words: Sequence[str] | None = None) -> int:
    """Write the tables, or say which differ from the page."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tables", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(TABLES))
    parser.add_argument("--compare", action="store_true", help="write nothing")
    given = parser.parse_args(words)
    if unknown := set(given.names) - set(TABLES):
        parser.error(f"no table is called {sorted(unknown)[0]!r}; there are {', '.join(TABLES)}")
    differ = False
    for name in given.names or TABLES:
        made, text = TABLES[name](), PAGE.read_text(encoding="utf-8")
        print(f"{name}\n{made}\n", flush=True)
        if given.compare:
            same = agree(blocks.find(text, name) or "", made)
            differ |= not same
            print(f"{name}: {'as the page has it' if same else 'the page has another'}")
        else:
            PAGE.write_text(blocks.replaced(text, name, made), encoding="utf-8")
    return int(differ)


if __name__ == "__main__":
    raise SystemExit(main())
