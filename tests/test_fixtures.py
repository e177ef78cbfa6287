"""Files of another machine resume here with the same decisions; earlier formats are refused."""

import json
import re
import shutil
import sqlite3
import warnings
from pathlib import Path

import numpy as np
import pytest
from tools.fixtures import LEARNERS, ROUNDS, decisions

import tidewolf as tw
from tidewolf.cli import main
from tidewolf.core.errors import OlderFormat, OtherVersions

FIXTURES = Path(__file__).parent / "fixtures" / "format3"
EXPECTED = json.loads((FIXTURES / "expected.json").read_text())


@pytest.fixture
def copied(tmp_path):
    """A copy, to be changed."""
    shutil.copytree(FIXTURES, tmp_path / "fixtures")
    return tmp_path / "fixtures"


@pytest.mark.parametrize("name", LEARNERS)
def test_a_session_of_another_machine_resumes(name, copied):
    load = tw.Session.load if name == "state" else tw.Session.open
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OtherVersions)
        with load(copied / name, LEARNERS[name]) as session:
            assert session.rounds == ROUNDS
            np.testing.assert_allclose(decisions(session), EXPECTED[name], atol=1e-9)


def test_an_interrupted_run_of_another_machine_resumes(copied):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OtherVersions)
        (found,) = tw.experiments.RunFolder.open(copied / "interrupted").play()
    assert len(found.runs[0].losses) == len(EXPECTED["losses"])
    total = sum(EXPECTED["losses"])
    assert abs(found.runs[0].losses.sum() - total) <= 1e-3 * abs(total)


def test_the_report_of_another_machines_run_is_written_again(copied, monkeypatch):
    def no_stream(*given, **more):
        raise AssertionError("a report needs no stream")

    monkeypatch.setattr("tidewolf.experiments.building.build_problem", no_stream)
    monkeypatch.setattr(tw.experiments.Experiment, "problem", no_stream)
    assert main(["report", str(copied / "run"), "--quiet"]) == 0
    page = (copied / "run" / "report.html").read_text()
    assert "LyapunovDescent" in page
    assert json.loads((copied / "run" / "report.json").read_text())["versions"]["cpu"] in page


@pytest.mark.parametrize("older", [1, 2])
def test_earlier_formats_are_refused(older, copied, capsys):
    state = (copied / "state").read_bytes()
    (copied / "state").write_bytes(state.replace(b"tidewolf state 3", b"tidewolf state %d" % older))
    with pytest.raises(OlderFormat):
        tw.Session.load(copied / "state", LEARNERS["state"])
    with sqlite3.connect(copied / "session.db") as db:
        db.execute(f"PRAGMA user_version = {older}")
    db.close()
    with pytest.raises(OlderFormat):
        tw.Session.open(copied / "session.db", LEARNERS["session.db"])
    file = copied / "run" / "experiment.toml"
    file.write_text(re.sub(r"^# tidewolf run 3", f"# tidewolf run {older}", file.read_text()))
    with pytest.raises(OlderFormat):
        tw.experiments.RunFolder.open(copied / "run")
    for command in ("report", "resume"):
        assert main([command, str(copied / "run")]) == 2
        assert capsys.readouterr().err.count("\n") <= 2
