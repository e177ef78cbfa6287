"""Plans: a run, a sweep or a comparison taken apart into cells that know nothing of each other.

    run         =  seeds x learners                         each recording is kept
    sweep       =  horizons x seeds x learners x knobs      each row of numbers is kept
    comparison  =  streams x learners x knobs x seeds       the same

A cell says all there is to say about one run (play.py plays it) and travels to other processes and
machines. A cell names the files of an experiment, so a worker elsewhere must see them under the
same path.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from itertools import product
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
    """Where a cell's problem and learner come from, wherever it is played: picklable."""

    @property
    def name(self) -> str:
        """What it is called in results."""

    @property
    def identity(self) -> str:
        """What tells its problems from all others, contents of files included."""

    def problem(self, rounds: int | None, seed: int) -> Problem:
        """The set and the stream; `rounds=None` means as many as there are."""

    def learner(self, entrant: Choice, problem: Problem, seed: int) -> Learner[Any]:
        """An entrant made for the problem."""


class Recipe(NamedTuple):
    """An experiment as a source. Its identity is what the user gave: the settings of a generator
    with the version of the generators, or the bytes of files. What is computed from them may differ
    in the last digits from one machine to another, and does not count.
    """

    experiment: Experiment
    identity: str

    @classmethod
    def of(cls, experiment: Experiment, *, read: bool = False) -> Recipe:
        """Files are read once here, unless they were `read` before, so that what is wrong with them
        is said before anything is played.
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


class Cell(NamedTuple):
    """One run to be made."""

    source: Source
    rounds: int | None
    """None: as many as there are"""
    seed: int
    entrant: Choice

    @property
    def origin(self) -> str:
        """Where its stream comes from, as recordings keep it: the recipe and seed of a generated
        one, the bytes of files.
        """
        return f"{self.source.identity} rounds {self.rounds} seed {self.seed}"

    def plain(self) -> Row:
        """What it is, as plain data."""
        row: Row = json.loads(
            json.dumps(
                {
                    "experiment": self.source.name,
                    "source": self.source.identity,
                    "learner": self.entrant.name,
                    "settings": self.entrant.given,
                    "seed": self.seed,
                    "rounds": self.rounds,
                }
            )
        )
        return row


class PlannedRun(NamedTuple):
    """One run of a run folder."""

    number: int
    """from 1"""
    cell: Cell

    @property
    def entrant(self) -> Choice:
        return self.cell.entrant

    @property
    def seed(self) -> int:
        return self.cell.seed

    @property
    def label(self) -> str:
        """What its checkpoint is called."""
        return f"{self.number:02d}-{self.entrant.name}-seed-{self.seed}"


def plan_run(experiment: Experiment) -> tuple[tuple[PlannedRun, ...], ...]:
    """The runs of a resolved experiment, together those of one seed."""
    source = Recipe.of(experiment, read=True)
    entrants = experiment.entrants()
    return tuple(
        tuple(
            PlannedRun(i * len(entrants) + j, Cell(source, experiment.rounds, seed, entrant))
            for j, entrant in enumerate(entrants, start=1)
        )
        for i, seed in enumerate(experiment.seeds)
    )


def plan_sweep(
    experiment: Experiment,
    *,
    horizons: Sequence[int] = (),
    seeds: Sequence[int] = (),
    knobs: Mapping[str, Sequence[Any]] | None = None,
) -> tuple[Cell, ...]:
    """The cells of a sweep; horizons, seeds and knobs are the file's own where they are not given
    here.
    """
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
    """Those of the experiment as `tidewolf run` has them, and those that it leaves out, whose cells
    say why.
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
) -> tuple[Cell, ...]:
    """Every entrant at every horizon and seed, and at every value of the knobs that it has and does
    not set itself.

    A knob that nobody has is refused. Cells on the same stream stand side by side, so that its
    comparator is computed once.
    """
    rounds = [None if horizon is None else as_count(horizon, "A horizon") for horizon in horizons]
    counted = [as_count(seed, "A seed", least=0) for seed in seeds]
    for what, given in {
        "learners": entrants,
        "horizons": rounds,
        "seeds": counted,
        **(knobs or {}),
    }.items():
        if not given:
            raise InvalidInput(f"A sweep was given no {what}.")
    entered = [choice for entrant in entrants for choice in _at_each_value(entrant, knobs or {})]
    for name in knobs or {}:
        if not any(name in learner_keys(entrant.name) for entrant in entrants):
            everyone = ", ".join(dict.fromkeys(entrant.name for entrant in entrants))
            raise InvalidInput(
                f"No learner of this sweep has a setting called {name!r}; the learners are "
                f"{everyone}."
            )
    return tuple(dict.fromkeys(Cell(source, *each) for each in product(rounds, counted, entered)))


def _at_each_value(entrant: Choice, knobs: Mapping[str, Sequence[Any]]) -> list[Choice]:
    """The entrant at every combination of the knobs that are its to turn."""
    known = learner_keys(entrant.name)
    found = [entrant.given]
    for name, values in knobs.items():
        if name in known and name not in entrant.given:
            read = {value: read_plain(known[name], value) for value in values}
            for value, kept in read.items():
                if kept is None:
                    raise InvalidInput(
                        f"{name} of {entrant.name} is {known[name].words}, not "
                        f"{format_value(value)}."
                    )
                if type(kept) is int:
                    as_count(kept, f"{name} of {entrant.name}", least=-LARGEST_COUNT)
            found = [{**given, name: kept} for given in found for kept in read.values()]
    return [Choice.of(entrant.name, given) for given in found]


def _contents(part: Any) -> Any:
    """Plain data with files by their contents, wherever they lie."""
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
        # a sheet of a book is not its neighbour
        return found + path.name.removeprefix(file_of(path).name)
    return part
