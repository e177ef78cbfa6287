"""Render Jinja2 templates, with escaping by default, so that no input becomes markup. Only charts,
which this package makes itself, are marked as safe.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from functools import cache
from importlib.resources import files
from importlib.util import find_spec
from typing import Any

from tidewolf.core import checkpoint
from tidewolf.core.errors import MissingExtra

PAGE_FORMAT = 3


def installed(name: str) -> bool:
    """Whether there is such a package."""
    return find_spec(name) is not None


def require_extras() -> None:
    """Refuse to begin a page if a package that draws or writes it is not installed."""
    missing = [name for name in ("jinja2", "matplotlib", "networkx") if not installed(name)]
    if missing:
        raise MissingExtra(
            f"Pages need {' and '.join(missing)}, not installed here; type: pip install "
            '"tidewolf[app]"'
        )


def document(template: str, context: Mapping[str, Any]) -> str:
    """A page that needs nothing else."""
    style, script = asset("colors.css") + asset("style.css"), asset("hover.js")
    about = {"format": PAGE_FORMAT, "versions": checkpoint.writer(), **context}
    return render(template, style=style, script=script, **about)


def render(template: str, **context: Any) -> str:
    """A template of the folder `templates` with this context."""
    found: str = _environment().get_template(f"{template}.html.j2").render(context)
    return found


def asset(name: str) -> str:
    """A style sheet or script beside this file."""
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
    made.filters["data"] = lambda value: json.dumps(value, separators=(",", ":"), allow_nan=False)
    return made


def written(date: datetime) -> str:
    """When a page was written, in words."""
    return date.strftime("%Y-%m-%d %H:%M %Z").strip()


def notebook_style() -> str:
    """The style sheet of what notebooks show."""
    return asset("colors.css").replace(":root", ".tidewolf") + asset("notebook.css")
