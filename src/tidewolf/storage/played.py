"""How a round was met that was not simply the next one, as bytes: after which observation it was
decided, where it waited; what was played in place of the decision, and what both cost.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from tidewolf.core import checkpoint
from tidewolf.core.arrays import frozen
from tidewolf.core.checkpoint import SavedRecord
from tidewolf.core.conforming import is_member
from tidewolf.core.errors import NewerFormat
from tidewolf.core.feedback import Instead
from tidewolf.core.oracle import HasLMO
from tidewolf.core.types import Array

_NAME = "Played"


class How(NamedTuple):
    """How a round was met."""

    after: int | None = None
    """the observation after which it was decided; None where nothing waited"""
    point: Array | None = None
    """what was played; None: the decision"""
    instead: Instead | None = None
    unsettled: bool | None = None
    """True where it came while the coming round was not settled, as with deadlines"""


def encode_played(how: How) -> bytes | None:
    """As bytes; None where there is nothing to say."""
    if all(part is None for part in how):
        return None
    given = {name: part for name, part in how._asdict().items() if part is not None}
    if how.instead is not None:
        given["instead"] = tuple(how.instead)
    return checkpoint.packed((_NAME, SavedRecord.of(given))) if given else None


def decode_played(data: bytes | None, K: HasLMO) -> How:
    """The same again, checked as what comes from outside."""
    if data is None:
        return How()
    name, record = checkpoint.unpacked(data, K.center)
    if name != _NAME or not isinstance(record, SavedRecord):
        raise ValueError("it does not say how a round was met")
    given: dict[str, Any] = record.fields()
    if unknown := [key for key in given if key not in How._fields]:
        raise NewerFormat(
            f"A round was met with {unknown[0]!r}, which this tidewolf does not know. Install a "
            "newer tidewolf."
        )
    if "after" in given and (type(given["after"]) is not int or given["after"] < 0):
        raise ValueError("it was decided after no observation that there is")
    if given.get("unsettled", True) is not True:
        raise ValueError("unsettled may only be True")
    if "point" in given:
        if not is_member(K, given["point"]):
            raise ValueError("what was played is no member of the set")
        given["point"] = frozen(given["point"])
    if "instead" in given:
        given["instead"] = Instead(*map(float, given["instead"]))
        if not all(map(math.isfinite, given["instead"])):
            raise ValueError("what a round cost is no number")
    return How(**given)
