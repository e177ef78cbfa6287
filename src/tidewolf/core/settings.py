"""Settings that declare themselves: a field carries its check, the docstring says what it means.

    total : float, default 1.0
        The sum of the entries.

    total: Annotated[float, Number(above=0.0)] = 1.0

A field of a frozen dataclass (a set, a function, a learner) or a parameter of a function (a
problem, a constructor such as `FlowPolytope.from_edges`) is declared once. From that come

- validation: `Value.__post_init__` puts each field into its plain form, or refuses it in a
  sentence,
- `error.setting`, the name of what was refused, by which a file's line is found,
- the keys of experiment files (`settings_of`, `constructor_of`),
- the types in the Parameters section of the docstring (`python -m tools.docstrings` writes them, a
  check compares), and from that section what `tidewolf list` says of each setting.

A field without a check is taken as it is, so that a dataclass of one's own needs nothing from here;
where its type says what it takes (int, float, bool, str, an array), a file can set it all the same.
A new kind of setting is a subclass of `Check`, beside the class that needs it.
"""

import dataclasses
import inspect
import math
import re
import sys
import types
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, fields
from functools import cache, wraps
from typing import Annotated, Any, ClassVar, NamedTuple, TypeVar, Union, cast, get_args, get_origin

from tidewolf.core import arrays
from tidewolf.core.arguments import as_flag, as_items, as_path, as_text, shown
from tidewolf.core.errors import InvalidInput, TidewolfError, WrongShape, WrongType
from tidewolf.core.types import Array, Shape

# The default of a setting that has none; a field named like a property of a base takes it as its
# default, which hides the property.
REQUIRED: Any = inspect.Parameter.empty


@dataclass(frozen=True)
class Check(ABC):
    """What a setting has to be: a text for readers and a test for values."""

    # what the setting means, if no docstring says it
    sentence: str = ""
    # what it is measured in, such as "rounds"; empty for pure numbers
    unit: str = field(default="", kw_only=True)

    # what a file may write, such as "a whole number"
    words: ClassVar[str]
    # the key in files, if it is not the name of the setting
    key: ClassVar[str] = ""
    # what a file writes, if `read` is not defined: a value of this type,
    file_type: ClassVar[type] = object
    # or a list of values of this type
    item_type: ClassVar[type | None] = None

    @abstractmethod
    def __call__(self, value: Any, what: str) -> Any:
        """The value in its plain form; refused with a sentence that begins with `what`."""

    def read(self, value: Any) -> Any:
        """What a file says, frozen; None if it is of another kind. The value is checked
        later.
        """
        if self.item_type and type(value) is list:
            return tuple(value) if all(type(item) is self.item_type for item in value) else None
        return value if type(value) is self.file_type else None

    def build(self, value: Any) -> Any:
        """What a value that was read stands for, where a file can only name it."""
        return value


@dataclass(frozen=True)
class Count(Check):
    """A whole number from `least` to `most`."""

    least: int = field(default=1, kw_only=True)
    most: int = field(default=arrays.LARGEST_COUNT, kw_only=True)

    words: ClassVar[str] = "a whole number"
    file_type: ClassVar[type] = int

    def __call__(self, value: Any, what: str) -> int:
        return arrays.as_count(value, what, least=self.least, most=self.most)


@dataclass(frozen=True)
class Number(Check):
    """A finite number: greater than `above`, from `least` to `most`."""

    above: float = field(default=-math.inf, kw_only=True)
    least: float = field(default=-math.inf, kw_only=True)
    most: float = field(default=math.inf, kw_only=True)

    words: ClassVar[str] = "a number"

    def __call__(self, value: Any, what: str) -> float:
        return arrays.as_number(value, what, above=self.above, least=self.least, most=self.most)

    def read(self, value: Any) -> float | None:
        with suppress(OverflowError):
            return float(value) if type(value) in (int, float) else None
        return None


@dataclass(frozen=True)
class Magnitude(Number):
    """A number above 0 whose square is one too."""

    above: float = field(default=0.0, kw_only=True)
    least: float = field(default=arrays.LEAST, kw_only=True)
    most: float = field(default=arrays.MOST, kw_only=True)


@dataclass(frozen=True)
class Seed(Count):
    """A seed of random numbers."""

    least: int = field(default=0, kw_only=True)
    most: int = field(default=arrays.LARGEST_SEED, kw_only=True)


class Flag(Check):
    """True or False."""

    words: ClassVar[str] = "true or false"
    file_type: ClassVar[type] = bool

    def __call__(self, value: Any, what: str) -> bool:
        return as_flag(value, what)


@dataclass(frozen=True)
class Text(Check):
    """Text: any, or one of `choices`."""

    choices: tuple[str, ...] = field(default=(), kw_only=True)

    words: ClassVar[str] = "text"
    file_type: ClassVar[type] = str

    def __call__(self, value: Any, what: str) -> str:
        text = as_text(value, what)
        if self.choices and text not in self.choices:
            raise InvalidInput(f"{what} is one of {', '.join(self.choices)}, not {shown(value)}.")
        return text


@dataclass(frozen=True)
class ListOf(Check):
    """A list whose items pass one check, such as `such`."""

    words: str = field(kw_only=True)  # type: ignore[misc]  # of each list its own
    item: Check = field(kw_only=True)
    such: str = field(kw_only=True)

    def __call__(self, value: Any, what: str) -> Any:
        return tuple(self.item(one, f"Each of {what}") for one in as_items(value, what, self.such))

    def read(self, value: Any) -> Any:
        found = [self.item.read(one) for one in value] if type(value) is list else [None]
        return None if None in found else tuple(found)


# What things are called; empty where they have no names.
NAMES = ListOf(words="a list of names", item=Text(), such='["SEA > DEN"]')


class Size(Check):
    """The number of entries of a point, or its shape."""

    words: ClassVar[str] = "a whole number or a list of whole numbers"
    file_type: ClassVar[type] = int
    item_type: ClassVar[type | None] = int

    def __call__(self, value: Any, what: str) -> int | Shape:
        shape = as_shape(value if isinstance(value, tuple | list) else (value,), what)
        return shape[0] if len(shape) == 1 else shape

    def read(self, value: Any) -> int | Shape | None:
        return None if value == [] else super().read(value)


@dataclass(frozen=True)
class Numbers(Check):
    """An array of finite numbers with `axes` axes (any where None), kept as a read-only copy."""

    axes: int | None = field(default=None, kw_only=True)
    above: float = field(default=-math.inf, kw_only=True)
    least: float = field(default=-math.inf, kw_only=True)

    words: ClassVar[str] = "a list of numbers or the name of a table"

    def __call__(self, value: Any, what: str) -> Array:
        array = arrays.as_own(value, what)
        if self.axes is not None and (len(array.shape) != self.axes or 0 in array.shape):
            axes = {1: "a vector", 2: "a matrix"}.get(self.axes, f"an array of {self.axes} axes")
            raise WrongShape(f"{what} must be {axes}, not of shape {tuple(array.shape)}.")
        if max(self.above, self.least) > -math.inf:
            smallest = float(arrays.to_numpy(array).min(initial=math.inf))
            arrays.as_number(smallest, what, above=self.above, least=self.least)
        return array

    def read(self, value: Any) -> Any:
        if type(value) in (int, float) and self.axes in (None, 0):
            return Number().read(value)
        return value if isinstance(value, str) and value else _nested(value)


class PointNumbers(Numbers):
    """An array that has an entry for each of a point's: at least one axis, and no empty one."""

    def __call__(self, value: Any, what: str) -> Array:
        array = super().__call__(value, what)
        require_entries(tuple(array.shape), what)
        return array


@dataclass(frozen=True)
class Is(Check):
    check: Callable[[Any, str], Any] = field(kw_only=True, default=as_path)

    words = "what only Python code gives"

    def __call__(self, value: Any, what: str) -> Any:
        return self.check(value, what)

    def read(self, value: Any) -> None:
        return None


def many(check: Callable[[Any, str], Any], such: str) -> Is:
    def items(value: Any, what: str) -> tuple[Any, ...]:
        given = value.items() if isinstance(value, Mapping) else value
        return tuple(check(item, f"An item of {what}") for item in as_items(given, what, such))

    return Is(check=items)


def pair_of(
    second: Callable[[Any, str], Any],
    first: Callable[[Any, str], Any] = as_text,
    such: str = "a name and a value",
) -> Callable[[Any, str], Any]:
    def pair(value: Any, what: str) -> tuple[Any, Any]:
        if not isinstance(value, tuple | list) or len(value) != 2:
            raise WrongType(f"{what} is a pair of {such}, not {shown(value)}.")
        return first(value[0], f"The first of {what}"), second(value[1], what)

    return pair


def freeze(value: Any) -> Any:
    """Lists as tuples and mappings as pairs, all the way down."""
    if isinstance(value, Mapping):
        value = list(value.items())
    return tuple(map(freeze, value)) if isinstance(value, list | tuple) else value


def given_fields(part: Any) -> dict[str, Any]:
    return {
        one.name: value for one in fields(part) if (value := getattr(part, one.name)) != one.default
    }


class Setting(NamedTuple):
    name: str
    # its type, without the check
    takes: Any
    # None if nothing can be said of it, so that no file can set it
    check: Check | None
    # whether the check was declared; otherwise the type alone says what a file may write
    declared: bool
    # `REQUIRED` if there is none
    default: Any
    # what it does, and its unit if it has one
    meaning: str = ""

    @property
    def required(self) -> bool:
        return self.default is REQUIRED

    @property
    def key(self) -> str:
        return (self.check.key if self.check else "") or self.name

    @property
    def words(self) -> str:
        return self.check.words if self.check else "nothing that a file can say"


F = TypeVar("F", bound=Callable[..., Any])


def names_in_files(method: F) -> F:
    """Mark a constructor: its parameters, not the fields, are what a file sets; they are checked
    as declared.
    """
    marked = validated(method)
    marked.names_in_files = True  # type: ignore[attr-defined]
    return marked


def constructor_of(kind: type) -> Callable[..., Any]:
    for name in dir(kind):
        method = inspect.getattr_static(kind, name)
        if getattr(getattr(method, "__func__", None), "names_in_files", False):
            return cast(Callable[..., Any], getattr(kind, name))
    return kind


@cache
def settings_of(make: Any) -> dict[str, Setting]:
    generated = getattr(make, "__dataclass_params__", None)
    if generated is not None and generated.init:
        owners = [
            (f, next(c for c in make.__mro__ if f.name in inspect.get_annotations(c)))
            for f in dataclasses.fields(make)
        ]
        hints = {f.name: (f.type, vars(sys.modules[c.__module__])) for f, c in owners}
    else:
        function = inspect.getattr_static(make, "__init__") if isinstance(make, type) else make
        plain: Any = inspect.unwrap(function)
        home = getattr(plain, "__globals__", {})
        hints = {name: (hint, home) for name, hint in getattr(plain, "__annotations__", {}).items()}
    section = (inspect.getdoc(make) or "").partition("Parameters\n----------\n")[2]
    entries = re.split(r"\n(?=\S)", re.split(r"\n\n(?=\S)", section)[0])
    meanings = {e.partition(" :")[0]: " ".join(e.partition("\n")[2].split()) for e in entries}
    return {
        name: _setting(name, *hints.get(name, (Any, {})), parameter.default, meanings.get(name, ""))
        for name, parameter in inspect.signature(make).parameters.items()
    }


def validate(value: Any) -> None:
    """Put every declared field of a frozen dataclass into its plain form; None passes as
    default.
    """
    vars(value).update(_plain(type(value), vars(value), type(value).__name__))


def _plain(make: Any, given: Mapping[str, Any], owner: str) -> dict[str, Any]:
    return {
        name: checked(check, given[name], name, owner)
        for name, check, optional in _checks(make)
        if given[name] is not None or not optional
    }


def checked(check: Check, value: Any, name: str, owner: str) -> Any:
    if value is REQUIRED:
        raise WrongType(f"{name} of {owner} is missing.", setting=name)
    try:
        return check(value, f"{name} of {owner}")
    except TidewolfError as error:
        error.setting = error.setting or name
        raise


def validated(make: F) -> F:
    signature = inspect.signature(make)

    @wraps(make)
    def call(*given: Any, **named: Any) -> Any:
        bound = signature.bind(*given, **named)
        bound.apply_defaults()
        bound.arguments.update(_plain(make, bound.arguments, _owner(make, given)))
        return make(*bound.args, **bound.kwargs)

    return cast(F, call)


def _owner(make: Any, given: tuple[Any, ...]) -> str:
    if make.__name__ == "__init__":
        return type(given[0]).__name__
    kind = given[0] if given and isinstance(given[0], type) else make
    return str(kind.__name__)


def as_shape(shape: Any, what: str) -> Shape:
    sides = tuple(arrays.as_count(side, what) for side in shape)
    if not sides:
        raise WrongShape(f"{what} is a shape without axes; a number is a point of shape (1,).")
    arrays.as_count(math.prod(sides), f"The number of entries of {what}", most=arrays.MOST_ENTRIES)
    return sides


def require_entries(shape: Shape, what: str) -> None:
    if not shape or 0 in shape:
        raise WrongShape(f"{what} has shape {shape}; a point has at least one entry, as (1,) has.")


@cache
def _checks(kind: Any) -> tuple[tuple[str, Check, bool], ...]:
    return tuple(
        (s.name, s.check, s.default is None or type(None) in get_args(s.takes))
        for s in settings_of(kind).values()
        if s.declared and s.check is not None
    )


def _setting(name: str, hint: Any, home: dict[str, Any], default: Any, meaning: str) -> Setting:
    try:
        hint = eval(hint, home) if isinstance(hint, str) else hint
    except (NameError, AttributeError):
        hint = Any
    takes, *notes = get_args(hint) if get_origin(hint) is Annotated else (hint,)
    check = next((note for note in notes if isinstance(note, Check)), None)
    if check is not None and check.sentence:
        meaning = f"{check.sentence} Unit: {check.unit}." if check.unit else check.sentence
    return Setting(name, takes, check or _kind(takes), check is not None, default, meaning)


# What a file may write for a field that declares nothing but its type; an array is typed Any.
_KINDS: dict[Any, Check] = {
    int: Count(least=-arrays.LARGEST_COUNT),
    float: Number(),
    bool: Flag(),
    str: Text(),
    Any: Numbers(),
}


def _kind(hint: Any) -> Check | None:
    kinds = get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)
    kinds = tuple(kind for kind in kinds if kind is not type(None))
    return _KINDS.get(kinds[0]) if len(kinds) == 1 else None


def _nested(value: Any) -> Any:
    """A list of numbers, or of such lists of one length, as tuples; None for anything else."""
    if not isinstance(value, list) or not value:
        return None
    if all(type(item) in (int, float) for item in value):
        return tuple(value)
    rows = [_nested(item) for item in value]
    return None if None in rows or len({len(row) for row in rows}) != 1 else tuple(rows)
