"""Grids of jobs: one job is one experiment, one learner with its settings, and one seed.

    run         =  seeds x learners                         each recording is kept
    sweep       =  horizons x seeds x learners x knobs      each row of numbers is kept
    comparison  =  streams x learners x knobs x seeds       the same (compare.py)

A job is independent of all others (play.py plays it) and can be sent to other processes and
machines. It names the files of an experiment, so a worker elsewhere must find them under the same
path.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from itertools import count, product
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeAlias

from tidewolf.core.arrays import LARGEST_COUNT, as_count
from tidewolf.core.errors import InvalidInput
from tidewolf.experiments.choice import Choice
from tidewolf.experiments.experiment import Experiment, Tables, format_table
from tidewolf.experiments.keys import format_value, learner_keys, read_plain
from tidewolf.files import file_of
from tidewolf.methods.base import Learner
from tidewolf.problems import Problem
from tidewolf.problems.data import origin

Row: TypeAlias = dict[str, Any]


class Source(Hashable, Protocol):
    """What makes the problem and the learner of a job, in any process: picklable."""

    @property
    def name(self) -> str:
        """What it is called in results."""

    @property
    def identity(self) -> str:
        """What distinguishes its problems from all others, contents of files included."""

    def problem(self, rounds: int | None, seed: int) -> Problem:
        """The set and the stream; `rounds=None` means as many as there are."""

    def learner(self, entrant: Choice, problem: Problem, seed: int) -> Learner[Any]:
        """A learner made for the problem."""


class Recipe(NamedTuple):
    """An experiment as a source. Its identity is what the user gave: the settings of a generator
    with the version of the generators, or the bytes of files. What is computed from them may differ
    in the last digits from one machine to another, and does not count.
    """

    experiment: Experiment
    identity: str

    @classmethod
    def of(cls, experiment: Experiment, *, read: bool = False) -> Recipe:
        """Files are read once here, unless they were `read` before, so that errors in them are
        reported before anything is played.
        """
        stream, K = experiment.stream, experiment.hard_set
        if isinstance(stream, Tables) and not read:
            experiment.problem(experiment.seeds[0])
        made = None if isinstance(stream, Tables) else origin(stream.name)
        text = json.dumps([made, _contents(stream), _contents(K), format_table(experiment.files)])
        return cls(experiment, hashlib.sha256(text.encode()).hexdigest()[:16])

    @property
    def name(self) -> str:
        return self.experiment.name

    def problem(self, rounds: int | None, seed: int) -> Problem:
        return replace(self.experiment, rounds=rounds).problem(seed)

    def learner(self, entrant: Choice, problem: Problem, seed: int) -> Learner[Any]:
        return self.experiment.learner(entrant, problem, seed)


def _contents(part: Any) -> Any:
    """Plain data with files by their contents, under any path."""
    if isinstance(part, Choice):
        part = (part.name, part.settings)
    elif isinstance(part, Tables):
        part = list(vars(part).items())
    if isinstance(part, tuple | list):
        return [_contents(each) for each in part]
    if isinstance(part, Path) or (
        isinstance(part, str) and Path(part).is_absolute() and file_of(Path(part)).is_file()
    ):
        path = Path(part)
        found = hashlib.sha256(file_of(path).read_bytes()).hexdigest()
        # two sheets of a workbook differ
        return found + path.name.removeprefix(file_of(path).name)
    return part


class Job(NamedTuple):
    """One run to be made."""

    source: Source
    rounds: int | None
    """None: as many as there are"""
    seed: int
    entrant: Choice
    number: int = 0
    """in a run folder, from 1"""

    @property
    def origin(self) -> str:
        """Where its stream comes from, as recordings keep it: the recipe and seed of a generated
        one, the bytes of files.
        """
        return f"{self.source.identity} rounds {self.rounds} seed {self.seed}"

    @property
    def label(self) -> str:
        """The name of its checkpoint in a run folder."""
        return f"{self.number:02d}-{self.entrant.name}-seed-{self.seed}"

    def plain(self) -> Row:
        """The job as plain data."""
        plain = {
            "experiment": self.source.name,
            "source": self.source.identity,
            "learner": self.entrant.name,
            "settings": self.entrant.given,
            "seed": self.seed,
            "rounds": self.rounds,
        }
        row: Row = json.loads(json.dumps(plain))
        return row


def plan_run(experiment: Experiment) -> tuple[tuple[Job, ...], ...]:
    """The jobs of a resolved experiment, grouped by seed."""
    source, numbers = Recipe.of(experiment, read=True), count(1)
    return tuple(
        tuple(
            Job(source, experiment.rounds, seed, entrant, next(numbers))
            for entrant in experiment.entrants()
        )
        for seed in experiment.seeds
    )


def plan_sweep(
    experiment: Experiment,
    *,
    horizons: Sequence[int] = (),
    seeds: Sequence[int] = (),
    knobs: Mapping[str, Sequence[Any]] | None = None,
) -> tuple[Job, ...]:
    """The jobs of a sweep; horizons, seeds and knobs that are not given here are the file's."""
    swept: dict[str, Sequence[Any]] = {**dict(experiment.swept), **(knobs or {})}
    if "caution" in swept:
        experiment = replace(experiment, cautions=())
    own = swept.pop("horizons", (experiment.rounds,))
    if experiment.names_nobody or experiment.as_run:
        problem = experiment.problem(experiment.seeds[0])
        experiment = replace(experiment, learners=learners_as_run(experiment, problem))
    return crossed(
        Recipe.of(experiment),
        experiment.entrants(),
        horizons=horizons or own,
        seeds=seeds or experiment.seeds,
        knobs=swept,
    )


def learners_as_run(experiment: Experiment, problem: Problem) -> tuple[Choice, ...]:
    """The learners of the experiment as `tidewolf run` has them, and those that it leaves out,
    whose rows hold the reason.
    """
    taken = experiment.taken(problem).learners
    names = {choice.name for choice in taken}
    return (*taken, *(choice for choice in experiment.learners if choice.name not in names))


def crossed(
    source: Source,
    entrants: Sequence[Choice],
    *,
    horizons: Sequence[int | None] = (None,),
    seeds: Sequence[int] = (0,),
    knobs: Mapping[str, Sequence[Any]] | None = None,
) -> tuple[Job, ...]:
    """Every learner at every horizon and seed, and at every value of the knobs that it has and does
    not set itself.

    A knob that no learner has is refused. Jobs on the same stream stand side by side, so that its
    comparator is computed once.
    """
    rounds = [None if horizon is None else as_count(horizon, "A horizon") for horizon in horizons]
    counted = [as_count(seed, "A seed", least=0) for seed in seeds]
    knobs = knobs or {}
    lists = {"learners": entrants, "horizons": rounds, "seeds": counted, **knobs}
    for name, values in lists.items():
        if not values:
            raise InvalidInput(f"A sweep needs at least one value of {name}, and none was given.")
    entered = [choice for entrant in entrants for choice in _at_each_value(entrant, knobs)]
    for name in knobs:
        if not any(name in learner_keys(entrant.name) for entrant in entrants):
            everyone = ", ".join(dict.fromkeys(entrant.name for entrant in entrants))
            raise InvalidInput(
                f"No learner of this sweep has a setting called {name!r}; the learners are "
                f"{everyone}."
            )
    return tuple(dict.fromkeys(Job(source, *each) for each in product(rounds, counted, entered)))


def _at_each_value(entrant: Choice, knobs: Mapping[str, Sequence[Any]]) -> list[Choice]:
    """The learner at every combination of the knobs that it has and does not set itself."""
    known = learner_keys(entrant.name)
    tried: dict[str, list[Any]] = {}
    for name in (name for name in knobs if name in known and name not in entrant.given):
        for given in knobs[name]:
            value, what = read_plain(known[name], given), f"{name} of {entrant.name}"
            if value is None:
                raise InvalidInput(f"{what} is {known[name].words}, not {format_value(given)}.")
            if type(value) is int:
                as_count(value, what, least=-LARGEST_COUNT)
            tried.setdefault(name, []).append(value)
    return [Choice.of(entrant.name, {**entrant.given, **at}) for at in combinations(tried)]


def combinations(values: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """Every combination of the values of several settings."""
    return [dict(zip(values, at, strict=True)) for at in product(*values.values())]
