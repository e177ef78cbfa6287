"""Which limits were broken, when and by how much, in files: recomputed here from the caller's own
tables and from the decisions beside them.
"""

import json

import numpy as np
import pandas
import pytest

from tidewolf.cli import main
from tidewolf.experiments import folder as run_files

pytestmark = pytest.mark.usefixtures("no_pages")
LINKS = ["a > b", "b > a", "b > c", "a > c"]
DAYS = [f"2026-03-{day:02d}" for day in range(1, 10)]
VOLUMES = ["time", "limit", "over", "load", "capacity", "over_volume"]


def network(folder, more="", capacities=True):
    """Two commodities on four links, and what each costs, may carry and sends, day by day."""
    draw = np.random.default_rng(3)
    (folder / "links.csv").write_text("tail,head\na,b\nb,a\nb,c\na,c\n")
    (folder / "commodities.csv").write_text("source,target,demand\na,c,4\nb,c,2\n")
    tables = {
        "costs": pandas.DataFrame(draw.uniform(1, 5, (9, 4)).round(2), DAYS, LINKS),
        "capacities": pandas.DataFrame(draw.uniform(1, 6, (9, 4)).round(1), DAYS, LINKS),
        "demands": pandas.DataFrame(draw.uniform(2, 6, (9, 2)).round(1), DAYS, ["a > c", "b > c"]),
    }
    for name, table in tables.items():
        table.to_csv(folder / f"{name}.csv", index_label="time")
    limited = 'capacities = "capacities.csv"\n' if capacities else ""
    (folder / "network.toml").write_text(
        f'learners = ["LyapunovDescent"]\n{more}[set]\ngraph = "links.csv"\npaths = "all"\n'
        'commodities = "commodities.csv"\n[stream]\ncosts = "costs.csv"\n'
        f'demands = "demands.csv"\n{limited}'
    )
    return tables


def recomputed(folder, tables):
    """Every link over its capacity, from the shares in decisions.csv alone."""
    shares = pandas.read_csv(folder / "decisions.csv", index_col="time")
    demands = tables["demands"].set_axis(shares.index)
    loads = pandas.DataFrame(0.0, shares.index, LINKS)  # of all, limited or not
    for column in shares:
        commodity, link = column.split(": ")
        loads[link] += shares[column] * demands[commodity]
    capacities = tables["capacities"].set_axis(shares.index)
    loads = loads[capacities.columns]
    found = pandas.DataFrame({"load": loads.stack(), "capacity": capacities.stack()})
    found["over_volume"] = found["load"] - found["capacity"]
    return found[found["over_volume"] > 1e-8].rename_axis(["time", "limit"]).reset_index()


@pytest.mark.parametrize("limited", [LINKS, LINKS[2:]])
def test_every_link_that_was_over_its_capacity_has_a_row(here, limited):
    tables = network(here)
    tables["capacities"] = tables["capacities"][limited]
    tables["capacities"].to_csv(here / "capacities.csv", index_label="time")
    assert main(["run", "network.toml", "--out", "out", "--quiet"]) == 0
    found = pandas.read_csv(here / "out" / "limits.csv")
    assert list(found.columns) == VOLUMES
    expected = recomputed(here / "out", tables)
    assert len(expected) > 5
    pandas.testing.assert_frame_equal(found.drop(columns="over"), expected, rtol=1e-9)
    np.testing.assert_allclose(found["over"] * 6.0, found["over_volume"])  # 4 + 2 are sent
    stored = pandas.read_parquet(here / "out" / "limits.parquet")
    assert str(stored["time"].dtype).startswith("datetime64")
    pandas.testing.assert_frame_equal(stored.drop(columns="time"), found.drop(columns="time"))


def test_they_agree_with_the_numbers_of_the_rounds_and_of_the_run(here):
    network(here)
    assert main(["run", "network.toml", "--out", "out", "--quiet"]) == 0
    found = pandas.read_parquet(here / "out" / "limits.parquet")
    rounds = pandas.read_parquet(here / "out" / "rounds.parquet")
    assert list(rounds.columns[3:5]) == ["round", "time"]
    assert rounds["time"].tolist() == list(map(pandas.Timestamp, DAYS))
    worst = found.groupby("time")["over"].max()
    violation = rounds.set_index("time")["violation"]
    np.testing.assert_allclose(worst, violation[violation > 0.0])
    assert worst.index.tolist() == violation.index[violation > 0.0].tolist()
    (run,) = json.loads((here / "out" / "summary.json").read_text())["runs"]
    assert run["limit_names"] == LINKS
    totals = found.groupby("limit")["over"].sum().reindex(LINKS, fill_value=0.0)
    np.testing.assert_allclose(totals, run["each_violation"])


def test_of_no_limits_there_is_a_header_alone(here):
    network(here, capacities=False)
    assert main(["run", "network.toml", "--out", "out", "--quiet"]) == 0
    assert (here / "out" / "limits.csv").read_text() == "time,limit,over\n"
    assert pandas.read_parquet(here / "out" / "limits.parquet").shape == (0, 3)


def test_a_page_links_to_the_files_that_there_are(here, no_pages):
    no_pages.undo()
    network(here)
    assert main(["run", "network.toml", "--out", "out", "--quiet", "--decisions", "csv"]) == 0
    page = (here / "out" / "report.html").read_text()
    assert 'href="limits.csv"' in page
    assert 'href="limits.parquet"' not in page


def test_one_limit_has_rows_too(here):
    (here / "sdp.toml").write_text(
        'learners = ["LyapunovDescent"]\nrounds = 12\n[stream]\nproblem = "adversarial"\n'
    )
    assert main(["run", "sdp.toml", "--out", "out", "--quiet"]) == 0
    found = pandas.read_csv(here / "out" / "limits.csv")
    rounds = pandas.read_parquet(here / "out" / "rounds.parquet")
    broken = rounds[rounds["violation"] > 0.0]
    assert len(broken) > 0
    assert found["round"].unique().tolist() == broken["round"].tolist()


def test_of_very_many_broken_rounds_each_so_manieth_is_looked_into_and_that_is_said(
    here, monkeypatch, capsys
):
    tables = network(here)
    monkeypatch.setattr(run_files, "MOST_LIMITS", 4 * 50)
    assert main(["run", "network.toml", "--out", "out"]) == 0
    days = recomputed(here / "out", tables)["time"].unique().tolist()
    every, said = -(-len(days) // 4), " ".join(capsys.readouterr().out.split())
    assert f"The tables of limits have one of every {every} rounds that broke some." in said
    assert pandas.read_csv(here / "out" / "limits.csv")["time"].unique().tolist() == days[::every]
