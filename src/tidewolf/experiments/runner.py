"""The runner of sweeps and comparisons: jobs, an engine that plays them, and a folder of rows.

    jobs (jobs.py)  ->  engine (engines.py)  ->  rows (jobs.py)  ->  journal

    sweep.jsonl, compare.jsonl
        {"format": 3, "cells": [...], "versions": {...}}      the first line, put in place whole
        {"cell": 17, "row": {...}}
            one line per job that ended, flushed to disk; the last one of a job counts
    checkpoints/17
        the recording of a long job, until it has ended

The same call resumes after a kill: jobs with a row are not played again, except those that failed.
A job that fails is a row with the reason, and does not affect the others. Half a line at the end,
left by a process that was killed while it wrote, is cut off. Numbers travel as JSON, which gives
the same bits back. The folder is locked meanwhile. Run folders (folder.py) play the same jobs one
after another, and keep recordings in place of rows.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from tidewolf.core import checkpoint
from tidewolf.core.errors import (
    BrokenFile,
    Interrupted,
    InvalidInput,
    NewerFormat,
    OlderFormat,
    OtherSettings,
)
from tidewolf.experiments.engines import Engine, Task, versions
from tidewolf.experiments.jobs import Job, Row

ROWS_FORMAT = 3
CHECKPOINTS_FOLDER = "checkpoints"
_OTHERWISE = "Use another folder, or overwrite with --force."
_HELD = threading.local()
T = TypeVar("T")


class Kind(NamedTuple):
    """The files of a kind of work."""

    name: str
    """in messages"""
    journal: str
    results: tuple[str, ...]
    """what is written when all jobs have ended"""


SWEEP = Kind("sweep", "sweep.jsonl", ("results.parquet", "sweep.html"))
COMPARISON = Kind("comparison", "compare.jsonl", ("comparison.json", "comparison.csv"))


class Stage(NamedTuple):
    """How many jobs have ended."""

    done: int
    failed: int
    jobs: int


def play_jobs(
    jobs: Sequence[Job],
    folder: Path,
    kind: Kind,
    write: Callable[[tuple[Row, ...]], T],
    *,
    engine: Engine,
    force: bool = False,
    progress: Callable[[Stage], None] = lambda stage: None,
) -> T:
    """Play the jobs that have no row in the folder yet, and `write` the results of all rows, in the
    order of the jobs. A folder of other jobs is refused; with `force` it is begun again.
    """
    journal, here = folder / kind.journal, versions()
    if folder.exists() and not folder.is_dir():
        raise InvalidInput(f"{folder} is a file; a {kind.name} needs a folder.")
    folder.mkdir(parents=True, exist_ok=True)
    with locked(folder, kind.name):
        plain = [job.plain() for job in jobs]
        _begin(folder, kind, {"format": ROWS_FORMAT, "cells": plain, "versions": here}, force)
        header, rows, whole = _read(journal)
        if header["cells"] != plain:
            raise OtherSettings(f"{folder} holds another {kind.name}. {_OTHERWISE}")
        os.truncate(journal, whole)
        recordings = folder / CHECKPOINTS_FOLDER
        left = {
            number: Task(job, recordings / f"{number}")
            for number, job in enumerate(jobs)
            if number not in rows or rows[number]["failure"]
        }
        if left and (before := header["versions"]) != here:
            other = [f"{name} {at}" for name, at in before.items() if here.get(name) != at]
            raise OtherSettings(
                f"The {kind.name} in {folder} was begun with {', '.join(other)}. Install that "
                f"version to resume. {_OTHERWISE}"
            )
        done, failures = len(jobs) - len(left), 0
        progress(Stage(done, failures, len(jobs)))
        if left:
            recordings.mkdir(exist_ok=True)
            try:
                with closing(engine(left)) as answers:
                    for number, row in answers:
                        _append(journal, {"cell": number, "row": row})
                        left[number].file.unlink(missing_ok=True)
                        rows[number] = row
                        done, failures = done + 1, failures + bool(row["failure"])
                        progress(Stage(done, failures, len(jobs)))
            except KeyboardInterrupt:
                raise Interrupted(
                    f"Interrupted: {done} of {len(jobs)} runs are done; the same command resumes."
                ) from None
            finally:
                with suppress(OSError):  # it holds recordings to resume from
                    recordings.rmdir()
        return write(tuple(rows[number] for number in range(len(jobs))))


def _begin(folder: Path, kind: Kind, header: Row, force: bool) -> None:
    """Write the first line of the journal unless it is there; with `force`, remove what is."""
    recordings, journal = folder / CHECKPOINTS_FOLDER, folder / kind.journal
    # left by a process that was killed while it wrote
    unwanted = list(recordings.glob(".*.part"))
    results = [folder / name for name in kind.results if (folder / name).exists()]
    if force:
        numbers = (file for file in recordings.glob("[0-9]*") if file.name.isdecimal())
        unwanted += [*results, *numbers]
    elif results and not journal.exists():
        names = ", ".join(file.name for file in results)
        raise InvalidInput(f"{folder} holds {names} already. {_OTHERWISE}")
    for file in unwanted:
        file.unlink()
    if force or not journal.exists():
        checkpoint.write(journal, f"{json.dumps(header)}\n".encode())


def _append(journal: Path, entry: Row) -> None:
    """Write a line that survives a crash right after."""
    try:
        with open(journal, "ab") as file:
            file.write(f"{json.dumps(entry, allow_nan=False)}\n".encode())
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        error.filename = str(journal)  # ENOSPC comes without a path
        raise


def _read(path: Path) -> tuple[dict[str, Any], dict[int, Row], int]:
    """The first line, the rows, and how many bytes are whole lines."""
    data = path.read_bytes()
    whole = data.rfind(b"\n") + 1
    rows: dict[int, Row] = {}
    try:
        header, *entries = map(json.loads, data[:whole].splitlines())
        require_format(path, header["format"], ROWS_FORMAT, _OTHERWISE)
        for entry in entries:
            number, row = entry["cell"], entry["row"]
            job = header["cells"][number]
            if any(row[key] != value for key, value in job.items() if key != "rounds"):
                raise ValueError(f"row {number} is not that of job {number}")
            rows[number] = row
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError) as error:
        raise BrokenFile(f"{path} cannot be read ({error}). {_OTHERWISE}") from None
    return header, rows, whole


def require_format(path: Path, found: int, known: int, otherwise: str) -> None:
    """Refuse a file of a format that this tidewolf does not read."""
    if found != known:
        newer = found > known
        cure = "Install a newer tidewolf." if newer else otherwise
        sentence = f"{path} has format {found}; this tidewolf reads format {known}. {cure}"
        raise (NewerFormat if newer else OlderFormat)(sentence)


@contextmanager
def locked(folder: Path, what: str, *, again: bool = False) -> Iterator[None]:
    """Hold the lock of a folder; refused while another process, or thread, holds it. The system
    releases it when the process ends. With `again`, a thread that holds it may enter once more.
    """
    import fcntl

    held: set[tuple[int, int]] = _HELD.__dict__.setdefault("folders", set())
    lock = os.open(folder, os.O_RDONLY)
    try:
        status = os.fstat(lock)
        place = status.st_dev, status.st_ino
        if again and place in held:
            yield
            return
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InvalidInput(
                f"Another process is at work on the {what} in {folder}. Wait for it, or use "
                "another folder."
            ) from None
        except OSError as error:
            raise InvalidInput(
                f"{folder} cannot be locked: {error.strerror}. Use a folder on a local disk."
            ) from None
        held.add(place)
        try:
            yield
        finally:
            held.discard(place)
    finally:
        os.close(lock)
