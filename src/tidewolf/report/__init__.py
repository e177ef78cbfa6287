"""Reports: runs in, one self-contained HTML page out, or pictures."""

from tidewolf.report.page import page, rewrite, write, write_figures

__all__ = ["page", "rewrite", "write", "write_figures"]
