"""Decisions in files: those that were played, under the caller's times and names, in tables that
others read, written while a run goes on.
"""

import csv
import json
import tracemalloc

import numpy as np
import pandas
import pytest

import tidewolf as tw
from tidewolf.cli import main
from tidewolf.experiments import folder as run_files
from tidewolf.experiments.folder import DecisionLog

pytestmark = pytest.mark.usefixtures("no_pages")
BOTH = 'learners = ["LyapunovDescent", "SinhaVaze"]\nrounds = 12\n'
ROUTING = BOTH + '[stream]\nproblem = "routing"\n'


@pytest.fixture
def here(here):
    (here / "routing.toml").write_text(ROUTING)
    return here


def tables(folder):
    return sorted(path.name for path in folder.iterdir() if path.suffix in (".csv", ".parquet"))


def test_files_hold_the_decisions_that_a_plain_run_makes(here):
    assert main(["run", "routing.toml", "--out", "out", "--quiet"]) == 0
    problem = tw.problems.routing(rounds=12)
    names = "decisions", "decisions-02-SinhaVaze-seed-0"
    kinds = tw.LyapunovDescent, tw.baselines.SinhaVaze
    for name, kind in zip(names, kinds, strict=True):
        learner = kind(problem.K, horizon=12)
        plain = tw.run(learner, problem.stream, decisions=True).decisions
        frame = pandas.read_parquet(here / "out" / f"{name}.parquet")
        assert list(frame.columns) == ["round", *problem.K.names]
        assert frame["round"].tolist() == list(range(1, 13))
        np.testing.assert_array_equal(frame.iloc[:, 1:].to_numpy(), plain.points)
    read = pandas.read_csv(here / "out" / "decisions.csv")
    frame = pandas.read_parquet(here / "out" / "decisions.parquet")
    pandas.testing.assert_frame_equal(read, frame)


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        ("excel", None),
        (None, ["decisions-02-SinhaVaze-seed-0.parquet", "decisions.csv", "decisions.parquet"]),
        ("none", []),
        ("csv", ["decisions-02-SinhaVaze-seed-0.csv", "decisions.csv"]),
    ],
)
def test_which_files_there_are_is_as_one_likes(here, form, expected):
    asked = [] if form is None else ["--decisions", form]
    if expected is None:
        assert main(["run", "routing.toml", *asked]) == 2
        return
    assert main(["run", "routing.toml", "--out", "out", "--quiet", *asked]) == 0
    assert [name for name in tables(here / "out") if name.startswith("decisions")] == expected
    assert bool(list((here / "out" / "checkpoints").glob("*.decisions"))) is (form != "none")
    endings = {name.partition(".")[2] for name in expected if name.startswith("decisions.")}
    for table in ("paths", "limits"):
        assert {path.suffix[1:] for path in (here / "out").glob(f"{table}.*")} == endings


def test_large_tables_are_thinned_and_that_is_reported(here, monkeypatch, capsys):
    monkeypatch.setattr(run_files, "MOST_SPLITS", 4)
    monkeypatch.setattr(run_files, "CSV_CELLS", 12 * 19 - 1)
    monkeypatch.setattr(run_files, "_PART", 40)  # numbers that are written at a time
    assert main(["run", "routing.toml", "--out", "out"]) == 0
    assert "The tables of paths have one round of every 3" in capsys.readouterr().out
    paths = pandas.read_parquet(here / "out" / "paths.parquet")
    assert sorted(set(paths["round"])) == [1, 4, 7, 10]
    assert "decisions.csv" not in tables(here / "out")
    assert len(pandas.read_parquet(here / "out" / "decisions.parquet")) == 12


def test_paths_of_many_commodities_have_shares_and_volumes():
    links = [("a", "b"), ("b", "c"), ("a", "c")]
    K = tw.sets.MultiFlow.from_edges(links, [("a", "c", 4.0), ("b", "c", 2.0)])
    x = np.zeros(K.shape)
    for i, name in enumerate(K.names):
        x[i] = {"a > c: a > c": 3.0, "b > c: b > c": 2.0}.get(name, 1.0)
    found = run_files.routes_of(K, None, x)
    assert [(one.commodity, one.name, one.share, one.volume) for one in found] == [
        ("a > c", "a > c", 0.75, 3.0),
        ("a > c", "a > b > c", 0.25, 1.0),
        ("b > c", "b > c", 1.0, 2.0),
    ]


def test_what_a_killed_process_wrote_beyond_its_checkpoint_is_cut_off(tmp_path):
    points = np.random.default_rng(0).normal(size=(9, 3))
    whole = DecisionLog(tmp_path / "whole", (3,), 0)
    whole.see(points[:4], 4)
    whole.see(points[4:5], 1)
    whole.see(points[5:6], 4)
    whole.sync()
    whole.close()
    expected = np.concatenate([points[:5], np.repeat(points[5:6], 4, axis=0)])
    np.testing.assert_array_equal(whole.points(9), expected)
    data = (tmp_path / "whole").read_bytes()
    for extra in (b"", b"half", data[-100:]):
        (tmp_path / "cut").write_bytes(data[: -4 * 24] + extra)
        cut = DecisionLog(tmp_path / "cut", (3,), 5)
        assert cut.holds
        cut.see(points[5:6], 4)
        cut.close()
        assert (tmp_path / "cut").read_bytes() == data


def test_a_log_that_lacks_rounds_or_is_another_is_not_gone_on_with(tmp_path):
    log = DecisionLog(tmp_path / "log", (3,), 0)
    log.see(np.ones((1, 3)), 4)
    log.close()
    assert log.points(5) is None
    assert not DecisionLog(tmp_path / "log", (3,), 5).holds
    assert not DecisionLog(tmp_path / "log", (4,), 1).holds
    assert not DecisionLog(tmp_path / "none", (3,), 1).holds
    assert log.points(4).shape == (4, 3)


def test_a_run_that_was_begun_without_decisions_goes_on_and_says_so(here, capsys):
    assert main(["run", "routing.toml", "--out", "out", "--quiet"]) == 0
    for file in (here / "out" / "checkpoints").glob("01*.decisions"):
        file.unlink()
    (here / "out" / "summary.json").unlink()
    capsys.readouterr()
    assert main(["resume", "out"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "The decisions of 01-LyapunovDescent-seed-0 are not there" in said
    assert "The decisions of 02" not in said


def test_memory_is_flat_in_the_rounds(tmp_path):
    """What has been seen is not held: a log of many rounds takes no more than one of few."""
    log, point = DecisionLog(tmp_path / "log", (1000,), 0), np.ones((1, 1000))
    tracemalloc.start()
    for _ in range(2000):
        log.see(point, 1)
    log.close()
    points = log.points(2000)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1e6
    assert points[1999, 999] == 1.0


@pytest.mark.parametrize("name", ["=1+1", "+x", "-x", "@sum", "=cmd|'/c calc'!A0"])
def test_no_name_in_a_csv_file_is_a_formula(name):
    table = {"round": [1, 2], name: [-1.0, 2.5], "of": [name, "SEA"], "at": ["-3", "+4"]}
    rows = run_files._csv(table)
    head, *lines = csv.reader(rows.decode().splitlines())
    assert head == ["round", f"'{name}", "of", "at"]
    assert lines == [["1", "-1.0", f"'{name}", "-3"], ["2", "2.5", "SEA", "+4"]]


# --- which limits were broken, when and by how much, in files: recomputed here from ---------------


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
    text = 'learners = ["LyapunovDescent"]\nrounds = 12\n[stream]\nproblem = "adversarial"\n'
    (here / "sdp.toml").write_text(text)
    assert main(["run", "sdp.toml", "--out", "out", "--quiet"]) == 0
    found = pandas.read_csv(here / "out" / "limits.csv")
    rounds = pandas.read_parquet(here / "out" / "rounds.parquet")
    broken = rounds[rounds["violation"] > 0.0]
    assert len(broken) > 0
    assert found["round"].unique().tolist() == broken["round"].tolist()


def test_of_very_many_broken_rounds_some_are_looked_into_and_that_is_said(
    here, monkeypatch, capsys
):
    tables = network(here)
    monkeypatch.setattr(run_files, "MOST_LIMITS", 4 * 50)
    assert main(["run", "network.toml", "--out", "out"]) == 0
    days = recomputed(here / "out", tables)["time"].unique().tolist()
    every, said = -(-len(days) // 4), " ".join(capsys.readouterr().out.split())
    assert f"The tables of limits have one of every {every} rounds that broke some." in said
    assert pandas.read_csv(here / "out" / "limits.csv")["time"].unique().tolist() == days[::every]
