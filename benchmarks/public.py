"""Numbers that others have published, reproduced, and ours beside them: docs/benchmarks/public.md.

    traffic    utilisation over optimum on Meta's PoD trace
    nyse       wealth on NYSE(O)
    sdplib     max-cut relaxations of SDPLIB
    oracles    FrankWolfe.jl's oracles, and the sets here

`python -m benchmarks public nyse` measures one; `--write` puts the tables into the page,
`--compare` says where the page differs. Data are fetched by the reader
(`python -m benchmarks.public_data`); what is absent is skipped, and its table left as it is.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from time import perf_counter

from benchmarks import blocks
from benchmarks.public_tables import Skipped, Table, differences, parsed
from tidewolf.core.errors import InvalidInput

PAGE = Path(__file__).parent.parent / "docs" / "benchmarks" / "public.md"
SUBJECTS = ("traffic", "nyse", "sdplib", "oracles")
NEAR = 0.01
"""How far a number may be from the page's, as a share: policies are trained, solvers get better."""


def measured(subject: str) -> list[Table]:
    """The tables of a subject; `Skipped` where its data are absent."""
    try:
        found: list[Table] = import_module(f"benchmarks.public_{subject}").tables()
    except InvalidInput as missing:
        raise Skipped(str(missing)) from missing
    return found


def compared(text: str, tables: Sequence[Table]) -> list[str]:
    """Where a page differs from tables."""
    found = []
    for table in tables:
        body = blocks.find(text, table.name)
        if body is None:
            found.append(f"{table.name}: the page has no such block")
        else:
            found += differences(parsed(table.name, body), table, NEAR)
    return found


def report(out: Path | None = None, arguments: Sequence[str] = ()) -> None:
    """Print the tables of the subjects named, or of all; write or compare the page's."""
    parser = argparse.ArgumentParser("python -m benchmarks public")
    parser.add_argument("subjects", nargs="*", metavar="subject", help=", ".join(SUBJECTS))
    parser.add_argument("--write", action="store_true", help="write the tables into the page")
    parser.add_argument("--compare", action="store_true", help="say where the page differs")
    given = parser.parse_args(arguments)
    for name in given.subjects:
        if name not in SUBJECTS:
            parser.error(f"there is no subject {name!r}; there are {', '.join(SUBJECTS)}.")
    text = PAGE.read_text(encoding="utf-8")
    for subject in given.subjects or SUBJECTS:
        begun = perf_counter()
        print(f"{subject}:", flush=True)
        try:
            tables = measured(subject)
        except Skipped as why:
            print(f"  skipped: {why}\n", flush=True)
            continue
        for table in tables:
            print(table)
            if given.write:  # the page as it is by now
                text = PAGE.read_text(encoding="utf-8")
                text = blocks.replaced(text, table.name, table.markdown())
                PAGE.write_text(text, encoding="utf-8")
        for line in compared(text, tables) if given.compare else ():
            print(f"  DIFFERS  {line}")
        print(f"  ({perf_counter() - begun:.0f} seconds)\n", flush=True)
