"""Whether what was read from a file is a state of a learner: fields of the right types, arrays of
the right shapes, numbers that count.

A checksum finds accidents, not a hand that computes it again. So what a file holds is held against
the type of the state, field by field and record by record, and against the state before the first
round, whose arrays have the shapes that stay. Records are read by the names of their fields: one
that the file does not have takes its default, one that the state does not have is refused. A
ValueError says in half a sentence what is wrong.
"""

from __future__ import annotations

import math
import types
from collections.abc import Mapping
from typing import Any, Union, get_args, get_origin, get_type_hints

import numpy as np

from tidewolf.core.arrays import eps_of, is_array, namespace, to_numpy
from tidewolf.core.checkpoint import SavedRecord, Stored
from tidewolf.core.oracle import HasLMO
from tidewolf.core.types import Array, NDArray

SIGNED = frozenset({"exponent"})
"""Whole numbers that may be below 0; all others count something."""


def conforming(fields: Mapping[str, Any], kind: Any, begun: Any, K: HasLMO) -> Any:
    """A NamedTuple of this kind of fields that fit it; `begun` is one before the first round, over
    the set K, or None where there was none yet.
    """
    hints = get_type_hints(kind)
    if unknown := [name for name in fields if name not in kind._fields]:
        raise ValueError(f"it has a field {unknown[0]!r}, which this tidewolf does not know"[:200])
    if missing := [name for name in kind._fields if name not in {**kind._field_defaults, **fields}]:
        raise ValueError(f"{missing[0]} is missing")
    return kind(
        **{
            name: _fitting(value, hints[name], getattr(begun, name, None), name, K)
            for name, value in fields.items()
        }
    )


def allowed_infeasibility(K: HasLMO, x: Array) -> float:
    """How far rounding may take a member of the set out of it."""
    largest = float(namespace(x).max(namespace(x).abs(x)))
    return max(1e-6, 1e4 * eps_of(x)) * max(K.radius, largest)


def is_member(K: HasLMO, x: Any) -> bool:
    """Whether what a file holds is a point of the set, up to rounding."""
    if not is_array(x) or tuple(x.shape) != K.shape:
        return False
    return bool(K.infeasibility(x) <= allowed_infeasibility(K, x))


def _fitting(value: Any, hint: Any, begun: Any, name: str, K: HasLMO) -> Any:
    if get_origin(hint) in (Union, types.UnionType) and type(None) in get_args(hint):
        if value is None:
            return value
        kinds = [kind for kind in get_args(hint) if kind is not type(None)]
        hint = kinds[0] if len(kinds) == 1 else Any
    if hint is Any and isinstance(value, SavedRecord) and _is_record(type(begun)):
        hint = type(begun)  # of a part that says itself what it remembers
    if _is_record(hint):
        if not isinstance(value, SavedRecord):
            raise ValueError(f"{name} is no {hint.__name__}")
        return conforming(value.fields(), hint, begun, K)
    if get_origin(hint) is tuple:
        return _tuple(value, get_args(hint), begun, name, K)
    if isinstance(value, SavedRecord):
        raise ValueError(f"{name} is no record")
    if hint in (bool, str) and type(value) is not hint:
        raise ValueError(f"{name} is {'text' if hint is str else 'true or false'}, not {value!r}")
    if hint in (int, float):
        return _number(value, hint, name)
    if isinstance(hint, type) and issubclass(hint, Stored):
        if not isinstance(value, hint):
            raise ValueError(f"{name} is no {hint.tag}")
        value.require_of(K)
    elif is_array(begun):
        _require_like(value, to_numpy(begun), name)
    elif is_array(value) and (own := to_numpy(value)).dtype.kind == "f" and np.isnan(own).any():
        raise ValueError(f"{name} holds NaN")
    return value


def _tuple(value: Any, kinds: tuple[Any, ...], begun: Any, name: str, K: HasLMO) -> Any:
    """Every item by its own type; those of a tuple that grows are like the first before the first
    round, where there was one.
    """
    if type(value) is not tuple:
        raise ValueError(f"{name} is a list, not {_shown(value)}")
    begun = begun if isinstance(begun, tuple) else ()
    count = len(value)
    if len(kinds) == 2 and kinds[1] is Ellipsis:
        first = begun[0] if begun else None
        items = begun if kinds[0] is Any and len(begun) == count else (first,) * count
        kinds = (kinds[0],) * count
    else:
        items = begun if len(begun) == len(kinds) else (None,) * len(kinds)
    if count != len(kinds):
        raise ValueError(f"{name} must have {len(kinds)} items, not {count}")
    parts = zip(value, kinds, items, strict=True)
    return tuple(_fitting(item, kind, like, name, K) for item, kind, like in parts)


def _number(value: Any, hint: Any, name: str) -> Any:
    if type(value) not in ((int,) if hint is int else (int, float)) or math.isnan(value):
        raise ValueError(f"{name} is a {'whole ' * (hint is int)}number, not {value!r}"[:200])
    if hint is int and value < 0 and name not in SIGNED:
        raise ValueError(f"{name} counts, and is at least 0, not {value!r}"[:200])
    return value


def _require_like(value: Any, begun: NDArray, name: str) -> None:
    """The array of a field that has one from the start keeps its shape, unless that begins empty
    and grows.
    """
    own = to_numpy(value) if is_array(value) else np.array(None)
    alike = (own.ndim, own.dtype.kind) == (begun.ndim, begun.dtype.kind)
    if not alike or (own.shape != begun.shape and begun.shape != (0,)):
        raise ValueError(f"{name} is {begun.dtype} of shape {begun.shape}, not {_shown(value)}")
    if own.dtype.kind == "f" and not np.isfinite(own).all():
        raise ValueError(f"{name} holds what is no finite number")


def _shown(value: Any) -> str:
    if is_array(value):
        return f"{value.dtype} of shape {tuple(value.shape)}"
    return f"a {type(value).__name__}"


def _is_record(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, tuple) and hasattr(kind, "_fields")
