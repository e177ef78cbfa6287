"""Docstrings as Sphinx takes them.

They are written to be read where they stand, by `help()` and in the source: `name` is code, a block
that is indented is a formula or a table, |x - y| is a length, (rounds, *shape) a shape and
`weights_` a name. In reStructuredText these mean other things, so that each is said in its words:

    `name`                          ``name``, which name_links.py turns into a link where it can
    an indented block               a block of text, shown as it is
    * | _ and \\ between words        the same with a backslash
    >>> and what follows            left alone, as are *emphasis* and what stands in ``twice two``
"""

import re
from collections.abc import Iterator
from itertools import takewhile
from typing import Any

ENTRIES = frozenset(
    ("Parameters", "Other Parameters", "Attributes", "Returns", "Yields", "Raises", "Warns")
)
"""Sections of numpydoc where a head stands at the margin, and what is said of it is indented."""
LEFT_ALONE = frozenset(("See Also",))
_CODE = re.compile(r"(``.+?``|`[^`]+`)", flags=re.DOTALL)
_EMPHASIS = re.compile(r"((?<![\w*(])\*\w(?:[\w '-]*\w)?\*(?![\w*]))")
_SPECIAL = re.compile(r"[*|\\]|(?<=\w)_(?!\w)")


def as_rst(lines: list[str]) -> list[str]:
    """The lines of a docstring, with what is plain in them said in reStructuredText."""
    return [line for part in _parts(lines) for line in part]


def process(app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Sphinx's event `autodoc-process-docstring`: the lines are changed where they are."""
    lines[:] = as_rst(lines)


def setup(app: Any) -> dict[str, Any]:
    """Before numpydoc, which listens at 500, makes fields of the sections."""
    app.connect("autodoc-process-docstring", process, priority=400)
    return {"parallel_read_safe": True}


def _parts(lines: list[str]) -> Iterator[list[str]]:
    """Headings, examples, literal blocks, and paragraphs of text, in their order."""
    section, after_blank, at = "", True, 0
    while at < len(lines):
        line = lines[at]
        margin = 4 if section in ENTRIES else 0
        if at + 1 < len(lines) and re.fullmatch("-{3,}", lines[at + 1].strip()):
            section, part = line.strip(), lines[at : at + 2]
            yield part
        elif not line.strip() or section in LEFT_ALONE:
            part = [line]
            yield part
        elif line.lstrip().startswith(">>>"):
            part = list(takewhile(str.strip, lines[at:]))
            yield part
        elif after_blank and _indent(line) > margin:
            part = _block(lines[at:], margin)
            yield [" " * margin + ".. code-block:: text", "", *part]
        else:
            part = list(takewhile(str.strip, lines[at:]))
            part = part[: _first_heading(lines, at, len(part))]
            yield _text(part, heads=section in ENTRIES)
        at += len(part)
        after_blank = not part[-1].strip()


def _first_heading(lines: list[str], at: int, count: int) -> int:
    """How many of these lines come before the title of a section."""
    for i in range(1, count):
        if at + i + 1 < len(lines) and re.fullmatch("-{3,}", lines[at + i + 1].strip()):
            return i
    return count


def _block(lines: list[str], margin: int) -> list[str]:
    """Lines that are indented by more than the margin, blank ones between them, and one after."""
    found = list(takewhile(lambda line: not line.strip() or _indent(line) > margin, lines))
    while len(found) > 1 and not found[-1].strip() and not found[-2].strip():
        found.pop()
    return found


def _text(lines: list[str], heads: bool) -> list[str]:
    """A paragraph; code may go on from one line to the next. The star of a head such as *arrays
    is left to numpydoc.
    """
    found = "\n".join(lines)
    pieces = [
        f"``{piece.strip('`')}``" if i % 2 else _escaped(piece)
        for i, piece in enumerate(_CODE.split(found))
    ]
    text = "".join(pieces)
    if heads:
        text = re.sub(r"^(\\\*)+", lambda stars: stars[0].replace("\\", ""), text, flags=re.M)
    return text.split("\n")


def _escaped(text: str) -> str:
    pieces = _EMPHASIS.split(text)
    return "".join(
        piece if i % 2 else _SPECIAL.sub(r"\\\g<0>", piece) for i, piece in enumerate(pieces)
    )


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())
