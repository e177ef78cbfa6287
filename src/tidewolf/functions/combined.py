"""Functions made of others, round by round: what sums and maxima share.

The parts have equal lengths and take points of one shape. What exact solvers may use of the
whole depends on the parts, and `isinstance` shows it.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any, Self

from tidewolf.core.arguments import as_items
from tidewolf.core.batch import Batch
from tidewolf.core.errors import InvalidInput, NotSupported, WrongShape, WrongType
from tidewolf.core.piecewise import LinearTotal, PiecewiseLinear
from tidewolf.core.types import Shape
from tidewolf.core.values import Composed


class Combined(Composed, Batch):
    """Abstract: a batch made of others of the same rounds.

    A subclass says in `_able` which capabilities it has.
    """

    parts: tuple[Batch, ...]
    _capabilities = (LinearTotal, PiecewiseLinear)

    @staticmethod
    @abstractmethod
    def _able(parts: tuple[Batch, ...]) -> Iterable[type]:
        """The capabilities that a batch of these parts has."""

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

    def _parts_with(self, capability: type, what: str) -> Any:
        """The parts, which all have a capability; refused, naming one that has not."""
        for part in self.parts:
            if not isinstance(part, capability):
                raise NotSupported(f"{self!r} {what}, because its {type(part).__name__} does not.")
        return self.parts

    def _piecewise(self) -> Any:
        return self._parts_with(PiecewiseLinear, "does not consist of affine pieces")

    def __len__(self) -> int:
        return len(self.parts[0])

    @property
    def shape(self) -> Shape:
        return self.parts[0].shape

    @property
    def domain(self) -> str | None:  # type: ignore[override]
        return next((part.domain for part in self.parts if part.domain is not None), None)

    def view(self, rounds: slice) -> Self:
        view = object.__new__(type(self))  # parts of the same kinds have the same capabilities
        view.__dict__.update(self.__dict__)
        view.__dict__["parts"] = tuple(part.view(rounds) for part in self.parts)
        return view

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self | None:
        own = {name: part for name, part in parts[0].fields().items() if name != "parts"}
        kinds = [tuple(map(type, each.parts)) for each in parts]
        others = [{**each.fields(), "parts": None} for each in parts]
        if any(kind != kinds[0] for kind in kinds) or any(each != others[0] for each in others):
            return None
        columns = zip(*(each.parts for each in parts), strict=True)
        whole = tuple(type(column[0]).joined(column) for column in columns)
        if any(part is None for part in whole):
            return None
        return cls._unchecked(parts=whole, **own)


def checked_parts(functions: Iterable[Any], parts: Any, who: str) -> tuple[Batch, ...]:
    """Batches of equal lengths on points of one shape, at least one."""
    more = as_items(parts, f"The parts of {who}", "[functions.Linear(C), functions.Capacity(c)]")
    such = (*functions, *more)
    if not such:
        raise InvalidInput(f"{who} needs at least one batch of functions.", setting="parts")
    for part in such:
        if not isinstance(part, Batch):
            raise WrongType(
                f"The parts of {who} are batches of functions such as functions.Linear(C), not "
                f"{part!r}.",
                setting="parts",
            )
        if len(part) != len(such[0]) or part.shape != such[0].shape:
            raise WrongShape(
                f"The parts of {who} have as many rounds and take points of one shape; "
                f"{len(such[0])} rounds of shape {such[0].shape} and {len(part)} of shape "
                f"{part.shape} were given.",
                setting="parts",
            )
    return such
