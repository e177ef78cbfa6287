"""The suite itself: no skip goes unnoticed, every file's cost is said; covering arrays cover."""

import ast
import os
import re
import shutil
import subprocess
import sys
from itertools import product
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import extras
from covering import cover, pairs

HERE = Path(__file__).parent.parent
TESTS = {
    "listed": 'pytest.skip("torch is not installed; pip install it")',
    "unlisted": 'pytest.skip("I did not feel like it")',
    "costly": "sum(i * i for i in range(3_000_000))",
}


def suite(folder, *names, ci="true", options=(), table=None):
    """What pytest says of tests with these bodies, and what it leaves of skips."""
    for name in ("conftest.py", "postgres.py", "servers.py"):
        shutil.copy(HERE / name, folder)
    (folder / "extras.py").write_text(table or (HERE / "extras.py").read_text())
    for name in names:
        body = f"import pytest\n\n\ndef test_it():\n    {TESTS[name]}\n"
        (folder / f"test_{name}.py").write_text(body)
    told = folder / "skipped.txt"
    paths = os.pathsep.join([str(HERE.parent), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "CI": ci, "TIDEWOLF_SKIPPED": str(told), "PYTHONPATH": paths}
    environment["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    done = ran([*command, f"--rootdir={folder}", *options, str(folder)], environment, folder)
    return done, told.read_text()


def ran(command, environment, folder):
    given = {"capture_output": True, "text": True, "timeout": 120, "check": False}
    return subprocess.run(command, env=environment, cwd=folder, **given)


def test_a_skip_that_is_not_listed_fails_the_session_and_is_named(tmp_path):
    """Of a test and of a whole module, as the suite runs in CI: on two processes."""
    body = 'import pytest\npytest.importorskip("no_such_module")\n'
    (tmp_path / "test_whole.py").write_text(body)
    done, told = suite(tmp_path, "listed", "unlisted", "costly", options=("-p", "xdist", "-n", "2"))
    assert done.returncode == 1, done.stdout
    assert "test_unlisted.py::test_it: I did not feel like it" in done.stdout
    assert "test_whole.py: could not import 'no_such_module'" in done.stdout
    assert "test_listed.py::test_it: " not in done.stdout
    assert "1 passed, 3 skipped in " in done.stdout.splitlines()[-1]
    first, second, third = told.splitlines()
    assert first == "test_listed.py (1): torch is not installed; pip install it"
    assert second == "test_unlisted.py (1): I did not feel like it"
    assert third.startswith("test_whole.py (1): could not import")
    costs = re.findall(r"(\S+)  (test_\w+\.py)$", done.stdout, re.MULTILINE)
    assert {file for _, file in costs} == {f"test_{name}.py" for name in TESTS}
    assert "in all; the budget is 600" in done.stdout


def functions_of(path):
    body = ast.parse(path.read_text()).body
    return {node.name for node in body if isinstance(node, ast.FunctionDef)}


def test_what_is_said_to_need_an_extra_is_there_and_so_is_the_extra():
    assert set(extras.NEEDS.values()) <= set(extras.EXTRA)
    for name in extras.NEEDS:
        file, _, test = name.partition("::")
        (path,) = HERE.rglob(file)
        assert not test or test in functions_of(path), name


@pytest.mark.parametrize(("bare", "code"), [("1", 0), ("", 1)])
def test_tests_that_need_an_extra_are_skipped_with_its_name_in_bare_mode(
    tmp_path, monkeypatch, bare, code
):
    monkeypatch.setenv("TIDEWOLF_BARE", bare)
    (tmp_path / "test_whole.py").write_text("import no_such_package\n")
    table, missing = (HERE / "extras.py").read_text(), "no_such_package"
    table = table.replace("EXTRA = {", f'EXTRA = {{"{missing}": "app"}} | {{')
    needs = f'TESTS = {{"{missing}": "test_whole.py test_costly.py::test_it",'
    done, told = suite(tmp_path, "costly", table=table.replace("TESTS = {", needs))
    assert done.returncode == code, done.stdout
    said = 'no_such_package is not installed; pip install "tidewolf[app]" runs this'
    assert told.splitlines() == [f"test_costly.py (1): {said}", f"test_whole.py (1): {said}"]


def test_the_tests_of_a_file_are_found_from_its_name():
    """tests/test_<file>.py, else tests/test_<folder>.py for the nearest folder that has one."""
    home = HERE.parent / "src" / "tidewolf"
    known = {path.stem.removeprefix("test_") for path in HERE.rglob("test_*.py")}
    paths = [path.relative_to(home) for path in sorted(home.rglob("[!_]*.py"))]
    lost = [str(path) for path in paths if not known & set(path.with_suffix("").parts)]
    assert not lost


# --- covering arrays ------------------------------------------------------------------------------


@given(
    sizes=st.lists(st.integers(1, 5), min_size=2, max_size=4),
    refused=st.sets(st.integers(0, 600), max_size=40),
)
def test_every_pair_that_can_meet_does(sizes, refused):
    values = product(*map(range, sizes))
    every = [pairs(**dict(zip("abcd", each, strict=False))) for each in values]
    cases = [case for i, case in enumerate(every) if i not in refused]
    chosen = cover(cases)
    assert set().union(*(cases[i] for i in chosen)) == set().union(*cases)
    assert len(chosen) == len(set(chosen)) <= len(cases)
    assert len(chosen) <= 2 * sorted(sizes)[-1] * sorted(sizes)[-2] or refused
