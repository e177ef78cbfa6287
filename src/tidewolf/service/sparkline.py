"""Numbers of rounds as paths of SVG, in a frame of given width and height, y downwards.

    line    x = width (i + 1/2) / count,  y = height (high - v) / (high - low);  no value, no line
    sticks  from the floor to v / high, where v > 0

More values than `MOST` are drawn as stretches: a line through the least and the greatest of each, a
stick as tall as the greatest.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

MOST = 480
"""So many points tell all that a screen can show."""


class Spark(NamedTuple):
    """A path and what it spans.

    Parameters
    ----------
    d : str
        The path's commands; "" where nothing is known.
    low, high, last : float or None
        The least, the greatest and the last of the values; None where none is known.
    """

    d: str
    low: float | None = None
    high: float | None = None
    last: float | None = None


def line(values: Sequence[float | None], width: float, height: float) -> Spark:
    """The values as a line that is broken where one is missing; a lonely one is a dash.

    Parameters
    ----------
    values : sequence of float or None
        What is not finite counts as missing.
    width, height : float
        Of the frame.

    Returns
    -------
    Spark
        The path.

    Examples
    --------
    >>> from tidewolf.service.sparkline import line
    >>> line([1.0, 2.0, None, 3.0], 120, 10).d
    'M15 10L45 5M105 0m-2 0h4'
    """
    known, low, high, last = _span(values)
    if not known:
        return Spark("")
    parts: list[str] = []
    half = min(width / 60, width / (4 * len(values)))
    dash = f"m{_text(-half)} 0h{_text(2 * half)}"
    begun = alone = False
    for start, stop in _segments(len(values), MOST):
        here = [v for v in map(_finite, values[start:stop]) if v is not None]
        if not here:
            parts += [dash] * alone
            begun = alone = False
            continue
        x = width * (start + stop) / (2 * len(values))
        ends = (here[0],) if len(here) == 1 else (min(here), max(here))
        for v in ends:
            y = height * (1.0 - _share(v, low, high))
            parts.append(f"{'L' if begun else 'M'}{_text(x)} {_text(y)}")
            alone, begun = not begun, True
    return Spark("".join(parts + [dash] * alone), low, high, last)


def sticks(values: Sequence[float | None], width: float, height: float) -> Spark:
    """What is above 0, as sticks on the floor.

    Parameters
    ----------
    values : sequence of float or None
        What is not finite counts as missing.
    width, height : float
        Of the frame.

    Returns
    -------
    Spark
        The path.

    Examples
    --------
    >>> from tidewolf.service.sparkline import sticks
    >>> sticks([0.0, 2.0, None, 1.0], 40, 10).d
    'M15 10V0M35 10V5'
    """
    known, low, high, last = _span(values)
    if not known:
        return Spark("")
    parts = []
    for start, stop in _segments(len(values), MOST):
        top = max((v for v in map(_finite, values[start:stop]) if v is not None), default=0.0)
        if top > 0.0:
            x = width * (start + stop) / (2 * len(values))
            parts.append(f"M{_text(x)} {_text(height)}V{_text(height * (1.0 - top / high))}")
    return Spark("".join(parts), low, high, last)


def _span(values: Sequence[float | None]) -> tuple[bool, float, float, float | None]:
    """Whether any is known, the least, the greatest, and the last."""
    found = [v for v in map(_finite, values) if v is not None]
    if not found:
        return False, 0.0, 0.0, None
    return True, min(found), max(found), _finite(values[-1])


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _share(value: float, low: float, high: float) -> float:
    """How high a value stands between two others; halves, so that no difference overflows."""
    span = high / 2 - low / 2
    return (value / 2 - low / 2) / span if span > 0.0 else 0.5


def _segments(count: int, most: int) -> Iterator[tuple[int, int]]:
    """`count` places in at most `most` stretches of about the same length."""
    parts = min(count, most)
    for i in range(parts):
        yield i * count // parts, (i + 1) * count // parts


def _text(x: float) -> str:
    return f"{x:.1f}".removesuffix(".0")
