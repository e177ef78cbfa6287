"""Files as people have them: tables, graphs and rows, read without guessing and without trust.

    format     how text is written: separators, decimal marks, encodings, time zones
    text, numbers, dates       letters, numbers and times in it
    csv, excel, npz, parquet   what files hold, not yet looked at: cells and columns
    table, graph, records      what is made of it, checked
    gaps       tables with gaps as rounds

What cannot be read is refused in a sentence with the file, the line and the column.
"""

from tidewolf.files.excel import file_of
from tidewolf.files.format import FileFormat
from tidewolf.files.gaps import GAPS, Aligned, align
from tidewolf.files.graph import Graph, read_graph
from tidewolf.files.records import Record, read_records
from tidewolf.files.table import Table, read_table

__all__ = [
    "GAPS",
    "Aligned",
    "FileFormat",
    "Graph",
    "Record",
    "Table",
    "align",
    "file_of",
    "read_graph",
    "read_records",
    "read_table",
]
