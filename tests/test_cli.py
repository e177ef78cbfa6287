"""The `tidewolf` command: what it prints, what it writes, and how it refuses."""

import contextlib
import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest

from covering import few
from refused import refused_command
from tidewolf import baselines, cli, functions, learners, problems, sets
from tidewolf.experiments.experiment import BUILTIN_LEARNERS

PROGRAM = "import sys; from tidewolf.cli import main; sys.exit(main())"
WITHOUT_PAGES = f"import tidewolf.report; tidewolf.report.write = lambda *_, **__: 0; {PROGRAM}"


@pytest.fixture
def short(tmp_path):
    return ["run", "routing", "--rounds", "40", "--out", str(tmp_path / "new" / "folder")]


def test_a_run_prints_tables_of_80_columns_and_writes_a_page(short, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert cli.main(short) == 0
    printed = capsys.readouterr()
    lines = printed.out.splitlines()
    assert all(len(line.split()) >= 6 for line in lines if line.startswith("SinhaVaze "))
    assert "\u2026" not in printed.out
    assert max(map(len, lines[:-2])) <= 80  # paths of files are not cut
    folder = tmp_path / "new" / "folder"
    assert printed.err == ""
    verdict, _, rest = printed.out.partition("\n\n")
    assert verdict.startswith("Ensemble cost ")
    assert rest.startswith("routing: 40 rounds, seed 0\n")
    words = (*BUILTIN_LEARNERS, "loss", "regret", "violation", "seconds")
    assert all(word in printed.out for word in words)
    assert "left out" not in printed.out
    assert printed.out.endswith(f"report: {folder / 'report.html'}\n")
    assert (folder / "report.html").read_text().startswith("<!doctype html>")
    summary = json.loads((folder / "summary.json").read_text())
    assert summary["format"] == 3
    assert [each["learner"] for each in summary["runs"]] == list(BUILTIN_LEARNERS)


def test_a_usual_learner_that_refuses_the_problem_is_left_out_and_that_is_said(tmp_path, capsys):
    """LogWealth is not defined outside the set, where DriftPlusPenalty looks."""
    asked = ["run", "portfolio", "--rounds", "20", "--out", str(tmp_path)]
    reason, page = "DriftPlusPenalty evaluates functions outside the set", tmp_path / "report.html"
    assert cli.main(asked) == 0
    assert f"DriftPlusPenalty: left out. {reason}" in " ".join(capsys.readouterr().out.split())
    assert "left out. DriftPlusPenalty evaluates" in page.read_text()
    page.unlink()
    assert cli.main(["resume", str(tmp_path), "--json"]) == 0
    assert "left out. DriftPlusPenalty evaluates" in page.read_text()
    told, refusing = json.loads(capsys.readouterr().out), ["Resolve", "DriftPlusPenalty"]
    played = [name for name in BUILTIN_LEARNERS if name not in refusing]
    assert [run["learner"] for run in told["runs"]] == played
    assert list(told["left_out"]) == refusing
    # who is named and refuses is an error
    assert cli.main([*asked, "--force", "--learner", "DriftPlusPenalty", "--quiet"]) == 2
    assert capsys.readouterr().err.startswith(reason)


@pytest.mark.usefixtures("no_pages")
def test_json_is_all_that_is_printed(short, capsys):
    assert cli.main([*short, "--json", "--learner", "LyapunovDescent", "--seed", "5"]) == 0
    printed = capsys.readouterr()
    (record,) = json.loads(printed.out)["runs"]
    assert printed.err == ""
    assert (record["experiment"], record["rounds"]) == ("routing", 40)
    assert record["regret"]["lower"] <= record["regret"]["upper"]
    assert record["calls_per_round"] == record["oracle_calls"] / 40
    assert set(record["bound"]) == {"regret", "violation"}
    assert cli.main([*short, "--quiet", "--learner", "SinhaVaze", "--force"]) == 0
    assert capsys.readouterr() == ("", "")


def seen_on_a_terminal(arguments, program=PROGRAM, **environment):
    """What the command writes to a stderr that is a terminal; stdout is a pipe and gets no escape
    codes. As for an installed command (-P), Python itself does not look in the current directory.
    """
    terminal, end = pty.openpty()
    shown = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "100", **environment}
    settings = {"stdout": subprocess.PIPE, "stderr": end, "env": shown}
    with subprocess.Popen([sys.executable, "-P", "-c", program, *arguments], **settings) as process:
        os.close(end)
        seen = b""
        with contextlib.suppress(OSError):  # how a terminal says that nobody will write any more
            while part := os.read(terminal, 1 << 16):
                seen += part
        os.close(terminal)
        assert b"\x1b" not in process.stdout.read()
    assert process.returncode == 0
    return seen.decode()


COLORS = r"\x1b\[(\d+;)*(3[0-8]|9[0-7])"


def test_a_terminal_sees_progress(short):
    words = [*short, "--learner", "LyapunovDescent", "--rounds", "5"]
    seen = seen_on_a_terminal(words, WITHOUT_PAGES)
    assert re.search(COLORS, seen)
    words = ("LyapunovDescent", "rounds/s", "calls per round", "violation")
    assert all(word in seen for word in words)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["run"], "EXPERIMENT"),
        (["rn"], "run"),
        (["run", "routng"], "Did you mean routing?"),
        (["run", "routing", "--learner", "lyapunovdescend"], "Did you mean LyapunovDescent?"),
        (["run", "routing", "--learner", "zzz"], "SinhaVaze"),
        (["run", "routing", "--rounds", "0"], "at least 1"),
        (["run", "routing", "--rounds", "many"], "--rounds"),
        (["run", "routing", "--seed", "-1"], "seed"),
        (["run", "routing", "--frob"], "--frob"),
        (["run", "routing", "twice"], "twice"),
        (["run", "routing", "--rounds", "5", "--out", os.devnull], os.devnull),
        (["run", "routing", "--caution", "0"], "must be greater than 0"),
        (["run", "routing", "--caution", "3", "--learner", "Resolve"], "caution"),
        (["sweep", "routing", "--seeds", "x"], "--seeds"),
        (["sweep", "routing", "--knob", "caution"], "caution=1,10"),
        (["sweep", "routing", "--jobs", "0"], "jobs"),
        (["sweep", "routing", "--jobs", "2", "--dask", "tcp://127.0.0.1:9"], "not both"),
        (["compare", "routng"], "Did you mean routing?"),
        (["compare", "routing", "--cautions", "1,two"], "--cautions takes numbers"),
        (["compare", "routing", "--headrooms", "-1"], "A headroom must be at least 0"),
    ],
)
def test_bad_input_is_one_sentence_and_exit_code_2(arguments, said, capsys, here):
    assert said in refused_command(capsys, *arguments)
    assert list(here.iterdir()) == []


MINE = """
from dataclasses import dataclass
import numpy as np
import tidewolf as tw
import tidewolf.core.errors

@dataclass(frozen=True, eq=False, repr=False)
class Cross(tw.sets.ConvexSet):
    n: int
    radius = 1.0
    shape = property(lambda self: (self.n,))
    center = property(lambda self: np.zeros(self.n))

    def lmo(self, direction):
        steepest = np.argmax(np.abs(direction))
        corner = np.zeros(self.n, dtype=np.result_type(direction, np.float32))
        corner[steepest] = -1.0 if direction[steepest] > 0 else 1.0
        return corner

    def infeasibility(self, x):
        return max(0.0, np.abs(x).sum() - 1.0)

    @classmethod
    def examples(cls):
        return [cls(1), cls(4)]

class Wrong(Cross):
    def lmo(self, direction):
        return super().lmo(direction) if self.n == 1 else -super().lmo(direction)

class Unmade(Cross):
    @classmethod
    def examples(cls):
        return [cls()]

class Torso(tw.sets.ConvexSet):
    def lmo(self, direction):
        return direction

class Choosy(tw.LyapunovDescent):
    @classmethod
    def examples(cls, K, horizon):
        if not isinstance(K, tw.sets.Simplex):
            raise tw.core.errors.NotSupported("Choosy plays on simplices only.")
        return [cls(K, horizon=horizon)]

class Refusing(Choosy):
    @classmethod
    def examples(cls, K, horizon):
        return super().examples(tw.sets.L2Ball(2), horizon)

instance = Cross(3)
batch = tw.functions.Linear([[1.0, 2.0]])
number = 3
"""


@pytest.fixture
def mine(here, monkeypatch):
    """A module of the user's, in the current directory, under a name that is new every time."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    name = f"mine_{abs(hash(str(here)))}"
    (here / f"{name}.py").write_text(MINE)
    yield name
    sys.modules.pop(name, None)


@pytest.mark.parametrize(
    ("member", "shown"),
    [
        ("Cross", ["Cross(n=1) passes all 21 checks.", "Cross(n=4) passes all 21 checks."]),
        ("instance", ["Cross(n=3) passes all 21 checks."]),
        ("batch", ["Linear(C=<1x2 float64>) passes all 14 checks."]),
        ("Choosy", ["Choosy(K=Simplex(n=3, total=1, at_most=False), horizon=60, "]),
    ],
)
def test_what_keeps_the_laws_is_said_to_in_a_line_each(mine, member, shown, capsys):
    assert cli.main(["check", f"{mine}:{member}"]) == 0
    printed = capsys.readouterr()
    assert (printed.err, len(printed.out.splitlines())) == ("", len(shown))
    lines = zip(printed.out.splitlines(), shown, strict=True)
    assert all(line.startswith(said) and line.endswith(" checks.") for line, said in lines)


def test_a_broken_law_is_named_with_its_example(mine, capsys):
    assert cli.main(["check", f"{mine}:Wrong"]) == 2
    printed = capsys.readouterr()
    first, second = printed.out.splitlines()
    assert (first, second[-22:]) == ("Wrong(n=1) passes all 21 checks.", " fails after 4 checks.")
    (sentence,) = printed.err.splitlines()
    law = "no member is better than the oracle's answer: in direction"
    assert sentence.startswith(f"Example 2 of 2: Wrong(n=4) fails the check that {law}")
    assert cli.main(["check", f"{mine}:instance", "--checks"]) == 0
    assert "  center is a member" in capsys.readouterr().out.splitlines()
    assert cli.main(["check", f"{mine}:Wrong", "--quiet"]) == 2
    assert capsys.readouterr() == ("", printed.err)


def test_an_outcome_as_json(mine, capsys):
    assert cli.main(["check", f"{mine}:Wrong", "--json", "--seed", "3"]) == 2
    outcome = json.loads(capsys.readouterr().out)
    good, bad = outcome.pop("examples")
    assert outcome == {"name": f"{mine}:Wrong", "kind": "set", "seed": 3}
    assert (good["example"], len(good["passed"]), good["broken"]) == ("Wrong(n=1)", 21, None)
    assert bad["passed"] == good["passed"][:4]
    assert bad["broken"].startswith("Wrong(n=4) fails the check")


@pytest.mark.parametrize(
    ("member", "said"),
    [
        ("", "module:Name, such as mymodule:MySet"),
        (":Crss", "Did you mean Cross?"),
        (":number", "(Learner), not"),
        (":Torso", "it lacks center, examples, infeasibility, radius, shape."),
        (":Unmade", "The examples of Unmade cannot be made: TypeError: "),
        (":Refusing", "The examples of Refusing cannot be made: Choosy plays on simplices only."),
        (".py:Crss", "Did you mean Cross?"),
        ("_not:Cross", "No module named 'mine_"),
        (":Cross --seed -1", "The seed must be at least 0"),
    ],
)
def test_what_cannot_be_checked_is_refused_in_a_sentence(mine, member, said, capsys):
    assert said in refused_command(capsys, "check", *f"{mine}{member}".split())


NO_MODULES = {"def f(:": "SyntaxError: ", "raise SystemExit(3)": "SystemExit: 3."}
NO_MODULES["import no_such_package"] = "ModuleNotFoundError: No module named 'no_such_package'."


@pytest.mark.parametrize(("text", "said"), NO_MODULES.items())
def test_a_module_that_cannot_be_imported_is_refused_with_the_reason(mine, text, said, capsys):
    Path(f"{mine}.py").write_text(text)
    sentence = refused_command(capsys, "check", f"{mine}:Cross")
    assert sentence.startswith(f"The module {mine} cannot be imported: {said}")


def test_the_current_directory_is_looked_in_and_no_color_is_honoured(mine):
    seen = seen_on_a_terminal(["check", f"{mine}:Cross"], NO_COLOR="1")
    assert "example 2 of 2" in seen
    assert "\x1b[" in seen
    assert not re.search(COLORS, seen)


COMMANDS = ["run", "resume", "report", "new", "compare", "list", "serve", "backup", "restore"]


@pytest.mark.parametrize("command", [*COMMANDS, "doctor"])
def test_every_command_shows_examples(command, capsys):
    assert cli.main([command, "--help"]) == 0
    assert f"Examples:\n    tidewolf {command}" in capsys.readouterr().out


def test_sweep_says_that_dask_unpickles(capsys):
    assert cli.main(["sweep", "--help"]) == 0
    assert "trust it, for its protocol unpickles" in " ".join(capsys.readouterr().out.split())


OFFERED = {"re": ["resume", "report", "restore"], "run rou": ["routing"]}
OFFERED["run routing --learner Lya"] = ["LyapunovDescent", "LyapunovFrankWolfe"]


@pytest.mark.parametrize(("line", "offered"), OFFERED.items())
def test_the_shell_completes_commands_experiments_and_learners(line, offered, monkeypatch, capsys):
    words = f"tidewolf {line}"
    monkeypatch.setenv("_TIDEWOLF_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(len(words.split()) - 1))
    with pytest.raises(SystemExit):
        cli.main([])
    assert sorted(capsys.readouterr().out.split()) == sorted(offered)


def test_the_list_names_everything_there_is(capsys):
    assert cli.main(["list"]) == 0
    words = capsys.readouterr().out.split()
    names = {each.__name__ for each in (*sets.every(), *functions.every())}
    names |= {*problems.every(), *learners.every(), *baselines.every()}
    assert names <= set(words)


def test_the_list_explains_the_settings_of_one(capsys):
    assert cli.main(["list", "Simplex"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("Simplex\n  Nonnegative vectors of n entries")
    assert "\nn : a whole number\n    The number of entries of a point." in said
    assert "\ntotal : a number, 1.0 by default\n    The sum of the entries." in said
    for name in ("routing", "LyapunovDescent", "SinhaVaze", "Product", "FlowPolytope", "Affine"):
        assert cli.main(["list", name]) == 0
        assert capsys.readouterr().out.startswith(f"{name}\n")
    assert "Did you mean Simplex?" in refused_command(capsys, "list", "Simplx")


@pytest.mark.parametrize("package", ["pyarrow", "typer", "rich", "matplotlib"])
def test_without_the_extra_one_sentence_names_it(package, short, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, package, None)
    assert cli.main(short) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert f"needs {package}," in printed.err
    assert '"tidewolf[app]"' in printed.err


# --- the module -----------------------------------------------------------------------------------


def shell(folder, *program):
    command = [sys.executable, *program]
    given = {"cwd": folder, "capture_output": True, "text": True, "timeout": 120}
    done = subprocess.run(command, **given, check=False)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize(
    "words", few(1, [("run", "tidewolf.toml"), (), ("--version",), ("list",), ("no-such-command",)])
)
def test_the_module_is_the_command(tmp_path, words):
    """Whatever the folder it is typed in holds."""
    (tmp_path / "tidewolf.toml").write_text("problem = 3\n")
    (tmp_path / "tidewolf").mkdir()
    code, out, error = shell(tmp_path, "-m", "tidewolf", *words)
    assert (code, out, error) == shell(tmp_path, "-c", PROGRAM, *words)
    assert code == (2 if error else 0)
    assert "Traceback" not in error
    assert "__main__" not in out + error


def test_importing_the_module_runs_nothing(tmp_path):
    assert shell(tmp_path, "-c", "import tidewolf.__main__") == (0, "", "")
