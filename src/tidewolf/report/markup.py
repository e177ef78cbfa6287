"""Pieces of pages that several sections share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape


def table(titles: Sequence[str], rows: Iterable[Sequence[str]], *, stacked: bool = False) -> str:
    """A <table>; the cells of a row are markup, the first of them its heading.

    A narrow page may stack the cells of a row.
    """
    head = "".join(f'<th scope="col">{escape(title)}</th>' for title in titles)
    names = [f' data-title="{escape(title)}"' if stacked else "" for title in titles[1:]]
    body = "\n".join(
        f'<tr><th scope="row">{first}</th>{_cells(names, cells)}</tr>' for first, *cells in rows
    )
    kind = " class=stacked" if stacked else ""
    return f"<table{kind}><thead><tr>{head}</tr></thead>\n<tbody>{body}</tbody></table>"


def _cells(names: Sequence[str], cells: Sequence[str]) -> str:
    return "".join(f"<td{name}>{cell}</td>" for name, cell in zip(names, cells, strict=True))


def scrolled(inside: str, named: str) -> str:
    """Something wide, in a box that scrolls by itself."""
    return (
        '<div class="scroll" tabindex="0" role="region" '
        f'aria-label="{escape(named)}">{inside}</div>'
    )


def folded(inside: str, named: str) -> str:
    """A table that is unfolded when asked for."""
    return f"<details><summary>numbers</summary>{scrolled(inside, named)}</details>"


def with_lines(value: str, *lines: str) -> str:
    """A value with small lines beneath."""
    return escape(value) + "".join(f"<small>{escape(line)}</small>" for line in lines)
