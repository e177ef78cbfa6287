"""What is refused, where, and what is accepted means: the corpus in tests/refusals.

Each line of a file there is one input. `to` says where it goes: "file" is an experiment in TOML,
"PUT" the description of a session, "decisions", "observations", "mode", "pin", "rollback" and
"migrate" are bodies, and an address is a query. `status` is the name of an error, or the status of
HTTP. A refusal has `where`, the place or the key that its sentence names; wording is free. What is
accepted has `means`. Bytes that are no UTF-8 are written as surrogates.
"""

import asyncio
import json
import tomllib
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from tidewolf.core.errors import TidewolfError
from tidewolf.experiments import load
from tidewolf.service.app import App
from tidewolf.service.models import Description
from tidewolf.service.requests import LONGEST, SHORT, Limits, loads, parsed_size
from tidewolf.service.sessions import Sessions
from tidewolf.storage.session_store import SessionStore

HERE = Path(__file__).parent / "refusals"
LINES = [line for path in sorted(HERE.glob("*.jsonl")) for line in path.read_text().splitlines()]
CASES, SIMPLEX = [json.loads(line) for line in LINES], {"kind": "Simplex", "n": 3}
LINKS = [["SEA", "DEN"], ["SEA", "SFO"], ["SFO", "DEN"], ["DEN", "NYC"]]
NETWORK = {"graph": LINKS, "source": "SEA", "target": "NYC"}
ENSEMBLE = {"name": "Ensemble", "experts": ["mine"], "season": 4}
SESSIONS = {
    "simplex": {"set": SIMPLEX, "learners": [{"name": "LyapunovDescent"}]},
    "ensemble": {"set": SIMPLEX, "learners": [ENSEMBLE]},
    "values": {"set": {"kind": "L2Ball", "n": 3}, "rounds": 9, "learners": ["BanditPrimalDual"]},
    "network": {"set": NETWORK, "learners": [{"name": "LyapunovDescent"}]},
}
TOLD = "round rounds decision source cost violation mode pinned learner names shape settings"
TOLD = (*TOLD.split(), "sessions", "observations")
"""What is compared of an answer."""


class Service:
    """The service, asked without a socket."""

    def __init__(self, folder):
        self.store = SessionStore.open(folder, commit_within=0.0)
        self.sessions = Sessions(self.store, limits=Limits())
        self.app = App(self.sessions)
        self.runner = asyncio.Runner()

    def call(self, method, address, raw=b"", headers=()):
        path, _, query = address.partition("?")
        answer = []

        async def receive():
            return {"type": "http.request", "body": raw}

        async def send(message):
            answer.append(message)

        scope = {"type": "http", "method": method, "path": path, "query_string": _bytes(query)}
        scope["headers"] = [(name.encode(), value.encode()) for name, value in headers]
        self.runner.run(self.app(scope, receive, send))
        return answer[0]["status"], json.loads(answer[1]["body"], parse_float=_rounded)

    def close(self):
        for pool in (self.app.quick, self.app.slow):
            pool.shutdown()
        self.runner.close()
        self.sessions.close()
        self.store.close()


def _bytes(text):
    return text.encode("utf-8", "surrogateescape")


def _rounded(text):
    """Numbers that agree between machines."""
    return round(float(text), 9) + 0.0


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    found = Service(tmp_path_factory.mktemp("refusals"))
    for name, description in SESSIONS.items():
        status, _ = found.call("PUT", f"/v1/sessions/{name}", json.dumps(description).encode())
        assert status == 201
    yield found
    for name in SESSIONS:  # nothing that was refused, or asked, has changed anything
        _, body = found.call("GET", f"/v1/sessions/{name}")
        assert (body["rounds"], body["mode"], body["pinned"]) == (0, "live", False)
    found.close()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The files that experiments of the corpus name."""
    made = tmp_path_factory.mktemp("files")
    names = [f"{tail} > {head}" for tail, head in LINKS]
    ends = "".join(f"{tail},{head},{i + 1}\n" for i, (tail, head) in enumerate(LINKS))
    (made / "links.csv").write_text(f"tail,head,km\n{ends}")
    (made / "flows.csv").write_text("source,target,demand\nSEA,NYC,2\nSFO,NYC,1\n")
    tables = {"costs": names, "points": names, "b": ["budget"], "kinds": ["kind"], "abc": "abc"}
    tables |= {"volumes": ["SEA > NYC", "SFO > NYC"], "ac": ["a > c", "b > c"]}
    tables |= {"short": names, "other": ["b"]}
    for name, columns in tables.items():
        length = 3 if name == "short" else 5
        rows = [f"2024-01-0{i + 1},{','.join('1' * len(columns))}" for i in range(length)]
        (made / f"{name}.csv").write_text("\n".join([f"time,{','.join(columns)}", *rows, ""]))
    return made


def outcome(case, service, folder, number=0):
    """What the readers make of a case: its status, what they say or what it means."""
    if case["to"] == "file":
        return _of_file(case, folder)
    method, _, address = case["to"].partition(" ")
    raw = _bytes(case["given"])
    if method == "PUT":
        status, body = service.call("PUT", f"/v1/sessions/put-{number}", raw)
        if status == 201:
            learner = Description.read(json.loads(raw)).build().learner
            body["means"] = " ".join(repr(learner).split())
    elif address:
        status, body = service.call(method, address)
    else:
        name = case.get("session", "simplex")
        if "means" in case:  # which changes something
            description = json.dumps(SESSIONS[name]).encode()
            name = f"{name}-{number}"
            service.call("PUT", f"/v1/sessions/{name}", description)
        address = f"/v1/sessions/{name}/{method}"
        status, body = service.call("POST", address, raw, case.get("headers", {}).items())
    if status >= 400:
        assert body["status"] == status
        return status, body["detail"]
    found = {key: body[key] for key in (*TOLD, "means") if key in body}
    return status, found


def _of_file(case, folder):
    path = folder / "e.toml"
    path.write_bytes(_bytes(case["given"]))
    try:
        experiment = load(path)
        problem = experiment.problem(0)
        for entrant in experiment.entrants():
            experiment.learner(entrant, problem, 0)
    except TidewolfError as error:
        return type(error).__name__, str(error).replace(f"{folder}/", "")
    text = experiment.toml().replace(f"{folder}/", "")
    return "fine", tomllib.loads(text)


@pytest.mark.parametrize("to", sorted({case["to"] for case in CASES}))
def test_what_is_refused_and_what_is_accepted_stays_so(to, service, folder, monkeypatch):
    monkeypatch.chdir(folder)
    for number, case in enumerate(CASES):
        if case["to"] != to:
            continue
        with np.errstate(all="ignore"):
            status, found = outcome(case, service, folder, number)
        assert status == case["status"], (case, found)
        if "means" in case:
            assert found == case["means"], case
        else:
            assert isinstance(found, str), case
            assert case["where"].lower() in found.lower(), (case, found)


# --- bodies that are generated --------------------------------------------------------------------

ADDRESS = "/v1/sessions/simplex/observations"
FILLINGS = (b"{},", b"[],", b"0,", b'"",', b'{"a":0},', b'"\xf0\x9f\x98\x80",')


@pytest.mark.parametrize("filling", FILLINGS[:3])
def test_a_body_of_too_many_values_is_refused_before_it_is_parsed(service, filling):
    raw = b'{"costs":[%b0]}' % (filling * ((LONGEST - 20) // len(filling)))
    tracemalloc.start()
    try:
        assert service.call("POST", ADDRESS, raw)[0] == 413
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    "raw",
    [
        *(b"[%b0]" % (filling * 15_000) for filling in FILLINGS),
        json.dumps({str(i): i for i in range(15_000)}).encode(),
        json.dumps([{"tail": str(i), "head": "a", "b": 0.5} for i in range(4_000)]).encode(),
    ],
)
def test_no_body_takes_more_memory_than_is_estimated(raw):
    raw = raw + b" " * SHORT
    tracemalloc.start()
    try:
        found = loads(raw)
        assert tracemalloc.get_traced_memory()[1] < parsed_size(raw)
    finally:
        tracemalloc.stop()
    assert found
