"""Read tables, graphs and rows from files (CSV, Excel, Parquet, NPZ, GraphML, GML) and frames.

    format     how text is written: separators, decimal marks, encodings, dates, time zones
    reading    cells of a file: text, numbers and dates under names
    table      rows of numbers, one per round, and tables with gaps
    graph      links and numbers on them

Nothing is guessed. A file that cannot be read is refused with its name, the line and the column.
"""

from tidewolf.files.format import FileFormat
from tidewolf.files.graph import Graph, read_graph
from tidewolf.files.reading import Record, file_of, read_records
from tidewolf.files.table import GAPS, Aligned, Table, align, read_table

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
