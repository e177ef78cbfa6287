"""The process that makes the checks, and says so line by line.

    {"check": name}                  a check begins
    {"moving": text}                 what it looks at now
    {"finding": [...]}               what it found
    {"ended": name}                  it is over

Lines go through what was standard output when the process began; whatever libraries print goes to
standard error.
"""

from __future__ import annotations

import json
import os
from typing import Any, TextIO

from tidewolf.doctor.checks import every_check
from tidewolf.doctor.findings import Asked, failed, one_line

_AGAIN = "See whether the library it names is whole: install it again with pip."


def main(asked: str) -> None:
    """Make the checks that are named, in their order."""
    wanted: dict[str, Any] = json.loads(asked)
    with os.fdopen(os.dup(1), "w", encoding="utf-8", buffering=1) as lines:
        os.dup2(2, 1)
        checks = every_check(quick=False)
        for name in wanted["checks"]:
            _told(lines, check=name)
            try:
                for finding in checks[name](
                    Asked(wanted["out"]), lambda text: _told(lines, moving=text)
                ):
                    _told(lines, finding=finding)
            except (Exception, SystemExit) as error:
                broken = failed(name, one_line(error), _AGAIN)
                _told(lines, finding=broken)
            _told(lines, ended=name)


def _told(lines: TextIO, **what: object) -> None:
    lines.write(f"{json.dumps(what)}\n")
    lines.flush()
