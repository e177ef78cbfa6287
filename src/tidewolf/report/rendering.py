"""Render Jinja2 templates, with escaping by default, so that no input becomes markup. Only
drawings, which this package makes itself, are marked as safe.
"""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from importlib.util import find_spec
from typing import Any

from tidewolf.core import checkpoint
from tidewolf.core.errors import MissingExtra

PAGE_FORMAT = 3


def require_extras() -> None:
    """Refuse to begin a page where what draws or writes it is not installed."""
    missing = [name for name in ("jinja2", "matplotlib", "networkx") if find_spec(name) is None]
    if missing:
        raise MissingExtra(
            f"Pages need {' and '.join(missing)}, not installed here; type: pip install "
            '"tidewolf[app]"'
        )


def document(template: str, name: str, context: dict[str, Any]) -> str:
    """A page that needs nothing else."""
    return render(
        template,
        page_title=name,
        style=asset("colors.css") + asset("style.css"),
        script=asset("hover.js"),
        **{"format": PAGE_FORMAT, "versions": checkpoint.writer(), **context},
    )


def render(template: str, **context: Any) -> str:
    """A template of the folder `templates` with this context."""
    found: str = _environment().get_template(f"{template}.html.j2").render(context)
    return found


def asset(name: str) -> str:
    """A style sheet or script that lies beside this file."""
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
    made.filters["data"] = _data
    return made


def _data(value: Any) -> str:
    """Plain data as the text of an attribute, which is escaped like any other."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False)
