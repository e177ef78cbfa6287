"""The examination: checks are made by another process, which may end at any of them."""

from __future__ import annotations

import json
import signal
import subprocess
import tempfile
import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from queue import Empty, Queue
from time import monotonic
from typing import IO, Any

from tidewolf.doctor.checks import every_check
from tidewolf.doctor.findings import Finding, Report, failed
from tidewolf.doctor.starting import command_for

PATIENCE = 300.0
"""Seconds without a word after which a check is given up: compiling may take long."""


def examine(
    *,
    quick: bool = False,
    out: str = "out",
    follow: Callable[[str], None] | None = None,
    found: Callable[[Finding], None] | None = None,
    only: Collection[str] | None = None,
    patience: float = PATIENCE,
) -> Report:
    """Make every check, or those named group/name; `follow` is told what is looked at, `found` each
    finding as it comes.
    """
    began, findings = monotonic(), list[Finding]()

    def keep(finding: Finding) -> None:
        findings.append(finding)
        if found is not None:
            found(finding)

    left = [name for name in every_check(quick) if only is None or name in only]
    while left:
        with tempfile.TemporaryFile() as errors:
            over = _one_process(left, out, patience, follow or _nothing, keep, errors)
        left = left[over:]
    return Report(findings, monotonic() - began)


def _nothing(text: str) -> None:
    """Nobody follows."""


def _one_process(
    checks: list[str],
    out: str,
    patience: float,
    follow: Callable[[str], None],
    keep: Callable[[Finding], None],
    errors: IO[bytes],
) -> int:
    """How many of the checks one process got through; the one that ended it is among them."""
    asked = json.dumps({"checks": checks, "out": out})
    command = command_for("tidewolf.doctor.child", "main", asked)
    over, under_way, doing = 0, checks[0], ""
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors) as process:
        try:
            for what in _lines(process, patience):
                if "check" in what:
                    under_way = what["check"]
                    doing = under_way.partition("/")[2]
                    follow(doing)
                elif "moving" in what:
                    doing = what["moving"]
                    follow(doing)
                elif "finding" in what:
                    keep(Finding(*what["finding"]))
                else:
                    over += 1
        except TimeoutError:
            said = f"{doing or under_way}: no word for {patience:.0f} s"
            todo = "Try again on a machine that is less busy; else install what it names again."
            keep(failed(under_way, said, todo))
            return over + 1
        finally:
            process.kill()
    if over == len(checks):
        return over
    errors.seek(0)
    words = errors.read().decode(errors="replace").strip().splitlines()
    said = (
        f"{doing or under_way}: {_ending(process.returncode)}{f' ({words[-1]})' if words else ''}"
    )
    todo = "A library that is named here is broken, or made for another processor: reinstall it."
    keep(failed(under_way, said, todo))
    return over + 1


def _lines(process: subprocess.Popen[bytes], patience: float) -> Iterator[dict[str, Any]]:
    """What the process says, line by line; TimeoutError where it says nothing for long."""
    queue: Queue[bytes | None] = Queue()

    def listen() -> None:
        assert process.stdout is not None
        for line in process.stdout:
            queue.put(line)
        queue.put(None)

    threading.Thread(target=listen, daemon=True).start()
    while True:
        try:
            line = queue.get(timeout=patience)
        except Empty:
            raise TimeoutError from None
        if line is None:
            with suppress(subprocess.TimeoutExpired):  # what was to be said was said
                process.wait(timeout=10.0)
            return
        yield json.loads(line)


def _ending(code: int) -> str:
    if code >= 0:
        return f"the process ended with code {code}"
    try:
        return f"the process was ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"the process was ended by signal {-code}"
