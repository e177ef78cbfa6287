"""Whatever is sent to whatever address is answered as the description says, and never with 500."""

import http.client
import json
from urllib.parse import urlsplit

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis import checks
from schemathesis.generation import GenerationMode

from hostile_bodies import OTHERS, STRINGS
from serving import SIMPLEX, call, fresh
from tidewolf.service.app import App

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


class Line:
    """One connection that is used again and again."""

    def __init__(self, url):
        where = urlsplit(url)
        self.connection = http.client.HTTPConnection(where.hostname, where.port, timeout=60)

    def post(self, method, path, raw):
        self.connection.request(method, path, raw)
        answer = self.connection.getresponse()
        return answer.status, answer.headers["content-type"], answer.read()


@pytest.fixture(scope="module")
def line(served):
    found = Line(served.url)
    yield found
    found.connection.close()


@pytest.fixture(scope="module")
def name(served):
    """A session that everything is tried on."""
    found = fresh("fuzz")
    assert call(served.url, "PUT", f"/v1/sessions/{found}", SIMPLEX).status == 201
    return found


def required(status, kind, raw, sent):
    """An answer that is no mistake of ours."""
    body = json.loads(raw)
    assert status < 500, (sent, body)
    assert "version" in body
    if status >= 400:
        assert kind == "application/problem+json"
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
def test_no_bytes_are_more_than_a_refusal(line, name, path, raw):
    method = "PUT" if path.endswith("{name}") else "POST"
    required(*line.post(method, path.replace("{name}", name), raw), (path, raw))


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
def test_no_key_takes_down_anything_by_being_of_the_wrong_kind(line, path):
    name = fresh("kinds")
    method = "PUT" if path.endswith("{name}") else "POST"
    address = path.replace("{name}", name)
    if method == "POST":
        line.post("PUT", f"/v1/sessions/{name}", json.dumps(SIMPLEX))
    for key in _keys(path):
        for value in (*OTHERS, *STRINGS):
            sent = {**FINE[path], key: value}
            required(*line.post(method, address, json.dumps(sent)), (path, sent))
            if method == "PUT":
                line.post("DELETE", address, None)
    status, _, raw = line.post(method, address, json.dumps(FINE[path]))
    assert status < 300 or b"round" in raw, raw
