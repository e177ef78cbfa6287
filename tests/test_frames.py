"""Tables of pandas and polars, and graphs of networkx, are taken where arrays, tables and links
are: a frame gives exactly what its array gives, and what has names lands by name.
"""

import datetime as dt

import networkx as nx
import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tidewolf as tw
from refused import refused
from tidewolf.core import errors, frames

NAMES = ["SEA > DEN", "DEN > NYC", "SEA > NYC"]
LINKS = [("SEA", "DEN"), ("DEN", "NYC"), ("SEA", "NYC")]
DAYS = [dt.datetime(2026, 3, day) for day in (1, 2, 3, 4)]
TABLE = np.arange(12.0).reshape(4, 3) / 7 + 1
FRAMES = {"pandas": lambda x, names=NAMES: pd.DataFrame(x, columns=names)}
FRAMES["polars"] = lambda x, names=NAMES: pl.DataFrame(x, schema=names)
both = pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES)


def flows():
    return tw.sets.FlowPolytope.from_edges(LINKS, source="SEA", target="NYC")


# ---------------------------------------------------------------- functions


@both
@given(
    rows=st.integers(0, 4),
    columns=st.integers(1, 4),
    kind=st.sampled_from(["float64", "float32", "int64", "bool", "uint8"]),
    seed=st.integers(0, 99),
)
@settings(max_examples=20, deadline=None)
def test_a_frame_gives_exactly_what_its_array_gives(frame, rows, columns, kind, seed):
    table = np.random.default_rng(seed).integers(0, 2, (rows, columns)).astype(kind)
    given_frame = frame(table, [f"c{j}" for j in range(columns)])
    assert tw.functions.Linear(given_frame) == tw.functions.Linear(table)
    offsets = given_frame["c0"]
    assert tw.functions.Affine(given_frame, offsets) == tw.functions.Affine(table, table[:, 0])


def test_a_frame_of_one_array_is_not_copied():
    table = pd.DataFrame(TABLE)
    assert np.shares_memory(tw.functions.Linear(table).C, table.to_numpy())
    column = pl.Series(TABLE[:, 0].copy())
    assert np.shares_memory(tw.functions.Affine(TABLE, column).b, column.to_numpy())


def test_columns_of_several_kinds_of_numbers_are_gathered():
    columns = {"a": [1, 2], "b": [0.5, 1.5], "c": [True, False]}
    expected = tw.functions.Linear(np.array([[1.0, 0.5, 1.0], [2.0, 1.5, 0.0]]))
    assert tw.functions.Linear(pd.DataFrame(columns)) == expected
    assert tw.functions.Linear(pl.DataFrame(columns)) == expected
    assert tw.functions.Linear(pd.DataFrame(columns).convert_dtypes()) == expected


@both
def test_dates_are_times_and_no_numbers(frame):
    if frame is FRAMES["pandas"]:
        with_dates = frame(TABLE).assign(when=DAYS)
    else:
        with_dates = frame(TABLE).with_columns(pl.Series("when", DAYS))
    costs = tw.functions.Linear(with_dates)
    assert costs == tw.functions.Linear(TABLE)
    whole, column = tw.Stream(costs, time=with_dates), tw.Stream(costs, time=with_dates["when"])
    plain = tw.Stream(costs, time=[day.isoformat() for day in DAYS])
    for stream in (whole, column):
        np.testing.assert_array_equal(stream.stamps, plain.stamps)
        np.testing.assert_array_equal(stream.time, plain.time)


TIMES = {
    "index": lambda: pd.DatetimeIndex(DAYS),
    "index of a frame": lambda: pd.DataFrame(TABLE, index=pd.DatetimeIndex(DAYS)),
    "periods": lambda: pd.PeriodIndex(DAYS, freq="D"),
    "series of periods": lambda: pd.Series(pd.PeriodIndex(DAYS, freq="D")),
    "series": lambda: pd.Series(DAYS),
    "dates": lambda: pl.Series([day.date() for day in DAYS]),
    "texts": lambda: pl.Series([day.isoformat() for day in DAYS]),
    "nanoseconds": lambda: pl.Series(DAYS).cast(pl.Datetime("ns")),
    "with an offset": lambda: pl.Series(DAYS).dt.replace_time_zone("UTC"),
    "first column": lambda: pd.DataFrame({"time": [day.isoformat() for day in DAYS], "a": 1.0}),
}


@pytest.mark.parametrize("make", TIMES.values(), ids=TIMES)
def test_times_of_every_kind_are_the_same_times(make):
    found = tw.Stream(tw.functions.Linear(TABLE), time=make())
    np.testing.assert_array_equal(found.stamps, np.array(DAYS, dtype="datetime64[us]"))


def test_a_time_that_is_missing_is_not_known():
    assert tw.Stream(tw.functions.Linear(TABLE), time=pd.Series([*DAYS[:3], None])).info(3) is None
    with pytest.raises(errors.NotFinite, match="no time"):
        tw.RoundInfo(time=pd.NaT)


@both
def test_a_stream_takes_frames_of_all_that_it_knows(frame):
    losses, mask = tw.functions.Linear(TABLE), TABLE > 2.0
    series = frame(TABLE)[NAMES[0]]
    given_frames = {"unavailable": frame(mask), "played": frame(TABLE)}
    found = tw.Stream(losses, advice={"a": frame(TABLE)}, **given_frames)
    plain = tw.Stream(losses, advice={"a": TABLE}, unavailable=mask, played=TABLE)
    assert (found.advice, found.unavailable) == (plain.advice, plain.unavailable)
    np.testing.assert_array_equal(found.played, plain.played)
    assert tw.Stream(losses, seen=series > 2.0).unseen == int((TABLE[:, 0] <= 2.0).sum())
    np.testing.assert_array_equal(tw.Stream(losses, context=series).context, TABLE[:, 0])


WRONG = {
    "object": (lambda: pd.DataFrame({"a": [1.0, "x"]}), errors.WrongType),
    "duration": (lambda: pl.DataFrame({"a": [dt.timedelta(1)]}), errors.WrongType),
    "null": (lambda: pl.DataFrame({"a": [1.0, None]}), errors.NotFinite),
    "NA": (lambda: pd.DataFrame({"a": [1, None]}, dtype="Int64"), errors.NotFinite),
    "by its date": (
        lambda: pd.DataFrame({"a": [np.nan]}, index=pd.DatetimeIndex(["2026-03-01"])),
        errors.NotFinite,
    ),
    "twice": (lambda: pd.DataFrame([[1.0, 2.0]], columns=["a", "a"]), errors.InvalidInput),
    "dates twice": (
        lambda: pl.DataFrame({"a": DAYS, "b": DAYS, "c": [1.0] * 4}),
        errors.InvalidInput,
    ),
    "lazy": (lambda: pl.DataFrame({"a": [1.0]}).lazy(), errors.WrongType),
    "times alone": (lambda: pl.DataFrame({"time": DAYS}), errors.WrongShape),
    "one axis": (lambda: pd.Series([1.0]), errors.WrongShape),
}


@pytest.mark.parametrize(("make", "error"), WRONG.values(), ids=WRONG)
def test_what_is_no_table_of_numbers_is_refused(make, error):
    with refused(error, "C"):
        tw.functions.Linear(make())


# ---------------------------------------------------------------- rounds by name


@given(order=st.permutations(range(3)), seed=st.integers(0, 99))
@settings(max_examples=20, deadline=None)
def test_what_has_names_lands_by_name(order, seed):
    costs, limits = np.random.default_rng(seed).random((2, 3))
    learner = tw.LyapunovDescent(flows())
    plain, series, mapped = (tw.Session(learner) for _ in range(3))
    plain.observe(costs=costs, capacities=limits)
    names = [NAMES[i] for i in order]
    rows = {"costs": costs, "capacities": limits}
    series.observe(**{key: pd.Series(row[order], index=names) for key, row in rows.items()})
    named, by_place = dict(zip(names, costs[order], strict=True)), {i: limits[i] for i in order}
    mapped.observe(costs=named, capacities=by_place)
    for session in (series, mapped):
        np.testing.assert_array_equal(session.play(), plain.play())
    feed = [(pd.Series(costs[order], index=names), {"SEA->DEN": 1.0, NAMES[1]: 2.0, NAMES[2]: 3.0})]
    (played,) = tw.play(learner, feed)
    (expected,) = tw.play(learner, [(costs, np.array([1.0, 2.0, 3.0]))])
    np.testing.assert_array_equal(played.losses, expected.losses)
    np.testing.assert_array_equal(played.constraints, expected.constraints)


def test_gradients_advice_and_what_was_played_go_by_name():
    K, x = flows(), {"SEA > NYC": 0.75, "SEA > DEN": 0.25, "DEN > NYC": 0.25}
    by_name, plain = (tw.Session(tw.Ensemble(K, experts=["me"])) for _ in range(2))
    array = np.array([0.25, 0.25, 0.75])
    due = plain.play(advice={"me": array})
    np.testing.assert_array_equal(by_name.play(advice={"me": pd.Series(x)}), due)
    grad = pd.Series([3.0, 1.0, 2.0], index=[NAMES[2], NAMES[0], NAMES[1]])
    by_name.observe(loss_gradient=grad, constraint_value=-1.0, played=x)
    plain.observe(loss_gradient=np.array([1.0, 2.0, 3.0]), constraint_value=-1.0, played=array)
    absent = pd.Series({**x, "SEA > NYC": np.nan})
    np.testing.assert_array_equal(by_name.play(advice={"me": absent}), plain.play())


def test_a_series_without_names_goes_by_position():
    plain, other = (tw.Session(tw.LyapunovDescent(flows())) for _ in range(2))
    plain.observe(costs=[1.0, 2.0, 3.0])
    other.observe(costs=pd.Series([1.0, 2.0, 3.0]))
    np.testing.assert_array_equal(other.play(), plain.play())
    permuted = pd.Series([3.0, 1.0, 2.0], index=[2, 0, 1])
    assert frames.in_order(permuted, None, "c", (3,)).tolist() == [1, 2, 3]
    nameless = tw.Session(tw.LyapunovDescent(tw.sets.Simplex(2)))
    nameless.observe(costs=pd.Series([1.0, 2.0], index=["a", "b"]))
    nameless.observe(costs=pl.Series([1.0, 2.0]))
    assert nameless.rounds == 2


UNKNOWN = {
    "unknown": {"SEA > DEM": 1.0, NAMES[1]: 1.0, NAMES[2]: 1.0},
    "missing": {NAMES[0]: 1.0},
    "twice": {NAMES[0]: 1.0, "SEA->DEN": 2.0, 1: 1.0, 2: 2.0},
    "NaN": pd.Series([1.0, np.nan, 1.0], index=NAMES),
    "text": {NAMES[0]: "x", NAMES[1]: 1.0, NAMES[2]: 1.0},
    "index twice": pd.Series([1.0] * 3, index=[NAMES[0], NAMES[0], NAMES[1]]),
    "place": {0: 1.0, 1: 1.0, 7: 1.0},
}


@pytest.mark.parametrize("costs", UNKNOWN.values(), ids=UNKNOWN)
def test_names_that_do_not_fit_are_refused_and_nothing_is_learned(costs):
    session = tw.Session(tw.LyapunovDescent(flows()))
    with pytest.raises(errors.TidewolfError):
        session.observe(costs=costs)
    assert session.rounds == 0


# ---------------------------------------------------------------- graphs

GRAPHS = {
    "pairs": lambda: LINKS,
    "DiGraph": lambda: nx.DiGraph(LINKS[:1] + LINKS[2:] + LINKS[1:2]),
    "MultiDiGraph": lambda: nx.MultiDiGraph([*LINKS, LINKS[0]]),
    "Graph": lambda: nx.Graph(LINKS),
    "MultiGraph": lambda: nx.MultiGraph([*LINKS, LINKS[0]]),
    "pandas": lambda: pd.DataFrame(LINKS, columns=["tail", "head"]),
    "polars": lambda: pl.DataFrame(LINKS, schema=["From", "To"], orient="row"),
    "to_pandas_edgelist": lambda: nx.to_pandas_edgelist(nx.DiGraph(LINKS)),
}


def links_of(graph):
    if isinstance(graph, pd.DataFrame):
        return list(map(tuple, graph.to_numpy()))
    if isinstance(graph, pl.DataFrame):
        return graph.rows()
    edges = list(graph.edges()) if hasattr(graph, "edges") else graph
    if hasattr(graph, "edges") and not graph.is_directed():
        edges = [way for u, v in edges for way in ((u, v), (v, u))]
    return edges


@pytest.mark.parametrize("make", GRAPHS.values(), ids=GRAPHS)
def test_graphs_are_links_wherever_links_are_taken(make):
    graph, links, ends = make(), links_of(make()), {"source": "SEA", "target": "NYC"}
    flow = {"supplies": {"SEA": 1.0, "NYC": -1.0}, "upper": 1.0}
    capacitated = tw.sets.CapacitatedFlow.from_edges
    assert capacitated(graph, **flow) == capacitated(links, **flow)
    assert tw.networks.Network(graph, **ends).links == tuple(links)
    assert tw.networks.Tunnels(graph, [("SEA", "NYC")]).names
    if hasattr(graph, "edges") and not graph.is_directed():
        with pytest.raises(errors.CyclicGraph):
            tw.sets.FlowPolytope.from_edges(graph, **ends)
        trees = tw.sets.SpanningTrees(graph)
        assert trees == tw.sets.SpanningTrees(list(graph.edges()))  # an edge, once
        assert tw.problems.read_graph(graph).both_ways
        return
    single, several = tw.sets.FlowPolytope.from_edges, tw.sets.MultiFlow.from_edges
    assert single(graph, **ends) == single(links, **ends)
    demands = [("SEA", "NYC", 1.0)]
    assert several(graph, demands) == several(links, demands)
    assert tw.sets.graph_tools.away(graph, **ends) == tw.sets.graph_tools.away(links, **ends)
    if graph is not LINKS:
        assert tw.problems.read_graph(graph).links == tuple(links)


@both
def test_an_edge_list_carries_lengths_capacities_and_names(frame):
    columns = {
        "tail": ["SEA", "DEN", "SEA"], "head": ["DEN", "NYC", "NYC"], "Length": [2.0, 3.0, 7.0],
        "capacity": [5.0, None, 4.0], "name": ["west", "", "long"],
    }  # fmt: skip
    table = pd.DataFrame(columns) if frame is FRAMES["pandas"] else pl.DataFrame(columns)
    network = tw.networks.Network(table, source="SEA", target="NYC")
    assert network.lengths.tolist() == [2.0, 3.0, 7.0]
    assert network.capacities.tolist() == [5.0, np.inf, 4.0]
    assert network.link_names == ("west", "DEN > NYC", "long")
    graph = tw.problems.read_graph(table, numbers=["Length"], optional=["capacity"])
    assert graph.numbers["Length"].tolist() == [2.0, 3.0, 7.0]
    assert graph.names == ("west", "", "long")
    with pytest.raises(errors.InvalidInput, match="row 2 has no capacity"):
        tw.problems.read_graph(table, numbers=["capacity"])


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"a": ["s"], "b": ["t"]}, "received a, b"),
        ({"tail": ["s", None], "head": ["t", "t"]}, 'row 2, column "tail"'),
        ({"tail": ["s"], "head": ["t"], "Tail": ["u"]}, "received tail, head, Tail"),
    ],
)
def test_a_frame_that_is_no_edge_list_is_refused(columns, said):
    for table in (pd.DataFrame(columns), pl.DataFrame(columns)):
        with pytest.raises(errors.InvalidInput, match=said):
            tw.sets.FlowPolytope.from_edges(table, source="s", target="t")


# ---------------------------------------------------------------- networks


@both
@given(order=st.permutations(range(3)))
@settings(max_examples=6, deadline=None)
def test_a_network_finds_the_columns_of_its_links_and_commodities(frame, order):
    network = tw.networks.Network(LINKS, commodities=[("SEA", "NYC", 2.0), ("SEA", "DEN", 1.0)])
    table = frame(TABLE[:, order], [NAMES[i] for i in order])
    sent = np.arange(8.0).reshape(4, 2)
    demands = frame(sent[:, ::-1], ["SEA > DEN", "SEA > NYC"])
    assert network.losses(table, demands) == network.losses(TABLE, sent)
    assert network.limits(table, demands) == network.limits(TABLE, sent)
    tunnels = tw.networks.Tunnels(LINKS, [("SEA", "NYC"), ("SEA", "DEN")])
    caps = np.ones(3)
    assert tunnels.max_utilization(demands, caps) == tunnels.max_utilization(sent, caps)
    with pytest.raises(errors.InvalidInput, match="received 'x'"):
        network.losses(frame(TABLE, ["x", *NAMES[1:]]))
    with pytest.raises(errors.InvalidInput, match="'SEA > NYC' is missing"):
        network.losses(frame(TABLE[:, :2], NAMES[:2]))


@both
def test_frames_stand_for_the_files_of_a_network(frame, tmp_path):
    edges = pd.DataFrame(LINKS, columns=["tail", "head"]).assign(capacity=[1.0, 2.0, 3.0])
    edges.to_csv(tmp_path / "links.csv", index=False)
    costs = pd.DataFrame(TABLE, columns=NAMES)
    costs.insert(0, "time", pd.DatetimeIndex(DAYS))
    costs.to_csv(tmp_path / "costs.csv", index=False)
    commodities = pd.DataFrame({"source": ["SEA", "SEA"], "target": ["NYC", "DEN"], "demand": 2.0})
    commodities.to_csv(tmp_path / "commodities.csv", index=False)
    files = {name: tmp_path / f"{name}.csv" for name in ("commodities", "costs")}
    read = tw.networks.from_files(tmp_path / "links.csv", **files)
    if frame is FRAMES["polars"]:
        edges, costs, commodities = map(pl.from_pandas, (edges, costs, commodities))
    found = tw.networks.from_files(edges, commodities=commodities, costs=costs)
    assert (found.network, found.stream.losses) == (read.network, read.stream.losses)
    assert found.stream.constraints == read.stream.constraints
    np.testing.assert_array_equal(found.stream.stamps, read.stream.stamps)
    graph = nx.DiGraph()
    rows = [(*link, c) for link, c in zip(LINKS, (1, 2, 3), strict=True)]
    graph.add_weighted_edges_from(rows, "capacity")
    drawn = tw.networks.from_files(graph, commodities=commodities, costs=costs)
    assert sorted(drawn.network.capacities) == [1.0, 2.0, 3.0]
    wrong = frame(TABLE, ["x", *NAMES[1:]])
    with pytest.raises(errors.InvalidInput, match=r"^The frame of costs.*received 'x'"):
        tw.networks.from_files(edges, source="SEA", target="NYC", costs=wrong)


def test_a_table_is_read_from_a_frame_with_its_times():
    indexed = pd.DataFrame(TABLE, columns=NAMES, index=pd.DatetimeIndex(DAYS, tz="UTC"))
    table = tw.problems.read_table(indexed)
    assert table.columns == tuple(NAMES)
    np.testing.assert_array_equal(table.values, TABLE)
    np.testing.assert_array_equal(table.times, np.array(DAYS, dtype="datetime64[us]"))
    assert tw.problems.read_table(pl.DataFrame(TABLE)).columns[0] == "column_0"
    assert tw.problems.read_table(pd.DataFrame(TABLE)).columns == ("0", "1", "2")
    gap = indexed.copy()
    gap.iloc[1, 0] = np.nan
    assert np.isnan(tw.problems.read_table(gap, gaps=True).values[1, 0])
    for wrong, said in (
        (gap, 'row 2, column "SEA > DEN"'),
        (indexed.iloc[:0], "no rows"),
        (indexed.iloc[::-1], "does not come after"),
        (pl.DataFrame({"time": DAYS}), "no column of numbers"),
    ):
        with pytest.raises(errors.InvalidInput, match=said):
            tw.problems.read_table(wrong)


def test_columns_of_two_levels_are_links():
    table = pd.DataFrame(TABLE, columns=pd.MultiIndex.from_tuples(LINKS))
    assert frames.read_frame(table, "t").names == tuple(NAMES)
