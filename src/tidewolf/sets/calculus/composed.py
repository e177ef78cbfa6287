"""Sets made of other sets bring the gifts those allow, and `isinstance` says which.

`Shrunk(Simplex(2), 0.5)` has an exact projection, `Shrunk(VertexHull(...), 0.5)` has none: the
class of such a set is chosen, gift by gift, with what it is made of.
"""

from __future__ import annotations

from abc import abstractmethod
from functools import cache
from typing import Any, ClassVar

from tidewolf.core.oracle import Answer
from tidewolf.core.types import Array
from tidewolf.sets.base import ConvexSet, DearMembership, Polyhedral, Projectable, Relaxable

GIFTS = (Projectable, Polyhedral, Relaxable, DearMembership)


class Composed(ConvexSet):
    """Abstract: a set made of others.

    A subclass writes the methods of all gifts, and a `__new__` that returns `able(cls, gifts)`.
    """

    _written: ClassVar[type[Composed]]

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if not issubclass(cls, GIFTS):
            cls._written = cls

    @abstractmethod
    def answer(self, direction: Array, warm: Any = None) -> Answer: ...

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (self._written, self.fields())


def able(kind: type[Composed], *gifts: bool) -> Any:
    """An unfinished instance of the class as written, with those of `GIFTS` that are true."""
    return object.__new__(
        _with(kind._written, tuple(gift for gift, given in zip(GIFTS, gifts, strict=True) if given))
    )


@cache
def _with(written: type[Composed], gifts: tuple[type, ...]) -> type[Composed]:
    return (
        type(
            written.__name__,
            (written, *gifts),
            {"__module__": written.__module__, "__doc__": written.__doc__},
        )
        if gifts
        else written
    )


def _again(written: type[Composed], fields: dict[str, Any]) -> Composed:
    return written(**fields)
