"""The gallery: every story of examples/ runs at small size, draws pictures that say what they show,
and asserts its certificate; every notebook runs from top to bottom, and is stored without outputs.

A story's sizes are lines such as `ROUNDS = 2_000  # 60 in the tests`: the second number replaces
the first here. At full size all of them are played by `make docs`.
"""

import ast
import re
import sys
from pathlib import Path
from types import ModuleType

import matplotlib
import matplotlib.pyplot as plt
import nbformat
import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
FILES = sorted(EXAMPLES.glob("*.py"))
NOTEBOOKS = sorted(EXAMPLES.glob("notebooks/*.ipynb"))
STORIES = {
    *("beamforming", "carbon", "ev_charging", "forecasts_and_headroom", "late_feedback"),
    *("matrix_completion", "max_cut", "neural_policy", "own_set_and_learner"),
    *("portfolio", "ranking", "tunnels"),
}
"""What the gallery tells."""
SIZE = re.compile(r"^(\w+) = ([\d_]+)  # ([\d_]+) in the tests$", re.MULTILINE)
story = pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


def small(source):
    """The story at the size of the tests."""
    return SIZE.sub(r"\1 = \3", source)


def asserted(tree):
    """What a story asserts."""
    return [ast.unparse(node.test) for node in ast.walk(tree) if isinstance(node, ast.Assert)]


def code_cells(found):
    """The cells of a notebook that run."""
    return [cell for cell in found.cells if cell.cell_type == "code"]


def plain(cell):
    """A cell without what only a notebook understands."""
    return "".join(line for line in cell.source.splitlines(True) if not line.startswith("%")) + "\n"


@pytest.fixture
def pictures(monkeypatch):
    """Whatever is drawn, without a window; closed afterwards."""
    monkeypatch.setattr(plt, "show", lambda: None)
    before = matplotlib.get_backend()
    plt.switch_backend("Agg")
    with matplotlib.rc_context():  # a story may set its own look
        yield lambda: [plt.figure(number) for number in plt.get_fignums()]
        plt.close("all")
    plt.switch_backend(before)


@pytest.fixture
def as_module(monkeypatch, tmp_path):
    """Runs source as a module of its own, in an empty folder where it leaves nothing."""

    def run(name, source, path):
        module = ModuleType(name)
        module.__file__ = str(path)
        monkeypatch.setitem(sys.modules, name, module)
        monkeypatch.chdir(tmp_path)
        exec(compile(source, str(path), "exec"), module.__dict__)
        assert not list(tmp_path.iterdir())

    return run


def titles(figure):
    """What a picture says of itself."""
    said = (figure.get_suptitle(), *(ax.get_title() for ax in figure.axes))
    return list(filter(None, said))


@story
def test_a_story_runs_at_small_size_and_draws(path, pictures, as_module):
    """Warnings are errors, as everywhere in the suite."""
    as_module(f"story_{path.stem}", small(path.read_text()), path)
    drawn = pictures()
    assert drawn
    for figure in drawn:
        figure.set_layout_engine("none")  # which would draw all of it twice
        figure.set_dpi(30)
        figure.canvas.draw()
        assert titles(figure)
        assert any(ax.get_xlabel() or ax.get_ylabel() for ax in figure.axes)


@story
def test_a_story_says_what_it_is_asserts_its_certificate_and_has_small_sizes(path):
    source = path.read_text()
    tree, sizes = ast.parse(source), SIZE.findall(source)
    title, line, *_ = (ast.get_docstring(tree) or "").splitlines()
    assert line == "=" * len(title)
    assert any("certificate.holds" in each for each in asserted(tree))
    assert "What to change for your own data\n" in source
    assert sizes
    assert all(int(less) < int(more) for _, more, less in sizes)
    # A size that is written in another form would be played in full here.
    assert source.count(" in the tests") == len(sizes)
    assert {each.stem for each in FILES} >= STORIES


@notebook
def test_a_notebook_is_stored_without_outputs_and_asserts_its_certificate(path):
    found = nbformat.read(path, as_version=4)
    nbformat.validate(found)
    cells = code_cells(found)
    assert all(cell.outputs == [] and cell.execution_count is None for cell in cells)
    tree = ast.parse("\n".join(map(plain, cells)))
    assert any("certificate.holds" in each for each in asserted(tree))


@notebook
def test_the_cells_of_a_notebook_run_from_top_to_bottom(path, pictures, as_module):
    cells = code_cells(nbformat.read(path, as_version=4))
    as_module(f"notebook_{path.stem}", "\n".join(map(plain, cells)), path)
