"""The licences of everything that pyproject.toml asks for, written to docs/licences.md by
`python -m tools.licences`.

What a library says of itself is read from its installed metadata: the SPDX expression where there
is one, else the classifiers. `NOTES` adds what metadata do not say.
"""

import re
import sys
import tomllib
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "licences.md"
WORKSHOP = ("docs", "dev", "ci")
"""Extras for who works on tidewolf."""
NAMES = {
    "3-clause BSD": "BSD-3-Clause",
    "Apache Software License": "Apache-2.0",
    "BSD 2-Clause License": "BSD-2-Clause",
    "BSD 3-Clause License": "BSD-3-Clause",
    "BSD License": "BSD",
    "MIT License": "MIT",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "Python Software Foundation License": "PSF",
}
"""What classifiers and texts say, shorter."""
NOTES = {
    "matplotlib": "its own licence, in the manner of PSF's; the wheel has fonts (DejaVu, STIX)",
    "numba": "brings llvmlite (BSD-2-Clause), which has LLVM in it (Apache-2.0 with exception)",
    "numpy": "the wheel has OpenBLAS (BSD-3-Clause) and libgfortran (GPL-3.0 with exception) in it",
    "orjson": "a file under MPL-2.0: changes to that file itself would have to be published",
    "psycopg": "LGPL: used as a library of its own, through its public interface, never copied, "
    "changed or shipped; with `binary` its wheel has libpq and OpenSSL in it",
    "pydata-sphinx-theme": "the built site has its CSS, Bootstrap (MIT) and Font Awesome in it",
    "scipy": "the wheel has OpenBLAS and HiGHS (MIT) in it",
    "sphinx-mathjax-offline": "the built site has MathJax in it, which is Apache-2.0",
    "torch": "the wheel has many libraries in it; on CUDA those of NVIDIA, under NVIDIA's terms",
}
HEAD = """# Licences

tidewolf itself is under the BSD 3-Clause licence (`LICENSE`). Its wheel holds its own code,
templates and style sheets, and no code of any other project. Libraries are installed beside it by
pip, each under its own licence; this page names those that `pyproject.toml` asks for, as they
describe themselves. What they bring along in turn is theirs to say: `pip install pip-licenses` and
then `pip-licenses` lists an environment.

Written by `python -m tools.licences`.
"""


def requested_experiment(project: Mapping[str, Any]) -> dict[str, list[str]]:
    """Every library of a [project] table, with the extras that ask for it ("": always)."""
    groups = {"": project["dependencies"], **project["optional-dependencies"]}
    found: dict[str, list[str]] = {}
    for extra, lines in groups.items():
        for line in lines:
            name = re.match(r"[\w.-]+", line)
            assert name is not None, line
            found.setdefault(name[0].lower(), []).append(extra)
    return dict(sorted(found.items()))


def licence_of(name: str) -> str:
    """What an installed library says of its licence."""
    about = metadata(name)
    if expression := about["License-Expression"]:
        return expression
    kinds = [line for line in about.get_all("Classifier") or () if line.startswith("License ::")]
    kinds = [kind.rpartition(" :: ")[2] for kind in kinds]
    named = " and ".join(NAMES.get(kind, kind) for kind in kinds)
    if named not in ("", "BSD"):
        return named
    text = (about["License"] or "").strip()
    first = text.partition("\n")[0]
    if 0 < len(first) <= 30 and not first.startswith("Copyright"):
        return NAMES.get(first, first)
    if named and "may be used to endorse" in " ".join(text.split()):
        return "BSD-3-Clause"
    return named or "see its own files"


def page(project: Mapping[str, Any]) -> str:
    """The page, from what is installed here."""
    every = requested_experiment(project)
    used = {name: extras for name, extras in every.items() if not set(extras) <= set(WORKSHOP)}
    rest = {name: extras for name, extras in every.items() if name not in used}
    parts = [
        HEAD,
        "## What tidewolf runs with\n",
        _table(used),
        "## What only its makers install\n",
        _table(rest),
    ]
    return "\n".join(parts)


def _table(libraries: Mapping[str, Sequence[str]]) -> str:
    rows = ["| library | asked for by | licence | note |", "|---|---|---|---|"]
    for name, extras in libraries.items():
        by = ", ".join(f"`{extra}`" if extra else "always" for extra in extras)
        rows.append(f"| {name} | {by} | {licence_of(name)} | {NOTES.get(name, '')} |")
    return "\n".join(rows) + "\n"


def main() -> int:
    """Write the page."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    try:
        PAGE.write_text(page(project))
    except PackageNotFoundError as error:
        print(f"{error.name} is not installed, so that its licence is not known: install it first.")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
