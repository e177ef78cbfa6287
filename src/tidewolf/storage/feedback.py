"""Events as bytes: numbers, arrays and the names of their kinds.

    info        side information of the next round: its parts by name, those that were given
    decide      the decision of a round whose feedback comes later
    observe     the kind of the feedback and its fields by name, a function in it likewise; and how
                the round was observed, if it was not as decided: what was played, and so on
    expire      nothing

So a later tidewolf may add fields with defaults, and reads what was written before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tidewolf.core import checkpoint, conforming, errors, oracle
from tidewolf.core.arrays import frozen, is_array, require_finite
from tidewolf.core.batch import Batch
from tidewolf.core.feedback import (
    Arrival,
    Bandit,
    Feedback,
    FirstOrder,
    FullInformation,
    Instead,
    Limits,
    Spend,
)
from tidewolf.core.round_info import RoundInfo
from tidewolf.core.types import Array
from tidewolf.functions.combined import can_be_saved, restored, saved_fields, saved_name
from tidewolf.methods.events import Decide, Event, Expire, Observe, SetInfo
from tidewolf.methods.partly_seen import LastCosts

# What events are called in a database.
KINDS = {SetInfo: "info", Decide: "decide", Observe: "observe", Expire: "expire"}
_KINDS: dict[str, Any] = {kind.__name__: kind for kind in (FirstOrder, Bandit, FullInformation)}
_INFO = "RoundInfo"
# What was played; what that cost; whether the next round was not committed, as with deadlines; what
# is remembered of costs.
_HOW = ("point", "instead", "unsettled", "costs")
_DOUBLE = np.dtype(np.float64)
_ARRAYS = ",".join([f'["{_DOUBLE.str}",[%s]]'] * 2)
# What stands before the arrays of plain feedback, as `encode` writes it.
_LINE = (
    '[{"list":["FirstOrder",{"record":{"loss_gradient":{"array":"a0","numpy":true},'
    '"violation":{"float":"%s"},"constraint_gradient":{"array":"a1","numpy":true},'
    '"loss_slope":{"float":"%s"},"constraint_slope":{"float":"%s"},"rounds":1}}]},'
    f"[{_ARRAYS}]]\n"
)


def stored(event: Event, K: oracle.HasLMO) -> tuple[bytes, Event]:
    """An event as bytes, and as `read_event` reads them again; the bytes of a decision are those
    of its point.
    """
    if isinstance(event, SetInfo):
        data = encode_info(event.info)
        return data, SetInfo(decode_info(data, K.center))
    if not isinstance(event, Observe):
        return b"", event
    (number, feedback, point, instead, costs), committed = event
    is_usual = point is costs is None and committed
    if is_usual and isinstance(feedback, FirstOrder) and feedback.is_plain:
        f, violation, g, loss_slope, constraint_slope, *_ = feedback
        f, g = frozen(f.copy()), frozen(g.copy())
        again = FirstOrder(f, violation, g, loss_slope, constraint_slope, 1)
        return encode_plain(again), Observe(Arrival(number, again))
    how = {"point": point, "instead": None if instead is None else tuple(instead)}
    how["unsettled"] = None if committed else True
    how["costs"] = None if costs is None else tuple(costs)
    data = encode(feedback, {name: part for name, part in how.items() if part is not None})
    return data, _read_observation(number, data, K)


def read_event(kind: str, number: int, data: bytes, K: oracle.HasLMO) -> Event:
    """The event again; refused if no session writes it."""
    match kind:
        case "info":
            return SetInfo(decode_info(data, K.center))
        case "observe":
            return _read_observation(number, data, K)
        case "decide":
            return Decide()
        case "expire" if not data:
            return Expire(number)
    raise _newer(f"event of the kind {kind!r}")


def _read_observation(number: int, data: bytes, K: oracle.HasLMO) -> Observe:
    name, record, *more = checkpoint.unpacked(data, K.center)
    how = _checked_fields(more[0], _HOW, "observation") if more else {}
    point, instead = how.get("point"), how.get("instead")
    if point is not None:
        if not conforming.is_member(K, point):
            raise ValueError("what was played is no member of the set")
        point, instead = frozen(point), None if instead is None else Instead(*map(float, instead))
    costs = None if "costs" not in how else LastCosts(*how["costs"])
    arrival = Arrival(number, _feedback(name, record), point, instead, costs)
    return Observe(arrival, not how.get("unsettled"))


def encode(feedback: Feedback, how: Mapping[str, Any] | None = None) -> bytes:
    """Feedback as bytes, and how it was observed; refused if a function in it is not made of
    arrays.
    """
    usual: dict[str, Any] = feedback._field_defaults
    parts = {
        name: _encode_function(part) if isinstance(part, Batch) else part
        for name, part in feedback._asdict().items()
        if name not in usual or (part is not usual[name] and part != usual[name])
    }
    more = [checkpoint.SavedRecord.of(how)] if how else []
    return checkpoint.packed((type(feedback).__name__, checkpoint.SavedRecord.of(parts), *more))


def encode_plain(feedback: FirstOrder) -> bytes:
    """The same of plain feedback, at once."""
    f, violation, g, loss_slope, constraint_slope, *_ = feedback
    shape = ",".join(map(str, f.shape))
    line = _LINE % (violation.hex(), loss_slope.hex(), constraint_slope.hex(), shape, shape)
    return b"".join((line.encode(), f.tobytes(), g.tobytes()))


def decode(data: bytes, center: Array) -> Feedback:
    name, record, *_ = checkpoint.unpacked(data, center)
    return _feedback(name, record)


def _feedback(name: str, record: Any) -> Feedback:
    kind = _KINDS[name]
    parts = _checked_fields(record, kind._fields, name)
    if kind is FullInformation:
        parts = {key: restored(*part) for key, part in parts.items()}
    records: dict[str, Any] = {"limits": Limits, "spend": Spend}
    for key, made in records.items():
        if parts.get(key) is not None:
            parts[key] = made(**_checked_fields(parts[key], made._fields, made.__name__))
    feedback: Feedback = kind(**parts)
    for part in feedback:
        if is_array(part):
            require_finite(part, "An observation")
    return feedback


def _encode_function(batch: Batch) -> tuple[str, tuple[Any, ...]]:
    if not can_be_saved(batch):
        raise errors.NotSupported(
            f"A {type(batch).written_as().__name__} cannot be kept in a file. Use functions that "
            "are made of arrays, a learner that needs less, or a Session in memory."
        )
    return saved_name(batch), saved_fields(batch)


def _checked_fields(record: Any, known: Sequence[str], name: str) -> dict[str, Any]:
    """The fields of a record; one that is not known was written by a newer tidewolf."""
    if not isinstance(record, checkpoint.SavedRecord):
        raise ValueError(f"it is no record of the kind {name}")
    for key in record.fields():
        if key not in known:
            raise _newer(f"{name} with {key!r}")
    return record.fields()


def _newer(what: str) -> errors.NewerFormat:
    return errors.NewerFormat(
        f"A {what} was observed, which this tidewolf does not know. Install a newer tidewolf."
    )


# --- side information -----------------------------------------------------------------------------


def encode_info(info: RoundInfo) -> bytes:
    """Side information as bytes; refused if a forecast is not made of arrays."""
    given = {name: part for name, part in info._asdict().items() if part is not None}
    if info.advice is not None:
        given["advice"] = tuple(info.advice.items())
    if info.forecast is not None:
        given["forecast"] = tuple(map(_encode_function, info.forecast))
    return checkpoint.packed((_INFO, checkpoint.SavedRecord.of(given)))


def decode_info(data: bytes, center: Array) -> RoundInfo:
    kind, record = checkpoint.unpacked(data, center)
    given = _checked_fields(record if kind == _INFO else None, RoundInfo._fields, _INFO)
    if "advice" in given:
        given["advice"] = dict(given["advice"])
    if "forecast" in given:
        given["forecast"] = tuple(restored(*each) for each in given["forecast"])
    skipped = tuple(given.pop("skipped", ()))
    return RoundInfo(**given).with_skipped(skipped)
