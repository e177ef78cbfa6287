"""What tidewolf says it needs: the libraries, the lowest version of each, and the extra that brings
it.

In a checkout pyproject.toml is read, which is never older than the code beside it; elsewhere the
metadata that pip left.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, metadata, requires, version
from pathlib import Path
from typing import Any, NamedTuple

PACKAGE = Path(__file__).parent.parent
WORKSHOP = frozenset({"ci", "dev", "docs"})
"""Extras for who works on tidewolf itself; nobody else misses them."""
_MODULES = {"scikit-learn": "sklearn"}


class Requirement(NamedTuple):
    """A library, the lowest version that is declared, and the extra it belongs to ("": always)."""

    name: str
    lowest: str | None
    extra: str

    @property
    def module(self) -> str:
        """What it is called when it is imported."""
        return _MODULES.get(self.name, self.name.replace("-", "_"))


class Declared(NamedTuple):
    """What is declared, and where that stands."""

    version: str | None
    """of tidewolf, as pip has it; None where it is run from a folder"""
    python: str | None
    """the lowest version of Python"""
    requirements: list[Requirement]


def read_declared() -> Declared:
    """From pyproject.toml beside the source, else from the metadata; nothing where neither is."""
    try:
        installed: str | None = version("tidewolf")
        python: str | None = metadata("tidewolf")["Requires-Python"]
        lines: Iterable[str] = requires("tidewolf") or ()
    except PackageNotFoundError:
        installed, python, lines = None, None, ()
    if project := _project(PACKAGE.parent.parent / "pyproject.toml"):
        python = project.get("requires-python")
        lines = [*project.get("dependencies", ())]
        for extra, more in project.get("optional-dependencies", {}).items():
            lines += [f"{line} ; extra == '{extra}'" for line in more]
    found = [requirement for line in lines if (requirement := parse_requirement(line))]
    return Declared(installed, lowest_of(python or ""), found)


def parse_requirement(line: str) -> Requirement | None:
    """A line such as `uvloop>=0.21; sys_platform != 'win32' and extra == 'serve'`; None where it is
    for another system.
    """
    asked, *markers = line.split(";")
    name = re.match(r"\s*([\w.-]+)", asked)
    marker = " and ".join(markers)
    if name is None or ("sys_platform" in marker and sys.platform == "win32"):
        return None
    extra = re.search(r"extra == ['\"]([\w-]+)['\"]", marker)
    return Requirement(name[1].lower(), lowest_of(asked), extra[1] if extra else "")


def lowest_of(asked: str) -> str | None:
    """The version behind >= or ==."""
    found = re.search(r"[>=]=\s*(\d[\w.]*\w)", asked)
    return found[1] if found else None


def is_older(found: str, lowest: str) -> bool:
    """Whether a version comes before another, by its numbers."""
    return _numbers(found) < _numbers(lowest)


def install(extra: str, name: str) -> str:
    """What to type for a library that is missing or old."""
    return f'pip install "tidewolf[{extra}]"' if extra else f'pip install --upgrade "{name}"'


def _numbers(text: str) -> tuple[int, ...]:
    found = re.match(r"\d+(\.\d+)*", text)
    numbers = [int(part) for part in found[0].split(".")] if found else []
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers)


def _project(path: Path) -> dict[str, Any] | None:
    """The [project] of a checkout of tidewolf."""
    try:
        project = tomllib.loads(path.read_text(encoding="utf-8")).get("project", {})
    except (OSError, ValueError):
        return None
    return project if project.get("name") == "tidewolf" else None
