"""Runs and comparisons are shown by whoever is registered for their class."""

from __future__ import annotations

import numpy as np
import pytest

import tidewolf as tw
from tidewolf.core import registry


@pytest.fixture
def run() -> tw.Run:
    stream = tw.Stream(tw.functions.Linear(np.ones((3, 2))), tw.functions.Capacity(np.ones((3, 2))))
    return tw.run(tw.LyapunovDescent(tw.sets.Simplex(2)), stream)


def test_runs_and_comparisons_have_a_presenter(run: tw.Run) -> None:
    assert registry.presenter_of(run).html(run) == run._repr_html_()
    assert {"Run", "Comparison"} <= set(registry._loaders)


def test_another_presenter_can_take_the_place(run: tw.Run, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = registry.Presenter(lambda shown: shown.rounds, lambda shown: f"<p>{shown.rounds}</p>")
    monkeypatch.setitem(registry._loaders, "Run", lambda: mine)
    assert run.plot() == 3
    assert run._repr_html_() == "<p>3</p>"


def test_what_nobody_shows_is_refused() -> None:
    with pytest.raises(LookupError, match="No presenter is registered for object"):
        registry.presenter_of(object())
