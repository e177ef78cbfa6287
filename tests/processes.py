"""Run as a script: starts commands again and again, each in a process of its own, without
importing or compiling anything twice; all that servers need comes first.

It reads lines of JSON from stdin and answers each with a line:

    ["here", arguments]                             runs the command in this very process
    ["fork", arguments, [stdin, stdout, stderr], environment, user]
                                                    in a child on these files; answers its id
    ["wait", id]      answers its exit code, negative where a signal ended it
"""

import json
import os
import sys
import traceback
from contextlib import redirect_stdout, suppress
from importlib import import_module
from io import StringIO

from tidewolf.cli import main as command

NEEDED = "encodings.idna fastapi typer._adapters typer._click.decorators uvicorn.lifespan.on"
NEEDED += " uvicorn.loops.uvloop uvicorn.protocols.http.auto"
OWN = "cli.app service.app service.pages service.sessions storage.session_store"
NEEDED = [*NEEDED.split(), *(f"tidewolf.{name}" for name in OWN.split())]
"""What a server imports when it starts, all by itself."""


def prepare():
    """Have everything imported, and every kernel compiled, that the servers of the tests need."""
    for name in NEEDED:
        with suppress(ModuleNotFoundError):  # older versions have no such module
            import_module(name)
    from tidewolf.service.models import Description, warm_up

    for learner in ("LyapunovDescent", "Ensemble"):
        what = {"set": {"kind": "Simplex", "n": 3}, "learners": [{"name": learner}]}
        warm_up(Description.read(what).build())


def fork(arguments, files, environment=None, user=None):
    """A child that runs the command on these files, as another user where one is given."""
    child = os.fork()
    if child:
        return child
    code, write = 1, os.O_WRONLY | os.O_APPEND | os.O_CREAT
    try:
        for number, (path, flags) in enumerate(
            zip(files, (os.O_RDONLY, write, write), strict=True)
        ):
            os.dup2(os.open(path, flags | os.O_NOCTTY), number)
        os.environ.update(environment or {})
        if user is not None:
            os.setgroups([])
            os.setgid(user)
            os.setuid(user)
        code = command(arguments)
        sys.stdout.flush()
    except BaseException:
        traceback.print_exc()
    sys.stderr.flush()
    os._exit(code)


def main():
    prepare()
    for line in sys.stdin:
        what, *given = json.loads(line)
        if what == "here":
            with redirect_stdout(StringIO()):
                answer = command(given[0])
        elif what == "fork":
            answer = fork(*given)
        else:
            answer = os.waitstatus_to_exitcode(os.waitpid(given[0], 0)[1])
        print(answer, flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
