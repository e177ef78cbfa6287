"""`tidewolf backup` and `tidewolf restore`: sessions of a service to a file and back, while it
runs.

A backup is of one moment: every session in it is as its last acknowledged observation left it. A
session that is restored begins a new epoch, so that whoever holds it notices, and goes on from what
was restored.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from tidewolf.core.errors import InvalidInput

Data: TypeAlias = Annotated[
    Path | None, typer.Option("--data", metavar="DIR", help="The folder that `serve` keeps.")
]
DatabaseUrl: TypeAlias = Annotated[
    str | None,
    typer.Option("--database", metavar="URL", help="Or its database: postgresql://..."),
]
Names: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--session", metavar="NAME", help="This session alone; may be given often."),
]


def backup_command(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Where the copy goes.")],
    data: Data = None,
    database: DatabaseUrl = None,
    session: Names = None,
    force: Annotated[
        bool, typer.Option("--force", help="Overwrite FILE where it is there.")
    ] = False,
) -> None:
    """Copy sessions of a service to a file, while it runs.

    The copy is of one moment. FILE is whole or not there: a backup that is interrupted leaves
    nothing.

    \b
    Examples:
      tidewolf backup --data sessions monday.db
      tidewolf backup --data sessions routing.db --session routing
      tidewolf backup --database postgresql://db/tidewolf monday.db
    """
    from tidewolf.storage.copies import backup

    where = _where(data, database, to_be_there=True)
    if file.exists() and not force:
        raise InvalidInput(f"{file} is there already: give another name, or --force.")
    if not file.parent.is_dir():
        raise InvalidInput(f"There is no folder {file.parent}: make it first.")
    part = file.with_name(f"{file.name}.part")
    part.unlink(missing_ok=True)
    with _progress("copying") as seen:
        copied = backup(where, part, session or None, seen)
    os.replace(part, file)
    typer.echo(f"{_sessions(copied)} in {file}.")


def restore_command(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="What `backup` wrote.")],
    data: Data = None,
    database: DatabaseUrl = None,
    session: Names = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="Also in place of sessions that are there.")
    ] = False,
) -> None:
    """Put sessions from a backup back, also while the service runs.

    All of them, or none. A session of the same name that is there is left alone unless --replace is
    given; then what was observed since the backup is gone. A service that runs goes on from what
    was restored.

    \b
    Examples:
      tidewolf restore monday.db --data sessions
      tidewolf restore monday.db --data sessions --session routing --replace
      tidewolf restore monday.db --database postgresql://db/tidewolf
    """
    from tidewolf.storage.copies import restore

    where = _where(data, database)
    if not file.is_file():
        raise InvalidInput(f"There is no file {file}: give what `tidewolf backup` wrote.")
    with _progress("restoring") as seen:
        restored = restore(file, where, session or None, replace, seen)
    typer.echo(f"{_sessions(restored)} restored.")


def _where(data: Path | None, database: str | None, *, to_be_there: bool = False) -> str | Path:
    """Where the sessions are."""
    if (data is None) == (database is None):
        raise InvalidInput("Give --data DIR or --database URL, one of them.")
    if data is None:
        assert database is not None
        return database
    if to_be_there and not data.is_dir():
        raise InvalidInput(f"There is no folder {data}: give the one that `tidewolf serve` keeps.")
    return data


def _sessions(count: int) -> str:
    return f"{count:,} session{'s are' if count != 1 else ' is'}"


@contextmanager
def _progress(what: str) -> Iterator[Callable[[int, int], None] | None]:
    """What keeps a line moving; nothing is shown where stderr is not a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console

    with Console(stderr=True).status(f"{what} ...") as line:
        yield lambda done, of: line.update(f"{what}: {done:,} of {of:,} sessions")
