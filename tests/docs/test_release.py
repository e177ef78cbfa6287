"""The release agrees with itself: versions, archives, licences."""

import os
import re
import subprocess
import sys
import tomllib
import venv
from collections import defaultdict
from pathlib import Path

import pytest
import yaml
from hatchling.builders.sdist import SdistBuilder
from hatchling.builders.wheel import WheelBuilder
from tools import dist

import tidewolf as tw

ROOT = Path(__file__).parents[2]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PROJECT, MAKEFILE = PYPROJECT["project"], (ROOT / "Makefile").read_text()
TARGETS = set(re.findall(r"^([\w-]+):", MAKEFILE, re.MULTILINE))


# --- the version ----------------------------------------------------------------------------------


def test_changelog_citation_and_package_have_one_version_and_one_date():
    headings = re.findall(r"^## (.+)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    released = [heading for heading in headings if not heading.endswith(" - unreleased")]
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert released[:1] in ([], [f"{tw.__version__} - {cited['date-released']}"])
    assert (cited["version"], cited["license"]) == (tw.__version__, PROJECT["license"])
    supported = ".".join(tw.__version__.split(".")[:2])
    assert f"| {supported} | yes |" in (ROOT / "SECURITY.md").read_text()
    assert f"version = {{{tw.__version__}}}" in (ROOT / "README.md").read_text()
    assert all(address.startswith("https://") for address in PROJECT["urls"].values())


# --- make -----------------------------------------------------------------------------------------


def test_every_target_is_explained_and_phony():
    told = set(re.findall(r"^# make ([\w-]+)", MAKEFILE, re.MULTILINE))
    (phony,) = re.findall(r"^\.PHONY: (.+)$", MAKEFILE, re.MULTILINE)
    assert (set(phony.split()), told) == (TARGETS, TARGETS - {"clean"})


# --- archives -------------------------------------------------------------------------------------


def inside(builder):
    return {file.distribution_path for file in builder.recurse_included_files()}


def test_the_wheel_holds_the_package_and_nothing_else():
    package = ROOT / "src" / "tidewolf"
    files = (each for each in package.rglob("*") if each.is_file())
    files = (each for each in files if "__pycache__" not in each.parts)
    there = {str(each.relative_to(package.parent)) for each in files}
    found = inside(WheelBuilder(str(ROOT)))
    assert found == there
    kinds = {Path(name).suffix for name in found}
    assert kinds <= {".py", ".typed", ".css", ".js", ".j2", ".gz", ".csv", ".json"}
    assert "tidewolf/py.typed" in found


def test_the_sdist_holds_what_the_tests_need():
    found = inside(SdistBuilder(str(ROOT)))
    assert {"Makefile", ".ci/run", ".github/workflows/ci.yml", "CITATION.cff"} <= found
    for folder in ("tests", "tools", "docs", "benchmarks", "examples", "mutants", "deploy"):
        assert any(name.startswith(f"{folder}/") for name in found), folder
    assert "tests/fixtures/format3/session.db" in found
    assert not [name for name in found if re.search(r"^out/|^dist/|\.venv|__pycache__", name)]


@pytest.mark.soak
def test_wheel_and_sdist_are_the_same_wherever_and_whenever_they_are_built(tmp_path):
    command = [sys.executable, "-m", "tools.dist", "--out", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = (tmp_path / "SHA256SUMS").read_text().splitlines()
    sums = dict(reversed(line.split()) for line in lines)
    assert {name: dist.digest(tmp_path / name) for name in sums} == sums
    assert len(sums) == 2


@pytest.mark.soak
def test_the_quickstart_runs_after_pip_install_in_an_empty_environment(tmp_path):
    (wheel,) = WheelBuilder(str(ROOT)).build(directory=str(tmp_path), versions=["standard"])
    quickstart = (ROOT / "README.md").read_text().partition("## Quickstart")[2]
    code, shown = re.findall(r"```(?:python|text)\n(.*?)```", quickstart, re.DOTALL)[:2]
    venv.create(tmp_path / "empty", with_pip=True)
    python = str(tmp_path / "empty" / "bin" / "python")
    subprocess.run([python, "-m", "pip", "install", "--quiet", wheel], check=True)
    plain = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    done = subprocess.run(
        [python, "-c", code], cwd=tmp_path, env=plain, capture_output=True, text=True, check=True
    )
    for found, line in zip(done.stdout.splitlines(), shown.splitlines(), strict=True):
        assert found.split()[:2] == line.split()[:2]
        losses = [float(re.search(r"loss (\S+)", each)[1]) for each in (found, line)]
        assert losses[0] == pytest.approx(losses[1], rel=2e-3)


# --- licences -------------------------------------------------------------------------------------

ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in (ROOT / "docs" / "licences.md").read_text().splitlines()
    if line.startswith("| ") and not line.startswith("| library")
]


def test_every_library_that_is_asked_for_has_its_licence_listed():
    groups = {"always": PROJECT["dependencies"]}
    groups |= {f"`{extra}`": lines for extra, lines in PROJECT["optional-dependencies"].items()}
    asked = defaultdict(list)
    for extra, lines in groups.items():
        for line in lines:
            asked[re.match(r"[\w.-]+", line)[0].lower()].append(extra)
    assert {name: by for name, by, _, _ in ROWS} == {n: ", ".join(by) for n, by in asked.items()}
    assert all(licence for _, _, licence, _ in ROWS)


def test_workflows_name_actions_by_commit():
    """A tag may be moved to other code, a commit may not."""
    text = (ROOT / ".github" / "workflows" / "ci.yml").read_text()
    uses = re.findall(r"uses: (\S+)@(\S+)", text)
    assert uses
    assert [action for action, version in uses if not re.fullmatch(r"[0-9a-f]{40}", version)] == []
