"""From an engineer's files to decisions, through the command, and back: what a run says is worked
out again from the files that went in and the decisions that came out, with pandas alone.

    load_tl       sum over commodities of demand x share on the link, or on the tunnels over it
    loss_t        sum_l cost_tl load_tl
    violation_t   max(0, max_l (load_tl - capacity_tl) / unit)        unit: all static demands
"""

import contextlib
import io
import json
import os
import re
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from refused import refused_command
from tidewolf.cli import main

pytestmark = pytest.mark.usefixtures("no_pages")
ROUNDS = 12
LINK_ROWS = [
    *(("A", "B", 2.0, 9.0), ("A", "C", 3.0, 8.0), ("B", "C", 1.0, 5.0), ("B", "D", 4.0, 7.0)),
    *(("C", "D", 2.0, 6.0), ("C", "E", 5.0, 6.0), ("D", "E", 1.0, 9.0)),
]
"""A small network with cycles: every cable carries both ways."""
LINKS = [(u, v, *rest) for a, b, *rest in LINK_ROWS for u, v in ((a, b), (b, a))]
NAMES = [f"{tail} > {head}" for tail, head, *_ in LINKS]
TIMES = pd.date_range("2026-03-01", periods=ROUNDS, freq="h").strftime("%Y-%m-%dT%H:%M")


def series(names, values):
    table = pd.DataFrame(np.round(values, 4), columns=names)
    table.insert(0, "time", TIMES)
    return table


RNG, HOURS = np.random.default_rng(5), np.arange(ROUNDS)[:, None]
KILOMETRES, MOST = ([link[i] for link in LINKS] for i in (2, 3))
WAVE = np.sin(HOURS / 3.0 + RNG.random(len(LINKS)) * 6.0)
COSTS = series(NAMES, KILOMETRES * (1.0 + 0.4 * WAVE))
CAPACITIES = series(NAMES, MOST * (0.7 + 0.25 * np.cos(HOURS / 4.0 + np.arange(len(LINKS)))))


@dataclass
class Told:
    """What an engineer knows: the tables, and what must go from where to where."""

    commodities: dict[str, tuple[dict[str, float], dict[str, float], float]]
    """by name: shares of sources, shares of targets, static demand"""
    costs: pd.DataFrame | None = field(default_factory=COSTS.copy)
    capacities: pd.DataFrame | None = field(default_factory=CAPACITIES.copy)
    demands: pd.DataFrame | None = None
    static: dict[str, float] = field(default_factory=dict)
    """capacities of links that have no column"""
    cyclic: bool = False
    """whether flows may go round in circles, which no path shows"""

    @property
    def unit(self):
        return sum(volume for *_, volume in self.commodities.values())

    def sent(self, name):
        if self.demands is None:
            return np.full(ROUNDS, self.commodities[name][2])
        return self.demands[name].to_numpy()


ONE = Told({"A > E": ({"A": 1.0}, {"E": 1.0}, 8.0)})
PAIRS = [("A", "E", 4.0), ("E", "A", 3.0), ("B", "D", 2.0)]
MANY = {f"{u} > {v}": ({u: 1.0}, {v: 1.0}, volume) for u, v, volume in PAIRS}


@pytest.fixture
def place(here):
    links = pd.DataFrame(LINKS, columns=["tail", "head", "length", "capacity"])
    links.drop(columns="capacity").to_csv("links.csv", index=False)
    COSTS.to_csv("costs.csv", index=False)
    CAPACITIES.to_csv("capacities.csv", index=False)
    pd.DataFrame(PAIRS, columns=["source", "target", "demand"]).to_csv("pairs.csv", index=False)
    return here


ENDS = 'source = "A"\ntarget = "E"\ndemand = 8\n'
BOTH = 'costs = "costs.csv"\ncapacities = "capacities.csv"\n'


def experiment(ends=ENDS, stream=BOTH, rest=""):
    learners = '[[learners]]\nname = "Ensemble"\nexperts = ["last"]\n'
    text = f'[set]\ngraph = "links.csv"\n{ends}[stream]\n{stream}{rest}{learners}'
    Path("network.toml").write_text(text)


def said(*arguments):
    """What a command prints; it ends well and complains of nothing."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = main(list(arguments))
    assert (status, err.getvalue()) == (0, ""), err.getvalue()
    return out.getvalue()


def played(told, *more):
    """What a run prints, once its folder was held against the files."""
    text = said("run", "network.toml", "--out", "out", *more)
    check(told, Path("out"))
    return text


def check(told, out):
    """Everything a folder says of its first run, worked out again."""
    decisions = pd.read_csv(out / "decisions.csv", dtype=str)  # pandas 2 rounds what it parses
    decisions[decisions.columns[1:]] = decisions[decisions.columns[1:]].astype(float)
    same = pd.read_parquet(out / "decisions.parquet")
    same, plain = (table.drop(columns="time") for table in (same, decisions))
    pd.testing.assert_frame_equal(plain, same, check_exact=True)
    assert decisions["time"].tolist() == TIMES.tolist()
    shares = link_shares(told, decisions, out)
    loads = pd.DataFrame(0.0, index=range(ROUNDS), columns=NAMES)
    for name, table in shares.items():
        conserved(told, name, table)
        loads[table.columns] += table.mul(told.sent(name), axis=0)
    if told.costs is None:
        costs = pd.DataFrame([[link[2] for link in LINKS]] * ROUNDS, columns=NAMES)
    else:
        costs = told.costs[NAMES] if set(NAMES) <= {*told.costs} else told.costs
    used = [name for name in NAMES if any(name in table for table in shares.values())]
    loss = (loads[used] * costs[used]).sum(axis=1)
    over = pd.DataFrame({"none": np.zeros(ROUNDS)})
    for name in used:
        if told.capacities is not None and name in told.capacities:
            over[name] = (loads[name] - told.capacities[name]) / told.unit
        elif name in told.static:
            over[name] = (loads[name] - told.static[name]) / told.unit
    violation = over.max(axis=1)
    rounds = pd.read_parquet(out / "rounds.parquet").query("run == 1")
    np.testing.assert_allclose(rounds["loss"], loss, rtol=1e-9)
    np.testing.assert_allclose(rounds["violation"], violation, rtol=1e-9, atol=1e-9)
    first = json.loads((out / "summary.json").read_text())["runs"][0]
    assert first["loss"]["total"] == pytest.approx(loss.sum(), rel=1e-9)
    assert first["loss"]["mean"] == pytest.approx(loss.mean(), rel=1e-9)
    assert first["violation"] == pytest.approx(violation.sum(), rel=1e-9, abs=1e-9)
    check_paths(told, shares, pd.read_csv(out / "paths.csv"))


def link_shares(told, decisions, out):
    """The share of each commodity on each link, from the columns of decisions."""
    if (out / "tunnels.csv").exists():
        tunnels = pd.read_csv(out / "tunnels.csv")
        assert tunnels["tunnel"].tolist() == list(decisions.columns[1:])
        found = {}
        for name, own in tunnels.groupby("commodity"):
            table = pd.DataFrame(0.0, index=decisions.index, columns=NAMES)
            for each in own.itertuples():
                for link in links_of(each.path):
                    table[link] += decisions[each.tunnel]
            found[str(name)] = table
        return found
    several, found = len(told.commodities) > 1, {}
    for name in told.commodities:
        start = f"{name}: " if several else ""
        own = [column for column in decisions.columns[1:] if column.startswith(start)]
        found[name] = decisions[own].set_axis([each.removeprefix(start) for each in own], axis=1)
    assert sum(len(table.columns) for table in found.values()) == len(decisions.columns) - 1
    return found


def links_of(path):
    return [f"{tail} > {head}" for tail, head in pairwise(path.split(" > "))]


def conserved(told, name, shares):
    """What leaves a node and does not come in is what starts there, less what ends there."""
    sources, targets, _ = told.commodities[name]
    assert shares.min(axis=None) >= -1e-12
    for node in {node for link in LINKS for node in link[:2]}:
        out = shares[[each for each in shares if each.startswith(f"{node} > ")]].sum(axis=1)
        into = shares[[each for each in shares if each.endswith(f" > {node}")]].sum(axis=1)
        supply = sources.get(node, 0.0) - targets.get(node, 0.0)
        np.testing.assert_allclose(out - into, supply, atol=1e-9)


def check_paths(told, shares, paths):
    """Paths carry the whole demand, each its volume, and what links carry."""
    assert list(paths) == ["time", "commodity", "path", "share", "volume"]
    sums = paths.groupby(["time", "commodity"])["share"].sum()
    assert sorted({name for _, name in sums.index}) == sorted(told.commodities)
    assert len(sums) == ROUNDS * len(told.commodities)
    np.testing.assert_allclose(sums, 1.0, atol=1e-6)
    at = {time: i for i, time in enumerate(TIMES)}
    rounds = zip(paths.commodity, paths.time, strict=True)
    sent = [told.sent(name)[at[time]] for name, time in rounds]
    np.testing.assert_allclose(paths["volume"], paths["share"] * sent, rtol=1e-12)
    for name, own in paths.groupby("commodity"):
        table = pd.DataFrame(0.0, index=range(ROUNDS), columns=shares[str(name)].columns)
        for each in own.itertuples():
            for link in links_of(each.path):
                table.loc[at[each.time], link] += each.share
        left = shares[str(name)] - table
        assert left.min(axis=None) >= -1e-6
        assert told.cyclic or left.max(axis=None) <= 1e-6


# networks as they are


SENT = [volume for *_, volume in PAIRS] * (0.9 + 0.3 * np.sin(HOURS / 2.0))
MOVING = {"all": series(list(MANY), SENT), "one": series(["A > E"], 8.0 + 2.0 * np.sin(HOURS / 2))}
PLACES = "source = {A = 0.6, B = 0.4}\ntarget = {E = 0.75, D = 0.25}\ndemand = 8\n"
SHARED = {"A + B > E + D": ({"A": 0.6, "B": 0.4}, {"E": 0.75, "D": 0.25}, 8.0)}


@pytest.mark.parametrize(
    ("ends", "paths", "stream", "told"),
    [
        (ENDS, "all", BOTH, Told(ONE.commodities, cyclic=True)),
        (ENDS, "away", 'costs = "costs.csv"\n', Told(ONE.commodities, capacities=None)),
        (ENDS, "away", 'capacities = "capacities.csv"\n', Told(ONE.commodities, costs=None)),
        (ENDS, "away", BOTH, Told(ONE.commodities, demands=MOVING["one"])),
        (PLACES, "away", BOTH, Told(SHARED, cyclic=True)),
        ("pairs", "away", BOTH, Told(MANY)),
        ("pairs", "all", BOTH, Told(MANY, cyclic=True)),
        ("pairs", "k-shortest", BOTH, Told(MANY)),
        ("pairs", "away", BOTH, Told(MANY, demands=MOVING["all"])),
        ("pairs", "k-shortest", BOTH, Told(MANY, demands=MOVING["all"])),
    ],
)
def test_flows_of_every_kind(place, ends, paths, stream, told):
    ends = 'commodities = "pairs.csv"\n' if ends == "pairs" else ends
    if told.demands is not None:
        told.demands.to_csv("demands.csv", index=False)
        stream += 'demands = "demands.csv"\n'
    experiment(f'{ends}paths = "{paths}"\n', stream)
    text = played(told)
    if paths == "all" and ends == ENDS:
        assert "cut" not in text
        assert list(pd.read_csv("out/decisions.csv").columns[1:]) == NAMES


def test_capacities_of_the_edge_list_and_of_some_links_only(place):
    links = pd.DataFrame(LINKS, columns=["tail", "head", "length", "capacity"])
    links.to_csv("links.csv", index=False)
    experiment(stream='costs = "costs.csv"\n')
    static = {name: link[3] for name, link in zip(NAMES, LINKS, strict=True)}
    played(Told(ONE.commodities, capacities=None, static=static))

    links.loc[3:, "capacity"] = np.nan
    links.to_csv("links.csv", index=False)
    some = CAPACITIES[["time", "C > E", "C > D", "D > E"]]
    some.to_csv("capacities.csv", index=False)
    experiment()
    played(Told(ONE.commodities, capacities=some, static=dict(list(static.items())[:3])), "--force")


# a new network


def test_a_new_network_runs_as_it_is(here, capsys):
    text = said("new", "network")
    for command in ("run", "compare", "live"):
        assert f"tidewolf {command} network.toml" in text
    files = sorted(str(file) for file in Path("network-data").iterdir())
    tables = ("capacities", "commodities", "costs", "demands", "links")
    assert files == [f"network-data/{name}.csv" for name in tables]
    assert sum(os.path.getsize(file) for file in files) < 300_000
    Path("network-data/costs.csv").write_text("mine\n")
    assert "network.toml exists already" in refused_command(capsys, "new", "network")
    Path("network.toml").unlink()
    assert "exists already" in refused_command(capsys, "new", "network")
    assert Path("network-data/costs.csv").read_text() == "mine\n"
    said("new", "network", "--force", "--quiet")
    text = said("run", "network.toml", "--rounds", "24", "--out", "out")
    assert "24 of 40 links are not used" in text
    assert pd.read_csv("out/decisions.csv")["time"].iloc[-1] == "2026-03-02T23:00"
    said("run", "network.toml", "--dry-run")
    few = ("--rounds", "12", "--cautions", "3,30", "--headrooms", "0")
    said("compare", "network.toml", *few, "--out", "best", "--quiet")
    said("live", "network.toml", "--db", "routing.db", "--once", "--json")


def test_its_other_tables_run_when_their_marks_are_taken_away(here):
    said("new", "wan", "--problem", "network", "--quiet")
    text = Path("wan.toml").read_text()
    for key in ("source", "target", "demand"):
        text = re.sub(rf"^{key} = ", f"# {key} = ", text, flags=re.MULTILINE)
    for key in ("commodities", "demands"):
        text = re.sub(rf"^# {key} = ", f"{key} = ", text, flags=re.MULTILINE)
    Path("wan.toml").write_text(text)
    said("run", "wan.toml", "--rounds", "6", "--learner", "Resolve", "--out", "out", "--quiet")
    names = pd.read_csv("out/paths.csv")["commodity"].unique().tolist()
    assert names == ["SEA > NYC", "LAX > BOS", "MIA > SFO"]
