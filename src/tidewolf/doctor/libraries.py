"""Python, tidewolf, and every library that it needs or can use: is it there, new enough, and does
it import?
"""

from __future__ import annotations

import platform
import sys
from collections.abc import Iterator
from functools import partial
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version

from tidewolf import __version__
from tidewolf.doctor.declared import (
    PACKAGE,
    WORKSHOP,
    Declared,
    Requirement,
    install,
    is_older,
    read_declared,
)
from tidewolf.doctor.findings import Asked, Check, Finding, Moving, Status, one_line

_GROUP = "libraries"


def check_python(asked: Asked, moving: Moving) -> Iterator[Finding]:
    """Python and tidewolf themselves."""
    declared, found = read_declared(), platform.python_version()
    where = f"Python {found} on {platform.system()} {platform.machine()}"
    if declared.python is not None and is_older(found, declared.python):
        todo = f"Use Python {declared.python} or newer."
        yield Finding("python", "python", "fails", where, todo)
    else:
        yield Finding("python", "python", "ok", f"{where}, {sys.executable}")
    yield _tidewolf(declared)


def _tidewolf(declared: Declared) -> Finding:
    here = f"tidewolf {__version__} in {PACKAGE}"
    if declared.version is None:
        said = f"{here}, not installed by pip"
        todo = "Nothing to do where that is meant; else type: pip install tidewolf"
        return Finding("python", "tidewolf", "warning", said, todo)
    if declared.version != __version__:
        said = f"{here}, while pip has {declared.version}"
        todo = "Install it again with pip, so that the command and the code are of one version."
        return Finding("python", "tidewolf", "warning", said, todo)
    return Finding("python", "tidewolf", "ok", here)


def library_checks() -> dict[str, Check]:
    """A check for what is always needed, and one for every extra."""
    by_extra: dict[str, list[Requirement]] = {"": []}
    for requirement in read_declared().requirements:
        if requirement.extra not in WORKSHOP:
            by_extra.setdefault(requirement.extra, []).append(requirement)
    return {
        extra or "needed": partial(_libraries, extra, wanted) for extra, wanted in by_extra.items()
    }


def _libraries(
    extra: str, wanted: list[Requirement], asked: Asked, moving: Moving
) -> Iterator[Finding]:
    """One line for all that are well, and one for each that is not."""
    name, well, missing = extra or "needed", list[str](), list[str]()
    if not wanted:
        todo = "Install it with pip, so that it is known what it needs."
        yield Finding(_GROUP, name, "warning", "nothing is said of what tidewolf needs", todo)
        return
    for requirement in wanted:
        moving(f"importing {requirement.name}")
        finding = _library(requirement)
        if finding.status == "ok":
            well.append(finding.said)
        elif finding.status == "absent":
            missing.append(requirement.name)
        else:
            yield finding
    if missing and (well or not extra):
        said = f"{', '.join(missing)} not installed"
        status: Status = "warning" if extra else "fails"
        yield Finding(_GROUP, name, status, said, f"Type: {install(extra, ' '.join(missing))}")
    elif missing:
        todo = f"not installed: {install(extra, '')}"
        yield Finding(_GROUP, name, "absent", todo)
    if well:
        yield Finding(_GROUP, name, "ok", ", ".join(well))


def _library(requirement: Requirement) -> Finding:
    name, lowest, extra = requirement
    try:
        found = version(name)
    except PackageNotFoundError:
        return Finding(_GROUP, name, "absent", "not installed")
    said = f"{name} {found}"
    try:
        import_module(requirement.module)
    except (Exception, SystemExit) as error:
        todo = f"Install it again: pip install --force-reinstall {name}"
        status: Status = "warning" if extra else "fails"
        return Finding(_GROUP, name, status, f"{said} does not import: {one_line(error)}", todo)
    if lowest is not None and is_older(found, lowest):
        todo = f"Type: pip install --upgrade {name}"
        return Finding(_GROUP, name, "warning", f"{said}; {lowest} is the lowest tested", todo)
    return Finding(_GROUP, name, "ok", said)
