"""Reports: runs in, one self-contained HTML page out, or pictures."""

from tidewolf.report.page import page, write
from tidewolf.report.pictures import write_figures

__all__ = ["page", "write", "write_figures"]
