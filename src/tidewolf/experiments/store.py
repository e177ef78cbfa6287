"""What is kept of a sweep or a comparison: its journal, and recordings of cells under way.

    sweep.jsonl, compare.jsonl
        {"format": 2, "cells": [...], "versions": {...}}      the first line, put in place whole
        {"cell": 17, "row": {...}}
            one line for each cell that ended, flushed to disk; the last one counts
    checkpoints/17
        the recording of a cell that takes long, until it has ended

A process killed while it writes leaves half a line at the end, which is cut off when it goes on.
Numbers travel as JSON, which gives the same bits back. The folder is locked meanwhile.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

from tidewolf.core import checkpoint
from tidewolf.core.errors import BrokenFile, InvalidInput, NewerFormat, OlderFormat, OtherSettings
from tidewolf.experiments.lock import locked
from tidewolf.experiments.plan import Row

ROWS_FORMAT = 3
CHECKPOINTS_FOLDER = "checkpoints"


class Kind(NamedTuple):
    """What is kept of which kind of work."""

    name: str
    """as sentences call it"""
    journal: str
    results: tuple[str, ...]
    """the files that are written once all have ended"""


SWEEP = Kind("sweep", "sweep.jsonl", ("results.parquet", "sweep.html"))
COMPARISON = Kind("comparison", "compare.jsonl", ("comparison.json", "comparison.csv"))


class RowStore:
    """The open journal in a folder.

    `rows` are those known so far, by the number of their cell; `versions` those it was begun with.
    """

    def __init__(
        self,
        folder: Path,
        kind: Kind,
        cells: Sequence[Row],
        versions: Mapping[str, str],
        *,
        force: bool,
    ) -> None:
        """Begin in the folder, or go on with the same; with `force` what another left there
        goes.
        """
        name, path = kind.name, folder / kind.journal
        if folder.exists() and not folder.is_dir():
            raise InvalidInput(f"{folder} is a file; a {name} needs a folder.")
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self.kind, self._path = folder, kind, path
        self._lock = ExitStack()
        self._lock.enter_context(locked(folder, name))
        try:
            # what a process left that was killed while it wrote
            for part in (folder / CHECKPOINTS_FOLDER).glob(".*.part"):
                part.unlink()
            there = [result for result in kind.results if (folder / result).exists()]
            if force:
                for result in there:
                    (folder / result).unlink()
                self._forget_recordings()
            elif there and not path.exists():
                raise InvalidInput(
                    f"{folder} holds {', '.join(there)} already; name another folder, or overwrite "
                    "with --force."
                )
            if force or not path.exists():
                first = {"format": ROWS_FORMAT, "cells": list(cells), "versions": dict(versions)}
                checkpoint.write(path, f"{json.dumps(first)}\n".encode())
            header, self.rows, whole = _read(path)
            if header["cells"] != list(cells):
                raise OtherSettings(
                    f"{folder} holds another {name}; name another folder, or overwrite with "
                    "--force."
                )
            self.versions: dict[str, str] = header["versions"]
            os.truncate(path, whole)
        except BaseException:
            self._lock.close()
            raise

    def recording(self, number: int) -> Path:
        """Where the recording of a cell is kept while it is played."""
        return self.folder / CHECKPOINTS_FOLDER / f"{number}"

    def _forget_recordings(self) -> None:
        for file in (self.folder / CHECKPOINTS_FOLDER).glob("[0-9]*"):
            if file.name.isdecimal():
                file.unlink()

    def add(self, number: int, row: Row) -> None:
        """Keep a row; it survives whatever happens after."""
        line = f"{json.dumps({'cell': number, 'row': row}, allow_nan=False)}\n"
        try:
            with open(self._path, "ab") as file:
                file.write(line.encode())
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            error.filename = str(self._path)  # a full disk does not say where it is
            raise
        self.rows[number] = row
        self.recording(number).unlink(missing_ok=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with suppress(OSError):  # recordings of cells that go on are in it, or it is not there
            (self.folder / CHECKPOINTS_FOLDER).rmdir()
        self._lock.close()


def _read(path: Path) -> tuple[dict[str, Any], dict[int, Row], int]:
    """The first line, the rows, and how many bytes are whole lines."""
    data = path.read_bytes()
    whole = data.rfind(b"\n") + 1
    rows: dict[int, Row] = {}
    try:
        first, *rest = data[:whole].splitlines()
        header = json.loads(first)
        if header["format"] > ROWS_FORMAT:
            raise NewerFormat(
                f"{path} has format {header['format']}; this tidewolf reads up to {ROWS_FORMAT}. "
                "Install a newer tidewolf."
            )
        if header["format"] < ROWS_FORMAT:
            raise OlderFormat(
                f"{path} has format {header['format']}, which an earlier tidewolf wrote; this "
                f"tidewolf reads format {ROWS_FORMAT}. Name another folder, or overwrite with "
                "--force."
            )
        cells = header["cells"]
        for line in rest:
            number, row = (entry := json.loads(line))["cell"], entry["row"]
            if any(row[key] != value for key, value in cells[number].items() if key != "rounds"):
                raise ValueError(f"row {number} is not that of cell {number}")
            rows[number] = row
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError) as error:
        raise BrokenFile(
            f"{path} cannot be read ({error}); name another folder, or overwrite with --force."
        ) from None
    return header, rows, whole
