"""`tidewolf doctor`: what is installed, what works, and what to do about what does not.

It needs nothing but Python: neither the extra `app` nor any other library, since it is asked for
when one of them is broken.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import NoReturn, TextIO

from tidewolf import __version__
from tidewolf.doctor import Finding, Report, examine

_MARKS = {"ok": "ok", "warning": "warning", "fails": "FAILS", "absent": "-"}
_COLOURS = {"ok": "32", "warning": "33", "fails": "31", "absent": "2"}
_INDENT = 10


class _Words(argparse.ArgumentParser):
    """Refuses as every command does: one sentence and exit code 2."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{message[:1].upper()}{message[1:]}; see `tidewolf doctor --help`.\n")


def doctor(words: Sequence[str]) -> int:
    """The command with these words behind its name; the answer is the exit code."""
    parser = _Words(
        prog="tidewolf doctor",
        description="Look at this installation: what is there, what works, what to do. It takes "
        "about ten seconds, and up to two minutes while kernels are compiled, once.",
    )
    parser.add_argument("--quick", action="store_true", help="leave the self-test out")
    parser.add_argument("--json", action="store_true", help="print the findings as JSON")
    parser.add_argument("--out", default="out", metavar="DIR", help="where results would go")
    try:
        asked = parser.parse_args(list(words))
    except SystemExit as end:
        return int(end.code or 0)
    try:
        return examine_and_show(quick=asked.quick, as_json=asked.json, out=asked.out)
    except KeyboardInterrupt:
        sys.stderr.write("Interrupted.\n")
        return 130


def examine_and_show(*, quick: bool, as_json: bool, out: str) -> int:
    """Findings as they come, or all of them as JSON; 1 where one of them fails."""
    shown: Callable[[Finding], None] | None = None if as_json else _Lines(sys.stdout).show
    with _progress(sys.stderr) as (follow, clear):

        def found(finding: Finding) -> None:
            clear()
            if shown is not None:
                shown(finding)

        report = examine(quick=quick, out=out, follow=follow, found=found)
    if as_json:
        record = {"tidewolf": __version__, **report.to_dict()}
        sys.stdout.write(f"{json.dumps(record, indent=2)}\n")
    else:
        sys.stdout.write(f"\n{_in_short(report)}\n")
    return 0 if report.healthy else 1


class _Lines:
    """Findings under the names of their groups."""

    def __init__(self, file: TextIO) -> None:
        self._file, self._group = file, ""
        self._coloured = _is_terminal(file) and not os.environ.get("NO_COLOR")

    def show(self, finding: Finding) -> None:
        if finding.group != self._group:
            self._group = finding.group
            self._file.write(f"{self._style(finding.group, '1')}\n")
        mark = _MARKS[finding.status].ljust(_INDENT - 2)
        mark = self._style(mark, _COLOURS[finding.status])
        self._file.write(f"  {mark}{finding.name}: {finding.said}\n")
        if finding.todo:
            self._file.write(f"{' ' * _INDENT}{finding.todo}\n")
        self._file.flush()

    def _style(self, text: str, code: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self._coloured else text


def _in_short(report: Report) -> str:
    fails, warnings = report.count("fails"), report.count("warning")
    counted = f"{len(report.findings)} findings in {report.seconds:.0f} s"
    more = f"{warnings} warning{'s' * (warnings != 1)}" if warnings else "no warnings"
    if fails:
        return f"{fails} FAIL{'S' * (fails == 1)}, {more}; {counted}."
    return f"All is well, {more}; {counted}."


@contextmanager
def _progress(file: TextIO) -> Iterator[tuple[Callable[[str], None], Callable[[], None]]]:
    """What writes a line over itself, and what clears it; both do nothing where nobody looks."""
    if not _is_terminal(file):
        yield (lambda text: None), (lambda: None)
        return

    def write(text: str) -> None:
        file.write(f"\r\x1b[K{text}")
        file.flush()

    try:
        yield (lambda text: write(f"{text} ...")), (lambda: write(""))
    finally:
        write("")


def _is_terminal(file: TextIO) -> bool:
    return file.isatty() and os.environ.get("TERM") != "dumb"
