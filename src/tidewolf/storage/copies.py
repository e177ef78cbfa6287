"""Back up and restore sessions while they are served.

    backup    one reading transaction: every session as its last commit left it, at one moment
    restore   one writing transaction: all of the sessions, or none

A copy is a file of SQLite with the tables of a folder (database.py), in which no
process holds a session, and the part of the audit about its sessions. A session that is restored
has an epoch that it never had: the server that served it finds that it lost it, and opens what was
restored. The audit of the target is extended, never replaced; if empty, it gets that of the copy.
"""

import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

from tidewolf.core import errors
from tidewolf.storage import database, postgres, session_store

# Rows that are copied at a time.
_AT_ONCE = 256
# How long a writer is waited for. Unit: seconds.
_PATIENCE = 60.0
_WHO = "tidewolf restore"
_WRITE_SESSION = (
    "INSERT INTO sessions VALUES (?, ?, ?, ?, ?, '') ON CONFLICT (number) DO UPDATE SET description"
    " = excluded.description, settings = excluded.settings, created = excluded.created, holder = ''"
)

# Called with how many sessions are done, and of how many.
Progress = Callable[[int, int], None]


def backup(
    where: str | Path,
    file: str | Path,
    names: Sequence[str] | None = None,
    progress: Progress = lambda done, of: None,
) -> int:
    """Copy sessions to a file, also while a server serves them.

    Parameters
    ----------
    where : str or path
        The folder, or the address of the PostgreSQL, that they are kept in.
    file : str or path
        The copy; there is no such file yet.
    names : sequence of str, optional
        Which sessions. None: all of them.
    progress : callable, optional
        Called after each with how many are done, and of how many.

    Returns
    -------
    int
        How many were copied.

    Raises
    ------
    UnknownSession
        If there is none of a name.
    CheckpointError
        If nothing can be read, or the copy cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> from tidewolf.storage.copies import backup, restore
    >>> from tidewolf.storage.session_store import SessionStore
    >>> folder = tempfile.mkdtemp()
    >>> store = SessionStore.open(f"{folder}/sessions")
    >>> store.create("routing", "{}").result()
    >>> backup(f"{folder}/sessions", f"{folder}/copy.db")
    1
    >>> restore(f"{folder}/copy.db", f"{folder}/others")
    1
    >>> store.close()
    """
    kept_in = where if postgres.is_address(where) else Path(where) / session_store.NAME
    try:
        with _reading(kept_in) as source, _new_file(Path(file).resolve()) as copy:
            infos = _infos(source, names, postgres.without_password(str(where)))
            for done, info in enumerate(infos, 1):
                copy.execute(_WRITE_SESSION, info)
                _copy_rows(source, copy, info[0], info[0])
                progress(done, len(infos))
            _copy_audit(source, copy, names)
    except (sqlite3.Error, OSError) as error:
        raise database.explained(error, f"The copy {file}", "Give another file.") from None
    return len(infos)


def restore(
    file: str | Path,
    where: str | Path,
    names: Sequence[str] | None = None,
    replace: bool = False,
    progress: Progress = lambda done, of: None,
) -> int:
    """Put sessions of a copy back, also while others are served there.

    Parameters
    ----------
    file : str or path
        What `backup` wrote.
    where : str or path
        A folder, made if it is not there, or the address of a PostgreSQL.
    names : sequence of str, optional
        Which sessions. None: all of the copy.
    replace : bool, default False
        Whether a session of the same name gives way.
    progress : callable, optional
        Called after each with how many are done, and of how many.

    Returns
    -------
    int
        How many were restored.

    Raises
    ------
    AlreadyThere
        If a session of the same name is there, and need not give way.
    UnknownSession
        If the copy has none of a name.
    BrokenFile
        If the file is no copy, or was cut short.
    CheckpointError
        If nothing can be written.
    """
    try:
        with _reading(Path(file)) as source, _target(where) as target:
            infos = _infos(source, names, str(file))
            if not target.rows("SELECT number FROM audit LIMIT 1"):
                _copy_audit(source, target, names)
            for done, info in enumerate(infos, 1):
                _put_back(source, target, info, replace, Path(file).name)
                progress(done, len(infos))
    except (sqlite3.Error, OSError) as error:
        raise database.explained(error, str(file), "Check the copy and the folder.") from None
    return len(infos)


def _put_back(
    source: database.Database, target: database.Database, info: Any, replace: bool, file: str
) -> None:
    old, name, *what = info
    sql = f"SELECT number FROM sessions WHERE name = ?{target.locking}"
    there, epoch = target.rows(sql, (name,)), 0
    number = there[0][0] if there else database.next_number(target, "sessions")
    if there:
        errors.require(
            replace,
            errors.AlreadyThere,
            f"There is a session called {name!r} already: --replace puts the copy in its place.",
        )
        sql = f"SELECT epoch FROM head WHERE session = ?{target.locking}"
        ((epoch,),) = target.rows(sql, (number,))
        database.delete_rows(target, number)
    target.execute(_WRITE_SESSION, (number, name, *what))
    _copy_rows(source, target, old, number)
    sql = "UPDATE head SET epoch = CASE WHEN epoch > ? THEN epoch ELSE ? END + 1 WHERE session = ?"
    target.execute(sql, (epoch, epoch, number))
    database.add_entry(target, time.time(), _WHO, name, "restore", f"from {file}")


def _infos(db: database.Database, names: Sequence[str] | None, where: str) -> list[Any]:
    sql = "SELECT number, name, description, settings, created FROM sessions"
    if names is None:
        return db.rows(f"{sql} ORDER BY name")
    found = []
    for name in dict.fromkeys(names):
        rows = db.rows(f"{sql} WHERE name = ?", (name,))
        errors.require(
            rows, errors.UnknownSession, f"There is no session called {name!r} in {where}."
        )
        found += rows
    return found


def _copy_rows(source: database.Database, target: database.Database, old: int, new: int) -> None:
    for table in database.OF_A_SESSION:
        with closing(source.stream(f"SELECT * FROM {table} WHERE session = ?", (old,))) as found:
            while rows := [(new, *row[1:]) for row in islice(found, _AT_ONCE)]:
                marks = ", ".join("?" * len(rows[0]))
                target.executemany(f"INSERT INTO {table} VALUES ({marks})", rows)


def _copy_audit(
    source: database.Database, target: database.Database, names: Sequence[str] | None
) -> None:
    with closing(source.stream("SELECT * FROM audit ORDER BY number")) as found:
        while rows := list(islice(found, _AT_ONCE)):
            chosen = [row for row in rows if names is None or row[3] in names]
            target.executemany("INSERT INTO audit VALUES (?, ?, ?, ?, ?, ?, ?)", chosen)


# --- databases ------------------------------------------------------------------------------------


@contextmanager
def _reading(where: str | Path) -> Iterator[database.Database]:
    """What is kept in a PostgreSQL or in a file, as it was at one moment."""
    if postgres.is_address(where):
        with _remote(str(where)) as remote:
            errors.refuse(
                not remote.has_column("store", "name"), f"{remote.where} keeps no sessions."
            )
            database.require_format(remote, remote.where)
            with remote.snapshot():
                yield remote
        return
    path = Path(where).resolve()
    errors.require(path.is_file(), errors.InvalidInput, f"There is no file {path}.")
    with closing(database.SQLite(path, "ro", _PATIENCE)) as db:
        db.execute("BEGIN")
        database.require_format(db, path)
        yield db


@contextmanager
def _new_file(path: Path) -> Iterator[database.Database]:
    """A file with the tables and nothing in them; what is written to it is whole and on disk, or it
    is gone.
    """
    errors.require(
        not path.exists(), errors.AlreadyThere, f"{path} is there already: give another name."
    )
    journal = Path(f"{path}-journal")
    journal.unlink(missing_ok=True)  # of a copy that was killed
    try:
        with closing(database.SQLite(path, "rwc")) as db:
            db.pragmas("synchronous = FULL", f"application_id = {database.STORE_FILE}")
            with db.transaction():
                database.make_store(db)
                yield db
    except BaseException:
        path.unlink(missing_ok=True)
        journal.unlink(missing_ok=True)
        raise


@contextmanager
def _target(where: str | Path) -> Iterator[database.Database]:
    """Where sessions are restored to; all that is written is kept, or nothing."""
    if postgres.is_address(where):
        with _remote(str(where)) as remote:
            postgres.prepare(remote)
            with remote.transaction():
                yield remote
                # What tells the servers of a PostgreSQL to look whether they lost a session.
                remote.execute(
                    "INSERT INTO store VALUES ('restored', '1') ON CONFLICT (name) DO UPDATE SET "
                    "value = CAST(CAST(store.value AS BIGINT) + 1 AS TEXT)"
                )
        return
    folder = Path(where).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    with closing(session_store.opened(folder / session_store.NAME)) as db:
        db.pragmas(f"busy_timeout = {int(1000 * _PATIENCE)}")
        with db.transaction():
            yield db


@contextmanager
def _remote(url: str) -> Iterator[postgres.Postgres]:
    with closing(postgres.Postgres(url)) as db:
        try:
            yield db
        except db.errors as error:
            raise errors.CheckpointError(
                f"{db.where} cannot be used: {db.sentence(error)}."
            ) from None
