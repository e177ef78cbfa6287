"""Sets made of other sets have the capabilities that those allow, and `isinstance` says which.

`Shrunk(Simplex(2), 0.5)` has an exact projection, `Shrunk(VertexHull(...), 0.5)` has none: the
class of such a set is chosen, capability by capability, with what it is made of.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from functools import cache
from typing import Any, ClassVar

from tidewolf.core.oracle import Answer
from tidewolf.core.types import Array
from tidewolf.sets.base import ConvexSet, CostlyMembership, Polyhedral, Projectable, Relaxable

CAPABILITIES = (Projectable, Polyhedral, Relaxable, CostlyMembership)


class Composed(ConvexSet):
    """Abstract: a set made of others.

    A subclass writes the methods of all capabilities, and a `__new__` that returns
    `with_capabilities(cls, those it has)`.
    """

    _written: ClassVar[type[Composed]]
    """the class as it stands in the source, without capabilities"""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if not issubclass(cls, CAPABILITIES):
            cls._written = cls

    @abstractmethod
    def answer(self, direction: Array, warm: Any = None) -> Answer: ...

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (self._written, self.fields())


def with_capabilities(kind: type[Composed], capabilities: Iterable[type]) -> Any:
    """An unfinished instance of the class as written, with these capabilities."""
    return object.__new__(_subclass(kind._written, tuple(capabilities)))


@cache
def _subclass(written: type[Composed], capabilities: tuple[type, ...]) -> type[Composed]:
    if not capabilities:
        return written
    names = {"__module__": written.__module__, "__doc__": written.__doc__}
    return type(written.__name__, (written, *capabilities), names)


def _rebuild(written: type[Composed], fields: dict[str, Any]) -> Composed:
    return written(**fields)
