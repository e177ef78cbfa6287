"""`tidewolf doctor`: each line says what is wrong; the exit code is 1 if it is needed."""

import json
import os
import subprocess
import sys
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from types import SimpleNamespace

import pytest

import tidewolf as tw
from tidewolf import cli, doctor
from tidewolf.core.checkpoint import writer

DECLARED = ["numpy>=2.3", 'psycopg[binary]>=3.2; sys_platform != "win32" and extra == "serve"']


@pytest.fixture
def installed(monkeypatch):
    """Declare two libraries, and let each test choose the versions that are installed."""
    versions = {"numpy": "2.3.0", "psycopg": "3.10"}

    def version(name):
        if name not in versions:
            raise PackageNotFoundError(name)
        return versions[name]

    monkeypatch.setattr(doctor, "requires", lambda name: DECLARED)
    monkeypatch.setattr(doctor, "version", version)
    return versions


def healthy_run(holds=True):
    return SimpleNamespace(certificate=SimpleNamespace(holds=holds), regret=(-1.0, 1.0))


def lines(capsys, monkeypatch, holds=True):
    """The exit code and the findings as JSON, with a self-test that is replaced."""
    monkeypatch.setattr("tidewolf.evaluation.run.run", lambda *_: healthy_run(holds))
    monkeypatch.setattr(tw, "run", lambda *_: healthy_run(holds), raising=False)
    code = cli.main(["doctor", "--json"])
    record = json.loads(capsys.readouterr().out)
    assert record["tidewolf"] == tw.__version__
    assert record["healthy"] is (code == 0)
    return code, {finding["name"]: finding for finding in record["findings"]}


def test_the_installation_here_is_healthy_in_80_columns(capsys, here):
    """With the real self-test; nothing is left behind."""
    assert cli.main(["doctor"]) == 0
    shown = capsys.readouterr().out
    assert max(map(len, shown.splitlines())) <= 80
    text = " ".join(shown.split())
    for part in ("cpu", "blas", "numpy", "numba"):
        assert " ".join(writer()[part].split()) in text
    assert "certificate holds" in text
    assert list(here.iterdir()) == []


def test_without_any_library_it_names_what_is_missing(tmp_path):
    """-S: Python without any package."""
    code = "import sys; from tidewolf.cli import main; sys.exit(main(['doctor']))"
    home = {**os.environ, "PYTHONPATH": str(Path(tw.__file__).parents[1])}
    given = {"capture_output": True, "text": True, "timeout": 120, "cwd": tmp_path, "env": home}
    done = subprocess.run([sys.executable, "-S", "-c", code], **given, check=False)
    assert (done.returncode, done.stderr) == (1, "")
    assert "No module named 'numpy'" in " ".join(done.stdout.split())


@pytest.mark.parametrize(
    ("missing", "extra", "code", "status"),
    [(None, "needed", 0, "ok"), ("numpy", "needed", 1, "fails"), ("psycopg", "serve", 0, "absent")],
)
def test_a_missing_library_is_named(missing, extra, code, status, installed, capsys, monkeypatch):
    installed.pop(missing, None)
    found_code, found = lines(capsys, monkeypatch)
    assert (found_code, found[extra]["status"]) == (code, status)
    assert (missing or "psycopg 3.10") in found[extra if missing else "serve"]["text"]


NEW = ("2.3", "2.10.1", "2.3.0rc1", "2.13.0+cpu")


@pytest.mark.parametrize(("version", "status"), [*((new, "ok") for new in NEW), ("2", "warning")])
def test_an_old_version_is_named(version, status, installed, capsys, monkeypatch):
    installed["numpy"] = version
    code, found = lines(capsys, monkeypatch)
    assert (code, found["needed"]["status"]) == (0, status)
    assert f"numpy {version}" in found["needed"]["text"]


@pytest.mark.parametrize("holds", [False, None])
def test_a_self_test_that_fails_gives_exit_code_1(holds, capsys, monkeypatch):
    code, found = lines(capsys, monkeypatch, holds)
    assert (code, found["self-test"]["status"]) == (1, "fails")


def test_an_error_in_the_self_test_is_a_line(capsys, monkeypatch):
    def broken(*_, **__):
        raise ImportError("libfoo.so: cannot open shared object file")

    monkeypatch.setattr("tidewolf.problems.routing", broken)
    code, found = lines(capsys, monkeypatch)
    assert (code, found["self-test"]["status"]) == (1, "fails")
    assert "libfoo.so" in found["self-test"]["text"]


def test_folders_that_cannot_be_written_are_named(capsys, monkeypatch, here):
    assert lines(capsys, monkeypatch)[1]["results"]["status"] == "ok"
    (here / "out").write_text("no folder")
    monkeypatch.setattr("tidewolf.core.jit_cache.folder_of", lambda source: None)
    code, found = lines(capsys, monkeypatch)
    assert (code, found["results"]["status"], found["kernels"]["status"]) == (0,) + 2 * ("warning",)
    assert str(here / "out") in found["results"]["text"]
    assert "NUMBA_CACHE_DIR" in found["kernels"]["text"]
