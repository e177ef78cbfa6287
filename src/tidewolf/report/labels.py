"""Where labels go: beside their points, over no line, no point and no other label.

Each label has candidates around its point, near ones first. The cost of a candidate is how much it
covers of lines, points and labels that are placed already; labels with the fewest free candidates
choose first, then each in turn chooses again until none moves.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tidewolf.core.types import Floats

_TURNS = np.array(sorted(range(24), key=lambda turn: (turn % 6 != 0, turn % 3 != 0, turn)))
_DISTANCES = (4.0, 8.0, 13.0, 20.0)
_ROUNDS = 6
_WIDE, _NARROW = frozenset("MWmw@%"), frozenset("iljtfrI .,:;'|!()[]1-")


class Box(NamedTuple):
    """A rectangle, in pixels, y downwards."""

    left: float
    top: float
    right: float
    bottom: float


class Placed(NamedTuple):
    """Boxes of labels, and whether each is free of everything."""

    boxes: list[Box]
    free: bool


def text_width(text: str, size: float) -> float:
    """About how wide a text is at most, whatever the font."""
    ems = sum(0.98 if c in _WIDE else 0.42 if c in _NARROW else 0.68 for c in text)
    return size * ems


def place(
    points: Sequence[tuple[float, float]],
    sizes: Sequence[tuple[float, float]],
    segments: Floats,
    room: Box,
    *,
    radius: float = 6.0,
    clearance: float = 3.0,
    others: Sequence[tuple[float, float]] = (),
) -> Placed:
    """A box of the given (width, height) for each point.

    `segments` are lines, (count, 4); `clearance` is how far they stay away. `others` are points
    without labels.
    """
    if not points:
        return Placed([], True)
    dots = np.array([*points, *others], dtype=np.float64)
    candidates = [
        _candidates(point, size, radius) for point, size in zip(points, sizes, strict=True)
    ]
    fixed = []
    for own, boxes in enumerate(candidates):
        cost = 8.0 * _crossed(boxes, segments, clearance) + 8.0 * _covered(boxes, dots, own, radius)
        cost += 100.0 * _outside(boxes, room)
        fixed.append(cost + 0.005 * np.arange(len(boxes)))
    chosen = [int(cost.argmin()) for cost in fixed]
    order = sorted(range(len(points)), key=lambda i: int((fixed[i] < 1.0).sum()))
    for _ in range(_ROUNDS):
        before = list(chosen)
        for i in order:
            taken = np.array([candidates[j][chosen[j]] for j in range(len(points)) if j != i])
            overlap = _overlapping(candidates[i], taken) if len(taken) else 0.0
            chosen[i] = int((fixed[i] + 10.0 * overlap).argmin())
        if chosen == before:
            break
    all_boxes = np.array([candidates[i][k] for i, k in enumerate(chosen)])
    free = all(cost[k] < 1.0 for cost, k in zip(fixed, chosen, strict=True)) and not any(
        _overlapping(all_boxes[i : i + 1], np.delete(all_boxes, i, axis=0)).any()
        for i in range(len(chosen))
    )
    return Placed([Box(*box) for box in all_boxes.tolist()], free)


def _candidates(point: tuple[float, float], size: tuple[float, float], radius: float) -> Floats:
    """Boxes that touch a circle around the point, right and left, beneath and above first."""
    (x, y), (width, height) = point, size
    turns = 2.0 * np.pi * _TURNS / len(_TURNS)
    across, down = np.cos(turns), np.sin(turns)
    far = radius + np.array(_DISTANCES)[:, None]
    left = (x + across * far + (across - 1.0) / 2.0 * width).ravel()
    top = (y + down * far + (down - 1.0) / 2.0 * height).ravel()
    return np.stack([left, top, left + width, top + height], axis=1)


def _crossed(boxes: Floats, segments: Floats, clearance: float) -> Floats:
    """How many segments pass through each box, made larger by the clearance."""
    if not len(segments):
        return np.zeros(len(boxes))
    low = boxes[:, None, :2] - clearance
    high = boxes[:, None, 2:] + clearance
    begin = segments[None, :, :2]
    step = segments[None, :, 2:] - begin
    with np.errstate(divide="ignore", invalid="ignore"):
        one, two = (low - begin) / step, (high - begin) / step
    inside = (begin >= low) & (begin <= high)
    enter = np.where(step == 0.0, np.where(inside, -np.inf, np.inf), np.minimum(one, two))
    leave = np.where(step == 0.0, np.where(inside, np.inf, -np.inf), np.maximum(one, two))
    first, last = enter.max(axis=2).clip(0.0), leave.min(axis=2).clip(max=1.0)
    found: Floats = (first <= last).sum(axis=1).astype(np.float64)
    return found


def _covered(boxes: Floats, dots: Floats, own: int, radius: float) -> Floats:
    """How many points each box touches; the label's own may be nearer, but not beneath it."""
    near = np.maximum(boxes[:, None, :2], np.minimum(dots[None], boxes[:, None, 2:]))
    away = np.hypot(*np.moveaxis(near - dots[None], 2, 0))
    least = np.full(len(dots), radius + 2.0)
    least[own] = radius
    found: Floats = (away < least).sum(axis=1).astype(np.float64)
    return found


def _outside(boxes: Floats, room: Box) -> Floats:
    out = (boxes[:, :2] < room[:2]).any(axis=1) | (boxes[:, 2:] > room[2:]).any(axis=1)
    found: Floats = np.asarray(out, dtype=np.float64)
    return found


def _overlapping(boxes: Floats, taken: Floats) -> Floats:
    """How many of the boxes taken each box overlaps."""
    gap = np.array([2.0, 0.0])
    apart = (boxes[:, None, 2:] + gap <= taken[:, :2]) | (taken[:, 2:] + gap <= boxes[:, None, :2])
    found: Floats = (~apart.any(axis=2)).sum(axis=1).astype(np.float64)
    return found
