"""Comparisons of experiments, built-in ones and files of one's own: who keeps limits better at
equal loss, and which caution to choose.

    experiment  ->  learners at every caution, or headroom, and budget they have  ->  cells

The learners are the experiment's. Where it names nobody, an Ensemble is told the season and
re-solves, as `tidewolf run` would have it. A learner that sets its caution itself is played at that
one too, and it is the one that is marked. Rows are kept in a journal: the same call goes on where a
killed one stopped.

    DIR/compare.jsonl                         the journal: every row as soon as it is known
    DIR/comparison.json, comparison.csv       once all have ended
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from tidewolf.core.arrays import as_count, as_number
from tidewolf.core.errors import InvalidInput
from tidewolf.evaluation.comparison import FILES, KNOBS, Comparison, Entry
from tidewolf.experiments.choice import Choice
from tidewolf.experiments.compare import Match, as_several, comparison_of
from tidewolf.experiments.engines import Engine
from tidewolf.experiments.experiment import Experiment
from tidewolf.experiments.keys import learner_keys
from tidewolf.experiments.plan import Cell, Recipe, learners_as_run
from tidewolf.experiments.runner import Stage, kept_cells
from tidewolf.experiments.store import COMPARISON
from tidewolf.problems import Problem

CAUTIONS = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
HEADROOMS = (0.0, 0.5, 1.0, 2.0, 4.0, 8.0)
"""What is swept where nobody says."""


def plan_comparison(
    experiments: Sequence[Experiment],
    *,
    cautions: Sequence[float] | None = None,
    headrooms: Sequence[float] | None = None,
    budgets: Sequence[float] | None = None,
    seeds: Sequence[int] | None = None,
) -> tuple[Match, ...]:
    """Every learner of every experiment at every value of the knobs that it has.

    Values that are given here are all there are; else they are the usual ones, and those that the
    experiment has. Where a seed changes neither stream nor learner, it is not played again.
    """
    requested = {
        "caution": _checked(cautions, "caution", partial(as_number, above=0.0)),
        "headroom": _checked(headrooms, "headroom", partial(as_number, least=0.0)),
        "calls_per_round": _checked(budgets, "budget", partial(as_number, above=0.0)),
    }
    seeded = _checked(seeds, "seed", partial(as_count, least=0))
    for name, count in Counter(experiment.name for experiment in experiments).items():
        if count > 1:
            raise InvalidInput(
                f"Two experiments are called {name!r}; give one of them another name in its file."
            )
    return tuple(
        match
        for experiment in experiments
        for match in _matches(experiment, requested, seeded or experiment.seeds)
    )


def compare_experiments(
    matches: Sequence[Match],
    folder: Path,
    *,
    engine: Engine,
    force: bool = False,
    others: Sequence[str] = (),
    progress: Callable[[Stage], None] | None = None,
) -> Comparison:
    """Play the cells that the folder has no row of yet, and write comparison.json and
    comparison.csv.

    A folder that holds another comparison, or one of `others`, is refused; with `force` it is begun
    anew.
    """
    kind = COMPARISON._replace(results=(*FILES, *others))
    cells = [match.cell for match in matches]
    with kept_cells(cells, folder, kind, engine=engine, force=force, progress=progress) as kept:
        found = comparison_of(matches, kept[0])
        found.save(folder, force=True)
    return found


def _checked(
    given: Sequence[Any] | None, what: str, check: Callable[..., Any]
) -> tuple[Any, ...] | None:
    return None if given is None else as_several(given, what, check)


def _matches(
    experiment: Experiment,
    requested: Mapping[str, tuple[float, ...] | None],
    seeds: tuple[int, ...],
) -> Iterator[Match]:
    distinct = _problems(experiment, seeds)
    learners = learners_as_run(experiment, distinct[0][0])
    source = Recipe.of(replace(experiment, seeds=seeds), read=True)
    for problem, its_seeds in distinct:
        for label, choice in zip(_labels(learners), learners, strict=True):
            known, own = learner_keys(choice.name), _own(experiment, choice)
            for settings in _settings(own, requested, experiment.cautions):
                told = {**own, **settings}
                knob = next((name for name in KNOBS if name in own), None)
                for seed in its_seeds if "seed" in known else its_seeds[:1]:
                    entry = Entry(
                        experiment.name,
                        label,
                        seed,
                        told.get("caution"),
                        told.get("calls_per_round"),
                        headroom=told.get("headroom"),
                        default=knob is not None and told[knob] == own[knob],
                    )
                    entrant = Choice.of(choice.name, {**choice.given, **settings})
                    cell = Cell(source, experiment.rounds, seed, entrant)
                    yield Match(cell, entry, its_seeds[0], len(problem))


def _problems(
    experiment: Experiment, seeds: tuple[int, ...]
) -> list[tuple[Problem, tuple[int, ...]]]:
    """The distinct problems, each with the seeds that give it; what is wrong with one is said
    before anything is played.
    """
    found: list[tuple[Problem, tuple[int, ...]]] = []
    for seed in seeds:
        problem = experiment.problem(seed)
        if found and problem == found[-1][0]:
            found[-1] = found[-1][0], (*found[-1][1], seed)
        else:
            found.append((problem, (seed,)))
    return found


def _labels(learners: Sequence[Choice]) -> list[str]:
    """Names, with the settings in which learners of one name differ beside their knobs."""
    found = []
    for choice in learners:
        same = [each for each in learners if each.name == choice.name]
        differ = [
            f"{key} {' '.join(map(str, value)) if isinstance(value, tuple) else value}"
            for key, value in choice.settings
            if key not in KNOBS and any(each.given.get(key) != value for each in same)
        ]
        found.append(f"{choice.name} ({', '.join(differ)})" if differ else choice.name)
    twice = Counter(found)
    numbers: Counter[str] = Counter()
    for i, label in enumerate(found):
        numbers[label] += 1
        found[i] = f"{label} {numbers[label]}" if twice[label] > 1 else label
    return found


def _own(experiment: Experiment, choice: Choice) -> dict[str, float]:
    """What a learner has of the knobs where nobody turns them."""
    known = learner_keys(choice.name)
    usual = {"caution": experiment.cautions[0]} if experiment.cautions else {}
    return {
        knob: choice.given.get(knob, usual.get(knob, known[knob].default))
        for knob in ("caution", "headroom", "calls_per_round")
        if knob in known
    }


def _settings(
    own: Mapping[str, float],
    requested: Mapping[str, tuple[float, ...] | None],
    cautions: tuple[float, ...],
) -> Iterator[dict[str, float]]:
    """Every combination of the values of the knobs that a learner has."""
    swept = {"caution": (*CAUTIONS, *cautions), "headroom": HEADROOMS}
    combinations: list[dict[str, float]] = [{}]
    for knob, value in own.items():
        values = requested[knob]
        if values is None:
            values = tuple(sorted({*swept[knob], value})) if knob in swept else (value,)
        combinations = [{**given, knob: each} for each in values for given in combinations]
    yield from combinations
