"""docs/reference/outputs.md is complete: every column and key of every file that small runs leave
is on it, and nothing else.

A section of the page is a table whose first column has names in backticks. Those of JSON are
joined by points, `[]` stands for the items of a list, and NAME for what is called as one likes.
"""

import contextlib
import io
import json
import re
import sys
from pathlib import Path

import pandas as pd
import pyarrow.parquet
import pytest

import tidewolf as tw
from tidewolf.cli import main
from tidewolf.evaluation import comparison, metrics
from tidewolf.evaluation import metrics as experts
from tidewolf.experiments.compare import LINE_COLUMNS

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "reference" / "outputs.md").read_text()
FREE = ("settings", "budgets", "versions", "left_out", "decision", "cells")
"""Keys that hold what has names of its own."""
LINKS = ["A > B", "A > C", "B > D", "C > D", "B > C"]
NETWORK = """
[set]
graph = [["A", "B"], ["A", "C"], ["B", "D"], ["C", "D"], ["B", "C"]]
commodities = "pairs.csv"
paths = "k-shortest"
[stream]
costs = "costs.csv"
capacities = "capacities.csv"
[[learners]]
name = "Ensemble"
per_constraint = true
experts = ["last"]
"""


def named(section):
    """The names in the first column of the tables under a heading."""
    (text,) = re.findall(rf"^###? {re.escape(section)}\n(.*?)(?=^##|\Z)", PAGE, re.M | re.S)
    cells = re.findall(r"^\| (.*?) \|", text, re.M)
    return [name for cell in cells for name in re.findall(r"`([^`]+)`", cell)]


def require_same(section, found, more=()):
    """The page has these names and no others; `more` are those it may have beside them."""
    shown, there = named(section), set(found)
    assert len(shown) == len(set(shown)), f"{section} names something twice"
    assert there - set(shown) == set(), f"not on the page under {section}"
    assert set(shown) - there - set(more) == set(), f"in no file of {section}"


def keys(value, name=""):
    """The names of what lies in plain data."""
    if isinstance(value, dict) and value and name.rpartition(".")[2] not in FREE:
        for key, part in value.items():
            called = "NAME" if name.endswith("checks") else key
            yield from keys(part, f"{name}.{called}" if name else key)
    elif isinstance(value, list) and value and isinstance(value[0], dict) and name not in FREE:
        for part in value:
            yield from keys(part, f"{name}[]")
    else:
        yield name


def leaves(*values, hidden=()):
    """Those of several, without what is empty in one and has parts in another; what lies under a
    hidden name is left to another section.
    """
    found = {name for value in values for name in keys(value)}
    for head in hidden:
        found = {head if re.match(rf"{re.escape(head)}[.\[]", name) else name for name in found}
    inner = {name for name in found if any(re.match(rf"{re.escape(name)}[.\[]", n) for n in found)}
    return found - inner


def said(*arguments, code=0):
    with contextlib.redirect_stdout(io.StringIO()) as out:
        assert main(list(arguments)) == code
    return out.getvalue()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Small real runs: tunnels with an incumbent, a built-in problem, a sweep, a comparison."""
    place = tmp_path_factory.mktemp("outputs")
    times = [f"2026-03-02T{hour:02d}:00" for hour in range(6)]
    costs = pd.DataFrame(1.0, index=pd.Index(times, name="time"), columns=LINKS)
    (costs + 0.1).to_csv(place / "costs.csv")
    room = costs * 2.0
    room.iloc[3] = 0.6  # what is sent then is too much for any decision
    room.to_csv(place / "capacities.csv")
    (place / "pairs.csv").write_text("source,target,demand\nA,D,1.5\nB,D,0.5\n")
    (place / "net.toml").write_text(NETWORK)
    with contextlib.chdir(place):
        said("run", "net.toml", "--learner", "Resolve", "--out", "before", "--quiet")
        printed = said("run", "net.toml", "--incumbent", "before/decisions.csv", "--json")
        Path("run.json").write_text(printed)
        plain = ("--learner", "LyapunovDescent")
        Path("dry.json").write_text(said("run", "net.toml", *plain, "--dry-run", "--json"))
        Path("doctor.json").write_text(said("doctor", "--json"))
        said("run", "routing", "--rounds", "20", *plain, "--out", "built", "--quiet")
        few = ("--horizons", "5", "--knob", "caution=3,10", *plain)
        said("sweep", "routing", *few, "--out", "swept", "--quiet")
        few = ("--cautions", "3,10", "--headrooms", "0", "--out", "best")
        Path("compare.txt").write_text(said("compare", "net.toml", *few))
    return place


def table(path):
    return list(pyarrow.parquet.read_schema(path).names)


def plain_json(path):
    return json.loads(path.read_text())


@pytest.mark.parametrize("name", ["decisions", "paths", "limits"])
def test_tables_of_a_run(folder, name):
    files = [folder / place / name for place in ("out", "built")]
    columns = [table(file.with_suffix(".parquet")) for file in files]
    for file, titles in zip(files, columns, strict=True):
        assert list(pd.read_csv(file.with_suffix(".csv"), nrows=0).columns) == titles
    found = {title for titles in columns for title in titles}
    shown = {each for each in named(name) if " > " not in each}
    entries = {each for each in found if " > " in each}
    assert (name == "decisions") == bool(entries)
    assert found - entries == shown


def test_tunnels_and_rounds(folder):
    require_same("tunnels", pd.read_csv(folder / "out" / "tunnels.csv").columns)
    found = {*table(folder / "out" / "rounds.parquet"), *table(folder / "built" / "rounds.parquet")}
    require_same("rounds.parquet", found)
    said_last = [name for name in metrics.ROUND_NUMBERS if name != "regret"]
    assert table(folder / "out" / "rounds.parquet")[-len(said_last) :] == said_last


def test_every_file_of_a_run_is_named(folder):
    shown = named("Files of a run")
    for place in ("out", "built", "before"):
        for file in (folder / place).iterdir():
            name = re.sub(r"^decisions-.*", "decisions-NUMBER-LEARNER-seed-SEED.parquet", file.name)
            assert name in shown, name
    left = set(shown) - {file.name for file in (folder / "out").iterdir()}
    assert left == {"decisions-NUMBER-LEARNER-seed-SEED.parquet"}


def test_summaries(folder):
    summary, built = (plain_json(folder / each / "summary.json") for each in ("out", "built"))
    require_same("summary.json", leaves(summary, hidden=["runs"]))
    require_same("A run in summary.json", leaves(*summary["runs"], *built["runs"]))
    told = plain_json(folder / "run.json")
    require_same("tidewolf run --json", leaves(told, hidden=["runs", "incumbent"]))
    assert leaves(*told["runs"]) <= leaves(*summary["runs"])
    require_same("tidewolf run --dry-run --json", leaves(plain_json(folder / "dry.json")))
    require_same("tidewolf doctor --json", leaves(plain_json(folder / "doctor.json")))


def test_checks_of_certificates(folder):
    summaries = [plain_json(folder / each / "summary.json") for each in ("out", "built")]
    told = [run["certificate"]["checks"] for summary in summaries for run in summary["runs"]]
    K, costs = tw.sets.Simplex(2), tw.functions.Linear([[1.0, 2.0]] * 4)
    stream = tw.Stream(costs, tw.functions.Capacity([[0.75, 1.0]] * 4))
    given = {"loss_lipschitz": 3.0, "constraint_lipschitz": 1.5}
    learners = (tw.Ensemble(K, per_constraint=True), tw.LyapunovFrankWolfe(K, horizon=4, **given))
    told += [tw.run(own, stream).certificate.summary()["checks"] for own in learners]
    require_same("The checks of a certificate", {name for checks in told for name in checks})


def test_metadata(folder):
    found = set()
    for file in (folder / "out").glob("*.parquet"):
        found |= leaves(json.loads(pyarrow.parquet.read_schema(file).metadata[b"tidewolf"]))
    require_same("Metadata of Parquet files", found)


def test_comparisons(folder):
    best = folder / "best"
    columns = set(pd.read_csv(best / "comparison.csv").columns)
    require_same("comparison.csv", columns)
    summary = plain_json(best / "comparison.json")
    runs = {f"runs[].{c}" for c in columns} | {"runs[].regret.lower", "runs[].regret.upper"}
    points = {f"rankings[].points[].{column}" for column in columns}
    points |= {"rankings[].points[].regret"}
    kinds = dict.fromkeys(runs, "runs[]") | dict.fromkeys(points - runs, "rankings[].points[]")
    found = {kinds.get(name, name) for name in leaves(summary) - {"runs[].regret"}}
    require_same("comparison.json", found)
    lines = (folder / "compare.txt").read_text().splitlines()
    head = next(line for line in lines if line.startswith("per round"))
    titles = head.replace("secs", "micro-secs").split()
    assert titles[:2] == ["per", "round"]
    require_same("tidewolf compare: choosing caution", titles[2:], more=["regret"])


def test_sweeps(folder):
    swept = folder / "swept"
    columns = {re.sub("^knob_.*", "knob_NAME", name) for name in table(swept / "results.parquet")}
    require_same("results.parquet", columns)
    first, *rows = map(json.loads, (swept / "sweep.jsonl").read_text().splitlines())
    compared = map(json.loads, (folder / "best" / "compare.jsonl").read_text().splitlines())
    whole = leaves(first, *rows, *compared)
    run = {f"row.{name}" for name in named("A run in summary.json")}
    run |= {f"row.{name.partition('.')[0].partition('[')[0]}" for name in named("summary.json")}
    heads = {name.partition("[")[0] for name in run} | {"row.regret", "row.hindsight"}
    require_same("The journals", {"row" if name in run | heads else name for name in whole})


def test_live_answers(folder, monkeypatch):
    hours = ((f"2026-03-02T{hour:02d}:00", 1.0 + hour) for hour in range(3))
    rows = [{"time": time, "costs": dict.fromkeys(LINKS, cost)} for time, cost in hours]
    (folder / "rows").write_text("".join(f"{json.dumps(row)}\n" for row in rows) + "no row\n")
    with contextlib.chdir(folder), open("rows") as stdin, monkeypatch.context() as patch:
        patch.setattr(sys, "stdin", stdin)
        with contextlib.redirect_stderr(io.StringIO()):
            answers = said("live", "net.toml", "--db", "net.db", code=3).splitlines()  # "no row"
    require_same("Answers of tidewolf live", leaves(*map(json.loads, answers)))


# what is printed


def headers(titles):
    """Titles of two lines as one: what stands above, also where it stands above several."""
    found, above = list[str](), ""
    for title in titles:
        first, _, second = title.partition("\n")
        above = first or above
        found.append(f"{above} {second}".strip().replace("- ", "-"))
    return found


def test_printed_tables():
    for section, columns in (
        ("tidewolf run: totals", metrics.TABLE),
        ("tidewolf run: per round", metrics.ROUND_TABLE),
        ("tidewolf compare: standings", comparison.RANKING_COLUMNS),
        ("tidewolf compare: per round", comparison.RANKING_ROUND_COLUMNS),
        ("tidewolf sweep", LINE_COLUMNS),
        ("print(run): experts", experts.EXPERT_COLUMNS),
    ):
        require_same(section, headers(column.narrow_title for column in columns))
