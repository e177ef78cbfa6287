"""A fresh notebook, run by a real kernel: runs, comparisons and their plots show themselves, with
nothing set up before.
"""

from __future__ import annotations

import base64
import struct

import nbformat
import pytest
from nbclient import NotebookClient

PRELUDE = """
import tidewolf as tw
problem = tw.problems.routing(rounds=30)
run = tw.run(tw.LyapunovDescent(problem.K, horizon=30), problem.stream)
found = tw.compare([tw.LyapunovDescent, tw.baselines.SinhaVaze], problem, cautions=(1.0, 10.0))
"""
CELLS = ("run.plot()", "found.plot()", "run", "found", "import matplotlib.pyplot\nrun.plot()")


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    """What each cell shows: data by kind."""
    notebook = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell(source) for source in (PRELUDE, *CELLS)]
    )
    folder = str(tmp_path_factory.mktemp("notebook"))
    NotebookClient(
        notebook, timeout=120, kernel_name="python3", resources={"metadata": {"path": folder}}
    ).execute()
    assert notebook.cells[0].outputs == []
    outputs = [cell.outputs for cell in notebook.cells[1:]]
    assert [len(each) for each in outputs] == [1] * len(CELLS)
    return {source: each[0].data for source, each in zip(CELLS, outputs, strict=True)}


@pytest.mark.parametrize("cell", [cell for cell in CELLS if "plot" in cell])
def test_a_plot_is_a_picture(shown, cell):
    data = base64.b64decode(shown[cell]["image/png"])
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    width, height = struct.unpack(">II", data[16:24])
    assert width >= 600
    assert height >= 300


@pytest.mark.parametrize("cell", ["run", "found"])
def test_a_result_is_a_table_with_drawings(shown, cell):
    html = shown[cell]["text/html"]
    assert "<table" in html
    assert "<svg" in html
