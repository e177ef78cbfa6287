"""Read tables, graphs and rows from files (CSV, Excel, Parquet, NPZ, GraphML, GML) and frames.

    format     how text is written: separators, decimal marks, encodings, dates, time zones
    reading    cells of a file: text, numbers and dates under names
    dates      times of rounds
    table, graph               what is made of the cells, checked
    gaps       tables with gaps as rounds

Nothing is guessed. A file that cannot be read is refused with its name, the line and the column.
"""

from tidewolf.files.format import FileFormat
from tidewolf.files.gaps import GAPS, Aligned, align
from tidewolf.files.graph import Graph, read_graph
from tidewolf.files.reading import Record, file_of, read_records
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
