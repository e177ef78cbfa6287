"""How laws are run: one after another, and whatever stops one is told as that law."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from tidewolf.core.errors import LawBroken, TidewolfError

T = TypeVar("T")


def run_laws(laws: Iterable[Callable[[T], None]], trial: T, name: str) -> None:
    """Raise `LawBroken` at the first law that `trial` breaks, or that another error of ours keeps from being tried."""
    for law in laws:
        try:
            law(trial)
        except LawBroken:
            raise
        except TidewolfError as error:
            raise LawBroken(f"{name} cannot be checked ({law.__name__.replace('_', ' ')}): {error}") from error
