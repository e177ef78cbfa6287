"""What the package shows to the outside."""

from __future__ import annotations

import importlib
import pkgutil
import re
from pathlib import Path

import pytest

import tidewolf as tw

README = Path(__file__).parent.parent / "README.md"
PARTS = (
    *("experiments", "experts", "functions", "learners", "networks", "problems", "projection"),
    *("baselines", "sets", "testing"),
)


def test_everything_promised_is_there() -> None:
    for name in tw.__all__:
        assert getattr(tw, name) is not None
    assert sorted(tw.__all__) == tw.__all__
    assert set(tw.__all__) <= set(dir(tw))


@pytest.mark.parametrize("part", PARTS)
def test_parts_export_what_they_say(part: str) -> None:
    module = importlib.import_module(f"tidewolf.{part}")
    assert sorted(module.__all__) == list(module.__all__)
    for name in module.__all__:
        assert getattr(module, name).__doc__, f"tidewolf.{part}.{name} has no docstring"


def test_every_module_opens_with_what_it_is() -> None:
    for info in pkgutil.walk_packages(tw.__path__, "tidewolf."):
        assert importlib.import_module(info.name).__doc__, f"{info.name} has no docstring"


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(AttributeError, match="no attribute 'frobnicate'"):
        tw.frobnicate  # noqa: B018


def test_the_readme_runs() -> None:
    parts = re.findall(r"```python\n(.*?)```", README.read_text(), flags=re.DOTALL)
    assert parts
    names: dict[str, object] = {}
    for part in parts:
        exec(compile(part, "README.md", "exec"), names)
