"""Run as a script: starts `tidewolf live` again and again, each in a process of its own, without
importing anything twice.

It reads lines of JSON from stdin and answers each with a line:

    ["here", arguments]                                    runs the command in this very process
    ["fork", arguments, [stdin, stdout, stderr]]           in a child on these files; answers its id
    ["wait", id]                                           answers its exit code
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
import traceback

from tidewolf.cli import main as command


def fork(arguments: list[str], files: list[str]) -> int:
    """A child that runs the command on these files."""
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        flags = (os.O_RDONLY, os.O_WRONLY, os.O_WRONLY)
        for number, (path, flag) in enumerate(zip(files, flags, strict=True)):
            os.dup2(os.open(path, flag | os.O_NOCTTY), number)
        code = command(arguments)
        sys.stdout.flush()
    except BaseException:
        traceback.print_exc()
    sys.stderr.flush()
    os._exit(code)


def main() -> None:
    for line in sys.stdin:
        what, *given = json.loads(line)
        if what == "here":
            with contextlib.redirect_stdout(io.StringIO()):
                answer = command(given[0])
        elif what == "fork":
            answer = fork(*given)
        else:
            answer = os.waitstatus_to_exitcode(os.waitpid(given[0], 0)[1])
        print(answer, flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
