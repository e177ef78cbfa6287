"""A batch of convex functions, one per round, and the stream of losses and constraints made of two
of them.

A batch never copies what it is given. `f[s:e]` is a view of rounds s to e; the leading axis is
always rounds.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import wraps
from importlib import import_module
from typing import Annotated, Any, NamedTuple, Self, final

import numpy as np

from tidewolf.core import arrays, frames, round_info, settings
from tidewolf.core.arguments import as_items, as_text, shown
from tidewolf.core.arrays import SILENCE, as_direction, as_numbers, frozen, namespace
from tidewolf.core.errors import InvalidInput, NotSupported, WrongShape, WrongType
from tidewolf.core.round_info import NamedPoints, RoundInfo, is_present
from tidewolf.core.sparse import csr_array, row_norms, stack_rows
from tidewolf.core.types import Array, Bools, Floats, Int64s, NDArray, Shape
from tidewolf.core.values import Value

# The round at whose end feedback comes that never does.
NEVER = int(np.iinfo(np.int64).max)

_AT_A_POINT = "gradients piece_gradients pieces slopes sparse_subgradient subgradient values"
_CHECKED = (*_AT_A_POINT.split(), "values_at")


def _wrap_methods(cls: type) -> None:
    for name in _CHECKED:
        if name in cls.__dict__:
            setattr(cls, name, _with_checks(cls.__dict__[name], name))


def _with_checks(method: Any, name: str) -> Any:
    """A method that checks its point and its weights, and computes without NumPy's warnings: what
    is too large is infinite, what has no number is NaN, and the code that uses such a value refuses
    it. Within a round the loop has checked the point already.
    """

    @wraps(method)
    def checked(self: "Batch", x: Array, *more: Array, **named: Array) -> Array:
        if SILENCE.depth:
            return method(self, x, *more, **named)
        rounds, given = (len(self),), (*more, *named.values())
        x = as_direction(x, (*rounds * (name == "values_at"), *self.shape), "The point")
        if name != "piece_gradients":
            given = tuple(as_direction(w, rounds, "The weights of the rounds") for w in given)
        with SILENCE:
            return method(self, x, *given)

    return checked


class Batch(Value, ABC):
    """Convex functions f_1 .. f_k on points of one shape, one per round.

    A subclass defines `__len__`, `shape`, `values`, `subgradient`, `view` and `examples`;
    `tidewolf.testing.check_function` checks it.

    Examples
    --------
    >>> f = tw.functions.Linear([[1.0, 2.0], [0.0, 3.0], [4.0, 0.0]])
    >>> isinstance(f, tw.functions.Batch), len(f), f.shape
    (True, 3, (2,))
    >>> f[1:].values(np.array([0.5, 0.5]))  # a view: rounds 1 and 2
    array([1.5, 2. ])
    """

    domain: str | None = None
    """Where the functions are defined, in words; None when everywhere."""
    exp_concavity: float | None = None
    """A number alpha > 0 for which exp(-alpha f_t) is concave in every round, on the points that
    the functions are asked at; None if none is declared.
    """

    @property
    def budgets(self) -> "Mapping[str, Batch]":
        """What is spent beside these losses, above its plan, by the names of the budgets."""
        return {}

    @property
    def without_budgets(self) -> "Batch":
        return self

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        _wrap_methods(cls)

    @abstractmethod
    def __len__(self) -> int:
        """How many rounds."""

    @property
    @abstractmethod
    def shape(self) -> Shape:
        """The shape of a point."""

    @abstractmethod
    def values(self, x: Array) -> Array:
        """(f_1(x), .., f_k(x))."""

    @abstractmethod
    def subgradient(self, x: Array, weights: Array) -> Array:
        """sum_t weights_t grad f_t(x), with one choice of subgradient per round."""

    @abstractmethod
    def view(self, rounds: slice) -> Self:
        """The rounds of a slice with step 1, sharing memory, without checking anything again."""

    @classmethod
    @abstractmethod
    def examples(cls) -> Sequence["Batch"]:
        """Small instances, degenerate ones among them, for the checks of `tidewolf.testing`."""

    def values_at(self, points: Array) -> Array:
        """(f_1(x_1), .., f_k(x_k)): each round at a point of its own; points has shape
        (k, *shape).
        """
        return namespace(points).concat(
            [self.view(slice(t, t + 1)).values(points[t, ...]) for t in range(len(self))]
        )

    def pieces(self, x: Array) -> Array | None:
        """If each round has several constraints and its value is the largest: their values at x,
        (rounds, constraints); None if it has one.
        """
        return None

    def piece_gradients(self, x: Array, rounds: Int64s, limits: Int64s) -> Array:
        """Gradients at x of single limits, (len(rounds), *shape): that of limits[i], a column of
        `pieces`, in round rounds[i].
        """
        if self.pieces(x) is not None:
            raise NotSupported(
                f"{type(self).__name__} has `pieces`: define `piece_gradients`, too."
            )
        return arrays.taken(self.gradients(x), rounds)

    def slopes(self, x: Array) -> Floats:
        """The norm of each round's subgradient at x, for the choice that `subgradient` makes."""
        gradients = self.gradients(x)
        flat = (len(self), math.prod(self.shape))
        return row_norms(namespace(gradients).reshape(gradients, flat))

    def gradients(self, x: Array) -> Array:
        """Each round's subgradient at x, for the choice that `subgradient` makes: shape
        (rounds, *shape).
        """
        if len(self) == 0:
            return arrays.zeros((0, *self.shape), x)
        each = (self.view(slice(t, t + 1)) for t in range(len(self)))
        return namespace(x).stack([one.subgradient(x, arrays.ones(1, x)) for one in each])

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self | None:
        """One batch with the rounds of all parts, or None if their arrays do not fit
        together.
        """
        return None

    @classmethod
    def written_as(cls) -> type["Batch"]:
        """The class as it is called in files: the class itself, unless it was made for an instance
        that can do more than the class says.
        """
        return cls

    @classmethod
    def _unchecked(cls, **fields: Any) -> Self:
        batch = object.__new__(cls)
        batch.__dict__.update(fields)
        return batch

    def __getitem__(self, rounds: slice) -> Self:
        try:
            start, stop, step = rounds.indices(len(self))
        except (AttributeError, TypeError, ValueError):
            raise WrongType(f"Take rounds by a slice, as f[3:4], not {shown(rounds)}.") from None
        if step != 1:
            raise InvalidInput(f"Rounds are taken in order, with a step of 1, not of {step}.")
        return self.view(slice(start, max(start, stop)))


_wrap_methods(Batch)


# What exact solvers ask of functions, as capabilities that a class inherits.
#
# - `LinearTotal`: the sum over the rounds is one affine function,
# - `PiecewiseLinear`: every round is a maximum of affine pieces, so that "g_t(x) <= 0 for every t"
#   is a list of half-spaces.


class LinearTotal(ABC):
    """A batch whose sum over its rounds is <c, x> + constant, which `total()` gives.

    A capability: a class of functions that inherits it, too, is solved in hindsight as a linear
    program.

    Examples
    --------
    >>> f = tw.functions.Affine([[1.0, 0.0], [2.0, 3.0]], [0.5, 0.5])
    >>> isinstance(f, tw.functions.LinearTotal), f.total()
    (True, (array([3., 3.]), -1.0))
    """

    @abstractmethod
    def total(self) -> tuple[Floats, float]:
        """The sum over the rounds as (c, constant).

        Returns
        -------
        tuple of array and float
            c, of the shape of a point and in float64, and the constant.
        """


class Halfspaces(NamedTuple):
    """Half-spaces A x <= b on flattened points.

    Row i is a piece of the function of round `rounds[i]`, so <a_i, x> - b_i <= g_{rounds[i]}(x).

    Parameters
    ----------
    A : array
        The rows, a matrix of NumPy or a sparse array of SciPy.
    b : array
        The offsets, one a row.
    rounds : array
        The round that each row comes from, counted from 0.

    Examples
    --------
    >>> g = tw.functions.Affine([[1.0, 0.0], [2.0, 3.0]], [0.5, 0.7])
    >>> g.halfspaces().b
    array([0.5, 0.7])
    """

    A: Any
    b: Floats
    rounds: Int64s


class PiecewiseLinear(ABC):
    """A batch for which "every value is at most 0" is a list of half-spaces: each round is the
    largest of some affine pieces.

    A capability: functions that inherit it, too, are solved in hindsight as a linear program.

    Examples
    --------
    >>> g = tw.functions.Capacity([[0.5, 0.2], [0.4, 0.3]])
    >>> isinstance(g, tw.functions.PiecewiseLinear)
    True
    >>> g.halfspaces().b  # of each entry only the smallest capacity matters
    array([0.4, 0.2])
    """

    @abstractmethod
    def halfspaces(self) -> Halfspaces:
        """The half-spaces, redundant ones left out where that is free; those of a single round are
        its pieces.
        """

    def offsets(self) -> Floats:
        """The offsets of the half-spaces, `halfspaces().b`.

        Returns
        -------
        array
            One a row; functions with very many rows know them without those.
        """
        return self.halfspaces().b

    def epigraph(self) -> Halfspaces:
        """The pieces of every round, none left out: f_t(x) is the largest <a_i, x> - b_i of its
        rows, those with rounds[i] = t, and f_t(x) <= s_t where all of them are.

        Returns
        -------
        Halfspaces
            The rows in the order of the rounds.
        """
        batch: Any = self
        each = [batch.view(slice(t, t + 1)).halfspaces() for t in range(len(batch))]
        return together(each, range(len(each))) if each else self.halfspaces()


def together(parts: Sequence[Halfspaces], starts: Iterable[int]) -> Halfspaces:
    tables, offsets, rounds = zip(*parts, strict=True)
    later = [each + start for each, start in zip(rounds, starts, strict=True)]
    return Halfspaces(stack_rows(tables), np.concatenate(offsets), np.concatenate(later))


@final
@dataclass(frozen=True, eq=False, repr=False)
class Unlimited(Batch, PiecewiseLinear):
    """No constraint: -1 everywhere. Streams without constraints have it.

    Parameters
    ----------
    sides : int or tuple of int
        The number of entries of a point, or its shape.
    rounds : int, default 1
        How many rounds there are.

    Examples
    --------
    >>> stream = tw.Stream(tw.functions.Linear([[1.0, 2.0], [0.0, 3.0]]))
    >>> stream.constraints
    Unlimited(sides=2, rounds=2)
    >>> stream.constraints.values(np.array([9.0, 9.0]))
    array([-1., -1.])
    """

    sides: Annotated[int | Shape, settings.Size("The number of entries of a point, or its shape.")]
    rounds: Annotated[int, settings.Count("How many rounds there are.", least=0)] = 1

    @classmethod
    def one(cls, sides: int | Shape) -> Self:
        """A single round."""
        return cls(sides)

    def __len__(self) -> int:
        return self.rounds

    @property
    def shape(self) -> Shape:
        return self.sides if isinstance(self.sides, tuple) else (self.sides,)

    def view(self, rounds: slice) -> Self:
        start, stop, _ = rounds.indices(self.rounds)
        return self._unchecked(sides=self.sides, rounds=max(0, stop - start))

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self | None:
        if any(part.shape != parts[0].shape for part in parts):
            return None
        return cls._unchecked(sides=parts[0].sides, rounds=sum(map(len, parts)))

    def values(self, x: Array) -> Array:
        return -arrays.ones(self.rounds, x)

    values_at = values  # type: ignore[assignment]

    def subgradient(self, x: Array, weights: Array) -> Array:
        return 0.0 * x

    def gradients(self, x: Array) -> Array:
        return arrays.zeros((self.rounds, *self.shape), x)

    def halfspaces(self) -> Halfspaces:
        """One that holds all points, 0 <= 1, if there are rounds: solvers want one."""
        rows = min(1, self.rounds)
        return Halfspaces(
            csr_array((rows, math.prod(self.shape))), np.ones(rows), np.zeros(rows, dtype=np.int64)
        )

    @classmethod
    def examples(cls) -> Sequence["Unlimited"]:
        return (cls(3, 4), cls.one(1), cls((2, 2), 2))


@final
@dataclass(frozen=True, eq=False, repr=False)
class Stream(Value):
    """Losses f_t and constraints g_t(x) <= 0, one of each per round.

    Rounds that are not seen are played and measured, but the learner gets no feedback on them.

    Parameters
    ----------
    losses : Batch
        The losses.
    constraints : Batch or sequence of Batch, optional
        The constraints: as many, on points of the same shape; several per round as a list of
        batches, which become one `functions.Max`, each distinguished. None: there are none, which
        `functions.Unlimited` stands for.
    seen : array, optional
        Round by round, whether feedback reaches the learner, True or False. None: always.
    time : array, optional
        When each round is: seconds, or dates; also a series or an index of pandas or polars, or a
        frame that has one. NaN: not known. Unit: seconds since 1970.
    context : array, optional
        What kind of round each is: a category, or a row of weights. NaN: not known.
    advice : mapping, optional
        Points that others proposed before each round, by name, rounds first. A row that holds a NaN
        is absent.
    unavailable : sequence or array, optional
        The entries that are out in each round: names and places as `RoundInfo` takes them, None
        if there are none; or an array of True and False for each entry, rounds first.
    arrives : array of int, optional
        For each round, the round (from 0) at whose end its feedback arrives: the same or a later
        one. A number beyond the last round means never. None: feedback is immediate.
    played : array, optional
        What was played in place of the learner's decision, rounds first; a row that holds a NaN:
        the decision. None: always the decision.
    budgets : Batch or mapping, optional
        What is spent in each round above its plan, by the names of the budgets: signed, so that
        rounds compensate for one another. A batch alone is called "budget". None: there are none.
    forecast : tuple of Batch, optional
        The losses and constraints that were predicted for each round before it, as functions, such
        as for `experts.Resolve("forecast")`: (losses, constraints), or another Stream.

    Examples
    --------
    >>> costs = tw.functions.Linear([[1.0, 2.0], [0.0, 3.0]])
    >>> limits = tw.functions.Capacity([[0.5, 1.0], [0.6, 0.5]])
    >>> stream = tw.Stream(costs, limits, seen=[True, False])
    >>> len(stream), stream.shape, stream.unseen
    (2, (2,), 1)
    >>> budget = tw.functions.Affine([[1.0, 2.0]] * 2, [1.5, 1.5])
    >>> tw.Stream(costs, [limits, budget]).constraints.pieces(np.array([0.5, 0.5]))
    array([[ 0. , -0.5,  0. ],
           [-0.1,  0. ,  0. ]])
    >>> tw.Stream(costs, limits, time=["2026-03-01", "2026-03-02"]).info(1)
    RoundInfo(time=1772409600.0)
    >>> tw.Stream(costs, limits, unavailable=[["SEA > DEN"], None]).info(0)
    RoundInfo(unavailable=('SEA > DEN',))
    >>> tw.Stream(costs, limits, arrives=[1, 1])[1:].arrives  # the first is late
    array([0])
    """

    # `time` as it was given, for people to know rounds by: datetime64 where it was dates
    losses: Batch
    constraints: Batch = None  # type: ignore[assignment]  # a batch once it is made
    seen: Bools | None = None
    time: Floats | None = None
    context: Array | None = None
    advice: Mapping[str, Array] | None = None
    unavailable: tuple[tuple[int | str, ...] | None, ...] | None = None
    arrives: Int64s | None = None
    played: Array | None = None
    budgets: Mapping[str, Batch] | None = None
    forecast: Any = None
    stamps: NDArray | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        losses, found = self.losses, dict[str, Any]()
        _require_batch(losses, "losses", losses)
        found["constraints"] = as_constraints(self.constraints, losses)
        _require_batch(found["constraints"], "constraints", losses)
        if self.seen is not None:
            mask = self._column(self.seen, "seen", "?b", "True or False")
            found["seen"] = None if mask.all() else frozen(mask)
        if self.time is not None:
            times, stamps = round_info.as_times(self.time, "The time of the rounds")
            found |= {"time": self._rows(times, "time"), "stamps": stamps}
        if self.context is not None:
            context = as_numbers(self.context, "The context of the rounds")
            found["context"] = self._rows(context, "context", context.shape[1:2])
        if self.advice is not None:
            found["advice"] = self._checked_advice(self.advice)
        if self.unavailable is not None:
            found["unavailable"] = self._checked_unavailable(self.unavailable)
        if self.arrives is not None:
            found["arrives"] = self._checked_arrives(self.arrives)
        if self.played is not None:
            found["played"] = self._rows(
                as_numbers(self.played, "What was played"), "played", self.shape
            )
        if self.budgets is not None:
            found["budgets"] = as_budgets(self.budgets, losses)
        if self.forecast is not None:
            found["forecast"] = self._checked_forecast(self.forecast)
        self.__dict__.update(found)

    def _rows(self, array: Array, name: str, shape: Shape = ()) -> Array:
        if tuple(array.shape) != (len(self), *shape):
            words = f"{name} of a stream has shape {(len(self), *shape)}, not {tuple(array.shape)}."
            raise WrongShape(words, setting=name)
        return array

    def _column(self, given: Any, name: str, kinds: str, such: str) -> NDArray:
        arrays.require_no_mask(given, f"{name} of a stream")
        try:
            array = np.array(given)
        except ValueError:  # ragged rows
            array = np.array(None)
        array = array.astype(np.dtype(kinds[0])) if array.shape == (0,) else array
        if array.dtype.kind not in kinds or array.shape != (len(self),):
            words = f"{name} of a stream must be {such} for each of its {len(self)} rounds"
            raise WrongShape(f"{words}, not {shown(given)}.", setting=name)
        return array

    def _checked_advice(self, given: Any) -> NamedPoints:
        if not isinstance(given, Mapping):
            words = f"The advice of a stream must be {{name: points}}, not {shown(given)}."
            raise WrongType(words, setting="advice")
        points = dict[str, Array]()
        for name, rows in given.items():
            points[as_text(name, "The name of advice")] = self._rows(
                as_numbers(rows, f"The advice {shown(name)}"), "advice", self.shape
            )
        return NamedPoints(points)

    def _checked_unavailable(self, given: Any) -> tuple[tuple[int | str, ...] | None, ...] | None:
        given = frames.numbers_of(given, "What is unavailable") if frames.is_frame(given) else given
        if isinstance(given, np.ndarray) and given.dtype == np.bool_:
            rows = self._rows(given, "unavailable", self.shape)
            given = [np.flatnonzero(row).tolist() for row in rows]
        rounds = as_items(given, "What is unavailable in a stream", '[None, ["SEA > DEN"]]')
        self._rows(np.empty(len(rounds)), "unavailable")
        found = tuple(None if one is None else round_info.as_unavailable(one) for one in rounds)
        return found if any(found) else None

    def _checked_arrives(self, given: Any) -> Int64s:
        array = self._column(given, "arrives", "iu", "a whole number")
        for t in np.flatnonzero(array < np.arange(len(self)))[:1].tolist():
            words = f"The feedback of round {t} arrives in round {t} or later, not in {array[t]}"
            never = f"give a number from {len(self)} on for never"
            raise InvalidInput(f"{words}; {never}.", setting="arrives")
        return frozen(np.where(array >= len(self), NEVER, array).astype(np.int64))

    def _checked_forecast(self, given: Any) -> Any:
        from tidewolf.core.feedback import FullInformation  # which is made of batches

        if isinstance(given, Stream):
            given = given.losses, given.constraints
        if not isinstance(given, tuple | list) or len(given) != 2:
            words = f"A forecast must be (losses, constraints), or a Stream, not {shown(given)}."
            raise WrongType(words, setting="forecast")
        parts = given[0], as_constraints(given[1], self.losses)
        for batch in parts:
            _require_batch(batch, "forecast", self.losses)
        return FullInformation(*parts)

    @property
    def late(self) -> bool:
        """Whether some round's feedback does not come at its own end."""
        return self.arrives is not None and bool((self.arrives > np.arange(len(self))).any())

    @property
    def untold(self) -> int:
        """How many rounds are decided and not observed by the end of the last."""
        if self.arrives is None:
            return 0
        seen = True if self.seen is None else self.seen
        return int(np.count_nonzero((self.arrives >= len(self)) & seen))

    def override(self, t: int) -> Array | None:
        """What was played in round t in place of the decision; None if that was played."""
        point = None if self.played is None else self.played[t, ...]
        return point if point is not None and is_present(point) else None

    def info(self, t: int) -> RoundInfo | None:
        """What is known before round t, counted from 0; None if the stream says nothing of
        it.
        """
        given = (self.time, self.context, self.advice, self.unavailable, self.forecast)
        if all(part is None for part in given):
            return None
        t = arrays.as_count(t, "The round", least=0, most=max(0, len(self) - 1))
        time = None if self.time is None or np.isnan(self.time[t]) else float(self.time[t])
        context = None if self.context is None else self.context[t, ...]
        if context is not None:
            context = round_info.as_category(context) if is_present(context) else None
        advice = {name: rows[t, ...] for name, rows in (self.advice or {}).items()}
        points = NamedPoints((name, point) for name, point in advice.items() if is_present(point))
        out = None if self.unavailable is None else self.unavailable[t]
        ahead = _rounds_of(self.forecast, slice(t, t + 1))
        info = RoundInfo._make((time, context, points or None, ahead, out, None))
        return None if info.says_nothing else info

    @property
    def unseen(self) -> int:
        """How many rounds no feedback comes from."""
        return 0 if self.seen is None else int(np.count_nonzero(~self.seen))

    @property
    def shape(self) -> Shape:
        """The shape of a point."""
        return self.losses.shape

    def __len__(self) -> int:
        return len(self.losses)

    def __getitem__(self, rounds: slice) -> "Stream":
        """These rounds. What arrives after the last of them is not lost: its rounds stay pending;
        what arrives of rounds before them is not there.
        """
        cut = {name: _rounds_of(part, rounds) for name, part in self.__dict__.items()}
        if self.seen is not None and cut["seen"].all():
            cut["seen"] = None
        if self.unavailable is not None and not any(cut["unavailable"]):
            cut["unavailable"] = None
        if self.arrives is not None:
            own, start = cut["arrives"], rounds.indices(len(self))[0]
            cut["arrives"] = frozen(np.where(own == NEVER, NEVER, own - start))
        part = object.__new__(Stream)
        part.__dict__.update(cut)
        return part


def _rounds_of(part: Any, rounds: slice) -> Any:
    if part is None or isinstance(part, Batch):
        return None if part is None else part[rounds]
    if isinstance(part, NamedPoints):
        return NamedPoints({name: _rounds_of(each, rounds) for name, each in part.items()})
    if not isinstance(part, tuple):
        return part[rounds, ...]
    forecast = getattr(part, "_make", None)  # which is a pair of batches
    return part[rounds] if forecast is None else forecast(_rounds_of(f, rounds) for f in part)


def _require_batch(batch: Any, name: str, losses: Batch) -> None:
    if not isinstance(batch, Batch):
        plain = "; functions.from_torch, from_jax and Custom make one" if callable(batch) else ""
        words = f"The {name} must be a batch such as functions.Linear(C), not {shown(batch)}"
        raise WrongType(f"{words}{plain}.", setting=name)
    if (len(batch), batch.shape) != (len(losses), losses.shape):
        due, found = (f"{len(f)} rounds on points of shape {f.shape}" for f in (losses, batch))
        raise WrongShape(f"The {name} must be {due}, as the losses, not {found}.", setting=name)


def as_budgets(given: Any, losses: Batch) -> Mapping[str, Batch] | None:
    named = given if isinstance(given, Mapping) else {"budget": given}
    for name, batch in named.items():
        as_text(name, "The name of a budget")
        _require_batch(batch, "budgets", losses)
    return NamedPoints(named) if named else None


def as_constraints(given: Any, losses: Batch) -> Any:
    """The constraints beside these losses: several as their largest, none as no limit, and anything
    else as it is.
    """
    if given is None or (isinstance(given, list | tuple) and not given):
        return Unlimited(losses.shape, len(losses))
    if not isinstance(given, list | tuple):
        return given
    for one in given:
        _require_batch(one, "constraints", losses)
    if len(given) == 1:
        return given[0]
    return import_module("tidewolf.functions").Max(*given)  # which lies above streams
