"""What is known before a round: a type, as feedback is, so that nothing of the round itself can
leak into its decision.

    x_t = act(informed(state, known_t));   then round t is shown;   state = update(state, seen_t)

Time is a number of seconds (since 1970 where it is a date, a date without an offset read as it
stands, so that a season follows the clock on the wall). Points that others advise are arrays by
name; one that is not there, or holds a NaN, is absent. Entries that are out are names and places,
each once, places first. A learner that has no use for what is known plays as if it had not been
told; only entries that are out are refused by one that cannot leave them out.
"""

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Self, final

import numpy as np

from tidewolf.core.arguments import as_items, as_text, shown
from tidewolf.core.arrays import as_number, as_numbers, as_own, frozen, is_array, namespace
from tidewolf.core.errors import InvalidInput, NotFinite, NotSupported, WrongType, require
from tidewolf.core.frames import is_table, times_of
from tidewolf.core.types import Array, Floats, Int64s, NDArray
from tidewolf.core.values import identity, same

if TYPE_CHECKING:
    from tidewolf.core.feedback import FullInformation

# How far the features of a round may be from a sum of 1.
FEATURE_ROUNDING = 1e-9
# Microseconds in a second.
_SECOND = 1_000_000
_ENTRIES = '["SEA > DEN", 7]'


@final
class NamedPoints(dict[str, Any]):
    """Points, or functions, by name, for good."""

    def __setitem__(self, name: str, point: Array) -> None:
        raise TypeError("Points that are known do not change.")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Mapping) and same(dict(self), dict(other))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (dict(self),)


class _Fields(NamedTuple):
    time: float | None = None
    context: Any = None
    advice: Mapping[str, Array] | None = None
    forecast: "FullInformation | None" = None
    unavailable: tuple[int | str, ...] | None = None
    # experts that missed the deadline of the round; set by the session, no part of the identity
    skipped: tuple[str, ...] | None = None


@final
class RoundInfo(_Fields):
    """Side information of a round; everything is optional.

    Parameters
    ----------
    time : float, str or datetime, optional
        When the round is: a number of seconds, a date in ISO form, or a datetime. Kept as seconds
        since 1970. Unit: seconds.
    context : int or array, optional
        The kind of the round: a category, or an array of weights, as the learner's context expects
        it.
    advice : mapping, optional
        Proposed points by name. None, or a point with a NaN: absent.
    forecast : FullInformation or (loss, constraint), optional
        The functions that are predicted for the round.
    unavailable : sequence of str or int, optional
        Entries that are out of service: by name, as in the set's `names`, or by index in C order,
        from 0; or a single name. The decision is 0 there.

    Raises
    ------
    WrongType, InvalidInput, NotFinite
        If a part is not valid.

    Examples
    --------
    >>> info = tw.RoundInfo(time="2026-03-01T12:00", context=2, advice={"incumbent": [0.5, 0.5]})
    >>> info.time, info.context, info.advice["incumbent"]
    (1772366400.0, 2, array([0.5, 0.5]))
    >>> info == tw.RoundInfo(1772366400, 2, {"incumbent": [0.5, 0.5]})
    True
    >>> tw.RoundInfo(unavailable=["SEA > DEN", 7, "SEA > DEN"]).unavailable
    (7, 'SEA > DEN')
    """

    __slots__ = ()

    def __new__(
        cls,
        time: Any = None,
        context: Any = None,
        advice: Mapping[str, Any] | None = None,
        forecast: Any = None,
        unavailable: Any = None,
    ) -> Self:
        return super().__new__(
            cls,
            None if time is None else as_time(time, "The time of a round"),
            None if context is None else as_category(context),
            None if advice is None else _advice(advice),
            None if forecast is None else _forecast(forecast),
            None if unavailable is None else as_unavailable(unavailable),
        )

    def with_skipped(self, names: tuple[str, ...]) -> Self:
        """The same, of a round in which these members slept."""
        return self._replace(skipped=names or None)

    @property
    def says_nothing(self) -> bool:
        """Whether nothing is known, but who slept."""
        return all(part is None for part in self[:-1])

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self)._make, (tuple(self),)

    @property
    def identity(self) -> str | None:
        """A digest of all of it, the same for equal content; None if a forecast is a function of
        Python, which has none.
        """
        functions = None if self.forecast is None else tuple(self.forecast)
        try:
            return identity((*self[:3], functions, self.unavailable))
        except NotSupported:
            return None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RoundInfo) and same(tuple(self), tuple(other))

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(self.identity)

    def __repr__(self) -> str:
        given = zip(self._fields, self, strict=True)
        parts = (f"{name}={part!r}" for name, part in given if part is not None)
        return f"RoundInfo({', '.join(parts)})"


def as_time(x: object, what: str) -> float:
    """`x` as seconds since 1970: a number of seconds, a date in ISO form, or a datetime."""
    if isinstance(x, np.datetime64):
        require(not np.isnat(x), NotFinite, f"{what} is no time: {x!s}.")
        return int(x.astype("datetime64[us]").astype(np.int64)) / _SECOND
    if isinstance(x, str):
        try:
            x = datetime.datetime.fromisoformat(x.strip())
        except ValueError:
            words = f"{what} must be seconds, a datetime, or ISO text such as 2026-03-01T12:00"
            raise InvalidInput(f"{words}, not {shown(x)}.") from None
    if isinstance(x, datetime.date) and not isinstance(x, datetime.datetime):
        x = datetime.datetime(x.year, x.month, x.day)
    if isinstance(x, datetime.datetime):
        if x != x:  # the NaT of pandas
            raise NotFinite(f"{what} is no time: {x!s}.")
        x = (x if x.tzinfo is not None else x.replace(tzinfo=datetime.UTC)).timestamp()
    return as_number(x, what)


def as_times(x: object, what: str) -> tuple[Floats, NDArray]:
    """The times of many rounds, of a frame those it has, as seconds since 1970 (NaN, NaT and None:
    not known); and as they were given, for people to know rounds by: datetime64 if they are dates,
    one without an offset as it stands, others in UTC; whole numbers with every digit.
    """
    times: Any = times_of(x, what) if is_table(x) else x
    if not (type(times) is np.ndarray and times.dtype == np.float64):
        times = np.asarray(times, dtype=None if is_array(times) else object)
    kind, dated = times.dtype.kind, False
    if kind == "M":
        dated, given = True, times.astype("datetime64[us]").astype(np.int64) / _SECOND
        seconds: Floats = frozen(np.where(np.isnat(times), np.nan, given))
    elif kind in "OU":
        dated = any(isinstance(one, str | datetime.date | np.datetime64) for one in times.flat)
        found = [np.nan if _is_missing(one) else as_time(one, what) for one in times.flat]
        seconds = frozen(np.array(found, dtype=np.float64).reshape(times.shape))
    else:
        seconds = as_numbers(times, what)
    if not dated:
        return seconds, frozen(times.copy()) if kind in "iu" else seconds
    there = np.isfinite(seconds)
    microseconds = np.round(np.where(there, seconds, 0.0) * _SECOND).astype("datetime64[us]")
    return seconds, frozen(np.where(there, microseconds, np.datetime64("NaT", "us")))


def _is_missing(x: Any) -> bool:
    return x is None or (isinstance(x, float | np.floating | datetime.datetime) and bool(x != x))


def as_category(x: Any) -> Any:
    """The kind of a round: text, a number, whole if it can be, or a row of weights."""
    if isinstance(x, str):
        return str(x)
    if isinstance(x, list | tuple) or (is_array(x) and x.ndim > 0):
        return as_own(x, "The context of a round")
    if isinstance(x, int | np.integer | np.bool_):
        return int(x)
    number = as_number(x, "The context of a round")
    return int(number) if number == int(number) else number


def _advice(x: Any) -> NamedPoints:
    if not isinstance(x, Mapping):
        raise WrongType(f"Advice is points by name, such as {{'incumbent': x}}, not {shown(x)}.")
    points = {}
    for name, point in x.items():
        name = as_text(name, "The name of advice")
        if point is not None and is_present(array := as_numbers(point, f"The advice {name!r}")):
            points[name] = frozen(namespace(array).asarray(array, copy=True))
    return NamedPoints(points)


def is_present(point: Array) -> bool:
    """Whether advice is a point: one that holds a NaN, or an infinite number, is absent."""
    xp = namespace(point)
    return bool(xp.all(xp.isfinite(point)))


def as_unavailable(x: Any) -> tuple[int | str, ...] | None:
    entries = set[int | str]()
    for one in (x,) if isinstance(x, str) else as_items(x, "What is unavailable", _ENTRIES):
        place = isinstance(one, int | np.integer) and not isinstance(one, bool) and one >= 0
        if not (place or isinstance(one, str)):
            kind = InvalidInput if type(one) is int else WrongType
            words = f"names of entries, or indices from 0, such as {_ENTRIES}"
            raise kind(f"What is unavailable must be {words}, not {shown(one)}.")
        entries.add(int(one) if place else str(one))
    return tuple(sorted(entries, key=lambda one: (isinstance(one, str), one))) or None


def _forecast(x: Any) -> "FullInformation":
    from tidewolf.core.batch import Stream
    from tidewolf.core.feedback import FullInformation

    stream = Stream(*x) if isinstance(x, tuple | list) and len(x) == 2 else None
    if stream is None or len(stream) != 1:
        kind = WrongType if stream is None else InvalidInput
        raise kind(f"A forecast must be (loss, constraint), each of one round, not {shown(x)}.")
    return FullInformation(stream.losses, stream.constraints)


def checked_features(features: Any, cells: int, t: int) -> tuple[Int64s, Floats]:
    which, phi = (np.asarray(part) for part in features)
    inside = which.ndim == 1 and which.dtype.kind in "iu" and which.shape == phi.shape
    inside = inside and bool(((which >= 0) & (which < cells)).all())
    if not inside or not (phi >= 0.0).all() or not abs(float(phi.sum()) - 1.0) <= FEATURE_ROUNDING:
        raise InvalidInput(
            f"The features of round {t + 1} must be cells from 0 to {cells - 1} and their "
            f"weights, at least 0 and of sum 1, not {shown(features)}."
        )
    return which.astype(np.int64), phi.astype(np.float64)
