"""The records of a session: the head, observations and pending rounds. A chain of checksums
links the observations:

    link_0 = sha256(settings)       link_k = sha256(link_{k-1} | observation k)
"""

from __future__ import annotations

import hashlib
from typing import NamedTuple

from tidewolf.core.errors import NewerFormat, OlderFormat

SEAL = 32
"""The bytes of a checksum."""
_NUMBER = 8
"""The bytes of a number in a decision."""


class Head(NamedTuple):
    """What the file holds: observations first + 1 to last, and the state after observation
    `snapshot`.
    """

    first: int
    base: bytes
    """the link of observation `first`"""
    last: int
    link: bytes
    """the link of observation `last`"""
    snapshot: int
    epoch: int
    """of the last writer; each writer has a higher one, and none goes back"""


class Row(NamedTuple):
    """One observation."""

    arrived: int
    """its number in the order in which they came, from 1"""
    round: int
    """the first round that it speaks of, from 1"""
    rounds: int
    """how many it speaks of"""
    epoch: int
    """of the writer"""
    feedback: bytes
    info: bytes | None = None
    """what was known before the round"""
    played: bytes | None = None
    """how the round was met, where it was not simply the next one"""

    def link(self, before: bytes) -> bytes:
        """The link of this observation, after that of the one before."""
        if self.info is self.played is None:
            arrived, number, rounds, epoch, feedback, _, _ = self
            line = f"{arrived} {number} {rounds} {epoch} {len(feedback)} -1 -1"
            return digest(before, line.encode(), feedback)
        blobs = (self.feedback, self.info, self.played)
        sizes = [-1 if blob is None else len(blob) for blob in blobs]
        numbers = " ".join(map(str, (*self[:4], *sizes))).encode()
        return digest(before, numbers, *(blob for blob in blobs if blob is not None))


class Decision(NamedTuple):
    """What was decided of a round that waits."""

    after: int
    """the number of the last observation then"""
    x: bytes

    @property
    def packed(self) -> bytes:
        return self.after.to_bytes(_NUMBER) + self.x

    @classmethod
    def of(cls, packed: bytes) -> Decision:
        return cls(int.from_bytes(packed[:_NUMBER]), packed[_NUMBER:])


class Pending(NamedTuple):
    """A round that is not observed: what was known before it, and its decision where it waits."""

    round: int
    info: bytes | None
    decision: Decision | None = None

    def columns(self, link: bytes) -> tuple[int, bytes | None, bytes | None]:
        """The row of the table; `link` is that of the last observation."""
        info = decision = None
        link = link if self.decision is None else b""
        if self.info is not None:
            info = self._sealed(link, self.info) + self.info
        if self.decision is not None:
            packed = self.decision.packed
            decision = self._sealed(link, self.info or b"", b" ", packed) + packed
        return self.round, info, decision

    def _sealed(self, link: bytes, *parts: bytes) -> bytes:
        return digest(link, str(self.round).encode(), b" ", *parts)


class Content(NamedTuple):
    """What opening begins from."""

    head: Head
    state: bytes
    """the last snapshot"""
    link: bytes
    """the link of its observation"""
    left: list[Row]
    """the observations after it"""
    pending: tuple[Pending, ...] = ()
    """the rounds that were decided, or told what is known, and are not observed; in order"""


def digest(*parts: bytes) -> bytes:
    """The checksum of all parts, end to end."""
    return hashlib.sha256(b"".join(parts)).digest()


def require_version(version: int, ours: int, where: str) -> None:
    """Refuse another format than ours."""
    if version > ours:
        raise NewerFormat(
            f"{where} has format {version}; this tidewolf reads up to {ours}. Install a newer "
            "tidewolf."
        )
    if version < ours:
        raise OlderFormat(
            f"{where} has format {version}, which an earlier tidewolf wrote; this tidewolf reads "
            f"format {ours}. Give a new path, folder or database."
        )
