"""Rows one at a time are the rounds of the tables; files in Python are those of the command."""

import itertools

import numpy as np
import pytest

import tidewolf as tw
from tables import table
from tidewolf.core.errors import InvalidInput
from tidewolf.evaluation.tracking import entry_names
from tidewolf.experiments.building import RoundReader

LINKS = [("SEA", "DEN"), ("DEN", "SEA"), ("DEN", "NYC"), ("SEA", "SFO"), ("SFO", "NYC")]
NAMES, ROUNDS = [f"{tail} > {head}" for tail, head in LINKS], 6
ONE = 'source = "SEA"\ntarget = "NYC"\ndemand = 4.0\n'
MANY, COSTS = 'commodities = "demands.csv"\n', '[stream]\ncosts = "costs.csv"\n'


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(3)
    ends = (f"{u},{v},{i + 1},{'' if i == 2 else 2}\n" for i, (u, v) in enumerate(LINKS))
    (tmp_path / "links.csv").write_text("tail,head,length,capacity\n" + "".join(ends))
    (tmp_path / "demands.csv").write_text("source,target,demand\nSEA,NYC,2\nDEN,NYC,1\n")
    (tmp_path / "costs.csv").write_text(table(NAMES, rng.random((ROUNDS, len(NAMES)))))
    (tmp_path / "capacities.csv").write_text(table(NAMES[:3], 4.0 * rng.random((ROUNDS, 3))))
    (tmp_path / "moving.csv").write_text(table(["SEA > NYC", "DEN > NYC"], rng.random((ROUNDS, 2))))
    (tmp_path / "one.csv").write_text(table(["volume"], rng.random((ROUNDS, 1))))
    return tmp_path


def read(folder, rest="", ends=ONE):
    """The experiment of a file with this network, and the rest of it."""
    (folder / "net.toml").write_text(f'[set]\ngraph = "links.csv"\n{ends}{rest}')
    return tw.experiments.load(folder / "net.toml")


def first_point(experiment, problem):
    learner = experiment.learner(experiment.entrants()[0], problem, 0)
    return learner.act(learner.start())


CASES = [*itertools.product((ONE, MANY), ("away", "all", "k-shortest"), (False, True))]


@pytest.mark.parametrize(("ends", "paths", "demands"), CASES)
def test_files_in_python_are_those_of_the_command(folder, ends, paths, demands):
    moving = ("one.csv" if ends is ONE else "moving.csv") if demands else None
    stream = 'costs = "costs.csv"\ncapacities = "capacities.csv"\n'
    stream += f'demands = "{moving}"\n' if moving else ""
    experiment = read(folder, f'paths = "{paths}"\n[stream]\n{stream}', ends)
    problem, reader = experiment.problem(0), RoundReader(experiment)
    assert (reader.K, reader.names) == (problem.K, problem.labels)
    files = {name: folder / f"{name}.csv" for name in ("costs", "capacities")}
    if ends is ONE:
        files |= {"source": "SEA", "target": "NYC", "demand": 4.0}
    else:
        files["commodities"] = folder / "demands.csv"
    files["demands"] = None if moving is None else folder / moving
    found = tw.networks.from_files(folder / "links.csv", paths=paths, **files)
    assert found.network == problem.network
    assert found.stream == problem.stream
    assert found.notes == problem.notes


def test_without_tables_there_is_nothing_to_run_but_rows_can_come(folder):
    experiment = read(folder)
    with pytest.raises(InvalidInput, match="an experiment needs rounds: give costs, capacities"):
        experiment.problem(0)
    loss, _ = RoundReader(experiment).functions({"capacities": [1, 1, 1, 1, 1]})
    assert loss.C.max() == 4.0 * 5  # lengths are the costs


def test_weights_of_links_are_a_budget_on_what_they_carry(folder):
    reader, weights = RoundReader(read(folder)), np.arange(5.0)
    _, limit = reader.functions({"costs": [1.0] * 5, "weights": weights.tolist(), "budgets": 3.0})
    x = reader.K.center
    loads = reader.network.loads(x)
    over = max(loads[[0, 3, 4]] - 2.0) / 4.0
    assert limit.values(x)[0] == pytest.approx(max(weights @ loads - 3.0, over))


def test_capacities_of_a_round_replace_those_of_the_graph(folder):
    reader = RoundReader(read(folder))
    loads = reader.network.loads(reader.K.center)
    for room in (0.5, 9.0):  # below and above what the graph has
        _, limit = reader.functions({"costs": [1.0] * 5, "capacities": [room] * 5})
        assert limit.values(reader.K.center)[0] == pytest.approx(max(loads - room) / 4.0)


def test_gaps_of_links_that_nothing_uses_are_nobodys(folder):
    text = (folder / "costs.csv").read_text().splitlines()
    at = 1 + NAMES.index("DEN > SEA")  # leads back
    rows = [row.split(",") for row in text]
    rows[2][at] = ""
    (folder / "costs.csv").write_text("\n".join(map(",".join, rows)))
    experiment = read(folder, '[stream]\ncosts = "costs.csv"\ngaps = "unseen"\n')
    assert experiment.problem(0).stream.unseen == 0
    rows[2][1 + NAMES.index("SEA > DEN")] = ""
    (folder / "costs.csv").write_text("\n".join(map(",".join, rows)))
    assert tw.experiments.load(folder / "net.toml").problem(0).stream.unseen == 1


def test_links_have_their_own_names_in_decisions_and_loops_are_said(folder):
    (folder / "links.csv").write_text("tail,head,name\nA,B,fibre\nA,B,radio\nA,A,loop\n")
    (folder / "costs.csv").write_text("radio,A > A,fibre\n1,9,2\n1,9,2\n")
    problem = read(folder, COSTS, 'source = "A"\ntarget = "B"\n').problem(0)
    assert problem.labels == ("fibre", "radio")
    assert problem.stream.losses.C.tolist() == [[2.0, 1.0]] * 2
    assert problem.notes == ("Links from a node to itself are left out: 1.",)
    assert entry_names(problem.K, problem.labels) == ("fibre", "radio")


def test_every_link_begins_on_the_shortest_paths(folder):
    experiment = read(folder, f'paths = "all"\n{COSTS}')
    problem = experiment.problem(0)
    x = first_point(experiment, problem)
    shortest = problem.network.path_shares(x)
    assert [path.name for path in shortest] == ["SEA > DEN > NYC"]  # 1 + 3 against 4 + 5
    assert float(np.abs(x).sum()) == pytest.approx(2.0)  # nothing goes round in circles


def test_a_start_is_a_table_of_one_row_by_name(folder):
    row = "SFO > NYC,SEA > SFO,SEA > DEN,DEN > NYC\n0.25,0.25,0.75,0.75\n"
    (folder / "now.csv").write_text(row)
    experiment = read(folder, f'{COSTS}[[learners]]\nname = "Ensemble"\nstart = "now.csv"\n')
    problem = experiment.problem(0)
    start = dict(zip(problem.labels, first_point(experiment, problem), strict=True))
    first, second = ("SEA > DEN", "DEN > NYC"), ("SEA > SFO", "SFO > NYC")
    assert start == dict.fromkeys(first, 0.75) | dict.fromkeys(second, 0.25)
    (folder / "now.csv").write_text(row.replace("SEA > DEN", "SEA > DNE"))
    with pytest.raises(InvalidInput, match="received 'SEA > DNE'"):
        first_point(experiment, problem)


def test_columns_that_nobody_reads_are_said(folder):
    (folder / "links.csv").write_text("tail,head,cap\nSEA,NYC,5\n")
    (folder / "costs.csv").write_text("SEA > NYC\n1\n1\n")
    (folder / "demands.csv").write_text("source,target,volume\nSEA,NYC,50\n")
    assert "not read are the columns cap;" in read(folder, COSTS).problem(0).notes[0]
    with pytest.raises(InvalidInput, match="volume"):
        read(folder, COSTS, MANY).problem(0)
