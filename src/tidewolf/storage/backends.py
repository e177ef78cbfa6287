"""The backend of a session: a file of its own, or a place in a database of many."""

from __future__ import annotations

import os
from contextlib import suppress

from tidewolf.core.arguments import as_text
from tidewolf.core.errors import AlreadyThere, NotSupported
from tidewolf.storage.address import is_address
from tidewolf.storage.file import File
from tidewolf.storage.journal import Backend
from tidewolf.storage.session_store import SessionStore


def backend(
    where: str | os.PathLike[str] | SessionStore, name: str, *, read_only: bool = False
) -> Backend:
    """The home of the session of this name; in a database of many it is made if there is none
    and no other description of it.
    """
    if isinstance(where, SessionStore):
        name = as_text(name, "The name of a session")
        return where.read_handle(name) if read_only else where.handle(name)
    if not is_address(where):
        return File(where, read_only=read_only)
    if read_only:
        raise NotSupported(
            "A session in PostgreSQL is held by the one that opened it: read_only=True looks at "
            "files."
        )
    store = SessionStore.open(str(where), commit_within=0.0)
    try:
        if store.info(as_text(name, "The name of a session")) is None:
            with suppress(AlreadyThere):  # by another process, just now
                store.create(name, "").result()
        return store.handle(name, alone=True)
    except BaseException:
        store.close()
        raise
