"""What there is in a tree, how often it repeats itself, and what its import and one round cost.

python -m tools.census [--root PATH] [--json] [--names] [--passages]

statements                   ast.stmt nodes of src, nested ones and docstrings included
passages                     pairs of files of src that share six or more identical lines;
                             tools/passages.py says which lines count
names                        public functions and classes that two or more modules of src
                             define at top level; `State` and `every` are left out
constants                    the same of public constants and type aliases
package cycles               groups of folders and modules of the first level that import
                             one another, lazy imports included
evaluation imports report    imports of report by evaluation, lazy ones included
wide lines                   lines of tracked Python files over 100 columns
import ms                    `import tidewolf` and `tw.sets.every()` over `import numpy`
round files, round calls     of the package, by one round of `tw.run`
"""

from __future__ import annotations

import argparse
import json
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tools.measured import import_milliseconds, one_round
from tools.passages import identical_passages
from tools.source import (
    count_statements,
    package_cycles,
    read_imports,
    read_modules,
    repeated_assignments,
    repeated_definitions,
)

ROOT = Path(__file__).resolve().parent.parent
COLUMNS = 100


def tracked_files(root: Path) -> list[Path]:
    """The Python files that git tracks below a folder."""
    command = ["git", "-C", str(root), "ls-files", "-z", "*.py"]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    files = [root / name for name in listed.split("\0") if name]
    return [file for file in files if file.is_file()]


def count_wide_lines(files: Iterable[Path]) -> int:
    """Lines over a hundred columns."""
    lines = (line for file in files for line in file.read_text(encoding="utf-8").splitlines())
    return sum(len(line) > COLUMNS for line in lines)


def source_figures(package: Path) -> dict[str, Any]:
    """What reading the source of a package gives, without running it."""
    modules = read_modules(package)
    imports = read_imports(modules, package.name)
    upward = [one for one in imports if one.between() == ("evaluation", "report")]
    return {
        "statements": count_statements(modules),
        "passages": [str(passage) for passage in identical_passages(package)],
        "names": repeated_definitions(modules),
        "constants": repeated_assignments(modules),
        "package cycles": [" <-> ".join(group) for group in package_cycles(imports)],
        "evaluation imports report": [str(one) for one in upward],
    }


def census(root: Path) -> dict[str, Any]:
    """Every figure of the tree at a path, lists in full."""
    each = one_round(root / "src")
    return source_figures(root / "src" / "tidewolf") | {
        "wide lines": count_wide_lines(tracked_files(root)),
        "import ms": round(import_milliseconds(root / "src"), 1),
        "round files": each.files,
        "round calls": round(each.calls, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tools.census", description="Counts a tree.")
    parser.add_argument("--root", type=Path, default=ROOT, help="a checkout; this one by default")
    parser.add_argument("--json", action="store_true", help="every figure, lists in full, as JSON")
    parser.add_argument("--names", action="store_true", help="list names and constants")
    parser.add_argument("--passages", action="store_true", help="list the identical passages")
    asked = parser.parse_args()
    figures = census(asked.root.resolve())
    if asked.json:
        print(json.dumps(figures, indent=2))
        return
    listed = {"package cycles", "evaluation imports report"}
    listed |= {"names", "constants"} if asked.names else set()
    listed |= {"passages"} if asked.passages else set()
    for name, figure in figures.items():
        print(f"{name:26} {len(figure) if isinstance(figure, list | dict) else figure}")
        for item in figure if name in listed else ():
            where = f": {', '.join(figure[item])}" if isinstance(figure, dict) else ""
            print(f"    {item}{where}")


if __name__ == "__main__":
    main()
