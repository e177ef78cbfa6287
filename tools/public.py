"""Every public name of tidewolf, by the path a user types."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from importlib import import_module
from typing import Any

PACKAGES = (
    "tidewolf",
    "tidewolf.advice",
    "tidewolf.context",
    "tidewolf.experiments",
    "tidewolf.functions",
    "tidewolf.learners",
    "tidewolf.networks",
    "tidewolf.problems",
    "tidewolf.projection",
    "tidewolf.rivals",
    "tidewolf.sets",
    "tidewolf.sets.graph_tools",
    "tidewolf.testing",
)


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
    shortest = {thing: path for path, thing in public()}
    found = {}
    for package in PACKAGES:
        module = import_module(package)
        for name in module.__all__:
            path, thing = f"{package}.{name}", getattr(module, name)
            if (inspect.isclass(thing) or inspect.isroutine(thing)) and shortest[thing] != path:
                found[path] = shortest[thing]
    return found


def methods(kind: type) -> Iterator[tuple[str, Any]]:
    """Name and function of each public method that a class itself defines; properties are left
    out.
    """
    for name, member in vars(kind).items():
        function = inspect.unwrap(getattr(member, "__func__", member))
        if not name.startswith("_") and inspect.isfunction(function):
            yield name, function
