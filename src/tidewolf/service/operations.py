"""Table of all addresses: the handler, the models of request and answer, and the summary of each.

The app takes its routes from this table, and the description at `/openapi.json` is made of it and
of the models that it names.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Literal, NamedTuple

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from tidewolf import __version__
from tidewolf.service import models as m
from tidewolf.service.description import Description

PREFIX = "/v1/sessions/{name}"
_REASONS = {
    400: "The body is no JSON that can be read in one way only.",
    401: "No token that is known came.",
    403: "The token may not do this.",
    404: "There is no such session, or round, for this token.",
    408: "The body did not arrive in time.",
    409: "Something else stands already, or another server holds the session (`holder`).",
    413: "The body is too long, or has too many values.",
    415: "The body is compressed.",
    422: "What was sent cannot be used; `detail` says why.",
    429: "More than a quota allows; Retry-After says when to come again.",
    501: "A part that this needs is not installed on the server.",
    503: "More than can be answered now, or nothing can be kept at the moment; Retry-After says "
    "when to come again.",
}
_ALWAYS = (401, 403, 422, 429, 503)
_OF_SESSIONS = (404, 409, 501)
_OF_BODIES = (400, 408, 413, 415)


class Operation(NamedTuple):
    """What one method of an address does.

    Parameters
    ----------
    handler : str
        The method of `Handlers` that answers; empty if the app answers at once.
    answer : type or str
        The model of what is answered, or its media type.
    summary : str
        What it does.
    body : type, optional
        The model of what is sent.
    query : type, optional
        The model of the query; None if there is none.
    writes : bool, default False
        Whether readers are refused.
    quick : bool, default False
        Whether it is answered by the threads that decide and observe.
    errors : tuple of int
        Refusals beside those of bodies and sessions.
    section : str, default 'sessions'
        What it is listed under.
    """

    handler: str
    answer: type[BaseModel] | str
    summary: str
    body: type[BaseModel] | None = None
    query: type[m.Query] | None = m.Query
    writes: bool = False
    quick: bool = False
    errors: tuple[int, ...] = _ALWAYS
    section: Literal["sessions", "rounds", "looking", "operating", "server"] = "sessions"


def _write(handler: str, body: type[BaseModel], summary: str) -> dict[str, Operation]:
    return {
        "POST": Operation(handler, m.Session, summary, body, None, writes=True, section="operating")
    }


def _look(
    handler: str, answer: type[BaseModel] | str, summary: str, query: type[m.Query] = m.Query
) -> dict[str, Operation]:
    return {"GET": Operation(handler, answer, summary, query=query, section="looking")}


def _serve(
    handler: str,
    answer: type[BaseModel] | str,
    summary: str,
    *errors: int,
    query: type[m.Query] | None = None,
) -> dict[str, Operation]:
    return {
        "GET": Operation(handler, answer, summary, query=query, errors=errors, section="server")
    }


OPERATIONS: dict[str, dict[str, Operation]] = {
    f"{PREFIX}/decisions": {
        "POST": Operation(
            "decide",
            m.Decision,
            "Decide a round; the same question again gets the same answer.",
            m.DecisionRequest,
            None,
            writes=True,
            quick=True,
            section="rounds",
        )
    },
    f"{PREFIX}/observations": {
        "POST": Operation(
            "observe",
            m.ObservationAnswer,
            "Say what a round, or many, turned out to be. Answered once it is on disk; the same "
            "content again gets the first answer again, other content is refused.",
            m.ObservationRequest,
            None,
            writes=True,
            quick=True,
            section="rounds",
        )
    },
    f"{PREFIX}/decisions/{{round}}": {
        "GET": Operation("decision", m.Decision, "What was decided.", quick=True, section="rounds")
    },
    PREFIX: {
        "GET": Operation("get", m.Session, "What a session is and where it stands.", quick=True),
        "PUT": Operation(
            "put",
            m.Session,
            "Make a session, or find it there; another description is refused.",
            Description,
            None,
            writes=True,
        ),
        "DELETE": Operation(
            "delete",
            m.Answer,
            "Delete a session and all that was observed.",
            query=m.WhyQuery,
            writes=True,
        ),
    },
    "/v1/sessions": {
        "GET": Operation(
            "list", m.SessionList, "Sessions in the order of their names.", query=m.ListQuery
        )
    },
    f"{PREFIX}/history": _look("history", m.History, "Rounds that were observed.", m.HistoryQuery),
    f"{PREFIX}/experts": _look(
        "experts", m.Experts, "The experts of the learner, their weights and regret."
    ),
    f"{PREFIX}/explanation": _look("explanation", m.Answer, "Why it decided as it did."),
    f"{PREFIX}/report": _look("report", "text/html", "The session as a page."),
    f"{PREFIX}/audit": _look("audit", m.Audit, "Who changed the session, and why.", m.AuditQuery),
    f"{PREFIX}/migrate": _write("migrate", m.Migration, "Continue with another set or learner."),
    f"{PREFIX}/mode": _write("mode", m.ModeChange, "Live, shadow or frozen."),
    f"{PREFIX}/rollback": _write("rollback", m.Rollback, "Go back to a round."),
    f"{PREFIX}/pin": _write("pin", m.Pin, "Play a given point."),
    "/v1/audit": _look("audit", m.Audit, "Who changed what, and why.", m.AuditQuery),
    "/metrics": _serve("metrics", "text/plain", "For Prometheus.", 401, 403, 422, 501),
    "/": _serve("overview", "text/html", "All sessions as a page.", *_ALWAYS, query=m.PageQuery),
    "/docs": _serve("", "text/html", "This description as a page.", 403, 429, 503),
    "/openapi.json": _serve("", "application/json", "This description.", 403, 429, 503),
    "/healthz": _serve("", m.Status, "Whether the process lives."),
    "/readyz": _serve("", m.Status, "Whether requests are taken.", 503),
}
"""By path and method; the two that are asked most come first."""


@cache
def document() -> dict[str, Any]:
    """The description of the service.

    Returns
    -------
    dict
        OpenAPI 3.1.

    Examples
    --------
    >>> from tidewolf.service.operations import document
    >>> document()["openapi"], "/v1/sessions/{name}/decisions" in document()["paths"]
    ('3.1.0', True)
    """
    every = [one for methods in OPERATIONS.values() for one in methods.values()]
    request = {model for one in every for model in (one.body, one.query) if model is not None}
    told = {one.answer for one in every if not isinstance(one.answer, str)} | {m.Problem}
    _, schemas = models_json_schema(
        [
            *((model, "validation") for model in sorted(request, key=lambda model: model.__name__)),
            *((model, "serialization") for model in sorted(told, key=lambda model: model.__name__)),
        ],
        ref_template="#/components/schemas/{model}",
    )
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "tidewolf",
            "version": __version__,
            "description": "Decisions, round after round, inside a hard set, under limits that "
            "move with time. Rounds count from 1.",
            "license": {"name": "BSD-3-Clause", "identifier": "BSD-3-Clause"},
        },
        "security": [{"bearer": []}, {}],
        "paths": {
            path: {
                method.lower(): _operation(path, method, one, schemas["$defs"])
                for method, one in methods.items()
            }
            for path, methods in OPERATIONS.items()
        },
        "components": {
            "schemas": schemas["$defs"],
            "responses": {str(status): _problem(status) for status in _REASONS},
            "securitySchemes": {
                "bearer": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "A token of the server's file, if it has one.",
                }
            },
        },
    }


def _operation(path: str, method: str, one: Operation, schemas: dict[str, Any]) -> dict[str, Any]:
    done = {"description": "Done.", "content": _content(one.answer)}
    responses: dict[str, Any] = {"200": done}
    if method == "PUT":
        responses["201"] = {**done, "description": "Made."}
    reasons = {*one.errors, *(_OF_SESSIONS if "{name}" in path else ())}
    reasons |= set(_OF_BODIES if one.body else ())
    responses |= {
        str(status): {"$ref": f"#/components/responses/{status}"} for status in sorted(reasons)
    }
    said: dict[str, Any] = {"tags": [one.section], "summary": one.summary, "responses": responses}
    said["parameters"] = [*_in_path(path), *_in_query(one, schemas)]
    if one.body is not None:
        needed = one.body is not m.DecisionRequest
        said["requestBody"] = {"required": needed, "content": _content(one.body)}
    if not one.handler:
        said["security"] = []
    return said


def _in_path(path: str) -> list[dict[str, Any]]:
    kinds = {
        "name": {"type": "string", "pattern": f"^{m.NAME.pattern}$"},
        "round": {"type": "integer", "minimum": 1, "maximum": 10**15 - 1},
    }
    return [
        {"name": key, "in": "path", "required": True, "schema": schema}
        for key, schema in kinds.items()
        if f"{{{key}}}" in path
    ]


def _in_query(one: Operation, schemas: dict[str, Any]) -> list[dict[str, Any]]:
    known = {} if one.query is None else schemas[one.query.__name__].get("properties", {})
    return [
        {
            "name": key,
            "in": "query",
            "required": False,
            "description": schema.get("description", ""),
            "schema": schema,
        }
        for key, schema in known.items()
    ]


def _content(model: type[BaseModel] | str) -> dict[str, Any]:
    if isinstance(model, str):
        kind = {"type": "object" if model == "application/json" else "string"}
        return {model: {"schema": kind}}
    said: dict[str, Any] = {"schema": {"$ref": f"#/components/schemas/{model.__name__}"}}
    if model.__name__ in EXAMPLES:
        said["example"] = EXAMPLES[model.__name__]
    return {"application/json": said}


def _problem(status: int) -> dict[str, Any]:
    schema = {"schema": {"$ref": "#/components/schemas/Problem"}}
    said: dict[str, Any] = {
        "description": _REASONS[status],
        "content": {"application/problem+json": schema},
    }
    if status in (429, 503):
        said["headers"] = {
            "Retry-After": {
                "description": "When to come again. Unit: seconds.",
                "schema": {"type": "integer", "minimum": 1},
            }
        }
    if status == 401:
        said["headers"] = {"WWW-Authenticate": {"schema": {"type": "string"}}}
    return said


EXAMPLES: dict[str, Any] = {
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
    "Decision": {
        "round": 2,
        "decision": {"entry 0": 0.2, "entry 1": 0.5, "entry 2": 0.3},
        "paths": None,
        "previous": {"entry 0": 0.3, "entry 1": 0.4, "entry 2": 0.3},
        "moved": 0.2,
        "mode": "live",
        "source": "learner",
        "reason": "The learner decided in time.",
        "version": __version__,
    },
    "ObservationAnswer": {
        "round": 1,
        "rounds": 1,
        "cost": 0.54,
        "violation": 0.0,
        "version": __version__,
    },
}
"""Bodies by the name of their model."""
