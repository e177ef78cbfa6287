"""Functions made of others, round by round: what sums and maxima share.

The parts have equal lengths and take points of one shape. What exact solvers may use of the
whole depends on the parts, and `isinstance` shows it.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass
from functools import cache, cached_property
from itertools import groupby
from typing import Annotated, Any, ClassVar, Self, cast, final

import numpy as np

from tidewolf.core import arrays, checkpoint, settings, values
from tidewolf.core.arguments import as_items
from tidewolf.core.arrays import as_number, is_array, like, namespace, taken, to_numpy, zeros
from tidewolf.core.batch import Batch, Halfspaces, LinearTotal, PiecewiseLinear, together
from tidewolf.core.errors import (
    InvalidInput,
    NewerFormat,
    NotSupported,
    WrongShape,
    WrongType,
    require,
)
from tidewolf.core.sparse import csr_array, is_sparse
from tidewolf.core.types import Array, Floats, Int64s, Shape
from tidewolf.functions.linear import Affine, Capacity, Linear
from tidewolf.functions.smooth import Quadratic


class OfParts(Batch):
    parts: tuple[Batch, ...]

    @property
    def shape(self) -> Shape:
        return self.parts[0].shape

    @property
    def domain(self) -> str | None:  # type: ignore[override]
        return next((part.domain for part in self.parts if part.domain is not None), None)


class Combined(values.Composed, OfParts):
    """Abstract: a batch made of others of the same rounds, with the capabilities that all of them
    have.
    """

    _capabilities: ClassVar[tuple[type, ...]] = (LinearTotal, PiecewiseLinear)

    @classmethod
    def _able(cls, parts: tuple[Batch, ...]) -> Iterable[type]:
        return [each for each in cls._capabilities if all(isinstance(part, each) for part in parts)]

    def __new__(cls, *functions: Batch, parts: Sequence[Batch] = (), **settings: Any) -> Self:
        return cls._with(cls._able(checked_parts(functions, parts, cls._written.__name__)))

    @classmethod
    def _unchecked(cls, **fields: Any) -> Self:
        batch = cls._with(cls._able(fields["parts"]))
        batch.__dict__.update(fields)
        return batch

    @classmethod
    def written_as(cls) -> type[Batch]:
        return cls._written

    def _parts_with(self, capability: type) -> Any:
        for part in self.parts:
            if not isinstance(part, capability):
                words = f"is no {capability.__name__}, because its {type(part).__name__} is none"
                raise NotSupported(f"{self!r} {words}.")
        return self.parts

    def __len__(self) -> int:
        return len(self.parts[0])

    def view(self, rounds: slice) -> Self:
        view = object.__new__(type(self))  # parts of the same kinds have the same capabilities
        view.__dict__.update(self.__dict__)
        view.__dict__["parts"] = tuple(part.view(rounds) for part in self.parts)
        return view

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self | None:
        forms = [{**each.fields(), "parts": tuple(map(type, each.parts))} for each in parts]
        if any(form != forms[0] for form in forms):
            return None
        columns = zip(*(each.parts for each in parts), strict=True)
        whole = tuple(type(column[0]).joined(column) for column in columns)
        return None if None in whole else cls._unchecked(**{**forms[0], "parts": whole})


def checked_parts(
    functions: Iterable[Any], parts: Any, who: str, *, chained: bool = False
) -> tuple[Batch, ...]:
    """Batches on points of one shape, at least one; of equal lengths unless they are chained."""
    more = as_items(parts, f"The parts of {who}", "[functions.Linear(C), functions.Capacity(c)]")
    such = (*functions, *more)
    require(such, InvalidInput, f"{who} needs at least one batch of functions.", "parts")
    for part in such:
        if not isinstance(part, Batch):
            words = f"The parts of {who} must be batches such as functions.Linear(C), not {part!r}."
            raise WrongType(words, setting="parts")
        if part.shape != such[0].shape or not (chained or len(part) == len(such[0])):
            found = " and ".join(f"{len(f)} rounds of shape {f.shape}" for f in (such[0], part))
            due = "points of one shape" + ("" if chained else ", and as many rounds each")
            raise WrongShape(f"The parts of {who} must have {due}, not {found}.", setting="parts")
    return such


# Sums of functions, round by round:  f_t(x) = sum_i w_i f_ti(x),  w >= 0.
#
# A subgradient is the weighted sum of theirs. Affine parts add up to an affine function; maxima of
# affine pieces to the maximum over the choices of one piece of each, so that Sum is PiecewiseLinear
# where all parts are.


@dataclass(frozen=True, eq=False, repr=False, init=False)
class Sum(Combined):
    """The sum of several functions per round, weighted where weights are given.

    In an experiment's file its parts are tables of their own, [[stream.losses.parts]].

    Parameters
    ----------
    functions : Batch
        The parts: batches of as many rounds, on points of one shape.
    parts : sequence of Batch, default ()
        The same as a list; it comes after `functions`.
    weights : sequence of float, optional
        What each function is multiplied by, at least 0. None: 1 each.

    Examples
    --------
    >>> costs = tw.functions.Linear([[1.0, 2.0], [0.0, 3.0]])
    >>> fullest = tw.functions.Capacity([[0.5, 1.0], [0.25, 0.5]])
    >>> tw.functions.Sum(costs, fullest, weights=[1.0, 10.0]).values(np.array([0.5, 0.5]))
    array([1.5, 4. ])
    """

    parts: tuple[Batch, ...]
    weights: tuple[float, ...]

    def __init__(
        self,
        *functions: Batch,
        parts: Sequence[Batch] = (),
        weights: Annotated[Sequence[float] | None, settings.Numbers(axes=1)] = None,
    ) -> None:
        given = checked_parts(functions, parts, "Sum")
        even = (1.0,) * len(given)
        such = as_items(even if weights is None else weights, "weights of Sum", "[1.0, 10.0]")
        due = f"Sum needs {len(given)} weights, not {len(such)}."
        require(len(such) == len(given), WrongShape, due, "weights")
        factors = tuple(as_number(w, "A weight of Sum", least=0.0) for w in such)
        self.__dict__.update(parts=given, weights=factors)

    def values(self, x: Array) -> Array:
        return sum(w * part.values(x) for w, part in self._weighted())

    def values_at(self, points: Array) -> Array:
        return sum(w * part.values_at(points) for w, part in self._weighted())

    def subgradient(self, x: Array, weights: Array) -> Array:
        return sum(w * part.subgradient(x, weights) for w, part in self._weighted())

    def gradients(self, x: Array) -> Array:
        return sum(w * part.gradients(x) for w, part in self._weighted())

    def _weighted(self) -> Iterable[tuple[float, Any]]:
        return zip(self.weights, self.parts, strict=True)

    def total(self) -> tuple[Floats, float]:
        self._parts_with(LinearTotal)
        each = [(w, *part.total()) for w, part in self._weighted()]
        return np.asarray(sum(w * c for w, c, _ in each)), float(sum(w * k for w, _, k in each))

    def halfspaces(self) -> Halfspaces:
        """A row for each choice of one piece of each part, round by round."""
        parts = self._parts_with(PiecewiseLinear)
        if len(self) > 1:
            return PiecewiseLinear.epigraph(cast(Any, self))
        told = [(w, part.halfspaces()) for w, part in zip(self.weights, parts, strict=True)]
        each = [(w * one.A.astype(np.float64, copy=False), w * one.b) for w, one in told]
        if any(is_sparse(A) for A, _ in each):
            each = [(csr_array(A), b) for A, b in each]
        A, b = each[0]
        for C, c in each[1:]:
            mine = np.repeat(np.arange(len(b)), len(c))
            theirs = np.tile(np.arange(len(c)), len(b))
            A, b = A[mine, :] + C[theirs, :], b[mine] + c[theirs]
        return Halfspaces(A, b, np.zeros(len(b), dtype=np.int64))

    @classmethod
    def examples(cls) -> Sequence[Self]:
        costs, limits = Linear([[1.0, -2.0], [0.0, 3.0]]), Capacity([[0.5, 0.5], [1.0, 0.0]])
        return (
            cls(costs, limits, Capacity([[0.0, 1.0], [-1.0, 1.0]]), weights=[1.0, 0.5, 2.0]),
            cls(costs, Affine([[1.0, 1.0], [0.0, 0.0]], [0.5, 1.0]), weights=[1.0, 2.0]),
            cls(Quadratic.examples()[0], limits),
            cls(Linear([[3.0]]), weights=[0.0]),
        )


# Maxima of functions, round by round:  f_t(x) = max_i f_ti(x).
#
# A subgradient is that of the largest part; among several the first. As a constraint: every part is
# at most 0, and `pieces` has each constraint of each part.


@dataclass(frozen=True, eq=False, repr=False, init=False)
class Max(Combined):
    """The largest of several functions per round: several constraints as one.

    In an experiment's file its parts are tables of their own, [[stream.losses.parts]].

    Parameters
    ----------
    functions : Batch
        The parts: batches of as many rounds, on points of one shape.
    parts : sequence of Batch, default ()
        The same as a list; it comes after `functions`.

    Examples
    --------
    >>> links = tw.functions.Capacity([[0.5, 1.0], [0.25, 0.5]])
    >>> budget = tw.functions.Affine([[1.0, 2.0], [1.0, 2.0]], [1.0, 2.0])
    >>> g = tw.functions.Max(links, budget)
    >>> g.values(np.array([0.5, 0.5]))
    array([0.5 , 0.25])
    >>> g.pieces(np.array([0.5, 0.5]))  # two links and a budget, in two rounds
    array([[ 0.  , -0.5 ,  0.5 ],
           [ 0.25,  0.  , -0.5 ]])
    """

    _capabilities = (PiecewiseLinear,)

    parts: tuple[Batch, ...]

    def __init__(self, *functions: Batch, parts: Sequence[Batch] = ()) -> None:
        self.__dict__["parts"] = checked_parts(functions, parts, "Max")

    def values(self, x: Array) -> Array:
        return namespace(x).max(self._each(x), axis=0)

    def values_at(self, points: Array) -> Array:
        xp = namespace(points)
        return xp.max(xp.stack([part.values_at(points) for part in self.parts]), axis=0)

    def pieces(self, x: Array) -> Array:
        """Each limit of each part, as (rounds, limits)."""
        each = [(part.pieces(x), part) for part in self.parts]
        return namespace(x).concat(
            [part.values(x)[:, None] if own is None else own for own, part in each], axis=1
        )

    def piece_gradients(self, x: Array, rounds: Int64s, limits: Int64s) -> Array:
        counts = [1 if own is None else own.shape[1] for own in (p.pieces(x) for p in self.parts)]
        starts = np.cumsum([0, *counts])
        owners = np.searchsorted(starts, limits, side="right") - 1
        found = [zeros((0, *self.shape), x)]
        for i in np.unique(owners).tolist():
            mine = owners == i
            found.append(self.parts[i].piece_gradients(x, rounds[mine], limits[mine] - starts[i]))
        return taken(namespace(x).concat(found), np.argsort(np.argsort(owners, kind="stable")))

    def subgradient(self, x: Array, weights: Array) -> Array:
        first, total = self._largest(x), 0.0 * x
        for i in np.unique(first).tolist():
            total = total + self.parts[i].subgradient(x, weights * like(first == i, weights))
        return total

    def gradients(self, x: Array) -> Array:
        first, axes = self._largest(x), (-1,) + (1,) * len(self.shape)
        each = ((like((first == i).reshape(axes), x), part) for i, part in enumerate(self.parts))
        return sum(mine * part.gradients(x) for mine, part in each)

    def slopes(self, x: Array) -> Floats:
        slopes = np.array([part.slopes(x) for part in self.parts])
        return np.asarray(slopes[self._largest(x), np.arange(len(self))])

    def _each(self, x: Array) -> Array:
        return namespace(x).stack([part.values(x) for part in self.parts])

    def _largest(self, x: Array) -> Int64s:
        return np.asarray(to_numpy(self._each(x)).argmax(axis=0))

    def halfspaces(self) -> Halfspaces:
        each = [part.halfspaces() for part in self._parts_with(PiecewiseLinear)]
        return together(each, [0] * len(each))

    def offsets(self) -> Floats:
        return np.concatenate([part.offsets() for part in self._parts_with(PiecewiseLinear)])

    def epigraph(self) -> Halfspaces:
        each = [part.epigraph() for part in self._parts_with(PiecewiseLinear)]
        A, b, rounds = together(each, [0] * len(each))
        order = np.argsort(rounds, kind="stable")
        return Halfspaces(A[order, :], b[order], rounds[order])

    @classmethod
    def examples(cls) -> Sequence[Self]:
        limits = Capacity([[0.5, 0.5], [1.0, 0.0]])
        return (
            cls(Affine([[1.0, -2.0], [0.0, 3.0]], [0.5, 1.0]), limits, limits),
            cls(Linear(csr_array([[0.0, 1.0], [0.0, 0.0]])), Linear([[1.0, 0.0], [0.0, 0.0]])),
            cls(Quadratic.examples()[0], limits),
            cls(Linear([[3.0]])),
        )


@dataclass(frozen=True, eq=False, repr=False, init=False)
class Charged(Combined):
    """A loss with what is spent beside it: values and gradients are those of the loss.

    Learners that know budgets add the price of spending to it; others do not notice.

    Parameters
    ----------
    functions : Batch
        The loss, then what each budget spends above its plan.
    parts : sequence of Batch, default ()
        The same as a list; it comes after `functions`.
    names : sequence of str
        The names of the budgets.

    Examples
    --------
    >>> latency = tw.functions.Linear([[1.0, 2.0]])
    >>> dollars = tw.functions.Affine([[3.0, 1.0]], [1.5])
    >>> loss = tw.functions.Charged(latency, dollars, names=["usd"])
    >>> loss.values(np.array([0.5, 0.5])), loss.budgets["usd"].values(np.array([0.5, 0.5]))
    (array([1.5]), array([0.5]))
    """

    _capabilities = ()

    parts: tuple[Batch, ...]
    names: tuple[str, ...]

    def __init__(
        self,
        *functions: Batch,
        parts: Sequence[Batch] = (),
        names: Annotated[Sequence[str], settings.NAMES] = (),
    ) -> None:
        given, names = (
            checked_parts(functions, parts, "Charged"),
            settings.NAMES(names, "names of Charged"),
        )
        fits = len(names) == len(set(names)) == len(given) - 1
        due = f"be {len(given) - 1} different ones of budgets, not {names!r}"
        self._require(fits, "names", due, WrongShape)
        self.__dict__.update(parts=given, names=names)

    @property
    def budgets(self) -> dict[str, Batch]:
        return dict(zip(self.names, self.parts[1:], strict=True))

    @property
    def without_budgets(self) -> Batch:
        return self.parts[0]

    def values(self, x: Array) -> Array:
        return self.parts[0].values(x)

    def values_at(self, points: Array) -> Array:
        return self.parts[0].values_at(points)

    def subgradient(self, x: Array, weights: Array) -> Array:
        return self.parts[0].subgradient(x, weights)

    def slopes(self, x: Array) -> Floats:
        return self.parts[0].slopes(x)

    @classmethod
    def examples(cls) -> Sequence[Self]:
        costs, spend = Linear([[1.0, -2.0], [0.0, 3.0]]), Affine([[1.0, 2.0]] * 2, [0.5, 1.0])
        return cls(costs, spend, names=["usd"]), cls(costs)


def limit_names(K: Any, constraints: Batch) -> tuple[str, ...]:
    """The names of the constraints of a round, in the order of `pieces`: those that the set has for
    entries, those of links and callables, else numbers from 1. None without a round.
    """
    if not len(constraints):
        return ()
    found = _names_of(K, constraints.view(slice(0, 1)))
    return tuple([name or f"limit {i}" for i, name in enumerate(found, 1)])


def _names_of(K: Any, one: Batch) -> tuple[str | None, ...]:
    if isinstance(one, Max):
        return tuple(name for part in one.parts for name in _names_of(K, part))
    pieces, own = one.pieces(K.center), getattr(one, "names", ())
    if pieces is None:
        name = getattr(one, "name", None)
        return (name if isinstance(name, str) else None,)
    names = getattr(K, "names", None) if isinstance(one, Capacity) else own
    count = int(pieces.shape[1])
    return tuple(names) if names and len(names) == count else (None,) * count


# Rounds of several kinds, one after another:  f_t is the function of round t of the first part,
# then of the second, and so on.
#
# `chained` makes one batch of many: neighbours of one kind become one part where their arrays fit.


@final
@dataclass(frozen=True, eq=False, repr=False)
class Chain(OfParts):
    """The rounds of several batches, one after another.

    Chains cannot be written in experiment files.

    Parameters
    ----------
    parts : sequence of Batch
        The batches in their order, at least one; they take points of one shape.

    Examples
    --------
    >>> early = tw.functions.Linear([[1.0, 2.0]])
    >>> late = tw.functions.Capacity([[0.5, 1.0], [0.25, 0.5]])
    >>> tw.functions.Chain((early, late)).values(np.array([0.5, 0.5]))
    array([1.5 , 0.  , 0.25])
    """

    parts: tuple[Batch, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "parts", checked_parts((), self.parts, "Chain", chained=True))

    def __len__(self) -> int:
        return int(self._starts[-1])

    @property
    def exp_concavity(self) -> float | None:  # type: ignore[override]
        declared = [part.exp_concavity for part in self.parts if len(part)]
        known = [alpha for alpha in declared if alpha is not None]
        return min(known) if known and len(known) == len(declared) else None

    @cached_property
    def _starts(self) -> Int64s:
        return np.cumsum([0, *map(len, self.parts)])

    def view(self, rounds: slice) -> Self:
        start, stop, _ = rounds.indices(len(self))
        cut = [
            part.view(slice(max(0, start - at), max(0, stop - at)))
            for part, at in zip(self.parts, self._starts, strict=False)
        ]
        return self._unchecked(parts=tuple(part for part in cut if len(part)) or (cut[0],))

    def values(self, x: Array) -> Array:
        return namespace(x).concat([part.values(x) for part in self.parts])

    def subgradient(self, x: Array, weights: Array) -> Array:
        return sum(
            part.subgradient(x, weights[at : at + len(part)])
            for part, at in zip(self.parts, self._starts, strict=False)
        )

    def slopes(self, x: Array) -> Floats:
        return np.concatenate([part.slopes(x) for part in self.parts])

    @classmethod
    def examples(cls) -> Sequence[Self]:
        return (
            cls(
                (Linear([[1.0, -2.0]]), Quadratic.examples()[0], Capacity([[0.5, 0.5], [1.0, 0.0]]))
            ),
            cls((Linear([[3.0], [0.0]]),)),
        )


def leaves(batch: Batch) -> Iterator[Batch]:
    if isinstance(batch, OfParts):
        for part in batch.parts:
            yield from leaves(part)
    else:
        yield batch


def chained(parts: Sequence[Batch]) -> Batch:
    merged = list[Batch]()
    for _, group in groupby(parts, type):
        several = list(group)
        whole = type(several[0]).joined(several) if len(several) > 1 else several[0]
        merged += several if whole is None else [whole]
    return merged[0] if len(merged) == 1 else Chain(tuple(merged))


def mapped(batch: Batch, change: Callable[[Array], Array]) -> Batch:
    """The same functions with every array changed, unchecked: copied, or moved to another library.

    Those of integers are just copied.
    """
    if not is_dataclass(batch):
        return batch
    own = {field.name: getattr(batch, field.name) for field in fields(batch)}
    return batch._unchecked(**{name: _changed(part, change) for name, part in own.items()})


def _changed(part: Any, change: Callable[[Array], Array]) -> Any:
    if is_sparse(part):
        return part.copy()
    if isinstance(part, tuple) and all(isinstance(each, Batch) for each in part):
        return tuple(mapped(each, change) for each in part)
    if not is_array(part):
        return part
    return part.copy() if type(part) is np.ndarray and part.dtype.kind == "i" else change(part)


# Batches of functions as names and fields, for states and databases: no pickle, and the same
# functions back.
#
# Parts of a sum, a maximum or a chain are pairs of a name and fields themselves.


def can_be_saved(batch: Batch) -> bool:
    return all(
        type(leaf).__name__ != "Custom" and _kinds().get(type(leaf).__name__) is type(leaf)
        for leaf in leaves(batch)
    )


def own_functions(batch: Batch) -> tuple[Batch, ...]:
    return tuple(leaf for leaf in leaves(batch) if not can_be_saved(leaf))


def saved_pair(batch: Batch) -> tuple[str, tuple[Any, ...]]:
    found = batch.fields()
    if isinstance(batch, OfParts):
        found["parts"] = tuple(map(saved_pair, batch.parts))
    return type(batch).written_as().__name__, tuple(found.values())


def restored(name: str, saved: tuple[Any, ...]) -> Batch:
    """The batch again, checked as one that is made anew; a field that is younger than the file has
    its default. A kind or a field that is not known here was written by a newer tidewolf.
    """
    kind = None if name == "Custom" else _kinds().get(name)
    names = [] if kind is None else [field.name for field in fields(kind)]
    if kind is None or len(saved) > len(names):
        raise NewerFormat(f"{name} of {len(saved)} fields is unknown: install a newer tidewolf.")
    named = dict(zip(names, saved, strict=False))
    if issubclass(kind, OfParts):
        named["parts"] = tuple(restored(*pair) for pair in named["parts"])
    return cast(Batch, kind(**named))


@cache
def _kinds() -> dict[str, Any]:
    from tidewolf import functions

    return {kind.__name__: kind for kind in functions.every()}


# --- Kept and saved -------------------------------------------------------------------------------
#
# The functions of an open block, kept until the block is whole, and saved as what they are: kinds
# and arrays. They are copied when they come, so that a caller that fills the same array every round
# does not change what was seen.


@final
class Limits(checkpoint.Stored):
    """Batches of functions in the order of their rounds. Never changed: `and_then` makes
    another.
    """

    tag: ClassVar = "limits"
    __slots__ = ("pieces",)

    def __init__(self, pieces: tuple[Batch, ...] = ()) -> None:
        self.pieces = pieces

    def and_then(self, batch: Batch) -> "Limits":
        """With a copy of these rounds after those it has."""
        return Limits((*self.pieces, mapped(batch, lambda array: arrays.frozen(array + 0.0))))

    def with_last(self, batch: Batch) -> "Limits":
        """With these rounds themselves, for as long as the caller's arrays stay as they are."""
        return Limits((*self.pieces, batch))

    def whole(self) -> Batch:
        return chained(self.pieces)

    def parts(self) -> dict[str, Any]:
        return {"pieces": saved(self.pieces, "A block that is still open holds")}

    @classmethod
    def restored(cls, parts: dict[str, Any]) -> Self:
        return cls(loaded(parts["pieces"]))

    def require_of(self, K: Any) -> None:
        require_points_of(K, self.pieces)


def saved(batches: Sequence[Batch], where: str) -> tuple[tuple[str, tuple[Any, ...]], ...]:
    """Kinds and arrays, neighbours of one kind together; refused if one has none."""
    if not batches:
        return ()
    whole = chained(batches)
    pieces = whole.parts if isinstance(whole, Chain) else (whole,)
    for piece in pieces:
        if not can_be_saved(piece):
            raise NotSupported(
                f"{where} {type(piece).__name__} functions, which cannot be saved: only the "
                "functions of tidewolf.functions that are made of arrays can. Use one of those, or "
                "save at the end of a block."
            )
    return tuple(map(saved_pair, pieces))


def loaded(parts: Sequence[tuple[str, tuple[Any, ...]]]) -> tuple[Batch, ...]:
    return tuple(restored(name, arrays) for name, arrays in parts)


def require_points_of(K: Any, batches: Iterable[Batch]) -> None:
    """Refuse, by a ValueError, functions of points of another shape."""
    for batch in batches:
        if batch.shape != K.shape:
            raise ValueError(
                f"functions of points of shape {batch.shape} stand where those have shape {K.shape}"
            )
