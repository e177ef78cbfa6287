"""One process at a time in a folder: a lock on the folder itself, which the system gives back when
the process ends, however that comes.

Where `again` says so, a thread that holds the lock may take it again: a command holds it over all
it
does, and each step of a run still takes it for itself.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tidewolf.core.errors import InvalidInput


class _Held(threading.local):
    def __init__(self) -> None:
        self.folders: set[tuple[int, int]] = set()
        """device and inode of each folder that this thread has locked"""


_HELD = _Held()


@contextmanager
def locked(folder: Path, what: str, *, again: bool = False) -> Iterator[None]:
    """Hold the lock of a folder that is there; refused while another process, or thread, is at work
    on `what` in it.
    """
    import fcntl

    lock = os.open(folder, os.O_RDONLY)
    try:
        status = os.fstat(lock)
        place = status.st_dev, status.st_ino
        if again and place in _HELD.folders:
            yield
            return
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InvalidInput(
                f"Another process is at work on the {what} in {folder}; wait for it, or name "
                "another folder."
            ) from None
        except OSError as error:
            raise InvalidInput(
                f"{folder} cannot be locked: {error.strerror}. Name a folder on a disk of this "
                "machine."
            ) from None
        _HELD.folders.add(place)
        try:
            yield
        finally:
            _HELD.folders.discard(place)
    finally:
        os.close(lock)
