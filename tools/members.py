"""Which members of a class the reference shows, in the order of their use: methods and properties
that have a docstring.

What a class defines because a base of tidewolf asks for it is described on the page of that base,
and hidden on its own, but for what users call: `lmo` of a set, `act` and `update` of a learner,
values and gradients of functions. These are shown on the page of every class, inherited or not.
Bases that have no page are not named.
"""

import inspect
from functools import cache, cached_property
from typing import Any

from tools.public import parts, public

_KINDS = (property, cached_property, classmethod, staticmethod)
FAMILIES = {
    "tidewolf.sets.base.ConvexSet": ("lmo", "infeasibility", "project"),
    "tidewolf.methods.base.Learner": ("act", "update", "theorem", "guarantee", "bound"),
    "tidewolf.core.batch.Batch": ("one", "of", "values", "subgradient"),
    "tidewolf.experts.context.Context": ("features",),
    "tidewolf.experts.base.Adviser": ("names",),
}
"""What users call of every class of a family."""
FIRST = (
    *("play", "observe", "fit", "partial_fit", "predict", "from_edges", "from_parts"),
    *("lmo", "infeasibility", "project", "paths", "loads", "start", "act", "update", "propose"),
    *("theorem", "published", "guarantee", "bound", "one", "of", "values", "subgradient"),
    *("open", "save", "load", "close", "explain", "certificate", "rollback", "migrate", "history"),
    *("regret", "comparator", "experts", "limits", "rankings", "ranking", "frontier", "choice"),
    *("summary", "to_pandas", "plot", "to_dict", "round", "rounds", "pending"),
)
"""Members by use; all others follow, in the order of the source."""
INTERNAL = {
    "BanditPrimalDual": ("assumed", "mu_for"),
    "DriftPlusPenalty": ("weights",),
    "Ensemble": ("needs", "reads"),
    "RoundInfo": ("unchecked", "with_skipped", "says_nothing", "identity"),
    "Stream": ("untold", "override", "info"),
    "FirstOrder": ("is_plain",),
    "Session": ("notes_from",),
    "Season": ("table",),
    "Squared": ("sparse_subgradient",),
    "Comparison": ("measure", "scale", "share_of", "chooser", "about", "warnings"),
    "OnlineAllocator": ("needs_previous_weights", "set_fit_request", "set_partial_fit_request"),
    "SessionStore": ("let_go", "flushed", "handle", "holds", "set"),
    "ConvexSet": ("as_direction",),
    "Batch": ("written_as",),
    "PrimalDual": ("with_info",),
    "Product": ("relax", "vertex_infeasibility", "description"),
    "Max": ("halfspaces", "epigraph"),
    "Sum": ("halfspaces",),
}
"""Documented for developers, of no use to users."""


@cache
def shown_classes() -> frozenset[type]:
    """Public classes, and those of modules that have a page."""
    return frozenset(thing for _, thing in (*public(), *parts()) if isinstance(thing, type))


def shown(kind: type) -> list[str]:
    """The names of the members that the page of a class shows, in the order of their use."""
    family = _family(kind)
    named = dict.fromkeys(
        name
        for name, member in vars(kind).items()
        if not name.startswith("_")
        and (inspect.isroutine(member) or isinstance(member, _KINDS))
        and name not in INTERNAL.get(kind.__name__, ())
        and (name in family or not is_asked_for(kind, name))
    )
    found = [*named, *(name for name in family if name not in named and hasattr(kind, name))]
    documented = [name for name in found if says_something(kind, name)]
    return sorted(documented, key=lambda name: FIRST.index(name) if name in FIRST else len(FIRST))


def directive(kind: type, name: str) -> str:
    """The directive of Sphinx that shows a member."""
    member = inspect.getattr_static(kind, name)
    if isinstance(member, property | cached_property):
        return "autoproperty"
    return "automethod" if isinstance(member, _KINDS) or callable(member) else "autoattribute"


def says_something(kind: type, name: str) -> bool:
    """Whether a member, or what it stands for in a base, has a docstring."""
    found = (vars(base)[name] for base in kind.__mro__ if name in vars(base))
    return any(member.__doc__ for member in found)


def is_asked_for(kind: type, name: str) -> bool:
    """Whether a base of tidewolf has a member of this name."""
    bases = (base for base in kind.__mro__[1:] if name in vars(base))
    return any(base.__module__.startswith("tidewolf.") for base in bases)


def _family(kind: type) -> tuple[str, ...]:
    """What users call of the family that a class belongs to."""
    paths = (f"{base.__module__}.{base.__name__}" for base in kind.__mro__)
    return next((FAMILIES[path] for path in paths if path in FAMILIES), ())


def shown_bases(kind: type) -> list[type]:
    """The nearest bases that have a page."""
    found = [base for base in kind.__mro__[1:] if base in shown_classes()]
    return [base for base in found if not any(issubclass(o, base) for o in found if o is not base)]


def name_bases(app: Any, name: str, kind: type, options: Any, bases: list[Any]) -> None:
    """Sphinx's event `autodoc-process-bases`: only bases that have a page."""
    bases[:] = shown_bases(kind) or [object]


def setup(app: Any) -> dict[str, Any]:
    app.connect("autodoc-process-bases", name_bases)
    return {"parallel_read_safe": True}
