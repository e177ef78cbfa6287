"""Names, colours and tables of pages as plain data, and the Jinja2 templates that render them, with
escaping by default, so that no input becomes markup. Only charts, which this package makes itself,
are marked as safe.

Each run has a hue. If one learner was run at several cautions, each learner has a hue, and its runs
differ in dashes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import cache
from importlib.resources import files
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, NamedTuple

from tidewolf.core import arguments, checkpoint

if TYPE_CHECKING:
    from tidewolf.evaluation.run import Run

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
    """Refuse to begin a page if a package that draws or writes it is not installed."""
    for name in ("jinja2", "matplotlib"):
        arguments.import_extra(name, "A page", "app")


def document(template: str, context: Mapping[str, Any]) -> str:
    about = {"format": PAGE_FORMAT, "versions": checkpoint.writer(), **context}
    style = asset("colors.css") + asset("style.css")
    return render(template, style=style, script=asset("hover.js"), **about)


def render(template: str, **context: Any) -> str:
    found: str = _environment().get_template(f"{template}.html.j2").render(context)
    return found


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
    """A sentence in which what stands between backticks is code."""
    from markupsafe import Markup, escape

    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(text))))


def written(date: datetime) -> str:
    return date.strftime("%Y-%m-%d %H:%M %Z").strip()


def notebook_style() -> str:
    return asset("colors.css").replace(":root", ".tidewolf") + asset("notebook.css")
