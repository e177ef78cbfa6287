"""From a TOML file to an experiment. What it does not know is refused with the line and column.

    [set]  [stream]  [[learners]]  rounds  seeds  caution  [files]  [sweep]  [outputs]

Paths are seen from the file's folder.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tidewolf.core.arguments import as_path
from tidewolf.core.errors import InvalidInput, NewerFormat
from tidewolf.core.names import did_you_mean
from tidewolf.core.settings import Check, Count, Number, Seed, Setting, Text, settings_of
from tidewolf.experiments.choice import Choice
from tidewolf.experiments.experiment import (
    DEFAULT_LEARNERS,
    FILE_FORMAT,
    FORMS,
    TABLES,
    Experiment,
    Tables,
)
from tidewolf.experiments.keys import (
    NETWORK,
    Keys,
    format_value,
    function_kinds,
    key,
    kind_keys,
    learner_keys,
    moved,
    names_file,
    problem_keys,
    set_kinds,
    takes_a_set,
    words_of,
)
from tidewolf.experiments.toml import Document, parse
from tidewolf.experiments.toml_tables import read_choice, read_settings, read_value
from tidewolf.files.format import FileFormat
from tidewolf.files.gaps import GAPS
from tidewolf.networks import Network

OUTPUTS: Keys = {
    "folder": key("folder", Text("Where results go.")),
    "checkpoint_seconds": key(
        "checkpoint_seconds", Number("How much work a power cut may cost.", above=0.0)
    ),
    "decisions": key("decisions", Text("Which files of decisions there are.", choices=FORMS)),
}
_HORIZONS = key("horizons", Count("Numbers of rounds, each in place of `rounds`.", unit="rounds"))
_GAPS = key(
    "gaps",
    Text(
        'What is done about cells without a number and rows that a table lacks: "refuse", '
        '"unseen" (such rounds are played, and nobody learns from them), "last" (the last number '
        "of the column).",
        choices=GAPS,
    ),
)
_TABLES: Keys = {
    name: key(name, Text(sentence))
    for name, sentence in {
        "problem": "The name of a built-in problem.",
        "costs": "The table of what each coordinate costs in each round.",
        "capacities": "The table of what each coordinate may be at most in each round.",
        "weights": "The table of what each coordinate uses of the budget in each round.",
        "budgets": "The table of the budget of each round, one column.",
        "demands": "The table of what each commodity of a network sends in each round.",
        "context": "The table of what kind of round each is: categories, or weights of them.",
    }.items()
} | {"gaps": _GAPS}
TOP = (
    "format",
    "name",
    "title",
    "rounds",
    "seeds",
    "caution",
    "incumbent",
    "set",
    "stream",
    "learners",
    "files",
    "sweep",
    "outputs",
)
"""The keys of a file outside any table."""


def load(path: str | os.PathLike[str]) -> Experiment:
    """The experiment in a TOML file.

    Parameters
    ----------
    path : str or path
        The file; the paths in it are seen from its folder. `tidewolf new` writes one with every
        key explained.

    Returns
    -------
    Experiment
        What the file says, every setting of a kind that is accepted. Tables and graphs are read
        when it is built (`Experiment.problem`).

    Raises
    ------
    InvalidInput
        Where the file cannot be read, or says something that is not accepted: the sentence begins
        with file, line and column.
    NewerFormat
        Where a newer tidewolf wrote the file.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "small.toml"
    >>> _ = file.write_text('rounds = 20\\n[stream]\\nproblem = "adversarial"\\n')
    >>> experiment = tw.experiments.load(file)
    >>> experiment.name, len(experiment.problem(seed=0))
    ('small', 20)
    """
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
    for name in data:
        if name not in TOP:
            raise document.refused(
                f"an experiment has no key {name!r}; it takes {', '.join(TOP)}."
                f"{did_you_mean(name, TOP)}",
                name,
            )
    if (found := _value(document, "format", Count(), FILE_FORMAT)) > FILE_FORMAT:
        raise NewerFormat(
            f"{document.place('format')}: this tidewolf reads formats up to {FILE_FORMAT}, not "
            f"{found}. Install a newer tidewolf."
        )
    stream = _stream(document, folder)
    outputs = read_settings(
        document, ("outputs",), _table(document, "outputs"), OUTPUTS, "[outputs]"
    )
    learners = _learners(document, folder)
    return Experiment(
        name=_value(document, "name", Text(), path.stem),
        stream=stream,
        hard_set=_set(document, stream, folder),
        learners=learners,
        swept=_swept(document, learners),
        rounds=_value(document, "rounds", Count(), None),
        seeds=_values(document, "seeds", Seed()) or (0,),
        cautions=_values(document, "caution", Number(above=0.0)),
        title=_value(document, "title", Text(), ""),
        folder=folder / outputs["folder"] if "folder" in outputs else None,
        checkpoint_seconds=outputs.get("checkpoint_seconds", 10.0),
        files=_files(document),
        decisions=outputs.get("decisions"),
        incumbent=_incumbent(document, folder),
        document=document,
    )


def _files(document: Document) -> FileFormat:
    """How text is written in the files that an experiment names."""
    known: Keys = {
        name: key(name, setting.check)
        for name, setting in settings_of(FileFormat).items()
        if setting.check is not None
    }
    given = read_settings(document, ("files",), _table(document, "files"), known, "[files]")
    return FileFormat(**given)


def _incumbent(document: Document, folder: Path) -> Path | None:
    given = _value(document, "incumbent", Text(), None)
    return None if given is None else folder / given


def _stream(document: Document, folder: Path) -> Choice | Tables:
    table = _table(document, "stream")
    if "problem" in table:
        return _problem(document, table)
    if not table and not _is_network(_table(document, "set")):
        ways = 'problem = "routing", or costs = "costs.csv" and capacities = "capacities.csv"'
        raise document.refused(f"an experiment needs a [stream]: {ways}.", "stream")
    parts = {name: table[name] for name in ("losses", "constraints") if name in table}
    rest = {name: value for name, value in table.items() if name not in {*parts, "advice"}}
    tables = read_settings(document, ("stream",), rest, _TABLES, "[stream]")
    gaps = {"gaps": tables.pop("gaps")} if "gaps" in tables else {}
    given = (
        gaps
        | {name: folder / value for name, value in tables.items()}
        | {
            name: moved(
                read_choice(document, ("stream", name), part, function_kinds()), folder.joinpath
            )
            for name, part in parts.items()
        }
    )
    advice = _advice(document, table["advice"], folder) if "advice" in table else {}
    try:
        return Tables(**given, advice=tuple(advice.items()))
    except InvalidInput as error:
        raise document.refused(str(error), "stream") from None


def _advice(document: Document, named: Any, folder: Path) -> dict[str, Path]:
    """Tables of points by name."""
    path = ("stream", "advice")
    if not isinstance(named, dict) or not named:
        such = 'advice = {incumbent = "incumbent.csv"}'
        raise document.refused(
            f"advice is a table of names, each with a table of points, such as {such}, not "
            f"{format_value(named)}.",
            *path,
        )
    return {
        name: folder / read_value(document, (*path, name), value, key(name, Text()))
        for name, value in named.items()
    }


def _problem(document: Document, table: Mapping[str, Any]) -> Choice:
    name = read_value(document, ("stream", "problem"), table["problem"], _TABLES["problem"])
    try:
        known = problem_keys(name)
    except InvalidInput as error:
        raise document.refused(str(error), "stream", "problem") from None
    for other in (*TABLES, "losses", "constraints", "context", "advice"):
        if other in table:
            raise document.refused(
                f"a stream is a problem or tables, not both; leave out problem or {other}.",
                "stream",
                other,
            )
    rest = {name: value for name, value in table.items() if name != "problem"}
    return Choice.of(name, read_settings(document, ("stream",), rest, known, f"The problem {name}"))


def _set(document: Document, stream: Choice | Tables, folder: Path) -> Choice | None:
    table = _table(document, "set")
    if isinstance(stream, Choice):
        if not table:
            return None
        if not takes_a_set(stream.name):
            raise document.refused(
                f"the problem {stream.name} has a set of its own; leave [set] out.", "set"
            )
    elif not table:
        raise document.refused(
            'tables need a [set], such as kind = "Simplex", or a graph with source and target.'
        )
    if _is_network(table):
        known = kind_keys(Network)
        rest = {name: value for name, value in table.items() if name != "kind"}
        given = read_settings(document, ("set",), rest, known, "A network")
        return moved(Choice.of(NETWORK, given), folder.joinpath)
    # as many as the costs have columns
    optional = ["n"] if isinstance(stream, Tables) and stream.costs is not None else []
    return moved(read_choice(document, ("set",), table, set_kinds(), *optional), folder.joinpath)


def _is_network(table: Mapping[str, Any]) -> bool:
    """Whether [set] describes a network: it says so, or has a graph with ends and no kind."""
    if "kind" in table:
        return bool(table["kind"] == NETWORK)
    return "graph" in table and bool(table.keys() & {"source", "target", "commodities"})


def _learners(document: Document, folder: Path) -> tuple[Choice, ...]:
    entries = document.data.get("learners", [{"name": name} for name in DEFAULT_LEARNERS])
    if not isinstance(entries, list) or not entries:
        raise document.refused(
            'learners are tables, [[learners]] with name = "Ensemble", or a list of names.',
            "learners",
        )
    found = []
    for i, entry in enumerate(entries):
        table = {"name": entry} if isinstance(entry, str) else entry
        if not isinstance(table, dict) or "name" not in table:
            raise document.refused(
                'a learner has a name, such as name = "Ensemble".', "learners", i
            )
        path = ("learners", i)
        name = read_value(document, (*path, "name"), table["name"], key("name", Text()))
        try:
            known = learner_keys(name)
        except InvalidInput as error:
            raise document.refused(str(error), *path, "name") from None
        rest = {name: value for name, value in table.items() if name != "name"}
        given = read_settings(document, path, rest, known, name)
        found.append(
            Choice.of(
                name,
                {
                    key: str(folder / value) if names_file(known, key, value) else value
                    for key, value in given.items()
                },
            )
        )
    return tuple(dict.fromkeys(found))


def _swept(
    document: Document, learners: Sequence[Choice]
) -> tuple[tuple[str, tuple[Any, ...]], ...]:
    """Lists of values, each of a kind that some learner takes."""
    known: dict[str, Setting] = {}
    for learner in learners:
        known = {**learner_keys(learner.name), **known}
    known = {**known, "horizons": _HORIZONS}
    found = []
    for name, given in _table(document, "sweep").items():
        if name not in known or name in ("horizon", "seed"):
            raise document.refused(
                "[sweep] takes horizons and settings of the learners, not "
                f"{name!r}.{did_you_mean(name, known)}",
                "sweep",
                name,
            )
        if not isinstance(given, list) or not given:
            each = f"each of it {words_of(known[name])}"
            raise document.refused(
                f"{name} is a list, {each}, not {format_value(given)}.", "sweep", name
            )
        values = [
            read_value(document, ("sweep", name, i), value, known[name])
            for i, value in enumerate(given)
        ]
        found.append((name, tuple(dict.fromkeys(values))))
    return tuple(found)


def _table(document: Document, name: str) -> dict[str, Any]:
    table = document.data.get(name, {})
    if not isinstance(table, dict):
        raise document.refused(f"{name} is a table, [{name}], not {format_value(table)}.", name)
    return table


def _value(document: Document, name: str, check: Check, default: Any) -> Any:
    """The value of a key outside any table."""
    if name not in document.data:
        return default
    return read_value(document, (name,), document.data[name], key(name, check))


def _values(document: Document, name: str, check: Check) -> tuple[Any, ...]:
    """Values of one kind, each once: a list of them, or one."""
    given = document.data.get(name)
    if not isinstance(given, list):
        return () if given is None else (_value(document, name, check, None),)
    if not given:
        raise document.refused(
            f"{name} is an empty list; leave it out, or give one value or more.", name
        )
    one = key(name, check)
    found = [read_value(document, (name, i), value, one) for i, value in enumerate(given)]
    return tuple(dict.fromkeys(found))
