"""Rounds of several kinds, one after another:  f_t is the function of round t of the first part,
then of the second, and so on.

`chained` makes one batch of many: neighbours of one kind become one part where their arrays fit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass
from functools import cached_property
from itertools import groupby
from typing import Any, Self, final

import numpy as np

from tidewolf.core.arguments import as_items
from tidewolf.core.arrays import is_array, namespace
from tidewolf.core.batch import Batch
from tidewolf.core.errors import InvalidInput, WrongShape, WrongType
from tidewolf.core.sparse import is_sparse
from tidewolf.core.types import Array, Floats, Int64s, Shape
from tidewolf.functions.capacity import Capacity
from tidewolf.functions.combined import Combined
from tidewolf.functions.linear import Linear
from tidewolf.functions.quadratic import Quadratic


@final
@dataclass(frozen=True, eq=False, repr=False)
class Chain(Batch):
    """The rounds of several batches, one after another.

    Other batches are nothing that an experiment's file can write: a chain is made in Python.

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
        parts = as_items(
            self.parts, "The parts of a Chain", "[functions.Linear(C), functions.Linear(D)]"
        )
        if not parts:
            raise InvalidInput("A Chain needs at least one part.", setting="parts")
        for part in parts:
            if not isinstance(part, Batch):
                raise WrongType(
                    "The parts of a Chain are batches of functions such as functions.Linear(C), "
                    f"not {part!r}.",
                    setting="parts",
                )
            if part.shape != parts[0].shape:
                raise WrongShape(
                    f"The parts of a Chain take points of one shape; {parts[0].shape} and "
                    f"{part.shape} were given.",
                    setting="parts",
                )
        object.__setattr__(self, "parts", parts)

    def __len__(self) -> int:
        return int(self._starts[-1])

    @property
    def shape(self) -> Shape:
        return self.parts[0].shape

    @property
    def domain(self) -> str | None:  # type: ignore[override]
        return next((part.domain for part in self.parts if part.domain is not None), None)

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
    def examples(cls) -> Sequence[Chain]:
        return (
            cls(
                (Linear([[1.0, -2.0]]), Quadratic.examples()[0], Capacity([[0.5, 0.5], [1.0, 0.0]]))
            ),
            cls((Linear([[3.0], [0.0]]),)),
        )


def leaves(batch: Batch) -> Iterator[Batch]:
    """What a batch is made of in the end: itself, or the leaves of its parts."""
    if not isinstance(batch, Chain | Combined):
        yield batch
        return
    for part in batch.parts:
        yield from leaves(part)


def chained(parts: Sequence[Batch]) -> Batch:
    """One batch with the rounds of all parts, in as few parts as their arrays allow."""
    merged = [batch for _, group in groupby(parts, type) for batch in _merged(list(group))]
    return merged[0] if len(merged) == 1 else Chain(tuple(merged))


def _merged(parts: list[Batch]) -> Iterator[Batch]:
    """Batches of one kind as one where they fit together, else as they are."""
    whole = type(parts[0]).joined(parts) if len(parts) > 1 else parts[0]
    if whole is None:
        yield from parts
    else:
        yield whole


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
