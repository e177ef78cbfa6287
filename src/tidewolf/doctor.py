"""Check this installation: versions, folders, and a short run with its certificate.

The module imports only Python's own modules, and each check imports what it needs. So
`tidewolf doctor` also works if a library is missing or broken.
"""

import json
import platform
import re
import sys
import tempfile
import textwrap
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from time import perf_counter
from typing import Literal, NamedTuple

from tidewolf import __version__

Status = Literal["ok", "warning", "absent", "fails"]


class Finding(NamedTuple):
    """One line of the output; a part that is `absent` is optional."""

    name: str
    status: Status
    text: str


def doctor(as_json: bool = False) -> int:
    findings = []
    for finding in examine():
        findings.append(finding)
        if not as_json:
            text = f"{finding.status:<8}{finding.name:<10}{finding.text}"
            lines = textwrap.wrap(text, 80, subsequent_indent=" " * 18, break_on_hyphens=False)
            sys.stdout.writelines(f"{line}\n" for line in lines)
            sys.stdout.flush()
    healthy = all(finding.status != "fails" for finding in findings)
    if as_json:
        record = {
            "tidewolf": __version__,
            "healthy": healthy,
            "findings": [finding._asdict() for finding in findings],
        }
        sys.stdout.write(f"{json.dumps(record, indent=2)}\n")
    return 0 if healthy else 1


def examine() -> Iterator[Finding]:
    system = f"{platform.system()} {platform.machine()}"
    yield Finding("python", "ok", f"{platform.python_version()} on {system}, {sys.executable}")
    yield Finding("tidewolf", "ok", f"{__version__} in {Path(__file__).parent}")
    for check in (_libraries, _cpu, _kernels, _results, _self_test):
        try:
            yield from check()
        except Exception as error:
            name = check.__name__[1:].replace("_", "-")
            yield Finding(name, "fails", f"{type(error).__name__}: {error}")


def _libraries() -> Iterator[Finding]:
    try:
        lines = requires("tidewolf") or []
    except PackageNotFoundError:
        yield Finding("libraries", "warning", "unknown: tidewolf is not installed with pip")
        return
    extras: dict[str, list[str]] = {}
    for line in lines:
        extra = re.search(r"extra == ['\"]([\w-]+)", line)
        extras.setdefault(extra[1] if extra else "", []).append(line)
    for name, declared in extras.items():
        if name not in ("ci", "dev", "docs"):
            yield _versions(name, declared)


def _versions(extra: str, declared: list[str]) -> Finding:
    """Compare the installed versions with lines such as `psycopg[binary]>=3.2; extra == 'x'`."""
    found, missing, old = [], [], []
    for line in declared:
        name = re.split(r"[^\w.-]", line)[0]
        lowest = re.search(r"[>=]=\s*([\d.]*\d)", line)
        try:
            installed = version(name)
        except PackageNotFoundError:
            missing.append(name)
            continue
        found.append(f"{name} {installed}")
        if lowest and _numbers(installed) < _numbers(lowest[1]):
            old.append(f"{name} {installed} is older than {lowest[1]}")
    status: Status = ("absent" if extra else "fails") if missing else "warning" if old else "ok"
    missing = [f"{name} is missing" for name in missing]
    package = f'"tidewolf[{extra}]"' if extra else "tidewolf"
    advice = [f"type: pip install --upgrade {package}"] if missing or old else []
    text = "; ".join([", ".join(found), *old, *missing, *advice]).lstrip("; ")
    return Finding(extra or "needed", status, text)


def _numbers(text: str) -> list[int]:
    """2.13.0+cpu as [2, 13, 0]."""
    found = re.match(r"[\d.]*\d", text)
    return [int(part) for part in found[0].split(".")] if found else []


def _cpu() -> Iterator[Finding]:
    from tidewolf.core.checkpoint import writer

    for name in ("cpu", "blas"):
        yield Finding(name, "ok", writer()[name])


def _kernels() -> Iterator[Finding]:
    from tidewolf.core.jit_cache import folder_of
    from tidewolf.kernels import graphs

    none = "no folder can be written, so every process compiles; set NUMBA_CACHE_DIR"
    folder = folder_of(graphs.__file__)
    text = f"compiled kernels are kept in {folder}" if folder else none
    yield Finding("kernels", "ok" if folder else "warning", text)


def _results() -> Iterator[Finding]:
    out = Path.cwd() / "out"
    try:
        tempfile.TemporaryFile(dir=out if out.exists() else out.parent).close()
    except OSError as error:
        text = f"{out} cannot be written ({error.strerror}); give `tidewolf run` a folder: --out"
        yield Finding("results", "warning", text)
    else:
        yield Finding("results", "ok", f"{out} can be written")


def _self_test() -> Iterator[Finding]:
    import tidewolf as tw

    began = perf_counter()
    problem = tw.problems.routing(rounds=200, seed=0)
    run = tw.run(tw.LyapunovDescent(problem.K), problem.stream)
    holds, regret = run.certificate.holds, run.regret
    well = holds is True and regret is not None and regret[0] <= regret[1]
    text = f"200 rounds of routing, certificate holds, {perf_counter() - began:.1f} s"
    wrong = f"the certificate of a run does not hold ({holds}, regret {regret})"
    yield Finding("self-test", "ok" if well else "fails", text if well else wrong)
