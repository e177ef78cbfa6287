"""What a session of the service is: one text for one session, and the same learner from it.

Sets and learners of requests are those of files, without a file; what is large is refused before it
is built; rows are read quickly as they are slowly.
"""

import json
import math
import pathlib
import time
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.hostile_bodies import NETWORKS, SETS, WHOLE, bodies

from covering import few
from interpreter import python
from tidewolf import files, live
from tidewolf.core.errors import InvalidInput, NotAMember, TidewolfError
from tidewolf.experiments import Tables, building, load, models
from tidewolf.experiments.experiment import Place, set_kinds
from tidewolf.live import follows_clock, given_demands, paths_of
from tidewolf.service.models import DEEPEST, Description

SIMPLEX = {"kind": "Simplex", "n": 3}


def shuffled(value, random):
    """The same JSON with the keys of objects in another order."""
    if isinstance(value, dict):
        items = list(value.items())
        random.shuffle(items)
        return {key: shuffled(part, random) for key, part in items}
    return [shuffled(part, random) for part in value] if isinstance(value, list) else value


@given(st.sampled_from(list(bodies())), st.randoms(use_true_random=False))
def test_the_same_session_is_the_same_text_whatever_the_order_of_keys(body, random):
    asked = Description.read(body)
    more = {"why": "another reason", "rounds": body.get("rounds")}
    again = Description.read(shuffled(body, random) | more)
    assert again.canonical == asked.canonical
    assert Description.parse(asked.canonical).canonical == asked.canonical
    assert "why" not in json.loads(asked.canonical)


@pytest.mark.parametrize("body", [WHOLE, {"set": NETWORKS["one"]}, {"set": NETWORKS["tunnels"]}])
def test_the_text_makes_the_same_learner_and_reads_rows_alike(body):
    asked = Description.read(body)
    one, other = asked.build(), Description.parse(asked.canonical).build()
    assert one.learner == other.learner
    network = one.reader.network
    links = one.reader.names if network is None else network.link_names
    costs = np.random.default_rng(0).random((2, len(links))).tolist()
    row = dict(zip(("costs", "capacities"), costs, strict=True))
    assert one.reader.functions(row) == other.reader.functions(row)


@pytest.mark.parametrize(("season", "follows"), [(4, False), ("1d", True)])
def test_a_season_of_hours_follows_the_clock(season, follows):
    body = {"set": SIMPLEX, "learners": [{"name": "Ensemble", "season": season}]}
    assert follows_clock(Description.read(body).build().learner) is follows


@pytest.mark.parametrize("text", ["", "{", "[1]", "null", '{"set": NaN}', "[" * 10**5])
def test_what_is_no_description_is_refused(text):
    with pytest.raises(InvalidInput):
        Description.parse(text)


def test_a_point_outside_is_no_member():
    with pytest.raises(NotAMember, match="What is pinned"):
        Description.read({"set": SIMPLEX}).build().member([1.0, 1.0, 0.0], "What is pinned")


@pytest.mark.parametrize(
    ("network", "said", "sent"),
    [
        ("one", 6.0, [6.0]),
        ("one", [6.0], [6.0]),
        ("one", {"volume": 6.0}, [6.0]),
        ("many", {"SEA->NYC": 6.0, "DEN > NYC": 1}, [6.0, 1.0]),
        ("many", [6.0, 1.0], [6.0, 1.0]),
    ],
)
def test_demands_are_understood_alike_by_functions_and_by_paths(network, said, sent):
    made = Description.read({"set": NETWORKS[network]}).build()
    assert made.reader.functions({"demands": said}) == made.reader.functions({"demands": sent})
    assert given_demands(made.reader, {"demands": said}, None) == sent


# --- sets and learners of requests ----------------------------------------------------------------


@pytest.mark.parametrize("kind", set_kinds())
def test_every_kind_of_set_is_made_of_a_request(kind):
    """Points go by name and back."""
    asked = Description.read(json.loads(json.dumps({"set": {"kind": kind, **SETS[kind]}})))
    built = asked.build()
    reader, learner = built.reader, built.learner
    assert type(reader.K).__name__ == kind
    center = built.K.center
    by_name = json.loads(json.dumps(built.reader.named(center)))
    assert built.member(by_name, "It").tobytes() == (center + 0.0).tobytes()
    assert built.reader.point(list(by_name.values()), "It").shape == built.K.shape
    assert (paths_of(reader, center, None) is not None) == (kind in ("FlowPolytope", "MultiFlow"))
    size, foreseen = math.prod(reader.K.shape), models.entries_of(asked.set)
    assert len(set(reader.names)) == size
    assert size == foreseen or (size < foreseen and kind == "MultiFlow")
    x = learner.act(learner.start())
    links = [] if reader.network is None else reader.network.link_names
    numbers = {name: float(i + 1) for i, name in enumerate(links or reader.names)}
    loss, _ = reader.functions({"costs": numbers})
    again, _ = reader.functions({"costs": list(numbers.values())})
    assert loss == again
    assert loss.values(x)[0] == pytest.approx(float(np.arange(1.0, size + 1) @ x.reshape(-1)))


@pytest.mark.parametrize("given", NETWORKS.values(), ids=NETWORKS)
def test_a_network_of_a_request_is_that_of_its_files(given, tmp_path):
    """Links, commodities and lengths from tables make the same set, names and functions."""
    keys = ("tail", "head", given.get("lengths", "length"), "capacity", "name")
    asked = given["graph"]
    rows = [x if isinstance(x, dict) else dict(zip(keys, x, strict=False)) for x in asked]
    cells = [",".join(str(row.get(key, "")) for key in keys) for row in rows]
    (tmp_path / "links.csv").write_text("\n".join([",".join(keys), *cells]) + "\n")
    said = {**given, "graph": "links.csv"}
    if "commodities" in given:
        named = ("source", "target", "demand")
        asked = given["commodities"]
        listed = [[*each.values()] if isinstance(each, dict) else each for each in asked]
        cells = [",".join(map(str, [*each, 1.0][:3])) for each in listed]
        (tmp_path / "flows.csv").write_text("\n".join([",".join(named), *cells]) + "\n")
        said["commodities"] = "flows.csv"
    lines = [f"{key} = {_toml(value)}" for key, value in said.items()]
    (tmp_path / "net.toml").write_text("\n".join(["[set]", *lines, ""]))
    experiment = load(tmp_path / "net.toml")
    of_files, built = building.RoundReader(experiment), Description.read({"set": given}).build()
    reader = built.reader
    assert (reader.K, reader.names) == (of_files.K, of_files.names)
    assert reader.network.link_names == of_files.network.link_names
    assert built.learner == live.live_learner(of_files)
    row = {"costs": [float(i + 1) for i in range(len(reader.network.links))]}
    assert reader.functions(row) == of_files.functions(row)


def _toml(value):
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {each}" for key, each in value.items()) + "}"
    return json.dumps(value)


def nested(depth):
    inside = SIMPLEX
    for _ in range(depth):
        inside = {"kind": "Scaled", "K": inside, "factor": 1.0}
    return inside


def line(nodes):
    return [[i, i + 1] for i in range(nodes - 1)]


LARGE = [
    {"kind": "Transportation", "rows": [1.0] * 400, "columns": [1.0] * 400},
    {"kind": "MultiFlow", "graph": line(400), "commodities": [[0, 399]] * 300},
    {"graph": line(2000), "commodities": [[i, i + 1] for i in range(100)], "paths": "all"},
    {"graph": line(9000), "source": 0, "target": 8999, "paths": "k-shortest"},
    {"graph": [[0, 1]] * 200_001, "source": 0, "target": 1},
]


@pytest.mark.parametrize("large", LARGE, ids=range(len(LARGE)))
def test_what_is_too_large_is_refused_before_it_is_built(large):
    """Other kinds of sets are in tests/refusals."""
    start = time.process_time()
    with pytest.raises(InvalidInput, match=r"^set.*(at most|too many)"):
        Description.read({"set": large})
    assert time.process_time() - start < 5.0


def test_what_is_too_deep_or_too_much_is_refused():
    assert Description.read({"set": nested(5)}).build().K.shape == (3,)
    with pytest.raises(InvalidInput, match="nested"):
        Description.read({"set": nested(DEEPEST + 1)})
    deep = []
    for _ in range(10**5):
        deep = [deep]
    with pytest.raises(InvalidInput, match="nested"):
        Description.read({"set": SIMPLEX, "names": deep})
    while deep:  # Python takes lists apart by recursion
        deep = deep.pop()
    with pytest.raises(InvalidInput, match="1,000,000 values"):
        Description.read({"set": {"kind": "Permutahedron", "weights": [1.0] * 1_000_001}})


@pytest.mark.parametrize("every", few(1, [8, 1]))
def test_no_request_makes_anybody_look_at_a_file(every):
    """In a process of its own, which notes every look; one of `every` bodies is tried."""
    said = python("-m", "tests.hostile_bodies", every, cwd=pathlib.Path(__file__).parents[1])
    assert int(said.split()[0]) > 3000 / every


# --- rows -----------------------------------------------------------------------------------------

READERS = {
    "simplex": {"set": SIMPLEX, "names": ["a", "b", "c"]},
    "matrices": {"set": {"kind": "NuclearBall", "shape": [2, 2]}},
    "trees": {"set": {"kind": "SpanningTrees", **SETS["SpanningTrees"]}},
    **{name: {"set": network} for name, network in NETWORKS.items()},
}
CALLED = ["a", "b", "c", "entry (0, 1)", "entry (1, 1)", "a > b", "c->a", "SEA > DEN", "direct"]
ODD = st.sampled_from([1e308, True, None, "1", 10**400, [1.0]])
NUMBERS = st.integers(-2, 3) | st.floats(-10.0, 10.0) | ODD


@cache
def reader_of(body):
    """What reads rows for the set of a request."""
    return Description.read(json.loads(body)).build().reader


def rows_for(reader):
    """Rows by name in any order, as lists, with too few or other names, with what is no number."""
    network = reader.network
    links = list(reader.names if network is None else network.link_names)
    commodities = [] if network is None else [each.name for each in network.demands]

    def numbers(names):
        plain, n = st.floats(0.0, 8.0), len(names)
        return st.one_of(
            st.lists(plain, min_size=n, max_size=n),
            st.permutations(names).flatmap(
                lambda order: st.tuples(*[plain] * n).map(
                    lambda v: dict(zip(order, v, strict=True))
                )
            ),
            st.lists(NUMBERS, max_size=n + 1),
            st.dictionaries(st.sampled_from([*names, *CALLED]), NUMBERS, max_size=n),
            NUMBERS,
        )

    return st.fixed_dictionaries(
        {},
        optional={
            "costs": numbers(links),
            "capacities": numbers(links),
            "weights": numbers(links),
            "budgets": numbers(["budget"]),
            "demands": numbers(commodities or ["a"]),
        },
    )


def by_tables(reader, row):
    """The functions of tables of one row, as experiments read them."""
    network, tables = reader.network, {}
    for name, value in row.items():
        order = reader.names if network is None else map(str, range(len(network.links)))
        if name == "budgets":
            order = ["budget"]
        elif name == "demands":
            order = [each.name for each in network.demands]
        pairs = value if isinstance(value, dict) else dict(zip(order, value, strict=True))
        values = np.array([[float(number) for number in pairs.values()]])
        tables[name] = files.Table(None, tuple(pairs), values, ("the row",))
    paths = {name: pathlib.Path(name) for name in tables}
    found = building.TableProblem.__new__(building.TableProblem)
    vars(found).update(at=reader._at, read=tables, paths=paths, tables=Tables(), place=Place(None))
    return found.functions()[:2]


@pytest.mark.parametrize("body", READERS.values(), ids=READERS)
@given(data=st.data())
def test_rows_are_read_as_tables_are_or_refused(body, data):
    reader = reader_of(json.dumps(body))
    row = data.draw(rows_for(reader))
    try:
        found = reader.functions(row)
    except TidewolfError:
        return
    row = {key: value if isinstance(value, dict | list) else [value] for key, value in row.items()}
    assert found == by_tables(reader, row)
    assert reader.functions(row) == found  # with names that were seen before
    assert reader._layout.cache_info().currsize <= building.MOST_LAYOUTS
