"""What is known before a round as bytes: its parts by name, those that were given.

Points keep their names beside them; a forecast is two functions, kept as observed ones are.
"""

from __future__ import annotations

from typing import Any

from tidewolf.core import checkpoint
from tidewolf.core.arguments import as_text
from tidewolf.core.checkpoint import SavedRecord
from tidewolf.core.errors import NewerFormat
from tidewolf.core.round_info import RoundInfo
from tidewolf.core.types import Array
from tidewolf.storage.feedback import decode_function, encode_function

_NAME = "RoundInfo"


def encode_info(info: RoundInfo) -> bytes:
    """What is known as bytes; refused where a forecast is no kind made of arrays."""
    given = {name: part for name, part in info._asdict().items() if part is not None}
    if info.advice is not None:
        given["advice"] = tuple(info.advice.items())
    if info.forecast is not None:
        given["forecast"] = tuple(map(encode_function, info.forecast))
    return checkpoint.packed((_NAME, SavedRecord.of(given)))


def decode_info(data: bytes, center: Array) -> RoundInfo:
    """The same again, checked as what comes from outside; arrays return to where `center` lives."""
    name, record = checkpoint.unpacked(data, center)
    if name != _NAME or not isinstance(record, SavedRecord):
        raise ValueError("it is nothing that was known")
    given: dict[str, Any] = record.fields()
    if unknown := [key for key in given if key not in RoundInfo._fields]:
        raise NewerFormat(
            f"{unknown[0]!r} was known before a round, which this tidewolf does not know. Install "
            "a newer tidewolf."
        )
    if "advice" in given:
        given["advice"] = dict(given["advice"])
    if "forecast" in given:
        given["forecast"] = tuple(decode_function(part, checked=True) for part in given["forecast"])
    skipped = tuple(as_text(name, "A member that slept") for name in given.pop("skipped", ()))
    return RoundInfo(**given).with_skipped(skipped)
