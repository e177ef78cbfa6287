"""Whether what was read from a file is a state of a learner: fields of the right types, arrays of
the right shapes, numbers that count.

A checksum finds accidents, not a hand that computes it again. So what a file holds is held against
the type of the state, field by field, and against the state before the first round, whose arrays
have the shapes that stay. A ValueError says in half a sentence what is wrong.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, get_args, get_type_hints

from tidewolf.core.arrays import eps_of, is_array, namespace, to_numpy
from tidewolf.core.checkpoint import Stored
from tidewolf.core.oracle import HasLMO
from tidewolf.core.types import Array

COUNTERS = frozenset({"t", "calls", "rounds", "horizon", "began", "closed", "looks", "mean_rounds"})
"""Fields that count something, and so are at least 0."""


def conforming(fields: Mapping[str, Any], kind: Any, begun: Any, K: HasLMO) -> Any:
    """A NamedTuple of this kind of fields that fit it; `begun` is one before the first round, over
    the set K.
    """
    hints = get_type_hints(kind)
    return kind(
        **{
            name: _fitting(value, hints.get(name, Any), getattr(begun, name), name, K)
            for name, value in fields.items()
        }
    )


def allowed_excess(K: HasLMO, x: Array) -> float:
    """How far rounding may take a member of the set out of it."""
    largest = float(namespace(x).max(namespace(x).abs(x)))
    return max(1e-6, 1e4 * eps_of(x)) * max(K.radius, largest)


def _fitting(value: Any, hint: Any, begun: Any, name: str, K: HasLMO) -> Any:
    if _is_record(hint):
        if type(value) is not tuple or len(value) > len(hint._fields):
            raise ValueError(f"{name} is no {hint.__name__}")
        return conforming(dict(zip(hint._fields, value, strict=False)), hint, begun, K)
    if value is None and type(None) in get_args(hint):
        return value
    if hint in (int, float):
        return _number(value, hint, name)
    if isinstance(hint, type) and issubclass(hint, Stored):
        if not isinstance(value, hint):
            raise ValueError(f"{name} is no {hint.tag}")
        value.require_of(K)
    elif is_array(begun):
        _require_like(value, begun, name)
    elif (
        is_array(value)
        and _float_kind(value)
        and bool(namespace(value).any(namespace(value).isnan(value)))
    ):
        raise ValueError(f"{name} holds NaN")
    return value


def _number(value: Any, hint: Any, name: str) -> Any:
    if type(value) not in ((int,) if hint is int else (int, float)) or math.isnan(value):
        raise ValueError(f"{name} is a {'whole ' * (hint is int)}number, not {value!r}"[:200])
    if name in COUNTERS and value < 0:
        raise ValueError(f"{name} counts, and is at least 0, not {value!r}"[:200])
    return value


def _require_like(value: Any, begun: Array, name: str) -> None:
    """The array of a field that has one from the start keeps its shape, unless that begins empty
    and grows.
    """
    grows = tuple(begun.shape) == (0,)
    if (
        not is_array(value)
        or value.ndim != begun.ndim
        or not (grows or tuple(value.shape) == tuple(begun.shape))
    ):
        raise ValueError(f"{name} is an array of shape {tuple(begun.shape)}, not {_shown(value)}")
    if to_numpy(value).dtype.kind != to_numpy(begun).dtype.kind:
        raise ValueError(f"{name} holds {value.dtype} where {begun.dtype} is due")
    if _float_kind(value) and not bool(namespace(value).all(namespace(value).isfinite(value))):
        raise ValueError(f"{name} holds what is no finite number")


def _shown(value: Any) -> str:
    return f"one of {tuple(value.shape)}" if is_array(value) else f"a {type(value).__name__}"


def _float_kind(value: Array) -> bool:
    return bool(to_numpy(value).dtype.kind == "f")


def _is_record(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, tuple) and hasattr(kind, "_fields")
