"""Source in the site: files and tests that pages name, and what the reference shows, lead to
highlighted pages that need no network.

`learners/ensemble.py`, `tests/test_hedge.py` or `tests/test_hedge.py::test_it` in the code of a
page becomes a link where such a file is in the repository, and every class and function of the
reference gets one behind its signature. A file that is linked has one page, source/PATH.html, on
which each class and function has its name as anchor.
"""

import ast
import inspect
import re
from collections.abc import Iterator
from functools import cache
from html import escape
from importlib import import_module
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.transforms import SphinxTransform

ROOT = Path(__file__).parent.parent
PLACES = ("", "src", "src/tidewolf")
"""Where a path of a page may begin."""
_PATH = re.compile(r"([\w-]+(?:/[\w-]+)+\.py)(?:::([\w.]+))?")


@cache
def anchors(file: Path) -> dict[str, int]:
    """The line, from 0, on which each class and function of a file begins, decorators included."""
    found: dict[str, int] = {}

    def walk(body: list[ast.stmt], prefix: str) -> None:
        for each in body:
            if isinstance(each, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                first = min([each.lineno, *(mark.lineno for mark in each.decorator_list)])
                found.setdefault(prefix + each.name, first - 1)
            if isinstance(each, ast.ClassDef):
                walk(each.body, f"{prefix}{each.name}.")

    walk(ast.parse(file.read_text(encoding="utf-8")).body, "")
    return found


def find(text: str) -> tuple[str, str] | None:
    """The file, from the repository's root, and the anchor that a piece of code names."""
    if named := _PATH.fullmatch(text):
        for place in PLACES:
            file = ROOT / place / named[1]
            if file.is_file() and (not named[2] or named[2] in anchors(file)):
                return file.relative_to(ROOT).as_posix(), named[2] or ""
    return None


def find_object(module: str, name: str) -> tuple[str, str] | None:
    """The file and the anchor of a class, function or method, where it is written in Python."""
    first, *rest = name.split(".")
    thing: Any = getattr(import_module(module), first)
    try:
        for part in rest:
            thing = inspect.getattr_static(thing, part)
    except AttributeError:
        return None
    thing = getattr(thing, "fget", None) or getattr(thing, "__func__", None) or thing
    thing = inspect.unwrap(getattr(thing, "func", thing))
    try:
        file = Path(inspect.getsourcefile(thing) or "")
    except TypeError:
        return None
    anchor = getattr(thing, "__qualname__", "")
    if not file.is_relative_to(ROOT) or anchor not in anchors(file):
        return None
    return file.relative_to(ROOT).as_posix(), anchor


def page_of(file: str) -> str:
    """The name of the page that shows a file."""
    return f"source/{file.removesuffix('.py')}"


def highlighted(text: str, marks: dict[str, int], highlight: Any) -> str:
    """Source as HTML, with an empty anchor before each line of `marks`."""
    head, pre, code = highlight(text, "python").partition("<pre>")
    lines = code.split("\n")
    if lines[0].startswith("<span></span>"):
        lines[0] = lines[0].removeprefix("<span></span>")
    for name, line in marks.items():
        lines[line] = f'<span id="{escape(name)}"></span>{lines[line]}'
    return f"{head}{pre}<span></span>" + "\n".join(lines)


# --- what Sphinx calls ----------------------------------------------------------------------------


class LinkSources(SphinxTransform):
    """Code that names a file, or a test in it, leads to its page."""

    default_priority = 610

    def apply(self, **given: Any) -> None:
        for code in list(self.document.findall(nodes.literal)):
            found = find(code.astext())
            if found and not isinstance(code.parent, nodes.reference | nodes.title):
                link = _link(self.env, *found)
                code.replace_self(link)
                link += code


def add_source_links(app: Any, document: nodes.document) -> None:
    """Event `doctree-read`: a link to its source behind each signature of the reference."""
    for signature in document.findall(addnodes.desc_signature):
        module = signature.get("module") if signature.parent.get("domain") == "py" else None
        if module and (found := find_object(module, signature["fullname"])):
            link = _link(app.env, *found)
            link += nodes.inline("", "[source]", classes=["viewcode-link"])
            signature += link


def resolve(app: Any, document: nodes.document, docname: str) -> None:
    """Event `doctree-resolved`: links get their addresses, relative to the page they are on."""
    for link in list(document.findall(nodes.reference)):
        if file := link.get("source_file"):
            address = app.builder.get_relative_uri(docname, page_of(file))
            link["refuri"] = f"{address}#{link['anchor']}" if link["anchor"] else address


def pages(app: Any) -> Iterator[tuple[str, dict[str, str], str]]:
    """Event `html-collect-pages`: a page for each file that is linked."""
    for file in sorted(set().union(*_linked(app.env).values())):
        text = (ROOT / file).read_text(encoding="utf-8")
        body = highlighted(text, anchors(ROOT / file), app.builder.highlighter.highlight_block)
        yield page_of(file), {"title": file, "body": f"<h1>{escape(file)}</h1>{body}"}, "page.html"


def forget(app: Any, env: Any, docname: str) -> None:
    """Event `env-purge-doc`."""
    _linked(env).pop(docname, None)


def merge(app: Any, env: Any, docnames: Any, other: Any) -> None:
    """Event `env-merge-info`."""
    _linked(env).update({name: _linked(other)[name] for name in docnames if name in _linked(other)})


def setup(app: Any) -> dict[str, Any]:
    app.add_transform(LinkSources)
    app.connect("doctree-read", add_source_links)
    app.connect("doctree-resolved", resolve)
    app.connect("html-collect-pages", pages)
    app.connect("env-purge-doc", forget)
    app.connect("env-merge-info", merge)
    return {"version": "1", "env_version": 1, "parallel_read_safe": True}


def _linked(env: Any) -> dict[str, set[str]]:
    """The files that each page links to."""
    if not hasattr(env, "tidewolf_sources"):
        env.tidewolf_sources = {}
    found: dict[str, set[str]] = env.tidewolf_sources
    return found


def _link(env: Any, file: str, anchor: str) -> nodes.reference:
    _linked(env).setdefault(env.docname, set()).add(file)
    return nodes.reference("", "", internal=True, source_file=file, anchor=anchor)
