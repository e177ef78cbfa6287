"""Folders that are written to: results, temporary files, and a database whose commits must reach
the disk.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter

from tidewolf.doctor.findings import Asked, Finding, Moving

_GROUP = "places"
_LITTLE = 200 << 20
"""Bytes of free space below which a warning is due."""
_COMMITS = 5
_SLOW = 0.1
"""Seconds a commit above which a warning is due: live decisions wait for it."""


def check_folders(asked: Asked, moving: Moving) -> Iterator[Finding]:
    """Where results go, and where temporary files do."""
    moving("writing files")
    out = Path(asked.out).absolute()
    yield _folder("results", out, "Give another folder with --out, or make this one writable.")
    try:
        temporary = Path(tempfile.gettempdir())
    except OSError as error:
        todo = "Set TMPDIR to a folder that can be written."
        yield Finding(_GROUP, "temporary files", "fails", str(error), todo)
        return
    todo = "Set TMPDIR to a folder that can be written and has room."
    yield _folder("temporary files", temporary, todo)


def _folder(name: str, folder: Path, todo: str) -> Finding:
    """A file is written there, brought to disk and removed; nothing else is left behind."""
    there = nearest_folder(folder)
    try:
        with tempfile.NamedTemporaryFile(dir=there, prefix=".tidewolf-doctor-") as file:
            file.write(b"tidewolf")
            file.flush()
            os.fsync(file.fileno())
        free = shutil.disk_usage(there).free
    except OSError as error:
        said = f"{folder} cannot be written: {error.strerror or error}"
        return Finding(_GROUP, name, "fails", said, todo)
    said = f"{folder} can be written{'' if there == folder else ' (it will be made)'}"
    if free < _LITTLE:
        said = f"{said}, but has {free >> 20} MB left"
        return Finding(_GROUP, name, "warning", said, "Make room before a long run.")
    return Finding(_GROUP, name, "ok", f"{said}, {free / 1e9:,.0f} GB free")


def check_sqlite(asked: Asked, moving: Moving) -> Iterator[Finding]:
    """Rows as a durable session writes them, read back through another connection."""
    moving("committing to SQLite")
    there = nearest_folder(Path(asked.out).absolute())
    name, todo = "SQLite", "Keep databases of sessions on a local disk that can be written."
    try:
        with tempfile.TemporaryDirectory(dir=there, prefix=".tidewolf-doctor-") as folder:
            seconds, found = _committed(Path(folder) / "doctor.db")
    except (OSError, sqlite3.Error) as error:
        said = f"no database can be kept in {there}: {error}"
        yield Finding(_GROUP, name, "fails", said, todo)
        return
    said = f"SQLite {sqlite3.sqlite_version}, {1e3 * seconds:.1f} ms a commit that reaches the disk"
    if found != list(range(_COMMITS)):
        yield Finding(_GROUP, name, "fails", "SQLite lost rows that it had committed", todo)
    elif seconds > _SLOW:
        slow = "Expect live sessions to be as slow; a local disk is quicker than a network's."
        yield Finding(_GROUP, name, "warning", said, slow)
    else:
        yield Finding(_GROUP, name, "ok", said)


def _committed(path: Path) -> tuple[float, list[int]]:
    """Seconds a commit, and the rows that are there afterwards."""
    db = sqlite3.connect(path, isolation_level=None)
    try:
        for pragma in ("journal_mode = WAL", "synchronous = FULL", "fullfsync = ON"):
            db.execute(f"PRAGMA {pragma}")
        db.execute("CREATE TABLE rows (number INTEGER)")
        began = perf_counter()
        for number in range(_COMMITS):
            db.execute("INSERT INTO rows VALUES (?)", (number,))
        seconds = (perf_counter() - began) / _COMMITS
        other = sqlite3.connect(path)
        try:
            rows = [row for (row,) in other.execute("SELECT number FROM rows ORDER BY number")]
        finally:
            other.close()
    finally:
        db.close()
    return seconds, rows


def nearest_folder(path: Path) -> Path:
    """The path itself, or the nearest above it that exists."""
    while not path.exists() and path != path.parent:
        path = path.parent
    return path
