"""Where a session is kept: a file of its own, or a place among others."""

from __future__ import annotations

import os
from contextlib import suppress

from tidewolf.core.arguments import as_text
from tidewolf.core.errors import AlreadyThere, NotSupported
from tidewolf.durable.address import is_address
from tidewolf.durable.file import File
from tidewolf.durable.journal import Home
from tidewolf.durable.shelf import Shelf


def home(where: str | os.PathLike[str] | Shelf, name: str, *, read_only: bool = False) -> Home:
    """The home of the session of this name; in a database of many it is made, where there is none
    and nobody else describes it.
    """
    if isinstance(where, Shelf):
        name = as_text(name, "The name of a session")
        return where.glance(name) if read_only else where.slot(name)
    if not is_address(where):
        return File(where, read_only=read_only)
    if read_only:
        raise NotSupported(
            "A session in PostgreSQL is held by the one that opened it: read_only=True looks at "
            "files."
        )
    shelf = Shelf.open(str(where), commit_within=0.0)
    try:
        if shelf.card(as_text(name, "The name of a session")) is None:
            _made(shelf, name)
        return shelf.slot(name, alone=True)
    except BaseException:
        shelf.close()
        raise


def _made(shelf: Shelf, name: str) -> None:
    with suppress(AlreadyThere):  # by another process, just now
        shelf.create(name, "").result()
