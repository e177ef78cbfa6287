"""Files as people have them: tables, graphs and rows, read without guessing and without trust.

    format     how text is written: separators, decimal marks, encodings, time zones
    csv, npz, parquet          what files hold, not yet looked at: cells and columns
    dates      times of rounds
    table, graph, records      what is made of it, checked

What cannot be read is refused in a sentence with the file, the line and the column.
"""

from tidewolf.files.format import FileFormat
from tidewolf.files.graph import Graph, read_graph
from tidewolf.files.records import Record, read_records
from tidewolf.files.table import Table, read_table

__all__ = [
    "FileFormat",
    "Graph",
    "Record",
    "Table",
    "read_graph",
    "read_records",
    "read_table",
]
