"""How this program starts another Python: the same interpreter, finding the same modules."""

from __future__ import annotations

import sys


def command_for(module: str, function: str, *arguments: str) -> list[str]:
    """A command that calls a function of a module with these texts.

    The folders in which modules are looked for are handed over as they are, so that both find the
    same ones wherever the command was typed.
    """
    code = (
        f"import sys; sys.path[:] = {sys.path!r}; from importlib import import_module; "
        f"import_module({module!r}).{function}(*sys.argv[1:])"
    )
    return [sys.executable, "-P", "-W", "ignore", "-c", code, *arguments]
