"""Budgets: the queue is the worst window, prices enter as losses do, and bounds hold."""

from __future__ import annotations

import json

import numpy as np
import pytest

import tidewolf as tw
from refused import refused
from streams import recorded
from tables import table
from tidewolf.core.errors import InvalidInput, TidewolfError
from tidewolf.experiments.building import RoundReader
from tidewolf.live import LiveRunner, live_learner, parse
from tidewolf.methods.budget import worst_windows

K = tw.sets.Simplex(4)
LEARNERS = {
    "descent": tw.LyapunovDescent(K),
    "blocks": tw.LyapunovDescent(K, block=3),
    "each": tw.Ensemble(K, per_constraint=True),
    "ensemble": tw.Ensemble(K),
    "resolve": tw.Ensemble(K, experts=[tw.experts.Season(6, cells=2), tw.experts.Resolve()]),
}


def stream(seed, rounds=120, **more):
    """Prices against latencies, with rounds that are free, or spend what nothing can save."""
    draw = np.random.default_rng(seed)
    latency = draw.uniform(0.5, 1.5, (rounds, 4)) + np.array([0.0, 0.5, 1.0, 1.5])
    price = draw.uniform(0.5, 1.5, (rounds, 4)) * np.array([4.0, 2.0, 1.0, 0.2])
    price[rounds // 3], price[rounds // 2] = 0.0, 3.0
    plan = np.full(rounds, 1.2)
    capacities = tw.functions.Capacity(draw.uniform(0.4, 1.0, (rounds, 4)))
    spend = {"usd": tw.functions.Affine(price, plan)}
    return tw.Stream(tw.functions.Linear(latency), capacities, budgets=spend, **more)


def test_the_worst_window_is_the_largest_sum_of_neighbouring_rounds_of_a_period():
    draw = np.random.default_rng(0)
    for rounds, per in ((1, 1), (7, 3), (30, 30), (31, 8)):
        h, windows = draw.normal(size=rounds), np.arange(rounds) // per
        ends = ((i, j) for i in range(rounds) for j in range(i + 1, rounds + 1))
        sums = [h[i:j].sum() for i, j in ends if windows[i] == windows[j - 1]]
        worst, nets = worst_windows(h, windows)
        assert worst == pytest.approx(max(0.0, *sums))
        assert nets == pytest.approx([h[windows == w].sum() for w in range(windows[-1] + 1)])


@pytest.mark.parametrize("name", LEARNERS)
def test_a_price_is_a_part_of_the_loss_and_comes_off_the_bound(name):
    """The run is that on f + lam h, with the lam of each round, and its bound less lam h."""
    given, learner = stream(1), LEARNERS[name]
    run = tw.run(learner, given, decisions=True)
    spent, lam = run.budgets["usd"].spend, run.budgets["usd"].multipliers
    if name == "blocks":  # one price for the rounds of a block
        assert (np.diff(lam.reshape(-1, 3)) == 0.0).all()
    h = given.budgets["usd"]
    priced = tw.functions.Affine(given.losses.C + lam[:, None] * h.A, lam * h.b)
    other = tw.run(learner, tw.Stream(priced, given.constraints), decisions=True)
    np.testing.assert_allclose(run.decisions.points, other.decisions.points, atol=1e-7)
    assert lam.min() >= 0.0
    assert lam.max() > 0.0
    own, due = (each.learner.bound_of(each.final_state).regret for each in (run, other))
    due -= float(lam @ spent)
    assert own == pytest.approx(due, abs=1e-6 * (1.0 + abs(due)))
    values = [h[t : t + 1].values(x)[0] for t, x in enumerate(run.decisions.points)]
    np.testing.assert_allclose(spent, values, atol=1e-12)


@pytest.mark.parametrize("name", LEARNERS)
def test_bounds_hold_and_budgets_are_met(name):
    for seed in range(3):
        run = tw.run(LEARNERS[name], stream(seed, 240))
        assert run.certificate.holds
        if run.regret is not None:
            assert run.regret[1] <= run.bound.regret
        assert run.budgets["usd"].net <= 0.1 * 1.2 * 240


def test_late_and_overridden_rounds_keep_the_bound():
    arrives = np.minimum(np.arange(120) + np.random.default_rng(3).integers(0, 5, 120), 119)
    played = np.full((120, 4), np.nan)
    played[40] = 0.25
    for late in ({"arrives": arrives}, {"played": played}, {"arrives": arrives, "played": played}):
        run = tw.run(LEARNERS["resolve"], stream(4, **late))
        assert run.certificate.holds
        assert run.budgets["usd"].multipliers.max() > 0.0


def test_other_units_of_spend_change_no_decision():
    given, h = stream(5), stream(5).budgets["usd"]
    cents = {"usd": tw.functions.Affine(100.0 * h.A, 100.0 * h.b)}
    other = tw.Stream(given.losses, given.constraints, budgets=cents)
    runs = [tw.run(LEARNERS["ensemble"], each, decisions=True) for each in (given, other)]
    np.testing.assert_allclose(*(run.decisions.points for run in runs), atol=1e-8)


def test_a_budget_spends_where_it_helps_most():
    """Against the same plan as a constraint of every round: less loss, nothing overspent."""
    given = stream(6, 600)
    strict = tw.Stream(given.losses, [given.constraints, given.budgets["usd"]])
    run, other = (tw.run(LEARNERS["resolve"], each) for each in (given, strict))
    assert run.losses.sum() < 0.98 * other.losses.sum()
    assert run.budgets["usd"].net <= 0.03 * 1.2 * 600


def test_sessions_observe_spend_and_resume(tmp_path):  # type: ignore[no-untyped-def]
    given, budget = stream(7, 60), tw.Budget("usd", total=12.0, per=10)
    for experts in ([], [tw.experts.Resolve()]):
        learner = tw.Ensemble(K, experts=experts, budgets=[budget])
        run = tw.run(learner, given, decisions=True)
        session = tw.Session.open(tmp_path / f"{len(experts)}.db", learner)
        for t in range(60):
            if t == 30:
                session.close()
                session = tw.Session.open(tmp_path / f"{len(experts)}.db", learner)
            np.testing.assert_allclose(session.play(), run.decisions.points[t], atol=1e-9)
            spend = {"usd": given.budgets["usd"].A[t]}
            session.observe(costs=given.losses.C[t], capacities=given.constraints.c[t], spend=spend)
        assert session.state.budgets.net == pytest.approx(run.budgets["usd"].net)
        assert len(run.budgets["usd"].windows) == 6
        session.close()


def test_runs_are_saved_in_the_middle():
    learner, given = LEARNERS["ensemble"], stream(8)
    again, whole = recorded(learner, given, cuts=[50]), tw.run(learner, given)
    np.testing.assert_array_equal(again.spends[0], whole.budgets["usd"].spend)
    np.testing.assert_array_equal(again.multipliers[0], whole.budgets["usd"].multipliers)


NAMES, HOUR = ["a", "b", "c", "d"], 3600
TABLES = """
[set]
kind = "Simplex"
n = 4
[stream]
costs = "costs.csv"
capacities = "capacities.csv"
[[learners]]
name = "Ensemble"
experts = ["last"]
[[budgets]]
name = "usd"
total = 28.8
per = "1d"
spend = "usd.csv"
"""


def write(folder, tables, columns=NAMES):
    for name, rows in tables.items():
        (folder / f"{name}.csv").write_text(table(columns, rows, start="2026-03-01T00:00"))


def test_files_rows_and_requests_say_budgets(tmp_path, servers):
    """A file with budgets plays as Python does; live rows and a service as a session does."""
    given, budget = stream(10, 48), tw.Budget("usd", total=28.8, per="1d")
    costs, c, spend = given.losses.C, given.constraints.c, given.budgets["usd"].A
    write(tmp_path, {"costs": costs, "capacities": c, "usd": spend})
    (tmp_path / "file.toml").write_text(TABLES)
    experiment = tw.experiments.load(tmp_path / "file.toml")
    problem = experiment.problem(0)
    np.testing.assert_allclose(problem.stream.budgets["usd"].b, 1.2)
    assert problem.stream.stamps.dtype.kind == "M"  # dates, not seconds
    learner = experiment.learner(experiment.entrants()[0], problem, 0)
    assert problem.budgets == learner.budgets == (budget,)
    run = tw.run(learner, given, decisions=True)
    np.testing.assert_array_equal(tw.run(learner, problem.stream).losses, run.losses)
    (tmp_path / "again.toml").write_text(experiment.resolved().toml())
    assert tw.experiments.load(tmp_path / "again.toml").budgets == experiment.budgets

    # live: a round lasts until the next row is expected, so two rounds have passed before a plan
    reader = RoundReader(experiment)
    session = tw.Session(live_learner(reader))
    server = servers.start(tmp_path / "sessions")
    asked = {"set": {"kind": "Simplex", "n": 4}, "names": NAMES}
    asked["budgets"] = [{"name": "usd", "total": 28.8, "per": "1d"}]
    with (
        LiveRunner(reader, live_learner(reader), tmp_path / "live.db") as runner,
        tw.Client(f"http://127.0.0.1:{server.port}", "budget", experiment=asked) as client,
    ):
        for t in range(12):
            if t > 1:
                session.play(time=1772323200.0 + t * HOUR)
                client.play(time=1772323200.0 + t * HOUR)
            numbers = {"costs": costs[t], "capacities": c[t], "spend": {"usd": spend[t]}}
            session.observe(**numbers)
            client.observe(**numbers)
            rows = {key: numbers[key].tolist() for key in ("costs", "capacities")}
            row = rows | {"spend": {"usd": dict(zip(NAMES, spend[t].tolist(), strict=True))}}
            time = str(np.datetime64("2026-03-01") + np.timedelta64(t, "h"))
            runner.take(parse(json.dumps({"time": time, **row})))
        np.testing.assert_allclose(client.play(), session.play(), atol=1e-9)
        np.testing.assert_allclose(runner.session.play(), session.play(), atol=1e-9)
        found = client._ask("GET", "")["budgets"]["usd"]
        assert found["net"] == pytest.approx(session.state.budgets.net[0])
        with pytest.raises(InvalidInput):
            client.observe(costs=costs[0])
        with pytest.raises(InvalidInput):
            runner.take(parse(json.dumps({"time": "2026-03-02", "costs": costs[0].tolist()})))
        assert (runner.rounds, client.rounds) == (12, 12)
    server.kill()


def test_spend_of_links_is_that_of_the_volumes_they_carry(tmp_path):
    """On a network a unit on a link spends its price; shares spend that times their volume."""
    (tmp_path / "links.csv").write_text("tail,head,length\nA,B,1\nB,C,1\nA,C,3\n")
    (tmp_path / "demands.csv").write_text("source,target,demand\nA,C,5\nB,C,2\n")
    (tmp_path / "file.toml").write_text(
        '[set]\ngraph = "links.csv"\ncommodities = "demands.csv"\npaths = "k-shortest"\nk = 2\n'
        '[stream]\ncosts = "costs.csv"\n'
        '[[budgets]]\nname = "usd"\ntotal = 9\nper = 3\nspend = "usd.csv"\n'
    )
    rows = np.random.default_rng(0).uniform(1.0, 2.0, (6, 3))
    write(tmp_path, {"costs": rows, "usd": 2.0 * rows}, ["A > B", "B > C", "A > C"])
    stream = tw.experiments.load(tmp_path / "file.toml").problem(0).stream
    np.testing.assert_allclose(stream.budgets["usd"].A, 2.0 * stream.losses.C)
    np.testing.assert_allclose(stream.budgets["usd"].b, 3.0)


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ("total = 28.8", "", 11),
        ("total = 28.8", "total = -1", 13),
        ('per = "1d"', 'per = "1x"', 14),
        ('spend = "usd.csv"', "", 11),
        ('spend = "usd.csv"', "spend = 3", 15),
        ('spend = "usd.csv"', 'spend = "none.csv"', 15),
        ('name = "usd"', 'name = "usd"\ncolour = 1', 13),
        ("[[budgets]]", "[budgets]", 11),
    ],
)
def test_wrong_budgets_of_files_are_refused_where_they_stand(tmp_path, old, new, line):
    write(tmp_path, {name: np.ones((3, 4)) for name in ("costs", "capacities", "usd")})
    (tmp_path / "file.toml").write_text(TABLES.replace(old, new))
    with pytest.raises(InvalidInput, match=f"line {line}, "):
        tw.experiments.load(tmp_path / "file.toml").problem(0)


def test_a_plan_follows_the_clock():
    """A round of a minute plans a minute's share of a day, whatever the number of rounds."""
    session = tw.Session(tw.Ensemble(K, budgets=[tw.Budget("usd", total=1440.0, per="1d")]))
    for minute in (0, 1, 2, 4):
        session.play(time=60.0 * minute)
        session.observe(costs=np.ones(4), spend={"usd": np.zeros(4)})
    assert session.state.budgets.net == pytest.approx([-4.0])


SPENT = (None, {}, {"eur": np.ones(4)}, {"usd": np.ones(3)}, {"usd": np.full(4, np.nan)}, "usd")
GRADIENT = {"costs": None, "loss_gradient": np.ones(4), "constraint_value": 0.0}


@pytest.mark.parametrize("given", [*({"spend": spend} for spend in SPENT), GRADIENT])
def test_wrong_spend_is_refused_and_changes_nothing(given):
    session = tw.Session(tw.Ensemble(K, budgets=[tw.Budget("usd", total=1.0, per=2)]))
    session.observe(costs=np.ones(4), spend={"usd": np.ones(4)})
    before = session.state
    with pytest.raises(TidewolfError):
        session.observe(**{"costs": np.ones(4), "spend": {"usd": np.ones(4)}, **given})
    assert session.state is before


def test_wrong_budgets_are_refused():
    for settings in ({}, {"total": 1.0, "plan": [1.0]}, {"total": -1.0}, {"total": 1.0, "per": 0}):
        with pytest.raises(TidewolfError):
            tw.Budget("usd", **settings)
    twice = [tw.Budget("usd", total=1.0, per=2)] * 2
    with refused(InvalidInput, "budgets"):
        tw.Ensemble(K, budgets=twice)
    other = tw.Ensemble(K, budgets=[tw.Budget("eur", total=1.0, per=2)])
    with refused(InvalidInput, "spend"):
        tw.run(other, stream(0))
    with refused(InvalidInput, "loss_lipschitz"):
        tw.run(tw.LyapunovDescent(K, loss_lipschitz=10.0), stream(0))


def test_plain_dual_ascent_meets_a_budget_too():
    run = tw.run(tw.baselines.ProjectedPrimalDual(K, horizon=600), stream(9, 600))
    assert run.max_infeasibility < 1e-9
    assert run.budgets["usd"].net <= 0.1 * 1.2 * 600
