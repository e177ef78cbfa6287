"""Every public name of tidewolf, by the path a user types."""

import inspect
from collections.abc import Iterator
from importlib import import_module
from typing import Any

BELOW = (
    *("experts", "experiments", "functions", "learners", "networks", "problems", "projection"),
    *("baselines", "sets", "sets.graph_tools", "testing"),
)
PACKAGES = ("tidewolf", *(f"tidewolf.{name}" for name in BELOW))
PARTS: dict[str, tuple[str, ...] | None] = {
    "tidewolf.core.errors": None,
    "tidewolf.core.oracle": ("Answer", "HasLMO"),
    "tidewolf.core.vertices": ("Vertex", "Dense", "Sparse", "LowRank", "Outer", "Compound"),
    "tidewolf.core.settings": (
        *("Check", "Count", "Number", "Magnitude", "Seed", "Flag", "Text", "ListOf", "Size"),
        *("Numbers", "PointNumbers"),
    ),
    "tidewolf.core.feedback": ("FullInformation", "FirstOrder", "Bandit"),
    "tidewolf.methods.base": ("Learner", "Bound", "Record"),
    "tidewolf.methods": (
        *("EveryRound", "BlockLearner", "Projecting", "ProjectedPoint", "Banked", "Slopes"),
        *("Deferred", "Overrides", "tangent_gradients", "frozen"),
    ),
    "tidewolf.methods.capabilities": (
        *("UsesInfo", "LateFeedback", "Migrates", "WeighsConstraints", "MixesExperts", "Explores"),
        *("ChoosesFeedback", "BoundsParts", "Diagnosed", "LimitBound", "Expert", "Guard"),
    ),
    "tidewolf.storage": ("SessionStore",),
}
"""Modules below the public packages that users meet, and which of their names: errors that they
catch, and what their own sets and learners are built with. None: all classes that a module defines.
"""


def public() -> Iterator[tuple[str, Any]]:
    """Path and object of each public class and function, once each, by its shortest path."""
    seen = set()
    for package in PACKAGES:
        module = import_module(package)
        for name in module.__all__:
            thing = getattr(module, name)
            if (inspect.isclass(thing) or inspect.isroutine(thing)) and thing not in seen:
                seen.add(thing)
                yield f"{package}.{name}", thing


def aliases() -> dict[str, str]:
    """The shortest path of each thing that other public paths lead to, by those paths."""
    shortest, found = {thing: path for path, thing in public()}, {}
    for package in PACKAGES:
        module = import_module(package)
        for name in module.__all__:
            path, thing = f"{package}.{name}", getattr(module, name)
            if (inspect.isclass(thing) or inspect.isroutine(thing)) and shortest[thing] != path:
                found[path] = shortest[thing]
    return found


def parts() -> Iterator[tuple[str, Any]]:
    """Path and object of each name of `PARTS`."""
    for path, names in PARTS.items():
        module = import_module(path)
        own = (name for name, thing in vars(module).items() if _is_defined_in(module, thing))
        for name in own if names is None else names:
            yield f"{path}.{name}", getattr(module, name)


def _is_defined_in(module: Any, thing: Any) -> bool:
    return inspect.isclass(thing) and thing.__module__ == module.__name__


def methods(kind: type) -> Iterator[tuple[str, Any]]:
    """Name and function of each public method that a class itself defines; properties are left
    out.
    """
    for name, member in vars(kind).items():
        function = inspect.unwrap(getattr(member, "__func__", member))
        if not name.startswith("_") and inspect.isfunction(function):
            yield name, function
