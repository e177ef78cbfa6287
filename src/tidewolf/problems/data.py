"""Recorded streams: where they lie, and how many of their rounds are taken.

The records are not part of the package. They are read from the folder in the environment variable
TIDEWOLF_DATA, else from ../shared/data as seen from the current folder.
"""

from __future__ import annotations

import hashlib
import os
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from tidewolf.core.errors import InvalidInput
from tidewolf.core.types import NDArray

VARIABLE = "TIDEWOLF_DATA"
# What generators make is known again by their settings, seed and this number: raise it with any
# change of what one of them makes.
GENERATOR_VERSION = 1
_ZOO = "zoo_edges.csv.gz"
# The file that each recorded problem is read from.
RECORDS = {
    "abilene": "abilene_hourly.npz",
    "carbon": "carbon_ci_u16.npz",
    "freeway": "losloop_u8.npz",
    "geant": _ZOO,
    "meta": "meta_pod_a.npz",
    "uunet": _ZOO,
    "zoo": _ZOO,
}


def data_folder() -> Path:
    """The folder with the recorded streams, whether it exists or not."""
    named = os.environ.get(VARIABLE)
    return Path(named) if named else Path.cwd().parent / "shared" / "data"


def record(file: str) -> Path:
    path = data_folder() / file
    if not path.is_file():
        cure = f"set {VARIABLE} to the folder that holds it"
        raise InvalidInput(f"The recorded stream {file} is not in {path.parent}; {cure}.")
    return path


def origin(problem: str) -> str:
    """What tells the numbers of a problem from others of the same settings and seed: the bytes of
    its record, or the version of the generators.
    """
    if problem not in RECORDS:
        return f"generator {GENERATOR_VERSION}"
    return hashlib.sha256(record(RECORDS[problem]).read_bytes()).hexdigest()


@contextmanager
def reading(file: str) -> Iterator[Path]:
    """The path of a file of the data folder, for a block that reads it."""
    path = record(file)
    try:
        yield path
    except (OSError, EOFError, KeyError, TypeError, ValueError, zipfile.BadZipFile) as error:
        cure = f"set {VARIABLE} to a folder with an intact copy"
        raise InvalidInput(f"{path} cannot be read ({error}); {cure}.") from error


def recorded(file: str, *names: str) -> list[NDArray]:
    with reading(file) as path, np.load(path) as arrays:
        return [arrays[name] for name in names]


def first_rounds(problem: str, rounds: int | None, *names: str) -> tuple[slice, list[NDArray]]:
    """The first `rounds` of the record of a problem, all for None, and its arrays of these names,
    of which the first has a row per round.
    """
    arrays = recorded(RECORDS[problem], *names)
    length = len(arrays[0])
    if rounds is not None and rounds > length:
        fewer = f"{length} rounds, fewer than {rounds}"
        raise InvalidInput(f"The record of {problem} has {fewer}.", setting="rounds")
    return slice(0, length if rounds is None else rounds), arrays
