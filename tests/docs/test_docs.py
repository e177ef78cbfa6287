"""The documentation is true: its Python runs and prints what is shown, and the files and tests it
names exist.
"""

import ast
import contextlib
import inspect
import io
import re
import sys
from pathlib import Path

import pytest

from tidewolf import cli, sets
from tidewolf.core.values import Composed

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs").rglob("*.md"))
# Rounding differs between processors, and decides ties, so that runs take another path.
NEARLY = 0.1


def read_alike(shown, printed):
    """Whether both have the same words in the same lines, and their numbers differ by no more than
    a share of theirs, or of the largest one with digits after the point in its line.
    """
    lines, others = shown.splitlines(), printed.splitlines()
    return len(lines) == len(others) and all(map(alike, lines, others))


def alike(shown, printed):
    number = r"-?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?"
    if re.sub(number, "#", shown).split() != re.sub(number, "#", printed).split():
        return False
    texts, others = re.findall(number, shown), re.findall(number, printed)
    values, found = ([float(text.replace(",", "")) for text in row] for row in (texts, others))
    size = max((abs(a) for a, text in zip(values, texts, strict=True) if "." in text), default=0.0)
    pairs = zip(values, found, strict=True)
    return all(abs(a - b) <= NEARLY * max(size, abs(a)) for a, b in pairs)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_blocks_run_and_print_what_is_shown(page):
    names = {}
    blocks = r"```python\n(.*?)```\n(\n```text\n(.*?)```)?"
    for code, _, shown in re.findall(blocks, page.read_text(), re.DOTALL):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, page.name, "exec", dont_inherit=True), names)
        assert read_alike(shown, printed.getvalue()), printed.getvalue()


def test_numbers_of_another_size_and_other_words_are_notalike():
    shown = "loss 5.6, violation 27.3, 6 calls\n 32 %  named\n"
    assert read_alike(shown, "loss 6.8, violation 27.4, 6 calls\n 31 %  named\n")
    for wrong in (
        "loss 5.6, violation 27.3, 9 calls\n 32 %  named\n",
        "loss 5.6, violation 24.3, 6 calls\n 32 %  named\n",
        "loss 5.6, violation 27.3, 6 calls\n 32 %  other\n",
        "loss 5.6, violation 27.3, 6 calls\n",
    ):
        assert not read_alike(shown, wrong), wrong


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_files_and_tests_that_are_named_exist(page):
    named = r"`((?:tests|benchmarks|docs|src)/[\w/-]+\.(?:py|md))(?:::(\w+))?`"
    for path, test in re.findall(named, page.read_text()):
        assert (ROOT / path).exists(), path
        assert not test or f"def {test}(" in (ROOT / path).read_text(), f"{path}::{test}"
    folders = "core|sets|functions|projection|steps|learners|baselines|evaluation"
    for module in re.findall(rf"`((?:{folders})/[\w/]+\.py)`", page.read_text()):
        assert (ROOT / "src" / "tidewolf" / module).exists(), module


def test_the_shell_says_of_your_own_set_what_is_shown(tmp_path, monkeypatch, capsys):
    text = (ROOT / "docs" / "how-to" / "own-set.md").read_text()
    ((name, shown),) = re.findall(r"```console\n\$ tidewolf check (\S+)\n(.*?)```", text, re.DOTALL)
    (code,) = re.findall(r"```python\n([^`]*class Windows.*?)\n\n\nfor K in", text, re.DOTALL)
    imports = re.findall(r"^(?:from|import) .*$", text[: text.index("\n@")], re.MULTILINE)
    assert len(imports) == 3
    (tmp_path / "mymodule.py").write_text("\n".join((*imports, code, "")))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    assert cli.main(["check", name]) == 0
    assert capsys.readouterr().out == shown
    sys.modules.pop("mymodule")


def test_a_learner_of_ones_own_is_short_and_imports_two_modules():
    text = (ROOT / "docs" / "how-to" / "own-learner.md").read_text()
    (code,) = re.findall(r"```python\n(.*?)\n\n\ntw\.testing", text, flags=re.DOTALL)
    assert len(code.splitlines()) <= 90
    modules = re.findall(r"^(?:from|import) (tidewolf\S*)", code, flags=re.MULTILINE)
    assert modules == ["tidewolf", "tidewolf.methods"]


# --- the table of sets ----------------------------------------------------------------------------

CAPABILITIES = {"project": sets.Projectable, "description": sets.Polyhedral}
CAPABILITIES["relax"] = sets.Relaxable
LINES = (ROOT / "docs" / "reference" / "sets.md").read_text().splitlines()
LINES = [line.strip("|").split("|") for line in LINES if line.startswith("| `")]
LINES = [[cell.strip() for cell in line] for line in LINES]


def test_every_set_has_one_line_and_no_other_has_one():
    named = [re.findall(r"\w+", line[0])[0] for line in LINES]
    assert sorted(named) == sorted(kind.__name__ for kind in sets.every())


@pytest.mark.parametrize("line", LINES, ids=lambda line: re.findall(r"\w+", line[0])[0])
def test_a_line_says_what_the_class_says(line):
    call, *said, geometry, brings = line
    assert all(said)
    found = re.fullmatch(r"`(\w+)(?:\.(\w+))?\((.*)\)`", call)
    assert found is not None
    kind = getattr(sets, found[1])
    if issubclass(kind, Composed):
        assert " do" in brings
        assert geometry.startswith("as ")
        assert "Geometry as exact as that of" in kind.__doc__
        return
    settings = inspect.signature(getattr(kind, found[2]) if found[2] else kind).parameters
    for given in found[3].split(", "):
        setting, _, default = given.partition("=")
        assert setting in settings, f"{found[1]} has no setting {setting}"
        assert not default or settings[setting].default == ast.literal_eval(default), (
            f"{setting} of {found[1]} is not {default}"
        )
    kept = {name for name, base in CAPABILITIES.items() if issubclass(kind, base)}
    assert set(brings.split(", ")) == kept
    assert geometry.startswith("exact") == ("Geometry exact" in kind.__doc__)
