"""Read tables, graphs and rows from files (CSV, Excel, Parquet, NPZ, GraphML, GML) and frames.

    reading    cells of a file: text, numbers and dates under names, and how they are written
    table      rows of numbers, one per round, tables with gaps, and links with numbers on them

Nothing is guessed. A file that cannot be read is refused with its name, the line and the column.
"""

from tidewolf.files.reading import FileFormat, file_of, read_columns
from tidewolf.files.table import GAPS, Aligned, Graph, Table, align, read_graph, read_table

__all__ = [
    "GAPS", "Aligned", "FileFormat", "Graph", "Table", "align", "file_of", "read_columns",
    "read_graph", "read_table",
]  # fmt: skip
