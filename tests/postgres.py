"""A real PostgreSQL for tests: its own user, its own folder, a Unix socket and no port.

One server a process, started when it is first asked for and shared by all tests of it; each test
has a database of its own. A shell beside it, in a session of its own, makes, starts and ends it: it
reads from a pipe whose other end is ours, and whatever ends us, SIGKILL too, ends the pipe. Then
the shell stops the server and removes the folder.

PostgreSQL refuses to run as root. Root becomes `postgres`, or else `nobody`, for it alone.
"""

import atexit
import itertools
import os
import pwd
import shutil
import subprocess
import tempfile
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest

SETTINGS = {
    "autovacuum": "off", "fsync": "off", "full_page_writes": "off", "listen_addresses": "",
    "max_connections": "60", "max_wal_size": "64MB", "min_wal_size": "16MB",
    "shared_buffers": "8MB", "wal_level": "minimal", "max_wal_senders": "0",
}  # fmt: skip
"""What a server for tests needs; what it wrote survives it all the same, though not the machine."""
_LIFE = """
export LC_ALL=C PATH="$1:$PATH"
cd "$2" || exit 1
initdb --pgdata=data --auth=trust --username=tidewolf --encoding=UTF8 --no-locale --no-sync \
    --wal-segsize=1 >log 2>&1
cat settings >>data/postgresql.conf
pg_ctl start --wait --silent --pgdata=data --log=log >/dev/null 2>&1 && echo started || cat log
exec >/dev/null 2>&1
read -r _
pg_ctl stop --mode=immediate --pgdata=data
cd / && rm -rf "$2"
"""


class Absent(Exception):
    """There is no PostgreSQL to start; the message is the reason of a skip."""


def programs():
    """The folder of PostgreSQL's programs; the newest where there are several."""
    if found := shutil.which("pg_ctl"):
        folder = Path(found).resolve().parent
        if (folder / "initdb").exists():
            return folder
    made = Path("/usr/lib/postgresql").glob("*/bin/initdb")
    return max((one.parent for one in made), key=lambda one: float(one.parent.name), default=None)


def _user():
    """Who runs the server: we, unless we are root."""
    if os.geteuid():
        return {}
    for name in ("postgres", "nobody"):
        try:
            found = pwd.getpwnam(name)
        except KeyError:
            continue
        return {"user": found.pw_uid, "group": found.pw_gid, "extra_groups": []}
    raise Absent("There is no PostgreSQL here that could run: we are root, and it refuses to be.")


class Server:
    """A PostgreSQL that lives as long as this process, or until it is stopped."""

    def __init__(self):
        folder = programs()
        if folder is None:
            raise Absent("There is no PostgreSQL here: neither pg_ctl nor /usr/lib/postgresql.")
        self._programs, self._who = folder, _user()
        self.folder = Path(tempfile.mkdtemp(prefix="tidewolf-pg-"))
        settings = SETTINGS | {"unix_socket_directories": str(self.folder)}
        lines = "".join(f"{name} = '{value}'\n" for name, value in settings.items())
        (self.folder / "settings").write_text(lines)
        if self._who:
            os.chown(self.folder, self._who["user"], self._who["group"])
        command = ["/bin/sh", "-c", _LIFE, "sh", str(folder), str(self.folder)]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        self._life = subprocess.Popen(command, **pipes, start_new_session=True, **self._who)
        atexit.register(self.stop)
        self._count = itertools.count()
        said = self._life.stdout.readline()
        if said != "started\n":
            said += self._life.stdout.read()
            self.stop()
            raise RuntimeError(f"PostgreSQL was not started: {said}")

    def url(self, database, **more):
        """The address of one of its databases."""
        words = "".join(f"&{name}={value}" for name, value in more.items())
        return f"postgresql:///{database}?host={self.folder}&user=tidewolf{words}"

    def fresh(self, how=""):
        """The address of a new, empty database; `how` is what stands after its name."""
        name = f"fresh_{next(self._count)}"
        self.execute(f"CREATE DATABASE {name} {how}")
        return self.url(name)

    def execute(self, sql, database="postgres"):
        """One statement, at once, by the superuser."""
        import psycopg

        with psycopg.connect(self.url(database), autocommit=True) as connection:
            cursor = connection.execute(sql)
            return cursor.fetchall() if cursor.description else []

    def control(self, *words):
        """pg_ctl, waited for: ("stop", "-m", "immediate"), ("restart", ...), ("start",)."""
        log = ["-l", str(self.folder / "log")] if words[0] != "stop" else []
        command = [str(self._programs / "pg_ctl"), *words, "-w", "-s", *log]
        command += ["-D", str(self.folder / "data")]
        nothing = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
        how = {**nothing, **self._who, "cwd": self.folder, "start_new_session": True}
        subprocess.run(command, check=True, timeout=60, **how)

    def stop(self):
        """Twice does no harm."""
        if self._life.stdin is not None and not self._life.stdin.closed:
            self._life.stdin.close()
            self._life.wait(60)
            self._life.stdout.close()


@cache
def shared():
    """The server of all tests of this process."""
    if find_spec("psycopg") is None:
        raise Absent('psycopg is not installed; pip install "tidewolf[serve]" runs this')
    return Server()


@pytest.fixture
def postgres_server():
    """The PostgreSQL of this process."""
    try:
        return shared()
    except Absent as absent:
        pytest.skip(str(absent))


@pytest.fixture
def postgres_url(postgres_server):
    """The address of an empty database of this test alone."""
    return postgres_server.fresh()
