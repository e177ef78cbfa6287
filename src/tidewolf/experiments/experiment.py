"""An experiment: a set, a stream, learners, rounds, seeds, values of caution, and the folder of the
results. A frozen value.

`load` (keys.py) reads it from a TOML file; `resolved` fills every default in, so that the file
it is written to (`toml`) says all there is to say.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import partial
from inspect import signature
from pathlib import Path
from typing import Annotated, Any, TypeAlias, final

import numpy as np

from tidewolf.core import arrays, batch, jit, settings
from tidewolf.core.arguments import as_items, as_path, as_text, did_you_mean, shown
from tidewolf.core.errors import InvalidInput, NotSupported, TidewolfError, WrongType
from tidewolf.experiments import building, keys
from tidewolf.experiments.keys import Choice, Document, Place, learner_keys, problem_keys
from tidewolf.experts import Named, Resolve, Season
from tidewolf.files.reading import PLAIN, FileFormat, as_format
from tidewolf.files.table import GAPS
from tidewolf.loop import play
from tidewolf.methods.base import Learner
from tidewolf.methods.budget import Budget
from tidewolf.networks.network_files import COST, OBJECTIVES
from tidewolf.problems import Problem, named

# Which files of decisions there may be.
FORMS = ("none", "csv", "parquet", "both")
# Learners that play if a file names none: the default, exact projections, and re-solving.
DEFAULT_LEARNERS = ("Ensemble", "SinhaVaze", "Resolve")
_BY_DEFAULT = tuple(map(Choice, DEFAULT_LEARNERS))
# Pairs of a setting and its values.
Swept: TypeAlias = tuple[tuple[str, tuple[Any, ...]], ...]
# Learners that play a built-in problem chosen by name: also the paper's three.
BUILTIN_LEARNERS = (*DEFAULT_LEARNERS, "DriftPlusPenalty", "PrimalDual", "BanditPrimalDual")
# The learner of a session that names none.
USUAL = Choice.of("Ensemble", {"experts": ["last"]})
_TIMES = "the time of rounds: give a number of rounds, or tables with a column called time."
# From how many days on, and how many rounds per day, a day is taken as the season; and from how
# many rounds of a file on the leader is among the experts, which is fitted every 48 at first.
_DAYS, _PER_DAY, _FITTED = 3, 4, 192


@dataclass(frozen=True)
class _Is(settings.Check):
    check: Callable[[Any, str], Any] = field(kw_only=True, default=as_path)

    words = "what only Python code gives"

    def __call__(self, value: Any, what: str) -> Any:
        return self.check(value, what)

    def read(self, value: Any) -> None:
        return None


def _each(check: Callable[[Any, str], Any], such: str) -> _Is:
    def items(value: Any, what: str) -> tuple[Any, ...]:
        given = value.items() if isinstance(value, Mapping) else value
        return tuple(check(item, f"An item of {what}") for item in as_items(given, what, such))

    return _Is(check=items)


def _pair(second: Callable[[Any, str], Any]) -> Callable[[Any, str], Any]:
    def pair(value: Any, what: str) -> tuple[str, Any]:
        if not isinstance(value, tuple | list) or len(value) != 2:
            raise WrongType(f"{what} is a name and a value, not {shown(value)}.")
        return as_text(value[0], f"The name in {what}"), second(value[1], what)

    return pair


def _spending(value: Any, what: str) -> tuple[Budget, Path]:
    if not isinstance(value, tuple | list) or len(value) != 2 or not isinstance(value[0], Budget):
        raise WrongType(f"{what} is a Budget and the name of its table, not {shown(value)}.")
    return value[0], as_path(value[1], what)


def _choice(value: Any, what: str, *others: type) -> Any:
    if isinstance(value, (Choice, *others)):
        return value
    such = "Choice.of('Simplex', {'n': 3})"
    raise WrongType(f"{what} must be a Choice, such as {such}, not {shown(value)}.")


def _values(value: Any, what: str) -> tuple[Any, ...]:
    items = as_items(value, what, "[100, 200]")
    return tuple(keys.as_pair("a sweep", (what, item))[1] for item in items)


@final
@dataclass(frozen=True)
class Tables:
    """A stream from files: losses, constraints and side information.

    The losses are <costs_t, x>, the largest utilisation of a link of a network, or a choice of
    functions; the limits are any of x <= capacities_t, <weights_t, x> <= budgets_t, and a choice
    of functions that are to be at most 0.

    Parameters
    ----------
    costs : Path, optional
        A table with a row per round and a column a coordinate. None if `losses` are given.
    capacities : Path, optional
        A table of the same shape: what each coordinate may be at most.
    weights : Path, optional
        A table of the same shape: how much each coordinate uses of the budget.
    budgets : Path, optional
        A table of one column: what may be used in each round.
    demands : Path, optional
        A table with a column for each commodity of a network: what it sends in each round.
    losses : Choice, optional
        A batch of functions by name, whose arrays may be names of tables.
    constraints : Choice, optional
        The same for the limits.
    context : Path, optional
        A table of what kind of round each is: one column of categories, or a column of weights
        for each.
    advice : tuple of tuple of str or Path, default ()
        Tables of points that others proposed before each round, by name, of the shape of
        `costs`; a row with an empty cell is absent.
    objective : str, default 'cost'
        What the loss of a network is: "cost", cost times volume; or "max-utilization", load
        over capacity of the fullest link, without costs.
    gaps : str, default 'refuse'
        What is done about cells without a number, and about rows that one table has and another
        has not: "refuse" them, play such rounds "unseen" (no learner learns from them), or take
        the "last" number of the column.

    Examples
    --------
    >>> tables = tw.experiments.Tables("costs.csv", capacities="capacities.csv")
    >>> simplex = tw.experiments.Choice.of("Simplex", {"n": 3})
    >>> tw.experiments.Experiment("mine", tables, simplex).stream.costs.name
    'costs.csv'
    """

    costs: Annotated[Path | None, _Is()] = None
    capacities: Annotated[Path | None, _Is()] = None
    weights: Annotated[Path | None, _Is()] = None
    budgets: Annotated[Path | None, _Is()] = None
    demands: Annotated[Path | None, _Is()] = None
    losses: Annotated[Choice | None, _Is(check=_choice)] = None
    constraints: Annotated[Choice | None, _Is(check=_choice)] = None
    context: Annotated[Path | None, _Is()] = None
    advice: Annotated[tuple[tuple[str, Path], ...], _each(_pair(as_path), '{"me": "me.csv"}')] = ()
    objective: Annotated[str, settings.Text(choices=OBJECTIVES)] = COST
    gaps: Annotated[str, settings.Text(choices=GAPS)] = "refuse"

    def __post_init__(self) -> None:
        settings.validate(self)
        names = {*building.TABLES, "losses", "constraints"} - {"demands"}
        given = {name for name in names if getattr(self, name) is not None}
        if given >= {"costs", "losses"} or len(given & {"weights", "budgets"}) == 1:
            raise InvalidInput("A stream has costs or losses, and weights together with budgets.")
        if self.objective != COST and given & {"costs", "losses"}:
            raise InvalidInput(f"objective {self.objective} takes no costs.", setting="objective")


@final
@dataclass(frozen=True)
class Experiment:
    """What is to be run.

    `load` makes one of a file, `builtin` one of a built-in problem's name; `dataclasses.replace`
    varies it.

    Parameters
    ----------
    name : str
        What it is called in tables and on pages.
    stream : Choice or Tables
        A built-in problem with its settings, or tables.
    hard_set : Choice, optional
        The set of decisions. None: the built-in problem's own.
    learners : tuple of Choice
        The learners. By default `Ensemble`, exact projection, and re-solving.
    rounds : int, optional
        How many rounds are played. None: as many as the stream has.
    seeds : tuple of int, default (0,)
        The seeds of everything random, one run each.
    cautions : tuple of float, default ()
        Every learner that has a caution, and does not set it itself, runs at each of these values.
        None given: at its own default.
    swept : tuple of tuple, default ()
        What a sweep runs through: pairs of `horizons`, or of a setting of the learners, and its
        values.
    title : str, default ""
        A one-sentence description.
    folder : path, optional
        Where results go. None: the command's default.
    checkpoint_seconds : float, default 10.0
        Time between checkpoints. Unit: seconds.
    files : FileFormat
        How text is written in tables and graphs: what separates cells, the decimal mark, the
        encoding; and whose clock times are read from.
    decisions : str, optional
        Which files of decisions a run folder gets: "none", "csv", "parquet" or "both". None:
        Parquet, and CSV beside it up to a million cells.
    smallest_path : float, default 0.0
        Paths with a smaller share are left out of paths.csv, and theirs goes to the others of
        their commodity in proportion: what a router can install.
    budgets : tuple of tuple, default ()
        Pairs of a `Budget` and the table, of the shape of `costs`, of what a unit of each
        coordinate spends of it in each round; for learners that take budgets.
    incumbent : path, optional
        A table of what was decided in these rounds, as decisions.csv has it, to compare with: an
        entry on a flow is a share of its commodity's demand, not a volume.
    as_run : tuple of str, default ()
        Learners that were chosen by name alone. Without settings, they get those of the learners
        that play by default (see `taken`).
    left_out : tuple of tuple, default ()
        Pairs of a learner that plays by default and the reason why it refuses this problem (see
        `taken`).
    document : Document, optional
        The file it was read from, for errors to point to.

    Examples
    --------
    >>> experiment = tw.experiments.Experiment.builtin("adversarial", kind="moving")
    >>> problem = experiment.problem(seed=0)
    >>> experiment.learner(experiment.entrants()[0], problem, seed=0).caution
    10.0
    """

    name: Annotated[str, settings.Text()]
    stream: Annotated[Choice | Tables, _Is(check=lambda value, what: _choice(value, what, Tables))]
    hard_set: Annotated[Choice | None, _Is(check=_choice)] = None
    learners: Annotated[tuple[Choice, ...], _each(_choice, '[Choice("Resolve")]')] = _BY_DEFAULT
    rounds: Annotated[int | None, settings.Count()] = None
    seeds: Annotated[tuple[int, ...], _each(partial(arrays.as_count, least=0), "[0, 1]")] = (0,)
    cautions: Annotated[tuple[float, ...], _each(partial(arrays.as_number, above=0.0), "[10]")] = ()
    swept: Annotated[Swept, _each(_pair(_values), '[("horizons", [100, 200])]')] = ()
    title: Annotated[str, settings.Text()] = ""
    folder: Annotated[Path | None, _Is()] = None
    checkpoint_seconds: Annotated[float, settings.Number(above=0.0)] = 10.0
    files: Annotated[FileFormat, _Is(check=as_format)] = PLAIN
    decisions: Annotated[str | None, settings.Text(choices=FORMS)] = None
    smallest_path: Annotated[float, settings.Number(least=0.0)] = 0.0
    budgets: Annotated[
        tuple[tuple[Budget, Path], ...],
        _each(_spending, '[(tw.Budget("usd", total=90), "usd.csv")]'),
    ] = ()
    incumbent: Annotated[Path | None, _Is()] = None
    as_run: tuple[str, ...] = ()
    left_out: tuple[tuple[str, str], ...] = ()
    document: Document | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        settings.validate(self)
        if not self.learners or not self.seeds:
            raise InvalidInput("An experiment needs at least one learner and one seed.")
        stream, K = self.stream, self.hard_set
        if isinstance(stream, Choice):
            if self.budgets:
                words = f"{stream.name} has budgets of its own, or none: drop [[budgets]]."
                raise InvalidInput(words, setting="budgets")
            if K is not None and "K" not in signature(named(stream.name)).parameters:
                raise InvalidInput(f"{stream.name} has its own set: drop [set].", setting="set")
        elif K is None or K.name != keys.NETWORK:
            if stream.costs is None and stream.losses is None:
                such = 'problem = "routing", or costs = "costs.csv" with a [set]'
                raise InvalidInput(f"an experiment needs a [stream]: {such}.", setting="stream")
            if K is None:
                raise InvalidInput("tables need a [set]: a kind, or a graph.", setting="set")
            if stream.demands is not None:
                raise InvalidInput("demands need a network in [set].", setting="demands")

    @classmethod
    def builtin(cls, name: str, **given: Any) -> Experiment:
        """A built-in problem under its own name.

        Parameters
        ----------
        name : str
            The problem, as `tidewolf list` calls it.
        **given
            Settings of the problem.

        Returns
        -------
        Experiment
            With the learners that play by default, and the paper's three.
        """
        known = problem_keys(name)
        for key in given.keys() - known.keys():
            near = did_you_mean(key, known)
            raise InvalidInput(f"The problem {name} has no setting called {key!r}.{near}")
        return cls(name, Choice.of(name, given), learners=tuple(map(Choice, BUILTIN_LEARNERS)))

    def problem(self, seed: int) -> Problem:
        """The set and the stream of one seed.

        Parameters
        ----------
        seed : int
            Of everything random in a built-in problem.

        Returns
        -------
        Problem
            With the set `K`, the `stream` and the `labels` of coordinates.
        """
        return building.build_problem(self, seed)

    def entrants(self) -> tuple[Choice, ...]:
        """The learners that play, each at every value of caution if it has one to set.

        Returns
        -------
        tuple of Choice
            In the order of `learners`, none twice.
        """
        found = []
        for choice in self.learners:
            name, given = choice.name, choice.given
            swept = "caution" in learner_keys(name) and "caution" not in given
            values = self.cautions if swept else ()
            found += [Choice.of(name, {**given, "caution": at}) for at in values] or [choice]
        return tuple(dict.fromkeys(found))

    def learner(self, entrant: Choice, problem: Problem, seed: int) -> Learner[Any]:
        """An entrant made for a problem: its horizon is the problem's length, its seed the run's,
        unless it sets them itself.

        Parameters
        ----------
        entrant : Choice
            One of `entrants`.
        problem : Problem
            What it is to play.
        seed : int
            Of everything random in the learner.

        Returns
        -------
        Learner
            Ready for `tidewolf.run`.
        """
        if not isinstance(entrant, Choice) or not isinstance(problem, Problem):
            raise WrongType(f"Give a Choice and a Problem, not {shown(entrant)}, {shown(problem)}.")
        defaults = {"horizon": len(problem), "seed": seed, "budgets": problem.budgets}
        place = self._place(entrant)
        read = partial(building.read_point, problem.labels)
        learner = building.make_learner(entrant, problem.K, problem.network, place, read, defaults)
        with keys.located(place, learner_keys(entrant.name)):
            _require_info(learner, problem.stream)
        return learner

    def place(self, *path: str | int) -> Place:
        """The place of a setting in the file, and the format of the files that it names."""
        return Place(self.document, path, self.files)

    def taken(self, problem: Problem, *, all_play: bool = False) -> Experiment:
        """A copy with the learners that play this problem. If no learners were named, default
        learners that refuse the problem are moved to `left_out`, unless `all_play`, and Ensemble
        gets the problem's period, re-solves, and on tables of rounds enough has the leader. So
        does an Ensemble chosen by name alone (`as_run`).
        """
        if not self.has_default_learners and not self.as_run:
            return self
        learners, left_out = list[Choice](), dict[str, str]()
        may_refuse = self.has_default_learners and not all_play
        fits = isinstance(self.stream, Tables) and len(problem) >= _FITTED
        for each in self.learners:
            reason = _refusal(each.name, problem) if may_refuse else None
            if reason is not None:
                left_out[each.name] = reason
            elif self.has_default_learners or (each.name in self.as_run and not each.settings):
                learners.append(_with_experts(each, problem, fits))
            else:
                learners.append(each)
        return replace(self, learners=tuple(learners), as_run=(), left_out=tuple(left_out.items()))

    @property
    def has_default_learners(self) -> bool:
        """Whether the file names no learners, so that the default learners play."""
        names = tuple(choice.name for choice in self.learners if not choice.settings)
        return len(names) == len(self.learners) and names in (BUILTIN_LEARNERS, DEFAULT_LEARNERS)

    def only(self, names: Iterable[str]) -> Experiment:
        """A copy with the learners of these names alone: with their settings here, else with
        those that they have by default.
        """
        chosen: list[Choice] = []
        as_run: list[str] = []
        for name in dict.fromkeys(names):
            keys.learner_named(name)
            there = [choice for choice in self.learners if choice.name == name]
            chosen += there or [Choice(name)]
            as_run += [name] * (self.has_default_learners or not there)
        return replace(self, learners=tuple(chosen), as_run=tuple(as_run))

    def _place(self, entrant: Choice) -> Place:
        entries = [] if self.document is None else self.document.data.get("learners", [])
        for i, entry in enumerate(entries):
            table = entry if isinstance(entry, dict) else {"name": entry}
            frozen = {name: keys.freeze(value) for name, value in table.items()}
            if frozen.items() <= {"name": entrant.name, **entrant.given}.items():
                return self.place("learners", i)
        return self.place()

    def resolved(self, rounds: int | None = None) -> Experiment:
        """The same with every default filled in.

        Parameters
        ----------
        rounds : int, optional
            The length of its problem, if that is at hand. None: the problem is built to see.

        Returns
        -------
        Experiment
            One whose `toml` says all there is to say, with absolute paths.
        """
        if rounds is None:
            rounds = len(self.problem(self.seeds[0]))
        rounds = arrays.as_count(rounds, "The number of rounds", least=0)
        stream, K = self.stream, self.hard_set
        if isinstance(stream, Choice):
            stream = keys.with_defaults(stream, problem_keys(stream.name))
        else:
            stream = Tables(**{key: _absolute(at) for key, at in given_fields(stream).items()})
        if K is not None:
            K = _absolute(keys.with_defaults(K, keys.kind_keys(keys.kind_named(K.name))))
        of_rounds = {"horizon": rounds}
        learners = tuple(
            keys.with_defaults(Choice.of(one.name, of_rounds | one.given), learner_keys(one.name))
            for one in self.entrants()
        )
        budgets = tuple((budget, path.absolute()) for budget, path in self.budgets)
        made: Any = {"rounds": rounds, "stream": stream, "hard_set": K, "learners": learners}
        made["budgets"] = budgets
        return replace(self, **made, cautions=())

    def toml(self) -> str:
        """The experiment as a file that `load` reads."""
        if isinstance(self.stream, Choice):
            stream = self.stream.table("problem")
        else:
            stream = {name: _table_of(part) for name, part in given_fields(self.stream).items()}
        data = {
            "format": keys.FILE_FORMAT,
            "name": self.name,
            "title": self.title or None,
            "rounds": self.rounds,
            "seeds": self.seeds,
            "caution": self.cautions or None,
            "budgets": [one.fields() | {"spend": str(at)} for one, at in self.budgets] or None,
            "incumbent": None if self.incumbent is None else str(self.incumbent.absolute()),
            "left_out": dict(self.left_out) or None,
            "set": None if self.hard_set is None else self.hard_set.table(),
            "stream": stream,
            "sweep": dict(self.swept) or None,
            "learners": [each.table("name") for each in self.learners],
            "files": given_fields(self.files) or None,
            "outputs": {
                "folder": None if self.folder is None else str(self.folder),
                "checkpoint_seconds": self.checkpoint_seconds,
                "decisions": self.decisions,
                "smallest_path": self.smallest_path or None,
            },
        }
        return keys.to_toml(data)


def _require_info(learner: Learner[Any], stream: batch.Stream) -> None:
    """Refuse an expert for which the stream has no data, so that it would never act."""
    names = tuple(stream.advice or ())
    for one in learner.fields().get("experts") or ():
        setting, sentence, data = "experts", "", getattr(one, "data", None)
        if isinstance(one, Season) and one.seconds is not None and stream.time is None:
            setting, sentence = "season", f"A season of {one.period} needs {_TIMES}"
        elif isinstance(one, Resolve) and data == "forecast":
            words = "The stream holds no forecasts to re-solve with: take last, or give them."
            sentence = words * (stream.forecast is None)
        elif isinstance(one, Resolve) and isinstance(data, str) and data != "last":
            sentence = f"The data of {data} ago needs {_TIMES}" * (stream.time is None)
        elif isinstance(one, Named) and one.name not in names:
            known = ("last", *names)
            expected = f'expected a number of rounds, a duration such as "1d", {", ".join(known)}'
            near = did_you_mean(one.name, known)
            sentence = f"There is no expert {shown(one.name)}: {expected}.{near}"
        if sentence:
            raise InvalidInput(sentence, setting=setting)


def _with_experts(choice: Choice, problem: Problem, fits: bool) -> Choice:
    """An Ensemble with the season of a problem, or of a day if rounds have dates, several per day
    over some days; with re-solving as its experts, and with the leader if that `fits`. Others as
    they are.
    """
    if choice.name != "Ensemble":
        return choice
    period: Any = problem.period
    stamps = problem.stream.stamps
    if period is None and stamps is not None and stamps.dtype.kind == "M" and len(stamps) > 1:
        days = (stamps[-1] - stamps[0]) / np.timedelta64(1, "D")
        period = "1d" if days >= _DAYS and len(stamps) / days >= _PER_DAY else None
    leader = ["leader"] if fits else []
    if period is None:
        return Choice.of(choice.name, {"experts": ["last", *leader]})
    return Choice.of(choice.name, {"season": period, "experts": ["last", period, *leader]})


def _refusal(name: str, problem: Problem) -> str | None:
    """Why a learner does not take this problem, by its settings or in its first round; None if it
    does.
    """
    try:
        learner = keys.learner_named(name)(problem.K, horizon=len(problem))
        with jit.interpreting():  # one round is no reason to load machine code
            next(iter(play(learner, problem.stream[:1])), None)
    except TidewolfError as error:  # another one is a mistake in the input: the run reports it
        return str(error) if isinstance(error, NotSupported) else None
    return None


def given_fields(part: Any) -> dict[str, Any]:
    """The fields of a dataclass that are not at their default, by name."""
    return {
        one.name: value for one in fields(part) if (value := getattr(part, one.name)) != one.default
    }


def _table_of(part: Any) -> Any:
    if isinstance(part, tuple):
        return {name: str(path) for name, path in part}
    return part.table() if isinstance(part, Choice) else str(part)


def _absolute(part: Any) -> Any:
    if isinstance(part, tuple):
        return tuple((name, path.absolute()) for name, path in part)
    if isinstance(part, Choice):
        return part.with_files(lambda path: str(Path(path).absolute()))
    return part.absolute() if isinstance(part, Path) else part
