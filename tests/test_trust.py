"""The picture of whom a run trusted: means over parts of the rounds, at most as many areas as
there are hues, on the page, in notebooks and as a file.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from html import escape
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tidewolf as tw
from tidewolf import report
from tidewolf.evaluation.experts import Experts
from tidewolf.methods.base import Expert
from tidewolf.report.styles import HUES
from tidewolf.report.trust import PARTS, trust_of

T = 40


@pytest.fixture(scope="module")
def run() -> tw.Run:
    problem = tw.problems.routing(rounds=T)
    learner = tw.Ensemble(
        problem.K, experts=[tw.experts.Season(10), "one", "two <b>", "three", "four"]
    )
    points = np.repeat(problem.K.center[None, :], T, axis=0)
    advice = dict.fromkeys(("one", "two <b>", "three", "four"), points)
    stream = tw.Stream(problem.stream.losses, problem.stream.constraints, advice=advice)
    return tw.run(learner, stream)


def mixed(weights: np.ndarray, ends: np.ndarray) -> Any:
    """As much of a run as the picture looks at."""
    means = np.average(weights, axis=0, weights=np.diff(ends, prepend=0))
    members = (
        Expert(f"m{i}", "advice", 0.0, float(mean), 0.0, None, None, 1)
        for i, mean in enumerate(means)
    )
    return SimpleNamespace(experts=Experts(members), measures=weights, ends=ends)


@given(seed=st.integers(0, 10**6), count=st.integers(1, 14), updates=st.integers(1, 300))
def test_areas_are_means_and_add_up_to_all(seed, count, updates):
    generator = np.random.default_rng(seed)
    weights = generator.dirichlet(np.full(count, 0.3), size=updates)
    ends = np.cumsum(generator.integers(1, 5, size=updates))
    trust = trust_of(mixed(weights, ends))
    assert trust is not None
    areas, parts = trust.shares.shape
    assert areas == len(trust.styles) == min(count, HUES)
    assert parts == min(PARTS, ends[-1])
    assert len({style.hue for style in trust.styles}) == areas
    assert (trust.edges[0], trust.edges[-1]) == (0, ends[-1])
    np.testing.assert_allclose(trust.shares.sum(axis=0), 1.0)
    assert (trust.shares >= -1e-12).all()
    lengths = np.diff(trust.edges)
    assert (lengths >= 1).all()
    np.testing.assert_allclose((trust.shares * lengths).sum(axis=1) / ends[-1], trust.means)
    # each part against the plain mean over its rounds
    each_round = np.repeat(weights, np.diff(ends, prepend=0), axis=0)
    for k, style in enumerate(trust.styles):
        if style.label.startswith("m"):
            own = each_round[:, int(style.label[1:])]
            p = parts // 2
            plain = own[trust.edges[p] : trust.edges[p + 1]].mean()
            assert trust.shares[k, p] == pytest.approx(plain, abs=1e-9)


def test_the_least_trusted_are_one_area():
    weights = np.tile(np.arange(1.0, 14.0) / 91.0, (20_000, 1))
    trust = trust_of(mixed(weights, np.arange(1, 20_001)))
    assert trust is not None
    assert [style.label for style in trust.styles] == [*(f"m{i}" for i in range(6, 13)), "6 others"]
    assert trust.means[-1] == pytest.approx(21 / 91)
    assert trust.shares.shape == (HUES, PARTS)


def test_there_is_no_picture_without_members(run):
    problem = tw.problems.routing(rounds=5)
    plain = tw.run(tw.LyapunovDescent(problem.K), problem.stream)
    assert trust_of(plain) is None
    for shown in (plain._repr_html_(), _page([plain])):
        assert "trusted" not in shown
    assert len(plain.plot().axes) == 4
    unseen = replace(run, ends=run.ends[:0], measures=run.measures[:0])
    assert trust_of(unseen) is None


def _page(runs: list[tw.Run]) -> str:
    date = datetime(2026, 1, 2, tzinfo=UTC)
    return report.page(runs, name="x", about="y", seed=0, date=date)


def test_pages_and_notebooks_show_whom_it_trusted(run):
    page = _page([run])
    assert page == _page([run])
    assert "Expert weights of Ensemble" in page
    notebook = run._repr_html_()
    assert "Expert weights" in notebook
    for shown in (page, notebook):
        assert "two <b>" not in shown
        for member in run.experts:
            assert f">{escape(member.name)}</th>" in shown
        assert "var(--line-5)" in shown  # the others


def test_a_plot_has_a_panel_of_trust(run, tmp_path):
    panels = [axes for axes in run.plot().axes if axes.get_title()]
    assert panels[-1].get_title().startswith("Expert weights")
    assert len(panels) == 5
    labels = [text.get_text() for text in panels[-1].get_legend().get_texts()]
    assert len(labels) == HUES
    assert labels[0].startswith("2 others: ")
    names = {file.name for file in report.write_figures(tmp_path, [run])}
    assert {"trust-of-Ensemble.png", "trust-of-Ensemble.svg"} <= names
