"""The gallery: every story of examples/ runs at small size, draws pictures that say what they show,
and asserts its certificate; every notebook runs from top to bottom, and is stored without outputs.

A story's sizes are lines such as `ROUNDS = 2_000  # 60 in the tests`: the second number replaces
the first here. At full size all of them are played by `make docs`.
"""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path
from types import ModuleType

import matplotlib
import matplotlib.pyplot as plt
import nbformat
import pytest
from nbclient import NotebookClient

EXAMPLES = Path(__file__).parent.parent / "examples"
FILES = sorted(EXAMPLES.glob("*.py"))
NOTEBOOKS = sorted(EXAMPLES.glob("notebooks/*.ipynb"))
STORIES = {"late_feedback", "max_cut"}
"""What the gallery tells."""
SIZE = re.compile(r"^(\w+) = ([\d_]+)  # ([\d_]+) in the tests$", re.MULTILINE)
story = pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)


def small(source: str) -> str:
    """The story at the size of the tests."""
    return SIZE.sub(r"\1 = \3", source)


def asserted(tree: ast.Module) -> list[str]:
    """What a story asserts."""
    return [ast.unparse(node.test) for node in ast.walk(tree) if isinstance(node, ast.Assert)]


@pytest.fixture
def pictures(monkeypatch):
    """Whatever is drawn, without a window; closed afterwards."""
    monkeypatch.setattr(plt, "show", lambda: None)
    before = matplotlib.get_backend()
    plt.switch_backend("Agg")
    yield lambda: [plt.figure(number) for number in plt.get_fignums()]
    plt.close("all")
    plt.switch_backend(before)


def titles(figure):
    """What a picture says of itself."""
    return [
        text for text in (figure.get_suptitle(), *(ax.get_title() for ax in figure.axes)) if text
    ]


def test_the_gallery_tells_every_story():
    assert {path.stem for path in FILES} >= STORIES


@story
def test_a_story_runs_at_small_size_and_draws(path, pictures, monkeypatch, tmp_path):
    """Warnings are errors, as everywhere in the suite; nothing is written where it runs."""
    module = ModuleType(f"story_{path.stem}")
    module.__file__ = str(path)
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.chdir(tmp_path)
    exec(compile(small(path.read_text()), str(path), "exec"), module.__dict__)
    drawn = pictures()
    assert drawn
    for figure in drawn:
        figure.canvas.draw()
        assert titles(figure)
        assert any(ax.get_xlabel() or ax.get_ylabel() for ax in figure.axes)
    assert not list(tmp_path.iterdir())


@story
def test_a_story_says_what_it_is_and_asserts_its_certificate(path):
    source = path.read_text()
    tree = ast.parse(source)
    title, line, *_ = (ast.get_docstring(tree) or "").splitlines()
    assert set(line) == {"="}
    assert len(line) == len(title)
    assert any("certificate.holds" in each for each in asserted(tree))
    assert "What to change for your own data\n" in source


@story
def test_a_story_has_sizes_that_the_tests_make_smaller(path):
    sizes = SIZE.findall(path.read_text())
    assert sizes
    assert all(int(less) < int(more) for _, more, less in sizes)
    # A size that is written in another form would be played in full here.
    assert path.read_text().count(" in the tests") == len(sizes)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_from_top_to_bottom(path, tmp_path):
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert all(cell.outputs == [] and cell.execution_count is None for cell in code)
    assert any("certificate.holds" in cell.source for cell in code)
    NotebookClient(
        notebook,
        timeout=120,
        kernel_name="python3",
        resources={"metadata": {"path": str(tmp_path)}},
    ).execute()
    kinds = {kind for cell in code for output in cell.outputs for kind in output.get("data", ())}
    assert "image/png" in kinds
    assert not [output for cell in code for output in cell.outputs if output.output_type == "error"]
    said = [
        output.text for cell in code for output in cell.outputs if output.get("name") == "stderr"
    ]
    assert not said
