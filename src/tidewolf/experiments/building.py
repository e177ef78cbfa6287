"""Build what a file describes: sets, functions, learners, and the problem of an experiment.

    f_t(x) = <costs_t, x>        g_t(x) = max_i x_i - capacities_ti        and
        g_t(x) = <weights_t, x> - budgets_t

or functions by name. Several constraints of a round become their largest, each distinguished.
Columns of tables belong to coordinates by name. Those of a network (network_files.py) are links and
commodities, and decisions are shares of the demands: costs and weights are multiplied
by what is sent, capacities hold for the sum of it. Those of another set that is made of links are
those links. Elsewhere the first table that has a column for each coordinate names them, and other
tables use the same names.

An error gets the line and column of the setting that it carries.

`RoundReader` reads the rounds of an experiment one row at a time, as they arrive.

    {"costs": {"SEA > DEN": 1.2, ...}, "capacities": [...], "demands": ...}

Which number of a row belongs to which entry, or link, depends on the names in it alone, and a
sender uses the same names every round. So that layout (the place in the row of each entry, -1 if it
has none) is computed once for each list of names:

    costs = numbers[layout],    f(x) = <costs, x>,    g(x) = max_i x_i - capacities_i
"""

import math
import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np

from tidewolf import problems as _problems
from tidewolf.core.arguments import as_kind, match_names, nearest_names, plain_name, shown
from tidewolf.core.arrays import to_numpy
from tidewolf.core.batch import Batch, Stream, as_constraints
from tidewolf.core.errors import EmptyGraph, InvalidInput, NegativeCapacity, refuse, require
from tidewolf.core.frames import Edge, Edges
from tidewolf.core.settings import Numbers, Setting, constructor_of
from tidewolf.core.types import Array, Floats, Int64s, NDArray
from tidewolf.experiments import experiment as described
from tidewolf.experiments.experiment import TABLES, Choice, Keys, Place, kind_keys, located
from tidewolf.experts import Season
from tidewolf.explanation import namer
from tidewolf.files import Table, file_of, read_columns, read_graph, read_table
from tidewolf.files.reading import CSV, read_arrays, read_header
from tidewolf.files.table import align, column_names, is_time, require_seen
from tidewolf.functions import Affine, Capacity, Linear, linear, support
from tidewolf.methods.base import Learner
from tidewolf.networks import Network, network_files
from tidewolf.networks.network_files import COST, LinkColumns, NetworkFiles, in_order_of
from tidewolf.sets import ConvexSet, Simplex, SimplexProduct, graphs

Reader: TypeAlias = Callable[[Path, Place], NDArray]
_OF_NETWORKS = ("source", "target", "commodities", "demand", "paths", "k", "disjoint", "lengths")
_ADVICE, _SPEND = "advice ", "spend "
# What an NPZ file of a table may hold too.
_BESIDE_VALUES = ("columns", "times")
# Layouts that are remembered.
MOST_LAYOUTS = 16
# The names of a row in their order, or how many numbers a list has.
Columns: TypeAlias = tuple[str, ...] | int


# --- files ----------------------------------------------------------------------------------------


def read_rows(path: Path, place: Place, gaps: bool) -> Table:
    return read_table(require_file(path, place), gaps=gaps, format=place.format)


def read_numbers(path: Path, place: Place) -> Table:
    """The numbers of a table; an NPZ or NPY file may hold an array of any number of axes."""
    name = require_file(path, place).name.lower()
    if name.endswith((".npy", ".npz")):
        held = {name: at for name, at in read_arrays(path).items() if name not in _BESIDE_VALUES}
        values = held.get("values", next(iter(held.values())) if len(held) == 1 else None)
        if values is not None and (values.ndim != 2 or name.endswith(".npy")):
            return Table(None, (), values)
    return read_table(path, format=place.format)


def read_values(path: Path, place: Place) -> NDArray:
    return read_numbers(path, place).values


def read_point(labels: Sequence[str], path: Path, place: Place) -> NDArray:
    """The numbers of a table; a single row with a column for each entry is a point, in the order of
    these labels.
    """
    table = read_numbers(path, place)
    if len(table.values) != 1 or table.values.ndim != 2:
        return table.values
    if set(map(plain_name, labels)).isdisjoint(map(plain_name, table.columns)):
        return np.asarray(table.values[0])
    return np.asarray(table.values[0, match_names(table.columns, labels, f"{place.words()}{path}")])


def require_file(path: Path, place: Place) -> Path:
    refuse(
        not file_of(path).is_file(),
        f"{place.words()}there is no file {file_of(path)}; paths are seen from the folder of "
        "the experiment's file.",
    )
    return path


# --- sets, functions, learners --------------------------------------------------------------------


def build(
    make: Any, given: Mapping[str, Any], known: Keys, place: Place, read: Reader = read_values
) -> Any:
    values = {
        known[key].name: value_of(known[key], at, place.within(key), read)
        for key, at in given.items()
    }
    with located(place, known):
        if "season" in values:
            values["experts"] = (Season(values.pop("season")), *values.get("experts", ()))
        return make(**values)


def build_choice(choice: Choice, place: Place, read: Reader = read_values) -> Any:
    kind = described.kind_named(choice.name)
    if "graph" in kind_keys(kind):
        return coordinates_of(choice, None, place).K
    return build(constructor_of(kind), choice.given, kind_keys(kind), place, read)


def value_of(setting: Setting, value: Any, place: Place, read: Reader = read_values) -> Any:
    if isinstance(value, Choice):
        return build_choice(value, place, read)
    if isinstance(value, tuple) and value and isinstance(value[0], Choice):
        return tuple(build_choice(each, place.within(i), read) for i, each in enumerate(value))
    if isinstance(setting.check, Numbers):
        if isinstance(value, str):
            array = read(Path(value), place)
            flat = setting.check.axes == 1 and array.ndim == 2 and 1 in array.shape
            return array.reshape(-1) if flat else array
        return np.array(value) if isinstance(value, tuple) else value
    with located(place):
        return value if setting.check is None else setting.check.build(value)


def make_learner(
    entrant: Choice,
    K: ConvexSet,
    network: Network | None,
    place: Place,
    read: Reader,
    defaults: Mapping[str, Any],
) -> Learner[Any]:
    """The learner for a set, with these defaults for settings that it has; if flow at the center
    of a network moves in circles, one that begins on shortest paths, unless it says where.
    """
    known, given = described.learner_keys(entrant.name), {**defaults, **entrant.given}
    make = partial(described.learner_named(entrant.name), K)
    if network is not None and network.start is not None and "start" in known.keys() - given.keys():
        make = partial(make, start=network.start)
    given = {name: value for name, value in given.items() if name in known}
    learner: Learner[Any] = build(make, given, known, place, read)
    return learner


# --- sets over the links of a graph ---------------------------------------------------------------


@dataclass
class Entries:
    """The coordinates of points of any other set, called as links are or as the columns of the
    first table.
    """

    K: ConvexSet
    # if entries are links
    links: LinkColumns | None = None
    names: tuple[str, ...] = ()
    # whether costs may lack names, which are NaN then
    partly: bool = False
    network: ClassVar[Network | None] = None
    notes: ClassVar[tuple[str, ...]] = ()

    @property
    def labels(self) -> tuple[str, ...]:
        if self.links is not None:
            return self.links.labels
        return self.names if self.K.shape == (len(self.names),) else ()

    def of_numbers(self, numbers: Mapping[str, Floats]) -> tuple[Batch | None, list[Batch]]:
        limits, shape = list[Batch](), self.K.shape
        if "weights" in numbers:
            weights, budgets = numbers["weights"], numbers["budgets"]
            limits.append(linear.weighted_rows(weights.reshape(*budgets.shape, *shape), budgets))
        if "capacities" in numbers:
            limits.append(Capacity._unchecked(c=numbers["capacities"].reshape(-1, *shape)))
        costs = numbers.get("costs")
        return None if costs is None else Linear._unchecked(C=costs.reshape(-1, *shape)), limits

    def spent(self, rows: Floats, sent: Floats | None = None) -> Floats:
        return rows.reshape(-1, *self.K.shape)

    def width(self, name: str) -> int:
        return math.prod(self.K.shape)

    def places(self, name: str, columns: Sequence[str], source: object) -> Int64s:
        if self.links is not None:
            return self.links.places(columns, source)
        if not self.names:
            if len(columns) != (size := self.width(name)):
                raise InvalidInput(f"{source}: expected {size} columns, received {len(columns)}.")
            self.names = tuple(columns)
        needed = () if name == "costs" and self.partly and columns else None
        return match_names(columns, self.names, f"{source}", "column", needed)

    def in_order(self, name: str, values: Floats, places: Int64s) -> Floats:
        absent = math.nan if name == "costs" and self.partly else 0.0
        return np.where(places >= 0, values.take(places, axis=1), absent)

    def names_any(self, columns: Sequence[str]) -> bool:
        if self.links is not None:
            return self.links.names_any(columns)
        shared = not self.names or bool(set(columns) & set(self.names))
        return shared and len(columns) == self.width("")

    def points(self, table: Table, source: object) -> Floats:
        return in_order_of(self, "", table, source).reshape(-1, *self.K.shape)

    def of_used_links(self, name: str, table: Table, source: object) -> Table:
        return table


Coordinates: TypeAlias = NetworkFiles | Entries


def coordinates_of(
    choice: Choice, entries: int | None, place: Place, objective: str = COST
) -> Coordinates:
    kind = described.kind_named(choice.name)
    known, make, given = kind_keys(kind), constructor_of(kind), choice.given
    if choice.name in (described.NETWORK, "FlowPolytope") and "graph" in given:
        columns = _graph(given, known, place, *network_files.OPTIONAL)
        of_network = {key: value for key, value in given.items() if key in _OF_NETWORKS}
        if "commodities" in given:
            rows = _commodities(given["commodities"], place.within("commodities"))
            of_network["commodities"] = rows
        if (tunnels := given.get("tunnels")) is not None:
            if isinstance(tunnels, str):
                path = require_file(Path(tunnels), place.within("tunnels"))
                tunnels = network_files.read_tunnels(path, place.format)
            of_network["tunnels"] = tunnels
            for key in given.keys() & described.CHOOSES_PATHS:
                where = place.within(key).words()
                raise InvalidInput(f"{where}with tunnels there is no {key}: leave one of them out.")
        with located(place, known):
            return network_files.of_graph(columns, **of_network)._replace(objective=objective)
    if objective != COST:
        where = place._replace(path=("stream", "objective")).words()
        raise InvalidInput(f"{where}{objective} needs a network, a [set] with a graph and ends.")
    if "graph" in known:
        columns, of_set = _graph(given, known, place), described.keys_of(make)
        with located(place, known):
            values = {
                known[key].name: _value_on_links(known[key], value, columns, place.within(key))
                for key, value in given.items()
                if key in of_set
            }
            K = make(**values)
        return Entries(K, columns if K.shape == (len(columns.graph.links),) else None)
    if "n" in known and entries is not None:
        choice = Choice.of(choice.name, {"n": entries, **given})
    return Entries(build_choice(choice, place))


def _graph(given: Mapping[str, Any], known: Keys, place: Place, *optional: str) -> LinkColumns:
    listed, columns = not isinstance(given["graph"], str), described.columns_of(given, known)
    path = Path(
        "the graph" if listed else require_file(Path(given["graph"]), place.within("graph"))
    )
    graph = read_graph(
        _edges(given["graph"], columns, place) if listed else path,
        directed=given.get("directed") if described.carries_flow(known) else True,
        numbers=[*columns.values()],
        optional=optional,
        format=place.format,
    )
    if isinstance(given.get("nodes"), str):  # of sets that are no flow, a list of names
        nodes, at = (
            require_file(Path(given["nodes"]), place.within("nodes")),
            ("longitude", "latitude"),
        )
        cells = read_columns(nodes, ("name", *at), place.format)
        on_map = zip(*map(cells.floats, at), strict=True)
        graph = graph._replace(node_places=dict(zip(cells.texts("name"), on_map, strict=True)))
    return LinkColumns(graph, str(path))


def _edges(rows: Sequence[Any], columns: Mapping[str, str], place: Place) -> Edges:
    """The edge list of a list of links, each by key or as [tail, head, length, capacity, name]."""
    length, at = columns.get("lengths", network_files.LENGTH), place.within("graph")
    fields, edges = ("tail", "head", length, network_files.CAPACITY, "name"), list[Edge]()
    for i, row in enumerate(rows):
        link = dict(row if isinstance(row[0], tuple) else zip(fields, row, strict=False))
        edges.append(Edge(link["tail"], link["head"], link, at.within(i).words()[:-2]))
    require(edges, EmptyGraph, f"{at.words()}a graph has at least one link.")
    for key, name in columns.items():
        absent = all(name not in edge.known for edge in edges)
        refuse(absent, f"{place.within(key).words()}no link has a number called {name!r}.")
    return Edges(edges, True, None)


def _value_on_links(setting: Setting, value: Any, columns: LinkColumns, place: Place) -> Any:
    check, graph, node = setting.check, columns.graph, columns.finder(setting.name)
    if isinstance(check, graphs.Links):
        return graph.links
    if isinstance(check, Numbers) and isinstance(value, str):
        return graph.numbers[value]
    if isinstance(check, graphs.Node):
        return node(value, f"the {setting.key}")
    if isinstance(check, graphs.Commodities):
        return network_files.with_nodes(_commodities(value, place), node)
    if isinstance(check, graphs.Supplies):
        given = value
        if isinstance(value, str):
            path = require_file(Path(value), place)
            cells = read_columns(path, ("node", "supply"), place.format)
            given = [*zip(cells.texts("node"), cells.floats("supply"), strict=True)]
        supplies = {node(called, "which has a supply"): supply for called, supply in given}
        if len(supplies) < len(given):
            raise InvalidInput("a node has two supplies; give their sum.", setting=setting.name)
        return supplies
    return value_of(setting, value, place)


def _commodities(given: Any, place: Place) -> Any:
    if not isinstance(given, str):
        return given
    return network_files.read_commodities(require_file(Path(given), place), place.format)


# --- problems -------------------------------------------------------------------------------------


def build_problem(experiment: described.Experiment, seed: int) -> _problems.Problem:
    stream, K = experiment.stream, experiment.hard_set
    if not isinstance(stream, Choice):
        assert K is not None
        return TableProblem(experiment, stream, K).problem()
    given = stream.given
    if K is not None:
        given["K"] = build_choice(K, experiment.place("set"))
    with located(experiment.place("stream"), described.problem_keys(stream.name)):
        found: _problems.Problem = _problems.named(stream.name)(
            rounds=experiment.rounds, seed=seed, **given
        )
    return found


class TableProblem:
    def __init__(
        self, experiment: described.Experiment, tables: described.Tables, choice: Choice
    ) -> None:
        self.experiment, self.tables, self.place = experiment, tables, experiment.place("stream")
        given = {name: getattr(tables, name) for name in (*TABLES, "context")}
        paths: dict[str, Path] = {
            **{name: path for name, path in given.items() if path is not None},
            **{f"{_SPEND}{budget.name}": path for budget, path in experiment.budgets},
            **{f"{_ADVICE}{name}": path for name, path in tables.advice},
        }
        refuse(
            not (tables.losses or paths.keys() & set(TABLES)),
            f"{self.place.words()}an experiment needs rounds: give costs, capacities or "
            "demands under [stream].",
        )
        self.info = tuple(name for name in paths if name == "context" or name.startswith(_ADVICE))
        where = {name: self.place.within(*name.split(" ", 1)) for name in paths}
        for i, (budget, _) in enumerate(experiment.budgets):
            where[f"{_SPEND}{budget.name}"] = experiment.place("budgets", i, "spend")
        read = {
            name: read_rows(path, where[name], name in self.info or tables.gaps != "refuse")
            for name, path in paths.items()
        }
        entries = len(read["costs"].columns) if "costs" in read else None
        self.at = coordinates_of(choice, entries, experiment.place("set"), tables.objective)
        read = {name: self.at.of_used_links(name, one, paths[name]) for name, one in read.items()}
        self.aligned, self.paths = align(read, tables.gaps, absent=self.info), paths
        require_seen(self.aligned)
        self.read = self.aligned.tables

    def problem(self) -> _problems.Problem:
        experiment, at, aligned = self.experiment, self.at, self.aligned
        losses, limits, times = self.functions()
        rounds = self._rounds(losses, limits)
        if at.network is None:
            support.warn_of_negative_capacities(at.K, limits[:rounds], set())
        elif "capacities" in self.read:
            _warn_of_negative(self.read["capacities"], rounds)
        with located(self.place):
            info = self._info(times, len(losses), rounds)
            if aligned.seen is not None:
                info["seen"] = aligned.seen[:rounds]
            moves = at.network is not None and "demands" in self.read
            demands = self._in_order("demands")[:rounds] if moves else None
            stream, above = Stream(losses[:rounds], limits[:rounds], **info), dict[str, Batch]()
            for i, (budget, _) in enumerate(experiment.budgets):
                with located(experiment.place("budgets", i)):
                    plan = budget.plans(rounds, stream.time)
                rows = self._in_order(f"{_SPEND}{budget.name}")[:rounds]
                above[budget.name] = Affine(at.spent(rows, demands), plan)
            if above:  # times as they were given, whose labels the other stream has
                stream = Stream(stream.losses, stream.constraints, budgets=above, **info)
            return _problems.Problem(
                experiment.name,
                at.K,
                stream,
                experiment.title or self._title(),
                at.labels,
                network=at.network,
                demands=demands,
                notes=(*at.notes, *aligned.notes),
                node_places={} if at.links is None else at.links.graph.node_places,
                budgets=tuple(budget for budget, _ in experiment.budgets),
            )

    def _in_order(self, name: str) -> Floats:
        return in_order_of(self.at, name, self.read[name], self.paths[name])

    def _title(self) -> str:
        if isinstance(self.at, NetworkFiles):
            return self.at.title
        over = "" if self.at.links is None else f" over the links of {self.at.links.name}"
        named, K = self.tables.losses, self.experiment.hard_set
        losses = "costs" if named is None else f"{named.name} losses"
        return f"A point of a {K and K.name}{over} under {losses}."

    def functions(self) -> tuple[Batch, Any, NDArray | None]:
        """The losses and limits of tables of equal length, or of the functions that are named; and
        when rounds are, if the first table of such a function with times tells.
        """
        numbers = {key: self._in_order(key) for key in self.read if key in TABLES}
        (losses, limits), times = self.at.of_numbers(numbers), list[NDArray]()

        def array(path: Path, place: Place) -> NDArray:
            """The array in a table. Columns that are called as coordinates are get their order."""
            table = read_numbers(path, place)
            times.extend(() if table.times is None else (table.times,))
            return self.at.points(table, path) if self.at.names_any(table.columns) else table.values

        if self.tables.losses is not None:
            losses = build_choice(self.tables.losses, self.place.within("losses"), array)
        if (named := self.tables.constraints) is not None:
            limits.append(build_choice(named, self.place.within("constraints"), array))
        assert losses is not None
        limit = limits[0] if len(limits) == 1 else as_constraints(limits, losses)
        return losses, limit, next(iter(times), None)

    def _info(self, times: NDArray | None, length: int, rounds: int) -> dict[str, Any]:
        found, advice = dict[str, Any](), dict[str, Floats]()
        for name in self.info:
            table, path = self.read[name], self.paths[name]
            if (rows := len(table.values)) != length:
                raise InvalidInput(f"{path} has {rows} rows; the losses have {length} rounds.")
            if name == "context":
                values = table.values[:, 0] if len(table.columns) == 1 else table.values
                found["context"] = values[:rounds]
            else:
                advice[name.removeprefix(_ADVICE)] = self.at.points(table, path)[:rounds]
        clocks = (*(table.times for table in self.read.values()), times)
        times = next((each for each in clocks if each is not None), None)
        if times is not None and len(times) == length:
            found["time"] = times[:rounds]
        return found | ({"advice": advice} if advice else {})

    def _rounds(self, losses: Batch, limits: Batch) -> int:
        length, first = len(losses), self.paths.get("costs", "[stream.losses]")
        if len(limits) != length:
            others = [at for name, at in self.paths.items() if name in TABLES and name != "costs"]
            raise InvalidInput(
                f"{[*others, '[stream.constraints]'][0]} has {len(limits)} rounds and {first} has "
                f"{length}."
            )
        rounds = length if self.experiment.rounds is None else self.experiment.rounds
        refuse(
            rounds > length,
            f"{self.experiment.place('rounds').words()}{rounds} rounds are asked for, and "
            f"{first} has {length}.",
        )
        return rounds


def _warn_of_negative(table: Table, rounds: int) -> None:
    cells = np.argwhere(table.values[:rounds] < 0.0)
    for row, j in cells[:1].tolist():
        where = f'{table.places[row]}, column "{table.columns[j]}"'
        sentence = f"{where}: the capacity is {table.values[row, j]:g}"
        many = support.breaks(len(np.unique(cells[:, 1])))
        warnings.warn(f"{sentence}; {many}", NegativeCapacity, stacklevel=3)


# --- rows that arrive ----------------------------------------------------------------------------


class RoundReader:
    """The set of an experiment on tables, what its entries are called, and functions of rows; the
    tables themselves need no rows, nor be there.
    """

    def __init__(self, experiment: described.Experiment) -> None:
        stream, choice = experiment.stream, experiment.hard_set
        if (
            isinstance(stream, Choice)
            or choice is None
            or not stream.losses is stream.constraints is None
        ):
            raise InvalidInput(f"Rows are read for tables, which {experiment.name} has not.")
        self.experiment = experiment
        columns = _columns(experiment, stream)
        entries = None if columns is None else len(columns)
        at = coordinates_of(choice, entries, experiment.place("set"), stream.objective)
        self._prepare(at, columns or ())
        if columns is not None and self.K.shape != (len(columns),) and self.network is None:
            self.names = _names(self.K)  # columns name the entries of a matrix in rows alone

    @classmethod
    def of_set(
        cls, choice: Choice, place: Place, names: Sequence[str] = (), objective: str = COST
    ) -> Self:
        """A reader for a set alone, without tables: its entries have these names, or else the
        set's own, or their places.
        """
        at = coordinates_of(choice, None, place, objective)
        refuse(
            names and at.links is not None,
            f"{place.words()}entries are called as links are: leave names out.",
        )
        reader = cls.__new__(cls)
        reader._prepare(at, names)
        if at.links is not None:  # two links of one name are refused
            at.links.places(tuple(map(str, range(at.width("costs")))), "")
        elif isinstance(at, Entries):
            at.partly = isinstance(at.K, Simplex | SimplexProduct)
        for name, count in Counter(reader.names).items():
            refuse(count > 1, f"{place.words()}{count} entries of points are called {name!r}.")
        return reader

    def _prepare(self, at: Coordinates, names: Sequence[str]) -> None:
        self._at, self.K, self.network = at, at.K, at.network
        self.names = at.labels or _names(at.K, names)
        if isinstance(at, Entries):
            at.names = self.names
        self._layout = lru_cache(MOST_LAYOUTS)(self._find)

    @cached_property
    def place(self) -> dict[str, int]:
        return {name: i for i, name in enumerate(self.names)}

    def named(self, x: Array) -> dict[str, float]:
        return dict(zip(self.names, (to_numpy(x).reshape(-1) + 0.0).tolist(), strict=True))

    def point(self, given: Any, what: str) -> Array:
        """A point by name, 0 if a name is not given, or as a list of all entries."""
        values = given
        if isinstance(given, Mapping):
            for name in given.keys() - self.place.keys():
                near = nearest_names(str(name), self.names)
                raise InvalidInput(f"{what} has no entry called {name!r}: {near or 'none is'}.")
            values = [given.get(name, 0.0) for name in self.names]
        if isinstance(values, list) and len(values) == len(self.names):
            numbers = _floats(values)
            if np.isfinite(numbers).all():
                return numbers.reshape(self.K.shape)
        raise InvalidInput(
            f"{what} is a number for each of {len(self.names)} entries, by name or as a list, not "
            f"{shown(given)}."
        )

    def unavailable(self, given: Any) -> list[str | int]:
        """Entries by the set's own names, or by their places."""
        items = [given] if isinstance(given, str) else given
        as_kind(items, list, "What is unavailable is a list of names", InvalidInput)
        own = self.K.places
        return [
            self.place.get(at, at) if isinstance(at, str) and at not in own else at for at in items
        ]

    def functions(self, row: Mapping[str, Any], source: str = "the row") -> tuple[Batch, Batch]:
        """The loss and the constraint of a round.

        A row has costs, and perhaps capacities, weights with budgets (one number, or a list of
        rows and a budget for each), and demands: each numbers by name, or a list in the order of
        links (of entries, if there are none). Messages call it `source`.
        """
        network, keys = self.network, {name for name in TABLES if name in row}
        refuse(
            "costs" not in keys and (network is None or not keys),
            f"{source} has no costs; it has {', '.join(row) or 'nothing'}.",
        )
        refuse(
            ("weights" in keys) != ("budgets" in keys),
            f"{source} needs weights and budgets together.",
        )
        refuse(
            network is None and "demands" in keys,
            f"{source} has demands, which only a network takes: leave them out.",
        )
        rows: Any = row.get("weights")
        several = isinstance(rows, list | tuple) and isinstance(
            next(iter(rows), None), list | tuple | Mapping
        )
        numbers = {
            name: self._numbers(name, row[name], f"{source}, {name}")
            for name in keys
            if not several or name not in ("weights", "budgets")
        }
        if several:
            numbers |= self._weighted(rows, row["budgets"], source)
        refuse(
            "demands" in keys and (numbers["demands"] < 0.0).any(),
            f"{source}: expected demands of at least 0.",
        )
        loss, limits = self._at.of_numbers(numbers)
        assert loss is not None
        return loss, as_constraints(limits, loss)

    def spend(self, row: Mapping[str, Any], source: str = "the row") -> dict[str, Floats]:
        """What a unit of each entry of a point spends in a round, by the names of budgets: of
        `spend`, numbers by name or a list for each of them.
        """
        such = '{"usd": [1.0, 2.0]}'
        given = row.get("spend") or {}
        given = as_kind(given, Mapping, f"{source}: expected spend such as {such}", InvalidInput)
        demands = self.demands(row, source) if given else None
        rows = {
            name: self._numbers("spend", one, f"{source}, spend of {name!r}").reshape(1, -1)
            for name, one in given.items()
        }
        return {name: self._at.spent(one, demands)[0] for name, one in rows.items()}

    def demands(self, row: Mapping[str, Any], source: str = "the row") -> Floats | None:
        """What each commodity sends, of shape (1, commodities), if a row of a network says it."""
        if row.get("demands") is None or self.network is None:
            return None
        return self._numbers("demands", row["demands"], f"{source}, demands")

    def _weighted(self, rows: Sequence[Any], budgets: Any, source: str) -> dict[str, Floats]:
        """Several weighted rows of one round, (1, rows, links or entries), and their budgets."""
        found = [
            self._numbers("weights", each, f"{source}, weights, row {i}").reshape(-1)
            for i, each in enumerate(rows, start=1)
        ]
        limits = _floats(budgets if isinstance(budgets, list | tuple) else [budgets])
        if len(limits) != len(found) or not np.isfinite(limits).all():
            raise InvalidInput(
                f"{source}, budgets: expected a number for each of {len(found)} rows of weights, "
                f"not {shown(budgets)}."
            )
        return {"weights": np.array([found]), "budgets": limits[None, :]}

    def _numbers(self, name: str, given: Any, where: str) -> Floats:
        by_name = isinstance(given, Mapping)
        several = list(given.values()) if by_name else given
        values = list(several) if isinstance(several, list | tuple) else [several]
        columns: Columns = tuple(map(str, given)) if by_name else len(values)
        numbers = _floats(values)
        if not np.isfinite(numbers).all():
            i = next(i for i, each in enumerate(values) if not np.isfinite(_floats([each])).all())
            at = repr(columns[i]) if isinstance(columns, tuple) else f"number {i + 1}"
            raise InvalidInput(f"{where}, {at}: expected a finite number, not {shown(values[i])}.")
        layout = self._layout(name, columns, where)
        if name == "budgets" or (isinstance(self._at, Entries) and not by_name):
            return numbers
        return self._at.in_order(name, numbers[None], layout)

    def _find(self, name: str, columns: Columns, where: str) -> Int64s:
        """The place of the number of each entry, link or commodity in a row with these names."""
        size = 1 if name == "budgets" else self._at.width(name)
        if isinstance(columns, int) or name == "budgets" or size == len(columns) == 1:
            count = columns if isinstance(columns, int) else len(columns)
            require(
                count == size, InvalidInput, f"{where}: expected {size} numbers, received {count}."
            )
            return np.arange(size)
        return self._at.places(name, columns, where)


def _floats(values: Sequence[Any]) -> Floats:
    """Numbers as an array; NaN if one of them is text, true or too large."""
    try:
        plain = set(map(type, values)) <= {int, float}
        return np.array(values if plain else [np.nan], dtype=np.float64)
    except OverflowError:  # a whole number of hundreds of digits
        return np.array([np.nan])


def _names(K: ConvexSet, names: Sequence[str] = ()) -> tuple[str, ...]:
    name = namer(K, names or None)
    return tuple(name(i) for i in range(math.prod(K.shape)))


def _columns(experiment: described.Experiment, stream: described.Tables) -> tuple[str, ...] | None:
    path = stream.costs
    if path is None or not path.is_file():
        return None
    if path.name.lower().endswith(CSV):  # which may grow
        header = read_header(path, experiment.files)
        return column_names(header[int(is_time(header[0])) :] if header else (), str(path))
    return read_rows(path, experiment.place("stream", "costs"), True).columns
