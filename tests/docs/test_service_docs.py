"""docs/how-to/service.md is true: its commands run against a real server, in their order, and what
it shows is what comes back.

An answer that is shown as JSON may be shortened: every key that is shown must be there, numbers
agree to nine digits, and "..." stands for anything.
"""

import json
import math
import os
import re
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest

import tidewolf as tw

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "service.md"
TOKEN, READER, END = "7c1f0e8a2b94", "55e09d1b7ac3", "<end of a block>"


class Block(NamedTuple):
    """A block of the page, and what follows it."""

    kind: str
    code: str
    shown: str


def blocks():
    found = re.findall(
        r"```(bash|py)\n(.*?)```\n(?:\n```(?:json|text)\n(.*?)```)?",
        PAGE.read_text(),
        flags=re.DOTALL,
    )
    return [Block(*each) for each in found]


def agrees(shown, found):
    """Whether what came back is what the page shows."""
    if shown == "...":
        return True
    if isinstance(shown, dict):
        return isinstance(found, dict) and all(
            key in found and agrees(value, found[key]) for key, value in shown.items()
        )
    if isinstance(shown, list):
        return len(shown) == len(found) and all(map(agrees, shown, found))
    if isinstance(shown, float):
        return math.isclose(shown, found, rel_tol=1e-9, abs_tol=1e-9)
    return bool(shown == found)


@pytest.fixture
def url(servers, tmp_path):
    tokens = tmp_path / "tokens"
    (shown,) = re.findall(r"\$ cat tokens\n(.*?)\$", PAGE.read_text(), flags=re.DOTALL)
    assert TOKEN in shown
    assert READER in shown
    tokens.write_text(shown)
    tokens.chmod(0o600)
    server = servers.start(tmp_path / "sessions", "--token-file", str(tokens))
    yield f"http://127.0.0.1:{server.port}"
    server.kill()


def shell(code, url, folder):
    """What each of these blocks prints, in one shell."""
    script = "".join(f"{one}\necho; echo '{END}'\n" for one in code)
    ended = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=folder,
        env={**os.environ, "URL": url, "TOKEN": TOKEN, "READER": READER, "no_proxy": "127.0.0.1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert ended.returncode == 0, ended.stderr + ended.stdout[-2000:]
    return ended.stdout.split(f"\n{END}\n")[:-1]


def test_the_page_is_true(url, tmp_path, capsys):
    parts = blocks()
    begin = next(part.code for part in parts if "ask()" in part.code).partition("\n")[0]
    assert sum(bool(part.shown) for part in parts) >= 10
    run = []
    for part in [*parts, None]:
        if part is not None and part.kind == "bash":
            run.append(part)
            continue
        printed = shell([begin, *(one.code for one in run)], url, tmp_path)[1:]
        for one, came in zip(run, printed, strict=True):
            require(one, came)
        run = []
        if part is not None:
            capsys.readouterr()
            exec(compile(part.code, PAGE.name, "exec"), {"URL": url, "TOKEN": TOKEN})
            assert capsys.readouterr().out == part.shown
    assert (tmp_path / "report.html").read_text().lstrip().lower().startswith("<!doctype html")


def require(part, came):
    """What is shown, and that no answer is an error unless one is shown."""
    lines = [line for line in came.splitlines() if line.startswith("{")]
    answers = [json.loads(text) for line in lines for text in apart(line)]
    if part.shown:
        assert agrees(json.loads(part.shown), answers[-1]), f"{part.code}\n{answers[-1]}"
        return
    for answer in answers:
        assert "detail" not in answer, f"{part.code}\n{answer}"
        assert answer["version"] == tw.__version__


def apart(line):
    """Objects that stand on one line, for curl ends none."""
    found, decoder, at = [], json.JSONDecoder(), 0
    while line[at : at + 1] == "{":
        _, end = decoder.raw_decode(line, at)
        found.append(line[at:end])
        at = end
    return found


def test_every_resource_is_on_the_page():
    text = PAGE.read_text()
    for what in (
        *("decisions", "observations", "history", "experts", "report", "explanation", "audit"),
        *("migrate", "mode", "rollback", "pin"),
    ):
        assert re.search(rf"ask .*/v1/sessions/[\w-]+/{what}", text), what
    for what in ("-X PUT", "-X DELETE", "/healthz", "/readyz", "/metrics", "/docs", "/v1/audit"):
        assert what in text
