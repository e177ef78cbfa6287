"""`python -m tidewolf` is the command `tidewolf`, whatever the folder it is typed in holds."""

import subprocess
import sys

import pytest

from covering import few

SCRIPT = ("-c", "import sys; from tidewolf.cli import main; sys.exit(main())")


def shell(folder, program, *words):
    done = subprocess.run(
        [sys.executable, *program, *words],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize(
    "words", few(1, [("run", "tidewolf.toml"), (), ("--version",), ("list",), ("no-such-command",)])
)
def test_the_module_is_the_command(tmp_path, words):
    (tmp_path / "tidewolf.toml").write_text("problem = 3\n")
    (tmp_path / "tidewolf").mkdir()
    code, out, error = shell(tmp_path, ("-m", "tidewolf"), *words)
    assert (code, out, error) == shell(tmp_path, SCRIPT, *words)
    assert code == (2 if error else 0)
    assert "Traceback" not in error
    assert "__main__" not in out + error


def test_importing_the_module_runs_nothing(tmp_path):
    assert shell(tmp_path, ("-c", "import tidewolf.__main__")) == (0, "", "")
