"""Lines that come through a pipe, each as soon as it is whole."""

from __future__ import annotations

import os
import select
from collections.abc import Callable, Iterator
from typing import NamedTuple

from tidewolf.live.lines import LONGEST

SECONDS = 0.1
"""How often it is asked whether to stop, while nothing comes."""
_AT_ONCE = 1 << 16


class Piece(NamedTuple):
    """A line without its end."""

    text: bytes
    number: int
    """from 1"""
    is_whole: bool
    """whether its end came: the last line may have none"""


def pieces(file: int, stopping: Callable[[], bool] = lambda: False) -> Iterator[Piece]:
    """The lines of an open file, until it ends or `stopping` says so. Half a line waits; of one
    that is longer than any row, the rest is left out.
    """
    number, rest = 0, bytearray()
    while not stopping():
        ready, _, _ = select.select([file], [], [], SECONDS)
        if not ready:
            continue
        data = os.read(file, _AT_ONCE)
        if not data:
            break
        *lines, tail = data.split(b"\n")
        for line in lines:
            number += 1
            yield Piece(bytes(rest + line), number, True)
            rest.clear()
            if stopping():
                return
        rest += tail[: LONGEST + 1 - len(rest)]
    else:
        return
    if rest:
        yield Piece(bytes(rest), number + 1, False)
