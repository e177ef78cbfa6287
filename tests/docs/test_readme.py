"""The README's links lead somewhere, and the tables of the first run are those of the
runs they show (`make readme` writes them).
"""

import itertools
import re
from functools import cache
from pathlib import Path

import pytest
from benchmarks.readme import PAGE, PROBLEMS, block

import tidewolf as tw
from tidewolf.experiments.experiment import BUILTIN_LEARNERS

ROOT = Path(__file__).parents[2]


def test_the_readme_leads_somewhere():
    text = (ROOT / "README.md").read_text()
    places = re.findall(r"\]\(([^)]+)\)", text) + re.findall(r"`((?:docs|examples)/[^`]*)`", text)
    assert len(places) > 20
    assert "make run" in text
    assert "make test" in text
    assert not [place for place in places if not (ROOT / place).exists()]


def shown(example):
    """The run of a problem as the page has it."""
    (found,) = block(example).findall(PAGE.read_text(encoding="utf-8"))
    return found


def totals(example):
    """The cells of the first table of a run."""
    lines = iter(shown(example).splitlines())
    table = itertools.dropwhile(lambda line: not line.startswith("\u2500"), lines)
    return [line.split() for line in itertools.takewhile(bool, itertools.islice(table, 1, None))]


@cache
def built(example):
    problem = tw.problems.named(example)()
    return problem, tw.best_in_hindsight(problem.K, problem.stream)


LONG = pytest.param("Ensemble", marks=pytest.mark.soak)


@pytest.mark.parametrize("name", [LONG, *BUILTIN_LEARNERS[1:]])
@pytest.mark.parametrize("example", PROBLEMS)
def test_the_tables_are_those_of_the_runs(example, name):
    problem, best = built(example)
    text = shown(example)
    assert f"\n\n{example}: {len(problem):,} rounds, seed 0\n" in text
    left_out = set(re.findall(r"^(\w+): left out", text, flags=re.MULTILINE))
    assert {row[0] for row in totals(example)} == set(BUILTIN_LEARNERS) - left_out
    experiment = tw.experiments.Experiment.builtin(example).taken(problem)
    entrants = [each for each in experiment.entrants() if each.name == name]
    rows = [row for row in totals(example) if row[0] == name]
    for entrant, row in zip(entrants, rows, strict=True):
        numbers = (float(cell.replace(",", "")) for cell in row[1:7])
        loss, mean, churn, regret, violation, calls = numbers
        again = tw.run(experiment.learner(entrant, problem, 0), problem.stream, comparator=best)
        assert again.regret is not None
        # On matrices rounding grows until, after 300 rounds, decisions of two processors differ by
        # 1e-3: kernels of OpenBLAS for four of them change totals by half of what is allowed here.
        room = (0.01 if example == "sdp" else 0.001) * abs(best.upper)
        assert loss == pytest.approx(again.losses.sum(), abs=room)
        assert mean == pytest.approx(again.losses.mean(), abs=room / len(problem))
        assert churn == pytest.approx(again.churn.mean(), rel=0.02)
        assert regret == pytest.approx(again.regret[1], abs=room)
        assert violation == pytest.approx(again.violations.sum(), rel=0.05)
        often = (
            0.06 if example == "sdp" else 0.02
        )  # distances decide on calls: rounding grows here too
        assert calls == pytest.approx(again.oracle_calls / len(problem), abs=often)
