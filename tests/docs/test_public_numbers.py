"""`python -m benchmarks`: blocks and tables, readers and arithmetic, a method of one's own, pages.

Tables that need data or minutes are measured in soak, and compared with docs/benchmarks.
"""

import json
import math
import re
import time
from pathlib import Path

import numpy as np
import pytest
from benchmarks.pages import ABSENT, PAGES, SUITES, Skipped, Table
from benchmarks.registry import METHODS, TASKS, Given

import tidewolf as tw
from benchmarks import methods, pages, public_data, public_sdplib, registry, results, suite, tasks
from tidewolf.core.errors import InvalidInput

registry.load()
ROOT = Path(__file__).parents[2]
BENCHMARKS = ROOT / "docs" / "benchmarks"


# ---------------------------------------------------------------- blocks and tables


@pytest.mark.parametrize("name", PAGES)
def test_the_page_has_every_block_once(name):
    text = (BENCHMARKS / f"{PAGES[name][0]}.md").read_text(encoding="utf-8")
    table = Table.parsed(pages.find(text, name) or "")
    assert len(table.rows) >= 6
    assert all(len(row) == len(table.head) for row in table.rows)
    assert text.count(f"<!-- begin {name}: python -m benchmarks table {name} -->") == 1


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
    stream = tw.Stream(tw.functions.LogWealth(r))
    market = tw.problems.Problem("market", tw.sets.Simplex(2), stream, "Two stocks.")
    even = np.full((4, 2), 0.5)
    found = tasks.wealth(market, even)
    assert found["wealth"] == pytest.approx((9 / 8) ** 2)
    # bought from nothing, then back from 2/3 and 1/3, from 1/3 and 2/3, and again
    np.testing.assert_allclose(tasks.turnover(even, r), [1.0, 1 / 3, 1 / 3, 1 / 3])
    paid = (1 - tasks.COST) * (1 - tasks.COST / 3) ** 3
    assert found["after costs"] == pytest.approx((9 / 8) ** 2 * paid)
    assert found["traded"] == pytest.approx(1 / 3)


# ---------------------------------------------------------------- tasks and methods


@pytest.mark.parametrize(
    "name", ["tunnels", "failures", "charging", "maxcut", "flow 8", "trees 10"]
)
def test_a_generated_task_has_a_fixed_point_that_satisfies_it_and_seeds_change_it(name):
    first, again, other = (TASKS[name].build(rounds=30, seed=seed) for seed in (0, 0, 1))
    one, same, else_ = (p.stream.losses.values(p.K.center) for p in (first, again, other))
    np.testing.assert_array_equal(one, same)
    assert (one != else_).any()
    assert tw.best_in_hindsight(first.K, first.stream).feasible


@pytest.mark.parametrize("name", ["EG", "online Newton step", "PAMR (mean reversion)"])
def test_portfolio_methods_hold_shares_of_the_whole(name):
    market = tw.problems.portfolio(rounds=12)
    player = METHODS[name].make(Given(market.K, 12, 0, None, 0))
    for t in range(12):
        player.observe(market.stream.losses[t : t + 1], None)
        assert player.decide().min() >= 0.0
        assert player.decide().sum() == pytest.approx(1.0)
    assert np.abs(player.decide() - market.K.center).max() > 1e-4


def test_re_solving_takes_the_mean_and_the_strictest_of_a_window():
    """Of costs the mean or the largest; of capacities the mean or the least."""
    losses = tw.functions.Linear([[1.0, 2.0], [3.0, 1.0]])
    limits = tw.functions.Capacity([[0.5, 1.0], [0.7, 0.2]])
    for of, costs, room in (("mean", [2.0, 1.5], [0.6, 0.6]), ("max", [3.0, 2.0], [0.5, 0.2])):
        both = [methods.of_window([f[:1], f[1:]], of) for f in (losses, limits)]
        np.testing.assert_allclose(both[0].C, [costs])
        np.testing.assert_allclose(both[1].c, [room])
    np.testing.assert_allclose(losses.C, [[1.0, 2.0], [3.0, 1.0]])


def rows(**violations):
    """Results of one task with a tolerance of 0.1; a name's losses are the length of the name."""
    about = {"suite": "toy", "task": "t", "setting": {}}
    best = {"loss": [0.5], "violation": [0.0], "tolerance": [0.1]}
    found = [about | {"method": suite.BEST, "numbers": best}]
    for name, violation in violations.items():
        numbers = {"loss": [float(len(name))], "violation": [violation]}
        found.append(about | {"method": name, "numbers": numbers})
    return found


def test_ranks_put_the_tolerance_first_then_loss():
    given = rows(x=0.3, xxx=0.1, xx=0.0, xxxx=0.2)
    swept = {"method": "x", "setting": {"caution": 9}}
    given.append(given[1] | swept | {"numbers": {"loss": [1.5], "violation": [0.05]}})
    *found, best = results.entries(given)
    assert [each.name for each in found[1:]] == ["xx", "xxx", "xxxx", "x"]
    assert [each.rank for each in found] == [None, 1, 2, 3, 4]
    assert (best.rank, best.row["setting"]) == (None, {"caution": 9})


def swept(method, **points):
    """Rows of a method at some settings: losses and violations of two seeds."""
    about = {"task": "t", "method": method, "seeds": [0, 1]}
    return [
        about
        | {"setting": {"at": name} if name != "default" else {}}
        | {"numbers": {"loss": losses, "violation": violations}}
        for name, (losses, violations) in points.items()
    ]


def test_losses_are_compared_at_a_violation_that_both_have():
    """Linearly between two settings of the other; where it never violates as little, at its least
    violation, between two of ours."""
    theirs = swept("re-solving", a=([1.0, 1.0], [0.3, 0.3]), b=([3.0, 2.0], [0.1, 0.2]))
    ours = swept("Ensemble", bold=([1.0, 1.5], [0.4, 0.25]), default=([2.02, 3.5], [0.2, 0.05]))
    gaps = [results._above(ours[::-1], theirs, seed) for seed in (0, 1)]
    # 2.02 against 2, halfway between 3 and 1; 2, three quarters from 3.5 to 1.5, against 2
    assert gaps == [(pytest.approx(1.0), False), (pytest.approx(0.0, abs=1e-9), True)]
    (bar,) = results.bars([*theirs, *ours])
    assert bar.measured == pytest.approx(0.5)
    assert bar.note == "2 seeds, 1 at the least violation of re-solving"
    assert not bar.holds
    assert (
        list(results.bars([*theirs, *swept("Ensemble", default=([9.0, 9.0], [0.05, 0.1]))])) == []
    )


def test_a_method_and_a_task_of_ones_own_from_a_folder(tmp_path, monkeypatch, capsys):
    """As CONTRIBUTING.md tells a newcomer: the template, a check, a run, a table."""
    monkeypatch.chdir(tmp_path)
    before = dict(METHODS), dict(TASKS)
    try:
        assert suite.add(["mine"]) == 0
        (tmp_path / "mine" / "task.py").write_text(
            "import tidewolf as tw\nfrom benchmarks.registry import task\n\n\n"
            '@task("own", first=30)\ndef small(rounds=None, seed=0):\n'
            "    return tw.problems.routing(rounds=rounds, seed=seed)\n"
        )
        assert suite.add(["mine"]) == 0
        words = ["small", "--rounds", "40", "--seeds", "2", "--from", "mine"]
        assert suite.report([*words, "--methods", "mine", "even"]) == 0
        kept = json.loads((tmp_path / "out/bench/results/own.json").read_text())
        default = next(row for row in kept if row["method"] == "mine" and not row["setting"])
        assert {"commit", "versions", "command"} <= default.keys()
        assert len(default["numbers"]["loss"]) == 2
        assert default["numbers"]["calls"] == [1.0, 1.0]  # one call per round, counted
        streams = [tw.problems.routing(rounds=40, seed=seed) for seed in (0, 1)]
        even = next(row for row in kept if row["method"] == "even")["numbers"]["loss"]
        counted = [p.stream.losses[30:].values(p.K.center).mean() for p in streams]
        assert even == pytest.approx(counted, rel=1e-5)  # recorded with six digits
        text = str(results.table("own", tmp_path / "out/bench/results"))
        assert "| mine |" in text or "**mine**" in text
        (tmp_path / "mine" / "costs.csv").write_text("a,b,c\n1,2,3\n2,1,3\n")
        (tmp_path / "mine" / "shares.toml").write_text(
            '[set]\nkind = "Simplex"\nn = 3\n[stream]\ncosts = "costs.csv"\n'
        )
        assert suite.report(["shares", "--from", "mine", "--methods", "even"]) == 0
        kept = json.loads((tmp_path / "out/bench/results/own.json").read_text())
        assert kept[-1]["numbers"]["loss"] == [2.0]
        mine = tmp_path / "mine" / "method.py"
        mine.write_text(mine.read_text().replace("+ self.step *", "+ 1.5 *"))
        assert suite.add(["mine"]) == 1
        assert "left the set" in capsys.readouterr().out
    finally:
        for known, kept in zip((METHODS, TASKS), before, strict=True):
            known.clear()
            known.update(kept)


@pytest.mark.parametrize("where", ["__init__", "decide"])
def test_what_takes_too_long_is_a_row_and_no_hang(where, monkeypatch):
    """A method that computes without end, and one that sleeps in every round."""

    class Slow(methods.Even):
        def __init__(self, given):
            super().__init__(given)
            while where == "__init__":
                pass

        def decide(self):
            time.sleep(0.01 if where == "decide" else 0.0)
            return self.x

    monkeypatch.setitem(METHODS, "slow", registry.Method(Slow, [{"never": "played"}]))
    begun = time.perf_counter()
    _, row = suite.rows_of("switching", ["slow"], 2, 250, 0.5)
    assert row["skipped"] == "more than 0.001 s per round"
    assert time.perf_counter() - begun < 30.0


# ---------------------------------------------------------------- semidefinite programs


def test_the_theta_function_of_a_pentagon():
    """max <J, Y> with tr Y = 1 and Y_ij = 0 on edges is the square root of 5 (Lovasz 1979)."""
    n, edges = 5, [(i, (i + 1) % 5) for i in range(5)]
    lines = ["6", "1", "5", "1 0 0 0 0 0"]
    lines += [f"0 1 {i + 1} {j + 1} 1" for i in range(n) for j in range(i, n)]
    lines += [f"1 1 {i + 1} {i + 1} 1" for i in range(n)]
    lines += [f"{k + 2} 1 {min(e) + 1} {max(e) + 1} 1" for k, e in enumerate(edges)]
    text = "\n".join(['"a comment', "6 = m", *lines[1:]])
    reached, most, _ = map(
        float, public_sdplib.solved(*public_sdplib.stream(public_sdplib.parse(text)))
    )
    assert (reached, most) == pytest.approx((math.sqrt(5), math.sqrt(5)), rel=1e-6)
    for wrong in ("1\n2\n3 3\n1\n", "1\n1\n2\n1\n1 1 1 5 1\n", "nothing\n", "1\n1\n2\n1 2 3\n"):
        with pytest.raises(ValueError, match=r"\w"):
            public_sdplib.parse(wrong)


# ---------------------------------------------------------------- oracles


def oracle_tables():
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
    for name, file in (("nyse", "nyse_o.csv"), ("meta", "meta_pod_a.npz")):
        with pytest.raises(
            InvalidInput, match=rf"recorded stream {file} is not in .*TIDEWOLF_DATA"
        ):
            next(suite.rows_of(name, ["even"]))
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
@pytest.mark.parametrize("name", [name for name in PAGES if name not in ("rounds", *SUITES)])
def test_the_page_is_what_is_measured(name):
    try:
        table = pages.measured(name)
    except Skipped as why:
        pytest.skip(str(why))
    text = (BENCHMARKS / f"{PAGES[name][0]}.md").read_text(encoding="utf-8")
    assert Table.parsed(pages.find(text, name) or "").differences(table) == []


@pytest.mark.parametrize("name", SUITES)
def test_the_page_shows_the_results(name):
    text = (BENCHMARKS / f"{PAGES[name][0]}.md").read_text(encoding="utf-8")
    assert pages.find(text, name) == str(results.table(name))


@pytest.mark.parametrize(
    "name",
    ["gateway", *(pytest.param(n, marks=pytest.mark.soak) for n in SUITES if n != "gateway")],
)
def test_the_pictures_show_the_results(name, tmp_path):
    """To the byte, by the version of Matplotlib that drew them: `make tables` changes no file."""
    for path in results.draw(name, images=tmp_path):
        both = [folder / path.name for folder in (tmp_path, results.IMAGES)]
        drawn, kept = (each.read_text(encoding="utf-8") for each in both)
        versions = [re.findall(r"Matplotlib v[\d.]+", text) for text in (drawn, kept)]
        assert all(versions)
        assert drawn == kept or versions[0] != versions[1]
