"""`tidewolf live`, end to end: real processes, real files, rows in and decisions out."""

import contextlib
import json
import os
import pty
import random
import re
import select
import signal
import sys
import tempfile
import time
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

import tidewolf as tw
from test_experiments import LINKS, NAMES
from tidewolf import live as live_runner
from tidewolf.cli import main
from tidewolf.core.errors import InvalidInput, OtherSettings
from tidewolf.experiments.building import RoundReader
from tidewolf.live import Follower, LiveRunner, expected, live_learner, parse, time_of

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
experts = ["last"]
"""
ROUNDS, RNG = 20, np.random.default_rng(7)
T = np.arange(ROUNDS)[:, None]
COSTS = 2.0 + np.sin(2.0 * np.pi * (T / 24 + np.linspace(0.0, 1.0, 7)))
COSTS += 0.1 * RNG.random((ROUNDS, 7))
CAPACITIES = 0.6 + 0.2 * np.cos(2.0 * np.pi * T / 24) + 0.1 * RNG.random((ROUNDS, 7))
TIMES = (datetime(2026, 3, 1) + timedelta(hours=t) for t in range(ROUNDS))
TIMES = [time.isoformat(timespec="minutes") for time in TIMES]


def row(t, **more):
    """The row of a round, from 0."""
    costs = dict(zip(NAMES, COSTS[t].tolist(), strict=True))
    return {"time": TIMES[t], "costs": costs, "capacities": CAPACITIES[t].tolist(), **more}


def text(*rows):
    return "".join(json.dumps(one) + "\n" for one in rows)


def table_line(t, values):
    return f"{TIMES[t]},{','.join(map(repr, values[t].tolist()))}\n"


def written(tmp_path):
    """The file of an experiment, with tables of one row."""
    (tmp_path / "links.csv").write_text("tail,head\n" + "".join(f"{a},{b}\n" for a, b in LINKS))
    header = f"time,{','.join(NAMES)}\n"
    (tmp_path / "costs.csv").write_text(header + table_line(0, COSTS))
    (tmp_path / "capacities.csv").write_text(header + table_line(0, CAPACITIES))
    file = tmp_path / "network.toml"
    file.write_text(NETWORK)
    return file


@pytest.fixture
def network(tmp_path):
    return written(tmp_path)


def runner(network, database="routing.db", **more):
    reader = RoundReader(tw.experiments.load(network))
    return LiveRunner(reader, live_learner(reader), network.with_name(database), **more)


def answers(network, *rows, database="whole.db"):
    """The decisions of the rounds, computed in this process: entry k is the answer to row k."""
    with runner(network, database) as one:
        return [one.answer(), *(one.take(parse(json.dumps(each))) for each in rows)]


def taken(one, given):
    """The answer to a row, as data."""
    return json.loads(one.take(parse(json.dumps(given))))


@pytest.fixture(scope="module")
def launcher(servers, tmp_path_factory):
    """Whoever starts commands (processes.py)."""
    network = written(tmp_path_factory.mktemp("first"))
    arguments = ["live", str(network), "--db", str(network.with_name("a.db")), "--follow", "--once"]
    assert servers.ask("here", arguments) == 0  # whatever is compiled is at hand from now on
    return servers


class Live:
    """The command, running in a process of its own."""

    def __init__(self, launcher, network, *more, stdout=None):
        folder = Path(tempfile.mkdtemp(dir=network.parent))
        files = [str(folder / name) for name in ("stdin", "stdout", "stderr")]
        for path in files:
            os.mkfifo(path)
        asked = ["live", str(network), "--db", str(network.with_name("routing.db")), *more]
        files[1] = stdout or files[1]
        self._launcher, self.process = launcher, launcher.ask("fork", asked, files)
        self._stdin = os.open(files[0], os.O_WRONLY)
        self._stdout = os.open(files[1], os.O_RDONLY) if stdout is None else None
        self._stderr = os.open(files[2], os.O_RDONLY)
        self._rest, self._code = b"", None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self._code is None:
            self.end(signal.SIGKILL)

    def send(self, data):
        for part in range(0, len(data), 1 << 15):
            os.write(self._stdin, data[part : part + (1 << 15)].encode())

    def line(self, seconds=60.0):
        """The next line of stdout; None where none comes in time, or it ended."""
        end = time.monotonic() + seconds
        while b"\n" not in self._rest:
            assert self._stdout is not None
            ready, _, _ = select.select([self._stdout], [], [], max(0.0, end - time.monotonic()))
            data = os.read(self._stdout, 1 << 16) if ready else b""
            if not data:
                return None
            self._rest += data
        line, _, self._rest = self._rest.partition(b"\n")
        return line.decode()

    def send_no_more(self):
        os.close(self._stdin)
        self._stdin = -1

    def said(self, upto):
        """What it says on stderr, up to this."""
        found = b""
        while upto not in found and (data := os.read(self._stderr, 1 << 16)):
            found += data
        return found

    def end(self, number=None):
        """Its exit code and what else it said on stderr, after a signal or the end of its rows."""
        if number is not None:
            os.kill(self.process, number)
        elif self._stdin >= 0:
            self.send_no_more()
        said = self.said(b"\0")
        self._code = self._launcher.ask("wait", self.process)
        for file in (self._stdin, self._stdout, self._stderr):
            if file is not None and file >= 0:
                os.close(file)
        return self._code, said.decode()


def test_rows_by_pipe_halves_doubles_conflicts_nonsense_and_a_kill(launcher, network):
    """One life: each line is answered by one line, and nothing but rows changes anything."""
    expected = answers(network, *map(row, range(8)))
    with Live(launcher, network) as live:
        assert live.line(0.2) is None  # line k is the decision of round k + 1
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
        assert "'costs'" in refused[2]["error"]
        live.send(text(row(2)))
        assert live.line() == expected[3]
        _, said = live.end(signal.SIGKILL)
        assert re.findall(r"^Line (\d)", said, re.MULTILINE) == ["5", "6", "8"]

    with Live(launcher, network) as again:
        again.send(text(*map(row, range(1, 8))) + '{"costs": [1')
        assert [again.line() for _ in range(7)] == expected[2:9]
        again.send_no_more()
        assert json.loads(again.line() or "")["line"] == 8  # it ends in the middle
        assert again.end()[0] == 3


@pytest.mark.parametrize(("kills", "seed"), [(5, 0), pytest.param(150, 1, marks=pytest.mark.soak)])
def test_killed_at_any_moment_it_answers_as_if_it_never_was(launcher, network, kills, seed):
    """Whoever sends again what was not answered gets the very lines of a life without a kill."""
    expected, rng = answers(network, *map(row, range(ROUNDS))), random.Random(seed)
    done = busy = 0
    for _ in range(kills):
        first = max(0, done - 2)  # also some that were answered
        with Live(launcher, network) as live:
            live.send(text(*map(row, range(first, ROUNDS))))
            found = [live.line() for _ in range(rng.randrange(0, 5))]
            time.sleep(0.02 * rng.random())
            os.kill(live.process, signal.SIGKILL)
            while (line := live.line()) is not None:
                found.append(line)
        assert found == expected[first + 1 : first + 1 + len(found)]
        busy += first + len(found) > done
        done = max(done, first + len(found))
        if done >= ROUNDS - 5:
            done = 0
            for path in network.parent.glob("routing.db*"):
                path.unlink()
    assert busy >= kills // 4
    with runner(network) as one:
        assert one.rounds in (done, done + 1)
        for t in range(ROUNDS):
            assert one.take(parse(text(row(t)))) == expected[t + 1]


def test_growing_tables_are_followed_and_stopped_by_a_signal(launcher, network):
    """Two tables that grow at different speeds, half a line at a time; then a past line changes."""
    expected = answers(network, *map(row, range(4)))
    costs, capacities = (network.with_name(f"{name}.csv") for name in ("costs", "capacities"))
    with Live(launcher, network, "--follow", "--every", "0.05") as live:
        assert live.line() == expected[1]
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
        assert live.end(signal.SIGINT) == (130, "Stopped after 3 rows; the same command resumes.\n")


def test_once_prints_the_next_decision_and_writes_nothing(network, capsys):
    assert command(network, "--once") == 0
    first = capsys.readouterr().out
    assert not network.with_name("routing.db").exists()
    expected = answers(network, *map(row, range(3)), database="routing.db")
    assert first.rstrip() == expected[0]
    assert command(network, "--once") == 0
    assert capsys.readouterr().out.rstrip() == expected[3]
    with runner(network) as busy:  # while another process takes rows
        assert command(network, "--once") == 0
        assert capsys.readouterr().out.rstrip() == expected[3]
        assert busy.rounds == 3


def test_a_terminal_is_shown_text_and_a_term_ends_with_the_row(launcher, network):
    ours, theirs = pty.openpty()
    with Live(launcher, network, stdout=os.ttyname(theirs)) as live:
        live.send(text(row(0)) + "nonsense\n")
        assert live.said(b"\n").startswith(b"Line 2: ")
        shown = b""
        while b"oved" not in shown:  # the line that says why comes last
            shown += os.read(ours, 1 << 16)
        assert live.end(signal.SIGTERM) == (3, "Stopped after 1 row; the same command resumes.\n")
    os.close(theirs)
    os.close(ours)
    lines = shown.decode().replace("\r", "").splitlines()
    assert lines[0].startswith("Round 2; the round before cost 6.")
    assert re.fullmatch(r" +0\.\d{4}  SEA > .* > NYC", lines[1])


# --- within this process ------------------------------------------------------------------------


def state(one):
    return one.learner.save(one.session.state)


def test_whatever_is_refused_changes_nothing(network):
    with runner(network) as one:
        for t in range(3):
            one.take(parse(text(row(t))))
        before, answer = state(one), one.answer()
        early = (datetime(2026, 3, 1) + timedelta(minutes=90)).isoformat()
        bad = [
            ({**row(1), "costs": [1.0] * 7}, "Round 2"),
            ({**row(2), "played": {"SEA > DEN": 1.0}}, "Round 3"),
            ({**row(2), "unavailable": ["SEA > DEN"]}, "Round 3"),
            ({**row(3), "time": early}, early),
            ({**row(3), "round": 9}, "round 9"),
            ({**row(3), "round": 2}, "round 2"),
            ({**row(2), "round": 4}, "round 4"),
            ({"costs": [1.0] * 7}, "neither a time nor a round"),
            ({**row(3), "costs": {"SEA > DNE": 1.0}}, "SEA > DNE"),
            ({**row(3), "costs": [1.0, 2.0]}, "7"),
            ({**row(3), "played": {"SEA > DNE": 1.0}}, "SEA > DNE"),
            ({**row(3), "played": [0.3] * 7}, "played"),
            ({**row(3), "played": "x"}, "played"),
            ({**row(3), "unavailable": ["DEN > NYC", "HOU > NYC"]}, "path"),
            ({**row(3), "unavailable": ["nowhere"]}, "nowhere"),
            ({**row(3), "unavailable": 3.5}, "unavailable"),
            ({**row(3), "advice": [1.0]}, "(?i)advice"),
            ({"unavailable": ["DEN > NYC", "HOU > NYC"]}, "path"),
            ({"unavailable": [], "round": 2}, "round 2"),
            ({"time": TIMES[1]}, TIMES[1]),
        ]
        for given, names in bad:
            with pytest.raises(InvalidInput, match=names):
                one.take(parse(text(given)))
            assert (state(one), one.answer()) == (before, answer), given
        one.take(parse(text(row(3))))
    assert answers(network, *map(row, range(4)))[-1] == one.answer()


def test_rows_without_times_count_and_are_known_by_their_round(network):
    rows = [{key: value for key, value in row(t).items() if key != "time"} for t in range(3)]
    with pytest.raises(InvalidInput, match="time"), runner(network, "other.db") as one:
        one.take(parse(text(rows[0])))
    network.write_text(NETWORK.replace('"1d"', "24"))
    with runner(network) as one:
        found = [one.take(parse(text(each))) for each in rows]
        assert "after" not in json.loads(found[-1])
        assert one.take(parse(text({**rows[0], "round": 1}))) == found[0]
        assert one.take(parse(text({**rows[2], "round": 3}))) == found[2]
        with pytest.raises(InvalidInput, match="Round 1"):
            one.take(parse(text({**rows[1], "round": 1})))
        assert one.rounds == 3


def test_what_is_out_is_out_in_the_coming_round_and_kept(network):
    with runner(network) as one:
        answer = taken(one, row(0, unavailable=["SEA > DEN"]))
        assert answer["decision"]["SEA > DEN"] == 0.0
        assert "because SEA > DEN is out" in answer["why"]
        kept = one.answer()
    with runner(network) as one:
        assert one.answer() == kept
        again = taken(one, {"unavailable": ["DEN > NYC"]})  # decided anew
        assert again["round"] == 2
        assert again["decision"]["DEN > NYC"] == 0.0 < again["decision"]["SEA > DEN"]
        told = one.answer()
        assert one.take(parse(text({"unavailable": ["DEN > NYC"]}))) == told
        assert taken(one, {"unavailable": []})["decision"]["DEN > NYC"] > 0.0  # it is back
        assert one.take(parse(text({"unavailable": ["DEN > NYC"]}))) == told
    with runner(network) as one:
        assert one.answer() == told
        assert one.take(parse(text(row(0, unavailable=["SEA > DEN"])))) == told
        assert taken(one, row(1))["decision"]["DEN > NYC"] > 0.0
    # as the library has it
    session = tw.Session(one.learner)
    session.observe(costs=COSTS[0], capacities=CAPACITIES[0])
    x = session.play(unavailable=["DEN > NYC"])
    assert again["decision"] == dict(zip(NAMES, x.tolist(), strict=True))


@pytest.mark.parametrize("stop", ["_decide", "observe", "_next_decision"])
def test_stopped_at_each_step_of_a_row_it_goes_on_alike(network, monkeypatch, stop):
    """Before the row is observed, before the next round is decided, before it is answered."""

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    rows = [row(0), row(1), row(2, unavailable=["DEN > HOU"]), row(3)]
    expected = answers(network, *rows)
    for t, one_row in enumerate(rows):
        with runner(network) as one, monkeypatch.context() as patch:
            assert one.answer() == expected[t]
            patch.setattr(tw.Session if stop == "observe" else LiveRunner, stop, interrupted)
            with contextlib.suppress(KeyboardInterrupt):
                one.take(parse(text(one_row)))
        with runner(network) as one:
            assert one.rounds == t + (stop != "observe")
            assert one.answer() == expected[one.rounds]
            assert one.take(parse(text(one_row))) == expected[t + 1]


def test_a_session_in_memory_decides_alike(network):
    """Line by line what `Session` answers, told when the coming row is expected."""
    found = [json.loads(answer) for answer in answers(network, *map(row, range(6)))]
    with runner(network, "other.db") as one:
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


def follower(tmp_path, **tables):
    for name, content in tables.items():
        (tmp_path / f"{name}.csv").write_text(content)
    return Follower({name: tmp_path / f"{name}.csv" for name in tables})


def test_a_table_that_is_shorter_is_waited_for_and_then_refused(tmp_path):
    one = follower(tmp_path, costs="a,b\n1,2\n3,4\n")
    assert [line.round for _, line in one.poll()] == [1, 2]
    path = tmp_path / "costs.csv"
    path.write_text("a,b\n")  # in the middle of being written anew
    assert one.poll() == []
    path.write_text("a,b\n1,2\n3,4\n5,6\n")
    ((_, line),) = one.poll()
    assert (line.round, line.numbers) == (3, {"costs": {"a": 5.0, "b": 6.0}})
    for text, where in (("a,b\n1,2\n9,4\n5,6\n", "line 3"), ("a,b\n1,2\n", "costs")):
        path.write_text(text)
        one._failures = 0
        for _ in range(3):
            assert one.poll() == []
        with pytest.raises(InvalidInput, match=where):
            one.poll()
    path.unlink()
    with pytest.raises(InvalidInput, match=r"costs\.csv"):
        one.poll()


def test_a_table_of_the_last_hours_is_read_again_each_time_it_is_written(tmp_path):
    one = follower(tmp_path, costs="time,a\n1,5\n2,6\n3,7\n")
    assert [line.time.stamp for _, line in one.poll()] == [1, 2, 3]
    path = tmp_path / "costs.csv"
    for text, new in (
        ("time,a\n2,6\n3,7\n4,8\n", [4]),
        ("time,a\n3,7\n4,8\n", []),
        ("time,a\n4,8\n5,9\n6,1\n", [5, 6]),
        ("time,a\n8,3\n", [8]),  # none of the last ones
    ):
        path.write_text(text)
        assert [line.time.stamp for _, line in one.poll()] == new
    for text, where in (
        ("time,a\n8,4\n9,1\n", "line 2"),  # a row that was taken changed
        ("time,a\n7,4\n8,3\n9,1\n", "line 2"),  # one came late
        ("time,a\n7,4\n", "costs"),  # the last one is gone
    ):
        path.write_text(text)
        one._failures = 3
        with pytest.raises(InvalidInput, match=where):
            one.poll()


def test_numbers_that_a_row_lacks_are_the_last_ones_also_after_a_kill(network):
    given = network.read_text().replace("[stream]", '[stream]\ngaps = "last"')
    network.write_text(given.replace('season = "1d"\nexperts = ["last"]\n', ""))
    whole = [row(0), row(1), row(2), row(3)]
    whole[1]["capacities"] = whole[0]["capacities"]
    whole[2]["costs"]["SEA > SFO"] = whole[1]["costs"]["SEA > SFO"]
    whole[3]["costs"]["SEA > DEN"] = whole[2]["costs"]["SEA > DEN"]
    whole[3]["capacities"][3] = whole[2]["capacities"][3]
    lacking = json.loads(json.dumps(whole))
    del lacking[1]["capacities"], lacking[3]["costs"]["SEA > DEN"]
    lacking[2]["costs"]["SEA > SFO"] = lacking[3]["capacities"][3] = None
    reader = RoundReader(tw.experiments.load(network))

    def taken(rows, name):
        found = []
        for one in rows:  # a process each
            with LiveRunner(reader, live_learner(reader), network.with_name(name)) as runner:
                found.append(runner.take(parse(json.dumps(one))))
        return found

    answers = taken(whole, "whole.db")
    assert taken(lacking, "lacking.db") == answers
    assert taken(lacking[2:], "lacking.db") == answers[2:]  # sent again
    with LiveRunner(reader, live_learner(reader), network.with_name("new.db")) as runner:
        with pytest.raises(InvalidInput):
            runner.take(parse(json.dumps(lacking[2])))  # nothing came before
        assert runner.rounds == 0


MANY = """
[set]
graph = "links.csv"
commodities = "commodities.csv"
"""


@pytest.fixture
def commodities(network):
    """The file of an experiment with two commodities and no tables."""
    network.with_name("commodities.csv").write_text("source,target,demand\nSEA,NYC,4\nSFO,NYC,1\n")
    network.write_text(MANY)
    return network


def test_many_commodities_whose_demands_move(commodities):
    given = {"costs": COSTS[0].tolist(), "capacities": [3.0] * 7}
    with runner(commodities) as one:
        first = json.loads(one.answer())
        assert {path["commodity"] for path in first["paths"]} == {"SEA > NYC", "SFO > NYC"}
        assert sum(path["volume"] for path in first["paths"]) == pytest.approx(5.0)
        demands = {"SEA > NYC": 2.0, "SFO > NYC": 6.0}
        answer = taken(one, {**given, "demands": demands})
        volumes = dict.fromkeys(demands, 0.0)
        for path in answer["paths"]:
            volumes[path["commodity"]] += path["volume"]
        assert volumes == pytest.approx(demands)
        kept = one.answer()
    with runner(commodities) as one:
        assert one.answer() == kept
        out = taken(one, {**given, "demands": [2.0, 6.0], "unavailable": ["DEN > NYC"]})
        carried = [value for name, value in out["decision"].items() if name.endswith("DEN > NYC")]
        assert carried == [0.0, 0.0]
        assert sum(path["share"] for path in out["paths"]) == pytest.approx(2.0)


def test_who_decides_is_the_first_that_is_named_or_ensemble(network):
    def learner(text):
        network.write_text(text)
        return live_learner(RoundReader(tw.experiments.load(network)))

    unnamed, found = NETWORK.partition("[[learners]]")[0], learner(NETWORK)
    K = found.K
    assert found == tw.Ensemble(K, experts=[tw.experts.Season("1d"), tw.experts.Resolve()])
    assert learner(unnamed) == tw.Ensemble(K, experts=[tw.experts.Resolve()])
    named = f'caution = 3.0\n{unnamed}[[learners]]\nname = "LyapunovDescent"\n'
    assert learner(named) == tw.LyapunovDescent(K, caution=3.0)


def test_gaps_have_the_last_number_or_are_not_learned_from(tmp_path):
    one = follower(tmp_path, costs="time,a\n1,5\n2,\n3,8\n", capacities="time,a\n1,1\n3,2\n4,3\n")
    tables = {name: tmp_path / f"{name}.csv" for name in ("costs", "capacities")}
    with pytest.raises(InvalidInput, match=r"csv, line 3|capacities"):
        one.poll()
    found = Follower(tables, gaps="last").poll()
    assert [line.numbers["costs"]["a"] for _, line in found] == [5.0, 5.0, 8.0]
    assert [line.numbers["capacities"]["a"] for _, line in found] == [1.0, 1.0, 2.0]
    assert [line is None for _, line in Follower(tables, gaps="unseen").poll()] == [
        False,
        True,
        False,
    ]
    np.savez(tmp_path / "costs.npz", values=np.eye(2))
    (_, (_, line)) = Follower({"costs": tmp_path / "costs.npz"}).poll()
    assert line.numbers == {"costs": {"0": 0.0, "1": 1.0}}


def test_advice_and_context_are_of_the_decision_that_follows(tmp_path):
    file = tmp_path / "two.toml"
    file.write_text(
        '[set]\nkind = "Simplex"\nn = 2\n[stream]\ncosts = "costs.csv"\n[[learners]]\n'
        'name = "Ensemble"\nexperts = ["incumbent"]\n[stream.advice]\nincumbent = "i.csv"\n'
    )
    learner = tw.Ensemble(tw.sets.Simplex(2), experts=["incumbent"])
    session = tw.Session(learner)
    with runner(file) as one:
        assert one.learner == learner
        for t in range(4):
            advice = {"incumbent": [0.25, 0.75]} if t % 2 else {"incumbent": {"entry 0": 1.0}}
            answer = taken(one, {"costs": [1.0, t], "advice": advice})
            session.observe(costs=[1.0, t])
            x = session.play(advice={"incumbent": [0.25, 0.75] if t % 2 else [1.0, 0.0]})
            assert list(answer["decision"].values()) == x.tolist()


def command(network, *more):
    return main(["live", str(network), "--db", str(network.with_name("routing.db")), *more])


def test_follow_once_takes_what_is_there(network, capsys):
    """A row with a gap is reported; a past line that changed is refused by its number."""
    network.write_text(NETWORK.replace("[stream]", '[stream]\ngaps = "unseen"'))
    expected = answers(network, row(0), row(2))
    assert command(network, "--follow", "--once") == 0
    assert capsys.readouterr().out.rstrip() == expected[1]
    table = network.with_name("costs.csv")
    with table.open("a") as grown:
        grown.write(f"{TIMES[1]}{',' * 7}\n{table_line(2, COSTS)}")
    with network.with_name("capacities.csv").open("a") as grown:
        grown.write(table_line(1, CAPACITIES) + table_line(2, CAPACITIES))
    assert command(network, "--follow", "--once") == 0
    found = capsys.readouterr()
    assert found.out.rstrip() == expected[2]
    assert "costs.csv, line 3" in found.err
    table.write_text(table.read_text().replace(repr(COSTS[2, 3].item()), "1.0"))
    assert command(network, "--follow", "--once") == 2
    assert f"{table}, line 4: " in capsys.readouterr().err


def test_what_the_command_refuses(network, monkeypatch, capsys):
    for every in ("0", "nan"):
        assert command(network, "--every", every) == 2
        assert "--every" in capsys.readouterr().err
    monkeypatch.setattr(live_runner, "LONGEST", 2000)
    rows = network.with_name("rows.jsonl")
    rows.write_text("9" * 5000 + "\n" + text(row(0)))
    with rows.open() as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        assert command(network) == 3
    refused, answer = map(json.loads, capsys.readouterr().out.splitlines())
    assert (refused["line"], answer["round"]) == (1, 2)
    network.write_text(NETWORK.replace("[stream]", '[stream]\ncontext = "costs.csv"'))
    assert command(network, "--follow") == 2
    assert "context" in capsys.readouterr().err


def test_other_settings_and_rounds_of_others_are_refused(network):
    """Also another demand: what was learned is measured by it."""
    one = runner(network)
    one.close()
    for change in (("[stream]", "demand = 90\n[stream]"), ('"1d"', '"12h"')):
        network.write_text(NETWORK.replace(*change, 1))
        with pytest.raises(OtherSettings):
            runner(network)
    network.write_text(NETWORK)
    with tw.Session.open(network.with_name("routing.db"), one.learner) as session:
        session.observe(costs=COSTS[0], capacities=CAPACITIES[0])
    with runner(network) as one:
        with pytest.raises(InvalidInput, match="Round 1"):
            one.take(parse(text({**row(0), "round": 1})))
        answer = taken(one, row(1, played={"SEA > DEN": 1.0, "DEN > NYC": 1.0}))
        assert answer["round"] == 3
        assert answer["cost"] == pytest.approx(COSTS[1, 0] + COSTS[1, 4])
        assert answer["violation"] == pytest.approx(1.0 - CAPACITIES[1, [0, 4]].min())
        assert one.session.overrides.rounds == 1
    with pytest.raises(InvalidInput, match="read-only"), runner(network, read_only=True) as one:
        one.take(parse(text(row(2))))


NO_ROWS = ["", "[1]", "{}", "[" * 100_000, '{"time": ' + "9" * 5000 + "}", b'{"time": "\xff"}']
NO_ROWS += ['{"time": null}', '{"costs": [NaN]}', '{"costs": [1], "costs": [2]}']
NO_ROWS += [f'{{{key}, "costs": [1]}}' for key in ('"round": 0', '"round": true', '"time": "noon"')]


@pytest.mark.parametrize("line", NO_ROWS)
def test_lines_that_are_not_rows(line):
    with pytest.raises(InvalidInput):
        parse(line)


@pytest.mark.parametrize(
    ("given", "upcoming"),
    [
        (["2026-03-01T00:00", "2026-03-01T01:00"], "2026-03-01T02:00"),
        (["2026-03-01 00:00:30", "2026-03-01 00:01:00"], "2026-03-01 00:01:30"),
        (["2026-03-01", "2026-03-02"], "2026-03-03"),
        (["2026-03-01T00:00Z", "2026-03-01T02:00+01:00", "2026-03-01T02:00Z"], "2026-03-01T03:00Z"),
        ([10, 20, 50, 60], 70),  # one that is missing shifts nothing
        ([0.5, 1.0], 1.5),
        ([2**60, 2**60 + 1], 2**60 + 2),
        ([5], None),
    ],
)
def test_the_next_time_is_expected(given, upcoming):
    found = expected([time_of(one) for one in given])
    assert (None if found is None else found.given) == upcoming
