"""`python -m benchmarks tables`: its blocks and tables, readers and arithmetic, and the pages.

Tables that need data or minutes are measured in soak, and compared with docs/benchmarks.
"""

import itertools
import math
import re
from pathlib import Path

import numpy as np
import pytest
from benchmarks.pages import ABSENT, PAGES, Skipped, Table
from benchmarks.public_traffic import EVEN, any_best, most_even
from hypothesis import example, given, settings
from hypothesis import strategies as st

import tidewolf as tw
from benchmarks import pages, public_data, public_nyse, public_sdplib

ROOT = Path(__file__).parents[2]
BENCHMARKS = ROOT / "docs" / "benchmarks"
seeds = st.integers(0, 10_000)


# ---------------------------------------------------------------- blocks and tables


@pytest.mark.parametrize("name", PAGES)
def test_the_page_has_every_block_once(name):
    text = (BENCHMARKS / f"{PAGES[name][0]}.md").read_text(encoding="utf-8")
    table = Table.parsed(pages.find(text, name) or "")
    assert len(table.rows) >= 6
    assert all(len(row) == len(table.head) for row in table.rows)
    assert text.count(f"<!-- begin {name}: python -m benchmarks tables {name} -->") == 1


def test_tables_are_compared_cell_by_cell():
    rows = [("a", "1,000.0 / 2e-3", "3"), ("b", "[2, 4]", "")]
    table = Table(("who", "loss", "CPU seconds"), rows)
    assert Table.parsed(str(table)) == table
    slower = table._replace(rows=[("a", "1,005.0 / 2e-3", "99"), ("b", "[2, 4]", "1")])
    for share, count in ((0.01, 0), (0.001, 1)):
        assert len(table.differences(slower, share)) == count
    assert len(table.differences(table._replace(rows=rows[:1]), 0.0)) == 1
    for cell in ("many", "-1,000.0 / 2e-3", "1,000.0 / 2e-3 / 1"):
        other = [("a", cell, "3"), ("b", f"{ABSENT}: file absent", "")]
        assert len(table.differences(table._replace(rows=other), 0.5)) == 1
    assert table.differences(table._replace(head=("who", "gain", "CPU seconds")), 0.0)


# ---------------------------------------------------------------- wealth


def test_a_market_of_two_stocks_by_hand():
    """One doubles and halves in turn, the other stays: half and half gains 9/8 in two days."""
    r = np.array([[2.0, 1.0], [0.5, 1.0], [2.0, 1.0], [0.5, 1.0]])
    even = np.array([0.5, 0.5])
    assert public_nyse.grown(public_nyse.hold(r, even), r) == pytest.approx(1.0)
    constant = public_nyse.constant(r, even)
    assert public_nyse.grown(constant, r) == pytest.approx((9 / 8) ** 2)
    # bought from nothing, then back from 2/3 and 1/3, from 1/3 and 2/3, and again
    np.testing.assert_allclose(public_nyse.turnover(constant, r), [1.0, 1 / 3, 1 / 3, 1 / 3])
    paid = 0.99 * (1 - 0.01 / 3) ** 3
    assert public_nyse.grown(constant, r, 0.01) == pytest.approx((9 / 8) ** 2 * paid)
    held = public_nyse.hold(r, even)
    np.testing.assert_allclose(public_nyse.turnover(held, r)[1:], 0.0, atol=1e-15)


@settings(max_examples=8)
@given(seed=seeds)
def test_strategies_hold_shares_of_the_whole_and_do_not_look_ahead(seed):
    r = np.exp(np.random.default_rng(seed).normal(0.0, 0.1, (12, 4)))
    changed = r.copy()
    changed[7] = changed[7, ::-1]
    for strategy in (
        public_nyse.exponentiated_gradient,
        public_nyse.online_newton,
        public_nyse.passive_aggressive,
    ):
        held = strategy(r)
        assert held.min() >= 0.0
        np.testing.assert_allclose(held.sum(axis=1), 1.0, atol=1e-9)
        np.testing.assert_array_equal(strategy(changed)[:8], held[:8])


# ---------------------------------------------------------------- semidefinite programs


def test_the_theta_function_of_a_pentagon():
    """max <J, Y> with tr Y = 1 and Y_ij = 0 on edges is the square root of 5 (Lovasz 1979)."""
    n, edges = 5, [(i, (i + 1) % 5) for i in range(5)]
    lines = ["6", "1", "5", "1 0 0 0 0 0"]
    lines += [f"0 1 {i + 1} {j + 1} 1" for i in range(n) for j in range(i, n)]
    lines += [f"1 1 {i + 1} {i + 1} 1" for i in range(n)]
    lines += [f"{k + 2} 1 {min(e) + 1} {max(e) + 1} 1" for k, e in enumerate(edges)]
    text = "\n".join(['"a comment', "6 = m", *lines[1:]])
    reached, most, _ = map(float, public_sdplib.solved(public_sdplib.parse(text)))
    assert (reached, most) == pytest.approx((math.sqrt(5), math.sqrt(5)), rel=1e-6)
    for wrong in ("1\n2\n3 3\n1\n", "1\n1\n2\n1\n1 1 1 5 1\n", "nothing\n", "1\n1\n2\n1 2 3\n"):
        with pytest.raises(ValueError, match=r"\w"):
            public_sdplib.parse(wrong)


# ---------------------------------------------------------------- splits


@settings(max_examples=4)
@example(seed=225)
@given(seed=seeds)
def test_the_most_even_of_the_best_splits(seed):
    """Nearly as good as the best splits, and no farther from even.

    With F the fullest link over that of even splits, x minimises F + EVEN |x - even|^2, so for
    every best split z: F(x) <= F(z) + EVEN |z - even|^2, and |x - even| <= |z - even|.
    """
    rng = np.random.default_rng(seed)
    nodes = range(4)
    pairs = list(itertools.permutations(nodes, 2))
    tunnels = tw.networks.Tunnels([(a, b, 1.0, 10.0) for a, b in pairs], pairs, k=3)
    demands = rng.exponential(1.0, (2, len(pairs))) * (rng.random((2, len(pairs))) < 0.8)
    losses, K = tunnels.max_utilization(demands), tunnels.splits
    corner, even = any_best(losses, K, demands), most_even(losses, K, demands)
    size, best = losses.values(K.center), losses.values_at(corner)
    apart = [np.linalg.norm(x - K.center, axis=1) for x in (corner, even)]
    assert (losses.values_at(even) <= best + size * (EVEN * apart[0] ** 2 + 1e-6)).all()
    assert (losses.values_at(even) >= best - 1e-6 * size).all()
    assert (apart[0] - apart[1]).min() >= -1e-6
    assert max(K.infeasibility(x) for x in even) <= 1e-9


# ---------------------------------------------------------------- oracles


def oracle_tables() -> list[Table]:
    """FrankWolfe.jl's oracles with our sets, and the sets that only we have."""
    text = (BENCHMARKS / "public.md").read_text(encoding="utf-8").partition("## Oracles")[2]
    return [Table.parsed(part) for part in text.split("\n\n") if part.startswith("|")]


def test_every_set_is_in_a_table_of_oracles():
    theirs, ours = oracle_tables()
    assert len({row[0] for row in theirs.rows}) == len(theirs.rows) > 25
    cells = [row[2] for row in theirs.rows] + [row[0] for row in ours.rows]
    listed = {name for cell in cells for name in re.findall(r"\b([A-Z][A-Za-z0-9]+)\b", cell)}
    sets = {kind.__name__ for kind in tw.sets.every()}
    assert sets - listed <= {"L1Ball", "L2Ball"}  # LpBall's row has them in words
    named = {re.split(r"\W", code)[0] for cell in cells for code in re.findall(r"`(.+?)`", cell)}
    assert named <= sets


# ---------------------------------------------------------------- data


def test_what_is_absent_is_skipped_with_its_reason(tmp_path, monkeypatch):
    monkeypatch.setenv("TIDEWOLF_DATA", str(tmp_path))
    for subject, file in (("nyse", "nyse_o.csv"), ("traffic", "meta_pod_a.npz")):
        with pytest.raises(Skipped, match=rf"recorded stream {file} is not in .*TIDEWOLF_DATA"):
            pages.measured(subject)
    monkeypatch.setattr(public_sdplib, "GENERATED", (6,))
    *cuts, random = pages.measured("sdplib").rows
    assert all(row[3].startswith(ABSENT) for row in cuts)
    assert random[3] == random[4]
    assert {public_data.state(source) for source in public_data.SOURCES} == {"absent"}
    assert public_data.main([]) == 0
    (tmp_path / "nyse_o.csv").write_text("a,b\n1.0,2.0\n")
    assert public_data.main([]) == 1
    assert {source.subject for source in public_data.SOURCES} <= set(PAGES)


@pytest.mark.soak
@pytest.mark.parametrize("name", [name for name in PAGES if name != "rounds"])
def test_the_page_is_what_is_measured(name):
    try:
        table = pages.measured(name)
    except Skipped as why:
        pytest.skip(str(why))
    text = (BENCHMARKS / f"{PAGES[name][0]}.md").read_text(encoding="utf-8")
    assert Table.parsed(pages.find(text, name) or "").differences(table) == []
