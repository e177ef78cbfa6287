"""A problem: a hard set, and a stream of losses and limits to be met on it round after round.

    choose x_t in K,  then see f_t and g_t:
        keep  sum_t f_t(x_t)  low  and  sum_t max(0, g_t(x_t))  small

A builder is a function of the number of rounds and the seed whose name is the problem's name and
whose docstring opens with one sentence about it. `rounds=None` means as many as the problem usually
has; the first n rounds never depend on how many were asked for.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Protocol, final

from tidewolf.core.arguments import as_items, as_text, shown
from tidewolf.core.arrays import as_count
from tidewolf.core.batch import Stream
from tidewolf.core.errors import InvalidInput, WrongShape, WrongType
from tidewolf.core.oracle import as_set
from tidewolf.core.types import Shape
from tidewolf.core.values import Value
from tidewolf.sets.base import ConvexSet


@final
@dataclass(frozen=True, eq=False, repr=False)
class Problem(Value):
    """A set K and a stream on it."""

    name: str
    K: ConvexSet
    stream: Stream
    title: str
    """What is decided, under which limits: one sentence."""
    labels: tuple[str, ...] = ()
    """What each coordinate of a point is called; empty when they have no names."""

    def __post_init__(self) -> None:
        for name in ("name", "title"):
            as_text(getattr(self, name), f"The {name} of a problem")
        as_set(self.K, f"The problem {self.name}")
        if not isinstance(self.stream, Stream):
            raise WrongType(
                f"The problem {self.name} needs a Stream(losses, constraints), not "
                f"{shown(self.stream)}."
            )
        labels = as_items(self.labels, f"The labels of the problem {self.name}", '["SEA", "NYC"]')
        object.__setattr__(
            self, "labels", tuple(as_text(label, "A label of a coordinate") for label in labels)
        )
        if self.stream.shape != self.K.shape:
            raise WrongShape(
                f"The stream of {self.name} takes points of shape {self.stream.shape}; the points "
                f"of its set have shape {self.K.shape}."
            )
        if self.labels and (len(self.labels),) != self.K.shape:
            raise WrongShape(
                f"The problem {self.name} has {len(self.labels)} labels for points of shape "
                f"{self.K.shape}."
            )

    @property
    def shape(self) -> Shape:
        """The shape of a point."""
        return self.K.shape

    def __len__(self) -> int:
        return len(self.stream)


def as_rounds(rounds: object, usual: int, numbers: int) -> int:
    """How many rounds are made, `usual` for None; refused before anything is made where `numbers` a
    round do not fit into memory.
    """
    if rounds is None:
        return usual
    count = as_count(rounds, "The number of rounds")
    needed, there = 8 * numbers * count, os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if needed > there:
        raise InvalidInput(
            f"{count} rounds take {needed / 1e9:.3g} GB of memory at least, and there are "
            f"{there / 1e9:.3g}; ask for fewer."
        )
    return count


class Builder(Protocol):
    """What makes a problem."""

    @property
    def __name__(self) -> str: ...

    def __call__(self, rounds: int | None = None, seed: int = 0) -> Problem: ...
