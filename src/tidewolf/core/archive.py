"""Archives of arrays (NPZ) and packed streams, read without trusting what they claim.

    unpacked size <= max(ALWAYS_UNPACKED, RATIO packed size)
        every header claims as many bytes as its entry has

A file of a few kilobytes may unpack to gigabytes, and a header of a hundred bytes may ask for
terabytes. Both are refused before memory is taken: what is refused costs at most
ALWAYS_UNPACKED beside the file itself. Numbers that were measured pack 2 to 20 times; a table that
is packed tighter than RATIO is read when it is written unpacked (np.savez, plain CSV).
"""

from __future__ import annotations

import math
import threading
import zipfile
from typing import IO, BinaryIO

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
    try:
        with _HEADERS, zipfile.ZipFile(file) as archive:
            members = archive.infolist()
            if sum(member.file_size for member in members) > most_unpacked(size):
                raise ValueError(too_much(size))
            return {
                member.filename.removesuffix(".npy"): _member(archive, member) for member in members
            }
    except ValueError:
        raise
    except Exception as error:  # what is no archive breaks its readers in every way
        raise ValueError(
            f"it is no intact archive of arrays ({error or type(error).__name__})"
        ) from None


def _member(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> NDArray:
    stored = member.compress_type == zipfile.ZIP_STORED
    if member.compress_type not in _METHODS or (
        stored and member.file_size != member.compress_size
    ):
        raise ValueError(
            f"its entry {member.filename!r} is packed in a way that NumPy does not pack"
        )
    with archive.open(member) as entry:
        _require_honest(entry, member)
    with archive.open(member) as entry:
        array: NDArray = np.lib.format.read_array(entry, allow_pickle=False)
    return array


def _require_honest(entry: IO[bytes], member: zipfile.ZipInfo) -> None:
    """Refuse a header that claims more or fewer bytes than there are, before an array of that size
    is made.
    """
    version = np.lib.format.read_magic(entry)
    readers = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }
    if version not in readers:
        raise ValueError(
            f"its entry {member.filename!r} has the NPY version {version[0]}.{version[1]}, which "
            "no array of numbers needs"
        )
    shape, _, dtype = readers[version](entry)
    if dtype.hasobject:
        return  # NumPy refuses these with its own error
    claimed, there = math.prod(shape) * dtype.itemsize, member.file_size - entry.tell()
    if min(shape, default=0) < 0 or claimed != there:
        raise ValueError(
            f"its entry {member.filename!r} claims {claimed} bytes of numbers and has {there}"
        )
