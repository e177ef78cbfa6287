"""The site's reference: a page for each package, a page for each public name under the path that
users type, the pages of what one builds with, and the page of the commands.

They are written before Sphinx looks which pages there are, into a folder that git ignores.
"""

import inspect
import re
from importlib import import_module
from pathlib import Path
from typing import Any

from tools import commands
from tools.docstring_markup import as_rst
from tools.members import directive, shown, shown_bases
from tools.public import PACKAGES, PARTS, aliases, parts, public

_PACKAGE = """\
{title}

.. automodule:: {package}
   :no-members:

.. currentmodule:: {package}

.. toctree::
   :hidden:

{pages}

.. list-table::
   :widths: 30 70

{lines}
"""

_NAME = """\
{title}

.. currentmodule:: {package}

{text}
"""

_PART = """\
{title}

.. automodule:: {module}
   :no-members:

.. currentmodule:: {module}

{classes}
"""

_ONE = """\
.. autoclass:: {name}
{options}"""
_MEMBER = """
   .. {directive}:: {name}
"""


def pages() -> dict[str, str]:
    """The text of each page by its file's name."""
    found = {"commands.rst": commands.page(), "experiment-files.rst": commands.files()}
    files = file_names()
    listed: dict[str, list[str]] = {package: [] for package in PACKAGES}
    for path, thing in public():
        package, _, name = path.rpartition(".")
        listed[package].append(path)
        said = {"title": _title(name), "package": package}
        found[files[path]] = _NAME.format(text=_one(name, thing), **said)
    elsewhere = aliases()
    for package, paths in listed.items():
        assert inspect.getdoc(import_module(package)), f"{package} says nothing of itself"
        others = [alias for alias in elsewhere if alias.rpartition(".")[0] == package]
        found[f"{package}.rst"] = _PACKAGE.format(
            title=_title(package),
            package=package,
            pages="\n".join(f"   {files[path].removesuffix('.rst')}" for path in sorted(paths)),
            lines="\n".join(_line(path, elsewhere.get(path)) for path in sorted(paths + others)),
        )
    for module in PARTS:
        found[f"{module}.rst"] = _PART.format(
            title=_title(module),
            module=module,
            classes="\n".join(
                _one(path.removeprefix(f"{module}."), thing)
                for path, thing in parts()
                if path.rpartition(".")[0] == module
            ),
        )
    return found


def file_names() -> dict[str, str]:
    """The file of each public name's page. Some file systems hold `Run` and `run` for one name."""
    found: dict[str, str] = {}
    taken: set[str] = set()
    for path in sorted(path for path, _ in public()):  # capitals come first
        name = f"{path}-function" if path.lower() in taken else path
        taken.add(path.lower())
        found[path] = f"{name}.rst"
    return found


def write(folder: Path) -> None:
    """Pages into a folder; those that are as they were are left alone, so that builds are quick."""
    folder.mkdir(parents=True, exist_ok=True)
    wanted = pages()
    for old in set(folder.rglob("*.rst")) - {folder / name for name in wanted}:
        old.unlink()  # of a name that is gone, or of an earlier layout
    for name, text in wanted.items():
        page = folder / name
        if not page.exists() or page.read_text(encoding="utf-8") != text:
            page.write_text(text, encoding="utf-8")


def said_first(thing: object) -> str:
    """The first sentence of a docstring, on one line."""
    first = (inspect.getdoc(thing) or "").partition("\n\n")[0].replace("\n", " ")
    return re.split(r"(?<!\.)\. ", first)[0].rstrip(".") + "."


def _line(path: str, elsewhere: str | None) -> str:
    """A name and what it is, as a row of a table; `elsewhere` is the path of its own page."""
    package, _, name = path.rpartition(".")
    (said,) = as_rst([said_first(getattr(import_module(package), name))])
    if elsewhere:
        said = f"{said} Also :py:obj:`{elsewhere}`."
    return f"   * - :py:obj:`{name} <{elsewhere or path}>`\n     - {said}"


def _one(name: str, kind: Any) -> str:
    """A class with the members that are shown, or a function."""
    if not inspect.isclass(kind):
        return f".. autofunction:: {name}\n"
    members = (_MEMBER.format(directive=directive(kind, own), name=own) for own in shown(kind))
    options = "   :show-inheritance:\n" if shown_bases(kind) else ""
    return "".join((_ONE.format(name=name, options=options), *members))


def _title(text: str) -> str:
    return f"{text}\n{'=' * len(text)}"
