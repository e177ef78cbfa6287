"""The `tidewolf` command.

It needs the extra `app`, and says so in one sentence where that is missing; `tidewolf doctor` needs
nothing.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.util import find_spec

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command with these arguments (those of the shell by default); the answer is the exit
    code.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words[:1] == ["doctor"] and not {"-h", "--help"} & set(words):
        from tidewolf.cli.doctor import doctor

        return doctor(words[1:])
    missing = [
        package
        for package in ("typer", "rich", "matplotlib", "pyarrow")
        if find_spec(package) is None
    ]
    if missing:
        sys.stderr.write(
            f"The tidewolf command needs {' and '.join(missing)}, not installed here; type: pip"
            ' install "tidewolf[app]"\n'
        )
        return 2
    from tidewolf.cli.app import invoke

    return invoke(words)
