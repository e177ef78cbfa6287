"""What would we have saved? Decisions that were made elsewhere, played beside the learners."""

import json
import re

import numpy as np
import pandas
import pytest

import tidewolf as tw
from refused import refused_command
from tables import SIMPLEX
from tidewolf.cli import main
from tidewolf.experiments.compare import Incumbent, play_incumbent, savings

pytestmark = pytest.mark.usefixtures("no_pages")
ROUNDS = 20
COSTS = np.random.default_rng(2).uniform(1.0, 2.0, (ROUNDS, 3))
NAMES = ["night", "day", "dusk"]
TIMES = [f"2026-03-{day:02}" for day in range(1, ROUNDS + 1)]
SHARES = np.random.default_rng(3).dirichlet(np.ones(3), ROUNDS)
FILE = 'learners = ["LyapunovDescent"]\n' + SIMPLEX


@pytest.fixture
def here(here):
    (here / "e.toml").write_text(FILE)
    frame = pandas.DataFrame(COSTS, columns=NAMES)
    frame.insert(0, "time", TIMES)
    frame.to_csv("costs.csv", index=False)
    frame[NAMES] = 0.6
    frame.to_csv("capacities.csv", index=False)
    return here


def table(path, shares=SHARES, names=NAMES, **key):
    frame = pandas.DataFrame(shares, columns=names)
    for name, values in key.items():
        frame.insert(0, name, values)
    frame.to_csv(path, index=False)


def played(*more):
    assert main(["run", "e.toml", "--out", "out", "--quiet", "--force", *more]) == 0
    with open("out/summary.json") as file:
        return json.load(file)


def expected():
    moved = 0.5 * np.abs(np.diff(SHARES, axis=0)).sum(axis=1)
    over = float(np.maximum(SHARES.max(axis=1) - 0.6, 0.0).sum())
    loss, churn = float((COSTS * SHARES).sum()), float(moved.sum() / ROUNDS)
    return {"loss": loss, "violation": over, "churn": churn}


def told(summary):
    found = summary["incumbent"]
    totals = {"loss": found["loss"]["total"], "violation": found["violation"]}
    return totals | {"churn": found["churn"]["mean"]}


@pytest.mark.parametrize("key", [None, "time", "round", "file"])
def test_its_numbers_are_those_of_its_decisions(here, key):
    """Rows are known by their time or round, in any order, and columns by name."""
    order = np.arange(ROUNDS)[::-1] if key == "round" else np.arange(ROUNDS)
    keys = {"time": TIMES, "round": order + 1}
    more = np.column_stack([SHARES[order][:, [2, 0, 1]], np.zeros(ROUNDS)])
    known = {key: keys[key]} if key in keys else {}
    table("mine.csv", more, ["dusk", "night", "day", "gone"], **known)
    if key == "file":
        (here / "e.toml").write_text(f'incumbent = "mine.csv"\n{FILE}')
    given = [] if key == "file" else ["--incumbent", "mine.csv"]
    assert told(played(*given)) == pytest.approx(expected())


def test_it_is_one_more_line_in_tables_and_on_pages_and_stays_on_resume(here, capsys, no_pages):
    no_pages.undo()
    table("mine.csv", time=TIMES)
    assert main(["run", "e.toml", "--out", "out", "--incumbent", "mine.csv"]) == 0
    printed = capsys.readouterr().out
    assert printed.count("\nIncumbent ") == 2
    assert "Incumbent: It plays the decisions of mine.csv." in printed
    saved = json.loads((here / "out" / "summary.json").read_text())["incumbent"]["saved"]
    assert saved in " ".join(printed.split())
    assert f"Incumbent: {saved}" not in " ".join(printed.split())
    page = (here / "out" / "report.html").read_text()
    assert saved in page
    assert "Incumbent" in page
    assert main(["resume", "out", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert (shown["incumbent"]["saved"], len(shown["runs"])) == (saved, 1)


def test_numbers_that_were_rounded_are_taken_as_the_nearest_decision_and_that_is_said(here, capsys):
    table("mine.csv", SHARES.round(4), time=TIMES)
    assert main(["run", "e.toml", "--out", "out", "--incumbent", "mine.csv"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "rows were rounded, and are replaced by the nearest decision, at most" in said
    summary = json.loads((here / "out" / "summary.json").read_text())
    assert told(summary) == pytest.approx(expected(), abs=1e-2)
    assert summary["incumbent"]["max_infeasibility"] < 1e-9


def outside(infeasibility):
    shares = SHARES.copy()
    shares[4, 0] += infeasibility
    return shares


OFF = [time.replace("2026", "2027") for time in TIMES]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"shares": outside(0.5)}, r"^mine.csv, line 6: .* 0\.5 outside the set"),
        ({"shares": 40.0 * SHARES}, r"^mine.csv, line 2: .* 39 outside the set"),
        ({"names": ["night", "days", "dusk"]}, r"^mine.csv: .* 'days'\. Did you mean day\?"),
        (
            {"names": ["nights", "days", "dusks"]},
            r"^mine.csv: .* 'night', 'day' and 'dusk', received 'nights'",
        ),
        ({"shares": SHARES[:5]}, r"^mine.csv: .* 20 rounds"),
        ({"time": OFF}, r"^mine.csv: .* round 1 \(2026-03-01\)"),
        ({"round": range(2, ROUNDS + 2)}, r"^mine.csv: .* round 1\."),
    ],
)
def test_what_is_no_table_of_decisions_is_refused_before_a_run(here, capsys, given, said):
    table("mine.csv", **given)
    sentence = refused_command(capsys, "run", "e.toml", "--out", "out", "--incumbent", "mine.csv")
    assert re.search(said, sentence), sentence
    assert not (here / "out").exists()


def problem(**more):
    room = tw.functions.Capacity(np.full(COSTS.shape, 0.6))
    stream = tw.Stream(tw.functions.Linear(COSTS), room, **more)
    return tw.problems.Problem("mine", tw.sets.Simplex(3), stream, "Shares of three.", tuple(NAMES))


@pytest.mark.parametrize(
    "more",
    [
        {"seen": np.arange(ROUNDS) % 3 > 0, "time": TIMES},
        {"arrives": np.arange(ROUNDS) + 2},
        {"unavailable": [["entry 1"] if t == 3 else None for t in range(ROUNDS)]},
    ],
)
def test_what_learners_are_told_and_when_is_not_its_business(more):
    found = problem(**more)
    run = play_incumbent(Incumbent(found.K, SHARES), found, None)
    np.testing.assert_allclose(run.losses, (COSTS * SHARES).sum(axis=1))
    assert (run.stream.stamps is None) is ("time" not in more)


def of_losses(points, sign=1.0, limit=0.6):
    """A run of these points, at these costs or at their negatives."""
    limits = tw.functions.Capacity(np.full(COSTS.shape, limit))
    stream = tw.Stream(tw.functions.Linear(sign * COSTS), limits)
    here = tw.problems.Problem("mine", tw.sets.Simplex(3), stream, "Shares of three.", tuple(NAMES))
    return play_incumbent(Incumbent(here.K, points), here, None)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_what_was_saved_is_a_share_of_a_positive_loss(sign):
    ours, theirs = of_losses(np.eye(3)[[1] * ROUNDS], sign), of_losses(SHARES, sign)
    less = theirs.losses.sum() - ours.losses.sum()
    size = abs(100.0 * less / theirs.losses.sum()) if sign > 0 else abs(less)
    sentence = savings(ours, "Ensemble", theirs)
    assert (" less " if less > 0 else " more ") in sentence
    assert float(sentence.split()[4]) == pytest.approx(size, rel=0.1)
    assert f"by 8 instead of {theirs.violations.sum():.4g}." in sentence
    free = of_losses(SHARES, sign, 1.0)
    assert "as much as the incumbent, and both satisfy every limit" in savings(free, "A", free)


def test_a_single_row_stands_in_every_round(here):
    table("static.csv", SHARES[:1])
    found = played("--incumbent", "static.csv")["incumbent"]
    assert found["loss"]["total"] == pytest.approx(float((COSTS @ SHARES[0]).sum()))
    assert found["churn"]["worst"] == 0.0


def test_decisions_as_tidewolf_writes_them_are_read_beside_files_in_another_format(here):
    for name in ("costs.csv", "capacities.csv"):
        pandas.read_csv(name).to_csv(name, index=False, sep=";", decimal=",", encoding="latin-1")
    (here / "e.toml").write_text(f'{FILE}[files]\ndecimal = ","\nencoding = "latin-1"\n')
    played()
    (here / "out" / "decisions.csv").rename(here / "ours.csv")
    assert played("--incumbent", "ours.csv")["incumbent"]["loss"]["total"] > 0.0


def test_an_entry_without_a_column_is_0_and_that_is_said(here, capsys):
    table("mine.csv", SHARES[:, :2] / SHARES[:, :2].sum(axis=1, keepdims=True), NAMES[:2])
    assert main(["run", "e.toml", "--out", "out", "--incumbent", "mine.csv"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "mine.csv; 1 of 3 entries have no column there and count as 0." in said
    found = json.loads((here / "out" / "summary.json").read_text())["incumbent"]
    shares = SHARES[:, :2] / SHARES[:, :2].sum(axis=1, keepdims=True)
    assert found["loss"]["total"] == pytest.approx(float((COSTS[:, :2] * shares).sum()))


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_times_on_a_local_clock_come_back_as_they_went_out(here, ending):
    hours = [f"2024-10-27 {hour:02}:00" for hour in (0, 1, 2, 2, 3, 4)]  # clocks go back at 3
    for name in ("costs.csv", "capacities.csv"):
        frame = pandas.read_csv(name).iloc[: len(hours)]
        frame["time"] = hours
        frame.to_csv(name, index=False)
    (here / "e.toml").write_text(f'{FILE}[files]\ntimezone = "Europe/Berlin"\n')
    ours = played()["runs"][0]
    first = (here / "out" / "decisions.csv").read_text().splitlines()[3:5]
    times = ["2024-10-27T02:00+02:00", "2024-10-27T02:00+01:00"]
    assert [line.partition(",")[0] for line in first] == times
    (here / "out" / f"decisions.{ending}").rename(here / f"ours.{ending}")
    again = played("--incumbent", f"ours.{ending}")
    assert again["incumbent"]["loss"]["total"] == pytest.approx(ours["loss"]["total"], rel=1e-12)
