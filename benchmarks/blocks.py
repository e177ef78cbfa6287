"""Marked blocks of a page, which a named command writes.

    <!-- begin NAME: command -->
    body
    <!-- end NAME -->

The command stands in the mark, so that a reader of the page can run it.
"""

from __future__ import annotations

import re


def pattern(name: str) -> re.Pattern[str]:
    """Where the block of this name is: its first mark, its body, its last mark."""
    mark = re.escape(name)
    return re.compile(
        rf"(<!-- begin {mark}: [^\n]*? -->\n)(.*?)(<!-- end {mark} -->)", flags=re.DOTALL
    )


def find(text: str, name: str) -> str | None:
    """The body of a block, without its marks; None where the page has no such block."""
    found = pattern(name).search(text)
    return None if found is None else found[2].strip("\n")


def replaced(text: str, name: str, body: str) -> str:
    """The page with another body in a block."""
    count = len(pattern(name).findall(text))
    if count != 1:
        raise ValueError(
            f"The page has {count} blocks called {name!r}; it needs one, between '<!-- begin "
            f"{name}: command -->' and '<!-- end {name} -->'."
        )
    inner = "\n" + body.strip("\n") + "\n\n"
    return pattern(name).sub(lambda found: found[1] + inner + found[3], text)
