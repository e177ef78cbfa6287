"""Tables and graphs from files: what is read, and what is said of files that cannot be."""

from __future__ import annotations

import gzip
import sys
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidewolf.core.errors import (
    EmptyGraph,
    InvalidInput,
    MissingExtra,
    UnknownNode,
    UnreachableTarget,
)
from tidewolf.files import read_records
from tidewolf.problems import FileFormat, read_graph, read_table
from tidewolf.sets import FlowPolytope

GOOD = "time,a,b\n0,1,2\n1,3.5,-4e2\n"


def written(tmp_path, name, content):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def refused(path, match, read=read_table, error=InvalidInput, **options):
    with pytest.raises(error, match=match) as raised:
        read(path, **options)
    assert str(path) in str(raised.value)


# tables


@pytest.mark.parametrize(
    ("content", "match"),
    [
        ("", "is empty; a table starts with a line of column names"),
        ("time,a\n", "has column names and no rows"),
        ("time\n1\n", "has times and no other column"),
        ("a,b\n1,2\n3\n", "line 3: expected 2 cells, received 1"),
        ("a,b\n1,2\n\n3,\n", 'line 4, column "b": '),
        ("a,b\n1,two\n", "line 2, column \"b\": .*'two'"),
        ("a,b\n1,nan\n", "line 2, column \"b\": .*'nan'"),
        ("a,b\n-inf,1\n", "line 2, column \"a\": .*'-inf'"),
        ("time,a\n2,1\n1,1\n", "line 3: the time 1.0 does not come after 2.0; sort the rows"),
        (
            "time,a\n2024-01-02,1\nsoon,1\n",
            "line 3, column \"time\": .*'soon'",
        ),
        ("time,a\n1,1\n2024-01-02,1\n", "line 3, column \"time\": .*'2024-01-02'"),
        ("time,a\n1,1\n,1\n", 'line 3, column "time": '),
        ("a,a\n1,2\n", "column 2 beside the times: .*'a' comes twice"),
        ("a,\n1,2\n", "column 2 beside the times: .*no name"),
        (b"a,b\n1,\xff\n", "line 2: it cannot be read in utf-8"),
        ('a,b\n1,"2\n', "cannot be read as csv"),
    ],
)
def test_what_is_wrong_with_a_csv_is_said_with_its_place(tmp_path, content, match):
    refused(written(tmp_path, "t.csv", content), match)


def test_files_that_are_no_tables(tmp_path):
    pytest.importorskip("pyarrow")
    refused(tmp_path / "none.csv", "There is no table at")
    refused(
        written(tmp_path, "t.xls", ""),
        "expected a file that ends in .csv",
    )
    refused(written(tmp_path, "t.csv.gz", b"plain"), "cannot be read as CSV")
    refused(written(tmp_path, "t.npz", b"plain"), "cannot be read as NPZ")
    refused(written(tmp_path, "t.parquet", b"plain"), "cannot be read as parquet")


@given(
    rows=st.lists(
        st.tuples(*[st.floats(allow_nan=False, allow_infinity=False)] * 3), min_size=1, max_size=6
    )
)
def test_every_number_survives_every_format(tmp_path_factory, rows):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    folder, values = tmp_path_factory.mktemp("tables"), np.array(rows)
    times = np.arange(len(rows)) * 2.0
    (folder / "t.csv").write_text(
        "time,a,b,c\n"
        + "".join(
            f"{t!r},{a!r},{b!r},{c!r}\n" for t, (a, b, c) in zip(times.tolist(), rows, strict=True)
        )
    )
    np.savez(folder / "t.npz", values=values, times=times, columns=["a", "b", "c"])
    parquet.write_table(
        pyarrow.table({"time": times} | dict(zip("abc", values.T, strict=True))),
        folder / "t.parquet",
    )
    for name in ("t.csv", "t.npz", "t.parquet"):
        table = read_table(folder / name)
        assert table.columns == ("a", "b", "c")
        np.testing.assert_array_equal(table.values, values)
        np.testing.assert_array_equal(table.times, times)


def test_npz_tables(tmp_path):
    def saved(**arrays):
        np.savez(tmp_path / "t.npz", **arrays)
        return tmp_path / "t.npz"

    assert read_table(saved(load=np.ones((2, 3), dtype=np.int16))).columns == ("0", "1", "2")
    dated = read_table(
        saved(
            values=np.ones((2, 1)),
            other=np.ones((2, 2)),
            times=np.array(["2024-01-01", "2024-01-02"]),
        )
    )
    assert dated.times.dtype.kind == "M"
    refused(
        saved(x=np.ones((2, 1)), y=np.ones((2, 1))),
        r"received x \(2, 1\), y \(2, 1\)",
    )
    refused(saved(values=np.array([["a"]])), "expected numbers in the table, received <U1")
    refused(
        saved(values=np.array([[1.0, np.nan]]), columns=["a", "b"]),
        'row 1, column "b": ',
    )
    refused(
        saved(values=np.ones((2, 2)), columns=["a"]),
        "expected 2 names in `columns`",
    )
    refused(
        saved(values=np.ones((2, 2)), times=np.ones(3)),
        "and 2 in `times`",
    )
    refused(saved(values=np.ones((2, 2)), times=np.array([2.0, np.nan])), "every row needs a time")


def test_parquet_tables(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    def saved(columns):
        parquet.write_table(pyarrow.table(columns), tmp_path / "t.parquet")
        return tmp_path / "t.parquet"

    days = np.array(["2024-01-01", "2024-01-02"], dtype="datetime64[us]")
    assert read_table(saved({"date": days, "x": [1, 2]})).times.dtype.kind == "M"
    refused(saved({"x": [1.0, None]}), 'row 2, column "x": ')
    refused(saved({"x": ["a", "b"]}), 'row 1, column "x": .*received .a.')
    refused(saved({}), "is empty")


def test_npz_and_csv_need_no_extras_and_the_others_name_theirs(tmp_path, monkeypatch):
    np.savez(tmp_path / "t.npz", values=np.ones((2, 2)))
    for extra in ("pyarrow", "pyarrow.parquet", "pandas", "networkx", "openpyxl"):
        monkeypatch.setitem(sys.modules, extra, None)
    assert len(read_table(tmp_path / "t.npz").values) == 2
    assert len(read_table(written(tmp_path, "t.csv", GOOD)).values) == 2
    for ending, extra in (("parquet", "pyarrow.parquet"), ("xlsx", "openpyxl")):
        with pytest.raises(MissingExtra, match=rf'{extra}: pip install "tidewolf\[app\]"'):
            read_table(written(tmp_path, f"t.{ending}", GOOD))
    with pytest.raises(MissingExtra, match=r'GML needs networkx: pip install "tidewolf\[graph\]"'):
        read_graph(written(tmp_path, "t.gml", b""))


def broken(data, rng, cut):
    """Bytes with some of them changed, and perhaps cut off."""
    found = bytearray(data[: rng.integers(len(data) + 1)] if cut else data)
    for at in rng.integers(len(found), size=4) if found else ():
        found[at] = rng.integers(256)
    return bytes(found)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Files of every kind that are in order."""
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    folder = tmp_path_factory.mktemp("whole")
    text = "time,tail,head\n2024-01-31T06:00,1.5,2\n2024-01-31T07:00,3.5,\u00fc\n"
    numbers = text.replace("\u00fc", "4")
    (folder / "t.csv").write_text(text)
    (folder / "t.csv.gz").write_bytes(gzip.compress(numbers.encode()))
    (folder / "u.csv").write_bytes(numbers.encode("utf-16"))
    (folder / "t.tsv").write_text(numbers.replace(",", "\t"))
    np.savez(folder / "t.npz", values=np.ones((2, 2)), times=["2024-01-31", "2024-02-01"])
    columns = {"time": ["2024-01-31", "2024-02-01"], "tail": [1.5, None], "head": [2, 3]}
    parquet.write_table(pyarrow.table(columns), folder / "t.parquet")
    columns = {"tail": ["a", "b"], "head": ["b", None], "km": [2, 3]}
    parquet.write_table(pyarrow.table(columns), folder / "g.parquet")
    return {path: path.read_bytes() for path in sorted(folder.iterdir())}


@settings(max_examples=60)
@given(seed=st.integers(0, 2**32 - 1), cut=st.booleans(), gaps=st.booleans())
def test_broken_bytes_are_refused_in_a_sentence_or_read(tmp_path_factory, whole, seed, cut, gaps):
    folder, rng = tmp_path_factory.mktemp("broken"), np.random.default_rng(seed)
    for path, data in whole.items():
        there = folder / path.name
        there.write_bytes(broken(data, rng, cut))
        with suppress(InvalidInput):
            table = read_table(there, gaps=gaps)
            assert gaps or np.isfinite(table.values).all()
        with suppress(InvalidInput):
            read_records(there, ["tail"])
        with suppress(InvalidInput):
            read_graph(there)


@pytest.mark.parametrize("name", ["t.csv", "t.tsv", "t.csv.gz"])
@settings(max_examples=60)
@given(
    data=st.one_of(
        st.binary(max_size=200),
        st.text(max_size=60).map(str.encode),
        st.text("0123456789.,;\t\n\"'-/: eE", max_size=80).map(str.encode),
    )
)
def test_any_bytes_are_refused_in_a_sentence_or_read(tmp_path_factory, name, data):
    path = tmp_path_factory.mktemp("any") / name
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    for format in (FileFormat(), FileFormat(decimal=",", encoding="cp1252", timezone="UTC")):
        with suppress(InvalidInput):
            assert np.isfinite(read_table(path, format=format).values).all()
        with suppress(InvalidInput):
            read_graph(path, format=format)


# graphs


EDGES = "tail,head,km\na,b,1\na,b,2\nb,c,1\nb,b,7\nc,a,1\n"
GML = """graph [
  {flags}
  node [ id 0 label "a" ] node [ id 1 label "b" ]
  node [ id 2 label "{third}" ] node [ id 3 label "d" ]
  edge [ source 0 target 1 km 1.5 ]
  edge [ source 0 target 1 km 2 ]
  edge [ source 1 target 2 ]
]
"""
GRAPHML = """<?xml version="1.0" encoding="UTF-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
<key id="d0" for="edge" attr.name="km" attr.type="double"/>
<graph edgedefault="{default}"><node id="a"/><node id="b"/><node id="c"/>
<edge source="a" target="b"><data key="d0">1.5</data></edge>
<edge source="a" target="b"/><edge source="b" target="c"/></graph></graphml>
"""


def test_an_edge_list_becomes_a_flow(tmp_path):
    graph = read_graph(written(tmp_path, "g.csv", EDGES), numbers=["km"])
    assert graph.links == (("a", "b"), ("a", "b"), ("b", "c"), ("c", "a"))
    assert (graph.numbers["km"].tolist(), graph.loops) == ([1, 2, 1, 1], 1)
    kept = graph.dag("a", "c", "km")
    assert kept == [0, 1, 2]
    assert (
        FlowPolytope.from_edges([graph.links[i] for i in kept], source="a", target="c").dimension
        == 1
    )


def test_cables_go_both_ways_when_told(tmp_path):
    graph = read_graph(
        written(tmp_path, "g.csv", "u,v,km\n1,2,5\n2,3,6\n"), numbers=["km"], directed=False
    )
    assert graph.links == (("1", "2"), ("2", "3"), ("2", "1"), ("3", "2"))
    assert graph.numbers["km"].tolist() == [5, 6, 5, 6]
    assert graph.dag("3", "1") == [2, 3]


GML_WITH_COMMENTS = """# a graph [ in a comment, with "one quote
Creator "made # by hand: graph ["
graph [ # the graph [ itself
  multigraph 0 # it is one all the same
  directed 1
  # node [ id 9 ]
  node [ id 0 label "#1, graph [" ]
  node [ id 1 label "b" ]
  edge [ source 0 target 1 km 2.5 ] # graph [ multigraph 1
  edge [ source 0 target 1 km 3.5 ]
]
"""


def test_what_stands_in_comments_and_text_of_gml_is_no_structure(tmp_path):
    pytest.importorskip("networkx")
    graph = read_graph(written(tmp_path, "g.gml", GML_WITH_COMMENTS), numbers=["km"])
    assert graph.links == (("#1, graph [", "b"),) * 2
    assert graph.numbers["km"].tolist() == [2.5, 3.5]


@pytest.mark.parametrize("flags", ["", "multigraph 1", "directed 0", "directed 1\n  multigraph 0"])
def test_gml_with_parallel_links_is_read_whatever_its_flags(tmp_path, flags):
    pytest.importorskip("networkx")
    graph = read_graph(
        written(tmp_path, "g.gml", GML.format(flags=flags, third="c")), numbers=["km"], missing=9.0
    )
    there, km = (("a", "b"), ("a", "b"), ("b", "c")), [1.5, 2.0, 9.0]
    back = () if "directed 1" in flags else tuple((head, tail) for tail, head in there)
    assert graph.links == there + back
    assert graph.numbers["km"].tolist() == (km if "directed 1" in flags else km * 2)


def test_labels_that_are_not_unique_give_way_to_ids(tmp_path):
    pytest.importorskip("networkx")
    assert read_graph(
        written(tmp_path, "g.gml", GML.format(flags="directed 1", third="a"))
    ).links == ((0, 1), (0, 1), (1, 2))


def test_an_edge_list_in_parquet(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    def saved(columns):
        parquet.write_table(pyarrow.table(columns), tmp_path / "g.parquet")
        return tmp_path / "g.parquet"

    path = saved({"tail": ["a", "b"], "head": ["b", "c"], "km": [1.5, None], "hops": [1, 2]})
    graph = read_graph(path, numbers=["km", "hops"], missing=9.0)
    assert graph.links == (("a", "b"), ("b", "c"))
    assert graph.numbers["km"].tolist() == [1.5, 9.0]
    assert graph.numbers["hops"].tolist() == [1.0, 2.0]
    assert graph.places[1] == f"{path}, row 2"
    german = read_graph(path, numbers=["km"], missing=9.0, format=FileFormat(decimal=","))
    assert german.numbers["km"].tolist() == [1.5, 9.0]
    assert read_graph(saved({"u": [1, 2], "v": [2.0, 3.5]})).links == (("1", "2"), ("2", "3.5"))
    refused(saved({"u": ["a"], "v": [""]}), 'row 1, column "v": the cell is empty', read_graph)
    refused(saved({"u": ["a" * 1001], "v": ["b"]}), "it holds texts that are no names", read_graph)


@pytest.mark.parametrize("default", ["directed", "undirected"])
def test_graphml_is_read(tmp_path, default):
    pytest.importorskip("networkx")
    path = written(tmp_path, "g.graphml", GRAPHML.format(default=default))
    graph = read_graph(path, numbers=["km"], missing=0.0)
    assert graph.links[:3] == (("a", "b"), ("a", "b"), ("b", "c"))
    assert len(graph.links) == (3 if default == "directed" else 6)
    assert graph.numbers["km"][:3].tolist() == [1.5, 0.0, 0.0]
    with pytest.raises(InvalidInput, match="lengths of away must be"):
        graph.dag("a", "c", "km")
    refused(path, "link a - b has no km; give `missing=` a number", read_graph, numbers=["km"])


@pytest.mark.parametrize(
    ("name", "content", "match", "options"),
    [
        (
            "g.csv",
            "a,b\n1,2\n",
            "expected the columns tail and head, or source and target, .* received a, b",
            {},
        ),
        ("g.csv", "u,v\n1,\n", 'line 2, column "v": the cell is empty; a link has two ends', {}),
        ("g.csv", "u,v,km\n1,2,\n", "line 2 has no km; give `missing=`", {"numbers": ["km"]}),
        (
            "g.csv",
            "u,v,km\n1,2,far\n",
            'line 2, column "km": .*far',
            {"numbers": ["km"]},
        ),
        ("g.csv", "u,v\n1,2\n", "has no column 'km'; it has u, v", {"numbers": ["km"]}),
        ("g.csv", "u,v\n1,1\n", "has no link between two nodes", {}),
        ("g.txt", "", "expected a graph that ends in", {}),
        ("g.gml", '# graph [ ]\nCreator "graph ["', "it has no part called graph", {}),
        ("g.gml", "graph [ node [ id 0 ", "cannot be read as a graph", {}),
        ("g.graphml", "<not xml", "cannot be read as a graph", {}),
    ],
)
def test_what_is_wrong_with_a_graph_is_said(tmp_path, name, content, match, options):
    pytest.importorskip("networkx")
    refused(written(tmp_path, name, content), match, read_graph, **options)


def test_graphs_that_are_missing_empty_or_in_parts(tmp_path):
    refused(tmp_path / "g.csv", "There is no graph at", read_graph)
    refused(
        written(tmp_path, "e.csv", "u,v\n"),
        "no link between two nodes",
        read_graph,
        error=EmptyGraph,
    )
    parts = read_graph(written(tmp_path, "g.csv", "u,v\n1,2\n3,4\n"))
    with pytest.raises(
        UnreachableTarget, match="No way leads from '1' to '4': 2 of 4 nodes can be reached"
    ):
        parts.dag("1", "4")
    with pytest.raises(UnknownNode, match=r"The target .x. is not a node of the graph"):
        parts.dag("1", "x")
    with pytest.raises(InvalidInput, match="The links have no km; ask for it"):
        parts.dag("1", "2", "km")


@pytest.mark.parametrize("cell", ["01.03.2026 06:00", "2026-03-01T06:00"])
def test_times_under_another_name_are_said_to_be_times(tmp_path, cell):
    path = tmp_path / "kosten.csv"
    path.write_text(f"Zeit,a\n{cell},1\n")
    with pytest.raises(InvalidInput, match="a column of times is the first and is called time"):
        read_table(path)
