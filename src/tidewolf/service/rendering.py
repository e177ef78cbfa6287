"""Templates in, pages out: Jinja2 with escaping by default, in the colours of the reports.

A page is one answer that asks for nothing else: no script, no picture, one style sheet inside. The
policy that allows just that, by the sheet's digest, is `content_policy()`; styles in attributes are
refused by it, so there are none.
"""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from importlib.resources import files
from typing import Any

import tidewolf


def render(template: str, **context: Any) -> str:
    """A page from a template of the folder `templates`.

    Parameters
    ----------
    template : str
        Its name, without endings.
    **context
        Plain data.

    Returns
    -------
    str
        HTML that can be sent as UTF-8, whatever was given.
    """
    made: str = (
        _environment()
        .get_template(f"{template}.html.j2")
        .render(style=style(), version=tidewolf.__version__, **context)
    )
    return made.encode("utf-8", "replace").decode("utf-8")


@cache
def content_policy() -> str:
    """What the header `Content-Security-Policy` of these pages says.

    Returns
    -------
    str
        Nothing is loaded or run but the one style sheet.

    Examples
    --------
    >>> from tidewolf.service.rendering import content_policy
    >>> content_policy().partition(";")[0]
    "default-src 'none'"
    """
    digest = base64.b64encode(hashlib.sha256(style().encode()).digest()).decode()
    return (
        f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; base-uri 'none'; "
        "form-action 'none'; frame-ancestors 'none'"
    )


@cache
def style() -> str:
    """The text of the style sheet, line breaks at both ends included, as its digest counts them."""
    root = files("tidewolf")
    colors = root.joinpath("report", "colors.css").read_text(encoding="utf-8")
    rules = root.joinpath("service", "templates", "style.css").read_text(encoding="utf-8")
    return f"\n{colors}{rules}"


@cache
def _environment() -> Any:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    return Environment(
        loader=PackageLoader("tidewolf", "service/templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
