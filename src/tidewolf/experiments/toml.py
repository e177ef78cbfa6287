"""Settings of a TOML file or a request, with the line and column of each.

The standard library reads TOML and forgets lines. A second pass over the text, which is known to be
TOML by then, notes where every key and every item of a list begins, under its path:
("learners", 0, "caution").
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, TypeAlias

from tidewolf.core.errors import InvalidInput, TidewolfError
from tidewolf.core.settings import Setting
from tidewolf.files.format import PLAIN, FileFormat

Path: TypeAlias = tuple[str | int, ...]

_GAP = re.compile(r"(?:\s|#[^\n]*)*")
_COMMAS = re.compile(r"(?:\s|,|#[^\n]*)*")
_KEY = re.compile(r"""[ \t]*(?:"((?:[^"\\]|\\.)*)"|'([^']*)'|([A-Za-z0-9_-]+))[ \t]*""")
_STRINGS = re.compile(
    r'''"""(?:[^"\\]|\\.|"{1,2}(?!"))*"{3,5}|'''
    r"""\'\'\'(?:[^']|'{1,2}(?!'))*'{3,5}|"(?:[^"\\]|\\.)*"|'[^']*\'""",
    re.DOTALL,
)
_SCALAR = re.compile(r"[^,\]}#\n]*")


class Document(NamedTuple):
    """A file of settings and where each of them stands."""

    name: str
    """the file, as errors call it"""
    data: dict[str, Any]
    places: dict[Path, tuple[int, int]]
    """line and column of every key and item, from 1"""

    def place(self, *path: str | int) -> str:
        """Where this path, or what it belongs to, stands: "net.toml, line 7, column 1"."""
        for end in range(len(path), 0, -1):
            if path[:end] in self.places:
                line, column = self.places[path[:end]]
                return f"{self.name}, line {line}, column {column}"
        return self.name

    def refused(self, sentence: str, *path: str | int) -> InvalidInput:
        """An error about what stands at this path."""
        return InvalidInput(f"{self.place(*path)}: {sentence}")


class Request(Document):
    """What a request says: places are the keys that lead there, items counted from 1."""

    def place(self, *path: str | int) -> str:
        return ", ".join(str(key + 1 if isinstance(key, int) else key) for key in path) or self.name


class Place(NamedTuple):
    """Where a table stands in a document; nowhere if Python code gives it."""

    document: Document | None
    path: Path = ()
    format: FileFormat = PLAIN
    """how text is written in the files that it names"""

    def within(self, *path: str | int) -> Place:
        """The place of one of its keys."""
        return self._replace(path=(*self.path, *path))

    def words(self) -> str:
        """What a sentence begins with: "net.toml, line 7, column 1: ", or nothing."""
        return "" if self.document is None else f"{self.document.place(*self.path)}: "


def with_location(
    error: TidewolfError, place: Place, known: Mapping[str, Setting] | None = None
) -> TidewolfError:
    """The same error, with the place of the setting that it carries in front."""
    keys = [each.key for each in (known or {}).values() if each.name == error.setting]
    error.args = (f"{place.within(*keys).words()}{error}", *error.args[1:])
    return error


def parse(text: str, name: str) -> Document:
    """A TOML text with its places."""
    text = text.removeprefix("\ufeff").replace("\r\n", "\n")
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        found = re.fullmatch(
            r"(.*) \(at (?:line (\d+), column (\d+)|end of document)\)", str(error), re.DOTALL
        )
        if found is None:
            raise InvalidInput(f"{name} is not TOML: {error}.") from None
        line, column = (
            (found[2], found[3]) if found[2] else _line_and_column(text, len(text.rstrip()))
        )
        raise InvalidInput(
            f"{name}, line {line}, column {column}: this is not TOML: {found[1]}."
        ) from None
    except RecursionError:
        raise InvalidInput(
            f"{name} cannot be read: its lists or tables are nested too deep."
        ) from None
    except ValueError as error:  # a number with more digits than Python reads
        raise InvalidInput(f"{name} cannot be read: {error}.") from None
    return Document(name, data, _places(text))


def to_toml(data: Mapping[str, Any]) -> str:
    """Plain data as TOML: values first, then tables, then lists of tables.

    What is None is left out.
    """
    return "\n".join(_lines(data, "")) + "\n"


def _lines(data: Mapping[str, Any], head: str) -> Iterable[str]:
    for key, value in data.items():
        if value is not None and not _tables(value):
            yield f"{_bare(key)} = {_value(value)}"
    for key, value in data.items():
        path = f"{head}{_bare(key)}"
        if isinstance(value, Mapping):
            yield from ("", f"[{path}]", *_lines(value, f"{path}."))
        elif _tables(value):
            for item in value:
                yield from ("", f"[[{path}]]", *_lines(item, f"{path}."))


def _tables(value: Any) -> bool:
    return isinstance(value, Mapping) or (
        isinstance(value, list | tuple) and bool(value) and isinstance(value[0], Mapping)
    )


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_value, value))}]"
    return repr(value)


def _bare(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else _value(key)


def _places(text: str) -> dict[Path, tuple[int, int]]:
    places: dict[Path, tuple[int, int]] = {}
    counts: dict[Path, int] = {}
    table: Path = ()
    at = _skip(_GAP, text, 0)
    while at < len(text):
        begin = at
        if text[at] == "[":
            brackets = 2 if text.startswith("[[", at) else 1
            keys, at = _keys(text, at + brackets)
            table = ()
            for i, key in enumerate(keys):
                table = (*table, key)
                if brackets == 2 and i == len(keys) - 1:
                    counts[table] = counts.get(table, -1) + 1
                if table in counts:
                    table = (*table, counts[table])
            places.setdefault(table, _line_and_column(text, begin))
            at += brackets
        else:
            at = _pair(text, at, table, places)
        at = _skip(_GAP, text, at)
    return places


def _pair(text: str, at: int, table: Path, places: dict[Path, tuple[int, int]]) -> int:
    """Note a key and what is in its value; answers where that ends."""
    keys, end = _keys(text, at)
    for i in range(len(keys)):
        places.setdefault((*table, *keys[: i + 1]), _line_and_column(text, at))
    return _value_end(text, end + 1, (*table, *keys), places)


def _keys(text: str, at: int) -> tuple[tuple[str, ...], int]:
    """A dotted key, and where it ends."""
    keys = []
    while True:
        found = _KEY.match(text, at)
        assert found is not None
        keys.append(tomllib.loads(f"k = {found[0].strip()}")["k"] if found[3] is None else found[3])
        at = found.end()
        if text[at] != ".":
            return tuple(keys), at
        at += 1


def _value_end(text: str, at: int, path: Path, places: dict[Path, tuple[int, int]]) -> int:
    at = _skip(_GAP, text, at)
    if text[at] in "\"'":
        found = _STRINGS.match(text, at)
        assert found is not None
        return found.end()
    if text[at] not in "[{":
        return _skip(_SCALAR, text, at)
    close, i = "]" if text[at] == "[" else "}", 0
    at = _skip(_COMMAS, text, at + 1)
    while text[at] != close:
        if close == "]":
            places[(*path, i)] = _line_and_column(text, at)
            at, i = _value_end(text, at, (*path, i), places), i + 1
        else:
            at = _pair(text, at, path, places)
        at = _skip(_COMMAS, text, at)
    return at + 1


def _skip(what: re.Pattern[str], text: str, at: int) -> int:
    found = what.match(text, at)
    return at if found is None else found.end()


def _line_and_column(text: str, at: int) -> tuple[int, int]:
    return text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)
