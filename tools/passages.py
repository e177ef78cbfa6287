"""Identical passages: pairs of files that share six or more lines in a row, white space aside.

Blank lines, comments, lines without a letter or digit, imports and docstrings are passed over.
Two files make one pair however many passages they share; a file that repeats a passage pairs with
itself.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from itertools import combinations
from pathlib import Path
from typing import NamedTuple, TypeAlias, TypeGuard

LINES = 6
"""So many identical lines make a passage."""

Start: TypeAlias = tuple[int, int]
"""Where six identical lines start in one file and in the other, counting the lines that count."""


class Passage(NamedTuple):
    """The longest passage of a pair of files: where it starts in each, and how many lines count."""

    first: str
    first_line: int
    second: str
    second_line: int
    lines: int

    def __str__(self) -> str:
        places = f"{self.first}:{self.first_line} = {self.second}:{self.second_line}"
        return f"{places}, {self.lines} lines"


class Line(NamedTuple):
    """A line that counts, with single spaces, and its number in the file."""

    number: int
    text: str


def read_lines(source: str) -> list[Line]:
    """The lines of a file that count."""
    skipped: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import | ast.ImportFrom) or _is_docstring(node):
            skipped.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    found = []
    for number, line in enumerate(source.splitlines(), 1):
        text = " ".join(line.split())
        is_comment = text.startswith("#")
        if number not in skipped and not is_comment and any(map(str.isalnum, text)):
            found.append(Line(number, text))
    return found


def _is_docstring(node: ast.AST) -> TypeGuard[ast.Expr]:
    """Whether a node is a string that stands alone, below a module, class, function or field."""
    if not isinstance(node, ast.Expr) or not isinstance(node.value, ast.Constant):
        return False
    return isinstance(node.value.value, str)


def identical_passages(folder: Path) -> list[Passage]:
    """The pairs of Python files of a folder that share a passage, the longest passages first."""
    lines = {}
    for file in sorted(folder.rglob("*.py")):
        lines[str(file.relative_to(folder))] = read_lines(file.read_text(encoding="utf-8"))
    found = []
    for (first, second), starts in _shared(lines).items():
        i, j = max(sorted(starts), key=lambda start: _length(start, starts))
        at, again = lines[first][i].number, lines[second][j].number
        found.append(Passage(first, at, second, again, _length((i, j), starts)))
    return sorted(found, key=lambda passage: (-passage.lines, passage))


def _shared(lines: dict[str, list[Line]]) -> dict[tuple[str, str], set[Start]]:
    """Every start of six identical lines, by the pair of files that has it."""
    places = defaultdict(list)
    for name, own in lines.items():
        for i in range(len(own) - LINES + 1):
            places[tuple(line.text for line in own[i : i + LINES])].append((name, i))
    shared: dict[tuple[str, str], set[Start]] = defaultdict(set)
    for same in places.values():
        for (first, i), (second, j) in combinations(same, 2):
            if first != second or j - i >= LINES:
                shared[first, second].add((i, j))
    return shared


def _length(start: Start, starts: set[Start]) -> int:
    """How many lines are identical from a start on: one more for each start right behind it."""
    i, j = start
    length = LINES
    while (i + 1, j + 1) in starts:
        i, j, length = i + 1, j + 1, length + 1
    return length
