"""The service over HTTP, end to end: what each address answers, and how the process begins and
ends.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from urllib.parse import quote

import numpy as np
import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis import checks
from schemathesis.generation import GenerationMode

import tidewolf as tw
from hostile_bodies import OTHERS, STRINGS
from serving import SECONDS, SIMPLEX, call, connected, fresh, in_thread, until
from tidewolf.core import errors
from tidewolf.service import models, requests
from tidewolf.service.app import App
from tidewolf.service.sessions import Sessions
from tidewolf.storage.session_store import SessionStore

COSTS = [1.0, 0.2, 0.5]


@pytest.fixture
def session(served):
    """The address of a new session."""
    path = f"/v1/sessions/{fresh()}"
    assert call(served.url, "PUT", path, SIMPLEX).status == 201
    return path


# --- the contract ---------------------------------------------------------------------------------


def test_pages_metrics_and_descriptions_load_nothing(served, session):
    for path in ("/", "/docs", f"{session}/report"):
        answer = call(served.url, "GET", path)
        assert (answer.status, answer.headers["x-frame-options"]) == (200, "DENY")
        assert answer.headers["content-security-policy"].startswith("default-src 'none'")
        assert b"<script" not in answer.raw
        assert b"http://" not in answer.raw.replace(b"http://www.w3.org", b"")
        assert b"https://" not in answer.raw
    metrics = call(served.url, "GET", "/metrics")
    assert metrics.headers["content-type"].startswith("text/plain; version=0.0.4")
    assert b"tidewolf_" in metrics.raw
    described = call(served.url, "GET", "/openapi.json").body
    assert described["openapi"] == "3.1.0"
    docs = call(served.url, "GET", "/docs").raw.decode()
    assert all(path in docs for path in described["paths"])


def test_examples_of_the_description_fit_it(served):
    from jsonschema import Draft202012Validator

    described, checked = call(served.url, "GET", "/openapi.json").body, 0
    for methods in described["paths"].values():
        for operation in (methods[key] for key in methods if key != "parameters"):
            assert operation["summary"].endswith(".")
            contents = [answer.get("content", {}) for answer in operation["responses"].values()]
            contents.append(operation.get("requestBody", {}).get("content", {}))
            for body in (one for content in contents for one in content.values()):
                Draft202012Validator.check_schema(body["schema"])
    for schema in described["components"]["schemas"].values():
        for example in schema.get("examples", []):
            whole_schema = {**schema, "components": described["components"]}
            Draft202012Validator(whole_schema).validate(example)
            checked += 1
    assert checked == 7


def test_every_answer_says_the_version_and_is_not_kept(served, session):
    posted = ("PATCH", session), ("POST", "/healthz"), ("POST", f"{session}/decisions")
    paths = (session, "/v1/sessions", "/healthz", "/nowhere", f"{session}/decisions/99")
    for method, path in (*posted, *(("GET", path) for path in paths)):
        answer = call(served.url, method, path)
        assert answer.body["version"] == tw.__version__
        assert answer.headers["cache-control"] == "no-store"
        assert answer.headers["x-content-type-options"] == "nosniff"
        if answer.status >= 400:
            assert answer.headers["content-type"] == "application/problem+json"
            assert answer.body["status"] == answer.status
            assert answer.body["detail"].endswith((".", "?"))


def test_methods_that_an_address_has_not_are_named(served, session):
    answer = call(served.url, "PATCH", session)
    assert (answer.status, answer.headers["allow"]) == (405, "DELETE, GET, PUT")
    assert call(served.url, "OPTIONS", session).status == 405
    head = call(served.url, "HEAD", session)
    assert (head.status, head.raw) == (200, b"")


# --- strict JSON ----------------------------------------------------------------------------------

TEXTS = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"))
NUMBERS = st.integers(-(10**17), 10**17) | st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS,
    lambda inside: st.lists(inside) | st.dictionaries(TEXTS, inside),
    max_leaves=20,
)


@given(VALUES, st.booleans())
def test_what_is_written_is_read_back(value, in_ascii):
    assert requests.loads(requests.dumps(value)) == value
    assert requests.loads(json.dumps(value, ensure_ascii=in_ascii).encode()) == value


@given(st.binary(max_size=200))
def test_bytes_are_read_as_json_reads_them_or_refused(raw):
    with contextlib.suppress(errors.InvalidInput):
        assert requests.loads(raw) == json.loads(raw)


def test_what_looks_odd_and_is_not():
    assert requests.loads(b"[" * 64 + b"]" * 64)
    assert requests.loads(b'"\\ud83d\\ude00 \\\\ud800 \\\\u0000"') == "\U0001f600 \\ud800 \\u0000"
    assert requests.loads(b"123456789012345678901") == 123456789012345678901.0
    assert requests.loads(b"[1e308, 1e-999, -0.0]") == [1e308, 0.0, 0.0]
    assert requests.loads(b'{"a": {"b": 1}, "b": 1}') == {"a": {"b": 1}, "b": 1}


@given(st.floats())
def test_numbers_that_are_not_finite_are_null(number):
    (found,) = json.loads(requests.dumps([number]))
    assert found == number if np.isfinite(number) else found is None


# --- problems, queries and quotas -----------------------------------------------------------------


KINDS = [kind for kind in vars(errors).values() if isinstance(kind, type)]
OURS = [kind for kind in KINDS if issubclass(kind, errors.TidewolfError)]


@pytest.mark.parametrize("kind", OURS, ids=lambda kind: kind.__name__)
def test_every_error_of_the_library_is_a_problem_with_its_sentence(kind):
    error = kind("A sentence.")
    answer = requests.problem_of(error)
    assert answer.status_code == requests.status_of(error) != 500
    assert json.loads(answer.body)["detail"] == "A sentence."
    assert ("retry-after" in answer.headers) == (answer.status_code in (429, 503))


@given(st.text(max_size=20))
def test_whole_numbers_are_digits(text):
    with contextlib.suppress(errors.InvalidInput):
        found = models.AuditQuery.read(f"after={quote(text)}".encode()).after
        assert str(found) == (text.lstrip("0") or "0")


@given(
    st.floats(0.5, 50.0), st.lists(st.tuples(st.floats(0.0, 3.0), st.integers(1, 30)), max_size=40)
)
def test_a_bucket_gives_no_more_than_its_rate_and_what_it_holds(rate, asked):
    now, taken = 0.0, 0
    quotas, largest = requests.Quotas(observations=rate, clock=lambda: now), 0
    for wait, amount in asked:
        now += wait
        try:
            quotas.take("observations", "token", amount)
            taken, largest = taken + amount, max(largest, amount)
        except errors.TooMany as error:
            now += error.retry_after + 1e-6
            quotas.take("observations", "token")
            taken += 1
    assert taken <= max(1.0, 2.0 * rate) + rate * now + largest + 1e-6


# --- the process ----------------------------------------------------------------------------------


def test_it_does_not_start_where_it_must_not(served, tmp_path):
    from tidewolf.cli import main

    def said(*options):
        with pytest.MonkeyPatch.context() as patch:
            lines = []
            patch.setattr(sys.stderr, "write", lines.append)
            assert main(["serve", *options]) == 2
        return "".join(lines)

    data = ("--data", str(tmp_path / "data"))
    assert "--token-file" in said(*data, "--host", "0.0.0.0")
    assert "--data DIR or --database URL" in said()
    assert "--data DIR or --database URL" in said(*data, "--database", "postgresql://x/y")
    assert "postgresql://" in said("--database", "mysql://x/y")
    assert "port" in said(*data, "--port", str(served.port))
    assert "0 to 65535" in said(*data, "--port", "65536")
    assert "no.such.host" in said(*data, "--host", "no.such.host.invalid", "--insecure")
    assert "--max-body" in said(*data, "--max-body", "0")
    assert "--commit-within" in said(*data, "--commit-within", "-1")
    assert "cannot be read" in said(*data, "--token-file", str(tmp_path / "none"))
    assert "above 0" in said(*data, "--rate", "0")
    assert str(served.folder) in said("--data", str(served.folder), "--port", "0")


def test_a_server_says_one_line_and_drains_and_goes_on(servers, tmp_path):
    server, path = servers.start(tmp_path / "data", "--log"), f"/v1/sessions/{fresh()}"
    call(server.url, "PUT", path, SIMPLEX, {"Authorization": "Bearer secret"})
    with connected(server.url) as slow:
        head = f"POST {path}/observations HTTP/1.1\r\nHost: localhost\r\nContent-Length: 24\r\n\r\n"
        slow.sendall(head.encode() + b'{"costs": [')
        time.sleep(0.2)
        os.kill(server.pid, signal.SIGTERM)
        time.sleep(0.4)
        with pytest.raises(ConnectionRefusedError):
            connected(server.url)
        slow.sendall(b"1.0, 2, 3.0]}")
        with slow.makefile("rb") as answer:
            assert b"200 OK" in answer.readline()
    assert server.wait() == 0
    _, *logged = server.said().splitlines()
    lines = [json.loads(line) for line in logged]
    assert [line["status"] for line in lines] == [201, 200]
    assert {"at", "who", "method", "path", "status", "ms"} == set(lines[0])
    assert "secret" not in server.said()

    with in_thread(tmp_path / "data") as url:
        assert call(url, "GET", path).body["rounds"] == 1


@pytest.mark.soak
def test_a_second_signal_ends_it_at_once(servers, tmp_path):
    server = servers.start(tmp_path / "data")
    with connected(server.url) as slow:
        slow.sendall(b"POST /v1/sessions/a/pin HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9")
        slow.sendall(b"\r\n\r\n{")
        time.sleep(0.3)
        for _ in range(2):
            os.kill(server.pid, signal.SIGTERM)
            time.sleep(0.3)
        assert server.wait() == 128 + signal.SIGTERM
    assert server.said().count("\n") == 1


def test_without_the_extra_it_says_what_to_install(tmp_path, monkeypatch, capsys):
    from tidewolf.cli import main

    monkeypatch.setitem(sys.modules, "fastapi", None)
    assert main(["serve", "--data", str(tmp_path)]) == 2
    assert 'pip install "tidewolf[serve]"' in capsys.readouterr().err


# --- warming up -----------------------------------------------------------------------------------


BOX = {"set": {"kind": "Box", "lower": [0.0, 0.0, 0.0], "upper": [1.0, 1.0, 1.0]}}


def test_each_kind_of_session_in_the_store_is_warmed_up_once(tmp_path, monkeypatch):
    store, warmed = SessionStore.open(tmp_path, commit_within=0.0), []
    sessions = Sessions(store)
    for i in range(3):
        sessions.put(f"box-{i}", models.Description.read(BOX), requests.Caller())
        body = {"set": {"kind": "Simplex", "n": 2 + i}, "learners": SIMPLEX["learners"]}
        sessions.put(f"simplex-{i}", models.Description.read(body), requests.Caller())
    store.create("broken", "{}").result()
    store.create("no text", "").result()
    monkeypatch.setattr(models, "warm_up", lambda made: warmed.append(type(made.K).__name__))
    models.warm_store(store)
    assert sorted(warmed) == ["Box", "Simplex"]
    monkeypatch.setattr(models, "MOST_BUILT", 1)
    models.warm_store(store)
    assert len(warmed) == 3
    sessions.close()
    store.close()


def test_requests_are_answered_before_the_server_is_ready(tmp_path, capsys):
    go = threading.Event()
    with in_thread(tmp_path, prepare=go.wait) as url:
        try:
            assert call(url, "GET", "/healthz").status == 200
            assert call(url, "GET", "/readyz").status == 503
            assert call(url, "PUT", "/v1/sessions/a", SIMPLEX).status == 201
            assert call(url, "POST", "/v1/sessions/a/decisions", {}).status == 200
            assert call(url, "GET", "/readyz").status == 503
            assert capsys.readouterr().out == ""
        finally:
            go.set()
        until(lambda: call(url, "GET", "/readyz").status == 200)


@pytest.mark.soak
def test_a_server_that_is_ready_compiles_nothing_more_for_its_sessions(tmp_path):
    data, cache = tmp_path / "data", tmp_path / "kernels"
    store = SessionStore.open(data, commit_within=0.0)
    with contextlib.closing(Sessions(store)) as sessions:
        for name, body in (("a", SIMPLEX), ("b", BOX)):
            sessions.put(name, models.Description.read(body), requests.Caller())
    store.close()
    command = [sys.executable, "-m", "tidewolf", "serve", "--data", str(data), "--port", "0"]
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache)}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
    try:
        url = process.stdout.readline().split()[-1]
        before = sorted(cache.rglob("*.kernel"))
        assert before
        for name in ("a", "b"):
            path = f"/v1/sessions/{name}"
            for k in (1, 2, 3, 5, 4):
                if k in (1, 2, 3, 5):
                    body = {"round": k}
                    assert call(url, "POST", f"{path}/decisions", body).status == 200
                body = {"round": k, "costs": [1.0, 0.2, 0.5], "capacities": [0.4] * 3}
                assert call(url, "POST", f"{path}/observations", body).status == 200
            assert call(url, "GET", f"{path}/explanation").status == 200
        assert sorted(cache.rglob("*.kernel")) == before
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(SECONDS) == 0
        process.stdout.close()


# --- requests of any content ----------------------------------------------------------------------


DOCUMENT = App(None).openapi()
OPERATIONS = [
    (method.upper(), path) for path, methods in DOCUMENT["paths"].items() for method in methods
]
POSTS = [path for method, path in OPERATIONS if method in ("POST", "PUT")]
FINE = {
    "/v1/sessions/{name}": SIMPLEX,
    "/v1/sessions/{name}/decisions": {"round": 1},
    "/v1/sessions/{name}/observations": {"costs": [1.0, 0.5, 0.2]},
    "/v1/sessions/{name}/migrate": {"learners": [{"name": "LyapunovDescent"}], "why": "a test"},
    "/v1/sessions/{name}/mode": {"mode": "live", "why": "a test"},
    "/v1/sessions/{name}/rollback": {"round": 1, "why": "a test"},
    "/v1/sessions/{name}/pin": {"decision": [0.2, 0.3, 0.5], "why": "a test"},
}
"""A body that each of them takes."""


@pytest.fixture(scope="module")
def name(served):
    """A session that everything is tried on."""
    found = fresh("fuzz")
    assert call(served.url, "PUT", f"/v1/sessions/{found}", SIMPLEX).status == 201
    return found


def required(answer, sent):
    """An answer that is no mistake of ours."""
    body = answer.body
    assert answer.status < 500, (sent, body)
    assert "version" in body
    if answer.status >= 400:
        assert answer.headers["content-type"] == "application/problem+json"
        assert body["detail"].endswith((".", "?")), body
        assert len(body["detail"]) < 1500


# --- what the description says --------------------------------------------------------------------


@pytest.mark.parametrize("examples", [4, pytest.param(300, marks=pytest.mark.soak)])
@pytest.mark.parametrize(("method", "path"), OPERATIONS, ids=lambda x: x)
def test_every_answer_is_one_that_the_description_has(served, name, method, path, examples):
    """Try requests that the description allows, and some that it does not."""
    schema = schemathesis.openapi.from_dict(DOCUMENT)
    schema.config.update(base_url=served.url)
    operation = schema[path][method]
    parts = ("status_code", "content_type", "response_headers", "response_schema")
    known = [checks.CHECKS.get_one(f"{what}_conformance") for what in parts]
    modes = (GenerationMode.POSITIVE, GenerationMode.NEGATIVE)
    cases = st.one_of(operation.as_strategy(generation_mode=mode) for mode in modes)

    @settings(max_examples=examples, suppress_health_check=list(HealthCheck), database=None)
    @given(cases, st.booleans())
    def tried(case, on_session):
        if on_session and "name" in (case.path_parameters or {}) and method != "DELETE":
            case.path_parameters["name"] = name
        case.call_and_validate(checks=[checks.not_a_server_error, *known])

    tried()


# --- raw bodies -----------------------------------------------------------------------------------


@given(
    st.sampled_from(POSTS),
    st.binary(max_size=100)
    | st.integers(1, 3000).map(lambda depth: b'{"costs":' + b"[" * depth + b"]" * depth + b"}")
    | st.integers(1, 500).map(lambda digits: b'{"round": ' + b"9" * digits + b"}")
    | st.text(max_size=30).map(lambda text: json.dumps({text: text, "why": text}).encode()),
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
def test_no_bytes_are_more_than_a_refusal(served, name, path, raw):
    method = "PUT" if path.endswith("{name}") else "POST"
    required(call(served.url, method, path.replace("{name}", name), raw), (path, raw))


def _keys(path):
    """Every key that a body may have."""
    operation = DOCUMENT["paths"][path]["put" if path.endswith("{name}") else "post"]
    schemas = DOCUMENT["components"]["schemas"]
    name = operation["requestBody"]["content"]["application/json"]["schema"]["$ref"]
    schema = schemas[name.rpartition("/")[2]]
    if "anyOf" in schema:
        return sorted({*schemas["Observation"]["properties"], "observations"})
    return sorted(schema["properties"])


@pytest.mark.parametrize("path", POSTS)
def test_no_key_takes_down_anything_by_being_of_the_wrong_kind(served, path):
    name = fresh("kinds")
    method = "PUT" if path.endswith("{name}") else "POST"
    address = path.replace("{name}", name)
    if method == "POST":
        call(served.url, "PUT", f"/v1/sessions/{name}", SIMPLEX)
    for key in _keys(path):
        for value in (*OTHERS, *STRINGS):
            sent = {**FINE[path], key: value}
            required(call(served.url, method, address, sent), (path, sent))
            if method == "PUT":
                call(served.url, "DELETE", address)
    answer = call(served.url, method, address, FINE[path])
    assert answer.status < 300 or b"round" in answer.raw, answer.raw
