"""A dry run: says what would be played, and leaves nothing behind."""

import json

import pytest

from tidewolf.cli import main

FILE = """
[set]
kind = "Simplex"

[stream]
costs = "costs.csv"
capacities = "capacities.csv"

[[learners]]
name = "Ensemble"
caution = 4

[[learners]]
name = "Resolve"
"""


@pytest.fixture
def file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [f"2026-03-{day:02d}" for day in range(1, 21)]
    for name, row in (("costs", "1,2,3"), ("capacities", "0.5,0.6,0.7")):
        table = "\n".join(["time,a,b,c", *(f"{day},{row}" for day in rows)])
        (tmp_path / f"{name}.csv").write_text(f"{table}\n")
    (tmp_path / "mine.toml").write_text(FILE)
    return tmp_path / "mine.toml"


def test_a_dry_run_says_everything_and_writes_nothing(file, tmp_path, capsys):
    before = sorted(tmp_path.rglob("*"))
    assert main(["run", str(file), "--dry-run"]) == 0
    printed = capsys.readouterr()
    said = " ".join(printed.out.split())
    assert printed.err == ""
    for part in (
        "Simplex(n=3",
        "3 entries",
        "20, from 2026-03-01 to 2026-03-20 seeds 0",
        "(3 per round)",
        "Ensemble (horizon 20, caution 4",
        "Resolve (horizon 20, headroom 0",
        "folder out",
        "summary.json",
        "Nothing was written",
    ):
        assert part in said
    assert sorted(tmp_path.rglob("*")) == before


def test_a_dry_run_is_what_the_run_then_is(file, tmp_path, capsys):
    words = ["run", str(file), "--out", "there", "--caution", "3,10"]
    assert main([*words, "--dry-run", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert not (tmp_path / "there").exists()
    assert (told["rounds"], told["dimension"], told["limits_a_round"]) == (20, 2, 3)
    assert (told["first"], told["last"]) == ("2026-03-01", "2026-03-20")
    assert told["seconds"] == sum(each["seconds"] for each in told["learners"]) > 0.0
    assert main([*words, "--json"]) == 0
    runs = json.loads(capsys.readouterr().out)["runs"]
    assert [(run["learner"], run["settings"]) for run in runs] == [
        (each["name"], each["settings"]) for each in told["learners"]
    ]
    left = {str(path.relative_to(tmp_path / "there")) for path in (tmp_path / "there").rglob("*")}
    assert set(told["files"]) <= left
    assert main([*words, "--dry-run"]) == 2, "a folder that is taken is refused, as in earnest"


def test_cautions_of_the_command_count_in_place_of_the_files(file, capsys):
    def cautions(*words):
        assert main(["run", str(file), "--dry-run", "--json", *words]) == 0
        learners = json.loads(capsys.readouterr().out)["learners"]
        return [each["settings"].get("caution") for each in learners]

    assert cautions() == [4.0, None]
    assert cautions("--caution", "7") == [7.0, None]
    assert cautions("--caution", "1,10,10") == [1.0, 10.0, None]


@pytest.fixture
def net(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "links.csv").write_text("tail,head,capacity\nA,B,1\nB,A,1\nB,C,1\nA,C,\n")
    hours = [f"2026-03-01T{hour:02}:00" for hour in range(5)]
    rows = "".join(f"{hour},1,1,1,3\n" for hour in hours)
    (tmp_path / "costs.csv").write_text(f"time,A > B,B > A,B > C,A > C\n{rows}")

    def write(more=""):
        (tmp_path / "net.toml").write_text(
            'learners = ["Ensemble"]\n[set]\ngraph = "links.csv"\nsource = "A"\ntarget = "C"\n'
            f'{more}[stream]\ncosts = "costs.csv"\n'
        )
        return tmp_path

    return write


def test_every_file_of_a_network_is_named_before(net, capsys):
    folder = net('paths = "k-shortest"\nk = 2\n')
    assert main(["run", "net.toml", "--out", "there", "--dry-run", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert main(["run", "net.toml", "--out", "there", "--quiet"]) == 0
    there = folder / "there"
    left = {str(path.relative_to(there)) for path in there.rglob("*") if path.is_file()}
    assert not {name for name in told["files"] if "/" not in name} - left
    assert not {name for name in left if name.startswith(("paths", "tun"))} - set(told["files"])
    assert "tunnels.csv" in left
