"""The service over HTTP, end to end: what each address answers, and how the process begins and
ends.
"""

import base64
import contextlib
import json
import os
import signal
import sys
import time
from urllib.parse import quote

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tidewolf as tw
from serving import SIMPLEX, call, connected, fresh, in_thread
from tidewolf.core import errors
from tidewolf.service import models, requests

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
    error = kind("A sentence.", *([("a",)] if kind is errors.CyclicGraph else []))
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
    assert "at least 0" in said(*data, "--commit-within", "-1")
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


def test_basic_is_for_pages(tmp_path):
    secret = base64.b64encode(b"anybody:T").decode()
    with in_thread(tmp_path, tokens="writer T") as url:
        assert call(url, "GET", "/", headers={"Authorization": f"Basic {secret}"}).status == 200
        answer = call(url, "GET", "/v1/sessions", headers={"Authorization": f"Basic {secret}"})
        assert (answer.status, answer.headers["www-authenticate"]) == (401, "Bearer")
        assert call(url, "GET", "/").headers["www-authenticate"].startswith("Basic")
