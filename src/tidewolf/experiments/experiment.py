"""An experiment: a set, a stream, learners, rounds, seeds, values of the knob, and where the
results go. A frozen value.

    [set]  [stream]  [[learners]]  rounds  seeds  caution  [sweep]  [outputs]

`load` reads it from a TOML file and refuses what it does not know with the line and column;
`resolved` fills every default in, so that the file it is written to (`toml`) says all there is to
say. Paths are seen from the file's folder.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, final

from tidewolf import learners as _learners
from tidewolf import problems as _problems
from tidewolf import rivals as _rivals
from tidewolf import sets as _sets
from tidewolf.core.arguments import as_items, as_path, as_text, shown
from tidewolf.core.arrays import as_count, as_number
from tidewolf.core.errors import InvalidInput, NewerFormat, NotSupported, TidewolfError, WrongType
from tidewolf.experiments import settings
from tidewolf.experiments.settings import Knob
from tidewolf.experiments.toml import Document, hint, parse, written
from tidewolf.loop import play
from tidewolf.methods.base import Learner
from tidewolf.problems import Problem

FORMAT = 1
DEFAULT_LEARNERS = (
    "LyapunovDescent",
    "SinhaVaze",
    "DriftPlusPenalty",
    "PrimalDual",
    "BanditPrimalDual",
)
"""Who plays where nobody is named: the one to start with, exact projections, and the paper's
three.
"""
FLOW: Mapping[str, Knob] = {
    "graph": Knob(str, None),
    "source": Knob(str | int, None),
    "target": Knob(str | int, None),
    "lengths": Knob(str, None),
    "directed": Knob(bool, None),
    "demand": Knob(float, 1.0),
}
"""The settings of a FlowPolytope in a file, where it is made of a graph: the first three are
needed.
"""
TABLES = ("costs", "capacities", "weights", "budgets")
_TOP = (
    "format",
    "name",
    "title",
    "rounds",
    "seeds",
    "caution",
    "set",
    "stream",
    "learners",
    "sweep",
    "outputs",
)
_OUTPUTS: Mapping[str, Knob] = {"folder": Knob(str, "out"), "checkpoint_seconds": Knob(float, 10.0)}


@final
@dataclass(frozen=True)
class Choice:
    """A set, a problem or a learner by name, with what is set of it."""

    name: str
    settings: tuple[tuple[str, Any], ...] = ()

    def __post_init__(self) -> None:
        as_text(self.name, "The name of what is chosen")
        pairs = as_items(self.settings, f"The settings of {self.name}", '[("caution", 10.0)]')
        object.__setattr__(self, "settings", tuple(_setting(self.name, pair) for pair in pairs))

    @classmethod
    def of(cls, name: str, given: Mapping[str, Any]) -> Choice:
        if not isinstance(given, Mapping):
            raise WrongType(
                f"The settings of {shown(name)} must be a mapping from their names, not "
                f"{shown(given)}."
            )
        return cls(name, tuple(given.items()))

    @property
    def given(self) -> dict[str, Any]:
        """The settings by name."""
        return dict(self.settings)


@final
@dataclass(frozen=True)
class Tables:
    """Files with a row a round: the losses <costs_t, x>, and either the limits x <= capacities_t or
    <weights_t, x> <= budgets_t.
    """

    costs: Path
    capacities: Path | None = None
    weights: Path | None = None
    budgets: Path | None = None

    def __post_init__(self) -> None:
        for name in TABLES:
            if getattr(self, name) is not None or name == "costs":
                object.__setattr__(self, name, as_path(getattr(self, name), f"The table of {name}"))


@final
@dataclass(frozen=True)
class Experiment:
    """What is to be run.

    `load` makes one of a file, `builtin` one of a built-in problem's name; `dataclasses.replace`
    varies it.
    """

    name: str
    stream: Choice | Tables
    """a built-in problem and its settings, or tables"""
    hard_set: Choice | None = None
    """None where the built-in problem has its own"""
    learners: tuple[Choice, ...] = tuple(Choice(name) for name in DEFAULT_LEARNERS)
    rounds: int | None = None
    """None: as many as the stream has"""
    seeds: tuple[int, ...] = (0,)
    cautions: tuple[float, ...] = ()
    """every learner that has this knob, and does not set it itself, runs at each; none: at its own
    default
    """
    swept: tuple[tuple[str, tuple[Any, ...]], ...] = ()
    """what a sweep runs through: `horizons`, and settings of learners by name, each with its
    values
    """
    title: str = ""
    folder: Path | None = None
    """where results go; None: the command's default"""
    checkpoint_seconds: float = 10.0
    document: Document | None = field(default=None, compare=False, repr=False)
    """the file it was read from, for errors to point to"""

    def __post_init__(self) -> None:
        for name in ("name", "title"):
            as_text(getattr(self, name), f"The {name} of an experiment")
        if not isinstance(self.stream, Choice | Tables):
            raise WrongType(
                "The stream of an experiment is a Choice of a problem, or Tables, not "
                f"{shown(self.stream)}."
            )
        if self.hard_set is not None and not isinstance(self.hard_set, Choice):
            raise WrongType(
                "The set of an experiment is a Choice such as Choice.of('Simplex', {'n': 3}), "
                f"not {shown(self.hard_set)}."
            )
        if self.hard_set is None and isinstance(self.stream, Tables):
            raise InvalidInput(
                "Tables have no set of their own: give hard_set, such as Choice.of('Simplex', "
                "{'n': 3})."
            )
        kept: dict[str, Any] = {
            "learners": as_items(
                self.learners, "The learners of an experiment", "[Choice('LyapunovDescent')]"
            ),
            "rounds": (
                None if self.rounds is None else as_count(self.rounds, "The number of rounds")
            ),
            "seeds": tuple(
                as_count(seed, "A seed", least=0)
                for seed in as_items(self.seeds, "The seeds", "[0, 1]")
            ),
            "cautions": tuple(
                as_number(knob, "A value of caution", above=0.0)
                for knob in as_items(self.cautions, "cautions", "[1.0]")
            ),
            "swept": tuple(
                _range_of(pair)
                for pair in as_items(
                    self.swept, "What a sweep runs through", '[("horizons", [100, 200])]'
                )
            ),
            "folder": (
                None if self.folder is None else as_path(self.folder, "The folder of an experiment")
            ),
            "checkpoint_seconds": as_number(
                self.checkpoint_seconds, "checkpoint_seconds", above=0.0
            ),
        }
        for learner in kept["learners"]:
            if not isinstance(learner, Choice):
                raise WrongType(
                    "A learner of an experiment is a Choice such as Choice('LyapunovDescent'), not "
                    f"{shown(learner)}."
                )
        if not kept["learners"] or not kept["seeds"]:
            raise InvalidInput("An experiment needs at least one learner and one seed.")
        for name, value in kept.items():
            object.__setattr__(self, name, value)

    @classmethod
    def builtin(cls, name: str, **given: Any) -> Experiment:
        """A built-in problem under its own name."""
        known = problem_knobs(name)
        for key in given:
            if key not in known:
                takes = f"it takes {', '.join(known)}" if known else "it takes none"
                raise InvalidInput(
                    f"The problem {name} has no setting called {key!r}; {takes}.{hint(key, known)}"
                )
        return cls(name, Choice.of(name, given))

    def problem(self, seed: int) -> Problem:
        """The set and the stream of one seed."""
        from tidewolf.experiments.building import problem

        return problem(self, seed)

    def entrants(self) -> tuple[Choice, ...]:
        """The learners with the knob's values set."""
        found = []
        for choice in self.learners:
            swept = "caution" in _knobs_of(choice.name) and "caution" not in choice.given
            values = self.cautions if swept else ()
            found += [
                Choice.of(choice.name, {**choice.given, "caution": value}) for value in values
            ] or [choice]
        return tuple(dict.fromkeys(found))

    def learner(self, entrant: Choice, problem: Problem, seed: int) -> Learner[Any]:
        """An entrant made for a problem: its horizon is the problem's length, its seed the run's,
        unless it sets them itself.
        """
        if not isinstance(entrant, Choice) or not isinstance(problem, Problem):
            raise WrongType(
                f"A learner is made of a Choice for a Problem, not of {shown(entrant)} for "
                f"{shown(problem)}."
            )
        known, given = (
            _knobs_of(entrant.name),
            {"horizon": len(problem), "seed": seed, **entrant.given},
        )
        try:
            made: Learner[Any] = settings.made(
                learner_named(entrant.name),
                problem.K,
                **{k: v for k, v in given.items() if k in known},
            )
        except TidewolfError as error:
            raise settings.placed(
                self.document, error, self._place(entrant), entrant.given
            ) from None
        return made

    def taken(self, problem: Problem) -> Experiment:
        """The same; where no learners were named, without those of the usual ones that refuse this
        problem (see `left_out`).
        """
        if self.learners != tuple(map(Choice, DEFAULT_LEARNERS)):
            return self
        return replace(
            self,
            learners=tuple(
                choice for choice in self.learners if _refusal(choice.name, problem) is None
            ),
        )

    def left_out(self, problem: Problem) -> dict[str, str]:
        """Those of the usual learners that refuse this problem, with their sentences, where all the
        others take part.
        """
        there, found = {choice.name for choice in self.learners}, dict[str, str]()
        if not there <= set(DEFAULT_LEARNERS):
            return {}
        # those that are quick to ask first
        for name in (name for name in reversed(DEFAULT_LEARNERS) if name not in there):
            if (sentence := _refusal(name, problem)) is None:
                return {}
            found[name] = sentence
        return found

    def _place(self, entrant: Choice) -> tuple[str | int, ...]:
        """Where the file speaks of an entrant."""
        entries = [] if self.document is None else self.document.data.get("learners", [])
        for i, entry in enumerate(entries):
            told = entry if isinstance(entry, dict) else {"name": entry}
            if told.items() <= {"name": entrant.name, **entrant.given}.items():
                return ("learners", i)
        return ()

    def resolved(self, rounds: int | None = None) -> Experiment:
        """The same with every default filled in.

        `rounds` is the length of its problem, where that is at hand.
        """
        rounds = (
            len(self.problem(self.seeds[0]))
            if rounds is None
            else as_count(rounds, "The number of rounds", least=0)
        )
        stream, K = self.stream, self.hard_set
        if isinstance(stream, Choice):
            stream = _filled(stream, problem_knobs(stream.name))
        else:
            stream = Tables(
                **{
                    name: path.absolute()
                    for name in TABLES
                    if (path := getattr(stream, name)) is not None
                }
            )
        if K is not None:
            K = _filled(K, set_knobs(K.name))
            K = Choice.of(
                K.name,
                {
                    key: str(Path(value).absolute()) if key == "graph" else value
                    for key, value in K.settings
                },
            )
        entrants = [
            _filled(Choice.of(each.name, {"horizon": rounds, **each.given}), _knobs_of(each.name))
            for each in self.entrants()
        ]
        return replace(
            self, rounds=rounds, stream=stream, hard_set=K, learners=tuple(entrants), cautions=()
        )

    def toml(self) -> str:
        """The experiment as a file that `load` reads."""
        stream = (
            {"problem": self.stream.name, **self.stream.given}
            if isinstance(self.stream, Choice)
            else _paths(self.stream)
        )
        outputs = {
            "folder": None if self.folder is None else str(self.folder),
            "checkpoint_seconds": self.checkpoint_seconds,
        }
        K = self.hard_set
        data = {
            "format": FORMAT,
            "name": self.name,
            "title": self.title or None,
            "rounds": self.rounds,
            "seeds": self.seeds,
            "caution": self.cautions or None,
            "set": None if K is None else {"kind": K.name, **K.given},
            "stream": stream,
            "sweep": dict(self.swept) or None,
            "learners": [{"name": each.name, **each.given} for each in self.learners],
            "outputs": outputs,
        }
        return written({key: value for key, value in data.items() if value is not None})


def load(path: str | os.PathLike[str]) -> Experiment:
    """The experiment in a TOML file."""
    path = as_path(path, "The path of an experiment")
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{path} cannot be read as text in UTF-8: {error}.") from None
    except OSError as error:
        raise InvalidInput(f"No experiment can be read from {path}: {error.strerror}.") from None
    return read(text, path)


def read(text: str, path: Path) -> Experiment:
    """The experiment in the text of a file at `path`."""
    document = parse(text, str(path))
    data, folder = document.data, path.parent
    for key in data:
        if key not in _TOP:
            raise document.refused(
                f"an experiment has no key {key!r}; it takes {', '.join(_TOP)}.{hint(key, _TOP)}",
                key,
            )
    if (found := _typed(document, data, "format", int, FORMAT)) > FORMAT:
        raise NewerFormat(
            f"{document.place('format')}: this tidewolf reads formats up to {FORMAT}, not {found}. "
            "Install a newer tidewolf."
        )
    stream = _stream(document, folder)
    hard_set = _set(document, stream, folder)
    outputs = settings.read(
        document, ("outputs",), _table(document, data, "outputs"), _OUTPUTS, "[outputs]"
    )
    rounds = _typed(document, data, "rounds", int, None)
    _positive(document, rounds, "The number of rounds", "rounds")
    _positive(
        document,
        outputs.get("checkpoint_seconds"),
        "checkpoint_seconds",
        "outputs",
        "checkpoint_seconds",
    )
    return Experiment(
        name=_typed(document, data, "name", str, path.stem),
        stream=stream,
        hard_set=hard_set,
        learners=(entrants := _entries(document)),
        swept=_swept(document, entrants),
        rounds=rounds,
        seeds=tuple(_listed(document, "seeds", int)) or (0,),
        cautions=tuple(map(float, _listed(document, "caution", float))),
        title=_typed(document, data, "title", str, ""),
        folder=folder / outputs["folder"] if "folder" in outputs else None,
        checkpoint_seconds=outputs.get("checkpoint_seconds", 10.0),
        document=document,
    )


def learner_named(name: str) -> Any:
    """The learner or rival of this name."""
    known = {**_learners.every(), **_rivals.every()}
    if name in known:
        return known[name]
    raise InvalidInput(
        f"There is no learner called {name!r}; there are {', '.join(known)}.{hint(name, known)}"
    )


def problem_knobs(name: str) -> dict[str, Knob]:
    """The settings of a built-in problem that a file can give."""
    return {
        key: knob
        for key, knob in settings.knobs(_problems.named(name), "rounds", "seed", "return").items()
        if knob.plain
    }


def set_knobs(name: str) -> Mapping[str, Knob]:
    """The settings of a set that a file can give."""
    return FLOW if name == "FlowPolytope" else settings.knobs(plain_sets()[name])


def plain_sets() -> dict[str, type[Any]]:
    """The sets that a file can describe: by numbers, or by a graph."""
    kinds = {kind.__name__: kind for kind in _sets.every()}
    return {
        name: kind
        for name, kind in kinds.items()
        if name == "FlowPolytope"
        or ((knobs := settings.knobs(kind)) and all(knob.plain for knob in knobs.values()))
    }


def _setting(owner: str, pair: Any) -> tuple[str, Any]:
    """A setting's name and value, lists as tuples; what no file could say is refused."""
    if not isinstance(pair, tuple | list) or len(pair) != 2:
        raise WrongType(f"A setting of {owner} is a name and its value, not {shown(pair)}.")
    value = settings.frozen(pair[1])
    if not settings.plain(value):
        raise WrongType(
            f"{pair[0]} of {owner} must be a number, True or False, text, or a list of numbers, "
            f"not {shown(pair[1])}."
        )
    return as_text(pair[0], f"The name of a setting of {owner}"), value


def _range_of(pair: Any) -> tuple[str, tuple[Any, ...]]:
    """What a sweep runs through, by name, and its values."""
    if not isinstance(pair, tuple | list) or len(pair) != 2:
        raise WrongType(f"What a sweep runs through is a name and its values, not {shown(pair)}.")
    name, values = pair
    return as_text(name, "The name of what is swept"), tuple(
        _setting("a sweep", (name, value))[1]
        for value in as_items(values, f"The values of {name}", "[100, 200]")
    )


def _knobs_of(learner: str) -> dict[str, Knob]:
    return settings.knobs(learner_named(learner), "K")


def _refusal(name: str, problem: Problem) -> str | None:
    """Why a learner does not take this problem, by its settings or in its first round; None where
    it does.
    """
    try:
        learner = learner_named(name)(problem.K, horizon=len(problem))
        next(iter(play(learner, problem.stream[:1])), None)
    except NotSupported as error:
        return str(error)
    except TidewolfError:
        return None  # a mistake in what was given: the run says so
    return None


def _filled(choice: Choice, known: Mapping[str, Knob]) -> Choice:
    """With the defaults of what is not set, but for the seed, which is the run's, and what is
    None.
    """
    defaults = {
        key: knob.default
        for key, knob in known.items()
        if not knob.required and knob.default is not None and key != "seed"
    }
    given = {**defaults, **choice.given}
    return Choice.of(choice.name, {key: given[key] for key in known if key in given})


def _paths(tables: Tables) -> dict[str, str]:
    return {name: str(path) for name in TABLES if (path := getattr(tables, name)) is not None}


def _stream(document: Document, folder: Path) -> Choice | Tables:
    table = _table(document, document.data, "stream")
    if "problem" in table:
        name = _typed(document, table, "problem", str, "", "stream")
        try:
            known = problem_knobs(name)
        except InvalidInput as error:
            raise document.refused(str(error), "stream", "problem") from None
        for key in TABLES:
            if key in table:
                raise document.refused(
                    f"a stream is a problem or tables, not both; leave out problem or {key}.",
                    "stream",
                    key,
                )
        rest = {key: value for key, value in table.items() if key != "problem"}
        return Choice.of(
            name, settings.read(document, ("stream",), rest, known, f"The problem {name}")
        )
    if not table:
        ways = 'problem = "routing", or costs = "costs.csv" and capacities = "capacities.csv"'
        raise document.refused(f"an experiment needs a [stream]: {ways}.", "stream")
    known = {key: Knob(str, None) for key in ("problem", *TABLES)}
    given = {
        key: folder / value
        for key, value in settings.read(document, ("stream",), table, known, "[stream]").items()
    }
    if "costs" not in given:
        raise document.refused(
            "[stream] needs costs, the table of what each coordinate costs in each round.", "stream"
        )
    if ("capacities" in given) == ("weights" in given) or ("weights" in given) != (
        "budgets" in given
    ):
        raise document.refused(
            "[stream] needs limits: capacities, or else weights and budgets.", "stream"
        )
    return Tables(**given)


def _set(document: Document, stream: Choice | Tables, folder: Path) -> Choice | None:
    table = _table(document, document.data, "set")
    if isinstance(stream, Choice):
        if not table:
            return None
        if "K" not in settings.knobs(_problems.named(stream.name)):
            raise document.refused(
                f"the problem {stream.name} has a set of its own; leave [set] out.", "set"
            )
    elif not table:
        raise document.refused(
            'tables need a [set], such as kind = "FlowPolytope" with a graph, source and target.'
        )
    known = plain_sets()
    kind = _typed(
        document, table, "kind", str, "FlowPolytope" if set(table) & set(FLOW) else "", "set"
    )
    if kind not in known:
        said = (
            f"there is no set called {kind!r} that a file can describe"
            if kind
            else "[set] needs a kind"
        )
        raise document.refused(
            f"{said}; there are {', '.join(known)}.{hint(kind, known)}", "set", "kind"
        )
    rest = {key: value for key, value in table.items() if key != "kind"}
    knobs = dict(set_knobs(kind))
    if "n" in knobs and isinstance(stream, Tables):
        knobs["n"] = knobs["n"]._replace(default=None)  # as many as the tables have columns
    given = settings.read(document, ("set",), rest, knobs, kind)
    if kind == "FlowPolytope":
        for key in ("graph", "source", "target"):
            if key not in given:
                like = 'graph = "links.csv", source = "SEA", target = "NYC"'
                raise document.refused(f"a FlowPolytope needs {key}; for instance {like}.", "set")
        _positive(document, given.get("demand"), "The demand", "set", "demand")
        given["graph"] = str(folder / given["graph"])
    return Choice.of(kind, given)


def _entries(document: Document) -> tuple[Choice, ...]:
    entries = document.data.get("learners", [{"name": name} for name in DEFAULT_LEARNERS])
    if not isinstance(entries, list) or not entries:
        raise document.refused(
            'learners are tables, [[learners]] with name = "LyapunovDescent", or a list of names.',
            "learners",
        )
    found = []
    for i, entry in enumerate(entries):
        table = {"name": entry} if isinstance(entry, str) else entry
        if not isinstance(table, dict) or "name" not in table:
            raise document.refused(
                'a learner has a name, such as name = "LyapunovDescent".', "learners", i
            )
        name = _typed(document, table, "name", str, "", "learners", i)
        try:
            known = _knobs_of(name)
        except InvalidInput as error:
            raise document.refused(str(error), "learners", i, "name") from None
        rest = {key: value for key, value in table.items() if key != "name"}
        found.append(Choice.of(name, settings.read(document, ("learners", i), rest, known, name)))
    return tuple(dict.fromkeys(found))


def _swept(
    document: Document, entrants: Sequence[Choice]
) -> tuple[tuple[str, tuple[Any, ...]], ...]:
    """Lists of values, each of a kind that some learner takes."""
    kinds = {"horizons": Knob(int, None)}
    for entrant in entrants:
        kinds = {**_knobs_of(entrant.name), **kinds}
    found = []
    for key, given in _table(document, document.data, "sweep").items():
        if key not in kinds or key in ("horizon", "seed"):
            raise document.refused(
                "[sweep] takes horizons and settings of the learners, not "
                f"{key!r}.{hint(key, kinds)}",
                "sweep",
                key,
            )
        values = tuple(kinds[key].read(value) for value in given) if isinstance(given, list) else ()
        if not values or None in values:
            raise document.refused(
                f"{key} is a list, each of it {kinds[key].words}, not {settings.shown(given)}.",
                "sweep",
                key,
            )
        for value in values if key == "horizons" else ():
            _positive(document, value, "A horizon", "sweep", key)
        found.append((key, tuple(dict.fromkeys(values))))
    return tuple(found)


def _table(document: Document, data: Mapping[str, Any], key: str) -> dict[str, Any]:
    table = data.get(key, {})
    if not isinstance(table, dict):
        raise document.refused(f"{key} is a table, [{key}], not {settings.shown(table)}.", key)
    return table


def _typed(
    document: Document,
    table: Mapping[str, Any],
    key: str,
    kind: type[Any],
    default: Any,
    *path: str | int,
) -> Any:
    knob = Knob(kind, default)
    if key not in table:
        return default
    if (value := knob.read(table[key])) is None:
        raise document.refused(
            f"{key} is {knob.words}, not {settings.shown(table[key])}.", *path, key
        )
    return value


def _listed(document: Document, key: str, kind: type[Any]) -> Sequence[Any]:
    """Numbers of one kind: a list of them, or one; seeds are at least 0, values of the knob
    positive.
    """
    given = document.data.get(key, [])
    several, found = isinstance(given, list), []
    for i, value in enumerate(given if several else [given]):
        path = (key, i) if several else (key,)
        if (number := Knob(kind, None).read(value)) is None:
            one = "whole numbers" if kind is int else "numbers"
            raise document.refused(
                f"{key} are {one}, such as {key} = [1, 10], not {settings.shown(value)}.", *path
            )
        try:
            found.append(
                as_count(number, "A seed", least=0)
                if kind is int
                else as_number(number, "A value of caution", above=0.0)
            )
        except InvalidInput as error:
            raise document.refused(str(error), *path) from None
    if several and key in document.data and not found:
        raise document.refused(
            f"{key} is an empty list; leave it out, or give one value or more.", key
        )
    return list(dict.fromkeys(found))


def _positive(document: Document, value: Any, what: str, *path: str | int) -> None:
    if value is None:
        return
    try:
        as_count(value, what) if isinstance(value, int) else as_number(value, what, above=0.0)
    except InvalidInput as error:
        raise document.refused(str(error), *path) from None
