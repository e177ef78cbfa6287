"""Sets, functions and learners are values: equal when their settings are, printed as what they are,
fingerprinted.

A value is a frozen dataclass (`eq=False, repr=False`, so that arrays compare by content) whose init
fields say all there is to say. Derived quantities are cached properties and do not count.
"""

from __future__ import annotations

import dataclasses
import hashlib
from typing import Any

import numpy as np

from tidewolf.core.arrays import is_array, to_numpy
from tidewolf.core.errors import NotSupported
from tidewolf.core.settings import validate


class Value:
    """Equality, hash, repr and checks from the init fields of a frozen dataclass, arrays by
    content.
    """

    def __post_init__(self) -> None:
        validate(self)

    def fields(self) -> dict[str, Any]:
        """The settings by name, in the order of the constructor."""
        if not dataclasses.is_dataclass(self):
            raise NotSupported(
                f"{type(self).__name__} must be a dataclass(frozen=True, eq=False, repr=False): "
                "its fields say what it is."
            )
        return {f.name: getattr(self, f.name) for f in dataclasses.fields(self) if f.init}

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        assert isinstance(other, Value)
        mine, theirs = self.fields(), other.fields()
        return all(_same(mine[name], theirs[name]) for name in mine)

    def __hash__(self) -> int:
        return hash(fingerprint(self))

    def __repr__(self) -> str:
        if not dataclasses.is_dataclass(self):
            return f"{type(self).__name__}(...)"
        shown = ", ".join(f"{name}={_brief(value)}" for name, value in self.fields().items())
        return f"{type(self).__name__}({shown})"


def fingerprint(value: object) -> str:
    """A short hex digest of what `value` is: its type and settings, the same on every machine and
    for equal values.
    """
    digest = hashlib.sha256()
    _feed(digest, value)
    return digest.hexdigest()[:32]


def _feed(digest: Any, value: object) -> None:
    if isinstance(value, np.generic):
        _feed(digest, value.item())
    elif value is None or isinstance(value, bool | int | float | str):
        value = value + 0.0 if isinstance(value, float) else value  # -0.0 equals 0.0
        digest.update(f"{type(value).__name__}:{value!r};".encode())
    elif isinstance(value, tuple | list):
        digest.update(f"sequence {len(value)}:".encode())
        for item in value:
            _feed(digest, item)
    elif is_array(value):
        array = np.ascontiguousarray(to_numpy(value))
        array = array + 0.0 if array.dtype.kind == "f" else array
        digest.update(f"array {array.dtype.str} {array.shape}:".encode())
        digest.update(array.tobytes())
    elif isinstance(value, Value):
        digest.update(f"{type(value).__name__}:".encode())
        for name, part in value.fields().items():
            if name not in _labels(value):
                digest.update(f"{name}=".encode())
                _feed(digest, part)
    else:
        raise NotSupported(
            f"A {type(value).__name__} cannot be fingerprinted: settings are numbers, text, "
            "arrays, and values made of them."
        )


def _labels(value: Value) -> set[str]:
    """Fields that name things and decide nothing: `field(metadata={"label": True})`."""
    return {f.name for f in dataclasses.fields(value) if f.metadata.get("label")}  # type: ignore[arg-type]


def _same(a: object, b: object) -> bool:
    if is_array(a) and is_array(b):
        mine, theirs = to_numpy(a), to_numpy(b)
        return mine.dtype == theirs.dtype and bool(np.array_equal(mine, theirs))
    if isinstance(a, tuple | list) and type(a) is type(b):
        return len(a) == len(b) and all(map(_same, a, b))
    return type(a) is type(b) and bool(a == b)


def _brief(value: object) -> str:
    if is_array(value):
        array = to_numpy(value)
        if array.ndim == 1 and array.size <= 4:
            return "[" + ", ".join(f"{v:g}" for v in array) + "]"
        return f"<{'x'.join(map(str, array.shape))} {array.dtype}>"
    if isinstance(value, tuple) and len(value) > 4:
        return f"<{len(value)} items>"
    return f"{value:g}" if isinstance(value, float) else repr(value)
