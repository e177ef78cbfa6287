"""Cells: a sweep taken apart into runs that know nothing of each other.

    sweep  =  streams x horizons x seeds x learners x knobs

A cell says all there is to say about one run, travels to other processes and machines, and comes back as a row of plain data: the run's
summary, or the sentence that refused it. The row is a function of the cell, of the versions installed and of the processor; only
`seconds` depends on more.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Hashable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, Protocol, TypeAlias

from tidewolf.core.arrays import as_count, as_number
from tidewolf.core.errors import InvalidInput, ShortHorizon, TidewolfError
from tidewolf.evaluation.compare import combinations, hindsight, made
from tidewolf.evaluation.hindsight import Comparator
from tidewolf.evaluation.run import run
from tidewolf.problems import Problem, named

Row: TypeAlias = dict[str, Any]


class Source(Hashable, Protocol):
    """What makes a problem wherever a cell is played: picklable, hashable, and equal only to sources of the same problems."""

    @property
    def name(self) -> str:
        """What the problem is called in results."""

    @property
    def identity(self) -> str:
        """What tells it from every other source."""

    def build(self, rounds: int | None, seed: int) -> Problem:
        """The problem; `rounds=None` means as many as it usually has."""


class BuiltIn(NamedTuple):
    """A built-in problem."""

    name: str

    @property
    def identity(self) -> str:
        return f"built-in {self.name}"

    def build(self, rounds: int | None, seed: int) -> Problem:
        return named(self.name)(rounds=rounds, seed=seed)


class Cell(NamedTuple):
    """One run to be made."""

    source: Source
    rounds: int | None
    """None: as many as the problem usually has"""
    seed: int
    learner: str
    settings: tuple[tuple[str, float], ...] = ()

    def plain(self) -> Row:
        """What it is, as plain data."""
        return {
            "experiment": self.source.name,
            "source": self.source.identity,
            "learner": self.learner,
            "settings": dict(self.settings),
            "seed": self.seed,
            "rounds": self.rounds,
        }


def plan(
    sources: Sequence[Source],
    learners: Sequence[str],
    *,
    horizons: Sequence[int | None] = (None,),
    seeds: Sequence[int] = (0,),
    knobs: Mapping[str, Sequence[float]] | None = None,
) -> tuple[Cell, ...]:
    """The cells of a sweep: every learner at every horizon and seed, and at every combination of the knobs it has.

    A knob that no learner has is refused. Cells on the same stream stand side by side, so that its comparator is computed once.
    """
    known = _known()
    factories = {name: known[name] if name in known else _unknown(name, known) for name in learners}
    rounds = [None if horizon is None else as_count(horizon, "A horizon") for horizon in horizons]
    counted = [as_count(seed, "A seed", least=0) for seed in seeds]
    turned = {name: tuple(dict.fromkeys(as_number(v, f"A {name}") for v in values)) for name, values in (knobs or {}).items()}
    for what, given in {"streams": sources, "learners": learners, "horizons": rounds, "seeds": counted, **turned}.items():
        if not given:
            raise InvalidInput(f"A sweep was given no {what}.")
    settings = {name: [tuple(each.items()) for each in combinations(factory, turned)] for name, factory in factories.items()}
    idle = [name for name in turned if not any(name in dict(each) for several in settings.values() for each in several)]
    if idle:
        raise InvalidInput(f"None of {', '.join(factories)} has a setting called {idle[0]!r}.")
    return tuple(
        dict.fromkeys(
            Cell(source, horizon, seed, name, each)
            for source in sources
            for horizon in rounds
            for seed in counted
            for name, several in settings.items()
            for each in several
        )
    )


def attempt(cell: Cell) -> Row:
    """Play a cell. Whatever is raised becomes the row's `failure`."""
    try:
        row = cell.plain() | _played(cell) | {"failure": ""}
        json.dumps(row, allow_nan=False)
    except TidewolfError as error:
        return failed(cell, str(error))
    except Exception as error:
        return failed(cell, f"{type(error).__name__}: {error}")
    return row


def failed(cell: Cell, sentence: str) -> Row:
    """The row of a cell that came to nothing."""
    return cell.plain() | {"failure": sentence}


def _played(cell: Cell) -> Row:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ShortHorizon)  # a sweep over horizons begins with short ones; `bound_reason` says so too
        problem, best = _venue(cell.source, cell.rounds, cell.seed)
        learner = made(_known()[cell.learner], problem, dict(cell.settings), cell.seed)
        return run(learner, problem.stream, comparator=best).summary()


@lru_cache(maxsize=2)
def _venue(source: Source, rounds: int | None, seed: int) -> tuple[Problem, Comparator]:
    problem = source.build(rounds, seed)
    return problem, hindsight(problem)[0]


def _known() -> dict[str, Any]:
    from tidewolf import learners, rivals

    return {**learners.every(), **rivals.every()}


def _unknown(name: str, known: Mapping[str, object]) -> Any:
    raise InvalidInput(f"There is no learner called {name!r}; there are {', '.join(known)}.")
