"""The page at `/docs`: every operation of the description, written out; it loads nothing."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator
from html import escape
from typing import Any

from tidewolf.service.answers import Answer, page

_STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; margin: 0 auto; max-width: 56rem; padding: 1rem; }
h1, h2, h3 { line-height: 1.2; }
h2 { border-bottom: 1px solid color-mix(in srgb, currentColor 25%, transparent);
     text-transform: capitalize; }
details { border: 1px solid color-mix(in srgb, currentColor 25%, transparent);
          border-radius: .4rem; margin: .5rem 0; padding: .4rem .8rem; }
summary { cursor: pointer; overflow-wrap: anywhere; }
code, pre { font: .875rem/1.4 ui-monospace, monospace; }
pre { overflow-x: auto; padding: .5rem; border-radius: .3rem;
      background: color-mix(in srgb, currentColor 7%, transparent); }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: .15rem .75rem .15rem 0; }
td:last-child { overflow-wrap: anywhere; width: 100%; }
td:not(:last-child) { white-space: nowrap; }
.method { display: inline-block; font-weight: 700; min-width: 4.5rem; }
"""


def docs_page(description: dict[str, Any]) -> Answer:
    """The page.

    Parameters
    ----------
    description : dict
        In OpenAPI 3.1.

    Returns
    -------
    Answer
        HTML that loads nothing and runs nothing.

    Examples
    --------
    >>> from tidewolf.service.docs_page import docs_page
    >>> from tidewolf.service.schemas import document
    >>> b"/v1/sessions/{name}/decisions" in docs_page(document()).body
    True
    """
    digest = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
    policy = (
        f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; base-uri 'none'; "
        "form-action 'none'; frame-ancestors 'none'"
    )
    return page("\n".join(_lines(description)), policy)


def _lines(description: dict[str, Any]) -> Iterator[str]:
    info = description["info"]
    yield '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield f'<link rel="icon" href="data:,">\n<title>{escape(info["title"])}: the service</title>'
    yield f"<style>{_STYLE}</style>\n</head>\n<body><main>"
    yield f"<h1>{escape(info['title'])} {escape(info['version'])}</h1>"
    yield f"<p>{escape(info['description'])}</p>"
    yield '<p>The same for programs: <a href="openapi.json">openapi.json</a>. Where the server has '
    yield "tokens, send one as <code>Authorization: Bearer TOKEN</code>. A refusal is a problem "
    yield "(<code>application/problem+json</code>) whose <code>detail</code> says what to do.</p>"
    for section in description["tags"]:
        yield f"<section><h2>{escape(section['name'])}</h2>"
        yield from _section(description, section["name"])
        yield "</section>"
    yield "</main></body>\n</html>"


def _section(description: dict[str, Any], section: str) -> Iterator[str]:
    for path, methods in description["paths"].items():
        shared = methods.get("parameters", [])
        for method, operation in methods.items():
            if method != "parameters" and section in operation["tags"]:
                yield from _operation(description, path, method, operation, shared)


def _operation(
    description: dict[str, Any],
    path: str,
    method: str,
    operation: dict[str, Any],
    shared: list[dict[str, Any]],
) -> Iterator[str]:
    yield f'<details><summary><span class="method">{method.upper()}</span>'
    yield f"<code>{escape(path)}</code><br>{escape(operation['summary'])}</summary>"
    if "description" in operation:
        yield f"<p>{escape(operation['description'])}</p>"
    parameters = [*shared, *operation.get("parameters", [])]
    if parameters:
        yield "<h3>Parameters</h3><table>"
        for one in parameters:
            where = f"<code>{escape(one['name'])}</code></th><td>in the {escape(one['in'])}</td>"
            yield f'<tr><th scope="row">{where}<td>{escape(one["description"])}</td></tr>'
        yield "</table>"
    if "requestBody" in operation:
        yield "<h3>Body</h3>"
        yield from _content(description, operation["requestBody"]["content"])
    yield "<h3>Answers</h3><table>"
    for status, response in operation["responses"].items():
        said = _found(description, response)["description"]
        yield f'<tr><th scope="row">{escape(status)}</th><td>{escape(said)}</td></tr>'
    yield "</table>"
    yield from _content(description, operation["responses"]["200"]["content"])
    yield "</details>"


def _content(description: dict[str, Any], content: dict[str, Any]) -> Iterator[str]:
    """The keys of a body, and an example of it."""
    for kind, body in content.items():
        schema = _found(description, body["schema"])
        keys = schema.get("properties", {})
        yield f"<p><code>{escape(kind)}</code></p>"
        if keys:
            needed = schema.get("required", ())
            yield "<table>"
            for key, one in keys.items():
                must = "" if key in needed else " (may be absent)"
                said = _found(description, one).get("description", "")
                yield f'<tr><th scope="row"><code>{escape(key)}</code></th>'
                yield f"<td>{escape(one.get('description', said))}{must}</td></tr>"
            yield "</table>"
        if "example" in body:
            yield f"<pre>{escape(json.dumps(body['example'], indent=2), quote=False)}</pre>"


def _found(description: dict[str, Any], one: dict[str, Any]) -> dict[str, Any]:
    """What a reference refers to."""
    found: Any = description
    if "$ref" not in one:
        return one
    for part in one["$ref"].removeprefix("#/").split("/"):
        found = found[part]
    return dict(found)
