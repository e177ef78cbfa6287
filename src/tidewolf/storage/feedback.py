"""What was observed as bytes: numbers, arrays and the names of what they are.

A feedback is the name of its kind and its fields by name; a function in it likewise. So a later
tidewolf may add fields with defaults, and reads what was written before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from functools import cache
from typing import Any

import numpy as np

from tidewolf import functions
from tidewolf.core import checkpoint
from tidewolf.core.arrays import frozen, is_array, require_finite
from tidewolf.core.batch import Batch
from tidewolf.core.checkpoint import SavedRecord
from tidewolf.core.errors import NewerFormat, NotSupported
from tidewolf.core.feedback import Bandit, Feedback, FirstOrder, FullInformation, Limits
from tidewolf.core.types import Array, NDArray

_KINDS: dict[str, Any] = {kind.__name__: kind for kind in (FirstOrder, Bandit, FullInformation)}
_OF_PARTS = (functions.Chain, functions.Max, functions.Sum)
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
    """An observation as bytes; refused where a function in it is no kind made of arrays."""
    usual: dict[str, Any] = feedback._field_defaults
    parts = {
        name: encode_function(part) if isinstance(part, Batch) else part
        for name, part in feedback._asdict().items()
        if name not in usual or (part is not usual[name] and part != usual[name])
    }
    return checkpoint.packed((type(feedback).__name__, SavedRecord.of(parts)))


def stored(feedback: Feedback, center: Array) -> tuple[bytes, Feedback]:
    """An observation as bytes, and as `decode` reads them again: at once where it is numbers and
    two arrays of doubles, which are written and read as every other is.
    """
    if type(feedback) is FirstOrder and _is_plain(feedback):
        f, g = frozen(feedback.loss_gradient.copy()), frozen(feedback.constraint_gradient.copy())
        exact = FirstOrder(
            f,
            feedback.violation,
            g,
            feedback.loss_slope,
            feedback.constraint_slope,
            feedback.rounds,
        )
        numbers = (exact.violation.hex(), exact.loss_slope.hex(), exact.constraint_slope.hex())
        line = _LINE % (*numbers, exact.rounds, _shape(f), _shape(g))
        return b"".join((line.encode(), f.tobytes(), g.tobytes())), exact
    data = encode(feedback)
    return data, decode(data, center)


def _is_plain(feedback: FirstOrder) -> bool:
    f, violation, g, loss_slope, constraint_slope, rounds, *offsets, limits = feedback
    return (
        type(f) is type(g) is np.ndarray
        and f.dtype is g.dtype is _DOUBLE
        and type(violation) is type(loss_slope) is type(constraint_slope) is float
        and type(rounds) is int
        and limits is None
        and all(type(offset) is float and offset == 0.0 for offset in offsets)
    )


def _shape(array: NDArray) -> str:
    return ",".join(map(str, array.shape))


def decode(data: bytes, center: Array) -> Feedback:
    """An observation again, unchecked: this process made the bytes, and checked them then. Arrays
    return to where `center` lives.
    """
    name, record = checkpoint.unpacked(data, center)
    return _feedback(name, record.fields(), checked=False)


def decode_checked(data: bytes, center: Array) -> Feedback:
    """The same, where another hand may have written it: functions are made anew, with all their
    checks, and numbers are finite.
    """
    name, record = checkpoint.unpacked(data, center)
    if not isinstance(record, SavedRecord):
        raise ValueError("its parts have no names")
    return _finite(_feedback(name, record.fields(), checked=True))


def _feedback(name: str, parts: Mapping[str, Any], *, checked: bool) -> Feedback:
    kind = _KINDS[name]
    _require_known(parts, kind._fields, name)
    if kind is FullInformation:
        parts = {key: decode_function(part, checked=checked) for key, part in parts.items()}
    elif isinstance(limits := parts.get("limits"), SavedRecord):
        _require_known(limits.fields(), Limits._fields, "Limits")
        parts = {**parts, "limits": Limits(**limits.fields())}
    feedback: Feedback = kind(**parts)
    return feedback


def _finite(feedback: Feedback) -> Feedback:
    for part in feedback:
        if is_array(part):
            require_finite(part, "An observation")
    return feedback


def encode_function(batch: Batch) -> tuple[str, SavedRecord]:
    """A batch as the name of its kind and its fields."""
    kind = type(batch).written_as()
    if kind is functions.Custom or _functions().get(kind.__name__) is not kind:
        raise NotSupported(
            "A durable session keeps the functions a learner needs as kinds and arrays; a "
            f"{kind.__name__} cannot be kept so. Use the functions of tidewolf.functions made of "
            "arrays, a learner that needs less, or a Session in memory."
        )
    made: Any = batch  # a dataclass, which its type does not say
    own = {field.name: getattr(batch, field.name) for field in fields(made)}
    if isinstance(batch, _OF_PARTS):
        own["parts"] = tuple(map(encode_function, batch.parts))
    return kind.__name__, SavedRecord.of(own)


def decode_function(encoded: Sequence[Any], *, checked: bool) -> Batch:
    """A batch again; `checked`: made anew, with all its checks."""
    name, record = encoded
    kind, own = _function_kind(name), record.fields()
    _require_known(own, tuple(field.name for field in fields(kind)), name)
    if kind in _OF_PARTS:
        own["parts"] = tuple(decode_function(part, checked=checked) for part in own["parts"])
    batch: Batch = kind(**own) if checked else kind._unchecked(**own)
    return batch


def _function_kind(name: str) -> Any:
    kind = _functions().get(name)
    if kind is None:
        raise NewerFormat(
            f"A function of the kind {name} was observed, which this tidewolf does not know. "
            "Install a newer tidewolf."
        )
    return kind


def _require_known(parts: Mapping[str, Any], known: Sequence[str], name: str) -> None:
    if unknown := [key for key in parts if key not in known]:
        raise NewerFormat(
            f"A {name} with {unknown[0]!r} was observed, which this tidewolf does not know. "
            "Install a newer tidewolf."
        )


@cache
def _functions() -> dict[str, type[Batch]]:
    return {kind.__name__: kind for kind in functions.every()}
