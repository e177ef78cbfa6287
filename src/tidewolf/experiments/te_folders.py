"""Read folders of traffic-engineering repositories, as FIGRET and DOTE publish them, and write them
as an experiment file with tables.

    NAME.json                          nodes and links of the network, with capacities (FIGRET)
    NAME_int.pickle.nnet               or links as text, one `source,target,capacity` a line (DOTE)
    NAME_int.txt                       or a matrix of capacities, separated by commas (DOTE)
    tunnels.txt                        `0 1:0-2-1,0-3-1`: the paths of a pair; may be absent
    train/1.hist, test/2.hist, ...     a demand matrix a line, row by row, separated by spaces
    train/1.opt, test/2.opt, ...       the least possible largest utilisation of each; may be absent

Rounds are the lines of `train`, then of `test`, files in the order of their numbers. Nodes are
numbered from 0. Pickles are refused: reading one runs what it says.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tidewolf.core.errors import InvalidInput
from tidewolf.core.types import Floats
from tidewolf.experiments import keys, templates

# How many tunnels a pair has if the folder has none.
_K = 3


class TrafficFolder(NamedTuple):
    # source, target, capacity
    links: list[tuple[int, int, float]]
    # of shape (rounds, nodes, nodes)
    demands: Floats
    # of each round; None if some file has none
    optima: Floats | None
    # the paths of each pair, as nodes; None if there is no file
    tunnels: dict[tuple[int, int], list[list[int]]] | None

    @classmethod
    def read(cls, folder: Path) -> TrafficFolder:
        """Read a folder; an error names the file.

        Raises
        ------
        InvalidInput
            If a file is absent, a pickle, or not in this format.
        """
        parts = [path for name in ("train", "test") for path in _numbered(folder / name)]
        if not parts:
            words = f"there is no train/1.hist or test/1.hist in {folder}"
            raise InvalidInput(f"Expected a folder of a network of FIGRET or DOTE; {words}.")
        tables = [_numbers(path) for path in parts]
        cells = tables[0].shape[1]
        nodes = round(cells**0.5)
        for path, table in zip(parts, tables, strict=True):
            if table.shape[1] != nodes * nodes or table.shape[1] != cells:
                words = f"expected {nodes} x {nodes} demands a line, received {table.shape[1]}"
                raise InvalidInput(f"{path}: {words}.")
            if not (table >= 0.0).all():
                raise InvalidInput(f"{path}: demands must be finite numbers of at least 0.")
        best = [path.with_suffix(".opt") for path in parts]
        optima = None
        if all(path.is_file() for path in best):
            optima = np.concatenate([_numbers(path).reshape(-1) for path in best])
            if len(optima) != sum(map(len, tables)) or not (optima > 0.0).all():
                words = "expected a number above 0 for each line of the .hist files"
                raise InvalidInput(f"{best[0].parent}: {words} in the .opt files.")
        demands = np.concatenate(tables).reshape(-1, nodes, nodes)
        return cls(_links(folder), demands, optima, _tunnels(folder / "tunnels.txt"))

    def files(self, path: Path, relative: bool = False) -> dict[Path, bytes]:
        """The experiment file and its tables, by their paths; `relative` divides the demands of a
        round by its optimum, so that a loss of 1 is optimal.
        """
        demands, optima = self.demands, self.optima
        if relative:
            if optima is None:
                raise InvalidInput("Relative demands need a .opt file for each .hist file.")
            demands = demands / optima[:, None, None]
        used = np.argwhere(self.demands.max(axis=0) > 0.0).tolist()
        pairs = [(int(i), int(j)) for i, j in used if i != j]
        if self.tunnels is not None:
            for pair in (pair for pair in pairs if pair not in self.tunnels):
                raise InvalidInput(f"tunnels.txt has no path from {pair[0]} to {pair[1]}: add one.")
            pairs = list(self.tunnels)
        data = templates.data_folder(path)
        sent = demands[:, [i for i, _ in pairs], [j for _, j in pairs]]
        tables: dict[str, tuple[Sequence[str], Iterable[Sequence[Any]]]] = {
            "links": (("tail", "head", "capacity"), self.links),
            "commodities": (("source", "target"), pairs),
            "demands": ([f"{i} > {j}" for i, j in pairs], sent.tolist()),
        }
        choice: dict[str, Any] = {"paths": "k-shortest", "k": _K}
        if self.tunnels is not None:
            rows = [
                (f"{i} > {j}", " > ".join(map(str, path)))
                for (i, j), paths in self.tunnels.items()
                for path in paths
            ]
            tables["tunnels"] = (("pair", "path"), rows)
            choice = {"tunnels": f"{data.name}/tunnels.csv"}
        if optima is not None:
            tables["optima"] = (("optimum",), [(each,) for each in optima.tolist()])
        named = {name: f"{data.name}/{name}.csv" for name in ("links", "commodities", "demands")}
        stream = {"objective": "max-utilization", "demands": named["demands"]}
        of_set = {"graph": named["links"], "commodities": named["commodities"], **choice}
        text = keys.to_toml({"format": keys.FILE_FORMAT, "set": of_set, "stream": stream})
        return {path: text.encode()} | {
            data / f"{name}.csv": _csv(*table) for name, table in tables.items()
        }


def _csv(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> bytes:
    lines = [",".join(header), *(",".join(map(str, row)) for row in rows)]
    return ("\n".join(lines) + "\n").encode()


def _text(path: Path) -> str:
    """The text of a file; a pickle is refused unread."""
    try:
        data = path.read_bytes()
        if data[:1] == b"\x80" or data.endswith(b"."):
            raise InvalidInput(f"{path} is a pickle, which may run code: export it as text.")
        return data.decode()
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise InvalidInput(f"{path} is no text: expected the format of FIGRET or DOTE.") from None


def _numbered(folder: Path) -> list[Path]:
    found = folder.glob("*.hist")
    return sorted(found, key=lambda path: (not path.stem.isdigit(), path.stem.zfill(9)))


def _numbers(path: Path) -> Floats:
    try:
        table = np.loadtxt(_text(path).splitlines(), ndmin=2)
    except ValueError as error:
        raise InvalidInput(f"{path}: expected lines of numbers: {error}.") from None
    if not table.size or not np.isfinite(table).all():
        raise InvalidInput(f"{path}: expected lines of finite numbers.")
    return table


def _links(folder: Path) -> list[tuple[int, int, float]]:
    graphs, lists, matrices = (
        sorted(folder.glob(kind)) for kind in ("*.json", "*_int.pickle.nnet", "*_int.txt")
    )
    if not (found := [*graphs, *lists, *matrices]):
        pickles = [path.name for kind in ("*.pkl", "*.pickle") for path in folder.glob(kind)]
        more = f"; {pickles[0]} is a pickle, which may run code, and is not read" if pickles else ""
        names = "NAME.json, NAME_int.pickle.nnet or NAME_int.txt"
        raise InvalidInput(f"{folder}: expected the links in {names}{more}.")
    path = found[0]
    text, rows = _text(path), list[Any]()
    try:
        if path in graphs:
            graph = json.loads(text)
            rows = [(one["source"], one["target"], one["capacity"]) for one in graph["links"]]
            if not graph.get("directed", True):
                rows += [(head, tail, capacity) for tail, head, capacity in rows]
        elif path in lists:
            rows = [tuple(line.split(",")) for line in text.split()]
        else:
            matrix = np.array([list(map(float, line.split(","))) for line in text.split()])
            rows = [(i, j, matrix[i, j]) for i, j in np.argwhere(matrix > 0.0)]
        return [(int(tail), int(head), float(capacity)) for tail, head, capacity in rows]
    except (ValueError, KeyError, TypeError, IndexError) as error:
        words = "expected links with a source, a target and a capacity"
        raise InvalidInput(f"{path}: {words}; {error!r}.") from None


def _tunnels(path: Path) -> dict[tuple[int, int], list[list[int]]] | None:
    if not path.is_file():
        return None
    found = dict[tuple[int, int], list[list[int]]]()
    for number, line in enumerate(_text(path).splitlines(), start=1):
        if not line.strip():
            continue
        try:
            pair, _, paths = line.partition(":")
            source, target = map(int, pair.split())
            ways = [[int(node) for node in way.split("-")] for way in paths.split(",")]
        except ValueError:
            such = "0 1:0-2-1,0-3-1"
            raise InvalidInput(f"{path}, line {number}: expected a line such as {such}.") from None
        found[source, target] = ways
    return found
