"""`tidewolf serve`: sessions over HTTP, kept in a folder or a database."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tidewolf.core.errors import InvalidInput


def serve_command(
    data: Annotated[
        Path | None, typer.Option(metavar="DIR", help="The folder that keeps all of it.")
    ] = None,
    database: Annotated[
        str | None,
        typer.Option(
            metavar="URL", help="Or a database: postgresql://..., for any number of servers."
        ),
    ] = None,
    host: Annotated[str, typer.Option(help="The address to listen at.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="The port; 0 takes any that is free.")] = 8000,
    token_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Who may ask: a token a line.")
    ] = None,
    insecure: Annotated[
        bool, typer.Option("--insecure", help="Let everybody in, from other machines too.")
    ] = False,
    commit_within: Annotated[
        float,
        typer.Option(
            metavar="SECONDS", help="How long observations wait to be kept together; 0: each alone."
        ),
    ] = 0.01,
    max_sessions: Annotated[int, typer.Option(metavar="N", help="Sessions, at most.")] = 10_000,
    max_body: Annotated[int, typer.Option(metavar="BYTES", help="Bytes of a body, at most.")] = 4
    << 20,
    max_waiting: Annotated[
        int, typer.Option(metavar="N", help="Requests under way, at most; more are refused.")
    ] = 256,
    rate: Annotated[
        float | None, typer.Option(metavar="N", help="Requests a second, for each token.")
    ] = None,
    observation_rate: Annotated[
        float | None, typer.Option(metavar="N", help="Observations a second, for each token.")
    ] = None,
    token_sessions: Annotated[
        int | None, typer.Option(metavar="N", help="Sessions that a token may have.")
    ] = None,
    log: Annotated[
        bool, typer.Option("--log", help="A line of JSON on stderr for every request.")
    ] = False,
) -> None:
    """Serve sessions over HTTP: decisions out, observations in, nothing forgotten.

    Prints `tidewolf serves http://...` when it is ready: what its sessions need is compiled, which
    takes up to a minute for each kind of session on a new machine, once. What it answered is kept:
    killed at any moment, the same command resumes (to the bit on the same machine). SIGTERM and
    SIGINT let it finish what is under way. /docs describes every address; / shows all sessions.

    A line of the file of tokens is TOKEN, or ROLE TOKEN, or ROLE PREFIX TOKEN, or ROLE PREFIX TOKEN
    NAME: a reader looks and a writer does everything, with sessions whose names begin with PREFIX
    (* is all). Without a file only this machine gets in.

    \b
    Examples:
      tidewolf serve --data sessions
      tidewolf serve --data sessions --host 0.0.0.0 --token-file tokens.txt
      tidewolf serve --database postgresql://tidewolf@db/tidewolf --port 0
    """
    if (data is None) == (database is None):
        raise InvalidInput("Say where sessions are kept: --data DIR, or --database URL.")
    if database is not None and not database.startswith(("postgresql://", "postgres://")):
        raise InvalidInput("--database is an address such as postgresql://user@host/name.")
    if not 0.0 <= commit_within < 60.0:
        raise InvalidInput(f"--commit-within is at least 0 and below 60, not {commit_within:g}.")
    for option, number in (("--max-sessions", max_sessions), ("--max-body", max_body)):
        if number < 1:
            raise InvalidInput(f"{option} is a whole number above 0, not {number}.")

    from tidewolf.service.server import Settings, serve

    serve(
        Settings(
            where=data if data is not None else str(database),
            host=host,
            port=port,
            token_file=token_file,
            insecure=insecure,
            commit_within=commit_within,
            max_sessions=max_sessions,
            max_body=max_body,
            max_waiting=max_waiting,
            rate=rate,
            observation_rate=observation_rate,
            token_sessions=token_sessions,
            log=log,
        )
    )
