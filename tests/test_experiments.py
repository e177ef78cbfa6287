"""Experiment files: what they say is what runs, what they cannot say is refused with its line and
column.
"""

import re
import tomllib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tidewolf as tw
from refused import refused_command
from tables import table
from tidewolf import baselines, cli, functions, learners, problems, sets
from tidewolf.core import errors, sparse
from tidewolf.core.settings import settings_of
from tidewolf.experiments import Choice, Experiment, building, jobs, load, models, templates
from tidewolf.experiments import experiment as experiment_files
from tidewolf.experiments.experiment import TABLES, Place, function_kinds, kind_keys, set_kinds

LINKS = [
    *(("SEA", "DEN"), ("SEA", "SFO"), ("SFO", "DEN"), ("SFO", "HOU")),
    *(("DEN", "NYC"), ("HOU", "NYC"), ("DEN", "HOU")),
]
NAMES, ROUNDS = [f"{tail} > {head}" for tail, head in LINKS], 40
NETWORK = """\
[set]
graph = "links.csv"
source = "SEA"
target = "NYC"

[stream]
costs = "costs.csv"
capacities = "capacities.csv"
"""
LONGER = NETWORK.replace("\n\n", '\nlengths = "km"\n\n')
TABLED = ("links", "costs", "capacities")
SMALL = '[stream]\nproblem = "adversarial"\n'


@pytest.fixture
def numbers():
    costs, room = np.random.default_rng(3).random((2, ROUNDS, len(LINKS)))
    return (1.0 + costs).round(3), (0.6 + 0.4 * room).round(3)


@pytest.fixture
def network(here, numbers):
    """What a network engineer has: an edge list, a table of costs, a table of capacities, and eight
    lines that name them.
    """
    rows = (f"{tail},{head},{i + 1.5}\n" for i, (tail, head) in enumerate(LINKS))
    (here / "links.csv").write_text("tail,head,km\n" + "".join(rows))
    for name, values in zip(("costs", "capacities"), numbers, strict=True):
        (here / f"{name}.csv").write_text(table(NAMES, values))
    (here / "network.toml").write_text(NETWORK)
    return here


def refused(text, path="bad.toml"):
    with open(path, "w") as file:
        file.write(text)
    with pytest.raises(errors.TidewolfError) as raised:
        made(path)
    return str(raised.value)


def made(path):
    experiment = load(path)
    problem = experiment.problem(0)
    return [experiment.learner(entrant, problem, 0) for entrant in experiment.entrants()]


# the network engineer's path


def test_names_of_links_and_order_of_columns_are_the_files_business(network, numbers):
    plain = load("network.toml").problem(0)
    rows = (f"{tail},{head},l{i}\n" for i, (tail, head) in enumerate(LINKS))
    (network / "links.csv").write_text("from,to,name\n" + "".join(rows))
    order = [3, 0, 6, 1, 5, 2, 4]
    costs = table([f"l{i}" for i in order], numbers[0][:, order], times=False)
    (network / "costs.csv").write_text(costs)
    names = [NAMES[i].replace(" > ", "->") for i in order]
    (network / "capacities.csv").write_text(table(names, numbers[1][:, order]))
    named = load("network.toml").problem(0)
    assert (named.stream, named.K) == (plain.stream, plain.K)
    assert named.labels == tuple(f"l{i}" for i in range(len(LINKS)))
    assert plain.labels == tuple(NAMES)


def test_cables_both_ways_share_a_column_and_circles_are_cut(network, numbers):
    text = NETWORK.replace("[stream]", 'directed = false\nlengths = "km"\n[stream]')
    (network / "network.toml").write_text(text)
    problem = load("network.toml").problem(0)
    assert set(problem.labels) < {*NAMES, *(f"{head} > {tail}" for tail, head in LINKS)}
    assert f"the {len(problem.labels)} of 14 links that lead away and on" in problem.title
    ways = {**dict.fromkeys(NAMES), **{f"{head} > {tail}": None for tail, head in LINKS}}
    column = {name: i % len(NAMES) for i, name in enumerate(ways)}
    costs = tw.functions.Linear(numbers[0][:, [column[name] for name in problem.labels]])
    assert problem.stream.losses == costs
    assert problem.notes[0].startswith(f"{14 - len(problem.labels)} of 14 links are not used: ")
    assert "does not lead away from SEA" in problem.notes[0]


# files as people have them


def frames(folder):
    """The tables of the network, with their times."""
    found = {name: pandas.read_csv(folder / f"{name}.csv") for name in TABLED}
    for name in TABLED[1:]:
        found[name]["time"] = pandas.to_datetime(found[name]["time"])
    return found


def semicolons(folder):
    form = {"sep": ";", "decimal": ",", "encoding": "cp1252", "date_format": "%d.%m.%Y %H:%M"}
    for name, frame in frames(folder).items():
        frame.to_csv(folder / f"{name}.csv", index=False, **form)
    more = '[files]\nseparator = ";"\ndecimal = ","\nencoding = "cp1252"\n'
    return f'{LONGER}{more}date_format = "%d.%m.%Y %H:%M"\n'


def excel(folder):
    with pandas.ExcelWriter(folder / "network.xlsx") as book:
        for name, frame in frames(folder).items():
            frame.to_excel(book, sheet_name=name, index=False)
    return re.sub(r'"(\w+)\.csv"', r'"network.xlsx#\1"', LONGER)


@pytest.mark.parametrize("form", [semicolons, excel])
def test_the_same_network_in_every_form_is_the_same_problem(network, form):
    expected, problem = built(network, LONGER), built(network, form(network))
    assert (problem.labels, problem.K) == (expected.labels, expected.K)
    assert problem.stream == expected.stream


def test_formats_and_gaps_go_through_a_file_and_back(network):
    assert "[files]" not in load("network.toml").resolved(ROUNDS).toml()
    (network / "network.toml").write_text(semicolons(network))
    experiment = load("network.toml")
    files = replace(experiment.files, timezone="Europe/Berlin", separator="\t")
    stream = replace(experiment.stream, gaps="unseen")
    told = replace(experiment, stream=stream, files=files).resolved(ROUNDS)
    (network / "again.toml").write_text(told.toml())
    again = load("again.toml")
    assert again == told
    assert (again.files, again.stream.gaps) == (files, "unseen")


def test_formats_gaps_and_sheets_tell_sweeps_apart(network):
    (network / "network.toml").write_text(excel(network))
    experiment = load("network.toml")
    found = [
        experiment,
        replace(experiment, files=tw.problems.FileFormat(timezone="UTC")),
        replace(experiment, stream=replace(experiment.stream, gaps="last")),
        replace(experiment, stream=replace(experiment.stream, capacities=experiment.stream.costs)),
    ]
    identities = [jobs.identity_of(each) for each in found]
    assert len(set(identities)) == len(identities)
    assert jobs.identity_of(load("network.toml")) == identities[0]


# what a file may say


def test_the_knob_runs_every_learner_that_has_it_at_every_value(tmp_path):
    path = tmp_path / "e.toml"
    path.write_text(
        "caution = [1, 100]\nseeds = [3, 4]\nrounds = 30\n"
        + SMALL
        + "[[learners]]\nname = 'LyapunovDescent'\n[[learners]]\nname = 'SinhaVaze'\ncaution ="
        " 7\n[[learners]]\nname = 'BanditPrimalDual'\n"
    )
    experiment = load(path)
    told = [(each.name, each.given.get("caution")) for each in experiment.entrants()]
    descents = [("LyapunovDescent", caution) for caution in (1.0, 100.0)]
    assert told == [*descents, ("SinhaVaze", 7.0), ("BanditPrimalDual", None)]
    problem = experiment.problem(4)
    made = [experiment.learner(each, problem, 4) for each in experiment.entrants()]
    assert made[1] == tw.LyapunovDescent(problem.K, horizon=30, caution=100)
    assert made[3] == tw.BanditPrimalDual(problem.K, horizon=30, seed=4)
    assert experiment.seeds == (3, 4)


@pytest.mark.parametrize("name", ["routing", "sdp", "portfolio"])
def test_resolving_says_all_and_changes_nothing(name, tmp_path):
    kinds = {*learners.every(), *baselines.every()} - {"CLASP", "Resolve"}
    everyone = tuple(map(Choice, sorted(kinds)))
    how = {"rounds": 12, "cautions": (2.0,), "seeds": (5,)}
    experiment = Experiment(name, Choice(name), learners=everyone, **how)
    resolved, path = experiment.resolved(), tmp_path / f"{name}.toml"
    path.write_text(resolved.toml())
    again = load(path)
    assert again == resolved == again.resolved()
    assert again.toml() == resolved.toml()
    here, there = experiment.problem(5), again.problem(5)
    assert (here.K, here.stream) == (there.K, there.stream)
    before = [experiment.learner(each, here, 5) for each in experiment.entrants()]
    assert before == [again.learner(each, there, 5) for each in again.entrants()]


def test_a_resolved_network_can_be_read_from_anywhere(network, monkeypatch, tmp_path_factory):
    resolved = load("network.toml").resolved()
    here = resolved.problem(0)
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    with open("copy.toml", "w") as file:
        file.write(resolved.toml())
    again = load("copy.toml")
    assert (again, again.problem(0).stream) == (resolved, here.stream)


# sets and functions with arrays, graphs and parts of their own


def built(folder, text):
    (folder / "e.toml").write_text(text)
    return load(folder / "e.toml").problem(0)


STREAM = '[stream]\ncosts = "costs.csv"\ncapacities = "capacities.csv"\n'


def test_functions_by_name_with_lists_and_tables(network, numbers):
    order = [3, 0, 6, 1, 5, 2, 4]
    (network / "returns.csv").write_text(table("abc", 1.0 + numbers[0][:, :3]))
    (network / "weights.csv").write_text(table("cab", numbers[1][:, [2, 0, 1]]))
    (network / "budgets.csv").write_text(table(["budget"], np.full((ROUNDS, 1), 0.9)))
    text = (
        '[set]\nkind = "Simplex"\nn = 3\n[stream.losses]\nkind = "LogWealth"\nreturns = '
        '"returns.csv"\n[stream.constraints]\nkind = "Affine"\nA = "weights.csv"\nb = '
        '"budgets.csv"\n'
    )
    problem = built(network, text)
    assert problem.stream.losses == functions.LogWealth(1.0 + numbers[0][:, :3])
    assert problem.stream.constraints == functions.Affine(numbers[1][:, :3], np.full(ROUNDS, 0.9))
    assert problem.labels == ("a", "b", "c")
    assert problem.title == "A point of a Simplex under LogWealth losses."
    pieces = np.random.default_rng(0).random((ROUNDS, 2, len(LINKS)))
    np.savez("a.npz", pieces)
    np.save("b.npy", np.ones((ROUNDS, 2)))
    (network / "mixed.csv").write_text(table([NAMES[i] for i in order], numbers[0][:, order]))
    flow = built(
        network,
        NETWORK.partition("[stream]")[0]
        + '[stream.losses]\nkind = "Linear"\nC = "mixed.csv"\n[stream.constraints]\nkind = '
        '"MaxAffine"\nA = "a.npz"\nb = "b.npy"\n',
    )
    assert flow.stream.losses == functions.Linear(numbers[0])
    assert flow.stream.constraints == functions.MaxAffine(pieces, np.ones((ROUNDS, 2)))
    assert flow.labels == tuple(NAMES)


def test_tables_and_functions_go_together_round_by_round(network, numbers):
    losses = '[set]\nkind = "Simplex"\nn = 7\n[stream]\ncosts = "costs.csv"\n'
    few = losses + '[stream.constraints]\nkind = "Capacity"\nc = [[1, 1, 1, 1, 1, 1, 1]]\n'
    assert refused(few).startswith("[stream.constraints] has 1 rounds and costs.csv has 40")
    few = '[set]\nkind = "Simplex"\nn = 7\n[stream]\ncapacities = "capacities.csv"\n'
    few += '[stream.losses]\nkind = "Linear"\nC = [[1, 1, 1, 1, 1, 1, 1]]\n'
    assert refused(few).startswith("capacities.csv has 40 rounds and [stream.losses] has 1")
    limits = '[stream.constraints]\nkind = "Capacity"\nc = "capacities.csv"\n'
    (network / "all.toml").write_text(losses + limits)
    (network / "plain.toml").write_text(losses + 'capacities = "capacities.csv"\n')
    assert load("all.toml").problem(0).stream == load("plain.toml").problem(0).stream
    again = load("all.toml").resolved()
    (network / "resolved.toml").write_text(again.toml())
    assert load("resolved.toml") == again


def test_graph_files_make_every_set_that_is_made_of_links(network, numbers):
    rows = (f"{tail},{head},{i + 1},2\n" for i, (tail, head) in enumerate(LINKS))
    (network / "links.csv").write_text("tail,head,km,room\n" + "".join(rows))
    (network / "supplies.csv").write_text("node,supply\nSEA,1\nNYC,-1\n")
    (network / "demands.csv").write_text("source,target,demand\nSEA,NYC,2\nSFO,HOU,0.5\n")
    text = 'graph = "links.csv"\n' + STREAM
    carried = 'supplies = "supplies.csv"\nupper = "room"\n'
    assert (
        tw.sets.CapacitatedFlow.from_edges(
            LINKS, supplies={"SEA": 1.0, "NYC": -1.0}, upper=np.full(len(LINKS), 2.0)
        )
        == built(network, '[set]\nkind = "CapacitatedFlow"\n' + carried + text).K
    )
    named = built(network, '[set]\nkind = "SpanningTrees"\n' + text)
    assert (tw.sets.SpanningTrees(LINKS), named.labels) == (named.K, tuple(NAMES))
    both = load_set(network, '[set]\nlengths = "km"\ncommodities = "demands.csv"\n' + text)
    shares = [("SEA", "NYC", 1.0), ("SFO", "HOU", 1.0)]
    assert both == tw.sets.MultiFlow.from_edges(LINKS, shares)  # no cycle, so every link stays
    ring = '[set]\ngraph = [["a", "b"], ["b", "c"]]\nsource = "c"\ntarget = "a"\n'
    assert load_set(network, ring + "directed = false\n" + SMALL) == (
        tw.sets.FlowPolytope.from_edges([("b", "a"), ("c", "b")], source="c", target="a")
    )
    pairs = '[set]\nkind = "Matching"\ngraph = [["a", 1], ["b", 1]]\n'
    assert load_set(network, pairs + SMALL) == tw.sets.Matching([("a", 1), ("b", 1)])


def load_set(folder, text):
    (folder / "e.toml").write_text(text)
    read = load(folder / "e.toml")
    return building.build_choice(read.hard_set, Place(read.document, ("set",)))


# the commented file


@pytest.mark.parametrize("problem", list(problems.every()))
def test_the_commented_file_loads_as_it_is(tmp_path, problem):
    path = tmp_path / "mine.toml"
    path.write_text(templates.template("mine", problem))
    assert load(path).stream.name == problem
    assert [each.name for each in load(path).learners] == ["Ensemble", "SinhaVaze"]


@pytest.mark.parametrize("of_network", [False, True])
def test_the_commented_file_explains_every_key_and_no_other(of_network):
    text = templates.template("mine", "adversarial")
    if of_network:
        text = templates.network_template(Path("mine.toml"))[Path("mine.toml")].decode()
    keys = set(re.findall(r"^(?:# )?(\w+) = ", text, re.MULTILINE)) | set(
        re.findall(r"^(?:# )?\[+(\w+)\]+$", text, re.MULTILINE)
    )
    network, files = kind_keys(tw.networks.Network), settings_of(tw.problems.FileFormat)
    known = {*(models.File.model_fields.keys() - {"left_out"}), *TABLES, *network}
    known |= {*models.Outputs.model_fields, *files, "horizons", "gaps", "context", "advice"}
    known.add("objective")
    settings = {"calls_per_round", "season", "experts", "target_violation"}
    if of_network:
        known, settings = known - {"weights", "budgets"}, {*settings, "headroom"}
    else:
        known |= {"problem", "kind", "phase"}
        settings |= {"cap", "total", "returns", "A", "b"}
    assert known <= keys
    assert keys - known == settings
    assert "CappedSimplex" in set_kinds()
    assert max(map(len, text.splitlines())) <= 100


def test_new_writes_once(here, capsys):
    assert cli.main(["new", "mine", "--problem", "adversarial"]) == 0
    assert "mine.toml is written" in capsys.readouterr().out
    (here / "mine.toml").write_text("# my own\n")
    assert "--force" in refused_command(capsys, "new", "mine")
    assert (here / "mine.toml").read_text() == "# my own\n"
    assert cli.main(["new", "mine", "--force", "--quiet"]) == 0
    assert capsys.readouterr() == ("", "")
    assert "routing?" in refused_command(capsys, "new", "other", "--problem", "routng")
    assert [path.name for path in here.iterdir()] == ["mine.toml"]


# TOML and places

KEYS = st.text(st.characters(exclude_categories=["Cs"]), max_size=6) | st.sampled_from(
    ["a", "b-c", "x_1", "a.b", '"', "#", "["]
)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
NUMBERS = st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False)
LEAVES = NUMBERS | st.booleans() | TEXTS
VALUES = LEAVES | st.lists(LEAVES | st.lists(LEAVES, max_size=3), max_size=4)
TABLE = st.dictionaries(KEYS, VALUES, max_size=4)
NESTED = st.dictionaries(KEYS, VALUES | TABLE | st.lists(TABLE, min_size=1, max_size=3), max_size=5)


@given(NESTED)
def test_what_is_written_is_read_and_every_key_is_where_it_is_said_to_be(data):
    text = experiment_files.to_toml(data)
    assert tomllib.loads(text) == data
    document, lines = experiment_files.parse(text, "f.toml"), text.split("\n")
    for path, (line, column) in document.places.items():
        rest = lines[line - 1][column - 1 :]
        if isinstance(path[-1], str):
            key = rest.partition("]")[0].lstrip("[") if rest.startswith("[") else rest
            assert rest.startswith("[") or _key(key) == path[-1]
    paths = {(key,) for key, value in data.items() if not _lists_tables(value)}
    several = ((key, value) for key, value in data.items() if _lists_tables(value))
    paths |= {(key, i, name) for key, rows in several for i, row in enumerate(rows) for name in row}
    paths |= {
        (key, name) for key, value in data.items() if isinstance(value, dict) for name in value
    }
    assert paths <= set(document.places)


def _lists_tables(value):
    return isinstance(value, list) and bool(value) and isinstance(value[0], dict)


def _key(text):
    return next(iter(tomllib.loads(text.partition("\n")[0] if '"""' not in text else text)))


def test_places_in_the_ways_people_write(tmp_path):
    text = (
        '# [no]\nname = "x # [y]"\n"odd key" = \'v\'\nlong = """\n[not.a.table]\nk = 1\n"""\na.b = '
        '3\nlist = [1, # one ]\n  [2, 3], {q = 1, "r s" = "]"}]\nwhen = 1979-05-27 07:32:00\n[ set'
        " ]\r\n  n = 3\n[[learners]]\nname = 'a'\n[[learners]]\n  name = "
        "'b'\n[learners.more]\nz = 1\n"
    )
    places = experiment_files.parse(text, "f.toml").places
    told = {
        ("name",): (2, 1), ("odd key",): (3, 1), ("long",): (4, 1), ("a", "b"): (8, 1),
        ("list",): (9, 1), ("when",): (11, 1), ("set",): (12, 1), ("set", "n"): (13, 3),
        ("learners", 0, "name"): (15, 1), ("learners", 1): (16, 1),
        ("learners", 1, "name"): (17, 3), ("learners", 1, "more", "z"): (19, 1),
    }  # fmt: skip
    assert {path: places[path] for path in told} == told
    assert ("no",) not in places
    assert ("not", "a", "table") not in places
    document = experiment_files.parse(text, "f.toml")
    assert document.place("learners", 1, "unheard of") == "f.toml, line 16, column 1"
    assert document.place("list", 1, 1) == "f.toml, line 9, column 1, item 2, item 2"


# everything that files can describe


def _links(thing):
    return [[thing.nodes[i], thing.nodes[j]] for i, j in zip(thing.tails, thing.heads, strict=True)]


def _commodities(K):
    ends = zip(K.sources, K.targets, K.demands, strict=True)
    return [[K.nodes[i], K.nodes[j], demand] for i, j, demand in ends]


GRAPHS = {
    tw.sets.FlowPolytope: lambda K: {
        "graph": _links(K),
        "source": K.nodes[K.source],
        "target": K.nodes[K.target],
    },
    tw.sets.MultiFlow: lambda K: {"graph": _links(K), "commodities": _commodities(K)},
    tw.sets.CapacitatedFlow: lambda K: {
        "graph": _links(K.network),
        "supplies": list(zip(K.network.nodes, K.network.supply, strict=True)),
        "upper": K.network.upper,
        "lower": K.network.lower,
    },
}
"""What a file says of sets that are made by a constructor of their own."""


def described(thing):
    """What a file says of a set or a batch of functions."""
    kind = next(k for k in (*sets.every(), *functions.every()) if isinstance(thing, k))
    given = GRAPHS[kind](thing) if kind in GRAPHS else thing.fields()
    names = {setting.name: key for key, setting in kind_keys(kind).items()}
    own = {names.get(name, name): value for name, value in given.items() if value is not None}
    keys = kind_keys(kind)
    return Choice.of(kind.__name__, {key: plain(own[key]) for key in own if key in keys})


def plain(value):
    if isinstance(value, sets.ConvexSet | functions.Batch):
        return described(value)
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value.tolist() if hasattr(value, "tolist") else value


def holds_sparse(thing):
    given = [*thing.fields().values(), *getattr(thing, "parts", ())]
    batches = [value for value in given if isinstance(value, functions.Batch)]
    return any(map(sparse.is_sparse, given)) or any(map(holds_sparse, batches))


def again(thing, path):
    """The same after a trip through a file."""
    choice = described(thing)
    if isinstance(thing, sets.ConvexSet):
        data = {"set": choice.table(), "stream": {"problem": "adversarial"}}
    else:
        simplex = Choice.of("Simplex", {"n": 1}).table()
        data = {"set": simplex, "stream": {"losses": choice.table(), "constraints": choice.table()}}
    path.write_text(experiment_files.to_toml(data))
    read = load(path)
    found = read.hard_set if isinstance(thing, sets.ConvexSet) else read.stream.losses
    assert found == choice
    return building.build_choice(found, Place(read.document, ("set",)))


@pytest.mark.parametrize("kind", [*set_kinds().values(), *function_kinds().values()])
def test_what_a_file_describes_is_built_as_python_does(kind, tmp_path):
    things = [thing for thing in kind.examples() if kind is not tw.sets.MultiFlow]
    if kind is tw.sets.MultiFlow:  # which links a commodity may use is no matter for a file
        things = [kind.examples()[-1]]
    for thing in things:
        if not holds_sparse(thing):  # files write arrays in full
            assert again(thing, tmp_path / "e.toml") == thing


def test_every_set_and_every_function_without_code_can_be_described():
    assert set(set_kinds()) == {kind.__name__ for kind in sets.every()}
    assert set(function_kinds()) == {kind.__name__ for kind in functions.every()} - {"Custom"}


# what is known before a round


def told(network, stream="", learner='name = "Ensemble"'):
    """The network's file with more lines."""
    (network / "told.toml").write_text(f"{NETWORK}{stream}\n[[learners]]\n{learner}\n")
    return "told.toml"


def test_the_time_column_of_tables_is_the_time_of_rounds(network):
    stream = load("network.toml").problem(0).stream
    assert stream.time.tolist() == [1704067200.0 + 3600.0 * t for t in range(ROUNDS)]
    assert len(Experiment.problem(load(told(network)), 0).stream.time) == ROUNDS
    (network / "told.toml").write_text("rounds = 7\n" + NETWORK)
    assert load("told.toml").problem(0).stream.time.tolist() == stream.time[:7].tolist()
    for name in ("costs", "capacities"):
        lines = (network / f"{name}.csv").read_text().splitlines()
        rows = (line.partition(",")[2] + "\n" for line in lines)
        (network / f"{name}.csv").write_text("".join(rows))
    assert load("network.toml").problem(0).stream.time is None


def test_contexts_and_advice_are_tables_too(network, numbers):
    points = np.random.default_rng(1).random((ROUNDS, len(LINKS)))
    order = [3, 0, 1, 2, 6, 5, 4]
    text = table([NAMES[i] for i in order], points[:, order]).splitlines()
    cells = text[5].split(",")
    text[5] = ",".join([cells[0], "", *cells[2:]])
    (network / "incumbent.csv").write_text("\n".join(text) + "\n")
    (network / "kinds.csv").write_text(table(["kind"], np.arange(1.0 * ROUNDS)[:, None] % 2))
    lines = 'context = "kinds.csv"\nadvice = {incumbent = "incumbent.csv"}\n'
    experiment = load(told(network, lines, 'name = "Ensemble"\nexperts = ["incumbent", "last"]'))
    stream = experiment.problem(0).stream
    assert stream.context.tolist() == [t % 2 for t in range(ROUNDS)]
    assert np.isnan(stream.advice["incumbent"][4]).sum() == 1
    points[4] = np.nan
    for t in range(ROUNDS):
        advice = stream.info(t).advice
        assert advice is None if t == 4 else (advice["incumbent"] == points[t]).all()
    learner = experiment.learner(experiment.entrants()[0], experiment.problem(0), 0)
    assert [type(adviser) for adviser in learner.advisers] == [tw.experts.Named, tw.experts.Resolve]
    again = experiment.resolved()
    (network / "again.toml").write_text(again.toml())
    assert load("again.toml").stream == again.stream
    assert load("again.toml").problem(0).stream == stream
    assert load("again.toml").entrants() == again.entrants()
    own = lines.replace("incumbent =", "leader =")  # what "leader" means would be a guess
    text = f'{NETWORK}{own}\n[[learners]]\nname = "Ensemble"\nexperts = ["leader"]\n'
    assert "leader" in refused(text)
    weights = np.column_stack([np.linspace(0, 1, ROUNDS), np.linspace(1, 0, ROUNDS)])
    (network / "kinds.csv").write_text(table(["day", "night"], weights))
    np.testing.assert_allclose(load("told.toml").problem(0).stream.context, weights)


@pytest.mark.parametrize(
    ("line", "context", "advisers"),
    [
        ("season = 96", 96, ()),
        ('season = "12h"', "12h", ()),
        ('experts = ["last", "1d", 96]', None, ("last", "1d", 96)),
        ('experts = ["static", "leader"]', None, (tw.experts.Static(), tw.experts.Leader())),
    ],
)
def test_a_season_and_experts_are_periods_and_data_to_solve_with(network, line, context, advisers):
    (learner,) = made(told(network, learner=f'name = "Ensemble"\n{line}'))
    assert learner.context == (None if context is None else tw.experts.Season(context))
    kept = tw.experts.Adviser
    data = tuple(x if isinstance(x, kept) else tw.experts.Resolve(x) for x in advisers)
    assert learner.advisers == data
    (network / "again.toml").write_text(load("told.toml").resolved().toml())
    assert made("again.toml") == [learner]


# who plays where nobody is named


def test_an_ensemble_that_nobody_set_is_told_the_period_and_re_solves():
    daily = {"season": 96, "experts": ("last", 96)}
    for name, settings in {"routing": daily, "adversarial": {"experts": ("last",)}}.items():
        experiment = replace(Experiment.builtin(name), rounds=2)
        problem = experiment.problem(0)
        first, *others = experiment.taken(problem).entrants()
        assert (first.name, first.given) == ("Ensemble", settings)
        assert not any(each.given for each in others)
        alone = replace(experiment, learners=(Choice("Ensemble"),))
        assert alone.taken(problem) == alone, "who is named has the settings that were given"


@pytest.mark.parametrize("rounds", [191, 192])
def test_the_leader_is_an_expert_by_default_if_a_file_has_rounds_enough(network, numbers, rounds):
    for name, values in zip(("costs", "capacities"), numbers, strict=True):
        (network / f"{name}.csv").write_text(table(NAMES, np.resize(values, (rounds, len(NAMES)))))
    experiment = load("network.toml")
    experts = ("last", "1d", *["leader"] * (rounds == 192))
    first = experiment.taken(experiment.problem(0)).learners[0]
    assert first.given == {"season": "1d", "experts": experts}


def test_a_run_says_which_experts_play_if_the_file_names_no_learners(network, capsys):
    assert cli.main(["run", "network.toml"]) == 0
    assert 'experts = ["last"]' in " ".join(capsys.readouterr().out.split())


def test_a_learner_is_the_files_where_the_file_has_it():
    theirs = Choice.of("SinhaVaze", {"caution": 3.0})
    experiment = replace(Experiment.builtin("routing"), rounds=2, learners=(theirs,))
    problem = experiment.problem(0)
    chosen = experiment.only(["Ensemble", "SinhaVaze", "Ensemble"])
    first, second = chosen.taken(problem).learners
    assert (first.name, first.given) == ("Ensemble", {"season": 96, "experts": ("last", 96)})
    assert second == theirs
    assert [cell.entrant for cell in jobs.plan_sweep(chosen)] == [first, second]
    named = replace(experiment, learners=(Choice("Ensemble"),)).only(["Ensemble"])
    assert named.taken(problem).learners == (Choice("Ensemble"),), "the file set nothing"
