"""The documentation is true: its Python runs and prints what is shown, and the files and tests it names exist."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = sorted((ROOT / "docs").glob("*.md"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_blocks_run_and_print_what_is_shown(page: Path) -> None:
    names: dict[str, object] = {}
    for code, _, shown in re.findall(r"```python\n(.*?)```\n(\n```text\n(.*?)```)?", page.read_text(), flags=re.DOTALL):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, page.name, "exec"), names)
        assert printed.getvalue() == shown


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_files_and_tests_that_are_named_exist(page: Path) -> None:
    for path, test in re.findall(r"`((?:tests|benchmarks|docs|src)/[\w/]+\.(?:py|md))(?:::(\w+))?`", page.read_text()):
        assert (ROOT / path).exists(), path
        assert not test or f"def {test}(" in (ROOT / path).read_text(), f"{path}::{test}"
    for module in re.findall(r"`((?:core|sets|functions|projection|steps|learners|rivals|evaluation)/[\w/]+\.py)`", page.read_text()):
        assert (ROOT / "src" / "tidewolf" / module).exists(), module
