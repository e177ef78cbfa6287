"""Docstrings in NumPy's style: their sections read, and the types of Parameters written from the
declarations.

    python -m tools.docstrings            writes them into the source (`make format` does)
    python -m tools.docstrings --check    says which would change, and exits 1 where any would

What a setting means is said once, in the docstring (`core/settings.py`); its type and default are
those of the declaration.
"""

import ast
import inspect
import re
import sys
import textwrap
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Union, get_args, get_origin

from tidewolf.core.settings import REQUIRED, Setting, settings_of
from tools.public import methods, public

COLUMNS, _HEADING = 100, re.compile(r"^(\w[\w ]*)\n-{3,}\n", re.MULTILINE)


def sections(doc: str) -> dict[str, str]:
    """The text of a docstring by section; what comes before the first heading is under ""."""
    parts = _HEADING.split(inspect.cleandoc(doc))
    return {"": parts[0], **dict(zip(parts[1::2], parts[2::2], strict=True))}


def entries(section: str) -> dict[str, str]:
    """The entries of a Parameters, Returns or Raises section: what stands left, and its text."""
    found: dict[str, str] = {}
    for block in re.split(r"\n(?=\S)", section.strip()):
        head, _, text = block.partition("\n")
        found[head] = textwrap.dedent(text).strip()
    return found


def parameters(settings: dict[str, Setting]) -> str:
    """The Parameters section that declarations make."""
    lines = []
    for setting in settings.values():
        lines.append(f"{setting.name} : {_type_line(setting)}")
        lines.append(textwrap.indent(textwrap.fill(setting.meaning, COLUMNS - 12), "    "))
    return "\n".join(lines)


def declared(make: Any) -> dict[str, Setting]:
    """The settings of a class or function, if every one of them is declared and explained; else
    none.
    """
    settings = settings_of(make)
    return settings if all(s.declared and s.meaning for s in settings.values()) else {}


def documented() -> Iterator[tuple[str, Any]]:
    """Path and object of what is public and declares its settings, constructors among them."""
    for path, thing in public():
        if declared(thing):
            yield path, thing
        for name, method in methods(thing) if inspect.isclass(thing) else ():
            bound = getattr(thing, name)
            if inspect.ismethod(bound) and declared(bound):
                yield f"{path}.{name}", method


def with_parameters(doc: str, settings: dict[str, Setting]) -> str:
    """A docstring, indentation taken off, with the Parameters that its settings make."""
    parts = sections(doc)
    parts.pop("Parameters", None)
    text = parts.pop("").strip()
    for heading, body in {"Parameters": parameters(settings) + "\n", **parts}.items():
        text += f"\n\n{heading}\n{'-' * len(heading)}\n{body.strip(chr(10))}"
    return text


def _type_line(setting: Setting) -> str:
    kinds = [k for k in _kinds(setting.takes) if k is not type(None)]
    text = " or ".join(dict.fromkeys(_type_name(kind) for kind in kinds))
    if setting.default is REQUIRED:
        return text
    return (
        f"{text}, optional" if setting.default is None else f"{text}, default {setting.default!r}"
    )


def _kinds(takes: Any) -> tuple[Any, ...]:
    return get_args(takes) if get_origin(takes) in (Union, types.UnionType) else (takes,)


def _type_name(kind: Any) -> str:
    if kind is Any or getattr(kind, "__name__", "") == "ndarray":
        return "array"
    if (
        get_origin(kind) in (tuple, list)
        or getattr(get_origin(kind), "__module__", "") == "collections.abc"
    ):
        if get_args(kind) == (Any, ...):
            return "tuple"
        items = [part for item in get_args(kind) if item is not ... for part in _kinds(item)]
        inner = " or ".join(dict.fromkeys(_type_name(item) for item in items))
        return f"{get_origin(kind).__name__.lower()} of {inner}"
    return str(getattr(kind, "__name__", kind))


def _rewritten(source: str, node: ast.AST, doc: str) -> str:
    """The source with the docstring of a class or function replaced."""
    expression = node.body[0]  # type: ignore[attr-defined]
    lines, indent = source.splitlines(keepends=True), " " * expression.col_offset
    raw = "r" if "\\" in doc else ""
    text = textwrap.indent(f'{raw}"""{doc}\n"""', indent, lambda line: bool(line.strip()))
    return "".join([*lines[: expression.lineno - 1], text + "\n", *lines[expression.end_lineno :]])


def _node(source: str, qualname: str) -> Any:
    node: Any = ast.parse(source)
    for name in qualname.split("."):
        node = next(
            n for n in node.body if isinstance(n, ast.ClassDef | ast.FunctionDef) and n.name == name
        )
    return node


def main(arguments: list[str], say: Callable[[str], None] = print) -> int:
    """Write, or with --check only compare, the Parameters of everything that declares its
    settings.
    """
    changed = []
    for path, thing in documented():
        make = thing if inspect.isclass(thing) else _bound(path)
        doc = inspect.cleandoc(thing.__doc__ or "")
        wanted = with_parameters(doc, declared(make))
        if doc.strip() != wanted.strip():
            changed.append(path)
            if "--check" not in arguments:
                file = Path(inspect.getsourcefile(inspect.unwrap(thing)) or "")
                source = file.read_text(encoding="utf-8")
                node = _node(source, thing.__qualname__)
                file.write_text(_rewritten(source, node, wanted), encoding="utf-8")
    check = "--check" in arguments
    for path in changed:
        say(f"{path}: {'its Parameters are not those declared' if check else 'Parameters written'}")
    return 1 if changed and check else 0


def _bound(path: str) -> Any:
    for public_path, thing in public():
        if path == public_path:
            return thing
        if path.startswith(f"{public_path}."):
            return getattr(thing, path.removeprefix(f"{public_path}."))
    raise LookupError(path)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
