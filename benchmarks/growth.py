"""The first table and the pictures of docs/paper.md: growth with the horizon, as `tidewolf paper`
measures it.
"""

from benchmarks.measuring import ROOT
from benchmarks.pages import Table
from tidewolf.report import charts, paper


def table() -> Table:
    """Exponents beside the theorems'."""
    found = paper.study()
    for chart in paper.growth_charts(found):
        file = ROOT / "docs" / "images" / f"{chart.name}.svg"
        file.write_bytes(charts.saved(charts.picture([chart]), "svg"))
    shown = paper.growth_table(found)
    rows = [tuple(cell.text for cell in row) for group in shown.groups for row in group.rows]
    return Table(("learner", *shown.titles[1:]), rows)
