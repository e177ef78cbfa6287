"""A tournament: learners against each other on several streams, as caution, budget and seed move.

For each stream and seed one certified comparator; for each learner, caution, budget and seed one
run against it. A learner takes part in what it has a setting for: `caution`, `calls_per_round`
(the budget), `seed`, `horizon`. A run that is refused is an entry with the sentence that refused
it, and no other suffers.

It is a plan of cells like any other (plan.py), whose problems and learners are those of this
process.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from inspect import Parameter, signature
from typing import Any, NamedTuple, TypeAlias, final

from tidewolf.core.arguments import as_callback, as_items, shown
from tidewolf.core.arrays import as_count, as_number
from tidewolf.core.batch import Stream
from tidewolf.core.errors import InvalidInput, WrongType
from tidewolf.evaluation.comparison import Comparison, Entry, Venue
from tidewolf.evaluation.metrics import sweep_values
from tidewolf.evaluation.recording import RunProgress
from tidewolf.experiments.choice import Choice
from tidewolf.experiments.engines import in_process
from tidewolf.experiments.plan import Cell, Row
from tidewolf.experiments.runner import play_cells
from tidewolf.methods.base import Learner
from tidewolf.problems.base import Problem
from tidewolf.sets.base import ConvexSet

Factory: TypeAlias = Callable[..., Learner[Any]]
StreamSource: TypeAlias = Problem | tuple[ConvexSet, Stream] | Callable[..., Problem]


_BY_ROUND = (
    "loss_p99",
    "loss_worst",
    "violation_p99",
    "violation_worst",
    "broken",
    "churn_p99",
    "churn_worst",
)
"""What an entry has under the names that sweeps have it under."""


class Step(NamedTuple):
    """Which run is under way."""

    stream: str
    learner: str
    seed: int
    caution: float | None
    budget: float | None
    number: int
    """of the run, from 1"""
    runs: int
    """in all"""
    headroom: float | None = None


def compare(
    learners: Sequence[Factory] | Mapping[str, Factory],
    streams: StreamSource | Sequence[StreamSource] | Mapping[str, StreamSource],
    *,
    cautions: Sequence[float] | None = None,
    budgets: Sequence[float] | None = (1.0,),
    seeds: Sequence[int] = (0,),
    progress: Callable[[Step, RunProgress], None] | None = None,
) -> Comparison:
    """Play every learner on every stream, at every caution, budget and seed it has a setting for.

    Where a seed changes neither stream nor learner, it is not played again. A run that is refused
    is an entry with the sentence that refused it.

    Parameters
    ----------
    learners : sequence or mapping
        Classes, or functions of (K, horizon, ...); by name where they are a mapping.
    streams : problem, sequence or mapping
        Problems, functions of a seed that make one, or, in a mapping, pairs (K, stream).
    cautions : sequence of float, default None
        The cautions to try; None: each learner's own default.
    budgets : sequence of float, default (1.0,)
        The oracle calls allowed a round; None: each learner's own default.
    seeds : sequence of int, default (0,)
        The seeds of streams and learners that have one.
    progress : callable, default None
        Is called a few times a second with which run is under way, and how far it is.

    Returns
    -------
    Comparison
        Every run, the frontiers as caution moves, and how learners stand against a rival.

    Raises
    ------
    InvalidInput
        Where there is nothing to play, or two have one name.
    WrongType
        Where a learner or a stream is something else.

    Examples
    --------
    >>> K = tw.sets.Simplex(2)
    >>> losses = tw.functions.Linear([[1.0, 2.0]] * 4)
    >>> stream = tw.Stream(losses, tw.functions.Capacity([[0.75, 1.0]] * 4))
    >>> found = tw.compare(
    ...     [tw.LyapunovDescent, tw.baselines.SinhaVaze],
    ...     {"capacities": (K, stream)},
    ...     cautions=[1, 10],
    ... )
    >>> found.learners, found.baseline, len(found.entries)
    (('LyapunovDescent', 'SinhaVaze'), 'SinhaVaze', 4)
    """
    as_callback(progress, "progress, which is told how far each run is,")
    factories = _factories(learners)
    problems = _problems(streams, as_several(seeds, "seed", partial(as_count, least=0)))
    knobs = {
        "caution": (
            None
            if cautions is None
            else as_several(cautions, "caution", partial(as_number, above=0.0))
        ),
        "calls_per_round": (
            None
            if budgets is None
            else as_several(budgets, "budget", partial(as_number, above=0.0))
        ),
    }
    matches = [
        match
        for place, problem, its_seeds in problems
        for match in _matches(place, problem, its_seeds, factories, knobs)
    ]

    def follow(number: int, moment: RunProgress) -> None:
        if progress is not None:
            progress(step_of(matches, number), moment)

    rows = play_cells([match.cell for match in matches], in_process(follow))
    return comparison_of(matches, rows)


class Match(NamedTuple):
    """A cell of a comparison, and what its entry says before it is played."""

    cell: Cell
    entry: Entry
    venue_seed: int
    """the first of the seeds that give its stream"""
    rounds: int


def step_of(matches: Sequence[Match], number: int) -> Step:
    """Which run is under way, given the number of its cell."""
    (_, _, seed, entrant), entry = matches[number][:2]
    knob, calls, headroom = map(entrant.given.get, ("caution", "calls_per_round", "headroom"))
    return Step(entry.stream, entry.learner, seed, knob, calls, number + 1, len(matches), headroom)


def comparison_of(matches: Sequence[Match], rows: Sequence[Row]) -> Comparison:
    """What the rows of a comparison's cells came to."""
    venues: dict[tuple[str, int], Venue] = {}
    for match, row in zip(matches, rows, strict=True):
        place = match.entry.stream, match.venue_seed
        if row["comparator"] is not None:
            venues[place] = _venue(*place, row["comparator"])
        elif place not in venues:  # nobody came so far as to compute it
            reason = "No run came to its end, so the best point in hindsight is not known."
            venues[place] = Venue(*place, match.rounds, -math.inf, math.inf, None, reason)
    return Comparison(
        tuple(venues.values()),
        tuple(_entry(match.entry, row) for match, row in zip(matches, rows, strict=True)),
    )


@final
@dataclass(frozen=True, eq=False)
class InProcess:
    """A problem of this process, and functions that make learners for it, as a source of cells."""

    name: str
    made: Problem
    factories: Mapping[str, Factory]
    identity = ""

    def problem(self, rounds: int | None, seed: int) -> Problem:
        return self.made

    def learner(self, entrant: Choice, problem: Problem, seed: int) -> Learner[Any]:
        factory = self.factories[entrant.name]
        known = signature(factory).parameters
        more = {"horizon": len(problem), "seed": seed}
        given = {name: value for name, value in more.items() if name in known}
        learner = factory(problem.K, **entrant.given, **given)
        if not isinstance(learner, Learner):
            raise WrongType(f"{entrant.name} made {shown(learner)} where a learner is needed.")
        return learner


def _matches(
    place: str,
    problem: Problem,
    seeds: tuple[int, ...],
    factories: Mapping[str, Factory],
    knobs: Mapping[str, tuple[float, ...] | None],
) -> Iterator[Match]:
    """Every learner at every setting that it has, on one problem."""
    source = InProcess(place, problem, factories)
    for name, factory in factories.items():
        known = signature(factory).parameters
        for settings in _settings(factory, knobs):
            caution, budget, headroom = (
                settings.get(knob, _default(known, knob))
                for knob in ("caution", "calls_per_round", "headroom")
            )
            usual = caution == _default(known, "caution")
            for seed in seeds if "seed" in known else seeds[:1]:
                entry = Entry(place, name, seed, caution, budget, headroom=headroom, default=usual)
                cell = Cell(source, None, seed, Choice.of(name, settings))
                yield Match(cell, entry, seeds[0], len(problem))


def _factories(learners: Sequence[Factory] | Mapping[str, Factory]) -> dict[str, Factory]:
    if not isinstance(learners, Mapping):
        named = [
            (getattr(factory, "__name__", None), factory)
            for factory in _listed(learners, "learners", "[LyapunovDescent, SinhaVaze]")
        ]
        if any(name is None for name, _ in named) or len({name for name, _ in named}) < len(named):
            raise InvalidInput(
                "Learners without names of their own are given as a mapping, such as {'careful': "
                "partial(...)}."
            )
        learners = dict(named)  # type: ignore[arg-type]
    for name, factory in learners.items():
        if not callable(factory) or not _has_signature(factory):
            raise WrongType(
                f"{name} is to be a learner class such as LyapunovDescent, or a function of (K, "
                f"horizon), not {shown(factory)}."
            )
    if not learners:
        raise InvalidInput("compare was given no learners.")
    return dict(learners)


def _problems(streams: Any, seeds: tuple[int, ...]) -> list[tuple[str, Problem, tuple[int, ...]]]:
    """The distinct problems of every stream, each with the seeds that give it: all are made before
    the first run.
    """
    if isinstance(streams, Mapping):
        named = list(streams.items())
    else:
        named = [
            (None, source)
            for source in (
                [streams]
                if isinstance(streams, Problem)
                else _listed(streams, "streams", "[routing]")
            )
        ]
    found: list[tuple[str, Problem, tuple[int, ...]]] = []
    for name, source in named:
        distinct: list[tuple[Problem, tuple[int, ...]]] = []
        for seed in seeds:
            problem = _problem(name, source, seed)
            if distinct and problem == distinct[-1][0]:
                distinct[-1] = distinct[-1][0], (*distinct[-1][1], seed)
            else:
                distinct.append((problem, (seed,)))
        place = distinct[0][0].name if name is None else name
        if place in (known for known, _, _ in found):
            raise InvalidInput(
                f"Two streams are called {place!r}; give them as a mapping from names."
            )
        found += [(place, *each) for each in distinct]
    if not found:
        raise InvalidInput("compare was given no streams.")
    return found


def _listed(given: Any, what: str, such: str) -> tuple[Any, ...]:
    """One thing to call, or a list of them."""
    return (given,) if callable(given) else as_items(given, f"The {what} of compare", such)


def _has_signature(factory: Any) -> bool:
    try:
        signature(factory)
    except (TypeError, ValueError):  # int and its like have none
        return False
    return True


def _takes_seed(source: Any) -> bool:
    try:
        signature(source).bind(seed=0)
    except (TypeError, ValueError):
        return False
    return True


def _is_pair(source: object) -> bool:
    return isinstance(source, tuple) and len(source) == 2 and isinstance(source[1], Stream)


def _problem(name: str | None, source: Any, seed: int) -> Problem:
    problem = source
    if callable(source) and not isinstance(source, Problem):
        if not _takes_seed(source):
            raise WrongType(
                "A stream that is to be made is a function of a seed, such as problems.routing, "
                f"not {shown(source)}."
            )
        problem = source(seed=seed)
    if _is_pair(problem):
        if name is None:
            raise InvalidInput(
                "A pair (K, stream) has no name of its own: give streams as a mapping, such as "
                "{'mine': (K, stream)}."
            )
        problem = Problem(name, problem[0], problem[1], name)
    if not isinstance(problem, Problem):
        raise WrongType(
            "A stream is a Problem, a function of a seed that makes one, or a pair (K, Stream), "
            f"not {shown(problem)}."
        )
    if len(problem) == 0:
        raise InvalidInput(f"The stream {problem.name} has no rounds.")
    return problem


def as_several(numbers: Any, what: str, checked: Callable[..., Any]) -> tuple[Any, ...]:
    """Several numbers to try, none twice."""
    found = tuple(
        dict.fromkeys(
            checked(number, f"A {what}") for number in as_items(numbers, f"The {what}s", "[1.0]")
        )
    )
    if not found:
        raise InvalidInput(f"compare was given no {what}s.")
    return found


def _settings(
    factory: Factory, knobs: Mapping[str, tuple[float, ...] | None]
) -> Iterator[dict[str, float]]:
    """Every combination of the knobs that the learner has."""
    combinations: list[dict[str, float]] = [{}]
    for name, values in knobs.items():
        if values is not None and name in signature(factory).parameters:
            combinations = [{**given, name: value} for value in values for given in combinations]
    yield from combinations


def _default(known: Mapping[str, Parameter], name: str) -> Any:
    return (
        known[name].default
        if name in known and known[name].default is not Parameter.empty
        else None
    )


def _venue(place: str, seed: int, known: Row) -> Venue:
    rounds, feasible = known["rounds"], known["feasible"]
    lower = -math.inf if feasible is not False else math.inf
    return Venue(
        place,
        seed,
        rounds,
        lower if known["lower"] is None else known["lower"] / rounds,
        math.inf if known["upper"] is None else known["upper"] / rounds,
        feasible,
        known["reason"],
    )


def _entry(entry: Entry, row: Row) -> Entry:
    """An entry with what was measured, a round."""
    entry = entry._replace(sees=row["sees"], failure=row["failure"])
    if row["failure"]:
        return entry
    rounds, told = row["rounds"], sweep_values(row)
    regret = row["regret"] or {"lower": None, "upper": None}
    lower, upper = regret["lower"], regret["upper"]
    return entry._replace(
        loss=told["loss_mean"],
        regret=(
            None
            if lower is upper is None
            else (
                -math.inf if lower is None else lower / rounds,
                math.inf if upper is None else upper / rounds,
            )
        ),
        violation=told["violation_mean"],
        calls=told["calls_per_round"],
        seconds=row["seconds"] / rounds,
        infeasibility=row["max_infeasibility"],
        certificate=told["certificate"],
        solves=told["solves_per_round"],
        churn=told["churn_mean"],
        **{name: told[name] for name in _BY_ROUND},
    )
