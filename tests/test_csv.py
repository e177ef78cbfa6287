"""CSV as people have it: every separator, decimal mark and encoding gives the same numbers when it
is told, and a file that is read as something else says what to tell.
"""

from __future__ import annotations

import gzip
import itertools
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidewolf.core.errors import InvalidInput
from tidewolf.files import FileFormat, read_graph, read_records, read_table
from tidewolf.files.format import PLAIN
from tidewolf.files.reading import likely_encoding

NAMES = ("Zürich > Köln", "Köln > Genève, Cornavin", 'x "y" z')
SEPARATORS = (",", ";", "\t", "|")
ENCODINGS = ("utf-8", "utf-8-sig", "latin-1", "cp1252", "utf-16", "utf-16-le", "utf-16-be")
numbers = st.floats(allow_nan=False, allow_infinity=False)


def quoted(cell: str, separator: str) -> str:
    if any(mark in cell for mark in (separator, '"', "\n")):
        return '"' + cell.replace('"', '""') + '"'
    return cell


def as_text(rows, *, separator=",", decimal=".", names=NAMES, end="\n") -> str:
    """A table with a column of times, as a spreadsheet would write it."""
    lines = [["time", *names]]
    for i, row in enumerate(rows):
        lines.append([str(i), *(repr(float(x)).replace(".", decimal) for x in row)])
    return "".join(separator.join(quoted(cell, separator) for cell in line) + end for line in lines)


@given(
    rows=st.lists(st.tuples(numbers, numbers, numbers), min_size=1, max_size=4),
    separator=st.sampled_from(SEPARATORS),
    decimal=st.sampled_from(".,"),
    encoding=st.sampled_from(ENCODINGS),
    end=st.sampled_from(("\n", "\r\n", "\r")),
    packed=st.booleans(),
)
def test_every_format_gives_the_same_numbers(
    tmp_path_factory, rows, separator, decimal, encoding, end, packed
):
    text = as_text(rows, separator=separator, decimal=decimal, end=end)
    path = tmp_path_factory.mktemp("csv") / ("t.csv.gz" if packed else "t.csv")
    data = text.encode(encoding)
    path.write_bytes(gzip.compress(data, mtime=0) if packed else data)
    told = FileFormat(separator=separator, decimal=decimal, encoding=encoding)
    table = read_table(path, format=told)
    assert table.columns == NAMES
    np.testing.assert_array_equal(table.values, np.array(rows))
    np.testing.assert_array_equal(table.times, np.arange(len(rows)))


def cured(read, format=PLAIN):
    """What is read when one does what the sentences say."""
    for _ in range(4):
        try:
            return read(format), format
        except InvalidInput as error:
            sentence = str(error)
        said = dict(re.findall(r'(separator|decimal|encoding) = "([^"]+)"', sentence))
        left = re.findall(r"leave \[files\] (\w+) out", sentence)
        keys = vars(format) | {k: v.replace(r"\t", "\t") for k, v in said.items()}
        keys |= {name: vars(FileFormat())[name] for name in left}
        assert keys != vars(format), sentence
        format = FileFormat(**keys)
    raise AssertionError("the sentences lead nowhere")


@pytest.mark.parametrize(
    ("separator", "decimal", "encoding"),
    [*itertools.product(SEPARATORS, ".,", ["utf-8"]), *((";", ",", each) for each in ENCODINGS)],
)
def test_who_does_what_the_sentence_says_reads_the_file(tmp_path, separator, decimal, encoding):
    rows = [(1.5, -2.25, 100.0), (3.75, 12.5, -0.5)]
    path = tmp_path / "costs.csv"
    path.write_bytes(as_text(rows, separator=separator, decimal=decimal).encode(encoding))
    table, _ = cured(lambda format: read_table(path, format=format))
    assert table.columns == NAMES
    np.testing.assert_array_equal(table.values, rows)


@pytest.mark.parametrize(("separator", "decimal"), list(itertools.product(";\t|", ".,")))
def test_edge_lists_and_rows_say_it_too(tmp_path, separator, decimal):
    path = tmp_path / "links.csv"
    lines = [["tail", "head", "km"], ["SEA", "DEN", f"1{decimal}5"], ["DEN", "NYC", f"2{decimal}5"]]
    path.write_text("".join(separator.join(line) + "\n" for line in lines))
    graph, format = cured(lambda format: read_graph(path, numbers=["km"], format=format))
    assert graph.links == (("SEA", "DEN"), ("DEN", "NYC"))
    assert graph.numbers["km"].tolist() == [1.5, 2.5]
    records = read_records(path, ["head", "km"], format=format)
    assert [(row.text("head"), row.number("km")) for row in records] == [("DEN", 1.5), ("NYC", 2.5)]


def test_what_was_told_wrongly_is_found_too(tmp_path):
    path = tmp_path / "costs.csv"
    path.write_bytes(as_text([(1.5, 2.5, 3.5)]).encode())
    for told in (
        FileFormat(encoding="latin-1"),
        FileFormat(encoding="cp1252"),
        FileFormat(encoding="utf-16"),
        FileFormat(encoding="utf-32"),
        FileFormat(decimal=",", separator=","),
        FileFormat(separator=";"),
        FileFormat(separator="\t", decimal=",", encoding="latin-1"),
    ):
        table, _ = cured(lambda format: read_table(path, format=format), told)
        assert table.columns == NAMES
        np.testing.assert_array_equal(table.values, [[1.5, 2.5, 3.5]])


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
    path = tmp_path / "t.csv"
    path.write_text(f"a;b\n1;{cell}\n")
    with pytest.raises(InvalidInput) as raised:
        read_table(path, format=FileFormat(separator=";", decimal=decimal))
    assert str(raised.value).startswith(f'{path}, line 2, column "b": ')
    assert repr(cell) in str(raised.value)
    assert hint in str(raised.value)


@pytest.mark.parametrize("cell", ["", "NaN", "nan", "NA", "n/a", "#N/A", "null", "None"])
def test_gaps_are_those_that_people_write(tmp_path, cell):
    path = tmp_path / "t.csv"
    path.write_text(f"a,b\n1,{cell}\n")
    np.testing.assert_array_equal(read_table(path, gaps=True).values, [[1.0, np.nan]])


@pytest.mark.parametrize(
    ("text", "line"),
    [("time,a,b\n0,1,5,2,5\n", 2), ("a,b\n1,2\n\n3\n", 4), ('a,b\n"1\n",2\n3,\n4\n', 5)],
)
def test_rows_that_do_not_fit_the_header_are_refused_with_their_line(tmp_path, text, line):
    path = tmp_path / "t.csv"
    path.write_text(text)
    with pytest.raises(InvalidInput, match=f"line {line}: "):
        read_table(path, gaps=True)


def test_what_spreadsheets_leave_at_the_end_is_left_out(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("time,a,,\n0,1,,\n1,2,,\n,,,\n,,,\n")
    table = read_table(path)
    assert (table.columns, table.values.tolist()) == (("a",), [[1.0], [2.0]])
    path.write_text("time,a,\n0,1,7\n")
    with pytest.raises(InvalidInput, match=r"column 2 beside the times: .*no name"):
        read_table(path)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (gzip.compress(b"a,b\n1,2\n", mtime=0), "line 1: it cannot be read in utf-8"),
        (b"a,b\n1,\x81\n", "line 2: it cannot be read in utf-8; save it as UTF-8"),
        (b"a,b\n1,2\n\x00\x01", "line 1: it cannot be read in utf-8"),
        (
            b"a,b\n1,2\n3,\x93x\x94\n",
            'line 3: .* encoding = "cp1252"',
        ),
        ("a,ü\n1,2\n".encode("utf-32"), 'encoding = "utf-32"'),
    ],
)
def test_files_that_are_no_utf_8_say_what_they_look_like(tmp_path, data, said):
    path = tmp_path / "t.csv"
    path.write_bytes(data)
    with pytest.raises(InvalidInput, match=said):
        read_table(path)


@given(text=st.text(st.characters(min_codepoint=32, max_codepoint=0x2FFF), max_size=60))
def test_likely_encodings_are_never_wrong_about_utf_8(text):
    data = text.encode()
    assert likely_encoding(data) == "utf-8"
    assert likely_encoding(b"\xef\xbb\xbf" + data) == "utf-8"


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("separator", ";;", "separator of FileFormat is one character"),
        ("separator", ".", "separator of FileFormat is one character"),
        ("decimal", ";", "decimal of FileFormat is one of"),
        ("encoding", "klingon", "encoding of FileFormat is the name of an encoding"),
        ("encoding", "base64", "encoding of FileFormat is the name of an encoding"),
        ("timezone", "Mars/Olympus", "timezone of FileFormat is the name of a time zone"),
        ("timezone", "../etc/passwd", "timezone of FileFormat is the name of a time zone"),
        ("date_format", "%d.%m.", "date_format of FileFormat is a date"),
        ("date_format", "%Y-%m-%Q", "date_format of FileFormat is a date"),
    ],
)
def test_formats_that_are_none_are_refused(key, value, said):
    with pytest.raises(InvalidInput, match=said) as raised:
        FileFormat(**{key: value})
    assert raised.value.setting == key


def test_a_format_is_a_value():
    assert FileFormat(encoding="UTF8") == FileFormat(encoding="utf-8-sig") == FileFormat()
    assert FileFormat(encoding="ISO-8859-1").encoding == "latin-1"
    assert [FileFormat(decimal=",").separator_of(name) for name in ("a.csv", "a.tsv.gz")] == [
        ";",
        "\t",
    ]
