"""The developers' scripts: what the census counts, on a made-up tree, and that digests stand."""

from __future__ import annotations

from pathlib import Path

import pytest
from tools import census, digests, passages

LOOP = """
def total(numbers):
    found = 0.0
    # a comment does not break a passage
    for number in numbers:
        if number > 0.0:
            found += number

    return found
"""
FILES = {
    "__init__.py": "from small import report\n_own = 1\n",
    "evaluation/__init__.py": f'"""Two lines\nof text."""\nLIMIT = 1\nclass State: pass\n{LOOP}',
    "evaluation/run.py": "def show():\n    from small.report.page import write\n    write()\n",
    "report/__init__.py": "",
    "report/page.py": f"from ..evaluation import run\nLIMIT: int = 2\nclass State: ...\n{LOOP}",
    "core.py": "import typing\nif typing.TYPE_CHECKING:\n    from small import report\n_own = 2\n",
}
"""A package that has one of everything the census looks for."""


@pytest.fixture
def package(tmp_path: Path) -> Path:
    folder = tmp_path / "small"
    for name, text in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def test_the_census_counts_what_it_says(package: Path) -> None:
    assert census.source_figures(package) == {
        "statements": 2 + (4 + 6) + 3 + 0 + (4 + 6) + 4,
        "passages": ["evaluation/__init__.py:6 = report/page.py:5, 6 lines"],
        "names": {"total": ["evaluation", "report.page"]},
        "constants": {"LIMIT": ["evaluation", "report.page"]},
        "package cycles": ["evaluation <-> report"],
        "evaluation imports report": ["evaluation.run -> report.page"],
    }


def test_five_lines_are_no_passage_and_a_file_may_repeat_itself(tmp_path: Path) -> None:
    lines = [f"x{i} = {i}\n" for i in range(6)]
    (tmp_path / "five.py").write_text("".join(lines[:5]))
    (tmp_path / "twice.py").write_text("".join([*lines, "y = 1\n", *lines]))
    found = passages.identical_passages(tmp_path)
    assert found == [("twice.py", 1, "twice.py", 8, 6)]


def test_wide_lines_are_those_over_a_hundred_columns(tmp_path: Path) -> None:
    file = tmp_path / "wide.py"
    file.write_text("#" * 100 + "\n" + "#" * 101 + "\n" + "é" * 100 + "\n", encoding="utf-8")
    assert census.count_wide_lines([file]) == 1


def test_twelve_runs_and_the_same_run_twice_is_equal() -> None:
    assert len(digests.RUNS) == 12
    first, other = "SinhaVaze on portfolio", "WangWanZhang on sdp"
    assert digests.digest(first) == digests.digest(first) != digests.digest(other)
