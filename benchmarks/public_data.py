"""Where the records of the benchmarks come from, and whether they are there.

    python -m benchmarks.public_data                       says it for every file
    python -m benchmarks.public_data --figret FOLDER       makes meta_pod_a.npz of FIGRET's folder

Nothing is shipped and nothing is downloaded: fetch a file, put it into the folder that
TIDEWOLF_DATA names, and ask again. A file counts as right when facts that papers state follow from
it.
"""

import argparse
import sys
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks import public_sdplib, tasks
from tidewolf.experiments.templates import _links_in, _rounds, _tunnels
from tidewolf.problems.base import VARIABLE, data_folder, recorded


class Source(NamedTuple):
    """A file, and where a reader gets it."""

    file: str
    subject: str
    source: str
    licence: str
    fetch: str
    """what to type, or to do"""
    facts: Callable[[], Sequence[tuple[str, float, float]]]
    """(what, the value published, the value in the file)"""


def _nyse_facts() -> list[tuple[str, float, float]]:
    r = tasks.nyse().stream.losses.returns
    return [
        ("days", 5651, len(r)),
        ("stocks", 36, r.shape[1]),
        ("market", 14.50, float(r.prod(axis=0).mean())),
        ("best stock", 54.14, float(r.prod(axis=0).max())),
        ("uniform constant rebalanced", 27.08, float(r.mean(axis=1).prod())),
    ]


def _meta_facts() -> list[tuple[str, float, float]]:
    demands, uses, pair, capacities, best = recorded(
        "meta_pod_a.npz", "demands", "path_links", "path_pair", "capacities", "best_mlu"
    )
    load = (demands[:, pair] / 3.0) @ (uses / capacities)
    return [
        ("rounds", 10_000, len(demands)),
        ("paths", 36, len(uses)),
        ("even splits", 1.400, float((load.max(axis=1) / best)[7500:].mean())),
    ]


def _sdplib_facts(name: str) -> list[tuple[str, float, float]]:
    text = public_sdplib.file_of(name).read_text(encoding="latin-1")
    return [("order", public_sdplib.order_of(name), public_sdplib.parse(text).n)]


SOURCES = (
    Source(
        "nyse_o.csv",
        "portfolio",
        "universal/data/*.csv in the wheel of universal-portfolios 0.4.17 on PyPI; beside it are "
        "the other records of `decisions curvature`",
        "the package's own (MIT with a request for feedback); prices as in Cover (1991)",
        "pip download universal-portfolios==0.4.17 --no-deps; unzip -j universal_portfolios-*.whl "
        "'universal/data/*.csv' -d $TIDEWOLF_DATA",
        _nyse_facts,
    ),
    Source(
        "meta_pod_a.npz",
        "traffic",
        "Data/Facebook_pod_a of https://github.com/FIGRET/figret (SIGCOMM 2024): Meta's PoD trace",
        "MIT",
        "git clone https://github.com/FIGRET/figret; python -m benchmarks.public_data --figret "
        "figret/Data/Facebook_pod_a",
        _meta_facts,
    ),
    *(
        Source(
            f"{name}.dat-s",
            "sdplib",
            "SDPLIB 1.2 (Borchers 1999), https://github.com/vsdp/SDPLIB"
            + {
                "mcp100": "; also bin/mcp100.dat-s of DSDP 5.8 (Debian's source package dsdp)",
                "theta1": "; also test/theta1.dat-s of CSDP 6.2.0 (Debian's coinor-csdp)",
            }.get(name, ""),
            "none stated; cite Borchers (1999)",
            f"take data/{name}.dat-s",
            partial(_sdplib_facts, name),
        )
        for name in public_sdplib.PUBLISHED
    ),
)


def state(source: Source) -> str:
    """ "absent", "right: ..." or "WRONG: ...", with the facts that were checked."""
    if not (data_folder() / source.file).is_file():
        return "absent"
    try:
        facts = source.facts()
    except Exception as error:  # a file of any content is to be told about
        return f"WRONG: it cannot be read ({error})"
    wrong = [
        f"{what} {found:.6g} in place of {published:.6g}"
        for what, published, found in facts
        if abs(found - published) > 1e-3 * abs(published)
    ]
    if wrong:
        return f"WRONG: {'; '.join(wrong)}"
    return f"right: {', '.join(f'{what} {found:.4g}' for what, _, found in facts)}"


def from_figret(folder: Path) -> dict[str, Any]:
    """The arrays of meta_pod_a.npz, from FIGRET's folder of a network."""
    (demands, optima), links = _rounds(folder), _links_in(folder)
    tunnels = _tunnels(folder / "tunnels.txt") or {}
    paths, pairs = [(pair, path) for pair in tunnels for path in tunnels[pair]], [*tunnels]
    ends = [link[:2] for link in links]
    return {
        "demands": demands[:, *np.array(pairs).T].astype(np.float32),
        "path_links": np.array([[e in pairwise(p) for e in ends] for _, p in paths], np.uint8),
        "path_pair": np.array([pairs.index(pair) for pair, _ in paths], dtype=np.int16),
        "capacities": np.array([link[2] for link in links]),
        "best_mlu": optima,
    }


def main(words: Sequence[str]) -> int:
    """Print every file's source and state; 1 where one is wrong."""
    parser = argparse.ArgumentParser("python -m benchmarks.public_data")
    parser.add_argument("--figret", type=Path, help="FIGRET's folder Data/Facebook_pod_a")
    given = parser.parse_args(words)
    if given.figret is not None:
        path = data_folder() / "meta_pod_a.npz"
        np.savez_compressed(path, **from_figret(given.figret))
        print(f"written: {path}")
    print(f"Files are looked for in {data_folder()} ({VARIABLE}).\n")
    found = [(source, state(source)) for source in SOURCES]
    for source, words_of in found:
        print(f"{source.file} ({source.subject}): {words_of}")
        print(f"  from     {source.source}")
        print(f"  licence  {source.licence}")
        print(f"  fetch    {source.fetch}")
    return 1 if any(words_of.startswith("WRONG") for _, words_of in found) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
