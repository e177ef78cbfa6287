"""`tidewolf doctor`: what is broken is a line that says what to do, never a traceback."""

from __future__ import annotations

import json
import os
import pty
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import tidewolf as tw
from tidewolf.cli import main
from tidewolf.doctor import compiled, examine, machine, places, selftest, solving
from tidewolf.doctor.checks import SELF_TEST, every_check
from tidewolf.doctor.declared import is_older, parse_requirement, read_declared
from tidewolf.doctor.findings import Asked

ROOT = Path(__file__).parent.parent
DOCTOR = "import sys; from tidewolf.cli import main; sys.exit(main(['doctor', *sys.argv[1:]]))"
STATUSES = {"ok", "warning", "fails", "absent"}


def found(check, **asked):
    """The findings of one check, made here."""
    return list(check(Asked(**asked), lambda text: None))


def statuses(findings):
    return [(finding.name, finding.status) for finding in findings]


def shell(*words, program=("-c", DOCTOR), **environment):
    return subprocess.run(
        [sys.executable, *program, *words],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ, "PYTHONPATH": str(Path(tw.__file__).parents[1]), **environment},
    )


# --- the command ----------------------------------------------------------------------------------


def test_where_no_library_is_installed_every_line_says_what_to_do(tmp_path):
    """-S: Python without any package, so numpy is missing as much as typer."""
    done = shell("--out", str(tmp_path), program=("-S", "-c", DOCTOR))
    assert done.returncode == 1, done.stderr
    assert done.stderr == ""
    assert "Traceback" not in done.stdout
    assert "\x1b" not in done.stdout
    lines = done.stdout.splitlines()
    (needed,) = [i for i, line in enumerate(lines) if line.startswith("  FAILS   needed: numpy, ")]
    assert lines[needed + 1].startswith('          Type: pip install --upgrade "numpy scipy ')
    assert '  -       torch: not installed: pip install "tidewolf[torch]"' in lines
    assert any(line.startswith("  FAILS   a run: ModuleNotFoundError") for line in lines)
    assert lines[-1].split()[1].startswith("FAIL")


def test_json_is_all_that_is_printed_and_quick_leaves_the_self_test_out(tmp_path):
    done = shell("--json", "--quick", "--out", str(tmp_path), program=("-S", "-c", DOCTOR))
    assert (done.returncode, done.stderr) == (1, "")
    told = json.loads(done.stdout)
    assert list(told) == ["tidewolf", "healthy", "seconds", "findings"]
    assert (told["tidewolf"], told["healthy"]) == (tw.__version__, False)
    assert {finding["status"] for finding in told["findings"]} <= STATUSES
    assert all(f["todo"].strip() for f in told["findings"] if f["status"] in ("warning", "fails"))
    assert "self-test" not in {finding["group"] for finding in told["findings"]}
    assert list(tmp_path.iterdir()) == []


def test_a_terminal_sees_what_is_looked_at():
    terminal, end = pty.openpty()
    here = str(Path(tw.__file__).parents[1])
    environment = {**os.environ, "PYTHONPATH": here, "TERM": "xterm", "NO_COLOR": ""}
    command = [sys.executable, "-S", "-c", DOCTOR, "--quick"]
    with subprocess.Popen(command, stdout=end, stderr=end, env=environment) as process:
        os.close(end)
        seen = b""
        try:
            while part := os.read(terminal, 1 << 16):
                seen += part
        except OSError:  # how a terminal says that nobody will write any more
            pass
        os.close(terminal)
    assert process.returncode == 1
    assert b"importing numpy ..." in seen
    assert b"\x1b[31mFAILS" in seen


@pytest.mark.parametrize("words", [("--frob",), ("--out",), ("more",)])
def test_bad_words_are_one_sentence_and_exit_code_2(words, capsys):
    assert main(["doctor", *words]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert len(printed.err.splitlines()) == 1
    assert printed.err.endswith(".\n")


@pytest.mark.soak
def test_all_is_well_here(tmp_path):
    done = shell("--out", str(tmp_path / "out"))
    assert done.returncode == 0, done.stdout
    assert "FAILS" not in done.stdout
    assert "resumed, bit for bit" in done.stdout
    assert list(tmp_path.iterdir()) == []


# --- a process that breaks ------------------------------------------------------------------------

BROKEN = {
    "piqp": "import os; os.abort()",
    "psycopg": "raise ImportError('libpq.so.5: cannot open shared object file')",
    "jax": "import time; time.sleep(600)",
    "torch": "print('noise'); import sys; sys.exit('no licence')",
}


def test_a_library_that_crashes_hangs_or_fails_costs_its_own_line(tmp_path, monkeypatch):
    for name, text in BROKEN.items():
        (tmp_path / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    checks = {
        "arrays/torch",
        "arrays/jax",
        "databases/PostgreSQL",
        "solvers/PIQP",
        "solvers/Clarabel",
        "places/folders",
    }
    told = []
    report = examine(only=checks, patience=6.0, out=str(tmp_path), follow=told.append)
    assert not report.healthy
    by_name = {finding.name: finding for finding in report.findings}
    assert by_name["torch"].said == "SystemExit: no licence"
    assert by_name["jax"].said == "jax: no word for 6 s"
    assert by_name["PostgreSQL"].said.startswith("ImportError: libpq.so.5")
    assert by_name["PIQP"].said.startswith("PIQP: the process was ended by SIGABRT")
    after = by_name["Clarabel"].status
    assert after in ("ok", "absent"), "who comes after a crash is examined all the same"
    assert by_name["results"].status == "ok"
    assert all(by_name[name].todo for name in ("torch", "jax", "PostgreSQL", "PIQP"))
    assert {"torch", "jax", "psycopg", "PIQP"} <= set(told)


# --- checks ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("check", [places.check_folders, places.check_sqlite])
def test_a_folder_that_cannot_be_written_fails(tmp_path, check):
    (tmp_path / "file").write_text("no folder")
    first, *_ = found(check, out=str(tmp_path / "file" / "out"))
    assert first.status == "fails"
    assert str(tmp_path / "file") in first.said
    assert first.todo
    first, *_ = found(check, out=str(tmp_path / "new" / "folder"))
    assert first.status == "ok"
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_temporary_folder_that_cannot_be_written_fails(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "file"))
    _, temporary = found(places.check_folders, out=str(tmp_path))
    assert temporary.status == "fails"
    assert "TMPDIR" in temporary.todo


def test_a_damaged_cache_is_a_warning_and_does_no_harm(tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    checks = {"kernels/numba", "kernels/kernel"}
    first = examine(only=checks).findings
    assert statuses(first) == [("numba", "ok"), ("cache", "ok"), ("kernel", "ok")]
    assert first[1].said == f"0 compiled kernels are kept in {tmp_path / 'tidewolf'}"
    kept = sorted((tmp_path / "tidewolf").glob("*.kernel"))
    assert kept
    for entry in kept:
        entry.write_bytes(entry.read_bytes()[:-1])
    again = examine(only=checks).findings
    assert statuses(again) == [("numba", "ok"), ("cache", "warning"), ("kernel", "ok")]
    assert again[1].said.endswith(f", {len(kept)} of them damaged")
    assert again[2].said.startswith("a kernel was compiled")


def test_a_cache_that_cannot_be_written_is_a_warning(tmp_path, monkeypatch):
    """Nowhere: neither where the variable says, nor beside the source, nor in the home."""
    package = tmp_path / "tidewolf"
    shutil.copytree(
        Path(tw.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__", "*.html")
    )
    blocked = tmp_path / "file"
    blocked.write_text("no folder")
    shutil.copy(blocked, package / "kernels" / "__pycache__")
    for name in ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, str(blocked))
    monkeypatch.syspath_prepend(tmp_path)
    _, cache = examine(only={"kernels/numba"}).findings
    assert (cache.name, cache.status) == ("cache", "warning")
    assert "NUMBA_CACHE_DIR" in cache.todo


def test_a_kernel_with_other_numbers_fails(monkeypatch):
    from tidewolf.kernels.dag import shortest_path

    def direct(weights, packed, path, flow):
        path[0] = len(weights) - 1
        return 1

    assert statuses(found(compiled.check_kernel)) == [("kernel", "ok")]
    monkeypatch.setitem(shortest_path.__dict__, "compiled", direct)
    assert statuses(found(compiled.check_kernel)) == [("kernel", "fails")]


def test_solvers_solve_and_a_wrong_answer_fails():
    for check in (solving.check_highs, solving.check_piqp, solving.check_clarabel):
        assert {finding.status for finding in found(check)} <= {"ok", "absent"}
    wrong = solving._answered("HiGHS", [1.0, 3.0], [3.0, 1.0], "scipy")
    assert (wrong.status, wrong.said) == ("fails", "answers [1.0, 3.0] where [3.0, 1.0] is right")
    assert solving._answered("HiGHS", None, [3.0, 1.0], "scipy").status == "fails"


@pytest.mark.parametrize(("given", "status"), [("1", "ok"), ("two", "warning")])
def test_threads_are_numbers(given, status, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", given)
    (finding,) = found(machine.check_threads)
    assert finding.status == status
    assert f"OMP_NUM_THREADS={given}" in finding.said


def test_projections_keep_their_law_and_one_that_stays_outside_is_seen(monkeypatch):
    assert statuses(found(selftest.check_projection)) == [("projections", "ok")]
    from tidewolf import projection

    def nothing(K, y, x0, *, tol):
        return projection.Projected(y, y, 0, 0.0)

    monkeypatch.setattr(projection, "afp", nothing)
    assert statuses(found(selftest.check_projection)) == [("projections", "fails")]


def test_a_killed_session_goes_on_and_other_numbers_are_seen(monkeypatch):
    (well,) = found(selftest.check_session)
    assert well.status == "ok", well.said
    assert well.said.startswith("killed after 2")
    monkeypatch.setattr(selftest, "_uninterrupted", lambda rounds: (b"other", b"bits"))
    (ill,) = found(selftest.check_session)
    assert ill.status == "fails"
    assert "other numbers" in ill.said


# --- what is declared -----------------------------------------------------------------------------


def test_every_requirement_is_looked_at():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = {**project["optional-dependencies"], "": project["dependencies"]}
    wanted = {(extra, parse_requirement(line).name) for extra in extras for line in extras[extra]}
    declared = read_declared()
    assert {(each.extra, each.name) for each in declared.requirements} == wanted
    assert declared.python == "3.11"
    checked = {name.partition("/")[2] for name in every_check(True) if "libraries" in name}
    assert checked == (set(extras) - {"", "dev", "docs", "ci"}) | {"needed"}
    assert not set(SELF_TEST) & set(every_check(True))


@pytest.mark.parametrize(
    ("line", "name", "lowest", "extra"),
    [
        ("numpy>=2.3", "numpy", "2.3", ""),
        ("psycopg[binary]>=3.2; extra == 'serve'", "psycopg", "3.2", "serve"),
        ("uvloop>=0.21; sys_platform != 'win32' and extra == \"serve\"", "uvloop", "0.21", "serve"),
        ("mypy==2.4.*; extra == 'dev'", "mypy", "2.4", "dev"),
        ("Jinja2", "jinja2", None, ""),
    ],
)
def test_requirements_are_read(line, name, lowest, extra):
    assert tuple(parse_requirement(line)) == (name, lowest, extra)


@pytest.mark.parametrize(
    ("version", "lowest", "older"),
    [
        ("2.3.0", "2.3", False),
        ("2.10", "2.9", False),
        ("2.2.9", "2.3", True),
        ("2.13.0+cpu", "2.5", False),
        ("2024.11.0", "2024.12", True),
        ("3.11.0rc1", "3.11", False),
    ],
)
def test_versions_are_compared_by_their_numbers(version, lowest, older):
    assert is_older(version, lowest) is older


def test_a_version_below_the_lowest_is_a_warning_that_says_both(tmp_path, monkeypatch):
    info = tmp_path / "networkx-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: networkx\nVersion: 1.0\n")
    (tmp_path / "networkx.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    (finding,) = examine(only={"libraries/graph"}).findings
    assert finding.status == "warning"
    assert finding.said == "networkx 1.0; 3.4 is the lowest tested"
    assert finding.todo == "Type: pip install --upgrade networkx"
