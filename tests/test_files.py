"""Tables, graphs and rows from files: every format gives the same numbers, and what cannot be
read is refused with its place and with what to write.
"""

import gzip
import itertools
import math
import re
import sys
import zipfile
from contextlib import suppress
from datetime import datetime, time, timedelta

import numpy as np
import openpyxl
import pyarrow
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from refused import refused as refused_setting
from tidewolf.core import errors
from tidewolf.files import FileFormat, file_of, read_columns, read_graph, read_table
from tidewolf.files.reading import PLAIN, likely_encoding
from tidewolf.sets import FlowPolytope

GOOD = "time,a,b\n0,1,2\n1,3.5,-4e2\n"
NAMES = ("Zürich > Köln", "Köln > Genève, Cornavin", 'x "y" z')
SEPARATORS = (",", ";", "\t", "|")
ENCODINGS = ("utf-8", "utf-8-sig", "latin-1", "cp1252", "utf-16", "utf-16-le", "utf-16-be")
DAY = datetime(2024, 1, 1)
HOURS = [DAY + timedelta(hours=i) for i in range(3)]
numbers = st.floats(allow_nan=False, allow_infinity=False)


def written(tmp_path, name, content):
    """A file: text, bytes, columns of Parquet, arrays of NPZ, or rows of a sheet."""
    path = tmp_path / name
    if name.endswith(".parquet"):
        parquet.write_table(pyarrow.table(content), path)
    elif name.endswith(".npz"):
        np.savez(path, **content)
    elif name.endswith(".xlsx"):
        book(path, Costs=content)
    else:
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def book(path, **sheets):
    """A book of these sheets, rows of cells each."""
    made = openpyxl.Workbook()
    made.remove(made.active)
    for name, rows in sheets.items():
        sheet = made.create_sheet(name)
        for row in rows:
            sheet.append(row)
    made.save(path)
    return path


def refused(path, match, read=read_table, error=errors.InvalidInput, **options):
    with pytest.raises(error, match=match) as raised:
        read(path, **options)
    assert str(path) in str(raised.value)


# what cannot be read


@pytest.mark.parametrize(
    ("name", "content", "match"),
    [
        ("t.csv", "", "is empty"),
        ("t.csv", "time,a\n", "no rows"),
        ("t.csv", "time\n1\n", "no other column"),
        ("t.csv", "a,b\n1,2\n\n3\n", "line 4: "),
        ("t.csv", "time,a,b\n0,1,5,2,5\n", "line 2: "),
        ("t.csv", 'a,b\n"1\n",2\n3,\n4\n', "line 5: "),
        ("t.csv", "a,b\n1,2\n\n3,\n", 'line 4, column "b": '),
        ("t.csv", "a,b\n1,two\n", "line 2, column \"b\": .*'two'"),
        ("t.csv", "time,a\n2,1\n1,1\n", "line 3: the time 1.0 does not come after 2.0"),
        ("t.csv", "time,a\n2024-01-02,1\nsoon,1\n", "line 3, column \"time\": .*'soon'"),
        ("t.csv", "time,a\n1,1\n2024-01-02,1\n", 'line 3, column "time": '),
        ("t.csv", "time,a\n1,1\n,1\n", 'line 3, column "time": '),
        ("t.csv", "a,a\n1,2\n", "column 2 beside the times: .*'a' comes twice"),
        ("t.csv", "a,\n1,2\n", "column 2 beside the times: .*no name"),
        ("t.csv", 'a,b\n1,"2\n', "cannot be read as csv"),
        ("t.csv", "Zeit,a\n2026-03-01T06:00,1\n", 'line 2, column "Zeit": '),
        ("t.csv", gzip.compress(b"a,b\n1,2\n", mtime=0), "line 1: it cannot be read in utf-8"),
        ("t.csv", b"a,b\n1,\x81\n", "line 2: it cannot be read in utf-8"),
        ("t.csv", b"a,b\n1,2\n\x00\x01", "line 1: it cannot be read in utf-8"),
        ("t.csv", b"a,b\n1,2\n3,\x93x\x94\n", 'line 3: .* encoding = "cp1252"'),
        ("t.xls", "", "expected a file that ends in .csv"),
        ("t.csv.gz", b"plain", "cannot be read as CSV"),
        ("t.npz", {"x": np.ones((2, 1)), "y": np.ones((2, 1))}, r"x \(2, 1\) .*y \(2, 1\)"),
        ("t.npz", {"values": np.array([["a"]])}, "expected .* numbers"),
        ("t.npz", {"values": np.ones((2, 0))}, "expected .* numbers"),
        ("t.npz", {"values": [[1.0, np.nan]], "columns": ["a", "b"]}, 'row 1, column "b": '),
        ("t.npz", {"values": np.ones((2, 2)), "columns": ["a"]}, "`columns`"),
        ("t.npz", {"values": np.ones((2, 2)), "times": np.ones(3)}, "`times`"),
        ("t.npz", {"values": np.ones((2, 2)), "times": [2.0, np.nan]}, "every row needs a time"),
        ("t.parquet", {"x": [1.0, None]}, 'row 2, column "x": '),
        ("t.parquet", {"x": ["a", "b"]}, 'row 1, column "x": .*received .a.'),
        ("t.parquet", {}, "is empty"),
        ("t.xlsx", [], "is empty"),
        ("t.xlsx", [["a", "b"]], "no rows"),
        ("t.xlsx", [["a", "b"], [1, 2, 3]], "row 2: row 1 names no column for 3"),
        ("t.xlsx", [["time", "a"], [HOURS[1], 1], [HOURS[0], 1]], "row 3: the time 2024-01-01T00"),
        ("t.xlsx", [["time", "a"], [None, 1], [HOURS[0], 1]], 'row 2, column "time": '),
        ("t.xlsx", [["time", "a"], [DAY, 1], ["13/01/2024", 1]], 'row 3, column "time": '),
        ("t.xlsx", [["time", "a"], [time(6), 1]], 'row 2, column "time": '),
        ("t.xlsx", [["time", "a"], ["01/02/2024", 1]], 'row 2, column "time": '),
        ("t.xlsx", [[], [None, "time", "a", None, "b"], [None, DAY, 1, None, 2]], "column 2 "),
    ],
)
def test_what_is_wrong_with_a_table_is_reported_with_its_place(tmp_path, name, content, match):
    refused(written(tmp_path, name, content), match)


def test_what_is_no_file_of_its_kind_is_refused(tmp_path):
    refused(tmp_path / "none.csv", "There is no table at")
    for name in ("t.npz", "t.parquet", "t.xlsx"):
        for data in (b"plain", b"", b"\xd0\xcf\x11\xe0abc"):
            (tmp_path / name).write_bytes(data)
            refused(tmp_path / name, "cannot be read as")
    refused(packed(tmp_path / "b.xlsx", {"nothing.xml": b""}), "cannot be read as excel")


def test_npz_and_csv_need_no_extras_and_the_others_name_theirs(tmp_path, monkeypatch):
    written(tmp_path, "t.npz", {"values": np.ones((2, 2))})
    for extra in ("pyarrow", "pyarrow.parquet", "pandas", "networkx", "openpyxl"):
        monkeypatch.setitem(sys.modules, extra, None)
    assert len(read_table(tmp_path / "t.npz").values) == 2
    assert len(read_table(written(tmp_path, "t.csv", GOOD)).values) == 2
    for ending, extra in (("parquet", "pyarrow"), ("xlsx", "openpyxl")):
        (tmp_path / f"t.{ending}").write_text(GOOD)
        with pytest.raises(errors.MissingExtra, match=rf'{extra}: pip install "tidewolf\[app\]"'):
            read_table(tmp_path / f"t.{ending}")
    needed = r'GML needs networkx: pip install "tidewolf\[graph\]"'
    with pytest.raises(errors.MissingExtra, match=needed):
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
    folder = tmp_path_factory.mktemp("whole")
    text = "time,tail,head\n2024-01-31T06:00,1.5,2\n2024-01-31T07:00,3.5,\u00fc\n"
    numbers, days = text.replace("\u00fc", "4"), ["2024-01-31", "2024-02-01"]
    for name, content in {
        "t.csv": text,
        "t.csv.gz": gzip.compress(numbers.encode()),
        "u.csv": numbers.encode("utf-16"),
        "t.tsv": numbers.replace(",", "\t"),
        "t.npz": {"values": np.ones((2, 2)), "times": days},
        "t.parquet": {"time": days, "tail": [1.5, None], "head": [2, 3]},
        "g.parquet": {"tail": ["a", "b"], "head": ["b", None], "km": [2, 3]},
    }.items():
        written(folder, name, content)
    return {path: path.read_bytes() for path in sorted(folder.iterdir())}


OTHER_FORMAT = FileFormat(decimal=",", encoding="cp1252", timezone="UTC")


@settings(max_examples=60)
@given(
    seed=st.integers(0, 2**32 - 1),
    cut=st.booleans(),
    gaps=st.booleans(),
    format=st.sampled_from([PLAIN, OTHER_FORMAT]),
    data=st.binary(max_size=200)
    | st.text("0123456789.,;\t\n\"'-/: eE", max_size=80).map(str.encode),
)
def test_broken_and_any_bytes_are_refused_or_read(
    tmp_path_factory, whole, seed, cut, gaps, format, data
):
    folder, rng = tmp_path_factory.mktemp("broken"), np.random.default_rng(seed)
    found = {path.name: broken(bytes_, rng, cut) for path, bytes_ in whole.items()}
    for name, bytes_ in (found | {"any.csv": data, "any.csv.gz": gzip.compress(data)}).items():
        there = folder / name
        there.write_bytes(bytes_)
        with suppress(errors.InvalidInput):
            assert gaps or np.isfinite(read_table(there, gaps=gaps, format=format).values).all()
        with suppress(errors.InvalidInput):
            read_columns(there, ["tail"], format)
        with suppress(errors.InvalidInput):
            read_graph(there, format=format)


# tables


def test_arrays_without_names_and_dates_in_arrays_and_columns(tmp_path):
    table = read_table(written(tmp_path, "t.npz", {"load": np.ones((2, 3), dtype=np.int16)}))
    assert table.columns == ("0", "1", "2")
    days = np.array(["2024-01-01", "2024-01-02"])
    arrays = {"values": np.ones((2, 1)), "other": np.ones((2, 2)), "times": days}
    assert read_table(written(tmp_path, "t.npz", arrays)).times.dtype.kind == "M"
    columns = {"date": days.astype("datetime64[us]"), "x": [1, 2]}
    assert read_table(written(tmp_path, "t.parquet", columns)).times.dtype.kind == "M"


@given(rows=st.lists(st.tuples(numbers, numbers, numbers), min_size=1, max_size=6))
def test_every_number_survives_in_arrays_and_columns(tmp_path_factory, rows):
    folder, values = tmp_path_factory.mktemp("tables"), np.array(rows)
    times = np.arange(len(rows)) * 2.0
    columns = {"time": times} | dict(zip("abc", values.T, strict=True))
    arrays = {"values": values, "times": times, "columns": ["a", "b", "c"]}
    for name, content in (("t.npz", arrays), ("t.parquet", columns)):
        table = read_table(written(folder, name, content))
        assert table.columns == ("a", "b", "c")
        np.testing.assert_array_equal(table.values, values)
        np.testing.assert_array_equal(table.times, times)


# CSV as people have it


def quoted(cell, separator):
    if any(mark in cell for mark in (separator, '"', "\n")):
        return '"' + cell.replace('"', '""') + '"'
    return cell


def as_text(rows, *, separator=",", decimal=".", end="\n"):
    """A table with a column of times, as a spreadsheet would write it."""
    lines = [["time", *NAMES]]
    for i, row in enumerate(rows):
        lines.append([str(i), *(repr(float(x)).replace(".", decimal) for x in row)])
    return "".join(separator.join(quoted(cell, separator) for cell in line) + end for line in lines)


FORMS = (SEPARATORS, ".,", ENCODINGS, ("\n", "\r\n", "\r"), (False, True))
ROWS = st.lists(st.tuples(numbers, numbers, numbers), min_size=1, max_size=4)


@given(ROWS, *map(st.sampled_from, FORMS))
def test_every_format_has_the_same_numbers(
    tmp_path_factory, rows, separator, decimal, encoding, end, packed
):
    data = as_text(rows, separator=separator, decimal=decimal, end=end).encode(encoding)
    path = tmp_path_factory.mktemp("csv") / ("t.csv.gz" if packed else "t.csv")
    path.write_bytes(gzip.compress(data, mtime=0) if packed else data)
    told = FileFormat(separator=separator, decimal=decimal, encoding=encoding)
    table = read_table(path, format=told)
    assert table.columns == NAMES
    np.testing.assert_array_equal(table.values, np.array(rows))
    np.testing.assert_array_equal(table.times, np.arange(len(rows)))


def cured(read, format=PLAIN):
    """What is read if one does what the errors say."""
    for _ in range(4):
        try:
            return read(format), format
        except errors.InvalidInput as error:
            sentence = str(error)
        said = dict(re.findall(r'(separator|decimal|encoding) = "([^"]+)"', sentence))
        keys = vars(format) | {k: v.replace(r"\t", "\t") for k, v in said.items()}
        assert keys != vars(format), sentence
        format = FileFormat(**keys)
    raise AssertionError("the errors lead nowhere")


@pytest.mark.parametrize(
    ("separator", "decimal", "encoding", "told"),
    [
        *((*pair, "utf-8", {}) for pair in itertools.product(SEPARATORS, ".,")),
        *((";", ",", each, {}) for each in ENCODINGS),
        *((",", ".", "utf-8", {"encoding": each}) for each in ("cp1252", "utf-16", "utf-32")),
        (",", ".", "utf-8", {"decimal": ",", "separator": ","}),
        (",", ".", "utf-8", {"separator": ";"}),
        (",", ".", "utf-8", {"separator": "\t", "decimal": ",", "encoding": "latin-1"}),
    ],
)
def test_doing_what_the_error_says_reads_the_file(tmp_path, separator, decimal, encoding, told):
    rows, path = [(1.5, -2.25, 100.0), (3.75, 12.5, -0.5)], tmp_path / "costs.csv"
    path.write_bytes(as_text(rows, separator=separator, decimal=decimal).encode(encoding))
    table, _ = cured(lambda format: read_table(path, format=format), FileFormat(**told))
    assert table.columns == NAMES
    np.testing.assert_array_equal(table.values, rows)


@pytest.mark.parametrize("separator", [";", "\t"])
def test_edge_lists_and_rows_say_it_too(tmp_path, separator):
    lines = (("tail", "head", "km"), ("SEA", "DEN", "1,5"), ("DEN", "NYC", "2,5"))
    path = written(tmp_path, "links.csv", "".join(separator.join(line) + "\n" for line in lines))
    graph, format = cured(lambda format: read_graph(path, numbers=["km"], format=format))
    assert graph.links == (("SEA", "DEN"), ("DEN", "NYC"))
    assert graph.numbers["km"].tolist() == [1.5, 2.5]
    cells = read_columns(path, ["head", "km"], format)
    assert (cells.texts("head"), cells.floats("km")) == (["DEN", "NYC"], [1.5, 2.5])


@pytest.mark.parametrize(
    ("cell", "decimal", "hint"),
    [
        ("-,5e-3", ".", 'decimal = ","'),
        ("1.5", ",", 'decimal = "."'),
        ("1,234", ".", "thousands"),
        ("1,234.5", ".", ""),
        ("1\u202f234,5", ",", ""),
        ("1_000", ".", ""),
        ("infinity", ".", ""),
        ("NA", ".", 'gaps = "last"'),
        ("", ".", 'gaps = "last"'),
    ],
)
def test_what_is_no_number_is_refused_with_its_place_and_a_hint(tmp_path, cell, decimal, hint):
    path = written(tmp_path, "t.csv", f"a;b\n1;{cell}\n")
    with pytest.raises(errors.InvalidInput) as raised:
        read_table(path, format=FileFormat(separator=";", decimal=decimal))
    assert str(raised.value).startswith(f'{path}, line 2, column "b": ')
    assert repr(cell) in str(raised.value)
    assert hint in str(raised.value)


def test_gaps_are_those_that_people_write(tmp_path):
    for cell in ("", "NaN", "nan", "NA", "n/a", "#N/A", "null", "None"):
        path = written(tmp_path, "t.csv", f"a,b\n1,{cell}\n")
        np.testing.assert_array_equal(read_table(path, gaps=True).values, [[1.0, np.nan]])


def test_what_spreadsheets_leave_at_the_end_is_left_out(tmp_path):
    table = read_table(written(tmp_path, "t.csv", "time,a,,\n0,1,,\n1,2,,\n,,,\n,,,\n"))
    assert (table.columns, table.values.tolist()) == (("a",), [[1.0], [2.0]])


@given(text=st.text(st.characters(min_codepoint=32, max_codepoint=0x2FFF), max_size=60))
def test_utf_8_is_never_taken_for_another_encoding(text):
    assert likely_encoding(text.encode()) == likely_encoding(text.encode("utf-8-sig")) == "utf-8"


NO_FORMATS = {
    "separator": (";;", "."),
    "decimal": (";",),
    "encoding": ("klingon", "base64"),
    "timezone": ("Mars/Olympus", "../etc/passwd"),
    "date_format": ("%d.%m.", "%Y-%m-%Q"),
}


def test_formats_that_are_none_are_refused():
    for key, value in ((key, value) for key, values in NO_FORMATS.items() for value in values):
        with refused_setting(errors.InvalidInput, key):
            FileFormat(**{key: value})


def test_a_format_is_a_value():
    assert FileFormat(encoding="UTF8") == FileFormat(encoding="utf-8-sig") == FileFormat()
    assert FileFormat(encoding="ISO-8859-1").encoding == "latin-1"
    assert FileFormat(decimal=",").separator_of("a.csv") == ";"
    assert FileFormat(decimal=",").separator_of("a.tsv.gz") == "\t"


# Excel


@settings(max_examples=10)
@given(
    start=st.datetimes(datetime(1952, 1, 1), datetime(2100, 1, 1)),
    step=st.sampled_from((1, 15, 60, 1440)),
    cells=st.lists(st.floats(-1e300, 1e300) | st.integers(-(10**9), 10**9), min_size=1, max_size=9),
)
def test_numbers_and_dates_are_those_of_the_cells(tmp_path_factory, start, step, cells):
    start = start.replace(microsecond=0)
    times = [start + timedelta(minutes=step * i) for i in range(len(cells))]
    cells = [float(f"{cell:.15g}") for cell in cells]  # as many digits as Excel keeps
    rows = [["time", "a"], *map(list, zip(times, cells, strict=True))]
    path = written(tmp_path_factory.mktemp("book"), "b.xlsx", rows)
    table = read_table(path)
    assert (table.times.tolist(), table.values.ravel().tolist()) == (times, cells)
    local = read_table(path, format=FileFormat(timezone="Asia/Tokyo"))  # no summer time since 1951
    assert local.times.tolist() == [t - timedelta(hours=9) for t in times]


def test_the_first_sheet_is_read_or_the_one_that_is_named(tmp_path):
    path = book(tmp_path / "b.xlsx", Costs=[["a"], [1]], **{"Limits #2": [["a"], [2]]})
    for name, value in (("", 1.0), ("#Costs", 1.0), ("#Limits #2", 2.0)):
        assert read_table(f"{path}{name}").values.tolist() == [[value]]
    refused(f"{path}#Limits", "expected one of the sheets Costs, Limits #2")
    refused(tmp_path / "none.xlsx#Costs", "There is no table at")
    assert file_of(tmp_path / "b.xlsx#Costs") == path
    assert file_of(tmp_path / "a#b.csv") == tmp_path / "a#b.csv"


def test_a_table_may_lie_anywhere_in_its_sheet(tmp_path):
    rows = [[], [None, "time", "a"], [], [None, HOURS[0], 1], [None, HOURS[1], 2], []]
    path = written(tmp_path, "b.xlsx", rows)
    table = read_table(path)
    assert (table.columns, table.values.tolist()) == (("a",), [[1.0], [2.0]])
    assert table.places == [f"{path}, row 4", f"{path}, row 5"]


@pytest.mark.parametrize(
    ("cell", "named"),
    [
        (None, "gaps"),
        ("=1+1", "formula"),
        ("#DIV/0!", "#DIV/0!"),
        ("1,5", 'decimal = ","'),
        (True, "True"),
        (time(6, 30), "06:30:00"),
    ],
)
def test_a_cell_that_is_no_number_is_refused(tmp_path, cell, named):
    rows = [["time", "a", "b"], [HOURS[0], 1, 2], [HOURS[1], 3, cell], [HOURS[2], 3, 5]]
    path = written(tmp_path, "b.xlsx", rows)
    refused(path, f", row 3.*{named}")
    if cell is None:
        values = read_table(path, gaps=True).values
        assert math.isnan(values[1, 1])
        assert np.isfinite(values).sum() == 5
    else:
        refused(path, named, gaps=True)


def parts(path):
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def packed(path, found):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in found.items():
            archive.writestr(name, data)
    return path


SHEET = "xl/worksheets/sheet1.xml"


def test_formulas_have_the_values_kept_with_them(tmp_path):
    path = written(tmp_path, "b.xlsx", [["a", "b"], [1, "=A2+1"]])
    found = parts(path)
    kept = re.sub(rb"<f>A2\+1</f><v.*?</c>", b"<f>A2+1</f><v>2.5</v></c>", found[SHEET])
    assert kept != found[SHEET]
    packed(path, found | {SHEET: kept})
    assert read_table(path).values.tolist() == [[1.0, 2.5]]


def test_graphs_and_rows_come_from_books_too(tmp_path):
    links = [["Tail", "Head", "km"], ["SEA", "DEN", 1600], ["DEN", 7, 26.5], ["DEN", 8.0, None]]
    demands = [["Source", "TARGET", "demand"], ["SEA", 7, 2.5]]
    path = book(tmp_path / "b.xlsx", Links=links, Demands=demands)
    graph = read_graph(f"{path}#Links", numbers=["km"], missing=1.0)
    assert graph.links == (("SEA", "DEN"), ("DEN", "7"), ("DEN", "8"))
    assert graph.numbers["km"].tolist() == [1600.0, 26.5, 1.0]
    refused(f"{path}#Links", "row 4 has no km", read_graph, numbers=["km"])
    demands, ends = path.with_name(f"{path.name}#Demands"), ["source", "target"]
    cells = read_columns(demands, [*ends, "demand"], FileFormat())
    assert [*map(cells.texts, ends), cells.floats("demand")] == [["SEA"], ["7"], [2.5]]
    assert cells.place(0) == f"{path}#Demands, row 2"
    other = {"columns": ["node", "supply"], "format": FileFormat()}
    refused(demands, "columns node, supply", read_columns, **other)


def with_rows(path, xml, dimension=b"A1:B2"):
    """A book whose sheet has these rows."""
    found = parts(book(path, Costs=[["a"], [1]]))
    sheet = re.sub(rb"<sheetData>.*</sheetData>", b"<sheetData>%s</sheetData>" % xml, found[SHEET])
    return packed(path, found | {SHEET: sheet.replace(b"A1:A2", dimension)})


def row(number, **cells):
    inner = "".join(
        f'<c r="{name}"><v>{value}</v></c>'
        if not isinstance(value, str)
        else f'<c r="{name}" t="inlineStr"><is><t>{value}</t></is></c>'
        for name, value in cells.items()
    )
    return f'<row r="{number}">{inner}</row>'.encode()


def test_what_a_sheet_claims_is_not_believed(tmp_path):
    path = tmp_path / "b.xlsx"
    with_rows(path, row(1, A1="a") + row(2, A2=1), dimension=b"A1:XFD1048576")
    assert read_table(path).values.tolist() == [[1.0]]
    with_rows(path, row(1, A1="a") + row(100_000, A100000=1))
    assert read_table(path).places == [f"{path}, row 100000"]
    wide = b"".join(row(i, **{f"XFD{i}": 1}) for i in range(2, 700))
    for rows, match in (
        (row(1, A1="a") + row(10**12, A2=1), "lie so far apart"),
        (row(1, A1="a", XFD1="b") + wide, "lie so far apart"),
        (row(1, A1="a") + row(2, ZZZZ2=1), "cannot be read as excel"),
    ):
        refused(with_rows(path, rows), match)


def test_books_that_unpack_to_too_much_are_refused(tmp_path):
    path = tmp_path / "b.xlsx"
    found = parts(book(path, Costs=[["a"], [1]]))
    laughs = "".join(f'<!ENTITY a{i + 1} "{f"&a{i};" * 10}">' for i in range(9))
    entity = f'<!DOCTYPE x [<!ENTITY a0 "ha">{laughs}]>'
    text = entity.encode() + found[SHEET].replace(b"<sheetData>", b"<sheetData>&a9;")
    assert b"&a9;" in text
    refused(packed(path, found | {SHEET: text}), "cannot be read as excel")
    packed(path, found | {"xl/media/image.bin": bytes(65 << 20)})
    refused(path, "is not read: it unpacks to more than 64 MB")


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


def test_an_edge_list_becomes_a_flow(tmp_path):
    graph = read_graph(written(tmp_path, "g.csv", EDGES), numbers=["km"])
    assert graph.links == (("a", "b"), ("a", "b"), ("b", "c"), ("c", "a"))
    assert (graph.numbers["km"].tolist(), graph.loops) == ([1, 2, 1, 1], 1)
    kept = graph.dag("a", "c", "km")
    assert kept == [0, 1, 2]
    links = [graph.links[i] for i in kept]
    assert FlowPolytope.from_edges(links, source="a", target="c").dimension == 1


def test_links_go_both_ways_if_asked(tmp_path):
    path = written(tmp_path, "g.csv", "u,v,km\n1,2,5\n2,3,6\n")
    graph = read_graph(path, numbers=["km"], directed=False)
    assert graph.links == (("1", "2"), ("2", "3"), ("2", "1"), ("3", "2"))
    assert (graph.numbers["km"].tolist(), graph.dag("3", "1")) == ([5, 6, 5, 6], [2, 3])


def test_what_stands_in_comments_and_text_of_gml_is_no_structure(tmp_path):
    graph = read_graph(written(tmp_path, "g.gml", GML_WITH_COMMENTS), numbers=["km"])
    assert graph.links == (("#1, graph [", "b"),) * 2
    assert graph.numbers["km"].tolist() == [2.5, 3.5]


@pytest.mark.parametrize("flags", ["", "multigraph 1", "directed 0", "directed 1\n  multigraph 0"])
def test_gml_with_parallel_links_is_read_whatever_its_flags(tmp_path, flags):
    path = written(tmp_path, "g.gml", GML.format(flags=flags, third="c"))
    graph = read_graph(path, numbers=["km"], missing=9.0)
    there, km = (("a", "b"), ("a", "b"), ("b", "c")), [1.5, 2.0, 9.0]
    back = () if "directed 1" in flags else tuple((head, tail) for tail, head in there)
    assert graph.links == there + back
    assert graph.numbers["km"].tolist() == (km if "directed 1" in flags else km * 2)
    written(tmp_path, "g.gml", GML.format(flags=flags, third="a"))  # labels that are not unique
    assert read_graph(path, directed=True).links == ((0, 1), (0, 1), (1, 2))


@pytest.mark.parametrize("default", ["directed", "undirected"])
def test_graphml_is_read(tmp_path, default):
    path = written(tmp_path, "g.graphml", GRAPHML.format(default=default))
    graph = read_graph(path, numbers=["km"], missing=0.0)
    assert graph.links[:3] == (("a", "b"), ("a", "b"), ("b", "c"))
    assert len(graph.links) == (3 if default == "directed" else 6)
    assert graph.numbers["km"][:3].tolist() == [1.5, 0.0, 0.0]
    with pytest.raises(errors.InvalidInput, match="lengths of away must be"):
        graph.dag("a", "c", "km")
    refused(path, "link a - b has no km; give `missing=` a number", read_graph, numbers=["km"])


def test_an_edge_list_in_parquet(tmp_path):
    columns = {"tail": ["a", "b"], "head": ["b", "c"], "km": [1.5, None], "hops": [1, 2]}
    path = written(tmp_path, "g.parquet", columns)
    for format in (PLAIN, FileFormat(decimal=",")):
        graph = read_graph(path, numbers=["km", "hops"], missing=9.0, format=format)
        assert graph.links == (("a", "b"), ("b", "c"))
        found = {name: each.tolist() for name, each in graph.numbers.items()}
        assert found == {"km": [1.5, 9.0], "hops": [1.0, 2.0]}
        assert graph.places[1] == f"{path}, row 2"
    numbered = read_graph(written(tmp_path, "g.parquet", {"u": [1, 2], "v": [2.0, 3.5]}))
    assert numbered.links == (("1", "2"), ("2", "3.5"))


@pytest.mark.parametrize(
    ("name", "content", "match", "options"),
    [
        ("g.csv", "a,b\n1,2\n", "columns tail and head, .* received a, b", {}),
        ("g.csv", "u,v\n1,\n", 'line 2, column "v"', {}),
        ("g.parquet", {"u": ["a"], "v": [""]}, 'row 1, column "v"', {}),
        ("g.csv", "u,v,km\n1,2,\n", "line 2 has no km; give `missing=`", {"numbers": ["km"]}),
        ("g.csv", "u,v,km\n1,2,far\n", 'line 2, column "km": .*far', {"numbers": ["km"]}),
        ("g.csv", "u,v\n1,2\n", "has no column 'km'; it has u, v", {"numbers": ["km"]}),
        ("g.csv", "u,v\n1,1\n", "has no link between two nodes", {"error": errors.EmptyGraph}),
        ("g.csv", "u,v\n", "no link between two nodes", {"error": errors.EmptyGraph}),
        ("g.txt", "", "expected a graph that ends in", {}),
        ("g.gml", '# graph [ ]\nCreator "graph ["', "cannot be read as a graph", {}),
        ("g.gml", "graph [ node [ id 0 ", "cannot be read as a graph", {}),
        ("g.graphml", "<not xml", "cannot be read as a graph", {}),
    ],
)
def test_what_is_wrong_with_a_graph_is_reported(tmp_path, name, content, match, options):
    refused(written(tmp_path, name, content), match, read_graph, **options)


def test_graphs_that_are_missing_or_in_parts(tmp_path):
    refused(tmp_path / "g.csv", "There is no graph at", read_graph)
    parts = read_graph(written(tmp_path, "g.csv", "u,v\n1,2\n3,4\n"))
    for error, match, ends in (
        (errors.UnreachableTarget, "2 of 4 nodes can be reached", ("1", "4")),
        (errors.UnknownNode, "The target .x. is not a node", ("1", "x")),
        (errors.InvalidInput, "The links have no km; ask for it", ("1", "2", "km")),
    ):
        with pytest.raises(error, match=match):
            parts.dag(*ends)
