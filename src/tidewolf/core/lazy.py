"""Libraries that take long to import, imported when something of them is first used."""

from functools import cached_property
from importlib import import_module
from typing import Any, final


@final
class Lazy:
    def __init__(self, name: str) -> None:
        self._name = name

    @cached_property
    def _module(self) -> Any:
        return import_module(self._name)

    def __getattr__(self, attribute: str) -> Any:
        return getattr(self._module, attribute)


scipy, sp, highspy, piqp = map(Lazy, ("scipy", "scipy.sparse", "highspy", "piqp"))
