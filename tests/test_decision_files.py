"""Decisions in files: those that were played, under the caller's times and names, in tables that
others read, written while a run goes on.
"""

import csv
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
    for name, learner in (
        ("decisions", tw.LyapunovDescent(problem.K, horizon=12)),
        ("decisions-02-SinhaVaze-seed-0", tw.baselines.SinhaVaze(problem.K, horizon=12)),
    ):
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
    rows = run_files._csv(
        {"round": [1, 2], name: [-1.0, 2.5], "of": [name, "SEA"], "at": ["-3", "+4"]}
    )
    head, *lines = csv.reader(rows.decode().splitlines())
    assert head == ["round", f"'{name}", "of", "at"]
    assert lines == [["1", "-1.0", f"'{name}", "-3"], ["2", "2.5", "SEA", "+4"]]
