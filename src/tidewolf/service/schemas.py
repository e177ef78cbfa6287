"""What is asked and answered at every address, as OpenAPI 3.1: for people, clients and fuzzers.

Requests are described as far as a schema can say it; what else must hold (a round that stands, a
name that the set has) is said by the refusal. Answers are described strictly. Every refusal is a
problem (RFC 9457).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from tidewolf import __version__
from tidewolf.service.queries import MOST

Schema = dict[str, Any]

NAME_PATTERN = "^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$"
SECTIONS = ("sessions", "rounds", "looking", "operating", "server")
"""What operations are listed under."""
_REASONS = {
    400: "The body is no JSON that can be read in one way only.",
    401: "No token that is known came.",
    403: "The token may not do this.",
    404: "There is no such session, or round, for this token.",
    408: "The body did not arrive in time.",
    409: "Something else stands already, or another server holds the session (`holder`).",
    413: "The body is too long.",
    415: "The body is compressed.",
    422: "What was sent cannot be used; `detail` says why.",
    429: "More than a quota allows; Retry-After says when to come again.",
    501: "A part that this needs is not installed on the server.",
    503: "More than can be answered now, or nothing can be kept at the moment; Retry-After says "
    "when to come again.",
}
_ALWAYS = (401, 403, 422, 429, 503)
_OF_ONE = (404, 409)
_OF_BODIES = (400, 408, 413, 415)


# --- kinds of values ------------------------------------------------------------------------------


def _object(
    properties: Mapping[str, Schema], required: Sequence[str] = (), *, closed: bool = False
) -> Schema:
    made: Schema = {"type": "object", "properties": dict(properties)}
    if required:
        made["required"] = list(required)
    if closed:
        made["additionalProperties"] = False
    return made


def _list(of: Schema, **more: Any) -> Schema:
    return {"type": "array", "items": of, **more}


def _ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def _or_null(kind: str) -> Schema:
    return {"type": [kind, "null"]}


def _said(schema: Schema, description: str) -> Schema:
    return {**schema, "description": description}


TEXT, NUMBER, FLAG = {"type": "string"}, {"type": "number"}, {"type": "boolean"}
COUNT, ROUND = {"type": "integer", "minimum": 0}, {"type": "integer", "minimum": 1}
MODE = {"type": "string", "enum": ["live", "shadow", "frozen"]}
SOURCE = {"type": "string", "enum": ["learner", "last", "static", "pinned", "incumbent"]}
BY_NAME: Schema = {"type": "object", "additionalProperties": NUMBER}
WHY = _said(TEXT, "Why it is done, for the audit log.")


@cache
def _schemas() -> dict[str, Schema]:
    """Every kind of body that has a name."""
    numbers: Schema = {"oneOf": [_list(NUMBER), BY_NAME]}
    learner = _said(
        {**_object({"name": TEXT}), "required": ["name"]}, "Who decides, and its settings."
    )
    told = {
        "round": _said(ROUND, "Which round; the one that stands where it is absent."),
        "time": _said({"type": ["string", "number"]}, "When the round is."),
    }
    observation = _object(
        {
            **told,
            **{key: _ref("Numbers") for key in ("costs", "capacities", "demands", "weights")},
            "budgets": {"oneOf": [NUMBER, _ref("Numbers")]},
            "loss_gradient": _ref("Numbers"),
            "constraint_value": {"oneOf": [NUMBER, _list(NUMBER)]},
            "constraint_gradient": {"oneOf": [_ref("Numbers"), _list(_ref("Numbers"))]},
            "loss_value": NUMBER,
            "played": _said(
                _ref("Numbers"), "What was really done, where it was not the decision."
            ),
        }
    )
    version = {"version": _ref("Version")}
    refusal = {
        "type": TEXT,
        "title": TEXT,
        "status": {"type": "integer"},
        "detail": _said(TEXT, "A sentence: what is wrong, what to do."),
        "holder": _said(TEXT, "The server that holds the session."),
    }
    observed = _object(
        {
            "round": ROUND,
            "rounds": COUNT,
            "cost": _or_null("number"),
            "violation": _or_null("number"),
            **version,
        },
        ("round", "rounds", "cost", "violation", "version"),
    )
    session = {
        "name": _ref("Name"),
        "rounds": _said(COUNT, "Rounds observed."),
        "pending": _said(_list(ROUND), "Rounds that were decided and not observed."),
        "round": _said(ROUND, "The round that stands."),
        "mode": MODE,
        "learner": TEXT,
        "names": _said(_list(TEXT), "Entries of a decision, in order."),
        "shape": _list(COUNT),
        "made": _said(NUMBER, "When it was made. Unit: seconds since 1970."),
        "settings": {"type": "object"},
        "saved": _object(
            {"loss": _or_null("number"), "violation": _or_null("number"), "rounds": COUNT},
            ("loss", "violation", "rounds"),
        ),
        "notes": _list(TEXT),
        "pinned": FLAG,
        "stale": FLAG,
        **version,
    }
    decision = {
        "round": ROUND,
        "decision": BY_NAME,
        "paths": {"type": ["array", "null"], "items": {"type": "object"}},
        "previous": {**BY_NAME, "type": ["object", "null"]},
        "moved": _or_null("number"),
        "mode": MODE,
        "source": SOURCE,
        "reason": TEXT,
        "proposal": _said(BY_NAME, "What the learner would play, where something else is."),
        **version,
    }
    return {
        "Version": _said(TEXT, "The version of tidewolf that answers."),
        "Name": {"type": "string", "pattern": NAME_PATTERN},
        "Numbers": _said(numbers, "One number an entry: a list, or by name."),
        "Refusal": _object(refusal, tuple(key for key in refusal if key != "holder")),
        "Problem": _object(
            {**refusal, **version}, (*(key for key in refusal if key != "holder"), "version")
        ),
        "Description": _object(
            {
                "set": _said({"type": "object"}, "As [set] of an experiment file; graphs inline."),
                "rounds": _said(ROUND, "The horizon, where it is known."),
                "learners": _said(_list(learner, maxItems=1), "Who decides; Ensemble by default."),
                "names": _said(_list(TEXT), "Names of the entries, in order."),
                "seeds": _said(_list(COUNT, maxItems=1), "The seed of everything random."),
                "cautions": _said(_list(NUMBER, maxItems=1), "How much limits count."),
                "expire_after": _said(ROUND, "Rounds after which a decision is no longer pending."),
                "deadline": _said(NUMBER, "How long a decision may take. Unit: seconds."),
                "fallback": _said(_ref("Numbers"), "The point where all else fails."),
                "stale_after": _said(NUMBER, "When missing feedback is an alarm. Unit: seconds."),
                "why": WHY,
            },
            ("set",),
        ),
        "Session": _object(session, tuple(session)),
        "SessionList": _object(
            {
                "sessions": _list(
                    _object(
                        {"name": _ref("Name"), "rounds": COUNT, "mode": MODE, "learner": TEXT},
                        ("name", "rounds", "mode", "learner"),
                    )
                ),
                **version,
            },
            ("sessions", "version"),
        ),
        "DecisionRequest": _object(
            {
                **told,
                "context": _said({}, "What is known of the round, as the learner's season asks."),
                "advice": _said(
                    {"type": "object", "additionalProperties": _ref("Numbers")},
                    "Points that others would play, by adviser.",
                ),
                "unavailable": _said(_list(TEXT), "Entries that are out in this round."),
                "deadline": _said(NUMBER, "How long it may take. Unit: seconds."),
            }
        ),
        "Decision": _object(decision, tuple(key for key in decision if key != "proposal")),
        "Observation": observation,
        "ObservationRequest": {
            "oneOf": [
                {**_ref("Observation"), "not": {"required": ["observations"]}},
                _object({"observations": _list(_ref("Observation"))}, ("observations",)),
            ]
        },
        "Observed": {
            "oneOf": [
                observed,
                _object(
                    {
                        "observations": _list(
                            {
                                "anyOf": [
                                    _object({"round": ROUND}, ("round",)),
                                    _object({"error": _ref("Refusal")}, ("error",)),
                                ]
                            }
                        ),
                        "rounds": COUNT,
                        **version,
                    },
                    ("observations", "rounds", "version"),
                ),
            ]
        },
        "History": _object(
            {
                "rounds": _list(
                    _object(
                        {
                            "round": ROUND,
                            "at": NUMBER,
                            "cost": _or_null("number"),
                            "violation": _or_null("number"),
                            "mode": MODE,
                            "source": SOURCE,
                        },
                        ("round", "at", "cost", "violation", "mode", "source"),
                    )
                ),
                **version,
            },
            ("rounds", "version"),
        ),
        "Members": _object(
            {"members": _list({"type": "object"}), **version}, ("members", "version")
        ),
        "Explanation": _object(version, ("version",)),
        "Audit": _object(
            {
                "entries": _list(
                    _object(
                        {
                            "number": COUNT,
                            "at": NUMBER,
                            "who": TEXT,
                            "session": TEXT,
                            "what": TEXT,
                            "why": TEXT,
                            "version": TEXT,
                        },
                        ("number", "at", "who", "session", "what", "why", "version"),
                    )
                ),
                **version,
            },
            ("entries", "version"),
        ),
        "Migration": _object(
            {
                "set": {"type": "object"},
                "learners": _list(learner, maxItems=1),
                "fallback": _said(
                    {"oneOf": [_ref("Numbers"), {"type": "null"}]},
                    "The static point from now on; null: the center of the set.",
                ),
                "why": WHY,
            }
        ),
        "ModeChange": _object(
            {
                "mode": MODE,
                "incumbent": _said(_ref("Numbers"), "The point that is played in shadow mode."),
                "why": WHY,
            },
            ("mode",),
        ),
        "Rollback": _object(
            {"round": _said(ROUND, "The first round that is undone."), "why": WHY}, ("round",)
        ),
        "Pin": _object(
            {
                "decision": _said(
                    {"oneOf": [_ref("Numbers"), {"type": "null"}]}, "A point; null lets go of it."
                ),
                "why": WHY,
            },
            ("decision",),
        ),
        "Deleted": _object(version, ("version",)),
        "Status": _object({"status": TEXT, **version}, ("status", "version")),
    }


# --- examples -------------------------------------------------------------------------------------

_SESSION = {
    "name": "lisbon",
    "rounds": 0,
    "pending": [],
    "round": 1,
    "mode": "live",
    "learner": "Ensemble",
    "names": ["entry 0", "entry 1", "entry 2"],
    "shape": [3],
    "made": 1767225600.0,
    "settings": {},
    "saved": {"loss": None, "violation": None, "rounds": 0},
    "notes": [],
    "pinned": False,
    "stale": False,
    "version": __version__,
}
_DECISION = {
    "round": 2,
    "decision": {"entry 0": 0.2, "entry 1": 0.5, "entry 2": 0.3},
    "paths": None,
    "previous": {"entry 0": 0.3, "entry 1": 0.4, "entry 2": 0.3},
    "moved": 0.2,
    "mode": "live",
    "source": "learner",
    "reason": "The learner decided in time.",
    "version": __version__,
}
_EXAMPLES: dict[str, Any] = {
    "Description": {
        "set": {"kind": "Simplex", "n": 3},
        "rounds": 1000,
        "learners": [{"name": "Ensemble"}],
    },
    "DecisionRequest": {"round": 2, "unavailable": ["entry 2"]},
    "ObservationRequest": {"round": 1, "costs": [1.0, 0.2, 0.5], "capacities": [0.6, 0.6, 0.6]},
    "Migration": {"learners": [{"name": "LyapunovDescent"}], "why": "Less to compute."},
    "ModeChange": {"mode": "shadow", "incumbent": [0.2, 0.3, 0.5], "why": "Trust comes first."},
    "Rollback": {"round": 7, "why": "Costs were in the wrong unit."},
    "Pin": {"decision": [0.2, 0.3, 0.5], "why": "Maintenance until noon."},
    "Session": _SESSION,
    "SessionList": {
        "sessions": [{"name": "lisbon", "rounds": 12, "mode": "live", "learner": "Ensemble"}],
        "version": __version__,
    },
    "Decision": _DECISION,
    "Observed": {
        "round": 1,
        "rounds": 1,
        "cost": 0.54,
        "violation": 0.0,
        "version": __version__,
    },
    "History": {
        "rounds": [
            {
                "round": 1,
                "at": 1767225600.0,
                "cost": 0.54,
                "violation": 0.0,
                "mode": "live",
                "source": "learner",
            }
        ],
        "version": __version__,
    },
    "Members": {"members": [], "version": __version__},
    "Audit": {
        "entries": [
            {
                "number": 1,
                "at": 1767225600.0,
                "who": "dashboard",
                "session": "lisbon",
                "what": "pin",
                "why": "Maintenance until noon.",
                "version": __version__,
            }
        ],
        "version": __version__,
    },
    "Status": {"status": "ok", "version": __version__},
    "Explanation": {"version": __version__},
    "Deleted": {"version": __version__},
}
_PROBLEM = {
    "type": "about:blank",
    "title": "Not Found",
    "status": 404,
    "detail": "There is no session called 'lisbon'.",
    "version": __version__,
}


# --- addresses ------------------------------------------------------------------------------------


def _parameter(name: str, description: str, schema: Schema, where: str = "query") -> Schema:
    return {
        "name": name,
        "in": where,
        "required": where == "path",
        "description": description,
        "schema": schema,
    }


_NAME = _parameter("name", "What the session is called.", _ref("Name"), "path")
_ROUND = _parameter("round", "Which round, from 1.", {**ROUND, "maximum": 10**15 - 1}, "path")
_MOST = _parameter(
    "most", "How many to list.", {"type": "integer", "minimum": 1, "maximum": MOST, "default": 100}
)


def _json(name: str) -> Schema:
    content: Schema = {"schema": _ref(name)}
    if name in _EXAMPLES:
        content["example"] = _EXAMPLES[name]
    return {"application/json": content}


def _operation(
    section: str,
    summary: str,
    answer: str | Schema,
    *parameters: Schema,
    body: str = "",
    body_required: bool = True,
    errors: Sequence[int] = _ALWAYS,
    description: str = "",
    made: bool = False,
) -> Schema:
    """One method of an address."""
    content = _json(answer) if isinstance(answer, str) else answer
    done = {"description": "Done.", "content": content}
    responses: Schema = {"200": done}
    if made:
        responses["201"] = {**done, "description": "Made."}
    reasons = sorted({*errors, *(_OF_BODIES if body else ())})
    responses |= {str(status): {"$ref": f"#/components/responses/{status}"} for status in reasons}
    said: Schema = {"tags": [section], "summary": summary, "responses": responses}
    if description:
        said["description"] = description
    if parameters:
        said["parameters"] = list(parameters)
    if body:
        said["requestBody"] = {"required": body_required, "content": _json(body)}
    return said


def _of_session(
    section: str, summary: str, answer: str, *parameters: Schema, **more: Any
) -> Schema:
    return _operation(
        section, summary, answer, *parameters, errors=(*_ALWAYS, *_OF_ONE, 501), **more
    )


@cache
def _paths() -> dict[str, Schema]:
    one = "/v1/sessions/{name}"
    html = {"text/html": {"schema": TEXT}}
    after_number = _parameter("after", "Begin behind this entry.", COUNT)
    of_one: dict[str, Schema] = {
        one: {
            "put": _of_session(
                "sessions",
                "Make a session, or find it there.",
                "Session",
                body="Description",
                made=True,
                description="The same description again changes nothing; another one is refused.",
            ),
            "get": _of_session("sessions", "What a session is and where it stands.", "Session"),
            "delete": _of_session(
                "sessions",
                "Delete a session and all that was observed.",
                "Deleted",
                _parameter("why", "Why, for the audit log.", TEXT),
            ),
        },
        f"{one}/decisions": {
            "post": _of_session(
                "rounds",
                "Decide a round.",
                "Decision",
                body="DecisionRequest",
                body_required=False,
                description="The same question again gets the same answer.",
            )
        },
        f"{one}/decisions/{{round}}": {
            "get": _of_session("rounds", "What was decided.", "Decision", _ROUND)
        },
        f"{one}/observations": {
            "post": _of_session(
                "rounds",
                "Say what a round, or many, turned out to be.",
                "Observed",
                body="ObservationRequest",
                description="Answered once it is on disk. The same content again gets the first "
                "answer again; other content for an observed round is refused.",
            )
        },
        f"{one}/history": {
            "get": _of_session(
                "looking",
                "Rounds that were observed.",
                "History",
                _parameter("first", "Begin with this round.", {**ROUND, "default": 1}),
                _MOST,
            )
        },
        f"{one}/members": {"get": _of_session("looking", "Whom the learner trusts.", "Members")},
        f"{one}/explanation": {
            "get": _of_session("looking", "Why it decided as it did.", "Explanation")
        },
        f"{one}/report": {
            "get": _operation(
                "looking", "The session as a page.", html, errors=(*_ALWAYS, *_OF_ONE, 501)
            )
        },
        f"{one}/audit": {
            "get": _of_session(
                "looking", "Who changed the session, and why.", "Audit", after_number, _MOST
            )
        },
        f"{one}/migrate": {
            "post": _of_session(
                "operating", "Go on with another set or learner.", "Session", body="Migration"
            )
        },
        f"{one}/mode": {
            "post": _of_session(
                "operating", "Live, shadow or frozen.", "Session", body="ModeChange"
            )
        },
        f"{one}/rollback": {
            "post": _of_session("operating", "Go back to a round.", "Session", body="Rollback")
        },
        f"{one}/pin": {
            "post": _of_session("operating", "Play a given point.", "Session", body="Pin")
        },
    }
    for operations in of_one.values():
        operations["parameters"] = [_NAME]
    always = _operation("server", "Whether the process lives.", "Status", errors=())
    ready = _operation("server", "Whether requests are taken.", "Status", errors=(503,))
    plain = {"text/plain": {"schema": TEXT}}
    described = {"application/json": {"schema": {"type": "object"}}}
    return {
        "/v1/sessions": {
            "get": _operation(
                "sessions",
                "Sessions in the order of their names.",
                "SessionList",
                _parameter("prefix", "How names begin.", TEXT),
                _parameter("after", "Begin behind this name.", TEXT),
                _MOST,
            )
        },
        **of_one,
        "/v1/audit": {
            "get": _operation("looking", "Who changed what, and why.", "Audit", after_number, _MOST)
        },
        "/healthz": {"get": {**always, "security": []}},
        "/readyz": {"get": {**ready, "security": []}},
        "/metrics": {
            "get": _operation("server", "For Prometheus.", plain, errors=(401, 403, 422, 501))
        },
        "/": {"get": _operation("server", "All sessions as a page.", html, _after_page())},
        "/docs": {
            "get": {
                **_operation("server", "This description as a page.", html, errors=(403, 429, 503)),
                "security": [],
            }
        },
        "/openapi.json": {
            "get": {
                **_operation("server", "This description.", described, errors=(403, 429, 503)),
                "security": [],
            }
        },
    }


def _after_page() -> Schema:
    return _parameter("after", "Begin behind this name.", TEXT)


def _problem(status: int) -> Schema:
    said: Schema = {
        "description": _REASONS[status],
        "content": {"application/problem+json": {"schema": _ref("Problem")}},
    }
    if status == 404:
        said["content"]["application/problem+json"]["example"] = _PROBLEM
    if status in (429, 503):
        said["headers"] = {
            "Retry-After": {
                "description": "When to come again. Unit: seconds.",
                "schema": {"type": "integer", "minimum": 1},
            }
        }
    if status == 401:
        said["headers"] = {"WWW-Authenticate": {"schema": TEXT}}
    return said


@cache
def document() -> dict[str, Any]:
    """The whole description.

    Returns
    -------
    dict
        OpenAPI 3.1.

    Examples
    --------
    >>> from tidewolf.service.schemas import document
    >>> document()["openapi"], "/v1/sessions/{name}/decisions" in document()["paths"]
    ('3.1.0', True)
    """
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "tidewolf",
            "version": __version__,
            "description": "Decisions, round after round, inside a hard set, under limits that "
            "move with time. Rounds count from 1.",
            "license": {"name": "BSD-3-Clause", "identifier": "BSD-3-Clause"},
        },
        "tags": [{"name": section} for section in SECTIONS],
        "security": [{"bearer": []}, {}],
        "paths": _paths(),
        "components": {
            "schemas": _schemas(),
            "responses": {str(status): _problem(status) for status in _REASONS},
            "securitySchemes": {
                "bearer": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "A token of the server's file, where it has one.",
                }
            },
        },
    }
