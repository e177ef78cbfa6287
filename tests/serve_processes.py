"""Run as a script: starts `tidewolf serve` again and again, each in a process of its own, without
importing or compiling anything twice.

It reads lines of JSON from stdin and answers each with a line:

    ["fork", arguments, file, environment, user]
                      in a child that writes stdout and stderr to the file; answers its id
    ["wait", id]      answers its exit code, negative where a signal ended it
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from importlib import import_module
from tempfile import TemporaryDirectory

from tidewolf.cli import main as command

NEEDED = (
    "encodings.idna",
    "fastapi",
    "typer._adapters",
    "typer._click.decorators",
    "uvicorn.lifespan.on",
    "uvicorn.loops.uvloop",
    "uvicorn.protocols.http.auto",
    "tidewolf.cli.app",
    "tidewolf.storage.session_store",
    "tidewolf.service.app",
    "tidewolf.service.server",
    "tidewolf.service.pages",
    "tidewolf.service.metrics",
    "tidewolf.service.server",
    "tidewolf.service.sessions",
)
"""What a server imports when it starts, all by itself."""


def prepare() -> None:
    """Have everything imported, and every kernel compiled, that the servers of the tests need."""
    for name in NEEDED:
        import_module(name)
    from tidewolf.service.description import Description
    from tidewolf.service.models import DecisionRequest, Observation
    from tidewolf.service.requests import Caller
    from tidewolf.service.sessions import Sessions
    from tidewolf.storage.session_store import SessionStore

    with TemporaryDirectory() as folder:
        store, caller = SessionStore.open(folder), Caller("anonymous", "writer", "")
        sessions = Sessions(store)
        for learner in ("LyapunovDescent", "Ensemble"):
            for n in (3, 4):
                name, learners = f"{learner}.{n}", [{"name": learner}]
                what = {"set": {"kind": "Simplex", "n": n}, "learners": learners}
                sessions.put(name, Description.read(what), caller)
                told = {"costs": list(range(n)), "capacities": [0.4] * n}
                for ahead in (0, 0, 1, 1):  # in order, and late
                    number = sessions.get(name).body["round"]
                    sessions.decide(name, DecisionRequest.read({"round": number + ahead}))
                    sessions.observe(name, Observation.read({"round": number, **told}))
        sessions.close()
        store.close()


def fork(arguments: list[str], file: str, environment: dict[str, str], user: int | None) -> int:
    """A child that runs the command, as another user where one is given."""
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        said = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        for number in (1, 2):
            os.dup2(said, number)
        os.environ.update(environment)
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


def main() -> None:
    prepare()
    for line in sys.stdin:
        what, *given = json.loads(line)
        if what == "fork":
            answer = fork(*given)
        else:
            answer = os.waitstatus_to_exitcode(os.waitpid(given[0], 0)[1])
        print(answer, flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
