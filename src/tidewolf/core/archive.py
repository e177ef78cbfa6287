"""Archives of arrays (NPZ) and packed streams, read without trusting what they claim.

    unpacked size <= max(ALWAYS_UNPACKED, RATIO packed size)

A file of a few kilobytes may unpack to gigabytes: that is refused before memory is taken, and what
is refused costs at most ALWAYS_UNPACKED beside the file itself. A header that claims more than its
entry has reserves addresses, which take no memory until they are written, and is refused once the
entry ends. Numbers that were measured pack 2 to 20 times; a table that is packed tighter than RATIO
is read when it is written unpacked (np.savez, plain CSV).
"""

from __future__ import annotations

import threading
import zipfile
from typing import BinaryIO

import numpy as np

from tidewolf.core.types import NDArray

ALWAYS_UNPACKED = 64 << 20
"""What any file may unpack to, in bytes."""
RATIO = 64
"""How many times its size a larger file may unpack to."""
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_HEADERS = threading.Lock()
"""NumPy reads headers with Python's own parser, which some versions (3.11) do not share between
threads.
"""


def most_unpacked(size: int) -> int:
    """The most bytes that a file of this size is unpacked to."""
    return max(ALWAYS_UNPACKED, RATIO * size)


def too_much(size: int) -> str:
    """What is wrong with a file of this size that unpacks to more."""
    return f"it unpacks to more than {most_unpacked(size) >> 20} MB, {RATIO} times its size or more"


def read_arrays(file: BinaryIO, size: int) -> dict[str, NDArray]:
    """The arrays of an NPZ file of `size` bytes by name; a ValueError says in half a sentence what
    is wrong with it.
    """
    found = dict[str, NDArray]()
    try:
        with _HEADERS, zipfile.ZipFile(file) as archive:
            if sum(member.file_size for member in archive.infolist()) > most_unpacked(size):
                raise ValueError(too_much(size))
            for member in archive.infolist():
                with archive.open(member) as entry:
                    array: NDArray = np.lib.format.read_array(entry, allow_pickle=False)
                    if entry.read(1) or member.compress_type not in _METHODS:
                        raise ValueError(f"its entry {member.filename!r} is none that NumPy writes")
                found[member.filename.removesuffix(".npy")] = array
    except ValueError:
        raise
    except Exception as error:  # what is no archive breaks its readers in every way
        raise ValueError(
            f"it is no intact archive of arrays ({error or type(error).__name__})"
        ) from None
    return found
