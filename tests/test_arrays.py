"""Whole numbers keep every digit, absurd ones are refused in a sentence, masks are not forgotten,
negative capacities are named.
"""

import json
import warnings
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tidewolf as tw
from refused import refused_command
from test_problems import needs_records
from tidewolf.cli import main
from tidewolf.core.arrays import LARGEST_COUNT, as_array, as_count, as_number, as_point
from tidewolf.core.errors import InvalidInput, NegativeCapacity, NotFinite, WrongType
from tidewolf.core.feedback import FirstOrder
from tidewolf.experiments.compare import sweep
from tidewolf.experiments.jobs import on_processes, plan_sweep, serial
from tidewolf.functions import Affine, Capacity, Chain, Linear

LONG = (2**53 + 1, 2**60 + 3, 2**63 - 1)
ABSURD = 99999999999999999999


# --- every digit ----------------------------------------------------------------------------------


@given(st.integers(0, LARGEST_COUNT))
def test_a_count_is_the_number_it_was(number):
    for given_as in (number, np.int64(number), np.uint64(number), np.array(number)):
        count = as_count(given_as, "A count", least=0)
        assert type(count) is int
        assert count == number


@given(st.integers(-(2**53), 2**53))
def test_a_float_that_is_whole_is_a_count(number):
    assert as_count(float(number), "A count", least=-(2**53)) == number


@pytest.mark.parametrize(
    ("number", "error"),
    [
        *((number, InvalidInput) for number in (2.0**53 + 2, np.float64(2**60), Fraction(2**62))),
        *((number, InvalidInput) for number in (2**63, np.uint64(2**64 - 1), 1e20, 10**50)),
        *((number, NotFinite) for number in (10**400, -(10**400), 10**5000)),
        *((number, WrongType) for number in (True, "3", None, 1j, [1, 2], np.array([1, 2]))),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_is_no_count_is_refused(number, error):
    """Floats that skip whole numbers, too large ones, those too large for a float, no numbers."""
    with pytest.raises(error) as refused:
        as_count(number, "A count")
    assert refused.type is error


def test_a_long_seed_goes_through_a_run_folder_and_back(here):
    from pyarrow import parquet

    text = f'rounds = 12\nseeds = {list(LONG)}\nlearners = ["LyapunovDescent"]\n'
    (here / "x.toml").write_text(f'{text}[stream]\nproblem = "adversarial"\n')
    tw.experiments.RunFolder.create(here / "out", tw.experiments.load("x.toml").resolved()).play()
    folder = tw.experiments.RunFolder.open(here / "out")
    found = folder.play()
    folder.write_rounds(found)
    folder.write_summary(found)
    summary = json.loads((here / "out" / "summary.json").read_text())
    assert summary["seeds"] == [run["seed"] for run in summary["runs"]] == list(LONG)
    rounds = parquet.read_table(here / "out" / "rounds.parquet")
    assert sorted(set(rounds["seed"].to_pylist())) == sorted(LONG)
    assert len({run["violation"] for run in summary["runs"]}) == len(LONG)


def test_long_numbers_go_through_a_sweep_and_back(here):
    from pyarrow import parquet

    (here / "sweep.toml").write_text(
        f'seeds = {list(LONG)}\nlearners = ["LyapunovDescent"]\n[stream]\nproblem = "adversarial"\n'
        f"[sweep]\nhorizons = [6]\nblock = [{2**53 + 1}, 2]\n"
    )
    plan = plan_sweep(tw.experiments.load("sweep.toml"))
    sweep(plan, here / "out", engine=serial())
    table = parquet.read_table(here / "out" / "results.parquet")
    assert sorted(set(table["seed"].to_pylist())) == sorted(LONG)
    assert sorted(set(table["knob_block"].to_pylist())) == [2, 2**53 + 1]
    assert {row["seed"] for row in sweep(plan, here / "out", engine=serial()).rows} == set(LONG)


# --- absurd ones ----------------------------------------------------------------------------------


LINES = [f"run routing --rounds {number}" for number in (ABSURD, "9999999999999", "1e400")]
LINES += [f"compare routing --seeds {ABSURD}", f"check tidewolf.sets:Simplex --seed {ABSURD}"]
LINES += [f"sweep routing {more}{ABSURD}" for more in ("--knob block=", "--jobs ")]


@pytest.mark.parametrize("line", LINES)
def test_absurd_numbers_are_refused_in_the_shell(line, here, capsys):
    refused_command(capsys, *line.split())
    assert not (here / "out").exists()


@pytest.mark.parametrize(
    "make",
    [
        lambda: tw.LyapunovDescent(tw.sets.Simplex(3), horizon=10**20),
        lambda: tw.sets.Simplex(10**12),
        lambda: tw.sets.CappedSimplex(10**12, 0.5),
        lambda: tw.sets.BoundedPSD(10**6, 1.0),
        lambda: tw.sets.NuclearBall((10**6, 10**6), 1.0),
        lambda: tw.sets.L2Ball(10**12),
        lambda: tw.problems.routing(rounds=10**13),
        pytest.param(lambda: tw.problems.zoo(rounds=10**13), marks=needs_records),
        lambda: on_processes(10**9),
    ],
)
def test_absurd_sizes_are_refused_before_anything_is_made(make):
    with pytest.raises(InvalidInput, match=r"must be at most|of memory at least"):
        make()


def test_memory_that_is_not_there_is_a_sentence(here, capsys, monkeypatch):
    from tidewolf.cli import app

    def too_large(*_, **__):
        return np.empty(2**58)

    monkeypatch.setattr(app, "_command", lambda: type("Command", (), {"main": too_large})())
    assert main(["list"]) == 2
    assert capsys.readouterr().err.startswith("There is not enough memory: Unable to allocate")


# --- masks ----------------------------------------------------------------------------------------

MASKED = np.ma.array([0.2, 0.3, 0.5], mask=[False, True, False])
DESCENT = tw.LyapunovDescent(tw.sets.Simplex(3), horizon=9)


@pytest.mark.parametrize(
    "use",
    [
        lambda: as_array([[MASKED]], "The costs"),
        lambda: as_array(np.ma.array([1.0]), "The costs"),
        lambda: as_point(MASKED, (3,), "The point"),
        lambda: as_number(np.ma.masked, "The price"),
        lambda: as_count(np.ma.masked, "A count"),
        lambda: Affine(MASKED[None, :], [1.0]),
        lambda: tw.sets.VertexHull([MASKED, MASKED]),
        lambda: tw.Stream(Linear(np.ones((2, 3))), seen=np.ma.array([True, False])),
        lambda: tw.sets.Simplex(3).lmo(MASKED),
        lambda: DESCENT.update(DESCENT.start(), FirstOrder(MASKED, 0.0, np.zeros(3), 1.0, 0.0, 1)),
        lambda: tw.Session(DESCENT).observe(loss_gradient=MASKED, constraint_value=0.0),
    ],
)
def test_a_masked_array_is_refused(use):
    with pytest.raises(WrongType):
        use()


# --- negative capacities --------------------------------------------------------------------------

EDGES = [("a", "b"), ("b", "d"), ("a", "c"), ("c", "d")]
FLOW = tw.sets.FlowPolytope.from_edges(EDGES, source="a", target="d")


def stream_of(capacities, shape=(4,)):
    capacities = np.asarray(capacities, dtype=float)
    limits = Capacity(capacities.reshape(-1, *shape))
    return tw.Stream(Linear(np.ones((len(capacities), *shape))), limits)


def test_a_run_names_a_negative_capacity():
    capacities = np.ones((5, 4))
    capacities[3, 2], capacities[4, 2] = -0.25, -1.0
    with pytest.warns(NegativeCapacity, match="a > c is -0.25 in round 4") as said:
        tw.run(tw.LyapunovDescent(FLOW, horizon=5), stream_of(capacities))
    assert len(said) == 1


def test_a_session_names_it_once_an_entry():
    session = tw.Session(tw.LyapunovDescent(FLOW, horizon=9))
    costs = Linear.one(np.ones(4))
    session.observe(loss=costs, constraint=Capacity.one(np.ones(4)))
    with pytest.warns(NegativeCapacity, match=r"b > d is -1 in round 2"):
        session.observe(loss=costs, constraint=Capacity.one([1.0, -1.0, 1.0, 1.0]))
    for _ in range(2):  # warnings are errors here
        session.observe(loss=costs, constraint=Capacity.one([1.0, -1.0, 1.0, 1.0]))
    assert session.rounds == 4


def test_rounds_of_a_chain_are_counted_through():
    chain = Chain((Affine(np.ones((2, 4)), np.ones(2)), Capacity([[1.0, 1.0, 1.0, -3.0]])))
    with pytest.warns(NegativeCapacity, match=r"c > d is -3 in round 3"):
        tw.run(tw.LyapunovDescent(FLOW, horizon=3), tw.Stream(Linear(np.ones((3, 4))), chain))


def test_a_set_with_negative_points_may_have_them():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        K = tw.sets.Box(-np.ones(3), np.ones(3))
        tw.run(tw.LyapunovDescent(K, horizon=2), stream_of([[1, -0.5, 1], [1, 1, -0.1]], (3,)))


def test_a_table_names_the_line_and_the_column(here, capsys):
    lines = ["tail,head", *map(",".join, EDGES), ""]
    (here / "links.csv").write_text("\n".join(lines))
    header = ",".join(f"{tail} > {head}" for tail, head in EDGES)
    (here / "costs.csv").write_text(f"{header}\n1,1,2,2\n1,1,2,2\n")
    (here / "capacities.csv").write_text(f"{header}\n1,1,1,1\n1,1,1,-0.5\n")
    text = '[set]\ngraph = "links.csv"\nsource = "a"\ntarget = "d"\n[stream]\n'
    (here / "x.toml").write_text(f'{text}costs = "costs.csv"\ncapacities = "capacities.csv"\n')
    experiment = tw.experiments.load("x.toml")
    with pytest.warns(NegativeCapacity, match=r'capacities\.csv, line 3, column "c > d": .*-0\.5'):
        experiment.problem(0)
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        assert main(["run", "x.toml", "--learner", "LyapunovDescent", "--quiet"]) == 0
    said = capsys.readouterr().err.splitlines()
    assert sum('line 3, column "c > d"' in line for line in said) == 1
    assert not any("building.py" in line for line in said)
