"""Feedback as bytes: numbers, arrays and the names of their kinds.

A feedback is the name of its kind and its fields by name; a function in it likewise. So a later
tidewolf may add fields with defaults, and reads what was written before.

Side information of a round is its parts by name, those that were given. How a round was observed is
written if it was not simply the next one: after which observation it was decided, and what was
played in place of the decision.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from tidewolf import functions
from tidewolf.core import checkpoint
from tidewolf.core.arrays import frozen, is_array, require_finite
from tidewolf.core.batch import Batch
from tidewolf.core.checkpoint import SavedRecord
from tidewolf.core.conforming import is_member
from tidewolf.core.errors import NewerFormat, NotSupported
from tidewolf.core.feedback import Bandit, Feedback, FirstOrder, FullInformation, Instead, Limits
from tidewolf.core.oracle import HasLMO
from tidewolf.core.round_info import RoundInfo
from tidewolf.core.types import Array

_KINDS: dict[str, Any] = {kind.__name__: kind for kind in (FirstOrder, Bandit, FullInformation)}
_OF_PARTS = (functions.Chain, functions.Max, functions.Sum)
_INFO, _PLAYED = "RoundInfo", "Played"
_DOUBLE = np.dtype(np.float64)
_ARRAYS = ",".join([f'["{_DOUBLE.str}",[%s]]'] * 2)
_LINE = (
    '[{"list":["FirstOrder",{"record":{"loss_gradient":{"array":"a0","numpy":true},'
    '"violation":{"float":"%s"},"constraint_gradient":{"array":"a1","numpy":true},'
    '"loss_slope":{"float":"%s"},"constraint_slope":{"float":"%s"},"rounds":%d}}]},'
    f"[{_ARRAYS}]]\n"
)
"""What stands before the arrays of plain feedback, as `encode` writes it."""


def encode(feedback: Feedback) -> bytes:
    """An observation as bytes; refused if a function in it is not made of arrays."""
    usual: dict[str, Any] = feedback._field_defaults
    parts = {
        name: encode_function(part) if isinstance(part, Batch) else part
        for name, part in feedback._asdict().items()
        if name not in usual or (part is not usual[name] and part != usual[name])
    }
    return checkpoint.packed((type(feedback).__name__, SavedRecord.of(parts)))


def stored(feedback: Feedback, center: Array) -> tuple[bytes, Feedback]:
    """An observation as bytes, and as `decode` reads them again: at once if it is numbers and two
    arrays of doubles, which are written and read as every other is.
    """
    if type(feedback) is not FirstOrder or not _is_plain(feedback):
        data = encode(feedback)
        return data, decode(data, center)
    f, g = frozen(feedback.loss_gradient.copy()), frozen(feedback.constraint_gradient.copy())
    _, violation, _, steep, steep_limit, rounds, *_ = feedback
    numbers = (violation.hex(), steep.hex(), steep_limit.hex(), rounds)
    line = _LINE % (*numbers, ",".join(map(str, f.shape)), ",".join(map(str, g.shape)))
    again = FirstOrder(f, violation, g, steep, steep_limit, rounds)
    return b"".join((line.encode(), f.tobytes(), g.tobytes())), again


def _is_plain(feedback: FirstOrder) -> bool:
    f, violation, g, loss_slope, constraint_slope, rounds, loss, limit, limits = feedback
    return (
        type(f) is type(g) is np.ndarray
        and f.dtype is g.dtype is _DOUBLE
        and type(violation) is type(loss_slope) is type(constraint_slope) is float
        and type(rounds) is int
        and limits is None
        and type(loss) is type(limit) is float
        and loss == limit == 0.0
    )


def decode(data: bytes, center: Array, *, checked: bool = False) -> Feedback:
    """An observation again, its arrays where `center` lives. `checked`: functions are made with
    all their checks, and numbers are finite.
    """
    name, record = checkpoint.unpacked(data, center)
    kind = _KINDS[name]
    parts = _checked_fields(record, kind._fields, name)
    if kind is FullInformation:
        parts = {key: decode_function(part, checked=checked) for key, part in parts.items()}
    elif parts.get("limits") is not None:
        parts["limits"] = Limits(**_checked_fields(parts["limits"], Limits._fields, "Limits"))
    feedback: Feedback = kind(**parts)
    for part in feedback if checked else ():
        if is_array(part):
            require_finite(part, "An observation")
    return feedback


def encode_function(batch: Batch) -> tuple[str, SavedRecord]:
    """A batch as the name of its kind and its fields."""
    kind = type(batch).written_as()
    if kind is functions.Custom or _functions().get(kind.__name__) is not kind:
        raise NotSupported(
            f"A {kind.__name__} cannot be kept in a file. Use functions that are made of arrays, "
            "a learner that needs less, or a Session in memory."
        )
    made: Any = batch  # a dataclass, which its type does not say
    own = {field.name: getattr(batch, field.name) for field in fields(made)}
    if isinstance(batch, _OF_PARTS):
        own["parts"] = tuple(map(encode_function, batch.parts))
    return kind.__name__, SavedRecord.of(own)


def decode_function(encoded: Sequence[Any], *, checked: bool = True) -> Batch:
    """A batch again; `checked`: made with all its checks."""
    name, record = encoded
    if name not in _functions():
        raise _newer(f"function of the kind {name}")
    kind: Any = _functions()[name]
    own = _checked_fields(record, tuple(field.name for field in fields(kind)), name)
    if kind in _OF_PARTS:
        own["parts"] = tuple(decode_function(part, checked=checked) for part in own["parts"])
    batch: Batch = kind(**own) if checked else kind._unchecked(**own)
    return batch


def _checked_fields(record: Any, known: Sequence[str], name: str) -> dict[str, Any]:
    """The fields of a record; one that is not known was written by a newer tidewolf."""
    if not isinstance(record, SavedRecord):
        raise ValueError(f"it is no record of the kind {name}")
    for key in record.fields():
        if key not in known:
            raise _newer(f"{name} with {key!r}")
    return record.fields()


def _newer(what: str) -> NewerFormat:
    return NewerFormat(
        f"A {what} was observed, which this tidewolf does not know. Install a newer tidewolf."
    )


@cache
def _functions() -> dict[str, type[Batch]]:
    return {kind.__name__: kind for kind in functions.every()}


# --- side information -----------------------------------------------------------------------------


def encode_info(info: RoundInfo) -> bytes:
    """Side information as bytes; refused if a forecast is not made of arrays."""
    given = {name: part for name, part in info._asdict().items() if part is not None}
    if info.advice is not None:
        given["advice"] = tuple(info.advice.items())
    if info.forecast is not None:
        given["forecast"] = tuple(map(encode_function, info.forecast))
    return checkpoint.packed((_INFO, SavedRecord.of(given)))


def decode_info(data: bytes, center: Array) -> RoundInfo:
    """The same again; arrays return to where `center` lives."""
    kind, record = checkpoint.unpacked(data, center)
    given = _checked_fields(record if kind == _INFO else None, RoundInfo._fields, _INFO)
    if "advice" in given:
        given["advice"] = dict(given["advice"])
    if "forecast" in given:
        given["forecast"] = tuple(map(decode_function, given["forecast"]))
    skipped = tuple(given.pop("skipped", ()))
    return RoundInfo(**given).with_skipped(skipped)


# --- how a round was observed ---------------------------------------------------------------------


class How(NamedTuple):
    """How a round was observed."""

    after: int | None = None
    """the observation after which it was decided; None if nothing waited"""
    point: Array | None = None
    """what was played; None: the decision"""
    instead: Instead | None = None
    unsettled: bool | None = None
    """True if it came while the next round was not committed, as with deadlines"""


def encode_played(how: How) -> bytes | None:
    """As bytes; None if it was simply the next round."""
    after, point, instead, unsettled = how
    if after is None and point is None and instead is None and unsettled is None:
        return None
    given = {name: part for name, part in how._asdict().items() if part is not None}
    if instead is not None:
        given["instead"] = tuple(instead)
    return checkpoint.packed((_PLAYED, SavedRecord.of(given)))


def decode_played(data: bytes | None, K: HasLMO) -> How:
    """The same again."""
    if data is None:
        return How()
    kind, record = checkpoint.unpacked(data, K.center)
    given = _checked_fields(record if kind == _PLAYED else None, How._fields, _PLAYED)
    if "point" in given:
        if not is_member(K, given["point"]):
            raise ValueError("what was played is no member of the set")
        given["point"] = frozen(given["point"])
    if "instead" in given:
        given["instead"] = Instead(*map(float, given["instead"]))
    return How(**given)
