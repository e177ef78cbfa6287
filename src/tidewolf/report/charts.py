"""Charts: lines and areas over rounds, heat maps, frontiers, networks, each drawn by one function
on matplotlib axes, for pages (inline SVG) and for pictures (PNG, SVG, notebooks).

A page draws with stand-in colours that become CSS: the ink is `currentColor`, line i is
`var(--line-i)`, so light, dark and print are the page's business. No pyplot, no global state, and
the same bytes for the same data. What a chart draws is made of paths and texts alone: markers and
clips would need names, which several charts of a page cannot share.

Names, colours and tables of pages as plain data, and the Jinja2 templates that render them, with
escaping by default, so that no input becomes markup. Only charts, which this package makes itself,
are marked as safe.

Each run has a hue. If one learner was run at several cautions, each learner has a hue, and its runs
differ in dashes.
"""

import io
import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from importlib.util import find_spec
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from tidewolf.core import arguments, batch, checkpoint
from tidewolf.core.types import Floats, Int64s
from tidewolf.evaluation.formatting import number, tick
from tidewolf.evaluation.run import Run
from tidewolf.evaluation.tracking import time_texts

PAGE_FORMAT = 4
# How many hues the page defines; further ones begin again.
HUES = 8
DASHES = ((), (6, 3), (2, 2), (8, 3, 2, 3))


class RunStyle(NamedTuple):
    """The name and the colour of a line, or of a line of a legend: a hue of a family of colours of
    the style sheet.
    """

    label: str = ""
    hue: int = 0
    dashes: tuple[int, ...] = ()
    strength: float = 1.0
    family: str = "line"
    value: str = ""


def run_styles(runs: Sequence[Run]) -> list[RunStyle]:
    moved, found = any(_moved(run, runs) for run in runs), list[RunStyle]()
    kinds: list[Any] = [type(run.learner) if moved else i for i, run in enumerate(runs)]
    hues = list(dict.fromkeys(kinds))
    for i, label in enumerate(learner_labels(runs)):
        hue, before = hues.index(kinds[i]), kinds[:i].count(kinds[i])
        found.append(RunStyle(label, hue % HUES, DASHES[(hue + before) % len(DASHES)]))
    return found


def learner_labels(runs: Sequence[Run]) -> list[str]:
    """The learners' names, with their caution if it moves, numbered if a name comes twice."""
    names = [
        type(run.learner).__name__
        + (f", caution {run.learner.fields()['caution']:g}" if _moved(run, runs) else "")
        for run in runs
    ]
    return [
        f"{name} {names[: i + 1].count(name)}" if names.count(name) > 1 else name
        for i, name in enumerate(names)
    ]


def _moved(run: Run, runs: Sequence[Run]) -> bool:
    alike = [other.learner for other in runs if type(other.learner) is type(run.learner)]
    return len({learner.fields().get("caution") for learner in alike}) > 1


_TITLES = {
    "geant": "GEANT",
    "pairs": "GEANT, every pair",
    "sdp": "SDP",
    "uunet": "UUNET",
    "zoo": "Topology Zoo",
}


def title_of(name: str) -> str:
    return _TITLES.get(name, name[:1].upper() + name[1:])


class Cell(NamedTuple):
    text: str
    lines: tuple[str, ...] = ()
    style: RunStyle | None = None
    # An interval of the whole, in shares of it, and its hue.
    bar: tuple[float, float, int] | None = None


class Rows(NamedTuple):
    rows: list[list[Cell]]
    head: Cell | None = None


class Table(NamedTuple):
    # Read out if it cannot be seen.
    name: str
    titles: tuple[str, ...]
    groups: list[Rows]
    stacked: bool = False
    kind: str = ""


def table(
    name: str,
    titles: Sequence[str],
    rows: Iterable[Sequence[Cell | str]],
    *,
    stacked: bool = False,
    kind: str = "",
) -> Table:
    return Table(name, tuple(titles), [Rows(list(map(cells, rows)))], stacked, kind)


def cells(row: Iterable[Cell | str]) -> list[Cell]:
    return [each if isinstance(each, Cell) else Cell(each) for each in row]


# --- templates -----------------------------------------------------------------------------------


def installed(name: str) -> bool:
    return find_spec(name) is not None


def require_extras() -> None:
    for name in ("jinja2", "matplotlib"):
        arguments.import_extra(name, "A page", "app")


def document(template: str, context: Mapping[str, Any]) -> str:
    about = {"format": PAGE_FORMAT, "versions": checkpoint.writer(), **context}
    style = asset("colors.css") + asset("style.css")
    return render(template, style=style, script=asset("hover.js"), **about)


def render(template: str, **context: Any) -> str:
    return str(_environment().get_template(f"{template}.html.j2").render(context))


def asset(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


@cache
def _environment() -> Any:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    made = Environment(
        loader=PackageLoader("tidewolf.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["prose"] = _prose
    made.filters["data"] = lambda value: json.dumps(value, separators=(",", ":"), allow_nan=False)
    return made


def _prose(text: str) -> Any:
    from markupsafe import Markup, escape

    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(text))))


def written(date: datetime) -> str:
    return date.strftime("%Y-%m-%d %H:%M %Z").strip()


def notebook_style() -> str:
    return asset("colors.css").replace(":root", ".tidewolf") + asset("notebook.css")


# --- charts ---------------------------------------------------------------------------------------

_POINTS, _TOOLTIP_POINTS = 600, 200  # of a line, and those that have a tooltip
_FONT = "DejaVu Sans"
_SETTINGS = {
    "svg.fonttype": "none",
    "svg.hashsalt": "tidewolf",
    "font.family": _FONT,
    "font.size": 13,
    "path.simplify": False,
}
# A bound is drawn if it is at most this share of the lines' span beyond them.
_FAR = 0.6
_HEAD, _LINE = 30, 18
# How many strengths a heat map has, and how many colours of links there are up to a full one.
LEVELS = 10


class Palette(NamedTuple):
    ink: str
    paper: str
    negative: str
    line: Sequence[str]
    # Of links, by how full they are; the last one of those that are overfull.
    use: Sequence[str]


PAGE = Palette(
    "#010203",
    "#040700",
    "#040800",
    [f"#0405{hue:02x}" for hue in range(HUES)],
    [f"#0406{level:02x}" for level in range(LEVELS + 1)],
)
_LIGHT = asset("colors.css").split("@media")[0]
PLAIN = Palette(
    "#1a2230",
    "#ffffff",
    "#6b7480",
    *(re.findall(rf"--{name}-\d+: (#\w+)", _LIGHT) for name in ("line", "use")),
)


class Chart(NamedTuple):
    name: str
    title: str
    about: str
    # Draws on axes; returns the data of the tooltip.
    draw: Callable[[Any, Palette], dict[str, Any]]
    legend: Sequence[RunStyle] = ()
    table: Table | None = None
    # In CSS pixels; about the width of a phone, so text keeps its size there.
    size: tuple[float, float] = (400, 270)
    # Pixels to the left, beneath, to the right of and above the axes.
    edges: tuple[float, float, float, float] = (52, 49, 16, 8)
    wide: bool = False


def figure(chart: Chart, *, tables: bool = True) -> dict[str, Any]:
    """A chart as plain data for the templates: an <svg> element and the data of its tooltip."""
    import matplotlib
    from matplotlib.figure import Figure

    (wide, high), (left, bottom, right, top) = chart.size, chart.edges
    with matplotlib.rc_context(_SETTINGS):
        drawn = Figure(figsize=(wide / 72, high / 72), dpi=72, facecolor="none")
        box = (left / wide, bottom / high, 1 - (left + right) / wide, 1 - (bottom + top) / high)
        tooltip = chart.draw(drawn.add_axes(box, facecolor="none"), PAGE)
        document = saved(drawn, "svg").decode()
    ends = ", ".join(f"{entry.label} {entry.value}".strip() for entry in chart.legend)
    return {
        "title": chart.title,
        "about": chart.about,
        "description": f"{chart.title}. {chart.about}: {ends}",  # read out if it cannot be seen
        "wide": chart.wide,
        "legend": [{"style": style, "value": style.value} for style in chart.legend],
        "table": chart.table if tables else None,
        "svg": inline(document),
        "size": (round(wide), round(high)),
        "tooltip": tooltip,
        "row": not any(entry.value for entry in chart.legend) or chart.wide,
    }


def inline(document: str) -> str:
    """The inside of the <svg> of a document without what several charts of a page cannot share:
    names, clips (nothing leaves the axes), style sheets.
    """
    inside = re.split(r"<svg[^>]*>", document)[1]
    inside = re.sub(
        r'<(metadata|defs)>.*?</\1>| (id|clip-path)="[^"]*"', "", inside, flags=re.DOTALL
    )
    inside = re.sub(
        r' (?:d|x|y|transform)="[^"]*"',
        lambda part: re.sub(r"\d+\.\d{2,}", lambda n: f"{float(n[0]):.1f}", part[0]),
        inside,
    )
    for old, new in {
        f"'{_FONT}'": "inherit",
        PAGE.ink: "currentColor",
        PAGE.paper: "var(--card)",
        PAGE.negative: "var(--neg)",
        **{color: f"var(--line-{hue})" for hue, color in enumerate(PAGE.line)},
        **{color: f"var(--use-{level})" for level, color in enumerate(PAGE.use)},
    }.items():
        inside = inside.replace(old, new)
    return inside.strip().removesuffix("</svg>")


def picture(charts: Sequence[Chart]) -> Any:
    """A matplotlib Figure of charts, three in a row at most, with titles and legends; a notebook
    shows it as a PNG.
    """
    matplotlib = arguments.import_extra("matplotlib", "A picture", "app")
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    class Picture(Figure):
        def _repr_png_(self) -> bytes:
            return saved(self, "png")

    columns = 2 if len(charts) == 4 else min(3, len(charts))
    wide, rows = max(chart.size[0] for chart in charts), math.ceil(len(charts) / columns)
    high = max(chart.size[1] + _HEAD + _LINE * (len(chart.legend) + 1) for chart in charts)
    with matplotlib.rc_context(_SETTINGS):
        made = Picture(figsize=(columns * wide / 72, rows * high / 72), dpi=72)
        for k, chart in enumerate(charts):
            row, column = divmod(k, columns)
            left, bottom, right, top = chart.edges
            width, height = chart.size[0] - left - right, chart.size[1] - bottom - top
            low = (rows - row) * high - _HEAD - top - height
            corner = ((column * wide + left) / (columns * wide), low / (rows * high))
            axes = made.add_axes((*corner, width / (columns * wide), height / (rows * high)))
            chart.draw(axes, PLAIN)
            axes.set_title(chart.title, fontsize="medium")
            lines = [Line2D([], [], **_look(entry, PLAIN)) for entry in chart.legend]
            named = [": ".join(filter(None, (each.label, each.value))) for each in chart.legend]
            if lines:
                below = {"loc": "upper left", "bbox_to_anchor": (0.0, -bottom / height)}
                axes.legend(lines, named, frameon=False, fontsize="small", **below)
    return made


def saved(figure: Any, ending: str) -> bytes:
    import matplotlib

    buffer = io.BytesIO()
    metadata = {"Software": None} if ending == "png" else {"Date": None, "Creator": None}
    with matplotlib.rc_context(_SETTINGS):
        figure.savefig(buffer, format=ending, dpi=144 if ending == "png" else 72, metadata=metadata)
    return buffer.getvalue()


# --- labels of rounds: the dates of a stream if it has them, else their numbers, from 1 -----------

# Seconds before that, in 1973, are no dates but seconds of something else.
_FIRST_DATE = 1e8
_LAST_DATE = datetime(9999, 1, 1, tzinfo=UTC).timestamp()
_DATES = ["%Y", "%b", "%d %b", "%H:%M", "%H:%M", "%H:%M:%S"]


class Clock(NamedTuple):
    rounds: int
    times: Floats | None = None
    texts: Sequence[str] = ()

    def when(self, index: int) -> str:
        """The round of this index, from 0: its time with its number, or its number alone."""
        number = f"round {index + 1:,}"
        return number if self.times is None else f"{self.moment(index)} ({number})"

    def moment(self, index: int) -> str:
        return self.texts[index] if self.texts else f"{index + 1:,}"

    def span(self, start: int, stop: int) -> str:
        first, last = self.moment(start), self.moment(stop - 1)
        return first if first == last else f"{first} \u2013 {last}"

    def named_span(self, start: int, stop: int) -> str:
        """The same with the word round where rounds have no times."""
        rounds = f"round{'s' * (stop - start > 1)} " * (self.times is None)
        return f"{rounds}{self.span(start, stop)}"

    def ticks(self, most: int = 5) -> tuple[list[float], list[str], str]:
        """Where about so many ticks of an axis are, in rounds, what they are called, and the name
        of the axis. With dates they stand at the rounds in which a round date comes.
        """
        from matplotlib.ticker import MaxNLocator

        times = self.times
        if times is None or times[-1] - times[0] < 2.0:
            whole = MaxNLocator(most, steps=[1, 2, 2.5, 5, 10], integer=True)
            places = [p for p in whole.tick_values(1, self.rounds) if 1 <= p <= self.rounds]
            return places, [tick(round(place, 12)) for place in places], "round"
        from matplotlib.dates import AutoDateLocator, ConciseDateFormatter, num2date

        first, last = _date(times[0]), _date(times[-1])
        locator = AutoDateLocator(minticks=3, maxticks=most + 1, tz=UTC)
        found = [d for d in locator.tick_values(first, last) if first <= num2date(d, UTC) <= last]
        # the second list is of ticks at the start of a year, month, day
        labels = ConciseDateFormatter(
            locator, tz=UTC, formats=_DATES, zero_formats=["", *_DATES[:5]], show_offset=False
        ).format_ticks(found)
        seconds = [num2date(each, UTC).timestamp() for each in found]
        places = np.interp(seconds, times, np.arange(1, len(times) + 1)).tolist()
        years = "\u2013".join(dict.fromkeys(f"{end:%Y}" for end in (first, last)))
        return places, labels, f"time, {years}"


def clock_of(stream: batch.Stream, rounds: int) -> Clock:
    """The clock of the first rounds of a stream: its dates where every round has one and none goes
    back.
    """
    seconds = np.asarray([] if stream.time is None else stream.time, dtype=np.float64)[:rounds]
    dated = ((seconds >= _FIRST_DATE) & (seconds < _LAST_DATE)).all()  # and no NaN
    if not len(seconds) or not dated or (np.diff(seconds) < 0.0).any():
        return Clock(rounds)
    texts = time_texts(seconds.astype("datetime64[s]"))
    return Clock(rounds, seconds, [text.replace("T", " ") for text in texts])


def _date(seconds: Any) -> datetime:
    return datetime.fromtimestamp(float(seconds), UTC)


# --- axes -----------------------------------------------------------------------------------------


def _look(style: RunStyle, palette: Palette) -> dict[str, Any]:
    color = (palette.line if style.family == "line" else palette.use)[style.hue]
    dashes = (0, [d / 1.9 for d in style.dashes]) if style.dashes else "solid"
    return {"color": color, "alpha": style.strength, "linewidth": 1.9, "linestyle": dashes}


def dress(axes: Any, palette: Palette, clock: Clock | None = None) -> None:
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    low, high = axes.get_ylim()
    if low < 0 < high:
        axes.axhline(0, color=palette.ink, alpha=0.45, linewidth=0.8, zorder=1)
    axes.spines[:].set_visible(False)
    axes.grid(axis="y", color=palette.ink, alpha=0.13, linewidth=0.8)
    axes.tick_params(length=0, labelcolor=palette.ink, pad=5)
    axes.yaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 2.5, 5, 10]))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda x, _: tick(round(x, 12))))
    if clock is not None:
        _time_axis(axes, palette, clock)


def _time_axis(axes: Any, palette: Palette, clock: Clock) -> None:
    *ticks, title = clock.ticks()
    axes.set_xticks(*ticks)
    axes.tick_params(axis="x", length=0, pad=9, labelcolor=palette.ink)
    axes.set_xlabel(title, color=palette.ink, labelpad=3)


def _frame(axes: Any) -> dict[str, Any]:
    box, high = axes.get_window_extent(), axes.figure.bbox.height
    ends = np.round((box.x0, box.x1, high - box.y0, high - box.y1), 1).tolist()
    return {"x": [*axes.get_xlim(), *ends[:2]], "y": [*axes.get_ylim(), *ends[2:]]}


def pixels(axes: Any, points: Any) -> Floats:
    """Where points given in numbers of the axes are, in pixels, y downwards."""
    found: Floats = axes.transData.transform(np.asarray(points, dtype=np.float64).reshape(-1, 2))
    return np.stack([found[:, 0], axes.figure.bbox.height - found[:, 1]], axis=1).round(1)


def _rounded(lines: Iterable[Floats], digits: int = 5) -> list[list[float]]:
    return [[float(f"{value:.{digits}g}") for value in line] for line in lines]


def _shown(rounds: int, most: int) -> Int64s:
    """So many rounds at most, evenly spread, with both ends."""
    return np.unique(np.linspace(0, rounds - 1, min(rounds, most)).round().astype(np.int64))


# --- lines and areas over rounds ------------------------------------------------------------------


class PlotLine(NamedTuple):
    values: Floats
    bracket: tuple[float, float] | None = None
    bound: float | None = None
    style: RunStyle = RunStyle()


def draw_lines(
    axes: Any, palette: Palette, lines: Sequence[PlotLine], clock: Clock, *, from_zero: bool = False
) -> dict[str, Any]:
    for i, line in enumerate(lines):
        rounds, look = len(line.values), _look(line.style, palette)
        shown = _shown(rounds, _POINTS)
        # dashes over what is solid: lines that coincide are both seen
        axes.plot(shown + 1, line.values[shown], **look, zorder=3 + i)
        if line.bracket is not None:
            beside = rounds * (1.015 + 0.015 * i)
            thick = {"linewidth": 3.5, "solid_capstyle": "butt"}
            axes.plot([beside, beside], line.bracket, color=look["color"], **thick)
        if line.bound is not None and in_reach(lines, line.bound):
            look |= {"linewidth": 1.3, "linestyle": (0, (1, 2.5)), "zorder": 2}
            axes.axhline(line.bound, **look)
    if from_zero:
        above = any(line.values.any() for line in lines) and axes.get_ylim()[1] > 0.0
        axes.set_ylim(bottom=0.0, top=None if above else 1.0)
    axes.margins(x=0.015)
    dress(axes, palette, clock)
    at = _shown(len(lines[0].values), _TOOLTIP_POINTS)
    hues, values = [line.style.hue for line in lines], [line.values[at] for line in lines]
    return _over_rounds(axes, at, clock, hues) | {"lines": _rounded(values)}


def draw_areas(
    axes: Any, palette: Palette, edges: Int64s, shares: Floats, hues: Sequence[int], clock: Clock
) -> dict[str, Any]:
    """Areas on top of each other that add up to 100, (areas, parts), level between the edges."""
    tops = np.cumsum(shares, axis=0)
    for top, share, hue in zip(tops, shares, hues, strict=True):
        look = {"facecolor": palette.line[hue], "alpha": 0.85, "linewidth": 0}
        axes.stairs(top, edges, baseline=top - share, fill=True, **look)
    axes.set_ylim(0.0, 100.0)
    axes.set_xlim(0.0, float(edges[-1]))
    dress(axes, palette, clock)
    values = {"lines": _rounded(shares[::-1]), "tops": _rounded(tops[::-1])}
    return _over_rounds(axes, edges[1:] - 1, clock, list(hues)[::-1]) | values


def _over_rounds(axes: Any, at: Int64s, clock: Clock, hues: list[int]) -> dict[str, Any]:
    when = {} if clock.times is None else {"when": [clock.moment(i) for i in at.tolist()]}
    return {**_frame(axes), "at": (at + 1).tolist(), "hues": hues, **when}


def in_reach(lines: Sequence[PlotLine], bound: float) -> bool:
    low = min(0.0, *(line.values.min() for line in lines))
    high = max(0.0, *(line.values.max() for line in lines))
    return bool(low <= bound <= high + _FAR * (high - low))


# --- heat maps ------------------------------------------------------------------------------------


class ShownRun(NamedTuple):
    """A run whose points were kept: entries of its decision over parts of the rounds."""

    style: RunStyle
    run: Run
    entries: Sequence[str]
    # (entries, parts).
    values: Floats
    # Parts lie between them, in rounds done.
    edges: Int64s


def draw_heat(
    axes: Any, palette: Palette, shown: ShownRun, scale: float, clock: Clock
) -> dict[str, Any]:
    """A row for each entry. Size is the strength of the colour, in LEVELS steps up to `scale`; what
    is negative has a colour of its own.
    """
    rows, parts = shown.values.shape
    levels = np.rint(LEVELS * shown.values / scale)
    high = axes.get_window_extent().height / rows * 72.0 / axes.figure.dpi
    for level in np.unique(levels[levels != 0.0]):
        marks = np.zeros((rows, parts + 2))
        marks[:, 1:-1] = levels == level
        row, at = np.nonzero(np.diff(marks, axis=1))  # begins and ends, in turns
        both = (ends.reshape(-1, 2) for ends in (shown.edges[at] + 0.0, row + 0.5))
        across, down = (np.pad(ends, ((0, 0), (0, 1)), constant_values=np.nan) for ends in both)
        color = palette.line[shown.style.hue] if level > 0.0 else palette.negative
        look = {"color": color, "linewidth": 0.94 * high, "solid_capstyle": "butt"}
        axes.plot(across.ravel(), down.ravel(), alpha=min(1.0, abs(level) / LEVELS), **look)
    axes.set_xlim(float(shown.edges[0]), float(shown.edges[-1]))
    axes.set_ylim(rows, 0)
    axes.spines[:].set_visible(False)
    axes.set_yticks([])  # ticks with these names would take most of the time of the chart
    left = -3.5 * axes.figure.dpi / 72.0 / axes.get_window_extent().width
    look = {"fontsize": 11, "color": palette.ink, "ha": "right", "va": "center_baseline"}
    for i, name in enumerate(map(shortened, shown.entries)):
        axes.text(left, i + 0.5, name, transform=axes.get_yaxis_transform(), **look)
    _time_axis(axes, palette, clock)
    return {
        **_frame(axes),
        "names": list(shown.entries),
        "cells": _rounded(shown.values, 3),
        "when": [clock.named_span(*ends) for ends in pairwise(shown.edges.tolist())],
    }


def shortened(name: str, most: int = 26) -> str:
    return name if len(name) <= most else f"{name[: most - 1]}\u2026"


# --- frontiers ------------------------------------------------------------------------------------


class Curve(NamedTuple):
    label: str
    violations: Sequence[float]
    regrets: Sequence[float]
    # The setting of each point, in words, if it has one: "caution 10".
    notes: Sequence[str] = ()
    hue: int = 0
    default: int | None = None

    def note(self, i: int) -> str:
        note = self.notes[i] if self.notes else ""
        return f"{note} (default)".strip() if i == self.default else note


def draw_frontiers(
    axes: Any, palette: Palette, curves: Sequence[Curve], upward: str
) -> dict[str, Any]:
    """Regret over violation, the knob written at every point, the default ringed.

    The axis of violation begins at 0: with v0 the least violation above 0, v is drawn at
    asinh(v/v0), which is a logarithm if v is large and no break anywhere.
    """
    every = [violation for curve in curves for violation in curve.violations]
    least = min((violation for violation in every if violation > 0.0), default=1.0)
    what, labels = upward.removeprefix("mean ").removesuffix(" per round"), list[Any]()
    dots = list[tuple[Floats, str, str]]()
    for i, curve in enumerate(curves):
        color, last = palette.line[curve.hue], len(curve.regrets) - 1
        points = np.column_stack([np.arcsinh(np.array(curve.violations) / least), curve.regrets])
        axes.plot(*points.T, color=color, linewidth=1.2, alpha=0.6, zorder=3 + i)
        for k, place in enumerate(points):
            usual, note = k == curve.default, curve.note(k)
            rings = ((13, color), (9.5, palette.paper)) if usual else ()
            for width, shade in (*rings, (6, color)):
                draw_dot(axes, place, width, shade, 3 + i)
            if curve.notes:
                text = note if usual or not k else note.split()[-1]
                weight = "bold" if usual else "normal"
                label = {"xy": place, "text": text, "color": color, "weight": weight}
                labels.append((not usual, k not in (0, last), label))
            ends = f"{number(curve.regrets[k])}, violation {number(curve.violations[k])}"
            named = ", ".join(filter(None, (curve.label, note)))
            dots.append((place, f"line-{curve.hue}", f"{named}: {what} {ends}"))
    axes.margins(x=0.06, y=0.12)
    dress(axes, palette)
    right = axes.get_xlim()[1]
    axes.set_xlim(-0.03 * right, right)
    ticks = [0.0, *round_numbers(least, max(every, default=1.0))]
    axes.set_xticks([math.asinh(tick / least) for tick in ticks], [f"{tick:g}" for tick in ticks])
    axes.set_xlabel("mean violation per round", color=palette.ink, labelpad=3)
    axes.set_ylabel(upward, color=palette.ink, labelpad=4)
    labels.sort(key=lambda label: label[:2])  # the defaults and the ends first
    write_labels(axes, [label for *_, label in labels], [place for place, *_ in dots])
    return dots_at(axes, dots)


def dots_at(axes: Any, dots: Sequence[tuple[Floats, str, str]]) -> dict[str, Any]:
    places = pixels(axes, [place for place, *_ in dots]).tolist()
    return {"dots": [[*xy, *rest] for xy, (_, *rest) in zip(places, dots, strict=True)]}


def draw_dot(axes: Any, place: Floats, width: float, color: str, zorder: float) -> None:
    """A dot: the round ends of a very short line. It does not move the limits of the axes."""
    from matplotlib.lines import Line2D

    x, y = place
    look: Any = {"linewidth": width, "solid_capstyle": "round", "zorder": zorder}
    axes.add_artist(Line2D([x, x + 1e-5 * max(1.0, abs(x))], [y, y], color=color, **look))


def round_numbers(low: float, high: float) -> list[float]:
    """At most six round numbers from `low` to `high`, about evenly spread over their logarithms;
    the nearest power of ten if there is none.
    """
    from matplotlib.ticker import LogLocator

    digits = (1.0, 2.0, 5.0) if high < 100.0 * low else (1.0,)
    # nearly a decade or less would have ticks of a linear axis
    ticks = LogLocator(subs=digits, numticks=6).tick_values(low / 10.0, 10.0 * max(low, high))
    inside = [float(f"{tick:.1g}") for tick in ticks if 0.99 * low <= tick <= 1.01 * high]
    return inside or [10.0 ** round(math.log10(low))]


# --- labels ---------------------------------------------------------------------------------------


def write_labels(axes: Any, labels: Sequence[dict[str, Any]], dots: Any, lines: Any = ()) -> int:
    """Write labels, as matplotlib's `annotate` takes them, beside their points, over no dot and no
    other label, each in the nearest free place that covers the fewest of the points of `lines`;
    those that have none are left out. Returns how many were written.
    """
    unit = axes.figure.dpi / 72.0
    spots = pixels(axes, [label["xy"] for label in labels]) / unit
    around, size = pixels(axes, dots) / unit, np.array(axes.figure.bbox.size) / unit
    taken, lines = np.hstack([around - 5.0, around + 5.0]), pixels(axes, lines) / unit
    turns = np.pi / 8.0 * np.array([0, 8, 4, 12, 2, 6, 10, 14, *range(1, 16, 2)])
    ways = np.stack([np.cos(turns), np.sin(turns)], axis=1)
    offsets = np.concatenate([ways * far for far in (10.0, 15.0, 22.0, 30.0)])
    for label, spot in zip(labels, spots, strict=True):
        half = np.array([text_width(label["text"]) / 2.0 + 1.0, 7.5])
        middles = spot + offsets + np.tile(ways, (4, 1)) * half
        low, high = middles - half, middles + half
        apart = (high[:, None] <= taken[:, :2]) | (taken[:, 2:] <= low[:, None])
        inside = ((low >= 0.0) & (high <= size)).all(axis=1)
        free = np.flatnonzero(inside & apart.any(axis=2).all(axis=1))
        if not len(free):
            continue
        under = (lines > low[free][:, None] - 2.0) & (lines < high[free][:, None] + 2.0)
        best = free[under.all(axis=2).sum(axis=1).argmin()]
        taken = np.vstack([taken, [*low[best], *high[best]]])
        x, y = middles[best] - spot
        look = {"ha": "center", "va": "center", "fontsize": 12}
        offset = {"xytext": (x, -y), "textcoords": "offset points", "zorder": 20}
        axes.annotate(**label, **look, **offset)
    return len(taken) - len(dots)


def text_width(text: str) -> float:
    """About how wide a text of 12 pixels is at most, whatever the font."""
    wide, narrow = frozenset("MWmw@%"), frozenset("iljtfrI .,:;'|!()[]1-")
    return 12.0 * sum(0.98 if c in wide else 0.42 if c in narrow else 0.68 for c in text)
