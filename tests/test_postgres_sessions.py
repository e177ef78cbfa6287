"""Sessions in PostgreSQL go on to the bit: whoever is killed, stopped, cut off or restarted, all
that was acknowledged is there, and nothing is there twice.
"""

import os
import signal
import subprocess
import sys
import time
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import tidewolf as tw
from interpreter import python
from killed import LEARNERS, observe, patiently, saved, uninterrupted
from servers import LOST, Caller
from serving import until
from test_postgres import cut_off, through, transport  # noqa: F401  (a fixture)
from tidewolf.core.errors import AlreadyThere, CheckpointError, HeldElsewhere, UnknownSession
from tidewolf.storage import SessionStore, copies, session_store
from transport import never

SCRIPT = str(Path(__file__).with_name("killed.py"))
LEARNER, ROUNDS = LEARNERS["LyapunovDescent"], 60


@cache
def saved_in_memory():
    """What a session in memory would save, before the first round and after each."""
    return uninterrupted(LEARNER, observe, ROUNDS)


def opened(store, name):
    return patiently(lambda: tw.Session.open(store, LEARNER, name=name, snapshot_every=9))


def is_as_expected(session):
    return saved(session) == saved_in_memory()[session.rounds]


def go_on(store, name, rounds):
    """Up to so many rounds, each acknowledged; the bits are those of a session in memory."""
    session = opened(store, name)
    assert is_as_expected(session)
    for t in range(session.rounds, rounds):
        observe(session, t)
        store.flushed(name).result()
    assert is_as_expected(session)


# --- one process ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "kills"),
    [
        ("late", 4),
        *(
            pytest.param(name, 40, marks=pytest.mark.soak)
            for name in (*LEARNERS, "Follower", "Ensemble", "late Ensemble")
        ),
    ],
)
def test_killed_at_any_moment_it_goes_on_to_the_bit(postgres_url, tmp_path, name, kills):
    assert int(python(SCRIPT, postgres_url, name, kills, 1, tmp_path)) >= kills // 4


def test_cut_at_any_message_of_an_observation_it_goes_on_to_the_bit(
    postgres_url,
    transport,  # noqa: F811
):
    url, t = through(transport, postgres_url), 0
    store = SessionStore.open(url, commit_within=0.0, holder="cut")
    store.create("one", "{}").result()
    session, failed, kept = opened(store, "one"), 0, 0
    for cut in range(2 * 10):
        began = next(transport.count)
        judge = lambda number, said, last=began + 1 + cut // 2: number == last  # noqa: E731
        transport.before, transport.after = (judge, never) if cut % 2 else (never, judge)
        try:
            observe(session, t)
            store.flushed("one").result()
        except CheckpointError:
            transport.before = transport.after = never
            until(lambda: store.commits.trouble is None)
            session, failed = opened(store, "one"), failed + 1
            assert session.rounds in (t, t + 1)
            kept += session.rounds - t
        assert is_as_expected(session)
        t = session.rounds
        transport.before = transport.after = never
    assert failed > kept
    store.close()


# --- two servers ----------------------------------------------------------------------------------


@pytest.fixture
def pair(postgres_url):
    """Two servers of one database, and a session that the first holds."""
    stores = [SessionStore.open(postgres_url, holder=holder) for holder in ("first", "second")]
    stores[0].create("one", "{}").result()
    go_on(stores[0], "one", 3)
    yield stores
    for store in stores:
        store.close()


def test_while_its_holder_is_there_nobody_else_gets_a_session(pair):
    first, second = pair
    with pytest.raises(HeldElsewhere, match="held by the server first: ask that one") as caught:
        tw.Session.open(second, LEARNER, name="one")
    assert caught.value.holder == "first"
    with pytest.raises(HeldElsewhere):
        second.delete("one").result()
    assert second.info("one").holder.startswith("first#")
    first.close()
    go_on(second, "one", 6)
    assert second.info("one").holder == second.holder


def test_what_was_taken_is_written_to_by_nobody_else(
    postgres_url,
    transport,  # noqa: F811
):
    first = SessionStore.open(through(transport, postgres_url), holder="first")
    second = SessionStore.open(postgres_url, holder="second")
    first.create("one", "{}").result()
    go_on(first, "one", 3)
    session, transport.down = opened(first, "one"), True
    transport.cut()
    go_on(second, "one", 4)  # the first is gone as long as it has no connection
    until(lambda: first.commits.trouble)
    transport.down = False
    until(lambda: first.commits.trouble is None)
    with pytest.raises(CheckpointError, match="may have been taken by another server"):
        observe(session, 3)
    assert not first.holds("one")
    for write in (
        lambda: first.set("one", '{"mode": "frozen"}'),
        lambda: first.note("one", session_store.Round(9, 0.0, None, None, b"")),
    ):
        write()
        with pytest.raises(HeldElsewhere) as caught:
            first.flushed("one").result()
        assert caught.value.holder == "second"
    with pytest.raises(HeldElsewhere):
        tw.Session.open(first, LEARNER, name="one")
    go_on(second, "one", 6)
    assert (second.info("one").settings, second.rounds_of("one", 9, 9)) == ("{}", [])
    first.close()
    second.close()


def test_names_are_given_once_and_numbers_never_again(pair):
    made = []

    def make(store):
        for number in range(8):
            with suppress(AlreadyThere):
                with store.transaction(f"x{number}") as transaction:
                    store.create(f"x{number}", store.holder)
                    store.audit("ada", f"x{number}", "put")
                transaction.future.result()
                made.append(f"x{number}")

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(make, pair))
    assert sorted(made) == [info.name for info in pair[0].infos("x")]
    assert sorted(made) == [f"x{number}" for number in range(8)]
    entries = pair[1].entries()
    assert [entry.number for entry in entries] == list(range(1, 9))
    assert sorted(entry.session for entry in entries) == sorted(made)
    first, second = pair
    observe(opened(first, made[-1]), 0)
    first.delete(made[-1]).result()
    second.create(made[-1], "anew").result()
    assert opened(second, made[-1]).rounds == 0
    assert not first.holds(made[-1])


def test_what_the_database_cannot_keep_fails_alone(pair):
    first, _ = pair
    with first.transaction("one") as good:
        first.audit("ada", "one", "pin", "a reason")
    with first.transaction("one") as bad:
        first.audit("ada", "one", "pin", "a reason\0")
    good.future.result()
    with pytest.raises(CheckpointError, match="cannot keep this"):
        bad.future.result()
    assert [entry.why for entry in first.entries("one")] == ["a reason"]
    assert first.commits.trouble is None


def test_the_audit_is_never_changed(pair, postgres_server):
    first, _ = pair
    first.audit("ada", "one", "pin", "a reason")
    first.flushed("one").result()
    name = first.where.partition("?")[0].rpartition("/")[2]
    for statement in ("UPDATE audit SET who = 'eve'", "DELETE FROM audit", "TRUNCATE audit"):
        with pytest.raises(Exception, match="rows of audit are never changed"):
            postgres_server.execute(statement, name)


def test_who_may_make_no_tables_is_told_so(postgres_server, postgres_url):
    with suppress(Exception):  # by an earlier test of this server
        postgres_server.execute("CREATE ROLE guest LOGIN")
    with pytest.raises(CheckpointError, match=r"kept in .*: permission denied"):
        SessionStore.open(postgres_url.replace("user=tidewolf", "user=guest"))


def test_names_are_in_the_order_of_their_characters_in_every_language(postgres_server):
    try:
        url = postgres_server.fresh("TEMPLATE template0 LOCALE_PROVIDER icu ICU_LOCALE 'en-US'")
    except Exception:
        url = postgres_server.fresh()  # built without other languages
    store = SessionStore.open(url)
    names = ["B", "a", "a-b", "a.b", "aB", "a_b", "aa", "ab", "b"]
    for name in reversed(names):
        store.create(name, "{}").result()
    assert [info.name for info in store.infos()] == names
    assert [info.name for info in store.infos("a", after="a.b", most=2)] == ["aB", "a_b"]
    assert len(store.infos("a")) == 7
    store.close()


def test_what_is_restored_is_what_its_server_goes_on_from(pair, postgres_url, tmp_path):
    first, second = pair
    assert copies.backup(postgres_url, tmp_path / "copy.db") == 1
    go_on(first, "one", 5)
    session = opened(first, "one")
    with pytest.raises(AlreadyThere):
        copies.restore(tmp_path / "copy.db", postgres_url)
    assert copies.restore(tmp_path / "copy.db", postgres_url, replace=True) == 1
    with suppress(CheckpointError):  # until the server has looked
        observe(session, 5)
        first.flushed("one").result()
    assert not first.holds("one")
    assert opened(first, "one").rounds == 3
    go_on(first, "one", 6)
    assert copies.restore(tmp_path / "copy.db", postgres_url, replace=True) == 1
    until(lambda: not first.holds("one"))  # nobody has to write
    go_on(second, "one", 4)
    assert copies.restore(tmp_path / "copy.db", tmp_path / "folder") == 1
    folder = SessionStore.open(tmp_path / "folder")
    go_on(folder, "one", 6)
    folder.close()
    with pytest.raises(UnknownSession) as caught:
        copies.backup(f"{postgres_url}&password=secret", tmp_path / "other.db", ["two"])
    assert "secret" not in str(caught.value)


# --- servers that are killed, stopped, restarted --------------------------------------------------


def test_a_server_that_slept_through_a_takeover_acknowledges_nothing_more(
    postgres_url, postgres_server
):
    command = [sys.executable, SCRIPT, "serve", postgres_url, "first"]
    with (
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process,
        closing(SessionStore.open(postgres_url, holder="second")) as store,
    ):
        try:
            told = [int(process.stdout.readline()) for _ in range(10)][-1]
            os.kill(process.pid, signal.SIGSTOP)
            cut_off(postgres_server)
            session = opened(store, "one")
            assert session.rounds >= told
            go_on(store, "one", session.rounds + 2)
            taken = session.rounds
            os.kill(process.pid, signal.SIGCONT)
            *more, last = process.communicate(timeout=30)[0].split()
            assert all(int(line) <= taken for line in more)  # said before it slept
            assert not last.isdigit()
            go_on(store, "one", taken + 3)
        finally:
            process.kill()


def rows_of_sessions(server, database):
    """All that is kept of sessions."""
    tables = ("head", "events", "snapshots", "contents", "rounds", "sessions", "audit")
    return [server.execute(f"SELECT * FROM {one} ORDER BY 1, 2", database) for one in tables]


@pytest.mark.parametrize(
    ("after", "stopped"), [(1.5, 3.0), pytest.param(10.0, 30.0, marks=pytest.mark.soak)]
)
def test_the_sessions_of_a_hung_server_are_taken_and_it_writes_nothing_more(
    servers, postgres_url, postgres_server, tmp_path, after, stopped
):
    how = ("--database", postgres_url)
    hung = servers.start(tmp_path / "hung", *how, "--takeover-after", str(after))
    other = servers.start(tmp_path / "other", *how)  # it stays, however busy the machine is
    path, body = "/v1/sessions/one", {"costs": [1, 2, 3, 4]}
    caller = Caller(hung, timeout=stopped + 30.0)
    assert caller.ask("PUT", path, SIMPLEX)[0] == 201
    assert caller.ask("POST", f"{path}/observations", body | {"round": 1})[0] == 200
    assert Caller(other).ask("GET", path)[0] == 409
    began = time.monotonic()
    os.kill(hung.pid, signal.SIGSTOP)
    try:
        with ThreadPoolExecutor(1) as pool:
            asked = pool.submit(caller.ask, "POST", f"{path}/observations", body | {"round": 2})
            until(lambda: Caller(other).ask("GET", path)[0] != 409)
            took = time.monotonic() - began
            answer = Caller(other).insist("POST", f"{path}/observations", body | {"round": 2})[1]
            assert answer["rounds"] == 2
            assert after - 1.1 < took < after + 2.0
            time.sleep(max(0.0, stopped - (time.monotonic() - began)))
            database = postgres_url.partition("?")[0].rpartition("/")[2]
            before = rows_of_sessions(postgres_server, database)
            os.kill(hung.pid, signal.SIGCONT)
            assert asked.result()[0] in (409, 503)
        for method, part, what in (("POST", "/decisions", {"round": 3}), ("GET", "", None)):
            status, answer = Caller(hung).insist(method, f"{path}{part}", what)
            assert (status, answer.get("holder")) == (409, other.url), answer
        assert rows_of_sessions(postgres_server, database) == before
    finally:
        os.kill(hung.pid, signal.SIGCONT)
    assert Caller(other).ask("POST", f"{path}/decisions", {"round": 3})[0] == 200


# --- over HTTP ------------------------------------------------------------------------------------

SIMPLEX = {"set": {"kind": "Simplex", "n": 4}, "learners": [{"name": "LyapunovDescent"}]}


class Balancer:
    """Asks the server that answered last, and the other where it is gone or does not hold it."""

    def __init__(self, servers):
        self._callers = deque(Caller(server) for server in servers)

    def insist(self, method, path, body=None):
        end = time.monotonic() + 60
        while time.monotonic() < end:
            try:
                status, answer = self._callers[0].ask(method, path, body)
            except LOST:
                status, answer = 503, None
            if status in (200, 201):
                return answer
            assert status == 503 or (status == 409 and answer["holder"]), answer
            self._callers.rotate()
            time.sleep(2e-3)
        raise AssertionError(f"{method} {path}: nobody answers")


@pytest.mark.parametrize("kills", [1, pytest.param(12, marks=pytest.mark.soak)])
def test_when_one_of_two_servers_is_killed_under_load_the_other_goes_on_to_the_bit(
    servers, postgres_url, tmp_path, kills
):
    folders = (tmp_path / "first", tmp_path / "second")
    both = [servers.start(folder, "--database", postgres_url) for folder in folders]
    rounds, names = 12 * (kills + 1), [f"s{n}" for n in range(3)]
    costs = np.random.default_rng(8).random((rounds, 4)).tolist()
    answers = {name: [] for name in names}

    def work(name):
        balancer, path = Balancer(both), f"/v1/sessions/{name}"
        balancer.insist("PUT", path, SIMPLEX)
        status, answer = Caller(both[1]).ask("GET", path)
        assert (status, answer["holder"]) == (409, f"http://127.0.0.1:{both[0].port}")
        for t, cost in enumerate(costs, 1):
            body = {"round": t, "costs": cost, "capacities": [0.4] * 4}
            decided = balancer.insist("POST", f"{path}/decisions", {"round": t})
            answers[name].append((decided, balancer.insist("POST", f"{path}/observations", body)))

    with ThreadPoolExecutor(len(names)) as pool:
        working = [pool.submit(work, name) for name in names]
        for kill in range(kills):
            done = 10 * (kill + 1)
            until(lambda done=done: min(map(len, answers.values())) >= done, 60)
            both[kill % 2].kill()
            if kill < kills - 1:
                both[kill % 2].start()
    assert [each.result() for each in working] == [None] * len(names)
    session = tw.Session(tw.LyapunovDescent(tw.sets.Simplex(4)))
    for t, cost in enumerate(costs):
        expected = session.play().tolist()
        session.observe(round=t, costs=cost, capacities=np.full(4, 0.4))
        for name in names:
            decided, observed = answers[name][t]
            assert list(decided["decision"].values()) == expected
            assert observed["rounds"] == t + 1
    balancer = Balancer(both)
    for name in names:
        said = balancer.insist("GET", f"/v1/sessions/{name}/history?most=1000")
        assert [row["round"] for row in said["rounds"]] == list(range(1, rounds + 1))
    assert both[kills % 2].terminate() == 0


def test_when_postgres_is_restarted_under_load_nothing_is_lost_or_doubled(
    postgres_url, postgres_server
):
    store, failures, rounds = SessionStore.open(postgres_url, holder="first"), [], 20
    acknowledged = {f"s{n}": 0 for n in range(2)}

    def work(name):
        end = time.monotonic() + 60
        while acknowledged[name] < rounds and time.monotonic() < end:
            try:
                session = opened(store, name)
                assert acknowledged[name] <= session.rounds <= acknowledged[name] + 1
                assert is_as_expected(session)
                for t in range(session.rounds, rounds):
                    observe(session, t)
                    store.flushed(name).result()
                    acknowledged[name] = t + 1
                    time.sleep(0.02)
                acknowledged[name] = session.rounds
            except CheckpointError as error:
                failures.append(error)
                time.sleep(0.02)

    for name in acknowledged:
        store.create(name, "{}").result()
    with ThreadPoolExecutor(2) as pool:
        working = [pool.submit(work, name) for name in acknowledged]
        until(lambda: min(acknowledged.values()) > 5, 30)
        postgres_server.control("stop", "-m", "immediate")
        until(lambda: failures)
        with pytest.raises(CheckpointError, match="does not answer"):
            store.count()
        postgres_server.control("start")
    assert [each.result() for each in working] == [None, None]
    assert set(acknowledged.values()) == {rounds}
    assert store.commits.trouble is None
    for name in acknowledged:
        session = opened(store, name)
        assert session.rounds == rounds
        assert is_as_expected(session)
        assert len(list(session.history())) == rounds
    store.close()
