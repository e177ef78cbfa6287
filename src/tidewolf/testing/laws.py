"""How laws are run: one after another, and whatever stops one is told as that law."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias, TypeVar

from tidewolf.core.arguments import as_callback
from tidewolf.core.errors import LawBroken, TidewolfError

T = TypeVar("T")
Kept: TypeAlias = Callable[[str], None]
"""Told the name of every law that is kept."""


def run_laws(
    laws: Iterable[Callable[[T], None]], trial: T, name: str, kept: Kept | None = None
) -> None:
    """Raise `LawBroken` at the first law that `trial` breaks, or that another error keeps from
    being tried.
    """
    as_callback(kept, "kept, which is told what law is kept,")
    for law in laws:
        called = law.__name__.replace("_", " ")
        try:
            law(trial)
        except LawBroken:
            raise
        except Exception as error:
            raise LawBroken(f"{name} cannot be checked ({called}): {said(error)}") from error
        if kept is not None:
            kept(called)


def said(error: BaseException) -> str:
    """An error as one sentence: ours are, another's is given its name."""
    text = " ".join(str(error).split())
    return (
        text
        if isinstance(error, TidewolfError)
        else f"{type(error).__name__}{': ' * bool(text)}{text.rstrip('.')}."
    )
