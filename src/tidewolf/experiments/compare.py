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

Sweeps are jobs played by an engine, kept in a folder, gathered in one table:

    DIR/sweep.jsonl         the journal: every row as soon as it is known (jobs.py)
    DIR/results.parquet     one line per run, in the order of the plan, when all have ended
    DIR/sweep.html          the page, which the command writes

The decisions of an incumbent, played beside the learners: what would have been saved?

A table like decisions.csv: one column per entry, by name, one row per round. Rows belong to rounds
by their times if both have times, by `round` (from 1) if there is such a column, else in order. A
single row holds for every round: routing that does not change. An entry without a column is 0.
Entries are decisions, on flows SHARES of each commodity's demand, not volumes.

Files round their numbers, so a row may lie outside the set by `TOLERANCE` of its radius; it is
replaced by the nearest member, and a note gives the distance. A row farther outside is refused.
"""

import json
import math
import statistics
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from inspect import signature
from itertools import groupby, product
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self, TypeAlias, final

import numpy as np

from tidewolf.core import arrays, batch, checkpoint
from tidewolf.core.arguments import (
    as_callback,
    as_items,
    as_kind,
    import_extra,
    match_names,
    shown,
)
from tidewolf.core.errors import (
    InvalidInput,
    NotSupported,
    TidewolfError,
    WrongType,
    refuse,
    require,
)
from tidewolf.core.feedback import FirstOrder
from tidewolf.core.types import Array, Floats, Int64s
from tidewolf.evaluation import metrics, recording
from tidewolf.evaluation.comparison import FILES, KNOBS, Comparison, Entry, Venue
from tidewolf.evaluation.formatting import Column, interval, number, percent
from tidewolf.evaluation.run import Run, run
from tidewolf.evaluation.tracking import entry_names, time_texts
from tidewolf.experiments import jobs
from tidewolf.experiments.experiment import Choice, Experiment, learner_keys
from tidewolf.files import FileFormat, Table, read_table
from tidewolf.functions.support import warn_of_negative_capacities
from tidewolf.hindsight.best import Comparator
from tidewolf.hindsight.exact import ExactProjection
from tidewolf.methods.base import Bound, Learner, Record
from tidewolf.problems.base import Problem
from tidewolf.sets.base import ConvexSet, membership_tolerance

Factory: TypeAlias = Callable[..., Learner[Any]]
StreamSource: TypeAlias = Problem | tuple[ConvexSet, batch.Stream] | Callable[..., Problem]
# Problems, each with the seeds that give it.
Problems: TypeAlias = list[tuple[Problem, tuple[int, ...]]]
Grid: TypeAlias = Mapping[str, tuple[Any, ...] | None]
# Labels, learners, and the defaults of the settings that each has.
Entrants: TypeAlias = Sequence[tuple[str, Choice, Mapping[str, Any]]]

CAUTIONS = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
# The values that a comparison of experiments takes by default.
HEADROOMS = (0.0, 0.5, 1.0, 2.0, 4.0, 8.0)
_SETTINGS = (*KNOBS, "calls_per_round")
# What an entry and a row of a sweep have under the same name.
_BY_ROUND = ("broken", *map("_".join, product(("loss", "violation", "churn"), ("p99", "worst"))))
_UNKNOWN: jobs.Row = {"reason": "No run ended, so the best point in hindsight is not known."}


class Step(NamedTuple):
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

    job: jobs.Job
    entry: Entry
    venue_seed: int
    rounds: int


def compare(
    learners: Sequence[Factory] | Mapping[str, Factory],
    streams: StreamSource | Sequence[StreamSource] | Mapping[str, StreamSource],
    *,
    cautions: Sequence[float] | None = None,
    targets: Sequence[float] | None = None,
    budgets: Sequence[float] | None = (1.0,),
    seeds: Sequence[int] = (0,),
    progress: Callable[[Step, recording.RunProgress], None] | None = None,
) -> Comparison:
    """Run every learner on every stream, for each caution, call budget and seed. Seeds that change
    neither are run once. A failed run is recorded with its reason.

    Parameters
    ----------
    learners : sequence or mapping
        Classes, or functions of (K, horizon, ...); by name if they are a mapping.
    streams : problem, sequence or mapping
        Problems, functions of a seed that make one, or, in a mapping, pairs (K, stream).
    cautions : sequence of float, default None
        The cautions to try; None: each learner's own default.
    targets : sequence of float, default None
        Violations per round that learners which take one are to aim at, under names of their own.
    budgets : sequence of float, default (1.0,)
        The oracle calls allowed per round; None: each learner's own default.
    seeds : sequence of int, default (0,)
        The seeds of streams and learners that have one.
    progress : callable, default None
        Called a few times per second with the run that is under way, and how far it is.

    Returns
    -------
    Comparison
        Every run, the frontiers as caution moves, and how learners compare with a baseline.

    Raises
    ------
    InvalidInput, WrongType
        If there is nothing to play, two streams have one name, or something is neither.

    Examples
    --------
    >>> losses = tw.functions.Linear([[1.0, 2.0]] * 4)
    >>> stream = tw.Stream(losses, tw.functions.Capacity([[0.75, 1.0]] * 4))
    >>> learners = [tw.LyapunovDescent, tw.baselines.SinhaVaze]
    >>> found = tw.compare(learners, {"two": (tw.sets.Simplex(2), stream)}, cautions=[1, 10])
    >>> found.learners, found.baseline, len(found.entries)
    (('LyapunovDescent', 'SinhaVaze'), 'SinhaVaze', 4)
    """
    as_callback(progress, "progress, which is called with how far each run is,")
    all_seeds = (
        _numbers(() if seeds is None else seeds, "seed", partial(arrays.as_count, least=0)) or ()
    )
    grid = _grid(cautions, None, budgets, targets)
    matches = _matches_here(_factories(learners), streams, grid, all_seeds)
    player, rows = jobs.Player(), list[jobs.Row]()
    for i, match in enumerate(matches, start=1):
        moved = None if progress is None else partial(progress, Step(match.entry, i, len(matches)))
        rows.append(player.row(match.job, moved=moved, refused=TidewolfError))
    return _comparison(matches, rows)


def _matches_here(
    factories: dict[str, Factory], streams: Any, grid: Grid, seeds: Sequence[int]
) -> list[Match]:
    entrants = [(key, Choice(key), _defaults(make) or {}) for key, make in factories.items()]
    matches, given = list[Match](), streams
    if not isinstance(streams, Mapping):
        alone = isinstance(streams, Problem) or callable(streams)
        several = [streams] if alone else streams
        items = as_items(several, "The streams of compare", "[routing]")
        given = zip([None] * len(items), items, strict=True)
    for name, made in given.items() if isinstance(given, Mapping) else given:
        problems = _distinct(partial(_problem, name, made), seeds)
        place = problems[0][0].name if name is None else name
        _require_new(place, matches, "streams", "give streams as a mapping")
        for each in problems:
            warn_of_negative_capacities(each[0].K, each[0].stream.constraints, set())
            source = jobs.InProcess(place, each[0], factories)
            matches += _matches(place, partial(jobs.Job, source, "", None), [each], entrants, grid)
    require(matches, InvalidInput, "compare needs at least one stream, and none was given.")
    return matches


def plan_comparison(
    experiments: Sequence[Experiment],
    *,
    cautions: Sequence[float] | None = None,
    headrooms: Sequence[float] | None = None,
    budgets: Sequence[float] | None = None,
    targets: Sequence[float] | None = None,
    seeds: Sequence[int] | None = None,
) -> tuple[Match, ...]:
    """Every learner of every experiment at every value of the knobs that it has.

    Values that are given here replace the usual ones and those of the experiment. A seed that
    changes neither stream nor learner is not played again.
    """
    grid, matches = _grid(cautions, headrooms, budgets, targets), list[Match]()
    all_seeds = _numbers(seeds, "seed", partial(arrays.as_count, least=0))
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
        job = partial(jobs.Job, experiment, jobs.identity_of(experiment), experiment.rounds)
        matches += _matches(experiment.name, job, problems, entrants, grid, usual)
    return tuple(matches)


def _require_new(name: str, matches: Sequence[Match], what: str, cure: str) -> None:
    refuse(
        any(match.entry.stream == name for match in matches),
        f"Two {what} are called {name!r}; {cure}.",
    )


def compare_experiments(
    matches: Sequence[Match], folder: Path, *, others: Sequence[str] = (), **how: Any
) -> Comparison:
    """Play the jobs that have no row in the folder yet, and write comparison.json and
    comparison.csv; `how` is that of `play_jobs`.

    A folder that holds another comparison, or one of the files `others`, is refused; with `force`
    it is begun again.
    """
    played = [match.job for match in matches]
    rows = jobs.play_jobs(played, folder, "comparison", "compare.jsonl", (*FILES, *others), **how)
    found = _comparison(matches, rows)
    found.save(folder, force=True)
    return found


def _matches(
    place: str,
    job: Callable[[int, Choice], jobs.Job],
    problems: Problems,
    entrants: Entrants,
    grid: Grid,
    usual: Mapping[str, Sequence[float]] | None = None,
) -> Iterator[Match]:
    """Every learner on every problem, at every combination of values of its knobs: those of the
    grid. Knobs without any stay at their own, or, if there are `usual` values, take those too.
    """
    every = [*_aimed(entrants, grid["target_violation"])]
    for (problem, seeds), (label, choice, known) in product(problems, every):
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
                knobs = {name: at[name] for name in KNOBS} | {"budget": at["calls_per_round"]}
                entry = Entry(place, label, seed, **knobs, default=default)
                yield Match(job(seed, entrant), entry, seeds[0], len(problem))


def _aimed(entrants: Entrants, targets: tuple[Any, ...] | None) -> Iterator[Any]:
    """The entrants, and once more with a target for the violation in place of a caution if there
    are targets: no learner has both to turn.
    """
    for label, choice, known in entrants:
        aims = choice.given.get("target_violation", known.get("target_violation")) is not None
        other = "caution" if aims else "target_violation"
        yield label, choice, {key: at for key, at in known.items() if key != other}
        if targets and not aims and "target_violation" in known:
            given = {key: at for key, at in choice.given.items() if key != "caution"}
            aimed = {key: at for key, at in known.items() if key != "caution"}
            yield f"{label} with a target", Choice.of(choice.name, given), aimed


def _distinct(make: Callable[[int], Problem], seeds: Sequence[int]) -> Problems:
    return [(problem, tuple(same)) for problem, same in groupby(seeds, make)]


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
        refuse(
            "" in learners or len(learners) < len(several),
            "Learners without a name of their own are given as a mapping.",
        )
    for name, factory in learners.items():
        if _defaults(factory) is None:
            raise WrongType(f"{name} must be a learner class or function, not {shown(factory)}.")
    require(learners, InvalidInput, "compare needs at least one learner, and none was given.")
    return dict(learners)


def _defaults(function: Any) -> dict[str, Any] | None:
    """What a function takes, with defaults; None if that cannot be found out, as for int."""
    try:
        found = signature(function).parameters.values()
    except (TypeError, ValueError):
        return None
    return {each.name: None if each.default is each.empty else each.default for each in found}


def _problem(name: str | None, source: Any, seed: int) -> Problem:
    problem = source
    if callable(source) and not isinstance(source, Problem) and "seed" in (_defaults(source) or ()):
        problem = source(seed=seed)
    if name is not None and isinstance(problem, tuple) and len(problem) == 2:
        problem = Problem(name, problem[0], problem[1], name)
    problem = as_kind(problem, Problem, "A stream is a Problem, or a function of a seed")
    require(len(problem), InvalidInput, f"The stream {problem.name} has no rounds.")
    return problem


def _grid(cautions: Any, headrooms: Any, budgets: Any, targets: Any) -> Grid:
    return {
        "target_violation": _numbers(targets, "target", partial(arrays.as_number, above=0.0)),
        "caution": _numbers(cautions, "caution", partial(arrays.as_number, above=0.0)),
        "headroom": _numbers(headrooms, "headroom", partial(arrays.as_number, least=0.0)),
        "calls_per_round": _numbers(budgets, "budget", partial(arrays.as_number, above=0.0)),
    }


def _numbers(given: Any, what: str, check: Callable[[Any, str], Any]) -> tuple[Any, ...] | None:
    if given is None:
        return None
    items = as_items(given, f"The {what}s", "[1.0]")
    require(items, InvalidInput, f"compare needs at least one {what}, and none was given.")
    return tuple(dict.fromkeys(check(number, f"A {what}") for number in items))


def _comparison(matches: Sequence[Match], rows: Sequence[jobs.Row]) -> Comparison:
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
    lower, upper = ends.get("lower"), ends.get("upper")
    least, most = -math.inf if lower is None else lower, math.inf if upper is None else upper
    return least / rounds, most / rounds


def _entry(entry: Entry, row: jobs.Row) -> Entry:
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


# --- sweeps ---------------------------------------------------------------------------------------

RESULTS, PAGE = "results.parquet", "sweep.html"


class SweepLine(NamedTuple):
    """One setting of a learner at one horizon: means over seeds."""

    experiment: str
    rounds: int | None
    learner: str
    settings: dict[str, Any]
    # how many were played to the end
    seeds: int
    # the columns of results.parquet: means, and the largest of those called worst; None if a seed
    # has none
    values: dict[str, float | None]

    def per_round(self, column: str, unit: float = 1.0) -> float | None:
        total = self.values[column]
        return None if total is None or not self.rounds else total / (unit * self.rounds)

    @classmethod
    def of(cls, group: Sequence[jobs.Row]) -> Self:
        first, played = group[0], [row for row in group if not row["failure"]]
        rows = [metrics.sweep_values(row) for row in played]
        values: dict[str, float | None] = {}
        for column, kind in metrics.sweep_columns().items():
            several = [row[column] for row in rows]
            has_mean = kind is not str and several and None not in several
            over = max if column.endswith("_worst") else statistics.fmean
            values[column] = over(several) if has_mean else None
        if played and all(row["regret"] is not None for row in played):
            for end, unknown in (("regret_lower", -math.inf), ("regret_upper", math.inf)):
                values[end] = unknown if values[end] is None else values[end]
        experiment, rounds = first["experiment"], first["rounds"]
        return cls(experiment, rounds, first["learner"], first["settings"], len(played), values)


class SweepGroup(NamedTuple):
    experiment: str
    rounds: int | None
    lines: list[SweepLine]

    @property
    def knobs(self) -> tuple[str, ...]:
        values: dict[str, dict[str, set[str]]] = {}
        for line in self.lines:
            for name, value in line.settings.items():
                values.setdefault(name, {}).setdefault(line.learner, set()).add(repr(value))
        return tuple(name for name, by in values.items() if any(len(at) > 1 for at in by.values()))

    @property
    def about(self) -> str:
        length = "as many rounds as it has" if self.rounds is None else f"{self.rounds:,} rounds"
        return f"{length}, means over seeds"


def _regret(line: SweepLine) -> str:
    lower, upper = line.per_round("regret_lower"), line.per_round("regret_upper")
    if lower is None or upper is None:
        return "none"
    return interval((lower, upper)).partition(" \u00b1")[0]


def _broken(line: SweepLine) -> str:
    return "unknown" if (at := line.values["broken"]) is None else percent(at)


def _column(
    title: str, narrow: str, key: str, rank: int = 0, *, optional: bool = False, unit: float = 0.0
) -> Column[SweepLine]:
    """The mean of a number, or with a unit a total per round in that unit; an optional one is left
    out if no line has it, or all have 0.
    """

    def cell(line: SweepLine) -> str:
        return number(line.per_round(key, unit) if unit else line.values[key])

    def applies(line: SweepLine) -> bool:
        return not optional or line.values[key] not in (None, 0.0)

    return Column(title, narrow, cell, rank, applies)


# What tables show of a line.
LINE_COLUMNS: tuple[Column[SweepLine], ...] = (
    _column("total loss", "loss\ntotal", "loss"),
    _column("loss per round", "\nper round", "loss_mean"),
    _column("churn per round", "churn\nper round", "churn_mean", 1),
    _column("churn p99", "\np99", "churn_p99", 8),
    _column("worst churn", "\nworst", "churn_worst", 8),
    Column("regret per round", "regret\nper round", _regret, 2, lambda one: _regret(one) != "none"),
    _column(
        *("regret per round, kept rounds", "regret,\nkept rounds", "regret_kept_upper", 2),
        optional=True,
        unit=1.0,
    ),
    _column("violation per round", "violation\nper round", "violation_mean"),
    _column("violation p99", "\np99", "violation_p99", 7),
    _column("worst violation", "\nworst", "violation_worst", 5),
    Column("rounds broken", "rounds\nbroken", _broken, 6),
    _column("calls per round", "calls/\nround", "calls_per_round", 3),
    _column("LPs per round", "LPs/\nround", "solves_per_round", 3, optional=True),
    _column("us per round", "us", "seconds", 4, optional=True, unit=1e-6),
    Column("seeds", "seeds", lambda line: str(line.seeds), 4),
)


@final
@dataclass(frozen=True)
class Sweep:
    """The results of a sweep: a row per job, in the order of the plan."""

    rows: tuple[jobs.Row, ...]

    @property
    def failures(self) -> tuple[jobs.Row, ...]:
        return tuple(row for row in self.rows if row["failure"])

    def groups(self) -> list[SweepGroup]:
        """One line per learner and setting, grouped by experiment and horizon."""
        same: dict[Any, list[jobs.Row]] = {}
        for row in self.rows:
            key = row["source"], row["rounds"], row["learner"], json.dumps(row["settings"])
            same.setdefault(key, []).append(row)
        found: dict[Any, SweepGroup] = {}
        for line in map(SweepLine.of, same.values()):
            place = line.experiment, line.rounds
            found.setdefault(place, SweepGroup(*place, [])).lines.append(line)
        return list(found.values())

    def warnings(self) -> list[str]:
        reasons = Counter(row["failure"] for row in self.failures)
        return [f"{n} of {len(self.rows)} failed: {reason}" for reason, n in reasons.items()]

    def table(self) -> Any:
        pa = import_extra("pyarrow", "A sweep", "app,sweep")
        types = {str: pa.string(), int: pa.int64(), float: pa.float64(), bool: pa.bool_()}
        flat = [{**row, **metrics.sweep_values(row)} for row in self.rows]

        def typed(kinds: Mapping[str, type]) -> dict[str, Any]:
            return {
                name: pa.array([row.get(name) for row in flat], types[kind])
                for name, kind in kinds.items()
            }

        columns = typed({"experiment": str, "learner": str, "rounds": int, "seed": int})
        for name in dict.fromkeys(name for row in flat for name in row["settings"]):
            values = [row["settings"].get(name) for row in flat]
            if any(type(value) not in (int, float, type(None)) for value in values):
                values = [None if value is None else json.dumps(value) for value in values]
            columns[f"knob_{name}"] = pa.array(values)  # calls_per_round is measured too
        table = pa.table({**columns, **typed({**metrics.sweep_columns(), "failure": str})})
        return table.replace_schema_metadata({"tidewolf": f"sweep {jobs.ROWS_FORMAT}"})


def sweep(planned: Sequence[jobs.Job], folder: Path, **how: Any) -> Sweep:
    """Play the jobs that have no row in the folder yet, and write results.parquet.

    `how` is that of `play_jobs`: its engine, force, and progress. A folder that holds another sweep
    is refused; with `force` it is begun again.
    """
    from pyarrow import parquet

    found = Sweep(jobs.play_jobs(planned, folder, "sweep", "sweep.jsonl", (RESULTS, PAGE), **how))
    with checkpoint.writing(folder / RESULTS) as file:
        parquet.write_table(found.table(), file)
    return found


# --- the decisions of an incumbent ----------------------------------------------------------------

# How far a row may be outside the set, as a share of the set's radius.
TOLERANCE = 1e-3
_ROUND = "round"


class State(NamedTuple):
    t: int = 0
    calls: int = 0
    distance: float = 0.0


@final
@dataclass(frozen=True, eq=False, repr=False)
class Incumbent(Learner[State]):
    needs: ClassVar[Any] = FirstOrder
    state_type: ClassVar[type[State]] = State

    K: ConvexSet
    points: Array
    # notes for the reader
    said: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"Incumbent(K={self.K!r}, {len(self.points):,} rounds)"

    def start(self) -> State:
        return State()

    def act(self, state: State) -> Array:
        return self.points[min(state.t, len(self.points) - 1), ...]

    def rounds_left(self, state: State) -> int:
        return 1

    def update(self, state: State, feedback: Any) -> State:
        return State(state.t + 1)

    def bound(self, record: Record) -> Bound:
        return Bound(None, None, "")

    def notes(self, state: State) -> tuple[str, ...]:
        return self.said

    @classmethod
    def examples(cls, K: Any, horizon: int) -> Sequence[Self]:
        return (cls(K, np.repeat(arrays.to_numpy(K.center)[None], max(1, horizon), axis=0)),)


def read_incumbent(path: Path, problem: Problem, format: FileFormat) -> Incumbent:
    """The decisions in a table, as a learner that plays them; refused if a row is not a decision.

    The table is written as the experiment's files are, or as tidewolf writes decisions.
    """
    try:
        table = read_table(path, format=format)
    except InvalidInput:
        table = read_table(path)
    names = entry_names(problem.K, problem.labels)
    columns, rows = _columns(table, names, path), _rows(table, names, problem, path)
    distinct, of_round = np.unique(rows, return_inverse=True)
    points = np.where(columns >= 0, table.values[distinct][:, columns], 0.0)
    places = [table.places[i] for i in distinct.tolist()]
    found, rounded = _members(points.reshape(len(distinct), *problem.K.shape), places, problem)
    note = f"It plays the decisions of {path.name}"
    if len(table.values) == 1:
        note += ", whose one row holds for every round"
    if absent := int((columns < 0).sum()):
        note += f"; {absent:,} of {len(names):,} entries have no column there and count as 0"
    return Incumbent(problem.K, found[of_round, ...], (f"{note}{rounded}.",))


def play_incumbent(incumbent: Incumbent, problem: Problem, comparator: Comparator | None) -> Run:
    stream = problem.stream
    stream = replace(stream, seen=None, arrives=None, played=None, unavailable=None)
    object.__setattr__(stream, "stamps", problem.stream.stamps)
    return run(incumbent, stream, comparator=comparator)


def _columns(table: Table, names: Sequence[str], path: Path) -> Int64s:
    """The column of each entry, -1 if it has none; what is no entry may be there if it is 0."""
    empty = {name for name, at in zip(table.columns, table.values.T, strict=True) if not at.any()}
    ignored = {_ROUND, *empty} - {*names}
    of_entries = [None if name in ignored else name for name in table.columns]
    return match_names(of_entries, names, f"{path}", needed=())


def _rows(table: Table, names: Sequence[str], problem: Problem, path: Path) -> Int64s:
    rounds, stamps = len(problem), problem.stream.stamps
    if len(table.values) == 1:
        return np.zeros(rounds, dtype=np.int64)
    keys: Any = np.arange(1, len(table.values) + 1)
    wanted: Any = np.arange(1, rounds + 1)
    if table.times is not None and stamps is not None:
        keys, wanted = table.times, stamps
    elif _ROUND in table.columns and _ROUND not in names:
        keys = table.values[:, table.columns.index(_ROUND)]
    order = np.argsort(keys, kind="stable")
    at = np.searchsorted(keys, wanted, side="right", sorter=order) - 1
    for t in np.flatnonzero((at < 0) | (keys[order][at] != wanted))[:1].tolist():
        at_time = f" ({time_texts(stamps)[t]})" if wanted is stamps and stamps is not None else ""
        raise InvalidInput(
            f"{path}: expected a row for every one of {rounds:,} rounds, none for round "
            f"{t + 1}{at_time}."
        )
    return np.asarray(order[at], dtype=np.int64)


def _members(points: Floats, places: Sequence[str], problem: Problem) -> tuple[Array, str]:
    """The rows as members of the set, rounded ones replaced by the nearest member, and a note that
    gives the distance.
    """
    K = problem.K
    most, farthest, moved = TOLERANCE * K.radius, 0.0, 0
    found = arrays.like(points, K.center)
    project: ExactProjection | None = None
    for i, where in enumerate(places):
        x = found[i, ...]
        infeasibility = float(K.infeasibility(x))
        if infeasibility <= 0.5 * membership_tolerance(x, K.radius):
            continue
        refuse(
            not (infeasibility <= most),
            f"{where}: the row is no decision: it is {infeasibility:.3g} outside the set, at "
            f"most {most:.3g} is rounding. On flows, entries are shares of each commodity's "
            "demand, not volumes.",
        )
        try:
            project = ExactProjection(K) if project is None else project
            member = project(x)
        except NotSupported:
            continue
        farthest, moved = max(farthest, arrays.norm(member - x)), moved + 1
        found[i, ...] = member
    if not moved:
        return found, ""
    return found, (
        f"; {moved:,} of {len(places):,} rows were rounded, and are replaced by the nearest "
        f"decision, at most {number(farthest)} away"
    )


def savings(ours: Run, label: str, incumbent: Run, network: Any = None) -> str:
    whole = float(incumbent.losses.sum())
    less = whole - float(ours.losses.sum())
    word = "less" if less >= 0.0 else "more"
    share = 100.0 * abs(less) / whole if whole > 0.0 else math.inf
    size = f"{share:,.{1 if share >= 1.0 else 2}f} %" if whole > 0.0 else number(abs(less))
    cost = "as much as" if less == 0.0 or share < 0.005 else f"{size} {word} than"
    broken = [float(run.violations.sum()) for run in (ours, incumbent)]
    limits = f" and broken limits by {number(broken[0])} instead of {number(broken[1])}"
    if broken == [0.0, 0.0]:
        limits = ", and both satisfy every limit"
    elif network is not None:
        volumes = " instead of ".join(number(network.unit * each) for each in broken)
        limits += f", in shares of all that is sent ({volumes} in the unit of the capacities)"
    return f"{label} would have cost {cost} the incumbent{limits}."
