"""Libraries that take long to import, imported when something of them is first used."""

from __future__ import annotations

from importlib import import_module
from typing import Any, final


@final
class Lazy:
    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        return getattr(import_module(self._name), attribute)


scipy, sp, highspy, piqp = map(Lazy, ("scipy", "scipy.sparse", "highspy", "piqp"))
