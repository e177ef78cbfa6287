"""The tables of docs/start/first-run.md, from the commands that print them: `make readme` writes
them anew.

A block of text with the title of a run (`routing: 2,000 rounds, seed 0`) becomes what
`tidewolf run` prints today on 80 columns, but for the lines that say where files are.
tests/docs/test_readme.py holds the numbers to the learners.
"""

import contextlib
import io
import os
import re
import tempfile
from pathlib import Path

from tidewolf.cli import main

PAGE = Path(__file__).parent.parent / "docs" / "start" / "first-run.md"
PROBLEMS = ("routing", "sdp")
_FILES = ("decisions: ", "report: ")
"""How lines begin that say where files are."""


def block(problem: str) -> re.Pattern[str]:
    """Where the page shows the run of a problem."""
    return re.compile(
        rf"(?<=```text\n)[^`]*?\n\n{problem}: [^\n]* rounds, seed 0\n.*?(?=```)", flags=re.DOTALL
    )


def printed(problem: str) -> str:
    """What `tidewolf run` prints of a problem."""
    out = io.StringIO()
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(out):
        code = main(["run", problem, "--out", f"{folder}/out"])
    if code:
        raise SystemExit(code)
    lines = [line.rstrip() for line in out.getvalue().splitlines()]
    return "\n".join(line for line in lines if not line.startswith(_FILES)) + "\n"


def write() -> None:
    """The page with the tables of today."""
    os.environ["COLUMNS"] = "80"
    text = PAGE.read_text(encoding="utf-8")
    for problem in PROBLEMS:
        table = printed(problem)
        text, count = block(problem).subn(lambda _, table=table: table, text)
        if count != 1:
            raise SystemExit(f"{PAGE} shows {count} runs of {problem}; it is to show one.")
        print(table)
    PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write()
