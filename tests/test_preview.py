"""A dry run: says what would be played, and leaves nothing behind."""

import json

import pytest

from tables import SIMPLEX, played_by
from tidewolf.cli import main

FILE = SIMPLEX + played_by('"Ensemble"\ncaution = 4', '"Resolve"')


@pytest.fixture
def file(here, tmp_path):
    rows = [f"2026-03-{day:02d}" for day in range(1, 21)]
    for name, row in (("costs", "1,2,3"), ("capacities", "0.5,0.6,0.7")):
        table = "\n".join(["time,a,b,c", *(f"{day},{row}" for day in rows)])
        (tmp_path / f"{name}.csv").write_text(f"{table}\n")
    (tmp_path / "mine.toml").write_text(FILE)
    return tmp_path / "mine.toml"


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
    for run, each in zip(runs, told["learners"], strict=True):
        assert (run["learner"], run["settings"]) == (each["name"], each["settings"])
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
