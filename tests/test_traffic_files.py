"""Traffic engineering from files and requests: the fullest link as the loss, tunnels of one's own,
several constraints in one round. What a run reports is computed again from the files that went in
and the decisions that came out.
"""

import json
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

import tidewolf as tw
from refused import refused_command
from tidewolf.cli import main
from tidewolf.core.errors import InvalidInput
from tidewolf.experiments import load
from tidewolf.experiments.building import RoundReader
from tidewolf.live import LiveRunner, live_learner, parse
from tidewolf.service.description import Description

pytestmark = pytest.mark.usefixtures("no_pages")
LINKS = [
    *(("A", "B", 9.0), ("B", "A", 9.0), ("A", "C", 8.0), ("C", "A", 8.0), ("B", "C", 5.0)),
    *(("C", "B", 5.0), ("B", "D", 7.0), ("D", "B", 7.0), ("C", "D", 6.0), ("D", "C", 6.0)),
]
NAMES = [f"{tail} > {head}" for tail, head, _ in LINKS]
PAIRS = [("A", "D"), ("D", "A"), ("B", "C")]
ROUNDS = 15
RNG = np.random.default_rng(3)
DEMANDS = 2.0 + 3.0 * RNG.random((ROUNDS, len(PAIRS)))
CAPACITIES = np.array([link[2] for link in LINKS]) * (0.6 + 0.4 * RNG.random((ROUNDS, len(LINKS))))
SET = '[set]\ngraph = "links.csv"\ncommodities = "pairs.csv"\npaths = "k-shortest"\nk = 3\n'
UTILIZATION = SET + '[stream]\nobjective = "max-utilization"\ndemands = "demands.csv"\n'


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pd.DataFrame(LINKS, columns=["tail", "head", "capacity"]).to_csv("links.csv", index=False)
    pd.DataFrame(PAIRS, columns=["source", "target"]).to_csv("pairs.csv", index=False)
    pairs = [f"{source} > {target}" for source, target in PAIRS]
    pd.DataFrame(DEMANDS, columns=pairs).to_csv("demands.csv", index=False)
    pd.DataFrame(CAPACITIES, columns=NAMES).to_csv("capacities.csv", index=False)
    return tmp_path


def utilisation(folder, capacities):
    """That of every link, from tables alone, (rounds, links)."""
    decided = pd.read_csv(folder / "decisions.csv").drop(columns="round", errors="ignore")
    tunnels = pd.read_csv(folder / "tunnels.csv").set_index("tunnel")
    demands = pd.read_csv("demands.csv")
    loads = pd.DataFrame(0.0, index=decided.index, columns=NAMES)
    for tunnel in decided.columns:
        nodes = tunnels.path[tunnel].split(" > ")
        for link in map(" > ".join, pairwise(nodes)):
            loads[link] += decided[tunnel] * demands[tunnels.commodity[tunnel]]
    return (loads / capacities).to_numpy()


@pytest.mark.parametrize("moving", [False, True])
def test_the_loss_of_a_run_is_the_utilisation_of_its_fullest_link(folder, moving, capsys):
    more = 'capacities = "capacities.csv"\n' * moving
    (folder / "te.toml").write_text(UTILIZATION + more + '[[learners]]\nname = "SinhaVaze"\n')
    main(["run", "te.toml", "--out", "out"])
    printed = " ".join(capsys.readouterr().out.split())
    assert "filled the fullest link" in printed
    assert "The loss is the utilisation of the fullest link" in printed
    capacities = CAPACITIES if moving else np.array([link[2] for link in LINKS])
    used = utilisation(folder / "out", capacities)
    rounds = pd.read_parquet("out/rounds.parquet")
    losses = rounds.sort_values("round")["loss"].to_numpy()
    assert losses == pytest.approx(used.max(axis=1), rel=1e-9)
    assert (rounds["violation"] == 0.0).all()
    text = load("out/experiment.toml").toml()
    assert 'objective = "max-utilization"' in text


def test_files_rows_and_requests_have_the_same_largest_utilisation(folder):
    (folder / "te.toml").write_text(UTILIZATION + 'capacities = "capacities.csv"\n')
    experiment = load("te.toml")
    problem, reader = experiment.problem(seed=0), RoundReader(experiment)
    links = [{"tail": s, "head": t, "capacity": c} for s, t, c in LINKS]
    described = {"graph": links, "commodities": PAIRS, "paths": "k-shortest", "k": 3}
    body = {"set": described, "stream": {"objective": "max-utilization"}}
    described["commodities"] = [list(pair) for pair in PAIRS]
    built = Description.parse(Description.read(body).canonical).build()
    points = [problem.K.center, problem.K.lmo(np.arange(len(problem.labels)) % 3.0)]
    for t in range(ROUNDS):
        row = {"demands": DEMANDS[t].tolist(), "capacities": CAPACITIES[t].tolist()}
        named = {**row, "capacities": dict(zip(NAMES, row["capacities"], strict=True))}
        for x in points:
            expected = problem.stream.losses[t : t + 1].values(x)
            for given, of in ((row, reader), (named, reader), (named, built.reader)):
                loss, limits = of.functions(given)
                assert loss.values(x) == pytest.approx(expected, rel=1e-12)
                assert isinstance(limits, tw.functions.Unlimited)


def test_a_live_session_reports_utilisation_as_its_cost_and_names_the_fullest_link(folder):
    (folder / "te.toml").write_text(UTILIZATION + '[[learners]]\nname = "LyapunovDescent"\n')
    reader = RoundReader(load("te.toml"))
    with LiveRunner(reader, live_learner(reader), folder / "te.db") as runner:
        for t in range(4):
            x = runner.session.play()
            answer = json.loads(runner.take(parse(json.dumps({"demands": DEMANDS[t].tolist()}))))
            loads = reader.network.loads(x, DEMANDS[t])
            used = loads / np.array([link[2] for link in LINKS])
            assert answer["cost"] == pytest.approx(used.max(), rel=1e-9)
        why = runner.session.explain(names=reader.names)
        loads = reader.network.loads(runner.session.play(), DEMANDS[3])
        used = loads / np.array([link[2] for link in LINKS])
    (note,) = [note for note in why.notes if "fullest" in note]
    assert NAMES[int(used.argmax())] in note
    with LiveRunner(reader, live_learner(reader), folder / "te.db") as runner:
        assert json.loads(runner.answer()) == answer


# --- tunnels of one's own -------------------------------------------------------------------------

OWN = [
    *(("B > C", "B > D > C", "detour"), ("A > D", "A > B > D", "north"), ("B > C", "B > C", "")),
    *(("D > A", "D > C > A", "back"), ("A > D", "A > C > B > D", "long")),
]
OWN_NAMES = ("north", "long", "back", "detour", "B > C")
"""pair after pair, in the order of the file"""


def own_tunnels(folder):
    pd.DataFrame(OWN, columns=["pair", "path", "name"]).to_csv("tunnels.csv", index=False)
    text = UTILIZATION.replace('paths = "k-shortest"\nk = 3\n', 'tunnels = "tunnels.csv"\n')
    (folder / "own.toml").write_text(text + '[[learners]]\nname = "SinhaVaze"\n')


def test_decisions_carry_the_names_of_ones_own_tunnels(folder):
    own_tunnels(folder)
    main(["run", "own.toml", "--out", "out", "--quiet"])
    decided = pd.read_csv("out/decisions.csv").drop(columns="round")
    assert tuple(decided.columns) == OWN_NAMES
    used = utilisation(folder / "out", np.array([link[2] for link in LINKS]))
    losses = pd.read_parquet("out/rounds.parquet").sort_values("round")["loss"]
    assert losses.to_numpy() == pytest.approx(used.max(axis=1), rel=1e-9)
    problem = load("out/experiment.toml").problem(seed=0)
    (folder / "again.toml").write_text(
        (folder / "own.toml").read_text().replace('"tunnels.csv"', '"out/tunnels.csv"')
    )
    again = load("again.toml").problem(seed=0)  # from the tunnels.csv that the run has written
    assert problem.K == again.K
    assert problem.stream.losses == again.stream.losses


def test_requests_and_python_take_the_same_tunnels(folder):
    own_tunnels(folder)
    problem = load("own.toml").problem(seed=0)
    rows = [
        {"pair": pair, "path": path.split(" > "), "name": name} if i % 2 else [pair, path, name]
        for i, (pair, path, name) in enumerate(OWN)
    ]
    described = {"graph": [list(link[:2]) for link in LINKS], "tunnels": rows}
    described["commodities"] = [list(pair) for pair in PAIRS]
    reader = Description.read({"set": described}).build().reader
    tunnels = tw.networks.Tunnels(
        LINKS_ALONE, PAIRS, paths=[path.split(" > ") for _, path, _ in OWN]
    )
    assert reader.names == OWN_NAMES == problem.labels
    assert (reader.network.incidence != problem.network.incidence).nnz == 0
    assert (tunnels.incidence != problem.network.incidence).nnz == 0
    by_name = {"north": ["A", "B", "D"], "back": ["D", "A"]}
    with pytest.raises(InvalidInput) as error:
        tw.networks.Tunnels(LINKS_ALONE, [("A", "D"), ("D", "A")], paths=by_name)
    assert error.value.setting == "paths"


LINKS_ALONE = [link[:2] for link in LINKS]


@pytest.mark.parametrize(
    ("row", "names"),
    [
        (("A > D", "A > E > D", "x"), "'E'"),
        (("A > D", "A > D", "x"), "line 2"),
        (("A > C", "A > B > D", "x"), "A > C"),
        (("A > D", "A > B > A > C > D", "x"), "line 2"),
        (("A > C", "A > C", "x"), "no pair"),
        (("A > D", "A > C > D", "north"), "'north'"),
    ],
)
def test_a_tunnel_that_does_not_fit_is_refused(folder, row, names, capsys):
    own_tunnels(folder)
    pd.DataFrame([row, *OWN], columns=["pair", "path", "name"]).to_csv("tunnels.csv", index=False)
    assert names in refused_command(capsys, "run", "own.toml")


def test_a_commodity_without_a_tunnel_and_paths_beside_tunnels_are_refused(folder, capsys):
    own_tunnels(folder)
    pd.DataFrame(OWN[:3], columns=["pair", "path", "name"]).to_csv("tunnels.csv", index=False)
    assert "D to A" in refused_command(capsys, "run", "own.toml")
    own_tunnels(folder)
    text = (folder / "own.toml").read_text()
    (folder / "own.toml").write_text(text.replace("[stream]", 'paths = "all"\n[stream]'))
    assert "paths" in refused_command(capsys, "run", "own.toml")


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (UTILIZATION.replace("max-u", "min-u"), "objective"),
        (UTILIZATION + 'costs = "costs.csv"\n', "objective"),
        (SET + '[stream]\nobjective = "max-utilization"\n', "rounds"),
        (
            '[set]\nkind = "Simplex"\nn = 2\n[stream]\nobjective = "max-utilization"\n'
            'capacities = "capacities.csv"\n',
            "te.toml, line",
        ),
    ],
)
def test_files_that_name_an_objective_wrongly_are_refused(folder, text, names, capsys):
    (folder / "te.toml").write_text(text)
    assert names in refused_command(capsys, "run", "te.toml")


def test_utilisation_needs_capacities_above_zero(folder):
    network = tw.networks.Network([("A", "B")], source="A", target="B")
    for capacities in ([[0.0]], [[np.inf]]):
        with pytest.raises(InvalidInput) as error:
            network.max_utilization(capacities)
        assert error.value.setting == "capacities"
    body = {"set": {"kind": "Simplex", "n": 2}, "stream": {"objective": "max-utilization"}}
    with pytest.raises(InvalidInput, match="objective"):
        Description.read(body).build()
