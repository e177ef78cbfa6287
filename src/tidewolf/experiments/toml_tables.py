"""Tables of a file, read by the keys that they may have; what is wrong is said with its place."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from tidewolf.core.arrays import LARGEST_COUNT, as_count
from tidewolf.core.errors import InvalidInput, TidewolfError
from tidewolf.core.names import did_you_mean
from tidewolf.core.settings import Setting
from tidewolf.experiments.choice import Choice, sayable
from tidewolf.experiments.keys import (
    FileKey,
    Keys,
    format_value,
    function_kinds,
    inner_of,
    kind_keys,
    read_plain,
    set_kinds,
    words_of,
)
from tidewolf.experiments.toml import Document
from tidewolf.files.format import PLAIN, FileFormat
from tidewolf.sets import ConvexSet

_DEEPEST = 20
"""Keys from the top of a file to a set within sets: Python's stack is not for files to fill."""


class Place(NamedTuple):
    """Where a table stands in a file; nowhere where Python code says what it says."""

    document: Document | None
    path: tuple[str | int, ...] = ()
    format: FileFormat = PLAIN
    """how text is written in the files that it names"""

    def within(self, *path: str | int) -> Place:
        """The place of one of its keys."""
        return self._replace(path=(*self.path, *path))

    def words(self) -> str:
        """What a sentence begins with: "net.toml, line 7, column 1: ", or nothing."""
        return "" if self.document is None else f"{self.document.place(*self.path)}: "


def with_location(error: TidewolfError, place: Place, known: Keys | None = None) -> TidewolfError:
    """The same error, with the place of the setting that it carries in front."""
    keys = [each.key for each in (known or {}).values() if each.name == error.setting]
    error.args = (f"{place.within(*keys).words()}{error}", *error.args[1:])
    return error


def read_settings(
    document: Document,
    path: tuple[str | int, ...],
    table: Mapping[str, Any],
    known: Keys,
    owner: str,
) -> dict[str, Any]:
    """The settings of a table, frozen; keys that nobody knows are refused, and those missing."""
    settings = {}
    for name, value in table.items():
        if name not in known:
            accepted = f"it takes {', '.join(known)}" if known else "it takes none"
            raise document.refused(
                f"{owner} has no setting called {name!r}; {accepted}.{did_you_mean(name, known)}",
                *path,
                name,
            )
        settings[name] = read_value(document, (*path, name), value, known[name])
    for name, setting in known.items():
        if setting.required and name not in settings:
            raise document.refused(f"{owner} needs {name}, {words_of(setting)}.", *path)
    return {name: settings[name] for name in known if name in settings}


def read_value(
    document: Document, path: tuple[str | int, ...], value: Any, setting: Setting
) -> Any:
    """The value of one key, frozen; what is of another kind is refused."""
    part = inner_of(setting)
    if part is not None:
        kinds: Mapping[str, type] = set_kinds() if part.kind is ConvexSet else function_kinds()
        if not part.several:
            return read_choice(document, path, value, kinds)
        if isinstance(value, list) and value:
            return tuple(
                read_choice(document, (*path, i), each, kinds) for i, each in enumerate(value)
            )
    found = None if part is not None else read_plain(setting, value)
    if found is None or not sayable(found):
        raise document.refused(
            f"{setting.key} is {words_of(setting)}, not {format_value(value)}.", *path
        )
    try:
        if type(value) is int:
            as_count(value, setting.key, least=-LARGEST_COUNT)
        if isinstance(setting, FileKey) and setting.check is not None:
            return setting.check(found, setting.key)
    except InvalidInput as error:
        raise document.refused(str(error), *path) from None
    return found


def read_choice(
    document: Document,
    path: tuple[str | int, ...],
    table: Any,
    kinds: Mapping[str, type],
    *optional: str,
) -> Choice:
    """A set or a batch of functions: a table with a kind and its settings, some of which may be
    left out here.
    """
    name = ".".join(map(str, path))
    if len(path) > _DEEPEST:
        raise document.refused("sets within sets go no deeper here; describe a simpler one.", *path)
    if not isinstance(table, dict):
        raise document.refused(
            f'{name} is a table with a kind, such as kind = "{next(iter(kinds))}", not '
            f"{format_value(table)}.",
            *path,
        )
    kind = table.get("kind", implied_kind(table, kinds))
    if not isinstance(kind, str):
        raise document.refused(f"kind is text, not {format_value(kind)}.", *path, "kind")
    if kind not in kinds:
        what = "set" if set_kinds().keys() == kinds.keys() else "function"
        said = (
            f"there is no {what} called {kind!r} that a file can describe"
            if kind
            else f"[{name}] needs a kind"
        )
        raise document.refused(
            f"{said}; there are {', '.join(kinds)}.{did_you_mean(kind, kinds)}", *path, "kind"
        )
    known = {
        name: setting._replace(default=None) if name in optional else setting
        for name, setting in kind_keys(kinds[kind]).items()
    }
    rest = {name: value for name, value in table.items() if name != "kind"}
    return Choice.of(kind, read_settings(document, path, rest, known, kind))


def implied_kind(table: Mapping[str, Any], kinds: Mapping[str, type]) -> str:
    """The kind of a table with a graph that names none: the one that knows most of its keys."""
    if "graph" not in table:
        return ""
    fit = {
        name: len(table.keys() & known.keys())
        for name, kind in kinds.items()
        if "graph" in (known := kind_keys(kind))
    }
    best = [name for name, count in fit.items() if count == max(fit.values())]
    return best[0] if len(best) == 1 else ""
