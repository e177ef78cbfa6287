"""The `tidewolf` command.

It needs the extra `app`, and names it in one sentence if that is missing; `tidewolf doctor` needs
nothing.
"""

import gc
import sys
from collections.abc import Sequence
from importlib.util import find_spec

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command with these arguments (those of the shell by default); the answer is the exit
    code.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words in (["doctor"], ["doctor", "--json"]):
        from tidewolf.doctor import doctor

        try:
            return doctor(as_json=len(words) > 1)
        except KeyboardInterrupt:
            return 130
    needed = ("typer", "rich", "matplotlib", "pyarrow")
    if missing := " and ".join(package for package in needed if find_spec(package) is None):
        cure = 'not installed here; type: pip install "tidewolf[app]"'
        sys.stderr.write(f"The tidewolf command needs {missing}, {cure}\n")
        return 2
    # libraries make hundreds of thousands of objects that stay: looking through them all again and
    # again takes a tenth of the time of a short run
    gc.set_threshold(50_000)
    from tidewolf.cli.app import invoke

    return invoke(words)
