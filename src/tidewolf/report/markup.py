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
        "<tr><th"
        f' scope="row">{first}</th>{"".join(f"<td{name}>{cell}</td>" for name, cell in zip(names, cells, strict=True))}</tr>'
        for first, *cells in rows
    )
    return f"<table{' class=stacked' if stacked else ''}><thead><tr>{head}</tr></thead>\n<tbody>{body}</tbody></table>"


def scrolled(inside: str, named: str) -> str:
    """Something wide, in a box that scrolls by itself."""
    return (
        '<div class="scroll" tabindex="0" role="region" '
        f'aria-label="{escape(named)}">{inside}</div>'
    )


def numbers(inside: str, named: str) -> str:
    """A table that is unfolded when asked for."""
    return f"<details><summary>numbers</summary>{scrolled(inside, named)}</details>"


def under(value: str, *lines: str) -> str:
    """A value with small lines beneath."""
    return escape(value) + "".join(f"<small>{escape(line)}</small>" for line in lines)
