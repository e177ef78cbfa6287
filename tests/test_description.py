"""What a session of the service is: one text for one session, and the same learner from it."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.hostile_bodies import NETWORKS, SETS, WHOLE, bodies

from tidewolf.core.errors import InvalidInput, NotAMember
from tidewolf.live.runner import follows_clock, given_demands
from tidewolf.service.description import Description

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
    again = Description.read(
        {**shuffled(body, random), "why": "another reason", "rounds": body.get("rounds")}
    )
    assert again.canonical == asked.canonical
    assert Description.parse(asked.canonical).canonical == asked.canonical
    assert "why" not in json.loads(asked.canonical)


@pytest.mark.parametrize("body", [WHOLE, {"set": NETWORKS["one"]}, {"set": NETWORKS["tunnels"]}])
def test_the_text_makes_the_same_learner_and_reads_rows_alike(body):
    asked = Description.read(body)
    one, other = asked.build(), Description.parse(asked.canonical).build()
    assert one.learner == other.learner
    network = one.reader.network
    links = one.entries.names if network is None else network.link_names
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


@pytest.mark.parametrize("kind", SETS)
def test_points_by_name_and_back(kind):
    made = Description.read({"set": {"kind": kind, **SETS[kind]}}).build()
    x = made.K.center
    by_name = json.loads(json.dumps(made.entries.named(x)))
    assert made.member(by_name, "It").tobytes() == (x + 0.0).tobytes()
    assert made.entries.point(list(by_name.values()), "It").shape == made.K.shape
    assert (made.paths(x) is not None) == (kind in ("FlowPolytope", "MultiFlow"))


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
