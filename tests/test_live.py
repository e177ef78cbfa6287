"""`tidewolf live`, end to end: real processes, real files, rows in and decisions out."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import select
import signal
import subprocess
import sys
import time
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tidewolf as tw
from tidewolf.cli import main
from tidewolf.core.errors import CheckpointError, InvalidInput, OtherSettings
from tidewolf.live import Desk, Follower, live_learner, parse
from tidewolf.live.clock import Time, expected, time_of
from tidewolf.live.pipes import pieces

LINKS = [
    ("SEA", "DEN"),
    ("SEA", "SFO"),
    ("SFO", "DEN"),
    ("SFO", "HOU"),
    ("DEN", "NYC"),
    ("HOU", "NYC"),
    ("DEN", "HOU"),
]
NAMES = [f"{tail} > {head}" for tail, head in LINKS]
NETWORK = """
[set]
kind = "FlowPolytope"
graph = "links.csv"
source = "SEA"
target = "NYC"
[stream]
costs = "costs.csv"
capacities = "capacities.csv"
[[learners]]
name = "Ensemble"
season = "1d"
advice = ["last"]
"""
ROUNDS = 20
RNG = np.random.default_rng(7)
T = np.arange(ROUNDS)[:, None]
COSTS = (
    2.0 + np.sin(2.0 * np.pi * (T / 24 + np.linspace(0.0, 1.0, 7))) + 0.1 * RNG.random((ROUNDS, 7))
)
CAPACITIES = 0.6 + 0.2 * np.cos(2.0 * np.pi * T / 24) + 0.1 * RNG.random((ROUNDS, 7))
TIMES = [
    (datetime(2026, 3, 1) + timedelta(hours=t)).isoformat(timespec="minutes") for t in range(ROUNDS)
]


def row(t: int, **more: Any) -> dict[str, Any]:
    """The row of a round, from 0."""
    return {
        "time": TIMES[t],
        "costs": dict(zip(NAMES, COSTS[t].tolist(), strict=True)),
        "capacities": CAPACITIES[t].tolist(),
        **more,
    }


def text(*rows: dict[str, Any]) -> str:
    return "".join(json.dumps(one) + "\n" for one in rows)


def table_line(t: int, values: Any) -> str:
    return f"{TIMES[t]},{','.join(map(repr, values[t].tolist()))}\n"


@pytest.fixture
def network(tmp_path: Path) -> Path:
    """The file of an experiment, with tables of one row."""
    (tmp_path / "links.csv").write_text("tail,head\n" + "".join(f"{a},{b}\n" for a, b in LINKS))
    header = f"time,{','.join(NAMES)}\n"
    (tmp_path / "costs.csv").write_text(header + table_line(0, COSTS))
    (tmp_path / "capacities.csv").write_text(header + table_line(0, CAPACITIES))
    file = tmp_path / "network.toml"
    file.write_text(NETWORK)
    return file


def desk(network: Path, database: str = "routing.db", **more: Any) -> Desk:
    experiment = tw.experiments.load(network)
    reader = tw.experiments.RoundReader(experiment)
    return Desk(reader, live_learner(experiment, reader.K), network.with_name(database), **more)


def answers(network: Path, *rows: dict[str, Any], database: str = "whole.db") -> list[str]:
    """What is answered, within this process: the coming decision first."""
    with desk(network, database) as one:
        return [one.coming_text(), *(one.take_text(parse(json.dumps(each))) for each in rows)]


class Live:
    """The command, running."""

    def __init__(self, network: Path, *more: str, stdout: int = subprocess.PIPE) -> None:
        command = [sys.executable, "-m", "tidewolf", "live", str(network)]
        self.process = subprocess.Popen(
            [*command, "--db", str(network.with_name("routing.db")), *more],
            stdin=subprocess.PIPE,
            stdout=stdout,
            stderr=subprocess.PIPE,
            cwd=network.parent,
        )
        self._rest = b""

    def __enter__(self) -> Live:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            if pipe is not None:
                with contextlib.suppress(BrokenPipeError):
                    pipe.close()

    def send(self, data: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(data.encode())
        self.process.stdin.flush()

    def line(self, seconds: float = 60.0) -> str | None:
        """The next line of stdout; None where none comes in time, or it ended."""
        assert self.process.stdout is not None
        end = time.monotonic() + seconds
        while b"\n" not in self._rest:
            ready, _, _ = select.select([self.process.stdout], [], [], end - time.monotonic())
            data = os.read(self.process.stdout.fileno(), 1 << 16) if ready else b""
            if not data:
                return None
            self._rest += data
        line, _, self._rest = self._rest.partition(b"\n")
        return line.decode()

    def end(self, number: int | None = None) -> tuple[int, str]:
        """Its exit code and what it said on stderr, after a signal or the end of its rows."""
        if number is not None:
            self.process.send_signal(number)
        _, said = self.process.communicate(timeout=60)
        return self.process.returncode, said.decode()


def test_rows_by_pipe_halves_doubles_conflicts_nonsense_and_a_kill(network: Path) -> None:
    """One life: each line is answered by one line, and nothing but rows changes anything."""
    expected = answers(network, *map(row, range(8)))
    with Live(network) as live:
        assert live.line() == expected[0]
        live.send(text(row(0)))
        assert live.line() == expected[1]
        whole = text(row(1))
        live.send(whole[:40])
        assert live.line(0.4) is None  # half a line waits
        live.send(whole[40:])
        assert live.line() == expected[2]
        live.send(text(row(1), row(0)))
        assert [live.line(), live.line()] == [expected[2], expected[1]]  # the same row twice
        live.send(text({**row(1), "costs": [9.0] * 7}) + "{nonsense\n\n" + text({"cost": 1.0}))
        refused = [json.loads(live.line() or "") for _ in range(3)]
        assert [one["line"] for one in refused] == [5, 6, 8]
        assert refused[0]["error"] == (
            "The row of 2026-03-01T01:00 was taken already, with other values, which stand: "
            "nothing was learned."
        )
        assert "is no JSON" in refused[1]["error"]
        assert "the nearest are 'costs'" in refused[2]["error"]
        live.send(text(row(2)))
        assert live.line() == expected[3]
        live.process.kill()
        _, said = live.end()
        assert said.splitlines()[0].startswith("Line 5: The row of")

    with Live(network) as again:
        assert again.line() == expected[3]
        again.send(text(*map(row, range(1, 8))) + '{"costs": [1')
        again.process.stdin.close()  # type: ignore[union-attr]
        again.process.stdin = None
        assert [again.line() for _ in range(7)] == expected[2:9]
        assert json.loads(again.line() or "") == {
            "error": "The last line ends in the middle: send it whole.",
            "line": 8,
        }
        assert again.end()[0] == 0


@pytest.mark.parametrize(("kills", "seed"), [(5, 0), pytest.param(150, 1, marks=pytest.mark.soak)])
def test_killed_at_any_moment_it_answers_as_if_it_never_was(
    network: Path, kills: int, seed: int
) -> None:
    rows = network.with_name("rows.jsonl")
    rows.write_text(text(*map(row, range(ROUNDS))))
    script = Path(__file__).with_name("killed_live.py")
    done = subprocess.run(
        [sys.executable, str(script), str(network), str(rows), str(kills), str(seed)],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) >= 2


def test_growing_tables_are_followed_and_stopped_by_a_signal(network: Path) -> None:
    """Two tables that grow at different speeds, half a line at a time; then a past line changes."""
    expected = answers(network, *map(row, range(4)))
    costs, capacities = (network.with_name(f"{name}.csv") for name in ("costs", "capacities"))
    with Live(network, "--follow", "--every", "0.05") as live:
        assert [live.line(), live.line()] == expected[:2]
        line = table_line(1, COSTS)
        with costs.open("a") as grown:
            grown.write(line[:30])
            grown.flush()
            with capacities.open("a") as other:
                other.write(table_line(1, CAPACITIES) + table_line(2, CAPACITIES))
            assert live.line(0.3) is None
            grown.write(line[30:-1])
            grown.flush()
            assert live.line(0.3) is None  # as long as its end is not there
            grown.write("\n" + table_line(2, COSTS))
        assert [live.line(), live.line()] == expected[2:4]
        assert live.end(signal.SIGINT) == (130, "Stopped after 3 rows; the same command goes on.\n")

    with Live(network, "--follow", "--every", "0.05") as again:
        assert again.line() == expected[3]
        for path, values in ((costs, COSTS), (capacities, CAPACITIES)):
            with path.open("a") as grown:
                grown.write(table_line(3, values))
        assert again.line() == expected[4]
        costs.write_text(costs.read_text().replace("2026-03-01T01:00,", "2026-03-01T01:00,9"))
        assert again.line() is None
        code, said = again.end()
        assert (code, said) == (
            2,
            f"{costs}, line 3 was changed after it was taken. Put it back; rows are only added.\n",
        )


def test_once_prints_the_coming_decision_and_writes_nothing(
    network: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["live", str(network), "--db", str(network.with_name("routing.db")), "--once"]
    assert main(asked) == 0
    first = capsys.readouterr().out
    assert not network.with_name("routing.db").exists()
    expected = answers(network, *map(row, range(3)), database="routing.db")
    assert first.rstrip() == expected[0]
    assert main(asked) == 0
    assert capsys.readouterr().out.rstrip() == expected[3]
    with desk(network) as busy:  # while another process takes rows
        assert main(asked) == 0
        assert capsys.readouterr().out.rstrip() == expected[3]
        assert busy.rounds == 3


def test_follow_once_takes_what_is_there(network: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["live", str(network), "--db", str(network.with_name("routing.db")), "--follow"]
    expected = answers(network, *map(row, range(2)))
    assert main([*asked, "--once"]) == 0
    assert capsys.readouterr().out.rstrip() == expected[1]
    for name, values in (("costs", COSTS), ("capacities", CAPACITIES)):
        with network.with_name(f"{name}.csv").open("a") as grown:
            grown.write(table_line(1, values))
    assert main([*asked, "--once"]) == 0
    assert capsys.readouterr().out.rstrip() == expected[2]
    table = network.with_name("costs.csv")
    table.write_text(table.read_text().replace(repr(COSTS[1, 3].item()), "1.0"))
    assert main([*asked, "--once"]) == 2
    assert capsys.readouterr().err == (
        f"{table}, line 3: The row of 2026-03-01T01:00 was taken already, with other values, which "
        "stand: nothing was learned.\n"
    )


def test_a_terminal_is_shown_text_and_a_term_ends_with_the_row(network: Path) -> None:
    ours, theirs = pty.openpty()
    with Live(network, stdout=theirs) as live:
        os.close(theirs)
        live.send(text(row(0)) + "nonsense\n")
        assert live.process.stderr is not None
        assert live.process.stderr.readline().startswith(b"Line 2: The line is no JSON")
        shown = os.read(ours, 1 << 16).decode().replace("\r", "")
        assert live.end(signal.SIGTERM) == (0, "Stopped after 1 row; the same command goes on.\n")
    os.close(ours)
    lines = shown.splitlines()
    assert lines[0] == "Round 1"
    assert lines[1] == "    0.3333  SEA > DEN > NYC"
    assert any(line.startswith("Round 2; the round before cost 6.") for line in lines)


def test_nobody_reads_any_more(network: Path) -> None:
    with Live(network) as live:
        assert live.line() is not None
        live.process.stdout.close()  # type: ignore[union-attr]
        live.process.stdout = None
        live.send(text(*map(row, range(3))))
        assert live.end() == (0, "")


# --- within this process ------------------------------------------------------------------------


def state(one: Desk) -> bytes:
    saved: bytes = one.learner.save(one.session.state)
    return saved


def test_whatever_is_refused_changes_nothing(network: Path) -> None:
    with desk(network) as one:
        for t in range(3):
            one.take(parse(text(row(t))))
        before, answer = state(one), one.coming_text()
        early = (datetime(2026, 3, 1) + timedelta(minutes=90)).isoformat()
        bad: list[tuple[dict[str, Any], str]] = [
            ({**row(1), "costs": [1.0] * 7}, "was taken already, with other values"),
            ({**row(2), "played": {"SEA > DEN": 1.0}}, "was taken already, with other values"),
            ({**row(3), "time": early}, "does not come after that of the last row"),
            ({**row(3), "round": 9}, "round 4 is the coming one"),
            ({**row(3), "round": 2}, "and that round was at 2026-03-01T01:00"),
            ({**row(2), "round": 4}, "does not come after"),
            ({"costs": [1.0] * 7}, "neither a time nor a round"),
            ({**row(3), "costs": {"SEA > DNE": 1.0}}, "SEA > DNE"),
            ({**row(3), "costs": [1.0, 2.0]}, "7"),
            ({**row(3), "played": {"SEA > DNE": 1.0}}, "the nearest are"),
            ({**row(3), "played": [0.3] * 7}, "no member of the set"),
            ({**row(3), "played": "x"}, "a number for each of 7 entries"),
            ({**row(3), "unavailable": ["DEN > NYC", "HOU > NYC"]}, "no path leads"),
            ({**row(3), "unavailable": ["nowhere"]}, "no entry of the set is called so"),
            ({**row(3), "unavailable": 3.5}, "is a list of names"),
            ({**row(3), "advice": [1.0]}, "Advice is points by name"),
            ({"unavailable": ["DEN > NYC", "HOU > NYC"]}, "no path leads"),
            ({"unavailable": [], "round": 2}, "round 4 is the coming one"),
            ({"time": TIMES[1]}, "what was decided stands"),
        ]
        for given, sentence in bad:
            with pytest.raises(InvalidInput, match=sentence):
                one.take(parse(text(given)))
            assert (state(one), one.coming_text()) == (before, answer), sentence
        one.take(parse(text(row(3))))
    assert answers(network, *map(row, range(4)))[-1] == one.coming_text()


def test_rows_without_times_count_and_are_known_by_their_round(network: Path) -> None:
    rows = [{key: value for key, value in row(t).items() if key != "time"} for t in range(3)]
    with desk(network) as one:
        found = [one.take_text(parse(text(each))) for each in rows]
        assert "after" not in json.loads(found[-1])
        assert one.take_text(parse(text({**rows[0], "round": 1}))) == found[0]
        assert one.take_text(parse(text({**rows[2], "round": 3}))) == found[2]
        with pytest.raises(InvalidInput, match="The row of round 1 was taken already, with other"):
            one.take(parse(text({**rows[1], "round": 1})))
        assert one.rounds == 3


def test_what_is_out_is_out_in_the_coming_round_and_kept(network: Path) -> None:
    with desk(network) as one:
        answer = one.take(parse(text(row(0, unavailable=["SEA > DEN"]))))
        assert answer["decision"]["SEA > DEN"] == 0.0
        assert "because SEA > DEN is out" in answer["why"]
        kept = one.coming_text()
    with desk(network) as one:
        assert one.coming_text() == kept
        again = one.take(parse(text({"unavailable": ["DEN > NYC"]})))  # decided anew
        assert again["round"] == 2
        assert again["decision"]["DEN > NYC"] == 0.0 < again["decision"]["SEA > DEN"]
        told = one.coming_text()
        assert one.take_text(parse(text({"unavailable": ["DEN > NYC"]}))) == told
    with desk(network) as one:
        assert one.coming_text() == told
        assert one.take_text(parse(text(row(0, unavailable=["SEA > DEN"])))) == told
        assert one.take(parse(text(row(1))))["decision"]["DEN > NYC"] > 0.0
    # as the library has it
    session = tw.Session(one.learner)
    session.observe(costs=COSTS[0], capacities=CAPACITIES[0])
    x = session.play(unavailable=["DEN > NYC"])
    assert again["decision"] == dict(zip(NAMES, x.tolist(), strict=True))


def test_what_was_played_is_what_cost(network: Path) -> None:
    with desk(network) as one:
        played = {"SEA > DEN": 1.0, "DEN > NYC": 1.0}
        answer = one.take(parse(text(row(0, played=played))))
        assert answer["cost"] == pytest.approx(COSTS[0, 0] + COSTS[0, 4])
        assert answer["violation"] == pytest.approx(1.0 - CAPACITIES[0, [0, 4]].min())
        assert one.session.overrides.rounds == 1


def test_a_session_in_memory_decides_alike(network: Path) -> None:
    """Line by line what `Session` answers, told when the coming row is expected."""
    found = [json.loads(answer) for answer in answers(network, *map(row, range(6)))]
    with desk(network, "other.db") as one:
        session = tw.Session(one.learner)
    for t, answer in enumerate(found):
        x = session.play(**({"time": TIMES[t]} if t >= 2 else {}))
        assert answer["round"] == t + 1
        assert answer["decision"] == dict(zip(NAMES, x.tolist(), strict=True))
        assert sum(path["share"] for path in answer["paths"]) == pytest.approx(1.0)
        assert answer["why"] == session.explain().in_short()
        if t >= 2:
            assert (answer["after"], answer["time"]) == (TIMES[t - 1], TIMES[t])
        if t < 6:
            session.observe(costs=COSTS[t], capacities=CAPACITIES[t])
            cost = float(COSTS[t] @ x)
            if t < 5:
                assert found[t + 1]["cost"] == pytest.approx(cost)


def test_other_settings_are_refused(network: Path) -> None:
    desk(network).close()
    network.write_text(NETWORK.replace('"1d"', '"12h"'))
    with pytest.raises(OtherSettings):
        desk(network)
    network.write_text(NETWORK)
    with pytest.raises(InvalidInput, match="to look"), desk(network, read_only=True) as one:
        one.take(parse(text(row(0))))


def test_rounds_that_others_observed_are_not_known_here(network: Path) -> None:
    one = desk(network)
    one.close()
    with tw.Session.open(network.with_name("routing.db"), one.learner) as session:
        session.observe(costs=COSTS[0], capacities=CAPACITIES[0])
    with desk(network) as one:
        with pytest.raises(InvalidInput, match="observed without being noted"):
            one.take(parse(text({**row(0), "round": 1})))
        assert one.take(parse(text(row(1))))["round"] == 3


def test_a_database_that_cannot_be_noted_in_says_so(network: Path) -> None:
    with desk(network) as one:
        before = one.coming_text()
        one._ledger._db.execute("DROP TABLE live_rows")  # type: ignore[union-attr]
        with pytest.raises(CheckpointError, match="no such table"):
            one.take(parse(text(row(0))))
        assert (one.rounds, one.coming_text()) == (0, before)


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("", "no JSON"),
        ("[1]", "A row is an object"),
        ("{}", "says nothing"),
        ('{"time": null}', "says nothing"),
        ('{"costs": [NaN]}', "NaN is no finite number"),
        ('{"costs": [1], "costs": [2]}', "says 'costs' twice"),
        ('{"round": 0, "costs": [1]}', "its number, from 1"),
        ('{"round": true, "costs": [1]}', "its number, from 1"),
        ('{"time": "noon", "costs": [1]}', "a date in ISO form"),
        ("[" * 100_000, "nested too deeply"),
        ('{"time": ' + "9" * 5000 + "}", "The line is no row"),
        (b'{"time": "\xff"}', "no text in UTF-8"),
    ],
)
def test_lines_that_are_no_rows(line: str | bytes, sentence: str) -> None:
    with pytest.raises(InvalidInput, match=sentence):
        parse(line)


@pytest.mark.parametrize(
    ("given", "coming"),
    [
        (["2026-03-01T00:00", "2026-03-01T01:00"], "2026-03-01T02:00"),
        (["2026-03-01 00:00:30", "2026-03-01 00:01:00"], "2026-03-01 00:01:30"),
        (["2026-03-01", "2026-03-02"], "2026-03-03"),
        (["2026-03-01T00:00Z", "2026-03-01T01:00Z"], "2026-03-01T02:00Z"),
        (["2026-03-01T00:00+01:00", "2026-03-01T01:00+01:00"], "2026-03-01T02:00+01:00"),
        ([10, 20, 50, 60], 70),  # one that is missing shifts nothing
        ([0.5, 1.0], 1.5),
        ([5], None),
    ],
)
def test_the_next_time_is_expected(given: list[Any], coming: Any) -> None:
    found = expected([time_of(one) for one in given])
    assert (None if found is None else found.said) == coming


def test_times_are_compared_as_moments() -> None:
    assert time_of("2026-03-01T01:00+01:00").stamp == time_of("2026-03-01T00:00Z").stamp
    assert time_of(2**60 + 1) == Time(2**60 + 1, 2**60 + 1)
    assert time_of(2.0).stamp == time_of(2).stamp


def test_lines_come_whole_and_the_longest_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    read, write = os.pipe()
    os.write(write, b"one\ntw")
    os.write(write, b"o\n\nthree")
    os.close(write)
    found = [(piece.text, piece.number, piece.is_whole) for piece in pieces(read)]
    os.close(read)
    assert found == [(b"one", 1, True), (b"two", 2, True), (b"", 3, True), (b"three", 4, False)]


def follower(tmp_path: Path, **tables: str) -> Follower:
    for name, content in tables.items():
        (tmp_path / f"{name}.csv").write_text(content)
    return Follower({name: tmp_path / f"{name}.csv" for name in tables})


def test_tables_with_other_times_are_refused(tmp_path: Path) -> None:
    one = follower(tmp_path, costs="time,a\n1,5\n2,6\n", capacities="time,a\n1,5\n3,6\n")
    with pytest.raises(InvalidInput, match=r"capacities.csv, line 3: the time is 3, where .*has 2"):
        one.poll()


def test_a_table_that_is_shorter_is_waited_for_and_then_refused(tmp_path: Path) -> None:
    one = follower(tmp_path, costs="a,b\n1,2\n3,4\n")
    assert [grown.line.round for grown in one.poll()] == [1, 2]
    path = tmp_path / "costs.csv"
    path.write_text("a,b\n")  # in the middle of being written anew
    assert one.poll() == []
    path.write_text("a,b\n1,2\n3,4\n5,6\n")
    (grown,) = one.poll()
    assert (grown.line.round, grown.line.numbers) == (3, {"costs": {"a": 5.0, "b": 6.0}})
    path.write_text("a,b\n1,2\n")
    for _ in range(3):
        assert one.poll() == []
    with pytest.raises(InvalidInput, match=r"costs.csv became shorter: line 3 is gone"):
        one.poll()
    path.unlink()
    with pytest.raises(InvalidInput, match="cannot be read: No such file"):
        one.poll()


def test_a_cell_that_is_no_number_is_named_by_its_line(tmp_path: Path) -> None:
    one = follower(tmp_path, costs="time,a\n1,5\n")
    assert len(one.poll()) == 1
    with (tmp_path / "costs.csv").open("a") as grown:
        grown.write("2,5\n3,x\n")
    for _ in range(3):
        assert one.poll() == []
    with pytest.raises(InvalidInput) as refused:
        one.poll()
    assert (
        str(refused.value)
        == f"{tmp_path / 'costs.csv'}, line 4, column \"a\": 'x' is not a number."
    )


def test_other_kinds_of_tables_grow_too(tmp_path: Path) -> None:
    path, values = tmp_path / "costs.npz", np.arange(6.0).reshape(3, 2)
    np.savez(path, values=values[:2])
    one = Follower({"costs": path})
    assert len(one.poll()) == 2
    np.savez(path, values=values)
    assert [grown.line.numbers for grown in one.poll()] == [{"costs": {"0": 4.0, "1": 5.0}}]
    np.savez(path, values=values + np.array([[0.0], [1.0], [0.0]]))
    for _ in range(3):
        assert one.poll() == []
    with pytest.raises(InvalidInput, match="row 2 was changed after it was taken"):
        one.poll()
