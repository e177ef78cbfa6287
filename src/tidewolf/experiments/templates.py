"""Experiment files that commands write, with tables beside them.

`tidewolf new` writes a file that runs as it is, with every key explained, and for `tidewolf new
network` data for it.

The network is twelve cities, links both ways, and seven days of hours. Background traffic has its
rush hour at eight in the evening, local time. The share of a link's capacity that it takes in hour
t,

    busy_tl  =  0.25 + 0.35 exp( 4 cos( 2 pi (t + clock_l - 20) / 24 ) - 4 ) + noise

raises the cost of the link and lowers the capacity that is left:

    costs_tl  =  km_l / 1000 (1 + busy_tl)^2        capacities_tl  =  capacity_l (1 - busy_tl)

The noise is drawn with a fixed seed, so the numbers are always the same.

`tidewolf import te` reads folders of traffic-engineering repositories, as FIGRET and DOTE publish
them:

    NAME.json                          nodes and links of the network, with capacities (FIGRET)
    NAME_int.pickle.nnet               or links as text, one `source,target,capacity` a line (DOTE)
    NAME_int.txt                       or a matrix of capacities, separated by commas (DOTE)
    tunnels.txt                        `0 1:0-2-1,0-3-1`: the paths of a pair; may be absent
    train/1.hist, test/2.hist, ...     a demand matrix a line, row by row, separated by spaces
    train/1.opt, test/2.opt, ...       the least possible largest utilisation of each; may be absent

Rounds are the lines of `train`, then of `test`, files in the order of their numbers. Nodes are
numbered from 0. Pickles are refused: reading one runs what it says.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tidewolf.core.errors import InvalidInput, refuse
from tidewolf.core.types import Floats
from tidewolf.experiments.experiment import FILE_FORMAT, problem_keys, read_plain, to_toml

# What to call it so that it is written.
NETWORK = "network"
# Two cities, how far it is between them, and what the cable carries each way.
_LINK_ROWS = (
    ("SEA", "SFO", 1090, 100), ("SEA", "DEN", 1640, 100), ("SFO", "LAX", 560, 100),
    ("SFO", "DEN", 1530, 100), ("LAX", "PHX", 575, 100), ("PHX", "DEN", 940, 60),
    ("PHX", "DAL", 1425, 100), ("DEN", "DAL", 1065, 60), ("DEN", "CHI", 1480, 100),
    ("DAL", "CHI", 1290, 60), ("DAL", "ATL", 1160, 100), ("CHI", "ATL", 945, 60),
    ("CHI", "NYC", 1145, 100), ("CHI", "BOS", 1360, 60), ("CHI", "WAS", 960, 60),
    ("ATL", "MIA", 975, 60), ("ATL", "WAS", 870, 100), ("MIA", "WAS", 1480, 60),
    ("WAS", "NYC", 330, 100), ("NYC", "BOS", 305, 100),
)  # fmt: skip
_CLOCKS = {"SEA": -8, "SFO": -8, "LAX": -8, "PHX": -7, "DEN": -7, "DAL": -6, "CHI": -6}
_EAST = -5
_COMMODITIES = (("SEA", "NYC", 40), ("LAX", "BOS", 15), ("MIA", "SFO", 10))
_START = np.datetime64("2026-03-02T00:00")
_DAYS, _HOURS = 7, 24

_HEAD = """\
# An experiment of tidewolf: tidewolf run {file}
# It runs as it is. Lines behind a # may be left out: their values are the defaults, or examples.
# Paths are seen from the folder of this file. docs/how-to/own-data.md explains how to use own data.

format = {format}                      # of this file; an older tidewolf refuses a newer format
name = {quoted}                # in tables and on the page
# title = "What is decided, under which limits."
# rounds = 48                   # as many as the stream has by default
# seeds = [0]                   # one run per seed; of everything random
# caution = [3, 10, 30]         # more is more careful about limits: learners that have it run at
#                               # each value; 10 by default. tidewolf compare shows what it costs
# incumbent = "decided.csv"     # what was decided in these rounds, in columns as decisions.csv has
#                               # them (shares, not volumes): what would have been saved?
"""
_KNOWN_BEFORE = """\
# gaps = "refuse"               # cells without a number, and rows that only some tables have;
#                               # "last": the last number of the column; "unseen": such a round is
#                               # played, and no learner learns from it
# context = "kinds.csv"         # known before a round: its category, or a column per category
# advice = {{incumbent = "decisions.csv"}}
#                               # points that others proposed, in columns as decisions have; a
#                               # learner uses it if its experts name it
"""
_REST = """\

# What `tidewolf sweep` runs through, one run for each combination: horizons in place of rounds, and
# any settings of the learners.
#
# [sweep]
# horizons = [48, 168]
# caution = [3.0, 10.0, 30.0]


# How text is written in CSV files, if not with commas, points and UTF-8 (a file that does not fit
# is refused, with the format that would fit).
#
# [files]
# separator = ";"
# decimal = ","
# encoding = "cp1252"
# date_format = "%d.%m.%Y %H:%M"    # by default ISO, such as 2024-01-31T06:00
# timezone = "Europe/Berlin"    # dates without an offset become UTC; by default they stay


# Results: a folder with report.html, summary.json, decisions.csv and, on flows, paths.csv.

[outputs]
# folder = "results"            # out by default; or --out
# decisions = "both"            # none, csv, parquet or both; parquet by default, and csv beside it
#                               # up to a million cells
# smallest_path = 0.01          # paths with a smaller share go to the others in paths.csv
checkpoint_seconds = 10.0       # at most so much work is lost in a power cut: tidewolf resume
"""
_GRAPH = f"""\
{_HEAD}

# The network: links, and what is sent over them. A decision is the share of the demand on each link
# in each round.

[set]
graph = "{{data}}/links.csv"
#                               # tail,head and perhaps length, capacity, name: a line per link, in
#                               # its direction. Or .xlsx, .parquet, .graphml, .gml
# nodes = "nodes.csv"           # name,longitude,latitude: the page then draws a map
# directed = true               # false: every line is a link each way
# lengths = "length"            # the column with the lengths of links, 1 without it. Lengths decide
#                               # which links lead away, and which paths are short
source = "SEA"                  # or several with their shares: {{{{SEA = 0.6, SFO = 0.4}}}}
target = "NYC"                  # likewise
demand = 50                     # how much is sent, in the unit of the capacities; 1 by default
#
# In place of source, target and demand, many commodities: a table source,target,demand
# commodities = "{{data}}/commodities.csv"

paths = "away"                  # which links may carry it:
#                               #   "away"        those that lead away from the source: fast
#                               #   "all"         every link: detours, too; slower
#                               #   "k-shortest"  tunnels: the k shortest paths, a column each
# k = 3                         # so many tunnels per commodity
# disjoint = true               # those share no link
# tunnels = "tunnels.csv"       # or own tunnels, in place of these three: pair,path,name


# The rounds: tables with one row per round, a column `time` if rounds have times, and one column
# per link, called "SEA > DEN" or as the column name of the edge list says, in any order. CSV (.gz),
# Excel ("book.xlsx#Sheet"), Parquet, NPZ.

[stream]
costs = "{{data}}/costs.csv"
#                               # what a unit costs on each link; without it, its length
capacities = "{{data}}/capacities.csv"
#                               # what a link may carry, for the links that have a column; the
#                               # others have the edge list's capacity, or no limit
# demands = "{{data}}/demands.csv"
#                               # what commodities send, a column each ("SEA > NYC"): demands that
#                               # move. Needs commodities = ... above, or one column for the one
# objective = "max-utilization" # keep the fullest link low, in place of costs
{_KNOWN_BEFORE}

# The learners (tidewolf list; tidewolf list Ensemble has all settings). Without any [[learners]]:
# Ensemble beside SinhaVaze and Resolve. The first one's decisions are decisions.csv.

[[learners]]
name = "Ensemble"               # mixes descent at several steps, a season and other experts
season = "1d"                   # the period of patterns; or a number of rounds
experts = ["last", "1d"]        # re-solve with the last round's data, and with those of a day ago,
#                               # at several sizes of headroom; "leader": the best fixed decision
#                               # so far; "static": the first one; or a name of [stream] advice
# target_violation = 0.002      # the violation per round that you accept, on average; or
# caution = 10.0                # how much a violation weighs: more is more careful about limits
# calls_per_round = 1.0         # how often the set may be asked, on average

[[learners]]
name = "Resolve"                # re-solve with the last round's data
# headroom = 0.0                # and leave so much of the capacities free

{_REST}"""
_PROBLEM = f"""\
{_HEAD}

# The stream: a loss and a limit per round. Either a built-in problem (tidewolf list) ...

[stream]
{{stream}}
# ... or tables, one row per round, one column per coordinate (the first may be called time): CSV,
# Excel ("book.xlsx", or "book.xlsx#Sheet"), NPZ, Parquet ...
#
# [stream]
# costs = "costs.csv"           # the loss of a round is the sum of cost times share
# capacities = "capacities.csv" # the limit: no share above its capacity; without one there is none
# weights = "weights.csv"       # or, in place of capacities: the sum of weight times share ...
# budgets = "budgets.csv"       # ... is at most the round's budget, one column
# demands = "demands.csv"       # of a network whose demands move: a column per commodity
# objective = "cost"            # of a network; "max-utilization": keep the fullest link low
{_KNOWN_BEFORE}#
# ... or, for losses or limits, functions by name (tidewolf list), their arrays as lists or as names
# of tables, rounds first (NPZ and NPY for more than two axes):
#
# [stream.losses]
# kind = "LogWealth"
# returns = "returns.csv"
#
# [stream.constraints]          # at most 0
# kind = "Affine"
# A = "weights.csv"
# b = "budgets.csv"


# The set, if the stream is no built-in problem (adversarial takes one too). A network, which
# `tidewolf new network` explains:
#
# [set]
# kind = "Network"              # may be left out
# graph = "links.csv"
# source = "SEA"
# target = "NYC"
# demand = 1.0
# commodities = "pairs.csv"     # in place of these three
# paths = "away"
# k = 3
# disjoint = false
# tunnels = "tunnels.csv"       # in place of these three
# lengths = "km"
# nodes = "nodes.csv"           # name,longitude,latitude: the page then draws a map
# directed = true
#
# Or any other (tidewolf list), by its settings (tidewolf list CappedSimplex); n is by default the
# number of columns of the costs. A set made of sets has tables of its own, [set.K], or
# [[set.parts]] once for each part.
#
# [set]
# kind = "CappedSimplex"
# cap = 0.5
# total = 1.0


# The learners, by name (tidewolf list), with any of their settings (tidewolf list Ensemble).
# Without any: the first two and Resolve, without those that refuse the problem.

[[learners]]
name = "Ensemble"               # mixes descent at several steps, a season and other experts
experts = ["last"]              # what proposes decisions: "last" re-solves with the last round's
#                               # data; a number of rounds, or "1d" with times, with data that old;
#                               # "leader": the best fixed decision so far; "static": the first
#                               # one; or a name of [stream] advice
# season = 96                   # the period of patterns: so many rounds, or "1d" with times
# target_violation = 0.002      # the violation per round that you accept, on average; or
# caution = 10.0                # how much a violation weighs: more is more careful about limits
# calls_per_round = 1.0         # how often the set may be asked, on average

[[learners]]
name = "SinhaVaze"              # projects exactly

{_REST}"""


def template(name: str, problem: str) -> str:
    defaults = {
        key: setting.default
        for key, setting in problem_keys(problem).items()
        if read_plain(setting, setting.default) is not None
    }
    stream = to_toml({"problem": problem, **defaults})
    return _PROBLEM.format(file=f"{name}.toml", stream=stream, **_head(name))


def _head(name: str) -> dict[str, Any]:
    return {"format": FILE_FORMAT, "quoted": to_toml({"name": name}).partition(" = ")[2].strip()}


def data_folder(path: Path) -> Path:
    return path.with_name(f"{path.stem}-data")


def network_template(path: Path) -> dict[Path, bytes]:
    """The files of a network that runs as it is, by path: its experiment last."""
    data = data_folder(path)
    text = _GRAPH.format(file=path.name, data=data.name, **_head(path.stem))
    return {**{data / name: told.encode() for name, told in _tables()}, path: text.encode()}


def _tables() -> Iterator[tuple[str, str]]:
    links = [
        (*ends, km, capacity)
        for tail, head, km, capacity in _LINK_ROWS
        for ends in ((tail, head), (head, tail))
    ]
    yield "links.csv", _text(("tail", "head", "length", "capacity"), links)
    rng = np.random.default_rng(2026)
    rush = _rush_hours([tail for tail, *_ in links])
    busy = 0.25 + 0.35 * rush + 0.04 * rng.standard_normal(rush.shape)
    km, capacity = (np.array([link[i] for link in links], dtype=float) for i in (2, 3))
    names = [f"{tail} > {head}" for tail, head, *_ in links]
    yield "costs.csv", _series(names, km / 1000.0 * (1.0 + busy) ** 2, 3)
    yield "capacities.csv", _series(names, capacity * (1.0 - busy), 1)
    yield "commodities.csv", _text(("source", "target", "demand"), _COMMODITIES)
    pairs = [f"{source} > {target}" for source, target, _ in _COMMODITIES]
    sent = np.array([volume for *_, volume in _COMMODITIES], dtype=float)
    rush = _rush_hours([source for source, *_ in _COMMODITIES])
    moving = sent * (0.7 + 0.3 * rush + 0.02 * rng.standard_normal(rush.shape))
    yield "demands.csv", _series(pairs, moving, 2)


def _rush_hours(nodes: Sequence[str]) -> Floats:
    """How near each hour is to the evening at each node, from 0 to 1."""
    hours = np.arange(_DAYS * _HOURS)[:, None]
    clocks = np.array([_CLOCKS.get(node, _EAST) for node in nodes])
    return np.asarray(np.exp(4.0 * np.cos(2.0 * np.pi * (hours + clocks - 20) / _HOURS) - 4.0))


def _series(names: Sequence[str], values: Floats, digits: int) -> str:
    times = np.datetime_as_string(_START + np.arange(len(values)) * np.timedelta64(60, "m"), "m")
    rows = (
        (time, *(f"{value:.{digits}f}" for value in row))
        for time, row in zip(times, values.tolist(), strict=True)
    )
    return _text(("time", *names), rows)


def _text(names: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    return "".join(f"{','.join(map(str, row))}\n" for row in (names, *rows))


# --- folders of traffic engineering ---------------------------------------------------------------

# How many tunnels a pair has if the folder has none.
_K = 3


def traffic_files(folder: Path, path: Path, relative: bool = False) -> dict[Path, bytes]:
    """The experiment file and its tables for such a folder, by their paths; `relative` divides the
    demands of a round by its optimum, so that a loss of 1 is optimal.

    Raises
    ------
    InvalidInput
        If a file is absent, a pickle, or not in this format: the sentence names it.
    """
    demands, optima = _rounds(folder)
    tunnels, data = _tunnels(folder / "tunnels.txt"), data_folder(path)
    pairs = [(int(i), int(j)) for i, j in np.argwhere(demands.max(axis=0) > 0.0).tolist() if i != j]
    choice: dict[str, Any] = {"paths": "k-shortest", "k": _K}
    tables: dict[str, tuple[Sequence[str], Iterable[Sequence[Any]]]] = {}
    if tunnels is not None:
        for pair in (pair for pair in pairs if pair not in tunnels):
            raise InvalidInput(f"tunnels.txt has no path from {pair[0]} to {pair[1]}: add one.")
        pairs, choice = list(tunnels), {"tunnels": f"{data.name}/tunnels.csv"}
        every = ((pair, way) for pair, ways in tunnels.items() for way in ways)
        rows = [(f"{i} > {j}", " > ".join(map(str, way))) for (i, j), way in every]
        tables["tunnels"] = (("pair", "path"), rows)
    refuse(relative and optima is None, "Relative demands need a .opt file for each .hist file.")
    if optima is not None:
        demands = demands / optima[:, None, None] if relative else demands
        tables["optima"] = (("optimum",), [(each,) for each in optima.tolist()])
    sent = demands[:, [i for i, _ in pairs], [j for _, j in pairs]]
    tables["links"] = ("tail", "head", "capacity"), _links_in(folder)
    tables["commodities"] = ("source", "target"), pairs
    tables["demands"] = [f"{i} > {j}" for i, j in pairs], sent.tolist()
    named = {name: f"{data.name}/{name}.csv" for name in ("links", "commodities", "demands")}
    stream = {"objective": "max-utilization", "demands": named["demands"]}
    of_set = {"graph": named["links"], "commodities": named["commodities"], **choice}
    text = to_toml({"format": FILE_FORMAT, "set": of_set, "stream": stream})
    written = {data / f"{name}.csv": _text(*table).encode() for name, table in tables.items()}
    return {path: text.encode(), **written}


def _rounds(folder: Path) -> tuple[Floats, Floats | None]:
    """Demands, (rounds, nodes, nodes), and the optimum of each round; None if a file has none."""
    parts = [
        path
        for name in ("train", "test")
        for path in sorted(
            (folder / name).glob("*.hist"),
            key=lambda path: (not path.stem.isdigit(), path.stem.zfill(9)),
        )
    ]
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
        refuse(not (table >= 0.0).all(), f"{path}: demands must be finite numbers of at least 0.")
    best, optima = [path.with_suffix(".opt") for path in parts], None
    if all(path.is_file() for path in best):
        optima = np.concatenate([_numbers(path).reshape(-1) for path in best])
        if len(optima) != sum(map(len, tables)) or not (optima > 0.0).all():
            words = "expected a number above 0 for each line of the .hist files"
            raise InvalidInput(f"{best[0].parent}: {words} in the .opt files.")
    return np.concatenate(tables).reshape(-1, nodes, nodes), optima


def _plain(path: Path) -> str:
    """The text of a file; a pickle is refused unread."""
    try:
        data = path.read_bytes()
        refuse(
            data[:1] == b"\x80" or data.endswith(b"."),
            f"{path} is a pickle, which may run code: export it as text.",
        )
        return data.decode()
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise InvalidInput(f"{path} is no text: expected the format of FIGRET or DOTE.") from None


def _numbers(path: Path) -> Floats:
    try:
        table = np.loadtxt(_plain(path).splitlines(), ndmin=2)
    except ValueError as error:
        raise InvalidInput(f"{path}: expected lines of numbers: {error}.") from None
    refuse(
        not table.size or not np.isfinite(table).all(), f"{path}: expected lines of finite numbers."
    )
    return table


def _links_in(folder: Path) -> list[tuple[int, int, float]]:
    kinds = ("*.json", "*_int.pickle.nnet", "*_int.txt")
    graphs, lists, matrices = (sorted(folder.glob(kind)) for kind in kinds)
    if not (found := [*graphs, *lists, *matrices]):
        pickles = [path.name for kind in ("*.pkl", "*.pickle") for path in folder.glob(kind)]
        more = f"; {pickles[0]} is a pickle, which may run code, and is not read" if pickles else ""
        raise InvalidInput(
            f"{folder}: expected the links in NAME.json, NAME_int.pickle.nnet or "
            f"NAME_int.txt{more}."
        )
    path = found[0]
    text, rows = _plain(path), list[Any]()
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
        raise InvalidInput(
            f"{path}: expected links with a source, a target and a capacity; {error!r}."
        ) from None


def _tunnels(path: Path) -> dict[tuple[int, int], list[list[int]]] | None:
    if not path.is_file():
        return None
    found = dict[tuple[int, int], list[list[int]]]()
    for number, line in enumerate(_plain(path).splitlines(), start=1):
        if not line.strip():
            continue
        try:
            pair, _, paths = line.partition(":")
            source, target = map(int, pair.split())
            ways = [[int(node) for node in way.split("-")] for way in paths.split(",")]
        except ValueError:
            raise InvalidInput(
                f"{path}, line {number}: expected a line such as 0 1:0-2-1,0-3-1."
            ) from None
        found[source, target] = ways
    return found
