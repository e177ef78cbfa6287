"""The decisions of a run as they are played: an append-only file beside its checkpoint.

    tidewolf decisions 1 ENTRIES\n      then ENTRIES float64 numbers, little-endian, for each round

Memory does not grow with the rounds. The file is flushed to disk before each checkpoint, so it
holds at least the rounds of the checkpoint; what a killed process wrote beyond them is cut off
before the run resumes, and the same bytes follow.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from io import FileIO
from pathlib import Path
from typing import final

import numpy as np

from tidewolf.core.arrays import to_numpy
from tidewolf.core.types import Array, Floats, Shape

LOG_FORMAT = 1
LOG_ENDING = ".decisions"
_NUMBER = np.dtype("<f8")


@final
class DecisionLog:
    """The points of a run, round by round."""

    def __init__(self, path: Path, shape: Shape, rounds: int) -> None:
        """Continue after so many rounds; `holds` is whether the file has them."""
        self.path, self.shape, self._entries = path, tuple(shape), math.prod(shape)
        self._head = f"tidewolf decisions {LOG_FORMAT} {self._entries}\n".encode()
        self._file: FileIO | None = None
        self.holds = rounds == 0 or self._has(rounds)
        if rounds == 0:
            path.write_bytes(self._head)
        elif self.holds:
            os.truncate(path, self._size(rounds))

    def see(self, points: Array, rounds: int) -> None:
        """The next rounds, played at one point, (1, *shape), or at one point per round,
        (rounds, *shape).
        """
        if self._file is None:
            self._file = open(self.path, "ab", buffering=0)  # noqa: SIM115  # closed by `close`
        rows = to_numpy(points).astype(_NUMBER, copy=False).reshape(-1, self._entries)
        data = memoryview(rows.tobytes() if len(rows) == rounds else rows.tobytes() * rounds)
        with self._named_errors():
            while data:
                data = data[self._file.write(data) :]

    def sync(self) -> None:
        """Flush the file to disk."""
        if self._file is not None:
            with self._named_errors():
                os.fsync(self._file.fileno())

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
            self._file = None

    @contextmanager
    def _named_errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            error.filename = str(self.path)  # ENOSPC comes without a path
            raise

    def points(self, rounds: int) -> Floats | None:
        """The points of the first rounds, (rounds, *shape), read from disk on access; None if the
        file does not have them.
        """
        if not self._has(rounds):
            return None
        shape = (rounds, *self.shape)
        if math.prod(shape) == 0:
            return np.empty(shape)
        return np.memmap(self.path, _NUMBER, "r", len(self._head), shape)

    def _has(self, rounds: int) -> bool:
        try:
            with open(self.path, "rb") as file:
                known = file.read(len(self._head)) == self._head
        except OSError:
            return False
        return known and self.path.stat().st_size >= self._size(rounds)

    def _size(self, rounds: int) -> int:
        return len(self._head) + rounds * self._entries * _NUMBER.itemsize
