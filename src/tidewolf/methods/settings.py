"""The checks of the settings that learners share.

A setting of one name means the same in every learner. A learner's field takes one of the aliases at
the end as its type, `horizon: OptionalRounds = None`.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import wraps
from typing import Annotated, Any, ClassVar, TypeVar

from tidewolf.core import arguments, errors, oracle
from tidewolf.core.arrays import LEAST, MOST, length
from tidewolf.core.settings import Check, Count, Flag, Magnitude, Number, PointNumbers
from tidewolf.core.types import Array
from tidewolf.projection.active import start_active

T = TypeVar("T")

AUTO = "auto"

# The default of the one knob: larger values break limits less and cost more.
DEFAULT_CAUTION = 10.0


@dataclass(frozen=True)
class HardSet(Check):
    """A set with an oracle, of a size whose square is a number, that `require` does not refuse."""

    require: Callable[[Any, str], object] | None = None  # given the set and the learner's name

    words: ClassVar[str] = "a set, which files say elsewhere"

    def __call__(self, value: Any, what: str) -> oracle.HasLMO:
        owner = what.rpartition(" of ")[2]
        K = oracle.as_set(value, owner)
        if not (K.radius == 0.0 or LEAST <= K.radius <= MOST) or length(K.center) > MOST:
            where = f"radius {K.radius:.3g}, {length(K.center):.3g} from the origin,"
            raise errors.InvalidInput(
                f"A set of {where} was given; {owner} squares distances and takes radii from "
                f"{LEAST:g} to {MOST:g}, or 0, and no point farther away: give the points in other "
                "units."
            )
        if self.require is not None:
            self.require(K, owner)
        return K

    def read(self, value: Any) -> None:
        """Nothing: a file says the set of an experiment, not of a learner."""


@dataclass(frozen=True)
class Numbers(Check):
    """A few numbers in the order given; one number stands for itself unless all must differ."""

    each: Number = field(kw_only=True)
    distinct: bool = field(default=False, kw_only=True)  # whether no two may be alike

    words: ClassVar[str] = "a list of numbers such as [0.1, 1.0]"

    def __call__(self, value: Any, what: str) -> tuple[float, ...]:
        alone = isinstance(value, float | int) and not self.distinct
        given = (value,) if alone else arguments.as_items(value, what, "(0.1, 1.0)")
        numbers = tuple(self.each(one, what) for one in given)
        if not numbers or (self.distinct and len(set(numbers)) < len(numbers)):
            unlike = ", and no two alike" * self.distinct
            raise errors.InvalidInput(f"{what} must be one number at least{unlike}.")
        return numbers

    def read(self, value: Any) -> tuple[float, ...] | None:
        given = value if isinstance(value, list | tuple) or self.distinct else (value,)
        if not isinstance(given, list | tuple):
            return None
        return tuple(map(float, given)) if all(type(v) in (int, float) for v in given) else None


@dataclass(frozen=True)
class Calls(Magnitude):
    words: ClassVar[str] = 'a number, or "auto"'

    def __call__(self, value: Any, what: str) -> Any:
        return value if isinstance(value, str) and value == AUTO else super().__call__(value, what)

    def read(self, value: Any) -> Any:
        return value if value == AUTO else super().read(value)


@dataclass(frozen=True)
class StartingPoint(PointNumbers):
    """A point; whether it is a member of the set is asked when the learner starts."""

    key: ClassVar[str] = "start"


def takes_start(cls: type[T]) -> type[T]:
    """A learner whose setting `start_at` is called `start` where it is made and in files: under
    that name a learner has its method.
    """
    made = cls.__init__

    @wraps(made)
    def init(self: Any, *args: Any, start: Any = None, **settings: Any) -> None:
        if start is not None and settings.get("start_at") is not None:
            raise errors.InvalidInput("start and start_at are one setting: give one of them.")
        if start is not None:
            settings["start_at"] = start
        made(self, *args, **settings)
        if self.start_at is not None:
            start_active(self.K, self.start_at)  # refused where it is no member

    cls.__init__ = init  # type: ignore[method-assign]
    return cls


HardSetK = Annotated[oracle.HasLMO, HardSet()]
OptionalRounds = Annotated[int | None, Count()]
Positive = Annotated[float, Magnitude()]
CallsOrAuto = Annotated[float, Calls()]
OptionalPositive = Annotated[float | None, Magnitude()]
AboveZero = Annotated[float | None, Number(above=0.0)]
PerConstraint = Annotated[bool, Flag()]
StartAt = Annotated[Array | None, StartingPoint()]
