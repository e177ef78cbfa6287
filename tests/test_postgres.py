"""Sessions in PostgreSQL: a connection that is lost loses nothing that was kept, a server that is
killed is gone at once, and a session has one writer.
"""

import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from serving import until
from tidewolf.core.errors import CheckpointError, InUse, InvalidInput, MissingExtra, NewerFormat
from tidewolf.storage.postgres import (
    Heartbeat,
    Postgres,
    hide_password,
    is_address,
    is_gone,
    prepare,
    without_password,
)
from transport import Transport


@pytest.fixture
def db(postgres_url):
    db = Postgres(postgres_url)
    db.execute("CREATE TABLE kept (number BIGINT PRIMARY KEY, what BYTEA)")
    yield db
    db.close()


@pytest.fixture
def transport(postgres_server, tmp_path):
    transport = Transport(tmp_path, postgres_server.folder)
    yield transport
    transport.close()


def through(transport, url):
    """The same database over a transport that can be cut."""
    before, _, after = url.partition("host=")
    return f"{before}host={transport.folder}&{after.partition('&')[2]}"


def kept(db):
    return [number for (number,) in db.rows("SELECT number FROM kept ORDER BY number")]


def keep(db, number):
    db.execute("INSERT INTO kept VALUES (?, ?)", (number, b""))


def cut_off(server):
    """PostgreSQL ends its connections, as an administrator may."""
    before = "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE "
    server.execute(f"{before} application_name = 'tidewolf'")


# --- a connection ---------------------------------------------------------------------------------


def test_what_failed_before_a_commit_is_never_called_kept(db):
    """PostgreSQL itself answers such a COMMIT with ROLLBACK and no error."""

    def go_on():
        with db.transaction():
            keep(db, 1)
            with suppress(*db.errors):
                keep(db, 1)

    with pytest.raises(db.errors, match="nothing was kept"):
        go_on()
    assert kept(db) == []
    keep(db, 1)


def test_commits_are_synchronous_whatever_the_database_says(postgres_server, postgres_url):
    name = postgres_url.partition("?")[0].rpartition("/")[2]
    for setting in ("synchronous_commit = off", "default_transaction_isolation = 'serializable'"):
        postgres_server.execute(f"ALTER DATABASE {name} SET {setting}")
    db = Postgres(postgres_url)
    settings = ("synchronous_commit", "transaction_isolation", "application_name")
    found = [db.rows(f"SHOW {setting}")[0][0] for setting in settings]
    assert found == ["on", "read committed", "tidewolf"]
    db.close()


def test_tables_are_made_once_by_servers_that_start_together(postgres_url):
    begin = threading.Barrier(5)

    def start(number):
        with closing(Postgres(postgres_url)) as db:
            begin.wait()
            prepare(db)
            db.execute("INSERT INTO servers VALUES (?, '', 0)", (number,))

    with ThreadPoolExecutor(5) as pool:
        list(pool.map(start, range(5)))
    db = Postgres(postgres_url)
    assert db.rows("SELECT count(*) FROM servers") == [(5,)]
    db.execute("UPDATE store SET value = '99' WHERE name = 'format'")
    with pytest.raises(NewerFormat, match="has format 99"):
        prepare(db)
    db.close()


# --- addresses ------------------------------------------------------------------------------------


@given(end=st.text(st.characters(codec="utf-8")), raw=st.booleans())
def test_no_password_is_ever_shown(end, raw):
    password = f"q7x{end}"
    given = password if raw else quote(password, safe="")
    for url in (
        f"postgresql://ada:{given}@localhost:1/sessions",
        f"postgresql://ada@localhost:1/sessions?password={quote(password, safe='')}",
    ):
        said = [without_password(url), hide_password(url, f"'{password}' is wrong")]
        try:
            Postgres(url).rows("SELECT 1")
        except (CheckpointError, InvalidInput) as error:
            said += [str(error), str(error.__cause__)]
        assert len(said) == 4
        assert all(password not in one and given not in one for one in said), said


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://ada:s@ecret@db/x",
        "postgresql://ada:se?cret@db/x",
        "postgresql://ada:secret%zz@db/x",
        "postgresql://ada:secret@db:many/x",
        "postgresql://ada:secret@db/x?color=secret",
        "postgresql://ada:secret@/x?host=/nowhere",
    ],
)
def test_what_cannot_be_reached_is_refused_without_its_password(url, monkeypatch):
    with pytest.raises((InvalidInput, CheckpointError)) as caught:
        Postgres(url).rows("SELECT 1")
    assert "ecret" not in str(caught.value).replace("color=secret", "")
    assert "ada:***@" in str(caught.value)
    assert "ecret" not in repr(Postgres("postgresql://ada:secret@db/x"))
    assert not any(map(is_address, ("postgresql.db", "./postgresql://", Path("postgresql://"))))
    with pytest.raises(InvalidInput):
        Postgres("sessions.db")
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(MissingExtra, match="serve"):
        Postgres("postgresql://db/x")


# --- servers --------------------------------------------------------------------------------------

_SERVER = """
import sys, time
from tidewolf.storage.postgres import Heartbeat
heartbeat = Heartbeat(sys.argv[1], sys.argv[2])
print("here", flush=True)
sys.stdin.read()
heartbeat.close()
"""


@pytest.fixture
def prepared(postgres_url):
    db = Postgres(postgres_url)
    prepare(db)
    yield db
    db.close()


def begin(url, name):
    """A server in a process of its own."""
    command = [sys.executable, "-c", _SERVER, url, name]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "here\n"
    return process


def test_a_killed_server_is_gone_at_once_and_a_live_one_never(prepared, postgres_url):
    assert is_gone(prepared, "a")
    with begin(postgres_url, "a") as process:
        for _ in range(20):
            assert not is_gone(prepared, "a")
        with pytest.raises(InUse, match="Another server of the name a"):
            Heartbeat(postgres_url, "a")
        assert [name for (name,) in prepared.rows("SELECT holder FROM servers")] == ["a"]
        process.send_signal(signal.SIGKILL)
    assert until(lambda: is_gone(prepared, "a")) < 1
    Heartbeat(postgres_url, "b").close()
    assert prepared.rows("SELECT count(*) FROM servers") == [(0,)]
    heartbeat = Heartbeat(postgres_url, "a")
    assert not is_gone(prepared, "a")
    heartbeat.close()
    heartbeat.close()
    assert is_gone(prepared, "a")
    assert prepared.rows("SELECT count(*) FROM servers") == [(0,)]


def test_a_row_that_is_over_is_not_moved_and_begins_a_new_lease(prepared, postgres_url):
    heartbeat = Heartbeat(postgres_url, "a", 1.0)
    assert heartbeat.lease() == 1
    prepared.execute("UPDATE servers SET until = clock_timestamp() - interval '1 s'")

    def is_back():
        with suppress(CheckpointError):  # between its leases
            return heartbeat.lease() == 2

    until(is_back)
    assert not is_gone(prepared, "a")
    heartbeat.close()
    with pytest.raises(InvalidInput, match="takeover_after"):
        Heartbeat(postgres_url, "a", 0.5)
