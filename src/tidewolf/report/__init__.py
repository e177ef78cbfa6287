"""Reports: runs in, one self-contained HTML page out."""

from tidewolf.report.page import page, write

__all__ = ["page", "write"]
