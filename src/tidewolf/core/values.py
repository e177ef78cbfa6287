"""Sets, functions and learners are values: equal when their settings are, printed as what they are,
and known again by one identity in files.

A value is a frozen dataclass (`eq=False, repr=False`, so that arrays compare by content) whose init
fields say all there is to say. Derived quantities are cached properties and do not count.
"""

import base64
import dataclasses
import hashlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cache, partial
from typing import Any, ClassVar, Self, cast

import numpy as np

from tidewolf.core import arrays, settings, sparse
from tidewolf.core.errors import InvalidInput, NotSupported, TidewolfError, WrongShape, require
from tidewolf.core.types import Shape

# The version of `identity`; another one gives other digests, and old files are refused.
IDENTITY = 3
# What computed settings may differ by from one machine to another, as a part of their size.
_FORGIVEN = 1e-9
_SUMS = 256
_LABEL = object()


class Value:
    """Equality, hash, repr and checks from the init fields of a frozen dataclass, arrays by
    content.
    """

    # what files call the class, if that is not its name: a class that is renamed has its old
    # name here, and a private variant the name of its public class
    kind_name: ClassVar[str]

    def __post_init__(self) -> None:
        settings.validate(self)
        self._complete()

    def _complete(self) -> None:
        """Refuse settings that do not fit each other, and fill in those that others decide; each
        has passed its own check.
        """

    def _require(
        self, holds: object, setting: str, due: str, kind: type[TidewolfError] = InvalidInput
    ) -> None:
        """Refuse a setting that does not fit the others; `due` says what it must do or be."""
        require(holds, kind, f"{setting} of {type(self).__name__} must {due}.", setting)

    def _require_shape(self, setting: str, shape: Shape) -> None:
        if (given := tuple(getattr(self, setting).shape)) != shape:  # each round makes some
            self._require(False, setting, f"have shape {shape}, not {given}", WrongShape)

    def fields(self) -> dict[str, Any]:
        """The settings by name, in the order of the constructor."""
        kind: Any = type(self)
        return {name: getattr(self, name) for name in _names(kind)}

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        assert isinstance(other, Value)
        mine, theirs = self.fields(), other.fields()
        return all(same(mine[name], theirs[name]) for name in mine)

    def __hash__(self) -> int:
        return hash(identity(self))

    def __repr__(self) -> str:
        if not dataclasses.is_dataclass(self):
            return f"{type(self).__name__}(...)"
        shown = ", ".join(f"{name}={_brief(value)}" for name, value in self.fields().items())
        return f"{type(self).__name__}({shown})"


class Composed(Value):
    """Abstract: a value made of others, with the capabilities that those allow.

    `isinstance` shows them: `Shrunk(Simplex(2), 0.5)` has an exact projection,
    `Shrunk(VertexHull(...), 0.5)` has none. A subclass lists the capabilities there are, writes the
    methods of all of them, and has a `__new__` that returns `cls._with(those it has)`.
    """

    _capabilities: ClassVar[tuple[type, ...]] = ()
    # the class as it stands in the source, without capabilities
    _written: ClassVar[type[Any]]

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if not issubclass(cls, cls._capabilities):
            cls._written = cls

    @classmethod
    def _with(cls, capabilities: Iterable[type]) -> Self:
        """An unfinished instance of the class as written, with these capabilities."""
        kind: Any = cls._written
        return cast(Self, object.__new__(with_capabilities(kind, tuple(capabilities))))

    def __reduce__(self) -> tuple[Any, ...]:
        written: Any = self._written
        return partial(written, **self.fields()), ()


@cache
def with_capabilities(written: Any, capabilities: tuple[type, ...]) -> Any:
    if not capabilities:
        return written
    names = {"__module__": written.__module__, "__doc__": written.__doc__}
    return type(written.__name__, (written, *capabilities), names)


def identity(value: object) -> str:
    """What `value` is, in one line: a version, and a digest of its kind and settings.

    The same on every machine and for equal values. Settings at their default are left out, so that
    a class may get a new one, with a default, and its files still fit; so are labels. No names of
    modules count, nor the order of settings: only what `kind_name` says and the settings' names.

    Parameters
    ----------
    value : object
        A set, a function, a learner, a stream, or what they are made of: numbers, text, arrays.

    Returns
    -------
    str
        Such as "3:05b8a6a4c5f0e2b1...".

    Raises
    ------
    NotSupported
        If it holds something without content to compare, such as a function of Python.
    """
    digest = hashlib.sha256()
    for part in _parts(value):
        digest.update(f"float:{part!r};".encode() if isinstance(part, float) else part)
    return f"{IDENTITY}:{digest.hexdigest()[:32]}"


def fingerprint(value: object) -> str:
    """What `value` is, as files keep it: compared by `is_same`, which forgives rounding.

        digest : tolerance : s_0 ... s_255,      s_k = sum of w_i u_i over i = k modulo 256

    The digest covers all that is exact: kinds, names, whole numbers, text, shapes. Floating-point
    numbers, whose last digits another processor or library may compute otherwise, enter as u: each
    setting divided by its size (its largest entry), after the logarithm of that size. The weights
    w_i = (1 + frac(i sqrt 2)) / 2 are the same on every machine.

    If entries differ by at most 1e-9 of the size of their setting, u_i differ by at most 2e-9, and
    a sum of m of them by at most 2e-9 m: that is the tolerance, with m the most that a sum has. A
    single u_i that differs by more than twice the tolerance is always noticed, as w_i >= 1/2.
    """
    exact, terms, rounding = hashlib.sha256(), [np.zeros(0)], _FORGIVEN
    for part in _parts(value):
        if isinstance(part, float):
            exact.update(b"float:")
            part = np.array([part])
        if isinstance(part, bytes) or part.dtype.kind != "f":
            exact.update(part if isinstance(part, bytes) else part.data)
            continue
        rounding = max(rounding, 100.0 * float(np.finfo(part.dtype).eps))
        entries = part.astype(np.float64).ravel()
        known = np.isfinite(entries)
        if not known.all():
            exact.update(np.where(known, 0.0, entries).tobytes())
            entries = np.where(known, entries, 0.0)
        size = float(np.abs(entries).max(initial=0.0)) or 1.0
        terms += [np.log([size]), entries / size]
    u = np.concatenate(terms)
    places = np.arange(len(u))
    weights = 0.5 + 0.5 * ((places * 2.0**0.5) % 1.0)
    sums = np.bincount(places % _SUMS, weights * u, minlength=_SUMS)
    tolerance = 2.0 * rounding * -(-len(u) // _SUMS)
    found = base64.b64encode(sums.astype("<f8").tobytes()).decode()
    return f"{IDENTITY}:{exact.hexdigest()[:32]}:{tolerance:.3e}:{found}"


def is_same(one: str, other: str) -> bool:
    if one == other:
        return True
    (*mine, my_sums), (*theirs, their_sums) = one.split(":"), other.split(":")
    if mine != theirs or len(mine) != 3:
        return False
    sums = [np.frombuffer(base64.b64decode(each), "<f8") for each in (my_sums, their_sums)]
    return bool((np.abs(sums[0] - sums[1]) <= float(mine[2])).all())


def _parts(value: Any) -> Iterator[Any]:
    """What a value is, in parts: kinds, names and exact settings as bytes, numbers as they are."""
    if isinstance(value, Value):
        kind, given = type(value), _given_settings(value)
        kind_name = kind.__dict__.get("kind_name") or kind.__name__.lstrip("_")
        yield f"{kind_name} {len(given)}:".encode()
        for name, part in given.items():
            yield f"{name}=".encode()
            yield from _parts(part)
    elif isinstance(value, np.generic):
        yield from _parts(value.item())
    elif isinstance(value, float):
        yield value + 0.0  # -0.0 equals 0.0
    elif value is None or isinstance(value, bool | int | str):
        yield f"{type(value).__name__}:{value!r};".encode()
    elif isinstance(value, tuple | list):
        yield f"sequence {len(value)}:".encode()
        for item in value:
            yield from _parts(item)
    elif isinstance(value, Mapping) and type(value) is not dict:  # a dict may change
        yield f"mapping {len(value)}:".encode()
        for name in sorted(value):
            yield from _parts(name)
            yield from _parts(value[name])
    elif arrays.is_array(value):
        array = np.ascontiguousarray(arrays.to_numpy(value))
        yield f"array {array.dtype.str} {array.shape}:".encode()
        yield np.atleast_1d(array + 0.0 if array.dtype.kind == "f" else array)
    elif sparse.is_sparse(value):
        yield f"sparse {value.shape}:".encode()
        for part in (value.data, value.indices.astype(np.int64), value.indptr.astype(np.int64)):
            yield from _parts(part)
    else:
        able = "numbers, text, arrays, and values made of them"
        raise NotSupported(f"A {type(value).__name__} has no identity to compare by: use {able}.")


def _given_settings(value: Value) -> dict[str, Any]:
    kind: Any = type(value)
    fields = value.fields()  # refuses what says too little
    defaults = _defaults(kind)
    return {
        name: part
        for name, part in sorted(fields.items())
        if name not in defaults or not (defaults[name] is _LABEL or same(part, defaults[name]))
    }


@cache
def _names(kind: Any) -> tuple[str, ...]:
    words = f"{kind.__name__} must be a dataclass(frozen=True, eq=False, repr=False)."
    require(dataclasses.is_dataclass(kind), NotSupported, words)
    return tuple(
        f.name for f in sorted(dataclasses.fields(kind), key=lambda f: bool(f.kw_only)) if f.init
    )


@cache
def _defaults(kind: Any) -> dict[str, Any]:
    """The defaults of a class by name, in the plain form that a value has them in; without those
    that the class itself refuses, which say that one of two settings is to be given. Fields with
    `field(metadata={"label": True})` name things and decide nothing.
    """
    fields, found = {f.name: f for f in dataclasses.fields(kind)}, dict[str, Any]()
    for name, setting in settings.settings_of(kind).items():
        default, own = setting.default, fields.get(name)
        with suppress(TidewolfError):
            if own is not None and own.metadata.get("label"):
                default = _LABEL
            elif own is not None and own.default_factory is not dataclasses.MISSING:
                default = own.default_factory()
            elif setting.declared and setting.check is not None and default is not None:
                default = settings.checked(setting.check, default, name, kind.__name__)
            if default is not settings.REQUIRED:
                found[name] = default
    return found


def same(a: object, b: object) -> bool:
    if arrays.is_array(a) and arrays.is_array(b):
        mine, theirs = arrays.to_numpy(a), arrays.to_numpy(b)
        nan = mine.dtype.kind == "f"  # what is not known is equal to what is not known
        return mine.dtype == theirs.dtype and bool(np.array_equal(mine, theirs, equal_nan=nan))
    if sparse.is_sparse(a) or sparse.is_sparse(b):
        return sparse.is_sparse(a) and sparse.is_sparse(b) and sparse.same_rows(a, b)
    if isinstance(a, tuple | list) and type(a) is type(b):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        return a.keys() == b.keys() and all(same(part, b[name]) for name, part in a.items())
    return type(a) is type(b) and bool(a == b)


def _brief(value: Any) -> str:
    if arrays.is_array(value):
        array = arrays.to_numpy(value)
        if array.ndim == 1 and array.size <= 4:
            return "[" + ", ".join(f"{v:g}" for v in array) + "]"
        return f"<{'x'.join(map(str, array.shape))} {array.dtype}>"
    if sparse.is_sparse(value):
        return f"<{'x'.join(map(str, value.shape))} {value.dtype}, {value.nnz} stored>"
    if isinstance(value, tuple) and len(value) > 4:
        return f"<{len(value)} items>"
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{name!r}: {_brief(part)}' for name, part in value.items())}}}"
    return f"{value:g}" if isinstance(value, float) else repr(value)
