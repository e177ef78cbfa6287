"""Prints the lowest version of every direct dependency in pyproject.toml, as pins for pip.

`python tools/lowest.py app graph sweep`: the package's own dependencies and those of the extras
named; `numpy>=2.1` becomes `numpy==2.1`. A requirement without `>=` is refused, for it declares
no lowest version that could be tested.
"""

import re
import sys
import tomllib
from pathlib import Path

PYPROJECT = Path(__file__).parent.parent / "pyproject.toml"


def pins(project: dict, extras: list[str]) -> list[str]:
    """The requirements of a [project] table and of these extras, each at its lowest version."""
    declared = project["optional-dependencies"]
    if unknown := sorted(set(extras) - set(declared)):
        raise SystemExit(
            f"pyproject.toml has no extra {', '.join(unknown)}; it has {', '.join(declared)}."
        )
    requirements = project["dependencies"] + [line for extra in extras for line in declared[extra]]
    found = {}
    for line in requirements:
        match = re.fullmatch(r"([\w.-]+)>=([\w.]+)", line)
        if match is None:
            raise SystemExit(f"pyproject.toml asks for {line!r}; write it as name>=version.")
        name, version = match.groups()
        if found.setdefault(name, version) != version:
            raise SystemExit(
                f"pyproject.toml asks for {name} from {found[name]} and from {version}; "
                "one of them is wrong."
            )
    return [f"{name}=={version}" for name, version in sorted(found.items())]


if __name__ == "__main__":
    print("\n".join(pins(tomllib.loads(PYPROJECT.read_text())["project"], sys.argv[1:])))
