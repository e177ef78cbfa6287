"""Whether what was read from a file is a state of a learner: fields of the right types, arrays of
the right shapes, numbers that count.

A checksum finds accidents, not a hand that computes it again. So what a file holds is held against
the type of the state, field by field and record by record, and against the state before the first
round, whose arrays have the shapes that stay. Records are read by the names of their fields: one
that the file does not have takes its default, one that the state does not have is refused. A
ValueError says in half a sentence what is wrong.
"""

import types
from collections.abc import Mapping
from functools import cache
from typing import Any, Union, get_args, get_origin, get_type_hints

import numpy as np

from tidewolf.core import checkpoint, oracle
from tidewolf.core.arrays import eps_of, is_array, namespace, to_numpy
from tidewolf.core.types import Array


def conforming(fields: Mapping[str, Any], kind: Any, begun: Any, K: oracle.HasLMO) -> Any:
    hints, known = _hints(kind), set(kind._fields)
    unknown, missing = fields.keys() - known, known - fields.keys() - kind._field_defaults.keys()
    if unknown or missing:
        raise ValueError(f"fields are unknown ({[*unknown]}) or missing ({[*missing]})"[:200])
    return kind(
        **{
            name: _fitting(value, hints[name], getattr(begun, name, None), name, K)
            for name, value in fields.items()
        }
    )


_hints = cache(get_type_hints)


def allowed_infeasibility(K: oracle.HasLMO, x: Array) -> float:
    return max(1e-6, 1e4 * eps_of(x)) * max(K.radius, float(namespace(x).max(namespace(x).abs(x))))


def is_member(K: oracle.HasLMO, x: Any) -> bool:
    fits = is_array(x) and tuple(x.shape) == K.shape
    return fits and bool(K.infeasibility(x) <= allowed_infeasibility(K, x))


def _fitting(value: Any, hint: Any, begun: Any, name: str, K: oracle.HasLMO) -> Any:
    if get_origin(hint) in (Union, types.UnionType) and type(None) in get_args(hint):
        if value is None:
            return value
        kinds = [kind for kind in get_args(hint) if kind is not type(None)]
        hint = kinds[0] if len(kinds) == 1 else Any
    if hint is Any and isinstance(value, checkpoint.SavedRecord) and _is_record(type(begun)):
        hint = type(begun)  # of a part that says itself what it remembers
    if _is_record(hint) and isinstance(value, checkpoint.SavedRecord):
        return conforming(value, hint, begun, K)
    if get_origin(hint) is tuple and type(value) is tuple:
        return _tuple(value, get_args(hint), begun, name, K)
    if not _fits(value, hint, begun, name):
        form = f"{value.dtype} of shape {tuple(value.shape)}" if is_array(value) else repr(value)
        raise ValueError(f"{name} does not fit {getattr(hint, '__name__', hint)}: {form}"[:200])
    if isinstance(value, checkpoint.Stored) and hint is not Any:
        value.require_of(K)
    return value


def _tuple(value: Any, kinds: tuple[Any, ...], begun: Any, name: str, K: oracle.HasLMO) -> Any:
    """Every item by its own type; those of a tuple that grows are like the first before the first
    round, if there was one.
    """
    begun, count = begun if isinstance(begun, tuple) else (), len(value)
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


def _fits(value: Any, hint: Any, begun: Any, name: str) -> bool:
    """Whether a plain part is of its type; an array that is there from the start keeps its shape,
    unless that begins empty and grows.
    """
    if isinstance(value, checkpoint.SavedRecord) or _is_record(hint) or get_origin(hint) is tuple:
        return False
    if hint in (bool, str):
        return type(value) is hint
    if hint in (int, float):
        number = type(value) is int or (hint is float and type(value) is float)
        return number and value == value
    if isinstance(hint, type) and issubclass(hint, checkpoint.Stored):
        return isinstance(value, hint)
    own = to_numpy(value) if is_array(value) else np.array(None)
    if not is_array(begun):
        return own.dtype.kind != "f" or not np.isnan(own).any()
    first = to_numpy(begun)
    alike = (own.ndim, own.dtype.kind) == (first.ndim, first.dtype.kind)
    alike = alike and (own.shape == first.shape or first.shape == (0,))
    if own.shape == first.shape:  # what is infinite before the first round may be so still
        own = own[own != first]
    return alike and (own.dtype.kind != "f" or bool(np.isfinite(own).all()))


def _is_record(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, tuple) and hasattr(kind, "_fields")
