"""Which members of a class the reference shows: methods and properties that say what they are, in
the order of the source.

What a class defines because a base asks for it that is not public is how the library works inside:
kernels of a set, steps of a learner. It is not shown; what a public base has, and what the class
alone has, is. Bases that have no page are not named.
"""

import inspect
from functools import cache, cached_property
from typing import Any

from tools.public import parts, public

_KINDS = (property, cached_property, classmethod, staticmethod)


@cache
def public_classes() -> frozenset[type]:
    return frozenset(thing for _, thing in public() if isinstance(thing, type))


@cache
def shown_classes() -> frozenset[type]:
    """Public classes, and those of modules that have a page."""
    return public_classes() | {thing for _, thing in parts() if isinstance(thing, type)}


def shown(kind: type) -> list[str]:
    """The names of a class's members that its page shows."""
    return [
        name
        for name, member in vars(kind).items()
        if not name.startswith("_")
        and (inspect.isroutine(member) or isinstance(member, _KINDS))
        and says_something(kind, name)
        and not is_internal(kind, name)
    ]


def says_something(kind: type, name: str) -> bool:
    """Whether a member, or what it stands for in a base, has a docstring."""
    found = (vars(base)[name] for base in kind.__mro__ if name in vars(base))
    return any(member.__doc__ for member in found)


def is_internal(kind: type, name: str) -> bool:
    """Whether a member is asked for by bases of tidewolf alone, none of which is public."""
    bases = [base for base in kind.__mro__[1:] if name in vars(base)]
    return bool(bases) and all(
        base.__module__.startswith("tidewolf.") and base not in public_classes() for base in bases
    )


def name_bases(app: Any, name: str, kind: type, options: Any, bases: list[Any]) -> None:
    """Sphinx's event `autodoc-process-bases`: those that have a page, and other libraries'."""
    bases[:] = [
        base
        for base in bases
        if not getattr(base, "__module__", "").startswith("tidewolf.")
        or getattr(base, "__origin__", base) in shown_classes()
    ] or [object]


def setup(app: Any) -> dict[str, Any]:
    app.connect("autodoc-process-bases", name_bases)
    return {"parallel_read_safe": True}
