"""`tidewolf serve`, `backup` and `restore`: sessions over HTTP, and copies of them.

A backup is of one moment: every session in it is as its last acknowledged observation left it. A
session that is restored begins a new epoch, so that its clients notice, and resumes from there.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from tidewolf.cli import screen
from tidewolf.cli.screen import flag, opt
from tidewolf.core.errors import InvalidInput

Data: TypeAlias = Annotated[Path | None, opt("DIR", "The folder of the sessions.", "--data")]
DatabaseUrl: TypeAlias = Annotated[
    str | None, opt("URL", "Or their database: postgresql://..., for many servers.", "--database")
]
Names: TypeAlias = Annotated[
    list[str] | None, opt("NAME", "This session only; repeat it for several.", "--session")
]


def serve_command(
    data: Data = None,
    database: DatabaseUrl = None,
    host: Annotated[str, typer.Option(help="The address to listen at.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="The port; 0 takes a free one.")] = 8000,
    token_file: Annotated[
        Path | None, opt("FILE", "The tokens that give access, one per line.")
    ] = None,
    insecure: Annotated[
        bool, flag("Give access without a token, also to other machines.", "--insecure")
    ] = False,
    commit_within: Annotated[
        float, opt("SECONDS", "How long observations wait to be committed together.")
    ] = 0.01,
    max_sessions: Annotated[int, opt("N", "Sessions, at most.")] = 10_000,
    max_body: Annotated[int, opt("BYTES", "Bytes of a body, at most.")] = 4 << 20,
    max_waiting: Annotated[int, opt("N", "Requests under way, at most.")] = 256,
    rate: Annotated[float | None, opt("N", "Requests per second and token.")] = None,
    observation_rate: Annotated[
        float | None, opt("N", "Observations per second and token.")
    ] = None,
    token_sessions: Annotated[int | None, opt("N", "Sessions per token.")] = None,
    log: Annotated[bool, flag("Write a line of JSON per request to stderr.", "--log")] = False,
) -> None:
    """Serve sessions over HTTP: decisions out, observations in, everything kept.

    Prints `tidewolf serves http://...` when it is ready: what its sessions need is compiled, which
    takes up to a minute for each kind of session on a new machine, once. Every answer is durable:
    after a kill the same command resumes (to the bit on the same machine). SIGTERM and SIGINT let
    it finish what is under way. /docs describes every address; / shows all sessions.

    A line of the file of tokens is TOKEN, or ROLE TOKEN, or ROLE PREFIX TOKEN, or ROLE PREFIX TOKEN
    NAME: a reader reads and a writer does everything, with sessions whose names begin with PREFIX
    (* is all). Without a file only this machine has access.

    \b
    Examples:
      tidewolf serve --data sessions
      tidewolf serve --data sessions --host 0.0.0.0 --token-file tokens.txt
      tidewolf serve --database postgresql://tidewolf@db/tidewolf --port 0
    """
    given = {key: at for key, at in locals().items() if key not in ("data", "database")}
    where = _where(data, database)
    if not 0.0 <= commit_within < 60.0:
        raise InvalidInput(f"--commit-within is at least 0 and below 60, not {commit_within:g}.")
    for option, number in (("--max-sessions", max_sessions), ("--max-body", max_body)):
        if number < 1:
            raise InvalidInput(f"{option} is a whole number above 0, not {number}.")

    from tidewolf.service.server import Settings, serve

    serve(Settings(where=where, **given))


def backup_command(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The copy.")],
    data: Data = None,
    database: DatabaseUrl = None,
    session: Names = None,
    force: Annotated[bool, flag("Overwrite FILE.", "--force")] = False,
) -> None:
    """Copy sessions of a service to a file, while it runs.

    The copy is of one moment. FILE is written whole or not at all.

    \b
    Examples:
      tidewolf backup --data sessions monday.db
      tidewolf backup --data sessions routing.db --session routing
      tidewolf backup --database postgresql://db/tidewolf monday.db
    """
    from tidewolf.storage.copies import backup

    where = _where(data, database)
    if isinstance(where, Path) and not where.is_dir():
        raise InvalidInput(f"There is no folder {where}: give the --data of `tidewolf serve`.")
    if file.exists() and not force:
        raise InvalidInput(f"{file} exists already: use another name, or --force.")
    if not file.parent.is_dir():
        raise InvalidInput(f"There is no folder {file.parent}: make it first.")
    part = file.with_name(f"{file.name}.part")
    part.unlink(missing_ok=True)
    with screen.checking(True, "copying") as seen:
        copied = backup(where, part, session or None, seen)
    os.replace(part, file)
    typer.echo(f"{_sessions(copied)} in {file}.")


def restore_command(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A file of `tidewolf backup`.")],
    data: Data = None,
    database: DatabaseUrl = None,
    session: Names = None,
    replace: Annotated[bool, flag("Also replace existing sessions.", "--replace")] = False,
) -> None:
    """Restore sessions from a backup, also while the service runs.

    All of them, or none. An existing session of the same name is refused unless --replace is given;
    then its observations since the backup are lost. A running service resumes from what was
    restored.

    \b
    Examples:
      tidewolf restore monday.db --data sessions
      tidewolf restore monday.db --data sessions --session routing --replace
      tidewolf restore monday.db --database postgresql://db/tidewolf
    """
    from tidewolf.storage.copies import restore

    where = _where(data, database)
    if not file.is_file():
        raise InvalidInput(f"There is no file {file}: give one that `tidewolf backup` wrote.")
    with screen.checking(True, "restoring") as seen:
        restored = restore(file, where, session or None, replace, seen)
    typer.echo(f"{_sessions(restored)} restored.")


def _where(data: Path | None, database: str | None) -> str | Path:
    """The folder or the database of the sessions."""
    if data is not None and database is None:
        return data
    if data is not None or database is None:
        raise InvalidInput("Give --data DIR or --database URL, one of them.")
    if not database.startswith(("postgresql://", "postgres://")):
        raise InvalidInput("--database is an address such as postgresql://user@host/name.")
    return database


def _sessions(count: int) -> str:
    return f"{count:,} session{'s are' if count != 1 else ' is'}"
