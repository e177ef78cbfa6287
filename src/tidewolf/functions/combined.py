"""Functions made of others, round by round: what sums and maxima share.

The parts have equal lengths and take points of one shape. What exact solvers may use of the
whole depends on the parts, and `isinstance` shows it: the class of such a batch is chosen,
capability by capability, with what it is made of.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any, ClassVar, Self

from tidewolf.core.arguments import as_items
from tidewolf.core.batch import Batch
from tidewolf.core.errors import InvalidInput, NotSupported, WrongShape, WrongType
from tidewolf.core.piecewise import LinearTotal, PiecewiseLinear
from tidewolf.core.types import Shape

CAPABILITIES = (LinearTotal, PiecewiseLinear)


class Combined(Batch):
    """Abstract: a batch made of others of the same rounds.

    A subclass writes the methods of all capabilities, and says which it has in `_able`.
    """

    parts: tuple[Batch, ...]
    _written: ClassVar[type[Combined]]
    """the class as it stands in the source, without capabilities"""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if not issubclass(cls, CAPABILITIES):
            cls._written = cls

    @staticmethod
    @abstractmethod
    def _able(parts: tuple[Batch, ...]) -> Iterable[type]:
        """The capabilities that a batch of these parts has."""

    def __new__(cls, *functions: Batch, parts: Sequence[Batch] = (), **settings: Any) -> Self:
        return cls._of_parts(checked_parts(functions, parts, cls._written.__name__))

    @classmethod
    def _of_parts(cls, parts: tuple[Batch, ...]) -> Self:
        """An unfinished instance with the capabilities that the parts allow."""
        kind: Any = _subclass(cls._written, tuple(cls._able(parts)))
        made: Self = object.__new__(kind)
        return made

    @classmethod
    def _unchecked(cls, **fields: Any) -> Self:
        batch = cls._of_parts(fields["parts"])
        batch.__dict__.update(fields)
        return batch

    @classmethod
    def written_as(cls) -> type[Batch]:
        return cls._written

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (self._written, self.fields())

    def _parts_with(self, capability: type, what: str) -> Any:
        """The parts, which all have a capability; refused, naming one that has not."""
        for part in self.parts:
            if not isinstance(part, capability):
                raise NotSupported(f"{self!r} {what}, because its {type(part).__name__} does not.")
        return self.parts

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


@cache
def _subclass(written: type[Combined], capabilities: tuple[type, ...]) -> type[Combined]:
    if not capabilities:
        return written
    names = {"__module__": written.__module__, "__doc__": written.__doc__}
    return type(written.__name__, (written, *capabilities), names)


def _rebuild(written: type[Combined], fields: dict[str, Any]) -> Combined:
    return written(**fields)


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
