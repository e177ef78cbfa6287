"""From a TOML file to an experiment. What it does not know is refused with the line and column.

    [set]  [stream]  [[learners]]  rounds  seeds  caution  [files]  [sweep]  [outputs]

Paths are seen from the file's folder.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tidewolf.core.arguments import as_path
from tidewolf.core.errors import InvalidInput, MissingExtra, NewerFormat
from tidewolf.core.names import did_you_mean
from tidewolf.core.settings import Count, Setting, Text
from tidewolf.experiments.choice import Choice
from tidewolf.experiments.experiment import (
    DEFAULT_LEARNERS,
    FILE_FORMAT,
    TABLES,
    Experiment,
    Tables,
)
from tidewolf.experiments.keys import (
    NETWORK,
    function_kinds,
    key,
    kind_keys,
    learner_keys,
    moved,
    names_file,
    problem_keys,
    set_kinds,
    takes_a_set,
)
from tidewolf.experiments.toml import Document, parse
from tidewolf.experiments.toml_tables import read_choice, read_settings, read_value
from tidewolf.files.format import FileFormat
from tidewolf.networks import Network

if TYPE_CHECKING:
    from tidewolf.experiments.models import File

_HORIZONS = key("horizons", Count("Numbers of rounds, each in place of `rounds`.", unit="rounds"))


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
    try:
        from tidewolf.experiments.models import File, read_model
    except ImportError:
        raise MissingExtra(
            'Experiment files are read with pydantic: pip install "tidewolf[app]".'
        ) from None
    document = parse(text, str(path))
    folder, file = path.parent, read_model(File, document)
    if file.format > FILE_FORMAT:
        raise NewerFormat(
            f"{document.place('format')}: this tidewolf reads formats up to {FILE_FORMAT}, not "
            f"{file.format}. Install a newer tidewolf."
        )
    stream = _stream(document, file, folder)
    learners = _learners(document, folder)
    outputs = file.outputs
    return Experiment(
        name=path.stem if file.name is None else file.name,
        stream=stream,
        hard_set=_set(document, stream, folder),
        learners=learners,
        swept=_swept(document, file, learners),
        rounds=file.rounds,
        seeds=_each(file.seeds),
        cautions=_each(file.caution),
        title=file.title,
        folder=None if outputs.folder is None else folder / outputs.folder,
        checkpoint_seconds=outputs.checkpoint_seconds,
        files=FileFormat(**file.files.given),
        decisions=outputs.decisions,
        smallest_path=outputs.smallest_path,
        incumbent=None if file.incumbent is None else folder / file.incumbent,
        document=document,
    )


def _each(given: Any) -> tuple[Any, ...]:
    """Values, each once: a list of them, or one."""
    if given is None:
        return ()
    return tuple(dict.fromkeys(given if isinstance(given, list) else [given]))


def _stream(document: Document, file: File, folder: Path) -> Choice | Tables:
    from tidewolf.experiments.models import Rows, read_model

    if "problem" in file.stream:
        return _problem(document, file.stream)
    if not file.stream and not _is_network(file.set):
        ways = 'problem = "routing", or costs = "costs.csv" and capacities = "capacities.csv"'
        raise document.refused(f"an experiment needs a [stream]: {ways}.", "stream")
    given = read_model(Rows, document, "stream").given if file.stream else {}
    for name in (*TABLES, "context"):
        if name in given:
            given[name] = folder / given[name]
    for name in ("losses", "constraints"):
        if name in given:
            part = read_choice(document, ("stream", name), given[name], function_kinds())
            given[name] = moved(part, folder.joinpath)
    if "advice" in given:
        given["advice"] = tuple((name, folder / one) for name, one in given["advice"].items())
    try:
        return Tables(**given)
    except InvalidInput as error:
        raise document.refused(str(error), "stream") from None


def _problem(document: Document, table: Mapping[str, Any]) -> Choice:
    name = read_value(document, ("stream", "problem"), table["problem"], key("problem", Text()))
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
    table = document.data.get("set", {})
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
    entries = document.data.get("learners", DEFAULT_LEARNERS)
    found = []
    for i, entry in enumerate(entries):
        table = {"name": entry} if isinstance(entry, str) else entry
        if "name" not in table:
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
    document: Document, file: File, learners: Sequence[Choice]
) -> tuple[tuple[str, tuple[Any, ...]], ...]:
    """Lists of values, each of a kind that some learner takes."""
    known: dict[str, Setting] = {}
    for learner in learners:
        known = {**learner_keys(learner.name), **known}
    known = {**known, "horizons": _HORIZONS}
    found = []
    for name, given in file.sweep.items():
        if name not in known or name in ("horizon", "seed"):
            raise document.refused(
                "[sweep] takes horizons and settings of the learners, not "
                f"{name!r}.{did_you_mean(name, known)}",
                "sweep",
                name,
            )
        values = [
            read_value(document, ("sweep", name, i), value, known[name])
            for i, value in enumerate(given)
        ]
        found.append((name, tuple(dict.fromkeys(values))))
    return tuple(found)
