"""The recipe for a container, without an engine: its user, paths and permissions, reproduced.

In a root of its own where nothing but the volume can be written (tests/contained.py), which takes
root to make. The recipe's command must serve, decide, observe, survive a kill, and write to the
volume alone.
"""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import NamedTuple

import pytest
from packaging.requirements import Requirement

import tidewolf as tw
from serving import call

HERE = Path(__file__).parent
RECIPE, TOKEN = HERE.parent / "deploy" / "Containerfile", "t0ken-of-the-controller"
LISBON = {
    "set": {"kind": "Simplex", "n": 3},
    "rounds": 100,
    "learners": [{"name": "DriftPlusPenalty"}],
}
"""A session that needs no compiled code."""
SECONDS = 60


class Recipe(NamedTuple):
    """What the last stage of a recipe says of who runs what, and where."""

    user: tuple[int, int]
    volumes: list[str]
    env: dict[str, str]
    folder: str
    command: list[str]
    health: list[str]
    steps: list[tuple[str, str]]


def recipe():
    text = re.sub(r"\\\n\s*", "", re.sub(r"(?m)^\s*#.*\n", "", RECIPE.read_text(encoding="utf-8")))
    steps = [tuple(line.split(maxsplit=1)) for line in text.splitlines() if line.strip()]
    steps = steps[max(i for i, (kind, _) in enumerate(steps) if kind == "FROM") :]
    said = dict(steps)
    user, _, group = said["USER"].partition(":")
    return Recipe(
        user=(int(user), int(group)),
        volumes=json.loads(said["VOLUME"]),
        env=dict(pair.split("=", 1) for pair in shlex.split(said["ENV"])),
        folder=said["WORKDIR"],
        command=json.loads(said["CMD"]),
        health=json.loads(said["HEALTHCHECK"].partition("CMD ")[2]),
        steps=steps,
    )


def namespaces_work():
    """Whether this process may make a root of its own."""
    probe = "import contained; contained.required(contained.libc.unshare(contained.NEW_MOUNTS))"
    return os.geteuid() == 0 and not subprocess.call(
        [sys.executable, "-c", probe], cwd=HERE, stderr=subprocess.DEVNULL
    )


class Place:
    """Where the recipe's commands are run: a volume, the tokens, and a way to start processes."""

    def __init__(self, folder):
        self.said, self.folder = recipe(), folder
        (self.data_path,) = self.said.volumes
        self.volume, self.tokens = folder / "volume", folder / "tokens"
        self.volume.mkdir(mode=0o700)
        self.tokens.write_text(f"writer * {TOKEN} controller\n")
        self.tokens.chmod(0o400)
        self.secret = self.said.command[self.said.command.index("--token-file") + 1]
        if not namespaces_work():
            pytest.skip("only root can become another user")
        for path in (self.volume, self.tokens):
            os.chown(path, *self.said.user)
        (folder / "root").mkdir()

    def start(self, command, **settings):
        env = {**self.said.env, "PYTHONPATH": str(Path(tw.__file__).parents[1])}
        program = [sys.executable] if command[0] == "python" else [sys.executable, "-m", command[0]]
        command = [*program, *command[1:]]
        piped = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, **settings}
        given = self._given(env, command)
        return subprocess.Popen(
            [sys.executable, str(HERE / "contained.py"), json.dumps(given)], **piped
        )

    def _given(self, env, command):
        system = [f"/{name}" for name in ("usr", "bin", "sbin", "lib", "lib32", "lib64", "etc")]
        python = [sys.base_prefix, sys.prefix, env["PYTHONPATH"]]
        return {
            "root": str(self.folder / "root"),
            "shown": [path for path in (*system, *python) if os.path.lexists(path)],
            "secrets": {self.secret: str(self.tokens)},
            "volumes": {self.data_path: str(self.volume)}, "user": self.said.user,
            "folder": self.said.folder, "env": env, "command": command,
        }  # fmt: skip

    def ran(self, command):
        """What a command says that must do well."""
        process = self.start(command)
        out, err = process.communicate(timeout=SECONDS)
        assert process.returncode == 0, err
        return out.strip()


class Server:
    """The recipe's command, on loopback and any free port."""

    def __init__(self, place):
        command = [{"0.0.0.0": "127.0.0.1"}.get(each, each) for each in place.said.command]
        self.errors = place.folder / "stderr"
        with self.errors.open("a") as errors:
            self.process = place.start([*command, "--port", "0"], stderr=errors)
        line = self.process.stdout.readline()
        if not line.startswith("tidewolf serves http://127.0.0.1:"):
            self.end(signal.SIGKILL)
            pytest.fail(self.errors.read_text())
        self.address = line.split()[-1]

    def ask(self, method, path, body=None):
        headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
        answer = call(self.address, method, path, body, headers)
        assert answer.status < 400, answer.raw
        return answer.body

    def end(self, how):
        self.process.send_signal(how)
        code = self.process.wait(timeout=SECONDS)
        self.process.stdout.close()
        return code


@pytest.fixture
def place(tmp_path):
    yield Place(tmp_path)
    (tmp_path / "root").chmod(0o700)


def test_the_recipe_names_nobody_one_volume_and_tokens():
    said = recipe()
    assert min(said.user) >= 10_000
    assert said.volumes == ["/data"]
    assert ("RUN", "install -d -o {} -g {} -m 0700 /data".format(*said.user)) in said.steps
    assert said.command[:2] == ["tidewolf", "serve"]
    assert said.command[said.command.index("--data") + 1] == "/data"
    assert said.command[said.command.index("--host") + 1] == "0.0.0.0"
    assert "--insecure" not in said.command
    assert said.env["NUMBA_CACHE_DIR"].startswith("/data/")
    assert not any(kind == "RUN" and "curl" in words for kind, words in said.steps)
    order = [kind for kind, _ in said.steps]
    assert "RUN" not in order[order.index("USER") :]


WRITE = """
import os, sys
for folder in sys.argv[1:]:
    try:
        open(os.path.join(os.path.expanduser(folder), "written"), "w").close()
    except OSError:
        continue
    print(folder)
"""
CACHE = """
import warnings
warnings.simplefilter("error")
from tidewolf.core import jit, jit_cache
print(jit_cache.folder_of(jit.__file__))
"""


def test_nothing_but_the_volume_can_be_written_and_compiled_code_is_kept_there(place):
    system = ["/", "/tmp", "/var/tmp", "/dev/shm", "/run", str(Path(tw.__file__).parent)]
    places, data = [*system, "~", ".", place.data_path], place.data_path
    assert place.ran(["python", "-c", WRITE, *places]) == data
    assert Path(place.ran(["python", "-c", CACHE])).is_relative_to(data)
    assert "written" in os.listdir(place.volume)


def test_it_serves_decides_observes_and_survives_a_kill_as_that_user(place):
    before = {path for path in place.folder.rglob("*") if place.volume not in path.parents}
    server = Server(place)
    try:
        server.ask("PUT", "/v1/sessions/lisbon", LISBON)
        first = server.ask("POST", "/v1/sessions/lisbon/decisions", {})
        assert sum(first["decision"].values()) == pytest.approx(1.0)
        seen = {"round": 1, "costs": [3.0, 1.0, 2.0]}
        answer = server.ask("POST", "/v1/sessions/lisbon/observations", seen)
        assert answer["rounds"] == 1
        status = Path(f"/proc/{server.process.pid}/status").read_text()
        assert re.search(rf"(?m)^Uid:\s+{place.said.user[0]}\s", status)
        assert re.search(r"(?m)^CapEff:\s+0+$", status)
        port = server.address.rpartition(":")[2]
        place.ran([each.replace(":8000", f":{port}") for each in place.said.health])
    finally:
        assert server.end(signal.SIGKILL) == -signal.SIGKILL

    again = Server(place)
    try:
        assert again.ask("POST", "/v1/sessions/lisbon/observations", seen) == answer
        assert again.ask("GET", "/v1/sessions/lisbon/decisions/1")["decision"] == first["decision"]
        assert again.ask("POST", "/v1/sessions/lisbon/decisions", {})["round"] == 2
    finally:
        assert again.end(signal.SIGTERM) == 0

    after = {path for path in place.folder.rglob("*") if place.volume not in path.parents}
    assert after - before == {again.errors}
    assert {path.stat().st_uid for path in place.volume.rglob("*")} == {place.said.user[0]}
    assert "Warning" not in again.errors.read_text()


def test_the_image_installs_what_is_pinned_by_hash_and_fits_the_bounds():
    text = (RECIPE.parent / "constraints.txt").read_text(encoding="utf-8")
    lines = re.sub(r"\\\n\s*", "", re.sub(r"(?m)^#.*\n", "", text)).splitlines()
    pins = [
        re.fullmatch(r"([a-z0-9.-]+)==(\S+)((?: --hash=sha256:[0-9a-f]{64})+)", x) for x in lines
    ]
    assert all(pins), lines
    versions = {pin[1]: pin[2] for pin in pins}
    assert len(versions) == len(lines)
    project = tomllib.loads((HERE.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    for line in (*project["dependencies"], *extras["app"], *extras["serve"]):
        wanted = Requirement(line)
        assert versions[wanted.name.lower().replace("_", "-")] in wanted.specifier, line
    assert "--require-hashes" in RECIPE.read_text(encoding="utf-8")
