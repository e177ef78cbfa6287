"""The README's Python runs as it stands, top to bottom, and its tables are those of the runs they
show (`make readme` writes them).
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from benchmarks.readme import PROBLEMS, README, block

from tidewolf.evaluation.run import run
from tidewolf.experiments.experiment import DEFAULT_LEARNERS
from tidewolf.experiments.keys import learner_named
from tidewolf.hindsight.best import best_in_hindsight
from tidewolf.problems import named

ROOT = Path(__file__).parent.parent


def test_the_readme_runs() -> None:
    parts = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), flags=re.DOTALL)
    assert len(parts) >= 3
    names: dict[str, object] = {}
    for part in parts:
        exec(compile(part, "README.md", "exec"), names)


def test_the_readme_names_both_commands() -> None:
    text = (ROOT / "README.md").read_text()
    assert "make run" in text
    assert "make test" in text
    assert "make test" in (ROOT / ".ci" / "run").read_text()


@pytest.mark.parametrize("example", PROBLEMS)
def test_the_tables_are_those_of_the_runs(example: str) -> None:
    (shown,) = block(example).findall(README.read_text(encoding="utf-8"))
    problem = named(example)()
    assert shown.startswith(f"{example}: {len(problem):,} rounds, seed 0\n")
    rows = [line.split() for line in shown.splitlines() if "\u00b1" in line]
    assert [row[0] for row in rows] == list(DEFAULT_LEARNERS)
    assert "BanditPrimalDual sees two numbers a round" in shown.replace("\n", " ")
    best = best_in_hindsight(problem.K, problem.stream)
    for name, regret, _, _, violation, calls, _, _ in rows:
        again = run(
            learner_named(name)(problem.K, horizon=len(problem)), problem.stream, comparator=best
        )
        scale = abs(best.upper)
        assert again.regret is not None
        assert abs(again.regret[1] - float(regret)) <= 1e-3 * scale, name
        assert float(violation) == pytest.approx(again.violations.sum(), rel=0.02), name
        assert float(calls) == pytest.approx(again.oracle_calls / len(problem), abs=0.01), name
