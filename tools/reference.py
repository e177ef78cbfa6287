"""The site's reference: a page for each package, which lists its public names under the paths that
users type, and from which autosummary makes a page for each name.
"""

from __future__ import annotations

import inspect
from importlib import import_module
from pathlib import Path

from tools.public import PACKAGES, public

_PAGE = """\
{title}
{line}

.. automodule:: {package}
   :no-members:

.. currentmodule:: {package}

.. autosummary::
   :toctree: names

{names}
"""


def names() -> dict[str, list[str]]:
    """The public names of each package that has any of its own, without the package's path."""
    found: dict[str, list[str]] = {}
    for path, _ in public():
        package, _, name = path.rpartition(".")
        found.setdefault(package, []).append(name)
    return {package: sorted(found[package]) for package in PACKAGES if package in found}


def pages() -> dict[str, str]:
    """The text of each page by its file's name."""
    found = {}
    for package, listed in names().items():
        doc = inspect.getdoc(import_module(package))
        assert doc is not None, f"{package} says nothing of itself"
        found[f"{package}.rst"] = _PAGE.format(
            title=package,
            line="=" * len(package),
            package=package,
            names="\n".join(f"   {name}" for name in listed),
        )
    return found


def write(folder: Path) -> None:
    """Pages into a folder; those that are as they were are left alone, so that builds are quick."""
    folder.mkdir(parents=True, exist_ok=True)
    wanted = pages()
    for old in set(folder.glob("*.rst")) - {folder / name for name in wanted}:
        old.unlink()
    for name, text in wanted.items():
        page = folder / name
        if not page.exists() or page.read_text(encoding="utf-8") != text:
            page.write_text(text, encoding="utf-8")
