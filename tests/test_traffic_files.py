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
from refused import refused, refused_command
from tidewolf.cli import main
from tidewolf.core.errors import InvalidInput, TidewolfError
from tidewolf.experiments import building, load
from tidewolf.live import LiveRunner, live_learner, parse
from tidewolf.service.models import Description

pytestmark = pytest.mark.usefixtures("no_pages")
LINKS = [
    *(("A", "B", 9.0), ("B", "A", 9.0), ("A", "C", 8.0), ("C", "A", 8.0), ("B", "C", 5.0)),
    *(("C", "B", 5.0), ("B", "D", 7.0), ("D", "B", 7.0), ("C", "D", 6.0), ("D", "C", 6.0)),
]
NAMES = [f"{tail} > {head}" for tail, head, _ in LINKS]
PAIRS, ROUNDS, RNG = [("A", "D"), ("D", "A"), ("B", "C")], 15, np.random.default_rng(3)
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
        for link in map(" > ".join, pairwise(tunnels.path[tunnel].split(" > "))):
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
    assert 'objective = "max-utilization"' in load("out/experiment.toml").toml()


def test_files_rows_and_requests_have_the_same_largest_utilisation(folder):
    (folder / "te.toml").write_text(UTILIZATION + 'capacities = "capacities.csv"\n')
    experiment = load("te.toml")
    problem, reader = experiment.problem(seed=0), building.RoundReader(experiment)
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
    reader = building.RoundReader(load("te.toml"))
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


# --- several constraints --------------------------------------------------------------------------

COSTS, ROOM = RNG.random((ROUNDS, 3)), 0.3 + 0.4 * RNG.random((ROUNDS, 3))
WEIGHTS, BUDGETS = RNG.random((ROUNDS, 2, 3)), 0.3 + 0.2 * RNG.random((ROUNDS, 2))


def largest(t, x, rows=2):
    """The value of the constraints of a round at a point, by hand."""
    spent = [float(WEIGHTS[t, i] @ x) - BUDGETS[t, i] for i in range(rows)]
    return max(*spent, float((x - ROOM[t]).max()))


def test_capacities_beside_weighted_rows_are_their_largest_in_python_rows_and_files(folder):
    K = tw.sets.Simplex(3)
    body = {"set": {"kind": "Simplex", "n": 3}, "names": ["a", "b", "c"]}
    reader = Description.read(body).build().reader
    for name, values in (("costs", COSTS), ("room", ROOM), ("weights", WEIGHTS[:, 0])):
        pd.DataFrame(values, columns=["a", "b", "c"]).to_csv(f"{name}.csv", index=False)
    pd.DataFrame(BUDGETS[:, :1], columns=["budget"]).to_csv("budgets.csv", index=False)
    (folder / "many.toml").write_text(
        '[set]\nkind = "Simplex"\n[stream]\ncosts = "costs.csv"\ncapacities = "room.csv"\n'
        'weights = "weights.csv"\nbudgets = "budgets.csv"\n'
    )
    recorded = load("many.toml").problem(seed=0).stream.constraints
    one, other = (tw.Session(tw.LyapunovDescent(K)) for _ in range(2))
    for t in range(ROUNDS):
        rows = [dict(zip("abc", WEIGHTS[t, 0].tolist(), strict=True)), WEIGHTS[t, 1].tolist()]
        given = {"costs": COSTS[t].tolist(), "capacities": ROOM[t].tolist()}
        loss, limits = reader.functions({**given, "weights": rows, "budgets": BUDGETS[t].tolist()})
        for x in (K.center, np.array([0.7, 0.2, 0.1])):
            assert limits.values(x) == pytest.approx([largest(t, x)])
            assert limits.pieces(x).shape == (1, 5)
            assert recorded[t : t + 1].values(x) == pytest.approx([largest(t, x, 1)])
        assert (one.play() == other.play()).all()
        one.observe(loss=loss, constraint=limits)
        other.observe(costs=COSTS[t], capacities=ROOM[t], weights=WEIGHTS[t], budgets=BUDGETS[t])


def test_a_capacity_keyword_beside_a_constraint_and_a_single_weighted_row():
    K = tw.sets.Simplex(3)
    one, other = (tw.Session(tw.LyapunovDescent(K)) for _ in range(2))
    for t in range(5):
        spent = tw.functions.Affine.one(WEIGHTS[t, 0], BUDGETS[t, 0])
        one.observe(costs=COSTS[t], capacities=ROOM[t], constraint=spent)
        row = {"weights": WEIGHTS[t, 0], "budgets": BUDGETS[t, 0]}
        other.observe(costs=COSTS[t], capacities=ROOM[t], **row)
        assert one.play() == pytest.approx(other.play(), abs=1e-12)
    x, rounds = other.play(), other.rounds
    for wrong in (
        {"weights": WEIGHTS[0, 0]},
        {"weights": WEIGHTS[0], "budgets": 1.0},
        {"weights": WEIGHTS[0], "budgets": [1.0, 2.0, 3.0]},
        {"weights": WEIGHTS[0, 0], "budgets": np.nan},
    ):
        with pytest.raises(TidewolfError):
            other.observe(costs=COSTS[0], **wrong)
        assert other.rounds == rounds
        assert (other.play() == x).all()


def test_a_network_takes_several_weighted_rows_beside_its_capacities(folder):
    (folder / "te.toml").write_text(SET + '[stream]\ndemands = "demands.csv"\n')
    reader = building.RoundReader(load("te.toml"))
    network, x, weights = reader.network, reader.K.center, RNG.random((2, len(LINKS)))
    row = {"demands": DEMANDS[0].tolist(), "weights": weights.tolist(), "budgets": [3.0, 4.0]}
    _, limits = reader.functions(row)
    loads = network.loads(x, DEMANDS[0])
    over = (loads - [link[2] for link in LINKS]).max() / network.unit
    assert limits.values(x) == pytest.approx([max(*(weights @ loads - [3.0, 4.0]), over)])
    for wrong in ([3.0], 3.0, [3.0, "4"]):
        with pytest.raises(InvalidInput, match="budgets"):
            reader.functions({**row, "budgets": wrong})


def test_forecasts_of_a_recorded_run_are_those_of_a_session():
    K, rounds = tw.sets.Simplex(3), slice(0, 8)
    truth = tw.Stream(tw.functions.Linear(COSTS[rounds]), tw.functions.Capacity(ROOM[rounds]))
    ahead = tw.functions.Linear(COSTS[::-1][rounds]), tw.functions.Capacity(ROOM[::-1][rounds])
    for learner in (tw.baselines.Resolve(K, data="forecast"), tw.Ensemble(K, experts=["forecast"])):
        stream = tw.Stream(truth.losses, truth.constraints, forecast=ahead)
        run, session = tw.run(learner, stream, decisions=True), tw.Session(learner)
        for t in range(8):
            x = session.play(forecast=tuple(batch[t : t + 1] for batch in ahead))
            assert run.decisions.points[t] == pytest.approx(x, abs=1e-9)
            session.observe(loss=truth.losses[t : t + 1], constraint=truth.constraints[t : t + 1])
        assert stream[3:].info(0).forecast.losses == ahead[0][3:4]
    foretold = tw.Stream(*_parts(truth), forecast=truth)
    exact = tw.run(tw.baselines.Resolve(K, data="forecast"), foretold)
    assert exact.violations.max() <= 1e-6  # with forecasts that come true
    for wrong in (ahead[0], (ahead[0], ahead[1][:3])):
        with refused(TidewolfError, "forecast"):
            tw.Stream(*_parts(truth), forecast=wrong)


def _parts(stream):
    return stream.losses, stream.constraints


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
    assert tuple(pd.read_csv("out/decisions.csv").drop(columns="round").columns) == OWN_NAMES
    used = utilisation(folder / "out", np.array([link[2] for link in LINKS]))
    losses = pd.read_parquet("out/rounds.parquet").sort_values("round")["loss"]
    assert losses.to_numpy() == pytest.approx(used.max(axis=1), rel=1e-9)
    problem = load("out/experiment.toml").problem(seed=0)
    text = (folder / "own.toml").read_text().replace('"tunnels.csv"', '"out/tunnels.csv"')
    (folder / "again.toml").write_text(text)
    again = load("again.toml").problem(seed=0)  # from the tunnels.csv that the run has written
    assert problem.K == again.K
    assert problem.stream.losses == again.stream.losses


def test_requests_and_python_take_the_same_tunnels(folder):
    own_tunnels(folder)
    problem = load("own.toml").problem(seed=0)
    named = [{"pair": pair, "path": path.split(" > "), "name": name} for pair, path, name in OWN]
    rows = [each if i % 2 else list(OWN[i]) for i, each in enumerate(named)]
    described = {"graph": [list(link[:2]) for link in LINKS], "tunnels": rows}
    described["commodities"] = [list(pair) for pair in PAIRS]
    reader = Description.read({"set": described}).build().reader
    own = [path.split(" > ") for _, path, _ in OWN]
    tunnels = tw.networks.Tunnels(LINKS_ALONE, PAIRS, paths=own)
    assert reader.names == OWN_NAMES == problem.labels
    assert (reader.network.incidence != problem.network.incidence).nnz == 0
    assert (tunnels.incidence != problem.network.incidence).nnz == 0
    by_name = {"north": ["A", "B", "D"], "back": ["D", "A"]}
    with refused(InvalidInput, "paths"):
        tw.networks.Tunnels(LINKS_ALONE, [("A", "D"), ("D", "A")], paths=by_name)


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
        with refused(InvalidInput, "capacities"):
            network.max_utilization(capacities)
    body = {"set": {"kind": "Simplex", "n": 2}, "stream": {"objective": "max-utilization"}}
    with pytest.raises(InvalidInput, match="objective"):
        Description.read(body).build()


# --- folders of public repositories ---------------------------------------------------------------


def te_folder(folder, layout):
    """A network of four nodes, full mesh, in the layout of FIGRET or of DOTE."""
    home = folder / "Mesh"
    links = [(i, j, 10.0 + i) for i in range(4) for j in range(4) if i != j]
    demands = np.random.default_rng(1).integers(0, 20, (9, 4, 4)).astype(float)
    demands[:, range(4), range(4)] = 0.0
    for part in ("train", "test"):
        (home / part).mkdir(parents=True)
    parts = {"train/2": demands[:3], "train/10": demands[3:6], "test/11": demands[6:]}
    for name, some in parts.items():
        lines = (" ".join(map(str, one.reshape(-1))) for one in some)
        (home / f"{name}.hist").write_text("\n".join(lines) + "\n")
    if layout == "figret":
        keys = ("source", "target", "capacity")
        listed = [dict(zip(keys, link, strict=True)) for link in links]
        (home / "Mesh.json").write_text(json.dumps({"directed": True, "links": listed}))
        ways = {}
        for i, j, _ in links:
            others = [k for k in range(4) if k not in (i, j)]
            ways[i, j] = f"{i}-{j},{i}-{others[0]}-{j},{i}-{others[1]}-{j}"
        lines = [f"{i} {j}:{way}\n" for (i, j), way in ways.items()]
        (home / "tunnels.txt").write_text("".join(lines))
        for name in ("train/2", "train/10", "test/11"):
            (home / f"{name}.opt").write_text("0.5\n1.0\n2.0\n")
    elif layout == "dote":
        text = "".join(f"{i},{j},{most}\n" for i, j, most in links)
        (home / "Mesh_int.pickle.nnet").write_text(text)
    else:
        matrix = np.zeros((4, 4))
        for i, j, most in links:
            matrix[i, j] = most
        text = "\n".join(",".join(map(str, row)) for row in matrix)
        (home / "Mesh_int.txt").write_text(text)
    return home, demands


@pytest.mark.parametrize("layout", ["figret", "dote", "matrix"])
def test_a_public_folder_becomes_an_experiment_that_runs(folder, layout, capsys):
    home, demands = te_folder(folder, layout)
    assert main(["import", "te", str(home)]) == 0
    problem = load("Mesh.toml").problem(seed=0)
    network = problem.network
    pairs = [tuple(map(int, one.name.split(" > "))) for one in network.demands]
    sent = np.array([[one[i, j] for i, j in pairs] for one in demands])
    assert problem.demands == pytest.approx(sent)  # 2.hist before 10.hist, train before test
    ends = [tuple(map(int, link)) for link in network.links]
    assert network.capacities.tolist() == [10.0 + tail for tail, _ in ends]
    if layout == "figret":
        assert len(network.tunnels.paths) == 36
        optima = pd.read_csv("Mesh-data/optima.csv")["optimum"]
        assert main(["import", "te", str(home), "share", "--relative"]) == 0
        share = load("share.toml").problem(seed=0)
        assert share.demands == pytest.approx(sent / optima.to_numpy()[:, None])
    (folder / "Mesh.toml").write_text((folder / "Mesh.toml").read_text() + "rounds = 4\n" * 0)
    assert main(["run", "Mesh.toml", "--learner", "SinhaVaze", "--rounds", "4", "--quiet"]) == 0
    assert len(pd.read_csv("out/decisions.csv")) == 4
    assert "--force" in refused_command(capsys, "import", "te", home)


@pytest.mark.parametrize(
    ("spoil", "names"),
    [
        (lambda home: (home / "Mesh.json").write_bytes(b"\x80\x04N."), "pickle"),
        (lambda home: (home / "Mesh.json").rename(home / "Mesh.pkl"), "pickle"),
        (lambda home: (home / "Mesh.json").write_text('{"links": [{"source": 0}]}'), "Mesh.json"),
        (lambda home: (home / "train/2.hist").write_text("DMs GO HERE"), "2.hist"),
        (lambda home: (home / "train/2.hist").write_text("1 2 3\n"), "2.hist"),
        (lambda home: (home / "train/2.opt").write_text("1.0\n"), ".opt"),
        (lambda home: (home / "tunnels.txt").write_text("0 1;0-1\n"), "line 1"),
        (lambda home: (home / "tunnels.txt").write_text("0 1:0-1\n"), "tunnels.txt"),
    ],
)
def test_a_public_folder_in_another_format_is_refused(folder, spoil, names, capsys):
    home, _ = te_folder(folder, "figret")
    spoil(home)
    assert names in refused_command(capsys, "import", "te", home)
    assert not (folder / "Mesh.toml").exists()
    assert "train" in refused_command(capsys, "import", "te", folder)
    assert "te" in refused_command(capsys, "import", "wan", home)
