"""Read experiments from TOML files. Errors name file, line and column.

    [set]  [stream]  [[learners]]  rounds  seeds  caution  [files]  [sweep]  [outputs]

The standard library reads TOML and forgets lines. A second pass over the text, which is known to be
TOML by then, notes where every table and every key at the start of a line stands, under its path:
("learners", 0, "caution"). An error within the value of a key has the place of that key.
"""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from tidewolf.core.arguments import as_path, import_extra
from tidewolf.core.errors import InvalidInput, NewerFormat, TidewolfError
from tidewolf.core.settings import Setting
from tidewolf.files.format import PLAIN, FileFormat

if TYPE_CHECKING:
    from tidewolf.experiments.experiment import Experiment

Keys: TypeAlias = tuple[str | int, ...]
FILE_FORMAT = 1
_STRING_OR_COMMENT = re.compile(
    r'''"""(?:[^"\\]|\\.|"{1,2}(?!"))*"{3,5}|'''
    r"""\'\'\'(?:[^']|'{1,2}(?!'))*'{3,5}|"(?:[^"\\]|\\.)*"|'[^']*\'|#[^\n]*""",
    re.DOTALL,
)


class Document(NamedTuple):
    """A file of settings and where each of them stands."""

    name: str
    """the file, as errors call it"""
    data: dict[str, Any]
    places: dict[Keys, tuple[int, int]]
    """line and column of tables and keys, from 1"""

    def place(self, *path: str | int) -> str:
        """Where this path, or what it belongs to, stands: "net.toml, line 7, column 1"."""
        for end in range(len(path), 0, -1):
            if path[:end] in self.places:
                line, column = self.places[path[:end]]
                items = [f", item {key + 1}" for key in path[end:] if isinstance(key, int)]
                return f"{self.name}, line {line}, column {column}{''.join(items)}"
        return self.name


class Request(Document):
    """What a request says: places are the keys that lead there, items counted from 1."""

    def place(self, *path: str | int) -> str:
        return ", ".join(str(key + 1 if isinstance(key, int) else key) for key in path) or self.name


class Place(NamedTuple):
    """Where a table stands in a document; nowhere if Python code gives it."""

    document: Document | None
    path: Keys = ()
    format: FileFormat = PLAIN
    """how text is written in the files that it names"""

    def within(self, *path: str | int) -> Place:
        """The place of one of its keys."""
        return self._replace(path=(*self.path, *path))

    def words(self) -> str:
        """What a sentence begins with: "net.toml, line 7, column 1: ", or nothing."""
        return "" if self.document is None else f"{self.document.place(*self.path)}: "


@contextmanager
def located(place: Place, known: Mapping[str, Setting] | None = None) -> Iterator[None]:
    """An error gets the place of the setting that it carries in front."""
    try:
        yield
    except TidewolfError as error:
        names = [each.key for each in (known or {}).values() if each.name == error.setting]
        error.args = (f"{place.within(*names).words()}{error}", *error.args[1:])
        raise


def load(path: str | os.PathLike[str]) -> Experiment:
    """Read an experiment from a TOML file.

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
        If the file cannot be read, or a key or value is not accepted: the sentence begins with
        file, line and column.
    NewerFormat
        If a newer tidewolf wrote the file.

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
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"No experiment can be read from {path}: {error}.") from None
    return read(text, path)


def read(text: str, path: Path) -> Experiment:
    """The experiment in the text of a file at `path`."""
    import_extra("pydantic", "Reading experiment files", "app")
    from tidewolf.experiments.models import read_file

    document = parse(text, str(path))
    written_by = document.data.get("format")
    if type(written_by) is int and written_by > FILE_FORMAT:
        known = f"this tidewolf reads formats up to {FILE_FORMAT}, not {written_by}"
        raise NewerFormat(f"{document.place('format')}: {known}. Install a newer tidewolf.")
    return read_file(document, path)


def parse(text: str, name: str) -> Document:
    """A TOML text with its places."""
    text = text.removeprefix("\ufeff").replace("\r\n", "\n")
    try:
        return Document(name, tomllib.loads(text), dict(reversed([*_places(text)])))
    except tomllib.TOMLDecodeError as error:
        end = _line_and_column(text, len(text.rstrip()))
        sentence, _, where = str(error).rpartition(" (at ")
        line, column = re.findall(r"\d+", where) or end
        where = f"{name}, line {line}, column {column}"
        raise InvalidInput(f"{where}: this is not TOML: {sentence}.") from None
    except (RecursionError, ValueError) as error:  # too deep; a number of thousands of digits
        raise InvalidInput(f"{name} cannot be read as TOML: {error}.") from None


def _places(text: str) -> Iterator[tuple[Keys, tuple[int, int]]]:
    """Line and column of each table, and of each key at the start of a line."""
    plain = _STRING_OR_COMMENT.sub(
        lambda found: (" " if found[0][0] == "#" else "_") * len(found[0]), text
    )
    counts, table, depth, at = Counter[Keys](), Keys(), 0, 0
    for line in plain.split("\n"):
        if depth == 0 and line.strip():
            begin = at + len(line) - len(line.lstrip())
            brackets = len(line.lstrip()) - len(line.lstrip().lstrip("["))
            end = at + (line.rindex("]" * brackets) if brackets else line.index("="))
            keys = _dotted(text[begin + brackets : end])
            if brackets:
                table = ()
                for i, key in enumerate(keys, start=1):
                    table = (*table, key)
                    counts[table] += brackets == 2 and i == len(keys)
                    if counts[table]:
                        table = (*table, counts[table] - 1)
                yield table, _line_and_column(text, begin)
            for i in range(0 if brackets else len(keys)):
                yield (*table, *keys[: i + 1]), _line_and_column(text, begin)
        depth += sum(map(line.count, "[{")) - sum(map(line.count, "]}"))
        at += len(line) + 1


def _dotted(text: str) -> list[str]:
    """The parts of a key such as stream."SEA > DEN"."""
    keys, rest = [], tomllib.loads(f"{text} = 0")
    while isinstance(rest, dict):
        ((key, rest),) = rest.items()
        keys.append(key)
    return keys


def _line_and_column(text: str, at: int) -> tuple[int, int]:
    return text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)


def to_toml(data: Mapping[str, Any]) -> str:
    """Plain data as TOML: values first, then tables and lists of tables; what is within them is
    inline. What is None is left out.
    """
    there = {key: value for key, value in data.items() if value is not None}
    plain, tables = dict[str, Any](), list[str]()
    for key, value in there.items():
        if isinstance(value, Mapping):
            tables += ["", f"[{_bare(key)}]", *_pairs(value)]
        elif isinstance(value, list | tuple) and value and isinstance(value[0], Mapping):
            for item in value:
                tables += ["", f"[[{_bare(key)}]]", *_pairs(item)]
        else:
            plain[key] = value
    return "\n".join([*_pairs(plain), *tables]) + "\n"


def _pairs(table: Mapping[str, Any]) -> list[str]:
    return [f"{_bare(key)} = {_value(at)}" for key, at in table.items() if at is not None]


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, Mapping):
        return f"{{{', '.join(_pairs(value))}}}"
    return f"[{', '.join(map(_value, value))}]" if isinstance(value, list | tuple) else repr(value)


def _bare(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else _value(key)
