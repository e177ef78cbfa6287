"""Files of earlier versions, which stay here for ever: what can be gone on from decides as it would
have, and what cannot is refused in a sentence.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tools.fixtures import LEARNERS, ROUNDS, decisions

import tidewolf as tw
from tidewolf.cli import main
from tidewolf.core.errors import OlderFormat, OtherSettings, OtherVersions
from tidewolf.durable.tables import Tables
from tidewolf.experiments import RunFolder

FIXTURES = Path(__file__).parent / "fixtures"
EVERY = [folder.name for folder in sorted(FIXTURES.iterdir()) if folder.name != "format1"]
DATABASES = [name for name in LEARNERS if name.endswith(".db")]
AGAIN = (
    r"{name} was written by tidewolf 0\.1: its 12 observations were observed again by this \w+, "
)


@pytest.fixture
def copied(tmp_path):
    """Copies of all fixtures, to be changed."""
    shutil.copytree(FIXTURES, tmp_path / "fixtures")
    return tmp_path / "fixtures"


def expected(version: str) -> Any:
    return json.loads((FIXTURES / version / "expected.json").read_text())


# --- this format ----------------------------------------------------------------------------------


@pytest.mark.parametrize("version", EVERY)
@pytest.mark.parametrize("name", LEARNERS)
def test_what_was_kept_is_gone_on_from(version, name, copied):
    path, learner = copied / version / name, LEARNERS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OtherVersions)
        load = tw.Session.load if name == "state" else tw.Session.open
        with load(path, learner) as session:
            assert session.rounds == ROUNDS
            np.testing.assert_allclose(decisions(session), expected(version)[name], atol=1e-9)


@pytest.mark.parametrize("version", EVERY)
def test_a_run_that_was_interrupted_goes_on(version, copied):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OtherVersions)
        (found,) = RunFolder.open(copied / version / "interrupted").play()
    # the version that began it let rounding choose between vertices that tie
    np.testing.assert_allclose(found.runs[0].losses, expected(version)["losses"], rtol=1e-5)


# --- tidewolf 0.1 ---------------------------------------------------------------------------------


def test_a_state_of_0_1_is_refused():
    with pytest.raises(
        OlderFormat,
        match=(
            r"state: The saved state was written by tidewolf 0\.1, whose learners remember other "
            r"things: go on with tidewolf 0\.1, or start anew\."
        ),
    ):
        tw.Session.load(FIXTURES / "format1" / "state", LEARNERS["state"])


@pytest.mark.parametrize("name", DATABASES)
def test_a_database_of_0_1_is_observed_again(name, copied):
    path, learner = copied / "format1" / name, LEARNERS[name]
    with pytest.warns(OtherVersions, match=AGAIN.format(name=name)) as said:
        session = tw.Session.open(path, learner)
    assert said[0].filename == __file__
    seen = list(session.history())
    assert session.rounds == sum(each.rounds for each in seen) == ROUNDS
    again = learner.start()
    for each in seen:
        again = learner.update(again, each)
    assert learner.save(again) == learner.save(session.state)
    met = decisions(session)
    assert learner.hard_set.excess(np.array(met[-1])) < 1e-9
    session.close()
    with tw.Session.open(path, learner) as session:  # and nothing more is said
        assert session.rounds == ROUNDS + len(met)
        assert [each.rounds for each in session.history()][:ROUNDS] == [x.rounds for x in seen]


def test_a_database_of_0_1_can_be_looked_at_and_stays_as_it_is(copied):
    path = copied / "format1" / "session.db"
    before = path.read_bytes()
    with (
        pytest.warns(OtherVersions, match=AGAIN.format(name="session.db")),
        tw.Session.open(path, LEARNERS["session.db"], read_only=True) as session,
    ):
        assert session.rounds == len(list(session.history())) == ROUNDS
    assert path.read_bytes() == before
    assert not Path(f"{path}-lock").exists()


@pytest.mark.parametrize("at", [0, 5, 11])
def test_a_kill_while_a_database_of_0_1_is_observed_again_loses_nothing(at, copied, monkeypatch):
    path, learner = copied / "format1" / "session.db", LEARNERS["session.db"]
    killed, add = copied / "killed.db", Tables.add

    def adds(self: Tables, row: Any) -> None:
        add(self, row)
        if row.arrived == at + 1:
            for end in ("", "-wal"):
                if Path(f"{path}{end}").exists():
                    shutil.copy(f"{path}{end}", f"{killed}{end}")
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Tables, "add", adds)
        with pytest.raises(KeyboardInterrupt):
            tw.Session.open(path, learner)
    for each in (path, killed):
        db = sqlite3.connect(each)
        assert db.execute("PRAGMA user_version").fetchone() == (1,)
        assert db.execute("SELECT count(*) FROM observations").fetchone() == (ROUNDS,)
        db.close()
        with pytest.warns(OtherVersions, match="observed again"):
            session = tw.Session.open(each, learner)
        assert session.rounds == ROUNDS
        session.close()


def test_where_the_warning_is_an_error_the_file_stays_as_it_was(copied):
    path = copied / "format1" / "session.db"
    with pytest.raises(OtherVersions):
        tw.Session.open(path, LEARNERS["session.db"])
    db = sqlite3.connect(path)
    assert db.execute("PRAGMA user_version").fetchone() == (1,)
    db.close()


def test_a_database_of_0_1_that_cannot_be_observed_again_is_refused(copied):
    path = copied / "format1" / "session.db"
    with pytest.raises(OtherSettings, match=r"was written by a LyapunovDescent, not by a Drift"):
        tw.Session.open(path, LEARNERS["functions.db"])
    with pytest.raises(tw.core.errors.BrokenFile, match=r"what no LyapunovDescent observes: "):
        tw.Session.open(path, tw.LyapunovDescent(tw.sets.Simplex(9)))
    db = sqlite3.connect(path)
    with db:  # as with keep_history=False
        db.execute("UPDATE head SET first = last, base = link")
        db.execute("DELETE FROM observations")
    db.close()
    with pytest.raises(
        OlderFormat,
        match=r"session\.db was written by tidewolf 0\.1 without the history of its first rounds",
    ):
        tw.Session.open(path, LEARNERS["session.db"])


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE observations SET data = zeroblob(9) WHERE number = 3",
        "DELETE FROM observations WHERE number = 12",
        "UPDATE head SET link = zeroblob(32)",
        "UPDATE snapshot SET state = zeroblob(9)",
        "DELETE FROM head",
        "DROP TABLE snapshot",
        "CREATE VIEW more AS SELECT 1",
    ],
)
def test_a_database_of_0_1_that_was_changed_is_refused(statement, copied):
    path = copied / "format1" / "session.db"
    db = sqlite3.connect(path)
    with db:
        db.execute(statement)
    db.close()
    with pytest.raises(tw.core.errors.BrokenFile, match=r"session\.db is truncated or was changed"):
        tw.Session.open(path, LEARNERS["session.db"])


def test_a_run_folder_of_0_1_is_reported_and_not_resumed(copied, capsys):
    folder = copied / "format1" / "run"
    kept = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert main(["report", str(folder), "--quiet"]) == 0
    page = (folder / "report.html").read_text()
    assert "LyapunovDescent" in page
    for path in (folder, copied / "format1" / "interrupted"):
        assert main(["resume", str(path)]) == 2
        said = capsys.readouterr().err
        assert "was begun by tidewolf 0.1" in said.replace("\n", " ")
        assert "Traceback" not in said
    assert all(path.read_bytes() == data for path, data in kept.items())
    (found,) = RunFolder.open(folder).recorded()
    np.testing.assert_array_equal(found.runs[0].losses, expected("format1")["losses"])
    summary = json.loads((folder / "summary.json").read_text())["runs"][0]
    assert found.runs[0].bound.regret == summary["bound"]["regret"]
    assert found.runs[0].certificate.holds
