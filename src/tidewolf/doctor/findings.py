"""What a check says: ok, warning, fails or absent, a sentence, and what to do."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Literal, NamedTuple, TypeAlias

Status: TypeAlias = Literal["ok", "warning", "fails", "absent"]
"""`absent` is said of optional parts that are not installed, which is no fault."""


class Finding(NamedTuple):
    """One line of the examination."""

    group: str
    name: str
    status: Status
    said: str
    """what was found, without a full stop where it is a list of facts"""
    todo: str = ""
    """one sentence on what to do, where there is something to do"""


class Report(NamedTuple):
    """All findings, and how long they took."""

    findings: list[Finding]
    seconds: float

    @property
    def healthy(self) -> bool:
        """Whether nothing fails; warnings and absent parts are no failures."""
        return not self.count("fails")

    def count(self, status: Status) -> int:
        """How many findings have this status."""
        return sum(finding.status == status for finding in self.findings)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for `--json`."""
        return {
            "healthy": self.healthy,
            "seconds": round(self.seconds, 3),
            "findings": [finding._asdict() for finding in self.findings],
        }


class Asked(NamedTuple):
    """What the examination was asked to look at."""

    out: str = "out"
    """the folder that runs would be written to"""


Moving: TypeAlias = Callable[[str], None]
"""Told what is looked at now."""
Check: TypeAlias = Callable[[Asked, Moving], Iterator[Finding]]


def one_line(error: BaseException) -> str:
    """An exception in one short line."""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}{f': {text[:300]}' if text else ''}"


def failed(check: str, said: str, todo: str) -> Finding:
    """That a check, called group/name, did not come to its end."""
    group, _, name = check.partition("/")
    return Finding(group, name, "fails", said, todo)
