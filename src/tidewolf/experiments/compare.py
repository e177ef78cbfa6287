"""Comparisons: learners on several streams, as caution, headroom, budget and seed move.

    streams x learners x knobs x seeds  ->  jobs (jobs.py)  ->  rows  ->  Comparison

For each stream and seed one certified comparator; for each learner and setting one run against it.
A learner takes part in what it has a setting for: `caution`, `headroom`, `calls_per_round` (the
budget), `seed`, `horizon`. A run that is refused is an entry with the reason, and does not affect
the others.

`compare` plays classes and streams of this process. `plan_comparison` and `compare_experiments`
play experiments, built-in ones and files, and keep their rows in a folder: the same call resumes
after a kill (jobs.py). The learners are the experiment's. If it names none, they are those of
`tidewolf run`. A learner that sets its caution itself is also played at that one, which is marked.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from inspect import signature
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from tidewolf.core.arguments import as_callback, as_items, shown
from tidewolf.core.arrays import as_count, as_number
from tidewolf.core.batch import Stream
from tidewolf.core.errors import InvalidInput, TidewolfError, WrongType
from tidewolf.evaluation import metrics, recording
from tidewolf.evaluation.comparison import FILES, KNOBS, Comparison, Entry, Venue
from tidewolf.experiments import jobs
from tidewolf.experiments.experiment import Experiment
from tidewolf.experiments.jobs import COMPARISON, InProcess, Job, Recipe, Row
from tidewolf.experiments.keys import Choice, learner_keys
from tidewolf.functions.support import warn_of_negative_capacities
from tidewolf.methods.base import Learner
from tidewolf.problems.base import Problem
from tidewolf.sets.base import ConvexSet

Factory: TypeAlias = Callable[..., Learner[Any]]
StreamSource: TypeAlias = Problem | tuple[ConvexSet, Stream] | Callable[..., Problem]
# Problems, each with the seeds that give it.
Problems: TypeAlias = list[tuple[Problem, tuple[int, ...]]]
Grid: TypeAlias = Mapping[str, tuple[Any, ...] | None]
# Labels, learners, and the defaults of the settings that each has.
Entrants: TypeAlias = Sequence[tuple[str, Choice, Mapping[str, Any]]]

CAUTIONS = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
# The values that a comparison of experiments takes by default.
HEADROOMS = (0.0, 0.5, 1.0, 2.0, 4.0, 8.0)
_SETTINGS = ("caution", "headroom", "calls_per_round")
# What an entry and a row of a sweep have under the same name.
_BY_ROUND = ("broken", *map("_".join, product(("loss", "violation", "churn"), ("p99", "worst"))))
_UNKNOWN: Row = {"reason": "No run reached its end, so the best point in hindsight is not known."}


class Step(NamedTuple):
    """Which run is under way."""

    # its stream, learner, seed and settings; nothing is measured yet
    entry: Entry
    # of the run, from 1
    number: int
    # in all
    runs: int


class Match(NamedTuple):
    """A job of a comparison, and its entry before it is played; `venue_seed` is the first of the
    seeds that give its stream.
    """

    job: Job
    entry: Entry
    venue_seed: int
    rounds: int


def compare(
    learners: Sequence[Factory] | Mapping[str, Factory],
    streams: StreamSource | Sequence[StreamSource] | Mapping[str, StreamSource],
    *,
    cautions: Sequence[float] | None = None,
    budgets: Sequence[float] | None = (1.0,),
    seeds: Sequence[int] = (0,),
    progress: Callable[[Step, recording.RunProgress], None] | None = None,
) -> Comparison:
    """Run every learner on every stream, for each caution, call budget and seed.

    Seeds that change neither stream nor learner are run once. A failed run is recorded with its
    reason.

    Parameters
    ----------
    learners : sequence or mapping
        Classes, or functions of (K, horizon, ...); by name if they are a mapping.
    streams : problem, sequence or mapping
        Problems, functions of a seed that make one, or, in a mapping, pairs (K, stream).
    cautions : sequence of float, default None
        The cautions to try; None: each learner's own default.
    budgets : sequence of float, default (1.0,)
        The oracle calls allowed per round; None: each learner's own default.
    seeds : sequence of int, default (0,)
        The seeds of streams and learners that have one.
    progress : callable, default None
        Called a few times per second with which run is under way, and how far it is.

    Returns
    -------
    Comparison
        Every run, the frontiers as caution moves, and how learners compare with a baseline.

    Raises
    ------
    InvalidInput
        If there is nothing to play, or two streams have the same name.
    WrongType
        If a learner or a stream is something else.

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
    as_callback(progress, "progress, which is called with how far each run is,")
    grid = _grid(cautions, None, budgets)
    factories = _factories(learners)
    entrants = [(name, Choice(name), _defaults(make) or {}) for name, make in factories.items()]
    all_seeds = _numbers(() if seeds is None else seeds, "seed", partial(as_count, least=0)) or ()
    matches: list[Match] = []
    for name, source in _named(streams):
        problems = _distinct(partial(_problem, name, source), all_seeds)
        place = problems[0][0].name if name is None else name
        _require_new(place, matches, "streams", "give streams as a mapping")
        for each in problems:
            warn_of_negative_capacities(each[0].K, each[0].stream.constraints, set())
            matches += _matches(InProcess(place, each[0], factories), None, [each], entrants, grid)
    if not matches:
        raise InvalidInput("compare needs at least one stream, and none was given.")
    player, rows = jobs.Player(), list[Row]()
    for number, match in enumerate(matches, start=1):
        step = Step(match.entry, number, len(matches))
        moved = None if progress is None else partial(progress, step)
        rows.append(player.row(match.job, moved=moved, refused=TidewolfError))
    return _comparison(matches, rows)


def plan_comparison(
    experiments: Sequence[Experiment],
    *,
    cautions: Sequence[float] | None = None,
    headrooms: Sequence[float] | None = None,
    budgets: Sequence[float] | None = None,
    seeds: Sequence[int] | None = None,
) -> tuple[Match, ...]:
    """Every learner of every experiment at every value of the knobs that it has.

    Values that are given here replace the usual ones and those of the experiment. A seed that
    changes neither stream nor learner is not played again.
    """
    grid, matches = _grid(cautions, headrooms, budgets), list[Match]()
    all_seeds = _numbers(seeds, "seed", partial(as_count, least=0))
    for experiment in experiments:
        _require_new(experiment.name, matches, "experiments", "rename one of them in its file")
        problems = _distinct(experiment.problem, all_seeds or experiment.seeds)
        learners = jobs.learners_as_run(experiment, problems[0][0])
        entrants = []
        for label, choice in zip(_labels(learners), learners, strict=True):
            known = {key: each.default for key, each in learner_keys(choice.name).items()}
            if experiment.cautions and "caution" in known:
                known["caution"] = experiment.cautions[0]
            entrants.append((label, choice, known))
        usual = {"caution": (*CAUTIONS, *experiment.cautions), "headroom": HEADROOMS}
        source, rounds = Recipe.of(experiment), experiment.rounds
        matches += _matches(source, rounds, problems, entrants, grid, usual)
    return tuple(matches)


def _require_new(name: str, matches: Sequence[Match], what: str, cure: str) -> None:
    if any(match.entry.stream == name for match in matches):
        raise InvalidInput(f"Two {what} are called {name!r}; {cure}.")


def compare_experiments(
    matches: Sequence[Match], folder: Path, *, others: Sequence[str] = (), **how: Any
) -> Comparison:
    """Play the jobs that have no row in the folder yet, and write comparison.json and
    comparison.csv; `how` is that of `play_jobs`.

    A folder that holds another comparison, or one of the files `others`, is refused; with `force`
    it is begun again.
    """

    def write(rows: Sequence[Row]) -> Comparison:
        found = _comparison(matches, rows)
        found.save(folder, force=True)
        return found

    kind = COMPARISON._replace(results=(*FILES, *others))
    return jobs.play_jobs([match.job for match in matches], folder, kind, write, **how)


def _matches(
    source: Recipe | InProcess,
    rounds: int | None,
    problems: Problems,
    entrants: Entrants,
    grid: Grid,
    usual: Mapping[str, Sequence[float]] | None = None,
) -> Iterator[Match]:
    """Every learner on every problem, at every combination of values of its knobs: those of the
    grid. Knobs without any stay at their own, or, if there are `usual` values, take those too.
    """
    for (problem, seeds), (label, choice, known) in product(problems, entrants):
        own = {knob: choice.given.get(knob, known[knob]) for knob in _SETTINGS if knob in known}
        tried: dict[str, tuple[Any, ...]] = {}
        for name, at in own.items():
            if values := grid[name]:
                tried[name] = values
            elif usual is not None:
                tried[name] = tuple(sorted({*usual.get(name, ()), at}))
        knob = next((name for name in KNOBS if name in own), None)
        for settings in jobs.combinations(tried):
            at = {**dict.fromkeys(_SETTINGS), **own, **settings}
            default = knob is not None and at[knob] == own[knob]
            given = {name: value for name, value in settings.items() if value is not None}
            entrant = Choice.of(choice.name, choice.given | given)
            for seed in seeds if "seed" in known else seeds[:1]:
                entry = Entry(source.name, label, seed, at["caution"], at["calls_per_round"])
                entry = entry._replace(headroom=at["headroom"], default=default)
                yield Match(Job(source, rounds, seed, entrant), entry, seeds[0], len(problem))


def _distinct(make: Callable[[int], Problem], seeds: Sequence[int]) -> Problems:
    """The distinct problems, each with the seeds that give it; an error in one is reported before
    anything is played.
    """
    found: Problems = []
    for seed in seeds:
        problem = make(seed)
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
    return [
        f"{label} {found[: i + 1].count(label)}" if found.count(label) > 1 else label
        for i, label in enumerate(found)
    ]


def _factories(learners: Sequence[Factory] | Mapping[str, Factory]) -> dict[str, Factory]:
    if not isinstance(learners, Mapping):
        such = "[LyapunovDescent, SinhaVaze]"
        several = [learners] if callable(learners) else as_items(learners, "The learners", such)
        learners = {getattr(factory, "__name__", ""): factory for factory in several}
        if "" in learners or len(learners) < len(several):
            raise InvalidInput("Learners without a name of their own are given as a mapping.")
    for name, factory in learners.items():
        if _defaults(factory) is None:
            such = "a learner class such as LyapunovDescent, or a function of (K, horizon)"
            raise WrongType(f"{name} must be {such}, not {shown(factory)}.")
    if not learners:
        raise InvalidInput("compare needs at least one learner, and none was given.")
    return dict(learners)


def _defaults(function: Any) -> dict[str, Any] | None:
    """What a function takes, with defaults; None if that cannot be found out, as for int."""
    try:
        found = signature(function).parameters.values()
    except (TypeError, ValueError):
        return None
    return {each.name: None if each.default is each.empty else each.default for each in found}


def _named(streams: Any) -> list[tuple[str | None, Any]]:
    if isinstance(streams, Mapping):
        return list(streams.items())
    if isinstance(streams, Problem) or callable(streams):
        return [(None, streams)]
    return [(None, each) for each in as_items(streams, "The streams of compare", "[routing]")]


def _problem(name: str | None, source: Any, seed: int) -> Problem:
    problem = source
    if callable(source) and not isinstance(source, Problem) and "seed" in (_defaults(source) or ()):
        problem = source(seed=seed)
    if name is not None and isinstance(problem, tuple) and len(problem) == 2:
        problem = Problem(name, problem[0], problem[1], name)
    if not isinstance(problem, Problem):
        such = "a Problem, a function of a seed that makes one, or in a mapping (K, stream)"
        raise WrongType(f"A stream is {such}, not {shown(problem)}.")
    if len(problem) == 0:
        raise InvalidInput(f"The stream {problem.name} has no rounds.")
    return problem


def _grid(cautions: Any, headrooms: Any, budgets: Any) -> Grid:
    return {
        "caution": _numbers(cautions, "caution", partial(as_number, above=0.0)),
        "headroom": _numbers(headrooms, "headroom", partial(as_number, least=0.0)),
        "calls_per_round": _numbers(budgets, "budget", partial(as_number, above=0.0)),
    }


def _numbers(given: Any, what: str, check: Callable[[Any, str], Any]) -> tuple[Any, ...] | None:
    if given is None:
        return None
    items = as_items(given, f"The {what}s", "[1.0]")
    if not items:
        raise InvalidInput(f"compare needs at least one {what}, and none was given.")
    return tuple(dict.fromkeys(check(number, f"A {what}") for number in items))


def _comparison(matches: Sequence[Match], rows: Sequence[Row]) -> Comparison:
    venues: dict[tuple[str, int], Venue] = {}
    entries = []
    for match, row in zip(matches, rows, strict=True):
        place, known = (match.entry.stream, match.venue_seed), row["comparator"] or _UNKNOWN
        if row["comparator"] is not None or place not in venues:
            feasible, ends = known.get("feasible"), _per_round(known, match.rounds)
            ends = (math.inf, math.inf) if feasible is False else ends
            venues[place] = Venue(*place, match.rounds, *ends, feasible, known["reason"])
        entries.append(_entry(match.entry, row))
    return Comparison(tuple(venues.values()), tuple(entries))


def _per_round(ends: Mapping[str, Any], rounds: int) -> tuple[float, float]:
    """The ends of an interval, per round; None is infinite."""
    lower, upper = ends.get("lower"), ends.get("upper")
    least, most = -math.inf if lower is None else lower, math.inf if upper is None else upper
    return least / rounds, most / rounds


def _entry(entry: Entry, row: Row) -> Entry:
    entry = entry._replace(sees=row["sees"], failure=row["failure"])
    if row["failure"]:
        return entry
    rounds, values, regret = row["rounds"], metrics.sweep_values(row), row["regret"]
    known = regret is not None and (regret["lower"], regret["upper"]) != (None, None)
    return entry._replace(
        loss=values["loss_mean"],
        regret=_per_round(regret, rounds) if known else None,
        violation=values["violation_mean"],
        calls=values["calls_per_round"],
        seconds=row["seconds"] / rounds,
        infeasibility=row["max_infeasibility"],
        certificate=values["certificate"],
        solves=values["solves_per_round"],
        churn=values["churn_mean"],
        **{name: values[name] for name in _BY_ROUND},
    )
