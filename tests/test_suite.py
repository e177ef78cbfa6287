"""The suite itself: no skip goes unnoticed, every file's cost is said, and .ci/run says last what
was skipped and why.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
RUN = HERE.parent / ".ci" / "run"
TESTS = {
    "listed": 'pytest.skip("torch is not installed; pip install it")',
    "unlisted": 'pytest.skip("I did not feel like it")',
    "costly": "sum(i * i for i in range(3_000_000))",
}


def suite(folder, *names, ci="true", options=()):
    """What pytest says of tests with these bodies, and what it leaves of skips."""
    shutil.copy(HERE / "conftest.py", folder)
    for name in names:
        (folder / f"test_{name}.py").write_text(
            f"import pytest\n\n\ndef test_it():\n    {TESTS[name]}\n"
        )
    told = folder / "skipped.txt"
    environment = {
        **os.environ,
        "CI": ci,
        "TIDEWOLF_SKIPPED": str(told),
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
    }
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        f"--rootdir={folder}",
        *options,
        str(folder),
    ]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env=environment,
        cwd=folder,
    )
    return done, told.read_text()


def test_a_skip_that_is_not_listed_fails_the_session_and_is_named(tmp_path):
    """Of a test and of a whole module, as the suite runs in CI: on two processes."""
    (tmp_path / "test_whole.py").write_text(
        'import pytest\npytest.importorskip("no_such_module")\n'
    )
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
    costs = {
        line.split()[1]: float(line.split()[0])
        for line in done.stdout.splitlines()
        if line.endswith(".py") and " test_" in line
    }
    assert set(costs) == {"test_listed.py", "test_unlisted.py", "test_costly.py"}
    assert costs["test_costly.py"] > 0.0 == costs["test_listed.py"]
    assert "in all; the budget is 1,000" in done.stdout


@pytest.mark.parametrize(
    ("names", "ci"), [(("listed", "costly"), "true"), (("unlisted", "costly"), "")]
)
def test_listed_skips_and_skips_elsewhere_pass(tmp_path, names, ci):
    done, told = suite(tmp_path, *names, ci=ci)
    assert done.returncode == 0, done.stdout
    assert len(told.splitlines()) == 1


def ci_run(folder, make, **tools):
    """.ci/run with a `make` of this text and nothing installed but what a shell has, in a copy of
    the tree's top.
    """
    shutil.copytree(RUN.parent, folder / ".ci")
    there = folder / "bin"
    there.mkdir()
    for tool in ("bash", "dirname", "timeout", "tail", "sed", "rm"):
        (there / tool).symlink_to(shutil.which(tool))
    for name, text in {"make": make, "id": "echo 0", "postgres": "", **tools}.items():
        (there / name).write_text(f"#!{shutil.which('bash')}\n{text}\n")
        (there / name).chmod(0o755)
    environment = {"PATH": str(there), "TMPDIR": str(folder)}
    command = [str(there / "bash"), ".ci/run"]
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env=environment,
        cwd=folder,
    )


def test_the_last_lines_say_what_was_skipped_and_why(tmp_path):
    make = (
        '[ "$1" = test ] && [ "$CI" = true ] && echo "a.py (2): There is no Chromium here." > '
        '"$TIDEWOLF_SKIPPED"; true'
    )
    done = ci_run(tmp_path, make)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == "not installed: chromium: there is no apt-get here to install it with"
    assert lines[1].startswith("not installed: torch: pip failed: ")
    assert lines[2:] == ["skipped: a.py (2): There is no Chromium here."]
    assert not list(tmp_path.glob("tidewolf-skipped*"))


def test_a_failure_stays_one(tmp_path):
    done = ci_run(
        tmp_path, '[ "$1" != test ] || exit 2', **{"apt-get": "echo no such package; exit 100"}
    )
    assert done.returncode == 2
    assert "not installed: chromium: apt-get failed: no such package" in done.stdout
    assert (
        done.stdout.splitlines()[-1]
        == "The tests did not run to their end, so nothing is known of skips."
    )


def test_who_may_not_install_is_told_what_to_type(tmp_path):
    done = ci_run(
        tmp_path,
        '[ "$1" != test ] || echo -n > "$TIDEWOLF_SKIPPED"',
        **{"apt-get": "exit 0", "id": "echo 1000"},
    )
    assert done.returncode == 0, done.stderr
    assert (
        "not installed: chromium: only root may install it; type: sudo apt-get install chromium"
        in done.stdout
    )
    assert done.stdout.splitlines()[-1] == "Nothing was skipped."
